"""Estimation on groups: filters, their measurements, and how consistent they are."""

from ..simulation import Estimator as Estimator
from ..simulation import FullEstimator as FullEstimator
from ._consistency import Consistency as Consistency
from ._consistency import chi_squared_band as chi_squared_band
from ._consistency import nees as nees
from ._ekf import EKF as EKF
from ._filter import Filter as Filter
from ._innovations import Innovations as Innovations
from ._log import Log as Log
from ._result import EstimationResult as EstimationResult
from ._status import PredictStatus as PredictStatus
from ._status import UpdateStatus as UpdateStatus

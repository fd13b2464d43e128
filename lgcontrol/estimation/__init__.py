"""What an estimator is: the protocol that `lgcontrol.simulation` asks for. It brings no filters."""

from ._estimator import Estimator as Estimator
from ._estimator import FullEstimator as FullEstimator

"""What rooms above need of `lgcontrol.estimation` beyond what users type."""

from ._attitude import attitude_model as attitude_model
from ._consistency import Consistency as Consistency
from ._consistency import chi_squared_band as chi_squared_band
from ._consistency import nees as nees
from ._estimates import Estimates as Estimates
from ._factor_graph import GraphSolution as GraphSolution
from ._filter import Filter as Filter
from ._information import LogObservability as LogObservability
from ._innovations import Innovations as Innovations
from ._marginals import Marginals as Marginals
from ._noise import AllanDeviation as AllanDeviation
from ._noise import NoiseFit as NoiseFit
from ._preintegration import preintegrated as preintegrated

"""What rooms above need of `lgcontrol.estimation` beyond what users type."""

from ._attitude import attitude_model as attitude_model
from ._estimates import Estimates as Estimates
from ._factor_graph import GraphSolution as GraphSolution
from ._filter import Filter as Filter
from ._inertial import preintegrated as preintegrated
from ._innovations import Consistency as Consistency
from ._innovations import Innovations as Innovations
from ._innovations import chi_squared_band as chi_squared_band
from ._innovations import nees as nees
from ._noise import AllanDeviation as AllanDeviation
from ._noise import LogObservability as LogObservability
from ._noise import NoiseFit as NoiseFit
from ._normal_equations import Marginals as Marginals

"""What rooms above need of `lgcontrol.simulation` beyond what users type."""

from ._clock import Clock as Clock
from ._compiled_loop import raise_again as raise_again
from ._compiled_parts import CompiledFilter as CompiledFilter
from ._compiled_parts import FunctionLaw as FunctionLaw
from ._compiled_parts import KernelLaw as KernelLaw
from ._contract import FullEstimator as FullEstimator
from ._controllers import another as another
from ._logs import BoundedQuantity as BoundedQuantity
from ._logs import ControllerLog as ControllerLog
from ._logs import Measurements as Measurements
from ._logs import TaskError as TaskError
from ._perturbation import Robustness as Robustness
from ._run import SimulationSetup as SimulationSetup
from ._run import one_of as one_of
from ._simulate import carried_out as carried_out
from ._task import Verdict as Verdict
from ._variation import check_variations as check_variations
from ._variation import with_fields as with_fields

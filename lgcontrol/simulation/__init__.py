"""Closed loops: plant, controllers, sensors and disturbances, each at its own rate.

- Run: `simulate`, which gives a `SimulationResult` with a `RunStatus`; `SimulationError`.
- Run from many starts, in threads: `simulate_many`.
- Run in real time in the browser, with a goal dragged by hand: `live`.
- Several controllers at their own rates: `Cascade`.
- Disturb: `Kick`, `Pulse`, `HeldNoise`, `WhiteNoise`, `InputSignal`, a `Disturbance` of your own.
- Judge: `Task`, `Criterion`; `Vary` what differs from run to run; `robustness` against plants with
  `scaled_inertia`.
- A controller or an estimator of your own: the protocols `ControlLaw` and `Estimator`; a
  controller tells a `CallStatus`.
"""

from .. import _names
from ._contract import CallStatus as CallStatus
from ._contract import ControlLaw as ControlLaw
from ._contract import Disturbance as Disturbance
from ._contract import Estimator as Estimator
from ._contract import RunStatus as RunStatus
from ._controllers import Cascade as Cascade
from ._disturbances import HeldNoise as HeldNoise
from ._disturbances import InputSignal as InputSignal
from ._disturbances import Kick as Kick
from ._disturbances import Pulse as Pulse
from ._disturbances import WhiteNoise as WhiteNoise
from ._live import live as live
from ._loop import SimulationError as SimulationError
from ._many import simulate_many as simulate_many
from ._perturbation import robustness as robustness
from ._result import SimulationResult as SimulationResult
from ._scaled_plant import scaled_inertia as scaled_inertia
from ._simulate import simulate as simulate
from ._task import Criterion as Criterion
from ._task import Task as Task
from ._variation import Vary as Vary

_names.answer(__name__)

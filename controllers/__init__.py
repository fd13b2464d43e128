"""Feedback laws; ``controllers/designs`` puts them together with models and tasks.

- Any system: `MPC` (with `RealTime`, `SteadyDisturbance`), `LQR`, `TVLQR`, `PathFollowing`.
- Vehicles: `GeometricPD`, `ThrustVectorPD`.
- Arms: `GravityPD`, `ComputedTorque`, `Impedance`, `OperationalSpace`.
- Arms with springs at the joints: `ElasticPD`, `ElasticImpedance`, `ElasticStructurePreserving`,
  `FeedbackLinearization`, `FlatFeedforward`, `SpringTorqueControl`.
- A controller of a simpler model of the plant: `Adapted`.
- A law of your own: `Controller`, and `ElasticLaw` for arms with springs.
"""

from .. import _names
from ._adapted import Adapted as Adapted
from ._base import Controller as Controller
from ._elastic_law import ElasticLaw as ElasticLaw
from ._elastic_pd import ElasticImpedance as ElasticImpedance
from ._elastic_pd import ElasticPD as ElasticPD
from ._elastic_pd import ElasticStructurePreserving as ElasticStructurePreserving
from ._feedback_linearization import FeedbackLinearization as FeedbackLinearization
from ._feedback_linearization import FlatFeedforward as FlatFeedforward
from ._feedback_linearization import SpringTorqueControl as SpringTorqueControl
from ._geometric import GeometricPD as GeometricPD
from ._geometric import ThrustVectorPD as ThrustVectorPD
from ._lqr import LQR as LQR
from ._lqr import TVLQR as TVLQR
from ._mpc import MPC as MPC
from ._path_following import PathFollowing as PathFollowing
from ._real_time import RealTime as RealTime
from ._steady_disturbance import SteadyDisturbance as SteadyDisturbance
from ._task_space import Impedance as Impedance
from ._task_space import OperationalSpace as OperationalSpace
from ._tree_controller import ComputedTorque as ComputedTorque
from ._tree_controller import GravityPD as GravityPD

_names.answer(__name__)

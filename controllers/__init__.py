"""Feedback laws; ``controllers/designs`` puts them together with models and tasks."""

from ._adapted import Adapted as Adapted
from ._allocation import allocate as allocate
from ._base import ControlInfo as ControlInfo
from ._base import Controller as Controller
from ._computed_torque import ComputedTorque as ComputedTorque
from ._elastic_impedance import ElasticImpedance as ElasticImpedance
from ._elastic_law import ElasticLaw as ElasticLaw
from ._elastic_pd import ElasticPD as ElasticPD
from ._feedback_linearization import FeedbackLinearization as FeedbackLinearization
from ._flat_feedforward import FlatFeedforward as FlatFeedforward
from ._geometric import GeometricPD as GeometricPD
from ._gravity_pd import GravityPD as GravityPD
from ._impedance import Impedance as Impedance
from ._lqr import LQR as LQR
from ._lqr import TVLQR as TVLQR
from ._mpc import MPC as MPC
from ._mpc import MPCInfo as MPCInfo
from ._operational_space import OperationalSpace as OperationalSpace
from ._path_following import PathFollowing as PathFollowing
from ._spring_torque import SpringTorqueControl as SpringTorqueControl
from ._structure_preserving import ElasticStructurePreserving as ElasticStructurePreserving
from ._thrust_vector import ThrustVectorPD as ThrustVectorPD

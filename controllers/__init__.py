"""Feedback laws; ``controllers/designs`` puts them together with models and tasks."""

from ._adapted import Adapted as Adapted
from ._allocation import allocate as allocate
from ._base import ControlInfo as ControlInfo
from ._base import Controller as Controller
from ._computed_torque import ComputedTorque as ComputedTorque
from ._geometric import GeometricPD as GeometricPD
from ._gravity_pd import GravityPD as GravityPD
from ._impedance import Impedance as Impedance
from ._lqr import LQR as LQR
from ._lqr import TVLQR as TVLQR
from ._mpc import MPC as MPC
from ._mpc import MPCInfo as MPCInfo
from ._operational_space import OperationalSpace as OperationalSpace
from ._thrust_vector import ThrustVectorPD as ThrustVectorPD

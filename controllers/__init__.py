"""Feedback laws; ``controllers/designs`` puts them together with models and tasks."""

from ._allocation import allocate as allocate
from ._base import ControlInfo as ControlInfo
from ._base import Controller as Controller
from ._geometric import GeometricPD as GeometricPD
from ._lqr import LQR as LQR
from ._lqr import TVLQR as TVLQR
from ._mpc import MPC as MPC
from ._mpc import MPCInfo as MPCInfo
from ._thrust_vector import ThrustVectorPD as ThrustVectorPD

"""Systems on Lie groups: fields, steps, rollouts, linearization, trajectories."""

from ._augment import augment as augment
from ._check import check_system as check_system
from ._derivatives import field_derivatives as field_derivatives
from ._derivatives import step_derivatives as step_derivatives
from ._linearization import Linearization as Linearization
from ._linearization import TrajectoryLinearization as TrajectoryLinearization
from ._linearize import linearize as linearize
from ._nlsys import to_nlsys as to_nlsys
from ._signals import Input as Input
from ._signals import InputChoice as InputChoice
from ._signals import Parameter as Parameter
from ._signals import Role as Role
from ._signals import check_name as check_name
from ._subspaces import Controllability as Controllability
from ._subspaces import Mode as Mode
from ._subspaces import Observability as Observability
from ._subspaces import controllability as controllability
from ._subspaces import observability as observability
from ._system import System as System
from ._trajectory import Trajectory as Trajectory
from ._trajectory import TrajectoryPoint as TrajectoryPoint
from ._trim import trim as trim
from ._trim_point import TrimError as TrimError
from ._trim_point import TrimPoint as TrimPoint
from ._waypoints import WaypointMotion as WaypointMotion
from ._waypoints import Waypoints as Waypoints

"""Systems on Lie groups: fields, steps, rollouts, linearization, trajectories."""

from ._linearize import Linearization as Linearization
from ._linearize import TrajectoryLinearization as TrajectoryLinearization
from ._linearize import field_derivatives as field_derivatives
from ._linearize import linearize as linearize
from ._linearize import step_derivatives as step_derivatives
from ._signals import Input as Input
from ._signals import Parameter as Parameter
from ._system import System as System
from ._trajectory import Trajectory as Trajectory
from ._trajectory import TrajectoryPoint as TrajectoryPoint

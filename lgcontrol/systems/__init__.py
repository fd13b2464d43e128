"""Systems on Lie groups: fields, steps, rollouts, linearization, trajectories.

- Describe a system: `System`, `Input`, `Parameter`, `Quantity`; `check_system` tests your own.
- Describe what is measured: `Sensor`.
- Give a reference: `Trajectory`, `Waypoints`, `BSpline`, `ScrewMotion`, or a `SmoothReference` of
  your own; `ReferenceLike` is the type of everything that may stand for one.
- Equilibria and linearization: `TrimPoint` and `TrimError` of ``system.trim``; `Linearization`
  of ``system.linearize``; `is_group_affine`.
- Steps: `choose_method`, `stable_substeps`, `step_derivatives`.
- Other inputs: `with_accelerations`.
"""

from .. import _names
from ._check import check_system as check_system
from ._check import is_group_affine as is_group_affine
from ._input_rates import with_accelerations as with_accelerations
from ._linearize import Linearization as Linearization
from ._sensor import Sensor as Sensor
from ._signals import Input as Input
from ._signals import Parameter as Parameter
from ._signals import Quantity as Quantity
from ._smooth_reference import ReferenceLike as ReferenceLike
from ._smooth_reference import SmoothReference as SmoothReference
from ._stable_steps import choose_method as choose_method
from ._stable_steps import stable_substeps as stable_substeps
from ._steadiness import TrimPoint as TrimPoint
from ._step import step_derivatives as step_derivatives
from ._system import System as System
from ._trajectory import Trajectory as Trajectory
from ._trim import TrimError as TrimError
from ._waypoints import BSpline as BSpline
from ._waypoints import ScrewMotion as ScrewMotion
from ._waypoints import Waypoints as Waypoints

_names.answer(__name__)

"""What rooms above need of `lgcontrol.integrators` beyond what users type."""

from ._adaptive import StepControl as StepControl
from ._adaptive import decay_rate as decay_rate
from ._adaptive import embedded_step as embedded_step
from ._adaptive import error_matrix as error_matrix
from ._explicit import crouch_grossman as crouch_grossman
from ._implicit import ImplicitRungeKutta as ImplicitRungeKutta
from ._implicit import RosenbrockW as RosenbrockW
from ._index3 import Index3Method as Index3Method
from ._mechanical import LinearlyImplicitEuler as LinearlyImplicitEuler
from ._mechanical import SemiImplicitEuler as SemiImplicitEuler
from ._method import Trial as Trial
from ._method import combine as combine
from ._momentum_methods import MomentumMethod as MomentumMethod
from ._motion import Lifted as Lifted
from ._motion import LiftedMotion as LiftedMotion
from ._motion import Motion as Motion
from ._motion import newton_steps as newton_steps
from ._opened import opened as opened
from ._problem import Problem as Problem
from ._problem import Step as Step
from ._problem import nan_as_infinite as nan_as_infinite
from ._solution import Crossings as Crossings
from ._solution import IntegrationStatus as IntegrationStatus
from ._solution import Statistics as Statistics
from ._tableau import check_tableau as check_tableau
from ._tolerance import TOLERATED as TOLERATED

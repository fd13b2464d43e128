"""Optimal control problems on Lie groups and the solvers behind them.

- State a problem: `OptimalControlProblem` with `Bound`, `Residual`, `Cost`; `Rates`, `with_rates`
  for the rates of inputs; `Phase` and `PhasedProblem` for several phases; `PathTask` for paths.
- Keep out of obstacles: `keep_out` with `Sphere`, `Capsule`, `HalfSpace`, `Cone`.
- Solve: `InteriorPointSolver` with `Settings`, `NLPSolver`; `SOLVERS` by name. A solver of your own
  follows `Solver`, goes on from a `Plan`, whose parts `plan_layout` places (`PlanLayout`), and
  answers with an `OptimalSolution`: its `SolveStatus`, each `Iteration`, each `Violation`.
- Linear feedback: `lqr`, `tvlqr`, and `terminal_set`, in which it keeps all bounds.
- Time a given path: `retime`, `slowed`; a limit along it is a `PathRow`.
"""

from .. import _names
from . import _input_shapes as _input_shapes
from ._bounds import Bound as Bound
from ._obstacles import Capsule as Capsule
from ._obstacles import Cone as Cone
from ._obstacles import HalfSpace as HalfSpace
from ._obstacles import Sphere as Sphere
from ._obstacles import keep_out as keep_out
from ._outcome import Iteration as Iteration
from ._outcome import SolveStatus as SolveStatus
from ._outcome import Violation as Violation
from ._plan import Plan as Plan
from ._plan import PlanLayout as PlanLayout
from ._problem import OptimalControlProblem as OptimalControlProblem
from ._rates import Rates as Rates
from ._rates import with_rates as with_rates
from ._riccati import lqr as lqr
from ._riccati import tvlqr as tvlqr
from ._settings import Settings as Settings
from ._solution import OptimalSolution as OptimalSolution
from ._solutions import plan_layout as plan_layout
from ._solver import SOLVERS as SOLVERS
from ._solver import Solver as Solver
from ._terminal_set import terminal_set as terminal_set
from ._terms import Cost as Cost
from ._terms import Residual as Residual
from .accuracy import _accuracy as _accuracy
from .accuracy import _refine as _refine
from .kernel import _sensitivity as _sensitivity
from .kernel._planner import InteriorPointSolver as InteriorPointSolver
from .nlp._nlp_solver import NLPSolver as NLPSolver
from .paths._path_task import PathTask as PathTask
from .paths._retiming import PathRow as PathRow
from .paths._retiming import retime as retime
from .paths._retiming import slowed as slowed
from .phases._phase import Phase as Phase
from .phases._phases import PhasedProblem as PhasedProblem

_names.answer(__name__)

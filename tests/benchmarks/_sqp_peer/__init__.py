"""Sequential quadratic programming: a solver to compare with, which meets active bounds exactly.

Its QPs go to a back-end of the caller's choice. Importing it enters it as "sqp" in `SOLVERS`.
"""

from ._qp import QP_SOLVERS as QP_SOLVERS
from ._qp import QPSolver as QPSolver
from ._solver import SQPSolver as SQPSolver
from ._stage_qp import StageQP as StageQP
from ._stage_qp import StageQPSolution as StageQPSolution

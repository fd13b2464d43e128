"""Optimal control problems on Lie groups and the solvers behind them."""

from ._problem import SOLVERS as SOLVERS
from ._problem import Iteration as Iteration
from ._problem import OptimalControlProblem as OptimalControlProblem
from ._problem import OptimalSolution as OptimalSolution
from ._problem import Solver as Solver
from ._problem import SolveStatus as SolveStatus
from ._problem import Violation as Violation
from ._problem import make_solver as make_solver
from ._qp import QP_SOLVERS as QP_SOLVERS
from ._qp import QPSolver as QPSolver
from ._reference import moves as moves
from ._reference import points_of as points_of
from ._reference import sample_reference as sample_reference
from ._riccati import Regulator as Regulator
from ._riccati import TrajectoryRegulator as TrajectoryRegulator
from ._riccati import lqr as lqr
from ._riccati import tvlqr as tvlqr
from ._sqp import SQPSolver as SQPSolver
from ._stage_qp import StageQP as StageQP
from ._stage_qp import StageQPSolution as StageQPSolution
from ._statement import Bound as Bound
from ._statement import Residual as Residual
from ._statement import input_weight as input_weight
from ._statement import state_weight as state_weight
from ._transcription import Nodes as Nodes
from ._transcription import Setting as Setting

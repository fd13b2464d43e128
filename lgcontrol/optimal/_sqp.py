"""SQPSolver: sequential quadratic programming on the group, to convergence or one step a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..codegen import check_shape
from ..groups import check_element
from ._descent import FIRST_PRICE, Descent, Limits
from ._guess import make_guess
from ._optimality import gradient_size
from ._problem import OptimalControlProblem
from ._qp import QPSolver
from ._reference import sample_reference
from ._riccati import cost_to_go
from ._solution import Iteration, OptimalSolution, worst_violations
from ._transcription import Nodes, Setting, Transcription


class RealTimeStep(NamedTuple):
    """Result of one real-time iteration.

    Attributes
    ----------
    nodes : Nodes
        After the step; those given when the QP failed.
    status : str
        "solved", "infeasible" (hard bounds exceeded as little as possible) or "qp failed".
    cost : float
        Of the nodes before the step.
    message : str
    qp_time : float
        In s.
    """

    nodes: Nodes
    status: str
    cost: float
    message: str
    qp_time: float


class SQPSolver:
    """Solves one `OptimalControlProblem` for many starts, references and parameters.

    Each iteration linearizes about the nodes, solves a QP for tangent vectors and moves the nodes
    along the group. `solve` safeguards the steps by a line search on an ℓ₁ merit function and by
    Levenberg's damping; `step` takes one full step, for control in real time.

    Parameters
    ----------
    problem : OptimalControlProblem
    qp : str
        A back-end of `QP_SOLVERS`, or "auto" for the one that fits the problem's size.

    Attributes
    ----------
    is_prepared : bool
        Whether the functions are compiled, as far as they are to be.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.optimal import OptimalControlProblem
    >>> from lgcontrol.systems import Input, System
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)),
    ...     lambda t, x, u, p: ca.vertcat(x[2], u - ca.sin(x[1])),
    ...     inputs=[Input("torque", "N m", -0.5, 0.5)])
    >>> up = [-1.0, 0.0, 0.0]
    >>> solver = SQPSolver(OptimalControlProblem(
    ...     pendulum, 60, 0.1, Q={"angle": 1, "rate": 0.1}, R=0.01, reference=up))
    >>> solver.solve([1.0, 0.0, 0.0]).status
    'converged'
    """

    def __init__(self, problem: OptimalControlProblem, *, qp: str = "auto") -> None:
        self.problem = problem
        self.qp = QPSolver(qp)
        self.transcription = Transcription(problem)
        self.is_prepared = False
        self._terminal: tuple[Any, np.ndarray, np.ndarray] | None = None

    def prepare(self) -> SQPSolver:
        """Compile the problem's functions to machine code, and return the solver.

        Takes seconds the first time, a tenth of a millisecond an operation, and milliseconds when
        the code is found on disk, as it is for other weights, step lengths and horizons.
        Evaluating and differentiating the problem is then about ten times quicker. Nothing is
        compiled where `lgcontrol.codegen.set_compile_policy` is "off".

        Returns
        -------
        SQPSolver
        """
        self.transcription.prepare()
        self.is_prepared = True
        return self

    # -- what is given -----------------------------------------------------------------------------

    def setting(self, times: np.ndarray, reference: Any = None, p: Any = None) -> Setting:
        """Reference, parameters and terminal weight for the times of the nodes.

        Parameters
        ----------
        times : ndarray, shape (N + 1,)
        reference : optional
            That of the problem if left out.
        p : array_like, optional
            Parameters of the system and of the problem; nominal if left out.

        Returns
        -------
        Setting
        """
        problem = self.problem
        reference = problem.reference if reference is None else reference
        nominal = problem.nominal_parameters
        p = nominal if p is None else check_shape("p", p, nominal.shape)
        own = p[: problem.system.n_parameters]
        x_ref, u_ref = sample_reference(problem.system, reference, times, own)
        weight = self._terminal_weight(reference, x_ref[-1], u_ref[-1], times[-1], p)
        return Setting(x_ref, u_ref, p, weight)

    def _terminal_weight(
        self, reference: Any, x_ref: np.ndarray, u_ref: np.ndarray, t: float, p: np.ndarray
    ) -> np.ndarray:
        """That of the problem; a Riccati solution is kept until there is another reference."""
        if not isinstance(self.problem.terminal, str):
            return self.problem.terminal
        end = np.concatenate([x_ref, u_ref, p])
        kept = self._terminal
        if kept is None or not (kept[0] is reference or np.array_equal(kept[1], end)):
            weight = cost_to_go(self.problem, x_ref, u_ref, t, p)
            self._terminal = kept = (reference, end, weight)
        return kept[2]

    # -- one step ----------------------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore")  # a diverged guess: the QP is refused then
    def step(self, x0: np.ndarray, nodes: Nodes, setting: Setting) -> RealTimeStep:
        """One full Gauss-Newton step from the nodes towards the problem that starts at x0.

        Parameters
        ----------
        x0 : ndarray, shape (nq,)
        nodes : Nodes
        setting : Setting

        Returns
        -------
        RealTimeStep
        """
        transcription = self.transcription
        values, qp = transcription.linearize(nodes, setting, x0)
        cost = values.cost + transcription.penalty(values, qp.soft)
        result = self.qp.solve(qp)
        status, message, spent = "solved", "", result.time
        if not result.solved and np.isinf(qp.soft).any():
            result = self.qp.solve(qp.softened(FIRST_PRICE * gradient_size(qp)))
            spent += result.time
            excess = np.where(np.isinf(qp.soft), qp.excess(result.x, result.u), 0.0)
            worst = worst_violations(transcription.rows.names, excess, nodes.t)
            status, message = "infeasible", "; ".join(map(str, worst))
        if not result.solved:
            return RealTimeStep(nodes, "qp failed", cost, "the QP has no finite solution", spent)
        return RealTimeStep(
            transcription.move(nodes, result.x, result.u), status, cost, message, spent
        )

    # -- to convergence ----------------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore")  # a diverged guess: the QP is refused then
    def solve(
        self,
        x0: Any,
        *,
        guess: Any = None,
        reference: Any = None,
        t0: float = 0.0,
        p: Any = None,
        tolerance: float = 1e-6,
        max_iterations: int = 200,
        time_limit: float = np.inf,
        callback: Callable[[Iteration], bool | None] | None = None,
    ) -> OptimalSolution:
        """Iterate to convergence; never raises because the problem is hard.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            Start.
        guess : Trajectory, OptimalSolution or controller, optional
            A controller is followed from x0. Without a guess the solve starts from the cheapest of
            some: the motion under the inputs of the reference, those with linear-quadratic
            regulators about it, and a state that stays at x0. Vehicles that start far off, upside
            down for example, converge sooner from a controller made for them.
        reference : optional
            Instead of the problem's: a constant state, a TrimPoint or a Trajectory.
        t0 : float
            Time of the start, s.
        p : array_like, optional
            Parameters of the system and of the problem.
        tolerance : float
            Largest optimality residual that counts as converged.
        max_iterations : int
        time_limit : float
            In s.
        callback : callable, optional
            Called with every `Iteration`; the solve stops when it returns True.

        Returns
        -------
        OptimalSolution
        """
        x0 = check_element("x0", x0, self.problem.system.state, tolerance=np.inf)
        times = self.problem.times(float(check_shape("t0", t0, ())))
        reference = self.problem.reference if reference is None else reference
        setting = self.setting(times, reference, p)
        nodes = make_guess(self.transcription, guess, x0, times, setting, reference)
        nodes.x[0] = x0
        limits = Limits(tolerance, max_iterations, time_limit, callback)
        descent = Descent(self.transcription, self.qp, x0, nodes, setting, limits)
        return descent.finish(descent.iterate())

"""SQPSolver: sequential quadratic programming on the group, to convergence or one step a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..codegen import check_shape
from ..systems import Trajectory
from ._guess import make_guess
from ._line_search import Merit, search
from ._optimality import gradient_size, optimality_residual
from ._problem import OptimalControlProblem
from ._qp import QPSolver
from ._reference import sample_reference
from ._solution import Iteration, OptimalSolution, Status, Violation
from ._stage_qp import StageQP, StageQPSolution
from ._transcription import Nodes, Setting, Transcription, Values

# Hard bounds that no step can keep are given prices, raised from the first to the last of these
# (times the size of the gradient) before the problem counts as infeasible.
FIRST_PRICE, LAST_PRICE = 1e2, 1e5
# Levenberg's weight: where it starts once a step fails, and where a solve gives up.
FIRST_DAMPING, LAST_DAMPING = 1e-3, 1e8


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
        self._terminal: tuple[Any, np.ndarray] | None = None

    def compiled(self) -> SQPSolver:
        """Compile the problem's functions to machine code, and return the solver.

        Takes seconds the first time, milliseconds when the code is found on disk; evaluating and
        differentiating the problem is then about ten times quicker.

        Returns
        -------
        SQPSolver
        """
        self.transcription.compiled()
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
        return Setting(x_ref, u_ref, p, self._terminal_weight(reference, x_ref, u_ref, times, p))

    def _terminal_weight(self, reference, x_ref, u_ref, times, p) -> np.ndarray:
        if not isinstance(self.problem.terminal, str):
            return self.problem.terminal
        if self._terminal is None or self._terminal[0] is not reference:
            from ._riccati import cost_to_go

            weight = cost_to_go(self.problem, x_ref[-1], u_ref[-1], times[-1], p)
            self._terminal = (reference, weight)
        return self._terminal[1]

    # -- one step ----------------------------------------------------------------------------------

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
            worst = self._violations(
                np.where(np.isinf(qp.soft), qp.excess(result.x, result.u), 0), nodes.t
            )
            status, message = "infeasible", "; ".join(map(str, worst))
        if not result.solved:
            return RealTimeStep(nodes, "qp failed", cost, "the QP has no finite solution", spent)
        return RealTimeStep(
            transcription.move(nodes, result.x, result.u), status, cost, message, spent
        )

    # -- to convergence ----------------------------------------------------------------------------

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
            A controller is followed from x0. Without a guess the state stays at x0 under the
            inputs of the reference.
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
        group = self.problem.system.state
        x0 = group.normalize(check_shape("x0", x0, (group.nq,)))
        times = self.problem.times(float(check_shape("t0", t0, ())))
        reference = self.problem.reference if reference is None else reference
        setting = self.setting(times, reference, p)
        nodes = make_guess(self.problem, guess, x0, times, setting, reference)
        nodes.x[0] = x0
        run = _Run(self, x0, nodes, setting, tolerance, max_iterations, time_limit, callback)
        return run.finish(run.iterate())

    def _violations(self, excess: np.ndarray, times: np.ndarray) -> tuple[Violation, ...]:
        """Rows that exceed their limits, the worst first."""
        names = self.transcription.rows.names
        found = [
            Violation(names[i], float(times[k]), int(k), float(excess[k, i]))
            for i, k in enumerate(excess.argmax(axis=0) if excess.size else ())
            if excess[k, i] > 0
        ]
        return tuple(sorted(found, key=lambda entry: -entry.amount))


class _Run:
    """State of one solve."""

    def __init__(
        self, solver, x0, nodes, setting, tolerance, max_iterations, time_limit, callback
    ) -> None:
        self.solver, self.x0, self.nodes, self.setting = solver, x0, nodes, setting
        self.tolerance, self.max_iterations = tolerance, max_iterations
        self.time_limit, self.callback = time_limit, callback
        self.started = time.perf_counter()
        self.qp_time = 0.0
        self.model_time = 0.0
        self.prices: StageQPSolution | None = None
        self.price = np.inf  # of hard bounds; finite once they cannot all be kept
        self.step_length, self.damping = 1.0, 0.0
        self.weight = 0.0  # on violations in the merit
        self.log: list[Iteration] = []
        self.values: Values
        self.qp: StageQP

    def iterate(self) -> Status:
        """Step until something ends the solve."""
        self._linearize()
        while True:
            number = len(self.log)
            self.log.append(self._report(number))
            stop = self.callback is not None and self.callback(self.log[-1])
            if self.log[-1].kkt <= self.tolerance:
                return "converged"
            if stop:
                return "stopped"
            if number >= self.max_iterations:
                return "iteration limit"
            if self.log[-1].time > self.time_limit:
                return "time limit"
            end = self._advance()
            if end is not None:
                return end
            self._linearize()

    def _advance(self) -> Status | None:
        """One step that lowers the merit; otherwise why there is none, or no need for one."""
        while True:
            qp = self.qp.softened(self.price) if np.isfinite(self.price) else self.qp
            result = self.solver.qp.solve(qp.damped(self.damping))
            self.qp_time += result.time
            if not result.solved:
                if np.isinf(self.price) and self.qp.active[:, np.isinf(self.qp.soft)].any():
                    self.price = FIRST_PRICE * gradient_size(self.qp)
                elif not self._damp():
                    return self._why_stuck("qp failed")
                continue
            # The new multipliers may show that there is nothing left to do.
            kkt = optimality_residual(self.qp, result)
            if kkt <= self.tolerance:
                self.log[-1] = self.log[-1]._replace(kkt=kkt)
                return "converged"
            if np.isfinite(self.price) and optimality_residual(qp, result) <= self.tolerance:
                if not self._raise_price():
                    return self._why_stuck("stalled")
                continue
            began = time.perf_counter()
            merit = Merit(self.solver.transcription, self.setting, qp, self.values)
            found = search(merit, self.nodes, result, self.weight)
            self.model_time += time.perf_counter() - began
            if found is not None:
                self.nodes, self.step_length, self.weight, agreement = found
                self.prices = result
                self._adapt(agreement)
                return None
            if not self._damp():
                return self._why_stuck("stalled")

    def _raise_price(self) -> bool:
        self.price *= 10
        return self.price <= LAST_PRICE * gradient_size(self.qp)

    def _why_stuck(self, otherwise: Status) -> Status:
        return "infeasible" if self._hard_excess().max(initial=0.0) > self.tolerance else otherwise

    def _adapt(self, agreement: float) -> None:
        """Damp more where the QP promised too much: Gauss-Newton leaves out some curvature."""
        if agreement < 0.25:
            self.damping = max(FIRST_DAMPING, 4 * self.damping)
        elif agreement > 0.75:
            self.damping = 0.0 if self.damping <= FIRST_DAMPING else self.damping / 4

    def _damp(self) -> bool:
        self.damping = max(FIRST_DAMPING, 10 * self.damping)
        return self.damping <= LAST_DAMPING

    def _linearize(self) -> None:
        began = time.perf_counter()
        self.values, self.qp = self.solver.transcription.linearize(
            self.nodes, self.setting, self.x0
        )
        self.model_time += time.perf_counter() - began

    def _hard_excess(self) -> np.ndarray:
        return np.where(np.isinf(self.qp.soft), self.solver.transcription.excess(self.values), 0.0)

    def _report(self, number: int) -> Iteration:
        cost = self.values.cost + self.solver.transcription.penalty(self.values, self.qp.soft)
        return Iteration(
            number,
            cost,
            float(np.abs(self.values.gaps).max(initial=0.0)),
            float(self._hard_excess().max(initial=0.0)),
            np.inf if self.prices is None else optimality_residual(self.qp, self.prices),
            self.step_length,
            self.damping,
            time.perf_counter() - self.started,
        )

    def finish(self, status: Status) -> OptimalSolution:
        """Put the result together."""
        problem, last = self.solver.problem, self.log[-1]
        group, nodes = problem.system.state, self.nodes
        excess = self._hard_excess()
        violations = self.solver._violations(
            np.where(excess > self.tolerance, excess, 0.0), nodes.t
        )
        message = {
            "converged": f"optimal to {last.kkt:.1e} after {last.number} iterations",
            "iteration limit": f"residual {last.kkt:.1e} after {last.number} iterations",
            "time limit": f"residual {last.kkt:.1e} after {last.time:.3g} s",
            "infeasible": "no step reduces the violation of the hard bounds",
            "stalled": f"no step lowers the cost any further: residual {last.kkt:.1e}",
            "qp failed": f"the QP solver {self.solver.qp.name!r} found no step",
            "stopped": "stopped by the callback",
        }[status]
        message = "; ".join([message, *map(str, violations)])
        times = {
            "total": time.perf_counter() - self.started,
            "model": self.model_time,
            "qp": self.qp_time,
        }
        return OptimalSolution(
            status=status,
            message=message,
            trajectory=Trajectory(group, nodes.t, nodes.x, nodes.u),
            reference=Trajectory(group, nodes.t, self.setting.x_ref, self.setting.u_ref),
            cost=last.cost,
            kkt=last.kkt,
            gap=last.gap,
            violations=violations,
            iterations=tuple(self.log),
            times=times,
            problem=problem,
        )

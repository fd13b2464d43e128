"""SQPSolver: sequential quadratic programming on the group, to convergence or one step a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import Progress, check_shape, interruptible
from lgcontrol.optimal._given import Given
from lgcontrol.optimal._guess import make_guess, moved_on
from lgcontrol.optimal._outcome import (
    ACCEPTABLE_RESIDUAL,
    OTHER_START,
    Iteration,
    SolveStatus,
    Violation,
    sentence,
    worst_violations,
)
from lgcontrol.optimal._plan import Plan, PlanLayout
from lgcontrol.optimal._problem import OptimalControlProblem
from lgcontrol.optimal._reference import ReferenceSamples
from lgcontrol.optimal._solution import OptimalSolution
from lgcontrol.optimal._solutions import judged, nodes_of, plan_layout, solution_at
from lgcontrol.optimal._solver import SOLVERS, GuessLike
from lgcontrol.optimal._transcription import Nodes, Setting, Transcription, Values
from lgcontrol.systems import ReferenceLike
from lgcontrol.systems._internal import check_state, on_constraints

from ._qp import Backend, QPSolver
from ._stage_qp import StageQP, StageQPSolution, gradient_size, optimality_residual

SUFFICIENT_DECREASE = 1e-4
SMALLEST_STEP = 2.0**-12
# A weight on violations exceeds what the descent condition asks for by this share.
SAFETY = 0.5
# Rounding in a sum over the horizon: differences below this share of the merit say nothing.
ROUNDING = 1e-14
# Hard bounds that no step can keep are given prices, raised from the first to the last of these
# (times the size of the gradient) before the problem counts as infeasible.
FIRST_PRICE, LAST_PRICE = 1e2, 1e5
# Levenberg's weight: where it starts once a step fails, and where a solve gives up.
FIRST_DAMPING, LAST_DAMPING = 1e-3, 1e8
# A solve has stalled when in so many iterations neither the residual nor the cost fell to these
# shares of what they were: curvature that Gauss-Newton leaves out allows tiny steps only.
PATIENCE, LEAST_PROGRESS = 40, 0.7


class SQPSolver:
    """Solves one `OptimalControlProblem` for many starts, references and parameters.

    Each iteration linearizes about the nodes, solves a QP for tangent vectors and moves the nodes
    along the group. `solve` safeguards the steps by a line search on an ℓ₁ merit function and by
    Levenberg's damping; `step` takes full steps, for control in real time.

    Parameters
    ----------
    problem : OptimalControlProblem, optional
        Without it the solver stands for its settings: ``MPC(…, solver=SQPSolver(qp="daqp"))``.
    qp : str or callable
        A back-end of `QP_SOLVERS`, "auto" for the one that fits the problem's size, or your own,
        ``StageQP → StageQPSolution``; see `QPSolver`.

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
    >>> print(solver.solve([1.0, 0.0, 0.0]).status)
    converged
    """

    has_feedback = has_export = has_loop = False

    def __init__(
        self, problem: OptimalControlProblem | None = None, *, qp: str | Backend = "auto"
    ) -> None:
        self.qp, self._backend = QPSolver(qp), qp
        self.is_prepared = False
        self.plan: Plan | None = None
        self._transcription: Transcription | None = None
        if problem is not None:
            if len(problem.free_start):
                raise ValueError(
                    "SQPSolver plans from a start that is given; solvers that find a free one are "
                    "'interior_point', 'ipopt' and 'fatrop'"
                )
            self._transcription, self._given = Transcription(problem), Given(problem)

    def __repr__(self) -> str:
        """Back-end, and the system of its problem."""
        of = "" if self._transcription is None else f"{self.problem.system.name!r}, "
        return f"SQPSolver({of}qp={self.qp.name!r})"

    @property
    def transcription(self) -> Transcription:
        """Functions of the problem."""
        if self._transcription is None:
            raise ValueError(f"{self!r} has no problem yet: SQPSolver(problem, …)")
        return self._transcription

    @property
    def problem(self) -> OptimalControlProblem:
        """What is solved."""
        return self.transcription.problem

    @property
    def plan_layout(self) -> PlanLayout:
        """Where the parts of a plan are."""
        return plan_layout(self.problem)

    def for_problem(self, problem: OptimalControlProblem) -> SQPSolver:
        """A solver with the same settings for a problem."""
        return SQPSolver(problem, qp=self._backend)

    @interruptible
    def prepare(self, *, wait: bool = True) -> SQPSolver:
        """Compile the problem's functions to machine code, and return the solver.

        Takes seconds the first time, a tenth of a millisecond an operation, and milliseconds when
        the code is found on disk, as it is for other weights, step lengths and horizons.
        Evaluating and differentiating the problem is then about ten times quicker. Nothing is
        compiled where `lgcontrol.codegen.set_compile_policy` is "off".

        Parameters
        ----------
        wait : bool
            It always waits.

        Returns
        -------
        SQPSolver
        """
        self.transcription.prepare()
        self.is_prepared = True
        return self

    def reset(self) -> None:
        """Forget the plan; the next solve is as the first."""
        self.plan = None
        self.qp.reset()

    def feedback(self, plan: Plan) -> np.ndarray:
        """Refused: nothing here tells the derivative of a plan.

        Raises
        ------
        NotImplementedError
            The interior point has the feedback of its plans.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no feedback of plans: solver='interior_point' has"
        )

    def export_c(self, folder: str | Path, **options: Any) -> Path:
        """Refused: QP back-ends are libraries of their own.

        Raises
        ------
        NotImplementedError
            SQPSolver has no C99 export; the interior point has.
        """
        raise NotImplementedError(
            "SQPSolver does not export C99, its QP back-ends are libraries of their own: "
            "solver='interior_point' does"
        )

    @np.errstate(over="ignore", invalid="ignore")  # a diverged guess: the QP is refused then
    def step(
        self,
        x0: ArrayLike,
        *,
        plan: Plan | None = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        iterations: int = 1,
        time_limit: float = np.inf,
    ) -> OptimalSolution:
        """Full Gauss-Newton steps from a plan, shifted to t0.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            An element of the group.
        plan : Plan, optional
            Of an earlier solve or step; the last one of this solver if left out.
        reference, t0, p
            As for `solve`.
        iterations : int
        time_limit : float
            In s, looked at after every step; one is taken in any case.

        Returns
        -------
        OptimalSolution
            "iteration limit" where steps were taken, "time limit" where more were due;
            "infeasible" where hard bounds are exceeded, as little as possible, by the linear model;
            "failed" where there is no step: then with what was found last.

        Raises
        ------
        ValueError
            If there is no plan yet, or it belongs to another problem.
        """
        plan = self.plan if plan is None else plan
        if plan is None:
            raise ValueError("there is nothing to go on from: solve first")
        last = nodes_of(self.problem, plan)
        started, problem, transcription = time.perf_counter(), self.problem, self.transcription
        times = problem.times(t0)
        setting = self._given.setting(times, reference, p)
        x0 = np.asarray(x0, dtype=np.float64)
        nodes = moved_on(problem, last, times, setting, x0)
        status, message, spent = SolveStatus.ITERATION_LIMIT, "", 0.0
        log: list[Iteration] = []
        violations: tuple[Violation, ...] = ()
        for number in range(1, iterations + 1):
            values, qp = StageQP.about(transcription, nodes, setting, x0)
            cost = values.cost + _penalty(transcription, values, qp)
            result, violations = self.qp.solve(qp), ()
            spent += result.time
            if not result.solved and np.isinf(qp.soft).any():
                result = self.qp.solve(qp.softened(FIRST_PRICE * gradient_size(qp)))
                spent += result.time
                if result.solved:
                    excess = qp.excess(result.x, result.u)
                    violations = worst_violations(transcription.rows, excess, nodes.t)
            gap = float(np.abs(values.gaps).max(initial=0.0))
            amount = max((entry.amount for entry in violations), default=0.0)
            elapsed = time.perf_counter() - started
            log.append(Iteration(number, cost, gap, amount, np.nan, 1.0, 0.0, elapsed))
            if not result.solved:
                status = SolveStatus.FAILED
                message = (
                    transcription.rows.not_finite(values.rows) or "the QP has no finite solution"
                )
                break
            nodes = transcription.move(nodes, result.x, result.u, setting)
            status = SolveStatus.INFEASIBLE if violations else SolveStatus.ITERATION_LIMIT
            message = "; ".join(map(str, violations))
            spent_all = time.perf_counter() - started
            if number < iterations and spent_all > time_limit and not violations:
                status = SolveStatus.TIME_LIMIT
                message = f"{number} steps after {spent_all:.3g} s, more were due"
            if spent_all > time_limit:
                break
        total = time.perf_counter() - started
        defect = float(np.abs(transcription.values(nodes, setting).gaps).max(initial=0.0))
        solution = solution_at(
            problem, nodes, setting, times, log[-1]._replace(defect=defect),
            status=status, message=message, violations=violations, iterations=tuple(log),
            times={"total": total, "model": total - spent, "qp": spent},
        )  # fmt: skip
        self.plan = solution.plan
        return judged(solution, setting)

    @np.errstate(over="ignore", invalid="ignore")  # a diverged guess: the QP is refused then
    @named_options(own="guess")
    def solve(
        self,
        x0: ArrayLike,
        *,
        guess: GuessLike = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 200,
        time_limit: float = np.inf,
        callback: Callable[[Iteration], bool | None] | None = None,
        for_steps: bool = False,
    ) -> OptimalSolution:
        """Iterate to convergence; never raises because the problem is hard.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            Start.
        guess : Trajectory, OptimalSolution, controller or str, optional
            As of `InteriorPointSolver.solve`. Vehicles that start far off, upside down for example,
            converge sooner from a controller or a policy made for them.
        reference : optional
            Instead of the problem's: a constant state, a TrimPoint or a Trajectory.
        t0 : float
            Time of the start, s.
        p : mapping or array_like, optional
            Parameters of the system and of the problem, by name or all of them.
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
        x0 = check_state(self.problem.system, "x0", x0)
        times = self.problem.times(float(check_shape("t0", t0, ())))
        reference = self.problem.reference if reference is None else reference
        setting = self._given.setting(times, reference, p)
        system = self.problem.system
        x0 = on_constraints(system, "x0", x0, setting.p[: system.n_parameters])
        nodes = make_guess(self.transcription, guess, x0, times, setting, reference)
        nodes.x[0] = x0
        limits = Limits(tolerance, max_iterations, time_limit, callback)
        descent = Descent(self.transcription, self.qp, x0, nodes, setting, limits)
        solution = descent.finish(descent.iterate())
        self.plan = solution.plan
        return solution


SOLVERS["sqp"] = SQPSolver


class Limits(NamedTuple):
    """What ends a solve; see `SQPSolver.solve`.

    Attributes
    ----------
    tolerance : float
    max_iterations : int
    time_limit : float
        In s.
    callback : callable or None
    """

    tolerance: float
    max_iterations: int
    time_limit: float
    callback: Callable[[Iteration], bool | None] | None


class Descent:
    """State of one solve."""

    def __init__(
        self,
        transcription: Transcription,
        qp_solver: QPSolver,
        x0: np.ndarray,
        nodes: Nodes,
        setting: Setting,
        limits: Limits,
    ) -> None:
        self.transcription, self.qp_solver = transcription, qp_solver
        self.x0, self.nodes, self.setting, self.limits = x0, nodes, setting, limits
        self.started = time.perf_counter()
        self.progress = Progress(f"plan of {transcription.problem.system.name}")
        self.qp_time = 0.0
        self.model_time = 0.0
        self.prices: StageQPSolution | None = None
        self.price = np.inf  # of hard bounds; finite once they cannot all be kept
        self.step_length, self.damping = 1.0, 0.0
        self.weight = 0.0  # on violations in the merit
        self.log: list[Iteration] = []
        self.values: Values
        self.qp: StageQP

    def iterate(self) -> SolveStatus:
        """Step until something ends the solve."""
        self._linearize()
        while True:
            number = len(self.log)
            self.log.append(self._report(number))
            kkt = self.log[-1].kkt
            self.progress.tell(lambda k=number, kkt=kkt: f"{k} iterations, residual {kkt:.1e}")
            stop = self.limits.callback is not None and self.limits.callback(self.log[-1])
            if self.transcription.rows.not_finite(self.values.rows):
                return SolveStatus.FAILED
            if self.log[-1].kkt <= self.limits.tolerance:
                return SolveStatus.CONVERGED
            if stop:
                return SolveStatus.STOPPED
            if self._crawls():
                return self._why_stuck(SolveStatus.STALLED)
            if number >= self.limits.max_iterations:
                return SolveStatus.ITERATION_LIMIT
            if self.log[-1].time > self.limits.time_limit:
                return SolveStatus.TIME_LIMIT
            end = self._advance()
            if end is not None:
                return end
            self._linearize()

    def _advance(self) -> SolveStatus | None:
        """One step that lowers the merit; otherwise why there is none, or no need for one."""
        while True:
            qp = self.qp.softened(self.price) if np.isfinite(self.price) else self.qp
            result = self.qp_solver.solve(qp.damped(self.damping))
            self.qp_time += result.time
            if not result.solved:
                if np.isinf(self.price) and self.qp.active[:, np.isinf(self.qp.soft)].any():
                    self.price = FIRST_PRICE * gradient_size(self.qp)
                elif not self._damp():
                    return self._why_stuck(SolveStatus.FAILED)
                continue
            # The new multipliers may show that there is nothing left to do.
            kkt = optimality_residual(self.qp, result)
            if kkt <= self.limits.tolerance:
                self.log[-1] = self.log[-1]._replace(kkt=kkt)
                return SolveStatus.CONVERGED
            if np.isfinite(self.price) and optimality_residual(qp, result) <= self.limits.tolerance:
                if not self._raise_price():
                    return self._why_stuck(SolveStatus.STALLED)
                continue
            began = time.perf_counter()
            merit = Merit(self.transcription, self.setting, qp, self.values)
            found = search(merit, self.nodes, result, self.weight)
            self.model_time += time.perf_counter() - began
            if found is not None:
                self.nodes, self.step_length, self.weight, agreement = found
                self.prices = result
                self._adapt(agreement)
                return None
            if not self._damp():
                return self._why_stuck(SolveStatus.STALLED)

    def _raise_price(self) -> bool:
        self.price *= 10
        return self.price <= LAST_PRICE * gradient_size(self.qp)

    def _why_stuck(self, otherwise: SolveStatus) -> SolveStatus:
        excess = self._hard_excess().max(initial=0.0)
        if self.log[-1].kkt <= ACCEPTABLE_RESIDUAL and excess <= ACCEPTABLE_RESIDUAL:
            return SolveStatus.ACCEPTABLE
        return SolveStatus.INFEASIBLE if excess > self.limits.tolerance else otherwise

    def _crawls(self) -> bool:
        """Whether many iterations of damped steps have led nowhere."""
        if len(self.log) <= 2 * PATIENCE:
            return False
        before, recent = self.log[-PATIENCE - 1], self.log[-PATIENCE:]
        residual = min(entry.kkt for entry in self.log[:-PATIENCE])
        return (
            min(entry.regularization for entry in recent) > FIRST_DAMPING
            and min(entry.kkt for entry in recent) > LEAST_PROGRESS * residual
            and recent[-1].cost > LEAST_PROGRESS * before.cost
        )

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
        given = self.transcription, self.nodes, self.setting, self.x0
        self.values, self.qp = StageQP.about(*given)
        self.model_time += time.perf_counter() - began

    def _hard_excess(self) -> np.ndarray:
        return np.where(
            np.isinf(self.qp.soft), self.transcription.rows.excess(self.values.rows), 0.0
        )

    def _report(self, number: int) -> Iteration:
        cost = self.values.cost + _penalty(self.transcription, self.values, self.qp)
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

    def finish(self, status: SolveStatus) -> OptimalSolution:
        """Put the result together."""
        last, nodes, tolerance = self.log[-1], self.nodes, self.limits.tolerance
        violations = worst_violations(
            self.transcription.rows, self._hard_excess(), nodes.t, tolerance
        )
        message = sentence(
            status, last, tolerance,
            stalled="steps hardly lower the cost any further",
            failed=self.transcription.rows.not_finite(self.values.rows)
            or f"the QP solver {self.qp_solver.name!r} found no step",
        )  # fmt: skip
        is_long = status is SolveStatus.ITERATION_LIMIT and last.number >= PATIENCE
        if is_long or status is SolveStatus.STALLED:
            message = f"{message}; {OTHER_START}"
        message = "; ".join([message, *map(str, violations)])
        times = {
            "total": time.perf_counter() - self.started,
            "model": self.model_time,
            "qp": self.qp_time,
        }
        solution = solution_at(
            self.transcription.problem, nodes, self.setting, nodes.t, last,
            status=status, message=message, violations=violations, iterations=tuple(self.log),
            times=times,
        )  # fmt: skip
        return judged(solution, self.setting)


class Merit:
    """Merit of nodes about one linearization.

    Parameters
    ----------
    transcription : Transcription
    setting : Setting
    qp : StageQP
        Its `soft` says which rows have a price.
    values : Values
        Of the nodes the QP is built about.
    """

    def __init__(
        self, transcription: Transcription, setting: Setting, qp: StageQP, values: Values
    ) -> None:
        self.transcription, self.setting, self.qp = transcription, setting, qp
        self.cost, self.violation = self._parts(values)

    def _parts(self, values: Values) -> tuple[float, float]:
        """Cost with prices, and the sum of what must vanish."""
        priced = values.cost + _penalty(self.transcription, values, self.qp)
        hard = self.transcription.rows.excess(values.rows)[:, np.isinf(self.qp.soft)]
        return priced, float(np.abs(values.gaps).sum() + hard.sum())

    def at(self, nodes: Nodes) -> tuple[float, float]:
        """Cost with prices and violation of nodes."""
        return self._parts(self.transcription.values(nodes, self.setting))


class MeritStep(NamedTuple):
    """A step that lowers the merit enough.

    Attributes
    ----------
    nodes : Nodes
    length : float
        Share of the direction.
    weight : float
        On violations.
    agreement : float
        Decrease of the merit over what the QP promised for the full direction.
    """

    nodes: Nodes
    length: float
    weight: float
    agreement: float


def search(
    merit: Merit, nodes: Nodes, direction: StageQPSolution, weight: float = 0.0
) -> MeritStep | None:
    """Longest halved step that lowers the merit enough; None if there is none.

    Parameters
    ----------
    merit : Merit
    nodes : Nodes
        About which the QP was built.
    direction : StageQPSolution
    weight : float
        Least weight on violations. It is raised to where the direction descends (Nocedal and Wright
        2006, equation 18.36) and must not fall during a solve, or the merit would go in circles.

    Returns
    -------
    MeritStep or None
    """
    qp = merit.qp
    now = qp.cost(np.zeros_like(direction.x), np.zeros_like(direction.u))
    model = qp.cost(direction.x, direction.u) - now
    if merit.violation > 0:
        weight = max(weight, model / ((1 - SAFETY) * merit.violation))
    promised = model - weight * merit.violation
    slope = promised - _curvature(qp, direction)
    if not slope < 0:
        return None
    start = merit.cost + weight * merit.violation
    length = 1.0
    while length >= SMALLEST_STEP:
        trial = merit.transcription.move(
            nodes, length * direction.x, length * direction.u, merit.setting
        )
        cost, violation = merit.at(trial)
        change = cost + weight * violation - start
        if change <= SUFFICIENT_DECREASE * length * slope + ROUNDING * abs(start):
            return MeritStep(trial, length, weight, change / promised if promised < 0 else 0.0)
        length /= 2
    return None


def _curvature(qp: StageQP, direction: StageQPSolution) -> float:
    """Half the second-order term of the cost along the direction."""
    x, u = direction.x, direction.u
    return 0.5 * float(
        np.einsum("ki,kij,kj", x, qp.Q, x)
        + np.einsum("ki,kij,kj", u, qp.R, u)
        + 2 * np.einsum("ki,kij,kj", u, qp.S, x[:-1])
    )


def _penalty(transcription: Transcription, values: Values, qp: StageQP) -> float:
    """Penalty of soft rows: a QP has their weights for a step, a transcription per s."""
    return transcription.rows.penalty(values.rows, qp.soft / transcription.problem.dt)

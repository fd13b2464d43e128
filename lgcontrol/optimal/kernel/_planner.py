"""InteriorPointSolver: the planning kernel by the contract of solvers."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, wraps
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ...codegen import named_options
from ...codegen._internal import Beside, Progress, check_count, check_shape, interruptible
from ...systems import ReferenceLike
from ...systems._internal import check_state
from .._given import Given
from .._guess import STARTS, make_guess, starts_of
from .._outcome import Iteration, SolveStatus
from .._plan import GAINS, MULTIPLIERS, NODES, Plan, PlanLayout
from .._problem import OptimalControlProblem
from .._reference import TIME_ROUNDING, ReferenceSamples, check_constant
from .._settings import DEFAULT, Settings
from .._solution import OptimalSolution
from .._solver import SOLVERS, GuessLike
from .._stage_model import StageModel
from .._transcription import Nodes, Setting, Transcription
from ._export import ExportCase, LoopExport, export_kernel
from ._library import (
    Stages,
    building_sweeps,
    interpreted_stages,
    iterations_of_a_build,
    load_kernel,
    load_stages,
)
from ._loop import MOST, KernelLoop, LoopDisturbance, LoopRates, most_of
from ._memory import STATUS, KernelMemory
from ._numpy import NumpyMemory
from ._results import KEPT, KernelResults, KernelRun
from ._several import best_of, solved_side_by_side
from ._table import CONVERGED, FRESH, ITERATIONS, NOT_FINITE, OF_PLANS, OF_STEPS, STALLED, WARM
from ._watch import Watch

F = TypeVar("F", bound=Callable[..., Any])


def one_at_a_time(method: F) -> F:
    """A method that has the memory of its solver to itself; other threads wait for it."""

    @wraps(method)
    def alone(self: InteriorPointSolver, *values: Any, **options: Any) -> Any:
        with self._lock:
            if self._memory is not None and self._memory.task.watch:  # of this thread
                raise RuntimeError(
                    f"{self!r} is in the middle of a solve that waits for its callback: call "
                    "solver.for_problem(solver.problem) for another solver, and use that"
                )
            return method(self, *values, **options)

    return alone  # type: ignore[return-value]


@named_options
class InteriorPointSolver:
    """Solves an `OptimalControlProblem` by a primal-dual interior point with a filter line search.

    IPOPT's algorithm with Riccati sweeps along the horizon: its time is linear in the number of
    steps. States are unknowns beside the controls (multiple shooting) and move on their groups.
    Controls that it hands out are within their limits. Hard constraints that cannot be kept are
    violated by as little as possible.

    One kernel in C, built once a machine, solves all problems. `prepare` compiles the functions of
    this one, found on disk the next time; before, or without, they are interpreted. If there is no
    compiler at all, NumPy takes the same steps, slower.

    Real-time steps go on from a plan with its multipliers, moved on by the time between. One is
    taken, or up to five if the plan was far off, was cut short or leaves hard constraints violated.
    Its status says that it was taken, not that the plan is optimal.

    Parameters
    ----------
    problem : OptimalControlProblem, optional
        Without it the solver stands for its settings.
    second_derivatives : bool
        Whether the exact Hessian of the Lagrangian is used where it is not too large, or that of
        Gauss–Newton alone.
    settings : Settings, optional
        Tuned numbers; other ones need no new build.

    Attributes
    ----------
    is_prepared : bool
        Whether functions are compiled, as far as they are to be.
    plan : Plan or None
        Plan of the last solve or step.

    References
    ----------
    A. Wächter and L. Biegler, On the implementation of an interior-point filter line-search
    algorithm for large-scale nonlinear programming, Mathematical Programming 106, 2006.

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
    >>> problem = OptimalControlProblem(
    ...     pendulum, 60, 0.1, Q={"angle": 1, "rate": 0.1}, R=0.01, reference=[-1.0, 0.0, 0.0])
    >>> print(InteriorPointSolver(problem).solve([1.0, 0.0, 0.0]).status)
    converged
    """

    has_feedback = has_export = True
    _may_build = True

    def __init__(
        self,
        problem: OptimalControlProblem | None = None,
        *,
        second_derivatives: bool = True,
        settings: Settings = DEFAULT,
    ) -> None:
        if not isinstance(settings, Settings):
            raise TypeError(f"settings must be Settings(name=value, …), not {settings!r}")
        self.second_derivatives, self.settings = second_derivatives, settings
        self.plan: Plan | None = None
        self._model: StageModel | None = None
        self._lock = RLock()  # held by whoever works on the memory
        self.is_prepared = False
        self._build: Beside[Stages | None] | None = None
        self._stages: Stages | None = None
        self._memory: KernelMemory | None = None
        if problem is not None:
            self._model = StageModel(
                Transcription(problem), curved=second_derivatives, settings=settings
            )
            self._given, self._results = Given(problem), KernelResults(self._model, settings)
            rows = self._model.transcription.rows
            self._has_prices = bool((rows.parameter >= 0).any())

    def __getstate__(self) -> dict[str, Any]:
        """Without machine code, which is found again by `prepare`."""
        own = dict.fromkeys(("_memory", "_stages", "_build", "_lock"))
        return self.__dict__ | own | {"is_prepared": False}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy has memory of its own, and a lock of its own."""
        self.__dict__.update(state)
        self._lock = RLock()

    def __repr__(self) -> str:
        """The system of its problem, and the build that goes on."""
        of = "" if self._model is None else repr(self.problem.system.name)
        build = "" if self._build is None else f", {self._build}"
        return f"InteriorPointSolver({of}{build})"

    @property
    def model(self) -> StageModel:
        """Functions of the problem."""
        if self._model is None:
            raise ValueError(f"{self!r} has no problem yet: InteriorPointSolver(problem, …)")
        return self._model

    @property
    def transcription(self) -> Transcription:
        """Functions that all solvers share."""
        return self.model.transcription

    @property
    def problem(self) -> OptimalControlProblem:
        """The optimal control problem that is solved."""
        return self.model.problem

    @property
    def plan_layout(self) -> PlanLayout:
        """Places of the parts of a plan."""
        return self.memory.layout

    @property
    def is_compiled(self) -> bool:
        """Whether functions of the problem run in machine code."""
        return self._stages is not None and not isinstance(self._stages.keep, dict)

    @property
    def memory(self) -> KernelMemory:
        """What the kernel works on."""
        if self._memory is None:
            with building_sweeps(self.model.n, self.model.m):
                kernel = load_kernel()
            if kernel is None:
                self._memory = NumpyMemory(self.model, self.settings, MOST)
            else:
                self._stages = self._stages or interpreted_stages(self.model)
                self._memory = KernelMemory(self.model, self._stages, self.settings, MOST)
        return self._memory

    @property
    def has_loop(self) -> bool:
        """Whether there is a kernel with the rules of a loop; NumPy has solves and steps."""
        return load_kernel() is not None if self._memory is None else self._memory.has_kernel

    def for_problem(self, problem: OptimalControlProblem) -> InteriorPointSolver:
        """A solver with the same settings for a problem."""
        return InteriorPointSolver(
            problem, second_derivatives=self.second_derivatives, settings=self.settings
        )

    @interruptible
    def prepare(self, *, wait: bool = True) -> InteriorPointSolver:
        """Compile the functions of the problem, and return the solver.

        Parameters
        ----------
        wait : bool
            False compiles beside the program: functions are interpreted until that is done.

        Returns
        -------
        InteriorPointSolver
        """
        if self.is_prepared:
            return self
        if self._build is None and not wait:
            model = copy.copy(self.model)  # with calls of its own
            model.transcription = copy.copy(model.transcription)
            name = f"stages of {self.problem.system.name}"
            self._build = Beside(name, lambda: load_stages(model))
        if not wait:
            self._take_built()
            return self
        with building_sweeps(self.model.n, self.model.m, load_kernel):
            found = load_stages(self.model) if self._build is None else self._build.wait().made
        self._build = None
        self._take_stages(found)
        return self

    def _take_built(self) -> None:
        """What was compiled beside the program, if it is there."""
        if self._build is not None and self._build.is_done:
            found, self._build = self._build.made, None
            self._take_stages(found)

    @one_at_a_time
    def _take_stages(self, found: Stages | None) -> None:
        self.is_prepared = True
        if found is not None:
            self._stages, self._memory = found, None
            self.problem._kept["stages"] = found
        else:
            self.model.prepare()

    def loop(
        self,
        delay: float,
        period: float,
        nominal: np.ndarray,
        disturbance: LoopDisturbance | None = None,
        rates: LoopRates | None = None,
    ) -> KernelLoop:
        """Calls of a controller in one call of the kernel.

        Parameters
        ----------
        delay, period, nominal, disturbance, rates
            Of the `KernelLoop`.
        """
        return KernelLoop(self, delay, period, nominal, disturbance, rates)

    def reset(self) -> None:
        """Forget the plan; the next solve is as the first."""
        self.plan = None

    @interruptible
    def export_c(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        p: Mapping[str, float] | ArrayLike | None = None,
        period: float | None = None,
        iterations: int = 1,
        first_iterations: int = 50,
        tolerance: float = 1e-6,
        guess: str | None = None,
        delay: float = 0.0,
        restarts: int = 1,
        most_iterations: int | None = None,
        disturbance: LoopDisturbance | None = None,
        rates: LoopRates | None = None,
        cases: Sequence[ExportCase] = (),
    ) -> Path:
        """Write the solver as a controller in plain C99; see `MPC.export_c`.

        Parameters
        ----------
        folder, name
            As there.
        reference, p : optional
            What it begins with.
        period, delay : float
            Time between calls, dt if left out, and from a call to its effect, s.
        iterations, first_iterations, most_iterations : int
            Of a call, until the first plan has converged, and of any call.
        tolerance : float
            Residual of a plan that has converged.
        guess : str, optional
            Initial guess of a first plan, a word as for `solve`.
        restarts, disturbance, rates
            Of the loop; see `LoopExport`.
        cases : sequence of ExportCase
            Test vectors.

        Returns
        -------
        Path

        Raises
        ------
        NotImplementedError
            If there is no C code for a function of the problem, or the reference moves.
        """
        problem = self.problem
        reference = problem.reference if reference is None else reference
        if reference is not None:
            check_constant(problem.system, reference)
        loop = LoopExport(
            period=problem.dt if period is None else period, delay=delay, iterations=iterations,
            first_iterations=first_iterations, tolerance=tolerance, rates=rates,
            most=most_of(self.settings, iterations, first_iterations, most_iterations),
            restarts=0 if problem.costs else restarts, starts=starts_of(problem.system, guess),
            setting=self._given.setting(problem.times(), reference, p), disturbance=disturbance,
        )  # fmt: skip
        name = f"{problem.system.name}_mpc" if name is None else name
        return export_kernel(self.memory, self.model, self.settings, loop, folder, name, cases)

    # -- to convergence ----------------------------------------------------------------------------

    @np.errstate(all="ignore")
    @named_options(own="guess")
    @one_at_a_time
    def solve(
        self,
        x0: ArrayLike,
        *,
        guess: GuessLike = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        arrival: ArrayLike | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 500,
        time_limit: float = np.inf,
        callback: Callable[[Iteration], bool | None] | None = None,
        for_steps: bool = False,
    ) -> OptimalSolution:
        """Iterate to convergence; never raises because the problem is hard.

        Calls from several threads wait for each other; `solve_many` runs side by side.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            Start.
        guess : Trajectory, OptimalSolution, controller, str or a tuple of these, optional
            Several in a tuple are tried one after the other, and the best result is the answer: the
            cheapest of those that succeed. A controller is followed from x0. Words: "policy", the
            rollout under that of the system; "reference", the one under the inputs of the
            reference; "regulators", the one with linear-quadratic regulators about it. "rest" is a
            state that stays at x0; "screw", states on the way from x0 to the end of the reference,
            as `interpolate` goes. "cheapest" is the cheapest of these but the last. Without a guess
            "policy" where there is one, else "cheapest". From a solution that succeeded an optimum
            is looked for near it, and elsewhere where that fails.
        reference : optional
            Instead of the problem's: a constant state, a TrimPoint or a Trajectory.
        t0 : float
            Time of the start, s.
        p : mapping or array_like, optional
            Parameters of the system and of the problem, by name or all of them.
        arrival : array_like, shape (n, n), optional
            Weight on the error of a free first state from x0; that of the problem if left out.
        tolerance : float
            Largest optimality residual that counts as converged.
        max_iterations : int
            At least 0, of all attempts together. A solve that stalls or ends infeasible begins
            again with the elastic problem. If a guess leads to no plan, "cheapest" follows.
        time_limit : float
            In s. Without one, a solve with an implicit method compiles its functions once it has
            taken about as long as that does, and goes on with the code.
        callback : callable, optional
            Called with every `Iteration`; the solve stops when it returns True.
        for_steps : bool
            Whether `step` goes on from this plan, as in `MPC`. The problem then has the scales of
            real-time steps, as in loops in C.

        Returns
        -------
        OptimalSolution

        Raises
        ------
        RuntimeError
            If the callback itself calls this solver.
        """
        max_iterations = check_count("max_iterations", max_iterations, least=0)
        for name, value in (("tolerance", tolerance), ("time_limit", time_limit)):
            if not float(check_shape(name, value, (), finite=False)) >= 0:
                raise ValueError(f"{name} must be at least 0, got {value}")
        if isinstance(guess, tuple) and not isinstance(guess, Nodes):
            options: dict[str, Any] = {
                "reference": reference, "t0": t0, "p": p, "arrival": arrival,
                "tolerance": tolerance, "max_iterations": max_iterations, "callback": callback,
                "for_steps": for_steps,
            }  # fmt: skip
            return best_of(self, x0, guess, time_limit, options)
        self._take_built()
        started, problem = time.perf_counter(), self.problem
        reference = problem.reference if reference is None else reference
        x0, times, setting = self._given.begun(x0, t0, reference, p, arrival)
        memory = self.memory
        memory.give(setting, times, x0, self._weight(setting))
        is_warm = self._take_solution(guess, x0, times, setting)
        if not is_warm:
            self._take_guess(guess, x0, times, setting, reference)
        first = Nodes(times, memory.parts["x"].copy(), memory.parts["u"].copy())
        name = f"plan of {problem.system.name}"
        if not self.is_prepared:
            name += " without machine code, which InteriorPointSolver(problem).prepare() builds"
        after = self._iterations_of_a_build() if np.isinf(time_limit) else np.inf
        # Of many starts, whoever asked for them tells how far they are.
        progress = None if isinstance(guess, Nodes) else Progress(name)
        watch = Watch(started, time_limit, callback, progress, self._compile_now, after)
        memory.reserve(max_iterations)
        set_up = time.perf_counter() - started
        with watch.over(memory.task):
            status, left = STALLED, max_iterations
            scales = OF_STEPS if for_steps else OF_PLANS
            way = {"tolerance": tolerance, "resume": FRESH, "of": scales}
            is_near = isinstance(guess, OptimalSolution) and guess.is_success
            if is_near:
                with memory.beginning_at(self.settings.real_time_mu):
                    near = way | {"resume": WARM if is_warm else FRESH}
                    status = memory.run("plan", max_iterations=left, **near)
                left -= memory.task.iterations
            if not is_near or (status not in (CONVERGED, ITERATIONS) and left > 0):
                memory.parts["x"][:], memory.parts["u"][:] = first.x, first.u
                is_warm = False
                status = memory.run("plan", max_iterations=left, **way)
                left -= memory.task.iterations
            run = self._ended(status, first, setting, started, is_warm=is_warm)
            cut, text = watch.ended, ""
            if self._leads_astray(status, guess) and left > 0 and not watch.is_over:
                led = "the system's policy" if guess is None else "the guess"
                self._take_guess("cheapest", x0, times, setting, reference)
                first = Nodes(times, memory.parts["x"].copy(), memory.parts["u"].copy())
                status = memory.run("plan", max_iterations=left, **way)
                if status == CONVERGED:
                    run = self._ended(status, first, setting, started)
                    text = f"{led} leads to no plan; this one begins at guess='cheapest'"
                elif watch.ended is not None or status == ITERATIONS:
                    why = watch.ended or SolveStatus.ITERATION_LIMIT
                    text = f"a second attempt from guess='cheapest' was cut short: {why}"
                else:
                    text = f"a second attempt from guess='cheapest' ends {STATUS[status]}"
        self.plan = run.plan
        made = self._results.solution(run, tolerance=tolerance, ended=cut, set_up=set_up)
        return made._with_message(f"{made.message}; {text}") if text else made

    def _iterations_of_a_build(self) -> float:
        """Iterations after which a solve compiles its functions; infinite for one that does not."""
        may_build = self._may_build and not self.is_prepared and self._build is None
        if not may_build or self._stages is None:
            return np.inf
        return iterations_of_a_build(self.model, self._stages)

    def _compile_now(self) -> None:
        """Within a solve that has taken as long as this does: it goes on with the code."""
        found = load_stages(self.model)
        self.is_prepared = True
        if found is None:
            self.model.prepare()
        elif self.memory.exchange(found):
            self._stages = self.problem._kept["stages"] = found

    def _leads_astray(self, status: int, guess: Any) -> bool:
        """Whether a guess led to no plan, and there is another one; of many starts it is tried."""
        if isinstance(guess, Nodes):
            return False
        if guess is None and self.problem.system.policy is None:
            guess = "cheapest"
        is_last = isinstance(guess, str) and guess == "cheapest"
        return not is_last and status not in (CONVERGED, ITERATIONS)

    def _ended(
        self, status: int, first: Nodes, setting: Setting, started: float, *, is_warm: bool = False
    ) -> KernelRun:
        """What a solve left that began at some nodes."""
        memory, t = self.memory, first.t[0]
        log = memory.arrays["log"][: memory.task.iterations + 1].copy()
        content = NODES if status == NOT_FINITE else GAINS
        if len(log) == 1 and content == GAINS and not is_warm:  # no step has made gains
            content, memory.arrays["K"][:] = MULTIPLIERS, 0.0
        plan = found = memory.plan(t, float(log[-1, 0]), content)
        if status == NOT_FINITE:
            plan = Plan.of(self.plan_layout, t=t, x=first.x, u=first.u)
        nodes = Nodes(first.t, plan["x"], plan["u"])
        return KernelRun(status, log, found, plan, nodes, setting, started)

    @np.errstate(all="ignore")
    @one_at_a_time
    def resolved(
        self, found: OptimalSolution, setting: Setting, tolerance: float
    ) -> OptimalSolution:
        """A solution of any solver, solved on for the same setting, to have its multipliers."""
        memory, started = self.memory, time.perf_counter()
        x0 = found.x[0] if setting.x0 is None else setting.x0
        memory.give(setting, found.t, x0, self._weight(setting))
        hard, is_warm = np.isinf(memory.arrays["weight"]), self.is_whole(found.plan)
        if is_warm:  # steps of a loop put prices on hard rows
            memory.take(found.plan)
            memory.parts["e"][:, hard] = memory.parts["y"][:, hard] = 0.0
        memory.parts["x"][:], memory.parts["u"][:] = found.x, found.u
        with memory.beginning_at(self.settings.real_time_mu):
            way = {"tolerance": tolerance, "resume": WARM if is_warm else FRESH}
            status = memory.run("plan", max_iterations=MOST, **way)
        first = Nodes(found.t, found.x, found.u)
        run = self._ended(status, first, setting, started, is_warm=is_warm)
        return self._results.solution(run, tolerance=tolerance)

    def is_whole(self, plan: Plan) -> bool:
        """Whether a plan is of this problem, with multipliers and gains, and not an elastic one."""
        has_all = plan.layout == self.plan_layout and plan.number("content") == GAINS
        return has_all and not plan.number("is_elastic")

    def _take_solution(
        self, guess: Any, x0: np.ndarray, times: np.ndarray, setting: Setting
    ) -> bool:
        """Take the plan of a solution of the same time; whether the guess is one."""
        if not (isinstance(guess, OptimalSolution) and guess.is_success):
            return False
        plan, memory = guess.plan, self.memory
        is_now = abs(plan.number("t") - times[0]) <= TIME_ROUNDING * self.problem.dt
        if not (is_now and self.is_whole(plan)):
            return False
        memory.take(plan)
        memory.parts["x"][0] = self.model.first_state(x0, plan["x"][0], setting.p)
        return True

    def _take_guess(
        self, guess: Any, x0: np.ndarray, times: np.ndarray, setting: Setting, reference: Any
    ) -> None:
        """Nodes of a guess to the memory; the kernel has its own of what a word says."""
        memory = self.memory
        if guess is None or isinstance(guess, str):
            which = sum(STARTS[word] for word in starts_of(self.problem.system, guess))
            memory.run("start", starts=which)
            return
        nodes = make_guess(self.transcription, guess, x0, times, setting, reference, self.settings)
        memory.parts["x"][:], memory.parts["u"][:] = nodes.x, nodes.u
        memory.parts["x"][0] = self.model.first_state(x0, nodes.x[0], setting.p)

    @interruptible
    def solve_many(self, x0: ArrayLike, **options: Any) -> list[OptimalSolution]:
        """Solve for many starts, on all cores.

        Parameters
        ----------
        x0 : array_like, shape (k, nq)
            Starts.
        **options
            Of `solve`, for all of them but ``guess``: one for all, or a list of k.

        Returns
        -------
        list of OptimalSolution
            In the order of the starts, each with its status.
        """
        return solved_side_by_side(self, x0, **options)

    def _twin(self) -> InteriorPointSolver:
        """The same solver with memory of its own, for another thread."""
        _ = self.memory  # stages that all share, where there is a kernel
        other = copy.copy(self)
        other._model = copy.copy(self.model)
        other._model.transcription = copy.copy(self.transcription)
        other._given = copy.copy(self._given)
        other._results = KernelResults(other._model, self.settings)
        other.plan, other._memory = None, None
        other._may_build = False  # CasADi writes code in one thread at a time
        other._stages, other.is_prepared = self._stages, self.is_prepared  # copies forget them
        return other

    def _weight(self, setting: Setting) -> np.ndarray:
        """Penalty weights of one-sided constraints; some are parameters."""
        sides = self.model.sides
        if not self._has_prices:
            return sides.weight
        return self.transcription.rows.weights(setting.p)[sides.row] * self.problem.dt

    @cached_property
    def _grid(self) -> np.ndarray:
        """Times of the nodes after that of the start."""
        return self.problem.times()

    # -- in real time ------------------------------------------------------------------------------

    @np.errstate(all="ignore")
    @one_at_a_time
    def step(
        self,
        x0: ArrayLike,
        *,
        plan: Plan | None = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        arrival: ArrayLike | None = None,
        iterations: int = 1,
        time_limit: float = np.inf,
    ) -> OptimalSolution:
        """Real-time iterations from a plan, moved on to t0.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            An element of the group.
        plan : Plan, optional
            Of an earlier solve or step; the last one of this solver if left out.
        reference, t0, p, arrival
            As for `solve`.
        iterations : int
            At least 1.
        time_limit : float
            In s, looked at after every iteration; one is taken in any case.

        Returns
        -------
        OptimalSolution

        Raises
        ------
        ValueError
            If there is no plan yet, it belongs to another problem, `x0` is no state, or there is
            no iteration.
        """
        self._take_built()
        plan = self.plan if plan is None else plan
        if plan is None:
            raise ValueError("there is nothing to go on from: solve first")
        memory = self.memory
        plan.check(memory.layout)
        started = time.perf_counter()
        x0 = check_state(self.problem.system, "x0", x0)
        iterations = min(check_count("iterations", iterations), memory.most)
        times = float(check_shape("t0", t0, ())) + self._grid
        setting = self._given.setting(times, reference, p, arrival)
        memory.take(plan)
        memory.give(setting, times, x0, self._weight(setting))
        watch = Watch(started, time_limit, None, None) if np.isfinite(time_limit) else None
        if plan.head[-1] == NODES:  # a plan of nodes alone: steps of a solve that begins there
            memory.parts["x"][0] = self.model.first_state(x0, plan["x"][0], setting.p)
            status = memory.run("plan", tolerance=0.0, max_iterations=iterations)
            log = memory.arrays["log"][memory.task.iterations][None].copy()
        else:
            with nullcontext() if watch is None else watch.over(memory.task):
                status = memory.run(
                    "step", start=plan.head[0], max_iterations=iterations,
                    more=MOST, tolerance=KEPT,
                )  # fmt: skip
            log = memory.arrays["log"][:1].copy()
        found = memory.plan(times[0], float(log[0, 0]), GAINS)
        if status == STALLED and not np.isfinite(log[0, 1]):  # there are no derivatives there
            status = NOT_FINITE
        if status == NOT_FINITE:
            self.plan, nodes = plan, Nodes(plan.head[0] + self._grid, plan["x"], plan["u"])
        else:
            self.plan, nodes = found, Nodes(times, found["x"], found["u"])
        run = KernelRun(status, log, found, self.plan, nodes, setting, started)
        is_late = watch is not None and watch.ended is not None
        return self._results.step(run, memory.task.iterations, is_late=is_late)

    def feedback(self, plan: Plan) -> np.ndarray:
        """Derivative of the first controls of a plan by the error of the first state.

        Parameters
        ----------
        plan : Plan

        Returns
        -------
        ndarray, shape (m, n)

        Raises
        ------
        ValueError
            If the plan belongs to another problem or has no gains.
        """
        if plan.check(self.plan_layout).number("content") != GAINS:
            raise ValueError("the plan has no feedback yet: solve or step first")
        return plan["K"][0].copy()


SOLVERS["interior_point"] = InteriorPointSolver

"""InteriorPointSolver: an interior point with a Riccati sweep on the group, in C or in NumPy."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import (
    Beside,
    Progress,
    UnknownNameError,
    check_shape,
    interruptible,
    thread_count,
    unknown_name,
)
from ..systems import ReferenceLike, Trajectory
from ..systems._internal import check_state, on_constraints
from ._export import ExportCase, ExportSetting, export_interior_point
from ._given import Given
from ._guess import STARTS, make_guess, moved_on, starts_of, steps_between, steps_later
from ._interior_point import Barrier, InteriorPoint, extended, number_of_limits
from ._interior_results import Results
from ._kernel import (
    CONVERGED,
    FREE_STATES,
    FRESH,
    ITERATIONS,
    NOT_FINITE,
    REAL_TIME,
    RESUME,
    ROLL_OUT,
    STALLED,
    WARM,
    EntryPoints,
    Memory,
    load,
)
from ._least_violation import Look
from ._outcome import Iteration, SolveStatus
from ._plan import GAINS, IS_PENALISED, MU_MOST, START, Plan, PlanLayout
from ._problem import SOLVERS, GuessLike, OptimalControlProblem, OptimalSolution
from ._reference import ReferenceSamples, check_constant
from ._runs import Kept, Run, Start, Watch, run_in_c, run_in_numpy, told
from ._settings import DEFAULT, Settings
from ._stage_model import Sides, StageModel
from ._transcription import Nodes, Setting, Transcription

Shooting = Literal["auto", "states", "rollout"]


class InteriorPointSolver:
    """Solves an `OptimalControlProblem` by barrier Newton steps, each one sweep along the horizon.

    A step linearizes about the nodes, sums up barrier, cost and (where that is affordable) second
    derivatives of the dynamics, and solves for all tangent vectors at once by a Riccati recursion:
    its time is linear in the horizon. Iterates are motions of the system under the feedback that
    the recursion gives (``shooting="rollout"``), or nodes whose gaps close along the way
    (``"states"``). Inputs stay strictly inside of their bounds.

    Where there is a C compiler, `prepare` builds the whole solver with the problem's functions to
    one library, found on disk the next time; otherwise and before `prepare` it runs in NumPy: the
    same iterates, slower.

    Hard bounds on rows that a solve or a step does not reach are tried again at a price. Real-time
    steps go on from the last multipliers, moved on by the time between. The barrier follows how far
    that is from optimal, between μ = 3e-4 and 1e-8, and falls after full steps: a loop at rest
    settles at the optimum. One step a call is taken, up to four more where it began far off, was
    cut short or left hard bounds exceeded; its status says that it was taken, not that the plan is
    optimal. Hard bounds that are exceeded then are at a price from the next call on, until they are
    kept.

    Parameters
    ----------
    problem : OptimalControlProblem, optional
        Without it the solver stands for its settings.
    shooting : {"auto", "rollout", "states"}
        "auto" takes motions where the guess is one and no row is hard.
    second_derivatives : bool
        Whether the exact Hessian of the Lagrangian is used where it is not too large, or that of
        Gauss–Newton alone.
    settings : Settings, optional
        Tuned numbers; other ones need no new build.

    Attributes
    ----------
    is_prepared : bool
        Whether it was built, as far as it is to be.
    plan : Plan or None
        That of the last solve or step.

    References
    ----------
    J. Nocedal and S. Wright, Numerical Optimization, 2006, chapter 19; D. Jacobson and D. Mayne,
    Differential Dynamic Programming, 1970.

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
    has_loop = False

    def __init__(
        self,
        problem: OptimalControlProblem | None = None,
        *,
        shooting: Shooting = "auto",
        second_derivatives: bool = True,
        settings: Settings = DEFAULT,
    ) -> None:
        if shooting not in get_args(Shooting):
            raise UnknownNameError(unknown_name("way of shooting", shooting, get_args(Shooting)))
        self.shooting: Shooting = shooting
        if not isinstance(settings, Settings):
            raise TypeError(f"settings must be Settings(name=value, …), not {settings!r}")
        self.second_derivatives, self.settings = second_derivatives, settings
        self.is_prepared = False
        self._build: Beside[EntryPoints | None] | None = None
        self._model: StageModel | None = None
        self._memory: Memory | None = None
        self._entries: EntryPoints | None = None
        self._given: Given | None = None
        self.plan: Plan | None = None
        self._barrier_of_call = Barrier.of_real_time(settings)  # made once, it seldom changes
        if problem is not None:
            self._model = StageModel(
                Transcription(problem), curved=second_derivatives, settings=settings
            )
            self._given, self._results = Given(problem), Results(self._model)

    def __getstate__(self) -> dict[str, Any]:
        """Without the library, which is found again by `prepare`."""
        built = dict.fromkeys(("_memory", "_entries", "_build"))
        return self.__dict__ | built | {"is_prepared": False}

    def __repr__(self) -> str:
        """Settings, the system of its problem, and the build that goes on."""
        of = "" if self._model is None else f"{self.problem.system.name!r}, "
        build = "" if self._build is None else f", {self._build}"
        return f"InteriorPointSolver({of}shooting={self.shooting!r}{build})"

    @property
    def model(self) -> StageModel:
        """Functions of the problem."""
        if self._model is None:
            raise ValueError(f"{self!r} has no problem yet: InteriorPointSolver(problem, …)")
        return self._model

    @property
    def plan_layout(self) -> PlanLayout:
        """Where the parts of a plan are."""
        return self.model.plan_layout

    @property
    def transcription(self) -> Transcription:
        """Functions that all solvers share."""
        return self.model.transcription

    @property
    def problem(self) -> OptimalControlProblem:
        """What is solved."""
        return self.model.problem

    @property
    def is_compiled(self) -> bool:
        """Whether iterations run in machine code."""
        return self._memory is not None

    def for_problem(self, problem: OptimalControlProblem) -> InteriorPointSolver:
        """A solver with the same settings for a problem."""
        return InteriorPointSolver(
            problem, shooting=self.shooting, second_derivatives=self.second_derivatives,
            settings=self.settings,
        )  # fmt: skip

    @interruptible
    def prepare(self, *, wait: bool = True) -> InteriorPointSolver:
        """Build the solver with the problem's functions, and return it.

        Takes seconds the first time and milliseconds when the code is found on disk, as it is for
        other weights, limits, step lengths and horizons. Where that is not possible the functions
        are compiled one by one, as `set_compile_policy` says, and the sweep runs in NumPy.

        Parameters
        ----------
        wait : bool
            False lets the build go on beside the program: solves and steps run in NumPy until it is
            done, the first one after that in machine code. The solver's text says how long it has
            been going on, a notice when it is over.

        Returns
        -------
        InteriorPointSolver
        """
        if self.is_prepared:
            return self
        if self._build is None and not wait:
            model = copy.copy(self.model)  # with calls of its own
            model.transcription = copy.copy(model.transcription)
            name = f"interior point of {self.problem.system.name}"
            self._build = Beside(name, lambda: load(model))
        if not wait:
            self._take_built()
            return self
        found = load(self.model) if self._build is None else self._build.wait().made
        self._build = None
        if found is None:
            self.model.prepare()
        self._take_entries(found)
        return self

    def _take_built(self) -> None:
        """What was built beside the program, if it is there."""
        if self._build is not None and self._build.is_done:
            found, self._build = self._build.made, None
            self._take_entries(found)

    def _take_entries(self, found: EntryPoints | None) -> None:
        if found is not None:
            self._entries = found
            self._memory = Memory(self.model, found, self.settings.iterations_most)
        self.is_prepared = True

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
        holds: bool = True,
        delay: float = 0.0,
        cases: Sequence[ExportCase] = (),
    ) -> Path:
        """Write the solver as a controller in plain C99; see `MPC.export_c`.

        Parameters
        ----------
        folder : path
            New, empty, or exported before.
        name : str, optional
            Prefix of all names; ``"<system>_mpc"`` if left out.
        reference, p : optional
            What it begins with.
        period : float, optional
            Time between calls in s; dt if left out.
        iterations, first_iterations : int
            Of a call, and until the first plan has converged.
        tolerance : float
            Residual of a plan that has converged.
        guess : str, optional
            Where a first plan starts, a word as for `solve`.
        holds : bool
            Whether the last inputs go on where there is no answer; else nominal ones.
        delay : float
            Time from call to effect in s, over which the model predicts.
        cases : sequence of ExportCase
            Test vectors.

        Returns
        -------
        Path

        Raises
        ------
        NotImplementedError
            If a function of the problem is not made of scalar operations, or the reference moves.
        """
        problem = self.problem
        assert self._given is not None
        reference = problem.reference if reference is None else reference
        if reference is not None:
            check_constant(problem.system, reference)
        loop = ExportSetting(
            period=problem.dt if period is None else period,
            iterations=iterations,
            first_iterations=first_iterations,
            tolerance=tolerance,
            starts=starts_of(problem.system, guess),
            setting=self._given.setting(problem.times(), reference, p),
            shooting=self.shooting,
            second_derivatives=self.second_derivatives,
            eager=self._barrier(ROLL_OUT, tolerance),
            central=self._barrier(FREE_STATES, tolerance),
            real_time=Barrier.of_real_time(self.settings),
            holds=holds,
            delay=delay,
        )
        name = f"{problem.system.name}_mpc" if name is None else name
        return export_interior_point(self.model, loop, folder, name, cases)

    # -- to convergence ----------------------------------------------------------------------------

    @np.errstate(all="ignore")  # iterates that diverge are refused by what they cost
    @named_options(own="guess")
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
        max_iterations: int = 200,
        time_limit: float = np.inf,
        callback: Callable[[Iteration], bool | None] | None = None,
    ) -> OptimalSolution:
        """Iterate to convergence; never raises because the problem is hard.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            Start.
        guess : Trajectory, OptimalSolution, controller, str or a tuple of these, optional
            Several in a tuple are tried one after the other, and the best result is the answer:
            the cheapest of those that succeed. A controller is followed from x0. Words: "policy",
            the motion under that of the system; "reference", that under the inputs of the
            reference; "regulators", those with linear-quadratic regulators about it; "rest", a
            state that stays at x0; "screw", states on the way from x0 to the end of the reference,
            as `interpolate` goes; "cheapest", the cheapest of these but the last. Without a guess
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
            At most `Settings.iterations_most`.
        time_limit : float
            In s.
        callback : callable, optional
            Called with every `Iteration`; the solve stops when it returns True.

        Returns
        -------
        OptimalSolution
        """
        if not isinstance(max_iterations, int | np.integer) or max_iterations < 0:
            raise ValueError(
                f"max_iterations must be a whole number, at least 0, got {max_iterations!r}"
            )
        for name, value in (("tolerance", tolerance), ("time_limit", time_limit)):
            if not float(check_shape(name, value, (), finite=False)) >= 0:
                raise ValueError(f"{name} must be at least 0, got {value}")
        if isinstance(guess, tuple):
            options: dict[str, Any] = {
                "reference": reference, "t0": t0, "p": p, "arrival": arrival,
                "tolerance": tolerance, "max_iterations": max_iterations, "callback": callback,
            }  # fmt: skip
            return self._best_of(x0, guess, time_limit, options)
        self._take_built()
        started, problem = time.perf_counter(), self.problem
        x0 = check_state(problem.system, "x0", x0)
        times = float(check_shape("t0", t0, ())) + self._grid
        reference = problem.reference if reference is None else reference
        setting = self._setting(times, reference, p, arrival)
        x0 = on_constraints(problem.system, "x0", x0, setting.p[: problem.system.n_parameters])
        nodes, gap = self._first_nodes(guess, x0, times, setting, reference)
        mode = ROLL_OUT
        if self.shooting != "rollout" and not (gap <= self.settings.defect_closed):
            follows = callable(guess) and not isinstance(guess, Trajectory | OptimalSolution)
            mode = ROLL_OUT if self.shooting == "auto" and follows else FREE_STATES
        if self.shooting == "states" or (self.shooting == "auto" and self.model.has_hard_rows):
            # Motions that start off an unstable system miss their end by far, and those that hard
            # limits cut short stay in the optimum next to them.
            mode = FREE_STATES
        barrier = self._barrier(mode, tolerance)
        name = f"plan of {problem.system.name}"
        if not self.is_prepared:
            name += " without machine code, which InteriorPointSolver(problem).prepare() builds"
        progress = Progress(name)
        most = min(max_iterations, self.settings.iterations_most)
        watch = Watch(started, time_limit, callback, most, progress)
        near = self._from(guess, barrier, setting)
        run = self._run(mode, x0, nodes, setting, near, tolerance, watch)
        if near != barrier and run.status in (STALLED, NOT_FINITE) and not run.is_lost:
            run = self._run(mode, x0, nodes, setting, barrier, tolerance, watch)
        first = mode
        if run.status in (STALLED, NOT_FINITE) and self.shooting == "auto" and not run.is_lost:
            mode = FREE_STATES if mode == ROLL_OUT else ROLL_OUT
            barrier = self._barrier(mode, tolerance)
            other = self._run(mode, x0, nodes, setting, barrier, tolerance, watch)
            if other.status == CONVERGED or run.status == NOT_FINITE:
                run = other
        stalled = run
        is_open = run.log[-1][2] > tolerance  # gaps that rows do not let close
        is_stuck = run.status in (STALLED, NOT_FINITE) and len(self.model.hard_limits) > 0
        is_stuck = is_stuck and not run.is_lost and (is_open or self._excess(run) > tolerance)
        if is_stuck:
            other = self._at_a_price(first, x0, nodes, setting, tolerance, watch)
            is_closed = is_open and other.log[-1][2] <= tolerance
            is_worse = other.log[-1][2] > run.log[-1][2]  # gaps, or equalities, for an excess
            if is_closed or (self._excess(other) < self._excess(run) and not is_worse):
                run = other
        is_stuck = is_stuck and self._excess(run) > self.settings.acceptable
        is_late = run.status == ITERATIONS and run.steps >= self.settings.restoration_after
        is_late = is_late or run.status == STALLED or is_stuck
        if is_late and watch.ended is None and not run.is_lost:
            lost = (stalled if is_stuck else run).after(Look(self.model, setting, times))
            run = lost if lost.is_lost else run
        is_stuck = is_stuck or run.is_lost
        is_penalised = self._excess(run) > self.settings.violation_kept
        mu_most = self.settings.real_time_barrier
        if run.status != NOT_FINITE:
            nodes = Nodes(times, run.point.x, run.point.u)
            plan = self._plan_of(run, times[0], mu_most, is_penalised)
        else:
            plan = Plan.of(
                self.model.plan_layout, t=times[0], x=nodes.x, u=nodes.u, mu_most=mu_most,
                is_penalised=float(is_penalised),
            )  # fmt: skip
        self.plan = plan
        return self._results.solution(run, nodes, times, setting, watch, tolerance, is_stuck, plan)

    def _best_of(
        self, x0: ArrayLike, guesses: tuple[Any, ...], seconds: float, options: dict[str, Any]
    ) -> OptimalSolution:
        """The best of solves from several guesses, as far as there is time for them."""
        if not guesses:
            raise ValueError("guess is an empty tuple: give one guess or more")
        began, best = time.perf_counter(), None
        for guess in guesses:
            left = seconds - (time.perf_counter() - began)
            if best is not None and left <= 0:
                break
            other = self.solve(x0, guess=guess, time_limit=max(left, 0.0), **options)
            if best is None or (not other.is_success, other.cost) < (
                not best.is_success,
                best.cost,
            ):
                best = other
            if other.status is SolveStatus.STOPPED:
                break
        assert best is not None
        self.plan = best.plan
        spent = time.perf_counter() - began
        return replace(best, times=best.times | {"total": spent, "model": spent})

    def _first_nodes(
        self, guess: Any, x0: np.ndarray, times: np.ndarray, setting: Setting, reference: Any
    ) -> tuple[Nodes, float]:
        """Nodes of a guess and their largest gap; the kernel has its own of what a word says."""
        memory = self._memory
        if memory is not None and (guess is None or isinstance(guess, str)):
            which = sum(STARTS[word] for word in starts_of(self.problem.system, guess))
            memory.give(setting, times)
            gap = memory.choose_start(x0, which)
            return Nodes(times, memory.arrays["x"].copy(), memory.arrays["u"].copy()), gap
        nodes = make_guess(self.transcription, guess, x0, times, setting, reference, self.settings)
        nodes.x[0] = self.model.first_state(x0, nodes.x[0], setting.p)
        return nodes, float(np.abs(self.transcription.gaps(nodes, setting)).max(initial=0.0))

    @interruptible
    def solve_many(self, x0: ArrayLike, **options: Any) -> list[OptimalSolution]:
        """Solve for many starts, on all cores.

        Where the solver is built to machine code (`prepare`), as many solves run at once as
        `lgcontrol.codegen.set_threads` says; otherwise one after the other. What was found last
        stays what it was.

        Parameters
        ----------
        x0 : array_like, shape (k, nq)
            Starts.
        **options
            Of `solve`, for all of them but ``guess``: one for all, or a list of k. A guess in a
            word, or none, is made by machine code; a controller is followed in Python.

        Returns
        -------
        list of OptimalSolution
            In the order of the starts, each with its status.

        Examples
        --------
        >>> from lgcontrol.groups import SO2
        >>> from lgcontrol.systems import System
        >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
        >>> problem = OptimalControlProblem(wheel, 10, 0.1, reference=[1.0, 0.0])
        >>> found = InteriorPointSolver(problem).solve_many(SO2.exp([[0.5], [1.0], [3.0]]))
        >>> [str(entry.status) for entry in found]
        ['converged', 'converged', 'converged']
        """
        group = self.problem.system.state
        starts = check_shape("x0", x0, (None, group.nq))
        guesses = options.pop("guess", None)
        if not isinstance(guesses, list):
            guesses = [guesses] * len(starts)
        if len(guesses) != len(starts):
            raise ValueError(
                f"guess is a list of {len(guesses)} for {len(starts)} starts: give one for all, "
                "or one for each"
            )
        self._take_built()
        count = min(thread_count(), len(starts)) if self._memory is not None else 1
        found: list[Any] = [None] * len(starts)
        left = iter(range(len(starts)))  # taken from by whoever is free
        lock = Lock()

        def work(solver: InteriorPointSolver) -> None:
            while True:
                with lock:
                    k = next(left, None)
                if k is None:
                    return
                found[k] = solver.solve(starts[k], guess=guesses[k], **options)

        if count <= 1:
            work(self._twin())
        else:
            with ThreadPoolExecutor(count, thread_name_prefix="lgcontrol") as pool:
                try:
                    for future in [pool.submit(work, self._twin()) for _ in range(count)]:
                        future.result()
                except BaseException:  # as Ctrl-C: the others end with the solve that they are at
                    with lock:
                        left = iter(())
                    raise
        return found

    def _twin(self) -> InteriorPointSolver:
        """The same solver with memory of its own, for another thread."""
        other = copy.copy(self)
        other._model = copy.copy(self.model)
        other._model.transcription = copy.copy(self.transcription)
        other._given, other._results = copy.copy(self._given), Results(other._model)
        other.plan = None
        if self._memory is not None:
            other._entries, other.is_prepared = self._entries, True
            assert self._entries is not None
            other._memory = Memory(other._model, self._entries, self.settings.iterations_most)
        return other

    def _barrier(self, mode: int, tolerance: float) -> Barrier:
        """How fast the barrier falls: along central iterates slower, but from higher up."""
        last, model = (
            max(self.settings.barrier_last * tolerance, self.settings.barrier_least),
            self.model,
        )
        has_rows = len(model.sides.row) or len(model.sides.equal)
        if not (has_rows or self._has_limits):
            return Barrier.of_rollouts(self.settings, last)._replace(first=last)
        if mode == ROLL_OUT and not has_rows:
            return Barrier.of_rollouts(self.settings, last)
        return Barrier.of_central(self.settings, last)

    def _from(self, guess: Any, barrier: Barrier, setting: Setting) -> Barrier:
        """The barrier for a guess: a plan of a solve is near an optimum, to be found nearby."""
        if not (isinstance(guess, OptimalSolution) and guess.is_success):
            return barrier
        most = (
            self.settings.barrier_share_warm
            * abs(guess.cost)
            / number_of_limits(self.model, setting.box)
        )
        return barrier._replace(
            first=min(barrier.first, max(self.settings.barrier_share_beyond_least, most))
        )

    def _setting(
        self,
        times: np.ndarray,
        reference: Any,
        p: Mapping[str, float] | ArrayLike | None,
        arrival: ArrayLike | None,
    ) -> Setting:
        """What a solve is given; prices of soft rows that are parameters go to the rows."""
        assert self._given is not None
        setting = self._given.setting(times, reference, p, arrival)
        if self._has_prices:
            rows, sides = self.transcription.rows, self.model.sides
            weight = rows.weights(setting.p)[sides.row] * self.problem.dt
            self._take(sides._replace(weight=weight))
        return setting

    @cached_property
    def _has_prices(self) -> bool:
        """Whether prices of soft rows are parameters."""
        return bool((self.transcription.rows.parameter >= 0).any())

    @cached_property
    def _has_limits(self) -> bool:
        """Whether any control has a limit."""
        return self.problem.input_limits.is_limited

    @cached_property
    def _grid(self) -> np.ndarray:
        """Times of the nodes after that of the start."""
        return self.problem.times()

    def _at_a_price(
        self,
        mode: int,
        x0: np.ndarray,
        nodes: Nodes,
        setting: Setting,
        tolerance: float,
        watch: Watch,
    ) -> Run:
        """With hard rows at a price.

        Where gaps stay open at it a lower one leads to a motion, and from that it goes up again, as
        far as gaps close. That tells where what is exceeded then costs far more than all else and
        hardly falls any more.
        """
        barrier, full = self._barrier(mode, tolerance), self._price(nodes, setting)

        def run_at(price: float, nodes: Nodes) -> Run:
            with self._softened(price):
                return self._run(mode, x0, nodes, setting, barrier, tolerance, watch)

        def is_open(run: Run) -> bool:
            return not run.log[-1][2] <= tolerance

        first = run = run_at(full, nodes)
        lower = 0
        while is_open(run) and lower < self.settings.penalty_lowest and watch.ended is None:
            lower += self.settings.penalty_lower
            run = run_at(full / 10**lower, nodes)
        higher, excess, is_told = run, np.inf, False
        while not is_open(higher) and watch.ended is None:
            run, before, excess = higher, excess, self._excess(higher)
            if lower == 0 or excess <= tolerance:
                return run
            costs = full / 10**lower * excess
            is_told = (
                excess > self.settings.restoration_decrease * before
                and costs > self.settings.penalty_dominant * abs(run.log[-1][0])
            )
            lower -= 1
            higher = run_at(full / 10**lower, Nodes(nodes.t, run.point.x, run.point.u))
        return run if is_told else first

    def _price(self, nodes: Nodes, setting: Setting) -> float:
        """Of hard rows, above what the cost gains from an excess near the nodes."""
        return self.settings.penalty_first * (1.0 + self._slope(nodes, setting))

    @contextmanager
    def _softened(self, price: float) -> Iterator[None]:
        """Hard rows at a price."""
        model, hard = self.model, self.model.sides
        weight = np.where(np.isinf(hard.weight) & ~model.of_start, price, hard.weight)
        try:
            self._take(hard._replace(weight=weight))
            yield
        finally:
            self._take(hard)

    def _slope(self, nodes: Nodes, setting: Setting) -> float:
        """The largest slope of the cost at nodes."""
        if self._memory is not None:  # stages that are interpreted may not be derived yet
            return self._memory.slope(nodes, setting)
        at = self.model.expand(nodes, setting)
        slopes = np.concatenate([at.g.ravel(), at.g_end])
        return float(np.abs(slopes[np.isfinite(slopes)]).max(initial=0.0))

    def _take(self, sides: Sides) -> None:
        self.model.sides = sides
        if self._memory is not None:
            self._memory.arrays["weight"][:] = sides.weight

    def _excess(self, run: Run | Kept) -> float:
        """Sum of what one-sided hard rows are exceeded by; infinite where a run led nowhere."""
        if run.status == NOT_FINITE and len(self.model.hard_limits):
            return np.inf
        return self.model.hard_excess(run.rows)

    def _run(
        self,
        mode: int,
        x0: np.ndarray,
        nodes: Nodes,
        setting: Setting,
        barrier: Barrier,
        tolerance: float,
        watch: Watch,
    ) -> Run:
        memory = self._memory
        if memory is None:
            point = self._starting_point(mode, nodes, setting, barrier, x0)
            look = Look(self.model, setting, nodes.t)
            return run_in_numpy(point, mode, barrier, tolerance, watch, look=look)
        arrays = memory.arrays
        memory.give(setting, nodes.t)
        arrays["x"][:], arrays["u"][:] = nodes.x, nodes.u
        arrays["K"][:], arrays["log"][0] = 0.0, np.nan
        options: dict[str, Any] = {
            "barrier": barrier, "tolerance": tolerance, "curved": self.second_derivatives,
        }  # fmt: skip
        return run_in_c(memory, x0, mode, watch, Look(self.model, setting, nodes.t), **options)

    def _starting_point(
        self,
        mode: int,
        nodes: Nodes,
        setting: Setting,
        barrier: Barrier,
        x0: np.ndarray,
        **given: Any,
    ) -> InteriorPoint:
        is_feasible, curved = mode != FREE_STATES, self.second_derivatives
        mu = given.pop("mu", barrier.first)
        return InteriorPoint(
            self.model, setting, nodes, x0, mu, is_feasible=is_feasible, curved=curved, **given
        )

    # -- in real time ------------------------------------------------------------------------------

    @np.errstate(all="ignore")
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
        """Real-time iterations from a plan, shifted to t0.

        The plan is shifted with its feedback, followed from x0, and improved.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            An element of the group.
        plan : Plan, optional
            Of an earlier solve or step; the last one of this solver if left out.
        reference, t0, p, arrival
            As for `solve`.
        iterations : int
            `Settings.steps_more` further ones where the last began far off, was cut short or
            violates hard constraints. Those are penalised from the next call on, until they hold.
        time_limit : float
            In s, looked at after every iteration; one is taken in any case.

        Returns
        -------
        OptimalSolution
            "iteration limit" where steps were taken, with violations where hard constraints are
            violated and it is not known yet whether they can hold: for the first time, or where
            the penalised plan is still far from an optimum; "time limit" where more steps were due;
            "infeasible" where they are violated next to that optimum, as little as was found;
            "failed" where there is no step: then with the shifted plan or, where that diverges,
            with the one that was given.

        Raises
        ------
        ValueError
            If there is no plan yet, or it belongs to another problem.
        """
        self._take_built()
        plan = self.plan if plan is None else plan
        if plan is None:
            raise ValueError("there is nothing to go on from: solve first")
        plan.check(self.model.plan_layout)
        started = time.perf_counter()
        x0 = np.asarray(x0, dtype=np.float64)
        times = t0 + self._grid
        setting = self._setting(times, reference, p, arrival)
        status, run, is_penalised = None, None, plan.head[IS_PENALISED] > 0
        most = min(iterations, self.settings.iterations_most)
        if time_limit == np.inf and not is_penalised:
            status = self._went_on(x0, plan, t0, times, setting, most)
        if status is not None:
            assert self._memory is not None
            kept = Kept.of(status, self._memory)
            is_kept = bool(self._memory.about.keeps) or (
                not self._results.has_excess(kept.rows)
                and self._excess(kept) <= self.settings.violation_kept
            )
            if status == ITERATIONS and is_kept:
                mu_most = self._mu_most(plan, kept)
                found = self._memory.plan(t0, kept.log[-1][0], mu_most, is_penalised=False)
                self.plan, nodes = found, Nodes(times, found["x"], found["u"])
                status = SolveStatus.ITERATION_LIMIT
                return self._results.taken(kept.log, status, nodes, setting, started, found)
            run = kept.run()
        watch = Watch(started, time_limit, None, most)
        last = Nodes(plan.head[START] + self._grid, plan["x"], plan["u"])
        if run is None:
            start, at = self._moved_on(plan, last, times, setting), nullcontext()
            if is_penalised:
                _, is_shift = steps_later(self.problem, last, times, self.settings)
                at = self._softened(self._price(last if is_shift else start.nodes, setting))
            with at:
                run = self._improve(x0, plan, start, setting, watch)
        found, nodes, is_infeasible = plan, last, False
        if run.status != NOT_FINITE:
            is_violated = self._excess(run) > self.settings.violation_kept
            is_infeasible = is_penalised and is_violated and run.is_settled(self.settings)
            nodes = Nodes(times, run.point.x, run.point.u)
            found = self._plan_of(run, t0, self._mu_most(plan, run), is_violated)
        else:
            is_infeasible = is_penalised and run.is_settled(self.settings)
        self.plan = found
        return self._results.solution(run, nodes, times, setting, watch, None, is_infeasible, found)

    def _went_on(
        self,
        x0: np.ndarray,
        plan: Plan,
        t0: float,
        times: np.ndarray,
        setting: Setting,
        most: int,
    ) -> int | None:
        """Status of a kernel's steps from what it left itself, as in loops; None if that is not so.

        Nothing has to be written to its memory then but the state and the times.
        """
        memory, model = self._memory, self.model
        if memory is None or model.is_implicit or setting.box.contradictions:
            return None
        whole, is_shift = steps_between(self.problem, plan.head[START], t0, self.settings)
        if not (is_shift and memory.holds(plan, setting)):
            return None
        memory.give(setting, times)
        status = memory.run(
            x0, REAL_TIME, max_iterations=most, barrier=self._real_time(plan), shift=whole == 1,
            curved=self.second_derivatives, resume=WARM,
        )  # fmt: skip
        if status != NOT_FINITE:
            memory.go_back()
        return status

    def _real_time(self, plan: Plan) -> Barrier:
        """The barrier of the next call."""
        first = plan.head[MU_MOST]
        if first != self._barrier_of_call.first:
            self._barrier_of_call = self._barrier_of_call._replace(first=first)
        return self._barrier_of_call

    def _mu_most(self, plan: Plan, run: Run | Kept) -> float:
        """The largest barrier parameter of the next call, by how this one ended."""
        first, own = plan.head[MU_MOST], self.settings
        _, stationarity, violation, *_ = run.log[-1].tolist()
        is_short = run.step < own.step_short and max(stationarity, violation) > own.far
        if is_short and self._excess(run) <= own.violation_kept:  # a penalty is another problem
            return min(own.real_time_barrier_most, own.real_time_barrier_rise * first)
        if run.step < own.step_good:
            return first
        return max(own.real_time_barrier, own.real_time_barrier_factor * first)

    def _plan_of(self, run: Run, t: float, mu_most: float, is_penalised: bool) -> Plan:
        plan = run.plan(self.model.plan_layout, t, mu_most, is_penalised=is_penalised)
        if self._memory is not None:
            self._memory.says(run.point, plan)
        return plan

    def feedback(self, plan: Plan) -> np.ndarray:
        """Derivative of the first controls of a plan by the error of the first state.

        Parameters
        ----------
        plan : Plan

        Returns
        -------
        ndarray, shape (m, n)
            That of the last iteration's quadratic model, bounds and their barrier included.

        Raises
        ------
        ValueError
            If the plan belongs to another problem or has no gains.
        """
        if plan.check(self.model.plan_layout).number("content") != GAINS:
            raise ValueError("the plan has no feedback yet: solve or step first")
        return plan["K"][0].T.copy()

    def _moved_on(self, plan: Plan, last: Nodes, times: np.ndarray, setting: Setting) -> Start:
        """A plan at the times of new nodes; a shift by a step is left to a kernel."""
        problem, run = self.problem, Run.of_plan(plan)
        whole, is_shift = steps_later(problem, last, times, self.settings)
        if self._memory is not None and is_shift:
            return Start(last._replace(t=times), run, whole)
        moved = None if run is None else run.later(whole)
        nodes = moved_on(problem, last, times, setting, self.settings)
        if whole == 1 and is_shift:
            nodes = extended(self.model, setting, nodes, None if moved is None else moved.K)
        return Start(nodes, moved, 0)

    def _improve(
        self, x0: np.ndarray, plan: Plan, start: Start, setting: Setting, watch: Watch
    ) -> Run:
        """Real-time steps; a kernel shifts the nodes by itself."""
        memory, run = self._memory, start.run
        mode, barrier, is_warm = REAL_TIME, self._real_time(plan), run is not None
        if memory is None:
            given = {} if run is None else {"before": run.point, "mu": run.mu, "K": run.K}
            point = self._starting_point(mode, start.nodes, setting, barrier, x0, **given)
            return run_in_numpy(point, mode, barrier, 0.0, watch, run)
        arrays = memory.arrays
        memory.give(setting, start.nodes.t)
        if run is None:
            arrays["K"][:], memory.about.cost = 0.0, np.nan
        else:
            is_moved = start.nodes.t[0] != plan.number("t") and start.shift == 0
            memory.take(self._plan_of(run, 0.0, 0.0, False) if is_moved else plan)
            about = memory.about
            about.mu, about.step, about.cost = run.mu, run.step, run.log[-1][0]
        arrays["x"][:], arrays["u"][:] = start.nodes.x, start.nodes.u
        arrays["log"][0] = np.nan
        options: dict[str, Any] = {"barrier": barrier, "curved": self.second_derivatives}
        # A kernel adds up to MORE by itself; with a watch it is to come back after each.
        most = 1 - self.settings.steps_more if watch.is_needed else watch.left
        resume = WARM if is_warm else FRESH
        status = memory.run(
            x0, mode, max_iterations=most, shift=start.shift == 1, resume=resume, **options
        )
        steps, log = memory.about.iterations, told(status, memory)
        while watch.is_needed and status == ITERATIONS:
            if (
                len(log) >= watch.left + (self.settings.steps_more if self._is_far(memory) else 0)
                or watch.is_over()
            ):
                break
            status = memory.run(x0, mode, max_iterations=most, resume=RESUME, **options)
            if status in (ITERATIONS, STALLED):
                log = np.vstack([log, arrays["log"][:1]])
        if status != NOT_FINITE and memory.go_back():
            log[-1] = told(status, memory)[-1]
        if watch.is_needed and steps:
            steps = len(log) - (status == STALLED)
        return Run.of(status, memory, steps, log)

    def _is_far(self, memory: Memory) -> bool:
        """What a kernel asks itself after a real-time step; see `InteriorPoint.is_far`."""
        about = memory.about
        excess = self.transcription.rows.excess(memory.arrays["rows"])[:, self.model.hard_limits]
        off = max(about.stationarity, about.violation)
        return (
            off > self.settings.far
            or about.step < self.settings.step_good
            or not (excess <= self.settings.violation_kept).all()
        )


SOLVERS["interior_point"] = InteriorPointSolver

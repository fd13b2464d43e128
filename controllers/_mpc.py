"""MPC: model predictive control on the group, one step of its solver a sample."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable
from dataclasses import replace
from math import ulp
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value, trace
from lgcontrol.codegen._internal import (
    MOST_SUBSTEPS,
    UnknownNameError,
    check_quotient,
    check_shape,
    find_compiler,
    interruptible,
    level_outside,
    notice,
    unknown_name,
)
from lgcontrol.groups import LieGroup, check_element
from lgcontrol.optimal import (
    InteriorPointSolver,
    OptimalControlProblem,
    Plan,
    Rates,
    Residual,
    Settings,
    Solver,
    SolveStatus,
)
from lgcontrol.optimal._internal import (
    CROWDED,
    ProblemOptions,
    make_solver,
    prepare_sampling,
    sample_reference,
    sensitivities_of,
    starts_of,
    takes_problem_options,
)
from lgcontrol.simulation import CallStatus
from lgcontrol.simulation._internal import KernelLaw
from lgcontrol.systems import Parameter, ReferenceLike, System, Trajectory
from lgcontrol.systems._internal import Parameters, ParameterValues, on_constraints

from ._base import CLOCK_ROUNDING, Controller, clock_time, steers
from ._fixed import CURRENT, Fixed, check_settable
from ._lqr import EARLY
from ._mpc_delay import Delay
from ._mpc_export import export_mpc
from ._mpc_info import MPCInfo
from ._mpc_kernel import ANSWERS, ODD, KernelCalls, kernel_law
from ._mpc_loop import Loop, Preview, follows
from ._mpc_parts import LoopParts
from ._mpc_plan import Ask, Planner
from ._mpc_rates import InputRates
from ._mpc_state import loop_of, state_layout, state_of
from ._real_time import RealTime
from ._steady_disturbance import DisturbanceEstimator, SteadyDisturbance

# Names that a message lists before it counts the others.
MOST_NAMED = 8
SETTINGS = Settings()  # where none are given
# Seconds of a call that is slow, and how many without compiled functions lead to a notice.
SLOW, MOST_SLOW = 1e-3, 20
# What controls do between two calls.
HOLDS = ("zero", "first")


def _of_problem(name: str, doc: str) -> property:
    return property(lambda self: getattr(self._stated, name), doc=doc)


class MPC(Controller, metaclass=Fixed):
    """Solves an optimal control problem from the measured state at every call.

    The first plan is iterated to convergence from the initial guess that costs least. `prepare`
    makes it, which `simulate` calls before its run, or else the first call. Every later call takes
    the plan of the previous call, shifted by the time between them. It makes one full step of its
    solver (a real-time iteration). Both signs of a quaternion are the same state, and 180° is as
    good as any angle.

    The constructor compiles nothing. A loop that begins (`prepare`, `reset`, `simulate`) compiles
    the functions of the problem, unless `lgcontrol.codegen.set_compile_policy` says otherwise.

    Parameters
    ----------
    system : System
    horizon : int
        Number of steps.
    dt : float or array_like, shape (horizon,), optional
        Length of a step in s; may be left out for discrete systems. Or the lengths of all steps,
        such as short ones first: a long horizon of few steps. The first one is the period.
    Q, R, terminal, bounds, residuals, costs, parameters, method, substeps
        See `OptimalControlProblem`.
    hold : {"zero", "first"}
        Controls between two calls: held, or linear in time. With "first" an answer is the value at
        the end of the period: the actuator moves to it from the last answer, or from `applied`.
        `simulate` does that. Delay, split calls and estimated disturbances are for held controls.
    rates : Rates, optional
        Weight and limit of the inputs' rates. The rates start at `applied`: the last answer, or the
        inputs of the reference before there is one. Inputs and their limits stay those of the
        system.
    reference : optional
        Followed when a call brings none: a constant state, a TrimPoint, or a Trajectory, which is
        seen in advance.
    guess : controller, Trajectory or str
        Initial guess of new plans. "auto" is the policy of the system or, without one, "cheapest";
        other words are those of ``solver.solve(guess=…)``.
    solver : Solver or str, optional
        A name of `lgcontrol.optimal.SOLVERS` or a solver whose settings to take, as in
        ``solver=InteriorPointSolver(settings=…)``.
    settings : Settings, optional
        Tuned numbers of the loop and of its solver; a solver that is given keeps its own.
    delay : float
        Time from call to effect in s, part of a period or several. The model predicts over
        the delay, with the inputs that are on their way, before it plans.
    real_time : RealTime, optional
        Period of the calls, iterations and time of a call, restarts, split calls:
        ``real_time=RealTime(iterations=2, budget=0.01)``.
    disturbance : str, iterable of str or SteadyDisturbance
        Inputs of role "disturbance" that are unknown and constant, for control without offset. The
        controller estimates them and tracks the reachable steady state closest to the reference.
        ``terminal="riccati"`` stays the weight at the reference.
    p : mapping or array_like, optional
        Parameters of the system and of the problem, nominal if left out. They may change while it
        runs: a call brings some (``mpc(t, x, reference, p={"payload.mass": 2.0})``), or
        ``mpc.parameters = {…}`` sets them. Goals, obstacles and (by `symbolic`) limits and
        weights that are parameters change without anything being compiled again.

    Attributes
    ----------
    state : Plan
        Warm start of the next call, as one value to save, copy or stack; see `reset`.
    plan : Trajectory
        What the last call intends: N + 1 states and N inputs. None before the first.
    info : MPCInfo
    applied : ndarray
        Controls that act when the next answer takes effect: those answered last. To be set where
        the actuators are known to do something else.
    problem : OptimalControlProblem
        The optimal control problem that is solved. With `rates` its state ends with the inputs, and
        its controls are their rates.
    solver : Solver
    horizon, Q, R, terminal, substeps
        Of the problem, weights as matrices.
    disturbance : dict of str to float
        Estimates of the disturbances, in their units.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import Input
    >>> pendulum = System(
    ...     "pendulum", Product(angle=SO2, rate=Rn(1)),
    ...     lambda t, x, u, p: ca.vertcat(x[2], u - ca.sin(x[1])),
    ...     inputs=[Input("torque", "N m", -0.5, 0.5)])
    >>> swing_up = MPC(pendulum, horizon=60, dt=0.1, Q={"angle": 1, "rate": 0.1}, R=0.01)
    >>> u = swing_up(0.0, [1.0, 0.0, 0.0], reference=[-1.0, 0.0, 0.0])
    >>> abs(u.round(6))
    array([0.5])

    The state is a value. A loop goes on from it, here or in another process:

    >>> saved = swing_up.state.column()
    >>> again = MPC(pendulum, horizon=60, dt=0.1, Q={"angle": 1, "rate": 0.1}, R=0.01)
    >>> again.reset(Plan.from_column(swing_up.state.layout, saved))
    >>> again.plan.u.shape
    (60, 1)
    """

    _own_checks = "horizon dt bounds residuals costs parameters rates substeps real_time"

    info: MPCInfo

    @takes_problem_options
    def __init__(
        self,
        system: System,
        horizon: int,
        dt: ArrayLike | None = None,
        *,
        hold: str = "zero",
        rates: Rates | None = None,
        reference: ReferenceLike | None = None,
        guess: Controller | Trajectory | str = "auto",
        solver: Solver | str | None = None,
        settings: Settings | None = None,
        delay: float = 0.0,
        real_time: RealTime | None = None,
        disturbance: str | Iterable[str] | SteadyDisturbance = (),
        p: Parameters | None = None,
        **problem: Unpack[ProblemOptions],
    ) -> None:
        if hold not in HOLDS:
            raise UnknownNameError(unknown_name("hold of an MPC", hold, HOLDS))
        self._stated = stated = OptimalControlProblem(system, horizon, dt, hold=hold, **problem)
        for name, value, kind, example in (
            ("rates", rates, Rates, "Rates(weight=…, limit=…)"),
            ("real_time", real_time, RealTime, "RealTime(iterations=…, budget=…)"),
            ("settings", settings, Settings, "Settings(name=value, …)"),
        ):
            if not (value is None or isinstance(value, kind)):
                raise TypeError(f"{name} must be {example}, not {value!r}")
        work = RealTime() if real_time is None else real_time
        first = float(stated.steps[0])
        period = first if work.period is None else work.period
        super().__init__(
            system, dt=period, offset=work.offset, delay=delay, reference=reference, p=p
        )
        self._fixed = {name for name in vars(self) if name[0] != "_"} - {*CURRENT}
        if rates is not None and hold == "zero" and not stated.has_equal_steps:
            raise ValueError(
                f"rates of held controls need steps of one length, got {stated.grid}: give dt as "
                'one number, or hold="first"'
            )
        view = InputRates(system, rates, self.dt, hold)
        for what, is_used in (
            ("a delay", self.delay > 0), ("split=True", work.split),
            ("disturbance=", isinstance(disturbance, SteadyDisturbance) or bool(disturbance)),
            ("a period longer than dt", self.dt > first * (1 + EARLY)),
        ):  # fmt: skip
            if hold == "first" and is_used:
                raise ValueError(
                    f'hold="first" moves controls within a period, and {what} is for held ones: '
                    'leave it out, or take hold="zero"'
                )
        planned = view.problem(stated)
        if system.is_discrete:
            for name, value in (("period", self.dt), ("delay", self.delay)):
                _check_multiple(system, name, value)
        check_quotient("steps of the delay", self.delay / planned.dt, MOST_SUBSTEPS)
        if isinstance(guess, str) and guess != "auto":
            starts_of(planned.system, guess)
        if not view.is_plain and not isinstance(guess, str):
            raise TypeError(
                f"with {'linear controls' if rates is None else 'rates'} plans start from a word, "
                f"as guess='cheapest', not {guess!r}"
            )
        if settings is not None and solver in (None, "interior_point"):
            solver = InteriorPointSolver(settings=settings)
        numbers = SETTINGS if settings is None else settings
        chosen = make_solver(solver, planned)
        if work.split and not chosen.has_feedback:
            raise ValueError(
                f"split=True needs the feedback of a plan, which {type(chosen).__name__} does "
                "not have: take solver='interior_point'"
            )
        estimator, self._slow = None, 0
        if isinstance(disturbance, SteadyDisturbance) or disturbance:
            if not isinstance(disturbance, SteadyDisturbance):
                disturbance = SteadyDisturbance(disturbance)
            estimator = DisturbanceEstimator(
                system, disturbance, numbers.bias_settling * self.dt, method=planned.method,
                substeps=planned.substeps,
                Q=stated.weight("Q").at(stated.nominal_parameters),
                unobservable=numbers.bias_unobservable,
            )  # fmt: skip
        self._parts = LoopParts(
            system, view, Delay(system, self.delay, self.dt),
            Planner(planned, chosen, numbers, work, guess), estimator,
        )  # fmt: skip
        self._forget()
        self._warn_of_limits()

    def _warn_of_limits(self) -> None:
        """Warn of limits that the system knows and no bound mentions."""
        system, ignored = self.system, self._stated.ignored_limits
        if not ignored:
            return
        block = ignored[0].partition(".")[0]
        shown = ", ".join(name.removeprefix(f"{block}.") for name in ignored[:MOST_NAMED])
        several = f" and {len(ignored) - MOST_NAMED} more" if ignored[MOST_NAMED:] else ""
        warnings.warn(
            f"plans of {system.name} know nothing of the limits of {shown}{several}: give "
            "bounds=[Bound('limits', soft=100)], whose numbers are those of "
            f"{system.name}.limits, or Bound({block!r}, lower, upper, soft=100) with your own",
            RuntimeWarning,
            stacklevel=level_outside(),
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what would have no effect: all but the current state is fixed."""
        if name[0] != "_" and name not in CURRENT and self.__dict__.get("_is_made"):
            check_settable(self, name, self._fixed)
        super().__setattr__(name, value)

    # What it is

    @property
    def problem(self) -> OptimalControlProblem:
        """The problem that is solved; with rates its controls are those of the inputs."""
        return self._parts.planner.problem

    @property
    def solver(self) -> Solver:
        """What solves it."""
        return self._parts.planner.solver

    @property
    def settings(self) -> Settings:
        """Tuned numbers of the loop."""
        return self._parts.planner.settings

    @property
    def real_time(self) -> RealTime:
        """Times of the calls, and the work of a call."""
        return self._parts.planner.real_time

    @property
    def rates(self) -> Rates | None:
        """Weight and limit of the inputs' rates."""
        return self._parts.rates.rates

    @property
    def hold(self) -> str:
        """Whether controls are held between calls ("zero"), or move to the answer ("first")."""
        return self._parts.rates.hold

    @property
    def guess(self) -> Controller | Trajectory | str:
        """Initial guess of new plans."""
        return self._parts.planner.guess

    horizon = _of_problem("horizon", "Number of steps.")
    Q = _of_problem("Q", "Weight on the error, per s, shape (dim, dim).")
    R = _of_problem("R", "Weight on the controls, per s, shape (m, m).")
    terminal = _of_problem("terminal", "Weight on the last error, shape (dim, dim), or 'riccati'.")

    @property
    def substeps(self) -> int:
        """Steps of the integrator in a step of the plan."""
        return self.problem.substeps

    @property
    def _first_step(self) -> float:
        return float(self.problem.steps[0])

    @property
    def _declared(self) -> tuple[Parameter, ...]:
        return self._stated.all_parameters

    @property
    def _nominal_parameters(self) -> np.ndarray:
        return self._stated.nominal_parameters

    def __repr__(self) -> str:
        """System, horizon, period, weights on the diagonal and bounds."""
        problem = self.problem
        period = "" if self.dt == problem.steps[0] else f"called every {self.dt:g} s, "
        substeps = "" if problem.substeps == 1 else f"{problem.substeps} substeps, "
        return (
            f"MPC({self.system.name!r}, {problem.grid}, {period}{substeps}"
            f"{self._stated.terms}{'' if self.rates is None else f', {self.rates}'}"
            f", {self.info.status})"
        )

    def with_parameters(self, values: Parameters) -> Self:
        """Copy with other values of the named parameters, at the start of its loop."""
        other = super().with_parameters(values)
        other._take(self.problem)
        return other

    def symbolic(self, *names: str) -> Self:
        """Copy in which limits, weights are parameters; see `OptimalControlProblem.symbolic`."""
        other = self._copy()
        other._stated = self._stated.symbolic(*names)
        other._take(self._parts.rates.problem(other._stated))
        own = self._values.constant
        nominal = np.concatenate([own, other._nominal_parameters[len(own) :]])
        other._values = ParameterValues(other._declared, nominal, self._values.functions)
        other._p = other._values.at(other.offset)
        return other

    def _take(self, problem: OptimalControlProblem) -> None:
        """Solve this problem from now on, from nothing."""
        self._parts, self._last = self._parts.of(problem), None
        self._forget()

    def _forget(self) -> None:
        """Know nothing of earlier calls."""
        self.info, self._kernel = MPCInfo(), KernelCalls()
        self._rules = self._parts.began()

    def __getstate__(self) -> dict[str, Any]:
        """Without memory of the kernel, which the next call finds again."""
        return self.__dict__ | {"_rules": self._loop, "_kernel": KernelCalls()}

    @property
    def _loop(self) -> Loop:
        """What changes from call to call."""
        self._rules = self._kernel.caught_up(self._rules, self._parts.estimator)
        return self._rules

    @_loop.setter
    def _loop(self, loop: Loop) -> None:
        self._rules, self._kernel.is_ahead = loop, False

    # What it goes on with

    @property
    def disturbance(self) -> dict[str, float]:
        """Estimates of the disturbances, in their units."""
        return (
            {}
            if self._parts.estimator is None
            else self._parts.estimator.by_name(self._loop.disturbance)
        )

    @property
    def plan(self) -> Trajectory | None:
        """States and inputs that the last call intends."""
        found = self._loop.plan.found
        return None if found is None else self._parts.rates.trajectory(found, self._first_step)

    @property
    def applied(self) -> np.ndarray:
        """Controls that act when the next answer takes effect, at which rates begin."""
        return self._acting(self._loop, self._time, self.reference).copy()

    @applied.setter
    def applied(self, controls: ArrayLike) -> None:
        given, sent = check_shape("applied", controls, (len(self._controls),)), self._loop.sent
        start = sent[-1][0] if sent else self._time
        self._loop = self._loop._replace(sent=(*sent[:-1], (start, given)))

    @property
    def state(self) -> Plan:
        """Warm start of the next call: a value to copy, pickle, save or stack.

        It holds the plan with its multipliers and gains, recent cost and answers that are on their
        way. It also holds the estimate of the disturbance and the last clock. ``reset(state)`` of
        this MPC, or of another one of the same task, continues from it. The answers are the same to
        the last bit if the first was compiled as well (`prepare`), else up to rounding. A preview
        is not part of it.
        """
        return state_of(self)

    def sensitivities(self) -> Any:
        """Derivatives of the plan of the last call; those of its first controls are of the answer.

        The plan is solved to convergence first, which takes some iterations. So derivatives are
        those of the optimal answer, of which a call with few iterations falls a little short. They
        are by the state that the plan begins with: the measured one, with a delay the one predicted
        for the time of effect, with rates of inputs followed by the inputs that act then.

        Returns
        -------
        Sensitivities
            As of `OptimalSolution.sensitivities`: ``by("x0").u[0]`` is the feedback at the active
            limits, ``by("reference").u[0]`` and ``by("mass").u[0]`` are those by goal and mass.

        Raises
        ------
        RuntimeError
            If there was no call before.
        NotImplementedError
            If the controller estimates disturbances: its target moves with the estimate.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.systems import System
        >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=["push"])
        >>> mpc = MPC(cart, 10, 0.1, reference=[0.0, 0.0])
        >>> u = mpc(0.0, [0.5, 0.0])
        >>> mpc.sensitivities().by("x0").u[0].shape  # push by position and speed
        (1, 2)
        """
        found = self._loop.plan.found
        if found is None:
            raise RuntimeError("there is no plan yet: call the controller, or prepare(x=…), first")
        if self._parts.estimator is not None:
            raise NotImplementedError(
                "sensitivities of an MPC with disturbance= are not there, its target moves with "
                "the estimate: take those of mpc.problem.solve(x, reference=…)"
            )
        return sensitivities_of(found)

    def reset(self, state: Plan | None = None) -> None:
        """Begin a new loop, for which the problem's functions are compiled.

        Parameters
        ----------
        state : Plan, optional
            Of `state`, to go on from; without it everything is forgotten.

        Raises
        ------
        ValueError
            If the state belongs to another task.
        TypeError
            If it is no state.
        """
        if state is not None:
            if not isinstance(state, Plan):
                raise TypeError(
                    f"state must be a Plan, what mpc.state returned, not {type(state).__name__}; "
                    "Plan.from_column makes one of a column that was saved"
                )
            state.check(state_layout(self))
        super().reset()
        calls = self._kernel.calls
        self._forget()
        self._kernel.calls = calls  # its memory serves the next loop
        if state is not None and int(state.number("substeps")) != self.problem.substeps:
            self._take(
                self.problem.integrated_by(self.problem.method, int(state.number("substeps")))
            )
        self.solver.reset()
        self.solver.prepare()
        if self._parts.estimator is not None:
            self._parts.estimator.prepare()
        if state is not None:
            self._time, self._last, self._loop = loop_of(self, state)

    @interruptible
    def prepare(
        self,
        t: float = 0.0,
        x: ArrayLike | None = None,
        reference: ReferenceLike | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Get ready for a loop: compile, and plan from a state to convergence.

        Compiling takes seconds the first time (a notice says so if it is long). It takes
        milliseconds if the code is found on disk, as it is for other weights, horizons and bounds.
        `simulate` does all this before its run. Without `prepare` the first call plans, and calls
        stay interpreted; with ``wait=False`` they are until the code is there.

        Parameters
        ----------
        t : float
            Time of the first call in s.
        x : array_like, shape (nq,), optional
            State that is expected then; without it nothing is planned.
        reference : optional
            As in a call.
        wait : bool
            False compiles beside the program: calls are interpreted until that is done, the first
            input is there at once. Solvers that cannot do that compile now.

        Raises
        ------
        ValueError
            If the state or the reference has the wrong size, or there is a state and no reference.
        """
        super().prepare(t, x, reference)
        self._slow = MOST_SLOW  # nothing to advise
        goal = self.reference if reference is None else reference
        if x is not None:
            self.check_reference(goal)
        if wait:
            prepare_sampling(self.system, goal, self.problem.horizon + 1)
        self.solver.prepare(wait=wait)
        if x is None:
            return
        with np.errstate(all="ignore"):
            try:
                state = check_element("x", x, self.system.state)
                state = on_constraints(self.system, "x", state, self._own, warn=False)
            except ValueError:  # the first call will say so
                return
            start, loop, state = self._parts.at_effect(self._loop, float(t), state, self._own)
            if not np.isfinite(state).all():
                return
            began = time.perf_counter()
            state = self._whole(loop, state, start, goal)
            loop = self._keep_up(loop, state, start, goal)
            ask = Ask(state, start, goal, goal, self._p, began, np.inf)
            self._loop, self.info = self._parts.first(loop, ask)

    def preview(self, t: float, reference: ReferenceLike | None = None) -> None:
        """Do before a call what can be done before: plan from the state that is expected then.

        If the next call is for that time and reference, with the same parameters, it takes the
        first input of this plan and a feedback. The feedback multiplies the deviation from the
        expected state by the derivative of a whole call's answer. Both answers are the same for the
        expected state; next to it they differ by the square of the deviation. Other calls plan as
        usual.

        Parameters
        ----------
        t : float
            Time of the next call in s.
        reference : optional
            As in the next call.

        Raises
        ------
        RuntimeError
            If there was no call before.
        """
        goal, loop = self.reference if reference is None else reference, self._loop
        if loop.seen is None or loop.plan.found is None:
            raise RuntimeError("there is nothing to go on from: call the controller first")
        if not self.solver.has_feedback:
            raise RuntimeError(
                f"{type(self.solver).__name__} has no feedback: take solver='interior_point'"
            )
        t, began = clock_time(t), time.perf_counter()
        with np.errstate(all="ignore"):
            self._p = self._values.at(t)
            seen, x = loop.seen
            if not self._follows(seen, t):  # nothing says where the state will be then
                return
            start = t + self.delay
            state = self._predicted(loop, seen, x, start)
            if not np.isfinite(state).all():
                return
            state = self._whole(loop, state, start, goal)
            ask = Ask(state, start, goal, goal, self._p, began, np.inf)
            loop, info = self._planned(loop, ask)
            found = loop.plan.found
            assert found is not None
            if found.status is SolveStatus.FAILED:
                self._loop = loop
                return
            K = self.solver.feedback(found.plan)
        preview = Preview(t, start, state, found, K, goal, self._p.copy(), info)
        self._loop = loop._replace(preview=preview)
        self.info = replace(self.info, preview_time=time.perf_counter() - began)

    def feedback(self, x: ArrayLike) -> np.ndarray:
        """The call that was previewed: its controls for the state measured then.

        Parameters
        ----------
        x : array_like, shape (nq,)

        Returns
        -------
        ndarray, shape (n_controls,)

        Raises
        ------
        RuntimeError
            If no preview waits for its state.
        """
        preview = self._loop.preview
        if preview is None:
            raise RuntimeError("no preview waits for a state: preview(t) comes first")
        return self(preview.t, x, preview.reference)

    @interruptible
    def export_c(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        x0: ArrayLike | None = None,
        calls: int = 5,
    ) -> Path:
        """Write the controller as plain C99 that needs nothing else, for firmware.

        One source with its header: ``<name>_init``, ``_step``, ``_solve``, ``_reset``; all memory
        is in one struct of the caller's, nothing is allocated and nothing is global. The header
        tells sizes, names, units and bounds. The folder also holds test vectors, an example that
        checks them and prints sizes, and a CMakeLists.txt.

        Reference and parameters are those of this controller, and may be written at run time; a
        reference that moves is refused. The first plan starts as `guess` says. Firmware predicts
        over the delay, looks for jumps, estimates disturbances and integrates `rates` as Python
        does: it is the same text.

        Parameters
        ----------
        folder : path
            New, empty, or exported before and not changed since.
        name : str, optional
            Prefix of all names; ``"<system>_mpc"`` if left out.
        x0 : array_like, shape (nq,), optional
            State at which the test vectors begin; near the reference if left out.
        calls : int
            Of the test vectors, along a nominal closed loop.

        Returns
        -------
        Path

        Raises
        ------
        FileExistsError
            If the folder holds anything that was not exported, or was changed since.
        NotImplementedError
            If the solver, the start or a reference that moves have no C code; the
            message says what has.
        """
        return export_mpc(self, folder, name, x0, calls)

    def check_reference(self, reference: ReferenceLike | None = None) -> None:
        """Refuse what no run can begin with; `simulate` asks before it compiles anything.

        Parameters
        ----------
        reference : optional
            As in a call.

        Raises
        ------
        ValueError
            If the reference has the wrong size, or there is none.
        """
        goal = self.reference if reference is None else reference
        sample_reference(self.system, goal, np.array([self.offset]), self._own)

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: ReferenceLike | None = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Residuals that say the group of their error; see `Residual`."""
        system, found = self.system, {}
        p = np.array([self._values.at(float(t)) for t in times])
        shapes = {"t": (), "x": (system.state.nq,), "u": (system.n_inputs,), "p": self._p.shape}
        for residual in self._stated.residuals:
            group = residual.group
            if group is None:
                continue

            def build(
                t: Value, x: Value, u: Value, p: Value, residual: Residual = residual
            ) -> Value:
                return residual.expression(system, t, x, u, p)

            error = trace(
                "task_error", build, shapes, {"error": (group.dim,)}, symbol=system.symbol
            )
            found[residual.name] = (error(times, x, system.nominal_input, p), group)
        return found

    def tracked_errors(self) -> np.ndarray | None:
        """Errors with a weight in Q or at the end; see `Controller`."""
        stated, own = self._stated, self._stated.nominal_parameters
        weights = [np.asarray(stated.weight("Q").at(own))]
        if not isinstance(stated.terminal, str):
            weights.append(np.asarray(stated.weight("terminal").at(own)))
        return np.any([weight.any(axis=1) for weight in weights], axis=0)

    def bounded_quantities(
        self, times: np.ndarray, x: np.ndarray, u: np.ndarray, states: np.ndarray | None = None
    ) -> dict[str, tuple[np.ndarray, float, float, str]]:
        """Bounded quantities of the plans, for the record of a run; see `Controller`."""
        stated = self._stated
        found = stated.bounded(times, x, u, self._p, states)
        return {name: (*entry, stated.bound_unit(name)) for name, entry in found.items()}

    def obstacles(self) -> tuple[dict[str, Any], np.ndarray]:
        """What plans keep bodies out of, by name, and the parameters that places depend on."""
        return self._stated.obstacles, self._p

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        began = time.perf_counter()
        try:  # measured: noise violates the constraints of a closed mechanism
            x = on_constraints(self.system, "x", x, self._own, warn=False)
        except ValueError as error:
            self._loop = self._loop.at(t, self._seconds)
            return self._held_from(t + self.delay, t, reference, str(error))
        if self._plans_in_c:
            return self._called(t, x, reference, began)
        loop = self._loop.at(t, self._seconds)
        preview, loop = loop.preview, loop._replace(preview=None)
        loop, outrun = self._keep_to_known(loop, t, x)
        loop = self._parts.observed(loop, t, x, self._own)
        start, loop, state = self._parts.at_effect(loop, t, x, self._own)
        if state is not x and not np.isfinite(state).all():
            self._loop = loop
            text = f"the state predicted for t = {start:g} s is not finite"
            return self._held_from(start, t, reference, text)
        loop = loop._replace(seen=(t, x))
        if self._parts.delay.is_full(loop.sent, start):
            self._loop = loop
            return self._hold(t, reference, CROWDED)
        state = self._whole(loop, state, start, reference)
        if preview is not None and not outrun and preview.fits(t, reference, self._p):
            u = preview.answer(self.problem, state)
            spent = time.perf_counter() - began
            self.info = replace(preview.info, is_feedback=True, solve_time=spent)
        else:
            budget = self.real_time.budget
            ask = Ask(state, start, reference, reference, self._p, began, budget)
            loop, self.info = self._planned(loop, ask)
            assert loop.plan.found is not None
            u = loop.plan.found.u[0].take(self.problem.input_limits.controls)
        if outrun:
            text = "; ".join(filter(None, [outrun, self.info.message]))
            self.info = replace(self.info, status=CallStatus.UNSOLVED, message=text)
        limits = loop.limits.at(self._stated, self._p)
        u = limits.applied(self._parts.rates.inputs(state, u, self._first_step))
        self._loop = loop._replace(limits=limits, sent=self._parts.delay.send(loop.sent, start, u))
        if self.real_time.split:
            self.preview(t + self.dt, reference)
        self._look_at(time.perf_counter() - began)
        return u

    def _look_at(self, seconds: float) -> None:
        """After some slow calls without compiled functions, say once what makes them faster."""
        if seconds < SLOW or self._slow >= MOST_SLOW or self.solver.is_prepared:
            return
        self._slow += 1
        if self._slow < MOST_SLOW:
            return
        remedy = "mpc.prepare() compiles them, so does simulate before a run"
        if find_compiler() is None:
            remedy = f"install a C compiler, gcc or clang; then {remedy}"
        notice(
            f"slow calls of {self.system.name}",
            f"{MOST_SLOW} calls of an MPC of {self.system.name} took more than {1e3 * SLOW:g} ms, "
            f"the last {1e3 * seconds:.1f} ms: its functions are interpreted: {remedy}",
        )

    @property
    def _plans_in_c(self) -> bool:
        """Whether the kernel has all rules that a call needs."""
        work = self.real_time
        return (
            self.solver.has_loop
            and (self._parts.rates.is_plain or self._parts.estimator is None)
            and not work.split
            and (isinstance(self.guess, str) or self._is_planned)
            and self._rules.preview is None
        )

    @property
    def _is_planned(self) -> bool:
        """Whether there is a plan to go on from."""
        return self._kernel.is_ahead or self._rules.plan.found is not None

    def _called(
        self, t: float, x: np.ndarray, reference: ReferenceLike | None, began: float
    ) -> np.ndarray:
        """A call of the kernel."""
        start = t + self.delay
        if not self._kernel.is_ahead:
            self._rules = self._rules.at(t, self._seconds)
            if self._rules.plan.found is None:  # nobody prepared this loop
                whole = self._whole(self._rules, x, t, reference)
                self._rules = self._keep_up(self._rules, whole, start, reference)
        kernel, work = self._kernel, self.real_time
        calls, outrun = self._kernel_loop(), ""
        if not kernel.is_ahead:
            estimator, known = self._parts.estimator, self._rules.disturbance
            numbers = np.zeros(0) if estimator is None else estimator.numbers(known)
            kernel.take(self._rules, self._last, numbers)
        if self._p is not calls.p:
            self._rules, outrun = self._keep_to_known(self._rules, t, x)
        looks = 0 if self.problem.costs else work.looks
        most = work.most_iterations
        calls.set(work.iterations, work.first_iterations, most, self._parts.planner.word, looks)
        u = self._told(t, x, reference, began, outrun)
        assert u is not None  # what comes here is a state
        return u

    def _kernel_loop(self) -> Any:
        """The loop of the kernel, made anew where functions were compiled in between."""
        kernel = self._kernel
        if kernel.calls is None or not kernel.calls.is_current:
            self._rules = kernel.caught_up(self._rules, self._parts.estimator)
            solver: Any = self.solver
            known = None if self._parts.estimator is None else self._parts.estimator.in_kernel
            rates, nominal = self._parts.rates.in_kernel(self._stated), self.system.nominal_input
            kernel.calls = solver.loop(self.delay, self.dt, nominal, known, rates)
        return kernel.calls

    def compiled_law(self, plant: System, reference: ReferenceLike | None) -> KernelLaw | None:
        """Calls of the kernel without Python, for loops; see `KernelLaw`."""
        goal = self.reference if reference is None else reference
        if (
            type(self)._control is not MPC._control
            or self.system.project is not None
            or self.system.state != plant.state
            or not steers(self, plant)
            or self._values.functions
            or self.real_time.budget < np.inf
            or not self._plans_in_c
            or not self._kernel_loop().keeps_still(goal)
        ):
            return None
        calls = self._kernel_loop()

        def is_ready() -> bool:
            kernel = self._kernel
            return (
                kernel.is_ahead
                and kernel.calls is calls
                and calls.is_current
                and self._values.constant is self._p
                and calls.keeps(goal, self._p)
                and not calls.contradicts
                and self._plans_in_c
            )

        def say(t: float, u: np.ndarray, elapsed: float) -> MPCInfo:
            calls.called(elapsed)
            restart = self._kernel.began_anew((calls.reference, calls.p), goal, self._p)
            self._tell(calls.struct.status, elapsed, restart, "")
            vars(self).update(_time=t, _last=u)
            return self.info

        return kernel_law(self, calls, is_ready, say)

    def _answer(
        self, t: float, x: np.ndarray, goal: ReferenceLike | None, values: ParameterValues
    ) -> np.ndarray:
        """What changed since the last call is looked at in Python, all else in the kernel."""
        with self._kernel.lock:  # of threads that share this controller
            kernel, u = self._kernel, None
            calls = kernel.calls
            if (
                kernel.is_ahead
                and type(self)._control is MPC._control  # a subclass may do more
                and calls.is_current
                and ulp(t) < CLOCK_ROUNDING * self.dt
                and values.at(t) is calls.p is self._p
                and self._plans_in_c
                and self.system.project is None
            ):
                u = self._told(t, x, goal, time.perf_counter(), "")
            if u is None:
                return super()._answer(t, x, goal, values)
            vars(self).update(_time=t, _last=u)  # the guard of attributes takes a microsecond
            return u.copy()

    def _told(
        self, t: float, x: np.ndarray, reference: ReferenceLike | None, began: float, outrun: str
    ) -> np.ndarray | None:
        """Ask the kernel; None where that finds no state."""
        kernel, calls = self._kernel, self._kernel.calls
        budget = self.real_time.budget
        code, restart = kernel.call(t, x, t + self.delay, reference, self._p, began, budget)
        if code == ODD:
            return None
        self._tell(code, time.perf_counter() - began, restart, outrun)
        return calls.u.copy()

    def _tell(self, code: int, seconds: float, restart: str, outrun: str) -> None:
        """Say what the last call of the kernel is worth."""
        calls = self._kernel.calls
        vars(self)["info"] = MPCInfo.of_call(ANSWERS[code], calls, seconds, restart)
        self._look_at(seconds)
        if code or outrun or calls.contradicts:
            status, text = self.info.status, calls.why()
            if calls.contradicts and status is not CallStatus.HELD:
                status = CallStatus.INFEASIBLE
            if outrun:
                status, text = CallStatus.UNSOLVED, "; ".join(filter(None, [outrun, text]))
            self.info = replace(self.info, status=status, message=text)

    @property
    def _seconds(self) -> float:
        """Length of the horizon, s."""
        return self.problem.horizon * self.problem.dt

    def _follows(self, before: float, t: float) -> bool:
        """Whether a time can follow another."""
        return follows(before, t, self._seconds)

    def _held_from(
        self, start: float, t: float, reference: ReferenceLike | None, message: str
    ) -> np.ndarray:
        """Controls to go on with when there is no answer, which act from a time on."""
        u = self._hold(t, reference, message)
        self._loop = self._loop._replace(sent=self._parts.delay.send(self._loop.sent, start, u))
        return u

    def _predicted(self, loop: Loop, t: float, x: np.ndarray, end: float) -> np.ndarray:
        """State later, with the answers that take effect until then."""
        return self._parts.predicted(loop, t, x, end, self._own)

    def _acting(self, loop: Loop, t: float, reference: ReferenceLike | None) -> np.ndarray:
        """Controls that act when the next answer takes effect."""
        return loop.sent[-1][1] if loop.sent else self._resting_input(t, reference)

    def _whole(
        self, loop: Loop, x: np.ndarray, t: float, reference: ReferenceLike | None
    ) -> np.ndarray:
        """State of the problem."""
        if self._parts.rates.is_plain:
            return x
        return self._parts.rates.state(x, self._acting(loop, t, reference))

    def _planned(self, loop: Loop, ask: Ask) -> tuple[Loop, MPCInfo]:
        """The next plan."""
        if loop.plan.found is None:  # nobody prepared this loop
            loop = self._keep_up(loop, ask.x, ask.start, ask.reference)
        return self._parts.planned(loop, ask)

    def _keep_to_known(self, loop: Loop, t: float, x: np.ndarray) -> tuple[Loop, str]:
        """Parameters that the plan's steps keep up with; see `LoopParts.kept_to_known`."""
        if not self._is_planned or self._own.tobytes() == loop.checked.tobytes():
            return loop, ""
        whole = self._whole(loop, x, t, None)
        loop, self._p, text = self._parts.kept_to_known(loop, t, whole, self._p)
        return loop, text

    def _keep_up(
        self, loop: Loop, x: np.ndarray, start: float, reference: ReferenceLike | None
    ) -> Loop:
        """Before a first plan: substeps that keep up; see `LoopParts.keeping_up`."""
        loop, parts = self._parts.keeping_up(loop, x, start, reference, self._own)
        if parts is not self._parts:
            self._parts, self._kernel = parts, KernelCalls()
        return loop

    def _fallback(self, t: float, reference: ReferenceLike | None) -> np.ndarray:
        """Last controls, within limits as they are now; before there are any those of the plan."""
        found = self._loop.plan.found
        if self._last is None and found is not None:
            first = found.u[0, self.problem.input_limits.controls]
            u = self._parts.rates.inputs(found.x[0], first, self._first_step)
        else:
            u = super()._fallback(t, reference)
        return self._loop.limits.at(self._stated, self._p).applied(u)


def _check_multiple(system: System, name: str, seconds: float) -> None:
    """Refuse times that a discrete system does not know."""
    samples = seconds / system.dt
    if abs(samples - round(samples)) > EARLY / system.dt:
        raise ValueError(
            f"{name} = {seconds:g} s is no multiple of {system.dt:g} s, the sample time of "
            f"{system.name}"
        )

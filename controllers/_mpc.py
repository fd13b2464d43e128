"""MPC: model predictive control on the group, one step of its solver a sample."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ulp
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value, trace
from lgcontrol.codegen._internal import (
    MOST_SUBSTEPS,
    check_quotient,
    check_shape,
    interruptible,
    level_outside,
    unknown_name,
)
from lgcontrol.groups import LieGroup, check_element
from lgcontrol.integrators import Method
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    OptimalSolution,
    Plan,
    Rates,
    Residual,
    Settings,
    Solver,
    SolveStatus,
    with_rates,
)
from lgcontrol.optimal._internal import (
    ACCEPTABLE_RESIDUAL,
    ExportCase,
    WeightLike,
    beside_inputs,
    check_constant,
    make_solver,
    prepare_sampling,
    sample_reference,
    starts_of,
)
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import Parameter, ReferenceLike, System, Trajectory
from lgcontrol.systems._internal import Parameters, ParameterValues, on_constraints

from ._base import ControlInfo, Controller, clock_time
from ._lqr import EARLY
from ._mpc_state import state_layout, state_of, take_state
from ._restarts import Usual, fading_of, is_better, is_same
from ._steady_disturbance import Piece, SteadyDisturbance

# Names that a message lists before it counts the others.
MOST_NAMED = 8


@dataclass(frozen=True, repr=False)
class MPCInfo(ControlInfo):
    """What an MPC says of its last call.

    Parameters
    ----------
    status : CallStatus
        ``OK`` when the plan keeps its hard bounds from its second node on. Its first is the state
        that was measured, or predicted over the delay, where no input helps any more: a plant that
        does not do what was planned exceeds them though all calls are ``OK``, and summaries of runs
        say by how much. ``INFEASIBLE`` when bounds on the state cannot all be kept (they are
        exceeded as little as possible) or limits of an input contradict each other; ``UNSOLVED``
        when the input is that of the last plan, when the first plan, the budget or the steps of a
        call ended before they kept hard bounds that perhaps can be kept, when the first plan
        stalled before it was a motion of the system, or when the plan could not follow the system's
        new parameters, whose modes are too fast for its substeps: nothing is built in a call, so
        that it keeps the last ones; ``HELD`` as in `ControlInfo`.
    solve_time : float
        In s.
    message : str
    iterations : int
        Steps taken.
    cost : float
        Of the plan before the last step.
    qp_time : float
        Part of the solve time that the QP solver took, s.
    solve : SolveStatus or None
        What the solver says; None where it was not asked. ``TIME_LIMIT`` where the budget ended it.
    restart : str
        Why the plan begins anew instead of going on from the last one: "first", "failed" (so was
        the last one), "reference", "parameters" or "state" (it jumped); empty otherwise.
    is_feedback : bool
        Whether the input is the feedback of a plan that `MPC.preview` made.
    preview_time : float
        In s, of the preview for the next call, where calls make one.
    """

    iterations: int = 0
    cost: float = np.nan
    qp_time: float = 0.0
    solve: SolveStatus | None = None
    restart: str = ""
    is_feedback: bool = False
    preview_time: float = 0.0

    @classmethod
    def of(cls, solution: OptimalSolution, seconds: float, restart: str = "") -> MPCInfo:
        """What a solution means for the call."""
        violations = solution.violations
        if solution.status is SolveStatus.FAILED:
            status = CallStatus.UNSOLVED
        elif solution.status is SolveStatus.INFEASIBLE:
            status = CallStatus.INFEASIBLE
        elif violations and max(entry.amount for entry in violations) > ACCEPTABLE_RESIDUAL:
            status = CallStatus.UNSOLVED  # nothing says that they must be
        elif solution.status is SolveStatus.STALLED and solution.gap > ACCEPTABLE_RESIDUAL:
            status = CallStatus.UNSOLVED  # what is no motion is no plan
        else:
            status = CallStatus.OK
        made = object.__new__(cls)  # setting them one by one takes three times as long
        made.__dict__.update(
            status=status,
            solve_time=seconds,
            message="" if status is CallStatus.OK else solution.message,
            iterations=solution.iterations[-1].number,
            cost=float(solution.cost),
            qp_time=solution.times.get("qp", 0.0),
            solve=solution.status,
            restart=restart,
        )
        return made

    @classmethod
    def of_call(cls, code: int, calls: Any, seconds: float, restart: str) -> MPCInfo:
        """What a call of the kernel means."""
        made = object.__new__(cls)
        made.__dict__.update(
            status=ANSWERS[code], solve_time=seconds, message="", qp_time=0.0, restart=restart,
            iterations=calls.struct.iterations, cost=calls.struct.cost, solve=calls.ended,
        )  # fmt: skip
        return made


# What calls of the kernel are worth.
ANSWERS = CallStatus.OK, CallStatus.INFEASIBLE, CallStatus.UNSOLVED, CallStatus.HELD
# Size of the error at which test vectors of an export begin.
TEST_ERROR = 0.1

# What is built into an MPC's functions, and what may be changed between calls.
_FIXED = (
    "system", "problem", "solver", "horizon", "Q", "R", "terminal", "bounds", "residuals", "costs",
    "method", "substeps", "plan", "state", "bias", "rates", "settings",
)  # fmt: skip
_CHANGEABLE = (
    "parameters", "reference", "iterations", "first_iterations", "initial", "dt", "offset", "delay",
    "budget", "restarts", "split", "applied",
)  # fmt: skip


def _of_problem(name: str, doc: str) -> property:
    return property(lambda self: getattr(self._stated, name), doc=doc)


class MPC(Controller):
    """Solves an optimal control problem from the measured state at every call.

    The first plan is iterated to convergence from the initial guess that costs least: by `prepare`,
    which `simulate` calls before its run, or else by the first call.
    Every later call takes the plan of the call before, moved on by the time between them, and makes
    one full step of its solver (a real-time iteration). Both signs of a quaternion are the same
    state, and 180° is as good as any angle.

    The constructor compiles nothing. A loop that begins (`prepare`, `reset`, `simulate`) compiles
    the functions of the problem, unless `lgcontrol.codegen.set_compile_policy` says otherwise.

    Parameters
    ----------
    system : System
    horizon : int
        Number of steps.
    dt : float, optional
        Length of a step in s; may be left out for discrete systems.
    Q, R, terminal, bounds, residuals, costs, parameters, method, substeps
        See `OptimalControlProblem`.
    rates : Rates, optional
        Weight and limit of the inputs' rates, which begin at what was answered last, within limits
        and whatever is late, or at `applied`; before there is any answer at the inputs of the
        reference. Inputs and their limits stay those of the system.
    reference : optional
        Followed when a call brings none: a constant state, a TrimPoint, or a Trajectory, which is
        seen in advance.
    period : float, optional
        Time between calls in s; dt if left out.
    iterations : int
        Steps per call.
    first_iterations : int
        Limit of the first plan.
    initial : controller, Trajectory or str
        Initial guess of the first plan. "auto" is the policy of the system or, without one,
        "cheapest"; other words are those of ``solver.solve(guess=…)``.
    solver : Solver or str, optional
        A name of `lgcontrol.optimal.SOLVERS` or a solver whose settings to take, as in
        ``solver=SQPSolver(qp="daqp")``.
    offset : float
        See `Controller`.
    delay : float
        Time from call to effect in s, any share of a period or several: the model predicts over
        it, with the inputs that are on their way, before it plans.
    budget : float
        Time for a call in s, looked at after every iteration and after every start of a new plan
        that is tried; the best plan so far is the answer.
        What `prepare` and `preview` do is not limited.
    restarts : bool or "at once"
        Whether plans begin anew where reference, parameters or state have jumped: where going on
        from the last plan, with the steps that a call takes, costs more than twice what it did
        lately (it counts less by a factor of seven a horizon). That call takes four steps more;
        the one after it does the work of two: it goes on, takes steps from a new start as well,
        and keeps the better plan. "at once" tries all starts in the call of the jump and iterates
        the best to convergence, which takes as long as a first plan does. Not where `costs` may be
        negative.
    split : bool
        Whether a call answers with the feedback of a plan that was made before, and makes the next
        one afterwards: see `preview`.
    bias : str or iterable of str
        Inputs of role "disturbance" that are unknown and steady. They are estimated from what the
        model predicted and the state that came, plans count with them, and the reference is moved
        to the steady state next to it: no error remains under steady pushes or with a wrong mass.
    settling : float, optional
        Time constant of that estimate in s; ten periods if left out. The shorter it is, the more of
        what a wrong mass does in motion is taken for a push. A Panda that carries 1 kg it does not
        know, late by 40 ms, exceeds hard limits of 2.61 rad/s by 2.0 rad/s with 0.2 s, by 1.3 with
        0.4 s, by 0.8 with 1 s, by 0.5 without an estimate and by nothing without the mass: tell the
        model the mass, or bound less than what must not be exceeded.
    settings : Settings, optional
        Tuned numbers of the loop and of its solver; a solver that is given keeps its own.
    p : mapping or array_like, optional
        Parameters of the system and of the problem, nominal if left out. They may change while it
        runs: a call brings some (``mpc(t, x, reference, p={"payload.mass": 2.0})``), or
        ``mpc.parameters = {…}`` sets them. Goals, obstacles and (by `symbolic`) limits and
        weights that are parameters change without anything being compiled again.

    Attributes
    ----------
    problem : OptimalControlProblem
        What is solved: weights, horizon and bounds are fixed when the controller is made. With
        `rates` its state ends with the inputs, and its controls are their rates.
    applied : ndarray
        Controls that act when the next answer takes effect: those answered last. To be set where
        the actuators are known to do something else.
    solver : Solver
    horizon, Q, R, terminal, substeps
        Of the problem, weights as matrices.
    plan : Trajectory
        What the last call intends: N + 1 states and N inputs. None before the first.
    state : Plan
        What the next call goes on from; see `reset`.
    info : MPCInfo

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
    """

    _own_checks = "horizon dt bounds residuals costs parameters rates substeps"

    info: MPCInfo

    def __init__(
        self,
        system: System,
        horizon: int,
        dt: float | None = None,
        *,
        Q: WeightLike = 1.0,
        R: WeightLike = 1.0,
        terminal: WeightLike | str | None = None,
        bounds: Sequence[Bound] = (),
        residuals: Sequence[Residual] = (),
        costs: Sequence[Cost] = (),
        parameters: Sequence[Parameter | str] = (),
        rates: Rates | None = None,
        method: str | Method = "auto",
        substeps: int | None = None,
        reference: ReferenceLike | None = None,
        period: float | None = None,
        iterations: int = 1,
        first_iterations: int = 50,
        initial: Controller | Trajectory | str = "auto",
        solver: Solver | str | None = None,
        offset: float = 0.0,
        delay: float = 0.0,
        budget: float = np.inf,
        restarts: bool | Literal["at once"] = True,
        split: bool = False,
        bias: str | Iterable[str] = (),
        settling: float | None = None,
        settings: Settings | None = None,
        p: Parameters | None = None,
    ) -> None:
        self._stated = OptimalControlProblem(
            system,
            horizon,
            dt,  # type: ignore[arg-type]
            Q=Q,
            R=R,
            terminal=terminal,
            bounds=bounds,
            residuals=residuals,
            costs=costs,
            parameters=parameters,
            method=method,
            substeps=substeps,  # type: ignore[arg-type]
        )
        super().__init__(
            system,
            dt=self._stated.dt if period is None else period,
            offset=offset,
            delay=delay,
            reference=reference,
            p=p,
        )
        if not (rates is None or isinstance(rates, Rates)):
            raise TypeError(f"rates must be Rates(weight=…, limit=…), not {rates!r}")
        self.rates = rates
        self.problem: OptimalControlProblem = self._planned(self._stated)
        if system.is_discrete:
            for name, value in (("period", self.dt), ("delay", self.delay)):
                _check_multiple(system, name, value)
        check_quotient("steps of the delay", self.delay / self.problem.dt, MOST_SUBSTEPS)
        if iterations < 1 or first_iterations < 1:
            raise ValueError(
                f"iterations and first_iterations must be at least 1, got {iterations} and "
                f"{first_iterations}"
            )
        for name, value in (("budget", budget), ("settling", settling)):
            if value is not None and not check_shape(name, value, (), finite=False) > 0:
                raise ValueError(f"{name} must be positive, got {value:g} s")
        if isinstance(initial, str) and initial != "auto":
            starts_of(self.problem.system, initial)
        if rates is not None and not isinstance(initial, str):
            raise TypeError(
                f"with rates plans start from a word, as initial='cheapest', not {initial!r}"
            )
        self.iterations, self.first_iterations = int(iterations), int(first_iterations)
        self.initial = initial
        if not (isinstance(restarts, bool | np.bool) or restarts == "at once"):
            raise ValueError(f"restarts must be True, False or 'at once', got {restarts!r}")
        self.budget, self.restarts, self.split = float(budget), restarts, bool(split)
        if not (settings is None or isinstance(settings, Settings)):
            raise TypeError(f"settings must be Settings(name=value, …), not {settings!r}")
        self.settings = Settings() if settings is None else settings
        if settings is not None and solver in (None, "interior_point"):
            solver = InteriorPointSolver(settings=settings)
        self.solver: Solver = make_solver(solver, self.problem)
        if split and not self.solver.has_feedback:
            raise ValueError(
                f"split=True needs the feedback of a plan, which {type(self.solver).__name__} does "
                "not have: take solver='interior_point'"
            )
        self._bias: SteadyDisturbance | None = None
        if bias:
            self._bias = SteadyDisturbance(
                system, bias,
                self.settings.bias_settling * self.dt if settling is None else float(settling),
                method=self.problem.method, substeps=self.problem.substeps, Q=self._stated.Q,
                settings=self.settings,
            )  # fmt: skip
        self._forget()
        ignored = self._stated.ignored_limits
        if ignored:
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
        self._is_made = True

    @property
    def _declared(self) -> tuple[Parameter, ...]:
        return self._stated.all_parameters

    @property
    def _nominal_parameters(self) -> np.ndarray:
        return self._stated.nominal_parameters

    def _planned(self, stated: OptimalControlProblem) -> OptimalControlProblem:
        """What is solved of a problem of the system's inputs."""
        return stated if self.rates is None else with_rates(stated, self.rates, period=self.dt)

    def with_parameters(self, values: Parameters) -> Self:
        """Copy with other values of the named parameters, at the start of its loop."""
        other = super().with_parameters(values)
        other._take(self.problem)
        return other

    def symbolic(self, *names: str) -> Self:
        """Copy in which limits, weights are parameters; see `OptimalControlProblem.symbolic`."""
        other = self._copy()
        stated = self._stated.symbolic(*names)
        object.__setattr__(other, "_stated", stated)
        other._take(other._planned(stated))
        own = self._values.constant
        nominal = np.concatenate([own, other._nominal_parameters[len(own) :]])
        other._values = ParameterValues(other._declared, nominal, self._values.functions)
        other._p = other._values.at(other.offset)
        return other

    def _take(self, problem: OptimalControlProblem) -> None:
        """Solve this problem from now on, from nothing."""
        solver = self.solver.for_problem(problem)
        self._is_made = False
        self.problem, self.solver, self._last = problem, solver, None
        self._forget()
        if self._bias is not None:
            self._bias = self._bias.fresh()
        self._is_made = True

    def _forget(self) -> None:
        """Know nothing of earlier calls."""
        self.info = MPCInfo()
        self._rules, self._calls, self._is_ahead, self._due = Loop(), None, False, ""

    def __getstate__(self) -> dict[str, Any]:
        """Without memory of the kernel, which the next call finds again."""
        self._catch_up()
        return self.__dict__ | {"_calls": None}

    @property
    def _loop(self) -> Loop:
        """What changes from call to call, as the rules in Python have it."""
        self._catch_up()
        return self._rules

    horizon = _of_problem("horizon", "Number of steps.")
    Q = _of_problem("Q", "Weight on the error, per s, shape (dim, dim).")
    R = _of_problem("R", "Weight on the controls, per s, shape (m, m).")
    terminal = _of_problem("terminal", "Weight on the last error, shape (dim, dim), or 'riccati'.")

    @property
    def substeps(self) -> int:
        """Steps of the integrator in a step of the plan."""
        return self.problem.substeps

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what would have no effect: the problem is fixed, other names are mistakes."""
        if name[0] != "_" and type(self) is MPC and self.__dict__.get("_is_made"):
            if name == "state":
                raise AttributeError("state is read only: mpc.reset(state) goes on from a state")
            if name in _FIXED:
                raise AttributeError(
                    f"{name} is fixed when an MPC is made, its functions are built for it: make a "
                    f"new one, MPC(…, {name}=…)"
                )
            if name not in self.__dict__ and name not in _CHANGEABLE:
                raise AttributeError(unknown_name("attribute of MPC", name, _CHANGEABLE))
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        """System, horizon, period, weights on the diagonal and bounds."""
        problem, n = self.problem, self.problem.horizon
        period = "" if self.dt == problem.dt else f"called every {self.dt:g} s, "
        substeps = "" if problem.substeps == 1 else f"{problem.substeps} substeps, "
        return (
            f"MPC({self.system.name!r}, {n} steps of {problem.dt:g} s, {period}{substeps}"
            f"{self._stated.terms}{'' if self.rates is None else f', {self.rates}'}"
            f", {self.info.status})"
        )

    @property
    def bias(self) -> dict[str, float]:
        """Estimates of the disturbances named by ``bias=``, in their units."""
        return {} if self._bias is None else self._bias.by_name

    @property
    def plan(self) -> Trajectory | None:
        """States and inputs that the last call intends."""
        if self._loop.found is None or self.rates is None:
            return None if self._loop.found is None else self._loop.found.trajectory
        x, rates, nq = self._loop.found.x, self._loop.found.u, self.system.state.nq
        u = np.empty((len(rates), self.system.n_inputs))
        others = np.setdiff1d(np.arange(self.system.n_inputs), self._controls)
        u[:, self._controls] = x[:-1, nq:] + self._held * rates[:, : len(self._controls)]
        u[:, others] = rates[:, len(self._controls) :]
        return Trajectory.unchecked(
            self.system.state, self._loop.found.t, x[:, :nq], u, self.system.inputs
        )

    @property
    def applied(self) -> np.ndarray:
        """Controls that act when the next answer takes effect, at which rates begin."""
        if self._loop.sent:
            return self._loop.sent[-1][1].copy()
        return self._resting_input(self._time, self.reference)

    @applied.setter
    def applied(self, controls: ArrayLike) -> None:
        given = check_shape("applied", controls, (len(self._controls),))
        self._loop.sent[-1:] = [(self._loop.sent[-1][0] if self._loop.sent else self._time, given)]

    @property
    def _held(self) -> float:
        """Time in s over which an input is held, as far as plans know."""
        return min(self.dt, self.problem.dt)

    def _whole(self, x: np.ndarray, t: float, reference: ReferenceLike | None) -> np.ndarray:
        """State of the problem: with rates what acts is beside that of the system."""
        if self.rates is None:
            return x
        now = self._loop.sent[-1][1] if self._loop.sent else self._resting_input(t, reference)
        return np.concatenate([x, now])

    def _inputs(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Controls of the system from a state and controls of the problem."""
        if self.rates is None:
            return u
        return x[self.system.state.nq :] + self._held * u[: len(self._controls)]

    @property
    def state(self) -> Plan:
        """What the next call goes on from: a value to copy, pickle, save or stack.

        It holds the plan with its multipliers and gains, recent cost, answers that are on their
        way, the estimate of the disturbance and the last clock. ``reset(state)`` of this MPC, or of
        another one of the same task, goes on from it: to the last bit if the first was compiled as
        well (`prepare`), else up to rounding. A preview is not part of it.
        """
        return state_of(self)

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
        self._forget()
        if state is not None and int(state.number("substeps")) != self.problem.substeps:
            self._take(
                self.problem.integrated_by(self.problem.method, int(state.number("substeps")))
            )
        self.solver.reset()
        self.solver.prepare()
        if self._bias is not None:
            self._bias.reset()
            self._bias.prepare()
        if state is not None:
            take_state(self, state)

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

        Compiling takes seconds the first time (a notice says so if it is long) and milliseconds
        when the code is found on disk, as it is for other weights, horizons and bounds. `simulate`
        does all this before its run. Without `prepare` the first call plans, and calls stay
        interpreted; with ``wait=False`` they are until the code is there.

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
            start, state = self._start(float(t), state)
            if not np.isfinite(state).all():
                return
            began = time.perf_counter()
            whole = self._whole(state, start, goal)
            self._keep_up(whole, self.problem.times(start), goal)
            self._first(whole, start, goal, began, "first", np.inf)

    def preview(self, t: float, reference: ReferenceLike | None = None) -> None:
        """Do before a call what can be done before: plan from the state that is expected then.

        The next call, if it is for that time and reference, with the same parameters, takes the
        first input of this plan and its feedback on how far the state is from the expected one:
        the derivative of what a whole call would answer, so that both are the same for the expected
        state and differ by the square of the error next to it. Other calls plan as usual.

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
        goal = self.reference if reference is None else reference
        if self._loop.seen is None or self._loop.found is None:
            raise RuntimeError("there is nothing to go on from: call the controller first")
        if not self.solver.has_feedback:
            raise RuntimeError(
                f"{type(self.solver).__name__} has no feedback: take solver='interior_point'"
            )
        t, began, before = clock_time(t), time.perf_counter(), self.info
        with np.errstate(all="ignore"):
            self._p = self._values.at(t)
            seen, x = self._loop.seen
            if not self._follows(seen, t):  # nothing says where the state will be then
                return
            start = t + self.delay
            state = self._predict(seen, x, start)
            if not np.isfinite(state).all():
                return
            state = self._whole(state, start, goal)
            found = self._plan(state, start, goal, began, np.inf)
            if found.status is SolveStatus.FAILED:
                self.info = before
                return
            K = self.solver.feedback(found.plan)
        self._loop.ready = _Ready(t, start, state, found, K, goal, self._p.copy(), self.info)
        self.info = replace(before, preview_time=time.perf_counter() - began)

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
        ready = self._loop.ready
        if ready is None:
            raise RuntimeError("no preview waits for a state: preview(t) comes first")
        return self(ready.t, x, ready.reference)

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
        tells sizes, names, units and bounds. Reference and parameters are those of this controller,
        and may be written at run time; a reference that moves is refused. The first plan starts as
        `initial` says. Firmware predicts over the delay as Python does. It does not look for jumps,
        as `restarts` does here: call ``_reset`` after one. Nor does it ask whether equalities can
        be satisfied at all: where that is the question, a first plan may be `unsolved` that Python
        calls `infeasible`. With `rates` the state ends with the inputs that act, and answers are
        rates of these, none where the state is no state: firmware adds them up. Besides, the folder
        holds test vectors, an example that checks them and prints sizes, and a CMakeLists.txt.

        Parameters
        ----------
        folder : path
            New, empty, or exported before and not changed since.
        name : str, optional
            Prefix of all names; ``"<system>_mpc"`` if left out.
        x0 : array_like, shape (nq,), optional
            Where the test vectors begin; near the reference if left out.
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
        for word, is_used, remedy in (
            ("bias", self._bias is not None, "estimate it beside, model it as a state or measure "
             "it, and write it to u_ref at run time"),
            ("split", self.split, "call _step with split=False here"),
            ("budget", np.isfinite(self.budget), "bound `iterations` instead; firmware has no "
             "clock that C99 knows"),
        ):  # fmt: skip
            if is_used:
                raise NotImplementedError(f"an exported MPC has no {word}: {remedy}")
        if self.delay and self.rates is not None:
            raise NotImplementedError(
                "an exported MPC with rates does not predict over its delay: give it the state "
                "then, or model the delay, system.augment(delay=…), and make the MPC with delay=0"
            )
        if not isinstance(self.initial, str):
            raise NotImplementedError(
                f"an exported MPC cannot start from {type(self.initial).__name__}: make it with "
                "initial='cheapest', or with a policy of the system and initial='policy'"
            )
        if self.reference is not None:
            check_constant(self.system, self.reference)
        word = self._word
        options: dict[str, Any] = {
            "name": name, "reference": self._aimed(self.reference, self.offset), "p": self._p,
            "period": self.dt,
            "iterations": self.iterations, "first_iterations": self.first_iterations,
            "guess": word,
        }  # fmt: skip
        if self.rates is not None:
            options["holds"] = False
        if self.delay:
            options["delay"] = self.delay
        if self.solver.has_loop:
            options["restarts"] = bool(self.restarts) + (self.restarts == "at once")
        if self.reference is None or not self.solver.has_export:
            return self.solver.export_c(folder, **options)  # which says what is missing
        return self.solver.export_c(folder, **options, cases=[self._case(word, x0, calls)])

    def _case(self, word: str, x0: ArrayLike | None, calls: int) -> ExportCase:
        """Calls from a fresh start along a nominal closed loop."""
        system, other = self.system, self._copy()
        other._take(self.problem)
        other.initial = word
        if not self.solver.has_loop:  # as in firmware
            other.restarts = False
        if self.solver.is_prepared:
            other.solver.prepare()
        if x0 is None:
            start = sample_reference(system, self.reference, np.zeros(1), self._own).x[0]
            move = TEST_ERROR * np.random.default_rng(0).normal(size=system.n_errors)
            x = system.retract(start, move, self._own)
        else:
            x = check_element("x0", x0, system.state)
        t, states, answers, statuses = self.dt * np.arange(calls), [], [], []
        for k in range(calls):
            states.append(other._whole(x, t[k], self.reference))
            u = other(t[k], x)
            assert other._loop.found is not None
            answers.append(u if self.rates is None else other._loop.found.u[0, : len(u)])
            statuses.append(other.info.status.name)
            x = self._move(t[k], x, system.full_input(u), self.dt)
        return ExportCase(t, np.array(states), np.array(answers), statuses)

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

    def kept_bounds(
        self, times: np.ndarray, x: np.ndarray, u: np.ndarray, states: np.ndarray | None = None
    ) -> dict[str, tuple[np.ndarray, float, float]]:
        """Bounded quantities of the plans, for the record of a run; see `Controller`."""
        return self._stated.bounded(times, x, u, self._p, states)

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        started = time.perf_counter()
        if not self._is_ahead:
            self._keep_to_clock(t)
        try:  # measured: noise violates the constraints of a closed mechanism
            x = on_constraints(self.system, "x", x, self._own, warn=False)
        except ValueError as error:
            self._keep_to_clock(t)
            return self._noted(t + self.delay, self._hold(t, reference, str(error)))
        if self._plans_in_c:
            return self._called(t, x, reference, started)
        ready = self._loop.ready
        if ready is not None:
            self._loop.ready = None
        outrun = self._keep_to_known(t, x)
        if (
            self._bias is not None
            and self._loop.seen is not None
            and t > self._loop.seen[0] + EARLY
        ):
            self._bias.observe(
                self._loop.seen[1], self._pieces(self._loop.seen[0], t), x, self._own
            )
        start, state = self._start(t, x)
        if state is not x and not np.isfinite(state).all():
            u = self._hold(t, reference, f"the state predicted for t = {start:g} s is not finite")
            return self._noted(start, u)
        self._loop.seen = t, x
        if ready is not None and not outrun and ready.fits(t, reference, self._p):
            state = self._whole(state, start, reference)
            u = self._inputs(state, ready.answer(self.problem, state))
            self.info = replace(
                ready.info, is_feedback=True, solve_time=time.perf_counter() - started
            )
        else:
            state = self._whole(state, start, reference)
            found = self._plan(state, start, reference, started, self.budget)
            u = self._inputs(state, found.u[0].take(self.problem.input_limits.controls))
        if outrun:
            text = "; ".join(filter(None, [outrun, self.info.message]))
            self.info = replace(self.info, status=CallStatus.UNSOLVED, message=text)
        self._noted(start, self._limited(u))
        answer = self._loop.sent[-1][1]
        if self.split:
            self.preview(t + self.dt, reference)
        return answer

    # -- calls of the kernel -----------------------------------------------------------------------

    @property
    def _plans_in_c(self) -> bool:
        """Whether the kernel has all rules that a call needs."""
        return (
            self.solver.has_loop
            and self._bias is None
            and self.rates is None
            and not self.split
            and self.budget == np.inf
            and isinstance(self.initial, str)
            and self._rules.ready is None
        )

    def _called(
        self, t: float, x: np.ndarray, reference: ReferenceLike | None, started: float
    ) -> np.ndarray:
        """A call of the kernel."""
        rules = self._rules
        if rules.found is None and not self._is_ahead:  # nobody prepared this loop
            whole = self._whole(x, t, reference)
            self._keep_up(whole, self.problem.times(t + self.delay), reference)
        calls = self._calls
        if calls is None or not calls.is_current:
            self._catch_up()
            solver: Any = self.solver
            calls = self._calls = solver.loop(self.delay, self.dt, self.system.nominal_input)
        assert calls is not None
        if not self._is_ahead:
            self._hand_over(calls)
        outrun = "" if self._p is calls.p else self._keep_to_known(t, x)
        before = calls.reference, calls.p
        restarts = (
            0 if self.problem.costs or not self.restarts else 1 + (self.restarts == "at once")
        )
        calls.set(self.iterations, self.first_iterations, self._word, restarts)
        calls.give(t + self.delay, reference, self._p)
        was_due, code = self._due, calls.call(t, x)
        self._is_ahead, rules.seen = True, (t, x)
        restart = calls.cause
        if restart == "jump" or calls.is_due:
            cause = "state" if np.array_equal(self._p, before[1]) else "parameters"
            cause = cause if is_same(reference, before[0]) else "reference"
            self._due = cause if calls.is_due else ""
            restart = "" if restart != "jump" else (was_due or cause)
        self.info = MPCInfo.of_call(code, calls, time.perf_counter() - started, restart)
        if code or outrun:
            self._say(calls, outrun)
        return calls.u.copy()

    def _say(self, calls: Any, outrun: str) -> None:
        """What is wrong with a call of the kernel."""
        status, text = self.info.status, calls.why()
        if outrun:
            status, text = CallStatus.UNSOLVED, "; ".join(filter(None, [outrun, text]))
        self.info = replace(self.info, status=status, message=text)

    def _hand_over(self, calls: Any) -> None:
        """Let the kernel go on from what the rules in Python left."""
        rules = self._rules
        found = rules.found
        planned = 0 if found is None else -1 if found.status is SolveStatus.FAILED else 1
        calls.take(
            planned, rules.clock, rules.usual, bool(rules.due), rules.sent, self._last,
            None if found is None else found.plan,
        )  # fmt: skip
        self._due = rules.due

    def _catch_up(self) -> None:
        """Take over what calls of the kernel left."""
        if not self._is_ahead:
            return
        self._is_ahead, rules, calls = False, self._rules, self._calls
        state = calls.state_now()
        rules.sent, rules.clock = state.sent, state.clock
        rules.usual = Usual(state.lately, state.largest, calls.p.copy(), calls.reference)
        rules.due = self._due if state.is_due else ""
        rules.found = calls.solution()

    def _plan(
        self,
        x: np.ndarray,
        start: float,
        reference: ReferenceLike | None,
        began: float,
        budget: float,
    ) -> OptimalSolution:
        """Go on from the last plan, or plan anew where there is none or something jumped."""
        last = self._loop.found
        if last is None:  # nobody prepared this loop
            self._keep_up(x, self.problem.times(start), reference)
        if last is None or last.status is SolveStatus.FAILED:  # a plan that leads nowhere
            cause = "first" if last is None else "failed"
            return self._first(x, start, reference, began, cause, budget)
        due, self._loop.due = self._loop.due, ""

        def step(plan: Plan, iterations: int) -> OptimalSolution:
            return self.solver.step(
                x, plan=plan, reference=self._aimed(reference, start), t0=start, p=self._p,
                iterations=iterations, time_limit=budget - (time.perf_counter() - began),
            )  # fmt: skip

        found = self._loop.found = step(last.plan, self.iterations)
        if due:
            other = step(self._at_a_start(x, start, reference), max(1, self.iterations - 1))
            taken = found.iterations[-1].number + other.iterations[-1].number
            # What going on costs is usual from now on, so that noise is no jump again and again.
            self._loop.usual = self._loop.usual.later(found.cost, 0.0, self._p, reference)
            if is_better(other, found):
                found = self._loop.found = other
            else:
                due = ""
            info = MPCInfo.of(found, time.perf_counter() - began, due)
            self.info = replace(info, iterations=taken)
            return found
        if self.restarts and not self.problem.costs:
            fading = fading_of(last, found, self.settings)
            going_on = found.iterations[-1].cost  # after the steps that a change took
            self._loop.due = self._loop.usual.jump(
                going_on, fading, self._p, reference, self.settings
            )
            if self._loop.due:
                has_time = time.perf_counter() - began < budget
                if has_time and self.restarts == "at once":
                    cause, self._loop.due = self._loop.due, ""
                    return self._first(x, start, reference, began, cause, budget, going_on)
                if has_time and found.iterations[-1].number == self.iterations:
                    found = self._loop.found = step(found.plan, self.settings.steps_more)
            dearest = max(found.iterations[0].cost, going_on)
            self._loop.usual = self._loop.usual.later(dearest, fading, self._p, reference)
        self.info = MPCInfo.of(found, time.perf_counter() - began)
        return found

    @property
    def _word(self) -> str:
        """Initial guess of plans, in a word that solvers know."""
        if isinstance(self.initial, str) and self.initial != "auto":
            return self.initial
        return "cheapest" if self.problem.system.policy is None else "policy"

    def _at_a_start(self, x: np.ndarray, start: float, reference: ReferenceLike | None) -> Plan:
        """The plan of the initial guess."""
        options: dict[str, Any] = {
            "max_iterations": 0, "reference": self._aimed(reference, start), "t0": start,
            "p": self._p,
        }  # fmt: skip
        other = self.solver.solve(x, guess=self._word, **options)
        if other.iterations[-1].gap > ACCEPTABLE_RESIDUAL:
            # States that are no motion, as those at rest, cost little: what counts is where their
            # inputs lead.
            plan, last_one = other.u[:, self.problem.input_limits.controls], len(other.u) - 1

            def inputs(t: float, x: np.ndarray, reference: Any) -> np.ndarray:
                return plan[min(int((t - start) / self.problem.dt + EARLY), last_one)]

            other = self.solver.solve(x, guess=inputs, **options)
        return other.plan

    def _aimed(self, reference: ReferenceLike | None, start: float) -> Any:
        """The reference, or what meets it in spite of the disturbances that are known."""
        is_off = self._bias is not None and self._bias.estimate.any()
        if not is_off and self.rates is None:
            return reference
        times = self.problem.times(start)
        samples = sample_reference(self.system, reference, times, self._own)
        if is_off:
            assert self._bias is not None
            samples = self._bias.target(samples, times, self._own)
        return samples if self.rates is None else beside_inputs(self.system, samples)

    def _follows(self, before: float, t: float) -> bool:
        """Whether a time can follow another: clocks that go back or on by a horizon have jumped."""
        return -EARLY <= t - before <= self.problem.horizon * self.problem.dt + EARLY

    def _keep_to_clock(self, t: float) -> None:
        """After a jump of the clock only the last answer counts, as one that acts from now on."""
        if self._loop.clock is not None and not self._follows(self._loop.clock, t):
            self._loop.sent, self._loop.seen, self._loop.ready = (
                [(t, u) for _, u in self._loop.sent[-1:]],
                None,
                None,
            )
        self._loop.clock = t

    def _noted(self, start: float, u: np.ndarray) -> np.ndarray:
        """An answer, kept in mind until it has taken effect."""
        if not self.delay:
            self._loop.sent.clear()
        self._loop.sent.append((start, u))
        return u

    def _start(self, t: float, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Time at which an answer takes effect, and the state then."""
        if not self.delay:
            return t, x
        while len(self._loop.sent) > 1 and self._loop.sent[1][0] <= t + EARLY:
            self._loop.sent.pop(0)  # replaced by a later one
        return t + self.delay, self._predict(t, x, t + self.delay)

    def _first(
        self,
        x: np.ndarray,
        start: float,
        reference: ReferenceLike | None,
        began: float,
        cause: str,
        budget: float,
        going_on: float = 0.0,
    ) -> OptimalSolution:
        """Plan anew: the best of the starts, iterated to convergence.

        Where that gains little over the last plan, what going on costs is usual from now on.
        """
        aim = self._aimed(reference, start)
        options: dict[str, Any] = {"reference": aim, "t0": start, "p": self._p}
        last, best = self._loop.found, None
        for guess in self._starts():
            other = self.solver.solve(x, guess=guess, max_iterations=0, **options)
            if guess is last is not None:
                last = other
            if best is None or is_better(other, best):
                best = other
            if time.perf_counter() - began > budget:
                break
        if np.isfinite(budget):
            options["time_limit"] = max(budget - (time.perf_counter() - began), 0.0)
        self._loop.found = self.solver.solve(
            x, guess=best, max_iterations=self.first_iterations, **options
        )
        is_gain = last is None or (
            best is not last and self.settings.jump * self._loop.found.cost < last.cost
        )
        usual = max(self._loop.found.cost, 0.0 if is_gain else going_on)
        self._loop.usual = self._loop.usual.later(usual, 0.0, self._p, reference)
        self.info = MPCInfo.of(self._loop.found, time.perf_counter() - began, cause)
        return self._loop.found

    def _starts(self) -> Iterator[OptimalSolution | Controller | Trajectory | str]:
        """Initial guesses of a new plan: the last plan first."""
        if self._loop.found is not None:
            yield self._loop.found
        yield self._word if isinstance(self.initial, str) else self.initial

    def _keep_to_known(self, t: float, x: np.ndarray) -> str:
        """Parameters the plan's steps keep up with, and why they are not the given ones.

        Nothing is built in a call: where modes became too fast for the substeps there are, the
        system's parameters stay as they were in the last call.
        """
        rules, is_planned = self._rules, self._is_ahead or self._rules.found is not None
        if not is_planned or self._own.tobytes() == rules.checked.tobytes():
            return ""
        at = self._whole(x, t, None), self.problem.system.nominal_input, t
        text = self.problem.too_few_substeps(*at, self._own)
        if not text or self.problem.too_few_substeps(*at, rules.checked):  # the state is to blame
            rules.checked = self._own.copy()
            return ""
        self._p = np.concatenate([rules.checked, self._p[len(rules.checked) :]])
        return (
            f"{text}. The plan keeps the system's last parameters that it can follow: prepare() "
            "with the new ones between calls, or make the MPC with substeps=…"
        )

    def _keep_up(self, x: np.ndarray, times: np.ndarray, reference: ReferenceLike | None) -> None:
        """Before the first plan: more substeps where modes at its start or goal are too fast."""
        goal = sample_reference(self.system, reference, times, self._own)
        goal = goal if self.rates is None else beside_inputs(self.system, goal)
        states, inputs = np.vstack([x[None], goal.x]), np.vstack([goal.u[:1], goal.u])
        finer = self.problem.keeping_up(states, inputs, np.r_[times[0], times], self._own)
        if finer is not self.problem:
            ready = self.solver.is_prepared
            found, sent, last, seen = self._loop.found, self._loop.sent, self._last, self._loop.seen
            clock = self._loop.clock
            self._take(finer)
            self._loop.found, self._loop.sent, self._last, self._loop.seen = found, sent, last, seen
            self._loop.clock = clock
            if ready:
                self.solver.prepare()
        self._loop.checked = self._own.copy()

    def _pieces(self, t: float, end: float) -> list[Piece]:
        """Starts, inputs and lengths of what answers do until then; before the first nominal."""
        nominal = np.clip(self.system.nominal_input[self._controls], self._lower, self._upper)
        pieces = [(t, nominal), *((min(max(when, t), end), v) for when, v in self._loop.sent)]
        ends = [start for start, _ in pieces[1:]] + [end]
        return [
            (start, self.system.full_input(v), stop - start)
            for (start, v), stop in zip(pieces, ends, strict=True)
            if stop - start > EARLY
        ]

    def _predict(self, t: float, x: np.ndarray, end: float) -> np.ndarray:
        """State later, with the answers that take effect until then."""
        push = 0.0 if self._bias is None else self._bias.estimate
        for start, u, length in self._pieces(t, end):
            x = self._move(start, x, u + push, length)
        return x

    def _move(self, t: float, x: np.ndarray, u: np.ndarray, seconds: float) -> np.ndarray:
        """State after a time with a constant input."""
        p = self._own
        if self.system.is_discrete:
            for k in range(round(seconds / self.system.dt)):
                x = self.system.step()(t + k * self.system.dt, x, u, p)
            return x
        steps = self.problem.substeps * int(np.ceil(seconds / self.problem.dt - EARLY))
        return self.system.step(self.problem.method, steps)(t, x, u, p, seconds)

    def _fallback(self, t: float, reference: ReferenceLike | None) -> np.ndarray:
        """Last controls, within limits as they are now; before there are any those of the plan."""
        if self._last is None and self._loop.found is not None:
            first = self._loop.found.u[0, self.problem.input_limits.controls]
            return self._limited(self._inputs(self._loop.found.x[0], first))
        return self._limited(super()._fallback(t, reference))

    def _limited(self, u: np.ndarray) -> np.ndarray:
        """Controls within their hard limits, those that are parameters as they are now."""
        if self._p is not self._loop.limits[0]:
            self._loop.limits = self._p, *self._stated.input_limits.exactly(self._p)[:2]
        return np.minimum(np.maximum(u, self._loop.limits[1]), self._loop.limits[2])


class Loop:
    """What changes from call to call, besides what all controllers remember.

    Attributes
    ----------
    found : OptimalSolution or None
        Of the last call, whose plan the next one goes on from.
    checked : ndarray
        Parameters of the system for which there are enough substeps.
    sent : list of (float, ndarray)
        Answers with the times of their effect.
    seen : (float, ndarray) or None
        The last state and its time.
    clock : float or None
        Of the last call, s.
    ready : _Ready or None
        A preview that waits for its state.
    usual : Usual
        Recent cost of warm starts.
    due : str
        Why the next plan is to begin anew.
    limits : tuple
        Parameters, and the limits of inputs that belong to them.
    """

    __slots__ = ("checked", "clock", "due", "found", "limits", "ready", "seen", "sent", "usual")

    def __init__(self) -> None:
        self.found: OptimalSolution | None = None
        self.checked = np.zeros(0)
        self.sent: list[tuple[float, np.ndarray]] = []
        self.seen: tuple[float, np.ndarray] | None = None
        self.clock: float | None = None
        self.ready: _Ready | None = None
        self.usual, self.due = Usual(), ""
        self.limits: tuple[Any, ...] = (None,)


@dataclass(frozen=True, eq=False)
class _Ready:
    """A plan that was made before its state was there.

    Attributes
    ----------
    t, start : float
        Of the call, and when its answer takes effect, s.
    state : ndarray
        That was expected then.
    plan : OptimalSolution
    K : ndarray, shape (m, n)
        Derivative of its first controls by the error of the state.
    reference : object
    p : ndarray
    info : MPCInfo
        What is to be said of it.
    """

    t: float
    start: float
    state: np.ndarray
    plan: OptimalSolution
    K: np.ndarray
    reference: Any
    p: np.ndarray
    info: MPCInfo

    def fits(self, t: float, reference: Any, p: np.ndarray) -> bool:
        """Whether a call is the one that was expected."""
        is_then = abs(t - self.t) <= max(EARLY, 4 * ulp(t)) and np.array_equal(p, self.p)
        return is_then and is_same(reference, self.reference)

    def answer(self, problem: OptimalControlProblem, state: np.ndarray) -> np.ndarray:
        """Controls for the state that came."""
        first = self.plan.u[0, problem.input_limits.controls]
        return first + self.K @ problem.system.error(state, self.state)


def _check_multiple(system: System, name: str, seconds: float) -> None:
    """Refuse times that a discrete system does not know."""
    samples = seconds / system.dt
    if abs(samples - round(samples)) > EARLY / system.dt:
        raise ValueError(
            f"{name} = {seconds:g} s is no multiple of {system.dt:g} s, the sample time of "
            f"{system.name}"
        )

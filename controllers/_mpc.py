"""MPC: model predictive control on the group, one step of its solver a sample."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen._internal import UnknownNameError, check_shape, interruptible, unknown_name
from lgcontrol.groups import LieGroup
from lgcontrol.optimal import OptimalControlProblem, Plan, Rates, Settings, Solver
from lgcontrol.optimal._internal import (
    ProblemOptions,
    prepare_sampling,
    sample_reference,
    sensitivities_of,
    takes_problem_options,
)
from lgcontrol.simulation._internal import KernelLaw
from lgcontrol.systems import Parameter, ReferenceLike, System, Trajectory
from lgcontrol.systems._internal import Parameters, ParameterValues, on_constraints

from ._base import Controller, steers
from ._fixed import CURRENT, Fixed, check_settable
from ._mpc_call import held_from, make_preview, plan_before, planned_call
from ._mpc_export import export_mpc
from ._mpc_info import MOST_SLOW, MPCInfo, errors_of_residuals, warn_of_limits
from ._mpc_kernel import KernelCalls, answered, called, kernel_law, plans_in_c
from ._mpc_loop import Loop, follows, loop_of, state_layout, state_of
from ._mpc_parts import put_together
from ._real_time import RealTime
from ._steady_disturbance import SteadyDisturbance

# What controls do between two calls.
HOLDS = ("zero", "first")


def _of(path: str, doc: str) -> Any:
    """An attribute that is one of a part of an MPC."""
    return property(attrgetter(path), doc=doc)


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
        the END of the period: the actuator moves to it from the last answer, or from `applied`.
        `simulate` does that. A loop of your own must ramp as well: read ``start = mpc.applied``
        before the call, then apply ``start + (answer - start) * s / dt`` at s seconds after it.
    blocks : int, sequence of int or mapping, optional
        Move blocking, see `OptimalControlProblem`. Blocks keep their distance from now: in every
        call ``[1, 1, 2, 4, 8]`` begins with a block of one step. The warm start has in each block
        the mean of what the last plan does there. Calls take no less time than without blocks; a
        long horizon of few steps is ``dt=[…]``. With `rates` the rate of a block is its change over
        the length of its first step.
    rates : Rates, optional
        Weight and limit of the inputs' rates. The rates start at `applied`: the last answer, or the
        inputs of the reference before there is one. Inputs and their limits stay those of the
        system.
    reference : optional
        Followed when a call brings none: a constant state, a TrimPoint, or a Trajectory, which is
        seen in advance. It may be left out where nothing is weighed from it: with costs alone, Q=0.
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
        The optimal control problem that is solved. With `rates`, `blocks` or ``hold="first"`` its
        state ends with the inputs, and its controls are their rates.
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
        blocks: int | Sequence[int] | Mapping[str, int | Sequence[int]] | None = None,
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
        if hold == "collocation":
            raise ValueError(
                'hold="collocation" plans polynomials within each step, and a loop answers with '
                "one number a period for each input, which is held or reached linearly. Leave hold "
                'out or take hold="first", with method="radau_iia5": the steps solve the same '
                "collocation equations, for the inputs that act"
            )
        if hold not in HOLDS:
            raise UnknownNameError(unknown_name("hold of an MPC", hold, HOLDS))
        self._stated = stated = OptimalControlProblem(
            system, horizon, dt, hold=hold, blocks=blocks, **problem
        )
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
        # A plan of costs alone has one of its own, which a run need not be given.
        followed = stated.reference if reference is None else reference
        super().__init__(
            system, dt=period, offset=work.offset, delay=delay, reference=followed, p=p
        )
        self._fixed = {name for name in vars(self) if name[0] != "_"} - {*CURRENT}
        self._slow = 0
        self._parts = put_together(
            stated, rates, self.dt, self.delay, work, guess, solver, settings, disturbance
        )
        self._forget()
        warn_of_limits(stated)

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse what would have no effect: all but the current state is fixed."""
        if name[0] != "_" and name not in CURRENT and self.__dict__.get("_is_made"):
            check_settable(self, name, self._fixed)
        super().__setattr__(name, value)

    # What it is

    problem: OptimalControlProblem = _of(
        "_parts.problem",
        "The problem that is solved; with rates its controls are those of the inputs.",
    )
    solver: Solver = _of("_parts.solver", "What solves it.")
    settings: Settings = _of("_parts.settings", "Tuned numbers of the loop.")
    real_time: RealTime = _of("_parts.real_time", "Times of the calls, and the work of a call.")
    guess: Controller | Trajectory | str = _of("_parts.guess", "Initial guess of new plans.")
    rates: Rates | None = _of("_parts.rates.rates", "Weight and limit of the inputs' rates.")
    hold: str = _of(
        "_stated.hold",
        'Whether controls are held between calls ("zero"), or move to the answer ("first").',
    )
    blocks: Any = _of("_stated.blocks", "Steps over which inputs stay, as given.")
    horizon: int = _of("_stated.horizon", "Number of steps.")
    Q: np.ndarray = _of("_stated.Q", "Weight on the error, per s, shape (dim, dim).")
    R: np.ndarray = _of("_stated.R", "Weight on the controls, per s, shape (m, m).")
    terminal: np.ndarray | str = _of(
        "_stated.terminal", "Weight on the last error, shape (dim, dim), or 'riccati'."
    )
    substeps: int = _of("_parts.problem.substeps", "Steps of the integrator in a step of the plan.")

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
        estimator = self._parts.estimator
        return {} if estimator is None else estimator.by_name(self._loop.disturbance)

    @property
    def plan(self) -> Trajectory | None:
        """States and inputs that the last call intends."""
        found = self._loop.plan.found
        return None if found is None else self._parts.rates.trajectory(found)

    @property
    def applied(self) -> np.ndarray:
        """Controls that act when the next answer takes effect, at which rates begin."""
        sent = self._loop.sent
        u = sent[-1][1] if sent else self._resting_input(self._time, self.reference)
        return u.copy()

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
        those of the optimal answer. A call with few iterations comes near that answer. They
        are by the state that the plan begins with: the measured one, with a delay the one predicted
        for the time of effect. With ``rates``, ``blocks`` or ``hold="first"`` the inputs that act
        then follow it. There the controls of `solution` are rates; derivatives, those that
        `adjoint` takes too, are of the inputs that they reach.

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
        return sensitivities_of(found, self._parts.rates.held(found.problem.steps))

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
        if state is not None and state.number("substeps") != self.problem.substeps:
            substeps = int(state.number("substeps"))
            self._take(self.problem.integrated_by(self.problem.method, substeps))
        self.solver.reset()
        self.solver.prepare()
        if self._parts.estimator is not None:
            moving = self.problem.system if self._parts.delay.ramp else self.system
            step = moving.step(self.problem.method, self.problem.substeps)
            self._parts.estimator.prepare(step)
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
    ) -> Self:
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
        if x is not None:
            plan_before(self, float(t), x, goal)
        return self

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
        make_preview(self, t, reference)

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
        checks them and prints sizes, and a CMakeLists.txt. Test vectors have tolerances: 1e-9, or
        more where calls let rounding grow.

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
            If the solver, the guess, a reference or parameters that depend on time, a split or a
            budget in seconds have no C code; the message says what has.
        """
        if self.reference is None:
            raise ValueError(
                f"{self.system.name} has no reference to follow in firmware, which has that of "
                "the controller: give MPC(…, reference=), a state or a TrimPoint"
            )
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

    def reference_states(
        self, times: np.ndarray, reference: ReferenceLike | None = None
    ) -> np.ndarray | None:
        """States to follow; none where costs alone are weighed. See `Controller`."""
        states = super().reference_states(times, reference)
        if states is None or reference is not None or self._stated.is_reference_given(states):
            return states
        return None

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: ReferenceLike | None = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Residuals that say the group of their error; see `Residual`."""
        if all(residual.group is None for residual in self._stated.residuals):
            return {}
        p = np.array([self._values.at(float(t)) for t in times])
        return errors_of_residuals(self._stated, times, x, p)

    def tracked_errors(self) -> np.ndarray | None:
        """Errors with a weight in Q or at the end; see `Controller`."""
        return self._stated.weighed_errors

    def bounded_quantities(
        self, times: np.ndarray, x: np.ndarray, u: np.ndarray, states: np.ndarray | None = None
    ) -> dict[str, tuple[np.ndarray, float, float, str]]:
        """Bounded quantities of the plans, for the record of a run; see `Controller`."""
        stated = self._stated
        found = stated.bounded(times, x, u, self._p, states) if stated.bounds else {}
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
            return held_from(self, t + self.delay, t, reference, str(error))
        call = called if plans_in_c(self) else planned_call
        return call(self, t, x, reference, began)

    def compiled_law(self, plant: System, reference: ReferenceLike | None) -> KernelLaw | None:
        """Calls of the kernel without Python, for loops; see `KernelLaw`."""
        is_own = type(self)._control is MPC._control  # a subclass may do more
        return kernel_law(self, plant, reference) if is_own and steers(self, plant) else None

    def _answer(
        self, t: float, x: np.ndarray, goal: ReferenceLike | None, values: ParameterValues
    ) -> np.ndarray:
        """What changed since the last call is looked at in Python, all else in the kernel."""
        with self._kernel.lock:  # of threads that share this controller
            u = None
            if type(self)._control is MPC._control:  # a subclass may do more
                u = answered(self, t, x, goal, values)
            if u is None:
                return super()._answer(t, x, goal, values)
            own = vars(self)  # the guard of attributes takes a microsecond
            own["_time"], own["_last"] = t, u
            return u.copy()

    @property
    def _seconds(self) -> float:
        """Length of the horizon, s."""
        return self.problem.horizon * self.problem.dt

    def _follows(self, before: float, t: float) -> bool:
        """Whether a time can follow another."""
        return follows(before, t, self._seconds)

    def _fallback(self, t: float, reference: ReferenceLike | None) -> np.ndarray:
        """Last controls, within limits as they are now; before there are any those of the plan."""
        found = self._loop.plan.found
        if self._last is None and found is not None:
            first = found.u[0, self.problem.input_limits.controls]
            u = self._parts.rates.inputs(found.x[0], first)
        else:
            u = super()._fallback(t, reference)
        return self._stated.input_limits.kept(u, self._p)

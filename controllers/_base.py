"""Controller: what simulations call, and what a controller says of its last call."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from math import isfinite, ulp
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, named_options
from lgcontrol.codegen._internal import (
    Result,
    Schedule,
    c_default_name,
    check_shape,
    interruptible,
    level_outside,
    refuse_attribute,
)
from lgcontrol.groups import LieGroup, check_element
from lgcontrol.optimal._internal import CLOCK_ROUNDING, points_of, sample_reference
from lgcontrol.simulation import CallStatus
from lgcontrol.simulation._internal import FunctionLaw
from lgcontrol.systems import Parameter, ReferenceLike, System
from lgcontrol.systems._internal import Parameters, ParameterValues, is_motion, not_a_system

from ._goal import GoalMemory
from ._law_function import (
    LATEST,
    SHORTER_PERIODS,
    Feedback,
    LawArgument,
    differences,
    is_growing,
    largest_mode,
    loop_matrix,
    moved_most,
    plant_about,
    told,
)

EXPORT_EXAMPLES = 5  # test vectors of an exported law
_MEMORY_TOLD = (
    "Memory: where the next call has NAME, hand it what NAME_next was in this one. With first = 1",
    "NAME is not read and the law begins anew, as in the first call; else first = 0.",
)


@dataclass(frozen=True)
class ControlInfo(Result):
    """What a controller says of its last call.

    Parameters
    ----------
    status : CallStatus
        ``HELD`` when the state was not finite or no element of its group, or the time none of this
        clock. The last input was then returned, or that of the reference before there was one.
    solve_time : float
        In s; zero for closed formulas.

    Examples
    --------
    >>> ControlInfo(CallStatus.SATURATED, solve_time=0.002)
    ControlInfo(saturated, solve_time=0.002)
    """

    status: CallStatus = CallStatus.OK
    solve_time: float = 0.0
    message: str = ""

    def __repr__(self) -> str:
        """Status, and what else there is to say."""
        said = [str(self.status)]
        for entry in fields(self)[1:]:
            value = getattr(self, entry.name)
            if value not in (entry.default, None) and value == value:
                shown = f"{value:.4g}" if isinstance(value, float) else value
                said.append(f"{entry.name}={shown}")
        return f"{type(self).__name__}({', '.join(said)})"


def clock_time(t: Any) -> float:
    """The time of a call in s; refused if it is not a number, as where the time was left out."""
    try:
        return float(t)
    except (TypeError, ValueError):
        raise TypeError(
            f"t is the time in s and comes first, controller(t, x, reference); got {t!r}"
        ) from None


def steers(controller: Controller, plant: System) -> bool:
    """Whether a controller answers with as many controls as a plant has."""
    return len(controller._controls) == len(plant.input_index("control"))


def static_law(
    controller: Controller,
    function: ModelFunction,
    rows: Callable[[np.ndarray], Mapping[str, np.ndarray]],
    bounds: tuple[np.ndarray, np.ndarray] | None,
) -> FunctionLaw:
    """A law without memory, for loops in C: its calls say whether they were clipped."""

    def took(t: float, u: np.ndarray, told: np.ndarray, elapsed: float) -> None:
        controller._time, controller._last = t, u
        if bounds is not None:
            controller.info = ControlInfo(CallStatus.SATURATED if told[-1] else CallStatus.OK)

    def columns(told: np.ndarray, elapsed: np.ndarray) -> dict[str, np.ndarray]:
        count, words = len(told), np.full(len(told), str(CallStatus.OK))
        if told[:, -1].any():
            words = np.where(told[:, -1] > 0, str(CallStatus.SATURATED), words)
        return {"status": words, "solve_time": np.zeros(count), "message": np.full(count, "")}

    values, goal = controller._values, controller.reference
    return FunctionLaw(
        function=function, rows=rows, bounds=bounds, took=took, columns=columns,
        is_ready=lambda: controller._values is values and controller.reference is goal,
    )  # fmt: skip


class LawOptions(TypedDict, total=False):
    """Arguments that every law takes besides its own; see `Controller`."""

    reference: ReferenceLike | None
    saturate: bool
    offset: float
    delay: float
    p: Parameters | None


class Controller(ABC):
    """A feedback law ``controller(t, x, reference) → controls`` that runs in samples.

    A law of your own is a subclass with `_control`; or any callable with an attribute ``dt``.

    Parameters
    ----------
    system : System
        What the controller knows of the plant.
    dt : float
        Period in s.
    offset : float
        Time of the first call in s.
    delay : float
        Time from a call to its effect in s.
    reference : optional
        Followed when a call brings none: a constant state, a TrimPoint or a Trajectory.
    saturate : bool
        Whether the controls stay within their bounds, of laws that leave the choice.
    p : mapping or array_like, optional
        The system's parameters, nominal if left out: numbers, or functions of time in s. Functions
        are asked at every call and held until the next, along a plan, too.

    Attributes
    ----------
    parameters : mapping of str to float or callable
        Values by name, to read. ``controller.parameters = {…}`` changes some of them between calls,
        None makes all nominal again, ``{}`` changes nothing; nothing is built or compiled again.
    info : ControlInfo
        Of the last call.
    unstable : str
        Why errors grow in the sampled loop with the plant that the controller knows, with the
        remedy; empty where they do not, or nobody looked. The summary of a run tells it, and the
        run is no success.
    """

    if not TYPE_CHECKING:  # a type checker takes it for every name
        __getattr__ = refuse_attribute

    _own_checks = "tree"  # arguments that a law itself refuses with better words

    def __init_subclass__(cls, **options: Any) -> None:
        """Let every law say what its options are called."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            named_options(own=cls._own_checks)(cls)

    def __init__(
        self,
        system: System,
        *,
        dt: float,
        offset: float = 0.0,
        delay: float = 0.0,
        reference: ReferenceLike | None = None,
        saturate: bool = True,
        p: Parameters | None = None,
    ) -> None:
        if not isinstance(system, System):
            raise TypeError(not_a_system("system", system))
        for name, value in (("dt", dt), ("offset", offset), ("delay", delay)):
            number = check_shape(name, value, ())
            if number < 0 or (name == "dt" and number == 0):
                wanted = "be positive" if name == "dt" else "not be negative"
                raise ValueError(f"{name} must {wanted}, got {number:g} s")
        self.system, self._shape = system, (system.state.nq,)
        self.dt, self.offset, self.delay = float(dt), float(offset), float(delay)
        self.reference, self.saturate = reference, saturate
        self._controls = system.input_index("control")
        lower, upper = system.input_bounds
        self._lower, self._upper = lower[self._controls], upper[self._controls]
        self.info: Any = ControlInfo()  # subclasses say more, in a class of their own
        self._goals: tuple[GoalMemory, ...] = ()
        self._last: np.ndarray | None = None
        self._time = self.offset  # of the last call with a clock that can be read
        self.unstable = ""
        self._values = ParameterValues(self._declared, self._nominal_parameters, p)
        self._p = self._values.at(self.offset)  # of the last call

    def __repr__(self) -> str:
        """Which law of which system, and its period."""
        return f"{type(self).__name__}({self.system.name!r}, dt={self.dt:g} s)"

    @property
    def _declared(self) -> tuple[Parameter, ...]:
        return self.system.parameters

    @property
    def _nominal_parameters(self) -> np.ndarray:
        return self.system.nominal_parameters

    @property
    def parameters(self) -> Mapping[str, float | Callable[[float], float]]:
        """Values of the parameters by name, numbers or functions of time, to read.

        Assign a mapping to change some (``{}`` changes nothing), None to make all nominal again.
        """
        return MappingProxyType(self._values.by_name())

    @parameters.setter
    def parameters(self, values: Parameters | None) -> None:
        if values is None:
            made = ParameterValues(self._declared, self._nominal_parameters)
        else:
            made = self._values.changed(values)
        self._p = made.at(self._time)  # which refuses what is no number
        self._values = made

    def with_parameters(self, values: Parameters) -> Self:
        """Copy with other values of the named parameters, at the start of its loop."""
        other = self._copy()
        other._last, other._time, other.info = None, other.offset, type(self.info)()
        other.parameters = values
        return other

    def another(self) -> Self:
        """A controller like this one, at its start, for another loop at the same time."""
        return self.with_parameters({})

    def _copy(self) -> Self:
        """Copy that shares functions, which do not change, and nothing that does."""
        other = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray | list | dict):
                object.__setattr__(other, name, value.copy())
        other._goals = tuple(goal.copy() for goal in self._goals)
        return other

    def __call__(
        self,
        t: float,
        x: ArrayLike,
        reference: ReferenceLike | None = None,
        *,
        p: Parameters | None = None,
    ) -> np.ndarray:
        """Controls for the measured state.

        Parameters
        ----------
        t : float
            Time in s.
        x : array_like, shape (nq,)
            State; when it is not finite or no element of the group the last controls are held,
            those of the reference if there are none.
        reference : optional
            Constant state, TrimPoint or Trajectory; that of the controller if left out.
        p : mapping or array_like, optional
            Values of parameters in this call, numbers or functions of time.

        Returns
        -------
        ndarray, shape (n_controls,)

        Raises
        ------
        ValueError
            If the state or the reference has the wrong size, or there is no reference.
        TypeError
            If the time is no number.
        """
        now = t if type(t) is float else clock_time(t)
        state = check_shape("x", x, self._shape, finite=False)
        goal = self.reference if reference is None else reference
        if p is None:
            return self._answer(now, state, goal, self._values)
        own, values = self._p, self._values.changed(p)
        try:
            return self._answer(now, state, goal, values)
        finally:
            self._p = own

    def _answer(
        self, t: float, x: np.ndarray, goal: ReferenceLike | None, values: ParameterValues
    ) -> np.ndarray:
        """Controls where there is a state and a time, earlier ones where there is none."""
        if not ulp(t) < CLOCK_ROUNDING * self.dt:  # nor is NaN, nor infinity
            return self._hold(self._time, goal, f"{t:g} s is no time of a clock")
        self._time = t
        with np.errstate(all="ignore"):  # what is not finite is held
            try:
                p = values.at(t)
                if p is not self._p:
                    self._p = p
                state = check_element("the state", x, self.system.state)
            except ValueError as error:
                return self._hold(t, goal, str(error))
            try:
                u = self._control(t, state, goal)
            except np.linalg.LinAlgError as error:
                return self._hold(t, goal, f"the feedback is not finite: {error}")
        if not all(map(isfinite, u.tolist())):
            return self._hold(t, goal, "the feedback is not finite")
        self._last = u
        return u.copy()

    def reset(self) -> None:
        """Forget earlier calls."""
        self._last, self._time = None, self.offset
        self.info = ControlInfo()
        for memory in self._goals:
            memory.clear()

    @interruptible
    def prepare(
        self, t: float = 0.0, x: ArrayLike | None = None, reference: ReferenceLike | None = None
    ) -> Self:
        """Get ready for a loop, so that its first call takes no longer than the others.

        `simulate` calls this after `reset`. Most controllers have nothing to do. Returns itself.

        Parameters
        ----------
        t : float
            Time of the first call in s.
        x : array_like, shape (nq,), optional
            State that is expected then.
        reference : optional
            As in a call.

        Raises
        ------
        ValueError
            If the state has the wrong size.
        """
        self._p = self._values.at(clock_time(t))
        if x is not None:
            check_shape("x", x, (self.system.state.nq,), finite=False)
        return self

    @interruptible
    def export_c(self, folder: str | Path, *, name: str | None = None) -> Path:
        """Write the law as one function in plain C99, for firmware; see `ModelFunction.export_c`.

        Its arguments are the measured state, the reference and the parameters; its result are the
        controls. The reference is a state and all inputs, with its rate if the law feeds that
        forward. For a law of a tree or frame it is the target with its velocity and acceleration.
        Gains are numbers, and a reference that is the controller's own (of `TVLQR`) is a table. The
        law's internal state (integrals, torques that are held) is an argument and a result of its
        own. With ``first = 1`` it begins anew, as after `reset`. Values that are not finite are not
        caught there: firmware checks its measurements.

        Parameters
        ----------
        folder : path
            New, empty, or exported before and not changed since.
        name : str, optional
            Of the C function and its files; that of the system and the controller if left out.

        Raises
        ------
        FileExistsError
            If the folder holds anything that was not exported, or was changed since.
        NotImplementedError
            If this controller has no C code; the message says what has.
        """
        system, law, schedule = self.system, self._exported_law(), self._exported_schedule()
        state, memory = system.state, self._exported_memory()
        vectors = {**self._exported_goals(), **memory}
        labels = {
            "x": list(zip(state.coordinate_names, state.coordinate_units, strict=True)),
            "u_ref": [(entry.name, entry.unit) for entry in system.inputs],
            "p": [(entry.name, entry.unit) for entry in system.parameters],
            "u": [(system.inputs[i].name, system.inputs[i].unit) for i in self._controls],
        }
        labels["x_ref"] = labels["x"]
        labels |= {key: own.labels for key, own in vectors.items()}
        labels |= {f"{key}_next": own.labels for key, own in memory.items()}
        if schedule is not None:
            labels = {key: value for key, value in labels.items() if key not in schedule.values}
        rng = np.random.default_rng(0)
        # Beyond both ends of what is looked up, too.
        first, last = 0.0, 1.0
        if schedule is not None:
            first, last = schedule.starts[0] - self.dt, schedule.starts[-1] + self.dt
        examples = []
        for _ in range(EXPORT_EXAMPLES):
            drawn = {
                "t": rng.uniform(first, last), "x_ref": state.random(rng),
                "u_ref": system.nominal_input, "rate_ref": rng.normal(size=state.dim),
                "p": self._own, "first": rng.integers(2),
            }  # fmt: skip
            drawn["x"] = self._exported_state(drawn["x_ref"], rng)
            drawn |= {key: own.draw(rng) for key, own in vectors.items()}
            examples.append({key: drawn[key] for key in law.arguments if key in drawn})
        return law.export_c(
            folder,
            name=name or c_default_name(system.name, self),
            labels={k: v for k, v in labels.items() if k in (*law.arguments, *law.results)},
            examples=examples,
            about=[f"To be called every {self.dt:g} s.", *(_MEMORY_TOLD if memory else ())],
            schedule=schedule,
        )

    def _exported_law(self) -> ModelFunction:
        """``(x, x_ref, u_ref, …) → u``, the law as a function without memory."""
        raise NotImplementedError(
            f"{type(self).__name__} has no C code; LQR and TVLQR have, ComputedTorque, GravityPD, "
            "Impedance and OperationalSpace, laws of elastic arms, GeometricPD and ThrustVectorPD, "
            "and MPC with solver='interior_point'. Laws of your own: a ModelFunction has export_c"
        )

    def _exported_goals(self) -> Mapping[str, LawArgument]:
        """What the exported law follows, where that is no state of the system."""
        return {}

    def _exported_memory(self) -> Mapping[str, LawArgument]:
        """What the exported law goes on with from call to call; it returns ``<name>_next``."""
        return {}

    def _exported_state(self, reference: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A state for test vectors, at a random reference."""
        state = self.system.state
        return state.plus(reference, rng.normal(size=state.dim))

    def _exported_schedule(self) -> Schedule | None:
        """What the exported law looks up by time."""
        return None

    @abstractmethod
    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        """Controls for a finite state; sets `info`."""

    def reference_states(
        self, times: np.ndarray, reference: ReferenceLike | None = None
    ) -> np.ndarray | None:
        """States of the system that a reference stands for, for the record of a run.

        Parameters
        ----------
        times : ndarray, shape (k,)
            In s.
        reference : optional
            As in a call.

        Returns
        -------
        ndarray, shape (k, nq), or None
            None where the reference is no state: the pose of a frame, or none at all.
        """
        goal = self.state_reference(self.reference if reference is None else reference)
        if goal is None:
            return None
        if is_motion(goal):
            return goal.states(self.system, times)[0]
        point = points_of(goal, times)
        states = np.asarray(getattr(point, "x", point), dtype=np.float64)
        nq = self.system.state.nq
        return np.broadcast_to(states, (len(times), nq)) if states.shape[-1:] == (nq,) else None

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: ReferenceLike | None = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Errors of what is tracked besides the state, for the record of a run.

        Parameters
        ----------
        times : ndarray, shape (k,)
            In s.
        x : ndarray, shape (k, nq)
            States then.
        reference : optional
            As in a call.

        Returns
        -------
        dict of str to (ndarray, LieGroup)
            By name, tangent vectors of shape (k, dim) on a group.
        """
        return {}

    def tracked_errors(self) -> np.ndarray | None:
        """Which errors of the state the controller weighs, for the record of a run.

        Returns
        -------
        ndarray of bool, shape (n_errors,), or None
            None where it takes them all.
        """
        return None

    def bounded_quantities(
        self, times: np.ndarray, x: np.ndarray, u: np.ndarray, states: np.ndarray | None = None
    ) -> Mapping[str, tuple[np.ndarray, float, float, str]]:
        """What the controller keeps within limits besides its inputs, for the record of a run.

        Parameters
        ----------
        times : ndarray, shape (k,)
            In s.
        x : ndarray, shape (k, nq)
            States then.
        u : ndarray, shape (k - 1, n_inputs)
            All inputs, from one time to the next.
        states : ndarray, shape (k, nq), optional
            States that were to be followed, if the reference has any.

        Returns
        -------
        mapping of str to (ndarray of shape (k,), float, float, str)
            By name, values with their lower and upper limits and their unit.
        """
        return {}

    def _held_states(self) -> Iterable[tuple[np.ndarray, Any]]:
        """States that the law holds, and references that say so, for the check of its loop.

        Called on a copy, which may be changed from one to the next.
        """
        return ()

    def _check_loop(self) -> None:
        """Warn of a sampled loop in which errors grow, and keep what there is to say."""
        system, probe = self.system, self._copy()
        probe.saturate = False
        u, controls = system.nominal_input, self._controls
        with np.errstate(all="ignore"):
            for x, goal in probe._held_states():
                u[controls] = probe._control(self.offset, x, goal)

                def law(at: np.ndarray, goal: Any = goal) -> np.ndarray:
                    return probe._control(self.offset, at, goal)

                A, B = plant_about(system, self.offset, x, u, self._own)
                self._judge(A, B, Feedback.static(differences(system, x, law)))
                if self.unstable:
                    return

    def _judge(self, A: np.ndarray, B: np.ndarray, feedback: Feedback) -> None:
        """Warn if errors grow in the loop of a plant with this feedback."""
        system, is_discrete = self.system, self.system.is_discrete

        def mode(dt: float) -> tuple[complex, np.ndarray]:
            step = loop_matrix(A, B, feedback, dt, self.delay, is_discrete=is_discrete)
            return largest_mode(step)

        if not all(np.isfinite(part).all() for part in (A, B, feedback.by_x)):
            return  # no state to judge at
        if self.delay > LATEST * self.dt:
            return
        value, vector = mode(self.dt)
        if not is_growing(value):
            return
        tried = () if is_discrete or self.delay else (self.dt * share for share in SHORTER_PERIODS)
        stable = next((dt for dt in tried if not is_growing(mode(dt)[0])), 0.0)
        joint = moved_most(system, vector)
        self.unstable = told(type(self).__name__, system, value, joint, self.dt, self.delay, stable)
        warnings.warn(self.unstable, RuntimeWarning, stacklevel=level_outside())

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """A reference as one of the system's state, None if it is none."""
        return reference

    def _rest_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """Where the system is held as long as nothing else is known, None for nowhere."""
        return self.state_reference(reference)

    def _hold(self, t: float, reference: ReferenceLike | None, message: str) -> np.ndarray:
        """Controls to go on with when there is no answer."""
        self.info = ControlInfo(CallStatus.HELD, message=message)
        u, nominal = self._fallback(t, reference), self.system.nominal_input[self._controls]
        return np.clip(np.where(np.isfinite(u), u, nominal), self._lower, self._upper)

    def _fallback(self, t: float, reference: ReferenceLike | None) -> np.ndarray:
        """Last controls; before there are any those of the reference, or nominal ones."""
        return self._resting_input(t, reference) if self._last is None else self._last

    def _resting_input(self, t: float, reference: ReferenceLike | None) -> np.ndarray:
        """Controls that hold the system at the reference; nominal ones where that says nothing."""
        try:
            goal = self._rest_reference(reference)
            held = sample_reference(self.system, goal, np.array([t]), self._own).u[0]
        except ValueError:
            held = self.system.nominal_input
        return held[self._controls]

    @property
    def _own(self) -> np.ndarray:
        """Values of the system's parameters."""
        return self._p[: self.system.n_parameters]

    def _saturate(self, u: np.ndarray) -> np.ndarray:
        """Controls within their bounds; notes in `info` when that changed them."""
        limited = np.clip(u, self._lower, self._upper)
        self.info = ControlInfo(
            CallStatus.OK if np.array_equal(limited, u) else CallStatus.SATURATED
        )
        return limited

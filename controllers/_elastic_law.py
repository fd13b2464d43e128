"""ElasticLaw: what laws of series-elastic arms share: goals up to the snap, gains that carry.

The arm's equations come from its `SeriesElastic`, which also says whether a law's assumptions hold.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value, trace
from lgcontrol.codegen._internal import check_shape, level_outside
from lgcontrol.groups import check_element
from lgcontrol.groups._internal import group_difference
from lgcontrol.mechanics import (
    AdjustedSpring,
    Multibody,
    SeriesElastic,
    VariableSpring,
    random_configuration,
)
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import ReferenceLike, SmoothReference, System
from lgcontrol.systems._internal import MotionPoint

from ._base import Controller, LawOptions
from ._law_function import (
    Feedback,
    LawArgument,
    goal_arguments,
    largest_mode,
    law_function,
    loop_matrix,
    moved_most,
    vector_argument,
)
from ._losses import is_commanded
from ._spring import motor_inertia
from ._tree_law import bounded, limited

# Springs that the check of a gain takes, as shares of the model's.
STIFFNESSES = (1.0, 0.7, 1.3)
# What sets stiffnesses and its rates, among the arguments of the law.
SETTINGS = ("k", "k_dot", "k_ddot")
# Arguments of an exported law for the motion of the links.
GOALS = ("q_ref", "v_ref", "a_ref", "j_ref", "s_ref")
NEAR_STATES = 0.1  # errors of states for test vectors
SETTING_SAMPLES = 1001  # times at which settings that move are judged
NEEDED = 3  # derivatives that are continuous: up to the jerk, so that the snap is finite


class ElasticOptions(LawOptions, total=False):
    """Arguments that every law of an elastic arm takes besides its own; see `ElasticLaw`."""

    dt: float
    system: System | None
    check: bool


class ElasticLaw(Controller):
    """A law ``(x, goal, integral) → u`` of a series-elastic arm, traced as one function.

    Parameters
    ----------
    arm : SeriesElastic
        What the controller knows of the plant.
    dt : float
        Period in s.
    system : System, optional
        What the controls act on, where it is not ``arm.system()``: with wrenches, forces, ….
    reference : optional
        Configuration (nq,), state, or SmoothReference on the configuration; see `goal`.
    saturate : bool
        Whether the controls stay within their bounds.
    check : bool
        Whether it is checked that sampling, delay and springs carry the gains; see `radii`.
    offset, delay : float
        See `Controller`.
    p : mapping or array_like, optional
        The system's parameters.
    settings : SmoothReference or array_like, optional
        What sets stiffnesses over time, on Rn of the joints that have it; nominal if left out.
    """

    has_integral = False

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        gains: Mapping[str, np.ndarray],
        settings: SmoothReference | ArrayLike | None = None,
        dt: float = 0.001,
        system: System | None = None,
        check: bool = True,
        **loop: Unpack[LawOptions],
    ) -> None:
        system = elastic_system(arm, system)
        super().__init__(system, dt=dt, **loop)
        self.arm = arm
        self._places_of_p = parameter_places(arm, system)
        self.settings, self._still = settings, nominal_settings(arm)
        if settings is not None:
            if not self._still:
                raise ValueError(
                    f"{arm.tree.name}: settings are given, and nothing sets a stiffness"
                )
            first = _check_settings(arm, settings)[0]
            self._still = first, 0 * first, 0 * first
        self.gains: dict[str, np.ndarray] = dict(gains)
        self.commanded = commanded_motors(arm, self._own_parameters, dt, self._motor_damping())
        self.gains |= dict(zip(SETTINGS, self._settings(self.offset), strict=False))
        self._sum = np.zeros(arm.tree.nv)
        names = [system.inputs[i].name for i in self._controls]
        own = [entry.name for entry in arm.mechanics.inputs]
        self._places = None if names == own else [names.index(name) for name in own]
        self._nominal_controls = system.nominal_input[self._controls]
        self._checked: SmoothReference | None = None
        self.law: ModelFunction = self._trace()
        if self.reference is not None:
            self.goal(self.reference, self.offset)
        if check:
            self._report()

    @property
    def _goal_length(self) -> int:
        """Of the place that a goal begins with."""
        return self.arm.tree.nq

    def _motor_damping(self) -> np.ndarray | None:
        """Damping that the law gives each motor, in 1/s; None if it cancels no losses of motors."""

    def _held_to(self, x: Value, speeds: Value, p: Value) -> Value:
        """What the fast losses of motors take at commanded speeds, less what they do as measured.

        See `commanded_joints`: those of motors are the same, next to the motor's inertia.
        """
        mechanics = self.arm.mechanics
        change = mechanics.losses_at(speeds, p) - mechanics.losses_at(mechanics.split(x).speeds, p)
        rows = zip(ca.vertsplit(change), self.commanded, strict=True)
        return ca.vertcat(*(row if chosen else ca.SX(1, 1) for row, chosen in rows))

    @abstractmethod
    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        """Inputs of the arm (as of ``arm.system()``) on CasADi columns."""

    def _trace(self) -> ModelFunction:
        arm, nv = self.arm, self.arm.tree.nv
        shapes: dict[str, tuple[int, ...]] = {"x": (arm.state.nq,), "q": (self._goal_length,)}
        shapes |= dict.fromkeys(("v", "a", "j", "s", "integral"), (nv,))
        shapes["p"] = (len(arm.parameters),)
        shapes |= {name: value.shape for name, value in self.gains.items()}

        def build(x: Value, *values: Value) -> Value:
            goal, integral, p, gains = values[:5], values[5], values[6], values[7:]
            named = dict(zip(self.gains, gains, strict=True))
            return self._build(x, goal, integral, p, named)

        return trace("law", build, shapes, {"u": (len(arm.mechanics.inputs),)})

    def goal(self, reference: ReferenceLike | None, t: Any) -> MotionPoint:
        """Motion of the links at time t (times), with velocity, acceleration, jerk and snap.

        Parameters
        ----------
        reference : array_like, object with ``x``, SmoothReference, or MotionPoint
            A configuration (nq,) or state of the arm, at rest; a motion on the tree's configuration
            whose jerk is continuous; or the point of such a motion at time t.
        t : float
            In s.

        Raises
        ------
        ValueError
            If a motion is not smooth enough, or does not say its derivatives.
        """
        tree = self.arm.tree
        if isinstance(reference, MotionPoint):
            return reference
        if isinstance(reference, SmoothReference):
            if self._checked is not reference:
                _check_smooth(tree, reference)
                self._checked = reference
            return reference(t)
        if reference is None:
            raise ValueError("there is no reference: give it to the controller or in the call")
        value = np.asarray(getattr(reference, "x", reference), dtype=object)
        if callable(reference) or value.ndim != 1:
            raise ValueError(
                f"reference {type(reference).__name__} does not say the jerk and the snap of the "
                "links, which motors on springs follow: give a configuration, or a smooth motion, "
                f"Waypoints({tree.name}.configuration, times, points, order=9) or BSpline(…)"
            )
        q = np.asarray(value, dtype=np.float64)
        if q.shape == (self.arm.state.nq,):
            q = q[: tree.nq]
        q = check_element("reference", check_shape("reference", q, (tree.nq,)), tree.configuration)
        return MotionPoint(q, *np.zeros((4, tree.nv)))

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        goal = self.goal(reference, t)
        self.gains.update(zip(SETTINGS, self._settings(t), strict=False))
        own = x[: self.arm.state.nq]
        u = self._place(self._inputs(own, goal))
        u, self.info = bounded([u], self._lower, self._upper, self.saturate)
        # What is at a bound does not wind up.
        if self.has_integral and self.info.status == CallStatus.OK:
            group = self.arm.tree.configuration
            later = self._sum + self.dt * group.minus(own[: group.nq], goal.x)
            self._sum = later if np.isfinite(later).all() else self._sum
        return u

    def _inputs(self, x: np.ndarray, goal: MotionPoint) -> np.ndarray:
        """Inputs of the arm, whatever their bounds."""
        return self.law(x, *goal, self._sum, self._own_parameters, *self.gains.values())

    @property
    def _own_parameters(self) -> np.ndarray:
        return self._p[self._places_of_p]

    def _place(self, u: Value) -> Value:
        """Inputs of the arm among the controls of the system; NumPy's or CasADi's."""
        if self._places is None:
            return u
        found: Value = self._nominal_controls.copy()
        if not isinstance(u, np.ndarray):
            found = ca.SX(ca.DM(found))
        found[self._places] = u
        return found

    def reset(self) -> None:
        """Forget earlier calls, integrals too."""
        super().reset()
        self._sum = np.zeros(self.arm.tree.nv)

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """States of the links and of motors that follow them."""
        if reference is None:
            return None
        moves = isinstance(reference, SmoothReference)
        # At rest dry friction is no torque, nor are its rates.
        flat = self.arm.flat_map(
            expansion=0 if self.arm.damped_joints else None, dry_friction=not moves
        )
        own = (self._own_parameters,) * bool(self.arm.parameters)

        def at(t: Any) -> np.ndarray:
            return flat(*self.goal(reference, t), *self._settings(t), *own).x

        return at if moves or self._sets_move else at(0.0)

    @property
    def _sets_move(self) -> bool:
        """Whether what sets stiffnesses changes over time."""
        return isinstance(self.settings, SmoothReference)

    def reference_states(
        self, times: np.ndarray, reference: ReferenceLike | None = None
    ) -> np.ndarray | None:
        """States of links and motors; see `Controller.reference_states`."""
        goal: Any = self.state_reference(self.reference if reference is None else reference)
        # All times in one call of the flat map.
        states: Any = goal(times) if callable(goal) else super().reference_states(times, reference)
        return states

    def _settings(self, t: float) -> tuple[np.ndarray, ...]:
        """What sets stiffnesses, and its first two rates; empty where nothing does."""
        return self.settings(t)[:3] if isinstance(self.settings, SmoothReference) else self._still

    # In C

    def _exported_law(self) -> ModelFunction:
        arm, memory, goals = self.arm, self._exported_memory(), self._exported_goals()
        given = elastic_symbols(self)
        x, p = given["x"], given["p"][self._places_of_p]
        goal = [given[name] for name in goals if name not in SETTINGS]
        goal += [ca.SX(arm.tree.nv, 1)] * (len(MotionPoint._fields) - len(goal))
        held: dict[str, Value] = {}
        if memory:
            started = self._exported_start(goal, p)
            held = {key: ca.if_else(given["first"], started[key], given[key]) for key in memory}
        gains = {key: given.get(key, ca.DM(value)) for key, value in self.gains.items()}
        u, after = self._exported_inputs(x, goal, held, p, gains)
        u, is_whole = within_limits(self, self._place(u), self.saturate)
        if self.has_integral:
            group = arm.tree.configuration
            moved = held["integral"] + self.dt * group.minus(x[: group.nq], goal[0])
            after["integral"] = ca.if_else(is_whole, moved, held["integral"])
        return elastic_function(given, {"u": u} | {f"{key}_next": after[key] for key in memory})

    def _exported_inputs(
        self,
        x: Value,
        goal: Sequence[Value],
        held: Mapping[str, Value],
        p: Value,
        gains: Mapping[str, Value],
    ) -> tuple[Value, dict[str, Value]]:
        """Inputs of the arm, whatever their bounds, and what is held next besides integrals."""
        integral = held.get("integral", ca.SX(self.arm.tree.nv, 1))
        return self.law.function.call([x, *goal, integral, p, *gains.values()])[0], {}

    def _exported_start(self, goal: Sequence[Value], p: Value) -> dict[str, Value]:
        """What the memory begins with."""
        return {"integral": ca.SX(self.arm.tree.nv, 1)}

    def _exported_goals(self) -> Mapping[str, LawArgument]:
        goals = goal_arguments(self.arm.tree.configuration, *GOALS)
        if isinstance(self.settings, SmoothReference):
            goals |= _setting_arguments(self.arm, self.settings)
        return goals

    def _exported_memory(self) -> Mapping[str, LawArgument]:
        group = self.arm.tree.configuration
        own = {"integral": vector_argument(group.tangent_names, group.tangent_units, order=-1)}
        return own if self.has_integral else {}

    def _exported_state(self, reference: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return state_near_rest(self.arm, rng)

    # What carries the gains

    def radii(
        self, q: ArrayLike | None = None, stiffnesses: Sequence[float] = STIFFNESSES
    ) -> dict[float, float]:
        """Spectral radius of the sampled loop at rest, with springs softer or stiffer than known.

        Below 1 small errors die out. The plant is linearized and sampled exactly, the controls are
        held for `dt` and come `delay` later.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Where; a configuration within the limits if left out.
        stiffnesses : sequence of float
            Factors on the torques of all springs.

        Returns
        -------
        dict of float to float
            By factor.
        """
        modes = self._modes(q, stiffnesses)
        return {factor: float(abs(value)) for factor, (value, _) in modes.items()}

    def _modes(
        self, q: ArrayLike | None, stiffnesses: Sequence[float]
    ) -> dict[float, tuple[complex, np.ndarray]]:
        """Largest eigenvalue of the sampled loop and its vector, by factor; see `radii`."""
        arm, tree = self.arm, self.arm.tree
        if q is None:
            q = random_configuration(tree, np.random.default_rng(0), limits=True)
        rest = MotionPoint(np.asarray(q, dtype=float), *np.zeros((4, tree.nv)))
        own = self._own_parameters
        given = (own,) * bool(arm.parameters)
        expansion = 0 if arm.damped_joints else None
        settings = nominal_settings(arm)
        known = arm.flat_map(expansion=expansion, dry_friction=True)(*rest, *settings, *given)
        feedback = self._slopes(known.x, rest, own)
        return {
            factor: largest_mode(
                loop_matrix(
                    *_softened(arm, known.x, known.u, own, factor), feedback, self.dt, self.delay
                )
            )
            for factor in stiffnesses
        }

    def _slopes(self, x: np.ndarray, goal: MotionPoint, p: np.ndarray) -> Feedback:
        """Derivatives of the law by the state and the integral, and of the link error."""
        state, nv = self.arm.state, self.arm.tree.nv
        gains = self.gains.values()
        h = 1e-6

        def u(x: np.ndarray, z: np.ndarray) -> np.ndarray:
            return self.law(x, *goal, z, p, *gains)

        steps = h * np.eye(state.dim)
        by_x = (u(state.plus(x, steps), self._sum * 0) - u(state.plus(x, -steps), self._sum * 0)).T
        if not self.has_integral:
            return Feedback.static(by_x / (2 * h))
        sums = np.eye(nv)
        by_z = (u(x, sums) - u(x, -sums)).T / 2  # linear in it
        return Feedback(by_x / (2 * h), by_z, np.eye(nv, state.dim))

    def _report(self) -> None:
        """Warn of gains that sampling, delay or springs do not carry."""
        reference = self.reference
        is_still = reference is not None and not isinstance(reference, SmoothReference)
        q = self.goal(reference, self.offset).x if is_still else None
        with np.errstate(all="ignore"):
            found = self._modes(q, STIFFNESSES)
        bad = {factor: mode for factor, mode in found.items() if not abs(mode[0]) < 1.0}
        if not bad:
            return
        told = ", ".join(
            f"{abs(value):.4g} with {'the springs known' if factor == 1 else _percent(factor)}"
            for factor, (value, _) in bad.items()
        )
        vector = max(bad.values(), key=lambda mode: abs(mode[0]))[1]
        text = (
            f"{type(self).__name__} on {self.arm.tree.name}: errors grow in the loop sampled "
            f"every {self.dt:g} s with a delay of {self.delay:g} s; its spectral radius is {told}. "
            f"Its mode moves {moved_most(self.system, vector)} most. Take other gains, a shorter "
            "period, or check=False"
        )
        if 1.0 in bad:
            self.unstable = text
        warnings.warn(text, RuntimeWarning, stacklevel=level_outside())


def _percent(factor: float) -> str:
    return f"{abs(factor - 1) * 100:.3g} % {'less' if factor < 1 else 'more'} stiffness"


def commanded_motors(
    arm: SeriesElastic, p: np.ndarray, dt: float, damping: np.ndarray | None
) -> np.ndarray:
    """Motors whose losses a law sampled with dt may not cancel as measured, shape (n,)."""
    if damping is None:
        return np.zeros(len(arm.joints), dtype=bool)
    numbers = arm.mechanics.numbers(ca.DM(p))
    slopes = [
        float(c.damping) + float(c.friction) / joint.motor.friction_speed
        for joint, c in zip(arm.elastic_joints, numbers, strict=True)
    ]
    return is_commanded(dt * np.array(slopes) / motor_inertia(arm), dt * damping)


def check_arm(arm: SeriesElastic) -> None:
    """Refuse an arm without springs: a `SeriesElastic` is required."""
    if not isinstance(arm, SeriesElastic):
        remedy = (
            "ComputedTorque and GravityPD are for rigid trees; a tree with springs is "
            "SeriesElastic(tree, {joint: Motor(…)})"
        )
        raise TypeError(f"arm must be a SeriesElastic, not {type(arm).__name__}: {remedy}")


def elastic_system(arm: SeriesElastic, system: System | None) -> System:
    """System that the controls act on: that of the arm unless another is given."""
    check_arm(arm)
    made = arm.system() if system is None else system
    if made.state != arm.state:
        raise ValueError(
            f"the state of {made.name} is not that of {arm.tree.name}: "
            f"{group_difference(made.state, arm.state)}"
        )
    own = {entry.name for entry in made.parameters}
    missing = [entry.name for entry in arm.parameters if entry.name not in own]
    if missing:
        raise ValueError(
            f"{made.name} has no parameters {', '.join(missing)} of {arm.tree.name}: take "
            "arm.system(…) of this very arm, or an arm without symbolic(…)"
        )
    return made


def parameter_places(arm: SeriesElastic, system: System) -> list[int]:
    """Places of the arm's parameters among the system's, which may have some of its own between."""
    places = {entry.name: i for i, entry in enumerate(system.parameters)}
    return [places[entry.name] for entry in arm.parameters]


def nominal_settings(arm: SeriesElastic) -> tuple[np.ndarray, ...]:
    """What sets stiffnesses where nothing is said, at rest; empty where nothing does."""
    set_joints = [j for j in arm.elastic_joints if j.spring.is_set]
    if not set_joints:
        return ()
    kappa = np.array([joint.spring.nominal_setting for joint in set_joints])
    return kappa, 0 * kappa, 0 * kappa


def refuse(arm: SeriesElastic, law: str, *, mixed: bool = False, adjusted: bool = False) -> None:
    """Refuse what a law does not know; dampers and stiffnesses that are inputs always."""
    if arm.damped_joints:
        raise ValueError(
            f"{law} needs springs without dampers, and those of {', '.join(arm.damped_joints)} "
            "have some: the arm is not flat. FlatFeedforward takes damped arms, and ElasticPD"
        )
    if not mixed and arm.rigid_joints:
        raise ValueError(
            f"{law} needs a spring in every joint, and {', '.join(arm.rigid_joints)} are rigid: no "
            "static law linearizes a mixed arm; FlatFeedforward takes it, and "
            "FeedbackLinearization(…, integrators=True) with two integrators per rigid input"
        )
    known = arm.mechanics.adjusted if adjusted else []
    refused = [i for i in arm.mechanics.set_joints if i not in known]
    if refused:
        names = ", ".join(arm.elastic_joints[i].name for i in refused)
        raise ValueError(
            f"{law} knows springs whose stiffness is not set{' but by motors' * adjusted}, and "
            f"those of {names} are; FlatFeedforward takes them"
        )


# Laws in C, also of those that are no ElasticLaw


def elastic_symbols(law: Controller) -> dict[str, Value]:
    """Arguments of a law of an elastic arm: ``first`` and memory, state, goals, parameters."""
    memory = law._exported_memory()
    vectors = {**law._exported_goals(), **memory}
    sizes = {"first": 1} if memory else {}
    sizes |= {"x": law.system.state.nq} | {key: len(own.labels) for key, own in vectors.items()}
    return {key: ca.SX.sym(key, n) for key, n in (sizes | {"p": law.system.n_parameters}).items()}


def elastic_function(given: Mapping[str, Value], results: Mapping[str, Value]) -> ModelFunction:
    """A law of an elastic arm as a function, without the rates of its goal that it does not use."""
    made = ca.veccat(*results.values())
    used = {k: v for k, v in given.items() if k in ("x", "p") or ca.depends_on(made, v)}
    return law_function("law", used, results)


def within_limits(law: Controller, u: Value, saturate: bool) -> tuple[Value, Value]:
    """`bounded` of a CasADi column, and whether it was within."""
    return limited([u], ca.DM(law._lower), ca.DM(law._upper)) if saturate else (u, ca.SX(1))


def _setting_arguments(arm: SeriesElastic, settings: SmoothReference) -> dict[str, LawArgument]:
    """What sets stiffnesses and its rates, drawn from what is planned."""
    set_joints = [joint for joint in arm.elastic_joints if joint.spring.is_set]
    units = [
        f"{joint.force_unit}/{joint.unit}" if isinstance(joint.spring, VariableSpring) else "rad"
        for joint in set_joints
    ]
    first, last = settings.t[[0, -1]]
    found = {}
    for order, key in enumerate(SETTINGS):
        labels = vector_argument([joint.name for joint in set_joints], units, order).labels
        found[key] = LawArgument(
            labels, lambda rng, order=order: settings(rng.uniform(first, last))[order]
        )
    return found


def state_near_rest(arm: SeriesElastic, rng: np.random.Generator) -> np.ndarray:
    """A state next to one at rest, which springs do not leave far behind."""
    q = arm.tree.configuration.random(rng)
    own = (arm.nominal_parameters,) * bool(arm.parameters)
    flat = arm.flat_map(expansion=0 if arm.damped_joints else None, dry_friction=True)
    rest = flat(q, *np.zeros((4, arm.tree.nv)), *nominal_settings(arm), *own).x
    return arm.state.plus(rest, NEAR_STATES * rng.normal(size=arm.state.dim))


def _check_smooth(tree: Multibody, reference: SmoothReference) -> None:
    if reference.group != tree.configuration:
        raise ValueError(
            "the reference moves on another group: "
            f"{group_difference(reference.group, tree.configuration)}"
        )
    if reference.smoothness < NEEDED:
        jump = reference.jumps[0]
        raise ValueError(
            f"the reference is not smooth enough: its {jump.derivative} jumps at {jump.t:g} s, and "
            "motors on springs would have to jump with it; up to the jerk it must be continuous: "
            "Waypoints(…, order=9) rests with all of them zero (order=7 with a snap that jumps)"
        )


def _softened(
    arm: SeriesElastic, x: np.ndarray, u: np.ndarray, p: np.ndarray, factor: float
) -> tuple[np.ndarray, np.ndarray]:
    """A and B of the arm with all spring torques times a factor, about the same links at rest."""
    mechanics, state = arm.mechanics, arm.state

    def make() -> ca.Function:
        t = ca.SX(1, 1)
        xs, us = ca.SX.sym("x", state.nq), ca.SX.sym("u", len(mechanics.inputs))
        ps = ca.SX.sym("p", len(arm.parameters))
        Df, Bf = mechanics.derivatives(t, xs, us, ps)
        M = mechanics.mass_matrix(xs, ps)
        slope = mechanics.torque_derivatives(xs, us, ps)[0]
        inertia = ca.vertcat(*(c.inertia for c in mechanics.numbers(ps)))
        names = ["A", "B", "M", "S", "J"]
        return ca.Function(
            "softened", [xs, us, ps], [ca.densify(y) for y in (Df, Bf, M, slope, inertia)],
            ["x", "u", "p"], names,
        )  # fmt: skip

    A, B, M, S, J = (np.array(y) for y in arm.memo(("softened",), make)(x, u, p))
    nv, n = arm.tree.nv, len(arm.joints)
    extra = (factor - 1.0) * S
    effect = np.zeros((nv, n))
    effect[mechanics.rows, range(n)] = 1.0
    A[nv : 2 * nv] += np.linalg.solve(M, effect @ extra)
    w = state.tangent_slice("motor_velocity")
    A[w] -= extra / J
    return A, B


def _check_settings(arm: SeriesElastic, settings: SmoothReference | ArrayLike) -> np.ndarray:
    """Settings over time, (times, joints); refuses another size, or more than a spring allows."""
    set_joints = [joint for joint in arm.elastic_joints if joint.spring.is_set]
    count = len(set_joints)
    if isinstance(settings, SmoothReference):
        if (settings.group.nq, settings.group.dim) != (count, count):
            raise ValueError(f"settings move on Rn({count}), not on {settings.group}")
        values = settings(np.linspace(settings.t[0], settings.t[-1], SETTING_SAMPLES)).x
    else:
        values = check_shape("settings", settings, (count,))[None]
    for joint, column in zip(set_joints, values.T, strict=True):
        spring = joint.spring
        assert isinstance(spring, VariableSpring | AdjustedSpring)
        if column.min() < spring.lower or column.max() > spring.upper:
            raise ValueError(
                f"settings of joint {joint.name} go from {column.min():g} to {column.max():g}, its "
                f"spring allows {spring.lower:g} to {spring.upper:g}"
            )
    return values

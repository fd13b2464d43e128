"""Laws along motions of elastic arms: linearizing feedback, feedforward, torques of springs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal, Unpack

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value, trace
from lgcontrol.codegen._internal import Shape, check_shape
from lgcontrol.mechanics import SeriesElastic
from lgcontrol.systems import ReferenceLike, SmoothReference, System
from lgcontrol.systems._internal import MotionPoint

from ._base import LawOptions
from ._elastic_law import SETTINGS, ElasticLaw, ElasticOptions, check_arm, refuse
from ._law_function import LawArgument, vector_argument
from ._spring import error_of, gain, motor_damping, spring_damper, spring_gain
from ._tracking import gains as second_order

CHAIN = 4  # integrators from the snap to the link
# Arguments of the exported law: torques and their rates.
TORQUES = ("tau_ref", "tau_rate_ref", "tau_bend_ref")


class FeedbackLinearization(ElasticLaw):
    """``s = s_d − Σ k_i e^(i) − k_I ∫e``, then the flat map: link errors move as linear chains.

    The acceleration and the jerk of the links come from the deflections and their rates through the
    model, not by differentiation. All joints get the same poles.

    Assumptions: the model is exact, sampling is fast, and no bound is met. Model errors set a
    **lower** bound on the bandwidth too: the arm is only as fast as the model knows it. With 10
    rad/s an arm with 30 % less stiffness is unstable, and the check says so. On stiff springs it
    needs a torque sensor: encoders of 16 bit on a spring of 10 kN m/rad step by 1 N m.

    Motors that set stiffness are flat outputs of their own. The law decouples these chains of two
    integrators from the links: their torques show in no link error.

    Parameters
    ----------
    arm : SeriesElastic
        With springs in all joints; or `integrators`. Stiffnesses may be set by motors.
    frequency : float
        Of all poles [rad/s], where no others are given.
    poles : sequence of complex, optional
        Four, or five with an integral; closed under conjugation, in the left half plane.
    weights : pair, optional
        (Q, R) of an LQR on the chain of one joint: Q a diagonal of four (or five, the integral
        first) numbers for e, ė, ë, e⃛, R a number.
    integral : bool
        Whether the integral of the link error is fed back: five poles.
    integrators : bool
        For arms with rigid joints too: two integrators in front of each rigid joint's torque make
        all chains four long. No static law can do this (De Luca and Lucibello 1998).
    settings : SmoothReference or array_like, optional
        Reference of the motors that set stiffness, over time on Rn of those; nominal if left out.
    setting_frequency : float
        Of the two poles of each of these [rad/s].
    dt : float
        Period in s.
    system, reference, saturate, check, offset, delay, p
        See `ElasticLaw`.

    Attributes
    ----------
    coefficients : ndarray, shape (5,)
        k_I, k_0, …, k_3.

    Raises
    ------
    ValueError
        If joints are rigid or springs damped, or poles are no such poles.

    References
    ----------
    M. Spong: Modeling and control of elastic joint robots. ASME J. Dyn. Syst. Meas. Control 109
    (1987); A. De Luca, P. Lucibello: A general algorithm for dynamic feedback linearization of
    robots with elastic joints. ICRA 1998.

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> law = FeedbackLinearization(elastic_planar_arm_tree(), frequency=40.0)
    >>> law.coefficients[1:].tolist()
    [2560000.0, 256000.0, 9600.0, 160.0]
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        frequency: float = 40.0,
        poles: Sequence[complex] | None = None,
        weights: tuple[ArrayLike, float] | None = None,
        integral: bool = False,
        integrators: bool = False,
        settings: SmoothReference | ArrayLike | None = None,
        setting_frequency: float = 40.0,
        **options: Unpack[ElasticOptions],
    ) -> None:
        check_arm(arm)
        # A torque that is held in front of rigid joints tells nothing of stiffnesses that move.
        refuse(arm, "FeedbackLinearization", mixed=integrators, adjusted=not integrators)
        if integrators and len(arm.driven) < len(arm.tree.joints):
            missing = [name for name in arm.tree.joints if name not in arm.driven]
            raise ValueError(f"nothing drives {', '.join(missing)}: the arm has no such chains")
        wide = [n for n in arm.rigid_joints if arm.tree.configuration.blocks[n].dim != 1]
        if wide:
            raise ValueError(
                f"chains are those of joints with one degree of freedom, and {', '.join(wide)} "
                "have more; FlatFeedforward takes them"
            )
        self.has_integral = bool(integral)
        self.coefficients = chain_gains(frequency, poles, weights, self.has_integral)
        self._rigid = [
            k for k in range(len(arm.mechanics.rigid.drives)) if k not in arm.mechanics.drives
        ]
        self._kept: np.ndarray | None = None  # torques of rigid joints and their rates
        gains = {"chain": self.coefficients}
        if arm.mechanics.adjusted:
            omega = _positive("setting_frequency", setting_frequency)
            gains["setting_chain"] = np.array([omega**2, 2 * omega])
        super().__init__(
            arm, gains=gains, settings=settings, **options,
        )  # fmt: skip

    def _trace(self) -> ModelFunction:
        if self._rigid:
            self.gains["held"] = np.zeros(2 * len(self._rigid))
        return super()._trace()

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        arm, group = self.arm, self.arm.tree.configuration
        own = (p,) * bool(arm.parameters)
        q_ref, *rates_ref = goal
        m, back = len(arm.mechanics.inputs), arm.flat_outputs()
        inputs = [ca.SX(m, 1) for _ in range(sum(n.startswith("u") for n in back.arguments))]
        if self._rigid:  # their torques are states of the controller
            count = len(self._rigid)
            inputs[0][self._rigid] = gains["held"][:count]
            inputs[1][self._rigid] = gains["held"][count:]
        q, v, a, j, _ = back.function.call([x, *inputs, *own])
        k = gains["chain"]
        errors = [
            group.minus(q, q_ref), *(x - y for x, y in zip((v, a, j), rates_ref, strict=False))
        ]  # fmt: skip
        s = rates_ref[3] - k[0] * integral
        for coefficient, error in zip(ca.vertsplit(k[1:]), errors, strict=True):
            s -= coefficient * error
        settings = self._settings_wanted(x, gains)
        flat = arm.flat_map().function
        _, _, u, _ = flat.call([q, v, a, j, s, *settings, *own])
        if self.commanded.any():
            slow = k[0] * integral
            for coefficient, error in zip(ca.vertsplit(k[1:4]), errors, strict=False):
                slow += coefficient * error
            there = flat.call([q, v, a, rates_ref[2] - slow / k[4], s, *settings, *own])[0]
            u[arm.mechanics.drives] += self._held_to(x, arm.mechanics.split(there).speeds, p)
        if self._rigid:
            taus = arm.tree.inverse_dynamics_time_derivatives(2)
            tree_p = (p[: len(arm.tree.parameters)],) * bool(arm.tree.parameters)
            bend = arm.mechanics.rigid.B.T @ taus.function.call([q, v, a, j, s, *tree_p])[2]
            u[self._rigid] = bend[self._rigid]
        return u

    def _motor_damping(self) -> np.ndarray:
        return np.full(len(self.arm.joints), self.coefficients[4])

    def _settings_wanted(self, x: Value, gains: Mapping[str, Value]) -> list[Value]:
        """Where motors that set stiffness are, how fast, and how they are to accelerate."""
        mechanics = self.arm.mechanics
        if not mechanics.adjusted:
            return []
        parts, (goal, speed, rate) = mechanics.split(x), (gains[key] for key in SETTINGS)
        stiffness, damping = ca.vertsplit(gains["setting_chain"])
        wanted = rate - stiffness * (parts.phi - goal) - damping * (parts.psi - speed)
        return [parts.phi, parts.psi, wanted]

    def _inputs(self, x: np.ndarray, goal: MotionPoint) -> np.ndarray:
        if not self._rigid:
            return super()._inputs(x, goal)
        held: np.ndarray = (
            self._kept if self._kept is not None else self._start(*goal, self._own_parameters)
        )
        self.gains["held"] = held
        u, after = self._go_on(np.array(super()._inputs(x, goal)), held)
        kept = np.concatenate(after)
        # what overflowed is nothing to go on with: begin anew
        self._kept = kept if np.isfinite(kept).all() and np.isfinite(u).all() else None
        return u

    def _go_on(self, u: Value, held: Value) -> tuple[Value, list[Value]]:
        """Inputs with the torques that are held, and these and their rates for the next call."""
        count, dt = len(self._rigid), self.dt
        torque, rate, bend = held[:count], held[count:], u[self._rigid]  # the law's second rate
        u[self._rigid] = torque + dt / 2 * rate  # the mean over the period it is held
        return u, [torque + dt * rate + dt**2 / 2 * bend, rate + dt * bend]

    @cached_property
    def _start(self) -> ModelFunction:
        """``(goal, p) → held``: what the reference takes of the rigid joints."""
        arm, tree = self.arm, self.arm.tree

        def build(*values: Value) -> Value:
            own = (values[-1][: len(tree.parameters)],) * bool(tree.parameters)
            taus = tree.inverse_dynamics_time_derivatives(2).function.call([*values[:-1], *own])
            return ca.vertcat(*((arm.mechanics.rigid.B.T @ tau)[self._rigid] for tau in taus[:2]))

        shapes: dict[str, Shape] = {"q": (tree.nq,)} | dict.fromkeys("vajs", (tree.nv,))
        shapes["p"] = (len(arm.parameters),)
        return trace("start", build, shapes, {"held": (2 * len(self._rigid),)})

    def _exported_inputs(
        self,
        x: Value,
        goal: Sequence[Value],
        held: Mapping[str, Value],
        p: Value,
        gains: Mapping[str, Value],
    ) -> tuple[Value, dict[str, Value]]:
        if not self._rigid:
            return super()._exported_inputs(x, goal, held, p, gains)
        u, _ = super()._exported_inputs(x, goal, held, p, {**gains, "held": held["held"]})
        u, after = self._go_on(u, held["held"])
        return u, {"held": ca.vertcat(*after)}

    def _exported_start(self, goal: Sequence[Value], p: Value) -> dict[str, Value]:
        start = super()._exported_start(goal, p)
        return start | {"held": self._start.function(*goal, p)} if self._rigid else start

    def _exported_memory(self) -> Mapping[str, LawArgument]:
        memory = dict(super()._exported_memory())
        if self._rigid:
            inputs = [self.arm.mechanics.inputs[i] for i in self._rigid]
            names, units = [entry.name for entry in inputs], [entry.unit for entry in inputs]
            torques, rates = (vector_argument(names, units, order) for order in range(2))
            labels = torques.labels + [(f"{name}.rate", unit) for name, unit in rates.labels]
            memory["held"] = LawArgument(labels, lambda rng: rng.normal(size=len(labels)))
        return memory

    def reset(self) -> None:
        """Forget earlier calls, integrals and held torques."""
        super().reset()
        self._kept = None


def chain_gains(
    frequency: float,
    poles: Sequence[complex] | None,
    weights: tuple[ArrayLike, float] | None,
    integral: bool,
) -> np.ndarray:
    """k_I, k_0 … k_3 of a chain of four integrators, from poles, from weights, or one frequency."""
    order = CHAIN + integral
    if poles is not None and weights is not None:
        raise ValueError("give poles or weights, not both")
    if weights is not None:
        if not isinstance(weights, Sequence) or len(weights) != 2:
            raise ValueError(f"weights must be a pair (Q, R), got {weights!r}")
        Q = check_shape("Q of weights", weights[0], (order,))
        if not ((Q >= 0).all() and Q.any() and weights[1] > 0):
            raise ValueError("weights must be a diagonal Q that is not negative, and R > 0")
        A, B = np.eye(order, k=1), np.eye(order)[:, -1:]
        P = scipy.linalg.solve_continuous_are(A, B, np.diag(Q), [[float(weights[1])]])
        found = (B.T @ P).ravel() / weights[1]
    else:
        if poles is None:
            poles = [-_positive("frequency", frequency)] * order
        roots = np.asarray(poles, dtype=complex)
        if roots.shape != (order,) or not np.isfinite(roots).all():
            raise ValueError(f"expected {order} poles, finite numbers, got {poles}")
        polynomial = np.poly(roots)
        if np.abs(np.imag(polynomial)).max() > 1e-9 * np.abs(polynomial).max():
            raise ValueError(f"poles must come in conjugate pairs, got {poles}")
        if (np.real(roots) >= 0).any():
            raise ValueError(f"poles must have negative real parts, got {poles}")
        found = np.real(polynomial)[:0:-1]
    return np.concatenate([np.zeros(CHAIN + 1 - order), found])


def _positive(name: str, frequency: float) -> float:
    value = float(check_shape(name, frequency, ()))
    if not value > 0:
        raise ValueError(f"{name} must be positive, got {value} rad/s")
    return value


class FlatFeedforward(ElasticLaw):
    """``u = u_d − K_P (θ − θ_d) − K_D (θ̇ − θ̇_d) − K_I ∫(q − q_d)``: the flat map with feedback.

    Motors follow what the motion of the links takes of them, torques included. The proportional
    gain acts at the motors, which no spring separates from the torque, or at the links
    (``side="link"``). At the links a gain that is not small destabilises a soft arm, since the
    spring is between. The integral is one of the link error: in the set point of the motors it
    destabilises. Rigid joints, a base among them, have the same law in their own coordinates.

    Assumptions: the arm is flat, or its dampers are small next to the springs. Deflections are
    those without dampers (order 0 of the expansion in D/K; the error is ``D τ̇/K²``). At rest,
    without integral and saturation, motor PD is stable as in the reference, for gains that carry
    the weight (see `ElasticPD`).

    Parameters
    ----------
    arm : SeriesElastic
    stiffness : float or array_like, shape (m,), optional
        K_P of each driven degree of freedom, in the order of the inputs [N m/rad]; that of the
        springs (at rest) if left out. Rigid joints need them given.
    damping : float or array_like, shape (m,), optional
        K_D [N m s/rad]; by default 0.7 of critical for the motor on spring and gain.
    integral : float or array_like, shape (m,)
        K_I [N m/(rad s)].
    side : {"motor", "link"}
    settings : SmoothReference or array_like, optional
        Stiffnesses over time, or positions of the motors that set them, on Rn of the joints that
        have such a motor; nominal if left out.
    setting_gains : pair of float
        Stiffness [N m/rad] and damping [N m s/rad] by which motors that set stiffness follow.
    dt : float
        Period in s.
    system, reference, saturate, check, offset, delay, p
        See `ElasticLaw`.

    Raises
    ------
    ValueError
        If a gain is negative or missing, or the reference is not smooth enough.

    References
    ----------
    P. Tomei: A simple PD controller for robots with elastic joints. IEEE Trans. Autom. Control 36
    (1991); A. De Luca: Feedforward/feedback laws for the control of flexible robots. ICRA 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> arm = elastic_planar_arm_tree()
    >>> hold = FlatFeedforward(arm, reference=[0.5, 0.3])
    >>> x = hold.reference_states(np.zeros(1))[0]
    >>> np.abs(hold(0.0, x) - arm.tree.gravity_forces([0.5, 0.3])).max() < 1e-12
    np.True_
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        integral: ArrayLike = 0.0,
        side: Literal["motor", "link"] = "motor",
        settings: SmoothReference | ArrayLike | None = None,
        setting_gains: tuple[float, float] = (20.0, 0.4),
        **options: Unpack[ElasticOptions],
    ) -> None:
        check_arm(arm)
        if side not in ("motor", "link"):
            raise ValueError(f'side must be "motor" or "link", not {side!r}')
        self.side = side
        count = len(arm.mechanics.rigid.drives)
        gains = {
            "stiffness": spring_gain(arm, stiffness, count),
            "integral_gain": gain("integral", integral, count),
        }
        gains["damping"] = motor_damping(arm, damping, gains["stiffness"])
        self.has_integral = bool(gains["integral_gain"].any())
        if arm.mechanics.adjusted:
            gains["setting_gains"] = gain("setting_gains", setting_gains, 2)
        super().__init__(
            arm, gains=gains, settings=settings, **options,
        )  # fmt: skip

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        arm, mechanics = self.arm, self.arm.mechanics
        own = (p,) * bool(arm.parameters)
        settings = [gains[key] for key in SETTINGS if key in gains]
        flat = arm.flat_map(expansion=0 if arm.damped_joints else None)
        wanted, _, u, _ = flat.function.call([*goal, *settings, *own])
        parts, there = mechanics.split(x), mechanics.split(wanted)
        e, relative = error_of(arm.tree.configuration, parts.q, parts.v, *goal[:2])
        B, drives = mechanics.rigid.B, mechanics.drives
        K, D = B @ gains["stiffness"], B @ gains["damping"]
        force = B.T @ spring_damper(arm.tree.configuration, e, relative, K, D)
        count = force.shape[0]
        if self.side == "motor":
            for i, (joint, at) in enumerate(zip(arm.elastic_joints, drives, strict=True)):
                away = joint.group.minus(parts.motors[i], there.motors[i])
                slower = parts.speeds[i] - there.speeds[i]
                force[at] = -gains["stiffness"][at] * away - gains["damping"][at] * slower
        feedback = force - gains["integral_gain"] * (B.T @ integral)
        rest = u[count:]
        for k, i in enumerate(mechanics.adjusted):
            stiffness, damping = ca.vertsplit(gains["setting_gains"])
            at = mechanics.set_joints.index(i)
            rest[at] -= stiffness * (parts.phi[k] - there.phi[k])
            rest[at] -= damping * (parts.psi[k] - there.psi[k])
        return ca.vertcat(u[:count] + feedback, rest)


class SpringTorqueControl(ElasticLaw):
    """``τ̈ = τ̈_d − 2 ζ ω (τ̇ − τ̇_d) − ω² (τ − τ_d)`` for the torques through the springs.

    The motors get ``u = B (a + δ̈) + losses + τ`` with δ̈ from that and a of the links from the
    model. The link may therefore move as it likes: torque is the command of an outer loop.

    Assumptions: springs without dampers in all joints; the acceleration of the links is what the
    model says (nothing touches them, or slowly). With the model exact the error is linear; without,
    a contact shows as a disturbance ``−B a``.

    Parameters
    ----------
    arm : SeriesElastic
    frequency : float or array_like, shape (n,)
        ω [rad/s].
    damping_ratio : float or array_like, shape (n,)
        ζ.
    dt : float
        Period in s.
    reference : optional
        Torques (n,) [N m], or a SmoothReference on Rn(n), whose rates are fed forward.
    system, saturate, offset, delay, p
        See `ElasticLaw`.

    Raises
    ------
    ValueError
        If joints are rigid or springs damped, or the reference has another size.

    References
    ----------
    A. Albu-Schäffer, C. Ott, G. Hirzinger: A unified passivity-based control framework for
    position, torque and impedance control of flexible joint robots. Int. J. Robotics Research 26
    (2007).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> arm = elastic_planar_arm_tree(gravity=0.0)
    >>> law = SpringTorqueControl(arm, frequency=100.0, reference=[1.0, 0.5])
    >>> law(0.0, np.zeros(8)).round(3)  # B ω² τ_d / K
    array([7.5, 3. ])
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        frequency: ArrayLike = 100.0,
        damping_ratio: ArrayLike = 1.0,
        dt: float = 0.001,
        system: System | None = None,
        **loop: Unpack[LawOptions],
    ) -> None:
        check_arm(arm)
        refuse(arm, "SpringTorqueControl")
        n = len(arm.joints)
        stiffness, damping = second_order(frequency, damping_ratio, n)
        super().__init__(
            arm, gains={"stiffness": stiffness, "damping": damping}, dt=dt, system=system,
            check=False, **loop,
        )  # fmt: skip

    def goal(self, reference: ReferenceLike | None, t: float) -> MotionPoint:
        """Torques at time t and their rates, in the places of q, v and a.

        Parameters
        ----------
        reference : array_like, shape (n,), or SmoothReference
        t : float
            In s.
        """
        n = len(self.arm.joints)
        if reference is None:
            raise ValueError("there is no reference: give torques to the controller or in the call")
        if isinstance(reference, SmoothReference):
            if reference.group.nq != n or reference.group.dim != n:
                raise ValueError(f"torques move on Rn({n}), not on {reference.group}")
            return reference(t)
        return MotionPoint(check_shape("reference", reference, (n,)), *np.zeros((4, n)))

    @property
    def _goal_length(self) -> int:
        """Torques."""
        return len(self.arm.joints)

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        mechanics, nv = self.arm.mechanics, self.arm.tree.nv
        u = ca.SX(len(mechanics.inputs), 1)
        parts, d = mechanics.split(x), mechanics.deflection(x)
        a = mechanics.field(ca.SX(1, 1), x, u, p)[nv : 2 * nv]
        tau, rows, commanded = mechanics.spring_torque(x, u, p), [], []
        for i, (joint, c) in enumerate(
            zip(self.arm.elastic_joints, mechanics.numbers(p), strict=True)
        ):
            slopes, row = joint.spring.slopes(d[i], ca.DM(0), c.spring), mechanics.rows[i]
            rate = parts.speeds[i] - parts.v[row]
            off, drift = tau[i] - goal[0][i], slopes.by_deflection * rate - goal[1][i]
            bend = goal[2][i] - gains["damping"][i] * drift - gains["stiffness"][i] * off
            change = (bend - slopes.second[0] * rate**2) / slopes.by_deflection
            rows.append(c.inertia * (a[row] + change) + tau[i])
            slow = goal[1][i] - gains["stiffness"][i] / gains["damping"][i] * off
            commanded.append(parts.v[row] + slow / slopes.by_deflection)
        u[mechanics.drives] = ca.vertcat(*rows)
        u[mechanics.drives] += mechanics.motor_losses(x, p)
        u[mechanics.drives] += self._held_to(x, ca.vertcat(*commanded), p)
        return u

    def _motor_damping(self) -> np.ndarray:
        return self.gains["damping"]

    def _exported_goals(self) -> Mapping[str, LawArgument]:
        names = list(self.arm.joints)
        units = [joint.force_unit for joint in self.arm.elastic_joints]
        return {key: vector_argument(names, units, order) for order, key in enumerate(TORQUES)}

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """None: torques are no state."""

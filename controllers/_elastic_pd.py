"""Laws that hold an elastic arm at its motors, or give it the behaviour of a rigid one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value, trace
from lgcontrol.codegen._internal import Shape
from lgcontrol.mechanics import SeriesElastic

from ._elastic_law import ElasticLaw, ElasticOptions, check_arm, refuse
from ._spring import (
    DAMPING_RATIO,
    WEIGHT_SAMPLES,
    gain,
    motor_damping,
    motor_inertia,
    spring_gain,
    stiffness_at_rest,
    weight_slopes,
)


class ElasticPD(ElasticLaw):
    """``u = g(q_d) − K_P (θ − θ_d) − K_D θ̇`` with ``σ(θ_d − q_d) = g(q_d)``: desired gravity.

    Only motors are measured. With any positive gains the energy (kinetic, of weight, springs and
    ``½ K_P (θ − θ_d)²``, less the work of ``g(q_d)``) never rises: `storage` has it. That the only
    place to come to rest at is the goal takes ``λ_min(K_E) > max ‖∂g/∂q‖``, with

        ``K_E = [[K, −K], [−K, K + K_P]]``

    the stiffness of springs and gain for (q, θ). It is checked at construction, over 2,000
    configurations within the limits (seeded; all angles of joints without). The largest norm found
    is not a bound, and says so in `margin`.

    Assumptions: springs in all joints, linear or hardening (K is that at rest); the reference
    stays. Along motions `FlatFeedforward` is the law.

    Parameters
    ----------
    arm : SeriesElastic
    stiffness : float or array_like, shape (n,), optional
        K_P [N m/rad]; that of the springs if left out.
    damping : float or array_like, shape (n,), optional
        K_D [N m s/rad]; 0.7 of critical for motor, spring and gain if left out.
    certify : bool
        Whether gains for which the condition fails are refused.
    dt : float
        Period in s.
    system, reference, saturate, check, offset, delay, p
        See `ElasticLaw`.

    Attributes
    ----------
    stiffness_margin : tuple of float
        ``λ_min(K_E)`` and the largest norm of ∂g/∂q that was found.

    Raises
    ------
    ValueError
        If joints are rigid, a gain is negative, or the condition fails; the message says by how
        much.

    References
    ----------
    P. Tomei: A simple PD controller for robots with elastic joints. IEEE Trans. Autom. Control 36
    (1991).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> law = ElasticPD(elastic_planar_arm_tree(), stiffness=[400.0, 250.0])
    >>> law.margin
    'λ_min(K_E) = 95.5 against 31.7 N m/rad, the largest ‖∂g/∂q‖ of 2000 samples'
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        certify: bool = True,
        **options: Unpack[ElasticOptions],
    ) -> None:
        check_arm(arm)
        if arm.rigid_joints:
            raise ValueError(
                f"ElasticPD needs a spring in every joint, and {', '.join(arm.rigid_joints)} are "
                "rigid: FlatFeedforward takes mixed arms"
            )
        Kp, K = spring_gain(arm, stiffness, len(arm.joints)), stiffness_at_rest(arm)
        least = np.linalg.eigvalsh(
            np.block([[np.diag(K), -np.diag(K)], [-np.diag(K), np.diag(K + Kp)]])
        )[0]
        steepest = np.linalg.norm(weight_slopes(arm), ord=2, axis=(-2, -1)).max()
        self.stiffness_margin = float(least), float(steepest)
        if certify and not self.stiffness_margin[0] > self.stiffness_margin[1]:
            raise ValueError(
                f"{arm.tree.name}: {self.margin}: the springs with these gains do not carry the "
                "weight to the goal from everywhere; take a larger stiffness (λ_min(K_E) stays "
                f"below {K.min():.4g} N m/rad, the softest spring), or certify=False"
            )
        super().__init__(
            arm, gains={"stiffness": Kp, "damping": motor_damping(arm, damping, Kp)}, **options,
        )  # fmt: skip

    @property
    def margin(self) -> str:
        """The condition in numbers, and how they were found."""
        least, steepest = self.stiffness_margin
        return (
            f"λ_min(K_E) = {least:.3g} against {steepest:.3g} N m/rad, the largest ‖∂g/∂q‖ of "
            f"{WEIGHT_SAMPLES} samples"
        )

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        arm, mechanics = self.arm, self.arm.mechanics
        held, away = self._away(x, goal[0], p)
        speeds = mechanics.split(x).speeds
        u = ca.SX(ca.DM(_nominal_inputs(arm)))
        u[mechanics.drives] = held - gains["stiffness"] * away - gains["damping"] * speeds
        return u

    def _away(self, x: Value, q: Value, p: Value) -> tuple[Value, Value]:
        """Weight at the springs of the goal, and how far motors are from where they carry it."""
        arm, mechanics = self.arm, self.arm.mechanics
        own = (p[: len(arm.tree.parameters)],) * bool(arm.tree.parameters)
        weight = arm.tree.gravity_forces.function.call([q, *own])[0]
        parts, settings = mechanics.split(x), mechanics.settings(x, ca.DM(_nominal_inputs(arm)))
        held, away = [], []
        for i, (joint, c) in enumerate(zip(arm.elastic_joints, mechanics.numbers(p), strict=True)):
            held.append(weight[mechanics.rows[i]])
            d = joint.spring.deflection(held[-1], settings[i], c.spring)
            there = joint.group.plus(joint.places.of(q), d)
            away.append(joint.group.minus(parts.motors[i], there))
        return ca.vertcat(*held), ca.vertcat(*away)

    @cached_property
    def _storage(self) -> ModelFunction:
        arm, mechanics = self.arm, self.arm.mechanics

        def build(x: Value, q: Value, stiffness: Value, p: Value) -> Value:
            held, away = self._away(x, q, p)
            u = ca.DM(_nominal_inputs(arm))
            own = mechanics.kinetic_energy, mechanics.potential_energy
            energy = sum(part(ca.SX(1, 1), x, u, p) for part in own)
            return energy + ca.dot(stiffness, away**2) / 2 - ca.dot(away, held)

        shapes: dict[str, Shape] = {"x": (arm.state.nq,), "q": (arm.tree.nq,)}
        shapes |= {"stiffness": (len(arm.joints),), "p": (len(arm.parameters),)}
        return trace("storage", build, shapes, {"energy": ()})

    def storage(self, x: ArrayLike, q: ArrayLike) -> np.ndarray:
        """Energy function of states for a goal, shape (...), up to a constant.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            CasADi columns, too.
        q : array_like, shape (nq,)
            Configuration that is held.
        """
        return self._storage(x, q, self.gains["stiffness"], self._own_parameters)


def _nominal_inputs(arm: SeriesElastic) -> np.ndarray:
    return np.array([entry.nominal for entry in arm.mechanics.inputs])


class ElasticStructurePreserving(ElasticLaw):
    """Errors move as an elastic arm of the same inertias and springs, with dampers and a PD.

    With ``e = q − q_d`` and new motor coordinates η the loop is
    ``M(q) ë + C(q, v) ė + D_q ė = K (η − e)``, ``B η̈ + D_η η̇ + K_P η = −K (η − e)``. Inertias and
    springs stay as they are; damping acts at the links although the torque is at the motors. The
    motors get ``η = θ − q_d − K⁻¹ n`` with ``n = M(q) a_d + C(q, v) v_d + g(q) + losses − D_q ė``,
    and two time derivatives of n along the motion, from the model.

    Assumptions: linear springs, an exact model. The energy
    ``½ ėᵀ M ė + ½ η̇ᵀ B η̇ + ½ (η − e)ᵀ K (η − e) + ½ ηᵀ K_P η`` falls by ``ėᵀ D_q ė + η̇ᵀ D_η η̇``
    for any positive gains, also along motions: `storage` has it.

    Parameters
    ----------
    arm : SeriesElastic
        With linear springs in all joints, no dampers.
    stiffness : float or array_like, shape (n,), optional
        K_P [N m/rad]; that of the springs if left out.
    link_damping : float or array_like, shape (n,), optional
        D_q [N m s/rad]; 0.7 of critical for the mean inertia of each joint if left out.
    damping : float or array_like, shape (n,), optional
        D_η [N m s/rad]; 0.7 of critical for motor, spring and K_P if left out.
    dt : float
        Period in s.
    system, reference, saturate, check, offset, delay, p
        See `ElasticLaw`.

    Raises
    ------
    ValueError
        If springs are not linear, joints rigid, or a gain is negative.

    References
    ----------
    M. Keppler, D. Lakatos, C. Ott, A. Albu-Schäffer: Elastic structure preserving (ESP) control for
    compliantly actuated robots. IEEE Trans. Robotics 34 (2018).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> law = ElasticStructurePreserving(elastic_planar_arm_tree(), reference=[0.5, 0.3])
    >>> x = law.reference_states(np.zeros(1))[0]
    >>> float(law.storage(x, law.goal([0.5, 0.3], 0.0)).round(9))
    0.0
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        stiffness: ArrayLike | None = None,
        link_damping: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        **options: Unpack[ElasticOptions],
    ) -> None:
        check_arm(arm)
        refuse(arm, "ElasticStructurePreserving")
        crooked = [joint.name for joint in arm.elastic_joints if not joint.spring.is_linear]
        if crooked:
            raise ValueError(
                f"ElasticStructurePreserving knows linear springs; those of {', '.join(crooked)} "
                "are not: FlatFeedforward and FeedbackLinearization take them"
            )
        n, K = len(arm.joints), stiffness_at_rest(arm)
        Kp = spring_gain(arm, stiffness, n)
        if link_damping is None:
            series = K * Kp / (K + Kp)
            link_damping = 2 * DAMPING_RATIO * np.sqrt(_typical_inertia(arm) * series)
        gains = {
            "stiffness": Kp,
            "link_damping": gain("link_damping", link_damping, n),
            "damping": motor_damping(arm, damping, Kp),
        }
        super().__init__(
            arm, gains=gains, **options,
        )  # fmt: skip
        self._storage: Any = None

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        e, eta, eta_dot, push, K, B = self._coordinates(x, goal, p, gains)
        eta_ddot = (K * (e - eta) - gains["stiffness"] * eta - gains["damping"] * eta_dot) / B
        mechanics = self.arm.mechanics
        slow = (K * (e - eta) - gains["stiffness"] * eta) / gains["damping"]
        speeds = mechanics.split(x).speeds - eta_dot + slow
        losses = mechanics.motor_losses(x, p) + self._held_to(x, speeds, p)
        return B * (eta_ddot + push) + K * mechanics.deflection(x) + losses

    def _motor_damping(self) -> np.ndarray:
        return self.gains["damping"] / motor_inertia(self.arm)

    def _coordinates(
        self, x: Value, goal: Sequence[Value], p: Value, gains: Mapping[str, Value]
    ) -> tuple[Value, ...]:
        """``e, η, η̇, q̈_d + K⁻¹ n̈``, K and B."""
        arm, tree, mechanics = self.arm, self.arm.tree, self.arm.mechanics
        numbers, own = mechanics.numbers(p), (p,) * bool(arm.parameters)
        K = ca.vertcat(*(c.spring["stiffness"] for c in numbers))
        B = ca.vertcat(*(c.inertia for c in numbers))
        back = arm.flat_outputs()
        q, v, a, j, _ = back.function.call([x, ca.SX(len(mechanics.inputs), 1), *own])
        tree_p = (p[: len(tree.parameters)],) * bool(tree.parameters)
        forces = tree.two_velocity_dynamics(2).function.call([q, v, a, j, *goal[1:], *tree_p])
        n, n_dot, n_ddot = (
            force - gains["link_damping"] * (rate - wanted)
            for force, rate, wanted in zip(forces, (v, a, j), goal[1:4], strict=True)
        )
        parts = mechanics.split(x)
        e, eta = [], []
        for i, joint in enumerate(arm.elastic_joints):
            at = joint.places.of(goal[0])
            e.append(joint.group.minus(joint.places.of(q), at))
            eta.append(joint.group.minus(parts.motors[i], at))
        eta_dot = parts.speeds - goal[1] - n_dot / K
        return ca.vertcat(*e), ca.vertcat(*eta) - n / K, eta_dot, goal[2] + n_ddot / K, K, B

    def storage(self, x: ArrayLike, goal: Sequence[ArrayLike]) -> np.ndarray:
        """Energy function of the errors at states, shape (...), which never increases.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            States of the arm.
        goal : sequence
            Configuration, velocity, acceleration, jerk, snap of the reference.
        """
        if self._storage is None:
            arm, nv = self.arm, self.arm.tree.nv

            def build(x: Value, *values: Value) -> Value:
                goal, p, gains = (
                    values[:5],
                    values[5],
                    dict(zip(self.gains, values[6:], strict=True)),
                )
                e, eta, eta_dot, _, K, B = self._coordinates(x, goal, p, gains)
                v = arm.mechanics.split(x).v - goal[1]
                M = arm.mechanics.mass_matrix(x, p)
                return (
                    ca.dot(v, M @ v) + ca.dot(B, eta_dot**2) + ca.dot(K, (eta - e) ** 2)
                    + ca.dot(gains["stiffness"], eta**2)
                ) / 2  # fmt: skip

            shapes: dict[str, tuple[int, ...]] = {"x": (arm.state.nq,), "q": (arm.tree.nq,)}
            shapes |= dict.fromkeys(("v", "a", "j", "s"), (nv,))
            shapes["p"] = (len(arm.parameters),)
            shapes |= {name: value.shape for name, value in self.gains.items()}
            self._storage = trace("storage", build, shapes, {"energy": ()})
        return self._storage(x, *goal, self._own_parameters, *self.gains.values())


def _typical_inertia(arm: SeriesElastic) -> np.ndarray:
    """Geometric mean of the diagonal of M at random configurations."""
    q = arm.tree.configuration.random(np.random.default_rng(0), (50,))
    diagonal = np.diagonal(arm.tree.mass_matrix(q), axis1=-2, axis2=-1)
    return np.exp(np.log(diagonal).mean(axis=0))

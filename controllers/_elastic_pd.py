"""ElasticPD: a PD at the motors with the weight of the goal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value, trace
from lgcontrol.codegen._internal import Shape
from lgcontrol.mechanics import SeriesElastic

from ._elastic_gains import (
    WEIGHT_SAMPLES,
    motor_damping,
    spring_gain,
    stiffness_at_rest,
    weight_slopes,
)
from ._elastic_law import ElasticLaw, ElasticOptions, check_arm


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

"""Springs and dampers on a group, and gains of elastic arms where none are given."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value
from lgcontrol.codegen._internal import as_numbers, check_shape
from lgcontrol.groups import LieGroup
from lgcontrol.mechanics import SeriesElastic, random_configuration

DAMPING_RATIO = 0.7
WEIGHT_SAMPLES, WEIGHT_SEED = 2000, 0  # of configurations at which the weight is judged


def error_of(
    group: LieGroup, X: Value, velocity: Value, X_ref: Value, velocity_ref: Value
) -> tuple[Value, Value]:
    """Error ``e = minus(X, X_ref)`` and relative velocity, both in the axes of X.

    The relative velocity ``ν = V − Ad(h⁻¹) V_ref`` with ``h = X_ref⁻¹ X`` is that of h: the rate of
    e is ``J_r(e)⁻¹ ν``.
    """
    h = group.compose(group.inverse(X_ref), X)
    return group.log(h), velocity - group.Ad(group.inverse(h)) @ velocity_ref


def spring_damper(
    group: LieGroup, e: Value, relative: Value, stiffness: Value, damping: Value
) -> Value:
    """Force ``−J_r(e)⁻ᵀ K e − D ν``: its power on ν is ``−d/dt ½ eᵀ K e − νᵀ D ν``."""
    return -group.right_jacobian_inverse(e).T @ (stiffness * e) - damping * relative


def gain(name: str, value: ArrayLike, size: int) -> np.ndarray:
    """Diagonal of a gain, shape (size,); refuses negative ones."""
    array = as_numbers(name, value)
    array = check_shape(name, array, () if array.ndim == 0 else (size,))
    if (array < 0).any():
        raise ValueError(f"{name} must not be negative, got {value}")
    return np.broadcast_to(array, (size,)).copy()


def spring_gain(arm: SeriesElastic, value: ArrayLike | None, count: int) -> np.ndarray:
    """Gains of all driven degrees of freedom; those of the springs at rest where none are given."""
    if value is not None:
        return gain("stiffness", value, count)
    if arm.rigid_joints and count > len(arm.joints):
        raise ValueError(
            f"{arm.tree.name}: joints {', '.join(arm.rigid_joints)} have no spring to take a gain "
            f"from; give stiffness and damping, {count} numbers in the order of the inputs"
        )
    return stiffness_at_rest(arm)


def stiffness_at_rest(arm: SeriesElastic) -> np.ndarray:
    """Slopes of the springs where they are slack, shape (joints,)."""
    p = ca.DM(arm.nominal_parameters)
    return np.array(
        [
            float(joint.spring.slopes(ca.DM(0), ca.DM(joint.spring.nominal_setting), c.spring)[0])
            for joint, c in zip(arm.elastic_joints, arm.mechanics.numbers(p), strict=True)
        ]
    )


def motor_inertia(arm: SeriesElastic) -> np.ndarray:
    """Inertia of the motors behind their gears, shape (joints,)."""
    return np.array(
        [float(c.inertia) for c in arm.mechanics.numbers(ca.DM(arm.nominal_parameters))]
    )


def motor_damping(arm: SeriesElastic, value: ArrayLike | None, stiffness: np.ndarray) -> np.ndarray:
    """Gains on motor speeds, shape of the stiffness; ``2 ζ √(B (K_P + K))`` where none are given.

    That is for motors; those of rigid joints must be given.
    """
    if value is not None:
        return gain("damping", value, len(stiffness))
    if len(stiffness) > len(arm.joints):
        raise ValueError(
            f"{arm.tree.name}: damping has no default for rigid joints; give {len(stiffness)} "
            "numbers in the order of the inputs"
        )
    B, K = motor_inertia(arm), stiffness_at_rest(arm)
    return 2 * DAMPING_RATIO * np.sqrt(B * (stiffness + K))


def weight_slopes(arm: SeriesElastic) -> np.ndarray:
    """∂g/∂q at seeded configurations within the limits, shape (WEIGHT_SAMPLES, nv, nv)."""
    tree, rng = arm.tree, np.random.default_rng(WEIGHT_SEED)
    q = random_configuration(tree, rng, WEIGHT_SAMPLES)
    none = np.zeros((WEIGHT_SAMPLES, tree.nv))
    return tree.inverse_dynamics_derivatives(q, none, none).d_tau_d_q

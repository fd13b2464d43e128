"""Losses in joints under a sampled law: cancelled where they are slow, commanded where fast.

A law that cancels a loss ``L(v)`` adds its value at the measured velocity and holds it for a
period. What a joint loses faster than that is gone before the next sample, and a loss that the
plant has not drives the joint. Both show in the eigenvalue of the joint's sampled velocity loop.
Such joints get ``L(v_c)`` with the velocity v_c that the law commands: as the loss rises with the
velocity, it then holds the joint to v_c, whatever its size.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.groups import LieGroup
from lgcontrol.systems import System

from ._spring import error_of, spring_damper
from ._tracking import MechanicalBlocks

# Share of a loss that the plant may lack: friction is hardly known better, and the laws of elastic
# arms are checked with springs as badly known.
DOUBT = 0.3
# Least share of the law's damping that has to act when the loss is what the law takes it for.
LEAST_EFFECT = 0.5
# Speeds in rad/s or m/s that are tried until this share of the slope of dry friction is left, and
# one at which nothing is.
SLOWEST_TRIED, DOUBLINGS, SATURATED, FAST = 1e-4, 20, 0.01, 1e4
LOSS_STEP = 1e-6  # of differences by velocities, rad/s or m/s
LOSS_STATES, LOSS_SEED = 20, 0  # states at which the inertia that a joint moves is judged


def velocity_eigenvalue(
    z: np.ndarray, damping: np.ndarray | float, share: float = 1.0
) -> np.ndarray:
    """Eigenvalue of a joint's sampled velocity loop with its loss cancelled as measured.

    The joint obeys ``v̇ = −κ r v + u`` and the law holds ``u = (r − δ) v`` for a period T: `z` is
    ``r T``, `damping` ``δ T``, and `share` κ, the loss of the plant over that of the model.

    Examples
    --------
    >>> velocity_eigenvalue(np.array([1e-9, 2.0]), 0.02).round(4)  # a fast loss: damping is lost
    array([0.98  , 0.9914])
    >>> float(velocity_eigenvalue(np.array(2.0), 0.02, share=0.7).round(3))  # and less of it: grows
    1.312
    """
    settled = -np.expm1(-share * z)
    held = np.divide(settled, share * z, out=np.ones_like(settled), where=z > 0)
    return 1.0 - settled + held * (z - damping)


def is_commanded(z: np.ndarray, damping: np.ndarray | float) -> np.ndarray:
    """Whether losses are too fast to be cancelled as measured; see `velocity_eigenvalue`."""
    grows = velocity_eigenvalue(z, damping, 1.0 - DOUBT) >= 1.0
    left = 1.0 - velocity_eigenvalue(z, damping)
    # Without damping the law commands no velocity.
    return (grows | (left < LEAST_EFFECT * damping)) & (z > 0) & (damping > 0)


def joint_damping(damping: np.ndarray, mobility: np.ndarray) -> np.ndarray:
    """Damping that a law ``v̇ = −G v`` gives to what the loss of one joint drives, in 1/s.

    A loss that the plant lacks drives ``v̇ = (s M⁻¹ eᵢ eᵢᵀ − G) v``, which grows once
    ``s (G⁻¹ M⁻¹)ᵢᵢ > 1``; alone the joint would grow once ``s (M⁻¹)ᵢᵢ > δᵢ``. Hence
    ``δᵢ = (M⁻¹)ᵢᵢ / (G⁻¹ M⁻¹)ᵢᵢ``: a mean of the dampings of a frame and of a posture by what
    either leaves the joint of its mobility M⁻¹.

    Examples
    --------
    >>> joint_damping(np.diag([2.0, 16.0]), np.diag([0.1, 5.0]))
    array([ 2., 16.])
    """
    shared = np.diagonal(np.linalg.solve(damping, mobility))
    return np.asarray(np.diagonal(mobility) / shared)


def commanded_joints(
    system: System, blocks: MechanicalBlocks, p: np.ndarray, dt: float,
    damping: Callable[[np.ndarray], np.ndarray] | None,
) -> np.ndarray:  # fmt: skip
    """Degrees of freedom whose losses a law sampled with dt may not cancel as measured, (nv,).

    The law asks for ``v̇ = −G v`` about rest: `damping` is ``x → G`` in 1/s, shape (nv, nv). None
    stands for a law that leaves a velocity undamped: then it commands none.
    """
    structure, none = system.structure, np.zeros(blocks.group.dim, dtype=bool)
    if structure is None or structure.loss_jacobian is None or system.n_errors != system.state.dim:
        return none
    if damping is None or structure.velocity != blocks.rate_name:
        return none
    rng = np.random.default_rng(LOSS_SEED)
    x = np.concatenate([system.home[None], system.state.random(rng, (LOSS_STATES,))])
    x[:, blocks.v] = 0.0  # where dry friction is steepest
    slopes = np.array([np.diagonal(structure.loss_jacobian(one, p)) for one in x])
    mobility = np.array([np.linalg.inv(structure.mass_matrix(one, p)) for one in x])
    own = [joint_damping(damping(one), alone) for one, alone in zip(x, mobility, strict=True)]
    rates = slopes * mobility.diagonal(axis1=1, axis2=2)
    return np.asarray(is_commanded(dt * rates, dt * np.array(own)).any(axis=0))


def held_states(
    system: System, blocks: MechanicalBlocks, q: np.ndarray, p: np.ndarray
) -> list[np.ndarray]:
    """States at which the loop of a law in accelerations is judged.

    At rest, where dry friction is steepest; and where joints slide, as its slope is gone there.
    """
    rest = system.home.copy()
    rest[blocks.q], rest[blocks.v] = q, 0.0
    structure = system.structure
    if structure is None or structure.losses is None or structure.velocity != blocks.rate_name:
        return [rest]
    jacobian = structure.loss_jacobian
    assert jacobian is not None
    sliding, velocities = rest.copy(), np.zeros(blocks.group.dim)

    def slopes(v: np.ndarray | float) -> np.ndarray:
        sliding[blocks.v] = v
        return np.diagonal(jacobian(sliding, p))

    still, far = slopes(0.0), slopes(FAST)
    for k in range(DOUBLINGS):
        dry = slopes(velocities) - far > SATURATED * (still - far)
        if not dry.any():
            break
        velocities[dry] = SLOWEST_TRIED * 2.0**k
    sliding[blocks.v] = velocities
    return [rest, sliding]


def dragged(
    system: System, blocks: MechanicalBlocks, actuation: ModelFunction, p: np.ndarray, dt: float,
    damping: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The same for whatever resists a velocity, such as drag: by the slopes of the field at rest.

    The actuation is ``(t, x, u, p) → rate, effect``; `damping`, shape (nv,), is that of the law in
    1/s.
    """
    rest, places = system.home.copy(), np.arange(system.state.nq)[blocks.v]
    rest[blocks.v] = 0.0
    slopes = np.zeros(blocks.group.dim)
    for i, place in enumerate(places):
        ahead, back = rest.copy(), rest.copy()
        ahead[place], back[place] = LOSS_STEP, -LOSS_STEP
        rates = [actuation(0.0, x, system.nominal_input, p).rate[i] for x in (ahead, back)]
        slopes[i] = (rates[1] - rates[0]) / (2 * LOSS_STEP)
    return np.asarray(is_commanded(dt * np.maximum(slopes, 0.0), damping * dt))


def loss_change(
    system: System, blocks: MechanicalBlocks, chosen: np.ndarray
) -> Callable[[Value, Value, Value], Value]:
    """``(x, v_c, p) → L(v_c) − L(v)`` of the chosen joints, forces in CasADi columns."""
    structure = system.structure
    assert structure is not None
    velocity = np.arange(system.state.nq)[blocks.v]

    def losses(x: Value, p: Value) -> Value:
        if structure.losses is not None:
            return structure.losses(x, p)
        assert structure.loss_jacobian is not None
        return structure.loss_jacobian(x, p) @ x[blocks.v]

    def change(x: Value, commanded: Value, p: Value) -> Value:
        there = ca.SX(x)
        for i in np.flatnonzero(chosen).tolist():
            there[int(velocity[i])] = commanded[i]
        return losses(there, p) - losses(x, p)

    return change


def commanded_velocity(
    group: LieGroup, q: Value, q_ref: Value, v_ref: Value, stiffness: Value, damping: Value
) -> Value:
    """Velocity with which the slow mode of ``ë + D ė + K e = 0`` goes to a moving reference.

    ``Ad(h⁻¹) v_ref − J_r(e)⁻ᵀ Λ e`` with the slow root λ of ``s² − D s + K``, or ``√K`` where the
    roots are complex. A loss with any slope r then leaves ``(s + λ)(s + K/λ + r)`` of the first.
    K [1/s²] and D [1/s] are diagonal.
    """
    root = ca.sqrt(ca.fmax(damping**2 - 4 * stiffness, 0.0))
    slow = ca.fmin(2 * stiffness / (damping + root), ca.sqrt(stiffness))
    e, carried = error_of(group, q, ca.SX(group.dim, 1), q_ref, v_ref)
    return spring_damper(group, e, ca.SX(group.dim, 1), slow, 0.0) - carried

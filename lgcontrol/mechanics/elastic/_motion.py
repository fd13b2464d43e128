"""Motions of links and of motors behind springs on CasADi columns, either from the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import factorial

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import solve_symmetric
from ..multibody._multibody import Multibody
from ._equations import ElasticMechanics, motor_losses

Rates = Callable[..., Sequence[Value]]
"""``(q, v, a, …) → τ, τ̇, …`` of the tree, for an order."""


def tree_rates(tree: Multibody, order: int, p: Value) -> Rates:
    """Forces of the tree along a motion, with their time derivatives up to an order."""
    function = tree.inverse_dynamics_time_derivatives(order)
    own = (p[: len(tree.parameters)],) if tree.parameters else ()
    return lambda *rates: function.function.call([*rates, *own])


def motor_motion(
    mechanics: ElasticMechanics,
    tree: Multibody,
    rates: Sequence[Value],
    settings: Sequence[Value],
    p: Value,
    order: int = 0,
) -> tuple[Value, Value, Value, Value]:
    """State, motor accelerations, inputs and forces on the links along a motion.

    `rates` are q, v, a, j, s of the links, and `order` more where dampers are expanded in D/K;
    `settings` are κ, κ̇, κ̈ of the joints whose stiffness is set.
    """
    q, v, a = rates[:3]
    forces = tree_rates(tree, 2 + order, p)(*rates)
    tau = forces[0]
    motors, deflection_rates, torques = [], [], []
    numbers = mechanics.numbers(p)
    for i, (joint, c) in enumerate(zip(mechanics.joints, numbers, strict=True)):
        row = mechanics.rows[i]
        own = [force[row] for force in forces]
        kappa = _setting(mechanics, i, settings)
        if c.loss.nnz():
            epsilon = c.loss / joint.spring.slopes(ca.DM(0), kappa[0], c.spring).by_deflection
            own = [
                sum(((-epsilon) ** k * own[n + k] for k in range(order + 1)), ca.SX(1, 1))
                for n in range(3)
            ]
        d = joint.spring.deflection(own[0], kappa[0], c.spring)
        slopes = joint.spring.slopes(d, kappa[0], c.spring)
        twice, mixed, by_settings = slopes.second
        rate = (own[1] - slopes.by_setting * kappa[1]) / slopes.by_deflection
        bent = twice * rate**2 + 2 * mixed * rate * kappa[1] + by_settings * kappa[1] ** 2
        change = own[2] - bent - slopes.by_setting * kappa[2]
        motors.append(joint.group.plus(joint.places.of(q), d))
        deflection_rates.append((d, rate, change / slopes.by_deflection))
    speeds = ca.vertcat(
        *(v[r] + d[1] for r, d in zip(mechanics.rows, deflection_rates, strict=True))
    )
    accelerations = ca.vertcat(
        *(a[r] + d[2] for r, d in zip(mechanics.rows, deflection_rates, strict=True))
    )
    for i, (joint, c) in enumerate(zip(mechanics.joints, numbers, strict=True)):
        drag = motor_losses(joint, c, speeds[i])
        torques.append(c.inertia * accelerations[i] + drag + tau[mechanics.rows[i]])
    u = ca.vertsplit(mechanics.rigid.B.T @ tau) if mechanics.rigid.drives else []
    for at, torque in zip(mechanics.drives, torques, strict=True):
        u[at] = torque
    phi, psi = [], []
    for k, i in enumerate(mechanics.set_joints):
        kappa = [part[k] for part in settings]
        if i not in mechanics.adjusted:
            u.append(kappa[0])
            continue
        c, spring = numbers[i].spring, mechanics.joints[i].spring
        push = c["motor_inertia"] * kappa[2] + c["motor_damping"] * kappa[1]
        u.append(push + spring.reaction(deflection_rates[i][0], kappa[0], c))
        phi.append(kappa[0])
        psi.append(kappa[1])
    x = ca.vertcat(q, v, *motors, speeds, *phi, *psi)
    return x, accelerations, ca.vertcat(*u), tau


def _setting(mechanics: ElasticMechanics, i: int, settings: Sequence[Value]) -> list[Value]:
    if i not in mechanics.set_joints:
        return [ca.DM(0)] * 3
    k = mechanics.set_joints.index(i)
    return [part[k] for part in settings]


def link_motion(
    mechanics: ElasticMechanics,
    tree: Multibody,
    x: Value,
    inputs: Sequence[Value],
    p: Value,
) -> tuple[Value, Value, Value, Value, Value]:
    """q, v, a, j, s of the links from a state, and from u, u̇, ü of the inputs that reach them."""
    u, u_dot, u_ddot = inputs
    t, parts = ca.SX(1, 1), mechanics.split(x)
    q, v, nv = parts.q, parts.v, tree.nv
    field = mechanics.field(t, x, u, p)
    state = mechanics.state
    motor = field[state.tangent_slice("motor_velocity")]
    d, settings, numbers = mechanics.deflection(x), mechanics.settings(x, u), mechanics.numbers(p)
    none = ca.SX(nv, 1)
    first, second = tree_rates(tree, 1, p), tree_rates(tree, 2, p)
    M = mechanics.mass_matrix(x, p)
    a = field[nv : 2 * nv]
    B, count = mechanics.rigid.B, len(mechanics.rigid.drives)
    tau_dot, tau_ddot = B @ u_dot[:count], B @ u_ddot[:count]
    slopes, rates = [], []
    for i, joint in enumerate(mechanics.joints):
        kappa_dot = _setting_rate(mechanics, i, parts.psi, u_dot)
        known = joint.spring.slopes(d[i], settings[i], numbers[i].spring)
        rate = parts.speeds[i] - v[mechanics.rows[i]]
        slopes.append(known)
        rates.append((rate, kappa_dot))
        tau_dot[mechanics.rows[i]] = known.by_deflection * rate + known.by_setting * kappa_dot
    j = solve_symmetric(M, tau_dot - first(q, v, a, none)[1])
    psi_dot = field[state.tangent_slice("stiffness_motor_velocity")] if mechanics.adjusted else none
    for i in range(len(mechanics.joints)):
        known, (rate, kappa_dot), row = slopes[i], rates[i], mechanics.rows[i]
        kappa_ddot = _setting_rate(mechanics, i, psi_dot, u_ddot)
        twice, mixed, by_settings = known.second
        bent = twice * rate**2 + 2 * mixed * rate * kappa_dot + by_settings * kappa_dot**2
        tau_ddot[row] = (
            known.by_deflection * (motor[i] - a[row]) + bent + known.by_setting * kappa_ddot
        )
    s = solve_symmetric(M, tau_ddot - second(q, v, a, j, none)[2])
    return q, v, a, j, s


def _setting_rate(mechanics: ElasticMechanics, i: int, psi: Value, u_dot: Value) -> Value:
    if i in mechanics.adjusted:
        return psi[mechanics.adjusted.index(i)]
    if i in mechanics.set_joints:
        return u_dot[len(mechanics.rigid.inputs) + mechanics.set_joints.index(i)]
    return ca.DM(0)


def state_motion(
    mechanics: ElasticMechanics, tree: Multibody, rates: Sequence[Value], p: Value
) -> tuple[Value, Value, Value]:
    """State, its rate and all inputs along a motion q, v, a, j, s of the links; see `Mechanical`.

    What sets stiffness stays at its nominal value; other inputs, of surroundings, are nominal, and
    their forces are not known. Deflections of dampers are to order 0.
    """
    still = [
        np.array([mechanics.joints[i].spring.nominal_setting for i in mechanics.set_joints]),
        *np.zeros((2, len(mechanics.set_joints))),
    ]
    settings = [ca.DM(value) for value in still]
    x, motors, own, _ = motor_motion(mechanics, tree, rates, settings, p)
    none = ca.SX(len(mechanics.adjusted), 1)
    speeds = mechanics.split(x).speeds
    others = mechanics.rigid.inputs[len(mechanics.rigid.drives) :]
    own = ca.vertsplit(own)
    count = len(mechanics.rigid.drives)
    u = ca.vertcat(*own[:count], *(entry.nominal for entry in others), *own[count:])
    return x, ca.vertcat(*rates[1:3], speeds, motors, none, none), u


# Taylor coefficients 3 to 5 of a step from value, first and second derivative at both its ends:
# what the first three leave of the end, in units of the step.
_HERMITE = np.array([[10.0, -4.0, 0.5], [-15.0, 7.0, -1.0], [6.0, -3.0, 0.5]])


@dataclass(frozen=True, eq=False)
class DampedDeflection:
    """``D δ̇ + K δ = τ(t)`` with τ, τ̇, τ̈ given at times, solved exactly for τ between them.

    Between two times τ is the polynomial of degree five with these values. A step adds ``∫ exp(−K
    (h − s)/D) τ(s)/D ds`` to the decayed deflection: a finite sum, well conditioned for steps long
    or short against D/K.
    """

    deflection: np.ndarray  # (N,)
    rate: np.ndarray
    acceleration: np.ndarray

    @classmethod
    def along(
        cls,
        t: np.ndarray,
        torque: np.ndarray,
        stiffness: float,
        damping: float,
        start: float | None = None,
    ) -> DampedDeflection:
        """Solve for τ, τ̇, τ̈ (3, N) from a start, or where a past of constant curvature leads.

        That is ``(τ − ε τ̇ + ε² τ̈)/K``, ε = D/K: ``τ/K`` for a motion that starts at rest.
        """
        epsilon = damping / stiffness
        deflection = np.empty(len(t))
        past = (torque[0, 0] - epsilon * torque[1, 0] + epsilon**2 * torque[2, 0]) / stiffness
        deflection[0] = past if start is None else start
        for n, h in enumerate(np.diff(t)):
            taylor = _taylor(h, torque[:, n], torque[:, n + 1])
            left, *weights = _exponentials(h / epsilon)
            push = sum(c * h**k * w for k, (c, w) in enumerate(zip(taylor, weights, strict=True)))
            deflection[n + 1] = left * deflection[n] + h / damping * push
        rate = (torque[0] - stiffness * deflection) / damping
        return cls(deflection, rate, (torque[1] - stiffness * rate) / damping)


def _taylor(h: float, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Derivatives 0 to 5 at the start of a step of the polynomial through both ends."""
    value, slope, bend = here
    scale = np.array([1.0, h, h * h])
    left = there * scale - np.array(
        [value + h * slope + h * h * bend / 2, h * (slope + h * bend), h * h * bend]
    )
    higher = _HERMITE @ left
    own = [higher[k] * factorial(k + 3) / h ** (k + 3) for k in range(3)]
    return np.array([value, slope, bend, *own])


def _exponentials(z: float) -> list[float]:
    """``φ_0 = exp(−z)`` to φ_6, ``φ_k = ∫₀¹ exp(−z (1 − s)) s^(k−1)/(k−1)! ds``, for z ≥ 0."""
    if z < 1:  # where differences would cancel
        return [sum((-z) ** m / factorial(m + k) for m in range(20)) for k in range(7)]
    found = [float(np.exp(-z))]
    for k in range(6):
        found.append((1 / factorial(k) - found[k]) / z)
    return found

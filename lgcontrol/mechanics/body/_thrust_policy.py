"""thrust_policy: where a vehicle that pushes along one body axis and turns about all would go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ...codegen._internal import check_shape
from ...groups import SE3, SO3
from ...systems import System

# Least upward push, as a share of gravity: falling faster costs attitude.
LEAST_LIFT = 0.25


def thrust_policy(
    system: System[Any],
    *,
    position_frequency: float = 2.5,
    attitude_frequency: float = 10.0,
    tilt_limit: float = np.pi / 3,
    axis: Sequence[float] = (0.0, 0.0, 1.0),
) -> Callable[..., Any]:
    """Policy of a multirotor, for `System.with_policy`: tilt the thrust to where it is to push.

    Springs with critical damping ask for a push in space; the attitude that points the thrust
    there is the reference's turned the shortest way. Within the bounds of the controls, tilting
    has priority over lift, and lift over turning about the thrust. The allocation is in closed
    form: each gets the largest share that the earlier ones leave. A start for solves, not a
    tracking law: `ThrustVectorPD` feeds the reference's rates forward.

    Parameters
    ----------
    system : System
        Its structure moves a pose (SE3) by four controls that all push forward along the axis.
    position_frequency, attitude_frequency : float
        In rad/s; a step of a plan should not be longer than half a radian of the second.
    tilt_limit : float
        Largest angle between thrust and the vertical, rad.
    axis : sequence of 3 floats
        Body axis of the thrust.

    Returns
    -------
    callable
        ``(t, x, x_ref, u_ref, p) → controls``.

    Raises
    ------
    ValueError
        If the system moves no pose, or has other than four controls.

    References
    ----------
    T. Lee, M. Leok, N. H. McClamroch: Geometric tracking control of a quadrotor UAV on SE(3).
    IEEE CDC 2010, without feedforward; D. Brescianini, R. D'Andrea: Tilt-prioritized quadrocopter
    attitude control. IEEE TCST 28 (2020), for the order in which controls give way.

    Examples
    --------
    >>> from lgcontrol.models import quadrotor
    >>> quad = quadrotor()
    >>> hover = quad.trim()
    >>> almost_upside_down = np.r_[0, 0, 0, np.sin(1.5), 0, 0, np.cos(1.5), np.zeros(6)]
    >>> quad.policy(0.0, almost_upside_down, hover.x, hover.u).round(1)  # turn with all it has
    array([3., 0., 3., 6.])
    """
    structure, state = system.structure, system.state
    blocks = getattr(state, "blocks", {})
    controls = system.input_index("control").tolist()
    if structure is None or blocks.get(structure.configuration) != SE3 or len(controls) != 4:
        raise ValueError(
            f"{system.name}: thrust_policy is for systems whose structure moves a pose (SE3) by "
            f"four controls; this one has {len(controls)}, and "
            + ("no structure" if structure is None else f"moves {structure.configuration!r}")
        )
    q, v = (state.coordinate_slice(name) for name in (structure.configuration, structure.velocity))
    dv = state.tangent_slice(structure.velocity)
    along = ca.DM(check_shape("axis", axis, (3,)) / np.linalg.norm(axis))
    across = ca.DM(np.linalg.svd(np.array(along).T)[2][1:])
    lower, upper = (ca.DM(bound[controls]) for bound in system.input_bounds)
    omega = (position_frequency, attitude_frequency)
    field, derivatives = system.f.function, system.derivatives.function

    def policy(t: Any, x: Any, x_ref: Any, u_ref: Any, p: Any) -> Any:
        effect = derivatives(t, x, u_ref, p)[1][dv, controls]
        drift = field(t, x, u_ref, p)[dv] - effect @ u_ref[controls]
        R, R_ref = SO3.matrix(x[q][3:]), SO3.matrix(x_ref[q][3:])
        speed, turning = x[v][:3], x[v][3:]
        free = R @ (drift[:3] + ca.cross(turning, speed))  # acceleration in space without thrust
        error, slip = x[q][:3] - x_ref[q][:3], R @ speed - R_ref @ x_ref[v][:3]
        push = -(omega[0] ** 2) * error - 2 * omega[0] * slip - free
        up = ca.fmax(push[2], LEAST_LIFT * ca.fabs(free[2]))
        sideways = ca.sqrt(ca.fmax(ca.sumsqr(push[:2]), 1e-12))
        push = ca.vertcat(ca.fmin(1.0, np.tan(tilt_limit) * up / sideways) * push[:2], up)
        wanted = push / ca.sqrt(ca.fmax(ca.sumsqr(push), 1e-12))
        start = R_ref @ along
        # Half-way between no turn and the shortest turn from start to wanted, normalised.
        swing = ca.vertcat(ca.cross(start, wanted), ca.fmax(1 + ca.dot(start, wanted), 1e-4))
        goal = SO3.compose(swing / ca.sqrt(ca.sumsqr(swing)), x_ref[q][3:])
        e = SO3.minus(x[q][3:], goal)
        turn = -(omega[1] ** 2) * e - 2 * omega[1] * turning - drift[3:]
        share = ca.inv(ca.vertcat(along.T @ effect[:3, :], across @ effect[3:, :],
                                  along.T @ effect[3:, :]))  # fmt: skip
        tilt, lift = share[:, 1:3] @ (across @ turn), share[:, 0]
        yaw = share[:, 3] * ca.dot(along, turn)
        least, most = ca.mmax(lower / lift), ca.mmin(upper / lift)
        w = tilt / lift
        spread = ca.fmax(ca.mmax(w) - ca.mmin(w), 1e-12)
        w = ca.fmin(1.0, (most - least) / spread) * w
        height = ca.dot(push, R @ along)
        height = ca.fmin(ca.fmax(height, least - ca.mmin(w)), most - ca.mmax(w))
        u = lift * (w + height)
        room = ca.if_else(yaw > 0, upper - u, u - lower) / ca.fmax(ca.fabs(yaw), 1e-12)
        return u + ca.fmin(1.0, ca.fmax(0.0, ca.mmin(room))) * yaw

    return policy

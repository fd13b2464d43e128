"""Multirotors: states and inputs from position and heading; a policy that tilts the thrust."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, named_options, trace
from ...codegen._internal import check_shape
from ...groups import SE3, SO2, SO3
from ...systems import SmoothReference, System, Trajectory
from ...systems._internal import Jump, MotionPoint, TrajectoryPoint, field_derivatives, not_a_system

# Shares of gravity: least push, and how near to straight down it may point (1 + its cosine).
LEAST_PUSH = 0.05
LEAST_TURN = 0.02
MOTION_SAMPLES = 400  # of a motion, to find where it asks for what has no attitude


@named_options(own="system position heading")
class FlatMotion:
    """Motion of a vehicle that pushes along its z axis and turns about all, by its flat outputs.

    The push balances the acceleration less gravity. The attitude is the heading's, turned the
    shortest way until the z axis points along the push. Rates follow from jerk and snap, inputs
    from the system's own dynamics. Without drag, and with the centre of mass in the body's origin,
    the vehicle flies it exactly; `missing` says by how much it cannot.

    Parameters
    ----------
    system : System
        Its structure moves a pose (SE3).
    position : SmoothReference
        On Translation("xyz") or Rn(3), world axes. Minimum snap is
        ``Waypoints(Translation("xyz"), t, x, 7, stops=False)``.
    heading : SmoothReference or float
        Angle about the vertical in rad, on SO2 or Rn(1), or one that stays.

    Raises
    ------
    TypeError
        If what is given is no system, or no motion.
    ValueError
        If the system moves no pose or a group does not fit. Also if the push vanishes or points
        straight down somewhere: no attitude exists there.

    References
    ----------
    D. Mellinger, V. Kumar: Minimum snap trajectory generation and control for quadrotors. ICRA
    2011, sections III and IV; with the shortest rotation in place of Euler angles.

    Examples
    --------
    >>> from lgcontrol.groups import Translation
    >>> from lgcontrol.models import quadrotor
    >>> from lgcontrol.systems import Waypoints
    >>> corners = [[0, 0, 1], [2, 1, 1.5], [4, 0, 1]]
    >>> path = Waypoints(Translation("xyz"), [0, 1.2, 2.4], corners, 7, stops=False)
    >>> flight = FlatMotion(quadrotor(), path)
    >>> flight(0.6).u[:4].round(3)
    array([2.447, 2.166, 2.369, 1.952])
    >>> float(np.abs(flight.missing(0.6)).max()) < 1e-9
    True
    """

    def __init__(
        self, system: System[Any], position: SmoothReference, heading: SmoothReference | float = 0.0
    ) -> None:
        if not isinstance(system, System):
            raise TypeError(not_a_system("system", system))
        if not isinstance(position, SmoothReference):
            kind = type(position).__name__
            raise TypeError(f"position must be a SmoothReference, such as Waypoints, not {kind}")
        if not moves_a_pose(system):
            raise ValueError(f"{system.name}: FlatMotion is for systems that move a pose (SE3)")
        for name, motion, dim in (("position", position, 3), ("heading", heading, 1)):
            if isinstance(motion, SmoothReference) and not (
                motion.group.is_commutative and motion.group.dim == dim
            ):
                given = motion.group
                wanted = "Translation('xyz') or Rn(3)" if dim == 3 else "SO2 or Rn(1)"
                raise ValueError(f"the {name} moves on {given}, expected {wanted}")
        if not isinstance(heading, SmoothReference):
            heading = float(check_shape("heading, an angle in rad,", heading, ()))
        self.system, self.position, self.heading = system, position, heading
        self._fall = free_fall(system)
        self._check()

    def states(self, system: System[Any], t: Any) -> tuple[np.ndarray, np.ndarray]:
        """States at times t, and their rates; see `SmoothReference.states`."""
        if not moves_a_pose(system):
            raise ValueError(f"{system.name} moves no pose (SE3), as {self.system.name} does")
        return thrust_states(system, self._fall, self.position(t), self._yaw(t))

    def __call__(self, t: Any) -> TrajectoryPoint:
        """States (..., nq) and inputs (..., n_inputs) at times t.

        Inputs are those that come nearest to the motion, whatever their bounds.
        """
        x, rates = self.states(self.system, t)
        return TrajectoryPoint(x, nearest_inputs(self.system, t, x, rates))

    def missing(self, t: Any) -> np.ndarray:
        """Acceleration that the motion asks for and the inputs do not give, shape (..., 6)."""
        x, u = self(t)
        rates = self.states(self.system, t)[1]
        return missing_acceleration(self.system, t, x, u, rates)

    def sampled(self, spacing: float) -> Trajectory:
        """States and inputs about every `spacing` s, from the first to the last time.

        The input of an interval is that of its middle: held there, it follows the motion with an
        error of second order in the spacing.
        """
        t = self.position.sampled(spacing).t
        u = self((t[:-1] + t[1:]) / 2).u
        x, _ = self.states(self.system, t)
        return Trajectory(self.system.state, t, x, u, inputs=self.system.inputs)

    @property
    def t(self) -> np.ndarray:
        """Times of the knots of the position, s."""
        return self.position.t

    @property
    def duration(self) -> float:
        """Time from start to end, s."""
        return self.position.duration

    @property
    def jumps(self) -> tuple[Jump, ...]:
        """Jumps of derivatives of position and heading, by time; see `SmoothReference.jumps`.

        If the acceleration of the position jumped, the attitude would have to jump.
        """
        turning = self.heading.jumps if isinstance(self.heading, SmoothReference) else ()
        return tuple(sorted((*self.position.jumps, *turning), key=lambda jump: jump.t))

    def _yaw(self, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if not isinstance(self.heading, SmoothReference):
            still = np.zeros(np.shape(t))
            return still + self.heading, still, still
        point = self.heading(t)
        angle = SO2.log(point.x) if self.heading.group.nq == 2 else point.x
        return angle[..., 0], point.velocity[..., 0], point.acceleration[..., 0]

    def _check(self) -> None:
        t = np.linspace(self.position.t[0], self.position.t[-1], MOTION_SAMPLES)
        push = self.position(t).acceleration - self._fall
        size, weight = np.linalg.norm(push, axis=-1), np.linalg.norm(self._fall)
        weak = size < LEAST_PUSH * weight
        over = push[:, 2] < (LEAST_TURN - 1) * size
        for bad, what in ((weak, "falls freely"), (over, "pushes straight down")):
            if bad.any():
                raise ValueError(
                    f"{self.system.name} {what} at {t[np.argmax(bad)]:.3g} s of the motion, where "
                    "its push says no attitude: give the waypoints more time, or plan such a "
                    "manoeuvre with OptimalControlProblem"
                )


def moves_a_pose(system: System[Any]) -> bool:
    """Whether the structure of a system moves a pose on SE3."""
    structure, blocks = system.structure, getattr(system.state, "blocks", {})
    return structure is not None and blocks.get(structure.configuration) == SE3


def free_fall(system: System[Any]) -> np.ndarray:
    """Acceleration at rest without controls, in the axes of the identity [m/s²], shape (3,)."""
    off = system.nominal_input.copy()
    off[system.input_index("control")] = 0.0
    rates = system.f(0.0, system.state.identity, off, system.nominal_parameters)
    return rates[_velocity(system)][:3]


def thrust_states(
    system: System[Any],
    fall: np.ndarray,
    place: MotionPoint,
    yaw: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """States (..., nq) of a vehicle that pushes along its z axis, and their rates (..., dim).

    For a position to its snap in world axes, and for a heading with two derivatives; `fall` is that
    of `free_fall`.
    """
    state, structure, batch = system.state, system.structure, np.shape(yaw[0])
    assert structure is not None
    q, w, dw = _attitude()(place.acceleration - fall, place.jerk, place.snap, *yaw)
    back = SO3.matrix(SO3.inverse(q))
    v = (back @ place.velocity[..., None])[..., 0]
    a = (back @ place.acceleration[..., None])[..., 0] - np.cross(w, v)
    x = np.tile(state.identity, (*batch, 1))
    x[..., state.coordinate_slice(structure.configuration)] = np.concatenate([place.x, q], axis=-1)
    twist, rate = np.concatenate([v, w], axis=-1), np.concatenate([a, dw], axis=-1)
    x[..., state.coordinate_slice(structure.velocity)] = twist
    rates = np.zeros((*batch, state.dim))
    rates[..., state.tangent_slice(structure.configuration)] = twist
    rates[..., _velocity(system)] = rate
    return x, rates


def nearest_inputs(system: System[Any], t: Any, x: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Inputs that come nearest to accelerations, whatever their bounds, shape (..., n_inputs)."""
    here = field_derivatives(system)(t, x, system.nominal_input, system.nominal_parameters)
    controls, dv = system.input_index("control"), _velocity(system)
    B = here.B[..., dv, :][..., controls]
    missing = (rates - here.rate)[..., dv, None]
    u = np.tile(system.nominal_input, (*x.shape[:-1], 1))
    u[..., controls] += (np.linalg.pinv(B, rcond=1e-9) @ missing)[..., 0]
    return u


def missing_acceleration(
    system: System[Any], t: Any, x: np.ndarray, u: np.ndarray, rates: np.ndarray
) -> np.ndarray:
    """Acceleration that is asked for and that the inputs do not give, shape (..., 6)."""
    return (rates - system.f(t, x, u, system.nominal_parameters))[..., _velocity(system)]


def heading(q: Any) -> Any:
    """Angle that the shortest swing from the vertical leaves of an attitude, in (−π, π] rad."""
    b = SO3.matrix(q)[:, 2]
    swing = _swing(b)
    turn = SO3.compose(SO3.inverse(swing / ca.sqrt(ca.sumsqr(swing))), q)
    return ca.atan2(2 * turn[2] * turn[3], turn[3] ** 2 - turn[2] ** 2)


def _velocity(system: System[Any]) -> slice:
    assert system.structure is not None
    return system.state.tangent_slice(system.structure.velocity)


def _swing(b: Any) -> Any:
    """Half-way between no turn and the shortest turn from the vertical to b, not of length 1."""
    return ca.vertcat(-b[1], b[0], 0, 1 + b[2])


@lru_cache(1)
def _attitude() -> ModelFunction:
    """Attitude, rate and its rate for a push with two derivatives and a heading with two."""

    def build(*symbols: Any) -> list[Any]:
        push, yaw = symbols[0], symbols[3]
        b = push / ca.sqrt(ca.sumsqr(push))
        swing = _swing(b)
        turn = ca.vertcat(0, 0, ca.sin(yaw / 2), ca.cos(yaw / 2))
        q = SO3.compose(swing / ca.sqrt(ca.sumsqr(swing)), turn)
        now = ca.vertcat(symbols[0], symbols[1], symbols[3], symbols[4])
        onward = ca.vertcat(symbols[1], symbols[2], symbols[4], symbols[5])
        w = SO3.tangent_matrix(q) @ ca.jtimes(q, now, onward)
        return [q, w, ca.jtimes(w, now, onward)]

    shapes = {"push": (3,), "push_1": (3,), "push_2": (3,), "yaw": (), "yaw_1": (), "yaw_2": ()}
    return trace("flat_attitude", build, shapes, {"q": (4,), "w": (3,), "dw": (3,)})


# Least upward push, as a share of gravity: falling faster costs attitude.
LEAST_LIFT = 0.25


@named_options
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

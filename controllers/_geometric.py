"""Geometric laws of single bodies: all axes driven, or thrust along one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.codegen._internal import solve_symmetric
from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics._internal import LEAST_LIFT
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import ReferenceLike, System

from ._base import ControlInfo, Controller, LawOptions
from ._goal import state_goal, still_state
from ._losses import commanded_joints, commanded_velocity, dragged, held_states, loss_change
from ._tracking import (
    MechanicalBlocks,
    actuation,
    allocate,
    blocks_of,
    exported_law,
    gains,
    tracked_blocks,
    tracking_acceleration,
)

# Share of its largest singular value above which a thrust along another axis is not ignored.
ONE_AXIS = 1e-6
# Attitude before lift, lift before turning about the thrust.
PRIORITY = np.array([10.0, 100.0, 100.0, 1.0])


class BlockOptions(LawOptions, total=False):
    """Arguments that every law of two blocks takes besides its own; see `BlockController`."""

    dt: float
    configuration: str | None
    velocity: str | None


class BlockController(Controller):
    """A law that cancels the model's dynamics of a configuration and its velocity."""

    def __init__(
        self,
        system: System,
        *,
        dt: float = 0.01,
        configuration: str | None = None,
        velocity: str | None = None,
        **loop: Unpack[LawOptions],
    ) -> None:
        super().__init__(system, dt=dt, **loop)
        self.blocks = blocks_of(system, configuration, velocity)
        self._actuation = actuation(system, self.blocks)

    def tracked_errors(self) -> np.ndarray | None:
        """Errors of the configuration and its velocity; see `Controller`."""
        return tracked_blocks(self.system, self.blocks)

    def _held_states(self) -> Iterable[tuple[np.ndarray, Any]]:
        q = still_state(self.system, self.reference)[self.blocks.q]
        return [(x, x) for x in held_states(self.system, self.blocks, q, self._own)]


class GeometricPD(BlockController):
    """Tracks configuration and velocity on any group, with the model's dynamics cancelled.

    For a satellite (SO3), an underwater vehicle (SE3), a vessel (SE2): wherever the controls can
    produce any acceleration. From almost every error, 180° included, the reference is reached along
    the shortest rotation. Vehicles that push along one axis only take `ThrustVectorPD`. If the
    sampled loop is too slow to cancel a joint's losses or drag, they are compensated as in
    `ComputedTorque`, at the velocity that the law commands.

    Parameters
    ----------
    system : System
        State with a configuration and its body-fixed velocity; affine in the controls.
    frequency : float or array_like
        Natural frequency of the error in rad/s: one, or one per tangent coordinate.
    damping_ratio : float or array_like
    dt : float
        Period in s.
    configuration, velocity : str, optional
        Block to control and its body-fixed velocity; those of the system's structure, which trees
        and bodies bring, if left out.
    reference : optional
        See `Controller`; the velocity and acceleration of a Trajectory are fed forward.
    saturate, offset, delay, p
        See `Controller`.

    Raises
    ------
    ValueError
        If the state has no such blocks or the controls cannot produce every acceleration.

    Examples
    --------
    >>> from lgcontrol.groups import SO3, Product, Rn
    >>> satellite = System(
    ...     "satellite", Product(attitude=SO3, rate=Rn(3)),
    ...     lambda t, x, u, p: ca.vertcat(x[4:], u / 5), inputs=["tx", "ty", "tz"])
    >>> control = GeometricPD(
    ...     satellite, configuration="attitude", velocity="rate", frequency=0.5,
    ...     reference=satellite.state.identity)
    >>> control(0.0, [1, 0, 0, 0, 0, 0, 0]).round(3)  # turned by 180° about x
    array([-3.927,  0.   ,  0.   ])
    """

    def __init__(
        self,
        system: System,
        *,
        frequency: ArrayLike = 1.0,
        damping_ratio: ArrayLike = 1.0,
        **options: Unpack[BlockOptions],
    ) -> None:
        super().__init__(system, **options)
        self.stiffness, self.damping = gains(frequency, damping_ratio, self.blocks.group.dim)
        self._tracking = _tracking(system, self.blocks)
        own = np.diag(self.damping)
        damping = (lambda _: own) if self.damping.all() else None
        self.commanded = commanded_joints(system, self.blocks, self._own, self.dt, damping)
        self._loss_change = self._commanded_state = None
        if self.commanded.any():
            self._loss_change = _loss_change(system, self.blocks, self.commanded)
        slow_down = dragged(system, self.blocks, self._actuation, self._own, self.dt, self.damping)
        slow_down &= ~self.commanded
        if slow_down.any():
            self._commanded_state = _commanded_state(system, self.blocks, slow_down)
            self.commanded = self.commanded | slow_down
        effect = self._actuation(0.0, system.state.identity, system.nominal_input, self._p).effect
        rank = np.linalg.matrix_rank(effect)
        if rank < self.blocks.group.dim:
            raise ValueError(
                f"{system.name}: the controls accelerate {self.blocks.name!r} in {rank} of "
                f"{self.blocks.group.dim} directions; ThrustVectorPD is for thrust along one axis"
            )
        self._check_loop()

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        q, v = self.blocks.q, self.blocks.v
        x_ref, u_ref, rate = state_goal(self.system, reference, t, self.dt, self._p)
        wanted = self._tracking(
            x[q], x[v], x_ref[q], x_ref[v], rate[self.blocks.dv], self.stiffness, self.damping
        )
        if self._loss_change is not None:
            wanted = wanted + self._loss_change(x, x_ref, self.stiffness, self.damping, self._own)
        now = self._actuation(t, x, u_ref, self._p)
        rate = now.rate
        if self._commanded_state is not None:
            there = self._commanded_state(x, x_ref, self.stiffness, self.damping)
            rate = self._actuation(t, there, u_ref, self._p).rate
        start, missing = u_ref[self._controls], wanted - rate
        free = start + np.linalg.pinv(now.effect) @ missing
        if not self.saturate:
            self.info = ControlInfo()
            return free
        bounds = (self._lower - start, self._upper - start)
        u = start + allocate(now.effect, missing, *bounds)
        self.info = ControlInfo(CallStatus.OK if np.allclose(u, free) else CallStatus.SATURATED)
        return np.clip(u, self._lower, self._upper)

    def _exported_law(self) -> ModelFunction:
        blocks = self.blocks

        def wanted(
            x: Value, x_ref: Value, rate_ref: Value, now: Value, drift: Value, p: Value,
            rate_at: Callable[[Value], Value],
        ) -> tuple[Value, Value]:  # fmt: skip
            del drift
            goal = x_ref[blocks.q], x_ref[blocks.v], rate_ref[blocks.dv]
            gains = self.stiffness, self.damping
            asked = self._tracking.function(x[blocks.q], x[blocks.v], *goal, *gains)
            if self._loss_change is not None:
                asked += self._loss_change.function(x, x_ref, *gains, p)
            if self._commanded_state is None:
                return now[1], asked - now[0]
            return now[1], asked - rate_at(self._commanded_state.function(x, x_ref, *gains))

        return exported_law(self, self._actuation, wanted, is_relative=True)


def _loss_change(system: System, blocks: MechanicalBlocks, chosen: np.ndarray) -> ModelFunction:
    """Acceleration for the chosen joints' losses at the commanded velocity, less those measured."""
    structure, change = system.structure, loss_change(system, blocks, chosen)
    assert structure is not None
    sizes = {
        "x": system.state.nq, "x_ref": system.state.nq, "stiffness": blocks.group.dim,
        "damping": blocks.group.dim, "p": system.n_parameters,
    }  # fmt: skip
    x, x_ref, stiffness, damping, p = (ca.SX.sym(name, size) for name, size in sizes.items())
    goal = x_ref[blocks.q], x_ref[blocks.v]
    velocity = commanded_velocity(blocks.group, x[blocks.q], *goal, stiffness, damping)
    push = solve_symmetric(structure.mass_matrix(x, p), change(x, velocity, p))
    function = ca.Function(
        "loss_change", [x, x_ref, stiffness, damping, p], [ca.densify(push)], list(sizes), ["push"]
    )
    shapes = {name: (size,) for name, size in sizes.items()} | {"push": (blocks.group.dim,)}
    return ModelFunction(function, shapes=shapes)


def _commanded_state(system: System, blocks: MechanicalBlocks, chosen: np.ndarray) -> ModelFunction:
    """The state with the commanded velocity in the chosen degrees of freedom.

    What resists a velocity fast holds it there: the field is asked what it does then.
    """
    sizes = {
        "x": system.state.nq, "x_ref": system.state.nq, "stiffness": blocks.group.dim,
        "damping": blocks.group.dim,
    }  # fmt: skip
    x, x_ref, stiffness, damping = (ca.SX.sym(name, size) for name, size in sizes.items())
    goal = x_ref[blocks.q], x_ref[blocks.v]
    velocity = commanded_velocity(blocks.group, x[blocks.q], *goal, stiffness, damping)
    there, places = ca.SX(x), np.arange(system.state.nq)[blocks.v]
    for i in np.flatnonzero(chosen).tolist():
        there[int(places[i])] = velocity[i]
    function = ca.Function(
        "commanded_state", [x, x_ref, stiffness, damping], [there], list(sizes), ["there"]
    )
    shapes = {name: (size,) for name, size in sizes.items()} | {"there": (system.state.nq,)}
    return ModelFunction(function, shapes=shapes)


def _tracking(system: System, blocks: MechanicalBlocks) -> ModelFunction:
    """`tracking_acceleration` as a function, kept with the system for the controllers to come."""
    return system.memo(("tracking", blocks.name), lambda: _build_tracking(blocks))


def _build_tracking(blocks: MechanicalBlocks) -> ModelFunction:
    n, nq = blocks.group.dim, blocks.group.nq
    names = {
        "q": nq, "v": n, "q_ref": nq, "v_ref": n, "rate_ref": n, "stiffness": n, "damping": n,
    }  # fmt: skip
    q, v, *goal, stiffness, damping = (ca.SX.sym(name, size) for name, size in names.items())
    wanted = tracking_acceleration(blocks.group, q, v, goal, stiffness, damping)
    function = ca.Function(
        "tracking", [q, v, *goal, stiffness, damping], [wanted], list(names), ["acceleration"]
    )
    shapes = {name: (size,) for name, size in names.items()} | {"acceleration": (n,)}
    return ModelFunction(function, shapes=shapes)


class ThrustVectorPD(BlockController):
    """Geometric tracking of position and heading by tilting the thrust.

    The position error asks for a push in space. The attitude that points the thrust there, turned
    from the reference attitude the shortest way, is tracked with its rate and acceleration fed
    forward. Works from any attitude, 180° included. When bounds of the controls are met, tilting
    goes before lift and lift before heading.

    Parameters
    ----------
    system : System
        State with a pose (SE3) and its twist; affine in controls that push along one body axis.
    position_frequency, attitude_frequency : float or array_like
        Natural frequencies of position and attitude error in rad/s; for steady tracking the second
        is at least three times the first.
    damping_ratio : float
    tilt_limit : float, optional
        Largest angle between thrust and the vertical that the position error may ask for, in rad;
        None sets no limit, for aerobatic references.
    dt : float
        Period in s.
    configuration, velocity : str, optional
        Blocks of the pose and its twist; those of the system's structure if left out.
    reference : optional
        See `Controller`; velocity and acceleration of a Trajectory are fed forward.
    saturate, offset, delay, p
        See `Controller`.

    Attributes
    ----------
    axis : ndarray, shape (3,)
        Body axis of the thrust, found from the system.

    Raises
    ------
    ValueError
        If the system pushes along more than one axis or cannot turn about all.

    References
    ----------
    T. Lee, M. Leok, N. H. McClamroch: Geometric tracking control of a quadrotor UAV on SE(3).
    IEEE Conference on Decision and Control, 2010; with the rotation vector in place of its attitude
    error, which vanishes at 180°.

    Examples
    --------
    >>> from lgcontrol.groups import Product, Rn
    >>> def field(t, x, u, p):  # gravity, a thrust and three torques on a unit body
    ...     push = ca.vertcat(0, 0, u[0]) + SO3.matrix(x[3:7]).T @ ca.vertcat(0, 0, -9.81)
    ...     return ca.vertcat(x[7:], push - ca.cross(x[10:], x[7:10]), u[1:])
    >>> drone = System("drone", Product(pose=SE3, twist=Rn(6)), field, inputs=["T", "l", "m", "n"])
    >>> control = ThrustVectorPD(
    ...     drone, configuration="pose", velocity="twist", reference=drone.state.identity)
    >>> control(0.0, drone.state.identity).round(6)
    array([9.81, 0.  , 0.  , 0.  ])
    """

    def __init__(
        self,
        system: System,
        *,
        position_frequency: ArrayLike = 2.0,
        attitude_frequency: ArrayLike = 10.0,
        damping_ratio: float = 1.0,
        tilt_limit: float | None = np.pi / 3,
        **options: Unpack[BlockOptions],
    ) -> None:
        super().__init__(system, **options)
        if self.blocks.group != SE3:
            raise ValueError(f"{system.name}: {self.blocks.name!r} must be a pose on SE3")
        if tilt_limit is not None and not 0 < tilt_limit < np.pi / 2:
            raise ValueError(f"tilt_limit must be between 0 and π/2, got {tilt_limit}")
        self.axis = self._find_axis()
        # Rows that turn accelerations into lift, two tilts and the turn about the thrust.
        across = np.linalg.svd(self.axis[None])[2][1:]
        self._frame = np.zeros((4, 6))
        self._frame[0, :3] = self.axis
        self._frame[1:, 3:] = np.vstack([across, self.axis])
        place = gains(position_frequency, damping_ratio, 3)
        turn = gains(attitude_frequency, damping_ratio, 3)
        key = ("thrust law", *map(bytes, (self.axis, *place, *turn)), tilt_limit)
        self._law = system.memo(key, lambda: _build_law(self.axis, place, turn, tilt_limit))
        self._check_loop()

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        q, v = self.blocks.q, self.blocks.v
        x_ref, u_ref, rate = state_goal(self.system, reference, t, self.dt, self._p)
        now = self._actuation(t, x, u_ref, self._p)
        drift = now.rate - now.effect @ u_ref[self._controls]
        goal = x_ref[q], x_ref[v], rate[self.blocks.dv]
        lift, turn = self._law(x[q], x[v], drift[:3], *goal)
        effect = self._frame @ now.effect
        wanted = np.concatenate([[lift], self._frame[1:, 3:] @ (turn - drift[3:])])
        free = np.linalg.pinv(effect) @ wanted
        if not self.saturate or ((free >= self._lower) & (free <= self._upper)).all():
            self.info = ControlInfo()
            return free
        u = allocate(effect, wanted, self._lower, self._upper, PRIORITY)
        self.info = ControlInfo(CallStatus.OK if np.allclose(u, free) else CallStatus.SATURATED)
        return u

    def _exported_law(self) -> ModelFunction:
        blocks, frame = self.blocks, ca.DM(self._frame)

        def wanted(
            x: Value, x_ref: Value, rate_ref: Value, now: Value, drift: Value, p: Value,
            rate_at: Callable[[Value], Value],
        ) -> tuple[Value, Value]:  # fmt: skip
            del p, rate_at
            q, v = blocks.q, blocks.v
            lift, turn = self._law.function(
                x[q], x[v], drift[:3], x_ref[q], x_ref[v], rate_ref[blocks.dv]
            )
            return frame @ now[1], ca.vertcat(lift, frame[1:, 3:] @ (turn - drift[3:]))

        return exported_law(self, self._actuation, wanted, is_relative=False, priority=PRIORITY)

    def _find_axis(self) -> np.ndarray:
        """Body axis along which all controls push, signed so that they push forward together."""
        system, state = self.system, self.system.state
        effects = self._actuation(0.0, state.identity[None], system.nominal_input, self._p).effect
        left, sizes, _ = np.linalg.svd(effects[:, :3].swapaxes(0, 1).reshape(3, -1))
        if not sizes[0] > 0 or sizes[1] > ONE_AXIS * sizes[0]:
            raise ValueError(
                f"{system.name}: the controls must push along exactly one body axis; "
                "where they push along all, GeometricPD is the one to take"
            )
        axis = left[:, 0] * (1.0 if (left[:, 0] @ effects[0, :3]).sum() >= 0 else -1.0)
        both = np.vstack([axis @ effects[0, :3], effects[0, 3:]])
        if np.linalg.matrix_rank(both) < 4:
            raise ValueError(
                f"{system.name}: the controls must turn about all axes and lift at once"
            )
        return axis


def _build_law(
    axis: np.ndarray,
    place: tuple[np.ndarray, np.ndarray],
    turn: tuple[np.ndarray, np.ndarray],
    tilt_limit: float | None,
) -> ModelFunction:
    """``(q, v, drift, q_ref, v_ref, rate_ref) → lift, turn``: accelerations along and about."""
    sizes = {"q": 7, "v": 6, "drift": 3, "q_ref": 7, "v_ref": 6, "rate_ref": 6}
    q, v, drift, q_ref, v_ref, rate_ref = (ca.SX.sym(name, n) for name, n in sizes.items())
    along, (stiffness, damping) = ca.DM(axis), place
    R, R_ref = SO3.matrix(q[3:]), SO3.matrix(q_ref[3:])
    w, w_ref, dw_ref = v[3:], v_ref[3:], rate_ref[3:]
    error, slip = q[:3] - q_ref[:3], R @ v[:3] - R_ref @ v_ref[:3]
    a_ref = R_ref @ (rate_ref[:3] + ca.cross(w_ref, v_ref[:3]))
    free = R @ (drift + ca.cross(w, v[:3]))  # acceleration in space without thrust
    push = a_ref - stiffness * error - damping * slip - free

    # How the push goes on: as the reference's thrust turns, and as the error moves.
    lift, lift_ref = ca.dot(push, R @ along), ca.dot(a_ref - free, R_ref @ along)
    lift_now = ca.fmax(lift, 0)
    off = free + R @ along * lift_now - a_ref
    jerk_ref = R_ref @ ca.cross(w_ref, along) * lift_ref
    snap_ref = (
        R_ref @ (ca.cross(dw_ref, along) + ca.cross(w_ref, ca.cross(w_ref, along))) * lift_ref
    )
    push_1 = jerk_ref - stiffness * slip - damping * off
    lift_1 = ca.dot(push_1, R @ along) + ca.dot(push, R @ ca.cross(w, along))
    jerk = R @ (ca.cross(w, along) * lift_now + along * lift_1)
    push_2 = snap_ref - stiffness * off - damping * (jerk - jerk_ref)

    pointing = _pointing(along, tilt_limit)
    goal: Value = pointing(push, push_1, push_2, ca.fabs(free[2]), q_ref[3:], w_ref, dw_ref)
    turning = tracking_acceleration(SO3, q[3:], w, goal, *turn)
    function = ca.Function(
        "thrust_law", [q, v, drift, q_ref, v_ref, rate_ref], [lift, turning],
        list(sizes), ["lift", "turn"],
    )  # fmt: skip
    shapes = {name: (n,) for name, n in sizes.items()} | {"lift": (), "turn": (3,)}
    return ModelFunction(function, shapes=shapes)


def _pointing(axis: ca.DM, tilt_limit: float | None) -> ca.Function:
    """Attitude, rate and angular acceleration that point the axis along a push and its rates."""
    push, push_1, push_2 = (ca.SX.sym(f"push_{i}", 3) for i in range(3))
    weight, q_ref = ca.SX.sym("weight"), ca.SX.sym("q_ref", 4)
    w_ref, dw_ref = ca.SX.sym("w_ref", 3), ca.SX.sym("dw_ref", 3)
    limited = push if tilt_limit is None else _limit_tilt(push, weight, tilt_limit)
    tiny = ca.sumsqr(limited) < 1e-12
    b = ca.if_else(
        tiny, ca.DM([0, 0, 1]), limited / ca.sqrt(ca.if_else(tiny, 1.0, ca.sumsqr(limited)))
    )
    a = SO3.matrix(q_ref) @ axis
    # Half-way between no turn and the shortest turn from a to b; any turn will do when opposite.
    swing = ca.vertcat(ca.cross(a, b), ca.fmax(1 + ca.dot(a, b), 1e-4))
    q = SO3.compose(swing / ca.sqrt(ca.sumsqr(swing)), q_ref)
    dq_ref = SO3.rate_matrix(q_ref) @ w_ref
    w = SO3.tangent_matrix(q) @ (ca.jtimes(q, push, push_1) + ca.jtimes(q, q_ref, dq_ref))
    dw = (
        ca.jtimes(w, push, push_1)
        + ca.jtimes(w, push_1, push_2)
        + ca.jtimes(w, q_ref, dq_ref)
        + ca.jtimes(w, w_ref, dw_ref)
    )
    return ca.Function(
        "pointing", [push, push_1, push_2, weight, q_ref, w_ref, dw_ref], [q, w, dw],
        ["push", "push_1", "push_2", "weight", "q_ref", "w_ref", "dw_ref"], ["q", "w", "dw"],
    )  # fmt: skip


def _limit_tilt(push: Value, weight: Value, tilt_limit: float) -> Value:
    """Push with a least upward part, and its sideways part within the cone."""
    up = ca.fmax(push[2], LEAST_LIFT * weight)
    sideways = ca.sqrt(ca.fmax(ca.sumsqr(push[:2]), 1e-12))
    share = ca.fmin(1.0, np.tan(tilt_limit) * up / sideways)
    return ca.vertcat(share * push[:2], up)

"""Ready measurements of vehicles: positions, directions, velocities, ranges, relative poses."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, ParamSpec

import casadi as ca
import numpy as np

from ..codegen import Value, named_options
from ..codegen._internal import check_known, check_shape
from ..groups import SE2, SE3, SE23, SEK2, SEK3, SO2, SO3, LieGroup, Product, Rn
from ..systems import Sensor, System
from ..systems._internal import GRAVITY, block_slices

_AXES = "xyz"
_Given = ParamSpec("_Given")


def _told(build: Callable[_Given, Sensor]) -> Callable[_Given, Sensor]:
    """Have errors of a builder say which measurement it was to make."""
    default = inspect.signature(build).parameters["name"].default

    @wraps(build)
    def made(*args: _Given.args, **options: _Given.kwargs) -> Sensor:
        try:
            return build(*args, **options)
        except (TypeError, ValueError, LookupError) as error:
            name = options.get("name", default)
            if repr(name) in str(error):
                raise
            raise type(error)(f"measurement {name!r}: {error}") from error

    return made


@_told
@named_options
def gnss(
    system: System[Any],
    block: str | None = None,
    *,
    lever_arm: Any = None,
    name: str = "gnss",
    **noise: Any,
) -> Sensor:
    """Position of an antenna in the world, ``p + R l`` [m].

    Parameters
    ----------
    system : System
    block : str, optional
        Block of the state with the pose (SE2, SE3, SE23); the first one if left out.
    lever_arm : array_like, shape (2,) or (3,), optional
        Antenna in the body frame, m.
    name : str
    **noise
        ``std_discrete``, ``dt``, ``delay``, … of `Sensor`; as for all functions here.

    Examples
    --------
    >>> from lgcontrol.estimation import odometry
    >>> cart = odometry()
    >>> fix = gnss(cart, lever_arm=[1, 0], std_discrete=0.1).bind(cart)
    >>> fix.function(0.0, cart.state.identity, np.zeros(3), [])
    array([1., 0.])
    """
    body = _CarryingBody.of(system, block)
    arm = _point("lever_arm", lever_arm, body.size)

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        return body.position(x) + body.rotation(x) @ arm

    return Sensor(name, h, _vector(body.size, "m"), **noise)


@_told
@named_options
def altimeter(
    system: System[Any], block: str | None = None, *, lever_arm: Any = None,
    bias: str | None = None, name: str = "altimeter", **noise: Any,
) -> Sensor:  # fmt: skip
    """Height above the origin, of a barometer at a point of the body [m].

    Parameters
    ----------
    system, block, lever_arm, name, **noise
        See `gnss`.
    bias : str, optional
        Block of the state that is added.
    """
    body = _CarryingBody.of(system, block, spatial=True)
    arm, add = _point("lever_arm", lever_arm, 3), _entry(system, bias)

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        return (body.position(x) + body.rotation(x) @ arm)[2] + add(x)

    return Sensor(name, h, Rn(1, ("z",), ("m",)), **noise)


@_told
@named_options
def depth(
    system: System[Any], block: str | None = None, *, name: str = "depth", **options: Any
) -> Sensor:
    """Depth below the origin, of a pressure gauge at a point of the body [m].

    Parameters
    ----------
    system, block, name
        See `gnss`.
    **options
        See `altimeter`.
    """
    above = altimeter(system, block, name=name, **options)
    height: Any = above.h
    below = Rn(1, ("depth",), ("m",))
    return replace(above, h=lambda t, x, u, p: -height(t, x, u, p), output=below)


@_told
@named_options
def magnetometer(
    system: System[Any], field: Any, block: str | None = None, *, bias: str | None = None,
    name: str = "magnetometer", **noise: Any,
) -> Sensor:  # fmt: skip
    """Magnetic field in the body frame, ``Rᵀ m + b``, in the unit of the field given.

    Parameters
    ----------
    system, block, name, **noise
        See `gnss`.
    field : array_like, shape (3,)
        In the world frame.
    bias : str, optional
        Block of the state that is added (hard iron).
    """
    body = _CarryingBody.of(system, block, spatial=True)
    m, add = _point("field", field, 3), _entry(system, bias)
    return Sensor(name, lambda t, x, u, p: body.rotation(x).T @ m + add(x), _vector(3, ""), **noise)


@_told
@named_options
def imu(
    system: System[Any], block: str | None = None, *, twist: str = "twist",
    gravity: float = GRAVITY, name: str = "imu", **noise: Any,
) -> Sensor:  # fmt: skip
    """Angular velocity and specific force of a plant in its body frame, ``[ω; v̇ + ω × v − Rᵀ g]``.

    For a simulation, or a filter on the plant's own model; a filter that an IMU drives has it as
    input (`inertial_navigation`, `SensorDriven`).

    Parameters
    ----------
    system, block, twist, name, **noise
        See `dvl`; six deviations, in rad/s and m/s².
    gravity : float
        m/s².
    """
    body = _CarryingBody.of(system, block, spatial=True)
    velocity = body.motion(twist)
    rates = _slices(system)[1]
    check_known("block of the state", rates, twist)
    start = rates[twist].start

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        v, omega = velocity(x, u)
        linear = system.f(t, x, u, p)[start : start + 3]
        up = body.rotation(x).T @ ca.vertcat(0, 0, gravity)
        return ca.vertcat(omega, linear + ca.cross(omega, v) + up)

    names = [f"{kind}.{axis}" for kind in ("gyro", "accelerometer") for axis in _AXES]
    return Sensor(name, h, Rn(6, tuple(names), ("rad/s",) * 3 + ("m/s²",) * 3), **noise)


@_told
@named_options
def magnetic_heading(
    system: System[Any], inputs: str = "magnetometer", block: str | None = None, *,
    name: str = "magnetic_heading", **noise: Any,
) -> Sensor:  # fmt: skip
    """Direction of the horizontal field in the world (SO2, from x to y), which turns yaw alone.

    The field in the body frame is a measured input; the *value* of the measurement is the known
    direction of the field, ``SO2.exp(angle)``. Neither its dip nor its strength touch the estimate,
    and it corrects no tilt.

    Parameters
    ----------
    system, block, name, **noise
        See `gnss`; deviations in rad. `scale` may use the field, for example its length.
    inputs : str
        Measured inputs ``f"{inputs}.x"`` ….
    """
    body = _CarryingBody.of(system, block, spatial=True)
    start = _input(system, f"{inputs}.x")
    rows = body.turn_rows

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        m = body.rotation(x) @ u[start : start + 3]
        square = ca.sumsqr(m[:2])
        return ca.if_else(
            square > 0, m[:2] / ca.sqrt(ca.if_else(square > 0, square, 1.0)), ca.DM([1, 0])
        )

    def vertical(t: Value, x: Value, u: Value, p: Value) -> Value:
        V = ca.SX(system.state.dim, 1)
        V[rows] = body.rotation(x).T @ ca.DM([0, 0, 1])
        return ca.DM(system.error_selection) @ V

    return Sensor(name, h, SO2, directions=vertical, **noise)


@_told
@named_options
def dvl(
    system: System[Any], block: str | None = None, *, twist: str = "twist", lever_arm: Any = None,
    name: str = "dvl", **noise: Any,
) -> Sensor:  # fmt: skip
    """Velocity of a point of the body in the body frame, ``v + ω × l`` [m/s].

    Parameters
    ----------
    system, block, lever_arm, name, **noise
        See `gnss`.
    twist : str
        Block of the state with the body-fixed twist; for the extended pose, ω is the measured
        input "gyro" less its bias.
    """
    body = _CarryingBody.of(system, block)
    velocity = body.motion(twist)
    arm = _point("lever_arm", lever_arm, body.size)

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        v, omega = velocity(x, u)
        return v + (ca.cross(omega, arm) if body.size == 3 else omega * ca.vertcat(-arm[1], arm[0]))

    return Sensor(name, h, _vector(body.size, "m/s"), **noise)


@_told
@named_options
def zero_velocity(
    system: System[Any], block: str | None = None, *, axes: str = "xyz", frame: str = "body",
    twist: str = "twist", name: str = "zero_velocity", **noise: Any,
) -> Sensor:  # fmt: skip
    """Some components of the velocity, measured to be zero: at rest, or a wheel that does not slip.

    Its value is a vector of zeros.

    Parameters
    ----------
    system, block, twist, name, **noise
        See `dvl`.
    axes : str
        Letters of "xyz": "xyz" for a body at rest, "yz" for a car.
    frame : {"body", "world"}
    """
    body = _CarryingBody.of(system, block)
    velocity = body.motion(twist)
    valid = _AXES[: body.size]
    axes = axes if body.size == 3 else axes.replace("z", "")
    if not axes or any(axis not in valid for axis in axes):
        raise ValueError(f"axes of {name!r} must be letters of {valid!r}, got {axes!r}")
    check_known("frame", ("body", "world"), frame)
    rows = [valid.index(axis) for axis in axes]

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        v = velocity(x, u)[0]
        return (body.rotation(x) @ v if frame == "world" else v)[rows]

    return Sensor(name, h, Rn(len(axes), tuple(axes), ("m/s",) * len(axes)), **noise)


@_told
@named_options
def wheel_odometry(
    system: System[Any], radius: float, track: float, block: str | None = None, *,
    twist: str = "twist", name: str = "wheel_odometry", **noise: Any,
) -> Sensor:  # fmt: skip
    """Rates of the left and the right wheel of an axle, ``(v_x ∓ ω_z track/2) / radius`` [rad/s].

    Parameters
    ----------
    system, block, twist, name, **noise
        See `dvl`.
    radius, track : float
        Of the wheels, and between them, m.
    """
    body = _CarryingBody.of(system, block)
    velocity = body.motion(twist)

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        v, omega = velocity(x, u)
        turn = omega[-1] * track / 2
        return ca.vertcat(v[0] - turn, v[0] + turn) / radius

    return Sensor(name, h, Rn(2, ("left", "right"), ("rad/s",) * 2), **noise)


@_told
@named_options
def beacon_range(
    system: System[Any], beacon: Any, block: str | None = None, *, lever_arm: Any = None,
    bias: str | None = None, scale: str | None = None, name: str = "range", **noise: Any,
) -> Sensor:  # fmt: skip
    """Distance to a beacon, ``(1 + s) |b − p − R l| + c`` [m].

    Parameters
    ----------
    system, block, lever_arm, name, **noise
        See `gnss`.
    beacon : array_like, shape (2,) or (3,), or str
        Position in the world, or the block of the state that has it.
    bias, scale : str, optional
        Blocks, or entries (``"bias.beacon3"``), of the state with c [m] and s.
    """
    body = _CarryingBody.of(system, block)
    arm, there = _point("lever_arm", lever_arm, body.size), body.landmark(beacon)
    c, s = _entry(system, bias), _entry(system, scale)

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        away = there(x) - body.position(x) - body.rotation(x) @ arm
        # at the beacon itself there is no direction: the root stays differentiable
        return (1 + s(x)) * ca.sqrt(ca.sumsqr(away) + 1e-12) + c(x)

    return Sensor(name, h, Rn(1, ("range",), ("m",)), **noise)


@_told
@named_options
def bearing(
    system: System[Any], landmark: Any, block: str | None = None, *, name: str = "bearing",
    **noise: Any,
) -> Sensor:  # fmt: skip
    """Direction to a landmark in the body frame: SO2 in the plane, a unit vector in space.

    Parameters
    ----------
    system, block, name, **noise
        See `gnss`; deviations in rad.
    landmark : array_like, shape (2,) or (3,), or str
        Position in the world, or the block of the state that has it.
    """
    body = _CarryingBody.of(system, block)
    there = body.landmark(landmark)

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        away = body.rotation(x).T @ (there(x) - body.position(x))
        return away / ca.sqrt(ca.sumsqr(away) + 1e-12)

    return Sensor(name, h, SO2 if body.size == 2 else _vector(3, ""), **noise)


@_told
@named_options
def landmark_position(
    system: System[Any], landmark: Any, block: str | None = None, *, name: str = "landmark",
    **noise: Any,
) -> Sensor:  # fmt: skip
    """Position of a landmark in the body frame, ``Rᵀ (l − p)`` [m].

    Parameters
    ----------
    system, block, name, **noise
        See `gnss`.
    landmark : array_like, shape (2,) or (3,), str or int
        Position in the world, the block of the state that has it, or the number of a vector of a
        pose on SE_K(2) or SE_K(3); vector 0 is the position.
    """
    body = _CarryingBody.of(system, block)
    there = body.landmark(landmark)

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        return body.rotation(x).T @ (there(x) - body.position(x))

    return Sensor(name, h, _vector(body.size, "m"), **noise)


@_told
@named_options
def relative_pose(
    system: System[Any], first: str, second: str, *, name: str = "relative_pose", **noise: Any
) -> Sensor:
    """One block of the state as seen from another, ``X₁⁻¹ X₂``.

    Parameters
    ----------
    system, name, **noise
        See `gnss`.
    first, second : str
        Blocks on the same group.
    """
    (a, where_a), (b, where_b) = (_block(system, block) for block in (first, second))
    if a != b:
        raise ValueError(f"blocks {first!r} and {second!r} are on {a} and {b}, not the same group")

    def h(t: Value, x: Value, u: Value, p: Value) -> Value:
        return a.compose(a.inverse(x[where_a]), x[where_b])

    return Sensor(name, h, a, **noise)


@_told
@named_options
def encoders(
    system: System[Any], block: str, *, resolution: Any = None, name: str = "encoders",
    **noise: Any,
) -> Sensor:  # fmt: skip
    """Positions of joints: a block of the state.

    Parameters
    ----------
    system, name, **noise
        See `gnss`.
    block : str
    resolution : float or array_like, optional
        Least step of an encoder: rounding to it has the deviation ``resolution / √12``.
    """
    _block(system, block)
    if resolution is not None:
        noise = {"std_discrete": np.asarray(resolution, dtype=np.float64) / np.sqrt(12), **noise}
    return Sensor(name, block, **noise)


@dataclass(frozen=True, eq=False)
class _CarryingBody:
    """Where a pose is in a state."""

    system: System[Any]
    group: LieGroup  # of the block
    where: slice  # its coordinates, its tangent vector
    tangent: slice
    size: int  # 2 in the plane, 3 in space

    @classmethod
    def of(cls, system: System[Any], block: str | None, *, spatial: bool = False) -> _CarryingBody:
        kinds = [SE3, SE23, SO3] if spatial else [SE2, SE3, SE23, SO3]
        more = SEK3 if spatial else SEK2 | SEK3

        def carries(group: LieGroup) -> bool:
            return group in kinds or isinstance(group, more)

        if block is None:
            coordinates, _ = _slices(system)
            found = [name for name in coordinates if carries(_block(system, name)[0])]
            if not found:
                raise ValueError(
                    f"{system.name} has no block on {', '.join(map(str, kinds))}: its state is "
                    f"{system.state}"
                )
            block = found[0]
        group, where = _block(system, block)
        if not carries(group):
            raise ValueError(
                f"block {block!r} is on {group}, expected one of {', '.join(map(str, kinds))}"
            )
        size = 2 if isinstance(group, SEK2) or group == SE2 else 3
        return cls(system, group, where, _slices(system)[1][block], size)

    @property
    def turn_rows(self) -> slice:
        """Rotation in the tangent vector of the state."""
        return slice(self.tangent.stop - (1 if self.size == 2 else 3), self.tangent.stop)

    def position(self, x: Value) -> Value:
        X = x[self.where]
        if self.group == SO3:
            raise ValueError(f"{self.system.name} has an attitude without a position")
        return X[: self.size]

    def rotation(self, x: Value) -> Value:
        X = x[self.where]
        return SO2.matrix(X[-2:]) if self.size == 2 else SO3.matrix(X[-4:])

    def landmark(self, given: Any) -> Callable[[Value], Value]:
        """Where a landmark is: a position, a block of the state, a vector of the pose's own."""
        if isinstance(given, str):
            where = _block(self.system, given)[1]
            return lambda x: x[where]
        if isinstance(given, int | np.integer) and isinstance(self.group, SEK2 | SEK3):
            k = int(given)
            if not 0 < k < self.group.vectors:
                raise IndexError(
                    f"{self.group} has landmarks 1 … {self.group.vectors - 1}, not {k}"
                )
            own = slice(self.size * k, self.size * (k + 1))
            return lambda x: x[self.where][own]
        point = _point("position", given, self.size)
        return lambda x: point

    def motion(self, twist: str) -> Callable[[Value, Value], tuple[Value, Value]]:
        """``(x, u) → v, ω`` in the body frame."""
        if self.group == SE23:
            gyro = _input(self.system, "gyro.x")
            blocks = _slices(self.system)[0]

            def inertial(x: Value, u: Value) -> tuple[Value, Value]:
                bias = x[blocks["gyro_bias"]] if "gyro_bias" in blocks else 0
                return self.rotation(x).T @ x[self.where][3:6], u[gyro : gyro + 3] - bias

            return inertial
        group, where = _block(self.system, twist)
        if group.dim != (3 if self.size == 2 else 6):
            raise ValueError(f"block {twist!r} is on {group}, not a twist of {self.group}")
        return lambda x, u: (x[where][: self.size], x[where][self.size :])


def _slices(system: System[Any]) -> tuple[dict[str, slice], dict[str, slice]]:
    if isinstance(system.state, Product):
        return block_slices(system.state)
    whole = {"state": slice(0, system.state.nq)}, {"state": slice(0, system.state.dim)}
    return whole


def _block(system: System[Any], name: str) -> tuple[LieGroup, slice]:
    coordinates, _ = _slices(system)
    check_known("block of the state", coordinates, name)
    group: LieGroup = system.state
    if isinstance(group, Product):
        where = coordinates[name]
        group = _find(group, where, 0)
    return group, coordinates[name]


def _find(group: LieGroup, where: slice, start: int) -> LieGroup:
    """The block of a product at some coordinates, at any depth; numbers of a block may be one."""
    if not isinstance(group, Product):
        return Rn(where.stop - where.start)
    for block in group.blocks.values():
        if slice(start, start + block.nq) == where:
            return block
        if start <= where.start and where.stop <= start + block.nq:
            return _find(block, where, start)
        start += block.nq
    raise AssertionError(where)  # slices come from the same product


def _vector(size: int, unit: str) -> Rn:
    return Rn(size, tuple(_AXES[:size]), (unit,) * size)


def _point(what: str, value: Any, size: int) -> ca.DM:
    return ca.DM(np.zeros(size) if value is None else check_shape(what, value, (size,)))


def _input(system: System[Any], name: str) -> int:
    check_known("input", system.input_names, name)
    return system.input_names.index(name)


def _entry(system: System[Any], name: str | None) -> Callable[[Value], Value]:
    """A block or an entry of the state; zero for none."""
    if name is None:
        return lambda x: 0
    coordinates, _ = _slices(system)
    if name in coordinates:
        return lambda x: x[coordinates[name]]
    known = system.state.coordinate_names
    check_known("block or entry", [*coordinates, *known], name)
    return lambda x: x[known.index(name)]

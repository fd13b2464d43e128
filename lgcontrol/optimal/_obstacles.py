"""Obstacles as bounds, and bounds as obstacles for scenes: bodies to stay out of, cones, gates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Value, named_options
from ..codegen._internal import check_shape
from ..scene._internal import GateBox, Inside, moving_blocks
from ..systems import System
from ..systems._internal import squared_distance
from ._bounds import Bound, ShownRow, bounded_place
from ._expressions import StageFunction

# A centre, an end, an axis: numbers, or a function (t, p) → column of them that may change.
Place: TypeAlias = ArrayLike | Callable[[Value, Value], Value]
Radius: TypeAlias = float | Callable[[Value, Value], Value]


@named_options
@dataclass(frozen=True, eq=False)
class Sphere:
    """Ball, or a disc where the centre has two coordinates.

    Parameters
    ----------
    center : array_like, shape (2,) or (3,), or callable
        In m; or ``(t, p) → column``, for one that moves, or whose place is a parameter.
    radius : float or callable
        In m; or ``(t, p) → number``.
    """

    center: Place
    radius: Radius

    def __post_init__(self) -> None:
        _check_places(center=self.center)
        _check_radius(self.radius)

    def clearance(self, body: Value, radius: float, t: Value, p: Value) -> Value:
        """See `keep_out`."""
        return _between(body, _place(self.center, t, p), _number(self.radius, t, p) + radius)


@named_options
@dataclass(frozen=True, eq=False)
class Capsule:
    """All points nearer than a radius to a segment.

    Parameters
    ----------
    start, end : array_like, shape (2,) or (3,), or callable
        Ends of the segment in m, or functions ``(t, p) → column``.
    radius : float or callable
    """

    start: Place
    end: Place
    radius: Radius

    def __post_init__(self) -> None:
        _check_places(start=self.start, end=self.end)
        _check_radius(self.radius)

    def clearance(self, body: Value, radius: float, t: Value, p: Value) -> Value:
        """See `keep_out`."""
        ends = ca.horzcat(_place(self.start, t, p), _place(self.end, t, p))
        return _between(body, ends, _number(self.radius, t, p) + radius)


@named_options
@dataclass(frozen=True, eq=False)
class HalfSpace:
    """All points behind a plane.

    Parameters
    ----------
    point : array_like, shape (2,) or (3,), or callable
        Of the plane, in m, or a function ``(t, p) → column``.
    normal : array_like, shape (2,) or (3,), or callable
        Out of the obstacle; of any length. Or ``(t, p) → column`` of length one.
    """

    point: Place
    normal: Place

    def __post_init__(self) -> None:
        _check_places(point=self.point)
        if not callable(self.normal):
            _unit("normal", self.normal, np.size(self.normal))

    def clearance(self, body: Value, radius: float, t: Value, p: Value) -> Value:
        """See `keep_out`."""
        point = _place(self.point, t, p)
        _check_body(body, point.shape[0])
        across = _direction("normal", self.normal, point.shape[0], t, p)
        return (across.T @ (body - ca.repmat(point, 1, body.shape[1]))).T - radius


@named_options
def keep_out(
    body: StageFunction,
    obstacle: Sphere | Capsule | HalfSpace,
    *,
    radius: Radius = 0.0,
    soft: float | str | None = None,
    name: str | None = None,
) -> Bound:
    """Bound that keeps a body out of an obstacle.

    The bounded quantity is ``(d² − R²) / (2 R)`` with the distance d of the two axes and the sum R
    of the radii. It is smooth, and near contact it is the clearance in m. Of a half-space it is the
    clearance of each end. Records and pictures show the clearance ``d − R`` itself.

    Parameters
    ----------
    body : callable
        ``(t, x, u, p) → point``, shape (d, 1) in world axes, or (d, 2) for the ends of a capsule.
    obstacle : Sphere, Capsule or HalfSpace
    radius : float or callable
        Of the body, with the margin to keep, m; or ``(t, p) → number``.
    soft, name
        See `Bound`.

    Returns
    -------
    Bound

    Examples
    --------
    >>> pole = keep_out(lambda t, x, u, p: x[:2], Sphere([1.0, 0.0], 0.5), radius=0.2)
    >>> pole.label
    'clearance of Sphere'
    """
    if not callable(body):
        raise TypeError(
            "body must be a function (t, x, u, p) → point, such as lambda t, x, u, p: x[:2], not "
            f"{body!r}"
        )
    if not hasattr(obstacle, "clearance"):
        raise TypeError(f"obstacle must be a Sphere, Capsule or HalfSpace, not {obstacle!r}")
    if radius != 0:
        _check_radius(radius)

    def clearance(t: Value, x: Value, u: Value, p: Value) -> Value:
        return obstacle.clearance(body(t, x, u, p), _number(radius, t, p), t, p)

    def distance(t: Value, x: Value, u: Value, p: Value) -> Value:
        row = clearance(t, x, u, p)
        if isinstance(obstacle, HalfSpace):
            return ca.mmin(row)
        R = _number(obstacle.radius, t, p) + _number(radius, t, p)
        return ca.sqrt(ca.fmax(2 * R * row + R**2, 0.0)) - R

    label = f"clearance of {type(obstacle).__name__}" if name is None else name
    radii = (getattr(obstacle, "radius", 0.0), radius)
    size = sum(float(one) for one in radii if not callable(one))
    shown = ShownRow(distance, 0.0, np.inf, "m", size or np.inf)
    return Bound(clearance, lower=0.0, soft=soft, name=label, obstacle=obstacle, shown=shown)


@named_options
@dataclass(frozen=True, eq=False)
class Cone:
    """Directions within an angle of an axis.

    Parameters
    ----------
    axis : array_like, shape (3,), or callable
        Of any length, in the axes of the direction; scenes draw those of the world.
        Or ``(t, p) → column`` of length one.
    half_angle : float or callable
        In rad; or ``(t, p) → number``.

    Examples
    --------
    A boresight that does not come within 20° of the sun, a tilt below 30°:

    >>> from lgcontrol.groups import SO3
    >>> sun = Cone([1, 0, 0], np.deg2rad(20)).outside(lambda t, x, u, p: SO3.act(x[:4], [0, 0, 1]))
    >>> tilt = Cone([0, 0, 1], np.deg2rad(30)).inside(lambda t, x, u, p: SO3.act(x[:4], [0, 0, 1]))
    >>> print(round(sun.upper, 3), round(tilt.lower, 3))
    0.94 0.866
    """

    axis: Place
    half_angle: float | Callable[[Value, Value], Value]

    def __post_init__(self) -> None:
        angle = self.half_angle
        if not callable(angle) and (isinstance(angle, str) or not 0 < angle < np.pi):
            raise ValueError(
                f"half_angle must be between 0 and π rad, got {angle!r}; of degrees give "
                "np.radians(angle); for one that "
                "changes give a function (t, p) → number, such as lambda t, p: p[0]"
            )
        if not callable(self.axis):
            _unit("axis", self.axis, 3)

    def inside(
        self, direction: StageFunction, *, soft: float | str | None = None,
        name: str = "within cone",
    ) -> Bound:  # fmt: skip
        """Bound that keeps a direction inside.

        Parameters
        ----------
        direction : callable
            ``(t, x, u, p) → column`` of length one.
        soft, name
            See `Bound`.
        """
        return self._limited(direction, soft, name, is_inside=True)

    def outside(
        self, direction: StageFunction, *, soft: float | str | None = None,
        name: str = "out of cone",
    ) -> Bound:  # fmt: skip
        """Bound that keeps a direction outside; arguments are those of `inside`."""
        return self._limited(direction, soft, name, is_inside=False)

    def force_inside(
        self, force: StageFunction, *, soft: float | str | None = None,
        name: str = "force within cone",
    ) -> Bound:  # fmt: skip
        """Bound that keeps a force of any size inside, zero included: friction, thrust.

        Parameters
        ----------
        force : callable
            ``(t, x, u, p) → column``, in N.
        soft, name
            See `Bound`.
        """
        if not callable(self.half_angle) and self.half_angle >= np.pi / 2:
            raise ValueError(
                f"a cone of forces is narrower than π/2 on each side, got half_angle = "
                f"{self.half_angle:.4g} rad: of degrees give np.radians(angle)"
            )

        def rows(t: Value, x: Value, u: Value, p: Value) -> Value:
            value, slope = force(t, x, u, p), ca.cos(_number(self.half_angle, t, p)) ** 2
            along = ca.dot(value, _direction("axis", self.axis, 3, t, p))
            return ca.vertcat(along, along**2 - slope * ca.sumsqr(value))

        return Bound(rows, lower=0.0, soft=soft, name=name)

    def _limited(
        self, direction: StageFunction, soft: float | str | None, name: str, *, is_inside: bool
    ) -> Bound:
        """Bound on the cosine between direction and axis; by what it differs where that changes."""
        angle = self.half_angle

        def along(t: Value, x: Value, u: Value, p: Value) -> Value:
            return ca.dot(direction(t, x, u, p), _direction("axis", self.axis, 3, t, p))

        def cosine(t: Value, x: Value, u: Value, p: Value) -> Value:
            found = along(t, x, u, p)
            return found - ca.cos(angle(t, p)) if callable(angle) else found

        def between(t: Value, x: Value, u: Value, p: Value) -> Value:
            """Angle to the axis, which is what people think of, or to the edge if that changes."""
            found = ca.acos(ca.fmax(ca.fmin(along(t, x, u, p), 1.0), -1.0))
            return found - angle(t, p) if callable(angle) else found

        limit, edge = (0.0, 0.0) if callable(angle) else (float(np.cos(angle)), float(angle))
        shown = ShownRow(between, *((-np.inf, edge) if is_inside else (edge, np.inf)), "rad")
        return Bound(
            cosine, *((limit, np.inf) if is_inside else (-np.inf, limit)), soft=soft, name=name,
            obstacle=Inside(self) if is_inside else self, shown=shown,
        )  # fmt: skip


def _between(body: Value, other: Value, radius: Value) -> Value:
    _check_body(body, other.shape[0])
    return (squared_distance(body, other) - radius**2) / (2 * radius)


def _check_body(body: Value, size: int) -> None:
    if body.shape[0] != size or body.shape[1] not in (1, 2):
        raise ValueError(
            f"the body has shape {body.shape}, expected ({size}, 1), a point, or ({size}, 2), both "
            "ends of a capsule"
        )


def _unit(name: str, value: ArrayLike, size: int) -> ca.DM:
    direction = check_shape(name, value, (size,))
    if not np.linalg.norm(direction) > 0:
        raise ValueError(f"{name} must not be zero, got {value}")
    return ca.DM(direction / np.linalg.norm(direction))


def _direction(name: str, value: Place, size: int, t: Value, p: Value) -> Value:
    return value(t, p) if callable(value) else _unit(name, value, size)


def _check_places(**places: Place) -> None:
    """Numbers of equally many coordinates; what functions say is known later."""
    known = {name: check_shape(name, p, (None,)) for name, p in places.items() if not callable(p)}
    sizes = {name: value.size for name, value in known.items()}
    if not set(sizes.values()) <= {2, 3} or len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} of {size}" for name, size in sizes.items())
        raise ValueError(f"an obstacle is in the plane or in space, 2 or 3 coordinates; got {told}")


def _check_radius(value: Radius) -> None:
    if not callable(value) and (isinstance(value, str) or not 0 < value < np.inf):
        raise ValueError(
            f"radius must be positive, in m, got {value!r}; for one that changes give a function "
            "(t, p) → number, such as lambda t, p: p[0]"
        )


def _place(value: Place, t: Value, p: Value) -> Value:
    return value(t, p) if callable(value) else ca.DM(np.asarray(value, dtype=float))


def _number(value: Radius, t: Value, p: Value) -> Value:
    return value(t, p) if callable(value) else float(value)


def seen_obstacles(system: System, bounds: Sequence[Bound]) -> dict[str, Any]:
    """Obstacles, cones and gates of bounds, by the name of the first bound of each.

    A gate is what bounds on positions of a body leave of space at the same nodes.
    """
    found: dict[str, Any] = {}

    def add(name: str, one: Any) -> None:
        names = (name, *(f"{name} {k}" for k in range(2, len(found) + 3)))
        found[next(label for label in names if label not in found)] = one

    for bound in bounds:
        one = bound.obstacle
        if one is None or any(one is other for other in found.values()):
            continue
        plain = type(one).__name__
        add(plain if bound.label == f"clearance of {plain}" else bound.label, one)
    for (_, nodes), own in _gates(system, bounds).items():
        named = next((bound.name for _, bound in own if bound.name is not None), None)
        lower, upper = np.full((2, 3), [[-np.inf], [np.inf]])
        for axis, bound in own:
            lower[axis] = max(lower[axis], float(np.ravel(np.asarray(bound.lower))[0]))
            upper[axis] = min(upper[axis], float(np.ravel(np.asarray(bound.upper))[0]))
        if np.isfinite([lower, upper]).all(axis=0).any():
            add(named or f"gate at node {nodes[0]}", Inside(GateBox(lower, upper)))
    return found


def _gates(
    system: System, bounds: Sequence[Bound]
) -> dict[tuple[str, range], list[tuple[int, Bound]]]:
    """Bounds on the position of a body by the body and the nodes, with the axes of the world."""
    axes = {
        f"{name}.{label}".lstrip("."): (name, axis)
        for name, block, *_ in moving_blocks(system.state)
        for label, axis in _axes(block).items()
    }
    found: dict[tuple[str, range], list[tuple[int, Bound]]] = {}
    for bound in bounds:
        limits = (bound.lower, bound.upper)
        if not isinstance(bound.at, range) or any(isinstance(side, str) for side in limits):
            continue
        kind, name = ("", "") if callable(bound.of) else bounded_place(system, bound)
        if kind == "coordinate" and name in axes:
            body, axis = axes[name]
            found.setdefault((body, bound.at), []).append((axis, bound))
    return found


def _axes(block: Any) -> dict[str, int]:
    """Coordinates that are positions along an axis of the world, with the number of the axis."""
    start = np.asarray(block.embed(block.identity))
    found = {}
    for k, (name, unit) in enumerate(
        zip(block.coordinate_names, block.coordinate_units, strict=True)
    ):
        if unit == "m":
            step = np.asarray(block.embed(block.identity + np.eye(block.nq)[k])) - start
            hits = np.flatnonzero(np.abs(step[:3] - 1.0) < 1e-12)
            if len(hits) == 1 and np.abs(step).sum() < 1.0 + 1e-9:
                found[name] = int(hits[0])
    return found

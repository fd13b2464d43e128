"""Obstacles as bounds: spheres, capsules, half-spaces to stay out of, cones for directions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Value, check_shape
from ..systems import squared_distance
from ._statement import Bound, StageFunction

# A centre, an end, an axis: numbers, or a function (t, p) → column of them that may change.
Place: TypeAlias = ArrayLike | Callable[[Value, Value], Value]
Radius: TypeAlias = float | Callable[[Value, Value], Value]


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


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """All points behind a plane.

    Parameters
    ----------
    point : array_like, shape (2,) or (3,), or callable
        Of the plane, in m, or a function ``(t, p) → column``.
    normal : array_like, shape (2,) or (3,)
        Out of the obstacle; of any length.
    """

    point: Place
    normal: ArrayLike

    def __post_init__(self) -> None:
        _check_places(point=self.point)
        _unit("normal", self.normal, np.size(self.normal))

    def clearance(self, body: Value, radius: float, t: Value, p: Value) -> Value:
        """See `keep_out`."""
        point = _place(self.point, t, p)
        _check_body(body, point.shape[0])
        across = _unit("normal", self.normal, point.shape[0])
        return (across.T @ (body - ca.repmat(point, 1, body.shape[1]))).T - radius


def keep_out(
    body: StageFunction,
    obstacle: Sphere | Capsule | HalfSpace,
    *,
    radius: float = 0.0,
    soft: float | str | None = None,
    name: str | None = None,
) -> Bound:
    """Bound that keeps a body out of an obstacle.

    Bounded is ``(d² − R²) / (2 R)`` with the distance d of the two axes and the sum R of the radii:
    smooth, and near contact the clearance in m. Of a half-space it is the clearance of each end.

    Parameters
    ----------
    body : callable
        ``(t, x, u, p) → point``, shape (d, 1) in world axes, or (d, 2) for the ends of a capsule.
    obstacle : Sphere, Capsule or HalfSpace
    radius : float
        Of the body, with the margin to keep, m.
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
    if not (np.isfinite(radius) and radius >= 0):
        raise ValueError(f"radius must be at least 0 m, got {radius}")

    def clearance(t: Value, x: Value, u: Value, p: Value) -> Value:
        return obstacle.clearance(body(t, x, u, p), radius, t, p)

    label = f"clearance of {type(obstacle).__name__}" if name is None else name
    return Bound(clearance, lower=0.0, soft=soft, name=label)


@dataclass(frozen=True, eq=False)
class Cone:
    """Directions within an angle of an axis.

    Parameters
    ----------
    axis : array_like, shape (3,), or callable
        Of any length; or ``(t, p) → column`` of length one.
    half_angle : float
        In rad.

    Examples
    --------
    A boresight that does not come within 20° of the sun, a tilt that stays below 30°:

    >>> from lgcontrol.groups import SO3
    >>> sun = Cone([1, 0, 0], np.deg2rad(20)).avoided(lambda t, x, u, p: SO3.act(x[:4], [0, 0, 1]))
    >>> tilt = Cone([0, 0, 1], np.deg2rad(30)).kept(lambda t, x, u, p: SO3.act(x[:4], [0, 0, 1]))
    >>> print(round(sun.upper, 3), round(tilt.lower, 3))
    0.94 0.866
    """

    axis: Place
    half_angle: float

    def __post_init__(self) -> None:
        if not 0 < self.half_angle < np.pi:
            raise ValueError(f"half_angle must be between 0 and π rad, got {self.half_angle}")
        if not callable(self.axis):
            _unit("axis", self.axis, 3)

    def kept(
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
        return Bound(self._along(direction), lower=np.cos(self.half_angle), soft=soft, name=name)

    def avoided(
        self, direction: StageFunction, *, soft: float | str | None = None,
        name: str = "out of cone",
    ) -> Bound:  # fmt: skip
        """Bound that keeps a direction outside; arguments are those of `kept`."""
        return Bound(self._along(direction), upper=np.cos(self.half_angle), soft=soft, name=name)

    def kept_force(
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
        if self.half_angle >= np.pi / 2:
            raise ValueError("a cone of forces is narrower than π/2 on each side")
        slope = np.cos(self.half_angle) ** 2

        def rows(t: Value, x: Value, u: Value, p: Value) -> Value:
            value = force(t, x, u, p)
            along = ca.dot(value, self._axis(t, p))
            return ca.vertcat(along, along**2 - slope * ca.sumsqr(value))

        return Bound(rows, lower=0.0, soft=soft, name=name)

    def _axis(self, t: Value, p: Value) -> Value:
        if callable(self.axis):
            return self.axis(t, p)
        return _unit("axis", self.axis, 3)

    def _along(self, direction: StageFunction) -> StageFunction:
        def cosine(t: Value, x: Value, u: Value, p: Value) -> Value:
            return ca.dot(direction(t, x, u, p), self._axis(t, p))

        return cosine


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


def _check_places(**places: Place) -> None:
    """Numbers of equally many coordinates; what functions say is known later."""
    known = {name: check_shape(name, p, (None,)) for name, p in places.items() if not callable(p)}
    sizes = {name: value.size for name, value in known.items()}
    if not set(sizes.values()) <= {2, 3} or len(set(sizes.values())) > 1:
        told = ", ".join(f"{name} of {size}" for name, size in sizes.items())
        raise ValueError(f"an obstacle is in the plane or in space, 2 or 3 coordinates; got {told}")


def _check_radius(value: Radius) -> None:
    if not callable(value) and not value > 0:
        raise ValueError(f"radius must be positive, in m, got {value}")


def _place(value: Place, t: Value, p: Value) -> Value:
    return value(t, p) if callable(value) else ca.DM(np.asarray(value, dtype=float))


def _number(value: Radius, t: Value, p: Value) -> Value:
    return value(t, p) if callable(value) else float(value)

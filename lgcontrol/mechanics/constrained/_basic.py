"""The basic constraints DP1, DP2, D and CD: dot products of vectors that bodies carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca

from ...codegen import Value
from ...codegen._internal import check_known, check_shape
from ...systems._internal import check_name
from .._coefficients import read_only

GROUND = "ground"
"""Name of the frame of the world, to which joints may attach like to a body."""

Frames = Mapping[str, tuple[Any, Any]]
"""Position r [m] of the origin and rotation A (body to world) of every body, by name."""

Drive = float | Callable[[Any], Any]
"""A number, or a function of the time t [s] in CasADi operations, twice differentiable."""


@dataclass(frozen=True, eq=False)
class Direction:
    """``A a``: a direction that a body carries.

    Parameters
    ----------
    body : str
        Name of a body, or "ground".
    vector : array_like of shape (3,), or callable
        a in body axes; a function ``t → a`` of CasADi values where it moves in the body.

    Examples
    --------
    >>> Direction("crank", [1, 0, 0]).bodies
    ('crank',)
    """

    body: str
    vector: Any

    def __post_init__(self) -> None:
        check_name("body", self.body)
        if not callable(self.vector):
            a = check_shape(f"direction on {self.body!r}", self.vector, (3,))
            if not a.any():
                raise ValueError(f"direction on {self.body!r} must not be zero")
            object.__setattr__(self, "vector", read_only(a))

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that it depends on."""
        return (self.body,)

    def world(self, t: Value, frames: Frames) -> Value:
        """In world axes."""
        a = self.vector(t) if callable(self.vector) else ca.DM(self.vector)
        return frame_of(frames, self.body)[1] @ a


@dataclass(frozen=True, eq=False)
class Connection:
    """``d = r_j + A_j s_j − r_i − A_i s_i``: from a point of body i to a point of body j [m].

    Parameters
    ----------
    i, j : str
        Names of bodies, or "ground".
    s_i, s_j : array_like, shape (3,)
        Points [m] in body axes.
    """

    i: str
    s_i: Any
    j: str
    s_j: Any

    def __post_init__(self) -> None:
        for side in ("i", "j"):
            check_name("body", getattr(self, side))
            s = check_shape(f"point on {getattr(self, side)!r}", getattr(self, f"s_{side}"), (3,))
            object.__setattr__(self, f"s_{side}", read_only(s))

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that it depends on."""
        return (self.i, self.j)

    def world(self, t: Value, frames: Frames) -> Value:
        """In world axes."""
        (r_i, A_i), (r_j, A_j) = frame_of(frames, self.i), frame_of(frames, self.j)
        return r_j + A_j @ ca.DM(self.s_j) - r_i - A_i @ ca.DM(self.s_i)


@dataclass(frozen=True, eq=False)
class BasicConstraint:
    """``φ = u · w − f(t)``: one equation between vectors that bodies carry.

    `DP1`, `DP2`, `D` and `CD` make them; joints are lists of them.

    Parameters
    ----------
    row : str
        Name of the equation within its joint.
    u, w : Direction or Connection
    f : float or callable
        What the product shall be: a number, or a function of the time t in CasADi operations.

    References
    ----------
    Kissel, Taves, Negrut: eq. 1 to 4.
    """

    row: str
    u: Direction | Connection
    w: Direction | Connection
    f: Drive = 0.0

    def __post_init__(self) -> None:
        check_name("constraint", self.row)
        if not callable(self.f):
            object.__setattr__(self, "f", float(check_shape(f"f of {self.row}", self.f, ())))

    @property
    def unit(self) -> str:
        """Of φ."""
        return ("", "m", "m²")[sum(isinstance(v, Connection) for v in (self.u, self.w))]

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that it depends on, the ground among them."""
        return tuple(dict.fromkeys((*self.u.bodies, *self.w.bodies)))

    @property
    def kind(self) -> str:
        """What the paper calls it: DP1, DP2, D or CD."""
        if isinstance(self.w, Direction):
            return "DP1"
        if isinstance(self.u, Connection):
            return "D"
        return "CD" if self.u.body == GROUND else "DP2"

    @property
    def is_constant(self) -> bool:
        """Whether both of its ends are on one body."""
        w = self.w
        return w.i == w.j if isinstance(w, Connection) else len(self.bodies) == 1

    def value(self, t: Value, frames: Frames) -> Value:
        """φ on CasADi values."""
        wanted = self.f(t) if callable(self.f) else self.f
        return ca.dot(self.u.world(t, frames), self.w.world(t, frames)) - wanted


def DP1(row: str, i: str, a_i: Any, j: str, a_j: Any, f: Drive = 0.0) -> BasicConstraint:
    """``a_iᵀ A_iᵀ A_j a_j − f(t)``: the angle between directions of two bodies.

    Parameters
    ----------
    row : str
        Name of the equation.
    i, j : str
        Bodies, or "ground".
    a_i, a_j : array_like of shape (3,), or callable of t
        Directions in body axes.
    f : float or callable
        What the product shall be; ``f(t)`` drives it.

    References
    ----------
    Kissel, Taves, Negrut: eq. 1.

    Examples
    --------
    >>> DP1("upright", "ground", [0, 0, 1], "table", [1, 0, 0]).kind
    'DP1'
    """
    return BasicConstraint(row, Direction(i, a_i), Direction(j, a_j), f)


def DP2(row: str, i: str, a_i: Any, s_i: Any, j: str, s_j: Any, f: Drive = 0.0) -> BasicConstraint:
    """``a_iᵀ A_iᵀ d_ij − f(t)``: how far a point of j is from one of i along a direction of i.

    Parameters
    ----------
    row : str
        Name of the equation.
    i, j : str
        Bodies, or "ground".
    a_i : array_like of shape (3,), or callable of t
        Direction in the axes of i.
    s_i, s_j : array_like, shape (3,)
        Points [m] in body axes.
    f : float or callable
        What the product shall be; ``f(t)`` drives it.

    References
    ----------
    Kissel, Taves, Negrut: eq. 2.

    Examples
    --------
    >>> DP2("stroke", "rail", [1, 0, 0], [0, 0, 0], "slider", [0, 0, 0], lambda t: 0.1 * t).unit
    'm'
    """
    return BasicConstraint(row, Direction(i, a_i), Connection(i, s_i, j, s_j), f)


def D(row: str, i: str, s_i: Any, j: str, s_j: Any, f: Drive) -> BasicConstraint:
    """``d_ijᵀ d_ij − f(t)``: the squared distance of two points.

    Parameters
    ----------
    row : str
        Name of the equation.
    i, j : str
        Bodies, or "ground".
    s_i, s_j : array_like, shape (3,)
        Points [m] in body axes.
    f : float or callable
        The square of the distance [m²]; it must not be zero, where the equation is singular.

    Raises
    ------
    ValueError
        If f is a number that is not positive.

    References
    ----------
    Kissel, Taves, Negrut: eq. 3.

    Examples
    --------
    >>> D("rod", "ground", [0, 0, 0], "bob", [0, 0, 0], 0.25).kind
    'D'
    """
    if not callable(f) and not f > 0:
        raise ValueError(
            f"{row}: a squared distance must be positive, got {f:g} m²; points that coincide are "
            "three coordinate differences: joints.spherical, or CD along x, y and z"
        )
    between = Connection(i, s_i, j, s_j)
    return BasicConstraint(row, between, between, f)


def CD(row: str, c: Any, i: str, s_i: Any, j: str, s_j: Any, f: Drive = 0.0) -> BasicConstraint:
    """``cᵀ d_ij − f(t)``: how far two points are apart along a direction of the world.

    Parameters
    ----------
    row : str
        Name of the equation.
    c : array_like, shape (3,)
        Direction in world axes.
    i, j : str
        Bodies, or "ground".
    s_i, s_j : array_like, shape (3,)
        Points [m] in body axes.
    f : float or callable
        What the difference shall be [m].

    References
    ----------
    Kissel, Taves, Negrut: eq. 4.

    Examples
    --------
    >>> CD("x", [1, 0, 0], "ground", [0, 0, 0], "bob", [0, 0, 1]).kind
    'CD'
    """
    return BasicConstraint(row, Direction(GROUND, c), Connection(i, s_i, j, s_j), f)


@dataclass(frozen=True, eq=False)
class _OfBodies:
    row: str
    bodies: tuple[str, ...]

    def __post_init__(self) -> None:
        check_name("constraint", self.row)
        bodies = (self.bodies,) if isinstance(self.bodies, str) else tuple(self.bodies)
        object.__setattr__(self, "bodies", bodies)


@dataclass(frozen=True, eq=False)
class FreeConstraint(_OfBodies):
    """``φ(t, frames)``: one equation that a user writes, between frames of bodies.

    Parameters
    ----------
    row : str
        Name of the equation within its joint.
    bodies : tuple of str
        Bodies whose frames it looks at.
    function : callable
        ``(t, frames) → φ`` in CasADi operations; ``frames["crank"]`` is ``r, A``: the origin of
        the body in the world [m], and the rotation that maps body to world axes.
    unit : str
        Of φ.

    Examples
    --------
    A point that slides on a sphere.

    >>> bowl = FreeConstraint(
    ...     "bowl", "bead", lambda t, frames: frames["bead"][0].T @ frames["bead"][0] - 1, "m²")
    >>> bowl.kind
    'free'
    """

    function: Callable[[Any, Frames], Any]
    unit: str = ""
    kind = "free"

    def value(self, t: Value, frames: Frames) -> Value:
        """φ on CasADi values."""
        own = {body: frame_of(frames, body) for body in self.bodies}
        return self.function(t, own)


@dataclass(frozen=True, eq=False)
class VelocityConstraint(_OfBodies):
    """``ψ(t, frames, rates)``: a velocity that vanishes, such as that of a point of contact.

    It is linear in the velocities up to a function of time and positions, ``ψ = A v − b``, and
    leaves positions as they are.

    Parameters
    ----------
    row : str
        Name of the equation within its joint.
    bodies : tuple of str
        Bodies that it looks at.
    function : callable
        ``(t, frames, rates) → ψ`` in CasADi operations; ``frames["wheel"]`` is ``r, A`` and
        ``rates["wheel"]`` is ``ṙ, ω``: ṙ [m/s] in world axes, ω [rad/s] in body axes. Blocks of
        the ground are zero.
    unit : str
        Of ψ.

    Examples
    --------
    A sledge that does not slip across its runners.

    >>> runners = VelocityConstraint(
    ...     "across", "sledge", lambda t, at, rates: at["sledge"][1][:, 1].T @ rates["sledge"][0])
    >>> runners.kind, runners.unit
    ('velocity', 'm/s')
    """

    function: Callable[[Any, Frames, Frames], Any]
    unit: str = "m/s"
    kind = "velocity"

    def value(self, t: Value, frames: Frames, rates: Frames) -> Value:
        """ψ on CasADi values."""
        still = (ca.DM(3, 1), ca.DM(3, 1))
        at = {body: frame_of(frames, body) for body in self.bodies}
        own = {body: still if body == GROUND else rates[body] for body in self.bodies}
        return self.function(t, at, own)


def frame_of(frames: Frames, body: str) -> tuple[Any, Any]:
    """Position and rotation of a body or of the ground."""
    if body == GROUND:
        return ca.DM(3, 1), ca.DM.eye(3)
    check_known("body", [GROUND, *frames], body)
    return frames[body]

"""Commutative groups: Rn, Translation, Helical, Cylindrical. Their Jacobians are identities."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..codegen import Value, named_options
from ..codegen._internal import check_shape
from ._axis import Z_AXIS, Axis, axis_frame, constant, rotation_about
from ._base import LieGroup
from ._se2 import angle_about, circle_about
from ._so2 import ALONG, AboutAxis, compose_circle, normalize_circle


class Additive:
    """What groups share whose coordinates are tangent vectors, under addition."""

    dim: int
    is_commutative = True

    @property
    def identity(self) -> np.ndarray:
        """Zeros, shape (dim,)."""
        return np.zeros(self.dim)

    def _compose(self, X: Value, Y: Value) -> Value:
        return X + Y

    def _inverse(self, X: Value) -> Value:
        return -X

    def _exp(self, d: Value) -> Value:
        return d

    def _log(self, X: Value) -> Value:
        return X


@named_options(own="n")
@dataclass(frozen=True, repr=False)
class Rn(Additive, LieGroup):
    """Vectors of n numbers under addition: speeds, loads, biases, anything without geometry.

    Parameters
    ----------
    n : int
        Length, at least 0.
    names : tuple of str, optional
        Names of the entries; the default is ``x0, x1, …``
    units : str or sequence of str, optional
        Unit of all entries, or those of each: plots and files show them. The default is none.

    Examples
    --------
    >>> Rn(2).plus([1.0, 2.0], [0.5, 0.5])
    array([1.5, 2.5])
    >>> Rn(2, units="m/s").coordinate_units
    ('m/s', 'm/s')
    """

    n: int
    names: tuple[str, ...] = ()
    units: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.n, int | np.integer) or self.n < 0:
            raise ValueError(f"Rn needs a whole number n >= 0, got {self.n!r}")
        if isinstance(self.units, str):
            object.__setattr__(self, "units", (self.units,) * self.n)
        for field in ("names", "units"):
            value = tuple(getattr(self, field))
            object.__setattr__(self, field, value)
            if value and len(value) != self.n:
                raise ValueError(f"Rn({self.n}): {len(value)} {field} given, expected {self.n}")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Rn(n)."""
        return f"Rn({self.n})"

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Length of tangent vectors."""
        return self.n

    nq = dim  # type: ignore[assignment]
    point_size = dim  # type: ignore[assignment]

    @property
    def coordinate_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of the entries."""
        return self.names or tuple(f"x{i}" for i in range(self.n))

    @property
    def coordinate_units(self) -> tuple[str, ...]:  # type: ignore[override]
        """Units of the entries."""
        return tuple(self.units) or ("",) * self.n

    tangent_names = coordinate_names  # type: ignore[assignment]
    tangent_units = coordinate_units  # type: ignore[assignment]

    @property
    def matrix_size(self) -> int:  # type: ignore[override]
        """Rows of the matrix representation: n + 1."""
        return self.n + 1

    def _hat(self, d: Value) -> Value:
        return ca.blockcat([[ca.DM(self.n, self.n), d], [ca.DM(1, self.n), ca.DM(1, 1)]])

    def _matrix(self, X: Value) -> Value:
        return ca.blockcat([[ca.DM.eye(self.n), X], [ca.DM(1, self.n), ca.DM(1)]])

    def _from_matrix(self, M: Value) -> Value:
        return M[: self.n, self.n]

    _vee = _from_matrix

    def _act(self, X: Value, p: Value) -> Value:
        return X + p


@dataclass(frozen=True, repr=False)
class Translation(Additive, AboutAxis):
    """Translations along some of the axes: one number in m for each.

    Parameters
    ----------
    axes : str
        Letters of "xyz" in that order: "xyz", "xy", "z", …
    axis : array_like, shape (3,)
        Direction that takes the place of z (see `about`).

    Examples
    --------
    >>> Translation("xz").homogeneous([1.0, 2.0])[:3, 3]
    array([1., 0., 2.])
    """

    axes: str = "xyz"
    axis: Axis = Z_AXIS

    def __post_init__(self) -> None:
        if not self.axes or self.axes != "".join(a for a in "xyz" if a in self.axes):
            raise ValueError(
                f"Translation axes must be letters of 'xyz' in that order, got {self.axes!r}"
            )
        super().__post_init__()

    @property
    def _stem(self) -> str:
        return f"Translation({self.axes!r})"

    @property
    def dim(self) -> int:  # type: ignore[override]
        """Number of axes."""
        return len(self.axes)

    nq = dim  # type: ignore[assignment]

    @property
    def coordinate_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Letters of the axes; "d" for one alone that has no letter."""
        return self._own(tuple(self.axes), ALONG if self.axes == "z" else None)

    @property
    def coordinate_units(self) -> tuple[str, ...]:  # type: ignore[override]
        """Metres."""
        return ("m",) * self.dim

    tangent_names = coordinate_names  # type: ignore[assignment]
    tangent_units = coordinate_units  # type: ignore[assignment]

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix, shape (6, dim)."""
        return np.vstack([self._directions, np.zeros((3, self.dim))])

    @property
    def _directions(self) -> np.ndarray:
        return axis_frame(self.axis)[:, ["xyz".index(a) for a in self.axes]]

    def _from_matrix(self, M: Value) -> Value:
        return constant(self._directions).T @ M[:3, 3]

    _vee = _from_matrix

    def _pose(self, X: Value) -> tuple[Value, Value]:
        return ca.DM.eye(3), constant(self._directions) @ X


@dataclass(frozen=True, repr=False)
class Helical(Additive, AboutAxis):
    """Screw motions about an axis: one unwrapped angle in rad.

    Parameters
    ----------
    pitch : float
        Travel along the axis in m/rad; 0 is a rotation with an unwrapped angle.
    axis : array_like, shape (3,)

    Examples
    --------
    >>> Helical(0.1).homogeneous([np.pi])[2, 3].round(6)
    np.float64(0.314159)
    """

    pitch: float
    axis: Axis = Z_AXIS

    dim, nq = 1, 1
    coordinate_names, coordinate_units = ("angle",), ("rad",)
    tangent_units = ("rad",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "pitch", float(check_shape("pitch", self.pitch, ())))
        super().__post_init__()

    @property
    def tangent_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Turn about the axis: "rx" about x, "r" about an axis without a letter."""
        return self._own(("rz",), ALONG)

    @property
    def _stem(self) -> str:
        return f"Helical({self.pitch:g})"

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix, shape (6, 1)."""
        n = np.array(self.axis)
        return np.concatenate([self.pitch * n, n])[:, None]

    def _vee(self, M: Value) -> Value:
        return constant(np.array(self.axis)).T @ ca.vertcat(M[2, 1], M[0, 2], M[1, 0])

    def _from_matrix(self, M: Value) -> Value:
        height = constant(np.array(self.axis)).T @ M[:3, 3]
        return angle_about(self.axis, M, height, self.pitch)

    def _pose(self, X: Value) -> tuple[Value, Value]:
        rotation = rotation_about(self.axis, ca.cos(X), ca.sin(X))
        return rotation, self.pitch * constant(np.array(self.axis)) * X


@dataclass(frozen=True, repr=False)
class CylindricalGroup(AboutAxis):
    """Rotations about and translations along an axis: ``[d, cos, sin]``, tangent ``[v, ω]``.

    Parameters
    ----------
    axis : array_like, shape (3,)
        Direction of the axis, of any length; z unless given.

    Examples
    --------
    >>> from lgcontrol.groups import Cylindrical
    >>> Cylindrical.log(Cylindrical.exp([0.3, 2.0]))
    array([0.3, 2. ])
    """

    axis: Axis = Z_AXIS

    dim, nq = 2, 3
    coordinate_units, tangent_units = ("m", "", ""), ("m", "rad")
    unit_parts = (slice(1, 3),)
    is_commutative = True

    @property
    def coordinate_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Place along the axis, by its letter or "d", and the circle."""
        return self._own(("z", "cos", "sin"), ALONG)

    @property
    def tangent_names(self) -> tuple[str, ...]:  # type: ignore[override]
        """Along and about the axis: "x", "rx" about x; "d", "r" about one without a letter."""
        return self._own(("z", "rz"), ALONG)

    @property
    def identity(self) -> np.ndarray:
        """No motion, [0, 1, 0]."""
        return np.array([0.0, 1.0, 0.0])

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix, shape (6, 2)."""
        H = np.zeros((6, 2))
        H[:3, 0] = H[3:, 1] = self.axis
        return H

    def _compose(self, X: Value, Y: Value) -> Value:
        return ca.vertcat(X[0] + Y[0], compose_circle(X[1:], Y[1:]))

    def _inverse(self, X: Value) -> Value:
        return ca.vertcat(-X[0], X[1], -X[2])

    def _exp(self, d: Value) -> Value:
        return ca.vertcat(d[0], ca.cos(d[1]), ca.sin(d[1]))

    def _log(self, X: Value) -> Value:
        return ca.vertcat(X[0], ca.atan2(X[2], X[1]))

    def _vee(self, M: Value) -> Value:
        n = constant(np.array(self.axis)).T
        return ca.vertcat(n @ M[:3, 3], n @ ca.vertcat(M[2, 1], M[0, 2], M[1, 0]))

    def _from_matrix(self, M: Value) -> Value:
        circle = normalize_circle(ca.vertcat(*circle_about(self.axis, M)))
        return ca.vertcat(constant(np.array(self.axis)).T @ M[:3, 3], circle)

    def _pose(self, X: Value) -> tuple[Value, Value]:
        return rotation_about(self.axis, X[1], X[2]), constant(np.array(self.axis)) * X[0]


Cylindrical = CylindricalGroup()
"""Rotations about and translations along z."""

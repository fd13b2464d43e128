"""LieGroup: the operations every group offers, on NumPy batches and on CasADi expressions."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import index
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import (
    Shape,
    UnknownNameError,
    ask_degrees,
    check_shape,
    in_degrees,
    refuse_attribute,
    unknown_name,
)
from . import _series
from ._axis import LARGEST_COORDINATE
from ._series import quaternion_from_rotation

MATRIX_TOLERANCE = 1e-6  # what single-precision data and printed rotation matrices need

# Arguments and result of each operation: X coordinates, d tangent vector, M matrix,
# J Jacobian, p point, s scalar, E and F maps between tangent vectors and coordinate rates,
# P coordinates on SE(3), T homogeneous matrix.
OPERATIONS: dict[str, tuple[str, str]] = {
    "compose": ("XX", "X"),
    "inverse": ("X", "X"),
    "exp": ("d", "X"),
    "log": ("X", "d"),
    "plus": ("Xd", "X"),
    "minus": ("XX", "d"),
    "act": ("Xp", "p"),
    "hat": ("d", "M"),
    "vee": ("M", "d"),
    "matrix": ("X", "M"),
    "from_matrix": ("M", "X"),
    "Ad": ("X", "J"),
    "ad": ("d", "J"),
    "right_jacobian": ("d", "J"),
    "left_jacobian": ("d", "J"),
    "right_jacobian_inverse": ("d", "J"),
    "left_jacobian_inverse": ("d", "J"),
    "normalize": ("X", "X"),
    "distance": ("XXs", "s"),
    "interpolate": ("XXs", "X"),
    "rate_matrix": ("X", "E"),
    "tangent_matrix": ("X", "F"),
    "embed": ("X", "P"),
    "homogeneous": ("X", "T"),
}

# A model uses some ten groups with ten operations each; sweeps over pitches or axes make new ones.
MOST_FUNCTIONS = 2048

MOST_SHOWN = 12  # directions that a message lists


WRITTEN = 1e-2  # off the norm of what is written by hand with three digits


def not_a_group(name: str, value: object) -> str:
    """Message for something that should have been a LieGroup.

    Examples
    --------
    >>> not_a_group("state", "SE3")
    'state must be a LieGroup, not str; groups are objects, such as lgcontrol.groups.SE3'
    """
    remedy = "; groups are objects, such as lgcontrol.groups.SE3" if isinstance(value, str) else ""
    return f"{name} must be a LieGroup, not {type(value).__name__}{remedy}"


class LieGroup(ABC):
    """A Lie group: coordinates that are stored, tangent vectors that are differentiated.

    Every operation takes NumPy arrays with leading batch axes (coordinates ``(..., nq)``, tangent
    vectors ``(..., dim)``, matrices ``(..., n, n)``) or single CasADi columns (SX, MX, DM), and
    returns the same kind. Perturbations are on the right, velocities are body-fixed
    (left-trivialised): ``Ẋ = X v^``.

    A group of your own is an immutable subclass with the data below and the methods marked
    abstract, which get and return CasADi columns. It has `__hash__` and `__eq__` by value, as a
    frozen dataclass has. `check_group` then tests the axioms.

    Attributes
    ----------
    name : str
    dim : int
        Length of tangent vectors.
    nq : int
        Number of coordinates.
    coordinate_names, coordinate_units : tuple of str
    tangent_names, tangent_units : tuple of str
        Units are ``"m"``, ``"rad"`` or empty; those of rates carry ``/s`` in addition.
    unit_parts : tuple of slice
        Slices of coordinates that are unit vectors: quaternions, [cos, sin].
    is_commutative : bool
        Whether ``X Y = Y X``: adjoints and Jacobians are then identities, brackets zero.
    matrix_size : int
        Rows of the matrix representation.
    point_size : int
        Length of the points the group acts on.
    """

    _refusal = staticmethod(not_a_group)  # what wrong arguments are told

    name: str
    dim: int
    nq: int
    coordinate_names: tuple[str, ...]
    coordinate_units: tuple[str, ...]
    tangent_names: tuple[str, ...]
    tangent_units: tuple[str, ...]
    unit_parts: tuple[slice, ...] = ()
    is_commutative: bool = False
    matrix_size: int = 4
    point_size: int = 3

    # -- what a concrete group supplies -------------------------------------------------------

    @property
    @abstractmethod
    def identity(self) -> np.ndarray:
        """Coordinates of the neutral element, shape (nq,)."""

    @abstractmethod
    def _compose(self, X: Value, Y: Value) -> Value: ...

    @abstractmethod
    def _inverse(self, X: Value) -> Value: ...

    @abstractmethod
    def _exp(self, d: Value) -> Value: ...

    @abstractmethod
    def _log(self, X: Value) -> Value: ...

    @abstractmethod
    def _hat(self, d: Value) -> Value: ...

    @abstractmethod
    def _vee(self, M: Value) -> Value: ...

    @abstractmethod
    def _matrix(self, X: Value) -> Value: ...

    @abstractmethod
    def _from_matrix(self, M: Value) -> Value: ...

    def _Ad(self, X: Value) -> Value:
        if self.is_commutative:
            return ca.DM.eye(self.dim)
        raise NotImplementedError(f"{self.name}: give _Ad, or set is_commutative")

    def _ad(self, d: Value) -> Value:
        if self.is_commutative:
            return ca.DM(self.dim, self.dim)
        raise NotImplementedError(f"{self.name}: give _ad, or set is_commutative")

    @property
    def selection(self) -> np.ndarray:
        """Selection matrix H, shape (6, dim): body twist ``V = H v``, linear part first.

        Raises
        ------
        TypeError
            If the group is not a group of motions of a body.

        References
        ----------
        From 2012, definition 4.2.
        """
        raise TypeError(f"{self.name} has no embedding in SE(3), so no selection matrix")

    def _pose(self, X: Value) -> tuple[Value, Value]:
        """Rotation matrix and translation of the body motion X."""
        raise TypeError(f"{self.name} has no embedding in SE(3)")

    def _rotation_squared(self, d: Value) -> Value:
        """The number s for which ``ad³ = −s ad``: the squared rotation angle."""
        raise NotImplementedError(
            f"{self.name}: give _rotation_squared, or _right_jacobian and its inverse"
        )

    def _right_jacobian(self, d: Value) -> Value:
        if self.is_commutative:
            return ca.DM.eye(self.dim)
        s, ad = self._rotation_squared(d), self._ad(d)
        return ca.DM.eye(self.dim) - _series.versine(s) * ad + _series.remainder(s) * (ad @ ad)

    def _right_jacobian_inverse(self, d: Value) -> Value:
        if self.is_commutative:
            return ca.DM.eye(self.dim)
        ad = self._ad(d)
        return (
            ca.DM.eye(self.dim) + ad / 2 + _series.cotangent(self._rotation_squared(d)) * (ad @ ad)
        )

    def _normalize(self, X: Value) -> Value:
        return self._unit_parts_by(X, lambda part: part / ca.sqrt(ca.sumsqr(part)))

    def _normalize_any(self, X: Value) -> Value:
        """`_normalize` of numbers whose squares overflow or vanish."""

        def tame(part: Value) -> Value:
            largest = ca.mmax(ca.fabs(part))
            is_extreme = ca.logic_or(largest > LARGEST_COORDINATE, largest < 1 / LARGEST_COORDINATE)
            return part / ca.if_else(is_extreme, largest, 1.0)

        return self._normalize(self._unit_parts_by(X, tame))

    def _unit_parts_by(self, X: Value, change: Callable[[Value], Value]) -> Value:
        pieces, start = [], 0
        for part in self.unit_parts:
            pieces += [X[start : part.start], change(X[part])]
            start = part.stop
        return ca.vertcat(*pieces, X[start:]) if pieces else X

    def _project_matrix(self, M: np.ndarray) -> np.ndarray:
        """Nearest group matrix, for a matrix that is slightly off; shape (..., n, n)."""
        return M

    def _random(self, rng: np.random.Generator, shape: Shape) -> np.ndarray:
        """Random coordinates: the exponential of a normal tangent vector unless overridden."""
        return self.exp(rng.normal(size=(*shape, self.dim)))

    # -- operations ---------------------------------------------------------------------------

    def compose(self, X: Value, Y: Value) -> Value:
        """Group product ``X Y``: coordinates (..., nq) each; never renormalises."""
        return self._apply("compose", X, Y)

    def inverse(self, X: Value) -> Value:
        """Inverse element, coordinates (..., nq)."""
        return self._apply("inverse", X)

    def exp(self, d: Value) -> Value:
        """Group element reached from the identity with the constant velocity d in unit time.

        Parameters
        ----------
        d : array_like, shape (..., dim)
            Tangent vector; linear part [m] first, then angular part [rad].

        Returns
        -------
        ndarray or CasADi column, shape (..., nq)

        Warns
        -----
        UserWarning
            If an angle looks like one in degrees.
        """
        if isinstance(d, list | tuple) or (isinstance(d, np.ndarray) and d.ndim == 1):
            self._ask_degrees("d", d)
        return self._apply("exp", d)

    def _ask_degrees(self, name: str, d: Value) -> None:
        """Ask about angles of rotations that look like degrees; angles that add up may be any."""
        if not self.unit_parts or np.shape(d) != (self.dim,):
            return
        turns = [unit == "rad" for unit in self.tangent_units]
        try:
            angle = in_degrees([value for value, turn in zip(d, turns, strict=True) if turn])
        except TypeError:  # CasADi values in a list
            return
        if angle:
            ask_degrees(f"{name}: an angle", angle)

    def log(self, X: Value) -> Value:
        """Shortest tangent vector d with ``exp(d) = X``.

        Finite and correct at and near a rotation by π and for both signs of a quaternion.

        Parameters
        ----------
        X : array_like, shape (..., nq)

        Returns
        -------
        ndarray or CasADi column, shape (..., dim)
        """
        return self._apply("log", X)

    def plus(self, X: Value, d: Value) -> Value:
        """``X exp(d)``: the element at the body-fixed displacement d from X."""
        return self._apply("plus", X, d)

    def minus(self, X: Value, Y: Value) -> Value:
        """``log(Y⁻¹ X)``: the displacement d with ``plus(Y, d) = X``, shape (..., dim)."""
        return self._apply("minus", X, Y)

    def act(self, X: Value, point: Value) -> Value:
        """Image of a point [m] under X, shape (..., point_size)."""
        return self._apply("act", X, point)

    def hat(self, d: Value) -> Value:
        """Matrix of the Lie algebra for the tangent vector d, shape (..., n, n)."""
        return self._apply("hat", d)

    def vee(self, matrix: Value) -> Value:
        """Tangent vector of a matrix of the Lie algebra: inverse of `hat`."""
        return self._apply("vee", matrix)

    def matrix(self, X: Value) -> Value:
        """Matrix representation of X, shape (..., n, n)."""
        return self._apply("matrix", X)

    def from_matrix(self, matrix: Value) -> Value:
        """Coordinates of a matrix representation.

        A NumPy matrix whose entries are off by less than 1e-6 is repaired. For translations this is
        relative to the longest entry of the column, if that is above 1 m. A CasADi matrix is taken
        as it is.

        Parameters
        ----------
        matrix : array_like, shape (..., matrix_size, matrix_size)

        Returns
        -------
        ndarray or CasADi column, shape (..., nq)

        Raises
        ------
        ValueError
            If a matrix is further away from the group, not finite, or of another shape.
        """
        if isinstance(matrix, ca.SX | ca.MX | ca.DM):
            return self._apply("from_matrix", matrix)
        given = check_shape(f"matrix of {self.name}", matrix, (self.matrix_size,) * 2, batch=True)
        X = self._apply("from_matrix", self._project_matrix(given))
        off = np.abs(self.matrix(X) - given)
        columns = np.abs(given).max(axis=-2, keepdims=True, initial=0.0)
        if not (off <= MATRIX_TOLERANCE * np.maximum(1.0, columns)).all():
            raise ValueError(
                f"not a matrix of {self.name}: the nearest one differs by {off.max():.2g} "
                f"in an entry, at most {MATRIX_TOLERANCE:.0e} is repaired"
            )
        return X

    def Ad(self, X: Value) -> Value:
        """Adjoint of X on tangent vectors, shape (..., dim, dim): ``X d^ X⁻¹ = (Ad d)^``."""
        return self._apply("Ad", X)

    def ad(self, d: Value) -> Value:
        """Lie bracket with d, shape (..., dim, dim): ``ad(d) e = [d, e]``."""
        return self._apply("ad", d)

    def right_jacobian(self, d: Value) -> Value:
        """``J_r = dexp_{−d}``, shape (..., dim, dim): ``exp(d + δ) ≈ exp(d) exp(J_r δ)``."""
        return self._apply("right_jacobian", d)

    def left_jacobian(self, d: Value) -> Value:
        """``J_l = dexp_d``, shape (..., dim, dim): ``exp(d + δ) ≈ exp(J_l δ) exp(d)``."""
        return self._apply("left_jacobian", d)

    def right_jacobian_inverse(self, d: Value) -> Value:
        """Inverse of `right_jacobian`; singular at rotations by 2π."""
        return self._apply("right_jacobian_inverse", d)

    def left_jacobian_inverse(self, d: Value) -> Value:
        """Inverse of `left_jacobian`; singular at rotations by 2π."""
        return self._apply("left_jacobian_inverse", d)

    def normalize(self, X: Value) -> Value:
        """Coordinates brought back onto the group (unit quaternion, unit [cos, sin]).

        Numbers may be of any size but zero; in SX, their squares must not overflow.
        """
        return self._apply("normalize", X)

    def distance(self, X: Value, Y: Value, length: Value = 1.0) -> Value:
        """Norm of ``minus(X, Y)`` with linear parts divided by a length.

        Parameters
        ----------
        X, Y : array_like, shape (..., nq)
        length : float
            Length in m that counts as much as one radian.

        Returns
        -------
        ndarray or CasADi scalar, shape (...)
        """
        return self._apply("distance", X, Y, length)

    def interpolate(self, X: Value, Y: Value, s: Value) -> Value:
        """``X exp(s log(X⁻¹ Y))``: the screw motion from X (s = 0) to Y (s = 1)."""
        return self._apply("interpolate", X, Y, s)

    def rate_matrix(self, X: Value) -> Value:
        """E with ``q̇ = E v``: coordinate rates of a body-fixed velocity, shape (..., nq, dim)."""
        return self._apply("rate_matrix", X)

    def tangent_matrix(self, X: Value) -> Value:
        """F with ``v = F q̇``: velocity of coordinate rates, shape (..., dim, nq); ``F E = 1``."""
        return self._apply("tangent_matrix", X)

    def embed(self, X: Value) -> Value:
        """The body motion X as coordinates on SE(3), shape (..., 7)."""
        return self._apply("embed", X)

    def homogeneous(self, X: Value) -> Value:
        """The body motion X as a 4 × 4 homogeneous matrix."""
        return self._apply("homogeneous", X)

    def random(
        self, seed: int | np.random.Generator | None = None, shape: int | Shape = ()
    ) -> np.ndarray:
        """Random elements: rotations uniform, all other coordinates standard normal.

        Parameters
        ----------
        seed : int or numpy.random.Generator, optional
        shape : int or tuple of int
            Batch axes.

        Returns
        -------
        ndarray, shape (..., nq)
        """
        axes = shape if isinstance(shape, Iterable) else (shape,)
        return self._random(np.random.default_rng(seed), tuple(index(n) for n in axes))

    def function(self, operation: str) -> ModelFunction:
        """An operation as a ModelFunction; its ``.function`` is the casadi.Function.

        Parameters
        ----------
        operation : str
            Name of a method: "compose", "log", "right_jacobian", …

        Raises
        ------
        ValueError
            If there is no such operation; the message lists those there are.
        """
        return operation_function(self, operation)

    # -- how operations are put together --------------------------------------------------------

    def _plus(self, X: Value, d: Value) -> Value:
        return self._compose(X, self._exp(d))

    def _minus(self, X: Value, Y: Value) -> Value:
        return self._log(self._compose(self._inverse(Y), X))

    def _act(self, X: Value, p: Value) -> Value:
        rotation, translation = self._pose(X)
        return rotation @ p + translation

    def _left_jacobian(self, d: Value) -> Value:
        return self._right_jacobian(-d)

    def _left_jacobian_inverse(self, d: Value) -> Value:
        return self._right_jacobian_inverse(-d)

    def _interpolate(self, X: Value, Y: Value, s: Value) -> Value:
        return self._plus(X, s * self._minus(Y, X))

    def _distance(self, X: Value, Y: Value, length: Value) -> Value:
        d = self._minus(X, Y)
        parts = [
            d[i] / length if unit == "m" else d[i] for i, unit in enumerate(self.tangent_units)
        ]
        square = ca.sumsqr(ca.vertcat(*parts))
        positive = square > 0
        return ca.if_else(positive, ca.sqrt(ca.if_else(positive, square, 1.0)), 0.0)

    def _rate_matrix(self, X: Value) -> Value:
        d = ca.SX.sym("d", self.dim)
        columns = ca.jacobian(self._plus(X, d), d)
        return ca.substitute(columns, d, ca.DM.zeros(self.dim, 1))

    def _tangent_matrix(self, X: Value) -> Value:
        Y = ca.SX.sym("Y", self.nq)
        rows = ca.jacobian(self._minus(Y, X), Y)
        return ca.substitute(rows, Y, X)

    def _homogeneous(self, X: Value) -> Value:
        rotation, translation = self._pose(X)
        return ca.blockcat([[rotation, translation], [ca.DM(1, 3), ca.DM(1)]])

    def _embed(self, X: Value) -> Value:
        rotation, translation = self._pose(X)
        return ca.vertcat(translation, quaternion_from_rotation(rotation))

    def _apply(self, operation: str, *values: Value) -> Value:
        """Result of an operation, of the kind of its values.

        Numbers and MX go through the operation's function. Among SX, structural zeros are kept: the
        formula is written out, unless all values are dense; CasADi then writes the function out
        faster.
        """
        for value in values:
            if isinstance(value, ca.SX):
                break
        else:
            function = operation_function(self, operation)
            if operation != "normalize":
                for name, value in zip(function.arguments, values, strict=True):
                    # What is written by hand is looked at; arrays of loops are not.
                    if name in ("X", "Y") and type(value) is list and np.shape(value) == (self.nq,):
                        _check_written(name, value, self)
            return function(*values)
        columns = [
            _sx(self, operation, kind, value)
            for kind, value in zip(OPERATIONS[operation][0], values, strict=True)
        ]
        if operation != "normalize" and all(column.is_dense() for column in columns):
            result = operation_function(self, operation).function(*columns)
        else:
            result = ca.SX(getattr(self, f"_{operation}")(*columns))
        return ca.sparsify(result)

    if not TYPE_CHECKING:  # a type checker takes it for every name

        def __getattr__(self, name: str) -> Any:
            """Say which attributes there are, and the directions, which are none."""
            if name.startswith("_") or hasattr(type(self), name):
                return refuse_attribute(self, name)
            known = [key for key in dir(type(self)) if not key.startswith("_")]
            shown = [*self.tangent_names[:MOST_SHOWN], *["…"] * (self.dim > MOST_SHOWN)]
            text = (
                f"{unknown_name(f'attribute of {self}', name, known)} Directions are no "
                f"attributes but entries of tangent vectors, here ({', '.join(shown)})"
            )
            raise AttributeError(text, name=name, obj=self)

    def __repr__(self) -> str:
        """Name of the group."""
        return self.name


def _check_written(name: str, value: list[Any], group: LieGroup) -> None:
    """Refuse numbers that are no element by more than rounding of what is printed."""
    numbers = np.asarray(value)
    if numbers.dtype.kind not in "iuf":
        return
    for part in group.unit_parts:
        norm = float(np.linalg.norm(numbers[part]))
        if not abs(norm - 1.0) <= WRITTEN:
            names = ", ".join(group.coordinate_names[part])
            raise ValueError(
                f"{name} = {value} is no element of {group}: ({names}) has norm {norm:.7g}, not 1; "
                "normalize brings coordinates onto the group"
            )


@lru_cache(MOST_FUNCTIONS)
def operation_function(group: LieGroup, operation: str) -> ModelFunction:
    """Trace an operation once for each group, unless it was long out of use."""
    if operation not in OPERATIONS:
        raise UnknownNameError(unknown_name(f"operation of {group.name}", operation, OPERATIONS))
    kinds, result = OPERATIONS[operation]
    build = "normalize_any" if operation == "normalize" else operation
    names = [*kinds]
    if kinds.startswith("XX"):
        names[1] = "Y"
    label = "_".join(re.findall(r"[A-Za-z0-9]+", group.name))
    return trace(
        f"{label}_{operation}",
        getattr(group, f"_{build}"),
        {name: _shape(group, kind) for name, kind in zip(names, kinds, strict=True)},
        {"result": _shape(group, result)},
    )


def _shape(group: LieGroup, kind: str) -> Shape:
    return {
        "X": (group.nq,),
        "d": (group.dim,),
        "M": (group.matrix_size, group.matrix_size),
        "J": (group.dim, group.dim),
        "p": (group.point_size,),
        "s": (),
        "E": (group.nq, group.dim),
        "F": (group.dim, group.nq),
        "P": (7,),
        "T": (4, 4),
    }[kind]


def _sx(group: LieGroup, operation: str, kind: str, value: Value) -> ca.SX:
    if isinstance(value, ca.MX):
        raise TypeError(f"{group.name}.{operation}: SX and MX do not mix; give one of the two")
    if isinstance(value, ca.SX | ca.DM):
        column = ca.SX(value)
    else:
        column = ca.SX(ca.DM(np.asarray(value, dtype=float)))
    shape = (_shape(group, kind) + (1, 1))[:2]
    if column.shape != shape:
        raise ValueError(
            f"{group.name}.{operation}: an argument has shape {column.shape}, expected {shape}"
        )
    return column

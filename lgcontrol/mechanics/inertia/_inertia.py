"""SpatialInertia: mass, centre of mass and rotational inertia of a rigid body."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import check_shape, level_outside
from ...groups import SE3, SO3, check_element
from .._coefficients import read_only, set_field, unit_vector

Check = Literal["raise", "warn", "ignore"]
"""What to do about an inertia that no body has."""


THINNEST = 0.01  # kg/m³ that a body has at least, a hundredth of helium's


@named_options
@dataclass(frozen=True, eq=False, init=False)
class SpatialInertia:
    """Inertia of a rigid body: mass, centre of mass and inertia about the centre of mass.

    Limits of bodies are allowed: nothing at all (mass 0, inertia 0), points (inertia 0) and
    lines (one principal moment 0).

    Parameters
    ----------
    mass : float
        Mass [kg].
    center_of_mass : array_like, shape (3,)
        Centre of mass [m] in the body frame.
    inertia : array_like, shape (3, 3)
        Rotational inertia [kg m²] about the centre of mass, along the axes of the body frame.
        The products are the entries of the matrix: ``inertia[0, 1] = −∫ x y dm``.
    check : {"raise", "warn", "ignore"}
        What to do about values that no body has; see `findings`. Wrong shapes and values
        that are not finite are always refused.

    Raises
    ------
    ValueError
        If the values belong to no body: the message says why, and by how much.

    Examples
    --------
    >>> plate = SpatialInertia(2.0, [0.1, 0.0, 0.0], [[1, 0, 0], [0, 2, 0], [0, 0, 3]])
    >>> plate.inertia_about_origin.diagonal()
    array([1.  , 2.02, 3.02])
    >>> SpatialInertia(2.0, [0.0, 0.0, 0.0], np.diag([1, 2, 4]))
    Traceback (most recent call last):
    ...
    ValueError: not the inertia of a body: principal moments 1, 2, 4 kg m² break the triangle \
inequality: the largest exceeds the sum of the others by 1 kg m² (25 %); correct the values, or \
pass check="warn" or check="ignore"
    """

    mass: float
    center_of_mass: np.ndarray
    inertia: np.ndarray

    def __init__(
        self, mass: Any, center_of_mass: Any, inertia: Any, check: Check = "raise"
    ) -> None:
        if check not in get_args(Check):
            raise ValueError(f'check must be "raise", "warn" or "ignore", got {check!r}')
        given = check_shape("inertia", inertia, (3, 3))
        set_field(self, "mass", check_shape("mass", mass, ()))
        set_field(self, "center_of_mass", check_shape("center_of_mass", center_of_mass, (3,)))
        set_field(self, "inertia", (given + given.T) / 2)
        found = () if check == "ignore" else inertia_findings(self.mass, self.center_of_mass, given)
        if found and check == "raise":
            raise ValueError(
                f"not the inertia of a body: {'; '.join(found)}; "
                'correct the values, or pass check="warn" or check="ignore"'
            )
        if found:
            warnings.warn(
                f"not the inertia of a body: {'; '.join(found)}", stacklevel=level_outside()
            )

    def __eq__(self, other: object) -> bool:
        """Whether the other has the same mass, centre of mass and inertia."""
        if not isinstance(other, SpatialInertia):
            return NotImplemented
        return np.array_equal(self._numbers, other._numbers)

    def __hash__(self) -> int:
        """Hash by value."""
        return hash(tuple(self._numbers))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and pickles are made as the original was: with arrays that cannot be changed."""
        return type(self), (self.mass, self.center_of_mass, self.inertia, "ignore")

    # Other ways to make one

    @classmethod
    def about_origin(
        cls, mass: Any, center_of_mass: Any, inertia: Any, *, check: Check = "raise"
    ) -> SpatialInertia:
        """From the rotational inertia about the origin of the body frame.

        Parameters
        ----------
        mass : float
            Mass [kg].
        center_of_mass : array_like, shape (3,)
            Centre of mass [m].
        inertia : array_like, shape (3, 3)
            Inertia [kg m²] about the frame origin, along the axes of the body frame.
        check : {"raise", "warn", "ignore"}
            What to do about values that no body has.

        Raises
        ------
        ValueError
            If the values belong to no body.

        Examples
        --------
        >>> SpatialInertia.about_origin(2.0, [0, 0, 1], np.diag([5, 5, 1])).inertia.diagonal()
        array([3., 3., 1.])
        """
        m = float(check_shape("mass", mass, ()))
        c = check_shape("center_of_mass", center_of_mass, (3,))
        about_origin = check_shape("inertia", inertia, (3, 3))
        return cls(m, c, about_origin - m * parallel_axis(c), check=check)

    @classmethod
    @named_options
    def point_mass(cls, mass: float, position: Any = (0.0, 0.0, 0.0)) -> SpatialInertia:
        """Concentrate the mass in a point.

        Parameters
        ----------
        mass : float
            Mass [kg].
        position : array_like, shape (3,)
            Position of the point [m].

        Examples
        --------
        >>> SpatialInertia.point_mass(2.0, [0, 0, 3]).inertia_about_origin.diagonal()
        array([18., 18.,  0.])
        """
        return cls(mass, position, np.zeros((3, 3)))

    @classmethod
    @named_options
    def box(cls, mass: float, size: Any, center_of_mass: Any = (0.0, 0.0, 0.0)) -> SpatialInertia:
        """Fill a box with edges along the axes evenly.

        Parameters
        ----------
        mass : float
            Mass [kg].
        size : array_like, shape (3,)
            Lengths of the edges along x, y and z [m].
        center_of_mass : array_like, shape (3,)
            Its centre [m].

        Examples
        --------
        >>> SpatialInertia.box(12.0, [1.0, 2.0, 3.0]).inertia.diagonal()
        array([13., 10.,  5.])
        """
        _ask_millimetres("box", mass, np.prod(size))
        x, y, z = _lengths("size", size, (3,)) ** 2
        return cls(mass, center_of_mass, mass / 12 * np.diag([y + z, x + z, x + y]))

    @classmethod
    @named_options
    def cylinder(
        cls,
        mass: float,
        radius: float,
        length: float,
        axis: Any = (0.0, 0.0, 1.0),
        center_of_mass: Any = (0.0, 0.0, 0.0),
    ) -> SpatialInertia:
        """Fill a cylinder evenly.

        Parameters
        ----------
        mass : float
            Mass [kg].
        radius, length : float
            Radius, and length along the axis [m].
        axis : {"x", "y", "z", "-x", …} or array_like, shape (3,)
            Direction of the axis.
        center_of_mass : array_like, shape (3,)
            Its centre [m].

        Examples
        --------
        >>> SpatialInertia.cylinder(12.0, radius=1.0, length=2.0).inertia.diagonal()
        array([7., 7., 6.])
        """
        _ask_millimetres("cylinder", mass, np.pi * np.square(radius) * length)
        r, h = _lengths("radius", radius, ()), _lengths("length", length, ())
        inertia = _about(axis, mass * r**2 / 2, mass * (3 * r**2 + h**2) / 12)
        return cls(mass, center_of_mass, inertia)

    @classmethod
    @named_options
    def sphere(
        cls, mass: float, radius: float, center_of_mass: Any = (0.0, 0.0, 0.0)
    ) -> SpatialInertia:
        """Fill a sphere evenly.

        Parameters
        ----------
        mass : float
            Mass [kg].
        radius : float
            Radius [m].
        center_of_mass : array_like, shape (3,)
            Its centre [m].

        Examples
        --------
        >>> SpatialInertia.sphere(5.0, radius=1.0).inertia.diagonal()
        array([2., 2., 2.])
        """
        _ask_millimetres("sphere", mass, 4.0 / 3.0 * np.pi * np.power(radius, 3))
        inertia = 0.4 * mass * _lengths("radius", radius, ()) ** 2 * np.eye(3)
        return cls(mass, center_of_mass, inertia)

    @classmethod
    @named_options
    def rod(
        cls,
        mass: float,
        length: float,
        axis: Any = (0.0, 0.0, 1.0),
        center_of_mass: Any = (0.0, 0.0, 0.0),
    ) -> SpatialInertia:
        """Spread the mass along a thin rod, without inertia about its own axis.

        Parameters
        ----------
        mass : float
            Mass [kg].
        length : float
            Length [m].
        axis : {"x", "y", "z", "-x", …} or array_like, shape (3,)
            Direction of the rod.
        center_of_mass : array_like, shape (3,)
            Its centre [m].

        Examples
        --------
        >>> SpatialInertia.rod(12.0, length=1.0, axis=[1, 0, 0]).inertia.diagonal()
        array([0., 1., 1.])
        """
        across = mass * _lengths("length", length, ()) ** 2 / 12
        return cls(mass, center_of_mass, _about(axis, 0.0, across))

    @classmethod
    def from_matrix(cls, matrix: Any, *, check: Check = "raise") -> SpatialInertia:
        """From the 6 × 6 matrix that `matrix` gives.

        Parameters
        ----------
        matrix : array_like, shape (6, 6)
            ``[[m 1, −m ĉ], [m ĉ, I_o]]``, linear part first.
        check : {"raise", "warn", "ignore"}
            What to do about values that no body has.

        Raises
        ------
        ValueError
            If the matrix has not this form (an added mass has not: see `RigidBody`), or the
            values belong to no body.

        Examples
        --------
        >>> ball = SpatialInertia.sphere(5.0, 1.0, [0, 0, 2])
        >>> SpatialInertia.from_matrix(ball.matrix) == ball
        True
        """
        M = check_shape("matrix", matrix, (6, 6))
        m = np.trace(M[:3, :3]) / 3
        moment = (M[[5, 3, 4], [1, 2, 0]] - M[[4, 5, 3], [2, 0, 1]]) / 2
        rebuilt = inertia_matrix_from_moments(m, moment, M[3:, 3:])
        scale = np.abs(M).max()
        off = np.abs(M - rebuilt)
        if off.max() > INERTIA_TOLERANCE * scale:
            row, column = (int(i) for i in np.unravel_index(off.argmax(), off.shape))
            raise ValueError(
                "matrix is not [[m 1, −m ĉ], [m ĉ, I]] of a body: entry "
                f"({row}, {column}) is {M[row, column]:.6g}, expected {rebuilt[row, column]:.6g}"
            )
        return cls._from_moments(m, moment, M[3:, 3:], check)

    @classmethod
    def from_parameters(cls, parameters: Any, *, check: Check = "raise") -> SpatialInertia:
        """From the ten parameters in which the equations of motion are linear.

        Parameters
        ----------
        parameters : array_like, shape (10,)
            m [kg], m c [kg m], then Ixx, Ixy, Iyy, Ixz, Iyz, Izz [kg m²] about the frame
            origin (Pinocchio's order).
        check : {"raise", "warn", "ignore"}
            What to do about values that no body has.

        Raises
        ------
        ValueError
            If the values belong to no body.

        Examples
        --------
        >>> SpatialInertia.from_parameters([2, 0, 0, 2, 5, 0, 5, 0, 0, 1]).center_of_mass
        array([0., 0., 1.])
        """
        phi = check_shape("parameters", parameters, (10,))
        about_origin = np.array(symmetric_matrix(phi[4:]))
        return cls._from_moments(phi[0], phi[1:4], about_origin, check)

    @classmethod
    def _from_moments(
        cls, mass: float, moment: np.ndarray, about_origin: np.ndarray, check: Check
    ) -> SpatialInertia:
        if mass == 0.0:
            if moment.any():
                raise ValueError(f"the mass is 0, but m c is {moment.tolist()} kg m")
            return cls(0.0, np.zeros(3), about_origin, check=check)
        return cls.about_origin(mass, moment / mass, about_origin, check=check)

    # Views

    @property
    def matrix(self) -> np.ndarray:
        """``[[m 1, −m ĉ], [m ĉ, I_o]]`` about the frame origin, linear part first, shape (6, 6)."""
        return spatial_inertia_matrix(self.mass, self.center_of_mass, self.inertia)

    @property
    def parameters(self) -> np.ndarray:
        """The ten parameters of `from_parameters`, shape (10,)."""
        about_origin = self.inertia_about_origin
        return np.concatenate(
            [[self.mass], self.mass * self.center_of_mass, about_origin[INERTIA_ENTRIES]]
        )

    @property
    def inertia_about_origin(self) -> np.ndarray:
        """Rotational inertia [kg m²] about the frame origin, shape (3, 3)."""
        return self.inertia + self.mass * parallel_axis(self.center_of_mass)

    def findings(self) -> tuple[str, ...]:
        """Everything that keeps the values from belonging to a body, in words with amounts.

        Returns
        -------
        tuple of str
            Empty for a body, a point, a line, and for no mass at all.

        Examples
        --------
        >>> SpatialInertia(-1.0, np.zeros(3), np.eye(3), check="ignore").findings()
        ('the mass -1 kg is negative',)
        """
        return inertia_findings(self.mass, self.center_of_mass, self.inertia)

    def principal(self) -> PrincipalInertia:
        """Principal moments and axes about the centre of mass.

        Examples
        --------
        >>> SpatialInertia.box(12.0, [1.0, 2.0, 3.0]).principal().moments
        array([ 5., 10., 13.])
        """
        moments, axes = np.linalg.eigh(self.inertia)
        # An eigenvector's sign is free: largest entries positive, then right-handed.
        axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(3)] < 0, -1.0, 1.0)
        axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
        frame = SE3.from_rotation_matrix(axes, self.center_of_mass)
        return PrincipalInertia(read_only(moments), read_only(axes), read_only(frame))

    # Operations

    def transformed(self, T_new_old: Any) -> SpatialInertia:
        """Give the same body in another frame.

        Parameters
        ----------
        T_new_old : array_like, shape (7,)
            SE3 coordinates of the pose of the present frame in the new one.

        Raises
        ------
        ValueError
            If these are no coordinates of a pose.

        Examples
        --------
        >>> SpatialInertia.point_mass(1.0).transformed(SE3.from_position([0, 0, 2])).center_of_mass
        array([0., 0., 2.])
        """
        T = check_element("T_new_old", T_new_old, SE3)
        R = SO3.matrix(SE3.rotation(T))
        return SpatialInertia(
            self.mass,
            SE3.act(T, self.center_of_mass),
            R @ self.inertia @ R.T,
            check="ignore",
        )

    def __add__(self, other: SpatialInertia) -> SpatialInertia:
        """Weld two bodies together, both given in the same frame."""
        if not isinstance(other, SpatialInertia):
            return NotImplemented
        mass = self.mass + other.mass
        if mass == 0.0:
            if self.mass != 0.0:
                raise ValueError(f"the masses {self.mass:g} and {other.mass:g} kg cancel")
            return SpatialInertia(
                0.0, self.center_of_mass, self.inertia + other.inertia, check="ignore"
            )
        between = other.center_of_mass - self.center_of_mass
        return SpatialInertia(
            mass,
            self.center_of_mass + other.mass / mass * between,
            self.inertia + other.inertia + self.mass * other.mass / mass * parallel_axis(between),
            check="ignore",
        )

    @property
    def _numbers(self) -> np.ndarray:
        return np.concatenate([[self.mass], self.center_of_mass, self.inertia[INERTIA_ENTRIES]])


def _ask_millimetres(shape: str, mass: Any, volume: Any) -> None:
    """Ask by a warning whether sizes are in mm, where a body would be thinner than any gas."""
    density = float(mass) / float(volume) if float(volume) > 0 else np.inf
    if 0 < density < THINNEST:
        warnings.warn(
            f"the {shape} of {float(mass):g} kg has {density:.2g} kg/m³, far less than air: is its "
            "size in mm? Give it in m",
            stacklevel=level_outside(),
        )


@dataclass(frozen=True, eq=False)
class PrincipalInertia:
    """Principal moments and axes of inertia about the centre of mass.

    Parameters
    ----------
    moments : ndarray, shape (3,)
        Principal moments [kg m²], smallest first.
    axes : ndarray, shape (3, 3)
        Principal axes as columns, in the body frame: a rotation matrix.
    T_body_principal : ndarray, shape (7,)
        SE3 coordinates of the principal frame, which sits at the centre of mass.

    Examples
    --------
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(3.0, length=2.0, axis=[0, 1, 0])
    >>> rod.principal().axes[:, 0]
    array([0., 1., 0.])
    """

    moments: np.ndarray
    axes: np.ndarray
    T_body_principal: np.ndarray


def parallel_axis(c: np.ndarray) -> np.ndarray:
    """``−ĉ ĉ``: inertia of a unit mass at c about the origin."""
    return (c @ c) * np.eye(3) - np.outer(c, c)


def _about(axis: Any, along: Any, across: Any) -> np.ndarray:
    """Inertia with one moment along an axis and another across it."""
    n = unit_vector("axis", axis)
    return across * np.eye(3) + (along - across) * np.outer(n, n)


def _lengths(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    lengths = check_shape(name, value, shape)
    if (lengths < 0).any():
        raise ValueError(f"{name} must not be negative, got {lengths.tolist()} m")
    return lengths


# Asymmetry and deviation from the form of a spatial inertia, relative to the largest entry: what
# inertias printed with nine digits show.
INERTIA_TOLERANCE = 1e-9

# Principal moments, relative to the largest: thin plates and rods sit exactly on the limits, and
# inertias printed with nine digits round across them.
MOMENT_TOLERANCE = 1e-9

# Relative to m |c|²: a shift of the inertia from a far origin loses that much in double precision.
SHIFT_TOLERANCE = 16 * float(np.finfo(np.float64).eps)


def inertia_findings(
    mass: float, center_of_mass: np.ndarray, inertia: np.ndarray
) -> tuple[str, ...]:
    """What is wrong with a mass and an inertia about the centre of mass, in words with amounts."""
    found = []
    if mass < 0.0:
        found.append(f"the mass {mass:g} kg is negative")
    scale = float(np.abs(inertia).max())
    if scale == 0.0:
        return tuple(found)
    if mass == 0.0:
        found.append(f"the mass is 0 but the inertia is not (largest entry {scale:g} kg m²)")
    asymmetry = np.abs(inertia - inertia.T)
    if asymmetry.max() > INERTIA_TOLERANCE * scale:
        row, column = (int(i) for i in np.unravel_index(asymmetry.argmax(), (3, 3)))
        found.append(
            f"the inertia is not symmetric: entries ({row}, {column}) and ({column}, {row}) are "
            f"{inertia[row, column]:.6g} and {inertia[column, row]:.6g} kg m²"
        )
    # Scaled, so that no entry overflows on the way to the eigenvalues.
    moments = np.linalg.eigvalsh((inertia + inertia.T) / 2 / scale) * scale
    shift = SHIFT_TOLERANCE * abs(mass) * float(center_of_mass @ center_of_mass)
    found += _moment_findings(moments, MOMENT_TOLERANCE * scale + shift)
    return tuple(found)


def _moment_findings(moments: np.ndarray, tolerance: float) -> list[str]:
    a, b, c = moments
    text = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m²"
    if a < -tolerance:
        return [f"the inertia is not positive definite: {text}"]
    excess = c - (a + b)
    if excess > tolerance:
        return [
            f"{text} break the triangle inequality: the largest exceeds the sum of the others "
            f"by {excess:.3g} kg m² ({100 * excess / c:.3g} %)"
        ]
    return []


INERTIA_ENTRIES = ([0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2])
"""Rows and columns of xx, xy, yy, xz, yz, zz: the order of the ten parameters."""


def spatial_inertia_matrix(mass: Value, center_of_mass: Value, inertia: Value) -> Any:
    """``[[m 1, −m ĉ], [m ĉ, I − m ĉ ĉ]]`` of numbers or expressions, I about the centre of mass."""
    c = _column(center_of_mass)
    about_origin = _column(inertia) + mass * (ca.dot(c, c) * ca.DM.eye(3) - c @ c.T)
    return inertia_matrix_from_moments(mass, mass * c, about_origin)


def spatial_inertia_matrix_from_parameters(parameters: Value) -> Any:
    """Matrix (6, 6) from m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame's origin."""
    phi = _column(parameters)
    return inertia_matrix_from_moments(phi[0], phi[1:4], symmetric_matrix(phi[4:]))


def symmetric_matrix(entries: Value) -> Any:
    """Symmetric 3 × 3 matrix of the entries xx, xy, yy, xz, yz, zz (numbers or expressions)."""
    xx, xy, yy, xz, yz, zz = (entries[i] for i in range(6))
    return _plain(ca.blockcat([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


def inertia_matrix_from_moments(mass: Value, moment: Value, about_origin: Value) -> Any:
    """Matrix of mass, first moment m c and inertia about the origin."""
    cross = ca.skew(_column(moment))
    return _plain(ca.blockcat([[mass * ca.DM.eye(3), -cross], [cross, _column(about_origin)]]))


def _column(value: Value) -> Any:
    return value if isinstance(value, ca.SX | ca.MX | ca.DM) else ca.DM(np.asarray(value, float))


def _plain(matrix: Any) -> Any:
    return matrix.full() if isinstance(matrix, ca.DM) else matrix

"""Conversions between the representations, for NumPy batches and CasADi."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...codegen import Value
from .._reference import Reference
from ._conversions import conversion


def convert_twist(twist: Value, pose: Value, source: Reference, target: Reference) -> Any:
    """Twist of a body, given in one representation, in another.

    Parameters
    ----------
    twist : array_like, shape (..., 6)
        [v; ω] in the representation `source` [m/s, rad/s].
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}
        See `lgcontrol.mechanics.representations`.

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, section 3; "Screw and Lie group theory in multibody kinematics" (2018), table 3.

    Examples
    --------
    A body at x = 2 m that turns about its own vertical axis:

    >>> from lgcontrol.groups import SE3
    >>> pose = SE3.from_position([2.0, 0.0, 0.0])
    >>> convert_twist([0, 0, 0, 0, 0, 3.0], pose, "body", "spatial").tolist()
    [0.0, -6.0, 0.0, 0.0, 0.0, 3.0]
    """
    return conversion("twist", source, target)(twist, pose)


def convert_twist_rate(
    twist_rate: Value, twist: Value, pose: Value, source: Reference, target: Reference
) -> Any:
    """Time derivative of a twist's components, given in one representation, in another.

    Rates are derivatives of the numbers: "hybrid" holds the acceleration of the frame's origin in
    world axes and the angular acceleration; "body" the body-frame rates, ``Rᵀ p̈ − ω × v``;
    "spatial" Featherstone's spatial acceleration in world coordinates.

    Parameters
    ----------
    twist_rate : array_like, shape (..., 6)
        d/dt [v; ω] in the representation `source` [m/s², rad/s²].
    twist : array_like, shape (..., 6)
        [v; ω] in the representation `source` [m/s, rad/s].
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, sections 2 and 3 (in eq. 34, the first and the third relation miss a term).

    Examples
    --------
    A point on a turntable, at 0.5 m from its axis, is accelerated towards it:

    >>> from lgcontrol.groups import SE3
    >>> pose = SE3.from_position([0.5, 0.0, 0.0])
    >>> twist = [0, 1.0, 0, 0, 0, 2.0]
    >>> convert_twist_rate([0.0] * 6, twist, pose, "body", "hybrid").tolist()
    [-2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    return conversion("twist_rate", source, target)(twist_rate, twist, pose)


def convert_wrench(wrench: Value, pose: Value, source: Reference, target: Reference) -> Any:
    """Wrench on a body, given in one representation, in another.

    Representations of wrenches are dual to those of twists: the power ``wrenchᵀ twist`` is the same
    in all.

    Parameters
    ----------
    wrench : array_like, shape (..., 6)
        [f; m] in the representation `source` [N, N m].
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, section 3.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> pose = SE3.from_position([2.0, 0.0, 0.0])
    >>> convert_wrench([0, 0, -5.0, 0, 0, 0], pose, "hybrid", "spatial").tolist()
    [0.0, 0.0, -5.0, 0.0, 10.0, 0.0]
    """
    return conversion("wrench", source, target)(wrench, pose)


def convert_momentum(momentum: Value, pose: Value, source: Reference, target: Reference) -> Any:
    """Momentum of a body, given in one representation, in another: as a wrench.

    Parameters
    ----------
    momentum : array_like, shape (..., 6)
        [p; L] in the representation `source` [kg m/s, kg m²/s].
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, eq. 36.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> pose = SE3.from_position([2.0, 0.0, 0.0])
    >>> convert_momentum([0, 3.0, 0, 0, 0, 0], pose, "body", "spatial").tolist()
    [0.0, 3.0, 0.0, 0.0, 0.0, 6.0]
    """
    return conversion("momentum", source, target)(momentum, pose)


def convert_inertia(inertia: Value, pose: Value, source: Reference, target: Reference) -> Any:
    """Inertia matrix of a body, given in one representation, in another.

    It maps twists to momenta in its representation: ``M' = Xᵀ M X`` with the X that brings twists
    from `target` to `source`.

    Parameters
    ----------
    inertia : array_like, shape (..., 6, 6)
        Inertia in the representation `source`, linear part first; `SpatialInertia.matrix` is the
        one of "body".
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi matrix, shape (..., 6, 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, eq. 35, 48, 52.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> point, pose = np.diag([2.0, 2, 2, 0, 0, 0]), SE3.from_position([3.0, 0.0, 0.0])
    >>> convert_inertia(point, pose, "body", "spatial").diagonal().tolist()
    [2.0, 2.0, 2.0, 0.0, 18.0, 18.0]
    """
    return conversion("inertia", source, target)(inertia, pose)


def convert_jacobian(jacobian: Value, pose: Value, source: Reference, target: Reference) -> Any:
    """Jacobian of a frame, given in one representation, in another: each column as a twist.

    Parameters
    ----------
    jacobian : array_like, shape (..., 6, n)
        J with ``twist = J v`` in the representation `source`.
    pose : array_like, shape (..., 7)
        SE3 coordinates of the frame in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi matrix, shape (..., 6, n)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, section 2.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> hinge = np.array([[0, 0, 0, 0, 0, 1.0]]).T
    >>> pose = SE3.from_position([2.0, 0.0, 0.0])
    >>> convert_jacobian(hinge, pose, "body", "spatial").ravel().tolist()
    [0.0, -2.0, 0.0, 0.0, 0.0, 1.0]
    """
    n = _columns("jacobian", jacobian)
    return conversion("jacobian", source, target, n)(jacobian, pose)


def convert_jacobian_rate(
    jacobian_rate: Value,
    jacobian: Value,
    twist: Value,
    pose: Value,
    source: Reference,
    target: Reference,
) -> Any:
    """Time derivative of a Jacobian, given in one representation, in another.

    Parameters
    ----------
    jacobian_rate : array_like, shape (..., 6, n)
        dJ/dt in the representation `source`.
    jacobian : array_like, shape (..., 6, n)
        J with ``twist = J v`` in the representation `source`.
    twist : array_like, shape (..., 6)
        Twist of the frame in the representation `source`.
    pose : array_like, shape (..., 7)
        SE3 coordinates of the frame in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi matrix, shape (..., 6, n)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, section 2.

    Examples
    --------
    The hinge of a turntable, as seen from a point on it at 0.5 m, which moves on:

    >>> from lgcontrol.groups import SE3
    >>> J = np.array([[0, 0.5, 0, 0, 0, 1.0]]).T
    >>> pose, twist = SE3.from_position([0.5, 0.0, 0.0]), 2.0 * J[:, 0]
    >>> convert_jacobian_rate(0 * J, J, twist, pose, "body", "hybrid").ravel().tolist()
    [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    n = _columns("jacobian_rate", jacobian_rate)
    convert = conversion("jacobian_rate", source, target, n)
    return convert(jacobian_rate, jacobian, twist, pose)


def conversion_matrix(pose: Value, source: Reference, target: Reference) -> Any:
    """Matrix X with ``twist in target = X · twist in source``.

    Wrenches and momenta go the other way with its transpose: ``wrench in source = Xᵀ · wrench in
    target``.

    Parameters
    ----------
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    source, target : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi matrix, shape (..., 6, 6)
        From "body" to "spatial" it is the adjoint matrix of the pose.

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller, "Screw and Lie group theory in multibody kinematics" (2018), table 3.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> pose = SE3.random(np.random.default_rng(0))
    >>> np.allclose(conversion_matrix(pose, "body", "spatial"), SE3.Ad(pose))
    True
    """
    return conversion("matrix", source, target)(pose)


def _columns(name: str, matrix: Value) -> int:
    shape = np.shape(matrix)
    if len(shape) < 2:
        raise ValueError(f"{name} has shape {shape}, expected (..., 6, n)")
    return shape[-1]

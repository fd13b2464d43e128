"""6 × 6 matrices of inertia, from numbers and from CasADi expressions."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value

INERTIA_ENTRIES = ([0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2])
"""Rows and columns of xx, xy, yy, xz, yz, zz: the order of the ten parameters."""


def spatial_inertia_matrix(mass: Value, center_of_mass: Value, inertia: Value) -> Any:
    """``[[m 1, −m ĉ], [m ĉ, I − m ĉ ĉ]]`` of numbers or of CasADi expressions.

    Parameters
    ----------
    mass : float or CasADi scalar
        Mass [kg].
    center_of_mass : array_like or CasADi column, shape (3,)
        Centre of mass [m].
    inertia : array_like or CasADi matrix, shape (3, 3)
        Rotational inertia about the centre of mass [kg m²].

    Returns
    -------
    ndarray or CasADi matrix, shape (6, 6)
        Spatial inertia about the frame origin, linear part first.

    Examples
    --------
    >>> mass = ca.SX.sym("mass")
    >>> spatial_inertia_matrix(mass, np.zeros(3), np.eye(3)).shape
    (6, 6)
    """
    c = _column(center_of_mass)
    about_origin = _column(inertia) + mass * (ca.dot(c, c) * ca.DM.eye(3) - c @ c.T)
    return inertia_matrix_from_moments(mass, mass * c, about_origin)


def spatial_inertia_matrix_from_parameters(parameters: Value) -> Any:
    """Spatial inertia of the ten parameters in which it is linear.

    Parameters
    ----------
    parameters : array_like or CasADi column, shape (10,)
        m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the frame origin.

    Returns
    -------
    ndarray or CasADi matrix, shape (6, 6)
        Spatial inertia about the frame origin, linear part first.

    Examples
    --------
    >>> spatial_inertia_matrix_from_parameters([2, 0, 0, 2, 5, 0, 5, 0, 0, 1])[3:, 3:].diagonal()
    array([5., 5., 1.])
    """
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

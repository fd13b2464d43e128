"""Principal moments and axes of inertia."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...groups import SE3
from .._fields import read_only


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


def principal_inertia(center_of_mass: np.ndarray, inertia: np.ndarray) -> PrincipalInertia:
    """Principal frame of an inertia (3, 3) about a centre of mass (3,)."""
    moments, axes = np.linalg.eigh(inertia)
    # An eigenvector's sign is free: largest entries positive, then right-handed.
    axes *= np.where(axes[np.abs(axes).argmax(axis=0), np.arange(3)] < 0, -1.0, 1.0)
    axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    frame = SE3.from_rotation_matrix(axes, center_of_mass)
    return PrincipalInertia(read_only(moments), read_only(axes), read_only(frame))

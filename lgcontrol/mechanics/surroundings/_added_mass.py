"""The fluid a body moves in: added mass, and a current."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import check_shape
from ...groups import SE3, LieGroup
from ...systems import Input
from .._fields import freeze, read_only
from ._forces import BodyMotion

# Asymmetry and negative eigenvalues, relative to the largest entry: matrices printed with nine
# digits.
ADDED_MASS_TOLERANCE = 1e-9

# Smallest eigenvalue of M scaled to order one: below it, little of the acceleration is left in
# double precision.
SINGULAR_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class Current:
    """Uniform flow of the surrounding fluid: water current or wind.

    Parameters
    ----------
    velocity : array_like, shape (3,)
        Velocity in world axes [m/s].
    is_input : bool
        Whether three disturbance inputs add to the velocity. The equations take the flow as steady:
        they hold while it changes slowly against the motion.

    Examples
    --------
    >>> [entry.name for entry in Current(is_input=True).inputs]
    ['current.x', 'current.y', 'current.z']
    """

    velocity: Any = (0.0, 0.0, 0.0)
    is_input: bool = False

    def __post_init__(self) -> None:
        freeze(self, velocity=(3,))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Velocity that adds to the constant one, if it is an input."""
        if not self.is_input:
            return ()
        return tuple(Input(f"current.{axis}", "m/s", role="disturbance") for axis in "xyz")


def current_wrench(added_mass: Value, motion: BodyMotion) -> Value:
    """Wrench of the added mass in a current, beyond the one in fluid at rest.

    The fluid's momentum belongs to the motion relative to it. The wrench on the body is ``−A V̇_r
    + ad_(V_r)ᵀ A V_r``; fluid at rest gives ``−A V̇ + ad_Vᵀ A V``. The relative acceleration is
    ``V̇ + [ω × Rᵀ v_c; 0]`` for a steady current.
    """
    V, V_r = motion.twist, motion.relative_twist
    turning = ca.vertcat(ca.cross(V[3:], V[:3] - V_r[:3]), ca.DM(3, 1))
    relative = SE3.ad(V_r).T @ (added_mass @ V_r)
    return relative - SE3.ad(V).T @ (added_mass @ V) - added_mass @ turning


def check_added_mass(body: str, value: Any, group: LieGroup) -> np.ndarray:
    """Added mass as a read-only array, if it has a possible shape and is positive semidefinite."""
    n = group.dim
    given = np.asarray(value, dtype=np.float64)
    if given.shape not in ((6, 6), (n, n)):
        own = "" if n == 6 else f" or ({n}, {n}), the dimension of {group}"
        raise ValueError(
            f"{body}: added_mass has shape {given.shape}, expected (6, 6){own}; use numpy.diag for "
            "a diagonal one"
        )
    A = check_shape(f"{body}: added_mass", given, given.shape)
    scale = float(np.abs(A).max())
    asymmetry = np.abs(A - A.T)
    if asymmetry.max() > ADDED_MASS_TOLERANCE * scale:
        i, j = (int(k) for k in np.unravel_index(asymmetry.argmax(), A.shape))
        raise ValueError(
            f"{body}: added_mass is not symmetric: entries ({i}, {j}) and ({j}, {i}) are "
            f"{A[i, j]:.6g} and {A[j, i]:.6g}; give (A + Aᵀ)/2 if that is meant"
        )
    A = (A + A.T) / 2
    smallest = float(np.linalg.eigvalsh(A)[0])
    if smallest < -ADDED_MASS_TOLERANCE * scale:
        raise ValueError(
            f"{body}: added_mass is negative: its smallest eigenvalue is {smallest:.3g}; published "
            "derivatives such as X_du have the opposite sign"
        )
    return read_only(A)


def check_generalized_inertia(
    body: str, group: LieGroup, M: np.ndarray, magnitude: np.ndarray
) -> None:
    """Refuse a body that some motion of its group takes no effort to move.

    `magnitude` is M with all its terms taken by their absolute values, shape (dim, dim): what
    zeros are measured by.
    """
    # Scaled to order one: kg and kg m² do not compare.
    root = np.sqrt(np.diag(magnitude))
    root[root == 0.0] = 1.0
    eigenvalues, vectors = np.linalg.eigh(M / np.outer(root, root))
    if eigenvalues[0] > SINGULAR_TOLERANCE:
        return
    motion = vectors[:, 0] / root
    motion = motion / motion[np.abs(motion).argmax()]
    named = ", ".join(
        f"{name} {entry:.3g}"
        for name, entry in zip(group.tangent_names, motion, strict=True)
        if abs(entry) > 1e-6
    )
    raise ValueError(
        f"{body}: the generalized inertia on {group} is not positive definite: the velocity "
        f"({named}) has the kinetic energy {motion @ M @ motion / 2:.3g} J; give the inertia of "
        "the body's shape, or a group without this motion"
    )

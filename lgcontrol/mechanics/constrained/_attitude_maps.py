"""Rotations and rates of Euler parameters and Euler angles, on arrays and CasADi values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy


def euler_angles(turn: scipy.spatial.transform.Rotation) -> np.ndarray:
    """Euler angles z-x-z [rad]; the third is zero where the second is, and nothing is said."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return turn.as_euler("ZXZ")


def half_rates(e: Any, stack: Any = np.array) -> Any:
    """G with ``ω = 2 G ė`` of Euler parameters, shape (3, 4): eq. 39c.

    `stack` makes a matrix of lists of rows, of arrays or of CasADi values.
    """
    e0, e1, e2, e3 = (e[i] for i in range(4))
    return stack([[-e1, e0, e3, -e2], [-e2, -e3, e0, e1], [-e3, e2, -e1, e0]])


def parameter_rotation(e: Any, stack: Any = np.array) -> Any:
    """A of Euler parameters [e0, e1, e2, e3], as in the paper: quadratic also off the sphere."""
    e0, e1, e2, e3 = (e[i] for i in range(4))
    return 2 * stack(
        [
            [e0 * e0 + e1 * e1 - 0.5, e1 * e2 - e0 * e3, e1 * e3 + e0 * e2],
            [e1 * e2 + e0 * e3, e0 * e0 + e2 * e2 - 0.5, e2 * e3 - e0 * e1],
            [e1 * e3 - e0 * e2, e2 * e3 + e0 * e1, e0 * e0 + e3 * e3 - 0.5],
        ]
    )


def angle_rates(angles: Any, module: Any = np, stack: Any = np.array) -> Any:
    """B with ``ω = B ε̇`` of Euler angles in body axes, shape (3, 3): eq. 43b.

    `module` has sine and cosine, NumPy or CasADi; `stack` as for `half_rates`.
    """
    theta, psi = angles[1], angles[2]
    ct, st, cp, sp = module.cos(theta), module.sin(theta), module.cos(psi), module.sin(psi)
    return stack([[sp * st, cp, 0.0], [cp * st, -sp, 0.0], [ct, 0.0, 1.0]])

"""Natural frequencies and mode shapes of a tree at rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from ....codegen._internal import check_shape
from ..dynamics._mass_matrix import refuse_singular
from ..tree._tree import Tree
from ._first import linearized_equations

SYMMETRY = 1e-9  # of K, relative: what rounding of the linearization leaves

STIFFNESS_ROUNDING = 32 * np.finfo(float).eps  # of entries of K per mass, against the largest one


@dataclass(frozen=True, eq=False)
class NormalModes:
    """Small motions about a rest position, in tangent coordinates ε of the joints.

    Attributes
    ----------
    squared_frequencies : ndarray, shape (nv,)
        ω² of the undamped motion ``M ε̈ + K ε = 0``, ascending [rad²/s²]. They are zero for free
        motions (zeros of K off by rounding count as zero), negative for unstable ones.
    shapes : ndarray, shape (nv, nv)
        Modes as columns, with ``shapesᵀ M shapes = 1`` and ``shapesᵀ K shapes = diag(ω²)``.
    poles : ndarray of complex, shape (2 nv,)
        Eigenvalues with damping, of ``M ε̈ + D ε̇ + K ε = 0`` [1/s], by imaginary, then real part.
    M, D, K : ndarray, shape (nv, nv)
        Mass, damping and stiffness.
    """

    squared_frequencies: np.ndarray
    shapes: np.ndarray
    poles: np.ndarray
    M: np.ndarray
    D: np.ndarray
    K: np.ndarray

    @property
    def frequencies(self) -> np.ndarray:
        """Natural frequencies [rad/s], ascending; NaN for unstable modes, shape (nv,)."""
        ok = np.where(self.squared_frequencies >= 0.0, self.squared_frequencies, np.nan)
        return np.sqrt(ok)

    def __repr__(self) -> str:
        """Frequencies."""
        text = ", ".join(f"{w:.6g}" for w in self.frequencies)
        return f"NormalModes({text} rad/s)"


def normal_modes(tree: Tree, q: Any, *, wrenches: Any = None, p: Any = None) -> NormalModes:
    """Natural frequencies and modes about a rest position.

    The joints' forces are those that hold the tree at q, and stay as they are (zero at an
    equilibrium of its own).

    Parameters
    ----------
    q : array_like, shape (nq,)
    wrenches : array_like, shape (n_bodies, 6), optional
        External wrenches, constant in their bodies.
    p : array_like, shape (n_parameters,), optional

    Raises
    ------
    ValueError
        If the stiffness is not symmetric, that is, if the forces have no potential; or if the mass
        matrix is singular.

    Examples
    --------
    Two equal bobs on threads of equal length: ``ω² = (2 ± √2) g / l``.

    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> bob = SpatialInertia.point_mass(0.3, [0, 0, -1])
    >>> tree = Multibody().add_body("upper", bob, "revolute", axis="y")
    >>> tree = tree.add_body("lower", bob, "revolute", "upper", [0, 0, -1], axis="y")
    >>> (tree.normal_modes([0, 0]).squared_frequencies / 9.81).round(6).tolist()
    [0.585786, 3.414214]
    """
    q = check_shape("q", q, (tree.nq,))
    refuse_singular(tree)
    still = np.zeros(tree.nv)
    named = {} if wrenches is None else {"wrenches": wrenches}
    if p is not None:
        named["p"] = p
    M, D, K, _ = linearized_equations.of(tree)(q, still, still, **named)
    # In units of each coordinate's own mass stiffnesses are squared frequencies: comparable between
    # metres and radians, grams and tons.
    unit = 1 / np.sqrt(np.diag(M))
    M_own, D_own, K_own = (unit[:, None] * matrix * unit for matrix in (M, D, K))
    largest = np.abs(K_own).max(initial=0.0)
    skew = np.abs(K_own - K_own.T)
    if skew.max(initial=0.0) > SYMMETRY * largest:
        i, j = np.unravel_index(skew.argmax(), skew.shape)
        raise ValueError(
            f"normal_modes: the stiffness is not symmetric (K[{i}, {j}] is {K[i, j]:.6g}, "
            f"K[{j}, {i}] is {K[j, i]:.6g}): forces that turn with a body, or a joint of several "
            "degrees of freedom held by a torque, have no potential. "
            "Use an equilibrium, or the eigenvalues of tree.system().linearize(...)"
        )
    M, K = (M + M.T) / 2, (K + K.T) / 2
    M_own, K_own = (M_own + M_own.T) / 2, (K_own + K_own.T) / 2
    squares, shapes = scipy.linalg.eigh(K_own, M_own)
    rounding = STIFFNESS_ROUNDING * largest * (shapes**2).sum(axis=0)
    squares = np.where(np.abs(squares) <= rounding, 0.0, squares)
    shapes = unit[:, None] * shapes
    damped = np.block(
        [
            [np.zeros_like(M), np.eye(tree.nv)],
            [-scipy.linalg.solve(M_own, X, assume_a="pos") for X in (K_own, D_own)],
        ]
    )
    poles = np.linalg.eigvals(damped)
    order = np.lexsort((poles.real, poles.imag))
    return NormalModes(squares, shapes, poles[order].astype(complex), M, D, K)

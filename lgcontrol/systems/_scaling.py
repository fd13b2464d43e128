"""Units in which a linearization can be judged, and which eigenvalues are on which side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

# Entries this small next to the largest ones of their row and column are what rounding left of a
# zero: they must not decide units.
SCALING_NOISE = 1e-14

# The same next to the largest entry, once units are those of the states' own loops.
DUST = 1e-12

# Uncertainty of the entries of A, next to its norm in good units: some rounding errors each.
SCALING_ROUNDING = 1e3 * float(np.finfo(float).eps)

# Damping below this, next to the size of an eigenvalue, is less than a trim point is exact.
SCALING_DAMPING = 1e-9


def balancing_units(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Units of the states in which rows and columns of ``[A B]`` are about equal in length.

    Pressures in Pa next to positions in m make entries of 1e10 and 1e-5 that say nothing about
    strengths. In these units, ``z = ε / units``, sizes can be compared.

    States that feed back on each other get their units from these loops alone, however far apart
    they are. A chain has no such units, and its sources are followed only over three decades.
    Balancing would push the states of a chain of integrators arbitrarily far apart.

    Parameters
    ----------
    A : ndarray, shape (n, n)
    B : ndarray, shape (n, m)

    Returns
    -------
    ndarray, shape (n,)
    """
    size = np.abs(A)
    largest = np.maximum(size.max(axis=1, initial=0.0)[:, None], size.max(axis=0, initial=0.0))
    loops = _balance(np.where(size > SCALING_NOISE * largest, A, 0.0))
    A, B = balanced(A, loops), B / loops[:, None]
    n, size = len(A), np.abs(A).max(initial=0.0)
    length = np.abs(B).max(axis=0, initial=0.0)
    matrix = np.zeros((n + B.shape[1],) * 2)
    matrix[:n, :n] = np.where(np.abs(A) > DUST * size, A, 0.0)
    matrix[:n, n:] = np.where(np.abs(B) > DUST * length, B, 0.0) / np.where(length, length, 1.0)
    matrix[:n, n:] *= size or 1.0
    return loops * np.clip(_balance(matrix)[:n], 1e-3, 1e3)


def balanced(A: np.ndarray, units: np.ndarray) -> np.ndarray:
    """A in other units of the states.

    Parameters
    ----------
    A : ndarray, shape (n, n)
    units : ndarray, shape (n,)
        Of `balancing_units`.
    """
    return A * units / units[:, None]


def _balance(matrix: np.ndarray) -> np.ndarray:
    if not matrix.size:
        return np.ones(len(matrix))
    _, (units, _) = scipy.linalg.matrix_balance(matrix, permute=False, separate=True)
    return units


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and how far rounding may have moved each.

    Attributes
    ----------
    values : ndarray of complex, shape (n,)
    vectors : ndarray of complex, shape (n, n)
        Right eigenvectors in columns.
    error : ndarray, shape (n,)
    """

    values: np.ndarray
    vectors: np.ndarray
    error: np.ndarray

    def growth(self, *, is_discrete: bool) -> np.ndarray:
        """Sign of the growth of each mode: -1 dies out, 1 grows, 0 if that cannot be told."""
        rate = np.abs(self.values) - 1 if is_discrete else np.real(self.values)
        unclear = np.abs(rate) <= np.maximum(self.error, SCALING_DAMPING * np.abs(self.values))
        return np.where(unclear, 0, np.sign(rate)).astype(int)


def spectrum(A: np.ndarray, size: float | None = None) -> Spectrum:
    """Eigenvalues of a balanced matrix with bounds on their errors.

    An eigenvalue moves by the perturbation times its condition number. If m eigenvalues coincide,
    one moves by no more than about the m-th root of the relative perturbation.

    Parameters
    ----------
    A : ndarray, shape (n, n)
    size : float, optional
        Norm that rounding errors of A are proportional to; that of A if left out.

    References
    ----------
    Golub, Van Loan: Matrix Computations, sections 7.2.2 and 7.2.3.
    """
    if not A.size:
        return Spectrum(np.zeros(0, complex), np.zeros((0, 0), complex), np.zeros(0))
    size = float(np.linalg.norm(A, 2)) if size is None else size
    values, left, right = scipy.linalg.eig(A, left=True, right=True)  # type: ignore  # SciPy states too few results
    overlap = np.abs((left.conj() * right).sum(axis=0))  # of vectors of length one
    with np.errstate(divide="ignore"):
        simple = SCALING_ROUNDING * size / overlap
    multiple = np.full(len(A), np.inf)
    apart = np.abs(values[:, None] - values)
    for m in range(2, len(A) + 1):
        radius = size * SCALING_ROUNDING ** (1 / m)
        multiple[(apart <= radius).sum(axis=1) >= m] = radius
    return Spectrum(values, right, np.minimum(simple, multiple))

"""Elimination without exchanges against NumPy's: numbers, symbols, and what is too large for it."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.integrators import _momentum_methods
from lgcontrol.integrators._momentum_methods import eliminated


def saddle(n=7, m=3, seed=0):
    """``[[M, Gᵀ], [H, 0]]`` with masses first: zeros on the diagonal get pivots on the way."""
    rng = np.random.default_rng(seed)
    G, H = (rng.normal(size=(m, n)) for _ in range(2))
    A = np.block([[np.diag(rng.uniform(1, 3, n)), G.T], [G + 0.1 * H, np.zeros((m, m))]])
    A[0, 3] = 0.3
    return A, rng.normal(size=n + m)


def pattern_of(A):
    """With the zeros of the last block as entries, which get a regular part."""
    filled = A != 0
    np.fill_diagonal(filled, val=True)
    return ca.sparsify(ca.DM(filled.astype(float))).sparsity()


@pytest.mark.parametrize("kind", [ca.SX, ca.MX])
def test_it_solves(kind):
    A, b = saddle()
    pattern = pattern_of(A)
    K, c = kind.sym("K", pattern), kind.sym("c", len(b))
    solve = eliminated(K)
    both = ca.Function("both", [K, c], [solve(c), solve(2 * c)])
    for x, factor in zip(both(ca.project(ca.DM(A), pattern), b), (1, 2), strict=True):
        np.testing.assert_allclose(
            np.asarray(x).ravel(), factor * np.linalg.solve(A, b), rtol=0, atol=1e-11
        )
    numbers = eliminated(ca.project(ca.DM(A), pattern))(ca.DM(b))
    np.testing.assert_allclose(
        np.asarray(numbers).ravel(), np.linalg.solve(A, b), rtol=0, atol=1e-11
    )


def test_what_has_no_pivot_or_is_too_large_is_left_to_others(monkeypatch):
    A = ca.sparsify(ca.DM([[0.0, 2.0], [4.0, 1.0]]))
    np.testing.assert_allclose(
        np.asarray(eliminated(A)(ca.DM([2.0, 5.0]))).ravel(), [1.0, 1.0], atol=1e-15
    )
    A, b = saddle(seed=1)
    _momentum_methods._functions.cache_clear()
    monkeypatch.setattr(_momentum_methods, "_LARGEST", 10)
    dense = ca.densify(ca.DM(A))
    np.testing.assert_allclose(
        np.asarray(eliminated(dense)(ca.DM(b))).ravel(), np.linalg.solve(A, b), atol=1e-11
    )
    _momentum_methods._functions.cache_clear()

"""Pseudo-inverses inside functions, without a branch: whatever the rank is in a call."""

from __future__ import annotations

import casadi as ca

from ._types import Value

# Sweeps over all pairs of columns: none turned any more after five of 4 columns, six of 8 and
# seven of 12, of 200 random matrices of all ranks each.
SWEEPS = 8


def pseudo_inverse(A: Value, rcond: float) -> Value:
    """``A⁺`` of Moore and Penrose, of a CasADi matrix of up to a dozen rows or columns.

    By one-sided Jacobi: columns are turned two at a time until they are orthogonal, ``A V = W``;
    their lengths are the singular values, to full precision.

    Parameters
    ----------
    A : SX, MX or DM, shape (n, m)
    rcond : float
        Singular values up to this share of the largest count as zero, as in `numpy.linalg.pinv`.

    Returns
    -------
    SX, MX or DM, shape (m, n)

    References
    ----------
    M. Hestenes: Inversion of matrices by biorthogonalization and related results. J. SIAM 6 (1958).

    Examples
    --------
    >>> pseudo_inverse(ca.DM([[2.0, 0.0], [0.0, 0.0], [0.0, 0.0]]), 1e-9)
    DM(
    [[0.5, 0, 0],
     [0, 0, 0]])
    """
    symbols = ca.SX.sym("A", A.sparsity())
    rows, columns = (sorted({*places}) for places in A.sparsity().get_triplet())
    inverse = ca.SX(*A.shape[::-1])
    if rows:
        part = symbols[rows, columns]
        is_wide = len(rows) < len(columns)
        inverse[columns, rows] = (
            _by_columns(part.T, rcond).T if is_wide else _by_columns(part, rcond)
        )
    return ca.Function("pseudo_inverse", [symbols], [ca.densify(inverse)])(A)


def _by_columns(A: ca.SX, rcond: float) -> ca.SX:
    """``Σ v wᵀ / |w|²`` over the columns of W and V."""
    count = A.shape[1]
    W, V = ca.horzsplit(A), ca.horzsplit(ca.SX.eye(count))
    for _ in range(SWEEPS):
        for i in range(count):
            for j in range(i + 1, count):
                turn = _turn(W[i], W[j])
                for columns in (W, V):
                    columns[i], columns[j] = _turned(columns[i], columns[j], *turn)
    squares = [ca.sumsqr(w) for w in W]
    least = rcond**2 * ca.mmax(ca.vertcat(*squares))
    shares = [ca.if_else(s > least, 1 / ca.if_else(s > least, s, 1), 0) for s in squares]
    scaled = [share * v for share, v in zip(shares, V, strict=True)]
    return ca.horzcat(*scaled) @ ca.horzcat(*W).T


def _turn(a: ca.SX, b: ca.SX) -> tuple[ca.SX, ca.SX]:
    """Cosine and sine of the turn that makes two columns orthogonal."""
    apart, twice = ca.sumsqr(b) - ca.sumsqr(a), 2 * ca.dot(a, b)
    below = ca.fabs(apart) + ca.sqrt(apart**2 + twice**2)
    tangent = ca.if_else(apart < 0, -twice, twice) / ca.if_else(below > 0, below, 1)
    cosine = 1 / ca.sqrt(1 + tangent**2)
    return cosine, cosine * tangent


def _turned(a: ca.SX, b: ca.SX, cosine: ca.SX, sine: ca.SX) -> tuple[ca.SX, ca.SX]:
    return cosine * a - sine * b, sine * a + cosine * b

"""Linear equations in expressions: solved, factored, with saddle points; the pseudo-inverse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from ._program import MAPS
from ._types import Value

_INFINITE = 1e300  # as a pivot; products with rounding stay finite
# Share of the compliance that regularises, and of its mean that rows without any get.
EPSILON = 1e-10
GUARD = 1e-3
# Unknowns above which the whole matrix is factored sparsely, not the compliance.
LARGEST_DENSE = 150
# Sweeps over all pairs of columns: none turned any more after five of 4 columns, six of 8 and
# seven of 12, of 200 random matrices of all ranks each.
SWEEPS = 8


def solve_linear(A: Any, b: Any, *, symmetric: bool = False) -> Any:
    """``A⁻¹ b`` of CasADi values: compiles, pickles, is differentiated, and never raises in a call.

    In SX the factorization is written out, which pays up to about ten unknowns. In MX it is one
    sparse node of the graph for any size, with derivatives by the implicit function theorem. If A
    is singular, the result is not finite, interpreted and compiled; the caller checks it.

    Parameters
    ----------
    A : SX, MX or DM, shape (n, n)
    b : SX, MX or DM, shape (n, k)
    symmetric : bool
        Whether A is symmetric and definite, or ``[[P, Gᵀ], [G, −Q]]`` with P and Q positive
        definite: then LDLᵀ without pivoting, in half of the time. Else Householder's QR. A small Q
        costs the digits that it is smaller than ``G P⁻¹ Gᵀ``: there say nothing, and take QR.

    Returns
    -------
    SX, MX or DM, shape (n, k)

    Raises
    ------
    ValueError
        If the shapes do not fit, or A is singular whatever its entries are.

    Notes
    -----
    ``casadi.solve`` has traps that this avoids. In SX it orthogonalises by Gram and Schmidt: at a
    condition of 1e12 nothing is left of the residual. In MX the interpreted plug-in treats pivots
    below 1e-12 as zero and fails; compiled code continues. Matrices with a triangular or diagonal
    pattern give functions that cannot be unpickled (CasADi 3.8). Only ``"qr"``, ``"ldl"`` and
    ``"lsqr"`` have C code; SX functions cannot be made of them (`casadi.Function.expand`).

    Examples
    --------
    >>> from lgcontrol.codegen import ModelFunction
    >>> A, b = ca.MX.sym("A", 2, 2), ca.MX.sym("b", 2)
    >>> solution = ModelFunction(ca.Function("solution", [A, b], [solve_linear(A, b)]))
    >>> solution([[2.0, 1.0], [0.0, 4.0]], [4.0, 8.0])
    array([1., 2.])
    """
    kind = ca.MX if isinstance(A, ca.MX) or isinstance(b, ca.MX) else ca.SX
    A, b = (v if isinstance(v, ca.SX | ca.MX | ca.DM) else ca.DM(v) for v in (A, b))
    n = A.shape[0]
    if A.shape != (n, n) or b.shape[0] != n:
        raise ValueError(f"A must be square and b as tall, got {A.shape} and {b.shape}")
    rank = ca.sprank(A)
    if rank < n:
        raise ValueError(
            f"A is singular for any entries: its pattern of zeros has rank {rank} < {n}"
        )
    if isinstance(A, ca.SX) or isinstance(b, ca.SX):
        if kind is ca.MX:
            raise TypeError("A and b must be of one kind, got SX and MX")
        return _solve_definite(ca.SX(A), ca.SX(b)) if symmetric else _solve_by_reflections(A, b)
    pattern = A.sparsity()
    if pattern.is_tril() or pattern.is_triu() or (symmetric and not pattern.is_symmetric()):
        A = ca.densify(A)
    return ca.solve(A, b, "ldl") if symmetric else ca.solve(A, b, "qr", {"eps": 0.0})


def check_serial(function: ca.Function) -> None:
    """Refuse to pickle a function that could not be unpickled."""
    if not _solves(function):
        return
    try:
        ca.Function.deserialize(function.serialize())
    except RuntimeError:
        raise TypeError(
            f"{function.name()} could not be unpickled: it calls casadi.solve or casadi.inv with a "
            "matrix that is triangular or diagonal by its pattern of zeros, which CasADi writes "
            "but does not read. Use lgcontrol.codegen.solve_linear there."
        ) from None


def _solves(function: ca.Function) -> bool:
    if not function.is_a("MXFunction"):
        return function.class_name() in MAPS and _solves(function.info()["f"])
    for k in range(function.n_instructions()):
        operation = function.instruction_id(k)
        if operation == ca.OP_SOLVE:
            return True
        if operation == ca.OP_CALL and _solves(function.instruction_MX(k).which_function()):
            return True
    return False


def _solve_definite(A: ca.SX, b: ca.SX) -> ca.SX:
    D, L, order = ca.ldl(A)
    return ca.ldl_solve(b, D, L, order)


def _solve_by_reflections(A: ca.SX | ca.DM, b: ca.SX | ca.DM) -> ca.SX:
    """Householder's QR, written out: the reflection away from the column's own sign, no branch."""
    n, width = A.shape[0], b.shape[1]
    R = ca.densify(ca.horzcat(ca.SX(A), ca.SX(b)))
    for k in range(n - 1):
        column = R[k:, k]
        if column[1:].is_zero():
            continue
        length = ca.sqrt(ca.sumsqr(column))
        v = ca.SX(column)
        v[0] += ca.if_else(column[0] < 0, -length, length)
        rest = R[k:, k:]
        R[k:, k:] = rest - v @ ((v.T @ rest) / (ca.sumsqr(v) / 2))
    x = ca.SX(n, width)
    for k in reversed(range(n)):
        x[k, :] = (R[k, n:] - R[k, k + 1 : n] @ x[k + 1 :, :]) / R[k, k]
    return x


def factor_symmetric(M: Value, *, singular: bool = False) -> tuple[Value, Value]:
    """``M = Lᵀ D L`` with L unit lower triangular and sparse, D its diagonal (column).

    Elimination begins with the last row. In the mass matrix of a tree this order runs from the
    leaves to the root and causes no fill-in. An entry of L is nonzero only if one joint carries the
    other (Featherstone 2008, section 6.5). A singular M may be semidefinite: pivots that are
    rounding count as infinite, so that `solve_factored` has a generalized inverse.
    """
    n = M.shape[0]
    rows = [{j: M[i, j] for j in range(i + 1) if M.has_nz(i, j)} for i in range(n)]
    D = [ca.SX(1, 1)] * n
    for k in reversed(range(n)):
        D[k] = rows[k].pop(k, ca.SX(1, 1))
        if singular:
            least = 4 * n * np.finfo(float).eps * M[k, k]
            D[k] = ca.if_else(D[k] > least, D[k], _INFINITE)
        scaled = {i: x / D[k] for i, x in rows[k].items()}
        for i, x in scaled.items():
            for j, y in rows[k].items():
                if j <= i:
                    rows[i][j] = rows[i].get(j, ca.SX(1, 1)) - x * y
        rows[k] = scaled
    entries = {(i, i): ca.SX(1) for i in range(n)}
    entries |= {(j, i): x for i, row in enumerate(rows) for j, x in row.items()}
    keys = sorted(entries)  # by columns, as they are stored
    pattern = ca.Sparsity.triplet(n, n, [i for _, i in keys], [j for j, _ in keys])
    L = ca.SX(pattern, ca.vertcat(*(entries[key] for key in keys))) if n else ca.SX(0, 0)
    return L, ca.vertcat(*D) if D else ca.SX(0, 1)


def solve_factored(L: Value, D: Value, B: Value) -> Value:
    """``M⁻¹ B`` from the factors of M; zeros at the top of the columns of B are made use of."""
    n = B.shape[0]
    rows = [{j: L[i, j] for j in range(i) if L.has_nz(i, j)} for i in range(n)]
    x = ca.vertsplit(ca.SX(B)) if n else []  # sparse rows of all columns
    for k in reversed(range(n)):  # Lᵀ y = B
        for j, entry in rows[k].items():
            x[j] = x[j] - entry * x[k]
    x = [row / D[i] for i, row in enumerate(x)]
    for k in range(n):  # L x = D⁻¹ y
        for j, entry in rows[k].items():
            x[k] = x[k] - entry * x[j]
    X = ca.vertcat(*x) if n else ca.SX(*B.shape)
    rows = ((_unit_row(B[:, c]), c) for c in range(B.shape[1]))
    units = sorted({row: c for row, c in rows if row is not None}.items())
    if units:  # M⁻¹ is symmetric
        order, columns = (list(numbers) for numbers in zip(*units, strict=True))
        X[order, columns] = ca.triu2symm(ca.triu(X[order, columns]))
    return X


def solve_symmetric(M: Value, B: Value) -> Value:
    """``M⁻¹ B``: by the inverse where M is constant, else by its sparse factors.

    Examples
    --------
    >>> solve_symmetric(ca.DM([[2, 0], [0, 4]]), ca.DM([1, 1]))
    DM([0.5, 0.25])
    """
    if isinstance(M, ca.MX):
        return ca.solve(M, B)
    if M.is_constant():
        return ca.sparsify(ca.DM(np.linalg.inv(ca.evalf(ca.SX(M)).full()))) @ B
    return solve_factored(*factor_symmetric(M), ca.SX(B))


def congruence(A: Value, P: Value) -> Value:
    """``A P Aᵀ`` of a symmetric dense P, without products that symmetry or zeros of A spare.

    Examples
    --------
    >>> congruence(ca.SX([[1, 2]]), ca.SX([[1, 3], [3, 1]]))
    SX(17)
    """
    A = ca.sparsify(A)
    made = ca.densify((A @ P) @ A.T)
    m = A.shape[0]
    filled = np.diff(A.T.sparsity().colind())  # of each row
    columns, rows = np.triu_indices(m)  # of the lower triangle, column by column
    # an entry comes from two rows of A; of the first all of A P is there already
    swap = filled[columns] > filled[rows]
    first, second = np.where(swap, columns, rows), np.where(swap, rows, columns)
    lower = ca.SX(ca.Sparsity.lower(m), made[(first + m * second).tolist()])
    return ca.tril2symm(lower)


def _unit_row(column: Value) -> int | None:
    """Where a column of the identity has its one; None for other columns."""
    if column.nnz() != 1 or not column.is_constant():
        return None
    row = column.sparsity().row()[0]
    return row if column[row].is_one() else None


class Saddle:
    """``[[M, Gᵀ], [G, −ε S]]`` as factors, for ``M a + Gᵀ λ = F``, ``G a = γ``.

    The compliance ``G M⁻¹ Gᵀ`` is regularised by ε times its own diagonal S, so that rows of
    different units count alike and nothing decides a rank. One step of refinement reduces the
    error of independent rows to ε². Multipliers of dependent rows are those of the smallest norm;
    their choice does not change the accelerations. Smooth in M and G, also where a row of G
    vanishes.

    Examples
    --------
    The same row twice: each multiplier takes its half.

    >>> a, multipliers = Saddle(ca.SX.eye(2), ca.SX([[1, 0], [1, 0]])).solve([3, 5], [0, 0])
    >>> ca.evalf(multipliers).full().ravel().round(9).tolist()
    [1.5, 1.5]
    """

    def __init__(self, M: Value, G: Value) -> None:
        self.n, self.m = G.shape[1], G.shape[0]
        self.is_written_out = not (isinstance(M, ca.MX) or isinstance(G, ca.MX))
        self.is_sparse = not self.is_written_out and self.n + self.m > LARGEST_DENSE
        if self.is_sparse:
            # Lengths of the rows by the diagonal of M suffice for a scale.
            S = ca.sum2((G / ca.repmat(ca.diag(M).T, self.m, 1)) * G)
            own = EPSILON * ca.diag(_guarded(S))
            self._bare = ca.blockcat([[M, G.T], [G, ca.MX(self.m, self.m)]])
            self._full = self._bare - ca.diagcat(ca.MX(self.n, self.n), own)
            return
        if self.is_written_out:
            kind: Any = ca.SX
            M, G = ca.sparsify(kind(M)), ca.sparsify(kind(G))
            self._by_M = _factored(M)
        else:
            self._by_M = lambda b: solve_linear(M, b, symmetric=True)
        if not self.m:
            return
        self._G, self._across = G, self._by_M(G.T)
        compliance = self._compliance = ca.densify(G @ self._across)
        own = EPSILON * ca.diag(_guarded(ca.diag(compliance)))
        if self.is_written_out:
            self._by_S = _factored(compliance + own)
        else:
            self._by_S = lambda b: solve_linear(compliance + own, b, symmetric=True)

    def solve(self, F: Any, gamma: Any) -> tuple[Any, Any]:
        """Accelerations and multipliers for right-hand sides, one a column."""
        if self.is_sparse:
            right = ca.vertcat(F, gamma)
            found = solve_linear(self._full, right, symmetric=True)
            found += solve_linear(self._full, right - self._bare @ found, symmetric=True)
            return found[: self.n, :], found[self.n :, :]
        kind: Any = ca.SX if self.is_written_out else ca.MX
        F, gamma = (
            kind(value if isinstance(value, kind) else ca.DM(value)) for value in (F, gamma)
        )
        free = self._by_M(F)
        if not self.m:
            return free, kind(0, free.shape[1])
        right = self._G @ free - gamma
        multipliers = self._by_S(right)
        multipliers += self._by_S(right - self._compliance @ multipliers)
        return free - self._across @ multipliers, multipliers


def _factored(M: Any) -> Callable[[Any], Any]:
    factors = factor_symmetric(M)
    return lambda b: solve_factored(*factors, b)


def _guarded(S: Value) -> Value:
    """Diagonal of the compliance, where rows that vanish have a share of the others'."""
    return S + GUARD * ca.sum1(S) / max(S.shape[0], 1) + np.finfo(float).tiny


def pseudo_inverse(A: Value, rcond: float) -> Value:
    """``A⁺`` of Moore and Penrose, of a CasADi matrix of up to a dozen rows or columns.

    By one-sided Jacobi: columns are turned two at a time until they are orthogonal, ``A V = W``;
    their lengths are the singular values, to full precision. Those up to the share `rcond` of the
    largest count as zero, as in `numpy.linalg.pinv`.

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

"""Linear equations inside functions, in the form that each kind of CasADi value takes."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ._program import MAPS


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
    """Refuse to pickle a function that could not be unpickled.

    Raises
    ------
    TypeError
        If it solves triangular equations by ``casadi.solve``.
    """
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

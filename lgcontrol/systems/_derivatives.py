"""Exact derivatives of fields and outputs in left-invariant error coordinates."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value
from ..groups import LieGroup, Product
from ..integrators import Mechanical
from ._step import group_derivatives
from ._tracing import shapes_of, symbols_of
from ._user_code import call_with_symbols

if TYPE_CHECKING:
    from ._system import System


def derivatives_function(system: System) -> ModelFunction:
    """``(t, x, u, p) → Df, Bf`` of the field; see `System.derivatives`."""
    if system._given_derivatives is not None:
        return system._given_derivatives
    key = ("derivatives",)
    if key not in system._cache:
        t, x, u, p = symbols_of(system)
        structure, rate = system.structure, system.f(t, x, u, p)
        if structure is None:
            Df, Bf = ca.jacobian(rate, x) @ system.state.rate_matrix(x), ca.jacobian(rate, u)
        else:
            Df, Bf = _of_structure(system, structure, rate, (t, x, u, p))
        system._cache[key] = matrix_function(
            system, "derivatives", [t, x, u, p], {"Df": Df, "Bf": Bf}
        )
    return system._cache[key]


def trace_derivatives(system: System, build: Callable[..., Any]) -> ModelFunction:
    """Closed forms of a system's maker as a model function."""
    symbols = symbols_of(system)
    label = f"{system.name}: derivatives"
    Df, Bf = call_with_symbols(label, build, symbols, ("t", "x", "u", "p"))
    n, m = system.state.dim, system.n_inputs
    for name, value, shape in (("Df", Df, (n, n)), ("Bf", Bf, (n, m))):
        if value.shape != shape:
            raise ValueError(f"{label} returned {name} of shape {value.shape}, expected {shape}")
    return matrix_function(system, "derivatives", list(symbols), {"Df": Df, "Bf": Bf})


def _of_structure(
    system: System, structure: Mechanical, rate: Value, point: tuple[Value, Value, Value, Value]
) -> tuple[Value, Value]:
    """``M Df = by_x``, ``M Bf = by_u`` in the rows of the velocity; those of q are constant."""
    t, x, u, p = point
    state = system.state
    assert isinstance(state, Product)
    own = state.tangent_slice(structure.configuration)
    speeds = state.tangent_slice(structure.velocity)
    by_x, by_u = structure.balance_derivatives(t, x, rate[speeds], u, p)
    M = ca.sparsify(structure.mass_matrix(x, p))
    solved = solve_symmetric(M, ca.sparsify(ca.horzcat(by_x, by_u)))
    rest = slice(speeds.stop, state.dim)
    Df = ca.vertcat(
        ca.DM.eye(state.dim)[speeds, :],
        solved[:, : state.dim],
        ca.jacobian(rate[rest], x) @ state.rate_matrix(x),
    )
    count = own.stop - own.start
    Bf = ca.vertcat(
        ca.DM(count, system.n_inputs), solved[:, state.dim :], ca.jacobian(rate[rest], u)
    )
    return Df, Bf


def field_derivatives(system: System) -> ModelFunction:
    """``(t, x, u, p) → A, B, C, D, rate`` of the exact linearization.

    In tangent coordinates of the whole group, constrained or not: `linearize` and
    `step_derivatives` are in the error coordinates of the system. With ``X = X̄ exp(ε)`` and
    ``Y = Ȳ exp(δy)``: continuous ``A = Df − ad_f``, ``B = ∂f/∂u``; discrete ``A, B`` of
    ``ε⁺ = A ε + B δu``, projection included.

    Parameters
    ----------
    system : System

    Returns
    -------
    ModelFunction
        ``rate`` is f itself.
    """
    key = ("field_derivatives",)
    if key not in system._cache:
        t, x, u, p = symbols_of(system)
        rate, y = system.f(t, x, u, p), system.h(t, x, u, p)
        if system.is_discrete:
            A, B = group_derivatives(system, t, x, u, p)
        else:
            Df, B = derivatives_function(system)(t, x, u, p)
            A = Df - system.state.ad(rate)
        C, D = output_derivatives(system.state, system.output, x, u, y)
        results = {"A": A, "B": B, "C": C, "D": D, "rate": rate}
        system._cache[key] = matrix_function(system, "linearization", [t, x, u, p], results)
    return system._cache[key]


def solve_symmetric(M: Value, b: Value) -> Value:
    """``M⁻¹ b`` for a symmetric positive definite M: by its sparse factors, or inverse if constant."""
    if isinstance(M, ca.DM) or M.is_constant():
        return ca.sparsify(ca.DM(np.linalg.inv(ca.evalf(ca.SX(M)).full()))) @ b
    return ca.ldl_solve(b, *ca.ldl(M)) if isinstance(M, ca.SX) else ca.solve(M, b)


def output_derivatives(
    state: LieGroup, output: LieGroup, x: Value, u: Value, y: Value
) -> tuple[Value, Value]:
    """Derivatives of y between tangent spaces for displacements of x, and with respect to u."""
    drop = output.tangent_matrix(y)
    return drop @ (ca.jacobian(y, x) @ state.rate_matrix(x)), drop @ ca.jacobian(y, u)


def matrix_function(
    system: System, name: str, symbols: list[Value], results: dict[str, Any]
) -> ModelFunction:
    """Named results of t, x, u, p; those of a capital letter are matrices."""
    expressions: Any = [system.symbol(value) for value in results.values()]
    if system.symbol is ca.SX:
        expressions = ca.cse(expressions)
    names = ["t", "x", "u", "p"]
    shapes = shapes_of(system)
    used = {key: shapes[key] for key in names} | {
        key: value.shape
        for key, value in zip(results, expressions, strict=True)
        if key[0].isupper()
    }
    return ModelFunction(
        ca.Function(name, symbols, expressions, names, list(results)),
        shapes=used,
        defaults={"p": system.nominal_parameters},
    )

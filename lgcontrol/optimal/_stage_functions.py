"""Functions of one stage and of the end of a problem: gaps, costs and their derivatives."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction
from ..systems import System, step_derivatives
from ._bounds import BoundRows, build_rows
from ._problem import OptimalControlProblem


class StageFunctions(NamedTuple):
    """What a transcription evaluates.

    Attributes
    ----------
    stage : ModelFunction
        ``(t, x, u, x_next, x_ref, u_ref, p, w, dt) → cost, gap, rows, A, B, g, H, G``; g, H and G
        belong to tangent vectors of x, then controls.
    stage_values : ModelFunction
        The same arguments; cost, gap and rows alone.
    terminal : ModelFunction
        ``(t, x, u, x_ref, p, w, P) → cost, rows, g, H, G`` with the weight P on the last error.
    terminal_values : ModelFunction
        Cost and rows alone.
    path_weights, end_weights : ndarray
        Values of w, of stages and of the end. Weights and dt are arguments so that a problem with
        other ones has the same code, compiled once.
    """

    stage: ModelFunction
    stage_values: ModelFunction
    terminal: ModelFunction
    terminal_values: ModelFunction
    path_weights: np.ndarray
    end_weights: np.ndarray


class _Term(NamedTuple):
    """A term ``½ rᵀ W r`` of the cost; W is symmetric."""

    value: Any
    jacobian: Any
    weight: np.ndarray


def build_functions(problem: OptimalControlProblem) -> tuple[StageFunctions, BoundRows]:
    """Functions of a problem, and what its rows mean.

    Parameters
    ----------
    problem : OptimalControlProblem

    Returns
    -------
    StageFunctions
    BoundRows
    """
    system, group = problem.system, problem.system.state
    controls = system.input_index("control").tolist()
    sym, n, m = system.symbol.sym, group.dim, len(controls)
    t, x, u, x_ref = sym("t"), sym("x", group.nq), sym("u", system.n_inputs), sym("x_ref", group.nq)
    x_next, u_ref = sym("x_next", group.nq), sym("u_ref", system.n_inputs)
    p, P, dt = sym("p", len(problem.nominal_parameters)), sym("P", n, n), sym("dt")
    lift = group.rate_matrix(x)

    def by_state(value: Any) -> Any:
        return ca.jacobian(value, x) @ lift

    def by_both(value: Any) -> Any:
        return ca.horzcat(by_state(value), ca.jacobian(value, u)[:, controls])

    error = group.minus(x, x_ref)
    by_error = group.right_jacobian_inverse(error)
    effort = (u - u_ref)[controls]
    path = [
        _Term(error, ca.horzcat(by_error, ca.DM(n, m)), problem.Q),
        _Term(effort, ca.horzcat(ca.DM(m, n), ca.DM.eye(m)), problem.R),
    ]
    end: list[_Term] = []
    for residual in problem.residuals:
        value = residual.expression(system.symbol, t, x, u, p)
        size = value.shape[0]
        along, last = (residual.weight_matrix(size, at_end=at_end) for at_end in (False, True))
        path += [_Term(value, by_both(value), along)] if along is not None else []
        end += [_Term(value, by_state(value), last)] if last is not None else []

    arguments = (t, x, u, p[: system.n_parameters], dt)
    after, A, B = step_derivatives(system, problem.method, problem.substeps).function(*arguments)
    gap = group.minus(after, x_next)
    correction = group.right_jacobian_inverse(gap)
    rows, meaning = build_rows(system, problem.bounds, problem.horizon, (t, x, u, p, x_ref))
    cost, g, H, w, path_weights = _gauss_newton(system.symbol, path)
    # Without derivatives the gap comes from the step itself, a tenth of the work.
    step = system.step(problem.method, problem.substeps).function
    values = {
        "cost": dt * cost,
        "gap": group.minus(step(*arguments), x_next),
        "rows": rows,
    }
    derivatives = {
        "A": correction @ A,
        "B": (correction @ B)[:, controls],
        "g": dt * g,
        "H": dt * H,
        "G": by_both(rows),
    }
    inputs = {
        "t": t, "x": x, "u": u, "x_next": x_next, "x_ref": x_ref, "u_ref": u_ref, "p": p,
        "w": w, "dt": dt,
    }  # fmt: skip
    cost, g, H, w, end_weights = _gauss_newton(system.symbol, end)
    pull = P @ error
    last = {"cost": cost + ca.dot(error, pull) / 2, "rows": rows}
    last_inputs = {"t": t, "x": x, "u": u, "x_ref": x_ref, "p": p, "w": w, "P": P}
    last_derivatives = {
        "g": g + by_error.T @ pull,
        "H": H + by_error.T @ P @ by_error,
        "G": by_state(rows),
    }
    functions = StageFunctions(
        _function(system, "stage", inputs, values | {"gap": gap} | derivatives),
        _function(system, "stage_values", inputs, values),
        _function(system, "terminal", last_inputs, last | last_derivatives),
        _function(system, "terminal_values", last_inputs, last),
        path_weights,
        end_weights,
    )
    return functions, meaning


def _function(
    system: System, name: str, inputs: dict[str, Any], results: dict[str, Any]
) -> ModelFunction:
    """Dense results; scalars and matrices keep their shapes where a side has length one."""
    symbol = system.symbol
    # Notices of compilers say whose function it is.
    name = "_".join([name, *re.findall(r"[A-Za-z0-9]+", system.name)])
    expressions: Any = [ca.densify(symbol(value)) for value in results.values()]
    if symbol is ca.SX:
        expressions = ca.cse(expressions)
    function = ca.Function(name, [*inputs.values()], expressions, [*inputs], [*results])
    shapes: dict[str, tuple[int, ...]] = {"t": (), "dt": (), "cost": ()}
    shapes = {key: shape for key, shape in shapes.items() if key in inputs or key in results}
    for key, value in zip((*inputs, *results), (*inputs.values(), *expressions), strict=True):
        if key in ("P", "A", "B", "H", "G"):
            shapes[key] = value.shape
    return ModelFunction(function, shapes=shapes)


def _gauss_newton(symbol: Any, terms: list[_Term]) -> tuple[Any, Any, Any, Any, np.ndarray]:
    """Cost, gradient and Hessian of ``½ Σ rᵀ W r``, a symbol for the entries of all W, and those.

    Only entries that are not zero have a symbol, one for both sides of the diagonal.
    """
    # Column after column, as CasADi stores them.
    places = [np.nonzero(np.tril(term.weight).T)[::-1] for term in terms]
    values = [term.weight[place] for term, place in zip(terms, places, strict=True)]
    values = np.concatenate([np.zeros(0), *values])
    w, start = symbol.sym("w", len(values)), 0
    cost, gradient, hessian = ca.DM(0), ca.DM(0), ca.DM(0)
    for term, (rows, columns) in zip(terms, places, strict=True):
        size, stop = term.value.shape[0], start + len(rows)
        pattern = ca.Sparsity.triplet(size, size, rows.tolist(), columns.tolist())
        lower, start = symbol(pattern, w[start:stop]), stop
        W = lower + lower.T - ca.diag(ca.diag(lower))
        weighted = W @ term.jacobian
        cost = cost + ca.dot(term.value, W @ term.value) / 2
        gradient = gradient + weighted.T @ term.value
        hessian = hessian + term.jacobian.T @ weighted
    return cost, gradient, hessian, w, values

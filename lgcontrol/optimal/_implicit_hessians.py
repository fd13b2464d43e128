"""Second derivatives of stages whose steps solve equations, by the implicit function theorem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import casadi as ca

from ..codegen._internal import solve_linear
from ..groups import LieGroup
from ..integrators._internal import opened


class ImplicitHessian(NamedTuple):
    """W and bend of `StageModel.curvature`; rows and columns of the entries of bend."""

    W: Any
    bend: Any
    places: list[tuple[int, int]]


def implicit_hessian(
    function: ca.Function, inputs: dict[str, Any], group: LieGroup,
    error_bend: Callable[[Any, Any], Any], most: int,
) -> ImplicitHessian | None:  # fmt: skip
    """Hessian by d of ``L = error_pullᵀ error + pullᵀ r + other + row_pricesᵀ rows + wᵀ y``.

    Steps have stages z with ``F(d, z) = 0``. With multipliers μ that make ``L + μᵀ F`` stationary
    in z, and with the tangent ``T = [1; dz/dd]``, the Hessian is ``Tᵀ ∇²(L + μᵀ F) T``.

    The function is ``(…, d) → error_pull, r, pull, other, rows, y`` of MX. Its argument d moves
    state and controls, y are coordinates of the step's end, none at the end of the horizon. Symbols
    of the other arguments are `inputs`, with "row_prices" and, of a stage, "prices" of the defect.
    `error_bend` is ``(error, error_pull) → Hessian`` of ``error_pullᵀ error`` by the state. None
    where it takes more than `most` operations, or these are not of scalars.
    """
    apart = opened(function)
    if apart is None or apart.explicit.n_instructions() * function.size1_in("d") > most:
        return None
    *own, d, z = apart.explicit.sx_in()
    at, n = dict(zip(inputs, own, strict=True)), group.dim
    *values, F = apart.explicit.call([*own, d, z])
    found = dict(zip(function.name_out(), values, strict=True))
    mu, held, w = (
        ca.SX.sym(name, *value.shape)
        for name, value in (("mu", F), ("held", found["pull"]), ("w", found["y"]))
    )
    total = ca.dot(held, found["r"]) + found["other"]
    total += ca.dot(at["row_prices"], found["rows"]) + ca.dot(w, found["y"])
    second = ca.hessian(total + ca.dot(mu, F), ca.vertcat(d, z))[0]
    error = group.minus(at["x"], at["x_ref"])
    second[:n, :n] += error_bend(error, found["error_pull"])
    toward, of_end = ca.SX(w), ca.SX(n, n)
    if "prices" in at:
        toward, eta = group.tangent_matrix(found["y"]).T @ at["prices"], ca.SX.sym("eta", n)
        bent = ca.hessian(ca.dot(w, group.plus(found["y"], eta)), eta)[0]
        of_end = -ca.sparsify(ca.substitute(bent, eta, ca.DM.zeros(n)))
    places = [(i, j) for i, j in zip(*of_end.sparsity().get_triplet(), strict=True) if i <= j]
    bend = ca.vertcat(ca.SX(0, 1), *(of_end[i, j] for i, j in places))
    results: Any = [-ca.jacobian(F, z), ca.jacobian(F, d), ca.gradient(total, z), second, bend]
    results = ca.substitute(results, [held, w], [found["pull"], ca.densify(toward)])
    results = ca.substitute(results, [d], [ca.DM.zeros(*d.shape)])
    results = [ca.sparsify(value) for value in ca.cse(results)]
    symbols = [*own, z]
    slopes = ca.Function("implicit_slopes", symbols, results[:3])
    hessian = ca.Function("implicit_hessian", [*symbols, mu], results[3:])
    if hessian.n_instructions() > most:
        return None
    unmoved: Any = [*inputs.values(), ca.DM.zeros(*d.shape)]
    there: Any = [*inputs.values(), apart.stages.call(unmoved)[0]]
    K, by_d, by_z = slopes.call(there)
    if z.shape[0]:
        by_d, by_z = solve_linear(K, by_d), solve_linear(K.T, by_z)
    second, bend = hessian.call([*there, by_z])
    tangent = ca.vertcat(ca.MX.eye(d.shape[0]), by_d)
    return ImplicitHessian(tangent.T @ second @ tangent, bend, places)

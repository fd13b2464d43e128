"""Functions of a stage for changes of solutions: derivatives of its optimality conditions."""

from __future__ import annotations

from typing import Any

import casadi as ca

from ...codegen import ModelFunction
from .._expressions import named_function
from .._stage_model import StageModel

# Results of a stage, by the data that they are differentiated by.
DATA = ("x_ref", "u_ref", "p")


def change_functions(model: StageModel) -> dict[str, tuple[ModelFunction, tuple[str, ...] | None]]:
    """Derivatives of stages, each with the arguments that all stages share.

    With the Lagrangian ``L = cost + lamᵀ gap + priceᵀ rows`` of a stage, by error coordinates of
    the state and by controls:

    ``along``
        ``(…, lam, price, dx, du, dx_ref, du_ref, dp) → cost, gap, rows, slope``, changes of cost,
        defect, rows and ``∇L`` along a direction.
    ``against``
        ``(…, lam, price, of_gap, of_rows, of_x, of_u) → by_x_ref, by_u_ref, by_p``, gradients of
        ``of_gapᵀ gap + of_rowsᵀ rows + [of_x, of_u]ᵀ ∇L``.

    ``end_along`` and ``end_against`` are those of the end, where u is the input of the reference.
    """
    once = model.transcription._functions
    shared = model.transcription.shared
    made = _of(model, once.stage_values, "stage_values", DATA)
    ended = _of(model, once.terminal_values, "terminal_values", ("u", "x_ref", "p"))
    return {
        "along": (made[0], (*shared, "dp")),
        "end_along": (ended[0], None),
        "against": (made[1], shared),
        "end_against": (ended[1], None),
    }


def _of(
    model: StageModel, values: ModelFunction, word: str, data: tuple[str, ...]
) -> tuple[ModelFunction, ModelFunction]:
    n, m, (inputs, z, moved) = model.n, model.m, model.displaced(values)
    sym, is_stage = type(z).sym, "x_next" in inputs
    found: dict[str, Any] = dict(
        zip(values.results, values.function.call([*moved.values()]), strict=True)
    )
    gap = found.get("gap", type(z)(0, 1))
    prices = {"lam": sym("lam", n)} if is_stage else {}
    prices["price"] = sym("price", found["rows"].shape[0])
    lagrangian = found["cost"] + ca.dot(prices["price"], found["rows"])
    if is_stage:
        lagrangian += ca.dot(prices["lam"], gap)
    slope = ca.gradient(lagrangian, z)
    at_zero = ca.DM.zeros(*z.shape)

    def function(name: str, given: dict[str, Any], results: dict[str, Any]) -> ModelFunction:
        values_of: Any = ca.substitute([*results.values()], [z], [at_zero])
        values_of = ca.cse(values_of) if isinstance(z, ca.SX) else values_of
        named = values.name.replace(word, name if is_stage else f"end_{name}")
        dense = dict(zip(results, map(ca.densify, values_of), strict=True))
        return named_function(named, given, dense)

    ways = {f"d{name}": sym(f"d{name}", *inputs[name].shape) for name in data}
    steps = {"dx": sym("dx", n)} | ({"dv": sym("dv", m)} if is_stage else {})
    stacked = ca.vertcat(found["cost"], gap, found["rows"], slope)
    symbols, moves = [z, *(inputs[name] for name in data)], [ca.vertcat(*steps.values())]
    moves += [*ways.values()]
    if isinstance(z, ca.SX):  # together
        symbols, moves = [ca.vertcat(*symbols)], [ca.vertcat(*moves)]
    change = sum(map(ca.jtimes, [stacked] * len(moves), symbols, moves), type(z)(0))
    parts = {"cost": found["cost"], "gap": gap, "rows": found["rows"], "slope": slope}
    if not is_stage:
        del parts["gap"]
    ends = [0]
    for part in parts.values():
        ends.append(ends[-1] + part.shape[0])
    changes = dict(zip(parts, ca.vertsplit(change, ends), strict=True))
    order = {"dx": 0, "dv": 1, "du": 2, "dx_ref": 3, "du_ref": 4, "dp": 5}
    given = dict(sorted((steps | ways).items(), key=lambda item: order[item[0]]))
    along = function("along", inputs | prices | given, changes)
    of = {"of_gap": sym("of_gap", n)} if is_stage else {}
    of["of_rows"] = sym("of_rows", found["rows"].shape[0])
    of["of_x"] = sym("of_x", n)
    total = ca.dot(of["of_rows"], found["rows"])
    if is_stage:
        of["of_u"] = sym("of_u", m)
        total += ca.dot(of["of_gap"], gap)
    total += ca.jtimes(lagrangian, z, ca.vertcat(of["of_x"], *([of["of_u"]] if is_stage else [])))
    slopes = {f"by_{name}": ca.gradient(total, inputs[name]) for name in data}
    return along, function("against", inputs | prices | of, slopes)


def prior_derivatives(model: StageModel) -> ca.Function:
    """``(x, x0, P, p) → slope, bend`` of the cost of a free first state, exactly.

    By error coordinates of x, then of the given start x0: slope (2n,), bend (2n, 2n).
    """
    system, n = model.problem.system, model.n
    x, x0 = (ca.SX.sym(name, system.state.nq) for name in ("x", "x0"))
    P, p, d = ca.SX.sym("P", n, n), ca.SX.sym("p", system.n_parameters), ca.SX.sym("d", 2 * n)
    moved = system.retract(x, d[:n], p), system.retract(x0, d[n:], p)
    error = ca.DM(system.error_selection) @ system.state.minus(*moved)
    bend, slope = ca.hessian(ca.dot(error, P @ error) / 2, d)
    at_zero: Any = ca.substitute([slope, bend], [d], [ca.DM.zeros(2 * n)])
    return ca.Function("prior", [x, x0, P, p], [ca.densify(value) for value in at_zero])

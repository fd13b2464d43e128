"""opened: functions that solve the stages of implicit steps, with these stages as arguments."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca

from ._implicit import equations_of


class Opened(NamedTuple):
    """A function of stages that solve equations, in two parts.

    Attributes
    ----------
    explicit : casadi.Function
        ``(…, z) → …, r`` of SX: the results for any stages z, and the residuals of their equations.
    stages : casadi.Function
        ``(…) → z`` of MX: the stages at which the residuals are zero.
    """

    explicit: ca.Function
    stages: ca.Function


def opened(function: ca.Function) -> Opened | None:
    """A function with the stages of its implicit steps as arguments.

    Parameters
    ----------
    function : casadi.Function
        Of MX. Functions that it calls may have such steps as well.

    Returns
    -------
    Opened or None
        None where it has other parts that are not made of scalar operations.
    """
    given: list[Any] = function.mx_in()
    values: Any = function.call(given, True, False)
    unknowns: list[Any] = []
    residuals: list[Any] = []
    found: list[Any] = []
    while True:
        values = ca.cse(values)
        node = _first_call(ca.Function("opened", [*given, *unknowns], values))
        if node is None:
            break
        inner: Any = node.which_function()
        at = [node.dep(i) for i in range(node.n_dep())]
        equations = equations_of(inner)
        if equations is None:
            now = inner.call(at, True, False)
        else:
            z = ca.MX.sym("z", inner.size1_out(0))
            solve = ca.Function("at", [*given, *unknowns], at)
            found.append(inner(*solve.call([*given, *found], True, False))[0])
            residuals.append(equations(*at, z)[0])
            unknowns.append(z)
            now = [z, *(ca.MX.zeros(*inner.size_out(i)) for i in range(1, inner.n_out()))]
        was: Any = [node.get_output(i) for i in range(inner.n_out())]
        values = ca.graph_substitute(values, was, now)
    z, r = ca.vertcat(ca.MX(0, 1), *unknowns), ca.vertcat(ca.MX(0, 1), *residuals)
    whole = ca.MX.sym("z", z.shape[0])
    parts = ca.vertsplit(whole, [0, *_ends(unknowns)])
    results: Any = [*values, r]
    made = ca.Function("apart", [*given, *unknowns], results)
    explicit = ca.Function("explicit", [*given, whole], made.call([*given, *parts], True, False))
    try:
        explicit = explicit.expand()
    except RuntimeError:  # an operation on matrices
        return None
    if any(explicit.instruction_id(k) == ca.OP_CALL for k in range(explicit.n_instructions())):
        return None
    return Opened(explicit, ca.Function("stages", given, [ca.vertcat(ca.MX(0, 1), *found)]))


def _ends(unknowns: list[Any]) -> list[int]:
    ends = [0]
    for z in unknowns:
        ends.append(ends[-1] + z.shape[0])
    return ends[1:]


def _first_call(function: ca.Function) -> Any:
    """The first node that calls a function with implicit steps, or solves one."""
    for k in range(function.n_instructions()):
        if function.instruction_id(k) == ca.OP_CALL:
            node = function.instruction_MX(k)
            if _solves_stages(node.which_function()):
                return node
    return None


def _solves_stages(function: ca.Function) -> bool:
    if not function.is_a("MXFunction"):
        return False
    return equations_of(function) is not None or _first_call(function) is not None

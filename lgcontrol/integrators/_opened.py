"""opened: functions that solve the stages of implicit steps, with these stages as arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

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
    values: Any = solved_once(given, function.call(given, True, False))
    unknowns: list[Any] = []
    residuals: list[Any] = []
    found: list[Any] = []
    while (node := _first_call([*given, *unknowns], values, equations_of)) is not None:
        inner: Any = node.which_function()
        at = _arguments(node)
        equations = equations_of(inner)
        assert equations is not None
        z = ca.MX.sym("z", inner.size1_out(0))
        solve = ca.Function("at", [*given, *unknowns], at)
        found.append(inner(*solve.call([*given, *found], True, False))[0])
        residuals.append(equations(*at, z)[0])
        unknowns.append(z)
        values = _replaced(values, node, [z, ca.MX(1, 1)])
    z, r = ca.vertcat(ca.MX(0, 1), *unknowns), ca.vertcat(ca.MX(0, 1), *residuals)
    whole = ca.MX.sym("z", z.shape[0])
    parts = ca.vertsplit(whole, np.cumsum([0, *(z.shape[0] for z in unknowns)]).tolist())
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


def solved_once(given: list[Any], values: Sequence[Any]) -> list[Any]:
    """Expressions of symbols that are given, where equal steps that solve equations are one."""
    found: Any = [*values]
    while (node := _first_call(given, found, _calls_solved)) is not None:
        inner: Any = node.which_function()
        found = _replaced(found, node, inner.call(_arguments(node), True, False))
    return ca.cse(found)


def _first_call(given: list[Any], values: list[Any], is_one: Callable[[ca.Function], Any]) -> Any:
    """The first node of expressions that calls a function of some kind."""
    return _call_in(ca.Function("opened", given, values), is_one)


def _call_in(function: ca.Function, is_one: Callable[[ca.Function], Any]) -> Any:
    for k in range(function.n_instructions()):
        if function.instruction_id(k) == ca.OP_CALL:
            node = function.instruction_MX(k)
            if is_one(node.which_function()):
                return node
    return None


def _calls_solved(function: ca.Function) -> bool:
    """Whether a function calls one that solves for stages, at any depth."""
    if not function.is_a("MXFunction") or equations_of(function) is not None:
        return False
    return _call_in(function, lambda inner: equations_of(inner) or _calls_solved(inner)) is not None


def _arguments(node: Any) -> list[Any]:
    return [node.dep(i) for i in range(node.n_dep())]


def _replaced(values: list[Any], node: Any, results: Any) -> Any:
    """Expressions with others in place of the results of a call."""
    return ca.graph_substitute(values, [node.get_output(i) for i in range(len(results))], results)

"""trace: call a builder once on symbols and keep what it returns as a ModelFunction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca

from ._interrupt import interruptible
from ._model_function import ModelFunction
from ._types import Shape


@interruptible
def trace(
    name: str,
    build: Callable[..., Any],
    arguments: Mapping[str, Shape],
    results: Mapping[str, Shape] | Sequence[str],
    *,
    defaults: Mapping[str, Any] | None = None,
    symbol: type = ca.SX,
    is_shared: bool = True,
) -> ModelFunction:
    """Call `build` once on symbols and keep the result as a ModelFunction.

    Parameters
    ----------
    name : str
        Name of the function.
    build : callable
        Takes one symbol per argument (a column, or a matrix for two-dimensional shapes), returns
        one expression or a sequence of them.
    arguments : mapping of str to tuple of int
        NumPy shape of each argument.
    results : mapping of str to tuple of int, or sequence of str
        Names of the results, with shapes where they are not ``(n,)`` or ``(m, n)``.
    defaults : mapping, optional
        Values of arguments that may be left out.
    symbol : type
        ``casadi.SX`` (leaf mathematics) or ``casadi.MX`` (glue).
    is_shared : bool
        Whether to eliminate common subexpressions, which takes thirty times as long as making the
        function. Leave it out if `build` calls functions that have none.

    Returns
    -------
    ModelFunction

    Examples
    --------
    >>> dot = trace("dot", lambda a, b: ca.dot(a, b), {"a": (2,), "b": (2,)}, {"c": ()})
    >>> float(dot([1, 2], [3, 4]))
    11.0
    """
    symbols: list[Any] = [symbol.sym(key, *(shape or (1,))) for key, shape in arguments.items()]
    built = build(*symbols)
    built = list(built) if isinstance(built, list | tuple) else [built]
    if len(built) != len(results):
        raise ValueError(f"{name} returned {len(built)} values, expected {', '.join(results)}")
    built = [symbol(expression) for expression in built]
    if is_shared and symbol is ca.SX:
        built = list(ca.cse(built))
    shapes = dict(arguments)
    if isinstance(results, Mapping):
        for key, expression in zip(results, built, strict=True):
            want = (results[key] + (1, 1))[:2]
            if expression.shape != want:
                raise ValueError(
                    f"{name}: {key} has shape {expression.shape}, expected {results[key]}"
                )
        shapes |= results
    function = ca.Function(name, symbols, built, list(arguments), list(results))
    return ModelFunction(function, shapes=shapes, defaults=defaults)

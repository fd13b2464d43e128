"""Trace and compile: builders and CasADi functions become ModelFunctions, these machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import casadi as ca

from ._backend import build
from ._interrupt import interruptible
from ._model_function import ModelFunction
from ._policy import compile_policy
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


@interruptible
def compile(  # noqa: A001 - lgcontrol.codegen.compile, as re.compile
    functions: ModelFunction | ca.Function | Sequence[ModelFunction | ca.Function],
    *,
    batch: bool = True,
    contract: bool = True,
) -> ModelFunction | list[ModelFunction]:
    """Compile to machine code, several functions side by side on all cores.

    The C code is built with gcc, clang, cc or tcc; the environment variable CC names another
    compiler. The result is compared with the interpreted function on random inputs and kept on
    disk. The next process loads it in milliseconds (`cache_info`). If a build is not possible, one
    notice is logged and the functions stay interpreted, with the same values, ten to thirty times
    slower.

    Parameters
    ----------
    functions : ModelFunction or casadi.Function, or a sequence of them
        A ModelFunction is upgraded in place; a casadi.Function is wrapped in one.
    batch : bool
        Whether to build, besides the code for single calls, the code that evaluates 2 to 8 items of
        a batch at once.
    contract : bool
        Whether ``a*b + c`` may be rounded once (fused multiply-add), a quarter faster. Without,
        single calls on x86-64 return bit for bit what the interpreted function returns.

    Returns
    -------
    ModelFunction, or list of ModelFunction for a sequence

    Raises
    ------
    TypeError
        If something else is given.

    Notes
    -----
    Values are never traded for speed further than that: no reordering of sums, no flushing of
    small numbers, NaN and infinity propagate. In batches, sine, cosine and other functions are the
    vector variants of the C library if it has them. The variants of glibc err by at most 4 units
    in the last place.

    Examples
    --------
    >>> x = ca.SX.sym("x", 2)
    >>> norm = compile(ca.Function("norm", [x], [ca.sqrt(ca.dot(x, x))], ["x"], ["length"]))
    >>> norm([3.0, 4.0])
    array([5.])
    >>> norm([[3.0, 4.0], [6.0, 8.0]])
    array([[ 5.],
           [10.]])
    """
    single = isinstance(functions, ModelFunction | ca.Function)
    models = [_as_model(f) for f in ([functions] if single else functions)]
    for model in models:
        model._backend.request(batch=batch, contract=contract)
    build([model._backend for model in models])
    return models[0] if single else models


@interruptible
def prepare(*functions: ModelFunction, calls: int, items: int = 1) -> None:
    """Compile functions where that pays for a number of calls to come; for the start of loops.

    Follows `set_compile_policy`: with ``"auto"``, functions are compiled whose interpretation over
    all these calls would take longer than the build.

    Parameters
    ----------
    *functions : ModelFunction
    calls : int
        How often each will be called.
    items : int
        Length of the batch in each call; the code for batches alone is built if it is more than 1.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> prepare(SE3.function("compose"), calls=100)
    """
    chosen = []
    for function in functions:
        backend = function._backend
        evaluations = calls * items * function._steps
        if compile_policy() == "eager" or backend.program.pays(evaluations):
            many = items > 1
            backend.request(scalar=not many, batch=many, contract=backend.wanted.contract)
            chosen.append(backend)
    build(chosen)


def _as_model(function: ModelFunction | ca.Function) -> ModelFunction:
    if isinstance(function, ModelFunction):
        return function
    if isinstance(function, ca.Function):
        return ModelFunction(function)
    raise TypeError(f"expected a ModelFunction or a casadi.Function, not {type(function).__name__}")

"""Compile functions: casadi.Function or ModelFunction, one or many."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from ._backend import build
from ._interrupt import interruptible
from ._model_function import ModelFunction
from ._policy import compile_policy


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

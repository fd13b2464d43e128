"""Trace, compile and chain: builders become ModelFunctions, and these machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

import casadi as ca
import numpy as np

from ._backend import Backend, Wanted, build
from ._frame import Binding, bind_interpreter
from ._interrupt import interruptible
from ._model_function import ModelFunction
from ._policy import compile_policy
from ._program import Chain, Program
from ._types import Shape
from ._validate import UnknownNameError, check_count, unknown_name

# CasADi takes more than proportionally longer to write out more steps than this: for a filter of
# 15 errors 0.1 s, ten times as long for 1024, and no longer to go through them in such pieces.
_LONGEST_PIECE = 128


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


class ChainFunction(ModelFunction):
    """The values of all steps of a repeated function; made by `chain`."""

    def __init__(
        self, step: ModelFunction, steps: int, carry: tuple[str, str], each: Sequence[str]
    ) -> None:
        argument, result = carry
        for kind, names, valid in (
            ("argument", (argument, *each), step.arguments),
            ("result", (result,), step.results),
        ):
            for name in names:
                if name not in valid:
                    raise UnknownNameError(unknown_name(f"{kind} of {step.name}", name, valid))
        if argument in each:
            raise ValueError(f"{argument!r} is carried from step to step, so it cannot be in each")
        check_count(f"steps of a chain of {step.name}", steps)
        position = step.arguments.index
        repeated = Chain(
            position(argument), step.results.index(result), tuple(position(n) for n in each)
        )
        if step.argument_shapes[repeated.argument] != step.result_shapes[repeated.result]:
            raise ValueError(
                f"{step.name}: {result!r} with shape {step.result_shapes[repeated.result]} "
                f"cannot become {argument!r} with shape {step.argument_shapes[repeated.argument]}"
            )
        wide = {name: _rows(step, name, steps) for name in (*each, *step.results)}
        shapes = dict(zip(step.arguments, step.argument_shapes, strict=True)) | wide
        super().__init__(
            _signature(step.function, steps, repeated),
            shapes=shapes,
            defaults={name: v for name, v in step.defaults.items() if name not in wide},
            transposed=[*step.transposed, *wide],
        )
        # Chains of any number of steps share one program: reading it again takes up to 0.1 s.
        if repeated not in step._chained:
            step._chained[repeated] = Program(step.function, repeated)
        self._backend = Backend(step._chained[repeated])
        self._steps = steps
        self._made_from = (step, steps, carry, tuple(each))

    @property
    def function(self) -> ca.Function:
        """The chain as a casadi.Function, made when it is asked for."""
        return self._whole

    @cached_property
    def _whole(self) -> ca.Function:
        return self._unrolled(self._steps)

    def __reduce__(self) -> tuple[Any, ...]:
        """Compiled code is found or built again where the copy is first called."""
        return _rebuild, (*self._made_from, self._backend.wanted)

    def _unrolled(self, steps: int) -> ca.Function:
        step = self._made_from[0]
        return _unrolled(step.function, steps, cast(Chain, self._backend.program.chain))

    def _bind_memory(self, arguments: list[np.ndarray], results: list[np.ndarray]) -> Binding:
        """Interpret a chain in pieces of powers of two: few functions, which are quickly made."""
        if self._backend.kernel_for(len(results[0])) is not None or len(results[0]) > 1:
            return super()._bind_memory(arguments, results)
        repeated = cast(Chain, self._backend.program.chain)
        functions: dict[int, ca.Function] = {}
        bindings: list[Binding] = []
        first, state = 0, arguments[repeated.argument]
        while first < self._steps:
            length = min(_LONGEST_PIECE, 1 << (self._steps - first).bit_length() - 1)
            if length not in functions:
                functions[length] = self._unrolled(length)
            part = slice(first, first + length)
            given = [a[:, part] if i in repeated.each else a for i, a in enumerate(arguments)]
            given[repeated.argument] = state
            bindings.append(
                bind_interpreter(functions[length], given, [result[:, part] for result in results])
            )
            first += length
            state = results[repeated.result][:, first - 1]
        calls = [binding.evaluate for binding in bindings]
        return Binding(lambda: next((s for call in calls if (s := call())), 0), bindings)


@interruptible
def chain(
    step: ModelFunction, steps: int, *, carry: tuple[str, str], each: Sequence[str] = ()
) -> ModelFunction:
    """Repeat a step function: a simulation over given inputs, in one call.

    Compiled, the whole loop is machine code. Its size does not depend on the number of steps, and
    a batch of starts runs several at once on each core.

    Parameters
    ----------
    step : ModelFunction
        One step, of vectors and scalars.
    steps : int
        How often.
    carry : tuple of (str, str)
        Argument and result: the argument takes the start, then the result of the step before.
    each : sequence of str
        Arguments that differ by step; the others are the same in all steps.

    Returns
    -------
    ModelFunction
        Takes the arguments of the step, those in `each` with one row a step, ``(steps, n)``, and
        returns all results of the step likewise. With CasADi values, a step is a column.

    Raises
    ------
    ValueError
        If a name is unknown, or argument and result of `carry` differ in shape.

    Examples
    --------
    >>> from lgcontrol.codegen import trace
    >>> step = trace("step", lambda x, u: x / 2 + u, {"x": (1,), "u": (1,)}, ["x_next"])
    >>> chain(step, 3, carry=("x", "x_next"), each=["u"])([8.0], [[0.0], [1.0], [0.0]])
    array([[4. ],
           [3. ],
           [1.5]])
    """
    return ChainFunction(step, steps, carry, each)


def _rows(step: ModelFunction, name: str, steps: int) -> Shape:
    names = step.arguments + step.results
    shape = (step.argument_shapes + step.result_shapes)[names.index(name)]
    if len(shape) > 1:
        raise ValueError(f"{step.name}: {name!r} is a matrix; in a chain, only constants may be")
    return (steps, shape[0] if shape else 1)


def _signature(function: ca.Function, steps: int, repeated: Chain) -> ca.Function:
    """Return a function with the names and sizes of the chain, without its content."""
    symbols = [
        ca.MX.sym(n, function.size1_in(i), steps if i in repeated.each else function.size2_in(i))
        for i, n in enumerate(function.name_in())
    ]
    results = [ca.MX.zeros(function.size1_out(i), steps) for i in range(function.n_out())]
    name = f"{function.name()}_chain"
    return ca.Function(name, symbols, results, function.name_in(), function.name_out())


def _unrolled(function: ca.Function, steps: int, repeated: Chain) -> ca.Function:
    """Make the chain as a casadi.Function, for symbols and for interpretation."""
    names_in, names_out = function.name_in(), function.name_out()
    symbols = [ca.MX.sym(n, *function.size_in(i)) for i, n in enumerate(names_in)]
    # mapaccum carries the first argument and the first result.
    order_in = [repeated.argument, *(i for i in range(len(symbols)) if i != repeated.argument)]
    order_out = [repeated.result, *(i for i in range(len(names_out)) if i != repeated.result)]
    results = function.call(symbols)
    one = ca.Function("step", [symbols[i] for i in order_in], [results[i] for i in order_out])
    wide = [
        ca.MX.sym(n, function.size1_in(i), steps) if i in repeated.each else symbols[i]
        for i, n in enumerate(names_in)
    ]
    given = [
        wide[i] if i in repeated.each or i == repeated.argument else ca.repmat(wide[i], 1, steps)
        for i in order_in
    ]
    columns = one.mapaccum("steps", steps).call(given)
    ordered = [columns[order_out.index(i)] for i in range(len(names_out))]
    return ca.Function(f"{function.name()}_chain", wide, ordered, names_in, names_out)


def _rebuild(
    step: ModelFunction, steps: int, carry: tuple[str, str], each: tuple[str, ...], wanted: Wanted
) -> ChainFunction:
    made = ChainFunction(step, steps, carry, each)
    made._backend.wanted = wanted
    return made

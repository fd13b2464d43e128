"""Chains: a step function repeated, each step starting where the one before ended."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

import casadi as ca
import numpy as np

from ._backend import Backend, Wanted
from ._frame import Binding, bind_interpreter
from ._interrupt import interruptible
from ._model_function import ModelFunction
from ._program import Chain, Program
from ._types import Shape
from ._validate import UnknownNameError, check_count, unknown_name

# CasADi takes more than proportionally longer to write out more steps than this: for a filter of
# 15 errors 0.1 s, ten times as long for 1024, and no longer to go through them in such pieces.
_LONGEST_PIECE = 128


class ChainFunction(ModelFunction):
    """The values of all steps of a repeated function; made by `chain`.

    Parameters
    ----------
    carry : tuple of (str, str)
    each : sequence of str
        See `chain`.
    """

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

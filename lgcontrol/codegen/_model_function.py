"""ModelFunction: a CasADi function that takes NumPy (with batch axes), DM, SX and MX."""

from __future__ import annotations

import threading
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np

from ._validate import format_shape, unknown_name

Value = Any
"""A NumPy array (or anything `numpy.asarray` takes), or a CasADi SX, MX or DM."""

Shape = tuple[int, ...]


class ModelFunction:
    """A named function of named arguments; NumPy in → NumPy out, symbols in → symbols out.

    Parameters
    ----------
    function : casadi.Function
        The function. Its input and output names become the argument and result names.
    shapes : mapping of str to tuple of int, optional
        NumPy shapes of arguments and results, where they are not the default. The default of
        an n × 1 argument is ``(n,)``, of an m × n argument ``(m, n)``. A scalar is ``()``.
    defaults : mapping of str to array_like, optional
        Values of arguments that may be left out. They must be the last ones.
    transposed : iterable of str, optional
        Lists of vectors: rows in NumPy, columns in CasADi, hence shape ``(m, n)`` in NumPy and
        n × m in CasADi.

    Notes
    -----
    NumPy arguments may have leading batch axes, which broadcast against each other. CasADi
    arguments are single columns (matrices for matrix arguments). Instances pickle, and may be
    called from several threads at once. Values are not checked for finiteness: NaN propagates.

    Examples
    --------
    >>> x = ca.SX.sym("x", 2)
    >>> square = ModelFunction(ca.Function("square", [x], [x * x], ["x"], ["y"]))
    >>> square([1.0, 3.0])
    array([1., 9.])
    >>> square(np.ones((5, 2))).shape
    (5, 2)
    """

    def __init__(
        self,
        function: ca.Function,
        *,
        shapes: Mapping[str, Shape] | None = None,
        defaults: Mapping[str, Any] | None = None,
        transposed: Iterable[str] = (),
    ) -> None:
        function = _dense(function)
        shapes = dict(shapes or {})
        self.transposed: frozenset[str] = frozenset(transposed)
        self.function: ca.Function = function
        self.name: str = function.name()
        self.arguments: tuple[str, ...] = tuple(function.name_in())
        self.results: tuple[str, ...] = tuple(function.name_out())
        for name in (*shapes, *self.transposed):
            if name not in self.arguments + self.results:
                raise ValueError(
                    unknown_name(f"argument of {self.name}", name, self.arguments + self.results)
                )
        self.argument_shapes: tuple[Shape, ...] = tuple(
            shapes.get(name, self._default_shape(name, function.size_in(i)))
            for i, name in enumerate(self.arguments)
        )
        self.result_shapes: tuple[Shape, ...] = tuple(
            shapes.get(name, self._default_shape(name, function.size_out(i)))
            for i, name in enumerate(self.results)
        )
        self.defaults: dict[str, np.ndarray] = {
            name: np.asarray(value, dtype=np.float64) for name, value in (defaults or {}).items()
        }
        self._shapes = shapes
        self._result_type = (
            namedtuple(f"{self.name}_result", self.results) if len(self.results) > 1 else None
        )
        self._local = threading.local()

    def __call__(self, *values: Value, **named: Value) -> Any:
        """Evaluate; one result is returned as it is, several as a named tuple."""
        if named or len(values) != len(self.arguments):
            values = self._bind(values, named)
        for value in values:
            if isinstance(value, ca.SX | ca.MX | ca.DM):
                return self._symbolic(values)
        return self._numeric(values)

    def __repr__(self) -> str:
        """Signature with shapes."""
        parts = [
            f"{name}{format_shape(shape)}"
            for name, shape in zip(self.arguments, self.argument_shapes, strict=True)
        ]
        out = [
            f"{name}{format_shape(shape)}"
            for name, shape in zip(self.results, self.result_shapes, strict=True)
        ]
        return f"{self.name}({', '.join(parts)}) -> {', '.join(out)}"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.function, self._shapes, self.defaults, self.transposed)

    @property
    def instructions(self) -> int:
        """Number of CasADi instructions: the operation count of the function."""
        return self.function.n_instructions()

    def _default_shape(self, name: str, size: tuple[int, int]) -> Shape:
        return size[::-1] if name in self.transposed else _default_shape(size)

    def _bind(self, values: tuple[Value, ...], named: dict[str, Value]) -> tuple[Value, ...]:
        if len(values) > len(self.arguments):
            raise TypeError(
                f"{self.name} takes {len(self.arguments)} arguments "
                f"({', '.join(self.arguments)}), {len(values)} were given"
            )
        bound = dict(zip(self.arguments, values, strict=False))
        for name, value in named.items():
            if name not in self.arguments:
                raise TypeError(unknown_name(f"argument of {self.name}", name, self.arguments))
            if name in bound:
                raise TypeError(f"{self.name} got argument {name!r} twice")
            bound[name] = value
        missing = [n for n in self.arguments if n not in bound and n not in self.defaults]
        if missing:
            raise TypeError(f"{self.name} lacks {', '.join(missing)}; signature: {self!r}")
        return tuple(bound.get(n, self.defaults.get(n)) for n in self.arguments)

    def _symbolic(self, values: tuple[Value, ...]) -> Any:
        columns = []
        for i, value in enumerate(values):
            column = value if isinstance(value, ca.SX | ca.MX | ca.DM) else _to_dm(value)
            if column is not value and self.arguments[i] in self.transposed:
                column = column.T
            expected = self.function.size_in(i)
            if column.shape != expected and not (
                column.is_empty() and expected[0] * expected[1] == 0
            ):
                raise ValueError(
                    f"{self.name}: argument {self.arguments[i]!r} has shape {column.shape}, "
                    f"expected {expected} (CasADi values carry no batch axes)"
                )
            columns.append(column)
        results = self.function.call(columns)
        return results[0] if self._result_type is None else self._result_type(*results)

    def _numeric(self, values: tuple[Value, ...]) -> Any:
        arrays = [
            value
            if type(value) is np.ndarray and value.dtype == np.float64
            else self._as_array(i, value)
            for i, value in enumerate(values)
        ]
        batch: Shape = ()
        for i, (array, shape) in enumerate(zip(arrays, self.argument_shapes, strict=True)):
            if array.shape == shape:
                continue
            lead = array.ndim - len(shape)
            if lead < 0 or array.shape[lead:] != shape:
                raise ValueError(
                    f"{self.name}: argument {self.arguments[i]!r} has shape {array.shape}, "
                    f"expected {format_shape(shape, batch=True)}"
                )
            try:
                batch = np.broadcast_shapes(batch, array.shape[:lead])
            except ValueError:
                raise ValueError(
                    f"{self.name}: batch axes {array.shape[:lead]} of {self.arguments[i]!r} "
                    f"do not broadcast with {batch}"
                ) from None
        state = self._local.__dict__.get("state") or self._make_state()
        inputs, outputs, evaluate = state
        if batch == ():
            for target, array in zip(inputs, arrays, strict=True):
                target[...] = array
            evaluate()
            results = [np.array(view) for view in outputs]
        else:
            results = self._evaluate_batch(arrays, batch, inputs, outputs, evaluate)
        return results[0] if self._result_type is None else self._result_type(*results)

    def _evaluate_batch(self, arrays, batch, inputs, outputs, evaluate) -> list[np.ndarray]:
        count = int(np.prod(batch))
        flat = [
            np.broadcast_to(array, batch + shape).reshape((count, *shape))
            for array, shape in zip(arrays, self.argument_shapes, strict=True)
        ]
        results = [np.empty((count, *shape)) for shape in self.result_shapes]
        for k in range(count):
            for target, array in zip(inputs, flat, strict=True):
                target[...] = array[k]
            evaluate()
            for result, view in zip(results, outputs, strict=True):
                result[k] = view
        return [
            result.reshape(batch + shape)
            for result, shape in zip(results, self.result_shapes, strict=True)
        ]

    def _as_array(self, i: int, value: Any) -> np.ndarray:
        try:
            return np.asarray(value, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"{self.name}: argument {self.arguments[i]!r} must be numbers or a CasADi "
                f"expression, not {type(value).__name__}"
            ) from None

    def _make_state(self) -> tuple[list[np.ndarray], list[np.ndarray], Callable[[], None]]:
        """Per-thread buffers; views have NumPy's axis order, memory CasADi's column order."""
        buffer, evaluate = self.function.buffer()
        inputs, outputs = [], []
        for i, (name, shape) in enumerate(zip(self.arguments, self.argument_shapes, strict=True)):
            memory, view = self._make_memory(name, shape)
            if memory.size:
                buffer.set_arg(i, memoryview(memory))
            inputs.append(view)
        for i, (name, shape) in enumerate(zip(self.results, self.result_shapes, strict=True)):
            memory, view = self._make_memory(name, shape)
            if memory.size:
                buffer.set_res(i, memoryview(memory))
            outputs.append(view)
        self._local.buffer = buffer  # keeps the memory registered with CasADi alive
        self._local.state = (inputs, outputs, evaluate)
        return self._local.state

    def _make_memory(self, name: str, shape: Shape) -> tuple[np.ndarray, np.ndarray]:
        if name in self.transposed:
            memory = np.zeros(shape)
            return memory, memory
        memory = np.zeros(shape[::-1])
        return memory, memory.T


def trace(
    name: str,
    build: Callable[..., Any],
    arguments: Mapping[str, Shape],
    results: Mapping[str, Shape] | Sequence[str],
    *,
    defaults: Mapping[str, Any] | None = None,
    symbol: type = ca.SX,
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

    Returns
    -------
    ModelFunction

    Examples
    --------
    >>> dot = trace("dot", lambda a, b: ca.dot(a, b), {"a": (2,), "b": (2,)}, {"c": ()})
    >>> float(dot([1, 2], [3, 4]))
    11.0
    """
    symbols = [symbol.sym(key, *(shape or (1,))) for key, shape in arguments.items()]
    built = build(*symbols)
    built = list(built) if isinstance(built, list | tuple) else [built]
    if len(built) != len(results):
        raise ValueError(f"{name} returned {len(built)} values, expected {', '.join(results)}")
    built = [symbol(expression) for expression in built]
    if symbol is ca.SX:
        built = ca.cse(built)
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


def _default_shape(size: tuple[int, int]) -> Shape:
    return (size[0],) if size[1] == 1 else (size[0], size[1])


def _dense(function: ca.Function) -> ca.Function:
    """Give every argument and result its full storage, which NumPy buffers need."""
    if all(function.sparsity_in(i).is_dense() for i in range(function.n_in())) and all(
        function.sparsity_out(i).is_dense() for i in range(function.n_out())
    ):
        return function
    symbol = ca.SX if function.is_a("SXFunction") else ca.MX
    names_in, names_out = function.name_in(), function.name_out()
    symbols = [symbol.sym(n, *function.size_in(i)) for i, n in enumerate(names_in)]
    results = [ca.densify(result) for result in function.call(symbols, symbol is ca.SX, False)]
    return ca.Function(function.name(), symbols, results, names_in, names_out)


def _to_dm(value: Any) -> ca.DM:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim > 2:
        raise ValueError(
            f"an array of shape {array.shape} cannot be mixed with CasADi values: "
            "pass one column (or one matrix) at a time"
        )
    return ca.DM(array)


def _rebuild(
    function: ca.Function, shapes: dict, defaults: dict, transposed: frozenset[str]
) -> ModelFunction:
    return ModelFunction(function, shapes=shapes, defaults=defaults, transposed=transposed)

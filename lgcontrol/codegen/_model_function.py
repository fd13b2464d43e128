"""ModelFunction: a CasADi function that takes NumPy (with batch axes), DM, SX and MX."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, Never

import casadi as ca
import numpy as np

from ._backend import Backend, Wanted, build
from ._export import Schedule, export_function
from ._frame import (
    NOT_PLAIN,
    Binding,
    CallFrame,
    Layout,
    bind_interpreter,
    bind_kernel,
    evaluator,
    find_binder,
    pieces,
)
from ._interrupt import interruptible
from ._linear import check_serial
from ._program import Chain, Program, solver_in
from ._threads import run_batch, thread_count
from ._types import Shape, Value
from ._validate import UnknownNameError, format_shape, unknown_name

_FLOAT = np.dtype(np.float64)
_CASADI = (ca.SX, ca.MX, ca.DM)


class ModelFunction:
    """A named function of named arguments; NumPy in → NumPy out, symbols in → symbols out.

    Parameters
    ----------
    function : casadi.Function
        The function. Its input and output names become the argument and result names.
    shapes : mapping of str to tuple of int, optional
        NumPy shapes of arguments and results, where they are not the default. The default of
        an n × 1 argument is ``(n,)``, of an m × n argument ``(m, n)``. A scalar is ``()``. A tensor
        ``(m, n, k)`` is in CasADi the m × n k matrix of its slices ``[T[:, :, 0], T[:, :, 1], …]``.
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

    A function is interpreted until `compiled` is called, a loop of the toolkit prepares it, or a
    batch comes that is worth a build (`set_compile_policy`). Compiled, a call with arrays adds
    less than a microsecond to the function itself, and `in_place` a tenth of that. In batches, one
    instruction evaluates several items. Results agree to rounding in all cases.

    Examples
    --------
    >>> x = ca.SX.sym("x", 2)
    >>> square = ModelFunction(ca.Function("square", [x], [x * x], ["x"], ["y"]))
    >>> square([1.0, 3.0])
    array([1., 9.])
    >>> square(np.ones((5, 2))).shape
    (5, 2)
    """

    _known: tuple[str, ...] = ()  # members of a subclass that copies are told

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
        self._function = function
        self.name: str = function.name()
        self.arguments: tuple[str, ...] = tuple(function.name_in())
        self.results: tuple[str, ...] = tuple(function.name_out())
        for name in (*shapes, *self.transposed):
            if name not in self.arguments + self.results:
                raise UnknownNameError(
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
        sizes = [function.numel_in(i) for i in range(function.n_in())]
        sizes += [function.numel_out(i) for i in range(function.n_out())]
        named = zip(
            self.arguments + self.results, self.argument_shapes + self.result_shapes, strict=True
        )
        for (name, shape), size in zip(named, sizes, strict=True):
            if prod(shape) != size:
                raise ValueError(
                    f"{self.name}: {name!r} is to have shape {shape} but has {size} entries"
                )
        self.defaults: dict[str, np.ndarray] = {
            name: np.asarray(value, dtype=np.float64) for name, value in (defaults or {}).items()
        }
        self._shapes = shapes
        self._result_type = (
            _result_type(f"{self.name}_result", self.results) if len(self.results) > 1 else None
        )
        self._inputs = self._layouts(self.arguments, self.argument_shapes)
        self._outputs = self._layouts(self.results, self.result_shapes)
        self._count = len(self.arguments)
        self._steps = 1
        self._backend = Backend(Program(function))
        self._chained: dict[Chain, Program] = {}  # programs of its chains

    def __call__(self, *values: Value, **named: Value) -> Any:
        """Evaluate; one result is returned as it is, several as a named tuple."""
        if named or len(values) != self._count:
            values = self._bind(values, named)
        # Frames are taken from a list and put back, which is safe with threads and reentrance.
        frames = self._backend.frames
        try:
            frame = frames.pop()
        except IndexError:
            frame = self._make_frame()
        status = frame.run(values)
        if status:
            frames.append(frame)
            if status == NOT_PLAIN:
                return self._general(values)
            raise self._failure()
        if self._result_type is None:
            result = frame.take[0]()
        else:
            result = tuple.__new__(self._result_type, [take() for take in frame.take])
        frames.append(frame)
        return result

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
        """Compiled code is found or built again where the copy is first called."""
        check_serial(self.function)
        known = {key: getattr(self, key) for key in self._known}
        state = (type(self), self.function, self._shapes, self.defaults, self.transposed, known)
        return _rebuild, (*state, self._backend.wanted)

    @interruptible
    def compiled(self, *, batch: bool = True, contract: bool = True) -> ModelFunction:
        """Compile now, so that later calls run machine code; returns this function itself.

        See `lgcontrol.codegen.compile`, which does this for several functions at once.

        Parameters
        ----------
        batch : bool
            Whether to build the code for batches too.
        contract : bool
            Whether products and sums may be fused.

        Returns
        -------
        ModelFunction
            The same object. If it cannot be compiled, a notice says so and it stays interpreted.

        Examples
        --------
        >>> x = ca.SX.sym("x", 2)
        >>> square = ModelFunction(ca.Function("square", [x], [x * x], ["x"], ["y"])).compiled()
        >>> square([1.0, 3.0])
        array([1., 9.])
        """
        self._backend.request(batch=batch, contract=contract)
        build([self._backend])
        return self

    @property
    def is_compiled(self) -> bool:
        """Whether single calls run machine code."""
        return self._backend.scalar is not None

    def in_place(self, batch: int | None = None, *, shared: Sequence[str] = ()) -> InPlaceCall:
        """Make a call with memory of its own, for loops: write inputs, call, read results.

        It runs compiled code if the function is compiled at this moment, and belongs to one
        thread at a time.

        Parameters
        ----------
        batch : int, optional
            Number of items that each call evaluates; inputs and results then have a first axis
            of this length.
        shared : sequence of str
            Arguments that all items share, without that axis.

        Returns
        -------
        InPlaceCall

        Examples
        --------
        >>> x = ca.SX.sym("x", 2)
        >>> square = ModelFunction(ca.Function("square", [x], [x * x], ["x"], ["y"]))
        >>> call = square.in_place()
        >>> call.inputs["x"][:] = [1.0, 3.0]
        >>> call()
        array([1., 9.])
        """
        return InPlaceCall(self, batch, shared)

    @interruptible
    def export_c(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        labels: Mapping[str, Sequence[tuple[str, str]]] | None = None,
        examples: Sequence[Mapping[str, Any]] | None = None,
        about: Sequence[str] = (),
        schedule: Schedule | None = None,
    ) -> Path:
        """Write the function as plain C99 that needs nothing else, for firmware.

        The folder holds a source and its header, test vectors, an example that checks them and
        prints sizes, and a CMakeLists.txt. Scalars are passed by value, all else by pointer.

        Parameters
        ----------
        folder : path
            New, empty, or exported before; it appears whole or not at all.
        name : str, optional
            Of the C function and its files; that of this function if left out.
        labels : mapping of str to sequence of (name, unit), optional
            What the entries of arguments and results are; constants of the header.
        examples : sequence of mapping, optional
            Arguments of the test vectors by name; random numbers if left out.
        about : sequence of str
            Lines for the head of the header.
        schedule : Schedule, optional
            Arguments that the C function looks up in a table, by the time it is given.

        Returns
        -------
        Path

        Raises
        ------
        FileExistsError
            If the folder holds anything that was not exported, or was changed since.
        NotImplementedError
            If the function holds more than scalar and matrix operations.

        Examples
        --------
        >>> x = ca.SX.sym("x", 2)
        >>> square = ModelFunction(ca.Function("square", [x], [x * x], ["x"], ["y"]))
        >>> sorted(path.name for path in square.export_c("square_c").iterdir())[:3]
        ['CMakeLists.txt', 'MANIFEST.sha256', 'main.c']
        """
        return export_function(self, folder, name, labels or {}, examples, about, schedule)

    @property
    def program(self) -> Program:
        """Instructions that machine code is written from, for those who write more around them."""
        return self._backend.program

    @property
    def function(self) -> ca.Function:
        """The casadi.Function."""
        return self._function

    @property
    def instructions(self) -> int:
        """Number of CasADi instructions: the operation count of the function."""
        function = self.function
        if function.is_a("SXFunction") or function.is_a("MXFunction"):
            return function.n_instructions()
        return self._backend.program.operations  # of a map, say

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
            column = value if isinstance(value, _CASADI) else _to_dm(value)
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

    def _general(self, values: tuple[Value, ...]) -> Any:
        """Evaluate CasADi values, anything that is to be converted, and batches."""
        for value in values:
            if isinstance(value, _CASADI):
                return self._symbolic(values)
        arrays = [
            value
            if value.__class__ is np.ndarray and value.dtype is _FLOAT
            else self._as_array(i, value)
            for i, value in enumerate(values)
        ]
        batch: Shape = ()
        for i, (array, shape) in enumerate(zip(arrays, self.argument_shapes, strict=True)):
            lead = array.ndim - len(shape)
            if lead < 0 or array.shape[lead:] != shape:
                raise ValueError(
                    f"{self.name}: argument {self.arguments[i]!r} has shape {array.shape}, "
                    f"expected {format_shape(shape, batch=True)}"
                )
            if lead == 0 or array.shape[:lead] == batch:
                continue
            if not batch:
                batch = array.shape[:lead]
                continue
            try:
                batch = np.broadcast_shapes(batch, array.shape[:lead])
            except ValueError:
                raise ValueError(
                    f"{self.name}: batch axes {array.shape[:lead]} of {self.arguments[i]!r} "
                    f"do not broadcast with {batch}"
                ) from None
        if batch == ():
            # Copies with the type itself pass the quick test of `__call__` for certain.
            scalars = [a.item() if a.ndim == 0 else a.astype(_FLOAT) for a in arrays]
            return ModelFunction.__call__(self, *scalars)
        results = _evaluate_batch(self, arrays, batch)
        return results[0] if self._result_type is None else self._result_type(*results)

    def _as_array(self, i: int, value: Any) -> np.ndarray:
        try:
            if not np.iscomplexobj(value):
                return np.asarray(value, dtype=_FLOAT)
            kind = "complex numbers"
        except (TypeError, ValueError):
            kind = type(value).__name__
        raise TypeError(
            f"{self.name}: argument {self.arguments[i]!r} must be numbers or a CasADi "
            f"expression, not {kind}"
        )

    def _layouts(self, names: Sequence[str], shapes: Sequence[Shape]) -> tuple[Layout, ...]:
        return tuple(
            Layout(shape, name not in self.transposed)
            for name, shape in zip(names, shapes, strict=True)
        )

    def _make_frame(self) -> CallFrame:
        self._backend.prepare_single(self._steps)
        return CallFrame(self._inputs, self._outputs, self._bind_memory)

    def _bind_memory(self, arguments: list[np.ndarray], results: list[np.ndarray]) -> Binding:
        items = len(results[0])
        kernel = self._backend.kernel_for(items)
        if kernel is not None:
            return bind_kernel(kernel, self._steps, self._backend.program, arguments, results)
        if items > 1:
            return Binding(partial(_interpret, self, arguments, results), None)
        return bind_interpreter(self.function, arguments, results)

    def _failure(self) -> RuntimeError:
        solver = solver_in(self._backend.program.function)
        cause = "memory ran out" if solver is None else f"{solver} inside it failed"
        return RuntimeError(f"{self.name} could not be evaluated: {cause}")


class InPlaceCall:
    """Evaluate without any copy: write into `inputs`, call, read the results.

    Made by `ModelFunction.in_place`. A call takes nothing and returns the result memory, as a named
    tuple if there are several. Each overwrites the results of the call before: copy what must last.
    For one thread at a time; make one per thread.

    Parameters
    ----------
    batch : int or None
        Items that each call evaluates; None for one without an axis of items.
    shared : sequence of str
        Arguments that all items share.

    Attributes
    ----------
    inputs : dict of str to ndarray
        Memory of the arguments, defaults filled in; write with ``inputs["q"][...] = q``.
    results : dict of str to ndarray
        Memory of the results.
    """

    # Python finds `__call__` in the class and gets from its slot what is to be called: a compiled
    # function without a frame of Python around it.
    __slots__ = ("__call__", "inputs", "results")
    __call__: Callable[[], Any]

    def __init__(
        self, function: ModelFunction, batch: int | None = None, shared: Sequence[str] = ()
    ) -> None:
        for name in shared:
            if name not in function.arguments:
                raise UnknownNameError(
                    unknown_name(f"argument of {function.name}", name, function.arguments)
                )
        if batch is not None and batch < 1:
            raise ValueError(f"batch must be at least 1, or None for single calls, got {batch}")
        items = batch or 1
        given = list(zip(function.arguments, function._inputs, strict=True))
        wanted = list(zip(function.results, function._outputs, strict=True))
        arguments = [
            np.zeros((1 if name in shared else items, *layout.stored)) for name, layout in given
        ]
        results = [np.zeros((items, *layout.stored)) for _, layout in wanted]
        if items == 1:
            function._backend.prepare_single(function._steps)
        else:
            function._backend.prepare_batch(items * function._steps)
        binding = function._bind_memory(arguments, results)
        self.inputs: dict[str, np.ndarray] = {
            name: layout.view(memory)[0 if batch is None or name in shared else slice(None), ...]
            for (name, layout), memory in zip(given, arguments, strict=True)
        }
        self.results: dict[str, np.ndarray] = {
            name: layout.view(memory)[0 if batch is None else slice(None), ...]
            for (name, layout), memory in zip(wanted, results, strict=True)
        }
        for name, value in function.defaults.items():
            self.inputs[name][...] = value
        views = tuple(self.results.values())
        value = views[0] if function._result_type is None else function._result_type(*views)

        def fail() -> Never:
            raise function._failure()

        def evaluate() -> Any:
            return fail() if binding.evaluate() else value

        binder = None if binding.entry is None else find_binder()
        if binding.entry is None or binder is None:
            self.__call__ = evaluate
        else:
            self.__call__ = evaluator(binder, *binding.entry, value, fail, binding.keep)


def _evaluate_batch(
    function: ModelFunction, arrays: list[np.ndarray], batch: Shape
) -> list[np.ndarray]:
    """Evaluate on float64 arrays whose leading axes broadcast to `batch`."""
    count = prod(batch)
    arguments = [
        _items(array, layout, batch, count)
        for array, layout in zip(arrays, function._inputs, strict=True)
    ]
    results = [np.empty((count, *layout.stored)) for layout in function._outputs]
    if count:
        backend = function._backend
        backend.prepare_batch(count * function._steps)
        kernel = backend.kernel_for(count)
        if kernel is None:
            failed = _interpret(function, arguments, results)
        else:
            program, group = backend.program, kernel.width * thread_count()
            of = program.chain, function._steps, program.operations, group
            failed = 0
            for piece in pieces(*of, arguments, results):
                steps = piece.steps
                failed = failed or run_batch(kernel, steps, program.operations, *piece[1:])
        if failed:
            raise function._failure()
    return [
        layout.view(result).reshape(batch + layout.shape)
        for result, layout in zip(results, function._outputs, strict=True)
    ]


def _interpret(
    function: ModelFunction, arguments: list[np.ndarray], results: list[np.ndarray]
) -> int:
    """Evaluate item after item with the means for single calls; returns the first failure."""
    frames = function._backend.frames
    try:
        frame = frames.pop()
    except IndexError:
        frame = function._make_frame()
    given = [
        layout.view(memory) for layout, memory in zip(function._inputs, arguments, strict=True)
    ]
    wanted = [
        layout.view(memory) for layout, memory in zip(function._outputs, results, strict=True)
    ]
    for k in range(len(results[0])):
        for (target, _), items in zip(frame.inputs, given, strict=True):
            target[...] = items[k if len(items) > 1 else 0]
        failed = frame.evaluate()
        if failed:
            return failed
        for items, view in zip(wanted, frame.outputs, strict=True):
            items[k] = view
    frames.append(frame)
    return 0


def _items(array: np.ndarray, layout: Layout, batch: Shape, count: int) -> np.ndarray:
    """Memory of all items, or of one if all share it."""
    lead = array.shape[: array.ndim - len(layout.shape)]
    if lead != batch:
        if prod(lead) == 1:
            count = 1
        else:
            array = np.broadcast_to(array, batch + layout.shape)
    return layout.store(array.reshape((count, *layout.shape)))


def _result_type(name: str, results: tuple[str, ...]) -> Any:
    """Named tuple of several results, which pickles although its class has no module."""
    made: Any = namedtuple(name, results)
    made.__reduce__ = lambda self: (_result, (name, results, tuple(self)))
    return made


def _result(name: str, results: tuple[str, ...], values: tuple[Any, ...]) -> Any:
    return _result_type(name, results)(*values)


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
    symbols: list[Any] = [symbol.sym(n, *function.size_in(i)) for i, n in enumerate(names_in)]
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
    kind: type[ModelFunction],
    function: ca.Function,
    shapes: dict,
    defaults: dict,
    transposed: frozenset[str],
    known: dict[str, Any],
    wanted: Wanted,
) -> ModelFunction:
    made = kind.__new__(kind)
    ModelFunction.__init__(made, function, shapes=shapes, defaults=defaults, transposed=transposed)
    made.__dict__.update(known)
    made._backend.wanted = wanted
    return made

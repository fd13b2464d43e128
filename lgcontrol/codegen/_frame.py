"""Frames: memory of arguments and results, the loader that fills it, and what evaluates on it.

Python takes 0.2 µs to check an array and copy it, and ctypes 0.2 µs for a call; functions that
Python itself calls take a quarter. What they need of Python's stable interface is declared in the
source, so that no header files are needed.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ._cache import UnsafeFolder
from ._compiler import BuildError, find_compiler
from ._kernel import Kernel, Table, address_of_entry, run_of
from ._library import find_or_build, key_of
from ._notice import notice
from ._program import Chain, Program, solver_in
from ._types import Shape

NOT_PLAIN = -1
"""Status of `Loader` for arguments that are no float64 arrays of the shape, nor floats."""

_SOURCE = """\
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef struct _object PyObject;
typedef struct {
  void *buf; PyObject *obj; ptrdiff_t len, itemsize; int readonly, ndim; char *format;
  ptrdiff_t *shape, *strides, *suboffsets; void *internal;
} Py_buffer;
extern int PyObject_CheckBuffer(PyObject *);
extern int PyObject_GetBuffer(PyObject *, Py_buffer *, int);
extern void PyBuffer_Release(Py_buffer *);
extern void PyErr_Clear(void);
extern ptrdiff_t PyTuple_Size(PyObject *);
extern PyObject *PyTuple_GetItem(PyObject *, ptrdiff_t);
extern PyObject *PyObject_Type(PyObject *);
extern void Py_DecRef(PyObject *);
extern double PyFloat_AsDouble(PyObject *);
extern void *PyLong_AsVoidPtr(PyObject *);
extern PyObject *PyLong_FromLong(long);
extern void Py_IncRef(PyObject *);
extern PyObject *PyObject_CallObject(PyObject *, PyObject *);
typedef struct {
  const char *name; PyObject *(*call)(PyObject *, PyObject *); int kind; const char *doc;
} PyMethodDef;
extern PyObject *PyCFunction_NewEx(PyMethodDef *, PyObject *, PyObject *);
extern char PyFloat_Type[];
enum { STRIDES_AND_FORMAT = 0x1c, NO_ARGUMENTS = 4, ONE_ARGUMENT = 8, NOT_PLAIN = -1 };
typedef struct { double *to; int64_t ndim, shape[2], step[2]; } lg_slot;

static int lg_read(const lg_slot *s, PyObject *value)
{
  if (!PyObject_CheckBuffer(value)) {
    if (s->ndim) return NOT_PLAIN;
    PyObject *type = PyObject_Type(value);
    const int is_float = (char *)type == PyFloat_Type;
    Py_DecRef(type);
    if (!is_float) return NOT_PLAIN;
    *s->to = PyFloat_AsDouble(value);
    return 0;
  }
  Py_buffer b;
  if (PyObject_GetBuffer(value, &b, STRIDES_AND_FORMAT)) {
    PyErr_Clear();
    return NOT_PLAIN;
  }
  int fits = b.ndim == s->ndim && b.format && b.format[0] == 'd' && !b.format[1];
  for (int i = 0; fits && i < b.ndim; i++) fits = b.shape[i] == s->shape[i];
  if (fits) {
    const int64_t rows = s->ndim > 0 ? s->shape[0] : 1, columns = s->ndim > 1 ? s->shape[1] : 1;
    const int64_t down = s->ndim > 0 ? b.strides[0] : 0, right = s->ndim > 1 ? b.strides[1] : 0;
    if (s->ndim == 1 && down == sizeof(double)) {
      memcpy(s->to, b.buf, rows * sizeof(double));
    } else {
      for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
          memcpy(s->to + i * s->step[0] + j * s->step[1],
                 (const char *)b.buf + i * down + j * right, sizeof(double));
    }
  }
  PyBuffer_Release(&b);
  return fits ? 0 : NOT_PLAIN;
}

/* f: number of arguments, entry point or 0, its table, slots. */
static int lg_load(const int64_t *f, PyObject *values)
{
  const lg_slot *slots = (const lg_slot *)(f + 3);
  if (PyTuple_Size(values) != f[0]) return NOT_PLAIN;
  for (int64_t i = 0; i < f[0]; i++)
    if (lg_read(slots + i, PyTuple_GetItem(values, i))) return NOT_PLAIN;
  int (*run)(const int64_t *) = (int (*)(const int64_t *))(intptr_t)f[1];
  return run ? run((const int64_t *)(intptr_t)f[2]) : 0;
}

/* bound: address of f, what must live. */
static PyObject *lg_call(PyObject *bound, PyObject *values)
{
  return PyLong_FromLong(lg_load(PyLong_AsVoidPtr(PyTuple_GetItem(bound, 0)), values));
}

/* bound: entry point, its table, what is returned, what raises after a failure, what must live. */
static PyObject *lg_evaluate(PyObject *bound, PyObject *nothing)
{
  int (*run)(const int64_t *) =
    (int (*)(const int64_t *))PyLong_AsVoidPtr(PyTuple_GetItem(bound, 0));
  (void)nothing;
  if (run(PyLong_AsVoidPtr(PyTuple_GetItem(bound, 1))))
    return PyObject_CallObject(PyTuple_GetItem(bound, 3), 0);
  PyObject *value = PyTuple_GetItem(bound, 2);
  Py_IncRef(value);
  return value;
}

static PyMethodDef lg_methods[] = {
  {"load", lg_call, ONE_ARGUMENT, 0}, {"evaluate", lg_evaluate, NO_ARGUMENTS, 0},
};

extern __attribute__((visibility("default"))) PyObject *lg_bind(int method, PyObject *bound)
{
  return PyCFunction_NewEx(lg_methods + method, bound, 0);
}
"""

Bind = Callable[[int, tuple], Any]
"""Makes a Python function of one of the library's and of what is bound to it."""

_LOAD, _EVALUATE = range(2)
# Operations of one call into C, some 50 ms.
LONGEST_PIECE = 200_000_000
_FLOAT = np.dtype(np.float64)


def loader(
    bind: Bind, targets: Sequence[tuple[np.ndarray, Shape]], run: Any, table: int, keep: object
) -> Callable[[tuple], int]:
    """``load(values) → status``: reads the arguments of a call into memory, then evaluates.

    Values go to the `targets`, views in NumPy's order. `run` is the entry of a kernel that is
    called without giving way to other threads, None to read only; `keep` lives as long as the
    result.
    """
    numbers = [len(targets), address_of_entry(run), table]
    for view, shape in targets:
        steps = [stride // view.itemsize for stride in view.strides]
        numbers += [view.ctypes.data, len(shape), *_pair(shape), *_pair(steps)]
    memory = (ctypes.c_int64 * len(numbers))(*numbers)
    return bind(_LOAD, (ctypes.addressof(memory), memory, targets, run, keep))


def evaluator(
    bind: Bind, run: Any, table: int, value: object, fail: Callable[[], object], keep: object
) -> Callable[[], Any]:
    """``evaluate() → value``: calls a kernel; what `fail` does where that fails.

    `run` is the entry of a kernel that is called without giving way to other threads; `keep` lives
    as long as the result.
    """
    return bind(_EVALUATE, (address_of_entry(run), table, value, fail, run, keep))


@cache
def find_binder() -> Bind | None:
    """Return what binds functions of the compiled loader; None where it cannot be had."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    try:
        compiler = find_compiler()
        if compiler is None:
            return None
        flags = compiler.flags(0, True)
        bind, _ = find_or_build(
            "arguments",
            key_of(compiler, flags, [_SOURCE]),
            compiler,
            [flags],
            write=lambda: _SOURCE,
            load=_open,
            check=_check,
            about={},
        )
    except (BuildError, OSError, UnsafeFolder) as error:
        notice("loader", f"calls take about a microsecond longer: {error}")
        return None
    return bind


def _open(path: Path) -> Bind:
    bind = ctypes.PyDLL(str(path))["lg_bind"]
    bind.argtypes, bind.restype = [ctypes.c_int, ctypes.py_object], ctypes.py_object
    return bind  # type: ignore[return-value]


def _check(bind: Bind) -> str | None:
    """Read a scalar, a vector and a matrix that is not contiguous."""
    memory = [np.zeros(()), np.zeros(3), np.zeros((3, 2)).T]
    values = (2.5, np.arange(3.0), np.arange(12.0).reshape(4, 3)[::2])
    load = loader(bind, [(m, m.shape) for m in memory], None, 0, None)
    if load(values) == 0 and all(
        np.array_equal(m, value) for m, value in zip(memory, values, strict=True)
    ):
        return None
    return "does not read arguments as it should"


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    first, second, *_ = (*numbers, 0, 0)
    return first, second


class Layout:
    """Shape of one item as NumPy sees it, and whether memory holds its transpose.

    Parameters
    ----------
    shape : tuple of int
        Any number of axes. CasADi has matrices only: a tensor ``T[i, j, k]`` is the matrix of its
        slices ``[T[:, :, 0], T[:, :, 1], …]``, which in memory is the same.
    by_columns : bool
        Whether the memory is CasADi's column order; else (lists of vectors) NumPy's row order.

    Attributes
    ----------
    stored : tuple of int
        Shape of one item in memory, row order.
    is_turned : bool
        Whether axes are in reverse order between memory and NumPy.
    """

    __slots__ = ("is_turned", "shape", "stored")

    def __init__(self, shape: Shape, by_columns: bool = True) -> None:
        self.shape = shape
        self.stored: Shape = shape[::-1] if by_columns else shape
        self.is_turned = by_columns and len(shape) >= 2

    def view(self, memory: np.ndarray) -> np.ndarray:
        """Items in memory, ``(n, *stored)``, as items in NumPy's order, ``(n, *shape)``."""
        return _reverse(memory) if self.is_turned else memory

    def store(self, items: np.ndarray) -> np.ndarray:
        """Contiguous memory of items ``(n, *shape)``: the array itself where possible."""
        return np.ascontiguousarray(_reverse(items) if self.is_turned else items)


def _reverse(items: np.ndarray) -> np.ndarray:
    return items.transpose(0, *range(items.ndim - 1, 0, -1))


class Piece(NamedTuple):
    """Some items, or some steps of all items.

    Arguments and results are views of the memory of the whole call, items along the first axis.
    """

    steps: int
    arguments: list[np.ndarray]
    results: list[np.ndarray]


def pieces(
    chain: Chain | None,
    steps: int,
    operations: int,
    group: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> list[Piece]:
    """Cut a call into pieces of at most `LONGEST_PIECE` operations, or of one step of one group.

    In the order in which they must be evaluated. `operations` are those of one step of one item,
    `group` the items that are evaluated at once.
    """
    whole = Piece(steps, arguments, results)
    items = len(results[0])
    if operations * items * steps <= LONGEST_PIECE:
        return [whole]
    most = group * max(1, LONGEST_PIECE // (operations * group))
    found = []
    for first in range(0, items, most):
        part = slice(first, first + most)
        given = [array[part] if len(array) > 1 else array for array in arguments]
        made = [array[part] for array in results]
        if chain is None:
            found.append(Piece(steps, given, made))
        else:
            found += _in_steps(chain, steps, operations, given, made)
    return found


def _in_steps(
    chain: Chain,
    steps: int,
    operations: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> list[Piece]:
    """Some steps of all items after each other; each piece starts where the one before ended."""
    most = max(1, LONGEST_PIECE // (operations * len(results[0])))
    found, state = [], arguments[chain.argument]
    for first in range(0, steps, most):
        part = slice(first, min(first + most, steps))
        given = [a[:, part] if i in chain.each else a for i, a in enumerate(arguments)]
        given[chain.argument] = state
        made = [result[:, part] for result in results]
        found.append(Piece(part.stop - part.start, given, made))
        state = made[chain.result][:, -1]
    return found


@dataclass(frozen=True)
class Binding:
    """What evaluates on memory.

    `evaluate` returns zero or None when all went well; `keep` lives as long as calls are made.
    `entry` is entry point and table of a kernel that is short enough to hold up other threads.
    """

    evaluate: Callable[[], Any]
    keep: Any
    entry: tuple[Any, int] | None = None


class CallFrame:
    """Argument and result memory with what evaluates on it; used by one thread at a time.

    Attributes
    ----------
    run : callable
        ``run(values) → status``: takes a tuple of arguments and evaluates. The status is 0 or None,
        `NOT_PLAIN` for values that are not float64 arrays of the right shape, or positive when the
        evaluation failed.
    inputs : tuple of (ndarray, shape)
        A view to write to, with the shape it takes.
    outputs : tuple of ndarray
        Views to read.
    take : tuple of callable
        Copies of the outputs, in their memory order.
    evaluate : callable
        Evaluates what is in the inputs; returns zero or None when all went well.
    """

    __slots__ = ("_keep", "evaluate", "inputs", "outputs", "run", "take")

    def __init__(
        self,
        inputs: Sequence[Layout],
        outputs: Sequence[Layout],
        bind: Callable[[list[np.ndarray], list[np.ndarray]], Binding],
    ) -> None:
        arguments = [np.zeros((1, *layout.stored)) for layout in inputs]
        results = [np.zeros((1, *layout.stored)) for layout in outputs]
        binding = bind(arguments, results)
        self.evaluate = binding.evaluate
        self.inputs = tuple(
            (layout.view(memory)[0, ...], layout.shape)
            for layout, memory in zip(inputs, arguments, strict=True)
        )
        self.outputs = tuple(
            layout.view(memory)[0, ...] for layout, memory in zip(outputs, results, strict=True)
        )
        self.take = tuple(
            view.copy if view.ndim < 2 else partial(view.copy, "K") for view in self.outputs
        )
        self.run: Callable[[tuple], int | None] = self._run_in_python
        binder = None if binding.entry is None else find_binder()
        if binding.entry is not None and binder is not None:
            self.run = loader(binder, self.inputs, *binding.entry, binding.keep)
        self._keep = binding.keep

    def _run_in_python(self, values: tuple) -> int | None:
        try:
            for value, (target, shape) in zip(values, self.inputs):  # noqa: B905 - counted before
                if shape:
                    if value.shape == shape and value.dtype is _FLOAT:
                        target[...] = value
                        continue
                elif value.__class__ is float:
                    target[...] = value
                    continue
                return NOT_PLAIN
        except AttributeError:  # a list, or another thing without shape
            return NOT_PLAIN
        return self.evaluate()


def bind_interpreter(
    function: ca.Function, arguments: list[np.ndarray], results: list[np.ndarray]
) -> Binding:
    """Evaluate with CasADi's virtual machine."""
    buffer, evaluate = function.buffer()
    registers: list[tuple[Any, list[np.ndarray]]] = [
        (buffer.set_arg, arguments),
        (buffer.set_res, results),
    ]
    for register, arrays in registers:
        for i, memory in enumerate(arrays):
            if memory.size:
                register(i, memory.data)
    keep = (buffer, arguments, results)
    if function.is_a("SXFunction"):
        return Binding(evaluate, keep)
    can_fail = solver_in(function) is not None

    def evaluate_checked() -> int:
        evaluate()
        status = buffer.ret()
        if status == 0 or can_fail:
            return status
        for memory in results:  # linear equations are singular: no numbers, as in compiled code
            memory.fill(np.nan)
        return 0

    return Binding(evaluate_checked, keep)


def bind_kernel(
    kernel: Kernel,
    steps: int,
    program: Program,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> Binding:
    """Evaluate with compiled code; the first axis of every array are the items."""
    items, operations = len(results[0]), program.operations
    parts = pieces(program.chain, steps, operations, kernel.width, arguments, results)
    if len(parts) > 1:
        tables = [Table(len(p.results[0]), p.steps, p.arguments, p.results) for p in parts]
        return Binding(lambda: next((s for t in tables if (s := t.run(kernel.run))), 0), tables)
    table = Table(items, steps, arguments, results)
    total = operations * items * steps
    run = run_of(kernel, total)
    entry = (run, table.address) if run is kernel.run_short else None
    return Binding(partial(run, table.address), (table, kernel), entry)

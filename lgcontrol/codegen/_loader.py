"""Loader: compiled code that reads Python arguments into memory and evaluates.

Python takes 0.2 µs to check an array and copy it, and ctypes 0.2 µs for a call; functions that
Python itself calls take a quarter. What they need of Python's stable interface is declared in the
source, so that no header files are needed.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ._cache import UnsafeFolder
from ._compiler import BuildError, find_compiler
from ._library import find_or_build, key_of
from ._notice import notice
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


def loader(
    bind: Bind, targets: Sequence[tuple[np.ndarray, Shape]], run: Any, table: int, keep: object
) -> Callable[[tuple], int]:
    """``load(values) → status``: reads the arguments of a call into memory, then evaluates.

    Parameters
    ----------
    bind : callable
        Of `find_binder`.
    targets : sequence of (ndarray, shape)
        Views in NumPy's order to write to.
    run : callable
        Entry point of a kernel that is called without giving way to other threads; None to read
        only.
    table : int
        Address of its table.
    keep : object
        An object that lives as long as the result.
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

    Parameters
    ----------
    bind : callable
        Of `find_binder`.
    run : callable
        Entry point of a kernel that is called without giving way to other threads.
    table : int
        Address of its table.
    value : object
        The result of the call.
    fail : callable
        Raises.
    keep : object
        An object that lives as long as the result.
    """
    return bind(_EVALUATE, (address_of_entry(run), table, value, fail, run, keep))


def address_of_entry(run: Any) -> int:
    """Address of a function of ctypes; 0 for None."""
    return ctypes.cast(run, ctypes.c_void_p).value or 0


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
            key_of(compiler, flags, [_SOURCE]),
            compiler,
            [flags],
            write=lambda: _SOURCE,
            load=_open,
            check=_check,
            about={"function": "arguments"},
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

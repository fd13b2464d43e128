"""Loader: compiled code that reads Python arguments into memory and evaluates.

Python takes 0.2 µs to check an array and copy it; this takes a quarter. The functions of Python's
stable interface that it calls are declared in the source, so that no header files are needed.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from ._compiler import BuildError, find_compiler
from ._folder import UnsafeFolder
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
extern char PyFloat_Type[];
enum { STRIDES_AND_FORMAT = 0x1c, NOT_PLAIN = -1 };
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
extern __attribute__((visibility("default"))) int lg_load(const int64_t *f, PyObject *values)
{
  const lg_slot *slots = (const lg_slot *)(f + 3);
  if (PyTuple_Size(values) != f[0]) return NOT_PLAIN;
  for (int64_t i = 0; i < f[0]; i++)
    if (lg_read(slots + i, PyTuple_GetItem(values, i))) return NOT_PLAIN;
  int (*run)(const int64_t *) = (int (*)(const int64_t *))(intptr_t)f[1];
  return run ? run((const int64_t *)(intptr_t)f[2]) : 0;
}
"""

Load = Callable[[int, tuple], int]


class Loader:
    """Reads the arguments of a call into memory, then evaluates: ``loader.call(values) → status``.

    Parameters
    ----------
    load : callable
        Of `find_loader`.
    targets : sequence of (ndarray, shape)
        Views in NumPy's order to write to.
    run : callable
        Entry point of a kernel that is called without giving way to other threads.
    table : int
        Address of its table.
    """

    __slots__ = ("_keep", "call")

    def __init__(
        self,
        load: Load,
        targets: Sequence[tuple[np.ndarray, Shape]],
        run: Any,
        table: int,
    ) -> None:
        numbers = [len(targets), ctypes.cast(run, ctypes.c_void_p).value or 0, table]
        for view, shape in targets:
            steps = [stride // view.itemsize for stride in view.strides]
            numbers += [view.ctypes.data, len(shape), *_pair(shape), *_pair(steps)]
        memory = (ctypes.c_int64 * len(numbers))(*numbers)
        self._keep = (memory, targets, run)
        self.call: Callable[[tuple], int] = partial(load, ctypes.addressof(memory))


@cache
def find_loader() -> Load | None:
    """Return the compiled loader; None where it cannot be had."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None
    try:
        compiler = find_compiler()
        if compiler is None:
            return None
        flags = compiler.flags(0, True)
        load, _ = find_or_build(
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
    return load


def _open(path: Path) -> Load:
    load = ctypes.PyDLL(str(path))["lg_load"]
    load.argtypes, load.restype = [ctypes.c_void_p, ctypes.py_object], ctypes.c_int
    return load  # type: ignore[return-value]


def _check(load: Load) -> str | None:
    """Read a scalar, a vector and a matrix that is not contiguous."""
    memory = [np.zeros(()), np.zeros(3), np.zeros((3, 2)).T]
    values = (2.5, np.arange(3.0), np.arange(12.0).reshape(4, 3)[::2])
    loader = Loader(load, [(m, m.shape) for m in memory], None, 0)
    if loader.call(values) == 0 and all(
        np.array_equal(m, value) for m, value in zip(memory, values, strict=True)
    ):
        return None
    return "does not read arguments as it should"


def _pair(numbers: Sequence[int]) -> tuple[int, int]:
    first, second, *_ = (*numbers, 0, 0)
    return first, second

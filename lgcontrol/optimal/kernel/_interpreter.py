"""Functions of a problem where nobody compiles them: programs of the kernel's interpreter."""

from __future__ import annotations

import ctypes
import re
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction
from ._table import ENTRY, Function

INTERPRETER = Path(__file__).with_name("interpreter.c").read_text(encoding="utf-8")
LANES, END = 8, 999

# An instruction and a program, as `interpreter.c` has them.
INSTRUCTION = np.dtype([(name, np.int32) for name in ("op", "to", "a", "b")])


class _Code(ctypes.Structure):
    """``lg_program``."""

    _fields_ = [(n, ctypes.c_void_p) for n in ("code", "constants", "in_steps", "out_steps")]


@cache
def operations() -> dict[str, int]:
    """CasADi's numbers of the operations that the interpreter knows, by name."""
    names = sorted(set(re.findall(r"LG_(OP_\w+)", INTERPRETER)) - {"OP_END", "OP_"})
    return {name: getattr(ca, name) for name in names}


def interpreter_source() -> str:
    """C text of the interpreter with the numbers of operations."""
    listed = [f"LG_{name} = {value}" for name, value in operations().items()]
    return f"enum {{ {', '.join([*listed, f'LG_OP_END = {END}'])} }};\n{INTERPRETER}"


class Interpreted:
    """A function of scalar operations as a program; NotImplementedError if it has others.

    Arguments in `shared` are common to all items. `entry` is for the kernel's table, and lives as
    long as this object.
    """

    def __init__(self, function: ModelFunction, shared: Any, entry: int) -> None:
        flat = function.program.flat
        if flat is None:
            raise NotImplementedError(f"{function.name} is not made of scalar operations")
        known, constants = set(operations().values()), []
        code = np.zeros(flat.n_instructions() + 1, dtype=INSTRUCTION)
        for k in range(flat.n_instructions()):
            op, to, given = (
                flat.instruction_id(k), flat.instruction_output(k), flat.instruction_input(k),
            )  # fmt: skip
            if op not in known:
                raise NotImplementedError(f"{function.name} has operation {op} of CasADi")
            if op == ca.OP_INPUT:
                code[k] = op, to[0], given[0], given[1]
            elif op == ca.OP_OUTPUT:
                code[k] = op, given[0], to[0], to[1]
            elif op == ca.OP_CONST:
                code[k] = op, to[0], len(constants), 0
                constants.append(flat.instruction_constant(k))
            else:
                code[k] = op, to[0], given[0], given[-1]
        code[-1]["op"] = END
        common = shared or ()
        steps = [
            0 if name in common else flat.nnz_in(i) for i, name in enumerate(function.arguments)
        ]
        self._keep = [
            code, np.array(constants, dtype=float), np.array(steps, dtype=np.int64),
            np.array([flat.nnz_out(i) for i in range(flat.n_out())], dtype=np.int64),
        ]  # fmt: skip
        self._program = _Code(*(array.ctypes.data for array in self._keep))
        self.scratch = LANES * flat.sz_w()
        self.entry = Function(entry, ctypes.addressof(self._program))


class Called:
    """A function that CasADi evaluates: operations on matrices, or another library's.

    Arguments in `shared` are common to all items. `entry` is for the kernel's table, and lives as
    long as this object.
    """

    scratch = 1

    def __init__(self, function: ModelFunction, shared: Any) -> None:
        made = function.function
        given = made.mx_in()
        is_plain = made.is_a("SXFunction")  # which CasADi cannot inline where it calls a table
        calls = made.call(given, not is_plain, is_plain)
        results: Any = [ca.densify(value) for value in calls]
        made = ca.Function(made.name(), [ca.densify(v) for v in given], results)
        self._inputs = [np.zeros(made.nnz_in(i)) for i in range(made.n_in())]
        self._outputs = [np.zeros(made.nnz_out(i)) for i in range(made.n_out())]
        self._bytes = [
            0 if name in (shared or ()) else value.nbytes
            for name, value in zip(function.arguments, self._inputs, strict=True)
        ]
        made_buffer: Any = made.buffer()
        self._buffer, self._evaluate = made_buffer
        for i, value in enumerate(self._inputs):
            self._buffer.set_arg(i, memoryview(value.data))
        for i, value in enumerate(self._outputs):
            self._buffer.set_res(i, memoryview(value.data))
        self._lock, self._call = Lock(), ENTRY(self._called)
        self.entry = Function(ctypes.cast(self._call, ctypes.c_void_p), None)

    def _called(self, _own: Any, items: int, inputs: Any, outputs: Any, _scratch: Any) -> None:
        with self._lock:
            for k in range(items):
                for value, step, start in zip(self._inputs, self._bytes, inputs, strict=False):
                    if value.size:
                        ctypes.memmove(value.ctypes.data, start + k * step, value.nbytes)
                self._evaluate()
                if self._buffer.ret():  # as steps that do not solve their equations
                    for value in self._outputs:
                        value[:] = np.nan
                for i, value in enumerate(self._outputs):
                    if value.size:
                        ctypes.memmove(
                            outputs[i] + k * value.nbytes, value.ctypes.data, value.nbytes
                        )

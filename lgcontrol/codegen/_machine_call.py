"""MachineCall: a function on memory of its own, which C code calls by an address."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

import casadi as ca
import numpy as np

from ._backend import build
from ._kernel import Kernel, address_of, address_of_entry, get_kernel
from ._model_function import ModelFunction
from ._policy import compile_policy
from ._program import solver_in

# Evaluates a buffer of a CasADi function: what `Function.buffer()` calls from Python.
_EVALUATE = "_ZN6casadi21_function_buffer_evalEPv"
_ENDED = "_ZN6casadi14FunctionBuffer3retEv"


class MachineCall:
    """A function on memory, called from C as ``run(table)``; returns 0 for success.

    Machine code where it was built, else CasADi's interpreter without Python around it.

    Parameters
    ----------
    memory : mapping of str to ndarray
        Memory of arguments and results by name, contiguous, matrices by columns; new memory for
        those that are left out.
    interpret : int
        Address of a C function ``int (const int64_t *table)`` that calls ``table[0]`` with
        ``table[2]``. If the entry ``table[1]`` of that is not zero, it fills the results with NaN.
        There are ``table[3]`` results, each an address and a length.
    calls : int
        Expected number of further calls. Machine code is built as soon as interpreting all calls,
        past and expected, takes longer than a build.

    Attributes
    ----------
    memory : dict of str to ndarray
    run, table : int
        Addresses, valid as long as this object lives.
    is_compiled : bool

    Raises
    ------
    NotImplementedError
        If there is no machine code, and C cannot interpret the function.
    """

    def __init__(
        self,
        function: ModelFunction,
        memory: Mapping[str, np.ndarray],
        interpret: int,
        calls: int,
    ) -> None:
        program, kernel = function.program, _kernel(function, calls)
        sizes = [*program.sizes_in, *program.sizes_out]
        names = [*function.arguments, *function.results]
        self.memory: dict[str, np.ndarray] = {
            name: memory[name] if name in memory else np.zeros(size)
            for name, size in zip(names, sizes, strict=True)
        }
        arrays = list(self.memory.values())
        for array, size in zip(arrays, sizes, strict=True):
            assert array.size == size and array.flags.c_contiguous
        self.is_compiled = kernel is not None
        count = len(function.arguments)
        if kernel is not None:
            numbers = [1, 1]  # item and step; see `Table`
            for array in arrays:
                numbers += [address_of(array), 0]
            table = np.array(numbers, dtype=np.int64)
            self.run, self.table = kernel.address, address_of(table)
            self._keep: tuple[object, ...] = (table, kernel, arrays)
            return
        plain = program.flat or program.function
        entries = _casadi_entries()
        if entries is None or solver_in(plain) is not None:
            raise NotImplementedError(f"{function.name} is not compiled")
        buffer, evaluation = plain.buffer()
        for k, array in enumerate(arrays):
            if array.size and k < count:
                buffer.set_arg(k, array.data)  # type: ignore[call-arg]
            elif array.size:
                buffer.set_res(k - count, array.data)  # type: ignore[call-arg]
        numbers = [*entries, _address_of_buffer(evaluation), len(arrays) - count]
        for array in arrays[count:]:
            numbers += [address_of(array), array.size]
        table = np.array(numbers, dtype=np.int64)
        self.run, self.table = interpret, address_of(table)
        self._keep = (table, buffer, arrays)


def exactly(function: ModelFunction) -> ModelFunction:
    """The function, whose machine code is to give the interpreter's bits if it is built."""
    backend = function._backend
    if not backend.wanted.scalar:
        backend.request(scalar=False, batch=False, contract=False)
    return function


def _kernel(function: ModelFunction, calls: int) -> Kernel | None:
    """Machine code of a function that is loaded, on disk, or worth a build for so many calls."""
    backend = function._backend
    if compile_policy() == "off":
        return None
    if backend.scalar is not None:
        return backend.scalar
    backend.calls += calls
    if compile_policy() == "eager" or backend.program.pays(backend.calls):
        backend.request(batch=False, contract=backend.wanted.contract)
        build([backend])
    elif not backend.is_sought:
        backend.is_sought = True
        contract = backend.wanted.contract
        backend.scalar = get_kernel(backend.program, vector=False, contract=contract, is_built=True)
        backend.frames = []
    return backend.scalar


@cache
def _casadi_entries() -> tuple[int, int] | None:
    """Addresses of CasADi's evaluation of a buffer, and of what says how that ended.

    None where this CasADi has no such functions, or others.
    """
    x = ca.SX.sym("x", 2)
    for path in sorted(Path(ca.__file__).parent.glob("libcasadi.*")):
        try:
            library = ctypes.CDLL(str(path))
            evaluate, ended = library[_EVALUATE], library[_ENDED]
        except (OSError, AttributeError):
            continue
        buffer, evaluation = ca.Function("square", [x], [x * x]).buffer()
        given, found = np.array([3.0, 4.0]), np.zeros(2)
        buffer.set_arg(0, given.data)  # type: ignore[call-arg]
        buffer.set_res(0, found.data)  # type: ignore[call-arg]
        for entry in (evaluate, ended):
            entry.argtypes = [ctypes.c_void_p]
        evaluate(_address_of_buffer(evaluation))
        if np.array_equal(found, [9.0, 16.0]) and ended(_address_of_buffer(evaluation)) == 0:
            return address_of_entry(evaluate), address_of_entry(ended)
    return None


def _address_of_buffer(evaluation: partial) -> int:
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer(evaluation.args[0], None)

"""Memory of loops in C, which runs that are alike use one after the other."""

from __future__ import annotations

import ctypes
from math import prod
from threading import Lock
from typing import Any

import numpy as np

from ..codegen import ModelFunction
from ..codegen._internal import MachineCall, address_of
from ..systems import System
from ._compiled_table import LoopStruct

MOST_KEPT = 32  # loops of a plant whose memory waits for the next run
RECORDED = ("row_", "call_", "delivered_")  # what the loop reads only after it wrote it


class LoopMemory:
    """A struct and the arrays that it points to."""

    def __init__(self, struct: ctypes.Structure) -> None:
        self.struct = struct
        self.arrays: dict[str, np.ndarray] = {}

    def put(self, name: str, array: Any, kind: Any = np.float64) -> np.ndarray:
        """Let a field point to memory of these values."""
        array = np.ascontiguousarray(array, dtype=kind)
        self.arrays[name] = array
        setattr(self.struct, name, address_of(array))
        return array

    def zeros(self, **shapes: tuple[int, ...]) -> None:
        """Let fields point to zeros of these shapes, in one piece of memory."""
        sizes = [prod(shape) for shape in shapes.values()]
        memory = np.zeros(max(1, sum(sizes)))
        start, place = 0, address_of(memory)
        for (name, shape), size in zip(shapes.items(), sizes, strict=True):
            self.arrays[name] = memory[start : start + size].reshape(shape)
            setattr(self.struct, name, place + 8 * start)
            start += size

    def at(self, name: str) -> np.ndarray:
        """A number of the struct, as memory of a function; shape (1,)."""
        offset = getattr(type(self.struct), name).offset
        return np.frombuffer(self.struct, np.float64, 1, offset)  # type: ignore[call-overload]

    def set(self, **values: Any) -> None:
        """Fields that are numbers."""
        for name, value in values.items():
            setattr(self.struct, name, value)

    def grow(self, *names: str, room: int) -> None:
        """More memory for arrays of rows."""
        for name in names:
            old = self.arrays[name]
            new = np.empty((room, *old.shape[1:]), dtype=old.dtype)
            new[: len(old)] = old
            self.put(name, new, old.dtype)

    @property
    def address(self) -> int:
        """Address of the struct."""
        return ctypes.addressof(self.struct)


class LoopFrame:
    """Memory of a loop, with the functions that are bound to it.

    Parameters
    ----------
    sizes : tuple
        All that the memory depends on, estimator and controller apart.

    Attributes
    ----------
    functions : tuple
        Of estimator and controller.
    user : int
        Who had it last: identity of the controller.
    in_python : list of str
        Parts that Python has.
    interpreted : list of str
        Parts without machine code.
    is_complete : bool
        Whether another run can begin with it.
    """

    def __init__(self, sizes: tuple[Any, ...]) -> None:
        self.sizes, self.loop = sizes, LoopMemory(LoopStruct())
        self.sensors: list[LoopMemory] = []
        self.sources: list[LoopMemory] = []
        self.structs: list[Any] = []  # arrays of structs of these
        self.bound: list[MachineCall] = []
        self.steps: dict[ModelFunction, MachineCall] = {}
        self.tables: dict[str, np.ndarray] = {}
        self.in_python: list[str] = []
        self.interpreted: list[str] = []
        self.functions: tuple[Any, ...] = ()
        self.user = 0
        self.is_complete = False
        self._first: list[tuple[LoopMemory, bytes, dict[str, np.ndarray]]] = []
        self._values: list[tuple[np.ndarray, np.ndarray]] = []

    def keep(self, functions: tuple[Any, ...]) -> None:
        """Remember how a run begins; parts that may be compiled later are bound again."""
        if self.in_python or self.interpreted:
            return
        self.functions, self.is_complete = functions, True
        for memory in (self.loop, *self.sensors, *self.sources):
            arrays, struct = memory.arrays, memory.struct
            begun = ctypes.string_at(ctypes.addressof(struct), ctypes.sizeof(struct))
            self._first.append((memory, begun, dict(arrays)))
            self._values += [
                (array, array.copy()) for name, array in arrays.items()
                if array.size and not name.startswith(RECORDED)
            ]  # fmt: skip

    def restore(self) -> None:
        """Let a run begin as the first one."""
        for memory, begun, arrays in self._first:
            ctypes.memmove(ctypes.addressof(memory.struct), begun, len(begun))
            memory.arrays = dict(arrays)
        for array, first in self._values:
            array[...] = first


class KeptLoops:
    """Memory of loops that no run uses."""

    def __init__(self) -> None:
        self._frames: list[LoopFrame] = []
        self._lock = Lock()

    def take(
        self, sizes: tuple[Any, ...], user: int, functions: tuple[Any, ...] | None = None
    ) -> LoopFrame | None:
        """Memory of these sizes (and functions), which is the caller's alone from now on.

        What the user had before comes first.
        """
        with self._lock:
            for frame in sorted(self._frames, key=lambda one: one.user != user):
                if frame.sizes == sizes and functions in (None, frame.functions):
                    self._frames.remove(frame)
                    return frame
        return None

    def give(self, frame: LoopFrame, user: int) -> None:
        """Keep memory for the next run; that of the oldest goes."""
        with self._lock:
            frame.user = user
            self._frames.append(frame)
            del self._frames[:-MOST_KEPT]


def kept_loops(plant: System) -> KeptLoops:
    """Memory of loops of a plant."""
    return plant.memo(("loops",), KeptLoops)

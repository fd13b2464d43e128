"""Table: what a kernel is told, the addresses and strides of arguments and results."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np


class Table:
    """Numbers for ``lg_run`` (see `_source.py`); keeps the arrays alive.

    Parameters
    ----------
    items, steps : int
        Number of items, and of steps of a chain (else 1).
    arguments, results : sequence of ndarray
        Float64 arrays, items along the first axis, each of them C-contiguous; a first axis of
        length 1 among several items means that all share it.
    """

    __slots__ = ("_arrays", "_memory", "address")

    def __init__(
        self,
        items: int,
        steps: int,
        arguments: Sequence[np.ndarray],
        results: Sequence[np.ndarray],
        start: int = 0,
    ) -> None:
        numbers = [items, steps]
        for array in (*arguments, *results):
            stride = array.strides[0] // 8 if len(array) > 1 else 0
            numbers += [address_of(array) + 8 * start * stride, stride]
        self._arrays = (*arguments, *results)
        self._memory = (ctypes.c_int64 * len(numbers))(*numbers)
        self.address: int = ctypes.addressof(self._memory)

    def run(self, entry: Callable[[int], int]) -> int:
        """Call a kernel's entry point; the arrays stay alive meanwhile. Returns its status."""
        return entry(self.address)


def address_of(array: np.ndarray) -> int:
    """Address of the first entry; quicker than ``array.ctypes.data`` where memory is writable."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    except (TypeError, ValueError, BufferError):  # read-only, or empty
        return array.ctypes.data

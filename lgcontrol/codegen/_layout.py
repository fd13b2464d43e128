"""Layout: how an argument or result lies in memory, CasADi by columns, NumPy by rows."""

from __future__ import annotations

import numpy as np

from ._types import Shape


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

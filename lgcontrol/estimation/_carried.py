"""Carried: state, covariance and memory of a filter as one column, which loops can carry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value


@dataclass(frozen=True)
class FilterColumn:
    """Where things are in the column that a filter carries from call to call.

    Attributes
    ----------
    nq : int
        Coordinates of the state.
    n : int
        Rows of the covariance, or of its factor; one triangle is kept.
    counters : int
        Measurements: rejections in a row of each.
    inputs : int
        The last usable value of each input.
    """

    nq: int
    n: int
    counters: int
    inputs: int

    @property
    def triangle(self) -> int:
        """Entries of a triangle."""
        return self.n * (self.n + 1) // 2

    @property
    def size(self) -> int:
        """Entries of the column."""
        return self.nq + self.triangle + self.counters + self.inputs

    @property
    def _bounds(self) -> list[int]:
        parts = [0, self.nq, self.triangle, self.counters, self.inputs]
        return np.cumsum(parts).tolist()

    def split(self, z: Value) -> tuple[Value, Value, Value, Value]:
        """State, lower triangular matrix, counters, inputs; CasADi columns."""
        x, packed, counters, inputs = ca.vertsplit(z, self._bounds)
        return x, self.lower(packed), counters, inputs

    def lower(self, packed: Value) -> Value:
        """Lower triangular matrix of its columns."""
        return type(packed)(ca.Sparsity.lower(self.n), packed)

    def join(self, x: Value, lower: Value, counters: Value, inputs: Value) -> Value:
        """Column of its parts; of the matrix, the lower triangle is taken."""
        packed = ca.project(lower, ca.Sparsity.lower(self.n)).nz[:]
        return ca.vertcat(x, packed, counters, inputs)

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the packed entries: column by column."""
        columns, rows = np.triu_indices(self.n)
        return rows, columns

    def pack(self, x: Any, lower: Any, inputs: Any, counters: Any = 0.0) -> np.ndarray:
        """Column of NumPy parts."""
        rows, columns = self.places
        held = np.broadcast_to(counters, (self.counters,))
        return np.concatenate([x, np.asarray(lower)[rows, columns], held, inputs])

    def unpack(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """State and lower triangular matrix, with the batch axes of z."""
        rows, columns = self.places
        lower = np.zeros((*z.shape[:-1], self.n, self.n))
        lower[..., rows, columns] = z[..., self.nq : self.nq + self.triangle]
        return z[..., : self.nq], lower

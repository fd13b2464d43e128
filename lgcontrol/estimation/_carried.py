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
    """Places in the column that a filter carries from call to call.

    Attributes
    ----------
    nq : int
        Coordinates of the state.
    n : int
        Rows of the covariance, or of its factor; one triangle is kept.
    sensors : int
        Measurements: rejections in a row of each, then the width of the gate of each.
    inputs : int
        The last usable value of each input.
    """

    nq: int
    n: int
    sensors: int
    inputs: int

    @property
    def triangle(self) -> int:
        """Entries of a triangle."""
        return self.n * (self.n + 1) // 2

    @property
    def size(self) -> int:
        """Entries of the column."""
        return self._bounds[-1]

    @property
    def _bounds(self) -> list[int]:
        parts = [0, self.nq, self.triangle, 2 * self.sensors, self.inputs]
        return np.cumsum(parts).tolist()

    def split(self, z: Value) -> tuple[Value, Value, Value, Value]:
        """State, lower triangular matrix, what gates remember, inputs; CasADi columns."""
        x, packed, gates, inputs = ca.vertsplit(z, self._bounds)
        return x, self.lower(packed), gates, inputs

    def lower(self, packed: Value) -> Value:
        """Lower triangular matrix of its columns."""
        return type(packed)(ca.Sparsity.lower(self.n), packed)

    def join(self, x: Value, lower: Value, gates: Value, inputs: Value) -> Value:
        """Column of its parts; of the matrix, the lower triangle is taken."""
        packed = ca.project(lower, ca.Sparsity.lower(self.n)).nz[:]
        return ca.vertcat(x, packed, gates, inputs)

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the packed entries: column by column."""
        columns, rows = np.triu_indices(self.n)
        return rows, columns

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Places of the diagonal of the matrix in the column."""
        rows, columns = self.places
        return self.nq + np.flatnonzero(rows == columns)

    def pack(self, x: Any, lower: Any, inputs: Any, rejections: float = 0.0) -> np.ndarray:
        """Column of NumPy parts, of the matrix its lower triangle; gates are as wide as stated."""
        rows, columns = self.places
        gates = np.repeat([rejections, 1.0], self.sensors)
        return np.concatenate([x, np.asarray(lower)[rows, columns], gates, inputs])

    def unpack(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """State and lower triangular matrix, with the batch axes of z."""
        rows, columns = self.places
        lower = np.zeros((*z.shape[:-1], self.n, self.n))
        lower[..., rows, columns] = z[..., self.nq : self.nq + self.triangle]
        return z[..., : self.nq], lower

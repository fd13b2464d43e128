"""Form: how a stage QP becomes one vector of unknowns and one list of rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from ._stage_qp import StageQP


class Places(NamedTuple):
    """Rows and columns of the entries of a matrix, in the order in which values are given.

    Attributes
    ----------
    rows, columns : ndarray of int
    """

    rows: np.ndarray
    columns: np.ndarray

    @classmethod
    def blocks(cls, top: np.ndarray, left: np.ndarray, height: int, width: int) -> Places:
        """Entries of dense blocks of one size with their corners at (top, left), row by row."""
        shape = (len(top), height, width)
        rows = np.asarray(top)[:, None, None] + np.arange(height)[:, None]
        columns = np.asarray(left)[:, None, None] + np.arange(width)
        return cls(np.broadcast_to(rows, shape).ravel(), np.broadcast_to(columns, shape).ravel())

    @classmethod
    def join(cls, *parts: Places) -> Places:
        """Put entries one after another."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))

    def moved(self, rows: int, columns: int) -> Places:
        """The same entries further down and to the right."""
        return Places(self.rows + rows, self.columns + columns)


class Structure(NamedTuple):
    """What of a flat QP stays the same while the numbers change.

    Attributes
    ----------
    unknowns, rows : int
    first : int
        Position of the first active row of the stage QP among the rows.
    H, A : Places
    """

    unknowns: int
    rows: int
    first: int
    H: Places
    A: Places


class FlatQP(NamedTuple):
    """Minimise ``½ zᵀ H z + gᵀ z`` over ``lower ≤ z ≤ upper``, ``row_lower ≤ A z ≤ row_upper``.

    Attributes
    ----------
    H, A : ndarray
        Values at the places of the structure.
    g, lower, upper, row_lower, row_upper : ndarray
    """

    H: np.ndarray
    A: np.ndarray
    g: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    row_lower: np.ndarray
    row_upper: np.ndarray


class Form(ABC):
    """A way to flatten stage QPs; slack variables are added by the back-end."""

    @abstractmethod
    def structure(self, qp: StageQP) -> Structure:
        """Places of the entries; depends on sizes and active rows only."""

    @abstractmethod
    def flatten(self, qp: StageQP) -> FlatQP:
        """Numbers for the places."""

    @abstractmethod
    def states(self, qp: StageQP, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """States (N + 1, n) of a solution with inputs u."""

    @abstractmethod
    def adjoints(
        self, qp: StageQP, x: np.ndarray, u: np.ndarray, prices: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Multipliers (N, n) of the dynamics, given those of all rows and of the stage's rows."""

    @abstractmethod
    def inputs(self, qp: StageQP, z: np.ndarray) -> np.ndarray:
        """Entries (N, m) of a vector of unknowns that belong to the inputs."""

"""Column that a filter carries, and the pass backwards over those of a log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, chain
from ..codegen import compile as compile_functions
from ..codegen._internal import check_shape
from ._log import SAME_TIME, Rows

LONG_LOG = 10_000  # intervals of a log from which on the loop over it is compiled


@dataclass(frozen=True)
class FilterColumn:
    """Places in the column that a filter carries from call to call."""

    nq: int  # coordinates of the state
    n: int  # rows of the covariance, or of its factor; one triangle is kept
    sensors: int  # measurements: rejections in a row of each, then the width of the gate of each
    inputs: int  # the last usable value of each input

    @property
    def triangle(self) -> int:
        """Entries of a triangle."""
        return self.n * (self.n + 1) // 2

    @property
    def size(self) -> int:
        """Entries of the column."""
        return self._bounds[-1]

    @cached_property
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
        gates = self.sensors * [rejections] + self.sensors * [1.0]
        return np.concatenate([x, np.asarray(lower)[rows, columns], gates, inputs])

    def unpack(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """State and lower triangular matrix, with the batch axes of z."""
        rows, columns = self.places
        lower = np.zeros((*z.shape[:-1], self.n, self.n))
        lower[..., rows, columns] = z[..., self.nq : self.nq + self.triangle]
        return z[..., : self.nq], lower


@dataclass(frozen=True, eq=False)
class BackwardPass:
    """From the end to the beginning: each estimate is corrected by what came after it.

    X̂ is the filter's estimate with covariance P; X⁻, P⁻ is the prediction from it. C is the
    covariance of the error before an interval with the error after. Then ``K = C P⁻⁻¹`` and
    ``X̂ₛ = X̂ exp(K minus(X⁺ₛ, X⁻))``. Covariances move between the charts of X⁺ₛ, X⁻, X̂ and X̂ₛ
    as in a filter's reset.

    References
    ----------
    Rauch, Tung and Striebel, Maximum likelihood estimates of linear dynamic systems, AIAA Journal
    3(8), 1965. Bourmaud, Mégret, Giremus and Berthoumieu, From intrinsic optimization to iterated
    extended Kalman filtering on Lie groups, J. Math. Imaging Vis. 55, 2016: errors on groups.
    """

    step: ModelFunction  # ``(z, later, t, u, p, dt, q) → earlier``
    column: FilterColumn
    p: np.ndarray  # parameters; densities of the noise
    q: np.ndarray

    def last(self, z: np.ndarray, covariance: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """State and triangle of the covariance of filtered columns, to start from."""
        x, lower = self.column.unpack(z)
        rows, columns = self.column.places
        return np.concatenate([x, covariance(lower)[..., rows, columns]], axis=-1)

    def inputs(self, z: np.ndarray) -> np.ndarray:
        """Inputs that were used in the interval before a column."""
        return z[..., z.shape[-1] - self.column.inputs :]

    def step_at(
        self, z: np.ndarray, t: Any, dt: Any, after: np.ndarray, later: np.ndarray
    ) -> np.ndarray:
        """Estimates columns at the start of intervals, from those at their end (`later`).

        z are the filtered columns at the start, `after` those at the end, before or after its
        measurements: inputs are taken from them.
        """
        return self.step(z, later, t, self.inputs(after), self.p, dt, self.q)

    def over(
        self,
        rows: Rows,
        z: np.ndarray,
        is_refused: np.ndarray,
        covariance: Callable[[np.ndarray], np.ndarray],
        lag: float | None,
        at: Any,
    ) -> np.ndarray:
        """Estimates columns of a log, shape (..., N, nq + triangle), or of the rows `at`."""
        dt = np.where(is_refused, 0.0, rows.dt)
        t = np.broadcast_to(rows.t, dt.shape)
        if lag is not None:
            if not float(check_shape("lag", lag, (), finite=False)) >= 0:
                raise ValueError(f"lag must be at least 0 s, got {lag:g}")
            return self._with_lag(rows.ends, t, dt, z, covariance, lag, at)
        last = self.last(z[..., -1, :], covariance)
        if len(rows.t) == 1:
            return last[..., None, :]
        # row k has the interval before it
        before, interval = z[..., -2::-1, :], (slice(None, 0, -1),)
        each = [before, t[..., *interval, None], self.inputs(z[..., *interval, :]),
                dt[..., *interval, None]]  # fmt: skip
        whole = chain(
            self.step, len(rows.t) - 1, carry=("later", "earlier"), each=["z", "t", "u", "dt"]
        )
        if before[..., 0].size >= LONG_LOG:
            compile_functions(whole, batch=before.ndim > 2)
        made = whole(each[0], last, each[1], each[2], self.p, each[3], self.q)
        column = np.concatenate([made[..., ::-1, :], last[..., None, :]], axis=-2)
        return column if at is None else column[..., at, :]

    def _with_lag(
        self, ends: np.ndarray, t: np.ndarray, dt: np.ndarray, z: np.ndarray,
        covariance: Callable[[np.ndarray], np.ndarray], lag: float, at: Any,
    ) -> np.ndarray:  # fmt: skip
        """All windows side by side, each from its end back to the row that is wanted."""
        wanted = np.arange(len(ends)) if at is None else np.asarray(at)
        here = np.searchsorted(ends, ends[wanted] + lag + SAME_TIME, side="right") - 1
        found = self.last(z[..., here, :], covariance)
        if (here - wanted).sum() * found[..., 0, 0].size >= LONG_LOG:
            compile_functions(self.step)
        while len(behind := np.flatnonzero(here > wanted)):
            k = here[behind]
            found[..., behind, :] = self.step_at(
                z[..., k - 1, :], t[..., k], dt[..., k], z[..., k, :], found[..., behind, :]
            )
            here[behind] -= 1
        return found


def symmetric(lower: np.ndarray) -> np.ndarray:
    """Symmetric matrices of their lower triangles, shape (..., n, n)."""
    return lower + np.swapaxes(np.tril(lower, -1), -1, -2)

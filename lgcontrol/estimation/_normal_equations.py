"""Sparse normal equations: solved by blocks, with the marginal covariances of their solution."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from ..codegen._internal import check_known
from ..groups import LieGroup
from ..plotting import plot_path
from ..scene import Scene
from ..scene._internal import Scenery, scene_of_states
from ..systems import Trajectory

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RESIDUAL = 1e-3  # share of an inverse that may be rounding; more says that there is none
FLAT = 1e-12  # share of the largest curvature that every direction is taken to have, if damped

# SuperLU on symmetric definite matrices: no pivoting, one ordering of rows and columns
_SYMMETRIC: dict[str, Any] = {"diag_pivot_thresh": 0.0, "options": {"SymmetricMode": True}}
# share of the inverse at the variable known worst that may be rounding
COVARIANCE_ROUNDING = 1e-3
NOT_OBSERVED = (
    "the factors leave a motion of all variables without information: fix one of them, or add a "
    "factor that knows where it is"
)


class NormalEquations:
    """Places of each variable in the step, and of each product of two in the sparse matrix.

    The matrix is stored by compressed columns. Its blocks are in an order of little fill-in:
    minimum degree on the graph of the variables, some forty times smaller than the matrix. `nodes`
    say by kind of factor and argument, shape (M,), which variables they are of; variables that are
    not free are left out, their first row in `begins` is -1.
    """

    def __init__(
        self, dims: np.ndarray, is_free: np.ndarray, nodes: list[list[np.ndarray]]
    ) -> None:
        self.nodes = nodes
        self.dims = [[int(dims[place[0]]) for place in own] for own in nodes]
        free = np.flatnonzero(is_free)
        number = np.full(len(dims), -1)
        number[free] = np.arange(len(free))
        pairs = [
            number[np.column_stack([a, b])[is_free[a] & is_free[b]]]
            for own in nodes for a in own for b in own
        ]  # fmt: skip
        together = np.concatenate([np.repeat(number[free, None], 2, axis=1), *pairs])
        rank = np.empty(len(free), dtype=int)
        order = _order(together, len(free))
        rank[order] = np.arange(len(free))
        begins = np.concatenate([[0], np.cumsum(dims[free][order])])
        self.size, self._heads = int(begins[-1]), begins
        self.begins = np.full(len(dims), -1)
        self.begins[free] = begins[rank]
        self._rank = np.full(len(dims), -1)
        self._rank[free] = rank
        self._lay_out(rank[together], dims[free][order], begins)
        self._products: list[tuple[int, int, int, np.ndarray]] = []
        self._slopes: list[tuple[int, int, np.ndarray]] = []
        place, slope = [], []
        for kind, own in enumerate(nodes):
            for i, a in enumerate(own):
                here = np.flatnonzero(is_free[a])
                self._slopes.append((kind, i, here))
                slope.append((self.begins[a[here], None] + np.arange(self.dims[kind][i])).ravel())
                for j, b in enumerate(own):
                    some = np.flatnonzero(is_free[a] & is_free[b])
                    self._products.append((kind, i, j, some))
                    place.append(self._entries(a[some], b[some], *self._shape(kind, i, j)).ravel())
        self._place, self._slope_place = np.concatenate(place), np.concatenate(slope)

    def _shape(self, kind: int, i: int, j: int) -> tuple[int, int]:
        return self.dims[kind][i], self.dims[kind][j]

    def _lay_out(self, blocks: np.ndarray, sizes: np.ndarray, begins: np.ndarray) -> None:
        """Pointers and indices; at which height of its columns each block begins."""
        count = len(sizes)
        self._keys = np.unique(blocks[:, 1] * count + blocks[:, 0])  # by columns, then rows
        self._count = count
        columns, rows = self._keys // count, self._keys % count
        heights = np.bincount(columns, weights=sizes[rows], minlength=count).astype(int)
        tops = np.concatenate([[0], np.cumsum(heights)])
        self._above = np.cumsum(sizes[rows]) - sizes[rows] - tops[columns]
        self.pointers = np.concatenate([[0], np.cumsum(np.repeat(heights, sizes))])
        # a column of a block column holds the rows of all its blocks
        inside = np.concatenate([[0], np.cumsum(sizes[rows])])
        stacked = np.arange(inside[-1]) - np.repeat(inside[:-1] - begins[rows], sizes[rows])
        parts = np.split(stacked, inside[np.searchsorted(columns, np.arange(1, count))])
        self.indices = np.concatenate(
            [np.tile(part, size) for part, size in zip(parts, sizes, strict=True)]
        ).astype(int) if count else np.zeros(0, dtype=int)  # fmt: skip

    def _entries(self, a: np.ndarray, b: np.ndarray, d: int, e: int) -> np.ndarray:
        """Places of the entries of blocks (a, b) of shape d × e, shape (M, d, e)."""
        block = np.searchsorted(self._keys, self._rank[b] * self._count + self._rank[a])
        tops = self.pointers[self.begins[b][:, None] + np.arange(e)]
        return tops[:, None, :] + self._above[block][:, None, None] + np.arange(d)[:, None]

    def assembled(self, made: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
        """Entries of ``JᵀJ`` as they are stored, and ``Jᵀr``, of (r, J) by kind of factor.

        Shapes (M, m) and (M, m, dims of all arguments).
        """
        parts = [
            np.split(J, np.cumsum(dims)[:-1], axis=-1)
            for (_, J), dims in zip(made, self.dims, strict=True)
        ]
        values = [
            np.swapaxes(parts[kind][i][some], -1, -2) @ parts[kind][j][some]
            for kind, i, j, some in self._products
        ]
        slopes = [
            np.einsum("kmi,km->ki", parts[kind][i][here], made[kind][0][here])
            for kind, i, here in self._slopes
        ]
        flat = np.concatenate([value.ravel() for value in values])
        H = np.bincount(self._place, weights=flat, minlength=len(self.indices))
        flat = np.concatenate([slope.ravel() for slope in slopes])
        return H, np.bincount(self._slope_place, weights=flat, minlength=self.size)

    def rank(self, variable: int) -> int:
        """Place of a variable in the order of elimination; -1 if it is not free."""
        return int(self._rank[variable])

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Row of each entry of ``JᵀJ``, and where each column begins."""
        return self.indices, self.pointers

    @cached_property
    def blocks(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """First row of each variable in order of elimination, and the later ones it stands with."""
        columns, rows = self._keys // self._count, self._keys % self._count
        later = rows > columns
        bounds = np.searchsorted(columns[later], np.arange(1, self._count))
        return self._heads, np.split(rows[later], bounds)

    @cached_property
    def _diagonal(self) -> np.ndarray:
        columns = np.repeat(np.arange(self.size), np.diff(self.pointers))
        return np.flatnonzero(self.indices == columns)

    def _matrix(self, H: np.ndarray) -> Any:
        return scipy.sparse.csc_matrix((H, self.indices, self.pointers), (self.size,) * 2)

    def solve(self, H: np.ndarray, right: np.ndarray, damping: float = 0.0) -> np.ndarray | None:
        """Solution of ``(H + damping diag H) d = right``; None where there is none."""
        if damping:
            diagonal = H[self._diagonal]
            H = H.copy()
            H[self._diagonal] += damping * np.maximum(diagonal, FLAT * diagonal.max(initial=0.0))
        made = self._factor(H)
        d = None if made is None else made.solve(right)
        return d if d is not None and np.isfinite(d).all() else None

    def _factor(self, H: np.ndarray) -> Any:
        try:
            return scipy.sparse.linalg.splu(self._matrix(H), permc_spec="NATURAL", **_SYMMETRIC)
        except RuntimeError:  # singular
            return None

    def inverse_columns(self, H: np.ndarray, rows: np.ndarray) -> np.ndarray | None:
        """Columns of the inverse; None where there is none."""
        unit = np.zeros((self.size, len(rows)))
        unit[rows, np.arange(len(rows))] = 1.0
        made = self._factor(H)
        if made is None:
            return None
        found = made.solve(unit)
        # a round of refinement tells how much of the result is rounding
        change = made.solve(unit - self._matrix(H) @ found)
        if not np.abs(change).max() <= RESIDUAL * np.abs(found).max():  # NaN is not
            return None
        return found


def _order(together: np.ndarray, count: int) -> np.ndarray:
    """Order of elimination with little fill-in, of pairs of variables that are in a factor."""
    if count < 3:
        return np.arange(count)
    # SuperLU's minimum degree, on a matrix with this pattern that is surely definite
    ones = np.ones(len(together))
    pattern = scipy.sparse.csc_matrix((ones, (together[:, 0], together[:, 1])), (count, count))
    pattern.data[:] = -1.0
    definite = (pattern + scipy.sparse.diags(np.diff(pattern.indptr) + 1.0)).tocsc()
    made = scipy.sparse.linalg.splu(definite, permc_spec="MMD_AT_PLUS_A", **_SYMMETRIC)
    return np.argsort(made.perm_c)


def solve_definite(matrix: Any, right: np.ndarray) -> np.ndarray:
    """``matrix⁻¹ right`` of a sparse symmetric definite matrix."""
    made = scipy.sparse.linalg.splu(matrix.tocsc(), permc_spec="MMD_AT_PLUS_A", **_SYMMETRIC)
    return made.solve(right)


class SelectedInverse:
    """Blocks (i, j) of ``H⁻¹`` wherever the Cholesky factor of H has one, without the others.

    Each front holds the columns of one or several variables and all rows that eliminating them
    touches. Forwards, a front adds what its children leave and passes on its Schur complement.
    Backwards (Takahashi), with ``K = F₁₁⁻¹ F₁₂`` and the inverse Z₂₂ that stands in the parent's
    front: ``Z₁₂ = −K Z₂₂`` and ``Z₁₁ = F₁₁⁻¹ − Z₁₂ Kᵀ``.

    H is given by compressed columns, variables one after the other in their order of elimination;
    `begins` has the first row of each, then the number of rows, `neighbours` those after it with
    which it has a block. A matrix that is not definite is a `LinAlgError`.

    References
    ----------
    Takahashi, Fagan and Chin, Formation of a sparse bus impedance matrix and its application to
    short circuit study, PICA 1973. Erisman and Tinney, On computing certain elements of the inverse
    of a sparse matrix, Communications of the ACM 18(3), 1975.
    """

    def __init__(
        self, entries: np.ndarray, indices: np.ndarray, pointers: np.ndarray, begins: np.ndarray,
        neighbours: list[np.ndarray],
    ) -> None:  # fmt: skip
        self._begins = begins
        fronts, parents = _fronts(neighbours)
        self._front = np.empty(len(neighbours), dtype=int)
        for s, (own, _) in enumerate(fronts):
            self._front[own] = s
        self._rows = [_ranges(begins, [*own, *later]) for own, later in fronts]
        self._columns: list[np.ndarray] = [np.empty(0)] * len(fronts)
        left: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in fronts]
        passed: list[tuple[np.ndarray, np.ndarray]] = []
        for s, (own, _) in enumerate(fronts):
            rows, wide = self._rows[s], sum(begins[k + 1] - begins[k] for k in own)
            F = np.zeros((len(rows), len(rows)))
            for k in own:
                columns = slice(pointers[begins[k]], pointers[begins[k + 1]])
                count = begins[k + 1] - begins[k]
                height = (columns.stop - columns.start) // count
                below = indices[columns][:height]
                inside = below >= begins[k]
                at = np.searchsorted(rows, below[inside])
                here = np.searchsorted(rows, begins[k]) + np.arange(count)
                F[np.ix_(at, here)] = entries[columns].reshape(count, height).T[inside]
            for places, update in left[s]:
                F[np.ix_(places, places)] += update
            left[s] = []
            # the lower triangle alone is read; the inverse of L is small, and triangular solves of
            # SciPy wake threads for each of them
            root = np.linalg.inv(np.linalg.cholesky(F[:wide, :wide]))
            C = root @ F[wide:, :wide].T
            passed.append((root.T @ root, root.T @ C))
            if parents[s] >= 0:
                places = np.searchsorted(self._rows[parents[s]], rows[wide:])
                left[parents[s]].append((places, F[wide:, wide:] - C.T @ C))
        self._go_back(parents, passed)

    def _go_back(self, parents: list[int], passed: list[tuple[np.ndarray, np.ndarray]]) -> None:
        waiting = np.bincount([p for p in parents if p >= 0], minlength=len(parents))
        whole: dict[int, np.ndarray] = {}
        for s in reversed(range(len(parents))):
            inverse, K = passed[s]
            wide, rows, parent = len(inverse), self._rows[s], parents[s]
            Z = np.empty((len(rows), len(rows)))
            if parent >= 0:
                places = np.searchsorted(self._rows[parent], rows[wide:])
                Z[wide:, wide:] = whole[parent][np.ix_(places, places)]
                waiting[parent] -= 1
                if not waiting[parent]:
                    del whole[parent]
            Z[:wide, wide:] = -K @ Z[wide:, wide:]
            Z[wide:, :wide] = Z[:wide, wide:].T
            Z[:wide, :wide] = inverse - Z[:wide, wide:] @ K.T
            self._columns[s] = Z[:, :wide].copy()
            if waiting[s]:
                whole[s] = Z

    def block(self, i: int, j: int) -> np.ndarray | None:
        """Block (i, j) of the inverse; None where the factor has none."""
        if i < j:
            turned = self.block(j, i)
            return None if turned is None else turned.T
        s = self._front[j]
        rows, begin, end = self._rows[s], self._begins[i], self._begins[i + 1]
        at = np.searchsorted(rows, begin)
        if at == len(rows) or rows[at] != begin:
            return None
        here = np.searchsorted(rows, self._begins[j])
        count = self._begins[j + 1] - self._begins[j]
        return self._columns[s][at : at + end - begin, here : here + count]


def _ranges(begins: np.ndarray, variables: list[int]) -> np.ndarray:
    return np.concatenate([np.arange(begins[k], begins[k + 1]) for k in variables])


def _fronts(neighbours: list[np.ndarray]) -> tuple[list[tuple[list[int], list[int]]], list[int]]:
    """Variables of each front, and those that they touch; the front that takes what is left.

    Variables whose columns have the same rows are in one front, as many as lie in one line.
    """
    touched: list[set[int]] = [set(own.tolist()) for own in neighbours]
    above = [-1] * len(touched)
    heirs = [-1] * len(touched)  # the variable before, in the same front
    for k, some in enumerate(touched):
        if not some:
            continue
        above[k] = parent = min(some)
        touched[parent] |= some - {parent}
    for k, parent in enumerate(above):
        if parent >= 0 and heirs[parent] < 0 and len(touched[k]) == len(touched[parent]) + 1:
            heirs[parent] = k
    joined = {k for k in heirs if k >= 0}
    fronts, number = [], {}
    for last in range(len(touched)):
        if last in joined:
            continue
        own = [last]
        while heirs[own[-1]] >= 0:
            own.append(heirs[own[-1]])
        number |= dict.fromkeys(own, len(fronts))
        fronts.append((own[::-1], sorted(touched[last])))
    parents = [number[above[own[-1]]] if above[own[-1]] >= 0 else -1 for own, _ in fronts]
    return fronts, parents


@dataclass(frozen=True, eq=False)
class Marginals:
    """Covariances of all variables of a `FactorGraph`; made by `FactorGraph.marginals`.

    Covariances are those of ``minus(truth, X)``: displacements in the frame of the variable, linear
    part first.

    Attributes
    ----------
    x : dict of str to ndarray, shape (K, nq)
        Elements at which the factors were linearized.
    covariances : dict of str to ndarray, shape (K, dim, dim)
        By name of the variables; zero for variables that are fixed.
    """

    x: dict[str, np.ndarray]
    covariances: dict[str, np.ndarray]
    _groups: dict[str, LieGroup]
    _bases: dict[str, int]
    _equations: NormalEquations
    _entries: np.ndarray
    _inverse: SelectedInverse

    @classmethod
    def of(
        cls, x: Mapping[str, np.ndarray], groups: dict[str, LieGroup], bases: dict[str, int],
        equations: NormalEquations, entries: np.ndarray,
    ) -> Marginals:  # fmt: skip
        """From the normal equations ``entries`` at x; see `FactorGraph.marginals` for errors."""
        try:
            inverse = SelectedInverse(entries, *equations.columns, *equations.blocks)
        except np.linalg.LinAlgError:
            raise ValueError(NOT_OBSERVED) from None
        covariances = {}
        for name, group in groups.items():
            made = np.zeros((len(x[name]), group.dim, group.dim))
            for k in range(len(made)):
                rank = equations.rank(bases[name] + k)
                if rank >= 0:
                    own = inverse.block(rank, rank)
                    assert own is not None
                    made[k] = (own + own.T) / 2
            covariances[name] = made
        found = cls(dict(x), covariances, groups, bases, equations, entries, inverse)
        found._check()
        return found

    def _check(self) -> None:
        """What is known worst, against columns of the inverse that were solved for."""
        spread = {name: np.trace(P, axis1=1, axis2=2) for name, P in self.covariances.items()}
        name = max((n for n in spread if len(spread[n])), key=lambda n: spread[n].max())
        k = int(np.argmax(spread[name]))
        if not spread[name][k]:
            return
        solved = self._solved(name, k)[self._rows(name, k)]
        off = np.abs(solved - self.covariances[name][k]).max()
        if not off <= COVARIANCE_ROUNDING * np.abs(solved).max():
            raise ValueError(NOT_OBSERVED)

    def __repr__(self) -> str:
        """Names and numbers of the variables."""
        counts = ", ".join(f"{len(P)} of {name!r}" for name, P in self.covariances.items())
        return f"Marginals({counts})"

    def joint(self, *keys: tuple[str, int]) -> np.ndarray:
        """Covariance of several variables together, in the order in which they are given.

        Two variables that a factor joins, and others that the sparse factor of the graph has
        together, are read off. For other pairs one linear system is solved.

        Parameters
        ----------
        *keys : (str, int)
            Name and number of each.

        Returns
        -------
        ndarray, shape (sum of dim, sum of dim)

        Examples
        --------
        >>> from lgcontrol.estimation import FactorGraph, Factors, Variables
        >>> from lgcontrol.groups import Rn
        >>> graph = FactorGraph(
        ...     [Variables("level", Rn(1), np.zeros((3, 1)))],
        ...     [Factors("step", lambda a, b: b - a, [("level", [0, 1]), ("level", [1, 2])]),
        ...      Factors("first", lambda a: a, [("level", [0])], std=2.0)])
        >>> graph.marginals().joint(("level", 0), ("level", 2)).round(6)
        array([[4., 4.],
               [4., 6.]])
        """
        for key in keys:
            if not (isinstance(key, tuple) and len(key) == 2):
                raise TypeError(f"each variable is (name, number), as in ('pose', 5), not {key!r}")
            name, index = key
            check_known("variables", self._groups, name)
            if not 0 <= index < len(self.x[name]):
                raise ValueError(
                    f"number of {name!r} must be from 0 to {len(self.x[name]) - 1}, got {index}"
                )
        return np.block([[self._pair(*a, *b) for b in keys] for a in keys])

    def _pair(self, name: str, k: int, other: str, j: int) -> np.ndarray:
        if (name, k) == (other, j):
            return self.covariances[name][k]
        rank, rank_j = (
            self._equations.rank(self._bases[n] + i) for n, i in ((name, k), (other, j))
        )
        if rank < 0 or rank_j < 0:
            return np.zeros((self._groups[name].dim, self._groups[other].dim))
        found = self._inverse.block(rank, rank_j)
        return self._solved(other, j)[self._rows(name, k)] if found is None else found

    def _rows(self, name: str, k: int) -> np.ndarray:
        begin = self._equations.begins[self._bases[name] + k]
        return begin + np.arange(self._groups[name].dim)

    def _solved(self, name: str, k: int) -> np.ndarray:
        found = self._equations.inverse_columns(self._entries, self._rows(name, k))
        if found is None:
            raise ValueError(NOT_OBSERVED)
        return found

    def plot(self, name: str = "pose") -> Figure:
        """Path of the poses with ellipses of 2σ of their positions; see `plotting.plot_path`.

        Parameters
        ----------
        name : str
            Variables on SE2 or SE3, drawn in the order of their numbers.
        """
        check_known("variables", self._groups, name)
        x = self.x[name]
        path: Any = Trajectory(self._groups[name], np.arange(len(x)), x)
        return plot_path(path, covariances=self.covariances[name])

    def scene(self, name: str = "pose") -> Scene:
        """What there is to see: the path of the poses, with ellipsoids of 2σ of some of them.

        Parameters
        ----------
        name : str
            Variables on SE2 or SE3, in the order of their numbers.
        """
        check_known("variables", self._groups, name)
        x, group = self.x[name], self._groups[name]
        times = np.arange(len(x), dtype=float)
        return scene_of_states(
            name, group, times, x, Scenery(), estimate=x, covariances=self.covariances[name]
        )

"""SelectedInverse: the blocks of the inverse of a sparse definite matrix that its factor has."""

from __future__ import annotations

import numpy as np


class SelectedInverse:
    """Blocks (i, j) of ``H⁻¹`` wherever the Cholesky factor of H has one, without the others.

    Each front holds the columns of one or several variables and all rows that eliminating them
    touches. Forwards, a front adds what its children leave and passes on its Schur complement.
    Backwards (Takahashi), with ``K = F₁₁⁻¹ F₁₂`` and the inverse Z₂₂ that stands in the parent's
    front: ``Z₁₂ = −K Z₂₂`` and ``Z₁₁ = F₁₁⁻¹ − Z₁₂ Kᵀ``.

    Parameters
    ----------
    entries, indices, pointers : ndarray
        H by compressed columns, variables one after the other in their order of elimination.
    begins : ndarray of int, shape (N + 1,)
        First row of each variable, then the number of rows.
    neighbours : list of ndarray of int
        Of each variable: those after it with which it has a block in H.

    Raises
    ------
    numpy.linalg.LinAlgError
        If H is not definite.

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

"""Large mechanisms: index-3 steps with sparse matrices, all rows of a kind at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from ...codegen._internal import Result
from ...integrators._internal import Index3Method
from ._basic import GROUND, Connection, Direction
from ._closed_forms import ClosedForms
from ._direct import Start
from ._march import MarchStatus

UNIT = np.eye(3)


def tildes(a: np.ndarray) -> np.ndarray:
    """``ã`` of many vectors, shape (..., 3, 3)."""
    found = np.zeros((*a.shape[:-1], 3, 3))
    found[..., 0, 1], found[..., 0, 2], found[..., 1, 2] = -a[..., 2], a[..., 1], -a[..., 0]
    found[..., 1, 0], found[..., 2, 0], found[..., 2, 1] = a[..., 2], -a[..., 1], a[..., 0]
    return found


def rotations(turn: np.ndarray) -> np.ndarray:
    """Rotation matrices of many rotation vectors, shape (n, 3, 3)."""
    angle = np.linalg.norm(turn, axis=1)[:, None, None]
    K = tildes(turn)
    half = np.sinc(angle / (2 * np.pi))
    return UNIT + np.sinc(angle / np.pi) * K + half * half / 2 * (K @ K)


@dataclass(frozen=True, eq=False)
class LargeResult(Result):
    """Motion of a large mechanism.

    Attributes
    ----------
    t : ndarray, shape (N,)
        Times that were kept [s].
    r, rdot, omega : ndarray, shape (N, bodies, 3)
        Centres of mass [m], their velocities in world axes, angular velocities in body axes.
    A : ndarray, shape (N, bodies, 3, 3)
    multipliers : ndarray, shape (N, m)
    iterations : ndarray of int, shape (steps,)
    status : MarchStatus
        If a step did not converge, the motion ends before it.
    """

    t: np.ndarray
    r: np.ndarray
    A: np.ndarray
    rdot: np.ndarray
    omega: np.ndarray
    multipliers: np.ndarray
    iterations: np.ndarray
    status: MarchStatus

    @property
    def message(self) -> str:
        """Which step did not converge, and what to do; empty if all did."""
        if self.is_success:
            return ""
        return (
            f"Newton's method did not converge in step {len(self.iterations) - 1}, the last time "
            f"kept is {self.t[-1]:.6g} s: take a smaller dt, or list singular positions with "
            "mobility()"
        )


@dataclass(frozen=True, eq=False)
class _RowsOfKind:
    """Rows of one kind: their places, bodies and vectors, as arrays."""

    kind: str
    place: np.ndarray
    i: np.ndarray
    j: np.ndarray
    a_i: np.ndarray  # direction on i (DP1, DP2), or in the world (CD)
    a_j: np.ndarray  # direction on j (DP1)
    s_i: np.ndarray
    s_j: np.ndarray
    moving: tuple[tuple[int, int], ...]  # entries of a_j whose direction moves, and which it is


class LargeMechanism:
    """Index-3 steps of a mechanism with sparse matrices, on (SO(3) × R³)ⁿ with closed forms.

    Rows of a kind (DP1, DP2, D, CD) are evaluated together, and the matrix of Newton's method is
    factored in an order of small band width, so that the cost of chains, ladders and the like
    grows as their number of bodies.

    Parameters
    ----------
    forms : ClosedForms
        Of orientation matrices.
    start : mapping of str to (r, A, ṙ, ω)
        Of every body.
    """

    def __init__(self, forms: ClosedForms, start: Mapping[str, Start]) -> None:
        self.forms, self.start = forms, start
        self.n_bodies = len(forms.names)
        self.masses = np.array(forms.masses)
        self.inertias = np.array(forms.inertias)
        self._places: np.ndarray | None = None

    @cached_property
    def rows(self) -> tuple[_RowsOfKind, ...]:
        """Rows by kind."""
        index = {name: k for k, name in enumerate(self.forms.names)}
        index[GROUND] = self.n_bodies
        kinds: dict[str, list[Any]] = {}
        for place, row in enumerate(self.forms.rows):
            kinds.setdefault(row.kind, []).append((place, row))
        found = []
        for kind, entries in kinds.items():
            none = np.zeros((len(entries), 3))
            i, j = np.zeros(len(entries), int), np.zeros(len(entries), int)
            a_i, a_j, s_i, s_j = none.copy(), none.copy(), none.copy(), none.copy()
            moving = []
            for k, (_, row) in enumerate(entries):
                if isinstance(row.w, Connection):
                    i[k], j[k] = index[row.w.i], index[row.w.j]
                    s_i[k], s_j[k] = row.w.s_i, row.w.s_j
                    if isinstance(row.u, Direction):
                        a_i[k] = self._still(row.u)
                else:
                    i[k], j[k] = index[row.u.body], index[row.w.body]
                    a_i[k] = self._still(row.u)
                    if callable(row.w.vector):
                        moving.append((k, id(row.w)))
                    else:
                        a_j[k] = row.w.vector
            places = np.array([place for place, _ in entries])
            found.append(_RowsOfKind(kind, places, i, j, a_i, a_j, s_i, s_j, tuple(moving)))
        return tuple(found)

    @staticmethod
    def _still(direction: Direction) -> np.ndarray:
        if callable(direction.vector):
            raise ValueError(
                f"the direction on {direction.body!r} moves; large mechanisms take moving "
                "directions on the second body of a DP1 alone, as angle_drive makes them"
            )
        return direction.vector

    def march(
        self,
        dt: float,
        steps: int,
        method: Index3Method,
        *,
        tolerance: float = 1e-6,
        limit: int = 20,
        every: int = 1,
    ) -> LargeResult:
        """Steps of an index-3 method from the start.

        Parameters
        ----------
        dt : float
            Step [s].
        steps : int
        method : Index3Method
            Its coefficients; iterations go on until the corrections are small.
        tolerance : float
            Largest correction of accelerations and multipliers, next to the largest of them.
        limit : int
            Most iterations of a step.
        every : int
            One of so many steps is kept.

        Returns
        -------
        LargeResult
        """
        h, (alpha_m, alpha_f), m = dt, method.alpha, self.forms.m
        share = (1 - alpha_f) / (1 - alpha_m)
        state: tuple[np.ndarray, ...] = tuple(
            np.array([self.start[name][k] for name in self.forms.names]) for k in range(4)
        )
        rate, multipliers = self._start(*state)
        a, kept, counts, status = rate, [], [], MarchStatus.SOLVED
        for k in range(1, steps + 1):
            t, last, before = k * h, rate, a
            count, is_done = 0, False
            while count < limit and not is_done:
                count += 1
                a = ((1 - alpha_f) * rate + alpha_f * last - alpha_m * before) / (1 - alpha_m)
                r, A, _, omega = _after(method, h, state, before, a)
                phi, G, K = self.terms(t, r, A, multipliers)
                force = self._balance(rate, omega) + (G.T @ multipliers).reshape(-1, 6)
                blocks = self._inertias(omega, share * h * method.g[1])
                scale = share * h * h * method.b[1]
                right = -np.concatenate([force.ravel(), phi / scale])
                d = self.solve(blocks + scale * K, G, right)
                rate = rate + d[: 6 * self.n_bodies].reshape(-1, 6)
                multipliers = multipliers + d[6 * self.n_bodies :]
                size = 1 + max(np.abs(rate).max(), np.abs(multipliers).max(initial=0.0))
                if not np.isfinite(size):
                    break
                is_done = bool(np.abs(d).max() <= tolerance * size)
            if not is_done:
                status = MarchStatus.UNSOLVED
                break
            a = ((1 - alpha_f) * rate + alpha_f * last - alpha_m * before) / (1 - alpha_m)
            state = _after(method, h, state, before, a)
            counts.append(count)
            if k % every == 0:
                kept.append((t, *state, multipliers))
        columns: Any = [
            np.array([entry[i] for entry in kept]).reshape(len(kept), *shape)
            for i, shape in enumerate([(), *(part.shape for part in state), (m,)])
        ]
        times, *motion, forces = columns
        r, A, rdot, omega = motion
        return LargeResult(times, r, A, rdot, omega, forces, np.array(counts), status)

    def terms(
        self, t: float, r: np.ndarray, A: np.ndarray, multipliers: np.ndarray
    ) -> tuple[np.ndarray, sp.csc_matrix, sp.csc_matrix]:
        """φ, G and the derivative of ``Gᵀ λ``, sparse.

        Parameters
        ----------
        t : float
        r : ndarray, shape (n_bodies, 3)
        A : ndarray, shape (n_bodies, 3, 3)
        multipliers : ndarray, shape (m,)
        """
        f, moving = self.forms.drives(t)
        r = np.vstack([r, np.zeros(3)])
        A = np.concatenate([A, UNIT[None]])
        phi = np.zeros(self.forms.m)
        G_parts, K_parts = [], []
        for rows in self.rows:
            value, left, right, blocks = self._kind(rows, r, A, moving, multipliers[rows.place])
            phi[rows.place] = value - f[rows.place, 0]
            G_parts += [(rows.place, rows.i, left), (rows.place, rows.j, right)]
            K_parts += [
                (rows.i, rows.i, blocks[0]),
                (rows.i, rows.j, blocks[1]),
                (rows.j, rows.i, blocks[2]),
                (rows.j, rows.j, blocks[3]),
            ]
        n = 6 * (self.n_bodies + 1)
        columns = np.arange(6)
        entries, lines, places = [], [], []
        for place, body, block in G_parts:
            entries.append(block.ravel())
            lines.append(np.repeat(place, 6))
            places.append((6 * body[:, None] + columns).ravel())
        G = sp.csc_matrix(
            (np.concatenate(entries), (np.concatenate(lines), np.concatenate(places))),
            shape=(self.forms.m, n),
        )[:, : n - 6]
        entries, lines, places = [], [], []
        for i, j, block in K_parts:
            entries.append(block.ravel())
            lines.append(np.repeat((6 * i[:, None] + columns).ravel(), 6))
            places.append(np.repeat(6 * j[:, None] + columns, 6, axis=0).ravel())
        K = sp.csc_matrix(
            (np.concatenate(entries), (np.concatenate(lines), np.concatenate(places))),
            shape=(n, n),
        )[: n - 6, : n - 6]
        return phi, G, K

    def _kind(
        self,
        rows: _RowsOfKind,
        r: np.ndarray,
        A: np.ndarray,
        moving: Mapping[int, np.ndarray],
        multipliers: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
        """U · w, its derivatives by both bodies, and the four blocks of the stiffness."""
        A_i, A_j, n = A[rows.i], A[rows.j], len(rows.place)
        lam = multipliers[:, None, None]
        a_j = rows.a_j
        if rows.moving:
            a_j = a_j.copy()
            for k, key in rows.moving:
                a_j[k] = moving[key][:, 0]
        zero = np.zeros((n, 3, 3))
        if rows.kind == "DP1":
            u, w = turned(A_i, rows.a_i), turned(A_j, a_j)
            ui, wj = variation(A_i, rows.a_i), variation(A_j, a_j)
            left = np.concatenate([0 * u, across(w, ui)], axis=1)
            right = np.concatenate([0 * u, across(u, wj)], axis=1)
            own_i = tildes(rows.a_i) @ tildes(turned_back(A_i, w))
            own_j = tildes(a_j) @ tildes(turned_back(A_j, u))
            cross = np.swapaxes(ui, 1, 2) @ wj
            ii, jj = framed(zero, zero, zero, own_i), framed(zero, zero, zero, own_j)
            ij = framed(zero, zero, zero, cross)
            return (
                dotted(u, w),
                left,
                right,
                [lam * ii, lam * ij, lam * ij.swapaxes(1, 2), lam * jj],
            )
        d = r[rows.j] + turned(A_j, rows.s_j) - r[rows.i] - turned(A_i, rows.s_i)
        unit = np.broadcast_to(UNIT, (n, 3, 3))
        by_i = np.concatenate([-unit, -variation(A_i, rows.s_i)], axis=2)
        by_j = np.concatenate([unit, variation(A_j, rows.s_j)], axis=2)
        if rows.kind == "D":
            own_i = -2 * tildes(rows.s_i) @ tildes(turned_back(A_i, d))
            own_j = 2 * tildes(rows.s_j) @ tildes(turned_back(A_j, d))
            ii = 2 * by_i.swapaxes(1, 2) @ by_i + framed(zero, zero, zero, own_i)
            jj = 2 * by_j.swapaxes(1, 2) @ by_j + framed(zero, zero, zero, own_j)
            ij = 2 * by_i.swapaxes(1, 2) @ by_j
            left, right = 2 * across(d, by_i), 2 * across(d, by_j)
            return (
                dotted(d, d),
                left,
                right,
                [lam * ii, lam * ij, lam * ij.swapaxes(1, 2), lam * jj],
            )
        u = rows.a_i if rows.kind == "CD" else turned(A_i, rows.a_i)
        left, right = across(u, by_i), across(u, by_j)
        own_i = -tildes(rows.s_i) @ tildes(turned_back(A_i, u))
        own_j = tildes(rows.s_j) @ tildes(turned_back(A_j, u))
        ii, jj = framed(zero, zero, zero, own_i), framed(zero, zero, zero, own_j)
        ij = np.zeros((n, 6, 6))
        if rows.kind == "DP2":
            ui = np.concatenate([zero, variation(A_i, rows.a_i)], axis=2)
            left = left + across(d, ui)
            own = tildes(rows.a_i) @ tildes(turned_back(A_i, d))
            mixed = ui.swapaxes(1, 2) @ by_i
            ii = ii + framed(zero, zero, zero, own) + mixed + mixed.swapaxes(1, 2)
            ij = ui.swapaxes(1, 2) @ by_j
        return dotted(u, d), left, right, [lam * ii, lam * ij, lam * ij.swapaxes(1, 2), lam * jj]

    def solve(self, M: Any, G: Any, right: np.ndarray) -> np.ndarray:
        """``[[M, Gᵀ], [G, 0]] x = right``, factored in an order of small band width.

        Parameters
        ----------
        M : sparse matrix, shape (n, n)
        G : sparse matrix, shape (m, n)
        right : ndarray, shape (n + m,)
        """
        M, G, n = M.tocoo(), G.tocoo(), M.shape[0]
        line = np.concatenate([M.row, G.row + n, G.col])
        place = np.concatenate([M.col, G.col, G.row + n])
        size = n + G.shape[0]
        place_of = self._place_of(line, place, size)
        data = np.concatenate([M.data, G.data, G.data])
        K = sp.csc_matrix((data, (place_of[line], place_of[place])), shape=(size, size))
        K.eliminate_zeros()  # half of the entries, of which coordinate differences have most
        sorted_right = np.empty(size)
        sorted_right[place_of] = right
        return splu(K, permc_spec="NATURAL").solve(sorted_right)[place_of]

    def _place_of(self, line: np.ndarray, place: np.ndarray, size: int) -> np.ndarray:
        """Places of the unknowns in that order; made once, for the pattern does not change."""
        if self._places is None:
            pattern = sp.csr_matrix((np.ones(len(line)), (line, place)), shape=(size, size))
            order = reverse_cuthill_mckee((pattern + pattern.T).tocsr(), True)
            self._places = np.empty(size, dtype=int)
            self._places[order] = np.arange(size)
        return self._places

    def _start(
        self, r: np.ndarray, A: np.ndarray, rdot: np.ndarray, omega: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and multipliers at the start, γ by differences along the motion.

        They are where Newton's method begins, and what generalized-α takes for the past.
        """
        rate, h = np.zeros((self.n_bodies, 6)), 1e-4
        multipliers = np.zeros(self.forms.m)
        phi0, G0, _ = self.terms(0.0, r, A, multipliers)
        after = rotations(h * omega), rotations(-h * omega)
        phi1 = self.terms(h, r + h * rdot, A @ after[0], multipliers)[0]
        phi2 = self.terms(-h, r - h * rdot, A @ after[1], multipliers)[0]
        gamma = -(phi1 - 2 * phi0 + phi2) / (h * h)
        right = np.concatenate([-self._balance(rate, omega).ravel(), gamma])
        x = self.solve(self._inertias(omega, 0.0), G0, right)
        return x[: 6 * self.n_bodies].reshape(-1, 6), x[6 * self.n_bodies :]

    def _balance(self, rate: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Inertia less weight, shape (n_bodies, 6)."""
        linear = self.masses[:, None] * (rate[:, :3] - self.forms.gravity)
        Jw = turned(self.inertias, w)
        return np.concatenate(
            [linear, turned(self.inertias, rate[:, 3:]) + np.cross(w, Jw)], axis=1
        )

    def _inertias(self, w: np.ndarray, step: float) -> Any:
        """M, with ``step (ω̃ J − tilde(J ω))``, block-diagonal."""
        J = self.inertias
        rotational = J + step * (tildes(w) @ J - tildes(turned(J, w)))
        blocks = np.zeros((self.n_bodies, 6, 6))
        blocks[:, :3, :3] = self.masses[:, None, None] * UNIT
        blocks[:, 3:, 3:] = rotational
        n = self.n_bodies
        return sp.bsr_matrix((blocks, np.arange(n), np.arange(n + 1))).tocsc()


def _after(
    method: Index3Method,
    h: float,
    state: tuple[np.ndarray, ...],
    before: np.ndarray,
    a: np.ndarray,
) -> tuple[np.ndarray, ...]:
    """r, A, ṙ, ω a step later, for accelerations of the method before and after it."""
    r, A, rdot, omega = state
    mean = h * (method.b[0] * before + method.b[1] * a)
    change = h * (method.g[0] * before + method.g[1] * a)
    return (
        r + h * (rdot + mean[:, :3]),
        A @ rotations(h * (omega + mean[:, 3:])),
        rdot + change[:, :3],
        omega + change[:, 3:],
    )


def turned(A: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``A a`` of many."""
    return (A @ a[..., None])[..., 0]


def turned_back(A: np.ndarray, a: np.ndarray) -> np.ndarray:
    """``Aᵀ a`` of many."""
    return (np.swapaxes(A, 1, 2) @ a[..., None])[..., 0]


def variation(A: np.ndarray, s: np.ndarray) -> np.ndarray:
    """``−A s̃`` of many."""
    return -A @ tildes(s)


def across(u: np.ndarray, block: np.ndarray) -> np.ndarray:
    """``uᵀ B`` of many."""
    return (u[:, None, :] @ block)[:, 0]


def dotted(u: np.ndarray, w: np.ndarray) -> np.ndarray:
    """``u · w`` of many."""
    return np.sum(u * w, axis=1)


def framed(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> np.ndarray:
    """``[[a, b], [c, d]]`` of many."""
    return np.concatenate([np.concatenate([a, b], axis=2), np.concatenate([c, d], axis=2)], axis=1)

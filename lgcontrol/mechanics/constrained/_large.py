"""Large mechanisms: index-3 steps with sparse matrices, all rows of a kind at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import splu

from ...codegen import ModelFunction
from ...codegen._internal import check_shape
from ...groups import SO3
from ...integrators._internal import TOLERATED, Index3Method
from ._assembly import CLOSED
from ._basic import GROUND, BasicConstraint, Connection, Direction
from ._joints import MechanismBody, MechanismJoint
from ._kinematics import Attempt, followed, jump_text
from ._march import March
from ._system import OFF


class BasicRows:
    """Rows DP1, DP2, D and CD of joints, in their order; refuses others."""

    def __init__(self, joints: Iterable[MechanismJoint]) -> None:
        self.rows: list[BasicConstraint] = []
        self.row_names: list[str] = []
        for joint in joints:
            for row in joint.rows:
                if not isinstance(row, BasicConstraint):
                    raise ValueError(
                        f"joint {joint.name!r}: closed forms exist for DP1, DP2, D and CD only, "
                        f"not for {row.row!r}; take system(), which differentiates any equation"
                    )
                self.rows.append(row)
                self.row_names.append(f"{joint.name}.{row.row}")
        moving = {id(v): v for row in self.rows for v in (row.u, row.w) if _moves(v)}
        self._moving: list[Any] = list(moving.values())
        self._last: tuple[float, np.ndarray, dict[int, np.ndarray]] | None = None

    @property
    def is_driven(self) -> bool:
        """Whether the time appears in a row."""
        return self._still is None

    def drives(self, t: float) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """``f, ḟ, f̈`` by row, shape (rows, 3), and ``a, ȧ, ä`` as columns by moving direction."""
        if self._still is not None:
            return self._still, {}
        last = self._last
        if last is None or last[0] != t:  # iterations of a step ask for one time again and again
            made, n = self._drives(np.array([t])), len(self.rows)
            moved = {id(v): made[n + 3 * k : n + 3 * k + 3] for k, v in enumerate(self._moving)}
            self._last = last = (t, made[:n], moved)
        return last[1:]

    @cached_property
    def _drives(self) -> ModelFunction:
        """``t → f, ḟ, f̈`` of all rows, and ``a, ȧ, ä`` of directions that move."""
        t = ca.SX.sym("t")
        values = [row.f(t) if callable(row.f) else row.f for row in self.rows]
        columns = ca.SX(ca.vertcat(*values, *(v.vector(t) for v in self._moving)))
        rate = ca.jacobian(columns, t)
        found = ca.horzcat(columns, rate, ca.jacobian(rate, t))
        return ModelFunction(ca.Function("drives", [t], [found], ["t"], ["drives"]))

    @cached_property
    def _still(self) -> np.ndarray | None:
        """``f, ḟ, f̈`` of all rows where nothing depends on the time, None otherwise."""
        if self._moving or any(callable(row.f) for row in self.rows):
            return None
        f = np.zeros((len(self.rows), 3))
        f[:, 0] = [row.f for row in self.rows]  # type: ignore[misc]
        return f


def _moves(v: Any) -> bool:
    return isinstance(v, Direction) and callable(v.vector)


def refuse_other_forces(mechanism: Any) -> None:
    """Say what acts on a mechanism besides weight and joints, where closed forms know no more."""
    acting = [b.name for b in mechanism.bodies.values() if b.forces] + [
        *mechanism.motors,
        *mechanism.forces,
    ]
    if acting:
        raise ValueError(
            f"{mechanism.name}: closed forms know weight and joints alone, not what else acts "
            f"({', '.join(acting)}); take system(), which does"
        )


EYE = np.eye(3)
# Steps of Newton's method that close the joints from nearby: it converges in 3 to 6 of them.
CLOSING_STEPS = 30
# Share of a random displacement that rows may leave where drives decide all.
UNDECIDED = 1e-6
# Time of differences along a motion [s].
SHORT_STEP = 1e-4
# Compliance of rows that makes the matrix regular where they depend on others.
NEWTON_SLACK = 1e-10


def has_closed_forms(rows: Iterable[Any]) -> bool:
    """Whether all rows are basic constraints whose moving directions are second ones of a DP1."""
    return all(
        isinstance(row, BasicConstraint)
        and not (isinstance(row.u, Direction) and callable(row.u.vector))
        for row in rows
    )


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
    return EYE + np.sinc(angle / np.pi) * K + half * half / 2 * (K @ K)


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

    Rows of a kind (DP1, DP2, D, CD) are evaluated together; joints have basic constraints only. The
    matrix of Newton's method is factored in an order of small bandwidth. The cost of chains and
    ladders is linear in their number of bodies. Rows may depend on others: of all multipliers the
    shortest are found.
    """

    def __init__(
        self,
        bodies: Mapping[str, MechanismBody],
        joints: Iterable[MechanismJoint],
        gravity: np.ndarray,
    ) -> None:
        self.basic, self.names, self.gravity = BasicRows(joints), tuple(bodies), gravity
        self.n_bodies, self.m = len(bodies), len(self.basic.rows)
        self.masses = np.array([body.inertia.mass for body in bodies.values()])
        self.inertias = np.array([np.asarray(body.inertia.inertia) for body in bodies.values()])
        self._places: np.ndarray | None = None

    @cached_property
    def rows(self) -> tuple[_RowsOfKind, ...]:
        """Rows by kind."""
        index = {name: k for k, name in enumerate(self.names)}
        index[GROUND] = self.n_bodies
        kinds: dict[str, list[Any]] = {}
        for place, row in enumerate(self.basic.rows):
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
                        a_i[k] = row.u.vector
                else:
                    i[k], j[k] = index[row.u.body], index[row.w.body]
                    a_i[k] = row.u.vector
                    if callable(row.w.vector):
                        moving.append((k, id(row.w)))
                    else:
                        a_j[k] = row.w.vector
            places = np.array([place for place, _ in entries])
            found.append(_RowsOfKind(kind, places, i, j, a_i, a_j, s_i, s_j, tuple(moving)))
        return tuple(found)

    def march(
        self,
        x0: np.ndarray,
        dt: float,
        steps: int,
        method: Index3Method,
        *,
        limit: int = 20,
    ) -> March:
        """Steps of an index-3 method, each iterated until its corrections are small.

        x0 has a configuration and velocities on (SO(3) × R³)ⁿ, and the clock where there are
        drives. The march ends before the first step that does not converge.
        """
        h, (alpha_m, alpha_f), n = dt, method.alpha, self.n_bodies
        share = (1 - alpha_f) / (1 - alpha_m)
        state, t0 = self._split(x0)
        self._refuse(state, t0)
        rate, multipliers = self._start(t0, *state)
        a, unsolved, t = rate, None, t0 + h * np.arange(steps + 1)
        kept, off = [(*state, rate, multipliers)], []
        for k in range(steps):
            last, before, left = rate, a, np.inf
            for _ in range(limit):
                a = ((1 - alpha_f) * rate + alpha_f * last - alpha_m * before) / (1 - alpha_m)
                r, A, _, omega = _after(method, h, state, before, a)
                phi, G, K = self.terms(t[k + 1], r, A, multipliers)
                force = self._balance(rate, omega) + (G.T @ multipliers).reshape(-1, 6)
                blocks = self._inertias(omega, share * h * method.g[1])
                scale = share * h * h * method.b[1]
                right = -np.concatenate([force.ravel(), phi / scale])
                d = self.solve(blocks + scale * K, G, right)
                rate = rate + d[: 6 * n].reshape(-1, 6)
                multipliers = multipliers + d[6 * n :]
                size = 1 + max(np.abs(rate).max(), np.abs(multipliers).max(initial=0.0))
                left = np.abs(d).max() / (TOLERATED * size)
                if left <= 1 or not np.isfinite(size):
                    break
            off.append(left)
            if not left <= 1:
                unsolved = k
                break
            a = ((1 - alpha_f) * rate + alpha_f * last - alpha_m * before) / (1 - alpha_m)
            state = _after(method, h, state, before, a)
            kept.append((*state, rate, multipliers))
        t = t[: len(kept)]
        return March(t, *_columns(kept, t, self.basic.is_driven), np.array(off), unsolved)

    def assemble(
        self, q: np.ndarray, t: float = 0.0, tolerance: float = CLOSED
    ) -> np.ndarray | None:
        """Configuration near a guess that keeps all rows; None where Newton fails."""
        n = self.n_bodies
        r, A = q.reshape(n, 7)[:, :3], np.asarray(SO3.matrix(q.reshape(n, 7)[:, 3:]))
        before = np.inf
        for _ in range(CLOSING_STEPS):
            phi, G, _ = self.terms(t, r, A, np.zeros(self.m))
            gap = np.abs(phi).max(initial=0.0)
            if gap <= tolerance or (gap <= 100 * tolerance and gap >= before / 2):
                return np.hstack([r, np.asarray(SO3.from_matrix(A))]).ravel()
            d = self._nearest(G, -phi).reshape(n, 6)
            r, A, before = r + d[:, :3], A @ rotations(d[:, 3:]), gap
        return None

    def gap(self, q: np.ndarray, t: float = 0.0) -> np.ndarray:
        """φ of all rows."""
        r, A = q.reshape(-1, 7)[:, :3], np.asarray(SO3.matrix(q.reshape(-1, 7)[:, 3:]))
        return self.terms(t, r, A, np.zeros(self.m))[0]

    def velocity(self, q: np.ndarray, v: np.ndarray, t: float = 0.0) -> np.ndarray:
        """Velocities that keep all rows, the nearest to v in the metric of M."""
        r, A = q.reshape(-1, 7)[:, :3], np.asarray(SO3.matrix(q.reshape(-1, 7)[:, 3:]))
        G = self.terms(t, r, A, np.zeros(self.m))[1]
        off, n = self.rates(t, r, A, v.reshape(-1, 6))[0] - G @ v, 6 * self.n_bodies
        M = self._inertias(np.zeros((self.n_bodies, 3)), 0.0)
        return v + self.solve(M, G, np.concatenate([np.zeros(n), off]))[:n]

    def kinematics(
        self, t: np.ndarray, q: np.ndarray, tolerance: float = CLOSED
    ) -> tuple[list[tuple[np.ndarray, ...]], str]:
        """q, v, a, λ at increasing times from a configuration (7 n,), and why they end early."""
        n, message = self.n_bodies, ""
        probe = np.random.default_rng(0).normal(size=6 * n)

        def attempt(before: tuple[Any, ...] | None, last: float, time: float) -> Attempt:
            nonlocal message
            q0, v, a = (q, *np.zeros((2, 6 * n))) if before is None else before[:3]
            h = time - last
            move = h * v + h * h / 2 * a
            d, places = move.reshape(n, 6), q0.reshape(n, 7)
            ahead = np.asarray(SO3.compose(places[:, 3:], SO3.exp(d[:, 3:])))
            guess = np.hstack([places[:, :3] + d[:, :3], ahead])
            made = self.assemble(guess.ravel(), time, tolerance)
            if made is None:
                message = "positions at t = {:.6g} s could not be solved"
                return Attempt(None, move, move)
            here = made.reshape(n, 7)
            turned = np.asarray(SO3.minus(here[:, 3:], guess[:, 3:]))
            correction = np.hstack([here[:, :3] - guess[:, :3], turned]).ravel()
            r, A = here[:, :3], np.asarray(SO3.matrix(here[:, 3:]))
            G = self.terms(time, r, A, np.zeros(self.m))[1]
            left = probe - self._nearest(G, G @ probe)
            if np.linalg.norm(left) > UNDECIDED * np.linalg.norm(probe):
                message = "no drive decides all degrees of freedom at t = {:.6g} s"
                return Attempt(None, move, correction)
            v = self._nearest(G, self.rates(time, r, A, np.zeros((n, 6)))[0])
            a = self._nearest(G, self.rates(time, r, A, v.reshape(n, 6))[1])
            rest = -self._balance(a.reshape(n, 6), v.reshape(n, 6)[:, 3:]).ravel()
            unit = sp.identity(6 * n, format="csc")
            right = np.concatenate([rest, np.zeros(self.m)])
            multipliers = self.solve(unit, G, right)[6 * n :]
            return Attempt((made, v, a, multipliers), move, correction)

        found, jumps = [], []
        for row, jumped in followed(t, attempt):
            found.append(row)
            jumps += [float(t[len(found) - 1])] * jumped
        if len(found) < len(t):
            return found, message.format(t[len(found)])
        return found, jump_text(jumps)

    def rates(self, t: float, r: Any, A: Any, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ν and γ of ``G v = ν`` and ``G v̇ = γ`` at velocities v, shape (n_bodies, 6)."""
        f, moving = self.basic.drives(t)
        nu, gamma = f[:, 1].copy(), f[:, 2].copy()
        r, A = np.vstack([r, np.zeros(3)]), np.concatenate([A, EYE[None]])
        v = np.vstack([v, np.zeros(6)])
        for rows in self.rows:
            one = np.ones(len(rows.place))
            ii, ij, _, jj = self._kind(rows, r, A, moving, one)[3]
            left, right = v[rows.i], v[rows.j]
            for a, K, b in ((left, ii, left), (left, 2 * ij, right), (right, jj, right)):
                gamma[rows.place] -= np.einsum("ni,nij,nj->n", a, K, b)
            for k, key in rows.moving:
                A_i, A_j, place = A[rows.i[k]], A[rows.j[k]], rows.place[k]
                u, (_, da, dda) = A_i @ rows.a_i[k], moving[key].T
                spun = A_i @ np.cross(v[rows.i[k], 3:], rows.a_i[k])
                turn = A_j @ np.cross(v[rows.j[k], 3:], da)
                nu[place] -= u @ A_j @ da
                gamma[place] -= 2 * (spun @ A_j @ da + u @ turn) + u @ A_j @ dda
        return nu, gamma

    def _nearest(self, G: Any, right: np.ndarray) -> np.ndarray:
        """Shortest x with ``G x = right``, refined once."""
        n = G.shape[1]
        unit, none = sp.identity(n, format="csc"), np.zeros(n)
        x = self.solve(unit, G, np.concatenate([none, right]))[:n]
        return x + self.solve(unit, G, np.concatenate([none, right - G @ x]))[:n]

    def _split(self, x: Any) -> tuple[tuple[np.ndarray, ...], float]:
        """r, A, ṙ and ω of a state, and its time."""
        n = self.n_bodies
        x = check_shape("x0", x, (13 * n + self.basic.is_driven,))
        q, v = x[: 7 * n].reshape(n, 7), x[7 * n : 13 * n].reshape(n, 6)
        t = float(x[-1]) if self.basic.is_driven else 0.0
        return (q[:, :3], np.asarray(SO3.matrix(q[:, 3:])), v[:, :3], v[:, 3:]), t

    def _refuse(self, state: tuple[np.ndarray, ...], t: float) -> None:
        """Say which row a start breaks most."""
        before, phi, after = self._along(t, *state)
        rate = (after - before) / (2 * SHORT_STEP)
        for what, gap in (("position", phi), ("velocity", rate)):
            if np.abs(gap).max(initial=0.0) > OFF:
                k = int(np.abs(gap).argmax())
                raise ValueError(
                    f"x0 does not keep the constraints, the {what} of {self.basic.row_names[k]} is "
                    f"off by {abs(gap[k]):.3g}; state() makes one that does"
                )

    def terms(
        self, t: float, r: np.ndarray, A: np.ndarray, multipliers: np.ndarray
    ) -> tuple[np.ndarray, sp.csc_matrix, sp.csc_matrix]:
        """φ, G and the derivative of ``Gᵀ λ``, sparse; for r (n, 3), A (n, 3, 3), λ (m,)."""
        f, moving = self.basic.drives(t)
        r = np.vstack([r, np.zeros(3)])
        A = np.concatenate([A, EYE[None]])
        phi = np.zeros(self.m)
        G_parts, K_parts = [], []
        for rows in self.rows:
            value, left, right, blocks = self._kind(rows, r, A, moving, multipliers[rows.place])
            phi[rows.place] = value - f[rows.place, 0]
            i, j = (6 * k[:, None] + np.arange(6) for k in (rows.i, rows.j))
            at, (ii, ij, ji, jj) = rows.place[:, None], blocks
            G_parts += [(at, i, left[:, None]), (at, j, right[:, None])]
            K_parts += [(i, i, ii), (i, j, ij), (j, i, ji), (j, j, jj)]
        n = 6 * self.n_bodies
        G = _gathered(G_parts, (self.m, n + 6))[:, :n]
        K = _gathered(K_parts, (n + 6, n + 6))[:n, :n]
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
        none = np.zeros((n, 6, 6))

        def found(
            value: np.ndarray, left: Any, right: Any, ii: Any, ij: Any, jj: Any
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray, list[np.ndarray]]:
            return value, left, right, [lam * K for K in (ii, ij, ij.swapaxes(1, 2), jj)]

        def turns(K: np.ndarray) -> np.ndarray:
            """A block of the turns alone."""
            padded = none.copy()
            padded[:, 3:, 3:] = K
            return padded

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
            return found(dotted(u, w), left, right, turns(own_i), turns(cross), turns(own_j))
        d = r[rows.j] + turned(A_j, rows.s_j) - r[rows.i] - turned(A_i, rows.s_i)
        unit = np.broadcast_to(EYE, (n, 3, 3))
        by_i = np.concatenate([-unit, -variation(A_i, rows.s_i)], axis=2)
        by_j = np.concatenate([unit, variation(A_j, rows.s_j)], axis=2)
        if rows.kind == "D":
            own_i = -2 * tildes(rows.s_i) @ tildes(turned_back(A_i, d))
            own_j = 2 * tildes(rows.s_j) @ tildes(turned_back(A_j, d))
            ii = 2 * by_i.swapaxes(1, 2) @ by_i + turns(own_i)
            jj = 2 * by_j.swapaxes(1, 2) @ by_j + turns(own_j)
            ij = 2 * by_i.swapaxes(1, 2) @ by_j
            left, right = 2 * across(d, by_i), 2 * across(d, by_j)
            return found(dotted(d, d), left, right, ii, ij, jj)
        u = rows.a_i if rows.kind == "CD" else turned(A_i, rows.a_i)
        left, right = across(u, by_i), across(u, by_j)
        own_i = -tildes(rows.s_i) @ tildes(turned_back(A_i, u))
        own_j = tildes(rows.s_j) @ tildes(turned_back(A_j, u))
        ii, ij, jj = turns(own_i), none, turns(own_j)
        if rows.kind == "DP2":
            ui = np.concatenate([zero, variation(A_i, rows.a_i)], axis=2)
            left = left + across(d, ui)
            own = tildes(rows.a_i) @ tildes(turned_back(A_i, d))
            mixed = ui.swapaxes(1, 2) @ by_i
            ii = ii + turns(own) + mixed + mixed.swapaxes(1, 2)
            ij = ui.swapaxes(1, 2) @ by_j
        return found(dotted(u, d), left, right, ii, ij, jj)

    def solve(self, M: Any, G: Any, right: np.ndarray) -> np.ndarray:
        """``[[M, Gᵀ], [G, −ε]] x = right``, factored in an order of small band width.

        ε is 1e-10 of the compliance: rows that depend on others leave the matrix regular.
        """
        M, G, n = M.tocoo(), G.tocoo(), M.shape[0]
        size = n + G.shape[0]
        own = np.arange(n, size)
        line = np.concatenate([M.row, G.row + n, G.col, own])
        place = np.concatenate([M.col, G.col, G.row + n, own])
        place_of = self._place_of(line, place, size)
        slack = np.full(size - n, -NEWTON_SLACK * n / M.diagonal().sum())
        data = np.concatenate([M.data, G.data, G.data, slack])
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
        self, t: float, r: np.ndarray, A: np.ndarray, rdot: np.ndarray, omega: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations and multipliers at the start, γ by differences along the motion.

        They are where Newton's method begins, and what generalized-α takes for the past.
        """
        rate, multipliers = np.zeros((self.n_bodies, 6)), np.zeros(self.m)
        before, phi, after = self._along(t, r, A, rdot, omega)
        gamma = -(after - 2 * phi + before) / SHORT_STEP**2
        G0 = self.terms(t, r, A, multipliers)[1]
        right = np.concatenate([-self._balance(rate, omega).ravel(), gamma])
        x = self.solve(self._inertias(omega, 0.0), G0, right)
        return x[: 6 * self.n_bodies].reshape(-1, 6), x[6 * self.n_bodies :]

    def _along(self, t: float, r: Any, A: Any, rdot: Any, omega: Any) -> list[np.ndarray]:
        """φ a short time before, now, and a short time after, with velocities as they are."""
        none = np.zeros(self.m)
        return [
            self.terms(t + h, r + h * rdot, A @ rotations(h * omega), none)[0]
            for h in (-SHORT_STEP, 0.0, SHORT_STEP)
        ]

    def _balance(self, rate: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Inertia less weight, shape (n_bodies, 6)."""
        linear = self.masses[:, None] * (rate[:, :3] - self.gravity)
        Jw = turned(self.inertias, w)
        return np.concatenate(
            [linear, turned(self.inertias, rate[:, 3:]) + np.cross(w, Jw)], axis=1
        )

    def _inertias(self, w: np.ndarray, step: float) -> Any:
        """M, with ``step (ω̃ J − tilde(J ω))``, block-diagonal."""
        J = self.inertias
        rotational = J + step * (tildes(w) @ J - tildes(turned(J, w)))
        blocks = np.zeros((self.n_bodies, 6, 6))
        blocks[:, :3, :3] = self.masses[:, None, None] * EYE
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


def _columns(
    kept: Sequence[Any], t: np.ndarray, is_driven: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """States with quaternions of one sign along the motion, accelerations and multipliers."""
    r, A, rdot, omega, rate, multipliers = (np.array(part) for part in zip(*kept, strict=True))
    quaternions = np.array(SO3.from_matrix(A))
    turns = np.sign(np.sum(quaternions[1:] * quaternions[:-1], axis=-1, keepdims=True))
    quaternions[1:] *= np.cumprod(np.where(turns < 0, -1.0, 1.0), axis=0)
    n = len(t)
    parts = [np.concatenate(pair, axis=-1) for pair in ((r, quaternions), (rdot, omega))]
    x = np.hstack([part.reshape(n, -1) for part in parts] + [t[:, None]] * is_driven)
    return x, rate.reshape(n, -1), multipliers


def _gathered(parts: Sequence[tuple[np.ndarray, ...]], shape: tuple[int, int]) -> sp.csc_matrix:
    """Sum of blocks (n, a, b), each with its rows (n, a) and columns (n, b)."""
    each = [
        (block, *np.broadcast_arrays(rows[:, :, None], columns[:, None, :]))
        for rows, columns, block in parts
    ]
    entries, *places = (np.concatenate([x.ravel() for x in own]) for own in zip(*each, strict=True))
    return sp.csc_matrix((entries, tuple(places)), shape=shape)


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

"""Solving stage QPs: back-ends, the rows and slacks they are given, and the check of their results.

A back-end is a callable ``StageQP → StageQPSolution``; one with a memory has ``reset()``.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from lgcontrol.codegen._internal import UnknownNameError, unknown_name

from ._stage_qp import StageQP, StageQPSolution, gradient_size, qp_residual

Backend = Callable[[StageQP], StageQPSolution]

# What counts as solved, relative to the gradient: first-order back-ends reach 1e-6, a search
# direction needs far less, and an infeasible problem misses it by orders of magnitude.
QP_TOLERANCE = 1e-4
# Most bounds on states are idle most of the time: a solve begins with the rows that limited the
# last solution, adds those that the result exceeds by more than KEPT, and takes all in the last
# round. A solution without some rows that keeps them all the same is the solution with them.
ROUNDS, KEPT = 3, 1e-9
# A row whose multipliers are below this share of the largest is idle.
IDLE = 1e-6
# Up to so many unknowns a dense active set beats a sparse interior point.
DENSE_LIMIT = 240
# Set-ups that a back-end keeps: which rows limit a solution changes, in a loop there are few kinds.
MOST_PROGRAMS = 8


class QPSolver:
    """Solves stage QPs of any sizes with one back-end, and trusts no back-end.

    Back-ends get hard rows only, and of those the ones that matter: rows that do not limit the
    solution are left out, soft rows get slack inputs ``s ≥ 0`` at the price ``w (s + s²/2)``. Each
    result is checked against the conditions of the whole problem.

    Parameters
    ----------
    backend : str or callable
        A key of `QP_SOLVERS`; "auto": "daqp" for few unknowns without slacks, "piqp" for others
        and where that fails; or a back-end of your own, ``StageQP → StageQPSolution``. It gets
        problems without soft rows; what it says of ``solved``, ``error`` and ``time`` is not read.

    Raises
    ------
    ValueError
        If there is no such back-end; the message lists those there are.

    Examples
    --------
    >>> QPSolver("daqp").name
    'daqp'
    """

    def __init__(self, backend: str | Backend = "auto") -> None:
        if isinstance(backend, str):
            if backend != "auto" and backend not in QP_SOLVERS:
                raise UnknownNameError(unknown_name("QP solver", backend, ("auto", *QP_SOLVERS)))
            used = ("daqp", "piqp") if backend == "auto" else (backend,)
            self.name = backend
            self._backends: dict[str, Backend] = {name: QP_SOLVERS[name]() for name in used}
        elif callable(backend):
            self.name = getattr(backend, "__name__", type(backend).__name__)
            self._backends = {self.name: backend}
        else:
            raise TypeError(
                f"a QP back-end is a name ({', '.join(('auto', *QP_SOLVERS))}) or a callable "
                f"StageQP → StageQPSolution, not {type(backend).__name__}"
            )
        self._watched = np.zeros(0, dtype=bool)  # rows that limited the last solution

    def solve(self, qp: StageQP) -> StageQPSolution:
        """Solve; never raises because the problem is hard or infeasible.

        Parameters
        ----------
        qp : StageQP

        Returns
        -------
        StageQPSolution
        """
        started = time.perf_counter()
        if not _has_numbers(qp):
            return _no_solution(qp, time.perf_counter() - started)
        rows = np.asarray(qp.active.any(axis=0))
        is_same = self._watched.shape == rows.shape
        chosen: np.ndarray = self._watched & rows if is_same else np.zeros_like(rows)
        result, solves = self._solve_part(qp, chosen), 1
        while not np.array_equal(chosen, rows):
            exceeded = np.asarray((qp.excess(result.x, result.u) > KEPT).any(axis=0))
            missed = np.logical_and(exceeded, ~chosen)
            if result.solved and not missed.any():
                break
            more = np.logical_or(chosen, missed)
            chosen = more if result.solved and solves + 1 < ROUNDS else rows
            result, solves = self._solve_part(qp, chosen), solves + 1
        prices = np.abs(result.row_multipliers)
        self._watched = (prices > IDLE * prices.max(initial=0.0)).any(axis=0)
        return replace(result, time=time.perf_counter() - started)

    def reset(self) -> None:
        """Forget earlier solutions, which later solves start from."""
        self._watched = np.zeros(0, dtype=bool)
        for backend in self._backends.values():
            forget = getattr(backend, "reset", None)
            if forget is not None:
                forget()

    def _solve_part(self, qp: StageQP, chosen: np.ndarray) -> StageQPSolution:
        """Solve with some of the rows, by one back-end after the other until one succeeds."""
        part = replace(qp, active=qp.active & chosen)
        hard = with_slacks(part)
        result = _no_solution(qp, 0.0)
        for backend in self._order(part):
            result = _checked(part, backend(hard), self.name)
            if result.solved:
                break
        return result

    def _order(self, qp: StageQP) -> tuple[Backend, ...]:
        """Back-ends to try."""
        if self.name != "auto" or len(self._backends) == 1:
            return tuple(self._backends.values())
        horizon, _, m = qp.sizes
        is_soft = (np.isfinite(qp.soft) & qp.active.any(axis=0)).any()
        # Long horizons of unstable systems, or with bounds on states, condense badly.
        sparse = self._backends["piqp"]
        is_sparse = is_soft or horizon * m > DENSE_LIMIT
        return (sparse,) if is_sparse else (self._backends["daqp"], sparse)


def with_slacks(qp: StageQP) -> StageQP:
    """The same problem with hard rows only: slacks of soft rows are further inputs.

    Each finite limit of a soft active row has a slack ``s ≥ 0`` at the price ``w (s + s²/2)``. Rows
    at the end, where there are no inputs, get a stage of their own after it, which leads nowhere.
    What the solution says of x, u and rows comes first in each of its arrays.

    Parameters
    ----------
    qp : StageQP

    Returns
    -------
    StageQP
    """
    used = qp.active & np.isfinite(qp.soft)
    if not used.any():
        return qp
    if used[-1].any():
        qp = _with_last_stage(qp)
        used = np.concatenate([used, np.zeros_like(used[:1])])
    upper, lower = (
        np.flatnonzero((used & np.isfinite(limit)).any(axis=0)) for limit in (qp.upper, qp.lower)
    )
    horizon, n, m = qp.sizes
    rows, weights = np.r_[upper, lower], qp.soft[np.r_[upper, lower]]
    count = len(rows)
    relief = np.zeros((horizon, qp.soft.size, count))
    relief[:, rows, np.arange(count)] = np.r_[-np.ones(len(upper)), np.ones(len(lower))]
    R = np.zeros((horizon, m + count, m + count))
    R[:, :m, :m], R[:, range(m, m + count), range(m, m + count)] = qp.R, weights
    zeros = np.zeros((horizon, count))
    return replace(
        qp,
        B=np.concatenate([qp.B, np.zeros((horizon, n, count))], axis=2),
        S=np.concatenate([qp.S, np.zeros((horizon, count, n))], axis=1),
        R=R,
        r=np.concatenate([qp.r, zeros + weights], axis=1),
        u_lower=np.concatenate([qp.u_lower, zeros], axis=1),
        u_upper=np.concatenate([qp.u_upper, zeros + np.inf], axis=1),
        D=np.concatenate([qp.D, relief], axis=2),
        soft=np.full(qp.soft.shape, np.inf),
    )


def _with_last_stage(qp: StageQP) -> StageQP:
    """One more stage, from the end to zero, with inputs that are zero."""
    _, n, m = qp.sizes
    more = {
        "A": np.zeros((n, n)), "B": np.zeros((n, m)), "c": np.zeros(n), "Q": np.zeros((n, n)),
        "S": np.zeros((m, n)), "R": np.eye(m), "q": np.zeros(n), "r": np.zeros(m),
        "u_lower": np.zeros(m), "u_upper": np.zeros(m), "C": np.zeros_like(qp.C[0]),
        "D": np.zeros_like(qp.D[0]), "lower": np.zeros_like(qp.lower[0]),
        "upper": np.zeros_like(qp.upper[0]), "active": np.zeros_like(qp.active[0]),
    }  # fmt: skip
    return replace(
        qp, **{name: np.concatenate([getattr(qp, name), row[None]]) for name, row in more.items()}
    )


def _checked(qp: StageQP, found: Any, name: str) -> StageQPSolution:
    """What a back-end found for a problem with slacks, without them, judged on its own terms."""
    if not isinstance(found, StageQPSolution):
        raise TypeError(
            f"the QP back-end {name!r} returned {type(found).__name__}, expected a StageQPSolution"
        )
    horizon, _, m = qp.sizes
    u = np.clip(found.u[:horizon, :m], qp.u_lower, qp.u_upper)
    solution = StageQPSolution(
        found.x[: horizon + 1],
        u,
        found.dynamics_multipliers[:horizon],
        found.bound_multipliers[:horizon, :m],
        found.row_multipliers[: horizon + 1],
    )
    error = qp_residual(qp, solution, gradient_size(qp))
    return replace(solution, solved=bool(error <= QP_TOLERANCE), error=error)


def _has_numbers(qp: StageQP) -> bool:
    """Whether nothing that counts is NaN, and nothing but limits is infinite."""
    numbers = (qp.x0, qp.A, qp.B, qp.c, qp.Q, qp.S, qp.R, qp.q, qp.r)
    rows = (qp.C[qp.active], qp.D[qp.active[:-1]])
    limits = (qp.u_lower, qp.u_upper, qp.lower[qp.active], qp.upper[qp.active])
    return all(np.isfinite(values).all() for values in (*numbers, *rows)) and not any(
        np.isnan(values).any() for values in limits
    )


def _no_solution(qp: StageQP, spent: float) -> StageQPSolution:
    return StageQPSolution(
        np.full_like(qp.q, np.nan), np.full_like(qp.r, np.nan), np.zeros_like(qp.c),
        np.zeros_like(qp.r), np.zeros(qp.active.shape), time=spent,
    )  # fmt: skip


class Conic:
    """A back-end of CasADi's: flat problems in memory that is set up once for each structure.

    Parameters
    ----------
    plugin : str
        Name of CasADi's interface.
    flattening : Flattening
    options : dict, optional
    """

    def __init__(
        self, plugin: str, flattening: Flattening, options: dict[str, Any] | None = None
    ) -> None:
        self.plugin, self.flattening, self.options = plugin, flattening, options or {}
        self._programs: dict[tuple[object, ...], _PluginSetup] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Without the programs, which hold memory of the back-end."""
        return self.__dict__ | {"_programs": {}}

    def __call__(self, qp: StageQP) -> StageQPSolution:
        """Solution of a problem with hard rows, unchecked."""
        flattening, key = self.flattening, self.flattening.key(qp)
        program = self._programs.pop(key, None)
        if program is None:
            program = _PluginSetup(self.plugin, self.options, flattening.structure(qp))
        self._programs[key] = program  # the one used last stands last
        if len(self._programs) > MOST_PROGRAMS:
            del self._programs[next(iter(self._programs))]
        z, bound_prices, row_prices = program.run(flattening.flatten(qp))
        u = np.clip(flattening.inputs(qp, z), qp.u_lower, qp.u_upper)
        rows, first = np.zeros(qp.active.shape), program.structure.first
        rows[qp.active] = row_prices[first : first + int(qp.active.sum())]
        x = flattening.states(qp, z, u)
        prices = flattening.adjoints(qp, x, u, row_prices, rows)
        return StageQPSolution(x, u, prices, flattening.inputs(qp, bound_prices).copy(), rows)

    def reset(self) -> None:
        """Forget the multipliers that solves start from."""
        for program in self._programs.values():
            program.memory["lam_x"][:], program.memory["lam_a"][:] = 0.0, 0.0


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


class Flattening(ABC):
    """How a stage QP with hard rows becomes one vector of unknowns and one list of rows."""

    @abstractmethod
    def key(self, qp: StageQP) -> tuple[object, ...]:
        """What problems of one structure have in common."""

    @abstractmethod
    def structure(self, qp: StageQP) -> Structure:
        """Places of the entries."""

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


class Condensed(Flattening):
    """``x_k = G_k u + h_k``: N·m unknowns, whatever the number of states.

    Errors grow with the powers of A: for unstable systems over long horizons use a sparse form.
    """

    def key(self, qp: StageQP) -> tuple[object, ...]:
        """Sizes: the matrices are dense, whichever rows there are."""
        return (qp.sizes, int(qp.active.sum()))

    def structure(self, qp: StageQP) -> Structure:
        """Dense matrices."""
        horizon, _, m = qp.sizes
        unknowns, rows = horizon * m, int(qp.active.sum())
        corner = np.zeros(1, dtype=int)
        return Structure(
            unknowns,
            rows,
            0,
            Places.blocks(corner, corner, unknowns, unknowns),
            Places.blocks(corner, corner, rows, unknowns),
        )

    def flatten(self, qp: StageQP) -> FlatQP:
        """Eliminate the states forwards, assemble cost and gradient backwards."""
        horizon, n, m = qp.sizes
        total = horizon * m
        k, own = np.arange(horizon), np.arange(total).reshape(horizon, m)
        # All is affine in the inputs; the last column is what does not depend on them.
        G = np.zeros((horizon + 1, n, total + 1))
        G[0, :, -1] = qp.x0
        G[k[:, None] + 1, :, own] = qp.B.swapaxes(1, 2)
        G[1:, :, -1] = qp.c
        for i in range(horizon):
            G[i + 1, :, : i * m] = qp.A[i] @ G[i, :, : i * m]
            G[i + 1, :, -1] += qp.A[i] @ G[i, :, -1]
        # Derivatives of the cost by each state and input alone, then those through later states.
        by_x, by_u = qp.Q @ G, qp.S @ G[:-1]
        by_x[:, :, -1] += qp.q
        by_u[:, :, -1] += qp.r
        by_x[k[:, None], :, own] += qp.S
        by_u[k[:, None], :, own] += qp.R.swapaxes(1, 2)
        back = np.concatenate([qp.A, qp.B], axis=2).swapaxes(1, 2)
        for i in range(horizon - 1, -1, -1):
            through = back[i] @ by_x[i + 1]
            by_x[i] += through[:n]
            by_u[i] += through[n:]
        rows = by_u.reshape(total, total + 1)
        H, g = rows[:, :-1], rows[:, -1]
        stage, row = np.nonzero(qp.active)
        A = np.einsum("ri,riz->rz", qp.C[stage, row], G[stage])
        A, offset = A[:, :-1], A[:, -1]
        inside = stage < horizon
        for j in range(m):
            A[inside, stage[inside] * m + j] += qp.D[stage[inside], row[inside], j]
        return FlatQP(
            (H + H.T).ravel() / 2,
            A.ravel(),
            g.copy(),
            qp.u_lower.ravel(),
            qp.u_upper.ravel(),
            qp.lower[stage, row] - offset,
            qp.upper[stage, row] - offset,
        )

    def inputs(self, qp: StageQP, z: np.ndarray) -> np.ndarray:
        """All unknowns are inputs."""
        horizon, _, m = qp.sizes
        return z[: horizon * m].reshape(horizon, m)

    def states(self, qp: StageQP, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """They follow from the inputs."""
        return qp.states(u)

    def adjoints(
        self, qp: StageQP, x: np.ndarray, u: np.ndarray, prices: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """They follow from the states."""
        return qp.adjoints(x, u, rows)


class Sparse(Flattening):
    """Unknowns ``u_0, x_1, u_1, x_2, …, x_N``; rows: the dynamics, then the active rows."""

    def key(self, qp: StageQP) -> tuple[object, ...]:
        """Sizes, and where rows are."""
        return (qp.sizes, qp.active.tobytes())

    def structure(self, qp: StageQP) -> Structure:
        """Blocks along the diagonals."""
        horizon, n, m = qp.sizes
        at_u, at_x = _positions(qp)
        step = np.arange(horizon) * n
        stage, _ = np.nonzero(qp.active)
        row = horizon * n + np.arange(len(stage))
        later, inside = stage > 0, stage < horizon
        H = Places.join(
            Places.blocks(at_u, at_u, m, m),
            Places.blocks(at_x, at_x, n, n),
            Places.blocks(at_u[1:], at_x[:-1], m, n),
            Places.blocks(at_x[:-1], at_u[1:], n, m),
        )
        diagonal = Places(np.arange(horizon * n), (at_x[:, None] + np.arange(n)).ravel())
        A = Places.join(
            Places.blocks(step, at_u, n, m),
            Places.blocks(step[1:], at_x[:-1], n, n),
            diagonal,
            Places.blocks(row[later], at_x[stage[later] - 1], 1, n),
            Places.blocks(row[inside], at_u[stage[inside]], 1, m),
        )
        return Structure(horizon * (n + m), horizon * n + len(stage), horizon * n, H, A)

    def flatten(self, qp: StageQP) -> FlatQP:
        """Entries of the blocks; the given first state moves to the right-hand sides."""
        horizon, n, m = qp.sizes
        stage, row = np.nonzero(qp.active)
        later, inside = stage > 0, stage < horizon
        H = [qp.R, qp.Q[1:], qp.S[1:], np.swapaxes(qp.S[1:], 1, 2)]
        C, D = qp.C[stage[later], row[later]], qp.D[stage[inside], row[inside]]
        A = [qp.B, qp.A[1:], -np.ones(horizon * n), C, D]
        r, c = qp.r.copy(), qp.c.copy()
        r[0] += qp.S[0] @ qp.x0
        c[0] += qp.A[0] @ qp.x0
        g = np.concatenate([r, qp.q[1:]], axis=1)
        lower = np.concatenate([qp.u_lower, np.full((horizon, n), -np.inf)], axis=1)
        upper = np.concatenate([qp.u_upper, np.full((horizon, n), np.inf)], axis=1)
        first = np.where(stage == 0, qp.C[0, row] @ qp.x0, 0.0)
        return FlatQP(
            np.concatenate([block.ravel() for block in H]),
            np.concatenate([block.ravel() for block in A]),
            g.ravel(),
            lower.ravel(),
            upper.ravel(),
            np.concatenate([-c.ravel(), qp.lower[stage, row] - first]),
            np.concatenate([-c.ravel(), qp.upper[stage, row] - first]),
        )

    def inputs(self, qp: StageQP, z: np.ndarray) -> np.ndarray:
        """Entries at the places of the inputs."""
        horizon, n, m = qp.sizes
        return z[: horizon * (n + m)].reshape(horizon, n + m)[:, :m]

    def states(self, qp: StageQP, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Entries at the places of the states, after the given one."""
        horizon, n, m = qp.sizes
        later = z[: horizon * (n + m)].reshape(horizon, n + m)[:, m:]
        return np.concatenate([qp.x0[None], later])

    def adjoints(
        self, qp: StageQP, x: np.ndarray, u: np.ndarray, prices: np.ndarray, rows: np.ndarray
    ) -> np.ndarray:
        """Multipliers of the first rows."""
        horizon, n, _ = qp.sizes
        return prices[: horizon * n].reshape(horizon, n)


def _positions(qp: StageQP) -> tuple[np.ndarray, np.ndarray]:
    """Where u_k and x_{k+1} start."""
    horizon, n, m = qp.sizes
    at_u = np.arange(horizon) * (n + m)
    return at_u, at_u + m


class _PluginSetup:
    """One set-up of a plugin: fixed sparsity, memory that its inputs and outputs live in."""

    def __init__(self, plugin: str, options: dict[str, Any], structure: Structure) -> None:
        self.structure = structure
        n, rows = structure.unknowns, structure.rows
        self.order_h, h = _compress(structure.H, n, n)
        self.order_a, a = _compress(structure.A, rows, n)
        self.conic = ca.conic("qp", plugin, {"h": h, "a": a}, {"error_on_fail": False} | options)
        self.buffer: Any  # CasADi declares another signature than it has
        self.buffer, self.evaluate = self.conic.buffer()
        self.memory: dict[str, np.ndarray] = {}
        for i, name in enumerate(self.conic.name_in()):
            self.memory[name] = np.zeros(self.conic.nnz_in(i))
            if self.memory[name].size:
                self.buffer.set_arg(i, self.memory[name].data)
        for i, name in enumerate(self.conic.name_out()):
            self.memory[name] = np.zeros(self.conic.nnz_out(i))
            if self.memory[name].size:
                self.buffer.set_res(i, self.memory[name].data)

    def run(self, flat: FlatQP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Unknowns, multipliers of their bounds and of the rows."""
        memory = self.memory
        if not all(np.isfinite(values).all() for values in (flat.H, flat.A, flat.g)):
            nothing = [np.full_like(memory[name], np.nan) for name in ("x", "lam_x", "lam_a")]
            return nothing[0], nothing[1], nothing[2]  # powers of A are beyond all numbers
        memory["h"][:] = flat.H[self.order_h]
        memory["a"][:] = flat.A[self.order_a]
        memory["g"][:] = flat.g
        memory["lbx"][:], memory["ubx"][:] = flat.lower, flat.upper
        memory["lba"][:], memory["uba"][:] = flat.row_lower, flat.row_upper
        # Successive problems are alike: the last multipliers are a good start, and zero is for z.
        memory["lam_x0"][:], memory["lam_a0"][:] = memory["lam_x"], memory["lam_a"]
        self.evaluate()
        result = memory["x"].copy(), memory["lam_x"].copy(), memory["lam_a"].copy()
        for name in ("lam_x", "lam_a"):  # a failure must not be the start of the next solve
            np.nan_to_num(memory[name], copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        return result


def _compress(places: Places, rows: int, columns: int) -> tuple[np.ndarray, ca.Sparsity]:
    """Order that sorts entries column after column, as CasADi stores them, and the sparsity."""
    order = np.lexsort((places.rows, places.columns))
    starts = np.concatenate([[0], np.cumsum(np.bincount(places.columns, minlength=columns))])
    return order, ca.Sparsity(rows, columns, starts.tolist(), places.rows[order].tolist())


QP_SOLVERS: dict[str, Callable[[], Backend]] = {
    "daqp": lambda: Conic("daqp", Condensed()),
    # Less regularization, 1e-10 if none is given, leaves some QPs unsolved after 250 iterations
    # where weights are far apart (1e4 and 1e-3), others not: as the last digits have it.
    "piqp": lambda: Conic(
        "piqp",
        Sparse(),
        {"piqp": {"eps_abs": 1e-9, "eps_rel": 1e-10, "reg_lower_limit": 1e-8}},
    ),
    "ipqp": lambda: Conic(
        "ipqp", Condensed(), {"print_iter": False, "print_header": False, "print_info": False}
    ),
}
"""Back-ends by name: "daqp" (dense, active set, exact) for short horizons, "piqp" (sparse, interior
point) for long ones and for soft bounds, "ipqp" (dense, interior point, CasADi's own) to compare
with. Others that CasADi brings fail on some of the problems that come up here: qrqp cycles where
many bounds are soft, osqp and proxqp miss the accuracy, hpipm repeats its first answer."""

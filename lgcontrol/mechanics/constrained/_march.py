"""march: a motion by steps that solve for multipliers, or in charts of the manifold."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, chain
from ...codegen._internal import Result, Status, solve_linear
from ...integrators._internal import Index3Method, Problem, nan_as_infinite
from ._system import ConstrainedMechanics, null_space

UNKNOWN_REASON = (
    "take shorter steps or more iterations, and look at mobility() there: constraints may be "
    "singular"
)


class MarchStatus(Status, StrEnum):
    """Whether all steps solved their equations."""

    SOLVED = "solved"
    UNSOLVED = "unsolved"

    @property
    def is_success(self) -> bool:
        """Whether all steps did."""
        return self is MarchStatus.SOLVED


@dataclass(frozen=True, eq=False)
class March(Result):
    """A motion with accelerations and multipliers.

    Attributes
    ----------
    t : ndarray, shape (N + 1,)
        Times [s].
    x : ndarray, shape (N + 1, nq)
        States.
    a : ndarray, shape (N + 1, nv)
        Accelerations v̇.
    multipliers : ndarray, shape (N + 1, m)
    residual : ndarray, shape (N,)
        Of each step, next to what is tolerated.
    unsolved : int or None
        First step that did not solve its equations: what follows is worth nothing.
    hint : str
        Why, where it is known.
    changes : int
        Of the chart, where there are charts.
    """

    t: np.ndarray
    x: np.ndarray
    a: np.ndarray
    multipliers: np.ndarray
    residual: np.ndarray
    unsolved: int | None
    hint: str = ""
    changes: int = 0

    @property
    def status(self) -> MarchStatus:
        """Whether all steps solved their equations."""
        return MarchStatus.SOLVED if self.unsolved is None else MarchStatus.UNSOLVED

    @property
    def message(self) -> str:
        """What went wrong, empty if nothing did."""
        if self.unsolved is None:
            return ""
        return (
            f"step {self.unsolved} (t = {self.t[self.unsolved]:.6g} s) did not solve its equations:"
            f" residual {self.residual[self.unsolved]:.2g} times what is tolerated; "
            + (self.hint or UNKNOWN_REASON)
        )

    def __repr__(self) -> str:
        """Status, times and sizes."""
        sizes = (
            f"{self.x.shape[-1]} coordinates of the state, {self.multipliers.shape[-1]} multipliers"
        )
        message = f": {self.message}" if self.message else ""
        span = f"{len(self.t)} times to {self.t[-1]:g} s"
        return f"March({self.status}, {span}, {sizes}){message}"


def check_step(dt: float, steps: int) -> None:
    """Refuse a step that is not positive, or no steps."""
    if not (np.isfinite(dt) and dt > 0 and steps >= 1):
        raise ValueError(f"dt must be positive and steps at least 1, got {dt} s and {steps}")


def first_unsolved(residual: np.ndarray) -> int | None:
    """First step whose residual is more than what is tolerated."""
    missed = np.flatnonzero(~(residual <= 1))
    return int(missed[0]) if len(missed) else None


def march_step(problem: Problem, method: Index3Method) -> ModelFunction:
    """``(t, z, u, p, dt) → z_next, residual`` with ``z = [x; v̇; a; λ]``."""
    inner = problem.constrained
    assert inner is not None
    nq = problem.group.nq
    nv = list(problem.group.blocks.values())[1].dim  # type: ignore[attr-defined]
    size = nq + 2 * nv + inner.n_rows
    sizes = {"t": 1, "z": size, "u": problem.n_inputs, "p": problem.n_parameters, "dt": 1}
    t, z, u, p, dt = (ca.MX.sym(name, n) for name, n in sizes.items())
    made = method.step(problem, t, z[:nq], u, p, dt, z[nq:])
    results: list[Any] = [ca.vertcat(made.state, made.memory), made.residual]
    function = ca.Function(
        "march_step", [t, z, u, p, dt], results, [*sizes], ["z_next", "residual"]
    )
    return ModelFunction(function, shapes={"t": (), "dt": (), "residual": ()})


def march(
    problem: Problem,
    method: Index3Method,
    step: ModelFunction,
    nv: int,
    x0: np.ndarray,
    u: np.ndarray,
    p: np.ndarray,
    dt: float,
    steps: int,
    t0: float,
) -> March:
    """Motion of a problem; see `Mechanism.march`."""
    nq = problem.group.nq
    start = method.start(problem, *(ca.DM(value) for value in (t0, x0, u, p)))
    z0 = np.concatenate([x0, np.asarray(ca.DM(start)).ravel()])
    run = chain(step, steps, carry=("z", "z_next"), each=["t"])
    t = t0 + dt * np.arange(steps + 1)
    made = run(t[:-1, None], z0, u, p, dt)
    z = np.vstack([z0, made.z_next.reshape(steps, -1)])
    residual = np.asarray(made.residual).ravel()
    return March(
        t,
        z[:, :nq],
        z[:, nq : nq + nv],
        z[:, nq + 2 * nv :],
        residual,
        first_unsolved(residual),
    )


CHARTS = "charts"
# How far tangent directions may turn from those at the centre before the chart changes.
TURNED_CHART = 0.5
# The same of the logarithm, which ends at a turn: one body that has turned by 2.3 rad.
BENT = 1.0
# Corrections of the dependent coordinates, with the matrix of the first.
CORRECTIONS = 4
# Last correction next to the coordinates that counts as solved: each is smaller by a factor of h or
# less, so that rounding is left.
SOLVED_BELOW = 1e-8
# Steps of Newton and Schulz that make a basis orthonormal, which is nearly so.
ORTHONORMAL = 5
# Classical Runge-Kutta: where its stages are, and their weights.
STAGE_TIMES, STAGE_WEIGHTS = (0.0, 0.5, 0.5, 1.0), (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def refuse_velocity_rows(mechanics: ConstrainedMechanics) -> None:
    """Charts are of positions: rows on velocities alone have no manifold there."""
    rows = mechanics.constraints
    rolling = rows.row_names[rows.n_position :]
    if rolling:
        raise ValueError(
            f"{mechanics.base.name}: charts are of configurations, and {', '.join(rolling)} hold "
            "velocities alone; take rollout of system(), which projects, or implicit_euler3()"
        )


class ChartedMotion:
    """Steps of order four in local coordinates ``q = c exp(N s + R y)`` about a centre c.

    N spans the velocities that constraints leave at c, R the others, ``M⁻¹ Gᵀ``. The independent
    coordinates s and velocities w of ``v = N w + R z`` follow ``ṡ, ẏ = B⁻¹ J_r⁻¹ v`` and ẇ, the
    first part of ``B⁻¹ v̇``, with B = [N, R]. Newton's method solves φ = 0 for y; z solves G v = ν.
    So all stages keep the constraints, whose rows are independent and all on positions. The end of
    a step becomes the next centre if ``J_r⁻¹ (N + R ∂z/∂w)`` is turned from N by more than 0.5 in
    the coordinates of the chart. The same happens if a body has turned by almost π from its
    attitude in c.

    References
    ----------
    Terze, Müller, Zlatar: Lie-group integration method for constrained multibody systems in state
    space, 2015; Wehage, Haug: Generalized coordinate partitioning, 1982.
    """

    def __init__(self, mechanics: ConstrainedMechanics) -> None:
        refuse_velocity_rows(mechanics)
        self.mechanics = mechanics
        self.nv, self.m = mechanics.configuration.dim, mechanics.constraints.n_rows
        self.k = self.nv - self.m
        self.pattern = self._pattern_of_basis()
        self.sizes = {  # of what a step hands on
            "x": mechanics.state.nq,
            "a": self.nv,
            "multipliers": self.m,
            "centre": mechanics.configuration.nq,
            "B": self.pattern.nnz(),
            "inverse": self.nv**2,
            "local": self.nv,
            "w": self.k,
            "changes": 1,
        }
        self._stage, self._recentred = self._stage_function(), self._recentred_function()
        self.step = self._step_function()

    def start(self, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """What the first step takes: a chart about the state."""
        own = self.mechanics
        _, G, M = own.terms_of(x, p)
        a, multipliers = own.dynamics(t, ca.DM(x), ca.DM(u), ca.DM(p))
        made = self._recentred(x, ca.DM(null_space(G, M)), p, -1)
        return np.concatenate([ca.DM(e).nonzeros() for e in (x, a, multipliers, *made)])

    def march(
        self, x0: np.ndarray, u: np.ndarray, p: np.ndarray, dt: float, steps: int, t0: float
    ) -> March:
        """Motion from a state; see `Linkage.march`."""
        z0 = self.start(t0, x0, u, p)
        t = t0 + dt * np.arange(steps + 1)
        run = chain(self.step, steps, carry=("z", "z_next"), each=["t"])
        made = run(t[:-1, None], z0, u, p, dt)
        z = np.vstack([z0, made.z_next.reshape(steps, -1)])
        x, a, multipliers, *_, changes = np.split(z, np.cumsum([*self.sizes.values()])[:-1], axis=1)
        residual = np.asarray(made.residual).ravel()
        missed = first_unsolved(residual)
        last = changes[steps if missed is None else missed, 0]
        return March(t, x, a, multipliers, residual, missed, changes=int(last))

    def _pattern_of_basis(self) -> ca.Sparsity:
        """Of [N, R]: R has entries only where a body has the row, if M couples no bodies."""
        own, kind = self.mechanics, self.mechanics.kernel_symbol
        x, p = kind.sym("x", own.state.nq), kind.sym("p", own.base.n_parameters)
        G, M = own.rows_and_mass(x, p)
        if kind is ca.SX:
            G, M = ca.sparsify(G), ca.sparsify(M)
        blocks = M.sparsity()
        for _ in range(self.nv.bit_length()):
            blocks = (ca.DM(blocks, 1) @ ca.DM(blocks, 1)).sparsity()
        R = ca.DM(blocks, 1) @ ca.DM(G.T.sparsity(), 1)
        return ca.horzcat(ca.DM.ones(self.nv, self.k), R).sparsity()

    def _stage_function(self) -> ca.Function:
        """``(t, c, B, B⁻¹, s, y, w, u, p) → q, v, v̇, λ, y, rates, V, J_r⁻¹ V, bent, residual``.

        The rates are those of s, y and w; V is ``∂v/∂w``, and bent is the trace of ``1 − J_r⁻¹``.
        """
        own, kind, n, k, m = self.mechanics, self.mechanics.kernel_symbol, self.nv, self.k, self.m
        group, rows = own.configuration, own.constraints
        t, centre = kind.sym("t"), kind.sym("c", group.nq)
        s, y0 = kind.sym("s", k), kind.sym("y", m)
        B, inverse, w = kind.sym("B", self.pattern), kind.sym("inverse", n, n), kind.sym("w", k)
        u, p = kind.sym("u", own.base.n_inputs), kind.sym("p", own.base.n_parameters)
        N, R, y, correction = B[:, :k], B[:, k:], y0, kind(m, 1)
        if m:
            theta = N @ s + R @ y
            G, _ = rows.velocity(t, group.plus(centre, theta), p)
            by_A = _factored(G @ group.right_jacobian(theta) @ R)
            for _ in range(CORRECTIONS):
                correction = by_A(-rows.position(t, group.plus(centre, N @ s + R @ y), p))
                y = y + correction
        theta = N @ s + R @ y
        q = group.normalize(group.plus(centre, theta))
        V, v = N, N @ w
        if m:
            G, nu = rows.velocity(t, q, p)
            solved = R @ _factored(G @ R)(ca.horzcat(nu, -G @ N))
            V = N + solved[:, 1:]
            v = V @ w + solved[:, 0]
        a, multipliers = own.dynamics(t, self._state(t, q, v), u, p)
        back = group.right_jacobian_inverse(theta)
        rates = ca.vertcat(inverse @ (back @ v), inverse[:k, :] @ a)
        size = 1 + ca.norm_inf(ca.vertcat(s, y))
        residual = ca.mmax(ca.vertcat(0, nan_as_infinite(ca.fabs(correction)))) / (
            SOLVED_BELOW * size
        )
        bent = n - ca.trace(back)
        results: Any = [q, v, a, multipliers, y, rates, V, back @ V, bent, residual]
        results = [ca.densify(kind(e)) for e in results]
        results = ca.cse(results) if kind is ca.SX else results
        return ca.Function("chart_stage", [t, centre, B, inverse, s, y0, w, u, p], results)

    def _state(self, t: Any, q: Any, v: Any) -> Any:
        return ca.vertcat(q, v, *([t] if self.mechanics.constraints.is_driven else []))

    def _recentred_function(self) -> ca.Function:
        """``(x, V, p, changes) → centre, B, B⁻¹, [s; y], w, changes``, the chart about a state."""
        own, n, k = self.mechanics, self.nv, self.k
        x, p = ca.MX.sym("x", own.state.nq), ca.MX.sym("p", own.base.n_parameters)
        V, changes = ca.MX.sym("V", n, k), ca.MX.sym("changes")
        q, v = x[: own.configuration.nq], x[own.configuration.nq : own.base.state.nq]
        G, M = own.rows_and_mass(x, p)
        N: Any = V
        for _ in range(ORTHONORMAL):
            N = N @ (1.5 * ca.DM.eye(k) - 0.5 * (N.T @ M @ N))
        R = solve_linear(M, G.T, symmetric=True)
        size = ca.sqrt(ca.sum1(R * G.T))
        B = ca.horzcat(N, R / ca.repmat(size, n, 1))
        inverse = solve_linear(ca.densify(B), ca.MX.eye(n))
        results: list[Any] = [q, inverse, ca.MX.zeros(n), inverse[:k, :] @ v, changes + 1]
        results = [ca.densify(e) for e in results]
        results.insert(1, ca.project(B, self.pattern))
        return ca.Function("recentred", [x, V, p, changes], results)

    def _chosen(self, change: Any, x: Any, V: Any, p: Any, *kept: Any) -> Any:
        """The chart that is kept, or the one about the state; only one of them is made."""
        symbols = [ca.MX.sym("e", value.sparsity()) for value in (x, V, p, *kept)]
        stay = ca.Function("stay", symbols, symbols[3:])
        changed: Any = self._recentred(*symbols[:3], symbols[-1])
        leave = ca.Function("leave", symbols, changed)
        return ca.Function.if_else("chart", leave, stay)(change, x, V, p, *kept)

    def _step_function(self) -> ModelFunction:
        """``(t, z, u, p, dt) → z_next, residual``."""
        own, k, n = self.mechanics, self.k, self.nv
        own_nq, nq = own.base.state.nq, own.configuration.nq
        z = ca.MX.sym("z", sum(self.sizes.values()))
        t, dt = ca.MX.sym("t"), ca.MX.sym("dt")
        u, p = ca.MX.sym("u", own.base.n_inputs), ca.MX.sym("p", own.base.n_parameters)
        parts = ca.vertsplit(z, np.cumsum([0, *self.sizes.values()]).tolist())
        x, a, _, centre, flat, flat_inverse, local, w, changes = parts
        B, inverse = ca.MX(self.pattern, flat), ca.reshape(flat_inverse, n, n)
        v = x[nq:own_nq]
        back = own.configuration.right_jacobian_inverse(B @ local)
        slopes = [ca.vertcat(inverse @ (back @ v), inverse[:k, :] @ a)]
        start, residual = ca.vertcat(local, w), ca.MX(0)
        at: Any = start
        made: Any = ()
        for c in (*STAGE_TIMES[1:], None):  # the last one is the end of the step
            mean = sum(b * slope for b, slope in zip(STAGE_WEIGHTS, slopes, strict=False))
            move = mean if c is None else c * slopes[-1]
            at = start + dt * move
            here = (at[:k], at[k:n], at[n:])
            made = self._stage(t + (c or 1.0) * dt, centre, B, inverse, *here, u, p)
            slopes.append(made[5])
            residual = ca.fmax(residual, made[9])
        q, v, a, multipliers, y, _, V, directions, bent, _ = made
        turned = ca.norm_fro(inverse @ directions - ca.DM.eye(n)[:, :k]) if k else ca.MX(0)
        x = self._state(t + dt, q, v)
        kept = [centre, B, inverse, ca.vertcat(at[:k], y), at[n:], changes]
        chart = self._chosen(ca.logic_or(turned > TURNED_CHART, bent > BENT), x, V, p, *kept)
        z_next = ca.vertcat(x, a, multipliers, *(e.nz[:] for e in chart))
        function = ca.Function(
            "charted_step",
            [t, z, u, p, dt],
            [z_next, residual],
            ["t", "z", "u", "p", "dt"],
            ["z_next", "residual"],
        )
        return ModelFunction(function, shapes={"t": (), "dt": (), "residual": ()})


def _factored(A: Any) -> Any:
    """``b → A⁻¹ b``, in SX by factors without pivots.

    In a chart ``G J_r R`` is near ``G M⁻¹ Gᵀ`` at its centre: its symmetric part is positive, and
    factors without pivots do not grow.
    """
    if isinstance(A, ca.MX):
        return lambda b: solve_linear(A, b)
    n, L, U = A.shape[0], ca.SX.eye(A.shape[0]), ca.SX(A)
    for j in range(n):
        for i in range(j + 1, n):
            if U.has_nz(i, j):
                L[i, j] = U[i, j] / U[j, j]
                U[i, j:] -= L[i, j] * U[j, j:]
    L, U = ca.sparsify(L), ca.sparsify(ca.triu(U))
    return lambda b: ca.solve(U, ca.solve(L, b))

"""Index3Method: steps of constrained mechanics that meet the constraints at their end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import UnknownNameError, memoized, solve_linear, unknown_name
from ..groups import Product
from ._method import Method
from ._motion import LiftedMotion, Motion, slack
from ._problem import Constrained, Problem, Step, nan_as_infinite
from ._tolerance import TOLERATED


@dataclass(frozen=True)
class Index3Method(Method):
    """``q⁺ = q exp(h (v + h (b₀ a + b₁ a⁺)))``, ``v⁺ = v + h (g₀ a + g₁ a⁺)`` with ``φ(q⁺) = 0``.

    Newton's method solves ``M v̇⁺ + Gᵀ λ⁺ = F`` and ``φ(t⁺, q⁺) = 0`` for the accelerations v̇⁺
    and multipliers λ⁺. Rolling contacts add ``A v⁺ = b``. The number of iterations is fixed, so
    that a step compiles. The accelerations of the formulas are ``(1 − α_m) a⁺ + α_m a = (1 − α_f)
    v̇⁺ + α_f v̇``.

    A step hands on ``[v̇; a; λ]``, all of it or as a guess (`memory`). If a step depends on the
    state alone, systems take the method for steps, discretization, regulators and MPC. Derivatives
    follow from the implicit function theorem; constraints may be redundant. Each step satisfies
    every constraint as it is written, on positions or on velocities. Rates of position constraints
    hold in the limit of short steps only; project the state if both must hold.

    Parameters
    ----------
    b, g : tuple of float
        b₀, b₁ and g₀, g₁.
    alpha : tuple of float
        α_m, α_f.
    iterations : int
        Newton steps.
    matrix : {"iteration", "step"}
        Whether the matrix of Newton's method is made in each of them, or once at the start.

    References
    ----------
    Brüls, Cardona, Arnold: Lie group generalized-α time integration of constrained flexible
    multibody systems, 2012; Kissel, Taves, Negrut: eq. 32 to 38.

    Examples
    --------
    >>> generalized_alpha(0.9).memory, implicit_euler3().memory
    ('accelerations and multipliers', '')
    """

    name: str
    order: int
    b: tuple[float, float]
    g: tuple[float, float]
    alpha: tuple[float, float] = (0.0, 0.0)
    iterations: int = 3
    matrix: Literal["iteration", "step"] = "iteration"
    stages = 1
    solves = True

    def __post_init__(self) -> None:
        known = ("iteration", "step")
        if self.matrix not in known:
            raise UnknownNameError(unknown_name("time to make the matrix", self.matrix, known))
        if self.iterations < 1:
            raise ValueError(
                f"{self.name}: a step needs at least one iteration, got {self.iterations}"
            )

    @property
    def memory(self) -> str:  # type: ignore[override]
        """What counts in the next step; λ, and v̇ where the formulas leave it out, are guesses."""
        is_carried = any((self.b[0], self.g[0], *self.alpha))
        return "accelerations and multipliers" if is_carried else ""

    def start(self, problem: Problem, t: Value, x: Value, u: Value = (), p: Value = ()) -> Any:
        """``[v̇; v̇; λ]`` of a state that keeps the constraints."""
        inner = self._inner(problem)
        q, v = _split(problem, x)
        M, F, G, gamma = inner.index1(_clock(problem, t, x), q, v, u, p)
        K = ca.blockcat([[M, G.T], [G, -slack(M, G)]])
        solved = solve_linear(K, ca.vertcat(F, gamma))
        a = solved[: v.shape[0]]
        return ca.vertcat(a, a, solved[v.shape[0] :])

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Newton's method for accelerations and multipliers at the end of the step.

        Derivatives follow from the implicit function theorem, where states alone decide.
        """
        if isinstance(motion, LiftedMotion) and self.memory:
            raise TypeError(
                f"{self.name} hands on {self.memory}, which derivatives of states alone leave out; "
                "take implicit_euler3(), or a method that projects"
            )
        problem, at = motion.problem, motion.value(x)
        self._inner(problem)
        if isinstance(memory, tuple):
            memory = self.start(problem, t, at, motion.u, motion.p)
        v = _split(problem, at)[1]
        n = v.shape[0]
        last, a = memory[:n], memory[n : 2 * n]
        z = ca.vertcat(last, memory[2 * n :])
        residual, matrix = _kernels(problem, self)
        given = (t, at, motion.u, motion.p, dt, last, a)
        K: Any = matrix(*given, z)[1] if self.matrix == "step" else None
        d: Any = z
        for _ in range(self.iterations):
            own = matrix(*given, z)[1] if K is None else K
            d = solve_linear(own, -residual(*given, z))
            z = z + d
        largest = ca.norm_inf(nan_as_infinite(ca.fabs(d))) / (TOLERATED * (1 + ca.norm_inf(z)))

        def off(t: Value, x: Value, u: Value, p: Value, *fixed: Value) -> Value:
            return residual(t, x, u, p, *fixed)

        def solve(b: Value) -> Value:
            exact, regular = matrix(*given, z)
            made = solve_linear(regular, b)
            return -made - solve_linear(regular, b - exact @ made)

        solved = motion.implicit(
            z, lambda z: motion.column(off, t, x, dt, last, a, motion.value(z)), solve
        )
        rate = motion.rows(solved, slice(0, n))
        a_next = self._accelerated(rate, motion.constant(last), motion.constant(a))
        mean = self.b[0] * motion.constant(a) + self.b[1] * a_next
        gain = self.g[0] * motion.constant(a) + self.g[1] * a_next
        parts = [dt * (motion.vectors(x) + dt * mean), dt * gain]
        if motion.group.dim > 2 * n:  # the time that constraints see
            parts.append(motion.constant(dt * type(z)(ca.DM.ones(1))))
        state = motion.plus(x, motion.stack(parts))
        return Step(state, ca.vertcat(z[:n], motion.value(a_next), z[n:]), largest)

    def _accelerated(self, rate: Any, last: Any, a: Any) -> Any:
        """a⁺ of accelerations at the end."""
        alpha_m, alpha_f = self.alpha
        total = (1 - alpha_f) * rate + alpha_f * last - alpha_m * a
        return 1 / (1 - alpha_m) * total

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Of the modes that the constraints leave free, if a step depends on the state alone."""
        if self.memory:
            raise ValueError(f"{self.name} hands on {self.memory}: it has no factor of its own")
        return 1 / (1 - z)

    def _inner(self, problem: Problem) -> Constrained:
        if problem.constrained is None:
            raise ValueError(
                f"{self.name} is for constrained mechanics, this problem has no constraints; "
                "`problem` of a Mechanism or ClosedTree has some"
            )
        return problem.constrained


def generalized_alpha(radius: float = 0.8, *, iterations: int = 3) -> Index3Method:
    """Brüls' and Cardona's generalized-α on Lie groups, of order 2.

    Parameters
    ----------
    radius : float
        Spectral radius at infinite frequency, from 0 (fastest modes vanish in a step) to 1.
    iterations : int
        Newton steps.
    """
    if not 0 <= radius <= 1:
        raise ValueError(f"the spectral radius must be from 0 to 1, got {radius}")
    alpha_m, alpha_f = (2 * radius - 1) / (radius + 1), radius / (radius + 1)
    gamma = 0.5 + alpha_f - alpha_m
    beta = (gamma + 0.5) ** 2 / 4
    return Index3Method(
        "generalized_alpha",
        2,
        (0.5 - beta, beta),
        (1 - gamma, gamma),
        (alpha_m, alpha_f),
        iterations,
    )


def implicit_euler3(
    *, iterations: int = 3, matrix: Literal["iteration", "step"] = "iteration"
) -> Index3Method:
    """Implicit Euler for index 3, of order 1: the paper's scheme on any group.

    Parameters
    ----------
    iterations : int
        Newton steps.
    matrix : {"iteration", "step"}
        When their matrix is made.
    """
    return Index3Method(
        "implicit_euler3", 1, (0.0, 1.0), (0.0, 1.0), (0.0, 0.0), iterations, matrix
    )


def _split(problem: Problem, x: Any) -> tuple[Any, Any]:
    group = problem.group
    assert isinstance(group, Product)
    (_, configuration), (_, velocity) = list(group.blocks.items())[:2]
    return x[: configuration.nq], x[configuration.nq : configuration.nq + velocity.dim]


def _clock(problem: Problem, t: Any, x: Any) -> Any:
    """Time that constraints see: that of states which have one."""
    return x[-1] if len(problem.group.blocks) > 2 else t  # type: ignore[attr-defined]


@memoized
def _kernels(problem: Problem, method: Index3Method) -> tuple[ca.Function, ca.Function]:
    """``(t, x, u, p, dt, v̇, a, z) → r``, and ``K = ∂r/∂z`` and a regular one, ``z = [v̇⁺; λ⁺]``.

    Rows of φ are divided by h² b₁ c, those on velocities by h g₁ c with ``c = ∂a⁺/∂v̇⁺``, which
    makes the matrix symmetric where the forces are, and its condition that of the mechanism (Negrut
    et al. 2007).
    """
    inner, kind = problem.constrained, problem.symbol
    assert inner is not None
    x = kind.sym("x", problem.group.nq)
    n, m = _split(problem, x)[1].shape[0], inner.n_rows
    t, h = kind.sym("t"), kind.sym("dt")
    u, p = kind.sym("u", problem.n_inputs), kind.sym("p", problem.n_parameters)
    last, a, z = kind.sym("last", n), kind.sym("a", n), kind.sym("z", n + m)
    rate, multipliers = z[:n], z[n:]
    assert isinstance(problem.group, Product)
    group = next(iter(problem.group.blocks.values()))
    (q, v), a_next = _split(problem, x), method._accelerated(rate, last, a)
    q = group.plus(q, h * (v + h * (method.b[0] * a + method.b[1] * a_next)))
    v = v + h * (method.g[0] * a + method.g[1] * a_next)
    share = h * (1 - method.alpha[1]) / (1 - method.alpha[0])
    end = _clock(problem, t, x) + h
    balance = inner.balance(end, q, v, u, p, rate, multipliers)
    position = inner.position(end, q, p)
    rows = [balance, position / (share * h * method.b[1])]
    if position.shape[0] < m:
        G, nu = inner.velocity(end, q, p)
        rows.append((G @ v - nu)[position.shape[0] :] / (share * method.g[1]))
    r = ca.vertcat(*rows)
    K = ca.jacobian(r, z)
    regular = K - ca.diagcat(kind(n, n), slack(K[:n, :n], K[n:, :n]))
    names = ["t", "x", "u", "p", "dt", "last", "a", "z"]
    symbols = [t, x, u, p, h, last, a, z]
    if kind is ca.SX:
        r = ca.cse(ca.densify(r))
        K, regular = (ca.sparsify(entry) for entry in ca.cse([K, regular]))
    return (
        ca.Function("index3_residual", symbols, [r], names, ["r"]),
        ca.Function("index3_matrix", symbols, [K, regular], names, ["K", "regular"]),
    )

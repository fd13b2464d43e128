"""Index3Method: steps of constrained mechanics that meet the constraints at their end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import casadi as ca

from ..codegen import UnknownNameError, Value, solve_linear, unknown_name
from ..groups import Product
from ._method import Method
from ._motion import LiftedMotion, Motion
from ._problem import Constrained, Problem, Step, made_once, nan_as_infinite

# Newton's corrections fall quadratically: after a last one of this size, next to the accelerations
# and multipliers, what is left is of the order of rounding.
TOLERATED = 1e-6


@dataclass(frozen=True)
class Index3Method(Method):
    """``q⁺ = q exp(h (v + h (b₀ a + b₁ a⁺)))``, ``v⁺ = v + h (g₀ a + g₁ a⁺)`` with ``φ(q⁺) = 0``.

    The accelerations v̇⁺ and multipliers λ⁺ of ``M v̇⁺ + Gᵀ λ⁺ = F`` and ``φ(t⁺, q⁺) = 0`` (and
    ``A v⁺ = b`` of what rolls) are solved for by Newton's method in a fixed number of iterations, so
    that a step compiles. The accelerations of the formulas are
    ``(1 − α_m) a⁺ + α_m a = (1 − α_f) v̇⁺ + α_f v̇``.

    What a step hands on is ``[v̇; a; λ]``. Each row is met at every step as it is written, on
    positions or on velocities. Rates of the rows on positions are met in the limit of short steps
    alone; who needs both projects.

    Parameters
    ----------
    name : str
    order : int
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
    >>> generalized_alpha(0.9).order, implicit_euler3().memory
    (2, 'accelerations and multipliers')
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
    memory = "accelerations and multipliers"

    def __post_init__(self) -> None:
        known = ("iteration", "step")
        if self.matrix not in known:
            raise UnknownNameError(unknown_name("time to make the matrix", self.matrix, known))
        if self.iterations < 1:
            raise ValueError(
                f"{self.name}: a step needs at least one iteration, got {self.iterations}"
            )

    def start(self, problem: Problem, t: Value, x: Value, u: Value = (), p: Value = ()) -> Any:
        """``[v̇; v̇; λ]`` of a state that keeps the constraints."""
        inner = self._inner(problem)
        q, v = _split(problem, x)
        M, F, G, gamma = inner.index1(t, q, v, u, p)
        m = G.shape[0]
        K = ca.blockcat([[M, G.T], [G, type(G)(m, m)]])
        solved = solve_linear(K, ca.vertcat(F, gamma))
        a = solved[: v.shape[0]]
        return ca.vertcat(a, a, solved[v.shape[0] :])

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Newton's method for accelerations and multipliers at the end of the step."""
        if isinstance(motion, LiftedMotion):
            raise TypeError(
                f"{self.name} hands on {self.memory}, which derivatives of states alone leave out; "
                "linearize with the system of the mechanism, or differentiate its step"
            )
        problem = motion.problem
        self._inner(problem)
        q, v = _split(problem, x)
        n = v.shape[0]
        last, a = memory[:n], memory[n : 2 * n]
        z = ca.vertcat(last, memory[2 * n :])
        residual, matrix = _kernels(problem, self)
        at = (t, x, motion.u, motion.p, dt, last, a)
        K: Any = matrix(*at, z) if self.matrix == "step" else None
        d: Any = z
        for _ in range(self.iterations):
            own = matrix(*at, z) if K is None else K
            d = solve_linear(own, -residual(*at, z))
            z = z + d
        largest = ca.norm_inf(nan_as_infinite(ca.fabs(d))) / (TOLERATED * (1 + ca.norm_inf(z)))
        own = _moved(problem, self, x, dt, last, a, z[:n])
        state = ca.vertcat(own[0], own[1], x[q.shape[0] + n :] + dt)
        return Step(state, ca.vertcat(z[:n], own[2], z[n:]), largest)

    def _inner(self, problem: Problem) -> Constrained:
        if problem.constrained is None:
            raise ValueError(
                f"{self.name} is for constrained mechanics, this problem has no constraints; "
                "Mechanism.problem makes one that has"
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


def _moved(
    problem: Problem, method: Index3Method, x: Any, h: Any, last: Any, a: Any, rate: Any
) -> tuple[Any, Any, Any]:
    """``q⁺, v⁺, a⁺`` of accelerations at the end."""
    assert isinstance(problem.group, Product)
    group = next(iter(problem.group.blocks.values()))
    q, v = _split(problem, x)
    alpha_m, alpha_f = method.alpha
    a_next = ((1 - alpha_f) * rate + alpha_f * last - alpha_m * a) / (1 - alpha_m)
    turn = h * (v + h * (method.b[0] * a + method.b[1] * a_next))
    return group.plus(q, turn), v + h * (method.g[0] * a + method.g[1] * a_next), a_next


@made_once
def _kernels(problem: Problem, method: Index3Method) -> tuple[ca.Function, ca.Function]:
    """``(t, x, u, p, dt, v̇, a, z) → r`` and ``∂r/∂z`` for ``z = [v̇⁺; λ⁺]``.

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
    q, v, _ = _moved(problem, method, x, h, last, a, rate)
    alpha_m, alpha_f = method.alpha
    share = h * (1 - alpha_f) / (1 - alpha_m)
    balance = inner.balance(t + h, q, v, u, p, rate, multipliers)
    position = inner.position(t + h, q, p) / (share * h * method.b[1])
    velocity = inner.velocity(t + h, q, v, p) / (share * method.g[1])
    r = ca.vertcat(balance, position, velocity)
    K = ca.jacobian(r, z)
    names = ["t", "x", "u", "p", "dt", "last", "a", "z"]
    symbols = [t, x, u, p, h, last, a, z]
    if kind is ca.SX:
        r, K = ca.cse(ca.densify(r)), ca.sparsify(ca.cse(K))
    return (
        ca.Function("index3_residual", symbols, [r], names, ["r"]),
        ca.Function("index3_matrix", symbols, [K], names, ["K"]),
    )

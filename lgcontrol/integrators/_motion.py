"""Motion: stages in the algebra, their brackets, and derivatives multiplied out from their end.

The formulas of a method are written once, in the operations of `Motion`. On a `LiftedMotion` the
same formulas carry derivatives along (the variational equations of the method): a tangent vector is
then a `Lifted`, and a state, too, with derivatives in its tangent space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, Value, trace
from ..codegen._internal import solve_symmetric
from ..groups import LieGroup, Product
from ._problem import Mechanical, Problem, nan_as_infinite
from ._tolerance import TOLERATED

# J_r(Θ)⁻¹ = Σ (−1)ⁿ Bₙ/n! ad_Θⁿ with the Bernoulli numbers Bₙ, as far as order 8 needs it.
_BERNOULLI = (1.0, 1 / 2, 1 / 12, 0.0, -1 / 720, 0.0, 1 / 30240)
# Share of its compliance that makes a row regular which depends on others, and share of the mean
# for rows without any.
SLACK = 1e-10
MOTION_GUARD = 1e-3


def algebra_rate(group: LieGroup, brackets: int, theta: Value, velocity: Value) -> Value:
    """``Θ̇ = J_r(Θ)⁻¹ d`` up to a power of ``ad_Θ``."""
    if group.is_commutative or brackets == 0:
        return velocity
    if isinstance(theta, ca.SX) and isinstance(velocity, ca.SX):
        return _series(group, brackets, theta, velocity)
    return _rate_function(group, brackets)(theta, velocity)


def _series(group: LieGroup, brackets: int, theta: Value, velocity: Value) -> Value:
    ad = group.ad(theta)  # structural zeros of commutative blocks make their brackets free
    rate, power = velocity, velocity
    for coefficient in bracket_coefficients(brackets):
        power = ad @ power
        if coefficient:
            rate = rate + coefficient * power
    return rate


def bracket_coefficients(brackets: int) -> Sequence[float]:
    """Coefficients of the powers 1, 2, … without zeros at the end."""
    coefficients = list(_BERNOULLI[1 : brackets + 1])
    while coefficients and not coefficients[-1]:
        coefficients.pop()
    return coefficients


@cache
def _rate_function(group: LieGroup, brackets: int) -> ModelFunction:
    return trace(
        "algebra_rate",
        lambda theta, velocity: _series(group, brackets, theta, velocity),
        {"theta": (group.dim,), "velocity": (group.dim,)},
        {"rate": (group.dim,)},
    )


class ChainedSlope:
    """Sum of matrices and numbers times other slopes; a seed is one without any.

    A step has fewer results than seeds where inputs count as well. Reverse accumulation carries
    only the rows of the results through the stages. It does not carry the derivatives of the field
    by inputs, which are mostly constants. Terms are (factor, ChainedSlope) with factors from the
    left, matrices or scalars.

    Examples
    --------
    >>> seed = ChainedSlope(2)
    >>> turned = ca.SX([[0, -1], [1, 0]]) @ seed + 3 * seed
    >>> ca.evalf(turned.by([seed])[0]).full()
    array([[ 3., -1.],
           [ 1.,  3.]])
    """

    __array_priority__ = 2000  # CasADi's matrices leave products to this class

    def __init__(self, rows: int, terms: Iterable[tuple[Any, ChainedSlope]] = ()) -> None:
        self.shape = (rows,)
        self._terms = tuple(terms)

    def __add__(self, other: ChainedSlope) -> ChainedSlope:
        return ChainedSlope(*self.shape, [(1, self), (1, other)])

    def __sub__(self, other: ChainedSlope) -> ChainedSlope:
        return ChainedSlope(*self.shape, [(1, self), (-1, other)])

    def __mul__(self, factor: Any) -> ChainedSlope:
        return ChainedSlope(*self.shape, [(factor, self)])

    __rmul__ = __mul__

    def __rmatmul__(self, M: Any) -> ChainedSlope:
        return ChainedSlope(M.shape[0], [(ca.SX(M), self)])

    def by(self, seeds: Sequence[ChainedSlope]) -> list[Any]:
        """Derivatives by some seeds, matrices of expressions."""
        found: dict[ChainedSlope, _Scaled] = {self: _Scaled(1.0, ca.SX.eye(self.shape[0]))}
        for slope in reversed(self._order()):
            ahead = found.get(slope)
            if ahead is None:
                continue
            for factor, below in slope._terms:
                if isinstance(factor, ca.SX) and not factor.is_scalar():
                    part = _Scaled(1.0, ca.sparsify(ahead.matrix @ factor))
                else:
                    part = _Scaled(factor * ahead.factor, ahead.unscaled)
                if below in found:
                    part = _Scaled(1.0, ca.sparsify(found[below].matrix + part.matrix))
                found[below] = part
        return [
            found[seed].matrix if seed in found else ca.SX(*self.shape, *seed.shape)
            for seed in seeds
        ]

    def _order(self) -> list[ChainedSlope]:
        """All slopes this is made of, each after those it is made of itself."""
        done: dict[ChainedSlope, None] = {}
        waiting = [self]
        while waiting:
            slope = waiting[-1]
            missing = [below for _, below in slope._terms if below not in done]
            if missing:
                waiting += missing
            else:
                done.setdefault(waiting.pop())
        return list(done)


class _Scaled(NamedTuple):
    """A matrix with a factor before it, so that numbers are multiplied with each other first."""

    factor: Any
    unscaled: Any

    @property
    def matrix(self) -> Any:
        """The factor multiplied in."""
        return self.factor * self.unscaled


Build = Callable[[Value, Value, Value, Value], Value]
"""A matrix or column as a function of t, x, u, p."""


@dataclass(frozen=True)
class Lifted:
    """A value and its derivatives by the seeds of a motion, one column a seed.

    Those of a state X are in its tangent space, ``δ = log(X⁻¹ (X + dX))``.
    """

    value: Any
    slope: Any

    __array_priority__ = 2000  # CasADi's and NumPy's numbers leave products to this class

    def __add__(self, other: Lifted) -> Lifted:
        return Lifted(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Lifted) -> Lifted:
        return Lifted(self.value - other.value, self.slope - other.slope)

    def __mul__(self, factor: Any) -> Lifted:
        return Lifted(factor * self.value, factor * self.slope)

    __rmul__ = __mul__


class Motion:
    """A problem with its input and parameters held, on values of any kind."""

    def __init__(self, problem: Problem, u: Value = (), p: Value = ()) -> None:
        self.problem, self.u, self.p = problem, u, p
        self.group: LieGroup = problem.group

    # What formulas of methods are made of

    def field(self, t: Value, x: Any) -> Any:
        """Velocity f at a time and state."""
        return self._field(t, x)

    def plus(self, x: Any, d: Any) -> Any:
        """State at the displacement d from x."""
        return self.group.plus(x, d)

    def normalize(self, x: Any) -> Any:
        """State brought back onto its group."""
        return self.group.normalize(x)

    def algebra_rate(self, brackets: int, theta: Any, velocity: Any) -> Any:
        """``J_r(θ)⁻¹ d`` up to a power of ``ad_θ``."""
        return algebra_rate(self.group, brackets, theta, velocity)

    def rows(self, d: Any, which: slice) -> Any:
        """Entries of a tangent vector."""
        return _entries(d, which)

    def stack(self, parts: Sequence[Any]) -> Any:
        """Tangent vector of its parts."""
        if any(_is_casadi(part) for part in parts):
            return ca.vertcat(*parts)
        return np.concatenate(parts, axis=-1)

    def matrix(self, build: Build, t: Value, x: Any) -> Value:
        """Matrix that depends on the state, without derivatives."""
        return build(t, self.value(x), self.u, self.p)

    def product(self, build: Build, t: Value, x: Any, d: Any) -> Any:
        """Such a matrix times a tangent vector."""
        return self.matrix(build, t, x) @ d

    def column(self, build: Callable[..., Value], t: Value, x: Any, *fixed: Value) -> Any:
        """Column ``(t, x, u, p, *fixed) → y``; what is fixed does not depend on the seeds."""
        return build(t, x, self.u, self.p, *fixed)

    def map(self, build: Build, t: Value, x: Any, slope: Build | None = None) -> Any:
        """Another state ``(t, x, u, p) → y`` of the same group.

        ``slope(t, x, u, p)`` is its derivative between tangent spaces, where somebody knows it.
        """
        return build(t, x, self.u, self.p)

    def constant(self, d: Any) -> Any:
        """A tangent vector that does not depend on the seeds."""
        return d

    def implicit(self, z: Any, residual: Callable[[Any], Any], solve: Callable[[Any], Any]) -> Any:
        """Solution z of ``r(z) = 0``, with derivatives by the implicit function theorem.

        ``residual`` is called with z as a constant; ``solve(b)`` is ``(−∂r/∂z)⁻¹ b``.
        """
        return z

    def value(self, x: Any) -> Any:
        """Value alone."""
        return x

    def jacobian(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Df at a plain state: ``∂f(x exp d)/∂d`` at d = 0."""
        if self.problem.derivatives is not None:
            return sparse(self.problem.derivatives(t, x, u, p)[0])
        return self._derivative(self._field_of, 1, t, x, u, p) @ self.group.rate_matrix(x)

    # Mechanics

    def vectors(self, x: Any, end: int | None = 2) -> Any:
        """Vector blocks of a state after its configuration: the velocity, or all before `end`."""
        return _entries(x, self._places("nq", end))

    def _places(self, size: str, end: int | None) -> slice:
        assert isinstance(self.group, Product)
        first, *others = (getattr(block, size) for block in self.group.blocks.values())
        return slice(first, first + sum(others[: None if end is None else end - 1]))

    def mechanics(self, method: str) -> tuple[Mechanical, slice, slice, slice]:
        """Structure, and where configuration, velocity and the rest are in tangent vectors."""
        structure, group = self.problem.mechanical, self.group
        if structure is None or not isinstance(group, Product):
            raise ValueError(
                f"{method} is for mechanical systems that know their structure (trees and bodies "
                "make them), this problem has none; radau_iia5 and ros34pw2 take any stiff problem"
            )
        q = group.tangent_slice(structure.configuration)
        v = group.tangent_slice(structure.velocity)
        return structure, q, v, slice(v.stop, group.dim)

    def balance(self, t: Value, x: Any, a: Any) -> Any:
        """``F(t, x, u, p) − M(x, p) a`` for an acceleration that does not depend on the seeds."""
        structure = self.problem.mechanical
        assert structure is not None
        force = structure.force(t, x, self.u, self.p)
        return force - structure.mass_matrix(x, self.p) @ a

    def _field(self, t: Value, x: Any) -> Any:
        value, group = self.problem.field(t, x, self.u, self.p), self.group
        if isinstance(value, list | tuple):
            symbolic = any(_is_casadi(entry) for entry in value)
            value = ca.vertcat(*value) if symbolic else np.asarray(value, dtype=np.float64)
        shape = value.shape[-1:] if isinstance(value, np.ndarray) else value.shape
        if shape not in ((group.dim,), (group.dim, 1)):
            raise ValueError(
                f"the field returned shape {value.shape}, "
                f"expected a tangent vector of {group.name}: {group.dim} numbers"
            )
        return value

    def _field_of(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        return Motion(self.problem, u, p)._field(t, x)

    def _derivative(self, build: Callable[..., Value], k: int, *at: Value) -> Value:
        """Partial derivative by the argument k, the others fixed, at values that depend on each."""
        kind: Any = self.problem.symbol
        symbols: list[Any] = [kind.sym("a", *_shape(value)) for value in at]
        slope = ca.jacobian(kind(build(*symbols)), symbols[k])
        return ca.Function("derivative", symbols, [slope]).call(list(at))[0]


class LiftedMotion(Motion):
    """A motion that carries derivatives by its seeds along: first-order variations.

    Slopes of u and p by the seeds are None where they do not depend on them. Where slopes are
    chained, `x_slope` are seeds of the state; u_slope and p_slope are seeds of their own.
    """

    def __init__(
        self,
        problem: Problem,
        u: Value,
        p: Value,
        seeds: int,
        u_slope: Any = None,
        p_slope: Any = None,
        x_slope: ChainedSlope | None = None,
    ) -> None:
        super().__init__(problem, u, p)
        self.seeds, self.u_slope, self.p_slope = seeds, u_slope, p_slope
        self.x_slope = x_slope

    @classmethod
    def start(
        cls,
        problem: Problem,
        x: Value,
        u: Value,
        p: Value,
        *,
        parameters: bool = False,
        basis: Value | None = None,
        chained: bool = False,
    ) -> tuple[LiftedMotion, Lifted]:
        """Motion and state with the seeds error of the state, inputs, and perhaps parameters.

        With a basis (dim, n) of the errors that are possible these are the seeds. Slopes that are
        chained are multiplied out by `split`: SX alone, and methods that are `is_explicit`.
        """
        by_errors = ca.DM.eye(problem.group.dim) if basis is None else basis
        n, m = by_errors.shape[1], problem.n_inputs
        k = problem.n_parameters if parameters else 0
        if chained:
            seed = ChainedSlope(n)
            u_seed, p_seed = (ChainedSlope(count) if count else None for count in (m, k))
            motion = cls(problem, u, p, n + m + k, u_seed, p_seed, seed)
            return motion, Lifted(x, seed if basis is None else basis @ seed)
        eye = ca.DM.eye(n + m + k)
        u_slope, p_slope = eye[n : n + m, :] if m else None, eye[n + m :, :] if k else None
        slope = type(x)(ca.horzcat(by_errors, ca.DM(by_errors.shape[0], m + k)))
        return cls(problem, u, p, n + m + k, u_slope, p_slope), Lifted(x, slope)

    def split(self, x: Lifted) -> tuple[Any, Any, Any]:
        """Derivatives of a state by its start, the inputs and the parameters: A, B, P."""
        if self.x_slope is not None:
            seeds = [ChainedSlope(0) if s is None else s for s in (self.u_slope, self.p_slope)]
            A, B, P = x.slope.by([self.x_slope, *seeds])
            return A, B, P
        m = self.problem.n_inputs if self.u_slope is not None else 0
        k = self.problem.n_parameters if self.p_slope is not None else 0
        n = self.seeds - m - k
        return x.slope[:, :n], x.slope[:, n : n + m], x.slope[:, n + m :]

    def chained(self, by: Value, x: Lifted) -> Value:
        """Derivatives by the seeds from those by the state, inputs and parameters side by side."""
        n, m = self.group.dim, self.problem.n_inputs
        slope = by[:, :n] @ x.slope
        if self.u_slope is not None:
            slope = slope + by[:, n : n + m] @ self.u_slope
        if self.p_slope is not None:
            slope = slope + by[:, n + m :] @ self.p_slope
        return slope

    def field(self, t: Value, x: Lifted) -> Lifted:
        """Velocity with the derivatives of the problem."""
        rate = self._field(t, x.value)
        if self.problem.derivatives is None:
            return Lifted(rate, self._along(self._field_of, t, x))
        Df, Bf = self.problem.derivatives(t, x.value, self.u, self.p)
        slope = sparse(Df) @ x.slope
        if self.u_slope is not None:
            slope = slope + sparse(Bf) @ self.u_slope
        if self.p_slope is not None:
            slope = slope + self._by_parameters(t, x.value, rate) @ self.p_slope
        return Lifted(rate, slope)

    def plus(self, x: Lifted, d: Lifted) -> Lifted:
        """``δ⁺ = Ad(exp(−d)) δ + J_r(d) δd``."""
        group, moved = self.group, self.group.plus(x.value, d.value)
        if group.is_commutative:
            return Lifted(moved, x.slope + d.slope)
        turn = sparse(group.Ad(group.inverse(group.exp(d.value))))
        return Lifted(moved, turn @ x.slope + sparse(group.right_jacobian(d.value)) @ d.slope)

    def normalize(self, x: Lifted) -> Lifted:
        """Displacements are those of the state on the group."""
        return Lifted(self.group.normalize(x.value), x.slope)

    def algebra_rate(self, brackets: int, theta: Lifted, velocity: Lifted) -> Lifted:
        """By the bilinearity of brackets: ``δ[θ, w] = ad_θ δw − ad_w δθ``."""
        group = self.group
        if group.is_commutative or brackets == 0:
            return velocity
        ad = sparse(group.ad(theta.value))
        if isinstance(theta.slope, ChainedSlope):
            return self._chained_rate(brackets, ad, theta, velocity)
        total = power = velocity
        for coefficient in bracket_coefficients(brackets):
            turned = ad @ power.slope - sparse(group.ad(power.value)) @ theta.slope
            power = Lifted(ad @ power.value, turned)
            if coefficient:
                total = total + coefficient * power
        return total

    def _chained_rate(self, brackets: int, ad: Value, theta: Lifted, velocity: Lifted) -> Lifted:
        """The same with one matrix for each slope, so that rows are multiplied twice, not often."""
        power, rate = velocity.value, velocity.value
        by_velocity = turned = ca.SX.eye(self.group.dim)
        by_theta = bent = ca.SX(self.group.dim, self.group.dim)
        for coefficient in bracket_coefficients(brackets):
            bent = sparse(ad @ bent - sparse(self.group.ad(power)))
            turned, power = sparse(ad @ turned), ad @ power
            if coefficient:
                rate = rate + coefficient * power
                by_velocity = by_velocity + coefficient * turned
                by_theta = by_theta + coefficient * bent
        return Lifted(rate, by_velocity @ velocity.slope + by_theta @ theta.slope)

    def rows(self, d: Lifted, which: slice) -> Lifted:
        """Entries and their derivatives."""
        return Lifted(d.value[which], d.slope[which, :])

    def stack(self, parts: Sequence[Lifted]) -> Lifted:
        """One below the other."""
        return Lifted(
            ca.vertcat(*(part.value for part in parts)), ca.vertcat(*(part.slope for part in parts))
        )

    def product(self, build: Build, t: Value, x: Lifted, d: Lifted) -> Lifted:
        """``δ(K z) = (∂K/∂x δ) z + K δz``."""
        K = sparse(self.matrix(build, t, x))
        return Lifted(
            K @ d.value,
            self._along(lambda t, x, u, p, z: build(t, x, u, p) @ z, t, x, d.value) + K @ d.slope,
        )

    def column(self, build: Callable[..., Value], t: Value, x: Lifted, *fixed: Value) -> Lifted:
        """Differentiated automatically."""
        value = build(t, x.value, self.u, self.p, *fixed)
        return Lifted(value, self._along(build, t, x, *fixed))

    def map(self, build: Build, t: Value, x: Lifted, slope: Build | None = None) -> Lifted:
        """By the derivative that is known; by automatic differentiation where none is."""
        after, group = build(t, x.value, self.u, self.p), self.group
        if slope is None:
            return Lifted(after, group.tangent_matrix(after) @ self._along(build, t, x))
        moved = sparse(slope(t, x.value, self.u, self.p)) @ x.slope
        for k, own in ((2, self.u_slope), (3, self.p_slope)):
            if own is not None:
                by = self._derivative(build, k, t, x.value, self.u, self.p)
                if by.nnz():
                    moved = moved + group.tangent_matrix(after) @ by @ own
        return Lifted(after, moved)

    def constant(self, d: Value) -> Lifted:
        """Without derivatives."""
        return Lifted(d, type(d)(d.shape[0], self.seeds))

    def implicit(self, z: Any, residual: Callable[[Any], Any], solve: Callable[[Any], Any]) -> Any:
        """``δz = (−∂r/∂z)⁻¹ δr``."""
        return Lifted(z, solve(residual(self.constant(z)).slope))

    def value(self, x: Lifted) -> Any:
        """Value alone."""
        return x.value

    def vectors(self, x: Lifted, end: int | None = 2) -> Lifted:
        """Displacements of vector blocks are their differences."""
        return Lifted(super().vectors(x.value, end), x.slope[self._places("dim", end), :])

    def balance(self, t: Value, x: Lifted, a: Lifted) -> Lifted:
        """With the closed forms of the structure; a has no derivatives."""
        structure = self.problem.mechanical
        assert structure is not None
        by_x, by_u = structure.balance_derivatives(t, x.value, a.value, self.u, self.p)
        slope = sparse(by_x) @ x.slope
        if self.u_slope is not None:
            slope = slope + sparse(by_u) @ self.u_slope
        if self.p_slope is not None:
            slope = slope + self._balance_by_parameters(t, x.value, a.value) @ self.p_slope
        return Lifted(super().balance(t, x.value, a.value), slope)

    def _by_parameters(self, t: Value, x: Value, rate: Value) -> Value:
        """``∂f/∂p``: with a structure by the balance, which is easier to differentiate than v̇."""
        structure, u, p = self.problem.mechanical, self.u, self.p
        if structure is None:
            return self._derivative(self._field_of, 3, t, x, u, p)
        _, q, v, rest = self.mechanics("")
        by_p = self._balance_by_parameters(t, x, rate[v])
        M = sparse(structure.mass_matrix(x, p))
        rows = [type(x)(q.stop - q.start, p.shape[0]), solve_symmetric(M, by_p)]
        if rest.stop > rest.start:
            rows.append(self._derivative(lambda *at: self._field_of(*at)[rest], 3, t, x, u, p))
        return ca.vertcat(*rows)

    def _balance_by_parameters(self, t: Value, x: Value, a: Value) -> Value:
        structure = self.problem.mechanical
        assert structure is not None

        def balance(t: Value, x: Value, u: Value, p: Value, a: Value) -> Value:
            return structure.force(t, x, u, p) - structure.mass_matrix(x, p) @ a

        return self._derivative(balance, 3, t, x, self.u, self.p, a)

    def _along(self, build: Callable[..., Value], t: Value, x: Lifted, *fixed: Value) -> Value:
        """Derivatives of ``build(t, x, u, p, *fixed)`` by the seeds, automatically."""
        at = (t, x.value, self.u, self.p, *fixed)
        slope = self._derivative(build, 1, *at) @ (self.group.rate_matrix(x.value) @ x.slope)
        for k, own in ((2, self.u_slope), (3, self.p_slope)):
            if own is not None:
                slope = slope + self._derivative(build, k, *at) @ own
        return slope


def solver(K: Value, *, symmetric: bool = False) -> Callable[[Any], Any]:
    """``b ↦ K⁻¹ b`` for columns and matrices of columns; symmetric K must be positive definite."""
    K = sparse(K)
    if symmetric:
        return lambda b: solve_symmetric(K, sparse(b))
    if isinstance(K, ca.SX):
        Q, R = ca.qr(K)
        return lambda b: ca.solve(R, Q.T @ sparse(b))
    return lambda b: ca.solve(K, b, "qr")


def newton_steps(
    equations: Callable[[Any], tuple[Any, Any]], z: Any, iterations: int, sizes: Any = None
) -> tuple[Any, Any]:
    """So many steps of Newton's method from z, and the largest last correction.

    `equations` are ``z → r, −∂r/∂z``. Unknowns count each by its own size, all by the largest where
    there are no sizes. A correction above 1, what is tolerated, is none of a solution.
    """
    last: Any = z
    for _ in range(iterations):
        r, K = equations(z)
        last = solver(K)(r)
        z = z + last
    moved: Any = nan_as_infinite(ca.fabs(last))
    if sizes is not None:
        return z, ca.norm_inf(moved / (sizes + ca.fabs(z))) / TOLERATED
    return z, ca.norm_inf(moved) / (TOLERATED * (1 + ca.norm_inf(z)))


def slack(M: Any, G: Any) -> Any:
    """What makes ``[[M, Gᵀ], [G, −slack]]`` regular where rows of G depend on others."""
    each = ca.sum2(G * G) * (M.shape[0] / ca.trace(M))
    return SLACK * ca.diag(each + MOTION_GUARD * ca.sum1(each) / max(G.shape[0], 1))


def sparse(M: Any) -> Any:
    """Without entries that are zero by structure."""
    return ca.sparsify(M) if isinstance(M, ca.SX | ca.DM) else M


def _entries(value: Any, which: slice) -> Any:
    return value[which] if _is_casadi(value) else value[..., which]


def _is_casadi(value: Any) -> bool:
    return isinstance(value, ca.SX | ca.MX | ca.DM)


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if _is_casadi(value) else (np.shape(value) or (1,))

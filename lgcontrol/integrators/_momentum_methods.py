"""Methods in momenta, and the elimination that solves their stages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import memoized, solve_linear, solve_symmetric
from ..groups import SO3, LieGroup, Product
from ._method import Method
from ._motion import MOTION_GUARD, SLACK, Lifted, LiftedMotion, Motion, solver
from ._problem import Constrained, Lagrangian, Problem, Step, nan_as_infinite
from ._tolerance import TOLERATED

# Operations up to which it is written out; compiled, they take a fifth of the time of loops over
# sparse patterns.
_LARGEST = 200_000
# Keeps the ratio of two energies where both vanish [J].
TINY_MOMENTUM = 1e-200
# Gauss's points on [0, 1]: exact for polynomials of degree 7 of the way.
_GAUSS = tuple(
    (float(point) / 2 + 0.5, float(weight) / 2)
    for point, weight in zip(*np.polynomial.legendre.leggauss(4), strict=True)
)
_NAMES = ("t", "x", "u", "p", "dt", "y", "end")


def eliminated(A: Any) -> Callable[[Any], Any]:
    """``b ↦ A⁻¹ b`` of columns, for A whose rows may be eliminated in their order.

    Nothing is exchanged: pivots are what the problem makes of them, as the masses first and then
    the mobilities of constraints. Large ones are left to `solve_linear`.
    """
    pattern = A.sparsity()
    made = _functions(pattern.size1(), tuple(pattern.colind()), tuple(pattern.row()))
    if made is None:
        return lambda b: solve_linear(A, b)
    factors = made.factor(A)
    return lambda b: made.solve(factors, b)


class _Elimination(NamedTuple):
    """``A → factors`` and ``(factors, b) → x``."""

    factor: ca.Function
    solve: ca.Function


@lru_cache(maxsize=32)
def _functions(n: int, starts: tuple[int, ...], rows: tuple[int, ...]) -> _Elimination | None:
    """Functions for a pattern in compressed columns; None where they would be too long."""
    pattern = ca.Sparsity(n, n, starts, rows)
    filled = np.array(ca.DM(pattern, 1)) != 0
    if not _fill(filled):
        return None
    A, b = ca.SX.sym("A", pattern), ca.SX.sym("b", n)
    table: Any = ca.densify(A)
    for k in range(n):
        below, right = _after(filled[:, k], k), _after(filled[k], k)
        table[k, k] = 1 / table[k, k]
        if below:
            table[below, k] = table[below, k] * table[k, k]
        if below and right:
            table[below, right] = table[below, right] - table[below, k] @ table[k, right]
    pattern = ca.sparsify(ca.DM(filled.astype(float))).sparsity()
    factors: Any = ca.SX.sym("factors", pattern)
    x: Any = ca.SX(b)
    for i in range(n):
        left = [int(j) for j in np.flatnonzero(filled[i, :i])]
        if left:
            x[i] = x[i] - factors[i, left] @ x[left]
    for i in reversed(range(n)):
        right = _after(filled[i], i)
        x[i] = (x[i] - factors[i, right] @ x[right] if right else x[i]) * factors[i, i]
    table = ca.project(table, pattern)
    return _Elimination(
        ca.Function("factor", [A], [table], ["A"], ["factors"]),
        ca.Function("solve_by_factors", [factors, b], [x], ["factors", "b"], ["x"]),
    )


def _after(entries: np.ndarray, k: int) -> list[int]:
    """Places of entries behind k."""
    return [int(j) for j in np.flatnonzero(entries) if j > k]


def _fill(filled: np.ndarray) -> bool:
    """Add the entries that elimination makes; false without its pivots or where it is too long."""
    operations = 0
    for k in range(len(filled)):
        if not filled[k, k]:
            return False
        below, right = filled[k + 1 :, k], filled[k, k + 1 :]
        operations += int(below.sum()) * (1 + 2 * int(right.sum()))
        filled[k + 1 :, k + 1 :] |= np.outer(below, right)
    return operations <= _LARGEST


@dataclass(frozen=True)
class MomentumMethod(Method):
    """``q⁺ = q exp(dt w)`` with the mean velocity w of a step, then ``M(q⁺) v⁺ = p⁺(w)``.

    A scheme gives the equation of w and the momentum p⁺ after the step. Without forces p⁺ is
    ``Ad(exp(dt w))ᵀ p``, the same momentum in space for every w. Newton's method solves the
    equation with its exact Jacobian. The number of iterations is fixed, so that a step compiles
    and serves an MPC. The last correction is returned as the residual. Derivatives follow from the
    implicit function theorem.

    Constraints are kept as in RATTLE: multipliers are unknowns beside w, such that ``φ(q⁺) = 0``,
    and the momentum after the step is projected onto ``G v = ν``. Forces of constraints between
    bodies leave their momentum alone, whatever the multipliers are. Rows may depend on others:
    the shortest multipliers are taken.

    The method integrates the systems of bodies, bodies with wheels, trees, and mechanisms with
    constraints on positions. Augmented systems and fields without structure are refused.

    Parameters
    ----------
    scheme : callable
        ``terms → r, p⁺``: the equation ``r(w) = 0`` and the momentum after the step, of the
        columns of a step; those of this module are examples.
    takes_trees : bool
        Whether the inertia may depend on the configuration.
    compliance : tuple of tuple of float
        Regularization of Newton's equations for redundant constraints, in units of 1e-10 of the
        mobility of each row. The first row is for ``φ(q⁺) = 0``. The second is for ``G v⁺ = ν``,
        if the scheme has multipliers for it. Columns are for multipliers of each kind. Larger ones
        keep rough iterations from long multipliers of such rows. Empty where it takes no
        constraints.
    iterations : int
        Newton steps; `dataclasses.replace` makes a method with another number. Constraints take one
        more, and another one with second multipliers.

    References
    ----------
    Marsden, West: Discrete mechanics and variational integrators, Acta Numerica 2001; Müller 2018,
    eq. 80; Simo, Wong: Unconditionally stable algorithms for rigid body dynamics that exactly
    preserve energy and momentum, 1991; Andersen: Rattle, 1983; Gonzalez: Mechanical systems subject
    to holonomic constraints, 1999.

    Examples
    --------
    >>> from lgcontrol.integrators import get_method
    >>> method = get_method("variational_verlet")
    >>> method.order, method.needs_structure, method.memory
    (2, True, '')
    """

    name: str
    scheme: Callable[[_MomentumTerms], tuple[Value, Value]]
    takes_trees: bool = True
    compliance: tuple[tuple[float, ...], ...] = ()
    iterations: int = 3
    order = 2
    stages = 1
    needs_structure = True
    needs_lagrangian = True
    keeps_constraints = True
    solves = True

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Newton's method for mean velocity and multipliers, then the velocity after the step."""
        self._check(motion)
        problem, (n, m) = motion.problem, _sizes(motion.problem)
        own = (t, motion.value(x), motion.u, motion.p, dt)
        before = motion.rows(motion.vectors(x, None), slice(0, n))
        nv = _configuration(problem).dim
        w: Any = motion.value(before)
        if not m:  # else accelerations cost more than an iteration
            w = w + dt / 2 * problem.field(*own[:4])[nv : nv + n]  # of the second order
        y, last = self._solved(problem, own, w)
        moved = motion.group.normalize(
            motion.group.plus(own[1], ca.vertcat(dt * y[:nv], type(y)(motion.group.dim - nv, 1)))
        )
        end = self._ended(problem, (*own, y, moved), motion.value(before))
        off: Any = nan_as_infinite(ca.fabs(last))
        largest = ca.norm_inf(off) / (TOLERATED * (1 + ca.norm_inf(y[:n])))

        def residual(z: Any) -> Any:
            assert isinstance(motion, LiftedMotion)
            with_parameters = motion.p_slope is not None
            slopes = _slopes(problem, self, with_parameters)
            slope = slopes(*own, z.value[:k], z.value[k:])
            return Lifted(z.value, motion.chained(slope, x))

        def solve(b: Any) -> Any:
            K, D = _jacobian(problem, self)(*own, y), _equation(problem, self)(*own, y)[2]
            C, D_end, E = _couplings(problem, self)(*own, y, end)
            mean = _solve_regular(K, D, b[:k, :])
            return ca.vertcat(mean, _solve_regular(C, D_end, b[k:, :] + E @ mean))

        k = y.shape[0]
        z = motion.implicit(ca.vertcat(y, end), residual, solve)
        parts = [dt * motion.rows(z, slice(0, nv))]
        parts.append(motion.rows(z, slice(k, k + n)) - before)
        if motion.group.dim > nv + n:  # the time that constraints see
            parts.append(motion.constant(type(y)(dt)))
        return Step(motion.plus(x, motion.stack(parts)), residual=largest)

    def _solved(self, problem: Problem, own: tuple[Any, ...], w: Any) -> tuple[Any, Any]:
        """Mean velocity with the multipliers below it, and the last correction of the former."""
        kernel, (n, m) = _equation(problem, self), _sizes(problem)
        if not m:
            last: Any = w
            for _ in range(self.iterations):
                r, K, _ = kernel(*own, w)
                last = solver(K)(r)
                w = w + last
            return w, last
        y, last = ca.vertcat(w, type(w)(len(self.compliance) * m, 1)), w
        kinds = len(self.compliance)
        count = self.iterations + kinds
        for k in range(count):
            r, K, D = kernel(*own, y)
            # First for the multipliers themselves, not their change: those of rows that depend on
            # others are then the shortest. What the compliance leaves of φ goes with the change.
            is_last = k >= count - kinds
            last = eliminated(K + D)(r if is_last else r + K[:, n:] @ y[n:])
            y = y + last if is_last else ca.vertcat(y[:n] + last[:n], last[n:])
        return y, last[:n]

    def _ended(self, problem: Problem, at: tuple[Any, ...], before: Any) -> Any:
        """Velocity after the step, with the multipliers of its constraints below it."""
        _, m = _sizes(problem)
        if not m:
            return _end(problem, self)(*at)
        C, D, change = _end(problem, self)(*at)
        return ca.vertcat(before, type(before)(m, 1)) + _solve_regular(C, D, change)

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Of a loss, ``v̇ = z v``, which acts at the mean velocity."""
        return (1 + z / 2) / (1 - z / 2)

    def _check(self, motion: Motion) -> None:
        """Refuse plants that the method does not take."""
        held = motion.problem.constrained
        if held is not None:
            self._check_constraints(held)
            inner, further = held.lagrangian, []
        else:
            structure = motion.mechanics(self.name)[0]
            inner = structure.lagrangian
            blocks = motion.group.blocks  # type: ignore[attr-defined]
            further = [name for name in list(blocks)[2:] if inner is None or name != inner.speeds]
        if inner is None or further:
            also = f" (this one has {', '.join(further)} as well)" if further else ""
            raise ValueError(
                f"{self.name} takes bodies, bodies with wheels and trees whose state is their "
                f"motion alone{also}; rk4 takes any"
            )
        if inner.kinetic_gradient is not None and not self.takes_trees:
            raise ValueError(
                f"{self.name} takes bodies, with or without wheels, and mechanisms in absolute "
                "coordinates, whose inertia is the same in every configuration, not trees; "
                "variational_verlet takes those"
            )

    def _check_constraints(self, held: Constrained) -> None:
        """Refuse constraints that the method does not keep."""
        if not self.compliance:
            raise ValueError(
                f"{self.name} takes no constraints; variational_verlet takes those on positions, "
                "and rk4 takes any"
            )
        if held.velocity_rows:
            raise ValueError(
                f"{self.name} takes constraints on positions, not on velocities as "
                f"{', '.join(held.velocity_rows)}; rk4 takes any"
            )
        if held.lagrangian is None:
            raise ValueError(
                f'{self.name} takes closed trees, and mechanisms in "SO3xR3" or "SE3" whose '
                "bodies have masses and moments of inertia about all axes; rk4 takes any"
            )


class _MomentumTerms(NamedTuple):
    """What schemes are made of, on the columns of one step.

    The state after the step as it is stored is for what is no more than rounding. With one that is
    held while derivatives are taken, what does not move Newton's iterations is left out of these.
    """

    problem: Problem
    t: Value
    x: Value
    u: Value
    p: Value
    h: Value
    y: Value
    stored: Value | None = None
    held_end: Value | None = None

    @property
    def inner(self) -> Lagrangian:
        """Inertia and forces."""
        return _lagrangian(self.problem)

    @property
    def group(self) -> LieGroup:
        """Of the configuration."""
        return _configuration(self.problem)

    @property
    def w(self) -> Value:
        """Mean velocity."""
        return self.y[: _sizes(self.problem)[0]]

    def multipliers(self, kind: int) -> Value:
        """Those of the first or second kind, times half of the step."""
        n, m = _sizes(self.problem)
        return self.y[n + kind * m : n + (kind + 1) * m]

    @property
    def turn(self) -> Value:
        """Displacement of the configuration in the step."""
        return self.h * self.w[: self.group.dim]

    def state(self, s: float, w: Value | None = None) -> Value:
        """State after a part of the step, with the mean velocity unless another is given."""
        q = self.x[: self.group.nq]
        q = self.group.plus(q, s * self.turn) if s else q
        return ca.vertcat(q, self.w if w is None else w)

    @property
    def before(self) -> Value:
        """Velocity at the start."""
        nq = self.group.nq
        return self.x[nq : nq + _sizes(self.problem)[0]]

    @property
    def momentum(self) -> Value:
        """At the start."""
        return self.inertial(self.state(0.0, self.before))

    def inertial(self, x: Value) -> Value:
        """``M(q) v``."""
        return self.inner.mass_matrix(x, self.p) @ x[self.group.nq :, :]

    def action(self, s: float) -> Value:
        """All forces after a part of the step, at the mean velocity."""
        return self.inner.action(self.t + s * self.h, self.state(s), self.u, self.p)

    def carried(self, s: float, momentum: Value) -> Value:
        """Momentum that stays in space while the configuration moves through a part of the step."""
        n, group = self.group.dim, self.group
        turned = group.Ad(group.exp(s * self.turn)).T @ momentum[:n]
        if self.stored is not None and s == 1.0:
            q, end = self.x[: group.nq], self.stored[: group.nq]
            turned = _refined(group, q, end, momentum[:n], turned)
        return ca.vertcat(turned, momentum[n:, :])

    def clock(self, s: float) -> Value:
        """Time that constraints see: their own where they have one."""
        own = self.group.nq + _sizes(self.problem)[0]
        return (self.x[own] if self.x.shape[0] > own else self.t) + s * self.h

    def rows(self, s: float) -> tuple[Value, Value]:
        """G and ν after a part of the step."""
        held = self.problem.constrained
        assert held is not None
        return held.velocity(self.clock(s), self.state(s)[: self.group.nq], self.p)

    def reaction(self, s: float, kind: int = 0) -> Value:
        """``Gᵀ λ`` after a part of the step; zero where there are no constraints."""
        if not _sizes(self.problem)[1]:
            return 0
        return self.rows(s)[0].T @ self.multipliers(kind)

    @property
    def share(self) -> Value:
        """How much of the first impulse by μ acts at the end, such that both have one energy."""
        if not _sizes(self.problem)[1]:
            return 0
        held, mu = self.problem.constrained, self.multipliers(1)
        assert held is not None
        end = self.state(1.0) if self.held_end is None else self.held_end
        q = end[: self.group.nq]
        pushes = [self.reaction(0.0, 1), held.velocity(self.clock(1.0), q, self.p)[0].T @ mu]
        M = self.inner.mass_matrix(ca.vertcat(q, self.before), self.p)
        first, last = (ca.dot(push, solve_symmetric(ca.sparsify(M), push)) for push in pushes)
        return ca.sqrt((first + TINY_MOMENTUM) / (last + TINY_MOMENTUM))


def variational(terms: _MomentumTerms) -> tuple[Value, Value]:
    """Discrete Euler–Lagrange equations of ``h T(q exp(h w/2), w) − h (V(q) + V(q⁺))/2``.

    Of bodies it is Störmer's and Verlet's method on the group; of trees T is taken in the middle.
    Half of each force acts at each end of the step (discrete d'Alembert principle). Constraints do
    the same, which is RATTLE: the multipliers of the first half satisfy φ(q⁺) = 0.
    """
    group, h, n = terms.group, terms.h, terms.group.dim
    start = terms.momentum + h / 2 * terms.action(0.0) - terms.reaction(0.0)
    conjugate = terms.inertial(terms.state(0.5))
    if terms.inner.kinetic_gradient is not None:
        slope = terms.inner.kinetic_gradient(terms.state(0.5), terms.p)
        bent = group.right_jacobian(terms.turn / 2).T @ slope[:n]
        conjugate = conjugate + h / 2 * ca.vertcat(bent, slope[n:, :])
        start = start + h * terms.carried(-0.5, slope)
    pulled = group.left_jacobian_inverse(terms.turn).T @ conjugate[:n]
    equation = ca.vertcat(pulled, conjugate[n:, :]) - start
    return equation, terms.carried(1.0, start) + h / 2 * terms.action(1.0)


def spatial_momentum(terms: _MomentumTerms) -> tuple[Value, Value]:
    """Midpoint rule for momenta in space, ``Π⁺ = Π + h W``, with the velocity of their mean.

    Each body of a tree has its own momentum (Müller 2018, eq. 80). The equation is that of the
    joints at the midpoint. The momenta after the step are projected on the joints there.
    """
    h, force = terms.h, terms.action(0.5)
    middle, carried = terms.state(0.5), terms.inner.carried_momentum
    if carried is None:
        before = terms.momentum
        equation = terms.inertial(middle) - terms.carried(0.5, before) - h / 2 * force
        return equation, terms.carried(1.0, before) + h * terms.carried(0.5, force)
    end = terms.state(1.0)
    equation = terms.inertial(middle) - carried(terms.x, middle, terms.p) - h / 2 * force
    return equation, 2 * carried(middle, end, terms.p) - carried(terms.x, end, terms.p)


def energy_momentum(terms: _MomentumTerms) -> tuple[Value, Value]:
    """The mean velocity is that of both ends, forces are their mean on the way from q to q⁺.

    The mean of the slopes of a potential is a discrete gradient: its power is the change of
    the potential. So the energy is kept, and momenta as far as the forces have the symmetry.

    Constraints act with the mean of their gradients as well, which has no power where φ is zero at
    both ends. That ``G v = ν`` holds there, too, takes second multipliers μ: an impulse ``−G₀ᵀ μ``
    at the start and ``σ G₁ᵀ μ`` at the end. These change the energy by ``μᵀ G₀ M⁻¹ G₀ᵀ μ/2`` and
    ``−σ² μᵀ G₁ M⁻¹ G₁ᵀ μ/2``: σ is such that it stays.
    """
    h, before = terms.h, terms.momentum - terms.reaction(0.0, 1)
    after = terms.carried(1.0, before)
    for point, weight in ((0.5, 1.0),) if terms.held_end is not None else _GAUSS:
        force = h * terms.action(point) - 2 * terms.reaction(point)
        after = after + weight * terms.carried(1.0 - point, force)
    middle = terms.inner.mass_matrix(terms.state(0.5), terms.p) @ terms.w
    return 2 * middle - before - after, after + terms.share * terms.reaction(1.0, 1)


def _refined(group: LieGroup, q: Value, end: Value, momentum: Value, turned: Value) -> Value:
    """Momentum after a step with what rounding took from it in space put back.

    The attitude that is stored is rounded, the turn of the momentum is not rounded with it: what
    that leaves in space has one sign for long, and adds up.
    """
    if isinstance(group, Product):
        each = []
        for name, block in group.blocks.items():
            own, at = group.tangent_slice(name), group.coordinate_slice(name)
            each.append(_refined(block, q[at], end[at], momentum[own], turned[own]))
        return ca.vertcat(*each)
    if group != SO3:
        return turned
    before, after = SO3.matrix(q), SO3.matrix(end)
    return turned + after.T @ (before @ momentum - after @ turned)


def _lagrangian(problem: Problem) -> Lagrangian:
    held, structure = problem.constrained, problem.mechanical
    inner = held.lagrangian if held is not None else structure.lagrangian if structure else None
    assert inner is not None
    return inner


def _configuration(problem: Problem) -> LieGroup:
    return next(iter(problem.group.blocks.values()))  # type: ignore[attr-defined]


def _sizes(problem: Problem) -> tuple[int, int]:
    """Number of velocities, and of constraints."""
    held, dim = problem.constrained, _configuration(problem).dim
    return (problem.group.dim - dim, 0) if held is None else (dim, held.n_rows)


def _kind(problem: Problem) -> Any:
    """Symbols of the kernels: what is held is in SX also where fields solve for multipliers."""
    return problem.symbol if problem.constrained is None else ca.SX


def _symbols(problem: Problem, method: MomentumMethod) -> list[Any]:
    group, (n, m) = problem.group, _sizes(problem)
    y, end = n + len(method.compliance) * m, n + m
    sizes = (1, group.nq, problem.n_inputs, problem.n_parameters, 1, y, end)
    return [_kind(problem).sym(name, size) for name, size in zip(_NAMES, sizes, strict=True)]


def _function(
    problem: Problem, name: str, symbols: list[Any], results: list[Any], names: list[str]
) -> ca.Function:
    kind = _kind(problem)
    results = [kind(result) for result in results]
    if kind is ca.SX:
        results = [ca.sparsify(result) for result in ca.cse(results)]
    return ca.Function(name, symbols, results, list(_NAMES[: len(symbols)]), names)


def _conditions(
    problem: Problem, method: MomentumMethod, symbols: list[Any], held_end: Value | None = None
) -> list[Any]:
    """The equations of w and multipliers, and the momentum after the step."""
    terms, kind = _MomentumTerms(problem, *symbols[:6], held_end=held_end), _kind(problem)
    r, momentum = method.scheme(terms)
    rows, held = [r], problem.constrained
    if held is not None and held.n_rows:
        end = terms.state(1.0)
        q = end[: terms.group.nq]
        rows.append(held.position(terms.clock(1.0), q, terms.p) / terms.h)
        if len(method.compliance) > 1:
            G, nu = terms.rows(1.0)
            M = ca.sparsify(terms.inner.mass_matrix(end, terms.p))
            rows.append(G @ solve_symmetric(M, momentum) - nu)
    return [kind(ca.vertcat(*rows)), kind(momentum)]


def _compliances(terms: _MomentumTerms, s: float) -> Value:
    """What makes rows that depend on others regular, of the size of the mobility of each."""
    G, M = terms.rows(s)[0], terms.inner.mass_matrix(terms.state(s), terms.p)
    each = ca.sum2(G * G / ca.repmat(ca.diag(M).T, G.shape[0], 1))
    return SLACK * ca.diag(each + MOTION_GUARD * ca.sum1(each) / each.shape[0])


@memoized
def _equation(problem: Problem, method: MomentumMethod) -> ca.Function:
    """``(t, x, u, p, dt, y) → r, −∂r/∂y, D``: the latter makes the matrix regular.

    Of mechanisms the matrix is that of rough equations, with fewer operations.
    """
    symbols = _symbols(problem, method)[:6]
    r, _ = _conditions(problem, method, symbols)
    y, (n, m) = symbols[5], _sizes(problem)
    D = type(y)(y.shape[0], y.shape[0])
    if m:
        each = _compliances(_MomentumTerms(problem, *symbols), 0.0)
        D[n:, n:] = ca.kron(ca.DM(method.compliance), each)
    if m:
        end = _MomentumTerms(problem, *symbols).state(1.0)
        held = ca.SX.sym("end", end.shape[0])
        K = -ca.jacobian(_conditions(problem, method, symbols, held)[0], y)
        K = ca.substitute(K, held, end)
    else:
        K = -ca.jacobian(r, y)
    names = ["r", "K", "D"]
    return _function(problem, "mean_velocity_equation", symbols, [ca.densify(r), K, D], names)


@memoized
def _jacobian(problem: Problem, method: MomentumMethod) -> ca.Function:
    """``(t, x, u, p, dt, y) → −∂r/∂y``, all of it."""
    symbols = _symbols(problem, method)[:6]
    K = -ca.jacobian(_conditions(problem, method, symbols)[0], symbols[5])
    return _function(problem, "slopes_by_mean_velocity", symbols, [K], ["K"])


@memoized
def _end(problem: Problem, method: MomentumMethod) -> ca.Function:
    """``(t, x, u, p, dt, y, x⁺) → v`` after the step, or ``C, D, b`` of ``C [Δv; λ] = b``.

    Of x⁺ the configuration counts, as it is stored.
    """
    symbols = _symbols(problem, method)[:6]
    symbols.append(_kind(problem).sym("x_next", problem.group.nq))
    terms = _MomentumTerms(problem, *symbols[:6], stored=symbols[6])
    momentum, before = method.scheme(terms)[1], terms.before
    M = terms.inner.mass_matrix(terms.state(1.0), terms.p)
    # Of the change: what rounding makes of M⁻¹ is the same each time, and would add up in v.
    change = momentum - M @ before
    if _sizes(problem)[1]:
        C, D = _bordered(terms, M)
        G, nu = terms.rows(1.0)
        right = ca.densify(ca.vertcat(change, nu - G @ before))
        return _function(problem, "change_of_velocity", symbols, [C, D, right], ["C", "D", "b"])
    made = before + solve_symmetric(ca.sparsify(M) if _kind(problem) is ca.SX else M, change)
    return _function(problem, "velocity_after_step", symbols, [ca.densify(made)], ["v"])


def _bordered(terms: _MomentumTerms, M: Any) -> tuple[Any, Any]:
    """``[[M, Gᵀ], [G, 0]]`` after the step, and what makes it regular."""
    n, m = _sizes(terms.problem)
    if not m:
        return M, type(M)(n, n)
    G = terms.rows(1.0)[0]
    C = ca.blockcat([[M, G.T], [G, ca.SX(m, m)]])
    return C, ca.diagcat(ca.SX(n, n), -_compliances(terms, 1.0))


@memoized
def _slopes(problem: Problem, method: MomentumMethod, parameters: bool) -> ca.Function:
    """``(t, x, u, p, dt, y, end) → ∂/∂(x, u, p)`` of all conditions, y and the end held."""
    symbols = _symbols(problem, method)
    both = ca.vertcat(
        _conditions(problem, method, symbols)[0], _end_conditions(problem, method, symbols)
    )
    slopes = [ca.jacobian(both, symbols[1]) @ problem.group.rate_matrix(symbols[1])]
    slopes += [ca.jacobian(both, symbols[2])]
    slopes += [ca.jacobian(both, symbols[3])] if parameters else []
    return _function(problem, "slopes_of_step", symbols, [ca.horzcat(*slopes)], ["slope"])


@memoized
def _couplings(problem: Problem, method: MomentumMethod) -> ca.Function:
    """``(t, x, u, p, dt, y, end) → C, D, E``: slopes of what ends the step, E by y."""
    symbols = _symbols(problem, method)
    terms = _MomentumTerms(problem, *symbols[:6])
    conditions = _end_conditions(problem, method, symbols)
    C, D = _bordered(terms, terms.inner.mass_matrix(terms.state(1.0), terms.p))
    results = [C, D, ca.jacobian(conditions, symbols[5])]
    return _function(problem, "couplings_of_step", symbols, results, ["C", "D", "E"])


def _end_conditions(problem: Problem, method: MomentumMethod, symbols: list[Any]) -> Any:
    """``p⁺ − M(q⁺) v − G(q⁺)ᵀ λ`` and ``ν − G(q⁺) v``."""
    terms, (n, m) = _MomentumTerms(problem, *symbols[:6]), _sizes(problem)
    momentum, end = _conditions(problem, method, symbols)[1], symbols[6]
    off = momentum - terms.inertial(terms.state(1.0, end[:n]))
    if not m:
        return _kind(problem)(off)
    G, nu = terms.rows(1.0)
    return ca.SX(ca.vertcat(off - G.T @ end[n:, :], nu - G @ end[:n]))


def _solve_regular(C: Any, D: Any, b: Any) -> Any:
    """``C⁻¹ b`` by ``C + D`` and one refinement; by C where D has no entries.

    A column by elimination, several by QR: LDLᵀ without pivoting loses as many digits as D is
    small, and refinement brings back half of them.
    """
    if not D.nnz():
        return solver(C)(b)
    if b.shape[1] == 1:
        solve = eliminated(C + D)
        made = solve(b)
        return made + solve(b - C @ made)
    made = solve_linear(C + D, b)
    return made + solve_linear(C + D, b - C @ made)


VARIATIONAL = MomentumMethod("variational_verlet", variational, compliance=((1.0,),))
SPATIAL = MomentumMethod("spatial_momentum_midpoint", spatial_momentum)
ENERGY = MomentumMethod(
    "energy_momentum", energy_momentum, takes_trees=False, compliance=((1e4, 1e4), (2e4, 0.0))
)

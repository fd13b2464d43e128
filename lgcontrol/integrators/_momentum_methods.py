"""Methods that keep momenta: variational, spatial-momentum and energy–momentum steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import Value, solve_symmetric
from ..groups import LieGroup
from ._method import Method
from ._motion import Lifted, LiftedMotion, Motion, solver
from ._problem import Lagrangian, Problem, Step, made_once, nan_as_infinite

# Newton's corrections fall quadratically: after a last one of this size, next to the velocity, what
# is left is of the order of rounding.
TOLERATED = 1e-6


@dataclass(frozen=True)
class MomentumMethod(Method):
    """``q⁺ = q exp(dt w)`` with the mean velocity w of a step, then ``M(q⁺) v⁺ = p⁺(w)``.

    A scheme gives the equation of w and the momentum p⁺ after the step; where nothing acts that is
    ``Ad(exp(dt w))ᵀ p``, the same momentum in space, whatever w is. The equation is solved by
    Newton's method with its exact Jacobian in a fixed number of iterations, so that a step compiles
    and serves an MPC; the last correction is returned as the residual. Derivatives follow from
    the implicit function theorem.

    It takes bodies, bodies with wheels and trees, as they make their System; augmented systems and
    fields without structure are refused.

    Parameters
    ----------
    name : str
    scheme : callable
        ``terms → r, p⁺``: the equation ``r(w) = 0`` and the momentum after the step, of the
        columns of a step; those of this module are examples.
    takes_trees : bool
        Whether the inertia may depend on the configuration.
    iterations : int
        Newton steps; `dataclasses.replace` makes a method with another number.

    References
    ----------
    Marsden, West: Discrete mechanics and variational integrators, Acta Numerica 2001; Müller 2018,
    eq. 80; Simo, Wong: Unconditionally stable algorithms for rigid body dynamics that exactly
    preserve energy and momentum, 1991.

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
    iterations: int = 3
    order = 2
    stages = 1
    needs_structure = True
    needs_lagrangian = True
    solves = True

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Newton's method for the mean velocity, then the velocity from the momentum."""
        self._check(motion)
        problem = motion.problem
        own = (t, motion.value(x), motion.u, motion.p, dt)
        kernel = _equation(problem, self)
        before = motion.value(motion.velocities(x))
        rate = problem.field(*own[:4])
        w: Any = before + dt / 2 * rate[rate.shape[0] - before.shape[0] :]  # of the second order
        last: Any = w
        for _ in range(self.iterations):
            r, K = kernel(*own, w)
            last = solver(K)(r)
            w = w + last
        v = _end(problem, self)(*own, w)
        moved: Any = nan_as_infinite(ca.fabs(last))
        largest = ca.norm_inf(moved) / (TOLERATED * (1 + ca.norm_inf(w)))

        def residual(z: Any) -> Any:
            assert isinstance(motion, LiftedMotion)
            with_parameters = motion.p_slope is not None
            slope = _slopes(problem, self, with_parameters)(*own, z.value[:n], z.value[n:])
            return Lifted(z.value, motion.chained(slope, x))

        def solve(b: Any) -> Any:
            K = kernel(*own, w)[1]
            M, E = _couplings(problem, self)(*own, w, v)
            mean = solver(K)(b[:n, :])
            return ca.vertcat(mean, solver(M)(b[n:, :] + E @ mean))

        n = w.shape[0]
        z = motion.implicit(ca.vertcat(w, v), residual, solve)
        nv = motion.group.dim - n
        parts = [dt * motion.rows(z, slice(0, nv))]
        parts.append(motion.rows(z, slice(n, 2 * n)) - motion.velocities(x))
        return Step(motion.plus(x, motion.stack(parts)), residual=largest)

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Of a loss, ``v̇ = z v``, which acts at the mean velocity."""
        return (1 + z / 2) / (1 - z / 2)

    def _check(self, motion: Motion) -> None:
        """Refuse plants that the method does not take."""
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
                f"{self.name} takes bodies, with or without wheels, whose inertia is the same in "
                "every configuration, not trees; variational_verlet and spatial_momentum_midpoint "
                "take those"
            )


class _MomentumTerms(NamedTuple):
    """What schemes are made of, on the columns of one step."""

    problem: Problem
    t: Value
    x: Value
    u: Value
    p: Value
    h: Value
    w: Value

    @property
    def inner(self) -> Lagrangian:
        """Inertia and forces."""
        structure = self.problem.mechanical
        assert structure is not None and structure.lagrangian is not None
        return structure.lagrangian

    @property
    def group(self) -> LieGroup:
        """Of the configuration."""
        structure = self.problem.mechanical
        assert structure is not None
        return self.problem.group.blocks[structure.configuration]  # type: ignore[attr-defined]

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
    def momentum(self) -> Value:
        """At the start."""
        return self.inertial(self.x)

    def inertial(self, x: Value) -> Value:
        """``M(q) v``."""
        return self.inner.mass_matrix(x, self.p) @ x[self.group.nq :]

    def action(self, s: float) -> Value:
        """All forces after a part of the step, at the mean velocity."""
        return self.inner.action(self.t + s * self.h, self.state(s), self.u, self.p)

    def carried(self, s: float, momentum: Value) -> Value:
        """Momentum that stays in space while the configuration moves through a part of the step."""
        n = self.group.dim
        turned = self.group.Ad(self.group.exp(s * self.turn)).T @ momentum[:n]
        return ca.vertcat(turned, momentum[n:])


def variational(terms: _MomentumTerms) -> tuple[Value, Value]:
    """Discrete Euler–Lagrange equations of ``h T(q exp(h w/2), w) − h (V(q) + V(q⁺))/2``.

    Of bodies it is Störmer's and Verlet's method on the group; of trees T is taken in the middle.
    Forces act in halves at both ends (discrete d'Alembert principle).
    """
    group, h, n = terms.group, terms.h, terms.group.dim
    start = terms.momentum + h / 2 * terms.action(0.0)
    conjugate = terms.inertial(terms.state(0.5))
    if terms.inner.kinetic_gradient is not None:
        slope = terms.inner.kinetic_gradient(terms.state(0.5), terms.p)
        bent = group.right_jacobian(terms.turn / 2).T @ slope[:n]
        conjugate = conjugate + h / 2 * ca.vertcat(bent, slope[n:])
        start = start + h * terms.carried(-0.5, slope)
    pulled = group.left_jacobian_inverse(terms.turn).T @ conjugate[:n]
    equation = ca.vertcat(pulled, conjugate[n:]) - start
    return equation, terms.carried(1.0, start) + h / 2 * terms.action(1.0)


def spatial_momentum(terms: _MomentumTerms) -> tuple[Value, Value]:
    """Midpoint rule for momenta in space, ``Π⁺ = Π + h W``, with the velocity of their mean.

    The bodies of a tree have a momentum each (Müller 2018, eq. 80): the equation is that of
    the joints in the middle, and the momenta after the step are read on the joints there.
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


# Gauss's points on [0, 1]: exact for polynomials of degree 7 of the way.
_POINTS, _WEIGHTS = (value / 2 for value in np.polynomial.legendre.leggauss(4))


def energy_momentum(terms: _MomentumTerms) -> tuple[Value, Value]:
    """The mean velocity is that of both ends, forces are their mean on the way from q to q⁺.

    The mean of the slopes of a potential is a discrete gradient: its power is the change of
    the potential. So the energy is kept, and momenta as far as the forces have the symmetry.
    """
    before = terms.momentum
    after = terms.carried(1.0, before)
    for point, weight in zip(_POINTS + 0.5, _WEIGHTS, strict=True):
        pushed = terms.carried(1.0 - float(point), terms.action(float(point)))
        after = after + float(weight) * terms.h * pushed
    middle = terms.inner.mass_matrix(terms.state(0.5), terms.p) @ terms.w
    return 2 * middle - before - after, after


_NAMES = ("t", "x", "u", "p", "dt", "w", "v")


def _symbols(problem: Problem) -> list[Any]:
    structure = problem.mechanical
    assert structure is not None
    group: Any = problem.group
    n = group.dim - group.blocks[structure.configuration].dim
    sizes = (1, group.nq, problem.n_inputs, problem.n_parameters, 1, n, n)
    return [problem.symbol.sym(name, size) for name, size in zip(_NAMES, sizes, strict=True)]


def _function(
    problem: Problem, name: str, symbols: list[Any], results: list[Any], names: list[str]
) -> ca.Function:
    results = [problem.symbol(result) for result in results]
    if problem.symbol is ca.SX:
        results = [ca.sparsify(result) for result in ca.cse(results)]
    return ca.Function(name, symbols, results, list(_NAMES[: len(symbols)]), names)


@made_once
def _equation(problem: Problem, method: MomentumMethod) -> ca.Function:
    """``(t, x, u, p, dt, w) → r, −∂r/∂w``."""
    symbols = _symbols(problem)[:6]
    r, _ = method.scheme(_MomentumTerms(problem, *symbols))
    r = problem.symbol(r)
    return _function(
        problem,
        "mean_velocity_equation",
        symbols,
        [ca.densify(r), -ca.jacobian(r, symbols[5])],
        ["r", "K"],
    )


@made_once
def _end(problem: Problem, method: MomentumMethod) -> ca.Function:
    """``(t, x, u, p, dt, w) → v`` after the step."""
    symbols = _symbols(problem)[:6]
    terms = _MomentumTerms(problem, *symbols)
    _, momentum = method.scheme(terms)
    before = terms.x[terms.group.nq :]
    M = terms.inner.mass_matrix(terms.state(1.0), terms.p)
    # Of the change: what rounding makes of M⁻¹ is the same each time, and would add up in v.
    change = momentum - M @ before
    made = before + solve_symmetric(ca.sparsify(M) if problem.symbol is ca.SX else M, change)
    return _function(problem, "velocity_after_step", symbols, [ca.densify(made)], ["v"])


def _conditions(problem: Problem, method: MomentumMethod, symbols: list[Any]) -> list[Value]:
    """The equation, and ``p⁺ − M(q⁺) v``."""
    terms, v = _MomentumTerms(problem, *symbols[:6]), symbols[6]
    r, momentum = method.scheme(terms)
    return [problem.symbol(r), problem.symbol(momentum - terms.inertial(terms.state(1.0, v)))]


@made_once
def _slopes(problem: Problem, method: MomentumMethod, parameters: bool) -> ca.Function:
    """``(t, x, u, p, dt, w, v) → ∂/∂(x, u, p)`` of both conditions, w and v held."""
    symbols = _symbols(problem)
    both = ca.vertcat(*_conditions(problem, method, symbols))
    slopes = [ca.jacobian(both, symbols[1]) @ problem.group.rate_matrix(symbols[1])]
    slopes += [ca.jacobian(both, symbols[2])]
    slopes += [ca.jacobian(both, symbols[3])] if parameters else []
    return _function(problem, "slopes_of_step", symbols, [ca.horzcat(*slopes)], ["slope"])


@made_once
def _couplings(problem: Problem, method: MomentumMethod) -> ca.Function:
    """``(t, x, u, p, dt, w, v) → M(q⁺), ∂(p⁺ − M(q⁺) v)/∂w``."""
    symbols = _symbols(problem)
    second = _conditions(problem, method, symbols)[1]
    slopes = [-ca.jacobian(second, symbols[6]), ca.jacobian(second, symbols[5])]
    return _function(problem, "couplings_of_step", symbols, slopes, ["M", "E"])


VARIATIONAL = MomentumMethod("variational_verlet", variational)
SPATIAL = MomentumMethod("spatial_momentum_midpoint", spatial_momentum)
ENERGY = MomentumMethod("energy_momentum", energy_momentum, takes_trees=False)

"""Steps for mechanical systems, and compositions of symmetric methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ..codegen._internal import Saddle
from ..groups import Product
from ._method import Method
from ._momentum_methods import VARIATIONAL
from ._motion import Motion, solver
from ._problem import Constrained, Step, nan_as_infinite

# Suzuki 1990: five parts, whose error is a tenth of that of Yoshida's three at the same cost.
_PART = 1 / (4 - 4 ** (1 / 3))


@dataclass(frozen=True)
class SemiImplicitEuler(Method):
    """``v⁺ = v + dt v̇(t, x, u)``, then ``q⁺ = q exp(dt v⁺)``.

    Symplectic on Rn: for an Euler step it keeps the energy of swings well. Further blocks of the
    state move by explicit Euler.

    Examples
    --------
    >>> from lgcontrol.integrators import get_method
    >>> get_method("semi_implicit_euler").needs_structure
    True
    """

    name = "semi_implicit_euler"
    order = 1
    stages = 1
    needs_structure = True

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """The new velocity moves the configuration."""
        _, q, v, rest = motion.mechanics(self.name)
        rate = motion.field(t, x)
        change = motion.rows(rate, v)
        parts = [motion.rows(rate, q) + dt * change, change, motion.rows(rate, rest)]
        return Step(motion.plus(x, dt * motion.stack(parts)))

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Of a loss, ``v̇ = z v``."""
        return 1 + z


@dataclass(frozen=True)
class LinearlyImplicitEuler(Method):
    """``M Δv = dt (F(t, x, u) + L(v) − L(v⁺))``, then ``q⁺ = q exp(dt v⁺)``.

    L are the losses in joints: damping and friction may be as stiff as they like. Newton's steps
    solve for them, each one sparse factor of ``M + dt D`` with their Jacobian D; linear damping
    takes one. Without L, where a structure has D alone, it is ``(M + dt D) Δv = dt F``. All other
    forces are explicit. Constraints are kept by multipliers in the same solves, ``G Δv = dt γ``.
    Further blocks of the state move by explicit Euler.

    Parameters
    ----------
    iterations : int
        Of Newton, where a structure has L. Six leave at most 1e-4 rad/s on an arm with friction as
        sharp as in its file, from random states; most need three.

    Examples
    --------
    >>> from lgcontrol.integrators import get_method
    >>> complex(get_method("linearly_implicit_euler").stability(-1e8)).real < 1e-6
    True
    """

    name = "linearly_implicit_euler"
    order = 1
    stages = 1
    stiff_order = 1
    uses_losses = True
    needs_structure = True
    iterations: int = 6

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Accelerations by linear solves; their derivatives by the balance of forces."""
        if motion.problem.constrained is not None:
            return self._held(motion, motion.problem.constrained, t, x, dt)
        structure, _, _, rest = motion.mechanics(self.name)
        at, p, group = motion.value(x), motion.p, motion.group
        M, force = structure.mass_matrix(at, p), structure.force(t, at, motion.u, p)
        D, losses = structure.loss_jacobian, structure.losses
        if D is None:
            solve = solver(M, symmetric=True)
            a = motion.implicit(solve(force), lambda a: motion.balance(t, x, a), solve)
        elif losses is None:
            solve = solver(M + dt * D(at, p), symmetric=True)

            def jacobian(t: Value, x: Value, u: Value, p: Value) -> Value:
                return D(x, p)

            def left(a: Any) -> Any:
                return motion.balance(t, x, a) - dt * motion.product(jacobian, t, x, a)

            a = motion.implicit(solve(force), left, solve)
        else:
            assert isinstance(group, Product)
            own = group.coordinate_slice(structure.velocity)

            def with_velocity(x: Value, w: Value) -> Value:
                return ca.vertcat(x[: own.start], w, x[own.stop :])

            def spared(t: Value, x: Value, u: Value, p: Value, a: Value, dt: Value) -> Value:
                return losses(x, p) - losses(with_velocity(x, x[own] + dt * a), p)

            def linear(w: Any) -> tuple[Any, Callable[[Any], Any]]:
                there = with_velocity(at, w)
                slope = D(there, p)
                right = force + losses(at, p) - losses(there, p) + slope @ (w - at[own])
                return right, solver(M + dt * slope, symmetric=True)

            a = self._newton(at[own], dt, linear)
            w = at[own] + dt * a
            solve = solver(M + dt * D(with_velocity(at, w), p), symmetric=True)
            a = motion.implicit(
                a,
                lambda a: (
                    motion.balance(t, x, a) + motion.column(spared, t, x, motion.value(a), dt)
                ),
                solve,
            )
        rate = motion.field(t, x) if rest.stop > rest.start else None
        parts = [motion.vectors(x) + dt * a, a]
        if rate is not None:
            parts.append(motion.rows(rate, rest))
        return Step(motion.plus(x, dt * motion.stack(parts)))

    def _newton(
        self, v: Any, dt: Value, linear: Callable[[Any], tuple[Any, Callable[[Any], Any]]]
    ) -> Any:
        """Solution whose first entries are accelerations, by equations made linear at ``v⁺ = w``.

        From v⁺ = 0, where friction is steepest, Newton's steps do not pass by what they seek; with
        several joints one may change its sign, and starts again from there.
        """
        w, found = 0 * v, 0 * v
        for _ in range(self.iterations):
            right, solve = linear(w)
            found = solve(right)
            a = found[: v.shape[0]]
            w = ca.if_else(w * (v + dt * a) < 0, 0, v + dt * a)
        return found

    def _held(self, motion: Motion, held: Constrained, t: Value, x: Any, dt: Value) -> Step:
        """The same with constraints: ``M Δv + dt Gᵀ λ = …`` and ``G Δv = dt γ``."""
        at, p, u = motion.value(x), motion.p, motion.u
        assert isinstance(motion.group, Product)
        sizes = [(block.nq, block.dim) for block in motion.group.blocks.values()]
        (nq, n), D, losses = sizes[0], held.loss_jacobian, held.losses

        def terms(t: Value, x: Value, u: Value, p: Value) -> tuple[Value, ...]:
            clock = x[-1] if len(sizes) > 2 else t
            return held.index1(clock, x[:nq], x[nq : nq + n], u, p)

        def lost(x: Value, v: Value, p: Value) -> Value:
            """What losses resist with at velocities v."""
            own = ca.vertcat(x[:nq], v)
            if losses is not None:
                return losses(own, p)
            return 0 * v if D is None else D(ca.vertcat(x[: nq + n]), p) @ v

        M, F, G, gamma = terms(t, at, u, p)
        v = at[nq : nq + n]

        def linear(w: Any) -> tuple[Any, Callable[[Any], Any]]:
            slope = 0 * M if D is None else D(ca.vertcat(at[:nq], w), p)
            right = F + lost(at, v, p) - lost(at, w, p) + slope @ (w - v)
            saddle = Saddle(M + dt * slope, G)

            def solve(b: Any) -> Any:
                return ca.vertcat(*saddle.solve(b[:n, :], b[n:, :]))

            return ca.vertcat(right, gamma), solve

        def left(t: Value, x: Value, u: Value, p: Value, y: Value, dt: Value) -> Value:
            M, F, G, gamma = terms(t, x, u, p)
            v, a = x[nq : nq + n], y[:n]
            spared = lost(x, v, p) - lost(x, v + dt * a, p)
            return ca.vertcat(F - M @ a - G.T @ y[n:] + spared, gamma - G @ a)

        y = self._newton(v, dt, linear) if losses is not None else linear(v)[1](linear(v)[0])
        solve = linear(v + dt * y[:n])[1]
        solved = motion.implicit(y, lambda y: motion.column(left, t, x, motion.value(y), dt), solve)
        a = motion.rows(solved, slice(0, n))
        parts = [motion.vectors(x) + dt * a, a]
        if len(sizes) > 2:  # the time that constraints see
            parts.append(motion.constant(type(y)(ca.DM.ones(1))))
        return Step(motion.plus(x, dt * motion.stack(parts)))

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Of a loss, ``v̇ = z v``."""
        return 1 / (1 - z)


@dataclass(frozen=True)
class Composition(Method):
    """Steps of a method over parts of dt, one after the other, some of them backwards.

    What the method keeps exactly (momenta, energy, being symplectic) the composition keeps. Of a
    symmetric method of order 2 the parts can make one of order 4. A part that goes backwards feeds
    losses back that the others take out: for strong ones take the method itself.

    Parameters
    ----------
    name : str
    method : Method
        A step with −dt undoes its step with dt.
    parts : tuple of float
        They sum to one, and read the same from both ends.
    order : int
        Order of the composition.

    Raises
    ------
    ValueError
        If the parts do not sum to one or are not symmetric. Also for order 4, if the sum of their
        third powers is not zero.

    References
    ----------
    Hairer, Lubich, Wanner: Geometric Numerical Integration, example II.4.3.

    Examples
    --------
    >>> from lgcontrol.integrators import Composition, get_method
    >>> w = 1 / (2 - 2 ** (1 / 3))
    >>> yoshida = Composition("yoshida4", get_method("energy_momentum"), (w, 1 - 2 * w, w), 4)
    >>> yoshida.order, yoshida.needs_structure
    (4, True)
    """

    name: str
    method: Method
    parts: tuple[float, ...]
    order: int  # type: ignore[assignment]

    def __post_init__(self) -> None:
        parts = np.array(self.parts)
        if abs(parts.sum() - 1) > 1e-13 or not np.allclose(parts, parts[::-1], rtol=0, atol=1e-13):
            raise ValueError(
                f"{self.name}: parts {self.parts} must sum to one and read the same from both ends"
            )
        if self.order > self.method.order and abs((parts ** (self.method.order + 1)).sum()) > 1e-12:
            raise ValueError(
                f"{self.name}: the sum of the parts to the power {self.method.order + 1} must "
                f"vanish for order {self.order}, it is {(parts ** (self.method.order + 1)).sum():g}"
            )
        for name in ("needs_structure", "needs_lagrangian", "keeps_constraints", "solves"):
            object.__setattr__(self, name, getattr(self.method, name))

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Steps of the method times its stages."""
        return len(self.parts) * self.method.stages

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """One part after the other."""
        done, residual = 0.0, 0.0
        for part in self.parts:
            x = motion.normalize(x) if done else x  # who runs the step normalises its end
            made = self.method.advance(motion, t + done * dt, x, part * dt)
            x, done = made.state, done + part
            residual = ca.fmax(residual, nan_as_infinite(made.residual))
        return Step(x, residual=residual)

    def stability(self, z: np.ndarray) -> np.ndarray:
        """Product of those of the parts."""
        return np.prod([self.method.stability(part * z) for part in self.parts], axis=0)


VARIATIONAL4 = Composition(
    "variational4", VARIATIONAL, (_PART, _PART, 1 - 4 * _PART, _PART, _PART), 4
)

"""Runge–Kutta–Munthe-Kaas: a classical method on the Lie algebra, for any explicit tableau."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import casadi as ca

from ..codegen import ModelFunction, Value, trace
from ..groups import LieGroup
from ._method import Field, Method, combine
from ._tableau import Tableau

# J_r(Θ)⁻¹ = Σ (−1)ⁿ Bₙ/n! ad_Θⁿ with the Bernoulli numbers Bₙ, as far as order 8 needs it.
_BERNOULLI = (1.0, 1 / 2, 1 / 12, 0.0, -1 / 720, 0.0, 1 / 30240)


@dataclass(frozen=True)
class MuntheKaas(Method):
    """``X⁺ = X exp(Θ)``, where a Runge–Kutta step solves ``Θ̇ = J_r(Θ)⁻¹ f(t, X exp Θ)``.

    On Rn this is the classical method of the tableau. The inverse Jacobian is a polynomial in
    ``ad_Θ``: a method of order p keeps its order with the powers up to p − 2, because Θ is of
    order dt and the lowest term left out is multiplied with dt again.

    Parameters
    ----------
    name : str
    tableau : Tableau
        Its order must not exceed 8.

    References
    ----------
    Munthe-Kaas 1999, High order Runge–Kutta methods on manifolds; Hairer, Lubich, Wanner:
    Geometric Numerical Integration, theorem IV.8.5 (there for right-trivialised fields).

    Examples
    --------
    >>> from lgcontrol.integrators import MuntheKaas, Tableau
    >>> ralston = MuntheKaas("ralston", Tableau(A=[(), (2 / 3,)], b=(1 / 4, 3 / 4)))
    >>> ralston.order, ralston.stages
    (2, 2)
    """

    name: str
    tableau: Tableau

    @property
    def order(self) -> int:  # type: ignore[override]
        """Order of the tableau."""
        return self.tableau.order

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Evaluations of the field in a step."""
        return self.tableau.stages

    @property
    def brackets(self) -> int:
        """Highest power of ``ad_Θ`` that the order needs."""
        return max(self.order - 2, 0)

    def slopes(
        self,
        group: LieGroup,
        field: Field,
        t: Value,
        x: Value,
        dt: Value,
        stages: int,
        *,
        first: Any = None,
    ) -> list[Any]:
        """Velocities ``kᵢ = J_r(Θᵢ)⁻¹ f(t + cᵢ dt, X exp Θᵢ)`` of the first stages.

        ``first`` is the velocity at (t, x) where it is known already.
        """
        found: list[Any] = [field(t, x) if first is None else first]
        for row, c in zip(self.tableau.A[1:stages], self.tableau.c[1:stages], strict=True):
            theta = combine(row, found, dt)
            if theta is None:  # a stage without weights is at the start
                found.append(field(t + c * dt, x))
                continue
            velocity = field(t + c * dt, group.plus(x, theta))
            found.append(algebra_rate(group, self.brackets, theta, velocity))
        return found

    def _step(self, group: LieGroup, field: Field, t: Value, x: Value, dt: Value) -> Value:
        slopes = self.slopes(group, field, t, x, dt, self.stages)
        return group.plus(x, combine(self.tableau.b, slopes, dt))


def algebra_rate(group: LieGroup, brackets: int, theta: Value, velocity: Value) -> Value:
    """``Θ̇ = J_r(Θ)⁻¹ d`` up to a power of ``ad_Θ``."""
    if group.is_commutative or brackets == 0:
        return velocity
    if isinstance(theta, ca.SX) and isinstance(velocity, ca.SX):
        return _series(group, brackets, theta, velocity)
    return _rate_function(group, brackets)(theta, velocity)


def _series(group: LieGroup, brackets: int, theta: Value, velocity: Value) -> Value:
    ad = group._ad(theta)  # structural zeros of commutative blocks make their brackets free
    rate, power = velocity, velocity
    for coefficient in _needed(brackets):
        power = ad @ power
        if coefficient:
            rate = rate + coefficient * power
    return rate


def _needed(brackets: int) -> Sequence[float]:
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

"""Runge–Kutta–Munthe-Kaas: a classical method on the Lie algebra, for any explicit tableau."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..codegen import Value
from ._method import Method, Trial, combine
from ._motion import Motion
from ._problem import Step
from ._tableau import Row, Tableau


@dataclass(frozen=True)
class MuntheKaas(Method):
    """``X⁺ = X exp(Θ)``, where a Runge–Kutta step solves ``Θ̇ = J_r(Θ)⁻¹ f(t, X exp Θ)``.

    On Rn this is the classical method of the tableau. The inverse Jacobian is a polynomial in
    ``ad_Θ``. A method of order p keeps its order with the powers up to p − 2. The reason: Θ is of
    order dt, and the first omitted term is multiplied by dt again.

    Parameters
    ----------
    name : str
    tableau : Tableau
        Its order must not exceed 8. With embedded weights steps come with an estimate of their
        error.
    dense : tuple of float
        Weights of the part of the interpolation that is not fixed by values and slopes at both
        ends; without them the interpolation is cubic.

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
    dense: Row = ()

    is_explicit = True

    @property
    def order(self) -> int:  # type: ignore[override]
        """Order of the tableau."""
        return self.tableau.order

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Evaluations of the field in a step."""
        return self.tableau.stages

    @property
    def has_error(self) -> bool:  # type: ignore[override]
        """Whether the tableau has embedded weights."""
        return bool(self.tableau.b_embedded)

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """``X exp(dt Σ bᵢ kᵢ)``."""
        count = len(self.tableau.b) if estimate else self.stages
        slopes = self._slopes(motion, t, x, dt, count, motion.field(t, x))
        end = motion.plus(x, combine(self.tableau.b, slopes, dt))
        return Step(end, error=self._error(slopes, dt) if estimate else None)

    def trial(self, motion: Motion, t: Value, x: Value, velocity: Value, dt: Value) -> Trial:
        """Step with an error estimate and interpolation, from the velocity at (t, x).

        In the algebra the step is the classical one, with its classical error estimate and
        interpolation. They return to the group at the end point.
        """
        tableau, group = self.tableau, motion.group
        # Where the last row is b, its slope is the first of the next step.
        shared = (*tableau.A[-1], 0.0) == tableau.b
        slopes = self._slopes(motion, t, x, dt, len(tableau.b) - shared, velocity)
        theta = combine(tableau.b, slopes, dt)
        end = group.normalize(group.plus(x, theta))
        velocity_end = motion.field(t + dt, end)
        last = motion.algebra_rate(self.brackets, theta, velocity_end)
        if shared:
            slopes.append(last)
        bend = dt * slopes[0] - theta
        rest = combine(self.dense, slopes, dt) if self.dense else 0 * theta
        dense = [theta, bend, theta - dt * last - bend, rest]
        return Trial(end, velocity_end, self._error(slopes, dt), dense, 0.0)

    def _error(self, slopes: list[Any], dt: Value) -> Any:
        pairs = zip(self.tableau.b, self.tableau.b_embedded, strict=True)
        return combine([b - other for b, other in pairs], slopes, dt)

    def _slopes(
        self, motion: Motion, t: Value, x: Any, dt: Value, stages: int, first: Any
    ) -> list[Any]:
        """Velocities ``kᵢ = J_r(Θᵢ)⁻¹ f(t + cᵢ dt, X exp Θᵢ)`` of the first stages."""
        found: list[Any] = [first]
        for row, c in zip(self.tableau.A[1:stages], self.tableau.c[1:stages], strict=True):
            theta = combine(row, found, dt)
            if theta is None:  # a stage without weights is at the start
                found.append(motion.field(t + c * dt, x))
                continue
            velocity = motion.field(t + c * dt, motion.plus(x, theta))
            found.append(motion.algebra_rate(self.brackets, theta, velocity))
        return found

"""Explicit methods on groups: Munthe-Kaas and commutator-free."""

from __future__ import annotations

from collections.abc import Sequence
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


Exponentials = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class CommutatorFree(Method):
    """``X⁺ = X exp(dt Σⱼ β¹ⱼ kⱼ) exp(dt Σⱼ β²ⱼ kⱼ) …``, with stages of the same form.

    Parameters
    ----------
    name : str
    order : int
        Order on any group; it is smaller than or equal to the order on Rn.
    A : tuple
        For each stage its exponentials from left to right, each the weights of the earlier slopes.
        The first stage is ``()``.
    b : tuple
        Exponentials of the step.

    Notes
    -----
    Crouch–Grossman methods are those with a single slope in each exponential. The literature
    writes fields on the other side (``Ẋ = f X``); taking inverses turns their products around.

    References
    ----------
    Crouch, Grossman 1993; Celledoni, Marthinsen, Owren 2003, Commutator-free Lie group methods.

    Examples
    --------
    >>> from lgcontrol.integrators import CommutatorFree
    >>> CommutatorFree("lie_euler", order=1, A=((),), b=((1.0,),)).stages
    1
    """

    name: str
    order: int
    A: tuple[Exponentials, ...]
    b: Exponentials

    is_explicit = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "A", tuple(_exponentials(stage) for stage in self.A))
        object.__setattr__(self, "b", _exponentials(self.b))
        for i, stage in enumerate(self.A):
            if any(len(weights) > i for weights in stage):
                raise ValueError(f"{self.name}: stage {i} uses slopes from {i} on: not explicit")
        if any(len(weights) > len(self.A) for weights in self.b):
            raise ValueError(f"{self.name}: b has more weights than the {len(self.A)} stages")
        total = sum(map(sum, self.b))
        if abs(total - 1) > 1e-13:
            raise ValueError(f"{self.name}: b sums to {total:.15g}, expected 1")

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Evaluations of the field in a step."""
        return len(self.A)

    def advance(
        self, motion: Motion, t: Value, x: Any, dt: Value, memory: Any = (), estimate: bool = False
    ) -> Step:
        """Exponentials of the stages, then those of the step."""
        slopes: list[Any] = []
        reached: dict[Exponentials, Any] = {(): x}  # stages may start with the same exponentials
        for stage in self.A:
            c = sum(map(sum, stage))
            slopes.append(motion.field(t + c * dt, _reach(motion, reached, stage, slopes, dt)))
        return Step(_reach(motion, reached, self.b, slopes, dt))


def crouch_grossman(
    name: str, order: int, A: Sequence[Sequence[float]], b: Sequence[float]
) -> CommutatorFree:
    """Crouch–Grossman method of a tableau: one exponential for each slope.

    Parameters
    ----------
    order : int
        Order on any group; from 3 on it takes more than the classical order conditions.
    A : sequence of rows
        Row i weights the slopes before stage i.
    """
    return CommutatorFree(name, order, tuple(map(_single, A)), _single(b))


def _single(weights: Sequence[float]) -> Exponentials:
    return tuple((0.0,) * j + (float(w),) for j, w in enumerate(weights) if w)


def _exponentials(rows: Sequence[Sequence[float]]) -> Exponentials:
    return tuple(tuple(map(float, row)) for row in rows)


def _reach(
    motion: Motion, reached: dict[Exponentials, Any], rows: Exponentials, slopes: list, dt: Value
) -> Any:
    if rows not in reached:
        start = _reach(motion, reached, rows[:-1], slopes, dt)
        reached[rows] = motion.plus(start, combine(rows[-1], slopes, dt))
    return reached[rows]

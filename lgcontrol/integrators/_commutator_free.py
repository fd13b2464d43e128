"""Commutator-free methods: products of exponentials of combined slopes, without brackets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..codegen import Value
from ._method import Method, combine
from ._motion import Motion
from ._problem import Step

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
    name : str
    order : int
        Order on any group; from 3 on it takes more than the classical order conditions.
    A : sequence of rows
        Row i weights the slopes before stage i.
    b : sequence of float
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

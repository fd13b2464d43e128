"""Compositions: a step made of steps of a symmetric method, of a higher order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ._method import Method
from ._momentum_methods import VARIATIONAL
from ._motion import Motion
from ._problem import Step, nan_as_infinite


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

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Steps of the method times its stages."""
        return len(self.parts) * self.method.stages

    @property
    def needs_structure(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.needs_structure

    @property
    def needs_lagrangian(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.needs_lagrangian

    @property
    def keeps_constraints(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.keeps_constraints

    @property
    def solves(self) -> bool:  # type: ignore[override]
        """As the method."""
        return self.method.solves

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


# Suzuki 1990: five parts, whose error is a tenth of that of Yoshida's three at the same cost.
_PART = 1 / (4 - 4 ** (1 / 3))
VARIATIONAL4 = Composition(
    "variational4", VARIATIONAL, (_PART, _PART, 1 - 4 * _PART, _PART, _PART), 4
)

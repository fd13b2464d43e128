"""AboutAxis: what groups about an axis share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

from ..codegen import Value
from ._axis import Z_AXIS, Axis, constant, twist_matrix, unit_axis
from ._base import LieGroup


class AboutAxis(LieGroup):
    """Groups about an axis: what they share is a unit axis, others like them, a name.

    Their matrices are those of SE(3) unless they have smaller ones.
    """

    axis: Axis

    def __post_init__(self) -> None:
        object.__setattr__(self, "axis", unit_axis(self.axis))

    def about(self, axis: Any) -> Self:
        """The same group about another axis, or in the plane normal to it, shape (3,)."""
        given: Any = self
        return replace(given, axis=axis)

    @property
    def _stem(self) -> str:
        """Name of the group about z."""
        return type(self).__name__.removesuffix("Group")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Name, with the axis unless it is z."""
        numbers = ", ".join(f"{entry:.6g}" for entry in self.axis)
        return self._stem if self.axis == Z_AXIS else f"{self._stem}.about(({numbers}))"

    def _hat(self, d: Value) -> Value:
        return twist_matrix(constant(self.selection) @ d)

    def _matrix(self, X: Value) -> Value:
        return self._homogeneous(X)

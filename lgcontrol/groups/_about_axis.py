"""AboutAxis: what groups about an axis share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

from ..codegen import Value
from ._axis import Z_AXIS, Axis, constant, twist_matrix, unit_axis
from ._base import LieGroup

# Names along and about an axis that has no letter.
ALONG = {"z": "d", "rz": "r"}


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

    def _own(self, names: tuple[str, ...], oblique: Mapping[str, str] | None = None) -> Any:
        """Names about z as they are about this axis: about x, the letters x, y, z are y, z, x.

        Parameters
        ----------
        names : tuple of str
        oblique : mapping of str to str, optional
            Names about axes that have no letter; those about z, in the group's own frame, if left
            out.
        """
        if 1.0 not in self.axis:
            return tuple((oblique or {}).get(name, name) for name in names)
        turn = self.axis.index(1.0) - 2
        letters = {a: "xyz"[(k + turn) % 3] for k, a in enumerate("xyz")}
        letters |= {f"r{a}": f"r{b}" for a, b in letters.items()}
        return tuple(letters.get(name, name) for name in names)

    def _hat(self, d: Value) -> Value:
        return twist_matrix(constant(self.selection) @ d)

    def _matrix(self, X: Value) -> Value:
        return self._homogeneous(X)

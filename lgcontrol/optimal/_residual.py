"""Residual: a function of state and input that an optimal control problem makes small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen import ModelFunction
from ..groups import LieGroup
from ._weights import check_definite, square


def column_of(label: str, function: Any, symbol: type, values: tuple[Any, ...]) -> Any:
    """What a function of (t, x, u, p) returns for symbols; what is wrong with it says its label."""
    try:
        value = function(*values)
    except Exception as error:
        sizes = ", ".join(
            f"{name} of length {value.shape[0]}"
            for name, value in zip(("x", "u", "p"), values[1:], strict=True)
        )
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"{label}, called with CasADi columns t, {sizes}: {error}") from error
    try:
        return symbol(value)
    except NotImplementedError:
        raise TypeError(f"{label} must return a CasADi column ({symbol.__name__})") from None


@dataclass(frozen=True, eq=False)
class Residual:
    """A term ``½ r(t, x, u, p)ᵀ W r(t, x, u, p)`` of the cost.

    Parameters
    ----------
    function : callable
        ``(t, x, u, p) → column`` on CasADi columns, smooth; u holds all inputs of the system, p
        the parameters of the system and then those of the problem. A casadi.Function or a
        ModelFunction will do, so that mechanics can supply the pose of a frame.
    weight : float or array_like
        W along the horizon, per s: a number, a diagonal or a matrix.
    terminal : float or array_like, optional
        W at the end of the horizon, where u is the reference's; nothing if left out.
    name : str
        What messages call it.
    group : LieGroup, optional
        Where the residual is ``minus(…)`` of two elements of a group, that group: runs then show
        it as the error of a task, with the group's units.

    Examples
    --------
    >>> height = Residual(lambda t, x, u, p: x[2] - 1.0, weight=10.0, name="height")
    >>> height.weight
    10.0
    """

    function: Callable[..., Any]
    weight: Any = 1.0
    terminal: Any = None
    name: str = "residual"
    group: LieGroup | None = None

    def expression(self, system_symbol: type, t: Any, x: Any, u: Any, p: Any) -> Any:
        """Column of the residual for symbols."""
        function = (
            self.function.function if isinstance(self.function, ModelFunction) else self.function
        )
        return column_of(f"residual {self.name!r}", function, system_symbol, (t, x, u, p))

    def weight_matrix(self, size: int, *, at_end: bool) -> np.ndarray | None:
        """W for a residual of the given length; None where it does not count."""
        value = self.terminal if at_end else self.weight
        if value is None:
            return None
        label = f"weight of residual {self.name!r}"
        matrix = check_definite(label, square(label, value, size), strict=False)
        return matrix if matrix.any() else None

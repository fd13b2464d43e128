"""Bound: limits on parts of the state, on inputs or on functions of them, hard or soft."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, check_shape, unknown_name
from ..groups import Product
from ..systems import System
from ._residual import column_of

Where = Literal["path", "terminal", "both"]


@dataclass(frozen=True, eq=False)
class Bound:
    """``lower ≤ g ≤ upper`` along the horizon.

    Parameters
    ----------
    of : str or callable
        What is bounded: a block of the state (its coordinates), one coordinate (``"pose.z"``),
        one tangent coordinate (``"pose.rx"``: that component of minus(x, x_ref)), an input, or a
        smooth function ``(t, x, u, p) → column``.
    lower, upper : float or array_like
        Limits, infinite if left out.
    soft : float, optional
        Weight w of the penalty ``w (s + s²/2)``, per s, on the excess s over the limits. Without
        it the bound is hard: kept wherever the dynamics allow.
    at : {"both", "path", "terminal"}
        Where it holds. The given start is never bounded; what depends on inputs has no end value.
    name : str, optional
        What messages call it.

    Examples
    --------
    >>> Bound("twist", lower=-2.0, upper=2.0, soft=100.0).label
    'twist'
    """

    of: str | Callable[..., Any]
    lower: Any = -np.inf
    upper: Any = np.inf
    soft: float | None = None
    at: Where = "both"
    name: str | None = None

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            try:
                np.asarray(getattr(self, name), dtype=np.float64)
            except (TypeError, ValueError):
                raise TypeError(
                    f"bound {self.label!r}: {name} must be a number or a list of numbers, not "
                    f"{getattr(self, name)!r}"
                ) from None
        low, high = (np.asarray(v, dtype=np.float64) for v in (self.lower, self.upper))
        if low.shape == high.shape or not (low.shape and high.shape):  # else sizes are told later
            if not (low <= high).all():
                raise ValueError(
                    f"bound {self.label!r}: lower must not exceed upper, got {self.lower} and "
                    f"{self.upper}"
                )
        if self.at not in get_args(Where):
            raise ValueError(unknown_name("place of a bound", self.at, get_args(Where)))
        if self.soft is not None and not (np.isfinite(self.soft) and self.soft > 0):
            raise ValueError(
                f"bound {self.label!r}: soft must be a positive weight, not {self.soft}"
            )

    @property
    def label(self) -> str:
        """Name for messages."""
        if self.name is not None:
            return self.name
        return self.of if isinstance(self.of, str) else getattr(self.of, "__name__", "bound")


@dataclass(frozen=True, eq=False)
class BoundRows:
    """All bounds of a problem as rows of one column g(t, x, u, p, x_ref).

    Attributes
    ----------
    names : tuple of str
    lower, upper : ndarray, shape (rows,)
    soft : ndarray, shape (rows,)
        Penalty weights, infinite for hard bounds.
    active : ndarray of bool, shape (N + 1, rows)
        Where each row holds.
    """

    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    soft: np.ndarray
    active: np.ndarray

    def excess(self, values: np.ndarray) -> np.ndarray:
        """How far values (N + 1, rows) are outside of the limits; zero where a row is idle."""
        over = np.maximum(np.maximum(values - self.upper, self.lower - values), 0.0)
        return np.where(self.active, over, 0.0)


def build_rows(
    system: System, bounds: Sequence[Bound], horizon: int, symbols: Sequence[Any]
) -> tuple[Any, BoundRows]:
    """Column g for symbols (t, x, u, p, x_ref), and what the rows mean."""
    columns, names, lower, upper, soft, active = [], [], [], [], [], []
    t, x, u, p, x_ref = symbols
    for bound in bounds:
        column, labels = _expression(system, bound, t, x, u, p, x_ref)
        size = column.shape[0]
        low = _limit(f"lower of bound {bound.label!r}", bound.lower, size)
        high = _limit(f"upper of bound {bound.label!r}", bound.upper, size)
        if not (low <= high).all():
            k = int(np.flatnonzero(~(low <= high))[0])
            raise ValueError(
                f"bound {labels[k]!r}: lower must not exceed upper, got {low[k]:g} and {high[k]:g}"
            )
        needs_input = ca.which_depends(column, u, 1, True) if size else []
        for row in range(size):
            if np.isinf(low[row]) and np.isinf(high[row]):
                continue
            where = np.zeros(horizon + 1, dtype=bool)
            if needs_input[row]:
                where[:-1] = bound.at != "terminal"
            else:
                where[1:-1] = bound.at != "terminal"
                where[-1] = bound.at != "path"
            columns.append(column[row])
            names.append(labels[row])
            lower.append(low[row])
            upper.append(high[row])
            soft.append(np.inf if bound.soft is None else bound.soft)
            active.append(where)
    rows = BoundRows(
        tuple(names),
        np.array(lower),
        np.array(upper),
        np.array(soft),
        np.array(active, dtype=bool).reshape(-1, horizon + 1).T,
    )
    return system.symbol(ca.vertcat(*columns)).reshape((len(columns), 1)), rows


def _limit(label: str, value: Any, size: int) -> np.ndarray:
    """One limit a row; NaN is left to the comparison of the two limits, which it fails."""
    if np.ndim(value) == 0:
        return np.full(size, float(value))
    return check_shape(label, value, (size,), finite=False)


def _expression(
    system: System, bound: Bound, t: Any, x: Any, u: Any, p: Any, x_ref: Any
) -> tuple[Any, tuple[str, ...]]:
    state = system.state
    if not isinstance(bound.of, str):
        function = bound.of.function if isinstance(bound.of, ModelFunction) else bound.of
        column = column_of(f"bound {bound.label!r}", function, system.symbol, (t, x, u, p))
        size = column.shape[0]
        return column, tuple(
            f"{bound.label}[{i}]" if size > 1 else bound.label for i in range(size)
        )
    if isinstance(state, Product) and bound.of in state.blocks:
        part = state.coordinate_slice(bound.of)
        return x[part], state.coordinate_names[part]
    if bound.of in state.coordinate_names:
        return x[state.coordinate_names.index(bound.of)], (bound.label,)
    if bound.of in state.tangent_names:
        return state.minus(x, x_ref)[state.tangent_names.index(bound.of)], (bound.label,)
    if bound.of in system.input_names:
        return u[system.input_names.index(bound.of)], (bound.label,)
    blocks = tuple(state.blocks) if isinstance(state, Product) else ()
    valid = dict.fromkeys(
        (*blocks, *state.coordinate_names, *state.tangent_names, *system.input_names)
    )
    raise ValueError(unknown_name("bounded quantity", bound.of, valid))

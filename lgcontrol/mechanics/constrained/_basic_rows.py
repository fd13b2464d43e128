"""Rows of joints that are all basic constraints, with what the time does to them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction
from ._basic import BasicConstraint, Direction
from ._joints import MechanismJoint


class BasicRows:
    """Rows DP1, DP2, D and CD of joints, in their order.

    Raises
    ------
    ValueError
        If a joint has other rows.
    """

    def __init__(self, joints: Iterable[MechanismJoint]) -> None:
        self.rows: list[BasicConstraint] = []
        self.row_names: list[str] = []
        for joint in joints:
            for row in joint.rows:
                if not isinstance(row, BasicConstraint):
                    raise ValueError(
                        f"joint {joint.name!r}: closed forms exist for DP1, DP2, D and CD only, "
                        f"not for {row.row!r}; take system(), which differentiates any equation"
                    )
                self.rows.append(row)
                self.row_names.append(f"{joint.name}.{row.row}")
        moving = {id(v): v for row in self.rows for v in (row.u, row.w) if _moves(v)}
        self._moving: list[Any] = list(moving.values())
        self._last: tuple[float, np.ndarray, dict[int, np.ndarray]] | None = None

    @property
    def is_driven(self) -> bool:
        """Whether the time appears in a row."""
        return self._still is None

    def drives(self, t: float) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """``f, ḟ, f̈`` by row, shape (rows, 3), and ``a, ȧ, ä`` as columns by moving direction."""
        if self._still is not None:
            return self._still, {}
        last = self._last
        if last is None or last[0] != t:  # iterations of a step ask for one time again and again
            made, n = self._drives(np.array([t])), len(self.rows)
            moved = {id(v): made[n + 3 * k : n + 3 * k + 3] for k, v in enumerate(self._moving)}
            self._last = last = (t, made[:n], moved)
        return last[1:]

    @cached_property
    def _drives(self) -> ModelFunction:
        """``t → f, ḟ, f̈`` of all rows, and ``a, ȧ, ä`` of directions that move."""
        t = ca.SX.sym("t")
        values = [row.f(t) if callable(row.f) else row.f for row in self.rows]
        columns = ca.SX(ca.vertcat(*values, *(v.vector(t) for v in self._moving)))
        rate = ca.jacobian(columns, t)
        found = ca.horzcat(columns, rate, ca.jacobian(rate, t))
        return ModelFunction(ca.Function("drives", [t], [found], ["t"], ["drives"]))

    @cached_property
    def _still(self) -> np.ndarray | None:
        """``f, ḟ, f̈`` of all rows where nothing depends on the time, None otherwise."""
        if self._moving or any(callable(row.f) for row in self.rows):
            return None
        f = np.zeros((len(self.rows), 3))
        f[:, 0] = [row.f for row in self.rows]  # type: ignore[misc]
        return f


def _moves(v: Any) -> bool:
    return isinstance(v, Direction) and callable(v.vector)


def refuse_other_forces(mechanism: Any) -> None:
    """Say what acts on a mechanism besides weight and joints, where closed forms know no more."""
    acting = [b.name for b in mechanism.bodies.values() if b.forces] + [
        *mechanism.motors,
        *mechanism.forces,
    ]
    if acting:
        raise ValueError(
            f"{mechanism.name}: closed forms know weight and joints alone, not what else acts "
            f"({', '.join(acting)}); take system(), which does"
        )

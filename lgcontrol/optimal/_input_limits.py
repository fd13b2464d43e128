"""InputLimits: what controls may be all along a plan, for values of the parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..systems import System
from ._bounds import ROUNDING, Bound, holds_throughout, input_of
from ._outcome import Violation

# Limits that are closer, as a share of their size, are taken apart that far: a barrier divides by
# distances.
LEAST_WIDTH = 1e-6


class ControlBox(NamedTuple):
    """Limits (m,) of the controls of one solve, a little apart even where they are to be the same.

    `names` says what sets each: a bound by its label, or the system, by the input's name.
    `contradictions` says what the value between limits that leave nothing exceeds.
    """

    lower: np.ndarray
    upper: np.ndarray
    names: tuple[tuple[str, str], ...]
    contradictions: tuple[Violation, ...] = ()

    def inside(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """Limits that share of their range, or that far, inside of these."""
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        low, high = (np.where(both, limit, 0.0) for limit in (self.lower, self.upper))
        apart = np.where(both, share * high - share * low, share)  # ranges may overflow
        return self.lower + apart, self.upper - apart

    def spent(self, v: np.ndarray, share: float) -> list[str]:
        """Names of the limits that controls (N, m) are at, to a share of their range."""
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        inner = self.inside(share)
        is_at = np.array([v <= inner[0], v >= inner[1]]) & both
        places = np.argwhere(is_at.any(axis=1).T).tolist()
        return list(dict.fromkeys(self.names[i][side] for i, side in places))


class InputLimits:
    """Hard limits of controls, of the system and of bounds, that are the same at all times.

    Of several the tightest counts. Parameters may bring a lower limit above an upper one. Both are
    the value between them then, or the next one that the system allows. Limits of the last
    parameters stay: loops ask in every call.
    """

    def __init__(
        self, system: System, bounds: Sequence[Bound], horizon: int, parameters: Sequence[str]
    ) -> None:
        self.controls = system.input_index("control")
        self.lower, self.upper = (limit[self.controls] for limit in system.input_bounds)
        self.names = [system.input_names[i] for i in self.controls]
        self.sides: list[tuple[int, int, float | str, str]] = []  # control, side, limit, label
        self._parameters = parameters
        self._last: tuple[bytes, ControlBox, ControlBox] | None = None
        for bound in bounds:
            if holds_throughout(system, bound, horizon):
                i = self.controls.tolist().index(input_of(system, bound))
                for side, limit in enumerate((bound.lower, bound.upper)):
                    if isinstance(limit, str):
                        self.sides.append((i, side, limit, bound.label))
                    elif np.isfinite(limit).all():
                        self.sides.append((i, side, float(np.ravel(limit)[0]), bound.label))

    @cached_property
    def is_limited(self) -> bool:
        """Whether any control has a limit."""
        return bool(self.sides) or bool(np.isfinite([self.lower, self.upper]).any())

    def exactly(self, p: np.ndarray) -> ControlBox:
        """The limits for values of the parameters, none apart from the other."""
        return self._of(p)[1]

    def at(self, p: np.ndarray) -> ControlBox:
        """The same, a little apart, as solvers need them."""
        return self._of(p)[2]

    def kept(self, u: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Controls (…, m) within their limits."""
        box = self._of(p)[1]
        return np.minimum(np.maximum(u, box.lower), box.upper)

    def _of(self, p: np.ndarray) -> tuple[bytes, ControlBox, ControlBox]:
        """Values of the parameters, and limits for them."""
        key, last = p.tobytes(), self._last
        if last is None or last[0] != key:
            box = self._box(p)
            self._last = last = key, box, _apart(box)
        return last

    def _box(self, p: np.ndarray) -> ControlBox:
        limits = np.array([self.lower, self.upper], dtype=np.float64)
        names = [[name, name] for name in self.names]
        for i, side, limit, label in self.sides:
            value = p[self._parameters.index(limit)] if isinstance(limit, str) else limit
            if value > limits[0, i] if side == 0 else value < limits[1, i]:
                limits[side, i], names[i][side] = value, label
        found: list[Violation] = []
        for i in np.flatnonzero(limits[0] > limits[1]).tolist():
            low, high = limits[:, i].tolist()
            between = min(max((low + high) / 2, self.lower[i]), self.upper[i])
            limits[:, i] = between
            if low - high > ROUNDING * max(1.0, abs(low), abs(high)):
                sides = (low - between, "lower"), (between - high, "upper")
                found += [
                    Violation(name, 0.0, 0, off, side)
                    for name, (off, side) in zip(names[i], sides, strict=True)
                    if off > 0
                ]
        pairs = tuple((low, high) for low, high in names)
        return ControlBox(limits[0], limits[1], pairs, tuple(found))


def _apart(box: ControlBox) -> ControlBox:
    """Limits that are no closer than a barrier needs."""
    is_finite = np.isfinite([box.lower, box.upper]).all(axis=0)
    low, high = np.where(is_finite, box[:2], [[-1.0], [1.0]])
    middle = (low + high) / 2
    need = LEAST_WIDTH * np.maximum(1.0, np.abs(middle)) / 2
    narrow = high - low < 2 * need
    if not narrow.any():
        return box
    return box._replace(
        lower=np.where(narrow, middle - need, box.lower),
        upper=np.where(narrow, middle + need, box.upper),
    )

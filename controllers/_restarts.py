"""Restarts: when going on from a plan no longer pays, and which of several starts is best."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal import OptimalSolution, Settings
from lgcontrol.optimal._internal import ACCEPTABLE_RESIDUAL


class Usual(NamedTuple):
    """Recent cost of warm starts, so that a jump of reference, parameters or state shows.

    A jump is a rise of that cost over the recent one by a factor. Compared with converged plans
    instead, goals that come into view look like jumps in every call.

    Attributes
    ----------
    lately, most : float
        Largest cost of a warm start, older ones counting less; and of all.
    p : ndarray
        Parameters of the last.
    reference : object
        Of the last, as given.
    """

    lately: float = 0.0
    most: float = 0.0
    p: np.ndarray = np.zeros(0)
    reference: Any = None

    def jump(
        self, cost: float, fading: float, p: np.ndarray, reference: Any, settings: Settings
    ) -> str:
        """Name of what jumped, empty if nothing did."""
        recent = max(fading * self.lately, settings.jump_noise * self.most)
        if cost <= settings.jump * recent:
            return ""
        if not is_same(reference, self.reference):
            return "reference"
        return "state" if np.array_equal(self.p, p) else "parameters"

    def later(self, cost: float, fading: float, p: np.ndarray, reference: Any) -> Usual:
        """With another plan."""
        return Usual(max(cost, fading * self.lately), max(cost, self.most), p, reference)


def fading_of(last: OptimalSolution, found: OptimalSolution, settings: Settings) -> float:
    """Factor by which costs count less from one plan to a later one; never more than one."""
    t, before = found.t, last.t
    return settings.jump_fading ** -max(0.0, float((t[0] - before[0]) / (t[-1] - t[0])))


def rank(plan: OptimalSolution) -> tuple[float, float]:
    """What plans are compared by: what they exceed hard bounds by, then cost."""
    if not np.isfinite(plan.cost):
        return np.inf, np.inf
    off = sum(entry.amount for entry in plan.violations if entry.amount > ACCEPTABLE_RESIDUAL)
    return off, plan.cost


def is_better(one: OptimalSolution, other: OptimalSolution) -> bool:
    """Whether a plan exceeds hard bounds by less than another, or as little and costs less."""
    (off, cost), (its_off, its_cost) = rank(one), rank(other)
    return off < its_off if abs(off - its_off) > ACCEPTABLE_RESIDUAL else cost < its_cost


def is_same(one: Any, other: Any) -> bool:
    """Whether two references are the same as given: one object, or equal states and inputs."""
    if one is other or callable(one) or callable(other):
        return one is other
    return all(
        np.array_equal(getattr(one, name, own), getattr(other, name, its))
        for name, own, its in (("x", one, other), ("u", 0, 0))
    )

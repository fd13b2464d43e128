"""Restarts: when going on from a plan no longer pays, and which of several starts is best."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal import ACCEPTABLE_RESIDUAL, OptimalSolution

# A plan begins anew where going on from the last one costs so many times what going on cost
# lately: the largest, which counts less by this factor a horizon. Compared with finished plans
# instead, goals that come into view look like jumps in every call. What is below a share of the
# dearest is noise.
JUMP, FADING, NOISE = 2.0, 7.4, 1e-2
# So many steps more, as many as solvers take by themselves where they began far off, in the call of
# a jump.
MORE = 4


class Usual(NamedTuple):
    """What going on from plans cost lately, so that a jump of reference or state shows.

    Attributes
    ----------
    lately, most : float
        Largest cost of going on from a plan, those of long ago counting less; and of all.
    p : ndarray
        Parameters of the last.
    reference : object
        Of the last, as given.
    """

    lately: float = 0.0
    most: float = 0.0
    p: np.ndarray = np.zeros(0)
    reference: Any = None

    def jump(self, cost: float, fading: float, p: np.ndarray, reference: Any) -> str:
        """What jumped where going on costs far more than it did lately, empty where it does not."""
        if cost <= JUMP * max(fading * self.lately, NOISE * self.most):
            return ""
        if not is_same(reference, self.reference):
            return "reference"
        return "state" if np.array_equal(self.p, p) else "parameters"

    def later(self, cost: float, fading: float, p: np.ndarray, reference: Any) -> Usual:
        """With another plan."""
        return Usual(max(cost, fading * self.lately), max(cost, self.most), p, reference)


def fading_of(last: OptimalSolution, found: OptimalSolution) -> float:
    """Factor by which costs count less from one plan to a later one; never more than one."""
    t, before = found.t, last.t
    return FADING ** -max(0.0, float((t[0] - before[0]) / (t[-1] - t[0])))


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

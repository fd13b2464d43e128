"""Loop: what an MPC goes on with from call to call, as one value; limits of its answers."""

from __future__ import annotations

from dataclasses import dataclass
from math import ulp
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.optimal import OptimalControlProblem, OptimalSolution

from ._lqr import EARLY
from ._mpc_delay import Sent
from ._mpc_info import MPCInfo
from ._mpc_plan import PlanState, is_same
from ._steady_disturbance import DisturbanceEstimate


@dataclass(frozen=True, eq=False, slots=True)
class Preview:
    """A plan from an expected `state` for the call at t, which acts from `start` on, s.

    `K` (m, n) is the derivative of its first controls by the error of the state.
    """

    t: float
    start: float
    state: np.ndarray
    plan: OptimalSolution
    K: np.ndarray
    reference: Any
    p: np.ndarray
    info: MPCInfo

    def fits(self, t: float, reference: Any, p: np.ndarray) -> bool:
        """Whether a call is the one that was expected."""
        is_then = abs(t - self.t) <= max(EARLY, 4 * ulp(t)) and np.array_equal(p, self.p)
        return is_then and is_same(reference, self.reference)

    def answer(self, problem: OptimalControlProblem, state: np.ndarray) -> np.ndarray:
        """Controls for the state that came."""
        first = self.plan.u[0, problem.input_limits.controls]
        return first + self.K @ problem.system.error(state, self.state)


class ControlLimits(NamedTuple):
    """Hard limits of the controls for some parameters."""

    p: np.ndarray | None = None
    lower: np.ndarray = np.zeros(0)
    upper: np.ndarray = np.zeros(0)

    def at(self, problem: OptimalControlProblem, p: np.ndarray) -> ControlLimits:
        """Limits for parameters as they are now."""
        return self if p is self.p else ControlLimits(p, *problem.input_limits.exactly(p)[:2])

    def applied(self, u: np.ndarray) -> np.ndarray:
        """Controls within their limits."""
        return np.minimum(np.maximum(u, self.lower), self.upper)


class Loop(NamedTuple):
    """What changes from call to call, besides what all controllers remember.

    `sent` are answers with the times of their effect, `seen` the last time and state, `clock` the
    time of the last call, s. For the parameters in `checked` there are enough substeps.
    """

    disturbance: DisturbanceEstimate
    plan: PlanState = PlanState()
    sent: Sent = ()
    seen: tuple[float, np.ndarray] | None = None
    clock: float | None = None
    preview: Preview | None = None
    checked: np.ndarray = np.zeros(0)
    limits: ControlLimits = ControlLimits()

    def at(self, t: float, horizon: float) -> Loop:
        """At the time of a call; after a jump of the clock only the last answer counts."""
        if self.clock is None or follows(self.clock, t, horizon):
            return self._replace(clock=t)
        sent = tuple((t, u) for _, u in self.sent[-1:])  # as one that acts from now on
        return self._replace(clock=t, sent=sent, seen=None, preview=None)


def follows(before: float, t: float, horizon: float) -> bool:
    """Whether a time can follow another: clocks that go back or on by a horizon have jumped."""
    return -EARLY <= t - before <= horizon + EARLY

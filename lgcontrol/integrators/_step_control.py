"""Step-size control: how long the next step may be, and when the method is the wrong one."""

from __future__ import annotations

from math import isfinite

import numpy as np

from ._methods import METHODS

SAFETY = 0.9
SHRINK, GROW = 0.2, 10.0  # limits on the change of the step
# Gustafsson's exponents of the error and of the one before, next to 1 / order: smooth sequences of
# steps with few rejections, at 0.7 of the longest step that is allowed.
INTEGRAL, PROPORTIONAL = 0.7, 0.4
MIN_ROUNDINGS = 10  # a step is at least this many spacings of the time


class StepControl:
    """Factors from one step to the next, of errors next to what is allowed.

    Attributes
    ----------
    EXPLICIT, STIFF : Method
        What steps are made with, and where the decay of fast modes keeps those short.
    LOOK_EVERY, LOOK_RARELY : int
        Steps between looks at the fastest decay, at first and at most; rejections are looked at,
        too.
    before : float
        Error of the step before.

    References
    ----------
    Hairer, Wanner: Solving Ordinary Differential Equations II, section IV.2, eq. (2.43c).

    Examples
    --------
    >>> control = StepControl()
    >>> control.rejected(32.0, order=5), control.accepted(0.0, order=5)
    (0.45, 10.0)
    """

    EXPLICIT, STIFF = METHODS["dormand_prince5"], METHODS["ros34pw2"]
    LOOK_EVERY, LOOK_RARELY = 25, 10**9

    def __init__(self) -> None:
        self.before = 1.0

    def accepted(self, error: float, order: int) -> float:
        """Factor to the next step after one with an error up to 1."""
        factor = SAFETY * max(error, 1e-12) ** (-INTEGRAL / order)
        factor *= self.before ** (PROPORTIONAL / order)
        self.before = max(error, 1e-4)
        return min(GROW, max(SHRINK, factor))

    def rejected(self, error: float, order: int) -> float:
        """Factor to the next try after a step that was too long, or is not finite."""
        self.before = 1.0
        if not (isfinite(error) and error > 1.0):
            return SHRINK
        return max(SHRINK, SAFETY * error ** (-1.0 / order))

    @staticmethod
    def shortest(t: float, end: float) -> float:
        """Length in s below which rounding of the time is all there is."""
        return float(MIN_ROUNDINGS * np.spacing(max(abs(t), abs(end))))

"""Criteria that several designs share: errors at the end or over a while, and failed calls."""

from __future__ import annotations

import numpy as np

from lgcontrol.simulation import CallStatus, Criterion, SimulationResult

POSITION, ATTITUDE = slice(0, 3), slice(3, 6)  # of the tangent vector of a pose on SE3


def error_at_end(
    name: str, block: str, part: slice, unit: str, limit: float, *, over: float = 0.25
) -> Criterion:
    """Length of some components of a block's error, averaged over the last moments of a run.

    Parameters
    ----------
    name : str
    block : str
        Of the state.
    part : slice
        Components of its tangent vector.
    unit : str
    limit : float
    over : float
        How long the last moments are, in s.
    """

    def value(run: SimulationResult) -> float:
        last = run.t >= run.t[-1] - over
        return float(_length(run, block, part)[last].mean())

    return Criterion(f"{name}, mean of the last {over:g} s", value, limit, unit)


def largest_error(
    name: str, block: str, part: slice, unit: str, limit: float, *, since: float
) -> Criterion:
    """Largest length of some components of a block's error from a time on.

    Parameters
    ----------
    name, block, part, unit, limit
        See `error_at_end`.
    since : float
        In s; in shorter runs the end counts.
    """

    def value(run: SimulationResult) -> float:
        return float(_length(run, block, part)[run.t >= min(since, run.t[-1])].max())

    return Criterion(name, value, limit, unit)


def failed_calls() -> Criterion:
    """Number of calls from which the controller had no answer of its own."""

    def value(run: SimulationResult) -> float:
        return float(np.isin(run.control["status"], (CallStatus.UNSOLVED, CallStatus.HELD)).sum())

    return Criterion("controller calls without an answer", value, 0.0)


def _length(run: SimulationResult, block: str, part: slice) -> np.ndarray:
    return np.linalg.norm(run.block_error(block)[:, part], axis=1)

"""Criteria that several designs share, and the measures that they are made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgcontrol.codegen import ModelFunction
from lgcontrol.groups import SE3
from lgcontrol.simulation import CallStatus, Criterion, SimulationResult

POSITION, ATTITUDE = slice(0, 3), slice(3, 6)  # of the tangent vector of a pose on SE3


@dataclass(frozen=True)
class BlockError:
    """Length of some components of a block's error."""

    block: str  # of the state
    part: slice  # components of its tangent vector

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        return np.linalg.norm(run.block_error(self.block)[:, self.part], axis=1)


@dataclass(frozen=True, eq=False)
class FrameError:
    """Length of some components of the error of a frame's pose."""

    place: ModelFunction  # pose of the frame, a function of the configuration
    wanted: np.ndarray  # (7,)
    part: slice  # components of the tangent vector

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        error = SE3.minus(self.place(run.x[:, : self.place.function.numel_in(0)]), self.wanted)
        return np.linalg.norm(error[:, self.part], axis=1)


@dataclass(frozen=True)
class Known:
    """A number that the plan decides and no run changes."""

    value: float

    def __call__(self, run: SimulationResult) -> float:
        """The number."""
        return self.value


def error_at_end(
    name: str, block: str, part: slice, unit: str, limit: float, *, over: float = 0.25
) -> Criterion:
    """Mean length of some components of a block's error over the last moments of a run, in s."""
    return Criterion(
        f"{name}, mean of the last {over:g} s",
        BlockError(block, part),
        limit,
        unit,
        take="mean",
        last=over,
    )


def largest_error(
    name: str, block: str, part: slice, unit: str, limit: float, *, since: float
) -> Criterion:
    """Largest length of some components of a block's error from a time on [s]."""
    return Criterion(name, BlockError(block, part), limit, unit, since=since)


def failed_calls() -> Criterion:
    """Number of calls from which the controller had no answer of its own."""
    return Criterion("controller calls without an answer", unanswered_calls, 0.0)


def unanswered_calls(run: SimulationResult) -> float:
    """Calls with status "unsolved" or "held"."""
    status = run.control["status"]
    return float(((status == CallStatus.UNSOLVED) | (status == CallStatus.HELD)).sum())

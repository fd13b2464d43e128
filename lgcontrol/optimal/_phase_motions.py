"""Motions of phases in time, from nodes of their `FlatPhases` and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from ..systems import Trajectory
from ._flat_phases import FlatPhases
from ._phased_solution import PhasedSolution


def part_of(
    flat: FlatPhases, i: int, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> Trajectory:
    """Nodes of a phase; one that vanishes has its end alone."""
    first, last = flat.starts[i], flat.starts[i + 1]
    phase, before = flat.phases[i], flat.phases[i - 1] if i else None
    here = t[first : last + 1]
    states = x[first : last + 1, flat.own[i]].copy()
    if before is not None and before.jump is not None:
        end = ca.DM(x[first, flat.own[i - 1]])
        after = before.jumped(float(here[0]), end, ca.DM(p), phase.system.state)
        states[0] = np.asarray(ca.DM(after)).ravel()
    kept = np.append(np.diff(here) > 0, True)
    inputs = held(u[first:last][:, flat.used[i]], kept)
    return Trajectory(
        phase.system.state, here[kept], states[kept], inputs, inputs=phase.system.inputs
    )


def guess_of_phases(flat: FlatPhases, guess: Any, times: Sequence[float]) -> Any:
    """A guess as `problem` takes it."""
    if isinstance(guess, tuple):
        return tuple(guess_of_phases(flat, one, times) for one in guess)
    if isinstance(guess, PhasedSolution):
        return guess.solution
    if isinstance(guess, list) or (isinstance(guess, Trajectory) and len(flat.groups) > 1):
        return _joined(flat, _checked(flat, guess), times)
    if not isinstance(guess, Trajectory):
        return guess
    if len(guess) != flat.starts[-1] + 1:
        ends = np.concatenate([[0.0], np.cumsum(times)]) / (sum(times) or 1.0)
        shares = zip(ends[:-1], ends[1:], strict=True)
        return _joined(
            flat,
            [
                _sampled(guess, *share, phase.nodes, used)
                for phase, share, used in zip(flat.phases, shares, flat.used, strict=True)
            ],
            times,
        )
    u = guess.input_at_nodes[:-1]
    spans = zip(flat.starts[:-1], flat.starts[1:], strict=True)
    parts = [(guess.x[a : b + 1], u[a:b][:, k]) for (a, b), k in zip(spans, flat.used, strict=True)]
    return _joined(flat, parts, times)


def _checked(flat: FlatPhases, guess: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """States and inputs of a guess for each phase."""
    given = guess if isinstance(guess, list) else [guess]
    if len(given) != len(flat.phases):
        raise ValueError(
            f"the guess has {len(given)} trajectories for {len(flat.phases)} phases: a list "
            "has one for each"
        )
    return [
        (one.x, one.input_at_nodes[:-1])
        if len(one) == phase.steps + 1
        else _sampled(one, 0.0, 1.0, phase.nodes)
        for phase, one in zip(flat.phases, given, strict=True)
    ]


def _joined(
    flat: FlatPhases, parts: Sequence[tuple[np.ndarray, np.ndarray]], times: Sequence[float]
) -> Trajectory:
    """A guess for the whole: states wait where their phase begins, and stay where it ends."""
    count = int(flat.starts[-1])
    x = np.tile(flat.state(parts[0][0][0], times), (count + 1, 1))
    u = np.tile([entry.nominal for entry in flat.inputs], (count, 1))
    for i, (states, inputs) in enumerate(parts):
        first, last = flat.starts[i], flat.starts[i + 1]
        begun = i > 0 and flat.own[i] != flat.own[i - 1]
        x[first + begun : last + 1, flat.own[i]] = states[begun:]
        x[last + 1 :, flat.own[i]] = states[-1]
        u[first:last, flat.used[i]] = inputs
    return Trajectory(flat.problem.system.state, np.arange(count + 1), x, u)


def _sampled(
    guess: Trajectory, first: float, last: float, nodes: np.ndarray, used: Any = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """States and inputs of a guess at the nodes of a phase, which has a part of its duration."""
    t = guess.t[0] + guess.duration * (first + (last - first) * nodes)
    return guess(t).x, guess(t[:-1]).u[:, used]


def held(u: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Inputs of the steps whose first nodes are kept; the last one where none is."""
    held = u[kept[:-1]]
    return held if len(held) else u[-1:]

"""Motions of phases in time, from nodes of their `FlatPhases` and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from ...systems import Trajectory
from .._transcription import Nodes
from ._flat_phases import FlatPhases
from ._phased_solution import PhasedSolution


def nodes_of(
    flat: FlatPhases, i: int, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> Nodes:
    """Nodes of a phase for the controls of the flat problem, for those of all at times t.

    Of a phase that vanished its end.
    """
    first, last = flat.starts[i], flat.starts[i + 1]
    here = t[first : last + 1]
    states = x[first : last + 1, flat.own[i]].copy()
    if flat.begins_anew(i):
        given = ca.DM(x[first]), ca.DM(u[first]), ca.DM(p)
        states[0] = np.asarray(ca.DM(flat.after_jump(i, float(here[0]), *given))).ravel()
    kept = np.append(np.diff(here) > 0, True)
    inputs = flat.inputs_along(i, here, u)
    return Nodes(here[kept], states[kept], held(inputs, kept))


def guess_of_phases(flat: FlatPhases, guess: Any, times: Sequence[float]) -> Any:
    """A guess as `problem` takes it."""
    if isinstance(guess, tuple):
        return tuple(guess_of_phases(flat, one, times) for one in guess)
    if isinstance(guess, PhasedSolution):
        if _is_alike(flat, guess.problem._flat):
            return guess.solution
        if len(guess.parts) == len(flat.phases):  # those of the plan, where they may be
            own = zip(guess.durations.values(), flat.limits, strict=True)
            times = [min(max(time, low), high) for time, (low, high) in own]
        return _joined(flat, _checked(flat, [*guess.parts.values()]), times)
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
                _sampled(guess, *share, shape.phase.nodes, used)
                for shape, share, used in zip(flat.shapes, shares, _stated(flat), strict=True)
            ],
            times,
        )
    u = guess.input_at_nodes[:-1]
    spans = zip(flat.starts[:-1], flat.starts[1:], strict=True)
    parts = [
        (guess.x[a : b + 1], u[a:b][:, k]) for (a, b), k in zip(spans, _stated(flat), strict=True)
    ]
    return _joined(flat, parts, times)


def _is_alike(flat: FlatPhases, other: FlatPhases) -> bool:
    """Whether nodes of one are nodes of the other."""
    a, b = flat.problem.system, other.problem.system
    same = a.state == b.state and a.input_names == b.input_names
    return same and np.array_equal(flat.starts, other.starts)


def _checked(flat: FlatPhases, guess: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """States and inputs of a guess for each phase."""
    given = guess if isinstance(guess, list) else [guess]
    if len(given) != len(flat.phases):
        raise ValueError(
            f"the guess has {len(given)} trajectories for {len(flat.phases)} phases: a list "
            "has one for each"
        )
    return [
        (one.x, one.input_at_nodes[: None if one.hold == "first" else -1])
        if len(one) == phase.steps + 1
        else _sampled(one, 0.0, 1.0, phase.nodes)
        for phase, one in zip(flat.phases, given, strict=True)
    ]


def _joined(
    flat: FlatPhases, parts: Sequence[tuple[np.ndarray, np.ndarray]], times: Sequence[float]
) -> Trajectory:
    """A guess for the whole: states wait where their phase begins, and stay where it ends."""
    count = int(flat.starts[-1])
    parts = [
        shape.nodes(*part, time * shape.phase.shares)
        for shape, part, time in zip(flat.shapes, parts, times, strict=True)
    ]
    x = np.tile(flat.state(parts[0][0][0], times), (count + 1, 1))
    u = np.tile([entry.nominal for entry in flat.inputs], (count, 1))
    for i, (states, inputs) in enumerate(parts):
        first, last = flat.starts[i], flat.starts[i + 1]
        begun = i > 0 and flat.own[i] != flat.own[i - 1]
        x[first + begun : last + 1, flat.own[i]] = states[begun:]
        x[last + 1 :, flat.own[i]] = states[-1]
        names = flat.phases[i].system.input_names
        u[first:last, flat.used[i]] = inputs[:, [k for k, n in enumerate(names) if n in flat.index]]
        for k, name in enumerate(flat.begins[i]):
            u[first, flat.index[name]] = states[0, flat.shapes[i].view.nq + k]
    return Trajectory(flat.problem.system.state, np.arange(count + 1), x, u)


def _stated(flat: FlatPhases) -> list[list[int]]:
    """Which of the inputs of all phases, as they were stated, are those of each."""
    systems = [shape.phase.system for shape in flat.shapes]
    names = [*dict.fromkeys(name for system in systems for name in system.input_names)]
    return [[names.index(name) for name in system.input_names] for system in systems]


def _sampled(
    guess: Trajectory, first: float, last: float, nodes: np.ndarray, used: Any = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """States and inputs of a guess at the nodes of a phase, which has a part of its duration."""
    t = guess.t[0] + guess.duration * (first + (last - first) * nodes)
    return guess(t).x, guess(t if guess.hold == "first" else t[:-1]).u[:, used]


def held(u: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Inputs of the steps whose first nodes are kept; the last one where none is."""
    held = u[kept[:-1]]
    return held if len(held) else u[-1:]

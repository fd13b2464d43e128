"""States between those of a motion that has few, on the group."""

from __future__ import annotations

import numpy as np

from ..groups import LieGroup
from ..groups._internal import SO3Group
from ._look import moving_blocks

JUMP = 10.0  # times as long as the steps next to it is a step that is a jump
LEAST_JUMP = 1e-2  # of the longest step: less is rounding, or a motion that begins
ARC = 0.1  # rad, the longest that is drawn as a straight line
LEAST_STATES = 300  # of a motion that looks smooth


def smooth(group: LieGroup, x: np.ndarray) -> np.ndarray:
    """States with others between them on the group where they are few, shape (M, nq).

    Bodies that only turn, also if they are far apart. Over jumps there are none between.
    """
    return smooth_motion(group, np.arange(len(x), dtype=float), x)[1]


def smooth_motion(group: LieGroup, t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and states as of `smooth`, shapes (M,) and (M, nq)."""
    parts = -(-LEAST_STATES // len(x)) if len(x) > 1 else 1
    if len(x) > 1 and is_attitude(group):
        _, block, where = moving_blocks(group)[0]
        turns = np.linalg.norm(block.minus(x[1:, where], x[:-1, where]), axis=1)
        largest = turns.max(initial=0.0, where=np.isfinite(turns))  # runs may end in NaN
        parts = max(parts, int(np.ceil(largest / ARC)))
    if parts == 1:
        return t, x
    lengths = np.linalg.norm(group.minus(x[1:], x[:-1]), axis=1)
    share = np.arange(parts) / parts
    s = share * ~jumps(lengths)[:, np.newaxis]
    between = group.interpolate(x[:-1, np.newaxis], x[1:, np.newaxis], s)
    times = (t[:-1, np.newaxis] + np.diff(t)[:, np.newaxis] * share).ravel()
    return np.append(times, t[-1]), np.concatenate([between.reshape(-1, group.nq), x[-1:]])


def jumps(lengths: np.ndarray) -> np.ndarray:
    """Which steps of a motion are none but jumps: far longer than those before and after them."""
    if len(lengths) < 2:
        return np.zeros(len(lengths), dtype=bool)
    padded = np.concatenate([[0.0], lengths, [0.0]])
    beside = np.maximum(padded[:-2], padded[2:])
    return lengths > np.maximum(JUMP * beside, LEAST_JUMP * lengths.max())


def is_attitude(group: LieGroup) -> bool:
    """Whether the bodies of a state only turn."""
    blocks = [block for _, block, _ in moving_blocks(group)]
    return bool(blocks) and all(isinstance(block, SO3Group) for block in blocks)

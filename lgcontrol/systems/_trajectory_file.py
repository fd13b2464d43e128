"""Trajectories on disk, and the group of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..codegen import check_shape
from ..groups import LieGroup, describe_group, group_from_description
from ..io._archive import DAMAGE, LARGEST, damage_reason, read_archive, write_archive
from ._signals import Input
from ._trajectory import Trajectory

SCHEMA, VERSION = "lgcontrol.trajectory", 1
_TEXTS = ("name", "unit", "role")
_NUMBERS = ("lower", "upper", "nominal")


def save_trajectory(trajectory: Trajectory, path: Path) -> Path:
    """See `Trajectory.save`."""
    group, inputs = trajectory.group, trajectory.inputs
    numbers = [[getattr(entry, key) for key in _NUMBERS] for entry in inputs]
    arrays = {
        "t": trajectory.t,
        "x": trajectory.x,
        "u": trajectory.u,
        "inputs": np.array(numbers, dtype=np.float64).reshape(len(inputs), len(_NUMBERS)),
    }
    description = {
        "group": describe_group(group),
        "units": {"t": "s", "x": group.coordinate_units},
        "coordinate_names": group.coordinate_names,
        "inputs": [[getattr(entry, key) for key in _TEXTS] for entry in inputs],
    }
    return write_archive(path, SCHEMA, VERSION, arrays, description)


def load_trajectory(path: Path, group: LieGroup | None, largest: int = LARGEST) -> Trajectory:
    """See `Trajectory.load`."""
    path, arrays, description = read_archive(path, SCHEMA, VERSION, "saved trajectory", largest)
    if group is None:
        group = read_group(path, description.get("group"))
    try:
        return _from_plain(arrays, description, group)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: {damage_reason(error)}") from None


def read_group(path: Path, description: Any) -> LieGroup:
    """Group that a file describes; a group of the user's own has to be given."""
    try:
        return group_from_description(description)
    except DAMAGE:
        name = description.get("type") if isinstance(description, dict) else description
        raise ValueError(
            f"{path} has a state on {name}, a group of your own: give it to load(path, group=...)"
        ) from None


def _from_plain(arrays: dict[str, Any], description: dict[str, Any], group: LieGroup) -> Trajectory:
    texts = description["inputs"]
    numbers = check_shape("inputs", arrays["inputs"], (len(texts), len(_NUMBERS)), finite=False)
    inputs = tuple(
        Input(**dict(zip(_TEXTS, map(str, words), strict=True)),
              **dict(zip(_NUMBERS, map(float, row), strict=True)))
        for words, row in zip(texts, numbers, strict=True)
    )  # fmt: skip
    x = check_shape("x", arrays["x"], (None, group.nq), batch=True, finite=False)
    # The states of a rollout that diverged end in NaN; there may be none in between.
    gone = np.asarray(np.isnan(x).any(axis=-1))
    if (gone[..., :-1] & ~gone[..., 1:]).any() or gone[..., :1].any():
        raise ValueError("x has states of NaN other than at its end")
    filled = np.where(gone[..., None], group.identity, x)
    made = Trajectory(group, arrays["t"], filled, arrays["u"], inputs=inputs or None)
    x = np.where(gone[..., None], np.nan, made.x)
    return Trajectory._of(group, made.t, x, made.u, made.inputs)

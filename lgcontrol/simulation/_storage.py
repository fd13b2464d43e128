"""Results on disk: NumPy archives with a JSON description."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..groups import LieGroup, check_element
from ..groups._internal import describe_group, group_from_description
from ..io._internal import LARGEST_ARCHIVE, write_archive
from ..scene import Scene
from ..systems._internal import read_on_group
from ._contract import RunStatus
from ._logs import BoundedQuantity, ControllerLog, Measurements, TaskError

RESULT_SCHEMA, RESULT_VERSION = "lgcontrol.simulation", 2
_TEXTS = ("name", "status", "message")
_NAMES = ("input_names", "input_units", "input_roles")
_ARRAYS = ("t", "x", "u", "input_bounds")
_OPTIONAL = ("reference", "tracked", "state_limits", "estimate", "estimate_std")


def write_result(result: Mapping[str, Any], path: Path, scene: Scene | None) -> Path:
    """Write the fields of a `SimulationResult`; the file appears complete or not at all."""
    arrays, description = _to_plain(result)
    if scene is not None:
        description["scene"], own = scene.to_plain()
        arrays |= {f"scene_{name}": values for name, values in own.items()}
    return write_archive(path, RESULT_SCHEMA, RESULT_VERSION, arrays, description)


def read_result(
    path: Path, group: LieGroup | None, largest: int = LARGEST_ARCHIVE
) -> dict[str, Any]:
    """Fields of the `SimulationResult` in a file; see its ``load``."""
    kind = RESULT_SCHEMA, RESULT_VERSION, "saved simulation result"
    return read_on_group(path, *kind, group, largest, _from_plain)


def _to_plain(result: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """A result as arrays and a description that JSON can hold."""
    arrays = {key: result[key] for key in _ARRAYS}
    arrays |= {k: result[k] for k in _OPTIONAL if result[k] is not None}
    for i, entry in enumerate(result["measurements"].values()):
        arrays |= {f"measurement_{i}_t": entry.t, f"measurement_{i}_y": entry.y}
    for i, task in enumerate(result["tasks"].values()):
        arrays[f"task_{i}_error"] = task.error
    for i, entry in enumerate(result["bounds"].values()):
        arrays[f"bound_{i}_values"] = entry.values
        arrays[f"bound_{i}_limits"] = np.array([entry.lower, entry.upper])
    for i, entry in enumerate(result["limited"].values()):
        arrays[f"limited_{i}_values"] = entry.values
        arrays[f"limited_{i}_limits"] = np.array([entry.lower, entry.upper])
    for i, log in enumerate(result["controllers"].values()):
        arrays[f"controller_{i}_t"] = log.t
        if log.command is not None:
            arrays[f"controller_{i}_command"] = log.command
        for k, values in enumerate(log.info.values()):
            arrays[f"controller_{i}_info_{k}"] = values
    description = {
        "group": describe_group(result["group"]),
        "units": {"t": "s", "x": result["group"].coordinate_units, "u": result["input_units"]},
        "coordinate_names": result["group"].coordinate_names,
        "measurements": {n: describe_group(e.group) for n, e in result["measurements"].items()},
        "counts": {n: [e.taken, e.lost, e.late] for n, e in result["measurements"].items()},
        "tasks": {name: describe_group(task.group) for name, task in result["tasks"].items()},
        "bounds": {name: entry.unit for name, entry in result["bounds"].items()},
        "limited": {name: entry.unit for name, entry in result["limited"].items()},
        "controllers": {name: list(log.info) for name, log in result["controllers"].items()},
        "unstable": {name: log.unstable for name, log in result["controllers"].items()},
        "settings": dict(result["settings"]),
    }
    return arrays, description | {key: result[key] for key in _TEXTS + _NAMES}


def _from_plain(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], group: LieGroup
) -> dict[str, Any]:
    """Fields of a result from what `_to_plain` returned; shapes are checked against each other."""
    names = {key: tuple(map(str, description[key])) for key in _NAMES}
    n, m = len(arrays["t"]), len(names["input_names"])
    shapes = {
        "t": (n,),
        "x": (n, group.nq),
        "u": (max(n - 1, 0), m),
        "input_bounds": (2, m),
        "reference": (n, group.nq),
        "tracked": (group.dim,),
        "state_limits": (2, group.nq),
        "estimate": (n, None),
        "estimate_std": (n, None),
    }
    kept: dict[str, Any] = {
        key: check_shape(key, arrays[key], shape, finite=key == "t")
        for key, shape in shapes.items()
        if key not in _OPTIONAL or key in arrays
    }
    if n < 1 or any(len(values) != m for values in names.values()):
        raise ValueError("the numbers of times, inputs, units and roles do not fit together")
    if "tracked" in kept:
        kept["tracked"] = kept["tracked"].astype(bool)
    kept["x"] = _states(kept["x"], group, str(description["status"]))
    _check_times("t", kept["t"], strictly=True)
    kept |= names | {key: str(description[key]) for key in _TEXTS}
    counts = description.get("counts", {})  # files of version 1 have none
    unstable = description.get("unstable", {})  # nor have earlier ones of version 2 this
    return kept | {
        "status": RunStatus(kept["status"]),
        "group": group,
        "measurements": {
            name: _measurements(arrays, i, kind, group, counts.get(name, ()))
            for i, (name, kind) in enumerate(description["measurements"].items())
        },
        "tasks": {
            name: _task(arrays, i, kind, n)
            for i, (name, kind) in enumerate(description.get("tasks", {}).items())
        },
        "bounds": {
            name: _bound(arrays, "bound", i, n, str(unit))
            for i, (name, unit) in enumerate(_units(description.get("bounds", {})).items())
        },
        "limited": {
            name: _bound(arrays, "limited", i, n, str(unit))
            for i, (name, unit) in enumerate(description.get("limited", {}).items())
        },
        "controllers": {
            name: _controller(arrays, i, keys, str(unstable.get(name, "")))
            for i, (name, keys) in enumerate(description["controllers"].items())
        },
        "settings": dict(description["settings"]),
        "scenery": _scene(arrays, description.get("scene")),
    }


def _scene(arrays: Mapping[str, np.ndarray], description: Any) -> Scene | None:
    """The scene that was saved with a result; earlier files have none."""
    if description is None:
        return None
    own = {k.removeprefix("scene_"): a for k, a in arrays.items() if k.startswith("scene_")}
    return Scene.from_plain(description, own)


def _units(bounds: Any) -> dict[str, str]:
    """Units of what was bounded by name, which earlier files of version 2 do not have."""
    return dict(bounds) if isinstance(bounds, Mapping) else dict.fromkeys(bounds, "")


def _states(x: np.ndarray, group: LieGroup, status: str) -> np.ndarray:
    """States on the group; the last one of a run that diverged or failed may be anything."""
    good = len(x) - (status in (RunStatus.DIVERGED, RunStatus.UNRESOLVED, RunStatus.FAILED))
    return np.concatenate([check_element("x", x[:good], group, batch=True), x[good:]])


def _check_times(name: str, t: np.ndarray, *, strictly: bool = False) -> None:
    """Refuse times that go back."""
    steps = np.diff(t)
    wrong = np.flatnonzero(steps <= 0 if strictly else steps < 0)
    if wrong.size:
        k = int(wrong[0])
        raise ValueError(f"{name} does not increase: {t[k]:g} s is followed by {t[k + 1]:g} s")


def _measurements(
    arrays: Mapping[str, np.ndarray],
    i: int,
    kind: dict[str, Any],
    state: LieGroup,
    counts: Sequence[int],
) -> Measurements:
    try:
        group = group_from_description(kind)
    except ValueError:
        if kind != describe_group(state):
            raise
        group = state
    t = check_shape(f"times of measurement {i}", arrays[f"measurement_{i}_t"], (None,))
    _check_times(f"measurement_{i}_t", t)
    y = arrays[f"measurement_{i}_y"]
    y = check_shape(f"measurement {i}", y, (len(t), group.nq))
    return Measurements(t, y, group, *map(int, counts))


def _task(arrays: Mapping[str, np.ndarray], i: int, kind: dict[str, Any], n: int) -> TaskError:
    group = group_from_description(kind)
    return TaskError(
        check_shape(f"error of task {i}", arrays[f"task_{i}_error"], (n, group.dim)), group
    )


def _bound(
    arrays: Mapping[str, np.ndarray], kind: str, i: int, n: int, unit: str = ""
) -> BoundedQuantity:
    values, limits = (
        check_shape(f"{part} of {kind} {i}", arrays[f"{kind}_{i}_{part}"], shape, finite=False)
        for part, shape in (("values", (n,)), ("limits", (2,)))
    )
    return BoundedQuantity(values, float(limits[0]), float(limits[1]), unit)


def _controller(
    arrays: Mapping[str, np.ndarray], i: int, keys: list[str], unstable: str
) -> ControllerLog:
    t = check_shape(f"times of controller {i}", arrays[f"controller_{i}_t"], (None,))
    _check_times(f"controller_{i}_t", t)
    command = arrays.get(f"controller_{i}_command")
    if command is not None:
        command = check_shape(f"command of controller {i}", command, (len(t), None))
    info = {key: arrays[f"controller_{i}_info_{k}"] for k, key in enumerate(keys)}
    for key, values in info.items():
        if values.shape != t.shape:
            raise ValueError(f"{key} of controller {i} has shape {values.shape}, not {t.shape}")
    return ControllerLog(t, command, info, unstable)

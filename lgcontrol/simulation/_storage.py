"""Results on disk: NumPy archives with a JSON description."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ..groups import LieGroup, describe_group, group_from_description
from ._result import Measurements, SimulationResult

SCHEMA, VERSION = "lgcontrol.simulation", 1
_TEXTS = ("name", "status", "message")
_NAMES = ("input_names", "input_units", "input_roles")
_ARRAYS = ("t", "x", "u", "input_bounds", "command")
_OPTIONAL = ("reference", "estimate")


def save_result(result: SimulationResult, path: Path) -> Path:
    """See `SimulationResult.save`; the file appears complete or not at all."""
    if path.suffix != ".npz":
        path = path.with_name(path.name + ".npz")
    description = {
        "schema": SCHEMA,
        "version": VERSION,
        "group": describe_group(result.group),
        "units": {"t": "s", "x": result.group.coordinate_units, "u": result.input_units},
        "coordinate_names": result.group.coordinate_names,
        "measurements": list(result.measurements),
        "control": list(result.control),
    }
    description |= {key: getattr(result, key) for key in _TEXTS + _NAMES}
    arrays = {key: getattr(result, key) for key in _ARRAYS}
    arrays |= {k: getattr(result, k) for k in _OPTIONAL if getattr(result, k) is not None}
    for i, entry in enumerate(result.measurements.values()):
        arrays |= {f"measurement_{i}_t": entry.t, f"measurement_{i}_y": entry.y}
    for i, values in enumerate(result.control.values()):
        arrays[f"control_{i}"] = values
    arrays["description"] = np.array(json.dumps(description))
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def load_result(path: Path, group: LieGroup | None) -> SimulationResult:
    """See `SimulationResult.load`."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays: dict[str, Any] = {key: file[key] for key in file.files}
        description = json.loads(str(arrays.pop("description")))
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, OSError, zipfile.BadZipFile, EOFError) as error:
        raise ValueError(f"{path} is not a saved simulation result: {error}") from None
    if description.get("schema") != SCHEMA:
        raise ValueError(f"{path} holds {description.get('schema')!r}, expected {SCHEMA!r}")
    if description.get("version", 0) > VERSION:
        raise ValueError(
            f"{path} has format version {description['version']}, this lgcontrol reads up to "
            f"{VERSION}: install a newer one"
        )
    try:
        group = group or group_from_description(description["group"])
        return SimulationResult(
            group=group,
            measurements={
                name: Measurements(arrays[f"measurement_{i}_t"], arrays[f"measurement_{i}_y"])
                for i, name in enumerate(description["measurements"])
            },
            control={name: arrays[f"control_{i}"] for i, name in enumerate(description["control"])},
            **{key: description[key] for key in _TEXTS},
            **{key: tuple(description[key]) for key in _NAMES},
            **{key: arrays[key] for key in _ARRAYS},
            **{key: arrays[key] for key in _OPTIONAL if key in arrays},
        )
    except KeyError as error:
        raise ValueError(f"{path} lacks {error}: the file is damaged") from None

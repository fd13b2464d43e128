"""Estimates on disk: NumPy archives with a JSON description."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..groups import check_element
from ..groups._internal import describe_group
from ..io._internal import DAMAGE, damage_reason, read_archive, write_archive
from ..systems import System
from ._innovations import Innovations

ESTIMATE_SCHEMA, ESTIMATE_VERSION = "lgcontrol.estimation", 1
# Parts of innovations with how many axes they have behind the measurements'.
_PARTS = {"innovation": 1, "whitened": 1, "nis": 0, "log_likelihood": 0, "status": 0}


def flattened(P: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., n, n) as columns of their lower triangles."""
    return P[(..., *np.tril_indices(P.shape[-1]))]


def symmetric_of(column: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., n, n) of what `flattened` returned."""
    n = round((np.sqrt(8 * column.shape[-1] + 1) - 1) / 2)
    rows, columns = np.tril_indices(n)
    P = np.empty((*column.shape[:-1], n, n))
    P[..., rows, columns] = P[..., columns, rows] = column
    return P


def write_estimates(
    path: Path,
    system: System[Any],
    values: Mapping[str, np.ndarray],
    innovations: Mapping[str, Innovations],
    counts: Mapping[str, Counter[str]],
) -> Path:
    """Write times, states, triangles of covariances ("P"), and what measurements said.

    Parameters
    ----------
    path : Path
    system : System
        System of the state; its description is written.
    values : mapping of str to ndarray
        "t", "x", "P".
    innovations : mapping of str to Innovations
    counts : mapping of str to Counter
    """
    arrays = dict(values)
    for i, said in enumerate(innovations.values()):
        arrays |= {f"said_{i}_{part}": getattr(said, part) for part in ("t", "number", *_PARTS)}
    description = _described(system) | {
        "units": {"t": "s", "x": system.state.coordinate_units, "P": system.error_units},
        "measurements": [*innovations],
        "lasting": [said.lasting for said in innovations.values()],
        "counts": {name: dict(counter) for name, counter in counts.items()},
    }
    return write_archive(path, ESTIMATE_SCHEMA, ESTIMATE_VERSION, arrays, description)


def read_estimates(
    path: Path, system: System[Any], largest: int
) -> tuple[dict[str, np.ndarray], dict[str, Innovations], dict[str, Counter[str]]]:
    """What `write_estimates` wrote, for the same system.

    Parameters
    ----------
    path : Path
    system : System
    largest : int
        Bytes that the arrays may take in memory.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file holds no estimates, those of a system with another state, or is damaged.
    """
    path, arrays, description = read_archive(
        path, ESTIMATE_SCHEMA, ESTIMATE_VERSION, "saved estimate", largest
    )
    for what, own in _described(system).items():
        if description.get(what) != own:
            raise ValueError(
                f"{path} has estimates of another system than {system.name}: its {what} is "
                f"{description.get(what)}, expected {own}"
            )
    try:
        return _from_plain(arrays, description, system)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: {damage_reason(error)}") from None


def _described(system: System[Any]) -> dict[str, Any]:
    """What has to agree, as JSON has it."""
    names = {"state": system.state.coordinate_names, "errors": system.error_names}
    group = json.loads(json.dumps(describe_group(system.state)))
    return {"group": group} | {key: list(value) for key, value in names.items()}


def _from_plain(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], system: System[Any]
) -> tuple[dict[str, np.ndarray], dict[str, Innovations], dict[str, Counter[str]]]:
    N, n = len(arrays["t"]), system.n_errors
    sizes = {"x": system.state.nq, "P": n * (n + 1) // 2}
    values = {"t": check_shape("t", arrays["t"], (N,))}
    if (np.diff(values["t"]) < 0).any():
        raise ValueError("its times go back")
    for key, size in sizes.items():
        values[key] = check_shape(key, arrays[key], (N, size), batch=True, finite=False)
    values["x"] = check_element("x", values["x"], system.state, batch=True)
    innovations, lasting = {}, description.get("lasting")  # older files have none
    for i, name in enumerate(description["measurements"]):
        K = len(arrays[f"said_{i}_t"])
        m = arrays[f"said_{i}_innovation"].shape[-1]
        shapes = {"t": (K,), "number": (K,)}
        shapes |= {part: (K, m)[: 1 + axes] for part, axes in _PARTS.items()}
        parts = {
            part: check_shape(part, arrays[f"said_{i}_{part}"], shape,
                              batch=part in _PARTS, finite=False)
            for part, shape in shapes.items()
        }  # fmt: skip
        whole = {part: parts[part].astype(int) for part in ("number", "status")}
        factor = 1.0 if lasting is None else float(lasting[i])
        innovations[str(name)] = Innovations(**(parts | whole), lasting=factor)
    counts = {
        str(name): Counter({str(word): int(k) for word, k in counter.items()})
        for name, counter in description["counts"].items()
    }
    return values, innovations, counts

"""Where names are: blocks and coordinates in errors, controls, and what of a start is free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..codegen._internal import UnknownNameError, unknown_name
from ..groups import LieGroup
from ..systems import System
from ..systems._internal import block_slices, shared_names


def state_names(group: LieGroup) -> dict[str, slice]:
    """Where blocks, blocks in blocks and tangent coordinates are in a tangent vector."""
    names = {key: slice(i, i + 1) for i, key in enumerate(group.tangent_names)}
    return block_slices(group)[1] | names


def error_places(system: System) -> dict[str, slice]:
    """Where blocks and coordinates are in the error coordinates of a system."""
    if system.errors is None:
        return state_names(system.state)
    places = {key: i for i, key in enumerate(system.error_names)}
    names = shared_names(system.error_names)
    for block, part in block_slices(system.state)[1].items():  # joints by their own names
        if part.stop - part.start == 1 and (only := system.state.tangent_names[part][0]) in places:
            names[block] = slice(places[only], places[only] + 1)
    return names | {key: slice(i, i + 1) for key, i in places.items()}


def control_places(system: System) -> dict[str, slice]:
    """Where controls, and what comes before the dot in several names, are among the controls."""
    controls = system.input_index("control")
    names = {system.input_names[i]: slice(k, k + 1) for k, i in enumerate(controls)}
    return shared_names([*names]) | names


def free_errors(system: System, start: Any) -> np.ndarray:
    """Error coordinates of the first state that are free.

    Parameters
    ----------
    system : System
    start : "given", "free" or mapping
        A mapping from blocks and tangent coordinates to "free".

    Returns
    -------
    ndarray of int, shape (k,)

    Raises
    ------
    ValueError
        If a name is unknown, or moves along the free coordinates do not stay among them: those of
        a part of a group have to be a subgroup's.

    Examples
    --------
    >>> from lgcontrol.groups import SE2, Product, Rn
    >>> from lgcontrol.systems import System
    >>> car = System("car", Product(pose=SE2, T=Rn(1)), lambda t, x, u, p: 0 * x[1:], inputs=["u"])
    >>> free_errors(car, {"T": "free", "pose.rz": "free"})
    array([2, 3])
    """
    if isinstance(start, str):
        if start not in ("given", "free"):
            raise UnknownNameError(unknown_name("start", start, ("given", "free")))
        return np.arange(system.n_errors if start == "free" else 0)
    if not isinstance(start, Mapping):
        raise TypeError(
            "start must be 'given', 'free' or a mapping such as {'duration': 'free'}, not "
            f"{start!r}; where a plan starts is given to solve()"
        )
    names = error_places(system)
    free: set[int] = set()
    for key, value in start.items():
        if key not in names:
            raise UnknownNameError(unknown_name("part of the start", key, names))
        if value not in ("given", "free"):
            raise ValueError(f"start[{key!r}] must be 'free' or 'given', not {value!r}")
        if value == "free":
            free |= set(range(names[key].start, names[key].stop))
    chosen = np.array(sorted(free), dtype=np.int64)
    basis = np.eye(system.state.dim)[chosen if system.errors is None else []]
    left = sum(np.abs(system.state.ad(a) @ basis.T).sum(axis=1) for a in basis)
    beyond = np.flatnonzero(left * ~basis.any(axis=0)) if len(basis) else []
    if len(beyond):
        missing = system.state.tangent_names[int(beyond[0])]
        raise ValueError(
            f"start: moves along {', '.join(start)} together also change {missing}: let it be "
            "free, too, or fix it by a Bound(…, at='start')"
        )
    return chosen

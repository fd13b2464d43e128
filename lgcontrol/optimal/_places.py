"""Where names are: blocks and coordinates in errors, controls, and what of a start is free."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ..codegen._internal import UnknownNameError, memoized, unknown_name
from ..groups import LieGroup
from ..systems import System
from ..systems._internal import block_slices, shared_names


def state_names(group: LieGroup) -> dict[str, slice]:
    """Places of blocks, blocks in blocks and tangent coordinates in a tangent vector."""
    names = {key: slice(i, i + 1) for i, key in enumerate(group.tangent_names)}
    return block_slices(group)[1] | names


@memoized
def error_places(system: System) -> dict[str, slice]:
    """Places of blocks and coordinates in the error coordinates of a system."""
    if system.errors is None:
        return state_names(system.state)
    places = {key: i for i, key in enumerate(system.error_names)}
    names = shared_names(system.error_names)
    for block, part in block_slices(system.state)[1].items():  # joints by their own names
        if part.stop - part.start == 1 and (only := system.state.tangent_names[part][0]) in places:
            names[block] = slice(places[only], places[only] + 1)
    return names | {key: slice(i, i + 1) for key, i in places.items()}


@memoized
def control_places(system: System) -> dict[str, slice]:
    """Places of controls, and of the part before the dot in several names, among the controls."""
    controls = system.input_index("control")
    names = {system.input_names[i]: slice(k, k + 1) for k, i in enumerate(controls)}
    return shared_names([*names]) | names


def free_errors(system: System, free: str | Iterable[str]) -> np.ndarray:
    """Error coordinates of the initial state that are optimised, by names or "all".

    Free coordinates of a part of a group have to be a subgroup's.

    >>> from lgcontrol.groups import SE2, Product, Rn
    >>> from lgcontrol.systems import System
    >>> car = System("car", Product(pose=SE2, T=Rn(1)), lambda t, x, u, p: 0 * x[1:], inputs=["u"])
    >>> free_errors(car, ["T", "pose.rz"])
    array([2, 3])
    """
    listed = [free] if isinstance(free, str) else free
    if isinstance(free, Mapping) or not isinstance(listed, Iterable):
        raise TypeError(
            f"free names the initial states that are optimised, as in free='duration', not {free!r}"
        )
    names = {"all": slice(0, system.n_errors)} | error_places(system)
    listed, chosen = list(listed), set[int]()
    if not listed:
        return np.zeros(0, dtype=np.int64)
    for name in listed:
        if name not in names:
            raise UnknownNameError(unknown_name("free initial state", name, names))
        chosen |= {*range(names[name].start, names[name].stop)}
    found = np.array(sorted(chosen), dtype=np.int64)
    basis = np.eye(system.state.dim)[found if system.errors is None else []]
    left = sum(np.abs(system.state.ad(a) @ basis.T).sum(axis=1) for a in basis)
    beyond = np.flatnonzero(left * ~basis.any(axis=0)) if len(basis) else []
    if len(beyond):
        missing = system.state.tangent_names[int(beyond[0])]
        raise ValueError(
            f"free: moves along {', '.join(listed)} together also change {missing}: name it, too, "
            "or fix it by a Bound(…, at='start')"
        )
    return found

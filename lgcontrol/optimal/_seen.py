"""What bounds keep bodies out of or lead them through, for scenes and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..scene._internal import GateBox, Inside, moving_blocks
from ..systems import System
from ._bounds import Bound, bounded_place


def seen_obstacles(system: System, bounds: Sequence[Bound]) -> dict[str, Any]:
    """Obstacles, cones and gates of bounds, by the name of the first bound of each.

    A gate is what bounds on positions of a body leave of space at the same nodes.
    """
    found: dict[str, Any] = {}

    def add(name: str, one: Any) -> None:
        names = (name, *(f"{name} {k}" for k in range(2, len(found) + 3)))
        found[next(label for label in names if label not in found)] = one

    for bound in bounds:
        one = bound.obstacle
        if one is None or any(one is other for other in found.values()):
            continue
        plain = type(one).__name__
        add(plain if bound.label == f"clearance of {plain}" else bound.label, one)
    for (_, nodes), own in _gates(system, bounds).items():
        named = next((bound.name for _, bound in own if bound.name is not None), None)
        lower, upper = np.full((2, 3), [[-np.inf], [np.inf]])
        for axis, bound in own:
            lower[axis] = max(lower[axis], float(np.ravel(np.asarray(bound.lower))[0]))
            upper[axis] = min(upper[axis], float(np.ravel(np.asarray(bound.upper))[0]))
        if np.isfinite([lower, upper]).all(axis=0).any():
            add(named or f"gate at node {nodes[0]}", Inside(GateBox(lower, upper)))
    return found


def _gates(
    system: System, bounds: Sequence[Bound]
) -> dict[tuple[str, range], list[tuple[int, Bound]]]:
    """Bounds on the position of a body by the body and the nodes, with the axes of the world."""
    axes = {
        f"{name}.{label}".lstrip("."): (name, axis)
        for name, block, *_ in moving_blocks(system.state)
        for label, axis in _axes(block).items()
    }
    found: dict[tuple[str, range], list[tuple[int, Bound]]] = {}
    for bound in bounds:
        limits = (bound.lower, bound.upper)
        if not isinstance(bound.at, range) or any(isinstance(side, str) for side in limits):
            continue
        kind, name = ("", "") if callable(bound.of) else bounded_place(system, bound)
        if kind == "coordinate" and name in axes:
            body, axis = axes[name]
            found.setdefault((body, bound.at), []).append((axis, bound))
    return found


def _axes(block: Any) -> dict[str, int]:
    """Coordinates that are positions along an axis of the world, with the number of the axis."""
    start = np.asarray(block.embed(block.identity))
    found = {}
    for k, (name, unit) in enumerate(
        zip(block.coordinate_names, block.coordinate_units, strict=True)
    ):
        if unit == "m":
            step = np.asarray(block.embed(block.identity + np.eye(block.nq)[k])) - start
            hits = np.flatnonzero(np.abs(step[:3] - 1.0) < 1e-12)
            if len(hits) == 1 and np.abs(step).sum() < 1.0 + 1e-9:
                found[name] = int(hits[0])
    return found

"""Joints in words: the kinds and axes that `Joint.of` takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    Cylindrical,
    Helical,
    LieGroup,
    PlanarHelical,
    Schoenflies,
    Translation,
)

# Axes that agree to this many digits have one name.
_SAME = 1e-12

_ABOUT = {
    type(SO2): "continuous",
    type(SE2): "planar",
    type(Cylindrical): "cylindrical",
    type(Schoenflies): "schoenflies",
}
_WHOLE = {SO3: "spherical", SE3: "free", Translation("xyz"): "translation"}


def name_of_steps(steps: Sequence[tuple[np.ndarray, LieGroup]]) -> str:
    """Kind and axis of a joint; for a chain those of its parts."""
    if not steps:
        return "fixed"
    at_once = all(np.array_equal(placement, np.eye(4)) for placement, _ in steps)
    axes = [
        name_of_axis(group.axis)
        for _, group in steps
        if isinstance(group, Helical) and group.pitch == 0
    ]
    if at_once and len(steps) == len(axes) == 2:
        return f"universal about {axes[0]} and {axes[1]}"
    if at_once and len(steps) == 3 and axes == ["z", "y", "x"]:
        return "spherical_zyx"
    return ", then ".join(name_of_group(group) for _, group in steps)


def name_of_group(group: LieGroup) -> str:
    """Kind and axis of a joint that moves on a group; the group's own name if it has no kind."""
    if group in _WHOLE:
        return _WHOLE[group]
    axis = name_of_axis(getattr(group, "axis", (0.0, 0.0, 1.0)))
    if isinstance(group, Helical | PlanarHelical):
        kind = "helical" if isinstance(group, Helical) else "planar_helical"
        if kind == "helical" and group.pitch == 0:
            return f"revolute about {axis}"
        return f"{kind} about {axis}, {group.pitch:g} m/rad"
    if isinstance(group, Translation) and group.axes == "z":
        return f"prismatic along {axis}"
    kind = _ABOUT.get(type(group))
    return str(group) if kind is None else f"{kind} about {axis}"


def name_of_axis(axis: Sequence[float]) -> str:
    """A letter with its sign where there is one, else three numbers."""
    for i, letter in enumerate("xyz"):
        for sign, text in ((1.0, letter), (-1.0, f"-{letter}")):
            if np.abs(np.asarray(axis) - sign * np.eye(3)[i]).max() < _SAME:
                return text
    return f"({', '.join(f'{entry:.4g}' for entry in axis)})"

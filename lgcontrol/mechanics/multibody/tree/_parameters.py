"""Named numbers of links and joints that can be made symbols or given other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ....groups import SO3
from ..._inertia import SpatialInertia
from ._link import Link
from ._placement import freeze

Number = tuple[float, str]
"""Nominal value and unit."""


def numbers_of(link: Link) -> dict[str, Number]:
    """Numbers of a link and of its joint that may become parameters, by name."""
    return _of_link(link) | _of_joint(link)


def changed_link(link: Link, changed: Mapping[str, float]) -> Link:
    """A link with the changed ones of its numbers; the same object if there are none."""
    own = {name for name in numbers_of(link) if name in changed}
    if not own:
        return link
    changes: dict[str, Any] = {}
    if link.inertia is not None and any(name in own for name in _of_link(link)):
        changes["inertia"] = _changed_inertia(link, link.inertia, changed)
    name = link.joint_name
    placed = [f"{name}.placement.{key}" for key in ("x", "y", "z", "rx", "ry", "rz")]
    if own.intersection(placed):
        placement = link.placement.copy()
        shift = zip(placed[:3], placement[:3, 3], strict=True)
        placement[:3, 3] = [changed.get(key, x) for key, x in shift]
        turn = np.array([changed.get(key, 0.0) for key in placed[3:]])
        placement[:3, :3] = placement[:3, :3] @ SO3.matrix(SO3.exp(turn))
        changes["placement"] = freeze(placement)
    filled = link.filled
    numbers = {
        key: tuple(
            changed.get(full, x)
            for full, x in zip(link.numbers_of(key), getattr(filled, key), strict=True)
        )
        for key in ("armature", "damping", "friction", "stiffness")
        if own.intersection(link.numbers_of(key))
    }
    if numbers:
        changes["properties"] = replace(link.properties, **numbers)
    return replace(link, **changes)


def _changed_inertia(
    link: Link, own: SpatialInertia, changed: Mapping[str, float]
) -> SpatialInertia:
    values = {name: changed.get(name, x) for name, (x, _) in _of_link(link).items()}
    at = [values[f"{link.name}.center_of_mass.{axis}"] for axis in "xyz"]
    tensor = [
        [values[f"{link.name}.inertia.{''.join(sorted(a + b))}"] for b in "xyz"] for a in "xyz"
    ]
    # What was fitted to measurements need not be a body's: functions of the parameters take it too.
    return SpatialInertia(values[f"{link.name}.mass"], at, tensor, check="warn")


def _of_link(link: Link) -> dict[str, tuple[float, str]]:
    own = link.inertia
    if own is None:
        return {}
    values: dict[str, tuple[float, str]] = {f"{link.name}.mass": (own.mass, "kg")}
    for axis, x in zip("xyz", own.center_of_mass, strict=True):
        values[f"{link.name}.center_of_mass.{axis}"] = float(x), "m"
    for key in ("xx", "xy", "xz", "yy", "yz", "zz"):
        entry = own.inertia["xyz".index(key[0]), "xyz".index(key[1])]
        values[f"{link.name}.inertia.{key}"] = float(entry), "kg m²"
    return values


def _of_joint(link: Link) -> dict[str, tuple[float, str]]:
    name = link.joint_name
    values: dict[str, tuple[float, str]] = {}
    for axis, x in zip("xyz", link.placement[:3, 3], strict=True):
        values[f"{name}.placement.{axis}"] = float(x), "m"
    for axis in ("rx", "ry", "rz"):
        values[f"{name}.placement.{axis}"] = 0.0, "rad"
    own = link.filled
    for key in ("armature", "damping", "friction", "stiffness"):
        for full, x in zip(link.numbers_of(key), getattr(own, key), strict=True):
            values[full] = x, ""
    return values

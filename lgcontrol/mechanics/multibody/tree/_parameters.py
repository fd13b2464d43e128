"""Named numbers of links and joints that can be made symbols or given other values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ....groups import SO3
from ....systems import Parameter
from ..._coefficients import within
from ...inertia._inertia import SpatialInertia
from ._link import Link
from ._placement import freeze


def numbers_of(link: Link) -> dict[str, Parameter]:
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
    values = {name: changed.get(name, x.nominal) for name, x in _of_link(link).items()}
    at = [values[f"{link.name}.center_of_mass.{axis}"] for axis in "xyz"]
    tensor = [
        [values[f"{link.name}.inertia.{''.join(sorted(a + b))}"] for b in "xyz"] for a in "xyz"
    ]
    # What was fitted to measurements need not be a body's: functions of the parameters take it too.
    return SpatialInertia(values[f"{link.name}.mass"], at, tensor, check="warn")


def _of_link(link: Link) -> dict[str, Parameter]:
    own, name = link.inertia, link.name
    if own is None:
        return {}
    made = [within(Parameter(f"{name}.mass", "kg", own.mass), 0.0)]
    for axis, x in zip("xyz", own.center_of_mass, strict=True):
        made.append(Parameter(f"{name}.center_of_mass.{axis}", "m", float(x)))
    for key in ("xx", "xy", "xz", "yy", "yz", "zz"):
        entry = own.inertia["xyz".index(key[0]), "xyz".index(key[1])]
        number = Parameter(f"{name}.inertia.{key}", "kg m²", float(entry))
        made.append(within(number, 0.0) if key[0] == key[1] else number)
    return {number.name: number for number in made}


def _of_joint(link: Link) -> dict[str, Parameter]:
    name, own = link.joint_name, link.filled
    made = [
        Parameter(f"{name}.placement.{axis}", "m", float(x))
        for axis, x in zip("xyz", link.placement[:3, 3], strict=True)
    ]
    made += [Parameter(f"{name}.placement.{axis}", "rad") for axis in ("rx", "ry", "rz")]
    made += [
        Parameter(full, "", x, lower=0.0)
        for key in ("armature", "damping", "friction", "stiffness")
        for full, x in zip(link.numbers_of(key), getattr(own, key), strict=True)
    ]
    return {number.name: number for number in made}

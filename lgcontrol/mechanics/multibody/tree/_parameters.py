"""Named numbers of a tree that can be made symbols."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....codegen import check_shape
from ....groups import SO3
from ..._coefficients import unknown_parameter
from ..._inertia import SpatialInertia
from ..plan._plan import property_names
from ._link import Link
from ._placement import freeze

if TYPE_CHECKING:
    from ._tree import Multibody


def named_values(tree: Multibody) -> dict[str, tuple[float, str]]:
    """Nominal value and unit of every number that may become a parameter."""
    values: dict[str, tuple[float, str]] = {}
    for axis, x in zip("xyz", tree.gravity, strict=True):
        values[f"gravity.{axis}"] = x, "m/s²"
    for link in tree._links:
        values |= _of_link(link) | _of_joint(link)
    return values


def expand_names(tree: Multibody, names: tuple[str, ...]) -> tuple[str, ...]:
    """Full names for full ones and for the beginnings of several, in the order given."""
    known = named_values(tree)
    found: dict[str, None] = {}
    for name in names:
        matches = [name] if name in known else [k for k in known if k.startswith(f"{name}.")]
        if not matches:
            raise KeyError(unknown_parameter(name, known))
        found |= dict.fromkeys(matches)
    return tuple(found)


def nominal_values(tree: Multibody) -> np.ndarray:
    """Nominal values of a tree's parameters, shape (n,)."""
    known = named_values(tree)
    return np.array([known[name][0] for name in tree.parameters])


def given_values(tree: Multibody, values: Any) -> dict[str, float]:
    """New numbers by name: a mapping, or one for each symbolic parameter."""
    if isinstance(values, Mapping):
        known = named_values(tree)
        for name in values:
            if name not in known:
                raise KeyError(unknown_parameter(name, known))
        return {name: float(check_shape(name, x, ())) for name, x in values.items()}
    p = check_shape("parameter values", values, (len(tree.parameters),))
    return dict(zip(tree.parameters, p.tolist(), strict=True))


def with_values(tree: Multibody, given: Mapping[str, float]) -> Multibody:
    """The tree with other numbers, which are symbols no longer; the others stay what they are."""
    known = named_values(tree)
    changed = {name: x for name, x in given.items() if x != known[name][0]}
    links = [_changed_link(link, changed) for link in tree._added_links]
    made = tree._with(links=links)
    made.gravity = tuple(
        changed.get(f"gravity.{a}", x) for a, x in zip("xyz", tree.gravity, strict=True)
    )
    made.parameters = tuple(name for name in tree.parameters if name not in given)
    return made


def _changed_link(link: Link, changed: Mapping[str, float]) -> Link:
    """A link with the changed ones of its numbers; the same object if there are none."""
    own = {name for name in (*_of_link(link), *_of_joint(link)) if name in changed}
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
    filled = link.properties.filled(link.joint.dim)
    numbers = {
        key: tuple(
            changed.get(full, x)
            for full, x in zip(property_names(link, key), getattr(filled, key), strict=True)
        )
        for key in ("armature", "damping", "friction", "stiffness")
        if own.intersection(property_names(link, key))
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
    name, dim = link.joint_name, link.joint.dim
    values: dict[str, tuple[float, str]] = {}
    for axis, x in zip("xyz", link.placement[:3, 3], strict=True):
        values[f"{name}.placement.{axis}"] = float(x), "m"
    for axis in ("rx", "ry", "rz"):
        values[f"{name}.placement.{axis}"] = 0.0, "rad"
    own = link.properties.filled(dim)
    for key in ("armature", "damping", "friction", "stiffness"):
        for full, x in zip(property_names(link, key), getattr(own, key), strict=True):
            values[full] = x, ""
    return values

"""Named numbers of a tree that can be made symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...codegen import unknown_name
from ._link import Link
from ._plan import property_names

if TYPE_CHECKING:
    from ._tree import Multibody


def named_values(tree: Multibody) -> dict[str, tuple[float, str]]:
    """Nominal value and unit of every number that may become a parameter."""
    values: dict[str, tuple[float, str]] = {}
    for axis, x in zip("xyz", tree.gravity, strict=True):
        values[f"gravity.{axis}"] = x, "m/s²"
    for link in tree.links:
        values |= _of_link(link) | _of_joint(link)
    return values


def expand_names(tree: Multibody, names: tuple[str, ...]) -> tuple[str, ...]:
    """Full names for full ones and for the beginnings of several, in the order given."""
    known = named_values(tree)
    found: dict[str, None] = {}
    for name in names:
        matches = [name] if name in known else [k for k in known if k.startswith(f"{name}.")]
        if not matches:
            raise KeyError(unknown_name("parameter", name, known))
        found |= dict.fromkeys(matches)
    return tuple(found)


def nominal_values(tree: Multibody) -> np.ndarray:
    """Nominal values of a tree's parameters, shape (n,)."""
    known = named_values(tree)
    return np.array([known[name][0] for name in tree.parameters])


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

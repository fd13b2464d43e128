"""Groups as plain data, for files."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from ..codegen._internal import UnknownNameError, unknown_name
from ._abelian import CylindricalGroup, Helical, Rn, Translation
from ._base import LieGroup
from ._product import Product
from ._schoenflies import SchoenfliesGroup
from ._se2 import PlanarHelical, SE2Group
from ._se3 import SE3Group
from ._sek import SEK2, SEK3
from ._so2 import SO2Group
from ._so3 import SO3Group

_TYPES: dict[str, type[LieGroup]] = {
    "SO2": SO2Group,
    "SO3": SO3Group,
    "SE2": SE2Group,
    "SE3": SE3Group,
    "SEK2": SEK2,
    "SEK3": SEK3,
    "Schoenflies": SchoenfliesGroup,
    "Cylindrical": CylindricalGroup,
    "PlanarHelical": PlanarHelical,
    "Helical": Helical,
    "Translation": Translation,
    "Rn": Rn,
}


def describe_group(group: LieGroup) -> dict[str, Any]:
    """Plain data that tells a group: numbers, texts, lists, dictionaries.

    Parameters
    ----------
    group : LieGroup
        One of this package, or a product of them; a group of your own is described by its name
        alone and cannot be rebuilt.

    Examples
    --------
    >>> from lgcontrol.groups import Helical
    >>> describe_group(Helical(0.1))
    {'type': 'Helical', 'pitch': 0.1, 'axis': (0.0, 0.0, 1.0)}
    """
    if isinstance(group, Product):
        return {
            "type": "Product",
            "blocks": [[name, describe_group(block)] for name, block in group.blocks.items()],
        }
    for name, kind in _TYPES.items():
        if type(group) is kind and is_dataclass(group):
            return {"type": name} | {f.name: getattr(group, f.name) for f in fields(group)}
    return {"type": group.name}


def group_from_description(description: dict[str, Any]) -> LieGroup:
    """Group from what `describe_group` returned, also after a trip through JSON.

    Raises
    ------
    ValueError
        If the type is unknown: the message lists the known ones.

    Examples
    --------
    >>> group_from_description({"type": "SE3"})
    SE3
    """
    values = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in description.items()
        if key != "type"
    }
    name = description.get("type")
    if name == "Product":
        return Product(
            **{block: group_from_description(value) for block, value in description["blocks"]}
        )
    if name not in _TYPES:
        raise UnknownNameError(unknown_name("group", name, [*_TYPES, "Product"]))
    return _TYPES[name](**values)

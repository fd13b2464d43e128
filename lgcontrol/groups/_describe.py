"""Groups as plain data, for files."""

from __future__ import annotations

from collections.abc import Iterable
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

    A group of your own is described by its name alone and cannot be rebuilt.

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

    An unknown type is refused, with the known ones.

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


MOST_BLOCKS = 4  # that a message names


def group_words(group: LieGroup) -> str:
    """Words for a group in a message: a joint that turns is an angle, a product its blocks.

    Examples
    --------
    >>> from lgcontrol.groups import SE3, Helical
    >>> group_words(Product(pose=SE3, elbow=Helical(0))), group_words(Helical(0))
    ('pose, elbow', 'an unwrapped angle')
    """
    if isinstance(group, Helical) and group.pitch == 0:
        return "an unwrapped angle"
    return _some(group.blocks) if isinstance(group, Product) else group.name


def group_difference(given: LieGroup, expected: LieGroup) -> str:
    """Difference of two groups, for a message.

    Groups of many joints are the same almost everywhere.

    Examples
    --------
    >>> from lgcontrol.groups import SE3, SO2, Helical
    >>> arm = Product(base=SE3, elbow=Helical(0))
    >>> group_difference(Product(base=SE3, elbow=SO2), arm)
    'elbow is SO2, expected an unwrapped angle'
    >>> group_difference(SE3, arm), group_difference(Product(base=SE3), arm)
    ('it is SE3, expected base, elbow', 'elbow is missing')
    >>> group_difference(Rn(2), Rn(2, ("s", "v"), ("m", "m/s")))
    'its coordinates are x0, x1, expected s [m], v [m/s]'
    """
    if not (isinstance(given, Product) and isinstance(expected, Product)):
        words = group_words(given), group_words(expected)
        if words[0] != words[1]:
            return f"it is {words[0]}, expected {words[1]}"
        own, other = (_some(_with_units(group)) for group in (given, expected))
        return f"its coordinates are {own}, expected {other}"
    own, other = given.blocks, expected.blocks
    if set(own).isdisjoint(other):
        return f"it has {_some(own)}, expected {_some(other)}"
    found = []
    for names, said in (([n for n in other if n not in own], "missing"),
                        ([n for n in own if n not in other], "not expected")):  # fmt: skip
        if names:
            found.append(f"{_some(names)} {'is' if len(names) == 1 else 'are'} {said}")
    for name in (key for key in own if key in other):
        if own[name] != other[name]:
            text = group_difference(own[name], other[name])
            found.append(
                f"{name}: {text}" if "coordinates" in text else f"{name} {text.removeprefix('it ')}"
            )
    return "; ".join(found) or f"the order of its blocks is {_some(own)}, expected {_some(other)}"


def _with_units(group: LieGroup) -> list[str]:
    """Coordinates with their units, if they have any."""
    named = zip(group.coordinate_names, group.coordinate_units, strict=True)
    return [f"{name} [{unit}]" if unit else name for name, unit in named]


def _some(names: Iterable[str]) -> str:
    """Names, at most a few of them."""
    first, rest = [*names][:MOST_BLOCKS], max(len([*names]) - MOST_BLOCKS, 0)
    return ", ".join(first) + f" and {rest} more" * bool(rest)

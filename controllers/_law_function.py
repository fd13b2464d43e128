"""Laws as functions without memory, for their export: what they take, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.codegen._internal import Shape
from lgcontrol.groups import LieGroup

# What is written behind a unit, by the order of the derivative; the last is the integral.
PER_TIME = ("", "/s", "/s²", "/s³", "/s⁴", " s")
# Arguments that are numbers.
NUMBERS = ("t", "first", "t_from", "span")


class LawArgument(NamedTuple):
    """An argument of an exported law that is a vector of the law's own.

    Attributes
    ----------
    labels : list of (str, str)
        Names and units of its entries.
    draw : callable
        ``(rng) → value``, shape (len(labels),), for test vectors.
    """

    labels: list[tuple[str, str]]
    draw: Callable[[np.random.Generator], np.ndarray]


def vector_argument(names: Sequence[str], units: Sequence[str], order: int = 0) -> LawArgument:
    """A vector, or its time derivative of an order from 1 to 4, or of -1, its integral."""
    per = PER_TIME[order]
    labels = [
        (name, f"{unit or '1' * bool(per)}{per}") for name, unit in zip(names, units, strict=True)
    ]
    return LawArgument(labels, lambda rng: rng.normal(size=len(labels)))


def goal_arguments(group: LieGroup, *names: str) -> dict[str, LawArgument]:
    """Arguments for a motion on a group: names of coordinates, of their velocity, of its rate."""
    place = list(zip(group.coordinate_names, group.coordinate_units, strict=True))
    found = {names[0]: LawArgument(place, lambda rng: group.random(rng))}
    for order, name in enumerate(names[1:], 1):
        found[name] = vector_argument(group.tangent_names, group.tangent_units, order)
    return found


def law_function(
    name: str,
    given: Mapping[str, Value],
    results: Mapping[str, Value],
    shapes: Mapping[str, Shape] | None = None,
) -> ModelFunction:
    """A law as a function.

    Parameters
    ----------
    given : mapping of str to CasADi symbol
        Arguments; `NUMBERS` are numbers.
    results : mapping of str to CasADi column
    shapes : mapping, optional
        Of arguments that are neither numbers nor columns.
    """
    values = {**given, **results}
    known: dict[str, Shape] = {key: value.shape[:1] for key, value in values.items()}
    known |= {key: () for key in NUMBERS if key in given}
    function = ca.Function(
        name, list(given.values()), [ca.densify(value) for value in results.values()],
        list(given), list(results),
    )  # fmt: skip
    return ModelFunction(function, shapes=known | dict(shapes or {}))

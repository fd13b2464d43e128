"""Tensors that are too large to trace, or take long: said before it happens, with what to use."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._plan import Plan
    from ._recipe import Recipe

LARGEST = 2_000_000
"""Entries of a tensor that is still traced: beyond it takes gigabytes, and minutes."""

_LONG = 5.0  # s: traces that take longer are announced
_ENTRY_SECONDS = 2e-4  # measured: all tensors of dynamics, chains of 16 to 32 joints

_logger = logging.getLogger("lgcontrol.mechanics")


def check_size(plan: Plan, name: str, recipe: Recipe) -> None:
    """Announce a trace that takes long; refuse one beyond all measure.

    Raises
    ------
    ValueError
        Naming what to use instead.
    """
    if not recipe.instead:
        return
    entries = _entries(plan, recipe)
    if entries > LARGEST:
        raise ValueError(
            f"{name} of {plan.nv} velocities has {entries} entries that are not zero, too many to "
            f"trace: {recipe.instead}, or lock joints that do not matter"
        )
    if entries * _ENTRY_SECONDS > _LONG:
        _logger.warning(
            "lgcontrol: tracing %s of %d velocities (%d entries) takes about %.0f s: %s",
            name,
            plan.nv,
            entries,
            entries * _ENTRY_SECONDS,
            recipe.instead,
        )


def _entries(plan: Plan, recipe: Recipe) -> int:
    """Entries of the recipe's results: of tensors, those with the three on one path."""
    depths: list[int] = []  # velocities from the root to each node
    total = triples = 0
    for node in plan.nodes:
        own = node.S.shape[1]
        before = depths[node.parent] if node.parent >= 0 else 0
        depths.append(before + own)
        triples += depths[-1] ** 3 - before**3
    for _, code in recipe.results:
        if code == "vvv":
            total += triples
        elif isinstance(code, tuple) and code[0] == "v":
            total += 3 * plan.nv * int(code[1])  # longer expressions
    return total

"""Pieces of a long call: code in C cannot be interrupted, but Python can, between two calls."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._program import Chain

# Operations of one call into C, some 50 ms.
LONGEST_PIECE = 200_000_000


class Piece(NamedTuple):
    """Some items, or some steps of all items.

    Attributes
    ----------
    steps : int
    arguments, results : list of ndarray
        Views of the memory of the whole call, items along the first axis.
    """

    steps: int
    arguments: list[np.ndarray]
    results: list[np.ndarray]


def pieces(
    chain: Chain | None,
    steps: int,
    operations: int,
    group: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> list[Piece]:
    """Cut a call into pieces of at most `LONGEST_PIECE` operations, or of one step of one group.

    Parameters
    ----------
    chain : Chain or None
        How steps follow each other.
    steps : int
    operations : int
        Of one step of one item.
    group : int
        Items that are evaluated at once.
    arguments, results : list of ndarray

    Returns
    -------
    list of Piece
        In the order in which they must be evaluated.
    """
    whole = Piece(steps, arguments, results)
    items = len(results[0])
    if operations * items * steps <= LONGEST_PIECE:
        return [whole]
    most = group * max(1, LONGEST_PIECE // (operations * group))
    found = []
    for first in range(0, items, most):
        part = slice(first, first + most)
        given = [array[part] if len(array) > 1 else array for array in arguments]
        made = [array[part] for array in results]
        if chain is None:
            found.append(Piece(steps, given, made))
        else:
            found += _in_steps(chain, steps, operations, given, made)
    return found


def _in_steps(
    chain: Chain,
    steps: int,
    operations: int,
    arguments: list[np.ndarray],
    results: list[np.ndarray],
) -> list[Piece]:
    """Some steps of all items after each other; each piece starts where the one before ended."""
    most = max(1, LONGEST_PIECE // (operations * len(results[0])))
    found, state = [], arguments[chain.argument]
    for first in range(0, steps, most):
        part = slice(first, min(first + most, steps))
        given = [a[:, part] if i in chain.each else a for i, a in enumerate(arguments)]
        given[chain.argument] = state
        made = [result[:, part] for result in results]
        found.append(Piece(part.stop - part.start, given, made))
        state = made[chain.result][:, -1]
    return found

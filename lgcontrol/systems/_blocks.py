"""Blocks of a state by name: the outer ones, and those within blocks as well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Literal

from ..groups import LieGroup, Product


def blocks_of(state: LieGroup) -> dict[str, tuple[LieGroup, slice, slice]]:
    """Group, coordinates and tangent vector of each block of a state.

    Parameters
    ----------
    state : LieGroup
        A product's blocks have their own names; any other group is one block, "state".

    Returns
    -------
    dict of str to (LieGroup, slice, slice)
        Where a block is in coordinates (nq), and where in tangent vectors (dim).
    """
    if not isinstance(state, Product):
        return {"state": (state, slice(0, state.nq), slice(0, state.dim))}
    return {
        name: (group, state.coordinate_slice(name), state.tangent_slice(name))
        for name, group in state.blocks.items()
    }


def block_slices(group: LieGroup) -> tuple[dict[str, slice], dict[str, slice]]:
    """Where blocks are in coordinates and in tangent vectors, by name.

    Blocks in blocks have their path, ``"configuration.panda_joint1"``, and their own name where no
    other has it.

    Parameters
    ----------
    group : LieGroup

    Returns
    -------
    coordinates, tangents : dict of str to slice

    Examples
    --------
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> arm = Product(configuration=Product(shoulder=SO2, elbow=SO2), velocity=Rn(2))
    >>> coordinates, tangents = block_slices(arm)
    >>> coordinates["elbow"], tangents["configuration.elbow"]
    (slice(2, 4, None), slice(1, 2, None))
    """
    found = list(_visit("", group, 0, 0))
    counts = Counter(path.rsplit(".")[-1] for path, _, _ in found)
    paths = {path for path, _, _ in found}
    coordinates: dict[str, slice] = {}
    tangents: dict[str, slice] = {}
    for path, q, d in found:
        own = path.rsplit(".")[-1]
        names = {path, own} if counts[own] == 1 and own not in paths - {path} else {path}
        for name in sorted(names, key=len, reverse=True):
            coordinates[name], tangents[name] = q, d
    return coordinates, tangents


def place_of(
    what: str, name: str, of_state: Collection[str], of_inputs: Collection[str]
) -> tuple[Literal["state", "input", ""], str]:
    """Whether a name is one of the state's or of the inputs', and what it is called there.

    A joint and the torque that drives it often have one name: ``"state.…"`` and ``"input.…"`` tell
    them apart.

    Parameters
    ----------
    what : str
        What the name is given for, for messages.
    name : str
    of_state, of_inputs : collection of str
        Names that are known.

    Returns
    -------
    place : {"state", "input", ""}
        Empty for an unknown name.
    name : str

    Raises
    ------
    ValueError
        If it is both.

    Examples
    --------
    >>> place_of("where", "input.joint", ["joint"], ["joint"])
    ('input', 'joint')
    >>> place_of("where", "joint", ["joint"], ["joint"])
    Traceback (most recent call last):
    ...
    ValueError: where: 'joint' names a part of the state and an input: write 'state.joint' or \
'input.joint'
    """
    if name in of_state and name in of_inputs:
        raise ValueError(
            f"{what}: {name!r} names a part of the state and an input: write 'state.{name}' or "
            f"'input.{name}'"
        )
    if name in of_state:
        return "state", name
    if name in of_inputs:
        return "input", name
    before, _, own = name.partition(".")
    if before == "state" and own in of_state:
        return "state", own
    if before == "input" and own in of_inputs:
        return "input", own
    return "", name


def _visit(path: str, group: LieGroup, q: int, d: int) -> Iterator[tuple[str, slice, slice]]:
    """Blocks at every depth with their paths, the outer ones first."""
    if not isinstance(group, Product):
        return
    for name, block in group.blocks.items():
        own = f"{path}.{name}" if path else name
        yield own, slice(q, q + block.nq), slice(d, d + block.dim)
        yield from _visit(own, block, q, d)
        q, d = q + block.nq, d + block.dim

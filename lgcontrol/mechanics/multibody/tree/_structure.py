"""What follows from the links of a tree: their order, places of coordinates, names of frames."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ....codegen import unknown_name
from ....groups import LieGroup, Product
from ._link import WORLD, Frame, Link


class Place(NamedTuple):
    """Where a joint's coordinates are, ``q_joint = scale · q + shift``.

    Attributes
    ----------
    q, v : slice
        Among the tree's coordinates and velocities; those of the leader for a mimic.
    scale, shift : float
        Multiplier and offset of a mimic; else 1 and 0.
    """

    q: slice
    v: slice
    scale: float = 1.0
    shift: float = 0.0


def depth_first(added: Iterable[Link]) -> tuple[Link, ...]:
    """Links in depth-first order, children in the order they were added.

    Raises
    ------
    ValueError
        If two links or two joints have one name.
    KeyError
        If a parent is unknown, or added after its child.
    """
    children: dict[str, list[Link]] = {WORLD: []}
    taken_joints: set[str] = set()
    for link in added:
        if link.name in children:
            raise ValueError(f"two links are called {link.name!r}; names must differ")
        if link.joint_name in taken_joints:
            raise ValueError(f"two joints are called {link.joint_name!r}; names must differ")
        if link.parent not in children:
            raise KeyError(
                f"link {link.name!r}: " + unknown_name("parent link", link.parent, children)
            )
        children[link.name] = []
        children[link.parent].append(link)
        taken_joints.add(link.joint_name)
    ordered: list[Link] = []
    waiting = list(reversed(children[WORLD]))
    while waiting:
        link = waiting.pop()
        ordered.append(link)
        waiting.extend(reversed(children[link.name]))
    return tuple(ordered)


def moves_alone(link: Link) -> bool:
    """Whether a link's joint has coordinates of its own."""
    return not link.joint.is_fixed and link.mimic is None


def coordinate_places(links: Sequence[Link]) -> dict[str, Place]:
    """Place of each joint that moves.

    Raises
    ------
    KeyError
        If the leader of a mimic is unknown.
    ValueError
        If a mimic or its leader has not one coordinate.
    """
    places: dict[str, Place] = {}
    q = v = 0
    for link in filter(moves_alone, links):
        joint = link.joint
        places[link.joint_name] = Place(slice(q, q + joint.nq), slice(v, v + joint.dim))
        q, v = q + joint.nq, v + joint.dim
    leaders = dict(places)
    for link in links:
        if link.mimic is None or link.joint.is_fixed:
            continue
        name = link.mimic.joint
        if name not in leaders:
            raise KeyError(
                f"joint {link.joint_name!r} mimics {name!r}: "
                + unknown_name("leading joint", name, leaders)
            )
        leader = leaders[name]
        if (link.joint.nq, link.joint.dim, leader.q.stop - leader.q.start) != (1, 1, 1):
            raise ValueError(
                f"joint {link.joint_name!r} cannot mimic {name!r}: both need one coordinate "
                "(a revolute joint with an unwrapped angle, not a continuous one)"
            )
        own = link.mimic
        places[link.joint_name] = Place(leader.q, leader.v, own.multiplier, own.offset)
    return places


def configuration_space(links: Iterable[Link]) -> Product:
    """Product of the groups of joints that move on their own, under names that blocks may have."""
    blocks: dict[str, LieGroup] = {}
    for link in filter(moves_alone, links):
        name = re.sub(r"\W", "_", link.joint_name)
        while name in blocks:
            name += "_"
        blocks[name] = link.joint.group
    return Product(**blocks)


def check_frames(frames: Iterable[Frame], links: Iterable[Link]) -> None:
    """Refuse added frames whose name is taken, or that stand on nothing known."""
    known = dict.fromkeys([WORLD, *(link.name for link in links)])
    for frame in frames:
        if frame.name in known:
            raise ValueError(f"two frames are called {frame.name!r}; names must differ")
        if frame.link not in known:
            raise KeyError(f"frame {frame.name!r}: " + unknown_name("link", frame.link, known))
        known[frame.name] = None


def joint_frames(links: Sequence[Link], frames: Iterable[Frame]) -> dict[str, str]:
    """Joint of each joint frame that is not its link's frame under the same name."""
    taken = {WORLD, *(link.name for link in links), *(frame.name for frame in frames)}
    found = {}
    for link in links:
        name = link.joint_name
        if name == link.name and (link.offset == np.eye(4)).all():
            continue
        while name in taken:
            name = f"joint {name}"
        taken.add(name)
        found[name] = link.joint_name
    return found

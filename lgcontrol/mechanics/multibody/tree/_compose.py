"""Trees made of trees: locking joints, attaching, other link frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ....codegen import unknown_name
from ....groups import SE3
from ._joints import Joint
from ._link import WORLD, JointProperties, Link
from ._parameters import named_values
from ._placement import as_placement, as_position, freeze

if TYPE_CHECKING:
    from ._tree import Multibody

_FIXED = Joint(())


def locked(tree: Multibody, positions: Mapping[str, Any]) -> Multibody:
    """Joints replaced by fixed ones at a position; followers of a leader too."""
    known = [link.joint_name for link in tree._moving_links]
    for name in positions:
        if name not in known:
            raise KeyError(unknown_name("joint", name, known))
    links = []
    for link in tree._added_links:
        q = _locked_at(link, positions)
        links.append(link if q is None else _fixed_at(link, q))
    held = tree._with(links=links)
    left = named_values(held)
    held.parameters = tuple(name for name in tree.parameters if name in left)
    return held


def attached(
    tree: Multibody, other: Multibody, link: str, placement: np.ndarray, prefix: str
) -> Multibody:
    """The links and frames of another tree, its world on a link."""
    names = [WORLD, *(own.name for own in tree._links)]
    if link not in names:
        raise KeyError(unknown_name("link", link, names))
    if other.gravity != tree.gravity:
        raise ValueError(
            f"{other.name} has the gravity {other.gravity}, {tree.name} that carries it has "
            f"{tree.gravity}: build both with the same gravity=..."
        )

    def renamed(name: str) -> str:
        return link if name == WORLD else prefix + name

    links = list(tree._added_links)
    for own in other._added_links:
        on_world = own.parent == WORLD
        links.append(
            replace(
                own,
                name=prefix + own.name,
                parent=renamed(own.parent),
                joint_name=prefix + own.joint_name,
                placement=freeze(placement @ own.placement) if on_world else own.placement,
                mimic=own.mimic and replace(own.mimic, joint=prefix + own.mimic.joint),
            )
        )
    frames = list(tree._added_frames)
    for frame in other._added_frames:
        at = frame.placement
        frames.append(
            replace(
                frame,
                name=prefix + frame.name,
                link=renamed(frame.link),
                placement=freeze(placement @ at) if frame.link == WORLD else at,
            )
        )
    joined = tree._with(links=links, frames=frames)
    own_gravity = tuple(name for name in other.parameters if name.startswith("gravity."))
    joined.parameters = tree.parameters + tuple(
        prefix + name for name in other.parameters if name not in own_gravity
    )
    return joined


def reframed(tree: Multibody, frames: Mapping[str, Any]) -> Multibody:
    """Links with other frames; joints, inertias and everything on them stay where they are."""
    known = [link.name for link in tree._links]
    moves = {}
    for name, value in frames.items():
        if name not in known:
            raise KeyError(unknown_name("link", name, known))
        moves[name] = as_placement(f"frame of {name!r}", value)
    still = np.eye(4)
    links = []
    for link in tree._added_links:
        back = np.linalg.inv(moves.get(link.parent, still))
        own = moves.get(link.name, still)
        inertia = link.inertia
        if inertia is not None and link.name in moves:
            inertia = inertia.transformed(SE3.from_matrix(np.linalg.inv(own)))
        links.append(
            replace(
                link,
                placement=freeze(back @ link.placement),
                offset=freeze(link.offset @ own),
                inertia=inertia,
            )
        )
    added = [
        replace(
            frame, placement=freeze(np.linalg.inv(moves.get(frame.link, still)) @ frame.placement)
        )
        for frame in tree._added_frames
    ]
    return tree._with(links=links, frames=added)


def _locked_at(link: Link, positions: Mapping[str, Any]) -> np.ndarray | None:
    name = link.joint_name if link.mimic is None else link.mimic.joint
    if name not in positions:
        return None
    q = as_position(f"position of joint {name!r}", positions[name], link.joint.group)
    return q if link.mimic is None else link.mimic.multiplier * q + link.mimic.offset


def _fixed_at(link: Link, q: np.ndarray) -> Link:
    return replace(
        link,
        joint=_FIXED,
        placement=freeze(link.placement @ link.joint.transform(q)),
        properties=JointProperties(),
        mimic=None,
    )

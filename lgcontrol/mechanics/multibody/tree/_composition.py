"""Links and frames of trees made of trees: locked joints, attached trees, other link frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ....groups import SE3
from ._joint import Joint
from ._link import WORLD, AddedFrame, JointProperties, Link, LinkShape
from ._placement import as_position, freeze

_FIXED = Joint(())


def locked_links(links: Iterable[Link], positions: Mapping[str, Any]) -> list[Link]:
    """Links whose joints are fixed at a position where one is given; followers of a leader too."""
    held = []
    for link in links:
        q = _locked_at(link, positions)
        held.append(link if q is None else _fixed_at(link, q))
    return held


def attached_links(
    links: Iterable[Link], carrier: str, placement: np.ndarray, prefix: str
) -> list[Link]:
    """Links of a tree whose world stands on a link of another one."""
    return [
        replace(
            own,
            name=prefix + own.name,
            parent=carrier if own.parent == WORLD else prefix + own.parent,
            joint_name=prefix + own.joint_name,
            placement=freeze(placement @ own.placement) if own.parent == WORLD else own.placement,
            mimic=own.mimic and replace(own.mimic, joint=prefix + own.mimic.joint),
        )
        for own in links
    ]


def attached_frames(
    frames: Iterable[AddedFrame], carrier: str, placement: np.ndarray, prefix: str
) -> list[AddedFrame]:
    """Added frames of a tree whose world stands on a link of another one."""
    return [
        AddedFrame(
            prefix + frame.name,
            carrier if frame.link == WORLD else prefix + frame.link,
            freeze(placement @ frame.placement) if frame.link == WORLD else frame.placement,
        )
        for frame in frames
    ]


def reframed_links(links: Iterable[Link], moves: Mapping[str, np.ndarray]) -> list[Link]:
    """Links with other frames; joints, inertias and everything on them stay where they are."""
    still, changed = np.eye(4), []
    for link in links:
        back = np.linalg.inv(moves.get(link.parent, still))
        own = moves.get(link.name, still)
        inertia = link.inertia
        if inertia is not None and link.name in moves:
            inertia = inertia.transformed(SE3.from_matrix(np.linalg.inv(own)))
        added = link.added_mass
        if added is not None and link.name in moves:
            # Ad of T_old_new takes twists in the new frame to the old one.
            Ad = SE3.Ad(SE3.from_matrix(own))
            added = Ad.T @ added @ Ad
        changed.append(
            replace(
                link,
                placement=freeze(back @ link.placement),
                offset=freeze(link.offset @ own),
                inertia=inertia,
                added_mass=added,
                visuals=_moved(link.visuals, own),
                collisions=_moved(link.collisions, own),
            )
        )
    return changed


def _moved(shapes: Iterable[LinkShape], frame: np.ndarray) -> tuple[LinkShape, ...]:
    """Shapes in the axes of another frame of their link."""
    back = SE3.from_matrix(np.linalg.inv(frame))
    return tuple(replace(own, shape=own.shape.moved(back)) for own in shapes)


def reframed_frames(
    frames: Iterable[AddedFrame], moves: Mapping[str, np.ndarray]
) -> list[AddedFrame]:
    """Added frames that stay where they are on links with other frames."""
    still = np.eye(4)
    return [
        replace(
            frame, placement=freeze(np.linalg.inv(moves.get(frame.link, still)) @ frame.placement)
        )
        for frame in frames
    ]


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

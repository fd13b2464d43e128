"""Links with other frames, of trees made of trees, and with other numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ....groups import SE3, SO3
from ....systems import Parameter
from ..._coefficients import within
from ...inertia._inertia import SpatialInertia
from ._link import WORLD, AddedFrame, Joint, JointProperties, Link, LinkShape, as_position, freeze

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


def numbers_of(link: Link) -> dict[str, Parameter]:
    """Numbers of a link and of its joint that may become parameters, by name."""
    return _of_link(link) | _of_joint(link)


def changed_link(link: Link, changed: Mapping[str, float]) -> Link:
    """A link with the changed ones of its numbers; the same object if there are none."""
    own = {name for name in numbers_of(link) if name in changed}
    if not own:
        return link
    changes: dict[str, Any] = {}
    if link.inertia is not None and any(name in own for name in _of_link(link)):
        changes["inertia"] = _changed_inertia(link, link.inertia, changed)
    name = link.joint_name
    placed = [f"{name}.placement.{key}" for key in ("x", "y", "z", "rx", "ry", "rz")]
    if own.intersection(placed):
        placement = link.placement.copy()
        shift = zip(placed[:3], placement[:3, 3], strict=True)
        placement[:3, 3] = [changed.get(key, x) for key, x in shift]
        turn = np.array([changed.get(key, 0.0) for key in placed[3:]])
        placement[:3, :3] = placement[:3, :3] @ SO3.matrix(SO3.exp(turn))
        changes["placement"] = freeze(placement)
    filled = link.filled
    numbers = {
        key: tuple(
            changed.get(full, x)
            for full, x in zip(link.numbers_of(key), getattr(filled, key), strict=True)
        )
        for key in ("armature", "damping", "friction", "stiffness")
        if own.intersection(link.numbers_of(key))
    }
    if numbers:
        changes["properties"] = replace(link.properties, **numbers)
    return replace(link, **changes)


def _changed_inertia(
    link: Link, own: SpatialInertia, changed: Mapping[str, float]
) -> SpatialInertia:
    values = {name: changed.get(name, x.nominal) for name, x in _of_link(link).items()}
    at = [values[f"{link.name}.center_of_mass.{axis}"] for axis in "xyz"]
    tensor = [
        [values[f"{link.name}.inertia.{''.join(sorted(a + b))}"] for b in "xyz"] for a in "xyz"
    ]
    # What was fitted to measurements need not be a body's: functions of the parameters take it too.
    return SpatialInertia(values[f"{link.name}.mass"], at, tensor, check="warn")


def _of_link(link: Link) -> dict[str, Parameter]:
    own, name = link.inertia, link.name
    if own is None:
        return {}
    made = [within(Parameter(f"{name}.mass", "kg", own.mass), 0.0)]
    for axis, x in zip("xyz", own.center_of_mass, strict=True):
        made.append(Parameter(f"{name}.center_of_mass.{axis}", "m", float(x)))
    for key in ("xx", "xy", "xz", "yy", "yz", "zz"):
        entry = own.inertia["xyz".index(key[0]), "xyz".index(key[1])]
        number = Parameter(f"{name}.inertia.{key}", "kg m²", float(entry))
        made.append(within(number, 0.0) if key[0] == key[1] else number)
    return {number.name: number for number in made}


def _of_joint(link: Link) -> dict[str, Parameter]:
    name, own = link.joint_name, link.filled
    made = [
        Parameter(f"{name}.placement.{axis}", "m", float(x))
        for axis, x in zip("xyz", link.placement[:3, 3], strict=True)
    ]
    made += [Parameter(f"{name}.placement.{axis}", "rad") for axis in ("rx", "ry", "rz")]
    made += [
        Parameter(full, "", x, lower=0.0)
        for key in ("armature", "damping", "friction", "stiffness")
        for full, x in zip(link.numbers_of(key), getattr(own, key), strict=True)
    ]
    return {number.name: number for number in made}

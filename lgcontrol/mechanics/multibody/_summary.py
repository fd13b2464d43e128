"""A tree as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._link import WORLD, Link

if TYPE_CHECKING:
    from ._tree import Multibody


def summary(tree: Multibody) -> str:
    """One line for each link: joint, its group, mass."""
    depth = {WORLD: 0}
    lines = [repr(tree)]
    for link in tree.links:
        depth[link.name] = depth[link.parent] + 1
        lines.append("  " * depth[link.name] + _line(link))
    return "\n".join(lines)


def _line(link: Link) -> str:
    mass = f"{link.inertia.mass:.6g} kg" if link.inertia is not None else "no mass"
    if link.joint.is_fixed:
        return f"{link.name}: {mass}, fixed"
    groups = " · ".join(str(group) for _, group in link.joint.steps)
    text = f"{link.name}: {mass}, {link.joint_name} {groups}"
    if link.mimic is not None:
        text += f" = {link.mimic.multiplier:g} × {link.mimic.joint} + {link.mimic.offset:g}"
    return text

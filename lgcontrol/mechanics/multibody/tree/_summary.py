"""A tree as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._joint_names import name_of_steps
from ._link import WORLD, Link

if TYPE_CHECKING:
    from ._tree import Multibody


def summary(tree: Multibody) -> str:
    """One line for each link: mass, joint, its kind and axis."""
    depth = {WORLD: 0}
    lines = [repr(tree)]
    for link in tree._links:
        depth[link.name] = depth[link.parent] + 1
        lines.append("  " * depth[link.name] + _line(link))
    return "\n".join(lines)


def _line(link: Link) -> str:
    mass = f"{link.inertia.mass:.6g} kg" if link.inertia is not None else "no mass"
    kind = name_of_steps(link.joint.steps)
    own = link.joint_name != link.name and not link.joint.is_fixed
    text = f"{link.name}: {mass}, {f'{link.joint_name} ' if own else ''}{kind}"
    if link.mimic is not None:
        text += f" = {link.mimic.multiplier:g} × {link.mimic.joint} + {link.mimic.offset:g}"
    return text

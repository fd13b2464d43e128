"""Checks that links and joints form one tree, and resolves joints that mimic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import isfinite

from ._findings import Report
from ._joint import JOINT_TYPES, LARGEST_MULTIPLIER, JointDescription, JointMimic, LinkDescription
from ._xml import did_you_mean


def joint_label(joint: JointDescription) -> str:
    """How messages name a joint."""
    return f'joint "{joint.name}"'


def some(names: Iterable[str], shown: int = 12) -> str:
    """Names in quotes, the first few of many."""
    names = list(names)
    rest = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(f'"{name}"' for name in names[:shown]) + rest


def check_tree(
    links: Sequence[LinkDescription], joints: Sequence[JointDescription], report: Report
) -> str:
    """Name of the root of the one tree that the joints make of the links.

    Raises
    ------
    UrdfError
        If a name is taken twice, a link is missing or has two parents, or the links are not one
        tree.
    """
    if not links:
        raise report.error("the robot has no link; it needs at least one <link>", None, "<robot>")
    by_name = {link.name: link for link in links}
    _check_unique("link", links, report)
    _check_unique("joint", joints, report)
    moved_by: dict[str, JointDescription] = {}
    for joint in joints:
        label = joint_label(joint)
        if joint.type not in JOINT_TYPES:
            raise report.error(
                f'the type "{joint.type}" is unknown; the types are {some(JOINT_TYPES)}',
                joint.line,
                label,
            )
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in by_name:
                raise report.error(
                    f'the {role} link "{name}" does not exist{did_you_mean(name, by_name)}; '
                    f'the links are {some(by_name)}; add <link name="{name}"/> or correct the name',
                    joint.line,
                    label,
                )
        if joint.parent == joint.child:
            raise report.error(
                f'the parent and the child are the same link "{joint.parent}"', joint.line, label
            )
        if joint.child in moved_by:
            other = moved_by[joint.child]
            raise report.error(
                f'the child link "{joint.child}" already has a parent, through joint '
                f'"{other.name}" in line {other.line}; URDF describes trees: cut the loop here and '
                "close it with a constraint in the model",
                joint.line,
                label,
            )
        moved_by[joint.child] = joint
    roots = [link for link in links if link.name not in moved_by]
    if len(roots) > 1:
        second = roots[1]
        raise report.error(
            f"{len(roots)} links have no parent: {some(link.name for link in roots)}; a robot has "
            f'one root: add a joint that has child link="{second.name}", or remove the link',
            second.line,
            f'link "{second.name}"',
        )
    _check_no_cycle(links, moved_by, report)
    return roots[0].name


def _check_unique(
    kind: str, items: Sequence[LinkDescription] | Sequence[JointDescription], report: Report
) -> None:
    first: dict[str, int | None] = {}
    for item in items:
        if item.name in first:
            raise report.error(
                f'the name "{item.name}" is already taken by the {kind} in line '
                f"{first[item.name]}; names of {kind}s are unique",
                item.line,
                f'{kind} "{item.name}"',
            )
        first[item.name] = item.line


def _check_no_cycle(
    links: Sequence[LinkDescription], moved_by: dict[str, JointDescription], report: Report
) -> None:
    """Walk from each link towards the root; a walk that meets itself is a cycle."""
    safe: set[str] = set()
    for link in links:
        walk: dict[str, None] = {}
        name = link.name
        while name in moved_by and name not in safe:
            if name in walk:
                cycle = list(walk)[list(walk).index(name) :]
                joint = moved_by[name]
                raise report.error(
                    f"the links {some(reversed(cycle))} form a cycle that hangs on no root; "
                    "remove one of its joints, or attach it to the tree",
                    joint.line,
                    joint_label(joint),
                )
            walk[name] = None
            name = moved_by[name].parent
        safe.update(walk)


def resolve_mimics(
    joints: Sequence[JointDescription], report: Report
) -> tuple[JointDescription, ...]:
    """Joints with every mimic pointing to a joint that mimics none.

    For q = m q₁ + b and q₁ = m₁ q₀ + b₁ the result is q = m m₁ q₀ + (m b₁ + b).

    Raises
    ------
    UrdfError
        If a leader is missing, has not one degree of freedom, or the mimics form a cycle; if the
        factor on the leader is larger than that of any gear.
    """
    by_name = {joint.name: joint for joint in joints}
    resolved: dict[str, JointMimic] = {}

    def check(joint: JointDescription, mimic: JointMimic) -> JointDescription:
        label = f"{joint_label(joint)} <mimic>"
        leader = by_name.get(mimic.joint)
        if leader is None:
            raise report.error(
                f'the joint "{mimic.joint}" to mimic does not exist'
                f"{did_you_mean(mimic.joint, by_name)}; the joints are {some(by_name)}",
                mimic.line or joint.line,
                label,
            )
        for role, other in (("mimicking", joint), ("mimicked", leader)):
            freedom = JOINT_TYPES[other.type].freedom
            if freedom != 1:
                raise report.error(
                    f'the {role} joint "{other.name}" is {other.type} with {freedom} degrees of '
                    "freedom; only joints with one can mimic or be mimicked",
                    mimic.line or joint.line,
                    label,
                )
        return leader

    for joint in joints:
        chain: dict[str, JointDescription] = {}
        while joint.mimic is not None and joint.name not in resolved:
            if joint.name in chain:
                raise report.error(
                    f"the joints {some(chain)} mimic each other in a circle; one must mimic none",
                    joint.mimic.line or joint.line,
                    f"{joint_label(joint)} <mimic>",
                )
            chain[joint.name] = joint
            joint = check(joint, joint.mimic)
        for follower in reversed(chain.values()):
            mimic = follower.mimic
            assert mimic is not None, "only mimicking joints enter the chain"
            made = resolved[follower.name] = _through(mimic, resolved.get(mimic.joint))
            if not abs(made.multiplier) <= LARGEST_MULTIPLIER or not isfinite(made.offset):
                through = "" if made.joint == mimic.joint else f' through "{mimic.joint}"'
                raise report.error(
                    f'follows "{made.joint}"{through} by the factor {made.multiplier:g} with the '
                    f"offset {made.offset:g}: no gear has a factor above {LARGEST_MULTIPLIER:g}; "
                    "give the multiplier in rad or m of this joint per rad or m of its leader",
                    mimic.line or follower.line,
                    f"{joint_label(follower)} <mimic>",
                )
    return tuple(
        replace(joint, mimic=resolved[joint.name]) if joint.name in resolved else joint
        for joint in joints
    )


def _through(mimic: JointMimic, leader: JointMimic | None) -> JointMimic:
    """Mimic of the leader's leader."""
    if leader is None:
        return mimic
    return JointMimic(
        leader.joint,
        mimic.multiplier * leader.multiplier,
        mimic.multiplier * leader.offset + mimic.offset,
        mimic.line,
    )

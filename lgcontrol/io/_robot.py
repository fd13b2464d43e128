"""A robot as a file describes it: links and joints in one tree."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ._findings import Finding, Report
from ._joint import JointDescription, LinkDescription
from ._structure import check_tree, resolve_mimics, some
from ._xml import did_you_mean

Item = TypeVar("Item", LinkDescription, JointDescription)


@dataclass(frozen=True, slots=True, repr=False)
class RobotDescription:
    """Links and joints of a robot, checked to be one tree.

    Nothing is added, dropped or merged: links without mass keep none, fixed joints stay, joints
    that mimic say so. Two descriptions are equal when their names, links and joints are; source,
    lines and findings do not count.

    Parameters
    ----------
    name : str
        Name of the robot.
    links, joints : tuple
        In file order. Chains of mimics are resolved to the joint that mimics none.
    source : Path, optional
        The file it came from.
    findings : tuple of Finding
        What the reader noticed.

    Raises
    ------
    UrdfError
        If links and joints do not form one tree, or mimics cannot be resolved.

    Examples
    --------
    >>> from lgcontrol.io._joint import JointDescription
    >>> from lgcontrol.io._joint import LinkDescription
    >>> from lgcontrol.io import RobotDescription
    >>> robot = RobotDescription(
    ...     "pendulum",
    ...     links=(LinkDescription("stand"), LinkDescription("rod")),
    ...     joints=(JointDescription("pivot", "continuous", "stand", "rod", axis=(0, 1, 0)),),
    ... )
    >>> robot
    <RobotDescription "pendulum": 2 links, 1 joint (1 continuous), 0 kg, root "stand">
    >>> [joint.child for joint in robot.children("stand")]
    ['rod']
    """

    name: str
    links: tuple[LinkDescription, ...]
    joints: tuple[JointDescription, ...] = ()
    source: Path | None = field(default=None, compare=False)
    findings: tuple[Finding, ...] = field(default=(), compare=False)
    root: str = field(init=False, compare=False)
    _links: dict[str, LinkDescription] = field(init=False, compare=False)
    _joints: dict[str, JointDescription] = field(init=False, compare=False)
    _children: dict[str, tuple[JointDescription, ...]] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Check the structure and index it by name."""
        report = Report(self.source)
        root = check_tree(self.links, self.joints, report)
        joints = resolve_mimics(self.joints, report)
        children: dict[str, list[JointDescription]] = {link.name: [] for link in self.links}
        for joint in joints:
            children[joint.parent].append(joint)
        for name, value in (
            ("links", tuple(self.links)),
            ("joints", joints),
            ("findings", tuple(self.findings)),
            ("root", root),
            ("_links", {link.name: link for link in self.links}),
            ("_joints", {joint.name: joint for joint in joints}),
            ("_children", {link: tuple(found) for link, found in children.items()}),
        ):
            object.__setattr__(self, name, value)

    @property
    def mass(self) -> float:
        """Sum of the links' masses, kilograms."""
        return sum(link.mass for link in self.links)

    def link(self, name: str) -> LinkDescription:
        """Find the link with this name.

        Parameters
        ----------
        name : str
            Name of a link.

        Returns
        -------
        LinkDescription
            The link.

        Raises
        ------
        KeyError
            If there is none; the message lists the links.
        """
        return _find(self._links, name, "link", self.name)

    def joint(self, name: str) -> JointDescription:
        """Find the joint with this name.

        Parameters
        ----------
        name : str
            Name of a joint.

        Returns
        -------
        JointDescription
            The joint.

        Raises
        ------
        KeyError
            If there is none; the message lists the joints.
        """
        return _find(self._joints, name, "joint", self.name)

    def children(self, link: str) -> tuple[JointDescription, ...]:
        """Joints that have this link as parent, in file order.

        Parameters
        ----------
        link : str
            Name of a link.

        Returns
        -------
        tuple of JointDescription
            The joints; each one's ``child`` names the link it moves.

        Raises
        ------
        KeyError
            If there is no such link.
        """
        return self._children[self.link(link).name]

    def __repr__(self) -> str:
        """One line: counts, mass and root."""
        types = Counter(joint.type for joint in self.joints)
        kinds = ", ".join(f"{count} {kind}" for kind, count in types.items())
        parts = [
            _count(len(self.links), "link"),
            _count(len(self.joints), "joint") + (f" ({kinds})" if kinds else ""),
            f"{self.mass:.6g} kg",
            f'root "{self.root}"',
        ]
        if self.findings:
            parts.append(_count(len(self.findings), "finding"))
        return f'<RobotDescription "{self.name}": {", ".join(parts)}>'


def _find(items: dict[str, Item], name: str, kind: str, robot: str) -> Item:
    if name not in items:
        raise KeyError(
            f'robot "{robot}" has no {kind} "{name}"{did_you_mean(str(name), items)}; '
            f"its {kind}s are {some(items, 30)}"
        )
    return items[name]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")

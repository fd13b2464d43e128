"""Robot: links and joints as data, and what is wrong with their structure and their physics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite, sqrt
from pathlib import Path
from typing import TypeVar

import numpy as np

from ._findings import Finding, Report
from ._joint import (
    JOINT_TYPES,
    LARGEST_MULTIPLIER,
    InertialDescription,
    JointDescription,
    JointDynamics,
    JointLimits,
    JointMimic,
    LinkDescription,
)
from ._xml import did_you_mean

# Relative to the largest entry: above the rounding of the eigenvalues (1e-16), and below what
# the last of six printed digits can do.
ZERO = 1e-12
FILE_ROUNDING = 1e-9
# Beyond these a file is likelier to be in other units (mm, g mm²) than to be of such a robot: the
# heaviest excavators have 10,000 t and 100 m.
HEAVIEST = 1e8  # kg
LONGEST_DISTANCE = 200.0  # m, of distances and of radii of gyration


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

    An error tells of a name that is taken twice, of a link that is missing or has two parents.
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

    For q = m q₁ + b and q₁ = m₁ q₀ + b₁ the result is q = m m₁ q₀ + (m b₁ + b). Leaders must exist,
    have one degree of freedom and make no cycle; no factor may be larger than that of any gear.
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
    >>> from lgcontrol.io._joint import JointDescription, LinkDescription
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


def find_faults(robot: RobotDescription) -> tuple[Finding, ...]:
    """What no robot can have, and joints that cannot move: for descriptions made in code.

    `read_urdf` and `parse_urdf` have it among their findings, with the lines of the file.

    Examples
    --------
    >>> from lgcontrol.io._joint import JointDescription, LinkDescription
    >>> from lgcontrol.io import RobotDescription
    >>> hinge = JointDescription(
    ...     "hinge", "continuous", "post", "door", dynamics=JointDynamics(damping=-1.0)
    ... )
    >>> links = LinkDescription("post"), LinkDescription("door")
    >>> robot = RobotDescription("gate", links, (hinge,))
    >>> print(find_faults(robot)[-1])
    warning: joint "hinge" <dynamics>: the damping -1 is negative and adds energy
    """
    report = Report(robot.source)
    check_masses(robot, report)
    for joint in robot.joints:
        if joint.freedom == 0:
            continue
        label = f'joint "{joint.name}"'
        for message in limit_faults(joint.limits):
            report.add("warning", message, joint.line, f"{label} <limit>")
        for message in dynamics_faults(joint.dynamics):
            report.add("warning", message, joint.line, f"{label} <dynamics>")
    return tuple(report.findings)


def limit_faults(limits: JointLimits) -> Iterator[str]:
    """Say which magnitudes are negative, or leave a joint no force or speed."""
    for name in ("velocity", "effort", "acceleration", "deceleration", "jerk"):
        value = getattr(limits, name)
        if value is not None and value < 0.0:
            yield f"{name}={value:g} is negative; it is the greatest magnitude"
    if limits.effort == 0.0:
        yield (
            "effort=0 keeps the joint from being driven; many exporters write it where they know "
            "no limit: give the greatest force or torque"
        )
    if limits.velocity == 0.0:
        yield (
            "velocity=0 keeps the joint from moving; many exporters write it where they know no "
            "limit: give the greatest speed"
        )


def dynamics_faults(dynamics: JointDynamics) -> Iterator[str]:
    """Say which losses are negative."""
    for name in ("damping", "friction"):
        value = getattr(dynamics, name)
        if value < 0.0:
            yield f"the {name} {value:g} is negative and adds energy"


def check_masses(robot: RobotDescription, report: Report) -> None:
    """Add a warning for each inertia and distance no robot has; for joints that move no mass."""
    for joint in robot.joints:
        for message in _distance_faults("joint's origin", joint.origin.position):
            report.add("warning", message, joint.line, f'joint "{joint.name}" <origin>')
    for link in robot.links:
        if link.inertial is None:
            continue
        for message in inertial_faults(link.inertial):
            report.add("warning", message, link.inertial.line, f'link "{link.name}" <inertial>')
    _check_moved_mass(robot, report)


def inertial_faults(inertial: InertialDescription) -> Iterator[str]:
    """Say, with numbers, what keeps a mass and inertia from belonging to a body."""
    mass, inertia = inertial.mass, inertial.inertia
    largest = float(np.abs(inertia).max())
    yield from _distance_faults("center of mass", inertial.origin.position)
    if mass > HEAVIEST:
        yield f"the mass {mass:g} kg is more than any robot has; masses are in kg"
    if mass < 0.0:
        yield f"the mass {mass:g} kg is negative"
    if mass == 0.0:
        if largest > 0.0:
            yield f"the mass is 0 but the inertia is not (largest entry {largest:g} kg m²)"
        return
    if largest == 0.0:
        yield (
            f"the mass is {mass:g} kg but the inertia is all zero, that of a point; give the "
            "inertia of the body's shape"
        )
        return
    # Scaled, so that no entry overflows on the way to the eigenvalues.
    a, b, c = (
        0.0 if abs(moment) < ZERO else float(moment) * largest
        for moment in np.linalg.eigvalsh(inertia / largest)
    )
    radius = sqrt(max(c, 0.0) / mass) if mass > 0.0 else 0.0
    if radius > LONGEST_DISTANCE:
        yield (
            f"the radius of gyration is {radius:.4g} m (moment {c:.4g} kg m², mass {mass:.4g} kg); "
            "inertias are in kg m²: was it g mm² or kg mm²?"
        )
    moments = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m²"
    if a <= 0.0:
        yield f"the inertia is not positive definite: {moments}"
    elif c - (a + b) > FILE_ROUNDING * c:
        excess = c - (a + b)
        yield (
            f"the inertia breaks the triangle inequality: {moments}; the largest exceeds the sum "
            f"of the others by {excess:.3g} kg m² ({100.0 * excess / c:.3g} %)"
        )


def _distance_faults(what: str, position: np.ndarray) -> Iterator[str]:
    furthest = float(np.abs(position).max())
    if furthest > LONGEST_DISTANCE:
        yield f"the {what} is {furthest:g} m away; lengths are in m: was it mm?"


def _check_moved_mass(robot: RobotDescription, report: Report) -> None:
    """Warn of movable joints with nothing heavy behind them: the mass matrix is singular."""
    if not any(link.mass for link in robot.links):
        report.add(
            "note", "no link has mass: kinematics only, no dynamics", robot.link(robot.root).line
        )
        return
    moved = {link.name: link.mass != 0.0 for link in robot.links}
    order = [robot.root]
    for name in order:
        order.extend(joint.child for joint in robot.children(name))
    joints = {joint.child: joint for joint in robot.joints}
    for name in reversed(order[1:]):
        joint = joints[name]
        if joint.freedom and joint.mimic is None and not moved[name]:
            report.add(
                "warning",
                f'the joint moves no mass ("{name}" and all links behind it have none), so the '
                "mass matrix is singular; give a link its mass or make the joint fixed",
                joint.line,
                f'joint "{joint.name}"',
            )
        moved[joint.parent] |= moved[name]

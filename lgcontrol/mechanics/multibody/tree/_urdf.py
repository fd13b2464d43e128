"""Trees from URDF descriptions, and from screws of the joints."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from os import PathLike
from typing import Any, Literal

import numpy as np

from ....codegen._internal import check_known, check_shape, interruptible, level_outside
from ....groups import SE3, Helical, LieGroup, Translation
from ....io import RobotDescription, UrdfError, read_urdf
from ....io._internal import JointDescription, LinkDescription, MeshShape, SphereShape, find_faults
from ....io._internal import Shape as DescribedShape
from ....scene import BodyShape
from ....scene._internal import MeshFile
from ....systems._internal import FREE_FALL
from ...inertia._inertia import SpatialInertia
from ._link import WORLD, Joint, JointProperties, LinkShape, Mimic, make_link
from ._tree import AnyTree

PathText = str | PathLike[str]

ROOT_JOINT = "root_joint"

_KINDS = {"floating": "free"}
_WITHOUT_LIMITS = JointProperties()


@interruptible
def tree_from_urdf(
    kind: type[AnyTree],
    source: str | PathLike[str] | RobotDescription,
    *,
    base: str | LieGroup | Joint = "fixed",
    root: str | None = None,
    locked: Mapping[str, Any] | None = None,
    on_finding: Literal["warn", "raise", "ignore"] = "warn",
    mimic: bool = True,
    losses: bool = True,
    gravity: Any = FREE_FALL,
    packages: Mapping[str, PathText] | Iterable[PathText] = (),
) -> AnyTree:
    """Tree of a URDF file.

    Parameters
    ----------
    source : path or RobotDescription
        The file, or what `lgcontrol.io.read_urdf` made of it.
    base : str, LieGroup or Joint
        How the root link stands in the world: "fixed", "free" (its joint is called "root_joint"),
        or any joint. If the base moves, a root link called "world" without mass and with one fixed
        joint (most arms of ROS) is left out. The link behind that joint is the base.
    root : str, optional
        New name for the root link: for a file that calls a body "world".
    locked : mapping of str to coordinates, optional
        Joints to hold at a position.
    on_finding : {"warn", "raise", "ignore"}
        What to do about suspicious content, among it inertias that no body has. Otherwise negative
        damping and friction count as zero, and a negative effort or velocity as its magnitude. A
        largest effort of 0 stays: that joint cannot be driven.
    mimic : bool
        Whether joints that mimic follow their leader (they have no coordinate then); without,
        they move on their own.
    losses : bool
        Whether damping and friction of the file count. Pinocchio's functions leave them out.
    gravity : array_like, shape (3,)
    packages : mapping or iterable of paths
        Folders of the packages that names of meshes begin with (``package://…``), by name, or
        folders that hold them. Meshes are read when the tree is drawn, from these folders and that
        of the file only.

    Raises
    ------
    UrdfError
        If the file cannot be read, or has findings and they are refused.
    ValueError
        If a root link called "world" is to move and cannot be left out.

    See Also
    --------
    Multibody.attach : put a tool, a payload or another robot on a link.
    Multibody.system : ``system(["root_joint", …])`` makes the wrench on a free base an input.
    """
    if isinstance(packages, str | PathLike):
        raise TypeError("packages is a mapping or a list of folders; write [folder]")
    check_known("value of on_finding", ("warn", "raise", "ignore"), on_finding)
    robot = source if isinstance(source, RobotDescription) else read_urdf(source)
    _report(robot, on_finding)
    packages = packages if isinstance(packages, Mapping) else tuple(packages)
    if root is not None:
        robot = _with_root(robot, root)
    elif robot.root == WORLD and not Joint.of(base).is_fixed:
        robot = _without_world(robot)
    links = []
    if robot.root != WORLD:
        own = _inertia(robot.link(robot.root))
        links.append(
            make_link(
                robot.root,
                own,
                base,
                joint_name=_free_name(robot),
                **_shapes(robot, robot.root, packages),
            )
        )
    coupled = {j.name for j in robot.joints if j.mimic} | {
        j.mimic.joint for j in robot.joints if j.mimic
    }
    waiting = list(reversed(robot.children(robot.root)))
    while waiting:
        joint = waiting.pop()
        link = make_link(
            joint.child,
            _inertia(robot.link(joint.child)),
            _joint(joint, mimic and joint.name in coupled),
            joint.parent,
            joint.origin.matrix,
            joint_name=joint.name,
            properties=_properties(joint, losses),
            mimic=_mimic(joint) if mimic else None,
            **_shapes(robot, joint.child, packages),
        )
        links.append(link)
        waiting.extend(reversed(robot.children(joint.child)))
    tree = kind(robot.name or "robot", gravity)._with(links)
    return tree.lock(**locked) if locked else tree


def _with_root(robot: RobotDescription, name: str) -> RobotDescription:
    """The same robot with another name for its root link."""
    if name != robot.root and name in (WORLD, *(link.name for link in robot.links)):
        raise ValueError(f"root={name!r}: the name is taken")
    return replace(
        robot,
        links=tuple(replace(k, name=name) if k.name == robot.root else k for k in robot.links),
        joints=tuple(
            replace(j, parent=name) if j.parent == robot.root else j for j in robot.joints
        ),
    )


def _without_world(robot: RobotDescription) -> RobotDescription:
    """The robot from the one link on that its massless root link, the world, holds fast."""
    held = robot.children(WORLD)
    if robot.link(WORLD).mass or len(held) != 1 or held[0].freedom:
        reason = (
            "has mass" if robot.link(WORLD).mass
            else f"carries {len(held)} joints" if len(held) != 1
            else f"carries the joint {held[0].name!r}, which moves"
        )  # fmt: skip
        raise ValueError(
            f"{robot.source or robot.name}: the root link is called {WORLD!r} and {reason}, so it "
            'cannot be left out: give it a name of its own (root="base"), or use base="fixed"'
        )
    return replace(
        robot,
        links=tuple(link for link in robot.links if link.name != WORLD),
        joints=tuple(joint for joint in robot.joints if joint is not held[0]),
    )


def _report(robot: RobotDescription, on_finding: str) -> None:
    known = {(finding.element, finding.message) for finding in robot.findings}
    # A description that was made or changed in code has not been judged by the reader.
    new = [fault for fault in find_faults(robot) if (fault.element, fault.message) not in known]
    serious = [entry for entry in (*robot.findings, *new) if entry.severity == "warning"]
    if not serious or on_finding == "ignore":
        return
    text = "\n".join(f"  {finding}" for finding in serious)
    where = robot.source or robot.name
    if on_finding == "raise":
        first = serious[0]
        raise UrdfError(
            f"{len(serious)} findings, refused by on_finding='raise':\n{text}",
            robot.source,
            first.line,
            first.element,
        )
    warnings.warn(f"{where}: {len(serious)} findings\n{text}", stacklevel=level_outside())


def _shapes(
    robot: RobotDescription, name: str, packages: Mapping[str, PathText] | Iterable[PathText]
) -> dict[str, Any]:
    """What a link looks like, and what it collides with, in its axes."""
    link = robot.link(name)

    def made(given: DescribedShape) -> LinkShape:
        pose = SE3.from_matrix(given.origin.matrix)
        geometry, file = given.geometry, None
        if isinstance(geometry, MeshShape):
            file = MeshFile(geometry.filename, geometry.scale, robot.source, packages)
            geometry = SphereShape(0.0)
        return LinkShape(BodyShape(geometry, pose, given.color), file)

    return {
        "visuals": tuple(map(made, link.visuals)),
        "collisions": tuple(map(made, link.collisions)),
    }


def _inertia(link: LinkDescription) -> SpatialInertia | None:
    own = link.inertial
    if own is None:
        return None
    R = own.origin.rotation
    # `_report` has judged the values and said which link they belong to.
    return SpatialInertia(own.mass, own.origin.position, R @ own.inertia @ R.T, check="ignore")


def _joint(joint: JointDescription, is_coupled: bool) -> Joint:
    kind = _KINDS.get(joint.type, joint.type)
    if kind == "continuous" and is_coupled:
        kind = "revolute"  # a ratio of angles needs to count turns
    options: dict[str, Any] = {}
    if joint.axis is not None:
        options["axis"] = joint.axis
    if joint.pitch is not None:
        options["pitch"] = joint.pitch
    try:
        return Joint.of(kind, **options)
    except ValueError as error:
        raise ValueError(f"joint {joint.name!r}: {error}") from None


def _properties(joint: JointDescription, losses: bool) -> JointProperties:
    if joint.freedom == 0:
        return _WITHOUT_LIMITS
    limits, dynamics = joint.limits, joint.dynamics
    one = joint.freedom == 1

    def given(value: float | None, otherwise: float) -> float:
        return otherwise if value is None else value

    # Signs that cannot be meant are among the findings.
    return JointProperties(
        damping=max(dynamics.damping, 0.0) if losses else 0.0,
        friction=max(dynamics.friction, 0.0) if losses else 0.0,
        lower=given(limits.lower, -inf) if one else -inf,
        upper=given(limits.upper, inf) if one else inf,
        velocity=abs(given(limits.velocity, inf)),
        effort=abs(given(limits.effort, inf)),
    )


def _mimic(joint: JointDescription) -> Mimic | None:
    own = joint.mimic
    return None if own is None else Mimic(own.joint, own.multiplier, own.offset)


def _free_name(robot: RobotDescription) -> str:
    names = {joint.name for joint in robot.joints}
    name = ROOT_JOINT
    while name in names:
        name += "_"
    return name


def tree_from_screws(
    kind: type[AnyTree],
    screws: Mapping[str, Any],
    inertias: Mapping[str, SpatialInertia],
    *,
    parents: Mapping[str, str] | None = None,
    name: str = "multibody",
    gravity: Any = FREE_FALL,
) -> AnyTree:
    """Tree without joint frames: screw axes in the world at the reference configuration.

    All body frames coincide with the world frame at q = 0, and every joint is the product
    factor ``exp(Y q)`` of its screw Y.

    Parameters
    ----------
    screws : mapping of str to array_like, shape (6,)
        Screw ``[v; ω]`` of the joint of each body, in world coordinates. An axis along the unit
        vector n through the point r has ``[r × n + pitch n; n]``, a slide ``[n; 0]``.
    inertias : mapping of str to SpatialInertia
        Inertias in world coordinates at the reference configuration.
    parents : mapping of str to str, optional
        Body that carries each body; by default the one before it.
    name : str
    gravity : array_like, shape (3,)

    References
    ----------
    Müller 2018, section 4.4.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, 1.5])
    >>> tree = Multibody.from_screws({"rod": [-2, 0, 0, 0, 1, 0]}, {"rod": rod})
    >>> tree.mass_matrix([0.0])
    array([[0.66666667]])
    """
    tree = kind(name, gravity)
    check_known("body", screws, *(*inertias, *(parents or {})))
    before = WORLD
    for body, screw in screws.items():
        group, pivot = screw_joint(check_shape(f"screw of {body!r}", screw, (6,)), body)
        tree = tree.add_body(
            body,
            inertias.get(body),
            group,
            before if parents is None else parents.get(body, WORLD),
            pivot,
            offset=-pivot,
        )
        before = body
    return tree


def screw_joint(screw: np.ndarray, body: str) -> tuple[LieGroup, np.ndarray]:
    """Group of a unit screw ``[v; ω]`` and the point of its axis next to the origin.

    ``exp(Y q) = T exp((h n, n) q) T⁻¹`` with T the translation to the axis.
    """
    v, w = screw[:3], screw[3:]
    speed, turn = np.linalg.norm(v), np.linalg.norm(w)
    if turn < 1e-12:
        if abs(speed - 1.0) > 1e-9:
            raise ValueError(
                f"screw of {body!r}: a slide needs a unit direction, |v| is {speed:.9g}"
            )
        return Translation("z").about(v), np.zeros(3)
    if abs(turn - 1.0) > 1e-9:
        raise ValueError(
            f"screw of {body!r}: the angular part must be a unit vector, got {turn:.9g}"
        )
    return Helical(float(v @ w)).about(w), np.cross(w, v)

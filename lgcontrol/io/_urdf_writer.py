"""Write robots as URDF."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from os import PathLike
from xml.sax.saxutils import quoteattr

from ._archive import check_kind, with_ending
from ._joint import (
    JOINT_TYPES,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    InertialDescription,
    JointDescription,
    LinkDescription,
    MeshShape,
    Origin,
    Shape,
)
from ._robot import RobotDescription

Value = str | float | Iterable[float] | None

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def write_urdf(robot: RobotDescription, path: str | PathLike[str]) -> None:
    """Write a robot to a URDF file.

    Parameters
    ----------
    robot : RobotDescription
        The robot; reading the file gives an equal description.
    path : str or path
        The file, with ``.urdf`` where it has no ending; an existing one is replaced.

    Raises
    ------
    ValueError
        If it has another ending than ``.urdf`` or ``.xml``, and as in `format_urdf`.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from lgcontrol.io import parse_urdf, read_urdf, write_urdf
    >>> stand = parse_urdf('<robot name="stand"><link name="base"/></robot>')
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stand.urdf"
    >>> write_urdf(stand, path)
    >>> read_urdf(path) == stand
    True
    """
    check_kind("write_urdf", "robot", robot, RobotDescription)
    check_kind("write_urdf", "path", path, (str, PathLike))
    with_ending(path, (".urdf", ".xml")).write_text(
        format_urdf(robot), encoding="utf-8", newline="\n"
    )


def format_urdf(robot: RobotDescription) -> str:
    """URDF text of a robot.

    Numbers are written with the digits that give the same double back. If the robot uses additions
    of URDF 1.1 or 1.2 (quaternions, capsules, limits of acceleration and jerk), the text declares
    that version. Helical, spherical and universal joints are extensions that few other programs
    read.

    Parameters
    ----------
    robot : RobotDescription
        The robot.

    Returns
    -------
    str
        The text; parsing it gives an equal description.

    Raises
    ------
    ValueError
        If a name holds a character that XML has no way to write, or a joint has only one of the
        limits lower and upper, which URDF would complete with 0.

    Examples
    --------
    >>> from lgcontrol.io._joint import LinkDescription
    >>> from lgcontrol.io import RobotDescription, format_urdf
    >>> print(format_urdf(RobotDescription("stand", (LinkDescription("base"),))))
    <?xml version="1.0" encoding="utf-8"?>
    <robot name="stand">
      <link name="base"/>
    </robot>
    <BLANKLINE>
    """
    check_kind("format_urdf", "robot", robot, RobotDescription)
    colors: dict[tuple[float, ...], str] = {}
    for shape in _shapes(robot):
        if shape.color is not None:
            colors.setdefault(shape.color, f"color_{len(colors)}")
    content: list[str] = []
    for rgba, name in colors.items():
        content += _element("material", {"name": name}, _element("color", {"rgba": rgba}))
    for link in robot.links:
        content += _link(link, colors)
    for joint in robot.joints:
        content += _joint(joint)
    head = {"name": robot.name, "version": _version(robot)}
    return "\n".join(
        ['<?xml version="1.0" encoding="utf-8"?>', *_element("robot", head, content), ""]
    )


def _element(tag: str, attributes: Mapping[str, Value], content: Iterable[str] = ()) -> list[str]:
    """Lines of one element; attributes that are None are left out."""
    words = [f"<{tag}"]
    for name, value in attributes.items():
        if value is not None:
            words.append(f"{name}={quoteattr(_text(value))}")
    inside = [f"  {line}" for line in content]
    if not inside:
        return [" ".join(words) + "/>"]
    return [" ".join(words) + ">", *inside, f"</{tag}>"]


def _text(value: str | float | Iterable[float]) -> str:
    if isinstance(value, str):
        if wrong := _NOT_XML.search(value):
            raise ValueError(
                f"{value!r} holds {wrong.group()!r}, which XML cannot write; rename it"
            )
        return value
    numbers = value if isinstance(value, Iterable) else (value,)
    return " ".join(repr(float(number)) for number in numbers)


def _origin(pose: Origin) -> list[str]:
    if pose == Origin():
        return []
    turn = {"quat_xyzw": pose.quaternion} if pose.quaternion else {"rpy": pose.rpy}
    return _element("origin", {"xyz": pose.xyz, **turn})


def _link(link: LinkDescription, colors: Mapping[tuple[float, ...], str]) -> list[str]:
    content = [] if link.inertial is None else _inertial(link.inertial)
    for tag, shapes in (("visual", link.visuals), ("collision", link.collisions)):
        for shape in shapes:
            inside = _origin(shape.origin) + _element("geometry", {}, _geometry(shape))
            if shape.color is not None:
                inside += _element("material", {"name": colors[shape.color]})
            content += _element(tag, {"name": shape.name}, inside)
    return _element("link", {"name": link.name}, content)


def _inertial(inertial: InertialDescription) -> list[str]:
    entries = {name: getattr(inertial, name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")}
    content = _origin(inertial.origin) + _element("mass", {"value": inertial.mass})
    return _element("inertial", {}, content + _element("inertia", entries))


def _geometry(shape: Shape) -> list[str]:
    geometry = shape.geometry
    if isinstance(geometry, MeshShape):
        scale = None if geometry.scale == (1.0, 1.0, 1.0) else geometry.scale
        return _element("mesh", {"filename": geometry.filename, "scale": scale})
    if isinstance(geometry, BoxShape):
        return _element("box", {"size": geometry.size})
    if isinstance(geometry, CylinderShape | CapsuleShape):
        tag = "cylinder" if isinstance(geometry, CylinderShape) else "capsule"
        return _element(tag, {"radius": geometry.radius, "length": geometry.length})
    return _element("sphere", {"radius": geometry.radius})


def _joint(joint: JointDescription) -> list[str]:
    content = _origin(joint.origin)
    content += _element("parent", {"link": joint.parent})
    content += _element("child", {"link": joint.child})
    if joint.axis is not None and JOINT_TYPES[joint.type].axis:
        content += _element("axis", {"xyz": joint.axis, "pitch": joint.pitch})
    limits = {name: getattr(joint.limits, name) for name in joint.limits.__dataclass_fields__}
    if (limits["lower"] is None) != (limits["upper"] is None):
        raise ValueError(
            f'joint "{joint.name}" has only one of the limits lower={limits["lower"]} and '
            f"upper={limits['upper']}; URDF takes the other as 0: give both or none"
        )
    if any(value is not None for value in limits.values()):
        content += _element("limit", limits)
    if joint.dynamics.damping or joint.dynamics.friction:
        losses = {"damping": joint.dynamics.damping, "friction": joint.dynamics.friction}
        content += _element("dynamics", losses)
    if joint.mimic is not None:
        mimic = joint.mimic
        follow = {"joint": mimic.joint, "multiplier": mimic.multiplier, "offset": mimic.offset}
        content += _element("mimic", follow)
    return _element("joint", {"name": joint.name, "type": joint.type}, content)


def _shapes(robot: RobotDescription) -> Iterable[Shape]:
    for link in robot.links:
        yield from link.visuals
        yield from link.collisions


def _version(robot: RobotDescription) -> str | None:
    """URDF version that has all the robot uses; None where 1.0 does."""
    for joint in robot.joints:
        limits = joint.limits
        if not limits.acceleration is limits.deceleration is limits.jerk is None:
            return "1.2"
    poses = [joint.origin for joint in robot.joints]
    poses += [link.inertial.origin for link in robot.links if link.inertial]
    poses += [shape.origin for shape in _shapes(robot)]
    new = any(pose.quaternion for pose in poses)
    new = new or any(isinstance(shape.geometry, CapsuleShape) for shape in _shapes(robot))
    return "1.1" if new else None

"""URDF: read into a robot, with what was found on the way."""

from __future__ import annotations

import math
import stat
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import cast

from ._archive import check_kind
from ._findings import Report, UrdfError, refuse_warnings
from ._joint import (
    EXACT_NORM,
    JOINT_TYPES,
    BoxShape,
    CapsuleShape,
    CylinderShape,
    Geometry,
    InertialDescription,
    JointDescription,
    JointDynamics,
    JointLimits,
    JointMimic,
    JointType,
    LinkDescription,
    MeshShape,
    Origin,
    Shape,
    SphereShape,
    Vector3,
)
from ._robot import (
    RobotDescription,
    check_masses,
    check_tree,
    dynamics_faults,
    joint_label,
    limit_faults,
    resolve_mimics,
)
from ._xml import MAX_BYTES, Cursor, Element, did_you_mean, parse_xml, quote

# Above one turn an angle is more likely given in degrees; the margin admits a rounded 2π.
LARGEST_ANGLE = 2.0 * math.pi * 1.001

# A norm this close to 1 is the rounding of printed digits; further off, somebody meant something.
ROUNDED_NORM = 1e-3
SMALLEST_NORM = 1e-9
_SHAPES = ("box", "cylinder", "sphere", "mesh", "capsule")
# Bullet, Isaac Sim and iDynTree read spherical, mc_rtc and iDynTree ball, Drake ball, screw and
# universal (in <drake:joint>); helical is the name this toolkit and Pinocchio use for screw.
_ALIASES = {"screw": "helical", "ball": "spherical"}
# Two turns are a long cable loop; more is degrees, until it is so much that it means "no limit".
LARGEST_ANGLE_LIMIT = 4.0 * math.pi
LARGEST_DEGREES = 720.0
# Drake writes joints that URDF does not have as <drake:joint>.
_JOINT_TAGS = ("joint", "drake:joint")
_VERSIONS = ("1", "1.0", "1.1", "1.2")
SHOWN_TEXT = 40  # characters of a text in a message


def read_origin(parent: Cursor) -> Origin:
    """Pose in the <origin> child; the identity when there is none."""
    origin = parent.child("origin")
    if origin is None:
        return Origin()
    origin.check_attributes("xyz", "rpy", "quat_xyzw")
    x, y, z = origin.numbers("xyz", 3, "x y z in metres") or (0.0, 0.0, 0.0)
    rpy = origin.numbers("rpy", 3, "roll pitch yaw in radians")
    quaternion = origin.numbers("quat_xyzw", 4, "unit quaternion x y z w")
    if quaternion is not None:
        if rpy is not None:
            raise origin.fail("rpy and quat_xyzw both give the rotation; keep one")
        qx, qy, qz, qw = unit(origin, "quat_xyzw", quaternion)
        return Origin.from_quaternion((x, y, z), (qx, qy, qz, qw))
    roll, pitch, yaw = rpy or (0.0, 0.0, 0.0)
    largest = max((roll, pitch, yaw), key=abs)
    if abs(largest) > LARGEST_ANGLE:
        origin.warn(
            f'rpy="{origin.element.attributes["rpy"]}" looks like degrees ({largest:g} rad is more '
            f"than one turn); URDF angles are radians: {largest:g} degrees are "
            f"{math.radians(largest):.6g} rad"
        )
    return Origin((x, y, z), (roll, pitch, yaw))


def unit(cursor: Cursor, attribute: str, vector: tuple[float, ...]) -> tuple[float, ...]:
    """Vector divided by its norm, with a finding where the norm was not 1."""
    norm = math.hypot(*vector)
    written = cursor.element.attributes[attribute]
    if not SMALLEST_NORM < norm < 1.0 / SMALLEST_NORM:
        raise cursor.fail(
            f'{attribute}="{written}" has norm {norm:g} and gives no direction; expected a unit '
            "vector"
        )
    if abs(norm - 1.0) <= EXACT_NORM:
        return vector
    if abs(norm - 1.0) > ROUNDED_NORM:
        cursor.warn(
            f'{attribute}="{written}" has norm {norm:.9g}, expected 1; it is normalised: a scale '
            "factor has no meaning here"
        )
    elif abs(norm - 1.0) > 1e-6:
        cursor.note(f'{attribute}="{written}" has norm {norm:.9g}; it is normalised')
    return tuple(component / norm for component in vector)


Color = tuple[float, float, float, float]


def read_link(element: Cursor, colors: Mapping[str, Color]) -> LinkDescription:
    """Link of a <link> element."""
    name = element.required_text("name")
    link = Cursor(element.element, element.report, f'link "{name}"')
    link.check_attributes("name", "type")
    link.check_children("inertial", "visual", "collision", "contact", "self_collision_checking")
    return LinkDescription(
        name,
        inertial=_read_inertial(link),
        visuals=_read_shapes(link, "visual", colors),
        collisions=_read_shapes(link, "collision", colors),
        line=link.line,
    )


def _read_inertial(link: Cursor) -> InertialDescription | None:
    inertial = link.child("inertial")
    if inertial is None:
        return None
    inertial.check_children("origin", "mass", "inertia")
    mass = inertial.required_child("mass", '<mass value="..."/>')
    inertia = inertial.required_child(
        "inertia", '<inertia ixx=".." ixy=".." ixz=".." iyy=".." iyz=".." izz=".."/>'
    )
    names = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
    inertia.check_attributes(*names)
    off_diagonal = {name: inertia.number(name, "kg m²") for name in ("ixy", "ixz", "iyz")}
    absent = [name for name, value in off_diagonal.items() if value is None]
    if absent:
        inertia.warn(f"{', '.join(absent)} missing and taken as 0; URDF asks for all six entries")
    return InertialDescription(
        mass=mass.required_number("value", "mass in kg"),
        origin=read_origin(inertial),
        **{name: inertia.required_number(name, "kg m²") for name in ("ixx", "iyy", "izz")},
        **{name: value or 0.0 for name, value in off_diagonal.items()},
        line=inertial.line,
    )


def _read_shapes(link: Cursor, tag: str, colors: Mapping[str, Color]) -> tuple[Shape, ...]:
    shapes = []
    for element in link.all(tag):
        element.check_children("origin", "geometry", "material", "verbose")
        geometry = _read_geometry(element)
        origin = read_origin(element)
        material = element.child("material")
        color = None
        if material is not None:
            color = read_color(material) or colors.get(material.text("name") or "")
        if geometry is not None:
            name = element.text("name")
            shapes.append(Shape(geometry, origin, name, color, line=element.line))
    return tuple(shapes)


def read_color(material: Cursor) -> Color | None:
    """Colour that a <material> element defines, None where it only names one."""
    color = material.child("color")
    rgba = color and color.numbers("rgba", 4, "red green blue opacity from 0 to 1")
    if not color or not rgba:
        return None
    red, green, blue, opacity = rgba
    if not 0.0 <= min(rgba) <= max(rgba) <= 1.0:
        color.warn(f'rgba="{color.element.attributes["rgba"]}" leaves the range from 0 to 1')
    return red, green, blue, opacity


def _read_geometry(shape: Cursor) -> Geometry | None:
    """Geometry of a <visual> or <collision>; unknown ones are a finding, as they only draw."""
    geometry = shape.child("geometry")
    if geometry is None:
        shape.warn(f"no <geometry>; nothing is drawn. Add one of {_list_shapes()}")
        return None
    found = list(geometry.all(*_SHAPES))
    if not found:
        tags = ", ".join(f"<{child.tag}>" for child in geometry.element.children) or "nothing"
        geometry.warn(f"expected one of {_list_shapes()}, found {tags}; nothing is drawn")
        return None
    if len(found) > 1:
        found[1].warn("only the first shape of a <geometry> is used; give each one a <visual>")
    element = found[0]
    tag = element.element.tag
    if tag == "mesh":
        element.check_attributes("filename", "scale")
        sx, sy, sz = element.numbers("scale", 3, "factors along x y z") or (1.0, 1.0, 1.0)
        return MeshShape(element.required_text("filename"), (sx, sy, sz))
    if tag == "box":
        size = element.numbers("size", 3, "edge lengths x y z in metres")
        if size is None:
            raise element.fail('the attribute size is missing; write <box size="x y z"/>')
        _check_sizes(element, "size", *size)
        x, y, z = size
        return BoxShape((x, y, z))
    radius = element.required_number("radius", "metres")
    if tag == "sphere":
        _check_sizes(element, "radius", radius)
        return SphereShape(radius)
    length = element.required_number("length", "metres")
    _check_sizes(element, "radius or length", radius, length)
    return CylinderShape(radius, length) if tag == "cylinder" else CapsuleShape(radius, length)


def _check_sizes(element: Cursor, what: str, *sizes: float) -> None:
    if min(sizes) < 0.0:
        element.warn(f"the {what} {min(sizes):g} is negative")


def _list_shapes() -> str:
    return ", ".join(f"<{name}>" for name in _SHAPES)


_ELSEWHERE = {
    "cylindrical": "chain a continuous and a prismatic joint about one axis by a massless link",
    "hinge": 'MJCF\'s hinge is type="revolute" or "continuous"',
    "slide": 'MJCF\'s slide is type="prismatic"',
    "free": 'MJCF\'s free joint is type="floating"',
    "revolute2": "chain two revolute joints by a massless link",
    "gearbox": "use a revolute joint with <mimic>",
    "curvilinear": "joints along curves are not supported",
}


_LIMITS = {
    "lower": "m or rad",
    "upper": "m or rad",
    "velocity": "m/s or rad/s",
    "effort": "N or N m",
    "acceleration": "m/s² or rad/s²",
    "deceleration": "m/s² or rad/s²",
    "jerk": "m/s³ or rad/s³",
}


def read_joint(element: Cursor) -> JointDescription:
    """Joint of a <joint> element."""
    name = element.required_text("name")
    joint = Cursor(element.element, element.report, f'joint "{name}"')
    joint.check_attributes("name", "type")
    joint.check_children(
        *("parent", "child", "origin", "axis", "limit", "dynamics", "mimic"),
        *("safety_controller", "calibration"),
    )
    type_name = _read_type(joint)
    kind = JOINT_TYPES[type_name]
    return JointDescription(
        name,
        type_name,
        parent=_read_link_name(joint, "parent"),
        child=_read_link_name(joint, "child"),
        origin=read_origin(joint),
        axis=_read_axis(joint, type_name, kind),
        limits=_read_limits(joint, type_name, kind),
        dynamics=_read_dynamics(joint),
        mimic=_read_mimic(joint, kind),
        pitch=_read_pitch(joint) if type_name == "helical" else None,
        line=joint.line,
    )


def _read_type(joint: Cursor) -> str:
    written = joint.required_text("type")
    name = _ALIASES.get(written, written)
    if name not in JOINT_TYPES:
        known = sorted([*JOINT_TYPES, *_ALIASES])
        remedy = _ELSEWHERE.get(written.lower())
        hint = f"; {remedy}" if remedy else did_you_mean(written.lower(), known)
        raise joint.fail(f"type={quote(written)}: expected one of {', '.join(known)}{hint}")
    return name


def _read_link_name(joint: Cursor, tag: str) -> str:
    element = joint.required_child(tag, f'<{tag} link="..."/>')
    element.check_attributes("link")
    return element.required_text("link")


def _read_axis(joint: Cursor, type_name: str, kind: JointType) -> Vector3 | None:
    element = joint.child("axis")
    if not kind.axis:
        if type_name == "universal" and element is not None:
            element.warn("ignored: a universal joint turns about x, then about y, of its own frame")
        return None
    if element is None:
        return (1.0, 0.0, 0.0)
    element.check_attributes("xyz", "pitch")
    if "pitch" in element.element.attributes and type_name != "helical":
        element.warn(f"pitch is ignored: only a helical joint has one, this one is {type_name}")
    xyz = element.numbers("xyz", 3, "unit axis x y z")
    if xyz is None:
        raise element.fail('the attribute xyz is missing; write <axis xyz="0 0 1"/>')
    return cast(Vector3, unit(element, "xyz", xyz))


def _read_pitch(joint: Cursor) -> float:
    """Pitch in m/rad, from <axis pitch> in m/rad or <drake:screw_thread_pitch> in m/turn."""
    axis = joint.child("axis")
    pitch = None if axis is None else axis.number("pitch", "metres per radian")
    thread = joint.child("drake:screw_thread_pitch")
    if thread is not None:
        if pitch is not None:
            raise thread.fail("the pitch is given twice, here and in <axis>; keep one")
        pitch = thread.required_number("value", "metres per turn") / (2.0 * math.pi)
    if pitch is None:
        raise joint.fail(
            'a helical joint needs its pitch; write <axis xyz="0 0 1" pitch="..."/> in metres per '
            'radian, or <drake:screw_thread_pitch value="..."/> in metres per turn'
        )
    if pitch == 0.0:
        joint.warn("the pitch is 0, so the joint only turns; use a revolute or continuous joint")
    return pitch


def _read_dynamics(joint: Cursor) -> JointDynamics:
    element = joint.child("dynamics")
    if element is None:
        return JointDynamics()
    element.check_attributes("damping", "friction")
    dynamics = JointDynamics(
        damping=element.number("damping", "N s/m or N m s/rad") or 0.0,
        friction=element.number("friction", "N or N m") or 0.0,
    )
    for message in dynamics_faults(dynamics):
        element.warn(message)
    return dynamics


def _read_mimic(joint: Cursor, kind: JointType) -> JointMimic | None:
    element = joint.child("mimic")
    if element is None:
        return None
    element.check_attributes("joint", "multiplier", "offset")
    leader = element.required_text("joint")
    multiplier = element.number("multiplier", "factor")
    offset = element.number("offset", "m or rad")
    if kind.freedom == 0:
        element.note("ignored: a fixed joint has no position that could follow another")
        return None
    if multiplier == 0.0:
        element.warn("the multiplier is 0, so the joint stays at its offset; use a fixed joint")
    factor = 1.0 if multiplier is None else multiplier
    return JointMimic(leader, factor, offset or 0.0, line=element.line)


def _read_limits(joint: Cursor, type_name: str, kind: JointType) -> JointLimits:
    element = joint.child("limit")
    if kind.freedom == 0:
        return JointLimits()
    if element is None:
        if kind.bounds == "required":
            joint.warn(
                f"a {type_name} joint needs <limit>; without one it is taken as unlimited. Add "
                '<limit lower=".." upper=".." effort=".." velocity=".."/>'
            )
        return JointLimits()
    element.check_attributes(*_LIMITS)
    values = {name: element.number(name, unit_name) for name, unit_name in _LIMITS.items()}
    for message in limit_faults(JointLimits(**values)):
        element.warn(message)
    absent = [name for name in ("effort", "velocity") if values[name] is None]
    if absent and kind.bounds == "required":
        element.warn(f"{' and '.join(absent)} missing; URDF asks for both; taken as unlimited")
    if kind.bounds == "none":
        if values["lower"] is not None or values["upper"] is not None:
            element.note(
                f"lower and upper are ignored: a {type_name} joint has none; for a range use "
                'type="revolute"'
            )
        values["lower"] = values["upper"] = None
    elif kind.freedom == 1:
        _complete_bounds(element, type_name, values)
        _check_bounds(element, values, kind)
    return JointLimits(**values)


def _complete_bounds(element: Cursor, type_name: str, values: dict[str, float | None]) -> None:
    """Fill the bound that URDF takes as 0 where the other one is given."""
    absent = [name for name in ("lower", "upper") if values[name] is None]
    if len(absent) == 1:
        values[absent[0]] = 0.0
        element.note(f"{absent[0]} is missing and 0, the default of URDF")
    elif absent and type_name != "helical":
        element.warn(
            "lower and upper are missing; other readers take both as 0 and lock the joint, here it "
            'is unlimited. Give both, or use type="continuous" for a joint that turns freely'
        )


def _check_bounds(element: Cursor, values: dict[str, float | None], kind: JointType) -> None:
    lower, upper = values["lower"], values["upper"]
    if lower is None or upper is None:
        return
    if lower > upper:
        raise element.fail(f"lower={lower:g} is greater than upper={upper:g}; swap them")
    if lower == upper:
        element.warn(f"lower and upper are both {lower:g}: the joint cannot move")
    largest = max((lower, upper), key=abs)
    if not kind.angle or abs(largest) <= LARGEST_ANGLE_LIMIT:
        return
    if abs(largest) <= LARGEST_DEGREES:
        element.warn(
            f"the limit {largest:g} looks like degrees ({largest / (2.0 * math.pi):.3g} turns as "
            f"radians); URDF angles are radians: {largest:g} degrees are "
            f"{math.radians(largest):.6g} rad"
        )
    else:
        element.note(f'the limit {largest:g} rad limits nothing; type="continuous" says so')


_OTHER_FORMATS = {
    "sdf": "SDFormat",
    "world": "SDFormat",
    "model": "SDFormat",
    "mujoco": "MJCF, MuJoCo's format",
    "mujocoinclude": "MJCF, MuJoCo's format",
    "collada": "COLLADA, a mesh format",
    "launch": "a ROS launch file",
    "html": "a web page",
    "package": "a ROS package manifest",
}


def read_urdf(path: str | PathLike[str], *, strict: bool = False) -> RobotDescription:
    """Robot described by a URDF file.

    What the file says is what the description holds: links without mass keep none, nothing is
    merged, joints that mimic keep their leader. Only links, joints, materials and what belongs to
    them is read; ``<gazebo>``, ``<transmission>``, ``<safety_controller>`` and the like are left
    out.

    Parameters
    ----------
    path : str or path
        The file. Xacro files must be expanded first.
    strict : bool
        Whether warnings (a likely mistake, a body that cannot exist) are errors.

    Returns
    -------
    RobotDescription
        Links, joints, and what was noticed on the way (``findings``).

    Raises
    ------
    UrdfError
        If the file cannot be read as URDF; the message begins with ``path:line:``.

    See Also
    --------
    parse_urdf : The same from a string.

    Notes
    -----
    URDF may leave something out: an origin is then the identity, an axis (1, 0, 0). A mimic has
    multiplier 1 and offset 0, and one missing bound of a range is 0. Continuous joints have no
    bounds, fixed and floating joints no axis. Axes and quaternions are normalised. Besides URDF 1.2
    these are read: ``spherical`` or ``ball`` joints; ``helical`` or ``screw`` joints with
    ``<axis pitch="...">`` in m/rad or ``<drake:screw_thread_pitch value="...">`` in m/turn; and
    ``universal`` joints about x, then y; each as ``<joint>`` or ``<drake:joint>``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from lgcontrol.io import read_urdf
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "stand.urdf"
    >>> _ = path.write_text('<robot name="stand"><link name="base"/></robot>')
    >>> read_urdf(path).root
    'base'
    """
    if isinstance(path, str) and path.lstrip().startswith("<"):
        shown = path.strip()[:SHOWN_TEXT]
        raise UrdfError(
            f"expected the name of a file, got the text of one ({shown!r} …): parse_urdf reads text"
        )
    if not isinstance(path, str | PathLike):
        raise TypeError(f"path must be the name of a URDF file, not {path!r}")
    path = Path(path)
    report = Report(path)
    return _read_robot(_load(path, report), report, path, strict)


def parse_urdf(
    text: str | bytes, *, source: str | PathLike[str] | None = None, strict: bool = False
) -> RobotDescription:
    """Robot described by URDF text.

    Parameters
    ----------
    text : str or bytes
        The document; bytes are decoded as the XML declaration says.
    source : str or path, optional
        Source of the text, for messages and ``robot.source``.
    strict : bool
        Whether warnings are errors.

    Returns
    -------
    RobotDescription
        Links, joints and findings, as from `read_urdf`.

    Raises
    ------
    UrdfError
        If the text cannot be read as URDF; the message begins with ``source:line:``.

    Examples
    --------
    >>> from lgcontrol.io import parse_urdf
    >>> robot = parse_urdf('''
    ...   <robot name="pendulum">
    ...     <link name="stand"/>
    ...     <link name="rod">
    ...       <inertial>
    ...         <origin xyz="0 0 -0.5"/>
    ...         <mass value="2"/>
    ...         <inertia ixx="0.2" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.01"/>
    ...       </inertial>
    ...     </link>
    ...     <joint name="pivot" type="continuous">
    ...       <parent link="stand"/> <child link="rod"/>
    ...       <axis xyz="0 1 0"/>
    ...     </joint>
    ...   </robot>''')
    >>> robot
    <RobotDescription "pendulum": 2 links, 1 joint (1 continuous), 2 kg, root "stand">
    >>> robot.joint("pivot").axis
    (0.0, 1.0, 0.0)
    >>> robot.link("rod").inertial.origin.position
    array([ 0. ,  0. , -0.5])
    """
    check_kind("parse_urdf", "text", text, (str, bytes))
    path = None if source is None else Path(source)
    report = Report(path)
    return _read_robot(text, report, path, strict)


def _load(path: Path, report: Report) -> bytes:
    """Bytes of a regular file, never more than the limit."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            files = sorted(file.name for file in path.glob("*.urdf"))[:5]
            hint = f"; it holds {', '.join(files)}" if files else ""
            raise report.error(f"this is a directory, expected a URDF file{hint}", None)
        if not stat.S_ISREG(mode):
            raise report.error("this is a device or pipe; read its text and use parse_urdf", None)
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        near = _neighbour(path)
        hint = f"; did you mean {near}?" if near else ""
        raise report.error(f"there is no such file{hint}", None) from None
    except (OSError, ValueError) as error:
        if isinstance(error, UrdfError):
            raise
        raise report.error(f"the file cannot be read: {error}", None) from None


def _neighbour(path: Path) -> Path | None:
    """File beside the missing one with a similar name."""
    try:
        names = [file.name for file in path.parent.iterdir() if file.is_file()]
    except OSError:
        return None
    match = get_close_matches(path.name, names, 1)
    return path.with_name(match[0]) if match else None


def _read_robot(
    text: str | bytes, report: Report, path: Path | None, strict: bool
) -> RobotDescription:
    root = parse_xml(text, report)
    _check_root(root, report)
    robot = Cursor(root, report, "<robot>")
    robot.check_attributes("name", "version")
    version = robot.text("version")
    if version is not None and version not in _VERSIONS:
        robot.warn(f'version="{version}" is not known; read as {_VERSIONS[-1]}')
    name = robot.text("name")
    if name is None:
        robot.warn('the attribute name is missing; write <robot name="...">')
    robot.check_children("link", "joint", "material")
    colors = _read_colors(robot)
    links = tuple(read_link(Cursor(e.element, report), colors) for e in robot.all("link"))
    written = tuple(read_joint(Cursor(e.element, report)) for e in robot.all(*_JOINT_TAGS))
    try:
        # With this report, so that the errors know of the misspellings found so far.
        joints = resolve_mimics(written, report)
        check_tree(links, joints, report)
    except UrdfError as error:
        # The whole robot is meant where no link or joint is: that is the line of <robot>.
        raise UrdfError(error.message, path, error.line or root.line, error.element) from None
    for before, after in zip(written, joints, strict=True):
        if before.mimic and after.mimic and before.mimic.joint != after.mimic.joint:
            report.add(
                "note",
                f'mimics "{before.mimic.joint}", which itself mimics; resolved to '
                f'{after.mimic.multiplier:g} × "{after.mimic.joint}" + {after.mimic.offset:g}',
                after.mimic.line,
                f"{joint_label(after)} <mimic>",
            )
    description = RobotDescription(name or "", links, joints, path)
    check_masses(description, report)
    findings = tuple(sorted(report.findings, key=lambda finding: finding.line or 0))
    if strict:
        refuse_warnings(findings, path)
    return replace(description, findings=findings)


def _check_root(root: Element, report: Report) -> None:
    if root.tag == "robot":
        return
    other = _OTHER_FORMATS.get(root.tag.lower())
    if other is None:
        message = f"the outermost element is <{root.tag}>, expected <robot>; this is not URDF"
    else:
        message = (
            f"this is {other} (outermost element <{root.tag}>), not URDF; give the URDF file it "
            "belongs to or export one"
        )
    raise report.error(message, root.line)


def _read_colors(robot: Cursor) -> Mapping[str, Color]:
    """Colours by material name; the first definition counts, wherever it stands."""
    materials = list(robot.all("material"))
    for link in robot.all("link"):
        for visual in link.all("visual"):
            materials.extend(visual.all("material"))
    colors: dict[str, Color] = {}
    for material in materials:
        name = material.text("name")
        if name and name not in colors and (color := read_color(material)):
            colors[name] = color
    return colors

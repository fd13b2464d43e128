"""Read robots from URDF files."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from os import PathLike
from pathlib import Path

from ._cursor import Cursor
from ._findings import Report, UrdfError, refuse_warnings
from ._kinds import check_kind
from ._physics import check_masses
from ._robot import RobotDescription
from ._structure import check_tree, joint_label, resolve_mimics
from ._urdf_joint import read_joint
from ._urdf_link import Color, read_color, read_link
from ._xml import MAX_BYTES, Element, parse_xml

# Drake writes joints that URDF does not have as <drake:joint>.
_JOINT_TAGS = ("joint", "drake:joint")
_VERSIONS = ("1", "1.0", "1.1", "1.2")
SHOWN_TEXT = 40  # characters of a text in a message

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

"""<joint> elements of a URDF file."""

from __future__ import annotations

import math
from typing import cast

from ._cursor import Cursor, did_you_mean, quote
from ._joint import (
    JOINT_TYPES,
    JointDescription,
    JointDynamics,
    JointLimits,
    JointMimic,
    JointType,
)
from ._physics import dynamics_faults, limit_faults
from ._pose import Vector3
from ._urdf_pose import read_origin, unit

# Bullet, Isaac Sim and iDynTree read spherical, mc_rtc and iDynTree ball, Drake ball, screw and
# universal (in <drake:joint>); helical is the name this toolkit and Pinocchio use for screw.
_ALIASES = {"screw": "helical", "ball": "spherical"}
_ELSEWHERE = {
    "cylindrical": "chain a continuous and a prismatic joint about one axis by a massless link",
    "hinge": 'MJCF\'s hinge is type="revolute" or "continuous"',
    "slide": 'MJCF\'s slide is type="prismatic"',
    "free": 'MJCF\'s free joint is type="floating"',
    "revolute2": "chain two revolute joints by a massless link",
    "gearbox": "use a revolute joint with <mimic>",
    "curvilinear": "joints along curves are not supported",
}

# Two turns are a long cable loop; more is degrees, until it is so much that it means "no limit".
LARGEST_ANGLE_LIMIT = 4.0 * math.pi
LARGEST_DEGREES = 720.0

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
    """Joint of a <joint> element.

    Raises
    ------
    UrdfError
        If a name, type or number is missing or malformed.
    """
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

"""Masses, inertias, losses and limits that no robot can have."""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from ._findings import Finding, Report
from ._joint import InertialDescription, JointDynamics, JointLimits
from ._robot import RobotDescription

# Relative to the largest entry: above the rounding of the eigenvalues (1e-16), and below what
# the last of six printed digits can do.
ZERO = 1e-12
FILE_ROUNDING = 1e-9

# Beyond these a file is likelier to be in other units (mm, g mm²) than to be of such a robot: the
# heaviest excavators have 10,000 t and 100 m.
HEAVIEST = 1e8  # kg
LONGEST_DISTANCE = 200.0  # m, of distances and of radii of gyration


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

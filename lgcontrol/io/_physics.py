"""Masses and inertias that no body can have."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ._findings import Report
from ._link import InertialDescription
from ._robot import RobotDescription

# Relative to the largest entry: above the rounding of the eigenvalues (1e-16), and below what
# the last of six printed digits can do.
ZERO = 1e-12
ROUNDING = 1e-9


def check_masses(robot: RobotDescription, report: Report) -> None:
    """Add a warning for each inertia no body has, and for joints that move no mass."""
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
    moments = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m²"
    if a <= 0.0:
        yield f"the inertia is not positive definite: {moments}"
    elif c - (a + b) > ROUNDING * c:
        excess = c - (a + b)
        yield (
            f"the inertia breaks the triangle inequality: {moments}; the largest exceeds the sum "
            f"of the others by {excess:.3g} kg m² ({100.0 * excess / c:.3g} %)"
        )


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

"""Shapes of a body for scenes: of its rotors and thrusters, else the box that has its inertia."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from ...groups import SE3
from ...io._internal import BoxShape, CapsuleShape
from ...scene import BodyShape, box
from ...scene._internal import Color, DrawnForce, between, disc, turn_z_to
from ..inertia._inertia import SpatialInertia
from ._actuators import Actuators, Rotor, Thruster
from ._forces import Buoyancy, Force, WrenchInput

DARK: Color = (0.20, 0.22, 0.25, 1.0)
BLADE: Color = (0.36, 0.55, 0.80, 0.75)
AHEAD: Color = (0.86, 0.42, 0.32, 0.8)
NOSE: Color = (0.86, 0.33, 0.22, 1.0)
HULL: Color = (0.95, 0.72, 0.20, 1.0)
THINNEST_SIDE = 0.02  # of the longest side, so that rods can be seen


def body_shapes(inertia: SpatialInertia, forces: Sequence[Force]) -> list[BodyShape]:
    """Shapes of a body: arms and discs of rotors, thrusters, a hull, a box of its inertia."""
    acting = [a for force in forces if isinstance(force, Actuators) for a in force.actuators]
    rotors = [a for a in acting if isinstance(a, Rotor)]
    if rotors:
        return _rotor_shapes(rotors)
    floats = any(isinstance(force, Buoyancy) for force in forces)
    size, pose = inertia_box(inertia)
    body = _pod(size, pose) if floats else box_of_inertia(inertia)
    thrusters = [a for a in acting if isinstance(a, Thruster)]
    return [*body, *_thruster_shapes(thrusters, float(np.median(size)))]


def body_pushes(forces: Sequence[Force]) -> list[DrawnForce]:
    """Forces that are inputs of their own: pushes, gusts, an ideal thrust."""
    found = []
    for force in forces:
        if isinstance(force, WrenchInput) and {"x", "y", "z"} & {*force.axes}:
            x, y, z = (f"{force.name}.{axis}" for axis in "xyz")
            point = np.asarray(force.point, dtype=float)
            found.append(DrawnForce(force.name, (x, y, z), force.frame == "world", point))
    return found


def inertia_box(inertia: SpatialInertia) -> tuple[np.ndarray, np.ndarray]:
    """Sides [m] and pose (7,) of the box of even density with an inertia; points have none."""
    if inertia.mass <= 0:
        return np.zeros(3), SE3.identity
    principal = inertia.principal()
    squares = 6 * (principal.moments.sum() - 2 * principal.moments) / inertia.mass
    return np.sqrt(np.maximum(squares, 0.0)), principal.T_body_principal


def box_of_inertia(inertia: SpatialInertia) -> list[BodyShape]:
    """The box of even density with an inertia; none for points."""
    size, pose = inertia_box(inertia)
    longest = size.max()
    if longest <= 1e-6:
        return []
    a, b, c = (float(side) for side in np.maximum(size, THINNEST_SIDE * longest))
    return [BodyShape(BoxShape((a, b, c)), pose)]


def _pod(size: np.ndarray, pose: np.ndarray) -> list[BodyShape]:
    """A capsule along the longest side of a box."""
    along = int(size.argmax())
    radius = float(np.delete(size, along).mean() / 2)
    length = max(float(size[along]) - 2 * radius, 0.0)
    turned = np.concatenate([np.zeros(3), turn_z_to(np.eye(3)[along])])
    return [BodyShape(CapsuleShape(radius, length), SE3.compose(pose, turned), HULL)]


def _rotor_shapes(rotors: Iterable[Rotor]) -> list[BodyShape]:
    """A hub, an arm to each rotor, and the discs, no larger than that two of them touch."""
    rotors = list(rotors)
    hubs = np.array([rotor.position for rotor in rotors], dtype=float)
    arm = float(np.linalg.norm(hubs, axis=1).max()) or 0.1
    gaps = [float(np.linalg.norm(a - b)) for k, a in enumerate(hubs) for b in hubs[:k]]
    radius = 0.47 * min([gap for gap in gaps if gap > 1e-6], default=2 * arm)
    found = [box((0.62 * arm, 0.42 * arm, 0.26 * arm), color=DARK)]
    for rotor, hub in zip(rotors, hubs, strict=True):
        is_ahead = hub[0] > 0.5 * np.linalg.norm(hub)
        axis = np.asarray(rotor.axis, dtype=float)
        top = hub + 0.22 * arm * axis
        found += [
            between(np.zeros(3), hub, 0.045 * arm, NOSE if is_ahead else DARK),
            disc(hub + 0.11 * arm * axis, axis, 0.085 * arm, 0.22 * arm, DARK),
            disc(top, axis, radius, 0.02 * arm, AHEAD if is_ahead else BLADE),
        ]
    return found


def _thruster_shapes(thrusters: Iterable[Thruster], body: float) -> list[BodyShape]:
    return [
        disc(a.position, np.asarray(a.direction), 0.16 * body, 0.25 * body, DARK) for a in thrusters
    ]

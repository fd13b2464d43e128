"""Numbers of a mechanism that do not look like metres, kilograms and seconds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ..multibody import Multibody
from ..multibody.compiled._compiled_tree import compiled
from ._basic import Connection
from ._body import MechanismBody
from ._joints import MechanismJoint
from ._loop import LoopJoint

# Points of joints lie within a few radii of gyration of their body, up to a hundred on light
# sliders; millimetres taken for metres move that by a thousand.
UNUSUAL = 300.0
# Accelerations of free fall above this are no planet's, but millimetres on the Earth [m/s²].
LARGEST_GRAVITY = 300.0


class HeldPoint(NamedTuple):
    """A point of a body that a joint holds.

    Attributes
    ----------
    joint, body : str
    distance : float
        From the body's centre of mass [m].
    size : float
        Radius of gyration of the body [m].
    """

    joint: str
    body: str
    distance: float
    size: float


def warn_of_units(name: str, gravity: Iterable[float], held: Iterable[HeldPoint]) -> None:
    """Warn where points of joints and inertias, or gravity, cannot have one unit of length.

    The radius of gyration ``sqrt(tr J / 2 m)`` says how large a body is; all its points off its
    centre being far outside or far inside that is a thousand taken for one. Where all lengths are
    wrong alike only gravity can tell, and where that is too, nothing.

    Parameters
    ----------
    name : str
        Of the mechanism.
    gravity : iterable of 3 floats
        In m/s².
    held : iterable of HeldPoint
        Of all bodies that are judged.

    Warns
    -----
    UserWarning
        Names the body, its joint, both lengths and the remedy.
    """
    fall = float(np.linalg.norm([*gravity]))
    if fall > LARGEST_GRAVITY:
        warnings.warn(
            f"{name}: gravity of {fall:.6g} m/s² looks like mm/s²; lengths are in m, masses in kg, "
            "gravity in m/s²",
            UserWarning,
            stacklevel=3,
        )
    points: dict[str, list[HeldPoint]] = {}
    for point in held:
        if point.distance and point.size:
            points.setdefault(point.body, []).append(point)
    for body, each in points.items():
        joint, _, distance, size = min(
            each, key=lambda point: abs(np.log(point.distance / point.size))
        )
        if 1 / UNUSUAL <= distance / size <= UNUSUAL:
            continue
        far, unit = ("far outside", "mm") if distance > size else ("far inside", "kg mm²")
        what = "the points of its joints" if distance > size else "its moments of inertia"
        warnings.warn(
            f"{name}: joint {joint!r} holds body {body!r} {distance:.3g} m from its centre of "
            f"mass, {far} its radius of gyration of {size:.3g} m: {what} look like {unit}; give "
            "lengths in m and moments in kg m²",
            UserWarning,
            stacklevel=3,
        )


def held_by_joints(
    bodies: Mapping[str, MechanismBody], joints: Iterable[MechanismJoint]
) -> Iterator[HeldPoint]:
    """Points of a mechanism's bodies, which are given from the centres of mass."""
    for joint in joints:
        for name, point in _points(joint):
            if name in bodies:
                inertia = bodies[name].inertia
                square = float(np.trace(np.asarray(inertia.inertia))) / 2
                size = _gyration(inertia.mass, square)
                yield HeldPoint(joint.name, name, float(np.linalg.norm(point)), size)


def held_by_loop(tree: Multibody, loop: LoopJoint) -> Iterator[HeldPoint]:
    """Points of both links that a loop joins: its frames, and the joints in the tree."""
    made = compiled(tree)
    links = {k: name for name, k in made.bodies}
    joints = {k: tree.link(name).joint_name for k, name in links.items()}
    for frame in (loop.frame_a, loop.frame_b):
        k, seen = made.frames[frame]
        if k not in links:  # the world
            continue
        m, h, sigma = (np.asarray(value, dtype=float) for value in made.nodes[k].inertia)
        center = h.ravel() / m.item() if m.item() else np.zeros(3)
        size = _gyration(m.item(), float(np.trace(sigma)) - m.item() * float(center @ center))
        points = [(loop.name, seen.p), (joints[k], np.zeros(3))]
        points += [
            (joints.get(i, joints[k]), node.placement.p)
            for i, node in enumerate(made.nodes)
            if node.parent == k
        ]
        for joint, point in points:
            away = np.asarray(point, dtype=float).ravel() - center
            yield HeldPoint(joint, links[k], float(np.linalg.norm(away)), size)


def _gyration(mass: float, square: float) -> float:
    """Radius of gyration [m] of ``∫ r² dm`` about the centre of mass; 0 where there is none."""
    return float(np.sqrt(square / mass)) if mass > 0 and square > 0 else 0.0


def _points(joint: MechanismJoint) -> Iterable[tuple[str, np.ndarray]]:
    """Bodies and points in their axes that the rows of a joint hold."""
    if joint.point is not None:
        yield joint.point[0], np.asarray(joint.point[1], dtype=float)
    for row in joint.rows:
        for vector in (getattr(row, "u", None), getattr(row, "w", None)):
            if isinstance(vector, Connection):
                yield vector.i, np.asarray(vector.s_i)
                yield vector.j, np.asarray(vector.s_j)

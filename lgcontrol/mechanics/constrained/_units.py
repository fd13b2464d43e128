"""Numbers of a mechanism that do not look like metres, kilograms and seconds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from ...codegen._internal import level_outside
from ..multibody._multibody import Multibody
from ..multibody.compiled._compiled_tree import compiled
from ._basic import Connection
from ._joints import MechanismBody, MechanismJoint
from ._loop import LoopJoint

# Points of joints lie within some four radii of gyration of their body, up to a hundred on light
# sliders and down to a seventieth of it where files fill in moments: what a single body may have,
# and what most bodies of a mechanism may have (far outside, far inside).
UNUSUAL = 300.0
OUTSIDE, INSIDE = 30.0, 100.0
# Mass over the cube of the radius of gyration [kg/m³]: some 1e2 to 3e4 of robots' links and 0.07 of
# a published frame. No body of osmium has more than 2e5; a fishing rod has 0.02.
DENSEST, LIGHTEST = 2e5, 5e-3
# Only where points lie so near to the radius of gyration are moments meant to be the body's own.
NEAR_LENGTH = 10.0
# Accelerations of free fall above this are no planet's, but millimetres on the Earth [m/s²].
LARGEST_GRAVITY = 300.0


class HeldPoint(NamedTuple):
    """A point of a body that a joint holds."""

    joint: str
    body: str
    distance: float  # from the body's centre of mass [m]
    size: float  # radius of gyration of the body [m]
    mass: float  # of the body [kg]

    @property
    def ratio(self) -> float:
        """How far from the centre of mass, in radii of gyration."""
        return self.distance / self.size

    @property
    def density(self) -> float:
        """Mass over the cube of the radius of gyration [kg/m³]."""
        return self.mass / self.size**3


def warn_of_units(name: str, gravity: Iterable[float], held: Iterable[HeldPoint]) -> None:
    """Warn where points, masses, inertias and gravity cannot have one system of units.

    The radius of gyration ``sqrt(tr J / 2 m)`` says how large a body is, and with its mass how
    dense. A single body is reported if its points are a thousand times too far away. A wrong unit
    that most bodies share is seen from a factor of a hundred on, by distances or densities. What
    leaves both near to usual ones (grams of slender bodies, all lengths in feet) passes. The
    warning names the bodies, a joint of each, their lengths and the remedy.
    """
    fall = float(np.linalg.norm([*gravity]))
    points: dict[str, list[HeldPoint]] = {}
    for point in held:
        if point.distance and point.size:
            points.setdefault(point.body, []).append(point)
    nearest = [min(each, key=lambda p: abs(np.log(p.ratio))) for each in points.values()]

    def most(found: list[HeldPoint], least: int) -> list[HeldPoint]:
        return found if len(nearest) >= least and 2 * len(found) > len(nearest) else []

    far = most([p for p in nearest if p.ratio > OUTSIDE], 2)
    far = far or [p for p in nearest if p.ratio > UNUSUAL]
    deep = most([p for p in nearest if p.ratio < 1 / INSIDE], 2)
    deep = deep or [p for p in nearest if p.ratio < 1 / UNUSUAL]
    own = [p for p in nearest if 1 / NEAR_LENGTH < p.ratio < NEAR_LENGTH]
    dense = most([p for p in own if p.density > DENSEST], 1)
    light = most([p for p in nearest if p.density < LIGHTEST], 1)
    if fall > LARGEST_GRAVITY:
        found, told = [], f"gravity of {fall:.6g} m/s² looks like mm/s²"
    elif far:
        unit = "mm" if min(p.ratio for p in far) > UNUSUAL else "cm, or masses like g"
        found, told = far, f"the points of joints look like {unit}"
    elif deep:
        unit = "kg mm²" if max(p.ratio for p in deep) < 1 / UNUSUAL else "kg cm²"
        found, told = deep, f"moments of inertia look like {unit}"
    elif dense:
        found, told = dense, "denser than any matter, masses look like g"
    elif light:
        found, told = light, "so light for their size, lengths look like cm or mm"
    else:
        return
    listed = "; ".join(
        f"joint {p.joint!r} holds body {p.body!r} {p.distance:.3g} m from its centre of mass, "
        f"{p.mass:.3g} kg with a radius of gyration of {p.size:.3g} m"
        for p in found
    )
    warnings.warn(
        f"{name}: {listed}{': ' if found else ''}{told}; give lengths in m, masses in kg, moments "
        "in kg m², gravity in m/s²",
        UserWarning,
        stacklevel=level_outside(),
    )


def held_by_joints(
    bodies: Mapping[str, MechanismBody], joints: Iterable[MechanismJoint]
) -> Iterator[HeldPoint]:
    """Points of a mechanism's bodies, which are given from the centres of mass."""
    for joint in joints:
        for name, point in points_of(joint):
            if name in bodies:
                inertia = bodies[name].inertia
                square = float(np.trace(np.asarray(inertia.inertia))) / 2
                size = _gyration(inertia.mass, square)
                away = float(np.linalg.norm(point))
                yield HeldPoint(joint.name, name, away, size, inertia.mass)


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
            yield HeldPoint(joint, links[k], float(np.linalg.norm(away)), size, m.item())


def _gyration(mass: float, square: float) -> float:
    """Radius of gyration [m] of ``∫ r² dm`` about the centre of mass; 0 where there is none."""
    return float(np.sqrt(square / mass)) if mass > 0 and square > 0 else 0.0


def points_of(joint: MechanismJoint) -> Iterable[tuple[str, np.ndarray]]:
    """Bodies and points in their axes that the rows of a joint hold."""
    if joint.point is not None:
        yield joint.point[0], np.asarray(joint.point[1], dtype=float)
    for row in joint.rows:
        for vector in (getattr(row, "u", None), getattr(row, "w", None)):
            if isinstance(vector, Connection):
                yield vector.i, np.asarray(vector.s_i)
                yield vector.j, np.asarray(vector.s_j)

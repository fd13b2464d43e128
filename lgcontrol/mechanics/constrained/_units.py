"""Numbers of a mechanism that do not look like metres, kilograms and seconds."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping

import numpy as np

from ._basic import Connection
from ._body import MechanismBody
from ._joints import MechanismJoint

# Points of joints lie within a few radii of gyration of their body, up to a hundred on light
# sliders; millimetres taken for metres move that by a thousand.
UNUSUAL = 300.0
# Accelerations of free fall above this are no planet's, but millimetres on the Earth [m/s²].
LARGEST_GRAVITY = 300.0


def warn_of_units(
    name: str,
    bodies: Mapping[str, MechanismBody],
    joints: Iterable[MechanismJoint],
    gravity: np.ndarray,
) -> None:
    """Warn where points of joints and inertias, or gravity, cannot have one unit of length.

    The radius of gyration ``sqrt(tr J / 2 m)`` says how large a body is; all its points off its
    centre being far outside or far inside that is a thousand taken for one. Where all lengths are
    wrong alike only gravity can tell, and where that is too, nothing.

    Parameters
    ----------
    name : str
        Of the mechanism.
    bodies : mapping of str to MechanismBody
    joints : iterable of MechanismJoint
    gravity : ndarray, shape (3,)
        In m/s².

    Warns
    -----
    UserWarning
        Names the body, its joint, both lengths and the remedy.
    """
    fall = float(np.linalg.norm(gravity))
    if fall > LARGEST_GRAVITY:
        warnings.warn(
            f"{name}: gravity of {fall:.6g} m/s² looks like mm/s²; lengths are in m, masses in kg, "
            "gravity in m/s²",
            UserWarning,
            stacklevel=3,
        )
    points: dict[str, list[tuple[float, str]]] = {}
    for joint in joints:
        for body, point in _points(joint):
            distance = float(np.linalg.norm(point))
            if distance:
                points.setdefault(body, []).append((distance, joint.name))
    for body, held in points.items():
        if body not in bodies:
            continue
        inertia = bodies[body].inertia
        moments = float(np.trace(np.asarray(inertia.inertia)))
        if not moments > 0 or not inertia.mass > 0:
            continue
        size = float(np.sqrt(moments / 2 / inertia.mass))
        distance, joint = min(held, key=lambda each: abs(np.log(each[0] / size)))
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


def _points(joint: MechanismJoint) -> Iterable[tuple[str, np.ndarray]]:
    """Bodies and points in their axes that the rows of a joint hold."""
    if joint.point is not None:
        yield joint.point[0], np.asarray(joint.point[1], dtype=float)
    for row in joint.rows:
        for vector in (getattr(row, "u", None), getattr(row, "w", None)):
            if isinstance(vector, Connection):
                yield vector.i, np.asarray(vector.s_i)
                yield vector.j, np.asarray(vector.s_j)

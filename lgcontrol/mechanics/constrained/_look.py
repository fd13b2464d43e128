"""MechanismLook: bodies of a mechanism as capsules between the points that joints hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, trace
from ...groups import SE3
from ...io._internal import SphereShape
from ...scene import BodyShape
from ...scene._internal import DrawnBody, SceneJoint, between
from ..surroundings._look import box_of_inertia
from ._equations import MechanismEquations
from ._joints import MechanismJoint
from ._units import points_of

MECHANISM_TRAILS = 3  # bodies of a mechanism whose ways are all drawn
LINK_SHARE = 0.06  # radius of links, of the mean distance of a joint from its body


@dataclass(frozen=True, eq=False)
class MechanismLook:
    """Look of a mechanism."""

    shapes: Mapping[str, Sequence[BodyShape]]  # by body
    placements: ModelFunction  # ``q`` → SE3 coordinates of all bodies, one after the other
    block: str = "configuration"

    def bodies(self, notices: list[str]) -> Sequence[DrawnBody]:
        """All."""
        tip = np.zeros(3) if len(self.shapes) <= MECHANISM_TRAILS else None
        return [DrawnBody(name, own, tip) for name, own in self.shapes.items()]

    def poses(self, q: np.ndarray) -> np.ndarray:
        """Of the bodies."""
        return np.asarray(self.placements(q)).reshape(len(q), -1, 7)

    def joints(self, q: np.ndarray) -> Sequence[SceneJoint]:
        """None: bodies that move alone would leave their joints."""
        return ()


def mechanism_look(
    equations: MechanismEquations, joints: Iterable[MechanismJoint]
) -> MechanismLook:
    """Look of bodies with joints between them."""
    held: dict[str, list[np.ndarray]] = {name: [] for name in equations.inertias}
    for joint in joints:
        for body, point in points_of(joint):
            if body in held and not any(np.allclose(point, own) for own in held[body]):
                held[body].append(point)
    arms = [float(np.linalg.norm(p)) for points in held.values() for p in points]
    size = float(np.mean([arm for arm in arms if arm > 0] or [1.0]))

    def build(q: Any) -> Any:
        found = []
        for r, A in equations.frames(q).values():
            T = ca.blockcat([[ca.SX(A), ca.SX(r)], [ca.DM(1, 3), ca.DM(1)]])
            found.append(SE3.from_matrix(T))
        return ca.vertcat(*found)

    placements = trace(
        "body_placements",
        build,
        {"q": (equations.configuration.nq,)},
        {"T": (7 * len(equations.inertias),)},
    )
    shapes = {}
    for name, points in held.items():
        links = [
            between(np.zeros(3), p, LINK_SHARE * size) for p in points if np.linalg.norm(p) > 0
        ]
        shapes[name] = links or [
            *box_of_inertia(equations.inertias[name]),
            BodyShape(SphereShape(1.5 * LINK_SHARE * size)),
        ]
    return MechanismLook(shapes, placements)

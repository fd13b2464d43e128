"""MechanismBody: a rigid body of a mechanism, with where it is and how fast at the start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...codegen import named_options
from ...codegen._internal import check_shape
from ...groups import SE3, check_element
from ...systems._internal import check_name
from .._fields import read_only
from ..inertia._inertia import SpatialInertia
from ..surroundings._forces import Force
from ..surroundings._surroundings import check_forces
from ._basic import GROUND


@named_options
@dataclass(frozen=True, eq=False)
class MechanismBody:
    """A rigid body whose frame sits at its centre of mass.

    Parameters
    ----------
    name : str
    inertia : SpatialInertia
        With its centre of mass at the origin: points of joints are given from there.
    pose : array_like, shape (7,), optional
        Pose at the start, SE3 coordinates. A rough guess will do (see `Mechanism.assemble`).
    rates : array_like, shape (6,)
        ``[ṙ; ω]`` at the start: ṙ [m/s] in world axes, ω [rad/s] in body axes.
    forces : sequence of Force
        What acts on it besides gravity and joints.

    Examples
    --------
    >>> MechanismBody("door", SpatialInertia.box(20.0, [0.8, 0.04, 2.0])).inertia.mass
    20.0
    """

    name: str
    inertia: SpatialInertia
    pose: Any = tuple(SE3.identity)
    rates: Any = (0.0,) * 6
    forces: Sequence[Force] = ()

    def __post_init__(self) -> None:
        check_name("body", self.name)
        if not self.name.isidentifier() or self.name == GROUND:
            raise ValueError(
                f"body {self.name!r}: the name must be of letters, digits and underscores, and "
                f"{GROUND!r} is the world"
            )
        if not isinstance(self.inertia, SpatialInertia):
            given = type(self.inertia).__name__
            raise TypeError(f"body {self.name!r}: inertia must be a SpatialInertia, not {given}")
        if np.abs(self.inertia.center_of_mass).max() > 0:
            raise ValueError(
                f"body {self.name!r}: its centre of mass is at {self.inertia.center_of_mass} m of "
                "its frame, expected at the origin; give points of joints and the pose from the "
                "centre of mass, and the inertia as SpatialInertia(mass, [0, 0, 0], inertia)"
            )
        pose = check_element(f"pose of body {self.name!r}", self.pose, SE3)
        object.__setattr__(self, "pose", read_only(pose))
        rates = check_shape(f"rates of body {self.name!r}", self.rates, (6,))
        object.__setattr__(self, "rates", read_only(rates))
        object.__setattr__(self, "forces", check_forces(self.name, self.forces))

"""Motors of mechanisms: a torque or a force between two bodies, as an input."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import casadi as ca

from ...codegen import Value
from ...codegen._internal import UnknownNameError, unknown_name
from ...systems import Input
from ...systems._internal import check_name
from ._basic import GROUND, Connection, Frames, frame_of
from ._joints import Marker


@dataclass(frozen=True, eq=False)
class MechanismMotor:
    """A torque about z of a joint, or a force along it: on j as it is, on i the other way.

    Parameters
    ----------
    name : str
        Of the input.
    i, j : Marker
        Where the joint attaches; the axis is z of i.
    kind : {"torque", "force"}
        In N m about the axis, or in N along it, through the point of j.
    lower, upper : float
        Bounds.

    Examples
    --------
    >>> MechanismMotor("drive", Marker("ground"), Marker("crank")).input.unit
    'N m'
    """

    name: str
    i: Marker
    j: Marker
    kind: Literal["torque", "force"] = "torque"
    lower: float = -inf
    upper: float = inf

    def __post_init__(self) -> None:
        check_name("motor", self.name)
        if not (isinstance(self.i, Marker) and isinstance(self.j, Marker)):
            raise TypeError(
                f"motor {self.name!r} acts between markers such as Marker('ground'), not "
                f"{self.i!r} and {self.j!r}"
            )
        if {self.i.body, self.j.body} == {GROUND}:
            raise ValueError(f"motor {self.name!r} acts between the ground and itself, on no body")
        if self.kind not in ("torque", "force"):
            raise UnknownNameError(unknown_name("kind of motor", self.kind, ("torque", "force")))

    @property
    def input(self) -> Input:
        """Input of the System."""
        unit = "N m" if self.kind == "torque" else "N"
        return Input(self.name, unit, self.lower, self.upper)

    def wrenches(self, frames: Frames) -> dict[str, tuple[Any, Any]]:
        """Force in world axes and torque in body axes for one unit, by body."""
        axis = frame_of(frames, self.i.body)[1] @ ca.DM(self.i.z)
        found: dict[str, tuple[Any, Any]] = {}
        for marker, sign in ((self.i, -1.0), (self.j, 1.0)):
            if marker.body == GROUND:
                continue
            rotation = frame_of(frames, marker.body)[1]
            if self.kind == "torque":
                found[marker.body] = (ca.DM(3, 1), sign * (rotation.T @ axis))
                continue
            lever = self._lever(marker.body, frames)
            turned = rotation.T @ axis
            found[marker.body] = (sign * axis, sign * ca.cross(lever, turned))
        return found

    def _lever(self, body: str, frames: Frames) -> Value:
        """Point of j in axes of a body, from its origin."""
        whole = Connection(body, (0.0, 0.0, 0.0), self.j.body, self.j.point).world(0.0, frames)
        return frame_of(frames, body)[1].T @ whole

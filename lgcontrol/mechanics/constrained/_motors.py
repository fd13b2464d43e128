"""Motors of mechanisms: a torque or a force between two bodies, as an input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import casadi as ca

from ...codegen import Value, named_options
from ...codegen._internal import UnknownNameError, unknown_name
from ...systems import Input
from ...systems._internal import check_name
from ._basic import GROUND, Frames, frame_of
from ._joints import Marker, passing_velocity, placed, turn_rate


@named_options(own="i j kind")
@dataclass(frozen=True, eq=False)
class MechanismMotor:
    """A torque about z of a joint, or a force along it: on j as it is, on i the other way.

    Parameters
    ----------
    name : str
        Of the input.
    i, j : Marker
        Markers of the joint; its axis is z of i.
    kind : {"torque", "force"}
        In N m about the axis, or in N along it, through the point of j.
    lower, upper : float
        Bounds.
    curve : callable, optional
        ``(u, w) → effort`` on CasADi values, if the effort depends on the speed w about or along
        the axis [rad/s or m/s]. A direct-current motor with the voltage u has ``lambda u, w: k *
        (u - k * w) / R``. The effort is u if left out.
    unit : str, optional
        Of u; that of the effort if left out.

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
    curve: Callable[[Value, Value], Value] | None = None
    unit: str | None = None

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
        return Input(self.name, unit if self.unit is None else self.unit, self.lower, self.upper)

    def speeds(self, frames: Frames, rates: Frames) -> Any:
        """Speed w [rad/s or m/s] that the motor drives: about or along z of i."""
        if self.kind == "torque":
            return turn_rate(self.i, self.j, self.i, "z", frames, rates)
        passing = passing_velocity(self.i.body, self.j.body, placed(self.j, frames), frames, rates)
        return ca.dot(frame_of(frames, self.i.body)[1] @ ca.DM(self.i.z), passing)

    def effort(self, u: Value, w: Value) -> Any:
        """Torque or force at a speed."""
        return u if self.curve is None else self.curve(u, w)

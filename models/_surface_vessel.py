"""Surface vessel: surge, sway and yaw on SE(2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import SE2, Product
from lgcontrol.mechanics import (
    BodyMotion,
    Coefficient,
    Current,
    Force,
    RigidBody,
    SpatialInertia,
    WrenchInput,
)
from lgcontrol.scene import box
from lgcontrol.scene._internal import hull
from lgcontrol.systems import Input, System

# The source has z down and y right; half a turn about x gives z up and y left. Sway v, yaw rate r,
# Y and N change their signs by it, and X does not. Every term of Y and N is odd in (v, r), none of
# X depends on them, so the coefficients stay what they are.
MASS, X_G, I_Z = 23.8, 0.046, 1.760  # kg, m, kg m² about the body frame's origin
ADDED_MASS = np.diag([2.0, 10.0, 0, 0, 0, 1.0])  # −X_du, −Y_dv, −N_dr [kg, kg, kg m²]
# Of the ship in its length and beam; depth and superstructure are drawn, not measured.
SHAPES = (
    hull(1.255, 0.29, 0.14, (0.24, 0.34, 0.46, 1.0), top=0.05),
    box((0.22, 0.2, 0.14), center=(0.28, 0.0, 0.12), color=(0.93, 0.94, 0.95, 1.0)),
    box((0.5, 0.22, 0.03), center=(-0.25, 0.0, 0.065), color=(0.80, 0.62, 0.36, 1.0)),
)


@dataclass(frozen=True, eq=False)
class ManeuveringDrag(Force):
    """Drag of a hull in surge, sway and yaw, as in manoeuvring models of ships.

    ``X = X_u u + X_uu |u|u + X_uuu u³``; Y and N are sums of coefficients times
    ``v, r, |v|v, |r|v, |v|r, |r|r``. Velocities are those relative to the water.

    Parameters
    ----------
    X : sequence of 3 floats
        Coefficients of the surge force [N].
    Y, N : sequence of 6 floats
        Coefficients of the sway force [N] and of the yaw moment [N m].
    name : str
        Name of the force.
    """

    X: Sequence[float] = (-0.72253, -1.32742, -5.86643)
    Y: Sequence[float] = (-0.88965, -7.250, -36.47287, -0.805, -0.845, -3.450)
    N: Sequence[float] = (0.03130, -1.900, 3.95645, 0.130, 0.080, -0.750)
    name: str = "drag"

    @property
    def coefficients(self) -> Mapping[str, Coefficient]:
        """All coefficients, in SI units of their terms."""
        across = ("v", "r", "vv", "rv", "vr", "rr")
        return {
            "X": Coefficient(np.array(self.X), labels=("u", "uu", "uuu")),
            "Y": Coefficient(np.array(self.Y), labels=across),
            "N": Coefficient(np.array(self.N), labels=across),
        }

    def _wrench(self, motion: BodyMotion, u: Any, c: Mapping[str, Any]) -> Any:
        surge, sway, yaw = motion.relative_twist[0], motion.relative_twist[1], motion.twist[5]
        v, r = ca.fabs(sway), ca.fabs(yaw)
        along = ca.vertcat(surge, ca.fabs(surge) * surge, surge**3)
        across = ca.vertcat(sway, yaw, v * sway, r * sway, v * yaw, r * yaw)
        X, Y, N = ca.dot(c["X"], along), ca.dot(c["Y"], across), ca.dot(c["N"], across)
        return ca.vertcat(X, Y, ca.DM(3, 1), N)


@named_options
def surface_vessel(
    *,
    max_surge: float = 2.0,
    max_sway: float = 1.5,
    max_yaw: float = 1.5,
    current: Sequence[float] | None = None,
    symbolic: Sequence[str] = (),
) -> System[Product]:
    """Surface vessel on SE(2), driven in surge, sway and yaw (CyberShip II).

    A supply ship in scale 1:70, 1.255 m long. The body frame is that of the source
    with y to the left and z up; the centre of mass is 46 mm ahead of its origin. The identified
    drag is not dissipative in every direction: its linear part couples yaw strongly into sway.

    Parameters
    ----------
    max_surge, max_sway : float
        Largest force along each body axis [N].
    max_yaw : float
        Largest moment [N m].
    current : sequence of 3 floats, optional
        Velocity of the water in world axes [m/s], with disturbance inputs that add to it; water at
        rest, and no such inputs, if left out.
    symbolic : sequence of str
        Coefficients that stay symbolic, see `lgcontrol.mechanics.RigidBody`: "mass", "drag.X",
        "drag.N.r", ….

    Returns
    -------
    System
        State: pose (SE2) and twist. Inputs: surge, sway, yaw, and as disturbances a force in world
        axes, a moment and, if asked for, the current's velocity.

    References
    ----------
    R. Skjetne, Ø. N. Smogeli, T. I. Fossen: A nonlinear ship manoeuvering model: identification and
    adaptive control with experiments for a model ship. Modeling, Identification and Control 25(1),
    2004, tables 1, 2 and 4. Largest forces: M. Wondergem, E. Lefeber, K. Y. Pettersen,
    H. Nijmeijer: Output feedback tracking of ships. IEEE Trans. Control Systems Technology 19(2),
    2011.

    Examples
    --------
    >>> vessel = surface_vessel()
    >>> vessel.trim(where={"twist.vx": 0.5, "twist.vy": 0.0, "twist.wz": 0.0}).u[0].round(3)
    np.float64(1.426)
    """
    about_com = I_Z - MASS * X_G**2
    body = RigidBody(
        "surface_vessel",
        SE2,
        # In the plane only the moment about z matters: that of a rod along x.
        SpatialInertia(MASS, np.array([X_G, 0.0, 0.0]), np.diag([0.0, about_com, about_com])),
        [
            WrenchInput(("x", "y", "rz"), name="thrust"),
            WrenchInput(("x", "y"), frame="world", role="disturbance", name="force"),
            WrenchInput(("rz",), role="disturbance", name="torque"),
            ManeuveringDrag(),
        ],
        added_mass=ADDED_MASS,
        current=None if current is None else Current(current, is_input=True),
        shapes=SHAPES,
    ).symbolic(*as_names(symbolic))
    controls = [
        Input("surge", "N", -max_surge, max_surge),
        Input("sway", "N", -max_sway, max_sway),
        Input("yaw", "N m", -max_yaw, max_yaw),
    ]
    return body.system(inputs=[*controls, *body.inputs[3:]])

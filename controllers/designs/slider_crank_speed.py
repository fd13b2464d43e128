"""A slider-crank with friction and a motor with a curve follows a profile of speed by TVLQR."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import TVLQR
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import (
    CD,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    MechanismMotor,
    angle_drive,
    joint_friction,
    revolute,
    translational,
)
from lgcontrol.simulation import Task
from lgcontrol.systems import Trajectory

from ._criteria import largest_error

RADIUS, ROD = 0.06, 0.2  # m, of the crank, and between the pins of the rod
CRANK, PISTON = 4e-3, 0.6  # kg m², kg
CONSTANT, RESISTANCE, VOLTAGE = 0.08, 0.3, 9.0  # N m/A or V s/rad, Ω, V
BEARING, RING = 0.05, 3.0  # N m and N, of friction
# The speed changes by [rad/s] from a time on [s], within a while [s].
CHANGES = ((20.0, 0.1, 0.6), (-10.0, 1.1, 0.3), (-10.0, 1.7, 0.4))
SECONDS, DT = 2.4, 0.005
SETTLED = 0.5  # s, when the start is forgotten
AHEAD, SPREAD = 0.12, 0.03  # rad, of the start
TURN = slice(4, 5)  # place of the rotation of the crank, the first body, about y


def design(seed: int = 0) -> Task:
    """Slider-crank follows a profile of speed against friction and the piston.

    The mechanism with a drive in place of its motor is the inverse dynamics. The drive's multiplier
    is the torque that the profile takes, and the curve of the motor makes it a voltage. TVLQR about
    that motion corrects angle and speed of the crank. The true piston is a fifth heavier and
    friction is half as large again; the crank starts beside the profile.

    Parameters
    ----------
    seed : int
        Of the start.
    """
    machine = mechanism()
    model, plant = (own.system(independent="shaft") for own in (machine, mechanism(1.2, 1.5)))
    t = np.linspace(0, SECONDS, round(SECONDS / DT) + 1)
    motor = machine.motors["voltage"]
    wanted = machine.with_joints(angle_drive("drive", motor.i, motor.j, profile)).kinematics(t)
    voltage = wanted.multipliers[:, [-1]] * RESISTANCE / CONSTANT
    motion = Trajectory(
        model.state, t, np.hstack([wanted.q, wanted.v]), voltage, inputs=model.inputs
    )

    def draw(seed: int) -> dict[str, Any]:
        beside = AHEAD + np.random.default_rng(seed).uniform(-SPREAD, SPREAD)
        return {"x0": machine.state(machine.assemble(where={"shaft": beside}))}

    return Task(
        plant=plant,
        controller=TVLQR(model, motion, Q=[3e3, 3.0], R=1e-2),
        **draw(seed),
        draw=draw,
        seconds=SECONDS,
        reference=motion,
        criteria=(
            largest_error(
                f"error of the speed from {SETTLED:g} s on",
                "velocity",
                TURN,
                "rad/s",
                1.0,
                since=SETTLED,
            ),
            largest_error(
                f"error of the angle from {SETTLED:g} s on",
                "configuration",
                TURN,
                "rad",
                0.05,
                since=SETTLED,
            ),
        ),
    )


def profile(t: Value) -> Value:
    """Angle of the crank [rad] whose rate goes from one speed to the next."""
    angle: Value = 0.0
    for change, start, span in CHANGES:
        s = ca.fmax(0.0, ca.fmin((t - start) / span, 1.0))
        after = ca.fmax(0.0, t - start - span)
        angle += change * (span * (2.5 * s**4 - 3 * s**5 + s**6) + after)
    return angle


def mechanism(weight: float = 1.0, friction: float = 1.0) -> Mechanism:
    """Crank, rod and slider in the x-z plane, the slider along x, at the outer dead point.

    Parameters
    ----------
    weight : float
        Of the piston next to the nominal one.
    friction : float
        Next to the nominal one.
    """
    crank = SpatialInertia(1.2, [0, 0, 0], np.diag([CRANK / 2, CRANK, CRANK / 2]))
    block = SpatialInertia.box(weight * PISTON, [0.05] * 3)
    level = (0.0, 0.0, 0.0, 1.0)
    bodies = [
        MechanismBody("crank", crank, [0, 0, 0, *level]),
        MechanismBody(
            "rod", SpatialInertia.box(0.3, [ROD, 0.02, 0.02]), [RADIUS + ROD / 2, 0, 0, *level]
        ),
        MechanismBody("slider", block, [RADIUS + ROD, 0, 0, *level]),
    ]
    across = [0, -1, 0]  # angles count from x to z
    shaft = (Marker("ground", z=across), Marker("crank", z=across))
    rail = (
        Marker("ground", [RADIUS + ROD, 0, 0], z=[1, 0, 0]),
        Marker("slider", z=[1, 0, 0]),
    )
    ends = "crank", [RADIUS, 0, 0], "rod", [-ROD / 2, 0, 0]
    wrist = Marker("rod", [ROD / 2, 0, 0], z=across), Marker("slider", z=across)
    return Mechanism(
        "slider_crank",
        bodies,
        [
            revolute("shaft", *shaft),
            MechanismJoint("pin", [CD("x", [1, 0, 0], *ends), CD("z", [0, 0, 1], *ends)]),
            revolute("wrist", *wrist),
            translational("rail", *rail),
        ],
        motors=[
            MechanismMotor(
                "voltage",
                *shaft,
                lower=-VOLTAGE,
                upper=VOLTAGE,
                curve=lambda u, w: CONSTANT * (u - CONSTANT * w) / RESISTANCE,
                unit="V",
            )
        ],
        forces=[
            joint_friction("bearing", *shaft, coulomb=friction * BEARING, width=0.1),
            joint_friction("ring", *rail, coordinate="z", coulomb=friction * RING, width=0.02),
        ],
    )

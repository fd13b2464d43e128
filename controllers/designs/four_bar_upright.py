"""A four-bar with springs carries a load above itself, held upright by LQR."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.controllers import LQR
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import (
    CD,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    MechanismMotor,
    joint_friction,
    revolute,
    spring_damper,
    torsion_spring,
)
from lgcontrol.simulation import Criterion, SimulationResult, Task
from lgcontrol.systems import System

HEIGHT, WIDTH = 0.4, 0.3  # m, of the bars, and between their hinges
LOW, HIGH = (0.0, 0.0, -HEIGHT / 2), (0.0, 0.0, HEIGHT / 2)  # ends of a bar
BAR, LOAD = 0.5, 6.0  # kg
TORSION = 8.0  # N m/rad, at the left hinge: less than the weight takes
DIAGONAL, REST = 150.0, 0.45  # N/m, m, of the spring from the right hinge to the left corner
CONSTANT, RESISTANCE, VOLTAGE = 1.0, 1.5, 24.0  # N m/A or V s/rad after the gear, Ω, V
FRICTION = 0.1  # N m, of each hinge of the ground
LEAN = 0.1  # rad, where the load is held
BESIDE, SPREAD = 0.16, 0.03  # rad, of the start next to that
SECONDS, DT = 2.0, 0.005
SETTLED = 1.0  # s
TURN = 4  # place of the rotation of the left bar, the first body, about y


def design(seed: int = 0) -> Task:
    """Four-bar holds a load above its hinges, where its springs alone let it fall.

    The springs carry three fifths of the moment of the weight. The load is held out of the
    vertical, and `trim` finds the voltage of the motor there. LQR about that equilibrium sees the
    mechanism through the angle of one hinge. The true load is a tenth heavier and friction twice as
    large, and the start takes all the voltage that there is.

    Parameters
    ----------
    seed : int
        Of the start.
    """
    machine = mechanism()
    model = machine.system(independent="left_hinge", at=machine.assemble(where=_angle(LEAN)))
    plant = mechanism(1.1, 2.0).system(independent="left_hinge")
    point = model.trim(machine.state(machine.assemble(where=_angle(LEAN))))

    def draw(seed: int) -> dict[str, Any]:
        beside = BESIDE + np.random.default_rng(seed).uniform(-SPREAD, SPREAD)
        return {"x0": machine.state(machine.assemble(where=_angle(LEAN + beside)))}

    def heavier(share: float, factor: float) -> tuple[System, dict[str, float]]:
        """On the same springs, which `scaled_inertia` would let grow along."""
        other = mechanism(1.1, 2.0 * (1 + factor), share)
        return other.system(independent="left_hinge"), {}

    return Task(
        plant=plant,
        controller=LQR(model, point, Q=[3e3, 10.0], R=0.1, dt=DT),
        **draw(seed),
        draw=draw,
        seconds=SECONDS,
        reference=point,
        criteria=(
            Criterion(
                f"error of the angle from {SETTLED:g} s on", angle_error, 0.01, "rad", since=SETTLED
            ),
            Criterion("largest error of the angle", angle_error, 0.25, "rad"),
        ),
        perturbed=heavier,
    )


def mechanism(weight: float = 1.0, friction: float = 1.0, share: float = 0.0) -> Mechanism:
    """Two upright bars of one length, the load on the coupler between them, in the x-z plane.

    Parameters
    ----------
    weight, friction : float
        Of the load and of the hinges next to the nominal ones.
    share : float
        By which all masses and inertias are larger.
    """
    level = (0.0, 0.0, 0.0, 1.0)
    bar = SpatialInertia.box((1 + share) * BAR, [0.03, 0.03, HEIGHT])
    load = SpatialInertia.box((1 + share) * weight * LOAD, [WIDTH, 0.1, 0.1])
    middle = WIDTH / 2
    bodies = [
        MechanismBody("left", bar, [-middle, 0, HEIGHT / 2, *level]),
        MechanismBody("load", load, [0, 0, HEIGHT, *level]),
        MechanismBody("right", bar, [middle, 0, HEIGHT / 2, *level]),
    ]
    y = [0, 1, 0]
    left = Marker("ground", [-middle, 0, 0], z=y), Marker("left", LOW, z=y)
    right = Marker("ground", [middle, 0, 0], z=y), Marker("right", LOW, z=y)
    corner = Marker("left", HIGH, z=y), Marker("load", [-middle, 0, 0], z=y)
    ends = "right", HIGH, "load", [middle, 0, 0]
    return Mechanism(
        "four_bar",
        bodies,
        [
            revolute("left_hinge", *left),
            revolute("corner", *corner),
            MechanismJoint("pin", [CD("x", [1, 0, 0], *ends), CD("z", [0, 0, 1], *ends)]),
            revolute("right_hinge", *right),
        ],
        motors=[
            MechanismMotor(
                "voltage",
                *left,
                lower=-VOLTAGE,
                upper=VOLTAGE,
                curve=lambda u, w: CONSTANT * (u - CONSTANT * w) / RESISTANCE,
                unit="V",
            )
        ],
        forces=[
            torsion_spring("torsion", *left, stiffness=TORSION),
            spring_damper("diagonal", right[0], corner[1], length=REST, stiffness=DIAGONAL),
            joint_friction("left_friction", *left, coulomb=friction * FRICTION),
            joint_friction("right_friction", *right, coulomb=friction * FRICTION),
        ],
    )


def _angle(value: float) -> dict[str, float]:
    return {"left_hinge": value}


def angle_error(run: SimulationResult) -> np.ndarray:
    """Size of the error of the left bar's angle [rad], shape (N,)."""
    return np.abs(run.block_error("configuration")[:, TURN])

"""A tumbling satellite is caught by its wheels and held for a day, with its books kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from lgcontrol.codegen import ModelFunction
from lgcontrol.controllers import GeometricPD
from lgcontrol.groups import SO3, Product
from lgcontrol.mechanics import GyroscopicWheels, Gyrostat, RigidBody, SpatialInertia
from lgcontrol.simulation import Criterion, SimulationResult, Task
from lgcontrol.systems import System

from ._criteria import error_at_end, failed_calls

INERTIA = (900.0, 800.0, 600.0)  # kg m²
NUMBERS = ("inertia.xx", "inertia.yy", "inertia.zz")
FRICTION = 2e-6  # of a wheel's bearing [N m s/rad]
STEP = 0.5  # s


def design(seed: int = 0) -> Task:
    """Tumbling satellite is caught by its wheels and held for a day.

    Nothing acts from outside, so the angular momentum of body and wheels in space stays. The wheels
    run on with the momentum of the tumbling; motors feed the losses of the bearings. Steps of 0.5 s
    are those of a variational method, which keeps that momentum to rounding. The energy it ends
    with is the work of the motors less the losses.

    Parameters
    ----------
    seed : int
        Of attitude and tumbling.
    """
    inertia = SpatialInertia(750.0, np.zeros(3), np.diag(INERTIA))
    craft = Gyrostat(
        RigidBody("satellite", SO3, inertia).symbolic(*NUMBERS),
        GyroscopicWheels(np.eye(3), 0.08, friction=FRICTION, max_torque=0.2),
    )
    plant = craft.system()

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        axis = rng.normal(size=3)
        start = plant.state.join(
            pose=SO3.exp(2.5 * axis / np.linalg.norm(axis)),
            twist=rng.uniform(-0.03, 0.03, size=3),
            wheel_speed=np.zeros(3),
        )
        return {"x0": start}

    def heavier(share: float, factor: float) -> tuple[System[Product], dict[str, float]]:
        """The inertia of the body; wheels are known."""
        own = (1 + share) * np.array(INERTIA)
        return plant, dict(zip(NUMBERS, own.tolist(), strict=True))

    return Task(
        plant=plant,
        controller=GeometricPD(plant, frequency=0.002, dt=30.0),
        **draw(seed),
        draw=draw,
        seconds=86400.0,
        reference=plant.state.identity,
        options={"method": "variational_verlet", "max_step": STEP},
        criteria=(
            error_at_end("attitude error", "pose", slice(0, 3), "rad", 0.01, over=3600),
            Criterion(
                "change of the angular momentum", MomentumChange(craft.momentum("spatial")), 1e-11
            ),
            Criterion(
                "energy that is not accounted for",
                Unaccounted(plant.quantities["kinetic_energy"]),
                0.01,
            ),
            failed_calls(),
        ),
        perturbed=heavier,
    )


@dataclass(frozen=True)
class MomentumChange:
    """Change of the angular momentum since the start, as a share of it."""

    momentum: ModelFunction

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        blocks = (run.block(name) for name in ("pose", "twist", "wheel_speed"))
        L = self.momentum(*blocks, run.settings["p"])
        return np.linalg.norm(L - L[0], axis=-1) / np.linalg.norm(L[0])


@dataclass(frozen=True)
class Unaccounted:
    """Energy that neither the motors fed nor the bearings took, as a share of the losses."""

    energy: ModelFunction

    def __call__(self, run: SimulationResult) -> float:
        """Of the whole run."""
        energy = self.energy(0.0, run.x, p=run.settings["p"])[:, 0]
        speed, dt = run.block("wheel_speed"), np.diff(run.t)
        fed = np.sum(dt[:, None] * run.u[: len(dt)] * (speed[1:] + speed[:-1]) / 2)
        lost = np.trapezoid(FRICTION * np.sum(speed**2, axis=-1), run.t)
        return float(abs(energy[-1] - energy[0] - fed + lost) / lost)

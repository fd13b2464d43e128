"""What designs of series-elastic arms judge: the tip along the way and at rest, limits, energy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from lgcontrol.codegen import ModelFunction
from lgcontrol.groups import Product
from lgcontrol.mechanics import SeriesElastic
from lgcontrol.simulation import Criterion, SimulationResult, scaled_inertia
from lgcontrol.systems import SmoothReference, System


def tip_errors(
    arm: SeriesElastic,
    path: SmoothReference,
    tip: str,
    limit: float,
    resting: float,
    *,
    until: float,
) -> tuple[Criterion, Criterion]:
    """Largest error of the tip until a time in s, and the mean of the last 0.1 s; limits in mm."""
    away = TipError(arm.tree.position(tip), path)
    return (
        Criterion(f"tip error before {until:g} s", away, limit, "mm", until=until),
        Criterion(
            "tip error at rest, mean of the last 0.1 s",
            away,
            resting,
            "mm",
            take="mean",
            last=0.1,
        ),
    )


def largest_deflection(arm: SeriesElastic, limit: float) -> Criterion:
    """Largest deflection of any spring [rad]."""
    measure = Deflection(arm.state.coordinate_slice("motor"), arm.tree.nq)
    return Criterion("largest deflection", measure, limit, "rad")


def motor_work(arm: SeriesElastic) -> Criterion:
    """What the motors put in, ``∫ |u θ̇| dt``; reported only."""
    measure = MotorWork(arm.state.coordinate_slice("motor_velocity"), len(arm.joints))
    return Criterion("work of the motors, without what they could take back", measure, unit="J")


@dataclass(frozen=True, eq=False)
class TipError:
    """Distance [mm] of a point of an arm from its place on a path of the links."""

    place: ModelFunction
    path: SmoothReference

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        wanted, nq = self.place(self.path(run.t).x), self.place.function.numel_in(0)
        return 1e3 * np.linalg.norm(self.place(run.x[:, :nq]) - wanted, axis=1)


@dataclass(frozen=True)
class Deflection:
    """Largest deflection [rad] of the springs between ``nq`` links and their motors."""

    motor: slice
    nq: int

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        return np.abs(run.x[:, self.motor] - run.x[:, : self.nq]).max(axis=1)


@dataclass(frozen=True)
class MotorWork:
    """``∫ |u θ̇| dt`` [J] of the first ``count`` inputs."""

    speeds: slice
    count: int

    def __call__(self, run: SimulationResult) -> float:
        """Of the whole run."""
        power = np.abs(run.u[:, : self.count] * run.x[:-1, self.speeds]).sum(axis=1)
        return float(power @ np.diff(run.t))


def heavier(
    arm: SeriesElastic, name: str
) -> Callable[[float, float], tuple[System[Product], dict[str, float]]]:
    """Links and motors that are heavier by a share and lose more, on the same springs."""
    springs = [f"{joint}.spring.stiffness" for joint in arm.joints]

    @cache
    def plant() -> System[Product]:
        same = SeriesElastic(arm.tree, arm.motors, inputs=arm.driven).symbolic(*springs)
        return scaled_inertia(same.system(name))

    def perturbed(share: float, factor: float) -> tuple[System[Product], dict[str, float]]:
        made, inertia = plant(), 1 + share
        stiffness = dict(zip(made.parameter_names, made.nominal_parameters, strict=True))
        values = {spring: float(stiffness[spring]) / inertia for spring in springs}
        return made, {**values, "times_inertia": inertia, "times_drag": 1 + factor}

    return perturbed

"""What designs of series-elastic arms judge: the tip along the way and at rest, limits, energy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

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
    """Largest error of the tip up to a time, and the mean of the last 0.1 s.

    Parameters
    ----------
    arm : SeriesElastic
    path : SmoothReference
    tip : str
        Frame.
    limit, resting : float
        [mm]
    until : float
        In s; what comes later has been disturbed.
    """
    place, nq = arm.tree.position(tip), arm.tree.nq

    def away(run: SimulationResult) -> np.ndarray:
        wanted = place(path(run.t).x)
        return 1e3 * np.linalg.norm(place(run.x[:, :nq]) - wanted, axis=1)

    return (
        Criterion(f"tip error before {until:g} s", _up_to(away, until), limit, "mm"),
        Criterion("tip error at rest, mean of the last 0.1 s", _last(away), resting, "mm"),
    )


def largest_deflection(arm: SeriesElastic, limit: float) -> Criterion:
    """Largest deflection of any spring [rad]."""
    motor, nq = arm.state.coordinate_slice("motor"), arm.tree.nq

    def value(run: SimulationResult) -> float:
        return float(np.abs(run.x[:, motor] - run.x[:, :nq]).max())

    return Criterion("largest deflection", value, limit, "rad")


def motor_work(arm: SeriesElastic) -> Criterion:
    """What the motors put in, ``∫ |u θ̇| dt``; reported only."""
    speeds, count = arm.state.coordinate_slice("motor_velocity"), len(arm.joints)

    def value(run: SimulationResult) -> float:
        power = np.abs(run.u[:, :count] * run.x[:-1, speeds]).sum(axis=1)
        return float(power @ np.diff(run.t))

    return Criterion("work of the motors, without what they could take back", value, unit="J")


def heavier(
    arm: SeriesElastic, name: str
) -> Callable[[float, float], tuple[System[Product], dict[str, float]]]:
    """Links and motors that are heavier by a share and lose more, on the same springs.

    Parameters
    ----------
    arm : SeriesElastic
    name : str
        Of the plant.
    """
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


def _up_to(
    away: Callable[[SimulationResult], np.ndarray], until: float
) -> Callable[[SimulationResult], float]:
    return lambda run: float(away(run)[run.t <= until].max())


def _last(
    away: Callable[[SimulationResult], np.ndarray],
) -> Callable[[SimulationResult], float]:
    return lambda run: float(away(run)[run.t >= run.t[-1] - 0.1].mean())

"""Kinds of sensors with first errors of several sizes, for the choice of the EKF's rounds.

The truth of each case follows the filter's own model with the noise that the filter is told, and
the first error is drawn from its first covariance. A filter that linearizes well enough has a NEES
and a NIS of one then.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.estimation import (
    EKF,
    Log,
    beacon_range,
    bearing,
    depth,
    dvl,
    gnss,
    inertial_navigation,
    landmark_position,
    odometry,
)
from lgcontrol.groups import SE23, SO3, Product, Rn
from lgcontrol.systems import Sensor, System

CUT = np.radians(120)  # of the angle of the first error: beyond, the estimate says nothing


@dataclass(frozen=True)
class Case:
    """A system with its sensors, motion, noise and first errors.

    Attributes
    ----------
    system : System
    measurements : list of Sensor
        With their sample times.
    angles : list of str
        Entries of the error that are angles, whose deviation the study varies.
    std0 : dict
        Deviations of the others.
    noise : dict
        Densities.
    start : ndarray, shape (nq,)
        First estimate.
    motion : callable
        ``t → controls``, shape (n_inputs,).
    dt, seconds : float
    """

    system: System
    measurements: list[Sensor]
    angles: list[str]
    std0: dict[str, float]
    noise: dict[str, float]
    start: np.ndarray
    motion: Callable[[float], np.ndarray]
    dt: float
    seconds: float
    options: dict[str, Any] = field(default_factory=dict)


def filter_of(case, degrees, **options):
    """Filter of a case whose first angles have a deviation of some degrees."""
    std0 = case.std0 | dict.fromkeys(case.angles, np.radians(degrees))
    return EKF(case.system, case.measurements, case.start, std0=std0, noise=case.noise,
               **case.options | options)  # fmt: skip


def draw(case, degrees, runs, seed):
    """Log and truth (runs, steps, nq) of some runs."""
    rng, system = np.random.default_rng(seed), case.system
    ekf = filter_of(case, degrees, iterations=1)
    rows = [system.error_names.index(name) for name in case.angles]
    drawn = np.sqrt(np.diag(ekf.P0)) * rng.normal(size=(20 * runs, system.n_errors))
    drawn = drawn[np.linalg.norm(drawn[:, rows], axis=1) < CUT][:runs]
    x, p = system.retract(case.start, drawn), ekf.p
    t = case.dt * np.arange(round(case.seconds / case.dt))
    known = np.array([case.motion(s) for s in t])
    step, truth = system.step(case.options.get("method", "rk4")), []
    for s, u in zip(t, known, strict=True):
        u = np.broadcast_to(u, (runs, system.n_inputs)).copy()
        noisy = ekf.densities / np.sqrt(case.dt) * rng.normal(size=(runs, len(ekf.densities)))
        u[:, ekf._noisy] += noisy
        x = step(s, x, u, p, case.dt)
        truth.append(x)
    truth, ends, seen = np.stack(truth, axis=1), t + case.dt, {}
    for name, bound in ekf.sensors.items():
        every = round((bound.sensor.dt or case.dt) / case.dt)
        at = np.arange(every - 1, len(t), every)
        exact = bound.function(ends[at], truth[:, at], known[at], p)
        noise = rng.normal(size=(runs, len(at), bound.group.dim)) @ bound.noise_factor.T
        seen[name] = (ends[at], bound.group.plus(exact, noise))
    return Log(t, known, seen), truth


def run(case, degrees, runs=100, seed=0, **options):
    """NEES over all steps and runs, share of steps in its band, NIS by sensor."""
    log, truth = draw(case, degrees, runs, seed)
    ekf = filter_of(case, degrees, **options)
    found = ekf.run(log)
    ends = log.t + case.dt
    return found, found.consistency(ends, truth), truth


# -- the cases ------------------------------------------------------------------------------------


def _directions():
    system = System(
        "turning", Product(attitude=SO3, bias=Rn(3)),
        lambda t, x, u, p: ca.vertcat(u[:3] - x[4:], u[3:]),
        inputs=[*(f"gyro.{a}" for a in "xyz"), *(f"walk.{a}" for a in "xyz")],
    )  # fmt: skip
    seen = [
        Sensor(name, lambda t, x, u, p, d=d: SO3.matrix(x[:4]).T @ ca.DM(d), Rn(3),
                    std_discrete=0.05)
        for name, d in {"gravity": [0.0, 0.0, 1.0], "field": [0.0, 0.6, -0.8]}.items()
    ]  # fmt: skip
    return Case(
        system, seen, [f"attitude.{a}" for a in ("rx", "ry", "rz")], {"bias": 0.05},
        {"gyro": 0.01, "walk": 1e-3}, SO3.random(1).tolist() + [0.0] * 3,
        lambda t: np.r_[np.sin(2.5 * t) * np.array([1.0, -0.5, 0.8]), np.zeros(3)], 0.02, 2.0,
        {"method": "euler"},
    )  # fmt: skip


def _moving_imu(t):
    """Rates and specific force of a craft that weaves, level on the average."""
    return np.r_[0.2 * np.sin(0.7 * t), 0.15 * np.cos(0.5 * t), 0.4 * np.sin(0.3 * t),
                 2.0 * np.sin(0.8 * t), 1.5 * np.cos(0.6 * t), 9.81, np.zeros(6)]  # fmt: skip


def _ins(measurements, std=None):
    system = inertial_navigation()
    level = SE23.from_rotation([0.0, 0.0, 0.0, 1.0], [[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]])
    start = system.state.join(body=level)
    std0 = {"body.x": 1.0, "body.y": 1.0, "body.z": 1.0, "body.vx": 0.5, "body.vy": 0.5,
            "body.vz": 0.5, "gyro_bias": 0.01, "accelerometer_bias": 0.05}  # fmt: skip
    noise = {"gyro": 1e-3, "accelerometer": 1e-2, "gyro_bias_walk": 1e-5,
             "accelerometer_bias_walk": 1e-4}  # fmt: skip
    return Case(
        system, measurements(system), ["body.rx", "body.ry", "body.rz"], std0 | (std or {}), noise,
        start,
        _moving_imu, 0.02, 10.0, {"covariance_method": "euler"},
    )  # fmt: skip


def _fixes_with_lever():
    return _ins(lambda s: [gnss(s, lever_arm=[0.5, 0.2, 0.3], std_discrete=0.02, dt=0.2)])


PLACES = ([8.0, 2.0, 2.0], [-6.0, 7.0, -2.0], [3.0, -9.0, 1.0], [20.0, 4.0, 5.0])


def _landmarks():
    return _ins(lambda s: [
        landmark_position(s, place, name=f"landmark{k}", std_discrete=0.1, dt=0.2)
        for k, place in enumerate(PLACES[:3])
    ])  # fmt: skip


def _bearings():
    return _ins(lambda s: [
        bearing(s, place, name=f"bearing{k}", std_discrete=0.01, dt=0.2)
        for k, place in enumerate(PLACES)
    ])  # fmt: skip


def _planar(measurements, std0):
    system = odometry()
    return Case(
        system, measurements(system), ["pose.rz"], std0,
        {"velocity.x": 0.05, "velocity.y": 0.05, "velocity.rz": 0.02}, [0.0, 0.0, 1.0, 0.0],
        lambda t: np.array([1.0, 0.0, 0.3 * np.cos(0.5 * t)]), 0.1, 20.0,
    )  # fmt: skip


def _planar_fixes():
    return _planar(lambda s: [gnss(s, std_discrete=0.3, dt=0.5)],
                   {"pose.x": 1.0, "pose.y": 1.0})  # fmt: skip


def _ranges():
    return _planar(
        lambda s: [
            beacon_range(s, place, name=f"range{k}", lever_arm=[0.3, 0.1], std_discrete=0.1, dt=0.2)
            for k, place in enumerate(([10.0, 2.0], [-4.0, 8.0], [3.0, -9.0]))
        ],
        {"pose.x": 2.0, "pose.y": 2.0},
    )


def _planar_bearings():
    return _planar(
        lambda s: [
            bearing(s, place, name=f"bearing{k}", std_discrete=0.02, dt=0.2)
            for k, place in enumerate(([10.0, 2.0], [-4.0, 8.0], [3.0, -9.0]))
        ],
        {"pose.x": 1.0, "pose.y": 1.0},
    )


def _underwater():
    return _ins(
        lambda s: [
            dvl(s, lever_arm=[0.2, 0.0, -0.12], std_discrete=0.01, dt=0.2),
            depth(s, lever_arm=[-0.2, 0.0, 0.15], std_discrete=0.02, dt=0.2),
            gnss(s, lever_arm=[-0.2, 0.0, 0.15], name="usbl", std_discrete=0.2, dt=1.0),
        ],
        {"body.x": 0.5, "body.y": 0.5, "body.z": 0.5},
    )


CASES = {
    "two directions (attitude)": _directions,
    "fixes with a lever arm (INS)": _fixes_with_lever,
    "landmark positions (INS)": _landmarks,
    "bearings (INS)": _bearings,
    "USBL, depth, DVL (INS)": _underwater,
    "fixes (planar)": _planar_fixes,
    "ranges (planar)": _ranges,
    "bearings (planar)": _planar_bearings,
}


@cache
def case_of(name):
    return CASES[name]()

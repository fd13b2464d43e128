"""Faults of sensors, logs and settings, and the words by which a user learns of each.

A scene is a healthy recording with its filter. A fault changes the recording or the settings. What
a user is told of it is an exception, warnings, or the summary of the run: `told` returns that text.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lgcontrol.estimation import (
    AttitudeHeading,
    Log,
    MovingHorizon,
    gnss,
    inertial_navigation,
    odometry,
)
from lgcontrol.groups import SE2, SE23, SO2, SO3
from lgcontrol.systems import Sensor

G = 9.81


class Fault(NamedTuple):
    """What is wrong, how it is put in, and a pattern of the words that tell it."""

    name: str
    change: Callable[[dict], None]
    words: str


class Unseen(NamedTuple):
    """A fault that no data show, and why."""

    name: str
    change: Callable[[dict], None]
    reason: str


def told(scene, change=None, **options):
    """All that is said of a scene with a fault: an error, or warnings and the summary."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            data = scene.recording()
            if change is not None:
                change(data)
            summary = scene.run(data, **options)
        except (ValueError, KeyError, TypeError) as error:
            return f"{type(error).__name__}: {error}"
    return "\n".join([*(str(entry.message) for entry in caught), summary])


# -- a car: odometry, fixes, a heading ------------------------------------------------------------


class Car:
    """Sixty seconds of a car on SE(2), odometry at 10 Hz, fixes at 2 Hz, headings at 2 Hz."""

    system = odometry()
    noise = {"velocity.x": 0.05, "velocity.y": 0.02, "velocity.rz": 0.02}
    filters: dict[Any, Any] = {}

    @staticmethod
    @cache
    def _drawn():
        rng, dt, count = np.random.default_rng(7), 0.1, 600
        t = dt * np.arange(count)
        u = np.column_stack([2 + np.sin(0.4 * t), 0 * t, 0.4 * np.sin(0.23 * t + 1)])
        x = [SE2.exp([3.0, 1.0, 0.5])]
        density = np.array([0.05, 0.02, 0.02])
        for k in range(count):
            x.append(SE2.plus(x[-1], dt * (u[k] + density / np.sqrt(dt) * rng.normal(size=3))))
        x = np.array(x)
        rows = np.arange(5, count, 5)
        fixes = x[rows, :2] + 0.3 * rng.normal(size=(len(rows), 2))
        headings = SO2.compose(x[rows, 2:], SO2.exp(0.05 * rng.normal(size=(len(rows), 1))))
        return t, u, x[0], t[rows], fixes, headings

    def recording(self):
        t, u, x0, times, fixes, headings = (np.copy(v) for v in self._drawn())
        return {"t": t, "u": u, "x0": x0, "fix": (times, fixes),
                "heading": (times.copy(), headings), "std": {"fix": 0.3, "heading": 0.05},
                "noise": dict(self.noise), "std0": 0.1, "options": {}}  # fmt: skip

    def filter(self, data, make, **extra):
        key = (make, str([data["std"], data["noise"], data["std0"], data["options"], extra]))
        if key not in self.filters:
            sensors = [
                gnss(self.system, name="fix", std_discrete=data["std"]["fix"]),
                Sensor("heading", lambda t, x, u, p: x[2:], SO2,
                            std_discrete=data["std"]["heading"]),
            ]  # fmt: skip
            self.filters[key] = make(self.system, sensors, data["x0"], std0=data["std0"],
                                     noise=data["noise"], **data["options"], **extra)  # fmt: skip
        return self.filters[key]

    def run(self, data, make):
        extra = {"horizon": 6, "dt": 0.5, "iterations": 2} if make is MovingHorizon else {}
        found = self.filter(data, make, **extra)
        log = Log(data["t"], data["u"], {name: data[name] for name in ("fix", "heading")})
        if make is MovingHorizon:
            found.run(log, data["x0"])
            return found.summary()
        return found.run(log, data["x0"]).summary()


def value(name, change, rows=slice(None)):
    """Change of the values of a sensor of the car."""

    def put(data):
        data[name][1][rows] = change(data[name][1][rows])

    return put


def times(name, change):
    def put(data):
        data[name] = (change(data[name][0]), data[name][1])

    return put


def given(column, change, rows=slice(None)):
    """Change of a column of the inputs of the car."""

    def put(data):
        data["u"][rows, column] = change(data["u"][rows, column])

    return put


def keep(name, rows):
    def put(data):
        data[name] = tuple(part[rows(len(part))] for part in data[name])

    return put


def setting(name, change):
    def put(data):
        data[name] = change(data[name])

    return put


def _outliers(share, size):
    def change(v):
        rows = np.random.default_rng(3).random(len(v)) < share
        return v + size * rows[:, None]

    return change


def _degrees(v):
    return np.degrees(np.arctan2(v[:, 1:], v[:, :1])) * [1, 0]


LATE = slice(60, None)  # of the fixes
# The cost of a window names no sensor.
WINDOWS = r"windows: (costs are [\d.e+]+ times|\d+ of \d+ have a cost that is no noise)"
NIS = r"{}: NIS [\d.e+]+, expected 1: innovations are [\d.e+]+ times as large|" + WINDOWS
FIX, HEADING = (NIS.format(name) for name in ("fix", "heading"))
ANY = r"(fix|heading): (NIS|innovations correlate|\d+ of \d+ innovations are no noise)|" + WINDOWS
ODD = r"fix: \d+ of \d+ innovations are no noise|" + WINDOWS

CAR = [
    Fault("fixes in millimetres", value("fix", lambda v: 1e3 * v), FIX),
    Fault("fixes in kilometres", value("fix", lambda v: 1e-3 * v), FIX),
    Fault("fixes in feet", value("fix", lambda v: v / 0.3048), FIX),
    Fault("x and y of the fixes swapped", value("fix", lambda v: v[:, ::-1].copy()), FIX),
    Fault("fixes mirrored (NED)", value("fix", lambda v: v * [1, -1]), FIX),
    Fault("map turned by 30°", value("fix", lambda v: v @ [[0.866, 0.5], [-0.5, 0.866]]), ANY),
    Fault("map shifted by 20 m", value("fix", lambda v: v + [20, 0]), ODD),
    Fault("fixes jump by 5 m and stay", value("fix", lambda v: v + [5, 0], LATE), ANY),
    Fault("fixes drift by 0.2 m/s", value("fix", lambda v: v + 0.1 * np.arange(len(v))[:, None]),
          ANY),
    Fault("frozen fixes", value("fix", lambda v: 0 * v + v[:1], LATE), FIX),
    Fault("fixes of zeros", value("fix", lambda v: 0 * v), FIX),
    Fault("fixes of zeros for a while", value("fix", lambda v: 0 * v, slice(60, 64)), ODD),
    Fault("NaN in the fixes", value("fix", lambda v: v * [np.nan, 1], slice(40, 50)), 
          "10 not finite"),
    Fault("infinite fixes", value("fix", lambda v: v + np.inf, LATE), "not finite"),
    Fault("fixes lost on the way", keep("fix", lambda n: slice(0, n // 2)), "fix: none used for 3"),
    Fault("fixes lost for 20 s", keep("fix", lambda n: np.r_[0:40, 80:n]), "fix: none used for 20"),
    Fault("no fixes at all", keep("fix", lambda n: slice(0, 0)), "fix: none"),
    Fault("one fix 500 m off", value("fix", lambda v: v + 500, slice(70, 71)), ODD),
    Fault("one fix in twenty 5 m off", value("fix", _outliers(0.05, 5.0)), ODD),
    Fault("fixes quantized to 5 m", value("fix", lambda v: 5 * np.round(v / 5)), FIX),
    Fault("fixes ten times as noisy as said", setting("std", lambda s: s | {"fix": 0.03}), FIX),
    Fault("fixes a hundred times as noisy", setting("std", lambda s: s | {"fix": 0.003}), FIX),
    Fault("fixes said to be ten times as noisy", setting("std", lambda s: s | {"fix": 3.0}), FIX),
    Fault("fixes said to be 100 times as noisy", setting("std", lambda s: s | {"fix": 30.0}), FIX),
    Fault("fixes late by 1 s", times("fix", lambda t: t + 1.0), ANY),
    Fault("fixes early by 1 s", times("fix", lambda t: t - 1.0), ANY),
    Fault("stamps of fixes in ms", times("fix", lambda t: 1e3 * t), "outside the log"),
    Fault("stamps of fixes since 1970", times("fix", lambda t: t + 1.7e9), "outside the log"),
    Fault("stamps of fixes not finite", times("fix", lambda t: t + np.nan), "outside the log"),
    Fault("stamps of fixes drift by 3 %", times("fix", lambda t: 1.03 * t), ANY),
    Fault("fixes doubled", keep("fix", lambda n: np.repeat(np.arange(n), 2)),
          "'fix' has 119 of 238 measurements twice"),
    Fault("fixes in reverse order", value("fix", lambda v: v[::-1].copy()), FIX),
    Fault("headings in degrees", value("heading", _degrees), "off group"),
    Fault("sine and cosine swapped", value("heading", lambda v: v[:, ::-1].copy()), HEADING),
    Fault("headings clockwise", value("heading", lambda v: v * [1, -1]), HEADING),
    Fault("headings from the y axis", value("heading", lambda v: v[:, ::-1] * [1, -1]), HEADING),
    Fault("headings jump by 20°", value("heading", lambda v: SO2.compose(v, SO2.exp([0.35])), LATE),
          ANY),
    Fault("frozen heading", value("heading", lambda v: 0 * v + v[:1], LATE), HEADING),
    Fault("headings of zeros", value("heading", lambda v: 0 * v), "off group"),
    Fault("headings said to be ten times as noisy",
          setting("std", lambda s: s | {"heading": 0.5}), HEADING),
    Fault("headings ten times as noisy as said",
          setting("std", lambda s: s | {"heading": 0.005}), HEADING),
    Fault("speed in km/h", given(0, lambda v: 3.6 * v), ANY),
    Fault("speed backwards", given(0, lambda v: -v), ANY),
    Fault("speed 20 % too large", given(0, lambda v: 1.2 * v), ANY),
    Fault("speed of zeros", given(0, lambda v: 0 * v), ANY),
    Fault("frozen speed", given(0, lambda v: 0 * v + 2.0, slice(300, None)), ANY),
    Fault("speed saturates at 2 m/s", given(0, lambda v: np.minimum(v, 2.0)), ANY),
    Fault("rate in degrees", given(2, np.degrees), ANY),
    Fault("rate clockwise", given(2, lambda v: -v), ANY),
    Fault("rate with a bias of 0.1 rad/s", given(2, lambda v: v + 0.1), ANY),
    Fault("bias of the rate jumps", given(2, lambda v: v + 0.1, slice(300, None)), ANY),
    Fault("rate of zeros", given(2, lambda v: 0 * v), ANY),
    Fault("speed and rate swapped", setting("u", lambda u: u[:, ::-1].copy()), ANY),
    Fault("x and y of the speed swapped", setting("u", lambda u: u[:, [1, 0, 2]].copy()), ANY),
    Fault("NaN in the speed", given(0, lambda v: v * np.nan, slice(100, 130)), "30 held"),
    Fault("a column of inputs is missing", setting("u", lambda u: u[:, :2]), r"shape \(600, 2\)"),
    Fault("inputs late by 1 s", setting("u", lambda u: np.roll(u, 10, axis=0)), ANY),
    Fault("hole of 5 s in the inputs", setting("t", lambda t: t + 5.0 * (np.arange(600) >= 300)),
          "gap"),
    Fault("clock goes back by 10 s", setting("t", lambda t: t - 10.0 * (np.arange(600) >= 300)),
          "times of the log go back"),
    Fault("rows of inputs doubled", setting("t", lambda t: np.repeat(t[::2], 2)), "time back"),
    Fault("stamps of inputs not finite", setting("t", lambda t: np.where(t > 50, np.nan, t)),
          "time not finite"),
    Fault("stamps of inputs in ms", setting("t", lambda t: 1e3 * t), ANY),
    Fault("start 50 m off", setting("x0", lambda x: x + [50, 0, 0, 0]), ODD),
    Fault("start turned round", setting("x0", lambda x: x * [1, 1, -1, -1]), ANY),
    Fault("start off its group", setting("x0", lambda x: 2 * x), "x0 .* is no element of"),
    Fault("start not finite", setting("x0", lambda x: x * np.nan), "not finite"),
    Fault("noise of inputs 100 times too small",
          setting("noise", lambda q: {k: v / 100 for k, v in q.items()}), ANY),
    Fault("noise of inputs 10 times too small",
          setting("noise", lambda q: {k: v / 10 for k, v in q.items()}), ANY),
    Fault("noise of inputs 100 times too large",
          setting("noise", lambda q: {k: 100 * v for k, v in q.items()}), ANY),
    Fault("noise by a name that is none", setting("noise", lambda q: q | {"speed": 1.0}),
          "unknown input 'speed'"),
    Fault("noise below zero", setting("noise", lambda q: q | {"velocity.x": -1.0}),
          "not be negative"),
    Fault("deviation of the start below zero", setting("std0", lambda s: -1.0), "negative|below"),
]  # fmt: skip


# -- an attitude and heading reference ------------------------------------------------------------


class Ahrs:
    """Thirty seconds of turns about all axes after a rest of three, at 50 Hz."""

    dt = 0.02
    model = AttitudeHeading(dt)

    @staticmethod
    @cache
    def _drawn():
        rng, dt, count = np.random.default_rng(5), Ahrs.dt, 1500
        t = dt * np.arange(count)[:, None]
        omega = np.where(t > 3, 1.2 * np.sin(0.5 * t * [1.0, 0.7, 1.3] + [0.0, 1.0, 2.0]), 0.0)
        q = [SO3.exp([0.3, -0.2, 1.0])]
        for k in range(1, count):
            q.append(SO3.plus(q[-1], dt * omega[k]))
        back = SO3.matrix(np.array(q)).swapaxes(-1, -2)
        return (
            omega + [0.004, -0.003, 0.002] + 2e-3 * rng.normal(size=(count, 3)),
            back @ [0.0, 0.0, G] + 0.05 * rng.normal(size=(count, 3)),
            back @ [0.0, 17.0, -42.0] + 0.5 * rng.normal(size=(count, 3)),
        )

    def recording(self):
        names = "gyro", "accelerometer", "magnetometer"
        return dict(zip(names, (np.copy(v) for v in self._drawn()), strict=True))

    @cache  # noqa: B019 - one scene
    def filter(self):
        signals = self.recording().values()
        return self.model.filter(*self.model.start(*(one[:100] for one in signals)))

    def run(self, data):
        signals = list(data.values())
        first = self.model.start(*(one[:100] for one in signals))
        return self.filter().run(self.model.log(*signals), *first).summary()


def sensor(name, change, rows=slice(None)):
    """Change of the samples of a sensor of the reference."""

    def put(data):
        data[name][rows] = change(data[name][rows])

    return put


ON_THE_WAY = slice(700, None)
SOME = r"(no_drift|magnetic_heading|zero_rate|zero_velocity): NIS"
ANGLE, STRENGTH = "its angle to the accelerometer is off", "the strength of the field is off"
AHRS = [
    Fault("gyroscope in °/s", sensor("gyro", np.degrees), "give rad/s"),
    Fault("gyroscope mirrored", sensor("gyro", lambda v: v * [1, 1, -1]), SOME),
    Fault("gyroscope with another sign", sensor("gyro", lambda v: -v), SOME),
    Fault("x and y of the gyroscope swapped", sensor("gyro", lambda v: v[:, [1, 0, 2]]), SOME),
    Fault("gyroscope of zeros", sensor("gyro", lambda v: 0 * v), SOME),
    Fault("gyroscope lost on the way", sensor("gyro", lambda v: v * np.nan, ON_THE_WAY),
          "gyro: 800 of 1500 samples"),
    Fault("frozen gyroscope", sensor("gyro", lambda v: 0 * v + v[0], ON_THE_WAY), SOME),
    Fault("gyroscope saturates at 0.5 rad/s", sensor("gyro", lambda v: np.clip(v, -0.5, 0.5)),
          SOME),
    Fault("gyroscope half as large", sensor("gyro", lambda v: 0.5 * v), SOME),
    Fault("bias jumps by 0.2 rad/s", sensor("gyro", lambda v: v + 0.2, ON_THE_WAY), SOME),
    Fault("a reading of 1000 rad/s", sensor("gyro", lambda v: v + 1000, slice(900, 901)),
          "give rad/s"),
    Fault("accelerometer in g", sensor("accelerometer", lambda v: v / G), "give m/s²"),
    Fault("accelerometer in mg", sensor("accelerometer", lambda v: 1e3 * v / G), "give m/s²"),
    Fault("z of the accelerometer with another sign",
          sensor("accelerometer", lambda v: v * [1, 1, -1]), SOME),
    Fault("x and z of the accelerometer swapped",
          sensor("accelerometer", lambda v: v[:, [2, 1, 0]]), SOME),
    Fault("gravity taken out of the accelerometer",
          sensor("accelerometer", lambda v: v - v[:100].mean(axis=0)), "give m/s²"),
    Fault("accelerometer of zeros", sensor("accelerometer", lambda v: 0 * v),
          "finite and not zero"),
    Fault("accelerometer lost on the way",
          sensor("accelerometer", lambda v: v * np.nan, ON_THE_WAY), "accelerometer: 800 of 1500"),
    Fault("accelerometer of zeros on the way", sensor("accelerometer", lambda v: 0 * v, ON_THE_WAY),
          "accelerometer: 800 of 1500"),
    Fault("frozen accelerometer", sensor("accelerometer", lambda v: 0 * v + v[0], ON_THE_WAY),
          r"accelerometer: \d+ of 1500"),
    Fault("accelerometer saturates at 6 m/s²",
          sensor("accelerometer", lambda v: np.clip(v, -6, 6)), SOME),
    Fault("accelerometer with an offset of 4 m/s²",
          sensor("accelerometer", lambda v: v + [4, 0, 0]), SOME),
    Fault("magnetometer lost from the start", sensor("magnetometer", lambda v: v * np.nan),
          "finite and not zero"),
    Fault("magnetometer of zeros", sensor("magnetometer", lambda v: 0 * v), "finite and not zero"),
    Fault("magnetometer lost on the way", sensor("magnetometer", lambda v: v * np.nan, ON_THE_WAY),
          "magnetometer: 800 of 1500"),
    Fault("magnetometer of zeros on the way", sensor("magnetometer", lambda v: 0 * v, ON_THE_WAY),
          "magnetometer: 800 of 1500"),
    Fault("frozen magnetometer", sensor("magnetometer", lambda v: 0 * v + v[0], ON_THE_WAY),
          r"magnetometer: \d+ of 1500"),
    Fault("x and y of the magnetometer swapped",
          sensor("magnetometer", lambda v: v[:, [1, 0, 2]]), ANGLE),
    Fault("z of the magnetometer with another sign",
          sensor("magnetometer", lambda v: v * [1, 1, -1]), ANGLE),
    Fault("magnetometer in gauss", sensor("magnetometer", lambda v: 0.01 * v), "give field_std in"),
    Fault("magnetometer in nT", sensor("magnetometer", lambda v: 1e3 * v), "give field_std in"),
    Fault("iron: an offset of 40 µT", sensor("magnetometer", lambda v: v + [40, 0, 0]), STRENGTH),
    Fault("a magnet for ten seconds",
          sensor("magnetometer", lambda v: v + [60, 40, 0], slice(700, 1200)), STRENGTH),
    Fault("magnetometer saturates at 20 µT", sensor("magnetometer", lambda v: np.clip(v, -20, 20)),
          STRENGTH),
    Fault("three axes for two", lambda d: d.update(gyro=d["gyro"][:, :2]), "gyro has shape"),
    Fault("a sensor with fewer samples", lambda d: d.update(magnetometer=d["magnetometer"][:900]),
          "magnetometer has shape"),
]  # fmt: skip


# -- an inertial system with fixes ----------------------------------------------------------------


class Ins:
    """Twenty seconds of an IMU at 50 Hz that moves along all axes, fixes at 5 Hz."""

    system = inertial_navigation()
    noise = {"gyro": 2e-3, "accelerometer": 0.02, "gyro_bias_walk": 1e-5,
             "accelerometer_bias_walk": 1e-4}  # fmt: skip
    filters: dict[Any, Any] = {}

    @staticmethod
    @cache
    def _drawn():
        rng, dt, count = np.random.default_rng(11), 0.02, 1000
        t = dt * np.arange(count)[:, None]
        omega = 0.6 * np.sin(0.5 * t * [1.0, 0.7, 1.3] + [0.0, 1.0, 2.0])
        a = 2.0 * np.sin(0.8 * t * [1.0, 1.4, 0.6] + [0.0, 2.0, 1.0])
        system, x = Ins.system, [SE23.identity]
        step, u = system.step(), np.zeros(system.n_inputs)
        full = system.state.join(body=SE23.identity)
        force = []
        for k in range(count):
            R = SO3.matrix(full[6:10])
            force.append(R.T @ (a[k] + [0, 0, G]))
            u[:6] = [*omega[k], *force[-1]]
            full = step(0.0, full, u, [], dt)
            x.append(full[:10])
        noise = rng.normal(size=(count, 6)) / np.sqrt(dt)
        read = np.concatenate([omega, force], axis=1) + noise * np.repeat([2e-3, 0.02], 3)
        rows = np.arange(10, count, 10)
        fixes = np.array(x)[rows, :3] + 0.1 * rng.normal(size=(len(rows), 3))
        return t[:, 0], read, t[rows, 0], fixes

    def recording(self):
        t, read, times, fixes = (np.copy(v) for v in self._drawn())
        return {"t": t, "u": read, "fix": (times, fixes), "gravity": G}

    def run(self, data, make):
        key = make, data["gravity"]
        if key not in self.filters:
            system = inertial_navigation(gravity=data["gravity"])
            std0 = {"body": 0.1, "gyro_bias": 0.01, "accelerometer_bias": 0.05}
            fix = gnss(system, name="fix", std_discrete=0.1)
            self.filters[key] = make(system, [fix], std0=std0, noise=self.noise, method="euler")
        return self.filters[key].run(Log(data["t"], data["u"], {"fix": data["fix"]})).summary()


def imu(columns, change, rows=slice(None)):
    def put(data):
        data["u"][rows, columns] = change(data["u"][rows, columns])

    return put


GYRO, FORCE = slice(0, 3), slice(3, 6)
LOST = r"fix: (NIS|innovations correlate|\d+ of \d+ innovations are no noise)"
INS = [
    Fault("gyroscope in °/s", imu(GYRO, np.degrees), LOST),
    Fault("gyroscope with another sign", imu(GYRO, lambda v: -v), LOST),
    Fault("x and y of the gyroscope swapped", imu(GYRO, lambda v: v[:, [1, 0, 2]]), LOST),
    Fault("gyroscope of zeros", imu(GYRO, lambda v: 0 * v), LOST),
    Fault("accelerometer in g", imu(FORCE, lambda v: v / G), LOST),
    Fault("accelerometer with another sign", imu(FORCE, lambda v: -v), LOST),
    Fault("accelerometer without gravity", imu(FORCE, lambda v: v - [0, 0, G]), LOST),
    Fault("y and z of the accelerometer swapped", imu(FORCE, lambda v: v[:, [0, 2, 1]]), LOST),
    Fault("frozen accelerometer", imu(FORCE, lambda v: 0 * v + v[0], slice(500, None)), LOST),
    Fault("frozen gyroscope", imu(GYRO, lambda v: 0 * v + v[0], slice(500, None)), LOST),
    Fault("accelerometer saturates at 9 m/s²", imu(FORCE, lambda v: np.clip(v, -9, 9)), LOST),
    Fault("bias of the accelerometer jumps by 1 m/s²",
          imu(FORCE, lambda v: v + 1.0, slice(500, None)), LOST),
    Fault("gravity of the Moon", setting("gravity", lambda g: 1.62), LOST),
    Fault("gravity downwards is positive", setting("gravity", lambda g: -g), LOST),
    Fault("NaN of the gyroscope", imu(GYRO, lambda v: v * np.nan, slice(500, 550)), "50 held"),
    Fault("height of the fixes with another sign", value("fix", lambda v: v * [1, 1, -1]), LOST),
]  # fmt: skip


# -- what nobody can see ---------------------------------------------------------------------------


def _all_late(data):
    data["t"] += 1.0
    for name in ("fix", "heading"):
        data[name] = (data[name][0] + 1.0, data[name][1])


def _world_turned(data):
    turn = SE2.exp([0.0, 0.0, 0.5])
    data["x0"] = SE2.compose(turn, data["x0"])
    data["fix"] = (data["fix"][0], SE2.act(turn, data["fix"][1]))
    data["heading"] = (data["heading"][0], SO2.compose(turn[2:], data["heading"][1]))


def _shift_and_vague_start(data):
    value("fix", lambda v: v + [20, 0])(data)
    data["std0"] = {"pose.x": 100.0, "pose.y": 100.0, "pose.rz": 0.1}


UNSEEN_CAR = [
    Unseen("all stamps late by 1 s", _all_late, "no sensor says what time it is"),
    Unseen("start, fixes and headings turned together", _world_turned,
           "another choice of the world's axes"),
    Unseen("map shifted while the start is unknown", _shift_and_vague_start,
           "fixes alone say where the world's origin is"),
    Unseen("start known ten times better than said", setting("std0", lambda s: 10 * s),
           "the first fix makes up for it"),
    Unseen("three rows of inputs lost", lambda d: d.update(
        {k: np.delete(d[k], [100, 250, 400], axis=0) for k in ("t", "u")}),
        "inputs are held for 0.2 s, which moves the car by centimetres"),
]  # fmt: skip
UNSEEN_AHRS = [
    Unseen("accelerometer upside down", sensor("accelerometer", lambda v: -v),
           "the same motion of a sensor that is turned over, in a field that rises"),
    Unseen("magnetometer mounted with a turn about the vertical of the start",
           lambda d: d.update({k: v @ SO3.matrix(SO3.exp([0.0, 0.0, 0.5])) for k, v in d.items()}),
           "all sensors turn together: another choice of the body's axes"),
]  # fmt: skip

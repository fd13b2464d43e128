"""Attitude and heading from an IMU with a magnetometer: model, settings, logs."""

from __future__ import annotations

import warnings
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value, named_options
from ..codegen._internal import check_shape, level_outside
from ..groups import SO2, SO3, Product, Rn
from ..systems import Input, Sensor, System
from ..systems._internal import GRAVITY, ErrorCoordinates
from ._given import first_covariance
from ._kalman import EKF
from ._log import Log
from ._sensors import magnetic_heading

_STATE = Product(
    attitude=SO3,
    velocity=Rn(3, ("x", "y", "z"), ("m/s",) * 3),
    gyro_bias=Rn(3, ("x", "y", "z"), ("rad/s",) * 3),
    field=Rn(5, ("horizontal", "vertical", "off_horizontal", "off_vertical", "age")),
)
_ERRORS = 9  # the field is memory, not estimated: it has no error


@named_options
def attitude_model(
    *, gravity: float = GRAVITY, field_time: float = 60.0, deviation_time: float = 0.5
) -> System[Any]:
    """Attitude, velocity and gyroscope bias, driven by gyroscope, accelerometer, magnetometer.

    The accelerometer is an input of the velocity, whose boundedness is what tells the vertical.
    Besides, the model keeps the usual horizontal and vertical part of the field. It keeps how far
    the field was from these lately, and for how long it has been seen. This memory is deterministic
    and has no error of estimation. A magnetometer or accelerometer of zeros is one without a
    reading: the memory of the field stays as it is, and the velocity does.

    Parameters
    ----------
    gravity : float
        m/s².
    field_time : float
        Time in s over which the usual field is learnt, at first all the time since the start;
        longer while it deviates.
    deviation_time : float
        Time in s over which deviations are smoothed.

    Returns
    -------
    System
        Measured inputs "gyro.x" …, "accelerometer.x" …, "magnetometer.x" … (any unit); noise inputs
        "gyro_bias_walk", and "gyro_scale", "accelerometer_scale" in proportion to what is measured.
    """
    units = {"gyro": "rad/s", "accelerometer": "m/s²", "magnetometer": "",
             "gyro_bias_walk": "rad/s²", "gyro_scale": "", "accelerometer_scale": ""}  # fmt: skip
    inputs = [
        Input(f"{name}.{axis}", unit, role="measured" if k < 3 else "noise")
        for k, (name, unit) in enumerate(units.items())
        for axis in "xyz"
    ]

    def rate(t: Value, x: Value, u: Value, p: Value) -> Value:
        parts = _STATE.split(x)
        gyro, a, m, walk, scale, a_scale = (u[k : k + 3] for k in range(0, 18, 3))
        R = SO3.matrix(parts["attitude"])
        omega = gyro + _length(gyro) * scale - parts["gyro_bias"]
        falls = R @ (a + _length(a) * a_scale) + ca.vertcat(0, 0, -gravity)
        world = ca.if_else(ca.sumsqr(a) > 0, falls, ca.DM.zeros(3))
        field = R @ m
        away = ca.vertcat(_length(field[:2]), field[2]) - parts["field"][:2]
        off, age = parts["field"][2:4], parts["field"][4] + deviation_time
        strength = ca.sumsqr(parts["field"][:2]) + TINY_VECTOR
        # the mean of what was seen so far; a field that is not the usual one is learnt slowly, but
        # what is usual is not known at once
        usual = strength * (DISTURBED**2 + (deviation_time / age) ** 2)
        learning = 1 / (1 + ca.sumsqr(off) / usual) / ca.fmin(age, field_time)
        memory = ca.vertcat(learning * away, (away - off) / deviation_time, 1)
        memory = ca.if_else(ca.sumsqr(m) > 0, memory, ca.DM.zeros(5))
        return ca.vertcat(omega, world, walk, memory)

    names = _STATE.tangent_names[:_ERRORS]
    E = np.eye(_STATE.dim)[:_ERRORS]
    errors = ErrorCoordinates(E, lambda x, p: ca.DM(E.T), names, _STATE.tangent_units[:_ERRORS])
    return System("attitude_heading", _STATE, rate, inputs=inputs, errors=errors)


DISTURBED = 0.1  # share of the field's strength by which it deviates where something disturbs it
TINY_VECTOR = 1e-300
UNKNOWN_HEADING = 1e6  # rad, of a heading that a magnetometer of zeros shows


@named_options
class AttitudeHeading:
    """Attitude and heading of an IMU with a magnetometer, world frame with z up and x to the east.

    One setting serves motions from rest to fast turns and throws. Noise is in proportion to the
    measured vectors. The magnetometer corrects heading alone, and with less weight if the field is
    not the usual one. Rest is assumed if nothing moves.

    Parameters
    ----------
    dt : float
        Sample time, s.
    gyro_noise : float
        White noise, rad/s/√Hz.
    gyro_scale, accelerometer_scale : float
        Share of the measured vector that is wrong, with a correlation of 0.1 s. The gyroscope's
        share has the highest likelihood of the headings of four BROAD files.
    bias_walk : float
        rad/s²/√Hz.
    attitude_std0 : float
        First deviation of the attitude, rad; `start` adds what a motion makes of it.
    bias_std0 : float
        First deviation of the bias, rad/s.
    velocity_std : float
        How fast the sensor usually moves, m/s, with a correlation of 0.5 s.
    field_std : float
        Usual deviation of the field in the unit of the magnetometer, with a correlation of 2 s.
    field_lag : float
        Lag of the magnetometer in s, which shows as an error in turns.
    gravity : float
        m/s².
    **model
        Times of `attitude_model`.
    """

    def __init__(
        self,
        dt: float,
        *,
        gyro_noise: float = 1e-4,
        gyro_scale: float = 0.007,
        accelerometer_scale: float = 0.01,
        bias_walk: float = 2e-5,
        attitude_std0: float = 0.1,
        bias_std0: float = 0.01,
        velocity_std: float = 0.5,
        field_std: float = 3.0,
        field_lag: float = 0.01,
        gravity: float = GRAVITY,
        **model: float,
    ) -> None:
        self.dt, self.gravity, self.field_std = dt, gravity, field_std
        self.system = attitude_model(gravity=gravity, **model)
        index = self.system.state.coordinate_slice("field").start
        zero = Rn(3, ("x", "y", "z"), ("m/s",) * 3)

        def field_error(t: Value, x: Value, u: Value, p: Value) -> Value:
            off = 2 * x[index + 2 : index + 4]
            lag = field_lag**2 * ca.sumsqr(u[6:9]) * ca.sumsqr(u[:3])  # of a field that turns by
            known = ca.if_else(ca.sumsqr(u[6:9]) > 0, 0.0, UNKNOWN_HEADING)
            return known + ca.sqrt(field_std**2 + ca.sumsqr(off) + lag) / ca.fmax(
                x[index], TINY_VECTOR
            )

        self.sensors = [
            Sensor("no_drift", "velocity", std_discrete=velocity_std,
                        correlation_time=0.5, dt=dt),
            magnetic_heading(self.system, std_discrete=1.0, scale=field_error,
                             correlation_time=2.0, dt=dt),
            Sensor("zero_rate", lambda t, x, u, p: u[:3] - x[7:10], Rn(3),
                        std_discrete=REST_RATE, correlation_time=0.5, dt=dt),
            Sensor("zero_velocity", lambda t, x, u, p: x[4:7], zero,
                        std_discrete=REST_SPEED, correlation_time=0.5, dt=dt),
        ]  # fmt: skip
        shaped = np.sqrt(2 * 0.1)  # density of errors with a correlation of 0.1 s
        self.options: dict[str, Any] = {
            "std0": {
                "attitude": attitude_std0,
                "velocity": velocity_std,
                "gyro_bias": bias_std0,
            },
            "noise": {
                "gyro": gyro_noise,
                "gyro_scale": gyro_scale * shaped,
                "accelerometer_scale": accelerometer_scale * shaped,
                "gyro_bias_walk": bias_walk,
            },
            "method": "euler",
        }

    def __getstate__(self) -> dict[str, Any]:
        """With sensors as they are traced, which pickle."""
        traced = [entry.bind(self.system).traced for entry in self.sensors]
        return self.__dict__ | {"sensors": traced}

    def log(self, gyro: Any, accelerometer: Any, magnetometer: Any) -> Log:
        """Log of equally spaced samples; the first is taken at time 0.

        A magnetometer without a reading (not finite, zeros, or the same numbers for a second while
        the sensor turns) corrects no heading. The gyroscope alone carries it on, and its deviation
        grows. Such measurements are counted as not finite. Without an accelerometer, the same holds
        of the vertical.

        Parameters
        ----------
        gyro, accelerometer, magnetometer : array_like, shape (N, 3)
            rad/s, m/s², any unit.

        Warns
        -----
        RuntimeWarning
            If a sensor lacks readings for more than 0.1 s, or shows what no such sensor can: the
            message has its name and how often.
        """
        given = _signals(gyro, accelerometer, magnetometer, None)
        gyro, a, m = given.values()
        t = self.dt * np.arange(len(gyro))
        rest = at_rest(gyro, a, self.dt)
        lost = {name: _lost(one, gyro, self.dt) for name, one in given.items() if name != "gyro"}
        lost_of_all = lost | {"gyro": ~np.isfinite(gyro).all(axis=1)}
        _warn_of_signals(given, lost_of_all, self.dt, self.gravity, self.field_std)
        a, m = (
            np.where(none[:, None], 0.0, one)
            for none, one in zip(lost.values(), (a, m), strict=True)
        )
        none = np.zeros((len(t), 3))
        bounded = np.where(lost["accelerometer"][:, None], np.nan, none)
        north = np.broadcast_to(SO2.exp([np.pi / 2]), (len(t), 2))
        north = np.where(lost["magnetometer"][:, None], np.nan, north)
        # each sample stands for the interval that ends with it
        return Log(
            t - self.dt,
            np.concatenate([gyro, a, m, np.zeros((len(t), 9))], axis=1),
            {
                "no_drift": (t, bounded),
                "magnetic_heading": (t, north),
                "zero_rate": (t[rest], none[rest]),
                "zero_velocity": (t[rest], none[rest]),
            },
        )

    def start(
        self, gyro: Any, accelerometer: Any, magnetometer: Any
    ) -> tuple[np.ndarray, np.ndarray]:
        """State and covariance at the last of a log's first samples, arrays (N, 3).

        The gyroscope carries all samples into the frame of the last one, where their means tell the
        vertical and north. Motion adds to the mean of accelerations over the time T a change of
        velocity, ``√2 velocity_std / T``, or less if their spread and length show less. So one
        sample will do at rest. In motion, take a second or two; the filter goes on with the log
        after them.

        Returns
        -------
        x0 : ndarray, shape (15,)
        P0 : ndarray, shape (9, 9)

        Raises
        ------
        ValueError
            If no sample of a sensor is finite and not zero, or if the field is vertical: then there
            is no north.

        Warns
        -----
        RuntimeWarning
            If the accelerations are not of the size of gravity.

        Examples
        --------
        >>> model = AttitudeHeading(0.01)
        >>> rest = np.zeros((1, 3)), [[0.0, 0.0, 9.81]], [[0.0, 17.0, -42.0]]
        >>> x0, P0 = model.start(*rest)
        >>> np.sqrt(np.diag(P0)[:3]).round(3)
        array([0.1, 0.1, 0.1])
        """
        given = _signals(gyro, accelerometer, magnetometer, None)
        gyro, *vectors = given.values()
        turns = [SO3.identity]  # frame of each sample in that of the last one
        for omega in gyro[:0:-1]:
            back = -self.dt * omega
            turns.append(SO3.plus(turns[-1], back) if np.isfinite(back).all() else turns[-1])
        R = SO3.matrix(np.array(turns[::-1]))
        a, m = (
            _readings(name, np.einsum("nij,nj->ni", R, own))
            for name, own in zip(("accelerometer", "magnetometer"), vectors, strict=True)
        )
        mean, field = a.mean(axis=0), m.mean(axis=0)
        size = float(np.linalg.norm(mean))
        up = mean / size
        east = np.cross(field, up)
        strength = float(np.linalg.norm(east))
        if not strength > VERTICAL * float(np.linalg.norm(field)):
            raise ValueError(
                f"magnetometer: the mean field {field.round(3)} is parallel to the mean "
                f"acceleration {mean.round(3)}, so that there is no north; check axes and units, "
                "or start where the field has a horizontal part"
            )
        _warn_of_gravity(size, self.gravity)
        east /= strength
        axes = np.stack([east, np.cross(up, east), up])
        x0 = self.system.state.join(
            attitude=SO3.from_matrix(axes),
            field=np.array([strength, float(field @ up), 0.0, 0.0, self.dt * len(m)]),
        )
        std0, g = self.options["std0"], self.gravity
        seen = a.var(axis=0).sum() / 3 + (size - g) ** 2
        motion = min(2 * (std0["velocity"] / (self.dt * len(a))) ** 2, seen) / g**2
        # of an acceleration east, north: turns the vertical, and with it north where it is steep
        J = axes.T @ np.array([[0.0, -1.0], [1.0, 0.0], [float(field @ up) / strength, 0.0]])
        P0 = first_covariance(self.system, x0, None, std0)
        P0[:3, :3] += motion * J @ J.T
        return x0, P0

    def filter(self, x0: np.ndarray, P0: np.ndarray | None = None) -> EKF:
        """The filter, from a first state; as sure of it as ``attitude_std0`` if P0 is left out."""
        options = self.options if P0 is None else {**self.options, "std0": None}
        return EKF(self.system, self.sensors, x0, P0, **options)


REST_RATE, REST_SPEED = np.radians(0.2), 0.02  # what is left of the motion at rest
REST_LIMITS, REST_SECONDS = (np.radians(2.0), 0.5), 1.5


def at_rest(gyro: np.ndarray, accelerometer: np.ndarray, dt: float) -> np.ndarray:
    """Whether rates and accelerations have hardly changed for 1.5 s, shape (N,).

    A gyroscope that is off by 2 °/s an axis can rest, too. A sample that is not finite is no rest.
    """
    keep = np.exp(-dt / 0.5)
    samples = np.concatenate([gyro, accelerometer], axis=1)
    whole = np.asarray(np.isfinite(samples).all(axis=1))
    still, quiet = np.zeros(len(samples), dtype=bool), 0.0
    mean = samples[np.argmax(whole)]
    for k in np.flatnonzero(whole):
        mean = keep * mean + (1 - keep) * samples[k]
        off = samples[k] - mean
        calm = (
            np.linalg.norm(off[:3]) < REST_LIMITS[0]
            and np.abs(mean[:3]).max() < REST_LIMITS[0]
            and np.linalg.norm(off[3:]) < REST_LIMITS[1]
        )
        quiet = quiet + dt if calm and (k == 0 or whole[k - 1]) else 0.0
        still[k] = quiet >= REST_SECONDS
    return still


FROZEN_SECONDS, FROZEN_TURN = 1.0, 0.1  # s, rad; noise repeats no reading for so long
LOST_SECONDS = 0.1  # s without a reading, from which on it is warned about
VERTICAL = 0.01  # sine of the angle between field and vertical, below which there is no north
FASTEST = 70.0  # rad/s, twice the range of the fastest gyroscopes in use
# Of the four BROAD files the worst have 5 % and 12° (fast translation, where gravity is not all).
UNEVEN, TURNED = 0.15, 20.0
# Strengths of a field in its usual deviations: less tells no north, no sensor has more.
UNITS = (3.0, 500.0)
GRAVITIES = (0.5, 2.0)  # mean accelerations, in g, that a sensor in use may have


def _signals(gyro: Any, accelerometer: Any, magnetometer: Any, count: int | None) -> Any:
    """Samples by name, as many of each."""
    given = {"gyro": gyro, "accelerometer": accelerometer, "magnetometer": magnetometer}
    made = {}
    for name, samples in given.items():
        made[name] = check_shape(name, samples, (count, 3), finite=False)
        count = len(made[name])
    return made


def _has_reading(samples: np.ndarray) -> np.ndarray:
    return np.isfinite(samples).all(axis=1) & (samples != 0.0).any(axis=1)


def _lost(samples: np.ndarray, gyro: np.ndarray, dt: float) -> np.ndarray:
    """Where a vector that is fixed in the world has no reading, shape (N,)."""
    same = np.concatenate([[False], (samples[1:] == samples[:-1]).all(axis=1)])
    rate = np.nan_to_num(np.linalg.norm(gyro, axis=1))
    turned = np.cumsum(np.where(rate > np.sqrt(3) * REST_LIMITS[0], rate, 0.0)) * dt
    began = np.maximum.accumulate(np.where(same, 0, np.arange(len(samples))))
    since = np.arange(len(samples)) - began
    is_frozen = (since * dt >= FROZEN_SECONDS) & (turned - turned[began] > FROZEN_TURN)
    return ~_has_reading(samples) | is_frozen


REMEDIES = {
    "gyro": "the last rate is held there, and the estimate is not to be trusted",
    "accelerometer": "the vertical is carried on by the gyroscope alone there",
    "magnetometer": "the heading is carried on by the gyroscope alone there",
}


def _warn_of_signals(
    given: dict[str, np.ndarray], lost: dict[str, np.ndarray], dt: float, gravity: float,
    field_std: float,
) -> None:  # fmt: skip
    """Say which sensor has no readings, or shows what it cannot."""
    for name, rows in lost.items():
        if _longest(rows) * dt > LOST_SECONDS:
            _warn(
                f"{name}: {rows.sum()} of {len(rows)} samples, the first at row "
                f"{np.argmax(rows)}, have no reading (not finite, zeros, or unchanged while the "
                f"sensor turns); {REMEDIES[name]}. Check the sensor and its driver"
            )
    fastest = np.nanmax(np.linalg.norm(given["gyro"], axis=1), initial=0.0)
    if fastest > FASTEST:
        _warn(f"gyro turns at up to {fastest:.4g} rad/s, more than a sensor can show; give rad/s, "
              "np.radians(…) of °/s")  # fmt: skip
    usable = given["accelerometer"][~lost["accelerometer"]]
    if len(usable):
        _warn_of_gravity(float(np.median(np.linalg.norm(usable, axis=1))), gravity)
    both = ~lost["accelerometer"] & ~lost["magnetometer"]
    if both.any():
        _warn_of_field(given["accelerometer"][both], given["magnetometer"][both], field_std)


def _warn_of_field(a: np.ndarray, m: np.ndarray, field_std: float) -> None:
    """Of a field that turns with the sensor: axes, offsets, iron, magnets, ends of its range."""
    strengths = np.linalg.norm(m, axis=1)
    usual = float(np.median(strengths))
    if not UNITS[0] * field_std <= usual <= UNITS[1] * field_std:
        _warn(
            f"magnetometer: the field has a strength of {usual:.3g} where field_std = "
            f"{field_std:.3g} is its usual deviation; give field_std in the magnetometer's unit"
        )
    spread = np.quantile(np.abs(strengths / usual - 1), 0.9)
    if spread > UNEVEN:
        _warn(
            f"magnetometer: the strength of the field is off by {spread:.0%} or more in a tenth of "
            "the samples; calibrate it for iron and offsets, and check its range and magnets nearby"
        )
    cosines = np.einsum("ni,ni->n", a, m) / (strengths * np.linalg.norm(a, axis=1))
    angles = np.degrees(np.arccos(np.clip(cosines, -1, 1)))
    turned = np.median(np.abs(angles - np.median(angles)))
    if turned > TURNED:
        _warn(
            f"magnetometer: its angle to the accelerometer is off by {turned:.0f}° or more in half "
            "of the samples; check the axes and signs of both"
        )


def _longest(rows: np.ndarray) -> int:
    """Most rows in one piece."""
    ends = np.flatnonzero(np.diff(np.concatenate([[False], rows, [False]])))
    return int((ends[1::2] - ends[::2]).max(initial=0))


def _warn_of_gravity(size: float, gravity: float) -> None:
    if not GRAVITIES[0] * gravity < size < GRAVITIES[1] * gravity:
        _warn(
            f"accelerometer shows {size:.4g} m/s² on average, where gravity alone is "
            f"{gravity:.4g} m/s²; give m/s²: a g is 9.80665 m/s²"
        )


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=level_outside())


def _readings(name: str, samples: np.ndarray) -> np.ndarray:
    """Those of the samples (N, 3) that are finite and not zero."""
    rows = samples[_has_reading(samples)]
    if not len(rows):
        raise ValueError(
            f"{name}: none of the first samples is finite and not zero; start the log where one is"
        )
    return rows


def _length(v: Value) -> Value:
    return ca.sqrt(ca.sumsqr(v) + TINY_VECTOR)

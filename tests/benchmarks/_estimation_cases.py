"""Filters of real logs and of simulated problems, as benchmarks and tests run them.

One setting serves all logs of a kind. No filter is told anything of the truth but where a case says
so; noise is from data sheets, rest, or the likelihood of what the filter uses.
"""

from dataclasses import dataclass
from functools import cache

import casadi as ca
import numpy as np

from lgcontrol.estimation import (
    EKF,
    AttitudeHeading,
    Log,
    beacon_range,
    gnss,
    inertial_navigation,
    landmark_position,
    odometry,
)
from lgcontrol.groups import SE2, SE23, SO3, Product, Rn
from lgcontrol.systems import Sensor, System

from . import _ukfm_peer

ODOMETRY = odometry()

# One setting a kind of sensor. Positions and landmarks from first headings that are off by 15° to
# 45° need the five rounds that are the default.
UNKNOWN_HEADING = {"iterations": 5}


def rms(error):
    """Root of the mean squared length over all but the last axis."""
    return float(np.sqrt((np.asarray(error) ** 2).sum(axis=-1).mean()))


# -- attitude: BROAD ------------------------------------------------------------------------------


@cache
def attitude(dt):
    return AttitudeHeading(dt)


def run_broad(recording):
    """Quaternions [x, y, z, w] of a trial, causal, from the first samples on."""
    dt = float(recording.t[1])
    model = attitude(dt)
    signals = [recording.signals[name] for name in ("gyro", "accelerometer", "magnetometer")]
    first = model.start(*(one[:5] for one in signals))  # at rest: where the first one is
    run = model.filter(*first).run(model.log(*signals))
    return run.x[run.index(recording.t), :4]


def attitude_errors(recording, quaternions):
    """Total error and inclination, rms in degrees over what the trial scores, no alignment."""
    truth, moves = recording.truth["attitude"][1], recording.truth["moves"][1][:, 0]
    scored = (moves > 0) & np.isfinite(truth).all(axis=1)
    error = SO3.compose(quaternions[scored], SO3.inverse(truth[scored]))
    x, y, z, w = error.T
    total = 2 * np.arccos(np.clip(np.abs(w), 0, 1))
    inclination = 2 * np.arccos(np.clip(np.sqrt(w**2 + z**2), 0, 1))
    return tuple(float(np.degrees(np.sqrt((e**2).mean()))) for e in (total, inclination))


APART = 4.0  # s between headings that count, twice the time that their errors last
FIELD_SHARES = np.exp(np.linspace(np.log(0.1), np.log(2.0), 25))  # of the usual field's deviation


def heading_predictions(run, dt):
    """Innovations of the heading, its variance, and that of one measurement; by first sample.

    Of the filter as it runs, which takes each sample with the covariance of errors that last. What
    it then says of headings 4 s apart, with the covariance of one of them, is a prediction of these
    by all that came before. No truth is in it.
    """
    said, step, found = run.innovations["magnetic_heading"], int(APART / dt), []
    for first in range(1, step, step // 4):
        some = slice(first, None, step)
        nu = said.innovation[some, 0]
        at = run.index(said.t[some])
        down = SO3.matrix(run.x[at, :4])[:, 2]
        own = np.einsum("ni,nij,nj->n", down, run.P[at, :3, :3], down)
        R = np.maximum(nu**2 / said.nis[some] - own, 1e-12) / said.lasting
        found.append((nu, own, R))
    return found


def heading_likelihood(predictions):
    """Highest mean log-likelihood over the field's share, of sets of `heading_predictions`."""

    def total(one, share):
        nu, own, R = one
        S = own + share**2 * R
        return -0.5 * np.sum(nu**2 / S + np.log(2 * np.pi * S))

    sets = list(zip(*predictions, strict=True))  # by first sample, all files together
    return float(np.mean([max(sum(total(one, share) for one in some) for share in FIELD_SHARES)
                          for some in sets]))  # fmt: skip


def gyro_scale_study(recordings, scales):
    """Likelihoods, scores [deg] and NEES of the attitude for values of ``gyro_scale``."""
    dt = float(recordings[0].t[1])
    model, rows = attitude(dt), {}
    names = "gyro", "accelerometer", "magnetometer"
    signals = [[one.signals[name] for name in names] for one in recordings]
    starts = [model.start(*(part[:5] for part in own)) for own in signals]
    logs = [model.log(*own) for own in signals]
    ekf = model.filter(*starts[0])
    noisy = [ekf.system.input_names[i] for i in ekf._noisy]
    scaled = np.array([name.startswith("gyro_scale") for name in noisy])
    for scale in scales:
        densities = np.where(scaled, scale * np.sqrt(0.2), ekf.densities)
        tuned = ekf.with_noise(densities, ekf.noise_scale, expected_runs=len(scales) * len(logs))
        runs = [tuned.run(log, *first) for log, first in zip(logs, starts, strict=True)]
        said = [heading_predictions(run, dt) for run in runs]
        rows[scale] = {
            "log-likelihood, field by file": sum(heading_likelihood([one]) for one in said),
            "log-likelihood, one field": heading_likelihood(said),
            "total error": [attitude_errors(recording, run.x[run.index(recording.t), :4])[0]
                            for recording, run in zip(recordings, runs, strict=True)],
            "NEES": [attitude_nees(recording, run)
                     for recording, run in zip(recordings, runs, strict=True)],
        }  # fmt: skip
        rows[scale]["mean error"] = float(np.mean(rows[scale]["total error"]))
    return rows


def attitude_nees(recording, run, every=20):
    """NEES of the attitude over what the trial scores."""
    truth, moves = recording.truth["attitude"][1], recording.truth["moves"][1][:, 0]
    some = np.flatnonzero((moves > 0) & np.isfinite(truth).all(axis=1))[::every]
    at = run.index(recording.t[some])
    e, P = SO3.minus(truth[some], run.x[at, :4]), run.P[at, :3, :3]
    return float(np.mean(e * np.linalg.solve(P, e[..., None])[..., 0]))


CUT_SECONDS, CUT_START, CUTS = 20.0, 1.0, 6  # of each trial; s that the start takes


def cut_in_motion(recording, peer):
    """Errors of pieces that start where the sensor moves, from their second second on.

    Of each piece the total error, rms in degrees, ours and that of ``peer(signals)``, which takes
    the first second as well; and our NEES of the attitude.
    """
    dt = float(recording.t[1])
    truth, moves = recording.truth["attitude"][1], recording.truth["moves"][1][:, 0] > 0
    count, used = int(CUT_SECONDS / dt), int(CUT_START / dt)
    known = np.isfinite(truth).all(axis=1)
    places = np.flatnonzero((moves & known)[:-count])
    model, rows = attitude(dt), []
    for k in places[np.linspace(0, len(places) - 1, CUTS + 2).astype(int)[1:-1]]:
        signals = [recording.signals[name][k : k + count]
                   for name in ("gyro", "accelerometer", "magnetometer")]  # fmt: skip
        x0, P0 = model.start(*(one[:used] for one in signals))
        run = model.filter(x0, P0).run(model.log(*(one[used:] for one in signals)))
        at = run.index(recording.t[: count - used])
        late = np.arange(k + used, k + count)
        scored = (moves & known)[late]
        found = {"ours": run.x[at, :4]}
        if (theirs := peer(signals)) is not None:
            found["peer"] = theirs[used:]
        errors = {who: SO3.minus(truth[late][scored], q[scored]) for who, q in found.items()}
        row = {who: np.degrees(rms(e)) for who, e in errors.items()}
        P, e = run.P[at][scored][:, :3, :3], errors["ours"]
        row["NEES"] = np.mean(e * np.linalg.solve(P, e[..., None])[..., 0])
        rows.append(row)
    return {key: [float(row[key]) for row in rows] for key in rows[0]}


# -- SE(2): Wifibot -------------------------------------------------------------------------------

FIX_STD, ODOMETRY_STD = 0.1, np.array([0.15, 0.05, 0.15])  # the task's


def wifibot_task(recording, seeds):
    """Fixes at 2 Hz with noise by seed, shape (seeds, K, 2), and a start turned by 30°."""
    t, truth = recording.t, recording.truth["pose"][1]
    rows = np.unique(np.searchsorted(t, np.arange(t[0], t[-1], 0.5)))
    noise = np.stack([np.random.RandomState(s).randn(len(rows), 2) for s in seeds])
    start = SE2.plus(truth[0], [0.0, 0.0, np.radians(30)])
    return rows, truth[rows, :2] + FIX_STD * noise, start


def run_wifibot(recording, seeds=range(20), **options):
    """RMSE of the position over all samples, by seed."""
    rows, fixes, start = wifibot_task(recording, seeds)
    density = ODOMETRY_STD * np.sqrt(np.median(np.diff(recording.t)))
    ekf = EKF(
        ODOMETRY, [gnss(ODOMETRY, std_discrete=FIX_STD)], start,
        std0={"pose.x": 1e-3, "pose.y": 1e-3, "pose.rz": np.radians(30)},
        noise=dict(zip(ODOMETRY.input_names, density, strict=True)), **options,
    )  # fmt: skip
    log = Log(recording.t, recording.signals["velocity"], {"gnss": (recording.t[rows], fixes)})
    run = ekf.run(log)
    error = run.x[:, run.index(recording.t), :2] - recording.truth["pose"][1][:, :2]
    return np.sqrt((error**2).sum(axis=-1).mean(axis=-1))


def published_wifibot(recording, seeds=range(20)):
    """The invariant filter as published (Barrau and Bonnabel 2017, section IV), in plain NumPy.

    First order in the step, no covariance reset: the peer on the same noise.
    """
    rows, fixes, start = wifibot_task(recording, seeds)
    t, u = recording.t, recording.signals["velocity"]
    due = {row: k for k, row in enumerate(rows)}
    errors = []
    for own in fixes:
        p, angle = start[:2].copy(), np.arctan2(start[3], start[2])
        P = np.diag([1e-6, 1e-6, np.radians(30) ** 2])
        squares = []
        for n in range(len(t)):
            if n:
                dt = t[n] - t[n - 1]
                v, w = u[n - 1, :2], u[n - 1, 2]
                R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                p, angle = p + R @ v * dt, angle + w * dt
                F = np.eye(3) - dt * np.array([[0, -w, v[1]], [w, 0, -v[0]], [0, 0, 0]])
                P = F @ P @ F.T + dt**2 * np.diag(ODOMETRY_STD**2)
            if n in due:
                R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                S = P[:2, :2] + FIX_STD**2 * np.eye(2)
                K = P[:, :2] @ np.linalg.inv(S)
                d = K @ R.T @ (own[due[n]] - p)
                moved = SE2.exp(d)
                p, angle = p + R @ moved[:2], angle + d[2]
                P = P - K @ P[:2]
            squares.append(((p - recording.truth["pose"][1][n, :2]) ** 2).sum())
        errors.append(np.sqrt(np.mean(squares)))
    return np.array(errors)


# -- ranges: Plaza --------------------------------------------------------------------------------


def ranging(radios):
    """Pose, the scale of all ranges, and a bias of each radio."""
    biases = {f"{name}_bias": Rn(1) for name in radios}
    return System(
        "ranging",
        Product(pose=SE2, range_scale=Rn(1), **biases),
        lambda t, x, u, p: ca.vertcat(u, np.zeros(1 + len(biases))),
        inputs=ODOMETRY.inputs,
    )


def run_plaza(recording):
    """Run from the true start; RMSE of the position, NEES of position and of pose."""
    truth_t, truth = recording.truth["pose"]
    system = ranging(recording.places)
    beacons = [
        beacon_range(system, place, name=name, bias=f"{name}_bias", scale="range_scale",
                     std_discrete=0.5)
        for name, place in recording.places.items()
    ]  # fmt: skip
    biases = {f"{name}_bias": 0.5 for name in recording.places}
    ekf = EKF(
        system, beacons, system.state.join(pose=truth[0]),
        std0={"pose": 0.05, "range_scale": 0.1} | biases,
        noise={"velocity.x": 0.1, "velocity.y": 0.05, "velocity.rz": 0.02}, robust="huber",
    )  # fmt: skip
    run = ekf.run(Log(recording.t, recording.signals["velocity"], recording.measurements))
    known = (truth_t >= run.t[0]) & np.isfinite(truth).all(axis=1)
    states = np.concatenate([truth[known], np.zeros((known.sum(), 1 + len(biases)))], axis=1)
    error = run.x[run.index(truth_t[known]), :2] - truth[known, :2]
    nees = run.nees(truth_t[known], states, [0, 1]).mean()
    return {"rmse [m]": rms(error), "NEES": float(nees), "scale": float(run.x[-1, 4])}


# -- IMU and GNSS: KITTI --------------------------------------------------------------------------

NAVIGATION = inertial_navigation()
DENSITIES = {"gyro": 0.007, "accelerometer": 0.05}  # by the likelihood, to a factor of two
WALKS = {"gyro_bias_walk": 2.91e-6, "accelerometer_bias_walk": 1.67e-4}  # data sheet


@dataclass
class Kitti:
    """Fixes 1, 3, 5, … are used, 2, 4, 6, … scored; it starts at fix 1, heading to fix 3."""

    ekf: EKF
    log: Log
    held: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, recording, **options):
        t, fixes = recording.measurements["gnss"]
        there = np.isfinite(fixes).all(axis=1)
        t, fixes = t[there], fixes[there]
        way = fixes[3] - fixes[1]
        # two fixes where a car stands say nothing of where it looks
        heading = min(np.sqrt(2) * 0.05 / (np.linalg.norm(way[:2]) + 1e-9), np.pi / np.sqrt(3))
        turn = SO3.from_rotation_vector([0, 0, np.arctan2(way[1], way[0])])
        body = SE23.from_rotation(turn, [fixes[1], way / (t[3] - t[1])])
        ekf = EKF(
            NAVIGATION, [gnss(NAVIGATION, std_discrete=0.05)], NAVIGATION.state.join(body=body),
            std0={"body": 0.1, "body.vx": 1.0, "body.vy": 1.0, "body.vz": 1.0, 
                  "body.rz": np.hypot(0.2, heading), "gyro_bias": 0.01, "accelerometer_bias": 0.2},
            noise=DENSITIES | WALKS, covariance_method="euler", **options,
        )  # fmt: skip
        later = recording.t > t[1]
        first = np.flatnonzero(later)[0] - 1
        u = np.concatenate([recording.signals["gyro"], recording.signals["accelerometer"]], axis=1)
        times = np.concatenate([t[1:2], recording.t[later]])
        log = Log(times, u[first:], {"gnss": (t[1::2], fixes[1::2])}, at=t[2::2])
        return cls(ekf, log, (t[2::2], fixes[2::2]))

    def run(self, gyro=1.0, accelerometer=1.0, fix=1.0):
        """With densities and the deviation of fixes times these factors."""
        held = self.ekf.densities.copy()
        self.ekf.densities = held * np.r_[np.full(3, gyro), np.full(3, accelerometer), np.ones(6)]
        self.ekf.noise_scale = np.array([fix])
        try:
            return self.ekf.run(self.log)
        finally:
            self.ekf.densities, self.ekf.noise_scale = held, np.ones(1)

    def score(self, run):
        """Horizontal RMSE at the fixes that were not used, m."""
        t, fixes = self.held
        return rms(run.x[run.index(t), :2] - fixes[:, :2])


# -- simulated problems ---------------------------------------------------------------------------

SPEEDS_STD, HEADING_STD = np.array([0.01, 0.01, np.radians(1)]), np.radians(45)  # of a sample


def localization(runs, seed=0):
    """Circle of 10 m in 40 s, odometry at 100 Hz, fixes of 1 m at 1 Hz, headings off by σ 45°.

    Returns the log, truth and starts (UKF-M, localization).
    """
    rng, dt = np.random.default_rng(seed), 0.01
    t, u = dt * np.arange(4000), np.array([2 * np.pi * 5 / 40, 0.0, 2 * np.pi / 40])
    # the problem steps the position with the heading at the start of a step
    angle = u[2] * t
    p = np.cumsum(np.column_stack([np.cos(angle), np.sin(angle)]) * u[0] * dt, axis=0)
    p = np.vstack([np.zeros(2), p[:-1]])
    truth = np.column_stack([p, np.cos(angle), np.sin(angle)])
    measured = u + SPEEDS_STD * rng.normal(size=(runs, 4000, 3))
    fixes = p[100::100] + rng.normal(size=(runs, 39, 2))
    turns = np.zeros((runs, 3))
    turns[:, 2] = HEADING_STD * rng.normal(size=runs)
    log = Log(t, measured, {"gnss": (t[100::100], fixes)})
    return log, truth, SE2.plus(truth[0], turns)


def run_localization(make, runs=100, seed=0, **options):
    """Position RMSE, its NEES and that of the heading after 20 s."""
    log, truth, starts = localization(runs, seed)
    density = SPEEDS_STD * np.sqrt(0.01)
    ekf = make(
        ODOMETRY, [gnss(ODOMETRY, std_discrete=1.0)],
        std0={"pose.x": 1e-4, "pose.y": 1e-4, "pose.rz": HEADING_STD}, method="euler",
        noise=dict(zip(ODOMETRY.input_names, density, strict=True)), **options,
    )  # fmt: skip
    run = ekf.run(log, starts)
    error = run.x[:, run.index(log.t), :2] - truth[:, :2]
    late = np.broadcast_to(truth[2000:], (runs, 2000, 4))
    nees = [run.nees(log.t[2000:], late, rows).mean() for rows in ([0, 1], [2])]
    return {"rmse [m]": rms(error), "NEES of position": float(nees[0]),
            "NEES of heading": float(nees[1])}  # fmt: skip


def peer_localization(runs=100, seed=0):
    """The invariant filter of UKF-M itself on the same draws."""
    P0 = np.diag([HEADING_STD**2, 0.0, 0.0])
    return _ukfm_peer.localization(*localization(runs, seed), np.diag(SPEEDS_STD**2), P0, np.eye(2))


INERTIAL = inertial_navigation(gravity=9.82, gyro_bias=False, accelerometer_bias=False)
LANDMARKS = ((0, 2, 2), (-2, -2, -2), (2, -2, -2))
IMU_STD, LANDMARK_STD = 0.01, 0.1  # of a sample [rad/s, m/s²]; m
TURNED, SHIFTED = np.radians(15) / np.sqrt(3), 1 / np.sqrt(3)  # of starts, per axis


def inertial(runs, seed=0):
    """Circle of 10 m in 30 s, IMU at 100 Hz, three landmarks each second, starts off by 15°, 1 m.

    Returns the log, truth and starts (UKF-M, inertial navigation).
    """
    rng, dt, N = np.random.default_rng(seed), 0.01, 3000
    angle = 2 * np.pi * np.linspace(0, 1, N)
    p = 5 * np.column_stack([np.sin(angle), np.cos(angle), 0 * angle])
    v = np.vstack([np.zeros(3), np.diff(p, axis=0)]) / dt
    a = np.vstack([np.zeros(3), np.diff(v, axis=0)]) / dt
    force = a - [0, 0, -9.82]
    speed = np.vstack([v[0], v[0] + np.cumsum(a[:-1] * dt, axis=0)])
    place = np.vstack([p[0], p[0] + np.cumsum(speed[:-1] * dt + a[:-1] * dt**2 / 2, axis=0)])
    truth = np.column_stack([place, speed, np.zeros((N, 3)), np.ones(N)])
    measured = np.concatenate([np.zeros((N, 3)), force], axis=1)
    u = measured + IMU_STD * rng.normal(size=(runs, N, 6))
    t = dt * np.arange(N)
    seen = {
        f"landmark{k}": (t[100::100], place_of - place[100::100] + LANDMARK_STD * rng.normal(
            size=(runs, 29, 3)))
        for k, place_of in enumerate(np.array(LANDMARKS, dtype=float))
    }  # fmt: skip
    starts = np.repeat(truth[None, 0], runs, axis=0)
    starts[:, 6:] = SO3.exp(TURNED * rng.normal(size=(runs, 3)))
    starts[:, :3] += SHIFTED * rng.normal(size=(runs, 3))
    return Log(t, u, seen), truth, starts


def run_inertial(make, runs=100, seed=0, **options):
    """Position RMSE, NEES of position and attitude from the first step on."""
    log, truth, starts = inertial(runs, seed)
    landmarks = [
        landmark_position(INERTIAL, place_of, name=f"landmark{k}", std_discrete=LANDMARK_STD)
        for k, place_of in enumerate(LANDMARKS)
    ]
    density = IMU_STD * np.sqrt(0.01)
    ekf = make(
        INERTIAL, landmarks, method="rk4" if make is EKF else "euler",
        std0={"body.x": SHIFTED, "body.y": SHIFTED, "body.z": SHIFTED, "body.vx": 1e-4,
              "body.vy": 1e-4, "body.vz": 1e-4, "body.rx": TURNED, "body.ry": TURNED,
              "body.rz": TURNED},
        noise={"gyro": density, "accelerometer": density}, **options,
    )  # fmt: skip
    run = ekf.run(log, starts)
    error = run.x[:, run.index(log.t), :3] - truth[:, :3]
    states = np.broadcast_to(truth[1:], (runs, len(truth) - 1, 10))
    nees = [run.nees(log.t[1:], states, rows).mean() for rows in ([0, 1, 2], [6, 7, 8])]
    return {"rmse [m]": rms(error), "NEES of position": float(nees[0]),
            "NEES of attitude": float(nees[1])}  # fmt: skip


def peer_inertial(runs=100, seed=0):
    """The invariant filter of UKF-M itself on the same draws."""
    P0 = np.diag(np.repeat([TURNED**2, 0.0, SHIFTED**2], 3))
    Q, R = IMU_STD**2 * np.eye(6), LANDMARK_STD**2 * np.eye(9)
    return _ukfm_peer.inertial(*inertial(runs, seed), Q, P0, R)


# -- consistency from large first errors -----------------------------------------------------------

TURNING = System(
    "turning",
    Product(attitude=SO3, bias=Rn(3)),
    lambda t, x, u, p: ca.vertcat(u[:3] - x[4:], u[3:]),
    inputs=[*(f"gyro.{a}" for a in "xyz"), *(f"walk.{a}" for a in "xyz")],
)
DIRECTIONS = {"gravity": np.array([0.0, 0.0, 1.0]), "field": np.array([0.0, 0.6, -0.8])}


def run_turning(make, degrees, runs=100, steps=200, seed=0, **options):
    """Attitude and bias from two directions, first errors of σ per axis cut at 120°.

    Returns the consistency over all runs; of the first update, NEES of the attitude and both NIS.
    """
    rng, dt = np.random.default_rng(seed), 0.02
    omega = rng.normal(size=(runs, 1, 3)) * np.sin(0.05 * np.arange(steps))[:, None]
    bias = 0.05 * rng.normal(size=(runs, 1, 3)) + np.cumsum(
        1e-3 * np.sqrt(dt) * rng.normal(size=(runs, steps, 3)), axis=1
    )
    gyro = omega + bias + 0.01 / np.sqrt(dt) * rng.normal(size=omega.shape)
    q = [SO3.random(rng, runs)]
    for k in range(steps):
        q.append(SO3.plus(q[-1], dt * omega[:, k]))
    q = np.stack(q, axis=1)
    R = SO3.matrix(q[:, 1:])
    seen = {
        name: R.swapaxes(-1, -2) @ d + 0.05 * rng.normal(size=(runs, steps, 3))
        for name, d in DIRECTIONS.items()
    }
    drawn = np.radians(degrees) * rng.normal(size=(20 * runs, 3))
    turns = drawn[np.linalg.norm(drawn, axis=1) < np.radians(120)][:runs]
    starts = np.concatenate([SO3.plus(q[:, 0], -turns), np.zeros((runs, 3))], axis=1)
    measurements = [
        Sensor(name, lambda t, x, u, p, d=d: SO3.matrix(x[:4]).T @ ca.DM(d), Rn(3),
                    std_discrete=0.05)
        for name, d in DIRECTIONS.items()
    ]  # fmt: skip
    ekf = make(
        TURNING, measurements, std0={"attitude": np.radians(degrees), "bias": 0.05},
        noise={"gyro": 0.01, "walk": 1e-3}, method="euler", **options,
    )  # fmt: skip
    t = dt * np.arange(steps)
    u = np.concatenate([gyro, 0 * gyro], axis=-1)
    run = ekf.run(Log(t, u, {name: (t + dt, y) for name, y in seen.items()}), starts)
    truth = np.concatenate([q[:, 1:], bias], axis=-1)
    first = {"NEES": run.nees(t[:1] + dt, truth[:, :1], [0, 1, 2])} | {
        f"NIS {name}": said.nis[:, 0] / 3 for name, said in run.innovations.items()
    }
    return run.consistency(t + dt, truth), {key: float(v.mean()) for key, v in first.items()}


VECTORS = System(
    "vectors",
    Product(turn=Rn(3), bias=Rn(3)),
    lambda t, x, u, p: ca.vertcat(u[:3] - x[3:], u[3:]),
    inputs=TURNING.inputs,
)


def run_vectors(degrees, runs=100, steps=200, seed=0):
    """The same linearized at the identity, so that the filter is exact: what chance makes of it."""
    rng, dt = np.random.default_rng(seed), 0.02
    bias = 0.05 * rng.normal(size=(runs, 1, 3)) + np.cumsum(
        1e-3 * np.sqrt(dt) * rng.normal(size=(runs, steps, 3)), axis=1
    )
    gyro = bias + 0.01 / np.sqrt(dt) * rng.normal(size=bias.shape)  # at rest, at zero
    slopes = {name: np.cross(np.eye(3), d) for name, d in DIRECTIONS.items()}
    at = dt * np.arange(1, steps + 1)
    seen = {name: (at, 0.05 * rng.normal(size=(runs, steps, 3))) for name in slopes}
    starts = np.concatenate(
        [np.radians(degrees) * rng.normal(size=(runs, 3)), np.zeros((runs, 3))], axis=1
    )
    ekf = EKF(
        VECTORS,
        [Sensor(name, lambda t, x, u, p, C=C: ca.DM(C) @ x[:3], Rn(3), std_discrete=0.05)
         for name, C in slopes.items()],
        std0={"turn": np.radians(degrees), "bias": 0.05}, method="euler", iterations=1,
        noise={"gyro": 0.01, "walk": 1e-3},
    )  # fmt: skip
    run = ekf.run(Log(at - dt, np.concatenate([gyro, 0 * gyro], axis=-1), seen), starts)
    return run.consistency(at, np.concatenate([0 * bias, bias], axis=-1))

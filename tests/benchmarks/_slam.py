"""Planar SLAM of UKF-M: a robot goes round past 20 landmarks that it meets one after the other."""

import time

import numpy as np

from lgcontrol.estimation import LandmarkMap
from lgcontrol.groups import SE2, SO2

from . import _ukfm_peer

COUNT, NEAR, FAR = 20, 1.0, 5.0  # landmarks; range of the sensor, m
SPEED, TURN = 0.25, np.radians(1.5)
ODOMETRY = {"velocity.x": 0.05 * SPEED / np.sqrt(2), "velocity.rz": 0.1 * SPEED * np.sqrt(2)}
SEEN = 0.1  # m
FIRST = 10  # step from which on errors count


def drawn(seconds, rng, count=COUNT):
    """Headings, positions, odometry at 1 Hz, observations, and which of them there are."""
    angle = TURN * np.arange(seconds)
    R = SO2.matrix(SO2.from_angle(angle))
    p = np.vstack([np.zeros(2), np.cumsum(SPEED * R[:-1, :, 0], axis=0)])
    radius = SPEED / TURN
    around = 2 * np.pi * np.arange(count) / count
    reach = radius + NEAR + 2
    landmarks = np.column_stack([reach * np.cos(around), reach * np.sin(around) + radius])
    odometry = [SPEED, TURN] + np.array(list(ODOMETRY.values())) * rng.normal(size=(seconds, 2))
    away = landmarks - p[:, None]
    distance = np.linalg.norm(away, axis=-1)
    y = np.einsum("tji,tlj->tli", R, away) + SEEN * rng.normal(size=(seconds, count, 2))
    return angle, p, odometry, y, (distance > NEAR) & (distance < FAR)


def run_slam(runs=100, seconds=2500, count=COUNT, seed=0, **options):
    """RMSE of position and heading, their NEES, means over all steps from the tenth on.

    Errors of one run last: the deviation of the RMSE by the draw is that of means of single runs.
    """
    slam = LandmarkMap(count, std0=0.0, noise=ODOMETRY, std_discrete=SEEN, method="euler",
                       **options)  # fmt: skip
    slam.compile()
    off, nees, began = [], [], time.perf_counter()
    for run in range(seed, seed + runs):
        angle, p, odometry, y, visible = drawn(seconds, np.random.default_rng(run), count)
        # the problem moves the position first, then turns: the velocity whose exponential does so
        v, turn = odometry.T
        u = SE2.log(np.column_stack([v, 0 * v, np.cos(turn), np.sin(turn)]))
        slam.reset()
        for k in range(1, seconds):
            slam.predict(k - 1.0, u[k - 1], 1.0)
            for landmark in np.flatnonzero(visible[k]):
                slam.update(landmark, y[k, landmark])
            if k >= FIRST:
                pose, P = slam.pose, slam.pose_covariance
                R = SO2.matrix(pose[2:])
                e = R.T @ (p[k] - pose[:2])  # moves with the body, as P does
                h = np.angle(np.exp(1j * angle[k]) / complex(*pose[2:]))
                off.append([e @ e, h * h])
                nees.append([e @ np.linalg.solve(P[:2, :2], e) / 2, h * h / P[2, 2]])
    position, heading = np.sqrt(np.mean(off, axis=0))
    each = np.mean(np.reshape(off, (runs, -1, 2))[..., 0], axis=1)
    deviation = np.std(each) / np.sqrt(runs) / (2 * position)
    return {
        "runs": runs, "position [m]": float(position), "deviation of it": float(deviation),
        "heading [deg]": float(np.degrees(heading)),
        "NEES of position, heading": np.mean(nees, axis=0).tolist(),
        "landmarks": len(slam.landmarks), "seconds": time.perf_counter() - began,
    }  # fmt: skip


def peer_slam(runs=100, seconds=2500, seed=0):
    """The invariant filter of UKF-M itself on the same draws."""
    draws = (drawn(seconds, np.random.default_rng(run)) for run in range(seed, seed + runs))
    Q = np.diag(np.square(list(ODOMETRY.values())))
    return _ukfm_peer.slam(draws, Q, SEEN**2 * np.eye(2), FIRST)

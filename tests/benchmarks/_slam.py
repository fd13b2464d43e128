"""Planar SLAM of UKF-M: a robot goes round past 20 landmarks that it meets one after the other."""

import time

import casadi as ca
import numpy as np

from lgcontrol.estimation import LandmarkMap
from lgcontrol.groups import SE2, SO2

from . import _ukfm_peer

COUNT, NEAR, FAR = 20, 1.0, 5.0  # landmarks; range of the sensor, m
SPEED, TURN = 0.25, np.radians(1.5)
ODOMETRY = {"speed": 0.05 * SPEED / np.sqrt(2), "turn": 0.1 * SPEED * np.sqrt(2)}
SEEN = 0.1  # m
FIRST = 10  # step from which on errors count


def velocity(u):
    """Of the body: the problem moves the position of a step of 1 s first, then turns."""
    return SE2.log(ca.vertcat(u[0], 0, ca.cos(u[1]), ca.sin(u[1])))


def around_circle(count):
    """Where landmarks are."""
    radius = SPEED / TURN
    angle, reach = 2 * np.pi * np.arange(count) / count, radius + NEAR + 2
    return np.column_stack([reach * np.cos(angle), reach * np.sin(angle) + radius])


def drawn(seconds, rng, count=COUNT):
    """Headings, positions, odometry at 1 Hz, observations, and which of them there are."""
    angle = TURN * np.arange(seconds)
    R = SO2.matrix(SO2.from_angle(angle))
    p = np.vstack([np.zeros(2), np.cumsum(SPEED * R[:-1, :, 0], axis=0)])
    odometry = [SPEED, TURN] + np.array(list(ODOMETRY.values())) * rng.normal(size=(seconds, 2))
    away = around_circle(count) - p[:, None]
    distance = np.linalg.norm(away, axis=-1)
    y = np.einsum("tji,tlj->tli", R, away) + SEEN * rng.normal(size=(seconds, count, 2))
    return angle, p, odometry, y, (distance > NEAR) & (distance < FAR)


def run_slam(runs=100, seconds=2500, count=COUNT, seed=0, **options):
    """RMSE of position and heading, their NEES, means over all steps from the tenth on.

    Errors of one run last: the deviation of the RMSE by the draw is that of means of single runs.
    """
    slam = LandmarkMap(count, std0=0.0, noise=ODOMETRY, std_discrete=SEEN, method="euler",
                       inputs=list(ODOMETRY), velocity=velocity, **options)  # fmt: skip
    slam.compile()
    off, nees, began = [], [], time.perf_counter()
    for run in range(seed, seed + runs):
        angle, p, odometry, y, visible = drawn(seconds, np.random.default_rng(run), count)
        slam.reset()
        for k in range(1, seconds):
            slam.predict(k - 1.0, odometry[k - 1], 1.0)
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


def linear_slam(runs=100, seconds=2500, count=COUNT, seed=0):
    """The same draws and errors, linearized at the truth, where a Kalman filter is exactly right.

    No filter has a lower mean than its covariance says (the posterior Cramér–Rao bound).
    """
    draws = [drawn(seconds, np.random.default_rng(run), count) for run in range(seed, seed + runs)]
    angle, p, _, _, visible = draws[0]
    points, R = around_circle(count), SO2.matrix(SO2.from_angle(angle))
    w = np.stack([odometry for _, _, odometry, _, _ in draws]) - [SPEED, TURN]
    away = points - p[:, None]
    v = np.stack([np.einsum("tij,tlj->tli", R, y) - away for _, _, _, y, _ in draws])
    Q, S = np.diag(np.square(list(ODOMETRY.values()))), SEEN**2 * np.eye(2)
    n = 2 * count + 3  # on the right: position, landmarks, heading
    P, e, known = np.zeros((n, n)), np.zeros((runs, n)), np.zeros(count, dtype=bool)
    off, nees, bound = [], [], []
    for k in range(1, seconds):
        G = np.zeros((n, 2))
        G[:2, 0] = R[k - 1][:, 0]
        G[:-1, 1] = turned(np.vstack([p[k], points])).ravel()
        G[-1, 1] = 1
        P, e = P + G @ Q @ G.T, e - w[:, k - 1] @ G.T
        here = np.flatnonzero(visible[k])
        for i in here[known[here]]:
            own = slice(2 + 2 * i, 4 + 2 * i)
            C = np.zeros((2, n))
            C[:, :2], C[:, own] = -np.eye(2), np.eye(2)
            K = P @ C.T @ np.linalg.inv(C @ P @ C.T + S)
            e, P = e - (e @ C.T + v[:, k, i]) @ K.T, P - K @ C @ P
        for i in here[~known[here]]:
            own, known[i] = slice(2 + 2 * i, 4 + 2 * i), True
            e[:, own] = e[:, :2] - v[:, k, i]
            P[own], P[:, own] = P[:2], P[:, :2]
            P[own, own] = P[:2, :2] + S
        if k >= FIRST:
            T = np.zeros((2, n))
            T[:, :2], T[:, -1] = np.eye(2), -turned(p[k])
            d, covariance = e @ T.T, T @ P @ T.T
            off.append((d**2).sum(axis=1))
            nees.append((d * np.linalg.solve(covariance, d.T).T).sum(axis=1) / 2)
            bound.append(np.trace(covariance))
    position, bounded = (float(np.sqrt(np.mean(squares))) for squares in (off, bound))
    return {
        "position [m]": position,
        "bound [m]": bounded,
        "NEES of position": float(np.mean(nees)),
    }


def turned(points):
    """By −90°: what a turn about the origin does to them, negative."""
    return np.stack([points[..., 1], -points[..., 0]], axis=-1)


def peer_slam(runs=100, seconds=2500, seed=0):
    """The invariant filter of UKF-M itself on the same draws."""
    draws = (drawn(seconds, np.random.default_rng(run)) for run in range(seed, seed + runs))
    Q = np.diag(np.square(list(ODOMETRY.values())))
    return _ukfm_peer.slam(draws, Q, SEEN**2 * np.eye(2), FIRST)

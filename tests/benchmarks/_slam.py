"""Planar SLAM of UKF-M: a robot goes round past 20 landmarks that it meets one after the other."""

from typing import NamedTuple

import casadi as ca
import numpy as np

from lgcontrol.codegen import compile as compile_functions
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


class SlamRuns(NamedTuple):
    """Of each run, means over all steps from the tenth on, shape (runs,).

    Attributes
    ----------
    position, heading : ndarray
        Squares of errors, m² and rad².
    nees : ndarray
        Of the difference of positions, as UKF-M has it.
    nees_chart : ndarray
        Of the position in ``SE2.minus(truth, pose)``, the coordinates that the covariance is of. A
        heading that is off by some degrees bends what lies 20 m from the start along an arc. An
        ellipse of positions has no arcs, and calls the estimate too sure for them.
    nees_heading : ndarray
    """

    position: np.ndarray
    heading: np.ndarray
    nees: np.ndarray
    nees_chart: np.ndarray
    nees_heading: np.ndarray

    @classmethod
    def of(cls, angle, p, estimates):
        """Of true headings and positions; of each run, poses and their covariances, by step."""
        truth = np.column_stack([p, np.cos(angle), np.sin(angle)])[FIRST:]
        rows = []
        for poses, P in estimates:
            poses, P = np.asarray(poses)[FIRST:], np.asarray(P)[FIRST:]
            e = SE2.minus(truth, poses)
            off = truth[:, :2] - poses[:, :2]
            turned_back = np.einsum("tji,tj->ti", SO2.matrix(poses[:, 2:]), off)
            scores = [(off**2).sum(axis=1), e[:, 2] ** 2, normalized(turned_back, P),
                      normalized(e[:, :2], P), e[:, 2] ** 2 / P[:, 2, 2]]  # fmt: skip
            rows.append(np.mean(scores, axis=1))
        return cls(*np.transpose(rows))

    def summary(self):
        """Of all runs together; errors of one last, so that single runs say what draws do."""
        position, heading = (float(np.sqrt(np.mean(s))) for s in (self.position, self.heading))
        deviation = np.std(self.position) / np.sqrt(len(self.position)) / (2 * position)
        return {
            "runs": len(self.position), "position [m]": position, "deviation of it": deviation,
            "heading [deg]": float(np.degrees(heading)),
            "NEES of position, in the chart, of heading": [
                float(np.mean(nees)) for nees in (self.nees, self.nees_chart, self.nees_heading)
            ],
        }  # fmt: skip


def normalized(e, P):
    """Squares of two coordinates by their covariance, divided by two."""
    return np.einsum("ti,ti->t", e, np.linalg.solve(P[:, :2, :2], e[..., None])[..., 0]) / 2


def landmark_map(count=COUNT, **options):
    """The map of this problem."""
    return LandmarkMap(count, std0=0.0, noise=ODOMETRY, std_discrete=SEEN, method="euler",
                       inputs=list(ODOMETRY), velocity=velocity, **options)  # fmt: skip


def run_slam(runs=100, seconds=2500, count=COUNT, seed=0, **options):
    """A `LandmarkMap` on draws of runs seed, seed + 1, …

    All runs see the same landmarks, so that its compiled functions take them together: a tenth of
    the time of calls one at a time, which give the same (`step_by_step`).
    """
    slam = landmark_map(count, **options)
    ekf, p_none = slam.filter, slam.filter.p
    look, add = ekf._updates["landmark"], slam._add
    compile_functions([ekf._predict, look, add], batch=True)
    draws = [drawn(seconds, np.random.default_rng(run), count) for run in range(seed, seed + runs)]
    angle, p, _, _, visible = draws[0]
    u, y = (np.stack([draw[k] for draw in draws]) for k in (2, 3))
    del draws
    z, known = np.tile(ekf.start(), (runs, 1)), set()
    n, d = slam.system.state.point_size, 2
    rows = np.array([*range(d), n])
    poses, covariances = [], []
    for k in range(seconds):
        if k:
            z = ekf._predict(z, k - 1.0, u[:, k - 1], p_none, 1.0, ekf.densities).z_next
            for landmark in np.flatnonzero(visible[k]):
                order = slam._orders[landmark]
                call = look if landmark in known else add
                z = call(z[:, order], float(k), p_none, y[:, k, landmark], 1.0).z_next[:, order]
                known.add(landmark)
        x, lower = ekf.layout.unpack(z)
        pose = np.concatenate([x[:, :d], x[:, n:]], axis=1)
        P = np.tril(lower) + np.swapaxes(np.tril(lower, -1), -1, -2)
        back = SE2.Ad(SE2.inverse(pose)) if ekf.error == "right" else np.eye(3)
        P = P[:, rows][..., rows]
        poses.append(pose)
        covariances.append(back @ P @ np.swapaxes(back, -1, -2))
    each = zip(np.swapaxes(poses, 0, 1), np.swapaxes(covariances, 0, 1), strict=True)
    return SlamRuns.of(angle, p, each)


def step_by_step(seconds=2500, count=COUNT, seed=0, **options):
    """One run by the calls of a user."""
    slam = landmark_map(count, **options)
    angle, p, odometry, y, visible = drawn(seconds, np.random.default_rng(seed), count)
    poses, covariances = [slam.pose], [slam.pose_covariance]
    for k in range(1, seconds):
        slam.predict(k - 1.0, odometry[k - 1], 1.0)
        for landmark in np.flatnonzero(visible[k]):
            slam.update(landmark, y[k, landmark])
        poses.append(slam.pose)
        covariances.append(slam.pose_covariance)
    return SlamRuns.of(angle, p, [(poses, covariances)])


def linear_slam(runs=100, seconds=2500, count=COUNT, seed=0):
    """The same draws and errors, linearized at the truth, where a Kalman filter is exactly right.

    Returns its runs and the error that its covariance says, which no filter goes below (the
    posterior Cramér–Rao bound).
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
    rows, bound = [], []
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
            d, covariance, turn = e @ T.T, T @ P @ T.T, e[:, -1] ** 2
            nees = (d * np.linalg.solve(covariance, d.T).T).sum(axis=1) / 2
            rows.append([(d**2).sum(axis=1), turn, nees, nees, turn / P[-1, -1]])
            bound.append(np.trace(covariance))
    return SlamRuns(*np.mean(rows, axis=0)), float(np.sqrt(np.mean(bound)))


def turned(points):
    """By −90°: what a turn about the origin does to them, negative."""
    return np.stack([points[..., 1], -points[..., 0]], axis=-1)


def peer_slam(runs=100, seconds=2500, seed=0, *, kind="IEKF"):
    """A filter of UKF-M itself on the same draws; its errors are on the right, heading first."""
    draws = [drawn(seconds, np.random.default_rng(run)) for run in range(seed, seed + runs)]
    Q, R = np.diag(np.square(list(ODOMETRY.values()))), SEEN**2 * np.eye(2)

    def followed(draw):
        poses, P = _ukfm_peer.slam(*draw[2:], Q, R, kind)
        back = SE2.Ad(SE2.inverse(poses))
        order = [1, 2, 0]
        return poses, back @ P[:, order][..., order] @ np.swapaxes(back, -1, -2)

    return SlamRuns.of(*draws[0][:2], map(followed, draws))

"""Planar SLAM of UKF-M, by an invariant filter with and without the reset of its covariance.

Pose and landmarks on SE_{1+L}(2), errors on the right: the derivative of the motion is the
identity, that of an observation constant in the world, so that turning and moving everything at
once is seen nowhere. A filter without a reset and with left errors is the same one whose covariance
a correction exp(d) carries by Ad(exp d); with the reset (either side) it is the left Jacobian of d.
"""

import numpy as np

from lgcontrol.groups import SE2

COUNT, NEAR, FAR = 20, 1.0, 5.0  # landmarks; range of the sensor, m
SPEED, TURN = 0.25, np.radians(1.5)
ODOMETRY = np.array([0.05 * SPEED / np.sqrt(2), 0.1 * SPEED * np.sqrt(2)])  # m/s, rad/s
SEEN = 0.1  # m
TURNED = np.array([[0.0, -1.0], [1.0, 0.0]])


def rotations(angle):
    c, s = np.cos(angle), np.sin(angle)
    return np.moveaxis(np.array([[c, -s], [s, c]]), (0, 1), (-2, -1))


def drawn(runs, seconds, seed=0):
    """Truth, odometry and observations of a robot that goes round past the landmarks."""
    rng = np.random.default_rng(seed)
    angle = TURN * np.arange(seconds)
    R = rotations(angle)
    p = np.vstack([np.zeros(2), np.cumsum(SPEED * R[:-1, :, 0], axis=0)])
    radius = SPEED / TURN
    around = 2 * np.pi * np.arange(COUNT) / COUNT
    reach = radius + NEAR + 2
    landmarks = np.column_stack([reach * np.cos(around), reach * np.sin(around) + radius])
    odometry = np.array([SPEED, TURN]) + ODOMETRY * rng.normal(size=(seconds, runs, 2))
    away = landmarks - p[:, None]
    distance = np.linalg.norm(away, axis=-1)
    body = np.einsum("tji,tlj->tli", R, away)
    y = body + SEEN * rng.normal(size=(runs, seconds, COUNT, 2))
    return angle, p, odometry, y, (distance > NEAR) & (distance < FAR)


def filtered(reset, runs=50, seconds=1000):
    """RMSE of the position, NEES of position and heading, means over all steps from the tenth on.

    `reset` is "none" (right-invariant as published), "left" (left-invariant without reset) or
    "full".
    """
    angle, p, odometry, ys, visible = drawn(runs, seconds)
    n = 3 + 2 * COUNT
    theta, x = np.zeros(runs), np.zeros((runs, 1 + COUNT, 2))  # position, then landmarks
    P, known = np.zeros((runs, n, n)), np.zeros(COUNT, dtype=bool)
    R_noise = SEEN**2 * np.eye(2)
    off, nees, headings = [], [], []
    for k in range(1, seconds):
        u = odometry[k - 1]
        R = rotations(theta)
        # order of rows: heading, position, landmarks
        G = np.zeros((runs, n, 2))
        G[:, 0, 1] = 1.0
        G[:, 1:3, 0] = R[:, :, 0]
        used = np.r_[True, known]
        swept = -np.einsum("ij,blj->bli", TURNED, x) * used[:, None]
        G[:, 1:, 1] = swept.reshape(runs, -1)
        P = P + np.einsum("bik,k,bjk->bij", G, ODOMETRY**2, G)
        x[:, 0] += u[:, :1] * R[:, :, 0]
        theta = theta + u[:, 1]
        R = rotations(theta)
        old = np.flatnonzero(visible[k] & known)
        if len(old):
            m = 2 * len(old)
            y = ys[:, k, old]
            nu = np.einsum("bij,blj->bli", R, y) - (x[:, 1 + old] - x[:, :1])  # in the world
            C = np.zeros((m, n))
            for i, one in enumerate(old):
                C[2 * i : 2 * i + 2, 1:3] = -np.eye(2)
                C[2 * i : 2 * i + 2, 3 + 2 * one : 5 + 2 * one] = np.eye(2)
            PC = P @ C.T
            S = C @ PC + np.kron(np.eye(len(old)), R_noise)  # equal in all directions
            K = np.swapaxes(np.linalg.solve(S, np.swapaxes(PC, 1, 2)), 1, 2)
            d = (K @ nu.reshape(runs, m, 1))[..., 0]
            P = P - K @ np.swapaxes(PC, 1, 2)
            parts = np.concatenate(
                [d[:, 1:].reshape(runs, -1, 2), np.repeat(d[:, None, :1], 1 + COUNT, axis=1)], -1
            )
            moved = SE2.exp(parts)
            turn = rotations(d[:, 0])
            x = np.einsum("bij,blj->bli", turn, x) * used[:, None] + moved[..., :2] * used[:, None]
            theta = theta + d[:, 0]
            if reset != "none":
                block = SE2.left_jacobian(parts) if reset == "full" else SE2.Ad(moved)
                J = np.zeros((runs, n, n))
                J[:, 0, 0] = 1.0
                for i in np.flatnonzero(used):
                    own = slice(1 + 2 * i, 3 + 2 * i)
                    J[:, own, own] = block[:, i, :2, :2]
                    J[:, own, 0] = block[:, i, :2, 2]
                P = J @ P @ np.swapaxes(J, 1, 2)
            P = (P + np.swapaxes(P, 1, 2)) / 2
        for one in np.flatnonzero(visible[k] & ~known):
            x[:, 1 + one] = x[:, 0] + np.einsum("bij,bj->bi", R, ys[:, k, one])
            own = slice(3 + 2 * one, 5 + 2 * one)
            P[:, own, :] = P[:, 1:3, :]
            P[:, :, own] = P[:, :, 1:3]
            P[:, own, own] = P[:, 1:3, 1:3] + R_noise
            known[one] = True
        if k >= 10:
            # error of the position itself: with that of the heading about the origin
            T = np.zeros((runs, 2, 3))
            T[:, :, 0], T[:, :, 1:] = x[:, 0] @ TURNED.T, np.eye(2)
            own = T @ P[:, :3, :3] @ np.swapaxes(T, 1, 2)
            e = p[k] - x[:, 0]
            h = np.arctan2(np.sin(angle[k] - theta), np.cos(angle[k] - theta))
            off.append((e**2).sum(axis=-1))
            nees.append((e * np.linalg.solve(own, e[..., None])[..., 0]).sum(axis=-1) / 2)
            headings.append(h**2 / P[:, 0, 0])
    return {"rmse [m]": float(np.sqrt(np.mean(off))), "NEES of position": float(np.mean(nees)),
            "NEES of heading": float(np.mean(headings))}  # fmt: skip

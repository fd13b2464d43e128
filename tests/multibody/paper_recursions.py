"""The recursions of Müller 2018, section 4, as the paper has them: dense, for chains of screws.

Linear parts stand first. Every transformation and every bracket is counted. Options turn the
recursions back to what is printed: the sign of the external wrenches, the body they start at, the
arm in eq. 77b.
"""

from collections import Counter

import numpy as np
from scipy.linalg import block_diag, expm

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody
from lgcontrol.mechanics.multibody.tree._urdf import screw_joint

from . import zoo


def hat(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def wedge(X):
    """4 × 4 matrix of a screw."""
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = hat(X[3:]), X[:3]
    return matrix


def Ad(C):
    R, p = C[:3, :3], C[:3, 3]
    return np.block([[R, hat(p) @ R], [np.zeros((3, 3)), R]])


def ad(V):
    return np.block([[hat(V[3:]), hat(V[:3])], [np.zeros((3, 3)), hat(V[3:])]])


def shift(r):
    """Ad of a translation."""
    return np.block([[np.eye(3), hat(r)], [np.zeros((3, 3)), np.eye(3)]])


class ScrewChain:
    """Bodies on one-degree-of-freedom joints, by screws Y and body frames A at q = 0."""

    def __init__(self, rng, n):
        self.n, self.count = n, Counter()
        self.A = [SE3.homogeneous(SE3.random(rng)) for _ in range(n)]
        self.inertias = [zoo.random_inertia(rng) for _ in range(n)]
        self.Y = []
        for i in range(n):
            axis, point = rng.normal(size=(2, 3))
            axis /= np.linalg.norm(axis)
            slide = i % 3 == 2
            linear = axis if slide else np.cross(point, axis) + 0.2 * (i % 2) * axis
            self.Y.append(np.concatenate([linear, 0 * axis if slide else axis]))
        self.X = [Ad(np.linalg.inv(A)) @ Y for A, Y in zip(self.A, self.Y, strict=True)]
        self.M = [inertia.matrix for inertia in self.inertias]

    @property
    def joint_frames(self):
        """Pose of each joint frame at q = 0, and its screw there."""
        for Y in self.Y:
            frame = np.eye(4)
            frame[:3, 3] = screw_joint(Y, "")[1]
            yield frame, Ad(np.linalg.inv(frame)) @ Y

    @property
    def tree(self):
        """The same chain as a tree, without gravity."""
        tree, parent, before = Multibody("screws", gravity=[0, 0, 0]), "world", np.eye(4)
        for i, (frame, _) in enumerate(self.joint_frames):
            group = screw_joint(self.Y[i], "")[0]
            tree = tree.add_body(
                f"body{i}",
                self.inertias[i],
                group,
                parent,
                np.linalg.inv(before) @ frame,
                offset=np.linalg.inv(frame) @ self.A[i],
            )
            parent, before = f"body{i}", self.A[i]
        return tree

    def poses(self, q):
        """Product of exponentials (eq. 67a)."""
        C, product = [], np.eye(4)
        for Y, A, x in zip(self.Y, self.A, q, strict=True):
            product = product @ expm(wedge(Y) * x)
            C.append(product @ A)
        return C

    # -- counted operations -----------------------------------------------------------------------

    def _apply(self, what, matrix, X):
        self.count[what] += 1
        return matrix @ X

    def _inertia(self, what, X, M):
        """Inertia by the inverse of what moves twists."""
        self.count[what] += 1
        back = np.linalg.inv(X)
        return back.T @ M @ back

    # -- the recursions ---------------------------------------------------------------------------

    def body(self, q, v, a, wrenches, *, sign=-1, start=0):
        """Eq. 67, 68."""
        C, X = self.poses(q), self.X
        V, A, Ads = [X[0] * v[0]], [X[0] * a[0]], [None]
        for i in range(1, self.n):
            Ads.append(Ad(np.linalg.inv(C[i]) @ C[i - 1]))
            V.append(self._apply("screw transformations", Ads[i], V[i - 1]) + X[i] * v[i])
            bracket = self._apply("brackets", ad(X[i]), V[i])
            carried = self._apply("screw transformations", Ads[i], A[i - 1])
            A.append(carried - v[i] * bracket + X[i] * a[i])
        Q, W = np.zeros(self.n), [None] * self.n
        for i in reversed(range(self.n - start)):
            W[i] = self.M[i] @ A[i] - self._apply("brackets", ad(V[i]).T, self.M[i] @ V[i])
            W[i] = W[i] + sign * wrenches[i]
            if i + 1 < self.n and W[i + 1] is not None:
                W[i] = W[i] + self._apply("screw transformations", Ads[i + 1].T, W[i + 1])
            Q[i] = X[i] @ W[i]
        return Q

    def spatial(self, q, v, a, wrenches, *, sign=-1, start=0):
        """Eq. 71, 72; external wrenches still in body frames."""
        C = self.poses(q)
        J = [
            self._apply("screw transformations", Ad(pose), X)
            for pose, X in zip(C, self.X, strict=True)
        ]
        V, A = [J[0] * v[0]], [J[0] * a[0]]
        for i in range(1, self.n):
            V.append(V[i - 1] + J[i] * v[i])
            A.append(A[i - 1] + J[i] * a[i] + self._apply("brackets", ad(V[i - 1]), V[i]))
        Q, W = np.zeros(self.n), np.zeros(6)
        for i in reversed(range(self.n - start)):
            M = self._inertia("inertia transformations", Ad(C[i]), self.M[i])
            load = np.linalg.inv(Ad(C[i])).T @ wrenches[i]
            W = W + M @ A[i] - self._apply("brackets", ad(V[i]).T, M @ V[i]) + sign * load
            Q[i] = J[i] @ W
        return Q

    def hybrid(self, q, v, a, wrenches, *, sign=-1, start=0, arm="r"):
        """Eq. 76, 77; external wrenches still in body frames."""
        C = self.poses(q)
        turns = [block_diag(pose[:3, :3], pose[:3, :3]) for pose in C]
        X = [self._apply("turns of screws", turn, X) for turn, X in zip(turns, self.X, strict=True)]
        r = [pose[:3, 3] for pose in C]
        centers = [
            p + turn[:3, :3] @ body.center_of_mass
            for p, turn, body in zip(r, turns, self.inertias, strict=True)
        ]

        def spin(i):
            return ad(np.concatenate([np.zeros(3), V[i][3:]]))

        V, A = [X[0] * v[0]], []
        A.append(X[0] * a[0] + self._apply("brackets", spin(0), X[0] * v[0]))
        for i in range(1, self.n):
            moved = shift(r[i - 1] - r[i])
            V.append(self._apply("shifts of screws", moved, V[i - 1]) + X[i] * v[i])
            rate = ad(np.concatenate([V[i - 1][:3] - V[i][:3], np.zeros(3)]))
            A.append(
                self._apply("shifts of screws", moved, A[i - 1])
                + self._apply("brackets", rate, V[i - 1])
                + self._apply("brackets", spin(i), X[i] * v[i])
                + X[i] * a[i]
            )
        arms = {"r": r, "d": centers}[arm]
        Q, W = np.zeros(self.n), None
        for i in reversed(range(self.n - start)):
            M = self._inertia("turns of inertias", turns[i], self.M[i])
            turning = np.concatenate([np.zeros(3), V[i][3:]])
            own = M @ A[i] + self._apply("brackets", spin(i), M @ turning)
            own = own + sign * turns[i] @ wrenches[i]
            if W is not None:
                moved = shift(arms[i] - arms[i + 1])
                own = own + self._apply("shifts of screws", moved.T, W)
            W = own
            Q[i] = X[i] @ W
        return Q

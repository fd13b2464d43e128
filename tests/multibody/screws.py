"""Chains of screw joints by products of exponentials in NumPy, and brackets to test with.

Vectors are ``[v; ω]``. Nothing here uses the trees' own code; `chain` makes the same mechanism as
a tree.
"""

import numpy as np
from scipy.linalg import expm

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Joint, Multibody


def hat3(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0.0]])


def hat(V):
    """4 × 4 matrix of a twist."""
    X = np.zeros((4, 4))
    X[:3, :3], X[:3, 3] = hat3(V[3:]), V[:3]
    return X


def exp(V):
    return expm(hat(V))


def ad(V):
    X = np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = hat3(V[3:])
    X[:3, 3:] = hat3(V[:3])
    return X


def bracket(A, B):
    return ad(A) @ B


def Ad(C):
    R, X = C[:3, :3], np.zeros((6, 6))
    X[:3, :3] = X[3:, 3:] = R
    X[:3, 3:] = hat3(C[:3, 3]) @ R
    return X


def turn(R):
    """Ad of a rotation."""
    C = np.eye(4)
    C[:3, :3] = R
    return Ad(C)


def shift(r):
    """Ad of a translation."""
    C = np.eye(4)
    C[:3, 3] = r
    return Ad(C)


def linear(V):
    """The screw with the linear part alone."""
    return np.concatenate([V[:3], np.zeros(3)])


def angular(V):
    """The screw with the angular part alone."""
    return np.concatenate([np.zeros(3), V[3:]])


def move(r):
    """A pure translation r as a screw."""
    return np.concatenate([r, np.zeros(3)])


class Chain:
    """Bodies with random one-degree joints, as matrices and as a tree.

    Attributes: S0 (S_{i-1,i}), S1 (S_{i,i}: joint frame in the body), Z (joint screws in the joint
    frames), B, X, A, Y as in Müller's appendix; `tree` with bodies "0", "1", ….
    """

    def __init__(self, rng, count=5):
        kinds = ["revolute", "helical", "revolute", "prismatic", "revolute", "revolute"][:count]
        self.S0, self.S1, self.Z = [], [], []
        tree, parent = Multibody("chain"), "world"
        for i, kind in enumerate(kinds):
            n = rng.normal(size=3)
            n /= np.linalg.norm(n)
            pitch = 0.3 if kind == "helical" else 0.0
            own = {"pitch": pitch} if pitch else {}
            self.Z.append(np.concatenate([n, 0 * n] if kind == "prismatic" else [pitch * n, n]))
            before, after = SE3.exp(rng.normal(size=(2, 6)) * 0.6)
            self.S0.append(SE3.homogeneous(before))
            self.S1.append(np.linalg.inv(SE3.homogeneous(after)))
            joint = Joint.of(kind, axis=n, **own)
            tree = tree.add_body(str(i), None, joint, parent, before, offset=after)
            parent = str(i)
        self.tree, self.count = tree, count
        self.B = [a @ np.linalg.inv(b) for a, b in zip(self.S0, self.S1, strict=True)]
        self.X = [Ad(s) @ z for s, z in zip(self.S1, self.Z, strict=True)]
        self.A = [
            np.linalg.multi_dot([np.eye(4), np.eye(4), *self.B[: i + 1]]) for i in range(count)
        ]
        self.Y = [Ad(a) @ x for a, x in zip(self.A, self.X, strict=True)]

    def poses(self, q):
        """C_i by the product with joint frames (eq. 93)."""
        C, poses = np.eye(4), []
        for B, X, angle in zip(self.B, self.X, q, strict=True):
            C = C @ B @ exp(X * angle)
            poses.append(C)
        return poses

    def jacobian(self, q, i, reference):
        """Columns J_{i,j} for j ≤ i, then zeros, by the definitions (eq. 103, 105, 107, 108)."""
        C = self.poses(q)
        J = np.zeros((6, self.count))
        for j in range(i + 1):
            J[:, j] = Ad(np.linalg.inv(C[i]) @ C[j]) @ self.X[j]
        R = C[i][:3, :3]
        if reference == "spatial":
            return Ad(C[i]) @ J
        if reference == "hybrid":
            return turn(R) @ J
        if reference == "mixed":
            return np.vstack([R @ J[:3], J[3:]])
        return J


def difference(function, x, h=1e-3):
    """Derivatives of f(x + h e_k), last axis k, by central differences of order 6."""
    weights = {1: 45 / 60, 2: -9 / 60, 3: 1 / 60}
    columns = [
        sum(c * (function(x + m * h * e) - function(x - m * h * e)) for m, c in weights.items()) / h
        for e in np.eye(len(x))
    ]
    return np.stack(columns, axis=-1)

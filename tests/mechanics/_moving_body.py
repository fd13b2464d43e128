"""A body of particles on a curve, with every quantity of its motion by its definition.

The curve is ``T(t) = T0 exp(a t + b t² / 2)``; derivatives in t are taken by CasADi at t = 0.
Nothing here uses a formula of rigid-body mechanics: twists come from ``Ṫ``, momenta and wrenches
from sums over particles.
"""

from dataclasses import dataclass
from functools import cached_property

import casadi as ca
import numpy as np

from lgcontrol.groups import SE3
from lgcontrol.mechanics import SpatialInertia

REFERENCES = ("body", "spatial", "hybrid", "mixed")


def vee(matrix):
    """Vector of a skew matrix."""
    return ca.vertcat(matrix[2, 1], matrix[0, 2], matrix[1, 0])


@dataclass
class Curve:
    """Pose of a moving frame as a function of time t."""

    t: ca.SX
    start: np.ndarray
    speed: np.ndarray
    bend: np.ndarray

    @classmethod
    def random(cls, rng, t):
        speed, bend = rng.normal(size=(2, 6))
        return cls(t, SE3.random(rng), speed, bend)

    @cached_property
    def coordinates(self):
        return SE3.plus(ca.SX(self.start), self.speed * self.t + self.bend * self.t**2 / 2)

    @cached_property
    def parts(self):
        """Rotation matrix and position."""
        H = SE3.homogeneous(self.coordinates)
        return H[:3, :3], H[:3, 3]

    def rate(self, value, order=1):
        """Derivative in time, entry by entry."""
        for _ in range(order):
            value = ca.reshape(ca.jacobian(ca.vec(value), self.t), *value.shape)
        return value

    @property
    def angular_velocity(self):
        """Along world axes."""
        R, _ = self.parts
        return vee(self.rate(R) @ R.T)

    def twist(self, reference):
        """[v; ω] by definition."""
        R, p = self.parts
        dR, dp = self.rate(R), self.rate(p)
        if reference == "body":
            return ca.vertcat(R.T @ dp, vee(R.T @ dR))
        if reference == "spatial":
            return ca.vertcat(dp - dR @ R.T @ p, vee(dR @ R.T))
        return ca.vertcat(dp, vee(dR @ R.T if reference == "hybrid" else R.T @ dR))


class MovingBody:
    """Particles on a curve."""

    def __init__(self, rng, particles=5):
        self.t = ca.SX.sym("t")
        self.curve = Curve.random(rng, self.t)
        self.points = rng.normal(size=(particles, 3))
        self.masses = rng.uniform(0.2, 1.0, size=particles)
        self._represented = {}

    @property
    def inertia(self):
        """Inertia by summing particles."""
        c = self.masses @ self.points / self.masses.sum()
        r = self.points - c
        tensor = (self.masses * (r**2).sum(axis=1)).sum() * np.eye(3) - (r.T * self.masses) @ r
        return SpatialInertia(self.masses.sum(), c, tensor)

    def numbers(self, expression, t=0.0):
        """Values at a time, as an array of the expression's shape."""
        value = np.array(ca.Function("f", [self.t], [ca.densify(ca.SX(expression))])(t))
        return value[:, 0] if value.shape[1] == 1 else value

    @cached_property
    def pose(self):
        return self.numbers(self.curve.coordinates)

    def twist(self, reference):
        return self.numbers(self.curve.twist(reference))

    def twist_rate(self, reference):
        return self.numbers(self.curve.rate(self.curve.twist(reference)))

    def total(self, order, point):
        """Sum of m r⁽ᵒ⁾ and of its moments about a point of the world, along world axes."""
        R, p = self.curve.parts
        force, moment = ca.SX(3, 1), ca.SX(3, 1)
        for mass, x in zip(self.masses, self.points, strict=True):
            r = p + R @ x
            own = mass * self.curve.rate(r, order)
            force, moment = force + own, moment + ca.cross(r - point, own)
        return force, moment

    def represented(self, order, reference):
        """Momentum (order 1) or wrench (order 2) by definition, an expression in t."""
        if (order, reference) not in self._represented:
            self._represented[order, reference] = self._sum_up(order, reference)
        return self._represented[order, reference]

    def _sum_up(self, order, reference):
        R, p = self.curve.parts
        force, moment = self.total(order, ca.SX(3, 1) if reference == "spatial" else p)
        if reference == "body":
            force = R.T @ force
        if reference in ("body", "mixed"):
            moment = R.T @ moment
        return ca.vertcat(force, moment)


def relative_error(ours, theirs):
    """Largest difference in units of the largest entry."""
    assert np.shape(ours) == np.shape(theirs)
    return np.abs(np.asarray(ours) - theirs).max() / np.abs(theirs).max()

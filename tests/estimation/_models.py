"""Systems and logs under test."""

import casadi as ca
import numpy as np

from lgcontrol.estimation import inertial_navigation, odometry
from lgcontrol.groups import SE2, SE3, SEK3, SO3, Product, Rn
from lgcontrol.systems import Sensor, System

CART = System(
    "cart",
    Rn(2, ("place", "speed")),
    lambda t, x, u, p: [x[1], u[0] + u[1] - 0.3 * x[1]],
    inputs=["force", "push"],
)
PLACE = Sensor("place", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1)
SPEED = Sensor("speed", lambda t, x, u, p: x[1], Rn(1), std_discrete=0.2)

NAVIGATION = inertial_navigation()
PLANAR = odometry(SE2)
ATTITUDE = System(
    "attitude",
    Product(attitude=SO3, bias=Rn(3)),
    lambda t, x, u, p: ca.vertcat(u[:3] - x[4:], u[3:]),
    inputs=[*(f"gyro.{a}" for a in "xyz"), *(f"walk.{a}" for a in "xyz")],
)
VEHICLE = System(
    "vehicle",
    Product(pose=SE3, twist=Rn(6), bias=Rn(1), scale=Rn(1), beacon=Rn(3), other=SE3, arm=Rn(2)),
    lambda t, x, u, p: ca.vertcat(x[7:13], u, ca.DM(13, 1)),
    inputs=[f"push{k}" for k in range(6)],
)
CAR = System(
    "car",
    Product(pose=SE2, twist=Rn(3), beacon=Rn(2)),
    lambda t, x, u, p: ca.vertcat(x[4:7], u, ca.DM(2, 1)),
    inputs=[f"push{k}" for k in range(3)],
)
MAPPING = System("mapping", SEK3(3), lambda t, x, u, p: u, inputs=[f"v{k}" for k in range(12)])


def vector(name, direction, std):
    """A known world direction, seen in the body frame of `ATTITUDE`."""
    return Sensor(
        name, lambda t, x, u, p: SO3.matrix(x[:4]).T @ ca.DM(direction), Rn(3), std_discrete=std
    )


GRAVITY = vector("gravity", [0.0, 0.0, 1.0], 0.05)
FIELD = vector("field", [0.0, 0.6, -0.8], 0.05)


def attitude_log(rng, steps, dt, *, std, bias_std, densities=(0.01, 1e-3), runs=()):
    """Truth, inputs and measurements of `ATTITUDE` over random motions, and first errors."""
    group = ATTITUDE.state
    truth = [group.random(rng, runs)]
    truth[0][..., 4:] = bias_std * rng.normal(size=(*runs, 3))
    measured = []
    slow = rng.normal(size=(*runs, 3))
    for k in range(steps):
        omega = slow * np.sin(0.05 * k)
        noise = densities[0] / np.sqrt(dt) * rng.normal(size=(*runs, 3))
        walk = densities[1] * np.sqrt(dt) * rng.normal(size=(*runs, 3))
        x = truth[-1]
        measured.append(omega + x[..., 4:] + noise)
        turned = SO3.plus(x[..., :4], dt * omega)
        truth.append(np.concatenate([turned, x[..., 4:] + walk], axis=-1))
    x = np.stack(truth, axis=-2)
    R = SO3.matrix(x[..., 1:, :4])
    seen = {
        m.name: np.einsum("...ji,j->...i", R, d) + 0.05 * rng.normal(size=(*runs, steps, 3))
        for m, d in ((GRAVITY, [0.0, 0.0, 1.0]), (FIELD, [0.0, 0.6, -0.8]))
    }
    return x, np.stack(measured, axis=-2), seen

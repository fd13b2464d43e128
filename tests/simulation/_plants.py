"""Small plants for the simulation tests, written out here: no ready model is used."""

import casadi as ca
import numpy as np

from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.systems import Input, Parameter, System

MASS, GRAVITY = 0.8, 9.81
INERTIA = np.array([6e-3, 7e-3, 1.1e-2])


def cart() -> System:
    """Position and speed, pushed by a control and by the wind."""
    return System(
        "cart",
        Product(position=Rn(1, ("x",), ("m",)), speed=Rn(1, ("v",), ("m/s",))),
        lambda t, x, u, p: ca.vertcat(x[1], (u[0] + u[1]) / p[0]),
        inputs=[
            Input("force", "N", lower=-5.0, upper=5.0),
            Input("wind", "N", role="disturbance"),
        ],
        parameters=[Parameter("mass", "kg", 2.0)],
    )


def swinging(dt: float = 0.0) -> System:
    """A forced pendulum with time in its field; discrete with dt > 0 (Euler's map)."""
    scale = dt or 1.0
    return System(
        "swinging",
        Rn(2, ("angle", "rate"), ("rad", "rad/s")),
        lambda t, x, u, p: scale * ca.vertcat(x[1], u[0] + 0.3 * ca.cos(3 * t) - ca.sin(x[0])),
        inputs=[Input("torque", "N m")],
        dt=dt,
    )


def drone() -> System:
    """A rigid body with a thrust along its z axis, three torques and a force of the wind."""

    def f(t, x, u, p):
        q, v, w = x[3:7], x[7:10], x[10:13]
        R = SO3.matrix(q)
        force = ca.vertcat(0, 0, u[0]) + R.T @ (u[4:7] + ca.DM([0, 0, -MASS * GRAVITY]))
        inertia = ca.DM(INERTIA)
        return ca.vertcat(
            v,
            w,
            force / MASS - ca.cross(w, v),
            (u[1:4] - ca.cross(w, inertia * w)) / inertia,
        )

    names = ("vx", "vy", "vz", "wx", "wy", "wz")
    return System(
        "drone",
        Product(pose=SE3, twist=Rn(6, names, ("m/s",) * 3 + ("rad/s",) * 3)),
        f,
        inputs=[
            Input("thrust", "N", lower=0.0, upper=20.0, nominal=MASS * GRAVITY),
            *(Input(f"torque_{a}", "N m", lower=-0.5, upper=0.5) for a in "xyz"),
            *(Input(f"wind_{a}", "N", role="disturbance") for a in "xyz"),
        ],
    )


def rotation(x: np.ndarray) -> np.ndarray:
    """Rotation matrix of a drone's state, written out from the quaternion."""
    a, b, c, w = x[3:7]
    K = np.array([[0.0, -c, b], [c, 0.0, -a], [-b, a, 0.0]])
    return np.eye(3) + 2 * w * K + 2 * K @ K


class Feedback:
    """Linear state feedback that counts its calls."""

    def __init__(self, gain, dt, offset=0.0, delay=0.0):
        self.gain, self.dt, self.offset, self.delay = np.atleast_2d(gain), dt, offset, delay
        self.calls: list[float] = []

    def reset(self):
        self.calls.clear()

    def __call__(self, t, x, reference):
        self.calls.append(t)
        return -self.gain @ (x - (0.0 if reference is None else np.asarray(reference)))

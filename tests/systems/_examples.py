"""Small systems that the tests of this folder share, each written out by hand."""

import casadi as ca
import numpy as np

from lgcontrol.groups import SE3, SO2, SO3, Product, Rn, Translation
from lgcontrol.systems import Input, Parameter, System

TWIST = Rn(6, ("vx", "vy", "vz", "wx", "wy", "wz"), ("m/s",) * 3 + ("rad/s",) * 3)
RATE = Rn(3, ("wx", "wy", "wz"), ("rad/s",) * 3)
RIGID = Product(pose=SE3, twist=TWIST)
GRAVITY = 9.81


def turn(q, a):
    """Rotate a by the quaternion q (xyzw): the textbook formula, not the toolkit's."""
    q, a = (ca.vertcat(*v) if isinstance(v, list) else v for v in (q, a))
    return a + 2 * ca.cross(q[:3], ca.cross(q[:3], a) + q[3] * a)


def to_body(pose, a):
    """World vector in body axes."""
    q = pose[3:]
    return turn(ca.vertcat(-q[:3], q[3]), a)


def euler_poincare(M, twist, wrench):
    """``M v̇ = ad_vᵀ M v + W`` with linear parts first."""
    v, w = twist[:3], twist[3:]
    momentum = M @ twist
    force, moment = momentum[:3], momentum[3:]
    gyroscopic = ca.vertcat(-ca.cross(w, force), -ca.cross(v, force) - ca.cross(w, moment))
    return ca.inv(M) @ (gyroscopic + wrench)


def pendulum(**options):
    """Pendulum with a wrapped angle; stable at angle 0."""

    def field(t, x, u, p):
        cos, sin, rate = ca.vertsplit(x)
        return ca.vertcat(rate, (u - p[1] * rate) / p[0] - GRAVITY * sin)

    return System(
        "pendulum",
        Product(angle=SO2, rate=Rn(1, ("w",), ("rad/s",))),
        field,
        inputs=[Input("torque", "N m", -2.0, 2.0)],
        parameters=[Parameter("inertia", "kg m²", 0.5), Parameter("damping", "N m s", 0.1)],
        **options,
    )


def quadrotor(**options):
    """Quadrotor with four rotor thrusts, mass 1.2 kg, arms of 0.2 m along x and y."""
    mass, arm, torque = 1.2, 0.2, 0.02
    M = ca.diag(ca.DM([mass, mass, mass, 0.011, 0.012, 0.02]))
    allocation = ca.DM(
        [
            [0, 0, 0, 0],
            [0, 0, 0, 0],
            [1, 1, 1, 1],
            [0, arm, 0, -arm],
            [-arm, 0, arm, 0],
            [torque, -torque, torque, -torque],
        ]
    )

    def field(t, x, u, p):
        pose, twist = x[:7], x[7:]
        weight = to_body(pose, ca.DM([0, 0, -GRAVITY * mass]))
        wrench = allocation @ u + ca.vertcat(weight, ca.DM.zeros(3))
        return ca.vertcat(twist, euler_poincare(M, twist, wrench))

    rotors = [Input(f"rotor{i}", "N", 0.0, 6.0) for i in range(1, 5)]
    return System("quadrotor", RIGID, field, inputs=rotors, **options)


def underwater(current=(0.0, 0.0, 0.0), buoyancy=0.02, **options):
    """Neutrally buoyant vehicle: added mass, drag, thrust along x and z, three moments.

    The centre of buoyancy is above the centre of mass; the current is fixed in the world.
    """
    M = ca.diag(ca.DM([14.0, 25.0, 28.0, 0.4, 1.8, 1.9]))
    linear, quadratic = ca.DM([4, 8, 9, 0.3, 0.9, 0.9]), ca.DM([6, 30, 40, 0.2, 1.5, 1.5])
    weight = 12.0 * GRAVITY

    def field(t, x, u, p):
        pose, twist = x[:7], x[7:]
        up = to_body(pose, ca.DM([0, 0, 1]))
        restoring = ca.vertcat(ca.DM.zeros(3), buoyancy * weight * ca.cross(ca.DM([0, 0, 1]), up))
        relative = twist - ca.vertcat(to_body(pose, ca.DM(current)), ca.DM.zeros(3))
        drag = -(linear + quadratic * ca.fabs(relative)) * relative
        thrust = ca.vertcat(u[0], 0, u[1:])
        return ca.vertcat(twist, euler_poincare(M, twist, thrust + drag + restoring))

    inputs = [Input("surge", "N", -60, 60), Input("heave", "N", -60, 60)]
    inputs += [Input(f"moment_{a}", "N m", -15, 15) for a in "xyz"]
    return System("underwater vehicle", RIGID, field, inputs=inputs, **options)


def satellite():
    """Satellite with three reaction wheels: speeds without angles, and a gravity torque input."""
    J = np.diag([1.2, 1.0, 0.7])
    J[0, 1] = J[1, 0] = 0.05
    J, spin = ca.DM(J), 0.01

    def field(t, x, u, p):
        w, wheels = x[4:7], x[7:]
        momentum = J @ w + spin * wheels
        rate = ca.inv(J) @ (-ca.cross(w, momentum) - u[:3] + u[3:])
        return ca.vertcat(w, rate, u[:3] / spin - rate)

    def total_momentum(x, p):
        w, wheels = x[4:7], x[7:]
        body = J @ w + spin * (wheels + w)  # wheel speeds are relative to the body
        return turn(x[:4], body)

    return System(
        "satellite",
        Product(attitude=SO3, rate=RATE, wheel_speed=Rn(3, ("x", "y", "z"), ("rad/s",) * 3)),
        field,
        inputs=[Input(f"motor_{a}", "N m", -0.1, 0.1) for a in "xyz"]
        + [Input(f"torque_{a}", "N m", role="disturbance") for a in "xyz"],
        invariants=total_momentum,
    )


def account():
    """Discrete model: two delays and a gain, sampled every 0.1 s."""
    return System(
        "account",
        Rn(2, ("now", "before")),
        lambda t, x, u, p: ca.vertcat(0.9 * x[0] + p * u - x[0], x[0] - x[1]),
        inputs=["deposit"],
        parameters=[Parameter("gain", "", 0.5)],
        dt=0.1,
    )


def lift():
    """Point mass on a vertical line, one thrust."""
    return System(
        "lift",
        Product(height=Translation("z"), speed=Rn(1, ("v",), ("m/s",))),
        lambda t, x, u, p: ca.vertcat(x[1], u / p - GRAVITY),
        inputs=[Input("thrust", "N", 0.0, 30.0)],
        parameters=[Parameter("mass", "kg", 2.0)],
    )


HEAVY_TOP = {"mass": 21.6, "inertia": (0.36, 0.306, 0.09), "com": (0.5, 0.0, 0.0)}
"""Mass kg, moments of inertia about the centre of mass kg m², centre of mass from the pivot m."""


def heavy_top(gravity=GRAVITY, **options):
    """Heavy top in absolute coordinates: pose and twist of its centre of mass.

    The pivot, at -com in the body, stays at the origin: three constraints. The field solves the
    equations of motion together with the constraints on accelerations (index 1) for the force of
    the pivot on the body, which is a quantity, in world axes.
    """
    mass, inertia, com = HEAVY_TOP["mass"], HEAVY_TOP["inertia"], ca.DM(HEAVY_TOP["com"])
    M = ca.diag(ca.DM([mass, mass, mass, *inertia]))
    G = ca.horzcat(ca.DM.eye(3), ca.skew(com))  # body velocity of the pivot: v - w x com

    def solution(x):
        pose, twist = x[:7], x[7:]
        v, w = twist[:3], twist[3:]
        momentum = M @ twist
        force = -ca.cross(w, momentum[:3]) + to_body(pose, ca.DM([0, 0, -gravity * mass]))
        moment = -ca.cross(w, momentum[3:]) - ca.cross(v, momentum[:3])
        matrix = ca.blockcat([[M, -G.T], [G, ca.DM(3, 3)]])
        # G (v, w) = 0 holds in body axes for all times, so its rate has no velocity terms.
        return ca.solve(matrix, ca.vertcat(force, moment, ca.DM.zeros(3)))

    def field(t, x, u, p):
        return ca.vertcat(x[7:], solution(x)[:6])

    def reaction(t, x, u, p):
        return turn(x[3:7], solution(x)[6:])

    def invariants(x, p):
        position, q, v, w = x[:3], x[3:7], x[7:10], x[10:]
        momentum = mass * ca.cross(position, turn(q, v)) + turn(q, ca.DM(inertia) * w)
        energy = (mass * ca.sumsqr(v) + ca.dot(w, ca.DM(inertia) * w)) / 2
        pivot = position - turn(q, com)
        return ca.vertcat(
            pivot, v - ca.cross(w, com), energy + mass * gravity * position[2], momentum[2]
        )

    def project(x, p):
        q = x[3:7]
        return ca.vertcat(turn(q, com), q, ca.cross(x[10:], com), x[10:])

    return System(
        "heavy top",
        RIGID,
        field,
        quantities={"reaction": reaction},
        invariants=invariants,
        project=project,
        **options,
    )

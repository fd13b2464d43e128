"""Small systems on several groups, and random stage QPs."""

from functools import cache

import casadi as ca
import numpy as np

from lgcontrol.groups import SE2, SO2, SO3, Product, Rn
from lgcontrol.integrators import Mechanical
from lgcontrol.systems import Input, Parameter, System

from ..benchmarks._sqp_peer import StageQP

INERTIA = np.array([1.0, 2.0, 2.5])


def mechanical(state, field, n_inputs: int, n_parameters: int = 0) -> Mechanical:
    """Structure of ``f = [v, v̇]`` on a Product of two blocks, with the mass matrix 1."""
    configuration, velocity = state.blocks
    n, part = state.blocks[velocity].dim, state.tangent_slice(velocity)
    sizes = {"t": 1, "x": state.nq, "u": n_inputs, "p": n_parameters}
    t, x, u, p = symbols = [ca.SX.sym(name, size) for name, size in sizes.items()]
    force = ca.SX(field(t, x, u, p))[part]
    by_x, by_u = ca.jacobian(force, x) @ state.rate_matrix(x), ca.jacobian(force, u)
    functions = [ca.Function("known", symbols, result) for result in ([force], [by_x, by_u])]
    return Mechanical(
        configuration,
        velocity,
        mass_matrix=lambda x, p: ca.SX.eye(n),
        force=functions[0],
        balance_derivatives=lambda t, x, a, u, p: functions[1](t, x, u, p),
        input_map=lambda t, x, u, p: functions[1](t, x, u, p)[1],
    )


@cache  # its functions are traced once
def pendulum(limit: float = 0.5, **options) -> System:
    """Pendulum with a weak motor."""
    return System(
        "pendulum",
        Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u - p * ca.sin(ca.atan2(x[1], x[0]))),
        inputs=[Input("torque", "N m", -limit, limit)],
        parameters=[Parameter("gravity", "1/s²", 1.0)],
        **options,
    )


@cache
def satellite(limit: float = np.inf) -> System:
    """Rigid body turned by three torques."""

    def field(t, x, u, p):
        return ca.vertcat(x[4:], (u - ca.cross(x[4:], INERTIA * x[4:])) / INERTIA)

    state = Product(attitude=SO3, rate=Rn(3))
    return System(
        "satellite",
        state,
        field,
        inputs=[Input(f"torque{i}", "N m", -limit, limit) for i in "xyz"],
        structure=mechanical(state, field, 3),
    )


@cache
def vessel() -> System:
    """Craft on the plane that cannot push sideways, with a current as disturbance."""

    def field(t, x, u, p):
        v = x[4:]
        drag = ca.vertcat(u[0] - v[0], -3 * v[1] + v[0] * v[2], u[1] - 2 * v[2])
        current = ca.vertcat(x[2] * u[2], -x[3] * u[2], 0)
        return ca.vertcat(v + current, drag)

    inputs = [
        Input("surge", "N", -1, 2),
        Input("yaw", "N m", -1, 1),
        Input("current", "m/s", role="disturbance"),
    ]
    return System("vessel", Product(pose=SE2, twist=Rn(3)), field, inputs=inputs)


@cache
def double_integrator(**options) -> System:
    """Two masses in a line: linear, for comparison with linear theory."""
    return System(
        "carts",
        Rn(4),
        lambda t, x, u, p: ca.vertcat(x[2:], u[0] - x[0], u[1]),
        inputs=[Input("left", "N"), Input("right", "N")],
        **options,
    )


SYSTEMS = {f.__name__: f for f in (pendulum, satellite, vessel, double_integrator)}


def random_qp(rng, horizon=6, n=4, m=2, rows=0, soft=np.inf, width=0.6) -> StageQP:
    """Stage QP with stable random dynamics that is feasible at x = 0, u = 0 where width > 0."""

    def positive(count, size, floor):
        L = rng.normal(size=(count, size, size))
        return L @ L.swapaxes(1, 2) / size + floor * np.eye(size)

    A = rng.normal(size=(horizon, n, n))
    A /= np.linalg.norm(A, 2, axis=(1, 2), keepdims=True)
    Q, R = positive(horizon + 1, n, 0.0), positive(horizon, m, 0.1)
    active = np.zeros((horizon + 1, rows), dtype=bool)
    active[1:-1] = True
    return StageQP(
        x0=rng.normal(size=n),
        A=A,
        B=rng.normal(size=(horizon, n, m)),
        c=0.1 * rng.normal(size=(horizon, n)),
        Q=Q,
        S=0.05 * rng.normal(size=(horizon, m, n)),
        R=R,
        q=rng.normal(size=(horizon + 1, n)),
        r=rng.normal(size=(horizon, m)),
        u_lower=-width * np.ones((horizon, m)),
        u_upper=width * np.ones((horizon, m)),
        C=rng.normal(size=(horizon + 1, rows, n)),
        D=rng.normal(size=(horizon, rows, m)),
        lower=np.full((horizon + 1, rows), -1.0),
        upper=np.full((horizon + 1, rows), 1.5),
        active=active,
        soft=np.full(rows, soft),
    )

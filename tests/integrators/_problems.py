"""Fields with known solutions, and runs of many fixed steps inside one CasADi function."""

import casadi as ca
import numpy as np

from lgcontrol import integrators
from lgcontrol.codegen import ModelFunction, trace
from lgcontrol.groups import SO3, LieGroup, Product, Rn
from lgcontrol.integrators import Problem, Solution

BODY = Product(rotation=SO3, rate=Rn(3))


def manufactured(group: LieGroup, seed: int = 0) -> tuple[ModelFunction, ModelFunction]:
    """A field that depends on time and state, and its solution.

    The solution is ``exp(a sin t + b t²)`` with a, b of order one; the field adds a pull back to it
    that vanishes on it, so that errors of the state feed back into the field.
    """
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, group.dim))
    pull = rng.normal(size=(group.dim, group.dim))

    def place(t):
        return a * ca.sin(t) + b * t**2

    def rate(t):
        return a * ca.cos(t) + 2 * b * t

    def field(t, x):
        d = place(t)
        return group.right_jacobian(d) @ rate(t) + pull @ group.minus(x, group.exp(d))

    x = {"t": (), "x": (group.nq,)}
    return (
        trace("field", field, x, {"d": (group.dim,)}),
        trace("solution", lambda t: group.exp(place(t)), {"t": ()}, {"x": (group.nq,)}),
    )


def free_body(inertia) -> ModelFunction:
    """Euler's equations with the attitude, on SO(3) × R³."""
    J = np.asarray(inertia)

    def field(t, x):
        w = x[4:]
        return ca.vertcat(w, ca.cross(J * w, w) / J)

    return trace("free_body", field, {"t": (), "x": (7,)}, {"d": (6,)})


def heavy_top(mass, inertia, centre, gravity) -> ModelFunction:
    """Body about a fixed point under gravity, on SO(3) × R³."""
    J, c = np.asarray(inertia), np.asarray(centre)

    def field(t, x):
        w = x[4:]
        weight = SO3.act(SO3.inverse(x[:4]), ca.DM([0.0, 0.0, -mass * gravity]))
        return ca.vertcat(w, (ca.cross(J * w, w) + ca.cross(c, weight)) / J)

    return trace("heavy_top", field, {"t": (), "x": (7,)}, {"d": (6,)})


def energy(inertia, x):
    """Kinetic energy of a body with an angular velocity in the last three coordinates."""
    return 0.5 * np.sum(np.asarray(inertia) * x[..., 4:] ** 2, axis=-1)


def momentum(inertia, x):
    """Spatial angular momentum ``R J ω``."""
    return SO3.act(x[..., :4], np.asarray(inertia) * x[..., 4:])


def integrate(group, field, x0, span, *, args=(), rtol=1e-8, atol=1e-10, **options) -> Solution:
    """Adaptive integration of a plain field, to tight tolerances."""
    problem = Problem.of(group, field, args)
    return integrators.integrate(problem, x0, span, rtol=rtol, atol=atol, **options)


def stepper(method, group, field) -> ca.Function:
    """``(x, t, dt) → (x⁺, t + dt)``: accumulates with `fold` and `mapaccum`."""
    x, t, dt = ca.SX.sym("x", group.nq), ca.SX.sym("t"), ca.SX.sym("dt")
    step = method.move(group, field, t, x, dt)
    state = ca.vertcat(x, t)
    after = ca.cse(ca.vertcat(step, t + dt))
    return ca.Function("step", [state, dt], [after], ["state", "dt"], ["after"])


def run(method, group, field, x0, end, steps) -> np.ndarray:
    """State after a number of equal steps from t = 0."""
    many = stepper(method, group, field).fold(steps)
    return np.asarray(many(ca.DM([*x0, 0.0]), end / steps)).ravel()[:-1]


def slope(steps, errors) -> float:
    """Order of convergence by least squares in the logarithms."""
    return float(-np.polyfit(np.log(steps), np.log(errors), 1)[0])

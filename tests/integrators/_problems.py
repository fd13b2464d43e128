"""Fields with known solutions, and runs of many fixed steps inside one CasADi function."""

import casadi as ca
import numpy as np

from lgcontrol import integrators
from lgcontrol.codegen import ModelFunction, trace
from lgcontrol.groups import SO3, LieGroup, Product, Rn
from lgcontrol.integrators import METHODS, Mechanical, Solution
from lgcontrol.integrators._internal import Problem

GENERAL = [method for method in METHODS.values() if not method.needs_structure]
EXPLICIT = [method for method in GENERAL if not method.stiff_order]

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


def with_losses(damping=0.3, friction=0.2, speed=0.5) -> Problem:
    """A top with losses, a torque that depends on time, and a wheel with a drive of its own.

    On SO(3) × R³ × R; the wheel pushes the top, and the losses are those of a joint.
    """
    group = Product(rotation=SO3, rate=Rn(3), wheel=Rn(1))
    J, c = ca.DM([2.0, 3.0, 4.5]), ca.DM([0.1, 0.0, 0.8])

    def loss(w):
        return damping * w + friction * ca.tanh(w / speed)

    def force(t, x, u, p):
        w, wheel = x[4:7], x[7]
        weight = SO3.act(SO3.inverse(x[:4]), ca.DM([0.0, 0.0, -9.81]))
        push = ca.vertcat(ca.sin(3 * t), wheel, 0)
        return ca.cross(J * w, w) + ca.cross(c, weight) + push - loss(w)

    def field(t, x, u, p):
        return ca.vertcat(x[4:7], force(t, x, u, p) / J, ca.cos(t) - x[7] + x[4] / 4)

    def balance_derivatives(t, x, a, u, p):
        X = ca.SX.sym("x", 8)
        by_x = ca.jacobian(force(t, X, u, p), X) @ group.rate_matrix(X)
        return ca.substitute(by_x, X, ca.SX(x)), ca.SX(3, 0)

    def loss_jacobian(x, p):
        bent = ca.tanh(x[4:7] / speed)
        return ca.diag(damping + friction / speed * (1 - bent * bent))

    mechanical = Mechanical(
        "rotation",
        "rate",
        lambda x, p: ca.diag(J),
        force,
        balance_derivatives,
        lambda t, x, u, p: ca.DM(3, 0),
        loss_jacobian,
    )
    return Problem(group, field, mechanical=mechanical)


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


def stepper(method, problem) -> ca.Function:
    """``(x, t, dt) → (x⁺, t + dt)``: accumulates with `fold` and `mapaccum`."""
    symbol = ca.MX if method.solves else ca.SX
    x, t, dt = symbol.sym("x", problem.group.nq), symbol.sym("t"), symbol.sym("dt")
    none = symbol(0, 1)
    after = ca.vertcat(method.step(problem, t, x, none, none, dt).state, t + dt)
    after = ca.cse(after) if symbol is ca.SX else after
    return ca.Function("step", [ca.vertcat(x, t), dt], [after], ["state", "dt"], ["after"])


def run(method, group, field, x0, end, steps) -> np.ndarray:
    """State of a plain field after a number of equal steps from t = 0."""
    return run_problem(method, Problem.of(group, field), x0, end, steps)


def run_problem(method, problem, x0, end, steps) -> np.ndarray:
    """State after a number of equal steps from t = 0."""
    many = stepper(method, problem).fold(steps)
    return np.asarray(many(ca.DM([*x0, 0.0]), end / steps)).ravel()[:-1]


def slope(steps, errors) -> float:
    """Order of convergence by least squares in the logarithms."""
    return float(-np.polyfit(np.log(steps), np.log(errors), 1)[0])

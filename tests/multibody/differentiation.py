"""Derivatives of expressions of a tree by AD: along the motion, nested, by parameters."""

import casadi as ca
import numpy as np


def coordinate_rate(tree, q, v):
    """Rate of the coordinates for the velocity v."""
    d = ca.SX.sym("d", tree.nv)
    rate = ca.jtimes(tree.configuration.plus(q, d), d, v)
    return ca.substitute(rate, d, ca.DM.zeros(tree.nv))


def along_motion(tree, expression, q, rates):
    """Time derivative of an expression in q and rates (each the derivative of the one before)."""
    total = ca.jtimes(expression, q, coordinate_rate(tree, q, rates[0]))
    for rate, following in zip(rates[:-1], rates[1:], strict=True):
        total = total + ca.jtimes(expression, rate, following)
    return total


def time_derivative(tree, function, order):
    """Casadi function (q, v, a, …) of a derivative of a function of q, or of q and v."""
    given = len(function.arguments) - 1
    q = ca.SX.sym("q", tree.nq)
    rates = [ca.SX.sym(f"r{i}", tree.nv) for i in range(order + given)]
    expression = ca.vec(function(q, *rates[:given]))
    for _ in range(order):
        expression = along_motion(tree, expression, q, rates)
    return ca.Function("derivative", [q, *rates], [ca.cse(ca.densify(expression))])


def nested_derivative(tree, function, order):
    """Casadi function of q: nested one-sided derivatives of a function of q, the last index last.

    The perturbation that is differentiated last stands first: ``q · exp(d_n) ⋯ exp(d_1)``.
    """
    q = ca.SX.sym("q", tree.nq)
    steps = [ca.SX.sym(f"d{i}", tree.nv) for i in range(order)]
    moved = q
    for d in reversed(steps):
        moved = tree.configuration.plus(moved, d)
    expression = ca.vec(function(moved))
    for d in steps:
        slope = ca.jacobian(expression, d)
        expression = ca.vec(ca.substitute(slope, d, ca.DM.zeros(tree.nv)))
    return ca.Function("derivative", [q], [ca.cse(ca.densify(expression))])


def parameter_slope(expression, p, values):
    """Jacobian of an expression by p, at values, as an array; rows in CasADi's order."""
    slope = ca.densify(ca.jacobian(ca.vec(ca.SX(expression)), p))
    return np.array(ca.Function("slope", [p], [slope])(values))

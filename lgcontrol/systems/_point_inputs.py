"""with_point_inputs: a system whose inputs are polynomials in each step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import casadi as ca

from ._input_rates import STEP, with_controls
from ._signals import Input
from ._system import System


def with_point_inputs(system: System[Any], points: Sequence[float]) -> System[Any]:
    """System whose controls are the values of the inputs at some points of a step.

    Between the points inputs are the polynomial through these values. Points are shares of a step.
    The controls are "push.1", "push.2" and so on, all of one point after the other; the other
    inputs follow, and two measured ones: "step.begin" and "step.length" in s.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> pull = Input("pull", "", -2, 2)
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=[pull])
    >>> with_point_inputs(cart, [0.0, 1.0]).f(0.25, [0.0], [0.0, 2.0, 0.0, 1.0])
    array([0.5])
    """
    controls = system.input_index("control").tolist()
    inputs = [
        replace(system.inputs[i], name=f"{system.input_names[i]}.{k + 1}")
        for k in range(len(points))
        for i in controls
    ]
    measured = [
        Input(STEP[0], "s", role="measured"),
        Input(STEP[1], "s", nominal=1.0, role="measured"),
    ]

    def field(t: Any, x: Any, u: Any, p: Any) -> Any:
        return system.f(t, x, polynomial_inputs(system, points, t, u), p)

    def derivatives(t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any]:
        now = polynomial_inputs(system, points, t, u)
        Df, Bf = system.derivatives.function(t, x, now, p)
        return Df, Bf @ ca.jacobian(now, u)

    return with_controls(
        system, "points", system.state, field, derivatives, inputs, measured, limits=system.limits
    )


def polynomial_inputs(system: System[Any], points: Sequence[float], t: Any, u: Any) -> Any:
    """Inputs of a system at a time, from those of `with_point_inputs`.

    The system is that without points, inputs are those of the one with points.
    """
    controls = system.input_index("control").tolist()
    m, s = len(controls), len(points)
    others = [i for i in range(system.n_inputs) if i not in controls]
    begin, length = u[s * m + len(others)], u[s * m + len(others) + 1]
    weights = lagrange_weights(points, (t - begin) / length)
    found: list[Any] = [None] * system.n_inputs
    for k, i in enumerate(controls):
        found[i] = sum(weight * u[j * m + k] for j, weight in enumerate(weights))
    for k, i in enumerate(others):
        found[i] = u[s * m + k]
    return ca.vertcat(*found)


def lagrange_weights(points: Sequence[float], share: Any) -> list[Any]:
    """Weights of the values at some points in the polynomial through them, at a share of a step."""
    found = []
    for i, own in enumerate(points):
        weight: Any = 1.0
        for j, other in enumerate(points):
            if j != i:
                weight = weight * ((share - other) / (own - other))
        found.append(weight)
    return found

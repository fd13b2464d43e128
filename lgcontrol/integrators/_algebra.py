"""Velocities in the algebra: ``Θ̇ = J_r(Θ)⁻¹ d`` as a series of brackets."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import casadi as ca

from ..codegen import ModelFunction, Value, trace
from ..groups import LieGroup

# J_r(Θ)⁻¹ = Σ (−1)ⁿ Bₙ/n! ad_Θⁿ with the Bernoulli numbers Bₙ, as far as order 8 needs it.
_BERNOULLI = (1.0, 1 / 2, 1 / 12, 0.0, -1 / 720, 0.0, 1 / 30240)


def algebra_rate(group: LieGroup, brackets: int, theta: Value, velocity: Value) -> Value:
    """``Θ̇ = J_r(Θ)⁻¹ d`` up to a power of ``ad_Θ``."""
    if group.is_commutative or brackets == 0:
        return velocity
    if isinstance(theta, ca.SX) and isinstance(velocity, ca.SX):
        return _series(group, brackets, theta, velocity)
    return _rate_function(group, brackets)(theta, velocity)


def _series(group: LieGroup, brackets: int, theta: Value, velocity: Value) -> Value:
    ad = group.ad(theta)  # structural zeros of commutative blocks make their brackets free
    rate, power = velocity, velocity
    for coefficient in bracket_coefficients(brackets):
        power = ad @ power
        if coefficient:
            rate = rate + coefficient * power
    return rate


def bracket_coefficients(brackets: int) -> Sequence[float]:
    """Coefficients of the powers 1, 2, … without zeros at the end."""
    coefficients = list(_BERNOULLI[1 : brackets + 1])
    while coefficients and not coefficients[-1]:
        coefficients.pop()
    return coefficients


@cache
def _rate_function(group: LieGroup, brackets: int) -> ModelFunction:
    return trace(
        "algebra_rate",
        lambda theta, velocity: _series(group, brackets, theta, velocity),
        {"theta": (group.dim,), "velocity": (group.dim,)},
        {"rate": (group.dim,)},
    )

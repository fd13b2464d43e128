"""What can stand between a command and a system: lags, delays, biases, each with its states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

import casadi as ca
import numpy as np

from ..codegen import Value
from ._signals import Input, Parameter


@dataclass(frozen=True, eq=False)
class Stage:
    """One signal on its way, with states of its own.

    Attributes
    ----------
    block : str
        Block of the state the states belong to.
    names : tuple of str
        Names of the states; their unit is that of the signal.
    parameters : tuple of Parameter
    run : callable
        ``(states, signal, parameters) → signal, change`` with the rate of the states, for discrete
        systems their change in a sample.
    """

    block: str
    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    run: Callable[[Value, Value, Value], tuple[Value, Value]]


def lag(signal: Input, seconds: Any, dt: float) -> Stage:
    """First-order lag with a time constant, exact for an input that is held."""
    seconds = _positive(f"lag of {signal.name!r}", seconds)

    def run(states: Value, command: Value, p: Value) -> tuple[Value, Value]:
        share = 1 - ca.exp(-dt / p[0]) if dt else 1 / p[0]
        return states[0], share * (command - states[0])

    parameter = Parameter(f"{signal.name}.time_constant", "s", seconds)
    return Stage("actuator", (signal.name,), (parameter,), run)


def delay(signal: Input, seconds: Any, dt: float, order: int) -> Stage:
    """Delay: a chain of samples in discrete time, a rational approximation in continuous time."""
    seconds = _positive(f"delay of {signal.name!r}", seconds)
    return _chain(signal, seconds, dt) if dt else _legendre(signal, seconds, order)


def constant_bias(signal: str) -> Stage:
    """Constant that is added."""

    def run(states: Value, value: Value, p: Value) -> tuple[Value, Value]:
        return value + states[0], 0 * states

    return Stage("bias", (signal,), (), run)


def _chain(signal: Input, seconds: float, dt: float) -> Stage:
    count = round(seconds / dt)
    if count < 1 or abs(count * dt - seconds) > 1e-9 * seconds:
        raise ValueError(
            f"delay of {signal.name!r}: {seconds:g} s is not a multiple of the sample time "
            f"{dt:g} s; the nearest is {max(count, 1) * dt:g} s"
        )

    def run(states: Value, command: Value, p: Value) -> tuple[Value, Value]:
        return states[count - 1], ca.vertcat(command, states[: count - 1]) - states

    return Stage("delay", tuple(f"{signal.name}.{k + 1}" for k in range(count)), (), run)


def _legendre(signal: Input, seconds: float, order: int) -> Stage:
    """Padé approximant (order − 1, order) of ``exp(−s T)``.

    The states are coefficients of the input of the last T seconds in Legendre polynomials, which
    keeps the equations well scaled and the output free of jumps.
    """
    if order < 1:
        raise ValueError(f"delay_order must be at least 1, got {order}")
    i, j = np.meshgrid(np.arange(order), np.arange(order), indexing="ij")
    A = (2 * i + 1) * np.where(i < j, -1.0, (-1.0) ** (i - j + 1))
    B = (2 * np.arange(order) + 1) * (-1.0) ** np.arange(order)

    def run(states: Value, command: Value, p: Value) -> tuple[Value, Value]:
        return ca.sum1(states), (ca.DM(A) @ states + ca.DM(B) * command) / p[0]

    parameter = Parameter(f"{signal.name}.delay", "s", seconds)
    return Stage("delay", tuple(f"{signal.name}.{k}" for k in range(order)), (parameter,), run)


def _positive(name: str, value: Any) -> float:
    number = float(value)
    if not (isfinite(number) and number > 0):
        raise ValueError(f"{name} must be positive seconds, got {number}")
    return number

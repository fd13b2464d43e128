"""Laws as functions without memory: what they take and give, and their loop in samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import casadi as ca
import numpy as np
import scipy

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.codegen._internal import Shape
from lgcontrol.groups import LieGroup, Product
from lgcontrol.systems import System

# What is written behind a unit, by the order of the derivative; the last is the integral.
PER_TIME = ("", "/s", "/s²", "/s³", "/s⁴", " s")
# Arguments that are numbers.
NUMBERS = ("t", "first", "t_from", "span")
# Growth in a sample below which a mode counts as one that stays: free directions have eigenvalues
# of one, which differences of laws and fields move by less.
GROWTH = 1e-5
LAW_STEP = 1e-6  # of central differences: fields and laws are smooth over it, rounding is 1e-9
LATEST = 60  # controls on their way with which a loop is judged: the matrix grows with them
SHORTER_PERIODS = tuple(2.0**-k for k in range(1, 13))  # shares of a period tried as a remedy


class LawArgument(NamedTuple):
    """An argument of an exported law that is a vector of the law's own."""

    labels: list[tuple[str, str]]  # names and units of its entries
    draw: Callable[[np.random.Generator], np.ndarray]  # a value for test vectors


def vector_argument(names: Sequence[str], units: Sequence[str], order: int = 0) -> LawArgument:
    """A vector, or its time derivative of an order from 1 to 4, or of -1, its integral."""
    per = PER_TIME[order]
    labels = [
        (name, f"{unit or '1' * bool(per)}{per}") for name, unit in zip(names, units, strict=True)
    ]
    return LawArgument(labels, lambda rng: rng.normal(size=len(labels)))


def goal_arguments(group: LieGroup, *names: str) -> dict[str, LawArgument]:
    """Arguments for a motion on a group: names of coordinates, of their velocity, of its rate."""
    place = list(zip(group.coordinate_names, group.coordinate_units, strict=True))
    found = {names[0]: LawArgument(place, lambda rng: group.random(rng))}
    for order, name in enumerate(names[1:], 1):
        found[name] = vector_argument(group.tangent_names, group.tangent_units, order)
    return found


def law_function(
    name: str,
    given: Mapping[str, Value],
    results: Mapping[str, Value],
    shapes: Mapping[str, Shape] | None = None,
) -> ModelFunction:
    """A law as a function; arguments in `NUMBERS` are numbers, others columns or have `shapes`."""
    values = {**given, **results}
    known: dict[str, Shape] = {key: value.shape[:1] for key, value in values.items()}
    known |= {key: () for key in NUMBERS if key in given}
    function = ca.Function(
        name, list(given.values()), [ca.densify(value) for value in results.values()],
        list(given), list(results),
    )  # fmt: skip
    return ModelFunction(function, shapes=known | dict(shapes or {}))


@dataclass(frozen=True)
class Feedback:
    """Slopes of a law about a state that it holds."""

    by_x: np.ndarray  # (m, n) by the error of the state
    by_z: np.ndarray  # (m, k) by the integrals
    error: np.ndarray  # (k, n) the error that is integrated

    @classmethod
    def static(cls, by_x: np.ndarray) -> Feedback:
        """Of a law without integrals."""
        m, n = by_x.shape
        return cls(by_x, np.zeros((m, 0)), np.zeros((0, n)))


def loop_matrix(
    A: np.ndarray, B: np.ndarray, feedback: Feedback, dt: float, delay: float, *,
    is_discrete: bool = False,
) -> np.ndarray:  # fmt: skip
    """Matrix of ``x⁺ = Φ x + Γ u``, u held for dt and late by a delay.

    ``ε̇ = A ε + B δu`` is sampled exactly; of discrete plants A and B are those of a step, and the
    delay is a multiple of dt. Rows are the state, the integrals, and the controls on their way, the
    newest first.
    """
    n, m, k = len(A), B.shape[1], len(feedback.error)
    late = int(delay / dt * (1 + 1e-12))
    part = max(delay - late * dt, 0.0)  # u of two calls act within a period

    def sampled(h: float) -> tuple[np.ndarray, np.ndarray]:
        if is_discrete:
            return (A, B) if h > 0 else (np.eye(n), 0 * B)
        block = np.zeros((n + m, n + m))
        block[:n, :n], block[:n, n:] = A * h, B * h
        both = scipy.linalg.expm(block)
        return both[:n, :n], both[:n, n:]

    whole, _ = sampled(dt)
    rest, last = sampled(dt if is_discrete else dt - part)
    _, first = sampled(0.0 if is_discrete else part)
    count = late + 1
    size = n + k + count * m
    step = np.zeros((size, size))
    u = np.hstack([feedback.by_x, feedback.by_z, np.zeros((m, count * m))])
    queue = [u, *(np.eye(m, size, n + k + i * m) for i in range(count))]
    step[:n, :n] = whole
    step[:n] += rest @ first @ queue[late + 1] + last @ queue[late]
    step[n : n + k] = dt * np.hstack([feedback.error, np.zeros((k, size - n))]) + np.eye(k, size, n)
    for i in range(count):
        step[n + k + i * m : n + k + (i + 1) * m] = queue[i]
    return step


def largest_mode(step: np.ndarray) -> tuple[complex, np.ndarray]:
    """Eigenvalue of largest size, and its vector; infinite where the matrix is not finite."""
    if not np.isfinite(step).all():
        return complex(np.inf), np.asarray(~np.isfinite(step).all(axis=1), dtype=np.float64)
    values, vectors = np.linalg.eig(step)
    most = int(np.abs(values).argmax())
    return complex(values[most]), np.abs(vectors[:, most])


def is_growing(value: complex) -> bool:
    """Whether errors along a mode grow from sample to sample."""
    return not abs(value) <= 1.0 + GROWTH


def moved_most(system: System, vector: np.ndarray) -> str:
    """What a mode moves most: a joint, or another error of the system, by its name."""
    own = vector[: system.n_errors]
    names, structure, state = system.error_names, system.structure, system.state
    if structure is None or not isinstance(state, Product) or system.n_errors != state.dim:
        return names[int(own.argmax())]
    place, rate = (state.tangent_slice(x) for x in (structure.configuration, structure.velocity))
    size = np.maximum(own[place] / own[place].max(initial=1e-300),
                      own[rate] / own[rate].max(initial=1e-300))  # fmt: skip
    group, most = state.blocks[structure.configuration], int(size.argmax())
    if not isinstance(group, Product):
        return group.tangent_names[most]
    joints = (name for name in group.blocks if most in range(group.dim)[group.tangent_slice(name)])
    return f"joint {next(joints)!r}"


def differences(
    system: System, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Derivative of a function of the state in its error coordinates, (values, dim)."""
    steps = LAW_STEP * np.eye(system.state.dim)
    ahead, back = (system.state.plus(x, sign * steps) for sign in (1.0, -1.0))
    rows = [function(a) - function(b) for a, b in zip(ahead, back, strict=True)]
    return np.array(rows).T / (2 * LAW_STEP)


def plant_about(
    system: System, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """A and B of a plant about a state, by differences of its field: nothing is traced for it."""
    controls = system.input_index("control")
    A = differences(system, x, lambda at: system.f(t, at, u, p))
    A = A - np.asarray(system.state.ad(system.f(t, x, u, p)))
    B = np.zeros((system.state.dim, len(controls)))
    for column, i in enumerate(controls):
        step = np.zeros(system.n_inputs)
        step[i] = LAW_STEP * (1.0 + abs(u[i]))
        change = system.f(t, x, u + step, p) - system.f(t, x, u - step, p)
        B[:, column] = change / (2 * step[i])
    return A, B


def told(
    law: str, system: System, value: complex, moved: str, dt: float, delay: float, stable: float
) -> str:
    """Return the message for a loop whose errors grow: eigenvalue, what moves most, remedy.

    `stable` is a period with which the same gains are stable, 0 if none was found.
    """
    late = f" with a delay of {delay:g} s" if delay else ""
    remedy = f"take dt={stable:g}, with which it is stable, or lower gains"
    if not stable:
        remedy = f"take lower gains{' or a shorter delay' if delay else ''}"
    size = (
        f"{value.real:.4g}" if abs(value.imag) < 1e-9 else f"{value:.4g} of size {abs(value):.4g}"
    )
    return (
        f"{law} on {system.name}: errors grow in the loop sampled every {dt:g} s{late}; its "
        f"largest eigenvalue is {size}, and moves {moved} most: {remedy}"
    )

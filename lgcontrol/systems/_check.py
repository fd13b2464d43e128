"""check_system: what the toolkit relies on, tested numerically on a user's own system."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from ..groups import LieGroup, check_element
from ._definition import SystemDefinition
from ._derivatives import field_derivatives
from ._signals import control_name
from ._step import step_function
from ._tracing import complete_input, complete_parameters


def check_system(
    system: SystemDefinition,
    x: Any = None,
    u: Any = None,
    *,
    p: Any = None,
    samples: int = 10,
    seed: int = 0,
    tolerance: float = 1e-6,
) -> dict[str, float]:
    """Largest violation of what the toolkit relies on, over sampled states and inputs.

    Parameters
    ----------
    system : System
        For example a user's own.
    x : array_like, shape (samples, nq), optional
        States to look at; random ones if left out. They are projected first.
    u : array_like, shape (n_inputs,) or (samples, n_inputs), optional
        Inputs; random ones within the bounds, around the nominal input, if left out.
    p : array_like, shape (n_parameters,), optional
    samples : int
        Number of random states.
    seed : int
    tolerance : float
        Largest violation that passes, next to the size of what is compared.

    Returns
    -------
    dict of str to float
        Violation of each check that applies, by name: distinct names; finite field, output and
        quantities; output on its group; the same answer for both signs of a quaternion; exact
        derivatives against central differences on the group (give x away from kinks); integration
        that converges with its order; invariants constant for the nominal input; idempotent
        projection; pickling.

    Raises
    ------
    ValueError
        If any check fails; the message lists all that do, and where.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import System, check_system
    >>> pendulum = System("pendulum", Product(angle=SO2, rate=Rn(1)),
    ...                   lambda t, x, u, p: ca.vertcat(x[2], u - x[1]), inputs=["torque"])
    >>> max(check_system(pendulum).values()) < 1e-6
    True
    """
    points = _sample(system, x, u, p, samples, seed)
    found: dict[str, tuple[float, str]] = {}
    for name, check in CHECKS.items():
        result = check(system, points)
        if result is not None:
            found[name] = result
    failed = [
        f"{name}: off by {size:.2g}{f' ({where})' if where else ''}"
        for name, (size, where) in found.items()
        if not size <= tolerance
    ]
    if failed:
        raise ValueError(f"{system.name} is not a consistent system:\n- " + "\n- ".join(failed))
    return {name: size for name, (size, _) in found.items()}


def _sample(system: SystemDefinition, x: Any, u: Any, p: Any, samples: int, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    p = complete_parameters(system, p)
    if x is None:
        x = system.state.random(rng, (samples,))
    x = np.atleast_2d(check_element("x", x, system.state, batch=True, tolerance=inf))
    if system.project is not None:
        x = system.project(x, p)
    if u is None:
        lower, upper = system.input_bounds
        nominal = system.nominal_input
        low = np.where(np.isfinite(lower), lower, nominal - 1)
        high = np.where(np.isfinite(upper), upper, nominal + 1)
        u = rng.uniform(np.minimum(low, high), high, size=(len(x), system.n_inputs))
    u = complete_input(system, "u", u, batch=True)
    t = rng.uniform(0.0, 10.0, size=len(x))
    return Samples(t, x, np.broadcast_to(u, (len(x), system.n_inputs)), p)


# The checks: each returns the size of the largest violation and where it is

STEP = 1e-5  # of central differences: truncation about 1e-10, rounding about 1e-11

Finding = tuple[float, str] | None
"""Size of a violation next to what is compared, and where; None where a check does not apply."""

_FINE = (0.0, "")


@dataclass(frozen=True, eq=False)
class Samples:
    """Where the checks look, one sample a row; p is the same for all."""

    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    p: np.ndarray


def _worst(off: np.ndarray, scale: np.ndarray | float, names: tuple[str, ...]) -> tuple[float, str]:
    """Largest entry of an array (samples, rows) next to its scale, with its row and sample."""
    if off.size == 0:
        return _FINE
    relative = np.nan_to_num(np.abs(off) / scale, nan=np.inf)
    k, i = np.unravel_index(int(np.argmax(relative)), relative.shape)
    return float(relative[k, i]), f"{names[i]}, sample {k}"


def _numbered(name: str, count: int) -> tuple[str, ...]:
    return tuple(f"{name}[{i}]" for i in range(count))


def _names(system: SystemDefinition, at: Samples) -> Finding:
    kinds = {
        "state or input": (*system.state.coordinate_names, *system.input_names),
        "tangent": system.state.tangent_names,
        "output": map(control_name, system.output.tangent_names),
        "input": map(control_name, system.input_names),
        "parameter": system.parameter_names,
    }
    twice = [
        f"{kind} {name!r}"
        for kind, names in ((kind, list(names)) for kind, names in kinds.items())
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    return (np.inf, "twice: " + ", ".join(twice)) if twice else _FINE


def _finite(system: SystemDefinition, at: Samples) -> Finding:
    bad = []
    for name, function in {"f": system.f, "h": system.h, **system.quantities}.items():
        fine = np.isfinite(function(at.t, at.x, at.u, at.p)).all(axis=-1)
        if not fine.all():
            bad.append(f"{name} at sample {int(np.argmin(fine))}")
    return (np.inf, ", ".join(bad)) if bad else _FINE


def _on_group(system: SystemDefinition, at: Samples) -> Finding:
    y = system.h(at.t, at.x, at.u, at.p)
    return _worst(y - system.output.normalize(y), 1.0, system.output.coordinate_names)


def _both_signs(system: SystemDefinition, at: Samples) -> Finding:
    """A full turn leads to the other quaternion of the same state."""
    state, found = system.state, None
    for i in np.flatnonzero(np.array(state.tangent_units) == "rad"):
        other = state.plus(at.x, 2 * np.pi * np.eye(state.dim)[i])
        if np.abs(state.minus(other, at.x)).max() > 1e-6:
            continue  # an unwrapped angle: another state, though the same pose
        here, there = (system.f(at.t, x, at.u, at.p) for x in (at.x, other))
        y, z = (system.h(at.t, x, at.u, at.p) for x in (at.x, other))
        found = max(
            found or _FINE,
            _worst(there - here, 1 + np.abs(here).max(), _prefixed("f", state)),
            _worst(system.output.minus(z, y), 1.0, _prefixed("h", system.output)),
        )
    return found


def _prefixed(function: str, group: LieGroup) -> tuple[str, ...]:
    return tuple(f"{function}: {name}" for name in group.tangent_names)


def _derivatives(system: SystemDefinition, at: Samples) -> Finding:
    exact = field_derivatives(system)(at.t, at.x, at.u, at.p)
    state, output = system.state, system.output

    def differences(function: Callable, target: LieGroup | None) -> tuple[np.ndarray, np.ndarray]:
        def slope(step_x: np.ndarray, step_u: np.ndarray) -> np.ndarray:
            above, below = (
                function(at.t, state.plus(at.x, sign * step_x), at.u + sign * step_u, at.p)
                for sign in (1.0, -1.0)
            )
            off = above - below if target is None else target.minus(above, below)
            return off / (2 * STEP)

        by_x = [slope(step, np.zeros(system.n_inputs)) for step in STEP * np.eye(state.dim)]
        by_u = [slope(np.zeros(state.dim), step) for step in STEP * np.eye(system.n_inputs)]
        shape = (*by_x[0].shape, 0)
        return np.stack(by_x, axis=-1), np.stack(by_u, axis=-1) if by_u else np.zeros(shape)

    A, B = differences(
        step_function(system) if system.is_discrete else system.f, state if system.dt else None
    )
    if not system.is_discrete:
        A = A - state.ad(exact.rate)
    C, D = differences(system.h, output)
    return max(
        _worst(
            np.abs(found - expected).max(axis=-1, initial=0.0),
            1 + np.abs(expected).max(initial=0.0),
            tuple(f"{name}: {row}" for row in group.tangent_names),
        )
        for name, found, expected, group in (
            ("A", A, exact.A, state),
            ("B", B, exact.B, state),
            ("C", C, exact.C, output),
            ("D", D, exact.D, output),
        )
    )


def _converges(system: SystemDefinition, at: Samples) -> Finding:
    """Halving the step of rk4 must divide its error by sixteen; a half of that passes."""
    if system.is_discrete:
        return None
    local = field_derivatives(system)(at.t, at.x, at.u, at.p)
    speed = np.abs(local.A).sum(axis=-1).max(axis=-1) + np.abs(local.rate).max(axis=-1)
    dt = 0.1 / (1 + speed)
    once, twice, four = (
        step_function(system, "rk4", substeps)(at.t, at.x, at.u, at.p, dt) for substeps in (1, 2, 4)
    )
    coarse, fine = (
        np.abs(system.state.minus(x, four)).max(axis=-1, keepdims=True) for x in (once, twice)
    )
    return _worst(np.maximum(fine - coarse / 8, 0.0), 1.0, ("step",))


def _invariants(system: SystemDefinition, at: Samples) -> Finding:
    if system.invariants is None:
        return None
    state, u = system.state, system.nominal_input
    here = system.invariants(at.x, at.p)
    if system.is_discrete:
        off = system.invariants(step_function(system)(at.t, at.x, u, at.p), at.p) - here
    else:
        rate = system.f(at.t, at.x, u, at.p)
        ahead, back = (
            system.invariants(state.plus(at.x, sign * STEP * rate), at.p) for sign in (1.0, -1.0)
        )
        off = (ahead - back) / (2 * STEP)
    return _worst(off, 1 + np.abs(here).max(initial=0.0), _numbered("invariants", here.shape[-1]))


def _projection(system: SystemDefinition, at: Samples) -> Finding:
    if system.project is None:
        return None
    state, again = system.state, system.project(at.x, at.p)
    return max(
        _worst(state.minus(again, at.x), 1.0, state.tangent_names),
        _worst(again - state.normalize(again), 1.0, state.coordinate_names),
    )


def _pickles(system: SystemDefinition, at: Samples) -> Finding:
    try:
        copy = ForkingPickler.loads(ForkingPickler.dumps(system))  # type: ignore[attr-defined]
    except Exception as error:  # whatever an attribute of the user's raises
        return np.inf, str(error).splitlines()[0]
    here, there = (np.nan_to_num(s.f(at.t, at.x, at.u, at.p)) for s in (system, copy))
    return _worst(there - here, 1.0, system.state.tangent_names)


CHECKS: dict[str, Callable[[SystemDefinition, Samples], Finding]] = {
    "names differ": _names,
    "f, h and quantities are finite": _finite,
    "h is on the output group": _on_group,
    "f and h do not see a quaternion's sign": _both_signs,
    "derivatives equal central differences": _derivatives,
    "steps converge with their order": _converges,
    "invariants are constant": _invariants,
    "projection is idempotent": _projection,
    "pickles": _pickles,
}

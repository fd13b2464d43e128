"""The checks of check_system: each returns the size of the largest violation and where it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING

import numpy as np

from ..groups import LieGroup
from ._derivatives import field_derivatives
from ._signals import control_name

if TYPE_CHECKING:
    from ._system import System

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


def _names(system: System, at: Samples) -> Finding:
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


def _finite(system: System, at: Samples) -> Finding:
    bad = []
    for name, function in {"f": system.f, "h": system.h, **system.quantities}.items():
        fine = np.isfinite(function(at.t, at.x, at.u, at.p)).all(axis=-1)
        if not fine.all():
            bad.append(f"{name} at sample {int(np.argmin(fine))}")
    return (np.inf, ", ".join(bad)) if bad else _FINE


def _on_group(system: System, at: Samples) -> Finding:
    y = system.h(at.t, at.x, at.u, at.p)
    return _worst(y - system.output.normalize(y), 1.0, system.output.coordinate_names)


def _both_signs(system: System, at: Samples) -> Finding:
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


def _derivatives(system: System, at: Samples) -> Finding:
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
        system.step() if system.is_discrete else system.f, state if system.dt else None
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


def _converges(system: System, at: Samples) -> Finding:
    """Halving the step of rk4 must divide its error by sixteen; a half of that passes."""
    if system.is_discrete:
        return None
    local = field_derivatives(system)(at.t, at.x, at.u, at.p)
    speed = np.abs(local.A).sum(axis=-1).max(axis=-1) + np.abs(local.rate).max(axis=-1)
    dt = 0.1 / (1 + speed)
    once, twice, four = (
        system.step("rk4", substeps)(at.t, at.x, at.u, at.p, dt) for substeps in (1, 2, 4)
    )
    coarse, fine = (
        np.abs(system.state.minus(x, four)).max(axis=-1, keepdims=True) for x in (once, twice)
    )
    return _worst(np.maximum(fine - coarse / 8, 0.0), 1.0, ("step",))


def _invariants(system: System, at: Samples) -> Finding:
    if system.invariants is None:
        return None
    state, u = system.state, system.nominal_input
    here = system.invariants(at.x, at.p)
    if system.is_discrete:
        off = system.invariants(system.step()(at.t, at.x, u, at.p), at.p) - here
    else:
        rate = system.f(at.t, at.x, u, at.p)
        ahead, back = (
            system.invariants(state.plus(at.x, sign * STEP * rate), at.p) for sign in (1.0, -1.0)
        )
        off = (ahead - back) / (2 * STEP)
    return _worst(off, 1 + np.abs(here).max(initial=0.0), _numbered("invariants", here.shape[-1]))


def _projection(system: System, at: Samples) -> Finding:
    if system.project is None:
        return None
    state, again = system.state, system.project(at.x, at.p)
    return max(
        _worst(state.minus(again, at.x), 1.0, state.tangent_names),
        _worst(again - state.normalize(again), 1.0, state.coordinate_names),
    )


def _pickles(system: System, at: Samples) -> Finding:
    try:
        copy = ForkingPickler.loads(ForkingPickler.dumps(system))  # type: ignore[attr-defined]
    except Exception as error:  # whatever an attribute of the user's raises
        return np.inf, str(error).splitlines()[0]
    here, there = (np.nan_to_num(s.f(at.t, at.x, at.u, at.p)) for s in (system, copy))
    return _worst(there - here, 1.0, system.state.tangent_names)


CHECKS: dict[str, Callable[[System, Samples], Finding]] = {
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

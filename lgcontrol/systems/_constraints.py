"""States of constrained systems from outside: brought onto the constraints and told, or refused."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..codegen._internal import check_shape, level_outside
from ..groups._internal import ask_order
from ._definition import SystemDefinition
from ._tracing import check_state, complete_input, complete_parameters

# Constraints of a state in m, rad and their rates: rounding of what was written down is less.
OFF_CONSTRAINTS = 1e-6
PROJECTIONS = 5  # each a step or a few of Newton's method
FAR = 100.0  # a state that is moved by more than this times its violation ends anywhere


def check_start(
    system: SystemDefinition, name: str, x: Any, p: Any = None, *, batch: bool = False
) -> np.ndarray:
    """State from outside as `check_state` takes it, on the constraints of the system.

    A warning tells of a state that violates them and was projected; one without a state near it
    that keeps them is refused.
    """
    x = check_state(system, name, x, batch=batch)
    return on_constraints(system, name, x, p)


def on_constraints(
    system: SystemDefinition, name: str, x: np.ndarray, p: Any = None, *, warn: bool = True
) -> np.ndarray:
    """States on the constraints of a system; those that are off are projected, with a warning.

    The warning says which, by how much, and what moves most; measured states, whose noise violates
    the constraints, need none. States without one near them that keeps the constraints are refused.
    It is the same array if none is off.
    """
    if system.errors is None or system.errors.constraints is None or system.project is None:
        return x
    p = system.nominal_parameters if p is None else p
    constraints, project = system.errors.constraints, system.project

    def violation(x: np.ndarray) -> np.ndarray:
        return np.abs(constraints(x, p)).max(axis=-1, initial=0.0)

    before = violation(x)
    if (before <= OFF_CONSTRAINTS).all():
        return x
    moved = x
    for _ in range(PROJECTIONS):
        moved = project(moved, p)
    is_off = ~(before <= OFF_CONSTRAINTS)
    moved = np.where(is_off[..., None], moved, x)
    change = system.state.minus(moved, np.broadcast_to(x, moved.shape))
    most = np.abs(change).max(axis=-1, initial=0.0)
    lost = is_off & ~((violation(moved) <= OFF_CONSTRAINTS) & (most <= FAR * before))
    k = tuple(int(i) for i in np.argwhere(lost if lost.any() else is_off)[0])
    shown = f"{name}[{', '.join(map(str, k))}]" if k else name
    if lost.any():
        raise ValueError(
            f"{shown} is no state of {system.name}: it is off its constraints by {before[k]:.3g}, "
            "and no state that keeps them was found near it; begin near a trim point, or at "
            "positions that close the loops (assemble) with velocities that keep them closed"
        )
    if warn:
        entry = int(np.abs(change[k]).argmax())
        warnings.warn(
            f"{shown} is off the constraints of {system.name} by {before[k]:.3g}: taken is "
            f"{system.name}.project({shown}), which differs most by {change[k][entry]:.3g} in "
            f"{system.state.tangent_names[entry]}; give {name} on the constraints",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
    return moved


def read_point(
    system: SystemDefinition, t: float | None, x: Any, u: Any, p: Any
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Check t, x, u, p; x may be a point that has some of the others."""
    if hasattr(x, "x") and hasattr(x, "u"):
        if u is not None:
            raise TypeError("got a point, which has its own input, and u as well")
        p = getattr(x, "p", None) if p is None else p
        t = getattr(x, "t", None) if t is None else t
        x, u = x.x, x.u
    t = 0.0 if t is None else float(check_shape("t", t, ()))
    p = complete_parameters(system, p)
    try:
        x = check_start(system, "x", x, p)
    except ValueError as error:
        sizes = np.shape(x), np.shape(u)
        if sizes[0] in ((len(system.inputs),), (len(system.input_index()),)) and sizes[1] == (
            system.state.nq,
        ):
            raise ValueError(f"{error}; x comes first, then u") from None
        raise
    ask_order("x", x, system.state)
    if u is None:
        return t, x, system.nominal_input, p
    full = complete_input(system, "u", u)
    if np.shape(u) == full.shape:
        _ask_swapped(system, x, full)
    return t, x, full, p


def _ask_swapped(system: SystemDefinition, x: np.ndarray, u: np.ndarray) -> None:
    """Ask whether x and u of one size were swapped, where only the other order keeps the bounds."""
    lower, upper = system.input_bounds
    if u.shape != x.shape:
        return
    if ((u < lower) | (u > upper)).any() and ((x >= lower) & (x <= upper)).all():
        warnings.warn(
            f"u = {u.tolist()} is beyond the bounds of the inputs of {system.name}, "
            f"x = {x.tolist()} is within: x comes first, then u; are they in this order?",
            RuntimeWarning,
            stacklevel=level_outside(),
        )

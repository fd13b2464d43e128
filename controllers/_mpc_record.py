"""What a run records of an MPC's plans: errors that they weigh, and quantities that they bound."""

from __future__ import annotations

import numpy as np

from lgcontrol.codegen import Value, trace
from lgcontrol.groups import LieGroup
from lgcontrol.optimal import OptimalControlProblem, Residual


def errors_of_residuals(
    stated: OptimalControlProblem, times: np.ndarray, x: np.ndarray, p: np.ndarray
) -> dict[str, tuple[np.ndarray, LieGroup]]:
    """Residuals that say the group of their error, at states (k, nq) with parameters (k, n)."""
    system, found = stated.system, {}
    shapes = {"t": (), "x": (system.state.nq,), "u": (system.n_inputs,), "p": p.shape[1:]}
    for residual in stated.residuals:
        group = residual.group
        if group is None:
            continue

        def build(t: Value, x: Value, u: Value, p: Value, residual: Residual = residual) -> Value:
            return residual.expression(system, t, x, u, p)

        error = trace("task_error", build, shapes, {"error": (group.dim,)}, symbol=system.symbol)
        found[residual.name] = (error(times, x, system.nominal_input, p), group)
    return found


def bounded_with_units(
    stated: OptimalControlProblem, times: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray,
    states: np.ndarray | None,
) -> dict[str, tuple[np.ndarray, float, float, str]]:  # fmt: skip
    """Bounded quantities by name: values, limits and unit."""
    if not stated.bounds:
        return {}
    found = stated.bounded(times, x, u, p, states)
    return {name: (*entry, stated.bound_unit(name)) for name, entry in found.items()}

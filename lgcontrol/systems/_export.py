"""Export of a system: its step as plain C99, with a replayed run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..codegen._internal import EXAMPLES, c_default_name, export_functions
from ..integrators import Method
from ._definition import SystemDefinition
from ._step import step_function

GRAVITY = 9.81  # m/s², of models and estimators that are given no other
FREE_FALL = (0.0, 0.0, -GRAVITY)  # m/s² in world axes, z up
SAME_TIME = 1e-9  # s; times this close are the same time, reached by another sum
# Examples that exported code is compared with.
EXAMPLE_SPREAD = 0.3  # of their states about home, and of their inputs about the nominal ones
EXAMPLE_STEP = 0.01  # s, of systems in continuous time


def export_system(
    system: SystemDefinition,
    folder: str | Path,
    *,
    name: str | None = None,
    method: str | Method = "rk4",
    substeps: int = 1,
) -> Path:
    """Write the system as plain C99 that needs nothing else: ``<name>_f``, ``_h`` and ``_step``.

    The functions take time, state, inputs and parameters, the step its length besides. The header
    tells where each entry stands, with its unit; it declares the nominal parameters. An example
    compares with Python.

    Parameters
    ----------
    folder : path
        New, empty, or exported before; it appears whole or not at all.
    name : str, optional
        Of the files and functions; ``"<system>_system"`` if left out.
    method : str or Method
        Of the step.
    substeps : int
        Parts that each step is divided into.

    Raises
    ------
    FileExistsError
        If the folder holds anything that was not exported, or was changed since.
    NotImplementedError
        If a function holds more than scalar and matrix operations.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", Rn(1), lambda t, x, u, p: u - x, inputs=["push"])
    >>> sorted(path.name for path in cart.export_c("cart_c").glob("cart_system_*.c"))
    ['cart_system_f.c', 'cart_system_h.c', 'cart_system_step.c']
    """
    functions = {"f": system.f, "h": system.h, "step": step_function(system, method, substeps)}
    state, rng = system.state, np.random.default_rng(0)
    coordinates = list(zip(state.coordinate_names, state.coordinate_units, strict=True))
    labels = {
        "x": coordinates,
        "u": [(entry.name, entry.unit) for entry in system.inputs],
        "p": [(entry.name, entry.unit) for entry in system.parameters],
    }
    lower, upper = system.input_bounds

    def drawn() -> dict[str, Any]:
        x = state.plus(system.home, EXAMPLE_SPREAD * rng.normal(size=state.dim))
        if system.project is not None:
            x = system.project(x, system.nominal_parameters)
        u = system.nominal_input + EXAMPLE_SPREAD * rng.normal(size=system.n_inputs)
        return {
            "t": rng.uniform(), "x": x, "u": np.clip(u, lower, upper),
            "p": system.nominal_parameters, "dt": system.dt or EXAMPLE_STEP,
        }  # fmt: skip

    kind = "a discrete system" if system.is_discrete else "a system in continuous time"
    return export_functions(
        functions,
        folder,
        name or c_default_name(system.name, system),
        labels,
        [drawn() for _ in range(EXAMPLES)],
        [f"{system.name}: {kind} on {state}. SI units, radians."],
    )

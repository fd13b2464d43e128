"""Inputs and parameters from what was given: all, the controls alone, values by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import check_shape, format_shape

if TYPE_CHECKING:
    from ._system import System


def complete_input(
    system: System, name: str, u: Any, axes: tuple[int | None, ...] = (), *, batch: bool = False
) -> np.ndarray:
    """Inputs of shape ``(*axes, n_inputs)``; the others are nominal where only controls are given.

    Parameters
    ----------
    system : System
    name : str
        What the value is called in messages.
    u : array_like, shape (*axes, n_inputs) or (*axes, n_controls)
    axes : tuple of int or None
        Axes before that of the inputs; None stands for any length.
    batch : bool
        Whether batch axes may come before these.
    """
    given = check_shape(name, u, (None,), batch=True)
    total, controls = system.n_inputs, len(system.input_index("control"))
    if given.shape[-1] == controls != total:
        given = system.full_input(given)
    elif given.shape[-1] != total:
        raise ValueError(
            f"{name} has shape {given.shape}, expected {format_shape((*axes, total), batch)}: "
            f"{input_count(system)}"
        )
    return check_shape(name, given, (*axes, total), batch=batch)


def input_count(system: System) -> str:
    """Say what the inputs of a system are, and how to get all from the controls."""
    counts = Counter(entry.role for entry in system.inputs)
    words = {"control": "control", "disturbance": "disturbance", "noise": "noise input"}
    parts = [f"{n} {words[role]}{'s' * (n != 1)}" for role, n in counts.items()]
    text = f"{system.name} has {' + '.join(parts) or 'no inputs'}"
    if len(counts) > 1 and counts["control"]:
        text += "; system.full_input(controls) fills in the nominal others"
    return text


def complete_parameters(system: System, p: Any, *, batch: bool = False) -> np.ndarray:
    """Parameters of shape (n_parameters,): nominal ones for None, or those of a mapping by name."""
    if p is None:
        return system.nominal_parameters
    if isinstance(p, Mapping):
        return system.parameter_values(**p)
    given = check_shape("p", p, (None,), batch=batch)
    if given.shape[-1] != system.n_parameters:
        expected = format_shape((system.n_parameters,), batch)
        raise ValueError(
            f"p has shape {given.shape}, expected {expected}: {parameter_names(system)}"
        )
    return given


def parameter_names(system: System) -> str:
    """Say what the parameters of a system are, and how to get all from some."""
    names = system.parameter_names
    if not names:
        return f"{system.name} has no parameters"
    return (
        f"{system.name} has the parameters {', '.join(names)}; "
        "system.parameter_values(**{name: value}) fills in the nominal others"
    )

"""Differentially flat systems for python-control."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._definition import SystemDefinition
from ._signals import control_name, control_names

if TYPE_CHECKING:
    import control.flatsys

Flag = Sequence[np.ndarray]  # an output and its time derivatives, for each flat output


def flat_system(
    system: SystemDefinition,
    forward: Callable[[np.ndarray, np.ndarray], Flag],
    reverse: Callable[[Flag], tuple[np.ndarray, np.ndarray]],
    options: dict[str, Any],
) -> control.flatsys.FlatSystem:
    """`control.flatsys.FlatSystem` on the stored coordinates and the controls of a system.

    Parameters
    ----------
    forward : callable
        ``forward(x, u)`` gives the flat flag for a state and the controls.
    reverse : callable
        ``reverse(flag)`` gives the state and the controls.
    options : dict
        Of `control.flatsys.FlatSystem`; they replace the names of the system's own signals.

    Returns
    -------
    control.flatsys.FlatSystem
        With the states as outputs.
    """
    import control.flatsys

    def there(x: Any, u: Any, params: Any = None) -> Flag:
        return forward(np.ravel(x).astype(np.float64), np.ravel(u).astype(np.float64))

    def back(flag: Any, params: Any = None) -> tuple[np.ndarray, np.ndarray]:
        return reverse([np.asarray(values, dtype=np.float64) for values in flag])

    def rate(t: float, x: Any, u: Any, params: Any = None) -> np.ndarray:
        x = system.state.normalize(np.ravel(x))
        return system.state.rate_matrix(x) @ system.f(t, x, system.full_input(np.ravel(u)))

    coordinates = [control_name(name) for name in system.state.coordinate_names]
    controls = [system.input_names[i] for i in system.input_index("control")]
    signals = {
        "name": control_name(system.name),
        "inputs": control_names("inputs", controls),
        "states": coordinates,
        "outputs": coordinates,
    }
    return control.flatsys.FlatSystem(
        there, back, rate, lambda t, x, u, params=None: x, **(signals | options)
    )

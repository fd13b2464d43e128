"""References: constants, trim points, trajectories, sampled at the nodes of a horizon."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..codegen import check_shape
from ..systems import System


class ReferenceSamples(NamedTuple):
    """States and inputs to follow, one row a time.

    Attributes
    ----------
    x : ndarray, shape (k, nq)
    u : ndarray, shape (k, n_inputs)
    """

    x: np.ndarray
    u: np.ndarray


def sample_reference(system: System, reference: Any, times: np.ndarray) -> ReferenceSamples:
    """States and inputs of a reference at times.

    Parameters
    ----------
    system : System
    reference : array_like, TrimPoint, Trajectory or callable
        A constant state (nq,), an object with ``x`` and ``u``, or a callable of an array of times
        that returns such an object. Inputs are all of the system's (n_inputs,) or its controls
        only; without any they are nominal.
    times : ndarray, shape (k,)
        Times in s.

    Returns
    -------
    ReferenceSamples

    Raises
    ------
    ValueError
        If there is no reference or it has the wrong size.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> sample_reference(wheel, [1.0, 0.0], np.arange(3)).u.shape
    (3, 1)
    """
    if reference is None:
        raise ValueError(
            f"{system.name} has no reference to follow: give a state, a TrimPoint or a Trajectory"
        )
    point = reference
    if callable(reference):
        moving = np.any(getattr(reference, "rate", 1.0))  # a TrimPoint at rest is a constant
        point = reference(np.asarray(times, dtype=np.float64)) if moving else reference
    x, u = getattr(point, "x", point), getattr(point, "u", None)
    state = check_shape("the reference's state", x, (system.state.nq,), batch=True)
    rows = (len(times), system.state.nq)
    return ReferenceSamples(
        np.broadcast_to(state, rows),
        np.broadcast_to(_inputs(system, u), (len(times), system.n_inputs)),
    )


def _inputs(system: System, u: Any) -> np.ndarray:
    if u is None or np.shape(u)[-1:] == (0,):
        return system.nominal_input
    size = np.shape(u)[-1] if np.ndim(u) else 0
    controls = len(system.input_index("control"))
    if size == controls != system.n_inputs:
        return system.full_input(u)
    return check_shape("the reference's input", u, (system.n_inputs,), batch=True)

"""References: constants, trim points, trajectories, sampled at the nodes of a horizon."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any, NamedTuple

import numpy as np

from ..codegen import check_shape
from ..systems import System, TrajectoryPoint, field_derivatives


class ReferenceSamples(NamedTuple):
    """States and inputs to follow, one row a time.

    Attributes
    ----------
    x : ndarray, shape (k, nq)
    u : ndarray, shape (k, n_inputs)
    """

    x: np.ndarray
    u: np.ndarray


def sample_reference(
    system: System, reference: Any, times: np.ndarray, p: np.ndarray | None = None
) -> ReferenceSamples:
    """States and inputs of a reference at times.

    A reference without inputs gets those that come nearest to moving the system along it: hover
    thrusts for a state at rest.

    Parameters
    ----------
    system : System
    reference : array_like, TrimPoint, Trajectory or callable
        A constant state (nq,), an object with ``x`` and ``u``, a Trajectory or another callable
        object that takes an array of times and returns such an object, or a plain function of one
        time. Inputs are all of the system's (n_inputs,) or its controls only.
    times : ndarray, shape (k,)
        Increasing times in s.
    p : ndarray, optional
        The system's parameters; nominal if left out.

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
    times = np.asarray(times, dtype=np.float64)
    point = _at(reference, times) if moves(reference) else reference
    x, u = getattr(point, "x", point), getattr(point, "u", None)
    x = _check_states(system, x)
    if u is None or np.shape(u)[-1:] == (0,):
        u = _driving_inputs(system, times, x, system.nominal_parameters if p is None else p)
    elif np.shape(u)[-1] == len(system.input_index("control")) != system.n_inputs:
        u = system.full_input(u)
    u = check_shape("the reference's input", u, (system.n_inputs,), batch=True)
    count = len(times)
    return ReferenceSamples(
        np.broadcast_to(x, (count, system.state.nq)), np.broadcast_to(u, (count, system.n_inputs))
    )


def _at(reference: Any, times: np.ndarray) -> Any:
    """A moving reference at times; plain functions are asked for one time after the other."""
    if not isinstance(reference, FunctionType | MethodType):
        return reference(times)
    points = [reference(float(t)) for t in times]
    if hasattr(points[0], "u"):
        return TrajectoryPoint(np.array([e.x for e in points]), np.array([e.u for e in points]))
    return np.array([getattr(point, "x", point) for point in points])


def _check_states(system: System, x: Any) -> np.ndarray:
    """States of a reference as floats; constant ones on the group."""
    group = system.state
    name = "the reference's state"
    x = check_shape(name, x, (None,), batch=True, finite=False)
    if x.shape[-1] != group.nq:
        raise ValueError(
            f"{name} has {x.shape[-1]} coordinates, expected {group.nq}: those of {group}"
        )
    x = check_shape(name, x, x.shape)
    if x.ndim > 1:
        return x
    normal = group.normalize(x)
    if not np.isfinite(normal).all():
        raise ValueError(f"{name} {x} is no element of {group}")
    return normal


def moves(reference: Any) -> bool:
    """Whether a reference is a function of time, other than a point that stays where it is."""
    if not callable(reference) or getattr(reference, "kind", None) == "equilibrium":
        return False
    return bool(np.any(getattr(reference, "rate", 1.0)))


def _driving_inputs(system: System, times: np.ndarray, x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Inputs near the nominal ones whose field comes nearest to the rate of x, within bounds."""
    states = x.reshape(-1, system.state.nq)
    rates = np.zeros((len(states), system.state.dim))
    if len(states) > 1:
        rates[:-1] = system.state.minus(states[1:], states[:-1])
        rates[:-1] /= 1.0 if system.is_discrete else np.diff(times)[:, None]
        rates[-1] = rates[-2]
    controls = system.input_index("control")
    here = field_derivatives(system)(times[: len(states)], states, system.nominal_input, p)
    B = here.B[..., controls]
    missing = (rates - here.rate)[..., None]
    u = np.tile(system.nominal_input, (len(states), 1))
    u[:, controls] += (np.linalg.pinv(B, rcond=1e-9) @ missing)[..., 0]
    lower, upper = system.input_bounds
    return np.clip(u, lower, upper).reshape(*x.shape[:-1], system.n_inputs)

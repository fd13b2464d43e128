"""Whether the steps of a method keep up with the fastest modes of a system."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ..integrators import Method, get_method
from ._derivatives import field_derivatives
from ._sample_time import sample_time

if TYPE_CHECKING:
    from ._system import System

# Modes with less damping than this, next to their size, count as undamped: steps of low order let
# them grow however short they are, by the given share a step at most.
UNDAMPED = 1e-3
UNDAMPED_GROWTH = 0.01
# More substeps are as good as none: the search ends there, for absurd states where none will do.
COUNTLESS = 2**30


def step_factor(method: str | Method, z: Any) -> np.ndarray:
    """Factor ``R(z)`` by which one step of a method changes a mode, ``z = λ dt``.

    The exact one is ``exp(z)``.

    Parameters
    ----------
    method : str or Method
    z : complex or array_like
        Eigenvalue times the length of the step.

    Returns
    -------
    ndarray of complex

    References
    ----------
    Hairer, Wanner: Solving Ordinary Differential Equations II, definition IV.2.1.

    Examples
    --------
    >>> complex(step_factor("heun", -1.0))  # 1 + z + z²/2
    (0.5+0j)
    """
    return get_method(method).stability(np.asarray(z, dtype=complex))


def stable_substeps(
    system: System,
    x: Any,
    u: Any,
    dt: float,
    method: str | Method = "rk4",
    *,
    accuracy: float | None = None,
    p: Any = None,
    t: Any = 0.0,
) -> int:
    """Fewest substeps with which a method's steps do not let modes grow that do not.

    For every eigenvalue λ of the linearization, ``R(λ dt / substeps)`` must not exceed one where
    ``exp(λ dt)`` does not. For a single real mode that means ``|λ| dt / substeps`` within the
    method's interval of stability: 2 for euler and heun, 2.785 for rk4.

    Parameters
    ----------
    system : System
        Discrete systems have no substeps: 1.
    x : array_like, shape (..., nq)
        State, or states of a motion.
    u : array_like, shape (..., n_inputs), or None
        All inputs; nominal if None.
    dt : float
        Length of the step in s that is divided.
    method : str or Method
    accuracy : float, optional
        Largest error of the factor of each mode over dt, too, next to the larger of one and the
        factor.
    p : array_like, shape (n_parameters,), optional
    t : float or array_like
        Time in s.

    Returns
    -------
    int
        1 where the step is stable as it is. States where the linearization is not finite do not
        count.

    Raises
    ------
    ValueError
        If dt is not positive, the method is unknown or a shape does not fit.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> motor = System("motor", Rn(1), lambda t, x, u, p: (u - x) / 0.002, inputs=["voltage"])
    >>> stable_substeps(motor, [0.0], None, 0.005), stable_substeps(motor, [0.0], None, 0.02)
    (1, 4)
    """
    method = get_method(method)
    if system.is_discrete or not system.state.dim:
        return 1
    dt = sample_time(system, dt)
    u = system.nominal_input if u is None else u
    p = system.nominal_parameters if p is None else p
    A = field_derivatives(system)(t, x, u, p).A.reshape(-1, system.state.dim, system.state.dim)
    z = dt * np.linalg.eigvals(A[np.isfinite(A).all(axis=(1, 2))]).ravel()
    return substeps_for(z, method, accuracy)


def warn_if_unstable(system: System, dt: float, method: str | Method, substeps: int) -> None:
    """Warn (twice removed from the caller) if a step is not stable at the identity."""
    needed = stable_substeps(system, system.state.identity, None, dt, method)
    if needed > substeps:
        warnings.warn(
            f"{system.name}: {substeps} step{'s' * (substeps > 1)} of {get_method(method).name} in "
            f"{dt:g} s let modes grow that do not, about the identity; give substeps={needed}, or "
            "a shorter dt",
            RuntimeWarning,
            stacklevel=3,
        )


def substeps_for(z: np.ndarray, method: str | Method, accuracy: float | None = None) -> int:
    """Fewest substeps for modes with the given eigenvalues times dt."""
    z, method = np.asarray(z, dtype=complex), get_method(method)
    if _holds(z, method, 1, accuracy):
        return 1
    short, enough = 1, 2
    while not _holds(z, method, enough, accuracy):
        short, enough = enough, 2 * enough
        if enough >= COUNTLESS:
            return enough
    while enough - short > 1:
        middle = (short + enough) // 2
        if _holds(z, method, middle, accuracy):
            enough = middle
        else:
            short = middle
    return enough


def _holds(z: np.ndarray, method: Method, substeps: int, accuracy: float | None) -> bool:
    factor, real = step_factor(method, z / substeps), np.real(z)
    undamped = real > -UNDAMPED * np.abs(z)
    limit = np.exp(np.maximum(real / substeps, 0.0)) + UNDAMPED_GROWTH * undamped
    if not (np.abs(factor) <= limit).all():
        return False
    if accuracy is None:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.exp(z)
        return bool((np.abs(factor**substeps - exact) <= accuracy * (1 + np.abs(exact))).all())

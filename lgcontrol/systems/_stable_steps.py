"""Whether the steps of a method keep up with the fastest modes of a system."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import level_outside
from ..integrators import Method, get_method
from ._definition import SystemDefinition
from ._step import field_derivatives, step_derivatives
from ._tracing import complete_parameters, sample_time

# Modes with less damping than this, next to their size, count as undamped: steps of low order let
# them grow however short they are, by the given share a step at most.
UNDAMPED = 1e-3
UNDAMPED_GROWTH = 0.01
MOST_EXPLICIT = 8  # substeps that are worth their accuracy
STIFF = "radau_iia5"  # for what no explicit method keeps up with
# More substeps are as good as none: the search ends there, for absurd states where none will do.
COUNTLESS = 2**30
# Circles about 0 on which a method is tried, and points of each half of one.
SLOW_SIZES = np.linspace(0.02, 3.0, 150)
SLOW_ANGLES = 181


def step_factor(method: str | Method, z: Any) -> np.ndarray:
    """Factor ``R(z)`` by which one step of a method changes a mode, ``z = λ dt``.

    The exact one is ``exp(z)``.

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
    system: SystemDefinition,
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
        factor. Methods that treat losses apart from other forces are judged by stability alone.
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
    if _splits(system, method):
        return _substeps_of_split(system, x, u, sample_time(system, dt), method, p, t)
    dt = sample_time(system, dt)
    u = system.nominal_input if u is None else u
    p = complete_parameters(system, p, batch=True)
    A = field_derivatives(system)(t, x, u, p).A.reshape(-1, system.state.dim, system.state.dim)
    slow = _slow_modes(method, accuracy)
    # No eigenvalue is larger than the largest sum of a row; what is not finite is not slow.
    if dt * np.abs(A).sum(axis=2).max(initial=0.0) <= slow:
        return 1
    A = A[np.isfinite(A).all(axis=(1, 2))]
    if dt * np.abs(A).sum(axis=2).max(initial=0.0) <= slow:
        return 1
    # States of a motion that rests are one: eigenvalues cost more than all else here.
    is_new = np.append(True, (A[1:] != A[:-1]).any(axis=(1, 2)))[: len(A)]
    z = dt * np.linalg.eigvals(A[is_new]).ravel()
    return substeps_for(z, method, accuracy)


@named_options
def choose_method(
    system: SystemDefinition,
    dt: float,
    x: Any = None,
    u: Any = None,
    *,
    p: Any = None,
    t: Any = 0.0,
) -> str:
    """Method for steps of a given length: rk4, or one for stiff systems where that is too slow.

    A system counts as stiff where rk4 takes more than 8 substeps. If the structure knows the losses
    in joints, and these are fast, linearly_implicit_euler damps them however fast they are, at the
    cost of Euler's accuracy. Others take radau_iia5, which is stable for all modes that decay, and
    of order five. If accuracy matters more than time, take it for joints, too. Adaptive integration
    chooses for itself (`lgcontrol.integrators.integrate`).

    Parameters
    ----------
    system : System
    dt : float
        Step in s.
    x : array_like, shape (..., nq), optional
        State, or states of a motion; the system's home if left out, where dry friction is steepest.
    u, p, t
        As for `stable_substeps`.

    Returns
    -------
    str

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> lag = System("lag", Rn(1), lambda t, x, u, p: -x)
    >>> choose_method(lag, 0.1), choose_method(lag, 100.0)
    ('rk4', 'radau_iia5')
    """
    if system.is_discrete:
        return "rk4"
    x = system.home if x is None else x

    def takes_few(method: str) -> bool:
        return stable_substeps(system, x, u, dt, method, p=p, t=t) <= MOST_EXPLICIT

    if takes_few("rk4"):
        return "rk4"
    # Its own limit is that of what it steps explicitly, springs for example.
    if _has_losses(system) and takes_few("linearly_implicit_euler"):
        return "linearly_implicit_euler"
    return STIFF


def warn_if_unstable(
    system: SystemDefinition, dt: float, method: str | Method, substeps: int
) -> None:
    """Warn (twice removed from the caller) if a step is not stable at the system's home."""
    x = system.home
    where = "the identity" if (x == system.state.identity).all() else "its home"
    needed = stable_substeps(system, x, None, dt, method)
    if needed > substeps:
        text = instability(system, where, x, None, dt, method, substeps, needed)
        warnings.warn(text, RuntimeWarning, stacklevel=level_outside())


def instability(
    system: SystemDefinition,
    where: str,
    x: Any,
    u: Any,
    dt: float,
    method: str | Method,
    substeps: int,
    needed: int,
    *,
    p: Any = None,
    t: Any = 0.0,
) -> str:
    """Say that steps let modes grow about a state, and what to do."""
    name, chosen = get_method(method).name, choose_method(system, dt, x, u, p=p, t=t)
    remedies = [f"give substeps={needed}"]
    if chosen not in ("rk4", name):
        remedies.append(f'method="auto" (here {chosen})')
    elif name != STIFF:
        remedies.append(f'method="{STIFF}"')
    return (
        f"{system.name}: {substeps} step{'s' * (substeps > 1)} of {name} in {dt:g} s let modes "
        f"grow that do not, about {where}; {', '.join(remedies)}, or a shorter dt"
    )


def substeps_for(z: np.ndarray, method: str | Method, accuracy: float | None = None) -> int:
    """Fewest substeps for modes with the given eigenvalues times dt."""
    z, method = np.asarray(z, dtype=complex), get_method(method)
    return _fewest(lambda count: _holds(z, method, count, accuracy))


def _fewest(holds: Callable[[int], bool]) -> int:
    """Smallest number for which something holds, by doubling and halving."""
    if holds(1):
        return 1
    short, enough = 1, 2
    while not holds(enough):
        short, enough = enough, 2 * enough
        if enough >= COUNTLESS:
            return enough
    while enough - short > 1:
        middle = (short + enough) // 2
        if holds(middle):
            enough = middle
        else:
            short = middle
    return enough


@lru_cache(maxsize=64)
def _slow_modes(method: Method, accuracy: float | None) -> float:
    """Size of ``λ dt`` up to which one step keeps up with a mode, wherever in the plane λ is.

    Tried on circles, whose points lie densest where damping begins: there methods of low order
    fail first.
    """
    edge = np.pi / 2 + UNDAMPED * np.array([0.0, 0.999, 1.001, 2.0, 10.0])
    angles = np.concatenate([np.linspace(0.0, np.pi, SLOW_ANGLES), edge])  # R(z̄) is that of z̄
    largest = 0.0
    for size in SLOW_SIZES:
        if not _holds(size * np.exp(1j * angles), method, 1, accuracy):
            break
        largest = float(size)
    return largest


def _splits(system: SystemDefinition, method: Method) -> bool:
    """Whether a method treats some modes apart, so that no one factor R(z) is that of all."""
    return method.needs_structure or (_has_losses(system) and method.uses_losses)


def _has_losses(system: SystemDefinition) -> bool:
    """Whether losses in joints are known, apart from other forces."""
    known = system.structure or system.constrained
    return known is not None and known.loss_jacobian is not None


def _substeps_of_split(
    system: SystemDefinition, x: Any, u: Any, dt: float, method: Method, p: Any, t: Any
) -> int:
    """Fewest substeps with which the matrix of the step itself lets no mode grow that does not."""
    u = system.nominal_input if u is None else u
    p = system.nominal_parameters if p is None else p
    n = system.n_errors
    here, step = field_derivatives(system), step_derivatives(system, method)

    def growth(A: np.ndarray) -> np.ndarray:
        """Largest real part of the modes, where they are finite."""
        found = np.zeros(A.shape[:-2])
        finite = np.isfinite(A).all(axis=(-1, -2))
        found[finite] = np.linalg.eigvals(A[finite]).real.max(axis=-1, initial=0.0)
        return found

    A = here(t, x, u, p).A
    finite = np.isfinite(A).all(axis=(-1, -2))

    def holds(count: int) -> bool:
        after = step(t, x, u, p, dt / count)
        made = np.broadcast_to(after.A, (*A.shape[:-2], n, n))
        if not np.isfinite(made[finite]).all():
            return False
        largest = np.abs(np.linalg.eigvals(made[finite])).max(axis=-1, initial=0.0)
        # A step may leave dry friction behind: what grows without it may grow.
        fastest = np.maximum(growth(A), growth(here(t, after.x_next, u, p).A))
        limit = np.exp(np.broadcast_to(fastest, finite.shape)[finite] * dt / count)
        return bool((largest <= limit + UNDAMPED_GROWTH).all())

    return _fewest(holds)


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

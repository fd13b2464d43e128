"""is_group_affine: whether errors of a system move in the same way about every motion."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ._definition import SystemDefinition
from ._step import field_derivatives
from ._tracing import symbols_of

# States compared, and what rounding may leave of an exact cancellation between them.
POINTS = 8
AFFINE_ROUNDING = 1e-10


def is_group_affine(system: SystemDefinition) -> bool:
    """Whether ``A = Df − ad_f`` is the same at all states: errors are then autonomous.

    With ``X = X̄ exp(ε)`` such a system has ``ε̇ = A(t, u, p) ε`` exactly, for errors of any size,
    and a filter propagates its covariance without an error of linearization. For inertial
    navigation this holds on SE_2(3) and not on R³ × R³ × SO(3).

    Decided exactly where x does not occur in the expressions of A. Else by A at random states,
    inputs, times and parameters. Its entries are analytic: if they agree at random points, they
    agree everywhere with probability one.

    Parameters
    ----------
    system : System

    Returns
    -------
    bool

    Examples
    --------
    >>> from lgcontrol.groups import SE2
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", SE2, lambda t, x, u, p: [u[0], 0, u[1]], inputs=["speed", "turn"])
    >>> is_group_affine(cart)
    True

    References
    ----------
    Barrau and Bonnabel, The invariant extended Kalman filter as a stable observer, IEEE TAC 62(4),
    2017, theorems 1 and 2.
    """
    derivatives = field_derivatives(system)
    if system.symbol is ca.SX:
        t, x, u, p = symbols_of(system)
        if not ca.depends_on(derivatives(t, x, u, p).A, x):
            return True
    rng = np.random.default_rng(0)
    x = system.state.random(rng, (POINTS, POINTS))
    t = rng.uniform(0, 1, (POINTS, 1))
    u = system.nominal_input + rng.normal(size=(POINTS, 1, system.n_inputs))
    p = system.nominal_parameters * rng.uniform(0.5, 1.5, (POINTS, 1, system.n_parameters))
    A = derivatives(t, x, u, p).A
    spread = np.abs(A - A[:, :1]).max(axis=(1, 2, 3), initial=0.0)
    size = np.abs(A).max(axis=(1, 2, 3), initial=1.0)
    return bool((spread <= AFFINE_ROUNDING * size).all())

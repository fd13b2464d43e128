"""check_system: what the toolkit relies on, tested numerically on a user's own system."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from ..groups import check_element
from ._check_items import CHECKS, Samples
from ._complete import complete_input, complete_parameters

if TYPE_CHECKING:
    from ._system import System


def check_system(
    system: System,
    x: Any = None,
    u: Any = None,
    *,
    p: Any = None,
    samples: int = 10,
    seed: int = 0,
    tolerance: float = 1e-6,
) -> dict[str, float]:
    """Largest violation of what the toolkit relies on, over sampled states and inputs.

    Parameters
    ----------
    system : System
        For example a user's own.
    x : array_like, shape (samples, nq), optional
        States to look at; random ones if left out. They are projected first.
    u : array_like, shape (n_inputs,) or (samples, n_inputs), optional
        Inputs; random ones within the bounds, around the nominal input, if left out.
    p : array_like, shape (n_parameters,), optional
    samples : int
        Number of random states.
    seed : int
    tolerance : float
        Largest violation that passes, next to the size of what is compared.

    Returns
    -------
    dict of str to float
        Violation of each check that applies, by name: distinct names; finite field, output and
        quantities; output on its group; the same answer for both signs of a quaternion; exact
        derivatives against central differences on the group (give x away from kinks); integration
        that converges with its order; invariants constant for the nominal input; idempotent
        projection; pickling.

    Raises
    ------
    ValueError
        If any check fails; the message lists all that do, and where.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import SO2, Product, Rn
    >>> from lgcontrol.systems import System, check_system
    >>> pendulum = System("pendulum", Product(angle=SO2, rate=Rn(1)),
    ...                   lambda t, x, u, p: ca.vertcat(x[2], u - x[1]), inputs=["torque"])
    >>> max(check_system(pendulum).values()) < 1e-6
    True
    """
    points = _sample(system, x, u, p, samples, seed)
    found: dict[str, tuple[float, str]] = {}
    for name, check in CHECKS.items():
        result = check(system, points)
        if result is not None:
            found[name] = result
    failed = [
        f"{name}: off by {size:.2g}{f' ({where})' if where else ''}"
        for name, (size, where) in found.items()
        if not size <= tolerance
    ]
    if failed:
        raise ValueError(f"{system.name} is not a consistent system:\n- " + "\n- ".join(failed))
    return {name: size for name, (size, _) in found.items()}


def _sample(system: System, x: Any, u: Any, p: Any, samples: int, seed: int) -> Samples:
    rng = np.random.default_rng(seed)
    p = complete_parameters(system, p)
    if x is None:
        x = system.state.random(rng, (samples,))
    x = np.atleast_2d(check_element("x", x, system.state, batch=True, tolerance=inf))
    if system.project is not None:
        x = system.project(x, p)
    if u is None:
        lower, upper = system.input_bounds
        nominal = system.nominal_input
        low = np.where(np.isfinite(lower), lower, nominal - 1)
        high = np.where(np.isfinite(upper), upper, nominal + 1)
        u = rng.uniform(np.minimum(low, high), high, size=(len(x), system.n_inputs))
    u = complete_input(system, "u", u, batch=True)
    t = rng.uniform(0.0, 10.0, size=len(x))
    return Samples(t, x, np.broadcast_to(u, (len(x), system.n_inputs)), p)

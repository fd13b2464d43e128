"""Why a mechanism cannot be assembled or marched from where it is, in words."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from ._equations import MechanismEquations
from ._marker_forces import COINCIDE
from ._mobility import mobility
from ._system import OFF, ConstrainedMechanics

# Where |sin θ| of an Euler angle is smaller, a march that failed is put down to that.
SINGULAR_ANGLE = 1e-3
# Smallest eigenvalue of M, its diagonal scaled to one, that counts as zero.
SINGULAR_MASS = 1e-13


def refuse_singular_mass(
    own: MechanismEquations, mechanics: ConstrainedMechanics, q: np.ndarray
) -> None:
    """Say why M has no inverse in a configuration.

    Parameters
    ----------
    mechanics : ConstrainedMechanics
        Of these equations.
    q : ndarray, shape (nq,)
    """
    M = mechanics.terms_of(mechanics.complete(q), mechanics.base.nominal_parameters)[2]
    size = np.sqrt(np.maximum(np.diag(M), np.finfo(float).tiny))
    if np.linalg.eigvalsh(M / np.outer(size, size))[0] > SINGULAR_MASS:
        return
    name, angles = mechanics.base.name, singular_angles(own, q)
    if angles:
        raise ValueError(f"{name}: {angles}")
    weak = [
        body
        for body, inertia in own.inertias.items()
        if not (inertia.mass > 0 and np.linalg.eigvalsh(inertia.inertia)[0] > 0)
    ]
    raise ValueError(
        f"{name}: the mass matrix is singular, since joints do not hold all turns or "
        f"displacements without inertia of {', '.join(weak) or 'its bodies'}; give a mass and "
        "moments of inertia (SpatialInertia.box, SpatialInertia.sphere), small ones will do"
    )


def refuse_zero_lengths(own: MechanismEquations, q: np.ndarray) -> None:
    """Say which spring has points that coincide, and so no direction."""
    for force in own.forces:
        if force.is_direct and float(own.measured[force.name](q)[0]) <= COINCIDE:
            raise ValueError(
                f"force {force.name!r} has no direction: its points on {force.i.body!r} and "
                f"{force.j.body!r} coincide; move one of them, or take a spring of length 0"
            )


def refuse_march(
    mechanics: ConstrainedMechanics, x: np.ndarray, p: np.ndarray, remedy: str
) -> None:
    """Say which rows a start breaks, or which have no multipliers of their own.

    Parameters
    ----------
    x : ndarray, shape (nq + nv,), with the clock after it where there are drives
    """
    name = mechanics.base.name
    gap = np.abs(np.asarray(mechanics.gap(ca.DM(x), ca.DM(p)))).ravel()
    names = mechanics.constraints.row_names
    worst = int(gap.argmax()) if len(gap) else 0
    if gap.max(initial=0.0) > OFF:
        what = ("position", "velocity")[worst >= mechanics.constraints.n_position]
        row = names[worst % len(names)]
        raise ValueError(
            f"{name}: x0 does not keep the constraints, the {what} of {row} is off by "
            f"{gap[worst]:.3g}; state() makes one that does"
        )
    q = x[: mechanics.configuration.nq]
    if not mechanics.rank(x, p).removable:
        return
    t = float(x[-1]) if mechanics.constraints.is_driven else 0.0
    found = mobility(mechanics, q, t, p)
    raise ValueError(
        f"{name}: a march needs independent rows, at x0 there are others ({found}); "
        f"{remedy}, start beside a singular position, or take system(), which allows both"
    )


def refuse_open(
    mechanics: ConstrainedMechanics, t: np.ndarray, q: np.ndarray, p: np.ndarray
) -> None:
    """Say which row on positions configurations break most.

    Parameters
    ----------
    t : ndarray, shape (...)
    q : ndarray, shape (..., nq)
    p : ndarray, shape (n_parameters,)
    """
    own, shape = mechanics.constraints, np.broadcast_shapes(np.shape(t), q.shape[:-1])
    times = np.broadcast_to(t, shape).ravel()
    each = np.broadcast_to(q, (*shape, q.shape[-1])).reshape(-1, q.shape[-1])
    if not own.n_position or not len(each):
        return
    phi = own.position(ca.DM(times).T, ca.DM(each.T), ca.DM(p)).full()
    refuse_gap(mechanics.base.name, times, phi, own.row_names, own.units)


def refuse_gap(
    name: str, t: np.ndarray, phi: np.ndarray, rows: Sequence[str], units: Sequence[str]
) -> None:
    """Say where rows are open, or have no value; φ has a column for each time."""
    gap = np.abs(phi)
    if not gap.size or (gap <= OFF).all():
        return
    row, k = divmod(int(gap.argmax()), gap.shape[1])  # NaN comes first
    raise ValueError(
        f"{name}: q does not keep the joints at t = {t[k]:g} s: {rows[row]} is off by "
        f"{gap[row, k]:.3g} {units[row]}".rstrip()
        + "; close them first: assemble(q, t=…)"
    )


def singular_angles(own: MechanismEquations, q: np.ndarray) -> str:
    """Name the body whose coordinates are singular in a configuration.

    Parameters
    ----------
    own : MechanismEquations
    q : ndarray, shape (nq,)

    Returns
    -------
    str
        Empty if there is none.
    """
    for body, chosen in own.formulations.items():
        measure = chosen.regularity
        if measure and abs(float(measure(ca.DM(q[own.places[body][0]])))) < SINGULAR_ANGLE:
            return (
                f'Euler angles of {body!r} are singular there; "SO3xR3" and "SE3" have no such '
                "position"
            )
    return ""

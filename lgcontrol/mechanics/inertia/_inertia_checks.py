"""What keeps masses and inertias from belonging to a body, with amounts."""

from __future__ import annotations

import numpy as np

# Asymmetry and deviation from the form of a spatial inertia, relative to the largest entry: what
# inertias printed with nine digits show.
INERTIA_TOLERANCE = 1e-9

# Principal moments, relative to the largest: thin plates and rods sit exactly on the limits, and
# inertias printed with nine digits round across them.
MOMENT_TOLERANCE = 1e-9

# Relative to m |c|²: a shift of the inertia from a far origin loses that much in double precision.
SHIFT_TOLERANCE = 16 * float(np.finfo(np.float64).eps)


def inertia_findings(
    mass: float, center_of_mass: np.ndarray, inertia: np.ndarray
) -> tuple[str, ...]:
    """Say what is wrong with a mass and an inertia about the centre of mass.

    Parameters
    ----------
    mass : float
        Mass [kg].
    center_of_mass : ndarray, shape (3,)
        Centre of mass [m]: how far it is limits how well the inertia can be known.
    inertia : ndarray, shape (3, 3)
        Rotational inertia about the centre of mass [kg m²].

    Returns
    -------
    tuple of str
        One sentence a fault. Points (inertia 0), lines (one moment 0) and nothing (mass and
        inertia 0) have no fault: they are limits of bodies.
    """
    found = []
    if mass < 0.0:
        found.append(f"the mass {mass:g} kg is negative")
    scale = float(np.abs(inertia).max())
    if scale == 0.0:
        return tuple(found)
    if mass == 0.0:
        found.append(f"the mass is 0 but the inertia is not (largest entry {scale:g} kg m²)")
    asymmetry = np.abs(inertia - inertia.T)
    if asymmetry.max() > INERTIA_TOLERANCE * scale:
        row, column = (int(i) for i in np.unravel_index(asymmetry.argmax(), (3, 3)))
        found.append(
            f"the inertia is not symmetric: entries ({row}, {column}) and ({column}, {row}) are "
            f"{inertia[row, column]:.6g} and {inertia[column, row]:.6g} kg m²"
        )
    # Scaled, so that no entry overflows on the way to the eigenvalues.
    moments = np.linalg.eigvalsh((inertia + inertia.T) / 2 / scale) * scale
    shift = SHIFT_TOLERANCE * abs(mass) * float(center_of_mass @ center_of_mass)
    found += _moment_findings(moments, MOMENT_TOLERANCE * scale + shift)
    return tuple(found)


def _moment_findings(moments: np.ndarray, tolerance: float) -> list[str]:
    a, b, c = moments
    text = f"principal moments {a:.6g}, {b:.6g}, {c:.6g} kg m²"
    if a < -tolerance:
        return [f"the inertia is not positive definite: {text}"]
    excess = c - (a + b)
    if excess > tolerance:
        return [
            f"{text} break the triangle inequality: the largest exceeds the sum of the others "
            f"by {excess:.3g} kg m² ({100 * excess / c:.3g} %)"
        ]
    return []

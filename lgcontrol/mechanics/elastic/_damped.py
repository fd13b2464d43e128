"""Motors along a motion where dampers are parallel to springs: exact, filtered by the dampers."""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial

import numpy as np

# Taylor coefficients 3 to 5 of a step from value, first and second derivative at both its ends:
# what the first three leave of the end, in units of the step.
_HERMITE = np.array([[10.0, -4.0, 0.5], [-15.0, 7.0, -1.0], [6.0, -3.0, 0.5]])


@dataclass(frozen=True, eq=False)
class DampedDeflection:
    """``D δ̇ + K δ = τ(t)`` with τ, τ̇, τ̈ given at times, solved exactly for τ between them.

    Between two times τ is the polynomial of degree five with these values. A step adds ``∫ exp(−K
    (h − s)/D) τ(s)/D ds`` to the decayed deflection: a finite sum, well conditioned for steps long
    or short against D/K.

    Attributes
    ----------
    deflection, rate, acceleration : ndarray, shape (N,)
    """

    deflection: np.ndarray
    rate: np.ndarray
    acceleration: np.ndarray

    @classmethod
    def along(
        cls,
        t: np.ndarray,
        torque: np.ndarray,
        stiffness: float,
        damping: float,
        start: float | None = None,
    ) -> DampedDeflection:
        """Solve from a start, by default that which a past of constant curvature leads to.

        That is ``(τ − ε τ̇ + ε² τ̈)/K``, ε = D/K: ``τ/K`` for a motion that starts at rest.

        Parameters
        ----------
        t : ndarray, shape (N,)
        torque : ndarray, shape (3, N)
            τ, τ̇, τ̈.
        stiffness, damping : float
        start : float, optional
            Deflection at the first time.
        """
        epsilon = damping / stiffness
        deflection = np.empty(len(t))
        past = (torque[0, 0] - epsilon * torque[1, 0] + epsilon**2 * torque[2, 0]) / stiffness
        deflection[0] = past if start is None else start
        for n, h in enumerate(np.diff(t)):
            taylor = _taylor(h, torque[:, n], torque[:, n + 1])
            left, *weights = _exponentials(h / epsilon)
            push = sum(c * h**k * w for k, (c, w) in enumerate(zip(taylor, weights, strict=True)))
            deflection[n + 1] = left * deflection[n] + h / damping * push
        rate = (torque[0] - stiffness * deflection) / damping
        return cls(deflection, rate, (torque[1] - stiffness * rate) / damping)


def _taylor(h: float, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Derivatives 0 to 5 at the start of a step of the polynomial through both ends."""
    value, slope, bend = here
    scale = np.array([1.0, h, h * h])
    left = there * scale - np.array(
        [value + h * slope + h * h * bend / 2, h * (slope + h * bend), h * h * bend]
    )
    higher = _HERMITE @ left
    own = [higher[k] * factorial(k + 3) / h ** (k + 3) for k in range(3)]
    return np.array([value, slope, bend, *own])


def _exponentials(z: float) -> list[float]:
    """``φ_0 = exp(−z)`` to φ_6, ``φ_k = ∫₀¹ exp(−z (1 − s)) s^(k−1)/(k−1)! ds``, for z ≥ 0."""
    if z < 1:  # where differences would cancel
        return [sum((-z) ** m / factorial(m + k) for m in range(20)) for k in range(7)]
    found = [float(np.exp(-z))]
    for k in range(6):
        found.append((1 / factorial(k) - found[k]) / z)
    return found

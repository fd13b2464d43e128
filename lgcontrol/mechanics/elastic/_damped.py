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

    Between two times τ is the polynomial of degree five that has these values, so that
    ``π = Σ (−D/K)^i τ^(i)/K`` is a solution, a finite sum, and the others approach it as
    ``exp(−K t/D)``: the zero dynamics, which are stable forwards in time.

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
        """Solve from a start, by default that on which the torque's past left no trace.

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
        for n, h in enumerate(np.diff(t)):
            taylor = _taylor(h, torque[:, n], torque[:, n + 1])
            first, last = (_slow(taylor, epsilon, s) / stiffness for s in (0.0, h))
            if n == 0:
                deflection[0] = first if start is None else start
            deflection[n + 1] = last + np.exp(-h / epsilon) * (deflection[n] - first)
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


def _slow(taylor: np.ndarray, epsilon: float, s: float) -> float:
    """``Σ (−ε)^i P^(i)(s)`` of the polynomial with these derivatives at 0."""
    total = 0.0
    for i in range(6):
        own = sum(taylor[i + m] * s**m / factorial(m) for m in range(6 - i))
        total += (-epsilon) ** i * own
    return total

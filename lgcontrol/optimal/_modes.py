"""Modes that no feedback can move, by name: the Popov-Belevitch-Hautus test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

# Singular values below this share of the norm of [A − λ, B] count as zero: eigenvalues of a chain
# of integrators come out wrong by 1e-8 (the square root of the rounding).
RANK_TOLERANCE = 1e-7


class Mode(NamedTuple):
    """A motion that the inputs do not reach.

    Attributes
    ----------
    eigenvalue : complex
        In 1/s, or a factor per sample.
    states : tuple of str
        Error states that take part most, the strongest first.
    """

    eigenvalue: complex
    states: tuple[str, ...]

    def __str__(self) -> str:
        """Eigenvalue and states."""
        value = self.eigenvalue
        number = f"{value.real:.3g}" if abs(value.imag) < 1e-9 else f"{value:.3g}"
        return f"{number} ({', '.join(self.states)})"


def unstabilizable_modes(
    A: np.ndarray, B: np.ndarray, names: Sequence[str], *, discrete: bool
) -> tuple[Mode, ...]:
    """Modes that are not damped and that no input reaches.

    Parameters
    ----------
    A, B : ndarray
        Shapes (n, n), (n, m).
    names : sequence of str
        Names of the states.
    discrete : bool
        Whether A maps from sample to sample.

    Returns
    -------
    tuple of Mode
        Empty if a stabilising feedback exists.

    Examples
    --------
    >>> A, B = np.array([[0.0, 1.0], [0.0, 0.0]]), np.zeros((2, 1))
    >>> [mode.states for mode in unstabilizable_modes(A, B, ["place", "speed"], discrete=False)]
    [('speed',)]
    """
    found: list[Mode] = []
    scale = max(np.abs(A).max(initial=0.0), np.abs(B).max(initial=0.0), 1e-12)
    for value in np.linalg.eigvals(A):
        undamped = abs(value) >= 1 - RANK_TOLERANCE if discrete else value.real >= -RANK_TOLERANCE
        if not undamped or value.imag < 0:
            continue
        pencil = np.hstack([A - value * np.eye(len(A)), B])
        left, sizes, _ = np.linalg.svd(pencil)
        for direction in left.T.conj()[sizes <= RANK_TOLERANCE * scale]:
            shares = np.abs(direction)
            order = np.argsort(-shares)
            strong = [names[i] for i in order if shares[i] > 0.3 * shares.max()]
            mode = Mode(complex(value), tuple(strong[:4]))
            if mode.states not in [other.states for other in found]:
                found.append(mode)
    return tuple(found)

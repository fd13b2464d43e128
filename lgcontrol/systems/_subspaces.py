"""Scaled matrices; subspaces that inputs reach and outputs show."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy

from ..codegen._internal import interruptible
from ._signals import InputChoice

# Entries this small next to the largest ones of their row and column are what rounding left of a
# zero: they must not decide units.
SCALING_NOISE = 1e-14

# The same next to the largest entry, once units are those of the states' own loops.
DUST = 1e-12

# Uncertainty of the entries of A, next to its norm in good units: some rounding errors each.
SCALING_ROUNDING = 1e3 * float(np.finfo(float).eps)

# Damping below this, next to the size of an eigenvalue, is less than a trim point is exact.
SCALING_DAMPING = 1e-9
LARGE_IN_MODE = 0.2  # share in a mode, next to the largest one, from which on a state is named
SHOWN_MODES = 6  # modes in the printed summary


def balancing_units(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Units of the states in which rows and columns of ``[A B]`` are about equal in length.

    Pressures in Pa next to positions in m make entries of 1e10 and 1e-5 that say nothing about
    strengths. In these units, ``z = ε / units``, sizes can be compared.

    States that feed back on each other get their units from these loops alone, however far apart
    they are. A chain has no such units, and its sources are followed only over three decades.
    Balancing would push the states of a chain of integrators arbitrarily far apart.
    """
    size = np.abs(A)
    largest = np.maximum(size.max(axis=1, initial=0.0)[:, None], size.max(axis=0, initial=0.0))
    loops = _balance(np.where(size > SCALING_NOISE * largest, A, 0.0))
    A, B = balanced(A, loops), B / loops[:, None]
    n, size = len(A), np.abs(A).max(initial=0.0)
    length = np.abs(B).max(axis=0, initial=0.0)
    matrix = np.zeros((n + B.shape[1],) * 2)
    matrix[:n, :n] = np.where(np.abs(A) > DUST * size, A, 0.0)
    matrix[:n, n:] = np.where(np.abs(B) > DUST * length, B, 0.0) / np.where(length, length, 1.0)
    matrix[:n, n:] *= size or 1.0
    return loops * np.clip(_balance(matrix)[:n], 1e-3, 1e3)


def balanced(A: np.ndarray, units: np.ndarray) -> np.ndarray:
    """A in other units of the states."""
    return A * units / units[:, None]


def _balance(matrix: np.ndarray) -> np.ndarray:
    if not matrix.size:
        return np.ones(len(matrix))
    _, (units, _) = scipy.linalg.matrix_balance(matrix, permute=False, separate=True)
    return units


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues and how far rounding may have moved each.

    Right eigenvectors are in columns.
    """

    values: np.ndarray
    vectors: np.ndarray
    error: np.ndarray

    def growth(self, *, is_discrete: bool) -> np.ndarray:
        """Sign of the growth of each mode: -1 dies out, 1 grows, 0 if that cannot be told."""
        rate = np.abs(self.values) - 1 if is_discrete else np.real(self.values)
        unclear = np.abs(rate) <= np.maximum(self.error, SCALING_DAMPING * np.abs(self.values))
        return np.where(unclear, 0, np.sign(rate)).astype(int)


def spectrum(A: np.ndarray, size: float | None = None) -> Spectrum:
    """Eigenvalues of a balanced matrix with bounds on their errors.

    An eigenvalue moves by the perturbation times its condition number. If m eigenvalues coincide,
    one moves by no more than about the m-th root of the relative perturbation. Rounding errors of A
    are proportional to `size`, or to its own norm.

    References
    ----------
    Golub, Van Loan: Matrix Computations, sections 7.2.2 and 7.2.3.
    """
    if not A.size:
        return Spectrum(np.zeros(0, complex), np.zeros((0, 0), complex), np.zeros(0))
    size = float(np.linalg.norm(A, 2)) if size is None else size
    values, left, right = scipy.linalg.eig(A, left=True, right=True)  # type: ignore  # SciPy states too few results
    overlap = np.abs((left.conj() * right).sum(axis=0))  # of vectors of length one
    with np.errstate(divide="ignore"):
        simple = SCALING_ROUNDING * size / overlap
    multiple = np.full(len(A), np.inf)
    apart = np.abs(values[:, None] - values)
    for m in range(2, len(A) + 1):
        radius = size * SCALING_ROUNDING ** (1 / m)
        multiple[(apart <= radius).sum(axis=1) >= m] = radius
    return Spectrum(values, right, np.minimum(simple, multiple))


class LinearModel(Protocol):
    """What of a `Linearization` decides what is reached and shown."""

    @property
    def A(self) -> np.ndarray:
        """Of the error states."""
        ...

    @property
    def B(self) -> np.ndarray:
        """Of the inputs."""
        ...

    @property
    def C(self) -> np.ndarray:
        """Of the outputs."""
        ...

    @property
    def dt(self) -> float:
        """Sample time, 0 for continuous models."""
        ...

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the error states."""
        ...

    def with_inputs(self, inputs: InputChoice, /) -> LinearModel:
        """The same with some inputs only."""
        ...


@dataclass(frozen=True, eq=False)
class Mode:
    """A motion that inputs do not reach, or outputs do not show.

    Attributes
    ----------
    eigenvalue : complex
    direction : ndarray, shape (n,)
        Uncontrollable: the combination ``directionᴴ ε`` of error states that evolves by itself.
        Unobservable: the error states that move together unseen.
    states : tuple of str
        Error states with a large share in it, the largest first.
    is_stable : bool
        Whether it clearly dies out by itself, rounding considered.
    is_growing : bool
        Whether it clearly grows.
    """

    eigenvalue: complex
    direction: np.ndarray
    states: tuple[str, ...]
    is_stable: bool
    is_growing: bool

    @property
    def behaviour(self) -> str:
        """Eigenvalue, and whether it dies out, in words."""
        verdict = "stable" if self.is_stable else "not stable"
        value = self.eigenvalue
        number = f"{value.real:.4g}" if value.imag == 0 else f"{value:.4g}"
        return f"eigenvalue {number}, {verdict}"

    def __str__(self) -> str:
        """Eigenvalue and states."""
        return f"{', '.join(self.states)} ({self.behaviour})"


def modes_told(modes: Iterable[Mode]) -> str:
    """Modes in words: the states of all that share an eigenvalue once, the first named first."""
    told: dict[str, dict[str, None]] = {}
    for mode in modes:
        told.setdefault(mode.behaviour, {}).update(dict.fromkeys(mode.states))
    return "; ".join(f"{', '.join(states)} ({how})" for how, states in told.items())


@dataclass(frozen=True, eq=False)
class Controllability:
    """What inputs reach.

    Attributes
    ----------
    rank, size : int
        Dimensions of the controllable subspace and of the state.
    uncontrollable : tuple of Mode
    states : tuple of str
        Error states with a share in what inputs do not reach.
    basis : ndarray, shape (n, rank)
        Orthonormal columns that span the controllable subspace.
    """

    rank: int
    size: int
    uncontrollable: tuple[Mode, ...]
    states: tuple[str, ...]
    basis: np.ndarray

    @property
    def is_controllable(self) -> bool:
        """Whether inputs reach every error state."""
        return self.rank == self.size

    @property
    def is_stabilizable(self) -> bool:
        """Whether what inputs do not reach dies out by itself."""
        return all(mode.is_stable for mode in self.uncontrollable)

    def __str__(self) -> str:
        """Rank and uncontrollable modes."""
        return _summary("controllable", self, self.uncontrollable)


@dataclass(frozen=True, eq=False)
class Observability:
    """What outputs show.

    Attributes
    ----------
    rank, size : int
        Dimension of the state less that of the unobservable subspace, dimension of the state.
    unobservable : tuple of Mode
    states : tuple of str
        Error states with a share in what outputs do not show.
    basis : ndarray, shape (n, size - rank)
        Orthonormal columns that span the unobservable subspace.
    """

    rank: int
    size: int
    unobservable: tuple[Mode, ...]
    states: tuple[str, ...]
    basis: np.ndarray

    @property
    def is_observable(self) -> bool:
        """Whether outputs show every error state."""
        return self.rank == self.size

    @property
    def is_detectable(self) -> bool:
        """Whether what outputs do not show dies out by itself."""
        return all(mode.is_stable for mode in self.unobservable)

    def __str__(self) -> str:
        """Rank and unobservable modes."""
        return _summary("observable", self, self.unobservable)


@interruptible
def controllability(
    linearization: LinearModel, inputs: InputChoice = "control", tolerance: float = 1e-9
) -> Controllability:
    """Find the error states that inputs reach, and name the modes they do not.

    The controllable subspace is built direction by direction: an orthogonal staircase, with A
    balanced and the columns of B of equal length. Units do not matter, and no powers of A are
    taken. At a motion of kind "none" the answer holds for A and B frozen.

    Parameters
    ----------
    inputs : {"control", "measured", "disturbance", "noise", "all"}
    tolerance : float
        A new direction counts when it is longer than this next to the size of the balanced A.

    References
    ----------
    Van Dooren 1981, The generalized eigenstructure problem in linear system theory.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> two = System("two carts", Rn(2, ("left", "right")), lambda t, x, u, p: [u - x[0], x[1]],
    ...              inputs=["force"])
    >>> print(two.linearize([0.0, 0.0]).controllability())
    1 of 2 error states controllable; not controllable in right: right (eigenvalue 1, not stable)
    """
    chosen = linearization.with_inputs(inputs)
    inside, outside, scale, A = _reached(linearization.A, chosen.B, tolerance)
    size = len(A)
    modes = []
    if outside.shape[1]:
        # Of wᴴ z with z = ε / scale: left vectors transform with the inverse.
        found = _spectrum((outside.T @ A @ outside).T, A)
        modes = _modes(linearization, found, (outside @ found.vectors).conj(), 1 / scale)
    basis = np.linalg.qr(scale[:, None] * inside)[0] if inside.shape[1] else inside
    states = _shares(linearization, outside)
    return Controllability(inside.shape[1], size, tuple(modes), states, basis)


@interruptible
def observability(linearization: LinearModel, tolerance: float = 1e-9) -> Observability:
    """Find the error states that outputs show, and name the modes they do not.

    Computed as the controllability of the dual; see `controllability`.

    Parameters
    ----------
    tolerance : float
        See `controllability`.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", Rn(2, ("place", "speed")), lambda t, x, u, p: [x[1], -x[1]],
    ...               h=lambda t, x, u, p: x[1], output=Rn(1))
    >>> print(cart.linearize([0.0, 0.0]).observability())
    1 of 2 error states observable; not observable in place: place (eigenvalue 0, not stable)
    """
    shown, hidden, scale, A = _reached(linearization.A.T, linearization.C.T, tolerance)
    size = len(A)
    modes = []
    if hidden.shape[1]:
        found = _spectrum(hidden.T @ A.T @ hidden, A)
        modes = _modes(linearization, found, hidden @ found.vectors, 1 / scale)
    basis = np.linalg.qr(hidden / scale[:, None])[0] if hidden.shape[1] else hidden
    states = _shares(linearization, hidden)
    return Observability(shown.shape[1], size, tuple(modes), states, basis)


def is_stabilizable_when_sampled(A: np.ndarray, B: np.ndarray, tolerance: float = 1e-9) -> bool:
    """Whether what B does not reach dies out in ``ε⁺ = A ε + B δu``.

    Sampled at a multiple of its half period, an oscillation is out of reach of its input. A
    singular value below the tolerance times the largest is zero.
    """
    _, outside, _, A = _reached(A, B, tolerance)
    left = _spectrum(outside.T @ A @ outside, A).growth(is_discrete=True)
    return bool((left < 0).all())


def _reached(
    A: np.ndarray, B: np.ndarray, tolerance: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Orthonormal bases of what B reaches and does not, in coordinates ``z = ε / scale``.

    Also the scale, and A in those coordinates.
    """
    scale = balancing_units(A, B)
    A = balanced(A, scale)
    B = B / scale[:, None]
    length = np.linalg.norm(B, axis=0)
    B = B[:, length > 0] / length[length > 0]
    size = np.linalg.norm(A, 2) if len(A) else 0.0
    inside = np.zeros((len(A), 0))
    new = _directions(B, inside, tolerance)
    while new.shape[1]:
        inside = np.hstack([inside, new])
        new = _directions(A @ new, inside, tolerance * float(size))
    outside = scipy.linalg.null_space(inside.T) if inside.shape[1] else np.eye(len(A))
    return inside, outside, scale, A


def _directions(vectors: np.ndarray, inside: np.ndarray, threshold: float) -> np.ndarray:
    """Orthonormal directions of vectors that are not inside yet."""
    for _ in range(2):  # once more, for what rounding left
        vectors = vectors - inside @ (inside.T @ vectors)
    if not vectors.size:
        return np.zeros((len(inside), 0))
    U, s, _ = np.linalg.svd(vectors, full_matrices=False)
    return U[:, s > max(threshold, np.finfo(float).tiny)]


def _spectrum(part: np.ndarray, A: np.ndarray) -> Spectrum:
    """Eigenvalues of a part of A, which has the rounding errors of all of it."""
    return spectrum(part, float(np.linalg.norm(A, 2)))


def _modes(
    linearization: LinearModel, found: Spectrum, vectors: np.ndarray, scale: np.ndarray
) -> list[Mode]:
    growth = found.growth(is_discrete=bool(linearization.dt))
    dust = DUST * np.abs(found.values).max(initial=0.0) + found.error
    return [
        _mode(linearization, value, vector, scale, small, sign)
        for value, vector, small, sign in zip(found.values, vectors.T, dust, growth, strict=True)
    ]


def _mode(
    linearization: LinearModel,
    value: complex,
    vector: np.ndarray,
    scale: np.ndarray,
    small: float,
    growth: int,
) -> Mode:
    share = np.abs(vector)
    large = [
        int(i) for i in np.argsort(-share, kind="stable") if share[i] > LARGE_IN_MODE * share.max()
    ]
    real, imaginary = (
        0.0 if abs(part) <= small else float(part) for part in (value.real, value.imag)
    )
    direction: Any = vector * scale
    if np.abs(direction.imag).max() <= DUST * np.abs(direction).max():
        direction = direction.real
    names = linearization.state_names
    return Mode(
        complex(real, imaginary),
        direction / np.linalg.norm(direction),
        tuple(names[i] for i in large),
        bool(growth < 0),
        bool(growth > 0),
    )


def _shares(linearization: LinearModel, basis: np.ndarray) -> tuple[str, ...]:
    """Error states of which the subspace of an orthonormal basis holds a large part."""
    share = np.linalg.norm(basis, axis=1)
    large = share > LARGE_IN_MODE * share.max(initial=0.0)
    return tuple(
        name for name, is_large in zip(linearization.state_names, large, strict=True) if is_large
    )


def _summary(word: str, report: Controllability | Observability, modes: tuple[Mode, ...]) -> str:
    text = f"{report.rank} of {report.size} error states {word}"
    if modes:
        text += f"; not {word} in {', '.join(report.states)}: "
        text += modes_told(modes[:SHOWN_MODES])
        if len(modes) > SHOWN_MODES:
            text += f"; {len(modes) - SHOWN_MODES} more"
    return text

"""check_group: the axioms of a Lie group, tested numerically."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import expm

from ._base import LieGroup


def check_group(
    group: LieGroup, *, samples: int = 20, seed: int = 0, tolerance: float = 1e-9
) -> dict[str, float]:
    """Largest violation of each axiom of a Lie group, over random elements.

    Parameters
    ----------
    group : LieGroup
        The group; a user's own, for example.
    samples : int
        Number of random elements.
    seed : int
        Seed of the random numbers.
    tolerance : float
        Largest violation that passes.

    Returns
    -------
    dict of str to float
        Violation of each axiom, by name.

    Raises
    ------
    ValueError
        If an axiom is violated by more than the tolerance; the message lists all that are.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> max(check_group(SE3).values()) < 1e-9
    True
    """
    rng = np.random.default_rng(seed)
    X, Y, Z = (group.random(rng, (samples,)) for _ in range(3))
    d, e = (rng.uniform(-0.5, 0.5, size=(samples, group.dim)) for _ in range(2))
    violations = {name: axiom(group, X, Y, Z, d, e) for name, axiom in _AXIOMS.items()}
    failed = {name: size for name, size in violations.items() if not size <= tolerance}
    if failed:
        lines = "; ".join(f"{name} is off by {size:.2g}" for name, size in failed.items())
        raise ValueError(f"{group.name} is not a consistent Lie group: {lines}")
    return violations


def _off(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))


def _same(G: LieGroup, X: np.ndarray, Y: np.ndarray) -> float:
    """Distance of two sets of elements as matrices: blind to a quaternion's sign."""
    return _off(G.matrix(X), G.matrix(Y))


def _hashes(G: LieGroup) -> float:
    return 0.0 if G == G and hash(G) == hash(G) else np.inf


def _difference(G: LieGroup, d: np.ndarray) -> np.ndarray:
    """Right Jacobian by central differences of the exponential."""
    h, X = 1e-5, G.exp(d)
    columns = [
        (G.minus(G.exp(d + h * step), X) - G.minus(G.exp(d - h * step), X)) / (2 * h)
        for step in np.eye(G.dim)
    ]
    return np.stack(columns, axis=-1) if columns else np.zeros((*d.shape, 0))


_Axiom = Callable[[LieGroup, np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray], float]

_AXIOMS: dict[str, _Axiom] = {
    "equality and hash": lambda G, X, Y, Z, d, e: _hashes(G),
    "X 1 = X": lambda G, X, Y, Z, d, e: _same(G, G.compose(X, G.identity), X),
    "X X⁻¹ = 1": lambda G, X, Y, Z, d, e: _same(
        G, G.compose(X, G.inverse(X)), np.broadcast_to(G.identity, X.shape)
    ),
    "(X Y) Z = X (Y Z)": lambda G, X, Y, Z, d, e: _same(
        G, G.compose(G.compose(X, Y), Z), G.compose(X, G.compose(Y, Z))
    ),
    "matrix(X Y) = matrix(X) matrix(Y)": lambda G, X, Y, Z, d, e: _off(
        G.matrix(G.compose(X, Y)), G.matrix(X) @ G.matrix(Y)
    ),
    "from_matrix(matrix(X)) = X": lambda G, X, Y, Z, d, e: _same(G, G.from_matrix(G.matrix(X)), X),
    "vee(hat(d)) = d": lambda G, X, Y, Z, d, e: _off(G.vee(G.hat(d)), d),
    "matrix(exp(d)) = expm(hat(d))": lambda G, X, Y, Z, d, e: _off(
        G.matrix(G.exp(d)), np.array([expm(m) for m in G.hat(d)])
    ),
    "log(exp(d)) = d": lambda G, X, Y, Z, d, e: _off(G.log(G.exp(d)), d),
    "plus(Y, minus(X, Y)) = X": lambda G, X, Y, Z, d, e: _same(G, G.plus(Y, G.minus(X, Y)), X),
    "X d^ X⁻¹ = (Ad d)^": lambda G, X, Y, Z, d, e: _off(
        G.matrix(X) @ G.hat(d) @ G.matrix(G.inverse(X)),
        G.hat(np.einsum("...ij,...j->...i", G.Ad(X), d)),
    ),
    "(ad(d) e)^ = d^ e^ − e^ d^": lambda G, X, Y, Z, d, e: _off(
        G.hat(np.einsum("...ij,...j->...i", G.ad(d), e)),
        G.hat(d) @ G.hat(e) - G.hat(e) @ G.hat(d),
    ),
    # central differences with step 1e-5 are good to about 1e-10
    "right Jacobian": lambda G, X, Y, Z, d, e: _off(G.right_jacobian(d), _difference(G, d)),
    "J_l(d) = J_r(−d)": lambda G, X, Y, Z, d, e: _off(G.left_jacobian(d), G.right_jacobian(-d)),
    "J_l = Ad(exp d) J_r": lambda G, X, Y, Z, d, e: _off(
        G.left_jacobian(d), G.Ad(G.exp(d)) @ G.right_jacobian(d)
    ),
    "J_r⁻¹ J_r = 1": lambda G, X, Y, Z, d, e: _off(
        G.right_jacobian_inverse(d) @ G.right_jacobian(d),
        np.broadcast_to(np.eye(G.dim), (len(d), G.dim, G.dim)),
    ),
}

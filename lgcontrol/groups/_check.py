"""check_group: the axioms of a Lie group, tested numerically."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import casadi as ca
import numpy as np
import scipy

from ..codegen import named_options
from ._base import LieGroup
from ._se3 import SE3


@named_options
def check_group(
    group: LieGroup, *, samples: int = 20, seed: int = 0, tolerance: float = 1e-9
) -> dict[str, float]:
    """Largest violation of each axiom of a Lie group, over random elements.

    Tangent vectors are uniform, near zero and exactly zero; derivatives by automatic
    differentiation are taken exactly at the identity.

    Parameters
    ----------
    group : LieGroup
        The group; a user's own, for example.
    samples : int
        Number of random elements, at least 3.
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
    d[0], d[1] = 0.0, 1e-9 * d[1]
    drawn = _Elements(X, Y, Z, d, e)
    violations = {name: axiom(group, drawn) for name, axiom in AXIOMS.items()}
    failed = {name: size for name, size in violations.items() if not size <= tolerance}
    if failed:
        lines = "; ".join(f"{name} is off by {size:.2g}" for name, size in failed.items())
        raise ValueError(f"{group.name} is not a consistent Lie group: {lines}")
    return violations


class _Elements(NamedTuple):
    """Elements X, Y, Z and tangent vectors d, e, one a row."""

    X: np.ndarray
    Y: np.ndarray
    Z: np.ndarray
    d: np.ndarray
    e: np.ndarray


def _off(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(np.asarray(a) - np.asarray(b)).max(initial=0.0))


def _same(G: LieGroup, X: np.ndarray, Y: np.ndarray) -> float:
    """Distance of two sets of elements as matrices: blind to a quaternion's sign."""
    return _off(G.matrix(X), G.matrix(Y))


def _times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", matrices, vectors)


def _equality(G: LieGroup) -> float:
    """Zero if a copy is the same group; caches and comparisons of models rely on it."""
    twin = copy.deepcopy(G)
    return 0.0 if twin == G and hash(twin) == hash(G) else np.inf


def _lengths(G: LieGroup) -> float:
    coordinates = (G.identity, G.coordinate_names, G.coordinate_units)
    tangent = (G.tangent_names, G.tangent_units)
    fits = all(len(c) == G.nq for c in coordinates) and all(len(c) == G.dim for c in tangent)
    return 0.0 if fits else np.inf


def _commutes(G: LieGroup, s: _Elements) -> float:
    return _same(G, G.compose(s.X, s.Y), G.compose(s.Y, s.X)) if G.is_commutative else 0.0


def _action(G: LieGroup, s: _Elements) -> float:
    point = np.linspace(-1.0, 2.0, G.point_size)
    try:
        return _off(G.act(G.compose(s.X, s.Y), point), G.act(s.X, G.act(s.Y, point)))
    except TypeError:  # a group without an action, or a product with such a block
        return 0.0


def _embedding(G: LieGroup, s: _Elements) -> float:
    try:
        H = G.selection
    except TypeError:
        return 0.0
    X = G.exp(s.d)
    twists = SE3.matrix(SE3.exp(s.d @ H.T))
    return max(_off(G.homogeneous(X), twists), _off(SE3.matrix(G.embed(X)), twists))


def _right_jacobian_by_difference(G: LieGroup, d: np.ndarray) -> np.ndarray:
    """Right Jacobian by central differences of the exponential, good to about 1e-10."""
    h, X = 1e-5, G.exp(d)
    columns = [
        (G.minus(G.exp(d + h * step), X) - G.minus(G.exp(d - h * step), X)) / (2 * h)
        for step in np.eye(G.dim)
    ]
    return np.stack(columns, axis=-1) if columns else np.zeros((*d.shape, 0))


def _at_zero(expression: ca.SX, d: ca.SX) -> np.ndarray:
    function = ca.Function("at_zero", [d], [ca.densify(expression)], ["d"], ["value"])
    return np.asarray(function(np.zeros(d.numel())))


def _log_derivatives(G: LieGroup) -> float:
    """Violation of ``log(exp(d)) = d`` in the first and second derivative at the identity."""
    d = ca.SX.sym("d", G.dim)
    first = ca.jacobian(G.log(G.exp(d)), d)
    second = ca.jacobian(ca.vec(first), d)
    return max(
        _off(_at_zero(first, d), np.eye(G.dim)), float(np.abs(_at_zero(second, d)).max(initial=0.0))
    )


def _jacobian_derivative(G: LieGroup) -> float:
    """Violation of ``J_r(d) = 1 − ad(d)/2 + …`` in the derivative at the identity."""
    d = ca.SX.sym("d", G.dim)
    rate = _at_zero(ca.jacobian(ca.vec(ca.densify(G.right_jacobian(d))), d), d)
    brackets = [G.ad(step).ravel(order="F") for step in np.eye(G.dim)]
    return _off(rate, -np.stack(brackets, axis=-1) / 2 if brackets else rate)


AXIOMS: dict[str, Callable[[LieGroup, _Elements], float]] = {
    "equality and hash": lambda G, s: _equality(G),
    "names and lengths": lambda G, s: _lengths(G),
    "X 1 = X": lambda G, s: _same(G, G.compose(s.X, G.identity), s.X),
    "X X⁻¹ = 1": lambda G, s: _same(
        G, G.compose(s.X, G.inverse(s.X)), np.broadcast_to(G.identity, s.X.shape)
    ),
    "(X Y) Z = X (Y Z)": lambda G, s: _same(
        G, G.compose(G.compose(s.X, s.Y), s.Z), G.compose(s.X, G.compose(s.Y, s.Z))
    ),
    "X Y = Y X if is_commutative": _commutes,
    "normalize(X) = X": lambda G, s: _off(G.normalize(s.X), s.X),
    "matrix(X Y) = matrix(X) matrix(Y)": lambda G, s: _off(
        G.matrix(G.compose(s.X, s.Y)), G.matrix(s.X) @ G.matrix(s.Y)
    ),
    "from_matrix(matrix(X)) = X": lambda G, s: _same(
        G, G.function("from_matrix")(G.matrix(s.X)), s.X
    ),
    "vee(hat(d)) = d": lambda G, s: _off(G.vee(G.hat(s.d)), s.d),
    "matrix(exp(d)) = expm(hat(d))": lambda G, s: _off(
        G.matrix(G.exp(s.d)), np.array([scipy.linalg.expm(m) for m in G.hat(s.d)])
    ),
    "log(exp(d)) = d": lambda G, s: _off(G.log(G.exp(s.d)), s.d),
    "log(exp(d)) = d, derivatives at 0": lambda G, s: _log_derivatives(G),
    "plus(Y, minus(X, Y)) = X": lambda G, s: _same(G, G.plus(s.Y, G.minus(s.X, s.Y)), s.X),
    "interpolate(X, Y, 1) = Y": lambda G, s: _same(G, G.interpolate(s.X, s.Y, 1.0), s.Y),
    "(X Y) p = X (Y p)": _action,
    "X d^ X⁻¹ = (Ad d)^": lambda G, s: _off(
        G.matrix(s.X) @ G.hat(s.d) @ G.matrix(G.inverse(s.X)), G.hat(_times(G.Ad(s.X), s.d))
    ),
    "(ad(d) e)^ = d^ e^ − e^ d^": lambda G, s: _off(
        G.hat(_times(G.ad(s.d), s.e)), G.hat(s.d) @ G.hat(s.e) - G.hat(s.e) @ G.hat(s.d)
    ),
    "right Jacobian": lambda G, s: _off(
        G.right_jacobian(s.d), _right_jacobian_by_difference(G, s.d)
    ),
    "J_r = 1 − ad/2 + …, derivative at 0": lambda G, s: _jacobian_derivative(G),
    "J_l(d) = J_r(−d)": lambda G, s: _off(G.left_jacobian(s.d), G.right_jacobian(-s.d)),
    "J_l = Ad(exp d) J_r": lambda G, s: _off(
        G.left_jacobian(s.d), G.Ad(G.exp(s.d)) @ G.right_jacobian(s.d)
    ),
    "J_r⁻¹ J_r = 1": lambda G, s: _off(
        G.right_jacobian_inverse(s.d) @ G.right_jacobian(s.d), np.eye(G.dim)
    ),
    "J_l⁻¹ J_l = 1": lambda G, s: _off(
        G.left_jacobian_inverse(s.d) @ G.left_jacobian(s.d), np.eye(G.dim)
    ),
    "v = F E v": lambda G, s: _off(G.tangent_matrix(s.X) @ G.rate_matrix(s.X), np.eye(G.dim)),
    "homogeneous(exp(d)) = exp(H d) on SE(3)": _embedding,
}

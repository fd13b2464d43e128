"""Groups under test and samples of their tangent vectors: a new group is one entry."""

import numpy as np

from lgcontrol.groups import (
    SE2,
    SE3,
    SE23,
    SEK2,
    SEK3,
    SO2,
    SO3,
    Cylindrical,
    Helical,
    LieGroup,
    PlanarHelical,
    Product,
    Rn,
    Schoenflies,
    Translation,
)

SKEW_AXIS = (1.0, 2.0, -3.0)

GROUPS: tuple[LieGroup, ...] = (
    SO3,
    SE3,
    *(group for G in (SO2, SE2, Schoenflies, Cylindrical) for group in (G, G.about(SKEW_AXIS))),
    SE2.about((1, 0, 0)),
    SE2.about((0, -1, 0)),
    Translation("xyz"),
    Translation("xz"),
    Translation("z").about(SKEW_AXIS),
    Helical(0.3),
    Helical(0.0),
    Helical(-0.2, SKEW_AXIS),
    PlanarHelical(0.2),
    PlanarHelical(0.0),
    PlanarHelical(-0.1, SKEW_AXIS),
    SE23,
    SEK3(1),
    SEK3(3),
    SEK2(1),
    SEK2(3),
    Rn(3),
    Rn(0),
    Product(pose=SE3, twist=Rn(6)),
    Product(Product(SO3, arm=SE2.about(SKEW_AXIS)), wheel=SO2, load=Schoenflies),
)

USUAL: tuple[LieGroup, ...] = (
    SO3,
    SE3,
    SO2.about(SKEW_AXIS),
    SE2,
    Schoenflies.about(SKEW_AXIS),
    Helical(0.3),
    PlanarHelical(-0.1, SKEW_AXIS),
    SE23,
    Rn(3),
    Rn(0),
    Product(Product(SO3, arm=SE2.about(SKEW_AXIS)), wheel=SO2, load=Schoenflies),
)
"""Groups that tests run by default: one of each kind, about an axis of a frame or a skew one."""

MOTIONS = tuple(G for G in GROUPS if not isinstance(G, Product | Rn | SEK2 | SEK3))
"""Groups of motions of one body: those inside SE(3)."""


def name_of(group: LieGroup) -> str:
    return group.name


def tangents(group: LieGroup, rng: np.random.Generator, angle: float, count: int) -> np.ndarray:
    """Tangent vectors with linear parts of order one and rotations by an angle, one a row."""
    if isinstance(group, Product):
        parts = [tangents(block, rng, angle, count) for block in group.blocks.values()]
        return np.concatenate(parts, axis=-1)
    d = rng.normal(size=(count, group.dim))
    turns = [i for i, unit in enumerate(group.tangent_units) if unit == "rad"]
    if turns:
        d[:, turns] *= angle / np.linalg.norm(d[:, turns], axis=-1, keepdims=True)
    return d


SMALL = (1e-3, 1e-5, 1e-7, 1e-9, 1e-11, 1e-12)

# Kind -> rotation angles; "near zero" also shrinks the linear parts.
ANGLES = {
    "uniform": tuple(np.linspace(0.3, 2.9, 7)),
    "small turns": SMALL,
    "near zero": SMALL,
    "zero": (0.0,),
    "near π": tuple(np.pi - np.array(SMALL)),
    "π": (np.pi,),
    "fast spin": (3.5, 5.0, 20.0, 100.0),
}

KINDS = tuple(ANGLES)

USUAL_KINDS = ("uniform", "small turns", "zero", "near π", "fast spin")
"""Kinds that tests run by default: "near zero" is easier than "small turns", "π" than near it."""


def samples(group: LieGroup, kind: str, seed: int = 0) -> np.ndarray:
    """Tangent vectors of a kind, shape (n, dim)."""
    rng = np.random.default_rng(seed)
    if kind == "zero":
        return np.zeros((1, group.dim))
    rows = []
    for angle in ANGLES[kind]:
        d = tangents(group, rng, angle, 2)
        rows.append(d * angle if kind == "near zero" else d)
    return np.concatenate(rows)


def elements(group: LieGroup, kind: str, seed: int = 0) -> np.ndarray:
    """Elements of a kind with both signs of every quaternion, shape (n, nq)."""
    X = group.exp(samples(group, kind, seed))
    flips = [flip_quaternions(group, X), X]
    return np.concatenate(flips)


def flip_quaternions(group: LieGroup, X: np.ndarray) -> np.ndarray:
    """The same elements with the other sign of their quaternions."""
    if isinstance(group, Product):
        parts = group.split(X)
        return group.join(
            **{name: flip_quaternions(block, parts[name]) for name, block in group.blocks.items()}
        )
    quaternion = [i for i, name in enumerate(group.coordinate_names) if name.startswith("q")]
    flipped = X.copy()
    flipped[..., quaternion] *= -1.0
    return flipped


def times(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return np.einsum("...ij,...j->...i", matrices, vectors)

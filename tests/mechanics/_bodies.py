"""Groups, inertias and velocities for the tests of single bodies: a new group is one entry."""

import numpy as np

from lgcontrol.groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    Cylindrical,
    Helical,
    LieGroup,
    PlanarHelical,
    Schoenflies,
    Translation,
)
from lgcontrol.mechanics import RigidBody, SpatialInertia

AXIS = (1.0, 2.0, -3.0)

GROUPS: tuple[LieGroup, ...] = (
    SE3,
    SO3,
    *(group for G in (SE2, Schoenflies, Cylindrical, SO2) for group in (G, G.about(AXIS))),
    SE2.about((0, 1, 0)),
    Translation("xyz"),
    Translation("xy"),
    Translation("x"),
    Translation("xz", AXIS),
    Helical(0.35),
    Helical(-0.2, AXIS),
    PlanarHelical(0.2),
    PlanarHelical(-0.1, AXIS),
)
"""All connected subgroups of SE(3), some about odd axes."""

USUAL: tuple[LieGroup, ...] = (
    SE3,
    SO3,
    *(G.about(AXIS) for G in (SE2, Schoenflies)),
    Translation("xy"),
    Helical(0.35),
)
"""Groups that tests run by default: one of each kind."""

NONCOMMUTATIVE = tuple(group for group in GROUPS if not group.is_commutative)


def name_of(group: LieGroup) -> str:
    return group.name


def random_inertia(rng: np.random.Generator) -> SpatialInertia:
    """Inertia of a random cloud of points, so that it is one: the definition, not a formula."""
    masses, points = random_cloud(rng)
    return inertia_of_cloud(masses, points)


def random_cloud(rng: np.random.Generator, count: int = 8) -> tuple[np.ndarray, np.ndarray]:
    """Masses (n,) and positions (n, 3) of points, their centre off the origin."""
    return rng.uniform(0.2, 1.0, count), rng.normal(size=(count, 3)) + [0.3, -0.2, 0.5]


def inertia_of_cloud(masses: np.ndarray, points: np.ndarray) -> SpatialInertia:
    center = masses @ points / masses.sum()
    arms = points - center
    squares = np.einsum("n,ni,nj->ij", masses, arms, arms)
    return SpatialInertia(masses.sum(), center, np.trace(squares) * np.eye(3) - squares)


def random_matrix(rng: np.random.Generator, size: int) -> np.ndarray:
    """Symmetric positive definite matrix of no particular form."""
    A = rng.normal(size=(size, size))
    return A @ A.T + 0.5 * np.eye(size)


def body_of(group: LieGroup, M: np.ndarray, *forces) -> RigidBody:
    """Body whose generalized inertia is a given matrix."""
    nothing = SpatialInertia(0.0, np.zeros(3), np.zeros((3, 3)))
    return RigidBody("body", group, nothing, forces, added_mass=M)

"""A second formulation: the recursions of multibody trees for the same bodies."""

import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.mechanics import (
    Gravity,
    GyroscopicWheels,
    Gyrostat,
    Multibody,
    RigidBody,
    SpatialInertia,
)

from ._bodies import AXIS, GROUPS, USUAL, name_of, random_inertia

pytestmark = pytest.mark.usually(group=USUAL)

ROUNDING = 1e-10  # some thousand roundings of numbers up to a hundred


def close(a, b):
    np.testing.assert_allclose(np.array(a), b, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("group", GROUPS, ids=name_of)
def test_a_body_is_a_tree_of_one_link(group, rng):
    inertia = random_inertia(rng)
    body = RigidBody("body", group, inertia, [Gravity()])
    tree = Multibody("tree").add_body("body", inertia, group)
    X = group.random(rng)
    v, a, tau = rng.normal(size=(3, group.dim))
    close(body.inverse_dynamics(X, v, a), tree.inverse_dynamics(X, v, a))
    close(body.forward_dynamics(X, v, tau), tree.forward_dynamics(X, v, tau))
    close(body.mass_matrix(X), tree.mass_matrix(X))
    close(body.gravity_forces(X), tree.gravity_forces(X))
    close(body.kinetic_energy(X, v), tree.kinetic_energy(X, v))
    close(body.potential_energy(X), tree.potential_energy(X))


def test_a_gyrostat_is_a_tree_with_revolute_wheels(rng):
    """Balanced wheels on the body, at whatever angles they stand."""
    base = random_inertia(rng)
    axes = np.array([[1.0, 0, 0], [0, 1.0, 0], AXIS])
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    places = rng.normal(size=(3, 3))
    discs = [SpatialInertia.cylinder(0.5, 0.3, 0.0, axis) for axis in axes]
    tree = Multibody("tree").add_body("base", base, SE3)
    whole = base
    for k, (axis, place, disc) in enumerate(zip(axes, places, discs, strict=True)):
        tree = tree.add_body(f"wheel{k}", disc, "revolute", "base", place, axis=axis)
        whole = whole + disc.transformed(SE3.from_position(place))
    spin = [axis @ disc.inertia @ axis for axis, disc in zip(axes, discs, strict=True)]
    gyrostat = Gyrostat(RigidBody("body", SE3, whole, [Gravity()]), GyroscopicWheels(axes, spin))
    X, angles = SE3.random(rng), rng.uniform(-3, 3, 3)
    V, speed, torque = rng.normal(size=6), *rng.normal(size=(2, 3))
    a, spin_up = gyrostat.forward_dynamics(X, V, speed, torque)
    q, v = np.concatenate([X, angles]), np.concatenate([V, speed])
    close([*a, *spin_up], tree.forward_dynamics(q, v, np.concatenate([np.zeros(6), torque])))
    close(gyrostat.kinetic_energy(V, speed), tree.kinetic_energy(q, v))

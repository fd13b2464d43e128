"""Energies, centres of mass and momenta differentiate twice by AD, at the identity too."""

import casadi as ca
import numpy as np
import pytest

from . import zoo

pytestmark = pytest.mark.usually(name=(*zoo.FEW, "free"))

DIFFERENCES = 1e-7  # central differences of exact gradients: steps of 1e-5, errors of h² and ε / h

SCALARS = {
    "kinetic_energy": lambda tree, q, v: tree.kinetic_energy(q, v),
    "potential_energy": lambda tree, q, v: tree.potential_energy(q),
    "center_of_mass": lambda tree, q, v: ca.dot(ca.DM([1, -2, 3]), tree.center_of_mass(q)),
    "centroidal_momentum": lambda tree, q, v: ca.dot(
        ca.DM([1, -2, 3, 2, -1, 4]), tree.centroidal_momentum(q, v)
    ),
    "placement": lambda tree, q, v: ca.dot(ca.DM(range(1, 8)), tree.placement(tree.bodies[-1])(q)),
    "power": lambda tree, q, v: ca.dot(v, tree.inverse_dynamics(q, v, 2 * v)),
}


def trees():
    rng = np.random.default_rng(5)
    return {
        **{kind: zoo.pair(kind, rng) for kind in zoo.JOINTS},
        "driven": zoo.driven(rng),
    }


TREES = trees()


@pytest.mark.parametrize("name", TREES)
def test_hessians(name, rng):
    tree = TREES[name]
    n = tree.nv
    x, at, v = ca.SX.sym("x", 2 * n), ca.SX.sym("at", tree.nq), ca.SX.sym("v", n)
    moved, speed = tree.configuration.plus(at, x[:n]), v + x[n:]
    values = ca.vertcat(*(f(tree, moved, speed) for f in SCALARS.values()))
    slopes = [ca.gradient(values[i], x) for i in range(len(SCALARS))]
    gradients = ca.Function("gradients", [at, v, x], [ca.densify(g) for g in slopes])
    hessians = ca.Function(
        "hessians",
        [at, v, x],
        [ca.densify(ca.hessian(value, x)[0]) for value in ca.vertsplit(values)],
    )
    for point in ((tree.configuration.identity, np.zeros(n)), zoo.state(tree, rng)[:2]):
        exact = [np.array(H) for H in hessians(*point, np.zeros(2 * n))]
        steps = 1e-5 * np.eye(2 * n)
        pairs = [(gradients(*point, d), gradients(*point, -d)) for d in steps]
        for i, key in enumerate(SCALARS):
            assert np.isfinite(exact[i]).all(), key
            columns = [(np.array(ahead[i]) - np.array(back[i])) / 2e-5 for ahead, back in pairs]
            difference = np.hstack(columns)
            scale = max(1.0, np.abs(difference).max())
            assert np.abs(exact[i] - difference).max() < DIFFERENCES * scale, key

"""Energies, centres of mass and momenta differentiate twice by AD, at the identity too."""

import casadi as ca
import numpy as np
import pytest

from . import zoo

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
@pytest.mark.parametrize("where", ("identity", "anywhere"))
def test_hessians(name, where, rng):
    tree = TREES[name]
    n = tree.nv
    q, v, *_ = zoo.state(tree, rng)
    if where == "identity":
        q, v = tree.configuration.identity, np.zeros(n)
    x, at = ca.SX.sym("x", 2 * n), ca.SX.sym("at", tree.nq)
    moved, speed = tree.configuration.plus(at, x[:n]), ca.DM(v) + x[n:]
    values = ca.vertcat(*(f(tree, moved, speed) for f in SCALARS.values()))
    slopes = [ca.gradient(values[i], x) for i in range(len(SCALARS))]
    gradients = ca.Function("gradients", [at, x], [ca.densify(g) for g in slopes])
    hessians = ca.Function(
        "hessians", [at, x], [ca.densify(ca.hessian(values[i], x)[0]) for i in range(len(SCALARS))]
    )
    exact = [np.array(H) for H in hessians(q, np.zeros(2 * n))]
    steps = 1e-5 * np.eye(2 * n)
    for i, key in enumerate(SCALARS):
        assert np.isfinite(exact[i]).all(), key
        columns = [
            (np.array(gradients(q, d)[i]) - np.array(gradients(q, -d)[i])) / 2e-5 for d in steps
        ]
        difference = np.hstack(columns)
        scale = max(1.0, np.abs(difference).max())
        assert np.abs(exact[i] - difference).max() < DIFFERENCES * scale, key

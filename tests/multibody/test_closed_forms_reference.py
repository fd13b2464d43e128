"""Closed forms against the independent reference numbers."""

import numpy as np
import pytest

from .reference import load, order, tree_of

pytestmark = pytest.mark.usually(model=("chain_Composite", "chain_HY"))

MODELS = ("chain_Composite", "chain_FreeFlyer", "chain_HY", "chain_Planar", "tree_A", "ur5")
ACCURACY = 5e-12  # the reference states about 1e-13; small entries carry the rounding of large ones
ACCURACY_OF_RATE = 2e-8  # Mdot of the reference is a finite difference (about 1e-9)


def error(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


@pytest.mark.parametrize("model", MODELS)
def test_closed_forms(model, shared):
    description, data = load(shared / "reference", model)
    tree = tree_of(description)
    iq, iv, ib = order(tree, description)
    q, v, a = (data[key][:, i] for key, i in (("q", iq), ("v", iv), ("a", iv)))
    square = np.ix_(range(len(q)), iv, iv)
    wrenches = data["fext"][:, 1:][:, ib]
    for reference in ("spatial", "hybrid"):
        tau = tree.inverse_dynamics_by_projection(reference)(q, v, a, wrenches)
        assert error(tau, data["rnea_fext"][:, iv]) < ACCURACY
    e = tree.lagrange_equations(q, v, wrenches)
    assert error(e.M, data["M"][square]) < ACCURACY
    assert error(np.einsum("nij,nj->ni", e.C, v), data["Cv"][:, iv]) < ACCURACY
    Gamma = tree.connection_coefficients(q)
    assert error(np.einsum("nijk,nj,nk->ni", Gamma, v, v), data["Cv"][:, iv]) < ACCURACY
    rate = np.einsum("nijk,nk->nij", tree.mass_matrix_derivatives(q), v)
    assert error(rate, data["Mdot"][square]) < ACCURACY_OF_RATE
    _, D, K, _ = tree.linearized_equations(q, v, a, wrenches)
    assert error(K, data["rnea_dq"][square]) < ACCURACY
    assert error(D, data["rnea_dv"][square]) < ACCURACY
    momenta = tree.body_momenta("spatial")(q, v).sum(axis=1)
    assert error(momenta[:, :3], data["hg"][:, :3]) < ACCURACY
    found, _ = tree.momentum_dynamics(q, tree.body_momenta()(q, v), data["tau"][:, iv])
    assert error(found, v) < 10 * ACCURACY

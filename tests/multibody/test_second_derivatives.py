"""Second derivatives against AD, differences, exact scalings and each other."""

import casadi as ca
import numpy as np
import pytest

from . import zoo
from .reference import load, order, tree_of
from .second_order import PAIRS, SORTS, TREES, ad_function, by_ad, close

pytestmark = pytest.mark.usually(kind=zoo.FEW, tree=zoo.FEW)

DIFFERENCES = 1e-8  # central differences of sixth order with steps of 1e-2


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]


@pytest.mark.usually(kind=("composite", "driven"))
def test_inverse_dynamics_against_ad(tree, rng):
    """Anywhere, and at rest at the identity, where quotients of the exponential vanish."""
    q, v, a, _, wrenches = zoo.state(tree, rng)

    def forces(*x):
        return tree.inverse_dynamics(*x, ca.DM(wrenches.T))

    exact, none = ad_function(tree, forces, 3, PAIRS), np.zeros(tree.nv)
    for values in ((q, v, a), (tree.configuration.identity, none, none)):
        ours = tree.inverse_dynamics_second_derivatives(*values, wrenches)
        for own, theirs in zip(ours, exact(*values), strict=True):
            assert np.isfinite(own).all()
            close(own, theirs)


@pytest.mark.usually(kind=("composite",))
@pytest.mark.parametrize("kind", SORTS)
def test_forward_dynamics_against_ad(kind, rng):
    """It follows from inverse dynamics, whatever the joints."""
    tree = TREES[kind]
    q, v, _, tau, wrenches = zoo.state(tree, rng)

    def accelerations(*x):
        return tree.forward_dynamics_by_factor(*x, ca.DM(wrenches.T))

    for ours, theirs in zip(
        tree.forward_dynamics_second_derivatives(q, v, tau, wrenches),
        by_ad(tree, accelerations, (q, v, tau), PAIRS),
        strict=True,
    ):
        close(ours, theirs)


def test_symmetries(tree, rng):
    q, v, a, tau, _ = zoo.state(tree, rng)
    for qq, _, vv, mass in (
        tree.inverse_dynamics_second_derivatives(q, v, a),
        tree.forward_dynamics_second_derivatives(q, v, tau),
    ):
        close(qq, qq.transpose(0, 2, 1))
        close(vv, vv.transpose(0, 2, 1))
        close(mass, mass.transpose(2, 1, 0))


def nested(tree, slopes, q, h=1e-2):
    """Derivative along k of first derivatives, by differences of sixth order: [i, j, k]."""
    columns = []
    for direction in np.eye(tree.nv):
        total = 0.0
        for step, weight in ((1, 45.0), (2, -9.0), (3, 1.0)):
            ahead = slopes(tree.configuration.plus(q, step * h * direction))
            behind = slopes(tree.configuration.plus(q, -step * h * direction))
            total = total + weight * (ahead - behind) / (60 * h)
        columns.append(total)
    return np.stack(columns, axis=-1)


@pytest.mark.usually(tree=("driven", "free"))
def test_derivatives_one_after_the_other_differ_by_half_a_bracket(tree, rng):
    q, v, a, _, wrenches = zoo.state(tree, rng)

    def slopes(x):
        return tree.inverse_dynamics_derivatives(x, v, a, wrenches).d_tau_d_q

    T = tree.inverse_dynamics_second_derivatives(q, v, a, wrenches).d2_tau_d_q2
    ad = np.stack([tree.configuration.ad(e) for e in np.eye(tree.nv)], axis=-1)  # [m, j, k]
    bracket = np.einsum("im,mjk->ijk", slopes(q), ad)
    close(T + bracket / 2, nested(tree, slopes, q), DIFFERENCES)
    if tree.name in ("spherical", "free"):
        assert np.abs(bracket).max() > 0.1  # the test would notice a bracket left out


def test_mass_matrix_slopes(tree, rng):
    q, v, a, tau, _ = zoo.state(tree, rng)
    inverse = tree.inverse_dynamics_second_derivatives(q, v, a)
    close(inverse.d2_tau_d_q_d_a.swapaxes(1, 2), nested(tree, tree.mass_matrix, q), DIFFERENCES)
    forward = tree.forward_dynamics_second_derivatives(q, v, tau)
    slope = nested(tree, tree.mass_matrix_inverse, q)
    close(forward.d2_a_d_q_d_tau.swapaxes(1, 2), slope, 100 * DIFFERENCES)


@pytest.mark.usually(name=("chain_Composite",))
@pytest.mark.parametrize("name", ["chain_Composite", "chain_SphericalZYX"])
def test_reference_models(name, shared, rng):
    """Where our first derivatives are the reference's, differences of them are ours too."""
    description, data = load(shared / "reference", name)
    tree = tree_of(description)
    iq, iv, ib = order(tree, description)
    q, v, a = data["q"][0][iq], data["v"][0][iv], data["a"][0][iv]
    wrenches = data["fext"][0, 1:][ib]

    def slopes(x):
        return tree.inverse_dynamics_derivatives(x, v, a, wrenches)

    reference = data["rnea_dq"][0][np.ix_(iv, iv)]
    close(slopes(q).d_tau_d_q, reference)
    T = tree.inverse_dynamics_second_derivatives(q, v, a, wrenches)
    by_place = nested(tree, lambda x: slopes(x).d_tau_d_v, q)
    close(T.d2_tau_d_q_d_v.swapaxes(1, 2), by_place, DIFFERENCES)

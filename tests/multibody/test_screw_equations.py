"""Products of exponentials, equation by equation (Müller 2018, appendix and section 2).

Numbers i, j, k count bodies from 0. The paper writes [ω; v], here it is [v; ω].
"""

import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody

from .screws import Ad, Chain, ad, angular, bracket, difference, exp, linear, move, shift, turn

EXACT = 1e-12  # products of a few matrices
OF_DIFFERENCES = 1e-8  # central differences of order 6 with steps of 1e-3
WRONG = 0.05  # a misprint shows in the second digit or before

REFERENCES = ("body", "spatial", "hybrid", "mixed")


@pytest.fixture(scope="module")
def moving():
    """One chain for all tests, so that its functions are derived once, and a motion."""
    rng = np.random.default_rng(20120531)
    return Chain(rng), rng.normal(size=(4, 5))


@pytest.fixture
def chain(moving):
    return moving[0]


@pytest.fixture
def state(moving):
    return moving[1].copy()


def error(a, b):
    return np.abs(np.asarray(a) - b).max() / max(1.0, np.abs(b).max())


def rate(function, q, v):
    """Derivative of a function of q along v."""
    return difference(lambda s: function(q + s[0] * v), np.zeros(1))[..., 0]


# -- appendix -----------------------------------------------------------------------------------


def test_products_of_exponentials(chain, state):
    """Eq. 92–96: with frames at joints, with frames at bodies alone, without frames."""
    q, C = state[0], np.eye(4)
    by_frames, by_screws, product = [], [], np.eye(4)
    for i in range(chain.count):
        C = C @ chain.S0[i] @ exp(chain.Z[i] * q[i]) @ np.linalg.inv(chain.S1[i])
        by_frames.append(C)
        product = product @ exp(chain.Y[i] * q[i])
        by_screws.append(product @ chain.A[i])
    trees = [SE3.homogeneous(chain.tree.placement(str(i))(q)) for i in range(chain.count)]
    assert error(by_frames, trees) < EXACT
    assert error(chain.poses(q), trees) < EXACT
    assert error(by_screws, trees) < EXACT


def test_tree_without_joint_frames(chain, state):
    """The tree of the screws Y alone: body frames differ by A, spatial quantities do not."""
    q, v = state[:2]
    tree = Multibody.from_screws({str(i): Y for i, Y in enumerate(chain.Y)}, {})
    for i in range(chain.count):
        C = SE3.homogeneous(tree.placement(str(i))(q)) @ chain.A[i]
        assert error(C, chain.poses(q)[i]) < EXACT
        spatial = chain.tree.jacobian(str(i), "spatial")(q)
        assert error(tree.jacobian(str(i), "spatial")(q), spatial) < EXACT
        body = np.linalg.inv(Ad(chain.A[i])) @ tree.jacobian(str(i))(q)
        assert error(body, chain.tree.jacobian(str(i))(q)) < EXACT
        own, theirs = (
            t.twist_derivative(str(i), "spatial", 3)(q, v, *state[2:], v)
            for t in (tree, chain.tree)
        )
        assert error(own, theirs) < EXACT


@pytest.mark.usually(reference=("body", "hybrid"))
@pytest.mark.parametrize("reference", REFERENCES)
def test_jacobians_are_screws_carried_along(chain, state, reference):
    """Eq. 102–108."""
    q, v = state[:2]
    for i in range(chain.count):
        J = chain.jacobian(q, i, reference)
        assert error(chain.tree.jacobian(str(i), reference)(q), J) < EXACT
        assert error(chain.tree.velocity(str(i), reference)(q, v), J @ v) < EXACT


def test_spatial_and_hybrid_columns(chain, state):
    """Eq. 105 by Y and A; eq. 106 by screws in world axes at their own body."""
    q, C = state[0], chain.poses(state[0])
    i = chain.count - 1
    for j in range(chain.count):
        spatial = Ad(C[j] @ np.linalg.inv(chain.A[j])) @ chain.Y[j]
        assert error(chain.jacobian(q, i, "spatial")[:, j], spatial) < EXACT
        own = turn(C[j][:3, :3]) @ chain.X[j]
        hybrid = shift(C[j][:3, 3] - C[i][:3, 3]) @ own
        assert error(chain.jacobian(q, i, "hybrid")[:, j], hybrid) < EXACT


def test_twists_by_recursion(chain, state):
    """Eq. 109–111: body, spatial, hybrid."""
    q, v = state[:2]
    C = [np.eye(4), *chain.poses(q)]
    body, spatial, hybrid = np.zeros((3, 6))
    for i, X in enumerate(chain.X):
        own, before = C[i + 1], C[i]
        body = np.linalg.inv(Ad(np.linalg.inv(before) @ own)) @ body + X * v[i]
        spatial = spatial + Ad(own) @ X * v[i]
        hybrid = shift(before[:3, 3] - own[:3, 3]) @ hybrid + turn(own[:3, :3]) @ X * v[i]
        for reference, V in (("body", body), ("spatial", spatial), ("hybrid", hybrid)):
            assert error(V, chain.tree.velocity(str(i), reference)(q, v)) < EXACT


# -- section 2 ----------------------------------------------------------------------------------


@pytest.mark.parametrize("reference", REFERENCES)
def test_partial_derivatives_are_those_of_the_definition(chain, state, reference):
    q, i = state[0], chain.count - 1
    J = chain.jacobian(q, i, reference)
    dJ = difference(lambda x: chain.jacobian(x, i, reference), q)
    own = chain.tree.jacobian_derivatives(str(i), reference)(q)
    assert error(own, dJ) < OF_DIFFERENCES
    for j in range(chain.count):
        for k in range(chain.count):
            if reference == "body":  # eq. 6
                by_brackets = bracket(J[:, j], J[:, k]) * (j < k)
            elif reference == "spatial":  # eq. 16
                by_brackets = bracket(J[:, k], J[:, j]) * (k < j)
            elif reference == "hybrid":  # eq. 26, and what it leaves out
                other = linear(J[:, k]) if j <= k else -angular(J[:, k])
                by_brackets = bracket(J[:, j], other)
            else:
                H, b = chain.jacobian(q, i, "hybrid"), chain.jacobian(q, i, "body")
                other = linear(H[:, k]) if j <= k else -angular(H[:, k])
                turned = bracket(b[:, j], b[:, k]) * (j < k)
                by_brackets = np.concatenate([bracket(H[:, j], other)[:3], turned[3:]])
            assert error(own[:, j, k], by_brackets) < EXACT, (j, k)


def test_second_and_third_derivatives_by_nested_brackets(chain, state):
    """Eq. 13, 15 and 21, 24: indices sorted along the chain."""
    q, i, n = state[0], chain.count - 1, chain.count
    b, s = chain.jacobian(q, i, "body"), chain.jacobian(q, i, "spatial")
    body = chain.tree.jacobian_derivatives(str(i), "body", 3)(q)
    spatial = chain.tree.jacobian_derivatives(str(i), "spatial", 3)(q)
    second = chain.tree.jacobian_derivatives(str(i), "body", 2)(q)
    assert second.shape == (6, n, n, n) and body.shape == (6, n, n, n, n)
    for j, *others in np.ndindex(n, n, n, n):
        up = b[:, j] * (min(others) > j)
        for k in sorted(others):
            up = bracket(up, b[:, k])
        down = s[:, j] * (max(others) < j)
        for k in sorted(others, reverse=True):
            down = bracket(s[:, k], down)
        assert error(body[:, j, others[0], others[1], others[2]], up) < EXACT
        assert error(spatial[:, j, others[0], others[1], others[2]], down) < EXACT
    for j, k, r in np.ndindex(n, n, n):
        low, high = min(k, r), max(k, r)
        nested = bracket(bracket(b[:, j], b[:, low]), b[:, high]) * (j < low)
        assert error(second[:, j, k, r], nested) < EXACT


def test_jerk_in_spatial_representation(chain, state):
    """Eq. 22 and 23, which are right as printed."""
    q, v, a, jerk = state
    i = chain.count - 1
    J = chain.jacobian(q, i, "spatial").T
    V = [*np.cumsum(J * v[:, None], axis=0)]
    A = [*np.cumsum(J * a[:, None], axis=0)]
    before = [np.zeros(6), *V]
    first, second = np.zeros((2, 6))
    for j in range(chain.count):
        turned = bracket(V[j], J[j])
        common = J[j] * jerk[j] + 2 * turned * a[j] + bracket(A[j], J[j]) * v[j]
        first += common + bracket(before[j] + V[j] - V[i], turned) * v[j]
        second += common + bracket(turned, V[i] - 2 * V[j]) * v[j]
        second += bracket(turned * v[j], J[j]) * v[j]
    exact = chain.tree.twist_derivative(str(i), "spatial", 2)(q, v, a, jerk)
    assert error(first, exact) < EXACT and error(second, exact) < EXACT


def _body_jerk(chain, state, weight):
    """Eq. 14 with the weight of the terms with k = r."""
    q, v, a, jerk = state
    J = chain.jacobian(q, chain.count - 1, "body").T
    total = J.T @ jerk
    for j in range(chain.count):
        for k in range(j + 1, chain.count):
            once = bracket(J[j], J[k])
            total = total + once * (2 * a[j] * v[k] + v[j] * a[k])
            for r in range(k, chain.count):
                factor = weight if k == r else 2
                total = total + factor * bracket(once, J[r]) * v[j] * v[k] * v[r]
    return total


def test_misprint_14_counts_equal_indices_twice(chain, state):
    """The factor 2 is that of k < r: a pair (k, k) occurs once."""
    exact = chain.tree.twist_derivative(str(chain.count - 1), "body", 2)(*state)
    assert error(_body_jerk(chain, state, 2), exact) > WRONG
    assert error(_body_jerk(chain, state, 1), exact) < EXACT


def test_misprint_27_leaves_out_the_joints_before(chain, state):
    """Neither k ≤ j (printed) nor j ≤ k ≤ i suffices: joints k < j turn J_ij by [ω_k, J_ij]."""
    q, v = state[:2]
    i = chain.count - 1
    J = chain.jacobian(q, i, "hybrid").T
    exact = rate(lambda x: chain.jacobian(x, i, "hybrid"), q, v).T
    assert error(chain.tree.jacobian_rate(str(i), "hybrid")(q, v).T, exact) < OF_DIFFERENCES
    for j in range(1, chain.count - 1):
        below = sum(bracket(J[j], linear(J[k])) * v[k] for k in range(j + 1))
        above = sum(bracket(J[j], linear(J[k])) * v[k] for k in range(j, i + 1))
        turned = sum(bracket(angular(J[k]), J[j]) * v[k] for k in range(j))
        assert error(below, exact[j]) > WRONG
        assert error(above, exact[j]) > WRONG
        assert error(above + turned, exact[j]) < OF_DIFFERENCES
    # Eq. 29 inherits it: its first two forms lack the same terms.
    a = state[2]
    printed = J.T @ a
    for j in range(chain.count):
        for k in range(j, i + 1):
            printed = printed + bracket(J[j], linear(J[k])) * v[j] * v[k]
    missing = sum(
        bracket(angular(J[k]), J[j]) * v[j] * v[k] for j in range(chain.count) for k in range(j)
    )
    acceleration = chain.tree.twist_derivative(str(i), "hybrid")(q, v, a)
    assert error(printed, acceleration) > WRONG
    assert error(printed + missing, acceleration) < EXACT


def test_misprint_28_wrong_points_and_twist(chain, state):
    """``Ad_{r_{i,j}}`` for ``r_{i,j−1}``, ``V_j^h`` for ``V_j^s``, ṙ for ḋ."""
    q, v = state[:2]
    i = chain.count - 1
    exact = rate(lambda x: chain.jacobian(x, i, "hybrid"), q, v).T
    C = chain.poses(q)
    spatial = [chain.tree.velocity(str(j), "spatial")(q, v) for j in range(chain.count)]
    hybrid = [chain.tree.velocity(str(j), "hybrid")(q, v) for j in range(chain.count)]
    for j in range(1, chain.count - 1):
        X = turn(C[j][:3, :3]) @ chain.X[j]
        r, before = C[j][:3, 3] - C[i][:3, 3], C[j - 1][:3, 3] - C[i][:3, 3]
        moving = ad(move((hybrid[j] - hybrid[i])[:3]))
        spin, own = ad(angular(hybrid[j])), ad(move(hybrid[i][:3]))
        if np.any(X[3:]):  # a slide has no point
            assert error((moving + shift(before) @ spin) @ X, exact[j]) > WRONG
            assert error(shift(before) @ (moving + spin) @ X, exact[j]) > WRONG
            assert error(shift(before) @ (ad(spatial[j]) - own) @ X, exact[j]) > WRONG
            assert error(shift(r) @ (ad(spatial[j]) - own) @ X, exact[j]) > WRONG
        assert error((moving + shift(r) @ spin) @ X, exact[j]) < OF_DIFFERENCES
        assert error(shift(r) @ (moving + spin) @ X, exact[j]) < OF_DIFFERENCES
        assert error(shift(r) @ (ad(hybrid[j]) - own) @ X, exact[j]) < OF_DIFFERENCES


def test_second_rate_of_the_hybrid_jacobian(chain, state):
    """Eq. 31 and 32–33."""
    q, v, a, jerk = state
    i = chain.count - 1
    C, total = chain.poses(q), np.zeros(6)
    own = chain.tree.jacobian_time_derivative(str(i), "hybrid", 2)(q, v, a).T
    twists = [chain.tree.velocity(str(j), "hybrid")(q, v) for j in range(chain.count)]
    rates = [chain.tree.twist_derivative(str(j), "hybrid")(q, v, a) for j in range(chain.count)]
    for j in range(chain.count):
        X = turn(C[j][:3, :3]) @ chain.X[j]
        to = shift(C[j][:3, 3] - C[i][:3, 3])
        first, second = (ad(move((x[j] - x[i])[:3])) for x in (twists, rates))
        spin, spin_rate = ad(angular(twists[j])), ad(angular(rates[j]))
        J = (second + 2 * first @ spin + to @ (spin_rate + spin @ spin)) @ X
        assert error(J, own[j]) < EXACT
        total += (to * jerk[j] + 2 * (first + to @ spin) * a[j]) @ X + J * v[j]
    assert error(total, chain.tree.jerk(str(i))(*state)) < EXACT


def test_misprint_34_turning_axes_of_the_mixed_representation(chain, state):
    """Rates in turning axes have −ω × …; only for the acceleration it vanishes."""
    q, v, a, jerk = state
    tree, last = chain.tree, str(chain.count - 1)
    R = chain.poses(q)[-1][:3, :3]
    w = tree.velocity(last, "hybrid")(q, v)[3:]

    def turned(X, lost=None):
        spin = X[3:] if lost is None else X[3:] - np.cross(w, lost[3:], axis=0)
        return np.concatenate([X[:3], R.T @ spin])

    J, dJ = tree.jacobian(last, "hybrid")(q), tree.jacobian_rate(last, "hybrid")(q, v)
    exact = rate(lambda x: chain.jacobian(x, chain.count - 1, "mixed"), q, v)
    assert error(turned(dJ), exact) > WRONG
    w = w[:, None]
    assert error(turned(dJ, J), exact) < OF_DIFFERENCES
    w = w[:, 0]
    A = tree.twist_derivative(last, "hybrid")(q, v, a)
    assert error(turned(A), tree.twist_derivative(last, "mixed")(q, v, a)) < EXACT
    j_hybrid, j_mixed = (tree.jerk(last, key)(*state) for key in ("hybrid", "mixed"))
    assert error(turned(j_hybrid), j_mixed) > WRONG
    assert error(turned(j_hybrid, A), j_mixed) < EXACT

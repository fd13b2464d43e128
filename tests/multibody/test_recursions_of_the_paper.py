"""Equations of Müller 2018, section 4; of misprints, the printed form fails, the mended holds."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from lgcontrol.mechanics.representations import convert
from tests.benchmarks.representations import counted

from .paper_recursions import Ad, ScrewChain, ad, shift

EXACT = 1e-12  # rounding of sums of some thousand products, relative to the largest force
FAILS = 0.05  # printed forms are wrong by more than this part of the largest force
PAPER = ("body", "spatial", "hybrid")


def error(ours, theirs):
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("reference", PAPER)
def test_operations_are_those_the_paper_counts(reference, n, rng):
    chain = ScrewChain(rng, n)
    q, v, a = rng.normal(size=(3, n))
    getattr(chain, reference)(q, v, a, np.zeros((n, 6)))
    assert chain.count == {what: k for what, k in counted(n)[reference].items() if k}


@pytest.fixture
def case(rng):
    chain = ScrewChain(rng, 5)
    q, v, a = rng.normal(size=(3, 5))
    wrenches = rng.normal(size=(5, 6))
    return chain, (q, v, a, wrenches), chain.tree.inverse_dynamics(q, v, a, wrenches)


@pytest.mark.parametrize("reference", PAPER)
def test_misprint_sign_of_external_wrenches(reference, case):
    """External wrenches act on the bodies (eq. 78): minus in eq. 68a, 72b, 77b."""
    chain, given, wanted = case
    recursion = getattr(chain, reference)
    assert error(recursion(*given), wanted) < EXACT
    assert error(recursion(*given, sign=+1), wanted) > FAILS


@pytest.mark.parametrize("reference", PAPER)
def test_misprint_start_of_the_recursion(reference, case):
    """Wrenches are summed from i = n; printed from n − 1, the last body has no part."""
    chain, given, wanted = case
    recursion = getattr(chain, reference)
    assert error(recursion(*given), wanted) < EXACT
    assert error(recursion(*given, start=1), wanted) > FAILS


def test_misprint_eq_71b(case):
    """J_i = Ad_{C_i S_i,i} Z_i with one index throughout; printed with j in the last form."""
    chain, (q, *_), _ = case
    C, frames = chain.poses(q), list(chain.joint_frames)
    for i in range(chain.n):
        J = Ad(C[i]) @ chain.X[i]
        for j, (frame, Z) in enumerate(frames):
            last = Ad(C[j] @ np.linalg.inv(chain.A[j]) @ frame) @ Z
            assert error(last, J) < EXACT if i == j else error(last, J) > FAILS


def test_misprint_eq_77b(case):
    """The wrench moves on by r_{i+1,i}, between body frames; printed d is the way to the COM."""
    chain, given, wanted = case
    assert error(chain.hybrid(*given), wanted) < EXACT
    assert error(chain.hybrid(*given, arm="d"), wanted) > FAILS


def test_misprint_remark_3(case):
    """q̈_i = X_iᵀ (V̇_i − Ad V̇_{i−1} + [V_i, Ad V_{i−1}]) / |X_i|²; printed without the first dot."""
    chain, (q, v, a, _), _ = case
    tree = chain.tree
    V, A = tree.body_velocities(q, v), tree.body_accelerations(q, v, a)
    C = chain.poses(q)
    for i in range(1, chain.n):
        X, carry = chain.X[i], Ad(np.linalg.inv(C[i]) @ C[i - 1])
        rest = -carry @ A[i - 1] + ad(V[i]) @ carry @ V[i - 1]
        for first, is_right in ((A[i], True), (V[i], False)):
            found = X @ (first + rest) / (X @ X)
            assert (abs(found - a[i]) < EXACT * np.abs(A).max()) == is_right
            assert is_right or abs(found - a[i]) > FAILS * abs(a[i])


def test_forms_of_the_acceleration_recursions(case):
    """Eq. 66a–c, 70 (two forms) and 73–75 are the same, as printed."""
    chain, (q, v, a, _), _ = case
    tree, C = chain.tree, chain.poses(q)
    motion = {
        r: [
            [
                tree.velocity(body, r)(q, v),
                convert("twist_rate", rate, tree.placement(body)(q), "body", r, twist=V),
            ]
            for body, V, rate in zip(
                tree.bodies,
                tree.body_velocities(q, v),
                tree.body_accelerations(q, v, a),
                strict=True,
            )
        ]
        for r in PAPER
    }
    none = np.zeros(3)
    for i in range(1, chain.n):
        X, carry = chain.X[i], Ad(np.linalg.inv(C[i]) @ C[i - 1])
        (before, rate), (V, wanted) = motion["body"][i - 1 : i + 1]
        for bracket in (
            ad(carry @ before) @ X * v[i],
            ad(carry @ before) @ V,
            ad(V) @ X * v[i],
        ):
            assert error(carry @ rate + bracket + X * a[i], wanted) < EXACT

        J = Ad(C[i]) @ X
        (before, rate), (V, wanted) = motion["spatial"][i - 1 : i + 1]
        for bracket in (ad(V) @ J * v[i], ad(before) @ V):
            assert error(rate + bracket + J * a[i], wanted) < EXACT

        X = block_diag(C[i][:3, :3], C[i][:3, :3]) @ chain.X[i]
        carry = shift(C[i - 1][:3, 3] - C[i][:3, 3])
        (before, rate), (V, wanted) = motion["hybrid"][i - 1 : i + 1]
        last, own = ad(np.concatenate([before[:3], none])), ad(np.concatenate([V[:3], none]))
        turn = ad(np.concatenate([none, V[3:]]))
        for bracket in (
            (last - own) @ before + turn @ X * v[i],
            last @ before - own @ V + ad(V) @ X * v[i],
            (last - own) @ V + (ad(V) - last) @ X * v[i],
        ):
            assert error(carry @ rate + bracket + X * a[i], wanted) < EXACT

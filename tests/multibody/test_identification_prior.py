"""Identification from poor motion: warned of without a prior, sane with one."""

import warnings

import numpy as np
import pytest

from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.models import ur5_tree

ROUNDING = 1e-9  # relative: two solutions of one regularized least-squares problem


def sines(amplitude, joints, n=200):
    """Motion of some joints of six over 5 s, one sine each; the others rest."""
    t, w = np.linspace(0, 5, n)[:, None], np.array([1.0, 1.0, 1.7, 2.3, 2.9, 3.7])
    A = np.where(np.isin(np.arange(6), joints), amplitude, 0.0)
    return A * np.sin(w * t), A * w * np.cos(w * t), -A * w**2 * np.sin(w * t)


@pytest.fixture(scope="module")
def arm():
    return ur5_tree()


@pytest.fixture(scope="module")
def base(arm):
    return arm.base_parameters()


def worst(found, arm):
    fresh = np.random.default_rng(5).uniform(-2, 2, (3, 100, 6))
    return np.abs(found.inverse_dynamics(*fresh) - arm.inverse_dynamics(*fresh)).max()


@pytest.mark.thorough
def test_two_joints_that_move_with_noise(arm, base):
    rng = np.random.default_rng(0)
    motion = sines(0.5, [0, 1])
    tau = arm.inverse_dynamics(*motion) + rng.normal(scale=1.0, size=(200, 6))
    noisy = [
        x + s * rng.normal(size=x.shape) for x, s in zip(motion, (1e-4, 1e-3, 1e-2), strict=True)
    ]
    with pytest.warns(UserWarning, match=r"condition is .*worst for wrist.*prior=0.3"):
        found = base.identify(*noisy, tau)
    assert found.condition > 1000
    assert worst(found, arm) > 100  # of forces up to 60 N m
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = base.identify(*noisy, tau, prior=0.3)
    assert worst(kept, arm) < 5
    assert kept.condition > 1000  # of the data: the prior does not hide what they are
    assert (kept.relative_errors <= 0.3 + ROUNDING).all()
    assert kept.relative_errors.min() < 0.1  # what moves tells something


@pytest.mark.parametrize("amplitude", [0.1, 0.05])
def test_small_clean_motion_is_warned_of(amplitude, arm, base):
    motion = sines(amplitude, range(6))
    with pytest.warns(UserWarning, match="condition"):
        base.identify(*motion, arm.inverse_dynamics(*motion))


def test_good_motion_is_not_warned_of_unless_forces_are_hidden_by_noise(arm, base):
    rng = np.random.default_rng(1)
    motion = rng.uniform(-2, 2, (3, 200, 6))
    tau = arm.inverse_dynamics(*motion)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base.identify(*motion, tau + rng.normal(scale=0.1, size=tau.shape))
    with pytest.warns(UserWarning, match=r"standard errors exceed .* most those of wrist_3"):
        base.identify(*motion, tau, noise=np.full(6, 20.0))


def test_prior_is_tikhonov_towards_the_tree(arm, base):
    """By another route: the normal equations of data and prior together."""
    rng = np.random.default_rng(2)
    q, v, a = rng.uniform(-2, 2, (3, 20, 6))
    tau = arm.inverse_dynamics(q, v, a) + rng.normal(size=(20, 6))
    noise = np.array([1.0, 2.0, 1.0, 0.5, 0.5, 0.2])
    W = (base.regressor(q, v, a) / noise[:, None]).reshape(-1, len(base))
    b = (tau / noise).ravel()
    root = base.prior_deviations(0.2)
    assert np.allclose(np.linalg.norm(root, axis=1), 0.2 * base.scales)
    for prior, P in (
        (base.scales, np.diag(base.scales**2)),
        (root @ root.T, root @ root.T),
        (0.2, root @ root.T),
    ):
        found = base.identify(q, v, a, tau, noise=noise, prior=prior)
        normal = W.T @ W + np.linalg.inv(P)
        expected = np.linalg.solve(normal, W.T @ b + np.linalg.solve(P, base.values))
        assert np.allclose(found.values, expected, rtol=1e-6, atol=ROUNDING)
        assert np.allclose(found.covariance, np.linalg.inv(normal), rtol=1e-6, atol=ROUNDING)


def test_prior_stands_for_what_is_not_measured(arm, base):
    motion = sines(0.5, [0])
    tau = arm.inverse_dynamics(*motion)
    with pytest.raises(ValueError, match="prior="):
        base.identify(*motion, tau)
    for count in (1, 3, 200):
        some = [x[:count] for x in (*motion, tau)]
        found = base.identify(*some, prior=0.3)
        assert np.allclose(found.values, base.values, rtol=0, atol=1e-6)
        assert (found.relative_errors > 0.29).any()


def test_prior_that_is_none_is_refused(arm, base):
    q = np.zeros((10, 6))
    for prior, message in (
        (-1.0, "positive share"),
        (np.ones(3), r"expected a number .* \(36, 36\)"),
        (-np.ones(36), "negative"),
        (-np.eye(36), "covariance"),
    ):
        with pytest.raises(ValueError, match=message):
            base.identify(q, q, q, q, prior=prior)


def test_bodies_without_mass_have_no_size():
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    tree = Multibody().add_body("empty", None, "revolute", axis="y")
    tree = tree.add_body("rod", rod, "revolute", "empty", [0, 0, -1], axis="y")
    base = tree.base_parameters()
    q = np.zeros((2, 2))
    found = base.identify(q, q, q, q, prior=0.5)
    assert np.isfinite(found.values).all()

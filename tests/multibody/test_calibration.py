"""Calibration: placements of joints from measured poses, against real trees and other solvers."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody
from lgcontrol.models import ur5_tree

from . import zoo

EXACT = 1e-10  # m: exact poses leave rounding
SIGMA = np.repeat([2e-5, 2e-4], 3)


@pytest.fixture(scope="module")
def arm():
    tree = ur5_tree()
    return tree.add_frame("probe", tree.bodies[-1], [0.05, 0.02, 0.12])


def displaced(tree, rng, size=1e-3, joints=()):
    names = tree.geometric_parameters(joints)
    values = tree.symbolic(*names).parameter_values
    return tree.with_parameters(
        dict(zip(names, values + rng.uniform(-size, size, len(names)), strict=True))
    )


def worst(found, real, frame, rng):
    q = real.configuration.random(rng, (200,))
    return np.abs(SE3.minus(found.placement(frame)(q), real.placement(frame)(q))).max()


@pytest.mark.usually(kind=("helical", "spherical", "universal"))
@pytest.mark.parametrize("kind", ["revolute_any", "helical", "spherical", "universal", "planar"])
def test_exact_poses_give_the_tree_back(kind, rng):
    tree = zoo.pair(kind, rng)
    frame = tree.bodies[-1]
    real = displaced(tree, rng, 0.02)
    q = tree.configuration.random(rng, (60,))
    found = tree.calibrate(frame, q, real.placement(frame)(q))
    assert found.status == "converged"
    assert worst(found.tree, real, frame, rng) < EXACT < 1e-3 < worst(tree, real, frame, rng)


@pytest.mark.thorough
def test_noisy_poses_of_an_arm(arm, rng):
    real = displaced(arm, rng)
    q = rng.uniform(-2.5, 2.5, (100, 6))
    poses = SE3.plus(real.placement("probe")(q), SIGMA * rng.normal(size=(100, 6)))
    found = arm.calibrate("probe", q, poses)
    assert found.rank == 26
    assert found.noise == pytest.approx(SIGMA, rel=0.15)
    assert "26 of 36" in repr(found) and "wrist_3_joint.placement.rz" in found.summary()
    fresh = rng.uniform(-2.5, 2.5, (300, 6))
    miss = [
        np.linalg.norm(t.position("probe")(fresh) - real.position("probe")(fresh), axis=1).max()
        for t in (arm, found.tree)
    ]
    assert miss[1] < 3e-5 < 1e-3 < miss[0]
    # Errors of what the frame does are as large as the covariance says: 26 combinations.
    J = arm.calibration_jacobian("probe")(fresh)
    error = SE3.minus(found.tree.placement("probe")(fresh), real.placement("probe")(fresh))
    expected = np.einsum("nij,jk,nik->ni", J, found.covariance, J)
    assert 0.4 < np.mean(error**2 / expected) < 2.0
    again = found.tree.calibrate("probe", q, poses, noise=[2e-5, 2e-4])
    # Where the first has stopped, up to the weights, there is next to nothing left to gain.
    assert np.abs(again.changes).max() < 3e-6


@pytest.mark.usually(columns=(3,))
@pytest.mark.parametrize("columns", [7, 3])
def test_prior_against_another_solver(columns, arm, rng):
    real = displaced(arm, rng)
    q = rng.uniform(-2.5, 2.5, (12, 6))
    poses = SE3.plus(real.placement("probe")(q), SIGMA * rng.normal(size=(12, 6)))[:, :columns]
    noise, prior = [2e-5, 2e-4][: columns // 3], [1e-3, 2e-3]
    found = arm.calibrate("probe", q, poses, noise=noise, prior=prior)
    names = arm.geometric_parameters()
    symbolic, known = arm.symbolic(*names), np.tile(np.repeat(prior, 3), 6)
    place, start = symbolic.placement("probe"), symbolic.parameter_values

    def residuals(z):
        predicted = place(q, start + known * z)
        left = (
            SE3.minus(poses, predicted) / SIGMA
            if columns == 7
            else (poses - predicted[:, :3]) / SIGMA[:3]
        )
        return np.append(left.ravel(), z)

    other = least_squares(
        residuals, np.zeros(36), jac="3-point", xtol=1e-15, ftol=1e-15, gtol=1e-12
    )
    assert np.allclose(found.changes, known * other.x, rtol=0, atol=1e-8)
    normal = other.jac.T @ other.jac  # by finite differences, in units of the prior
    assert np.allclose(found.covariance, known[:, None] * np.linalg.inv(normal) * known, atol=1e-9)


def test_fixed_joints_place_the_tracker_and_the_probe(rng):
    tree = Multibody().add_body("bench", None, "fixed")
    tree = tree.add_body("upper", None, "revolute", "bench", [0, 0, 0.4], axis="y")
    tree = tree.add_body("lower", None, "revolute", "upper", [1, 0, 0], axis="x")
    tree = tree.add_body("probe", None, "fixed", "lower", [0.5, 0.1, 0])
    real = displaced(tree, rng, 0.3, ("bench", "probe"))
    q = rng.uniform(-2, 2, (20, 2))
    found = tree.calibrate("probe", q, real.placement("probe")(q), joints=("bench", "probe"))
    assert found.rank == 12
    assert worst(found.tree, real, "probe", rng) < EXACT


def test_symbols_of_the_tree_stay(arm, rng):
    tree = arm.symbolic("shoulder_link.mass", "elbow_joint.placement.x")
    q = rng.uniform(-2, 2, (20, 6))
    found = tree.calibrate("probe", q, arm.placement("probe")(q))
    assert found.tree.parameters == tree.parameters
    assert np.abs(found.changes).max() < 1e-12


def test_wrong_measurements_are_refused(arm):
    q, poses = np.zeros((5, 6)), np.tile(SE3.identity, (5, 1))
    for options, message in (
        ({"noise": [1.0, -1.0]}, "noise must be positive"),
        ({"noise": [1.0, 1.0, 1.0]}, r"two, \[m\] and \[rad\]"),
        ({"prior": [1.0, 1.0, 1.0]}, "or 36"),
    ):
        with pytest.raises(ValueError, match=message):
            arm.calibrate("probe", q, poses, **options)
    with pytest.raises(ValueError, match=r"expected \(5, 7\), SE3 .* positions"):
        arm.calibrate("probe", q, poses[:, :4])
    with pytest.raises(ValueError, match="poses"):
        arm.calibrate("probe", q, 0 * poses)
    with pytest.raises(ValueError, match="poses"):
        arm.calibrate("probe", q, poses[:3])
    with pytest.raises(KeyError, match="joint"):
        arm.calibrate("probe", q, poses, joints=("elbow",))

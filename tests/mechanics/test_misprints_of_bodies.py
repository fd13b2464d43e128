"""Misprints of Müller 2018, section 3: what is printed fails, what is meant holds."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import block_diag

from lgcontrol.groups import SE3
from lgcontrol.mechanics.representations import inertia_matrix

from ._moving_body import Curve, MovingBody, relative_error

HOLDS = 1e-13  # rounding
FAILS = 0.1  # printed forms are wrong by more than this part of the largest entry


@pytest.fixture
def body(rng):
    return MovingBody(rng)


def both(matrix):
    """The matrix for the linear and the angular part."""
    return block_diag(matrix, matrix)


def test_misprint_before_eq_48(body):
    """V^h = Ad_R V^b; printed with the inverse."""
    R = SE3.homogeneous(body.pose)[:3, :3]
    hybrid = body.twist("hybrid")
    assert relative_error(both(R) @ body.twist("body"), hybrid) < HOLDS
    assert relative_error(both(R.T) @ body.twist("body"), hybrid) > FAILS


def test_misprint_eq_51(body):
    """m r̈_c = f; printed with one dot."""
    R, p = body.curve.parts
    center = p + R @ body.inertia.center_of_mass
    force = body.numbers(body.represented(2, "hybrid"))[:3]
    mass = body.inertia.mass
    assert relative_error(mass * body.numbers(body.curve.rate(center, 2)), force) < HOLDS
    assert relative_error(mass * body.numbers(body.curve.rate(center, 1)), force) > FAILS


def test_misprint_eq_53(body):
    """Π̇^h = W^h + m (ω × d) × ṙ about a moving point off the centre of mass."""
    rate = body.numbers(body.curve.rate(body.represented(1, "hybrid")))
    wrench = body.numbers(body.represented(2, "hybrid"))
    V = body.twist("hybrid")
    d = SE3.homogeneous(body.pose)[:3, :3] @ body.inertia.center_of_mass
    missing = body.inertia.mass * np.cross(np.cross(V[3:], d), V[:3])
    assert relative_error(rate, wrench) > FAILS
    assert relative_error(rate, wrench + np.concatenate([np.zeros(3), missing])) < HOLDS


def test_eq_54_is_the_momentum_balance(body):
    """W^h = M^h V̇^h + ad_ω M^h [0; ω], which the misprint before does not touch."""
    M = inertia_matrix(body.inertia, body.pose, "hybrid")
    V, A = body.twist("hybrid"), body.twist_rate("hybrid")
    w = np.array(ca.skew(V[3:]))
    turning = both(w) @ M @ np.concatenate([np.zeros(3), V[3:]])
    wrench = body.numbers(body.represented(2, "hybrid"))
    assert relative_error(M @ A + turning, wrench) < HOLDS


def test_misprint_after_eq_62(body):
    """Eq. 62 is body-fixed for i = j, but spatial for j = 0, not for i = j."""
    spatial = inertia_matrix(body.inertia, body.pose, "spatial")
    represented = {
        name: SE3.Ad(pose).T @ spatial @ SE3.Ad(pose)
        for name, pose in (("own", body.pose), ("world", SE3.identity))
    }
    assert relative_error(represented["own"], body.inertia.matrix) < HOLDS
    assert relative_error(represented["world"], spatial) < HOLDS
    assert relative_error(represented["own"], spatial) > FAILS


def test_misprint_eq_63(body, rng):
    """R_jk turns from F_k to F_j: in eq. 65 it stands for the printed R_kj, and F_j for F_i."""
    frame, axes = Curve.random(rng, body.t), Curve.random(rng, body.t)
    Rj, Rk = (body.numbers(curve.parts[0]) for curve in (frame, axes))
    Ri = SE3.homogeneous(body.pose)[:3, :3]
    origin = frame.parts[1]
    # Twist and momentum at the frame's origin along the axes of k, from the particles.
    p, w = body.curve.parts[1], body.curve.angular_velocity
    v = body.curve.rate(p) + ca.cross(w, origin - p)
    V = both(Rk.T) @ body.numbers(ca.vertcat(v, w))
    momentum = both(Rk.T) @ body.numbers(ca.vertcat(*body.total(1, origin)))

    X = SE3.Ad(SE3.compose(SE3.inverse(body.pose), body.numbers(frame.coordinates)))
    M_j = X.T @ body.inertia.matrix @ X  # of the body in frame j
    meant, printed, from_body = Rj.T @ Rk, Rk.T @ Rj, Rk.T @ Ri
    assert relative_error(both(meant).T @ M_j @ both(meant) @ V, momentum) < HOLDS
    for R in (printed, from_body, from_body.T):
        assert relative_error(both(R).T @ M_j @ both(R) @ V, momentum) > FAILS

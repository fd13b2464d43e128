"""The equations of Müller 2018, section 3, part by part, against sums over particles."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import block_diag

from lgcontrol.groups import SE3
from lgcontrol.mechanics.representations import inertia_matrix

from ._moving_body import REFERENCES, MovingBody, relative_error

EXACT = 1e-13  # rounding of a few dozen products, relative to the largest entry


@pytest.fixture
def body(rng):
    return MovingBody(rng)


def hat(x):
    return np.array(ca.skew(x))


def wrench(body, reference):
    """Force and moment by definition."""
    W = body.numbers(body.represented(2, reference))
    return W[:3], W[3:]


def test_eq_43_44_body(body):
    m, d, J = body.inertia.mass, body.inertia.center_of_mass, body.inertia.inertia_about_origin
    (v, w), (dv, dw) = np.split(body.twist("body"), 2), np.split(body.twist_rate("body"), 2)
    lift = dv + hat(w) @ v
    force, moment = wrench(body, "body")
    assert relative_error(J @ dw + hat(w) @ J @ w + m * hat(d) @ lift, moment) < EXACT
    assert relative_error(m * (lift + (hat(dw) + hat(w) @ hat(w)) @ d), force) < EXACT


def test_eq_46_47_50_59_about_the_center_of_mass(body):
    """With the frame at the centre of mass, in body axes, in world axes, and mixed."""
    m, J = body.inertia.mass, body.inertia.inertia
    R, p = body.curve.parts
    center = p + R @ body.inertia.center_of_mass
    force, moment = (body.numbers(part) for part in body.total(2, center))
    R0 = body.numbers(R)
    w, dw = body.twist("body")[3:], body.twist_rate("body")[3:]
    v = R.T @ body.curve.rate(center)
    lift = body.numbers(body.curve.rate(v)) + hat(w) @ body.numbers(v)
    assert relative_error(m * lift, R0.T @ force) < EXACT
    assert relative_error(J @ dw + hat(w) @ J @ w, R0.T @ moment) < EXACT
    w, dw, J = R0 @ w, R0 @ dw, R0 @ J @ R0.T
    assert relative_error(J @ dw + hat(w) @ J @ w, moment) < EXACT
    assert relative_error(m * body.numbers(body.curve.rate(center, 2)), force) < EXACT


def test_eq_52_55_56_hybrid(body):
    R = SE3.homogeneous(body.pose)[:3, :3]
    m, d = body.inertia.mass, R @ body.inertia.center_of_mass
    J = R @ body.inertia.inertia @ R.T - m * hat(d) @ hat(d)
    M = np.block([[m * np.eye(3), -m * hat(d)], [m * hat(d), J]])
    assert relative_error(inertia_matrix(body.inertia, body.pose, "hybrid"), M) < EXACT
    w, (ddr, dw) = body.twist("hybrid")[3:], np.split(body.twist_rate("hybrid"), 2)
    force, moment = wrench(body, "hybrid")
    assert relative_error(J @ dw + hat(w) @ J @ w + m * hat(d) @ ddr, moment) < EXACT
    assert relative_error(m * (ddr + (hat(dw) + hat(w) @ hat(w)) @ d), force) < EXACT


def test_eq_57_58_mixed(body):
    R = SE3.homogeneous(body.pose)[:3, :3]
    m, d, J = body.inertia.mass, body.inertia.center_of_mass, body.inertia.inertia_about_origin
    w, (ddr, dw) = body.twist("mixed")[3:], np.split(body.twist_rate("mixed"), 2)
    force, moment = wrench(body, "mixed")
    assert relative_error(J @ dw + hat(w) @ J @ w + m * hat(d) @ R.T @ ddr, moment) < EXACT
    assert relative_error(m * (ddr + R @ (hat(dw) + hat(w) @ hat(w)) @ d), force) < EXACT


def test_eq_38_and_remark_2_spatial(body):
    """Ṁ^s = −adᵀ M − M ad, and Ṁ^s − 2 C^s is skew with C^s = −adᵀ M."""
    M = inertia_matrix(body.inertia.matrix, body.curve.coordinates, "spatial")
    rate = body.numbers(body.curve.rate(ca.SX(M)))
    M, ad = body.numbers(M), SE3.ad(body.twist("spatial"))
    assert relative_error(rate, -ad.T @ M - M @ ad) < EXACT
    skew = rate + 2 * ad.T @ M
    assert np.abs(skew + skew.T).max() < EXACT * np.abs(skew).max()


def test_rate_of_the_hybrid_inertia(body):
    """Ṁ^h = −ad_ωᵀ M − M ad_ω, between eq. 48 and 49, for any body-fixed point."""
    M = inertia_matrix(body.inertia.matrix, body.curve.coordinates, "hybrid")
    rate = body.numbers(body.curve.rate(ca.SX(M)))
    M, turn = body.numbers(M), block_diag(*[hat(body.twist("hybrid")[3:])] * 2)
    assert relative_error(rate, turn @ M - M @ turn) < EXACT


@pytest.mark.parametrize("reference", REFERENCES)
def test_energy_and_power_are_the_same_in_all(reference, body):
    R, p = body.curve.parts
    speeds = [body.curve.rate(p + R @ x) for x in body.points]
    energy = sum(m * ca.sumsqr(v) for m, v in zip(body.masses, speeds, strict=True)) / 2
    V, W = body.twist(reference), body.numbers(body.represented(2, reference))
    M = inertia_matrix(body.inertia, body.pose, reference)
    assert relative_error(V @ M @ V / 2, body.numbers(energy)[0]) < EXACT
    assert relative_error(W @ V, body.numbers(body.curve.rate(energy))[0]) < EXACT

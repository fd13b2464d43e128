"""Misprints of Holzinger, Gerstmayr, Schöberl: what is printed fails, what is meant holds."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.representations import UnifiedVelocity

HOLDS = 1e-13  # rounding
FAILS = 0.05  # printed forms are wrong by more than this part of the largest entry

PAPER = (5.2988, 1.1775, 4.3568)
UNIFIED = UnifiedVelocity.hexahedral()
BOX = SpatialInertia(1.0, np.zeros(3), np.diag(PAPER))


def hat(x):
    return np.array(ca.skew(x))


def off(found, expected):
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.fixture
def motion_vector(rng):
    n = rng.normal(size=6)
    return n, n[:3], n[3:], np.linalg.norm(n[3:])


def test_misprint_section_6_order_of_the_moments(rng):
    """J11 > J33 > J22: the third axis is the middle one, so turning about it is unstable."""
    J1, J2, J3 = PAPER
    assert J1 > J3 > J2
    # Rates of small ω1, ω2 next to a spin about the third axis: λ² of Euler's equations.
    growth = (J2 - J3) * (J3 - J1) / (J1 * J2)
    assert growth > 0
    printed = sorted(PAPER, reverse=True)  # with J11 > J22 > J33 that spin is stable
    assert (printed[1] - printed[2]) * (printed[2] - printed[0]) / (printed[0] * printed[1]) < 0


def test_misprint_eq_8(rng):
    """The body's angular velocity is Rᵀ Ṙ; printed as Ṙ Rᵀ, which has world axes."""
    R, spin, h = SO3.random(rng), rng.normal(size=3), 1e-5
    ahead, back = (SO3.matrix(SO3.plus(R, s * h * spin)) for s in (1, -1))
    rate = (ahead - back) / (2 * h)
    assert off(SO3.matrix(R).T @ rate, hat(spin)) < 1e-9
    assert off(rate @ SO3.matrix(R).T, hat(spin)) > FAILS


def blocks_of_inverse_tangent(n_T, n_R, k1, k2, product):
    first = np.eye(3) + hat(n_R) / 2 + k1 * hat(n_R) @ hat(n_R)
    second = hat(n_T) / 2 + k1 * product + k2 * hat(n_R) @ hat(n_R)
    return first, second


def mended(n_T, n_R, t):
    """k₁ of eq. 76 and k₂ of eq. 77, which are right."""
    k1 = (1 - t / 2 / np.tan(t / 2)) / t**2
    k2 = n_T @ n_R / (2 * t**4) * (t**2 / (1 - np.cos(t)) + t / np.tan(t / 2) - 4)
    return k1, k2


def test_misprint_eq_13(motion_vector):
    """Both diagonal blocks are functions of the vector n_R; printed with a tilde in the second."""
    n, _, n_R, _ = motion_vector
    exact = SE3.right_jacobian_inverse(n)
    np.testing.assert_allclose(exact[:3, :3], exact[3:, 3:], rtol=0, atol=HOLDS)
    np.testing.assert_allclose(exact[3:, 3:], SO3.right_jacobian_inverse(n_R), atol=HOLDS)
    with pytest.raises(ValueError, match="shape"):
        SO3.right_jacobian_inverse(hat(n_R)[:2].ravel())  # a matrix is no argument of it


def test_misprint_eq_16(motion_vector):
    """The factor of ñ² is ½ (2 − t cot(t/2)) / t²; printed without t before the cotangent."""
    n, n_T, n_R, t = motion_vector
    exact = SE3.right_jacobian_inverse(n)[:3, :3]
    right, _ = blocks_of_inverse_tangent(n_T, n_R, mended(n_T, n_R, t)[0], 0, 0)
    wrong, _ = blocks_of_inverse_tangent(n_T, n_R, (2 - 1 / np.tan(t / 2)) / 2 / t**2, 0, 0)
    assert off(right, exact) < HOLDS
    assert off(wrong, exact) > FAILS


@pytest.mark.parametrize("slip", ["factor", "minus two", "bracket"])
def test_misprint_eq_17(motion_vector, slip):
    """t before both cotangents, −2 in the third term, the sum of both products for the bracket."""
    n, n_T, n_R, t = motion_vector
    exact = SE3.right_jacobian_inverse(n)[:3, 3:]
    both = hat(n_T) @ hat(n_R) + hat(n_R) @ hat(n_T)
    k1, k2 = mended(n_T, n_R, t)
    assert off(blocks_of_inverse_tangent(n_T, n_R, k1, k2, both)[1], exact) < HOLDS
    if slip == "factor":
        k1 = (2 - 1 / np.tan(t / 2)) / 2 / t**2
    elif slip == "minus two":
        k2 = k2 + 2 * (n_T @ n_R) / t**4
    else:
        both = hat(n_T) @ hat(n_R) - hat(n_R) @ hat(n_T)
    assert off(blocks_of_inverse_tangent(n_T, n_R, k1, k2, both)[1], exact) > FAILS


def test_misprint_eq_78(motion_vector):
    """T₂ has ñ² in both diagonal blocks and the products above; printed in the first block."""
    n, n_T, n_R, t = motion_vector
    k1, k2 = mended(n_T, n_R, t)
    zero, one, both = np.zeros((3, 3)), np.eye(3), hat(n_T) @ hat(n_R) + hat(n_R) @ hat(n_T)
    square = hat(n_R) @ hat(n_R)
    K = np.block([[k1 * one, k2 * one], [zero, k1 * one]])
    T1 = np.block([[hat(n_R), hat(n_T)], [zero, hat(n_R)]])
    exact = UNIFIED.inverse_tangent(n)
    for T2, holds in (
        (np.block([[square, both], [zero, square]]), True),
        (np.block([[both, zero], [zero, square]]), False),
    ):
        made = (np.eye(6) + T1 / 2 + K @ T2) @ UNIFIED.inverse
        assert (off(made, exact) < HOLDS) if holds else (off(made, exact) > FAILS)


def test_misprint_eq_56_is_another_matrix(rng):
    """``D diag(ω̂ m, ω̂ J) Dᵀ`` is not the integral of eq. 49, but Γ w is the same."""
    w = rng.normal(size=6)
    turning, zero = hat(UNIFIED.to_twist(w)[3:]), np.zeros((3, 3))
    printed = np.block([[turning, zero], [zero, turning @ np.diag(PAPER)]])
    printed = UNIFIED.matrix @ printed @ UNIFIED.matrix.T
    gamma = UNIFIED.coriolis_matrix(BOX)(w)
    assert off(printed, gamma) > FAILS
    assert off(printed @ w, gamma @ w) < HOLDS


def test_misprint_eq_56_needs_an_orthogonal_D():
    """``M = D⁻ᵀ M D⁻¹``; printed as D M Dᵀ, which is the same with l = 1 only."""
    for lengths, holds in (([1, 1, 1], True), ([0.5, 1, 2], False)):
        unified = UnifiedVelocity.hexahedral(lengths)
        printed = unified.matrix @ BOX.matrix @ unified.matrix.T
        difference = off(printed, unified.mass_matrix(BOX))
        assert (difference < HOLDS) if holds else (difference > FAILS)


def test_eq_60_is_the_mass_matrix():
    m, (J1, J2, J3) = 1.0, PAPER
    blocks = [np.array([[m + J, J - m], [J - m, m + J]]) / 2 for J in (J3, J1, J2)]
    printed = np.zeros((6, 6))
    for k, block in enumerate(blocks):
        printed[2 * k : 2 * k + 2, 2 * k : 2 * k + 2] = block
    np.testing.assert_allclose(UNIFIED.mass_matrix(BOX), printed, rtol=0, atol=1e-15)


def test_misprint_eq_61(rng):
    """First row −(J11 − J22), last row −m (w3² − w4²) and its pair; printed with other signs."""
    m, (J1, J2, J3) = 1.0, PAPER
    w = rng.normal(size=6)
    w1, w2, w3, w4, w5, w6 = w
    rows = [
        m * (w1 + w2) * (w4 - w3) + ((-J1 - J2) * (w3 + w4) + m * (w5 - w6)) * (w5 + w6),
        m * (w1 + w2) * (w3 - w4) - ((J1 - J2) * (w3 + w4) + m * (w5 - w6)) * (w5 + w6),
        m * (w1**2 - w2**2 - (w3 + w4) * (w5 - w6)) - (J2 - J3) * (w1 + w2) * (w5 + w6),
        -m * (w1**2 - w2**2 - (w3 + w4) * (w5 - w6)) - (J2 - J3) * (w1 + w2) * (w5 + w6),
        m * (w3**2 - w4**2 - (w1 - w2) * (w5 + w6)) + (J1 - J3) * (w1 + w2) * (w3 + w4),
        m * (w3**2 - w4**2 + (w1 - w2) * (w5 + w6)) + (J1 - J3) * (w1 + w2) * (w3 + w4),
    ]
    exact = 2 * np.sqrt(2) * UNIFIED.coriolis_matrix(BOX)(w) @ w
    wrong = np.abs(rows - exact) > FAILS * np.abs(exact).max()
    assert wrong.tolist() == [True, False, False, False, False, True]
    rows[0] = m * (w1 + w2) * (w4 - w3) - ((J1 - J2) * (w3 + w4) - m * (w5 - w6)) * (w5 + w6)
    rows[5] = -m * (w3**2 - w4**2 - (w1 - w2) * (w5 + w6)) + (J1 - J3) * (w1 + w2) * (w3 + w4)
    assert off(np.array(rows), exact) < HOLDS

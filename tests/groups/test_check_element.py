"""Coordinates from outside: brought onto the group, or refused by name."""

from math import inf

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE2, SE3, SO2, SO3, Product, Rn, check_element

SAME = 1e-15


@pytest.mark.parametrize("group", [SO2, SO3, SE2, SE3, Rn(3), Product(a=SE3, b=SO2, c=Rn(2))])
def test_elements_stay_as_they_are_bit_by_bit(group, rng):
    X = group.random(rng, (4, 3))
    noisy = X + 1e-12 * rng.normal(size=X.shape)
    np.testing.assert_array_equal(check_element("x", noisy, group, batch=True), noisy)


def test_missing_digits_are_brought_back():
    typed = np.array([[0.0, 0.0, 0.707107, 0.707107], [0.0, 0.0, 0.0, 1.0]])
    X = check_element("x", typed, SO3, batch=True)
    np.testing.assert_allclose(X[0], np.array([0, 0, 1, 1]) / np.sqrt(2), atol=SAME)
    np.testing.assert_array_equal(X[1], typed[1])


def test_positions_may_be_of_any_size():
    far = np.array([1e12, -1e-12, 3.0, 0.0, 0.0, 0.0, 1.0])
    np.testing.assert_array_equal(check_element("x", far, SE3), far)


def test_any_length_where_it_is_allowed():
    np.testing.assert_allclose(check_element("x", [0.0, 3.0], SO2, tolerance=inf), [0.0, 1.0])


QUATERNION = r"\(qx, qy, qz, qw\)"

BAD = [
    (SO2, [2.0, 0.0], r"^start = \[2\. 0\.\] is no .* SO2: \(cos, sin\) has norm 2, not 1 \(norm"),
    (SO2, [0.0, 0.0], r"^start = \[0\. 0\.\] is no element of SO2: \(cos, sin\) cannot be norma"),
    (SO3, [[0, 0, 0, 1], [0, 0, 0, 0]], rf"^start\[1\] = .* {QUATERNION} cannot be normalised$"),
    (SE3, [[[0] * 6 + [1]], [[0] * 6 + [1.5]]], rf"start\[1, 0\] .* {QUATERNION} has norm 1.5,"),
    (SO3, [0, 0, 0.7, 0.7], rf"{QUATERNION} has norm 0.98994"),
    (Product(base=SE2, hand=SO3), [1, 2, 1, 0, 0, 0, 0, 1.00001], r"\(hand.qx, .*norm 1.00001,"),
    (SE3, [1.0, 0.0], r"start has shape \(2,\), expected \(\.\.\., 7\)"),
    (SO2, [np.nan, 1.0], r"start is not finite: entry \(0,\) is nan"),
]


@pytest.mark.parametrize(("group", "value", "message"), BAD)
def test_what_is_no_element_is_named(group, value, message):
    with pytest.raises(ValueError, match=message):
        check_element("start", value, group, batch=True)


def test_zeros_are_refused_at_any_tolerance():
    with pytest.raises(ValueError, match="cannot be normalised"):
        check_element("x", [0.0, 0.0], SO2, tolerance=inf)


def test_complex_numbers_are_refused():
    with pytest.raises(TypeError, match="x must be an array of numbers: complex numbers would"):
        check_element("x", [1.0, 1j], SO2)


def test_blocks_that_are_joined_are_elements():
    """Off by 1e-6 at most is normalised, more is refused by the block's name."""
    G = Product(heading=SO2, place=Rn(2))
    assert G.join(heading=[0.6, 0.8 + 1e-7])[:2] @ [0.6, 0.8] == pytest.approx(1, abs=1e-12)
    with pytest.raises(ValueError, match=r"block 'heading'.* has norm 2, not 1"):
        G.join(heading=[2.0, 0.0])
    with pytest.raises(ValueError, match="block 'heading'"):
        G.join(heading=[[1.0, 0.0], [np.nan, 0.0]])
    symbol = ca.SX.sym("c", 2)
    assert G.join(heading=symbol).shape == (4, 1)

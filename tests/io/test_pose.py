"""Poses: what their numbers must be, and what follows from a quaternion."""

import math
from dataclasses import replace

import numpy as np
import pytest

from lgcontrol.io._internal import Origin

SAME = 1e-15
HALF = math.sqrt(0.5)


def test_rpy_follows_from_the_quaternion():
    assert Origin(quaternion=(0, 0, 1, 0)).rpy == (0.0, 0.0, math.pi)
    turned = Origin((1, 2, 3), quaternion=(HALF, 0.0, 0.0, HALF))
    assert turned == Origin.from_quaternion((1, 2, 3), (HALF, 0.0, 0.0, HALF))
    np.testing.assert_allclose(turned.rpy, (math.pi / 2, 0, 0), rtol=0, atol=SAME)
    np.testing.assert_allclose(Origin(rpy=turned.rpy).rotation, turned.rotation, rtol=0, atol=SAME)
    assert replace(turned, xyz=(0, 0, 0)).rpy == turned.rpy


def test_quaternions_with_missing_digits_are_rotations():
    typed = Origin(quaternion=(0.0, 0.0, 0.7, 0.7))
    np.testing.assert_allclose(typed.quaternion, (0, 0, HALF, HALF), rtol=0, atol=SAME)
    assert np.linalg.det(typed.rotation) == pytest.approx(1.0, abs=4 * SAME)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quaternion": (0, 0, 2, 0)}, r"the quaternion \(0.0, 0.0, 2.0, 0.0\) has length 2"),
        ({"quaternion": (0, 0, 0, 0)}, "has length 0, expected 1"),
        ({"quaternion": (1e200, 0, 0, 0)}, r"has length 1e\+200"),
        ({"quaternion": (0, 0, 1)}, "quaternion must be 4 finite numbers"),
        ({"xyz": (0, 0, math.nan)}, "xyz must be 3 finite numbers"),
        ({"rpy": (0, math.inf, 0)}, "rpy must be 3 finite numbers"),
    ],
)
def test_what_is_no_pose(arguments, message):
    with pytest.raises(ValueError, match=message):
        Origin(**arguments)

"""Coordinates of any size are brought onto their group; what is off it is refused by name."""

import re
import warnings

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    Cylindrical,
    Product,
    Rn,
    Schoenflies,
    check_element,
)

GROUPS = (SO2, SO3, SE2, SE3, Cylindrical, Schoenflies, Product(a=SE3, b=Rn(2), c=SO2))
SAME = 1e-15
FACTORS = (1e-308, 1e-200, 1e-150, 1e150, 1e200, 1e307)


def stretched(group, X, factor):
    longer = X.copy()
    for part in group.unit_parts:
        longer[..., part] *= factor
    return longer


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("factor", FACTORS)
def test_normalize_takes_coordinates_of_any_size(group, factor, rng):
    X = group.random(rng, (4,))
    digits = 1e-7 if factor < 1e-307 else SAME  # a number so small has fewer digits
    for value in (stretched(group, X, factor), stretched(group, X, -factor)):
        same = np.abs(np.abs(group.normalize(value)) - np.abs(X))
        assert same.max() <= digits
        column = group.normalize(ca.DM(value[0])).full().ravel()
        np.testing.assert_array_equal(column, group.normalize(value[0]))


@pytest.mark.parametrize("group", GROUPS, ids=str)
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_what_has_no_direction_is_no_number(group, bad):
    with np.errstate(invalid="ignore"):
        value = stretched(group, group.identity, bad)
    X = group.normalize(value)
    assert all(np.isnan(X[part]).all() for part in group.unit_parts)


@pytest.mark.parametrize("group", GROUPS, ids=str)
def test_one_rule_for_coordinates_off_the_group(group, rng):
    X = group.random(rng, (5,))
    near = stretched(group, X, 1 + 5e-7)
    np.testing.assert_allclose(check_element("x", near, group, batch=True), X, rtol=SAME, atol=SAME)
    for factor in (1 + 1e-5, 1.01, 2.0, 1e200, 1e-200):
        message = f"{group.coordinate_names[group.unit_parts[0]][0]}.* has norm "
        with pytest.raises(ValueError, match=message + re.escape(f"{factor:.7g}, not 1")):
            check_element("x", stretched(group, group.identity, factor), group)


def test_angles_that_look_like_degrees_are_asked_about():
    with pytest.warns(UserWarning, match=r"90 rad is 14\.3 turns: are these degrees\?") as caught:
        SO3.from_euler("ZYX", [90, 0, 0])
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="degrees=True"):
        SE3.from_euler("xyz", [[0, 0, 0], [0, -45, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SO3.from_euler("ZYX", [90, -360, 720], degrees=True)
        SO3.from_euler("ZYX", [2 * np.pi, -np.pi, 0])
        SO3.from_euler("x", np.zeros((0, 1)))

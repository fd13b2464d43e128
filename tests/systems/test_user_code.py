"""Mistakes in users' fields are told in terms of their code."""

import math
import warnings

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.systems import Parameter, System


def decides(t, x, u, p):
    if x[0] > 0:
        return x
    return -x


@pytest.mark.parametrize("symbol", [ca.SX, ca.MX])
@pytest.mark.parametrize("field", [decides, lambda t, x, u, p: [max(x[0], 0), x[1]]])
def test_decisions_by_symbols_are_told_with_their_line(field, symbol):
    line = field.__code__.co_firstlineno + (field is decides)
    with pytest.raises(
        TypeError,
        match=r"toy: f decides by the value of a CasADi expression "
        rf"\(test_user_code.py, line {line}\), .* use casadi.if_else\(x > 0, a, b\)",
    ) as caught:
        System("toy", Rn(2), field, symbol=symbol)
    assert "truth value" in str(caught.value.__cause__)


def test_numpy_functions_are_told_in_a_line():
    with pytest.warns(FutureWarning, match="^toy: f calls NumPy functions .* casadi.cos") as told:
        system = System("toy", Rn(2), lambda t, x, u, p: [np.cos(x[0]), np.sin(x[1])])
    assert len(told) == 1 and told[0].filename == __file__
    np.testing.assert_allclose(system.f(0.0, [0.3, 0.4]), [np.cos(0.3), np.sin(0.4)])


def test_other_warnings_pass():
    def field(t, x, u, p):
        warnings.warn("rather old", DeprecationWarning, stacklevel=1)
        return x

    with pytest.warns(DeprecationWarning, match="rather old"):
        System("toy", Rn(1), field)


@pytest.mark.parametrize("make", [math.cos, float])
def test_nan_that_python_makes_of_symbols_is_refused(make):
    """``math.cos(x)`` of an SX symbol is NaN, without a word."""
    with pytest.raises(ValueError, match="toy: f contains NaN: .* use casadi's"):
        System("toy", Rn(2), lambda t, x, u, p: [make(x[0]), x[1]])


def test_points_where_a_field_is_not_defined_are_no_mistake():
    root = System("root", Rn(1), lambda t, x, u, p: ca.sqrt(-ca.fabs(x) - 1))
    assert np.isnan(root.f(0.0, [1.0])).all()


def test_the_arguments_are_told():
    with pytest.raises(TypeError, match=r"toy: f must take \(t, x, u, p\): too many positional"):
        System("toy", Rn(1), lambda x, u: x)
    with pytest.raises(TypeError, match=r"toy: invariants must take \(x, p\): missing a required"):
        System(
            "toy",
            Rn(1),
            lambda t, x, u, p: x,
            parameters=[Parameter("a")],
            invariants=lambda t, x, p: x,
        )

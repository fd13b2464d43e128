"""Tableaus are checked: lengths, consistency, order conditions of every rooted tree."""

import numpy as np
import pytest

from lgcontrol.integrators import METHODS, CommutatorFree, MuntheKaas, Tableau
from lgcontrol.integrators._internal import check_tableau, crouch_grossman
from lgcontrol.integrators._methods import DENSE, DORMAND_PRINCE, RK4
from lgcontrol.integrators._solution import polynomial
from lgcontrol.integrators._tableau import _density, _size, _square, _stage_weights, _trees

ROUNDING = 1e-13  # products of a few coefficients with sixteen digits

CLASSICAL = [method for method in METHODS.values() if isinstance(method, MuntheKaas)]


def test_rooted_trees_are_all_there():
    """Their numbers are Cayley's."""
    assert [len(_trees(n)) for n in range(1, 9)] == [1, 1, 2, 4, 9, 20, 48, 115]
    assert len(set(_trees(8))) == 115


@pytest.mark.parametrize("method", CLASSICAL, ids=lambda m: m.name)
def test_declared_orders_satisfy_their_conditions(method):
    declared = {"euler": 1, "midpoint": 2, "heun": 2, "rk4": 4, "dormand_prince5": 5}
    assert method.order == declared[method.name]
    assert max(check_tableau(method.tableau, method.order).values()) < ROUNDING
    with pytest.raises(ValueError, match=f"is of order {method.order}, not {method.order + 1}"):
        check_tableau(method.tableau, method.order + 1)


def test_the_pair_has_two_orders_and_repeats_its_last_stage():
    assert (DORMAND_PRINCE.order, DORMAND_PRINCE.embedded_order) == (5, 4)
    assert DORMAND_PRINCE.A[-1] == DORMAND_PRINCE.b[:-1]
    assert DORMAND_PRINCE.stages == 6 and RK4.embedded_order == 0


def test_interpolation_satisfies_the_order_conditions_inside_the_step():
    """``Σ bᵢ(s) φᵢ(τ) = s^|τ| / γ(τ)`` up to order 4, with bᵢ(s) read off unit slopes."""
    b, slopes = np.array(DORMAND_PRINCE.b), np.eye(7)
    bend = slopes[0] - b
    dense = np.stack([b, bend, b - slopes[6] - bend, np.array(DENSE)], axis=-1)
    A = _square(DORMAND_PRINCE.A)
    for s in np.linspace(0, 1, 11):
        weights = polynomial(dense, s)
        for size in range(1, 5):
            for tree in _trees(size):
                found = weights @ _stage_weights(A, tree)
                assert found == pytest.approx(s ** _size(tree) / _density(tree), abs=ROUNDING)


def test_conditions_are_named_by_their_trees():
    violations = check_tableau(RK4, 4)
    assert list(violations) == [
        "[]", "[[]]", "[[[]]]", "[[][]]", "[[[[]]]]", "[[[][]]]", "[[[]][]]", "[[][][]]",
    ]  # fmt: skip
    spoiled = Tableau(A=[(), (1 / 2,), (1 / 4, 1 / 4), (0, 0, 1)], b=RK4.b)
    assert spoiled.order == 2
    with pytest.raises(ValueError, match=r"of order 2, not 3: \[\[\[\]\]\] is off by 0.042"):
        check_tableau(spoiled, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": [()], "b": (0.5, 0.5)}, "A has 1 rows and b 2 weights"),
        ({"A": [], "b": ()}, "A has 0 rows"),
        ({"A": [(0.5,)], "b": (1,)}, "only explicit methods"),
        ({"A": [(), (0, 1)], "b": (0.5, 0.5)}, "row 1 of A uses stages from 1 on"),
        ({"A": [(), (1,)], "b": (0.5, 0.6)}, "b sums to 1.1, expected 1"),
        ({"A": [(), (1,)], "b": (0.5, 0.5), "c": (0, 0.5)}, r"c\[1\] is 0.5 but row 1 of A sums"),
        ({"A": [(), (1,)], "b": (0.5, 0.5), "c": (0,)}, "c has length 1, b 2"),
        ({"A": [(), (np.nan,)], "b": (0.5, 0.5)}, "not finite"),
        ({"A": [(), (1,)], "b": (0.5, 0.5), "b_embedded": (1, 1)}, "b_embedded sums to 2"),
    ],
)
def test_a_wrong_tableau_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Tableau(**arguments)


def test_orders_that_cannot_be_checked():
    for order in (0, 9):
        with pytest.raises(ValueError, match="orders 1 to 8"):
            check_tableau(RK4, order)


def test_tableaus_compare_by_value():
    twin = Tableau(A=[(), (0.5, 0), (0, 0.5, 0), (0, 0, 1)], b=RK4.b, c=(0, 0.5, 0.5, 1))
    assert twin == RK4 and hash(twin) == hash(RK4)


@pytest.mark.parametrize(
    ("A", "b", "message"),
    [
        (((), ((0.5, 0.5),)), ((1.0,),), "stage 1 uses slopes from 1 on"),
        (((),), ((0.5, 0.5),), "b has more weights than the 1 stages"),
        (((),), ((0.5,),), "b sums to 0.5"),
    ],
)
def test_a_wrong_commutator_free_method_is_refused(A, b, message):
    with pytest.raises(ValueError, match=f"mine: {message}"):
        CommutatorFree("mine", 1, A, b)


def test_crouch_grossman_conditions_of_order_three():
    """Beyond the classical ones: ``Σ bᵢ² cᵢ + 2 Σ_{i<j} bᵢ cᵢ bⱼ = 1/3``."""
    b = np.array([13 / 51, -2 / 3, 24 / 17])
    A = np.array([[0, 0, 0], [3 / 4, 0, 0], [119 / 216, 17 / 108, 0]])
    c = A.sum(axis=1)
    check_tableau(Tableau(A=A, b=b), 3)
    later = np.array([b[i + 1 :].sum() for i in range(3)])
    assert b**2 @ c + 2 * (b * c) @ later == pytest.approx(1 / 3, abs=ROUNDING)
    assert METHODS["crouch_grossman3"] == crouch_grossman("crouch_grossman3", 3, A, b)

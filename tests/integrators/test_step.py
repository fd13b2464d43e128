"""One step on values of every kind: SX, MX, DM, NumPy; derivatives; errors."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import trace
from lgcontrol.groups import SE3, SO2, SO3, Product, Rn
from lgcontrol.integrators import METHODS, MuntheKaas, Tableau, get_method

from ._problems import BODY, EXPLICIT, free_body, manufactured

METHOD_LIST = EXPLICIT
STATE = Product(pose=SE3, twist=Rn(6))
SAME = 1e-14

pytestmark = pytest.mark.parametrize("method", METHOD_LIST, ids=lambda m: m.name)


def test_values_of_every_kind_agree(method):
    field, _ = manufactured(STATE)
    x = STATE.random(1, 4)
    t, dt = 0.2, 0.1
    batch = method.move(STATE, field, t, x, dt)
    assert batch.shape == (4, 13)
    for row, expected in zip(x, batch, strict=True):
        alone = method.move(STATE, field, t, row, dt)  # batches take other vector instructions
        np.testing.assert_allclose(alone, expected, rtol=0, atol=SAME)
        result = method.move(STATE, field, t, ca.DM(row), dt)
        assert isinstance(result, ca.DM)
        np.testing.assert_allclose(np.asarray(result).ravel(), expected, rtol=0, atol=SAME)
    for symbol in (ca.SX, ca.MX):
        symbols = [symbol.sym("t"), symbol.sym("x", 13), symbol.sym("dt")]
        result = method.move(STATE, field, *symbols)
        assert isinstance(result, symbol)
        function = ca.Function("f", symbols, [result])
        for row, expected in zip(x, batch, strict=True):
            np.testing.assert_allclose(
                np.asarray(function(t, row, dt)).ravel(), expected, rtol=0, atol=SAME
            )


def test_results_stay_on_the_group(method):
    field, _ = manufactured(STATE)
    x = STATE.random(2)
    x[3:7] *= 1 + 1e-4  # a state that drifted: the step brings it back
    after = method.move(STATE, field, 0.0, x, 0.1)
    assert abs(np.linalg.norm(after[3:7]) - 1) < 4e-16


def test_backwards_undoes_forwards_up_to_the_order(method):
    field, _ = manufactured(STATE)
    x = STATE.random(3)
    back = []
    for dt in (0.02, 0.01):
        after = method.move(STATE, field, 0.5, x, dt)
        back.append(STATE.distance(method.move(STATE, field, 0.5 + dt, after, -dt), x))
    # even methods lose less: forward and backward errors cancel in their leading terms
    assert back[0] / back[1] > 2 ** (method.order + 0.7)


def test_no_step_is_the_identity_and_has_the_field_as_derivative(method):
    """At dt = 0 all exponentials are at zero, where careless ones have no derivative."""
    field, _ = manufactured(STATE)
    x, dt, e = STATE.random(4), ca.SX.sym("dt"), ca.SX.sym("e", 12)
    after = method.move(STATE, field, 0.3, STATE.plus(ca.SX(x), e), dt)
    moved = STATE.minus(after, ca.SX(x))
    rates = ca.Function("rates", [e, dt], [moved, ca.jacobian(moved, dt), ca.jacobian(moved, e)])
    still, velocity, sensitivity = (np.asarray(v) for v in rates(np.zeros(12), 0.0))
    np.testing.assert_allclose(still, 0, atol=SAME)
    np.testing.assert_allclose(velocity.ravel(), field(0.3, x), rtol=0, atol=10 * SAME)
    np.testing.assert_allclose(sensitivity, np.eye(12), rtol=0, atol=SAME)


def test_derivatives_of_a_step(method):
    """Against central differences, as linearization and MPC use them."""
    field, _ = manufactured(STATE)
    x, e = STATE.random(5), ca.MX.sym("e", 12)

    def moved(d):
        return STATE.minus(
            method.move(STATE, field, 0.1, STATE.plus(x, d), 0.2),
            method.move(STATE, field, 0.1, x, 0.2),
        )

    exact = np.asarray(ca.Function("J", [e], [ca.jacobian(moved(e), e)])(np.zeros(12)))
    h = 1e-6
    for i, step in enumerate(np.eye(12)):
        difference = (moved(h * step) - moved(-h * step)) / (2 * h)
        np.testing.assert_allclose(exact[:, i], difference, rtol=0, atol=2e-9)


def test_fields_may_return_lists(method):
    numbers = method.move(SO2, lambda t, x: [2.0], 0.0, SO2.identity, 0.5)
    np.testing.assert_allclose(SO2.log(numbers), [1.0], atol=1e-15)
    x = ca.SX.sym("x", 2)
    symbols = method.move(SO2, lambda t, x: [x[0] * 0 + 2.0], 0.0, x, 0.5)
    assert isinstance(symbols, ca.SX) and symbols.shape == (2, 1)


def test_symbolic_parameters_of_the_field(method):
    """x a number, the field symbolic: sensitivities to parameters from a fixed start."""
    p = ca.SX.sym("p")
    after = method.move(SO3, lambda t, x: p * ca.DM([0, 0, 1.0]), 0.0, ca.DM(SO3.identity), 0.5)
    derivative = ca.Function("f", [p], [ca.jacobian(SO3.log(after), p)])
    np.testing.assert_allclose(np.asarray(derivative(0.0)).ravel(), [0, 0, 0.5], atol=1e-15)


def test_wrong_fields_are_refused(method):
    for value in (np.zeros(4), np.zeros((3, 2)), ca.DM.zeros(4), np.float64(1.0)):
        with pytest.raises(ValueError, match="expected a tangent vector of SO3: 3 numbers"):
            method.move(SO3, lambda t, x, value=value: value, 0.0, SO3.identity, 0.1)


def test_names(method):
    assert get_method(method.name) is method and METHODS[method.name] is method
    twin = pickle.loads(pickle.dumps(method))
    assert twin == method and hash(twin) == hash(method)
    assert 1 <= method.order <= method.stages
    with pytest.raises(ValueError, match="valid names are euler, midpoint, .*Did you mean 'rk4'"):
        get_method("rk45")


def test_the_field_is_evaluated_once_a_stage(method):
    calls = []

    def field(t, x):
        calls.append(t)
        return np.zeros(3)

    method.move(SO3, field, 1.0, SO3.identity, 0.5)
    assert len(calls) == method.stages
    assert min(calls) >= 1.0 and max(calls) <= 1.5


def test_trailing_stages_without_weight_are_left_out(method):
    padded = Tableau(A=[(), (1.0,)], b=(1.0, 0.0))
    assert MuntheKaas("padded", padded).stages == 1
    field = free_body([1.0, 2.0, 3.0])
    x = BODY.random(0)
    np.testing.assert_array_equal(
        MuntheKaas("padded", padded).move(BODY, field, 0.0, x, 0.1),
        METHODS["euler"].move(BODY, field, 0.0, x, 0.1),
    )


def test_model_functions_and_plain_functions_give_the_same(method):
    field = trace("f", lambda t, x: ca.vertcat(x[1], -x[0], t), {"t": (), "x": (4,)}, ["d"])
    x = SO3.random(7)
    np.testing.assert_allclose(
        method.move(SO3, field, 0.4, x, 0.3),
        method.move(SO3, lambda t, x: np.array([x[1], -x[0], t]), 0.4, x, 0.3),
        rtol=0,
        atol=SAME,
    )

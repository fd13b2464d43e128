"""The contract of System: tracing, shapes, kinds of symbols, messages, pickling."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.systems import System, check_system

from ._examples import account, pendulum, quadrotor, satellite, turn, underwater

SAME = 1e-13  # rounding of a few dozen operations on numbers near one

BUILDERS = [pendulum, quadrotor, underwater]


@pytest.mark.parametrize("build", BUILDERS)
def test_sx_and_mx_give_the_same_system(build, rng):
    sx, mx = build(), build(symbol=ca.MX)
    x, u = sx.state.random(rng, (5,)), rng.normal(size=(5, sx.n_inputs))
    np.testing.assert_allclose(sx.f(0.0, x, u), mx.f(0.0, x, u), atol=SAME, rtol=SAME)
    np.testing.assert_allclose(
        sx.step("commutator_free4")(0.0, x, u, sx.nominal_parameters, 0.1),
        mx.step("commutator_free4")(0.0, x, u, mx.nominal_parameters, 0.1),
        atol=10 * SAME,
        rtol=10 * SAME,
    )
    here, there = sx.linearize(x[0], u[0]), mx.linearize(x[0], u[0])
    for name in "ABCD":
        np.testing.assert_allclose(
            getattr(here, name), getattr(there, name), atol=100 * SAME, rtol=100 * SAME
        )


def test_field_takes_batches_and_symbols():
    system = quadrotor()
    x = system.state.random(1, (4, 3))
    assert system.f(0.0, x).shape == (4, 3, 12)
    symbol = ca.SX.sym("x", 13)
    assert system.f(0.0, symbol, ca.DM.ones(4), ca.DM(0, 1)).shape == (12, 1)


def test_a_system_may_have_neither_inputs_nor_parameters():
    spin = System("spin", SO3, lambda t, x, u, p: [0, 0, 1 + t])
    np.testing.assert_array_equal(spin.f(1.0, SO3.identity), [0.0, 0.0, 2.0])
    lin = spin.linearize(SO3.identity)
    assert lin.B.shape == (3, 0)
    assert lin.controllability().rank == 0
    run = spin.rollout(SO3.identity, dt=0.1, steps=10)
    np.testing.assert_allclose(SO3.log(run.x[-1]), [0, 0, 1.5], atol=SAME)
    assert run.u.shape == (10, 0)


def test_a_casadi_function_is_a_field():
    x, u = ca.SX.sym("q", 2), ca.SX.sym("f")
    field = ca.Function("field", [ca.SX.sym("t"), x, u, ca.SX(0, 1)], [ca.vertcat(x[1], u)])
    cart = System("cart", Rn(2), field, inputs=["force"])
    np.testing.assert_array_equal(cart.f(0.0, [1.0, 2.0], [3.0]), [2.0, 3.0])


def test_an_interpolated_table_is_a_field_in_mx():
    table = ca.interpolant("table", "linear", [[0.0, 1.0, 2.0]], [0.0, 1.0, 4.0])
    tank = System("tank", Rn(1), lambda t, x, u, p: -table(x), symbol=ca.MX)
    np.testing.assert_allclose(tank.f(0.0, [1.5]), [-2.5])


def test_outputs_on_a_group():
    pose_sensor = System(
        "sensor",
        Product(pose=SE3, twist=Rn(6)),
        lambda t, x, u, p: ca.vertcat(x[7:], ca.DM.zeros(6)),
        h=lambda t, x, u, p: SE3.compose(x[:7], SE3.from_position([0.1, 0.0, 0.3])),
        output=SE3,
    )
    x = pose_sensor.state.random(3)
    y = pose_sensor.h(0.0, x)
    assert np.abs(SE3.act(x[:7], [0.1, 0.0, 0.3]) - y[:3]).max() < SAME
    assert pose_sensor.linearize(x).C.shape == (6, 12)


def test_a_landmark_direction_is_an_output():
    landmark = np.array([3.0, -1.0, 2.0])

    def direction(t, x, u, p):
        inverse = ca.vertcat(-x[3:6], x[6])
        seen = turn(inverse, landmark - x[:3])
        return seen / ca.norm_2(seen)

    camera = System(
        "camera",
        SE3,
        lambda t, x, u, p: u,
        inputs=["vx", "vy", "vz", "wx", "wy", "wz"],
        h=direction,
        output=Rn(3, ("x", "y", "z")),
    )
    X = SE3.random(5)
    expected = SE3.act(SE3.inverse(X), landmark)
    np.testing.assert_allclose(
        camera.h(0.0, X), expected / np.linalg.norm(expected), atol=SAME, rtol=SAME
    )
    report = camera.linearize(X).observability()
    assert report.rank == 2  # of a direction only two numbers are seen
    assert "not observable" in str(report)


def test_quantities_take_inputs_and_parameters():
    system = System(
        "motor",
        Rn(1, ("speed",)),
        lambda t, x, u, p: p * u,
        inputs=["voltage"],
        parameters=["gain"],
        quantities={"power": lambda t, x, u, p: [u * x]},
    )
    assert system.quantities["power"](0.0, [[2.0], [3.0]], [4.0], [1.0]).tolist() == [[8.0], [12.0]]


def test_wheels_keep_the_total_momentum():
    system = satellite()
    x = system.state.random(2)
    run = system.rollout(x, system.full_input([0.05, -0.02, 0.01]), 0.01, steps=500)
    momentum = system.invariants(run.x)
    assert np.abs(momentum - momentum[0]).max() < 1e-9  # rk4 at 1 rad/s: (dt w)^5 a step


@pytest.mark.parametrize("build", [*BUILDERS, satellite, account])
def test_systems_pickle(build, rng):
    system = build()
    system.step()  # a derived function must not keep it from pickling
    copy = pickle.loads(pickle.dumps(system))
    assert (copy.name, copy.state, copy.inputs) == (system.name, system.state, system.inputs)
    x, u = system.state.random(rng), rng.normal(size=system.n_inputs)
    np.testing.assert_array_equal(copy.f(0.0, x, u), system.f(0.0, x, u))
    np.testing.assert_array_equal(copy.linearize(x, u).A, system.linearize(x, u).A)


def test_repr_says_what_it_is():
    assert repr(account()) == (
        "System('account', dt=0.1 s, state=Rn(2), inputs=[deposit], parameters=[gain])"
    )


stray = ca.SX.sym("drag")

FAULTS = {
    "state": (lambda: System("s", 3, lambda t, x, u, p: x), TypeError, "state must be a LieGroup"),
    "name": (lambda: System("", Rn(1), lambda t, x, u, p: x), ValueError, "non-empty text"),
    "rows": (
        lambda: System("s", SO3, lambda t, x, u, p: x),
        ValueError,
        r"s: f returned shape \(4, 1\), expected a column of 3 \(state SO3 \(4\)\)",
    ),
    "nothing": (
        lambda: System("s", Rn(1), lambda t, x, u, p: None),
        TypeError,
        "f returned NoneType, expected a CasADi column",
    ),
    "symbol kind": (
        lambda: System("s", Rn(1), lambda t, x, u, p: ca.MX.sym("m")),
        TypeError,
        "symbol=casadi.MX",
    ),
    "free symbol": (
        lambda: System("s", Rn(1), lambda t, x, u, p: stray * x),
        ValueError,
        "depends on symbols that are not its arguments .*drag.*parameters",
    ),
    "dt": (lambda: System("s", Rn(1), lambda t, x, u, p: x, dt=-1), ValueError, "got -1"),
    "h alone": (
        lambda: System("s", Rn(1), lambda t, x, u, p: x, h=lambda t, x, u, p: x),
        ValueError,
        "h and output, .* go together",
    ),
    "output alone": (
        lambda: System("s", Rn(1), lambda t, x, u, p: x, output=Rn(1)),
        ValueError,
        "go together",
    ),
    "two inputs": (
        lambda: System("s", Rn(1), lambda t, x, u, p: x, inputs=["a", "a"]),
        ValueError,
        "two inputs are called 'a'",
    ),
    "quantity": (
        lambda: System("s", Rn(1), lambda t, x, u, p: x, quantities={"a b": lambda *_: 1}),
        ValueError,
        "'a b' cannot name a function",
    ),
    "symbol": (
        lambda: System("s", Rn(1), lambda t, x, u, p: x, symbol=float),
        ValueError,
        "casadi.SX or casadi.MX",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault):
    build, error, message = FAULTS[fault]
    with pytest.raises(error, match=message):
        build()


@pytest.mark.parametrize("take", ["f", "rollout", "linearize", "trim", "check"])
def test_tangent_vectors_and_points_are_told_from_states(take):
    quad = quadrotor()
    calls = {
        "f": lambda x: quad.f(0.0, x),
        "rollout": lambda x: quad.rollout(x, dt=0.1, steps=2),
        "linearize": quad.linearize,
        "trim": quad.trim,
        "check": lambda x: check_system(quad, x),
    }
    with pytest.raises(ValueError, match=r"12 is the tangent dimension: state\.plus\(x, d\)"):
        calls[take](np.zeros(12))
    if take != "linearize":  # which takes points
        with pytest.raises(TypeError, match=r"give the point's \.x"):
            calls[take](quad.trim())


def test_what_is_made_of_home_changes_no_system():
    system = System("line", Rn(2), lambda t, x, u, p: x, home=[1.0, 2.0])
    start = system.home
    start[0] = 7.0
    assert np.array_equal(system.home, [1.0, 2.0])


def test_who_shares_a_system_changes_nothing_for_others():
    """A tree keeps its system; copies by pickle are as closed."""
    system = pendulum()
    for shared in (system, pickle.loads(pickle.dumps(system))):
        for name in ("name", "limits", "quantities", "f", "errors"):
            with pytest.raises(AttributeError, match=f"{name} of the system .* make another"):
                setattr(shared, name, None)
        for mapping in (shared.limits, shared.quantities):
            with pytest.raises(TypeError, match="assignment"):
                mapping["rate"] = (-1.0, 1.0)

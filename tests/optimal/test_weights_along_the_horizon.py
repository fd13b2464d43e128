"""Terms at nodes and weights that change along the horizon: least squares, IPOPT, NumPy, loops."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.controllers import MPC
from lgcontrol.groups import SO3, Rn, Translation
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Rates,
    Residual,
    terminal_set,
    with_rates,
)
from lgcontrol.systems import Parameter, System, Waypoints

from .examples import satellite
from .test_interior_point import in_numpy
from .test_planning_kernel import SAME_LOG, SAME_NODES, NewtonKKTSolver, Ready

N, DT = 12, 0.1
CLOSE = 1e-7  # two routes to the optimum of a convex problem; solves end at 1e-6
NEAR = 1e-5  # solves of curved problems by two methods
CART = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0]], inputs=["push"])
Q = np.linspace(1.0, 4.0, N)[:, None, None] * np.array([[1.0, 0.2], [0.2, 0.5]])
R = np.linspace(0.5, 0.1, N)[:, None, None]
AIM = SO3.exp(np.array([0.9, -0.4, 0.3]))
UNEVEN = np.linspace(0.05, 0.2, N)


def place(t, x, u, p):
    return x[:1] - 0.5


def least_squares(x0, steps, Q, R, end, nodes):
    """Pushes of the cart by stacked rows of ``½ |a − B u|²``; of nodes: place → weight."""
    rows, right = [], []
    gain, free = np.zeros((2, N)), np.asarray(x0, float)

    def add(root, matrix, value):
        rows.append(root @ matrix)
        right.append(-root @ value)

    for k in range(N + 1):
        weight = end if k == N else steps[k] * Q[k]
        add(np.linalg.cholesky(weight).T, gain, free)
        if k in nodes:
            add(np.sqrt([[nodes[k]]]), gain[:1], free[:1] - 0.5)
        if k < N:
            h = steps[k]
            add(np.sqrt(h * R[k]), np.eye(N)[k : k + 1], np.zeros(1))
            A, B = np.array([[1.0, h], [0.0, 1.0]]), np.array([h**2 / 2, h])
            gain, free = A @ gain, A @ free
            gain[:, k] += B
    return np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=None)[0]


@pytest.mark.parametrize("steps", [np.full(N, DT), UNEVEN], ids=["equal", "uneven"])
def test_plans_are_those_of_least_squares(steps):
    weights = np.array([3.0, 1.0, 5.0])
    gates = Residual(place, weights[:, None, None], at=range(4, N + 1, 4), name="gates")
    problem = OptimalControlProblem(
        CART, N, DT if (steps == DT).all() else steps, Q=Q, R=R, terminal=2.0,
        reference=[0.0, 0.0], residuals=[gates, Residual(place, 7.0, at=range(6, 7))],
    )  # fmt: skip
    wanted = least_squares([1.0, 0.0], steps, Q, R, 2 * np.eye(2), {4: 3, 6: 7, 8: 1, 12: 5})
    for found in (problem.solve([1.0, 0.0]), in_numpy(problem).solve([1.0, 0.0])):
        np.testing.assert_allclose(found.u[:, 0], wanted, atol=CLOSE)
    assert np.ptp(wanted) > 1.0


def test_one_weight_for_all_steps_is_that_weight():
    one = OptimalControlProblem(CART, N, DT, Q=2.0, R=0.3, reference=[0.0, 0.0])
    stack = np.full((N, 1, 1), 2.0), np.full((N, 1, 1), 0.3)
    many = OptimalControlProblem(CART, N, DT, Q=stack[0], R=stack[1], reference=[0.0, 0.0])
    assert many.Q.shape == (2, 2)
    assert np.array_equal(many.solve([1.0, 0.0]).u, one.solve([1.0, 0.0]).u)


def test_the_last_weight_is_held_beyond_the_horizon():
    problem = OptimalControlProblem(CART, N, DT, Q=Q, reference=[0.0, 0.0])
    np.testing.assert_allclose(problem.terminal, N * DT * Q[-1])
    held = problem.with_arguments(terminal="riccati").solve([1.0, 0.0])
    last = problem.with_arguments(Q=Q[-1], terminal="riccati").solve([1.0, 0.0])
    np.testing.assert_allclose(held._setting.terminal, last._setting.terminal)


def tumbling(**options):
    """A slew with a tilted gate, costs of a stretch and a state that shall be small at last."""
    body = satellite(0.6)
    terms = {
        "Q": {"attitude": np.linspace(0.1, 3.0, 15)[:, None, None], "rate": 0.2},
        "R": np.linspace(0.4, 0.1, 15)[:, None, None], "reference": body.state.identity,
        "residuals": [
            Residual.from_goal(lambda t, x, u, p: x[:4], AIM, SO3, 6.0, at=range(8, 9), name="aim"),
            Residual(lambda t, x, u, p: x[4:] ** 2, 9.0, at="terminal", name="still"),
            Residual(lambda t, x, u, p: u[:2] * x[4], 2.0, at="start", name="first"),
        ],
        "costs": [
            Cost(lambda t, x, u, p: ca.exp(x[5] + u[1]), np.linspace(0.0, 0.2, 15)),
            Cost(lambda t, x, u, p: ca.sin(x[1]) * t, 0.3, at=range(3, 7), name="stretch"),
        ],
    }  # fmt: skip
    return OptimalControlProblem(body, 15, **({"dt": 0.2} | terms | options))


TURNED = np.concatenate([SO3.exp(np.array([1.2, 0.3, -0.8])), [0.1, 0.4, 0.0]])
VARIANTS = {
    "left": {},
    "gauss": {"quadrature": "gauss"},
    "uneven": {"dt": np.linspace(0.1, 0.3, 15)},
    "limited": {"bounds": [Bound("rate", -0.35, 0.35)]},
    "linear inputs": {"hold": "first"},
    "blocks": {"blocks": 3},
    "in parts": {"method": "rk4", "substeps": 4, "bounds": [Bound("rate", -0.35, 0.35)]},
}


def by_hand(problem, found):
    """The cost, term by term."""
    x, u, t, h, total = found.x, found.u, found.t, problem.steps, 0.0
    for k in range(problem.horizon):
        e = problem.system.error(x[k], problem.system.state.identity)
        total += h[k] / 2 * (e @ problem.Q[k] @ e + u[k] @ problem.R[k] @ u[k])
        total += h[k] * np.linspace(0.0, 0.2, 15)[k] * np.exp(x[k, 5] + u[k, 1])
        if k == 8:
            total += 3.0 * np.sum(SO3.minus(x[k, :4], AIM) ** 2)
        if 3 <= k < 7:
            total += 0.3 * np.sin(x[k, 1]) * t[k]
    total += np.sum((u[0, :2] * x[0, 4]) ** 2)
    e = problem.system.error(x[-1], problem.system.state.identity)
    return total + e @ problem.terminal @ e / 2 + 4.5 * np.sum(x[-1, 4:] ** 4)


@pytest.mark.usually(name=("gauss", "uneven", "limited"))
@pytest.mark.parametrize("name", VARIANTS)
def test_plans_end_where_ipopt_does(name):
    problem = tumbling(**VARIANTS[name])
    ours, theirs = problem.solve(TURNED), problem.solve(TURNED, solver="ipopt", tolerance=1e-9)
    assert ours.is_success and theirs.is_success
    assert ours.cost == pytest.approx(theirs.cost, rel=NEAR)
    np.testing.assert_allclose(ours.u, theirs.u, atol=1e-3)
    if name in ("left", "uneven", "limited", "in parts"):
        assert ours.cost == pytest.approx(by_hand(problem, ours), rel=1e-9)


@pytest.mark.usually(name=("in parts",))
@pytest.mark.compiled
@pytest.mark.parametrize("name", ["left", "limited", "in parts"])
def test_c_goes_the_way_of_numpy(name):
    ready = Ready(tumbling(**VARIANTS[name]), TURNED)
    ours, oracle = ready.one_way(), ready.in_numpy()
    assert len(ours.log) == len(oracle.log)
    np.testing.assert_allclose(ours.log[:, 0], oracle.log[:, 0], rtol=SAME_LOG)
    np.testing.assert_allclose(ours.u, oracle.iterate.u, atol=SAME_NODES)
    solver = NewtonKKTSolver(ready.model, interprets=True)
    interpreted = solver.solve(ready.nodes, ready.setting, ready.x0)
    np.testing.assert_allclose(interpreted.u, ours.u, atol=SAME_NODES)


def per_time(t, x, u, p):
    return x[0] / t - 3.0


def root(t, x, u, p):
    return ca.sqrt(x[0]) - 0.2 * u[0] * p[0]


def slopes_of_root(t, x, u, p):
    return ca.horzcat(1 / (2 * ca.sqrt(x[0])), 0), -0.2 * p[0]


def later(t, x, u, p):
    return ca.log(t - DT / 2) * x


def gain(t, x, u, p):
    return -ca.log(x[0])


def everywhere(value):
    """A term that is zero at the start, where others have no weight, and is finite there."""

    def function(t, x, u, p):
        is_start = t < DT * 0.9
        moved = (ca.if_else(is_start, ca.DM(c), own) for c, own in ((0.5, t), ([1, 1], x)))
        return ca.if_else(is_start, 0.0, value(*moved, u, p))

    return function


def slopes_everywhere(t, x, u, p):
    is_start = t < DT * 0.9
    by_x, by_u = slopes_of_root(t, ca.if_else(is_start, ca.DM([1, 1]), x), u, p)
    return ca.if_else(is_start, 0.0, by_x), ca.if_else(is_start, 0.0, by_u)


STACK = np.r_[0.0, np.ones(N - 1)]
# Time and place vanish at the start, which has no weight: the term itself, and another statement.
UNWEIGHED = {
    "of time": lambda f, first: {"residuals": [Residual(f(per_time), 0.2, at=range(first, N))]},
    "root": lambda f, first: {"residuals": [Residual(f(root), 0.1, at=range(first, N))]},
    "root, its slopes": lambda f, first: {
        "residuals": [
            Residual(
                f(root), 0.1, at=range(first, N),
                derivatives=slopes_of_root if first else slopes_everywhere,
            )
        ]
    },
    "with the end": lambda f, first: {"costs": [Cost(f(gain), 0.1, at=range(first, N + 1))]},
    "stack": lambda f, first: {"costs": [Cost(f(gain), STACK if first else 1.0)]},
    "squares": lambda f, first: {
        "residuals": [Residual(f(root), STACK[:, None, None] if first else 1.0)]
    },
    "gauss": lambda f, first: {
        "residuals": [Residual(f(later), STACK[:, None, None] if first else 1.0)],
        "quadrature": "gauss",
    },
    "parameter": lambda f, first: {"residuals": [Residual(f(per_time), "a", at=range(first, N))]},
    "collocation": lambda f, first: {
        "residuals": [Residual(f(per_time), at=range(first, N))], "hold": "collocation"
    },
}  # fmt: skip


def unweighed(name, f=lambda value: value, first=1):
    return OptimalControlProblem(
        CART, N, DT, Q=1.0, R=0.1, terminal=1.0, reference=[1.0, 0.0],
        parameters=[Parameter("a", nominal=1.0)],
        **UNWEIGHED[name](f, first),
    )  # fmt: skip


@pytest.mark.parametrize("name", UNWEIGHED)
def test_terms_need_not_be_finite_where_they_have_no_weight(name):
    problem, start = unweighed(name), [0.0, 1.0]
    wanted = unweighed(name, everywhere, 0).solve(start, tolerance=1e-9)
    assert wanted.is_success and np.ptp(wanted.u) > 0.1
    for found in (
        problem.solve(start, tolerance=1e-9),
        problem.solve(start, tolerance=1e-9, solver="ipopt"),
    ):
        assert found.is_success
        assert found.cost == pytest.approx(wanted.cost, rel=CLOSE)
        np.testing.assert_allclose(found.u, wanted.u, atol=NEAR)


@pytest.mark.usually(name=("root, its slopes", "with the end"))
@pytest.mark.compiled
@pytest.mark.parametrize("name", ["of time", "root, its slopes", "with the end"])
def test_terms_without_a_weight_are_as_harmless_in_c(name):
    ready = Ready(unweighed(name), np.array([0.0, 1.0]))
    ours, oracle = ready.one_way(), ready.in_numpy()
    assert ours.status == "converged" and len(ours.log) == len(oracle.log)
    np.testing.assert_allclose(ours.log[:, 0], oracle.log[:, 0], rtol=SAME_LOG)
    np.testing.assert_allclose(ours.u, oracle.iterate.u, atol=SAME_NODES)


@pytest.mark.compiled
def test_other_numbers_and_nodes_compile_nothing():
    problem = tumbling()
    gate = Residual.from_goal(
        lambda t, x, u, p: x[:4],
        AIM,
        SO3,
        2.0,
        at=range(3, 4),
        name="aim",
    )
    costs = [
        Cost(problem.costs[0].of, np.linspace(1.0, 0.3, 15)),
        Cost(problem.costs[1].of, -0.4, at=range(9, 10), name="stretch"),
    ]
    other = problem.with_arguments(residuals=[gate, *problem.residuals[1:]], costs=costs)
    identities = {InteriorPointSolver(one).transcription.identity for one in (problem, other)}
    assert len(identities) == 1 and None not in identities
    assert other.solve(TURNED).u[0, 0] != problem.solve(TURNED).u[0, 0]


def test_a_loop_weighs_the_nodes_of_each_plan():
    gate = Residual(place, 20.0, at=range(4, 5))
    options = {"Q": Q, "R": R, "terminal": 1.0, "reference": [0.0, 0.0], "residuals": [gate]}
    mpc = MPC(CART, N, DT, **options)
    x = np.array([1.0, 0.0])
    for k in range(4):
        u = mpc(k * DT, x)
        nodes = {4: 20.0}
        wanted = least_squares(x, np.full(N, DT), Q, R, np.eye(2), nodes)[0]
        assert u[0] == pytest.approx(wanted, abs=NEAR)
        x = np.array([x[0] + DT * x[1] + DT**2 / 2 * u[0], x[1] + DT * u[0]])


def test_functions_of_time_weigh_by_the_clock_of_a_loop():
    # A weight that is a function of absolute time stands in the function of a term.
    def late(t, x, u, p):
        return ca.sqrt(1 + 5 * t) * x

    mpc = MPC(CART, N, DT, Q=0.0, R=0.2, terminal=1.0, residuals=[Residual(late)], reference=[0, 0])
    for k in range(3):
        t, x = 0.5 * k, np.array([1.0 - 0.3 * k, 0.0])
        times = t + DT * np.arange(N)
        weights = (1 + 5 * times)[:, None, None] * np.eye(2)
        wanted = least_squares(x, np.full(N, DT), weights, np.full((N, 1, 1), 0.2), np.eye(2), {})
        mpc.reset()
        assert mpc(t, x)[0] == pytest.approx(wanted[0], abs=NEAR)


def test_weights_are_parameters_at_nodes_too():
    terms = {
        "residuals": [Residual(place, "gate", at=range(6, 7))],
        "costs": [Cost(lambda t, x, u, p: ca.exp(x[1]), "haste", at=range(2, 5))],
        "parameters": ["gate", "haste"], "reference": [0.0, 0.0],
    }  # fmt: skip
    problem = OptimalControlProblem(CART, N, DT, Q=Q, R=R, **terms)
    fixed = OptimalControlProblem(
        CART, N, DT, Q=Q, R=R, reference=[0.0, 0.0],
        residuals=[Residual(place, 4.0, at=range(6, 7))],
        costs=[Cost(lambda t, x, u, p: ca.exp(x[1]), 0.7, at=range(2, 5))],
    )  # fmt: skip
    found = problem.solve([1.0, 0.0], p={"gate": 4.0, "haste": 0.7}, tolerance=1e-10)
    np.testing.assert_allclose(found.u, fixed.solve([1.0, 0.0], tolerance=1e-10).u, atol=CLOSE)
    derivative = found.sensitivities().by("gate").u
    near = [
        problem.solve([1.0, 0.0], p={"gate": 4.0 + s, "haste": 0.7}, tolerance=1e-11).u
        for s in (-1e-3, 1e-3)
    ]
    np.testing.assert_allclose(derivative, (near[1] - near[0]) / 2e-3, atol=1e-5)
    assert np.abs(derivative).max() > 1e-2


def test_weights_of_costs_become_parameters():
    haste = Cost(lambda t, x, u, p: ca.exp(-x[1]), -0.2, name="haste")
    problem = build(costs=[haste, Cost(lambda t, x, u, p: x[0] ** 4, None, 2.0, name="end")])
    symbolic = problem.symbolic("haste.weight", "end.terminal")
    assert symbolic.nominal_parameters.tolist() == [-0.2, 2.0]
    wanted = problem.solve([1.0, 0.0], tolerance=1e-9)
    np.testing.assert_allclose(symbolic.solve([1.0, 0.0], tolerance=1e-9).u, wanted.u, atol=CLOSE)
    values = {"haste.weight": -0.1, "end.terminal": 1.0}
    other = symbolic.solve([1.0, 0.0], p=values).u
    assert np.abs(other - wanted.u).max() > 1e-2
    with pytest.raises(UnknownNameError, match="haste.weight, end.terminal"):
        problem.symbolic("haste.terminal")


def test_collocation_keeps_nodes_and_weights():
    problem = build(
        Q=Q, R=R, terminal=1.0, residuals=[Residual(place, 20.0, at=range(4, 5))],
        hold="collocation",
    )  # fmt: skip
    ours = problem.solve([1.0, 0.0], tolerance=1e-9)
    theirs = problem.solve([1.0, 0.0], solver="ipopt", tolerance=1e-9)
    np.testing.assert_allclose(ours.u, theirs.u, atol=NEAR)
    constant = build(Q=Q[0], R=R[0], terminal=1.0, hold="collocation").solve([1.0, 0.0])
    assert np.abs(ours.u - constant.u).max() > 0.1


def test_rates_keep_nodes_and_weights():
    problem = OptimalControlProblem(
        CART, N, DT, Q=Q, R=R, terminal=1.0, reference=[0.0, 0.0],
        residuals=[Residual(place, 20.0, at=range(4, 5))],
    )  # fmt: skip
    moved = with_rates(problem, Rates(weight=0.1))
    ours = moved.solve([1.0, 0.0, 0.0])
    np.testing.assert_allclose(ours.u, moved.solve([1.0, 0.0, 0.0], solver="ipopt").u, atol=NEAR)
    x, acting = ours.x, ours.x[:-1, 2] + DT * ours.u[:, 0]
    before = ours.x[:-1, 2]
    cost = 10.0 * (x[4, 0] - 0.5) ** 2 + x[N, :2] @ x[N, :2] / 2
    cost += (
        DT
        / 2
        * sum(
            x[k, :2] @ Q[k] @ x[k, :2] + R[k, 0, 0] * before[k] ** 2 + 0.1 * ours.u[k, 0] ** 2
            for k in range(N)
        )
    )
    assert np.abs(acting).max() > 0.1
    assert ours.cost == pytest.approx(cost, rel=1e-9)


def test_the_error_of_a_transcription_leaves_nodes_alone():
    # A lag that is held exactly: its one cost is at a node, where nothing is integrated.
    lag = System("lag", Rn(1), lambda t, x, u, p: u, inputs=["u"])
    gate = Residual(lambda t, x, u, p: x - 1.0, 10.0, at=range(3, 4))
    problem = OptimalControlProblem(lag, 5, 0.2, Q=0.0, terminal=0.0, R=0.1, residuals=[gate])
    error = problem.solve([0.0]).transcription_error()
    assert abs(error.cost_change) < 1e-9


def test_waypoints_pull_at_their_nodes():
    plane = Translation("xy")
    path = Waypoints(plane, [0.0, 0.6, 1.2], [[0, 0], [1, 1], [2, 0]])
    point = System("point", Rn(2), lambda t, x, u, p: u, inputs=["vx", "vy"])
    visits = Residual.from_goal(lambda t, x, u, p: x, path, plane, 1e4, at=range(0, 13, 6))
    found = OptimalControlProblem(
        point, 12, 0.1, Q=0.0, terminal=0.0, R=1.0, residuals=[visits]
    ).solve([0.0, 0.0])
    np.testing.assert_allclose(found.x[[6, 12]], [[1, 1], [2, 0]], atol=1e-3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Residual(place, at="end"), "unknown place 'end'.*start"),
        (lambda: Residual(place, at=range(3, 3)), "has no node"),
        (lambda: Cost(place, at=3), r"unknown place '3'.*Node 3 is range\(3, 4\)"),
        (lambda: build(Q=np.ones(N)), r"a number for each step is \(12, 1, 1\)"),
        (lambda: Residual(place, terminal=1.0, at="start"), "terminal= weighs it at the end"),
        (lambda: Cost(place, terminal=1.0, at=range(4, 5)), "leaves to weight="),
        (lambda: build(residuals=[Residual(place, at=range(13, 14))]), "nodes are 0 to 12"),
        (lambda: build(costs=[Cost(place, at=range(-1, 3))]), "nodes are 0 to 12"),
        (lambda: build(Q=np.ones((N + 1, 1, 1))), r"a matrix for each of the 12 steps or"),
        (lambda: build(terminal=np.ones((N, 1, 1))), "it is one weight"),
        (lambda: build(R=np.linspace(1, -1, N)[:, None, None]), "R of step 6 must be positive"),
        (lambda: build(Q=lambda t: 1 + t), "one matrix for each of the 12 steps"),
        (lambda: build(costs=[Cost(place, np.ones(3))]), "weight of cost 'cost'"),
        (lambda: terminal_set(build(Q=Q)), "give one Q and one R for all steps"),
        (lambda: build(Q=Q).solve([1, 0], refine=1e-2), "Q has an entry for each step"),
        (
            lambda: build(residuals=[Residual(place, at=range(3, 4))]).solve([1, 0], refine=1e-2),
            "residual 'residual' counts at node 3",
        ),
    ],
)  # fmt: skip
def test_faults_are_named(make, message):
    with pytest.raises((ValueError, TypeError, UnknownNameError), match=message):
        make()


def build(**options):
    return OptimalControlProblem(CART, N, DT, reference=[0.0, 0.0], **options)

"""Radau collocation: inputs, integrals and states at the collocation points."""

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp

from lgcontrol.groups import SO3, Rn
from lgcontrol.integrators import get_method
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Residual,
)
from lgcontrol.optimal._input_shapes import shape_of
from lgcontrol.optimal._transcription import Nodes, Transcription
from lgcontrol.systems import Input, System

from .examples import satellite
from .test_hold import cart, swing

AWAY = [np.cos(0.7), np.sin(0.7), 0.0]
RADAU = get_method("radau_iia5")


@pytest.mark.parametrize(
    ("method", "quadrature", "order"),
    [("radau_iia5", "gauss", 4), ("radau_iia5", "collocation", 5), ("gauss6", "collocation", 6)],
)
def test_integrals_at_the_points_have_the_order_of_the_method(method, quadrature, order):
    system = System("lag", Rn(1), lambda t, x, u, p: -2 * x + u, inputs=["u"])
    terms = {
        "residuals": [Residual(lambda t, x, u, p: x * ca.sin(t), weight=2.0)],
        "costs": [Cost(lambda t, x, u, p: ca.exp(-t) * x)],
    }
    x0, u = 1.0, 0.5

    def state(t):
        return u / 2 + (x0 - u / 2) * np.exp(-2 * t)

    def rate(t):
        x = state(t)
        return x**2 / 2 + 3 * u**2 / 2 + (x * np.sin(t)) ** 2 + np.exp(-t) * x

    wanted, errors = quad(rate, 0, 2, epsabs=1e-14)[0], []
    for horizon in (4, 8, 16):
        problem = OptimalControlProblem(
            system, horizon, 2 / horizon, Q=1.0, R=3.0, terminal=0.0, reference=[0.0],
            quadrature=quadrature, method=method, **terms,
        )  # fmt: skip
        once, t = Transcription(problem), problem.times()
        setting = InteriorPointSolver(problem)._given.setting(t)
        nodes = Nodes(t, state(t)[:, None], np.full((horizon, 1), u))
        errors.append(abs(once.values(nodes, setting).cost - wanted))
    slopes = np.log2(np.array(errors[:-1]) / errors[1:])
    if method == "gauss6":  # whose leading terms nearly cancel here
        assert order - 0.2 < slopes[0] < order + 1.2
    else:
        assert np.allclose(slopes[-1], order, atol=0.2)


def test_derivatives_at_the_points_are_those_of_differences():
    system = satellite()
    problem = OptimalControlProblem(
        system, 2, 0.5, Q=1.0, R=0.1, reference=system.state.identity, method="radau_iia5",
        quadrature="collocation",
        costs=[Cost(lambda t, x, u, p: x[1] * u[0] + x[4] ** 2, 0.3)],
    )  # fmt: skip
    once, t = Transcription(problem), problem.times()
    setting = InteriorPointSolver(problem)._given.setting(t)
    x = np.concatenate([SO3.exp([0.3, -0.5, 0.4]), [0.8, -0.4, 0.6]])
    u = np.tile([0.1, -0.2, 0.3], (2, 1))
    n, small = system.n_errors, 1e-6

    def cost(z: np.ndarray) -> float:
        moved = np.array([system.state.plus(x, z[:n]), x, x])
        inputs = u.copy()
        inputs[0] += z[n:]
        return once._stages("stage_values", Nodes(t, moved, inputs), setting).cost[0]

    g = once._stages("stage", Nodes(t, np.array([x, x, x]), u), setting).g[0].copy()
    steps = small * np.eye(n + 3)
    differences = [(cost(step) - cost(-step)) / (2 * small) for step in steps]
    assert np.allclose(g, differences, atol=1e-7)


STATED = {
    "quadrature": "collocation",
    "residuals": [Residual(lambda t, x, u, p: x[4] * x[2] - u[0], 0.7)],
    "bounds": [Bound(lambda t, x, u, p: x[4] * x[5] + u[1] ** 2, upper=5.0)],
}


@pytest.mark.parametrize("options", [
    {"method": "radau_iia5"}, {"method": "gauss6"},
    {"method": "radau_iia5", "substeps": 2, "quadrature": "gauss"},
], ids=["radau", "gauss", "substeps"])  # fmt: skip
def test_hessians_are_differences_of_the_derivatives_of_the_lagrangian(options):
    """Of a body that turns by 30° a step, with any multipliers of defects and rows."""
    system, rng = satellite(), np.random.default_rng(3)
    problem = OptimalControlProblem(
        system, 1, 0.5, Q=1.0, R=0.1, reference=system.state.identity,
        costs=[Cost(lambda t, x, u, p: x[1] * u[0] + x[4] ** 2 * x[5], 0.3)], **(STATED | options),
    )  # fmt: skip
    solver, t = InteriorPointSolver(problem), problem.times()
    model, setting = solver.model, solver._given.setting(t)
    x = np.concatenate([SO3.exp([0.3, -0.5, 0.4]), [0.8, -0.4, 0.6]])
    u, n, rows = np.array([0.1, -0.2, 0.3]), model.n, len(model.transcription.rows.names)
    end = system.step(problem.method, problem.substeps)(0.0, x, u, dt=0.5)
    price, row_prices = rng.normal(size=(1, n)), rng.normal(size=(2, rows))

    def expanded(z: np.ndarray):
        moved = Nodes(t, np.array([system.retract(x, z[:n]), end]), (u + z[n:])[None])
        return moved, model.expand(moved, setting)

    def slope(z: np.ndarray) -> np.ndarray:
        ex = expanded(z)[1]
        return ex.g[0] + np.hstack([ex.A[0], ex.B[0]]).T @ price[0] + ex.G[0].T @ row_prices[0]

    nodes, ex = expanded(np.zeros(n + 3))
    beyond = model.hessians(nodes, setting, price, row_prices, ex)[0][0]
    small = 1e-5
    steps = small * np.eye(n + 3)
    differences = np.array([slope(step) - slope(-step) for step in steps]) / (2 * small)
    # Tangent vectors are those at the moved state: half of a bracket is not symmetric.
    found = ex.H[0] + beyond
    assert np.allclose(found, (differences + differences.T) / 2, atol=1e-6)
    assert np.abs(beyond).max() > 1.0


def test_a_stage_solves_its_equations_once():
    """The end of the step, its derivatives, integrals and bounds at the points share one solve."""
    problem = swing(bounds=[Bound(lambda t, x, u, p: u[0] * x[2], upper=9.0)])
    shape = shape_of(problem.with_arguments(hold="collocation"))
    once = Transcription(shape.inner)._functions
    for made in (once.stage, once.stage_values):
        function = made.function
        called = [
            function.instruction_MX(k).which_function().name()
            for k in range(function.n_instructions())
            if function.instruction_id(k) == ca.OP_CALL
        ]
        assert [name for name in called if "solved" in name] == ["radau_iia5_solved_stages"]
        assert not {"step", "points"} & {*called}


# Cost of IPOPT on the same transcription, which needs 165 iterations; Gauss-Newton ended "stalled".
LANDING = {"radau_iia5": 60.7004995, "gauss6": 60.7012309}


@pytest.mark.usually(method=("radau_iia5",))
@pytest.mark.parametrize("method", LANDING)
def test_a_lander_with_a_limit_of_its_thrust_takes_few_iterations(method):
    lander = System(
        "lander", Rn(4, ("px", "py", "vx", "vy")),
        lambda t, x, u, p: ca.vertcat(x[2], x[3], u[0], u[1] - 9.81), inputs=["ux", "uy"],
    )  # fmt: skip
    bounds = [
        Bound(lambda t, x, u, p: ca.sumsqr(u[:2]), upper=256.0, name="thrust"),
        Bound(lambda t, x, u, p: x, 0.0, 0.0, at="terminal", name="rest"),
    ]
    problem = OptimalControlProblem(
        lander, 20, 6.5 / 20, Q=0, R=0.1, hold="collocation", method=method, bounds=bounds
    )
    start, exact = np.array([60.0, 100.0, -8.0, -10.0]), {"tolerance": 1e-10}
    found = problem.solve(start, **exact)
    assert found.is_success
    assert found.cost == pytest.approx(LANDING[method], rel=1e-6)
    assert len(found.iterations) < 30
    told, away = found.sensitivities(), 1e-3 * np.array([1.0, -2.0, 1.0, 1.0])
    assert told.active["thrust"] > 10  # nodes, of each of which several points are at the limit
    ahead, behind = (problem.solve(start + s * away, guess=found, **exact) for s in (1, -1))
    change = told.forward(x0=2 * away).u
    assert np.allclose(ahead.u - behind.u, change, atol=1e-6 * np.abs(change).max())


def test_a_step_of_a_user_may_have_the_jacobian_of_an_implicit_step():
    """A sensitivity that moves on with its state: it is solved without exact Hessians."""
    rise = System("rise", Rn(1), lambda t, x, u, p: u - x**3, inputs=["u"]).step("radau_iia5")

    def along(t, x, u, p):
        state, given = ca.MX.sym("state"), ca.MX.sym("given")
        after = rise.function(0.0, state, given, ca.MX(0, 1), 0.5)
        both = ca.Function("both", [state, given], [after, ca.jacobian(after, state)])
        after, slope = both(x[0], u)
        return ca.vertcat(after, slope * x[1]) - x

    system = System("carried", Rn(2), along, inputs=["u"], dt=0.5, symbol=ca.MX)
    problem = OptimalControlProblem(system, 3, Q=1.0, R=0.1, reference=[0.5, 0.0])
    plans = [problem.solve([1.0, 1.0], solver=solver) for solver in ("interior_point", "ipopt")]
    assert all(plan.is_success for plan in plans)
    assert plans[0].cost == pytest.approx(plans[1].cost, rel=1e-6)


def test_points_within_steps_have_no_input_at_the_last_node():
    with pytest.raises(ValueError, match="at the last node: the collocation points of"):
        end = Bound("push", 0.0, 0.0, at="terminal")
        cart(5, hold="collocation", method="gauss6", bounds=[end]).solve([1.0, 0.0])


def test_gauss_points_have_the_order_of_their_quadrature():
    best = cart(32, hold="collocation", method="gauss6").solve([1.0, 0.0], tolerance=1e-11)
    found = [
        cart(horizon, hold="collocation", method="gauss6").solve([1.0, 0.0], tolerance=1e-11)
        for horizon in (6, 12)
    ]
    errors = np.abs([plan.cost - best.cost for plan in found])
    assert np.log2(errors[0] / errors[1]) > 5.5
    radau = cart(6, hold="collocation").solve([1.0, 0.0], tolerance=1e-11).cost
    assert errors[0] < 0.01 * abs(radau - best.cost)


def test_the_cost_converges_at_the_order_of_the_method():
    least = cart(48, hold="collocation").solve([1.0, 0.0], tolerance=1e-11).cost
    assert least == pytest.approx(cart(160, hold="first").solve([1.0, 0.0]).cost, abs=1e-7)
    found = [
        cart(horizon, hold="collocation").solve([1.0, 0.0], tolerance=1e-11)
        for horizon in (3, 6, 12)
    ]
    errors = np.abs([plan.cost - least for plan in found])
    assert np.log2(errors[:-1] / errors[1:]).min() > 4.7
    # Twelve steps of three inputs do better than eighty held ones by two digits.
    held = cart(80, quadrature="gauss").solve([1.0, 0.0])
    assert errors[-1] < 0.01 * abs(held.cost - least)
    told = found[1].transcription_error()
    assert -told.cost_change == pytest.approx(found[1].cost - least, rel=0.3)
    assert "vary within steps" not in str(told)


def coefficients(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Integrals of the Lagrange polynomials of points, to each point and over the step."""
    basis = [np.poly1d(np.poly(np.delete(points, j)) / np.prod(points[j] - np.delete(points, j)))
             for j in range(len(points))]  # fmt: skip
    integrals = [one.integ() for one in basis]
    return np.array([[f(c) for f in integrals] for c in points]), np.array(
        [f(1) for f in integrals]
    )


def by_ipopt(horizon: int, limit: float, points: np.ndarray) -> tuple[float, np.ndarray]:
    """The pendulum with states and inputs at all points as variables: direct collocation."""
    h, s = 4.0 / horizon, len(points)
    A, b = (ca.DM(one) for one in coefficients(points))
    x, u = ca.MX.sym("x", 2, (s + 1) * horizon + 1), ca.MX.sym("u", 1, s * horizon)
    cost, rows = 2.0 * (x[0, -1] ** 2 + 0.1 * x[1, -1] ** 2), [x[:, 0] - ca.DM([0.7, 0.0])]
    for k in range(horizon):
        first = (s + 1) * k
        at, own = x[:, first + 1 : first + 1 + s], u[s * k : s * k + s]
        rates = ca.vertcat(at[1, :], own - ca.sin(at[0, :]))
        rows.append(ca.vec(at - ca.repmat(x[:, first], 1, s) - h * rates @ A.T))
        rows.append(x[:, first + s + 1] - x[:, first] - h * rates @ b)
        terms = at[0, :] ** 2 + 0.1 * at[1, :] ** 2 + 0.01 * own**2
        cost += h / 2 * terms @ b
    z = ca.vertcat(ca.vec(x), ca.vec(u))
    most = np.r_[np.full(2 * ((s + 1) * horizon + 1), np.inf), np.full(s * horizon, limit)]
    quiet = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-10}
    solver = ca.nlpsol("solver", "ipopt", {"x": z, "f": cost, "g": ca.vertcat(*rows)}, quiet)
    found = solver(x0=0, lbx=-most, ubx=most, lbg=0, ubg=0)
    return float(found["f"]), np.asarray(found["x"]).ravel()


@pytest.mark.usually(method=("gauss6",))
@pytest.mark.parametrize("method", ["radau_iia5", "gauss6"])
def test_a_plan_with_limits_is_that_of_direct_collocation_by_ipopt(method):
    legendre = (np.polynomial.legendre.leggauss(3)[0] + 1) / 2
    points = np.array(RADAU.c) if method == "radau_iia5" else legendre
    cost, z = by_ipopt(12, 0.5, points)
    states, u = z[: 2 * 49].reshape(49, 2), z[2 * 49 :]
    ends = np.arange(1, 49).reshape(12, 4)  # points and the end of each step
    problem = swing().with_arguments(horizon=12, dt=1 / 3, hold="collocation", method=method)
    for solver in ("interior_point", "ipopt"):
        found = problem.solve(AWAY, solver=solver, tolerance=1e-8)
        assert found.is_success
        assert found.cost == pytest.approx(cost, rel=1e-6)
        values = found.u[1:, 0].reshape(12, -1)[:, :3]
        assert np.allclose(values.ravel(), u, atol=2e-3)
        angles = np.arctan2(found.x[1:, 1], found.x[1:, 0]).reshape(12, -1)
        assert np.allclose(angles[:, :3], states[ends[:, :3], 0], atol=1e-4)
        assert np.allclose(angles[:, -1], states[ends[:, -1], 0], atol=1e-4)
        assert np.abs(found.u).max() <= 0.5
    assert (np.abs(u) > 0.499).sum() >= 6  # limits matter


def test_the_motion_is_that_of_the_system_under_the_polynomials():
    found = swing().with_arguments(horizon=12, dt=1 / 3, hold="collocation").solve(AWAY)
    k, c = 4, np.array(RADAU.c)
    t, values = found.t[3 * k] + c / 3, found.u[3 * k + 1 : 3 * k + 4, 0]
    polynomial = np.polynomial.Polynomial.fit(t, values, 2)
    x = found.x[3 * k]
    end = solve_ivp(
        lambda t, y: [y[1], polynomial(t) - np.sin(y[0])], (found.t[3 * k], found.t[3 * k + 3]),
        [np.arctan2(x[1], x[0]), x[2]], rtol=1e-10,
    ).y[:, -1]  # fmt: skip
    after = found.x[3 * k + 3]
    assert np.allclose(end, [np.arctan2(after[1], after[0]), after[2]], atol=1e-6)


def test_an_attitude_is_steered_by_polynomials_on_unequal_steps():
    system = satellite()
    start = np.concatenate([SO3.exp([0.9, -0.5, 0.4]), np.zeros(3)])
    stop = [Bound(lambda t, x, u, p: x[4:], 0.0, 0.0, at="terminal")]
    wanted = {"Q": 1.0, "R": 0.1, "reference": system.state.identity, "bounds": stop}
    steps = 0.4 * np.geomspace(0.5, 2.0, 8)
    found = OptimalControlProblem(system, 8, steps, hold="collocation", **wanted).solve(start)
    fine = OptimalControlProblem(system, 8 * 12, steps.repeat(12) / 12, hold="first", **wanted)
    assert found.is_success
    assert found.cost == pytest.approx(fine.solve(start).cost, rel=1e-5)
    assert np.allclose(found.x[-1, 4:], 0.0, atol=1e-6)


def test_bounds_terms_and_guesses_see_the_input_of_the_moment():
    bounds = [Bound("torque", upper=-0.2, at=range(3, 5))]
    costs = [Cost(lambda t, x, u, p: 0.05 * u[0])]
    problem = swing(bounds=bounds, costs=costs).with_arguments(hold="collocation")
    found = problem.solve(AWAY, tolerance=1e-8)
    assert found.is_success
    assert (found.u[10:16] <= -0.2 + 1e-6).all()  # all points of two steps
    linear = swing(bounds=bounds, costs=costs).solve(AWAY)
    assert abs(found.cost - linear.cost) < 5e-3
    for guess in (found, linear, swing().with_arguments(hold="zero").solve(AWAY)):
        again = problem.solve(AWAY, guess=guess, tolerance=1e-8)
        assert again.cost == pytest.approx(found.cost, rel=1e-6)
    both = problem.solve_many(np.array([AWAY, AWAY]), tolerance=1e-8)
    assert all(np.allclose(one.u, found.u, atol=1e-4) for one in both)
    fine = swing().with_arguments(hold="collocation", horizon=6, dt=4 / 6).solve(AWAY, refine=1e-4)
    assert fine.problem.hold == "collocation"
    assert fine.problem.horizon > 6
    assert "not reached" not in fine.message


def test_bounds_with_inputs_hold_at_all_points():
    power = Bound(lambda t, x, u, p: u[0] * x[2], -0.02, 0.02, name="power")
    problem = swing(bounds=[power]).with_arguments(horizon=12, dt=1 / 3, hold="collocation")
    found = problem.solve(AWAY, tolerance=1e-8)
    assert found.is_success
    values = np.abs(found.u[1:, 0] * found.x[1:, 2])
    assert values.max() == pytest.approx(0.02, abs=1e-7)
    assert (values > 0.02 - 1e-6).sum() >= 6
    other = problem.solve(AWAY, solver="ipopt", guess=found, tolerance=1e-8)
    assert found.cost == pytest.approx(other.cost, rel=1e-6)


def test_what_has_no_points_is_refused_by_name():
    with pytest.raises(ValueError, match="rk4 has none: give method='radau_iia5'"):
        cart(5, hold="collocation", method="rk4")
    with pytest.raises(ValueError, match="rk4 has none"):
        cart(5, quadrature="collocation")
    with pytest.raises(ValueError, match="of one step of radau_iia5, not of 2 substeps"):
        cart(5, quadrature="collocation", method="radau_iia5", substeps=2)
    with pytest.raises(ValueError, match='hold="collocation" weighs inputs at the'):
        cart(5, hold="collocation", quadrature="gauss")
    with pytest.raises(ValueError, match='do not go together with hold="collocation": R'):
        cart(5, hold="collocation").symbolic("R").solve([1.0, 0.0])
    counter = System("counter", Rn(1), lambda t, x, u, p: u, inputs=[Input("u")], dt=0.1)
    with pytest.raises(ValueError, match="counter is discrete"):
        OptimalControlProblem(counter, 3, reference=[0.0], hold="collocation")


def push(**options):
    """A cart whose place is its input's integral."""
    system = System("cart", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "N", -1, 1)])
    return OptimalControlProblem(system, 10, 0.1, R=1e-3, reference=[1.0], **options)


@pytest.mark.parametrize("of", ["push", lambda t, x, u, p: u[0]])
def test_a_soft_bound_of_inputs_costs_its_integral(of):
    """The input is at its limit of 1 N, and 1 N below the bound: 10 (1 + 1/2) for one second."""
    soft = push(hold="collocation", bounds=[Bound(of, 2.0, np.inf, soft=10.0)]).solve([0.0])
    free = push(hold="collocation").solve([0.0])
    assert soft.u == pytest.approx(np.ones_like(soft.u), abs=1e-4)
    assert soft.cost - free.cost == pytest.approx(15.0, rel=1e-3)


@pytest.mark.parametrize("at", ["terminal", range(9, 11)])
def test_bounds_of_inputs_hold_at_the_last_node(at):
    plan = push(hold="collocation", bounds=[Bound("push", 0.5, 0.5, at=at)]).solve([0.0])
    assert plan.u[-1] == pytest.approx([0.5], abs=1e-6)
    assert plan.u[0] == pytest.approx([1.0], abs=1e-2)

"""Systems with algebraic states of a user's own: semi-explicit, of index 1."""

import pickle
import re

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.integrators import get_method
from lgcontrol.optimal import Bound, Cost, OptimalControlProblem, Phase, PhasedProblem
from lgcontrol.simulation import simulate
from lgcontrol.systems import (
    Input,
    Parameter,
    Quantity,
    System,
    Trajectory,
    TrimError,
    check_system,
)

# Robertson's kinetics at 40 s: Hairer, Wanner, Solving ODEs II; numbers of the test set of Bari.
AT_40 = 0.7158270687193941, 9.185534764557338e-06, 0.2841637457458413
ROBERTSON = System.from_dae(
    "robertson", Rn(2, ("y1", "y2")),
    lambda t, x, z, u, p: [-p[0] * x[0] + p[1] * x[1] * z,
                           p[0] * x[0] - p[1] * x[1] * z - p[2] * x[1] ** 2],
    lambda t, x, z, u, p: x[0] + x[1] + z - 1,
    ["y3"],
    parameters=[Parameter("k1", "1/s", 0.04), Parameter("k3", "1/s", 1e4),
                Parameter("k2", "1/s", 3e7)],
)  # fmt: skip


def reactor(**options) -> System:
    """A stirred tank whose wall is at rest: its temperature z loses heat by radiation.

    ``0 = power + k (T − z) − s (z⁴ − 1)``, temperatures as multiples of the surroundings'.
    """
    return System.from_dae(
        "reactor", Rn(2, ("rest", "heat")),
        lambda t, x, z, u, p: ca.vertcat(
            -x[0] * ca.exp(5 - 10 / x[1]), x[0] * ca.exp(5 - 10 / x[1]) + 2.0 * (z - x[1])
        ),
        lambda t, x, z, u, p: u + p[0] * (x[1] - z) - 0.5 * (z**4 - 1),
        [Parameter("wall", "", 1.0)],
        inputs=[Input("power", "", 0.0, 4.0)],
        parameters=[Parameter("transfer", "", 2.0)],
        home=[1.0, 1.0],
        **options,
    )  # fmt: skip


def test_robertsons_kinetics_end_where_the_test_set_says():
    run = simulate(ROBERTSON, x0=[1.0, 0.0], seconds=40.0, tolerance=1e-9)
    y3 = ROBERTSON.quantities["y3"](0.0, run.x[-1])
    assert np.allclose([*run.x[-1], *y3], AT_40, rtol=1e-6)
    later = run.trajectory(20.0).x
    fixed = ROBERTSON.rollout(later, dt=0.5, steps=40, method="radau_iia5")
    assert np.allclose(fixed.x[-1], AT_40[:2], rtol=1e-6)


def test_algebraic_states_solve_their_equations_with_exact_derivatives():
    system, rng = reactor(), np.random.default_rng(4)
    assert check_system(system)["derivatives equal central differences"] < 1e-7
    wall = system.quantities["wall"]
    for _ in range(5):
        x, u, k = [0.5, *rng.uniform(0.8, 1.6, 1)], rng.uniform(0.0, 4.0, 1), rng.uniform(1, 3)
        (z,) = wall(0.0, x, u, [k])
        assert u[0] + k * (x[1] - z) == pytest.approx(0.5 * (z**4 - 1), abs=1e-12)
        value, by_x, by_u = system.quantity_derivatives["wall"](0.0, x, u, [k])
        slope = k + 2 * z**3
        assert np.allclose(value, z)
        assert np.allclose(by_x, [[0.0, k / slope]])
        assert np.allclose(by_u, [[1 / slope]])
    copied = pickle.loads(pickle.dumps(system))
    assert np.array_equal(copied.f(0.0, [0.5, 1.2], [1.0]), system.f(0.0, [0.5, 1.2], [1.0]))


def test_a_motion_is_that_of_the_equations_solved_by_scipy():
    system = reactor()

    def rate(t, y):
        z = np.roots([0.5, 0.0, 0.0, 2.0, -(1.5 + 2.0 * y[1] + 0.5)])
        (z,) = z[(np.abs(z.imag) < 1e-9) & (z.real > 0)].real
        burnt = y[0] * np.exp(5 - 10 / y[1])
        return [-burnt, burnt + 2.0 * (z - y[1])]

    wanted = solve_ivp(rate, (0.0, 3.0), [1.0, 1.0], rtol=1e-10, atol=1e-12).y[:, -1]
    for method in ("rk4", "radau_iia5"):
        run = system.rollout([1.0, 1.0], [1.5], dt=0.02, steps=150, method=method)
        assert np.allclose(run.x[-1], wanted, atol=1e-6)


HOLDS = "zero", "first"
GOAL = Trajectory.constant(Rn(2), [0.0, 1.8], [0.0])  # no power is the cheapest


def warm(**options) -> OptimalControlProblem:
    """Heat the tank with little power while its wall stays below a limit."""
    return OptimalControlProblem(
        reactor(), 10, 0.3, Q=0.0, R=0.1, terminal={"heat": 20.0}, reference=GOAL,
        bounds=[Bound("wall", upper=1.5)], costs=[Cost("wall", 0.2)], **options,
    )  # fmt: skip


def by_ipopt() -> tuple[float, np.ndarray, np.ndarray]:
    """Direct collocation with the wall's temperature at all points as a variable."""
    radau, N, s, h = get_method("radau_iia5"), 10, 3, 0.3
    A = ca.DM(radau.A)
    x, z, u = (ca.MX.sym("x", 2, s * N + 1), ca.MX.sym("z", 1, s * N), ca.MX.sym("u", 1, s * N))
    cost, rows = 10.0 * (x[1, -1] - 1.8) ** 2, [x[:, 0] - ca.DM([1.0, 1.0])]

    def wall(heat, z, u):
        return u + 2.0 * (heat - z) - 0.5 * (z**4 - 1)

    for k in range(N):
        at, own, v = (v[:, s * k + o : s * k + o + s] for v, o in ((x, 1), (z, 0), (u, 0)))
        burnt = at[0, :] * ca.exp(5 - 10 / at[1, :])
        rates = ca.vertcat(-burnt, burnt + 2.0 * (own - at[1, :]))
        rows += [ca.vec(at - ca.repmat(x[:, s * k], 1, s) - h * rates @ A.T)]
        rows += [ca.vec(wall(at[1, :], own, v))]
        cost += h * (0.05 * v**2 + 0.2 * own) @ A[-1, :].T
    parts = ca.vertcat(ca.vec(x), ca.vec(z), ca.vec(u))
    free, n = np.full(2 * (s * N + 1), np.inf), s * N
    low, high = np.r_[-free, np.full(n, -np.inf), np.zeros(n)], np.r_[free, [1.5] * n, [4.0] * n]
    quiet = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-10}
    solver = ca.nlpsol("s", "ipopt", {"x": parts, "f": cost, "g": ca.vertcat(*rows)}, quiet)
    found = solver(x0=1.0, lbx=low, ubx=high, lbg=0, ubg=0)
    values = np.asarray(found["x"]).ravel()
    return float(found["f"]), values[-n:], values[len(free) : len(free) + n]


def test_a_plan_with_a_bounded_algebraic_state_is_that_of_ipopt_with_it_as_a_variable():
    cost, u, wall = by_ipopt()
    assert wall.max() == pytest.approx(1.5, abs=1e-6)  # the limit matters
    for solver in ("interior_point", "ipopt"):
        found = warm(hold="collocation").solve([1.0, 1.0], solver=solver, tolerance=1e-8)
        assert found.is_success
        assert found.cost == pytest.approx(cost, rel=1e-6)
        assert np.allclose(found.u[1:, 0], u, atol=1e-3)


def test_explicit_steps_plan_with_algebraic_states_as_well():
    found = {hold: warm(hold=hold, quadrature="gauss").solve([1.0, 1.0]) for hold in HOLDS}
    wall = reactor().quantities["wall"]
    for plan in found.values():
        assert plan.is_success
        assert wall(plan.t[:10], plan.x[:10], plan.u[:10]).max() == pytest.approx(1.5, abs=1e-5)
    assert found["first"].cost == pytest.approx(found["zero"].cost, rel=0.02)


def network(size: int) -> System:
    """Two states and a ring of algebraic ones, each with a cube and a product with the input."""

    def ring(t, x, z, u, p):
        return ca.vertcat(*(
            z[i] + 0.2 * z[i] ** 3 - ca.sin(x[i % 2]) - 0.3 * z[(i + 1) % size] * u - 0.1 * z[i - 1]
            for i in range(size)
        ))  # fmt: skip

    return System.from_dae(
        f"network{size}", Rn(2), lambda t, x, z, u, p: ca.vertcat(u - z[0], ca.sum1(z) - x[1]),
        ring, [f"z{i}" for i in range(size)], inputs=["u"],
    )  # fmt: skip


@pytest.mark.parametrize("at", [(1.0, -1.0, 0.4), (2e-5, 1e-6, -1e-6), (-9.0, 4.0, 1.5)])
def test_second_derivatives_of_algebraic_states_are_those_of_differences(at):
    w = ca.SX.sym("w", 3)
    last = network(3).quantities["z2"].function(0.0, w[:2], w[2], [])
    second, slope = ca.hessian(last, w)
    made, small = ca.Function("made", [w], [slope, second]), 1e-5
    found = np.asarray(made(at)[1])
    differences = [
        np.asarray(made(np.add(at, step))[0] - made(np.subtract(at, step))[0]).ravel() / (2 * small)
        for step in small * np.eye(3)
    ]
    assert np.allclose(found, differences, atol=1e-8)
    assert np.abs(found).max() > 1e-2


@pytest.mark.parametrize(
    ("size", "options"),
    [
        (3, {"quadrature": "gauss"}),
        pytest.param(6, {"hold": "collocation"}, marks=pytest.mark.thorough),
    ],
)
def test_plans_with_several_algebraic_states_have_exact_hessians(size, options):
    """Gauss-Newton ended "stalled" in both."""
    problem = OptimalControlProblem(
        network(size), 20, 0.1, Q=1.0, R=0.1, reference=[0.0, 0.0],
        bounds=[Bound("z0", -0.5, 0.5, soft=10.0)], **options,
    )  # fmt: skip
    found = problem.solve([1.0, -1.0])
    assert found.is_success
    assert len(found.iterations) < 20


def test_quantities_and_groups_go_with_algebraic_states():
    arm = System.from_dae(
        "arm", Product(angle=SO2, rate=Rn(1)), lambda t, x, z, u, p: ca.vertcat(x[2], z[0]),
        lambda t, x, z, u, p: ca.vertcat(2 * z[0] + ca.sin(z[1]) - u, z[1] - 0.5 * z[0] - x[1]),
        ["acceleration", Parameter("bend", "rad")], inputs=["torque"],
        quantities={"load": Quantity(lambda t, x, z, u, p: 3 * z[1], unit="N m")},
        limits={"bend": (-1.0, 1.0)},
    )  # fmt: skip
    assert arm.quantity_names == ("acceleration", "bend", "load")
    x, u = np.array([*SO2.exp([0.4]), 0.2]), [0.7]
    a, bend = (arm.quantities[name](0.0, x, u)[0] for name in ("acceleration", "bend"))
    assert 2 * a + np.sin(bend) == pytest.approx(0.7, abs=1e-12)
    assert bend - 0.5 * a == pytest.approx(np.sin(0.4), abs=1e-12)
    assert arm.quantities["load"](0.0, x, u) == pytest.approx(3 * bend)
    assert check_system(arm)["derivatives equal central differences"] < 1e-7
    assert arm.quantity_units == {"acceleration": "", "bend": "rad", "load": "N m"}
    bounds = [Bound("bend", upper=0.5), Bound("load", upper=2.0)]
    problem = OptimalControlProblem(arm, 2, 0.1, bounds=bounds, reference=[1.0, 0.0, 0.0])
    assert [problem.bound_unit(name) for name in ("bend", "load")] == ["rad", "N m"]


def test_what_g_does_not_determine_is_refused_or_told():
    with pytest.raises(ValueError, match="g determines 0 of 1 algebraic states, its index"):
        System.from_dae("high", Rn(1), lambda t, x, z, u, p: z, lambda t, x, z, u, p: x, ["z"])
    with pytest.raises(ValueError, match="g of short returned .*, expected 2 numbers, one for"):
        System.from_dae(
            "short", Rn(1), lambda t, x, z, u, p: z[0], lambda t, x, z, u, p: z[0], ["a", "b"]
        )
    with pytest.raises(ValueError, match="Newton's method cannot begin at z = 0: the derivative"):
        System.from_dae(
            "even", Rn(1), lambda t, x, z, u, p: z, lambda t, x, z, u, p: z**2 - 1 - x**2, ["z"]
        )
    with pytest.raises(TypeError, match="from_dae makes derivatives: leave them out"):
        reactor(derivatives=lambda t, x, u, p: (x, u))
    with pytest.raises(ValueError, match="'wall' is an algebraic state already"):
        reactor(quantities={"wall": lambda t, x, z, u, p: z})
    none = System.from_dae(
        "none", Rn(1), lambda t, x, z, u, p: z, lambda t, x, z, u, p: z**2 + 1 + x**2,
        [Parameter("z", "", 0.7)],
    )  # fmt: skip
    assert np.isnan(none.f(0.0, [0.0])).all()  # no real solution
    far = System.from_dae(
        "far", Rn(1), lambda t, x, z, u, p: z, lambda t, x, z, u, p: ca.exp(z) - 1e9, ["z"],
        start=lambda t, x, u, p: 20.0 + 0 * x,
    )  # fmt: skip
    assert far.f(0.0, [0.0]) == pytest.approx(np.log(1e9))


def test_small_algebraic_states_are_solved_or_not_a_number():
    """A diode of some nA: the answer is within 1e-6 of itself, or there is none."""

    def diode(iterations):
        return System.from_dae(
            "diode", Rn(1), lambda t, x, z, u, p: -z,
            lambda t, x, z, u, p: ca.exp(z / 0.5e-9) - 1 - x, [Parameter("z", "A", 1e-9)],
            iterations=iterations,
        ).f(0.0, [4.0], [])[0]  # fmt: skip

    assert diode(20) == pytest.approx(-0.5e-9 * np.log(5.0), rel=1e-6)
    assert np.isnan(diode(2))


@pytest.mark.parametrize(
    ("zero", "names"),
    [
        (lambda t, x, z, u, p: 1e7 * ca.exp(-8000 / u) * z - 1, ["z"]),
        (lambda t, x, z, u, p: ca.vertcat(z[0] - x, 1e-18 * z[1] - u), ["a", "b"]),
    ],
)
def test_a_start_is_judged_at_nominal_values_whatever_the_units(zero, names):
    heat = Input("T", "K", nominal=350.0)
    system = System.from_dae("s", Rn(1), lambda t, x, z, u, p: z[0], zero, names, inputs=[heat])
    assert np.isfinite(system.f(0.0, [1.0], [350.0])).all()


def test_a_check_of_a_system_names_the_equation_and_the_state_without_a_solution():
    """``z² + height + level² = 0`` has none for a height of 1, and one at -2."""
    tank = System.from_dae(
        "tank", Rn(1, ("level",)), lambda t, x, z, u, p: u - z,
        lambda t, x, z, u, p: z**2 + p + x**2, [Parameter("flow", "", 0.5)],
        inputs=[Input("feed", "", -1, 3)], parameters=[Parameter("height", "m", 1.0)],
    )  # fmt: skip
    said = r"algebraic equations of tank have no solution.*entry 0 of g.*here level = .*, feed = "
    with pytest.raises(ValueError, match=said) as refused:
        check_system(tank)
    assert str(refused.value).count("entry 0 of g") == 1
    assert "no solution" in tank.unsolved(0.0, [0.5])
    assert tank.unsolved(0.0, [0.5], [0.0], {"height": -2.0}) == ""


def test_what_needs_a_solution_says_which_equation_has_none():
    """``z² + 1 = level`` has none at a level of 0.5: least at z = 0, where 0.5 is left."""
    tank = System.from_dae(
        "tank", Rn(1, ("level",)), lambda t, x, z, u, p: u - z[0],
        lambda t, x, z, u, p: [z[1] - 2 * z[0], z[0] ** 2 + 1 - x],
        [Parameter("flow", "", 0.5), "twice"], inputs=[Input("feed", "", -1, 3)],
    )  # fmt: skip
    assert tank.unsolved(0.0, [2.0], [0.0], []) == tank.unsolved(0.0, [2.0]) == ""
    z, best = 0.5, 1.0  # Newton's method by hand
    for _ in range(11):
        best, z = min(best, z**2 + 0.5), z - (z**2 + 0.5) / (2 * z)
    said = (
        r"the algebraic equations of tank have no solution that 10 Newton steps from flow = 0.5, "
        rf"twice = 0 find: entry 1 of g is {best:.3g} at best.*x0 and inputs.*start="
    )
    assert pickle.loads(pickle.dumps(tank)).unsolved(0.0, [0.5], [0.0], []) == tank.unsolved(
        0.0, [0.5], [0.0], []
    )
    problem = OptimalControlProblem(tank, 5, 0.1, Q=1.0, R=0.1, reference=[3.0])
    plan = problem.solve([0.5])
    assert plan.status == "failed"
    end = [Bound("level", 3.0, 3.0, at="terminal")]
    phased = PhasedProblem(Phase(tank, 5, (0.5, 5.0), bounds=end), time_weight=1.0).solve([0.5])
    for message in (plan.message, phased.message):
        assert re.search(said, message)
    with pytest.raises(
        ValueError, match=f"nobody can say what holds tank.*one with inputs: {said}"
    ):
        problem.with_arguments(reference=[0.5])
    with pytest.raises(ValueError, match=said):
        tank.linearize([0.5], [0.0])
    with pytest.raises(TrimError, match=f"no trim point found.*{said}"):
        tank.trim([0.5])
    with pytest.warns(RuntimeWarning, match=f"diverged at t = 0.1 s.*{said}"):
        tank.rollout([0.5], [0.0], dt=0.1, steps=3)


@pytest.mark.parametrize(("end", "is_told"), [(1.0, True), (0.15, False)])
def test_a_plan_that_goes_past_a_fold_to_another_branch_says_so(end, is_told):
    """From x = 0.2 on Newton's method begins on the upper branch of z³ − z = x."""
    cubic = System.from_dae(
        "cubic", Rn(1), lambda t, x, z, u, p: u + 0.1 * z, lambda t, x, z, u, p: z**3 - z - x,
        ["z"], inputs=[Input("u", "", -2, 2)],
        start=lambda t, x, u, p: ca.if_else(x[0] < 0.2, 0.0, 1.3),
    )  # fmt: skip
    goal = Bound("x0", end, end, at="terminal")
    problem = OptimalControlProblem(cubic, 10, 0.1, Q=0, R=1.0, bounds=[goal])
    phases = PhasedProblem(Phase(cubic, 10, 1.0, R=1.0, bounds=[goal]))
    for found in (problem.solve([0.0]), phases.solve([0.0])):
        assert found.is_success
        said = "the algebraic states of cubic go to another branch of g = 0"
        assert (said in found.message) == is_told

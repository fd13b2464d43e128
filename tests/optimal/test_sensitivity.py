"""Derivatives of solutions against differences of solves, on groups and with active limits."""

from types import SimpleNamespace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.groups import SO3, Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    NLPSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Residual,
)
from lgcontrol.optimal.kernel._change import ChangeSolver
from lgcontrol.systems import Input, Parameter, System

from .examples import double_integrator, pendulum, satellite, vessel

# Differences of fourth order: the solves' tolerance over the step is what is left.
STEP, TOLERANCE = 2e-3, 1e-11
# Of the largest change of a control.
CLOSE, NEAR = 1e-6, 3e-5  # at a tight solution, and at one of the default tolerance
ROUNDED = 1e-10  # sums in another order


def swing(**options) -> OptimalControlProblem:
    terms = {
        "Q": {"angle": 1.0, "rate": 0.1}, "R": 0.05, "reference": [1.0, 0.0, 0.0],
    }  # fmt: skip
    return OptimalControlProblem(pendulum(), 25, **({"dt": 0.1} | terms | options))


def at_angle(angle: float, rate: float = 0.0) -> np.ndarray:
    return np.array([np.cos(angle), np.sin(angle), rate])


def slew(limit: float, **options) -> OptimalControlProblem:
    body = satellite(limit)
    terms = {"Q": {"attitude": 5.0, "rate": 1.0}, "R": 0.5, "reference": body.state.identity}
    return OptimalControlProblem(body, 12, 0.25, **(terms | options))


def turned(vector, rate=(0.0, 0.0, 0.0)) -> np.ndarray:
    return np.concatenate([SO3.exp(vector), rate])


def carts(**options) -> OptimalControlProblem:
    terms = {"Q": 1.0, "R": 0.1, "reference": np.zeros(4)}
    return OptimalControlProblem(double_integrator(), 20, 0.1, **(terms | options))


def craft(**options) -> OptimalControlProblem:
    terms = {"Q": {"pose": 2.0, "twist": 0.1}, "R": 0.2}
    return OptimalControlProblem(
        vessel(), 15, 0.2, reference=vessel().state.identity, **(terms | options)
    )


def posed(x, y, angle):
    return np.array([x, y, np.cos(angle), np.sin(angle), 0.0, 0.0, 0.0])


LEFT, BOTH = [Bound("left", -0.6, 0.6)], [Bound("left", -0.6, 0.6), Bound("right", -0.4, 0.4)]
AWAY = [1.0, -1.2, 0.3, 0.2]
END = Bound("rate", 0.0, 0.0, at="terminal")
PROBLEMS = {
    "no limits": (swing(), at_angle(0.4)),
    "torque": (swing(bounds=[Bound("torque", -0.2, 0.2)]).symbolic("torque.lower"), at_angle(-0.8)),
    "weights": (swing().symbolic("Q.angle", "R"), at_angle(0.9)),
    "rate": (swing(bounds=[Bound("rate", -0.2, 0.2)]).symbolic("rate.lower"), at_angle(0.4)),
    "soft rate": (
        swing(bounds=[Bound("rate", -0.15, 0.15, soft=0.5)]).symbolic("rate.soft"),
        at_angle(0.35),
    ),
    "rest at the end": (swing(bounds=[END]), at_angle(0.3)),
    "gauss": (swing(quadrature="gauss").symbolic("terminal.angle"), at_angle(0.3, 0.2)),
    "unequal": (swing(dt=0.02 + 0.01 * np.arange(25)), at_angle(0.2, 0.1)),
    "energy": (
        swing(costs=[Cost(lambda t, x, u, p: 0.2 * u**2 * (1 + x[2] ** 2))]),
        at_angle(0.35),
    ),
    "a residual's weight": (
        swing(residuals=[Residual(lambda t, x, u, p: x[1] + 0.3 * x[2] ** 2, name="low")]).symbolic(
            "low.weight"
        ),
        at_angle(0.3),
    ),
    "stiff": (swing(method="radau_iia5"), at_angle(0.3)),
    "slew": (slew(np.inf), turned([0.5, -0.8, 0.3])),
    "slew at its limits": (slew(0.6), turned([0.9, -0.8, 0.3], [0.1, 0.0, -0.2])),
    "slew, slow": (
        slew(np.inf, bounds=[Bound("rate", -0.25, 0.25)]).symbolic("rate.lower", "rate.upper"),
        turned([0.5, -0.8, 0.3]),
    ),
    "carts": (carts(), AWAY),
    "carts at a limit": (carts(bounds=LEFT).symbolic("left.lower"), AWAY),
    "prior": (carts(free="x2", arrival=2.0, bounds=LEFT).symbolic("Q.x0"), AWAY),
    "prior on a group": (
        craft(free="all", arrival={"pose": 3.0, "twist": 1.0}),
        posed(1.0, -0.5, 0.7),
    ),
    "carts at two": (carts(bounds=BOTH).symbolic("left.lower", "right.upper"), AWAY),
    "free start": (carts(free="x2", bounds=LEFT).symbolic("Q.x0"), AWAY),
    "craft": (craft(), posed(1.0, -0.5, 0.7)),
    "craft at its limits": (
        craft(bounds=[Bound("surge", -0.3, 0.5)]).symbolic("surge.lower", "R.yaw"),
        posed(1.5, 0.4, 0.5),
    ),
}


def directions(problem, seed):
    rng, system = np.random.default_rng(seed), problem.system
    names = problem.parameter_names
    p = dict(zip(names, 0.1 * rng.normal(size=len(names)), strict=True))
    return {
        "x0": 0.1 * rng.normal(size=system.n_errors),
        "reference": 0.1 * rng.normal(size=system.state.dim),
        "p": p,
    }


QUICK = ("soft rate", "carts at two", "slew")


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.thorough)
        for name in PROBLEMS
    ],
)
def test_derivatives_are_those_of_differences(name):
    problem, x0 = PROBLEMS[name]
    system, solver = problem.system, NLPSolver(problem)
    straight = np.zeros(system.state.dim)
    x0, goal = np.array(x0, dtype=float), np.array(problem.reference, dtype=float)
    nominal = dict(zip(problem.parameter_names, problem.nominal_parameters, strict=True))
    found = problem.solve(x0)
    assert found.is_success
    slopes, exact = found.sensitivities(), solver.solve(x0, tolerance=TOLERANCE)
    assert not exact.sensitivities().message
    if "limit" in name or name in ("torque", "rate", "soft rate", "slew, slow"):
        assert slopes.active

    def moved(tangent):
        # The inputs of the reference stay: a trim of the moved state would take others.
        return SimpleNamespace(x=system.state.plus(goal, tangent), u=held)

    held = found._setting.u_ref[0]
    for seed, only in enumerate(("x0", "reference", "p")):
        way = {only: directions(problem, seed)[only]}
        if isinstance(way[only], dict) and not way[only]:
            continue

        def solved(h, way=way):
            p = {key: nominal[key] + h * value for key, value in way.get("p", {}).items()}
            return solver.solve(
                system.retract(x0, h * way.get("x0", np.zeros(system.n_errors))),
                reference=moved(h * way.get("reference", straight)),
                p=p, tolerance=TOLERANCE, guess=found,
            )  # fmt: skip

        def differences(h, solved=solved):
            ahead, back = solved(h), solved(-h)
            assert ahead.is_success
            assert back.is_success
            states = system.error(ahead.x, found.x) - system.error(back.x, found.x)
            controls = (ahead.u - back.u)[:, system.input_index("control")]
            return [part / (2 * h) for part in (states, controls, ahead.cost - back.cost)]

        near, far = differences(STEP), differences(2 * STEP)
        wanted = [(4 * a - b) / 3 for a, b in zip(near, far, strict=True)]
        size = max(1.0, *(np.abs(part).max() for part in wanted))
        for own, close in ((slopes, NEAR), (exact.sensitivities(), CLOSE)):
            for have, want in zip(own.forward(**way)[:3], wanted, strict=True):
                assert np.abs(have - want).max() < close * size, (name, only)


@pytest.mark.parametrize("name", ["torque", "slew, slow", "free start", "craft at its limits"])
def test_the_adjoint_is_that_of_the_forward_derivative(name):
    problem, x0 = PROBLEMS[name]
    slopes = problem.solve(x0).sensitivities()
    way, rng = directions(problem, 3), np.random.default_rng(4)
    along = slopes.forward(**way)
    of_x, of_u = rng.normal(size=along.x.shape), rng.normal(size=along.u.shape)
    gradient = slopes.adjoint(x=of_x, u=of_u)
    told = gradient["x0"] @ way["x0"] + (gradient["reference"] @ way["reference"]).sum()
    told += sum(gradient[key] * value for key, value in way["p"].items())
    assert told == pytest.approx((of_x * along.x).sum() + (of_u * along.u).sum(), rel=1e-8)


@pytest.mark.parametrize("name", ["torque", "soft rate", "rest at the end", "free start"])
def test_the_kernel_finds_what_a_sparse_factorization_finds(name):
    problem, x0 = PROBLEMS[name]
    slopes = problem.solve(x0).sensitivities()
    fast = slopes._changes
    plain = ChangeSolver(fast.model, fast.settings, None)
    way = directions(problem, 3)
    way["p"] = slopes._given(way["p"], np.zeros_like(slopes._setting.p))
    given = [np.stack([part]) for part in slopes._direction(**way)]
    rng = np.random.default_rng(4)
    along, same = (one.forward(slopes._at, tuple(given[:4]), *given[4:7]) for one in (fast, plain))
    of = rng.normal(size=along.x.shape), rng.normal(size=along.u.shape)
    against, also = (one.adjoint(slopes._at, *of) for one in (fast, plain))
    assert along.rounds <= 3
    for one, other in ((along, same), (against, also)):
        parts = (*one[:8], *one.data), (*other[:8], *other.data)
        for have, want in zip(*parts, strict=True):
            largest = np.abs(want).max(initial=1.0)
            assert np.allclose(have, want, rtol=ROUNDED, atol=ROUNDED * largest)


@pytest.mark.usually(name=("weights", "carts at two", "free start", "prior on a group"))
@pytest.mark.parametrize(
    "name", ["weights", "carts at two", "craft", "free start", "prior", "prior on a group"]
)
def test_a_prediction_is_right_to_first_order_and_a_guess(name):
    problem, x0 = PROBLEMS[name]
    system, solver, x0 = problem.system, NLPSolver(problem), np.array(x0, dtype=float)
    found, way = solver.solve(x0, tolerance=TOLERANCE), directions(problem, 5)
    nominal = dict(zip(problem.parameter_names, problem.nominal_parameters, strict=True))
    off = []
    for h in (0.02, 0.01):
        new = {
            "x0": system.retract(x0, h * way["x0"]),
            "p": {key: nominal[key] + h * value for key, value in way["p"].items()},
            "reference": system.state.plus(problem.reference, h * way["reference"]),
        }  # fmt: skip
        goal = SimpleNamespace(x=new["reference"], u=found._setting.u_ref[0])
        exact = solver.solve(
            new["x0"], p=new["p"], reference=goal, tolerance=TOLERANCE, guess=found
        )
        near = found.predicted(**new)
        off.append(
            [
                np.abs(system.error(near.x, exact.x)).max(),
                np.abs(near.u - exact.u).max(),
                abs(near.cost - exact.cost),
            ]
        )
        assert np.allclose(near.trajectory.x, near.x)
    # Of second order, or exact where the problem is linear and quadratic.
    assert (np.array(off[1]) < 0.3 * np.array(off[0]) + 1e-8).all()


@pytest.mark.parametrize("name", ["prior", "prior on a group", "free start"])
def test_a_prediction_from_the_same_start_changes_nothing(name):
    problem, x0 = PROBLEMS[name]
    found = problem.solve(x0)
    assert np.abs(found.x[0] - x0).max() > 1e-2
    same = found.predicted(x0=x0)
    assert np.allclose(same.x, found.x, rtol=0.0, atol=1e-12)
    assert np.allclose(same.u, found.u, rtol=0.0, atol=1e-12)
    assert same.cost == pytest.approx(found.cost, abs=1e-12)


def test_a_prediction_saves_iterations():
    """With multipliers: on these problems together, against the solution itself and no guess."""
    counts = np.zeros(3)
    for name in ("weights", "rate", "carts at two", "craft at its limits", "gauss"):
        problem, x0 = PROBLEMS[name]
        found, way = problem.solve(x0), directions(problem, 5)
        nominal = dict(zip(problem.parameter_names, problem.nominal_parameters, strict=True))
        p = {key: nominal[key] * (1 + 0.5 * value) for key, value in way["p"].items()}
        new = problem.system.retract(np.array(x0, dtype=float), 0.5 * way["x0"])
        guesses = None, found, found.predicted(x0=new, p=p)
        solved = [problem.solve(new, p=p, guess=guess) for guess in guesses]
        assert all(one.cost == pytest.approx(solved[0].cost, rel=1e-5) for one in solved)
        counts += [len(one.iterations) - 1 for one in solved]
    assert counts[2] < counts[1] < counts[0]
    assert "predicted to first order" in guesses[2].message


def test_a_weight_is_tuned_by_its_gradient():
    """Newton's method for the effort of a plan converges as with an exact slope."""
    problem, x0 = PROBLEMS["weights"]
    wanted = (problem.solve(x0, p={"R": 0.5}, tolerance=1e-9).u ** 2).sum()
    weight, errors = 0.1, []
    for _ in range(7):
        plan = problem.solve(x0, p={"R": weight}, tolerance=1e-9)
        errors.append((plan.u**2).sum() / wanted - 1)
        slope = plan.sensitivities().adjoint(u=2 * plan.u)["R"] / wanted
        weight *= np.exp(-errors[-1] / (slope * weight))
    assert abs(errors[0]) > 0.4
    assert abs(errors[-1]) < 2 * errors[-2] ** 2 < 1e-7
    assert weight == pytest.approx(0.5, rel=1e-9)


def test_what_is_derived_serves_all_solutions_of_a_problem():
    problem, x0 = PROBLEMS["torque"]
    first, other = problem.solve(x0), problem.solve(at_angle(0.5))
    a, b = first.sensitivities(), other.sensitivities()
    assert a._changes is b._changes
    fresh = problem.with_arguments().solve(at_angle(0.5)).sensitivities()
    assert np.allclose(b.by("torque.lower").u, fresh.by("torque.lower").u, atol=1e-9)
    assert np.allclose(a.by("x0").u[0], first.sensitivities().by("x0").u[0])


TABLE = ca.interpolant(
    "drag", "bspline", [np.linspace(-3, 3, 13)], 0.1 * np.linspace(-3, 3, 13) ** 3
)
DRAGGED = System(
    "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u / p[0] - TABLE(x[1])),
    inputs=[Input("push", "", -0.6, 0.6)], parameters=[Parameter("mass", "", 1.0)], symbol=ca.MX,
)  # fmt: skip
SHAPED = {
    "linear inputs": (swing(hold="first"), at_angle(0.35)),
    "blocks": (swing(blocks=[1, 2, 4, 8, 10]), at_angle(0.35)),
    "collocation": (swing(hold="collocation"), at_angle(0.35)),
    "collocation at Gauss's points": (
        swing(hold="collocation", method="gauss6"), at_angle(0.35),
    ),
    "a function of matrices": (
        OptimalControlProblem(DRAGGED, 10, 0.2, R=0.1, reference=[0.0, 0.0]), [1.0, 0.0],
    ),
}  # fmt: skip


@pytest.mark.usually(name=("linear inputs", "blocks", "collocation at Gauss's points"))
@pytest.mark.parametrize("name", SHAPED)
def test_inputs_of_all_shapes_have_derivatives_in_their_own_terms(name):
    """At all points that the solution has, forward against differences, and backward."""
    problem, x0 = SHAPED[name]
    system, rng = problem.system, np.random.default_rng(5)
    found = problem.solve(x0, tolerance=1e-10)
    slopes, one = found.sensitivities(), problem.parameter_names[0]
    way, value = 0.1 * rng.normal(size=system.n_errors), problem.nominal_parameters[0]
    assert slopes.active
    assert not slopes.message
    for ask, solved in (
        ({"x0": way}, lambda h: {"x0": system.retract(x0, h * way)}),
        ({"p": {one: 1.0}}, lambda h: {"x0": x0, "p": {one: value + h}}),
    ):
        ahead, back = (
            problem.solve(**solved(h), tolerance=1e-10, guess=found) for h in (1e-3, -1e-3)
        )
        along = slopes.forward(**ask)
        want = (system.error(ahead.x, found.x) - system.error(back.x, found.x)) / 2e-3
        assert np.allclose(along.x, want, atol=2e-5)
        assert np.allclose(along.u, (ahead.u - back.u) / 2e-3, atol=2e-5)
        assert along.cost == pytest.approx((ahead.cost - back.cost) / 2e-3, rel=1e-5, abs=1e-5)
        of_x, of_u = rng.normal(size=along.x.shape), rng.normal(size=along.u.shape)
        gradient = slopes.adjoint(x=of_x, u=of_u)
        told = gradient["x0"] @ ask["x0"] if "x0" in ask else gradient[one]
        assert told == pytest.approx((of_x * along.x).sum() + (of_u * along.u).sum(), rel=1e-7)
    near = system.retract(x0, 0.01 * way)
    moved = found.predicted(x0=near)
    again = problem.solve(near, guess=moved, tolerance=1e-10)
    assert np.abs(moved.u - again.u).max() < 0.1 * np.abs(found.u - again.u).max()


def test_durations_of_phases_have_derivatives():
    """Least times against differences, and the closed form ``2 √((1 − x) / a)``."""
    pull = Input("u", "", -1, 1)
    cart = System(
        "cart", Rn(2), lambda t, x, u, p: [x[1], p * u], inputs=[pull],
        parameters=[Parameter("gain", "", 1.0)],
    )  # fmt: skip
    stop = Bound("x0", 1.0, 1.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")
    problem = PhasedProblem(Phase(cart, 20, (0.5, 5.0), bounds=stop), time_weight=1.0)
    x0, step = np.array([0.1, 0.05]), 1e-3

    def duration(x, gain=1.0):
        found = problem.solve(x, p={"gain": gain}, tolerance=1e-9)
        return found.durations["phase0"]

    slopes = problem.solve(x0, tolerance=1e-9).sensitivities()
    by_x0 = slopes.by("x0").durations["phase0"]
    by_gain = slopes.forward(p={"gain": 1.0}).durations["phase0"]
    back = slopes.adjoint(durations={"phase0": 1.0})
    assert back["gain"] == pytest.approx(by_gain, rel=1e-6)
    assert np.allclose(back["x0"], by_x0, rtol=1e-6)
    with pytest.raises(UnknownNameError, match="unknown free duration 'phase1'; .* phase0"):
        slopes.adjoint(durations={"phase1": 1.0})
    for i, way in enumerate(step * np.eye(2)):
        wanted = (duration(x0 + way) - duration(x0 - way)) / (2 * step)
        assert by_x0[i] == pytest.approx(wanted, abs=1e-4)
    wanted = (duration(x0, 1 + step) - duration(x0, 1 - step)) / (2 * step)
    assert by_gain == pytest.approx(wanted, abs=1e-4)
    at_rest = problem.solve([0.1, 0.0]).sensitivities()
    assert at_rest.by("x0").durations["phase0"][0] == pytest.approx(-1 / np.sqrt(0.9), rel=1e-3)
    assert at_rest.by("gain").durations["phase0"] == pytest.approx(-np.sqrt(0.9), rel=1e-3)
    fast = (
        at_rest._changes
    )  # without a kernel: two ends and the time alone, as all controls are held
    at_rest._changes = ChangeSolver(fast.model, fast.settings, None)
    assert at_rest.by("gain").durations["phase0"] == pytest.approx(-np.sqrt(0.9), rel=1e-3)


def test_what_is_not_differentiable_is_said():
    cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "", -1, 1)])

    def problem(limit):
        return OptimalControlProblem(
            cart, 3, 1.0, Q=0.0, R=1.0, terminal=1.0, reference=[0.0],
            bounds=[Bound("push", -limit, limit)],
        ).symbolic("push.lower")  # fmt: skip

    # Without a limit each of three equal inputs is -x0 / 4.
    met = problem(0.25).solve([1.0]).sensitivities()
    assert "push at a limit without a multiplier" in met.message
    active = problem(0.2).solve([1.0]).sensitivities()
    assert active.active == {"push": 3}
    assert str(active) == "Sensitivities(active: push at 3 nodes)"
    assert not active.message
    assert np.allclose(active.by("push.lower").u, 1.0)
    assert np.allclose(active.by("x0").u, 0.0)
    # Of the cost ½ (x0 + 3 v)² + 3/2 v² by v = -0.2.
    assert active.by("push.lower").cost == pytest.approx(3 * 0.4 - 3 * 0.2, rel=1e-5)
    same = problem(1.0).solve([9.0]).sensitivities()
    with pytest.raises(ValueError, match="by push.lower: its value, -1, is also the limit of"):
        same.by("push.lower")
    own = OptimalControlProblem(cart, 3, 1.0, Q=0.0, R=1.0, terminal=1.0, reference=[0.0])
    own = own.symbolic("push.lower")  # of the Input alone: a looser one changes nothing
    with pytest.raises(ValueError, match="solve with a tighter one, p={'push.lower': …}"):
        own.solve([9.0]).sensitivities().by("push.lower")
    tighter = own.solve([9.0], p={"push.lower": -0.9}).sensitivities()
    assert np.allclose(tighter.by("push.lower").u, 1.0)
    assert np.isnan(same.adjoint(u=np.ones((3, 1)))["push.lower"])


@pytest.mark.parametrize("hold", ["zero", "first"])
def test_a_limit_that_the_input_has_too_is_a_kink_for_all_shapes_of_inputs(hold):
    """Linear inputs are states: there two rows of one gradient are held at the same nodes."""
    cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=[Input("push", "", -1, 1)])
    problem = OptimalControlProblem(
        cart, 6, 0.5, R=0.1, reference=[0.0], hold=hold, bounds=[Bound("x0", upper=9.0)]
    ).symbolic("push.upper")
    same = problem.solve([-4.0]).sensitivities()
    with pytest.raises(ValueError, match="by push.upper: its value, 1, is also the limit of"):
        same.by("push.upper")
    gradient = same.adjoint(u=np.ones((6 + (hold == "first"), 1)))
    assert np.isnan(gradient["push.upper"]) and np.isfinite(gradient["x0"]).all()
    assert 0 < same.active["push"] <= 7
    p = {"push.upper": 0.8}
    found = problem.solve([-4.0], p=p, tolerance=1e-10)
    other = problem.solve([-4.0], p={"push.upper": 0.8 + 1e-5}, tolerance=1e-10, guess=found)
    slope = found.sensitivities().by("push.upper")
    assert slope.cost == pytest.approx((other.cost - found.cost) / 1e-5, rel=1e-4)
    assert slope.u.max() == pytest.approx(1.0)


def test_what_is_not_determined_is_named():
    """Nothing but a small R weighs the last of linear inputs, until an end of the effort does."""
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "", -1, 1)])

    def solved(terminal):
        effort = Residual(lambda t, x, u, p: u, 0.1, terminal, name="effort")
        return OptimalControlProblem(
            cart, 20, 0.1, R=1e-4, terminal=2.0, reference=[0, 0], hold="first", residuals=[effort]
        ).symbolic("effort.weight").solve([1.0, 0.0], tolerance=1e-4)  # fmt: skip

    with pytest.raises(
        ValueError, match="with input.push off by .* at node 19. .*give weights to inputs"
    ):
        solved(None).sensitivities()
    assert solved(0.05).sensitivities().by("effort.weight").cost > 0


def test_what_has_no_sensitivities_is_refused_by_name():
    problem, x0 = PROBLEMS["torque"]
    found = problem.solve(x0)
    slopes = found.sensitivities()
    with pytest.raises(UnknownNameError, match="unknown sensitivity 'mass'; .* x0, reference, gra"):
        slopes.by("mass")
    with pytest.raises(UnknownNameError, match="unknown parameter 'mass'"):
        slopes.forward(p={"mass": 1.0})
    with pytest.raises(ValueError, match="ended iteration limit: only optimal ones have derivat"):
        problem.solve(x0, max_iterations=1).sensitivities()
    end = swing(terminal="riccati").solve(at_angle(0.3)).sensitivities()
    assert end.by("x0").u.shape == (25, 1, 2)
    with pytest.raises(NotImplementedError, match='terminal="riccati" follows'):
        end.by("reference")

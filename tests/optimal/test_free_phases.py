"""Phases with free starts, priors and terms at nodes: closed forms, one problem, IPOPT."""

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from lgcontrol.codegen._internal import UnknownNameError
from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.optimal import Bound, Cost, OptimalControlProblem, Phase, PhasedProblem, Residual
from lgcontrol.systems import Input, Parameter, System

CART = System(
    "cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u[0]], inputs=[Input("push", "N", -1, 1)]
)
STOP = Bound("x", 0, 0, at="terminal"), Bound("v", 0, 0, at="terminal")
LATE = Residual(lambda t, x, u, p: x, at=range(5, 9))
CLOSE = 1e-4  # least efforts of 1e-6 tell plans apart


def test_a_prior_and_the_time_from_there_are_balanced():
    # From rest at the distance d the least time is 2 √d; the prior says 4, where it is 4 s.
    phase = Phase(CART, 20, (0.5, 10.0), bounds=STOP)  # below 0.25 s another optimum begins
    problem = PhasedProblem(phase, time_weight=1.0, free="x", arrival={"x": 2.0})
    best = minimize_scalar(lambda d: 2 * np.sqrt(d) + 1.0 * (d - 4) ** 2, bounds=(1, 4)).x
    for solver in (None, "ipopt"):
        found = problem.solve([4.0, 0.0], solver=solver)
        assert found.is_success
        assert found.trajectory.x[0] == pytest.approx([best, 0.0], abs=CLOSE)
        assert found.durations["phase0"] == pytest.approx(2 * np.sqrt(best), abs=CLOSE)
    assert 3.0 < best < 3.9
    surer = problem.solve([4.0, 0.0], arrival={"x": 1e4})
    assert surer.trajectory.x[0, 0] == pytest.approx(4.0, abs=1e-3)


def test_a_free_start_keeps_bounds_and_limits():
    near = Bound("x", 1.0, 3.0, at="start"), Bound("v", -0.5, 0.5)
    phase = Phase(CART, 30, (0.2, 10.0), bounds=[*STOP, *near])
    found = PhasedProblem(phase, time_weight=1.0, free="all").solve([2.0, 0.3])
    # It starts as near and as fast as it may, and then brakes: 1 − 1/8 m at 0.5 m/s, 0.5 s to rest.
    assert found.is_success
    assert found.trajectory.x[0] == pytest.approx([1.0, -0.5], abs=CLOSE)
    assert found.durations["phase0"] == pytest.approx(0.875 / 0.5 + 0.5, rel=2e-2)


def test_a_free_pose_is_found_as_ipopt_finds_it():
    car = System(
        "car", Product(pose=SE2, speed=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, u[0], u[1]),
        inputs=[Input("turn", "rad/s", -1, 1), Input("push", "m/s²", -1, 1)],
    )  # fmt: skip
    there = [Bound(name, value, value, at="terminal")
             for name, value in (("pose.x", 3.0), ("pose.y", 1.0), ("speed", 0.0))]  # fmt: skip
    phases = [Phase(car, 12, (0.3, 8.0)), Phase(car, 12, (0.3, 8.0), bounds=there)]
    problem = PhasedProblem(
        phases, time_weight=1.0, free=["pose.x", "pose.y", "pose.rz"],
        arrival={"pose": [2.0, 2.0, 5.0]},
    )  # fmt: skip
    ours, theirs = (problem.solve([0, 0, 1, 0, 0], solver=s) for s in (None, "ipopt"))
    assert ours.is_success and theirs.is_success
    assert ours.cost == pytest.approx(theirs.cost, rel=1e-4)
    assert np.abs(ours.trajectory.x[0, :2]).max() > 0.05


def test_terms_at_nodes_and_weights_along_a_phase_are_those_of_a_problem():
    N, T = 12, 1.2
    Q, R = (np.linspace(1, 3, N)[:, None, None] * np.eye(k) for k in (2, 1))
    pull = Residual(lambda t, x, u, p: x[0] - 0.4, np.array([2.0, 3.0, 4.0])[:, None, None],
                    at=range(4, N + 1, 4))  # fmt: skip
    first = Cost(lambda t, x, u, p: (u[0] - 0.2) ** 2 * (1 + t), 2.0, at="start")
    end = Residual(lambda t, x, u, p: x[1] - 1, 5.0, at="terminal")
    along = Cost(lambda t, x, u, p: ca.exp(x[0]), np.linspace(0, 1, N))
    terms = {"Q": Q, "R": R, "residuals": [pull, end], "costs": [first, along]}
    plain = OptimalControlProblem(CART, N, T / N, terminal=0.0, reference=[0, 0], **terms)
    wanted = plain.solve([1.0, 0.0], tolerance=1e-9)
    halves = [
        Phase(CART, 6, T / 2, Q=Q[:6], R=R[:6], costs=[first, Cost(along.of, along.weight[:6])],
              residuals=[Residual(pull.of, 2.0, at=range(4, 5))]),
        Phase(CART, 6, T / 2, Q=Q[6:], R=R[6:], costs=[Cost(along.of, along.weight[6:])],
              residuals=[Residual(pull.of, pull.weight[1:], at=range(2, 7, 4)), end]),
    ]  # fmt: skip
    whole = Phase(CART, N, T, **terms)
    for phases in (whole, halves):
        found = PhasedProblem(phases).solve([1.0, 0.0], tolerance=1e-9)
        np.testing.assert_allclose(found.trajectory.u, wanted.u, atol=CLOSE)
        assert found.cost == pytest.approx(wanted.cost, abs=1e-4)
    assert np.abs(wanted.u).max() < 1.0  # limits change nothing


def test_the_end_of_a_phase_counts_before_its_jump():
    count = {"residuals": [Residual(lambda t, x, u, p: x[0] - 2.0, 0.3, at=range(5, 6))]}
    start = {"residuals": [Residual(lambda t, x, u, p: x[0] - 2.0, 0.3, at="start")]}
    costs = {}
    for name, before, after in (("end", count, {}), ("start", {}, start)):
        phases = [
            Phase(CART, 5, 0.5, jump=lambda t, x, p: x + 1, R=1.0, **before),
            Phase(CART, 5, 0.5, R=1.0, **after),
        ]
        costs[name] = PhasedProblem(phases).solve([0.0, 0.0])
    ends = {name: found.parts["phase0"].x[-1, 0] for name, found in costs.items()}
    # An effort that grows with the square of the way, and 2 m or, after a jump by one, 1 m to go.
    assert ends["end"] == pytest.approx(2 * ends["start"], rel=1e-3)
    assert ends["end"] > 0.01


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: solve(free="place"), "unknown free initial state 'place'.*x, v"),
        (lambda: solve(arrival=1.0), "name them, free="),
        (lambda: solve(free="x", arrival={"y": 1.0}), "unknown entry of arrival 'y'"),
        (lambda: solve(given={"reference": [0, 0]}), "valid names are x0, durations, guess"),
        (lambda: solve(residuals=[LATE]), "of phase 'phase0'.*nodes are 0 to 5"),
        (lambda: Phase(CART, 5, (0.5, np.inf)), "the longest one must be finite"),
        (lambda: solve(jump=lambda t, x, p: x[7]), r"jump of phase 'phase0', called with.*t, x of"),
        (lambda: solve(jump=lambda t, x: x), r"jump of phase 'phase0' must take \(t, x, p\)"),
    ],
)  # fmt: skip
def test_faults_are_named(make, message):
    with pytest.raises((ValueError, TypeError, UnknownNameError), match=message):
        make()


def solve(free=(), arrival=None, given=(), jump=None, **terms):
    phases = [Phase(CART, 5, 1.0, jump=jump, **terms), Phase(CART, 5, 1.0)]
    return PhasedProblem(phases, free=free, arrival=arrival).solve([0, 0], **dict(given))


def test_the_longest_flight_within_limits_is_found():
    problem = PhasedProblem(Phase(CART, 5, (0.5, 3.0)), time_weight=-1.0)
    found = problem.solve([0.0, 0.0])
    assert found.durations["phase0"] == pytest.approx(3.0, abs=1e-6)
    told = "at its upper limit, 3: a larger one lowers the cost, at first by 1 per s"
    assert f"duration.phase0 is {told}" in found.message


@pytest.mark.parametrize("at", ["start", "both"])
@pytest.mark.parametrize("least", [0.5, 2.5])
def test_a_free_constant_that_ends_at_its_limit_says_what_that_costs(at, least):
    """Least time from rest to rest over 0.9: 2 √0.9 = 1.897 s, or the least that is allowed."""
    timed = System(
        "timed", Product(way=Rn(2), T=Rn(1)), lambda t, x, u, p: [x[2] * x[1], x[2] * u, 0.0],
        inputs=[Input("push", "N", -1, 1)],
    )  # fmt: skip
    problem = OptimalControlProblem(
        timed, 20, 1 / 20, Q=0.0, R=1e-6, terminal=0.0, free=["T"], reference=[1.0, 0.0, 1.0],
        costs=[Cost(lambda t, x, u, p: x[2])],
        bounds=[Bound("T", least, 5.0, at=at), Bound("way", [1, 0], [1, 0], at="terminal")],
    )  # fmt: skip
    found = problem.solve([0.1, 0.0, 1.0])
    assert found.is_success
    assert found.x[0, 2] == pytest.approx(max(least, 2 * np.sqrt(0.9)), abs=1e-4)
    told = "T is at its lower limit, 2.5: a smaller one lowers the cost, at first by 1 per"
    assert (told in found.message) == (least == 2.5)


@pytest.mark.parametrize("weight", [0.5, 5.0, 500.0])
def test_a_duration_and_its_prior_are_balanced(weight):
    """The least effort of N held inputs over 1 m is ``6 R / (T³ (1 − 1/N²))``."""
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    stop = [Bound("x0", 1.0, 1.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")]
    N, R, expected = 20, 2.0, 1.5
    phase = Phase(cart, N, (0.5, 5.0), R=R, bounds=stop, duration_prior=(expected, weight))
    found = PhasedProblem(phase).solve([0.0, 0.0], tolerance=1e-9)

    def cost(T):
        return 6 * R / (T**3 * (1 - 1 / N**2)) + weight / 2 * (T - expected) ** 2

    best = minimize_scalar(cost, bounds=(0.5, 5.0), method="bounded", options={"xatol": 1e-9})
    assert found.is_success
    assert found.durations["phase0"] == pytest.approx(best.x, rel=1e-5)
    assert found.cost == pytest.approx(
        best.fun, rel=1e-5
    )  # beside the weight that tells plans apart


def test_priors_that_mean_nothing_are_refused():
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    with pytest.raises(ValueError, match="of a duration that is found, and 2.0 s is given"):
        Phase(cart, 5, 2.0, duration_prior=(2.0, 1.0))
    with pytest.raises(ValueError, match="expected duration in s, weight > 0"):
        Phase(cart, 5, (1.0, 2.0), duration_prior=(2.0, 0.0))


def test_a_squared_excess_counts_per_s_whatever_the_steps_of_a_phase():
    slow = Bound("v", upper=0.5, soft=0.25)
    excess = Residual(lambda t, x, u, p: ca.fmax(0.0, x[1] - 0.5), 20.0)
    costs = []
    for steps in (20, 40):
        found = [
            PhasedProblem(
                Phase(CART, steps, (1.0, 8.0), R=0.1, bounds=[*STOP, *soft], residuals=terms),
                time_weight=1.0,
            ).solve([-2.0, 0.0])
            for soft, terms in (((), [excess]), ([slow], []))
        ]
        assert all(one.is_success for one in found)
        costs.append([one.cost for one in found])
        over = found[0].trajectory.x[:, 1] - 0.5
        assert 0.01 < over.max() < 0.2  # both the limit and its price matter
    assert costs[1] == pytest.approx(costs[0], rel=0.01)


@pytest.mark.usually(lengths=([1.0, 1.0, 2.0, 4.0, 2.0, 1.0, 1.0, 1.0],))
@pytest.mark.parametrize("lengths", [None, [1.0, 1.0, 2.0, 4.0, 2.0, 1.0, 1.0, 1.0]])
def test_soft_bounds_of_a_free_duration_count_as_in_problems_of_all_durations(lengths):
    soft = [
        Bound("v", upper="most", soft="price"), Bound("push", -0.7, 0.4, soft=0.6),
        Bound("v", upper=0.5, soft=0.3, at=range(3, 5)),
    ]  # fmt: skip
    terms = {"R": 0.1, "bounds": [*STOP, *soft]}
    parameters = [Parameter("most", nominal=0.4), Parameter("price", nominal=0.8)]
    shares = np.ones(8) if lengths is None else np.array(lengths)
    phase = Phase(CART, 8, (1.0, 8.0), lengths=lengths, **terms)
    found = PhasedProblem(phase, time_weight=0.5, parameters=parameters).solve([-2.0, 0.0])

    def cost(seconds):
        steps = seconds * shares / shares.sum()
        one = OptimalControlProblem(
            CART, 8, steps, Q=0.0, terminal=0.0, parameters=parameters, **terms
        ).solve([-2.0, 0.0], tolerance=1e-9)
        return one.cost + 0.5 * seconds

    best = minimize_scalar(cost, bounds=(2.0, 7.0), method="bounded", options={"xatol": 1e-5})
    assert found.is_success
    assert found.cost == pytest.approx(best.fun, rel=1e-6)
    assert found.durations["phase0"] == pytest.approx(best.x, abs=2e-3)
    alone = PhasedProblem(
        Phase(CART, 8, (1.0, 8.0), lengths=lengths, R=0.1, bounds=STOP), time_weight=0.5
    ).solve([-2.0, 0.0])
    assert found.cost > alone.cost + 0.1


def to_rest(push, force):
    """Cart of 1 m/s² at a given force, one metre away from rest to rest."""
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u[0] / force], inputs=[push])
    ends = [Bound("x0", 1, 1, at="terminal"), Bound("x1", 0, 0, at="terminal")]
    return cart, ends


@pytest.mark.parametrize("hold", ["zero", "first"])
def test_a_least_time_is_that_of_any_unit_of_inputs_without_limits_of_their_own(hold):
    """Two seconds by the closed form; weights on inputs in newtons made 3.4 of it."""
    found = []
    for force in (1.0, 1e3, 1e6):
        cart, ends = to_rest(Input("push", "N"), force)
        thrust = Bound(
            lambda t, x, u, p, force=force: (u[0] / force) ** 2, upper=1.0, name="thrust"
        )
        phase = Phase(cart, 20, (0.5, 5.0), bounds=[*ends, thrust])
        found.append(PhasedProblem(phase, time_weight=1.0, hold=hold).solve([0, 0]))
    assert all(one.is_success for one in found)
    least = [one.durations["phase0"] for one in found]
    np.testing.assert_allclose(least, 2.0, rtol=2e-3)
    np.testing.assert_allclose(least, least[0], rtol=1e-5)


def test_the_cost_of_a_phase_with_weights_on_its_inputs_is_that_of_the_problem():
    """In newtons and without limits, where a weight of its own made 15.8 of 0.75."""
    cart, ends = to_rest(Input("push", "N"), 1e3)
    phase = Phase(cart, 40, 2.0, R=1e-6, bounds=ends)
    found = PhasedProblem(phase).solve([0, 0])
    alone = OptimalControlProblem(cart, 40, 0.05, Q=0, terminal=0, R=1e-6, bounds=ends).solve(
        [0, 0]
    )
    assert found.cost == pytest.approx(alone.cost, rel=1e-9)


def test_a_phase_that_vanishes_is_not_needed():
    """Coasting costs twice what the rest does, so that none of it is left."""
    coast = System("coast", CART.state, lambda t, x, u, p: [x[1], 0.0])
    stop = [Bound("x", 1, 1, at="terminal"), Bound("v", 0, 0, at="terminal")]
    found = PhasedProblem(
        [
            Phase(CART, 10, (0.0, 5.0), name="go"),
            Phase(coast, 3, (0.0, 5.0), costs=[Cost(lambda t, x, u, p: 1.0)], name="coast"),
            Phase(CART, 10, (0.0, 5.0), bounds=stop, name="brake"),
        ],
        time_weight=1.0,
    ).solve([0.0, 0.0])
    assert found.durations["coast"] < 1e-5 and found.is_success
    told = "phase 'coast' is not needed: its duration ends at 0 s, and every second of it costs 1;"
    assert told in found.message and "widen" not in found.message

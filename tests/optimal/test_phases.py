"""Free times, phases, jumps, loops and costs that are no squares: against closed forms."""

import dataclasses
import re

import casadi as ca
import numpy as np
import pytest
from scipy.optimize import brentq

from lgcontrol.codegen import _notice
from lgcontrol.groups import SE2, SO3, Product, Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    HalfSpace,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Residual,
    Sphere,
    Violation,
    keep_out,
)
from lgcontrol.optimal.phases._phase_motions import guess_of_phases
from lgcontrol.systems import Input, Parameter, System, Trajectory

FOUND = 1e-5  # of a duration: what the least effort costs


def cart(lower, upper):
    push = Input("push", "m/s²", lower, upper)
    return System("cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u], inputs=[push])


OTHER = System("other", Rn(1), lambda t, x, u, p: u, inputs=["push"])
STOP = (Bound("x", 1, 1, at="terminal"), Bound("v", 0, 0, at="terminal"))


def test_least_time_of_a_double_integrator():
    """2 √d; with unlike limits a and b in two phases √(2 d (a + b) / (a b))."""
    one = PhasedProblem(Phase(cart(-1, 1), 20, (0.5, 5), bounds=STOP), time_weight=1)
    assert one.solve([0, 0]).durations["phase0"] == pytest.approx(2.0, rel=FOUND)
    pair = [
        Phase(cart(0, 2), 4, (0.1, 5), name="push"),
        Phase(cart(-1, 0), 4, (0.1, 5), bounds=STOP),
    ]
    found = PhasedProblem(pair, time_weight=1).solve([0, 0])
    assert found.is_success
    assert found.durations["push"] == pytest.approx(1 / np.sqrt(3), rel=FOUND)
    with pytest.raises(KeyError, match="unknown phase 0; valid names are push, phase1"):
        found.durations[0]
    assert found.switches == pytest.approx([1 / np.sqrt(3), np.sqrt(3)], rel=FOUND)
    # Each phase keeps the limits of its own system; the result is a motion in time.
    run = found.trajectory
    assert (run.u[:4] >= -1e-6).all() and (run.u[4:] <= 1e-6).all()
    assert run.duration == pytest.approx(np.sqrt(3), rel=FOUND)
    np.testing.assert_allclose(np.diff(run.x[:, 1]), np.diff(run.t) * run.u[:, 0], atol=1e-7)
    assert [len(part.u) for part in found.parts.values()] == [4, 4]  # one a step, as all plans


def test_the_least_time_of_an_unstable_pole():
    """It falls by e every 0.1 s: adjoint sweeps without feedback may grow by e³⁰ in a plan."""
    pole = System(
        "pole", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], 100 * ca.sin(x[0]) + u[0]],
        inputs=[Input("push", "", -60, 60)],
    )  # fmt: skip
    goal = Bound("x", 0.5, 0.5, at="terminal"), Bound("v", 0, 0, at="terminal"), Bound("v", -4, 4)
    problem = PhasedProblem(Phase(pole, 30, (0.2, 3.0), R=1e-3, bounds=goal), time_weight=1)
    found, other = (
        problem.solve([0, 0], solver=name, max_iterations=100)
        for name in ("interior_point", "ipopt")
    )
    assert found.is_success and found.cost == pytest.approx(other.cost, rel=1e-5)


@pytest.mark.parametrize(
    "solver", ["interior_point", pytest.param("C", marks=pytest.mark.compiled)]
)
def test_limits_just_above_the_least_time_do_not_stall(solver):
    """The barrier of nearly all pushes at their limits is stiff, and the ends need it to give way.

    NumPy and C take the same steps there: multipliers of ends are found by secants in both.
    """
    problem = PhasedProblem(Phase(cart(-1, 1), 20, (0.5, 2.001), bounds=STOP), time_weight=1)
    chosen = InteriorPointSolver(problem.problem).prepare() if solver == "C" else solver
    found = problem.solve([0, 0], solver=chosen)
    assert found.status == "converged" and len(found.solution.iterations) <= 30
    assert found.durations["phase0"] == pytest.approx(2.0, rel=FOUND)


def test_a_plan_may_end_at_its_limits():
    """An end that is fixed at a limit needs no limit there, whatever is bounded by its side."""
    ended = [
        Bound("x", -1, 1, at="both"),
        Bound("v", 0, 2),
        Bound(lambda t, x, u, p: x[0], upper=1),
    ]
    phase = Phase(cart(-1, 1), 20, (0.5, 5), bounds=[*STOP, *ended])
    found = PhasedProblem(phase, time_weight=1).solve([0, 0])
    assert found.status == "converged" and len(found.solution.iterations) <= 30
    assert found.durations["phase0"] == pytest.approx(2.0, rel=FOUND)
    rows = InteriorPointSolver(found.solution.problem).transcription.rows
    fixed = [name for name, on in zip(rows.names, rows.active[-1], strict=True) if on]
    assert fixed == ["x", "v"]


def test_a_ball_bounces():
    """Fall, jump and rise: √(2h/g), then e times that, to e² h."""
    g, h, e = 9.81, 2.0, 0.8
    still = Input("nudge", "", -1e-6, 1e-6)
    ball = System("ball", Rn(2, ("z", "v")), lambda t, x, u, p: [x[1], u - g], inputs=[still])
    fall = Phase(
        ball, 3, (0.1, 3), bounds=[Bound("z", 0, 0, at="terminal")], name="fall",
        jump=lambda t, x, p: ca.vertcat(x[0], -e * x[1]),
    )  # fmt: skip
    rise = Phase(ball, 3, (0.1, 3), bounds=[Bound("v", 0, 0, at="terminal")], name="rise")
    found = PhasedProblem([fall, rise]).solve([h, 0])
    assert found.durations["fall"] == pytest.approx(np.sqrt(2 * h / g), rel=FOUND)
    assert found.durations["rise"] == pytest.approx(e * np.sqrt(2 * h / g), rel=FOUND)
    assert found.trajectory.x[-1, 0] == pytest.approx(e**2 * h, rel=FOUND)


def test_a_hopper_whose_foot_lands_is_periodic():
    """The effort of IPOPT on the same transcription. Nearly dependent rows need their multipliers:
    the loop repeats what the starts and the landing say of the foot."""
    body, foot, g, rest = 8.0, 1.0, 9.81, 0.5

    def leg(x, u):
        return 2000 * (rest - x[0] + x[1]) + u - 20 * (x[2] - x[3])

    def of(name, foot_moves):
        def rate(t, x, u, p):
            falls = [x[3], -leg(x, u) / foot - g] if foot_moves else [0, 0]
            return [x[2], falls[0], leg(x, u) / body - g, falls[1]]

        line = Rn(4, ("z", "foot", "v", "foot_v"))
        return System(name, line, rate, inputs=[Input("force", "N", -300, 300)])

    stance, flight = of("stance", False), of("flight", True)
    length = Bound(lambda t, x, u, p: x[0] - x[1], 0.25, 0.7, name="leg")
    above = Bound("foot", lower=0.0)
    stands = [Bound(name, 0, 0, at="start") for name in ("foot", "foot_v")]
    pushes = Bound(lambda t, x, u, p: leg(x, u) + foot * g, lower=0.0, name="ground")
    apex = [Bound("v", 0, 0, at="terminal"), Bound("z", 0.8, 0.8, at="terminal")]
    lands = Bound("foot", 0, 0, at="terminal")
    phases = [
        Phase(stance, 30, (0.05, 1.0), R=1e-3, bounds=[length, pushes, *stands]),
        Phase(flight, 15, (0.05, 1.0), R=1e-3, bounds=[length, above, *apex]),
        Phase(
            flight, 15, (0.05, 1.0), R=1e-3, bounds=[length, above, lands],
            jump=lambda t, x, p: ca.vertcat(x[0], 0, x[2], 0),
        ),
    ]  # fmt: skip
    found = PhasedProblem(phases, is_periodic=True).solve([0.45, 0, 0, 0])
    assert found.is_success, found.message
    assert found.cost == pytest.approx(0.2901225, rel=1e-6)


def test_the_brachistochrone():
    """Down a cycloid to (1, 1): √(r/g) θ with (θ − sin θ)/(1 − cos θ) = 1."""
    g = 9.81
    bead = System(
        "bead", Rn(3, ("x", "y", "v")),
        lambda t, x, u, p: [x[2] * ca.sin(u), x[2] * ca.cos(u), g * ca.cos(u)],
        inputs=[Input("angle", "rad", 0, np.pi, nominal=0.8)],
    )  # fmt: skip
    ends = [Bound(name, 1, 1, at="terminal") for name in "xy"]
    found = PhasedProblem(Phase(bead, 30, (0.1, 3), bounds=ends), time_weight=1).solve([0, 0, 0])
    theta = brentq(lambda a: (a - np.sin(a)) / (1 - np.cos(a)) - 1, 0.5, 6)
    exact = np.sqrt(1 / (1 - np.cos(theta)) / g) * theta
    assert found.is_success
    assert found.durations["phase0"] == pytest.approx(exact, rel=2e-4)


def parked(*walls):
    """A car backs into its place in least time, in 30 steps, and where it begins."""
    inputs = [Input("push", "m/s²", -1.5, 1.5), Input("steer_rate", "rad/s", -0.8, 0.8)]
    car = System(
        "car",
        Product(pose=SE2, speed=Rn(1), steer=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[4], 0, x[4] * ca.tan(x[5]) / 2.5, u[0], u[1]),
        inputs=inputs,
    )
    goal = {"pose.x": 2.15, "pose.y": 0, "pose.rz": 0, "speed": 0, "steer": 0}
    bounds = [Bound(name, value, value, at="terminal") for name, value in goal.items()]
    bounds += [Bound("speed", -2, 2), Bound("steer", -0.6, 0.6), *walls]
    phase = Phase(car, 30, (2.0, 25.0), R=1e-3, bounds=bounds)
    problem = PhasedProblem(phase, time_weight=1.0, reference=[2.15, 0, 1, 0, 0, 0])
    return problem, [7.0, 2.7, 1.0, 0.0, 0.0, 0.0]


def test_a_duration_keeps_its_limits_along_the_way():
    """Steps that may go below zero end there: no time costs less."""
    problem, x0 = parked()
    start = problem._flat.state(np.array(x0), [50**0.5])
    solver = InteriorPointSolver(problem.problem)
    along = [solver.solve(start, max_iterations=k).x[0, -1] for k in range(0, 20, 4)]
    assert 2 < min(along) and max(along) < 25
    plan, peer = problem.solve(x0), problem.solve(x0, solver="ipopt")
    assert plan.is_success and abs(plan.cost - peer.cost) < 1e-5 * peer.cost


def test_a_duration_between_equal_limits_is_fixed():
    """As the one number: no free time with an equality, which a search may leave."""
    plans = [
        PhasedProblem(Phase(cart(-1, 1), 4, duration, R=1.0, bounds=STOP)).solve([0, 0])
        for duration in (3.0, (3.0, 3.0))
    ]
    assert plans[1].durations["phase0"] == 3.0 and plans[1].is_success
    np.testing.assert_array_equal(plans[0].solution.x, plans[1].solution.x)
    with pytest.raises(ValueError, match="duration_prior is of a duration that is found"):
        Phase(cart(-1, 1), 4, (3.0, 3.0), duration_prior=(2.0, 1.0))


def test_a_duration_with_a_prior_that_no_limit_allows_says_which_were_tried():
    """The longest is fixed, and has no prior."""
    far = [Bound("x", 1000, 1000, at="terminal")]
    phase = Phase(cart(-1, 1), 4, (1.0, 2.0), bounds=far, duration_prior=(1.5, 1.0))
    found = PhasedProblem(phase, time_weight=1.0).solve([0, 0])
    assert found.status == "infeasible"
    assert "longer durations, 1.414, 1.682, 2 s in all" in found.message


@pytest.mark.compiled
def test_c_and_numpy_keep_limits_of_the_start_alike():
    problem, x0 = parked()
    start = problem._flat.state(np.array(x0), [50**0.5])
    plain = InteriorPointSolver(problem.problem)
    built = InteriorPointSolver(problem.problem).prepare()
    for most in (6, 12):
        a, b = (solver.solve(start, max_iterations=most) for solver in (plain, built))
        np.testing.assert_allclose(a.x, b.x, atol=1e-10)
        np.testing.assert_allclose(a.u, b.u, atol=1e-10)


def posts():
    """Other cars and a curb, which three discs keep out of."""

    def disc(along):
        return lambda t, x, u, p: ca.vertcat(x[0] + along * x[2], x[1] + along * x[3])

    cars = [Sphere([at, 0.0], 0.9) for at in (-0.9, -2.55, 7.7, 9.35)]
    return [
        keep_out(disc(along), obstacle, radius=1.11, name=f"{along} {k}")
        for along in (-0.18, 1.25, 2.68)
        for k, obstacle in enumerate([*cars, HalfSpace([0, -1.3], [0, 1])])
    ]


def test_a_solve_from_an_optimum_stays():
    """Between parked cars, where longer plans are farther from all limits."""
    problem, x0 = parked(*posts())
    peer = problem.solve(x0, solver="ipopt")
    plan = problem.solve(x0, guess=peer)
    assert peer.is_success and plan.is_success and len(plan.solution.iterations) < 40
    assert plan.cost < 1.0001 * peer.cost
    easier = parked()[0].solve(x0)
    beside = problem.solve(x0, guess=easier)
    assert beside.is_success and easier.cost < beside.cost < 1.02 * easier.cost


@pytest.mark.thorough
def test_the_slew_of_a_symmetric_body():
    """Half a turn from rest to rest, each torque within ±1: 3.2431, about an axis √(4π) = 3.5449.

    K. D. Bilimoria, B. Wie: Time-optimal three-axis reorientation of a rigid spacecraft. Journal of
    Guidance 16 (1993): the rotation about an axis is not the fastest.
    """
    torques = [Input(f"m{i}", "", -1, 1) for i in range(3)]
    body = System(
        "body", Product(q=SO3, w=Rn(3)), lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=torques
    )
    goal = SO3.exp([0, 0, np.pi])
    ends = [
        Bound(lambda t, x, u, p: SO3.minus(x[:4], ca.DM(goal)), 0, 0, at="terminal", name="goal"),
        Bound("w", 0, 0, at="terminal"),
    ]
    problem = PhasedProblem(Phase(body, 40, (2.0, 5.0), bounds=ends), time_weight=1)
    s = np.linspace(0, 1, 41)
    share = np.where(s < 0.5, 2 * s**2, 1 - 2 * (1 - s) ** 2)
    # One that nods farther leads to another optimum, of 3.2854.
    nod = SO3.exp(np.c_[0.3 * np.sin(np.pi * s), 0.2 * np.sin(2 * np.pi * s), 0 * s])
    q = SO3.compose(nod, SO3.exp(np.c_[0 * s, 0 * s, np.pi * share]))
    u = np.c_[0.5 * np.cos(np.pi * s), 0.5 * np.cos(np.pi * s), np.where(s < 0.5, 1, -1)][:-1]
    guess = Trajectory(body.state, s, np.c_[q, np.zeros((41, 3))], u)
    found = problem.solve(body.state.identity, durations=[3.4], guess=guess)
    assert found.is_success
    assert found.durations["phase0"] == pytest.approx(3.2431, rel=1e-3)


def dubins(x, y, heading):
    """Arcs (length, curvature) of the shortest way from (0, 0, 0) with curvature within ±1.

    A. M. Shkel, V. Lumelsky: Classification of the Dubins set. Robotics and Autonomous Systems 34
    (2001); words of three arcs are shorter only within four radii.
    """
    d, turn = np.hypot(x, y), np.arctan2(y, x)
    a, b = -turn % (2 * np.pi), (heading - turn) % (2 * np.pi)
    sa, sb, ka, kb, c = np.sin(a), np.sin(b), np.cos(a), np.cos(b), np.cos(a - b)
    found = []
    for sign in (1, -1):
        p = 2 + d**2 - 2 * c + sign * 2 * d * (sa - sb)  # LSL, RSR
        if p >= 0:
            t = np.arctan2(sign * (kb - ka), d + sign * (sa - sb))
            found.append([sign * (t - a), np.sqrt(p), sign * (b - t), sign, 0, sign])
        p = -2 + d**2 + 2 * c + sign * 2 * d * (sa + sb)  # LSR, RSL
        if p >= 0:
            p = np.sqrt(p)
            t = np.arctan2(-sign * (ka + kb), d + sign * (sa + sb)) - np.arctan2(-sign * 2, p)
            found.append([sign * (t - a), p, sign * (t - b), sign, 0, -sign])
    words = np.array(found)
    words[:, [0, 2]] %= 2 * np.pi
    best = words[np.argmin(words[:, :3].sum(axis=1))]
    return best[:3], best[3:]


@pytest.mark.usually(seed=[1], steps=[1])
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("steps", [1, 3])
def test_lengths_of_dubins(seed, steps):
    """Three phases of a car with bounded curvature; steps of a constant twist are exact.

    An arc of more than a turn is never shortest. With three steps a phase other ways are locally
    shortest, too: two arcs in one phase, while another vanishes. The start is near the shortest.
    """
    car = System(
        "car", SE2, lambda t, x, u, p: ca.vertcat(1, 0, u), inputs=[Input("curvature", "", -1, 1)]
    )
    rng = np.random.default_rng(seed)
    distance, turn, heading = rng.uniform(4, 8), *rng.uniform(-3, 3, 2)
    x, y = distance * np.cos(turn), distance * np.sin(turn)
    there = ca.DM([x, y, np.cos(heading), np.sin(heading)])
    goal = Bound(lambda t, x, u, p: SE2.minus(x, there), 0, 0, at="terminal", name="goal")
    arc = 1e-3, 2 * np.pi
    phases = [
        Phase(car, steps, arc, name="first"),
        Phase(car, steps, (1e-3, 12.0), name="middle"),
        Phase(car, steps, arc, name="last", bounds=[goal]),
    ]
    lengths, word = dubins(x, y, heading)
    times, u = 1.05 * lengths + 0.02, 0.95 * word  # a start that misses the goal
    nodes = [SE2.identity]
    for time, turn in np.repeat(np.transpose([times / steps, u]), steps, axis=0):
        nodes.append(SE2.plus(nodes[-1], [time, 0, time * turn]))
    turns = np.repeat(u, steps)[:, None]
    found = PhasedProblem(phases, time_weight=1).solve(
        SE2.identity, durations=times, guess=Trajectory(SE2, np.arange(len(nodes)), nodes, turns)
    )
    assert found.is_success
    assert sum(found.durations.values()) == pytest.approx(lengths.sum(), rel=1e-6)


def reeds_shepp(x, y, heading):
    """Signed lengths and curvatures of the shortest way with reversals, curvature within ±1.

    J. A. Reeds, L. A. Shepp: Optimal paths for a car that goes both forwards and backwards. Pacific
    Journal of Mathematics 145 (1990), section 8; a word counts only if it leads to the goal.
    """
    pi = np.pi

    def turn(a):
        return (a + pi) % (2 * pi) - pi

    def two(u, v, xi, eta, phi):
        d = turn(u - v)
        a, b = np.sin(u) - np.sin(d), np.cos(u) - np.cos(d) - 1
        t = np.arctan2(eta * a - xi * b, xi * a + eta * b)
        tau = turn(t + pi if 2 * (np.cos(d) - np.cos(v) - np.cos(u)) + 3 < 0 else t)
        return tau, turn(tau - u + v - phi)

    def words(x, y, phi):
        xi, eta = x - np.sin(phi), y - 1 + np.cos(phi)
        r, a = np.hypot(xi, eta), np.arctan2(eta, xi)
        yield [a, r, turn(phi - a)], [1, 0, 1]
        if r <= 4:
            u = -2 * np.arcsin(r / 4)
            t = turn(a + u / 2 + pi)
            yield [t, u, turn(phi - t + u)], [1, -1, 1]
        if r >= 2:
            q = np.sqrt(r**2 - 4)
            t = turn(a + np.arctan2(q, -2))
            yield [t, -pi / 2, 2 - q, turn(phi - pi / 2 - t)], [1, -1, 0, 1]
        xi, eta = x + np.sin(phi), y - 1 - np.cos(phi)
        r, a = np.hypot(xi, eta), np.arctan2(eta, xi)
        if r >= 2:
            q = np.sqrt(r**2 - 4)
            t = turn(a + np.arctan2(2, q))
            yield [t, q, turn(t - phi)], [1, 0, -1]
            t, u = np.arctan2(xi, -eta), 2 - r
            yield [t, -pi / 2, u, turn(t + pi / 2 - phi)], [1, -1, 0, -1]
            u = 4 - q
            t = turn(np.arctan2((4 - u) * xi - 2 * eta, -2 * xi + (u - 4) * eta))
            yield [t, -pi / 2, u, -pi / 2, turn(t - phi)], [1, -1, 0, 1, -1]
        rho = (2 + r) / 4
        if rho <= 1:
            u = np.arccos(rho)
            t, v = two(u, -u, xi, eta, phi)
            yield [t, u, -u, v], [1, -1, 1, -1]
        rho = (20 - r**2) / 16
        if 0 <= rho <= 1:
            u = -np.arccos(rho)
            t, v = two(u, u, xi, eta, phi)
            yield [t, u, u, v], [1, -1, 1, -1]

    goal = np.array([x, y, np.cos(heading), np.sin(heading)])
    back = x * np.cos(heading) + y * np.sin(heading), x * np.sin(heading) - y * np.cos(heading)
    best = None
    for (a, b), is_back in (((x, y), False), (back, True)):
        for flip in (1, -1):
            for mirror in (1, -1):
                for lengths, bends in words(flip * a, mirror * b, flip * mirror * heading):
                    s, k = flip * np.array(lengths), mirror * np.array(bends, dtype=float)
                    if is_back:
                        s, k = s[::-1], k[::-1]
                    end = SE2.identity
                    for length, bend in zip(s, k, strict=True):
                        end = SE2.plus(end, [length, 0, length * bend])
                    reached = abs(SE2.minus(end, goal)).max() < 1e-9
                    if reached and (best is None or abs(s).sum() < abs(best[0]).sum()):
                        best = s, k
    assert best is not None
    return best


@pytest.mark.usually(seed=[5])
@pytest.mark.parametrize("seed", range(10))
def test_lengths_of_reeds_and_shepp(seed):
    """A phase for each stretch between reversals and changes of the bend, forwards or backwards."""

    def car(way):
        return System(
            f"car{way:+.0f}", SE2, lambda t, x, u, p: ca.vertcat(way, 0, way * u),
            inputs=[Input("curvature", "", -1, 1)],
        )  # fmt: skip

    x, y, heading = np.random.default_rng(seed).uniform([-3, -3, -3], [3, 3, 3])
    s, bends = reeds_shepp(x, y, heading)
    s, bends = s[abs(s) > 1e-6], bends[abs(s) > 1e-6]
    there = ca.DM([x, y, np.cos(heading), np.sin(heading)])
    goal = Bound(lambda t, x, u, p: SE2.minus(x, there), 0, 0, at="terminal", name="goal")
    phases = [
        Phase(car(np.sign(length)), 1, (1e-3, 12.0), bounds=[goal] * (k == len(s) - 1))
        for k, length in enumerate(s)
    ]
    times, u, nodes = 1.1 * abs(s) + 0.05, 0.9 * bends, [SE2.identity]
    for way, time, bend in zip(np.sign(s), times, u, strict=True):
        nodes.append(SE2.plus(nodes[-1], [way * time, 0, way * time * bend]))
    guess = Trajectory(SE2, np.arange(len(s) + 1), nodes, u[:, None])
    found = PhasedProblem(phases, time_weight=1).solve(SE2.identity, durations=times, guess=guess)
    assert found.is_success, found.message
    assert sum(found.durations.values()) == pytest.approx(abs(s).sum(), rel=1e-3)


def test_a_loop_of_free_period_takes_the_period_of_the_oscillator():
    """Half a turn of (x, v) to (−x, −v), jumped back: π/ω costs no effort at all."""
    spring = System(
        "spring", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u - 4 * x[0]], inputs=["push"]
    )
    phase = Phase(
        spring, 30, (0.5, 3.0), R=1.0, jump=lambda t, x, p: -x,
        bounds=[Bound("x", lower=-1.5, upper=1.5)],
        residuals=[Residual(lambda t, x, u, p: 4 * x[0] ** 2 + x[1] ** 2 - 4.0, name="energy")],
    )  # fmt: skip
    found = PhasedProblem(phase, is_periodic=True).solve([0.9, 0.3], durations=[1.2])
    assert found.is_success
    assert found.durations["phase0"] == pytest.approx(np.pi / 2, rel=1e-4)
    run = found.trajectory
    np.testing.assert_allclose(run.x[0], -run.x[-1], atol=1e-6)
    assert 4 * run.x[0, 0] ** 2 + run.x[0, 1] ** 2 == pytest.approx(4.0, rel=1e-4)


# Costs


@pytest.mark.usually(terminal=(-0.5,))
@pytest.mark.parametrize("terminal", [None, -0.5])
def test_economic_costs_end_where_ipopt_does(terminal):
    """Catch of a pond, ∫ u x, with what is left at the end worth something or nothing."""
    pond = System(
        "pond", Rn(1, ("fish",)), lambda t, x, u, p: x * (1 - x) - u * x,
        inputs=[Input("catch", "1/s", 0.0, 1.0)],
    )  # fmt: skip
    costs = [Cost(lambda t, x, u, p: -u * x, "price"), Cost(lambda t, x, u, p: x, None, terminal)]
    problem = OptimalControlProblem(
        pond, 40, 0.1, Q=0, R=1e-2, terminal=0, reference=[0.5], costs=costs, parameters=["price"]
    )
    found = problem.solve([0.3], p={"price": 2.0})
    other = problem.solve([0.3], p={"price": 2.0}, solver="ipopt")
    assert found.status == "converged" and other.is_success
    assert found.cost <= other.cost + 1e-3 * abs(other.cost)


def test_a_cost_along_a_phase_counts_its_seconds():
    """∫ v dt is the distance, however long the phase takes."""
    metre = Cost(lambda t, x, u, p: x[1], name="metre")
    problem = PhasedProblem(Phase(cart(-1, 1), 20, (3.0, 3.5), bounds=STOP, costs=[metre], R=1e-4))
    found = problem.solve([0, 0])
    assert found.cost == pytest.approx(1.0, abs=1e-2)  # by the rule of rectangles


def test_what_the_end_of_a_phase_costs():
    """A square at the end of the first of two phases, and of the second: one least-squares problem.

    Positions at the ends are sums of what the pushes move: half an impulse's time to each end.
    """
    steps, h, weights, aims = 4, 0.25, (30.0, 8.0), (1.0, -0.5)

    def at_end(aim, weight, kind):
        if kind is Residual:
            return [Residual(lambda t, x, u, p: x[0] - aim, None, weight, name="aim")]
        return [Cost(lambda t, x, u, p: (x[0] - aim) ** 2 / 2, None, weight, name="aim")]

    times = h * np.arange(2 * steps)
    moved = [np.maximum(end - times - h / 2, 0) * h * (times < end) for end in (1.0, 2.0)]
    rows = [
        np.sqrt(h) * np.eye(2 * steps),
        *(np.sqrt(w) * m for w, m in zip(weights, moved, strict=True)),
    ]
    right = [np.zeros(2 * steps), *(np.sqrt(w) * a for w, a in zip(weights, aims, strict=True))]
    best = np.linalg.lstsq(np.vstack(rows), np.hstack(right), rcond=None)[0]
    for kind, word in ((Residual, "residuals"), (Cost, "costs")):
        phases = [
            Phase(cart(-9, 9), steps, 1.0, R=1.0, **{word: at_end(aim, weight, kind)})
            for aim, weight in zip(aims, weights, strict=True)
        ]
        found = PhasedProblem(phases).solve([0, 0])
        assert found.is_success
        np.testing.assert_allclose(found.trajectory.u[:, 0], best, atol=1e-4)


@pytest.mark.parametrize(
    ("group", "name"), [(Rn(1), "x0"), (Product(motion=Rn(1), speed=Rn(1)), "motion")]
)
def test_messages_name_states_as_phases_do(group, name):
    def solved(rate):
        system = System("lag", group, lambda t, x, u, p: ca.vertcat(*[rate(x, u)] * group.dim),
                        inputs=[Input("u", "", -1, 1)])  # fmt: skip
        stop = Bound(name, 9, 9, at="terminal")
        problem = PhasedProblem(Phase(system, 5, (0.5, 5), bounds=[stop]), time_weight=1)
        return problem.solve(group.identity).message

    lost = solved(lambda x, u: ca.sqrt(x[0] - 5) + u)
    assert lost.startswith(f"the motion of lag, {name} is not finite")
    assert f"; {name} misses its bound by 4 at t = 5 s" in solved(lambda x, u: u)


def test_phases_on_different_groups():
    """Along a rail to its edge, then through the air to a mark: run up, coast, fall.

    At the edge v = (mark − 1) / √(2h/g): sooner there after pushing for v/a, then coasting.
    """
    a, g, h, mark = 2.0, 9.81, 1.25, 1.7
    rail = System(
        "rail", Rn(2, ("s", "v")), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "", 0, a)]
    )
    air = System(
        "air", Product(at=Rn(2, ("x", "z")), v=Rn(2)),
        lambda t, x, u, p: ca.vertcat(x[2:], u, -g), inputs=[Input("gust", "", -1e-6, 1e-6)],
    )  # fmt: skip

    def off(t, x, p):
        return [x[0], h, x[1], 0]

    edge = Bound("s", 1, 1, at="terminal")
    land = [Bound("at.x", mark, mark, at="terminal"), Bound("at.z", 0, 0, at="terminal")]
    phases = [
        Phase(rail, 3, (0.05, 3), name="run"),
        Phase(rail, 3, (0.05, 3), name="coast", bounds=[edge], jump=off),
        Phase(air, 4, (0.05, 3), name="fall", bounds=land),
    ]
    found = PhasedProblem(phases, time_weight=1).solve([0, 0], durations=[0.6, 0.5, 0.5])
    fall = np.sqrt(2 * h / g)
    v = (mark - 1) / fall
    assert found.is_success, found.message
    assert found.durations["fall"] == pytest.approx(fall, rel=FOUND)
    both = found.durations["run"] + found.durations["coast"]
    assert both == pytest.approx(v / a + (1 - v**2 / (2 * a)) / v, rel=FOUND)
    parts = found.parts
    assert parts["run"].group == rail.state and parts["fall"].group == air.state
    assert parts["fall"].x[0] == pytest.approx([1, h, v, 0], abs=1e-4)
    assert parts["fall"].t[0] == parts["coast"].t[-1] == pytest.approx(both)
    assert parts["fall"].x[-1, :2] == pytest.approx([mark, 0], abs=1e-5)
    with pytest.raises(ValueError, match="run, coast, fall have states on different groups"):
        _ = found.trajectory
    again = PhasedProblem(phases, time_weight=1).solve(
        [0, 0], durations=[*found.durations.values()], guess=[*parts.values()]
    )
    # How the time is split among the phases hardly costs: both end above the least time of the
    # formula, within what a duration is found to. The guess ends nearer: 4.0e-6 above, not 5.3e-6.
    least = fall + v / a + (1 - v**2 / (2 * a)) / v
    assert again.is_success and again.cost == pytest.approx(least, rel=FOUND)
    assert again.cost <= found.cost * (1 + 1e-6)
    with pytest.raises(ValueError, match="has 2 trajectories for 3 phases"):
        PhasedProblem(phases, time_weight=1).solve([0, 0], guess=[parts["run"], parts["fall"]])


def test_the_best_of_several_guesses_is_the_answer():
    """From the far side of a post, from the near one, and from a word; phases as problems do."""
    plane = System(
        "plane", Rn(2), lambda t, x, u, p: u, inputs=[Input("a", "", -1, 1), Input("b", "", -1, 1)]
    )
    post = Bound(lambda t, x, u, p: x[0] ** 2 + (x[1] - 0.3) ** 2, lower=1.0)
    ends = [Bound("x0", 2, 2, at="terminal"), Bound("x1", 0, 0, at="terminal")]
    problem = PhasedProblem(
        [Phase(plane, 10, 3.0, R=1.0, bounds=[post]),
         Phase(plane, 10, 3.0, R=1.0, bounds=[post, *ends])],
    )  # fmt: skip
    s = np.linspace(0, 1, 21)
    over, below = (
        Trajectory(
            Rn(2), s, np.c_[4 * s - 2, side * np.sin(np.pi * s)], np.zeros((20, 2)),
        )
        for side in (1.6, -1.6)
    )  # fmt: skip
    costs = [problem.solve([-2, 0], guess=one).cost for one in (over, below)]
    assert costs[0] > 1.1 * costs[1]
    found = problem.solve([-2, 0], guess=(over, "rest", below))
    assert found.is_success and found.cost == pytest.approx(costs[1], rel=1e-6)


def test_a_plan_is_saved_and_drawn_as_its_trajectory(tmp_path):
    found = PhasedProblem(Phase(cart(-1, 1), 3, 0.6, R=1.0)).solve([1, 0])
    run = found.trajectory
    np.testing.assert_array_equal(Trajectory.load(found.save(tmp_path / "plan")).x, run.x)
    assert len(found.plot().axes) == len(run.plot().axes)


def test_messages_tell_seconds():
    """At its limits the cart is at 0.18 after 0.6 s, where it should be at 1."""
    late = [Bound("x", 1, at="terminal", name="node 1 of it")]
    phases = [Phase(cart(-1, 1), 3, 0.6, bounds=late), Phase(cart(-1, 1), 2, 1.0)]
    found = PhasedProblem(phases).solve([0, 0])
    assert found.solution.status == "infeasible"
    assert "node 1 of it exceeds" in found.message and "at t = 0.6 s" in found.message
    assert found.status == found.solution.status and str(found.status) in repr(found)
    assert found.solution.violations[0].time == pytest.approx(0.6)
    assert found.solution.violations[0].amount == pytest.approx(1 - 0.18, abs=1e-3)


def test_an_impossible_plan_names_what_is_bounded_and_the_duration_at_its_limit():
    """The speed may be 0.5: in one second at most the cart gets half a metre far."""
    limited = System(
        "slow", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u], inputs=[Input("push", "", -9, 9)],
        limits={"v": (-0.5, 0.5), "x": (-0.1, 2.0)},
    )  # fmt: skip
    there = Bound("x", 1, at="terminal")
    phase = Phase(limited, 5, (0.1, 1.0), bounds=[Bound("limits"), there])
    problem = PhasedProblem(phase, time_weight=1)
    names = InteriorPointSolver(problem.problem).transcription.rows.names
    assert names == ("duration.phase0", "v", "x", "x")
    found = problem.solve([0, 0])
    assert found.status == "infeasible"
    assert "x exceeds its" in found.message or "v exceeds its" in found.message
    assert "at their limits: " in found.message and "duration.phase0 (upper, 1)" in found.message


def test_plans_that_take_seconds_say_how_far_they_are(monkeypatch, caplog):
    monkeypatch.setattr(_notice, "PATIENCE", 0.0)
    problem = PhasedProblem(Phase(cart(-1, 1), 4, (0.5, 5), bounds=STOP), time_weight=1)
    for solver in ("interior_point", "ipopt"):
        caplog.clear()
        problem.solve([0, 0], solver=solver)
        said = [record.getMessage() for record in caplog.records]
        assert any(re.search(r"plan of cart.*: \d+ iterations, .* so far", text) for text in said)


@pytest.mark.thorough
def test_the_swing_up_of_a_cart_pole_by_another_transcription():
    """∫ u² of M. Kelly's cart-pole, trapezes of 24 intervals solved by IPOPT beside our steps.

    M. Kelly: An introduction to trajectory optimization. SIAM Review 59 (2017), section 6: masses
    1 and 0.3 kg, 0.5 m, a distance of 1 m in 2 s, forces up to 20 N.
    """
    m1, m2, length, g, N, seconds = 1.0, 0.3, 0.5, 9.81, 24, 2.0

    def field(x, u):
        angle, rate = x[1], x[3]
        s, c = ca.sin(angle), ca.cos(angle)
        below = m1 + m2 * s**2
        push = (length * m2 * s * rate**2 + u + m2 * g * c * s) / below
        turn = -(length * m2 * c * s * rate**2 + u * c + (m1 + m2) * g * s) / (length * below)
        return ca.vertcat(x[2], x[3], push, turn)

    plant = System(
        "cartpole", Rn(4, ("place", "angle", "speed", "rate")), lambda t, x, u, p: field(x, u),
        inputs=[Input("force", "N", -20, 20)],
    )  # fmt: skip
    end = [1.0, np.pi, 0.0, 0.0]
    goal = Bound(lambda t, x, u, p: x - ca.DM(end), 0, 0, at="terminal", name="goal")
    s = np.linspace(0, 1, N + 1)
    straight = np.outer(s, end)
    problem = OptimalControlProblem(
        plant, N, seconds / N, Q=0, R=2.0, terminal=0, reference=np.zeros(4), bounds=[goal],
        method="rk4", substeps=1,
    )  # fmt: skip
    guess = Trajectory(plant.state, seconds * s, straight, np.zeros((N, 1)))
    found = problem.solve(np.zeros(4), guess=guess)
    x, u = ca.MX.sym("x", 4, N + 1), ca.MX.sym("u", 1, N + 1)
    h, rates = seconds / N, ca.horzcat(*(field(x[:, k], u[k]) for k in range(N + 1)))
    gaps = x[:, 1:] - x[:, :-1] - h / 2 * (rates[:, 1:] + rates[:, :-1])
    cost = h / 2 * (ca.sumsqr(u[1:]) + ca.sumsqr(u[:-1]))
    rows = ca.vertcat(ca.vec(gaps), x[:, 0], x[:, -1] - ca.DM(end))
    nlp = {"x": ca.vertcat(ca.vec(x), ca.vec(u)), "f": cost, "g": rows}
    other = ca.nlpsol("other", "ipopt", nlp, {"ipopt.print_level": 0, "print_time": False})(
        x0=np.concatenate([straight.ravel(), np.zeros(N + 1)]), lbg=0, ubg=0,
        lbx=np.concatenate([np.full(4 * (N + 1), -np.inf), np.full(N + 1, -20.0)]),
        ubx=np.concatenate([np.full(4 * (N + 1), np.inf), np.full(N + 1, 20.0)]),
    )  # fmt: skip
    assert found.is_success, found.message
    # The transcriptions err by 1/N² and less; their optimum is the same motion.
    assert found.cost == pytest.approx(float(other["f"]), rel=0.02)
    same = problem.solve(np.zeros(4), guess=guess, solver="ipopt")
    assert found.cost <= same.cost * (1 + 1e-3)


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("", "h exceeds its bound by 0.1 m at t = 2 s"),
        ("terminal upper", "h exceeds its terminal upper bound by 0.1 m at t = 2 s"),
        ("node 5", "h exceeds its bound at node 5 by 0.1 m at t = 2 s"),
        ("nodes 1 to 9 lower", "h falls below its lower bound at nodes 1 to 9 by 0.1 m at t = 2 s"),
    ],
)
def test_violations_tell_which_bound_and_where(kind, text):
    assert str(Violation("h", 2.0, 3, 0.1, kind, "m")) == text
    missed = Violation("h", 2.0, 3, 0.1, kind, "m", is_equality=True)
    assert str(missed) == text.replace("exceeds", "misses")


def test_a_bound_by_a_lambda_is_named_by_its_line():
    low = Bound(lambda t, x, u, p: x[0], 0.0)
    line = low.of.__code__.co_firstlineno
    assert low.label == f"lambda of test_phases.py:{line}"


def test_a_gate_is_passed_at_its_node():
    gate = Bound("x", 0.2, 0.2, at=range(5, 6))
    problem = OptimalControlProblem(
        cart(-9, 9), 10, 0.1, Q=0, R=1, terminal=0, reference=[0, 0], bounds=[gate]
    )
    found = problem.solve([0, 0])
    assert found.x[5, 0] == pytest.approx(0.2, abs=1e-6)
    assert abs(found.u[5:]).max() < 1e-4  # nothing is asked for afterwards


def named(x, v, *parameters):
    """The cart, whose coordinates and parameters have names."""
    return System(
        "cart", Rn(2, (x, v)), lambda t, x, u, p: [x[1], u[0]], inputs=["push"],
        parameters=[*map(Parameter, parameters)],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Phase(cart(-1, 1), 0, 1.0), "steps must be a whole number"),
        (lambda: Phase(cart(-1, 1), 3, (2.0, 1.0)), "duration must be seconds > 0"),
        (lambda: PhasedProblem([Phase(cart(-1, 1), 3, 1, name="a")] * 2), "same name: a, a"),
        (lambda: PhasedProblem([Phase(OTHER, 3, 1), Phase(cart(-1, 1), 3, 1)]), "expected Rn"),
        (
            lambda: PhasedProblem([Phase(cart(-1, 1), 3, 1), Phase(named("s", "v"), 3, 1)]),
            r"its coordinates are s, v, expected x, v\. Give Phase\(…, jump=",
        ),
        (
            lambda: PhasedProblem([Phase(cart(-1, 1), 3, 1), Phase(named("x", "v", "mass"), 3, 1)]),
            "cart has the parameters mass, and cart of phase 'phase0' has .none.: declare the same",
        ),
        (
            lambda: PhasedProblem(Phase(cart(-1, 1), 3, 1, bounds=[Bound("x", 0, at="start")])),
            "at its start: that is given to solve",
        ),
        (
            lambda: OptimalControlProblem(
                cart(-1, 1), 3, 0.1, costs=[Cost(lambda t, x, u, p: x)]
            ).solve([0, 0]),
            "cost 'cost' must return one number",
        ),
        (
            lambda: OptimalControlProblem(
                cart(-1, 1), 3, 0.1, bounds=[Bound("x", 0, at=range(2, 6))]
            ).solve([0, 0]),
            "nodes are 0 to 3",
        ),
        (lambda: Bound("x", 0, at=range(0)), "has no node, so that it never counts"),
        (
            lambda: PhasedProblem(Phase(cart(-1, 1), 3, 1), time_weight=np.nan),
            "time_weight must be finite, got nan",
        ),
        (
            lambda: PhasedProblem(Phase(cart(-1, 1), 3, (0.5, 2))).solve([0, 0], durations=7),
            r"a time in s for each phase .phase0., has shape \(\), expected \(1,\)",
        ),
        (
            lambda: PhasedProblem(Phase(cart(-1, 1), 3, (0.5, 2))).solve([0, 0], durations=[7]),
            "duration 7 s of phase 'phase0': it must be from 0.5 to 2 s",
        ),
    ],
)  # fmt: skip
def test_faults_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_is_no_phase_is_told_what_to_be():
    plant = cart(-1, 1)
    with pytest.raises(TypeError, match="a list of them, got none: .*Phase.system, steps, dur"):
        PhasedProblem([])
    with pytest.raises(TypeError, match="discrete, with the sample time 0.1 s.*give the contin"):
        Phase(plant.discretize(0.1), 3, 1.0)
    with pytest.raises(TypeError, match="system must be a System, not str"):
        Phase("cart", 3, 1.0)


def test_what_contradicts_the_phases_is_refused():
    cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    short = Phase(cart, 2, 1.0, jump=lambda t, x, p: x[0])
    with pytest.raises(ValueError, match=r"jump of phase 'phase0' returned shape \(1, 1\)"):
        PhasedProblem([short, Phase(cart, 2, 1.0)])
    with pytest.raises(ValueError, match="'phase0' is the last"):
        PhasedProblem(short)
    listed = Phase(cart, 2, 1.0, jump=lambda t, x, p: [x[0], -x[1]])
    problem = PhasedProblem([listed, Phase(cart, 2, 1.0)])
    assert problem.solve([0, 1]).trajectory.x[-1] == pytest.approx([0, -1], abs=1e-6)
    with pytest.raises(ValueError, match="it must be 1 s, as Phase"):
        problem.solve([0, 1], durations=[1.0, 2.0])


def test_guesses_of_other_numbers_of_nodes_are_interpolated_on_the_group():
    """A turn that is longer in the second phase: nodes lie where the durations say."""
    unicycle = System(
        "unicycle", SE2, lambda t, x, u, p: ca.vertcat(u[0], 0, u[1]), inputs=["speed", "turn"]
    )
    problem = PhasedProblem([Phase(unicycle, 4, 1.0, R=1.0), Phase(unicycle, 3, 3.0, R=1.0)])
    twist = np.array([1.0, 0.5])
    t = np.linspace(5.0, 13.0, 9)  # other times, and other numbers of nodes than 8
    along = [SE2.exp((s - 5.0) / 2 * np.array([twist[0], 0, twist[1]])) for s in t]
    guess = Trajectory(SE2, t, np.array(along), np.tile(twist / 2, (8, 1)))
    for one in (guess, [guess[:3], guess[2:]]):
        given = guess_of_phases(problem._flat, one, [1.0, 3.0])
        nodes = np.concatenate([np.linspace(0, 1, 5), np.linspace(1, 4, 4)[1:]])
        expected = [SE2.exp(s * np.array([twist[0], 0, twist[1]])) for s in nodes]
        assert np.abs(given.x - expected).max() < 1e-12
        assert given.u == pytest.approx(np.tile(twist / 2, (7, 1)))
    found = problem.solve(SE2.identity, guess=guess)
    assert found.is_success and found.cost == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize(
    ("jump", "message"),
    [
        (lambda x: x, r"must take \(t, x, p\)"),
        (lambda t, x, p: None, "returned None, expected a CasADi column"),
        (lambda t, x, p: ["x", 1], "returned ['x', 1], expected a CasADi column"),
    ],
)
def test_a_jump_with_a_fault_is_told_by_its_phase(jump, message):
    phases = [Phase(cart(-1, 1), 3, 1.0, jump=jump, name="flight"), Phase(cart(-1, 1), 3, 1.0)]
    told = message if "must take" in message else re.escape(message)
    with pytest.raises(TypeError, match=f"jump of phase 'flight' {told}"):
        PhasedProblem(phases)


def test_solve_names_its_own_arguments_and_those_of_its_solver():
    problem = PhasedProblem(Phase(cart(-1, 1), 3, (0.5, 2)))
    with pytest.raises(TypeError, match="valid names are x0, durations, .*tolerance.*'durations'"):
        problem.solve([0, 0], duration=[1.0])
    with pytest.raises(TypeError, match="valid names are x0, solver, .*Did you mean 'solver'"):
        problem.problem.solve([0, 0, 1], solvr="ipopt")


def test_a_start_outside_of_a_hard_bound_is_told():
    """Bounds hold from the first step on: the plan leaves the obstacle in which it starts."""
    apart = Bound(lambda t, x, u, p: (x[0] + 0.1) ** 2 + x[1] ** 2, "least", name="apart")
    problem = PhasedProblem(
        Phase(cart(-1, 1), 20, (0.5, 5), bounds=(*STOP, apart)), parameters=["least"], time_weight=1
    )
    inside, outside = (problem.solve([0, 0], p={"least": least}) for least in (0.011, 0.009))
    assert inside.is_success and outside.is_success
    assert "x0 itself violates the hard bound on apart by 0.001" in inside.message
    assert "x0 itself" not in outside.message


def test_a_plan_is_linearized_by_its_trajectory():
    plant = cart(-1, 1)
    found = PhasedProblem(Phase(plant, 20, (0.5, 5), bounds=STOP), time_weight=1).solve([0, 0])
    with pytest.raises(TypeError, match=r"x is a PhasedSolution: give its motion, \.trajectory"):
        plant.linearize(found)
    assert plant.linearize(found.trajectory).A.shape == (21, 2, 2)


@pytest.mark.usually(solver=("interior_point",))
@pytest.mark.parametrize("solver", ["interior_point", "ipopt"])
def test_durations_are_never_negative(solver):
    """A phase that best vanishes, wherever the search is ended."""
    idle = Phase(cart(-1, 1), 4, (0.0, 8.0), name="idle")
    go = Phase(cart(-1, 1), 8, (0.0, 8.0), bounds=STOP)
    problem = PhasedProblem([idle, go], time_weight=1)
    for most in (1, 3, 6, 9, 14, 200):
        found = problem.solve([0, 0], durations=[0.5, 6.0], solver=solver, max_iterations=most)
        assert min(found.durations.values()) >= 0.0
        assert (np.diff(found.trajectory.t) >= 0.0).all()
    assert found.is_success and found.durations["idle"] == pytest.approx(0.0, abs=1e-6)


def test_phases_have_gates_and_starts():
    """Nodes are counted from the start of a phase, which begins after the jump before it."""
    ball = System(
        "ball", Rn(2, ("h", "v")), lambda t, x, u, p: [x[1], u - 9.81],
        inputs=[Input("lift", "m/s²", -5, 5)],
    )  # fmt: skip
    gate = Bound("v", -2.4, -2.4, at=range(5, 6))
    fall = Phase(
        ball, 10, (0.1, 3), R=1, jump=lambda t, x, p: [x[0], -0.8 * x[1]],
        bounds=[Bound("h", 0.0, 0.0, at="terminal"), gate, Bound("lift", lower=-1.0, at=range(2))],
    )  # fmt: skip
    rise = Phase(
        ball, 10, (0.1, 3), R=1,
        bounds=[Bound("v", 4.0, 4.0, at="start"), Bound("h", 0.5, 0.5, at="terminal")],
    )  # fmt: skip
    found = PhasedProblem([fall, rise], time_weight=0.1).solve([1.0, 0.0])
    assert found.is_success
    assert found.parts["phase0"].x[5, 1] == pytest.approx(-2.4, abs=1e-6)
    assert found.parts["phase0"].x[-1, 1] == pytest.approx(-5.0, abs=1e-6)
    assert found.parts["phase1"].x[0] == pytest.approx([0.0, 4.0], abs=1e-6)
    assert found.solution.u[:2].min() == pytest.approx(-1.0, abs=1e-3)
    with pytest.raises(ValueError, match="at its start: that is given to solve"):
        PhasedProblem(rise)
    with pytest.raises(ValueError, match="its nodes are 0 to 10"):
        PhasedProblem(Phase(ball, 10, 1.0, bounds=[Bound("h", 0, at=range(9, 12))]))


def test_bounds_of_a_later_phase_hold_where_it_begins():
    """A cart comes to its slow zone at 0.5 m/s: full speed up, then down, in closed form."""
    field = lambda t, x, u, p: [x[1], u]  # noqa: E731
    car = System("cart", Rn(2, ("x", "v")), field, inputs=[Input("u", "", -1, 1)])
    gate = Bound("x", 1.0, 1.0, at="terminal")
    slow = Bound("v", upper=0.5)
    stop = Bound(lambda t, x, u, p: x - ca.DM([2, 0]), 0, 0, at="terminal")
    phases = Phase(car, 20, (0.1, 5), bounds=[gate]), Phase(car, 20, (0.1, 5), bounds=[slow, stop])
    problem = PhasedProblem(phases, time_weight=1.0)
    found = problem.solve([0.0, 0.0])
    assert found.is_success and found.parts["phase1"].x[:, 1].max() == pytest.approx(0.5, abs=1e-6)
    peak = np.sqrt(1.125)
    assert found.durations["phase0"] == pytest.approx(2 * peak - 0.5, rel=1e-3)
    # A jump by which half of the speed is left lets it come twice as fast.
    halved = dataclasses.replace(phases[0], jump=lambda t, x, p: [x[0], x[1] / 2])
    found = PhasedProblem([halved, phases[1]], time_weight=1.0).solve([0.0, 0.0])
    assert found.is_success and found.parts["phase1"].x[0, 1] == pytest.approx(0.5, abs=1e-6)
    assert found.parts["phase0"].x[-1, 1] == pytest.approx(1.0, abs=1e-6)


def nodes_of_bounds(first, second, jump=None, **more):
    """Where the bounds of two phases of four steps hold, without their duration."""
    car = System("cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u], inputs=["u"])
    phases = Phase(car, 4, 1.0, bounds=first, jump=jump), Phase(car, 4, 1.0, bounds=second)
    return [bound.at for bound in PhasedProblem(phases, **more).problem.bounds][-2:]


def test_what_the_end_of_a_phase_keeps_is_not_kept_twice():
    slow, soft = Bound("v", upper=0.5), Bound("v", upper=0.5, soft=2.0)
    again = Bound(lambda t, x, u, p: x[1], upper=0.5)
    both = [range(1, 5), range(4, 9)]
    once = [range(1, 5), range(5, 9)]
    assert nodes_of_bounds([slow], [again]) == once
    assert nodes_of_bounds([Bound("v", upper=0.4)], [slow]) == once
    assert nodes_of_bounds([soft], [soft]) == nodes_of_bounds([slow], [soft]) == once
    at_end = Bound(lambda t, x, u, p: x, [0, 0.5], [0, 0.5], at="terminal")
    assert nodes_of_bounds([at_end], [slow]) == [range(4, 5), range(5, 9)]
    assert nodes_of_bounds([slow], [slow], lambda t, x, p: [0.0, x[1]]) == once
    assert nodes_of_bounds([slow], [slow], is_periodic=True) == once
    assert nodes_of_bounds([soft], [slow]) == both
    beyond = [Bound(lambda t, x, u, p, v=v: ca.fmax(x[1] - v, 0), upper=1) for v in (90, 50)]
    assert nodes_of_bounds(beyond[:1], beyond[1:]) == both  # both are 0 up to 50
    assert nodes_of_bounds([slow], [Bound("x", 0.0)]) == both
    assert nodes_of_bounds([slow], [Bound("v", upper=0.4)]) == both
    assert nodes_of_bounds([slow], [slow], lambda t, x, p: -x) == both
    assert nodes_of_bounds([slow], [slow], lambda t, x, p: -x, is_periodic=True) == both


def test_a_loop_begins_where_it_is_told():
    """The free oscillation has its period from any start, here at rest a metre off."""
    spring = System("spring", Rn(2, ("a", "b")), lambda t, x, u, p: [x[1], u - x[0]], inputs=["u"])
    begin = [Bound("a", 1.0, 1.0, at="start"), Bound("b", 0.0, 0.0, at="start")]
    loop = PhasedProblem(Phase(spring, 40, (4, 8), R=1, bounds=begin), is_periodic=True)
    found = loop.solve([0.5, 0.2])
    assert found.is_success and found.durations["phase0"] == pytest.approx(2 * np.pi, rel=1e-4)
    assert found.trajectory.x[[0, -1]] == pytest.approx(np.array([[1, 0], [1, 0]]), abs=1e-6)

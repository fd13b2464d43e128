"""Inputs of phases that vary within steps or stay over several, with free durations."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.integrators import get_method
from lgcontrol.optimal import Bound, OptimalControlProblem, Phase, PhasedProblem
from lgcontrol.systems import Input, System

LIMIT, R, VIA = 1.5, 0.1, 0.4
# The weight that tells plans apart, and what interior points leave to limits.
SAME_COST, SAME_INPUT = 2e-6, 2e-3
BLOCKS = [1, 2, 1, 3, 1]
HOLDS = {
    "zero": {}, "first": {"hold": "first"}, "radau": {"hold": "collocation"},
    "gauss": {"hold": "collocation", "method": "gauss6"}, "blocks": {},
}  # fmt: skip
LENGTHS = [1, 1, 1, 2, 2, 3, 3, 1]
SHAPES = [(LENGTHS, None), (None, BLOCKS), (LENGTHS, BLOCKS)]
GAUSS = (0.5 - 3**-0.5 / 2, 0.5 + 3**-0.5 / 2)


def cart(drag: float) -> System:
    return System(
        f"cart{drag:g}".replace(".", "_"), Rn(2),
        lambda t, x, u, p: [x[1], u[0] - 0.3 * ca.sin(x[0]) - drag * x[1]],
        inputs=[Input("push", "N", -LIMIT, LIMIT)],
    )  # fmt: skip


def plan(name: str, drags: tuple[float, ...]) -> PhasedProblem:
    """Through 0.4 m and to rest at 1 m, in a time that costs as much as effort does."""
    at = lambda x: Bound("x0", x, x, at="terminal")  # noqa: E731
    stop = [at(1.0), Bound("x1", 0.0, 0.0, at="terminal")]
    blocks = BLOCKS if name == "blocks" else None
    ends = [stop] if len(drags) == 1 else [[at(VIA)], stop]
    phases = [
        Phase(cart(drag), 8, (0.2, 4.0), R=R, bounds=end, blocks=blocks)
        for drag, end in zip(drags, ends, strict=True)
    ]
    return PhasedProblem(phases, time_weight=1.0, **HOLDS[name])


def by_ipopt(name: str, drags: tuple[float, ...]) -> tuple[float, np.ndarray, list[np.ndarray]]:
    """Cost, durations and inputs, with all states, inputs and durations as variables."""
    z, rows, low, high, guess, cost = [], [], [], [], [], 0.0
    place, speed, kept = ca.DM(0), ca.DM(0), []

    def variable(least, most, first):
        z.append(ca.MX.sym("z"))
        low.append(least), high.append(most), guess.append(first)
        return z[-1]

    def step(f, x, inputs, h):  # RK4 with inputs at the share of the step
        k1 = f(x, inputs(0.0))
        k2 = f(x + h / 2 * k1, inputs(0.5))
        k3 = f(x + h / 2 * k2, inputs(0.5))
        k4 = f(x + h * k3, inputs(1.0))
        return x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    for j, drag in enumerate(drags):
        T, x, own = variable(0.2, 4.0, 0.9), ca.vertcat(place, speed), []
        cost, h = cost + T, T / 8

        def f(x, u, drag=drag):
            return ca.vertcat(x[1], u - 0.3 * ca.sin(x[0]) - drag * x[1])

        if name == "first":
            own.append(variable(-LIMIT, LIMIT, 0.0))
        begins = {0, *np.cumsum(BLOCKS).tolist()}
        for k in range(8):
            after = ca.vertcat(*(variable(-np.inf, np.inf, 0.5) for _ in range(2)))
            if name in ("radau", "gauss"):
                points = [*get_method("radau_iia5" if name == "radau" else "gauss6").points]
                basis = [
                    np.poly1d(np.poly(np.delete(points, i)))
                    / np.prod(points[i] - np.delete(points, i))
                    for i in range(3)
                ]
                A = [[one.integ()(c) for one in basis] for c in points]
                u = [variable(-LIMIT, LIMIT, 0.0) for _ in points]
                at = [ca.vertcat(*(variable(-np.inf, np.inf, 0.5) for _ in range(2)))
                      for _ in points]  # fmt: skip
                rates = [f(*pair) for pair in zip(at, u, strict=True)]
                rows += [
                    state - x - h * sum(a * rate for a, rate in zip(row, rates, strict=True))
                    for state, row in zip(at, A, strict=True)
                ]
                weights = [one.integ()(1.0) for one in basis]
                rows.append(after - x - h * sum(b * r for b, r in zip(weights, rates, strict=True)))
                cost += R * h / 2 * sum(b * v**2 for b, v in zip(weights, u, strict=True))
                own += u
            else:
                if name == "first" or name == "zero" or k in begins:
                    own.append(variable(-LIMIT, LIMIT, 0.0))
                a, b = (own[-2], own[-1]) if name == "first" else (own[-1], own[-1])
                inputs = lambda s, a=a, b=b: a + s * (b - a)  # noqa: E731
                rows.append(after - step(f, x, inputs, h))
                cost += R * h / 4 * sum(inputs(c) ** 2 for c in GAUSS)
            x = after
        place, speed = x[0], x[1]
        kept.append((T, ca.vertcat(*own)))
        is_last = j == len(drags) - 1
        rows += [place - (1.0 if is_last else VIA), *([speed] if is_last else [])]
    quiet = {"ipopt.print_level": 0, "print_time": False, "ipopt.tol": 1e-10}
    z = ca.vertcat(*z)
    solver = ca.nlpsol("solver", "ipopt", {"x": z, "f": cost, "g": ca.vertcat(*rows)}, quiet)
    found = solver(x0=guess, lbx=low, ubx=high, lbg=0, ubg=0)
    assert solver.stats()["success"]
    values = [ca.Function("read", [z], list(one))(found["x"]) for one in kept]
    times = np.array([float(T) for T, _ in values])
    return float(found["f"]), times, [np.asarray(u).ravel() for _, u in values]


@pytest.mark.usually(drags=((0.0, 0.6),), name=("zero", "first", "gauss", "blocks"))
@pytest.mark.parametrize("drags", [(0.0,), (0.0, 0.6)], ids=["one", "two"])
@pytest.mark.parametrize("name", HOLDS)
def test_plans_of_free_durations_are_those_of_ipopt_written_out(name, drags):
    cost, times, inputs = by_ipopt(name, drags)
    found = plan(name, drags).solve([0.0, 0.0], tolerance=1e-8)
    assert found.is_success
    assert found.cost == pytest.approx(cost, rel=10 * SAME_COST)
    assert np.allclose([*found.durations.values()], times, atol=1e-3)
    for part, own in zip(found.parts.values(), inputs, strict=True):
        u = part.u[:, 0]
        assert np.abs(u).max() <= LIMIT
        if name == "radau":
            u = u[1:]
        elif name == "gauss":
            u = u[1:].reshape(8, 4)[:, :3].ravel()
        elif name == "blocks":
            assert np.allclose(u, np.repeat(u[np.cumsum([0, *BLOCKS[:-1]])], BLOCKS), atol=1e-9)
            u = u[np.cumsum([0, *BLOCKS[:-1]])]
        assert np.allclose(u, own, atol=5 * SAME_INPUT)
    assert any((np.abs(own) > LIMIT - 1e-3).any() for own in inputs)  # limits matter


@pytest.mark.usually(name=("first", "gauss", "blocks"))
@pytest.mark.parametrize("name", ["first", "radau", "gauss", "blocks"])
def test_a_phase_of_a_given_duration_is_a_problem(name):
    at_end = [Bound("x0", 1.0, 1.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")]
    power = Bound(lambda t, x, u, p: u[0] * x[1], upper=0.25, name="power")
    terms = {"Q": [1.0, 0.1], "R": 0.3, "bounds": [*at_end, power]}
    options = {"blocks": BLOCKS} if name == "blocks" else HOLDS[name]
    own = {"blocks": BLOCKS} if name == "blocks" else {}
    found = PhasedProblem(
        Phase(cart(0.2), 8, 2.4, **terms, **own), **({} if own else HOLDS[name])
    ).solve([0.3, 0.5], tolerance=1e-7)
    same = OptimalControlProblem(
        cart(0.2), 8, 0.3, terminal=0.0, reference=[0.0, 0.0], **terms, **options
    ).solve([0.3, 0.5], tolerance=1e-7)
    assert found.is_success and same.is_success
    assert found.cost == pytest.approx(same.cost, rel=10 * SAME_COST)
    assert np.allclose(found.trajectory.u, same.u, atol=SAME_INPUT)
    assert np.allclose(found.trajectory.x, same.x, atol=SAME_INPUT)
    assert found.trajectory.hold == same.trajectory.hold


@pytest.mark.parametrize(
    ("hold", "lengths", "blocks"),
    [
        ("collocation", LENGTHS, None), ("zero", LENGTHS, BLOCKS),
        *(pytest.param(*shape, marks=pytest.mark.thorough)
          for shape in (("first", LENGTHS, None), ("zero", LENGTHS, None), ("zero", None, BLOCKS))),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "method", ["radau_iia5", pytest.param("gauss6", marks=pytest.mark.thorough)]
)
def test_implicit_methods_take_steps_of_other_lengths_and_blocks(method, hold, lengths, blocks):
    at_end = [Bound("x0", 1.0, 1.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")]
    terms = {"Q": [1.0, 0.1], "R": 0.3, "bounds": at_end}
    phase = Phase(cart(0.2), 8, 2.4, lengths=lengths, blocks=blocks, **terms)
    found = PhasedProblem(phase, method=method, hold=hold).solve([0.3, 0.5], tolerance=1e-7)
    shares = np.array(lengths or [1] * 8)
    same = OptimalControlProblem(
        cart(0.2), 8, 2.4 * shares / shares.sum(), terminal=0.0, reference=[0.0, 0.0],
        method=method, hold=hold, blocks=blocks, **terms,
    ).solve([0.3, 0.5], tolerance=1e-7)  # fmt: skip
    assert found.is_success and same.is_success
    assert found.cost == pytest.approx(same.cost, rel=10 * SAME_COST)
    assert np.allclose(found.trajectory.u, same.u, atol=SAME_INPUT)
    assert np.allclose(found.trajectory.x, same.x, atol=SAME_INPUT)


@pytest.mark.usually(lengths=(LENGTHS,), blocks=(BLOCKS,))
@pytest.mark.parametrize(("lengths", "blocks"), SHAPES)
def test_implicit_methods_find_free_durations_of_such_phases(lengths, blocks):
    ends = [[("x0", VIA)], [("x0", 1.0), ("x1", 0.0)]]
    phases = [
        Phase(
            cart(drag), 8, (0.2, 4.0), R=R, lengths=lengths, blocks=blocks,
            bounds=[Bound(of, at, at, at="terminal") for of, at in end],
        ) for drag, end in zip((0.0, 0.6), ends, strict=True)
    ]  # fmt: skip
    implicit, explicit = (
        PhasedProblem(phases, time_weight=1.0, method=method).solve([0.0, 0.0], tolerance=1e-8)
        for method in ("radau_iia5", "rk4")
    )
    assert implicit.is_success and explicit.is_success
    assert implicit.cost == pytest.approx(explicit.cost, rel=10 * SAME_COST)
    times = [[*found.durations.values()] for found in (implicit, explicit)]
    assert np.allclose(*times, atol=1e-3)
    for name, part in implicit.parts.items():
        assert np.allclose(part.u, explicit.parts[name].u, atol=5 * SAME_INPUT)


@pytest.mark.usually(name=("first",))
@pytest.mark.parametrize("name", ["first", "radau"])
def test_such_phases_are_refined_pickled_and_guessed(name):
    problem = plan(name, (0.0, 0.6))
    found = problem.solve([0.0, 0.0])
    again = pickle.loads(pickle.dumps(problem)).solve([0.0, 0.0])
    assert again.cost == pytest.approx(found.cost, rel=1e-9)
    near = problem.solve(
        [0.0, 0.0], guess=[*found.parts.values()], durations=[*found.durations.values()]
    )
    assert near.is_success and near.cost == pytest.approx(found.cost, rel=1e-5)
    fine = problem.solve([0.0, 0.0], refine=1e-4)
    assert fine.is_success and "not reached" not in fine.message
    assert fine.cost == pytest.approx(problem.solve([0.0, 0.0], refine=1e-6).cost, rel=3e-4)


@pytest.mark.usually(name=("zero", "radau"))
@pytest.mark.parametrize(
    ("name", "other"),
    [("zero", "first"), ("first", "radau"), ("radau", "zero"), ("blocks", "first")],
)
def test_a_plan_of_other_inputs_is_a_guess(name, other):
    problem, guess = plan(name, (0.0, 0.6)), plan(other, (0.0, 0.6)).solve([0.0, 0.0])
    found = problem.solve([0.0, 0.0], guess=guess)
    assert found.is_success
    assert found.cost == pytest.approx(problem.solve([0.0, 0.0]).cost, rel=SAME_COST)
    first = problem.solve([0.0, 0.0], guess=guess, max_iterations=0)
    for phase, time in guess.durations.items():
        assert first.durations[phase] == pytest.approx(time, rel=1e-2)
    assert first.solution.x[:, 0] == pytest.approx(found.solution.x[:, 0], abs=0.05)
    with pytest.raises(ValueError, match="the guess has 2 trajectories for 1 phases"):
        plan(name, (0.0,)).solve([0.0, 0.0], guess=guess)


def test_a_phase_after_one_with_blocks_has_the_reference_of_the_problem():
    """Its errors counted from the identity."""
    goal, terms = [1.0, 0.0], {"Q": 1.0, "R": 0.1}
    first = Phase(cart(0.0), 8, 1.0, blocks=BLOCKS, **terms)
    costs = [
        PhasedProblem([first, Phase(cart(0.0), 8, 2.0, reference=own, **terms)], reference=goal)
        .solve([0.0, 0.0])
        .cost
        for own in (None, goal)
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-9)


def test_blocks_of_one_step_are_held_inputs():
    """They had no inputs that say when blocks begin, and ended in an error of Python."""
    stop = [Bound("x0", 1.0, 1.0, at="terminal"), Bound("x1", 0.0, 0.0, at="terminal")]
    costs = [
        PhasedProblem(
            Phase(cart(0.0), 8, (0.5, 5.0), R=R, bounds=stop, blocks=blocks), time_weight=1
        )
        .solve([0.0, 0.0])
        .cost
        for blocks in (None, 1)
    ]
    assert costs[0] == costs[1]


def test_what_such_phases_cannot_do_is_refused():
    with pytest.raises(ValueError, match="blocks of phase 'phase0' hold inputs, and hold='first'"):
        PhasedProblem(Phase(cart(0.0), 4, 1.0, blocks=2), hold="first")
    with pytest.raises(ValueError, match=r"a loop \(is_periodic=True\) has held inputs"):
        PhasedProblem(Phase(cart(0.0), 4, 1.0), hold="first", is_periodic=True)
    with pytest.raises(ValueError, match="blocks"):
        PhasedProblem(Phase(cart(0.0), 4, 1.0, blocks=[1, 2]))
    with pytest.raises(ValueError, match="refine moves nodes, and blocks count them"):
        PhasedProblem(Phase(cart(0.0), 4, 1.0, blocks=2)).solve([0.0, 0.0], refine=1e-3)

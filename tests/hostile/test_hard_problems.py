"""Problems that have no answer, too many, or none in numbers: each ends in a word, none raises.

Every entry of `PROBLEMS` is a problem with what its solve has to end as and what the message has to
say; the README lists them. All run in NumPy, on small systems.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2, SO2, SO3, Rn
from lgcontrol.optimal import (
    Bound,
    Cost,
    InteriorPointSolver,
    OptimalControlProblem,
    Phase,
    PhasedProblem,
    Residual,
    Sphere,
    keep_out,
)
from lgcontrol.systems import Input, System

MOST = 100  # iterations of each search: 92 for a plan in a hair less than the least time
GOOD = ("converged", "acceptable")
NO_WAY = ("infeasible",)
BROKEN = ("failed",)


def cart(limit: float = 1.0) -> System:
    """A mass on a line."""
    return System(
        "cart", Rn(2, ("place", "speed")), lambda t, x, u, p: ca.vertcat(x[1], u),
        inputs=[Input("push", "N", -limit, limit)],
    )  # fmt: skip


def of_cart(*bounds: Bound, limit: float = 1.0, N: int = 8, **more: Any) -> OptimalControlProblem:
    """The cart goes to the origin in steps of 0.1 s."""
    options: dict[str, Any] = {"Q": 1.0, "R": 0.1, "reference": [0.0, 0.0]}
    return OptimalControlProblem(cart(limit), N, 0.1, bounds=list(bounds), **(options | more))


def scalar(
    rate: Callable[..., Any], *bounds: Bound, N: int = 8, **more: Any
) -> OptimalControlProblem:
    """One state, one control within ±1."""
    system = System("scalar", Rn(1, ("x",)), rate, inputs=[Input("u", "", -1.0, 1.0)])
    options: dict[str, Any] = {"Q": 1.0, "R": 0.1, "reference": [0.0]}
    return OptimalControlProblem(system, N, 0.1, bounds=list(bounds), **(options | more))


def wheel(**more: Any) -> OptimalControlProblem:
    """An angle with its rate as the control."""
    system = System("wheel", SO2, lambda t, x, u, p: u, inputs=[Input("rate", "", -4.0, 4.0)])
    return OptimalControlProblem(system, 10, 0.1, **({"reference": [1.0, 0.0]} | more))


def body(*bounds: Bound, N: int = 10, **more: Any) -> OptimalControlProblem:
    """An attitude with its rates as controls."""
    inputs = [Input(f"rate{i}", "rad/s", -4.0, 4.0) for i in "xyz"]
    system = System("body", SO3, lambda t, x, u, p: u, inputs=inputs)
    options: dict[str, Any] = {"reference": SO3.identity, "bounds": list(bounds)}
    return OptimalControlProblem(system, N, 0.1, **(options | more))


def point(*bounds: Bound, N: int = 12, **more: Any) -> OptimalControlProblem:
    """A point on the plane with its velocity as controls."""
    inputs = [Input(name, "m/s", -2.0, 2.0) for name in ("vx", "vy")]
    system = System("point", Rn(2, ("x", "y")), lambda t, x, u, p: u, inputs=inputs)
    options: dict[str, Any] = {"Q": 1.0, "R": 0.1, "reference": [2.0, 0.0]}
    return OptimalControlProblem(system, N, 0.1, bounds=list(bounds), **(options | more))


def car(*bounds: Bound, N: int = 10) -> OptimalControlProblem:
    """A car that cannot move sideways."""
    inputs = [Input("speed", "m/s", -1.0, 1.0), Input("turn", "rad/s", -1.0, 1.0)]
    system = System("car", SE2, lambda t, x, u, p: ca.vertcat(u[0], 0, u[1]), inputs=inputs)
    return OptimalControlProblem(
        system, N, 0.1, Q=1.0, R=0.1, reference=SE2.identity, bounds=list(bounds)
    )


def disc(x: float, y: float, radius: float, **more: Any) -> Bound:
    return keep_out(lambda t, state, u, p: state[:2], Sphere([x, y], radius), name="disc", **more)


def end(name: str, value: float) -> Bound:
    return Bound(name, value, value, at="terminal")


def place(t: Any, x: Any, u: Any, p: Any) -> Any:
    """As a function, which no statement compares with a name."""
    return x[0]


def in_time(*bounds: Bound, **more: Any) -> PhasedProblem:
    """The cart in the least time that is allowed, up to 1 s."""
    return PhasedProblem(Phase(cart(), 8, (0.1, 1.0), bounds=bounds), time_weight=1.0, **more)


Problem = tuple[Callable[[], OptimalControlProblem | PhasedProblem], Any, tuple[str, ...], str]

# name: (problem, start, statuses, words of the message)
PROBLEMS: dict[str, Problem] = {
    # infeasible: what is asked is beyond what inputs can do
    "end too far": (lambda: of_cart(end("place", 5.0)), [0, 0], NO_WAY, "place"),
    "end too fast": (lambda: of_cart(end("speed", 3.0)), [0, 0], NO_WAY, "speed"),
    "start beyond a wall": (lambda: of_cart(Bound("place", upper=1.0)), [2, 0], NO_WAY, "place"),
    "start far beyond": (lambda: of_cart(Bound("place", upper=1.0)), [1e3, 0], NO_WAY, "place"),
    "too fast to stop": (lambda: of_cart(Bound("place", upper=1.0)), [0.9, 3], NO_WAY, "place"),
    "wall and force": (lambda: of_cart(Bound("place", upper=1.0)), [0.5, 2], NO_WAY, "push"),
    "speed falls too slowly": (lambda: of_cart(Bound("speed", -1, 1)), [0, 3], NO_WAY, "speed"),
    "gate out of reach": (
        lambda: of_cart(Bound("place", 1.0, 1.0, at=range(3, 4))),
        [0, 0],
        NO_WAY,
        "place",
    ),
    "unstable and too weak": (
        lambda: scalar(lambda t, x, u, p: 3 * x + u, Bound("x", -1, 1)),
        [0.9],
        NO_WAY,
        "x",
    ),
    "force alone pushes out": (
        lambda: scalar(lambda t, x, u, p: u + 2, Bound("x", upper=0.1)),
        [0.0],
        NO_WAY,
        "x",
    ),
    "two gates too close": (
        lambda: of_cart(Bound("place", 0, 0, at=range(5, 6)), end("place", 2.0)),
        [0, 0],
        NO_WAY,
        "place",
    ),
    "start inside of an obstacle": (lambda: point(disc(0, 0, 0.5)), [0.1, 0], NO_WAY, "disc"),
    "too far to the end of an attitude": (
        lambda: body(Bound(lambda t, x, u, p: SO3.log(x), 0, 0, at="terminal", name="turn"), N=4),
        SO3.exp([2.5, 0, 0]),
        NO_WAY,
        "turn",
    ),
    "end too far for any time": (lambda: in_time(end("place", 10.0)), [0, 0], NO_WAY, "place"),
    "no rest in any time": (
        lambda: in_time(end("place", 10.0), end("speed", 0.0)),
        [0, 0],
        NO_WAY,
        "t = 1 s",
    ),
    "a hair less than the least time": (
        lambda: in_time(end("place", 0.255), end("speed", 0.0)),
        [0, 0],
        NO_WAY,
        "push",
    ),
    "a second phase too late": (
        lambda: PhasedProblem(
            [
                Phase(cart(), 6, (0.1, 1.0), bounds=[end("place", 5.0)]),
                Phase(cart(), 6, (0.1, 1.0), bounds=[end("place", 0.0)]),
            ],
            time_weight=1.0,
        ),
        [0, 0],
        NO_WAY,
        "place",
    ),
    "a loop that drifts": (
        lambda: in_time(Bound("speed", lower=0.5), is_periodic=True),
        [0, 1],
        NO_WAY,
        "loop",
    ),
    "free speed, not enough": (
        lambda: of_cart(Bound("speed", -1.0, 1.0, at="start"), end("place", 10.0), free="speed"),
        [0, 0],
        NO_WAY,
        "place misses its bound by 8.88 ",  # 10 − 1·0.8 − 0.8²/2
    ),
    # contradictory: rows that exclude each other
    "two walls, none between": (
        lambda: of_cart(Bound("place", upper=-1.0), Bound(place, lower=1.0)),
        [0, 0],
        NO_WAY,
        "place",
    ),
    "moving while at rest": (
        lambda: of_cart(Bound("speed", lower=0.5), end("place", 0.0)),
        [0, 1],
        NO_WAY,
        "place",
    ),
    "more equalities than inputs": (
        lambda: of_cart(end("place", 0.3), end("speed", 0.0), N=1),
        [0, 0],
        NO_WAY,
        "place",
    ),
    "on two circles at once": (
        lambda: point(
            Bound(lambda t, x, u, p: ca.sumsqr(x), 1.0, 1.0, at="terminal", name="small"),
            Bound(lambda t, x, u, p: ca.sumsqr(x), 4.0, 4.0, at="terminal", name="large"),
        ),
        [0.1, 0],
        NO_WAY,
        "",
    ),
    "cosine of two": (
        lambda: wheel(bounds=[Bound(lambda t, x, u, p: x[0], 2, 2, at="terminal", name="cosine")]),
        [1.0, 0.0],
        NO_WAY,
        "cosine",
    ),
    "negative square": (
        lambda: of_cart(Bound(lambda t, x, u, p: x[0] ** 2, upper=-1.0, name="square")),
        [0, 0],
        NO_WAY,
        "square",
    ),
    "input rows and limits": (
        lambda: of_cart(Bound(lambda t, x, u, p: u[0], lower=2.0, at="path", name="pull")),
        [0, 0],
        NO_WAY,
        "pull",
    ),
    # unreachable: the system cannot go there at all
    "uncontrollable end": (
        lambda: scalar(lambda t, x, u, p: -x + 0 * u, end("x", 1.0)),
        [0.0],
        NO_WAY,
        "x",
    ),
    "one input for two places": (
        lambda: OptimalControlProblem(
            System("pair", Rn(2), lambda t, x, u, p: ca.vertcat(u, u), inputs=["u"]),
            5,
            0.1,
            reference=[0.0, 0.0],
            bounds=[end("x0", 0.0), end("x1", 0.0)],
        ),
        [0, 1],
        NO_WAY,
        "x0",
    ),
    "backwards only": (
        lambda: scalar(lambda t, x, u, p: -(u**2), end("x", 1.0)),
        [0.0],
        NO_WAY,
        "x",
    ),
    # degenerate: too many answers, singular derivatives, rows that say the same
    "the same wall twice": (
        lambda: of_cart(Bound("place", upper=1.0), Bound("place", upper=1.0)),
        [0, 1],
        GOOD,
        "",
    ),
    "the same end twice": (lambda: of_cart(end("place", 0.1), end("place", 0.1)), [0, 0], GOOD, ""),
    "no room between limits": (lambda: of_cart(Bound("place", 0.0, 0.0)), [0, 0], GOOD, ""),
    "start on the wall": (lambda: of_cart(Bound("place", upper=1.0)), [1.0, 0], GOOD, ""),
    "nothing to do": (lambda: of_cart(), [0, 0], GOOD, ""),
    "no weight on the error": (lambda: of_cart(Q=0.0, terminal=0.0), [1, 0], GOOD, ""),
    "next to no effort": (lambda: of_cart(R=1e-9), [1, 0], GOOD, ""),
    "a singular end": (
        lambda: scalar(
            lambda t, x, u, p: u, Bound(lambda t, x, u, p: x**2, 0, 0, at="terminal", name="square")
        ),
        [0.5],
        (*GOOD, "stalled", "iteration limit"),
        "",
    ),
    "a cubic end": (
        lambda: scalar(
            lambda t, x, u, p: u, Bound(lambda t, x, u, p: x**3, 0, 0, at="terminal", name="cube")
        ),
        [0.5],
        (*GOOD, "stalled", "iteration limit"),
        "",
    ),
    "an input without effect": (
        lambda: OptimalControlProblem(
            System("idle", Rn(1), lambda t, x, u, p: u[0] + 0 * u[1], inputs=["a", "b"]),
            8,
            0.1,
            reference=[0.0],
        ),
        [1.0],
        GOOD,
        "",
    ),
    "half a turn": (lambda: wheel(), [-1.0, 0.0], GOOD, ""),
    "half a turn in space": (lambda: body(), SO3.exp([np.pi, 0, 0]), GOOD, ""),
    "straight at an obstacle": (
        lambda: point(disc(1.0, 0.0, 0.3), N=15),
        [0, 0],
        (*GOOD, "stalled"),
        "",
    ),
    "a saddle": (
        lambda: point(
            Q=0.0, terminal=0.0, N=5, costs=[Cost(lambda t, x, u, p: x[0] * x[1], None, 1.0)]
        ),
        [0, 0],
        GOOD,
        "",
    ),
    "sideways with a car": (lambda: car(), [0, 0.5, 1, 0], GOOD, ""),
    "a cost without end": (
        lambda: scalar(
            lambda t, x, u, p: u,
            Q=0.0,
            terminal=0.0,
            costs=[Cost(lambda t, x, u, p: -(x**2), None, 1.0)],
        ),
        [0.0],
        GOOD,
        "",
    ),
    "one step": (lambda: of_cart(N=1), [1, 0], GOOD, ""),
    "units of 1e6": (lambda: of_cart(Q=1e6, R=1e-3, limit=1e6), [1e6, 0], (*GOOD, "stalled"), ""),
    "units of 1e-6": (lambda: of_cart(limit=1e-6), [1e-6, 0], GOOD, ""),
    # no numbers
    "root of a negative number": (
        lambda: scalar(lambda t, x, u, p: ca.sqrt(x - 1) - 1 + u, reference=[2.0]),
        [0.0],
        BROKEN,
        "finite",
    ),
    "division by zero": (
        lambda: scalar(lambda t, x, u, p: u / x, reference=[1.0]),
        [0.0],
        BROKEN,
        "finite",
    ),
    "logarithm in the cost": (
        lambda: scalar(lambda t, x, u, p: u, costs=[Cost(lambda t, x, u, p: ca.log(x))]),
        [-1.0],
        BROKEN,
        "finite",
    ),
    "escape in finite time": (lambda: scalar(lambda t, x, u, p: x**3 + u), [1e3], BROKEN, "finite"),
    "overflow": (lambda: scalar(lambda t, x, u, p: ca.exp(x) + u), [1e3], BROKEN, "finite"),
    "a row that is no number": (
        lambda: of_cart(Bound(lambda t, x, u, p: ca.sqrt(x[0]), upper=2.0, name="root")),
        [-1.0, 0],
        BROKEN,
        "root",
    ),
    "a residual that is no number": (
        lambda: of_cart(residuals=[Residual(lambda t, x, u, p: ca.acos(x[0]), name="angle")]),
        [3.0, 0],
        BROKEN,
        "finite",
    ),
}


# By default one problem of each reason; these have a like among the others.
ALIKE = (
    "a cubic end", "a loop that drifts", "a second phase too late", "a singular end",
    "backwards only", "cosine of two", "end too fast",
    "force alone pushes out", "gate out of reach", "half a turn", "half a turn in space",
    "logarithm in the cost", "moving while at rest", "negative square", "no rest in any time",
    "no weight on the error", "on two circles at once", "one input for two places", "overflow",
    "speed falls too slowly", "start beyond a wall", "start far beyond", "start on the wall",
    "the same end twice", "too fast to stop", "units of 1e-6",
    "unstable and too weak", "wall and force",
)  # fmt: skip

# Linear equalities at one node that no state satisfies with another row: by the row that is named.
REFUSED: dict[str, Callable[[], OptimalControlProblem]] = {
    "disc": lambda: point(disc(2, 0, 0.5), end("x", 2.0), end("y", 0.0)),
    "place": lambda: of_cart(end("place", 0.1), Bound(place, -0.1, -0.1, at="terminal")),
    "y": lambda: point(
        Bound(lambda t, x, u, p: x[0] + x[1], 3.0, 3.0, at="terminal", name="sum"),
        end("x", 0.0),
        end("y", 0.0),
    ),
}


def solved(name: str) -> Any:
    make, start, _, _ = PROBLEMS[name]
    problem, start = make(), np.asarray(start, float)
    if isinstance(problem, PhasedProblem):
        return problem.solve(start, max_iterations=MOST).solution
    return InteriorPointSolver(problem).solve(start, max_iterations=MOST)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usually(name=set(PROBLEMS) - set(ALIKE))
@pytest.mark.parametrize("name", PROBLEMS)
def test_ends_in_the_word_for_it(name):
    """Status, words of the message, and a best iterate that is finite."""
    _, _, statuses, words = PROBLEMS[name]
    plan = solved(name)
    assert plan.status in statuses, f"{plan.status}: {plan.message}"
    assert words in plan.message
    assert np.isfinite(plan.u).all()
    if statuses is NO_WAY:
        worst = plan.violations[0]
        verb = "misses" if worst.is_equality else "exceeds"
        assert f"{worst.name} {verb}" in plan.message and f"t = {worst.time:g} s" in plan.message


@pytest.mark.parametrize("name", REFUSED)
def test_contradictions_are_refused(name):
    with pytest.raises(ValueError, match=f"'{name}' contradicts the equalities"):
        InteriorPointSolver(REFUSED[name]())


@pytest.mark.usually(name=["division by zero"])
@pytest.mark.parametrize("name", ["division by zero", "two walls, none between"])
def test_loops_go_on(name):
    """A controller answers within its bounds where its problem has no answer."""
    make, start, _, _ = PROBLEMS[name]
    problem = make()
    control = MPC(
        problem.system, problem.horizon, problem.dt, bounds=problem.bounds,
        reference=problem.reference,
    )  # fmt: skip
    start = np.asarray(start, dtype=np.float64)
    for k in range(3):
        u = control(0.1 * k, start)
        assert np.isfinite(u).all() and (np.abs(u) <= 1.0).all()
        assert control.info.status != "ok"


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ([end("place", 0.1), end("place", -0.1)], "at least 0.1 and at most -0.1"),
        ([Bound("place", upper=-1), Bound("state.place", lower=1)], "node 1: place"),
        ([end("place", 1.0), Bound("place", upper=0.5)], "node 8: place"),
        ([Bound("push", lower=2.0)], "the limits of input 'push'"),
        ([Bound("speed", upper=-1), Bound("speed", 1, 2, at=range(3, 5))], "nodes 3 to 4"),
    ],
)
def test_what_contradicts_itself_is_no_statement(bounds, words):
    """Where constants tell, both rows are named, in problems and in phases."""
    with pytest.raises(ValueError, match="contradict each other") as problem:
        of_cart(*bounds)
    with pytest.raises(ValueError, match="phase 'phase0': bound") as phase:
        in_time(*bounds)
    assert words in str(problem.value) and words in str(phase.value)


def test_what_only_nearly_contradicts_itself_is_one():
    """Nodes apart, a price, a parameter, and numbers that are equal but for rounding."""
    of_cart(end("place", 1.0), Bound("place", upper=0.5, at="path"))
    of_cart(end("place", 1.0), Bound("place", upper=0.5, soft=10.0))
    of_cart(Bound("place", upper=-1), Bound("place", "goal", "goal"), parameters=["goal"])
    of_cart(end("place", 0.3), end("place", 0.1 + 0.2))


def test_the_table_stands_in_the_readme():
    """Every problem with the words it may end in."""
    text = (Path(__file__).parent / "README.md").read_text()
    for name, (_, _, statuses, words) in PROBLEMS.items():
        row = f"| {name} | {', '.join(statuses)} | {words} |"
        assert row in text, row
    assert len(PROBLEMS) >= 40 and set(ALIKE) < set(PROBLEMS)

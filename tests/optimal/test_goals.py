"""Residual.from_goal: frames and positions that follow constants, motions and parameters."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol.groups import SE3, Product, Rn, Translation
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.models import ur5_tree
from lgcontrol.optimal import Bound, Cost, OptimalControlProblem, Residual
from lgcontrol.systems import Input, System, Trajectory, Waypoints

SPACE = Translation("xy")


@pytest.fixture(scope="module")
def point():
    return System("point", Rn(2), lambda t, x, u, p: u, inputs=["vx", "vy"])


def here(t, x, u, p):
    return x


def still(x):
    """A state with no input, as a reference."""
    return SimpleNamespace(x=x, u=np.zeros(1))


@pytest.mark.parametrize("kind", ["constant", "motion", "nodes", "function", "parameters"])
def test_a_goal_is_followed_however_it_is_said(point, kind):
    path = Waypoints(SPACE, [0, 2], [[0, 0], [1, 2]])
    times = np.linspace(0, 2, 201)
    goals = {
        "constant": [1.0, 2.0],
        "motion": path,
        "nodes": Trajectory(SPACE, times, path(times).x),
        "function": lambda t, p: path.expression(t),
        "parameters": lambda t, p: p[:2],
    }
    follow = Residual.from_goal(here, goals[kind], SPACE, weight=1e4, terminal=1e3)
    problem = OptimalControlProblem(
        point, 40, 0.05, Q=0, R=1e-3, terminal=0, reference=[0, 0], residuals=[follow],
        parameters=["goal.x", "goal.y"],
    )  # fmt: skip
    found = problem.solve([0, 0], p={"goal.x": 1.0, "goal.y": 2.0})
    assert found.status == "converged"
    moving = kind in ("motion", "nodes", "function")
    wanted = path(found.t).x if moving else np.tile([1.0, 2.0], (41, 1))
    np.testing.assert_allclose(found.x[2:], wanted[2:], atol=2e-3)


def test_a_frame_goes_where_it_is_told():
    """Kinematic arm: joint speeds are controls; the tool's pose ends at the goal on SE3."""
    tree = ur5_tree()
    arm = System(
        "arm", tree.configuration, lambda t, x, u, p: u, inputs=[f"v{i}" for i in range(6)]
    )
    q = np.array([0.3, -1.0, 1.2, 0.4, 0.5, 0.1])
    tool = tree.frames[-1] if "tool0" not in tree.frames else "tool0"
    goal = SE3.plus(tree.placement(tool)(q), [0.1, -0.05, 0.1, 0, 0.2, 0.1])
    reach = Residual.from_goal(
        lambda t, x, u, p: tree.placement(tool).function(x), goal, SE3, weight=None, terminal=1e6
    )
    problem = OptimalControlProblem(
        arm, 10, 0.1, Q=0, R=1, terminal=0, reference=q, residuals=[reach]
    )
    found = problem.solve(q)
    assert found.status == "converged"
    assert SE3.distance(tree.placement(tool)(found.x[-1]), goal) < 1e-4
    # Without other costs the joints move with constant speeds: the way is not to be had cheaper.
    effort = (found.u**2).sum() * 0.05
    assert found.cost == pytest.approx(effort, rel=1e-3)


def test_energy_is_a_cost_like_any_other(point):
    """½ v² of unit mass over a second for one metre, by its expression in place of a square."""
    energy = Cost(lambda t, x, u, p: ca.sumsqr(u) / 2, name="energy")
    problem = OptimalControlProblem(
        point, 10, 0.1, Q=0, R=1e-9, terminal=1e5, reference=[1.0, 0.0], costs=[energy]
    )
    assert problem.solve([0, 0]).cost == pytest.approx(0.5, rel=1e-3)


def test_goals_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="goal of 'error' moves on another group: it is SE3"):
        Residual.from_goal(here, Waypoints(SE3, [0, 1], [SE3.identity] * 2), SPACE)
    with pytest.raises(ValueError, match="goal of 'tool'"):
        Residual.from_goal(here, [1.0, 2.0, 3.0], SPACE, name="tool")


SPEEDS = [Input(name, "rad/s", -2.0, 2.0) for name in ("v1", "v2")]


def planar_arm():
    rod = SpatialInertia.rod(1.0, length=1.0, axis=[1, 0, 0], center_of_mass=[0.5, 0, 0])
    tree = Multibody().add_body("upper", rod, "revolute")
    tree = tree.add_body("lower", rod, "revolute", "upper", [1, 0, 0])
    return tree.add_frame("tip", "lower", [1, 0, 0])


def test_an_arm_bends_until_it_moves_most_easily_in_all_directions():
    """Manipulability of two links is their lengths' product by sin of the elbow: a right angle."""
    tree = planar_arm()
    ease = tree.manipulability("tip", ("x", "y"))
    arm = System(
        "arm", tree.configuration, lambda t, x, u, p: u, inputs=SPEEDS,
        quantities={"ease": lambda t, x, u, p: ease(x)},
    )  # fmt: skip
    problem = OptimalControlProblem(
        arm, 10, 0.1, Q=0, R=1e-4, terminal=0, reference=[0.0, 0.0],
        costs=[Cost("ease", weight=None, terminal=-100.0)],
    )  # fmt: skip
    found = problem.solve([0.0, 0.4])
    assert found.is_success
    assert abs(found.x[-1, 1]) == pytest.approx(np.pi / 2, abs=1e-4)
    assert found.x[-1, 0] == pytest.approx(0.0, abs=1e-6)


def test_functions_of_a_tree_are_terms_and_bounds_by_name():
    """Bent with torques, haste has a price, the tip stays in a strip: as IPOPT does it."""
    tree = planar_arm()
    ease = tree.manipulability("tip", ("x", "y"))
    arm = tree.system(quantities={"ease": ease, "tip": tree.position("tip")})
    problem = OptimalControlProblem(
        arm, 10, 0.1, Q={"velocity": 1.0}, R=1e-2, terminal={"velocity": 1.0}, reference=[0.0] * 4,
        costs=[Cost("ease", weight=None, terminal=-1.0)],
        bounds=[Bound("tip.1", upper=0.6, at="terminal"), Bound("ease", lower=0.3)],
    )  # fmt: skip
    found = problem.solve([0.0, 0.4, 0.0, 0.0], solver="interior_point")
    other = problem.solve([0.0, 0.4, 0.0, 0.0], solver="ipopt")
    assert found.is_success and found.cost <= other.cost + 1e-3 * abs(other.cost)
    assert tree.position("tip")(found.x[-1, :2])[1] == pytest.approx(0.6, abs=1e-5)


def test_a_free_parameter_is_found():
    """x(1) = k from 0: (k − 3)² by 2 and (x − 1)² by 6 are least at k = 3/2, whatever the start."""
    group = Product(x=Rn(1), k=Rn(1))
    system = System("gain", group, lambda t, x, u, p: ca.vertcat(x[1] + u, 0), inputs=["help"])
    problem = OptimalControlProblem(
        system, 10, 0.1, Q={"k": 2.0}, R=1e6, terminal={"x": 6.0}, reference=still([1.0, 3.0]),
        free="k",
    )  # fmt: skip
    found = problem.solve([0.0, -4.0])
    assert found.status == "converged"
    assert found.x[0] == pytest.approx([0.0, 1.5], abs=1e-4)


def test_integrals_of_errors_are_weighed_like_states():
    """A steady push is leant against: with its integral in the cost, the error goes to zero."""
    cart = System(
        "cart", Product(x=Rn(1), v=Rn(1)), lambda t, x, u, p: ca.vertcat(x[1], u[0] - 1.0),
        inputs=["force"],
    )  # fmt: skip
    ends, plain = [], {"x": 1, "v": 1}
    integrating = cart.augment(integrate="x")
    for system, Q in ((cart, plain), (integrating, plain | {"integral": 50})):
        problem = OptimalControlProblem(
            system, 50, 0.2, Q=Q, R=1, terminal=0, reference=still(np.zeros(system.state.nq))
        )
        found = problem.solve(np.zeros(system.state.nq))
        other = problem.solve(np.zeros(system.state.nq), solver="ipopt")
        assert found.cost <= other.cost * (1 + 1e-6)
        ends.append(abs(found.x[35, 0]))
    assert ends[1] < 0.2 * ends[0]


def test_the_goal_of_the_how_to_guide_serves_a_parametric_tree():
    """Its block as it stands, with a tree whose parameters come first in p."""
    page = (Path(__file__).parents[2] / "docs/howto/robot_goal_obstacle.md").read_text()
    block = page.split("```python\n")[2].partition("```")[0]
    text = block.replace("solver = InteriorPointSolver(around).prepare()", "solver = None")
    text = text.partition("for angles in")[0].replace("built = codegen.cache_info()", "")
    rod = SpatialInertia.box(1.0, [1.0, 0.1, 0.1])
    within = {"properties": JointProperties(lower=-2.0, upper=2.0, effort=50.0)}
    plain = Multibody("arm").add_body("upper", rod, "revolute", **within)
    plain = plain.add_body("tool", rod, "revolute", "upper", [0.5, 0, 0, 0, 0, 0, 1], **within)
    tree = plain.symbolic("tool.mass")
    names = {"tree": tree, "arm": tree.system(), "np": np, "lg": lg, "Any": Any}
    exec(compile(text, "robot_goal_obstacle.md", "exec"), names)
    goal = tree.placement("tool")([0.4, 0.5])
    p = dict(zip(names["names"], goal, strict=True))
    found = names["around"].solve(np.zeros(4), p=p)
    assert found.is_success
    assert SE3.distance(tree.placement("tool")(found.x[-1, :2]), goal, length=1.0) < 0.05


@pytest.mark.parametrize("order", [(1, 0, 2), (0, 2, 1), (2, 1, 0), (3, 0, 2)])
def test_swapped_arguments_are_told(order):
    path = Waypoints(SPACE, [0, 1], [[0, 0], [1, 2]])
    given = [lambda t, x, u, p: x[:2], [1.0, 2.0], SPACE, path]
    with pytest.raises(TypeError, match="element, goal, group in this order"):
        Residual.from_goal(*(given[k] for k in order), name="place")

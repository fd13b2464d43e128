"""Accelerations as controls: inverse dynamics as a quantity, and the plans of forward dynamics."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.models import panda_tree
from lgcontrol.optimal import Bound, InteriorPointSolver, OptimalControlProblem, Residual, tvlqr
from lgcontrol.optimal._internal import sample_reference
from lgcontrol.optimal._transcription import Transcription
from lgcontrol.systems import System, Trajectory, check_system, with_accelerations

# Small next to what torques cost (1e-3): what it adds is below the tolerance on costs.
TINY = 1e-11
SAME_COST = 1e-6


def arm(**options):
    """Two links about different axes with losses, their torques limited."""
    rod = SpatialInertia.rod(1.0, length=0.5, center_of_mass=[0, 0, -0.25])
    lossy = JointProperties(damping=0.2, effort=4.0)
    tree = Multibody("arm").add_body("a", rod, "revolute", axis="y", properties=lossy)
    tree = tree.add_body("b", rod, "revolute", "a", [0, 0, -0.5], axis="x", properties=lossy)
    return tree.system(**options)


def test_inputs_are_those_that_the_accelerations_take(rng):
    system = arm(input_matrix=[[1.0, 0.5], [0.0, 2.0]], wrenches="b")
    planned = with_accelerations(system)
    check_system(planned)
    assert planned.input_names[:2] == ("a.ry.acceleration", "b.rx.acceleration")
    assert planned.input_names[2:] == system.input_names[2:]
    x, u = rng.normal(size=4), rng.normal(size=8)
    rate = system.f(0.0, x, u)
    taken = planned.quantities["input"](0.0, x, np.r_[rate[2:], u[2:]])
    np.testing.assert_allclose(taken, u[:2], atol=1e-12)
    np.testing.assert_allclose(planned.f(0.0, x, np.r_[rate[2:], u[2:]]), rate, atol=1e-12)
    assert with_accelerations(arm()).limits == {"input.a": (-4.0, 4.0), "input.b": (-4.0, 4.0)}


def test_plans_are_those_of_the_system():
    """Limits on torques that are met, and their cost: two ways to the same optimum."""
    system, goal = arm(), np.array([1.2, -0.8, 0.0, 0.0])
    given = {
        "Q": {"configuration": 10.0, "velocity": 0.1}, "terminal": {"configuration": 100.0},
        "method": "semi_implicit_euler", "reference": goal,
    }  # fmt: skip
    forward = OptimalControlProblem(system, 12, 0.08, R=1e-3, **given)
    plan = InteriorPointSolver(forward).solve(np.zeros(4), tolerance=1e-8)
    planned = with_accelerations(system)
    torque, held = planned.quantities["input"], plan.reference.u[0]

    def effort(t, x, u, p):
        return torque.function(t, x, u, p) - held

    inverse = OptimalControlProblem(
        planned, 12, 0.08, R=TINY, residuals=[Residual(effort, 1e-3)],
        bounds=[Bound("input", at="path")], **given,
    )  # fmt: skip
    same = InteriorPointSolver(inverse).solve(np.zeros(4), tolerance=1e-8)
    assert plan.status == same.status == "converged"
    assert same.cost == pytest.approx(plan.cost, rel=SAME_COST)
    np.testing.assert_allclose(same.x, plan.x, atol=1e-4)
    torques = torque(same.t[:-1], same.x[:-1], same.u)
    np.testing.assert_allclose(torques, plan.u, atol=1e-3)
    assert np.abs(plan.u).max() > 3.99  # a limit is met
    with pytest.raises(
        ValueError, match=r"'a.ry.acceleration' in rad/s², where arm has 'a' in N m"
    ):
        tvlqr(system, same.trajectory)
    with pytest.raises(ValueError, match="the reference has the input 'a.ry.acceleration'"):
        sample_reference(system, same.trajectory, same.t)
    driven = Trajectory(system.state, same.t, same.x, torques, inputs=system.inputs)
    assert tvlqr(system, driven).K.shape == (12, 2, 4)


def test_what_has_no_inverse_dynamics_is_refused():
    cart = System("cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=["push"])
    with pytest.raises(ValueError, match="cart has no structure"):
        with_accelerations(cart)
    with pytest.raises(ValueError, match="1 controls drive 1 of 2 degrees of freedom"):
        with_accelerations(arm(inputs="a"))


def test_what_rows_and_costs_share_is_differentiated_once(rng):
    """Slopes of limited torques that cost something: those of either alone, for less work."""
    planned = with_accelerations(arm())
    torque = planned.quantities["input"].function
    effort = Residual(lambda t, x, u, p: torque(t, x, u, p) - 0.1, 1e-3)
    limits = Bound(torque, -4.0, 4.0, at="path")
    x, u = rng.normal(size=4), rng.normal(size=2)
    found, work = {}, {}
    for name, residuals, bounds in (
        ("both", [effort], [limits]),
        ("cost", [effort], []),
        ("rows", [], [limits]),
    ):
        found[name], work[name] = stage_at(planned, x, u, residuals=residuals, bounds=bounds)
    for key, other in (("H", "cost"), ("g", "cost"), ("G", "rows"), ("rows", "rows")):
        np.testing.assert_allclose(found["both"][key], found[other][key], rtol=1e-12, atol=1e-12)
    assert work["both"] < 1.3 * max(work["cost"], work["rows"])


def stage_at(system, x, u, **terms):
    """Results of a problem's stage at a point by name, and their operations."""
    zero = np.zeros(len(x))
    problem = OptimalControlProblem(
        system, 20, 0.05, Q=1.0, R=TINY, method="semi_implicit_euler", reference=zero, **terms
    )
    once = Transcription(problem)
    stage = once._functions.stage
    results = stage(
        t=0.0, x=x, u=u, x_next=x, x_ref=zero, u_ref=0 * u, p=[], w=once.path_weights, dt=0.05
    )
    return dict(zip(stage.results, results, strict=True)), stage.instructions


def test_slopes_of_torques_are_in_closed_form(rng):
    """Exact to rounding and by differences, inputs that are no controls among them."""
    planned = with_accelerations(arm(input_matrix=[[1.0, 0.5], [0.0, 2.0]], wrenches="b"))
    torque, slopes = planned.quantities["input"], planned.quantity_derivatives["input"]
    x, u = rng.normal(size=4), rng.normal(size=8)
    value, by_x, by_u = slopes(0.0, x, u)
    np.testing.assert_allclose(value, torque(0.0, x, u), atol=1e-12)
    symbols = [ca.SX.sym(name, size) for name, size in (("t", 1), ("x", 4), ("u", 8), ("p", 0))]
    column = torque.function(*symbols)
    exact = ca.Function("exact", symbols, [ca.jacobian(column, at) for at in symbols[1:3]])
    for found, wanted in zip((by_x, by_u), exact(0, x, u, []), strict=True):
        np.testing.assert_allclose(found, wanted.full(), rtol=1e-12, atol=1e-12)
    step = 1e-5
    for i in range(4):
        ahead, behind = x.copy(), x.copy()
        ahead[i], behind[i] = x[i] + step, x[i] - step
        central = (torque(0.0, ahead, u) - torque(0.0, behind, u)) / (2 * step)
        np.testing.assert_allclose(by_x[:, i], central, rtol=1e-8, atol=1e-8)


def test_rows_and_costs_by_name_have_these_slopes_for_less_work(rng):
    tree = panda_tree(losses=False)
    planned = with_accelerations(tree.system())
    torque, place = planned.quantities["input"].function, tree.placement("panda_hand_tcp")
    jacobian = tree.jacobian("panda_hand_tcp")
    x, u = 0.3 * rng.normal(size=14), rng.normal(size=7)
    goal = place(0.3 * rng.normal(size=7))

    def pose(t, x, u, p):
        return place(x[:7])

    def slopes(t, x, u, p):
        return ca.horzcat(jacobian(x[:7]), ca.DM(6, 7)), ca.DM(6, 7)

    by_name = {
        "residuals": [
            Residual("input", 1e-3, 1e-3, function=lambda t, y, u, p: y - 1.0),
            Residual("input.panda_joint4", 1e-3),
            Residual("input.panda_joint2", 1e-3, function=lambda t, y, u, p: y**2),
            Residual.from_goal(pose, goal, SE3, 10.0, 100.0, derivatives=slopes),
        ],
        "bounds": [Bound("input", at="path"), Bound("input.panda_joint3", upper=20.0, at="path")],
    }
    low, high = np.array([planned.limits[name] for name in planned.quantity_names]).T
    by_function = {
        "residuals": [
            Residual(lambda t, x, u, p: torque(t, x, u, p) - 1.0, 1e-3, terminal=1e-3),
            Residual(lambda t, x, u, p: torque(t, x, u, p)[3], 1e-3),
            Residual(lambda t, x, u, p: torque(t, x, u, p)[1] ** 2, 1e-3),
            Residual.from_goal(pose, goal, SE3, 10.0, 100.0),
        ],
        "bounds": [
            Bound(torque, low, high, at="path"),
            Bound(lambda t, x, u, p: torque(t, x, u, p)[2], upper=20.0, at="path"),
        ],
    }
    (found, work), (wanted, more) = (
        stage_at(planned, x, u, **terms) for terms in (by_name, by_function)
    )
    for key, value in wanted.items():
        scale = 1 + np.abs(value).max()
        np.testing.assert_allclose(found[key] / scale, value / scale, atol=1e-12)
    assert work < 0.7 * more


def test_what_a_residual_is_of_and_its_slopes_are_checked():
    planned = with_accelerations(arm())
    for residual, message in (
        (
            Residual("torque", function=lambda t, y, u, p: y),
            "residual 'residual': unknown quantity",
        ),
        (
            Residual(lambda t, x, u, p: x[:1], derivatives=lambda t, x, u, p: (ca.DM(1, 3), 0)),
            r"by_x has shape \(1, 3\), expected \(1, 4\): of tangent vectors of the state",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            stage_at(planned, np.zeros(4), np.zeros(2), residuals=[residual])
    with pytest.raises(ValueError, match="function= and derivatives= do not go together"):
        Residual("input", function=lambda t, y, u, p: y, derivatives=lambda t, x, u, p: (0, 0))

"""Implicit steps of constrained systems: index 3, and losses that are stiff, with derivatives."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import MPC, TVLQR
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics import ClosedTree, JointProperties, Multibody, SpatialInertia
from lgcontrol.models import double_pendulum_mechanism, five_bar_tree, four_bar_tree
from lgcontrol.simulation import simulate
from lgcontrol.systems import choose_method, stable_substeps, step_derivatives

EULER = implicit_euler3()
SOFT = "linearly_implicit_euler"
# Of central differences with a step of 1e-6 that amplify what rounding leaves of Newton's method.
DIFFERENCE = 1e-7
# What a projection leaves of the positions.
GAP = 1e-13
# What the solver of a plan tolerates.
PLANNED = 1e-6


def linkage(damping=2.0, friction=0.0):
    """A four-bar of light bars in stiff joints, its loop with a redundant row."""
    resists = JointProperties(damping=damping, friction=friction)

    def bar(length):
        return SpatialInertia.rod(0.1, length, [1, 0, 0], [length / 2, 0, 0])

    def turning(tree, name, length, parent="world", placement=(0.0, 0.0, 0.0)):
        return tree.add_body(
            name, bar(length), "revolute", parent, placement, axis="-y", properties=resists
        )

    tree = turning(Multibody("stiff_four_bar"), "crank", 0.3)
    tree = turning(tree, "coupler", 0.8, "crank", [0.3, 0, 0])
    tree = turning(tree, "rocker", 0.6, "world", [0.9, 0, 0])
    tree = tree.add_frame("end", "coupler", [0.8, 0, 0]).add_frame("top", "rocker", [0.6, 0, 0])
    closed = ClosedTree(tree, {"crank": 0.5, "coupler": 0.1, "rocker": 1.3})
    return closed.close_loop("loop", "end", "top", "spherical")


def differences(system, method, t, x, u, dt):
    """A and B of a step by differences on the manifold, less those by the implicit function."""
    made, step, h = step_derivatives(system, method)(t, x, u, dt=dt), system.step(method), 1e-6

    def change(ends):
        return (system.error(ends[0], made.x_next) - system.error(ends[1], made.x_next)) / (2 * h)

    A = [
        change([step(t, system.retract(x, s * h * e), u, dt=dt) for s in (1, -1)])
        for e in np.eye(system.n_errors)
    ]
    B = [
        change([step(t, x, u + s * h * e, dt=dt) for s in (1, -1)]) for e in np.eye(system.n_inputs)
    ]
    return np.abs(np.column_stack([*A, *B]) - np.hstack([made.A, made.B])).max()


@pytest.fixture(scope="module")
def four_bar():
    closed = four_bar_tree()  # a spherical joint closes it: one row too many
    q = closed.assemble(where={"crank": 0.5})
    system = closed.system(["crank"], at=q, independent="crank")
    return closed, system, closed.state(q, speeds={"crank": 2.0})


@pytest.mark.parametrize("method", [EULER, SOFT], ids=["index 3", SOFT])
def test_derivatives_of_implicit_steps_are_differences(four_bar, method):
    _, system, x = four_bar
    assert differences(system, method, 0.0, x, np.array([0.5]), 0.02) < DIFFERENCE


def test_derivatives_know_the_time_of_drives():
    closed = five_bar_tree().drive("left", lambda t: 2.4 + 0.3 * ca.sin(4 * t))
    q = closed.assemble()
    system = closed.system(["right"], at=q, independent="right")
    x = closed.state(q, speeds={"right": 0.4})
    x = system.rollout(x, [0.3], 0.01, steps=5).x[-1]
    for method in (EULER, SOFT):
        assert differences(system, method, 0.05, x, np.array([0.3]), 0.01) < DIFFERENCE
        run = system.rollout(x, [0.3], 0.01, steps=5, method=method)
        assert np.abs(system.invariants(run.x)).max() < GAP
        assert run.x[-1][-1] == pytest.approx(0.1, abs=1e-12)  # the clock went on


@pytest.mark.usually(model=("four_bar",))
@pytest.mark.parametrize("model", ["four_bar", "double_pendulum"])
def test_index_3_steps_serve_systems(four_bar, model):
    """Of order 1, on the manifold, and no more than a step and its matrix to those above."""
    if model == "four_bar":
        _, system, x = four_bar
    else:
        mechanism = double_pendulum_mechanism()
        system, x = mechanism.system(), mechanism.state()
    u = system.nominal_input
    exact = system.rollout(x, u, dt=1e-3, steps=200).x[-1]
    errors = []
    for n in (20, 40, 80):
        run = system.rollout(x, u, dt=0.2 / n, steps=n, method=EULER)
        assert np.abs(system.invariants(run.x)).max() < GAP
        errors.append(np.abs(run.x[-1] - exact).max())
    assert np.polyfit(np.log([4, 2, 1]), np.log(errors), 1)[0] == pytest.approx(1.0, abs=0.05)


def test_discrete_systems_of_index_3_steps_have_their_matrices(four_bar):
    _, system, x = four_bar
    discrete = system.discretize(0.02, EULER)
    made = step_derivatives(system, EULER)(0.0, x, [0.5], dt=0.02)
    own = step_derivatives(discrete)(0.0, x, [0.5])
    assert np.abs(own.A - made.A).max() < 1e-10 and np.abs(own.B - made.B).max() < 1e-10


@pytest.mark.parametrize(
    "use",
    [
        lambda system: system.step(generalized_alpha()),
        lambda system: system.discretize(0.01, generalized_alpha()),
        lambda system: step_derivatives(system, generalized_alpha()),
        lambda system: MPC(system, horizon=3, dt=0.02, method=generalized_alpha()),
    ],
    ids=["step", "discretize", "derivatives", "MPC"],
)
def test_methods_with_memory_are_refused_by_name(four_bar, use):
    with pytest.raises(ValueError, match="generalized_alpha (carries|hands on) accelerations"):
        use(four_bar[1])


@pytest.mark.parametrize("method", [EULER, SOFT], ids=["index 3", SOFT])
def test_regulators_and_plans_take_implicit_steps(four_bar, method):
    closed, system, x = four_bar
    motion = system.rollout(x, np.full((40, 1), 0.5), 0.01, method=method)
    law = TVLQR(system.discretize(0.01, method), motion, Q=np.diag([100.0, 1.0]), R=0.1)
    q = closed.assemble(x[:3], where={"crank": 0.55})
    away = closed.state(q, speeds={"crank": 1.8})
    led = simulate(system, law, x0=away, seconds=0.4)
    alone = system.rollout(away, np.full((40, 1), 0.5), 0.01)
    off = [abs(run.x[-1][0] - motion.x[-1][0]) for run in (led, alone)]
    assert off[0] < 0.2 * off[1]
    goal = system.trim(np.r_[closed.assemble(x[:3], where={"crank": 0.8}), np.zeros(3)])
    mpc = MPC(system, horizon=6, dt=0.05, method=method, Q={"configuration": 30.0}, R=0.01)
    mpc(0.0, x, goal)
    assert mpc.info.status.name == "OK"
    assert np.abs(system.invariants(mpc.plan.x)).max() < PLANNED


@pytest.mark.usually(friction=(0.5,))
@pytest.mark.parametrize("friction", [0.0, 0.5], ids=["damping", "friction"])
def test_stiff_losses_in_closed_loops_take_no_short_steps(friction):
    closed = linkage(damping=20.0, friction=friction)
    q = closed.assemble()
    system = closed.system(["crank"], at=q, independent="crank")
    x, u, dt = np.r_[q, np.zeros(3)], np.array([5.0]), 0.01
    assert stable_substeps(system, x, u, dt, "rk4") > 8 and choose_method(system, dt) == SOFT
    exact = system.rollout(x, u, dt=2e-4, steps=500, method="rk4").x[-1]
    errors = []
    for n in (10, 20, 40):
        run = system.rollout(x, u, dt=0.1 / n, steps=n, method=SOFT)
        assert np.abs(system.invariants(run.x)).max() < GAP
        errors.append(np.abs(run.x[-1] - exact)[:3].max())
    # The transient at the start, some 1e-4 s long, is no matter of these steps.
    assert max(errors) < 1e-3 * np.abs(exact - x)[:3].max()
    assert differences(system, SOFT, 0.0, x, u, dt) < DIFFERENCE

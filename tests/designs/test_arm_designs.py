"""Designs of arms: what their criteria leave out, and what they would miss without the arm."""

import dataclasses
import itertools

import numpy as np
import pytest

from lgcontrol.controllers import ComputedTorque
from lgcontrol.controllers.designs import delta_pick, panda_mpc
from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody
from lgcontrol.models import panda_tree, underwater_vehicle_arm_tree
from lgcontrol.simulation import Task
from lgcontrol.systems import Trajectory

from ._runs import run_of, task_of


@pytest.fixture(scope="module")
def panda_task():
    return task_of("panda-mpc")


@pytest.fixture(scope="module")
def swaying():
    return task_of("auv-arm"), run_of("auv-arm")


def test_the_vehicle_moves_while_the_tool_rests(swaying):
    task, run = swaying
    values = {v.criterion.name: v.value for v in task.judge(run)}
    assert values["way of the vehicle meanwhile"] > 0.1
    assert values["tool off its place after 5 s"] < values["way of the vehicle meanwhile"] / 10


def test_the_arm_stays_within_its_limits(swaying):
    task, run = swaying
    limits = underwater_vehicle_arm_tree().limits
    angles = run.x[:, 7:11]
    assert (angles >= limits["lower"][6:]).all() and (angles <= limits["upper"][6:]).all()


def test_without_task_control_the_tool_would_sway_along(swaying):
    """The same vehicle motion with the arm held stiff fails the same criteria."""
    task, _ = swaying
    tree = underwater_vehicle_arm_tree()
    stiff = ComputedTorque(
        tree, system=task.plant, frequency=2.0, dt=0.02, reference=task.controller.posture
    )
    held = Task(
        plant=task.plant, controller=stiff, x0=task.x0, seconds=12.0, options=task.options,
        criteria=task.criteria, goals=task.goals,
    )  # fmt: skip
    verdict = held.judge(held.run())[0]
    assert not verdict.passed and verdict.value > 0.05


def test_the_benchmarks_pose_is_the_first_one():
    """Pose and start of the benchmark, and that poses are apart and within limits."""
    tree = panda_tree()
    place = tree.placement(panda_mpc.HAND)
    poses = [panda_mpc.READY + offset for offset in panda_mpc.POSES]
    np.testing.assert_allclose(poses[0] - panda_mpc.READY, [0.5, 0.4, -0.4, 0.5, 0.3, 0.4, -0.6])
    for q, after in itertools.pairwise(poses):
        assert SE3.distance(place(q), place(after)) > 0.5
    for q in poses:
        assert (q > tree.limits["lower"]).all() and (q < tree.limits["upper"]).all()


def test_panda_plant_is_the_manufacturers_arm(panda_task, shared, rng):
    """The plant of the design against a tree of the original file, with noise as torques."""
    task = panda_task
    there = Multibody.from_urdf(
        shared / "robots" / "panda.urdf", losses=False, on_finding="ignore"
    ).lock(panda_finger_joint1=0.0)
    x = task.plant.state.random(rng)
    u = rng.normal(size=14)
    rate = task.plant.f(0.0, x, u)[7:]
    np.testing.assert_allclose(
        rate, there.forward_dynamics(x[:7], x[7:], u[:7] + u[7:]), rtol=1e-9, atol=1e-9
    )


@pytest.mark.thorough
def test_panda_keeps_its_rates_but_for_noise():
    """One pose: bounded rates, where noise may shake the light wrist by about 1 rad/s a sample."""
    run = run_of("panda-mpc")
    rates = np.abs(run.block("velocity")[run.t <= 0.8])
    over = rates - panda_tree().limits["velocity"]
    assert over[:, :4].max() < 0.3
    assert over.max() < 1.5
    assert (rates.max(axis=0) > 0.1).all()


@pytest.mark.thorough
def test_panda_goes_on_from_its_plans():
    """Goals that come into view are no jumps: a new plan takes a hundred times a call."""
    (record,) = run_of("panda-mpc").controllers.values()
    restarts = [str(word) for word in record.info["restart"]]
    assert sum(map(bool, restarts)) <= 3


@pytest.mark.thorough
def test_the_straight_way_meets_the_posts():
    """Angles that go straight from start to end cross the post, far beyond the margin."""
    task = task_of("panda-reach")
    share = np.linspace(0.0, 1.0, 101)[:, np.newaxis]
    x = (1 - share) * task.x0 + share * task.reference
    straight = Trajectory(task.plant.state, share[:, 0], x)
    (gap,) = [c for c in task.criteria if "obstacles" in c.name]
    assert gap.value(straight) < -0.05
    assert gap.value(Trajectory(task.plant.state, [0, 1], x[[0, -1]])) > 0


@pytest.mark.thorough
def test_the_tool_is_out_of_the_arms_own_reach():
    """The vehicle must go along: the place is farther from its mount than the arm is long."""
    task = task_of("auv-arm-reach")
    goal = np.array([one.nominal for one in task.controller.problem.parameters])
    assert np.linalg.norm(goal[:3] - [0.20, 0.0, -0.10]) > 2 * 0.68
    (missed,) = [c for c in task.criteria if c.name.startswith("tool off")]
    start = Trajectory(task.plant.state, [0.0, 20.0], np.stack([task.x0, task.x0]))
    assert missed.value(start) > 1.0


@pytest.mark.interpreted
def test_the_delta_robot_comes_to_its_way(monkeypatch):
    """The first tenth of a second with a short horizon: what is run by default of delta-pick."""
    monkeypatch.setattr(delta_pick, "HORIZON", 5)
    task = delta_pick.design(seed=0)
    run = dataclasses.replace(task, seconds=0.1).run(seed=0)
    assert run.status == "completed" and set(run.control["status"]) == {"ok"}
    names = task.plant.state.coordinate_names
    place = [names.index(f"configuration.platform.{axis}") for axis in "xyz"]
    away = [np.linalg.norm(run.x[k, place] - delta_pick.way(run.t[k]).full().T) for k in (0, -1)]
    assert away[0] > 0.02 and away[1] < 5e-4
    assert 0.99 * delta_pick.TORQUE < np.abs(run.u[:, :3]).max() <= delta_pick.TORQUE
    rows = task.plant.quantities["constraint_gap"](0.0, run.x)
    assert np.abs(rows).max() < 1e-13

"""Every design meets its criteria, and would not if its controller did nothing.

One start each: ``python -m tests.benchmarks.designs`` runs ten.
"""

import dataclasses
import inspect
import pickle

import numpy as np
import pytest

from lgcontrol.cli import main
from lgcontrol.controllers import MPC, GeometricPD, RealTime
from lgcontrol.groups import SO3
from lgcontrol.simulation import SimulationResult, Task

from ._runs import DESIGNS, run_of, task_of

FRAME_GOALS = ("auv-arm", "auv-arm-reach", "panda-mpc", "panda-reach")
PATHS = ("elastic-panda", "elastic-ur5", "variable-stiffness")  # followed from their beginning
# From a place beside it, or beside an equilibrium that the springs do not hold.
NEAR_PATHS = ("four-bar-upright", "pick-and-place", "quadrotor-flip", "slider-crank-speed")


# By default the underwater vehicle's arm stands for arms, the slew for satellites, the lane change
# for cars and the recovery for quadrotors; the delta robot of test_arm_designs.py for closed
# mechanisms.
LONG = (
    "auv-arm-reach", "auv-helix", "auv-usbl", "car-parking", "delta-pick", "elastic-panda",
    "elastic-ur5", "five-bar-reach", "four-bar-upright", "panda-mpc", "panda-reach",
    "pick-and-place", "quadrotor-field", "quadrotor-flip", "quadrotor-gnss", "satellite-day",
    "slider-crank-speed", "variable-stiffness", "vessel-docking",
)  # fmt: skip
NAMES = [
    pytest.param(name, marks=[pytest.mark.thorough] if name in LONG else [])
    for name in sorted(DESIGNS)
]


@pytest.fixture(scope="module", params=NAMES)
def name(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def task(name) -> Task:
    return task_of(name)


@pytest.fixture(scope="module")
def run(name) -> SimulationResult:
    return run_of(name)


# Share of its bounds that the largest input takes: an interior point stays inside of them, and some
# designs keep torques in reserve, for rates that late torques overshoot and a link that is heavier.
AT_BOUND, RESERVED = 0.98, {"panda-reach": 0.75, "variable-stiffness": 0.7}


def verdicts(task, run):
    return {verdict.criterion.name: verdict for verdict in task.judge(run)}


def test_meets_all_criteria(task, run):
    assert run.status == "completed"
    assert run.t[-1] == task.seconds
    failed = {name: v.value for name, v in verdicts(task, run).items() if not v.passed}
    assert not failed


def test_criteria_travel_to_other_processes(task, run):
    for criterion in task.criteria:
        there = pickle.loads(pickle.dumps(criterion))
        assert there.value(run) == criterion.value(run)
        assert str(there) == str(criterion)


def test_keeps_the_bounds_of_the_inputs(name, task, run):
    lower, upper = task.plant.input_bounds
    assert (run.u >= lower).all()
    assert (run.u <= upper).all()
    own = task.plant.input_index()
    u, lower, upper = run.u[:, own], lower[own], upper[own]
    share = np.abs(2 * u - lower - upper) / (upper - lower)
    assert share.max() >= RESERVED.get(name, AT_BOUND)  # or the bounds did not matter


@pytest.mark.filterwarnings("ignore:reference is beyond the limits")  # of motors that nobody moves
def test_fails_when_the_controller_does_nothing(task):
    idle = dataclasses.replace(
        task, controller=None, options={**task.options, "dt": task.controller.dt}
    )
    checked = [c for c in task.criteria if "calls" not in c.name]
    assert not all(v.passed for v in dataclasses.replace(idle, criteria=checked).judge(idle.run()))


# The others take seconds to make.
@pytest.mark.usually(
    name=("quadrotor-recovery", "satellite-slew", "variable-stiffness", "vessel-docking")
)
def test_seeds_give_other_starts_and_the_same_one_again(name, task):
    design = DESIGNS[name].load()
    other = design(seed=4 if name == "car-lane-change" else 1)  # 1 starts on the side of 0
    if name in PATHS:
        at = task.seconds / 2
        assert np.abs(other.reference(at).x - task.reference(at).x).max() > 0.01
    elif name == "auv-arm-reach":  # from one start to other goals
        moved = np.asarray(other.goals[0]) - np.asarray(task.goals[0])
        assert np.abs(moved).max() > 0.01
    else:
        assert np.abs(other.x0 - task.x0).max() > (1e-3 if name in NEAR_PATHS else 0.01)
    assert (design(seed=0).x0 == task.x0).all()


def test_starts_far_from_the_goal(name, task, run):
    if name in FRAME_GOALS:
        pytest.skip("its goal is the pose of a frame, which tests of its own look at")
    if name in PATHS:
        assert np.abs(run.error[0]).max() < 1e-9
        return
    if name in NEAR_PATHS:
        assert 0.01 < np.abs(run.error[0]).max() < 0.2
        return
    assert np.abs(run.error[0]).max() > 0.5


def test_is_described_in_one_line(name):
    design = DESIGNS[name].load()
    summary = inspect.getdoc(design).splitlines()[0]
    assert summary.endswith(".")
    assert len(summary) <= 80
    first, *others = inspect.signature(design).parameters.values()
    assert first.name == "seed"
    assert all(other.default is not inspect.Parameter.empty for other in others)


@pytest.mark.interpreted
def test_the_demonstration_runs_quadrotor_and_underwater_vehicle(tmp_path):
    """Too short to succeed, long enough to run: status 1 and both results."""
    assert main(["demo", "--seconds", "0.2", "--no-plot", "--out", str(tmp_path)]) == 1
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["auv-helix", "quadrotor-recovery"]


def test_runs_from_the_command_line(tmp_path, capsys):
    assert main(["run", "satellite-slew", "--out", str(tmp_path)]) == 0
    written = {path.name for path in tmp_path.iterdir()}
    assert {"satellite-slew.npz", "satellite-slew.png"} <= written
    assert "attitude error, mean of the last" in capsys.readouterr().out


def test_the_quadrotor_starts_upside_down():
    task = DESIGNS["quadrotor-recovery"].load()(seed=3)
    up = SO3.act(task.x0[3:7], [0.0, 0.0, 1.0])
    assert up[2] == pytest.approx(np.cos(np.radians(170)))
    goal = task.reference.x
    assert np.linalg.norm(SO3.minus(task.x0[3:7], goal[3:7])) == pytest.approx(np.radians(170))
    np.testing.assert_allclose(goal[:3], [2, 1, 1], atol=1e-9)


def test_the_satellite_keeps_its_momentum_while_its_wheels_turn_it():
    run = run_of("satellite-slew")
    wheel_inertia = 50.0 / (6000 * 2 * np.pi / 60)
    momentum = run.block("twist") * [900, 800, 600] + wheel_inertia * run.block("wheel_speed")
    inertial = SO3.act(run.block("pose"), momentum)
    assert np.linalg.norm(inertial[0]) > 35.0
    assert np.abs(inertial - inertial[0]).max() < 1e-6


def test_the_direct_slew_looks_into_the_sun_and_overspeeds_wheels():
    task = task_of("satellite-slew")
    direct = GeometricPD(task.plant, frequency=0.02, dt=1.0)
    straight = dataclasses.replace(task, controller=direct)
    found = verdicts(straight, straight.run())
    assert found["attitude error, mean of the last 10 s"].passed
    assert found["angle to the sun"].value < 15.0
    assert not found["highest wheel speed"].passed


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(1, 10))
def test_the_car_keeps_to_the_road_from_every_start(seed):
    task = DESIGNS["car-lane-change"].load()(seed=seed)
    assert all(verdict.passed for verdict in task.judge(task.run(seed=seed)))


@pytest.mark.thorough
@pytest.mark.parametrize("restarts", ["at once", True])
def test_without_an_estimate_the_current_carries_the_vessel_off_its_berth(restarts):
    task = task_of("vessel-docking")
    own = task.controller
    given = {name: getattr(own, name) for name in ("horizon", "dt", "Q", "R", "terminal")}
    given |= {"bounds": own.problem.bounds, "real_time": RealTime(restarts=restarts)}
    ignorant = MPC(own.system, **given)
    knowing = MPC(own.system, disturbance=("force", "torque"), **given)
    steady, there = task.options["disturbances"][1:], task.reference(60.0)
    berth = dataclasses.replace(  # until the estimate has settled
        task, x0=there, reference=there, seconds=80.0, options={"disturbances": steady}
    )

    def off(controller):
        other = dataclasses.replace(berth, controller=controller)
        return verdicts(other, other.run())["position error, mean of the last 5 s"].value

    assert off(knowing) < 1e-5
    assert off(ignorant) > 0.02  # where the distance kept from the quay holds it


@pytest.mark.thorough
def test_predictive_control_keeps_deflections_that_the_motion_exceeds():
    """The elastic UR5 by MPC: every call answers, springs give way by 0.056 rad at most."""
    task = DESIGNS["elastic-ur5"].load()(seed=0, law="mpc")
    run = task.run(seed=0)
    assert all(verdict.passed for verdict in task.judge(run))
    wanted = task.plant.structure.motion(*task.reference(np.linspace(0, 3, 300))).x_out
    assert np.abs(wanted[:, 12:18] - wanted[:, :6]).max() > 0.059
    (record,) = run.controllers.values()
    assert not any(map(str, record.info["restart"][1:])) and max(record.info["iterations"][1:]) <= 8


@pytest.mark.thorough
def test_starts_that_are_tried_in_vain_are_few(monkeypatch):
    """Hard bounds on deflections that the way exceeds: no start is better."""
    task = DESIGNS["elastic-ur5"].load()(seed=0, law="mpc")
    law, x, step = task.controller, task.x0, task.plant.step("rk4", 4)
    deflection, configuration = law.problem.bounds
    bounds = [dataclasses.replace(deflection, soft=None), configuration]
    own = {name: getattr(law, name) for name in ("horizon", "dt", "Q", "R", "terminal")}
    hard = MPC(task.plant, bounds=bounds, reference=task.reference, **own)
    hard.reset()
    hard.prepare(0.0, x)
    solve, tried = type(hard.solver).solve, set()

    def counted(*args, **options):
        tried.add(k)
        return solve(*args, **options)

    monkeypatch.setattr(type(hard.solver), "solve", counted)
    for k in range(60):
        u = hard(0.01 * k, x)
        assert hard.info.status == "ok" and not hard.info.restart
        x = step(0.01 * k, x, u, [], 0.01)
    assert 0 < len(tried) <= 12

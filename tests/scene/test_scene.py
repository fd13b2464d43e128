"""Scenes of models and runs: bodies where the models put them, and what files keep of them."""

from importlib.metadata import entry_points

import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.mechanics import Multibody
from lgcontrol.models import (
    delta_robot,
    four_bar_tree,
    four_link_mechanism,
    panda,
    panda_tree,
    quadrotor,
    rover,
    ur5_tree,
)
from lgcontrol.optimal import Bound, Capsule, Cone, HalfSpace, Sphere, keep_out
from lgcontrol.optimal import OptimalControlProblem as Problem
from lgcontrol.scene import BodyShape, Scene, SceneBody, box
from lgcontrol.scene._internal import obstacle_bodies
from lgcontrol.simulation import Criterion, Kick, Pulse, SimulationResult, Task, simulate
from lgcontrol.systems import System, Trajectory


@pytest.fixture(scope="module")
def hop():
    """A quadrotor that is kicked and pushed, with held inputs."""
    quad = quadrotor()
    trim = quad.trim()
    return simulate(
        quad,
        lambda t, x, reference: trim.u[:4],
        x0=trim.x,
        reference=trim.x,
        seconds=0.5,
        dt=0.05,
        disturbances=[Kick(0.2, {"twist": [0, 0, 1, 0, 0, 0]}), Pulse({"force.x": 1.0}, 0.1, 0.1)],
    )


def body_of(scene: Scene, name: str) -> SceneBody:
    return next(body for body in scene.bodies if body.name == name)


def test_bodies_of_a_tree_stand_where_its_frames_are():
    tree = panda_tree()
    q = tree.neutral + 0.1 * np.arange(3)[:, None]
    scene = tree.scene(q, [0.0, 0.5, 2.0])
    for name in tree.bodies:
        assert np.allclose(body_of(scene, name).poses, tree.placement(name)(q))
    assert all(body.shapes for body in scene.bodies)


def test_a_closed_tree_and_its_system_have_a_look():
    system = delta_robot()
    scene = system.scene()
    platform = body_of(scene, "platform").poses[0]
    names = system.state.coordinate_names
    home = [system.home[names.index(f"configuration.platform.{axis}")] for axis in "xyz"]
    assert np.allclose(platform[:3], home)
    assert all(body.shapes for body in scene.bodies)


def test_a_quadrotor_has_a_disc_for_each_rotor_where_it_pushes():
    (body,) = quadrotor(arm=0.3).scene().bodies
    tall = [shape for shape in body.shapes if getattr(shape.geometry, "radius", 0) > 0.15]
    found = np.array([shape.pose[:2] for shape in tall])
    assert np.allclose(found, [[0.3, 0], [0, 0.3], [-0.3, 0], [0, -0.3]], atol=1e-12)


def test_a_run_shows_reference_events_and_plots(hop):
    scene = hop.scene()
    assert [(e.t, e.name) for e in scene.events] == [
        (0.1, "push: force.x"), (0.2, "kick"), (0.2, "push ends: force.x"),
    ]  # fmt: skip
    assert body_of(scene, "quadrotor, reference").role == "reference"
    assert np.array_equal(body_of(scene, "quadrotor").poses, hop.block("pose"))
    assert {plot.unit for plot in scene.plots} == {"m", "rad", "m/s", "rad/s", "N"}


def test_a_saved_run_is_drawn_without_its_plant(hop, tmp_path):
    loaded = SimulationResult.load(hop.save(tmp_path / "hop"))
    scene, again = hop.scene(), loaded.scene()
    assert repr(scene) == repr(again)
    for one, other in zip(scene.bodies, again.bodies, strict=True):
        assert np.allclose(one.poses, other.poses, atol=1e-6)
        assert np.allclose(one.points(0), other.points(0), atol=1e-6)
    assert [plot.title for plot in again.plots] == [plot.title for plot in scene.plots]
    assert [e.name for e in again.events] == [e.name for e in scene.events]


def test_long_runs_are_shown_by_fewer_frames_with_a_notice():
    group = Product(pose=SE3, twist=Rn(6))
    still = System("still", group, lambda t, x, u, p: [0.0] * 12)
    t = np.linspace(0, 100, 50_001)
    x = np.tile(group.identity, (len(t), 1))
    x[:, 0] = t
    scene = still.scene(x, t)
    assert len(scene.t) == 2000
    assert scene.notices == [
        "2000 of 50001 states are shown, one each 0.05 s; scene(frames=…) takes more"
    ]
    assert np.allclose(scene.bodies[0].poses[:, 0], scene.t)


def test_bounds_that_keep_out_of_an_obstacle_know_it_once():
    quad, ball = quadrotor(), Sphere([1.0, 0.0, 0.0], 0.3)
    wall = Capsule([0.0, 1.0, 0.0], [0.0, 1.0, 2.0], 0.1)
    bounds = [keep_out(lambda t, x, u, p: x[:3], one) for one in (ball, ball, wall)]
    problem = Problem(quad, 5, 0.1, bounds=[*bounds, Bound("twist", upper=3.0)])
    assert problem.obstacles == {"Sphere": ball, "Capsule": wall}


def test_obstacles_move_with_time_and_parameters():
    t = np.array([0.0, 1.0, 3.0])
    gate = Capsule(lambda t, p: p[:3] + t, [1.0, 0.0, 1.0], 0.2)
    floor = HalfSpace([0.0, 0.0, -1.0], [0.0, 0.0, 2.0])
    moving, still = obstacle_bodies({"gate": gate, "floor": floor}, t, np.array([1.0, 0, 0]))
    ends = SE3.act(moving.poses, np.array([0.0, 0.0, 0.0]))
    assert np.allclose(ends, ([1.0, 0, 1] + ([1.0, 0, 0] + t[:, None] * np.ones(3))) / 2)
    assert np.allclose(still.poses[0, :3], [0, 0, -1])


def test_a_system_without_a_body_says_what_to_do():
    plain = System("tank", Rn(2), lambda t, x, u, p: -x)
    with pytest.raises(ValueError, match="give it a look, as in system.with_look"):
        plain.scene()


def test_shapes_given_are_drawn_and_pickled_systems_keep_them():
    import pickle

    system = rover().with_look([box((0.5, 0.4, 0.2))])
    (body,) = pickle.loads(pickle.dumps(system)).scene().bodies
    assert body.shapes[0].geometry.size == (0.5, 0.4, 0.2)


@pytest.mark.parametrize("kind", ["box", "cylinder", "capsule", "sphere"])
def test_surfaces_are_closed_and_face_outwards(kind):
    from lgcontrol.io._internal import BoxShape, CapsuleShape, CylinderShape, SphereShape

    geometry, volume = {
        "box": (BoxShape((1.0, 2.0, 3.0)), 6.0),
        "cylinder": (CylinderShape(0.5, 2.0), np.pi / 2),
        "capsule": (CapsuleShape(0.5, 2.0), np.pi / 2 + np.pi / 6),
        "sphere": (SphereShape(1.0), 4 / 3 * np.pi),
    }[kind]
    pose = np.concatenate([[3.0, 1.0, 2.0], SO3.exp([0.3, -1.0, 0.2])])
    vertices, faces = BodyShape(geometry, pose).surface(64)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    assert np.einsum("ij,ij->i", np.cross(a, b), c).sum() / 6 == pytest.approx(volume, rel=0.01)


def test_plain_scenes_are_the_scenes(hop):
    description, arrays = hop.scene().to_plain()
    assert Scene.from_plain(description, arrays).to_plain()[0] == description


def test_links_of_an_attached_and_moved_tree_keep_their_shapes(tmp_path):
    file = tmp_path / "stick.urdf"
    file.write_text(
        '<robot name="stick"><link name="a"/><link name="b"><visual><origin xyz="0 0 0.5"/>'
        '<geometry><box size="0.1 0.1 1"/></geometry></visual></link>'
        '<joint name="j" type="revolute"><parent link="a"/><child link="b"/>'
        '<axis xyz="0 1 0"/><limit effort="1" velocity="1"/></joint></robot>'
    )
    stick = Multibody.from_urdf(file, on_finding="ignore")
    moved = stick.move_frames(b=[0.0, 0.0, 1.0])
    two = stick.attach(stick, "b", [0, 0, 1.0], "upper_")
    for tree, name in ((stick, "b"), (moved, "b"), (two, "upper_b")):
        body = body_of(tree.scene(), name)
        middle = body.points(0).mean(axis=0)
        assert np.allclose(middle, [0, 0, 0.5 + (name != "b")])


def test_links_that_carry_others_at_their_own_joint_are_no_plates():
    """As the first link of the Panda, whose inertia is that of a plank of 1.3 m."""
    scene = panda_tree().system().scene()
    for body in scene.bodies:
        assert np.ptp(body.points(0), axis=0).max() < 0.6, body.name


def test_made_up_inertias_of_a_file_are_no_plates_and_trunks_are_boxes(shared):
    """ur5.urdf gives its last wrist the inertia of a plate of 1 m."""
    wrist = body_of(ur5_tree().scene(), "wrist_3_link")
    assert np.ptp(wrist.points(0), axis=0).max() < 0.25
    upper = [body_of(panda_tree().scene(), f"panda_link{k}").shapes for k in range(1, 7)]
    kinds = {type(shape.geometry).__name__ for shapes in upper for shape in shapes}
    assert kinds == {"CapsuleShape", "CylinderShape"}  # links of an arm, no boxes
    solo = Multibody.from_urdf(shared / "robots" / "solo12.urdf", base="free", on_finding="ignore")
    trunk = body_of(solo.scene(), "base_link")
    assert np.allclose(np.ptp(trunk.points(0), axis=0), [0.46, 0.3, 0.1], atol=0.12)


def test_pushes_are_arrows_and_plans_dashed_paths(hop):
    scene = hop.scene(plan=hop.trajectory)
    (arrow,) = scene.arrows  # a force in world axes, 1 N along x from 0.1 to 0.2 s
    pushed = (scene.t > 0.1 - 1e-9) & (scene.t < 0.2 - 1e-9)
    assert np.allclose(arrow.vectors, np.outer(pushed, [1.0, 0, 0]))
    assert np.allclose(arrow.starts, body_of(scene, "quadrotor").poses[:, :3])
    (plan,) = [path for path in scene.paths if path.role == "plan"]
    assert np.allclose(plan.points[:: (len(plan.points) - 1) // 10], hop.block("pose")[:, :3])


@pytest.mark.thorough
@pytest.mark.parametrize("group", ["lgcontrol.models", "lgcontrol.mechanisms"])
def test_every_ready_model_and_mechanism_can_be_seen(group):
    """All of their bodies have shapes, and no shape is far larger than the model."""
    for entry in entry_points(group=group):
        scene = entry.load()().scene()
        low, high = scene.extent
        assert all(body.shapes for body in scene.bodies), entry.name
        assert 0.02 < (high - low).max() < 10, entry.name


@pytest.mark.parametrize("make", [four_bar_tree, four_link_mechanism])
def test_linkages_have_scenes_of_configurations(make):
    linkage = make()
    q = linkage.assemble()
    placed = linkage.poses(q)
    scene = linkage.scene(q)
    for body in scene.bodies:
        if body.name in placed:
            assert np.allclose(body.poses[0], placed[body.name])


def test_a_goal_has_the_tightest_tolerance_of_the_criteria_about_it():
    quad = quadrotor()
    trim, there = quad.trim(), SE3.from_position([0.0, 0.0, 1.0])
    far, near = (
        Criterion(f"distance {k}", lambda run: np.linalg.norm(run.x[:, :3], axis=1), limit, "m",
                  goal=1)
        for k, limit in enumerate((0.3, 0.1))
    )  # fmt: skip
    task = Task(
        quad, lambda t, x, reference: trim.u[:4], trim.x, 0.1, options={"dt": 0.05},
        criteria=(far, near, Criterion("way", lambda run: 0.0, 0.01, "m")),
        goals=(SE3.identity, there),
    )  # fmt: skip
    goals = task.run().scene().goals
    assert [(goal.name, goal.tolerance) for goal in goals] == [("goal 1", 0.0), ("goal 2", 0.1)]
    with pytest.raises(ValueError, match="says goal=1, and the task has 1 goals"):
        Task(quad, task.controller, trim.x, 0.1, criteria=(near,), goals=(there,))
    with pytest.raises(ValueError, match="a distance from a goal is in 'm'"):
        Criterion("turn", lambda run: 0.0, 0.1, "rad", goal=0)


def test_cones_and_gates_of_bounds_are_seen_unasked():
    quad = quadrotor()

    def upright(t, x, u, p):
        return SO3.act(x[3:7], [0.0, 0.0, 1.0])

    tilt, sun = Cone([0, 0, 1], 0.5), Cone([1, 0, 0], 0.3)
    gate = [
        Bound(f"pose.{k}", a, a + 0.4, at=range(3, 4), name="ring")
        for k, a in (("y", -0.2), ("z", 0.8))
    ]
    problem = Problem(
        quad, 5, 0.1, bounds=[tilt.inside(upright, name="tilt"), sun.outside(upright), *gate]
    )
    assert list(problem.obstacles) == ["tilt", "out of cone", "ring"]
    x = np.tile(quad.home, (3, 1))
    x[:, 0] = [0.0, 2.0, 4.0]
    scene = quad.scene(x, obstacles=problem.obstacles)
    seen = {name: body_of(scene, name) for name in problem.obstacles}
    assert [body.role for body in seen.values()] == ["gate", "obstacle", "gate"]
    assert np.allclose(seen["tilt"].poses[:, :3], x[:, :3])  # goes along with the body
    rim = seen["out of cone"].points(2) - x[2, :3]
    away = rim[np.linalg.norm(rim, axis=1) > 1e-9]
    angles = np.arccos(away[:, 0] / np.linalg.norm(away, axis=1))
    assert np.isclose(angles.max(), 0.3)
    corners = seen["ring"].points(0)
    assert np.allclose(
        [corners[:, 1:].min(axis=0), corners[:, 1:].max(axis=0)], [[-0.2, 0.8], [0.2, 1.2]]
    )
    assert np.ptp(corners[:, 0]) < 10  # its end in x is that of the scene


def test_a_half_space_is_a_plate_as_large_as_the_scene():
    quad = quadrotor()
    floor = HalfSpace([50.0, 0.0, -1.0], [0.0, 0.0, 1.0])
    plate = body_of(quad.scene(obstacles={"floor": floor}), "floor").points(0)
    assert np.isclose(plate[:, 2].max(), -1.0)
    assert np.ptp(plate[:, 0]) < 2.0
    assert abs(plate[:, 0].mean() - quad.home[0]) < 1e-9


def test_plans_are_curved_between_their_nodes(hop):
    quad = quadrotor()
    x = np.tile(quad.home, (2, 1))
    turn = np.array([np.pi, 0, 0, 0, 0, np.pi])  # half a circle of radius 1 m
    x[1, :7] = SE3.plus(x[0, :7], turn)
    scene = quad.scene(Trajectory(quad.state, [0.0, 1.0], x))
    (trail,) = scene.paths
    middle = trail.points[scene.frame_at(0.5)] - x[0, :3]
    assert np.allclose(middle, SE3.exp(turn / 2)[:3], atol=1e-3)
    (drawn,) = [
        one
        for one in hop.scene(plan=Trajectory(hop.group, [0.0, 1.0], x)).paths
        if one.role == "plan"
    ]
    assert np.abs(np.linalg.norm(drawn.points - x[0, :3] - [0, 1, 0], axis=1) - 1).max() < 1e-9


def test_ready_models_have_sliders_and_loops_none():
    assert [joint.name for joint in panda().scene().joints] == [
        f"panda_joint{k}" for k in range(1, 8)
    ]
    assert not delta_robot().scene().joints
    arm = panda()
    assert not arm.scene(np.tile(arm.home, (2, 1))).joints


def test_records_show_clearances_in_metres_and_cones_as_angles():
    quad = quadrotor()
    far = keep_out(lambda t, x, u, p: x[:3], Sphere([0.0, 0, 0], 1.0), radius=0.5, name="ball")
    tilt = Cone([0, 0, 1], 0.5).inside(lambda t, x, u, p: SO3.act(x[3:7], [0, 0, 1.0]), name="tilt")
    problem = Problem(quad, 5, 0.1, bounds=[far, tilt, Bound("pose.z", lower=0.0, name="floor")])
    x = np.array(quad.home)[None]
    x[0, :7] = [30.0, 0.0, 0.0, *SO3.exp([0.2, 0, 0])]
    shown = problem.bounded(np.zeros(1), x, np.zeros((1, quad.n_inputs)))
    assert np.isclose(shown["ball"][0][0], 28.5)
    assert np.isclose(shown["tilt"][0][0], 0.2) and shown["tilt"][2] == 0.5
    assert [problem.bound_unit(name) for name in shown] == ["m", "rad", "m"]

"""Trees with closed loops: against minimal coordinates, differences, other cuts of the loop."""

import pickle

import casadi as ca
import control
import numpy as np
import pytest

from lgcontrol.controllers import LQR, MPC, TVLQR
from lgcontrol.groups import SE3, Product
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.mechanics._internal import ConstrainedMechanics
from lgcontrol.mechanics.constrained import (
    AssemblyError,
    ClosedTree,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismMotor,
    constrained_system,
    revolute,
    translational,
)
from lgcontrol.models import (
    delta_robot_tree,
    five_bar_tree,
    four_bar_tree,
    stewart_platform_tree,
    two_arms_tree,
)
from lgcontrol.simulation import simulate
from lgcontrol.systems import check_system, step_derivatives

from ._absolute import mechanism_of
from ._minimal import delta_place, four_bar_place, minimal_system, states

EXACT = 1e-9  # of matrices of the two models, next to their largest entry
SAME = 1e-10  # of motions in two sets of coordinates, m, rad, N and their rates
GAP, VELOCITY_GAP = 1e-15, 1e-13  # what projection leaves, m and rad, m/s and rad/s
ARMS = ("arm1", "arm2", "arm3")


class Case:
    """A mechanism, its minimal model, and a moving state of both."""

    def __init__(self, closed, place, drives, y, w, u):
        self.closed, self.u, self.place, self.drives = closed, np.array(u), place, drives
        self.minimal = minimal_system(closed, place, drives)
        self.small, self.x = states(closed, place, y, w)
        self.q = self.x[: closed.tree.nq]
        self.system = closed.system(drives, independent=drives, at=self.q)

    def gaps(self, x):
        rows = self.closed.constraints.n_position
        gap = self.system.quantities["constraint_gap"](0.0, x)
        return np.abs(gap[..., :rows]).max(), np.abs(gap[..., rows:]).max()


@pytest.fixture(scope="module")
def four_bar():
    return Case(four_bar_tree(), four_bar_place(), ["crank"], [0.5], [2.0], [1.0])


@pytest.fixture(scope="module")
def delta():
    y, w = [0.1, 0.3, -0.2], [2.0, -1.0, 3.0]
    return Case(delta_robot_tree(), delta_place(), ARMS, y, w, [1.0, -2.0, 3.0])


@pytest.fixture(params=["four_bar", pytest.param("delta", marks=pytest.mark.thorough)])
def case(request):
    return request.getfixturevalue(request.param)


def turn_of(case, joint):
    """Name of a joint's rate, with the letter of its axis."""
    return f"{joint}.{case.closed.tree.configuration.blocks[joint].tangent_names[0]}"


def same(a, b, tolerance=EXACT):
    return np.abs(a - b).max() <= tolerance * np.abs(b).max()


def test_acceleration_and_linearization_are_those_of_the_minimal_model(case):
    gap, _ = case.gaps(case.x)
    assert gap < 10 * GAP  # the explicit kinematics belongs to the loops
    n = len(case.drives)
    rate = case.system.f(0.0, case.x, case.u)
    assert same(case.system.error_selection @ rate, case.minimal.f(0.0, case.small, case.u))
    own = case.system.linearize(case.x, case.u)
    reference = case.minimal.linearize(case.small, case.u)
    assert same(own.A, reference.A) and same(own.B, reference.B)
    assert own.state_names == tuple(
        f"{block}.{turn_of(case, joint)}"
        for block in ("configuration", "velocity")
        for joint in case.drives
    )
    gains = [
        control.lqr(lin.to_control(), np.eye(2 * n), 0.1 * np.eye(n))[0] for lin in (own, reference)
    ]
    assert same(*gains)


def test_motion_stays_on_the_manifold_and_agrees(case):
    u = np.tile(case.u * 0.5, (40, 1))
    run = case.system.rollout(case.x, u, 0.005, substeps=4)
    gap, velocity_gap = case.gaps(run.x)
    assert gap <= GAP and velocity_gap <= VELOCITY_GAP
    reference = case.minimal.rollout(case.small, u, 0.005, substeps=4)
    nq = case.closed.tree.nq
    at = [case.closed.tree.configuration.tangent_names.index(turn_of(case, j)) for j in case.drives]
    # Both are of order four, and their errors differ.
    assert np.abs(run.x[-1][at] - reference.x[-1][: len(at)]).max() < 1e-7
    assert np.abs(run.x[-1][nq:][at] - reference.x[-1][len(at) :]).max() < 1e-6


def test_linearization_along_a_motion_is_that_of_the_minimal_model(case):
    n, k = len(case.drives), np.arange(10.0)
    u = np.stack([np.sin(k + i) for i in range(n)], axis=1)
    reference = case.minimal.rollout(case.small, u, 0.02)
    exact = np.array([states(case.closed, case.place, x[:n], x[n:])[1] for x in reference.x])
    assert np.abs(exact[-1] - exact[0]).max() > 0.1
    motion = type(reference)(case.system.state, reference.t, exact, reference.u)
    own, other = case.system.linearize(motion), case.minimal.linearize(reference)
    assert same(own.A, other.A) and same(own.B, other.B)


def test_derivatives_of_a_step_are_differences_on_the_manifold(case):
    system, h = case.system, 1e-5
    made = step_derivatives(system)(0.0, case.x, case.u, dt=0.01)
    step = system.step()

    def ahead(z, u):
        return step(0.0, system.retract(case.x, z), u, dt=0.01)

    none, eye = np.zeros(system.n_errors), np.eye(system.n_errors)
    A = [
        system.error(ahead(h * e, case.u), made.x_next)
        - system.error(ahead(-h * e, case.u), made.x_next)
        for e in eye
    ]
    B = [
        system.error(ahead(none, case.u + h * e), made.x_next)
        - system.error(ahead(none, case.u - h * e), made.x_next)
        for e in np.eye(len(case.u))
    ]
    assert np.abs(np.transpose(A) / (2 * h) - made.A).max() < 1e-7  # rounding over h
    assert np.abs(np.transpose(B) / (2 * h) - made.B).max() < 1e-7


def test_systems_keep_what_is_promised(case):
    found = check_system(case.system, x=case.x)
    assert found["error coordinates fit the constraints"] < 1e-8
    assert found["projection is idempotent"] < 1e-14


def test_derivatives_of_multipliers_are_differences(case):
    closed, x, u = case.closed, case.x, case.u
    mechanics = ConstrainedMechanics(closed.tree.system(case.drives), closed.constraints)
    zero, state, h = np.zeros(0), case.system.state, 1e-5
    by_x, by_u = (np.asarray(ca.DM(D)) for D in mechanics.multiplier_derivatives(0.0, x, u, zero))
    multipliers = case.system.quantities["multipliers"]
    at = multipliers(0.0, x, u)
    for k, e in enumerate(np.eye(state.dim)):
        ahead, back = (multipliers(0.0, state.plus(x, s * h * e), u) for s in (1, -1))
        assert np.abs((ahead - back) / (2 * h) - by_x[:, k]).max() < 1e-7 * (1 + np.abs(by_x).max())
    for k, e in enumerate(np.eye(len(u))):
        change = multipliers(0.0, x, u + e) - at  # linear in u
        assert same(change, by_u[:, k])


@pytest.mark.thorough
def test_merged_parallelograms_move_as_six_rods(delta):
    """Another tree, other loops, a free platform: the same robot."""
    rods = delta_robot_tree(parallelograms="rods")
    q = rods.assemble(where=dict(zip(ARMS, delta.small[:3], strict=True)))
    system = rods.system(ARMS, independent=ARMS, at=q)
    x = rods.state(q, speeds=dict(zip(ARMS, delta.small[3:], strict=True)))
    own = system.error_selection @ system.f(0.0, x, delta.u)
    assert same(own, delta.system.error_selection @ delta.system.f(0.0, delta.x, delta.u))
    assert np.abs(system.project(x) - x).max() < 1e-13


@pytest.mark.usually(joint=("revolute",))
@pytest.mark.parametrize("joint", ["revolute", "spherical", "universal"])
def test_redundant_rows_change_nothing_and_are_named(four_bar, joint):
    closed = four_bar_tree(joint=joint) if joint != "universal" else _universal()
    found = closed.mobility(four_bar.q)
    assert found.degrees_of_freedom == 1 and not found.is_singular
    assert "loop.y" in found.removable
    assert {"loop.x", "loop.z"}.isdisjoint(found.dependent)
    system = closed.system(["crank"], independent="crank", at=four_bar.q)
    own = system.linearize(four_bar.x, four_bar.u)
    reference = four_bar.system.linearize(four_bar.x, four_bar.u)
    assert same(own.A, reference.A) and same(own.B, reference.B)
    run = system.rollout(four_bar.x, four_bar.u, 0.005, steps=20)
    assert (
        np.abs(run.x - four_bar.system.rollout(four_bar.x, four_bar.u, 0.005, steps=20).x).max()
        < 1e-12
    )


def _universal():
    tree = four_bar_tree().tree
    return ClosedTree(tree).close_loop(
        "loop", "coupler_end", "rocker_end", "universal", axis="y", axis2="x"
    )


@pytest.mark.thorough
def test_wrenches_of_loops_carry_the_platform(delta):
    """At rest the platform hangs on the rods with its weight, and nothing else."""
    q = delta.closed.assemble(where={"platform.z": -0.75})
    trim = delta.system.trim(np.r_[q, np.zeros(12)])
    assert trim.kind == "equilibrium" and np.abs(trim.u - trim.u[0]).max() < 1e-9
    total = np.zeros(3)
    for arm in ARMS:
        R = SE3.matrix(delta.closed.tree.placement(f"{arm}_rod_end")(q))[:3, :3]
        total += (
            R @ delta.system.quantities[f"reaction_{arm}_{arm}_rod_end"](0.0, trim.x, trim.u)[:3]
        )
    assert np.abs(total - [0, 0, -0.35 * 9.81]).max() < 1e-10


def test_driven_loops_follow_their_motion(four_bar):
    """The crank turns as told; its multiplier is the torque that the drive takes."""
    closed = four_bar_tree().drive("crank", lambda t: 0.5 + 2 * t + ca.sin(3 * t))
    assert closed.mobility(four_bar.q).degrees_of_freedom == 0
    system = closed.system([], at=four_bar.q)
    assert system.state.coordinate_names[-1] == "clock.t" and system.n_errors == 0
    q = closed.assemble(four_bar.q, t=0.0)
    x = closed.state(q)
    run = system.rollout(x, None, 0.01, steps=50)
    crank = run.x[:, 0] - (0.5 + 2 * run.t + np.sin(3 * run.t))
    assert np.abs(crank).max() < GAP and np.abs(run.x[:, -1] - run.t).max() < 1e-14
    gap = system.quantities["constraint_gap"](0.0, run.x)
    assert np.abs(gap).max() <= VELOCITY_GAP
    # The free linkage under the drive's torque has the same acceleration.
    end, row = run.x[-1], closed.constraints.rows_of("drive_crank")
    torque = -system.quantities["multipliers"](0.0, end, [])[row]
    free = four_bar.system.f(0.0, end[:-1], torque)
    assert same(free, system.f(0.0, end, [])[:-1])


def _four_bar():
    drive = {"crank": lambda t: 0.5 + 2 * t + ca.sin(3 * t) / 2}
    kinds = {"crank": ["-y"], "coupler": ["-y"], "rocker": ["-y"]}
    return four_bar_tree(), kinds, {"loop": ("coupler", "rocker")}, drive, "coupler"


def _delta():
    drives = {arm: lambda t, k=k: 0.3 + 0.4 * ca.sin(3 * t + k) for k, arm in enumerate(ARMS)}
    kinds = {arm: ["y"] for arm in ARMS} | {f"{arm}_rod": ["y", "z"] for arm in ARMS}
    ends = {arm: ("platform", f"{arm}_rod") for arm in ARMS}
    return delta_robot_tree(drive_inertia=0), kinds | {"platform": ()}, ends, drives, "platform"


@pytest.mark.usually(case=(_four_bar,))
@pytest.mark.parametrize("case", [_four_bar, _delta])
def test_kinematics_are_those_in_absolute_coordinates(case):
    """Poses, rates, accelerations of a body, torques of drives, wrenches of loops."""
    closed, kinds, ends, drives, last = case()
    for joint, motion in drives.items():
        closed = closed.drive(joint, motion)
    t = np.linspace(0, 1.5, 16)
    run = closed.kinematics(t)
    assert run.status.name == "SOLVED" and len(run.t) == 16
    tree, q0 = closed.tree, closed.assemble()
    absolute = mechanism_of(closed, kinds, ends, q0, drives)
    other = absolute.kinematics(t)
    inertia, redundant = tree.link(last).inertia, absolute.mobility().dependent
    reactions = absolute.reactions(other.t, other.q, other.multipliers)
    wrenches = closed.reactions(run.t, run.q, run.multipliers)
    for k in (0, 9, 15):
        poses = absolute.poses(other.q[k])
        rates = absolute.rates(other.q[k], other.v[k])
        found = {
            joint: {body: wrench[k] for body, wrench in each.items()}
            for joint, each in reactions.items()
        }
        for body in kinds:
            at = SE3.compose(
                tree.placement(body)(run.q[k]),
                [*tree.link(body).inertia.center_of_mass, 0, 0, 0, 1],
            )
            assert np.abs(SE3.minus(at, poses[body])).max() < SAME
            J = np.asarray(tree.jacobian(body, "body")(run.q[k]))
            assert np.abs((J @ run.v[k])[3:] - rates[body][3:]).max() < SAME
        # Of the last body ω̇, and the acceleration of its centre of mass.
        J, Jdot = (
            np.asarray(f)
            for f in (
                tree.jacobian(last, "hybrid")(run.q[k]),
                tree.jacobian_rate(last, "hybrid")(run.q[k], run.v[k]),
            )
        )
        origin, R = J @ run.a[k] + Jdot @ run.v[k], SE3.matrix(poses[last])[:3, :3]
        spin, lever = R @ rates[last][3:], R @ np.asarray(inertia.center_of_mass)
        wanted = other.a[k].reshape(-1, 6)[list(absolute.bodies).index(last)]
        centre = origin[:3] + np.cross(origin[3:], lever) + np.cross(spin, np.cross(spin, lever))
        assert np.abs(centre - wanted[:3]).max() < SAME * (1 + np.abs(wanted).max())
        assert np.abs(R.T @ origin[3:] - wanted[3:]).max() < SAME * (1 + np.abs(wanted).max())
        for joint in drives:
            torque = -run.multipliers[k][closed.constraints.rows_of(f"drive_{joint}")]
            axis = np.asarray(kinds[joint][0] == "y") * 2 - 1
            assert np.abs(axis * torque - found[f"drive_{joint}"][joint][4]).max() < SAME * 10
        for loop in closed.loops:
            R_b = SE3.matrix(tree.placement(loop.frame_b)(run.q[k]))[:3, :3]
            force = R_b @ wrenches[loop.name][loop.frame_b][k, :3]
            # What the plane of a linkage does not decide is shared out differently.
            kept = [i for i, a in enumerate("xyz") if f"closing_{loop.name}.{a}" not in redundant]
            last_body = ends[loop.name][1]
            R_last = SE3.matrix(poses[last_body])[:3, :3]
            other_force = R_last @ found[f"closing_{loop.name}"][last_body][:3]
            assert np.abs(force - other_force)[kept].max() < SAME * 10


def test_kinematics_are_those_of_the_simulated_motion(four_bar):
    closed = four_bar_tree().drive("crank", lambda t: 0.5 + 2 * t + ca.sin(3 * t))
    run = closed.kinematics(np.linspace(0, 0.5, 11), q=four_bar.q)
    system = closed.system([], at=run.q[0])
    led = system.rollout(np.r_[run.q[0], run.v[0], 0.0], None, 0.05, steps=10, substeps=50)
    assert np.abs(led.x[:, :6] - np.c_[run.q, run.v]).max() < 1e-10
    assert np.abs(system.f(0.0, led.x[4], [])[3:6] - run.a[4]).max() < 1e-9
    own = system.quantities["multipliers"](0.0, led.x, np.zeros((11, 0)))
    assert np.abs(own - run.multipliers).max() < 1e-9
    wrench = system.quantities["reaction_loop_rocker_end"](0.0, led.x[4], [])
    found = closed.reactions(run.t[4], run.q[4], run.multipliers[4])["loop"]["rocker_end"]
    assert np.abs(found - wrench).max() < 1e-9
    with pytest.raises(ValueError, match="multipliers"):
        closed.reactions(run.t[4], run.q[4], np.nan * run.multipliers[4])
    panels = run.plot().axes
    assert [ax.get_title(loc="left") for ax in panels][1:] == ["velocity", "multipliers"]
    drawn = {line.get_label(): line.get_ydata() for ax in panels for line in ax.lines}
    assert np.array_equal(drawn["drive_crank.motion"], run.multipliers[:, -1])


def test_kinematics_end_in_a_status_where_positions_are_singular_or_out_of_reach():
    flat = four_bar_tree((0.3, 0.9, 0.3), 0.9).drive("crank", lambda t: 0.5 - t)
    run = flat.kinematics(np.linspace(0, 1, 41))
    (found,) = run.singular
    assert run.status.name == "SINGULAR" and found.time == pytest.approx(0.5)
    assert {"loop.x", "loop.y"} & set(found.rows) and "keep away" in run.message
    far = four_bar_tree().drive("rocker", lambda t: 2.0 + t)
    run = far.kinematics(np.linspace(0, 2, 81))
    # The rocker turns no further where crank and coupler are in line.
    assert run.status.name == "FAILED"
    limit = np.arccos((0.5**2 - 0.9**2 - 0.6**2) / (2 * 0.9 * 0.6))
    assert 0 < limit - (2.0 + run.t[-1]) <= 0.025 and "could not be solved" in run.message
    assert f"KinematicsResult({run.status.value}, {len(run.t)} times to " in repr(run)
    assert run.message in repr(run) and len(repr(run)) < 400
    assert repr(far).endswith("rocker.angle], constraints=[loop, drive_rocker])")
    with pytest.raises(ValueError, match="no drive decides 1 of its degrees of freedom.*add drive"):
        four_bar_tree().kinematics([0.0, 1.0])
    with pytest.raises(ValueError, match="t must increase"):
        far.kinematics([1.0, 1.0])
    edge = far.constrain("roll", "x", lambda t, q, p: (ca.DM([[1, 0, 0]]), 0), kind="velocity")
    with pytest.raises(ValueError, match="roll.x hold velocities"):
        edge.kinematics([0.0, 1.0])


@pytest.mark.usually(word=("SE3",))
@pytest.mark.parametrize("word", ["SO3xR3", "SE3", "re"])
def test_joints_of_bodies_in_absolute_coordinates_are_independent_by_name(four_bar, word):
    """Error coordinates of 36 are two, the crank's: the same matrices as by its angle alone."""
    closed, kinds, ends, _, _ = _four_bar()
    tree, case = closed.tree, four_bar
    axis = Marker("ground", z=[0, -1, 0]), Marker("crank", [-0.15, 0, 0], z=[0, -1, 0])
    bodies = mechanism_of(closed, kinds, ends, case.q).with_joints(
        motors=[MechanismMotor("motor", *axis)]
    )
    bodies = bodies.formulated(word)
    system = bodies.system(independent="on_crank")
    assert system.error_names == ("configuration.on_crank.rz", "velocity.on_crank.rz")
    assert system.state.dim == 36 and system.error_units == ("rad", "rad/s")
    x = bodies.state(speeds=_rates(tree, bodies, case.q, case.x[3:]))
    own, reference = system.linearize(x, case.u), case.minimal.linearize(case.small, case.u)
    assert same(own.A, reference.A) and same(own.B, reference.B)
    with pytest.raises(KeyError, match="unknown entry .*'hinge'; .*on_crank, on_coupler, on_rock"):
        bodies.system(independent="hinge")
    with pytest.raises(ValueError, match="1 independent entries .*2 are given .on_crank.rz, on_c"):
        bodies.system(independent=["on_crank", "on_coupler"])


@pytest.mark.thorough
def test_slides_on_turning_bodies_are_independent_by_name():
    box = SpatialInertia.box(1.0, [0.4, 0.1, 0.2], center_of_mass=[0.2, 0, 0])
    slide = SpatialInertia.box(0.5, [0.1, 0.1, 0.1])
    tree = Multibody("arm").add_body("bar", box, "revolute", axis="-y")
    tree = tree.add_body("slide", slide, "prismatic", "bar", [0.3, 0, 0], axis="x")
    hinge = Marker("ground", z=[0, -1, 0]), Marker("bar", [-0.2, 0, 0], z=[0, -1, 0])
    rail = Marker("bar", [0.1, 0, 0], z=[1, 0, 0]), Marker("slide", z=[1, 0, 0])
    q, v = np.array([0.4, 0.15]), np.array([1.5, -0.7])
    poses = []
    for name, center in (("bar", [0.2, 0, 0]), ("slide", [0, 0, 0])):
        poses.append(SE3.compose(tree.placement(name)(q), [*center, 0, 0, 0, 1]))
    about = SpatialInertia(1.0, [0, 0, 0], np.asarray(box.inertia))
    bodies = Mechanism(
        "arm",
        [MechanismBody("bar", about, poses[0]), MechanismBody("slide", slide, poses[1])],
        [revolute("hinge", *hinge), translational("rail", *rail)],
        motors=[MechanismMotor("turn", *hinge), MechanismMotor("push", *rail, "force")],
    )
    bodies = bodies.formulated("SE3")
    system, small = bodies.system(independent=["hinge", "rail.z"]), tree.system()
    assert system.error_names[:2] == ("configuration.hinge.rz", "configuration.rail.z")
    assert system.error_units == ("rad", "m", "rad/s", "m/s")
    x = bodies.state(speeds=_rates(tree, bodies, q, v))
    own, reference = system.linearize(x, [1.0, 2.0]), small.linearize(np.r_[q, v], [1.0, 2.0])
    assert same(own.A, reference.A) and same(own.B, reference.B)


def _rates(tree, bodies, q, v):
    """``[ṙ; ω]`` of the bodies of a tree, at their centres of mass."""
    found = {}
    for name in tree.bodies:
        V = np.asarray(tree.jacobian(name, "body")(q)) @ v
        center = np.asarray(tree.link(name).inertia.center_of_mass)
        R = SE3.matrix(bodies.bodies[name].pose)[:3, :3]
        found[name] = [*(R @ (V[:3] + np.cross(V[3:], center))), *V[3:]]
    return found


def test_a_driven_mechanism_with_freedom_left_is_linearized_along_its_motion():
    """A five-bar whose left arm is driven: time in the constraints, one free arm."""
    closed = five_bar_tree().drive("left", lambda t: 2.4 + 0.3 * ca.sin(4 * t))
    q = closed.assemble()
    system = closed.system(["right"], at=q, independent="right")
    assert system.error_names == ("configuration.right.r", "velocity.right.r")
    x = closed.state(q, speeds={"right": 0.4})
    run = system.rollout(x, [0.3], 0.01, steps=5)
    x, u, h = run.x[-1], np.array([0.3]), 1e-5
    made = step_derivatives(system)(0.05, x, u, dt=0.01)
    step = system.step()
    for k, e in enumerate(np.eye(2)):
        ends = [step(0.05, system.retract(x, s * h * e), u, dt=0.01) for s in (1, -1)]
        change = (system.error(ends[0], made.x_next) - system.error(ends[1], made.x_next)) / (2 * h)
        assert np.abs(change - made.A[:, k]).max() < 1e-8


def test_rolling_without_slip_is_a_row_on_velocities():
    """A disc on the plane: contact stays still, its heading and angle are free."""
    radius = 0.3
    disc = SpatialInertia.cylinder(2.0, radius, 0.02)
    tree = (
        Multibody(gravity=(0, 0, 0))
        .add_body("slide", SpatialInertia.sphere(0.1, 0.1), "planar")
        .add_body("disc", disc, "revolute", "slide", axis="y")
    )

    def slip(t, q, p):
        return ca.DM([[1, 0, 0, -radius], [0, 1, 0, 0]]), ca.DM(2, 1)

    closed = ClosedTree(tree).constrain("wheel", ["along", "across"], slip, "m/s", "velocity")
    q = tree.configuration.identity
    found = closed.mobility(q)
    assert (found.degrees_of_freedom, found.positions) == (2, 4)
    system = closed.system(["disc"], at=q)
    assert system.n_errors == 4 + 2  # all positions, two velocities
    x = closed.state(q, speeds={"disc": 2.0, "slide.rz": 0.7})
    run = system.rollout(x, [0.1], 0.01, steps=100)
    gap = system.quantities["constraint_gap"](0.0, run.x)
    assert np.abs(gap).max() < VELOCITY_GAP
    # It goes in circles whose radius grows with its speed.
    path = np.hypot(*np.diff(run.x[:, :2], axis=0).T).sum()
    assert abs(path - radius * (run.x[-1][4] - run.x[0][4])) < 1e-3


def test_relative_equilibria_of_closed_loops():
    """A four-bar on a turntable: the table turns, the loop stands still in it."""
    bars = {name: SpatialInertia.rod(0.5, L, [1, 0, 0], [L / 2, 0, 0]) for name, L in LENGTHS}
    tree = (
        Multibody("on_table")
        .add_body("table", SpatialInertia.cylinder(2.0, 0.5, 0.05), "revolute", axis="z")
        .add_body("crank", bars["crank"], "revolute", "table", axis="-y")
        .add_body("coupler", bars["coupler"], "revolute", "crank", [0.3, 0, 0], axis="-y")
        .add_body("rocker", bars["rocker"], "revolute", "table", [0.9, 0, 0], axis="-y")
        .add_frame("end", "coupler", [0.8, 0, 0])
        .add_frame("top", "rocker", [0.6, 0, 0])
    )
    closed = ClosedTree(tree, {"crank": 0.5, "coupler": 0.1, "rocker": 1.3}).close_loop(
        "loop", "end", "top", "point_on_line", axis="y"
    )
    q = closed.assemble()
    system = closed.system(["crank", "table"], at=q, independent=["table", "crank"])
    x = closed.state(q, speeds={"table": 1.5, "crank": 0.0})
    point = system.trim(x, where={"velocity.table.rz": 1.5}, moving="configuration")
    assert point.kind == "relative equilibrium" and abs(point.u[1]) < 1e-9
    run = system.rollout(point.x, point.u, 0.01, steps=10)
    assert np.abs(run.x[-1][1:] - point.x[1:]).max() < 1e-9
    lin = system.linearize(point)
    assert lin.A.shape == (4, 4)
    control.lqr(lin.to_control(), np.eye(4), np.eye(2))


LENGTHS = (("crank", 0.3), ("coupler", 0.8), ("rocker", 0.6))


def test_baumgarte_pulls_back(four_bar):
    free = four_bar.closed.system(["crank"], at=four_bar.q, stabilization="none")
    pulled = four_bar.closed.system(
        ["crank"], at=four_bar.q, stabilization="baumgarte", rates=(20, 20)
    )
    assert free.project is None and pulled.project is None
    x = free.state.plus(four_bar.x, 1e-4 * np.ones(6))
    left = [
        np.abs(s.quantities["constraint_gap"](0, s.rollout(x, [1.0], 0.005, steps=100).x[-1])).max()
        for s in (free, pulled)
    ]
    assert left[1] < left[0] / 50
    found = check_system(pulled, x=four_bar.x)
    assert found["derivatives equal central differences"] < 1e-8


@pytest.mark.thorough
def test_parameters_of_bars_are_their_numbers():
    """A linkage told another coupler is the one that was built with it."""
    closed = four_bar_tree(symbolic=["coupler.mass", "coupler.inertia"])
    q = closed.assemble(where={"crank": 0.5})
    system = closed.system(["crank"], at=q)
    assert system.n_parameters == 1 + 6 and system.parameter_names[0] == "coupler.mass"
    x = closed.state(q, speeds={"crank": 1.0})
    later = four_bar_tree().symbolic("coupler.mass", "coupler.inertia")
    assert np.abs(later.system(["crank"], at=q).f(0, x, [1.0]) - system.f(0, x, [1.0])).max() == 0
    light = four_bar_tree().with_parameters({"coupler.mass": 0.7}).system(["crank"], at=q)
    p = system.nominal_parameters
    assert same(light.f(0, x, [1.0]), system.f(0, x, [1.0], [0.7, *p[1:]]))
    for factor in (1, 2):  # mass and inertia of a uniform bar grow alike
        built = four_bar_tree(masses=(0.5, factor * 1.2, 0.9)).system(["crank"], at=q)
        assert same(system.f(0, x, [1.0], factor * p), built.f(0, x, [1.0]))


# Assembly, singular positions, bad input


def test_assembly_goes_to_the_branch_that_is_asked_for():
    closed = four_bar_tree()
    up = closed.assemble(where={"crank": 0.5})
    down = closed.assemble([0.5, -1.0, -1.5], where={"crank": 0.5})
    assert up[0] == down[0] == 0.5 and abs(up[2] - down[2]) > 1
    rows = closed.constraints.position(0.0, ca.DM(down), ca.DM(0, 1))
    assert np.abs(rows.full()).max() < 1e-13


def test_loops_that_cannot_close_are_refused_by_row():
    closed = four_bar_tree(ground=3.0)
    with pytest.raises(AssemblyError, match=r"loop\.x = .* m.*do not reach") as error:
        closed.assemble()
    assert error.value.rows == ("loop.x",) and error.value.q.shape == (3,)


def test_contradictory_constraints_are_named():
    closed = four_bar_tree().constrain("stop", "angle", lambda t, q, p: q[0] - 0.2, "rad")
    closed = closed.constrain("other", "angle", lambda t, q, p: q[0] - 0.3, "rad")
    with pytest.raises(AssemblyError, match="contradict") as error:
        closed.assemble()
    assert {"stop.angle", "other.angle"} <= set(error.value.rows)


@pytest.mark.thorough
def test_singular_positions_are_named_with_their_time():
    """All bars of a parallelogram in line: the loop loses a row, and simulation goes on."""
    closed = four_bar_tree((0.3, 0.9, 0.3), 0.9)
    flat = closed.mobility(np.zeros(3))
    assert flat.is_singular and (flat.degrees_of_freedom, flat.here) == (1, 2)
    q = closed.assemble(where={"crank": 0.4})
    assert not closed.mobility(q).is_singular
    system = closed.system(["crank"], at=q, independent="crank")
    x = closed.state(q, speeds={"crank": -2.0})
    run = system.rollout(x, [0.0], 0.002, steps=80)
    assert np.isfinite(run.x).all()
    found = closed.mobility(run).singular_positions
    k = int(np.argmin(np.abs(run.x[:, 0])))
    assert len(found) == 1 and abs(found[0].time - run.t[k]) <= 2e-3
    assert any(row.startswith("loop.") for row in found[0].rows) and "t = " in str(found[0])


@pytest.mark.thorough
def test_bad_choices_are_refused(four_bar, delta):
    closed, tree = four_bar.closed, four_bar.closed.tree
    with pytest.raises(KeyError, match="coupler_end"):
        closed.close_loop("other", "coupler_tip", "rocker_end")
    with pytest.raises(KeyError, match="revolute"):
        closed.close_loop("other", "coupler_end", "rocker_end", "hinge")
    with pytest.raises(ValueError, match="twice there: loop"):
        closed.close_loop("loop", "coupler_end", "rocker_end")
    with pytest.raises(ValueError, match="to itself"):
        closed.close_loop("other", "rocker_end", "rocker_end")
    with pytest.raises(ValueError, match="loop 'k': axis must not be zero"):
        closed.close_loop("k", "world", "coupler", "revolute", axis=[0, 0, 0])
    with pytest.raises(TypeError, match="drive of 'crank': motion must be a function"):
        closed.drive("crank", 0.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="constraint 'stop': value must be a function"):
        closed.constrain("stop", "angle", 0.3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="constraint 'roll' on velocities must return A, b"):
        _ = closed.constrain("roll", "x", lambda t, q, p: q[0], kind="velocity").assemble()
    with pytest.raises(ValueError, match=r"where\['crank'\] is not finite"):
        closed.assemble(where={"crank": np.nan})
    with pytest.raises(ValueError, match="speeds is not finite"):
        closed.state(speeds={"crank": np.nan})
    with pytest.raises(ValueError, match="q has shape"):
        closed.state([0.0, 0.0], speeds={"crank": 1.0})
    with pytest.raises(ValueError, match="at does not keep the constraints.*loop"):
        closed.system(["crank"], at=[0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match="length in m"):
        closed.close_loop("other", "coupler_end", "rocker_end", "distance")
    with pytest.raises(ValueError, match="1 independent entries .* 2 are given"):
        closed.system(["crank"], at=four_bar.q, independent=["crank", "rocker"])
    with pytest.raises(KeyError, match="crank"):
        closed.system(["crank"], at=four_bar.q, independent=["handle"])
    with pytest.raises(ValueError, match="no structure"):
        constrained_system(four_bar.minimal, closed.constraints, at=four_bar.q)
    with pytest.raises(ValueError, match="no velocity has these speeds"):
        closed.state(four_bar.q, speeds={"crank": 1.0, "rocker": 5.0})
    with pytest.raises(ValueError, match="shape"):
        closed.constrain("wrong", ["one", "two"], lambda t, q, p: q[0]).assemble()
    assert isinstance(tree.configuration, Product)
    again = pickle.loads(pickle.dumps(four_bar.system))
    assert np.array_equal(again.f(0, four_bar.x, [1.0]), four_bar.system.f(0, four_bar.x, [1.0]))


def _millimetres(lengths=1.0, moments=1.0, gravity=9.81):
    """A four-bar of which some numbers are in mm."""
    tree = Multibody("linkage", gravity=[0, 0, -gravity])
    for name, length, parent, place in (
        ("crank", 0.3, "world", 0.0),
        ("coupler", 0.8, "crank", 0.3),
        ("rocker", 0.6, "world", 0.9),
    ):
        size = lengths * length
        rod = SpatialInertia.box(1.0, [length, 0.02, 0.02])
        inertia = SpatialInertia(1.0, [size / 2, 0, 0], moments * np.asarray(rod.inertia))
        at = [lengths * place, 0, 0]
        tree = tree.add_body(name, inertia, "revolute", parent, at, axis="-y")
        tree = tree.add_frame(f"{name}_end", name, [size, 0, 0])
    return ClosedTree(tree).close_loop("loop", "coupler_end", "rocker_end", "spherical")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": 1e3}, "linkage: .*'loop' holds body '(coupler|rocker)' .00 m .* like mm;"),
        ({"moments": 1e6}, "holds body '(coupler|rocker)' 0.. m .* like kg mm²; give lengths"),
        (
            {"lengths": 1e3, "moments": 1e6, "gravity": 9810.0},
            "gravity = .*-9810.0.*in mm/s²",
        ),
    ],
    ids=["points", "moments", "gravity"],
)
def test_millimetres_are_noticed(given, message):
    with pytest.warns(UserWarning, match=message):
        _millimetres(**given)


@pytest.mark.usually(mobility=(2,), closed=(five_bar_tree,))
@pytest.mark.parametrize(
    ("closed", "mobility"), [(stewart_platform_tree, 6), (two_arms_tree, 6), (five_bar_tree, 2)]
)
def test_models_close_and_are_regular(closed, mobility):
    mechanism = closed()
    found = mechanism.mobility()
    assert found.degrees_of_freedom == mobility and not found.is_singular
    assert found.gap < 1e-13 and not found.removable


# Control


@pytest.mark.thorough
def test_lqr_holds_the_delta_robot_with_other_masses(delta):
    """Feedback of the arms alone brings the true robot to rest near the point."""
    closed = delta.closed
    at = closed.assemble(where={"platform.x": 0.1, "platform.y": -0.05, "platform.z": -0.75})
    point = delta.system.trim(np.r_[at, np.zeros(12)])
    law = LQR(delta.system, point, Q=np.diag([400.0] * 3 + [1.0] * 3), R=0.01)
    heavy = delta_robot_tree(load=0.1, arm_mass=0.6, rod_mass=0.08).system(ARMS, independent=ARMS)
    away = closed.assemble(where={"platform.x": 0.0, "platform.y": 0.0, "platform.z": -0.8})
    run = simulate(heavy, law, x0=np.r_[away, np.zeros(12)], seconds=1.0)
    assert np.abs(run.x[-1][9:12] - at[9:12]).max() < 0.01
    assert np.abs(run.x[-1][12:]).max() < 1e-3
    assert np.abs(heavy.quantities["constraint_gap"](0.0, run.x)).max() < VELOCITY_GAP
    # What the weight of the load takes is what feedback leaves: it answers to nothing else.
    assert np.abs(run.x[-1][9:11] - at[9:11]).max() < 0.003


@pytest.mark.thorough
@pytest.mark.interpreted
def test_mpc_holds_the_delta_robot_with_other_masses(delta):
    """Plans of the light robot bring the loaded one near the point; its weight remains."""
    closed = delta.closed
    at = closed.assemble(where={"platform.x": 0.1, "platform.y": -0.05, "platform.z": -0.75})
    point = delta.system.trim(np.r_[at, np.zeros(12)])
    Q = np.diag([400.0] * 3 + [1.0] * 3)
    mpc = MPC(delta.system, horizon=6, dt=0.02, method="midpoint", Q=Q, R=0.01)
    heavy = delta_robot_tree(load=0.1, arm_mass=0.6, rod_mass=0.08).system(ARMS, independent=ARMS)
    away = closed.assemble(where={"platform.x": 0.0, "platform.y": 0.0, "platform.z": -0.8})
    run = simulate(heavy, mpc, x0=np.r_[away, np.zeros(12)], reference=point, seconds=0.5)
    assert np.abs(run.x[-1][9:12] - at[9:12]).max() < 0.01
    assert np.abs(run.x[-1][12:]).max() < 1e-3
    assert np.abs(heavy.quantities["constraint_gap"](0.0, run.x)).max() < VELOCITY_GAP


@pytest.mark.thorough
def test_tvlqr_leads_a_heavier_linkage_along_a_motion(four_bar):
    torques = 2.0 * np.sin(np.linspace(0, 6, 80))[:, None]
    motion = four_bar.system.rollout(four_bar.x, torques, 0.01)
    law = TVLQR(four_bar.system, motion, Q=np.diag([100.0, 1.0]), R=0.1)
    q = four_bar.closed.assemble(four_bar.q, where={"crank": 0.6})
    x0 = four_bar.closed.state(q, speeds={"crank": 1.5})
    true = four_bar_tree(masses=(0.55, 1.3, 0.9)).system(["crank"], at=q, independent="crank")
    led = simulate(true, law, x0=x0, seconds=0.8)
    alone = true.rollout(x0, torques, 0.01)
    off = [abs(x[-1][0] - motion.x[-1][0]) for x in (led.x, alone.x)]
    assert off[0] < 0.02 and off[1] > 10 * off[0]


@pytest.mark.interpreted
def test_plans_stay_on_the_manifold(four_bar):
    """MPC of the linkage, solved on states of the whole mechanism."""
    q = four_bar.closed.assemble(four_bar.q, where={"crank": 1.0})
    goal = four_bar.system.trim(np.r_[q, np.zeros(3)])
    mpc = MPC(
        four_bar.system, horizon=15, dt=0.03, Q={"configuration": 30.0, "velocity": 0.3}, R=0.01
    )
    run = simulate(four_bar.system, mpc, x0=four_bar.x, reference=goal, seconds=1.2)
    assert abs(run.x[-1][0] - goal.x[0]) < 0.01
    gap, velocity_gap = four_bar.gaps(mpc.plan.x)
    assert gap < GAP and velocity_gap < VELOCITY_GAP


def test_angles_of_a_start_ask_whether_they_are_degrees():
    tree = four_bar_tree().tree
    with pytest.warns(UserWarning, match=r"start\['crank'\] of 30 rad .* are these degrees"):
        closed = ClosedTree(tree, {"crank": 30})
    with pytest.warns(UserWarning, match=r"where\['crank'\] of 45 rad .* np.radians\(45\)"):
        closed.assemble(np.zeros(3), where={"crank": 45})


def test_a_joint_of_several_degrees_of_freedom_is_told_by_its_coordinates():
    rod = SpatialInertia.rod(1.0, length=0.4, center_of_mass=[0.2, 0, 0])
    tree = Multibody("raft").add_body("raft", SpatialInertia.box(2.0, [0.4, 0.3, 0.2]), "free")
    for name, y in (("left", 0.1), ("right", -0.1)):
        tree = tree.add_body(name, rod, "revolute", "raft", [0, y, 0], axis="y")

    def opposite(t, q, p):
        return ca.DM([[0, 0, 0, 0, 0, 0, 1, 1]]), ca.DM(1, 1)

    closed = ClosedTree(tree).constrain("opposite", ["turn"], opposite, "rad/s", "velocity")
    with pytest.raises(KeyError, match="has 6 coordinates, .*: name some of "):
        closed.system(independent="raft")

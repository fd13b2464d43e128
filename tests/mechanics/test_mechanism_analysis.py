"""Assembly, mobility, singular positions, and what mechanisms refuse."""

import itertools
import warnings

import casadi as ca
import control
import numpy as np
import pytest

from lgcontrol import models
from lgcontrol.controllers import TVLQR
from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import LinearSpring, Multibody, SpatialInertia
from lgcontrol.mechanics import constrained as mc
from lgcontrol.mechanics.constrained import (
    AssemblyError,
    D,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    MechanismMotor,
    angle_drive,
)
from lgcontrol.mechanics.constrained._loop import LoopJoint
from lgcontrol.mechanics.constrained._units import held_by_loop, warn_of_units
from lgcontrol.mechanics.constrained.rotation_comparison import ClosedForms, DirectAnalysis
from lgcontrol.optimal import Bound
from lgcontrol.optimal._bounds import bounded_place
from lgcontrol.optimal._places import error_places
from lgcontrol.simulation import simulate
from lgcontrol.systems import Trajectory

UP = SO3.exp([0, 0, np.pi / 2])
BAR = SpatialInertia.box(1.0, [1.0, 0.05, 0.05])
TIP, TAIL = [0.5, 0, 0], [-0.5, 0, 0]


def parallelogram(width=1.0):
    """Four-bar of unit bars, upright; all joints about z: three rows say what others say."""
    bodies = [
        MechanismBody("left", BAR, [0, 0.5, 0, *UP]),
        MechanismBody("top", BAR, [0.5, 1, 0, 0, 0, 0, 1]),
        MechanismBody("right", BAR, [1, 0.5, 0, *UP]),
    ]
    joints = [
        mc.revolute("A", Marker("ground"), Marker("left", TAIL)),
        mc.revolute("B", Marker("left", TIP), Marker("top", TAIL)),
        mc.revolute("C", Marker("top", TIP), Marker("right", TIP)),
        mc.revolute("D", Marker("ground", [width, 0, 0]), Marker("right", TAIL)),
    ]
    return Mechanism("parallelogram", bodies, joints)


@pytest.fixture(scope="module")
def linkage():
    return parallelogram()


def test_redundant_rows_have_names(linkage):
    found = linkage.mobility()
    assert found.degrees_of_freedom == 1 and not found.is_singular
    assert found.removable == ("D.z", "D.x_z", "D.y_z")
    assert {name.split(".")[1] for name in found.dependent} == {"z", "x_z", "y_z"}
    assert "reactions not unique" in str(found)


def test_singular_positions_have_names(linkage):
    flat = {
        "left": [0.5, 0, 0, 0, 0, 0, 1],
        "top": [1.5, 0, 0, 0, 0, 0, 1],
        "right": [1.5, 0, 0, 0, 0, 0, 1],
    }
    found = linkage.mobility(linkage.coordinates(poses=flat))
    assert found.is_singular and found.singular == ("A.x", "B.x", "C.x", "D.x")
    assert found.degrees_of_freedom == 1  # what is usual nearby


def test_unclosed_loops_are_told():
    far = parallelogram()
    q = far.coordinates(poses={"top": [0.5, 3.0, 0, 0, 0, 0, 1]})
    assert "not closed here: rows are off by 2, assemble() closes them" in str(far.mobility(q))


def test_singular_positions_on_a_motion_have_names_and_times(linkage):
    """Its steps go through the position with all bars in line and do not notice."""
    thin = linkage.with_joints(without=linkage.mobility().removable)
    turned = {
        "left": [0.5 * np.cos(0.1), 0.5 * np.sin(0.1), 0, *SO3.exp([0, 0, 0.1])],
        "top": [1 * np.cos(0.1) + 0.5, np.sin(0.1), 0, 0, 0, 0, 1],
        "right": [1 + 0.5 * np.cos(0.1), 0.5 * np.sin(0.1), 0, *SO3.exp([0, 0, 0.1])],
    }
    q = thin.assemble(turned)
    x0 = thin.state(q, speeds={name: [0, 0, 0, 0, 0, -4.0 * (name != "top")] for name in turned})
    run = thin.system(at=q).rollout(x0, dt=0.02, steps=25)
    found = thin.mobility(run)
    (position,) = found.singular_positions
    angle = np.array([SO3.log(x[3:7])[2] for x in run.x])
    assert abs(position.time - run.t[np.abs(angle).argmin()]) <= 0.02
    assert {"A.x", "D.x"} & set(position.rows) and "keep away" in position.remedy


def test_mechanisms_are_trimmed_and_regulated():
    """Rows that are zero but for rounding do not count among the equations of a trim point."""
    crank = models.slider_crank_mechanism(drive="motor")
    system = crank.system()
    point = system.trim(crank.state(speeds={body: np.zeros(6) for body in crank.bodies}))
    assert point.kind == "equilibrium" and system.n_errors == 2
    lin = system.linearize(point)
    K, _, _ = control.lqr(lin.to_control(), np.eye(2), np.eye(1))
    assert np.linalg.eigvals(lin.A - lin.B @ K).real.max() < 0


def hanging_bars():
    """Four bars of unlike lengths that hang; all joints about z: three rows are redundant."""
    bodies = [
        MechanismBody("left", BAR, [0, -0.5, 0, 0, 0, -np.sqrt(0.5), np.sqrt(0.5)]),
        MechanismBody("top", BAR, [0.5, -1, 0, 0, 0, 0, 1]),
        MechanismBody("right", BAR, [1, -0.5, 0, 0, 0, -np.sqrt(0.5), np.sqrt(0.5)]),
    ]
    joints = [
        mc.revolute("A", Marker("ground"), Marker("left", [-0.5, 0, 0])),
        mc.revolute("B", Marker("left", [0.5, 0, 0]), Marker("top", [-0.7, 0, 0])),
        mc.revolute("C", Marker("top", [0.5, 0, 0]), Marker("right", [0.6, 0, 0])),
        mc.revolute("D", Marker("ground", [1.1, 0, 0]), Marker("right", [-0.5, 0, 0])),
    ]
    return Mechanism("bars", bodies, joints, gravity=[0, -9.81, 0])


def test_a_linkage_with_redundant_rows_hangs_where_its_energy_is_least():
    """Without a motor; beside the manifold the redundant rows have another rank."""
    bars = hanging_bars()
    assert "redundant: D" in str(bars.mobility())
    system = bars.system()
    assert system.errors.constraint_names[8] == "row B.x_z"
    point = system.trim(bars.state())

    def height(angle):
        q = bars.assemble(bars.assemble(point.x[:21]), where={"A": angle})
        return sum(pose[1] for pose in bars.poses(q).values())

    placed = bars.poses(point.x[:21])["left"]
    angle = 2 * np.arctan2(placed[5], placed[6])
    there, before, after = (height(angle + d) for d in (0.0, -1e-3, 1e-3))
    assert point.kind == "equilibrium" and abs(after - before) < 1e-9
    assert min(before, after) > there


def test_coarse_times_find_the_assembly_of_fine_ones():
    """Five times in 40 rad of the crank; drives begin at any number of turns."""
    machine = models.slider_crank_mechanism(drive="motor")
    i, j = machine.motors["torque"].i, machine.motors["torque"].j
    driven = machine.with_joints(angle_drive("profile", i, j, lambda t: 20 * t))
    coarse, fine = (driven.kinematics(np.linspace(0, 2, n)) for n in (5, 161))
    np.testing.assert_allclose(coarse.q, fine.q[::40], atol=1e-9)
    late = driven.kinematics(np.linspace(0.5, 2, 121))
    np.testing.assert_allclose(late.q, fine.q[40:], atol=1e-9)
    broken = machine.with_joints(angle_drive("step", i, j, lambda t: ca.if_else(t > 0.5, 1.0, 0.0)))
    assert "positions jump just before t = 0.6 s" in broken.kinematics([0, 0.4, 0.6]).message


def test_open_configurations_are_not_drawn(linkage):
    q = linkage.assemble()
    q[0] += 0.3
    with pytest.raises(ValueError, match=r"B\.x is off by 0\.3 m; close them first"):
        linkage.plot(q)


def test_joints_between_bodies_are_errors_and_have_no_value_in_a_state():
    """Weights know them; whoever gives or bounds their value is told the way."""
    pin = mc.revolute("pin", Marker("ground"), Marker("rod", [-0.5, 0, 0]))
    rod = MechanismBody("rod", SpatialInertia.box(1.0, [1.0, 0.02, 0.02]), [0.5, 0, 0, 0, 0, 0, 1])
    motor = MechanismMotor("torque", Marker("ground"), Marker("rod", [-0.5, 0, 0]))
    machine = Mechanism("swing", [rod], [pin], motors=[motor], gravity=[0, -9.81, 0])
    system = machine.system(independent="pin")
    assert error_places(system)["configuration.pin"] == slice(0, 1)
    told = r"is an error coordinate, 'configuration\.pin\.rz': weights are on it.*assemble"
    for name in ("pin", "configuration.pin", "configuration.pin.rz"):
        with pytest.raises(KeyError, match=told):
            system.trim(where={name: 0.3})
        with pytest.raises(KeyError, match=told):
            bounded_place(system, Bound(name, -1, 1))
    point = system.trim(machine.state(machine.assemble(where={"pin": 0.3})))
    assert point.u == pytest.approx([9.81 * 0.5 * np.cos(0.3)])


@pytest.mark.thorough
def test_linearization_along_a_motion_is_that_of_the_tree():
    """A swing in absolute coordinates, and by its angle; a TVLQR leads it back to its motion."""
    axis = Marker("ground", z=[0, 1, 0]), Marker("rod", TAIL, z=[0, 1, 0])
    rod = MechanismBody("rod", BAR, [0.5, 0, 0, 0, 0, 0, 1])
    swing = Mechanism(
        "swing", [rod], [mc.revolute("pin", *axis)], motors=[MechanismMotor("motor", *axis)]
    )
    system = swing.system(independent=["rod.attitude.ry"])
    inertia = SpatialInertia(BAR.mass, [0.5, 0, 0], np.asarray(BAR.inertia))
    tree = Multibody("tree").add_body("rod", inertia, "revolute", axis="y").system(["rod"])
    start = swing.state(speeds={"rod": [0, 0, -1, 0, 2, 0]})
    motion = system.rollout(start, 3 * np.sin(np.arange(30.0))[:, None], 0.02)
    angles = np.array([[SO3.log(x[3:7])[1], x[11]] for x in motion.x])
    same = Trajectory(tree.state, motion.t, angles, motion.u)
    own, reference = system.linearize(motion), tree.linearize(same)
    for found, wanted in ((own.A, reference.A), (own.B, reference.B)):
        assert np.abs(found - wanted).max() <= 1e-9 * np.abs(wanted).max()
    law = TVLQR(system, motion, Q=np.diag([100.0, 1.0]), R=0.1)
    away = swing.state(speeds={"rod": [0, 0, -1.5, 0, 3, 0]})
    led, alone = simulate(system, law, x0=away, seconds=0.6), system.rollout(away, motion.u, 0.02)
    off = [abs(SO3.log(run.x[-1][3:7])[1] - angles[-1, 0]) for run in (led, alone)]
    assert off[0] < 0.05 * off[1]
    assert np.abs(system.invariants(led.x)).max() < 1e-13


def test_a_rough_guess_is_assembled_nearby(linkage, rng):
    rough = {
        name: SE3.plus(body.pose, 0.2 * rng.normal(size=6)) for name, body in linkage.bodies.items()
    }
    q = linkage.assemble(rough)
    assert np.abs(linkage.dynamics(0.0, q, np.zeros(18)).phi).max() <= 1e-13
    for name, pose in linkage.poses(q).items():
        assert np.abs(SE3.minus(pose, rough[name])).max() < 1.0


def test_the_branch_is_that_of_the_guess():
    arm = [MechanismBody("upper", BAR), MechanismBody("lower", BAR)]
    joints = [
        mc.revolute("shoulder", Marker("ground"), Marker("upper", TAIL)),
        mc.revolute("elbow", Marker("upper", TIP), Marker("lower", TAIL)),
        MechanismJoint("hand", [D("reach", "ground", [1.2, 0, 0], "lower", TIP, 0.01)]),
    ]
    two_bars = Mechanism("two_bars", arm, joints)
    for side in (1, -1):
        guess = {"upper": [0.3, 0.4 * side, 0, *SO3.exp([0, 0, 0.9 * side])]}
        guess["lower"] = [0.9, 0.4 * side, 0, *SO3.exp([0, 0, -0.9 * side])]
        poses = two_bars.poses(two_bars.assemble(guess))
        assert np.sign(poses["upper"][1]) == side


def test_held_bodies_stay(linkage):
    turned = [0.5 * np.cos(1), 0.5 * np.sin(1), 0, *SO3.exp([0, 0, 1.0])]
    q = linkage.assemble(where={"left": turned})
    assert linkage.poses(q)["left"] == pytest.approx(np.array(turned), abs=1e-12)


def test_contradictory_constraints_are_named():
    with pytest.raises(AssemblyError, match="cannot be assembled") as failed:
        parallelogram(width=5.0).assemble()
    assert set(failed.value.rows) == {"A.x", "B.x", "C.x", "D.x"}


@pytest.mark.thorough
@pytest.mark.parametrize("word", ["SO3xR3", "SE3"])
def test_redundant_constraints_do_not_disturb_the_motion(linkage, word):
    thinned = linkage.with_joints(without=linkage.mobility().removable)
    ends = []
    for mechanism in (linkage.formulated(word), thinned.formulated(word)):
        q = mechanism.coordinates()
        system = mechanism.system(at=q)
        x0 = mechanism.state(q, speeds={"left": [-1, 0, 0, 0, 0, 2.0]})
        ends.append(system.rollout(x0, dt=5e-3, steps=40).x[-1])
    assert ends[0] == pytest.approx(ends[1], abs=1e-8)


def test_a_march_says_which_rows_to_leave_out(linkage):
    x0 = linkage.state(speeds={"left": [-1, 0, 0, 0, 0, 2.0]})
    with pytest.raises(ValueError, match=r"D.z, D.x_z, D.y_z.*without=mobility\(\).removable"):
        linkage.march(x0, 1e-3, 5)
    thinned = linkage.with_joints(without=linkage.mobility().removable)
    assert [row.row for row in thinned.joints["D"].rows] == ["x", "y"]
    assert thinned.march(x0, 1e-3, 5).is_success


def test_configurations_off_the_joints_are_refused_with_row_and_remedy(linkage):
    q = linkage.assemble()
    pushed = q + 0.1 * (np.arange(len(q)) == 0)
    said = r"is off by 0.1 m; close them first: assemble\(q"
    with pytest.raises(ValueError, match=said):
        linkage.state(pushed)
    multipliers = np.zeros((2, len(linkage.row_names)))
    with pytest.raises(ValueError, match="at t = 1 s: .* " + said):
        linkage.reactions([0.0, 1.0], [q, pushed], multipliers)
    assert linkage.reactions(0.0, [q, q], multipliers).keys() == linkage.joints.keys()
    linkage.state(linkage.assemble(pushed))
    tree = models.four_bar_tree()
    with pytest.raises(ValueError, match="is off by"):
        tree.state(tree.assemble() + 0.1)


ENDS = Marker("ground"), Marker("left")
RAW = {
    "speeds": (lambda m: m.state(speeds=[1]), r"state\(\): speeds must be a mapping"),
    "state": (lambda m: m.state(rates={}), r"state\(\): unknown argument 'rates'; .*speeds"),
    "assemble": (lambda m: m.assemble(held={}), r"assemble\(\): unknown argument 'held'; .*where"),
    "poses": (lambda m: m.assemble(poses={}), r"assemble\(\): unknown argument 'poses'"),
    "spring": (lambda m: mc.spring_damper("s", *ENDS, k=5), r"unknown argument 'k'; .*stiffness"),
    "joint spring": (lambda m: LinearSpring(k=5), r"unknown argument 'k'; .*stiffness"),
    "motor": (lambda m: mc.MechanismMotor("t", ENDS[0]), r"MechanismMotor\(\) lacks j"),
    "file": (lambda m: Mechanism.from_json("a", x=1), r"'x'; valid names are path, inertias"),
}


@pytest.mark.parametrize("name", RAW)
def test_arguments_are_refused_by_name(linkage, name):
    call, message = RAW[name]
    with pytest.raises(TypeError, match=message):
        call(linkage)


def test_a_march_is_shown_in_a_line():
    pendulum = models.pendulum_mechanism()
    shown = repr(pendulum.march(pendulum.state(), 1e-3, 3))
    assert "\n" not in shown
    assert shown.startswith("March(solved, 4 times to 0.003 s, ")


@pytest.mark.thorough
def test_a_drive_at_its_dead_point_is_reported_with_time_and_remedy():
    run = models.four_link_mechanism(drive="paper").kinematics(np.linspace(0.4, 0.6, 11))
    assert run.status.name == "SINGULAR"
    (found,) = run.singular
    assert found.time == pytest.approx(0.5) and found.rows[0] == "driver.angle"
    assert "angle_drive" in run.message
    regular = models.four_link_mechanism().kinematics(np.linspace(0.4, 0.6, 11))
    assert regular.status.name == "SOLVED" and regular.conditioning.min() > 1e-3


def test_singular_euler_angles_are_no_dead_point_of_the_mechanism():
    """The crank turns about x: sin θ is zero twice in a turn, the mechanism is regular there."""
    run = models.slider_crank_mechanism().formulated("re").kinematics(np.linspace(0.2, 0.3, 5))
    (found,) = run.singular
    assert found.time == pytest.approx(0.25)
    assert "Euler angles of 'crank' are singular" in found.remedy and found.remedy in run.message


def test_a_drive_out_of_the_workspace_is_reported_with_time_and_row():
    crank = models.slider_crank_mechanism(drive="motor")
    pull = mc.position_drive(
        "pull", Marker("ground", z=[1, 0, 0]), Marker("slider"), lambda t: 0.2 + t
    )
    run = crank.with_joints(pull)._like(motors=()).kinematics(np.linspace(0, 0.5, 51))
    assert run.status.name == "FAILED"
    assert run.t[-1] < 0.12 and "could not be solved" in run.message


BODY = MechanismBody("disc", BAR)
AXIS = mc.revolute("axis", Marker("ground"), Marker("disc"))
PAIR = Marker("ground"), Marker("disc")
OFF_CENTRE = SpatialInertia(1.0, [0.1, 0, 0], np.eye(3))
DISC = Mechanism("m", [BODY], [AXIS])
POINT = MechanismBody("bob", SpatialInertia.point_mass(1.0), [1, 0, 0, 0, 0, 0, 1])
REFUSED = {
    "unknown body": (
        lambda: Mechanism("m", [BODY], [_joined("rotor")]),
        "joint 'axis': unknown body 'rotor'; valid names are ground, disc",
    ),
    "two bodies of one name": (lambda: Mechanism("m", [BODY, BODY]), "two of kind body"),
    "two joints of one name": (lambda: Mechanism("m", [BODY], [AXIS, AXIS]), "two of kind joint"),
    "no bodies": (lambda: Mechanism("m", []), "no bodies"),
    "joint as body": (lambda: Mechanism("m", [AXIS]), "MechanismBody"),
    "name of body and joint": (
        lambda: Mechanism("m", [BODY], [mc.spherical("disc", Marker("ground"), Marker("disc"))]),
        "name of a body and of a joint",
    ),
    "centre of mass away": (lambda: MechanismBody("b", OFF_CENTRE), "centre of mass"),
    "pose of six numbers": (lambda: MechanismBody("b", BAR, np.zeros(6)), "pose of body 'b'"),
    "pose not finite": (lambda: MechanismBody("b", BAR, [np.nan] * 7), "not finite"),
    "body called ground": (lambda: MechanismBody("ground", BAR), "world"),
    "ground to ground": (
        lambda: mc.spherical("pin", Marker("ground"), Marker("ground")),
        "ties the ground to itself",
    ),
    "x along z": (lambda: Marker("disc", x=[0, 0, 2]), "x is along z"),
    "axis of zeros": (lambda: Marker("disc", z=[0, 0, 0]), "must not be zero"),
    "distance of zero": (
        lambda: mc.distance("rod", Marker("ground"), Marker("disc"), 0.0),
        "joint .rod.*must be positive.*spherical",
    ),
    "pitch of zero": (
        lambda: mc.screw("bolt", Marker("ground"), Marker("disc"), 0.0),
        "m/rad",
    ),
    "half a tooth": (
        lambda: mc.gear(
            "g", (Marker("ground"), Marker("disc")), (Marker("ground"), Marker("disc")), (1.5, 2)
        ),
        "whole",
    ),
    "motor of unknown kind": (
        lambda: MechanismMotor("m", Marker("ground"), Marker("disc"), "power"),
        "torque, force",
    ),
    "no equations": (lambda: MechanismJoint("empty", []), "no equations"),
    "unknown formulation": (
        lambda: Mechanism("m", [BODY]).formulated("quaternions"),
        "SO3xR3, SE3, rp, re, rA, auto",
    ),
    "unknown attitude": (lambda: ClosedForms(Mechanism("m", [BODY]), "rq"), "rA, rp, re"),
    "degrees of freedom without drives": (
        lambda: Mechanism("m", [BODY], [AXIS]).kinematics([0.0, 1.0]),
        "no drive decides 1 of its degrees of freedom",
    ),
    "joints as a list": (
        lambda: Mechanism("m", [BODY]).with_joints([AXIS]),  # type: ignore[arg-type]
        r"with_joints\(\*joints\)",
    ),
    "times that do not increase": (
        lambda: Mechanism("m", [BODY], [AXIS]).kinematics([0.0, 0.0]),
        "increase",
    ),
    "step of zero": (
        lambda: Mechanism("m", [BODY], [AXIS]).march([*SE3.identity, *np.zeros(6)], 0.0, 5),
        "dt must be positive",
    ),
    "unknown body held": (
        lambda: Mechanism("m", [BODY], [AXIS]).assemble(where={"wheel": 0.1}),
        "unknown coordinate of a joint 'wheel'; valid names are axis.rz, axis",
    ),
    "joint to leave out": (
        lambda: Mechanism("m", [BODY], [AXIS]).with_joints(without=["pin"]),
        "unknown joint or row 'pin'; valid names are axis",
    ),
    "length below zero": (
        lambda: mc.distance("rod", Marker("ground"), Marker("disc"), -0.5),
        "joint 'rod': a length must be positive",
    ),
    "body tied to itself": (
        lambda: mc.spherical("pin", Marker("disc"), Marker("disc", TIP)),
        "ties 'disc' to itself",
    ),
    "joint between texts": (
        lambda: mc.revolute("pin", "ground", "disc"),  # type: ignore[arg-type]
        "joint 'pin' attaches to markers",
    ),
    "motor between texts": (
        lambda: MechanismMotor("m", "ground", "disc"),  # type: ignore[arg-type]
        "motor 'm' acts between markers",
    ),
    "motor on the ground": (
        lambda: MechanismMotor("m", Marker("ground"), Marker("ground")),
        "on no body",
    ),
    "equations that are none": (
        lambda: MechanismJoint("pin", ["x"]),  # type: ignore[list-item]
        r"rows\[0\] must be a BasicConstraint or a FreeConstraint or a VelocityConstraint",
    ),
    "direction of zeros": (
        lambda: mc.DP1("r", "ground", [0, 0, 0], "disc", [1, 0, 0]),
        "direction on 'ground' must not be zero",
    ),
    "three numbers of teeth": (
        lambda: mc.gear("g", PAIR, PAIR, (1, 2, 3)),  # type: ignore[arg-type]
        "must be two",
    ),
    "teeth not a number": (lambda: mc.gear("g", PAIR, PAIR, (np.nan, 2)), "whole"),  # type: ignore[arg-type]
    "drive not finite": (lambda: mc.angle_drive("turn", *PAIR, np.nan), "joint 'turn': angle"),
    "drive not finite in time": (
        lambda: DISC.with_joints(
            mc.angle_drive("turn", *PAIR, lambda t: ca.sqrt(t - 1))
        ).assemble(),
        "turn.angle or its derivatives are not finite at t = 0 s",
    ),
    "system off the joints": (
        lambda: DISC.system(at=[0, 0, 0.5, 0, 0, 0, 1]),
        "axis.z is off by 0.5",
    ),
    "kinematics of the paper without a drive": (
        lambda: DirectAnalysis(DISC).kinematics(np.arange(2.0)),
        "5 rows for 6 coordinates",
    ),
    "dynamics of the paper off the joints": (
        lambda: DirectAnalysis(DISC.with_poses({"disc": [0, 0, 0.5, 0, 0, 0, 1]})).dynamics(
            0.01, 2, 1e-8
        ),
        "off by 0.5",
    ),
    "step of the paper backwards": (
        lambda: DirectAnalysis(DISC).dynamics(-0.01, 2, 1e-8),
        "h must be",
    ),
    "start of a march off the joints": (
        lambda: DISC.march([0, 0, 0.5, 0, 0, 0, 1, *np.zeros(6)], 1e-3, 5),
        "position of axis.z is off by 0.5",
    ),
    "start of a march with other speeds": (
        lambda: DISC.march([*SE3.identity, 0, 0.5, *np.zeros(4)], 1e-3, 5),
        "velocity of axis.y is off by 0.5",
    ),
    "march by name": (
        lambda: DISC.march([*SE3.identity, *np.zeros(6)], 1e-3, 5, "rk4"),  # type: ignore[arg-type]
        "Index3Method",
    ),
    "point mass that may turn": (
        lambda: Mechanism(
            "m", [POINT], [mc.distance("rod", Marker("ground"), Marker("bob"), 1.0)]
        ).system(),
        "mass matrix is singular.*bob",
    ),
    "singular Euler angles": (
        lambda: DISC.formulated("re").assemble(),
        "Euler angles of 'disc' are singular",
    ),
    "configuration of two numbers": (lambda: DISC.mobility([0, 0]), "q has shape"),
    "configuration not finite": (lambda: DISC.state(q=[np.nan] * 7), "q is not finite"),
    "poses of few numbers": (lambda: DISC.poses([0, 0]), "q has shape"),
    "pose of three numbers": (
        lambda: DISC.assemble({"disc": [0, 0, 0]}),
        "pose of body 'disc'",
    ),
    "other forces in closed form": (
        lambda: DirectAnalysis(Mechanism("m", [BODY], [AXIS], motors=[MechanismMotor("u", *PAIR)])),
        "weight and joints alone",
    ),
}


def _joined(body):
    return mc.revolute("axis", Marker("ground"), Marker(body))


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_with_names(name):
    build, message = REFUSED[name]
    with pytest.raises((ValueError, TypeError, KeyError, AssemblyError), match=message):
        build()


def _crank_and_slider(points=1.0, moments=1.0, masses=1.0, gravity=9.81, count=2):
    """A rod on a hinge, with a second one on it, of which some numbers are in other units."""
    bodies, joints, before = [], [], Marker("ground")
    for k in range(count):
        rod = SpatialInertia.box(2.0, [0.4, 0.05, 0.05])
        own = SpatialInertia(masses * 2.0, [0, 0, 0], moments * np.asarray(rod.inertia))
        bodies.append(MechanismBody(f"rod{k}", own))
        ends = [Marker(f"rod{k}", [x * points * 0.2, 0, 0]) for x in (-1, 1)]
        joints.append(mc.revolute(f"hinge{k}", before, ends[0]))
        before = ends[1]
    return Mechanism("swing", bodies, joints, gravity=[0, 0, -gravity])


UNITS = {
    "points in mm": (dict(points=1e3), "'hinge0' .* 'rod0' 200 m .*'rod1' 200 m .* like mm;"),
    "one body in mm": (dict(points=1e3, count=1), "'rod0' 200 m .* like mm;"),
    "points in cm": (dict(points=1e2), "'rod0' 20 m .*'rod1' .* look like cm, or masses like g;"),
    "moments in kg mm²": (dict(moments=1e6), "'rod0' 0.2 m .* gyration of 1.. m.* like kg mm²;"),
    "moments in kg cm²": (dict(moments=1e4), "'rod0' 0.2 m .* lengths look like cm or mm;"),
    "masses in g": (dict(masses=1e3), "2e.03 kg .* points of joints .* or masses like g;"),
    "g and g m²": (dict(masses=1e3, moments=1e3), "denser than any matter, masses look like g;"),
    "cm throughout": (dict(points=1e2, moments=1e4, gravity=981), "981 m/s² looks like mm/s²;"),
    "cm without weight": (
        dict(points=1e2, moments=1e4, gravity=0),
        "lengths look like cm or mm;",
    ),
    "gravity in mm/s²": (dict(points=1e3, moments=1e6, gravity=9810), "9810 m/s² looks like mm"),
}


@pytest.mark.parametrize("name", UNITS)
def test_other_units_are_noticed_once(name):
    given, message = UNITS[name]
    with pytest.warns(UserWarning, match=message) as told:
        _crank_and_slider(**given)
    assert len(told) == 1


@pytest.mark.thorough
def test_units_of_models_and_robots_raise_no_alarm(shared):
    """Every mechanism, and every pair of links of every robot as if a loop held them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        _crank_and_slider()
        for name in dir(models):
            if name.endswith(("_mechanism", "_tree")):
                getattr(models, name)()
        for file in sorted((shared / "robots").glob("*.urdf")):
            tree = Multibody.from_urdf(file, on_finding="ignore")
            held = {
                link: [*held_by_loop(tree, LoopJoint("loop", link, "world"))]
                for link in tree.bodies
            }
            for a, b in itertools.combinations(held.values(), 2):
                warn_of_units(file.stem, tree.gravity, [*a, *b])
            warn_of_units(file.stem, tree.gravity, itertools.chain(*held.values()))


def test_users_drive_may_be_any_function_of_time():
    driven = Mechanism(
        "disc",
        [BODY],
        [AXIS, mc.angle_drive("drive", Marker("ground"), Marker("disc"), lambda t: ca.exp(t) - 1)],
    )
    run = driven.kinematics([0.0, 0.5, 1.0])
    assert run.v[:, 5] == pytest.approx(np.exp([0, 0.5, 1]), abs=1e-12)
    assert run.a[:, 5] == pytest.approx(np.exp([0, 0.5, 1]), abs=1e-12)

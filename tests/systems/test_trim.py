"""Equilibria and relative equilibria: hover, level flight, turns and helices; refusals."""

import pickle
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO2, SO3, Helical, Product, Rn
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.systems import Input, System, Trajectory, TrimError

from ._examples import (
    GRAVITY,
    RIGID,
    heavy_top,
    lift,
    pendulum,
    quadrotor,
    satellite,
    turn,
    underwater,
)
from .test_structure import rigid

SOLVED = 1e-10  # Gauss-Newton converges quadratically: what is left is rounding

TURN = {"twist.vx": 1.0, "twist.wz": 0.3}
HELIX = {**TURN, "twist.vz": -0.2, "pose.z": -5.0}


def test_hover_at_a_position():
    hover = quadrotor().trim(position=[2, 1, 1])
    assert hover.kind == "equilibrium"
    np.testing.assert_allclose(hover.x[:3], [2, 1, 1], atol=SOLVED)
    np.testing.assert_allclose(hover.x[3:], [0, 0, 0, 1, 0, 0, 0, 0, 0, 0], atol=SOLVED)
    np.testing.assert_allclose(hover.u, 1.2 * GRAVITY / 4, rtol=SOLVED)
    np.testing.assert_allclose(hover.rate, 0.0, atol=SOLVED)


def test_what_nothing_decides_stays_at_the_guess():
    guess = RIGID.join(pose=SE3.from_euler("ZYX", [0.7, 0.2, -0.1], [1, 2, 3]))
    hover = quadrotor().trim(guess)
    np.testing.assert_allclose(hover.x[:3], [1, 2, 3], atol=1e-6)
    yaw, pitch, roll = SO3.as_euler(hover.x[3:7], "ZYX")
    assert abs(yaw - 0.7) < 0.05  # the nearest attitude without tilt, whose yaw is a little off
    assert max(abs(pitch), abs(roll)) < SOLVED


# Of one kind of symbols all three run by default, of the other the first.
@pytest.mark.parametrize(
    ("where", "symbol"),
    [
        pytest.param(
            where,
            symbol,
            id=f"{name}-{symbol.__name__}",
            marks=() if symbol is ca.SX or name == "level" else pytest.mark.thorough,
        )
        for symbol in (ca.SX, ca.MX)
        for name, where in (
            ("level", {"twist.vx": 1.0, "pose.z": -5.0}),
            ("turn", TURN),
            ("helix", HELIX),
        )
    ],
)
def test_steady_motions_of_an_underwater_vehicle(where, symbol):
    system = underwater(symbol=symbol)
    steady = system.trim(where=where)
    assert steady.kind == "relative equilibrium"
    for name, value in where.items():
        assert abs(steady.x[system.state.coordinate_names.index(name)] - value) < SOLVED
    np.testing.assert_allclose(steady.rate[6:], 0.0, atol=SOLVED)
    lower, upper = system.input_bounds
    assert (steady.u >= lower).all() and (steady.u <= upper).all()
    # the motion it promises is the one the system makes, and errors obey the same A all along
    run = system.rollout(steady.x, steady.u, 0.01, steps=100)
    expected = steady(run.t)
    assert np.abs(system.state.minus(run.x, expected.x)).max() < 1e-8
    here, there = system.linearize(steady), system.linearize(run.x[-1], steady.u)
    assert here.is_time_invariant
    np.testing.assert_allclose(there.A, here.A, atol=1e-6)
    np.testing.assert_allclose(there.B, here.B, atol=1e-6)


def test_a_helix_has_the_radius_of_its_speeds():
    helix = underwater().trim(where=HELIX)
    path = helix.trajectory(2 * np.pi / np.linalg.norm(helix.rate[3:6]), 0.05)
    position = path.x[:, :3]
    turning = np.linalg.norm(helix.rate[3:6])
    climb = helix.rate[:3] @ helix.rate[3:6] / turning
    level = np.sqrt(helix.rate[:3] @ helix.rate[:3] - climb**2)
    across = position[:, :2].max(axis=0) - position[:, :2].min(axis=0)
    np.testing.assert_allclose(across, 2 * level / turning, rtol=1e-3)  # 0.05 s apart
    np.testing.assert_allclose(np.diff(position[:, 2]), climb * 0.05, atol=1e-6)


@pytest.mark.thorough
def test_a_helix_in_a_current_is_refused():
    system = underwater(current=(0.3, 0.0, 0.0))
    with pytest.raises(TrimError, match=r"not a symmetry .*the rate of twist\.\w+ changes by") as e:
        system.trim(where=HELIX)
    assert e.value.status == "not a symmetry"
    assert e.value.best.kind == "none"


def test_straight_flight_in_a_current_and_a_helix_in_an_upward_one_pass():
    straight = underwater(current=(0.3, 0.0, 0.0)).trim(where={"twist.vx": 1.0})
    assert straight.kind == "relative equilibrium"
    assert underwater(current=(0.0, 0.0, 0.1)).trim(where=HELIX).kind == "relative equilibrium"
    drifting = underwater(current=(0.3, 0.0, 0.0)).trim()
    np.testing.assert_allclose(drifting.u[0], -(4 + 6 * 0.3) * 0.3, rtol=SOLVED)


def test_quadrotors_bank_in_a_turn():
    banked = quadrotor().trim(where={"twist.vx": 3.0, "twist.wz": 0.5})
    _, pitch, roll = SO3.as_euler(banked.x[3:7], "ZYX")
    speed, rate = np.linalg.norm(banked.rate[:3]), np.linalg.norm(banked.rate[3:6])
    assert abs(np.tan(abs(roll)) - speed * rate / GRAVITY) < 1e-6 + abs(pitch)
    assert abs(banked.u.sum() * np.cos(roll) - 1.2 * GRAVITY) < 1e-6


def test_blocks_and_inputs_may_be_given():
    tilted = pendulum().trim(where={"angle": SO2.exp([0.2])})
    np.testing.assert_allclose(tilted.x[:2], [np.cos(0.2), np.sin(0.2)], rtol=SOLVED)
    np.testing.assert_allclose(tilted.u, 0.5 * GRAVITY * tilted.x[1], rtol=SOLVED)
    pushed = pendulum().trim(where={"torque": 1.0})
    np.testing.assert_allclose(pushed.x[1], 1.0 / (0.5 * GRAVITY), rtol=SOLVED)


def test_the_equilibrium_near_the_guess_is_taken():
    assert pendulum().trim([*SO2.exp([3.0]), 0.0], where={"torque": 0.0}).x[0] == pytest.approx(-1)
    assert pendulum().trim([*SO2.exp([0.1]), 0.0], where={"torque": 0.0}).x[0] == pytest.approx(1)


def two_thrusters(limit=np.inf, **options):
    return System(
        "two thrusters",
        Rn(2, ("x", "v")),
        lambda t, x, u, p: ca.vertcat(x[1], u[0] + 2 * u[1] - 5 - ca.sin(x[0])),
        inputs=[Input("left", "N", -limit, limit), Input("right", "N", -limit, limit)],
        **options,
    )


def test_a_state_that_an_input_holds_is_returned_bit_by_bit():
    """Of the inputs that hold it the shortest: a multiple of their effects."""
    guess = np.array([0.3, 0.0])
    point = two_thrusters().trim(guess)
    assert np.array_equal(point.x, guess)
    np.testing.assert_allclose(point.u, (5 + np.sin(0.3)) / 5 * np.array([1, 2]), rtol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e3, 1e6])
def test_a_lever_stays_where_it_is_in_any_unit_of_its_moment(unit):
    """In mN m the moment seemed far, and the lever went to its rest at 0 rad."""
    lever = System(
        "lever", Rn(2, ("angle", "rate")),
        lambda t, x, u, p: [x[1], u / unit - 5 * ca.sin(x[0]) - x[1]], inputs=["moment"],
    )  # fmt: skip
    point = lever.trim([0.3, 0.1])
    assert point.x == pytest.approx([0.3, 0.0], abs=1e-6)
    assert point.u / unit == pytest.approx([5 * np.sin(0.3)], rel=1e-5)


def test_else_the_nearest_state_is_found_with_inputs_at_their_bounds():
    """Three times 1.6 N carry 4.8 N: sin x = -0.2, on the side of the guess."""
    for guess in (0.3, 2.9):
        point = two_thrusters(1.6).trim([guess, 0.0])
        wanted = -np.arcsin(0.2) if guess < 1 else np.pi + np.arcsin(0.2)
        assert abs(point.x[0] - wanted) < 1e-8
        assert np.allclose(point.u, [1.6, 1.6], atol=1e-8)


def test_inputs_are_not_traded_for_the_way_of_the_state():
    """A bound of 2 N holds any state; a little way would save input, and is not gone."""
    guess = np.array([1.2, 0.0])
    assert np.array_equal(two_thrusters(2.0).trim(guess).x, guess)
    moving = two_thrusters(2.0).trim([1.2, 0.1])  # the speed cannot stay
    assert np.abs(moving.x - guess).max() < 1e-6


def test_a_posture_of_two_rods_is_kept():
    """Rods of 1 m: the shoulder carries both, the elbow the outer one."""
    m, g = (2.0, 1.0), 9.81

    def field(t, x, u, p):
        a, b, v, w = ca.vertsplit(x)
        elbow = m[1] * g * ca.cos(a + b) / 2
        weight = ca.vertcat((m[0] / 2 + m[1]) * g * ca.cos(a) + elbow, elbow)
        return ca.vertcat(v, w, u - weight)

    arm = System("rods", Rn(4, ("a", "b", "v", "w")), field, inputs=["shoulder", "elbow"])
    x = [0.3, 0.8, 0.0, 0.0]
    point = arm.trim(x)
    assert point.x.tolist() == x and point.kind == "equilibrium"
    elbow = g * np.cos(1.1) / 2
    np.testing.assert_allclose(point.u, [2 * g * np.cos(0.3) + elbow, elbow], rtol=1e-13)


def test_limits_that_the_system_knows_are_kept():
    system = two_thrusters(limits={"x": (0.5, 2.0)})
    assert system.trim().x.tolist() == [0.5, 0.0]
    tight = two_thrusters(1.6, limits={"x": (-1.0, 3.0)})
    assert tight.trim([0.3, 0.0]).x[0] == pytest.approx(-np.arcsin(0.2), abs=1e-8)
    with pytest.raises(
        TrimError, match=r"beyond the limits of x \(-0.2013\d* is outside \[0, 3"
    ) as e:
        two_thrusters(1.6, limits={"x": (0.0, 3.0)}).trim()
    assert e.value.status == "limits" and abs(e.value.best.x[0] + np.arcsin(0.2)) < 1e-8
    with pytest.warns(RuntimeWarning, match=r"given state is beyond the limits of x \(0.3 is out"):
        assert system.trim([0.3, 0.0]).x[0] == 0.3
    assert system.trim(where={"x": 0.1}).x[0] == pytest.approx(0.1, abs=1e-9)


def test_a_weight_that_nothing_carries_is_named_at_once():
    body = rigid()
    falling = System(
        "falling body",
        body.state,
        lambda t, x, u, p: body.f(t, x, ca.vertcat(0, u), ca.DM([0.5, 0.3])),
        inputs=["mx", "my", "mz"],
        structure=replace(
            body.structure,
            mass_matrix=lambda x, p: body.structure.mass_matrix(x, [0.5, 0.3]),
            force=lambda t, x, u, p: body.structure.force(
                t, x, ca.vertcat(0, u), ca.DM([0.5, 0.3])
            ),
            balance_derivatives=lambda t, x, a, u, p: (ca.DM(6, 12), ca.DM(6, 3)),
            input_map=lambda t, x, u, p: ca.vertcat(ca.DM(3, 3), ca.DM.eye(3)),
            loss_jacobian=None,
        ),
    )
    with pytest.raises(TrimError, match=r"reaches twist.vx, twist.vy, twist.vz .* 24\.525 N") as e:
        falling.trim()
    assert e.value.status == "infeasible"
    assert body.trim().u[0] == pytest.approx(2.5 * GRAVITY)


def test_disturbances_carry_no_weight_that_controls_cannot():
    """A free robot with a leg, pushed at its trunk: refused before any search."""
    rod = SpatialInertia.box(2.0, [0.3, 0.1, 0.1])
    robot = (
        Multibody("robot").add_body("trunk", rod, "free").add_body("leg", rod, "revolute", "trunk")
    )
    pushed = robot.system(wrenches=["trunk", "leg"])
    text = (
        r"none of its 1 free controls reaches .* 39\.2\d* N.*; the inputs trunk.fx, .* keep their "
    )
    with pytest.raises(TrimError, match=text + "values; .*give values of these inputs") as e:
        pushed.trim()
    assert e.value.status == "infeasible"
    # A push that is given and carries the weight is a trim point, with the trunk level.
    carried = pushed.full_input([0.0], **{"trunk.fz": 4.0 * GRAVITY})
    assert pushed.trim(pushed.state.identity, carried).kind == "equilibrium"


@pytest.mark.parametrize("name", ["solo12", "hyq_no_sensors", "talos_reduced"])
@pytest.mark.parametrize("wrenches", [(), "trunk", "all"])
@pytest.mark.thorough
def test_legged_robots_without_contacts_are_refused_at_once(robot_file, name, wrenches):
    tree = Multibody.from_urdf(robot_file(f"{name}.urdf"), base="free", on_finding="ignore")
    links = list(tree.bodies)
    on = {"trunk": links[:1], "all": [links[0], links[-1]]}.get(wrenches, ())
    with pytest.raises(TrimError, match="free controls reaches velocity.root_joint.x"):
        tree.system(wrenches=on).trim()


def test_a_point_is_no_state():
    point = two_thrusters().trim()
    with pytest.raises(TypeError, match="give the point's .x"):
        two_thrusters().trim(point)


def test_nearest_is_meant_on_the_group():
    """All headings of an upright buoy are equilibria: the one with the shortest way there wins."""
    buoy = System(
        "buoy",
        RIGID,
        lambda t, x, u, p: ca.vertcat(
            x[7:],
            -x[7:10],
            ca.cross(ca.DM([0, 0, 1]), turn([-x[3], -x[4], -x[5], x[6]], ca.DM([0, 0, 1])))
            - x[10:],
        ),
    )
    guess = SE3.from_euler("ZYX", [0.7, 0.5, -0.4], [1.0, 0.0, 2.0])
    place = [3.0, 1.0, 0.0]
    found = buoy.trim(
        RIGID.join(pose=guess), conditions={"place": lambda t, x, u, p: x[:3] - ca.DM(place)}
    ).x
    nearest = 0.0
    for width in (np.pi, 0.01):
        headings = nearest + np.linspace(-width, width, 1001)
        upright = SE3.from_rotation(SO3.exp(headings[:, None] * [0.0, 0.0, 1.0]), place)
        nearest = headings[np.argmin(SE3.distance(upright, guess))]
    np.testing.assert_allclose(SO3.log(found[3:7]), [0, 0, nearest], atol=1e-4)  # of the grid


def test_conditions_are_further_equations():
    system = underwater()
    fast = system.trim(
        RIGID.join(twist=[0.8, 0, 0, 0, 0, 0.1]),
        moving="pose",
        conditions={
            "speed": lambda t, x, u, p: ca.sumsqr(x[7:10]) - 1.0,
            "turn": lambda t, x, u, p: x[12] - 0.2,
        },
    )
    assert abs(np.linalg.norm(fast.rate[:3]) - 1) < SOLVED
    assert abs(fast.rate[5] - 0.2) < SOLVED


def test_constrained_systems_trim_on_their_constraints():
    top = heavy_top()
    hanging = top.project(RIGID.join(pose=SE3.from_euler("YZX", [np.pi / 2 - 0.2, 0, 0])))
    point = top.trim(hanging)
    np.testing.assert_allclose(point.x[:3], [0, 0, -0.5], atol=SOLVED)
    np.testing.assert_allclose(
        top.quantities["reaction"](0.0, point.x), [0, 0, 21.6 * GRAVITY], atol=1e-8
    )


def test_discrete_systems_trim_as_the_continuous_ones():
    system = quadrotor()
    hover = system.discretize(0.05).trim(position=[2, 1, 1])
    np.testing.assert_allclose(hover.u, 1.2 * GRAVITY / 4, rtol=1e-9)
    climb = lift().discretize(0.1).trim(where={"speed.v": 2.0}, moving="height")
    assert climb.kind == "relative equilibrium"
    np.testing.assert_allclose(climb.rate, [0.2, 0.0], atol=SOLVED)
    np.testing.assert_allclose(climb(1.0).x, [2.0, 2.0])
    with pytest.raises(TrimError, match="height.*in a discrete system blocks that move have to be"):
        lift().discretize(0.1).trim(where={"speed.v": 2.0})  # which moves the continuous one


def test_other_parameters_and_disturbances():
    heavier = lift().trim(p=[3.0])
    np.testing.assert_allclose(heavier.u, 3 * GRAVITY)
    torque = satellite().full_input(np.zeros(3), torque_x=0.05)
    with pytest.raises(TrimError):  # wheels would have to speed up for ever
        satellite().trim(u=torque)
    with pytest.raises(TrimError, match="rate.w. answers differently to rate.w."):
        satellite().trim(u=torque, moving="wheel_speed")  # their growing spin couples the axes


def test_a_trim_point_is_a_reference():
    steady = underwater().trim(where=TURN)
    path = steady.trajectory(2.0, 0.1)
    assert isinstance(path, Trajectory)
    np.testing.assert_allclose(path.t, 0.1 * np.arange(21), atol=1e-12)
    np.testing.assert_array_equal(path.x[3], steady(path.t[3]).x)
    assert path.u.shape == (21, 5)
    with pytest.raises(ValueError, match="0 < dt <= seconds"):
        steady.trajectory(0.0, 0.1)


def test_starts_where_the_model_is_not_defined_are_passed_over():
    tank = System(
        "tank",
        Rn(1, ("level",)),
        lambda t, x, u, p: u - ca.sqrt(x),
        inputs=[Input("inflow", "m/s", 0.0, 2.0)],
    )
    point = tank.trim([-0.1], where={"inflow": 0.5})
    np.testing.assert_allclose(point.x, [0.25], rtol=SOLVED)
    with pytest.raises(TrimError, match="tank: no trim point found"):
        tank.trim([-100.0])


# Refusals


def test_an_infeasible_trim_says_what_is_worst_and_what_is_at_its_bound():
    weak = quadrotor()
    heavy = System(
        "loaded",
        RIGID,
        lambda t, x, u, p: weak.f(t, x, u / 4, p),
        inputs=weak.inputs,
    )
    with pytest.raises(TrimError) as error:
        heavy.trim()
    text = str(error.value)
    assert "loaded: no trim point found from 8 starts" in text
    assert "rate of twist.v" in text and "m/s²" in text
    assert all(f"rotor{k} at its upper bound 6 N" in text for k in (1, 2, 3, 4))
    assert "had to stay still: pose, twist" in text
    best = error.value.best
    assert error.value.status == "infeasible"
    assert best.u.tolist() == [6.0, 6.0, 6.0, 6.0]
    assert np.isfinite(best.x).all()


def test_a_field_that_changes_with_time_has_no_equilibrium():
    wave = System("wave", Rn(1), lambda t, x, u, p: ca.sin(t) - x)
    for t in (0.0, np.pi / 2):  # at the second one even the rate of change vanishes
        with pytest.raises(TrimError, match="not a symmetry"):
            wave.trim(t=t)


def test_errors_pickle():
    with pytest.raises(TrimError) as error:
        pendulum().trim(where={"angle": [0.0, 1.0]})
    copy = pickle.loads(pickle.dumps(error.value))
    assert str(copy) == str(error.value)
    np.testing.assert_array_equal(copy.best.x, error.value.best.x)


FAULTS = {
    "unknown name": ({"where": {"twist.vxx": 1}}, KeyError, "mean 'twist.vx'"),
    "unknown block": ({"moving": "twists"}, KeyError, "unknown block 'twists'; valid .* twist"),
    "length": ({"position": [1, 2]}, ValueError, r"position has shape \(2,\), expected \(3,\)"),
    "twice": (
        {"position": [1, 2, 3], "where": {"pose.z": 1}},
        ValueError,
        "pose.z is given in position and in where",
    ),
    "two names": (
        {"where": {"twist.vx": 1, "state.twist.vx": 2}},
        ValueError,
        "where gives twist.vx twice, the second time as 'state.twist.vx'",
    ),
    "bounds": (
        {"where": {"rotor2": 7.0}},
        ValueError,
        r"rotor2 = 7 is outside its bounds \[0, 6\] N",
    ),
    "nan": ({"where": {"pose.x": np.nan}}, ValueError, "'pose.x'.* is not finite"),
    "block shape": ({"where": {"pose": [1, 2]}}, ValueError, r"expected \(7,\)"),
    "guess": ({"guess": [1.0]}, ValueError, r"guess has shape \(1,\), expected \(13,\)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_named(fault):
    arguments, error, message = FAULTS[fault]
    with pytest.raises(error, match=message):
        quadrotor().trim(**arguments)


def test_systems_without_a_position_say_so():
    with pytest.raises(
        ValueError, match="no block with coordinates x, y, z; use where=.*angle.cos"
    ):
        pendulum().trim(position=[1, 2, 3])


def test_what_the_solver_leaves_next_to_zero_is_zero():
    """The guess of an identity plus steps: entries were 1e-97, and 7e-242 in the linearization."""
    system = quadrotor()
    hover = system.trim(
        [0, 0, 0, *SO3.normalize([0.01, 0.02, 0, 1]), *[0] * 6], position=[1.0, 2.0, 3.0]
    )
    small = np.abs(hover.x)
    assert not ((small > 0) & (small < 1e-15)).any()
    A = np.abs(system.linearize(hover).A)
    assert not ((A > 0) & (A < 1e-15)).any()


def test_small_values_of_the_guess_are_kept():
    drift = System("drift", Rn(2), lambda t, x, u, p: [0 * x[0], x[1]])
    np.testing.assert_array_equal(drift.trim([1e-20, 0.0]).x, [1e-20, 0.0])


def test_a_trim_point_shows_in_a_line_what_it_is():
    point = quadrotor().trim(position=[1.0, 2.0, 3.0])
    assert repr(point) == (
        "TrimPoint('quadrotor', equilibrium, x=[1. 2. 3. 0. 0. 0. 1. 0. 0. 0. 0. 0. 0.], "
        "u=[2.943 2.943 2.943 2.943])"
    )


def test_one_number_will_do_for_a_block_of_one():
    assert pendulum().trim(where={"rate": 0.0, "torque": 0.0}).x[2] == 0.0
    group = Product(pose=SE3, speed=Rn(1))
    assert group.join(speed=2.0).tolist() == [*SE3.identity, 2.0]
    with pytest.raises(ValueError, match=r"block 'pose' has shape \(\), expected"):
        group.join(pose=2.0)


def test_joints_go_by_their_own_names():
    state = Product(configuration=Product(arm=Rn(1), hand=Rn(1)), velocity=Rn(2))
    system = System(
        "arm", state, lambda t, x, u, p: [x[2], x[3], u[0] - x[0], u[1] - x[1]],
        inputs=["shoulder", "hand"],
    )  # fmt: skip
    found = system.trim(where={"arm": 0.5, "configuration.hand": [0.25]})
    assert found.x == pytest.approx([0.5, 0.25, 0, 0])
    assert system.trim(where={"input.hand": 0.75, "arm": 0.0}).u == pytest.approx([0.0, 0.75])


def test_a_state_of_another_size_is_told_what_it_is_made_of():
    with pytest.raises(ValueError, match=r"shape \(4,\), .* of angle \(2\), rate \(1\)"):
        pendulum().trim([1.0, 0.0, 0.0, 0.0])


def test_a_point_that_is_not_the_state_given_says_so():
    asked = [*SO2.exp([1.2]), 0.0]
    found = pendulum().trim(asked, where={"torque": 0.0})
    assert found.moved == pytest.approx([-1.2, 0.0])
    assert "not the state given: angle.rz is -1.2 rad from it" in repr(found)
    held = pendulum().trim([*SO2.exp([0.3]), 0.0])
    assert held.moved is None and "given" not in repr(held)
    assert pendulum().trim(where={"torque": 0.0}).moved is None


@pytest.mark.parametrize(
    ("where", "what"),
    [
        ({"arm": 90}, "arm.angle"), ({"state.arm.angle": -45}, "arm.angle"),
        ({"joints": [0.1, 30.0]}, "joints.b"), ({"steer": 20.0}, "steer"),
    ],
)  # fmt: skip
def test_wished_angles_ask_whether_they_are_degrees(where, what):
    """Of what is an angle by its unit, if they are more than two turns."""
    state = Product(arm=Helical(0), joints=Rn(2, ("a", "b"), ("rad", "rad")), slide=Rn(1, ("z",)))
    turned = System("turned", state, lambda t, x, u, p: 0 * x, inputs=[Input("steer", "rad")])
    with pytest.warns(UserWarning, match=f"where: {what} of .* are these degrees.*np.radians"):
        turned.trim(where=where)
    for harmless in ({"slide": 90.0}, {"arm": 12.0}):
        turned.trim(where=harmless)  # any warning is an error


def test_an_unknown_argument_lists_those_that_a_call_can_give():
    still = System("still", Rn(1), lambda t, x, u, p: u, inputs=["u"])
    with pytest.raises(TypeError, match=r"unknown argument 'yaw'; valid names are guess, u, where"):
        still.trim(yaw=1.0)
    with pytest.raises(TypeError, match=r"rollout\(\) takes 3 arguments .*\(x0, u, dt.*got 7"):
        still.rollout([0.0], [0.0], 0.1, 1, 2, 3, 4)


def test_an_angle_that_is_kept_as_a_circle_has_the_joints_name():
    """As `Bound` takes it: one number by the joint's name, continuous or revolute."""
    rod = SpatialInertia.rod(1.0, 1.0, axis="x", center_of_mass=[0.5, 0.0, 0.0])
    for kind in ("continuous", "revolute"):
        system = Multibody("arm").add_body("rod", rod, kind, axis="y").system()
        for name in ("configuration.rod", "state.rod"):
            at = system.trim(where={name: 0.4})
            configuration = system.state.split(at.x)["configuration"]
            angle = system.state.blocks["configuration"].log(configuration)
            assert angle == pytest.approx([0.4], abs=1e-9)
        with pytest.raises(ValueError, match="twice|name the same"):
            system.trim(where={"configuration.rod": 0.4, "state.rod": 0.5})

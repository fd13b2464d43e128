"""Basic constraints and joints: closed forms against automatic derivatives, mobility, threads."""

import casadi as ca
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from lgcontrol import models
from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics import constrained as mc
from lgcontrol.mechanics._internal import FreeConstraint
from lgcontrol.mechanics.constrained import (
    CD,
    DP1,
    DP2,
    D,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
)
from lgcontrol.mechanics.constrained.rotation_comparison import ClosedForms
from lgcontrol.mechanics.constrained.rotation_comparison._attitudes import ATTITUDES, cross_matrix
from lgcontrol.mechanics.constrained.rotation_comparison._closed_forms import PlacedBody
from lgcontrol.mechanics.constrained.rotation_comparison._direct import consistent

CUBE = SpatialInertia.box(2.0, [0.1, 0.2, 0.3])
EXACT, DIFFERENCES = 1e-12, 1e-6  # of numbers of size one to ten


def drive(t):
    return 0.3 * ca.sin(2 * t) + 0.2


A_I, A_J = np.array([0.3, -0.5, 0.8]), np.array([-0.7, 0.2, 0.4])
S_I, S_J = np.array([0.2, 0.6, -0.4]), np.array([-0.3, 0.5, 0.9])
KINDS = {
    "DP1": DP1("row", "i", A_I, "j", A_J, drive),
    "DP2": DP2("row", "i", A_I, S_I, "j", S_J, drive),
    "D": D("row", "i", S_I, "j", S_J, drive),
    "CD": CD("row", A_I, "i", S_I, "j", S_J, drive),
    "moving": DP1("row", "i", A_I, "j", lambda t: ca.vertcat(ca.sin(t), ca.cos(t), 0.2 * t)),
}


def pair(kind, rng):
    bodies = []
    for name in "ij":  # quaternions with the sign that both ways take
        pose = SE3.random(rng)
        pose[3:] = Rotation.from_matrix(SO3.matrix(pose[3:])).as_quat()
        bodies.append(MechanismBody(name, CUBE, pose, rates=rng.normal(size=6)))
    return Mechanism("pair", bodies, [MechanismJoint("joint", [KINDS[kind]])])


def placed(mechanism, attitude):
    return {
        body.name: PlacedBody(
            body.pose[:3],
            body.rates[:3],
            ATTITUDES[attitude].from_rotation(SO3.matrix(body.pose[3:]), body.rates[3:]),
        )
        for body in mechanism.bodies.values()
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attitude", ATTITUDES)
def test_closed_forms_agree_with_automatic_derivatives(kind, attitude, rng):
    mechanism, t = pair(kind, rng), 0.37
    word = attitude if attitude != "rA" else "SO3xR3"
    own = mechanism.formulated(word)
    q = own.coordinates()
    exact = own.dynamics(t, q, own.velocities(q))
    forms = ClosedForms(mechanism, attitude)
    found = forms.terms(t, placed(mechanism, attitude))
    for name in ("phi", "G", "nu", "gamma"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), abs=EXACT), name
    assert forms.mass_matrix(placed(mechanism, attitude)) == pytest.approx(exact.M, abs=EXACT)
    force = -forms.balance(placed(mechanism, attitude), np.zeros(forms.n))
    off = (force - exact.F).reshape(2, -1)
    if attitude == "rp":  # along e alone the two differ: that goes into the multiplier of the norm
        e = q.reshape(2, -1)[:, 3:]
        off[:, 3:] -= e * np.sum(off[:, 3:] * e, axis=1, keepdims=True)
    assert np.abs(off).max() <= EXACT * 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attitude", ATTITUDES)
def test_variations_of_reactions_agree_with_differences(kind, attitude, rng):
    mechanism, h = pair(kind, rng), 1e-6
    forms, start = ClosedForms(mechanism, attitude), placed(mechanism, attitude)
    lam = rng.normal(size=forms.m)

    def reaction(d):
        size, moved = forms.size, {}
        for name, body in start.items():
            at = forms.columns[name]
            attitude = body.attitude.displaced(d[at + 3 : at + 3 + size])
            moved[name] = PlacedBody(body.r + d[at : at + 3], body.rdot, attitude)
        return forms.terms(0.2, moved, rates=False).G.T @ lam

    eye = np.eye(forms.n)
    slope = np.column_stack([(reaction(h * e) - reaction(-h * e)) / (2 * h) for e in eye])
    found = forms.terms(0.2, start, lam).stiffness
    assert found == pytest.approx(slope, abs=DIFFERENCES)


def tilde(a):
    return cross_matrix(a)


def table_of_constraints(kind, A_i, A_j, d):
    """Table 2, mended: columns r_i, θ_i, r_j, θ_j."""
    a = A_i @ A_I
    none = np.zeros(3)
    return {
        "DP1": [none, -A_J @ A_j.T @ A_i @ tilde(A_I), none, -A_I @ A_i.T @ A_j @ tilde(A_J)],
        "DP2": [
            -a,
            A_I @ tilde(S_I) - d @ A_i @ tilde(A_I),
            a,
            -a @ A_j @ tilde(S_J),
        ],
        "D": [-2 * d, 2 * d @ A_i @ tilde(S_I), 2 * d, -2 * d @ A_j @ tilde(S_J)],
        "CD": [-A_I, A_I @ A_i @ tilde(S_I), A_I, -A_I @ A_j @ tilde(S_J)],
    }[kind]


def table_of_reactions(kind, A_i, A_j, r_i, r_j, d):
    """Tables 3 to 6, mended: variations of +Gᵀλ for λ = 1; rows f_i, n_i, f_j, n_j."""
    o, eye = np.zeros((3, 3)), np.eye(3)
    ai, aj, si, sj = tilde(A_I), tilde(A_J), tilde(S_I), tilde(S_J)
    to_j, to_i = r_j + A_j @ S_J - r_i, r_j - r_i - A_i @ S_I
    return {
        "DP1": [
            [o, o, o, o],
            [o, ai @ tilde(A_i.T @ A_j @ A_J), o, -ai @ A_i.T @ A_j @ aj],
            [o, o, o, o],
            [o, -aj @ A_j.T @ A_i @ ai, o, aj @ tilde(A_j.T @ A_i @ A_I)],
        ],
        "DP2": [
            [o, A_i @ ai, o, o],
            [-ai @ A_i.T, ai @ tilde(A_i.T @ to_j), ai @ A_i.T, -ai @ A_i.T @ A_j @ sj],
            [o, -A_i @ ai, o, o],
            [o, -sj @ A_j.T @ A_i @ ai, o, sj @ tilde(A_j.T @ A_i @ A_I)],
        ],
        "D": [
            [2 * eye, -2 * A_i @ si, -2 * eye, 2 * A_j @ sj],
            [
                2 * si @ A_i.T,
                -2 * si @ tilde(A_i.T @ to_j),
                -2 * si @ A_i.T,
                2 * si @ A_i.T @ A_j @ sj,
            ],
            [-2 * eye, 2 * A_i @ si, 2 * eye, -2 * A_j @ sj],
            [
                -2 * sj @ A_j.T,
                2 * sj @ A_j.T @ A_i @ si,
                2 * sj @ A_j.T,
                2 * sj @ tilde(A_j.T @ to_i),
            ],
        ],
        "CD": [
            [o, o, o, o],
            [o, -si @ tilde(A_i.T @ A_I), o, o],
            [o, o, o, o],
            [o, o, o, sj @ tilde(A_j.T @ A_I)],
        ],
    }[kind]


@pytest.mark.parametrize("kind", ["DP1", "DP2", "D", "CD"])
def test_tables_of_the_paper_hold_once_mended(kind, rng):
    mechanism = pair(kind, rng)
    bodies = placed(mechanism, "rA")
    A_i, A_j = (bodies[name].attitude.A for name in "ij")
    r_i, r_j = (bodies[name].r for name in "ij")
    d = r_j + A_j @ S_J - r_i - A_i @ S_I
    forms = ClosedForms(mechanism)
    found = forms.terms(0.1, bodies, np.ones(1))
    assert np.concatenate(table_of_constraints(kind, A_i, A_j, d)) == pytest.approx(
        found.G[0], abs=EXACT
    )
    table = np.block(table_of_reactions(kind, A_i, A_j, r_i, r_j, d))
    assert table == pytest.approx(found.stiffness, abs=EXACT)


def test_misprint_of_table_2_dp1(rng):
    mechanism = pair("DP1", rng)
    bodies = placed(mechanism, "rA")
    A_i, A_j = (bodies[name].attitude.A for name in "ij")
    G = ClosedForms(mechanism).terms(0.1, bodies).G[0]
    printed = -A_I @ A_j.T @ A_i @ tilde(A_I)
    assert np.abs(G[3:6] - printed).max() > 0.1
    assert G[3:6] == pytest.approx(-A_J @ A_j.T @ A_i @ tilde(A_I), abs=EXACT)


def test_misprint_of_table_5_moment_on_j(rng):
    mechanism = pair("D", rng)
    bodies = placed(mechanism, "rA")
    A_i, A_j = (bodies[name].attitude.A for name in "ij")
    r_i, r_j = (bodies[name].r for name in "ij")
    K = ClosedForms(mechanism).terms(0.1, bodies, np.ones(1)).stiffness[9:12, 9:12]
    d = r_j + A_j @ S_J - r_i - A_i @ S_I
    assert np.abs(K - 2 * tilde(S_J) @ tilde(A_j.T @ d)).max() > 0.1
    mended = 2 * tilde(S_J) @ tilde(A_j.T @ (r_j - r_i - A_i @ S_I))
    assert K == pytest.approx(mended, abs=EXACT)


def test_misprint_of_the_rates_of_drives(rng):
    """(18) has the first derivative of f where the second belongs."""
    mechanism, t = pair("CD", rng), 0.4
    gamma = ClosedForms(mechanism).terms(t, placed(mechanism, "rA")).gamma[0]
    still = Mechanism(
        "still",
        mechanism.bodies.values(),
        [MechanismJoint("joint", [CD("row", A_I, "i", S_I, "j", S_J)])],
    )
    own = ClosedForms(still).terms(t, placed(mechanism, "rA")).gamma[0]
    assert gamma - own == pytest.approx(-1.2 * np.sin(2 * t), abs=EXACT)
    assert abs(gamma - own - 0.6 * np.cos(2 * t)) > 0.1


def two_bodies(*joints, pose=SE3.identity):
    bodies = [MechanismBody("j", CUBE, pose), MechanismBody("k", CUBE, pose)]
    return Mechanism("two", bodies, joints)


GROUND, BODY, OTHER = Marker("ground"), Marker("j"), Marker("k")
MOBILITY = {
    "spherical": 3,
    "universal": 2,
    "cylindrical": 2,
    "revolute": 1,
    "translational": 1,
    "fixed": 0,
    "planar": 3,
}


@pytest.mark.parametrize("name", MOBILITY)
def test_joints_leave_their_freedoms(name):
    joint = getattr(mc, name)
    second = Marker("j", z=[1, 0, 0]) if name == "universal" else BODY
    body = [MechanismBody("j", CUBE)]
    found = Mechanism("one", body, [joint("joint", GROUND, second)]).mobility()
    assert (found.degrees_of_freedom, found.removable, found.is_singular) == (
        MOBILITY[name],
        (),
        False,
    )


def test_rods_and_threads_leave_their_freedoms():
    body = [MechanismBody("j", CUBE, [0, 0, 0.5, 0, 0, 0, 1])]
    rod = Mechanism("rod", body, [mc.distance("rod", GROUND, BODY, 0.5)])
    assert rod.mobility().degrees_of_freedom == 5
    body = [MechanismBody("j", CUBE)]
    assert (
        Mechanism("bolt", body, [mc.screw("thread", GROUND, BODY, 0.01)])
        .mobility()
        .degrees_of_freedom
        == 1
    )


def test_a_screw_advances_by_its_pitch_over_many_turns():
    turns, pitch = 3.0, 0.02
    angle = mc.angle_drive("drive", GROUND, BODY, lambda t: 2 * np.pi * turns * t)
    body = [MechanismBody("j", CUBE)]
    bolt = Mechanism("bolt", body, [mc.screw("thread", GROUND, BODY, pitch), angle])
    run = bolt.kinematics(np.linspace(0, 1, 121))
    assert run.status.name == "SOLVED", run.message
    assert run.q[-1, 2] == pytest.approx(2 * np.pi * turns * pitch, abs=1e-12)


def test_gears_keep_their_ratio_over_many_turns():
    at = Marker("ground", [0.3, 0, 0])
    wheels = two_bodies(
        mc.revolute("axis1", GROUND, BODY),
        mc.revolute("axis2", at, OTHER),
        mc.gear("mesh", (GROUND, BODY), (at, OTHER), (20, -30)),
        mc.angle_drive("drive", GROUND, BODY, lambda t: 10 * t),
    ).assembled()
    run = wheels.kinematics(np.linspace(0, 2, 161))
    assert run.status.name == "SOLVED", run.message
    assert run.v[:, 11] == pytest.approx(-20 / 3, abs=1e-9)


def test_an_angle_drive_is_regular_in_every_position():
    body = [MechanismBody("j", CUBE)]
    axis = mc.revolute("axis", GROUND, BODY)
    driven = Mechanism("disc", body, [axis, mc.angle_drive("drive", GROUND, BODY, lambda t: t)])
    for angle in np.linspace(-3, 3, 7):
        found = driven.mobility([0, 0, 0, *SO3.exp([0, 0, angle])], t=angle)
        assert found.degrees_of_freedom == 0 and found.conditioning > 0.3


def test_position_drives_move_along_their_axis():
    body = [MechanismBody("j", CUBE)]
    rail = Marker("ground", z=[1, 2, 2])
    slide = Marker("j", z=[1, 2, 2])
    stage = Mechanism(
        "stage",
        body,
        [
            mc.translational("rail", rail, slide),
            mc.position_drive("drive", rail, slide, lambda t: 0.3 * t),
        ],
    )
    run = stage.kinematics([0.0, 0.5, 1.0])
    assert run.q[-1, :3] == pytest.approx([0.1, 0.2, 0.2], abs=1e-13)


def test_users_write_their_own_equation():
    def bowl(t, frames):
        r, _ = frames["j"]
        return r[2] - ca.sumsqr(r[:2])

    joint = MechanismJoint("bowl", [FreeConstraint("height", ("j",), bowl, "m")])
    body = [MechanismBody("j", CUBE, [0.5, 0, 0.2, 0, 0, 0, 1])]
    bead = Mechanism("bead", body, [joint])
    q = bead.assemble()
    assert q[2] == pytest.approx(q[0] ** 2 + q[1] ** 2, abs=1e-13)
    with pytest.raises(ValueError, match="closed forms exist for DP1, DP2, D and CD only"):
        ClosedForms(bead)


def test_motors_push_both_bodies_oppositely():
    axis = Marker("j", [0.1, 0, 0], z=[0, 0, 1]), Marker("k", [-0.1, 0, 0], z=[0, 0, 1])
    body = [MechanismBody("j", CUBE), MechanismBody("k", CUBE, [0.2, 0, 0, 0, 0, 0, 1])]
    for kind in ("torque", "force"):
        motor = mc.MechanismMotor("motor", *axis, kind)
        pushed = Mechanism("two", body, motors=[motor], gravity=[0, 0, 0])
        F = pushed.dynamics(0.0, pushed.coordinates(), np.zeros(12), [2.0]).F
        assert F[:3] == pytest.approx(-F[6:9]) and F[2] == (-2.0 if kind == "force" else 0.0)
        moment = F[3:6] + F[9:] + np.cross([0.2, 0, 0], F[6:9])
        assert moment == pytest.approx(np.zeros(3), abs=1e-15)


def test_rates_that_break_constraints_are_brought_to_them():
    body = MechanismBody("j", CUBE, rates=[1, 0, 0, 0, 0, 2.0])
    disc = Mechanism("disc", [body], [mc.revolute("axis", GROUND, BODY)])
    forms = ClosedForms(disc)
    start = {"j": (np.zeros(3), Rotation.identity().as_matrix(), np.ones(3), np.array([1, 1, 2.0]))}
    _, _, rdot, omega = consistent(forms, start)["j"]
    assert rdot == pytest.approx(np.zeros(3), abs=1e-15)
    assert omega == pytest.approx([0, 0, 2], abs=1e-15)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda i, j: mc.revolute("a", i, j, colour=1), "revolute.*valid names are name, i, j"),
        (lambda i, j: mc.revolute("a", i), r"revolute\(\) lacks j: give j=…"),
        (lambda i, j: mc.angle_drive("a", i, j, speed=1), "angle_drive.*name, i, j, angle"),
        (lambda i, j: mc.Marker("a", colour=1), "Marker.*valid names are body, point, z, x"),
        (lambda i, j: models.double_pendulum_mechanism().drive("a", speed=3), "joint, motion"),
        (lambda i, j: models.double_pendulum_mechanism().with_joints(all=1), "without, motors"),
        (lambda i, j: models.four_bar_tree().close_loop("a", lenght=1), "Did you mean 'length'"),
        (lambda i, j: models.four_bar_tree().constrain("a", unit="m"), "Did you mean 'units'"),
        (lambda i, j: models.elastic_planar_arm_tree().flat_map(dry=1), "valid names are"),
    ],
)
def test_unknown_arguments_of_linkages_and_joints_are_told(call, told):
    with pytest.raises(TypeError, match=told):
        call(mc.Marker("ground"), mc.Marker("rod"))

"""Springs, dampers, bushings, friction and motors between markers, in every formulation."""

import json

import casadi as ca
import numpy as np
import pytest

import lgcontrol.mechanics.constrained as mc
from lgcontrol.groups import SE3, SO3
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody, MechanismMotor
from lgcontrol.systems import check_system
from tests.benchmarks.marker_forces import CASES, STORE, ends

BOX = SpatialInertia.box(2.0, [0.3, 0.2, 0.1])
WORDS = ["SO3xR3", "SE3", "rp", "re"]
ON_A, ON_B = Marker("a", [0.1, 0.05, 0], z=[0, 1, 1]), Marker("b", [-0.1, 0, 0.02], z=[1, 0, 1])
SAME = 1e-10  # of forces of size ten


def force_of(kind, law=False):
    return {
        "spring": lambda: mc.spring_damper(
            "f", ON_A, ON_B, length=0.2, stiffness=50.0, damping=3.0
        ),
        "pull": lambda: mc.spring_damper("f", ON_A, ON_B, stiffness=50.0, damping=3.0),
        "law": lambda: mc.spring_damper("f", ON_A, ON_B, force=lambda s, w: 40 * s**3 + 2 * w * s),
        "torsion": lambda: mc.torsion_spring(
            "f", ON_A, ON_B, angle=0.3, stiffness=5.0, damping=0.4
        ),
        "bushing": lambda: mc.bushing("f", ON_A, ON_B, stiffness=[9, 8, 7, 3, 2, 1], damping=0.5),
        "friction": lambda: mc.joint_friction("f", ON_A, ON_B, coulomb=2.0, damping=0.3),
        "slide": lambda: mc.joint_friction("f", ON_A, ON_B, coordinate="x", coulomb=2.0),
    }[kind]()


def pair(kind, rng):
    bodies = [
        MechanismBody("a", BOX, [0, 0, 0, *SO3.exp(rng.normal(size=3))], rng.normal(size=6)),
        MechanismBody("b", BOX, [0.5, 0.3, 0.1, *SO3.exp(rng.normal(size=3))], rng.normal(size=6)),
    ]
    return Mechanism("pair", bodies, forces=[force_of(kind)], gravity=[0, 0, 0])


def by_hand(kind, mechanism):
    """Wrenches on b, [f in world; m in world about the point of j], and the power it takes."""
    a, b = mechanism.bodies.values()
    A, B = (SO3.matrix(body.pose[3:]) for body in (a, b))
    wa, wb = A @ a.rates[3:], B @ b.rates[3:]
    pa, pb = a.pose[:3] + A @ ON_A.point, b.pose[:3] + B @ ON_B.point
    va, vb = a.rates[:3] + np.cross(wa, A @ ON_A.point), b.rates[:3] + np.cross(wb, B @ ON_B.point)
    d, rate, axis = pb - pa, vb - va, A @ ON_A.z
    f, m = np.zeros(3), np.zeros(3)
    length = np.linalg.norm(d)
    speed = d @ rate / length
    passing = vb - (a.rates[:3] + np.cross(wa, pb - a.pose[:3]))
    if kind == "spring":
        f = -(50 * (length - 0.2) + 3 * speed) * d / length
    elif kind == "pull":
        f = -(50 * d + 3 * rate)
    elif kind == "law":
        f = -(40 * length**3 + 2 * speed * length) * d / length
    elif kind == "bushing":
        R = A @ ON_A.axes
        turn = SO3.log(SO3.from_matrix(R.T @ B @ ON_B.axes))
        f = -R @ (np.array([9, 8, 7]) * (R.T @ d) + 0.5 * (R.T @ passing))
        hat, angle = SO3.hat(turn), np.linalg.norm(turn)
        inverse = np.eye(3) - hat / 2  # of the left Jacobian
        inverse += (1 / angle**2 - 1 / (2 * angle * np.tan(angle / 2))) * hat @ hat
        m = -R @ (inverse.T @ (np.array([3, 2, 1]) * turn) + 0.5 * (R.T @ (wb - wa)))
    elif kind == "slide":
        along = A @ ON_A.x
        f = -2 * np.tanh(along @ passing / 0.05) * along
    else:
        w = ON_B.z @ b.rates[3:] - ON_A.z @ a.rates[3:]
        effort = 2 * np.tanh(w / 0.05) + 0.3 * w
        if kind == "torsion":
            x = B @ ON_B.x
            angle = np.arctan2((A @ ON_A.y) @ x, (A @ ON_A.x) @ x)
            effort = 5 * np.arctan2(np.sin(angle - 0.3), np.cos(angle - 0.3)) + 0.4 * w
        return np.r_[0, 0, 0, effort * (A.T @ axis)], np.r_[0, 0, 0, -effort * ON_B.z]
    lever = pb if kind in ("bushing", "slide") else pa
    on_a = np.r_[-f, A.T @ (-np.cross(lever - a.pose[:3], f) - m)]
    return on_a, np.r_[f, B.T @ (np.cross(pb - b.pose[:3], f) + m)]


KINDS = ["spring", "pull", "law", "torsion", "bushing", "friction", "slide"]


@pytest.mark.usually(word=("rp",))
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("kind", KINDS)
def test_forces_are_those_by_hand(kind, word, rng):
    plain = pair(kind, rng)
    wanted = np.concatenate(by_hand(kind, plain))
    mechanism = plain.formulated(word)
    own, q = mechanism.equations, mechanism.coordinates()
    v = mechanism.velocities(q)
    found = own.action(0.0, ca.DM(q), ca.DM(v), ca.DM(0, 1), ca.DM(0, 1)).full().ravel()
    T = ca.diagcat(*(own.formulations[b].rate_map(q[own.places[b][0]]) for b in own.places))
    assert np.abs(T.full().T @ wanted - found).max() < SAME


@pytest.mark.usually(kind=("bushing",))
@pytest.mark.parametrize("kind", KINDS)
def test_slopes_are_differences_and_losses_are_the_part_of_speeds(kind, rng):
    mechanism = pair(kind, rng)
    structure = mechanism.mechanics.base.structure
    q = mechanism.coordinates()
    x, h = np.r_[q, mechanism.velocities(q)], 1e-6
    slope = np.zeros((12, 12))
    for k in range(12):
        d = h * np.eye(26)[14 + k]
        slope[:, k] = (structure.losses(x + d) - structure.losses(x - d)) / (2 * h)
    D = structure.loss_jacobian(x)
    assert D == pytest.approx((slope + slope.T) / 2, abs=1e-6)
    assert np.linalg.eigvalsh(D).min() > -1e-12
    still = structure.force(0.0, np.r_[q, np.zeros(12)], [])
    moving = structure.force(0.0, x, [])
    w, m = x[14:].reshape(2, 6)[:, 3:], np.asarray(BOX.inertia)
    gyroscopic = np.hstack([np.r_[0, 0, 0, np.cross(a, m @ a)] for a in w])
    assert moving - still + gyroscopic == pytest.approx(-structure.losses(x), abs=1e-9)


def hung(word="SO3xR3", **numbers):
    """A mass on a vertical rail, on a spring."""
    rail = Marker("ground"), Marker("mass")
    given = {"length": 0.5, "stiffness": 200.0} | numbers
    strut = mc.spring_damper("strut", Marker("ground", [0, 0, 1]), Marker("mass"), **given)
    body = MechanismBody("mass", BOX, [0, 0, 0.3, 0, 0, 0, 1])
    joints = [mc.translational("rail", *rail)]
    return Mechanism("hung", [body], joints, forces=[strut], formulation=word)


@pytest.mark.parametrize("word", ["SE3", "rp"])
def test_a_mass_on_a_spring_swings_as_it_must(word):
    mechanism = hung(word)
    system, x0 = mechanism.system(), mechanism.state()
    period = 2 * np.pi * np.sqrt(2.0 / 200.0)
    run = system.rollout(x0, dt=period / 200, steps=200)
    assert np.abs(run.x[-1] - x0).max() < 1e-6
    middle = 0.5 - 2.0 * 9.81 / 200
    assert run.x[100, 2] == pytest.approx(2 * middle - 0.3, abs=1e-6)
    energy = sum(system.quantities[f"{k}_energy"](0.0, run.x) for k in ("kinetic", "potential"))
    assert np.ptp(energy) < 1e-6
    pull = system.quantities["force_strut"](0.0, x0)
    assert pull == pytest.approx([200 * (0.7 - 0.5)])
    marched = mechanism.march(x0, period / 200, 200, generalized_alpha(0.99))
    assert marched.is_success and np.abs(marched.x[-1, 2] - 0.3) < 1e-3
    check_system(system)


def test_a_bushing_without_damping_keeps_the_energy():
    """Springs of unlike stiffness about the axes: the moment is the slope of their energy."""
    ends = Marker("ground"), Marker("mass")
    mount = mc.bushing("mount", *ends, stiffness=[20, 30, 40, 1, 5, 20])
    pose = [0.1, 0, 0.2, *SO3.exp(np.array([0.9, -0.7, 0.5]))]
    body = MechanismBody("mass", BOX, pose, [0, 0.3, 0, 1, 2, -1])
    system = (free := Mechanism("mounted", [body], forces=[mount])).system()
    run = system.rollout(free.state(), dt=1e-3, steps=1000)
    energy = sum(system.quantities[f"{k}_energy"](0.0, run.x) for k in ("kinetic", "potential"))
    assert np.ptp(energy) < 1e-6


def test_implicit_steps_go_beyond_the_limit_of_explicit_ones():
    """A damper of 1e4 1/s: rk4 is unstable from 0.28 ms, and 3 ms are no trouble."""
    stiff = hung(stiffness=2e3, damping=2e4)
    slow = (2e3 * 0.2 - 2.0 * 9.81) / 2e4  # speed at which the damper carries what is left
    system, x0, h = stiff.system(), stiff.state(speeds={"rail": slow}), 3e-3
    with pytest.warns(RuntimeWarning, match="the rollout diverged"):
        system.rollout(x0, dt=h, steps=60, method="rk4")
    exact = 0.5 - 2.0 * 9.81 / 2e3  # rest, reached with 0.1 1/s
    rate = 2e3 / 2e4
    wanted = exact + (0.3 - exact) * np.exp(-rate * 60 * h)
    for method in (implicit_euler3(), "linearly_implicit_euler"):
        end = system.rollout(x0, dt=h, steps=60, method=method).x[-1]
        assert end[2] == pytest.approx(wanted, abs=2e-5)
    marched = stiff.march(x0, h, 60, generalized_alpha(0.2))
    assert marched.is_success and marched.x[-1, 2] == pytest.approx(wanted, abs=2e-5)


def test_friction_stops_a_wheel_and_motors_follow_their_curve():
    axis = Marker("ground"), Marker("wheel")
    wheel = MechanismBody("wheel", BOX, rates=[0, 0, 0, 0, 0, 10.0])
    drag = mc.joint_friction("bearing", *axis, coulomb=0.05, width=0.01)
    J = float(np.asarray(BOX.inertia)[2, 2])
    turning = Mechanism("turning", [wheel], [mc.revolute("hinge", *axis)], forces=[drag])
    run = turning.system().rollout(turning.state(), dt=1e-3, steps=500)
    assert run.x[-1, 12] == pytest.approx(10 - 0.05 / J * 0.5, abs=1e-6)
    motor = MechanismMotor("motor", *axis, curve=lambda u, w: 0.1 * (u - 0.1 * w), unit="V")
    driven = turning.with_joints(motors=[motor])._like(forces=())
    system = driven.system(independent="hinge")
    assert [(u.name, u.unit) for u in system.inputs] == [("motor", "V")]
    lin = system.linearize(driven.state(), [2.0])
    assert lin.A[1, 1] == pytest.approx(-0.01 / J, rel=1e-9)
    assert lin.B[1, 0] == pytest.approx(0.1 / J, rel=1e-9)
    end = system.rollout(driven.state(), [2.0], 0.01, steps=800).x[-1, 12]
    assert end == pytest.approx(20.0 - 10 * np.exp(-0.01 / J * 8.0), rel=1e-6)


def test_numbers_of_forces_are_parameters():
    plain = hung(damping=4.0)
    symbolic = plain.symbolic("strut.stiffness", "strut.length", "strut.damping")
    system, x = symbolic.system(), plain.state()
    assert system.parameter_names == ("strut.stiffness", "strut.damping", "strut.length")
    other = hung(stiffness=300.0, damping=2.0, length=0.4)
    p = {"strut.stiffness": 300.0, "strut.damping": 2.0, "strut.length": 0.4}
    values = [p[name] for name in system.parameter_names]
    exact = other.system().f(0.0, x, [])
    assert system.f(0.0, x, [], values) == pytest.approx(exact, abs=1e-12)
    assert plain.with_parameters(p).system().f(0.0, x, []) == pytest.approx(exact, abs=1e-12)
    heavy = plain.with_parameters({"mass.mass": 4.0})
    assert heavy.bodies["mass"].inertia.mass == 4.0
    slow = plain.symbolic("mass.mass").dynamics(0.0, x[:7], x[7:], p=[4.0])
    assert slow.M == pytest.approx(heavy.dynamics(0.0, x[:7], x[7:]).M, abs=1e-15)
    with pytest.raises(KeyError, match="strut.stiffnes"):
        plain.symbolic("strut.stiffnes")


A, B = Marker("ground"), Marker("mass")
BAD = {
    "negative": (lambda: mc.spring_damper("s", A, B, stiffness=-1), "stiffness must not be neg"),
    "not finite": (lambda: mc.spring_damper("s", A, B, length=np.nan), "length is not finite"),
    "law and number": (
        lambda: mc.spring_damper("s", A, B, stiffness=1.0, force=lambda s, w: s),
        "give a function of displacement and speed, or numbers",
    ),
    "itself": (lambda: mc.spring_damper("s", A, A), "between 'ground' and itself"),
    "text": (lambda: mc.bushing("s", "ground", B, stiffness=1.0), "acts between markers"),
    "coordinate": (
        lambda: mc.joint_friction("s", A, B, coordinate="rx"),
        "valid names are rz, x, y, z",
    ),
    "width": (lambda: mc.joint_friction("s", A, B, width=0.0), "width must be positive"),
    "six": (lambda: mc.bushing("s", A, B, stiffness=[1, 2, 3]), "stiffness has shape"),
    "body": (
        lambda: Mechanism(
            "m",
            [MechanismBody("mass", BOX)],
            forces=[mc.bushing("s", A, Marker("rod"), stiffness=1)],
        ),
        "force 's': unknown body 'rod'; valid names are ground, mass",
    ),
    "zero length": (
        lambda: Mechanism(
            "m",
            [MechanismBody("mass", BOX)],
            forces=[mc.spring_damper("s", A, B, length=0.1, stiffness=1.0)],
        ).system(),
        "force 's' has no direction: its points on 'ground' and 'mass' coincide",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_forces_are_refused_by_name(name):
    build, message = BAD[name]
    with pytest.raises((ValueError, TypeError, KeyError), match=message):
        build()


def test_a_spring_of_length_zero_pulls_where_its_points_coincide():
    body = MechanismBody("mass", BOX, SE3.identity)
    spring = mc.spring_damper("pull", A, B, stiffness=100.0)
    free = Mechanism("free", [body], forces=[spring], gravity=[0, 0, -9.81])
    point = free.system().trim(free.state())
    assert point.x[2] == pytest.approx(-2 * 9.81 / 100)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.usually(name=("coiled", "towed"))
def test_motions_are_those_of_mujoco(name):
    """Springs and dampers along lines and about axes, stored by the benchmark of that name."""
    stored = json.loads(STORE.read_text())[name]
    for body, r in ends(CASES[name]()[0], dt=1e-3).items():
        assert r == pytest.approx(stored[body], abs=1e-8)

"""Linearized equations of motion, and natural frequencies."""

import numpy as np
import pytest

from lgcontrol.groups import Translation
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia

from . import zoo

pytestmark = pytest.mark.usually(tree=zoo.FEW)

EXACT = 1e-10  # both routes are exact: rounding of products with the inverse of M
SECOND_ORDER = 1e-3  # what is left of an error when the perturbation shrinks a thousandfold: 1e-6
KNOWN = 1e-10  # closed forms
SOLVERS = 1e-9  # relative to the fastest: the state matrix squares the spread of frequencies
G = 9.81


def trees():
    rng = np.random.default_rng(13)
    kinds = ("revolute", "cylindrical", "planar_helical", "spherical", "free", "composite")
    return {**{kind: zoo.pair(kind, rng) for kind in kinds}, "driven": zoo.driven(rng)}


TREES = trees()


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]


def error(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


def test_blocks_of_the_systems_linearization(tree, rng):
    q, v, _, tau, _ = zoo.state(tree, rng)
    M, D, K, ad_v = tree.linearized_equations(q, v, tree.forward_dynamics(q, v, tau))
    system = tree.system(input_matrix=np.eye(tree.nv))
    there = system.linearize(np.r_[q, v], tau)
    one, inverse = np.eye(tree.nv), np.linalg.inv(M)
    assert error(np.block([[-ad_v, one], [-inverse @ K, -inverse @ D]]), there.A) < EXACT
    assert error(np.vstack([0 * one, inverse]), there.B) < EXACT
    assert error(ad_v, tree.configuration.ad(v)) == 0.0


def test_error_equations_are_the_same_motion(tree, rng):
    """Both forms have the same state matrix, in (ε, δv) and in (ε, ε̇)."""
    q, v, a, _, wrenches = zoo.state(tree, rng)
    M, D, K, ad_v = tree.linearized_equations(q, v, a, wrenches)
    M2, D2, K2 = tree.linearized_error_equations(q, v, a, wrenches)
    n, ad_a = tree.nv, tree.configuration.ad(a)
    one, zero, inverse = np.eye(n), np.zeros((n, n)), np.linalg.inv(M)
    first = np.block([[-ad_v, one], [-inverse @ K, -inverse @ D]])
    second = np.block([[zero, one], [-inverse @ K2, -inverse @ D2]])
    # (ε, ε̇) = T (ε, δv), T = [[1, 0], [−ad_v, 1]] changes with a.
    T = np.block([[one, zero], [-ad_v, one]])
    T_rate = np.block([[zero, zero], [-ad_a, zero]])
    assert error((T @ first + T_rate) @ np.linalg.inv(T), second) < EXACT
    assert error(M2, M) == 0.0


def test_error_equations_against_two_motions(tree, rng):
    """ε of a neighbouring motion obeys ``M ε̈ + D ε̇ + K ε = δτ`` up to its square."""
    q, v, a, _, wrenches = zoo.state(tree, rng)
    M, D, K = tree.linearized_error_equations(q, v, a, wrenches)
    group, shape = tree.configuration, np.array(rng.normal(size=(3, tree.nv)))

    def mismatch(size):
        e0, e1, e2 = size * shape
        h = 1e-4

        def joint(t):
            own = group.plus(q, t * v + t * t / 2 * a)
            return own, group.plus(own, e0 + t * e1 + t * t / 2 * e2)

        back, here, ahead = joint(-h)[1], joint(0.0)[1], joint(h)[1]
        forward, backward = group.minus(ahead, here), group.minus(back, here)
        velocity, rate = (forward - backward) / (2 * h), (forward + backward) / h**2
        own = tree.inverse_dynamics(q, v, a, wrenches)
        other = tree.inverse_dynamics(here, velocity, rate, wrenches)
        return other - own - (M @ e2 + D @ e1 + K @ e0)

    # Size 1e-4: second order leaves 1e-8, the differences about as much.
    assert np.abs(mismatch(1e-4)).max() < SECOND_ORDER * 1e-4 * np.abs(K).max()


def test_modes_of_known_pendulums():
    m, length = 0.7, 0.4
    bob = SpatialInertia.point_mass(m, [0, 0, -length])
    tree = Multibody().add_body("upper", bob, "revolute", axis="y")
    tree = tree.add_body("lower", bob, "revolute", "upper", [0, 0, -length], axis="y")
    modes = tree.normal_modes([0.0, 0.0])
    known = np.sqrt(G / length * np.array([2 - np.sqrt(2), 2 + np.sqrt(2)]))
    assert error(modes.frequencies, known) < KNOWN
    # Absolute angles of the two modes are as 1 to ±√2; the lower joint's is relative.
    ratio = (modes.shapes[0] + modes.shapes[1]) / modes.shapes[0]
    assert error(np.sort(ratio), np.array([-np.sqrt(2), np.sqrt(2)])) < KNOWN
    assert error(modes.shapes.T @ modes.M @ modes.shapes, np.eye(2)) < KNOWN
    assert error(modes.shapes.T @ modes.K @ modes.shapes, np.diag(known**2)) < KNOWN
    assert error(np.sort(modes.poles.imag), np.r_[-known[::-1], known]) < KNOWN
    up = tree.normal_modes([np.pi, 0.0])
    assert (up.squared_frequencies < 0).all() and np.isnan(up.frequencies).all()


def test_stiff_neighbours_do_not_hide_light_and_slow_modes():
    """A bob of 0.1 g on 1 cm, a stiff slide of 1 kg, and a slide of a ton that nothing holds."""
    bob = SpatialInertia.point_mass(1e-4, [0, 0, -0.01])
    stiff = JointProperties(stiffness=1e10)
    tree = Multibody().add_body("bob", bob, "revolute", axis="y")
    tree = tree.add_body(
        "slide", SpatialInertia.point_mass(1.0), "prismatic", properties=stiff, axis="x"
    )
    tree = tree.add_body("cart", SpatialInertia.point_mass(1e3), "prismatic", axis="x")
    modes = tree.normal_modes([0.0, 0.0, 0.0])
    assert modes.squared_frequencies[0] == 0.0
    assert modes.squared_frequencies[1:] == pytest.approx([G / 0.01, 1e10], rel=KNOWN)
    assert error(modes.shapes.T @ modes.M @ modes.shapes, np.eye(3)) < KNOWN


@pytest.mark.parametrize("kind", ["revolute", "cylindrical", "composite", "light", "chain"])
def test_poles_are_the_frequencies_where_nothing_damps(kind):
    """By another solver: the eigenvalues ±i ω of the state matrix."""
    rng = np.random.default_rng(3)
    joints = zoo.JOINTS
    tree, parent, scale = Multibody(gravity=[0, 0, -0.1]), "world", {"light": 1e-4}.get(kind, 1.0)
    for i in range(4):
        spring = 10.0 ** rng.uniform(1, 5) * scale
        body = SpatialInertia.point_mass(scale, rng.normal(scale=0.2, size=3)) + SpatialInertia(
            scale, [0, 0, 0], 0.01 * scale * np.eye(3)
        )
        joint = joints[kind] if kind in joints else joints["revolute"]
        where = parent if kind == "chain" else "world"
        properties = JointProperties(stiffness=spring)
        tree = tree.add_body(str(i), body, joint, where, zoo.pose(rng), properties=properties)
        parent = str(i)
    modes = tree.normal_modes(tree.neutral)
    assert (modes.squared_frequencies > 0).all()
    assert error(np.sort(np.abs(modes.poles.imag))[::2], modes.frequencies) < SOLVERS


def test_damped_oscillator_and_spring():
    drive = JointProperties(stiffness=200.0, damping=3.0)
    mass = SpatialInertia.point_mass(2.0)
    slide = Multibody().add_body("mass", mass, "prismatic", properties=drive, axis="x")
    modes = slide.normal_modes([0.0])
    assert modes.frequencies == pytest.approx([10.0])
    known = -0.75 + 1j * np.sqrt(100 - 0.75**2)
    assert modes.poles == pytest.approx([known.conjugate(), known])
    assert "10 rad/s" in repr(modes)


def test_modes_of_a_free_body_and_of_a_spherical_pendulum():
    ball = SpatialInertia.sphere(2.0, 0.1)
    free = Multibody(gravity=[0, 0, 0]).add_body("ball", ball, "free")
    assert error(free.normal_modes(free.neutral).frequencies, np.zeros(6)) == 0.0
    bob = SpatialInertia(2.0, [0, 0, -0.5], 1e-3 * np.eye(3))
    hung = Multibody().add_body("bob", bob, "spherical")
    known = np.sqrt(2.0 * G * 0.5 / (2.0 * 0.25 + 1e-3))
    assert error(hung.normal_modes(hung.neutral).frequencies, np.array([0, known, known])) < KNOWN
    tilted = hung.configuration.exp([0.5, 0.0, 0.0])
    with pytest.raises(ValueError, match="held by a torque"):
        hung.normal_modes(tilted)


def test_modes_with_parameters_and_checks():
    bob = SpatialInertia.point_mass(2.0, [0, 0, -1.0])
    tree = Multibody().add_body("bob", bob, "revolute", axis="y").symbolic("gravity.z")
    modes = tree.normal_modes([0.0], p=[-4.0])
    assert modes.frequencies == pytest.approx([2.0])
    with pytest.raises(ValueError, match="q"):
        tree.normal_modes([0.0, 0.0])
    with pytest.raises(ValueError, match="moves no inertia"):
        Multibody().add_body("nothing", None, "revolute").normal_modes([0.0])


def test_whirling_frame_has_the_gyroscopic_terms():
    """A mass on two springs in a turning frame: ``D = 2 m Ω [[0, −1], [1, 0]]``, K − m Ω²."""
    springs = JointProperties(stiffness=[50.0, 80.0])
    tree = Multibody(gravity=[0, 0, 0]).add_body("table", SpatialInertia.sphere(5, 1), "revolute")
    mass = SpatialInertia.point_mass(2.0)
    tree = tree.add_body("mass", mass, Translation("xy"), "table", properties=springs)
    speed = 3.0
    _, D, K, _ = tree.linearized_equations(tree.neutral, [speed, 0, 0], np.zeros(3))
    assert error(D[1:, 1:], 2 * 2.0 * speed * np.array([[0, -1], [1, 0]])) < KNOWN
    assert error(K[1:, 1:], np.diag([50.0, 80.0]) - 2.0 * speed**2 * np.eye(2)) < KNOWN


def test_what_nothing_holds_has_frequency_zero(robot_file):
    """Upright axes of a robot: weight does not act on them, and rounding of K must not either."""
    arm = Multibody.from_urdf(robot_file("panda.urdf"), on_finding="ignore")
    squares = arm.normal_modes(arm.neutral).squared_frequencies
    raw = arm.linearized_equations(arm.neutral, np.zeros(arm.nv), np.zeros(arm.nv))
    assert (squares == 0.0).sum() == np.sum(np.linalg.svd(raw.K, compute_uv=False) < 1e-9)

"""Müller and Terze 2013: a configuration space for each body, and what their paper misprints."""

import json

import numpy as np
import pytest

import lgcontrol.mechanics.constrained as mc
from lgcontrol import models
from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody
from tests.benchmarks.configuration_spaces import METHODS, STORE

ROUNDING = 1e-12
CUBE = SpatialInertia.box(2.0, [0.1, 0.2, 0.3])


def hat(a):
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])


def test_misprint_of_the_exponential(rng):
    """Müller, Terze, eq. 9: the square of ω̂ is multiplied by (1 − cos|ω|)/|ω|², not over |ω|."""
    w = rng.normal(size=3)
    size, K = np.linalg.norm(w), hat(w)
    first = np.eye(3) + np.sin(size) / size * K
    exact = SO3.matrix(SO3.exp(w))
    assert first + (1 - np.cos(size)) / size**2 * K @ K == pytest.approx(exact, abs=ROUNDING)
    assert np.abs(first + (1 - np.cos(size)) / size * K @ K - exact).max() > 0.05


def test_misprint_of_the_differential_of_the_state_space(rng):
    """Müller, Terze, eq. 34: dexp of the accelerations ends in those of x'', not of x."""
    S = Product(pose=SE3, acceleration=Rn(6))
    x, other = rng.normal(size=(2, 12))
    h = 1e-6
    ahead, back = (S.minus(S.exp(x + s * h * other), S.exp(x)) for s in (1, -1))
    slope = (ahead - back) / (2 * h)
    assert S.right_jacobian(x) @ other == pytest.approx(slope, abs=1e-8)
    assert slope[6:] == pytest.approx(other[6:], abs=1e-8)
    assert np.abs(slope[6:] - x[6:]).max() > 0.1


def test_misprint_of_the_forces_of_the_double_pendulum(rng):
    """Müller, Terze, eq. 53, 54 with [ω; v]: weight in body axes is m Rᵀ g, not Rᵀ g."""
    pendulum = models.spherical_double_pendulum_mechanism().formulated("SE3")
    system, x = pendulum.system(), pendulum.state()
    frames = [SE3.matrix(pose)[:3, :3] for pose in pendulum.poses(x[:14]).values()]
    twists, m = x[14:].reshape(2, 6), 2.7
    J = np.asarray(pendulum.bodies["box1"].inertia.inertia)
    R, w, v = frames, twists[:, 3:], twists[:, :3]
    left, right, g = np.array([-0.1, 0, 0]), np.array([0.1, 0, 0]), pendulum.gravity
    none = np.zeros((3, 3))
    M = np.zeros((12, 12))
    for k in (0, 6):
        M[k : k + 3, k : k + 3], M[k + 3 : k + 6, k + 3 : k + 6] = J, m * np.eye(3)
    rows = np.block(
        [
            [-R[0] @ hat(left), R[0], none, none],
            [-R[0] @ hat(right), R[0], R[1] @ hat(left), -R[1]],
        ]
    )

    def bent(k, s):
        K = hat(w[k])
        return R[k] @ (K @ v[k] + K @ K @ s)

    eta = -np.concatenate([bent(0, left), bent(0, right) - bent(1, left)])

    def accelerations(weight):
        Q = [
            part
            for k in (0, 1)
            for part in (-np.cross(w[k], J @ w[k]), weight * R[k].T @ g - m * np.cross(w[k], v[k]))
        ]
        K = np.block([[M, rows.T], [rows, np.zeros((6, 6))]])
        solved = np.linalg.solve(K, np.concatenate([*Q, eta]))[:12].reshape(2, 6)
        return np.hstack([solved[:, 3:], solved[:, :3]]).ravel()

    found = system.f(0.0, x)[12:]
    scale = np.abs(found).max()
    assert np.abs(accelerations(m) - found).max() < 1e-12 * scale
    assert np.abs(accelerations(1.0) - found).max() > 1.0


# A configuration space for each body


@pytest.fixture(scope="module")
def pendulum():
    return models.spherical_double_pendulum_mechanism()


def test_each_body_may_have_its_own(pendulum, rng):
    """Same accelerations, multipliers and reactions, and motions with derivatives."""
    q = pendulum.coordinates()
    plain = pendulum.system(at=q)
    x = pendulum.state()
    for choice in ({"box1": "SE3", "box2": "SO3xR3"}, {"box1": "rp", "box2": "SE3"}):
        mixed = pendulum.formulated(choice)
        system, y = mixed.system(), mixed.state()
        for name in ("reaction_base_box1", "reaction_middle_box2", "kinetic_energy"):
            own, other = system.quantities[name](0.0, y), plain.quantities[name](0.0, x)
            assert own == pytest.approx(other, rel=1e-10, abs=1e-9)
        ends = []
        for each, start, made in ((pendulum, x, plain), (mixed, y, system)):
            run = made.rollout(start, dt=2e-4, steps=50)
            assert np.abs(made.invariants(run.x)).max() < 1e-12
            nq = made.state.blocks["configuration"].nq
            ends.append(np.array([*each.poses(run.x[-1][:nq]).values()])[:, :3])
        assert ends[0] == pytest.approx(ends[1], abs=1e-7)


def test_joints_to_the_ground_choose(pendulum):
    """Lower pairs leave a subgroup, a universal joint does not; other bodies change the choice."""

    def chosen(mechanism):
        return [each.name for each in mechanism.formulated("auto").formulations.values()]

    assert chosen(models.heavy_top_mechanism()) == ["SE3"]
    assert chosen(pendulum) == chosen(models.three_bar_mechanism()) == ["SO3xR3", "SO3xR3"]
    assert chosen(models.floating_pair_mechanism()) == ["SO3xR3", "SO3xR3"]
    base, body = [MechanismBody("body", CUBE)], Marker("body", [0.1, 0, 0])
    for make in (mc.revolute, mc.cylindrical, mc.translational, mc.planar, mc.fixed):
        joint = make("joint", Marker("ground", [0.1, 0, 0]), body)
        assert chosen(Mechanism("one", base, [joint])) == ["SE3"], make
    cross = mc.universal("joint", Marker("ground"), Marker("body", z=[1, 0, 0]))
    assert chosen(Mechanism("one", base, [cross])) == ["SO3xR3"]


@pytest.mark.parametrize("word", ["SE3", "SO3xR3", "both"])
def test_plain_steps_keep_the_joint_of_a_body_on_se3(pendulum, word):
    """The base joint is kept to rounding without any stabilization, whatever the other body has."""
    mechanism = pendulum.formulated({"box1": "SE3", "box2": "SO3xR3"} if word == "both" else word)
    system = mechanism.system(stabilization="none", at=mechanism.coordinates())
    run = system.rollout(mechanism.state(), dt=1e-3, steps=100)
    base = np.abs(system.invariants(run.x)[:, :3]).max()
    assert base > 1e-9 if word == "SO3xR3" else base < 1e-14


def test_bad_choices_are_refused_by_name(pendulum):
    with pytest.raises(KeyError, match="unknown body 'box3'; valid names are box1, box2"):
        pendulum.formulated({"box3": "SE3"})
    with pytest.raises(ValueError, match="no formulation of box2; give one for each body"):
        pendulum.formulated({"box1": "SE3"})
    with pytest.raises(KeyError, match="unknown formulation 'SE2'; valid names are SO3xR3, SE3"):
        pendulum.formulated({"box1": "SE2", "box2": "SE3"})


# Stabilization


def test_index_2_keeps_velocities_and_lets_positions_drift(pendulum):
    gaps = {}
    for kind in ("none", "velocity", "baumgarte", "projection"):
        system = pendulum.system(stabilization=kind, at=pendulum.coordinates(), rates=(50, 50))
        gap = np.abs(system.invariants(system.rollout(pendulum.state(), dt=2e-3, steps=100).x))
        gaps[kind] = gap[:, :6].max(), gap[:, 6:].max()
    assert gaps["projection"][0] < 1e-14 and gaps["projection"][1] < 1e-12
    assert gaps["velocity"][1] < 1e-12 < gaps["velocity"][0] < 0.2 * gaps["none"][0]
    assert gaps["baumgarte"][1] < gaps["none"][1]


def test_the_stored_comparison_says_what_the_page_says():
    """At equal error "auto" costs no more than either, but on bodies that turn about a free hub."""
    results = json.loads(STORE.read_text())
    for name, found in results.items():
        for method in METHODS:
            cost = {space: row["cost_at_equal_error"] for space, row in found[method].items()}
            if None in cost.values():
                continue
            if name != "satellite":
                assert cost["auto"] <= 1.03 * min(cost["SE3"], cost["SO3xR3"]), (name, method)
            elif method in ("variational_verlet", "implicit_euler3"):
                assert cost["SE3"] < 0.8
    three = results["three_bar"]
    at_equal_steps = [
        three[method]["SE3"]["errors"][1] / three[method]["SO3xR3"]["errors"][1]
        for method in ("rk4", "variational_verlet")
    ]
    assert at_equal_steps[0] > 3 and at_equal_steps[1] < 1 / 7


def test_charts_keep_the_constraints_in_the_stored_comparison():
    """To rounding, in all examples that it has charts of, at errors of the size of projection."""
    found = [
        (rows[f"{space} charts"], rows[f"{space} projection"])
        for rows in (example["stabilization"] for example in json.loads(STORE.read_text()).values())
        for space in ("SO3xR3", "SE3")
        if f"{space} charts" in rows
    ]
    assert len(found) == 12
    for charts, projection in found:
        assert charts["gap_m"] < 1e-14 and charts["velocity_gap"] < 1e-12
        assert charts["error_m"] < 20 * projection["error_m"]

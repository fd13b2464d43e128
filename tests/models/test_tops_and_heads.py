"""Heavy top and free box against reference motions; the pick-and-place head against statics."""

import json

import numpy as np
import pytest

from lgcontrol.groups import SO3
from lgcontrol.models import free_box, heavy_top, pick_and_place_head

ROUNDING = 1e-12
TURN = [0.0, 20 * np.pi, 10 * np.pi]

# RK4 on the group, at some 70 and 100 rad/s over 0.1 s, against motions known to more than ten
# digits: ten times the error, which falls with the fourth power of the step.
TOP_STEP, TOP_TOLERANCE = 2e-4, 2e-9
BOX_STEP, BOX_TOLERANCE = 1e-4, 1e-10


def rotation_error(x, R):
    return np.abs(SO3.log(SO3.from_matrix(np.asarray(R).T @ SO3.matrix(x)))).max()


@pytest.mark.parametrize(
    ("case", "gravity"), [("paper_no_gravity", 0.0), ("with_gravity_9.81", -9.81)]
)
def test_heavy_top_follows_the_reference(case, gravity, shared):
    samples = json.loads((shared / "reference" / "p000_heavy_top.json").read_text())["cases"][case]
    first, sample = samples["samples"][:2]
    top = heavy_top(gravity=(0, 0, gravity))
    x0 = top.state.join(pose=SO3.from_matrix(first["R"]), twist=first["omega_body"])
    np.testing.assert_allclose(top.f(0.0, x0)[3:], first["omegadot_body"], rtol=1e-12, atol=1e-9)
    steps = round(sample["t"] / TOP_STEP)
    x = top.rollout(x0, dt=TOP_STEP, steps=steps).x[-1]
    assert rotation_error(x[:4], sample["R"]) < TOP_TOLERANCE
    np.testing.assert_allclose(x[4:], sample["omega_body"], atol=70 * TOP_TOLERANCE)
    assert top.invariants(x, []) == pytest.approx(top.invariants(x0, []), rel=1e-9)


def test_heavy_top_hangs_at_rest_and_steady_precession_is_a_relative_equilibrium():
    top = heavy_top(torques=True)
    hanging = SO3.from_euler("Y", [np.pi / 2])  # x axis, with the centre of mass, downwards
    assert np.abs(top.f(0.0, top.state.join(pose=hanging, twist=np.zeros(3)))).max() < 1e-10
    # A sleeping top: x axis upwards, any spin about it.
    upwards = SO3.from_euler("Y", [-np.pi / 2])
    sleeping = top.state.join(pose=upwards, twist=[30.0, 0, 0])
    lin = top.linearize(sleeping)
    assert lin.kind == "relative equilibrium"
    # Euler's top: unstable below a spin that grows with weight and falls with slimness.
    assert np.linalg.eigvals(lin.A).real.max() > 1.0


def test_free_box_follows_the_reference(shared):
    paper = json.loads((shared / "reference" / "p001_unstable_rotation.json").read_text())["paper"]
    first, sample = paper["samples"][0], paper["samples"][1]
    box = free_box()
    twist = [0, 0, 0, *first["omega_body"]]
    x0 = box.state.join(pose=box.state.blocks["pose"].identity, twist=twist)
    x = box.rollout(x0, dt=BOX_STEP, steps=round(sample["t"] / BOX_STEP)).x[-1]
    np.testing.assert_allclose(x[10:], sample["omega_body"], atol=100 * BOX_TOLERANCE)
    assert rotation_error(x[3:7], sample["R"]) < BOX_TOLERANCE


def test_free_box_is_a_box_of_steel():
    """Moments of inertia of 0.1 m × 0.6 m × 0.3 m at 7850 kg/m³, to the digits of the source."""
    mass = 7850 * 0.1 * 0.6 * 0.3
    squares = np.array([0.1, 0.6, 0.3]) ** 2
    moments = mass / 12 * (squares.sum() - squares)
    np.testing.assert_allclose(moments, [5.2988, 1.1775, 4.3568], atol=6e-5)
    assert mass == pytest.approx(141.3)


@pytest.mark.parametrize(("axis", "is_stable"), [(0, True), (1, True), (2, False)])
def test_free_box_is_unstable_about_its_middle_axis_only(axis, is_stable):
    """Growth rate sqrt((J1 − J3)(J3 − J2)/(J1 J2)) times the spin."""
    J = np.array([5.2988, 1.1775, 4.3568])
    box = free_box()
    spin = np.zeros(6)
    spin[3 + axis] = 10.0
    lin = box.linearize(box.trim(where={"twist": spin}))
    growth = np.linalg.eigvals(lin.A).real.max()
    others = np.delete(J, axis)
    product = -(others - J[axis]).prod() / others.prod()
    expected = 0.0 if is_stable else 10 * np.sqrt(product)
    assert is_stable == (product < 0)
    # A defective eigenvalue zero (drift) comes out as the cube root of rounding errors.
    assert growth == pytest.approx(expected, abs=1e-4)


def test_head_accelerates_as_a_point_mass_and_a_disc_about_the_centre_of_mass(rng):
    """Newton and Euler in the world, about the centre of mass, independent of the twist form."""
    mass, payload, offset, J = 1.0, 0.5, np.array([0.02, 0.0, -0.05]), 0.002
    head = pick_and_place_head(friction=(0, 0, 0, 0))
    x, u = head.state.random(rng), rng.normal(size=7)
    c, s, w = x[3], x[4], x[8]
    R = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    rates = head.f(0.0, x, u)
    origin = R @ (rates[4:7] + np.cross([0, 0, w], x[5:8]))  # acceleration of the head's axis
    center = R @ (payload * offset / (mass + payload))
    turning = np.cross([0, 0, rates[7]], center) - w**2 * center * [1, 1, 0]
    force = u[:3] + u[4:] + (mass + payload) * np.array([0, 0, -9.81])
    np.testing.assert_allclose((mass + payload) * (origin + turning), force, atol=1e-10)
    about_axis = J + payload * offset[0] ** 2
    moment = about_axis * rates[7] + (mass + payload) * np.cross(center, origin)[2]
    assert moment == pytest.approx(u[3], abs=1e-10)


def test_head_reaches_the_published_acceleration():
    head = pick_and_place_head()
    u = head.full_input([head.inputs[0].upper, 0, 0, 0])
    rates = head.f(0.0, head.state.identity, u)
    assert rates[4] == pytest.approx(165.0)

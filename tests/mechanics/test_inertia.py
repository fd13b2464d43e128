"""Spatial inertias against sums over points and integrals over solids."""

import copy
import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO2, SO3
from lgcontrol.mechanics import Rotor, SpatialInertia
from lgcontrol.mechanics._internal import (
    spatial_inertia_matrix,
    spatial_inertia_matrix_from_parameters,
)

from ._bodies import inertia_of_cloud, random_cloud, random_inertia

ROUNDING = 1e-12  # some hundred roundings of numbers up to ten
QUADRATURE = 1e-10  # Gauss points integrate the squares exactly


def close(a, b, tolerance=ROUNDING):
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def same(a: SpatialInertia, b: SpatialInertia):
    close(a.matrix, b.matrix)


def point_matrix(mass, point):
    """Mass times the squared velocity of a point, as a quadratic form of the twist."""
    x, y, z = point
    velocity = np.hstack([np.eye(3), -np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])])
    return mass * velocity.T @ velocity


def test_matrix_is_the_sum_over_points(rng):
    masses, points = random_cloud(rng)
    expected = sum(point_matrix(m, r) for m, r in zip(masses, points, strict=True))
    close(inertia_of_cloud(masses, points).matrix, expected)


def test_a_sum_of_point_masses_is_their_cloud(rng):
    masses, points = random_cloud(rng)
    whole = SpatialInertia.point_mass(0.0)
    for m, r in zip(masses, points, strict=True):
        whole = whole + SpatialInertia.point_mass(m, r)
    same(whole, inertia_of_cloud(masses, points))


def gauss(low, high, count=8):
    x, w = np.polynomial.legendre.leggauss(count)
    return (low + high) / 2 + (high - low) / 2 * x, (high - low) / 2 * w


def integrate(to_point, jacobian, ranges):
    """Matrix of a solid of unit density in curvilinear coordinates."""
    nodes = [gauss(*bounds) for bounds in ranges]
    total = np.zeros((6, 6))
    for a, wa in zip(*nodes[0], strict=True):
        for b, wb in zip(*nodes[1], strict=True):
            for c, wc in zip(*nodes[2], strict=True):
                total += point_matrix(wa * wb * wc * jacobian(a, b, c), to_point(a, b, c))
    return total


def test_box_is_its_integral():
    ranges = [(-0.5, 0.5), (-1.0, 1.0), (-1.5, 1.5)]
    expected = integrate(lambda x, y, z: (x, y, z), lambda *_: 1.0, ranges)
    close(SpatialInertia.box(6.0, [1.0, 2.0, 3.0]).matrix, expected, QUADRATURE)


def test_cylinder_is_its_integral():
    # Sixteen points and more integrate sines and cosines over a turn to rounding; eight on each
    # quarter do as well.
    expected = sum(
        integrate(
            lambda r, angle, z: (r * np.cos(angle), r * np.sin(angle), z),
            lambda r, angle, z: r,
            [(0.0, 0.7), (quarter, quarter + np.pi / 2), (-1.0, 1.0)],
        )
        for quarter in np.arange(4) * np.pi / 2
    )
    mass = np.pi * 0.7**2 * 2.0
    close(SpatialInertia.cylinder(mass, radius=0.7, length=2.0).matrix, expected, QUADRATURE)


def test_sphere_is_its_integral():
    expected = sum(
        integrate(
            lambda r, angle, h: (
                r * np.sqrt(1 - h * h) * np.cos(angle),
                r * np.sqrt(1 - h * h) * np.sin(angle),
                r * h,
            ),
            lambda r, angle, h: r * r,
            [(0.0, 0.8), (quarter, quarter + np.pi / 2), (-1.0, 1.0)],
        )
        for quarter in np.arange(4) * np.pi / 2
    )
    close(SpatialInertia.sphere(4 / 3 * np.pi * 0.8**3, 0.8).matrix, expected, QUADRATURE)


def test_rod_is_a_cylinder_without_radius():
    thin = SpatialInertia.cylinder(2.0, radius=0.0, length=3.0, axis=[0, 2, 0])
    same(SpatialInertia.rod(2.0, 3.0, axis=[0, 1, 0]), thin)


def test_a_cylinder_about_another_axis_is_the_turned_one():
    upright = SpatialInertia.cylinder(2.0, 0.3, 1.0)
    turned = upright.transformed(SE3.from_euler("y", [90], degrees=True))
    same(SpatialInertia.cylinder(2.0, 0.3, 1.0, axis=[1, 0, 0]), turned)


# Ways to make the same inertia


def test_all_constructors_agree(rng):
    body = random_inertia(rng)
    same(SpatialInertia.from_matrix(body.matrix), body)
    same(SpatialInertia.from_parameters(body.parameters), body)
    same(
        SpatialInertia.about_origin(body.mass, body.center_of_mass, body.inertia_about_origin), body
    )


def test_parameters_are_in_the_documented_order():
    body = SpatialInertia(2.0, [0.1, 0.2, 0.3], np.diag([1.0, 2.0, 2.5]))
    o = body.inertia_about_origin
    expected = [2, 0.2, 0.4, 0.6, o[0, 0], o[0, 1], o[1, 1], o[0, 2], o[1, 2], o[2, 2]]
    close(body.parameters, expected)


def test_symbolic_matrices_equal_numeric_ones(rng):
    body = random_inertia(rng)
    m, c, J, phi = (
        ca.SX.sym("m"),
        ca.SX.sym("c", 3),
        ca.SX.sym("J", 3, 3),
        ca.SX.sym("phi", 10),
    )
    by_parts = ca.Function("M", [m, c, J], [spatial_inertia_matrix(m, c, J)])
    close(by_parts(body.mass, body.center_of_mass, body.inertia), body.matrix)
    linear = spatial_inertia_matrix_from_parameters(phi)
    close(ca.Function("M", [phi], [linear])(body.parameters), body.matrix)
    assert ca.jacobian(ca.vec(linear), phi).is_constant()


def test_values_compare_and_hash():
    a = SpatialInertia.box(1.0, [1, 2, 3])
    assert a == SpatialInertia.box(1.0, [1, 2, 3])
    assert hash(a) == hash(SpatialInertia.box(1.0, [1, 2, 3]))
    assert a != SpatialInertia.box(1.1, [1, 2, 3])
    assert a != 3


def test_arrays_cannot_be_changed():
    a = SpatialInertia.box(1.0, [1, 2, 3])
    with pytest.raises(ValueError, match="read-only"):
        a.inertia[0, 0] = 7.0


def test_copies_equal_the_original_and_cannot_be_changed(rng):
    body = random_inertia(rng)
    for twin in (pickle.loads(pickle.dumps(body)), copy.copy(body), copy.deepcopy(body)):
        assert twin == body and hash(twin) == hash(body)
        with pytest.raises(ValueError, match="read-only"):
            twin.center_of_mass[0] = 1.0
    impossible = SpatialInertia(1.0, np.zeros(3), np.diag([1, 1, 5]), check="ignore")
    assert pickle.loads(pickle.dumps(impossible)) == impossible


def test_frames_that_are_none_are_refused(rng):
    body = random_inertia(rng)
    with pytest.raises(ValueError, match="T_new_old = .* is no element of SE3: .* has norm 2"):
        body.transformed([0, 0, 0, 0, 0, 2, 0])
    typed = body.transformed([0, 0, 0, 0, 0, 0.7071068, 0.7071068])
    close(np.linalg.eigvalsh(typed.inertia), np.linalg.eigvalsh(body.inertia))


def test_axes_of_any_length():
    rod = SpatialInertia.rod(12.0, 1.0, axis=[3, 4, 0])
    for scale in (1e200, 1e-200):
        same(SpatialInertia.rod(12.0, 1.0, axis=[3 * scale, 4 * scale, 0]), rod)


def test_the_callers_arrays_stay_writable_and_apart():
    given = np.diag([1.0, 2.0, 2.5])
    a = SpatialInertia(1.0, np.zeros(3), given)
    given[0, 0] = 100.0
    assert a.inertia[0, 0] == 1.0


# Frames


def test_a_change_of_frame_moves_the_points(rng):
    masses, points = random_cloud(rng)
    T = SE3.random(rng)
    moved = inertia_of_cloud(masses, SE3.act(T, points))
    same(inertia_of_cloud(masses, points).transformed(T), moved)


def test_kinetic_energy_does_not_depend_on_the_frame(rng):
    body, T, V = random_inertia(rng), SE3.random(rng), rng.normal(size=6)
    V_new = SE3.Ad(T) @ V
    close(V_new @ body.transformed(T).matrix @ V_new, V @ body.matrix @ V)


def test_welding_commutes_with_a_change_of_frame(rng):
    a, b, T = random_inertia(rng), random_inertia(rng), SE3.random(rng)
    same((a + b).transformed(T), a.transformed(T) + b.transformed(T))


def test_massless_bodies_add_nothing(rng):
    body = random_inertia(rng)
    nothing = SpatialInertia(0.0, [5.0, 5.0, 5.0], np.zeros((3, 3)))
    same(body + nothing, body)
    same(nothing + body, body)
    close((nothing + nothing).matrix, np.zeros((6, 6)))


def test_only_inertias_add():
    with pytest.raises(TypeError):
        SpatialInertia.point_mass(1.0) + 1.0


def test_the_principal_frame_diagonalises(rng):
    for _ in range(20):
        body = random_inertia(rng)
        principal = body.principal()
        R = principal.axes
        close(R.T @ R, np.eye(3))
        close(np.linalg.det(R), 1.0)
        close(R @ np.diag(principal.moments) @ R.T, body.inertia)
        assert (np.diff(principal.moments) >= 0).all()
        inside = body.transformed(SE3.inverse(principal.T_body_principal))
        close(inside.matrix, np.diag([*[body.mass] * 3, *principal.moments]))


# What is refused


@pytest.mark.parametrize(
    ("mass", "inertia", "message"),
    [
        (-2.0, np.eye(3), "the mass -2 kg is negative"),
        (1.0, np.diag([-0.5, 1, 1]), "not positive definite: principal moments -0.5, 1, 1"),
        (1.0, np.diag([1, 2, 4]), r"1, 2, 4 kg m² break .* by 1 kg m² \(25 %\)"),
        (
            1.0,
            [[1, 0.2, 0], [0.1, 1, 0], [0, 0, 1]],
            r"not symmetric: entries \(0, 1\) and \(1, 0\) are 0.2 and 0.1",
        ),
        (0.0, np.eye(3), r"the mass is 0 but the inertia is not \(largest entry 1 kg m²\)"),
    ],
)
def test_impossible_bodies_are_refused_with_the_reason(mass, inertia, message):
    with pytest.raises(ValueError, match=message):
        SpatialInertia(mass, np.zeros(3), inertia)
    with pytest.warns(UserWarning, match=message):
        SpatialInertia(mass, np.zeros(3), inertia, check="warn")
    with pytest.raises(ValueError, match=message):
        SpatialInertia.about_origin(mass, np.zeros(3), inertia)
    kept = SpatialInertia(mass, np.zeros(3), inertia, check="ignore")
    close(kept.inertia, (np.array(inertia) + np.transpose(inertia)) / 2)


def test_a_triangle_hidden_in_turned_axes_is_found(rng):
    R = SO3.matrix(SO3.random(rng))
    with pytest.raises(ValueError, match=r"0.1, 0.2, 0.4 kg m² break.*25 %"):
        SpatialInertia(1.0, np.zeros(3), R @ np.diag([0.1, 0.2, 0.4]) @ R.T)


def test_every_fault_is_reported():
    bad = SpatialInertia(-1.0, np.zeros(3), np.diag([1, 1, 3]), check="ignore")
    assert len(bad.findings()) == 2


@pytest.mark.parametrize("check", ["raise", "warn", "ignore"])
@pytest.mark.parametrize(
    ("mass", "center", "inertia", "message"),
    [
        (np.nan, np.zeros(3), np.eye(3), "mass is not finite"),
        (1.0, [0, np.inf, 0], np.eye(3), "center_of_mass is not finite"),
        (1.0, np.zeros(3), np.diag([1, np.nan, 1]), r"inertia is not finite: entry \(1, 1\)"),
        (1.0, np.zeros(2), np.eye(3), r"center_of_mass has shape \(2,\), expected \(3,\)"),
        (1.0, np.zeros(3), np.eye(2), r"inertia has shape \(2, 2\), expected \(3, 3\)"),
    ],
)
def test_nonsense_is_always_refused(mass, center, inertia, message, check):
    with pytest.raises(ValueError, match=message):
        SpatialInertia(mass, center, inertia, check=check)


def test_limits_of_bodies_are_allowed():
    for body in (
        SpatialInertia(0.0, np.zeros(3), np.zeros((3, 3))),
        SpatialInertia.point_mass(1.0, [1.0, 2.0, 3.0]),
        SpatialInertia.rod(1.0, 1.0, axis=[1, 1, 1]),
        SpatialInertia(1.0, np.zeros(3), np.diag([1.0, 2.0, 3.0])),  # a plate
    ):
        assert body.findings() == ()


def test_limits_stay_allowed_far_from_the_origin(rng):
    for _ in range(20):
        far = SpatialInertia.rod(3.0, 1e-3, axis=rng.normal(size=3)).transformed(
            SE3.from_position(100.0 * rng.normal(size=3))
        )
        assert SpatialInertia.from_parameters(far.parameters).findings() == ()


def test_rounding_of_printed_inertias_passes_and_more_does_not():
    SpatialInertia(1.0, np.zeros(3), np.diag([1.0, 2.0, 3.0 * (1 + 1e-10)]))
    with pytest.raises(ValueError, match="triangle"):
        SpatialInertia(1.0, np.zeros(3), np.diag([1.0, 2.0, 3.0 * (1 + 1e-8)]))


def test_very_small_and_very_large_bodies_pass():
    for scale in (1e-200, 1e200):
        assert SpatialInertia(scale, np.zeros(3), scale * np.eye(3)).findings() == ()


def test_a_matrix_of_another_form_is_refused():
    M = SpatialInertia.box(1.0, [1, 2, 3], [0.1, 0.2, 0.3]).matrix
    for i, j in ((0, 0), (0, 1), (0, 3), (1, 5), (4, 2)):
        wrong = M.copy()
        wrong[i, j] += 0.5
        with pytest.raises(ValueError, match=r"matrix is not \[\[m 1, −m ĉ\], \[m ĉ, I\]\]"):
            SpatialInertia.from_matrix(wrong)


def test_moments_without_mass_are_refused():
    with pytest.raises(ValueError, match="the mass is 0, but m c is"):
        SpatialInertia.from_parameters([0, 1, 0, 0, 0, 0, 0, 0, 0, 0])


def test_cancelling_masses_are_refused():
    a = SpatialInertia.point_mass(1.0)
    b = SpatialInertia(-1.0, np.zeros(3), np.zeros((3, 3)), check="ignore")
    with pytest.raises(ValueError, match="cancel"):
        a + b


@pytest.mark.parametrize(
    "make",
    [
        lambda: SpatialInertia.box(1.0, [1, -2, 3]),
        lambda: SpatialInertia.sphere(1.0, -1.0),
        lambda: SpatialInertia.cylinder(1.0, 1.0, -1.0),
        lambda: SpatialInertia.rod(1.0, -1.0),
    ],
)
def test_negative_lengths_are_refused(make):
    with pytest.raises(ValueError, match="must not be negative"):
        make()


def test_a_zero_axis_is_refused():
    with pytest.raises(ValueError, match="axis must not be zero"):
        SpatialInertia.rod(1.0, 1.0, axis=[0, 0, 0])


def test_an_unknown_check_is_refused():
    with pytest.raises(ValueError, match='"raise", "warn" or "ignore"'):
        SpatialInertia(1.0, np.zeros(3), np.eye(3), check="maybe")


@pytest.mark.parametrize("axis", ["x", "y", "-z"])
def test_axes_have_letters_everywhere(axis):
    """What `add_body(axis=…)` takes, inertias, rotors and groups take."""
    given = {"x": [1, 0, 0], "y": [0, 1, 0], "-z": [0, 0, -1]}[axis]
    rod, cylinder = SpatialInertia.rod, SpatialInertia.cylinder
    for make, size in ((rod, {}), (cylinder, {"radius": 0.1})):
        ours = make(2.0, length=0.5, axis=axis, **size)
        assert np.array_equal(ours.inertia, make(2.0, length=0.5, axis=given, **size).inertia)
    assert Rotor([0, 0, 0], axis=axis).axis.tolist() == given
    assert SO2.about(axis) == SO2.about(given)
    with pytest.raises(KeyError, match="axis: unknown axis 'w'; valid names are x, y, z, -x"):
        SpatialInertia.rod(2.0, 1.0, axis="w")

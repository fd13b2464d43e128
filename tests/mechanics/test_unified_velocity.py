"""Unified local velocity coordinates: w = D v, their equations of motion, their systems."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3, SO3, check_group
from lgcontrol.integrators import generalized_alpha
from lgcontrol.mechanics import Gravity, Multibody, RigidBody, SpatialInertia, WrenchInput
from lgcontrol.mechanics.representations import UnifiedVelocity
from lgcontrol.models import spherical_double_pendulum_mechanism
from lgcontrol.systems import check_system

ROUNDING = 1e-13
DIFFERENCE = 1e-8  # of central differences with steps of 1e-5


def own_set():
    rng = np.random.default_rng(8)
    return UnifiedVelocity(rng.normal(size=(6, 3)), rng.normal(size=(6, 3)))


SETS = {
    "hexahedral": UnifiedVelocity.hexahedral(),
    "box": UnifiedVelocity.hexahedral([0.3, 0.5, 2.0]),
    "tetrahedral": UnifiedVelocity.tetrahedral(),
    "small tetrahedron": UnifiedVelocity.tetrahedral(0.2),
    "own": own_set(),
}
every_set = pytest.mark.parametrize("unified", SETS.values(), ids=SETS)


@pytest.fixture
def cloud(rng):
    """Masses and places of a body of ten points."""
    return rng.uniform(0.1, 1.0, 10), rng.normal(size=(10, 3))


def inertia_of(cloud):
    masses, places = cloud
    center = masses @ places / masses.sum()
    arms = places - center
    about = sum(m * (d @ d * np.eye(3) - np.outer(d, d)) for m, d in zip(masses, arms, strict=True))
    return SpatialInertia(masses.sum(), center, about)


def test_the_matrix_of_the_box_is_the_published_one():
    """Eq. 54, with sides that differ."""
    l1, l2, l3 = 0.3, 0.5, 2.0
    r = 1 / np.sqrt(2)
    published = r * np.array(
        [
            [1, 0, 0, 0, 0, l2],
            [-1, 0, 0, 0, 0, l2],
            [0, 1, 0, l3, 0, 0],
            [0, -1, 0, l3, 0, 0],
            [0, 0, 1, 0, l1, 0],
            [0, 0, -1, 0, l1, 0],
        ]
    )
    np.testing.assert_allclose(SETS["box"].matrix, published, rtol=0, atol=1e-16)
    assert np.linalg.det(SETS["hexahedral"].matrix) == pytest.approx(-1, abs=1e-15)


@pytest.mark.parametrize("name", ["hexahedral", "tetrahedral"])
def test_sets_of_size_one_are_orthogonal(name):
    D = SETS[name].matrix
    np.testing.assert_allclose(D @ D.T, np.eye(6), rtol=0, atol=1e-15)
    np.testing.assert_allclose(SETS[name].inverse, D.T, rtol=0, atol=1e-15)
    assert SETS[name].condition == pytest.approx(1, abs=1e-14)


def test_edges_of_the_tetrahedron_are_edges():
    """Each direction points along the edge whose midpoint it moves; all have one length."""
    unified = SETS["tetrahedral"]
    corners = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]])
    for y, b in zip(unified.points, unified.directions, strict=True):
        ends = [corner for corner in corners if corner @ y > 0]
        assert len(ends) == 2
        np.testing.assert_allclose(np.cross(ends[0] - ends[1], b), 0, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(unified.directions, axis=1), np.sqrt(0.5))


@every_set
def test_coordinates_are_speeds_of_points(unified, rng):
    v = rng.normal(size=(4, 6))
    w = unified.from_twist(v)
    for i, (y, b) in enumerate(zip(unified.points, unified.directions, strict=True)):
        speeds = (v[:, :3] + np.cross(v[:, 3:], y)) @ b
        np.testing.assert_allclose(w[:, i], speeds, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(unified.to_twist(w), v, rtol=0, atol=ROUNDING * unified.condition)


@every_set
def test_interpolation_is_the_velocity_field(unified, rng):
    v, y = rng.normal(size=6), rng.normal(size=(5, 3))
    N = unified.interpolation(y)
    field = v[:3] + np.cross(v[3:], y)
    np.testing.assert_allclose(
        N @ unified.from_twist(v), field, rtol=0, atol=ROUNDING * unified.condition
    )


def test_interpolation_of_the_box_is_the_published_one(rng):
    """Eq. 27."""
    l1, l2, l3 = 0.3, 0.5, 2.0
    y1, y2, y3 = y = rng.normal(size=3)
    rows = [
        [1 - y2 / l2, -1 - y2 / l2, 0, 0, y3 / l1, y3 / l1],
        [y1 / l2, y1 / l2, 1 - y3 / l3, -1 - y3 / l3, 0, 0],
        [0, 0, y2 / l3, y2 / l3, 1 - y1 / l1, -1 - y1 / l1],
    ]
    published = np.array(rows) / np.sqrt(2)
    np.testing.assert_allclose(SETS["box"].interpolation(y), published, rtol=0, atol=1e-14)


@every_set
def test_inertia_and_coriolis_matrix_are_the_integrals(unified, cloud, rng):
    """``M = ∫ Nᵀ N dm``, ``Γ = ∫ Nᵀ ω̂ N dm`` over a cloud of points (eq. 48, 49)."""
    inertia, w = inertia_of(cloud), rng.normal(size=6)
    turning = np.array(ca.skew(unified.to_twist(w)[3:]))
    M, gamma = np.zeros((6, 6)), np.zeros((6, 6))
    for m, y in zip(*cloud, strict=True):
        N = unified.interpolation(y)
        M += m * N.T @ N
        gamma += m * N.T @ turning @ N
    size = unified.condition**2
    np.testing.assert_allclose(unified.mass_matrix(inertia), M, rtol=0, atol=ROUNDING * size)
    found = unified.coriolis_matrix(inertia)(w)
    np.testing.assert_allclose(found, gamma, rtol=0, atol=ROUNDING * size)
    np.testing.assert_allclose(found, -found.T, rtol=0, atol=ROUNDING * size)


@every_set
def test_equations_of_motion_are_those_of_the_twist(unified, cloud, rng):
    """``M_w ẇ + Γ w = Q`` against Newton–Euler, the centre of mass off the origin."""
    inertia, v = inertia_of(cloud), rng.normal(size=6)
    point, force = rng.normal(size=(2, 3))
    W = np.concatenate([force, np.cross(point, force)])
    M = inertia.matrix
    a = np.linalg.solve(M, W + SE3.ad(v).T @ M @ v)
    w = unified.from_twist(v)
    Q = unified.generalized_force(point, force)
    left = unified.mass_matrix(inertia) @ unified.from_twist(a)
    left += unified.coriolis_matrix(inertia)(w) @ w
    np.testing.assert_allclose(left, Q, rtol=0, atol=ROUNDING * unified.condition**2)
    assert Q @ w == pytest.approx(force @ (v[:3] + np.cross(v[3:], point)), abs=1e-12)


@every_set
def test_inverse_tangent_is_the_rate_of_the_motion_vector(unified, rng):
    """``H exp(n)`` moves with w where ``ṅ = T⁻¹(n) w``: by differences along the motion."""
    n, w, h = 0.5 * rng.normal(size=6), rng.normal(size=6), 1e-5
    rate = unified.inverse_tangent(n) @ w
    moved = SE3.minus(SE3.exp(n + h * rate), SE3.exp(n - h * rate)) / (2 * h)
    np.testing.assert_allclose(
        moved, unified.to_twist(w), rtol=0, atol=DIFFERENCE * unified.condition
    )


def test_dependent_speeds_are_refused_by_name():
    good = SETS["hexahedral"]
    points = good.points.copy()
    points[1] = points[0]
    with pytest.raises(ValueError, match="speeds of points 0, 1 .counted from 0. depend on each"):
        UnifiedVelocity(points, good.directions)
    points[[3, 4, 5]] = points[[2, 2, 5]]
    directions = good.directions.copy()
    directions[[1, 3]] = directions[[0, 2]]  # two pairs, and the others stand alone
    points[4] = good.points[4]
    with pytest.raises(ValueError, match="speeds of points 0, 1; of points 2, 3 .counted"):
        UnifiedVelocity(points, directions)
    # Three forces along lines through one point of a plane: one of them follows from the others.
    points, directions = good.points.copy(), good.directions.copy()
    points[[0, 2, 4]], directions[[0, 2, 4]] = 0.0, [[1, 0, 0], [0, 1, 0], [1, 2, 0]]
    with pytest.raises(ValueError, match="points 0, 2, 4 .*at most 1e"):
        UnifiedVelocity(points, directions)
    directions = good.directions.copy()
    directions[3] = 0.0
    with pytest.raises(ValueError, match="direction of point 3 is zero"):
        UnifiedVelocity(good.points, directions)
    points = good.points.copy()
    points[1] += [1e-9, 2 - 1e-9, 0]  # close to what is above: far beyond half of the digits
    points[1] = good.points[0] + [0.0, 1e-9, 0.0]
    with pytest.raises(ValueError, match="condition number of D is"):
        UnifiedVelocity(points, good.directions)
    with pytest.raises(ValueError, match=r"shape \(5, 3\), expected \(6, 3\)"):
        UnifiedVelocity(good.points[:5], good.directions)
    assert np.isfinite(UnifiedVelocity(1e-7 * good.points, good.directions).condition)
    with pytest.raises(ValueError, match="depend"):
        UnifiedVelocity(1e-9 * good.points, good.directions)


# Systems

TUG = RigidBody(
    "tug",
    SE3,
    SpatialInertia(2.0, [0.1, -0.05, 0.2], np.diag([0.3, 0.2, 0.4])),
    [Gravity(), WrenchInput(("x", "y", "z", "rx", "ry", "rz"), lower=-40, upper=40, name="jet")],
)


@every_set
def test_the_system_is_a_system(unified):
    system = TUG.system(velocity=unified)
    check_system(system)
    assert system.inputs == TUG.system().inputs
    assert list(system.state.blocks) == ["pose", "unified_velocity"]


@every_set
def test_the_field_is_that_of_the_twist(unified, rng):
    form = TUG.velocity_form(unified)
    plain, system = TUG.system(), TUG.system(velocity=unified)
    x, u = plain.state.random(rng), rng.normal(size=6)
    y = form.from_velocity(x)
    np.testing.assert_allclose(form.to_velocity(y), x, rtol=0, atol=ROUNDING * unified.condition)
    f, g = plain.f(0.0, x, u), system.f(0.0, y, u)
    size = 100 * unified.condition
    np.testing.assert_allclose(g[:6], f[:6], rtol=0, atol=ROUNDING * size)
    np.testing.assert_allclose(unified.to_twist(g[6:]), f[6:], rtol=0, atol=ROUNDING * size)
    for name, quantity in plain.quantities.items():
        np.testing.assert_allclose(system.quantities[name](0.0, y, u), quantity(0.0, x, u))
    np.testing.assert_allclose(system.quantities["velocity"](0.0, y, u), x[7:], atol=1e-12)


@pytest.mark.parametrize("name", ["hexahedral", "tetrahedral"])
def test_linearizations_agree_through_the_map(name, rng):
    form = TUG.velocity_form(SETS[name])
    plain, system = TUG.system(), TUG.system(velocity=SETS[name])
    x, u = plain.state.random(rng), rng.normal(size=6)
    y = form.from_velocity(x)
    T = form.velocity_D_state(y)
    expected, found = plain.linearize(x, u), system.linearize(y, u)
    size = np.abs(expected.A).max()
    np.testing.assert_allclose(T @ found.A, expected.A @ T, rtol=0, atol=1e-12 * size)
    np.testing.assert_allclose(T @ found.B, expected.B, rtol=0, atol=1e-12 * size)


@pytest.mark.thorough
def test_an_mpc_answers_alike():
    """With weights that convert, the controls are those of twist coordinates."""
    unified = SETS["tetrahedral"]
    form = TUG.velocity_form(unified)
    plain, system = TUG.system(), TUG.system(velocity=unified)
    hover = plain.trim(position=[0, 0, 0])
    x = plain.state.plus(hover.x, 0.1 * np.ones(12))
    weights = np.diag([10.0] * 6 + [1.0] * 6)
    options = {"horizon": 8, "dt": 0.1, "R": 0.1}
    usual = MPC(plain, Q=weights, terminal=weights, **options)
    goal = system.trim(position=[0, 0, 0])
    np.testing.assert_allclose(goal.u, hover.u, rtol=0, atol=1e-8)
    own = form.weights(weights, goal.x)
    unusual = MPC(system, Q=own, terminal=own, **options)
    expected = usual(0.0, x, hover)
    found = unusual(0.0, form.from_velocity(x), goal)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4)


def test_other_groups_are_refused():
    top = RigidBody("top", SO3, SpatialInertia.box(1.0, [1, 1, 2]))
    with pytest.raises(ValueError, match="top: unified velocity .* on SE3, not on SO3"):
        top.system(velocity=SETS["hexahedral"])
    with pytest.raises(ValueError, match='must be "twist", "momentum" or a UnifiedVelocity'):
        TUG.system(velocity="speed")


@every_set
def test_points_accelerate_as_they_move(unified, rng):
    """Eq. 41 against second differences of a point of a body that moves with w(t)."""
    X0, w, rate = SE3.random(rng), rng.normal(size=6), rng.normal(size=6)
    point, h = rng.normal(size=3), 1e-4

    def place(t):  # to the third order in t, from w(0) and ẇ
        twist, change = unified.to_twist(w), unified.to_twist(rate)
        return SE3.act(SE3.plus(X0, t * twist + t * t * change / 2), point)

    second = (place(h) - 2 * place(0.0) + place(-h)) / h**2
    expected = SE3.matrix(X0)[:3, :3].T @ second
    found = unified.point_acceleration(point, w, rate)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)  # second differences
    spin = unified.to_twist(w)[3:]
    np.testing.assert_allclose(
        unified.basis_rates(w) @ point, np.cross(spin, point), rtol=1e-12, atol=1e-12
    )


@every_set
def test_the_equations_are_those_of_gibbs_and_appell(unified, cloud, rng):
    """Eq. 44 by its definition over the points; its derivative by ẇ is eq. 51."""
    inertia, (masses, places) = inertia_of(cloud), cloud
    w, rate = rng.normal(size=(2, 6))
    gibbs = unified.gibbs_function(inertia)
    accelerations = unified.point_acceleration(places, w, rate)
    definition = masses @ (accelerations**2).sum(axis=1) / 2
    np.testing.assert_allclose(gibbs(w, rate), definition, rtol=1e-11)
    a = ca.SX.sym("a", 6)
    by_rate = ca.Function("Q", [a], [ca.gradient(gibbs(ca.SX(ca.DM(w)), a), a)])
    Q = unified.mass_matrix(inertia) @ rate + unified.coriolis_matrix(inertia)(w) @ w
    np.testing.assert_allclose(by_rate(rate).full()[:, 0], Q, rtol=1e-10, atol=1e-10)


def test_the_basis_rates_of_the_box_are_the_published_ones(rng):
    """Eq. 40 with sides that differ."""
    (l1, l2, l3), w = (0.3, 0.5, 2.0), rng.normal(size=6)
    about_x, about_y, about_z = (w[2] + w[3]) / l3, (w[4] + w[5]) / l1, (w[0] + w[1]) / l2
    published = np.array(
        [[0, -about_z, about_y], [about_z, 0, -about_x], [-about_y, about_x, 0]]
    ) / np.sqrt(2)
    np.testing.assert_allclose(SETS["box"].basis_rates(w), published, rtol=1e-12, atol=1e-14)


# Trees with a free base


LINKS = {
    "base": inertia_of((np.arange(1.0, 5.0), np.eye(4, 3))),
    "upper": SpatialInertia.box(1.0, [0.2, 0.3, 0.4], center_of_mass=[0.1, 0, -0.2]),
    "lower": SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5]),
}


def crane():
    """A free base with a ball joint and a revolute one; no weight."""
    tree = Multibody("crane", gravity=(0, 0, 0)).add_body("base", LINKS["base"], "free")
    tree = tree.add_body("upper", LINKS["upper"], "spherical", "base", [0, 0, -0.2])
    return tree.add_body("lower", LINKS["lower"], "revolute", "upper", [0, 0, -0.4], axis="y")


def gibbs_of(tree):
    """Energy of acceleration of all links, each by its own function (eq. 44) of its own twist."""
    functions = {link: SETS["box"].gibbs_function(own) for link, own in LINKS.items()}
    D = SETS["box"].matrix

    def total(q, v, a):
        found = 0.0
        for link, function in functions.items():
            J = tree.jacobian(link)(q)
            found += function(D @ J @ v, D @ (J @ a + tree.jacobian_rate(link)(q, v) @ v))
        return float(found)

    return total


@pytest.mark.usually(unified=(SETS["box"], SETS["own"]))
@pytest.mark.parametrize("unified", SETS.values(), ids=SETS)
def test_trees_obey_the_equations_of_gibbs_and_appell(unified, rng):
    """∂G/∂ẇ = Q with G the sum over the links: neither mass matrix nor recursion is in it."""
    tree = crane()
    system, form = tree.system(velocity=unified), tree.velocity_form(unified)
    assert list(system.state.blocks) == ["configuration", "unified_velocity"]
    assert system.state.tangent_names[tree.nv :][:2] == (
        "unified_velocity.w1",
        "unified_velocity.w2",
    )
    x, tau = tree.system().state.random(rng), rng.normal(size=4)
    q, v = x[: tree.nq], x[tree.nq :]
    y = form.from_velocity(x)
    np.testing.assert_allclose(form.to_velocity(y), x, rtol=0, atol=ROUNDING * unified.condition)
    rate = system.f(0.0, y, tau)[tree.nv :]
    back = np.eye(tree.nv)
    back[:6, :6] = unified.inverse  # v = back w
    G = gibbs_of(tree)
    slope = [(G(q, v, back @ (rate + e)) - G(q, v, back @ (rate - e))) / 2 for e in np.eye(tree.nv)]
    size = np.abs(rate).max() * unified.condition**2
    np.testing.assert_allclose(slope, [*np.zeros(6), *tau], rtol=0, atol=1e-11 * size)


def test_a_tree_of_one_body_is_the_body(rng):
    unified = SETS["box"]
    tree = Multibody("tug", gravity=(0, 0, -9.81)).add_body("tug", TUG.inertia, "free")
    body = RigidBody("tug", SE3, TUG.inertia, [Gravity()]).system(velocity=unified)
    system = tree.system(velocity=unified)
    check_system(system)
    y = body.state.random(rng)
    np.testing.assert_allclose(system.f(0.0, y), body.f(0.0, y), rtol=0, atol=1e-11)
    run, own = (one.rollout(y, dt=1e-2, steps=20).x for one in (system, body))
    np.testing.assert_allclose(run, own, rtol=0, atol=1e-11)


def test_trees_keep_inputs_quantities_and_what_they_cannot_is_said(rng):
    tree = crane()
    plain, system = tree.system(), tree.system(velocity=SETS["tetrahedral"])
    form = tree.velocity_form(SETS["tetrahedral"])
    assert system.inputs == plain.inputs
    x, u = plain.state.random(rng), np.zeros(plain.n_inputs)
    y = form.from_velocity(x)
    for name, quantity in plain.quantities.items():
        np.testing.assert_allclose(system.quantities[name](0.0, y, u), quantity(0.0, x, u))
    np.testing.assert_allclose(system.quantities["velocity"](0.0, y, u), x[tree.nq :], atol=1e-12)
    fixed = Multibody("arm").add_body("rod", TUG.inertia, "revolute", axis="y")
    with pytest.raises(ValueError, match="arm: unified velocity .* free base, .* free the base"):
        fixed.system(velocity=SETS["box"])
    with pytest.raises(ValueError, match='"velocity", "momentum" or a UnifiedVelocity, not'):
        fixed.system(velocity="speed")


# Mechanisms


@every_set
def test_motions_in_these_coordinates_are_a_group(unified, rng):
    group = unified.group
    if unified.condition < 1.01:  # other sets stretch samples beyond half a turn
        check_group(group, samples=5)
    assert group == UnifiedVelocity(unified.points, unified.directions).group
    w = rng.normal(size=6)
    np.testing.assert_allclose(group.exp(w), SE3.exp(unified.inverse @ w), atol=1e-12)
    # eq. 72, on increments of SE(3)
    expected = unified.matrix @ unified.inverse_tangent(unified.inverse @ w)
    np.testing.assert_allclose(
        group.right_jacobian_inverse(w), expected, atol=1e-10 * unified.condition
    )


@pytest.mark.usually(name=("box",))
@pytest.mark.parametrize("name", ["box", "own"])
def test_mechanisms_take_them_as_a_formulation(name, rng):
    """Accelerations and multipliers are those of SE(3); M is eq. 48 of each body."""
    unified, plain = SETS[name], spherical_double_pendulum_mechanism()
    ours, twists = plain.formulated(unified), plain.formulated("SE3")
    D = np.kron(np.eye(2), unified.matrix)
    q = twists.coordinates()
    v = twists.velocities(q)
    np.testing.assert_allclose(ours.velocities(q), D @ v, atol=1e-10)
    expected = [unified.mass_matrix(body.inertia) for body in plain.bodies.values()]
    M = np.array(ca.DM(ours.equations.mass_matrix(ca.DM(q), ca.DM(0, 1))))
    for k, block in enumerate(expected):
        np.testing.assert_allclose(M[6 * k : 6 * k + 6, 6 * k : 6 * k + 6], block, atol=1e-12)
    systems = [made.system(stabilization="none", at=q) for made in (ours, twists)]
    rate, own = (
        systems[0].f(0.0, np.r_[q, D @ v])[12:],
        systems[1].f(0.0, np.r_[q, v])[12:],
    )
    np.testing.assert_allclose(rate, D @ own, atol=1e-8 * np.abs(own).max())
    run, other = (s.rollout(x, dt=1e-3, steps=50).x[-1] for s, x in zip(
        systems, (np.r_[q, D @ v], np.r_[q, v]), strict=True))  # fmt: skip
    np.testing.assert_allclose(run[:14], other[:14], atol=1e-10)


def test_implicit_steps_and_choices_by_body_take_them(tmp_path):
    plain = spherical_double_pendulum_mechanism()
    ours = plain.formulated({"box1": SETS["box"], "box2": "SE3"})
    assert [own.name for own in ours.formulations.values()] == ["unified", "SE3"]
    runs = [
        made.march(made.state(), 1e-3, 20, generalized_alpha(0.9))
        for made in (ours, plain.formulated("SE3"))
    ]
    assert all(run.is_success for run in runs)
    np.testing.assert_allclose(runs[0].multipliers, runs[1].multipliers, rtol=0, atol=1e-5)
    np.testing.assert_allclose(runs[0].x[-1][:14], runs[1].x[-1][:14], atol=1e-9)
    with pytest.raises(ValueError, match="the formulation 'unified' of the body 'box1'"):
        ours.to_json(tmp_path / "ours.json")

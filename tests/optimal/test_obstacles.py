"""Obstacles, cones and rates of inputs as bounds: geometry by brute force, plans by IPOPT."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO3, Product, Rn
from lgcontrol.mechanics import LinkCapsules
from lgcontrol.models import quadrotor, ur5_tree
from lgcontrol.optimal import (
    Bound,
    Capsule,
    Cone,
    HalfSpace,
    OptimalControlProblem,
    Sphere,
    keep_out,
)
from lgcontrol.systems import Input, System, check_system
from lgcontrol.systems._internal import squared_distance, with_input_rates


def points_of(ends, n=41):
    return ends[:, :1] + np.linspace(0, 1, n) * (ends[:, -1:] - ends[:, :1])


@pytest.mark.parametrize("kind", ["point", "segment", "parallel"])
def test_distances_of_segments_are_those_of_their_nearest_points(kind, rng):
    for _ in range(20):
        a, b = rng.normal(size=(3, 2)), rng.normal(size=(3, 1 if kind == "point" else 2))
        if kind == "parallel":
            b = (
                rng.normal(size=(3, 1))
                + np.c_[np.zeros(3), rng.uniform(-2, 2) * (a[:, 1] - a[:, 0])]
            )
        found = float(squared_distance(ca.DM(a), ca.DM(b)))
        gaps = points_of(a)[:, :, None] - points_of(b)[:, None, :]
        brute = (gaps**2).sum(axis=0).min()
        assert brute * 0.97 - 1e-2 < found <= brute + 1e-12
        assert float(squared_distance(ca.DM(b), ca.DM(a))) == pytest.approx(found, abs=1e-9)


def test_clearance_is_metres_near_contact(rng):
    moved = ca.SX.sym("x", 3)
    for obstacle in (
        Sphere([1, 2, 3], 0.5), Capsule([0, 0, 0], [1, 1, 0], 0.3), HalfSpace([0, 0, 1], [0, 0, 2]),
    ):  # fmt: skip
        bound = keep_out(lambda t, x, u, p: x, obstacle, radius=0.1)
        function = ca.Function("g", [moved], [bound.of(0, moved, None, None)])
        slope = ca.Function("slope", [moved], [ca.jacobian(function(moved), moved)])
        x = np.array([0.3, 0.4, 2.0])
        for _ in range(30):  # onto the surface
            J = slope(x).full().ravel()
            x = x - float(function(x)) * J / (J @ J)
        assert abs(float(function(x))) < 1e-9
        assert np.linalg.norm(slope(x).full()) == pytest.approx(1.0, abs=1e-6)
        away = x + 0.01 * slope(x).full().ravel()
        assert float(function(away)) == pytest.approx(0.01, rel=0.05)


@pytest.mark.parametrize(
    ("obstacle", "distance"),
    [
        (Sphere([1, 2, 3], 0.5), lambda x: np.linalg.norm(x - [1, 2, 3]) - 0.5),
        (
            Capsule([0, 0, 0], [0, 0, 1], 0.3),
            lambda x: np.hypot(np.hypot(x[0], x[1]), max(-x[2], 0, x[2] - 1)) - 0.3,
        ),
        (HalfSpace([0, 0, 1], [0, 3, 4]), lambda x: (x - [0, 0, 1]) @ [0, 0.6, 0.8]),
    ],
    ids=["sphere", "capsule", "half-space"],
)
@pytest.mark.parametrize("margin", [0.0, 0.25, "a parameter"])
def test_a_body_touches_where_its_surface_meets_the_obstacle(obstacle, distance, margin, rng):
    """The bound vanishes exactly where the body's centre is one radius from the obstacle."""
    radius = (lambda t, p: p[0]) if isinstance(margin, str) else margin
    size = 0.4 if isinstance(margin, str) else margin
    bound, p = keep_out(lambda t, x, u, p: x, obstacle, radius=radius), ca.DM([0.4])
    for x in rng.normal(size=(20, 3)) * 3:
        clearance = float(bound.of(0, ca.DM(x), None, p))
        gap = distance(x) - size
        assert (clearance > 0) == (gap > 0)
        if isinstance(obstacle, HalfSpace):
            assert clearance == pytest.approx(gap, abs=1e-12)
            ends = ca.horzcat(ca.DM(x), ca.DM(x + [0, 0, 2.0]))
            both = keep_out(lambda t, x, u, p, e=ends: e, obstacle, radius=radius)
            rows = both.of(0, ca.DM(x), None, p).full().ravel()
            assert rows == pytest.approx([gap, gap + 1.6], abs=1e-12)


def test_a_plan_keeps_its_radius_off_a_wall(cart):
    wall = HalfSpace([0, 1.0], [0, -1])
    problem = OptimalControlProblem(
        cart, 15, 0.2, Q={"place": 1, "speed": 0.1}, R=0.1, reference=[1.0, 1.5, 0, 0],
        bounds=[keep_out(place, wall, radius=0.3)],
    )  # fmt: skip
    found = problem.solve(np.zeros(4))
    assert found.is_success and found.x[:, 1].max() == pytest.approx(0.7, abs=1e-4)


@pytest.fixture(scope="module")
def cart():
    pushes = [Input(name, "", -3, 3) for name in ("fx", "fy")]
    group = Product(place=Rn(2), speed=Rn(2))
    return System("cart", group, lambda t, x, u, p: ca.vertcat(x[2:], u), inputs=pushes)


def place(t, x, u, p):
    return x[:2]


def test_a_plan_goes_around_what_is_in_its_way_and_ends_where_ipopt_does(cart):
    bounds = [
        keep_out(place, Sphere([1.0, 0.1], 0.4), radius=0.1),
        keep_out(place, Capsule([2.2, -1.0], [2.2, -0.1], 0.2)),
        keep_out(place, HalfSpace([0, 1.0], [0, -1])),
    ]
    problem = OptimalControlProblem(
        cart, 40, 0.1, Q={"place": 1, "speed": 0.1}, R=0.1, reference=[3.0, 0, 0, 0], bounds=bounds
    )
    found = problem.solve(np.zeros(4))
    assert found.is_success, found.message
    x = found.x[:, :2]
    assert np.hypot(*(x - [1.0, 0.1]).T).min() > 0.5 - 1e-6 and x[:, 1].max() < 1 + 1e-6
    along = np.clip(x[:, 1], -1.0, -0.1)  # the nearest place of the capsule's axis
    assert np.hypot(x[:, 0] - 2.2, x[:, 1] - along).min() > 0.2 - 1e-6
    other = problem.solve(np.zeros(4), solver="ipopt", guess=found)
    assert found.cost <= 1.001 * other.cost


def test_a_place_that_is_a_parameter_compiles_nothing(cart):
    pole = Sphere(lambda t, p: p[:2] + ca.vertcat(0, 0.1 * t), 0.4)
    problem = OptimalControlProblem(
        cart, 20, 0.15, Q={"place": 1, "speed": 0.1}, R=0.1, reference=[2.0, 0, 0, 0],
        bounds=[keep_out(place, pole)], parameters=["pole.x", "pole.y"],
    )  # fmt: skip
    for at in ([1.0, 0.1], [1.2, -0.2]):
        found = problem.solve(np.zeros(4), p={"pole.x": at[0], "pole.y": at[1]})
        gap = np.hypot(*(found.x[1:, :2] - at - np.outer(found.t[1:], [0, 0.1])).T)
        assert found.is_success and 0.4 - 1e-6 < gap.min() < 0.5


def test_a_boresight_goes_around_the_sun():
    torques = [Input(f"m{i}", "", -0.2, 0.2) for i in range(3)]
    body = System(
        "body", Product(q=SO3, w=Rn(3)), lambda t, x, u, p: ca.vertcat(x[4:], u), inputs=torques
    )

    def boresight(t, x, u, p):
        return SO3.act(x[:4], ca.DM([0, 0, 1]))

    angle = np.deg2rad(25)
    sun = Cone([np.sin(0.9), 0.15, np.cos(0.9)], angle)
    goal = body.state.join(q=SO3.exp([0, 1.8, 0]))
    problem = OptimalControlProblem(
        body, 40, 0.25, Q={"q": 1, "w": 0.1}, R=1, reference=goal, bounds=[sun.outside(boresight)]
    )
    found = problem.solve(body.state.identity)
    assert found.is_success, found.message
    axis = np.array(sun.axis) / np.linalg.norm(sun.axis)
    cosines = SO3.act(found.x[:, :4], [0, 0, 1]) @ axis
    assert np.cos(angle) - 0.05 < cosines.max() < np.cos(angle) + 1e-6
    held = Cone([0, 0, 1], angle).inside(boresight)
    assert held.lower == pytest.approx(np.cos(angle)) and held.upper == np.inf


def test_angles_normals_and_margins_are_parameters():
    """As functions they say what numbers do, and another value is no other function."""
    t, x, u, p = 0.0, ca.SX.sym("x", 3), ca.SX.sym("u", 1), ca.SX.sym("p", 3)
    sky, angle = Cone([0, 0, 1], lambda t, p: p[0]), 0.4
    fixed, direction = Cone([0, 0, 1], angle), lambda t, x, u, p: x
    wall = HalfSpace([0, 0, 1], lambda t, p: ca.vertcat(0, p[1], p[2]))
    pairs = [
        (sky.inside(direction), fixed.inside(direction)),
        (sky.outside(direction), fixed.outside(direction)),
        (sky.force_inside(direction), fixed.force_inside(direction)),
        (
            keep_out(direction, wall, radius=lambda t, p: p[0]),
            keep_out(direction, HalfSpace([0, 0, 1], [0, 3, 4]), radius=angle),
        ),
    ]
    point, values = [0.2, -0.3, 0.8], [angle, 0.6, 0.8]
    for free, given in pairs:
        excess = [
            ca.Function("f", [x, u, p], [bound.of(t, x, u, p)])(point, 0, values).full()
            - (bound.lower if np.isfinite(bound.lower) else bound.upper)
            for bound in (free, given)
        ]
        np.testing.assert_allclose(*excess, atol=1e-14)
        assert np.isfinite(free.lower) == np.isfinite(given.lower)


def test_forces_stay_in_their_cone():
    rows = Cone([0, 0, 2], np.pi / 4).force_inside(lambda t, x, u, p: u).of
    for force, inside in (
        ([0, 0.9, 1], True),
        ([0, 1.1, 1], False),
        ([0, 0, -1], False),
        ([0] * 3, True),
    ):
        assert (rows(0, None, ca.DM(force), None).full() >= 0).all() == inside


def test_links_keep_clear_of_each_other():
    tree = ur5_tree()
    links = [link for link in tree.bodies][1:4]
    arm = LinkCapsules(tree, {name: ([0, 0, 0], [0, 0, 0.1], 0.05) for name in links})
    q = np.array([0.3, -1.0, 1.2, 0.4, 0.5, 0.1])
    (a, b) = arm.pairs[0]
    ends = [arm.ends(name)(0, ca.DM(q), None, None).full() for name in (a, b)]
    start = tree.position(a)(q)
    np.testing.assert_allclose(ends[0][:, 0], start, atol=1e-12)
    d = np.sqrt(float(squared_distance(*map(ca.DM, ends))))
    rows = arm.self_clearance(margin=0.02)(0, ca.DM(q), None, None)
    assert float(rows[0]) == pytest.approx((d**2 - 0.12**2) / 0.24)
    with pytest.raises(ValueError, match="unknown frame with a capsule 'hand'"):
        arm.ends("hand")
    with pytest.raises(ValueError, match="unknown frame 'hand'"):
        LinkCapsules(tree, {"hand": ([0, 0, 0], [0, 0, 1], 0.1)})


def test_links_of_a_parametric_tree_move_with_its_parameters():
    """The system's parameters come first in p; those of the problem follow."""
    tree = ur5_tree()
    link, name = list(tree.bodies)[3], "elbow_joint.placement.x"
    free = tree.symbolic(name)
    nominal = free.system().nominal_parameters[0]
    longer = tree.with_parameters({name: nominal + 0.1})
    q, capsules = np.full(6, 0.3), {link: ([0, 0, 0], [0, 0, 0.1], 0.05)}
    p = ca.DM([nominal + 0.1, 7.0])

    def tip(one):
        return np.array(LinkCapsules(one, capsules).ends(link)(0, ca.DM(q), None, p))

    ends = [tip(one) for one in (free, longer)]
    np.testing.assert_allclose(*ends, atol=1e-12)
    assert np.abs(ends[0] - tip(tree)).max() > 0.05


# Rates of inputs


def test_rates_are_controls_and_inputs_keep_their_limits(cart):
    smooth = with_input_rates(cart, [4.0, 3.0])
    check_system(smooth)
    problem = OptimalControlProblem(
        smooth, 30, 0.1, Q={"place": 1, "speed": 0.1, "input": 0.1}, R=1e-2,
        reference=[1.0, 0.5, 0, 0, 0, 0], bounds=[Bound("input")],
    )  # fmt: skip
    start = np.array([-2.0, 0, 0, 0, 0, 0])
    found = problem.solve(start)
    assert found.is_success
    assert np.abs(found.u).max(axis=0) == pytest.approx([4, 3], rel=1e-3)
    assert np.abs(found.x[:, 4:]).max() <= 3 + 1e-6
    np.testing.assert_allclose(np.diff(found.x[:, 4:], axis=0), 0.1 * found.u, atol=1e-8)
    assert found.cost <= 1.001 * problem.solve(start, solver="ipopt").cost
    quad = with_input_rates(quadrotor(), 40.0)
    assert quad.input_names[4:] == quadrotor().input_names[4:] and quad.state.dim == 16


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: keep_out(place, Sphere([0, 0], 1.0), radius=-1.0), "radius must be positive"),
        (lambda: keep_out("boat", Sphere([0, 0], 1.0)), "body must be a function, got 'boat'"),
        (lambda: Sphere([0, 0], 0.0), "radius must be positive"),
        (lambda: Sphere([0, 0], "r"), "radius must be a number or a function, got 'r'"),
        (lambda: Cone([0, 0, 1], "tilt"), "half_angle must be a number or a function, got 'tilt'"),
        (lambda: Capsule([0, 0], [1, 0], np.nan), "radius must be positive"),
        (lambda: Capsule([0, 0], [1, np.inf], 1.0), "end is not finite"),
        (lambda: Capsule([0, 0], [1, 0, 0], 1.0), "start of 2, end of 3"),
        (lambda: HalfSpace([0.0], [1.0]), "in the plane or in space"),
        (lambda: keep_out(place, Sphere([0, 0, 0], 1)).of(0, ca.DM([1, 1]), 0, 0), "the body has"),
        (lambda: HalfSpace([0, 0], [0, 0]), "normal must not be zero"),
        (
            lambda: keep_out(place, HalfSpace([0, 0, 0], [0, 0, 1])).of(0, ca.DM([1, 1]), 0, 0),
            "the body has",
        ),
        (lambda: Cone([0, 0, 1], 4.0), "half_angle must be between"),
        (lambda: Cone([0, 0, 0], 1.0), "axis must not be zero"),
        (
            lambda: Cone([0, 0, 1], 2.0).force_inside(place),
            "narrower than .* got half_angle = 2 rad",
        ),
    ],
)
def test_faults_are_named(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()

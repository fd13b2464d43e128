"""Smooth references: exact derivatives on every group, what jumps and when, least snap, fits."""

import casadi as ca
import numpy as np
import pytest
from scipy.interpolate import BSpline as SciPySpline
from scipy.interpolate import make_interp_spline

from lgcontrol.groups import (
    SE2,
    SE3,
    SE23,
    SO2,
    SO3,
    Cylindrical,
    Helical,
    PlanarHelical,
    Product,
    Rn,
    Schoenflies,
    Translation,
)
from lgcontrol.optimal._internal import sample_reference
from lgcontrol.systems import (
    BSpline,
    ScrewMotion,
    SmoothReference,
    System,
    Trajectory,
    Waypoints,
    check_system,
)

GROUPS = {
    str(G): G
    for G in (
        SO3, SE3, SO2, SE2, SE23, Schoenflies.about((1, 2, -3)), Cylindrical, Helical(0.3),
        PlanarHelical(0.2), Translation("xz"), Rn(3), Product(pose=SE2, arm=Rn(2)),
    )
}  # fmt: skip
pytestmark = pytest.mark.usually(name=["SO3", "SE3", "SO2", "Rn(3)"])
DERIVATIVES = ("velocity", "acceleration", "jerk", "snap")
SAME = 1e-11
STEP = 1e-4  # s; central differences then miss by STEP² of the third derivative
DIFFERENCE = 1e-5  # of the size of what is differentiated


def assert_derivatives_are_exact(motion, times):
    """Each derivative is the central difference of the one below, the first of the place."""
    group = motion.group
    for t in times:
        here, before, after = motion(t), motion(t - STEP), motion(t + STEP)
        found = group.minus(after.x, before.x) / (2 * STEP)
        for name in DERIVATIVES:
            value = getattr(here, name)
            np.testing.assert_allclose(found, value, atol=DIFFERENCE * (1 + np.abs(value).max()))
            found = (getattr(after, name) - getattr(before, name)) / (2 * STEP)


@pytest.mark.parametrize("name", GROUPS)
def test_derivatives_of_any_product_of_exponentials(name, rng):
    group = GROUPS[name]
    coefficients = 0.5 * rng.normal(size=(2, 3, group.dim, 6))
    motion = SmoothReference(group, [0.0, 1.0, 2.5], group.random(rng, (2,)), coefficients)
    assert_derivatives_are_exact(motion, [0.3, 0.8, 1.7])


@pytest.mark.parametrize("name", GROUPS)
def test_derivatives_where_an_exponential_begins(name, rng):
    group = GROUPS[name]
    rates = rng.normal(size=(group.dim, 5))
    forward = np.concatenate([np.zeros((group.dim, 1)), rates], axis=-1)
    backward = forward * (-1.0) ** np.arange(6)
    start = group.random(rng)
    # The same polynomial before and after t = 1, where it is zero.
    motions = [SmoothReference(group, [0, 1], [start], [[c]]) for c in (forward, backward)]
    here, h = motions[0](0.0), STEP
    after, before = motions[0](h), motions[1](h)
    np.testing.assert_allclose(group.minus(after.x, before.x) / (2 * h), here.velocity, atol=1e-5)
    for i, below in enumerate(DERIVATIVES[:-1]):
        # Time runs backwards in the second: odd derivatives have the other sign.
        pair = getattr(after, below), (-1) ** (i + 1) * getattr(before, below)
        slope = (pair[0] - pair[1]) / (2 * h)
        np.testing.assert_allclose(slope, getattr(here, DERIVATIVES[i + 1]), rtol=1e-4, atol=1e-3)


def test_a_turn_about_a_turning_axis_against_closed_forms():
    """R = exp(a t e_z) exp(b t e_x): ω = b e_x + a Rx(bt)ᵀ e_z, and its derivatives by hand."""
    a, b, t = 0.7, -1.3, 0.9
    spin = np.array([[[0, 0], [0, 0], [0, 2 * a]], [[0, 2 * b], [0, 0], [0, 0]]])
    point = SmoothReference(SO3, [0, 2], [SO3.identity], [spin])(t)
    s, c = np.sin(b * t), np.cos(b * t)
    np.testing.assert_allclose(point.velocity, [b, a * s, a * c], atol=SAME)
    np.testing.assert_allclose(point.acceleration, [0, a * b * c, -a * b * s], atol=SAME)
    np.testing.assert_allclose(point.jerk, [0, -a * b**2 * s, -a * b**2 * c], atol=SAME)
    np.testing.assert_allclose(point.snap, [0, -a * b**3 * c, a * b**3 * s], atol=SAME)


def test_a_helix_keeps_its_twist(rng):
    twist = rng.normal(size=6)
    motion = ScrewMotion(SE3, SE3.random(rng), twist, 3.0, t=1.0)
    point = motion([1.0, 2.3, 4.0])
    np.testing.assert_allclose(point.velocity, np.tile(twist, (3, 1)), atol=SAME)
    for name in DERIVATIVES[1:]:
        np.testing.assert_allclose(getattr(point, name), 0, atol=SAME)
    assert [(jump.t, jump.derivative) for jump in motion.jumps] == [
        (1.0, "velocity"), (4.0, "velocity"),
    ]  # fmt: skip
    np.testing.assert_allclose(motion.jumps[1].change, -twist, atol=SAME)
    assert motion.smoothness == 0 and (motion([0.9, 4.1]).velocity == 0).all()


# Waypoints


@pytest.mark.parametrize("order", [1, 3, 5, 7, 9, 11])
def test_waypoints_are_reached_at_rest(order, rng):
    poses, t = SE3.random(rng, (3,)), np.array([0.0, 1.0, 3.0])
    motion = Waypoints(SE3, t, poses, order)
    np.testing.assert_allclose(SE3.minus(motion(t).x, poses), 0, atol=SAME)
    kept = min((order - 1) // 2, 4)
    assert motion.smoothness == kept
    size = np.abs(motion(np.linspace(0, 3, 50)).snap).max()
    for name in DERIVATIVES[:kept]:
        np.testing.assert_allclose(
            getattr(motion([-1.0, *t, 5.0]), name), 0, atol=1e-12 * (1 + size)
        )
    if kept < 4:
        assert {jump.derivative for jump in motion.jumps} == {DERIVATIVES[kept]}
        assert [jump.t for jump in motion.jumps] == list(t)
    assert_derivatives_are_exact(motion, [0.2, 0.7, 1.4, 2.9])


@pytest.mark.usually(name=["SO3", "SE2", "Rn(3)"], order=[3, 7, 9])
@pytest.mark.parametrize("order", [3, 5, 7, 9])
@pytest.mark.parametrize("name", GROUPS)
def test_passing_motions_are_smooth_at_waypoints(name, order, rng):
    group, t = GROUPS[name], np.array([0.0, 1.0, 1.6, 3.0])
    points = group.exp(rng.normal(size=(4, group.dim)))
    start = rng.normal(size=group.dim)
    motion = Waypoints(group, t, points, order, stops=False, start=[start])
    np.testing.assert_allclose(group.minus(motion(t).x, points), 0, atol=1e-10)
    np.testing.assert_allclose(motion(0.0).velocity, start, atol=SAME)
    inner = [DERIVATIVES.index(jump.derivative) for jump in motion.jumps if 0 < jump.t < 3]
    assert min(inner, default=4) >= (order - 1) // 2
    assert np.abs(motion(1.0).velocity).max() > 0.1  # it does pass


@pytest.mark.parametrize("order", [3, 5, 7, 9])
def test_passing_motions_on_vector_spaces_are_the_splines_of_scipy(order, rng):
    t, values = np.array([0.0, 1.0, 1.5, 3.0, 4.0]), rng.normal(size=(5, 2))
    motion = Waypoints(Rn(2), t, values, order, stops=False)
    ends = [(k, np.zeros(2)) for k in range(1, (order + 1) // 2)]
    spline = make_interp_spline(t, values, k=order, bc_type=(ends, ends))
    times = np.linspace(0, 4, 37)
    point = motion(times)
    np.testing.assert_allclose(point.x, spline(times), atol=1e-10)
    np.testing.assert_allclose(point.acceleration, spline(times, 2), atol=1e-8)


def test_the_least_snap_is_least(rng):
    """No other motion of the same kind has a smaller integral, about a few axes, by trial."""
    t, points = np.array([0.0, 1.0, 2.0]), SO3.exp(rng.normal(size=(3, 3)))
    motion = Waypoints(SO3, t, points, 7, stops=False)
    nodes, weights = np.polynomial.legendre.leggauss(12)

    def cost(pieces):
        """∫ |φ⁗|² of all spans."""
        times = (nodes + 1) / 2
        fourth = [
            np.array([np.polyval(np.polyder(row[::-1], 4), times) for row in c]) for c in pieces
        ]
        return sum((value**2 @ weights).sum() for value in fourth)

    least = cost(motion.coefficients[:, 0])
    here = motion(1.0)
    for change in (1e-3, -1e-3):
        for name, column in (("velocity", 0), ("acceleration", 1), ("jerk", 2)):
            moved = [here.velocity.copy(), here.acceleration.copy(), here.jerk.copy()]
            moved[column][0] += change * (1 + np.abs(getattr(here, name)).max())
            halves = [
                Waypoints(SO3, t[:2], points[:2], 7, stops=False, end=moved),
                Waypoints(SO3, t[1:], points[1:], 7, stops=False, start=moved),
            ]
            assert cost([half.coefficients[0, 0] for half in halves]) > least


# Splines and fits


@pytest.mark.parametrize("degree", [1, 3, 5])
@pytest.mark.parametrize("name", GROUPS)
def test_splines_have_their_derivatives(name, degree, rng):
    group = GROUPS[name]
    points = group.exp(0.8 * rng.normal(size=(3 + degree, group.dim)))
    motion = BSpline(group, [0.0, 0.7, 2.0, 2.5], points, degree)
    ends = motion([0.0, 2.5]).x
    np.testing.assert_allclose(group.minus(ends, points[[0, -1]]), 0, atol=SAME)
    inner = [DERIVATIVES.index(jump.derivative) for jump in motion.jumps if 0 < jump.t < 2.5]
    assert inner == ([] if degree == 5 else [degree - 1] * 2)
    assert_derivatives_are_exact(motion, [0.3, 1.1, 2.2])


def test_a_spline_on_a_vector_space_is_that_of_scipy(rng):
    knots, points = np.array([0.0, 1.0, 2.5, 3.0]), rng.normal(size=(8, 2))
    full = np.concatenate([[0.0] * 5, knots, [3.0] * 5])
    times = np.linspace(0, 3, 31)
    value = BSpline(Rn(2), knots, points)(times)
    np.testing.assert_allclose(value.x, SciPySpline(full, points, 5)(times), atol=SAME)
    np.testing.assert_allclose(value.jerk, SciPySpline(full, points, 5)(times, 3), atol=1e-8)


def test_a_fit_of_a_motion_finds_it_again(rng):
    """Of a motion that is such a spline exactly; of another the error falls with the spacing."""
    points = SE3.exp(0.6 * rng.normal(size=(9, 6)))
    motion = BSpline(SE3, np.linspace(0, 2, 5), points)
    fitted = BSpline.fitted(motion.sampled(0.02), 0.5)
    times = np.linspace(0, 2, 77)
    np.testing.assert_allclose(SE3.minus(fitted(times).x, motion(times).x), 0, atol=1e-8)
    np.testing.assert_allclose(fitted(times).jerk, motion(times).jerk, atol=1e-4)

    state = Product(pose=SE3, twist=Rn(6))
    smooth = Waypoints(SE3, [0, 2], points[:2], 9)
    t, point = np.linspace(0, 2, 201), smooth(np.linspace(0, 2, 201))
    run = Trajectory(state, t, state.join(pose=point.x, twist=point.velocity))
    fits = [BSpline.fitted(run, spacing, block="pose") for spacing in (0.2, 0.1, 0.05)]
    errors = [np.abs(SE3.minus(fit(times).x, smooth(times).x)).max() for fit in fits]
    assert errors[0] > 32 * errors[1] > 32**2 * errors[2]  # degree 5 has order 6


# As references


def craft(group):
    rate = Rn(group.dim)
    return System(
        "craft", Product(place=group, rate=rate, lamp=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[group.nq : -1], u, 0),
        inputs=[f"a{i}" for i in range(group.dim)],
    )  # fmt: skip


@pytest.mark.parametrize("name", ["SE3", "SO2", "Rn(3)"])
def test_states_and_inputs_of_a_system_that_follows(name, rng):
    group = GROUPS[name]
    system, motion = craft(group), Waypoints(group, [0, 2], group.random(rng, (2,)))
    check_system(system)
    times = np.array([0.0, 0.7, 2.0, 3.0])
    x, rate = motion.states(system, times)
    point = motion(times)
    np.testing.assert_array_equal(x[:, : group.nq], point.x)
    np.testing.assert_array_equal(x[:, group.nq : -1], point.velocity)
    found = sample_reference(system, motion, times)
    np.testing.assert_array_equal(found.x, x)
    np.testing.assert_allclose(found.u, point.acceleration, atol=1e-9)
    np.testing.assert_allclose(system.f(0.0, x, found.u), rate, atol=1e-9)
    run = motion.sampled(0.1, system)
    assert run.group == system.state and len(run) == 21


def test_what_does_not_fit_is_said():
    system, motion = craft(SO3), Waypoints(SE3, [0, 1], [SE3.identity] * 2)
    with pytest.raises(ValueError, match="no block of its state .* is SE3 with its velocity"):
        motion.states(system, 0.0)
    later = motion.shift(2.0)
    assert (later.t == [2.0, 3.0]).all() and later.duration == motion.duration
    assert "continuous up to the position" in repr(ScrewMotion(SO2, SO2.identity, [1.0], 1.0))


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([0.0], [SO2.identity]), {}, "at least 2 times"),
        (([1.0, 0.0], [SO2.identity] * 2), {}, "increase"),
        (([0.0, 1.0], [SO2.identity]), {}, r"x has shape \(1, 2\), expected \(2, 2\)"),
        (([0.0, 1.0], [SO2.identity] * 2, "smooth"), {}, "order must be odd"),
        (([0.0, 1.0], [SO2.identity] * 2, 4), {}, "order must be odd, 1, 3, 5, …, got 4"),
        (([0.0, 1.0], [SO2.identity] * 2, 11), {"stops": False}, "one of 1, 3, 5, 7, 9, got 11"),
        (([0.0, 1.0], [SO2.identity] * 2), {"start": [[1.0]]}, "give stops=False"),
        (
            ([0.0, 1.0], [SO2.identity] * 2, 3),
            {"stops": False, "end": [[1.0]] * 2},
            "end has 2 derivatives, this order takes velocity$",
        ),
    ],
)
def test_faults_of_waypoints_are_named(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        Waypoints(SO2, *arguments, **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BSpline(Rn(1), [0, 1], [[0.0]] * 3), "3 control points, expected 6"),
        (lambda: BSpline(Rn(1), [0, 1], [[0.0]], 0), "at least 1, got 0"),
        (lambda: ScrewMotion(Rn(1), [0.0], [1.0], -1.0), "seconds, .* must be positive, got -1"),
        (
            lambda: BSpline.fitted(Trajectory(Rn(1), [0, 1, 2], [[0.0]] * 3), 0.1),
            "3 nodes do not determine 25 control points of degree 5 .* take a degree of 2 or less",
        ),
        (
            lambda: BSpline.fitted(Trajectory(Rn(1), np.linspace(0, 1, 9), [[0.0]] * 9), 0.05),
            "9 nodes do not determine 25 control points .* take a spacing of 0.25 s or more",
        ),
        (lambda: BSpline.fitted(Trajectory(Rn(1), [0.0], [[0.0]]), 1.0), "nodes at two times"),
        (
            lambda: BSpline.fitted(Trajectory(Rn(1), np.r_[0:1:50j, 9], [[0.0]] * 51), 1.0),
            "hold no node",
        ),
        (lambda: BSpline.fitted(Trajectory(Rn(1), [0, 1], [[0.0]] * 2), 1.0, block="a"), "block"),
    ],
)
def test_faults_of_splines_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_places_at_symbolic_times_are_those_at_numbers(rng):
    points = SE3.exp(rng.normal(size=(8, 6)))
    for motion in (
        BSpline(SE3, [0.0, 0.7, 2.0, 2.5], points),
        Waypoints(SE3, [0.0, 1.0, 3.0], points[:3], 7, stops=False),
    ):
        t = ca.SX.sym("t")
        place = ca.Function("place", [t], [motion.expression(t)])
        for time in (-1.0, 0.0, 0.4, 1.0, 2.2, 9.0):
            gap = SE3.minus(place(time).full().ravel(), motion(time).x)
            np.testing.assert_allclose(gap, 0, atol=SAME)


def test_what_is_no_motion_is_named():
    with pytest.raises(ValueError, match=r"t\[1\] = 1 and t\[2\] = 1"):
        Waypoints(Rn(1), [0, 1, 1], [[0], [1], [2]])
    with pytest.raises(ValueError, match="no element of SO2"):
        SmoothReference(SO2, [0, 1], [[0, 0]], [[[[0, 1]]]])
    with pytest.raises(ValueError, match=r"start has numbers, .* start=\[velocity\]"):
        Waypoints(Rn(3), [0, 1], np.zeros((2, 3)), 3, stops=False, start=[1.0, 0.0, 0.0])
    nodes = Trajectory(Rn(1), np.linspace(0, 1, 9), np.zeros((9, 1)))
    with pytest.raises(ValueError, match=r"degree must be a whole number, at least 1, got 2\.5"):
        BSpline.fitted(nodes, 0.5, degree=2.5)
    with pytest.raises(TypeError, match="must be a Trajectory, not ndarray"):
        BSpline.fitted(nodes.x, 0.5)
    with pytest.raises(TypeError, match="spacing must be"):
        BSpline.fitted(nodes, "wide")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seconds must be a number, got None"):
        ScrewMotion(Rn(1), [0.0], [1.0], None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "make",
    [
        lambda group: Waypoints(group, [0, 1], [[0] * 7] * 2),
        lambda group: BSpline(group, [0, 1], [[0] * 7] * 6),
        lambda group: ScrewMotion(group, [0] * 7, [0] * 6, 1.0),
        lambda group: SmoothReference(group, [0, 1], [[0] * 7], np.zeros((1, 1, 6, 2))),
    ],
)
def test_a_name_is_no_group(make):
    with pytest.raises(TypeError, match=r"group must be a LieGroup, not str.*lgcontrol\.groups"):
        make("SE3")

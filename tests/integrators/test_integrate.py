"""The adaptive integrator: tolerances, dense output, events, failures, values."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import trace
from lgcontrol.groups import (
    SE2,
    SE3,
    SO2,
    SO3,
    PlanarHelical,
    Product,
    Rn,
    Schoenflies,
    Translation,
)
from lgcontrol.integrators import Event

from ._problems import BODY, free_body, integrate, manufactured, slope

GROUPS = (
    SO2,
    SO3,
    SE3,
    SE2.about((1, 2, -3)),
    Schoenflies,
    PlanarHelical(0.2),
    Translation("xyz"),
    Rn(2),
    Product(pose=SE3, twist=Rn(6)),
)
USUAL = (SO2, SE3, PlanarHelical(0.2))

START = np.concatenate([SO3.identity, [0.1, 0.3, 2.0]])
INERTIA = (5.3, 1.2, 4.4)


# Errors at the end in units of the tolerance of a step: some steps add up, some cancel, and the
# problems amplify them by up to ten.
CAREFUL, CARELESS = 0.01, 20.0


@pytest.mark.usually(G=USUAL)
@pytest.mark.parametrize("G", GROUPS, ids=lambda G: G.name)
def test_errors_follow_the_tolerance_and_steps_are_not_wasted(G):
    field, solution = manufactured(G, seed=4)
    tolerances, steps = (1e-7, 1e-9, 1e-11), []
    for tolerance in tolerances:
        motion = integrate(G, field, solution(0.0), (0, 1.5), rtol=tolerance, atol=tolerance)
        assert motion.is_success and motion.t[-1] == 1.5
        error = G.distance(motion.x[-1], solution(1.5)) / tolerance
        assert CAREFUL < error < CARELESS, tolerance
        assert motion.statistics.rejected <= motion.statistics.steps / 10
        steps.append(motion.statistics.steps)
    # a method of order five takes tolerance^(−1/5) steps
    assert slope(tolerances, steps) == pytest.approx(1 / 5, abs=0.04), steps


@pytest.mark.usually(G=USUAL)
@pytest.mark.parametrize("G", GROUPS, ids=lambda G: G.name)
def test_dense_output_is_of_order_four(G):
    """Steps of fixed length by loose tolerances: errors between them fall like dt⁴ or faster."""
    field, solution = manufactured(G, seed=4)
    times = np.linspace(0, 1, 103)
    steps, between = (8, 16, 32), []
    for n in steps:
        motion = integrate(
            G, field, solution(0.0), (0, 1), rtol=1e3, atol=1e3, first_step=1 / n, max_step=1 / n
        )
        assert len(motion.t) == n + 1
        between.append(G.distance(motion(times), solution(times)).max())
    assert slope(steps, between) > 3.8, between


def test_dense_output_is_the_steps_and_continuous_in_velocity():
    motion = integrate(BODY, free_body(INERTIA), START, (0, 3), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(motion(motion.t), motion.x, rtol=0, atol=1e-14)
    assert np.array_equal(motion(motion.t[:-1]), motion.x[:-1])
    h = 1e-6
    inner = motion.t[1:-1]
    left = BODY.minus(motion(inner), motion(inner - h)) / h
    right = BODY.minus(motion(inner + h), motion(inner)) / h
    np.testing.assert_allclose(left, right, rtol=0, atol=3e-5)  # one-sided differences: h·ω̇
    assert motion(np.zeros((2, 3))).shape == (2, 3, 7)
    np.testing.assert_allclose(np.linalg.norm(motion(np.linspace(0, 3, 99))[:, :4], axis=1), 1)


def test_functions_of_every_kind_take_the_same_steps():
    field = free_body(INERTIA)
    mx = trace("mx", lambda t, x: field(t, x), {"t": (), "x": (7,)}, {"d": (6,)}, symbol=ca.MX)
    runs = [
        integrate(BODY, f, START, (0, 2), rtol=1e-7, atol=1e-7)
        for f in (field, field.function, mx, lambda t, x: field(t, x))
    ]
    for other in runs[1:]:
        np.testing.assert_allclose(other.t, runs[0].t, rtol=1e-9)
        np.testing.assert_allclose(other.x, runs[0].x, rtol=0, atol=1e-9)
        assert other.statistics == runs[0].statistics


def test_further_arguments_are_held():
    field = trace(
        "f",
        lambda t, x, u, p: ca.vertcat(u[0], 0, p * t),
        {"t": (), "x": (4,), "u": (1,), "p": ()},
        {"d": (3,)},
        defaults={"p": 2.0},
    )
    for f in (field, lambda t, x, u, p=2.0: np.array([u[0], 0, p * t])):
        default = integrate(SO3, f, SO3.identity, (0, 0.5), args=([0.0],))
        np.testing.assert_allclose(SO3.log(default.x[-1]), [0, 0, 0.25], atol=1e-9)
        given = integrate(SO3, f, SO3.identity, (0, 0.5), args=([0.0], 4.0))
        np.testing.assert_allclose(SO3.log(given.x[-1]), [0, 0, 0.5], atol=1e-9)
    with pytest.raises(TypeError, match="lacks u"):
        integrate(SO3, field, SO3.identity, (0, 1))


def test_backwards_in_time():
    field = free_body(INERTIA)
    there = integrate(BODY, field, START, (0, 4), rtol=1e-11, atol=1e-11)
    back = integrate(BODY, field, there.x[-1], (4, 0), rtol=1e-11, atol=1e-11)
    assert (np.diff(back.t) < 0).all()
    assert BODY.distance(back.x[-1], START) < 1e-8
    assert BODY.distance(back(1.3), there(1.3)) < 1e-8


def test_no_time_at_all():
    motion = integrate(SO3, lambda t, x: np.ones(3), SO3.identity, (1, 1))
    assert motion.is_success and motion.t.tolist() == [1.0]
    np.testing.assert_array_equal(motion([1.0, 1.0]), [SO3.identity] * 2)


def test_a_group_of_dimension_zero():
    assert integrate(Rn(0), lambda t, x: np.zeros(0), [], (0, 1)).is_success


def test_it_takes_the_steps_a_motion_needs():
    """Rests are crossed in few steps, a fast part in many; constant velocity is exact."""
    still = integrate(SE3, lambda t, x: np.zeros(6), SE3.random(0), (0, 1e6))
    assert still.statistics.steps < 30
    spin = integrate(SO3, lambda t, x: np.array([0, 0, 50.3]), SO3.identity, (0, 10))
    assert spin.statistics.steps < 30
    assert SO3.distance(spin.x[-1], SO3.exp([0, 0, 503.0])) < 1e-11
    pulse = integrate(
        Rn(1), lambda t, x: np.array([1e3 * np.exp(-((t - 5) ** 2) * 1e4)]), [0.0], (0, 10),
        max_step=0.05,
    )  # fmt: skip
    assert pulse.x[-1, 0] == pytest.approx(1e3 * np.sqrt(np.pi / 1e4), rel=1e-7)
    assert np.diff(pulse.t).min() < 1e-3
    assert 0 < pulse.statistics.rejected < 0.1 * pulse.statistics.steps


def test_a_rejected_step_is_shortened_by_as_much_as_needed():
    def circle(t, x):
        return np.array([x[1], -x[0]])  # equally hard everywhere

    usual = np.median(np.diff(integrate(Rn(2), circle, [1.0, 0.0], (0, 20)).t))
    late = integrate(Rn(2), circle, [1.0, 0.0], (0, 20), first_step=2 * usual)
    assert 1 <= late.statistics.rejected <= 2
    assert late.t[1] == pytest.approx(usual, rel=0.2)


def test_evaluations_are_counted():
    calls = []

    def field(t, x):
        calls.append(t)
        return np.array([np.sin(10 * t)])

    motion = integrate(Rn(1), field, [0.0], (0, 3))
    assert motion.statistics.evaluations == len(calls)


def test_the_magnitude_of_vectors_counts_and_that_of_places_does_not():
    """A far origin of the world does not change the steps; large speeds allow large errors."""

    def field(t, x):
        return np.array([np.cos(t), 0.1 * t, 0, 0, np.sin(3 * t), 0])

    near, far = (integrate(SE3, field, SE3.from_position([p, 0, 0]), (0, 5)) for p in (0.0, 1e4))
    np.testing.assert_allclose(near.t, far.t, rtol=1e-9)
    slow, fast = (
        integrate(Rn(1), lambda t, x: np.array([np.cos(9 * t)]), [v], (0, 5), rtol=1e-6, atol=1e-9)
        for v in (0.0, 1e4)
    )
    assert fast.statistics.steps < slow.statistics.steps / 2


# -- events ----------------------------------------------------------------------------------------


def falling(t, x):
    """A ball above a floor on Translation × Rn: height and speed."""
    return np.array([x[1], -9.81])


BALL = Product(height=Translation("z"), speed=Rn(1))


def test_a_terminal_event_stops_at_the_crossing():
    floor = Event(lambda t, x: x[0], direction=-1, terminal=True, name="floor")
    motion = integrate(BALL, falling, [1.0, 2.0], (0, 10), events=floor)
    fall = (2.0 + np.sqrt(4.0 + 2 * 9.81)) / 9.81
    assert motion.status == "event" and motion.is_success
    assert "'floor' ended it" in motion.message
    assert motion.t[-1] == pytest.approx(fall, abs=1e-12)
    assert motion.t[-1] == motion.events["floor"].t[-1]
    np.testing.assert_allclose(motion.x[-1], [0, 2.0 - 9.81 * fall], atol=1e-11)
    np.testing.assert_array_equal(motion.events["floor"].x[-1], motion.x[-1])
    assert motion(motion.t[-1])[0] == pytest.approx(0, abs=1e-11)
    with pytest.raises(ValueError, match="outside of the solution"):
        motion(motion.t[-1] + 1e-3)


def test_crossings_are_found_in_their_direction():
    def circle(t, x):
        return np.array([1.0])

    events = [
        Event(lambda t, x: x[1], name="both"),
        Event(lambda t, x: x[1], 1, name="up"),
        Event(lambda t, x: x[1], -1, name="down"),
        lambda t, x: x[0],
    ]
    motion = integrate(SO2, circle, SO2.identity, (0, 20), events=events, max_step=1.0)
    zeros = np.arange(1, 7) * np.pi
    np.testing.assert_allclose(motion.events["both"].t, zeros, atol=1e-12)
    np.testing.assert_allclose(motion.events["down"].t, zeros[::2], atol=1e-12)
    np.testing.assert_allclose(motion.events["up"].t, zeros[1::2], atol=1e-12)
    np.testing.assert_allclose(motion.events["event"].t, np.arange(0.5, 6) * np.pi, atol=1e-12)
    assert motion.events["both"].x.shape == (6, 2)
    back = integrate(SO2, circle, SO2.identity, (20, 0), events=events[0], max_step=1.0)
    assert (np.diff(back.events["both"].t) < 0).all() and len(back.events["both"].t) == 6


def test_two_crossings_within_a_step_are_seen():
    """A body that dips below a level and comes back between two steps of a loose run."""
    motion = integrate(
        Rn(1),
        lambda t, x: np.array([2 * (t - 0.5)]),
        [0.25 - 0.01],
        (0, 1),
        events=lambda t, x: x[0],
        rtol=1.0,
        atol=1.0,
        first_step=1.0,
    )
    assert motion.statistics.steps == 1
    np.testing.assert_allclose(motion.events["event"].t, [0.4, 0.6], atol=1e-12)


def test_fast_functions_of_time_need_short_steps():
    """All zeros are found once steps are below five times the time between them."""
    zeros = np.arange(1, 26) * np.pi / 40

    def found(**options):
        motion = integrate(
            Rn(1),
            lambda t, x: np.ones(1),
            [0.0],
            (0, 2),
            events=lambda t, x: np.sin(40 * t),
            **options,
        )
        return motion.events["event"].t

    assert len(found()) < len(zeros)
    np.testing.assert_allclose(found(max_step=4.5 * np.pi / 40), zeros, atol=1e-12)


def test_jumps_are_no_zeros():
    """The angle of a full turn jumps at π and is zero at 2π only; so it is for a saw and a sign."""
    events = [
        Event(lambda t, x: SO2.log(x)[0], name="angle"),
        Event(lambda t, x: (10 * t) % 1 - 0.01, name="saw"),
        Event(lambda t, x: 1.0 if t > 0.123 else -1.0, name="sign"),
        Event(lambda t, x: np.cbrt(t - 0.3), name="steep"),
    ]
    motion = integrate(
        SO2, lambda t, x: [1.0], SO2.exp([0.1]), (0, 13), events=events, max_step=0.2
    )
    turns = 2 * np.pi * np.arange(1, 3) - 0.1
    np.testing.assert_allclose(motion.events["angle"].t, turns, atol=1e-12)
    np.testing.assert_allclose(motion.events["steep"].t, [0.3], atol=1e-12)
    saw = motion.events["saw"].t
    np.testing.assert_allclose((10 * saw) % 1, 0.01, atol=1e-10)
    assert len(motion.events["sign"].t) == 0


def test_short_steps_at_late_times_are_no_jumps():
    late, after = 1e6, 3e-8
    motion = integrate(
        Rn(1),
        lambda t, x: np.ones(1),
        [0.0],
        (late, late + 1),
        events=lambda t, x: t - late - after,
        first_step=1e-7,
    )
    assert motion.events["event"].t == pytest.approx([late + after], abs=1e-9)


def test_only_what_happens_before_a_terminal_event_counts():
    events = [
        Event(lambda t, x: t - 0.2, terminal=True, name="late"),
        Event(lambda t, x: t - 0.1, terminal=True, name="early"),
        Event(lambda t, x: t - 0.15, name="between"),
        Event(lambda t, x: t - 0.05, name="before"),
    ]
    motion = integrate(Rn(1), lambda t, x: np.ones(1), [0.0], (0, 9), events=events, first_step=1.0)
    assert motion.t[-1] == pytest.approx(0.1, abs=1e-15)
    counts = {name: len(crossings.t) for name, crossings in motion.events.items()}
    assert counts == {"late": 0, "early": 1, "between": 0, "before": 1}


def test_events_may_be_model_functions_and_share_a_name():
    height = trace("height", lambda t, x: x[0] - 0.5, {"t": (), "x": (2,)}, {"h": ()})
    motion = integrate(BALL, falling, [1.0, 0.0], (0, 1), events=[height, height])
    assert list(motion.events) == ["event 0", "event 1"]
    assert motion.events["event 0"].t == pytest.approx(np.sqrt(1 / 9.81), abs=1e-12)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_event_at_the_start_or_exactly_at_a_step_counts_once(sign):
    starting = integrate(SO2, lambda t, x: [1.0], SO2.identity, (0, 1), events=lambda t, x: x[1])
    assert len(starting.events["event"].t) == 0
    on_step = integrate(
        Rn(1), lambda t, x: np.ones(1), [0.0], (0, 2), events=lambda t, x: sign * (t - 1),
        first_step=0.5, max_step=0.5, rtol=1, atol=1,
    )  # fmt: skip
    assert 1.0 in on_step.t and on_step.events["event"].t.tolist() == [1.0]


def test_what_events_refuse():
    with pytest.raises(ValueError, match="direction must be −1, 0 or 1, got 2"):
        Event(lambda t, x: x[0], direction=2)
    with pytest.raises(TypeError, match="not callable"):
        Event("floor")
    with pytest.raises(TypeError, match="callables or Event objects"):
        integrate(BALL, falling, [1, 0], (0, 1), events=3)
    for value in (np.zeros(2), np.nan):
        with pytest.raises(ValueError, match="event 'event' returned .* need one number"):
            integrate(BALL, falling, [1, 0], (0, 1), events=lambda t, x, value=value: value)


# -- failures --------------------------------------------------------------------------------------


def test_a_singularity_is_told_and_what_was_reached_is_kept():
    motion = integrate(Rn(1), lambda t, x: x**2, [1.0], (0, 2))  # blows up at t = 1
    assert motion.status in ("step too small", "not finite") and not motion.is_success
    assert motion.t[-1] == pytest.approx(1.0, abs=1e-6)
    assert "t = 1" in motion.message
    assert motion(0.5)[0] == pytest.approx(2.0, rel=1e-6)


@pytest.mark.parametrize("when", [0.0, 0.7])
def test_a_field_that_is_not_finite(when):
    def field(t, x):
        return np.array([np.nan if t >= when else 1.0])

    motion = integrate(Rn(1), field, [0.0], (0, 2))
    assert motion.status == "not finite" and "not finite" in motion.message
    assert motion.t[-1] == pytest.approx(when, abs=1e-9)
    if when == 0:
        np.testing.assert_array_equal(motion(0.0), [0.0])


def test_a_limit_of_steps():
    motion = integrate(BODY, free_body(INERTIA), START, (0, 100), max_steps=20)
    assert motion.status == "max steps" and len(motion.t) == 21
    assert "raise max_steps" in motion.message


def test_progress_is_told_in_percent():
    told = []
    integrate(BODY, free_body(INERTIA), START, (0, 20), progress=told.append)
    assert told == sorted(set(told)) and told[-1] == 1.0 and 50 < len(told) <= 100
    told.clear()
    integrate(BODY, free_body(INERTIA), START, (20, 0), progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0


def test_without_dense_output():
    motion = integrate(SO3, lambda t, x: np.ones(3), SO3.identity, (0, 1), dense=False)
    with pytest.raises(ValueError, match="integrate with dense=True"):
        motion(0.5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x0": [0, 0, 1]}, r"x0 has shape \(3,\), expected \(4,\)"),
        ({"x0": [0, 0, 0, 0]}, "x0 = .* is no element of SO3: .* cannot be normalised"),
        ({"x0": [0, 0, 0, np.inf]}, "x0 is not finite"),
        ({"span": (0, np.nan)}, "span is not finite"),
        ({"span": (0, 1, 2)}, r"span has shape \(3,\)"),
        ({"rtol": -1e-8}, "need rtol >= 0 and atol > 0"),
        ({"atol": 0.0}, "need rtol >= 0 and atol > 0"),
        ({"atol": [1e-8, 1e-8]}, r"atol has shape \(2,\), expected \(3,\)"),
        ({"first_step": 0.0}, "first_step must be positive"),
        ({"max_step": -1.0}, "max_step must be positive"),
        ({"field": lambda t, x: np.ones(4)}, "expected a tangent vector of SO3: 3 numbers"),
    ],
)
def test_wrong_arguments_are_named(change, message):
    arguments = {"field": lambda t, x: np.ones(3), "x0": SO3.identity, "span": (0, 1)} | change
    with pytest.raises(ValueError, match=message):
        integrate(SO3, **arguments)


def test_the_start_is_normalised_and_not_changed():
    x0 = (1 + 1e-7) * SO3.random(0)
    kept = x0.copy()
    motion = integrate(SO3, lambda t, x: np.ones(3), x0, (0, 1))
    assert np.array_equal(x0, kept)
    np.testing.assert_allclose(np.linalg.norm(motion.x, axis=1), 1, rtol=1e-15)


def test_a_tolerance_for_each_entry():
    field, solution = manufactured(SE2, seed=4)
    loose = integrate(SE2, field, solution(0.0), (0, 1), rtol=0, atol=[1e-3, 1e-3, 1e-3])
    tight = integrate(SE2, field, solution(0.0), (0, 1), rtol=0, atol=[1e-3, 1e-3, 1e-9])
    assert tight.statistics.steps > 2 * loose.statistics.steps

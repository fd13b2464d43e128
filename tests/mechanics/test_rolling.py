"""Rolling without slip and blades: rows on velocities, against solutions known in closed form."""

import casadi as ca
import numpy as np
import pytest

import lgcontrol.mechanics.constrained as mc
from lgcontrol.groups import SO3
from lgcontrol.integrators import generalized_alpha
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody, MechanismJoint
from lgcontrol.mechanics.constrained.rotation_comparison import DirectAnalysis
from lgcontrol.systems import check_system, step_derivatives

MASS, RADIUS, G = 2.0, 0.3, 9.81
ACROSS, ALONG = MASS * RADIUS**2 / 4, MASS * RADIUS**2 / 2  # moments of a thin disk
TILT, TURN = 1.2, 2.0  # of its axis from the vertical [rad], of its heading [rad/s]
PLANE = Marker("ground")
# Of Runge-Kutta with steps of 2 to 10 ms, and of a projected state.
FOURTH, KEPT = 2e-8, 1e-13


def coin():
    """Steady rolling in a circle: eq. of moments about the contact, n vertical, e up the disk.

    ``(C + m R²) ω Ω sin θ + m g R cos θ = A Ω² sin θ cos θ`` with ω about the axis and Ω about n.
    """
    s, c = np.sin(TILT), np.cos(TILT)
    whole = ALONG + MASS * RADIUS**2
    spin = (ACROSS * TURN**2 * s * c - MASS * G * RADIUS * c) / (whole * TURN * s)
    n, axis = np.array([0, 0, 1.0]), np.array([s, 0, c])
    up = (n - c * axis) / s
    along = np.cross(axis, up)
    A = np.column_stack([up, along, axis])
    rates = [*(RADIUS * spin * along), *(A.T @ (spin * axis + TURN * s * up))]
    inertia = SpatialInertia(MASS, [0, 0, 0], np.diag([ACROSS, ACROSS, ALONG]))
    body = MechanismBody("coin", inertia, [*(RADIUS * up), *SO3.from_matrix(A)], rates)
    contact = mc.rolling_disk("contact", PLANE, Marker("coin"), RADIUS)
    return Mechanism("rolling_coin", [body], [contact]), spin


@pytest.fixture(scope="module")
def rolling():
    mechanism, spin = coin()
    free = [f"coin.{name}" for name in ("position.x", "position.y")]
    turns = [f"coin.attitude.r{axis}" for axis in "xyz"]
    system = mechanism.system(
        at=mechanism.coordinates(), independent=free + turns, independent_speeds=turns
    )
    return mechanism, spin, system


def test_velocity_rows_reduce_velocities_only(rolling):
    mechanism, _, system = rolling
    found = mechanism.mobility()
    assert (found.degrees_of_freedom, found.positions, found.removable) == (3, 5, ())
    assert "3 degrees of freedom (3 without drives), 5 of positions" in str(found)
    assert system.n_errors == 5 + 3
    assert mechanism.row_names == ("contact.height", "contact.slip_x", "contact.slip_y")


def test_a_coin_rolls_steadily_in_a_circle(rolling):
    mechanism, spin, system = rolling
    x0, period = mechanism.state(), 2 * np.pi / TURN
    run = system.rollout(x0, dt=period / 900, steps=900)
    assert np.abs(run.x[-1] - x0)[[0, 1, 2, 7, 8, 9]].max() < FOURTH  # back where it began
    tilt = np.array([SO3.matrix(x[3:7])[2, 2] for x in run.x])
    assert np.abs(tilt - np.cos(TILT)).max() < FOURTH
    assert np.abs(system.invariants(run.x)).max() < KEPT
    # The ground carries it, and turns its momentum.
    wrench = system.quantities["reaction_contact_coin"](0.0, x0)
    A, across = SO3.matrix(x0[3:7]), MASS * RADIUS * abs(spin) * TURN
    assert (A @ wrench[:3]) == pytest.approx([-across, 0, MASS * G], abs=1e-10)


def test_a_rolling_coin_is_linearized_on_its_manifold(rolling):
    mechanism, _, system = rolling
    x0, h = mechanism.state(), 1e-6
    made, step = step_derivatives(system)(0.0, x0, [], dt=0.01), system.step()
    change = np.column_stack(
        [
            system.error(step(0.0, system.retract(x0, h * e), [], dt=0.01), made.x_next)
            - system.error(step(0.0, system.retract(x0, -h * e), [], dt=0.01), made.x_next)
            for e in np.eye(system.n_errors)
        ]
    )
    assert np.abs(change / (2 * h) - made.A).max() < 1e-8
    check_system(system)


@pytest.mark.usually(word=("SE3",))
@pytest.mark.parametrize("word", ["SO3xR3", "SE3", "rp"])
def test_index_3_steps_meet_rows_on_velocities(word):
    mechanism = coin()[0].formulated(word)
    x0, quarter, errors = mechanism.state(), np.pi / TURN / 2, []
    nq, start = len(mechanism.coordinates()), mechanism.bodies["coin"]
    along = np.asarray(start.rates[:3])
    wanted = start.pose[:3] + (along + np.cross([0, 0, 1], along)) / TURN
    for n in (100, 200):
        run = mechanism.march(x0, quarter / n, n, generalized_alpha(0.9))
        assert run.is_success
        errors.append(np.abs(mechanism.poses(run.x[-1][:nq])["coin"][:3] - wanted).max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(2.0, abs=0.05)
    last, own = run.x[-1], mechanism.mechanics
    slip = np.asarray(own.gap(ca.DM(last), ca.DM(0, 1))).ravel()[-2:]
    assert np.abs(slip).max() < KEPT


@pytest.mark.thorough
def test_a_ball_on_a_turntable_goes_in_circles():
    """At two sevenths of the rate of the table, wherever it is (Earnshaw 1844)."""
    rate, radius, mass = 3.0, 0.02, 0.1
    axis = Marker("ground"), Marker("table")
    table = MechanismBody("table", SpatialInertia.cylinder(5.0, 0.5, 0.02))
    v = np.array([0.3, 0.1, 0.0])
    r = np.array([0.2, 0.0, radius])
    slip = np.cross([0, 0, rate], [r[0], r[1], 0.0])
    w = np.cross([0, 0, 1.0], v - slip) / radius  # contact: v − R ω × n is that of the table
    ball = MechanismBody("ball", SpatialInertia.sphere(mass, radius), [*r, 0, 0, 0, 1], [*v, *w])
    whole = Mechanism(
        "turntable",
        [table, ball],
        [
            mc.revolute("axis", *axis),
            mc.angle_drive("motor", *axis, lambda t: rate * t),
            mc.rolling_sphere("contact", Marker("table"), Marker("ball"), radius),
        ],
    )
    x0 = whole.state(speeds={"table": [0, 0, 0, 0, 0, rate]})
    system = whole.system(at=whole.coordinates())
    run = system.rollout(x0, dt=0.0025, steps=200)
    turn = 2 / 7 * rate * run.t
    e, f = v / (2 / 7 * rate), np.cross([0, 0, 1], v) / (2 / 7 * rate)
    wanted = r + np.outer(np.sin(turn), e) + np.outer(1 - np.cos(turn), f)
    assert np.abs(run.x[:, 7:10] - wanted).max() < FOURTH


def test_a_blade_on_a_slope_goes_along_a_cycloid():
    """It does not run down: ``x = g sin α sin²(ωt)/(2ω²)`` (Neimark, Fufaev 1972, chapter II.2)."""
    slope, w = 0.3, 2.0
    pull = G * np.sin(slope)
    blade = MechanismBody("blade", SpatialInertia.box(1.0, [0.3, 0.01, 0.1]), rates=[0] * 5 + [w])
    skate = Mechanism(
        "skate",
        [blade],
        [
            mc.planar("ice", PLANE, Marker("blade")),
            mc.knife_edge("edge", PLANE, Marker("blade")),
        ],
        gravity=[pull, 0, -G * np.cos(slope)],
    )
    assert (skate.mobility().degrees_of_freedom, skate.mobility().positions) == (2, 3)
    run = skate.system(at=skate.coordinates()).rollout(skate.state(), dt=0.005, steps=400)
    x = pull / (2 * w**2) * np.sin(w * run.t) ** 2
    y = pull / (2 * w**2) * (w * run.t - np.sin(2 * w * run.t) / 2)
    assert np.abs(run.x[:, :2] - np.column_stack([x, y])).max() < FOURTH


def test_users_write_rows_on_velocities():
    """A belt carries what lies on it."""

    def belt(t, frames, rates):
        return rates["box"][0][0] - 0.5 * ca.sin(t)

    row = mc.VelocityConstraint("along", "box", belt)
    box = MechanismBody("box", SpatialInertia.box(1.0, [0.1, 0.1, 0.1]))
    carried = Mechanism(
        "belt", [box], [mc.planar("top", PLANE, Marker("box")), MechanismJoint("belt", [row])]
    )
    run = carried.system(at=carried.coordinates()).rollout(carried.state(), dt=0.01, steps=100)
    assert np.abs(run.x[:, 0] - 0.5 * (1 - np.cos(run.t))).max() < FOURTH


def _bent():
    square = mc.VelocityConstraint("speed", "box", lambda t, at, v: ca.sumsqr(v["box"][0]) - 1)
    box = MechanismBody("box", SpatialInertia.box(1.0, [0.1, 0.1, 0.1]))
    return Mechanism("fast", [box], [MechanismJoint("law", [square])]).mobility()


REFUSED = {
    "radius": (lambda: mc.rolling_sphere("c", PLANE, Marker("b"), -1.0), "radius must be positive"),
    "not linear": (_bent, "'law': speed must be linear in the rates"),
    "kinematics": (lambda: coin()[0].kinematics([0.0]), "contact.slip_x, contact.slip_y hold vel"),
    "closed forms": (lambda: DirectAnalysis(coin()[0]), "not for 'height'"),
    "other speeds": (
        lambda: coin()[0].system(independent_speeds=["coin.position.x"]),
        "3 independent entries decide the others in this configuration, 1 are given",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_rolling_is_refused_by_name(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        call()

"""The example of Holzinger, Gerstmayr, Schöberl: a box about its unstable axis, by RK4."""

import json
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics import RigidBody, SpatialInertia
from lgcontrol.mechanics.representations import UnifiedVelocity
from lgcontrol.models.papers._holzinger import plain_rotation, rotation_step
from tests.benchmarks.unified_velocity import RESULTS, error_at_digits

DATA = json.loads((Path(__file__).parents[1] / "data" / "rotating_bodies.json").read_text())
DATA = DATA["unstable_rotation"]
PUBLISHED, END = DATA["rk4_omega_error_at_1"], DATA["samples"][-1]
SETS = {"hexahedral": UnifiedVelocity.hexahedral(), "tetrahedral": UnifiedVelocity.tetrahedral()}
BOX = RigidBody("box", SE3, SpatialInertia(1.0, np.zeros(3), np.diag(DATA["inertia"])))

# Errors with 40 digits are those of truncation; what the flips make of rounding comes on top, in
# the reference's table as in ours: with 1/1280 they are 4.3415e-5, the table has 4.4886e-5.
ROWS = json.loads((RESULTS / "unified_velocity.json").read_text())["rounding"]
EXACT = {int(row["h"][2:]): row["40 digits"] for row in ROWS if row["coordinates"] == "hexahedral"}
ROUNDING = 2e-6


def start(form):
    return form.from_velocity(BOX.state.join(pose=SE3.identity, twist=[0, 0, 0, 0.01, 0, 100]))


def run(unified, steps, count=None):
    """States in twist coordinates; NaN from where it overflows."""
    form, system = BOX.velocity_form(unified), BOX.system(velocity=unified)
    made = system.rollout(start(form), None, 1 / steps, steps=count or steps, method="rk4")
    return form.to_velocity(made.x)


def paper_run(unified, steps):
    """Eq. 82 to 87 as they are meant: n = 0 at the start of every step."""
    h, M = 1 / steps, unified.mass_matrix(BOX.inertia)
    gamma = unified.coriolis_matrix(BOX.inertia)
    H, w = SE3.identity, unified.from_twist([0, 0, 0, 0.01, 0, 100.0])

    def f(w):
        return -np.linalg.solve(M, gamma(w) @ w)

    for _ in range(steps):
        k1, K1 = h * f(w), h * unified.inverse_tangent(np.zeros(6)) @ w
        k2, K2 = h * f(w + k1 / 2), h * unified.inverse_tangent(K1 / 2) @ (w + k1 / 2)
        k3, K3 = h * f(w + k2 / 2), h * unified.inverse_tangent(K2 / 2) @ (w + k2 / 2)
        k4, K4 = h * f(w + k3), h * unified.inverse_tangent(K3) @ (w + k3)
        w = w + (k1 + 2 * k2 + 2 * k3 + k4) / 6
        H = SE3.normalize(SE3.plus(H, (K1 + 2 * K2 + 2 * K3 + K4) / 6))
    return np.concatenate([H, unified.to_twist(w)])


def error(x):
    return np.linalg.norm(x[..., 10:] - END["omega"], axis=-1)


@pytest.mark.usually(unified=(SETS["hexahedral"],))
@pytest.mark.parametrize("unified", SETS.values(), ids=SETS)
def test_order_and_errors_are_the_published_ones(unified):
    steps = np.array([160, 320, 640, 1280, 2560])
    errors = np.array([error(run(unified, n)[-1]) for n in steps])
    table = [PUBLISHED[f"1/{n}"] for n in steps]
    np.testing.assert_allclose(errors[:3], table[:3], rtol=0.01)
    np.testing.assert_allclose(errors, table, rtol=0.01, atol=ROUNDING)
    np.testing.assert_allclose(errors, [EXACT[n] for n in steps], rtol=1e-4, atol=ROUNDING)
    above = slice(0, 4)  # with 1/2560 rounding may be half of the error
    assert -np.polyfit(np.log(steps[above]), np.log(errors[above]), 1)[0] == pytest.approx(
        4, abs=0.05
    )
    assert np.linalg.norm(SO3.matrix(run(unified, 640)[-1, 3:7]) - END["R"]) < 1e-3


@pytest.mark.parametrize("name", SETS)
def test_rounding_is_what_lies_between_the_table_and_ours(name):
    """Our operations with 40 digits; doubles whose starts differ in their last digits."""
    assert error_at_digits(name, 160) == pytest.approx(EXACT[160], rel=1e-10)
    rows = [row for row in ROWS if row["coordinates"] == name]
    errors = np.array([row["40 digits"] for row in rows])
    np.testing.assert_allclose(errors, list(EXACT.values()), rtol=1e-9)  # in all coordinates
    slopes = np.log2(errors[:-1] / errors[1:])
    np.testing.assert_allclose(slopes, 4, rtol=0, atol=0.05)
    for row in rows:
        lowest, median, highest = row["doubles"]
        assert lowest < row["stored"] < highest
        assert median == pytest.approx(row["40 digits"], rel=0.01, abs=ROUNDING)
    spread = np.array([(row["doubles"][2] - row["doubles"][0]) / row["40 digits"] for row in rows])
    assert (spread[:3] < 0.01).all() and (spread[3:] > 0.05).all()


@pytest.mark.parametrize("unified", SETS.values(), ids=SETS)
@pytest.mark.parametrize("steps", [10, 20, 40])
def test_long_steps_overflow(unified, steps):
    """No "overview" of convergence begins at 1/10: explicit RK4 leaves the numbers there."""
    with pytest.warns(RuntimeWarning, match="diverged"):
        assert not np.isfinite(run(unified, steps)[-1]).all()


@pytest.mark.usually(unified=(SETS["tetrahedral"],))
@pytest.mark.parametrize("unified", SETS.values(), ids=SETS)
def test_twist_coordinates_move_alike(unified, shared):
    """To rounding over 100 steps; later up to what the flips make of rounding, ten runs' worth."""
    data = json.loads((shared / "reference" / "sensitivity.json").read_text())
    amplified = np.maximum.accumulate(data["paper001_rk4_h1e-5_double_error_omega_at_tenths"])
    system = BOX.system()
    x0 = BOX.state.join(pose=SE3.identity, twist=[0, 0, 0, 0.01, 0, 100])
    for steps, count, allowed in ((2560, 100, 1e-12), (2560, 2560, ROUNDING)):
        plain = system.rollout(x0, None, 1 / steps, steps=count, method="rk4").x
        other = run(unified, steps, count)
        assert np.abs(other[..., 10:] - plain[..., 10:]).max() < 100 * allowed  # of 100 rad/s
        assert np.abs(other[..., :7] - plain[..., :7]).max() < allowed
    apart = np.linalg.norm(other[:, 10:] - plain[:, 10:], axis=-1)
    for k, floor in enumerate(amplified, 1):  # at tenths of a second
        assert apart[: 256 * k + 1].max() < 10 * floor


def test_misprint_eq_82_the_scheme_of_the_paper():
    """With n = 0 at each step it has order four and the errors of ω of any RK4."""
    errors = [error(paper_run(SETS["hexahedral"], n)) for n in (160, 320)]
    np.testing.assert_allclose(errors, [EXACT[160], EXACT[320]], rtol=1e-4)
    attitudes = [
        np.abs(SO3.matrix(paper_run(SETS["hexahedral"], n)[3:7]) - END["R"]).max()
        for n in (160, 320)
    ]
    assert 3.5 < np.log2(attitudes[0] / attitudes[1]) < 5


def test_determinants_of_matrices_and_of_quaternions():
    """Figure 12: the same steps kept as a matrix, and as a quaternion without normalization.

    The second is the integrator of Terze, Müller and Zlatar (2016): increments in the algebra, the
    exponential of unit quaternions. Angular velocities are the same to the bit: their equation has
    no attitude in it.
    """
    inertia, steps = np.array(DATA["inertia"]), 640
    omega, R, q = np.array([0.01, 0.0, 100.0]), np.eye(3), SO3.identity
    worst_matrix = worst_quaternion = 0.0
    for _ in range(steps):
        omega, increment = rotation_step(inertia, omega, 1 / steps)
        turn = SO3.exp(increment)
        R, q = R @ SO3.matrix(turn), SO3.compose(q, turn)
        worst_matrix = max(worst_matrix, abs(np.linalg.det(R) - 1))
        worst_quaternion = max(worst_quaternion, abs(np.linalg.det(plain_rotation(q)) - 1))
    assert worst_matrix < worst_quaternion < 1e-13  # the paper's bound and its order
    ours = run(SETS["hexahedral"], steps)[-1]
    np.testing.assert_allclose(omega, ours[10:], atol=100 * ROUNDING)
    np.testing.assert_allclose(SO3.minus(ours[3:7], SO3.normalize(q)), np.zeros(3), atol=ROUNDING)

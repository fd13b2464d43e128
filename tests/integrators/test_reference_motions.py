"""The unstable box and the heavy top against motions integrated far beyond double precision."""

import json
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.groups import SO3
from lgcontrol.integrators import METHODS

from ._problems import BODY, energy, free_body, heavy_top, integrate, run, slope

DATA = json.loads((Path(__file__).parents[1] / "data" / "rotating_bodies.json").read_text())
BOX, TOP = DATA["unstable_rotation"], DATA["heavy_top"]

BOX_START = np.concatenate([SO3.identity, BOX["omega0"]])
BOX_STEPS = (160, 320, 640, 1280, 2560)  # order 4 shows here: below is rounding, above no flip

# The flips amplify rounding: whatever the method and the step, the angular velocity at t = 1 is off
# by some 1e-6 (and by 2.6e-5 after 1e5 steps), the attitude by a hundredth of that.
ROUNDING_OMEGA, ROUNDING_ATTITUDE = 1e-5, 1e-7


def errors(x, sample):
    """Errors of attitude (entries of R) and angular velocity."""
    return (
        np.abs(SO3.matrix(x[:4]) - sample["R"]).max(),
        np.linalg.norm(x[4:] - sample["omega"]),
    )


@pytest.fixture(scope="module")
def box_errors():
    """Errors at t = 1 of the two fourth-order methods, for all numbers of steps."""
    field, end = free_body(BOX["inertia"]), BOX["samples"][-1]
    assert end["t"] == 1.0
    return {
        name: [errors(run(METHODS[name], BODY, field, BOX_START, 1.0, n), end) for n in BOX_STEPS]
        for name in ("rk4", "commutator_free4")
    }


@pytest.mark.parametrize("name", ["rk4", "commutator_free4"])
def test_unstable_box_converges_with_order_four(box_errors, name):
    attitude, omega = np.transpose(box_errors[name])
    above_rounding = slice(0, 4)
    assert slope(BOX_STEPS[above_rounding], omega[above_rounding]) == pytest.approx(4, abs=0.1)
    # the attitude errs by dt⁴ and, while the step is long, by more of dt⁵
    assert -0.1 < slope(BOX_STEPS, attitude) - 4 < 0.8


@pytest.mark.parametrize("name", ["rk4", "commutator_free4"])
def test_unstable_box_makes_the_published_errors(box_errors, name):
    """The rates do not see the attitude, so both methods make the classical method's errors."""
    stored = [BOX["rk4_omega_error_at_1"][f"1/{n}"] for n in BOX_STEPS]
    found = [omega for _, omega in box_errors[name]]
    np.testing.assert_allclose(found, stored, rtol=1e-3, atol=ROUNDING_OMEGA)


def test_unstable_box_adaptively():
    motion = integrate(BODY, free_body(BOX["inertia"]), BOX_START, (0, 1), rtol=1e-13, atol=1e-13)
    assert motion.is_success
    for sample in BOX["samples"]:
        attitude, omega = errors(motion(sample["t"]), sample)
        assert attitude < ROUNDING_ATTITUDE and omega < ROUNDING_OMEGA, sample["t"]


def top_field(case):
    return heavy_top(
        TOP["mass"], TOP["inertia_about_pivot"], TOP["centre_of_mass"], case["gravity"]
    )


def top_start(case):
    return np.concatenate([SO3.identity, case["omega0"]])


@pytest.mark.usually(case=TOP["cases"][1:])
@pytest.mark.parametrize("case", TOP["cases"], ids=lambda case: f"gravity {case['gravity']}")
@pytest.mark.parametrize("name", ["rk4", "commutator_free4", "dormand_prince5"])
def test_heavy_top_converges_with_the_order_of_the_method(case, name):
    method, field = METHODS[name], top_field(case)
    sample = next(s for s in case["samples"] if s["t"] == 1.0)
    steps = (1000, 2000, 4000)
    found = np.array(
        [errors(run(method, BODY, field, top_start(case), 1.0, n), sample) for n in steps]
    )
    for kind in found.T:
        assert -0.1 < slope(steps, kind) - method.order < 0.5, found


@pytest.mark.usually(case=TOP["cases"][1:])
@pytest.mark.parametrize("case", TOP["cases"], ids=lambda case: f"gravity {case['gravity']}")
def test_heavy_top_for_five_seconds(case):
    """Fifty turns: what is left is rounding and the reference's own error."""
    motion = integrate(BODY, top_field(case), top_start(case), (0, 5), rtol=1e-12, atol=1e-12)
    for sample in case["samples"]:
        attitude, omega = errors(motion(sample["t"]), sample)
        assert attitude < 2e-9 and omega < 2e-8, (sample["t"], attitude, omega)


def total_energy(case, x):
    height = SO3.act(x[..., :4], np.array(TOP["centre_of_mass"]))[..., 2]
    return energy(TOP["inertia_about_pivot"], x) + TOP["mass"] * case["gravity"] * height


@pytest.mark.thorough  # who ends where the reference does after fifty turns has kept it
@pytest.mark.parametrize("case", TOP["cases"], ids=lambda case: f"gravity {case['gravity']}")
def test_heavy_top_keeps_its_energy(case):
    first = case["samples"][0]["energy"]
    assert total_energy(case, top_start(case)) == pytest.approx(first, rel=1e-15)
    motion = integrate(BODY, top_field(case), top_start(case), (0, 5), rtol=1e-11, atol=1e-11)
    drift = total_energy(case, motion.x) / first - 1
    assert np.abs(drift).max() < 1e-9

"""Values and derivatives against eighty-digit references; the benchmark does it at more angles."""

import numpy as np
import pytest

from tests.benchmarks.groups import BOUNDS, OPERATIONS, measure, missed_bounds, worst

# Near zero, below the switch of the logarithm at 0.48, both sides of the others at one, beyond
# them, and a half turn, where the derivatives of closed forms cancel most.
FEW_ANGLES = (1e-6, 0.478, 1.0 - 1e-9, 2.0, np.pi)


@pytest.mark.usually(name=("SO3",), angle=(1e-6, 0.478, np.pi))
@pytest.mark.parametrize("angle", FEW_ANGLES)
@pytest.mark.parametrize("name", ["SO3", "SE2", "Schoenflies"])
def test_errors_stay_within_the_bounds(name, angle):
    rows = measure(["lgcontrol"], [name], [angle])
    assert len(worst(rows)) == len(OPERATIONS) * len(BOUNDS)
    assert not missed_bounds(rows)


@pytest.mark.usually(angle=(np.pi,))
@pytest.mark.parametrize("angle", FEW_ANGLES[::2])
def test_errors_stay_within_the_bounds_on_se3(angle):
    assert not missed_bounds(measure(["lgcontrol"], ["SE3"], [angle]))


def test_a_missed_bound_is_reported():
    row = {"library": "lgcontrol", "group": "SO3", "operation": "exp", "derivative": 1, "angle": 1}
    for error in (1e-13, np.nan):
        assert len(missed_bounds([row | {"error": error}, row | {"error": 0.0}])) == 1

"""A filter that an IMU drives in the loop of a plant: consistent, and told apart from others."""

import numpy as np
import pytest

from lgcontrol.controllers.designs.quadrotor_gnss import design
from lgcontrol.estimation import SensorDriven
from lgcontrol.simulation._internal import FullEstimator


@pytest.mark.interpreted
def test_the_quadrotor_flies_on_estimates_that_are_as_good_as_they_say():
    """Errors of pose and twist in their deviations, two flights."""
    squares = []
    for seed in range(2):
        task = design(seed).drawn(seed)  # whose estimator the run uses
        assert isinstance(task.options["estimator"], FullEstimator)
        run = task.run(seconds=1.0, seed=seed)
        squares.append((run.estimation_error[10:] / run.estimate_std[10:]) ** 2)
        counts = task.options["estimator"].counts
        assert counts["gnss"]["used"] == 11 and counts["magnetometer"]["used"] == 51
    means = np.mean(squares, axis=(0, 1))
    assert 0.6 < means.mean() < 1.5
    assert (means < 3).all() and (means > 0.2).all()  # two flights, correlated in each


def test_what_is_refused():
    driven = design(0).options["estimator"]
    with pytest.raises(KeyError, match="unknown input 'gyros'"):
        SensorDriven(driven.filter, driven.sensor, ["gyros"], driven.plant, driven._state)
    with pytest.raises(ValueError, match="'imu' has 6 entries, 3 inputs are named: gyro.x"):
        SensorDriven(driven.filter, driven.sensor, ["gyro"], driven.plant, driven._state)

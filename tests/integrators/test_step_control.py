"""Step-size control, which `integrate` and simulations share."""

import numpy as np
import pytest

from lgcontrol.integrators import METHODS
from lgcontrol.integrators._adaptive import StepControl

ORDERS = sorted({method.order for method in METHODS.values() if method.has_error})


@pytest.mark.parametrize("order", ORDERS)
def test_steps_settle_where_the_error_is_allowed(order):
    """Errors that grow as ``(h / limit)^order``: the steps converge to just below the limit."""
    control, h, limit = StepControl(), 1.0, 0.01
    lengths = []
    for _ in range(60):
        error = (h / limit) ** order
        h *= control.accepted(error, order) if error <= 1 else control.rejected(error, order)
        lengths.append(h)
    settled = np.array(lengths[-10:])
    assert np.ptp(settled) < 1e-3 * limit
    assert 0.6 * limit < settled[-1] < limit


@pytest.mark.parametrize("error", [np.nan, np.inf])
def test_steps_that_are_not_finite_are_cut_by_most(error):
    assert StepControl().rejected(error, 5) == StepControl().rejected(1e30, 5)

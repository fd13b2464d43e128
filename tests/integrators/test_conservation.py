"""A free asymmetric body for a million steps: unit norm, energy, spatial angular momentum.

``python -m tests.benchmarks.integrators`` takes a million steps of every method.
"""

from functools import cache

import pytest

from lgcontrol.integrators import METHODS
from tests.benchmarks.integrators import DEFAULT_LENGTHS, drift, lengths, rate_orders

from ._problems import EXPLICIT

UNIT = 1e-14
STEPS = 1_000_000

# The quick runs: a tenth of the steps, over at least three periods of the body.
QUICK = 100_000
QUICK_LENGTHS = {1: (1e-3, 5e-4, 2.5e-4), 2: (0.04, 0.02, 0.01), 3: (0.04, 0.02, 0.01)}

# A method of even order p loses energy and momentum at a rate of order p + 1, one of odd order at
# a rate of order p; what oscillates within a period blurs the fit.
BLUR = 0.05
FORETOLD = 0.03  # the blur of the order, extrapolated by one halving of the step


@cache
def quick(method):
    return [drift(method, dt, QUICK) for dt in QUICK_LENGTHS.get(method.order, DEFAULT_LENGTHS)]


@pytest.mark.usually(method=[METHODS[name] for name in ("crouch_grossman3", "heun")])
@pytest.mark.parametrize("method", EXPLICIT, ids=lambda m: m.name)
def test_drift_rates_fall_with_the_order(method):
    expected = method.order + (method.order % 2 == 0)
    for order in rate_orders(quick(method)):
        assert order == pytest.approx(expected, abs=BLUR), quick(method)
    assert all(run["unit_norm_error"] < UNIT for run in quick(method))


@pytest.mark.thorough  # the benchmark stores what a million steps of every method do
@pytest.mark.parametrize("method", [METHODS["rk4"], METHODS["commutator_free4"]])
def test_a_million_steps(method):
    """Unit norm throughout; the drift is what the rates of the quick runs foretell."""
    dt = lengths(method)[1]
    run = drift(method, dt, STEPS)
    assert run["unit_norm_error"] < UNIT
    shortest = quick(method)[-1]
    for kind, order in zip(("energy", "momentum"), rate_orders(quick(method)), strict=True):
        foretold = shortest[f"{kind}_rate"] * (dt / shortest["dt"]) ** order * dt * STEPS
        assert run[f"{kind}_drift"] == pytest.approx(foretold, rel=FORETOLD), kind

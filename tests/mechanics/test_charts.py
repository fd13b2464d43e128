"""Motion in local coordinates of the manifold of constraints, with changes of chart."""

import numpy as np
import pytest

from lgcontrol import models
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody, rolling_disk
from lgcontrol.models import five_bar_tree

ROUNDING = 1e-12


@pytest.fixture(scope="module")
def bars():
    return models.three_bar_mechanism()


def errors_of(mechanism, seconds, counts):
    """Beside projected steps that are much shorter; marches, and the system."""
    q = mechanism.coordinates()
    system, x0 = mechanism.system(at=q), mechanism.state(q)
    n = 8 * counts[-1]
    exact = system.rollout(x0, dt=seconds / n, steps=n).x[-1]
    runs = [mechanism.march(x0, seconds / n, n, "charts") for n in counts]
    assert all(run.is_success for run in runs)
    return [np.abs(run.x[-1] - exact).max() for run in runs], runs, system


@pytest.mark.parametrize(
    "word", ["SO3xR3", *(pytest.param(word, marks=pytest.mark.thorough) for word in ("SE3", "rp"))]
)
def test_charts_have_order_four_and_the_motion_of_projected_steps(bars, word):
    errors, runs, system = errors_of(bars.formulated(word), 0.2, (25, 50))
    assert 12 < errors[0] / errors[1] < 40
    assert errors[1] < 1e-5
    for run in runs:
        assert run.changes > 2
        assert np.abs(system.invariants(run.x)).max() < ROUNDING


def test_charts_change_where_directions_have_turned_and_not_before(bars):
    short = bars.march(bars.state(), 1e-4, 5, "charts")
    assert short.changes == 0
    assert bars.march(bars.state(), 4e-3, 60, "charts").changes > 2
    still = models.slider_crank_mechanism(drive="motor")
    assert still.march(still.state(), 1e-4, 20, "charts").changes == 0


def test_a_free_body_that_spins_changes_charts_and_keeps_its_momentum():
    """No rows: charts are those of the group alone, whose logarithm ends at half a turn."""
    box = SpatialInertia.box(2.0, [0.1, 0.2, 0.3])
    body = MechanismBody("box", box, rates=[1.0, 0, 0, 3.0, 4.0, 5.0])
    free = Mechanism("free", [body], gravity=[0, 0, 0])
    run = free.march(free.state(), 5e-3, 200, "charts")
    assert run.is_success and run.changes > 5
    speeds, J = run.x[:, -3:], np.asarray(box.inertia)
    energy = np.einsum("ki,ij,kj->k", speeds, J, speeds) / 2
    assert energy == pytest.approx(energy[0], rel=1e-6)
    assert run.x[-1, :3] == pytest.approx([1.0, 0, 0], abs=ROUNDING)


def test_driven_rows_move_the_manifold():
    """The clock goes along: a crank by a drive has no independent coordinate, and follows it."""
    mechanism = models.slider_crank_mechanism()
    x0 = mechanism.state()
    run = mechanism.march(x0, 1e-2, 250, "charts")
    known = mechanism.kinematics(run.t[::25], q=x0[: mechanism.constraints.group.nq])
    assert run.is_success and run.x[-1, -1] == pytest.approx(2.5, abs=ROUNDING)
    nq = known.q.shape[1]
    assert run.changes > 2  # the crank turns more than once
    assert run.x[::25, :nq] == pytest.approx(known.q, abs=1e-10)
    assert run.a[::25] == pytest.approx(known.a, rel=1e-7, abs=1e-7)
    assert run.multipliers[::25] == pytest.approx(known.multipliers, rel=1e-7, abs=1e-7)


def test_closed_trees_have_charts():
    closed = five_bar_tree()
    x0 = closed.state(closed.assemble())
    system = closed.system()
    run = closed.march(x0, 2e-3, 100, "charts")
    exact = system.rollout(x0, dt=5e-4, steps=400).x[-1]
    assert run.x[-1] == pytest.approx(exact, abs=1e-7)
    assert np.abs(run.x[-1] - x0).max() > 1e-2
    assert np.abs(system.quantities["constraint_gap"](0.0, run.x)).max() < ROUNDING


def test_inputs_act():
    crank = models.slider_crank_mechanism(drive="motor")
    system, x0, u = crank.system(), crank.state(), [0.5]
    driven = crank.march(x0, 1e-3, 40, "charts", u=u).x[-1]
    assert driven == pytest.approx(system.rollout(x0, u, 5e-4, steps=80).x[-1], abs=1e-5)
    assert np.abs(driven - crank.march(x0, 1e-3, 40, "charts").x[-1]).max() > 1e-3


def test_steps_that_are_too_long_are_a_status():
    pendulum = models.spherical_double_pendulum_mechanism()
    run = pendulum.march(pendulum.state(), 0.05, 20, "charts")
    assert not run.is_success
    assert "did not solve its equations" in run.message


def test_bad_input_is_refused(bars):
    with pytest.raises(TypeError, match="such as generalized_alpha.*or \"charts\", not 'chart'"):
        bars.march(bars.state(), 1e-3, 5, "chart")
    with pytest.raises(ValueError, match="dt must be positive and steps at least 1"):
        bars.march(bars.state(), -1e-3, 5, "charts")
    off = bars.state()
    off[0] += 1e-3
    with pytest.raises(ValueError, match=r"x0 does not keep the constraints.*state\(\) makes one"):
        bars.march(off, 1e-3, 5, "charts")
    disk = SpatialInertia(0.01, [0, 0, 0], np.diag([2.5e-7, 2.5e-7, 5e-7]))
    body = MechanismBody("coin", disk, [0, 0, 0.01, *np.sqrt([0, 0.5, 0, 0.5])])
    ends = Marker("ground"), Marker("coin")
    coin = Mechanism("coin", [body], [rolling_disk("contact", *ends, 0.01)])
    with pytest.raises(ValueError, match=r"coin: charts are of configurations.*slip_x.*rollout"):
        coin.march(coin.state(), 1e-3, 5, "charts")

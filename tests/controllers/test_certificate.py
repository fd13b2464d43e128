"""What a certificate leaves behind: the plan of the steps, whole."""

import numpy as np
import pytest

from lgcontrol.controllers import MPC, RealTime
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound
from lgcontrol.optimal.kernel._loop import KernelLoop
from lgcontrol.systems import Input, System


@pytest.mark.compiled
def test_a_plan_after_a_certificate_says_of_itself_what_it_is():
    """A cart too fast for its wall: the elastic problem was solved, and the steps' plan goes on."""
    push = Input("push", "N", -1, 1)
    cart = System("cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u[0]], inputs=[push])
    mpc = MPC(cart, 20, 0.1, Q=1.0, R=0.1, reference=[0.4, 0.0], bounds=[Bound("x", -np.inf, 0.5)])
    mpc(0.0, [0.0, 0.0])
    mpc(0.1, [0.45, 0.9])
    assert mpc.info.status == "infeasible"
    assert mpc.state.number("certified") > 0
    assert mpc.state.number("is_elastic") == 0


def _cubic(**options):
    """A state that a force holds within ±1, and that falls from afar faster than steps follow."""
    force = Input("force", "N", -1, 1)
    system = System("cubic", Rn(1, ("x",)), lambda t, x, u, p: u - x**3, inputs=[force])
    bounds = [Bound("x", -1.0, 1.0)]
    return MPC(system, 10, 0.1, method="rk4", substeps=1, reference=[0.0], bounds=bounds, **options)


def _behind(x, u, dt=0.1):
    """Where the motion of the same system is after a step, of 10,000 small ones."""
    for _ in range(10_000):
        x += dt / 10_000 * (u - x**3)
    return x


@pytest.mark.compiled
def test_a_start_that_no_input_of_a_step_brings_back_is_infeasible_in_one_iteration():
    mpc = _cubic(real_time=RealTime(most_iterations=1))
    mpc(0.0, [0.5])
    assert mpc.info.status == "ok"
    mpc(0.1, [2.0])
    assert _behind(2.0, -1.0) > 1.0
    assert mpc.info.status == "infeasible" and mpc.info.iterations == 1
    assert "no input of the first step brings the start within" in mpc.info.message
    mpc(0.2, [1.05])  # which an input does bring back: nothing says that there is no plan
    assert _behind(1.05, -1.0) < 1.0
    assert mpc.info.status != "infeasible"


@pytest.mark.compiled
def test_a_product_of_controls_may_bring_a_start_back_from_the_corner_across():
    """From (0, 0) each control alone makes v grow; both, at (1, 1), bring it back in one step."""
    inputs = [Input("a", "", 0, 1), Input("b", "", 0, 1)]
    cart = System(
        "cart", Rn(1, ("v",)), lambda t, x, u, p: u[0] + u[1] - 5 * u[0] * u[1], inputs=inputs
    )
    bounds, real_time = [Bound("v", -1, 1)], RealTime(most_iterations=1)
    mpc = MPC(cart, 10, 0.1, Q=1.0, R=0.01, reference=[0.0], bounds=bounds, real_time=real_time)
    for start, is_beyond in (1.05, False), (1.5, True):
        mpc.reset()
        mpc(0.0, [0.5])
        mpc(0.1, [start])
        assert (start - 0.1 * 3 > 1) == is_beyond
        assert ("no input of the first step" in mpc.info.message) == is_beyond


@pytest.mark.compiled
def test_a_diverged_plan_leaves_the_input_of_least_excess():
    """At x = 10 a step of RK4 leads to 1e26, the motion to 2.2."""
    mpc = _cubic()
    assert _behind(10.0, -1.0) > 1.0
    assert mpc(0.0, [10.0]) == pytest.approx([-1.0])
    assert mpc.info.status == "infeasible" and mpc.info.defect > 1e20
    assert "diverged" in mpc.info.message and "x by 9" in mpc.info.message
    mpc(0.1, [0.5])
    assert mpc.info.status == "ok" and mpc.info.restart == "failed"


@pytest.mark.compiled
def test_the_prediction_over_a_delay_follows_the_motion():
    """With steps of the plan it would begin at 1e26."""
    mpc = _cubic(delay=0.1)
    mpc(0.0, [10.0])
    assert mpc.plan.x[0] == pytest.approx([_behind(10.0, 0.0)], abs=0.1)


@pytest.mark.compiled
def test_a_call_ends_wherever_its_time_is_over(monkeypatch):
    """At any look at the clock, also the first of a solve that a look just before has let begin."""
    asked, over = 0, 0

    def ask(loop, entry):
        nonlocal asked
        asked += 1
        loop.is_late = over <= asked < 200  # a call that goes on for ever is found, and ends
        return loop.is_late

    monkeypatch.setattr(KernelLoop, "_ask", ask)
    push = Input("push", "N", -1, 1)
    cart = System("cart", Rn(2, ("x", "v")), lambda t, x, u, p: [x[1], u[0]], inputs=[push])
    mpc = MPC(
        cart, 20, 0.1, Q=1.0, R=0.1, reference=[0.4, 0.0], bounds=[Bound("x", -np.inf, 0.5)],
        real_time=RealTime(budget=100.0),
    )  # fmt: skip
    for over in range(1, 16):
        mpc.reset()
        asked = -10_000  # never in the first call
        mpc(0.0, [0.0, 0.0])
        asked = 0
        mpc(0.1, [0.45, 0.9])
        assert asked <= over + 5

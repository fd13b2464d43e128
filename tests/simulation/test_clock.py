"""One integer tick: exact times, however little the periods have in common."""

from fractions import Fraction

import numpy as np
import pytest

from lgcontrol.simulation import Clock, HeldNoise, Sensor, simulate
from lgcontrol.simulation._agenda import CONTROL, Agenda

from ._plants import Feedback, cart


def test_ticks_divide_all_times():
    clock = Clock.dividing([1 / 30, 0.01, 0.0, 2.5])
    assert clock.tick == Fraction(1, 300)
    assert [clock.ticks("", s) for s in (1 / 30, 0.01, 2.5)] == [10, 3, 750]


def test_times_do_not_drift():
    clock = Clock.dividing([0.1])
    assert [clock.seconds(k) for k in range(1000)] == [k / 10 for k in range(1000)]


def test_a_time_between_ticks_is_refused():
    with pytest.raises(ValueError, match=r"offset = 0\.05 s is no multiple of the tick 1/10 s"):
        Clock.dividing([0.1]).ticks("offset", 0.05)


def test_times_below_the_resolution_are_refused():
    with pytest.raises(ValueError, match="too short"):
        Clock.dividing([1e-11])


def test_huge_tick_counts_cost_nothing():
    """Times with nothing but a nanosecond in common: a loop over 1e9 ticks would take minutes."""
    control = Feedback([4.0, 3.0], dt=0.012345679)
    wind = HeldNoise({"wind": 0.1}, dt=0.003141593, offset=1e-9)
    run = simulate(
        cart(), control, x0=[1, 0], seconds=1.00000007, disturbances=[wind], max_step=1.0
    )
    assert len(control.calls) == 82
    assert control.calls == [k * 12345679 / 10**9 for k in range(82)]
    assert len(run.t) == 82 + 319 + 1
    assert (np.diff(run.t) > 0).all()


def test_many_periods_stay_in_step():
    """After a million periods of 1/30 s a controller at 30 Hz and one at 10 Hz still meet."""
    clock = Clock.dividing([1 / 30, 0.1])
    fast, slow = clock.ticks("", 1 / 30), clock.ticks("", 0.1)
    assert clock.seconds(fast * 3_000_000) == clock.seconds(slow * 1_000_000) == 1e5


def test_order_within_a_tick_is_rank_then_insertion():
    agenda, done = Agenda(), []
    for rank in (5, 1, 3, 1):
        agenda.at(2, rank, lambda tick, rank=rank: done.append(rank))
    agenda.at(1, 9, lambda tick: agenda.at(tick, 10, lambda tick: done.append("later")))
    agenda.run(1)
    assert done == ["later"]
    agenda.run(2)
    assert done == ["later", 1, 1, 3, 5]
    assert agenda.next(7) == 7


def test_the_last_tick_leaves_out_the_higher_ranks():
    agenda, done = Agenda(), []
    for rank in (CONTROL - 1, CONTROL, CONTROL + 1):
        agenda.at(0, rank, lambda tick, rank=rank: done.append(rank))
    agenda.run(0, below=CONTROL)
    assert done == [CONTROL - 1]


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        ({"dt": 0.0}, r"dt of sensor 'a' must be a positive number of seconds, got 0\.0"),
        ({"dt": np.nan}, "positive number of seconds, got nan"),
        ({"dt": np.inf}, "positive number of seconds, got inf"),
        ({"dt": 0.1, "offset": -0.1}, r"offset of sensor 'a' must be 0 or more seconds, got -0\.1"),
        ({"dt": 0.1, "delay": np.inf}, "delay of sensor 'a' must be 0 or more seconds"),
    ],
)
def test_times_are_checked_by_name(thing, text):
    with pytest.raises(ValueError, match=text):
        Sensor("a", **thing)


def test_times_that_are_no_numbers():
    with pytest.raises(TypeError, match="dt of sensor 'a' must be a number of seconds, got 'fast'"):
        Sensor("a", dt="fast")

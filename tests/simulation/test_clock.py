"""One integer tick: exact times, however little the periods have in common."""

from fractions import Fraction

import numpy as np
import pytest

from lgcontrol.simulation import HeldNoise, simulate
from lgcontrol.simulation._clock import Queue, Timing
from lgcontrol.simulation._internal import Clock
from lgcontrol.systems import Sensor

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


@pytest.mark.parametrize(("period", "offset"), [(1, 0), (3, 0), (3, 1), (2, 7)])
def test_what_is_due_is_what_comes_after_what_was(period, offset):
    timing = Timing(period, offset, 0)
    due = [now for now in range(20) if timing.is_due(now)]
    assert due == list(range(offset, 20, period))
    for now in range(15):
        assert timing.after(now) == min(tick for tick in due if tick > now)


def test_what_is_under_way_arrives_in_order_of_time_then_of_departure():
    queue: Queue[str] = Queue()
    for tick, item in ((5, "e"), (2, "a"), (3, "c"), (2, "b")):
        queue.put(tick, item)
    assert (queue.next, len(queue)) == (2, 4)
    assert list(queue.due(1)) == []
    assert list(queue.due(3)) == ["a", "b", "c"]
    assert list(queue.due(9)) == ["e"] and queue.next == np.inf


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
    with pytest.raises(TypeError, match=r"Sensor\(\): dt must be a number or None, got 'fast'"):
        Sensor("a", dt="fast")

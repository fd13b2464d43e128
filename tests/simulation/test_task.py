"""Tasks: a loop with what counts as success."""

import dataclasses
import pickle

import numpy as np
import pytest

from lgcontrol.simulation import Criterion, HeldNoise, Task
from lgcontrol.systems import Trajectory

from ._plants import Feedback, cart


def task(limit: float = 0.1) -> Task:
    return Task(
        cart(),
        Feedback([6.0, 6.0], 0.1),
        x0=np.array([1.0, 0.0]),
        seconds=5,
        reference=np.zeros(2),
        options={"disturbances": [HeldNoise({"wind": 0.1}, 0.1)], "max_step": 0.1},
        criteria=(
            Criterion("final position", lambda run: abs(run.error[-1, 0]), limit, "m"),
            Criterion("largest speed", lambda run: abs(run.x[:, 1]).max(), unit="m/s"),
        ),
    )


def test_a_task_runs_with_its_options_and_is_judged():
    run = task().run()
    assert run.t[-1] == 5 and run.input("wind").any()
    near, speed = task().judge(run)
    assert near.passed and near.value == abs(run.error[-1, 0])
    assert speed.passed and speed.criterion.limit == np.inf
    assert not task(limit=0.0).judge(run)[0].passed


def test_seconds_and_seed_can_be_changed():
    short = task().run(seconds=1.0, seed=3)
    assert short.t[-1] == 1.0 and short.settings["seed"] == 3
    assert short.x.tobytes() == task().run(seconds=1.0, seed=3).x.tobytes()
    assert short.x.tobytes() != task().run(seconds=1.0, seed=4).x.tobytes()


@pytest.mark.parametrize(("value", "limit", "passed"), [
    (1.0, 1.0, True), (1.1, 1.0, False), (np.nan, 1.0, False), (np.inf, np.inf, True),
    (np.nan, np.inf, False),
])  # fmt: skip
def test_a_value_passes_up_to_its_limit(value, limit, passed):
    criterion = Criterion("x", lambda run: value, limit)
    judged = Task(cart(), None, np.zeros(2), 1.0, criteria=(criterion,))
    assert judged.judge(judged.run())[0].passed is passed


@pytest.mark.parametrize(("value", "passed", "excess"), [
    (0.054, True, -0.054), (0.0, True, 0.0), (-0.01, False, 0.01), (np.nan, False, np.nan),
])  # fmt: skip
def test_a_clearance_passes_down_to_its_least(value, passed, excess):
    criterion = Criterion("clearance", lambda run: value, unit="m", least=0.0)
    judged = Task(cart(), None, np.zeros(2), 1.0, criteria=(criterion,))
    (verdict,) = judged.judge(judged.run())
    assert verdict.passed is passed
    assert verdict.excess == pytest.approx(excess, nan_ok=True)
    assert criterion.range == "at least 0 m"
    assert str(criterion) == "clearance: at least 0 m"
    both = dataclasses.replace(criterion, limit=2.0)
    assert both.range == "at least 0 m, at most 2 m"


def position(run):
    return run.x[:, 0]


@pytest.mark.parametrize(("options", "expected"), [
    ({}, 4.0), ({"take": "least"}, 0.0), ({"take": "mean"}, 2.0), ({"until": 0.2}, 2.0),
    ({"since": 0.3, "take": "mean"}, 3.5), ({"since": 9.0, "take": "least"}, 4.0),
    ({"last": 0.0, "take": "least"}, 4.0), ({"last": 0.15, "take": "mean"}, 3.5),
])  # fmt: skip
def test_samples_of_a_signal_count_as_the_criterion_says(options, expected):
    t = np.arange(5) / 10
    run = Trajectory(cart().state, t, np.column_stack([np.arange(5.0), t]))
    criterion = Criterion("x", position, 1.0, "m", **options)
    assert criterion.value(run) == expected
    assert criterion.history(run).tolist() == [0, 1, 2, 3, 4]
    assert pickle.loads(pickle.dumps(criterion)) == criterion
    assert Criterion("speed", lambda run: 1.0).history(run) is None


def test_a_measure_of_another_shape_is_refused():
    run = Trajectory(cart().state, [0.0, 1.0], np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"the measure of 'x' returned shape \(2, 2\), expected a"):
        Criterion("x", lambda run: run.x).value(run)
    with pytest.raises(ValueError, match="unknown take 'most'; valid names are largest"):
        Criterion("x", position, take="most")  # type: ignore[arg-type]

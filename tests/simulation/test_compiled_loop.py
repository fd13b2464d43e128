"""Loops in C: the record of the loop in Python, whatever Python has to do in between."""

import copy
import dataclasses
import signal

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, set_compile_policy
from lgcontrol.codegen._internal import find_compiler
from lgcontrol.controllers import LQR, MPC, TVLQR, RealTime
from lgcontrol.estimation import EKF
from lgcontrol.groups import SO2, SO3, Product, Rn
from lgcontrol.optimal import InteriorPointSolver, Rates
from lgcontrol.simulation import (
    HeldNoise,
    InputSignal,
    Kick,
    Pulse,
    SimulationError,
    WhiteNoise,
    _compiled_loop,
    simulate,
    simulate_many,
)
from lgcontrol.simulation._compiled_memory import LoopFrame
from lgcontrol.simulation._compiled_record import CompiledRecord
from lgcontrol.simulation._internal import another, carried_out, one_of
from lgcontrol.simulation._scaled_plant import Late
from lgcontrol.simulation._simulate import set_up
from lgcontrol.systems import Input, Parameter, Sensor, System

from ._plants import Feedback, cart, drone, swinging

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="no C compiler on PATH")

# A gain times an error is summed up in another order.
ROUNDING = 1e-11
TIMES = ("call_time", "solve_time")


@pytest.fixture
def twice(monkeypatch):
    """Return the function that runs a loop in Python and in C."""

    def run(make, **options):
        found = []
        for driver in (lambda build: None, _compiled_loop.find_driver):
            with monkeypatch.context() as patch:
                patch.setattr(_compiled_loop, "find_driver", driver)
                plant, own = make()
                found.append(simulate(plant, **(own | options)))
        assert found[0].settings["execution"].startswith("in Python")
        assert found[1].settings["execution"].startswith("compiled")
        return found

    return run


def compare(slow, fast, rounding=0.0):
    """Assert that two results are the same in all that a record has."""

    def same(one, other, name):
        assert type(one) is type(other), name
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype and one.shape == other.shape, name
            if one.dtype.kind == "f" and rounding:
                np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding, err_msg=name)
            else:
                np.testing.assert_array_equal(one, other, err_msg=name)
        elif isinstance(one, dict):
            assert list(one) == list(other), name
            for key in one:
                if key == "execution":
                    continue
                if key in TIMES:
                    assert one[key].shape == other[key].shape and (other[key] >= 0).all()
                    continue
                same(one[key], other[key], f"{name}.{key}")
        elif dataclasses.is_dataclass(one) and not isinstance(one, type):
            for field in dataclasses.fields(one):
                same(getattr(one, field.name), getattr(other, field.name), f"{name}.{field.name}")
        elif isinstance(one, float) and rounding:
            assert one == pytest.approx(other, rel=rounding), name
        else:
            assert one == other, name

    same(slow, fast, "run")


class Wave:
    """A disturbance of one's own."""

    dt = 0.07

    def sample(self, t, rng):
        return {"wind": np.sin(t) + 0.1 * rng.normal()}


class Observer:
    """An estimator in Python, without a covariance."""

    def __init__(self, x):
        self.first = np.asarray(x, float)

    def reset(self):
        self.x = self.first.copy()

    def predict(self, t, u, dt):
        self.x = self.x + dt * np.array([self.x[1], u[0] / 2.0])

    def update(self, name, y):
        self.x = self.x + [0.3, 0.1] * (y - self.x[:1])


WIND = HeldNoise({"wind": 0.5}, dt=0.03)
X = Sensor("x", "position", std_discrete=0.01, dt=0.04)
LATE = Sensor("late", std_discrete=0.01, dt=0.03, delay=0.07, offset=0.01, dropout=0.3)


def of_cart(**options):
    law = Feedback([3.0, 2.0], 0.05)
    return lambda: (cart(), {"controller": law, "x0": [1.0, 0.0], "seconds": 1.5, **options})


CASES = {
    "free": lambda: (drone(), {"x0": drone().state.random(1), "seconds": 1.0}),
    "record": of_cart(record_dt=0.013, max_step=0.004),
    "equal steps": of_cart(method="rk4", max_step=0.007),
    "one step": of_cart(method="euler", max_step=1.0),
    "discrete": lambda: (
        swinging(0.01),
        {"controller": Feedback([3.0, 1.0], 0.03), "x0": [1.0, 0.0], "seconds": 1.0},
    ),
    "stiff": lambda: (
        System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"]).augment(lag=1e-4),
        {"x0": [1.0, 0.0, 0.1], "seconds": 0.5, "dt": 0.1},
    ),
    "late and clipped": lambda: (
        cart(),
        {"controller": Feedback([90.0, 2.0], 0.05, offset=0.02, delay=0.12), "x0": [1.0, 0.0],
         "seconds": 1.5},
    ),
    "not clipped": of_cart(saturate=False, controller=Feedback([90.0, 2.0], 0.05)),
    "parameters": of_cart(p={"mass": lambda t: 2.0 + t}),
    "disturbed": of_cart(disturbances=[
        WIND, WhiteNoise({"wind": 0.1}, dt=0.05, offset=0.3), Wave(),
        InputSignal(lambda t: {"wind": t}, dt=0.11),
        Pulse({"wind": 1.0}, start=0.013, duration=0.5), Pulse({"force": 1.0}, start=0.9),
        Kick(0.0, [0.1, 0.0]), Kick(0.77, {"speed": [1.0]}), Kick(0.77, {"speed": [-0.3]}),
        Kick(1.5, {"speed": [1.0]}),
    ]),
    "seen": of_cart(sensors=[LATE], disturbances=WIND, seed=3),
    "sensors": of_cart(
        sensors=[
            X, LATE,
            Sensor("slow", "speed", std_discrete=0.3, correlation_time=0.5, dt=0.1, bias=0.2),
            Sensor("short", "position", std_discrete=0.1, dt=0.1, limits=([0.5], [0.9])),
            Sensor("both", covariance_discrete=[[0.02, 0.01], [0.01, 0.03]], dt=0.1),
            Sensor("scaled", "speed", std_discrete=0.1, dt=0.1, scale=lambda t, x, u, p: 1 + x[0]),
        ],
        feedback="state", seed=1,
    ),
    "observer": of_cart(
        sensors=[X, Sensor("other", "position", dt=0.06, delay=0.01)], estimator=Observer([0.8, 0]),
    ),
    "no inputs": lambda: (
        System("turn", Product(a=SO3, b=Rn(1)), lambda t, x, u, p: ca.vertcat(1, t, x[4], -x[4])),
        {"x0": [0, 0, 0, 1, 1.0], "seconds": 1.0, "dt": 0.1},
    ),
    "nothing": lambda: (System("none", Rn(0), lambda t, x, u, p: ca.SX(0, 1)),
                        {"x0": np.zeros(0), "seconds": 1.0, "dt": 0.1}),
    "times beyond all ends": of_cart(
        controller=Feedback([3.0, 2.0], 0.05, delay=1e12),
        disturbances=[
            Pulse({"wind": 1.0}, start=0.1, duration=1e200), HeldNoise({"wind": 1.0}, dt=1e30),
        ],
        sensors=[Sensor("never", "position", dt=0.1, delay=1e12)], feedback="state",
    ),
    "one tick": of_cart(seconds=0.05),
    "a third": of_cart(seconds=2 / 3, record_dt=1 / 3, controller=Feedback([1.0, 1.0], 1 / 7)),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_loop_in_c_has_the_record_of_that_in_python_bit_by_bit(twice, name):
    compare(*twice(CASES[name]))


@pytest.mark.compiled
def test_machine_code_gives_the_bits_of_the_interpreter(twice):
    set_compile_policy("eager")
    slow, fast = twice(lambda: (drone(), {"x0": drone().state.random(1), "seconds": 0.5}))
    compare(slow, fast)
    assert fast.settings["execution"] == "compiled"


def lqr():
    plant = drone()
    point = plant.trim()
    law = LQR(plant, point, Q=10, R=1, dt=0.02)
    start = plant.state.plus(point.x, 0.3 * np.ones(12))
    return plant, {"controller": law, "x0": start, "seconds": 1.0, "reference": point}


def along():
    plant, options = lqr()
    way = simulate(plant, **options)
    along = plant.rollout(way.x[0], way.u[:30], dt=0.02, steps=30)
    start = plant.state.plus(way.x[0], 0.05 * np.ones(12))
    return plant, {"controller": TVLQR(plant, along, Q=1, R=1), "x0": start, "seconds": 1.0}


def filtered():
    plant, options = lqr()
    sensors = [
        Sensor("pose", "pose", std_discrete=0.01, dt=0.02),
        Sensor("twist", "twist", std_discrete=0.02, dt=0.03, offset=0.01, dropout=0.2),
    ]
    noise = {f"wind_{axis}": 0.1 for axis in "xyz"}
    ekf = EKF(plant, sensors, options["x0"], std0=0.1, noise=noise, method="euler", iterations=1)
    return plant, {**options, "sensors": sensors, "estimator": ekf, "seconds": 0.3}


@pytest.mark.parametrize("make", [lqr, along, filtered])
def test_laws_and_filters_of_expressions_agree_to_rounding(twice, make):
    slow, fast = twice(make)
    compare(slow, fast, ROUNDING)
    assert "in Python" not in fast.settings["execution"]


def test_a_filter_knows_what_a_loop_in_c_did_with_it(twice):
    filters = []

    def make():
        plant, options = filtered()
        filters.append(options["estimator"])
        return plant, options

    twice(make)
    slow, fast = filters
    np.testing.assert_allclose(slow.column, fast.column, rtol=ROUNDING, atol=ROUNDING)
    assert slow.t == fast.t and slow.counts == fast.counts
    assert [list(c) for c in slow.counts.values()] == [list(c) for c in fast.counts.values()]
    assert slow.info["sensor"] == fast.info["sensor"] and slow.summary() == fast.summary()
    assert slow.info["nis"] == pytest.approx(fast.info["nis"])


@pytest.mark.parametrize("offset", [0.0, 0.05])
def test_the_first_measurement_is_used_in_c_as_in_python(twice, offset):
    filters = []

    def make():
        plant, options = lqr()
        pose = Sensor("pose", "pose", std_discrete=0.01, dt=0.02, offset=offset)
        filters.append(EKF(plant, [pose], options["x0"], std0=0.1, noise={}))
        return plant, {**options, "sensors": [pose], "estimator": filters[-1], "seconds": 0.1}

    slow, fast = twice(make)
    compare(slow, fast, ROUNDING)
    assert filters[0].counts == filters[1].counts and filters[0].t == filters[1].t


def test_late_measurements_that_a_filter_cannot_go_back_for_are_stale_in_c_too(twice):
    filters = []

    def make():
        plant, options = lqr()
        pose = Sensor("pose", "pose", std_discrete=0.01, dt=0.02, delay=0.04)
        filters.append(EKF(plant, [pose], options["x0"], std0=0.1, noise={}, window=0.0))
        return plant, {**options, "sensors": [pose], "estimator": filters[-1], "seconds": 0.1}

    compare(*twice(make), ROUNDING)
    assert filters[0].counts == filters[1].counts
    assert set(filters[1].counts["pose"]) == {"stale"}


@pytest.mark.parametrize("status", [np.nan, np.inf, -1.0, 16.0, 1e300])
@pytest.mark.parametrize("kind", ["predict", "updates"])
def test_a_status_that_is_none_ends_a_run(monkeypatch, kind, status):
    """It is a place in the memory of the loop in C."""
    plant = cart()
    ekf = EKF(plant, [X], [1.0, 0.0], std0=0.1, noise={})
    own = ekf.compiled_filter()

    def telling(function):
        symbols = function.function.sx_in()
        made, said = function.function(*symbols)
        told = ca.vertcat(said[:-1, :], status)
        return ModelFunction(
            ca.Function(
                function.name, symbols, [made, told], function.function.name_in(),
                function.function.name_out(),
            )
        )  # fmt: skip

    changed = telling(own.predict) if kind == "predict" else {"x": telling(own.updates["x"])}
    changed = dataclasses.replace(own, **{kind: changed})
    monkeypatch.setattr(EKF, "compiled_filter", lambda self: changed)
    with pytest.raises(SimulationError, match="estimator failed.*told the status .*0 to 15"):
        simulate(plant, x0=[1.0, 0.0], seconds=0.5, sensors=[X], estimator=ekf)


def test_a_law_knows_its_last_call(twice):
    laws = []

    def make():
        plant, options = lqr()
        laws.append(options["controller"])
        return plant, options

    runs = twice(make)
    assert laws[1].info == laws[0].info and laws[1]._time == laws[0]._time == pytest.approx(0.98)
    np.testing.assert_array_equal(laws[1]._last, runs[1].command[-1])


def pendulum():
    return System(
        "pendulum", Product(angle=SO2, rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[2], u[0] + u[1] - ca.sin(x[1])),
        inputs=[Input("torque", "N m", -0.5, 0.5), Input("push", "N m", role="disturbance")],
    )  # fmt: skip


@pytest.fixture(scope="module")
def planner():
    """Return the function that makes an MPC, whose functions are compiled once."""
    made = {}

    def make(**options):
        key = str(options)
        if key not in made:
            made[key] = MPC(
                pendulum(), horizon=20, dt=0.1, Q={"angle": 1, "rate": 0.1}, R=0.01,
                solver=InteriorPointSolver(), **options,
            )  # fmt: skip
        return made[key]

    return make


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 0.15},
        {"real_time": RealTime(restarts="at once")},
        {"hold": "first", "delay": 0.15},
        pytest.param({"rates": Rates(limit=2.0)}, marks=pytest.mark.thorough),
    ],
)
def test_an_mpc_in_its_kernel_answers_bit_by_bit_as_in_python(twice, planner, options):
    pushes = [HeldNoise({"push": 0.02}, dt=0.05), Kick(2.0, [2.0, 3.0])]
    slow, fast = twice(lambda: (pendulum(), {
        "controller": planner(**options), "x0": [1.0, 0.0, 0.0], "seconds": 4.0,
        "reference": [1.0, 0.0, 0.0], "disturbances": pushes,
    }))  # fmt: skip
    compare(slow, fast)
    assert "in Python" not in fast.settings["execution"]
    if "real_time" in options:
        assert "state" in fast.control["restart"]


def test_the_first_call_of_an_mpc_needs_no_python(planner, monkeypatch):
    """It goes on from the plan that was made before the run."""
    monkeypatch.setattr(_compiled_loop.CompiledLoop, "_on_call", None)
    mpc = planner()
    run = simulate(pendulum(), mpc, x0=[1.0, 0.0, 0.0], seconds=1.0, reference=[1.0, 0.0, 0.0])
    assert run.is_success and mpc.plan.t[0] == pytest.approx(0.9)


def test_an_mpc_that_follows_a_function_of_time_is_called_in_python(twice, planner):
    def goal(t):
        return [np.cos(t), np.sin(t), 1.0]

    slow, fast = twice(lambda: (pendulum(), {
        "controller": planner(), "x0": [1.0, 0.0, 0.0], "seconds": 1.0, "reference": goal,
    }))  # fmt: skip
    compare(slow, fast)
    assert "except for MPC, in Python" in fast.settings["execution"]


def broken(t):
    return System("broken", Rn(1), lambda when, x, u, p: u - x * ca.sqrt(t - when), inputs=["u"])


TROUBLES = {
    "no number": lambda: (broken(0.31), {"x0": [1.0], "seconds": 1.0, "dt": 0.1}),
    "no number, equal steps": lambda: (
        broken(0.31), {"x0": [1.0], "seconds": 1.0, "dt": 0.1, "method": "rk4"}),
    "runs away": lambda: (
        System("away", Rn(1), lambda t, x, u, p: x**2), {"x0": [2.0], "seconds": 1.0, "dt": 0.1}),
    "large": lambda: (
        System("large", Rn(1, ("size",)), lambda t, x, u, p: 40 * x),
        {"x0": [2.0], "seconds": 3.0, "dt": 0.1}),
    "does not solve": lambda: (
        System("off", Rn(1), lambda t, x, u, p: -ca.exp(30 * x)),
        {"x0": [2.0], "seconds": 1.0, "dt": 0.1, "method": "radau_iia5", "max_step": 0.05}),
}  # fmt: skip


@pytest.mark.parametrize("name", TROUBLES)
def test_a_plant_that_ends_a_run_ends_it_alike(twice, name):
    slow, fast = twice(TROUBLES[name])
    compare(slow, fast)
    assert fast.status != "completed" and fast.message


def test_a_controller_that_raises_leaves_the_same_result(monkeypatch):
    def law(t, x, reference):
        if t > 0.4:
            raise ZeroDivisionError("no gain")
        return [-x[0]]

    found = []
    for driver in (lambda build: None, _compiled_loop.find_driver):
        monkeypatch.setattr(_compiled_loop, "find_driver", driver)
        with pytest.raises(SimulationError, match=r"law failed at t = 0.5 s.*no gain") as error:
            simulate(cart(), law, x0=[1.0, 0.0], seconds=2.0, dt=0.1)
        found.append(error.value.result)
    compare(*found)


def test_ctrl_c_before_the_loop_takes_an_answer_leaves_the_calls_before(monkeypatch):
    """Python has told of the call, the loop has not counted it: its column had a row too few."""
    tell, told = CompiledRecord.call, []

    def interrupted(self, *given):
        tell(self, *given)
        told.append(given)
        if len(told) == 3:
            raise KeyboardInterrupt

    def law(t, x, reference):
        return [-x[0]]

    law.info = {"gain": 1.0}
    monkeypatch.setattr(CompiledRecord, "call", interrupted)
    run = simulate(cart(), law, x0=[1.0, 0.0], seconds=2.0, dt=0.1)
    assert run.status == "interrupted"
    assert run.control["t"].tolist() == [0.0, 0.1] and run.control["gain"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shrinks", [False, True])
def test_an_estimate_of_another_size_is_refused_as_in_python(monkeypatch, shrinks):
    class Small(Observer):
        def predict(self, t, u, dt):
            self.x = self.x[:1]

        def update(self, name, y):
            pass

    plant = cart()
    law, small = LQR(plant, [0.0, 0.0], dt=0.05), Small([1.0, 0.0][: 1 + shrinks])
    for driver in (lambda build: None, _compiled_loop.find_driver):
        monkeypatch.setattr(_compiled_loop, "find_driver", driver)
        with pytest.raises(ValueError, match="inhomogeneous" if shrinks else "has shape"):
            simulate(plant, law, x0=[1, 0], seconds=1.0, sensors=[X], estimator=small)


def test_a_law_of_other_controls_is_refused_as_in_python(monkeypatch):
    pushed = System(
        "pushed", cart().state, lambda t, x, u, p: [x[1], u[0] + u[1]], inputs=["a", "b"]
    )
    law = LQR(pushed, [0.0, 0.0], dt=0.05)
    for driver in (lambda build: None, _compiled_loop.find_driver):
        monkeypatch.setattr(_compiled_loop, "find_driver", driver)
        with pytest.raises(SimulationError, match="the result of LQR has shape"):
            simulate(cart(), law, x0=[1, 0], seconds=1.0)


def test_parameters_that_change_on_the_way_reach_a_law_in_c(twice):
    def make():
        plant = System(
            "cart", cart().state, lambda t, x, u, p: [x[1], u[0] - p[0]], inputs=["push"],
            parameters=[Parameter("load", "N", 1.0)],
        )  # fmt: skip
        law = LQR(plant, [0.0, 0.0], dt=0.05)

        def at(t):
            if t > 0.5:
                law.parameters = {"load": 2.0}
            return {}

        return plant, {
            "controller": law, "x0": [1, 0], "seconds": 1.0, "reference": [0.5, 0.0],
            "disturbances": InputSignal(at, dt=0.1),
        }  # fmt: skip

    slow, fast = twice(make)
    compare(slow, fast, ROUNDING)
    assert np.ptp(fast.command[-8:, 0]) > 0.1 or fast.command[-1, 0] > 1.5


def test_a_subclass_that_does_more_and_a_wrapper_are_called_in_python(twice):
    class Counted(LQR):
        calls = 0

        def __call__(self, *values, **options):
            self.calls += 1
            return super().__call__(*values, **options)

    class Wrapped:
        def __init__(self, law):
            self.law, self.calls = law, 0

        def __getattr__(self, name):
            return getattr(self.law, name)

        def __call__(self, t, x, reference):
            self.calls += 1
            return 0.5 * self.law(t, x, reference)

    plant = cart()
    own, inner = Counted(plant, [0.0, 0.0], dt=0.1), LQR(plant, [0.0, 0.0], dt=0.1)
    for law in (own, Wrapped(inner)):
        compare(*twice(lambda law=law: (plant, {"controller": law, "x0": [1, 0], "seconds": 1.0})))
        assert law.calls == 20


def test_a_late_controller_needs_no_python(twice, planner):
    """What a campaign varies as "delay" is the loop's to know, not the law's."""
    plant, options = lqr()
    start = {"x0": [np.cos(2.0), np.sin(2.0), 0.0], "seconds": 1.0, "reference": [1.0, 0.0, 0.0]}
    for make, rounding in (
        (lambda: (plant, options | {"controller": Late(options["controller"], 0.03)}), ROUNDING),
        (lambda: (pendulum(), start | {"controller": Late(planner(), 0.02)}), 0.0),
    ):
        slow, fast = twice(make)
        compare(slow, fast, rounding)
        assert "Python" not in fast.settings["execution"]
        assert not np.array_equal(fast.u[0], fast.u[-1])  # nominal until the first answer


def test_late_controllers_are_late_in_threads(planner):
    starts = [[np.cos(a), np.sin(a), 0.0] for a in (0.3, 1.0)]
    options = {"seconds": 0.5, "reference": [1.0, 0.0, 0.0]}
    many = simulate_many(pendulum(), Late(planner(), 0.2), x0=starts, threads=2, **options)
    for k, run in enumerate(many):
        own = simulate(pendulum(), Late(planner(), 0.2), x0=starts[k], seed=k, **options)
        compare(own, run)
        assert run.u[0, 0] == 0.0  # of 0.1 s: nothing has taken effect


def test_progress_is_told_as_in_python(twice):
    told = []
    for run in twice(of_cart(record_dt=0.001, progress=told.append)):
        assert run.status == "completed"
    half = len(told) // 2
    assert len(told) == 200 and told[:half] == told[half:]


@pytest.mark.parametrize("plant", [cart(), swinging(1e-4)])
def test_ctrl_c_ends_an_interval_that_lasts_for_hours(plant):
    set_compile_policy("eager")
    simulate(plant, x0=[1.0, 0.0], seconds=1.0, dt=1.0)  # builds are interrupted elsewhere
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    signal.setitimer(signal.ITIMER_REAL, 0.4)
    try:
        run = simulate(
            plant, x0=[1.0, 0.0], seconds=4000.0, dt=4000.0,
            max_step=None if plant.is_discrete else 1e-4,
        )  # fmt: skip
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert run.status == "interrupted" and len(run.t) == 1


def test_runs_say_what_python_did_and_why():
    plant, options = CASES["sensors"]()
    run = simulate(plant, **options)
    assert "except for the sensor scaled and Feedback, in Python" in run.settings["execution"]
    set_compile_policy("off")
    run = simulate(plant, **options)
    assert run.settings["execution"] == "in Python: no machine code"


def test_parameters_that_pickle_as_numbers_reach_the_loop(twice):
    spring = System(
        "spring", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], -p[0] * x[0]),
        parameters=[Parameter("stiffness", "N/m", 2.0)],
    )  # fmt: skip
    compare(*twice(lambda: (spring, {"x0": [1, 0], "seconds": 1, "dt": 0.1, "p": [5.0]})))


def test_many_runs_in_threads_have_the_bits_of_single_ones(planner):
    plant, starts = pendulum(), [[np.cos(a), np.sin(a), 0.0] for a in (0.3, 1.0, 2.0, -1.0)]
    options = {"seconds": 1.0, "reference": [1.0, 0.0, 0.0]}
    gust = HeldNoise({"push": 0.2}, dt=0.05)
    pushes = [[Kick(0.5, [0.1 * k, 0.0]), gust] for k in range(4)]
    many = simulate_many(
        plant, planner(), x0=starts, seeds=range(7, 11), threads=3,
        each={"disturbances": pushes}, **options,
    )  # fmt: skip
    for k, run in enumerate(list(many)):
        own = simulate(
            plant, planner(), x0=starts[k], seed=7 + k, disturbances=pushes[k], **options
        )
        compare(own, run)


def test_many_runs_of_a_law_and_a_filter_in_python_have_copies_of_their_own():
    plant, law, observer = cart(), Feedback([3.0, 2.0], 0.05), Observer([0.8, 0.0])
    options = {"seconds": 0.5, "sensors": [X], "disturbances": WIND}
    starts = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, 1.0]])
    many = simulate_many(plant, law, x0=starts, estimator=observer, threads=2, **options)
    for k, run in enumerate(list(many)):
        compare(simulate(plant, law, x0=starts[k], estimator=observer, seed=k, **options), run)


def test_many_runs_end_with_the_loop_that_takes_them():
    plant = cart()
    for run in simulate_many(plant, x0=np.ones((50, 2)), seconds=1.0, dt=0.1, threads=2):
        assert run.status == "completed"
        break
    with pytest.raises(ValueError, match=r"x0 has shape \(2,\), expected \(n, 2\)"):
        simulate_many(plant, x0=[1.0, 0.0], seconds=1.0)
    with pytest.raises(ValueError, match="p has 1 entries for 2 runs: give one each"):
        simulate_many(plant, x0=np.ones((2, 2)), seconds=1.0, each={"p": [[1.0]]})
    with pytest.raises(SimulationError, match="no gain"):
        list(simulate_many(plant, broken_law, x0=np.ones((3, 2)), seconds=1.0, dt=0.1, threads=2))


def broken_law(t, x, reference):
    raise ZeroDivisionError("no gain")


def test_equal_steps_have_the_same_bits_before_and_after_they_are_compiled(monkeypatch):
    """A process that has done enough runs compiles the steps; a chaotic plant tells every bit."""
    lorenz = System(
        "lorenz", Rn(3),
        lambda t, x, u, p: ca.vertcat(
            10 * (x[1] - x[0]), x[0] * (28 - x[2]) - x[1], x[0] * x[1] - 8 / 3 * x[2]
        ),
    )  # fmt: skip
    options = {"x0": [1.0, 1.0, 1.0], "seconds": 40.0, "dt": 0.5, "method": "rk4"}
    with monkeypatch.context() as other:
        other.setattr("lgcontrol.codegen._machine_call._kernel", lambda *_: None)
        first = simulate(lorenz, None, **options)
    with one_of(10**6):
        many = simulate(lorenz, None, **options)
    assert first.settings["execution"] == "compiled; interpreted: the plant"
    assert many.settings["execution"] == "compiled"
    np.testing.assert_array_equal(first.x, many.x)


def loops_of_a_drone(plant):
    """Return options of loops that differ in law, estimator, times, noise and length."""
    hover = plant.trim()
    pose = Sensor("pose", "pose", std_discrete=0.02, dt=0.02)
    short = Sensor("pose", "pose", std_discrete=0.02, dt=0.02, dropout=0.5, delay=0.01)
    noise = {name: 0.1 for name in plant.input_names}
    filters = [EKF(plant, [pose], hover.x, std0=std, noise=noise) for std in (0.1, 0.3)]
    law, mpc = LQR(plant, hover, dt=0.02), MPC(plant, horizon=8, dt=0.05, reference=hover)
    off = plant.state.plus(hover.x, 0.1 * np.ones(12))
    pushes = [Kick(0.2, {"twist": np.ones(6)}), Pulse({"wind_x": 0.3}, 0.1, 0.2)]
    wind = HeldNoise({"wind_y": 0.5}, dt=0.03)
    return [
        own | {"x0": own.get("x0", off), "seconds": own.get("seconds", 0.5)}
        for own in (
            {"controller": law, "sensors": [pose], "estimator": filters[0]},
            {"controller": law, "sensors": [pose], "estimator": filters[1], "seed": 5},
            {"controller": law, "sensors": [pose], "estimator": filters[0], "x0": hover.x},
            {"controller": law, "sensors": [short], "feedback": "state", "seed": 3},
            {"controller": LQR(plant, hover, Q=9, dt=0.02), "disturbances": [wind]},
            {"controller": LQR(plant, hover, dt=0.02, saturate=False), "disturbances": [wind]},
            {"controller": Late(law, 0.013), "disturbances": pushes},
            {"controller": Late(law, 0.007), "disturbances": [*pushes, wind], "seed": 1},
            {"controller": law, "seconds": 0.52},
            {"controller": law, "tolerance": 1e-4},
            {"controller": law, "x0": off + 1e13 * np.eye(13)[0]},  # diverges
            {"controller": mpc}, {"controller": Late(mpc, 0.02), "disturbances": [wind]},
        )
    ]  # fmt: skip


@pytest.mark.compiled
def test_runs_that_begin_with_the_memory_of_others_have_the_bits_of_first_runs():
    set_compile_policy("eager")
    first, shared = [], drone()
    for k in range(len(loops_of_a_drone(shared))):
        plant = drone()
        first.append(simulate(plant, **loops_of_a_drone(plant)[k]))
    assert {run.execution for run in first} == {"compiled"}
    assert len({run.x.tobytes() for run in first}) == len(first)
    options = loops_of_a_drone(shared)
    order = np.random.default_rng(4).permuted(np.repeat(np.arange(len(first)), 3))
    for k in order:
        compare(first[k], simulate(shared, **options[k]))


@pytest.mark.compiled
def test_runs_that_are_set_up_before_and_told_after_others_have_their_own_bits():
    """As campaigns have them: all set-ups, all runs, all results."""
    set_compile_policy("eager")
    plant = drone()
    options = loops_of_a_drone(plant)
    own = [simulate(plant, **one) for one in options]
    later = [carried_out([one])[0] for one in [set_up(plant, **one) for one in options]]
    for run, tell in zip(own, later, strict=True):
        compare(run, tell())


@pytest.mark.compiled
def test_runs_that_go_on_in_turns_have_their_own_bits():
    """One call of C for all of them; one that Python refuses or ends disturbs no other."""
    set_compile_policy("eager")
    plant = drone()

    def fails(t, x, reference):
        if t > 0.2:
            raise ArithmeticError("late")
        return plant.nominal_input[plant.input_index("control")]

    options = loops_of_a_drone(plant)
    options += [options[0] | {"estimator": None, "controller": fails, "dt": 0.05, "sensors": ()}]
    own = [simulate(plant, **one) for one in options[:-1]]
    parts = ("controller", "estimator")
    twins = [one | {name: another(one.get(name)) for name in parts} for one in options]
    *later, failed = carried_out([set_up(plant, **one) for one in twins])
    for run, tell in zip(own, later, strict=True):
        compare(run, tell())
    with pytest.raises(SimulationError, match="late") as caught:
        failed()
    assert caught.value.result.t[-1] == 0.2


@pytest.mark.compiled
def test_loops_in_turns_make_memory_once_each(monkeypatch):
    set_compile_policy("eager")
    plant, made = drone(), []
    keep = LoopFrame.keep
    monkeypatch.setattr(LoopFrame, "keep", lambda *given: made.append(given) or keep(*given))
    options = loops_of_a_drone(plant)
    for k in (4, 5, 4, 5, 6, 7, 4, 5):  # another gain, other arguments of the law, another delay
        simulate(plant, **options[k])
    assert len(made) == 4


@pytest.mark.compiled
def test_what_a_run_wrote_stays_when_the_next_one_uses_its_memory():
    set_compile_policy("eager")
    plant = drone()
    options = loops_of_a_drone(plant)[0]
    one = simulate(plant, **options)
    kept = copy.deepcopy(one)
    other = simulate(plant, **options | {"seed": 7})
    assert not np.array_equal(one.x, other.x)
    compare(kept, one)

"""Variations: how they are distributed, and the loops that they make."""

import dataclasses
import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Product, Rn
from lgcontrol.simulation import HeldNoise, InputSignal, Kick, Pulse, Task, Vary, WhiteNoise
from lgcontrol.simulation._internal import check_variations
from lgcontrol.systems import Input, Parameter, Sensor, System


def cart() -> System:
    return System(
        "cart",
        Rn(2, ("place", "speed"), ("m", "m/s")),
        lambda t, x, u, p: ca.vertcat(x[1], (u[0] + u[1] - 0.5 * x[1]) / p[0]),
        inputs=[Input("push", "N"), Input("wind", "N", role="disturbance")],
        parameters=[Parameter("load", "kg", 2.0)],
    )


def push(t, x, reference=None):
    return -x[:1] - x[1:]


def start(seed: int):
    return {"x0": np.array([float(seed), 0.0])}


def task(**more) -> Task:
    options = {"dt": 0.1, **more.pop("options", {})}
    return Task(cart(), push, np.array([1.0, 0.0]), 1.0, options=options, **more)


@pytest.mark.parametrize(("vary", "at_quarter", "text"), [
    (Vary("load", 1, 3, unit="kg"), 1.5, "load: 1 to 3 kg"),
    (Vary("load", 0.8, 1.2, relative=True), 0.9, "load: 0.8 to 1.2 × nominal"),
    (Vary("load", 1, 16, log=True), 2.0, "load: 1 to 16, by its logarithm"),
    (Vary("load", mean=1, std=2), 1 - 2 * 0.6744897501960817,
     "load: normal, mean 1, deviation 2"),
    (Vary("law", values=("a", "b", "c")), "a", "law: one of a, b, c"),
])  # fmt: skip
def test_values_follow_their_distribution(vary, at_quarter, text):
    assert vary.quantile(0.25) == pytest.approx(at_quarter)
    assert str(vary) == text
    assert pickle.loads(pickle.dumps(vary)) == vary


@pytest.mark.parametrize(("vary", "value", "expected"), [
    (Vary("a", 1, 3), 3, 1), (Vary("a", 1, 3), 1.5, -0.5), (Vary("a", 1, 16, log=True), 4, 0),
    (Vary("a", mean=1, std=2), 7, 1), (Vary("a", values=[1, 2, 4]), 4, 1),
    (Vary("a", values=["x", "y"]), "x", 0),
])  # fmt: skip
def test_deviations_count_from_the_middle_of_a_range(vary, value, expected):
    assert vary.deviation(value) == pytest.approx(expected)


@pytest.mark.parametrize(("given", "words"), [
    ({}, "takes low and high, or mean and std, or values"),
    ({"low": 1.0}, "takes low and high"),
    ({"low": 1.0, "high": 2.0, "mean": 1.0, "std": 1.0}, "takes low and high"),
    ({"low": 2.0, "high": 1.0}, "must have low < high, got 2 and 1"),
    ({"low": np.nan, "high": 1.0}, "must have finite numbers"),
    ({"mean": 1.0, "std": 0.0}, "must have std > 0"),
    ({"low": 0.0, "high": 1.0, "log": True}, "must have 0 < low"),
])  # fmt: skip
def test_distributions_that_make_no_sense_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        Vary("load", **given)


def test_parameters_are_absolute_or_relative_to_the_nominal_value():
    assert task().varied({"load": 3.0}).options["p"] == {"load": 3.0}
    assert task().varied({"load": 1.5}, {"load"}).options["p"] == {"load": 3.0}
    given = task(options={"p": {"load": 4.0}})
    assert given.varied({"load": 1.5}, {"load"}).options["p"] == {"load": 6.0}


def test_mass_drag_and_start_change_the_motion():
    """A mass of twice the nominal one halves what the push does; drag goes with the speed."""
    nominal = task()
    other = nominal.varied({"mass": 2.0, "start.speed": 1.0})
    assert other.x0.tolist() == [1.0, 1.0]
    p = [other.options["p"][one.name] for one in other.plant.parameters]
    assert other.plant.f(0.0, [0.0, 0.0], [1.0, 0.0], p)[1] == 0.25
    more = nominal.varied({"drag": 3.0})
    p = [more.options["p"][one.name] for one in more.plant.parameters]
    assert more.plant.f(0.0, [0.0, 1.0], [0.0, 0.0], p)[1] == pytest.approx(-0.75)
    assert more.plant is other.plant  # compiled once


def test_a_block_of_one_component_is_varied_by_its_name():
    blocks = Product(place=Rn(1, ("x",), ("m",)), rates=Rn(2))
    plant = System("cart", blocks, lambda t, x, u, p: ca.vertcat(x[1], u, u), inputs=["push"])
    given = Task(plant, push, np.zeros(3), 1.0, options={"dt": 0.1})
    assert given.varied({"start.place": 2.0, "start.rates.x1": 3.0}).x0.tolist() == [2.0, 0.0, 3.0]
    check_variations(given, [Vary("start.place", 0, 1, unit="m")])
    with pytest.raises(ValueError, match="'start.place' varies in ft, the plant has it in m"):
        check_variations(given, [Vary("start.place", 0, 1, unit="ft")])
    with pytest.raises(ValueError, match=r"has 2 components.*vary start.rates.x0, start.rates.x1"):
        given.varied({"start.rates": 1.0})


def test_disturbances_grow_and_inputs_join_them():
    swell = InputSignal(lambda t: {"wind": t}, dt=0.1)
    kick = Kick(0.5, np.array([0.0, 1.0]))
    given = [HeldNoise({"wind": 0.1}, 0.1), WhiteNoise({"wind": 0.2}, 0.1), swell, kick,
             Pulse({"wind": 1.0}, 0.2)]  # fmt: skip
    other = task(options={"disturbances": given}).varied({"disturbances": 3.0, "input.wind": 0.5})
    noise, white, signal, kicked, pulse, constant = other.options["disturbances"]
    assert noise.std_discrete["wind"] == pytest.approx(0.3)
    assert white.density["wind"] == pytest.approx(0.6)
    assert signal.sample(2.0, None) == {"wind": 6.0}
    assert kicked.change.tolist() == [0.0, 3.0] and pulse.values == {"wind": 3.0}
    assert constant == Pulse({"wind": 0.5}, 0.0)
    assert other.run().t[-1] == 1.0


@pytest.mark.parametrize("as_function", [False, True])
def test_sensors_get_other_noise_bias_and_delay(as_function):
    sensor = Sensor("gps", "place", std_discrete=0.1, dt=0.1)
    full = Sensor("state", std_discrete=[0.1, 0.2], bias=0.5, dt=0.1)
    given = [full, dataclasses.replace(sensor, h=lambda t, x, u, p: x[:1], output=Rn(1))]
    given = (
        (lambda plant: list(given_sensors)) if as_function and (given_sensors := given) else given
    )
    other = task(options={"sensors": given, "feedback": "state"}).varied(
        {"noise": 2.0, "noise.gps": 3.0, "bias.state.speed": 1.0, "delay.gps": 0.2}
    )
    state, gps = other.options["sensors"]
    assert np.allclose(state.std_discrete, [0.2, 0.4]) and state.bias.tolist() == [0.5, 1.5]
    assert gps.std_discrete == pytest.approx(0.6) and gps.delay == 0.2
    assert other.run().t[-1] == 1.0


def test_another_plant_may_take_the_place():
    assert task().varied({"plant": "nominal"}).plant.name == "cart"
    assert task().varied({"plant": "lgcontrol.models:quadrotor"}).plant.name == "quadrotor"
    with pytest.raises(ValueError, match='must be "nominal" or "module:function", got .other.'):
        task().varied({"plant": "other"})


@pytest.mark.parametrize(("values", "relative", "words"), [
    ({"weight": 1.0}, (), "unknown variation 'weight'; valid names are"),
    ({"start.height": 1.0}, (), "unknown component of the start 'height'"),
    ({"input.sea": 1.0}, (), "unknown input 'sea'"),
    ({"noise.gps": 1.0}, (), "'noise.gps' varies a sensor, and the task has no sensors"),
    ({"wieght": 1.0}, ("wieght",), "unknown variation 'wieght'"),
    ({"load": "0.8-1.2"}, (), "'load' varies by numbers, got '0.8-1.2'"),
    ({"start.place": 1.0}, ("start.place",), "has no nominal value to be relative to"),
])  # fmt: skip
def test_names_that_a_task_does_not_have_are_refused(values, relative, words):
    with pytest.raises(ValueError, match=words):
        task().varied(values, relative)


def test_units_and_doubles_are_compared():
    check_variations(task(), [Vary("load", 1, 2, unit="kg"), Vary("start.place", 0, 1, unit="m")])
    with pytest.raises(ValueError, match="'load' varies in lb, the plant has it in kg"):
        check_variations(task(), [Vary("load", 1, 2, unit="lb")])
    with pytest.raises(ValueError, match="'load' is varied twice"):
        check_variations(task(), [Vary("load", 1, 2), Vary("load", 1, 2)])


def test_seeds_vary_the_start_and_what_was_replaced_stays():
    drawn = task(draw=start)
    assert drawn.run().x[0].tolist() == [1.0, 0.0]
    assert drawn.run(seed=3).x[0].tolist() == [3.0, 0.0]
    moved = dataclasses.replace(drawn, x0=np.array([9.0, 0.0]))
    assert moved.run(seed=3).x[0].tolist() == [9.0, 0.0]
    late = dataclasses.replace(drawn, seconds=0.5).run(seed=3)
    assert late.t[-1] == 0.5 and late.x[0].tolist() == [3.0, 0.0]

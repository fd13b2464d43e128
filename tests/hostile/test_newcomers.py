"""Mistakes of newcomers: none is silent, and messages say what was meant and what to write."""

import math
import tomllib
import warnings
from pathlib import Path

import casadi as ca
import matplotlib
import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol import (
    controllers,
    estimation,
    groups,
    integrators,
    mechanics,
    models,
    optimal,
    plotting,
    simulation,
    systems,
)

from .odd_calls import is_ours

matplotlib.use("Agg")
pytestmark = pytest.mark.interpreted

# Messages that are Python's own: not callable, not subscriptable.
MOST_WEAK = 5
MISTAKES = tomllib.loads(Path(__file__).with_name("newcomers.toml").read_text(encoding="utf-8"))
ALL = [
    (room, entry["code"], entry["ends"], entry["words"])
    for room, entries in MISTAKES.items()
    for entry in entries
]


def things():
    """What the snippets are about; made once, and again where a call might change it."""
    rooms = (
        systems, groups, mechanics, models, optimal, controllers, estimation, integrators,
        plotting, simulation,
    )  # fmt: skip
    names = {"np": np, "ca": ca, "lg": lg, "math": math}
    for room in rooms:
        names |= {key: value for key, value in vars(room).items() if not key.startswith("_")}
    Input, Rn, System = systems.Input, groups.Rn, systems.System
    Sensor, Motor = systems.Sensor, mechanics.Motor
    names["cart"] = cart = System(
        "cart",
        groups.Product(place=Rn(1), speed=Rn(1)),
        lambda t, x, u, p: [x[1], (u[0] + u[1]) / p[0]],
        inputs=[Input("push", "N", -5, 5), Input("wind", "N", role="disturbance")],
        parameters=[systems.Parameter("mass", "kg", 1.0, lower=0.0)],
    )
    names["rod"] = rod = mechanics.SpatialInertia.box(1.0, [0.5, 0.1, 0.1])
    drive = mechanics.JointProperties(damping=0.1, effort=20.0)
    tree = mechanics.Multibody("arm")
    tree = tree.add_body(
        "upper", rod, "revolute", joint_name="shoulder", axis="y", properties=drive
    )
    names["tree"] = tree = tree.add_body(
        "lower", rod, "revolute", "upper", [0.5, 0, 0, 0, 0, 0, 1], axis="y", joint_name="elbow",
        properties=drive,
    )  # fmt: skip
    names["swing"] = System(
        "swing",
        groups.Product(angle=groups.Helical(0.0), rate=Rn(1)),
        lambda t, x, u, p: ca.vertcat(x[1], u - 9.81 * ca.sin(x[0])),
        inputs=[Input("torque", "N m", -20, 20)],
    )
    names["stiff"] = System("stiff", Rn(1), lambda t, x, u, p: -100 * x)
    limited = [Input("a", "N", -2, 2), Input("b", "N", -2, 2)]
    names["two"] = System("two", Rn(2), lambda t, x, u, p: u - x, inputs=limited)
    names["cart1"] = System("cart1", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    names["x2"], names["u2"] = np.array([10.0, 2.0]), np.array([1.0, 1.5])
    names["uncontrollable"] = System("stuck", Rn(2), lambda t, x, u, p: [x[0], u], inputs=["u"])
    names["drone"], names["fresh_drone"] = models.quadrotor(), models.quadrotor
    names["four"] = models.four_bar()
    first = {"output": Rn(1), "std_discrete": 0.1}
    names["angle"] = Sensor("angle", lambda t, x, u, p: x[:1], **first)
    names["gps"] = gps = Sensor("place", lambda t, x, u, p: x[:1], **first)
    names["law"] = lambda: controllers.LQR(cart, [0, 0], dt=0.1)
    names["ekf"] = lambda: estimation.EKF(cart, [gps], std0=1.0, noise={"wind": 0.1})
    motors = {"shoulder": Motor(0.1, 100.0), "elbow": Motor(0.1, 100.0)}
    elastic = mechanics.SeriesElastic(tree, motors).system()
    names["rigid_law_plant"] = lambda: elastic
    names["rigid_law"] = lambda: controllers.ComputedTorque(tree, frequency=5.0, dt=0.001)
    return names


@pytest.fixture(scope="module")
def known():
    return things()


def outcome(snippet, known):
    """How a snippet ends, its message and, if it raises, whether the package said it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(snippet, "<snippet>", "exec"), dict(known))
        except Exception as error:
            return "error", str(error), is_ours(error)
    return ("warning", str(caught[0].message), True) if caught else ("silent", "", False)


@pytest.mark.parametrize(("room", "snippet", "kind", "words"), ALL, ids=[e[1] for e in ALL])
def test_a_mistake_is_told(known, tmp_path, monkeypatch, room, snippet, kind, words):
    monkeypatch.chdir(tmp_path)
    found, message, _ = outcome(snippet, known)
    assert found == kind
    for word in words:
        assert word in message


def test_the_list_is_long_and_few_messages_are_weak(known, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(ALL) > 200 and len({entry[1] for entry in ALL}) == len(ALL)
    weak = ["SO3()", "pose=SE3()", 'parameters["mass"]', ')["place"]']
    for _, snippet, kind, _ in ALL:
        if any(snippet.endswith(part) or part in snippet for part in weak):
            assert kind == "error" and not outcome(snippet, known)[2]
    assert len(weak) <= MOST_WEAK

"""Loops that run in real time with a goal that is dragged by hand."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from lgcontrol.controllers import LQR
from lgcontrol.groups import SE3
from lgcontrol.models import panda, quadrotor
from lgcontrol.scene._internal import LiveScene
from lgcontrol.simulation import live
from lgcontrol.simulation._live import _follower, run_live


class Stage:
    """What a browser would show; the goal is dragged 0.3 m along x after a second."""

    url = ""

    def __init__(self, goal):
        self.goal, self.times, self.places = goal, [], []

    def move(self, t, bodies):
        self.times.append(t)
        self.places.append(bodies[0].poses[0, :3])
        if t >= 1.0:
            self.goal = SE3.from_position([0.3, 0.0, 1.0])

    def close(self):
        pass


def test_a_quadrotor_follows_the_goal_that_is_dragged():
    quad = quadrotor()
    hover = quad.trim(position=[0, 0, 1])
    law = LQR(quad, hover, Q={"pose": 10, "twist": 1}, R=0.1, dt=0.05)
    stage = Stage(hover.x[:7])
    motion = run_live(
        quad, law, hover.x, stage, _follower(quad, law, hover.x), 5.0, None, speed=np.inf
    )
    assert len(stage.times) == len(motion.t) - 1 == 100
    assert np.abs(stage.places[19] - [0, 0, 1]).max() < 1e-6
    assert np.abs(motion.x[-1, :3] - [0.3, 0, 1]).max() < 0.02
    assert np.allclose(stage.places[-1], motion.x[-1, :3])


def test_a_goal_sets_parameters_where_the_controller_has_them():
    names = [f"hand.{name}" for name in SE3.coordinate_names]
    law = SimpleNamespace(parameters={"mass": 1.0, **dict.fromkeys(names, 0.0)})
    arm = panda()
    pose = SE3.from_position([0.4, 0.1, 0.6])
    assert _follower(arm, law, arm.home)(law, pose) is None
    assert law.parameters == {"mass": 1.0, **dict(zip(names, pose.tolist(), strict=True))}
    with pytest.raises(ValueError, match="give follow="):
        _follower(arm, SimpleNamespace(), arm.home)


def test_without_viser_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    quad = quadrotor()
    with pytest.raises(ImportError, match="with its extra live"):
        live(quad, lambda t, x, reference: np.zeros(4), x0=quad.home, dt=0.1)
    arm = panda()
    with pytest.raises(ValueError, match="give goal=, the pose that is dragged"):
        live(arm, lambda t, x, reference: np.zeros(7), x0=arm.home, dt=0.1)


def test_viser_is_told_where_bodies_are():
    pytest.importorskip("viser", reason="viser is not installed: live scenes are not tested")
    quad = quadrotor()
    x = quad.home
    stage = LiveScene(quad.scene(x), x[:7], port=18080)
    try:
        x[:3] = [1.0, 2.0, 3.0]
        stage.move(0.5, quad.scene(x).bodies)
        assert np.allclose(stage._frames[0].position, [1, 2, 3])
        assert stage._clock.value == "0.50"
        assert np.allclose(stage.goal, quad.home[:7])
        assert stage.url.startswith("http://127.0.0.1:")
    finally:
        stage.close()


def test_controls_must_be_finite_and_have_a_period():
    quad = quadrotor()
    stage = Stage(None)
    with pytest.raises(ValueError, match="control is not finite"):
        run_live(quad, lambda t, x, r: np.full(4, np.nan), quad.home, stage, None, 1, 0.1, 1)
    with pytest.raises(ValueError, match="has no dt"):
        run_live(quad, lambda t, x, r: np.zeros(4), quad.home, stage, None, 1, None, 1)

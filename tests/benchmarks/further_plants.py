"""Closed loops like those of `closed_loop_plants`, of plants that no rule was made with.

    python -m tests.benchmarks.further_plants [--seed N] [NAME ...]

They are stored apart: one of them has calls that end early, as a plain solve needs 180 iterations.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SE2, Product, Rn
from lgcontrol.optimal import Bound, Sphere, keep_out
from lgcontrol.systems import Input, Parameter

from .closed_loop_plants import FAR, G, Loop, field_of, main

RESULTS = Path(__file__).parent / "results" / "further_plants.json"


def crane_hoist() -> Loop:
    """A crane carries a load over a wall; friction is unknown, the trolley is a call late."""

    def f(x: Any, u: Any, p: Any) -> Any:
        rope, sway, swing, run, wind = x[1], x[2], x[3], x[4], x[5]
        a, b = u[0] - p[0] * run, u[1] - p[0] * wind
        tilt = -(a * ca.cos(sway) + 2 * wind * swing + G * ca.sin(sway)) / rope
        return ca.vertcat(run, wind, swing, tilt, a, b)

    plant = field_of(
        "hoisting crane",
        Product(trolley=Rn(1), rope=Rn(1), sway=Rn(1), swing=Rn(1), run=Rn(1), wind=Rn(1)),
        f,
        [Input("drive", "m/s²", -1, 1), Input("winch", "m/s²", -1, 1)],
        [("friction", "1/s", 0.0)],
        home=[0, 4, 0, 0, 0, 0],
    )
    load = lambda t, x, u, p: ca.vertcat(  # noqa: E731
        x[0] + x[1] * ca.sin(x[2]), -x[1] * ca.cos(x[2])
    )
    mpc = MPC(
        plant,
        40,
        0.15,
        Q={"trolley": 1, "rope": 1, "sway": 2, "swing": 1, "run": 0.5, "wind": 0.5},
        R=0.05,
        terminal={"trolley": 20, "rope": 20, "sway": 40, "swing": 20, "run": 20, "wind": 20},
        bounds=[
            Bound("sway", -0.15, 0.15),
            Bound("rope", 1.5, 5.0),
            Bound("run", -1.0, 1.0),
            keep_out(load, Sphere([3.0, -4.6], 1.0), radius=0.3, name="wall"),
        ],
    )
    return Loop(
        mpc,
        [0, 4, 0, 0, 0, 0],
        160,
        lambda t: [6.0 if t < 14 else 0.0, 4, 0, 0, 0, 0],
        p={"friction": 0.15},
        noise=[0.005, 0.005, 0.003, 0.01, 0.01, 0.01],
        late=1,
    )


def trailer_back() -> Loop:
    """A car backs a trailer past a post that appears; its angle is hard, the hitch longer."""

    def f(x: Any, u: Any, p: Any) -> Any:
        turn = u[0] * ca.tan(x[5]) / 2.8
        return ca.vertcat(u[0], 0, turn, -turn - u[0] * ca.sin(x[4]) / p[0], u[1])

    plant = field_of(
        "trailer",
        Product(pose=SE2, hitch=Rn(1), steering=Rn(1)),
        f,
        [Input("speed", "m/s", -1.5, 1.5), Input("steering_rate", "rad/s", -0.6, 0.6)],
        [("length", "m", 4.0)],
    )
    mpc = MPC(
        plant,
        40,
        0.2,
        Q={"pose": [1, 2, 2], "hitch": 1, "steering": 0.1},
        R={"speed": 0.1, "steering_rate": 0.5},
        terminal={"pose": [20, 40, 40], "hitch": 20, "steering": 2},
        bounds=[
            Bound("steering", -0.6, 0.6),
            Bound("hitch", -0.7, 0.7),
            keep_out(
                lambda t, x, u, p: x[:2], Sphere(lambda t, p: p[-2:], 0.3), radius=1.0, name="post"
            ),
        ],
        parameters=[Parameter("post.x", "m", FAR), Parameter("post.y", "m", FAR)],
    )
    return Loop(
        mpc,
        [0, 0, 1, 0, 0, 0],
        180,
        [-12.0, 1.5, 1, 0, 0, 0],
        p={"length": 4.6},
        noise=[0.01, 0.01, 0.003, 0.005, 0.002],
        told=lambda t: {"post.x": -7.0, "post.y": 0.2} if t > 3 else {},
    )


def ball_on_plate() -> Loop:
    """A ball on a tilting plate with a hole that is hard; a motor sticks, cameras are late."""

    def f(x: Any, u: Any, p: Any) -> Any:
        a = 5 / 7 * G * ca.sin(x[4:6]) - p[0] * x[2:4]
        return ca.vertcat(x[2:4], a, u[0], u[1])

    plant = field_of(
        "ball on a plate",
        Product(place=Rn(2), speed=Rn(2), tilt=Rn(2)),
        f,
        [Input("tilt_x", "rad/s", -2, 2), Input("tilt_y", "rad/s", -2, 2)],
        [("drag", "1/s", 0.1)],
    )
    mpc = MPC(
        plant,
        30,
        0.04,
        Q={"place": 30, "speed": 1, "tilt": 1},
        R=0.02,
        terminal={"place": 300, "speed": 20, "tilt": 20},
        delay=0.08,
        bounds=[
            Bound("place", -0.2, 0.2),
            Bound("tilt", -0.3, 0.3),
            keep_out(lambda t, x, u, p: x[:2], Sphere([0.0, 0.0], 0.03), radius=0.02, name="hole"),
        ],
    )
    goals = [[-0.15, -0.1], [0.16, 0.12], [-0.15, 0.15], [0.18, -0.02]]
    return Loop(
        mpc,
        [-0.15, -0.1, 0, 0, 0, 0],
        300,
        lambda t: np.r_[goals[int(t / 2) % 4], np.zeros(4)],
        p={"drag": 0.3},
        dead={1: 9.0},
        noise=[0.001, 0.001, 0.01, 0.01, 0.002, 0.002],
    )


LOOPS = {make.__name__: make for make in (crane_hoist, trailer_back, ball_on_plate)}

if __name__ == "__main__":
    main(LOOPS, RESULTS)

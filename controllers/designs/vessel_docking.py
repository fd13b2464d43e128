"""A vessel docks sideways between piers, in a current that it does not know."""

from __future__ import annotations

from typing import Any

import casadi as ca
import numpy as np

from lgcontrol.controllers import MPC, SteadyDisturbance
from lgcontrol.groups import SO2
from lgcontrol.models import surface_vessel
from lgcontrol.optimal import Bound, Capsule, HalfSpace, keep_out
from lgcontrol.simulation import Criterion, HeldNoise, InputSignal, SimulationResult, Task, Vary

from ._criteria import error_at_end, failed_calls

HALF_AXIS, HALF_BEAM = 0.48, 0.15  # m: the hull as a capsule, 1.26 m long
FENDERS = 0.15  # m between hull and quay at the berth
QUAY = HALF_BEAM + FENDERS  # m to the left of the berth
PIERS = tuple(np.array([[x, QUAY], [x, QUAY - 1.6]]) for x in (-1.3, 1.3))  # their axes
THICK = 0.1  # m, radius of a pier
MARGIN = 0.1  # m, what gusts may take, and a vessel that is late by a sixth of a second
SPEED = 0.3  # m/s
FLOW = 0.1  # m/s
# It lines up in front of the piers first, then goes straight in: where it turned between them, a
# campaign with delays, gusts and other masses had it touch or stay outside in half of its cases.
AWAY, WAIT, ENTRY = 2.5, 15.0, 30.0  # m from the berth, s until it goes in, s that it takes


def design(seed: int = 0) -> Task:
    """Surface vessel docks between two piers by MPC, in gusts and an unknown current.

    The berth is at the origin, along a quay to its left; piers 2.4 m apart enclose it, twice the
    length of the vessel. It comes from the right at a random heading, lines up 2.5 m in front of
    the berth, and goes straight in. It keeps below 0.3 m/s along and across, and must not touch.
    The current of 0.1 m/s has a direction that changes with the seed. The controller estimates the
    steady force and moment on the hull from the prediction error of the measured state. It does not
    estimate the current itself: drag vanishes with the speed, so near rest a small error of the
    model, such as a delay, passes for a large current.

    Parameters
    ----------
    seed : int
        Of the heading, the distance along the quay and the current.
    """
    vessel = surface_vessel(current=(0, 0, 0))

    def hull(t: Any, x: Any, u: Any, p: Any) -> Any:
        return ca.horzcat(*(x[:2] + way * x[2:4] for way in (-HALF_AXIS, HALF_AXIS)))

    quay = HalfSpace([0.0, QUAY], [0.0, -1.0])
    left, right = (Capsule(axis[0], axis[1], THICK) for axis in PIERS)
    mpc = MPC(
        vessel,
        horizon=30,
        dt=0.5,
        Q={"pose": [1, 1, 2], "twist": [5, 5, 5]},
        R=0.1,
        terminal={"pose": [20, 20, 20], "twist": [50, 50, 50]},
        bounds=[
            Bound("twist.vx", -SPEED, SPEED, soft=100),
            Bound("twist.vy", -SPEED, SPEED, soft=100),
            *(
                keep_out(hull, one, radius=HALF_BEAM + MARGIN, soft=1000, name=name)
                for name, one in (("quay", quay), ("left pier", left), ("right pier", right))
            ),
        ],
        disturbance=SteadyDisturbance(("force", "torque"), settling=7.0),
    )

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        direction = rng.uniform(-np.pi, np.pi)
        flow = {"current.x": FLOW * np.cos(direction), "current.y": FLOW * np.sin(direction)}
        start = [rng.uniform(-1.5, 1.5), -4.0, *SO2.exp([rng.uniform(-np.pi, np.pi)])]
        gusts = HeldNoise({"force.x": 0.1, "force.y": 0.1, "torque.rz": 0.02}, dt=2.0)
        return {
            "x0": np.concatenate([start, np.zeros(3)]),  # pose and twist
            "options": {"disturbances": [gusts, InputSignal(lambda t: flow, dt=60.0)]},
        }

    return Task(
        plant=vessel,
        controller=mpc,
        **draw(seed),
        seconds=60.0,
        reference=approach,
        criteria=(
            error_at_end("position error", "pose", slice(0, 2), "m", 0.1, over=5),
            error_at_end("heading error", "pose", slice(2, 3), "rad", 0.1, over=5),
            Criterion("clearance of the piers", pier_gap, unit="m", least=0.0, take="least"),
            Criterion("clearance of the quay", quay_gap, unit="m", least=0.0, take="least"),
            failed_calls(),
        ),
        hull=(np.array([[-HALF_AXIS, 0.0], [HALF_AXIS, 0.0]]), HALF_BEAM),
        obstacles={
            "left pier": (PIERS[0], THICK),
            "right pier": (PIERS[1], THICK),
            "quay": (np.array([[-2.0, QUAY + 0.1], [2.0, QUAY + 0.1]]), 0.1),  # its edge
        },
        variations=(
            Vary("mass", 0.8, 1.2, relative=True),
            Vary("drag", 0.0, 2.0, relative=True),
            Vary("delay", 0.0, 0.5, unit="s"),
            Vary("disturbances", 0.0, 2.0, relative=True),
        ),
        draw=draw,
    )


def approach(t: float) -> np.ndarray:
    """Pose and twist that lead from the front of the piers to the berth."""
    share = np.clip((t - WAIT) / ENTRY, 0.0, 1.0)
    rate = AWAY / ENTRY if 0.0 < share < 1.0 else 0.0
    return np.array([0.0, -AWAY * (1.0 - share), 1.0, 0.0, 0.0, rate, 0.0])


def pier_gap(run: SimulationResult) -> np.ndarray:
    """Distance [m] of the hull to the nearer pier, shape (N,)."""
    return np.min([_distances(run, axis).min(axis=1) for axis in PIERS], axis=0) - HALF_BEAM


def quay_gap(run: SimulationResult) -> np.ndarray:
    """Distance [m] of the hull to the quay, shape (N,)."""
    ends = _hull(run, np.array([-HALF_AXIS, HALF_AXIS]))
    return (QUAY - ends[..., 1]).min(axis=1) - HALF_BEAM


def _hull(run: SimulationResult, along: np.ndarray) -> np.ndarray:
    """Points of the axis of the hull, shape (N, k, 2)."""
    pose = run.block("pose")
    return pose[:, np.newaxis, :2] + along[:, np.newaxis] * pose[:, np.newaxis, 2:4]


def _distances(run: SimulationResult, axis: np.ndarray) -> np.ndarray:
    """Of points of the axis of the hull to the surface of a pier."""
    points = _hull(run, np.linspace(-HALF_AXIS, HALF_AXIS, 25))
    start, along = axis[0], axis[1] - axis[0]
    share = np.clip((points - start) @ along / (along @ along), 0.0, 1.0)
    nearest = start + share[..., np.newaxis] * along
    return np.linalg.norm(points - nearest, axis=-1) - THICK

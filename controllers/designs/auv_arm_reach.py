"""An underwater vehicle and its arm reach with their tool for a place, together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.controllers import MPC
from lgcontrol.groups import SE3
from lgcontrol.models import underwater_vehicle_arm, underwater_vehicle_arm_tree
from lgcontrol.optimal import Bound, Residual
from lgcontrol.simulation import Criterion, InputSignal, SimulationResult, Task
from lgcontrol.systems import Parameter, System

from ._criteria import ATTITUDE, POSITION, FrameError, failed_calls

TOOL = "tool"
BENT = np.array([0.0, 0.7, 0.6, 0.0])  # rad: the arm reaches forward and down
AHEAD, ASIDE, TURNED = 1.5, 0.8, 1.0  # m, m, rad: how far off the place is, about
SURGE, WAVES, CURRENT = 2.0, 4.0, 0.1  # N, s, m/s
SHARE = 0.8  # of the limits of angles and rates that the plan uses
LATE = 8.0  # s, from when the tool has to be there
SECONDS = 12.0


def design(seed: int = 0) -> Task:
    """Underwater vehicle and arm reach with their tool for a place, by one MPC.

    The tool's pose on SE(3) is the goal; the way there is free. One problem with thrusters and
    joints decides how far the vehicle goes and how far the arm stretches. It keeps the limits of
    both and of the joints' angles and rates. The place is nearly three times the arm's length away.
    Waves push the vehicle; the current is found from the prediction error of the measured state.

    Parameters
    ----------
    seed : int
        Of the place, and of the direction of the current.
    """
    plant, tree = underwater_vehicle_arm(), underwater_vehicle_arm_tree()
    place, rng = tree.placement(TOOL), np.random.default_rng(seed)
    ready = np.concatenate([SE3.identity, BENT])
    rest = np.concatenate([ready, np.zeros(tree.nv)])
    way = np.array([AHEAD, ASIDE * rng.choice([-1.0, 1.0]), 0.0]) + rng.uniform(-0.2, 0.2, 3)
    turn = [0.0, 0.0, rng.choice([-1.0, 1.0]) * TURNED]
    goal = SE3.compose(SE3.from_rotation_vector(turn, position=way), place(ready))

    def missed(t: Value, x: Value, u: Value, p: Value) -> Value:
        return SE3.minus(place(x[: tree.nq]), p[p.shape[0] - SE3.nq :])

    mpc = MPC(
        plant,
        horizon=20,
        dt=0.2,
        substeps=2,  # water brakes the light links: one would err by half of a joint's rate
        Q={"configuration": 0.02, "velocity": 0.5},
        R={**dict.fromkeys(tree.joints[1:], 0.05), "thruster": 1e-3},
        terminal={"configuration": 0.02, "velocity": 2.0},
        residuals=[Residual(missed, weight=20.0, terminal=100.0, name="tool", group=SE3)],
        bounds=[
            Bound(name, SHARE * lower, SHARE * upper, soft=1000.0)
            for name, (lower, upper) in plant.limits.items()
        ],
        parameters=[
            Parameter(f"goal.{name}", "", value)
            for name, value in zip(SE3.coordinate_names, goal, strict=True)
        ],
        disturbance=("current.x", "current.y"),
    )

    direction = rng.uniform(-np.pi, np.pi)
    flow = CURRENT * np.array([np.cos(direction), np.sin(direction)])

    def sea(t: float) -> dict[str, float]:
        phase = 2 * np.pi * t / WAVES
        push = {"force.x": SURGE * np.sin(phase), "force.y": SURGE * np.cos(phase)}
        return push | {"current.x": flow[0], "current.y": flow[1]}

    return Task(
        plant=plant,
        controller=mpc,
        x0=rest,
        seconds=SECONDS,
        reference=rest,
        options={"disturbances": [InputSignal(sea, dt=0.05)]},
        criteria=(
            Criterion(
                "tool off its place after 8 s",
                FrameError(place, goal, POSITION),
                0.03,
                "m",
                since=LATE,
                goal=0,
            ),
            Criterion(
                "tool turned after 8 s", FrameError(place, goal, ATTITUDE), 0.05, "rad", since=LATE
            ),
            Criterion("angles and rates beyond their limits", _beyond(plant), 0.0, ""),
            Criterion("joint that moved most", moved, unit="rad", least=0.2, last=0.0),
            failed_calls(),
        ),
        goals=(goal,),
    )


@dataclass(frozen=True)
class Beyond:
    """By how much coordinates of the state, each with its limits, are beyond them."""

    limits: tuple[tuple[int, float, float], ...]

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of the worst coordinate at each time, shape (N,)."""
        excess = [
            np.maximum(lower - run.x[:, k], run.x[:, k] - upper) for k, lower, upper in self.limits
        ]
        return np.max(excess, axis=0)


def _beyond(plant: System) -> Beyond:
    names = plant.state.coordinate_names
    return Beyond(tuple((names.index(name), *pair) for name, pair in plant.limits.items()))


def moved(run: SimulationResult) -> np.ndarray:
    """How far the joint that moved most is from where the arm is ready [rad], shape (N,)."""
    return np.abs(run.x[:, SE3.nq : SE3.nq + len(BENT)] - BENT).max(axis=1)

"""A quadrotor flips over on its way."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.controllers import MPC
from lgcontrol.groups import SO3
from lgcontrol.models import quadrotor
from lgcontrol.optimal import Bound, InteriorPointSolver, Phase, PhasedProblem
from lgcontrol.simulation import Criterion, HeldNoise, SimulationResult, Task
from lgcontrol.systems import Trajectory

from ._criteria import ATTITUDE, POSITION, Known, error_at_end, failed_calls

WAY = 4.0  # m
SPIN = 6.0  # rad/s at least where it is upside down
SHARE = 0.85  # of the thrust that the plan uses
SECONDS, DT = 3.0, 0.025  # s
GUESSED = 1.5  # s, of the way


def design(seed: int = 0) -> Task:
    """Quadrotor flips over on its way, which is planned in least time, by MPC.

    The place is 4 m aside. The plan has two phases of free duration. The first leads to being
    upside down, turning at 6 rad/s or more about the way it flies; the second, the other half of
    the turn, to a hover. MPC with preview follows it in gusts, from a start that is some
    centimetres and degrees off.

    Parameters
    ----------
    seed : int
        Of the start.
    """
    quad = quadrotor()
    begin, goal = quad.trim(), quad.trim(position=[0.0, -WAY, 0.0])
    _, most = quad.input_bounds
    thrusts = [
        Bound(name, 0.0, SHARE * bound)
        for name, bound, entry in zip(quad.input_names, most, quad.inputs, strict=True)
        if entry.role == "control"
    ]

    def upright(t: Any, x: Any, u: Any, p: Any) -> Any:
        return SO3.matrix(x[3:7])[2, 2]

    def missed(t: Any, x: Any, u: Any, p: Any) -> Any:
        return quad.state.minus(x, goal.x)

    flight = PhasedProblem(
        [
            Phase(
                quad, 30, (0.2, 3.0), R=1e-3, name="over",
                bounds=[
                    *thrusts,
                    Bound(upright, upper=-0.98, at="terminal", name="upright"),
                    Bound("twist.wx", lower=SPIN, at="terminal"),
                ],
            ),
            Phase(
                quad, 30, (0.2, 3.0), R=1e-3, name="on",
                bounds=[*thrusts, Bound(missed, 0.0, 0.0, at="terminal", name="missed")],
            ),
        ],
        time_weight=1.0,
        reference=goal,
    )  # fmt: skip
    plan = flight.solve(
        begin.x, guess=_guess(quad, begin), solver=InteriorPointSolver(flight.problem).prepare(),
        tolerance=1e-5, max_iterations=400,
    )  # fmt: skip
    way, arrival = plan.trajectory, plan.trajectory.t[-1]
    path = Trajectory(
        quad.state,
        np.r_[way.t, SECONDS + 1.0],
        np.vstack([way.x, goal.x]),
        np.vstack([way.input_at_nodes[:-1], goal.u]),
        inputs=quad.inputs,
    )
    mpc = MPC(
        quad,
        horizon=20,
        dt=DT,
        Q={"pose": [20, 20, 20, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
        R=0.05,
        guess="reference",
    )

    def draw(seed: int) -> dict[str, Any]:
        rng = np.random.default_rng(seed)
        off = np.r_[rng.uniform(-0.05, 0.05, 3), rng.uniform(-0.1, 0.1, 3), np.zeros(6)]
        return {"x0": quad.state.plus(begin.x, off)}

    return Task(
        plant=quad,
        controller=mpc,
        **draw(seed),
        draw=draw,
        seconds=SECONDS,
        reference=path,
        options={"disturbances": [HeldNoise({f"force.{a}": 0.3 for a in "xyz"}, dt=0.05)]},
        criteria=(
            Criterion("time of the way", Known(float(arrival)), 2.5, "s"),
            Criterion("cosine of the tilt at its least", cosine_of_tilt, -0.95, take="least"),
            error_at_end("position error", "pose", POSITION, "m", 0.2),
            error_at_end("attitude error", "pose", ATTITUDE, "rad", 0.2),
            failed_calls(),
        ),
    )


def _guess(quad: Any, begin: Any) -> Trajectory:
    """States that turn once about x on the straight way, with the velocities that they have."""
    share = np.linspace(0.0, 1.0, 61)
    smooth, rate = share**2 * (3 - 2 * share), 6 * share * (1 - share) / GUESSED
    x = np.array([begin.x] * len(share))
    x[:, 1] = -WAY * smooth
    x[:, 3:7] = SO3.exp(2 * np.pi * smooth[:, None] * [1.0, 0.0, 0.0])
    x[:, 7:10] = SO3.act(SO3.inverse(x[:, 3:7]), -WAY * rate[:, None] * [0.0, 1.0, 0.0])
    x[:, 10] = 2 * np.pi * rate
    return Trajectory(quad.state, GUESSED * share, x, np.tile(begin.u, (60, 1)))


def cosine_of_tilt(run: SimulationResult) -> np.ndarray:
    """Cosine of the angle between the vehicle's axis and the vertical, shape (N,)."""
    return SO3.matrix(run.block("pose")[:, 3:7])[:, 2, 2]

"""Two designs of which weights are arguments, by default those of the recovery's MPC.

    lgcontrol tune tests/benchmarks/_tuned_designs.py:recovery_lqr --cases 24 --trials 20 \\
        --search position=1:100 --search attitude=0.5:50 --search effort=0.01:10 --held-out 48

The stored search was by the logarithm of these weights, and of the position error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lgcontrol.controllers import LQR, MPC
from lgcontrol.controllers.designs import quadrotor_recovery
from lgcontrol.simulation import Task


def recovery_mpc(seed: int = 0, effort: float = 0.1, end: float = 1.0) -> Task:
    """Recovery by MPC with another weight of the inputs and of the end of its horizon."""
    task = quadrotor_recovery.design(seed)
    last = {"pose": [200, 200, 200, 100, 100, 100], "twist": [50, 50, 50, 10, 10, 10]}
    mpc = MPC(
        task.plant, horizon=40, dt=0.05, R=effort,
        Q={"pose": [10, 10, 10, 5, 5, 5], "twist": [1, 1, 1, 0.2, 0.2, 0.2]},
        terminal={name: (end * np.array(values)).tolist() for name, values in last.items()},
    )  # fmt: skip
    return replace(task, controller=mpc)


def recovery_lqr(
    seed: int = 0, position: float = 10.0, attitude: float = 5.0, effort: float = 0.1
) -> Task:
    """Recovery by the LQR of the hover, with the weights of the MPC."""
    task = quadrotor_recovery.design(seed)
    law = LQR(
        task.plant, task.reference, dt=0.02, R=effort * np.eye(4),
        Q=np.diag([position] * 3 + [attitude] * 3 + [1.0] * 3 + [0.2] * 3),
    )  # fmt: skip
    return replace(task, controller=law)

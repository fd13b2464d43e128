"""An arm with elastic gears moves fast, its hand within a hundredth of a millimetre."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.controllers import FeedbackLinearization
from lgcontrol.models import elastic_panda_tree
from lgcontrol.simulation import Kick, Task, Vary
from lgcontrol.systems import Waypoints

from ._criteria import failed_calls
from ._elastic import heavier, largest_deflection, motor_work, tip_errors

HOME = np.array([0.0, -0.4, 0.0, -2.2, 0.0, 1.8, 0.6])
AWAY = np.array([0.8, 0.2, 0.3, -1.6, 0.3, 2.2, 1.2])
MOVE, REST = 1.0, 0.3  # s
BLOW = Kick(MOVE + REST + MOVE + 0.1, {"velocity": np.full(7, 1.0)})
SPREAD = 0.03  # rad, of both ends
# Poles of the link error and of its integral, rad/s. Those of Butterworth weigh what the model says
# of acceleration and jerk less next to the error than equal ones; faster ones do not survive the
# blow, which takes torques to their bounds.
POLES = [-30.0, *(200.0 * np.exp(1j * np.pi * np.array([5, 7, 9, 11]) / 8))]


def design(seed: int = 0) -> Task:
    """Panda on gears that give way goes there and back by feedback linearization.

    Gears of 5–10 kN m/rad give way by half a degree. The law corrects link errors through them and
    keeps the hand within a twentieth of a millimetre of its path, with masses that are off by some
    per cent, too. Motors that follow the flat map do not. A blow after the way back brings torques
    to their bounds.

    Parameters
    ----------
    seed : int
        Of where it goes from and to.
    """
    arm = elastic_panda_tree()
    stops = np.cumsum([0.0, MOVE, REST, MOVE, REST + 0.4])

    def draw(seed: int) -> dict[str, Any]:
        spread = SPREAD * np.random.default_rng(seed).normal(size=(2, 7))
        away, home = np.array([AWAY, HOME]) + spread
        path = Waypoints(arm.tree.configuration, stops, [home, away, away, home, home], order=9)
        law = FeedbackLinearization(arm, poles=POLES, integral=True, reference=path, check=False)
        start = law.reference_states(np.zeros(1))
        assert start is not None
        tip = tip_errors(arm, path, "panda_hand_tcp", 0.05, 0.5, until=BLOW.time - 0.01)
        criteria = (*tip, largest_deflection(arm, 0.02), motor_work(arm), failed_calls())
        return {"controller": law, "x0": start[0], "reference": path, "criteria": criteria}

    return Task(
        plant=arm.system("elastic_panda"),
        **draw(seed),
        seconds=float(stops[-1]),
        options={"disturbances": [BLOW]},
        perturbed=heavier(arm, "elastic_panda"),
        draw=draw,
        variations=(
            Vary("mass", 0.95, 1.05, relative=True),
            Vary("drag", 0.5, 1.5, relative=True),
            Vary("delay", 0.0, 1e-3, unit="s"),
        ),
    )

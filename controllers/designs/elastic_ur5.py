"""An arm on soft springs picks and places: a law that knows the springs, or one that does not."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lgcontrol.controllers import ComputedTorque, Controller, ElasticLaw, FeedbackLinearization
from lgcontrol.mechanics import JointProperties, SeriesElastic
from lgcontrol.models import elastic_ur5_tree
from lgcontrol.simulation import Kick, Task
from lgcontrol.systems import ReferenceLike, Waypoints

from ._criteria import failed_calls
from ._elastic import largest_deflection, motor_work, tip_errors

PICK = np.array([0.0, -1.2, 1.0, -1.3, -1.5, 0.0])
PLACE = np.array([1.2, -0.7, 1.6, -1.9, -0.8, 0.8])
MOVE, REST = 1.0, 0.3  # s: as fast as the speed limits of the joints allow
BLOW = Kick(MOVE + REST + MOVE + 0.1, {"velocity": np.array([0.2, 0.2, 0.2, 0.3, 0.3, 0.3])})
SPREAD = 0.05  # rad, of where it picks and places


class RigidLaw(Controller):
    """Computed torque that takes motor angles for those of the links."""

    def __init__(self, arm: SeriesElastic, known: ElasticLaw, *, frequency: float) -> None:
        super().__init__(known.system, dt=known.dt, reference=known.reference)
        self.known = known
        armatures = {
            name: JointProperties(armature=motor.reflected_inertia)
            for name, motor in arm.motors.items()
        }
        tree = arm.tree.with_properties(**armatures)
        self.law = ComputedTorque(tree, frequency=frequency, saturate=False)
        self.start = arm.state.coordinate_slice("motor").start

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        return self._saturate(self.law(t, x[self.start :], reference))

    def _state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """Where motors should be, which this law does not know."""
        return self.known._state_reference(reference)


def design(seed: int = 0, law: Literal["flat", "rigid"] = "flat") -> Task:
    """UR5 on springs of 200–1000 N m/rad picks, places and picks again within 2.3 s.

    Feedback linearization with the integral of the link error follows the links to a tenth of a
    millimetre; springs give way by up to 0.1 rad meanwhile. After the way back a blow changes the
    rates of all links by 0.2–0.3 rad/s, and torques meet their bounds. ``law="rigid"`` is computed
    torque of the rigid arm, fed with motor angles: it sags by centimetres and meets no criterion.

    Parameters
    ----------
    seed : int
        Of where it picks and places.
    law : {"flat", "rigid"}

    Returns
    -------
    Task
    """
    if law not in ("flat", "rigid"):
        raise ValueError(f'law must be "flat" or "rigid", not {law!r}')
    arm = elastic_ur5_tree()
    place, pick = np.array([PLACE, PICK]) + SPREAD * np.random.default_rng(seed).normal(size=(2, 6))
    stops = np.cumsum([0.0, MOVE, REST, MOVE, REST + 0.4])
    path = Waypoints(
        arm.tree.configuration, stops, [pick, place, place, pick, pick], order=9
    )  # fmt: skip
    flat = FeedbackLinearization(arm, frequency=40.0, integral=True, reference=path, check=False)
    start = flat.reference_states(np.zeros(1))
    assert start is not None
    controller: Any = flat if law == "flat" else RigidLaw(arm, flat, frequency=20.0)
    return Task(
        plant=arm.system("elastic_ur5"),
        controller=controller,
        x0=start[0],
        seconds=float(stops[-1]),
        reference=path,
        options={"disturbances": [BLOW]},
        criteria=(
            *tip_errors(arm, path, "tool0", 0.1, 0.5, until=BLOW.time - 0.01),
            largest_deflection(arm, 0.25),
            motor_work(arm),
            failed_calls(),
        ),
    )

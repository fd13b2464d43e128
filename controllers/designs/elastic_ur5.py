"""An arm on soft springs picks and places: a law that knows the springs, or one that does not."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from lgcontrol.controllers import (
    MPC,
    ComputedTorque,
    Controller,
    ElasticLaw,
    FeedbackLinearization,
    RealTime,
)
from lgcontrol.mechanics import JointProperties, SeriesElastic
from lgcontrol.models import elastic_ur5_tree
from lgcontrol.optimal import Bound
from lgcontrol.simulation import Kick, Task
from lgcontrol.systems import ReferenceLike, SmoothReference, Waypoints

from ._criteria import failed_calls
from ._elastic import heavier, largest_deflection, motor_work, tip_errors

PICK = np.array([0.0, -1.2, 1.0, -1.3, -1.5, 0.0])
PLACE = np.array([1.2, -0.7, 1.6, -1.9, -0.8, 0.8])
MOVE, REST = 1.0, 0.3  # s: as fast as the speed limits of the joints allow
BLOW = Kick(MOVE + REST + MOVE + 0.1, {"velocity": np.array([0.2, 0.2, 0.2, 0.3, 0.3, 0.3])})
SPREAD = 0.05  # rad, of where it picks and places
# Poles of the link error and of its integral, rad/s. What a wrong mass asks of the tip falls with
# the square of their distance, and one sample of delay is 4° of their phase; but from 85 on the
# torques that answer the blow meet their bounds and do not bring the links back: a fifth less.
POLES = [-10.0, *(70.0 * np.exp(1j * np.pi * np.array([5, 7, 9, 11]) / 8))]
TIGHT = 0.056  # rad: what springs may give way under predictive control; the motion asks for 0.06


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

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """Return the state reference with the motors' positions, which this law does not know."""
        return self.known.state_reference(reference)


def predictive(arm: SeriesElastic, path: SmoothReference | None) -> MPC:
    """MPC of the motor torques that keeps deflections: 0.15 s ahead, every 10 ms.

    Deflections are kept by a penalty, which takes one to five steps a call; a hard bound takes up
    to fifteen. No plan begins anew if the way asks for more deflection than there is. A call then
    stays below the period.

    Parameters
    ----------
    path : SmoothReference or None
        Of the links.
    """
    return MPC(
        arm.system("elastic_ur5"),
        horizon=15,
        dt=0.01,
        Q={"configuration": 3e3, "velocity": 3.0, "motor": 0.0, "motor_velocity": 0.01},
        R=1e-4,
        terminal={"configuration": 3e4, "velocity": 100.0, "motor": 0.0, "motor_velocity": 0.1},
        bounds=[
            Bound("deflection", -TIGHT, TIGHT, soft=1e5),
            Bound("configuration", -2 * np.pi, 2 * np.pi, soft=100.0),
        ],
        reference=path,
        real_time=RealTime(restarts=False),
    )


def design(seed: int = 0, law: Literal["flat", "rigid", "mpc"] = "flat") -> Task:
    """UR5 on springs of 200–1000 N m/rad picks, places and picks again within 2.3 s.

    Feedback linearization with the integral of the link error follows the links to a hundredth of a
    millimetre, to a tenth with masses that are off by a per cent. Springs give way by up to 0.1 rad
    meanwhile. After the way back a blow changes the rates of all links by 0.2–0.3 rad/s. Torques
    then meet their bounds, which limit the law's bandwidth. ``law="rigid"`` is computed torque of
    the rigid arm, fed with motor angles: it sags by centimetres and meets no criterion.
    ``law="mpc"`` is predictive control whose springs may give way by 0.056 rad, less than the
    motion takes. It leaves the way by some centimetres and comes to rest at the goal.

    Parameters
    ----------
    seed : int
        Of where it picks and places.
    law : {"flat", "rigid", "mpc"}
    """
    if law not in ("flat", "rigid", "mpc"):
        raise ValueError(f'law must be "flat", "rigid" or "mpc", not {law!r}')
    arm = elastic_ur5_tree()
    place, pick = np.array([PLACE, PICK]) + SPREAD * np.random.default_rng(seed).normal(size=(2, 6))
    stops = np.cumsum([0.0, MOVE, REST, MOVE, REST + 0.4])
    path = Waypoints(
        arm.tree.configuration, stops, [pick, place, place, pick, pick], order=9
    )  # fmt: skip
    flat = FeedbackLinearization(arm, poles=POLES, integral=True, reference=path, check=False)
    start = flat.reference_states(np.zeros(1))
    assert start is not None
    controller: Any = flat
    if law != "flat":
        is_rigid = law == "rigid"
        controller = RigidLaw(arm, flat, frequency=20.0) if is_rigid else predictive(arm, path)
    allowed, most = (40.0, TIGHT + 1e-4) if law == "mpc" else (0.1, 0.25)
    return Task(
        plant=arm.system("elastic_ur5"),
        controller=controller,
        x0=start[0],
        seconds=float(stops[-1]),
        reference=path,
        options={"disturbances": [BLOW]},
        criteria=(
            *tip_errors(arm, path, "tool0", allowed, 0.5, until=BLOW.time - 0.01),
            largest_deflection(arm, most),
            motor_work(arm),
            failed_calls(),
        ),
        perturbed=heavier(arm, "elastic_ur5"),
    )

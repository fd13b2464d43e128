"""A joint whose spring does the work of a swing: stiffness follows the frequency."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lgcontrol.controllers import FeedbackLinearization
from lgcontrol.groups import Product, Rn
from lgcontrol.models import variable_stiffness_joint_tree
from lgcontrol.simulation import Criterion, SimulationResult, Task, scaled_inertia
from lgcontrol.systems import System, Waypoints

from ._criteria import failed_calls

AMPLITUDE = 0.2  # rad: torques of 3/4 of their bounds, so that a heavier link can be followed
LEAST, GROWTH = 20.0, 180.0  # N m/rad, N m/rad³: stiffness at φ = 0, and how it grows with φ²
SLOW, FAST = 0.3, 0.72  # rad, of the motor that sets the stiffness
SECONDS, RAMP = 2.4, 0.4  # s, of the run, and in which the swing grows and dies down
CHANGE = (0.8, 1.4)  # s, between which the spring is stiffened
NODES = 0.01  # s
# Poles of the link error, rad/s. Those of Butterworth weigh acceleration and jerk, which are
# the model's and err with its mass, about half as much next to the error as four equal ones.
POLES = 130.0 * np.exp(1j * np.pi * np.array([5, 7, 9, 11]) / 8)


def design(seed: int = 0) -> Task:
    """Link swings with its spring, faster when a second motor stiffens the spring.

    With ``k = M ω²`` the spring carries the whole torque of a swing with its motor at rest. It
    stores and releases the energy of every half period. The second motor stiffens the spring while
    the link swings, and the swing speeds up with it. Feedback linearization by the flat map, whose
    outputs are the link and the second motor, corrects both by themselves. If a link of another
    mass lacks torque for a swing, the motor puts it in.

    Parameters
    ----------
    seed : int
        Of the phase.
    """
    arm = variable_stiffness_joint_tree(least_stiffness=LEAST, stiffness_growth=GROWTH)
    spring, group = arm.motors["joint"].joint_spring, arm.tree.configuration
    phi = Waypoints(Rn(1), [0, *CHANGE, SECONDS], [[SLOW], [SLOW], [FAST], [FAST]], order=9)
    t = np.linspace(0, SECONDS, round(SECONDS / NODES) + 1)
    stiffness = np.asarray(spring.torque(1.0, phi(t).x[:, 0], {}), dtype=float)
    speed = np.sqrt(stiffness / arm.tree.mass_matrix([0.0])[0, 0])
    phase = np.concatenate([[0.0], np.cumsum((speed[1:] + speed[:-1]) / 2 * np.diff(t))])
    growth = Waypoints(Rn(1), [0, RAMP, SECONDS - RAMP, SECONDS], [[0], [1], [1], [0]], order=9)
    shift = np.random.default_rng(seed).uniform(0, 2 * np.pi)
    swing = AMPLITUDE * growth(t).x * np.sin(phase + shift)[:, None]
    path = Waypoints(group, t, swing, order=9, stops=False)
    law = FeedbackLinearization(
        arm, poles=POLES.tolist(), settings=phi, setting_frequency=80.0, reference=path
    )
    start = law.reference_states(np.zeros(1))
    assert start is not None

    def heavier(share: float, factor: float) -> tuple[System[Product], dict[str, float]]:
        """On the same springs, which `scaled_inertia` would let grow along."""
        same = variable_stiffness_joint_tree(
            least_stiffness=LEAST / (1 + share), stiffness_growth=GROWTH / (1 + share)
        )
        return scaled_inertia(
            same.system("variable_stiffness_joint"), 1 + share, drag=1 + factor
        ), {}

    return Task(
        plant=arm.system("variable_stiffness_joint"),
        controller=law,
        x0=start[0],
        seconds=SECONDS,
        reference=path,
        criteria=(
            Criterion("error of the link", LinkError(path), 0.016, "rad"),
            Criterion("work of the motor next to that of the spring", WorkShare(0), 0.2),
            failed_calls(),
        ),
        perturbed=heavier,
    )


@dataclass(frozen=True, eq=False)
class LinkError:
    """Distance [rad] of the link from its path."""

    path: Waypoints

    def __call__(self, run: SimulationResult) -> np.ndarray:
        """Of each time, shape (N,)."""
        return np.abs(run.x[:, 0] - self.path(run.t).x[:, 0])


@dataclass(frozen=True)
class WorkShare:
    """``∫ |u θ̇| / ∫ |τ q̇|`` of a joint while the swing neither grows nor dies down."""

    joint: int

    def __call__(self, run: SimulationResult) -> float:
        """Of the whole run."""
        joint = self.joint
        inside = (run.t[:-1] > RAMP) & (run.t[:-1] < SECONDS - RAMP)
        phi = run.block("stiffness_motor")[:-1, joint]
        q, v = run.x[:-1, 0], run.x[:-1, 1]
        theta, w = run.block("motor")[:-1, joint], run.block("motor_velocity")[:-1, joint]
        model = variable_stiffness_joint_tree().motors["joint"].joint_spring
        tau = np.asarray(model.torque(1.0, phi, {}), dtype=float) * (theta - q)
        dt = np.diff(run.t)[inside]
        put_in = np.abs(run.u[:, 0] * w)[inside] @ dt
        stored = np.abs(tau * v)[inside] @ dt
        return float(put_in / stored) if stored > 0 else np.inf

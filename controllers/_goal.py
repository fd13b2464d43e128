"""Motion of a reference on a group: where it is, how fast, and how its velocity changes."""

from __future__ import annotations

from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from lgcontrol.codegen._internal import check_shape
from lgcontrol.groups import LieGroup, check_element
from lgcontrol.groups._internal import group_difference
from lgcontrol.mechanics import FrameTask, Multibody
from lgcontrol.optimal._internal import moves, points_of, sample_reference
from lgcontrol.systems import ReferenceLike, SmoothReference, System
from lgcontrol.systems._internal import SAME_TIME, is_motion


class Goal(NamedTuple):
    """Coordinates, body-fixed velocity and its rate, shapes (nq,), (dim,), (dim,)."""

    X: np.ndarray
    velocity: np.ndarray
    rate: np.ndarray


class GoalMemory:
    """`goal_of` for calls one period dt after another: each time is asked for once.

    A reference over time is asked for the next period, what was asked before is remembered; one
    that stays is checked when it changes.
    """

    def __init__(self, group: LieGroup, dt: float, name: str) -> None:
        self.group, self.dt, self.name = group, dt, name
        self.clear()

    def copy(self) -> GoalMemory:
        """One of the same kind that remembers nothing."""
        return GoalMemory(self.group, self.dt, self.name)

    def clear(self) -> None:
        """Forget all."""
        self._reference: Any = None
        self._constant: tuple[np.ndarray, Goal] | None = None
        self._asked: list[tuple[float, tuple[np.ndarray, np.ndarray | None]]] = []

    def __call__(self, reference: ReferenceLike | None, t: float) -> Goal:
        """Motion of a reference at time t."""
        group, name, dt = self.group, self.name, self.dt
        if reference is None:
            raise ValueError(f"there is no {name}: give it to the controller or in the call")
        if reference is not self._reference:
            self.clear()
            self._reference = reference
        still = np.zeros(group.dim)
        if not moves(reference):
            value = np.asarray(getattr(reference, "x", reference), dtype=np.float64)
            if self._constant is None or not np.array_equal(value, self._constant[0]):
                X, velocity = _split(group, reference, name)
                goal = Goal(X, still if velocity is None else velocity, still)
                self._constant = value.copy(), goal
            return self._constant[1]
        if isinstance(reference, SmoothReference):
            return _exact(group, reference, t, name)
        X, velocity = self._at(t)
        after, velocity_after = self._at(t + dt)
        if velocity is not None and velocity_after is not None:
            return Goal(X, velocity, (velocity_after - velocity) / dt)
        before, _ = self._at(t - dt)
        return Goal(X, (group.minus(after, X) - group.minus(before, X)) / (2 * dt), still)

    def _at(self, t: float) -> tuple[np.ndarray, np.ndarray | None]:
        for time, point in self._asked:
            if abs(time - t) < SAME_TIME:
                return point
        point = _split(self.group, self._reference(t), self.name)
        self._asked = [*self._asked[-3:], (t, point)]
        return point


def goal_of(
    group: LieGroup, reference: ReferenceLike | None, t: float, dt: float, name: str
) -> Goal:
    """Motion of a reference at time t: coordinates, or coordinates with their body-fixed velocity.

    Velocities that are not given are differences over two periods dt, without a rate: a motion made
    of straight pieces has none between its corners. A SmoothReference on the group says all.
    Refuses references of another size, and elements that are off the group; messages call it
    `name`.
    """
    return GoalMemory(group, dt, name)(reference, t)


def _exact(group: LieGroup, reference: SmoothReference, t: float, name: str) -> Goal:
    """What a smooth reference says."""
    if reference.group != group:
        raise ValueError(
            f"{name} moves on another group: {group_difference(reference.group, group)}"
        )
    return Goal(*reference(t)[:3])


def state_goal(
    system: System, reference: ReferenceLike | None, t: float, dt: float, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """State, all inputs and rate of the state (dim,) that a reference stands for at time t.

    The rate is exact where the reference says it, else a difference over one period dt; only that
    of velocities is to be relied on.
    """
    if is_motion(reference):
        goal = sample_reference(system, reference, np.array([t]), p)
        return goal.x[0], goal.u[0], reference.states(system, t)[1]
    goal = sample_reference(system, reference, np.array([t, t + dt]), p)
    return goal.x[0], goal.u[0], system.state.minus(goal.x[1], goal.x[0]) / dt


def still_state(system: System, reference: ReferenceLike | None) -> np.ndarray:
    """State of a reference that stays; the system's home where there is none."""
    value: Any = None
    if reference is not None and not moves(reference):
        value = getattr(reference, "x", reference)
    if value is None or np.shape(value) != (system.state.nq,):
        return system.home
    return np.asarray(value, dtype=np.float64)


def state_reference(
    group: LieGroup, reference: ReferenceLike | None, dt: float
) -> ReferenceLike | None:
    """A reference of configurations, with or without velocities, as one of states, or None."""
    if reference is None or isinstance(reference, SmoothReference):
        return reference

    def at(t: float) -> np.ndarray:
        goal = goal_of(group, reference, t, dt, "reference")
        return np.concatenate([goal.X, goal.velocity])

    return at if moves(reference) else at(0.0)


def _split(group: LieGroup, points: Any, name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Coordinates (..., nq) and, where they are there, velocities (..., dim)."""
    value = np.asarray(getattr(points, "x", points), dtype=np.float64)
    if value.shape[-1:] not in ((group.nq,), (group.nq + group.dim,)):
        shape = value.shape[-1:] if value.ndim > 1 else value.shape
        raise ValueError(
            f"{name} has shape {shape}, expected ({group.nq},), coordinates on {group.name}, "
            f"or ({group.nq + group.dim},), with the velocity"
        )
    value = check_shape(name, value, value.shape)
    X = check_element(name, value[..., : group.nq], group, batch=True)
    return X, value[..., group.nq :] if value.shape[-1] > group.nq else None


def frame_goal(tree: Multibody, task: FrameTask, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Reference of a frame that moves as the joints do: coordinates and velocity of a task."""
    now = task.kinematics(tree, ca.DM(q))
    V = ca.DM(now.J) @ ca.DM(v)
    return np.concatenate([ca.DM(part).full()[:, 0] for part in (now.X, V)])


def frame_errors(
    tree: Multibody,
    task: FrameTask,
    blocks: slice,
    times: np.ndarray,
    x: np.ndarray,
    goal: ReferenceLike | None,
) -> dict[str, tuple[np.ndarray, LieGroup]]:
    """``minus(frame, goal)`` of a task at times and states (k, nq), by the name of its frame.

    `blocks` are the entries of a state that hold the configuration.
    """
    q = ca.SX.sym("q", tree.nq)
    place = ca.Function("place", [q], [ca.densify(task.kinematics(tree, q).X)], ["q"], ["X"])
    found = np.array(place(x[:, blocks].T)).T
    if goal is None:
        raise ValueError("there is no reference: give it to the controller or in the call")
    wanted, _ = _split(task.group, points_of(goal, times), "reference")
    return {task.frame: (task.group.minus(found, wanted), task.group)}

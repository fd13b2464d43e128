"""Laws of rigid trees: goals and gains as arguments of one function, with or without a frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import numpy as np

from lgcontrol.codegen import ModelFunction
from lgcontrol.groups import LieGroup
from lgcontrol.mechanics import FrameTask, Multibody
from lgcontrol.systems import ReferenceLike, System

from ._base import Controller, LawOptions
from ._goal import GoalMemory, frame_errors, frame_goal, state_reference
from ._law_function import LawArgument, goal_arguments
from ._losses import held_states
from ._tree_law import TreeLaw, bounded, configuration_to_judge, system_of


class TreeOptions(LawOptions, total=False):
    """Arguments that every law of a tree takes besides its own; see `TreeController`."""

    dt: float
    system: System | None


class TreeController(Controller):
    """A law of a tree that follows a configuration.

    A subclass sets `stiffness`, `damping` and `law`. The law takes what is followed, stiffness and
    damping, in this order.

    Parameters
    ----------
    tree : Multibody
        What the controller knows of the plant.
    dt : float
        Period in s.
    system : System, optional
        What the controls act on, where it is not ``tree.system()``.
    reference, saturate, offset, delay, p
        See `Controller`.
    """

    law: TreeLaw
    stiffness: np.ndarray
    damping: np.ndarray
    _followed: tuple[str, ...]  # arguments of the law: place, velocity, acceleration

    def __init__(
        self,
        tree: Multibody,
        *,
        dt: float = 0.001,
        system: System | None = None,
        **loop: Unpack[LawOptions],
    ) -> None:
        super().__init__(system_of(tree, system), dt=dt, **loop)
        self.tree = tree
        self._goals = (GoalMemory(tree.configuration, dt, "reference"),)

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        terms = self.law(t, x, self._p, *self._arguments(t, reference))
        u, self.info = bounded(terms, self._lower, self._upper, self.saturate)
        return u

    def _arguments(self, t: float, reference: ReferenceLike | None) -> tuple[np.ndarray, ...]:
        goal = self._goals[0](reference, t)
        return (*goal[: len(self._followed)], *self._gains)

    @property
    def _gains(self) -> tuple[np.ndarray, ...]:
        return self.stiffness, self.damping

    def _exported_law(self) -> ModelFunction:
        bounds = (self._lower, self._upper) if self.saturate else None
        return self.law.exported(self._exported_goals(), self._gains, bounds)

    def _exported_goals(self) -> Mapping[str, LawArgument]:
        return goal_arguments(self.tree.configuration, *self._followed)

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        return state_reference(self.tree.configuration, reference, self.dt)


class FrameController(TreeController):
    """A law of a tree that follows a frame, and a posture as far as the frame lets the joints.

    The law takes what is followed, stiffness and damping, what of the posture is followed, its
    stiffness and damping.

    Parameters
    ----------
    tree : Multibody
    task : str or FrameTask
        Frame whose pose is controlled, or what of it.
    posture : array_like, Trajectory or function of time, optional
        Configuration (nq,) or state.
    **options
        See `TreeController`.
    """

    _posture_gains: tuple[np.ndarray, np.ndarray]
    _posture_followed: tuple[str, ...]
    _judged: int | None = None  # states at which the loop is judged; all if None

    def __init__(
        self,
        tree: Multibody,
        task: str | FrameTask,
        *,
        posture: ReferenceLike | None = None,
        **options: Unpack[TreeOptions],
    ) -> None:
        super().__init__(tree, **options)
        self.task: FrameTask = FrameTask(task) if isinstance(task, str) else task
        self.posture = tree.neutral if posture is None else posture
        self._has_posture = posture is not None
        self._goals = (
            GoalMemory(self.task.group, self.dt, "reference"),
            GoalMemory(tree.configuration, self.dt, "posture"),
        )

    def _arguments(self, t: float, reference: ReferenceLike | None) -> tuple[np.ndarray, ...]:
        goal = self._goals[0](reference, t)[: len(self._followed)]
        posture = self._goals[1](self.posture, t)[: len(self._posture_followed)]
        return (*goal, self.stiffness, self.damping, *posture, *self._posture_gains)

    @property
    def _gains(self) -> tuple[np.ndarray, ...]:
        return self.stiffness, self.damping, *self._posture_gains

    def _held_states(self) -> Iterator[tuple[np.ndarray, Any]]:
        blocks = self.law.blocks
        q = configuration_to_judge(self.tree, self.posture if self._has_posture else None)
        for x in held_states(self.system, blocks, q, self._own)[: self._judged]:
            self.posture = np.concatenate([x[blocks.q], x[blocks.v]])
            yield x, frame_goal(self.tree, self.task, x[blocks.q], x[blocks.v])

    def _exported_goals(self) -> Mapping[str, LawArgument]:
        frame = goal_arguments(self.task.group, *self._followed)
        return frame | goal_arguments(self.tree.configuration, *self._posture_followed)

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """None: the reference is the frame's."""

    def _rest_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        return state_reference(self.tree.configuration, self.posture, self.dt)

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: ReferenceLike | None = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Error of the frame, by its name; see `Controller.task_errors`."""
        goal = self.reference if reference is None else reference
        return frame_errors(self.tree, self.task, self.law.configuration, times, x, goal)

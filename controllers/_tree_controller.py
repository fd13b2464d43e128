"""Laws of rigid trees: goals and gains of one function, with or without a frame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction
from lgcontrol.groups import LieGroup
from lgcontrol.mechanics import FrameTask, Multibody
from lgcontrol.systems import ReferenceLike, System

from ._base import Controller, LawOptions
from ._goal import GoalMemory, frame_errors, frame_goal, state_reference
from ._law_function import LawArgument, goal_arguments
from ._losses import commanded_velocity, held_states
from ._spring import error_of, gain, spring_damper
from ._tracking import gains, tracking_acceleration
from ._tree_law import Sampling, TreeLaw, Wish, bounded, configuration_to_judge, system_of


class TreeOptions(LawOptions, total=False):
    """Arguments that every law of a tree takes besides its own; see `TreeController`."""

    dt: float
    system: System | None


class TreeController(Controller):
    """A law of a tree that follows a configuration; see `ComputedTorque`.

    A subclass sets `stiffness`, `damping` and `law`. The law takes what is followed, stiffness and
    damping, in this order.
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


class ComputedTorque(TreeController):
    """Tracks a motion of all joints; inverse dynamics cancels inertia, Coriolis forces and weight.

    The error of joints with one coordinate obeys ``ë + D ė + K e = 0``. The error of spherical,
    free and other joints converges along the group, from almost every error (see `GeometricPD`).
    Torques beyond the limits are scaled together, so that joints keep accelerating in proportion.

    Damping and friction L(v) of a joint are cancelled at the measured velocity if the sampled loop
    stays stable with 30 % less of them in the plant. Joints with faster losses get ``L(v_c)`` at
    the commanded velocity ``v_c = v_ref − λ e`` instead; λ is the slow root of ``s² − D s + K``, or
    ω where the roots are complex. Their error decays with λ at least where the plant has these
    losses, and goes to zero where they are known to a factor of two. A plant without them can be
    unstable: L(v_c) acts on it like a spring that is stiff for dt.

    Parameters
    ----------
    tree : Multibody
        What the controller knows of the plant.
    frequency : float or array_like, shape (nv,)
        Natural frequency of the error [rad/s].
    damping_ratio : float or array_like, shape (nv,)
    dt : float
        Period in s.
    system : System, optional
        What the controls act on, where it is not ``tree.system()``: a vehicle with thrusters, in
        water, …. Controls may be more than degrees of freedom, not fewer.
    reference : optional
        Configuration (nq,), state (nq + nv,), Trajectory or function of time. The acceleration of
        states over time is fed forward.
    saturate, offset, delay, p
        See `Controller`.

    Attributes
    ----------
    law : TreeLaw
        ``law.commanded`` says which joints are compensated at the commanded velocity.

    Warns
    -----
    RuntimeWarning
        If errors grow in the loop sampled with `dt` and late by `delay`, at a reference that stays
        or a seeded configuration. The message has the eigenvalue, the joint and a remedy. Runs
        with such a controller are no success.

    Raises
    ------
    ValueError
        If the system is not one of this tree, or its controls cannot accelerate every joint.

    Examples
    --------
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    >>> control = ComputedTorque(tree, frequency=3.0)
    >>> control(0.0, [0.0, 0.0], reference=[0.5]).round(6)  # M ω² e
    array([3.])
    """

    _followed = ("q_ref", "v_ref", "a_ref")

    def __init__(
        self,
        tree: Multibody,
        *,
        frequency: ArrayLike = 10.0,
        damping_ratio: ArrayLike = 1.0,
        **options: Unpack[TreeOptions],
    ) -> None:
        super().__init__(tree, **options)
        group, n = tree.configuration, tree.nv
        self.stiffness, self.damping = gains(frequency, damping_ratio, n)

        def law(q, v, q_ref, v_ref, a_ref, stiffness, damping):
            wanted = tracking_acceleration(group, q, v, (q_ref, v_ref, a_ref), stiffness, damping)
            commanded = commanded_velocity(group, q, q_ref, v_ref, stiffness, damping)
            own = ca.diag(self.damping) if self.damping.all() else None
            return Wish([wanted], commanded, own)

        sizes = {"q_ref": tree.nq, "v_ref": n, "a_ref": n, "stiffness": n, "damping": n}
        sampling = Sampling(self.dt, self._own)
        self.law = TreeLaw(tree, self.system, "computed_torque", sizes, law, sampling=sampling)
        self._check_loop()

    def _held_states(self) -> list[tuple[np.ndarray, Any]]:
        blocks, q = self.law.blocks, configuration_to_judge(self.tree, self.reference)
        states = held_states(self.system, blocks, q, self._own)
        return [(x, np.concatenate([x[blocks.q], x[blocks.v]])) for x in states]


class GravityPD(TreeController):
    """``τ = g(q) − J_r(e)⁻ᵀ K e − D (v − v_ref)`` with ``e = minus(q, q_ref)``.

    Needs no more of the model than its weight, and is stable for any positive gains. The energy
    ``½ vᵀ M v + ½ eᵀ K e`` falls by ``vᵀ D v`` to every rest pose. For other joints than revolute
    and prismatic ones the spring is the gradient on the group. The velocity of the reference is
    carried into the joint's own axes.

    Parameters
    ----------
    tree : Multibody
        What the controller knows of the plant.
    stiffness : float or array_like, shape (nv,)
        K [N m/rad, N/m].
    damping : float or array_like, shape (nv,)
        D [N m s/rad, N s/m].
    dt : float
        Period in s.
    system : System, optional
        Default ``tree.system()``; its controls must be generalized forces of the tree.
    reference : optional
        Configuration (nq,), state (nq + nv,), Trajectory or function of time.
    saturate : bool
        Whether the controls stay within their bounds: the spring gives way before the weight.
    offset, delay, p
        See `Controller`.

    Raises
    ------
    ValueError
        If gains are negative or the controls are no generalized forces of all joints.

    References
    ----------
    M. Takegaki, S. Arimoto: A new feedback method for dynamic control of manipulators. ASME J.
    Dyn. Syst. Meas. Control 103 (1981).

    Examples
    --------
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    >>> hold = GravityPD(tree, stiffness=20.0, damping=5.0, reference=[np.pi / 2])
    >>> hold(0.0, [np.pi / 2, 0.0])  # m g l / 2
    array([9.81])
    """

    _followed = ("q_ref", "v_ref")

    def __init__(
        self,
        tree: Multibody,
        *,
        stiffness: ArrayLike,
        damping: ArrayLike,
        **options: Unpack[TreeOptions],
    ) -> None:
        super().__init__(tree, **options)
        group, n = tree.configuration, tree.nv
        self.stiffness = gain("stiffness", stiffness, n)
        self.damping = gain("damping", damping, n)

        def law(q, v, q_ref, v_ref, stiffness, damping):
            e, relative = error_of(group, q, v, q_ref, v_ref)
            return [spring_damper(group, e, relative, stiffness, damping)]

        sizes = {"q_ref": tree.nq, "v_ref": n, "stiffness": n, "damping": n}
        self.law = TreeLaw(tree, self.system, "gravity_pd", sizes, law)
        self._check_loop()

    def _held_states(self) -> list[tuple[np.ndarray, Any]]:
        blocks, q = self.law.blocks, configuration_to_judge(self.tree, self.reference)
        x = held_states(self.system, blocks, q, self._own)[0]
        return [(x, q)]

"""ElasticImpedance: a Cartesian spring and damper of a frame, through the springs of the joints."""

from __future__ import annotations

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value, trace
from lgcontrol.groups import LieGroup
from lgcontrol.mechanics import FrameTask, SeriesElastic
from lgcontrol.systems import Parameters, ReferenceLike, System

from ._base import Controller
from ._elastic_gains import SAMPLES, stiffness_at_rest, weight_slopes
from ._elastic_law import elastic_system, refuse
from ._goal import GoalMemory, frame_errors
from ._spring import error_of, gain, spring_damper
from ._tree_law import bounded

ROUNDS = 6  # of q̄ = θ − σ⁻¹(g(q̄)): each gains the factor ‖K⁻¹ ∂g/∂q‖
CONTRACTION = 0.9  # of that factor, at most


class ElasticImpedance(Controller):
    """``u = g(q̄) + Jᵀ(q̄) (spring and damper of the frame) − D θ̇`` with q̄(θ): from motors alone.

    q̄ is where the links would rest for the motors as they stand, ``θ = q̄ + σ⁻¹(g(q̄))``: at rest
    the frame has the stiffness that was asked for, and the law is a potential in θ with damping of
    motor speeds, so that the arm is passive for any environment.

    Assumptions: springs in all joints that carry the weight, ``‖K⁻¹ ∂g/∂q‖ < 1`` everywhere; it is
    checked at 2,000 seeded samples. In motion the impedance is that of the motors, seen through the
    springs: inertias of motors and links stay.

    Parameters
    ----------
    arm : SeriesElastic
    task : str or FrameTask
        Frame, or frame and what of it.
    stiffness : float or array_like, shape (k,)
        Of the frame [N/m, N m/rad].
    damping : float or array_like, shape (k,)
        Of the frame [N s/m, N m s/rad].
    joint_damping : float or array_like, shape (n,)
        Of the motors [N m s/rad].
    dt : float
        Period in s.
    system, reference, saturate, offset, delay, p
        See `Controller`; the reference is a pose of the frame, or a motion of it.

    Raises
    ------
    ValueError
        If joints are rigid, a gain is negative, or the springs do not carry the weight.

    References
    ----------
    C. Ott, A. Albu-Schäffer, A. Kugi, G. Hirzinger: On the passivity-based impedance control of
    flexible joint robots. IEEE Trans. Robotics 24 (2008).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> arm = elastic_planar_arm_tree()
    >>> law = ElasticImpedance(arm, FrameTask("tool", "position"), stiffness=200.0, damping=20.0)
    >>> law.contraction < 0.5
    True
    """

    def __init__(
        self,
        arm: SeriesElastic,
        task: str | FrameTask,
        *,
        stiffness: ArrayLike,
        damping: ArrayLike,
        joint_damping: ArrayLike = 0.0,
        dt: float = 0.001,
        system: System | None = None,
        reference: ReferenceLike | None = None,
        saturate: bool = True,
        offset: float = 0.0,
        delay: float = 0.0,
        p: Parameters | None = None,
    ) -> None:
        system = elastic_system(arm, system)
        refuse(arm, "ElasticImpedance")
        super().__init__(system, dt=dt, offset=offset, delay=delay, reference=reference, p=p)
        self.arm, self.saturate = arm, saturate
        self.task: FrameTask = FrameTask(task) if isinstance(task, str) else task
        self._goals = (GoalMemory(self.task.group, dt, "reference"),)
        k, n = self.task.group.dim, len(arm.joints)
        self.stiffness, self.damping = (
            gain("stiffness", stiffness, k), gain("damping", damping, k)
        )  # fmt: skip
        self.joint_damping = gain("joint_damping", joint_damping, n)
        self.contraction = float(
            np.linalg.norm(
                weight_slopes(arm) / stiffness_at_rest(arm)[:, None], ord=2, axis=(-2, -1)
            ).max()
        )
        if not self.contraction < CONTRACTION:
            raise ValueError(
                f"{arm.tree.name}: the springs do not carry the weight everywhere: the largest "
                f"‖K⁻¹ ∂g/∂q‖ of {SAMPLES} samples is {self.contraction:.3g}, it must be below "
                f"{CONTRACTION}"
            )
        shapes: dict[str, tuple[int, ...]] = {
            "x": (arm.state.nq,), "X_ref": (self.task.group.nq,), "V_ref": (k,),
            "stiffness": (k,), "damping": (k,), "joint_damping": (n,),
            "p": (len(arm.parameters),),
        }  # fmt: skip
        self.law = trace(
            "law", self._build, shapes, {"u": (len(arm.mechanics.inputs),), "q": (arm.tree.nq,)}
        )

    def _build(
        self,
        x: Value,
        X: Value,
        V: Value,
        stiffness: Value,
        damping: Value,
        losses: Value,
        p: Value,
    ) -> list[Value]:
        arm, tree, mechanics = self.arm, self.arm.tree, self.arm.mechanics
        parts, numbers = mechanics.split(x), mechanics.numbers(p)
        own = (p[: len(tree.parameters)],) * bool(tree.parameters)
        q = ca.vertcat(*parts.motors)
        for _ in range(ROUNDS):
            weight = tree.gravity_forces.function.call([q, *own])[0]
            q = ca.vertcat(
                *(
                    joint.group._plus(
                        theta, -joint.spring.deflection(weight[row], ca.DM(0), c.spring)
                    )
                    for joint, theta, row, c in zip(
                        arm.elastic_joints, parts.motors, mechanics.rows, numbers, strict=True
                    )
                )
            )
        now = self.task.kinematics(tree, q)
        e, relative = error_of(self.task.group, now.X, now.J @ parts.speeds, X, V)
        wrench = spring_damper(self.task.group, e, relative, stiffness, damping)
        weight = tree.gravity_forces.function.call([q, *own])[0]
        u = ca.SX(len(mechanics.inputs), 1)
        u[mechanics.drives] = weight + now.J.T @ wrench - losses * parts.speeds
        return [u, q]

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        goal = self._goals[0](reference, t)
        own = self._p[: len(self.arm.parameters)]
        gains = (self.stiffness, self.damping, self.joint_damping)
        u = self.law(x[: self.arm.state.nq], goal.X, goal.velocity, *gains, own).u
        u, self.info = bounded([u], self._lower, self._upper, self.saturate)
        return u

    def _state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """None: the reference is the frame's."""

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: ReferenceLike | None = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Error of the frame, by its name; see `Controller.task_errors`."""
        goal = self.reference if reference is None else reference
        where = self.arm.state.coordinate_slice("configuration")
        return frame_errors(self.arm.tree, self.task, where, times, x, goal)

"""OperationalSpace: accelerations of an end-effector, with a posture in its null space."""

from __future__ import annotations

from typing import Unpack

import casadi as ca
from numpy.typing import ArrayLike

from lgcontrol.mechanics import FrameTask, Multibody
from lgcontrol.systems import ReferenceLike

from ._losses import commanded_velocity
from ._task_inverse import TaskInverse
from ._tracking import gains, tracking_acceleration
from ._tree_controller import FrameController, TreeOptions
from ._tree_law import Sampling, TreeLaw, Wish


class OperationalSpace(FrameController):
    """Tracks a pose of a frame with its dynamics decoupled; what is left over holds a posture.

    The frame's error obeys the same law as in `GeometricPD`, on SE(3) or the group of the task. The
    joint accelerations are ``J̄ (V̇ − J̇ v) + (1 − J̄ J) a_posture`` with the dynamically
    consistent inverse ``J̄ = M⁻¹ Jᵀ Λ``, ``Λ = (J M⁻¹ Jᵀ)⁻¹``. The posture therefore does not
    disturb the frame. Near singular configurations a damping is blended into Λ (see `TaskInverse`),
    and the frame gives up directions that would need large accelerations. At the torque limits the
    posture gives way first; then the frame's acceleration is scaled.

    Parameters
    ----------
    tree : Multibody
    task : str or FrameTask
        Frame whose pose is controlled, or what of it.
    frequency, damping_ratio : float or array_like, shape (dim,)
        Of the frame's error [rad/s].
    posture : array_like, Trajectory or function of time
        Configuration (nq,) or state (nq + nv,) that joints keep as far as the frame lets them.
    posture_frequency, posture_damping_ratio : float or array_like, shape (nv,)
        Of the posture's error [rad/s].
    dt : float
        Period in s.
    singular_region : float
        Share of the typical manipulability below which damping sets in.
    system : System, optional
        Default ``tree.system()``; see `ComputedTorque`.
    reference : optional
        Coordinates on the task's group, those with a velocity, Trajectory or function of time.
    saturate : bool
    offset, delay : float
        See `Controller`.
    p : mapping or array_like, optional
        The system's parameters; see `Controller`.

    Raises
    ------
    KeyError, ValueError
        If the frame cannot move as the task asks, or the controls do not reach every joint.

    Notes
    -----
    Damping keeps torques finite near the arm's full stretch, but there the frame cannot brake its
    joints. A target far out of reach can make an elbow swing through. Ask
    `lgcontrol.mechanics.InverseKinematics` first how near the arm comes, and go there.

    References
    ----------
    O. Khatib: A unified approach for motion and force control of robot manipulators: the
    operational space formulation. IEEE J. Robotics and Automation 3 (1987).

    Examples
    --------
    >>> from lgcontrol.groups import Translation
    >>> import numpy as np
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, axis=[1, 0, 0], center_of_mass=[0.5, 0, 0])
    >>> tree = Multibody(gravity=[0, 0, 0]).add_body("a", rod, "revolute", axis="z")
    >>> tree = tree.add_body("b", rod, "revolute", "a", axis="y")
    >>> tree = tree.add_body("c", rod, "revolute", "b", [1, 0, 0], axis="y")
    >>> tree = tree.add_frame("tip", "c", [1, 0, 0])
    >>> control = OperationalSpace(tree, FrameTask("tip", "position"), frequency=2.0)
    >>> x = np.array([0.3, -0.5, 1.0, 0.0, 0.0, 0.0])
    >>> goal = tree.position("tip")(x[:3]) + [0.1, 0.0, 0.0]
    >>> rate = control.system.f(0.0, x, control(0.0, x, goal))
    >>> (tree.jacobian("tip", "hybrid")(x[:3]) @ rate[3:])[:3].round(6) + 0.0  # ω² e
    array([0.4, 0. , 0. ])
    """

    _followed = ("frame_ref", "frame_v_ref", "frame_a_ref")
    _posture_followed = ("q_ref", "v_ref", "a_ref")

    def __init__(
        self,
        tree: Multibody,
        task: str | FrameTask,
        *,
        frequency: ArrayLike = 10.0,
        damping_ratio: ArrayLike = 1.0,
        posture: ReferenceLike | None = None,
        posture_frequency: ArrayLike = 3.0,
        posture_damping_ratio: ArrayLike = 1.0,
        singular_region: float = 0.1,
        **options: Unpack[TreeOptions],
    ) -> None:
        super().__init__(tree, task, posture=posture, **options)
        inverse = TaskInverse(tree, self.task, singular_region)
        space, joints = self.task.group, tree.configuration
        n, k = tree.nv, space.dim
        self.stiffness, self.damping = gains(frequency, damping_ratio, k)
        self._posture_gains = gains(posture_frequency, posture_damping_ratio, n)

        def law(q, v, X, V, V_rate, stiffness, damping, q_ref, v_ref, a_ref, hold, ease):
            now = self.task.kinematics(tree, q, v)
            wanted = tracking_acceleration(
                space, now.X, now.J @ v, (X, V, V_rate), stiffness, damping
            )
            J_bar, _ = inverse(q, now.J)
            own = tracking_acceleration(joints, q, v, (q_ref, v_ref, a_ref), hold, ease)
            # Joints go to the posture as far as the frame lets them.
            free = commanded_velocity(joints, q, q_ref, v_ref, hold, ease)
            frame = commanded_velocity(space, now.X, X, V, stiffness, damping)
            damped = None
            if self.damping.all() and self._posture_gains[1].all():
                rest = ca.diag(self._posture_gains[1])
                damped = rest + J_bar @ (ca.diag(self.damping) @ now.J - now.J @ rest)
            return Wish(
                [J_bar @ (wanted - now.drift), own - J_bar @ (now.J @ own)],
                free + J_bar @ (frame - now.J @ free),
                damped,
            )

        sizes = {
            "frame_ref": space.nq, "frame_v_ref": k, "frame_a_ref": k, "stiffness": k, "damping": k,
            "q_ref": tree.nq, "v_ref": n, "a_ref": n, "posture_stiffness": n, "posture_damping": n,
        }  # fmt: skip
        sampling = Sampling(self.dt, self._own)
        self.law = TreeLaw(tree, self.system, "operational_space", sizes, law, sampling=sampling)
        self._check_loop()

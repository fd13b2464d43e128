"""Laws in the space of a task, and the dynamically consistent inverse that they share."""

from __future__ import annotations

from typing import Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value
from lgcontrol.mechanics import FrameTask, Multibody, random_configuration
from lgcontrol.systems import ReferenceLike

from ._losses import commanded_velocity
from ._spring import error_of, gain, spring_damper
from ._tracking import gains, tracking_acceleration
from ._tree_controller import FrameController, TreeOptions
from ._tree_law import Sampling, TreeLaw, Wish

# Configurations that tell what mobility is typical of a tree, from a fixed seed.
TASK_SAMPLES = 200
# Largest damping, relative to the typical mobility along each axis.
TASK_DAMPING = 0.1
# Keeps the pivots of a singular matrix from vanishing; far below any mobility that matters.
TINY_WEIGHT = 1e-12
# Singular values, relative to the typical mobility, that count as none.
RANK_TOLERANCE = 1e-9


class TaskInverse:
    """``J̄ = M⁻¹ Jᵀ Λ`` and ``Λ = (J M⁻¹ Jᵀ + δ² S)⁻¹``, with δ = 0 away from singularities.

    S holds the typical mobility (the mean of the diagonal of ``J M⁻¹ Jᵀ``) along each axis of the
    task, so that metres and radians compare. With ``w² = det(S^-½ J M⁻¹ Jᵀ S^-½)`` and w₀ a share
    of its median, the singular region, ``δ² = δ₀² (1 − (w/w₀)²)²`` where w < w₀.

    References
    ----------
    Y. Nakamura, H. Hanafusa: Inverse kinematic solutions with singularity robustness for robot
    manipulator control. ASME J. Dyn. Syst. Meas. Control 108 (1986), with the dynamically
    consistent inverse in place of the pseudo-inverse.
    """

    def __init__(self, tree: Multibody, task: FrameTask, singular_region: float) -> None:
        task.check(tree)
        if not 0 <= singular_region < 1:
            raise ValueError(f"singular_region must be in [0, 1), got {singular_region}")
        q = ca.SX.sym("q", tree.nq)
        J = task.kinematics(tree, q).J
        A = J @ tree.mass_matrix_inverse(q) @ J.T
        mobility = ca.Function("mobility", [q], [ca.densify(A)], ["q"], ["A"])
        samples = np.array(
            [mobility(one).full() for one in random_configuration(tree, 0, TASK_SAMPLES)]
        )
        typical = samples.diagonal(axis1=1, axis2=2).mean(axis=0)
        k = task.group.dim
        rank = 0
        if (typical > 0).all():
            root = np.sqrt(typical)
            samples = samples / np.outer(root, root)
            rank = max(np.linalg.matrix_rank(one, tol=RANK_TOLERANCE) for one in samples)
        if rank < k:
            raise ValueError(
                f"{tree.name} cannot move frame {task.frame!r} in all {k} directions of the task: "
                "ask for a position, an orientation or a subgroup such as Schoenflies"
            )
        self.tree = tree
        self.typical_mobility = typical
        self._threshold = singular_region**2 * float(np.median(np.linalg.det(samples)))

    def __call__(self, q: Value, J: Value) -> tuple[Value, Value]:
        """J̄ and Λ for CasADi expressions of a configuration and the task's Jacobian there."""
        typical = ca.DM(self.typical_mobility)
        spread = self.tree.mass_matrix_inverse(q) @ J.T
        A = J @ spread
        if self._threshold > 0:
            root = ca.diag(1 / ca.sqrt(typical))
            pivots = ca.ldl(root @ A @ root + TINY_WEIGHT * ca.DM.eye(A.shape[0]), False)[0]
            product = pivots[0]
            for i in range(1, pivots.shape[0]):
                product = product * pivots[i]
            lack = ca.fmax(0.0, 1.0 - product / self._threshold)
            A = A + TASK_DAMPING * lack**2 * ca.diag(typical)
        D, LT, order = ca.ldl(A, False)
        mass = ca.ldl_solve(ca.DM.eye(A.shape[0]), D, LT, order)
        return spread @ mass, mass


class Impedance(FrameController):
    """``τ = g(q) + Jᵀ W + Nᵀ τ_posture``: a spring and a damper between a frame and its target.

    The wrench in the frame's axes is ``W = −J_r(e)⁻ᵀ K e − D ν``, with the error
    ``e = minus(frame, target)`` on SE(3) or the group of the task. Its first term is the exact
    gradient of the potential ``½ eᵀ K e``; the second damps the relative twist ν. The arm keeps its
    own inertia, so that no force has to be measured: pushed with a wrench it yields by that wrench
    over K. If the target rests and the posture has no stiffness, the energy ``½ vᵀ M v + ½ eᵀ K e``
    falls by ``νᵀ D ν`` and the power of the posture's damper. A posture's stiffness is projected as
    well (N is the dynamically consistent null space). This keeps it off the frame but may feed in
    some energy.

    Parameters
    ----------
    tree : Multibody
    task : str or FrameTask
        Frame whose pose is controlled, or what of it.
    stiffness : float or array_like, shape (dim,)
        K [N/m, N m/rad].
    damping : float or array_like, shape (dim,), optional
        D [N s/m, N m s/rad]; by default `damping_ratio` of the mass that each axis
        typically moves.
    damping_ratio : float
    posture : array_like, Trajectory or function of time
        Configuration (nq,) or state that joints keep as far as the frame lets them.
    posture_stiffness, posture_damping : float or array_like, shape (nv,)
        [N m/rad, N/m] and [N m s/rad, N s/m].
    dt : float
        Period in s.
    singular_region : float
        See `OperationalSpace`; only the null space is concerned, the wrench needs no inverse.
    system : System, optional
        Default ``tree.system()``; its controls must be generalized forces of the tree.
    reference : optional
        Coordinates on the task's group, those with a velocity, Trajectory or function of time.
    saturate : bool
        Whether the torques stay within their bounds: the posture gives way first, then the wrench,
        then the weight.
    offset, delay, p
        See `Controller`.

    Raises
    ------
    KeyError, ValueError
        If the frame cannot move as the task asks, a gain is negative, or the controls are no
        generalized forces of all joints.

    References
    ----------
    N. Hogan: Impedance control. ASME J. Dyn. Syst. Meas. Control 107 (1985), on the group as in
    F. Bullo, R. Murray: Tracking for fully actuated mechanical systems. Automatica 35 (1999).

    Examples
    --------
    >>> from lgcontrol.mechanics import SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, axis=[1, 0, 0], center_of_mass=[0.5, 0, 0])
    >>> tree = Multibody(gravity=[0, 0, 0]).add_body("a", rod, "revolute", axis="z")
    >>> tree = tree.add_body("b", rod, "revolute", "a", axis="y")
    >>> tree = tree.add_body("c", rod, "revolute", "b", [1, 0, 0], axis="y")
    >>> tree = tree.add_frame("tip", "c", [1, 0, 0])
    >>> control = Impedance(tree, FrameTask("tip", "position"), stiffness=100.0)
    >>> x = np.array([0.3, -0.5, 1.0, 0.0, 0.0, 0.0])
    >>> goal = tree.position("tip")(x[:3]) + [0.1, 0.0, 0.0]
    >>> J = tree.jacobian("tip", "hybrid")(x[:3])[:3]
    >>> np.linalg.solve(J.T, control(0.0, x, goal)).round(6) + 0.0  # K e, in newton
    array([10.,  0.,  0.])
    """

    _followed = ("frame_ref", "frame_v_ref")
    _posture_followed = ("q_ref",)
    _judged = 1

    def __init__(
        self,
        tree: Multibody,
        task: str | FrameTask,
        *,
        stiffness: ArrayLike,
        damping: ArrayLike | None = None,
        damping_ratio: float = 0.7,
        posture: ReferenceLike | None = None,
        posture_stiffness: ArrayLike = 0.0,
        posture_damping: ArrayLike = 1.0,
        singular_region: float = 0.1,
        **options: Unpack[TreeOptions],
    ) -> None:
        super().__init__(tree, task, posture=posture, **options)
        inverse = TaskInverse(tree, self.task, singular_region)
        space, joints = self.task.group, tree.configuration
        n, k = tree.nv, space.dim
        self.stiffness = gain("stiffness", stiffness, k)
        self.damping = gain(
            "damping",
            2 * damping_ratio * np.sqrt(self.stiffness / inverse.typical_mobility)
            if damping is None
            else damping,
            k,
        )
        self._posture_gains = (
            gain("posture_stiffness", posture_stiffness, n),
            gain("posture_damping", posture_damping, n),
        )

        def law(q, v, X, V, stiffness, damping, q_ref, hold, ease):
            now = self.task.kinematics(tree, q)
            e, relative = error_of(space, now.X, now.J @ v, X, V)
            wrench = spring_damper(space, e, relative, stiffness, damping)
            J_bar, _ = inverse(q, now.J)
            left_over = v - J_bar @ (now.J @ v)
            off, _ = error_of(joints, q, v, q_ref, ca.SX(n, 1))
            own = spring_damper(joints, off, left_over, hold, ease)
            return [
                now.J.T @ wrench, own - now.J.T @ (J_bar.T @ own)
            ]  # fmt: skip

        sizes = {
            "frame_ref": space.nq, "frame_v_ref": k, "stiffness": k, "damping": k,
            "q_ref": tree.nq, "posture_stiffness": n, "posture_damping": n,
        }  # fmt: skip
        self.law = TreeLaw(tree, self.system, "impedance", sizes, law)
        self._check_loop()


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
    saturate, offset, delay, p
        See `Controller`.

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

"""Impedance: a frame that behaves like a spring and damper in its own axes."""

from __future__ import annotations

from typing import Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.mechanics import FrameTask, Multibody
from lgcontrol.systems import ReferenceLike

from ._spring import error_of, gain, spring_damper
from ._task_inverse import TaskInverse
from ._tree_controller import FrameController, TreeOptions
from ._tree_law import TreeLaw


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
    offset, delay : float
        See `Controller`.
    p : mapping or array_like, optional
        The system's parameters; see `Controller`.

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

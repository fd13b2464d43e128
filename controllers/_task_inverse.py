"""TaskInverse: the dynamically consistent inverse of a frame's Jacobian, safe at singularities."""

from __future__ import annotations

import casadi as ca
import numpy as np

from lgcontrol.codegen import Value
from lgcontrol.mechanics import FrameTask, Multibody, random_configuration

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
    of its median, ``δ² = δ₀² (1 − (w/w₀)²)²`` where w < w₀.

    Parameters
    ----------
    singular_region : float
        w₀ over the median; 0 for no damping at all.

    Attributes
    ----------
    typical_mobility : ndarray, shape (dim,)
        Diagonal of S: inverse of the mass or inertia that each axis of the task moves alone.

    Raises
    ------
    ValueError
        If the tree cannot move the frame in all directions of the task.

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

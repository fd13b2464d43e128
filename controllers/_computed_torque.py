"""ComputedTorque: joint-space tracking of trees with their dynamics cancelled."""

from __future__ import annotations

from typing import Any, Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.mechanics import Multibody

from ._losses import commanded_velocity, held_states
from ._tracking import gains, tracking_acceleration
from ._tree_controller import TreeController, TreeOptions
from ._tree_law import Sampling, TreeLaw, Wish, configuration_to_judge


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
    saturate : bool
        Whether the controls stay within their bounds.
    offset, delay : float
        See `Controller`.
    p : mapping or array_like, optional
        The system's parameters; see `Controller`.

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

"""SpringTorqueControl: the torque through the springs follows a wish."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value
from lgcontrol.codegen._internal import check_shape
from lgcontrol.mechanics import SeriesElastic
from lgcontrol.systems import ReferenceLike, SmoothReference, System
from lgcontrol.systems._internal import MotionPoint

from ._base import LawOptions
from ._elastic_law import ElasticLaw, check_arm, refuse
from ._law_function import LawArgument, vector_argument
from ._tracking import gains as second_order

# Arguments of the exported law: torques and their rates.
TORQUES = ("tau_ref", "tau_rate_ref", "tau_bend_ref")


class SpringTorqueControl(ElasticLaw):
    """``τ̈ = τ̈_d − 2 ζ ω (τ̇ − τ̇_d) − ω² (τ − τ_d)`` for the torques through the springs.

    The motors get ``u = B (a + δ̈) + losses + τ`` with δ̈ from that and a of the links from the
    model. The link may therefore move as it likes: torque is the command of an outer loop.

    Assumptions: springs without dampers in all joints; the acceleration of the links is what the
    model says (nothing touches them, or slowly). With the model exact the error is linear; without,
    a contact shows as a disturbance ``−B a``.

    Parameters
    ----------
    arm : SeriesElastic
    frequency : float or array_like, shape (n,)
        ω [rad/s].
    damping_ratio : float or array_like, shape (n,)
        ζ.
    dt : float
        Period in s.
    reference : optional
        Torques (n,) [N m], or a SmoothReference on Rn(n), whose rates are fed forward.
    system, saturate, offset, delay, p
        See `ElasticLaw`.

    Raises
    ------
    ValueError
        If joints are rigid or springs damped, or the reference has another size.

    References
    ----------
    A. Albu-Schäffer, C. Ott, G. Hirzinger: A unified passivity-based control framework for
    position, torque and impedance control of flexible joint robots. Int. J. Robotics Research 26
    (2007).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> arm = elastic_planar_arm_tree(gravity=0.0)
    >>> law = SpringTorqueControl(arm, frequency=100.0, reference=[1.0, 0.5])
    >>> law(0.0, np.zeros(8)).round(3)  # B ω² τ_d / K
    array([7.5, 3. ])
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        frequency: ArrayLike = 100.0,
        damping_ratio: ArrayLike = 1.0,
        dt: float = 0.001,
        system: System | None = None,
        **loop: Unpack[LawOptions],
    ) -> None:
        check_arm(arm)
        refuse(arm, "SpringTorqueControl")
        n = len(arm.joints)
        stiffness, damping = second_order(frequency, damping_ratio, n)
        super().__init__(
            arm, gains={"stiffness": stiffness, "damping": damping}, dt=dt, system=system,
            check=False, **loop,
        )  # fmt: skip

    def goal(self, reference: ReferenceLike | None, t: float) -> MotionPoint:
        """Torques at time t and their rates, in the places of q, v and a.

        Parameters
        ----------
        reference : array_like, shape (n,), or SmoothReference
        t : float
            In s.
        """
        n = len(self.arm.joints)
        if reference is None:
            raise ValueError("there is no reference: give torques to the controller or in the call")
        if isinstance(reference, SmoothReference):
            if reference.group.nq != n or reference.group.dim != n:
                raise ValueError(f"torques move on Rn({n}), not on {reference.group}")
            return reference(t)
        return MotionPoint(check_shape("reference", reference, (n,)), *np.zeros((4, n)))

    @property
    def _goal_length(self) -> int:
        """Torques."""
        return len(self.arm.joints)

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        mechanics, nv = self.arm.mechanics, self.arm.tree.nv
        u = ca.SX(len(mechanics.inputs), 1)
        parts, d = mechanics.split(x), mechanics.deflection(x)
        a = mechanics.field(ca.SX(1, 1), x, u, p)[nv : 2 * nv]
        tau, rows, commanded = mechanics.spring_torque(x, u, p), [], []
        for i, (joint, c) in enumerate(
            zip(self.arm.elastic_joints, mechanics.numbers(p), strict=True)
        ):
            slopes, row = joint.spring.slopes(d[i], ca.DM(0), c.spring), mechanics.rows[i]
            rate = parts.speeds[i] - parts.v[row]
            off, drift = tau[i] - goal[0][i], slopes.by_deflection * rate - goal[1][i]
            bend = goal[2][i] - gains["damping"][i] * drift - gains["stiffness"][i] * off
            change = (bend - slopes.second[0] * rate**2) / slopes.by_deflection
            rows.append(c.inertia * (a[row] + change) + tau[i])
            slow = goal[1][i] - gains["stiffness"][i] / gains["damping"][i] * off
            commanded.append(parts.v[row] + slow / slopes.by_deflection)
        u[mechanics.drives] = ca.vertcat(*rows)
        u[mechanics.drives] += mechanics.motor_losses(x, p)
        u[mechanics.drives] += self._held_to(x, ca.vertcat(*commanded), p)
        return u

    def _motor_damping(self) -> np.ndarray:
        return self.gains["damping"]

    def _exported_goals(self) -> Mapping[str, LawArgument]:
        names = list(self.arm.joints)
        units = [joint.force_unit for joint in self.arm.elastic_joints]
        return {key: vector_argument(names, units, order) for order, key in enumerate(TORQUES)}

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """None: torques are no state."""

"""FlatFeedforward: torques of the flat map, with a PD at the motors or at the links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Unpack

import casadi as ca
from numpy.typing import ArrayLike

from lgcontrol.codegen import Value
from lgcontrol.mechanics import SeriesElastic
from lgcontrol.systems import SmoothReference

from ._elastic_law import SETTINGS, ElasticLaw, ElasticOptions, check_arm
from ._spring import error_of, gain, motor_damping, spring_damper, spring_gain


class FlatFeedforward(ElasticLaw):
    """``u = u_d − K_P (θ − θ_d) − K_D (θ̇ − θ̇_d) − K_I ∫(q − q_d)``: the flat map with feedback.

    Motors follow what the motion of the links takes of them, torques included. The proportional
    gain acts at the motors, which no spring separates from the torque, or at the links
    (``side="link"``). At the links a gain that is not small destabilises a soft arm, since the
    spring is between. The integral is one of the link error: in the set point of the motors it
    destabilises. Rigid joints, a base among them, have the same law in their own coordinates.

    Assumptions: the arm is flat, or its dampers are small next to the springs. Deflections are
    those without dampers (order 0 of the expansion in D/K; the error is ``D τ̇/K²``). At rest,
    without integral and saturation, motor PD is stable as in the reference, for gains that carry
    the weight (see `ElasticPD`).

    Parameters
    ----------
    arm : SeriesElastic
    stiffness : float or array_like, shape (m,), optional
        K_P of each driven degree of freedom, in the order of the inputs [N m/rad]; that of the
        springs (at rest) if left out. Rigid joints need them given.
    damping : float or array_like, shape (m,), optional
        K_D [N m s/rad]; by default 0.7 of critical for the motor on spring and gain.
    integral : float or array_like, shape (m,)
        K_I [N m/(rad s)].
    side : {"motor", "link"}
    settings : SmoothReference or array_like, optional
        Stiffnesses over time, or positions of the motors that set them, on Rn of the joints that
        have such a motor; nominal if left out.
    setting_gains : pair of float
        Stiffness [N m/rad] and damping [N m s/rad] by which motors that set stiffness follow.
    dt : float
        Period in s.
    system, reference, saturate, check, offset, delay, p
        See `ElasticLaw`.

    Raises
    ------
    ValueError
        If a gain is negative or missing, or the reference is not smooth enough.

    References
    ----------
    P. Tomei: A simple PD controller for robots with elastic joints. IEEE Trans. Autom. Control 36
    (1991); A. De Luca: Feedforward/feedback laws for the control of flexible robots. ICRA 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> arm = elastic_planar_arm_tree()
    >>> hold = FlatFeedforward(arm, reference=[0.5, 0.3])
    >>> x = hold.reference_states(np.zeros(1))[0]
    >>> np.abs(hold(0.0, x) - arm.tree.gravity_forces([0.5, 0.3])).max() < 1e-12
    np.True_
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        integral: ArrayLike = 0.0,
        side: Literal["motor", "link"] = "motor",
        settings: SmoothReference | ArrayLike | None = None,
        setting_gains: tuple[float, float] = (20.0, 0.4),
        **options: Unpack[ElasticOptions],
    ) -> None:
        check_arm(arm)
        if side not in ("motor", "link"):
            raise ValueError(f'side must be "motor" or "link", not {side!r}')
        self.side = side
        count = len(arm.mechanics.rigid.drives)
        gains = {
            "stiffness": spring_gain(arm, stiffness, count),
            "integral_gain": gain("integral", integral, count),
        }
        gains["damping"] = motor_damping(arm, damping, gains["stiffness"])
        self.has_integral = bool(gains["integral_gain"].any())
        if arm.mechanics.adjusted:
            gains["setting_gains"] = gain("setting_gains", setting_gains, 2)
        super().__init__(
            arm, gains=gains, settings=settings, **options,
        )  # fmt: skip

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        arm, mechanics = self.arm, self.arm.mechanics
        own = (p,) * bool(arm.parameters)
        settings = [gains[key] for key in SETTINGS if key in gains]
        flat = arm.flat_map(expansion=0 if arm.damped_joints else None)
        wanted, _, u, _ = flat.function.call([*goal, *settings, *own])
        parts, there = mechanics.split(x), mechanics.split(wanted)
        e, relative = error_of(arm.tree.configuration, parts.q, parts.v, *goal[:2])
        B, drives = mechanics.rigid.B, mechanics.drives
        K, D = B @ gains["stiffness"], B @ gains["damping"]
        force = B.T @ spring_damper(arm.tree.configuration, e, relative, K, D)
        count = force.shape[0]
        if self.side == "motor":
            for i, (joint, at) in enumerate(zip(arm.elastic_joints, drives, strict=True)):
                away = joint.group.minus(parts.motors[i], there.motors[i])
                slower = parts.speeds[i] - there.speeds[i]
                force[at] = -gains["stiffness"][at] * away - gains["damping"][at] * slower
        feedback = force - gains["integral_gain"] * (B.T @ integral)
        rest = u[count:]
        for k, i in enumerate(mechanics.adjusted):
            stiffness, damping = ca.vertsplit(gains["setting_gains"])
            at = mechanics.set_joints.index(i)
            rest[at] -= stiffness * (parts.phi[k] - there.phi[k])
            rest[at] -= damping * (parts.psi[k] - there.psi[k])
        return ca.vertcat(u[:count] + feedback, rest)

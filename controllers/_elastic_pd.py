"""Laws that hold elastic arms: a PD, structure-preserving gains, an impedance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value, trace
from lgcontrol.codegen._internal import Shape, solve_symmetric
from lgcontrol.groups import LieGroup
from lgcontrol.mechanics import FrameTask, SeriesElastic, random_configuration
from lgcontrol.systems import ReferenceLike, System

from ._base import Controller, LawOptions
from ._elastic_law import (
    ElasticLaw,
    ElasticOptions,
    check_arm,
    elastic_function,
    elastic_symbols,
    elastic_system,
    parameter_places,
    refuse,
    state_near_rest,
    within_limits,
)
from ._goal import GoalMemory, frame_errors
from ._law_function import LawArgument, goal_arguments
from ._spring import (
    DAMPING_RATIO,
    WEIGHT_SAMPLES,
    WEIGHT_SEED,
    error_of,
    gain,
    motor_damping,
    motor_inertia,
    spring_damper,
    spring_gain,
    stiffness_at_rest,
    weight_slopes,
)
from ._tree_law import bounded

NEWTON_ROUNDS = 4  # of Newton for q̄: quadratic from θ, a deflection away
CONTRACTION = 0.9  # of what springs carry, at most


class ElasticPD(ElasticLaw):
    """``u = g(q_d) − K_P (θ − θ_d) − K_D θ̇`` with ``σ(θ_d − q_d) = g(q_d)``: desired gravity.

    Only motors are measured. With any positive gains the energy (kinetic, of weight, springs and
    ``½ K_P (θ − θ_d)²``, less the work of ``g(q_d)``) never rises: `storage` has it. That the only
    place to come to rest at is the goal takes ``λ_min(K_E) > max ‖∂g/∂q‖``, with

        ``K_E = [[K, −K], [−K, K + K_P]]``

    the stiffness of springs and gain for (q, θ). It is checked at construction, over 2,000
    configurations within the limits (seeded; all angles of joints without). The largest norm found
    is not a bound, and says so in `margin`.

    Assumptions: springs in all joints, linear or hardening (K is that at rest); the reference
    stays. Along motions `FlatFeedforward` is the law.

    Parameters
    ----------
    arm : SeriesElastic
    stiffness : float or array_like, shape (n,), optional
        K_P [N m/rad]; that of the springs if left out.
    damping : float or array_like, shape (n,), optional
        K_D [N m s/rad]; 0.7 of critical for motor, spring and gain if left out.
    certify : bool
        Whether gains for which the condition fails are refused.
    dt : float
        Period in s.
    system, reference, saturate, check, offset, delay, p
        See `ElasticLaw`.

    Attributes
    ----------
    stiffness_margin : tuple of float
        ``λ_min(K_E)`` and the largest norm of ∂g/∂q that was found.

    Raises
    ------
    ValueError
        If joints are rigid, a gain is negative, or the condition fails; the message says by how
        much.

    References
    ----------
    P. Tomei: A simple PD controller for robots with elastic joints. IEEE Trans. Autom. Control 36
    (1991).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> law = ElasticPD(elastic_planar_arm_tree(), stiffness=[400.0, 250.0])
    >>> law.margin
    'λ_min(K_E) = 95.5 against 31.7 N m/rad, the largest ‖∂g/∂q‖ of 2000 samples'
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        stiffness: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        certify: bool = True,
        **options: Unpack[ElasticOptions],
    ) -> None:
        check_arm(arm)
        if arm.rigid_joints:
            raise ValueError(
                f"ElasticPD needs a spring in every joint, and {', '.join(arm.rigid_joints)} are "
                "rigid: FlatFeedforward takes mixed arms"
            )
        Kp, K = spring_gain(arm, stiffness, len(arm.joints)), stiffness_at_rest(arm)
        least = np.linalg.eigvalsh(
            np.block([[np.diag(K), -np.diag(K)], [-np.diag(K), np.diag(K + Kp)]])
        )[0]
        steepest = np.linalg.norm(weight_slopes(arm), ord=2, axis=(-2, -1)).max()
        self.stiffness_margin = float(least), float(steepest)
        if certify and not self.stiffness_margin[0] > self.stiffness_margin[1]:
            raise ValueError(
                f"{arm.tree.name}: {self.margin}: the springs with these gains do not carry the "
                "weight to the goal from everywhere; take a larger stiffness (λ_min(K_E) stays "
                f"below {K.min():.4g} N m/rad, the softest spring), or certify=False"
            )
        super().__init__(
            arm, gains={"stiffness": Kp, "damping": motor_damping(arm, damping, Kp)}, **options,
        )  # fmt: skip

    @property
    def margin(self) -> str:
        """The condition in numbers, and how they were found."""
        least, steepest = self.stiffness_margin
        return (
            f"λ_min(K_E) = {least:.3g} against {steepest:.3g} N m/rad, the largest ‖∂g/∂q‖ of "
            f"{WEIGHT_SAMPLES} samples"
        )

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        arm, mechanics = self.arm, self.arm.mechanics
        held, away = self._away(x, goal[0], p)
        speeds = mechanics.split(x).speeds
        u = ca.SX(ca.DM(_nominal_inputs(arm)))
        u[mechanics.drives] = held - gains["stiffness"] * away - gains["damping"] * speeds
        return u

    def _away(self, x: Value, q: Value, p: Value) -> tuple[Value, Value]:
        """Weight at the springs of the goal, and how far motors are from where they carry it."""
        arm, mechanics = self.arm, self.arm.mechanics
        own = (p[: len(arm.tree.parameters)],) * bool(arm.tree.parameters)
        weight = arm.tree.gravity_forces.function.call([q, *own])[0]
        parts, settings = mechanics.split(x), mechanics.settings(x, ca.DM(_nominal_inputs(arm)))
        held, away = [], []
        for i, (joint, c) in enumerate(zip(arm.elastic_joints, mechanics.numbers(p), strict=True)):
            held.append(weight[mechanics.rows[i]])
            d = joint.spring.deflection(held[-1], settings[i], c.spring)
            there = joint.group.plus(joint.places.of(q), d)
            away.append(joint.group.minus(parts.motors[i], there))
        return ca.vertcat(*held), ca.vertcat(*away)

    @cached_property
    def _storage(self) -> ModelFunction:
        arm, mechanics = self.arm, self.arm.mechanics

        def build(x: Value, q: Value, stiffness: Value, p: Value) -> Value:
            held, away = self._away(x, q, p)
            u = ca.DM(_nominal_inputs(arm))
            own = mechanics.kinetic_energy, mechanics.potential_energy
            energy = sum(part(ca.SX(1, 1), x, u, p) for part in own)
            return energy + ca.dot(stiffness, away**2) / 2 - ca.dot(away, held)

        shapes: dict[str, Shape] = {"x": (arm.state.nq,), "q": (arm.tree.nq,)}
        shapes |= {"stiffness": (len(arm.joints),), "p": (len(arm.parameters),)}
        return trace("storage", build, shapes, {"energy": ()})

    def storage(self, x: ArrayLike, q: ArrayLike) -> np.ndarray:
        """Energy function of states for a goal, shape (...), up to a constant.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            CasADi columns, too.
        q : array_like, shape (nq,)
            Configuration that is held.
        """
        return self._storage(x, q, self.gains["stiffness"], self._own_parameters)


def _nominal_inputs(arm: SeriesElastic) -> np.ndarray:
    return np.array([entry.nominal for entry in arm.mechanics.inputs])


class ElasticStructurePreserving(ElasticLaw):
    """Errors move as an elastic arm of the same inertias and springs, with dampers and a PD.

    With ``e = q − q_d`` and new motor coordinates η the loop is
    ``M(q) ë + C(q, v) ė + D_q ė = K (η − e)``, ``B η̈ + D_η η̇ + K_P η = −K (η − e)``. Inertias and
    springs stay as they are; damping acts at the links although the torque is at the motors. The
    motors get ``η = θ − q_d − K⁻¹ n`` with ``n = M(q) a_d + C(q, v) v_d + g(q) + losses − D_q ė``,
    and two time derivatives of n along the motion, from the model.

    Assumptions: linear springs, an exact model. The energy
    ``½ ėᵀ M ė + ½ η̇ᵀ B η̇ + ½ (η − e)ᵀ K (η − e) + ½ ηᵀ K_P η`` falls by ``ėᵀ D_q ė + η̇ᵀ D_η η̇``
    for any positive gains, also along motions: `storage` has it.

    Parameters
    ----------
    arm : SeriesElastic
        With linear springs in all joints, no dampers.
    stiffness : float or array_like, shape (n,), optional
        K_P [N m/rad]; that of the springs if left out.
    link_damping : float or array_like, shape (n,), optional
        D_q [N m s/rad]; 0.7 of critical for the mean inertia of each joint if left out.
    damping : float or array_like, shape (n,), optional
        D_η [N m s/rad]; 0.7 of critical for motor, spring and K_P if left out.
    dt : float
        Period in s.
    system, reference, saturate, check, offset, delay, p
        See `ElasticLaw`.

    Raises
    ------
    ValueError
        If springs are not linear, joints rigid, or a gain is negative.

    References
    ----------
    M. Keppler, D. Lakatos, C. Ott, A. Albu-Schäffer: Elastic structure preserving (ESP) control for
    compliantly actuated robots. IEEE Trans. Robotics 34 (2018).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> law = ElasticStructurePreserving(elastic_planar_arm_tree(), reference=[0.5, 0.3])
    >>> x = law.reference_states(np.zeros(1))[0]
    >>> float(law.storage(x, law.goal([0.5, 0.3], 0.0)).round(9))
    0.0
    """

    def __init__(
        self,
        arm: SeriesElastic,
        *,
        stiffness: ArrayLike | None = None,
        link_damping: ArrayLike | None = None,
        damping: ArrayLike | None = None,
        **options: Unpack[ElasticOptions],
    ) -> None:
        check_arm(arm)
        refuse(arm, "ElasticStructurePreserving")
        crooked = [joint.name for joint in arm.elastic_joints if not joint.spring.is_linear]
        if crooked:
            raise ValueError(
                f"ElasticStructurePreserving knows linear springs; those of {', '.join(crooked)} "
                "are not: FlatFeedforward and FeedbackLinearization take them"
            )
        n, K = len(arm.joints), stiffness_at_rest(arm)
        Kp = spring_gain(arm, stiffness, n)
        if link_damping is None:
            series = K * Kp / (K + Kp)
            link_damping = 2 * DAMPING_RATIO * np.sqrt(_typical_inertia(arm) * series)
        gains = {
            "stiffness": Kp,
            "link_damping": gain("link_damping", link_damping, n),
            "damping": motor_damping(arm, damping, Kp),
        }
        super().__init__(
            arm, gains=gains, **options,
        )  # fmt: skip
        self._storage: Any = None

    def _build(
        self, x: Value, goal: Sequence[Value], integral: Value, p: Value, gains: Mapping[str, Value]
    ) -> Value:
        e, eta, eta_dot, push, K, B = self._coordinates(x, goal, p, gains)
        eta_ddot = (K * (e - eta) - gains["stiffness"] * eta - gains["damping"] * eta_dot) / B
        mechanics = self.arm.mechanics
        slow = (K * (e - eta) - gains["stiffness"] * eta) / gains["damping"]
        speeds = mechanics.split(x).speeds - eta_dot + slow
        losses = mechanics.motor_losses(x, p) + self._held_to(x, speeds, p)
        return B * (eta_ddot + push) + K * mechanics.deflection(x) + losses

    def _motor_damping(self) -> np.ndarray:
        return self.gains["damping"] / motor_inertia(self.arm)

    def _coordinates(
        self, x: Value, goal: Sequence[Value], p: Value, gains: Mapping[str, Value]
    ) -> tuple[Value, ...]:
        """``e, η, η̇, q̈_d + K⁻¹ n̈``, K and B."""
        arm, tree, mechanics = self.arm, self.arm.tree, self.arm.mechanics
        numbers, own = mechanics.numbers(p), (p,) * bool(arm.parameters)
        K = ca.vertcat(*(c.spring["stiffness"] for c in numbers))
        B = ca.vertcat(*(c.inertia for c in numbers))
        back = arm.flat_outputs()
        q, v, a, j, _ = back.function.call([x, ca.SX(len(mechanics.inputs), 1), *own])
        tree_p = (p[: len(tree.parameters)],) * bool(tree.parameters)
        forces = tree.two_velocity_dynamics(2).function.call([q, v, a, j, *goal[1:], *tree_p])
        n, n_dot, n_ddot = (
            force - gains["link_damping"] * (rate - wanted)
            for force, rate, wanted in zip(forces, (v, a, j), goal[1:4], strict=True)
        )
        parts = mechanics.split(x)
        e, eta = [], []
        for i, joint in enumerate(arm.elastic_joints):
            at = joint.places.of(goal[0])
            e.append(joint.group.minus(joint.places.of(q), at))
            eta.append(joint.group.minus(parts.motors[i], at))
        eta_dot = parts.speeds - goal[1] - n_dot / K
        return ca.vertcat(*e), ca.vertcat(*eta) - n / K, eta_dot, goal[2] + n_ddot / K, K, B

    def storage(self, x: ArrayLike, goal: Sequence[ArrayLike]) -> np.ndarray:
        """Energy function of the errors at states, shape (...), which never increases.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            States of the arm.
        goal : sequence
            Configuration, velocity, acceleration, jerk, snap of the reference.
        """
        if self._storage is None:
            arm, nv = self.arm, self.arm.tree.nv

            def build(x: Value, *values: Value) -> Value:
                goal, p, gains = (
                    values[:5],
                    values[5],
                    dict(zip(self.gains, values[6:], strict=True)),
                )
                e, eta, eta_dot, _, K, B = self._coordinates(x, goal, p, gains)
                v = arm.mechanics.split(x).v - goal[1]
                M = arm.mechanics.mass_matrix(x, p)
                return (
                    ca.dot(v, M @ v) + ca.dot(B, eta_dot**2) + ca.dot(K, (eta - e) ** 2)
                    + ca.dot(gains["stiffness"], eta**2)
                ) / 2  # fmt: skip

            shapes: dict[str, tuple[int, ...]] = {"x": (arm.state.nq,), "q": (arm.tree.nq,)}
            shapes |= dict.fromkeys(("v", "a", "j", "s"), (nv,))
            shapes["p"] = (len(arm.parameters),)
            shapes |= {name: value.shape for name, value in self.gains.items()}
            self._storage = trace("storage", build, shapes, {"energy": ()})
        return self._storage(x, *goal, self._own_parameters, *self.gains.values())


def _typical_inertia(arm: SeriesElastic) -> np.ndarray:
    """Geometric mean of the diagonal of M at random configurations."""
    q = arm.tree.configuration.random(np.random.default_rng(0), (50,))
    diagonal = np.diagonal(arm.tree.mass_matrix(q), axis1=-2, axis2=-1)
    return np.exp(np.log(diagonal).mean(axis=0))


class ElasticImpedance(Controller):
    """``u = p(q̄) − Jᵀ D_x ẋ − D θ̇`` with ``θ = q̄ + σ⁻¹(p(q̄))``, ``p(q) = g(q) − ∂V/∂q``: passive.

    V is the energy of a spring at the frame. q̄ is where the links would rest for the motors as
    they stand: there the frame has exactly the stiffness that was asked for. The law measures
    motors alone, and ``p(q̄(θ))`` is the gradient of ``P(θ) = U_g(q̄) − V(q̄) + E(σ⁻¹(p(q̄)))``,
    with the energies of weight and springs. The energy of `storage` thus falls by the power of
    dampers and losses, whatever the arm touches. For a goal at rest, the arm is passive for any
    passive environment.

    Assumptions: springs in all joints that carry the weight and the frame's spring,
    ``K + ∂g/∂q − Jᵀ K_x J > 0``: through springs nothing is stiffer than they are. It is checked at
    2,000 seeded samples. In motion the impedance is that of the motors, seen through the springs:
    inertias of motors and links stay.

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
        If joints are rigid, a gain is negative, or the springs do not carry the weight with the
        stiffness of the frame.

    Attributes
    ----------
    share : float
        Largest eigenvalue of ``K⁻¹ (Jᵀ K_x J − ∂g/∂q)`` that was found.

    References
    ----------
    C. Ott, A. Albu-Schäffer, A. Kugi, G. Hirzinger: On the passivity-based impedance control of
    flexible joint robots. IEEE Trans. Robotics 24 (2008).

    Examples
    --------
    >>> from lgcontrol.models import elastic_planar_arm_tree
    >>> arm = elastic_planar_arm_tree()
    >>> law = ElasticImpedance(arm, FrameTask("tool", "position"), stiffness=200.0, damping=20.0)
    >>> law.share < 0.9
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
        **loop: Unpack[LawOptions],
    ) -> None:
        system = elastic_system(arm, system)
        refuse(arm, "ElasticImpedance")
        super().__init__(system, dt=dt, **loop)
        self.arm = arm
        self._places_of_p = parameter_places(arm, system)
        self.task: FrameTask = FrameTask(task) if isinstance(task, str) else task
        self._goals = (GoalMemory(self.task.group, dt, "reference"),)
        k, n = self.task.group.dim, len(arm.joints)
        self.stiffness, self.damping = (
            gain("stiffness", stiffness, k), gain("damping", damping, k)
        )  # fmt: skip
        self.joint_damping = gain("joint_damping", joint_damping, n)
        self.share = self._share()
        if not self.share < CONTRACTION:
            raise ValueError(
                f"{arm.tree.name}: the springs do not carry the weight and the stiffness of "
                f"{self.task.frame} everywhere: the largest eigenvalue of K⁻¹ (Jᵀ K_x J − ∂g/∂q) "
                f"of {WEIGHT_SAMPLES} samples is {self.share:.3g}, it must be below {CONTRACTION}; "
                "take a softer frame or stiffer springs"
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
        mechanics, parts = self.arm.mechanics, self.arm.mechanics.split(x)
        q, held = self._rest(x, X, stiffness, p)
        now = self.task.kinematics(self.arm.tree, q)
        e, relative = error_of(self.task.group, now.X, now.J @ parts.speeds, X, V)
        wrench = spring_damper(self.task.group, e, relative, 0 * stiffness, damping)
        u = ca.SX(len(mechanics.inputs), 1)
        u[mechanics.drives] = held + now.J.T @ wrench - losses * parts.speeds
        return [u, q]

    def _share(self) -> float:
        """Largest share of the springs that weight and frame take at seeded configurations."""
        arm, tree = self.arm, self.arm.tree
        q = random_configuration(tree, np.random.default_rng(WEIGHT_SEED), WEIGHT_SAMPLES)
        J = trace(
            "J",
            lambda at: self.task.kinematics(tree, at).J,
            {"q": (tree.nq,)},
            {"J": (self.task.group.dim, tree.nv)},
        )(q)
        K = stiffness_at_rest(arm)
        taken = np.swapaxes(J, -1, -2) @ (self.stiffness[:, None] * J) - weight_slopes(arm)
        scaled = taken / np.sqrt(K[:, None] * K)
        return float(np.linalg.eigvalsh((scaled + np.swapaxes(scaled, -1, -2)) / 2).max())

    def _potential(self, q: Value, X: Value, stiffness: Value, p: Value) -> Value:
        """``U_g − V`` of configurations."""
        tree, group = self.arm.tree, self.task.group
        own = (p[: len(tree.parameters)],) * bool(tree.parameters)
        e = group.log(group.compose(group.inverse(X), self.task.kinematics(tree, q).X))
        weight = tree.potential_energy.function.call([q, *own])[0]
        return weight - ca.dot(stiffness, e**2) / 2

    def _held(self, q: Value, X: Value, stiffness: Value, p: Value) -> Value:
        """p(q): what holds the weight and pulls the frame to its goal."""
        tree, group = self.arm.tree, self.task.group
        own = (p[: len(tree.parameters)],) * bool(tree.parameters)
        now, none = self.task.kinematics(tree, q), ca.SX(group.dim, 1)
        e, _ = error_of(group, now.X, none, X, none)
        wrench = spring_damper(group, e, none, stiffness, none)
        return tree.gravity_forces.function.call([q, *own])[0] + now.J.T @ wrench

    def _rest(self, x: Value, X: Value, stiffness: Value, p: Value) -> tuple[Value, Value]:
        """Where links would rest for the motors as they stand, and p there, by Newton's method."""
        arm, tree, mechanics = self.arm, self.arm.tree, self.arm.mechanics
        motors, numbers = mechanics.split(x).motors, mechanics.numbers(p)
        symbols = [ca.SX.sym("q", tree.nq), ca.SX.sym("X", X.shape[0])]
        symbols += [ca.SX.sym("K", stiffness.shape[0]), ca.SX.sym("p", p.shape[0])]
        held = self._held(*symbols)
        slope = ca.jacobian(held, symbols[0]) @ tree.configuration.rate_matrix(symbols[0])
        found = ca.Function("held", symbols, ca.cse([held, ca.SX(ca.sparsify(slope))]))
        q = ca.vertcat(*motors)
        force, slope = found(q, X, stiffness, p)
        for _ in range(NEWTON_ROUNDS):
            off, steep = [], []
            for joint, theta, row, c in zip(
                arm.elastic_joints, motors, mechanics.rows, numbers, strict=True
            ):
                d = joint.spring.deflection(force[row], ca.DM(0), c.spring)
                stretch = joint.group.minus(theta, joint.places.of(q))
                steep.append(joint.spring.slopes(d, ca.DM(0), c.spring).by_deflection)
                off.append(steep[-1] * (stretch - d))
            step = solve_symmetric(ca.diag(ca.vertcat(*steep)) + slope, ca.vertcat(*off))
            q = tree.configuration.plus(q, step)
            force, slope = found(q, X, stiffness, p)
        return q, force

    @cached_property
    def _storage(self) -> ModelFunction:
        arm, mechanics = self.arm, self.arm.mechanics

        def build(x: Value, X: Value, stiffness: Value, p: Value) -> Value:
            q, held = self._rest(x, X, stiffness, p)
            stored = self._potential(q, X, stiffness, p)
            for joint, row, c in zip(
                arm.elastic_joints, mechanics.rows, mechanics.numbers(p), strict=True
            ):
                d = joint.spring.deflection(held[row], ca.DM(0), c.spring)
                stored += joint.spring.energy(d, ca.DM(0), c.spring)
            u = ca.SX(len(mechanics.inputs), 1)
            own = mechanics.kinetic_energy, mechanics.potential_energy
            return sum(energy(ca.SX(1, 1), x, u, p) for energy in own) - stored

        shapes: dict[str, Shape] = {"x": (arm.state.nq,), "X_ref": (self.task.group.nq,)}
        shapes |= {"stiffness": (self.task.group.dim,), "p": (len(arm.parameters),)}
        return trace("storage", build, shapes, {"energy": ()})

    def storage(self, x: ArrayLike, X: ArrayLike) -> np.ndarray:
        """Energy function of states for a goal at rest, shape (...), which never increases.

        Parameters
        ----------
        x : array_like, shape (..., nq)
            States of the arm; CasADi columns, too.
        X : array_like, shape (nq of the task's group,)
        """
        return self._storage(x, X, self.stiffness, self._p[self._places_of_p])

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        goal = self._goals[0](reference, t)
        gains = (self.stiffness, self.damping, self.joint_damping)
        u = self.law(x, goal.X, goal.velocity, *gains, self._p[self._places_of_p]).u
        u, self.info = bounded([u], self._lower, self._upper, self.saturate)
        return u

    def _exported_law(self) -> ModelFunction:
        given = elastic_symbols(self)
        x, X, V, p = given.values()
        gains = (self.stiffness, self.damping, self.joint_damping)
        own = p[self._places_of_p]
        u = self.law.function.call([x, X, V, *map(ca.DM, gains), own])[0]
        return elastic_function(given, {"u": within_limits(self, u, self.saturate)[0]})

    def _exported_goals(self) -> Mapping[str, LawArgument]:
        return goal_arguments(self.task.group, "frame_ref", "frame_v_ref")

    def _exported_state(self, reference: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return state_near_rest(self.arm, rng)

    def state_reference(self, reference: ReferenceLike | None) -> ReferenceLike | None:
        """None: the reference is the frame's."""

    def task_errors(
        self, times: np.ndarray, x: np.ndarray, reference: ReferenceLike | None = None
    ) -> dict[str, tuple[np.ndarray, LieGroup]]:
        """Error of the frame, by its name; see `Controller.task_errors`."""
        goal = self.reference if reference is None else reference
        where = self.arm.state.coordinate_slice("configuration")
        return frame_errors(self.arm.tree, self.task, where, times, x, goal)

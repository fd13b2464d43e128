"""ElasticImpedance: a Cartesian spring and damper of a frame, through the springs of the joints."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Unpack

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
    WEIGHT_SAMPLES,
    WEIGHT_SEED,
    error_of,
    gain,
    spring_damper,
    stiffness_at_rest,
    weight_slopes,
)
from ._tree_law import bounded

NEWTON_ROUNDS = 4  # of Newton for q̄: quadratic from θ, a deflection away
CONTRACTION = 0.9  # of what springs carry, at most


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

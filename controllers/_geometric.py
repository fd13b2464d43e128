"""GeometricPD: proportional-derivative tracking on the group, for fully actuated systems."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.codegen._internal import solve_symmetric
from lgcontrol.simulation import CallStatus
from lgcontrol.systems import ReferenceLike, System

from ._allocation import allocate
from ._base import ControlInfo
from ._block_controller import BlockController, BlockOptions
from ._goal import state_goal
from ._losses import commanded_joints, commanded_velocity, dragged, loss_change
from ._tracking import (
    MechanicalBlocks,
    exported_law,
    gains,
    tracking_acceleration,
)


class GeometricPD(BlockController):
    """Tracks configuration and velocity on any group, with the model's dynamics cancelled.

    For a satellite (SO3), an underwater vehicle (SE3), a vessel (SE2): wherever the controls can
    produce any acceleration. From almost every error, 180° included, the reference is reached along
    the shortest rotation. Vehicles that push along one axis only take `ThrustVectorPD`. If the
    sampled loop is too slow to cancel a joint's losses or drag, they are compensated as in
    `ComputedTorque`, at the velocity that the law commands.

    Parameters
    ----------
    system : System
        State with a configuration and its body-fixed velocity; affine in the controls.
    frequency : float or array_like
        Natural frequency of the error in rad/s: one, or one per tangent coordinate.
    damping_ratio : float or array_like
    dt : float
        Period in s.
    configuration, velocity : str, optional
        Block to control and its body-fixed velocity; those of the system's structure, which trees
        and bodies bring, if left out.
    reference : optional
        See `Controller`; the velocity and acceleration of a Trajectory are fed forward.
    saturate : bool
        Whether the controls stay within their bounds.
    offset, delay : float
        See `Controller`.
    p : mapping or array_like, optional
        The system's parameters.

    Raises
    ------
    ValueError
        If the state has no such blocks or the controls cannot produce every acceleration.

    Examples
    --------
    >>> from lgcontrol.groups import SO3, Product, Rn
    >>> satellite = System(
    ...     "satellite", Product(attitude=SO3, rate=Rn(3)),
    ...     lambda t, x, u, p: ca.vertcat(x[4:], u / 5), inputs=["tx", "ty", "tz"])
    >>> control = GeometricPD(
    ...     satellite, configuration="attitude", velocity="rate", frequency=0.5,
    ...     reference=satellite.state.identity)
    >>> control(0.0, [1, 0, 0, 0, 0, 0, 0]).round(3)  # turned by 180° about x
    array([-3.927,  0.   ,  0.   ])
    """

    def __init__(
        self,
        system: System,
        *,
        frequency: ArrayLike = 1.0,
        damping_ratio: ArrayLike = 1.0,
        **options: Unpack[BlockOptions],
    ) -> None:
        super().__init__(system, **options)
        self.stiffness, self.damping = gains(frequency, damping_ratio, self.blocks.group.dim)
        self._tracking = _tracking(system, self.blocks)
        own = np.diag(self.damping)
        damping = (lambda _: own) if self.damping.all() else None
        self.commanded = commanded_joints(system, self.blocks, self._own, self.dt, damping)
        self._loss_change = self._commanded_state = None
        if self.commanded.any():
            self._loss_change = _loss_change(system, self.blocks, self.commanded)
        slow_down = dragged(system, self.blocks, self._actuation, self._own, self.dt, self.damping)
        slow_down &= ~self.commanded
        if slow_down.any():
            self._commanded_state = _commanded_state(system, self.blocks, slow_down)
            self.commanded = self.commanded | slow_down
        effect = self._actuation(0.0, system.state.identity, system.nominal_input, self._p).effect
        rank = np.linalg.matrix_rank(effect)
        if rank < self.blocks.group.dim:
            raise ValueError(
                f"{system.name}: the controls accelerate {self.blocks.name!r} in {rank} of "
                f"{self.blocks.group.dim} directions; ThrustVectorPD is for thrust along one axis"
            )
        self._check_loop()

    def _control(self, t: float, x: np.ndarray, reference: ReferenceLike | None) -> np.ndarray:
        q, v = self.blocks.q, self.blocks.v
        x_ref, u_ref, rate = state_goal(self.system, reference, t, self.dt, self._p)
        wanted = self._tracking(
            x[q], x[v], x_ref[q], x_ref[v], rate[self.blocks.dv], self.stiffness, self.damping
        )
        if self._loss_change is not None:
            wanted = wanted + self._loss_change(x, x_ref, self.stiffness, self.damping, self._own)
        now = self._actuation(t, x, u_ref, self._p)
        rate = now.rate
        if self._commanded_state is not None:
            there = self._commanded_state(x, x_ref, self.stiffness, self.damping)
            rate = self._actuation(t, there, u_ref, self._p).rate
        start, missing = u_ref[self._controls], wanted - rate
        free = start + np.linalg.pinv(now.effect) @ missing
        if not self.saturate:
            self.info = ControlInfo()
            return free
        bounds = (self._lower - start, self._upper - start)
        u = start + allocate(now.effect, missing, *bounds)
        self.info = ControlInfo(CallStatus.OK if np.allclose(u, free) else CallStatus.SATURATED)
        return np.clip(u, self._lower, self._upper)

    def _exported_law(self) -> ModelFunction:
        blocks = self.blocks

        def wanted(
            x: Value, x_ref: Value, rate_ref: Value, now: Value, drift: Value, p: Value,
            rate_at: Callable[[Value], Value],
        ) -> tuple[Value, Value]:  # fmt: skip
            del drift
            goal = x_ref[blocks.q], x_ref[blocks.v], rate_ref[blocks.dv]
            gains = self.stiffness, self.damping
            asked = self._tracking.function(x[blocks.q], x[blocks.v], *goal, *gains)
            if self._loss_change is not None:
                asked += self._loss_change.function(x, x_ref, *gains, p)
            if self._commanded_state is None:
                return now[1], asked - now[0]
            return now[1], asked - rate_at(self._commanded_state.function(x, x_ref, *gains))

        return exported_law(self, self._actuation, wanted, is_relative=True)


def _loss_change(system: System, blocks: MechanicalBlocks, chosen: np.ndarray) -> ModelFunction:
    """Acceleration for the chosen joints' losses at the commanded velocity, less those measured."""
    structure, change = system.structure, loss_change(system, blocks, chosen)
    assert structure is not None
    sizes = {
        "x": system.state.nq, "x_ref": system.state.nq, "stiffness": blocks.group.dim,
        "damping": blocks.group.dim, "p": system.n_parameters,
    }  # fmt: skip
    x, x_ref, stiffness, damping, p = (ca.SX.sym(name, size) for name, size in sizes.items())
    goal = x_ref[blocks.q], x_ref[blocks.v]
    velocity = commanded_velocity(blocks.group, x[blocks.q], *goal, stiffness, damping)
    push = solve_symmetric(structure.mass_matrix(x, p), change(x, velocity, p))
    function = ca.Function(
        "loss_change", [x, x_ref, stiffness, damping, p], [ca.densify(push)], list(sizes), ["push"]
    )
    shapes = {name: (size,) for name, size in sizes.items()} | {"push": (blocks.group.dim,)}
    return ModelFunction(function, shapes=shapes)


def _commanded_state(system: System, blocks: MechanicalBlocks, chosen: np.ndarray) -> ModelFunction:
    """The state with the commanded velocity in the chosen degrees of freedom.

    What resists a velocity fast holds it there: the field is asked what it does then.
    """
    sizes = {
        "x": system.state.nq, "x_ref": system.state.nq, "stiffness": blocks.group.dim,
        "damping": blocks.group.dim,
    }  # fmt: skip
    x, x_ref, stiffness, damping = (ca.SX.sym(name, size) for name, size in sizes.items())
    goal = x_ref[blocks.q], x_ref[blocks.v]
    velocity = commanded_velocity(blocks.group, x[blocks.q], *goal, stiffness, damping)
    there, places = ca.SX(x), np.arange(system.state.nq)[blocks.v]
    for i in np.flatnonzero(chosen).tolist():
        there[int(places[i])] = velocity[i]
    function = ca.Function(
        "commanded_state", [x, x_ref, stiffness, damping], [there], list(sizes), ["there"]
    )
    shapes = {name: (size,) for name, size in sizes.items()} | {"there": (system.state.nq,)}
    return ModelFunction(function, shapes=shapes)


def _tracking(system: System, blocks: MechanicalBlocks) -> ModelFunction:
    """`tracking_acceleration` as a function, kept with the system for the controllers to come."""
    return system.memo(("tracking", blocks.name), lambda: _build_tracking(blocks))


def _build_tracking(blocks: MechanicalBlocks) -> ModelFunction:
    n, nq = blocks.group.dim, blocks.group.nq
    names = {
        "q": nq, "v": n, "q_ref": nq, "v_ref": n, "rate_ref": n, "stiffness": n, "damping": n,
    }  # fmt: skip
    q, v, *goal, stiffness, damping = (ca.SX.sym(name, size) for name, size in names.items())
    wanted = tracking_acceleration(blocks.group, q, v, goal, stiffness, damping)
    function = ca.Function(
        "tracking", [q, v, *goal, stiffness, damping], [wanted], list(names), ["acceleration"]
    )
    shapes = {name: (size,) for name, size in names.items()} | {"acceleration": (n,)}
    return ModelFunction(function, shapes=shapes)

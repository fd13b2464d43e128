"""Wheels that spin in a body: their speeds matter, their angles do not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, named_options
from ...codegen._internal import Shape, check_shape, interruptible, solve_symmetric
from ...groups import Product, Rn
from ...systems import Input, System
from .._coefficients import freeze, refuse_negative, set_field, unit_vector
from .._mechanical import mechanical, model_function
from ._equations import body_state
from ._rigid_body import RigidBody
from ._velocity_forms import MomentumFrame, check_momentum_frame


@named_options
@dataclass(frozen=True, eq=False)
class GyroscopicWheels:
    """Balanced wheels with fixed axes in a body: reaction wheels, momentum wheels, rotors.

    Parameters
    ----------
    axes : array_like, shape (k, 3)
        Axes in the body frame, one a row; their lengths do not matter.
    inertias : array_like, shape (k,) or ()
        Inertia of each wheel about its axis [kg m²].
    friction : array_like, shape (k,) or ()
        Viscous friction of each bearing [N m s/rad].
    max_torque : float
        Bound of the motor torques [N m].
    name : str
        Inputs are called ``name.0``, ….

    Raises
    ------
    ValueError
        If an axis is zero, an inertia not positive or a friction negative.

    Examples
    --------
    >>> GyroscopicWheels(np.eye(3), 0.01, max_torque=0.2).inertias
    array([0.01, 0.01, 0.01])
    """

    axes: Any
    inertias: Any
    friction: Any = 0.0
    max_torque: float = np.inf
    name: str = "wheel"

    def __post_init__(self) -> None:
        freeze(self, axes=(None, 3))
        axes = [unit_vector(f"GyroscopicWheels: axis {k}", n) for k, n in enumerate(self.axes)]
        set_field(self, "axes", np.array(axes).reshape(-1, 3))
        for field in ("inertias", "friction"):
            value = np.asarray(getattr(self, field), dtype=np.float64)
            each = np.full(len(axes), value) if value.shape == () else value
            set_field(self, field, check_shape(f"GyroscopicWheels: {field}", each, (len(axes),)))
        if not (self.inertias > 0).all():
            raise ValueError(
                f"GyroscopicWheels: inertias must be positive, got {self.inertias.tolist()} kg m²"
            )
        refuse_negative(self, friction="N m s/rad")

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Motor torques on the wheels."""
        bound = self.max_torque
        return tuple(Input(f"{self.name}.{k}", "N m", -bound, bound) for k in range(len(self.axes)))


@named_options
@dataclass(frozen=True, eq=False)
class Gyrostat:
    """A rigid body with spinning wheels, on any group of motions.

    With the wheel momenta as part of the momentum ``p = M v + B J Ω`` (B: wheel axes in the group's
    coordinates), ``ṗ − ad_vᵀ p = Q`` and ``J (Ω̇ + Bᵀ v̇) = T − friction · Ω``. The body feels the
    motor torques T with the opposite sign.

    Parameters
    ----------
    body : RigidBody
        The body, with an inertia that includes the wheels.
    wheels : GyroscopicWheels
        The wheels.

    Raises
    ------
    ValueError
        If the wheels have more inertia than the whole.

    Examples
    --------
    >>> from lgcontrol.groups import SO3
    >>> from lgcontrol.mechanics import RigidBody, SpatialInertia
    >>> satellite = Gyrostat(
    ...     RigidBody("satellite", SO3, SpatialInertia.box(100.0, [1.0, 1.0, 1.5])),
    ...     GyroscopicWheels(np.eye(3), 0.01, max_torque=0.2))
    >>> satellite.system().state
    Product(pose=SO3, twist=Rn(3), wheel_speed=Rn(3))
    """

    body: RigidBody
    wheels: GyroscopicWheels

    def __post_init__(self) -> None:
        self.body.equations.check_inertia(
            f"{self.body.name} without its wheels", np.array(ca.DM(self._spinning_inertia))
        )

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs of the body, then the motor torques."""
        return self.body.inputs + self.wheels.inputs

    @property
    def state(self) -> Product:
        """State of the system: pose, twist, wheel_speed (relative to the body) [rad/s]."""
        count = len(self.wheels.axes)
        names = tuple(f"{self.wheels.name}{k}" for k in range(count))
        return body_state(self.body.group, wheel_speed=Rn(count, names, ("rad/s",) * count))

    @cached_property
    def forward_dynamics(self) -> ModelFunction:
        """Accelerations of body and wheels: (X, v, wheel_speed, u, p) → (a, wheel_acceleration).

        u are the inputs of the body and the motor torques [N m].
        """
        return self._trace(
            "forward_dynamics",
            self._accelerations,
            "X v wheel_speed u p",
            {"a": (self.body.group.dim,), "wheel_acceleration": (len(self.wheels.axes),)},
        )

    @cached_property
    def kinetic_energy(self) -> ModelFunction:
        """``½ vᵀ M v + vᵀ B J Ω + ½ Ωᵀ J Ω`` [J]: (v, wheel_speed, p) → (...)."""
        return self._trace("kinetic_energy", self._energy, "v wheel_speed p", {"E": ()})

    def momentum(self, frame: MomentumFrame = "body") -> ModelFunction:
        """Generalized momentum of body and wheels; the spatial one is constant without forces.

        Parameters
        ----------
        frame : {"body", "spatial"}
            Frame of the twists the momentum is dual to.

        Returns
        -------
        ModelFunction
            (X, v, wheel_speed, p) → (..., dim).
        """
        check_momentum_frame(self.body.name, frame)
        group = self.body.group

        def build(X: Value, v: Value, speed: Value, p: Value) -> Value:
            momentum = self._momentum(v, speed, p)
            return momentum if frame == "body" else group.Ad(group.inverse(X)).T @ momentum

        return self._trace("momentum", build, "X v wheel_speed p", {"momentum": (group.dim,)})

    @interruptible
    def system(self, name: str | None = None) -> System[Product]:
        """Motion of body and wheels as a System on `state`, with `inputs`.

        Parameters
        ----------
        name : str, optional
            Name of the system; the default is that of the body.
        """
        state, parameters = self.state, self.body.parameters
        mechanics = _Mechanics(self)

        def f(t: Value, x: Value, u: Value, p: Value) -> Value:
            X, v, speed = state.split(x).values()
            return ca.vertcat(v, *self._accelerations(X, v, speed, u, p))

        def kinetic_energy(t: Value, x: Value, u: Value, p: Value) -> Value:
            _, v, speed = state.split(x).values()
            return self._energy(v, speed, p)

        return System(
            name or self.body.name,
            state,
            f,
            inputs=self.inputs,
            parameters=parameters,
            quantities={"kinetic_energy": kinetic_energy},
            derivatives=mechanics.derivatives,
            look=self.body.look,
            structure=mechanical(
                mechanics,
                state,
                self.inputs,
                parameters,
                speeds="wheel_speed",
                model=self,
                momenta=mechanics,
            ),
        )

    # Equations on CasADi columns

    @cached_property
    def _axes(self) -> ca.DM:
        """B = Hᵀ [0; axes], shape (dim, k)."""
        return ca.sparsify(ca.DM(self.body.group.selection[3:].T @ self.wheels.axes.T))

    def _momentum(self, v: Value, speed: Value, p: Value) -> Value:
        equations = self.body.equations
        M = equations.mass_matrix(equations.bind(p))
        return M @ v + self._axes @ (ca.DM(self.wheels.inertias) * speed)

    def _energy(self, v: Value, speed: Value, p: Value) -> Value:
        own = ca.DM(self.wheels.inertias) * speed
        return (
            ca.dot(v, self._momentum(v, speed, p))
            + ca.dot(own, self._axes.T @ v)
            + ca.dot(own, speed)
        ) / 2

    @cached_property
    def _spinning_inertia(self) -> ca.DM:
        """B J Bᵀ: the part of the inertia that free bearings do not carry along."""
        return self._axes @ ca.diag(ca.DM(self.wheels.inertias)) @ self._axes.T

    def _accelerations(
        self, X: Value, v: Value, speed: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        net = u[len(self.body.inputs) :] - ca.DM(self.wheels.friction) * speed
        a = solve_symmetric(self._reduced_inertia(p), self._force(X, v, speed, u, p))
        return a, net / ca.DM(self.wheels.inertias) - self._axes.T @ a

    def _reduced_inertia(self, p: Value) -> Value:
        equations = self.body.equations
        return ca.sparsify(equations.mass_matrix(equations.bind(p)) - self._spinning_inertia)

    def _force(self, X: Value, v: Value, speed: Value, u: Value, p: Value) -> Value:
        """``Q + ad_vᵀ p − B (T − friction · Ω)``."""
        equations, count = self.body.equations, len(self.body.inputs)
        net = u[count:] - ca.DM(self.wheels.friction) * speed
        force = equations.generalized_force(X, v, u[:count], equations.bind(p))
        gyroscopic = self.body.group.ad(v).T @ self._momentum(v, speed, p)
        return force + gyroscopic - self._axes @ net

    def _trace(
        self, name: str, build: Callable[..., Any], arguments: str, results: dict[str, Shape]
    ) -> ModelFunction:
        group, count = self.body.group, len(self.wheels.axes)
        shapes = {"X": (group.nq,), "v": (group.dim,), "wheel_speed": (count,)}
        own = self.inputs, self.body.parameters
        return model_function(name, build, arguments, results, shapes, *own)


@dataclass(frozen=True, eq=False)
class _Mechanics:
    """Equations of a gyrostat on ``x = (X, v, Ω)``: ``(M − B J Bᵀ) v̇ = Q + ad_vᵀ p − B T``."""

    gyrostat: Gyrostat

    def mass_matrix(self, x: Value, p: Value) -> Value:
        """Inertia of what the free wheels carry along."""
        return self.gyrostat._reduced_inertia(p)

    def inertia(self, x: Value, p: Value) -> Value:
        """``[[M, B J], [J Bᵀ, J]]`` of body and wheels, whose momentum is ``J (Ω + Bᵀ v)``."""
        equations = self.gyrostat.body.equations
        J = ca.sparsify(ca.diag(ca.DM(self.gyrostat.wheels.inertias)))
        coupling = self.gyrostat._axes @ J
        M = equations.mass_matrix(equations.bind(p))
        return ca.blockcat([[M, coupling], [coupling.T, J]])

    def action(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``Q`` on the body from outside, ``T − friction · Ω`` on the wheels."""
        equations, count = self.gyrostat.body.equations, len(self.gyrostat.body.inputs)
        X, v, speed = self.gyrostat.state.split(x).values()
        force = equations.generalized_force(X, v, u[:count], equations.bind(p))
        return ca.vertcat(force, u[count:] - ca.DM(self.gyrostat.wheels.friction) * speed)

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Everything but the inertia."""
        X, v, speed = self.gyrostat.state.split(x).values()
        return self.gyrostat._force(X, v, speed, u, p)

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Coefficients of the force: the inertia is the same everywhere."""
        body, wheels, axes = self.gyrostat.body, self.gyrostat.wheels, self.gyrostat._axes
        X, v, speed = self.gyrostat.state.split(x).values()
        by_X, by_v, by_u = body.equations.force_derivatives(
            X,
            v,
            u[: len(body.inputs)],
            body.equations.bind(p),
            self.gyrostat._momentum(v, speed, p),
        )
        turned = body.group.ad(v).T @ axes @ ca.diag(ca.DM(wheels.inertias))
        by_speed = turned + axes @ ca.sparsify(ca.diag(ca.DM(wheels.friction)))
        return ca.horzcat(by_X, by_v, by_speed), ca.horzcat(by_u, -axes)

    def derivatives(self, t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """Those of the field: v̇ by the balance, ``Ω̇ = J⁻¹ (T − friction · Ω) − Bᵀ v̇``."""
        wheels, dim = self.gyrostat.wheels, self.gyrostat.body.group.dim
        by_x, by_u = self.balance_derivatives(t, x, ca.DM(), u, p)
        solved = solve_symmetric(
            self.gyrostat._reduced_inertia(p), ca.sparsify(ca.horzcat(by_x, by_u))
        )
        softness = ca.diag(1 / ca.DM(wheels.inertias))
        losses = ca.sparsify(ca.diag(ca.DM(wheels.friction / wheels.inertias)))
        k, n, m = len(wheels.axes), by_x.shape[1], by_u.shape[1]
        own = ca.horzcat(ca.DM(k, n - k), -losses, ca.DM(k, m - k), softness)
        still = ca.horzcat(ca.DM(dim, dim), ca.DM.eye(dim), ca.DM(dim, k + m))
        whole = ca.vertcat(still, solved, own - self.gyrostat._axes.T @ solved)
        return whole[:, :n], whole[:, n:]

"""The System of a body on a group."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import casadi as ca

from ...codegen import Value
from ...codegen._internal import level_outside, solve_symmetric
from ...groups import SE3, LieGroup, Product, Rn
from ...systems import Input, System
from .._mechanical import mechanical
from ..representations._unified import UnifiedVelocity
from ._equations import BodyEquations
from ._velocity_forms import MomentumFrame, VelocityForm, check_momentum_frame, velocity_state

Velocity = Literal["twist", "momentum"] | UnifiedVelocity


def body_state(group: LieGroup, **others: LieGroup) -> Product:
    """Pose and twist, with the twist's components named vx, …, wz; further blocks after them."""
    names = tuple(f"w{n[1:]}" if n.startswith("r") else f"v{n}" for n in group.tangent_names)
    units = tuple(f"{unit}/s" for unit in group.tangent_units)
    return Product(pose=group, twist=Rn(group.dim, names, units), **others)


def generalized_inputs(group: LieGroup) -> tuple[Input, ...]:
    """Components of a generalized force as inputs."""
    return tuple(
        Input(f"tau.{axis}", "N" if unit == "m" else "N m")
        for axis, unit in zip(group.tangent_names, group.tangent_units, strict=True)
    )


def declared_inputs(
    name: str, own: Sequence[Input], inputs: Sequence[Input] | None
) -> tuple[Input, ...]:
    """Inputs of a system: its own, or others given for them."""
    if inputs is None:
        return tuple(own)
    if len(inputs) != len(own):
        raise ValueError(
            f"{name}: {len(inputs)} inputs given, expected {len(own)}: "
            f"{', '.join(entry.name for entry in own)}"
        )
    return tuple(inputs)


@dataclass(frozen=True, eq=False)
class BodyMechanics:
    """Equations of a body on ``x = (X, v)``, with inputs that may end with a force τ."""

    equations: BodyEquations
    takes_force: bool = False

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs of the body, and τ."""
        own = self.equations.inputs
        return own + generalized_inputs(self.equations.group) if self.takes_force else own

    def mass_matrix(self, x: Value, p: Value) -> Value:
        """``Hᵀ (I + A) H``."""
        return self.equations.mass_matrix(self.equations.bind(p))

    def inertia(self, x: Value, p: Value) -> Value:
        """The same."""
        return self.mass_matrix(x, p)

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``τ + Q + ad_vᵀ M v``."""
        X, v, own, tau = self._split(x, u)
        return self.equations.force(X, v, tau, own, self.equations.bind(p))

    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``v, M⁻¹ (τ + Q + ad_vᵀ M v)``."""
        X, v, own, tau = self._split(x, u)
        return ca.vertcat(v, self.equations.acceleration(X, v, tau, own, self.equations.bind(p)))

    def action(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``τ + Q``: what acts, without ``ad_vᵀ M v``."""
        X, v, own, tau = self._split(x, u)
        return tau + self.equations.generalized_force(X, v, own, self.equations.bind(p))

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Coefficients of the force: M is the same everywhere."""
        (X, v, own, tau), c = self._split(x, u), self.equations.bind(p)
        by_X, by_v, by_u = self.equations.force_derivatives(
            X, v, own, c, self.equations.mass_matrix(c) @ v
        )
        n = tau.shape[0] if self.takes_force else 0
        return ca.horzcat(by_X, by_v), ca.horzcat(by_u, ca.DM.eye(tau.shape[0])[:, :n])

    def input_map(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Derivative of the force by the inputs."""
        return self.balance_derivatives(t, x, ca.DM(), u, p)[1]

    def _split(self, x: Value, u: Value) -> tuple[Value, Value, Value, Value]:
        group, count = self.equations.group, len(self.equations.inputs)
        tau = u[count:] if self.takes_force else ca.DM(group.dim, 1)
        nq = group.nq
        return x[:nq], x[nq : nq + group.dim], u[:count], tau


def body_system(
    name: str,
    body: Any,
    *,
    inputs: Sequence[Input] | None,
    generalized_force: bool,
    velocity: Velocity,
    frame: MomentumFrame,
    h: Callable[[Any, Any, Any, Any], Any] | None,
    output: LieGroup | None,
) -> System[Product]:
    """``Ẋ = X v^``, ``v̇ = M⁻¹ (τ + Q + ad_vᵀ M v)``, as `RigidBody.system` describes it."""
    equations: BodyEquations = body.equations
    group, parameters = equations.group, equations.coefficients.parameters
    mechanics = BodyMechanics(equations, generalized_force)
    declared = declared_inputs(name, mechanics.inputs, inputs)

    def kinetic_energy(t: Value, x: Value, u: Value, p: Value) -> Value:
        v = x[group.nq :]
        return ca.dot(v, equations.mass_matrix(equations.bind(p)) @ v) / 2

    def potential_energy(t: Value, x: Value, u: Value, p: Value) -> Value:
        return equations.potential_energy(x[: group.nq], equations.bind(p))

    def energy(x: Value, p: Value) -> Value:
        return kinetic_energy(0, x, 0, p) + potential_energy(0, x, 0, p)

    c = equations.bind(ca.SX.sym("p", len(parameters)))
    state = body_state(group)
    quantities = {"kinetic_energy": kinetic_energy, "potential_energy": potential_energy}
    invariants = energy if not declared and equations.is_conservative(c) else None
    if velocity != "twist":
        return body_velocity_form(body, velocity, frame, generalized_force).system(
            name,
            inputs=declared,
            quantities=quantities,
            invariants=invariants,
            h=h,
            output=output,
            look=body.look,
        )
    made = System(
        name,
        state,
        mechanics.field,
        inputs=declared,
        parameters=parameters,
        h=h,
        output=output,
        quantities=quantities,
        invariants=invariants,
        look=body.look,
        structure=mechanical(
            mechanics,
            state,
            declared,
            parameters,
            model=body,
            is_plain=equations.is_plain(c),
            momenta=mechanics,
        ),
    )
    _warn_of_idle_inputs(made, group)
    return made


def _warn_of_idle_inputs(system: System[Product], group: LieGroup) -> None:
    """Warn of controls that change nothing, such as a moment about an axis that the group lacks.

    Disturbances along such an axis are what the constraint resists.
    """
    acting = set(system.f.function.jac_sparsity(0, 2).get_triplet()[1])
    idle = [
        given.name
        for k, given in enumerate(system.inputs)
        if given.role == "control" and k not in acting
    ]
    if idle:
        warnings.warn(
            f"{system.name}: controls along axes that {group.name} does not have change nothing: "
            f"{', '.join(idle)}; leave these axes out of the force",
            UserWarning,
            stacklevel=level_outside(),
        )


def body_velocity_form(
    body: Any, velocity: Velocity, frame: MomentumFrame, generalized_force: bool
) -> VelocityForm:
    """Ways between the twist of a body and another velocity."""
    equations: BodyEquations = body.equations
    group, parameters = equations.group, equations.coefficients.parameters
    mechanics, source = BodyMechanics(equations, generalized_force), body_state(group)

    if isinstance(velocity, UnifiedVelocity):
        if group != SE3:
            raise ValueError(
                f"{body.name}: unified velocity coordinates are those of bodies on SE3, not on "
                f"{group.name}; leave out velocity="
            )
        D, inverse = ca.sparsify(ca.DM(velocity.matrix)), ca.sparsify(ca.DM(velocity.inverse))

        def unified_rate(t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
            rate = mechanics.field(t, ca.vertcat(q, v), u, p)
            return D @ rate[group.dim :]

        return VelocityForm(
            source,
            velocity_state(source, velocity.block, velocity.names, ("m/s",) * 6),
            parameters,
            lambda q, v, p: D @ v,
            lambda q, w, p: inverse @ w,
            unified_rate,
        )
    if velocity != "momentum":
        raise ValueError(
            f'{body.name}: velocity must be "twist", "momentum" or a UnifiedVelocity, '
            f"not {velocity!r}"
        )
    check_momentum_frame(body.name, frame)
    names = tuple(f"{'L' if n.startswith('r') else 'p'}{n[-1]}" for n in group.tangent_names)
    units = ["kg m/s" if unit == "m" else "kg m²/s" for unit in group.tangent_units]

    def inertia(p: Value) -> Value:
        return equations.mass_matrix(equations.bind(p))

    def carried(q: Value, momentum: Value) -> Value:
        """Body momentum in the frame."""
        return momentum if frame == "body" else group.Ad(group.inverse(q)).T @ momentum

    def rate(t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
        force = mechanics.action(t, ca.vertcat(q, v), u, p)
        if frame == "body":
            return group.ad(v).T @ (inertia(p) @ v) + force
        return carried(q, force)

    def to_body(q: Value, w: Value) -> Value:
        return w if frame == "body" else group.Ad(q).T @ w

    return VelocityForm(
        source,
        velocity_state(source, "momentum", names, units),
        parameters,
        lambda q, v, p: carried(q, inertia(p) @ v),
        lambda q, w, p: solve_symmetric(inertia(p), to_body(q, w)),
        rate,
    )

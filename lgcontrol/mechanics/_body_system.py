"""The System of a body on a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from ..codegen import Value
from ..groups import LieGroup, Product, Rn
from ..systems import Input, System
from ._body_equations import BodyEquations
from ._mechanical import mechanical


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

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``τ + Q + ad_vᵀ M v``."""
        X, v, own, tau = self._split(x, u)
        return self.equations.force(X, v, tau, own, self.equations.bind(p))

    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``v, M⁻¹ (τ + Q + ad_vᵀ M v)``."""
        X, v, own, tau = self._split(x, u)
        return ca.vertcat(v, self.equations.acceleration(X, v, tau, own, self.equations.bind(p)))

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Those of the force: M is the same everywhere."""
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
    h: Callable[..., Any] | None,
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
    return System(
        name,
        state,
        mechanics.field,
        inputs=declared,
        parameters=parameters,
        h=h,
        output=output,
        quantities={"kinetic_energy": kinetic_energy, "potential_energy": potential_energy},
        invariants=energy if not declared and equations.is_conservative(c) else None,
        structure=mechanical(
            mechanics, state, declared, parameters, model=body, is_plain=equations.is_plain(c)
        ),
    )

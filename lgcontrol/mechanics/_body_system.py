"""The System of a body on a group."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import casadi as ca

from ..codegen import Value
from ..groups import LieGroup, Product, Rn
from ..systems import Input, System
from ._body_equations import BodyEquations


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


def body_system(
    name: str,
    equations: BodyEquations,
    *,
    inputs: Sequence[Input] | None,
    generalized_force: bool,
    h: Callable[..., Any] | None,
    output: LieGroup | None,
) -> System[Product]:
    """``Ẋ = X v^``, ``v̇ = M⁻¹ (τ + Q + ad_vᵀ M v)``, as `RigidBody.system` describes it."""
    group, count = equations.group, len(equations.inputs)
    own = equations.inputs + (generalized_inputs(group) if generalized_force else ())

    def f(t: Value, x: Value, u: Value, p: Value) -> Value:
        X, v = x[: group.nq], x[group.nq :]
        tau = u[count:] if generalized_force else ca.DM(group.dim, 1)
        return ca.vertcat(v, equations.acceleration(X, v, tau, u[:count], equations.bind(p)))

    def kinetic_energy(t: Value, x: Value, u: Value, p: Value) -> Value:
        v = x[group.nq :]
        return ca.dot(v, equations.mass_matrix(equations.bind(p)) @ v) / 2

    def potential_energy(t: Value, x: Value, u: Value, p: Value) -> Value:
        return equations.potential_energy(x[: group.nq], equations.bind(p))

    def energy(x: Value, p: Value) -> Value:
        return kinetic_energy(0, x, 0, p) + potential_energy(0, x, 0, p)

    p = ca.SX.sym("p", len(equations.coefficients.parameters))
    is_constant = not own and equations.is_conservative(equations.bind(p))
    return System(
        name,
        body_state(group),
        f,
        inputs=declared_inputs(name, own, inputs),
        parameters=equations.coefficients.parameters,
        h=h,
        output=output,
        quantities={"kinetic_energy": kinetic_energy, "potential_energy": potential_energy},
        invariants=energy if is_constant else None,
    )

"""Equations of motion of a body on a group, on CasADi columns, and the System they make."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import level_outside, solve_symmetric
from ...groups import LieGroup, Product, Rn
from ...systems import Input, System
from .._coefficients import Coefficient, Coefficients
from .._mechanical import mechanical
from ..inertia._inertia import SpatialInertia, spatial_inertia_matrix
from ..representations._unified import UnifiedVelocity
from ..surroundings._forces import BodyMotion, Gravity
from ..surroundings._surroundings import Surroundings, check_generalized_inertia
from ._quasi_velocity import ad_tilde_matrix
from ._velocity_forms import MomentumFrame, VelocityForm, velocity_form_of


@dataclass(frozen=True, eq=False)
class BodyEquations:
    """What `RigidBody` traces; its parts are checked there.

    Methods take the pose X, the velocity v, all inputs u, and the bound coefficients c of
    `bind`.
    """

    group: LieGroup
    inertia: SpatialInertia
    surroundings: Surroundings
    coefficients: Coefficients
    selection: ca.DM

    @classmethod
    def create(
        cls, inertia: SpatialInertia, surroundings: Surroundings, symbolic: Sequence[str]
    ) -> BodyEquations:
        """Collect the coefficients of a body and what acts on it, under the name ""."""
        named = {
            "mass": Coefficient(np.array(inertia.mass), "kg", lower=0.0),
            "center_of_mass": Coefficient(inertia.center_of_mass, "m"),
            "inertia": Coefficient(inertia.inertia, "kg m²", is_symmetric=True, lower=0.0),
        }
        group = surroundings.group
        return cls(
            group,
            inertia,
            surroundings,
            Coefficients(named | surroundings.coefficients, symbolic),
            ca.sparsify(ca.DM(group.selection)),
        )

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs of the forces, then those of the current."""
        return self.surroundings.inputs

    def check_inertia(self, name: str, reduction: float | np.ndarray = 0.0) -> None:
        """Refuse a generalized inertia, less a reduction (dim, dim), that is not positive."""
        nominal = ca.DM([entry.nominal for entry in self.coefficients.parameters])
        M = np.array(ca.DM(self.mass_matrix(self.bind(nominal)))) - reduction
        H = np.abs(self.group.selection)
        magnitude = H.T @ np.abs(self.inertia.matrix) @ H
        if "added_mass" in self.coefficients.values:
            added = np.abs(self.coefficients.values["added_mass"])
            magnitude = magnitude + (H.T @ added @ H if added.shape == (6, 6) else added)
        check_generalized_inertia(name, self.group, M, magnitude)

    def bind(self, p: Value) -> dict[str, Value]:
        """Coefficients at the parameters p."""
        return self.coefficients.bind(p)

    def mass_matrix(self, c: Mapping[str, Value]) -> Value:
        """``Hᵀ (I + A) H``."""
        H = self.selection
        M = H.T @ spatial_inertia_matrix(c["mass"], c["center_of_mass"], c["inertia"]) @ H
        if "added_mass" in c:
            added = c["added_mass"]
            M += H.T @ added @ H if added.shape == (6, 6) else added
        return M if isinstance(M, ca.MX) else ca.sparsify(M)

    def bias(self, v: Value, c: Mapping[str, Value]) -> Value:
        """``−ad_vᵀ M v``."""
        return -(self.group.ad(v).T @ (self.mass_matrix(c) @ v))

    def force(self, X: Value, v: Value, tau: Value, u: Value, c: Mapping[str, Value]) -> Value:
        """``τ + Q + ad_vᵀ M v``."""
        return tau + self.generalized_force(X, v, u, c) - self.bias(v, c)

    def acceleration(
        self, X: Value, v: Value, tau: Value, u: Value, c: Mapping[str, Value]
    ) -> Value:
        """``M⁻¹ (τ + Q + ad_vᵀ M v)``."""
        return solve_symmetric(self.mass_matrix(c), self.force(X, v, tau, u, c))

    def generalized_force(self, X: Value, v: Value, u: Value, c: Mapping[str, Value]) -> Value:
        """``Hᵀ Σ W`` of all forces and of the added mass in the current."""
        return self.selection.T @ self.surroundings.wrench("", self.motion(X, v, u, c), u, c)

    def force_derivatives(
        self, X: Value, v: Value, u: Value, c: Mapping[str, Value], momentum: Value
    ) -> tuple[Value, Value, Value]:
        """Derivatives of ``Q + ad_vᵀ P`` by pose, velocity and inputs, with ``∂P/∂v = M``."""
        H, group = self.selection, self.group
        W = self.surroundings.derivatives("", self.motion(X, v, u, c), u, c)
        turning = group.ad(v).T @ self.mass_matrix(c)
        by_v = H.T @ W.by_twist @ H + turning - ad_tilde_matrix(group, momentum)
        return H.T @ W.by_pose @ H, by_v, H.T @ W.by_inputs

    def wrench(self, force: str, X: Value, v: Value, u: Value, c: Mapping[str, Value]) -> Value:
        """Body wrench of one force."""
        return self.surroundings.wrenches("", self.motion(X, v, u, c), u, c)[force]

    def conservative_force(self, X: Value, c: Mapping[str, Value]) -> Value:
        """``Hᵀ Σ W`` of the forces with a potential energy."""
        motion, u = self._at_rest(X, c)
        energies = self.surroundings.potential_energies("", motion, c)
        total = ca.DM(6, 1)
        for name, wrench in self.surroundings.wrenches("", motion, u, c).items():
            if energies[name] is not None:
                total += wrench
        return self.selection.T @ total

    def potential_energy(self, X: Value, c: Mapping[str, Value]) -> Value:
        """Sum over the forces that have one."""
        energies = self.surroundings.potential_energies("", self._at_rest(X, c)[0], c)
        return sum((energy for energy in energies.values() if energy is not None), ca.DM(0))

    def is_conservative(self, c: Mapping[str, Value]) -> bool:
        """Whether all forces have a potential energy."""
        motion, _ = self._at_rest(ca.SX.sym("X", self.group.nq), c)
        energies = self.surroundings.potential_energies("", motion, c)
        return self.surroundings.current is None and None not in energies.values()

    def is_plain(self, c: Mapping[str, Value]) -> bool:
        """Whether nothing acts but weight and inputs, these through a constant matrix."""
        X, v, u = (
            ca.SX.sym(name, size)
            for name, size in (("X", self.group.nq), ("v", self.group.dim), ("u", len(self.inputs)))
        )
        wrenches = self.surroundings.wrenches("", self.motion(X, v, u, c), u, c)
        for force in self.surroundings.forces[""]:
            if isinstance(force, Gravity):
                del wrenches[force.name]
        Q = ca.SX(self.group.dim, 1)
        for wrench in wrenches.values():
            Q += self.selection.T @ wrench
        is_linear = ca.substitute(Q, u, ca.DM.zeros(*u.shape)).is_zero()
        is_constant = not ca.symvar(ca.jacobian(Q, u))
        return self.surroundings.current is None and is_linear and is_constant

    def motion(self, X: Value, v: Value, u: Value, c: Mapping[str, Value]) -> BodyMotion:
        """Pose and velocity of the body."""
        inertia = c["mass"], c["center_of_mass"]
        T = self.group.homogeneous(X)
        pose = T[:3, :3], T[:3, 3]
        return self.surroundings.motion(pose, self.selection @ v, inertia, u, c)

    def _at_rest(self, X: Value, c: Mapping[str, Value]) -> tuple[BodyMotion, Value]:
        u = ca.DM.zeros(len(self.inputs))
        return self.motion(X, ca.DM.zeros(self.group.dim), u, c), u


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

    inertia = mass_matrix

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
    options: dict[str, Any] = {
        "inputs": declared,
        "quantities": {"kinetic_energy": kinetic_energy, "potential_energy": potential_energy},
        "invariants": energy if not declared and equations.is_conservative(c) else None,
        "h": h,
        "output": output,
        "look": body.look,
    }
    if velocity != "twist":
        form = body_velocity_form(body, velocity, frame, generalized_force)
        return form.system(name, **options)
    made = System(
        name,
        state,
        mechanics.field,
        parameters=parameters,
        **options,
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
    group = equations.group
    names = [f"{'L' if n.startswith('r') else 'p'}{n[-1]}" for n in group.tangent_names]
    return velocity_form_of(
        body.name,
        BodyMechanics(equations, generalized_force),
        body_state(group),
        equations.coefficients.parameters,
        velocity,
        frame,
        lead=group,
        momenta=names,
    )

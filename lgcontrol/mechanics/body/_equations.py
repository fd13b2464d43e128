"""Equations of motion of a body on a group, on CasADi columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import solve_symmetric
from ...groups import LieGroup
from ...systems import Input
from .._coefficients import Coefficient, Coefficients
from ..inertia._inertia import SpatialInertia
from ..inertia._inertia_matrix import spatial_inertia_matrix
from ..surroundings._added_mass import check_generalized_inertia
from ..surroundings._forces import BodyMotion, Gravity
from ..surroundings._surroundings import Surroundings
from ._coriolis import ad_tilde_matrix


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

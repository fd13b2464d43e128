"""Equations of motion of a body on a group, on CasADi columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import casadi as ca
import numpy as np

from ..codegen import Value
from ..groups import LieGroup
from ..systems import Input
from ._added_mass import Current, check_generalized_inertia, current_wrench
from ._coefficients import Coefficient, Coefficients
from ._forces import BodyMotion, Force
from ._inertia import SpatialInertia
from ._inertia_matrix import spatial_inertia_matrix


@dataclass(frozen=True, eq=False)
class BodyEquations:
    """What `RigidBody` traces; its parts are checked there.

    Methods take the pose X, the velocity v, all inputs u, and the bound coefficients c of
    `bind`.
    """

    group: LieGroup
    inertia: SpatialInertia
    forces: Sequence[Force]
    added_mass: np.ndarray | None
    current: Current | None
    coefficients: Coefficients
    selection: ca.DM

    @classmethod
    def create(
        cls,
        group: LieGroup,
        inertia: SpatialInertia,
        forces: Sequence[Force],
        added_mass: np.ndarray | None,
        current: Current | None,
        symbolic: Sequence[str],
    ) -> BodyEquations:
        """Collect the coefficients of a body and its forces."""
        named = {
            "mass": Coefficient(np.array(inertia.mass), "kg"),
            "center_of_mass": Coefficient(inertia.center_of_mass, "m"),
            "inertia": Coefficient(inertia.inertia, "kg m²", is_symmetric=True),
        }
        if added_mass is not None:
            named["added_mass"] = _added_mass_coefficient(added_mass, group)
        if current is not None:
            named["current"] = Coefficient(current.velocity, "m/s")
        for force in forces:
            named |= {full_name(force, key): value for key, value in force.coefficients.items()}
        return cls(
            group,
            inertia,
            forces,
            added_mass,
            current,
            Coefficients(named, symbolic),
            ca.sparsify(ca.DM(group.selection)),
        )

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs of the forces, then those of the current."""
        current = () if self.current is None else self.current.inputs
        return (*(entry for force in self.forces for entry in force.inputs), *current)

    def check_inertia(self, name: str, reduction: float | np.ndarray = 0.0) -> None:
        """Refuse a generalized inertia, less a reduction (dim, dim), that is not positive."""
        nominal = ca.DM([entry.nominal for entry in self.coefficients.parameters])
        M = np.array(ca.DM(self.mass_matrix(self.bind(nominal)))) - reduction
        H = np.abs(self.group.selection)
        magnitude = H.T @ np.abs(self.inertia.matrix) @ H
        if self.added_mass is not None:
            added = np.abs(self.added_mass)
            magnitude = magnitude + (H.T @ added @ H if added.shape == (6, 6) else added)
        check_generalized_inertia(name, self.group, M, magnitude)

    def bind(self, p: Value) -> dict[str, Value]:
        """Coefficients at the parameters p."""
        return self.coefficients.bind(p)

    def mass_matrix(self, c: Mapping[str, Value]) -> Value:
        """``Hᵀ (I + A) H``."""
        H = self.selection
        M = H.T @ spatial_inertia_matrix(c["mass"], c["center_of_mass"], c["inertia"]) @ H
        if self.added_mass is not None:
            added = c["added_mass"]
            M += H.T @ added @ H if added.shape == (6, 6) else added
        return M if isinstance(M, ca.MX) else ca.sparsify(M)

    def bias(self, v: Value, c: Mapping[str, Value]) -> Value:
        """``−ad_vᵀ M v``."""
        return -(self.group._ad(v).T @ (self.mass_matrix(c) @ v))

    def acceleration(
        self, X: Value, v: Value, tau: Value, u: Value, c: Mapping[str, Value]
    ) -> Value:
        """``M⁻¹ (τ + Q + ad_vᵀ M v)``."""
        force = tau + self.generalized_force(X, v, u, c) - self.bias(v, c)
        return solve_symmetric(self.mass_matrix(c), force)

    def generalized_force(self, X: Value, v: Value, u: Value, c: Mapping[str, Value]) -> Value:
        """``Hᵀ Σ W`` of all forces and of the added mass in the current."""
        motion = self.motion(X, v, u, c)
        total = ca.DM(6, 1)
        for force in self.forces:
            total += self.wrench(force, motion, u, c)
        if self.current is not None and self.added_mass is not None:
            total += current_wrench(c["added_mass"], motion)
        return self.selection.T @ total

    def wrench(self, force: Force, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        """Body wrench of one force."""
        start = 0
        for other in self.forces:
            if other is force:
                break
            start += len(other.inputs)
        return force._wrench(motion, u[start : start + len(force.inputs)], _own(force, c))

    def conservative_force(self, X: Value, c: Mapping[str, Value]) -> Value:
        """``Hᵀ Σ W`` of the forces with a potential energy."""
        motion, u = self._at_rest(X, c)
        total = ca.DM(6, 1)
        for force in self.forces:
            if force._potential_energy(motion, _own(force, c)) is not None:
                total += self.wrench(force, motion, u, c)
        return self.selection.T @ total

    def potential_energy(self, X: Value, c: Mapping[str, Value]) -> Value:
        """Sum over the forces that have one."""
        motion, _ = self._at_rest(X, c)
        energies = [force._potential_energy(motion, _own(force, c)) for force in self.forces]
        return sum((energy for energy in energies if energy is not None), ca.DM(0))

    def is_conservative(self, c: Mapping[str, Value]) -> bool:
        """Whether all forces have a potential energy."""
        motion, _ = self._at_rest(ca.SX.sym("X", self.group.nq), c)
        return self.current is None and all(
            force._potential_energy(motion, _own(force, c)) is not None for force in self.forces
        )

    def motion(self, X: Value, v: Value, u: Value, c: Mapping[str, Value]) -> BodyMotion:
        """Where the body is and how it moves."""
        rotation, position = self.group._pose(X)
        twist = relative = self.selection @ v
        if self.current is not None:
            flow = c["current"]
            if self.current.inputs:
                flow = flow + u[len(self.inputs) - 3 :]
            relative = twist - ca.vertcat(rotation.T @ flow, ca.DM(3, 1))
        return BodyMotion(rotation, position, twist, relative, c["mass"], c["center_of_mass"])

    def _at_rest(self, X: Value, c: Mapping[str, Value]) -> tuple[BodyMotion, Value]:
        u = ca.DM.zeros(len(self.inputs))
        return self.motion(X, ca.DM.zeros(self.group.dim), u, c), u


def solve_symmetric(M: Value, b: Value) -> Value:
    """``M⁻¹ b`` for a symmetric positive definite M."""
    if isinstance(M, ca.DM):
        return ca.sparsify(ca.DM(np.linalg.inv(M.full()))) @ b
    return ca.ldl_solve(b, *ca.ldl(M))


def _own(force: Force, c: Mapping[str, Value]) -> dict[str, Value]:
    return {key: c[full_name(force, key)] for key in force.coefficients}


def full_name(force: Force, key: str) -> str:
    """Name of a coefficient with that of its force."""
    return f"{force.name}.{key}" if key else force.name


def _added_mass_coefficient(added_mass: np.ndarray, group: LieGroup) -> Coefficient:
    is_twist = added_mass.shape == (6, 6)
    lengths = ["m"] * 3 + ["rad"] * 3 if is_twist else list(group.tangent_units)
    names = {0: "kg", 1: "kg m", 2: "kg m²"}
    units = np.array(
        [[names[(row == "rad") + (column == "rad")] for column in lengths] for row in lengths]
    )
    return Coefficient(added_mass, units, True, () if is_twist else group.tangent_names)

"""What acts on bodies, alone or as links of a tree: forces, the fluid around them, its current."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import check_shape
from ...groups import SE3, LieGroup
from ...systems import Input
from .._coefficients import Coefficient, freeze, read_only
from ._forces import BodyMotion, Force

# Asymmetry and negative eigenvalues, relative to the largest entry: matrices printed with nine
# digits.
ADDED_MASS_TOLERANCE = 1e-9

# Smallest eigenvalue of M scaled to order one: below it, little of the acceleration is left in
# double precision.
SINGULAR_TOLERANCE = 1e-12


@named_options
@dataclass(frozen=True, eq=False)
class Current:
    """Uniform flow of the surrounding fluid: water current or wind.

    Parameters
    ----------
    velocity : array_like, shape (3,)
        Velocity in world axes [m/s].
    is_input : bool
        Whether three disturbance inputs add to the velocity. The equations take the flow as steady:
        they hold while it changes slowly against the motion.

    Examples
    --------
    >>> [entry.name for entry in Current(is_input=True).inputs]
    ['current.x', 'current.y', 'current.z']
    """

    velocity: Any = (0.0, 0.0, 0.0)
    is_input: bool = False

    def __post_init__(self) -> None:
        freeze(self, velocity=(3,))

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Velocity that adds to the constant one, if it is an input."""
        if not self.is_input:
            return ()
        return tuple(Input(f"current.{axis}", "m/s", role="disturbance") for axis in "xyz")


def current_wrench(added_mass: Value, motion: BodyMotion) -> Value:
    """Wrench of the added mass in a current, beyond the one in fluid at rest.

    The fluid's momentum belongs to the motion relative to it. The wrench on the body is ``−A V̇_r
    + ad_(V_r)ᵀ A V_r``; fluid at rest gives ``−A V̇ + ad_Vᵀ A V``. The relative acceleration is
    ``V̇ + [ω × Rᵀ v_c; 0]`` for a steady current.
    """
    V, V_r = motion.twist, motion.relative_twist
    turning = ca.vertcat(ca.cross(V[3:], V[:3] - V_r[:3]), ca.DM(3, 1))
    relative = SE3.ad(V_r).T @ (added_mass @ V_r)
    return relative - SE3.ad(V).T @ (added_mass @ V) - added_mass @ turning


def check_added_mass(body: str, value: Any, group: LieGroup) -> np.ndarray:
    """Added mass as a read-only array, if it has a possible shape and is positive semidefinite."""
    n = group.dim
    given = np.asarray(value, dtype=np.float64)
    if given.shape not in ((6, 6), (n, n)):
        own = "" if n == 6 else f" or ({n}, {n}), the dimension of {group}"
        raise ValueError(
            f"{body}: added_mass has shape {given.shape}, expected (6, 6){own}; use numpy.diag for "
            "a diagonal one"
        )
    A = check_shape(f"{body}: added_mass", given, given.shape)
    scale = float(np.abs(A).max())
    asymmetry = np.abs(A - A.T)
    if asymmetry.max() > ADDED_MASS_TOLERANCE * scale:
        i, j = (int(k) for k in np.unravel_index(asymmetry.argmax(), A.shape))
        raise ValueError(
            f"{body}: added_mass is not symmetric: entries ({i}, {j}) and ({j}, {i}) are "
            f"{A[i, j]:.6g} and {A[j, i]:.6g}; give (A + Aᵀ)/2 if that is meant"
        )
    A = (A + A.T) / 2
    smallest = float(np.linalg.eigvalsh(A)[0])
    if smallest < -ADDED_MASS_TOLERANCE * scale:
        raise ValueError(
            f"{body}: added_mass is negative: its smallest eigenvalue is {smallest:.3g}; published "
            "derivatives such as X_du have the opposite sign"
        )
    return read_only(A)


def check_generalized_inertia(
    body: str, group: LieGroup, M: np.ndarray, magnitude: np.ndarray
) -> None:
    """Refuse a body that some motion of its group takes no effort to move.

    `magnitude` is M with all its terms taken by their absolute values, shape (dim, dim): what
    zeros are measured by.
    """
    # Scaled to order one: kg and kg m² do not compare.
    root = np.sqrt(np.diag(magnitude))
    root[root == 0.0] = 1.0
    eigenvalues, vectors = np.linalg.eigh(M / np.outer(root, root))
    if eigenvalues[0] > SINGULAR_TOLERANCE:
        return
    motion = vectors[:, 0] / root
    motion = motion / motion[np.abs(motion).argmax()]
    named = ", ".join(
        f"{name} {entry:.3g}"
        for name, entry in zip(group.tangent_names, motion, strict=True)
        if abs(entry) > 1e-6
    )
    raise ValueError(
        f"{body}: the generalized inertia on {group} is not positive definite: the velocity "
        f"({named}) has the kinetic energy {motion @ M @ motion / 2:.3g} J; give the inertia of "
        "the body's shape, or a group without this motion"
    )


class WrenchDerivatives(NamedTuple):
    """Derivatives of the wrench on a body, in the body frame, 6 rows each.

    Those by the pose are by displacements ``exp(d)`` of the body frame, at a fixed body twist.
    """

    by_pose: Value
    by_twist: Value
    by_inputs: Value


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Forces by the body they act on, added masses and the current.

    Bodies have names: "" for one that is alone, else that of a link or frame. Methods take all
    inputs u and the values c of all coefficients.
    """

    forces: Mapping[str, Sequence[Force]]
    added_mass: Mapping[str, np.ndarray] = field(default_factory=dict)
    current: Current | None = None
    group: LieGroup = SE3  # that the bodies move on; added masses are (6, 6) or in its coordinates
    pushes: Mapping[str, Force] = field(default_factory=dict)  # their inputs come last

    @cached_property
    def bodies(self) -> tuple[str, ...]:
        """Names of the bodies that something acts on."""
        return tuple(dict.fromkeys([*self.forces, *self.added_mass, *self.pushes]))

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs of the forces, then those of the current, then those of the pushes."""
        own = [entry for some in self.forces.values() for force in some for entry in force.inputs]
        current = () if self.current is None else self.current.inputs
        last = [entry for force in self.pushes.values() for entry in force.inputs]
        return (*own, *current, *last)

    @property
    def coefficients(self) -> dict[str, Coefficient]:
        """Every number that may stay symbolic."""
        named = {
            full_name(body, "added_mass"): _added_mass_coefficient(added, self.group)
            for body, added in self.added_mass.items()
        }
        if self.current is not None:
            named["current"] = Coefficient(self.current.velocity, "m/s")
        for body, some in self.forces.items():
            for force in some:
                for key, value in force.coefficients.items():
                    named[coefficient_name(body, force, key)] = value
        return named

    def motion(
        self,
        pose: tuple[Value, Value],
        twist: Value,
        inertia: tuple[Value, Value],
        u: Value,
        c: Mapping[str, Value],
    ) -> BodyMotion:
        """What forces see of a body with a pose (R, p), a twist, a mass and its centre."""
        rotation, position = pose
        relative = twist
        if self.current is not None:
            flow = c["current"]
            if self.current.inputs:
                flow = flow + u[self._first_of_current : self._first_of_current + 3]
            relative = twist - ca.vertcat(rotation.T @ flow, ca.DM(3, 1))
        return BodyMotion(rotation, position, twist, relative, *inertia)

    def wrench(self, body: str, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        """Sum of the forces on a body, and what the current adds to its added mass."""
        total = ca.DM(6, 1)
        for wrench in self.wrenches(body, motion, u, c).values():
            total += wrench
        if self.current is not None and body in self.added_mass:
            total += current_wrench(c[full_name(body, "added_mass")], motion)
        return total

    def wrenches(
        self, body: str, motion: BodyMotion, u: Value, c: Mapping[str, Value]
    ) -> dict[str, Value]:
        """Wrench of every force on a body, by the name of the force."""
        return {
            force.name: force._wrench(motion, u[own], _own(body, force, c))
            for force, own in self._acting.get(body, ())
        }

    def potential_energies(
        self, body: str, motion: BodyMotion, c: Mapping[str, Value]
    ) -> dict[str, Value | None]:
        """Energy of every force on a body, by the name of the force; None where it has none."""
        return {
            force.name: force._potential_energy(motion, _own(body, force, c))
            for force, _ in self._acting.get(body, ())
        }

    def derivatives(
        self, body: str, motion: BodyMotion, u: Value, c: Mapping[str, Value]
    ) -> WrenchDerivatives:
        """Derivatives of `wrench`: a few dozen operations each, differentiated as they stand."""
        r, p, V = (ca.SX.sym(name, size) for name, size in (("R", 9), ("p", 3), ("V", 6)))
        own = ca.SX.sym("u", len(self.inputs))
        R = ca.reshape(r, 3, 3)
        inertia = (motion.mass, motion.center_of_mass)
        W = ca.SX(self.wrench(body, self.motion((R, p), V, inertia, own, c), own, c))
        turned = ca.horzcat(*(ca.vec(R @ ca.skew(axis)) for axis in ca.horzsplit(ca.DM.eye(3))))
        found = [
            ca.horzcat(ca.jacobian(W, p) @ R, ca.jacobian(W, r) @ turned),
            ca.jacobian(W, V),
            ca.jacobian(W, own),
        ]
        here = [
            ca.vec(ca.densify(ca.SX(x)))
            for x in (motion.rotation, motion.position, motion.twist, u)
        ]
        found = ca.substitute(found, [r, p, V, own], here)
        return WrenchDerivatives(*(ca.sparsify(value) for value in found))

    @cached_property
    def _acting(self) -> dict[str, list[tuple[Force, slice]]]:
        """Forces on every body, with the places of their inputs."""
        found: dict[str, list[tuple[Force, slice]]] = {}
        start = 0
        pushes = {body: [force] for body, force in self.pushes.items()}
        for forces in (self.forces, pushes):
            for body, force in ((body, force) for body, some in forces.items() for force in some):
                stop = start + len(force.inputs)
                found.setdefault(body, []).append((force, slice(start, stop)))
                start = stop
            if forces is self.forces and self.current is not None:
                start += len(self.current.inputs)
        return found

    @cached_property
    def _first_of_current(self) -> int:
        return sum(len(force.inputs) for some in self.forces.values() for force in some)


def check_forces(body: str, forces: Iterable[Force]) -> tuple[Force, ...]:
    """Forces on a body, if they are forces with names that differ."""
    names: list[str] = []
    found = tuple(forces)
    for force in found:
        if not isinstance(force, Force):
            raise TypeError(f"{body}: {force!r} is not a Force")
        if force.name in names:
            raise ValueError(f"{body}: two forces are called {force.name!r}; name one otherwise")
        names.append(force.name)
    return found


def full_name(body: str, name: str) -> str:
    """Name of a number of a body among those of all."""
    return f"{body}.{name}" if body else name


def coefficient_name(body: str, force: Force, key: str) -> str:
    """Name of a coefficient of a force on a body among those of all."""
    return full_name(body, f"{force.name}.{key}" if key else force.name)


def _own(body: str, force: Force, c: Mapping[str, Value]) -> dict[str, Value]:
    return {key: c[coefficient_name(body, force, key)] for key in force.coefficients}


def _added_mass_coefficient(added_mass: np.ndarray, group: LieGroup) -> Coefficient:
    is_twist = added_mass.shape == (6, 6)
    lengths = ["m"] * 3 + ["rad"] * 3 if is_twist else list(group.tangent_units)
    names = {0: "kg", 1: "kg m", 2: "kg m²"}
    units = np.array(
        [[names[(row == "rad") + (column == "rad")] for column in lengths] for row in lengths]
    )
    return Coefficient(added_mass, units, True, () if is_twist else group.tangent_names, 0.0)

"""Equations of motion of bodies in absolute coordinates, in any formulation, on CasADi columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import solve_symmetric
from ...groups import Product, Rn
from ...systems import Input, Parameter
from .._coefficients import Coefficient, Coefficients
from ..inertia._inertia import SpatialInertia
from ..surroundings._surroundings import Surroundings
from ._basic import GROUND, Frames, VelocityConstraint
from ._constraint import Constraint, Constraints
from ._formulations import Formulation
from ._joints import MechanismJoint, Row
from ._marker_forces import MarkerForce, MechanismMotor
from ._system import Coordinate

NORM = "norm"
"""Row of the constraint that keeps the coordinates of a body those of a pose."""

# Moments below this share of the largest count as none.
NO_MOMENT = 1e-9


@dataclass(frozen=True, eq=False)
class MechanismEquations:
    """``M v̇ + Gᵀ λ = F`` of bodies and joints, with everything a formulation decides.

    Coordinates q and velocities v are those of all bodies, one below the other. With
    ``[ṙ; ω] = T(q) v`` of a body, Newton's and Euler's equations in ``[r̈; ω̇]`` turn into
    ``M = Tᵀ diag(m, J) T`` and ``F = Tᵀ (W − [0; ω × J ω] − diag(m, J) Ṫ v)``.

    Parameters
    ----------
    formulations : mapping of str to Formulation
        By body.
    inertias : mapping of str to SpatialInertia
        Of the bodies, by name, about their centres of mass, where their frames sit.
    joints : sequence of MechanismJoint
    motors : sequence of MechanismMotor
    forces : sequence of MarkerForce
        Forces between bodies.
    surroundings : Surroundings
        Forces on the bodies.
    symbolic : sequence of str
        Coefficients that stay symbolic.
    """

    formulations: Mapping[str, Formulation]
    inertias: Mapping[str, SpatialInertia]
    joints: Sequence[MechanismJoint]
    motors: Sequence[MechanismMotor]
    forces: Sequence[MarkerForce]
    surroundings: Surroundings
    symbolic: Sequence[str] = ()

    @cached_property
    def configuration(self) -> Product:
        """Group of q: a block for each body."""
        return Product(**{body: own.group for body, own in self.formulations.items()})

    @cached_property
    def velocity(self) -> Rn:
        """Velocities v, named after the tangent of the configuration."""
        group = self.configuration
        units = tuple(f"{unit}/s" if unit else "1/s" for unit in group.tangent_units)
        return Rn(group.dim, group.tangent_names, units)

    @cached_property
    def coefficients(self) -> Coefficients:
        """Masses, inertias and numbers of the forces."""
        named: dict[str, Coefficient] = {}
        for body, inertia in self.inertias.items():
            named[f"{body}.mass"] = Coefficient(np.array(inertia.mass), "kg", lower=0.0)
            named[f"{body}.inertia"] = Coefficient(inertia.inertia, "kg m²", True, lower=0.0)
        for force in self.forces:
            named |= {f"{force.name}.{key}": own for key, own in force.coefficients.items()}
        return Coefficients(named | self.surroundings.coefficients, self.symbolic)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What stays symbolic."""
        return self.coefficients.parameters

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs of the motors, then inputs of the forces."""
        return (*(motor.input for motor in self.motors), *self.surroundings.inputs)

    @property
    def nominal_parameters(self) -> np.ndarray:
        """Nominal values of the parameters."""
        return np.array([entry.nominal for entry in self.parameters])

    @cached_property
    def constraints(self) -> Constraints:
        """Equations of the joints, and those of the coordinates, as ``BODY`` with a row "norm"."""
        members = [entry for joint in self.joints for entry in _constraints_of(self, joint)]
        for body, own in self.formulations.items():
            if own.norm is not None:
                value = partial(_norm, own.norm, self.places[body][0])
                members.append(Constraint(body, [NORM], value))
        return Constraints(self.configuration, members, len(self.parameters))

    @cached_property
    def places(self) -> dict[str, tuple[slice, slice]]:
        """Places of the coordinates and of the velocities of each body."""
        own = self.configuration
        return {body: (own.coordinate_slice(body), own.tangent_slice(body)) for body in own.blocks}

    def frames(self, q: Value, bodies: Iterable[str] | None = None) -> dict[str, tuple[Any, Any]]:
        """Position and rotation of every body, or of some."""
        own = self.formulations
        return {body: own[body].pose(q[self.places[body][0]]) for body in bodies or own}

    def rates(self, q: Value, v: Value, bodies: Iterable[str] | None = None) -> dict[str, Any]:
        """``[ṙ; ω]`` of every body, or of some."""
        return {
            body: self.formulations[body].rates(q[self.places[body][0]], v[self.places[body][1]])
            for body in bodies or self.formulations
        }

    def _rate_maps(self, q: Value) -> dict[str, Any]:
        """T of every body."""
        return {body: f.rate_map(q[self.places[body][0]]) for body, f in self.formulations.items()}

    def mass_matrix(self, q: Value, p: Value) -> Value:
        """M, block-diagonal."""
        c = self.coefficients.bind(p)
        T = self._rate_maps(q)
        blocks = [T[body].T @ self._inertia(body, c) @ T[body] for body in self.inertias]
        return ca.sparsify(ca.diagcat(*blocks))

    @property
    def is_plain(self) -> bool:
        """Whether M is regular and the same in all configurations."""
        return self._stiffening is None and all(
            own.is_isometric for own in self.formulations.values()
        )

    @cached_property
    def _stiffening(self) -> Constraints | None:
        """Rows that a singular M is made regular with, None where it is regular.

        Those of the coordinates, and of joints that do not depend on the time where a body has no
        moment of inertia about some axis.
        """
        lacks = any(
            not inertia.mass > 0 or _lacks_moment(inertia.inertia)
            for inertia in self.inertias.values()
        )
        every = self.constraints
        chosen = [
            entry
            for entry in every.members
            if entry.rows == (NORM,) or (lacks and not self._is_driven(entry))
        ]
        return Constraints(every.group, chosen, every.n_parameters) if chosen else None

    def _is_driven(self, entry: Constraint) -> bool:
        return Constraints(self.configuration, [entry], len(self.parameters)).is_driven

    def regular(self, t: Value, q: Value, v: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """M and F with ``c Gᵀ G`` and ``c Gᵀ γ`` of rows that make M regular, where it is not.

        Motions that keep ``G v̇ = γ`` have the same accelerations and multipliers with both.
        """
        M, F = self.mass_matrix(q, p), self.force(t, q, v, u, p)
        rows = self._stiffening
        if rows is None:
            return M, F
        at = rows.terms(0.0, q, v, p)
        c = ca.trace(M) / M.shape[0]
        return ca.sparsify(M + c * at.G.T @ at.G), F + c * at.G.T @ at.gamma

    def force(self, t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
        """F: everything but ``M v̇`` and the constraints."""
        c = self.coefficients.bind(p)
        T, rows = self._rate_maps(q), []
        for body, rate in self.rates(q, v).items():
            (x, y), w = self.places[body], rate[3:]
            gyroscopic = ca.vertcat(ca.DM(3, 1), ca.cross(w, c[f"{body}.inertia"] @ w))
            bent = self.formulations[body].bent_rates(q[x], v[y])
            rows.append(T[body].T @ (self._inertia(body, c) @ bent + gyroscopic))
        return self.action(t, q, v, u, p) - ca.vertcat(*rows)

    def action(self, t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
        """Generalized force of all that acts, without what comes of inertia and velocity alone."""
        c, own = self.coefficients.bind(p), u[len(self.motors) :]
        frames, rates = self.frames(q), self.rates(q, v)
        T = self._rate_maps(q)
        rows = []
        for body, (r, A) in frames.items():
            twist = ca.vertcat(A.T @ rates[body][:3], rates[body][3:])
            inertia = (c[f"{body}.mass"], ca.DM(3, 1))
            motion = self.surroundings.motion((A, r), twist, inertia, own, c)
            W = self.surroundings.wrench(body, motion, own, c)
            rows.append(T[body].T @ ca.vertcat(A @ W[:3], W[3:]))
        total = ca.vertcat(*rows)
        for k, motor in enumerate(self.motors):
            _, J = self.measured[motor.name](q)
            total += J.T @ motor.effort(u[k], J @ v)
        for force in self.forces:
            s, J = self.measured[force.name](q)
            total -= J.T @ force.effort(s, J @ v, force.own(c))
        return total

    @cached_property
    def measured(self) -> dict[str, ca.Function]:
        """``q → s, J`` with speeds ``w = J v``, of motors and forces between bodies."""
        q, v = ca.SX.sym("q", self.configuration.nq), ca.SX.sym("v", self.velocity.dim)
        found = {}
        for entry in (*self.motors, *self.forces):
            bodies = [body for body in (entry.i.body, entry.j.body) if body != GROUND]
            frames = self.frames(q, bodies)
            rates = {body: (w[:3], w[3:]) for body, w in self.rates(q, v, bodies).items()}
            rates[GROUND] = (ca.DM(3, 1), ca.DM(3, 1))
            s = entry.displacement(frames) if isinstance(entry, MarkerForce) else ca.SX(0, 1)
            J = ca.jacobian(entry.speeds(frames, rates), v)
            found[entry.name] = ca.Function("measured", [q], [ca.densify(ca.SX(s)), J])
        return found

    def losses(self, q: Value, v: Value, p: Value) -> Value:
        """L: what forces between bodies resist motion with, beyond their effort at rest."""
        c, total = self.coefficients.bind(p), ca.DM(self.velocity.dim, 1)
        for force in self.forces:
            (s, J), own = self.measured[force.name](q), force.own(c)
            total = total + J.T @ (force.effort(s, J @ v, own) - force.effort(s, 0 * (J @ v), own))
        return total

    def loss_jacobian(self, q: Value, v: Value, p: Value) -> Value:
        """D: the derivative of the losses by v."""
        total: Any = ca.DM(self.velocity.dim, self.velocity.dim)
        for force in self.forces:
            s, J = self.measured[force.name](q)
            y, w = ca.SX.sym("s", s.shape[0]), ca.SX.sym("w", J.shape[0])
            b = ca.SX.sym("p", p.shape[0])
            slope = ca.jacobian(force.effort(y, w, force.own(self.coefficients.bind(b))), w)
            made = ca.Function("slope", [y, w, b], [(slope + slope.T) / 2])
            total = total + J.T @ made(s, J @ v, p) @ J
        return total

    def efforts(self, name: str, q: Value, v: Value, p: Value) -> Value:
        """What a force between bodies exerts, against its speeds."""
        force = next(force for force in self.forces if force.name == name)
        s, J = self.measured[name](q)
        return force.effort(s, J @ v, force.own(self.coefficients.bind(p)))

    def kinetic_energy(self, q: Value, v: Value, p: Value) -> Value:
        """``Σ (m |ṙ|² + ωᵀ J ω)/2`` [J]."""
        c = self.coefficients.bind(p)
        total: Any = 0
        for body, rate in self.rates(q, v).items():
            total += ca.dot(rate, self._inertia(body, c) @ rate) / 2
        return total

    def potential_energy(self, q: Value, p: Value) -> Value:
        """Of the forces that have one [J]."""
        c, frames = self.coefficients.bind(p), self.frames(q)
        total: Any = 0
        none = ca.DM(len(self.surroundings.inputs), 1)
        for body, (r, A) in frames.items():
            motion = self.surroundings.motion(
                (A, r), ca.DM(6, 1), (c[f"{body}.mass"], ca.DM(3, 1)), none, c
            )
            energies = self.surroundings.potential_energies(body, motion, c)
            for energy in energies.values():
                total += 0 if energy is None else energy
        for force in self.forces:
            if force.energy is not None:
                total += force.energy(self.measured[force.name](q)[0], force.own(c))
        return total

    def joint_coordinates(self, q: np.ndarray) -> list[Coordinate]:
        """Degrees of freedom of all joints in a configuration, rows on the tangent vector."""
        v, units = ca.SX.sym("v", self.velocity.dim), {"rad/s": "rad", "m/s": "m"}
        frames = self.frames(ca.DM(q))
        rates = {body: (rate[:3], rate[3:]) for body, rate in self.rates(ca.DM(q), v).items()}
        return [
            Coordinate(
                f"{joint.name}.{free.row}",
                ca.evalf(ca.jacobian(free.value(0.0, frames, rates), v)).full().ravel(),
                units.get(free.unit, f"{free.unit} s"),
            )
            for joint in self.joints
            for free in joint.degrees_of_freedom
        ]

    def _inertia(self, body: str, c: Mapping[str, Value]) -> Value:
        return ca.sparsify(ca.diagcat(c[f"{body}.mass"] * ca.DM.eye(3), c[f"{body}.inertia"]))


def joint_wrenches(
    joint: MechanismJoint, t: Value, frames: Frames, multipliers: Value
) -> dict[str, Any]:
    """Wrenches [f; m] of a joint on its bodies, in their axes about their centres of mass.

    They are ``−Gᵀ λ`` of its rows alone.
    """
    names = [body for body in joint.bodies if body in frames]
    r = {body: ca.SX.sym("r", 3) for body in names}
    A = {body: ca.SX.sym("A", 3, 3) for body in names}
    s = ca.SX.sym("t")
    rates = {body: (ca.SX.sym("v", 3), ca.SX.sym("w", 3)) for body in names}
    frames_of = {body: (r[body], A[body]) for body in names}
    lam = ca.SX.sym("lambda", len(joint.rows))
    work: Any = ca.SX(0)
    power: Any = ca.SX(0)
    for k, row in enumerate(joint.rows):
        if isinstance(row, VelocityConstraint):
            power += lam[k] * row.value(s, frames_of, rates)
        else:
            work += lam[k] * row.value(s, frames_of)
    results = []
    for body in names:
        slope = ca.reshape(ca.gradient(work, ca.vec(A[body])), 3, 3)
        # δA = A θ̃ and δφ = slope : δA, hence the moment is the axial part of Aᵀ slope.
        K = A[body].T @ slope
        moment = ca.vertcat(K[2, 1] - K[1, 2], K[0, 2] - K[2, 0], K[1, 0] - K[0, 1])
        by_rates = ca.vertcat(*(ca.gradient(power, rate) for rate in rates[body]))
        wrench = -ca.vertcat(ca.gradient(work, r[body]), moment) - by_rates
        results.append(ca.vertcat(A[body].T @ wrench[:3], wrench[3:]))
    arguments = [s, lam, *(r[b] for b in names), *(A[b] for b in names)]
    made = ca.Function("joint_wrenches", arguments, results)
    values = made.call(
        [t, multipliers, *(frames[b][0] for b in names), *(frames[b][1] for b in names)]
    )
    return dict(zip(names, values, strict=True))


def _lacks_moment(J: np.ndarray) -> bool:
    moments = np.linalg.eigvalsh(J)
    return bool(moments[0] <= NO_MOMENT * moments[-1])


@dataclass(frozen=True, eq=False)
class FreeBodies:
    """The bodies without their joints, as `lgcontrol.mechanics._mechanical.Equations`."""

    equations: MechanismEquations

    @property
    def state(self) -> Product:
        """Configuration and velocity."""
        return Product(configuration=self.equations.configuration, velocity=self.equations.velocity)

    def _split(self, x: Value) -> tuple[Value, Value]:
        nq = self.equations.configuration.nq
        return x[:nq], x[nq:]

    def mass_matrix(self, x: Value, p: Value) -> Value:
        """M, regular."""
        q, v = self._split(x)
        u = ca.DM(len(self.equations.inputs), 1)
        return self.equations.regular(0.0, q, v, u, p)[0]

    inertia = mass_matrix

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """F."""
        return self.equations.regular(t, *self._split(x), u, p)[1]

    def action(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Generalized force of all that acts."""
        return self.equations.action(t, *self._split(x), u, p)

    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``v, M⁻¹ F``."""
        q, v = self._split(x)
        M, F = self.equations.regular(t, q, v, u, p)
        return ca.vertcat(v, solve_symmetric(M, F))

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Of ``F − M a``, by automatic differentiation."""
        y, b = ca.SX.sym("x", x.shape[0]), ca.SX.sym("a", a.shape[0])
        w, s = ca.SX.sym("u", u.shape[0]), ca.SX.sym("t")
        c = ca.SX.sym("p", p.shape[0])
        M, F = self.equations.regular(s, *self._split(y), w, c)
        balance = F - M @ b
        slopes = [ca.jacobian(balance, y) @ self.state.rate_matrix(y), ca.jacobian(balance, w)]
        made = ca.Function("balance_slopes", [s, y, b, w, c], slopes)
        return tuple(made.call([t, x, a, u, p]))  # type: ignore[return-value]


def _constraints_of(equations: MechanismEquations, joint: MechanismJoint) -> list[Constraint]:
    """What a joint holds of positions, and what of velocities."""
    held = [row for row in joint.rows if not isinstance(row, VelocityConstraint)]
    rolling = [row for row in joint.rows if isinstance(row, VelocityConstraint)]
    names = [body for body in joint.bodies if body != GROUND]

    def position(t: Value, q: Value, p: Value) -> Value:
        frames = equations.frames(q, names)
        return ca.vertcat(*(row.value(t, frames) for row in held))

    def velocity(t: Value, q: Value, p: Value) -> tuple[Value, Value]:
        frames, v = equations.frames(q, names), ca.SX.sym("v", equations.velocity.dim)
        rates = {body: (rate[:3], rate[3:]) for body, rate in equations.rates(q, v, names).items()}
        off = ca.vertcat(*(row.value(t, frames, rates) for row in rolling))
        A = ca.jacobian(off, v)
        if ca.depends_on(A, v):
            bent = [row.row for k, row in enumerate(rolling) if ca.depends_on(A[k, :], v)]
            raise ValueError(
                f"joint {joint.name!r}: {', '.join(bent)} must be linear in the rates, as "
                "velocities of points are"
            )
        return A, -ca.substitute(off, v, 0)

    made = []
    if held:
        made.append(_member(joint.name, held, position, "position"))
    if rolling:
        made.append(_member(joint.name, rolling, velocity, "velocity"))
    return made


def _member(name: str, rows: Sequence[Row], value: Callable[..., Any], kind: Any) -> Constraint:
    return Constraint(name, [row.row for row in rows], value, [row.unit for row in rows], kind)


def _norm(norm: Callable[[Value], Any], own: slice, t: Value, q: Value, p: Value) -> Any:
    return norm(q[own])

"""Equations of series-elastic trees on CasADi columns: links, motors, what sets stiffness."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import solve_symmetric
from ...groups import LieGroup, Product, Rn
from ...systems import Input, Parameter
from .._coefficients import Coefficient, Coefficients
from ..multibody._system import TreeMechanics, state_of
from ..multibody.tree._tree import JointCoordinates, Tree
from ._joint_spring import LEAST_DIVISOR, AdjustedSpring, JointSpring, Motor, VariableSpring


@dataclass(frozen=True, eq=False)
class ElasticJoint:
    """A joint with a motor behind a spring, and where it is."""

    name: str
    motor: Motor
    group: LieGroup  # of the joint; the motor moves on the same
    places: JointCoordinates  # among the tree's coordinates and velocities

    @property
    def spring(self) -> JointSpring:
        """Its spring."""
        return self.motor.joint_spring

    @property
    def unit(self) -> str:
        """Of the deflection."""
        return self.group.tangent_units[0]

    @property
    def force_unit(self) -> str:
        """Of the motor's torque."""
        return "N" if self.unit == "m" else "N m"

    @property
    def numbers(self) -> dict[str, Coefficient]:
        """Numbers of motor and spring by their full names."""
        mass, per = ("kg", "N s/m") if self.unit == "m" else ("kg m²", "N m s/rad")
        own, spring = self.motor, self.spring
        found = {
            "motor.inertia": Coefficient(np.array(float(own.inertia)), mass, lower=LEAST_DIVISOR),
            "motor.damping": Coefficient(np.array(float(own.damping)), per, lower=0.0),
            "motor.friction": Coefficient(np.array(float(own.friction)), self.force_unit, lower=0),
            "spring.damping": Coefficient(np.array(float(spring.damping)), per, lower=0.0),
        }
        found |= {f"spring.{key}": value for key, value in spring.numbers(self.unit).items()}
        return {f"{self.name}.{key}": value for key, value in found.items()}


class JointNumbers(NamedTuple):
    """Numbers of an elastic joint as CasADi values, behind the gear."""

    inertia: Value  # of the motor
    damping: Value
    friction: Value
    loss: Value  # damping parallel to the spring
    spring: Mapping[str, Value]  # the spring's own


class ElasticState(NamedTuple):
    """Parts of a state."""

    q: Value  # of the tree
    v: Value
    motors: list[Value]  # coordinates of each motor
    speeds: Value  # of the motors
    phi: Value  # position and speed of the motors that set stiffness
    psi: Value


def elastic_state(tree: Tree, joints: tuple[ElasticJoint, ...]) -> Product:
    """Configuration, velocity, motor, motor_velocity, and what sets stiffness by a motor."""
    rigid = state_of(tree)
    names, units = tuple(j.name for j in joints), tuple(f"{j.unit}/s" for j in joints)
    blocks: dict[str, LieGroup] = {
        **rigid.blocks,
        "motor": Product(**{joint.name: joint.group for joint in joints}),
        "motor_velocity": Rn(len(joints), names, units),
    }
    set_by = tuple(j.name for j in joints if isinstance(j.spring, AdjustedSpring))
    if set_by:
        n = len(set_by)
        blocks["stiffness_motor"] = Rn(n, set_by, ("rad",) * n)
        blocks["stiffness_motor_velocity"] = Rn(n, set_by, ("rad/s",) * n)
    return Product(**blocks)


@dataclass(frozen=True, eq=False)
class ElasticMechanics:
    """``M(q) v̇ = F(q, v) + σ(δ) + D δ̇``, ``B θ̈ = u − d θ̇ − f(θ̇) − σ(δ) − D δ̇``.

    The rigid equations take the torques of the springs as inputs of the elastic joints. Inputs are
    those of the rigid equations, with motor torques in these places, then those that set stiffness.
    Parameters are those of the rigid equations, then numbers of motors and springs.
    """

    rigid: TreeMechanics
    joints: tuple[ElasticJoint, ...]
    coefficients: Coefficients

    @cached_property
    def state(self) -> Product:
        """See `elastic_state`."""
        return elastic_state(self.rigid.tree, self.joints)

    @cached_property
    def drives(self) -> list[int]:
        """Input that each elastic joint has among those of the rigid equations."""
        names = [entry.name for entry in self.rigid.drives]
        return [names.index(joint.name) for joint in self.joints]

    @cached_property
    def rows(self) -> list[int]:
        """Row of each elastic joint in v."""
        return [joint.places.v.start for joint in self.joints]

    @cached_property
    def set_joints(self) -> list[int]:
        """Joints whose stiffness is set, in the order of the inputs that do so."""
        return [i for i, joint in enumerate(self.joints) if joint.spring.is_set]

    @cached_property
    def adjusted(self) -> list[int]:
        """Joints whose stiffness a motor sets."""
        return [i for i, j in enumerate(self.joints) if isinstance(j.spring, AdjustedSpring)]

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """All inputs."""
        found = list(self.rigid.inputs)
        for joint, at in zip(self.joints, self.drives, strict=True):
            bound = joint.motor.torque * joint.motor.ratio
            if bound == np.inf:
                bound = found[at].upper
            found[at] = Input(joint.name, joint.force_unit, -bound, bound)
        for i in self.set_joints:
            joint, spring = self.joints[i], self.joints[i].spring
            if isinstance(spring, VariableSpring):
                unit = f"{joint.force_unit}/{joint.unit}"
                name = f"{joint.name}.stiffness"
                found.append(Input(name, unit, spring.lower, spring.upper, spring.nominal))
            elif isinstance(spring, AdjustedSpring):
                bound = spring.torque_limit
                found.append(Input(f"{joint.name}.stiffness_motor", "N m", -bound, bound))
        return tuple(found)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters."""
        return (*self.rigid.parameters, *self.coefficients.parameters)

    # Parts

    def split(self, x: Value) -> ElasticState:
        """A state by parts."""
        state, motors = self.state, []
        at = state.coordinate_slice("motor").start
        for joint in self.joints:
            motors.append(x[at : at + joint.group.nq])
            at += joint.group.nq
        parts = {
            name: x[state.coordinate_slice(name)] if name in state.blocks else ca.SX(0, 1)
            for name in ("configuration", "velocity", "motor_velocity", "stiffness_motor",
                         "stiffness_motor_velocity")
        }  # fmt: skip
        q, v, speeds, phi, psi = parts.values()
        return ElasticState(q, v, motors, speeds, phi, psi)

    def numbers(self, p: Value) -> list[JointNumbers]:
        """Numbers of all elastic joints, with entries of p."""
        bound = self.coefficients.bind(p[len(self.rigid.parameters) :])
        found = []
        for joint in self.joints:
            own = {
                key.removeprefix(f"{joint.name}."): value
                for key, value in bound.items()
                if key.startswith(f"{joint.name}.")
            }
            N = joint.motor.ratio
            spring = {k.removeprefix("spring."): x for k, x in own.items() if k[:7] == "spring."}
            found.append(
                JointNumbers(
                    N**2 * own["motor.inertia"],
                    N**2 * own["motor.damping"],
                    N * own["motor.friction"],
                    own["spring.damping"],
                    spring,
                )
            )
        return found

    def settings(self, x: Value, u: Value) -> list[Value]:
        """κ of each joint: what sets its stiffness; zero where nothing does."""
        found: list[Value] = [ca.DM(0)] * len(self.joints)
        phi, first = self.split(x).phi, len(self.rigid.inputs)
        for k, i in enumerate(self.set_joints):
            found[i] = phi[self.adjusted.index(i)] if i in self.adjusted else u[first + k]
        return found

    def deflection(self, x: Value) -> Value:
        """``minus(θ, q)`` of each elastic joint."""
        parts = self.split(x)
        return ca.vertcat(
            *(
                joint.group.minus(theta, joint.places.of(parts.q))
                for joint, theta in zip(self.joints, parts.motors, strict=True)
            )
        )

    def spring_torque(self, x: Value, u: Value, p: Value) -> Value:
        """What the links get from springs and the dampers parallel to them."""
        parts, d = self.split(x), self.deflection(x)
        rows = []
        for i, (joint, c, k) in enumerate(
            zip(self.joints, self.numbers(p), self.settings(x, u), strict=True)
        ):
            torque = joint.spring.torque(d[i], k, c.spring)
            if c.loss.nnz():
                torque += c.loss * (parts.speeds[i] - parts.v[self.rows[i]])
            rows.append(torque)
        return ca.vertcat(*rows)

    def rigid_arguments(self, x: Value, u: Value, p: Value) -> tuple[Value, Value, Value]:
        """State, inputs and parameters of the rigid equations."""
        parts, given = self.split(x), ca.vertsplit(u[: len(self.rigid.inputs)])
        torque = self.spring_torque(x, u, p)
        for i, at in enumerate(self.drives):
            given[at] = torque[i]
        own = p[: len(self.rigid.parameters)]
        return ca.vertcat(parts.q, parts.v), ca.vertcat(*given), own

    def motor_losses(self, x: Value, p: Value) -> Value:
        """Viscous and dry friction of each motor."""
        return self.losses_at(self.split(x).speeds, p)

    def losses_at(self, speeds: Value, p: Value) -> Value:
        """The same at speeds of the motors behind their gears."""
        pairs = zip(self.joints, self.numbers(p), strict=True)
        return ca.vertcat(*(motor_losses(j, c, speeds[i]) for i, (j, c) in enumerate(pairs)))

    def motor_forces(self, x: Value, u: Value, p: Value) -> Value:
        """``B θ̈`` of each motor."""
        return u[self.drives] - self.spring_torque(x, u, p) - self.motor_losses(x, p)

    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Rates of all blocks."""
        parts, numbers = self.split(x), self.numbers(p)
        links = self.rigid.field(t, *self.rigid_arguments(x, u, p))
        inertias = ca.vertcat(*(c.inertia for c in numbers))
        rows = [links, parts.speeds, self.motor_forces(x, u, p) / inertias]
        if self.adjusted:
            d, settings = self.deflection(x), self.settings(x, u)
            first, forces = len(self.rigid.inputs), []
            for k, i in enumerate(self.adjusted):
                c, spring = numbers[i].spring, self.joints[i].spring
                own = u[first + self.set_joints.index(i)] - c["motor_damping"] * parts.psi[k]
                own -= spring.reaction(d[i], settings[i], c)
                forces.append(own / c["motor_inertia"])
            rows += [parts.psi, *forces]
        return ca.vertcat(*rows)

    def derivatives(self, t: Value, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """Derivatives of the field: one factor of M for the links, the springs alone for motors.

        The columns of ``M⁻¹`` at the elastic joints serve positions and speeds on both sides.
        """
        state, nv, n = self.state, self.rigid.tree.nv, len(self.joints)
        at, given, own = self.rigid_arguments(x, u, p)
        rate = self.field(t, x, u, p)
        by_x, by_u = self.rigid.balance_derivatives(t, at, rate[nv : 2 * nv], given, own)
        solved = solve_symmetric(self.rigid.mass_matrix(at, own), ca.horzcat(by_x, by_u))
        effect = solved[:, [2 * nv + drive for drive in self.drives]]
        slope_x, slope_u = self.torque_derivatives(x, u, p)
        others = ca.SX(solved[:, 2 * nv :])
        for drive in self.drives:
            others[:, drive] = ca.SX(nv, 1)
        still = ca.DM.eye(state.dim)
        speeds = state.tangent_slice("motor_velocity")
        numbers, parts = self.numbers(p), self.split(x)
        motor_x, motor_u = -slope_x, -slope_u
        for i, (joint, c) in enumerate(zip(self.joints, numbers, strict=True)):
            loss, speed = motor_losses(joint, c, parts.speeds[i]), ca.SX.sym("w")
            if loss.nnz():
                slope = ca.jacobian(motor_losses(joint, c, speed), speed)
                motor_x[i, speeds.start + i] -= ca.substitute(slope, speed, parts.speeds[i])
            motor_u[i, self.drives[i]] += 1
        softness = ca.diag(1 / ca.vertcat(*(c.inertia for c in numbers)))
        rows_x = [
            still[nv : 2 * nv, :],
            ca.horzcat(solved[:, : 2 * nv], ca.SX(nv, state.dim - 2 * nv)) + effect @ slope_x,
            still[speeds, :],
            softness @ motor_x,
        ]
        m = len(self.inputs)
        none = ca.SX(nv, m - len(self.rigid.inputs))
        rows_u = [
            ca.SX(nv, m),
            ca.horzcat(others, none) + effect @ slope_u,
            ca.SX(n, m),
            softness @ motor_u,
        ]
        if self.adjusted:  # a few rows that are functions of a deflection and a setting
            rest = slice(speeds.stop, state.dim)
            rows_x.append(ca.jacobian(rate[rest], x) @ state.rate_matrix(x))
            rows_u.append(ca.jacobian(rate[rest], u))
        return ca.vertcat(*rows_x), ca.vertcat(*rows_u)

    # The structure: of the links

    def mass_matrix(self, x: Value, p: Value) -> Value:
        """Mass matrix of the links, without motors."""
        return self.rigid.mass_matrix(self._links(x), p[: len(self.rigid.parameters)])

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """On the links."""
        return self.rigid.force(t, *self.rigid_arguments(x, u, p))

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Derivatives of the rigid equations, and of the torques of the springs."""
        at, given, own = self.rigid_arguments(x, u, p)
        by_x, by_u = self.rigid.balance_derivatives(t, at, a, given, own)
        nv, state, count = self.rigid.tree.nv, self.state, len(self.rigid.inputs)
        by_x = ca.horzcat(by_x, ca.SX(nv, state.dim - 2 * nv))
        effect = by_u[:, self.drives]
        by_u = ca.horzcat(by_u, ca.SX(nv, len(self.inputs) - count))
        for at_input in self.drives:
            by_u[:, at_input] = ca.SX(nv, 1)
        slope_x, slope_u = self.torque_derivatives(x, u, p)
        return ca.sparsify(by_x + effect @ slope_x), ca.sparsify(by_u + effect @ slope_u)

    def torque_derivatives(self, x: Value, u: Value, p: Value) -> tuple[Value, Value]:
        """Derivatives of the springs' torques by the tangent of the state and by the inputs."""
        state, n = self.state, len(self.joints)
        by_x, by_u = ca.SX(n, state.dim), ca.SX(n, len(self.inputs))
        d, settings, numbers = self.deflection(x), self.settings(x, u), self.numbers(p)
        motors, speeds = (state.tangent_slice(b).start for b in ("motor", "motor_velocity"))
        nv = self.rigid.tree.nv
        for i, (joint, c) in enumerate(zip(self.joints, numbers, strict=True)):
            slopes, row = joint.spring.slopes(d[i], settings[i], c.spring), self.rows[i]
            by_x[i, row] = -slopes.by_deflection
            by_x[i, motors + i] = slopes.by_deflection
            if c.loss.nnz():
                by_x[i, nv + row] = -c.loss
                by_x[i, speeds + i] = c.loss
            if i in self.adjusted:
                at = state.tangent_slice("stiffness_motor").start + self.adjusted.index(i)
                by_x[i, at] = slopes.by_setting
            elif joint.spring.is_set:
                at = len(self.rigid.inputs) + self.set_joints.index(i)
                by_u[i, at] = slopes.by_setting
        return ca.sparsify(by_x), ca.sparsify(by_u)

    @property
    def has_losses(self) -> bool:
        """Whether links lose energy in joints or dampers, or there are symbols for it."""
        symbols = ca.SX.sym("p", len(self.parameters))
        return self.rigid.has_losses or any(c.loss.nnz() for c in self.numbers(symbols))

    def losses(self, x: Value, p: Value) -> Value:
        """Damping and friction in the joints, and of dampers parallel to the springs."""
        parts = self.split(x)
        total = ca.SX(self.rigid.losses(self._links(x), p[: len(self.rigid.parameters)]))
        for i, c in enumerate(self.numbers(p)):
            total[self.rows[i]] += c.loss * (parts.v[self.rows[i]] - parts.speeds[i])
        return total

    def loss_jacobian(self, x: Value, p: Value) -> Value:
        """Slopes of these by the velocity of the links."""
        total = self.rigid.loss_jacobian(self._links(x), p[: len(self.rigid.parameters)])
        own = ca.SX(self.rigid.tree.nv, 1)
        for i, c in enumerate(self.numbers(p)):
            own[self.rows[i]] += c.loss
        return ca.sparsify(total + ca.diag(own))

    # Quantities

    def kinetic_energy(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Of links, motors, and motors that set stiffness."""
        parts, numbers = self.split(x), self.numbers(p)
        own = p[: len(self.rigid.parameters)]
        energy = self.rigid.kinetic_energy(t, self._links(x), ca.SX(len(self.rigid.inputs), 1), own)
        for i, c in enumerate(numbers):
            energy += c.inertia * parts.speeds[i] ** 2 / 2
        for k, i in enumerate(self.adjusted):
            energy += numbers[i].spring["motor_inertia"] * parts.psi[k] ** 2 / 2
        return energy

    def spring_energy(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """In all springs between motors and links."""
        d, settings = self.deflection(x), self.settings(x, u)
        return sum(
            (
                joint.spring.energy(d[i], settings[i], c.spring)
                for i, (joint, c) in enumerate(zip(self.joints, self.numbers(p), strict=True))
            ),
            ca.SX(1, 1),
        )

    def potential_energy(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Of weight, of forces that have one, and of all springs."""
        at, given, own = self.rigid_arguments(x, u, p)
        return self.rigid.potential_energy(t, at, given, own) + self.spring_energy(t, x, u, p)

    def _links(self, x: Value) -> Value:
        parts = self.split(x)
        return ca.vertcat(parts.q, parts.v)


def motor_losses(joint: ElasticJoint, c: JointNumbers, speed: Value) -> Value:
    """Viscous and dry friction of a motor, behind the gear."""
    own = c.damping * speed
    if c.friction.nnz():
        own += c.friction * ca.tanh(speed / joint.motor.friction_speed)
    return own

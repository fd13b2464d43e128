"""Centre of mass, momentum about it, and energies."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from ..kinematics._kinematics import accelerations, transmitted_wrenches, twists
from ..plan._drives import armature, spring_energy
from ..plan._plan import Plan
from ..plan._spatial import Inertia, Motion, Velocity, carried_along, cross, twist_cross
from ._mass_matrix import composites


def total_inertia(plan: Plan, motions: list[Motion]) -> Inertia:
    """Inertia of all moving bodies together about the world origin."""
    total = Inertia.zero()
    for k, inertia in enumerate(composites(plan, motions)):
        if plan.nodes[k].parent < 0:
            total = total + inertia.moved(motions[k])
    return total


def center_of_mass(plan: Plan, q: Value) -> Value:
    """Centre of mass of the moving bodies in the world."""
    m, h = _first_moment(plan, plan.motions(q))
    return h / m


def center_of_mass_jacobian(plan: Plan, q: Value) -> Value:
    """Velocity of the centre of mass per generalized velocity, 3 × nv."""
    motions = plan.motions(q)
    A, total = _momentum_columns(plan, motions)
    return A[:3, :] / total.m


def center_of_mass_velocity(plan: Plan, q: Value, v: Value) -> Value:
    """Velocity of the centre of mass in the world."""
    motions = plan.motions(q)
    m, _ = _first_moment(plan, motions)
    return _momentum(plan, motions, v)[:3] / m


def center_of_mass_acceleration(plan: Plan, q: Value, v: Value, a: Value) -> Value:
    """Acceleration of the centre of mass in the world."""
    motions = plan.motions(q)
    m, _ = _first_moment(plan, motions)
    return _momentum_rate(plan, motions, v, a)[:3] / m


def centroidal_momentum(plan: Plan, q: Value, v: Value) -> Value:
    """Momentum [p; L about the centre of mass], world axes."""
    motions = plan.motions(q)
    m, h = _first_moment(plan, motions)
    return _at(_momentum(plan, motions, v), h / m)


def centroidal_momentum_rate(plan: Plan, q: Value, v: Value, a: Value) -> Value:
    """Rate of `centroidal_momentum`; the velocity of the centre of mass drops out."""
    motions = plan.motions(q)
    m, h = _first_moment(plan, motions)
    return _at(_momentum_rate(plan, motions, v, a), h / m)


def centroidal_momentum_matrix(plan: Plan, q: Value) -> Value:
    """Matrix A with momentum ``A v``, 6 × nv."""
    motions = plan.motions(q)
    A, total = _momentum_columns(plan, motions)
    return _at(A, total.h / total.m)


def centroidal_momentum_matrix_rate(plan: Plan, q: Value, v: Value) -> Value:
    """Time derivative of `centroidal_momentum_matrix`."""
    motions = plan.motions(q)
    V = twists(plan, motions, v)
    A, total = _momentum_columns(plan, motions)
    velocity = velocity_composites(plan, motions, V)
    inertias = composites(plan, motions)
    world = _world(plan, motions)
    rate = ca.SX(6, plan.nv)
    for k, node in enumerate(plan.nodes):
        momentum = ca.vertcat(velocity[k].p, velocity[k].angular_momentum)
        # İ S + I Ṡ with İ = 2 B − (I V)×̄*, everything resolved in the node's frame.
        F = 2 * velocity[k].half(node.S) - carried_along(node.S, momentum)
        F = F + inertias[k] @ twist_cross(V[k], node.S)
        rate[:, node.v] += world[k].push_wrench(F)
    c, speed = total.h / total.m, A[:3, :] @ v / total.m
    shifted = _at(rate, c)
    return ca.vertcat(shifted[:3, :], shifted[3:, :] - cross(speed, A[:3, :]))


def kinetic_energy(plan: Plan, q: Value, v: Value) -> Value:
    """Kinetic energy of bodies and drives."""
    energy = ca.dot(armature(plan), v * v) / 2
    for node, V in zip(plan.nodes, twists(plan, plan.motions(q), v), strict=True):
        energy += ca.dot(V, node.inertia @ V) / 2
    return energy


def potential_energy(plan: Plan, q: Value) -> Value:
    """Potential energy of weight (zero at the world origin's height) and springs."""
    _, h = _first_moment(plan, plan.motions(q))
    return spring_energy(plan, q) - ca.dot(plan.gravity, h)


def velocity_composites(
    plan: Plan, motions: list[Motion], V: list[Value], factor: float = 1.0
) -> list[Velocity]:
    """`Velocity` of every node with all it carries, in its frame, times a factor."""
    total = []
    for k, node in enumerate(plan.nodes):
        scaled = Inertia(*(factor * moment for moment in node.inertia))
        total.append(scaled.velocity(V[k]))
    for k in reversed(range(len(total))):
        parent = plan.nodes[k].parent
        if parent >= 0:
            total[parent] = total[parent] + total[k].moved(motions[k])
    return total


def _first_moment(plan: Plan, motions: list[Motion]) -> tuple[Value, Value]:
    m = [node.inertia.m for node in plan.nodes]
    h = [node.inertia.h for node in plan.nodes]
    mass, moment = ca.DM(1, 1), ca.DM(3, 1)
    for k in reversed(range(len(m))):
        moved, i = motions[k].R @ h[k] + m[k] * motions[k].p, plan.nodes[k].parent
        if i >= 0:
            m[i], h[i] = m[i] + m[k], h[i] + moved
        else:
            mass, moment = mass + m[k], moment + moved
    return mass, moment


def _momentum(plan: Plan, motions: list[Motion], v: Value) -> Value:
    """Momentum about the world origin."""
    V = twists(plan, motions, v)
    return _gathered(plan, motions, [n.inertia @ V[k] for k, n in enumerate(plan.nodes)])


def _momentum_rate(plan: Plan, motions: list[Motion], v: Value, a: Value) -> Value:
    """Rate of the momentum about the world origin."""
    V = twists(plan, motions, v)
    W = transmitted_wrenches(plan, motions, V, accelerations(plan, motions, V, v, a, gravity=False))
    total = ca.SX(6, 1)
    for k, node in enumerate(plan.nodes):
        if node.parent < 0:
            total = total + motions[k].push_wrench(W[k])
    return total


def _gathered(plan: Plan, motions: list[Motion], W: list[Value]) -> Value:
    total = ca.SX(6, 1)
    for k in reversed(range(len(W))):
        moved, parent = motions[k].push_wrench(W[k]), plan.nodes[k].parent
        if parent >= 0:
            W[parent] = W[parent] + moved
        else:
            total = total + moved
    return total


def _momentum_columns(plan: Plan, motions: list[Motion]) -> tuple[Value, Inertia]:
    """Momentum matrix about the world origin, and the total inertia there."""
    world, A = _world(plan, motions), ca.SX(6, plan.nv)
    total = Inertia.zero()
    for k, inertia in enumerate(composites(plan, motions)):
        node = plan.nodes[k]
        A[:, node.v] += world[k].push_wrench(inertia @ node.S)
        if node.parent < 0:
            total = total + inertia.moved(motions[k])
    return A, total


def _world(plan: Plan, motions: list[Motion]) -> list[Motion]:
    world: list[Motion] = []
    for node, T in zip(plan.nodes, motions, strict=True):
        world.append(T if node.parent < 0 else world[node.parent] @ T)
    return world


def _at(W: Value, point: Value) -> Value:
    """Wrenches (columns) about another point."""
    return ca.vertcat(W[:3, :], W[3:, :] - cross(point, W[:3, :]))

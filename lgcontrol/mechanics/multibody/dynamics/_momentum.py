"""Centre of mass, momentum about it, and energies."""

from __future__ import annotations

import casadi as ca

from ....codegen import Value
from .._spatial import Inertia, Pose, Velocity, carried_along, cross, twist_cross
from ..compiled._added_forces import (
    added_composites,
    armature,
    momentum_composites,
    spring_energy,
    velocity_products,
)
from ..compiled._compiled_tree import CompiledTree, Node
from ..compiled._functions import declared
from ..kinematics._recursions import accelerations, transmitted_wrenches, twists
from ._dynamics import composites


@declared("q v", {"energy": ""}, regrouped=True)
def kinetic_energy(tree: CompiledTree, q: Value, v: Value) -> Value:
    """(q, v) → kinetic energy of bodies and drives [J], shape (...)."""
    energy = ca.dot(armature(tree), v * v) / 2
    for node, V in zip(tree.nodes, twists(tree, tree.poses(q), v), strict=True):
        energy += ca.dot(V, node.inertia @ V) / 2
        if node.added_mass.nnz():
            energy += ca.dot(V, node.added_mass @ V) / 2
    return energy


@declared("q", {"energy": ""})
def potential_energy(tree: CompiledTree, q: Value) -> Value:
    """``q`` → energy of weight (zero at the world's origin) and springs [J], shape (...)."""
    _, h = _first_moment(tree, tree.poses(q))
    return spring_energy(tree, q) - ca.dot(tree.gravity, h)


@declared("q", {"position": "3"})
def center_of_mass(tree: CompiledTree, q: Value) -> Value:
    """``q`` → centre of mass of the bodies in the world [m], shape (..., 3)."""
    m, h = _first_moment(tree, tree.poses(q))
    return h / m


@declared("q v", {"velocity": "3"})
def center_of_mass_velocity(tree: CompiledTree, q: Value, v: Value) -> Value:
    """(q, v) → velocity of the centre of mass, world axes [m/s], shape (..., 3)."""
    poses = tree.poses(q)
    m, _ = _first_moment(tree, poses)
    return _momentum(tree, poses, v, fluid=False)[:3] / m


@declared("q v a", {"acceleration": "3"})
def center_of_mass_acceleration(tree: CompiledTree, q: Value, v: Value, a: Value) -> Value:
    """(q, v, a) → acceleration of the centre of mass, world axes [m/s²], shape (..., 3)."""
    poses = tree.poses(q)
    m, _ = _first_moment(tree, poses)
    return _momentum_rate(tree, poses, v, a, fluid=False)[:3] / m


@declared("q", {"J": "3v"})
def center_of_mass_jacobian(tree: CompiledTree, q: Value) -> Value:
    """``q`` → J with centre of mass velocity ``J v``, shape (..., 3, nv)."""
    poses = tree.poses(q)
    A, total = _momentum_columns(tree, poses, fluid=False)
    return A[:3, :] / total.m


@declared("q v", {"momentum": "6"})
def centroidal_momentum(tree: CompiledTree, q: Value, v: Value) -> Value:
    """(q, v) → [p; L] about the centre of mass, world axes, shape (..., 6)."""
    poses = tree.poses(q)
    m, h = _first_moment(tree, poses)
    return _at(_momentum(tree, poses, v), h / m)


@declared("q v a", {"rate": "6"})
def centroidal_momentum_rate(tree: CompiledTree, q: Value, v: Value, a: Value) -> Value:
    """(q, v, a) → rate of `centroidal_momentum`: the external wrench it takes, (..., 6)."""
    poses = tree.poses(q)
    m, h = _first_moment(tree, poses)
    return _at(_momentum_rate(tree, poses, v, a), h / m)


@declared("q", {"A": "6v"})
def centroidal_momentum_matrix(tree: CompiledTree, q: Value) -> Value:
    """``q`` → A with momentum ``A v``, shape (..., 6, nv)."""
    poses = tree.poses(q)
    A, total = _momentum_columns(tree, poses)
    return _at(A, total.h / total.m)


@declared("q v", {"A_rate": "6v"})
def centroidal_momentum_matrix_rate(tree: CompiledTree, q: Value, v: Value) -> Value:
    """(q, v) → time derivative of `centroidal_momentum_matrix`, shape (..., 6, nv)."""
    poses = tree.poses(q)
    V = twists(tree, poses, v)
    A, total = _momentum_columns(tree, poses)
    bodies, _ = _momentum_columns(tree, poses, fluid=False)
    velocity = velocity_composites(tree, poses, V)
    inertias = composites(tree, poses)
    world = tree.in_world(dict(enumerate(poses)))
    added, flow = added_composites(tree, poses), momentum_composites(tree, poses, V)
    products = velocity_products(tree, poses, V)
    rate = ca.SX(6, tree.nv)
    for k, node in enumerate(tree.nodes):
        momentum = ca.vertcat(velocity[k].p, velocity[k].angular_momentum)
        # İ S + I Ṡ with İ = 2 B − (I V)×̄*, everything resolved in the node's frame.
        F = 2 * velocity[k].half(node.S) - carried_along(node.S, momentum)
        F = F + inertias[k] @ twist_cross(V[k], node.S)
        if added[k].nnz():
            F = F + products[k] @ node.S - carried_along(node.S, flow[k])
            F = F + added[k] @ twist_cross(V[k], node.S)
        rate[:, node.v] += world[k].push_wrench(F)
    c, speed = total.h / total.m, bodies[:3, :] @ v / total.m
    shifted = _at(rate, c)
    return ca.vertcat(shifted[:3, :], shifted[3:, :] - cross(speed, A[:3, :]))


def carried_momentum(tree: CompiledTree, q: Value, v: Value, to: Value) -> Value:
    """``J(to)ᵀ Π``: momenta of the bodies at (q, v), held in space, on the joints elsewhere."""
    poses = tree.poses(q)
    V, before = twists(tree, poses, v), tree.in_world(dict(enumerate(poses)))
    after = tree.world_poses(to)
    carried = []
    for k, node in enumerate(tree.nodes):
        carried.append(before[k].push_wrench(_momentum_of(node, V[k])))
    p = ca.SX(armature(tree) * v)
    for k in reversed(range(len(tree.nodes))):
        node = tree.nodes[k]
        p[node.v] += node.S.T @ after[k].pull_wrench(carried[k])
        if node.parent >= 0:
            carried[node.parent] = carried[node.parent] + carried[k]
    return p


def velocity_composites(
    tree: CompiledTree, poses: list[Pose], V: list[Value], factor: float = 1.0
) -> list[Velocity]:
    """`Velocity` of every node with all it carries, in its frame, times a factor."""
    own = []
    for k, node in enumerate(tree.nodes):
        scaled = Inertia(*(factor * moment for moment in node.inertia))
        own.append(scaled.velocity(V[k]))
    return tree.summed(own, lambda k, velocity: velocity.moved(poses[k]))


def _first_moment(tree: CompiledTree, poses: list[Pose]) -> tuple[Value, Value]:
    m = [node.inertia.m for node in tree.nodes]
    h = [node.inertia.h for node in tree.nodes]
    mass, moment = ca.DM(1, 1), ca.DM(3, 1)
    for k in reversed(range(len(m))):
        moved, i = poses[k].R @ h[k] + m[k] * poses[k].p, tree.nodes[k].parent
        if i >= 0:
            m[i], h[i] = m[i] + m[k], h[i] + moved
        else:
            mass, moment = mass + m[k], moment + moved
    return mass, moment


def _momentum(tree: CompiledTree, poses: list[Pose], v: Value, *, fluid: bool = True) -> Value:
    """Momentum about the world origin."""
    V = twists(tree, poses, v)
    own = [_momentum_of(node, twist, fluid) for node, twist in zip(tree.nodes, V, strict=True)]
    total = ca.SX(6, 1)
    for k, momentum in reversed(
        [*enumerate(tree.summed(own, lambda k, W: poses[k].push_wrench(W)))]
    ):
        if tree.nodes[k].parent < 0:
            total = total + poses[k].push_wrench(momentum)
    return total


def _momentum_rate(
    tree: CompiledTree, poses: list[Pose], v: Value, a: Value, *, fluid: bool = True
) -> Value:
    """Rate of the momentum about the world origin."""
    V = twists(tree, poses, v)
    A = accelerations(tree, poses, V, v, a, gravity=False)
    W = transmitted_wrenches(tree, poses, V, A, gravity=False, fluid=fluid)
    total = ca.SX(6, 1)
    for k, node in enumerate(tree.nodes):
        if node.parent < 0:
            total = total + poses[k].push_wrench(W[k])
    return total


def _momentum_of(node: Node, V: Value, fluid: bool = True) -> Value:
    """Momentum of a node and of the fluid around it."""
    own = node.inertia @ V
    return own + node.added_mass @ V if fluid and node.added_mass.nnz() else own


def _momentum_columns(
    tree: CompiledTree, poses: list[Pose], *, fluid: bool = True
) -> tuple[Value, Inertia]:
    """Momentum matrix about the world origin, and the total inertia of bodies there."""
    world, A = tree.in_world(dict(enumerate(poses))), ca.SX(6, tree.nv)
    added = added_composites(tree, poses)
    total = Inertia.zero()
    for k, inertia in enumerate(composites(tree, poses)):
        node = tree.nodes[k]
        F = inertia @ node.S
        if fluid and added[k].nnz():
            F = F + added[k] @ node.S
        A[:, node.v] += world[k].push_wrench(F)
        if node.parent < 0:
            total = total + inertia.moved(poses[k])
    return A, total


def _at(W: Value, point: Value) -> Value:
    """Wrenches (columns) about another point."""
    return ca.vertcat(W[:3, :], W[3:, :] - cross(point, W[:3, :]))

"""Forward dynamics: articulated bodies in O(n), or a factor of the mass matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca

from ....codegen import Value
from .._spatial import Pose, twist_cross, wrench_cross
from ..compiled._added_mass import force as added_mass_force
from ..compiled._added_mass import weights
from ..compiled._articulated import eliminate, join_blocks, node_blocks
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import declared
from ..compiled._joint_forces import armature, joint_forces
from ..compiled._sparse import factor, solve
from ..large_trees import _recursions as large
from ..tree._tree import Tree
from ._inverse_dynamics import inverse_dynamics
from ._mass_matrix import mass_matrix, refuse_singular

FACTOR_SIZE = 24  # above, the cube of the factor is never cheaper than the recursion
_CLEARLY = 1.2  # repetitions are a tenth of either's operations, on all arms and robots here


def check_articulated(tree: Tree) -> None:
    """Refuse mimics, and joints that move no inertia."""
    if tree.is_coupled:
        raise ValueError(
            "joints that mimic close loops, which the articulated-body recursion cannot "
            "follow: use forward_dynamics, or from_urdf(..., mimic=False)"
        )
    refuse_singular(tree)


@declared(
    "q v tau",
    {"a": "v"},
    regrouped=True,
    wrenches=True,
    check=refuse_singular,
    large=large.FORWARD_DYNAMICS,
)
def forward_dynamics(
    tree: CompiledTree, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """(q, v, tau[, wrenches]) → a, by whichever algorithm has fewer operations, (..., nv)."""
    if tree.is_coupled:
        return forward_dynamics_by_factor(tree, q, v, tau, wrenches)
    recursion = forward_dynamics_by_recursion(tree, q, v, tau, wrenches)
    if tree.nv > FACTOR_SIZE:
        return recursion
    by_factor = forward_dynamics_by_factor(tree, q, v, tau, wrenches)
    return by_factor if _is_cheaper(by_factor, recursion) else recursion


@declared("q v tau", {"a": "v"}, regrouped=True, wrenches=True, check=refuse_singular)
def forward_dynamics_by_factor(
    tree: CompiledTree, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """(q, v, tau[, wrenches]) → a, from the sparse factor of the mass matrix."""
    bias = inverse_dynamics(tree, q, v, ca.SX(tree.nv, 1), wrenches)
    return solve(*factor(mass_matrix(tree, q)), tau - bias)


@declared(
    "q v tau",
    {"a": "v"},
    regrouped=True,
    wrenches=True,
    check=check_articulated,
    large=large.FORWARD_DYNAMICS,
)
def forward_dynamics_by_recursion(
    tree: CompiledTree, q: Value, v: Value, tau: Value, wrenches: Value | None = None
) -> Value:
    """(q, v, tau[, wrenches]) → a, in O(n) by articulated bodies; not with mimics.

    Work and code grow linearly with the number of joints (Featherstone 2008, section 7.3). Joints
    that share a coordinate would close loops: trees with mimics need the factor.
    """
    nodes, poses = tree.nodes, tree.poses(q)
    tau = tau - joint_forces(tree, q, v, ca.SX(tree.nv, 1))
    loads = tree.node_wrenches(wrenches)
    lift = weights(tree, poses) if tree.has_added_mass else []
    zero = ca.DM(6, 1)
    V: dict[int, Value] = {-1: zero}
    bias, force = [], []
    for k, (node, T) in enumerate(zip(nodes, poses, strict=True)):
        joint = node.S @ v[node.v]
        V[k] = T.pull(V[node.parent]) + joint
        bias.append(twist_cross(V[k], joint) if node.parent >= 0 else zero)
        force.append(wrench_cross(V[k], node.inertia @ V[k]))
        if node.added_mass.nnz():
            force[k] = force[k] + added_mass_force(node.added_mass, V[k], lift[k])
        if loads[k] is not None:
            force[k] = force[k] - loads[k]
    start = ca.vertcat(-tree.gravity, ca.DM(3, 1))
    return _articulated(tree, poses, tau, force, bias, start, armature(tree))


def velocities_of_momenta(tree: CompiledTree, q: Value, momenta: Sequence[Value]) -> Value:
    """Velocities nearest to the bodies' momenta, in the metric of their inverse inertias.

    ``(Jᵀ 𝖬 J) v = Jᵀ Π`` for momenta in the nodes' frames, by whichever algorithm has fewer
    operations: the recursion of accelerations, without velocities, weight and armatures, is O(n).
    """
    if tree.is_coupled:
        return _velocities_by_factor(tree, q, momenta)
    still, rest = ca.DM(6, 1), ca.DM(tree.nv, 1)
    force = [-momentum for momentum in momenta]
    recursion = _articulated(tree, tree.poses(q), rest, force, [still] * len(force), still, rest)
    if tree.nv > FACTOR_SIZE:
        return recursion
    by_factor = _velocities_by_factor(tree, q, momenta)
    return by_factor if _is_cheaper(by_factor, recursion) else recursion


def _velocities_by_factor(tree: CompiledTree, q: Value, momenta: Sequence[Value]) -> Value:
    carried, p, poses = list(momenta), ca.SX(tree.nv, 1), tree.poses(q)
    for k in reversed(range(len(tree.nodes))):
        node = tree.nodes[k]
        p[node.v] += node.S.T @ carried[k]
        if node.parent >= 0:
            carried[node.parent] = carried[node.parent] + poses[k].push_wrench(carried[k])
    return solve(*factor(mass_matrix(replace(tree, impedances=[]), q)), p)


def _articulated(
    tree: CompiledTree,
    poses: list[Pose],
    tau: Value,
    force: Sequence[Value],
    bias: Sequence[Value],
    start: Value,
    armatures: Value,
) -> Value:
    """Accelerations of the joints by elimination from the leaves to the root and back.

    Parameters
    ----------
    tree, poses
        Of every node on its parent.
    tau : CasADi column, shape (nv,)
        Forces in the joints.
    force, bias : sequences of CasADi columns, shape (6,)
        Wrench that every node needs without an acceleration, acceleration that it has without one
        of its joint, in its frame.
    start : CasADi column, shape (6,)
        Acceleration of the world.
    armatures : CasADi column, shape (nv,)
    """
    nodes = tree.nodes
    inertia = [node_blocks(node) for node in nodes]
    force, eliminated = list(force), []
    for k in reversed(range(len(nodes))):
        node, T = nodes[k], poses[k]
        own = tau[node.v] - node.S.T @ force[k]
        step = eliminate(node.S, inertia[k], armatures[node.v], is_carried=node.parent >= 0)
        eliminated.append((step, own))
        if node.parent >= 0:
            i = node.parent
            f = force[k] + step.rest @ bias[k] + step.gain.T @ own
            force[i] = force[i] + T.push_wrench(f)
            inertia[i] = join_blocks(inertia[i], step.rest, T)
    eliminated.reverse()
    acceleration: dict[int, Value] = {-1: start}
    a = ca.SX(tree.nv, 1)
    for k, (node, T) in enumerate(zip(nodes, poses, strict=True)):
        step, own = eliminated[k]
        carried = T.pull(acceleration[node.parent]) + bias[k]
        a[node.v] = solve(step.L, step.D, own) - step.gain @ carried
        acceleration[k] = carried + node.S @ a[node.v]
    return a


def _is_cheaper(one: ca.SX, other: ca.SX) -> bool:
    """Whether it has no more operations than the other, both without repetitions.

    Looking for repetitions takes longest: not where they could not turn the answer.
    """
    ours, theirs = _operations(one), _operations(other)
    if max(ours, theirs) > _CLEARLY * min(ours, theirs):
        return ours < theirs
    return _operations(ca.cse(ca.SX(one))) <= _operations(ca.cse(ca.SX(other)))


def _operations(expression: ca.SX) -> int:
    expression = ca.SX(expression)  # a tree without joints has no symbols
    return ca.Function("count", ca.symvar(expression), [expression]).n_instructions()

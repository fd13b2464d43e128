"""Inverse and forward dynamics, and the mass matrix: by recursion, composites or a factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import casadi as ca
import numpy as np

from ....codegen import Value
from .._spatial import Inertia, Pose, couple, cross, point_accelerations, twist_cross, wrench_cross
from ..compiled._added_forces import added_composites, armature, fluid_force, joint_forces, weights
from ..compiled._compiled_tree import CompiledTree, compiled
from ..compiled._functions import declared
from ..compiled._sparse import Entries, eliminate, factor, inverse, join_blocks, node_blocks, solve
from ..kinematics._recursions import accelerations, twists
from ..large_trees import _recursions as large
from ..tree._tree import Tree

SINGULAR_INERTIA = 1e-12  # of a degree of freedom's own inertia: what rounding leaves of nothing


def refuse_singular(tree: Tree) -> None:
    """Refuse a mass matrix that is singular at a random configuration."""
    if tree.nv:
        tree.memo(("regular",), lambda: _check_regular(tree))


def _check_regular(tree: Tree) -> None:
    q = ca.SX.sym("q", tree.nq)
    made = compiled(tree, regrouped=True)
    if tree.is_coupled:
        M = mass_matrix(made, q)
        D, own = factor(M)[1], ca.diag(M)
    else:
        D, own = _pivots(made, q), _mass_diagonal(made, q)
    # A zero is divided by further down: the last one counts.
    function = ca.Function("pivots", [q], [D, own])
    D, own = (np.array(x).ravel() for x in function(tree.configuration.random(seed=1)))
    bad = [k for k in range(tree.nv) if not D[k] > SINGULAR_INERTIA * abs(own[k])]
    if not bad:
        return
    k = bad[-1]
    link = next(
        link for link in tree._moving_links if k < tree._coordinates[link.joint_name].v.stop
    )
    raise ValueError(
        f"joint {link.joint_name!r} ({link.joint}) moves no inertia: the mass matrix is singular. "
        f"Link {link.name!r} and what it carries have {'no' if own[k] == 0 else 'not enough'} mass "
        "for this motion: give the link an inertia, the joint an armature "
        f"(JointProperties), or hold it with lock({link.joint_name}=…)"
    )


@declared("q", {"M": "vv"}, regrouped=True, large=large.MASS_MATRIX)
def mass_matrix(tree: CompiledTree, q: Value) -> Value:
    """``q`` → M with ``kinetic energy = ½ vᵀ M v``, shape (..., nv, nv)."""
    poses = tree.poses(q)
    return mass_matrix_of(tree, poses, composites(tree, poses))


@declared("q", {"L": "vv", "D": "v"}, regrouped=True, check=refuse_singular)
def mass_matrix_factor(tree: CompiledTree, q: Value) -> tuple[Value, Value]:
    """``q`` → (L, D) with ``M = Lᵀ diag(D) L``, L unit lower triangular, sparse."""
    return factor(mass_matrix(tree, q))


@declared(
    "q", {"M_inverse": "vv"}, regrouped=True, check=refuse_singular, large=large.MASS_MATRIX_INVERSE
)
def mass_matrix_inverse(tree: CompiledTree, q: Value) -> Value:
    """``q`` → M⁻¹, shape (..., nv, nv)."""
    return inverse(*factor(mass_matrix(tree, q)))


def composites(tree: CompiledTree, poses: list[Pose]) -> list[Inertia]:
    """Inertia of every node with all it carries, in its frame."""
    own = [node.inertia for node in tree.nodes]
    return tree.summed(own, lambda k, inertia: inertia.moved(poses[k]))


def mass_matrix_of(tree: CompiledTree, poses: list[Pose], total: list[Inertia]) -> Value:
    """Mass matrix from composite inertias.

    The recursion runs from leaf to root with the momenta that coordinates give to the bodies of a
    node's subtree. Joints that share a coordinate add theirs, so a chain of mimics takes linear
    work.
    """
    M = Entries(tree.nv, tree.nv)
    added = added_composites(tree, poses)
    carried: list[dict[tuple[int, int], Value]] = [{} for _ in tree.nodes]
    for k in reversed(range(len(tree.nodes))):
        node, columns = tree.nodes[k], carried[k]
        F = total[k] @ node.S
        if added[k].nnz():
            F = F + added[k] @ node.S
        own = node.S.T @ F
        M.add(node.v, node.v, own if own.is_scalar() else ca.triu2symm(ca.triu(own)))
        for (start, stop), G in columns.items():
            block, other = node.S.T @ G, slice(start, stop)
            M.add(node.v, other, block)
            M.add(other, node.v, block.T)
        if node.parent < 0:
            continue
        _add_to(columns, (node.v.start, node.v.stop), F)
        for key, G in columns.items():
            _add_to(carried[node.parent], key, poses[k].push_wrench(G))
    M.add_diagonal(armature(tree))
    return M.matrix()


def _add_to(columns: dict[tuple[int, int], Value], key: tuple[int, int], F: Value) -> None:
    columns[key] = columns[key] + F if key in columns else F


def _mass_diagonal(tree: CompiledTree, q: Value) -> Value:
    """Diagonal of the mass matrix of a tree without mimics."""
    total = composites(tree, tree.poses(q))
    D = armature(tree) + ca.SX(tree.nv, 1)
    for node, inertia in zip(tree.nodes, total, strict=True):
        D[node.v] += ca.diag(node.S.T @ (inertia @ node.S))
    return D


def _pivots(tree: CompiledTree, q: Value) -> Value:
    """Articulated inertia of every degree of freedom, column of nv: zero where nothing resists."""
    nodes, poses, armatures = tree.nodes, tree.poses(q), armature(tree)
    inertia = [node_blocks(node) for node in nodes]
    D = ca.SX(tree.nv, 1)
    for k in reversed(range(len(nodes))):
        step = eliminate(
            nodes[k].S, inertia[k], armatures[nodes[k].v], is_carried=nodes[k].parent >= 0
        )
        D[nodes[k].v] = step.D
        i = nodes[k].parent
        if i >= 0:
            inertia[i] = join_blocks(inertia[i], step.rest, poses[k])
    return D


@declared("q v a", {"tau": "v"}, regrouped=True, wrenches=True, large=large.INVERSE_DYNAMICS)
def inverse_dynamics(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """(q, v, a[, wrenches]) → tau: forces that the accelerations need, shape (..., nv).

    Their time derivatives: `inverse_dynamics_time_derivatives`.
    """
    return body_forces(tree, q, v, a, wrenches) + joint_forces(tree, q, v, a)


@declared("q v", {"tau": "v"}, regrouped=True, wrenches=True, large=large.BIAS_FORCES)
def bias_forces(tree: CompiledTree, q: Value, v: Value, wrenches: Value | None = None) -> Value:
    """(q, v[, wrenches]) → tau at a = 0: Coriolis, centrifugal, weight, losses, springs."""
    return inverse_dynamics(tree, q, v, ca.SX(tree.nv, 1), wrenches)


@declared("q", {"tau": "v"}, regrouped=True, large=large.GRAVITY_FORCES)
def gravity_forces(tree: CompiledTree, q: Value) -> Value:
    """``q`` → tau that holds the tree at rest against weight and springs, shape (..., nv)."""
    none = ca.SX(tree.nv, 1)
    return inverse_dynamics(tree, q, none, none)


def body_forces(
    tree: CompiledTree, q: Value, v: Value, a: Value, wrenches: Value | None = None
) -> Value:
    """Generalized forces of the bodies alone, and of the fluid that moves along.

    Newton–Euler with the classical acceleration of the frame origins: the linear velocity of a
    body never appears, only that of a joint. With ``U = ω̇^ + ω^ ω^`` the points of a body
    accelerate by ``p̈ + U r``. Their moment is a contraction of U with the second moments Σ = ∫ r
    rᵀ dm. It takes fewer operations than ``J ω̇ + ω × J ω``. (Müller 2018, section 4.1, has the
    recursion with twists: the two agree.)
    """
    nodes, poses = tree.nodes, tree.poses(q)
    U: dict[int, Value] = {-1: ca.DM(3, 3)}
    w: dict[int, Value] = {-1: ca.DM(3, 1)}
    dw: dict[int, Value] = {-1: ca.DM(3, 1)}
    acc: dict[int, Value] = {-1: -tree.gravity}
    force, moment = [], []
    loads = tree.node_wrenches(wrenches)
    if tree.has_added_mass:
        V = twists(tree, poses, v)
        A = accelerations(tree, poses, V, v, a, gravity=False)
        for k, node in enumerate(nodes):
            if node.added_mass.nnz():
                own = -fluid_force(node.added_mass, V[k], A[k])
                loads[k] = own if loads[k] is None else loads[k] + own
    for k, (node, T) in enumerate(zip(nodes, poses, strict=True)):
        i, back = node.parent, T.R.T
        twist, rate = node.S @ v[node.v], node.S @ a[node.v]
        carried = back @ w[i]
        w[k] = carried + twist[3:]
        dw[k] = back @ dw[i] + rate[3:] + cross(carried, twist[3:])
        acc[k] = back @ (acc[i] + U[i] @ T.p) + cross(2 * carried + twist[3:], twist[:3]) + rate[:3]
        U[k] = point_accelerations(w[k], dw[k])
        m, h, Sigma = node.inertia
        force.append(m * acc[k] + U[k] @ h)
        moment.append(couple(Sigma, U[k]) + cross(h, acc[k]))
        load = loads[k]
        if load is not None:
            force[k] = force[k] - load[:3]
            moment[k] = moment[k] - load[3:]
    tau = ca.SX(tree.nv, 1)
    for k in reversed(range(len(nodes))):
        node, T = nodes[k], poses[k]
        tau[node.v] += node.S.T @ ca.vertcat(force[k], moment[k])
        if node.parent >= 0:
            f = T.R @ force[k]
            force[node.parent] = force[node.parent] + f
            moment[node.parent] = moment[node.parent] + T.R @ moment[k] + cross(T.p, f)
    return tau


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
            force[k] = force[k] + fluid_force(node.added_mass, V[k], lift[k])
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

    In its frame, every node needs the wrench `force` without an acceleration, and has the
    acceleration `bias` without one of its joint. `start` is the acceleration of the world (6,).
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

"""Mass matrix by composite bodies, its sparse factor, its inverse, and whether it is regular."""

from __future__ import annotations

import casadi as ca
import numpy as np

from ....codegen import Value
from .._spatial import Inertia, Pose
from ..compiled._added_mass import added_composites
from ..compiled._articulated import eliminate, join_blocks, node_blocks
from ..compiled._compiled_tree import CompiledTree, compiled
from ..compiled._functions import declared
from ..compiled._joint_forces import armature
from ..compiled._sparse import Entries, factor, inverse
from ..large_trees import _recursions as large
from ..tree._tree import Tree

SINGULAR_INERTIA = 1e-12  # of a degree of freedom's own inertia: what rounding leaves of nothing


def refuse_singular(tree: Tree) -> None:
    """Refuse a mass matrix that is singular at a random configuration.

    Raises
    ------
    ValueError
        Naming the joint that moves no inertia, and what to do.
    """
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

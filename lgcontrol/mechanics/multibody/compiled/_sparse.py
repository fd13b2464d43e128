"""Sparse symmetric matrices of trees, their factors, and articulated bodies."""

from __future__ import annotations

from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ....codegen._internal import factor_symmetric, solve_factored
from .._spatial import Inertia, Pose, cross, hat, symmetric
from ._compiled_tree import Node

factor, solve = factor_symmetric, solve_factored


class Entries:
    """A sparse matrix that grows block by block."""

    def __init__(self, rows: int, columns: int) -> None:
        self.shape = rows, columns
        self._values: dict[tuple[int, int], Value] = {}

    def add(self, rows: slice, columns: slice, block: Value) -> None:
        """Add a block; structural zeros stay zeros."""
        for j, column in enumerate(range(columns.start, columns.stop)):
            for i, row in enumerate(range(rows.start, rows.stop)):
                if block.has_nz(i, j):
                    key = column, row
                    old = self._values.get(key)
                    self._values[key] = block[i, j] if old is None else old + block[i, j]

    def add_diagonal(self, column: Value) -> None:
        """Add a column to the diagonal."""
        for i in range(column.shape[0]):
            self.add(slice(i, i + 1), slice(i, i + 1), column[i])

    def matrix(self) -> Value:
        """The matrix."""
        keys = sorted(self._values)
        pattern = ca.Sparsity.triplet(*self.shape, [r for _, r in keys], [c for c, _ in keys])
        values = [ca.SX(self._values[key]) for key in keys]
        return ca.SX(pattern, ca.vertcat(*values)) if values else ca.SX(*self.shape)


def inverse(L: Value, D: Value) -> Value:
    """``M⁻¹`` from the factor, symmetric."""
    return solve(L, D, ca.DM.eye(D.shape[0]))


Blocks = tuple[Value, Value, Value]
"""Blocks A, B, C of an articulated inertia [[A, B], [Bᵀ, C]]."""


class Eliminated(NamedTuple):
    """A joint taken out of an articulated inertia: what is left, and how the joint answers."""

    gain: Value
    L: Value
    D: Value
    rest: Value


def node_blocks(node: Node) -> Blocks:
    """Blocks of a node's own inertia, that of the fluid around it too."""
    A, B, C = single_body_blocks(node.inertia)
    added = node.added_mass
    if not added.nnz():
        return A, B, C
    return A + added[:3, :3], B + added[:3, 3:], C + added[3:, 3:]


def single_body_blocks(inertia: Inertia) -> Blocks:
    """Blocks of one body's inertia."""
    return inertia.m * ca.DM.eye(3), -hat(inertia.h), inertia.J


def eliminate(S: Value, inertia: Blocks, armature: Value, *, is_carried: bool) -> Eliminated:
    """Take a joint with the motion subspace S out; the rest matters where a node carries it."""
    A, B, C = inertia
    whole = ca.blockcat([[A, B], [B.T, C]])
    columns = whole @ S
    L, D = factor(S.T @ columns + ca.diag(armature))
    gain = solve(L, D, columns.T)
    return Eliminated(gain, L, D, whole - columns @ gain if is_carried else ca.DM(6, 6))


def join_blocks(inertia: Blocks, rest: Value, T: Pose) -> Blocks:
    """Blocks of a node with the rest of an articulated inertia that it carries."""
    A, B, C = _moved(symmetric(rest[:3, :3]), rest[:3, 3:], symmetric(rest[3:, 3:]), T)
    return inertia[0] + A, inertia[1] + B, inertia[2] + C


def _moved(A: Value, B: Value, C: Value, T: Pose) -> tuple[Value, Value, Value]:
    """Blocks of an articulated inertia [[A, B], [Bᵀ, C]] seen from the parent's frame."""
    R, p = T
    A, B, C = symmetric(R @ A @ R.T), R @ B @ R.T, symmetric(R @ C @ R.T)
    pA = cross(p, A) if p.nnz() else ca.DM(3, 3)
    pB = cross(p, B) if p.nnz() else ca.DM(3, 3)
    # With P = p̂: B' = B − A P,  C' = C + P B + (P B)ᵀ − P A P.
    pAp = cross(p, pA.T) if p.nnz() else ca.DM(3, 3)
    return A, B + pA.T, symmetric(C + pB + pB.T + pAp)

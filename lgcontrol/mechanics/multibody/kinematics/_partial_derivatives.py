"""Partial derivatives of frame Jacobians of any order, by nested brackets along the path.

A derivative by a joint inserts that joint's screw where the joint is in the product of
exponentials. Whatever the order of differentiation, the brackets nest in the order of the joints
along the path (Müller 2018, eq. 15 and 24); only for the directions of one joint with several
degrees of freedom the order of differentiation decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import casadi as ca

from ....codegen import Value
from ..plan._plan import Plan
from ..plan._spatial import Motion, cross, twist_cross
from ._frames import frame_pose
from ._path_screws import Screw, columns, joint_screws, placement_screws

Key = tuple[int, ...]
"""Numbers of screws: a column of the Jacobian, then what it is differentiated by, in order."""


def jacobian_derivatives(
    plan: Plan, q: Value, *, seat: tuple[int, Motion], reference: str, order: int
) -> Value:
    """Derivatives by the joints, 6 × nv^(order + 1)."""
    screws = joint_screws(plan, seat[0])
    families = [range(len(screws))] * (order + 1)
    sizes = [plan.nv] * (order + 1)
    return _tensor(plan, q, seat, reference, screws, families, sizes)


def jacobian_geometry_derivatives(
    plan: Plan, q: Value, *, seat: tuple[int, Motion], reference: str, joints: tuple[str, ...]
) -> Value:
    """Derivatives by the placements of joints, 6 × nv · 6 joints."""
    moving = joint_screws(plan, seat[0])
    screws = moving + placement_screws(plan, seat[0], joints)
    families = [range(len(moving)), range(len(moving), len(screws))]
    return _tensor(plan, q, seat, reference, screws, families, [plan.nv, 6 * len(joints)])


def calibration_jacobian(
    plan: Plan, q: Value, *, seat: tuple[int, Motion], reference: str, joints: tuple[str, ...]
) -> Value:
    """Displacement of a frame by the placements of joints, 6 × 6 joints."""
    screws = placement_screws(plan, seat[0], joints)
    families = [range(len(screws))]
    return _tensor(plan, q, seat, reference, screws, families, [6 * len(joints)])


def _tensor(
    plan: Plan,
    q: Value,
    seat: tuple[int, Motion],
    reference: str,
    screws: Sequence[Screw],
    families: Sequence[range],
    sizes: Sequence[int],
) -> Value:
    """Nested derivatives for every choice of a screw from each family, in columns side by side."""
    derivative = _rule(plan, q, seat, reference, screws)
    found: dict[int, Value] = {}
    for key in product(*families):
        column = derivative(key)
        if column is None:
            continue
        at, stride = 0, 1
        for number, size in zip(key, sizes, strict=True):
            at, stride = at + stride * screws[number].column, stride * size
        # Mimics share a degree of freedom: their columns add up.
        found[at] = found[at] + column if at in found else column
    return _side_by_side(found, prod(sizes))


def _side_by_side(found: dict[int, Value], total: int) -> Value:
    order = sorted(found)
    wide = ca.horzcat(ca.SX(6, 0), *(ca.SX(found[at]) for at in order))
    rows, within = wide.sparsity().get_triplet()
    pattern = ca.Sparsity.triplet(6, total, rows, [order[c] for c in within])
    return ca.SX(pattern, wide.nz[:]) if wide.nnz() else ca.SX(6, total)


def _rule(
    plan: Plan, q: Value, seat: tuple[int, Motion], reference: str, screws: Sequence[Screw]
) -> Callable[[Key], Value | None]:
    """``key →`` nested derivative of a column of the Jacobian, None if it vanishes."""
    if reference in ("body", "spatial"):
        own = columns(plan, q, seat, screws, reference)
        return (_outwards if reference == "body" else _inwards)(screws, own, twist_cross)
    own = columns(plan, q, seat, screws, "hybrid")
    spins = [J[3:] for J in own]
    point = _point(screws, [J[:3] for J in own], spins)
    if reference == "hybrid":
        turn = _inwards(screws, spins, cross)
    else:
        R = frame_pose(plan, q, seat).R
        turn = _outwards(screws, [ca.sparsify(R.T @ spin) for spin in spins], cross)

    def column(key: Key) -> Value | None:
        parts = [part(key) for part in (point, turn)]
        if all(part is None for part in parts):
            return None
        return ca.vertcat(*(ca.SX(3, 1) if part is None else part for part in parts))

    return column


def _outwards(
    screws: Sequence[Screw], J: list[Value], bracket: Callable[[Value, Value], Value]
) -> Callable[[Key], Value | None]:
    """Body components: ``[[J_j, J_β1], J_β2]…`` with β from joint j to the frame (eq. 15).

    Of directions of one joint the last differentiated comes first.
    """
    nested = _Nested(J, lambda x, i: -bracket(J[i], x))

    def column(key: Key) -> Value | None:
        first, others = key[0], key[1:]
        if any(screws[i].position <= screws[first].position for i in others):
            return None
        return nested((first, *sorted(others[::-1], key=lambda i: screws[i].position)))

    return column


def _inwards(
    screws: Sequence[Screw], J: list[Value], bracket: Callable[[Value, Value], Value]
) -> Callable[[Key], Value | None]:
    """Spatial components: ``…[J_β2, [J_β1, J_j]]`` with β from joint j to the root (eq. 24).

    Of directions of one joint the first differentiated comes first.
    """
    nested = _Nested(J, lambda x, i: bracket(J[i], x))

    def column(key: Key) -> Value | None:
        first, others = key[0], key[1:]
        if any(screws[i].position > screws[first].position for i in others):
            return None
        others = tuple(sorted(others, key=lambda i: -screws[i].position))
        if others and _commute(screws[first], screws[others[0]]):
            return None
        return nested((first, *others))

    return column


def _point(
    screws: Sequence[Screw], v: list[Value], w: list[Value]
) -> Callable[[Key], Value | None]:
    """Derivatives of the frame's origin: ``…ω_β2 × (ω_β1 × v_β0)`` with β from frame to root.

    A column of the linear part is itself a derivative, the first one.
    """
    nested = _Nested(v, lambda x, i: cross(w[i], x))

    def column(key: Key) -> Value | None:
        return nested(tuple(sorted(key, key=lambda i: -screws[i].position)))

    return column


class _Nested:
    """Nested products, each made once: a start, then a step for each further index."""

    def __init__(self, start: list[Value], step: Callable[[Value, int], Value]) -> None:
        self._step = step
        self._made: dict[Key, Value] = {(i,): value for i, value in enumerate(start)}

    def __call__(self, key: Key) -> Value | None:
        value = self._value(key)
        return value if value.nnz() else None

    def _value(self, key: Key) -> Value:
        if key not in self._made:
            before = self._value(key[:-1])
            made = self._step(before, key[-1]) if before.nnz() else before
            self._made[key] = ca.sparsify(made)
        return self._made[key]


def _commute(one: Screw, other: Screw) -> bool:
    """Whether two directions of the same joint commute, whatever the configuration."""
    if one.node != other.node or not isinstance(one.S, ca.DM) or not isinstance(other.S, ca.DM):
        return False
    return ca.sparsify(twist_cross(one.S, other.S)).nnz() == 0

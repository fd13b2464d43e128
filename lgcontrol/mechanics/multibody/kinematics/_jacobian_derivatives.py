"""Partial derivatives of frame Jacobians of any order, by nested brackets along the path.

A derivative by a joint inserts that joint's screw where the joint is in the product of
exponentials. Whatever the order of differentiation, the brackets nest in the order of the joints
along the path (Müller 2018, eq. 15 and 24); only for the directions of one joint with several
degrees of freedom the order of differentiation decides.

Placements of joints are differentiated by in the same way: a displacement of a joint's frame is a
screw where the frame is in the product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ....codegen._internal import check_known
from ....groups import SO3
from ...representations._forms import Reference
from .._spatial import cross, twist_cross
from ..compiled._compiled_tree import CompiledTree, NodeFrame
from ..compiled._functions import (
    LARGEST_FUNCTION,
    TreeFunction,
    check_order,
    frame_function,
    takes_names,
)
from ..tree._tree import Tree
from ._frames import frame_pose, poses_seen_from

DISPLACEMENTS = ("x", "y", "z", "rx", "ry", "rz")


@takes_names
def jacobian_derivatives(
    tree: Tree, frame: str, reference: Reference = "body", order: int = 1
) -> TreeFunction:
    """``q`` → partial derivatives of `jacobian`, shape (..., 6, nv, nv[, nv …]).

    ``dJ[:, j, k]`` is the derivative of column j by degree of freedom k;
    ``dJ[:, j, k, l]`` that of ``dJ[:, j, k]`` by l: the last index is differentiated last.

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
    order : int
        At least 1.

    Raises
    ------
    KeyError, ValueError
        If there is no such frame, reference or order, or the tensor has millions of entries.

    Notes
    -----
    By joints with one degree of freedom these are ordinary partial derivatives, symmetric in
    k, l, …. For joints with several, the derivative by k is that of ``d ↦ J(plus(q, d e_k))``
    at 0: along a left-invariant field. Derivatives are nested one-sided ones,
    ``∂²/∂s∂r J(q · exp(s e_l) · exp(r e_k))``. Those by two directions of the *same* joint do
    not commute: they differ by the derivative along the bracket of the two.

    References
    ----------
    Müller 2018, eq. 6, 13, 15 (body), 16, 21, 24 (spatial), 26 (hybrid). Eq. 26 holds for
    joints k from j to the frame; for those before j the derivative is ``[ω_k, J_j]``.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody
    >>> arm = Multibody().add_body("upper", None, "revolute")
    >>> arm = arm.add_body("lower", None, "revolute", "upper", [1, 0, 0])
    >>> arm.jacobian_derivatives("lower")([0.3, 0.0])[:1, 0, 1]
    array([1.])
    """
    order = check_order(order, "tree.jacobian")
    entries = 6 * tree.nv ** (order + 1)
    if entries > LARGEST_FUNCTION:
        raise ValueError(
            f"derivatives of order {order} of a Jacobian with {tree.nv} columns have {entries} "
            "entries, too many to trace: lock joints that do not matter, or ask for a lower order"
        )
    return frame_function(
        tree,
        "jacobian_derivatives",
        "q",
        {"dJ": "6" + "v" * (order + 1)},
        _jacobian_derivatives,
        frame,
        reference,
        order,
        order=order,
    )


def geometric_parameters(tree: Tree, joints: Sequence[str] = ()) -> tuple[str, ...]:
    """Names of the numbers that place joints, six for each, in the order of the derivatives.

    They are numbers of `symbolic`: ``joint.placement.x``, ``y``, ``z`` in the axes of the
    parent link [m], ``rx``, ``ry``, ``rz`` about the axes of the joint frame [rad]. An offset
    of a joint's angle or travel is among them, as a motion along its axis.

    Parameters
    ----------
    joints : sequence of str
        Names, fixed joints too. By default all joints that move.

    Raises
    ------
    KeyError
        If there is no such joint; the message lists them.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody
    >>> Multibody().add_body("rod", None, "revolute").geometric_parameters()[:2]
    ('rod.placement.x', 'rod.placement.y')
    """
    names = displaced_joints(tree, joints)
    return tuple(f"{name}.placement.{key}" for name in names for key in DISPLACEMENTS)


@takes_names
def calibration_jacobian(
    tree: Tree, frame: str, reference: Reference = "body", joints: Sequence[str] = ()
) -> TreeFunction:
    """``q`` → displacement of a frame by the geometry, shape (..., 6, n_parameters).

    Also called identification Jacobian. To first order, changes π of the placements displace the
    frame by ``J π``, a small twist in the reference. In "body" it is ``minus(T_changed, T)``, in
    "hybrid" the position and the rotation vector in the world.

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
    joints : sequence of str
        Joints whose placements change, fixed ones too; by default all that move. The columns
        are `geometric_parameters` of them.

    Raises
    ------
    KeyError, ValueError
        If there is no such frame, joint or reference.

    Notes
    -----
    Not all parameters can be told apart by poses: the rank of the stacked Jacobians says how
    many can. `calibrate` finds placements from poses.

    References
    ----------
    Müller 2018, section 6.2: ``B exp(U π)`` in the product of exponentials.

    Examples
    --------
    A pendulum whose pivot is not where it is thought to be, found from four positions:

    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody
    >>> tree = Multibody().add_body("rod", None, "revolute").add_frame("tip", "rod", [1, 0, 0])
    >>> real = Multibody().add_body("rod", None, "revolute", placement=[1e-3, 2e-3, 0])
    >>> real = real.add_frame("tip", "rod", [1, 0, 0])
    >>> q = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> error = real.position("tip")(q) - tree.position("tip")(q)
    >>> J = tree.calibration_jacobian("tip", "hybrid")(q)[:, :3].reshape(-1, 6)
    >>> found = np.linalg.lstsq(J, error.ravel())[0]
    >>> dict(zip(tree.geometric_parameters()[:2], found[:2].round(9).tolist()))
    {'rod.placement.x': 0.001, 'rod.placement.y': 0.002}
    """
    names = displaced_joints(tree, joints)
    return frame_function(
        tree,
        "calibration_jacobian",
        "q",
        {"J": ("6", 6 * len(names))},
        _calibration_jacobian,
        frame,
        reference,
        names,
        keep=names,
        joints=names,
    )


@takes_names
def jacobian_geometry_derivatives(
    tree: Tree, frame: str, reference: Reference = "body", joints: Sequence[str] = ()
) -> TreeFunction:
    """``q`` → derivatives of `jacobian` by the geometry, shape (..., 6, nv, n_parameters).

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
    joints : sequence of str
        As in `calibration_jacobian`.

    References
    ----------
    Müller 2018, section 6.2, with brackets as in eq. 6.
    """
    names = displaced_joints(tree, joints)
    return frame_function(
        tree,
        "jacobian_geometry_derivatives",
        "q",
        {"dJ": ("6", "v", 6 * len(names))},
        _jacobian_geometry_derivatives,
        frame,
        reference,
        names,
        keep=names,
        joints=names,
    )


def displaced_joints(tree: Tree, joints: Sequence[str]) -> tuple[str, ...]:
    """The named joints, or all that move."""
    links = {link.joint_name: link for link in tree._links}
    if isinstance(joints, str):
        raise TypeError(f"joints must be a sequence of names: ({joints!r},), not {joints!r}")
    check_known("joint", links, *joints)
    if len(set(joints)) < len(joints):
        raise ValueError(f"a joint is named twice: {', '.join(joints)}")
    return tuple(joints) or tuple(name for name, link in links.items() if not link.joint.is_fixed)


Key = tuple[int, ...]
"""Numbers of screws: a column of the Jacobian, then what it is differentiated by, in order."""


def _jacobian_derivatives(
    tree: CompiledTree, q: Value, *, frame: NodeFrame, reference: str, order: int
) -> Value:
    """Derivatives by the joints, 6 × nv^(order + 1)."""
    screws = joint_screws(tree, frame[0])
    families = [range(len(screws))] * (order + 1)
    sizes = [tree.nv] * (order + 1)
    return _tensor(tree, q, frame, reference, screws, families, sizes)


def _jacobian_geometry_derivatives(
    tree: CompiledTree, q: Value, *, frame: NodeFrame, reference: str, joints: tuple[str, ...]
) -> Value:
    """Derivatives by the placements of joints, 6 × nv · 6 joints."""
    moving = joint_screws(tree, frame[0])
    screws = moving + placement_screws(tree, frame[0], joints)
    families = [range(len(moving)), range(len(moving), len(screws))]
    return _tensor(tree, q, frame, reference, screws, families, [tree.nv, 6 * len(joints)])


def _calibration_jacobian(
    tree: CompiledTree, q: Value, *, frame: NodeFrame, reference: str, joints: tuple[str, ...]
) -> Value:
    """Displacement of a frame by the placements of joints, 6 × 6 joints."""
    screws = placement_screws(tree, frame[0], joints)
    families = [range(len(screws))]
    return _tensor(tree, q, frame, reference, screws, families, [6 * len(joints)])


def _tensor(
    tree: CompiledTree,
    q: Value,
    frame: NodeFrame,
    reference: str,
    screws: Sequence[Screw],
    families: Sequence[range],
    sizes: Sequence[int],
) -> Value:
    """Nested derivatives for every choice of a screw from each family, in columns side by side."""
    derivative = _rule(tree, q, frame, reference, screws)
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
    tree: CompiledTree, q: Value, frame: NodeFrame, reference: str, screws: Sequence[Screw]
) -> Callable[[Key], Value | None]:
    """``key →`` nested derivative of a column of the Jacobian, None if it vanishes."""
    if reference in ("body", "spatial"):
        own = columns(tree, q, frame, screws, reference)
        return (_outwards if reference == "body" else _inwards)(screws, own, twist_cross)
    own = columns(tree, q, frame, screws, "hybrid")
    spins = [J[3:] for J in own]
    point = _point(screws, [J[:3] for J in own], spins)
    if reference == "hybrid":
        turn = _inwards(screws, spins, cross)
    else:
        R = frame_pose(tree, q, frame).R
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


class Screw(NamedTuple):
    """A direction in which a frame can be displaced.

    Its position is the place along the path from the root: the screw moves what is farther out.
    Screws of one joint share it.
    """

    node: int  # node whose axes the components are in; −1 is the world
    position: int
    column: int  # degree of freedom, or number of the parameter
    S: Value  # (6, 1)


def joint_screws(tree: CompiledTree, k: int) -> list[Screw]:
    """Every direction of every joint from the root to node k."""
    return [
        Screw(i, 2 * place + 1, node.v.start + column, node.S[:, column])
        for place, i in enumerate(reversed(tree.path(k)))
        for node in [tree.nodes[i]]
        for column in range(node.S.shape[1])
    ]


def placement_screws(tree: CompiledTree, k: int, joints: Sequence[str]) -> list[Screw]:
    """Six displacements for each of the named joints that lies on the way to node k."""
    path = tree.path(k)[::-1]
    found = []
    for number, name in enumerate(joints):
        rest = tree.joint_frames[name]
        if rest.node in path:
            screws = placement_directions(tree, name)
            place = 2 * path.index(rest.node)
            found += [
                Screw(rest.carrier, place, 6 * number + column, screws[:, column])
                for column in range(6)
            ]
    return found


def placement_directions(tree: CompiledTree, joint: str) -> Value:
    """Displacements by x, y, z (parent link's axes), rx, ry, rz (joint's), in the carrier's frame.

    They are the U of ``B exp(U π)`` (Müller 2018, section 6.2) for the numbers that
    `Multibody.symbolic` names.
    """
    rest = tree.joint_frames[joint]
    turn: Value = ca.DM.eye(3)
    if isinstance(rest.turn, ca.SX) and rest.turn.nnz():
        turn = SO3.right_jacobian(rest.turn)
    angular = rest.frame.push(ca.vertcat(ca.DM(3, 3), turn))
    return ca.horzcat(ca.vertcat(rest.axes, ca.DM(3, 3)), angular)


def columns(
    tree: CompiledTree, q: Value, frame: NodeFrame, screws: Sequence[Screw], axes: str
) -> list[Value]:
    """Screws in "body", "spatial" or "hybrid" components: columns of the frame's Jacobian."""
    k, T = frame
    if axes == "body":
        relative = {k: T}
        while k >= 0:
            node = tree.nodes[k]
            relative[node.parent] = node.pose(q) @ relative[k]
            k = node.parent
        return [relative[screw.node].pull(screw.S) for screw in screws]
    if axes == "hybrid":
        world = poses_seen_from(tree, q, frame)
    else:
        world = tree.world_poses(q, [k] if k >= 0 else [])
    return [world[screw.node].push(screw.S) for screw in screws]

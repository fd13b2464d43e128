"""Plan: a tree prepared for the recursions, with numbers or symbols for its parameters.

Every joint becomes a chain of nodes with one subgroup each; links that do not move on their parent
are part of its node. Node frames are the link frames, turned where that makes a joint axis a
coordinate axis: rotation matrices are then sparse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from ....codegen import Value
from ....groups import SE2, SO2, SO3, Cylindrical, Helical, LieGroup, PlanarHelical, Translation
from ..tree._link import Link
from ._spatial import Inertia, Motion, constant, constant_rotation

if TYPE_CHECKING:
    from ..tree._tree import Multibody

# Groups about an axis whose coordinates do not depend on the frame's other two directions.
_TURNABLE = (Helical, type(SO2), type(Cylindrical), type(SE2), PlanarHelical, Translation)

Number = Callable[[str, float], Any]
"""Value of a named number: its symbol if it is a parameter, else the number itself."""


@dataclass
class Node:
    """One moving frame: a subgroup motion on its parent node.

    Attributes
    ----------
    parent : int
        Index of the parent node; −1 is the world.
    placement : Motion
        Joint frame in the parent node's frame.
    group : LieGroup
    S : DM, shape (6, dim)
        Motion subspace, times the multiplier of a mimic.
    q, v : slice
        Where the coordinates and the velocity are among the tree's (the leader's for a mimic).
    scale, shift : float
        ``q_node = scale · q + shift`` for a mimic.
    inertia : Inertia
        Of everything that moves with the node, in its frame.
    """

    parent: int
    placement: Motion
    group: LieGroup
    S: ca.DM
    q: slice
    v: slice
    scale: float = 1.0
    shift: float = 0.0
    inertia: Inertia = field(default_factory=Inertia.zero)

    def motion(self, q: Value) -> Motion:
        """T_parent_node for the tree's coordinates."""
        R, p = self.joint_motion(q)
        return self.placement @ Motion(ca.sparsify(R), ca.sparsify(p))

    def joint_motion(self, q: Value) -> Motion:
        """T_joint_node for the tree's coordinates."""
        return Motion(*self.group._pose(self.coordinates(q)))

    def coordinates(self, q: Value) -> Value:
        """The node's own coordinates among the tree's."""
        own = q[self.q]
        return own if self.scale == 1.0 and self.shift == 0.0 else self.scale * own + self.shift


@dataclass
class Drive:
    """Numbers of a joint that act on its own velocity.

    `scale` is that of a mimic: velocity and force of the joint are those of its leader, times it.
    """

    link: Link
    group: LieGroup
    q: slice
    v: slice
    scale: float
    shift: float
    armature: Value
    damping: Value
    friction: Value
    stiffness: Value

    def coordinates(self, q: Value) -> Value:
        """The joint's own coordinates."""
        own = q[self.q]
        return own if self.scale == 1.0 and self.shift == 0.0 else self.scale * own + self.shift


class Rest(NamedTuple):
    """Where a joint stands when it is displaced by nothing.

    Attributes
    ----------
    node : int
        Its first node, if it has one.
    carrier : int
        Node that carries it; −1 is the world.
    axes : DM or SX, shape (3, 3)
        Axes of the parent link in the carrier's frame.
    frame : Motion
        Joint frame before the joint's motion, in the carrier's frame.
    turn : DM or SX, shape (3, 1)
        Rotation vector by which parameters turn the joint frame in itself; else zero.
    """

    node: int
    carrier: int
    axes: Value
    frame: Motion
    turn: Value


@dataclass
class Plan:
    """Nodes in depth-first order, and where every link is on them.

    Attributes
    ----------
    nodes : list of Node
    seats : dict of str to (int, Motion)
        Node of each link (−1 for the world) and the link's frame in the node's.
    joints : dict of str to (int, Motion)
        Node of each joint, and the frame after its motion.
    bodies : list of (str, int)
        Moving bodies (the link a joint carries) and their nodes.
    drives : list of Drive
    gravity : DM or SX, shape (3, 1)
    link_masses : dict of str to (mass, centre of mass)
        Of every link, in its own frame.
    rests : dict of str to Rest
        Frame at rest of every joint.
    """

    nq: int
    nv: int
    gravity: Value
    nodes: list[Node] = field(default_factory=list)
    seats: dict[str, tuple[int, Motion]] = field(default_factory=dict)
    joints: dict[str, tuple[int, Motion]] = field(default_factory=dict)
    bodies: list[tuple[str, int]] = field(default_factory=list)
    drives: list[Drive] = field(default_factory=list)
    link_masses: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    rests: dict[str, Rest] = field(default_factory=dict)

    @property
    def is_coupled(self) -> bool:
        """Whether joints share a coordinate (mimics)."""
        starts = [node.v.start for node in self.nodes]
        return len(set(starts)) < len(starts)

    def path(self, k: int) -> list[int]:
        """Nodes from k (included) to the root."""
        path = []
        while k >= 0:
            path.append(k)
            k = self.nodes[k].parent
        return path

    def motions(self, q: Value) -> list[Motion]:
        """T_parent_node of every node."""
        return [node.motion(q) for node in self.nodes]

    def world_motions(self, q: Value, nodes: list[int] | None = None) -> dict[int, Motion]:
        """T_world_node of the given nodes and all that carry them (default: all nodes)."""
        wanted = range(len(self.nodes)) if nodes is None else nodes
        needed = sorted({i for k in wanted for i in self.path(k)})
        world: dict[int, Motion] = {-1: Motion.identity()}
        for k in needed:
            node = self.nodes[k]
            world[k] = world[node.parent] @ node.motion(q)
        return world

    def reduced(self) -> Plan:
        """The same dynamics with fewer numbers: what acts alike on two nodes moves to the lower.

        Mass on a joint's axis, as seen along the axis (m, first moment and second moment along it),
        and the inertia tensor of a body that only slides, belong to the carrying node as well as
        to their own (base parameters: Khalil and Dombre 2002, chapter 9). On the world they
        vanish. Generalized forces are the same; reaction forces and energies are not.
        """
        nodes = [Node(**vars(node)) for node in self.nodes]
        for node in reversed(nodes):
            moved = _shared_inertia(node)
            if moved is None or moved.is_zero:
                continue
            node.inertia = node.inertia - moved
            if node.parent >= 0:
                carrier = nodes[node.parent]
                carrier.inertia = carrier.inertia + moved.moved(node.placement)
        return replace(self, nodes=nodes)


class _Still:
    """Stands for a group where a fixed joint gets a node of its own."""

    dim, nq = 0, 0
    selection = np.zeros((6, 0))

    @staticmethod
    def _pose(X: Value) -> tuple[Value, Value]:
        return ca.DM.eye(3), ca.DM(3, 1)


def make_plan(tree: Multibody, number: Number, keep: tuple[str, ...] = ()) -> Plan:
    """Plan of a tree; `number` tells which of its numbers are symbols.

    `keep` names fixed joints that get a node of their own, so that wrenches through them are known.
    """
    plan = Plan(
        tree.nq,
        tree.nv,
        constant_or_symbols(
            [number(f"gravity.{a}", x) for a, x in zip("xyz", tree.gravity, strict=True)]
        ),
    )
    plan.seats["world"] = (-1, Motion.identity())
    for link in tree._links:
        k, T = plan.seats[link.parent]
        axes, (own, turn) = T.R, _placement(link, number)
        T = T @ own
        plan.rests[link.joint_name] = Rest(len(plan.nodes), k, axes, T, turn)
        if not link.joint.is_fixed:
            q, v, scale, shift = tree._places[link.joint_name]
            plan.drives.append(_drive(link, q, v, scale, shift, number))
            q0, v0 = q.start, v.start
            for before, group in link.joint.steps:
                k, T = _add_node(
                    plan, k, T @ Motion.from_matrix(before), group, q0, v0, scale, shift
                )
                q0, v0 = q0 + group.nq, v0 + group.dim
            plan.bodies.append((link.name, k))
        elif link.joint_name in keep:
            k, T = _add_node(plan, k, T, _Still(), 0, 0, 1.0, 0.0)  # type: ignore[arg-type]
        plan.joints[link.joint_name] = (k, T)
        T = T @ Motion.from_matrix(link.offset)
        plan.seats[link.name] = (k, T)
        plan.link_masses[link.name] = mass, center = link_mass(link, number)
        if k >= 0:
            own = link_inertia(link, mass, center, number).moved(T)
            plan.nodes[k].inertia = plan.nodes[k].inertia + own
    return plan


def link_mass(link: Link, number: Number) -> tuple[Value, Value]:
    """Mass and centre of mass of one link in its own frame."""
    own = link.inertia
    if own is None:
        return ca.DM(1, 1), ca.DM(3, 1)
    names = [f"{link.name}.center_of_mass.{a}" for a in "xyz"]
    center = [number(n, float(x)) for n, x in zip(names, own.center_of_mass, strict=True)]
    mass = constant_or_symbols([number(f"{link.name}.mass", own.mass)])
    return mass, constant_or_symbols(center)


def link_inertia(link: Link, mass: Value, center: Value, number: Number) -> Inertia:
    """Inertia of one link about its own frame."""
    if link.inertia is None:
        return Inertia.zero()
    matrix = link.inertia.inertia
    entries = []
    for a in range(3):
        for b in range(3):
            i, j = sorted((a, b))
            name = f"{link.name}.inertia.{'xyz'[i]}{'xyz'[j]}"
            entries.append(number(name, float(matrix[i, j])))
    about_center = ca.reshape(constant_or_symbols(entries), 3, 3)
    at_center = Inertia.from_tensor(mass, ca.DM(3, 1), about_center)
    return at_center.moved(Motion(ca.DM.eye(3), center))


def constant_or_symbols(values: list[Any]) -> Value:
    """Column of numbers (a sparse DM) or, if any is a symbol, of expressions."""
    if any(isinstance(value, ca.SX) for value in values):
        return ca.sparsify(ca.vertcat(*values))
    return constant(values)


def _placement(link: Link, number: Number) -> tuple[Motion, Value]:
    """Joint frame in the parent link, and the turn by its parameters in it."""
    names = [f"{link.joint_name}.placement.{a}" for a in ("x", "y", "z", "rx", "ry", "rz")]
    position = [number(n, x) for n, x in zip(names[:3], link.placement[:3, 3], strict=True)]
    turn = [number(n, 0.0) for n in names[3:]]
    R: Value = constant_rotation(link.placement[:3, :3])
    if any(isinstance(x, ca.SX) for x in turn):
        R = R @ SO3._pose(SO3._exp(ca.SX(ca.vertcat(*turn))))[0]
    return Motion(R, constant_or_symbols(position)), constant_or_symbols(turn)


def _add_node(
    plan: Plan,
    parent: int,
    T: Motion,
    group: LieGroup,
    q0: int,
    v0: int,
    scale: float,
    shift: float,
) -> tuple[int, Motion]:
    """Append a node; returns its index and the frame after the motion in the node's frame."""
    turn = _axis_turn(group)
    if turn is not None:
        group = group.about((0.0, 0.0, 1.0))  # type: ignore[attr-defined]
        T = T @ turn
    node = Node(
        parent,
        T,
        group,
        constant(scale * group.selection),
        slice(q0, q0 + group.nq),
        slice(v0, v0 + group.dim),
        scale,
        shift,
    )
    plan.nodes.append(node)
    return len(plan.nodes) - 1, Motion.identity() if turn is None else turn.inverse()


def _axis_turn(group: LieGroup) -> Motion | None:
    """Rotation to a frame whose z is the group's axis, unless that is a coordinate axis."""
    if not isinstance(group, _TURNABLE) or max(np.abs(group.axis)) > 1 - 1e-15:
        return None
    frame = Translation("xyz").about(group.axis).selection[:3]
    return Motion(constant_rotation(frame), ca.DM(3, 1))


def _drive(link: Link, q: slice, v: slice, scale: float, shift: float, number: Number) -> Drive:
    own = link.properties.filled(link.joint.dim, f"joint {link.joint_name!r}")
    values = {}
    for key in ("armature", "damping", "friction", "stiffness"):
        numbers = getattr(own, key)
        names = property_names(link, key)
        values[key] = constant_or_symbols(
            [number(name, x) for name, x in zip(names, numbers, strict=True)]
        )
    return Drive(link, link.joint.group, q, v, scale, shift, **values)


def property_names(link: Link, key: str) -> list[str]:
    """Names of a joint property's numbers: with an index where there are several."""
    dim = link.joint.dim
    base = f"{link.joint_name}.{key}"
    return [base] if dim == 1 else [f"{base}.{i}" for i in range(dim)]


def _shared_inertia(node: Node) -> Inertia | None:
    """The part of a node's inertia that the carrying node may have instead."""
    m, h, Sigma = node.inertia
    group = node.group
    if isinstance(group, Translation):
        return Inertia(ca.DM(1, 1), ca.DM(3, 1), Sigma)
    if isinstance(group, type(SO3)):
        return Inertia(m, ca.DM(3, 1), ca.DM(3, 3))
    if group.dim == 1 and getattr(group, "pitch", 0.0) == 0.0:
        n = constant(np.array(group.axis))  # type: ignore[attr-defined]
        along = n @ n.T
        return Inertia(m, along @ h, along @ Sigma @ along)
    return None

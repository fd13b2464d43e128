"""Compiled trees: nodes for the recursions, with numbers or symbols for the tree's parameters.

Every joint becomes a chain of nodes with one subgroup each; links that do not move on their parent
are part of its node. Node frames are the link frames, turned where that makes a joint axis a
coordinate axis: rotation matrices are then sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ....codegen import Value
from ....groups import SE2, SO2, SO3, Cylindrical, Helical, LieGroup, PlanarHelical, Translation
from .._spatial import Inertia, Pose, constant, constant_rotation, moved_matrix
from ..tree._link import IDENTITY, WORLD, Link
from ..tree._tree import JointCoordinates, Tree

# Groups about an axis whose coordinates do not depend on the frame's other two directions.
_TURNABLE = (Helical, type(SO2), type(Cylindrical), type(SE2), PlanarHelical, Translation)

Number = Callable[[str, float], Any]
"""Value of a named number: its symbol if it is a parameter, else the number itself."""


@dataclass
class Node:
    """One moving frame: a subgroup motion on its parent node."""

    parent: int  # index of the parent node; −1 is the world
    placement: Pose  # joint frame in the parent node's frame
    group: LieGroup
    S: ca.DM  # (6, dim) motion subspace, times the multiplier of a mimic
    coordinates: JointCoordinates  # places among the tree's
    # Of everything that moves with the node, and of the fluid around it (structurally zero without)
    inertia: Inertia = field(default_factory=Inertia.zero)
    added_mass: Value = field(default_factory=lambda: ca.DM(6, 6))

    @property
    def q(self) -> slice:
        """Place of the coordinates."""
        return self.coordinates.q

    @property
    def v(self) -> slice:
        """Place of the velocity."""
        return self.coordinates.v

    def pose(self, q: Value) -> Pose:
        """T_parent_node for the tree's coordinates."""
        return self.placement @ Pose.of(self.group, self.coordinates.of(q))


@dataclass
class JointImpedance:
    """Numbers of a joint that act on its own motion: drive, losses, spring."""

    link: Link
    group: LieGroup
    coordinates: JointCoordinates
    armature: Value
    damping: Value
    friction: Value
    stiffness: Value

    @property
    def v(self) -> slice:
        """Place of the velocity."""
        return self.coordinates.v

    @property
    def scale(self) -> float:
        """Multiplier of a mimic: velocity of the joint over the velocity of its leader.

        The leader gets the force of the joint times it.
        """
        return self.coordinates.scale


class NodeFrame(NamedTuple):
    """A frame on a node: the node's index (−1 is the world), and the frame in the node's."""

    node: int
    pose: Pose


class JointFrame(NamedTuple):
    """Position of a joint without displacement."""

    node: int  # its first node, if it has one
    carrier: int  # node that carries it; −1 is the world
    axes: Value  # (3, 3) axes of the parent link in the carrier's frame
    frame: Pose  # before the joint's motion, in the carrier's frame
    turn: Value  # (3, 1) rotation vector by which parameters turn the frame in itself; else zero


@dataclass
class CompiledTree:
    """Nodes in depth-first order, and where every link is on them."""

    nq: int
    nv: int
    gravity: Value
    nodes: list[Node] = field(default_factory=list)
    frames: dict[str, NodeFrame] = field(default_factory=dict)  # every name; joints' after motion
    joints: dict[str, NodeFrame] = field(default_factory=dict)  # after the motion, by joint
    bodies: list[tuple[str, int]] = field(default_factory=list)  # links that joints carry, nodes
    impedances: list[JointImpedance] = field(default_factory=list)
    # Mass and centre of mass of every link, in its own frame.
    link_masses: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    joint_frames: dict[str, JointFrame] = field(default_factory=dict)  # before the motion

    @property
    def is_coupled(self) -> bool:
        """Whether joints share a coordinate (mimics)."""
        starts = [node.v.start for node in self.nodes]
        return len(set(starts)) < len(starts)

    @property
    def has_added_mass(self) -> bool:
        """Whether a fluid adds to the inertia of a node."""
        return any(node.added_mass.nnz() for node in self.nodes)

    def path(self, k: int) -> list[int]:
        """Nodes from k (included) to the root."""
        path = []
        while k >= 0:
            path.append(k)
            k = self.nodes[k].parent
        return path

    def poses(self, q: Value) -> list[Pose]:
        """T_parent_node of every node."""
        return [node.pose(q) for node in self.nodes]

    def world_poses(self, q: Value, nodes: list[int] | None = None) -> dict[int, Pose]:
        """T_world_node of the given nodes and all that carry them (default: all nodes)."""
        wanted = range(len(self.nodes)) if nodes is None else nodes
        needed = sorted({i for k in wanted for i in self.path(k)})
        return self.in_world({k: self.nodes[k].pose(q) for k in needed})

    def in_world(self, poses: Mapping[int, Pose]) -> dict[int, Pose]:
        """T_world_node of nodes whose poses on their parents are given, from the root on."""
        world: dict[int, Pose] = {-1: Pose.identity()}
        for k, T in poses.items():
            world[k] = world[self.nodes[k].parent] @ T
        return world

    def node_wrenches(self, wrenches: Value | None) -> list[Value | None]:
        """External wrenches (6 × bodies, body frames) in the frames of the nodes."""
        loads: list[Value | None] = [None] * len(self.nodes)
        if wrenches is not None:
            for column, (name, k) in enumerate(self.bodies):
                loads[k] = self.frames[name].pose.push_wrench(wrenches[:, column])
        return loads

    def summed(self, own: list[Any], moved: Callable[[int, Any], Any]) -> list[Any]:
        """What every node has with all it carries; `moved` gives node k's in its parent's frame."""
        total = list(own)
        for k in reversed(range(len(total))):
            parent = self.nodes[k].parent
            if parent >= 0:
                total[parent] = total[parent] + moved(k, total[k])
        return total

    def regrouped(self) -> CompiledTree:
        """The same dynamics with fewer numbers: what acts alike on two nodes moves to the lower.

        Mass on a joint's axis (m, first and second moment along the axis) belongs to the carrying
        node as well as to its own. So does the inertia tensor of a body that only slides (base
        parameters: Khalil and Dombre 2002, chapter 9). On the world they vanish. Generalized
        forces are the same; reaction forces and energies are not.

        Origins move along the axes of their joints before, where that leaves fewer levers.
        """
        made = self._with_shifted_origins()
        nodes = [Node(**vars(node)) for node in made.nodes]
        for node in reversed(nodes):
            moved = _shared_inertia(node)
            if moved is None or moved.is_zero:
                continue
            node.inertia = node.inertia - moved
            if node.parent >= 0:
                carrier = nodes[node.parent]
                carrier.inertia = carrier.inertia + moved.moved(node.placement)
        return replace(made, nodes=nodes)

    def _with_shifted_origins(self) -> CompiledTree:
        """Origins moved along joint axes, so that what lies along them is left to the children.

        Axes that meet, as in shoulders and wrists, then share an origin, through which no force
        turns a joint; offsets along parallel axes add up to one.
        """
        nodes = [Node(**vars(node)) for node in self.nodes]
        shifts: dict[int, Pose] = {}
        for k, node in enumerate(nodes):
            if node.parent in shifts:
                node.placement = shifts[node.parent] @ node.placement
            R, p = node.placement
            axis = _turning_axis(node.group)
            if (
                axis is None
                or node.parent < 0
                or not (isinstance(R, ca.DM) and isinstance(p, ca.DM))
            ):
                continue
            along = axis * float(ca.dot(R @ axis, p))
            children = [child for child in nodes if child.parent == k]
            own = constant(np.asarray(p - R @ along).ravel())
            before = p.nnz() + sum(child.placement.p.nnz() for child in children)
            after = own.nnz() + sum((along + c.placement.p).nnz() for c in children)
            if own.nnz() < p.nnz() and after <= before:
                node.placement = Pose(R, own)
                shifts[k] = Pose(ca.DM.eye(3), along)
        for k, shift in shifts.items():
            nodes[k].inertia = nodes[k].inertia.moved(shift)
            if nodes[k].added_mass.nnz():
                nodes[k].added_mass = moved_matrix(nodes[k].added_mass, shift)
        still = Pose.identity()

        def moved(frames: dict[str, NodeFrame]) -> dict[str, NodeFrame]:
            return {
                name: NodeFrame(k, shifts[k] @ T if k in shifts else T)
                for name, (k, T) in frames.items()
            }

        joint_frames = {
            name: frame._replace(frame=shifts.get(frame.carrier, still) @ frame.frame)
            for name, frame in self.joint_frames.items()
        }
        return replace(
            self,
            nodes=nodes,
            frames=moved(self.frames),
            joints=moved(self.joints),
            joint_frames=joint_frames,
        )


class _Still:
    """Stands for a group where a fixed joint gets a node of its own."""

    dim, nq = 0, 0
    selection = np.zeros((6, 0))

    @staticmethod
    def homogeneous(X: Value) -> Value:
        return ca.DM.eye(4)


def compiled(
    tree: Tree, p: Value | None = None, *, regrouped: bool = False, keep: tuple[str, ...] = ()
) -> CompiledTree:
    """A tree compiled with p for its parameters; where it has none, what was made before.

    None for p are the nominal numbers. Inertias may be `CompiledTree.regrouped`. Fixed joints that
    are kept get a node of their own, so that wrenches through them are known.
    """
    symbols = {} if p is None else {name: p[i] for i, name in enumerate(tree.parameters)}

    def make() -> CompiledTree:
        if regrouped:
            return compiled(tree, p, keep=keep).regrouped()
        return _compile(tree, lambda name, value: symbols.get(name, value), keep)

    return make() if symbols else tree.memo(("compiled", regrouped, keep), make)


def _compile(tree: Tree, number: Number, keep: tuple[str, ...]) -> CompiledTree:
    """`number` tells which of the tree's numbers are symbols."""
    made = CompiledTree(
        tree.nq,
        tree.nv,
        _column([number(f"gravity.{a}", x) for a, x in zip("xyz", tree.gravity, strict=True)]),
    )
    made.frames[WORLD] = NodeFrame(-1, Pose.identity())
    for link in tree._links:
        k, T = made.frames[link.parent]
        axes, (own, turn) = T.R, _placement(link, number)
        T = T @ own
        made.joint_frames[link.joint_name] = JointFrame(len(made.nodes), k, axes, T, turn)
        if not link.joint.is_fixed:
            places = tree._coordinates[link.joint_name]
            made.impedances.append(_impedance(link, places, number))
            q, v = places.q.start, places.v.start
            for before, group in link.joint.steps:
                own = places._replace(q=slice(q, q + group.nq), v=slice(v, v + group.dim))
                k, T = _add_node(made, k, T @ Pose.from_matrix(before), group, own)
                q, v = own.q.stop, own.v.stop
            made.bodies.append((link.name, k))
        elif link.joint_name in keep:
            nowhere = JointCoordinates(slice(0, 0), slice(0, 0))
            k, T = _add_node(made, k, T, _Still(), nowhere)  # type: ignore[arg-type]
        made.joints[link.joint_name] = NodeFrame(k, T)
        T = T if link.offset is IDENTITY else T @ Pose.from_matrix(link.offset)
        made.frames[link.name] = NodeFrame(k, T)
        made.link_masses[link.name] = mass, center = _link_mass(link, number)
        if k >= 0:
            own = _link_inertia(link, mass, center, number).moved(T)
            made.nodes[k].inertia = made.nodes[k].inertia + own
            if link.added_mass is not None:
                A = moved_matrix(ca.sparsify(ca.DM(link.added_mass)), T)
                made.nodes[k].added_mass = ca.sparsify(made.nodes[k].added_mass + A)
    for frame in tree._added_frames:
        k, T = made.frames[frame.link]
        made.frames[frame.name] = NodeFrame(k, T @ Pose.from_matrix(frame.placement))
    for name, joint in tree._joint_frames.items():
        made.frames[name] = made.joints[joint]
    return made


def _link_mass(link: Link, number: Number) -> tuple[Value, Value]:
    """Mass and centre of mass of one link in its own frame."""
    own = link.inertia
    if own is None:
        return ca.DM(1, 1), ca.DM(3, 1)
    names = [f"{link.name}.center_of_mass.{a}" for a in "xyz"]
    center = [number(n, float(x)) for n, x in zip(names, own.center_of_mass, strict=True)]
    mass = _column([number(f"{link.name}.mass", own.mass)])
    return mass, _column(center)


def _link_inertia(link: Link, mass: Value, center: Value, number: Number) -> Inertia:
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
    about_center = ca.reshape(_column(entries), 3, 3)
    at_center = Inertia.from_tensor(mass, ca.DM(3, 1), about_center)
    return at_center.moved(Pose(ca.DM.eye(3), center))


def _column(values: list[Any]) -> Value:
    """Column of numbers (a sparse DM) or, if any is a symbol, of expressions."""
    if any(isinstance(value, ca.SX) for value in values):
        return ca.sparsify(ca.vertcat(*values))
    return constant(values)


def _placement(link: Link, number: Number) -> tuple[Pose, Value]:
    """Joint frame in the parent link, and the turn by its parameters in it."""
    names = [f"{link.joint_name}.placement.{a}" for a in ("x", "y", "z", "rx", "ry", "rz")]
    position = [number(n, x) for n, x in zip(names[:3], link.placement[:3, 3], strict=True)]
    turn = [number(n, 0.0) for n in names[3:]]
    R: Value = constant_rotation(link.placement[:3, :3])
    if any(isinstance(x, ca.SX) for x in turn):
        R = R @ SO3.matrix(SO3.exp(ca.SX(ca.vertcat(*turn))))
    return Pose(R, _column(position)), _column(turn)


def _add_node(
    made: CompiledTree, parent: int, T: Pose, group: LieGroup, coordinates: JointCoordinates
) -> tuple[int, Pose]:
    """Append a node; returns its index and the frame after the motion in the node's frame."""
    turn = _axis_turn(group)
    if turn is not None:
        group = group.about((0.0, 0.0, 1.0))  # type: ignore[attr-defined]
        T = T @ turn
    node = Node(parent, T, group, constant(coordinates.scale * group.selection), coordinates)
    made.nodes.append(node)
    return len(made.nodes) - 1, Pose.identity() if turn is None else turn.inverse()


def _axis_turn(group: LieGroup) -> Pose | None:
    """Rotation to a frame whose z is the group's axis, unless that is a coordinate axis."""
    if not isinstance(group, _TURNABLE) or max(np.abs(group.axis)) > 1 - 1e-15:
        return None
    frame = Translation("xyz").about(group.axis).selection[:3]
    return Pose(constant_rotation(frame), ca.DM(3, 1))


def _impedance(link: Link, coordinates: JointCoordinates, number: Number) -> JointImpedance:
    own = link.filled
    values = {
        key: _column(
            [
                number(name, x)
                for name, x in zip(link.numbers_of(key), getattr(own, key), strict=True)
            ]
        )
        for key in ("armature", "damping", "friction", "stiffness")
    }
    return JointImpedance(link, link.joint.group, coordinates, **values)


def _turning_axis(group: LieGroup) -> ca.DM | None:
    """Axis of a group that only turns about one, or screws along it."""
    if not isinstance(group, Helical | type(SO2)):
        return None
    return constant(group.axis)


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

"""TreeLook: how a tree looks: shapes of its file, else capsules between its joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import check_shape
from ...groups import SE3, Helical, check_element
from ...scene import BodyShape, Scene
from ...scene._internal import (
    Color,
    DrawnBody,
    MeshFile,
    SceneJoint,
    Scenery,
    between,
    disc,
    goals_of,
    obstacle_bodies,
    scene_of_states,
)
from ..surroundings._forces import Force
from ..surroundings._look import body_shapes, box_of_inertia, inertia_box
from .compiled._compiled_tree import CompiledTree
from .compiled._functions import Declaration, TreeFunction, function_of
from .tree._link import WORLD, Link, LinkShape
from .tree._tree import Tree

HOUSING: Color = (0.33, 0.36, 0.40, 1.0)
DENSITY = 1300.0  # kg/m³: of links with their drives, which are partly hollow
SLIM, THICK = 0.018, 0.06  # bounds of derived radii, as shares of the reach
TREE_TRAILS = 4  # ends of a tree whose ways are drawn


@dataclass(frozen=True, eq=False)
class TreeLook:
    """Look of a tree, with rotors and thrusters among the forces by link.

    `block` of the state holds the tree's coordinates.
    """

    tree: Tree
    forces: Mapping[str, Sequence[Force]] = field(default_factory=dict)
    block: str = "configuration"

    def bodies(self, notices: list[str]) -> Sequence[DrawnBody]:
        """What does not move, then the moving links with all that is fixed to them."""
        tree, read, missing = self.tree, dict[MeshFile, Any](), dict[str, str]()
        shapes: dict[str, list[BodyShape]] = {name: [] for name in (WORLD, *tree.bodies)}
        reach = _reach(tree)
        carried = carriers(tree)
        for link in tree._links:
            carrier, T = carried[link.name]
            for shape in self._link_shapes(link, reach, read, missing):
                shapes[carrier].append(shape.moved(T))
        for name, shape in _stands(tree, reach):
            carrier, T = carried[name]
            shapes[carrier].append(shape.moved(T))
        if missing:
            notices.append(_told(missing))
        tips = _tips(tree, carried)
        return [
            DrawnBody(name, own, tips.get(name), is_fixed=name == WORLD)
            for name, own in shapes.items()
        ]

    def poses(self, q: np.ndarray) -> np.ndarray:
        """Of the world, then of the moving links."""
        tree = self.tree
        still = np.broadcast_to(SE3.identity, (len(q), 1, 7))
        if not tree.bodies:
            return still
        own = tree.without_symbols() if tree.parameters else tree
        found = np.asarray(body_placements(own)(q))
        return np.concatenate([still, found.reshape(len(q), -1, 7)], axis=1)

    def joints(self, q: np.ndarray) -> Sequence[SceneJoint]:
        """All, as if no loop held them."""
        return tree_joints(self.tree, q)

    def _link_shapes(
        self, link: Link, reach: float, read: dict[MeshFile, Any], missing: dict[str, str]
    ) -> list[BodyShape]:
        """Of the file if they can be read, else derived."""
        for given in (link.visuals, link.collisions):
            found = _read(given, read, missing)
            if found:
                return found
        forces = self.forces.get(link.name, ())
        if forces and link.inertia is not None:
            return [*body_shapes(link.inertia, forces), *_segments(self.tree, link, reach)]
        return derived_shapes(self.tree, link, reach)


@named_options
def tree_scene(
    tree: Tree, q: Any = None, t: Any = None, *, goals: Sequence[Any] = (), obstacles: Any = ()
) -> Scene:
    """What there is to see of configurations: shapes of the file, else capsules between joints.

    Parameters
    ----------
    tree : Multibody
    q : array_like, shape (nq,) or (N, nq), optional
        Configurations; that of all joints at 0 if left out.
    t : array_like, shape (N,), optional
        Their times in s; 0, 1, … if left out.
    goals : sequence of poses, shape (7,)
    obstacles : sequence or mapping of str to obstacle
        Spheres, capsules and half-spaces of `lgcontrol.optimal`, or (center, radius).

    Returns
    -------
    Scene
        Its notices name meshes of the file that could not be read.
    """
    group = tree.configuration
    q = tree.neutral if q is None else check_element("q", q, group, batch=True)
    q = np.atleast_2d(q)
    times = np.arange(len(q), dtype=float) if t is None else check_shape("t", t, (len(q),))
    scenery = Scenery(
        TreeLook(tree, block=""),
        obstacle_bodies(obstacles, times),
        goals_of(goals),
    )
    return scene_of_states(tree.name, group, times, q, scenery)


def body_placements(tree: Tree) -> TreeFunction:
    """``q`` → T_world_body of all bodies as SE3 coordinates, one after the other."""

    def build(made: CompiledTree, q: Value) -> Value:
        poses = made.world_poses(q, [k for _, k in made.bodies])
        found = []
        for name, k in made.bodies:
            T = poses[k] @ made.frames[name].pose
            found.append(SE3.from_matrix(ca.SX(ca.blockcat([[T.R, T.p], [ca.DM(1, 3), ca.DM(1)]]))))
        return ca.vertcat(*found)

    results: dict[str, Any] = {"T": (7 * len(tree.bodies),)}
    return function_of(tree, Declaration("body_placements", "q", results, build))


def tree_joints(tree: Tree, q: np.ndarray) -> list[SceneJoint]:
    """How pages move the bodies: joints of one degree of freedom by their axes, others stay."""
    carried, places, found = carriers(tree), tree._coordinates, []
    for link in tree._links:
        if link.joint.is_fixed:
            continue
        carrier, T = carried[link.parent]
        before = SE3.compose(T, SE3.from_matrix(link.placement))
        own, mimic = places[link.joint_name], link.mimic
        value, twist = 0.0, np.zeros(6)
        steps, at = link.joint.steps, own.of(q)
        if len(steps) == 1 and link.joint.dim == 1:
            before = SE3.compose(before, SE3.from_matrix(steps[0][0]))
            value = float(steps[0][1].log(q[own.q])[0])
            twist = steps[0][1].selection[:, 0]
        else:
            before = SE3.compose(before, SE3.from_matrix(link.joint.transform(at)))
        lower, upper = (float(np.ravel(side)[0]) for side in (link.filled.lower, link.filled.upper))
        found.append(
            SceneJoint(
                link.joint_name,
                link.name,
                carrier,
                before,
                SE3.from_matrix(link.offset),
                np.asarray(twist, dtype=float),
                value,
                lower,
                upper,
                link.joint_name if mimic is None else mimic.joint,
                own.scale,
                own.shift,
            )
        )
    return found


def carriers(tree: Tree) -> dict[str, tuple[str, np.ndarray]]:
    """Of each link the moving link that carries it (or the world), and its pose there."""
    found: dict[str, tuple[str, np.ndarray]] = {WORLD: (WORLD, SE3.identity)}
    for link in tree._links:
        if not link.joint.is_fixed:
            found[link.name] = (link.name, SE3.identity)
            continue
        carrier, T = found[link.parent]
        own = SE3.from_matrix(link.placement @ link.offset)
        found[link.name] = (carrier, SE3.compose(T, own))
    return found


def derived_shapes(tree: Tree, link: Link, reach: float) -> list[BodyShape]:
    """Capsules from the link's joint to those it carries; where there are none the box of inertia.

    Links that carry three joints or more, such as trunks, are boxes too. The exception is an
    inertia of a body larger than the robot, as in files with invented inertias.
    """
    segments = _segments(tree, link, reach)
    ends = {tuple(end.round(6)) for end in _far_ends(tree, link, reach)}
    inertia = link.inertia
    # Where all that a link carries is at its own joint, as in wrists, the housing is enough.
    is_hub = not ends and any(other.parent == link.name for other in tree._links)
    if inertia is None or inertia.mass <= 0 or 0 < len(ends) < 3 or is_hub:
        return segments
    size, _ = inertia_box(inertia)
    is_alone = len(tree.bodies) == 1
    return (
        segments if size.max() > reach and not is_alone else [*box_of_inertia(inertia), *segments]
    )


def _far_ends(tree: Tree, link: Link, reach: float) -> list[np.ndarray]:
    """Ends that are not at the link's joint."""
    start = _start(link)
    return [end for end in _ends(tree, link) if np.linalg.norm(end - start) > 0.02 * reach]


def _segments(tree: Tree, link: Link, reach: float) -> list[BodyShape]:
    start, ends = _start(link), _far_ends(tree, link, reach)
    length = sum(float(np.linalg.norm(end - start)) for end in ends)
    radius = _radius(tree, link, length, reach)
    return [between(start, end, radius) for end in ends] + _housing(link, start, radius)


def _housing(link: Link, start: np.ndarray, radius: float) -> list[BodyShape]:
    """A cylinder about the axis of a joint that turns."""
    steps = link.joint.steps
    if len(steps) != 1 or not isinstance(steps[0][1], Helical):
        return []
    axis = np.linalg.inv(link.offset)[:3, :3] @ steps[0][1].selection[3:, 0]
    return [disc(start, axis, 1.15 * radius, 2.5 * radius, HOUSING)] if axis.any() else []


def _radius(tree: Tree, link: Link, length: float, reach: float) -> float:
    """Of a rod with the link's mass, next to that of all links as one rod, within bounds."""
    mean = float(np.clip(_mean_radius(tree), SLIM * reach, THICK * reach)) or 0.01
    mass = 0.0 if link.inertia is None else link.inertia.mass
    own = np.sqrt(mass / (np.pi * DENSITY * max(length, 4 * mean)))
    return float(np.clip(own, 0.6 * mean, 1.3 * mean))


def _mean_radius(tree: Tree) -> float:
    """Of a rod with the mass and length of all links that have a length."""

    def make() -> float:
        mass = length = 0.0
        for link in tree._links:
            ends = _ends(tree, link)
            if link.inertia is not None and 0 < len(ends) < 3:
                mass += link.inertia.mass
                length += sum(float(np.linalg.norm(end - _start(link))) for end in ends)
        return float(np.sqrt(mass / (np.pi * DENSITY * length))) if length > 0 else 0.0

    return tree.memo(("mean radius",), make)


def _start(link: Link) -> np.ndarray:
    """Origin of the joint in the axes of the link."""
    return np.linalg.inv(link.offset)[:3, 3]


def _ends(tree: Tree, link: Link) -> list[np.ndarray]:
    """Joints that a link carries, or the frames on it: where loops are closed, and tools."""
    ends = [other.placement[:3, 3] for other in tree._links if other.parent == link.name]
    if ends:
        return ends
    return [frame.placement[:3, 3] for frame in tree._added_frames if frame.link == link.name]


def _stands(tree: Tree, reach: float) -> list[tuple[str, BodyShape]]:
    """A foot below each joint that the world carries and that is no base that moves freely."""
    if any(link.visuals for link in tree._links):
        return []
    return [
        (
            WORLD,
            disc(
                link.placement[:3, 3], (0, 0, 1), 1.6 * THICK * reach, 0.4 * THICK * reach, HOUSING
            ),
        )
        for link in tree._links
        if link.parent == WORLD and link.joint.dim < 2
    ]


def _reach(tree: Tree) -> float:
    """Longest way through the joints, m; that of the largest inertia where all joints are one."""
    ways = {WORLD: 0.0}
    for link in tree._links:
        step = float(np.linalg.norm(link.placement[:3, 3])) if link.parent != WORLD else 0.0
        ways[link.name] = ways[link.parent] + step
    longest = max(ways.values())
    if longest > 1e-9:
        return longest
    sizes = [inertia_box(link.inertia)[0].max() for link in tree._links if link.inertia is not None]
    return float(max(sizes, default=0.0)) or 1.0


def _tips(tree: Tree, carried: Mapping[str, tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Points of the bodies at the ends of the tree whose ways are drawn."""
    parents = {carried[link.parent][0] for link in tree._links if not link.joint.is_fixed}
    ends = [name for name in tree.bodies if name not in parents]
    free = [link.name for link in tree._links if link.joint.dim >= 3 and link.parent == WORLD]
    if len(ends) > TREE_TRAILS or (free and len(ends) > 1):
        ends = []
    tips = {name: np.zeros(3) for name in (*ends, *free)}
    places = [(carrier, T[:3]) for carrier, T in carried.values()]
    places += [
        (carried[frame.link][0], SE3.act(carried[frame.link][1], frame.placement[:3, 3]))
        for frame in tree._added_frames
    ]
    for carrier, place in places:
        if carrier in ends and np.linalg.norm(place) > np.linalg.norm(tips[carrier]):
            tips[carrier] = place
    return tips


def _read(
    given: Sequence[LinkShape], read: dict[MeshFile, Any], missing: dict[str, str]
) -> list[BodyShape]:
    """Shapes with the meshes of their files, each read once; others are missing."""
    found = []
    for own in given:
        if own.file is None:
            found.append(own.shape)
            continue
        try:
            if own.file not in read:
                read[own.file] = own.file.read()
            found.append(replace(own.shape, geometry=read[own.file]))
        except (OSError, ValueError) as error:
            missing[own.file.filename] = str(error)
    return found


def _told(missing: Mapping[str, str]) -> str:
    names = ", ".join(dict.fromkeys(name.rpartition("/")[2] for name in missing))
    few = f"{len(missing)} mesh{'es' * (len(missing) > 1)} not drawn"
    return (
        f"{few}: {names}. The first: {next(iter(missing.values()))}. Packages are given as "
        "Multibody.from_urdf(…, packages=[folder])"
    )

"""Tree: links, joints and frames, and what follows from them; nothing here computes motion."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from ....codegen import Value, named_options
from ....codegen._internal import (
    Memo,
    UnknownNameError,
    ask_degrees,
    check_known,
    check_one_by_one,
    check_shape,
    in_degrees,
    level_outside,
)
from ....groups import SE3, LieGroup, Product
from ....systems import Parameter
from ....systems._internal import FREE_FALL
from ..._coefficients import unknown_parameter
from ...inertia._inertia import SpatialInertia
from ...surroundings._surroundings import check_added_mass
from ._composition import (
    attached_frames,
    attached_links,
    changed_link,
    locked_links,
    numbers_of,
    reframed_frames,
    reframed_links,
)
from ._link import (
    IDENTITY,
    WORLD,
    AddedFrame,
    Joint,
    JointProperties,
    Link,
    Mimic,
    as_placement,
    make_link,
    name_of_steps,
)

AnyTree = TypeVar("AnyTree", bound="Tree")
"""A tree's own class: what is made of it again has it too."""


STRONGEST = 300.0  # m/s², more than on the sun: gravity in other units


class JointCoordinates(NamedTuple):
    """Place of a joint's coordinates, ``q_joint = scale · q + shift``."""

    q: slice  # q, v: among the tree's coordinates and velocities; those of the leader for a mimic
    v: slice
    scale: float = 1.0  # multiplier and offset of a mimic; else 1 and 0
    shift: float = 0.0

    def of(self, q: Value) -> Value:
        """The joint's own coordinates among the tree's."""
        own = q[self.q]
        return own if self.scale == 1.0 and self.shift == 0.0 else self.scale * own + self.shift


@named_options
class Tree(Memo):
    """Links with the joints that carry them, added frames, gravity: what `Multibody` computes with.

    Parameters
    ----------
    name : str
    gravity : array_like, shape (3,)
        Gravitational acceleration in the world [m/s²].
    """

    def __init__(self, name: str = "multibody", gravity: Any = FREE_FALL) -> None:
        self.name = name
        self.gravity: tuple[float, ...] = tuple(
            float(x) for x in check_shape("gravity", gravity, (3,))
        )
        if max(map(abs, self.gravity)) > STRONGEST:
            warnings.warn(
                f"gravity = {list(self.gravity)} m/s² is more than on the sun: is it in mm/s²? "
                "Give it in m/s², as in gravity=[0, 0, -9.81]",
                stacklevel=level_outside(),
            )
        self.parameters: tuple[str, ...] = ()
        self._added_links: tuple[Link, ...] = ()
        self._added_frames: tuple[AddedFrame, ...] = ()

    # -- building -----------------------------------------------------------------------------

    @named_options(own="inertia mimic")
    def add_body(
        self,
        name: str,
        inertia: SpatialInertia | None = None,
        joint: str | LieGroup | Joint = "fixed",
        parent: str = WORLD,
        placement: Any = None,
        *,
        joint_name: str | None = None,
        properties: JointProperties | None = None,
        mimic: Mimic | None = None,
        offset: Any = None,
        **options: Any,
    ) -> Self:
        """Tree with one more link, ``T_parent_link(q) = placement · joint motion · offset``.

        Parameters
        ----------
        name : str
        inertia : SpatialInertia, optional
            None for a link without mass.
        joint : str, LieGroup or Joint
            Kind of joint (see `Joint.of`), a group, or a composite.
        parent : str
            Link that carries it, or "world".
        placement : array_like, optional
            Joint frame at rest in the parent's frame: SE3 coordinates (7,), a homogeneous
            matrix (4, 4) or a position (3,) [m].
        joint_name : str, optional
            By default the name of the link.
        properties : JointProperties, optional
            Drive, losses, spring and limits.
        mimic : Mimic, optional
            Couples the joint to another one's coordinate.
        offset : array_like, optional
            Link frame in the joint frame after the motion; most descriptions have none.
        **options
            Options of the kind of joint: ``axis``, ``pitch``, ``axis2``.

        Raises
        ------
        ValueError
            If a name is taken, or numbers do not fit the joint.
        KeyError
            If the parent or the leader of a mimic is unknown.
        """
        link = make_link(
            name,
            inertia,
            joint,
            parent,
            placement,
            joint_name=joint_name,
            properties=properties,
            mimic=mimic,
            offset=offset,
            **options,
        )
        units = link.joint.group.tangent_units
        for what in ("lower", "upper"):
            limits = np.ravel(getattr(link.properties, what))
            angle = in_degrees([x for x, unit in zip(limits, units, strict=False) if unit == "rad"])
            if angle:
                ask_degrees(f"{what} limit of joint {link.joint_name!r}", angle)
        return self._grown(link)

    def add_frame(self, name: str, link: str, placement: Any = None) -> Self:
        """Tree with one more named frame.

        Parameters
        ----------
        name : str
        link : str
            Link or added frame on which it stands, or "world".
        placement : array_like, optional
            T_link_frame: SE3 coordinates (7,), homogeneous matrix (4, 4) or position (3,) [m].

        Raises
        ------
        ValueError
            If the name is that of another frame.
        KeyError
            If there is no such link.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody
        >>> tree = Multibody().add_body("rod", None, "revolute").add_frame("tip", "rod", [1, 0, 0])
        >>> tree.position("tip")([0.0])
        array([1., 0., 0.])
        """
        frame = AddedFrame(name, link, as_placement(f"placement of {name!r}", placement))
        return self._grown(frame)

    @named_options
    def attach(self, tree: Tree, link: str, placement: Any = None, prefix: str = "") -> Self:
        """Tree that carries another one, for example a vehicle with an arm.

        Parameters
        ----------
        tree : Multibody
            What stands on its world becomes carried by the link.
        link : str
            Link of this tree.
        placement : array_like, optional
            World of the other tree in the link's frame.
        prefix : str
            Put before all names of the other tree.

        Returns
        -------
        Multibody
            With the symbolic parameters of both; those of the other tree's gravity are dropped.

        Raises
        ------
        KeyError
            If there is no such link.
        ValueError
            If the trees have different gravity, or a name is taken.
        """
        check_known("link", (WORLD, *self.links), link)
        if tree.gravity != self.gravity:
            raise ValueError(
                f"{tree.name} has the gravity {tree.gravity}, {self.name} that carries it has "
                f"{self.gravity}: build both with the same gravity=..."
            )
        T = as_placement("placement", placement)
        joined = self._with(
            [*self._added_links, *attached_links(tree._added_links, link, T, prefix)],
            [*self._added_frames, *attached_frames(tree._added_frames, link, T, prefix)],
        )
        own = (prefix + name for name in tree.parameters if not name.startswith("gravity."))
        joined.parameters = (*self.parameters, *own)
        return joined

    def lock(self, **positions: Any) -> Self:
        """Tree with joints held at positions; joints that mimic them are held too.

        Drives, losses, springs and limits of a held joint are gone, and with them the symbolic
        parameters that stood for their numbers (see `symbolic`).

        Parameters
        ----------
        **positions : array_like
            Coordinates by joint name (``lock(**{"odd-name": 0.3})`` for names that are no words).

        Raises
        ------
        KeyError
            If there is no such joint.
        ValueError
            If coordinates are not on the joint's group (see `check_element`).

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody
        >>> two = Multibody().add_body("a", None, "revolute").add_body("b", None, "revolute", "a")
        >>> two.lock(a=0.5).joints
        ('b',)
        """
        check_known("joint", self.joints, *positions)
        held = self._with(locked_links(self._added_links, positions))
        left = held.named_numbers
        held.parameters = tuple(name for name in self.parameters if name in left)
        return held

    def move_frames(self, **frames: Any) -> Self:
        """The same mechanism with other link frames: nothing but their placement changes.

        Parameters
        ----------
        **frames : array_like
            New frame of each named link, in the old one's coordinates.
        """
        moves = {}
        for name, value in frames.items():
            self.link(name)
            moves[name] = as_placement(f"frame of {name!r}", value)
        return self._with(
            reframed_links(self._added_links, moves), reframed_frames(self._added_frames, moves)
        )

    @named_options
    def symbolic(self, *names: str) -> Self:
        """Tree in which the named numbers are symbols: functions get an argument ``p``.

        They are added to those that are symbols already, which stay first in ``p``.

        Parameters
        ----------
        *names : str
            ``"link.mass"``, ``"link.center_of_mass.x"``, ``"link.inertia.xy"`` (about the centre
            of mass), ``"joint.damping"``, ``"joint.friction"``, ``"joint.armature"``,
            ``"joint.stiffness"``, ``"joint.placement.x"``, ``"joint.placement.rx"``
            (turn about the joint frame's axes), ``"gravity.z"``; or the beginning of several:
            ``"link.inertia"``, ``"link"``.

        Returns
        -------
        Multibody
            ``p`` has the nominal values when it is left out.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> tree.symbolic("ball.mass").mass_matrix([0.0], p=[3.0])
        array([[3.]])
        """
        check_one_by_one("symbolic", names)
        known = self.named_numbers
        found = dict.fromkeys(self.parameters)
        for name in names:
            matches = [name] if name in known else [k for k in known if k.startswith(f"{name}.")]
            if not matches:
                raise UnknownNameError(unknown_parameter(name, known))
            found |= dict.fromkeys(matches)
        changed = self._with()
        changed.parameters = tuple(found)
        return changed

    def with_parameters(self, values: Any) -> Self:
        """Tree with other values of some numbers; a symbol stays a symbol.

        ``tree.with_parameters(p).f(q)`` is ``tree.f(q, p=p)``, and results (`base_parameters`,
        limits, summaries) are those of the new values.

        Parameters
        ----------
        values : array_like, shape (n_parameters,), or mapping of str to float
            One number for each of `parameters`; or any numbers by the names that `symbolic`
            takes in full, symbols or not.

        Returns
        -------
        Multibody
            Turns ``joint.placement.rx`` are in its placements: from there they count from zero.

        Raises
        ------
        KeyError
            If there is no such parameter.
        ValueError
            If a count is wrong, a number not finite, a mass, a moment of inertia or a property of a
            joint negative. Inertias that no body has are taken, with a warning.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y").symbolic("ball.mass")
        >>> tree.with_parameters([3.0]).mass_matrix([0.0])
        array([[3.]])
        >>> tree.with_parameters({"ball.mass": 4.0}).parameter_values
        array([4.])
        """
        known = self.named_numbers
        if isinstance(values, Mapping):
            given = {name: float(check_shape(name, x, ())) for name, x in values.items()}
        else:
            p = check_shape("parameter values", values, (len(self.parameters),))
            given = dict(zip(self.parameters, p.tolist(), strict=True))
        for name, x in given.items():
            if name not in known:
                raise UnknownNameError(unknown_parameter(name, known))
            known[name].check(x)
        changed = {name: x for name, x in given.items() if x != known[name].nominal}
        axes = zip("xyz", self.gravity, strict=True)
        gravity = [changed.get(f"gravity.{axis}", x) for axis, x in axes]
        links = [changed_link(link, changed) for link in self._added_links]
        return self._with(links, gravity=gravity)

    def without_symbols(self) -> Self:
        """The tree with numbers only: what a fit of other numbers starts from."""
        changed = self._with()
        changed.parameters = ()
        return changed

    def with_properties(self, **joints: JointProperties) -> Self:
        """Tree with other drives, losses, springs or limits of the named joints."""
        moving = [link.joint_name for link in self._links if not link.joint.is_fixed]
        check_known("joint", moving, *joints)
        return self._with(
            replace(link, properties=joints.get(link.joint_name, link.properties))
            for link in self._added_links
        )

    def with_added_mass(self, added_mass: Mapping[str, Any]) -> Self:
        """Tree whose links move in a fluid at rest, which adds to their inertia.

        Dynamics, their first derivatives, kinetic energy and momentum have it; weight acts on the
        masses of links alone. What knows inertias of rigid bodies only (regressors, closed forms,
        second derivatives, …) refuses such a tree. A current is given to `Multibody.system`.

        Parameters
        ----------
        added_mass : mapping of str to array_like of shape (6, 6), or None
            For each named link the symmetric matrix A of the fluid's kinetic energy ``½ Vᵀ A V``,
            or None for none. V = [v; ω] is the body twist, linear part first, in the link's frame
            and about its origin. Other links keep what they have.

        Raises
        ------
        KeyError
            If there is no such link.
        ValueError
            If a matrix is not symmetric, or negative.

        References
        ----------
        Fossen, "Handbook of Marine Craft Hydrodynamics and Motion Control", 2nd ed., section 8.1.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.sphere(2.0, 0.1)
        >>> tree = Multibody().add_body("ball", ball, "prismatic", axis="z")
        >>> wet = tree.with_added_mass({"ball": np.diag([1.0, 1.0, 1.0, 0, 0, 0])})
        >>> wet.mass_matrix([0.0]).round(12).tolist(), wet.gravity_forces([0.0]).round(6).tolist()
        ([[3.0]], [19.62])
        """
        checked: dict[str, np.ndarray | None] = {}
        for name, A in added_mass.items():
            self.link(name)
            A = None if A is None else check_added_mass(f"link {name!r}", A, SE3)
            checked[name] = A if A is not None and A.any() else None
        return self._with(
            replace(link, added_mass=checked.get(link.name, link.added_mass))
            for link in self._added_links
        )

    # -- what it is ---------------------------------------------------------------------------

    @property
    def links(self) -> tuple[str, ...]:
        """Names of all links in depth-first order, children in the order they were added."""
        return tuple(link.name for link in self._links)

    @property
    def moving_links(self) -> tuple[str, ...]:
        """Names of the links whose joints have coordinates of their own, in the order of q."""
        return tuple(link.name for link in self._moving_links)

    def link(self, name: str) -> Link:
        """A link, with the joint that carries it.

        Parameters
        ----------
        name : str
            One of `links`.

        Returns
        -------
        Link
            With ``joint``, ``parent``, ``placement``, ``inertia``, ``properties`` and the like.

        Raises
        ------
        KeyError
            If there is no such link; the message lists them.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody
        >>> tree = Multibody().add_body("rod", None, "revolute", axis="y")
        >>> tree.link("rod").joint
        Joint(revolute about y)
        """
        check_known("link", self._index.links, name)
        return self._index.links[name]

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints with coordinates of their own, in the order of q and v."""
        return tuple(link.joint_name for link in self._moving_links)

    @property
    def bodies(self) -> tuple[str, ...]:
        """Names of the links that joints move."""
        return tuple(link.name for link in self._links if not link.joint.is_fixed)

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all frames: "world", links, added ones, joints (the frame after the motion)."""
        added = (frame.name for frame in self._added_frames)
        return (WORLD, *self.links, *added, *self._joint_frames)

    @cached_property
    def configuration(self) -> Product:
        """Configuration space: the product of the joints' groups.

        Blocks have the joints' names, with an underscore for what is no letter or digit.
        """
        blocks: dict[str, LieGroup] = {}
        for link in self._moving_links:
            name = re.sub(r"\W", "_", link.joint_name)
            while name in blocks:
                name += "_"
            blocks[name] = link.joint.group
        return Product(**blocks)

    @cached_property
    def mass(self) -> float:
        """Mass of everything that joints move [kg]."""
        moved: set[str] = set()
        total = 0.0
        for link in self._links:
            if not link.joint.is_fixed or link.parent in moved:
                moved.add(link.name)
                total += 0.0 if link.inertia is None else link.inertia.mass
        return total

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(link.joint.nq for link in self._moving_links)

    @cached_property
    def nv(self) -> int:
        """Degrees of freedom."""
        return sum(link.joint.dim for link in self._moving_links)

    @property
    def is_coupled(self) -> bool:
        """Whether joints mimic others."""
        return any(link.mimic is not None for link in self._links if not link.joint.is_fixed)

    @property
    def neutral(self) -> np.ndarray:
        """Coordinates with every joint at its identity, shape (nq,)."""
        return self.configuration.identity

    @property
    def limits(self) -> dict[str, np.ndarray]:
        """Limits of the degrees of freedom: lower, upper, velocity, effort, shape (nv,) each.

        A joint that mimics hands its limits on to its leader: a bound on ``m q + b`` is one on q.
        Only the leader is driven, so its effort alone counts.
        """
        unlimited = {"lower": -np.inf, "upper": np.inf, "velocity": np.inf, "effort": np.inf}
        found = {key: np.full(self.nv, value) for key, value in unlimited.items()}
        for link in self._links:
            if link.joint.is_fixed:
                continue
            own = link.filled
            _, at, scale, shift = self._coordinates[link.joint_name]
            if scale == 0.0:
                continue
            bounds = (np.array([own.lower, own.upper]) - shift) / scale
            found["lower"][at] = np.maximum(found["lower"][at], bounds.min(axis=0))
            found["upper"][at] = np.minimum(found["upper"][at], bounds.max(axis=0))
            speed = np.array(own.velocity) / abs(scale)
            found["velocity"][at] = np.minimum(found["velocity"][at], speed)
            if link.mimic is None:
                found["effort"][at] = own.effort
        return found

    @property
    def named_numbers(self) -> dict[str, Parameter]:
        """Every number that may become a parameter, by name."""
        found = {
            f"gravity.{axis}": Parameter(f"gravity.{axis}", "m/s²", x)
            for axis, x in zip("xyz", self.gravity, strict=True)
        }
        for link in self._links:
            found |= numbers_of(link)
        return found

    @property
    def parameter_values(self) -> np.ndarray:
        """Nominal values of the parameters, shape (n_parameters,)."""
        known = self.named_numbers
        return np.array([known[name].nominal for name in self.parameters])

    def __repr__(self) -> str:
        """Name, sizes and mass."""
        return (
            f"{type(self).__name__}({self.name!r}, {len(self.bodies)} bodies, "
            f"{self.nv} degrees of freedom, {self.mass:.6g} kg)"
        )

    def summary(self) -> str:
        """The tree as text: a line for each link, with joint and mass."""
        depth, lines = {WORLD: 0}, [repr(self)]
        for link in self._links:
            depth[link.name] = depth[link.parent] + 1
            lines.append("  " * depth[link.name] + _line(link))
        return "\n".join(lines)

    # -- inside ---------------------------------------------------------------------------------

    def _with(
        self,
        links: Iterable[Link] | None = None,
        frames: Iterable[AddedFrame] | None = None,
        gravity: Any = None,
    ) -> Self:
        changed = type(self)(self.name, self.gravity if gravity is None else gravity)
        changed.parameters = self.parameters
        changed._added_links = self._added_links if links is None else tuple(links)
        changed._added_frames = self._added_frames if frames is None else tuple(frames)
        changed._coordinates  # noqa: B018  checks names, parents and leaders of mimics
        return changed

    def _grown(self, new: Link | AddedFrame) -> Self:
        """The tree with one more link or frame; only that one is checked."""
        grown = type(self)(self.name, self.gravity)
        grown.parameters = self.parameters
        grown._added_links, grown._added_frames = self._added_links, self._added_frames
        own = self._index
        index = _Index(own.links.copy(), own.joints.copy(), own.frames.copy())
        if isinstance(new, Link):
            grown._added_links += (new,)
            index.add_link(new)
            if new.mimic is not None and not new.joint.is_fixed:
                _check_leader(new, index.joints)
        else:
            grown._added_frames += (new,)
            index.add_frame(new)
        grown.__dict__["_index"] = index
        return grown

    @cached_property
    def _index(self) -> _Index:
        index = _Index({}, {}, {})
        for link in self._added_links:
            index.add_link(link)
        for frame in self._added_frames:
            index.add_frame(frame)
        return index

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        """All links in depth-first order, children in the order they were added."""
        children: dict[str, list[Link]] = {}
        for link in self._index.links.values():
            children.setdefault(link.parent, []).append(link)
        ordered: list[Link] = []
        waiting = children.get(WORLD, [])[::-1]
        while waiting:
            ordered.append(waiting.pop())
            waiting.extend(reversed(children.get(ordered[-1].name, ())))
        return tuple(ordered)

    @cached_property
    def _moving_links(self) -> tuple[Link, ...]:
        return tuple(link for link in self._links if link.moves_alone)

    @cached_property
    def _coordinates(self) -> dict[str, JointCoordinates]:
        """Of each joint that moves, by name."""
        places: dict[str, JointCoordinates] = {}
        q = v = 0
        for link in self._moving_links:
            nq, dim = link.joint.nq, link.joint.dim
            places[link.joint_name] = JointCoordinates(slice(q, q + nq), slice(v, v + dim))
            q, v = q + nq, v + dim
        for link in self._links:
            own = link.mimic
            if own is not None and not link.joint.is_fixed:
                _check_leader(link, self._index.joints)
                leader = places[own.joint]
                mimic = JointCoordinates(leader.q, leader.v, own.multiplier, own.offset)
                places[link.joint_name] = mimic
        return places

    @cached_property
    def _joint_frames(self) -> dict[str, str]:
        """Joint of each joint frame that is not its link's frame under the same name."""
        taken = {WORLD, *self._index.links, *self._index.frames}
        found = {}
        for link in self._links:
            name = link.joint_name
            if name == link.name and (link.offset is IDENTITY or (link.offset == IDENTITY).all()):
                continue
            while name in taken:
                name = f"joint {name}"
            taken.add(name)
            found[name] = link.joint_name
        return found

    def __getstate__(self) -> dict[str, Any]:
        """What the tree is made of; functions are traced again when needed."""
        keep = ("name", "gravity", "parameters", "_added_links", "_added_frames", "_is_made")
        return {key: self.__dict__[key] for key in keep if key in self.__dict__}


class _Index(NamedTuple):
    """Links by their names and by those of their joints, and added frames by name."""

    links: dict[str, Link]
    joints: dict[str, Link]
    frames: dict[str, AddedFrame]

    def add_link(self, link: Link) -> None:
        """Refuse names that are taken, and parents that are not there yet."""
        if link.name == WORLD or link.name in self.links:
            raise ValueError(f"two links are called {link.name!r}; names must differ")
        if link.joint_name in self.joints:
            raise ValueError(f"two joints are called {link.joint_name!r}; names must differ")
        if link.parent != WORLD and link.parent not in self.links:
            known = [WORLD, *self.links]
            check_known("parent link", known, link.parent, where=f"link {link.name!r}")
        if link.name in self.frames:
            raise ValueError(f"two frames are called {link.name!r}; names must differ")
        self.links[link.name] = self.joints[link.joint_name] = link

    def add_frame(self, frame: AddedFrame) -> None:
        """Refuse a name that is taken, and what is neither link nor frame to stand on."""
        if frame.name == WORLD or frame.name in self.links or frame.name in self.frames:
            raise ValueError(f"two frames are called {frame.name!r}; names must differ")
        if frame.link != WORLD and frame.link not in self.links and frame.link not in self.frames:
            known = [WORLD, *self.links, *self.frames]
            check_known("link", known, frame.link, where=f"frame {frame.name!r}")
        self.frames[frame.name] = frame


def _check_leader(link: Link, joints: Mapping[str, Link]) -> None:
    """Refuse a mimic without a leader, or one of which either has not one coordinate."""
    name = link.mimic.joint if link.mimic is not None else ""
    alone = [key for key, other in joints.items() if other.moves_alone]
    check_known("leading joint", alone, name, where=f"joint {link.joint_name!r} mimics {name!r}")
    leader = joints[name]
    if (link.joint.nq, link.joint.dim, leader.joint.nq) != (1, 1, 1):
        raise ValueError(
            f"joint {link.joint_name!r} cannot mimic {name!r}: both need one coordinate "
            "(a revolute joint with an unwrapped angle, not a continuous one)"
        )


def _line(link: Link) -> str:
    mass = f"{link.inertia.mass:.6g} kg" if link.inertia is not None else "no mass"
    kind = name_of_steps(link.joint.steps)
    own = link.joint_name != link.name and not link.joint.is_fixed
    text = f"{link.name}: {mass}, {f'{link.joint_name} ' if own else ''}{kind}"
    if link.mimic is not None:
        text += f" = {link.mimic.multiplier:g} × {link.mimic.joint} + {link.mimic.offset:g}"
    return text

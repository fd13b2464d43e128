"""Multibody: a tree of rigid bodies whose joints are Lie groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

import casadi as ca
import numpy as np

from ....codegen import check_shape, unknown_name
from ....groups import LieGroup, Product
from ..._inertia import SpatialInertia
from .._recipes import RECIPES
from ..closed_forms._functions import ClosedFormFunctions
from ..derivatives._functions import SecondDerivativeFunctions
from ..dynamics._functions import TreeFunctions
from ..dynamics._representation_functions import RepresentationFunctions
from ..kinematics._functions import HigherOrderFunctions
from ..plan._plan import Plan, make_plan
from ..plan._recipe import Recipe
from ..plan._singular import refuse_singular
from ..plan._spatial import Motion
from ..plan._tree_function import TreeFunction
from ._joints import Joint
from ._link import WORLD, Frame, JointProperties, Link, Mimic
from ._parameters import expand_names, given_values, nominal_values, with_values
from ._placement import as_placement
from ._structure import (
    Place,
    check_frames,
    configuration_space,
    coordinate_places,
    depth_first,
    joint_frames,
    moves_alone,
)
from ._system import multibody_system

if TYPE_CHECKING:
    from ....io import RobotDescription
GRAVITY = (0.0, 0.0, -9.81)


class Multibody(
    TreeFunctions,
    RepresentationFunctions,
    HigherOrderFunctions,
    ClosedFormFunctions,
    SecondDerivativeFunctions,
):
    """A tree of rigid bodies, with every quantity of its mechanics as a model function.

    Trees do not change: `add_body` and its like return new ones. Start with an empty tree and add
    bodies, or read a file with `from_urdf`.

    Parameters
    ----------
    name : str
    gravity : array_like, shape (3,)
        Gravitational acceleration in the world [m/s²].

    Attributes
    ----------
    configuration : LieGroup
        Product of the joints' groups, by joint name.
    nq, nv : int
        Number of coordinates, and degrees of freedom.
    joints : tuple of str
        Joints with degrees of freedom of their own, in the order of q and v: depth-first,
        children in the order they were added.
    bodies : tuple of str
        Links that a joint moves; what is fixed to a link belongs to its body. External wrenches,
        `body_velocities` and the like have one row for each.
    links, moving_links : tuple of str
        All links, fixed ones too, and those that move on their own; `link` gives one with its
        joint.
    frames : tuple of str
        Names that `placement`, `jacobian`, … take: "world", all links, added frames, joints. A
        joint's frame is called "joint NAME" where NAME is that of another frame.
    parameters : tuple of str
        Names of the symbolic parameters (see `parametric`).

    Notes
    -----
    A tree's functions are those of its bodies and joints alone. What surrounds it (forces on links,
    added mass, a current) is given to `system` and known to that `System` only: in water
    ``system.f`` has the accelerations, and controllers are given the system besides the tree.

    Values are not checked in a tree's functions, which are made for loops: coordinates that are off
    their group (a quaternion of length 2 or 0) give wrong numbers without notice.
    ``configuration.normalize(q)`` brings them back, `lgcontrol.groups.check_element` refuses them.

    CasADi has no tensors: where NumPy has the shape (nv, nv, nv), symbols give the nv × nv² matrix
    of its slices ``[T[:, :, 0], T[:, :, 1], …]``.

    Examples
    --------
    A pendulum: a rod of 1 m on a hinge about y.

    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> pendulum = Multibody("pendulum").add_body("rod", rod, "revolute", axis="y")
    >>> pendulum.mass_matrix([0.3])
    array([[0.66666667]])
    >>> pendulum.gravity_forces(np.array([[0.0], [np.pi / 2]])).round(3).tolist()
    [[0.0], [9.81]]
    """

    def __init__(self, name: str = "multibody", gravity: Any = GRAVITY) -> None:
        self.name = name
        self.gravity: tuple[float, ...] = tuple(
            float(x) for x in check_shape("gravity", gravity, (3,))
        )
        self.parameters: tuple[str, ...] = ()
        self._added_links: tuple[Link, ...] = ()
        self._added_frames: tuple[Frame, ...] = ()

    @classmethod
    def from_urdf(
        cls,
        source: str | PathLike[str] | RobotDescription,
        *,
        base: str | LieGroup | Joint = "fixed",
        locked: Mapping[str, Any] | None = None,
        on_finding: Literal["warn", "raise", "ignore"] = "warn",
        mimic: bool = True,
        losses: bool = True,
        gravity: Any = GRAVITY,
    ) -> Multibody:
        """Tree of a URDF file.

        Parameters
        ----------
        source : path or RobotDescription
            The file, or what `lgcontrol.io.read_urdf` made of it.
        base : str, LieGroup or Joint
            How the root link stands in the world: "fixed", "free" (its joint is called
            "root_joint"), or any joint.
        locked : mapping of str to coordinates, optional
            Joints to hold at a position.
        on_finding : {"warn", "raise", "ignore"}
            What to do about suspicious content, among it inertias that no body has. Unless it is
            refused, negative damping and friction count as none, and a negative effort or velocity
            as its magnitude; a largest effort of 0 stays: that joint cannot be driven.
        mimic : bool
            Whether joints that mimic follow their leader (they have no coordinate then); without,
            they move on their own.
        losses : bool
            Whether damping and friction of the file count. Pinocchio's functions leave them out.
        gravity : array_like, shape (3,)

        Returns
        -------
        Multibody

        Raises
        ------
        UrdfError
            If the file cannot be read, or has findings and they are refused.
        """
        from ._urdf import tree_from_urdf

        return tree_from_urdf(
            cls,
            source,
            base=base,
            locked=locked or {},
            on_finding=on_finding,
            mimic=mimic,
            losses=losses,
            gravity=gravity,
        )

    @classmethod
    def from_screws(
        cls,
        screws: Mapping[str, Any],
        inertias: Mapping[str, SpatialInertia],
        *,
        parents: Mapping[str, str] | None = None,
        name: str = "multibody",
        gravity: Any = GRAVITY,
    ) -> Multibody:
        """Tree without joint frames: screw axes in the world at the reference configuration.

        All body frames coincide with the world frame at q = 0, and every joint is the product
        factor ``exp(Y q)`` of its screw Y.

        Parameters
        ----------
        screws : mapping of str to array_like, shape (6,)
            Screw ``[v; ω]`` of the joint of each body, in world coordinates: for an axis along the
            unit vector n through the point r, ``[r × n + pitch n; n]``; for a slide, ``[n; 0]``.
        inertias : mapping of str to SpatialInertia
            Inertias in world coordinates at the reference configuration.
        parents : mapping of str to str, optional
            Body that carries each body; by default the one before it.
        name : str
        gravity : array_like, shape (3,)

        Returns
        -------
        Multibody

        References
        ----------
        Müller 2018, section 4.4.

        Examples
        --------
        >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, 1.5])
        >>> tree = Multibody.from_screws({"rod": [-2, 0, 0, 0, 1, 0]}, {"rod": rod})
        >>> tree.mass_matrix([0.0])
        array([[0.66666667]])
        """
        from ._from_screws import tree_from_screws

        return tree_from_screws(cls(name, gravity), screws, inertias, parents)

    # -- building -----------------------------------------------------------------------------

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
    ) -> Multibody:
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

        Returns
        -------
        Multibody

        Raises
        ------
        ValueError
            If a name is taken, or numbers do not fit the joint.
        KeyError
            If the parent or the leader of a mimic is unknown.
        """
        link = Link(
            name,
            Joint.of(joint, **options),
            parent,
            as_placement(f"placement of {name!r}", placement),
            inertia,
            joint_name or name,
            properties or JointProperties(),
            mimic,
            as_placement(f"offset of {name!r}", offset),
        )
        return self._with(links=(*self._added_links, link))

    def add_frame(self, name: str, link: str, placement: Any = None) -> Multibody:
        """Tree with one more named frame.

        Parameters
        ----------
        name : str
        link : str
            Link or added frame on which it stands, or "world".
        placement : array_like, optional
            T_link_frame: SE3 coordinates (7,), homogeneous matrix (4, 4) or position (3,) [m].

        Returns
        -------
        Multibody

        Raises
        ------
        ValueError
            If the name is that of another frame.
        KeyError
            If there is no such link.

        Examples
        --------
        >>> tree = Multibody().add_body("rod", None, "revolute").add_frame("tip", "rod", [1, 0, 0])
        >>> tree.position("tip")([0.0])
        array([1., 0., 0.])
        """
        frame = Frame(name, link, as_placement(f"placement of {name!r}", placement))
        return self._with(frames=(*self._added_frames, frame))

    def attach(
        self, tree: Multibody, link: str, placement: Any = None, prefix: str = ""
    ) -> Multibody:
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
        from ._compose import attached

        return attached(self, tree, link, as_placement("placement", placement), prefix)

    def lock(self, **positions: Any) -> Multibody:
        """Tree with joints held at positions; joints that mimic them are held too.

        Drives, losses, springs and limits of a held joint are gone, and with them the symbolic
        parameters that stood for their numbers (see `parametric`).

        Parameters
        ----------
        **positions : array_like
            Coordinates by joint name (``lock(**{"odd-name": 0.3})`` for names that are no words).

        Returns
        -------
        Multibody

        Raises
        ------
        KeyError
            If there is no such joint.
        ValueError
            If coordinates are not on the joint's group (see `check_element`).

        Examples
        --------
        >>> two = Multibody().add_body("a", None, "revolute").add_body("b", None, "revolute", "a")
        >>> two.lock(a=0.5).joints
        ('b',)
        """
        from ._compose import locked

        return locked(self, positions)

    def move_frames(self, **frames: Any) -> Multibody:
        """The same mechanism with other link frames: nothing but their placement changes.

        Parameters
        ----------
        **frames : array_like
            New frame of each named link, in the old one's coordinates.

        Returns
        -------
        Multibody
        """
        from ._compose import reframed

        return reframed(self, frames)

    def parametric(self, *names: str) -> Multibody:
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
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
        >>> tree.parametric("ball.mass").mass_matrix([0.0], p=[3.0])
        array([[3.]])
        """
        changed = self._with()
        changed.parameters = tuple(dict.fromkeys([*self.parameters, *expand_names(self, names)]))
        return changed

    def with_parameters(self, values: Any) -> Multibody:
        """Tree whose numbers are the given ones; those are symbols no longer.

        The way from `parametric` back: ``tree.with_parameters(p).f(q)`` is ``tree.f(q, p=p)``, with
        functions specialised to the numbers, and results (`base_parameters`, limits, summaries)
        that belong to them.

        Parameters
        ----------
        values : array_like, shape (n_parameters,), or mapping of str to float
            One number for each of `parameters`; or any numbers by the names that `parametric`
            takes in full, symbols or not. Symbols that are not named stay symbols.

        Returns
        -------
        Multibody
            Turns ``joint.placement.rx`` are in its placements: from there they count from zero.

        Raises
        ------
        KeyError
            If there is no such parameter.
        ValueError
            If a count is wrong, a number not finite or a property of a joint negative. Inertias
            that no body has are taken, with a warning.

        Examples
        --------
        >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
        >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y").parametric("ball.mass")
        >>> tree.with_parameters([3.0]).mass_matrix([0.0])
        array([[3.]])
        >>> tree.with_parameters({"ball.damping": 0.5}).parameters
        ('ball.mass',)
        """
        return with_values(self, given_values(self, values))

    def with_properties(self, **joints: JointProperties) -> Multibody:
        """Tree with other drives, losses, springs or limits of the named joints."""
        links = []
        for link in self._added_links:
            own = joints.get(link.joint_name)
            links.append(link if own is None else replace(link, properties=own))
        self._check_joints(joints)
        return self._with(links=tuple(links))

    system = multibody_system

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
        >>> tree = Multibody().add_body("rod", None, "revolute", axis="y")
        >>> tree.link("rod").joint
        Joint(revolute about y)
        """
        if name not in self._link_by_name:
            raise KeyError(unknown_name("link", name, self._link_by_name))
        return self._link_by_name[name]

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
        names = [WORLD, *(link.name for link in self._links)]
        names += [frame.name for frame in self._added_frames]
        return (*names, *self._joint_frames)

    @cached_property
    def configuration(self) -> Product:
        """Configuration space: the product of the joints' groups.

        Blocks have the joints' names, with an underscore for what is no letter or digit.
        """
        return configuration_space(self._links)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(link.joint.nq for link in self._moving_links)

    @property
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

    @cached_property
    def mass(self) -> float:
        """Mass of everything that joints move [kg]."""
        return float(sum(float(node.inertia.m) for node in self._numeric_plan.nodes))

    @cached_property
    def inertial_parameters(self) -> np.ndarray:
        """Parameters φ of `inverse_dynamics_regressor`, shape (10 bodies,).

        For each body m, m c, then Ixx, Ixy, Iyy, Ixz, Iyz, Izz about its frame's origin, with
        what is fixed to it.
        """
        from ..parameters._regressor import inertial_parameters

        plan = self._numeric_plan
        parts = []
        for name, k in plan.bodies:
            seat = plan.seats[name][1]
            own = inertial_parameters(plan.nodes[k].inertia.moved(seat.inverse()))
            parts.append(np.array(ca.DM(own)).ravel())
        return np.concatenate([np.zeros(0), *parts])

    @property
    def limits(self) -> dict[str, np.ndarray]:
        """Limits of the degrees of freedom: lower, upper, velocity, effort, shape (nv,) each."""
        from ._limits import limits_of

        return limits_of(self)

    @property
    def parameter_values(self) -> np.ndarray:
        """Nominal values of the parameters, shape (n_parameters,)."""
        return nominal_values(self)

    def summary(self) -> str:
        """The tree as text: a line for each link, with joint and mass."""
        from ._summary import summary

        return summary(self)

    def __repr__(self) -> str:
        """Name, sizes and mass."""
        return (
            f"Multibody({self.name!r}, {len(self.bodies)} bodies, {self.nv} degrees of freedom, "
            f"{self.mass:.6g} kg)"
        )

    # -- inside ---------------------------------------------------------------------------------

    def _with(
        self, links: Iterable[Link] | None = None, frames: Iterable[Frame] | None = None
    ) -> Multibody:
        changed = type(self)(self.name, self.gravity)
        changed.parameters = self.parameters
        changed._added_links = self._added_links if links is None else tuple(links)
        changed._added_frames = self._added_frames if frames is None else tuple(frames)
        changed._check()
        return changed

    def _check(self) -> None:
        check_frames(self._added_frames, self._links)
        self._places  # noqa: B018  checks the leaders of mimics

    @cached_property
    def _links(self) -> tuple[Link, ...]:
        return depth_first(self._added_links)

    @cached_property
    def _moving_links(self) -> tuple[Link, ...]:
        return tuple(link for link in self._links if moves_alone(link))

    @cached_property
    def _link_by_name(self) -> dict[str, Link]:
        return {link.name: link for link in self._links}

    @cached_property
    def _places(self) -> dict[str, Place]:
        return coordinate_places(self._links)

    @cached_property
    def _joint_frames(self) -> dict[str, str]:
        return joint_frames(self._links, self._added_frames)

    def _check_joints(self, names: Iterable[str]) -> None:
        known = [link.joint_name for link in self._links if not link.joint.is_fixed]
        for name in names:
            if name not in known:
                raise KeyError(unknown_name("joint", name, known))

    @cached_property
    def _numeric_plan(self) -> Plan:
        return self._seated(make_plan(self, lambda name, value: value))

    @cached_property
    def _numeric_reduced_plan(self) -> Plan:
        return self._numeric_plan.reduced()

    def _plan_for(self, p: ca.SX, *, reduced: bool, keep: tuple[str, ...] = ()) -> Plan:
        if not self.parameters and not keep:
            return self._numeric_reduced_plan if reduced else self._numeric_plan
        symbols = {name: p[i] for i, name in enumerate(self.parameters)}
        plan = self._seated(make_plan(self, lambda name, value: symbols.get(name, value), keep))
        return plan.reduced() if reduced else plan

    def _seated(self, plan: Plan) -> Plan:
        for frame in self._added_frames:
            k, T = plan.seats[frame.link]
            plan.seats[frame.name] = k, T @ Motion.from_matrix(frame.placement)
        for name, joint in self._joint_frames.items():
            plan.seats[name] = plan.joints[joint]
        return plan

    def _function(self, kind: str, *options: Any) -> TreeFunction:
        key = (kind, *options)
        if key not in self._traced:
            recipe = RECIPES[kind]
            if not isinstance(recipe, Recipe):
                recipe = recipe(self, *options)
            if recipe.divides_by_mass:
                self._is_regular  # noqa: B018  raises if not
            self._traced[key] = TreeFunction(self, recipe.name(kind), recipe, key)
        return self._traced[key]

    @cached_property
    def _is_regular(self) -> bool:
        refuse_singular(self)
        return True

    @cached_property
    def _traced(self) -> dict[Any, TreeFunction]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """What the tree is made of; functions are traced again when needed."""
        keep = ("name", "gravity", "parameters", "_added_links", "_added_frames")
        return {key: self.__dict__[key] for key in keep}

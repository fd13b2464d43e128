"""ClosedTree: a tree of bodies whose loops are closed, assembled, judged, and made a System."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import ask_degrees, check_known, check_shape
from ...groups import Product, check_element
from ...systems import Input, System
from ...systems._internal import FixedParameters
from ..multibody._multibody import Multibody
from ..multibody._spatial import Pose
from ..multibody.compiled._compiled_tree import compiled
from ..multibody.kinematics._frames import frame_pose
from ..multibody.tree._link import Axis
from ._assembly import HeldCoordinate
from ._constraint import Constraint, Constraints
from ._expression import motion_of
from ._linkage import Linkage
from ._loop import LoopJoint, loop_wrenches
from ._system import ConstrainedMechanics
from ._units import LARGEST_GRAVITY, held_by_loop, warn_of_units


@named_options
class ClosedTree(Linkage):
    """A tree of bodies with constraints between its frames: loops, drives, couplings.

    Does not change: `close_loop` and its like return new ones.

    Parameters
    ----------
    tree : Multibody
        With every loop cut at one joint.
    start : mapping of str to float, optional
        Coordinates by name near which the mechanism closes: where assembly starts. The others are
        those of the identity.

    Examples
    --------
    A four-bar linkage: two bars on the ground, and a coupler that hangs on the first.

    >>> from lgcontrol.models import four_bar_tree
    >>> linkage = four_bar_tree()
    >>> q = linkage.assemble(where={"crank": 0.5})
    >>> linkage.mobility(q).degrees_of_freedom
    1
    >>> linkage.system(inputs=["crank"], at=q).error_names
    ('configuration.crank.r', 'velocity.crank.r')
    """

    thinned = "close a loop by a joint that holds less, such as point_on_line"

    def __init__(self, tree: Multibody, start: Mapping[str, float] | None = None) -> None:
        self.tree, self.name = tree, tree.name
        self.start: dict[str, float] = dict(start or {})
        self.loops: tuple[LoopJoint, ...] = ()
        self._members: tuple[Constraint, ...] = ()
        self._places("start", self.start)

    def __repr__(self) -> str:
        """Coordinates of the tree and constraints by name."""
        coordinates = ", ".join(self.tree.configuration.coordinate_names)
        constraints = ", ".join(entry.name for entry in self._members)
        return f"ClosedTree(coordinates=[{coordinates}], constraints=[{constraints}])"

    # Building

    @named_options
    def close_loop(
        self,
        name: str,
        frame_a: str,
        frame_b: str,
        joint: str = "fixed",
        *,
        axis: Axis = "z",
        axis2: Axis = "y",
        length: float | None = None,
    ) -> ClosedTree:
        """The same with one more joint, between two frames.

        Parameters
        ----------
        name : str
        frame_a, frame_b : str
            Frames of the tree ("world", links, added frames).
        joint, axis, axis2, length
            See `LoopJoint`.

        Raises
        ------
        KeyError
            If a frame or kind of joint is unknown.

        Warns
        -----
        UserWarning
            Where points and inertias of the two links, or gravity, look like millimetres.
        """
        check_known("frame", self.tree.frames, frame_a, frame_b)
        if frame_a == frame_b:
            raise ValueError(f"loop {name!r} joins {frame_a!r} to itself; give two frames")
        loop, tree = LoopJoint(name, frame_a, frame_b, joint, axis, axis2, length), self.tree
        made = self.constrain(name, loop.row_names, partial(_gap, tree, loop), loop.units)
        made.loops = (*self.loops, loop)
        if np.linalg.norm(tree.gravity) <= LARGEST_GRAVITY:  # else the tree itself has warned
            warn_of_units(tree.name, tree.gravity, held_by_loop(tree, loop))
        return made

    @named_options
    def constrain(
        self,
        name: str,
        rows: Sequence[str],
        value: Callable[[Any, Any, Any], Any],
        units: Sequence[str] = "",
        kind: Literal["position", "velocity"] = "position",
    ) -> ClosedTree:
        """The same with equations of your own, see `Constraint`.

        Parameters
        ----------
        name : str
        rows : str or sequence of str
        value : callable
            ``(t, q, p) → φ``, or ``(t, q, p) → A, b`` of velocities.
        units : str or sequence of str
        kind : {"position", "velocity"}
        """
        made = ClosedTree(self.tree, self.start)
        made.loops = self.loops
        made._members = (*self._members, Constraint(name, rows, value, units, kind))
        _ = made.constraints  # refuses names that are there already
        return made

    @named_options(own="motion")
    def drive(self, joint: str, motion: Callable[[Value], Value]) -> ClosedTree:
        """The same with a joint that follows a motion in time.

        Parameters
        ----------
        joint : str
            With one coordinate: "revolute", "prismatic", ….
        motion : callable
            ``t → coordinate`` [rad or m] on CasADi values.

        Returns
        -------
        ClosedTree
            With the constraint "drive_JOINT"; its multiplier is minus what the drive exerts.
        """
        motion = motion_of(f"drive of {joint!r}", motion, "`constrain`")
        i = self._coordinate(joint)
        unit = self.tree.configuration.coordinate_units[i]
        return self.constrain(f"drive_{joint}", "motion", partial(_behind, i, motion), unit)

    @named_options
    def couple(
        self, name: str, joint: str, leader: str, ratio: float, offset: float = 0.0
    ) -> ClosedTree:
        """The same with a gear: ``joint = ratio · leader + offset`` [rad or m]."""
        i, k = self._coordinate(joint), self._coordinate(leader)
        unit = self.tree.configuration.coordinate_units[i]
        return self.constrain(name, "ratio", partial(_off_ratio, i, k, ratio, offset), unit)

    # What it is

    @cached_property
    def constraints(self) -> Constraints:  # pyright: ignore[reportIncompatibleMethodOverride]
        """All rows, on the configuration of the tree."""
        return Constraints(self.tree.configuration, self._members, len(self.tree.parameters))

    @cached_property
    def mechanics(self) -> ConstrainedMechanics:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Equations of the tree with its constraints, without inputs."""
        return ConstrainedMechanics(self.tree.system([]), self.constraints)

    # What the protocol asks for

    @named_options
    def symbolic(self, *names: str) -> ClosedTree:  # noqa: D102
        return self._on(self.tree.symbolic(*names))

    @named_options
    def with_parameters(self, values: Any) -> ClosedTree:  # noqa: D102
        return self._on(self.tree.with_parameters(values))

    def _on(self, tree: Multibody) -> ClosedTree:
        """The same constraints on a tree of the same joints and frames."""
        made = ClosedTree(tree, self.start)
        own = {loop.name: partial(_gap, tree, loop) for loop in self.loops}
        made.loops = self.loops
        made._members = tuple(
            Constraint(
                entry.name, entry.rows, own.get(entry.name, entry.value), entry.units, entry.kind
            )
            for entry in self._members
        )
        return made

    @named_options
    def poses(self, q: Any, *, p: FixedParameters | None = None) -> dict[str, np.ndarray]:  # noqa: D102
        tree, q, values = self.tree, self._configuration(q), self._parameters(p)
        given = (values,) if len(tree.parameters) else ()
        return {body: np.asarray(tree.placement(body)(q, *given)) for body in tree.bodies}

    def _guess(self, guess: Any, where: Mapping[str, Any]) -> np.ndarray:
        group = self.tree.configuration
        q = group.identity if guess is None else check_element("guess", guess, group).copy()
        known = self._places("start", self.start) if guess is None else {}
        for i, value in (known | self._places("where", where)).items():
            q[i] = value
        return q

    def _held(self, name: str, value: Any, q: ca.SX) -> Iterable[HeldCoordinate]:
        group = self.tree.configuration
        for i, wished in self._places("where", {name: value}).items():
            label, unit = group.coordinate_names[i], group.coordinate_units[i]
            yield HeldCoordinate(label, wished, unit, q[i] - wished)

    def _base(
        self, inputs: Iterable[Input | str] | None, name: str | None, options: Mapping[str, Any]
    ) -> tuple[System[Product], Constraints]:
        base = self.tree.system(inputs, name=name, **options)
        return base, Constraints(self.tree.configuration, self._members, len(base.parameters))

    def _wrenches(self, q: Value, t: Value, p: Value) -> Iterable[tuple[str, Callable[..., Any]]]:
        for loop in self.loops:
            yield loop.name, partial(loop_wrenches, loop, *_poses(self.tree, loop, q, p))

    def _points(self, q: np.ndarray, p: np.ndarray) -> dict[str, np.ndarray]:
        tree, poses = self.tree, self.poses(q, p=p)
        given, held = (p,) if len(tree.parameters) else (), {body: [] for body in tree.bodies}
        for body in tree.bodies:
            parent = tree.link(body).parent
            if parent in held:
                held[parent].append(poses[body][:3])
        made = compiled(tree)
        links = {k: name for name, k in made.bodies}
        for loop in self.loops:
            for frame in (loop.frame_a, loop.frame_b):
                owner = links.get(made.frames[frame][0])
                if owner is not None:
                    held[owner].append(np.asarray(tree.placement(frame)(q, *given))[:3])
        return {body: np.array(points).reshape(-1, 3) for body, points in held.items()}

    def _places(self, what: str, values: Mapping[str, float]) -> dict[int, float]:
        """Coordinates by their places, from a mapping of names."""
        found, units = {}, self.tree.configuration.coordinate_units
        for name, value in values.items():
            i, label = self._coordinate(name), f"{what}[{name!r}]"
            found[i] = float(check_shape(label, value, ()))
            if units[i] == "rad":
                ask_degrees(label, found[i])
        return found

    def _coordinate(self, joint: str) -> int:
        group = self.tree.configuration
        single = {}
        for name, block in group.blocks.items() if isinstance(group, Product) else ():
            if block.nq == 1:
                single[name] = group.coordinate_slice(name).start
        single |= {name: i for i, name in enumerate(group.coordinate_names)}
        check_known("joint with one coordinate", single, joint)
        return single[joint]


# Values of constraints, functions of a module since those pickle.


def _gap(tree: Multibody, loop: LoopJoint, t: Value, q: Value, p: Value) -> Value:
    rows = loop.rows(*_poses(tree, loop, q, p))
    return ca.vertcat(*(ca.SX(entry) for _, _, entry in rows))


def _behind(i: int, motion: Callable[[Value], Value], t: Value, q: Value, p: Value) -> Value:
    return q[i] - motion(t)


def _off_ratio(i: int, k: int, ratio: float, offset: float, t: Value, q: Value, p: Value) -> Value:
    return q[i] - ratio * q[k] - offset


def _poses(tree: Multibody, loop: LoopJoint, q: Value, p: Value) -> tuple[Pose, Pose]:
    made = compiled(tree, p)
    return (
        frame_pose(made, q, made.frames[loop.frame_a]),
        frame_pose(made, q, made.frames[loop.frame_b]),
    )

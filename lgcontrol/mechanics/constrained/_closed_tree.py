"""ClosedTree: a tree of bodies whose loops are closed, assembled, judged, and made a System."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, partial
from typing import Any, Literal

import casadi as ca
import numpy as np

from ...codegen import Value
from ...codegen._internal import (
    UnknownNameError,
    ask_degrees,
    check_shape,
    interruptible,
    unknown_name,
)
from ...groups import Product, check_element
from ...systems import Quantity, System, Trajectory
from ..multibody._multibody import Multibody
from ..multibody._spatial import Pose
from ..multibody.compiled._compiled_tree import compiled
from ..multibody.kinematics._frames import frame_pose
from ..multibody.tree._joint import Axis
from ._assembly import assemble
from ._constraint import Constraint, Constraints
from ._kinematics import KinematicsResult, dynamics_function, kinematics, wrench_function
from ._loop import LoopJoint, wrench_on_b
from ._mobility import Mobility, mobility
from ._system import ConstrainedMechanics, Stabilization, constrained_system, entries_of
from ._units import LARGEST_GRAVITY, held_by_loop, warn_of_units


class ClosedTree:
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
    >>> linkage.mobility(q).freedoms
    1
    >>> linkage.system(inputs=["crank"], at=q).error_names
    ('configuration.crank.rz', 'velocity.crank.rz')
    """

    def __init__(self, tree: Multibody, start: Mapping[str, float] | None = None) -> None:
        self.tree = tree
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

        Returns
        -------
        ClosedTree

        Raises
        ------
        KeyError
            If a frame or kind of joint is unknown.

        Warns
        -----
        UserWarning
            Where points and inertias of the two links, or gravity, look like millimetres.
        """
        for frame in (frame_a, frame_b):
            if frame not in self.tree.frames:
                raise UnknownNameError(unknown_name("frame", frame, self.tree.frames))
        if frame_a == frame_b:
            raise ValueError(f"loop {name!r} joins {frame_a!r} to itself; give two frames")
        loop, tree = LoopJoint(name, frame_a, frame_b, joint, axis, axis2, length), self.tree
        made = self.constrain(name, loop.row_names, partial(_gap, tree, loop), loop.units)
        made.loops = (*self.loops, loop)
        if np.linalg.norm(tree.gravity) <= LARGEST_GRAVITY:  # else the tree itself has warned
            warn_of_units(tree.name, tree.gravity, held_by_loop(tree, loop))
        return made

    def constrain(
        self,
        name: str,
        rows: str | Iterable[str],
        value: Callable[..., Any],
        units: str | Iterable[str] = "",
        kind: Literal["position", "velocity"] = "position",
    ) -> ClosedTree:
        """The same with equations of your own, see `Constraint`.

        Parameters
        ----------
        name : str
        rows : str or iterable of str
        value : callable
            ``(t, q, p) → φ``, or ``(t, q, p) → A, b`` of velocities.
        units : str or iterable of str
        kind : {"position", "velocity"}

        Returns
        -------
        ClosedTree
        """
        made = ClosedTree(self.tree, self.start)
        made.loops = self.loops
        made._members = (*self._members, Constraint(name, rows, value, units, kind))
        _ = made.constraints  # refuses names that are there already
        return made

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
        if not callable(motion):
            raise TypeError(
                f"drive of {joint!r}: motion must be a function t → coordinate, not {motion!r}; a "
                "coordinate that rests is `constrain`"
            )
        i = self._coordinate(joint)
        unit = self.tree.configuration.coordinate_units[i]
        return self.constrain(f"drive_{joint}", "motion", partial(_behind, i, motion), unit)

    def couple(
        self, name: str, joint: str, leader: str, ratio: float, offset: float = 0.0
    ) -> ClosedTree:
        """The same with a gear: ``joint = ratio · leader + offset`` [rad or m]."""
        i, k = self._coordinate(joint), self._coordinate(leader)
        unit = self.tree.configuration.coordinate_units[i]
        return self.constrain(name, "ratio", partial(_off_ratio, i, k, ratio, offset), unit)

    # What it is

    @cached_property
    def constraints(self) -> Constraints:
        """All rows, on the configuration of the tree."""
        return Constraints(self.tree.configuration, self._members, len(self.tree.parameters))

    @cached_property
    def mechanics(self) -> ConstrainedMechanics:
        """Equations of the tree with its constraints, without inputs."""
        return ConstrainedMechanics(self.tree.system([]), self.constraints)

    @interruptible
    def assemble(
        self,
        guess: Any = None,
        *,
        where: Mapping[str, float] | None = None,
        t: float = 0.0,
        p: Any = None,
    ) -> np.ndarray:
        """Configuration near a guess that keeps all constraints to rounding.

        Parameters
        ----------
        guess : array_like, shape (nq,), optional
            The start of the mechanism if left out.
        where : mapping of str to float, optional
            Coordinates [rad or m] that are held, by the names of joints: they choose the branch.
        t : float
            Time of drives [s].
        p : array_like, optional
            Parameters of the tree.

        Returns
        -------
        ndarray, shape (nq,)

        Raises
        ------
        AssemblyError
            If no loop can be closed from there; names the rows that stay open.
        """
        group = self.tree.configuration
        if guess is None:
            q = group.identity
            for i, value in self._places("start", self.start).items():
                q[i] = value
        else:
            q = check_element("guess", guess, group).copy()
        held = self._places("where", where or {})
        for i, value in held.items():
            q[i] = value
        values = self._parameters(p)
        return assemble(self.mechanics, q, held=held, t=t, p=values)

    def velocity(
        self, q: Any, speeds: Mapping[str, float], *, t: float = 0.0, p: Any = None
    ) -> np.ndarray:
        """Velocity that keeps the constraints and has some entries given, of the least energy.

        Parameters
        ----------
        q : array_like, shape (nq,)
        speeds : mapping of str to float
            Entries of the tangent vector by name [rad/s, m/s].
        t : float
        p : array_like, optional

        Returns
        -------
        ndarray, shape (nv,)

        Raises
        ------
        ValueError
            If the speeds break the constraints; says by how much.
        """
        known = entries_of(self.tree.configuration)
        for name in speeds:
            if name not in known:
                raise UnknownNameError(unknown_name("velocity", name, known))
        values = self._parameters(p)
        x = self.mechanics.complete(check_element("q", q, self.tree.configuration), t=t)
        given = check_shape("speeds", [*speeds.values()], (None,))
        _, G, M = self.mechanics.terms_of(x, values)
        nu = self.mechanics._terms_at(x, values)[2].full().ravel()
        E = np.eye(self.tree.nv)[[known[name] for name in speeds]]
        rows = np.vstack([G, E])
        wanted = np.concatenate([nu, given])
        L = np.linalg.cholesky(M)
        v = np.linalg.solve(
            L.T, np.linalg.lstsq(np.linalg.solve(L, rows.T).T, wanted, rcond=1e-10)[0]
        )
        off = np.abs(rows @ v - wanted)
        if off.max(initial=0.0) > 1e-9 * (1 + np.abs(wanted).max(initial=0.0)):
            names = [*self.constraints.row_names, *speeds]
            raise ValueError(
                f"{self.tree.name}: no velocity has these speeds: {names[int(off.argmax())]} is "
                f"off by {off.max():.3g}; give {self.mobility(q, t=t).freedoms} independent ones"
            )
        return v

    def mobility(self, q: Any = None, *, t: float = 0.0, p: Any = None) -> Mobility:
        """Freedoms, redundant rows and singular positions of a configuration or along a motion.

        Parameters
        ----------
        q : array_like of shape (nq,), or Trajectory, optional
            Configuration that keeps the constraints, assembled if left out; or a motion of the
            system, of which `Mobility.singular_positions` are reported with their times. Steps do
            not notice these: their equations stay solvable.
        t : float
            Time of drives [s].
        p : array_like, optional

        Returns
        -------
        Mobility
        """
        values = self._parameters(p)
        if q is None:
            q = self.assemble(t=t, p=values)
        if not isinstance(q, Trajectory):
            q = check_element("q", q, self.tree.configuration)
        return mobility(self.mechanics, q, t, values)

    def kinematics(
        self, t: Any, *, q: Any = None, p: Any = None, tolerance: float = 1e-13
    ) -> KinematicsResult:
        """Motion that drives decide, with multipliers: inverse dynamics.

        Parameters
        ----------
        t : array_like, shape (N,)
            Increasing times [s].
        q : array_like, shape (nq,), optional
            Configuration near the first one; assembled from the start if left out.
        p : array_like, optional
            Parameters of the tree.
        tolerance : float
            Of φ.

        Returns
        -------
        KinematicsResult
            With its status; singular positions on the way are listed with names and times. Minus
            the multiplier of "drive_JOINT" is what the drive exerts [N m or N].

        Raises
        ------
        ValueError
            If the drives leave freedoms: says how many; or if there are rows on velocities.

        Examples
        --------
        >>> from lgcontrol.models import four_bar_tree
        >>> driven = four_bar_tree().drive("crank", lambda t: 0.5 + 2 * t)
        >>> run = driven.kinematics(np.linspace(0, 3, 31))
        >>> torque = -run.multipliers[:, driven.constraints.rows_of("drive_crank")]
        >>> bool(np.abs(run.v[:, 0] - 2).max() < 1e-12), torque.shape
        (True, (31, 1))
        """
        own, group = self.mechanics, self.tree.configuration
        structure, values = own.base.structure, self._parameters(p)
        assert structure is not None

        def start(time: float) -> np.ndarray:
            if q is None:
                return self.assemble(t=time, p=values)
            return check_element("q", q, group)

        def mass_matrix(q: Value, p: Value) -> Value:
            return structure.mass_matrix(ca.vertcat(q, ca.DM(group.dim, 1)), p)

        def force(t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
            return structure.force(t, ca.vertcat(q, v), u, p)

        u = own.base.nominal_input
        dynamics = dynamics_function(self.constraints, mass_matrix, force, u, values)
        return kinematics(
            own,
            dynamics,
            t,
            start,
            u,
            values,
            tolerance=tolerance,
            remedy="drive(joint, motion)",
        )

    def reactions(
        self, t: Any, q: Any, multipliers: Any, *, p: Any = None
    ) -> dict[str, np.ndarray]:
        """Wrench [f; m] of each loop on its second frame, in the axes of that frame.

        Parameters
        ----------
        t : array_like, shape (...)
            Time, or times [s].
        q : array_like, shape (..., nq)
        multipliers : array_like, shape (..., m)
            λ of all rows.
        p : array_like, optional
            Parameters of the tree.

        Returns
        -------
        dict of str to ndarray, shape (..., 6)
            f [N], m [N m] about the origin of the frame. Where `mobility` lists dependent rows,
            those of their loops are not unique: of all, these are the shortest.
        """
        q = check_element("q", q, self.tree.configuration, batch=True)
        return self._wrenches(t=t, q=q, multipliers=multipliers, p=self._parameters(p))

    @cached_property
    def _wrenches(self) -> Callable[..., dict[str, np.ndarray]]:
        own = self.constraints
        symbols = {
            "t": ca.SX.sym("t"),
            "q": ca.SX.sym("q", self.tree.nq),
            "multipliers": ca.SX.sym("multipliers", own.n_rows),
            "p": ca.SX.sym("p", own.n_parameters),
        }
        t, q, multipliers, p = symbols.values()
        wrenches = {
            loop.name: self._wrench(loop, own)(t, q, None, p, multipliers) for loop in self.loops
        }
        return wrench_function(symbols, wrenches)

    @interruptible
    def system(
        self,
        inputs: Any = None,
        *,
        at: Any = None,
        independent: str | Iterable[str] | None = None,
        independent_speeds: str | Iterable[str] | None = None,
        stabilization: Stabilization = "projection",
        rates: tuple[float, float] = (5.0, 5.0),
        name: str | None = None,
        **options: Any,
    ) -> System[Product]:
        """System on the manifold of the constraints, see `constrained_system`.

        Parameters
        ----------
        inputs : iterable of str, optional
            Joints that are driven; all if left out.
        at : array_like, shape (nq,), optional
            Configuration at which independent coordinates are chosen or judged; assembled from the
            identity if left out.
        independent, independent_speeds, stabilization, rates, name
            See `constrained_system`.
        **options
            What acts on the tree, see `Multibody.system`.

        Returns
        -------
        System
            With a quantity "NAME_wrench" for each loop: what it exerts on its second frame, in the
            axes of that frame, [f; m].
        """
        base = self.tree.system(inputs, name=name, **options)
        at = self.assemble() if at is None else at
        constraints = Constraints(self.tree.configuration, self._members, len(base.parameters))
        return constrained_system(
            base,
            constraints,
            at=at,
            independent=independent,
            independent_speeds=independent_speeds,
            stabilization=stabilization,
            rates=rates,
            quantities={
                f"{loop.name}_wrench": Quantity(
                    self._wrench(loop, constraints), ("fx", "fy", "fz", "mx", "my", "mz")
                )
                for loop in self.loops
            },
        )

    def _wrench(self, loop: LoopJoint, constraints: Constraints) -> Callable[..., Any]:
        """``(t, x, u, p, multipliers) → wrench``."""
        own, tree, nq = constraints.rows_of(loop.name), self.tree, self.tree.nq
        q, p = ca.SX.sym("q", nq), ca.SX.sym("p", constraints.n_parameters)
        force = ca.SX.sym("force", len(own))
        wrench = ca.Function(
            "loop_wrench",
            [q, p, force],
            [ca.densify(wrench_on_b(loop, *_poses(tree, loop, q, p), force))],
        )
        return lambda t, x, u, p, multipliers: wrench(x[:nq], p, multipliers[own])

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
        if joint not in single:
            raise UnknownNameError(unknown_name("joint with one coordinate", joint, single))
        return single[joint]

    def _parameters(self, p: Any) -> np.ndarray:
        base = self.mechanics.base
        return base.nominal_parameters if p is None else check_shape("p", p, (base.n_parameters,))


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

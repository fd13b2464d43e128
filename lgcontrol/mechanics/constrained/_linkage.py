"""Linkage: what trees with closed loops and mechanisms in absolute coordinates have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, named_options
from ...codegen._internal import Immutable, check_known, check_shape, interruptible
from ...groups import SE3, Product, check_element
from ...integrators import Constrained, generalized_alpha
from ...integrators._internal import Index3Method, Problem
from ...scene import Scene, SceneBody
from ...scene._internal import HeldLook, Scenery, between, scene_of_states
from ...systems import Input, Quantity, System, Trajectory
from ...systems._internal import FixedParameters, values_by_name
from .._mechanical import model_function
from ._assembly import HeldCoordinate, assemble
from ._constraint import Constraints
from ._kinematics import KinematicsResult, kinematics
from ._march import CHARTS, ChartedMotion, March, check_step, march, march_step
from ._mobility import Mobility, driven_rows, mobility, refuse_gap, refuse_march, refuse_open
from ._system import (
    ConstrainedMechanics,
    Coordinate,
    Stabilization,
    constrained_system,
    coordinates_by_name,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WRENCH_AXES = ("fx", "fy", "fz", "mx", "my", "mz")
# Speeds that break constraints by more than this share of themselves are refused.
THICKNESS = 0.015  # radius of drawn links next to the size of the linkage
BROKEN = 1e-9


class Linkage(Immutable, ABC):
    """Bodies with joints as equations between them: `ClosedTree` and `Mechanism`.

    Both have the same verbs. Arguments have one order: configuration q, then by name the time t
    [s] of the drives and the parameters p. Parameters are all in order, or some by name; they are
    nominal if left out.
    """

    name: str
    thinned: ClassVar[str]
    """How rows that say the same as others are left out."""

    # What a concrete class says

    @property
    @abstractmethod
    def mechanics(self) -> ConstrainedMechanics:
        """Equations of motion with the constraints, as `constrained_system` has them."""

    @abstractmethod
    def drive(self, joint: str, motion: Callable[[Value], Value]) -> Self:
        """The same with a joint that follows a motion in time.

        Parameters
        ----------
        joint : str
            With one coordinate, or a coordinate of a joint such as "rail.z".
        motion : callable
            ``t → coordinate`` [rad or m] on CasADi values.

        Returns
        -------
        Linkage
            With the constraint "drive_JOINT"; its multiplier is minus what the drive exerts, up to
            the slope of its row.
        """

    @abstractmethod
    def symbolic(self, *names: str) -> Self:
        """The same with named numbers as symbols: parameters p, after those there are.

        Parameters
        ----------
        *names : str
            "crank.mass", "crank.inertia", or entries such as "crank.inertia.xx"; of a mechanism
            also forces, "strut.stiffness"; of a tree what `Multibody.symbolic` takes.

        Raises
        ------
        KeyError
            If a name is unknown.
        """

    @abstractmethod
    def with_parameters(self, values: Any) -> Self:
        """The same with other values of some numbers; a symbol stays a symbol.

        Parameters
        ----------
        values : array_like, shape (n_parameters,), or mapping of str to float
            One number for each parameter; or any numbers by their names in full, symbols or not.

        Raises
        ------
        KeyError
            If there is no such number.
        ValueError
            If a count is wrong, or a number not finite or impossible for what it belongs to.
        """

    @abstractmethod
    def poses(self, q: Any, *, p: FixedParameters | None = None) -> dict[str, np.ndarray]:
        """SE3 coordinates of the frame of every body.

        Parameters
        ----------
        q : array_like, shape (nq,)
        p : mapping or array_like, optional
        """

    @abstractmethod
    def _guess(self, guess: Any, where: Mapping[str, Any]) -> np.ndarray:
        """Where assembly starts."""

    @abstractmethod
    def _held(self, name: str, value: Any, q: ca.SX) -> Iterable[HeldCoordinate]:
        """What an entry of `where` holds."""

    @abstractmethod
    def _base(
        self, inputs: Iterable[Input | str] | None, name: str | None, options: Mapping[str, Any]
    ) -> tuple[System[Product], Constraints]:
        """Bodies without their joints as a System with these inputs, and the constraints."""

    @abstractmethod
    def _wrenches(self, q: Value, t: Value, p: Value) -> Iterable[tuple[str, Callable[..., Any]]]:
        """Joints, and functions of their multipliers to wrenches by body."""

    @abstractmethod
    def _points(self, q: np.ndarray, p: np.ndarray) -> dict[str, np.ndarray]:
        """Points of joints on every body in world axes, shape (k, 3), by body."""

    def _mass_matrix(self, q: Value, p: Value) -> Value:
        structure = self.mechanics.structure
        return structure.mass_matrix(ca.vertcat(q, ca.DM(self.mechanics.configuration.dim, 1)), p)

    def _force(self, t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
        return self.mechanics.structure.force(t, ca.vertcat(q, v), u, p)

    def _first_speeds(self, q: np.ndarray, speeds: dict[str, Any]) -> np.ndarray:
        """Velocities near which `state` looks; takes out of the speeds what it uses."""
        return np.zeros(self.mechanics.configuration.dim)

    def _joint_coordinates(self, q: np.ndarray) -> Sequence[Coordinate]:
        """Degrees of freedom of joints as rows on the tangent vector, besides its entries."""
        return ()

    def _check_inertia(self, q: np.ndarray) -> None:
        """Refuse a configuration in which M has no inverse."""
        del q  # that of a tree has one

    def _hint(self, q: np.ndarray) -> str:
        """Why coordinates are singular in a configuration; empty where they are not."""
        return ""

    # Sparse algorithms of linkages of many bodies; None where there are none

    def _sparse_assembly(self, guess: Any, t: float) -> np.ndarray | None:
        return None

    def _sparse_state(self, q: Any, speeds: dict[str, Any], t: float) -> np.ndarray | None:
        return None

    def _sparse_kinematics(self, t: Any, q: Any, tolerance: float) -> KinematicsResult | None:
        return None

    def _sparse_march(self, x0: Any, dt: float, steps: int, method: Index3Method) -> March | None:
        return None

    # What all have

    @property
    def constraints(self) -> Constraints:
        """All rows, on the configuration."""
        return self.mechanics.constraints

    @property
    def row_names(self) -> tuple[str, ...]:
        """``joint.row`` of all equations, in the order of multipliers: those on velocities last."""
        return self.constraints.row_names

    @cached_property
    def dynamics(self) -> ModelFunction:
        """``(t, q, v, u, p) → phi, G, nu, gamma, M, F``: all terms of the equations of motion."""
        base, own = self.mechanics.base, self.constraints
        n, nv = own.n_rows, own.group.dim

        def build(t: Any, q: Any, v: Any, u: Any, p: Any) -> list[Any]:
            terms = own.terms(t, q, v, p)
            return [*terms, self._mass_matrix(q, p), self._force(t, q, v, u, p)]

        shapes = {"t": (), "q": (own.group.nq,), "v": (nv,)}
        results = {"phi": (own.n_position,), "G": (n, nv), "nu": (n,), "gamma": (n,)}
        results |= {"M": (nv, nv), "F": (nv,)}
        taken = "t q v u p", results, shapes, base.inputs, base.parameters
        return model_function("mechanism_dynamics", build, *taken)

    @named_options
    def assemble(
        self,
        guess: Any = None,
        *,
        where: Mapping[str, Any] | None = None,
        t: float = 0.0,
        p: FixedParameters | None = None,
    ) -> np.ndarray:
        """Configuration near a guess that keeps all constraints to rounding.

        Parameters
        ----------
        guess : array_like of shape (nq,), optional
            The start of the linkage if left out; of a mechanism also poses by body.
        where : mapping of str to float or pose, optional
            Coordinates [rad or m] that are held, by the names of joints, and of a mechanism poses
            of bodies: they choose the branch.
        t : float
            Time of drives [s].
        p : mapping or array_like, optional

        Returns
        -------
        ndarray, shape (nq,)

        Raises
        ------
        AssemblyError
            If the joints cannot be closed from there; names the rows that stay open.
        """
        where = dict(where or {})
        if p is None and not where and (found := self._sparse_assembly(guess, t)) is not None:
            return found
        start, q = self._guess(guess, where), ca.SX.sym("q", self.mechanics.configuration.nq)
        self._check_inertia(start)
        held = [entry for name, value in where.items() for entry in self._held(name, value, q)]
        held += self._driven_angles(q, t)
        return assemble(self.mechanics, start, q=q, held=held, t=t, p=self._parameters(p))

    @named_options
    def state(
        self,
        q: Any = None,
        *,
        speeds: Mapping[str, Any] | None = None,
        t: float = 0.0,
        p: FixedParameters | None = None,
    ) -> np.ndarray:
        """State of a System: a configuration, and velocities that keep the constraints.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Configuration that keeps the constraints; the assembled one if left out.
        speeds : mapping of str to float, optional
            Rates [rad/s, m/s] of joints or of entries of the tangent vector by name. The result
            has these rates and is the velocity nearest to the start in the metric of M. Of a
            mechanism also ``[ṙ; ω]`` by body, where the start is.
        t : float
            Time of drives [s].
        p : mapping or array_like, optional

        Returns
        -------
        ndarray, shape (nq + nv,), with the clock after it where there are drives

        Raises
        ------
        ValueError
            If q does not keep the constraints, or no velocity has these speeds; says which is off
            by how much.
        """
        if p is None and (found := self._sparse_state(q, dict(speeds or {}), t)) is not None:
            return found
        values = self._parameters(p)
        q = self.assemble(t=t, p=values) if q is None else self._configuration(q)
        refuse_open(self.mechanics, np.array(t), q, values)
        named = dict(speeds or {})
        v = self._first_speeds(q, named)
        given = check_shape("speeds", [*named.values()], (None,))
        at = self.mechanics._terms_at(self.mechanics.complete(q, t=t), values)
        rows = np.vstack([at[1].full(), *(self._speed_row(q, name)[None] for name in named)])
        wanted = np.concatenate([at[2].full().ravel(), given])
        off = wanted - rows @ v
        if np.abs(off).max(initial=0.0) > 0:
            M = self.mechanics.terms_of(self.mechanics.complete(q, t=t), values)[2]
            L = np.linalg.cholesky(M)
            W = np.linalg.solve(L, rows.T).T
            v = v + np.linalg.solve(L.T, np.linalg.lstsq(W, off, rcond=1e-10)[0])
        off = np.abs(rows @ v - wanted)
        if off.max(initial=0.0) > BROKEN * (1 + np.abs(wanted).max(initial=0.0)):
            names = [*self.row_names, *named]
            raise ValueError(
                f"{self.name}: no velocity has these speeds: {names[int(off.argmax())]} is "
                f"off by {off.max():.3g}; give "
                f"{self.mobility(q, t=t).degrees_of_freedom} independent ones"
            )
        return self.mechanics.complete(q, v, t)

    @named_options
    def mobility(
        self, q: Any = None, *, t: float = 0.0, p: FixedParameters | None = None
    ) -> Mobility:
        """Degrees of freedom, redundant rows and singular positions, also along a motion.

        Parameters
        ----------
        q : array_like of shape (nq,), or Trajectory, optional
            Configuration that keeps the constraints, assembled if left out; or a motion of the
            system. For a motion, `Mobility.singular_positions` lists the singular positions and
            their times. A simulation passes them unnoticed: its equations stay solvable.
        t : float
            Time of drives [s].
        p : mapping or array_like, optional

        Raises
        ------
        AssemblyError
            If q is left out and the linkage cannot be assembled.
        """
        values = self._parameters(p)
        if q is None:
            q = self.assemble(t=t, p=values)
        if not isinstance(q, Trajectory):
            q = self._configuration(q)
        return mobility(self.mechanics, q, t, values, self._hint)

    @named_options
    def kinematics(
        self,
        t: Any,
        *,
        q: Any = None,
        p: FixedParameters | None = None,
        tolerance: float = 1e-13,
    ) -> KinematicsResult:
        """Motion that drives decide, with multipliers: inverse dynamics.

        Parameters
        ----------
        t : array_like, shape (N,)
            Increasing times [s].
        q : array_like, shape (nq,), optional
            Configuration near the first one; the assembled one if left out.
        p : mapping or array_like, optional
        tolerance : float
            Of φ.

        Returns
        -------
        KinematicsResult
            With its status; singular positions on the way are listed with names and times.

        Raises
        ------
        ValueError
            If the drives leave degrees of freedom: says how many; or if there are rows on
            velocities.
        """
        if p is None and (found := self._sparse_kinematics(t, q, tolerance)) is not None:
            return found
        values = self._parameters(p)

        def start(time: float) -> np.ndarray:
            return self.assemble(t=time, p=values) if q is None else self._configuration(q)

        return kinematics(
            self.mechanics,
            self.dynamics,
            t,
            start,
            self.mechanics.base.nominal_input,
            values,
            tolerance=tolerance,
            remedy="drive(joint, motion)",
            hint=self._hint,
        )

    @named_options
    def reactions(
        self, t: Any, q: Any, multipliers: Any, *, p: FixedParameters | None = None
    ) -> dict[str, dict[str, np.ndarray]]:
        """Wrench [f; m] of every joint on what it joins, in the axes of that body or frame.

        Parameters
        ----------
        t : array_like, shape (...)
            Time, or times [s].
        q : array_like, shape (..., nq)
            Configurations that keep the constraints.
        multipliers : array_like, shape (..., m)
            λ of all rows.
        p : mapping or array_like, optional

        Raises
        ------
        ValueError
            If a configuration does not keep the constraints; says which row is off by how much.

        Returns
        -------
        dict of str to dict of str to ndarray, shape (..., 6)
            By joint, then by body (of a tree: frame): f [N], and m [N m] about its origin. The
            origin of a mechanism's body is its centre of mass. If `mobility` lists dependent rows,
            the reactions of their joints are not unique; these are the smallest.

        Examples
        --------
        >>> from lgcontrol.models import pendulum_mechanism
        >>> pendulum = pendulum_mechanism()
        >>> run = pendulum.kinematics(np.linspace(0, 1, 5))
        >>> pendulum.reactions(run.t, run.q, run.multipliers)["driver"]["rod"].shape
        (5, 6)
        """
        q = check_element("q", q, self.mechanics.configuration, batch=True)
        values = self._parameters(p)
        refuse_open(self.mechanics, np.asarray(t, dtype=float), q, values)
        found: dict[str, dict[str, np.ndarray]] = {}
        t = check_shape("t", t, (), batch=True)
        multipliers = check_shape("multipliers", multipliers, (len(self.row_names),), batch=True)
        names, function = self._reactions
        each = np.moveaxis(function(t, q, multipliers, values), -2, 0)
        for (joint, body), wrench in zip(names, each, strict=True):
            found.setdefault(joint, {})[body] = wrench
        return found

    @cached_property
    def _reactions(self) -> tuple[list[tuple[str, str]], ModelFunction]:
        """Joints and bodies, and ``(t, q, multipliers, p)`` → a wrench for each, (..., n, 6)."""
        own = self.constraints
        sizes = {"q": own.group.nq, "multipliers": own.n_rows, "p": own.n_parameters}
        t, (q, multipliers, p) = ca.SX.sym("t"), (ca.SX.sym(key, n) for key, n in sizes.items())
        wrenches = {
            (joint, body): wrench
            for joint, of in self._wrenches(q, t, p)
            for body, wrench in of(multipliers[own.rows_of(joint)]).items()
        }
        rows = ca.densify(ca.horzcat(*wrenches.values())).T
        made = ca.Function("reactions", [t, q, multipliers, p], [rows], ["t", *sizes], ["wrenches"])
        shapes = {"t": (), "wrenches": (len(wrenches), 6)}
        return [*wrenches], ModelFunction(made, shapes=shapes)

    @interruptible
    def system(
        self,
        inputs: Iterable[Input | str] | None = None,
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
            Joints of a tree that are driven, or motors of a mechanism; all if left out.
        at : array_like, shape (nq,), optional
            Configuration at which independent coordinates are chosen or judged; the assembled one
            if left out.
        independent, independent_speeds : iterable of str, optional
            Joints, their coordinates ("rail.z"), or entries of the tangent vector that decide the
            others; chosen if left out. If the coordinate of a joint is not linear in the entries,
            the error coordinate is its linearization at `at`.
        stabilization, rates, name
            See `constrained_system`.
        **options
            What acts on a tree, see `Multibody.system`.

        Returns
        -------
        System
            With a quantity "reaction_JOINT_BODY" for each wrench of `reactions`.
        """
        base, constraints = self._base(inputs, name, options)
        at = self.assemble() if at is None else self._configuration(at)
        self._check_inertia(at)
        return constrained_system(
            base,
            constraints,
            at=at,
            independent=independent,
            independent_speeds=independent_speeds,
            stabilization=stabilization,
            rates=rates,
            quantities=self._reaction_quantities(constraints),
            coordinates=self._joint_coordinates(at),
            name=name,
        )

    def _reaction_quantities(self, constraints: Constraints) -> dict[str, Quantity]:
        nq = constraints.group.nq
        t, q = ca.SX.sym("t"), ca.SX.sym("q", nq)
        p, found = ca.SX.sym("p", constraints.n_parameters), {}
        for joint, of in self._wrenches(q, t, p):
            rows = constraints.rows_of(joint)
            force = ca.SX.sym("force", len(rows))
            for body, wrench in of(force).items():
                made = ca.Function("reaction", [t, q, p, force], [ca.densify(wrench)])

                def value(
                    t: Any,
                    x: Any,
                    u: Any,
                    p: Any,
                    multipliers: Any,
                    made: Any = made,
                    rows: Any = rows,
                ) -> Any:
                    clock = x[-1] if constraints.is_driven else 0.0
                    return made(clock, x[:nq], p, multipliers[rows])

                of_multipliers: Any = value  # which `constrained_system` adds
                found[f"reaction_{joint}_{body}"] = Quantity(of_multipliers, WRENCH_AXES)
        return found

    @cached_property
    def problem(self) -> Problem:
        """The motion with its constraints, as methods that solve for multipliers take it.

        Its states are configuration and velocity, and the clock where there are drives.
        """
        own, rows = self.mechanics, self.constraints

        def balance(t: Any, q: Any, v: Any, u: Any, p: Any, a: Any, multipliers: Any) -> Any:
            G = rows.terms(t, q, v, p).G
            return self._mass_matrix(q, p) @ a - self._force(t, q, v, u, p) + G.T @ multipliers

        def index1(t: Any, q: Any, v: Any, u: Any, p: Any) -> Any:
            at = rows.terms(t, q, v, p)
            return self._mass_matrix(q, p), self._force(t, q, v, u, p), at.G, at.gamma

        return Problem(
            own.state,
            own.field,
            n_inputs=own.base.n_inputs,
            n_parameters=own.base.n_parameters,
            constrained=Constrained(rows.n_rows, balance, rows.position, index1, rows.velocity),
        )

    @named_options(own="method")
    def march(
        self,
        x0: Any,
        dt: float,
        steps: int,
        method: Index3Method | Literal["charts"] | None = None,
        *,
        u: Any = None,
        p: FixedParameters | None = None,
    ) -> March:
        """Motion by a method whose steps end on the constraints, without a projection.

        An `Index3Method` solves for multipliers in its steps. "charts" takes classical steps of
        order four in local coordinates of the manifold. All stages satisfy the constraints. The
        chart changes when the tangent directions have turned too far from its centre.

        Interpreted, a step takes a millisecond; ``set_compile_policy("eager")`` before the first
        march compiles it to some ten microseconds.

        Parameters
        ----------
        x0 : array_like, shape (nq + nv,), with the clock after it where there are drives
            See `state`.
        dt : float
            Step [s].
        steps : int
        method : Index3Method or "charts", optional
            `generalized_alpha` with its default radius if left out.
        u : array_like, shape (n_inputs,), optional
            Held inputs; nominal if left out.
        p : mapping or array_like, optional

        Raises
        ------
        ValueError
            If x0 does not keep the constraints, or some say the same as others, or there are charts
            and rows that hold velocities alone.
        """
        chosen = generalized_alpha() if method is None else method
        if not isinstance(chosen, Index3Method) and chosen != CHARTS:
            raise TypeError(
                "march takes an Index3Method such as generalized_alpha(), or "
                f'"charts", not {chosen!r}; other methods are for rollout of system()'
            )
        check_step(dt, steps)
        if u is None and p is None and isinstance(chosen, Index3Method):  # else it takes neither
            found = self._sparse_march(x0, float(dt), int(steps), chosen)
            if found is not None:
                return found
        own, values = self.mechanics, self._parameters(p)
        start = check_shape("x0", x0, (own.state.nq,))
        held = own.base.nominal_input if u is None else u
        held = check_shape("u", held, (own.base.n_inputs,))
        if not self._hint(start[: own.configuration.nq]):  # else the march ends at once, says so
            self._check_inertia(start[: own.configuration.nq])
            refuse_march(own, start, values, self.thinned)
        t0 = float(start[-1]) if self.constraints.is_driven else 0.0
        if isinstance(chosen, Index3Method):
            if chosen not in self._marches:
                self._marches[chosen] = march_step(self.problem, chosen)
            step, nv, along = self._marches[chosen], own.configuration.dim, (float(dt), int(steps))
            made = march(self.problem, chosen, step, nv, start, held, values, *along, t0)
        else:
            made = self._charted.march(start, held, values, float(dt), int(steps), t0)
        if made.unsolved is None:
            return made
        return replace(made, hint=self._hint(made.x[made.unsolved][: own.configuration.nq]))

    @cached_property
    def _charted(self) -> ChartedMotion:
        return ChartedMotion(self.mechanics)

    @cached_property
    def _marches(self) -> dict[Index3Method, ModelFunction]:
        return {}

    @named_options
    def plot(
        self, q: Any = None, *, p: FixedParameters | None = None, figure: Any = None
    ) -> Figure:
        """Bodies in space: capsules to the points that joints hold, and their names.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Configuration; the assembled one if left out.
        p : mapping or array_like, optional
        figure : matplotlib.figure.Figure, optional
            Axes to draw on; new ones if left out.
        """
        from ...plotting import plot_path

        values = self._parameters(p)
        q = self.assemble(p=values) if q is None else self._closed(q, values)
        poses, points = self.poses(q, p=values), self._points(q, values)
        every = np.vstack([*(pose[:3] for pose in poses.values()), *points.values()])
        thick = THICKNESS * max(float(np.ptp(every, axis=0).max()), 1e-3)
        bodies = []
        for name, pose in poses.items():
            back = SE3.inverse(pose)
            ends = [SE3.act(back, point) for point in points.get(name, ())]
            links = [between(np.zeros(3), end, thick) for end in ends] or [
                between(np.zeros(3), np.zeros(3), 2 * thick)
            ]
            bodies.append(SceneBody(name, links, pose[None]))
        return plot_path(Scene(self.name, np.zeros(1), bodies), figure=figure)

    def _closed(self, q: Any, p: np.ndarray) -> np.ndarray:
        """A configuration that keeps the joints; of drives any time may be meant."""
        q = self._configuration(q)
        phi = np.asarray(self.constraints.position(ca.DM(0.0), ca.DM(q), ca.DM(p))).ravel()
        still = [i for i, is_driven in enumerate(driven_rows(self.constraints)) if not is_driven]
        own = self.constraints
        names, units = ([each[i] for i in still] for each in (own.row_names, own.units))
        refuse_gap(self.name, np.zeros(1), phi[still, None], names, units)
        return q

    def _driven_angles(self, q: ca.SX, t: float) -> list[HeldCoordinate]:
        """Angles that drives give, where their rows also hold half a turn off."""
        return []

    @named_options
    def scene(self, q: Any = None, *, p: FixedParameters | None = None) -> Scene:
        """What there is to see of a configuration: the bodies with their shapes.

        Parameters
        ----------
        q : array_like, shape (nq,), optional
            Configuration; the assembled one if left out.
        p : mapping or array_like, optional
        """
        values = self._parameters(p)
        q = self.assemble(p=values) if q is None else self._closed(q, values)
        base, group = self.mechanics.base, self.mechanics.configuration
        look: Any = base.look
        scenery = Scenery(HeldLook(replace(look, block="")))
        return scene_of_states(self.name, group, np.zeros(1), q[np.newaxis], scenery)

    def _configuration(self, q: Any) -> np.ndarray:
        return check_element("q", q, self.mechanics.configuration)

    def _parameters(self, p: FixedParameters | None) -> np.ndarray:
        base = self.mechanics.base
        return values_by_name(base.parameters, base.nominal_parameters, p)

    def _speed_row(self, q: np.ndarray, name: str) -> np.ndarray:
        known = coordinates_by_name(self.mechanics.configuration, self._joint_coordinates(q))
        check_known("velocity", known, name)
        return known[name].row

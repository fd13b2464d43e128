"""Mechanism: bodies and joints by name, in absolute coordinates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, named_options
from ...codegen._internal import (
    UnknownNameError,
    as_names,
    check_shape,
    interruptible,
    unknown_name,
)
from ...groups import SE3, SO3, Product, check_element
from ...integrators import Constrained, generalized_alpha
from ...integrators._internal import Index3Method, Problem
from ...systems import System, Trajectory
from ...systems._internal import check_name
from .._fields import read_only
from .._mechanical import mechanical
from ..surroundings._forces import STANDARD_GRAVITY, Force, Gravity
from ..surroundings._surroundings import Surroundings
from ._assembly import AssemblyError, assemble
from ._attitudes import attitude_type
from ._basic import GROUND
from ._body import MechanismBody
from ._closed_forms import ClosedForms
from ._direct import DirectAnalysis, Matrix, Start, consistent
from ._equations import FreeBodies, MechanismEquations, joint_wrenches
from ._formulations import formulation
from ._joints import MechanismJoint
from ._kinematics import KinematicsResult, dynamics_function, kinematics, wrench_function
from ._large import LargeMechanism
from ._march import March, march, march_step
from ._mobility import Mobility, mobility
from ._motors import MechanismMotor
from ._refusals import refuse_march, refuse_singular_mass, singular_angles
from ._system import ConstrainedMechanics, Stabilization, constrained_system
from ._units import held_by_joints, warn_of_units


@named_options
class Mechanism:
    """Rigid bodies with joints between them, in absolute coordinates: ``M v̇ + Gᵀ λ = F``.

    Every body has all its six freedoms as coordinates, and the joints are equations between them;
    loops are as good as chains. A formulation is one word: "SO3xR3" (velocities ṙ in world axes and
    ω in body axes), "SE3" (body twists), "rp" (Euler parameters), "re" (Euler angles z-x-z).

    Parameters
    ----------
    name : str
    bodies : iterable of MechanismBody
    joints : iterable of MechanismJoint
        What ties them, drives among them.
    motors : iterable of MechanismMotor
        Torques and forces as inputs.
    gravity : array_like, shape (3,)
        Acceleration of free fall in world axes [m/s²].
    symbolic : iterable of str
        Numbers that stay symbolic, as parameters: "crank.mass", "crank.inertia", forces such as
        "crank.gravity", or entries such as "crank.inertia.xx".

    Raises
    ------
    ValueError
        If two bodies, joints or motors have one name, or a joint or body is called like another.
    KeyError
        If a joint names a body that is not there; the message lists those there are.

    Warns
    -----
    UserWarning
        If points of joints, inertias and gravity cannot have one unit of length: millimetres.

    References
    ----------
    Kissel, Taves, Negrut: Constrained multibody kinematics and dynamics in absolute coordinates.

    Examples
    --------
    A door on its hinge.

    >>> from lgcontrol.mechanics import SpatialInertia
    >>> from lgcontrol.mechanics.constrained import Marker, revolute
    >>> door = MechanismBody("door", SpatialInertia.box(20.0, [0.8, 0.04, 2.0]),
    ...                      pose=[0.4, 0, 1, 0, 0, 0, 1])
    >>> hinge = revolute("hinge", Marker("ground", [0, 0, 1]), Marker("door", [-0.4, 0, 0]))
    >>> Mechanism("cupboard", [door], [hinge]).mobility().freedoms
    1
    """

    def __init__(
        self,
        name: str,
        bodies: Iterable[MechanismBody],
        joints: Iterable[MechanismJoint] = (),
        *,
        motors: Iterable[MechanismMotor] = (),
        gravity: Any = STANDARD_GRAVITY,
        symbolic: Iterable[str] = (),
    ) -> None:
        check_name("mechanism", name)
        self.name = name
        self.bodies = _by_name(name, "body", bodies, MechanismBody)
        self.joints = _by_name(name, "joint", joints, MechanismJoint)
        self.motors = _by_name(name, "motor", motors, MechanismMotor)
        self.gravity = read_only(check_shape("gravity", gravity, (3,)))
        self.symbolic = as_names(symbolic)
        if not self.bodies:
            raise ValueError(f"{name} has no bodies")
        same = sorted(set(self.bodies) & set(self.joints))
        if same:
            raise ValueError(f"{name}: {same[0]!r} is the name of a body and of a joint")
        for what, used in [
            *((f"joint {joint.name!r}", joint.bodies) for joint in self.joints.values()),
            *((f"motor {m.name!r}", (m.i.body, m.j.body)) for m in self.motors.values()),
        ]:
            for body in used:
                if body != GROUND and body not in self.bodies:
                    known = [GROUND, *self.bodies]
                    raise UnknownNameError(f"{what}: {unknown_name('body', body, known)}")
        warn_of_units(name, self.gravity, held_by_joints(self.bodies, self.joints.values()))

    def __repr__(self) -> str:
        """Name, bodies and joints."""
        return (
            f"Mechanism({self.name!r}, bodies=[{', '.join(self.bodies)}], "
            f"joints=[{', '.join(self.joints)}])"
        )

    def with_joints(
        self,
        *joints: MechanismJoint,
        without: Iterable[str] = (),
        motors: Iterable[MechanismMotor] = (),
    ) -> Mechanism:
        """Return a copy with further joints, without some, or with further motors.

        Parameters
        ----------
        *joints : MechanismJoint
            New ones; one of a name that is there takes its place.
        without : iterable of str
            Names of joints to leave out, or of single rows, ``joint.row``: those that
            `Mobility.removable` lists.
        motors : iterable of MechanismMotor

        Examples
        --------
        >>> from lgcontrol.mechanics import SpatialInertia
        >>> from lgcontrol.mechanics.constrained import Marker, revolute
        >>> free = Mechanism("bar", [MechanismBody("bar", SpatialInertia.point_mass(1.0))])
        >>> list(free.with_joints(revolute("pin", Marker("ground"), Marker("bar"))).joints)
        ['pin']
        """
        for joint in joints:
            if not isinstance(joint, MechanismJoint):
                raise TypeError(
                    f"expected joints one by one, each a MechanismJoint, got {joint!r}: unpack a "
                    "list by with_joints(*joints)"
                )
        left, names = dict(self.joints), set(as_names(without))
        for name in names:
            if name not in left and name not in self.row_names:
                known = (*self.joints, *self.row_names)
                raise UnknownNameError(unknown_name("joint or row", name, known))
        for name, joint in self.joints.items():
            kept = [row for row in joint.rows if f"{name}.{row.row}" not in names]
            if name in names or not kept:
                del left[name]
            elif len(kept) < len(joint.rows):
                left[name] = MechanismJoint(name, kept, joint.point, joint.freedoms)
        left |= {joint.name: joint for joint in joints}
        return self._like(joints=left.values(), motors=(*self.motors.values(), *motors))

    def with_poses(self, poses: Mapping[str, Any]) -> Mechanism:
        """Return a copy whose bodies start elsewhere, with the rates they have.

        Parameters
        ----------
        poses : mapping of str to array_like, shape (7,)
            SE3 coordinates by body.
        """
        self._refuse_unknown(poses)
        return self._like(
            bodies=[replace(b, pose=poses.get(b.name, b.pose)) for b in self.bodies.values()]
        )

    def _like(self, **changed: Any) -> Mechanism:
        own: dict[str, Any] = {
            "bodies": self.bodies.values(),
            "joints": self.joints.values(),
            "motors": self.motors.values(),
            "gravity": self.gravity,
            "symbolic": self.symbolic,
        }
        return Mechanism(self.name, **(own | changed))

    @cached_property
    def _made(self) -> dict[str, Any]:
        return {}

    def equations(self, name: str = "SO3xR3") -> MechanismEquations:
        """Equations of motion in a formulation, on CasADi columns.

        Parameters
        ----------
        name : str
            "SO3xR3", "SE3", "rp" or "re".
        """
        chosen = formulation(name)
        if chosen.name not in self._made:
            forces: dict[str, Sequence[Force]] = {
                b.name: (Gravity(self.gravity), *b.forces) for b in self.bodies.values()
            }
            self._made[chosen.name] = MechanismEquations(
                chosen,
                {b.name: b.inertia for b in self.bodies.values()},
                tuple(self.joints.values()),
                tuple(self.motors.values()),
                Surroundings(forces),
                self.symbolic,
            )
        return self._made[chosen.name]

    @property
    def row_names(self) -> tuple[str, ...]:
        """``joint.row`` of all equations, in the order of multipliers: those on velocities last."""
        every = [(joint.name, row) for joint in self.joints.values() for row in joint.rows]
        every.sort(key=lambda entry: entry[1].kind == "velocity")
        return tuple(f"{name}.{row.row}" for name, row in every)

    def coordinates(
        self, formulation: str = "SO3xR3", poses: Mapping[str, Any] | None = None
    ) -> np.ndarray:
        """Configuration q of poses, those of the bodies unless others are given.

        Parameters
        ----------
        formulation : str
        poses : mapping of str to array_like, shape (7,), optional
            SE3 coordinates by body.

        Returns
        -------
        ndarray, shape (nq,)
        """
        made, given = self.equations(formulation).formulation, poses or {}
        self._refuse_unknown(given)
        every = [
            check_element(f"pose of body {name!r}", given.get(name, body.pose), SE3)
            for name, body in self.bodies.items()
        ]
        return np.concatenate([made.coordinates(pose[:3], pose[3:]) for pose in every])

    def velocities(
        self, q: Any, rates: Mapping[str, Any] | None = None, formulation: str = "SO3xR3"
    ) -> np.ndarray:
        """Velocities v of a formulation from rates of bodies.

        Parameters
        ----------
        q : array_like, shape (nq,)
            Configuration in the formulation.
        rates : mapping of str to array_like, shape (6,), optional
            ``[ṙ; ω]`` by body, ṙ [m/s] in world axes, ω [rad/s] in body axes; the others have
            those they were made with.
        formulation : str

        Returns
        -------
        ndarray, shape (nv,)
        """
        made, rates = self.equations(formulation).formulation, rates or {}
        self._refuse_unknown(rates)
        x = self._configuration(q, formulation).reshape(len(self.bodies), -1)
        every = [
            check_shape(f"rates of {name!r}", rates.get(name, body.rates), (6,))
            for name, body in self.bodies.items()
        ]
        return np.concatenate([made.velocity(*pair) for pair in zip(x, every, strict=True)])

    def poses(self, q: Any, formulation: str = "SO3xR3") -> dict[str, np.ndarray]:
        """SE3 coordinates of every body in a configuration.

        Parameters
        ----------
        q : array_like, shape (nq,)
        formulation : str
        """
        frames = self.equations(formulation).frames(ca.DM(self._configuration(q, formulation)))
        return {
            name: np.concatenate([np.asarray(r).ravel(), SO3.from_matrix(np.asarray(ca.DM(A)))])
            for name, (r, A) in frames.items()
        }

    def rates(self, q: Any, v: Any, formulation: str = "SO3xR3") -> dict[str, np.ndarray]:
        """``[ṙ; ω]`` of every body; see `velocities`.

        Parameters
        ----------
        q : array_like, shape (nq,)
        v : array_like, shape (nv,)
        formulation : str
        """
        own = self.equations(formulation)
        v = check_shape("v", v, (own.velocity.dim,))
        found = own.rates(ca.DM(self._configuration(q, formulation)), ca.DM(v))
        return {name: np.asarray(ca.DM(rate)).ravel() for name, rate in found.items()}

    def dynamics(self, formulation: str = "SO3xR3") -> ModelFunction:
        """``(t, q, v, u, p) → phi, G, nu, gamma, M, F``: all terms of the equations of motion.

        Parameters
        ----------
        formulation : str
        """
        key = f"dynamics {formulation}"
        if key not in self._made:
            own = self.equations(formulation)
            self._made[key] = dynamics_function(
                own.constraints,
                own.mass_matrix,
                own.force,
                own.nominal_inputs,
                own.nominal_parameters,
            )
        return self._made[key]

    @interruptible
    def assemble(
        self,
        formulation: str = "SO3xR3",
        *,
        poses: Mapping[str, Any] | None = None,
        t: float = 0.0,
        held: Iterable[str] = (),
        attempts: int = 8,
    ) -> np.ndarray:
        """Configuration near the poses that closes all joints.

        Another branch is chosen by poses nearer to it, by bodies that are `held` where they are, or
        by a drive (`angle_drive`, `position_drive`) that names a coordinate of a joint.

        Parameters
        ----------
        formulation : str
        poses : mapping of str to array_like, shape (7,), optional
            Guesses by body, SE3 coordinates; the others are as they were made.
        t : float
            Time of the drives [s].
        held : iterable of str
            Bodies that stay where their guess is.
        attempts : int
            Starts around the guess, where it leads nowhere itself.

        Returns
        -------
        ndarray, shape (nq,)

        Raises
        ------
        AssemblyError
            If it cannot be assembled: says which equations contradict each other.
        """
        own, rng = self.mechanics(formulation), np.random.default_rng(0)
        group, names = own.configuration, list(self.bodies)
        guess = self.coordinates(formulation, poses)
        refuse_singular_mass(self.equations(formulation), own, guess)
        fixed, free, size = {}, np.ones(group.dim), group.dim // len(names)
        held = as_names(held)
        self._refuse_unknown(held)
        for name in held:
            k, n = names.index(name), group.nq // len(names)
            fixed |= {i: float(guess[i]) for i in range(k * n, (k + 1) * n)}
            free[k * size : (k + 1) * size] = 0.0
        failed: AssemblyError | None = None
        for attempt in range(max(attempts, 1)):
            away = free * rng.normal(size=group.dim) * 0.1 * attempt
            try:
                return assemble(own, group.plus(guess, away), held=fixed, t=t)
            except AssemblyError as error:
                failed = failed or error
        assert failed is not None
        raise failed

    def assembled(self, **options: Any) -> Mechanism:
        """Return a copy whose bodies start where all joints are closed.

        Parameters
        ----------
        **options
            As for `assemble`.

        Raises
        ------
        AssemblyError
            If it cannot be assembled: says which equations contradict each other.
        """
        return self.with_poses(self.poses(self.assemble(**options)))

    def mechanics(self, formulation: str = "SO3xR3") -> ConstrainedMechanics:
        """Equations of the bodies with their constraints, as `constrained_system` has them.

        Parameters
        ----------
        formulation : str
        """
        key = f"mechanics {formulation}"
        if key not in self._made:
            own = self.equations(formulation)
            made = ConstrainedMechanics(self.free_system(formulation), own.constraints)
            self._made[key] = made
        return self._made[key]

    @interruptible
    def system(
        self,
        formulation: str = "SO3xR3",
        *,
        independent: str | Iterable[str] | None = None,
        independent_speeds: str | Iterable[str] | None = None,
        stabilization: Stabilization = "projection",
        rates: tuple[float, float] = (5.0, 5.0),
        at: Any = None,
    ) -> System[Product]:
        """System on the manifold of the constraints; see `constrained_system`.

        Parameters
        ----------
        formulation : str
        independent : iterable of str, optional
            What decides the others: freedoms of joints, such as "hinge.rz" or, where a joint has
            one alone, "hinge"; or entries of the configuration's tangent vector, such as
            "crank.attitude.rz". Entries are chosen if left out. Angles of revolute joints are
            linear in the turns of bodies; where another freedom is not (or in Euler parameters and
            angles) the error coordinate is what it is linearly at `at`.
        independent_speeds : iterable of str, optional
            Those whose velocities decide the others, where something rolls.
        stabilization : {"projection", "baumgarte", "none"}
        rates : (float, float)
            Of Baumgarte's stabilization [1/s].
        at : array_like, shape (nq,), optional
            Configuration where independent coordinates are chosen; the assembled one if left out.

        Returns
        -------
        System
            With the quantities "kinetic_energy", "potential_energy", "multipliers" and
            "reaction_JOINT_BODY" of every joint on each of its bodies (see `reactions`).
        """
        own, mechanics = self.equations(formulation), self.mechanics(formulation)
        at = self.assemble(formulation) if at is None else self._configuration(at, formulation)
        refuse_singular_mass(own, mechanics, at)
        nq = own.configuration.nq

        def of(joint: MechanismJoint, body: str) -> Callable[..., Any]:
            rows = own.constraints.rows_of(joint.name)

            def reaction(t: Any, x: Any, u: Any, p: Any, multipliers: Any) -> Any:
                clock = x[-1] if own.constraints.is_driven else 0.0
                return joint_wrenches(joint, clock, own.frames(x[:nq]), multipliers[rows])[body]

            return reaction

        return constrained_system(
            self.free_system(formulation),
            own.constraints,
            at=at,
            independent=independent,
            independent_speeds=independent_speeds,
            stabilization=stabilization,
            rates=rates,
            quantities={
                f"reaction_{joint.name}_{body}": of(joint, body)
                for joint in self.joints.values()
                for body in joint.bodies
                if body != GROUND
            },
            coordinates=own.joint_coordinates(at),
        )

    def state(
        self, formulation: str = "SO3xR3", *, q: Any = None, rates: Any = None, t: float = 0.0
    ) -> np.ndarray:
        """State of a System: an assembled configuration and velocities that keep the constraints.

        Parameters
        ----------
        formulation : str
        q : array_like, shape (nq,), optional
            Configuration; the assembled one if left out.
        rates : mapping of str to array_like, shape (6,), optional
            ``[ṙ; ω]`` by body, those of the bodies for the others; the nearest velocities in the
            metric of M that keep the constraints are taken.
        t : float
            Time of the drives [s].

        Returns
        -------
        ndarray, shape (nq + nv,), with the clock after it where there are drives
        """
        own = self.mechanics(formulation)
        q = self.assemble(formulation, t=t) if q is None else self._configuration(q, formulation)
        v = self.velocities(q, rates, formulation)
        p = own.base.nominal_parameters
        return np.asarray(own.project(ca.DM(own.complete(q, v, t)), ca.DM(p))).ravel()

    def mobility(self, q: Any = None, t: float = 0.0, formulation: str = "SO3xR3") -> Mobility:
        """Freedoms, redundant rows and singular positions in a configuration or along a motion.

        Parameters
        ----------
        q : array_like of shape (nq,), or Trajectory, optional
            Configuration that keeps the constraints, the assembled one if left out; or a motion, of
            which `Mobility.singular_positions` are reported with their times. Steps do not notice
            these: their equations stay solvable.
        t : float
            Time of the drives [s].
        formulation : str

        Raises
        ------
        AssemblyError
            If q is left out and the mechanism cannot be assembled.
        """
        own = self.equations(formulation)
        if q is None:
            q = self.assemble(formulation, t=t)
        if not isinstance(q, Trajectory):
            q = self._configuration(q, formulation)
        return mobility(
            self.mechanics(formulation),
            q,
            t,
            own.nominal_parameters,
            lambda q: singular_angles(own, q),
        )

    def kinematics(
        self, t: Any, formulation: str = "SO3xR3", *, q: Any = None, tolerance: float = 1e-13
    ) -> KinematicsResult:
        """Motion that drives decide, with multipliers: inverse dynamics.

        Parameters
        ----------
        t : array_like, shape (N,)
            Increasing times [s].
        formulation : str
        q : array_like, shape (nq,), optional
            Configuration near the first one; the assembled one if left out.
        tolerance : float
            Of φ.

        Returns
        -------
        KinematicsResult
            With its status; singular positions on the way are listed with names and times.

        Raises
        ------
        ValueError
            If the drives leave freedoms: says how many; or if there are rows on velocities.
        """
        own = self.equations(formulation)

        def start(time: float) -> np.ndarray:
            given = self.assemble(formulation, t=time) if q is None else q
            return self._configuration(given, formulation)

        return kinematics(
            self.mechanics(formulation),
            self.dynamics(formulation),
            t,
            start,
            own.nominal_inputs,
            own.nominal_parameters,
            tolerance=tolerance,
            remedy="angle_drive or position_drive joints",
            hint=lambda q: singular_angles(own, q),
        )

    def reactions(
        self, t: Any, q: Any, multipliers: Any, *, formulation: str = "SO3xR3"
    ) -> dict[str, dict[str, np.ndarray]]:
        """Wrench of every joint on each of its bodies, ``[f; m]`` by joint and body.

        Parameters
        ----------
        t : array_like, shape (...)
            Time, or times [s].
        q : array_like, shape (..., nq)
        multipliers : array_like, shape (..., m)
            λ of all rows.
        formulation : str

        Returns
        -------
        dict of str to dict of str to ndarray, shape (..., 6)
            f [N] in world axes, m [N m] in body axes about the centre of mass. Where `mobility`
            lists dependent rows, those of their joints are not unique: of all, these are the
            shortest.

        Examples
        --------
        >>> from lgcontrol.models import pendulum_mechanism
        >>> pendulum = pendulum_mechanism()
        >>> run = pendulum.kinematics(np.linspace(0, 1, 5))
        >>> pendulum.reactions(run.t, run.q, run.multipliers)["driver"]["rod"].shape
        (5, 6)
        """
        own, key = self.equations(formulation), f"reactions {formulation}"
        if key not in self._made:
            symbols = {
                "t": ca.SX.sym("t"),
                "q": ca.SX.sym("q", own.configuration.nq),
                "multipliers": ca.SX.sym("multipliers", own.constraints.n_rows),
            }
            found = own.reactions(*symbols.values())
            wrenches = {(joint, body): W for joint in found for body, W in found[joint].items()}
            self._made[key] = wrench_function(symbols, wrenches)
        found = {joint: {} for joint in self.joints}
        for (joint, body), wrench in self._made[key](t=t, q=q, multipliers=multipliers).items():
            found[joint][body] = wrench
        return found

    def problem(self, formulation: str = "SO3xR3") -> Problem:
        """The motion with its constraints, as methods that solve for multipliers take it.

        Parameters
        ----------
        formulation : str

        Returns
        -------
        Problem
            Its states are configuration and velocity, and the clock where there are drives.
        """
        key = f"problem {formulation}"
        if key not in self._made:
            own, free = self.equations(formulation), self.mechanics(formulation)

            def balance(t: Any, q: Any, v: Any, u: Any, p: Any, a: Any, multipliers: Any) -> Any:
                G = own.constraints.terms(t, q, v, p).G
                M = own.mass_matrix(q, p)
                return M @ a - own.force(t, q, v, u, p) + G.T @ multipliers

            def index1(t: Any, q: Any, v: Any, u: Any, p: Any) -> Any:
                at = own.constraints.terms(t, q, v, p)
                return own.mass_matrix(q, p), own.force(t, q, v, u, p), at.G, at.gamma

            self._made[key] = Problem(
                free.state,
                free.field,
                n_inputs=len(own.inputs),
                n_parameters=len(own.parameters),
                constrained=Constrained(
                    own.constraints.n_rows,
                    balance,
                    own.constraints.position,
                    index1,
                    own.constraints.velocity,
                ),
            )
        return self._made[key]

    def march(
        self,
        x0: Any,
        dt: float,
        steps: int,
        method: Index3Method | None = None,
        formulation: str = "SO3xR3",
        *,
        u: Any = None,
    ) -> March:
        """Motion by a method that solves for multipliers in its steps (index 3).

        Interpreted, a step takes a millisecond; ``set_compile_policy("eager")`` before the first
        march compiles it to some ten microseconds.

        Parameters
        ----------
        x0 : array_like, shape (nq + nv,), with the clock after it where there are drives
            See `state`.
        dt : float
            Step [s].
        steps : int
        method : Index3Method, optional
            `generalized_alpha` with its default radius if left out.
        formulation : str
        u : array_like, shape (n_inputs,), optional
            Held inputs; nominal if left out.

        Returns
        -------
        March

        Raises
        ------
        ValueError
            If x0 does not keep the constraints, or some say the same as others.
        """
        chosen = generalized_alpha() if method is None else method
        if not isinstance(chosen, Index3Method):
            raise TypeError(
                f"march takes an Index3Method such as generalized_alpha(), not {chosen!r}; other "
                "methods are for rollout of system()"
            )
        own, problem = self.equations(formulation), self.problem(formulation)
        start = check_shape("x0", x0, (problem.group.nq,))
        refuse_march(own, self.mechanics(formulation), start)
        held = own.nominal_inputs if u is None else u
        held = check_shape("u", held, (len(own.inputs),))
        p = own.nominal_parameters
        t0 = float(start[-1]) if own.constraints.is_driven else 0.0
        key = f"march {formulation} {chosen}"
        if key not in self._made:
            self._made[key] = march_step(problem, chosen)
        made = march(
            problem,
            chosen,
            self._made[key],
            own.velocity.dim,
            start,
            held,
            p,
            float(dt),
            int(steps),
            t0,
        )
        if made.unsolved is None:
            return made
        return replace(made, hint=singular_angles(own, made.x[made.unsolved]))

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self.bodies:
                raise UnknownNameError(unknown_name("body", name, self.bodies))

    def _configuration(self, q: Any, formulation: str) -> np.ndarray:
        return check_shape("q", q, (self.equations(formulation).configuration.nq,))

    def closed_forms(self, attitude: str = "rA") -> ClosedForms:
        """Constraint terms in closed form, on arrays.

        Parameters
        ----------
        attitude : str
            "rA" (orientation matrix), "rp" (Euler parameters) or "re" (Euler angles).

        Raises
        ------
        ValueError
            If a joint has rows that are no basic constraints, or anything acts besides weight.
        """
        acting = [b.name for b in self.bodies.values() if b.forces] + list(self.motors)
        if acting:
            raise ValueError(
                f"{self.name}: closed forms know weight and joints alone, not what else acts "
                f"({', '.join(acting)}); take system(), which does"
            )
        inertias = {b.name: b.inertia for b in self.bodies.values()}
        size = attitude_type(attitude).size
        return ClosedForms(inertias, tuple(self.joints.values()), self.gravity, size)

    def direct(
        self,
        attitude: str = "rA",
        *,
        rates: Mapping[str, Any] | None = None,
        matrix: Matrix = "iteration",
        switched: tuple[MechanismJoint, Callable[[float], bool]] | None = None,
        is_predicted: bool = True,
    ) -> DirectAnalysis:
        """Kinematics and index-3 dynamics as in the paper, in closed form on arrays.

        Parameters
        ----------
        attitude : str
            "rA", "rp" or "re".
        rates : mapping of str to array_like, shape (6,), optional
            ``[ṙ; ω]`` at the start by body; those of the bodies for the others. The nearest rates
            that keep the constraints are taken.
        matrix : {"iteration", "step"}
            When the matrix of Newton's method is made.
        switched : tuple of MechanismJoint and callable, optional
            A drive that takes the place of the one of its name while ``t → bool`` is true.
        is_predicted : bool
            Whether kinematics moves positions with the last velocities before it iterates.

        References
        ----------
        Kissel, Taves, Negrut: Constrained multibody kinematics and dynamics in absolute
        coordinates: a discussion of three approaches to representing rigid body rotation.

        Examples
        --------
        >>> from lgcontrol.mechanics import SpatialInertia
        >>> from lgcontrol.mechanics.constrained import Marker, angle_drive, revolute
        >>> axis = Marker("ground"), Marker("disc")
        >>> disc = MechanismBody("disc", SpatialInertia.box(1.0, [1, 1, 0.1]))
        >>> turned = Mechanism("disc_on_axis", [disc], [
        ...     revolute("axis", *axis), angle_drive("drive", *axis, lambda t: 2 * t)])
        >>> turned.direct("rp").kinematics(np.linspace(0, 1, 11)).omega[-1].round(9)
        array([[0., 0., 2.]])
        """
        start, other = self._start(rates), None
        if switched is not None:
            other = (self.with_joints(switched[0]).closed_forms(attitude), switched[1])
        forms = self.closed_forms(attitude)
        return DirectAnalysis(forms, start, attitude, matrix, other, is_predicted)

    def large(self, *, rates: Mapping[str, Any] | None = None) -> LargeMechanism:
        """Index-3 steps with sparse matrices, for mechanisms of hundreds of bodies.

        Parameters
        ----------
        rates : mapping of str to array_like, shape (6,), optional
            As for `direct`; here they must keep the constraints.
        """
        return LargeMechanism(self.closed_forms(), self._start(rates, is_consistent=True))

    def _start(
        self, rates: Mapping[str, Any] | None, *, is_consistent: bool = False
    ) -> dict[str, Start]:
        """r, A, ṙ, ω of every body, with rates that keep the constraints."""
        start: dict[str, Start] = {}
        self._refuse_unknown(rates or {})
        for name, body in self.bodies.items():
            own = check_shape(f"rates of {name!r}", (rates or {}).get(name, body.rates), (6,))
            start[name] = (body.pose[:3], SO3.matrix(body.pose[3:]), own[:3], own[3:])
        return start if is_consistent else consistent(self.closed_forms(), start)

    def free_system(self, formulation: str = "SO3xR3") -> System[Product]:
        """System of the bodies alone, without their joints: what constraints act on.

        Parameters
        ----------
        formulation : str
        """
        own = self.equations(formulation)
        bodies = FreeBodies(own)
        nq = own.configuration.nq
        return System(
            self.name,
            bodies.state,
            bodies.field,
            inputs=own.inputs,
            parameters=own.parameters,
            quantities={
                "kinetic_energy": lambda t, x, u, p: own.kinetic_energy(x[:nq], x[nq:], p),
                "potential_energy": lambda t, x, u, p: own.potential_energy(x[:nq], p),
            },
            structure=mechanical(
                bodies,
                bodies.state,
                own.inputs,
                own.parameters,
                model=self,
                momenta=bodies if own.is_plain else None,
            ),
        )


def _by_name(owner: str, kind: str, entries: Iterable[Any], wanted: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for entry in entries:
        if not isinstance(entry, wanted):
            given = type(entry).__name__
            raise TypeError(f"{owner}: expected a {wanted.__name__} as {kind}, not {given}")
        if entry.name in found:
            raise ValueError(f"{owner}: two of kind {kind} are called {entry.name!r}")
        found[entry.name] = entry
    return found

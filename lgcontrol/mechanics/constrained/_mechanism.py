"""Mechanism: bodies and joints by name, in absolute coordinates."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from ..._names import member_hint
from ...codegen import Value, named_options
from ...codegen._internal import (
    as_names,
    ask_degrees,
    check_increasing,
    check_known,
    check_one_by_one,
    check_shape,
)
from ...groups import SE3, SO3, Product, check_element
from ...integrators._internal import Index3Method
from ...io._internal import check_file, with_ending
from ...systems import Input, System
from ...systems._internal import FREE_FALL, FixedParameters, check_name
from .._coefficients import read_only
from .._mechanical import mechanical
from ..inertia._inertia import SpatialInertia
from ..surroundings._forces import Force, Gravity
from ..surroundings._surroundings import Surroundings, coefficient_name
from ._assembly import HeldCoordinate
from ._basic import GROUND
from ._constraint import Constraints
from ._equations import FreeBodies, MechanismEquations, joint_wrenches
from ._expression import motion_of
from ._formulations import AUTO, Choice, Formulation, as_formulation
from ._joints import JointCoordinate, MechanismBody, MechanismJoint, angle_drive, position_drive
from ._kinematics import KinematicsResult
from ._large import LargeMechanism, has_closed_forms
from ._linkage import Linkage
from ._look import mechanism_look
from ._march import March
from ._marker_forces import MarkerForce, MechanismMotor
from ._mechanism_file import read_mechanism, written
from ._mobility import refuse_gap, refuse_singular_mass, refuse_zero_lengths, singular_angles
from ._system import ConstrainedMechanics, Coordinate, null_space
from ._units import held_by_joints, points_of, warn_of_units

# Brackets of a subgroup's twists leave its algebra by no more than rounding.
CLOSED_ALGEBRA = 1e-9
# Bodies from which sparse steps are faster than written-out ones, compiled and set up: see
# mechanisms.json of the benchmarks, part sizes.
LARGE_MECHANISM = 20
# Joints that drive coordinates, and that files can hold.
DRIVES = {"rz": angle_drive, "z": position_drive}


@named_options
class Mechanism(Linkage):
    """Rigid bodies with joints between them, in absolute coordinates: ``M v̇ + Gᵀ λ = F``.

    Every body has all its six degrees of freedom as coordinates, and the joints are equations
    between them; loops are as good as chains. See `formulated` for the coordinates.

    Parameters
    ----------
    name : str
    bodies : iterable of MechanismBody
    joints : iterable of MechanismJoint
        What ties them, drives among them.
    motors : iterable of MechanismMotor
        Torques and forces as inputs.
    forces : iterable of MarkerForce
        Forces between bodies, such as `spring_damper` makes.
    gravity : array_like, shape (3,)
        Acceleration of free fall in world axes [m/s²].
    formulation : str, Formulation, UnifiedVelocity, or mapping of str to these
        See `formulated`.

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
    >>> cupboard = Mechanism("cupboard", [door], [hinge])
    >>> cupboard.mobility().degrees_of_freedom
    1
    >>> open_door = cupboard.poses(cupboard.assemble(where={"hinge": np.pi / 2}))["door"]
    >>> open_door[:3].round(9)
    array([0. , 0.4, 1. ])
    """

    thinned = "leave out those that say the same by with_joints(without=mobility().removable)"

    def __init__(
        self,
        name: str,
        bodies: Iterable[MechanismBody],
        joints: Iterable[MechanismJoint] = (),
        *,
        motors: Iterable[MechanismMotor] = (),
        forces: Iterable[MarkerForce] = (),
        gravity: Any = FREE_FALL,
        formulation: Choice = "SO3xR3",
    ) -> None:
        check_name("mechanism", name)
        self.name = name
        self.bodies = _by_name(name, "body", bodies, MechanismBody)
        self.joints = _by_name(name, "joint", joints, MechanismJoint)
        self.motors = _by_name(name, "motor", motors, MechanismMotor)
        self.forces = _by_name(name, "force", forces, MarkerForce)
        self.gravity = read_only(check_shape("gravity", gravity, (3,)))
        self._symbols: tuple[str, ...] = ()
        if not self.bodies:
            raise ValueError(f"{name} has no bodies")
        same = sorted(set(self.bodies) & set(self.joints))
        if same:
            raise ValueError(f"{name}: {same[0]!r} is the name of a body and of a joint")
        for what, used in [
            *((f"joint {joint.name!r}", joint.bodies) for joint in self.joints.values()),
            *((f"motor {m.name!r}", (m.i.body, m.j.body)) for m in self.motors.values()),
            *((f"force {force.name!r}", force.bodies) for force in self.forces.values()),
        ]:
            check_known("body", [GROUND, *self.bodies], *used, where=what)
        self.formulations: Mapping[str, Formulation] = self._formulations(formulation)
        warn_of_units(name, self.gravity, held_by_joints(self.bodies, self.joints.values()))

    @classmethod
    @named_options
    def from_json(
        cls, path: str | PathLike[str], *, inertias: Mapping[str, SpatialInertia] | None = None
    ) -> Mechanism:
        """Mechanism of a JSON file: our own, or one of Kissel, Taves and Negrut.

        Parameters
        ----------
        path : str or path-like
            ".json" may be left out.
        inertias : mapping of str to SpatialInertia, optional
            By body, in place of those of the file; files of the authors have none.

        Raises
        ------
        FileNotFoundError
            If there is no such file, with or without ``.json``.
        ValueError, TypeError, KeyError
            If the file has a fault; names the file and the key.

        See Also
        --------
        to_json : The format, by an example: ``docs/mechanism_files.md``.
        """
        file = Path(path)
        if not file.exists() and not file.suffix:
            file = with_ending(file, (".json",))
        check_file(file)
        return read_mechanism(file, inertias or {}, cls)

    @named_options
    def to_json(self, path: str | PathLike[str]) -> None:
        """Write a JSON file that `from_json` reads.

        Parameters
        ----------
        path : str or path-like
            Ends with ".json", which is added to a name without an ending.

        Raises
        ------
        ValueError
            If the path has another ending, or the mechanism something that JSON cannot hold, such
            as Python functions; says which. Functions written as `Expression` can be held.
        """
        text = json.dumps(written(self), indent=1) + "\n"
        with_ending(path, (".json",)).write_text(text, encoding="utf-8")

    def __repr__(self) -> str:
        """Name, bodies and joints."""
        return (
            f"Mechanism({self.name!r}, bodies=[{', '.join(self.bodies)}], "
            f"joints=[{', '.join(self.joints)}])"
        )

    @named_options
    def with_joints(
        self,
        *joints: MechanismJoint,
        without: Iterable[str] = (),
        motors: Iterable[MechanismMotor] = (),
        forces: Iterable[MarkerForce] = (),
    ) -> Mechanism:
        """Return a copy with further joints, without some, or with further motors and forces.

        Parameters
        ----------
        *joints : MechanismJoint
            New ones; one of a name that is there takes its place.
        without : iterable of str
            Names of joints to leave out, or of single rows, ``joint.row``: those that
            `Mobility.removable` lists.
        motors : iterable of MechanismMotor
        forces : iterable of MarkerForce

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
        rows = [f"{name}.{row.row}" for name, joint in left.items() for row in joint.rows]
        check_known("joint or row", (*left, *rows), *names)
        for name, joint in self.joints.items():
            kept = [row for row in joint.rows if f"{name}.{row.row}" not in names]
            if name in names or not kept:
                del left[name]
            elif len(kept) < len(joint.rows):
                left[name] = replace(joint, rows=kept)
        left |= {joint.name: joint for joint in joints}
        return self._like(
            joints=left.values(),
            motors=(*self.motors.values(), *motors),
            forces=(*self.forces.values(), *forces),
        )

    @named_options
    def symbolic(self, *names: str) -> Mechanism:  # noqa: D102
        check_one_by_one("symbolic", names)
        made = self._like()
        made._symbols = (*self._symbols, *names)
        _ = made.equations.parameters  # refuses names that there are none of
        return made

    @named_options
    def with_parameters(self, values: Any) -> Mechanism:  # noqa: D102
        changed = self.equations.coefficients.with_values(self.name, values)
        bodies = []
        for name, body in self.bodies.items():
            if f"{name}.gravity" in changed:
                raise ValueError(
                    f"{self.name}: {name}.gravity is that of all bodies; give gravity= to Mechanism"
                )
            own = {key: changed.get(f"{name}.{key}") for key in ("mass", "inertia")}
            inertia = body.inertia
            if any(value is not None for value in own.values()):
                mass = inertia.mass if own["mass"] is None else float(own["mass"])
                J = inertia.inertia if own["inertia"] is None else own["inertia"]
                inertia = SpatialInertia(mass, [0, 0, 0], J, check="warn")
            forces = []
            for force in body.forces:
                keys = {key: coefficient_name(name, force, key) for key in force.coefficients}
                new = {key: changed[full] for key, full in keys.items() if full in changed}
                forces.append(force._with_coefficients(new) if new else force)
            bodies.append(replace(body, inertia=inertia, forces=forces))
        between = []
        for name, force in self.forces.items():
            keys = {key: f"{name}.{key}" for key in force.coefficients}
            between.append(
                force.with_coefficients({k: changed[f] for k, f in keys.items() if f in changed})
            )
        return self._like(bodies=bodies, forces=between)

    @named_options
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

    @named_options
    def assembled(self, guess: Any = None, **options: Any) -> Mechanism:
        """Return a copy whose bodies start where all joints are closed.

        Parameters
        ----------
        guess, **options
            As for `assemble`.

        Raises
        ------
        AssemblyError
            If it cannot be assembled: says which equations contradict each other.
        """
        return self.with_poses(self.poses(self.assemble(guess, **options)))

    @named_options
    def formulated(self, choice: Choice) -> Mechanism:
        """Return a copy in other coordinates: the same motion, multipliers and reactions.

        Parameters
        ----------
        choice : str, Formulation, UnifiedVelocity, or mapping of str to these
            "SO3xR3" (velocities ṙ in world axes and ω in body axes), "SE3" (body twists), "rp"
            (Euler parameters), "re" (Euler angles z-x-z), or a `UnifiedVelocity` (speeds of six
            points). One word serves all bodies, a mapping names each. "auto" takes "SE3" for
            bodies whose joints tie them to the ground alone and leave a subgroup of motions, as
            lower pairs do. Other bodies get "SO3xR3": ``docs/theory/mechanisms.md``.

        Raises
        ------
        KeyError
            If a body or a formulation is unknown; the message lists those there are.

        References
        ----------
        Müller, Terze 2013: sections 5 and 6.

        Examples
        --------
        >>> from lgcontrol.models import heavy_top_mechanism, three_bar_mechanism
        >>> for mechanism in (heavy_top_mechanism(), three_bar_mechanism()):
        ...     chosen = mechanism.formulated("auto").formulations
        ...     print({body: each.name for body, each in chosen.items()})
        {'top': 'SE3'}
        {'box1': 'SO3xR3', 'box2': 'SO3xR3'}
        """
        return self._like(formulation=choice)

    def _formulations(self, choice: Choice) -> dict[str, Formulation]:
        if isinstance(choice, Mapping):
            self._refuse_unknown(choice)
            missing = [body for body in self.bodies if body not in choice]
            if missing:
                raise ValueError(
                    f"{self.name}: no formulation of {', '.join(missing)}; give one for each body"
                )
            return {body: as_formulation(choice[body]) for body in self.bodies}
        if choice == AUTO:
            chosen = {True: as_formulation("SE3"), False: as_formulation("SO3xR3")}
            return {
                body: chosen[self._is_alone(body) and self._keeps_subgroup(body)]
                for body in self.bodies
            }
        return dict.fromkeys(self.bodies, as_formulation(choice))

    def _is_alone(self, body: str) -> bool:
        """Whether no joint ties a body to another one."""
        return all(
            body not in joint.bodies or set(joint.bodies) <= {GROUND, body}
            for joint in self.joints.values()
        )

    def _keeps_subgroup(self, body: str) -> bool:
        """Whether joints to the ground leave a body twists that are closed under brackets."""
        joints = [
            replace(joint, rows=held)
            for joint in self.joints.values()
            if set(joint.bodies) <= {GROUND, body}
            and (held := [row for row in joint.rows if _is_still(row)])
        ]
        if not joints:
            return False
        alone = Mechanism(self.name, [self.bodies[body]], joints, formulation="SE3")
        x = alone.mechanics.complete(alone.coordinates())
        G = alone.mechanics.terms_of(x, np.zeros(0))[1]
        S = null_space(G, np.eye(6))
        brackets = np.array([SE3.ad(a) @ b for a in S.T for b in S.T]).reshape(-1, 6)
        return bool(np.abs(brackets - brackets @ S @ S.T).max(initial=0.0) < CLOSED_ALGEBRA)

    def _like(self, **changed: Any) -> Mechanism:
        own: dict[str, Any] = {
            "bodies": self.bodies.values(),
            "joints": self.joints.values(),
            "motors": self.motors.values(),
            "forces": self.forces.values(),
            "gravity": self.gravity,
            "formulation": self.formulations,
        }
        made = Mechanism(self.name, **(own | changed))
        made._symbols = self._symbols
        return made

    @named_options(own="motion")
    def drive(self, joint: str, motion: Callable[[Value], Value]) -> Mechanism:  # noqa: D102
        motion = motion_of(
            f"drive of {joint!r}", motion, "angle_drive or position_drive with a number"
        )
        coordinate, name = self._coordinate(joint), f"drive_{joint.replace('.', '_')}"
        if coordinate.name in DRIVES:
            drive = DRIVES[coordinate.name](name, coordinate.i, coordinate.j, motion)
        else:
            point = coordinate.j.body, coordinate.j.point
            drive = MechanismJoint(name, [coordinate.drive(motion)], point)
        return self.with_joints(drive)

    def _coordinate(self, name: str) -> JointCoordinate:
        known = {f"{j.name}.{c.name}": c for j in self.joints.values() for c in j.coordinates}
        for joint in self.joints.values():
            if len(joint.coordinates) == 1:
                known[joint.name] = joint.coordinates[0]
        check_known("coordinate of a joint", known, name)
        return known[name]

    @cached_property
    def equations(self) -> MechanismEquations:
        """Equations of motion on CasADi columns."""
        forces: dict[str, Sequence[Force]] = {
            b.name: (Gravity(self.gravity), *b.forces) for b in self.bodies.values()
        }
        return MechanismEquations(
            self.formulations,
            {b.name: b.inertia for b in self.bodies.values()},
            tuple(self.joints.values()),
            tuple(self.motors.values()),
            tuple(self.forces.values()),
            Surroundings(forces),
            self._symbols,
        )

    @cached_property
    def mechanics(self) -> ConstrainedMechanics:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Equations of motion with the constraints, as `constrained_system` has them."""
        return ConstrainedMechanics(self.free_system(), self.equations.constraints)

    @named_options
    def coordinates(self, poses: Mapping[str, Any] | None = None) -> np.ndarray:
        """Configuration q of poses, those of the bodies unless others are given.

        Parameters
        ----------
        poses : mapping of str to array_like, shape (7,), optional
            SE3 coordinates by body.

        Returns
        -------
        ndarray, shape (nq,)
        """
        given = poses or {}
        self._refuse_unknown(given)
        every = {
            name: check_element(f"pose of body {name!r}", given.get(name, body.pose), SE3)
            for name, body in self.bodies.items()
        }
        return np.concatenate(
            [self.formulations[name].coordinates(x[:3], x[3:]) for name, x in every.items()]
        )

    @named_options
    def velocities(self, q: Any, rates: Mapping[str, Any] | None = None) -> np.ndarray:
        """Velocities v from rates of bodies, whether they keep the constraints or not.

        Parameters
        ----------
        q : array_like, shape (nq,)
        rates : mapping of str to array_like, shape (6,), optional
            ``[ṙ; ω]`` by body, ṙ [m/s] in world axes, ω [rad/s] in body axes; the others have
            those they were made with.

        Returns
        -------
        ndarray, shape (nv,)
        """
        q, given = self._configuration(q), rates or {}
        self._refuse_unknown(given)
        found = []
        for name, body in self.bodies.items():
            own = check_shape(f"rates of {name!r}", given.get(name, body.rates), (6,))
            found.append(self.formulations[name].velocity(q[self.equations.places[name][0]], own))
        return np.concatenate(found)

    @named_options
    def poses(self, q: Any, *, p: FixedParameters | None = None) -> dict[str, np.ndarray]:  # noqa: D102
        frames = self.equations.frames(ca.DM(self._configuration(q)))
        return {
            name: np.concatenate([np.asarray(r).ravel(), SO3.from_matrix(np.asarray(ca.DM(A)))])
            for name, (r, A) in frames.items()
        }

    @named_options
    def rates(self, q: Any, v: Any) -> dict[str, np.ndarray]:
        """``[ṙ; ω]`` of every body; see `velocities`.

        Parameters
        ----------
        q : array_like, shape (nq,)
        v : array_like, shape (nv,)
        """
        v = check_shape("v", v, (self.equations.velocity.dim,))
        found = self.equations.rates(ca.DM(self._configuration(q)), ca.DM(v))
        return {name: np.asarray(ca.DM(rate)).ravel() for name, rate in found.items()}

    def free_system(self) -> System[Product]:
        """System of the bodies alone, without their joints: what constraints act on."""
        own = self.equations
        bodies = FreeBodies(own)
        nq = own.configuration.nq
        losses: dict[str, Any] = {
            "losses": lambda x, p: own.losses(x[:nq], x[nq:], p),
            "loss_jacobian": lambda x, p: own.loss_jacobian(x[:nq], x[nq:], p),
        }
        return System(
            self.name,
            bodies.state,
            bodies.field,
            inputs=own.inputs,
            parameters=own.parameters,
            quantities={
                "kinetic_energy": lambda t, x, u, p: own.kinetic_energy(x[:nq], x[nq:], p),
                "potential_energy": lambda t, x, u, p: own.potential_energy(x[:nq], p),
            }
            | {f"force_{name}": _effort(own, name) for name in self.forces},
            look=mechanism_look(own, self.joints.values()),
            structure=mechanical(
                bodies,
                bodies.state,
                own.inputs,
                own.parameters,
                model=self,
                momenta=bodies if own.is_plain else None,
                **(losses if self.forces else {}),
            ),
        )

    @cached_property
    def _sparse(self) -> LargeMechanism | None:
        """Sparse steps, where there are many bodies and closed forms of all that acts."""
        only = {chosen.name for chosen in self.formulations.values()} == {"SO3xR3"}
        acting = (
            self.motors
            or self.forces
            or self._symbols
            or any(b.forces for b in self.bodies.values())
        )
        rows = [row for joint in self.joints.values() for row in joint.rows]
        if len(self.bodies) < LARGE_MECHANISM or acting or not only or not has_closed_forms(rows):
            return None
        return LargeMechanism(self.bodies, self.joints.values(), self.gravity)

    def _sparse_march(self, x0: Any, dt: float, steps: int, method: Index3Method) -> March | None:
        return None if self._sparse is None else self._sparse.march(x0, dt, steps, method)

    def _sparse_assembly(self, guess: Any, t: float) -> np.ndarray | None:
        found = None if self._sparse is None else self._sparse.assemble(self._guess(guess, {}), t)
        if found is None:
            return None
        q = ca.SX.sym("q", self.equations.configuration.nq)
        off = ca.vertcat(ca.SX(0, 1), *(entry.off for entry in self._driven_angles(q, t)))
        # A drive's row holds half a turn off as well.
        is_near = (abs(ca.Function("off", [q], [off])(found).full()) < 1).all()
        return found if is_near else None

    def _sparse_state(self, q: Any, speeds: dict[str, Any], t: float) -> np.ndarray | None:
        if self._sparse is None or not set(speeds) <= set(self.bodies):
            return None
        q = self.assemble(t=t) if q is None else self._configuration(q)
        rows = self._sparse.basic
        units = [row.unit for row in rows.rows]
        phi = self._sparse.gap(q, t)[:, None]
        refuse_gap(self.name, np.array([t]), phi, rows.row_names, units)
        v = self._sparse.velocity(q, self.velocities(q, speeds), t)
        return np.concatenate([q, v, [t] * rows.is_driven])

    def _sparse_kinematics(self, t: Any, q: Any, tolerance: float) -> KinematicsResult | None:
        if self._sparse is None:
            return None
        times = check_increasing("t", t)
        start = self.assemble(t=float(times[0])) if q is None else self._configuration(q)
        rows, message = self._sparse.kinematics(times, start, tolerance)
        group, names = self.equations.configuration, tuple(self._sparse.basic.row_names)
        state = Product(configuration=group, velocity=self.equations.velocity)
        return KinematicsResult.of_rows(times, rows, message, state, names)

    # What the protocol asks for

    def _configuration(self, q: Any) -> np.ndarray:
        return check_element("q", q, self.equations.configuration)

    def _guess(self, guess: Any, where: Mapping[str, Any]) -> np.ndarray:
        poses = {name: value for name, value in where.items() if name in self.bodies}
        if guess is None or isinstance(guess, Mapping):
            return self.coordinates({**(guess or {}), **poses})
        q, places = self._configuration(guess).copy(), self.equations.places
        held = self.coordinates(poses)
        for name in poses:
            q[places[name][0]] = held[places[name][0]]
        return q

    def _held(self, name: str, value: Any, q: ca.SX) -> Iterable[HeldCoordinate]:
        own, names = self.equations, self.equations.configuration
        if name in self.bodies:
            at = own.places[name][0]
            pose = self.coordinates({name: value})
            labels = zip(names.coordinate_names[at], names.coordinate_units[at], strict=True)
            for i, (label, unit) in enumerate(labels, at.start):
                yield HeldCoordinate(label, float(pose[i]), unit, q[i] - pose[i])
            return
        coordinate, label = self._coordinate(name), f"where[{name!r}]"
        wished = float(check_shape(label, value, ()))
        if coordinate.unit == "rad":
            ask_degrees(label, wished)
        bodies = [b for b in (coordinate.i.body, coordinate.j.body) if b != GROUND]
        off = coordinate.off(wished, own.frames(q, bodies))
        yield HeldCoordinate(name, wished, coordinate.unit, off)

    def _driven_angles(self, q: ca.SX, t: float) -> list[HeldCoordinate]:
        found = []
        for joint in self.joints.values():
            kind, given = joint.recipe or ("", {})
            if kind == angle_drive.__name__:
                driven = JointCoordinate("rz", given["i"], given["j"])
                motion: Any = given["angle"]
                bodies = {driven.i.body, driven.j.body} - {GROUND}
                value: Any = motion(ca.DM(t)) if callable(motion) else motion
                angle = float(value)
                off = driven.off(angle, self.equations.frames(q, bodies))
                if np.isfinite(angle):  # else the row says so
                    found.append(HeldCoordinate(joint.name, angle, "rad", off))
        return found

    def _base(
        self, inputs: Iterable[Input | str] | None, name: str | None, options: Mapping[str, Any]
    ) -> tuple[System[Product], Constraints]:
        if options:
            gone = [(key, member_hint(Mechanism, f"system({key}=)")) for key in options]
            raise TypeError(
                f"system() of a mechanism takes no {', '.join(options)}: what acts on its bodies "
                "are forces and motors of the mechanism"
                + "".join(f"; {key} {hint}" for key, hint in gone if hint)
            )
        if inputs is None:
            return self.mechanics.base, self.constraints
        names: Any = inputs  # others than names are refused below
        chosen = as_names(names)
        check_known("motor", self.motors, *chosen)
        left = self._like(motors=[self.motors[entry] for entry in chosen])
        return left.mechanics.base, left.constraints

    def _wrenches(self, q: Value, t: Value, p: Value) -> Iterable[tuple[str, Callable[..., Any]]]:
        for joint in self.joints.values():
            names = [body for body in joint.bodies if body != GROUND]
            yield joint.name, partial(joint_wrenches, joint, t, self.equations.frames(q, names))

    def _points(self, q: np.ndarray, p: np.ndarray) -> dict[str, np.ndarray]:
        held: dict[str, list[np.ndarray]] = {name: [] for name in self.bodies}
        for joint in self.joints.values():
            for body, point in points_of(joint):
                if body in held:
                    held[body].append(point)
        return {
            body: np.array([SE3.act(pose, point) for point in held[body]]).reshape(-1, 3)
            for body, pose in self.poses(q).items()
        }

    def _mass_matrix(self, q: Value, p: Value) -> Value:
        return self.equations.mass_matrix(q, p)  # as it is, singular or not

    def _force(self, t: Value, q: Value, v: Value, u: Value, p: Value) -> Value:
        return self.equations.force(t, q, v, u, p)

    def _first_speeds(self, q: np.ndarray, speeds: dict[str, Any]) -> np.ndarray:
        rates = {name: speeds.pop(name) for name in [*speeds] if name in self.bodies}
        return self.velocities(q, rates)

    def _joint_coordinates(self, q: np.ndarray) -> Sequence[Coordinate]:
        return self.equations.joint_coordinates(q)

    def _check_inertia(self, q: np.ndarray) -> None:
        refuse_zero_lengths(self.equations, q)
        refuse_singular_mass(self.equations, self.mechanics, q)

    def _hint(self, q: np.ndarray) -> str:
        return singular_angles(self.equations, q)

    def _refuse_unknown(self, names: Iterable[str]) -> None:
        check_known("body", self.bodies, *names)


def _effort(own: MechanismEquations, name: str) -> Callable[..., Any]:
    nq = own.configuration.nq
    return lambda t, x, u, p: own.efforts(name, x[:nq], x[nq:], p)


def _is_still(row: Any) -> bool:
    """Whether a row on positions does not depend on the time."""
    if row.kind == "velocity":
        return False
    t = ca.SX.sym("t")
    frames = {body: (ca.SX.sym("r", 3), ca.SX.sym("A", 3, 3)) for body in row.bodies}
    return not ca.depends_on(ca.SX(row.value(t, frames)), t)


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

"""RigidBody: the equations of motion of a body whose pose lives on a Lie group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, named_options
from ...codegen._internal import Shape, check_known, check_one_by_one, interruptible
from ...groups import LieGroup, Product
from ...scene import BodyShape
from ...scene._internal import RigidLook
from ...systems import Input, Parameter, System
from ...systems._internal import check_name
from .._mechanical import model_function
from ..inertia._inertia import SpatialInertia
from ..surroundings._forces import Force
from ..surroundings._look import body_pushes, body_shapes
from ..surroundings._surroundings import (
    Current,
    Surroundings,
    check_added_mass,
    check_forces,
    coefficient_name,
)
from ._equations import BodyEquations, Velocity, body_state, body_system, body_velocity_form
from ._quasi_velocity import ad_tilde_matrix, boltzmann_hamel_matrix
from ._velocity_forms import MomentumFrame, VelocityForm, check_momentum_frame

CoriolisForm = Literal["ad_tilde", "ad", "boltzmann_hamel"]


@named_options
@dataclass(frozen=True, eq=False)
class RigidBody:
    """A rigid body that moves on a subgroup of SE(3): ``M v̇ − ad_vᵀ M v = τ + Hᵀ Σ W``.

    v is the body twist in the group's coordinates, ``V = H v`` with the group's selection matrix.
    ``M = Hᵀ (I + A) H`` with the spatial inertia I and the added mass A. W are the wrenches of the
    forces, τ is a further generalized force.

    Model functions take the pose X (..., nq), the velocity v (..., dim) and so on, then the inputs
    u of the forces and the parameters p. Both are nominal if left out; nominal inputs are usually
    0.

    Parameters
    ----------
    name : str
        Name of the body.
    group : LieGroup
        Group of its poses: SE3, SO3, SE2, Schoenflies, Translation("xyz"), Helical(0.1), ….
    inertia : SpatialInertia
        Inertia in the body frame.
    forces : sequence of Force
        What acts on the body besides τ; names must differ.
    added_mass : array_like, shape (6, 6) or (dim, dim), optional
        Inertia of the fluid that moves along, symmetric and not negative.
    current : Current or array_like of shape (3,), optional
        Velocity of the fluid in world axes [m/s]; drag and added mass see the motion relative
        to it.
    shapes : sequence of Shape
        How it looks in scenes, in its axes; if left out, its rotors and thrusters, or the box that
        has its inertia.

    Raises
    ------
    ValueError
        If the group's generalized inertia is not positive definite: a rod cannot turn about its
        axis. Also if the added mass is not symmetric or is negative.
    TypeError
        If the group is no group of motions.

    References
    ----------
    From 2012, sections 2 to 5.

    Examples
    --------
    >>> from lgcontrol.groups import SE3
    >>> from lgcontrol.mechanics import Gravity
    >>> box = RigidBody("box", SE3, SpatialInertia.box(2.0, [0.1, 0.2, 0.3]), [Gravity()])
    >>> box.forward_dynamics(SE3.identity, np.zeros(6), np.zeros(6))
    array([ 0.  ,  0.  , -9.81,  0.  ,  0.  ,  0.  ])
    >>> box.system().state.dim
    12
    """

    name: str
    group: LieGroup
    inertia: SpatialInertia
    forces: Sequence[Force] = ()
    added_mass: Any = None
    current: Any = None
    shapes: Sequence[BodyShape] = ()
    _symbols: tuple[str, ...] = field(default=(), kw_only=True, repr=False)

    def __post_init__(self) -> None:
        check_name("body", self.name)
        for key, kind in (("group", LieGroup), ("inertia", SpatialInertia)):
            if not isinstance(getattr(self, key), kind):
                given = type(getattr(self, key)).__name__
                raise TypeError(f"{self.name}: {key} must be a {kind.__name__}, not {given}")
        object.__setattr__(self, "forces", check_forces(self.name, self.forces))
        if self.current is not None and not isinstance(self.current, Current):
            object.__setattr__(self, "current", Current(self.current))
        if self.added_mass is not None:
            added = check_added_mass(self.name, self.added_mass, self.group)
            object.__setattr__(self, "added_mass", added)
            if self.current is not None and added.shape != (6, 6):
                raise ValueError(
                    f"{self.name}: in a current the added mass must be (6, 6), got {added.shape}"
                )
        self.equations.check_inertia(self.name)

    # The model

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs u: those of the forces, then those of the current."""
        return self.equations.inputs

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters p: what stays symbolic."""
        return self.equations.coefficients.parameters

    @property
    def configuration(self) -> LieGroup:
        """The group, under the name it has for multibody trees."""
        return self.group

    @property
    def nq(self) -> int:
        """Number of coordinates of the pose."""
        return self.group.nq

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return self.group.dim

    @property
    def look(self) -> RigidLook:
        """How it looks in scenes."""
        shapes = self.shapes or body_shapes(self.inertia, self.forces)
        return RigidLook(self.name, self.group, shapes, pushes=body_pushes(self.forces))

    @property
    def state(self) -> Product:
        """State of the system: ``Product(pose=group, twist=Rn(dim))``."""
        return body_state(self.group)

    def with_forces(self, *forces: Force) -> RigidBody:
        """Return the body with further forces."""
        return replace(self, forces=(*self.forces, *forces))

    @named_options
    def symbolic(self, *names: str) -> RigidBody:
        """Return the body with named numbers as symbols: parameters p, after those there are.

        Parameters
        ----------
        *names : str
            "mass", "center_of_mass", "inertia", "added_mass", "current", forces such as "gravity",
            their coefficients such as "linear_drag.damping", or single entries such as
            "inertia.xx" and "gravity.z".

        Raises
        ------
        KeyError
            If a name is unknown.
        TypeError
            If names are not given one by one.
        """
        check_one_by_one("symbolic", names)
        return replace(self, _symbols=(*self._symbols, *names))

    def with_parameters(self, values: Any) -> RigidBody:
        """Return the body with other values of some numbers; a symbol stays a symbol.

        Parameters
        ----------
        values : array_like, shape (n_parameters,), or mapping of str to float
            One number for each of `parameters`; or any numbers by their names in full, symbols or
            not ("mass", "center_of_mass.x", "inertia.xy", "gravity.z").

        Raises
        ------
        KeyError
            If there is no such number.
        ValueError
            If a count is wrong, a number not finite, or impossible for what it belongs to, such as
            a negative mass. Inertias that no body has are taken, with a warning.

        Examples
        --------
        >>> from lgcontrol.groups import SE3
        >>> body = RigidBody("ball", SE3, SpatialInertia.sphere(2.0, 0.1)).symbolic("mass")
        >>> body.with_parameters({"mass": 3.0, "inertia.xx": 0.01}).parameters[0].nominal
        3.0
        """
        changed = self.equations.coefficients.with_values(self.name, values)
        inertia = self.inertia
        if changed.keys() & {"mass", "center_of_mass", "inertia"}:
            own = {"mass": inertia.mass, "inertia": inertia.inertia} | changed
            center = changed.get("center_of_mass", inertia.center_of_mass)
            inertia = SpatialInertia(own["mass"], center, own["inertia"], check="warn")
        current = self.current
        if "current" in changed:
            current = replace(current, velocity=changed["current"])
        return replace(
            self,
            inertia=inertia,
            forces=[self._with_coefficients(force, changed) for force in self.forces],
            added_mass=changed.get("added_mass", self.added_mass),
            current=current,
        )

    def _with_coefficients(self, force: Force, changed: Mapping[str, np.ndarray]) -> Force:
        own = {
            key: changed[coefficient_name("", force, key)]
            for key in force.coefficients
            if coefficient_name("", force, key) in changed
        }
        return force._with_coefficients(own) if own else force

    # Equations of motion

    @cached_property
    def inverse_dynamics(self) -> ModelFunction:
        """Generalized force τ for an acceleration: (X, v, a, u, p) → (..., dim)."""

        def build(X: Value, v: Value, a: Value, u: Value, p: Value) -> Value:
            c = self.equations.bind(p)
            inertial = self.equations.mass_matrix(c) @ a + self.equations.bias(v, c)
            return inertial - self.equations.generalized_force(X, v, u, c)

        return self._trace("inverse_dynamics", build, "X v a u p", "tau")

    @cached_property
    def forward_dynamics(self) -> ModelFunction:
        """Acceleration v̇ under the generalized force τ: (X, v, tau, u, p) → (..., dim)."""

        def build(X: Value, v: Value, tau: Value, u: Value, p: Value) -> Value:
            return self.equations.acceleration(X, v, tau, u, self.equations.bind(p))

        return self._trace("forward_dynamics", build, "X v tau u p", "a")

    @cached_property
    def mass_matrix(self) -> ModelFunction:
        """Generalized inertia M, the same for all X: (X, p) → (..., dim, dim)."""
        return self._trace("mass_matrix", lambda X, p: self._mass_matrix(p), "X p", "M")

    @cached_property
    def coriolis_matrix(self) -> ModelFunction:
        """C of ``C v = −ad_vᵀ M v`` with ``Ṁ − 2C`` skew-symmetric: (X, v, p) → (..., dim, dim).

        The form "ad_tilde" of `coriolis`, as controllers that rely on passivity need it.
        """
        return self.coriolis("ad_tilde")

    def coriolis(self, form: CoriolisForm = "ad_tilde") -> ModelFunction:
        """Coriolis matrix C in one of its forms; C v is the same for all.

        Parameters
        ----------
        form : {"ad_tilde", "ad", "boltzmann_hamel"}
            ``ãd_(M v)``, which is skew-symmetric; ``−ad_vᵀ M``, which is not; or the definition
            by derivatives of S(φ), which equals the first.

        Returns
        -------
        ModelFunction
            (X, v, p) → (..., dim, dim).

        References
        ----------
        From 2012, eq. 57, 107 and 108.
        """
        forms: dict[str, Callable[[Value, Value], Value]] = {
            "ad_tilde": lambda M, v: ad_tilde_matrix(self.group, M @ v),
            "ad": lambda M, v: -(self.group.ad(v).T @ M),
            "boltzmann_hamel": lambda M, v: boltzmann_hamel_matrix(self.group, M @ v),
        }
        check_known("Coriolis form", forms, form, where=self.name)
        return self._trace(
            "coriolis_matrix", lambda X, v, p: forms[form](self._mass_matrix(p), v), "X v p", "C"
        )

    @cached_property
    def gravity_forces(self) -> ModelFunction:
        """Generalized force g that holds the body at rest: (X, p) → (..., dim).

        Against all forces with a potential energy: gravity, buoyancy, springs. It stands with the
        accelerations, ``M v̇ + C v + g(X) = τ``.
        """
        return self._trace(
            "gravity_forces",
            lambda X, p: -self.equations.conservative_force(X, self.equations.bind(p)),
            "X p",
            "g",
        )

    @cached_property
    def input_matrix(self) -> ModelFunction:
        """Derivative of the generalized force by u: (X, v, u, p) → (..., dim, n_inputs)."""

        def build(X: Value, v: Value, u: Value, p: Value) -> Value:
            c = self.equations.bind(p)
            return ca.jacobian(ca.SX(self.equations.generalized_force(X, v, u, c)), u)

        return self._trace("input_matrix", build, "X v u p", "B")

    def wrench(self, force: str) -> ModelFunction:
        """Wrench ``[f; m]`` of one force in the body frame.

        Parameters
        ----------
        force : str
            Name of the force.

        Returns
        -------
        ModelFunction
            (X, v, u, p) → (..., 6); u are all inputs of the body.

        Raises
        ------
        KeyError
            If no force has this name.
        """
        names = [entry.name for entry in self.forces]
        check_known("force", names, force, where=self.name)

        def build(X: Value, v: Value, u: Value, p: Value) -> Value:
            c = self.equations.bind(p)
            return self.equations.wrench(force, X, v, u, c)

        return self._trace("wrench", build, "X v u p", "W")

    # Energy and momentum

    @cached_property
    def kinetic_energy(self) -> ModelFunction:
        """``½ vᵀ M v`` [J], the same for all X: (X, v, p) → (...)."""
        return self._trace(
            "kinetic_energy", lambda X, v, p: ca.dot(v, self._mass_matrix(p) @ v) / 2, "X v p", "E"
        )

    @cached_property
    def potential_energy(self) -> ModelFunction:
        """Sum over the forces that have one [J]: (X, p) → (...)."""
        return self._trace(
            "potential_energy",
            lambda X, p: self.equations.potential_energy(X, self.equations.bind(p)),
            "X p",
            "E",
        )

    def momentum(self, frame: MomentumFrame = "body") -> ModelFunction:
        """Generalized momentum ``M v``, or ``Ad_X⁻ᵀ M v``, which is constant without forces.

        Parameters
        ----------
        frame : {"body", "spatial"}
            Frame of the twists the momentum is dual to.

        Returns
        -------
        ModelFunction
            (X, v, p) → (..., dim).
        """
        check_momentum_frame(self.name, frame)

        def build(X: Value, v: Value, p: Value) -> Value:
            body = self._mass_matrix(p) @ v
            if frame == "body":
                return body
            return self.group.Ad(self.group.inverse(X)).T @ body

        return self._trace("momentum", build, "X v p", "momentum")

    @interruptible
    def system(
        self,
        name: str | None = None,
        *,
        inputs: Sequence[Input] | None = None,
        generalized_force: bool = False,
        velocity: Velocity = "twist",
        frame: MomentumFrame = "body",
        h: Callable[[Any, Any, Any, Any], Any] | None = None,
        output: LieGroup | None = None,
    ) -> System[Product]:
        """Field ``Ẋ = X v^``, ``v̇ = forward_dynamics`` as a System on `state`.

        Its quantities are the energies. Without inputs and with conservative forces only, the
        total energy is its invariant.

        With another velocity in the state, inputs and quantities are the same, and the twist is a
        quantity, "velocity"; `velocity_form` converts states and weights.

        Parameters
        ----------
        name : str, optional
            Name of the system; the default is that of the body.
        inputs : sequence of Input, optional
            Other names, bounds and roles of the inputs, in the same order.
        generalized_force : bool
            Whether the generalized force τ is an input as well, after those of the body.
        velocity : "twist", "momentum" or UnifiedVelocity
            What the second block of the state is.
        frame : {"body", "spatial"}
            Of the momentum: that of "spatial" is constant where nothing acts.
        h, output
            Output map and its group, see `System`.

        Raises
        ------
        ValueError
            If `inputs` has the wrong length, or unified coordinates are asked for on another
            group than SE3.
        """
        return body_system(
            name or self.name,
            self,
            inputs=inputs,
            generalized_force=generalized_force,
            velocity=velocity,
            frame=frame,
            h=h,
            output=output,
        )

    def velocity_form(
        self,
        velocity: Velocity,
        *,
        frame: MomentumFrame = "body",
        generalized_force: bool = False,
    ) -> VelocityForm:
        """Ways between the states of `system()` and of `system(velocity=…)`.

        Parameters
        ----------
        velocity : "momentum" or UnifiedVelocity
        frame, generalized_force
            As for `system`.

        Raises
        ------
        ValueError
            If the velocity is unknown, or the twist, which needs no conversion.
        """
        return body_velocity_form(self, velocity, frame, generalized_force)

    # Tracing

    @cached_property
    def equations(self) -> BodyEquations:
        """The equations on CasADi columns, for use in expressions."""
        added = {} if self.added_mass is None else {"": self.added_mass}
        surroundings = Surroundings({"": self.forces}, added, self.current, self.group)
        return BodyEquations.create(self.inertia, surroundings, self._symbols)

    def _mass_matrix(self, p: Value) -> Value:
        return self.equations.mass_matrix(self.equations.bind(p))

    def _trace(
        self, name: str, build: Callable[..., Value], arguments: str, result: str
    ) -> ModelFunction:
        n, m = self.group.dim, len(self.inputs)
        shapes = {"X": (self.group.nq,), **dict.fromkeys(("v", "a", "tau"), (n,))}
        sizes: dict[str, Shape] = {"E": (), "M": (n, n), "C": (n, n), "B": (n, m), "W": (6,)}
        results = {result: sizes.get(result, (n,))}
        own = self.inputs, self.parameters
        return model_function(name, build, arguments, results, shapes, *own)

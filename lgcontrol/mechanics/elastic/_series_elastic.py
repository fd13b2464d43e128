"""SeriesElastic: a tree with motors behind springs, its System, and the flat map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import casadi as ca
import numpy as np

from ...codegen import (
    ModelFunction,
    Shape,
    UnknownNameError,
    Value,
    as_names,
    check_shape,
    trace,
    unknown_name,
)
from ...groups import LieGroup, Product, Rn
from ...systems import (
    FixedParameters,
    Measurement,
    Parameter,
    Quantity,
    System,
    Trajectory,
    control_name,
    values_by_name,
)
from .._coefficients import Coefficients
from .._mechanical import mechanical
from ..multibody import Multibody
from ..multibody.compiled._functions import rate_names
from ..multibody.tree._system import state_limits, tree_mechanics
from ._damped import DampedDeflection
from ._equations import ElasticJoint, ElasticMechanics, JointNumbers, elastic_state
from ._flat import link_motion, motor_motion
from ._joint_spring import AdjustedSpring
from ._motor import Motor

GROUP_REASON = (
    "a spring between motor and link is modelled for joints with one degree of freedom; "
    "keep the joint rigid, or write it as a chain of revolute joints"
)


class SeriesElastic:
    """A tree some of whose joints are driven by motors through springs.

    The links move as ``M(q) v̇ + h(q, v) = τ`` with the torques of the springs
    ``τ = σ(δ) + D δ̇``, ``δ = θ − q``, in elastic joints; the motors, each behind its gear, as
    ``B θ̈ + d θ̇ + f(θ̇) + τ = u``. Joints that are not named stay rigid. Motors move on the groups
    of their joints; the deflection is their `minus`.

    Parameters
    ----------
    tree : Multibody
    motors : mapping of str to Motor
        By joint.
    inputs : iterable of str, optional
        Rigid joints that are driven, besides the elastic ones, which all are; by default all but
        free ones.
    parametric : str or iterable of str
        Numbers that are parameters, after those of the tree: "JOINT.motor.inertia", "….damping",
        "….friction", "JOINT.spring.stiffness", "….damping", …, or the beginning of several.
    rotor_coupling : {"neglected"}
        See Notes.

    Attributes
    ----------
    tree : Multibody
    motors : dict of str to Motor
        In the order of the tree's joints.
    joints : tuple of str
        The elastic ones, in this order.
    state : Product
        Blocks configuration, velocity, motor, motor_velocity; where motors set stiffness also
        stiffness_motor and stiffness_motor_velocity.

    Raises
    ------
    KeyError
        If a joint or a parameter is unknown.
    ValueError
        If a joint has more than one degree of freedom, follows another one, or has an armature: the
        inertia of its motor would count twice.
    NotImplementedError
        If rotors are to be coupled to the links' angular velocity.

    Notes
    -----
    Rotors are taken to store energy by their own spin only (Spong 1987): the mass of a motor is
    part of the link that carries it, and its angular momentum, ``inertia · ratio · θ̇``, does not
    turn that link. The moments left out are at most ``inertia · ratio · |θ̇| |ω|`` with ω the
    angular velocity of that link (`neglected_moments` has them at the limits). Inertial coupling
    (De Luca and Tomei 1996), which makes the arm flat of a higher order, is not modelled.

    References
    ----------
    M. Spong: Modeling and control of elastic joint robots. ASME J. Dyn. Syst. Meas. Control 109
    (1987). A. De Luca, P. Lucibello: A general algorithm for dynamic feedback linearization of
    robots with elastic joints. ICRA 1998. A. Müller: Screw and Lie group theory in multibody
    dynamics, section 6.3 (2018).

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody("arm").add_body("rod", rod, "revolute", axis="y")
    >>> arm = SeriesElastic(tree, {"rod": Motor(inertia=0.2, spring=100.0)})
    >>> system = arm.system()
    >>> system.trim(where={"configuration.rod": np.pi / 2}).x.round(4).tolist()
    [1.5708, 0.0, 1.6689, 0.0]
    """

    def __init__(
        self,
        tree: Multibody,
        motors: Mapping[str, Motor],
        *,
        inputs: Iterable[str] | None = None,
        parametric: str | Iterable[str] = (),
        rotor_coupling: Literal["neglected"] = "neglected",
    ) -> None:
        if not isinstance(tree, Multibody):
            raise TypeError(f"tree must be a Multibody, not {type(tree).__name__}")
        if rotor_coupling != "neglected":
            raise NotImplementedError(
                f"rotor_coupling={rotor_coupling!r}: inertial coupling of rotors and links (De "
                "Luca and Tomei) is not modelled; neglected_moments says what leaving it out "
                "amounts to"
            )
        if not isinstance(motors, Mapping) or not motors:
            some = tree.joints[0] if tree.joints else "joint"
            raise ValueError(
                "motors must name at least one joint, "
                f"{{{some!r}: Motor(inertia=…, spring=…)}}, got {motors!r}"
            )
        for name, motor in motors.items():
            _check_joint(tree, name, motor)
        self.tree = tree
        self.motors: dict[str, Motor] = {n: motors[n] for n in tree.joints if n in motors}
        self.joints: tuple[str, ...] = tuple(self.motors)
        rigid = _driven(tree) if inputs is None else as_names(inputs)
        for name in rigid:
            if name not in tree.joints:
                raise UnknownNameError(unknown_name("joint", name, tree.joints))
        self._driven = tuple(n for n in tree.joints if n in rigid or n in self.motors)
        self._joints = tuple(
            ElasticJoint(name, motor, tree.configuration.blocks[name], tree._coordinates[name])
            for name, motor in self.motors.items()
        )
        self._parametric = tuple(as_names(parametric))
        numbers = {key: x for joint in self._joints for key, x in joint.numbers.items()}
        self._coefficients = Coefficients(numbers, self._parametric)
        self.state: Product = elastic_state(tree, self._joints)

    def __repr__(self) -> str:
        """Name and joints."""
        return f"SeriesElastic({self.tree.name!r}, {', '.join(self.joints)})"

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the tree, then numbers of motors and springs."""
        return self._mechanics.parameters

    @property
    def rigid_joints(self) -> tuple[str, ...]:
        """Joints without a spring."""
        return tuple(name for name in self.tree.joints if name not in self.motors)

    @property
    def damped_joints(self) -> tuple[str, ...]:
        """Joints with a damper parallel to the spring: the arm is not flat where there are any."""
        symbols = {entry.name for entry in self._coefficients.parameters}
        return tuple(
            joint.name
            for joint in self._joints
            if joint.spring.damping > 0 or f"{joint.name}.spring.damping" in symbols
        )

    @cached_property
    def _mechanics(self) -> ElasticMechanics:
        return ElasticMechanics(
            tree_mechanics(self.tree, self._driven), self._joints, self._coefficients
        )

    def with_motors(self, **motors: Motor) -> SeriesElastic:
        """Copy with other motors in some joints.

        Parameters
        ----------
        **motors : Motor
            By joint.
        """
        return SeriesElastic(
            self.tree,
            {**self.motors, **motors},
            inputs=self._driven,
            parametric=self._parametric,
        )

    # The System

    def system(
        self,
        name: str | None = None,
        *,
        h: Any = None,
        output: LieGroup | None = None,
        parametric: str | Iterable[str] = (),
        **surroundings: Any,
    ) -> System[Product]:
        """The arm as a System.

        Parameters
        ----------
        name : str, optional
        h : callable, optional
            Output ``(t, x, u, p) → coordinates on output``.
        output : LieGroup, optional
        parametric : str or iterable of str
            Numbers of forces and current that are parameters.
        **surroundings
            What acts on links, as for `Multibody.system`: wrenches, forces, added_mass, current.

        Returns
        -------
        System
            Inputs: torques, of motors behind their gears in elastic joints and of the joint in
            others, inputs of the surroundings, then JOINT.stiffness and JOINT.stiffness_motor.
            Quantities: kinetic_energy, potential_energy, spring_energy, and "deflection" and
            "spring_torque" with an entry for each elastic joint, "deflection.JOINT". Limits: of
            links, motor speeds, deflections and spring torques. The structure is that of the links;
            derivatives are in closed form.
        """
        mechanics = ElasticMechanics(
            tree_mechanics(self.tree, self._driven, parametric=parametric, **surroundings),
            self._joints,
            self._coefficients,
        )
        state = self.state

        def deflection(t: Value, x: Value, u: Value, p: Value) -> Value:
            return mechanics.deflection(x)

        def spring_torque(t: Value, x: Value, u: Value, p: Value) -> Value:
            return mechanics.spring_torque(x, u, p)

        return System(
            name or self.tree.name,
            state,
            mechanics.field,
            inputs=mechanics.inputs,
            parameters=mechanics.parameters,
            h=h,
            output=output,
            quantities={
                "kinetic_energy": mechanics.kinetic_energy,
                "potential_energy": mechanics.potential_energy,
                "spring_energy": mechanics.spring_energy,
                "deflection": Quantity(deflection, self.joints, self._unit("unit")),
                "spring_torque": Quantity(spring_torque, self.joints, self._unit("force_unit")),
            },
            limits=self._limits(),
            derivatives=mechanics.derivatives,
            structure=mechanical(
                mechanics,
                state,
                mechanics.inputs,
                mechanics.parameters,
                loss_jacobian=mechanics.loss_jacobian if mechanics.has_losses else None,
                losses=mechanics.losses if mechanics.rigid.has_friction else None,
                model=self,
            ),
        )

    def _unit(self, of: str) -> str:
        units = {getattr(joint, of) for joint in self._joints}
        return units.pop() if len(units) == 1 else ""

    def _limits(self) -> dict[str, tuple[float, float]]:
        found = state_limits(self.tree)
        for joint in self._joints:
            own, spring = joint.motor, joint.spring
            bounds = {
                f"motor_velocity.{joint.name}": own.speed / own.ratio,
                f"deflection.{joint.name}": own.deflection,
                f"spring_torque.{joint.name}": spring.limit,
            }
            if isinstance(spring, AdjustedSpring):
                found[f"stiffness_motor.{joint.name}"] = (spring.lower, spring.upper)
                bounds[f"stiffness_motor_velocity.{joint.name}"] = spring.speed_limit
            found |= {key: (-x, x) for key, x in bounds.items() if x < np.inf}
        return found

    def neglected_moments(self) -> dict[str, float]:
        """Largest gyroscopic moment of each rotor that the model leaves out [N m].

        ``inertia · ratio · |θ̇| |ω|`` at the speed limits of motor and joints, with ω at most the
        sum of the speeds of the turning joints that carry the motor; infinite where one has none.
        A gear of ratio 1 with a reflected inertia makes it too large by the ratio.
        """
        speeds = dict(zip(self.tree.joints, self._joint_speeds(), strict=True))
        found = {}
        for joint in self._joints:
            own = joint.motor
            link = self.tree._index.joints[joint.name]
            carriers = 0.0
            while link.parent in self.tree._index.links:
                link = self.tree._index.links[link.parent]
                carriers += speeds.get(link.joint_name, 0.0)
            spin = min(own.speed, own.ratio * speeds[joint.name])
            found[joint.name] = own.inertia * spin * carriers if carriers else 0.0
        return found

    def _joint_speeds(self) -> list[float]:
        limits = self.tree.limits["velocity"]
        return [
            float(np.linalg.norm(limits[self.tree._coordinates[name].v]))
            if "rad" in self.tree.configuration.blocks[name].tangent_units
            else 0.0
            for name in self.tree.joints
        ]

    # What is measured

    def motor_encoder(self, name: str = "motor_encoder", **options: Any) -> Measurement:
        """Measurement of motor positions, behind the gears; options are those of `Measurement`.

        Parameters
        ----------
        name : str
        **options
        """
        return Measurement(name, "motor", **options)

    def link_encoder(self, name: str = "link_encoder", **options: Any) -> Measurement:
        """Measurement of the positions of the elastic joints, behind the springs.

        Parameters
        ----------
        name : str
        **options
            Those of `Measurement`.
        """
        places, group = [joint.places for joint in self._joints], self.state.blocks["motor"]

        def measure(t: Value, x: Value, u: Value, p: Value) -> Value:
            return ca.vertcat(*(x[place.q] for place in places))

        return Measurement(name, measure, group, **options)

    def torque_sensor(self, name: str = "torque_sensor", **options: Any) -> Measurement:
        """Measurement of the torques through springs (and dampers parallel to them).

        Parameters
        ----------
        name : str
        **options
            Those of `Measurement`.
        """
        mechanics = self._mechanics
        if mechanics.set_joints or self._coefficients.parameters:
            # Whose inputs and parameters follow those of the surroundings.
            raise ValueError(
                f"{self.tree.name}: springs have parameters or are set; measure the quantity "
                "spring_torque of the system, Measurement(name, system.quantities["
                "'spring_torque'], Rn(…))"
            )
        units = tuple(joint.force_unit for joint in self._joints)

        def measure(t: Value, x: Value, u: Value, p: Value) -> Value:
            return mechanics.spring_torque(x, u, p)

        return Measurement(name, measure, Rn(len(self.joints), self.joints, units), **options)

    # Flatness

    def flat_map(
        self, *, expansion: int | None = None, dry_friction: bool = False
    ) -> ModelFunction:
        """(q, v, a, j, s) → x, motor_acceleration, u, tau: what a motion of the links takes.

        The flat outputs are q, on the configuration, and what sets stiffness (κ: the stiffness
        itself or φ), as further arguments k, k_dot, k_ddot. Rigid joints take their snap as well:
        through the links it acts on the elastic ones.

        Parameters
        ----------
        expansion : int, optional
            For springs with dampers, which are not flat: deflections by
            ``δ = Σ (−D/K)^i τ^(i)/K`` up to this order; the motion is given by so many more
            derivatives. The first term left out is the error: ``(D/K)^(n+1) τ^(n+1)/K``, which
            shrinks with the order where the torque changes slowly next to K/D. `damped_motion` has
            no such error.
        dry_friction : bool
            Whether dry friction between the links may be in: smoothed within its friction_speed,
            its second derivative is large where a joint turns back.

        Returns
        -------
        ModelFunction
            Results: x, on `state`; motor_acceleration (..., joints); u, the inputs of `system()`
            without surroundings; tau (..., nv), forces on the links, those of a base included.

        Raises
        ------
        ValueError
            If springs have dampers and no expansion is chosen, or joints have dry friction.

        References
        ----------
        De Luca and Lucibello 1998 for joints of which some are rigid; Müller 2018, section 6.3.

        Examples
        --------
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
        >>> tree = Multibody(gravity=(0, 0, 0)).add_body("ball", ball, "revolute", axis="y")
        >>> arm = SeriesElastic(tree, {"ball": Motor(inertia=0.5, spring=100.0)})
        >>> arm.flat_map()([0.0], [0.0], [2.0], [0.0], [50.0]).u  # B (a + M s / K) + M a
        array([3.25])
        """
        key = ("flat_map", expansion, dry_friction)
        if key not in self._made:
            self._check_flat(expansion, dry_friction)
            order = expansion or 0
            names = ["q", *rate_names(4 + order)]
            self._made[key] = self._trace(
                "flat_map",
                names,
                lambda rates, settings, p: motor_motion(
                    self._mechanics, self.tree, rates, settings, p, order
                ),
                {
                    "x": (self.state.nq,),
                    "motor_acceleration": (len(self.joints),),
                    "u": (len(self._mechanics.inputs),),
                    "tau": (self.tree.nv,),
                },
            )
        return self._made[key]

    def flat_outputs(self) -> ModelFunction:
        """(x, u) → q, v, a, j, s of the links; the inverse of `flat_map`.

        Where joints are rigid, or a stiffness is an input, their rates follow: (x, u, u_dot,
        u_ddot). Up to the jerk nothing depends on the torques of motors.

        Returns
        -------
        ModelFunction

        Raises
        ------
        ValueError
            If springs have dampers: states do not tell the motion of the links then.
        """
        if "flat_outputs" not in self._made:
            self._check_flat(None, True)
            mechanics, m = self._mechanics, len(self._mechanics.inputs)
            reaches = bool(self.rigid_joints) or len(mechanics.adjusted) < len(mechanics.set_joints)
            names = ["u", "u_dot", "u_ddot"][: 3 if reaches else 1]

            def build(x: Value, *values: Value) -> Sequence[Value]:
                inputs = [*values[: len(names)], *[ca.SX(m, 1)] * (3 - len(names))]
                p = values[len(names)] if self.parameters else ca.SX(0, 1)
                return link_motion(mechanics, self.tree, x, inputs, p)

            shapes: dict[str, Shape] = {"x": (self.state.nq,)} | {name: (m,) for name in names}
            defaults = {}
            if self.parameters:
                shapes["p"] = (len(self.parameters),)
                defaults["p"] = self._nominal
            nv = (self.tree.nv,)
            results: dict[str, Shape] = {"q": (self.tree.nq,), "v": nv, "a": nv, "j": nv, "s": nv}
            self._made["flat_outputs"] = trace(
                "flat_outputs", build, shapes, {f"{k}_out": x for k, x in results.items()},
                defaults=defaults,
            )  # fmt: skip
        return self._made["flat_outputs"]

    def to_flat_system(self, **options: Any) -> Any:
        """The arm for ``control.flatsys``: its `point_to_point` and the like plan on q … q⁗.

        Parameters
        ----------
        **options
            Of `control.flatsys.FlatSystem`, such as a name.

        Returns
        -------
        control.flatsys.FlatSystem
            States are those of `system()`, whose signals name its own, with underscores for dots.

        Raises
        ------
        ValueError
            If the arm has rigid joints, a base that moves, coordinates that are no vector (a
            continuous joint's), or stiffnesses that are set.

        Examples
        --------
        >>> import control.flatsys
        >>> from lgcontrol.mechanics import Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
        >>> tree = Multibody(gravity=(0, 0, 0)).add_body("ball", ball, "revolute", axis="y")
        >>> flat = SeriesElastic(tree, {"ball": Motor(0.5, 100.0)}).to_flat_system()
        >>> plan = control.flatsys.point_to_point(
        ...     flat, 1.0, [0, 0, 0, 0], 0, [1, 0, 1, 0], 0,
        ...     basis=control.flatsys.PolyFamily(10))
        >>> x, u = plan.eval([0.5])
        >>> x.ravel().round(3).tolist()[:2], abs(u[0, 0]) < 1e-6
        ([0.5, 2.461], True)
        """
        import control.flatsys

        if self.rigid_joints or self._mechanics.set_joints or self.tree.nq != self.tree.nv:
            raise ValueError(
                f"{self.tree.name}: to_flat_system knows arms of elastic joints alone, each with "
                "one coordinate and a spring that is what it is; flat_map knows all"
            )
        if self.parameters:
            raise ValueError(
                f"{self.tree.name} has parameters: give them numbers before to_flat_system"
            )
        forth, back = self.flat_map(), self.flat_outputs()
        system, n = self.system(), self.tree.nv

        def forward(x: Any, u: Any, params: Any = None) -> list[np.ndarray]:
            return list(np.stack(back(np.ravel(x), np.ravel(u)), axis=1))

        def reverse(flag: Any, params: Any = None) -> tuple[np.ndarray, np.ndarray]:
            found = forth(*np.reshape(flag, (n, 5)).T)
            return found.x, found.u

        def rate(t: float, x: Any, u: Any, params: Any = None) -> np.ndarray:
            return system.f(t, np.ravel(x), np.ravel(u))

        signals = {
            "name": self.tree.name,
            "inputs": [control_name(entry.name) for entry in system.inputs],
            "states": [control_name(name) for name in self.state.coordinate_names],
            "outputs": [control_name(name) for name in self.state.coordinate_names],
        }
        return control.flatsys.FlatSystem(
            forward, reverse, rate, lambda t, x, u, params=None: x, **(signals | options)
        )

    def damped_motion(
        self,
        t: Any,
        q: Any,
        v: Any,
        a: Any,
        j: Any,
        s: Any,
        *,
        start: Mapping[str, float] | None = None,
        p: FixedParameters | None = None,
    ) -> Trajectory:
        """States and inputs along a motion of the links, exact where springs have dampers.

        The deflection of such a spring is that of ``D δ̇ + K δ = τ`` along the motion, which is
        stable forwards in time; it depends on where it starts. Between samples τ is taken as the
        polynomial of degree five with the values, slopes and curvatures of both: the error shrinks
        with the sixth power of their distance, whatever D/K is.

        Parameters
        ----------
        t : array_like, shape (N,)
            Times in s.
        q : array_like, shape (N, nq)
        v, a, j, s : array_like, shape (N, nv)
            Velocity and its first three derivatives.
        start : mapping of str to float, optional
            Deflections at the first time by joint [rad]; by default such that none of what was
            before is left.
        p : mapping or array_like, optional
            Parameters, as for `System`.

        Returns
        -------
        Trajectory
            Of `state`, with the inputs of `system()`.

        Raises
        ------
        ValueError
            If a spring with a damper is not linear.

        Examples
        --------
        >>> from lgcontrol.mechanics import LinearSpring, Multibody, SpatialInertia
        >>> ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
        >>> tree = Multibody(gravity=(0, 0, 0)).add_body("ball", ball, "revolute", axis="y")
        >>> arm = SeriesElastic(tree, {"ball": Motor(0.5, LinearSpring(100.0, damping=2.0))})
        >>> t, none = np.linspace(0, 1, 11), np.zeros((11, 1))
        >>> arm.damped_motion(t, t[:, None]**2, 2 * t[:, None], none + 2, none, none).u[0]
        array([3.])
        """
        flat = self.flat_map(expansion=0)
        values = values_by_name(self.parameters, self._nominal, p)
        t, own = check_shape("t", t, (None,)), (values,) * bool(self.parameters)
        rates = [check_shape("q", q, (len(t), self.tree.nq))] + [
            check_shape(key, x, (len(t), self.tree.nv))
            for key, x in zip("vajs", (v, a, j, s), strict=True)
        ]
        if len(t) < 2 or not (np.diff(t) > 0).all():
            raise ValueError("t must be at least two times that increase")
        if self._mechanics.set_joints:
            raise ValueError("damped_motion knows springs whose stiffness is not set")
        found = flat(*rates, *own)
        tree_p = (values[: len(self.tree.parameters)],) * bool(self.tree.parameters)
        torques = np.stack(self.tree.inverse_dynamics_time_derivatives(2)(*rates, *tree_p))
        x, u = found.x.copy(), found.u.copy()
        for i, (joint, c) in enumerate(zip(self._joints, self._numbers(values), strict=True)):
            if c.loss == 0:
                continue
            row, known = self._mechanics.rows[i], torques[:, :, self._mechanics.rows[i]]
            first = (start or {}).get(joint.name)
            d = DampedDeflection.along(t, known, c.spring["stiffness"], c.loss, first)
            motor = joint.group.plus(rates[0][:, joint.places.q], d.deflection[:, None])
            at = self.state.coordinate_slice("motor").start
            at += sum(other.group.nq for other in self._joints[:i])
            x[:, at : at + joint.group.nq] = motor
            speed = rates[1][:, row] + d.rate
            x[:, self.state.coordinate_slice("motor_velocity").start + i] = speed
            drag = c.damping * speed + c.friction * np.tanh(speed / joint.motor.friction_speed)
            push = c.inertia * (rates[2][:, row] + d.acceleration)
            u[:, self._mechanics.drives[i]] = push + drag + known[0]
        return Trajectory(self.state, t, x, u)

    def _numbers(self, p: np.ndarray) -> list[JointNumbers]:
        """Numbers of the elastic joints for values of the parameters."""
        return [
            JointNumbers(
                float(c.inertia),
                float(c.damping),
                float(c.friction),
                float(c.loss),
                {key: float(value) for key, value in c.spring.items()},
            )
            for c in self._mechanics.numbers(ca.DM(p))
        ]

    @property
    def _nominal(self) -> np.ndarray:
        return np.array([entry.nominal for entry in self.parameters])

    @cached_property
    def _made(self) -> dict[Any, Any]:
        """Functions that were traced."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Functions are traced again when needed."""
        return {k: x for k, x in self.__dict__.items() if k not in ("_made", "_mechanics")}

    def _trace(self, name: str, names: list[str], build: Any, results: Any) -> ModelFunction:
        """Function of rates of the links, of settings with their rates, and of parameters."""
        set_count = len(self._mechanics.set_joints)
        shapes: dict[str, Shape] = {key: (self.tree.nv,) for key in names}
        shapes["q"] = (self.tree.nq,)
        if set_count:
            shapes |= {key: (set_count,) for key in ("k", "k_dot", "k_ddot")}
        defaults = {}
        if self.parameters:
            shapes["p"] = (len(self.parameters),)
            defaults["p"] = self._nominal

        def call(*values: Value) -> Sequence[Value]:
            rates, rest = values[: len(names)], values[len(names) :]
            settings = rest[:3] if set_count else ()
            p = rest[-1] if self.parameters else ca.SX(0, 1)
            return build(rates, settings, p)

        return trace(name, call, shapes, results, defaults=defaults)

    def _check_flat(self, expansion: int | None, dry_friction: bool) -> None:
        damped = self.damped_joints
        if damped and expansion is None:
            raise ValueError(
                f"{self.tree.name}: dampers parallel to the springs of {', '.join(damped)} make "
                "the arm not flat (zero dynamics −K/D): damped_motion(…) has the motors along a "
                "trajectory, flat_map(expansion=2) approximates them"
            )
        if expansion is not None:
            if isinstance(expansion, bool) or not isinstance(expansion, int) or expansion < 0:
                raise ValueError(f"expansion must be 0, 1, 2, …, not {expansion!r}")
            crooked = [j.name for j in self._joints if j.name in damped and not j.spring.is_linear]
            if crooked:
                raise ValueError(
                    f"the expansion in D/K is one of linear springs, and those of "
                    f"{', '.join(crooked)} are not"
                )
        dry = [link.joint_name for link in self.tree._links
               if not link.joint.is_fixed and np.any(link.filled.friction)]  # fmt: skip
        if dry and not dry_friction:
            raise ValueError(
                f"joints {', '.join(dry)} of {self.tree.name} have dry friction between links: the "
                "second time derivative of torques is that of its smoothing; leave it out "
                "(Multibody.from_urdf(…, losses=False), with_properties), give it to the motor "
                "(Motor(friction=…)), or say flat_map(dry_friction=True)"
            )


def _driven(tree: Multibody) -> list[str]:
    return [name for name in tree.joints if tree.configuration.blocks[name].dim < 6]


def _check_joint(tree: Multibody, name: str, motor: Motor) -> None:
    known = tree._index.joints
    if name not in tree.joints:
        mimic = known[name].mimic if name in known else None
        if mimic is not None:
            raise ValueError(
                f"joint {name!r} follows {mimic.joint!r} rigidly: give the motor to that one"
            )
        raise UnknownNameError(unknown_name("joint", name, tree.joints))
    if not isinstance(motor, Motor):
        raise TypeError(f"motors[{name!r}] must be Motor(inertia=…, spring=…), not {motor!r}")
    link, group = known[name], tree.configuration.blocks[name]
    if group.dim != 1:
        raise ValueError(
            f"joint {name!r} moves on {group}, {group.dim} degrees of freedom: {GROUP_REASON}"
        )
    if np.any(link.filled.armature) or f"{name}.armature" in tree.parameters:
        raise ValueError(
            f"joint {name!r} has an armature of {np.max(link.filled.armature):g}: the inertia of its "
            "motor would count twice; take it out, "
            f"tree.with_properties({name}=JointProperties(armature=0, …)), and give it to the motor"
        )

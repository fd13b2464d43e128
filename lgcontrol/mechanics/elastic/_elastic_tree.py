"""ElasticTree: a tree with motors behind springs, its System, and what is measured of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Literal, Self

import casadi as ca
import numpy as np

from ...codegen import Value, named_options
from ...codegen._internal import (
    Memo,
    UnknownNameError,
    as_names,
    check_known,
    check_one_by_one,
    check_options,
    check_shape,
    interruptible,
    unknown_name,
)
from ...groups import LieGroup, Product, Rn
from ...systems import Parameter, Quantity, Sensor, System
from .._coefficients import Coefficients, is_named, unknown_parameter
from .._mechanical import mechanical
from ..multibody._look import TreeLook
from ..multibody._multibody import Multibody
from ..multibody._system import state_limits, tree_mechanics
from ._equations import ElasticJoint, ElasticMechanics, JointNumbers, elastic_state
from ._joint_spring import AdjustedSpring, Motor
from ._motion import state_motion

GROUP_REASON = (
    "a spring between motor and link is modelled for joints with one degree of freedom; "
    "keep the joint rigid, or write it as a chain of revolute joints"
)


@named_options(own="motors")
class ElasticTree(Memo):
    """A tree some of whose joints have a spring: what `SeriesElastic` computes with."""

    def __init__(
        self,
        tree: Multibody,
        motors: Mapping[str, Motor],
        *,
        inputs: Iterable[str] | None = None,
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
                f"{{{some!r}: Motor(inertia=…, spring=…)}}, got "
                + ("none" if isinstance(motors, Mapping) else f"a {type(motors).__name__}")
            )
        for name, motor in motors.items():
            _check_joint(tree, name, motor)
        self.tree = tree
        self.motors: dict[str, Motor] = {n: motors[n] for n in tree.joints if n in motors}
        self.joints: tuple[str, ...] = tuple(self.motors)
        rigid = _driven(tree) if inputs is None else as_names(inputs)
        check_known("joint", tree.joints, *rigid)
        self.driven = tuple(n for n in tree.joints if n in rigid or n in self.motors)
        self.elastic_joints = tuple(
            ElasticJoint(name, motor, tree.configuration.blocks[name], tree._coordinates[name])
            for name, motor in self.motors.items()
        )
        self._symbols: tuple[str, ...] = ()
        self.state: Product = elastic_state(tree, self.elastic_joints)

    def __repr__(self) -> str:
        """Name and joints."""
        return f"{type(self).__name__}({self.tree.name!r}, {', '.join(self.joints)})"

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the tree, then numbers of motors and springs."""
        return self.mechanics.parameters

    @cached_property
    def _coefficients(self) -> Coefficients:
        """Numbers of motors and springs."""
        numbers = {key: x for joint in self.elastic_joints for key, x in joint.numbers.items()}
        return Coefficients(numbers, self._symbols)

    @named_options
    def symbolic(self, *names: str) -> Self:
        """Copy with named numbers as symbols: parameters, those of the tree first.

        Parameters
        ----------
        *names : str
            Numbers of the tree, see `Multibody.symbolic`, or "JOINT.motor.inertia", "….damping",
            "….friction", "JOINT.spring.stiffness", "….damping", …, or the beginning of several.

        Raises
        ------
        KeyError
            If a name is unknown.
        TypeError
            If names are not given one by one.

        Examples
        --------
        >>> from lgcontrol.models import elastic_planar_arm_tree
        >>> arm = elastic_planar_arm_tree().symbolic("elbow.spring.stiffness", "forearm.mass")
        >>> arm.with_parameters({"forearm.mass": 2.0}).parameters[0].nominal
        2.0
        """
        check_one_by_one("symbolic", names)
        own, tree = self._coefficients.names, self.tree.named_numbers
        of_arm = [name for name in names if is_named(name, own)]
        of_tree = [name for name in names if is_named(name, tree)]
        for name in names:
            if name not in of_arm and name not in of_tree:
                raise UnknownNameError(unknown_parameter(name, (*tree, *own)))
        made = self._like(tree=self.tree.symbolic(*of_tree))
        made._symbols = (*self._symbols, *of_arm)
        return made

    @named_options
    def with_parameters(self, values: Any) -> Self:
        """Copy with other values of some numbers; a symbol stays a symbol.

        Parameters
        ----------
        values : array_like, shape (n_parameters,), or mapping of str to float
            One number for each of `parameters`; or any numbers of tree, motors and springs by
            their names in full, symbols or not.

        Raises
        ------
        KeyError
            If there is no such number.
        ValueError
            If a count is wrong, or a number is not finite or outside its range.
        """
        if not isinstance(values, Mapping):
            p = check_shape("parameter values", values, (len(self.parameters),))
            values = {entry.name: x for entry, x in zip(self.parameters, p, strict=True)}
        own, tree = self._coefficients.names, self.tree.named_numbers
        for name in values:
            if name not in own and name not in tree:
                raise UnknownNameError(unknown_parameter(name, (*tree, *own)))
        given = {name: x for name, x in values.items() if name in own}
        changed = self._coefficients.with_values(self.tree.name, given)
        return self._like(
            tree=self.tree.with_parameters({k: x for k, x in values.items() if k in tree}),
            motors={joint: _changed(joint, motor, changed) for joint, motor in self.motors.items()},
        )

    def _like(self, **changed: Any) -> Self:
        """Copy with another tree or other motors."""
        own: dict[str, Any] = {"tree": self.tree, "motors": self.motors, "inputs": self.driven}
        made = type(self)(**(own | changed))
        made._symbols = self._symbols
        return made

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
            for joint in self.elastic_joints
            if joint.spring.damping > 0 or f"{joint.name}.spring.damping" in symbols
        )

    @cached_property
    def mechanics(self) -> ElasticMechanics:
        """Equations on CasADi columns, without surroundings."""
        return ElasticMechanics(
            tree_mechanics(self.tree, self.driven), self.elastic_joints, self._coefficients
        )

    def with_motors(self, **motors: Motor) -> Self:
        """Copy with other motors in some joints.

        Parameters
        ----------
        **motors : Motor
            By joint.
        """
        return self._like(motors={**self.motors, **motors})

    # The System

    @interruptible
    def system(
        self,
        name: str | None = None,
        *,
        h: Any = None,
        output: LieGroup | None = None,
        symbolic: str | Iterable[str] = (),
        **surroundings: Any,
    ) -> System[Product]:
        """The arm as a System.

        Parameters
        ----------
        name : str, optional
        h : callable, optional
            Output ``(t, x, u, p) → coordinates on output``.
        output : LieGroup, optional
        symbolic : str or iterable of str
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
        named = ("tree", "inputs", "input_matrix")
        check_options(surroundings, self.system, tree_mechanics, but=named)
        build = partial(self._system, name or self.tree.name)
        if h is not None or output is not None or symbolic or surroundings:
            return build(h, output, symbolic, **surroundings)
        # Controllers and simulations of one arm ask for it again.
        return self.memo(("system", name or self.tree.name), build)

    def _system(
        self,
        name: str,
        h: Any = None,
        output: LieGroup | None = None,
        symbolic: str | Iterable[str] = (),
        **surroundings: Any,
    ) -> System[Product]:
        mechanics = ElasticMechanics(
            tree_mechanics(self.tree, self.driven, symbolic=symbolic, **surroundings),
            self.elastic_joints,
            self._coefficients,
        )
        state = self.state

        def deflection(t: Value, x: Value, u: Value, p: Value) -> Value:
            return mechanics.deflection(x)

        def spring_torque(t: Value, x: Value, u: Value, p: Value) -> Value:
            return mechanics.spring_torque(x, u, p)

        def motion(*values: Value) -> tuple[Value, ...]:
            return state_motion(mechanics, self.tree, values[:5], values[5])

        return System(
            name,
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
            look=TreeLook(self.tree, block=next(iter(state.blocks))),
            structure=mechanical(
                mechanics,
                state,
                mechanics.inputs,
                mechanics.parameters,
                loss_jacobian=mechanics.loss_jacobian if mechanics.has_losses else None,
                losses=mechanics.losses if mechanics.rigid.has_friction else None,
                motion=motion,
                model=self,
            ),
        )

    def _unit(self, of: str) -> str:
        units = {getattr(joint, of) for joint in self.elastic_joints}
        return units.pop() if len(units) == 1 else ""

    def _limits(self) -> dict[str, tuple[float, float]]:
        found = state_limits(self.tree)
        for joint in self.elastic_joints:
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

        ``inertia · ratio · |θ̇| |ω|`` at the speed limits of motor and joints. ω is at most the
        sum of the speeds of the turning joints that carry the motor. The moment is infinite if one
        of them has no limit. A gear of ratio 1 with a reflected inertia makes it too large by the
        ratio.
        """
        speeds = dict(zip(self.tree.joints, self._joint_speeds(), strict=True))
        found = {}
        for joint in self.elastic_joints:
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

    @named_options
    def motor_encoder(self, name: str = "motor_encoder", **options: Any) -> Sensor:
        """Measurement of motor positions, behind the gears; options are those of `Sensor`.

        Parameters
        ----------
        name : str
        **options
        """
        return Sensor(name, "motor", **options)

    @named_options
    def link_encoder(self, name: str = "link_encoder", **options: Any) -> Sensor:
        """Measurement of the positions of the elastic joints, behind the springs.

        Parameters
        ----------
        name : str
        **options
            Those of `Sensor`.
        """
        places, group = [joint.places for joint in self.elastic_joints], self.state.blocks["motor"]

        def measure(t: Value, x: Value, u: Value, p: Value) -> Value:
            return ca.vertcat(*(x[place.q] for place in places))

        return Sensor(name, measure, group, **options)

    @named_options
    def torque_sensor(self, name: str = "torque_sensor", **options: Any) -> Sensor:
        """Measurement of the torques through springs (and dampers parallel to them).

        Parameters
        ----------
        name : str
        **options
            Those of `Sensor`.
        """
        mechanics = self.mechanics
        if mechanics.set_joints or self._coefficients.parameters:
            # Whose inputs and parameters follow those of the surroundings.
            raise ValueError(
                f"{self.tree.name}: springs have parameters or are set; measure the quantity "
                "spring_torque of the system, Sensor(name, system.quantities["
                "'spring_torque'], Rn(…))"
            )
        units = tuple(joint.force_unit for joint in self.elastic_joints)

        def measure(t: Value, x: Value, u: Value, p: Value) -> Value:
            return mechanics.spring_torque(x, u, p)

        return Sensor(name, measure, Rn(len(self.joints), self.joints, units), **options)

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
            for c in self.mechanics.numbers(ca.DM(p))
        ]

    @property
    def nominal_parameters(self) -> np.ndarray:
        """Values of the parameters, shape (n_parameters,)."""
        return np.array([entry.nominal for entry in self.parameters])

    def __getstate__(self) -> dict[str, Any]:
        """Functions are traced again when needed."""
        return {k: x for k, x in super().__getstate__().items() if k != "mechanics"}


def _changed(joint: str, motor: Motor, changed: Mapping[str, np.ndarray]) -> Motor:
    """The motor with the numbers of its joint that changed."""
    own: dict[str, dict[str, float]] = {"motor": {}, "spring": {}}
    for name, x in changed.items():
        if name.startswith(f"{joint}."):
            part, number = name.removeprefix(f"{joint}.").split(".")
            own[part][number] = float(x)
    return replace(motor, spring=replace(motor.joint_spring, **own["spring"]), **own["motor"])


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
            f"joint {name!r} has an armature of {np.max(link.filled.armature):g}: the inertia of "
            "its motor would count twice; take it out, "
            f"tree.with_properties({name}=JointProperties(armature=0, …)), and give it to the motor"
        )

"""SeriesElastic: a tree with motors behind springs; motors for a motion of links, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, named_options, trace
from ...codegen._internal import Shape, check_increasing, check_known, check_shape, memoized
from ...systems import Trajectory
from ...systems._internal import FixedParameters, flat_system, values_by_name
from ..multibody.compiled._functions import rate_names
from ._elastic_tree import ElasticTree
from ._motion import DampedDeflection, link_motion, motor_motion


@named_options
def flat_map(
    arm: ElasticTree, *, expansion: int | None = None, dry_friction: bool = False
) -> ModelFunction:
    """(q, v, a, j, s) → x, motor_acceleration, u, tau: what a motion of the links takes.

    The flat outputs are q, on the configuration, and what sets stiffness (κ: the stiffness
    itself or φ), as further arguments k, k_dot, k_ddot. Rigid joints take their snap as well:
    through the links it acts on the elastic ones.

    Parameters
    ----------
    expansion : int, optional
        For springs with dampers, which are not flat: deflections by
        ``δ = Σ (−D/K)^i τ^(i)/K`` up to this order; the motion is given by as many more
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
    >>> from lgcontrol.mechanics import Motor, Multibody, SeriesElastic, SpatialInertia
    >>> ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
    >>> tree = Multibody(gravity=(0, 0, 0)).add_body("ball", ball, "revolute", axis="y")
    >>> arm = SeriesElastic(tree, {"ball": Motor(inertia=0.5, spring=100.0)})
    >>> arm.flat_map()([0.0], [0.0], [2.0], [0.0], [50.0]).u  # B (a + M s / K) + M a
    array([3.25])
    """
    return _flat_map(arm, expansion, dry_friction)


@memoized
def _flat_map(arm: ElasticTree, expansion: int | None, dry_friction: bool) -> ModelFunction:
    _check_flat(arm, expansion, dry_friction)
    order = expansion or 0
    return _trace(
        arm,
        "flat_map",
        ["q", *rate_names(4 + order)],
        lambda rates, settings, p: motor_motion(arm.mechanics, arm.tree, rates, settings, p, order),
        {
            "x": (arm.state.nq,),
            "motor_acceleration": (len(arm.joints),),
            "u": (len(arm.mechanics.inputs),),
            "tau": (arm.tree.nv,),
        },
    )


@memoized
def flat_outputs(arm: ElasticTree) -> ModelFunction:
    """(x, u) → q, v, a, j, s of the links; the inverse of `flat_map`.

    If joints are rigid, or a stiffness is an input, their rates follow: (x, u, u_dot, u_ddot). Up
    to the jerk nothing depends on the torques of motors.

    Raises
    ------
    ValueError
        If springs have dampers: states do not tell the motion of the links then.
    """
    _check_flat(arm, None, True)
    mechanics, m = arm.mechanics, len(arm.mechanics.inputs)
    reaches = bool(arm.rigid_joints) or len(mechanics.adjusted) < len(mechanics.set_joints)
    names = ["u", "u_dot", "u_ddot"][: 3 if reaches else 1]

    def build(x: Value, *values: Value) -> Sequence[Value]:
        inputs = [*values[: len(names)], *[ca.SX(m, 1)] * (3 - len(names))]
        p = values[len(names)] if arm.parameters else ca.SX(0, 1)
        return link_motion(mechanics, arm.tree, x, inputs, p)

    shapes: dict[str, Shape] = {"x": (arm.state.nq,)} | {name: (m,) for name in names}
    defaults = {}
    if arm.parameters:
        shapes["p"] = (len(arm.parameters),)
        defaults["p"] = arm.nominal_parameters
    nv = (arm.tree.nv,)
    results: dict[str, Shape] = {"q": (arm.tree.nq,), "v": nv, "a": nv, "j": nv, "s": nv}
    return trace(
        "flat_outputs", build, shapes, {f"{k}_out": x for k, x in results.items()},
        defaults=defaults,
    )  # fmt: skip


def to_flat_system(arm: ElasticTree, **options: Any) -> Any:
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
    >>> from lgcontrol.mechanics import Motor, Multibody, SeriesElastic, SpatialInertia
    >>> ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
    >>> tree = Multibody(gravity=(0, 0, 0)).add_body("ball", ball, "revolute", axis="y")
    >>> flat = SeriesElastic(tree, {"ball": Motor(0.5, 100.0)}).to_flat_system()
    >>> plan = control.flatsys.point_to_point(
    ...     flat, 1.0, [0, 0, 0, 0], 0, [1, 0, 1, 0], 0,
    ...     basis=control.flatsys.PolyFamily(10))
    >>> x, u = plan.eval([0.5])
    >>> x.ravel().round(3).tolist()[:2], bool(abs(u[0, 0]) < 1e-6)
    ([0.5, 2.461], True)
    """
    if arm.rigid_joints or arm.mechanics.set_joints or arm.tree.nq != arm.tree.nv:
        raise ValueError(
            f"{arm.tree.name}: to_flat_system knows arms of elastic joints alone, each with "
            "one coordinate and a spring that is what it is; flat_map knows all"
        )
    if arm.parameters:
        raise ValueError(f"{arm.tree.name} has parameters: give them numbers before to_flat_system")
    forth, back, n = flat_map(arm), flat_outputs(arm), arm.tree.nv

    def forward(x: np.ndarray, u: np.ndarray) -> list[np.ndarray]:
        return list(np.stack(back(x, u), axis=1))

    def reverse(flag: Any) -> tuple[np.ndarray, np.ndarray]:
        found = forth(*np.reshape(flag, (n, 5)).T)
        return found.x, found.u

    return flat_system(arm.system(), forward, reverse, {"name": arm.tree.name} | options)


def damped_motion(
    arm: ElasticTree,
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

    The deflection of such a spring is that of ``D δ̇ + K δ = τ`` along the motion, which is stable
    forwards in time; it depends on where it starts. Between samples τ is the polynomial of degree
    five with the values, slopes and curvatures of both. The error shrinks with the sixth power of
    their distance for every D/K.

    Parameters
    ----------
    t : array_like, shape (N,)
        Times in s.
    q : array_like, shape (N, nq)
    v, a, j, s : array_like, shape (N, nv)
        Velocity and its first three derivatives.
    start : mapping of str to float, optional
        Deflections at the first time of joints with dampers [rad]; by default what a past of
        constant curvature of the torque leads to: ``τ/K`` for a motion that starts at rest.
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
    >>> from lgcontrol.mechanics import (
    ...     LinearSpring, Motor, Multibody, SeriesElastic, SpatialInertia)
    >>> ball = SpatialInertia.point_mass(1.0, [0, 0, -1])
    >>> tree = Multibody(gravity=(0, 0, 0)).add_body("ball", ball, "revolute", axis="y")
    >>> arm = SeriesElastic(tree, {"ball": Motor(0.5, LinearSpring(100.0, damping=2.0))})
    >>> t, none = np.linspace(0, 1, 11), np.zeros((11, 1))
    >>> arm.damped_motion(t, t[:, None]**2, 2 * t[:, None], none + 2, none, none).u[0]
    array([3.])
    """
    flat = flat_map(arm, expansion=0)
    values = values_by_name(arm.parameters, arm.nominal_parameters, p)
    t, own = check_increasing("t", t, 2), (values,) * bool(arm.parameters)
    rates = [check_shape("q", q, (len(t), arm.tree.nq))] + [
        check_shape(key, x, (len(t), arm.tree.nv))
        for key, x in zip("vajs", (v, a, j, s), strict=True)
    ]
    if arm.mechanics.set_joints:
        raise ValueError("damped_motion knows springs whose stiffness is not set")
    check_known("joint with a damper", arm.damped_joints, *start or {})
    found = flat(*rates, *own)
    tree_p = (values[: len(arm.tree.parameters)],) * bool(arm.tree.parameters)
    torques = np.stack(arm.tree.inverse_dynamics_time_derivatives(2)(*rates, *tree_p))
    x, u = found.x.copy(), found.u.copy()
    for i, (joint, c) in enumerate(zip(arm.elastic_joints, arm._numbers(values), strict=True)):
        if c.loss == 0:
            continue
        row, known = arm.mechanics.rows[i], torques[:, :, arm.mechanics.rows[i]]
        first = (start or {}).get(joint.name)
        d = DampedDeflection.along(t, known, c.spring["stiffness"], c.loss, first)
        motor = joint.group.plus(rates[0][:, joint.places.q], d.deflection[:, None])
        at = arm.state.coordinate_slice("motor").start
        at += sum(other.group.nq for other in arm.elastic_joints[:i])
        x[:, at : at + joint.group.nq] = motor
        speed = rates[1][:, row] + d.rate
        x[:, arm.state.coordinate_slice("motor_velocity").start + i] = speed
        drag = c.damping * speed + c.friction * np.tanh(speed / joint.motor.friction_speed)
        push = c.inertia * (rates[2][:, row] + d.acceleration)
        u[:, arm.mechanics.drives[i]] = push + drag + known[0]
    return Trajectory(arm.state, t, x, u)


def _trace(
    arm: ElasticTree, name: str, names: list[str], build: Any, results: Any
) -> ModelFunction:
    """Function of rates of the links, of settings with their rates, and of parameters."""
    set_count = len(arm.mechanics.set_joints)
    shapes: dict[str, Shape] = {key: (arm.tree.nv,) for key in names}
    shapes["q"] = (arm.tree.nq,)
    if set_count:
        shapes |= {key: (set_count,) for key in ("k", "k_dot", "k_ddot")}
    defaults = {}
    if arm.parameters:
        shapes["p"] = (len(arm.parameters),)
        defaults["p"] = arm.nominal_parameters

    def call(*values: Value) -> Sequence[Value]:
        rates, rest = values[: len(names)], values[len(names) :]
        settings = rest[:3] if set_count else ()
        p = rest[-1] if arm.parameters else ca.SX(0, 1)
        return build(rates, settings, p)

    return trace(name, call, shapes, results, defaults=defaults)


def _check_flat(arm: ElasticTree, expansion: int | None, dry_friction: bool) -> None:
    damped = arm.damped_joints
    if damped and expansion is None:
        raise ValueError(
            f"{arm.tree.name}: dampers parallel to the springs of {', '.join(damped)} make "
            "the arm not flat (zero dynamics −K/D): damped_motion(…) has the motors along a "
            "trajectory, flat_map(expansion=2) approximates them"
        )
    if expansion is not None:
        if isinstance(expansion, bool) or not isinstance(expansion, Integral) or expansion < 0:
            raise ValueError(f"expansion must be 0, 1, 2, …, not {expansion!r}")
        crooked = [
            j.name for j in arm.elastic_joints if j.name in damped and not j.spring.is_linear
        ]
        if crooked:
            raise ValueError(
                f"the expansion in D/K is one of linear springs, and those of "
                f"{', '.join(crooked)} are not"
            )
    dry = [link.joint_name for link in arm.tree._links
           if not link.joint.is_fixed and np.any(link.filled.friction)]  # fmt: skip
    if dry and not dry_friction:
        raise ValueError(
            f"joints {', '.join(dry)} of {arm.tree.name} have dry friction between links: the "
            "second time derivative of torques is that of its smoothing; leave it out "
            "(Multibody.from_urdf(…, losses=False), with_properties), give it to the motor "
            "(Motor(friction=…)), or say flat_map(dry_friction=True)"
        )


class SeriesElastic(ElasticTree):
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
    rotor_coupling : {"neglected"}
        See Notes.

    Attributes
    ----------
    tree : Multibody
    motors : dict of str to Motor
        In the order of the tree's joints.
    joints, driven : tuple of str
        The elastic ones, and all that are driven, in this order.
    elastic_joints : tuple of ElasticJoint
        Each elastic joint with its motor and its places.
    mechanics : ElasticMechanics
        Equations on CasADi columns, for controllers.
    state : Product
        Blocks configuration, velocity, motor, motor_velocity; where motors set stiffness also
        stiffness_motor and stiffness_motor_velocity.

    Raises
    ------
    KeyError
        If a joint or a parameter is unknown.
    ValueError
        If a joint has more than one degree of freedom or follows another one. Also if it has an
        armature: the inertia of its motor would count twice.
    NotImplementedError
        If rotors are to be coupled to the links' angular velocity.

    Notes
    -----
    Rotors store energy by their own spin only (Spong 1987). The mass of a motor is part of the
    link that carries it. Its angular momentum, ``inertia · ratio · θ̇``, does not turn that link.
    The moments left out are at most ``inertia · ratio · |θ̇| |ω|`` with ω the angular velocity of
    that link (`neglected_moments` has them at the limits). Inertial coupling (De Luca and Tomei
    1996), which makes the arm flat of a higher order, is not modelled.

    References
    ----------
    M. Spong: Modeling and control of elastic joint robots. ASME J. Dyn. Syst. Meas. Control 109
    (1987). A. De Luca, P. Lucibello: A general algorithm for dynamic feedback linearization of
    robots with elastic joints. ICRA 1998. A. Müller: Screw and Lie group theory in multibody
    dynamics, section 6.3 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Motor, Multibody, SeriesElastic, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody("arm").add_body("rod", rod, "revolute", axis="y")
    >>> arm = SeriesElastic(tree, {"rod": Motor(inertia=0.2, spring=100.0)})
    >>> system = arm.system()
    >>> system.trim(where={"configuration.rod": np.pi / 2}).x.round(4).tolist()
    [1.5708, 0.0, 1.6689, 0.0]
    """

    flat_map = flat_map
    flat_outputs = flat_outputs
    damped_motion = damped_motion
    to_flat_system = to_flat_system

"""The System of a tree: state (q, v), torques and disturbances as inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np

from ...codegen import ModelFunction, Value, named_options
from ...codegen._internal import as_names, check_known, check_shape
from ...groups import SE3, LieGroup, Product, Rn
from ...systems import Input, Parameter, System
from .._coefficients import Coefficients
from .._mechanical import mechanical
from ..body._velocity_forms import MomentumFrame, VelocityForm, velocity_form_of
from ..representations._forms import check_reference
from ..representations._unified import UnifiedVelocity
from ..surroundings._forces import BodyMotion, Force
from ..surroundings._surroundings import Current, Surroundings, check_forces, full_name
from ._look import TreeLook
from ._spatial import Pose
from .compiled._added_forces import joint_force_rates, joint_losses
from .compiled._compiled_tree import CompiledTree, compiled
from .derivatives._first import inverse_dynamics_derivatives
from .derivatives._second import forward_dynamics_hessian
from .dynamics._dynamics import forward_dynamics, inverse_dynamics, mass_matrix, refuse_singular
from .dynamics._momentum import carried_momentum, kinetic_energy, potential_energy
from .kinematics._recursions import NodeMotion, node_motion
from .tree._tree import Tree

_WRENCH = (("fx", "N"), ("fy", "N"), ("fz", "N"), ("mx", "N m"), ("my", "N m"), ("mz", "N m"))


@named_options
def multibody_system(
    tree: Tree,
    inputs: Iterable[str | Input] | None = None,
    *,
    input_matrix: Any = None,
    wrenches: str | Iterable[str] | Mapping[str, str] = (),
    forces: Mapping[str, Iterable[Force]] | None = None,
    added_mass: Mapping[str, Any] | None = None,
    current: Current | None = None,
    symbolic: str | Iterable[str] = (),
    velocity: Literal["velocity", "momentum"] | UnifiedVelocity = "velocity",
    frame: MomentumFrame = "body",
    name: str | None = None,
    h: Callable[[Any, Any, Any, Any], Any] | None = None,
    output: LieGroup | None = None,
    quantities: Mapping[str, ModelFunction | Callable[..., Any]] | None = None,
) -> System[Product]:
    """System of a tree: ``q̇ = v`` (body-fixed), ``v̇`` from forward dynamics.

    Parameters
    ----------
    tree : Multibody
    inputs : iterable of str, or str, optional
        Joints that are driven, by name, or the only one; the default is all but free ones. Their
        effort limits bound the inputs. With `input_matrix`: names (or `Input` objects) of its
        columns.
    input_matrix : array_like, shape (nv, m), optional
        Generalized forces ``B u``.
    wrenches : str, iterable of str, or mapping of str to str
        Frames on which a disturbance wrench acts, with its reference ("body" by default, or
        "hybrid" for world axes): inputs ``frame.fx`` … ``frame.mz`` with role "disturbance".
    forces : mapping of str to iterable of Force, optional
        Forces on links: drag, buoyancy, thrusters, rotors, springs, … Their inputs follow the
        joints'. Weight is part of the tree.
    added_mass : mapping of str to array_like, shape (6, 6), optional
        Added mass of links in a fluid, as for `RigidBody`, in place of what the tree has
        (`Multibody.with_added_mass`, which its own functions know as well).
    current : Current, optional
        Motion of the fluid.
    symbolic : str or iterable of str
        Numbers of these forces and of the current that are parameters of the system, after those of
        the tree: "link.linear_drag.damping", "current.x", or the beginning of several.
    velocity : "velocity", "momentum" or UnifiedVelocity
        The second block of the state: v, ``p = M(q) v``, or v with six speeds of points of a free
        base in place of its twist. The latter two have the same inputs and quantities, and v is
        the quantity "velocity". Limits are on positions only; `velocity_form` converts states and
        weights.
    frame : {"body", "spatial"}
        Frame of the momentum in the rows of a free base: the base's axes and origin, or the
        world's. The latter momentum is constant without external forces.
    name : str, optional
    h : callable, optional
        Output ``(t, x, u, p) → coordinates on output``.
    output : LieGroup, optional
    quantities : mapping of str to ModelFunction or callable, optional
        Further quantities beside the energies, which terms and bounds of a problem name. Functions
        of the tree take q or (q, v), such as ``tree.manipulability("tool")`` and
        ``tree.position("tool")``, or ``(t, x, u, p) → column`` of the state (q, v), such as
        ``LinkCapsules(tree, …).self_clearance()``.

    Returns
    -------
    System
        State ``Product(configuration, velocity)``; its structure knows derivatives in closed form,
        with those of all that acts on links.

    Raises
    ------
    KeyError
        If a joint, frame or link is unknown.
    ValueError
        If a joint moves no inertia or a size does not fit. Also if spatial momenta or unified
        velocity coordinates are asked of a tree whose first joint is not free.

    Examples
    --------
    >>> from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body(
    ...     "rod", rod, "revolute", axis="y", properties=JointProperties(effort=5.0))
    >>> system = tree.system()
    >>> system.inputs[0].name, system.inputs[0].upper
    ('rod', 5.0)
    >>> system.f(0.0, [0.0, 1.0], [2.0 / 3.0])
    array([1., 1.])
    """
    said = (inputs, input_matrix, wrenches or None, forces, added_mass, current)
    said += (symbolic or None, h, output, quantities)

    is_usual = isinstance(velocity, str) and velocity == "velocity"

    def build() -> System[Product]:
        mechanics = tree_mechanics(
            tree, inputs, input_matrix, wrenches, forces, added_mass, current, symbolic
        )
        known: dict[str, Any] = {
            "kinetic_energy": mechanics.kinetic_energy,
            "potential_energy": mechanics.potential_energy,
        }
        known |= {key: mechanics.quantity(key, given) for key, given in (quantities or {}).items()}
        options: dict[str, Any] = {
            "inputs": mechanics.inputs,
            "quantities": known,
            "limits": state_limits(mechanics.tree),
            "h": h,
            "output": output,
            "look": TreeLook(mechanics.tree, mechanics.surroundings.forces),
        }
        if not is_usual:
            return _velocity_form(mechanics, velocity, frame).system(name or tree.name, **options)
        state, own = state_of(mechanics.tree), (mechanics.inputs, mechanics.parameters)
        is_plain = not (mechanics.surroundings.bodies or added_mass)
        bends = is_plain and _is_vector(mechanics.tree.configuration)
        structure = mechanical(
            mechanics,
            state,
            *own,
            loss_jacobian=mechanics.loss_jacobian if mechanics.has_losses else None,
            losses=mechanics.losses if mechanics.has_friction else None,
            kinetic_gradient=mechanics.kinetic_gradient,
            carried_momentum=mechanics.carried_momentum,
            acceleration_hessian=mechanics.acceleration_hessian if bends else None,
            model=mechanics.tree,
            is_plain=is_plain,
            momenta=mechanics,
        )
        options |= {"parameters": own[1], "structure": structure}
        return System(name or tree.name, state, mechanics.field, **options)

    if not is_usual or any(option is not None for option in said):
        return build()
    # Controllers and simulations of one tree ask for it again.
    return tree.memo(("system", name or tree.name), build)


def velocity_form(
    tree: Tree,
    velocity: Literal["momentum"] | UnifiedVelocity = "momentum",
    *,
    frame: MomentumFrame = "body",
    **options: Any,
) -> VelocityForm:
    """Ways between the states of `system()` and of ``system(velocity=…)``.

    Parameters
    ----------
    tree : Multibody
    velocity : "momentum" or UnifiedVelocity
    frame : {"body", "spatial"}
        As for `system`.
    **options
        Those of `system` that say what acts: inputs, input_matrix, wrenches, forces, added_mass,
        current, symbolic.

    Examples
    --------
    >>> from lgcontrol.models import space_arm_tree
    >>> arm = space_arm_tree()
    >>> form = arm.velocity_form(frame="spatial")
    >>> x = form.source.identity
    >>> x[arm.nq] = 1.0  # the base along its x axis
    >>> form.from_velocity(x)[arm.nq : arm.nq + 3].round(6).tolist()  # mass times velocity
    [59.7, 0.0, 0.0]
    """
    return _velocity_form(tree_mechanics(tree, **options), velocity, frame)


def tree_mechanics(
    tree: Tree,
    inputs: Iterable[str | Input] | None = None,
    input_matrix: Any = None,
    wrenches: str | Iterable[str] | Mapping[str, str] = (),
    forces: Mapping[str, Iterable[Force]] | None = None,
    added_mass: Mapping[str, Any] | None = None,
    current: Current | None = None,
    symbolic: str | Iterable[str] = (),
) -> TreeMechanics:
    """Equations of a tree with what acts on it; arguments are those of `multibody_system`."""
    wet = tree.with_added_mass(added_mass) if added_mass else tree
    refuse_singular(wet)
    drives, B = _drives(tree, inputs, input_matrix)
    surroundings = _surroundings(wet, forces or {}, current, wrenches)
    numbers = surroundings.coefficients
    for link in surroundings.added_mass:  # a number of the tree, which has no symbols for it
        del numbers[full_name(link, "added_mass")]
    coefficients = Coefficients(numbers, as_names(symbolic))
    return TreeMechanics(wet, tuple(drives), ca.sparsify(ca.DM(B)), surroundings, coefficients)


def _velocity_form(
    mechanics: TreeMechanics, velocity: str | UnifiedVelocity, frame: MomentumFrame
) -> VelocityForm:
    """Momenta of the joints, or speeds of points of the base, in place of velocities."""
    tree, group = mechanics.tree, mechanics.tree.configuration
    first = next(iter(group.blocks.values())) if isinstance(group, Product) else group
    if velocity == "momentum" and frame == "spatial" and first != SE3:
        raise ValueError(
            f"{tree.name}: spatial momenta are those of a free base, and the first joint of this "
            f'tree moves on {first.name}; take frame="body", or a base that is free'
        )
    return velocity_form_of(
        tree.name,
        mechanics,
        state_of(tree),
        mechanics.parameters,
        velocity,
        frame,
        lead=first,
        momenta=group.tangent_names,
        gradient=mechanics.kinetic_gradient,
    )


class _Loaded(NamedTuple):
    """A link or frame that something acts on, with the node it stands on, and its place there."""

    node: int
    place: Pose
    motion: BodyMotion
    wrench: Value


@dataclass(frozen=True, eq=False)
class TreeMechanics:
    """Equations of a tree on ``x = (q, v)`` with what acts on its links.

    Inputs are the joints' inputs with their matrix B, then the surroundings' inputs. Parameters
    are the tree's, then the coefficients of the surroundings.
    """

    tree: Tree
    drives: tuple[Input, ...]
    B: ca.DM
    surroundings: Surroundings
    coefficients: Coefficients

    @property
    def inputs(self) -> tuple[Input, ...]:
        """All inputs."""
        return self.drives + self.surroundings.inputs

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters."""
        known = self.tree.named_numbers
        own = [known[name] for name in self.tree.parameters]
        return (*own, *self.coefficients.parameters)

    @property
    def has_losses(self) -> bool:
        """Whether joints have damping or friction, or symbols for them."""
        made = self._compiled(ca.SX.sym("p", len(self.parameters)))
        return any(x.damping.nnz() or x.friction.nnz() for x in made.impedances)

    @property
    def has_friction(self) -> bool:
        """Whether losses are more than linear damping, which its slope tells wholly."""
        made = self._compiled(ca.SX.sym("p", len(self.parameters)))
        return any(x.friction.nnz() for x in made.impedances)

    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``v, v̇``."""
        made, q, v, loads = self._acting(x, u, p)
        return ca.vertcat(v, forward_dynamics(made, q, v, self.B @ u[: len(self.drives)], loads))

    def mass_matrix(self, x: Value, p: Value) -> Value:
        """Of the tree with its added mass."""
        return mass_matrix(self._compiled(p), self._split(x)[0])

    inertia = mass_matrix

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``B u − τ(q, v, 0)`` with the inverse dynamics τ under the wrenches on the links."""
        made, q, v, loads = self._acting(x, u, p)
        bias = inverse_dynamics(made, q, v, ca.SX(made.nv, 1), loads)
        return self.B @ u[: len(self.drives)] - bias

    def action(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``B u``, weight, springs, losses and wrenches, without velocity products."""
        made, q, v, loads = self._acting(x, u, p)
        still = ca.SX(made.nv, 1)
        held = inverse_dynamics(made, q, still, still, loads)
        return self.B @ u[: len(self.drives)] - held - joint_losses(made, v)

    def kinetic_gradient(self, x: Value, p: Value) -> Value:
        """``∂T/∂q``; nothing by the pose of a free base, which T does not know."""
        at = ca.SX.sym("q", self.tree.nq)
        v, group = self._split(x)[1], self.tree.configuration
        slope = ca.jacobian(kinetic_energy(self._compiled(p), at, v), at) @ group.rate_matrix(at)
        return ca.substitute(slope.T, at, self._split(x)[0])

    def carried_momentum(self, x: Value, y: Value, p: Value) -> Value:
        """``J(y)ᵀ Π(x)`` of the bodies as they are, and what the drives carry."""
        (q, v), made = self._split(x), self._compiled(p, regrouped=False)
        return carried_momentum(made, q, v, self._split(y)[0])

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Derivatives of ``B u − τ(q, v, a)``.

        Derivatives of inverse dynamics hold wrenches constant in their bodies. How they change
        with pose and twist comes through the Jacobians of the nodes.
        """
        (q, v), made, c = self._split(x), self._compiled(p), self._bind(p)
        moving = self._moving(made, x)
        loaded = self._loaded(made, moving, u, p)
        by_q, by_v, _ = inverse_dynamics_derivatives(made, q, v, a, _on_bodies(made, loaded))
        by_q, by_v, by_own = -by_q, -by_v, ca.SX(made.nv, len(self.surroundings.inputs))
        by_pose = dict.fromkeys(moving, ca.SX(6, 6))
        by_twist = dict.fromkeys(moving, ca.SX(6, 6))
        for body, (k, T, motion, _) in loaded.items():
            W = self.surroundings.derivatives(body, motion, u[len(self.drives) :], c)
            pull = T.pull(ca.DM.eye(6))
            by_pose[k] += T.push_wrench(W.by_pose) @ pull
            by_twist[k] += T.push_wrench(W.by_twist) @ pull
            by_own += moving[k].J.T @ T.push_wrench(W.by_inputs)
        for k, node in moving.items():
            by_q += node.J.T @ (by_pose[k] @ node.J + by_twist[k] @ node.twist_by_q)
            by_v += node.J.T @ (by_twist[k] @ node.J)
        return ca.horzcat(by_q, by_v), ca.horzcat(self.B, by_own)

    def acceleration_hessian(self, t: Value, x: Value, u: Value, p: Value, w: Value) -> Value:
        """Second derivatives of ``wᵀ v̇`` where nothing acts on the links."""
        q, v = self._split(x)
        n, m = v.shape[0], u.shape[0]
        made = forward_dynamics_hessian(self._compiled(p), q, v, self.B @ u, w)
        by_u = made.qa @ self.B
        return ca.vertcat(
            ca.horzcat(made.qq, made.qv, by_u),
            ca.horzcat(made.qv.T, made.vv, ca.SX(n, m)),
            ca.horzcat(by_u.T, ca.SX(m, n + m)),
        )

    def losses(self, x: Value, p: Value) -> Value:
        """Damping and friction in the joints."""
        return joint_losses(self._compiled(p), self._split(x)[1])

    def loss_jacobian(self, x: Value, p: Value) -> Value:
        """Slopes of damping and friction in the joints."""
        return joint_force_rates(self._compiled(p), *self._split(x))[1]

    def kinetic_energy(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Of the tree with its added mass."""
        return kinetic_energy(self._compiled(p), *self._split(x))

    def quantity(self, name: str, given: Any) -> Any:
        """A quantity as a function ``(t, x, u, p)``; those of the tree take q and v of it."""
        if not isinstance(given, ModelFunction):
            return given
        function = given.function
        taken = function.name_in()
        if taken == ["t", "x", "u", "p"]:
            return given
        if not set(taken) <= {"q", "v", "p"} or function.n_out() != 1:
            raise ValueError(
                f"quantity {name!r} is {given!r}: expected one result of q, or of (q, v), or of "
                "(t, x, u, p)"
            )

        def of(t: Value, x: Value, u: Value, p: Value) -> Value:
            known = dict(zip("qv", self._split(x), strict=True))
            known["p"] = p[: len(self.tree.parameters)]
            return ca.vec(function(*(known[key] for key in taken)))

        return of

    def potential_energy(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Of weight, springs, and the forces that have one."""
        q, made, c = self._split(x)[0], self._compiled(p, regrouped=False), self._bind(p)
        energy = potential_energy(made, q)
        moving = self._moving(made, ca.vertcat(q, ca.SX(made.nv, 1)))
        loaded = self._loaded(made, moving, ca.SX(len(self.inputs), 1), p)
        for body, (_, _, motion, _) in loaded.items():
            for own in self.surroundings.potential_energies(body, motion, c).values():
                energy += 0 if own is None else own
        return energy

    def _split(self, x: Value) -> tuple[Value, Value]:
        nq = self.tree.nq
        return x[:nq], x[nq:]

    def _compiled(self, p: Value, *, regrouped: bool = True) -> CompiledTree:
        return compiled(self.tree, p[: len(self.tree.parameters)], regrouped=regrouped)

    def _acting(self, x: Value, u: Value, p: Value) -> tuple[CompiledTree, Value, Value, Any]:
        """The compiled tree, q, v and the wrenches on its moving bodies."""
        made = self._compiled(p)
        loaded = self._loaded(made, self._moving(made, x), u, p)
        return made, *self._split(x), _on_bodies(made, loaded)

    def _bind(self, p: Value) -> dict[str, Value]:
        added = self.surroundings.added_mass.items()
        constant = {full_name(link, "added_mass"): ca.sparsify(ca.DM(A)) for link, A in added}
        return self.coefficients.bind(p[len(self.tree.parameters) :]) | constant

    def _moving(self, made: CompiledTree, x: Value) -> dict[int, NodeMotion]:
        """Motion of the nodes that something acts on."""
        nodes = dict.fromkeys(made.frames[body].node for body in self.surroundings.bodies)
        return {k: node_motion(made, *self._split(x), k) for k in nodes}

    def _loaded(
        self, made: CompiledTree, moving: Mapping[int, NodeMotion], u: Value, p: Value
    ) -> dict[str, _Loaded]:
        c, own = self._bind(p), u[len(self.drives) :]
        found = {}
        for body in self.surroundings.bodies:
            k, T = made.frames[body]
            inertia = made.link_masses.get(body, (ca.DM(1, 1), ca.DM(3, 1)))
            pose, twist = moving[k].pose @ T, T.pull(moving[k].twist)
            motion = self.surroundings.motion(pose, twist, inertia, own, c)
            found[body] = _Loaded(k, T, motion, self.surroundings.wrench(body, motion, own, c))
        return found


def _on_bodies(made: CompiledTree, loaded: Mapping[str, _Loaded]) -> Value | None:
    """Wrenches on the moving bodies, 6 × bodies, or None where nothing acts on them."""
    nodes: dict[int, Value] = {}
    for k, T, _, wrench in loaded.values():
        if k >= 0:  # on the world nothing moves
            nodes[k] = nodes.get(k, ca.SX(6, 1)) + T.push_wrench(wrench)
    if not nodes:
        return None
    return ca.horzcat(
        *(made.frames[name].pose.pull_wrench(nodes.get(k, ca.SX(6, 1))) for name, k in made.bodies)
    )


def _surroundings(
    tree: Tree,
    forces: Mapping[str, Iterable[Force]],
    current: Current | None,
    wrenches: str | Iterable[str] | Mapping[str, str],
) -> Surroundings:
    check_known("link", tree.links, *forces)
    references = (
        wrenches if isinstance(wrenches, Mapping) else dict.fromkeys(as_names(wrenches), "body")
    )
    for frame, reference in references.items():
        check_known("frame", tree.frames, frame)
        check_reference(reference)
    # In a fluid at rest the tree itself knows of added mass.
    known = {} if current is None else {link.name: link.added_mass for link in tree._links}
    return Surroundings(
        {link: check_forces(link, some) for link, some in forces.items()},
        {link: A for link, A in known.items() if A is not None},
        current,
        pushes={frame: _Push(frame, reference) for frame, reference in references.items()},
    )


@dataclass(frozen=True, eq=False)
class _Push(Force):
    """A disturbance wrench on a frame, given in a reference."""

    frame: str
    reference: str

    @property
    def name(self) -> str:  # type: ignore[override]
        """No name that a force has."""
        return f"push on {self.frame}"

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Components of the wrench."""
        return tuple(Input(f"{self.frame}.{x}", unit, role="disturbance") for x, unit in _WRENCH)

    def _wrench(self, motion: BodyMotion, u: Value, c: Mapping[str, Value]) -> Value:
        return Pose(motion.rotation, motion.position).wrenches_from(u, self.reference)


def state_of(tree: Tree) -> Product:
    """Configuration and velocity, with the names and units of the joints."""
    q = tree.configuration
    names = tuple(q.tangent_names)
    units = tuple(f"{unit}/s" for unit in q.tangent_units)
    return Product(configuration=q, velocity=Rn(tree.nv, names, units))


def _is_vector(group: LieGroup) -> bool:
    """Whether coordinates are added."""
    x, d = ca.SX.sym("x", group.nq), ca.SX.sym("d", group.dim)
    return group.nq == group.dim and ca.is_equal(group.plus(x, d), x + d, 2)


def state_limits(tree: Tree) -> dict[str, tuple[float, float]]:
    """Limits of the joints by the names of the state's coordinates, where a joint has any."""
    state, limits, group = state_of(tree), tree.limits, tree.configuration
    names = state.coordinate_names
    lower, upper = np.full(state.nq, -np.inf), np.full(state.nq, np.inf)
    lower[tree.nq :], upper[tree.nq :] = -limits["velocity"], limits["velocity"]
    blocks = group.blocks if isinstance(group, Product) else {}
    for name, block in blocks.items():
        if block.nq == block.dim:  # else coordinates are not those of v
            at, own = group.coordinate_slice(name), group.tangent_slice(name)
            lower[at], upper[at] = limits["lower"][own], limits["upper"][own]
    return {
        name: (float(low), float(high))
        for name, low, high in zip(names, lower, upper, strict=True)
        if np.isfinite(low) or np.isfinite(high)
    }


def _drives(
    tree: Tree, inputs: Iterable[str | Input] | None, input_matrix: Any
) -> tuple[list[Input], np.ndarray]:
    """Inputs that act on the joints, and their matrix, shape (nv, m)."""
    if isinstance(inputs, str):
        inputs = (inputs,)
    if input_matrix is not None:
        B = check_shape("input_matrix", input_matrix, (tree.nv, None))
        named = list(inputs) if inputs is not None else [f"u{i}" for i in range(B.shape[1])]
        if len(named) != B.shape[1]:
            raise ValueError(
                f"{len(named)} inputs named for an input_matrix with {B.shape[1]} columns"
            )
        return [x if isinstance(x, Input) else Input(x) for x in named], B
    links = {link.joint_name: link for link in tree._moving_links}
    if inputs is None:
        driven = [name for name, link in links.items() if link.joint.group != SE3]
    else:
        driven = [str(name) for name in inputs]
    found: list[Input] = []
    columns: list[int] = []
    efforts = tree.limits["effort"]
    for name in driven:
        check_known("joint", links, name)
        group, at = links[name].joint.group, tree._coordinates[name].v
        for i, axis, unit in zip(
            range(at.start, at.stop), group.tangent_names, group.tangent_units, strict=True
        ):
            label = name if group.dim == 1 else f"{name}.{axis}"
            bound = float(efforts[i])
            found.append(Input(label, "N" if unit == "m" else "N m", -bound, bound))
            columns.append(i)
    return found, np.eye(tree.nv)[:, columns]

"""The System of a tree: state (q, v), torques and disturbances as inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from ....codegen import Value, check_shape, unknown_name
from ....groups import SE3, LieGroup, Product, Rn
from ....systems import Input, Parameter, System
from ..._added_mass import Current, check_added_mass
from ..._coefficients import Coefficients
from ..._forces import BodyMotion, Force
from ..._mechanical import mechanical
from ..._surroundings import Surroundings, check_forces, full_name
from ..derivatives._first import inverse_dynamics_derivatives
from ..dynamics._forward_dynamics import accelerations_with, forward_dynamics
from ..dynamics._inverse_dynamics import inverse_dynamics
from ..dynamics._mass_matrix import mass_matrix
from ..dynamics._momentum import kinetic_energy, potential_energy
from ..kinematics import _frames as frames
from ..plan._drives import force_rates
from ..plan._plan import Plan
from ..plan._spatial import Motion, carried_along, wrench_cross
from ._frame_motion import FrameMotion, frame_motion
from ._parameters import named_values

if TYPE_CHECKING:
    from ._tree import Multibody

_WRENCH = (("fx", "N"), ("fy", "N"), ("fz", "N"), ("mx", "N m"), ("my", "N m"), ("mz", "N m"))


def multibody_system(
    tree: Multibody,
    inputs: Iterable[str | Input] | None = None,
    *,
    input_matrix: Any = None,
    wrenches: Iterable[str] | Mapping[str, str] = (),
    forces: Mapping[str, Iterable[Force]] | None = None,
    added_mass: Mapping[str, Any] | None = None,
    current: Current | None = None,
    parametric: Iterable[str] = (),
    name: str | None = None,
    h: Any = None,
    output: LieGroup | None = None,
) -> System[Product]:
    """System of a tree: ``q̇ = v`` (body-fixed), ``v̇`` from forward dynamics.

    Parameters
    ----------
    tree : Multibody
    inputs : iterable of str, optional
        Joints that are driven, by name; the default is all but free ones. Their effort limits
        bound the inputs. With `input_matrix`: names (or `Input` objects) of its columns.
    input_matrix : array_like, shape (nv, m), optional
        Generalized forces ``B u``.
    wrenches : iterable of str, or mapping of str to str
        Frames on which a disturbance wrench acts, with its reference ("body" by default, or
        "hybrid" for world axes): inputs ``frame.fx`` … ``frame.mz`` with role "disturbance".
    forces : mapping of str to iterable of Force, optional
        Forces on links: drag, buoyancy, thrusters, rotors, springs, … Their inputs follow the
        joints'. Weight is part of the tree.
    added_mass : mapping of str to array_like, shape (6, 6), optional
        Added mass of links in a fluid, as for `RigidBody`. Part of the system's equations and
        kinetic energy; the tree's own functions (``tree.inverse_dynamics``, ``tree.mass_matrix``,
        …) do not know of it.
    current : Current, optional
        Motion of the fluid.
    parametric : iterable of str
        Numbers of these forces, added masses and of the current that are parameters of the system,
        after those of the tree: "link.linear_drag.damping", "link.added_mass.xx", "current.x", or
        the beginning of several.
    name : str, optional
    h : callable, optional
        Output ``(t, x, u, p) → coordinates on output``.
    output : LieGroup, optional

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
        If a joint moves no inertia, or a size does not fit.

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
    tree._is_regular  # noqa: B018  raises if not
    drives, B = _drives(tree, inputs, input_matrix)
    surroundings = _surroundings(tree, forces or {}, added_mass or {}, current, wrenches)
    coefficients = Coefficients(surroundings.coefficients, parametric)
    mechanics = TreeMechanics(
        tree, tuple(drives), ca.sparsify(ca.DM(B)), surroundings, coefficients
    )
    state = state_of(tree)
    return System(
        name or tree.name,
        state,
        mechanics.field,
        inputs=mechanics.inputs,
        parameters=mechanics.parameters,
        h=h,
        output=output,
        quantities={
            "kinetic_energy": mechanics.kinetic_energy,
            "potential_energy": mechanics.potential_energy,
        },
        limits=_state_limits(tree),
        structure=mechanical(
            mechanics,
            state,
            mechanics.inputs,
            mechanics.parameters,
            loss_jacobian=mechanics.loss_jacobian if mechanics.has_losses else None,
            model=tree,
            is_plain=not surroundings.bodies,
        ),
    )


class _Loaded(NamedTuple):
    """A link or frame that something acts on."""

    seat: tuple[int, Motion]
    moving: FrameMotion
    motion: BodyMotion
    wrench: Value


@dataclass(frozen=True, eq=False)
class TreeMechanics:
    """Equations of a tree on ``x = (q, v)`` with what acts on its links.

    Inputs are those of the joints, with their matrix B, then those of the surroundings; parameters
    are those of the tree, then coefficients of the surroundings.
    """

    tree: Multibody
    drives: tuple[Input, ...]
    B: ca.DM
    surroundings: Surroundings
    coefficients: Coefficients

    @property
    def inputs(self) -> tuple[Input, ...]:
        """All inputs."""
        return self.drives + self.surroundings.inputs

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """All parameters."""
        known = named_values(self.tree)
        own = [Parameter(name, known[name][1], known[name][0]) for name in self.tree.parameters]
        return (*own, *self.coefficients.parameters)

    @property
    def has_losses(self) -> bool:
        """Whether joints have damping or friction, or symbols for them."""
        drives = self._plan(ca.SX.sym("p", len(self.parameters))).drives
        return any(drive.damping.nnz() or drive.friction.nnz() for drive in drives)

    def field(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``v, v̇``."""
        if self.surroundings.added_mass:
            a = accelerations_with(self.mass_matrix(x, p), self.force(t, x, u, p))
        else:
            (q, v), plan = self._split(x), self._plan(p)
            loads = _on_bodies(plan, self._loaded(plan, q, v, ca.SX(plan.nv, 1), u, p))
            a = forward_dynamics(plan, q, v, self.B @ u[: len(self.drives)], loads)
        return ca.vertcat(self._split(x)[1], a)

    def mass_matrix(self, x: Value, p: Value) -> Value:
        """``M + Σ Jᵀ A J`` with the added masses A of links."""
        (q, _), plan, c = self._split(x), self._plan(p), self._bind(p)
        M = mass_matrix(plan, q)
        for link in self.surroundings.added_mass:
            J = frames.body_jacobian(plan, q, plan.seats[link])
            M += J.T @ c[full_name(link, "added_mass")] @ J
        return M

    def force(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """``B u − τ`` with the inverse dynamics τ(q, v, 0) under the wrenches on the links."""
        (q, v), plan = self._split(x), self._plan(p)
        still = ca.SX(plan.nv, 1)
        loads = _on_bodies(plan, self._loaded(plan, q, v, still, u, p))
        return self.B @ u[: len(self.drives)] - inverse_dynamics(plan, q, v, still, loads)

    def balance_derivatives(
        self, t: Value, x: Value, a: Value, u: Value, p: Value
    ) -> tuple[Value, Value]:
        """Derivatives of ``B u − τ(q, v, a)``.

        Those of inverse dynamics hold for wrenches that stay what they are in their bodies. How
        they change with pose, twist and acceleration comes through the Jacobians of their links.
        """
        (q, v), plan, c = self._split(x), self._plan(p), self._bind(p)
        loaded = self._loaded(plan, q, v, a, u, p)
        by_q, by_v, _ = inverse_dynamics_derivatives(plan, q, v, a, _on_bodies(plan, loaded))
        by_q, by_v = -by_q, -by_v
        own, by_own = u[len(self.drives) :], ca.SX(plan.nv, len(self.surroundings.inputs))
        for body, (_, moving, motion, _) in loaded.items():
            by_pose, by_twist, by_input = self.surroundings.derivatives(body, motion, own, c)
            A = c.get(full_name(body, "added_mass"), ca.DM(6, 6))
            V, J = moving.twist, moving.J
            by_twist = by_twist - wrench_cross(V, A) - carried_along(ca.DM.eye(6), A @ V)
            by_q += J.T @ (by_pose @ J + by_twist @ moving.twist_by_q - A @ moving.rate_by_q)
            by_v += J.T @ (by_twist @ J - A @ moving.rate_by_v)
            by_own += J.T @ by_input
        return ca.horzcat(by_q, by_v), ca.horzcat(self.B, by_own)

    def input_map(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Derivative of the force by the inputs."""
        return self.balance_derivatives(t, x, ca.SX(self.tree.nv, 1), u, p)[1]

    def loss_jacobian(self, x: Value, p: Value) -> Value:
        """Slopes of damping and friction in the joints."""
        return force_rates(self._plan(p), *self._split(x))[1]

    def kinetic_energy(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Of the tree and of the added masses."""
        (q, v), plan, c = self._split(x), self._plan(p), self._bind(p)
        energy = kinetic_energy(plan, q, v)
        for link in self.surroundings.added_mass:
            V = frames.frame_twist(plan, q, v, plan.seats[link])
            energy += ca.dot(V, c[full_name(link, "added_mass")] @ V) / 2
        return energy

    def potential_energy(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Of weight, springs, and the forces that have one."""
        q, plan = self._split(x)[0], self._plan(p, reduced=False)
        still, u, c = ca.SX(plan.nv, 1), ca.SX(len(self.inputs), 1), self._bind(p)
        energy = potential_energy(plan, q)
        for body, (_, _, motion, _) in self._loaded(plan, q, still, still, u, p).items():
            for own in self.surroundings.potential_energies(body, motion, c).values():
                energy += 0 if own is None else own
        return energy

    def _split(self, x: Value) -> tuple[Value, Value]:
        nq = self.tree.nq
        return x[:nq], x[nq:]

    def _plan(self, p: Value, *, reduced: bool = True) -> Plan:
        return self.tree._plan_for(p[: len(self.tree.parameters)], reduced=reduced)

    def _bind(self, p: Value) -> dict[str, Value]:
        return self.coefficients.bind(p[len(self.tree.parameters) :])

    def _loaded(
        self, plan: Plan, q: Value, v: Value, a: Value, u: Value, p: Value
    ) -> dict[str, _Loaded]:
        """What acts on each body, with the inertial wrench of its added mass."""
        c, own = self._bind(p), u[len(self.drives) :]
        found = {}
        for body in self.surroundings.bodies:
            seat = plan.seats[body]
            moving = frame_motion(plan, q, v, a, seat)
            inertia = plan.link_masses.get(body, (ca.DM(1, 1), ca.DM(3, 1)))
            motion = self.surroundings.motion(moving.pose, moving.twist, inertia, own, c)
            wrench = self.surroundings.wrench(body, motion, own, c)
            if body in self.surroundings.added_mass:
                A, V = c[full_name(body, "added_mass")], moving.twist
                wrench = wrench - A @ moving.rate - wrench_cross(V, A @ V)
            found[body] = _Loaded(seat, moving, motion, wrench)
        return found


def _on_bodies(plan: Plan, loaded: Mapping[str, _Loaded]) -> Value | None:
    """Wrenches on the moving bodies, 6 × bodies, or None if nothing acts on them."""
    columns: dict[int, Value] = {}
    for (k, T), _, _, wrench in loaded.values():
        if k >= 0:  # on the world nothing moves
            columns[k] = columns.get(k, ca.SX(6, 1)) + T.push_wrench(wrench)
    if not columns:
        return None
    return ca.horzcat(
        *(plan.seats[name][1].pull_wrench(columns.get(k, ca.SX(6, 1))) for name, k in plan.bodies)
    )


def _surroundings(
    tree: Multibody,
    forces: Mapping[str, Iterable[Force]],
    added_mass: Mapping[str, Any],
    current: Current | None,
    wrenches: Iterable[str] | Mapping[str, str],
) -> Surroundings:
    for link in (*forces, *added_mass):
        if link not in tree.links:
            raise KeyError(unknown_name("link", link, tree.links))
    references = wrenches if isinstance(wrenches, Mapping) else dict.fromkeys(wrenches, "body")
    for frame, reference in references.items():
        if frame not in tree.frames:
            raise KeyError(unknown_name("frame", frame, tree.frames))
        frames.check_reference(reference)
    return Surroundings(
        {link: check_forces(link, some) for link, some in forces.items()},
        {link: check_added_mass(link, A, SE3) for link, A in added_mass.items()},
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
        return frames.in_frame(Motion(motion.rotation, motion.position), u, self.reference)


def state_of(tree: Multibody) -> Product:
    """Configuration and velocity, with the names and units of the joints."""
    q = tree.configuration
    names = tuple(q.tangent_names)
    units = tuple(f"{unit}/s" for unit in q.tangent_units)
    return Product(configuration=q, velocity=Rn(tree.nv, names, units))


def _state_limits(tree: Multibody) -> dict[str, tuple[float, float]]:
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
    tree: Multibody, inputs: Iterable[str | Input] | None, input_matrix: Any
) -> tuple[list[Input], np.ndarray]:
    """Inputs that act on the joints, and their matrix, shape (nv, m)."""
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
        if name not in links:
            raise KeyError(unknown_name("joint", name, links))
        group, at = links[name].joint.group, tree._places[name][1]
        for i, axis, unit in zip(
            range(at.start, at.stop), group.tangent_names, group.tangent_units, strict=True
        ):
            label = name if group.dim == 1 else f"{name}.{axis}"
            bound = float(efforts[i])
            found.append(Input(label, "N" if unit == "m" else "N m", -bound, bound))
            columns.append(i)
    return found, np.eye(tree.nv)[:, columns]

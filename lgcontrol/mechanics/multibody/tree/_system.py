"""The System of a tree: state (q, v), torques and disturbances as inputs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from ....codegen import Value, check_shape, unknown_name
from ....groups import SE3, LieGroup, Product, Rn
from ....systems import Input, Parameter, System
from ..._added_mass import Current, check_added_mass, current_wrench
from ..._forces import BodyMotion, Force
from ..._reference import check_reference
from .._spatial import wrench_cross
from ..compiled._compiled_tree import CompiledTree, compiled
from ..dynamics._forward_dynamics import accelerations_with, forward_dynamics
from ..dynamics._inverse_dynamics import inverse_dynamics
from ..dynamics._mass_matrix import mass_matrix, refuse_singular
from ..dynamics._momentum import kinetic_energy, potential_energy
from ..kinematics import _frames as frames
from ._tree import Tree

_WRENCH = (("fx", "N"), ("fy", "N"), ("fz", "N"), ("mx", "N m"), ("my", "N m"), ("mz", "N m"))


def multibody_system(
    tree: Tree,
    inputs: Iterable[str | Input] | None = None,
    *,
    input_matrix: Any = None,
    wrenches: Iterable[str] | Mapping[str, str] = (),
    forces: Mapping[str, Iterable[Force]] | None = None,
    added_mass: Mapping[str, Any] | None = None,
    current: Current | None = None,
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
    name : str, optional
    h : callable, optional
        Output ``(t, x, u, p) → coordinates on output``.
    output : LieGroup, optional

    Returns
    -------
    System
        State ``Product(configuration, velocity)``; parameters are the tree's.

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
    refuse_singular(tree)
    drive, B = _drives(tree, inputs, input_matrix)
    effects = _Effects.create(tree, forces or {}, added_mass or {}, current)
    if not isinstance(wrenches, Mapping):
        wrenches = dict.fromkeys(wrenches, "body")
    references = dict(wrenches)
    for frame, reference in references.items():
        if frame not in tree.frames:
            raise KeyError(unknown_name("frame", frame, tree.frames))
        check_reference(reference)
    pushes = [
        Input(f"{frame}.{part}", unit, role="disturbance")
        for frame in references
        for part, unit in _WRENCH
    ]
    n_drive, n_effect = len(drive), len(effects.inputs)
    nq = tree.nq
    B = ca.sparsify(ca.DM(B))

    def f(t: Value, x: Value, u: Value, p: Value) -> Value:
        q, v = x[:nq], x[nq:]
        compiled_tree = compiled(tree, p, regrouped=True)
        loads = _Loads(compiled_tree)
        effects.add(loads, q, v, u[n_drive : n_drive + n_effect])
        for i, (frame, reference) in enumerate(references.items()):
            start = n_drive + n_effect + 6 * i
            pose = frames.frame_pose(compiled_tree, q, compiled_tree.frames[frame])
            loads.add(frame, pose.wrenches_from(u[start : start + 6], reference))
        tau = B @ u[:n_drive]
        if not effects.added_mass:
            return ca.vertcat(v, forward_dynamics(compiled_tree, q, v, tau, loads.wrenches))
        M, bias = effects.added(compiled_tree, q, v)
        bias = bias + inverse_dynamics(
            compiled_tree, q, v, ca.SX(compiled_tree.nv, 1), loads.wrenches
        )
        return ca.vertcat(v, accelerations_with(mass_matrix(compiled_tree, q) + M, tau - bias))

    def kinetic(t: Value, x: Value, u: Value, p: Value) -> Value:
        compiled_tree = compiled(tree, p, regrouped=True)
        energy = kinetic_energy(compiled_tree, x[:nq], x[nq:])
        for link, A in effects.added_mass.items():
            V = frames.frame_twist(compiled_tree, x[:nq], x[nq:], compiled_tree.frames[link])
            energy += ca.dot(V, ca.DM(A) @ V) / 2
        return energy

    def potential(t: Value, x: Value, u: Value, p: Value) -> Value:
        compiled_tree = compiled(tree, p)
        return potential_energy(compiled_tree, x[:nq]) + effects.potential_energy(
            compiled_tree, x[:nq]
        )

    return System(
        name or tree.name,
        state_of(tree),
        f,
        inputs=[*drive, *effects.inputs, *pushes],
        parameters=_parameters(tree),
        h=h,
        output=output,
        quantities={"kinetic_energy": kinetic, "potential_energy": potential},
        limits=_state_limits(tree),
    )


def state_of(tree: Tree) -> Product:
    """Configuration and velocity, with the names and units of the joints."""
    q = tree.configuration
    names = tuple(q.tangent_names)
    units = tuple(f"{unit}/s" for unit in q.tangent_units)
    return Product(configuration=q, velocity=Rn(tree.nv, names, units))


def _state_limits(tree: Tree) -> dict[str, tuple[float, float]]:
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


@dataclass(frozen=True)
class _Effects:
    """Forces, added masses and the current, checked."""

    forces: tuple[tuple[str, Force], ...]
    added_mass: Mapping[str, np.ndarray]
    current: Current | None

    @classmethod
    def create(
        cls,
        tree: Tree,
        forces: Mapping[str, Iterable[Force]],
        added_mass: Mapping[str, Any],
        current: Current | None,
    ) -> _Effects:
        names = tree.links
        for link in (*forces, *added_mass):
            if link not in names:
                raise KeyError(unknown_name("link", link, names))
        return cls(
            tuple((link, force) for link, some in forces.items() for force in some),
            {link: check_added_mass(link, A, SE3) for link, A in added_mass.items()},
            current,
        )

    @property
    def inputs(self) -> tuple[Input, ...]:
        """Inputs of the forces, then of the current."""
        own = [entry for _, force in self.forces for entry in force.inputs]
        return (*own, *(self.current.inputs if self.current is not None else ()))

    def add(self, loads: _Loads, q: Value, v: Value, u: Value) -> None:
        """Add all wrenches to the loads of the bodies."""
        flow = self._flow(u)
        start = 0
        motions: dict[str, BodyMotion] = {}
        for link in dict.fromkeys([*(link for link, _ in self.forces), *self.added_mass]):
            motions[link] = _motion(loads.compiled_tree, q, v, link, flow)
        for link, force in self.forces:
            stop = start + len(force.inputs)
            loads.add(link, force._wrench(motions[link], u[start:stop], _numbers(force)))
            start = stop
        if self.current is not None:
            for link, A in self.added_mass.items():
                loads.add(link, current_wrench(ca.sparsify(ca.DM(A)), motions[link]))

    def added(self, compiled_tree: CompiledTree, q: Value, v: Value) -> tuple[Value, Value]:
        """What added masses in fluid at rest add to M and to the bias forces."""
        M, bias = ca.SX(compiled_tree.nv, compiled_tree.nv), ca.SX(compiled_tree.nv, 1)
        for link, matrix in self.added_mass.items():
            A = ca.sparsify(ca.DM(matrix))
            place = compiled_tree.frames[link]
            J = frames.body_jacobian(compiled_tree, q, place)
            V = frames.frame_twist(compiled_tree, q, v, place)
            rate = frames.frame_jacobian_rate(compiled_tree, q, v, place, "body") @ v
            M += J.T @ A @ J
            bias += J.T @ (A @ rate + wrench_cross(V, A @ V))
        return M, bias

    def potential_energy(self, compiled_tree: CompiledTree, q: Value) -> Value:
        """Of the forces that have one."""
        energy = ca.SX(1, 1)
        for link, force in self.forces:
            motion = _motion(compiled_tree, q, ca.SX(compiled_tree.nv, 1), link, None)
            own = force._potential_energy(motion, _numbers(force))
            energy += 0 if own is None else own
        return energy

    def _flow(self, u: Value) -> Value | None:
        if self.current is None:
            return None
        velocity = ca.DM(np.asarray(self.current.velocity))
        return velocity + u[-3:] if self.current.is_input else velocity


class _Loads:
    """External wrenches on the bodies, gathered from frames."""

    def __init__(self, compiled_tree: CompiledTree) -> None:
        self.compiled_tree = compiled_tree
        self._columns: dict[int, Value] = {}

    def add(self, frame: str, wrench: Value) -> None:
        """Add a wrench in a frame's own axes and about its origin."""
        k, T = self.compiled_tree.frames[frame]
        if k >= 0:  # on the world nothing moves
            pushed = T.push_wrench(wrench)
            self._columns[k] = self._columns[k] + pushed if k in self._columns else pushed

    @property
    def wrenches(self) -> Value | None:
        """6 × bodies, or None if there are none."""
        if not self._columns:
            return None
        compiled_tree = self.compiled_tree
        return ca.horzcat(
            *(
                compiled_tree.frames[name].pose.pull_wrench(self._columns.get(k, ca.SX(6, 1)))
                for name, k in compiled_tree.bodies
            )
        )


def _motion(
    compiled_tree: CompiledTree, q: Value, v: Value, link: str, flow: Value | None
) -> BodyMotion:
    place = compiled_tree.frames[link]
    T, V = (
        frames.frame_pose(compiled_tree, q, place),
        frames.frame_twist(compiled_tree, q, v, place),
    )
    relative = V if flow is None else V - ca.vertcat(T.R.T @ flow, ca.DM(3, 1))
    mass, center = compiled_tree.link_masses[link]
    return BodyMotion(ca.SX(T.R), ca.SX(T.p), V, relative, mass, center)


def _numbers(force: Force) -> dict[str, Value]:
    return {name: ca.DM(entry.value) for name, entry in force.coefficients.items()}


def _drives(
    tree: Tree, inputs: Iterable[str | Input] | None, input_matrix: Any
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
        group, at = links[name].joint.group, tree._coordinates[name].v
        for i, axis, unit in zip(
            range(at.start, at.stop), group.tangent_names, group.tangent_units, strict=True
        ):
            label = name if group.dim == 1 else f"{name}.{axis}"
            bound = float(efforts[i])
            found.append(Input(label, "N" if unit == "m" else "N m", -bound, bound))
            columns.append(i)
    return found, np.eye(tree.nv)[:, columns]


def _parameters(tree: Tree) -> list[Parameter]:
    known = tree.named_numbers
    return [Parameter(name, known[name][1], known[name][0]) for name in tree.parameters]

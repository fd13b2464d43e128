"""Time derivatives of inverse dynamics, of wrenches through joints, and of two velocities.

Inertial wrenches are linear in the acceleration p̈ of a body's origin and in the field of
accelerations about it, ``U = ω̇^ + ω^ ω^``, with constant numbers in body axes. Their derivatives
are the same wrenches of derivatives of p̈ and U; those of ω and p̈ follow from the parent's, and
those of the wrenches from the children's, by brackets with the joint's own twist (`carried`).

With a second velocity v_r, of the same bodies at the same places, points have the velocities
``ṗ_r + ω_r × r``, which change along the motion by ``p̈_r + U_r r`` with ``U_r = ω̇_r^ + ω^ ω_r^``
in p̈'s and U's stead: what is carried along is carried by the motion.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import comb
from typing import Any, NamedTuple

import casadi as ca

from ....codegen import Value
from ...representations._forms import Reference
from .._spatial import Pose, couple, cross, twist_cross, wrench_cross
from ..compiled._added_forces import joint_force_derivatives
from ..compiled._compiled_tree import CompiledTree, Node
from ..compiled._functions import (
    Declaration,
    TreeFunction,
    check_order,
    derivative_endings,
    function_of,
    rate_names,
    takes_names,
    wrench_names,
)
from ..kinematics._frames import carried, leibniz, seen_at_rest
from ..tree._tree import Tree


@takes_names
def inverse_dynamics_time_derivatives(
    tree: Tree, order: int = 1, wrench_rates: bool = False
) -> TreeFunction:
    """(q, v, a, j, …[, wrenches]) → tau, tau_dot, tau_ddot, …, shape (..., nv) each.

    Forces that a motion needs and how they change along it, all orders in one call because
    they share their work. Flatness-based control of series-elastic arms takes order 2: motors
    of inertias B behind springs K stand at ``θ = q + K⁻¹ tau`` and give ``B θ̈ + tau``, with
    ``θ̈ = a + K⁻¹ tau_ddot``.

    Parameters
    ----------
    order : int
        At least 1. Order 1 takes (q, v, a, j), order 2 (q, v, a, j, s), and so on.
    wrench_rates : bool
        Whether external wrenches and their rates are given, as arguments wrenches, wrenches_dot, …
        after the rates of the joints. Their components are in body frames; without rates they are
        constant.

    Returns
    -------
    TreeFunction
        Results are a named tuple: tau (that of `inverse_dynamics`), tau_dot, tau_ddot, then
        tau_3, tau_4, ….

    Raises
    ------
    ValueError
        If the order is no integer of at least 1.

    Notes
    -----
    Weight, drives, losses (smooth dry friction, too) and springs are in. Dry friction over a small
    `friction_speed` gives large derivatives where a joint turns back.

    With twists in a representation: `inverse_dynamics_by_recursion`; with Jacobians:
    `inverse_dynamics_by_projection`. Both take an order and give the same numbers.

    For the UR5, orders up to 1 take 714 operations and up to 2 take 1255; tau alone takes 343.
    Automatic differentiation along the motion, with common subexpressions eliminated, takes 832
    and 1707. For the Panda 1424 and 2391 (690) instead of 1584 and 3042.

    References
    ----------
    Müller 2018, section 6.3: Newton–Euler recursion (eq. 67, 68) differentiated in time.

    Examples
    --------
    A ball of 2 kg on a level hinge, 1 m below it, at jerk 1:

    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> tree.inverse_dynamics_time_derivatives()([0.0], [3.0], [0.0], [1.0]).tau_dot.round(2)
    array([60.86])
    """
    order = check_order(order, "tree.inverse_dynamics")
    declaration = time_derivatives_declared(
        "inverse_dynamics_time_derivatives", order, wrench_rates, _forces, regrouped=True
    )
    return function_of(tree, declaration, order, *(wrench_rates,) * wrench_rates)


@takes_names
def joint_wrenches_time_derivatives(
    tree: Tree, order: int = 1, wrench_rates: bool = False
) -> TreeFunction:
    """(q, v, a, j, …[, wrenches]) → wrenches_out, wrenches_out_dot, …, (..., n_bodies, 6) each.

    Wrench [f; m] on each body through its joint, in the body's frame, and the time derivatives of
    its components. A sensor in the joint measures this wrench.

    Parameters
    ----------
    order : int
        At least 1. Order 1 takes (q, v, a, j).
    wrench_rates : bool
        See `inverse_dynamics_time_derivatives`.

    Returns
    -------
    TreeFunction
        Results are a named tuple: wrenches_out (that of `joint_wrenches`), wrenches_out_dot, ….

    References
    ----------
    Müller 2018, eq. 68a differentiated in time.

    Examples
    --------
    A ball of 2 kg on a level hinge, 1 m below it: the hinge carries more the faster it swings.

    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    >>> tree = Multibody().add_body("ball", ball, "revolute", axis="y")
    >>> rate = tree.joint_wrenches_time_derivatives()([0.0], [3.0], [0.5], [0.0])
    >>> rate.wrenches_out_dot[0, 2].round(12)  # 4 · ω ω̇
    np.float64(6.0)
    """
    order = check_order(order, "tree.joint_wrenches")
    declaration = time_derivatives_declared(
        "joint_wrenches_time_derivatives", order, wrench_rates, _joint_wrenches, "b6"
    )
    return function_of(tree, declaration, order, *(wrench_rates,) * wrench_rates)


@takes_names
def two_velocity_dynamics(tree: Tree, order: int = 0) -> TreeFunction:
    """(q, v, v_r, a_r[, wrenches]) → ``M(q) a_r + C(q, v) v_r + g(q) + losses(v)``, (..., nv).

    Forces of a second velocity v_r on the motion v, with the C of `coriolis_matrix`: ``Ṁ − 2 C``
    is skew. Passive laws (Slotine and Li; structure preserving) take it with references v_r. Laws
    for flexible joints take its time derivatives. With v_r = v, a_r = a it is `inverse_dynamics`.

    Parameters
    ----------
    order : int
        Highest time derivative, or 0. Order 1 takes (q, v, a, v_r, a_r, j_r), order 2 (q, v, a, j,
        v_r, a_r, j_r, s_r), and so on.

    Returns
    -------
    TreeFunction
        For order 0 tau; else a named tuple tau, tau_dot, ….

    Raises
    ------
    ValueError
        If the order is no integer of at least 0.

    Notes
    -----
    One recursion, without matrices. Springs of joints are in g; losses are those of the motion.
    External wrenches are constant in their bodies.

    References
    ----------
    J.-J. Slotine, W. Li: On the adaptive control of robot manipulators. Int. J. Robotics Research
    6 (1987). S. Echeandia, P. Wensing: Numerical methods to compute the Coriolis matrix and
    Christoffel symbols for rigid-body systems. J. Comput. Nonlinear Dyn. 16 (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.models import ur5_tree
    >>> tree, rng = ur5_tree(), np.random.default_rng(0)
    >>> q, v, v_r, a_r = rng.normal(size=(4, 6))
    >>> M, C = tree.mass_matrix(q), tree.coriolis_matrix(q, v)
    >>> known = M @ a_r + C @ v_r + tree.gravity_forces(q)
    >>> np.abs(tree.two_velocity_dynamics()(q, v, v_r, a_r) - known).max() < 1e-12
    np.True_
    """
    if not (order == 0 and isinstance(order, int) and not isinstance(order, bool)):
        order = check_order(order, "tree.two_velocity_dynamics()")
    motion, references = rate_names(order + 1), [f"{n}_r" for n in rate_names(order + 2)]
    declaration = Declaration(
        "two_velocity_dynamics",
        " ".join(["q", *motion, *references]),
        dict.fromkeys((f"tau{ending}" for ending in derivative_endings(order)), "v"),
        partial(_two_velocities, order=order),
        regrouped=True,
        wrenches=True,
        is_rigid=True,
    )
    return function_of(tree, declaration, order)


def time_derivatives_declared(
    name: str,
    order: int,
    wrench_rates: bool,
    build: Any,
    code: str = "v",
    *,
    about: str = "",
    regrouped: bool = False,
) -> Declaration:
    """A function of q, rates of v and loads, with its derivatives up to an order as results.

    ``build(tree, q, rates, loads)`` makes as many as it is given rates less one; `code` is the
    shape of each. With `wrench_rates` the loads' derivatives are arguments, else loads are
    constant.
    """

    def expressions(tree: CompiledTree, q: Value, *values: Value) -> tuple[Value, ...]:
        rates, wrenches = values[: order + 2], values[order + 2 :]
        return tuple(build(tree, q, rates, load_derivatives(tree, wrenches)))

    word = "tau" if code == "v" else "wrenches_out"
    return Declaration(
        name,
        " ".join(["q", *rate_names(order + 2), *wrench_names(order) * wrench_rates]),
        dict.fromkeys((f"{word}{ending}" for ending in derivative_endings(order)), code),
        expressions,
        regrouped=regrouped,
        wrenches=not wrench_rates,
        about=about,
        is_rigid=True,
    )


def load_derivatives(tree: CompiledTree, wrenches: Sequence[Value]) -> list[list[Value]]:
    """External wrench of each node and its derivatives in the node's frame; nothing without."""
    given = [tree.node_wrenches(w) for w in wrenches]
    # Nodes between those of a chain bear nothing.
    return [[x for w in given if (x := w[k]) is not None] for k in range(len(tree.nodes))]


def _two_velocities(tree: CompiledTree, q: Value, *values: Value, order: int) -> tuple[Value, ...]:
    """Forces of a second velocity, and their time derivatives."""
    rates, rest = values[: order + 1], values[order + 1 :]
    references, wrenches = rest[: order + 2], rest[order + 2 :]
    return tuple(_forces(tree, q, rates, load_derivatives(tree, wrenches), references))


def _forces(
    tree: CompiledTree,
    q: Value,
    rates: Sequence[Value],
    loads: list[list[Value]],
    references: Sequence[Value] | None = None,
) -> list[Value]:
    """Generalized forces of references along a motion (its own, if none), and their derivatives."""
    references = rates if references is None else references
    tau = joint_force_derivatives(tree, q, rates, references)
    W = _transmitted(tree, tree.poses(q), rates, references, loads)
    for node, wrenches in zip(tree.nodes, W, strict=True):
        for n, wrench in enumerate(wrenches):
            tau[n][node.v] += node.S.T @ wrench
    return tau


def _joint_wrenches(
    tree: CompiledTree, q: Value, rates: Sequence[Value], loads: list[list[Value]]
) -> list[Value]:
    """Wrenches through the joints of the bodies, 6 × bodies, and their time derivatives."""
    W = _transmitted(tree, tree.poses(q), rates, rates, loads)
    return [
        ca.horzcat(
            ca.SX(6, 0), *(tree.frames[name].pose.pull_wrench(W[k][n]) for name, k in tree.bodies)
        )
        for n in range(len(rates) - 1)
    ]


def _transmitted(
    tree: CompiledTree,
    poses: list[Pose],
    rates: Sequence[Value],
    references: Sequence[Value],
    loads: list[list[Value]],
) -> list[list[Value]]:
    """Derivatives of the wrench on every node through its joint, in the node's frame."""
    W = _inertial_wrenches(tree, poses, rates, references)
    for own, load in zip(W, loads, strict=True):
        for n, x in enumerate(load):
            own[n] = own[n] - x
    for k in reversed(range(len(W))):
        node, T = tree.nodes[k], poses[k]
        if node.parent >= 0:
            twist = [node.S @ rate[node.v] for rate in rates]
            at_rest = seen_at_rest(W[k], lambda m, x, own=twist: wrench_cross(own[m], x))
            for n, x in enumerate(at_rest):
                W[node.parent][n] = W[node.parent][n] + T.push_wrench(x)
    return W


class _Turn(NamedTuple):
    """Derivatives of a node's angular velocity: what its parent carries along, and all of it."""

    base: list[Value]
    w: list[Value]


def _inertial_wrenches(
    tree: CompiledTree, poses: list[Pose], rates: Sequence[Value], references: Sequence[Value]
) -> list[list[Value]]:
    """Derivatives of what every node's mass needs to accelerate and to be held against weight.

    `references` are `rates` itself where there is one velocity.
    """
    orders, none = range(len(references) - 1), ca.DM(3, 1)
    is_one = references is rates
    still = _Turn([], [none for _ in references])
    turns, others = {-1: still}, {-1: still}
    acc: dict[int, list[Value]] = {-1: [-tree.gravity, *(none for _ in orders[1:])]}
    U: dict[int, list[Value]] = {-1: [ca.DM(3, 3) for _ in orders]}
    W: list[list[Value]] = []
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        i, twist = node.parent, [node.S @ rate[node.v] for rate in rates]
        linear, spin = [x[:3] for x in twist], [x[3:] for x in twist]
        own = [node.S @ rate[node.v] for rate in references]
        slide = [x[:3] for x in own]

        def turned(m: int, x: Value, spin: list[Value] = spin) -> Value:
            return -cross(spin[m], x)

        def turn(of: _Turn, own: Sequence[Value], T: Pose = T, turned: Any = turned) -> _Turn:
            base = carried([T.R.T @ x for x in of.w[: len(own)]], turned)
            return _Turn(base, [x + y for x, y in zip(base, own, strict=True)])

        lever = lever_derivatives(T, linear, spin, len(orders))
        rest = [acc[i][n] + leibniz(ca.mtimes, U[i], lever, n) for n in orders]
        turns[k] = turn(turns[i], spin)
        others[k] = turns[k] if is_one else turn(others[i], [x[3:] for x in own])
        acc[k] = carried([T.R.T @ x for x in rest], turned)
        for n in orders:
            acc[k][n] = acc[k][n] + slide[n + 1]
            if is_one:
                shear = [2 * x + y for x, y in zip(turns[k].base, spin, strict=True)]
                acc[k][n] = acc[k][n] + leibniz(cross, shear, linear, n)
            else:
                both = leibniz(cross, others[k].base, linear, n) + leibniz(
                    cross, turns[k].w, slide, n
                )
                acc[k][n] = acc[k][n] + both
        if is_one:
            U[k] = [field(turns[k].w, n) for n in orders]
        else:
            U[k] = [_mixed_field(turns[k].w, others[k].w, n) for n in orders]
        W.append([_wrench(node, acc[k][n], U[k][n]) for n in orders])
    return W


def lever_derivatives(
    T: Pose, linear: Sequence[Value], spin: Sequence[Value], count: int
) -> list[Value]:
    """Derivatives of the node's origin in its parent's axes, up to an order."""
    moved = seen_at_rest(linear[: count - 1], lambda m, x: cross(spin[m], x))
    return [T.p, *(T.R @ x for x in moved)]


def field(w: Sequence[Value], n: int) -> Value:
    """n-th derivative of ``U = ω̇^ + ω^ ω^``."""

    def product(a: int, b: int) -> Value:
        return sum(w[i][a] * (comb(n, i) * w[n - i][b]) for i in range(n + 1))

    def square(a: int) -> Value:
        twice = sum(w[i][a] * (2 * comb(n, i) * w[n - i][a]) for i in range((n + 1) // 2))
        return twice + (w[n // 2][a] * (comb(n, n // 2) * w[n // 2][a]) if n % 2 == 0 else 0)

    xy, xz, yz = product(0, 1), product(0, 2), product(1, 2)
    return _matrix(w[n + 1], [square(a) for a in range(3)], (xy, xz, yz), (xy, xz, yz))


def _mixed_field(w: Sequence[Value], w_r: Sequence[Value], n: int) -> Value:
    """n-th derivative of ``U_r = ω̇_r^ + ω^ ω_r^``, with ``ω^ ω_r^ = ω_r ωᵀ − (ωᵀ ω_r) E``."""

    def product(a: int, b: int) -> Value:
        return sum(comb(n, i) * (w_r[i][a] * w[n - i][b]) for i in range(n + 1))

    upper = product(0, 1), product(0, 2), product(1, 2)
    lower = product(1, 0), product(2, 0), product(2, 1)
    return _matrix(w_r[n + 1], [product(a, a) for a in range(3)], upper, lower)


def _matrix(
    dw: Value, squares: Sequence[Value], upper: Sequence[Value], lower: Sequence[Value]
) -> Value:
    """``dw^ + P − tr(P) E`` for the products P: its diagonal, upper and lower triangle."""
    x, y, z = (dw[a] for a in range(3))
    xx, yy, zz = squares
    return ca.sparsify(
        ca.blockcat(
            [
                [-(yy + zz), upper[0] - z, upper[1] + y],
                [lower[0] + z, -(xx + zz), upper[2] - x],
                [lower[1] - y, lower[2] + x, -(xx + yy)],
            ]
        )
    )


def _wrench(node: Node, acc: Value, U: Value) -> Value:
    """Inertial wrench of a node for the acceleration of its origin and the field about it."""
    m, h, Sigma = node.inertia
    return ca.vertcat(m * acc + U @ h, couple(Sigma, U) + cross(h, acc))


def projected_time_derivatives(
    tree: CompiledTree,
    q: Value,
    rates: Sequence[Value],
    loads: Sequence[Sequence[Value]],
    *,
    reference: Reference,
) -> list[Value]:
    """Generalized forces and their time derivatives, projected from wrenches in a reference.

    ``τ = Jᵀ W`` by Leibniz' rule. Body-fixed twists of all nodes are ``V = J v`` with ``J = A X``
    (Müller 2018, eq. 9, 112): X has the motion subspaces, which do not move in their nodes, A what
    carries twists outwards. As A is the inverse of ``1 − D`` and D, what goes over one joint,
    changes by ``Ḋ = −a D`` with the brackets a of the joints' own twists, ``Ȧ = −A a (A − 1)``,
    which Leibniz' rule differentiates again and again. All else follows from products: V, the
    wrenches ``W = M V̇ − ad_Vᵀ M V``, and the forces. `loads` are external wrenches of each node
    with their derivatives, in its frame.
    """
    orders, count = range(len(rates) - 1), len(tree.nodes)
    tau = joint_force_derivatives(tree, q, rates)
    J = _jacobians(tree, tree.poses(q), rates)
    world = tree.world_poses(q)
    for k in range(count):
        own = [x[6 * k : 6 * k + 6, :] for x in J]
        V = [leibniz(ca.mtimes, own, rates, n) for n in range(len(rates))]
        W = _inertial(tree, k, world[k], V)
        for n, load in enumerate(loads[k]):
            W[n] = W[n] - load
        own, W = _in_reference(world[k], V, own[:-1], W, reference)
        for n in orders:
            tau[n] = tau[n] + leibniz(_paired, own, W, n)
    return tau


def _jacobians(tree: CompiledTree, poses: list[Pose], rates: Sequence[Value]) -> list[Value]:
    """Body-fixed Jacobian of all nodes and its derivatives, 6 nodes × nv."""
    count, place = len(tree.nodes), [slice(6 * k, 6 * k + 6) for k in range(len(tree.nodes))]
    first, X = ca.SX(6 * count, 6 * count), ca.SX(6 * count, tree.nv)
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        if node.parent >= 0:
            first[place[k], :] = T.pull(first[place[node.parent], :])
        first[place[k], place[k]] = ca.DM.eye(6)
        X[place[k], node.v] = node.S
    A, beyond = [ca.sparsify(first)], [ca.sparsify(first - ca.DM.eye(6 * count))]
    brackets = [
        ca.diagcat(*(twist_cross(node.S @ rate[node.v], ca.DM.eye(6)) for node in tree.nodes))
        for rate in rates[:-1]
    ]
    for n in range(len(rates) - 1):
        turned = [leibniz(ca.mtimes, brackets, beyond, m) for m in range(n + 1)]
        A.append(ca.sparsify(-leibniz(ca.mtimes, A, turned, n)))
        beyond.append(A[-1])
    return [ca.sparsify(x @ X) for x in A]


def _inertial(tree: CompiledTree, k: int, pose: Pose, V: Sequence[Value]) -> list[Value]:
    """Inertial wrench of a node less weight, and its derivatives, in its frame."""
    inertia, orders = tree.nodes[k].inertia, range(len(V) - 1)
    lift = [ca.vertcat(-(pose.R.T @ tree.gravity), ca.DM(3, 1))]
    for n in orders[:-1]:
        lift.append(-leibniz(twist_cross, V, lift, n))
    momenta = [inertia @ x for x in V]
    return [inertia @ (V[n + 1] + lift[n]) + leibniz(wrench_cross, V, momenta, n) for n in orders]


def _in_reference(
    pose: Pose, V: Sequence[Value], J: list[Value], W: list[Value], reference: Reference
) -> tuple[list[Value], list[Value]]:
    """Derivatives of a Jacobian and of a wrench, both body-fixed, in a reference."""
    if reference == "body":
        return J, W
    if reference == "spatial":
        J = seen_at_rest(J, lambda m, x: twist_cross(V[m], x))
        W = seen_at_rest(W, lambda m, x: wrench_cross(V[m], x))
        return [pose.push(x) for x in J], [pose.push_wrench(x) for x in W]

    def turned(parts: list[Value], rows: slice) -> list[Value]:
        found = seen_at_rest([x[rows, :] for x in parts], lambda m, x: cross(V[m][3:], x))
        return [pose.R @ x for x in found]

    def both(parts: list[Value]) -> list[Value]:
        linear = turned(parts, slice(0, 3))
        angular = [x[3:, :] for x in parts] if reference == "mixed" else turned(parts, slice(3, 6))
        return [ca.vertcat(*x) for x in zip(linear, angular, strict=True)]

    return both(J), both(W)


def _paired(J: Value, W: Value) -> Value:
    return J.T @ W

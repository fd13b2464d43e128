"""Inverse dynamics by recursion with body-fixed, spatial, hybrid and mixed twists.

Müller, "Screw and Lie group theory in multibody dynamics" (2018), section 4: eq. 67–68, 71–72,
76–77, and the mixed form, for which the paper has the equations of one body only (57–58). Here
joints are groups of any dimension: ``J q̇`` is ``J v`` with the joint's own body-fixed velocity,
and ``J̇ v = ad_V J v``, because the motion subspace is constant in the node it moves.

Two mends of the paper: external wrenches are what acts on the bodies and count negative in eq.
68a, 72b and 77b, as in eq. 78, and the recursions for the wrenches start at the last body, i = n.

Every quantity is a list of its time derivatives in the axes and about the point of the
representation. Screws, moments of mass and levers that do not move in their own body do so in
others: the spatial screw of a joint by ``J̇ = ad_V J``, first and second moments of mass about a
world point as ``ḣ = m v + ω × h`` and ``Σ̇ = B + Bᵀ`` with ``B = v hᵀ + ω^ Σ``; about a body's own
point v is none. Inertial wrenches are bilinear in these moments and in the accelerations: Leibniz'
rule gives their derivatives (section 6.3 of the paper, which points elsewhere for them).

The recursion of `inverse_dynamics` is a fifth one, with the accelerations of points in place of
rates of twists; it has the fewest operations of all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import casadi as ca

from ....codegen import Value
from ...representations._forms import Reference, check_reference
from .._spatial import Inertia, Pose, couple, cross, twist_cross, wrench_cross
from ..compiled._added_forces import joint_force_derivatives
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import TreeFunction, check_order, function_of, takes_names
from ..kinematics._frames import carried, leibniz, seen_at_rest
from ..tree._tree import Tree
from ._time_derivatives import field, lever_derivatives, time_derivatives_declared

Jet = list[Value]
"""A value and its time derivatives."""


@takes_names
def inverse_dynamics_by_recursion(
    tree: Tree, reference: Reference = "body", order: int = 0, wrench_rates: bool = False
) -> TreeFunction:
    """(q, v, a[, wrenches]) → tau as `inverse_dynamics`, with twists in a representation.

    All give the same forces, to rounding: drives, losses, springs, weight and external wrenches
    are in them (the latter in body frames, as everywhere). These are for study, for comparison,
    and as a start for algorithms that need one of the representations; `inverse_dynamics` takes
    fewer operations. For 64 bodies in general places on hinges a body takes 214 instructions with
    that recursion. With twists it takes 250 (body), 288 (mixed), 316 (hybrid) and 373 (spatial).
    Frames on the bodies keep the zeros of joint screws and inertias. "spatial" loses digits where
    a tree is far from the world's origin, compared to its size.

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}
        What the twists and wrenches in the recursion are measured at and resolved in; see
        `lgcontrol.mechanics.representations`.
    order : int
        Up to which time derivative: with 1 arguments are (q, v, a, j), results tau and tau_dot, and
        so on, as those of `inverse_dynamics_time_derivatives`.
    wrench_rates : bool
        See `inverse_dynamics_time_derivatives`.

    Raises
    ------
    ValueError
        If there is no such representation, or the order is no integer of at least 0.

    References
    ----------
    Müller 2018, section 4: eq. 67–68 (body), 71–72 (spatial), 76–77 (hybrid), 57–58 (mixed);
    section 6.3.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> pendulum = Multibody("pendulum").add_body("rod", rod, "revolute", axis="y")
    >>> pendulum.inverse_dynamics_by_recursion("hybrid")([0.0], [0.0], [3.0]).round(12)
    array([2.])
    """
    check_reference(reference)
    if order != 0 or isinstance(order, bool):
        order = check_order(order, "tree.inverse_dynamics_by_recursion()")
    declaration = time_derivatives_declared(
        "inverse_dynamics_by_recursion",
        order,
        wrench_rates,
        partial(_by_recursion, reference=reference),
        about=f"{reference} twists",
        regrouped=True,
    )
    return function_of(tree, declaration, reference, order, *(wrench_rates,) * wrench_rates)


class _Moments(NamedTuple):
    """Moments of mass: m, and derivatives of h = ∫ r dm and Σ = ∫ r rᵀ dm."""

    m: Value
    h: Jet
    Sigma: Jet

    @classmethod
    def fixed(cls, inertia: Inertia) -> _Moments:
        """In axes that move with the body."""
        return cls(inertia.m, [inertia.h], [inertia.Sigma])

    @classmethod
    def moving(cls, inertia: Inertia, w: Jet, v: Sequence[Value], count: int) -> _Moments:
        """In axes in which the body turns with ω; v is that of the point that they are about.

        No v stands for a point of the body.
        """
        own = cls(inertia.m, [inertia.h], [inertia.Sigma])
        for n in range(count - 1):
            h, B = leibniz(cross, w, own.h, n), leibniz(cross, w, own.Sigma, n)
            if v:
                h = h + own.m * v[n]
                B = B + leibniz(lambda a, b: a @ b.T, v, own.h, n)
            own.h.append(h)
            own.Sigma.append(B + B.T)
        return own

    def force(self, acc: Jet, U: Jet, n: int) -> Value:
        """n-th derivative of ``∫ p̈ dm``; acc is that of the point they are about."""
        return self.m * acc[n] + leibniz(ca.mtimes, U, self.h, n)

    def moment(self, acc: Jet, U: Jet, n: int) -> Value:
        """n-th derivative of ``∫ r × p̈ dm``."""
        return leibniz(couple, self.Sigma, U, n) + leibniz(cross, self.h, acc, n)


def _body(tree: CompiledTree, q: Value, rates: Sequence[Value], loads: list[Jet]) -> list[Jet]:
    """Forces of each node's joint with body-fixed twists (eq. 67b, 67c, 68).

    Twists are those in a world that falls: it has no velocity and accelerates against gravity.
    """
    poses, orders, none = tree.poses(q), range(len(rates) - 1), ca.DM(6, 1)
    lift = ca.vertcat(-tree.gravity, ca.DM(3, 1))
    V: dict[int, Jet] = {-1: [none, lift, *(none for _ in orders[1:])]}
    W: list[Jet] = []
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        own = [node.S @ rate[node.v] for rate in rates]
        base = carried(
            [T.pull(x) for x in V[node.parent]], lambda m, x, own=own: -twist_cross(own[m], x)
        )
        V[k] = [x + y for x, y in zip(base, own, strict=True)]
        W.append(_inertial(_Moments.fixed(node.inertia), V[k], orders))
        for n, load in enumerate(loads[k]):
            W[k][n] = W[k][n] - load
    for k, parent in _upwards(tree):
        node, T = tree.nodes[k], poses[k]
        own = [node.S @ rate[node.v] for rate in rates]
        for n, x in enumerate(seen_at_rest(W[k], lambda m, x, own=own: wrench_cross(own[m], x))):
            W[parent][n] = W[parent][n] + T.push_wrench(x)
    return [[node.S.T @ x for x in own] for node, own in zip(tree.nodes, W, strict=True)]


def _spatial(tree: CompiledTree, q: Value, rates: Sequence[Value], loads: list[Jet]) -> list[Jet]:
    """Forces of each node's joint with spatial twists (eq. 71, 72).

    Twists and wrenches of different bodies add as they are; screws and inertias are what changes
    frames.
    """
    world, orders, none = tree.world_poses(q), range(len(rates) - 1), ca.DM(6, 1)
    lift = ca.vertcat(-tree.gravity, ca.DM(3, 1))
    V: dict[int, Jet] = {-1: [none, lift, *(none for _ in orders[1:])]}
    screws: list[Jet] = []
    W: list[Jet] = []
    for k, node in enumerate(tree.nodes):
        T, before = world[k], V[node.parent]
        twists = [node.S @ rate[node.v] for rate in rates]
        own = seen_at_rest(twists, lambda m, y, by=twists: twist_cross(by[m], y))
        joint = carried([T.push(x) for x in own], lambda m, x, b=before: twist_cross(b[m], x))
        V[k] = [x + y for x, y in zip(before, joint, strict=True)]
        J: Jet = [T.push(node.S)]
        for n in orders[:-1]:
            J.append(leibniz(twist_cross, V[k], J, n))
        screws.append(J)
        moments = _Moments.moving(
            node.inertia.moved(T), [x[3:] for x in V[k]], [x[:3] for x in V[k]], len(orders)
        )
        W.append(_inertial(moments, V[k], orders))
        load = carried(
            [T.push_wrench(x) for x in _filled(loads[k], orders)],
            lambda m, x, own=V[k]: wrench_cross(own[m], x),
        )
        for n, x in enumerate(load):
            W[k][n] = W[k][n] - x
    for k, parent in _upwards(tree):
        W[parent] = [x + y for x, y in zip(W[parent], W[k], strict=True)]
    return [[leibniz(_paired, J, own, n) for n in orders] for J, own in zip(screws, W, strict=True)]


def _hybrid(tree: CompiledTree, q: Value, rates: Sequence[Value], loads: list[Jet]) -> list[Jet]:
    """Forces of each node's joint with hybrid twists (eq. 76, 77).

    With ``ṙ_i − ṙ_λ`` written as what the turning parent and the joint make of it (eq. 73), the
    linear velocities themselves are not needed.
    """
    poses, world, orders = tree.poses(q), tree.world_poses(q), range(len(rates) - 1)
    w, acc, U = _still_world(tree, orders)
    screws: list[Jet] = []
    arms: list[Jet] = []
    force: list[Jet] = []
    moment: list[Jet] = []
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        i, R = node.parent, world[k].R
        twist = [node.S @ rate[node.v] for rate in rates]
        linear, spin = [x[:3] for x in twist], [x[3:] for x in twist]
        turn = partial(_turn, w[i])
        slide = carried([R @ x for x in _turned(linear, spin)], turn)
        w[k] = [
            x + y
            for x, y in zip(w[i], carried([R @ x for x in _turned(spin, spin)], turn), strict=True)
        ]
        lever = lever_derivatives(T, linear, spin, len(orders))
        arms.append(carried([world[i].R @ x for x in _filled(lever, orders)], turn))
        acc[k] = [
            acc[i][n]
            + leibniz(ca.mtimes, U[i], arms[k], n)
            + leibniz(cross, w[i], slide, n)
            + slide[n + 1]
            for n in orders
        ]
        U[k] = [field(w[k], n) for n in orders]
        X: Jet = [ca.vertcat(R @ node.S[:3, :], R @ node.S[3:, :])]
        for n in orders[:-1]:
            X.append(leibniz(_both, w[k], X, n))
        screws.append(X)
        moments = _Moments.moving(node.inertia.moved(Pose(R, ca.DM(3, 1))), w[k], (), len(orders))
        force.append([moments.force(acc[k], U[k], n) for n in orders])
        moment.append([moments.moment(acc[k], U[k], n) for n in orders])
        load = [ca.vertcat(R @ x[:3], R @ x[3:]) for x in _filled(loads[k], orders)]
        for n, x in enumerate(carried(load, lambda m, x, own=w[k]: _both(own[m], x))):
            force[k][n] = force[k][n] - x[:3]
            moment[k][n] = moment[k][n] - x[3:]
    for k, parent in _upwards(tree):
        for n in orders:
            force[parent][n] = force[parent][n] + force[k][n]
            moment[parent][n] = (
                moment[parent][n] + moment[k][n] + leibniz(cross, arms[k], force[k], n)
            )
    wrenches = [
        [ca.vertcat(*parts) for parts in zip(*pair, strict=True)]
        for pair in zip(force, moment, strict=True)
    ]
    return [
        [leibniz(_paired, X, own, n) for n in orders]
        for X, own in zip(screws, wrenches, strict=True)
    ]


def _mixed(tree: CompiledTree, q: Value, rates: Sequence[Value], loads: list[Jet]) -> list[Jet]:
    """Forces of each node's joint with mixed twists (eq. 57, 58 for each body).

    Accelerations and forces are in world axes; angular velocities, moments and levers in the
    bodies': what goes from one to the other gains or loses the body's turning.
    """
    poses, world, orders = tree.poses(q), tree.world_poses(q), range(len(rates) - 1)
    w, acc, U = _still_world(tree, orders)
    force: list[Jet] = []
    moment: list[Jet] = []
    levers: list[Jet] = []
    for k, (node, T) in enumerate(zip(tree.nodes, poses, strict=True)):
        i, R = node.parent, world[k].R
        twist = [node.S @ rate[node.v] for rate in rates]
        linear, spin = [x[:3] for x in twist], [x[3:] for x in twist]
        base = carried([T.R.T @ x for x in w[i]], lambda m, x, own=spin: -cross(own[m], x))
        w[k] = [x + y for x, y in zip(base, spin, strict=True)]
        levers.append(lever_derivatives(T, linear, spin, len(orders)))
        swung = [leibniz(ca.mtimes, U[i], levers[k], n) for n in orders]
        shear = [2 * x + y for x, y in zip(base, spin, strict=True)]
        slid = [leibniz(cross, shear, linear, n) + linear[n + 1] for n in orders]
        swung, slid = _turned(swung, w[i]), _turned(slid, w[k])
        acc[k] = [acc[i][n] + world[i].R @ swung[n] + R @ slid[n] for n in orders]
        U[k] = [field(w[k], n) for n in orders]
        moments = _Moments.fixed(node.inertia)
        still = [ca.DM(3, 1)] * len(orders)
        about = _turned([moments.force(still, U[k], n) for n in orders], w[k])
        force.append([moments.m * acc[k][n] + R @ about[n] for n in orders])
        felt = carried([R.T @ x for x in acc[k]], lambda m, x, own=w[k]: -cross(own[m], x))
        moment.append([moments.moment(felt, U[k], n) for n in orders])
        load = _filled(loads[k], orders)
        for n, x in enumerate(_turned([x[:3] for x in load], w[k])):
            force[k][n] = force[k][n] - R @ x
            moment[k][n] = moment[k][n] - load[n][3:]
    for k, parent in _upwards(tree):
        T, node = poses[k], tree.nodes[k]
        spin = [node.S[3:, :] @ rate[node.v] for rate in rates]
        pulled = carried(
            [world[parent].R.T @ x for x in force[k]],
            lambda m, x, own=w[parent]: -cross(own[m], x),
        )
        turned = _turned(moment[k], spin)
        for n in orders:
            force[parent][n] = force[parent][n] + force[k][n]
            swing = T.R @ turned[n] + leibniz(cross, levers[k], pulled, n)
            moment[parent][n] = moment[parent][n] + swing
    found = []
    for k, node in enumerate(tree.nodes):
        own = [world[k].R.T @ x for x in force[k]]
        pushed = carried(own, lambda m, x, by=w[k]: -cross(by[m], x))
        found.append([node.S[:3, :].T @ pushed[n] + node.S[3:, :].T @ moment[k][n] for n in orders])
    return found


def _inertial(moments: _Moments, V: Jet, orders: range) -> Jet:
    """Inertial wrenches of a body with this twist, in its frame or in the world's."""
    v, w = [x[:3] for x in V], [x[3:] for x in V]
    acc = [v[n + 1] + leibniz(cross, w, v, n) for n in orders]
    U = [field(w, n) for n in orders]
    return [ca.vertcat(moments.force(acc, U, n), moments.moment(acc, U, n)) for n in orders]


def _still_world(tree: CompiledTree, orders: range) -> tuple[dict[int, Jet], ...]:
    """Angular velocities, accelerations and fields of the world, which accelerates upwards."""
    none = ca.DM(3, 1)
    return (
        {-1: [none] * (len(orders) + 1)},
        {-1: [-tree.gravity, *(none for _ in orders[1:])]},
        {-1: [ca.DM(3, 3) for _ in orders]},
    )


def _turned(x: Jet, w: Jet) -> Jet:
    """Derivatives of a vector, seen at rest, for those of its components in axes that turn."""
    return seen_at_rest(x, partial(_turn, w))


def _turn(w: Jet, m: int, x: Value) -> Value:
    return cross(w[m], x)


def _both(w: Value, X: Value) -> Value:
    """``ω ×`` both halves of twists or wrenches (columns)."""
    return ca.vertcat(cross(w, X[:3, :]), cross(w, X[3:, :]))


def _paired(J: Value, W: Value) -> Value:
    return J.T @ W


def _filled(x: Sequence[Value], orders: range) -> Jet:
    """Derivatives as many as orders; those that are not given are zero."""
    if not x:
        return [ca.DM(6, 1)] * len(orders)
    return [*x, *(ca.DM(x[0].shape[0], 1) for _ in range(len(orders) - len(x)))]


def _upwards(tree: CompiledTree) -> list[tuple[int, int]]:
    """Nodes with their parents from the last to the first, without those on the world."""
    parents = [(k, node.parent) for k, node in enumerate(tree.nodes) if node.parent >= 0]
    return parents[::-1]


_RECURSIONS: dict[
    Reference, Callable[[CompiledTree, Value, Sequence[Value], list[Jet]], list[Jet]]
] = {"body": _body, "spatial": _spatial, "hybrid": _hybrid, "mixed": _mixed}


def _by_recursion(
    tree: CompiledTree,
    q: Value,
    rates: Sequence[Value],
    loads: list[Jet],
    *,
    reference: Reference,
) -> Jet:
    """Generalized forces of a motion, with drives, losses and springs, and their derivatives."""
    tau = joint_force_derivatives(tree, q, rates)
    forces = _RECURSIONS[reference](tree, q, rates, loads)
    for node, own in zip(tree.nodes, forces, strict=True):
        for n, force in enumerate(own):
            tau[n][node.v] += force
    return tau

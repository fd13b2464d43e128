"""Equations of motion in closed form: stacked bodies, Euler–Jourdain, Lagrange, momenta.

The recursions are faster; here are the objects that analysis, observers and papers speak of. All
agree with the recursions to rounding. Rows are the moving bodies in the order of
`Multibody.bodies`, six each, in the bodies' link frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import casadi as ca

from ....codegen import Value
from ...representations._forms import Reference, check_reference
from .._spatial import Inertia, Pose, cross, hat, twist_cross
from ..compiled._added_forces import armature, joint_forces
from ..compiled._compiled_tree import CompiledTree
from ..compiled._functions import (
    Declaration,
    TreeFunction,
    check_order,
    declared,
    function_of,
    takes_names,
)
from ..compiled._sparse import factor, solve
from ..dynamics._dynamics import (
    check_articulated,
    forward_dynamics,
    refuse_singular,
    velocities_of_momenta,
)
from ..dynamics._time_derivatives import projected_time_derivatives, time_derivatives_declared
from ..kinematics._recursions import accelerations, twists
from ..tree._tree import Tree


class _SystemMatrices(NamedTuple):
    """Factors of the system Jacobian ``J = A X`` (Müller 2018, eq. 9, 10, 83, 112)."""

    A: Value
    A_rate: Value
    X: Value
    X_rate: Value
    ad_joints: Value
    ad_bodies: Value
    M: Value


class _BodyState(NamedTuple):
    """One moving body: inertia in its link frame, pose, body twist, body Jacobian and its rate."""

    inertia: Inertia
    pose: Pose
    twist: Value
    J: Value
    J_rate: Value

    def jacobians(self, reference: str) -> tuple[Value, Value]:
        """Jacobian and rate in a reference."""
        if reference == "body":
            return self.J, self.J_rate
        if reference == "spatial":
            rate = self.J_rate + twist_cross(self.twist, self.J)
            return self.pose.push(self.J), self.pose.push(rate)
        R, J, turn = self.pose.R, self.J, hat(self.twist[3:])
        linear, linear_rate = R @ J[:3, :], R @ (self.J_rate[:3, :] + turn @ J[:3, :])
        if reference == "mixed":
            return ca.vertcat(linear, J[3:, :]), ca.vertcat(linear_rate, self.J_rate[3:, :])
        angular, angular_rate = R @ J[3:, :], R @ (self.J_rate[3:, :] + turn @ J[3:, :])
        return ca.vertcat(linear, angular), ca.vertcat(linear_rate, angular_rate)


class _Carried(NamedTuple):
    """How a body moves on the one that carries it (−1: the world)."""

    parent: int
    pose: Pose
    X: Value
    X_rate: Value


@takes_names
def system_jacobian(tree: Tree, reference: Reference = "body") -> TreeFunction:
    """``q`` → J with the twists of all bodies ``V = J v``, shape (..., 6 n_bodies, nv).

    Six rows [v; ω] for each of `bodies`, in that order: `jacobian` of each, stacked.

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}

    References
    ----------
    Müller 2018, eq. 113.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> arm = Multibody().add_body("a", rod, "revolute", axis="y")
    >>> arm = arm.add_body("b", rod, "revolute", "a", [0, 0, -1], axis="y")
    >>> arm.system_jacobian()([0.0, 0.0])[6:].tolist()[0]
    [-1.0, 0.0]
    """
    return _function(
        tree, "system_jacobian", "q", {"J": "wv"}, _system_jacobian, reference, is_rigid=False
    )


@takes_names
def system_jacobian_rate(tree: Tree, reference: Reference = "body") -> TreeFunction:
    """(q, v) → time derivative of `system_jacobian`, shape (..., 6 n_bodies, nv).

    References
    ----------
    Müller 2018, eq. 9 (body), 17 (spatial), 27 and 28 (hybrid; misprints mended).
    """
    return _function(
        tree,
        "system_jacobian_rate",
        "q v",
        {"J_rate": "wv"},
        _system_jacobian_rate,
        reference,
        is_rigid=False,
    )


class _JointMotion(NamedTuple):
    """Velocities and accelerations of the joints."""

    v: Value
    a: Value


@takes_names
def system_matrices(tree: Tree, reference: Reference = "body") -> TreeFunction:
    """(q, v) → A, A_rate, X, X_rate, ad_joints, ad_bodies, M: the factors of ``J = A X``.

    With n bodies and the joint twists ``x_i = X_i v`` of the bodies, in the reference:

    - A, (..., 6 n, 6 n): maps the twist of body j to that of its point at the frame of body i, if
      j carries i or is i; else zero. Block lower triangular, and free of velocities. "body": ``Ad``
      of the motion from i to j; "spatial": unit matrices; "hybrid": shifts of the point.
    - X, (..., 6 n, nv): what each joint adds to its own body's twist. "body": constant, except for
      joints that are chains (universal, spherical_zyx, composites).
    - A_rate, X_rate: their time derivatives, ``J̇ = A_rate X + A X_rate``.
    - ad_joints, ad_bodies, M, (..., 6 n, 6 n): block diagonal. Blocks are ``ad`` of the joint
      twists (the paper's a), ``ad`` of the body twists (its b), and the bodies' inertias.

    For "body" ``A_rate X = −A a (J − X)``. For joints of one degree of freedom ``a X`` and
    X_rate vanish and J̇ is the paper's ``−A a J``. For joints that are one group with several
    that holds on the product with v only (``a X v = 0``), for chains not at all. For "spatial"
    A_rate is zero.

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}

    References
    ----------
    Müller 2018, eq. 9, 10, 17, 27, 82, 83, 112, 113.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.sphere(2.0, 0.1)
    >>> arm = Multibody().add_body("a", ball, "revolute")
    >>> arm = arm.add_body("b", ball, "prismatic", "a", axis="x")
    >>> q, v = [0.3, 0.5], [1.0, 2.0]
    >>> for reference in ("body", "spatial", "hybrid", "mixed"):
    ...     s = arm.system_matrices(reference)(q, v)
    ...     J = s.A @ s.X
    ...     assert np.allclose(J.T @ s.M @ J, arm.mass_matrix(q))
    """
    return _function(
        tree,
        "system_matrices",
        "q v",
        {
            "A": "ww",
            "A_rate": "ww",
            "X": "wv",
            "X_rate": "wv",
            "ad_joints": "ww",
            "ad_bodies": "ww",
            "M": "ww",
        },
        _system_matrices,
        reference,
    )


@declared(
    "q twists twist_rates",
    {"v": "v", "a": "v"},
)
def joint_motion(tree: CompiledTree, q: Value, twists: Value, twist_rates: Value) -> _JointMotion:
    """(q, twists, twist_rates) → v, a of the joints, from body twists and their rates.

    The inverse kinematics of the whole tree: ``v = (Xᵀ X)⁻¹ Xᵀ A⁻¹ V`` and
    ``a = (Xᵀ X)⁻¹ Xᵀ (A⁻¹ V̇ + a V − Ẋ v)``, both without solving for A. Twists that no motion of
    the joints has, such as measured ones, give the least squares of the joints' own twists.

    Arguments are body-fixed, a row [v; ω] for each of `bodies`, shape (..., n_bodies, 6); rates are
    those of `body_accelerations` without gravity.

    References
    ----------
    Müller 2018, eq. 12, there for joints of one degree of freedom.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> ball = SpatialInertia.sphere(2.0, 0.1)
    >>> arm = Multibody().add_body("a", ball, "revolute")
    >>> arm = arm.add_body("b", ball, "prismatic", "a", axis="x")
    >>> q, v, a = [0.3, 0.5], [1.0, 2.0], [-0.4, 0.6]
    >>> found = arm.joint_motion(q, arm.body_velocities(q, v), arm.body_accelerations(q, v, a))
    >>> found.v.round(12).tolist(), found.a.round(12).tolist()
    ([1.0, 2.0], [-0.4, 0.6])
    """
    still = ca.SX(tree.nv, 1)
    own, carried = [ca.SX(0, 1)], []
    joints = _joints(tree, q, still)
    X = ca.vertcat(ca.SX(0, tree.nv), *(joint.X for joint in joints))
    for i, joint in enumerate(joints):
        before = joint.pose.pull(twists[:, joint.parent]) if joint.parent >= 0 else ca.SX(6, 1)
        carried.append(before)
        own.append(twists[:, i] - before)
    squares = factor(X.T @ X)
    v = solve(*squares, X.T @ ca.vertcat(*own))
    rates = [ca.SX(0, 1)]
    for i, joint in enumerate(_joints(tree, q, v)):
        rate = twist_rates[:, i] + twist_cross(own[i + 1], carried[i]) - joint.X_rate @ v
        if joint.parent >= 0:
            rate = rate - joint.pose.pull(twist_rates[:, joint.parent])
        rates.append(rate)
    return _JointMotion(v, solve(*squares, X.T @ ca.vertcat(*rates)))


@takes_names
def forward_dynamics_in(tree: Tree, reference: Reference = "body") -> TreeFunction:
    """(q, v, tau[, wrenches]) → a as `forward_dynamics`, by articulated bodies in a reference.

    The O(n) recursion with the twists, wrenches and articulated inertias of a representation, for
    study and comparison: `forward_dynamics` takes fewer operations.

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}

    Raises
    ------
    ValueError
        If joints mimic others, or move no inertia.

    References
    ----------
    Müller 2018, section 4: the recursions of eq. 67, 71, 76 and 57–58, solved for the
    accelerations as in Featherstone 2008, section 7.3.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> pendulum = Multibody("pendulum").add_body("rod", rod, "revolute", axis="y")
    >>> pendulum.forward_dynamics_in("spatial")([0.0], [0.0], [2.0]).round(12)
    array([3.])
    """
    return _function(
        tree,
        "forward_dynamics_in",
        "q v tau",
        {"a": "v"},
        _articulated_in,
        reference,
        wrenches=True,
        check=check_articulated,
    )


@takes_names
def euler_jourdain_equations(tree: Tree, reference: Reference = "body") -> TreeFunction:
    """(q, v[, wrenches]) → the Newton–Euler equations of all bodies, to be projected.

    ``Jᵀ (inertia (J a + J_rate v) + bias − applied) + armature a + joint_forces = tau``: what
    the projection on the admissible motions (the columns of J) removes are the wrenches of the
    joints' constraints. Also known as Kane's equations (columns of J: partial velocities),
    projection equations, and natural orthogonal complement.

    Results, with n bodies: J and J_rate (..., 6 n, nv), inertia (..., 6 n, 6 n) block diagonal,
    bias (..., 6 n) of the velocities, applied (..., 6 n): weight and external wrenches,
    armature (..., nv), joint_forces (..., nv): losses and springs.

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}
        What twists and wrenches are measured at and resolved in. (`wrenches` are given in the
        bodies' frames, as everywhere.)

    References
    ----------
    Müller 2018, eq. 78 and 79; a body's equations in the other references: eq. 39, 54, 57–58.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    >>> e = tree.euler_jourdain_equations("hybrid")([0.3], [2.0])
    >>> tau = e.J.T @ (e.inertia @ e.J_rate @ [2.0] + e.bias - e.applied) + e.joint_forces
    >>> np.allclose(tau, tree.bias_forces([0.3], [2.0]))
    True
    """
    return _function(
        tree,
        "euler_jourdain_equations",
        "q v",
        {
            "J": "wv",
            "J_rate": "wv",
            "inertia": "ww",
            "bias": "w",
            "applied": "w",
            "armature": "v",
            "joint_forces": "v",
        },
        _euler_jourdain,
        reference,
        wrenches=True,
    )


@takes_names
def inverse_dynamics_by_projection(
    tree: Tree, reference: Reference = "body", order: int = 0, wrench_rates: bool = False
) -> TreeFunction:
    """(q, v, a[, wrenches]) → tau as `inverse_dynamics`, by `euler_jourdain_equations`.

    For study and comparison: its cost grows with the square of the number of joints.

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}
    order : int
        Up to which time derivative: with 1 arguments are (q, v, a, j), results tau and tau_dot, and
        so on, as those of `inverse_dynamics_time_derivatives`: ``τ = Jᵀ W`` with derivatives of
        Jacobians and wrenches in closed form.
    wrench_rates : bool
        With an order: see `inverse_dynamics_time_derivatives`.

    References
    ----------
    Müller 2018, eq. 79; section 6.3.
    """
    if wrench_rates or order != 0 or isinstance(order, bool):
        order = check_order(order, "tree.inverse_dynamics_by_projection()")
        check_reference(reference)
        declaration = time_derivatives_declared(
            "inverse_dynamics_by_projection",
            order,
            wrench_rates,
            partial(projected_time_derivatives, reference=reference),
            about=reference,
        )
        return function_of(tree, declaration, reference, order, *(wrench_rates,) * wrench_rates)
    return _function(
        tree,
        "inverse_dynamics_by_projection",
        "q v a",
        {"tau": "v"},
        _by_projection,
        reference,
        wrenches=True,
    )


@declared("q v", {"M": "vv", "C": "vv", "Q": "v"}, wrenches=True, is_rigid=True)
def lagrange_equations(
    tree: CompiledTree, q: Value, v: Value, wrenches: Value | None = None
) -> tuple[Value, Value, Value]:
    """(q, v[, wrenches]) → M, C, Q with ``M a + C v = Q + tau``: Lagrange's equations.

    ``M = Jᵀ 𝖬 J`` with the drives' armature on its diagonal, and ``C = Jᵀ (𝖬 J̇ − bᵀ 𝖬 J)``, both
    (..., nv, nv). 𝖬 and b are the M and ad_bodies of `system_matrices`. Q, (..., nv), are all
    forces but tau: weight, springs, losses, external wrenches. For joints with several degrees of
    freedom these are Lagrange's equations in quasi-velocities (Hamel's).

    The paper's matrices (eq. 84, 85), which have ``−A a J`` for J̇, are this same C for joints
    of one degree of freedom. For joints that are one group with several (spherical, free) that
    of eq. 85 is another matrix with the same ``C v``; for chains (universal) neither is right.
    ``Ṁ − 2 C`` is not skew for it, only ``vᵀ (Ṁ − 2 C) v`` vanishes: controllers that need a
    skew one take `coriolis_matrix`, which has the same ``C v``.

    References
    ----------
    Müller 2018, eq. 81, 82, 84, 85.

    Examples
    --------
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    >>> tree.lagrange_equations([0.0], [1.0]).M.round(4).tolist()
    [[0.6667]]
    """
    M: Value = ca.diag(armature(tree))
    C: Value = ca.SX(tree.nv, tree.nv)
    Q = -joint_forces(tree, q, v, ca.SX(tree.nv, 1))
    for i, body in enumerate(body_states(tree, q, v)):
        momenta = body.inertia @ body.J
        M = M + body.J.T @ momenta
        turned = bracket_matrix(body.twist).T @ momenta
        C = C + body.J.T @ (body.inertia @ body.J_rate - turned)
        Q = Q + body.J.T @ _applied(tree, body, wrenches, i)
    return M, C, Q


@takes_names
def body_momenta(tree: Tree, reference: Reference = "spatial") -> TreeFunction:
    """(q, v) → momentum [p; L] of each body, shape (..., n_bodies, 6).

    Parameters
    ----------
    reference : {"body", "spatial", "hybrid", "mixed"}
        "spatial": world axes, about the world's origin, so that momenta of bodies add.

    References
    ----------
    Müller 2018, eq. 36.
    """
    return _function(tree, "body_momenta", "q v", {"momenta": "b6"}, _body_momenta, reference)


def _refuse_massless_bodies(tree: Tree) -> None:
    """Refuse joints that move no inertia but that of their drives."""
    refuse_singular(tree)
    bare = {
        link.joint_name: replace(link.properties, armature=0.0)
        for link in tree._links
        if not link.joint.is_fixed
    }
    refuse_singular(tree.with_properties(**bare))


@declared(
    "q momenta tau",
    {"v": "v", "momentum_rates": "b6"},
    wrenches=True,
    check=_refuse_massless_bodies,
    is_rigid=True,
)
def momentum_dynamics(
    tree: CompiledTree, q: Value, momenta: Value, tau: Value, wrenches: Value | None = None
) -> tuple[Value, Value]:
    """(q, momenta, tau[, wrenches]) → v, momentum_rates: motion in phase space.

    The state is (q, Π) with the spatial momenta Π of all bodies, shape (..., n_bodies, 6), see
    `body_momenta`; ``q̇ = v`` (body-fixed) and ``Π̇ = momentum_rates``. Rates are plain vectors:
    a Runge–Kutta method keeps their sum where nothing acts from outside, to rounding.

    v comes from ``(Jᵀ 𝖬 J) v = Jᵀ Π`` by articulated bodies, in O(n). An integrator may drift to
    momenta that no velocity has. They are projected to the nearest ones that a velocity has. The
    projection does not change the sum over a free-floating tree. Project after each step, by
    `body_momenta` of v. Armatures are no momenta of bodies: they count in the rates only, and
    bodies alone must have a regular mass matrix.

    References
    ----------
    Müller 2018, eq. 80.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody().add_body("rod", rod, "revolute", axis="y")
    >>> momenta = tree.body_momenta()([0.3], [2.0])
    >>> v, rates = tree.momentum_dynamics([0.3], momenta, [0.0])
    >>> v.round(12).tolist()
    [2.0]
    """
    world, poses = tree.world_poses(q), tree.poses(q)
    own: list[Value] = [ca.SX(6, 1)] * len(tree.nodes)
    for column, (_, k) in enumerate(tree.bodies):
        own[k] = world[k].pull_wrench(momenta[:, column])
    v = velocities_of_momenta(tree, q, own)
    a = forward_dynamics(tree, q, v, tau, wrenches)
    V = twists(tree, poses, v)
    A = accelerations(tree, poses, V, v, a, gravity=False)
    rates = [world[k].push_wrench(tree.nodes[k].inertia.force(V[k], A[k])) for _, k in tree.bodies]
    return v, ca.horzcat(ca.SX(6, 0), *rates)


def _function(
    tree: Tree,
    name: str,
    arguments: str,
    results: Mapping[str, str],
    build: Callable[..., Any],
    reference: Reference,
    *,
    wrenches: bool = False,
    is_rigid: bool = True,
    check: Callable[[Tree], None] | None = None,
) -> TreeFunction:
    """Function of all bodies in a reference."""
    check_reference(reference)
    declaration = Declaration(
        name,
        arguments,
        results,
        partial(build, reference=reference),
        wrenches=wrenches,
        about=reference,
        is_rigid=is_rigid,
        check=check,
    )
    return function_of(tree, declaration, reference)


def _system_matrices(tree: CompiledTree, q: Value, v: Value, *, reference: str) -> _SystemMatrices:
    joints, states = _joints(tree, q, v), body_states(tree, q, v)
    none, empty = ca.SX(0, tree.nv), ca.SX(0, 0)
    X, X_rate, twists, inertias = [none], [none], [], []
    for joint, body in zip(joints, states, strict=True):
        own, rate = body._replace(J=joint.X, J_rate=joint.X_rate).jacobians(reference)
        X.append(own)
        X_rate.append(rate)
        twists.append(body.pose.twists_in(body.twist, reference))
        P = twist_from(body.pose, reference)
        inertias.append(P.T @ (body.inertia @ P))
    rows: list[list[Value]] = []
    rates: list[list[Value]] = []
    for i, joint in enumerate(joints):
        rows.append([ca.SX(6, 6)] * len(joints))
        rates.append([ca.SX(6, 6)] * len(joints))
        rows[i][i], j = ca.DM.eye(6), joint.parent
        while j >= 0:
            rows[i][j], rates[i][j] = _carrying(states[i], states[j], reference)
            j = joints[j].parent
    return _SystemMatrices(
        ca.blockcat(rows) if rows else empty,
        ca.blockcat(rates) if rates else empty,
        ca.vertcat(*X),
        ca.vertcat(*X_rate),
        ca.diagcat(empty, *(bracket_matrix(x @ v) for x in X[1:])),
        ca.diagcat(empty, *(bracket_matrix(twist) for twist in twists)),
        ca.diagcat(empty, *inertias),
    )


def _carrying(body: _BodyState, carrier: _BodyState, reference: str) -> tuple[Value, Value]:
    """Matrix of ``V_body = A V_carrier`` for bodies that are one, in a reference, and its rate."""
    if reference == "spatial":
        return ca.DM.eye(6), ca.SX(6, 6)
    relative = carrier.pose.inverse() @ body.pose
    if reference == "body":
        A = relative.pull(ca.DM.eye(6))
        return A, -twist_cross(body.twist - A @ carrier.twist, A)
    (R, p), (S, o) = body.pose, carrier.pose
    shift, speed = -hat(p - o), -hat(R @ body.twist[:3] - S @ carrier.twist[:3])
    if reference == "hybrid":
        A = ca.blockcat([[ca.DM.eye(3), shift], [ca.DM(3, 3), ca.DM.eye(3)]])
        return A, ca.blockcat([[ca.DM(3, 3), speed], [ca.DM(3, 3), ca.DM(3, 3)]])
    turn, spin = relative.R.T, hat(carrier.twist[3:])
    A = ca.blockcat([[ca.DM.eye(3), shift @ S], [ca.DM(3, 3), turn]])
    turning = turn @ spin - hat(body.twist[3:]) @ turn
    return A, ca.blockcat([[ca.DM(3, 3), speed @ S + shift @ S @ spin], [ca.DM(3, 3), turning]])


def _articulated_in(
    tree: CompiledTree,
    q: Value,
    v: Value,
    tau: Value,
    wrenches: Value | None = None,
    *,
    reference: str,
) -> Value:
    """Articulated bodies, with twists, wrenches and inertias of the nodes in a reference."""
    none = ca.DM(6, 1)
    poses, world = tree.poses(q), tree.world_poses(q)
    V = twists(tree, poses, v)
    tau = tau - joint_forces(tree, q, v, ca.SX(tree.nv, 1))
    armatures, loads = armature(tree), tree.node_wrenches(wrenches)
    no_inertia = Inertia.zero()
    states = {-1: _BodyState(no_inertia, Pose.identity(), none, ca.DM(6, 0), ca.DM(6, 0))}
    screws, transport, bias, force, inertia = [], [], [], [], []
    for k, node in enumerate(tree.nodes):
        states[k] = _BodyState(node.inertia, world[k], V[k], node.S, ca.SX(*node.S.shape))
        screw, rate = states[k].jacobians(reference)
        A, A_rate = _carrying(states[k], states[node.parent], reference)
        before = states[node.parent].pose.twists_in(states[node.parent].twist, reference)
        screws.append(screw)
        transport.append(A)
        bias.append(A_rate @ before + rate @ v[node.v])
        P = twist_from(world[k], reference)
        inertia.append(P.T @ (node.inertia @ P))
        wrench = inertial_bias(node.inertia, V[k], reference)
        if loads[k] is not None:
            wrench = wrench - loads[k]
        force.append(world[k].wrenches_in(wrench, reference))
    eliminated: dict[int, Any] = {}
    for k in reversed(range(len(tree.nodes))):
        node, S, A = tree.nodes[k], screws[k], transport[k]
        columns = inertia[k] @ S
        L, D = factor(S.T @ columns + ca.diag(armatures[node.v]))
        gain = solve(L, D, columns.T)
        own = solve(L, D, tau[node.v] - S.T @ force[k])
        eliminated[k] = gain, own
        if node.parent >= 0:
            rest = inertia[k] - columns @ gain
            left = force[k] + rest @ bias[k] + columns @ own
            force[node.parent] = force[node.parent] + A.T @ left
            inertia[node.parent] = inertia[node.parent] + A.T @ rest @ A
    acceleration: dict[int, Value] = {-1: ca.vertcat(-tree.gravity, ca.DM(3, 1))}
    a = ca.SX(tree.nv, 1)
    for k, node in enumerate(tree.nodes):
        gain, own = eliminated[k]
        carried = transport[k] @ acceleration[node.parent] + bias[k]
        a[node.v] = own - gain @ carried
        acceleration[k] = carried + screws[k] @ a[node.v]
    return a


def _system_jacobian(tree: CompiledTree, q: Value, reference: str) -> Value:
    """Jacobians of all bodies on top of each other, 6 bodies × nv."""
    still = ca.SX(tree.nv, 1)
    blocks = [state.jacobians(reference)[0] for state in body_states(tree, q, still)]
    return ca.vertcat(ca.SX(0, tree.nv), *blocks)


def _system_jacobian_rate(tree: CompiledTree, q: Value, v: Value, reference: str) -> Value:
    """Time derivative of `system_jacobian`."""
    blocks = [state.jacobians(reference)[1] for state in body_states(tree, q, v)]
    return ca.vertcat(ca.SX(0, tree.nv), *blocks)


def _euler_jourdain(
    tree: CompiledTree, q: Value, v: Value, wrenches: Value | None = None, *, reference: str
) -> tuple[Value, ...]:
    """Jacobian, its rate, inertias, bias wrenches, applied wrenches, armature, joint forces."""
    J, rate = [ca.SX(0, tree.nv)], [ca.SX(0, tree.nv)]
    inertia, bias, applied = [ca.SX(0, 0)], [ca.SX(0, 1)], [ca.SX(0, 1)]
    for i, body in enumerate(body_states(tree, q, v)):
        P = twist_from(body.pose, reference)
        inertia.append(P.T @ (body.inertia @ P))
        own = inertial_bias(body.inertia, body.twist, reference)
        bias.append(body.pose.wrenches_in(own, reference))
        applied.append(body.pose.wrenches_in(_applied(tree, body, wrenches, i), reference))
        own, own_rate = body.jacobians(reference)
        J.append(own)
        rate.append(own_rate)
    return (
        ca.vertcat(*J),
        ca.vertcat(*rate),
        ca.diagcat(*inertia),
        ca.vertcat(*bias),
        ca.vertcat(*applied),
        armature(tree),
        joint_forces(tree, q, v, ca.SX(tree.nv, 1)),
    )


def _by_projection(
    tree: CompiledTree,
    q: Value,
    v: Value,
    a: Value,
    wrenches: Value | None = None,
    *,
    reference: str,
) -> Value:
    """Newton–Euler equations of all bodies, projected on the motions the joints allow."""
    J, J_rate, inertia, bias, applied, armatures, own = _euler_jourdain(
        tree, q, v, wrenches, reference=reference
    )
    return J.T @ (inertia @ (J @ a + J_rate @ v) + bias - applied) + armatures * a + own


def _body_momenta(tree: CompiledTree, q: Value, v: Value, *, reference: str) -> Value:
    """Momentum of every moving body in a reference, 6 × bodies."""
    columns = [
        body.pose.wrenches_in(body.inertia @ body.twist, reference)
        for body in body_states(tree, q, v)
    ]
    return ca.horzcat(ca.SX(6, 0), *columns)


def _applied(tree: CompiledTree, body: _BodyState, wrenches: Value | None, i: int) -> Value:
    """Weight and external wrench of a body, in its frame."""
    W = gravity_wrench(tree, body.inertia, body.pose)
    return W if wrenches is None else W + wrenches[:, i]


def body_states(tree: CompiledTree, q: Value, v: Value) -> list[_BodyState]:
    """All moving bodies, by recursion from the root (Müller 2018, eq. 7 and 8)."""
    states: list[_BodyState] = []
    for inertia, (i, T, X, X_rate) in zip(body_inertias(tree), _joints(tree, q, v), strict=True):
        pose, own, J, rate = T, X @ v, X, X_rate
        twist = own
        if i >= 0:
            parent = states[i]
            carried = T.pull(parent.J)
            pose, twist, J = parent.pose @ T, T.pull(parent.twist) + own, carried + X
            rate = T.pull(parent.J_rate) - twist_cross(own, carried) + X_rate
        states.append(_BodyState(inertia, pose, twist, J, rate))
    return states


def _joints(tree: CompiledTree, q: Value, v: Value) -> list[_Carried]:
    """Of every moving body: how its joint carries it.

    Ẋ is zero unless the joint is a chain: its first axes then turn in the body's frame.
    """
    number = {k: i for i, (_, k) in enumerate(tree.bodies)}
    joints = []
    for name, _ in tree.bodies:
        k, T = tree.frames[name]
        X, rate, relative = ca.SX(6, tree.nv), ca.SX(6, tree.nv), ca.SX(6, 1)
        while True:
            node = tree.nodes[k]
            column = T.pull(node.S)
            X[:, node.v] += column
            if relative.nnz():
                rate[:, node.v] -= twist_cross(relative, column)
            relative = relative + column @ v[node.v]
            T = node.pose(q) @ T
            k = node.parent
            if k < 0 or k in number:
                break
        i = number.get(k, -1)
        if i >= 0:
            T = tree.frames[tree.bodies[i][0]][1].inverse() @ T
        joints.append(_Carried(i, T, ca.sparsify(X), ca.sparsify(rate)))
    return joints


def bracket_matrix(V: Value) -> Value:
    """Matrix ``ad_V``."""
    return twist_cross(V, ca.DM.eye(6))


def body_inertias(tree: CompiledTree) -> list[Inertia]:
    """Inertia of every moving body, with what is fixed to it, in its link frame."""
    return [
        tree.nodes[k].inertia.moved(tree.frames[name].pose.inverse()) for name, k in tree.bodies
    ]


def twist_from(T: Pose, reference: str) -> Value:
    """6 × 6 matrix P with body twist ``P V`` for twists V in a reference."""
    if reference == "body":
        return ca.DM.eye(6)
    if reference == "spatial":
        return T.pull(ca.DM.eye(6))
    return ca.diagcat(T.R.T, T.R.T if reference == "hybrid" else ca.DM.eye(3))


def inertial_bias(inertia: Inertia, V: Value, reference: str) -> Value:
    """``W − I P V̇`` in body axes, for the body twist V and the rate V̇ of its form in a reference.

    The matrix P of `twist_from` has the rate ``−β P``: β V is 0 for body and spatial twists,
    [ω × v; 0] for hybrid and mixed ones.
    """
    turned = ca.vertcat(cross(V[3:], V[:3]), ca.SX(3, 1))
    A = ca.SX(6, 1) if reference in ("body", "spatial") else -turned
    return inertia.force(V, A)


def gravity_wrench(tree: CompiledTree, inertia: Inertia, T: Pose) -> Value:
    """Weight of a body, in its own axes and about its origin."""
    g = T.R.T @ tree.gravity
    return ca.vertcat(inertia.m * g, hat(inertia.h) @ g)

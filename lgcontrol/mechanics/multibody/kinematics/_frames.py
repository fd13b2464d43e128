"""Kinematics of frames: placement, Jacobian, velocity, acceleration, and their time derivatives.

A vector of components that a motion carries along changes by a bracket on top of what its own
components do. Differentiating that again and again with Leibniz' rule gives every order from
brackets of known derivatives (Müller 2018, section 2; eq. 66 and its derivatives).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import comb
from typing import Literal

import casadi as ca

from ....codegen import Value
from ....codegen._internal import as_names, check_known, factor_symmetric
from ....groups import SE3
from ...representations._forms import Reference
from .._spatial import Pose, cross, twist_cross
from ..compiled._compiled_tree import CompiledTree, NodeFrame
from ..compiled._functions import TreeFunction, check_order, frame_function, rate_names, takes_names
from ..tree._tree import Tree

Acceleration = Literal["spatial", "classical"]
"""Rate of the twist, or the linear acceleration of the frame's origin on top of it."""


@takes_names
def placement(tree: Tree, frame: str) -> TreeFunction:
    """``q`` → T_world_frame as SE3 coordinates, shape (..., 7).

    Parameters
    ----------
    frame : str
        One of `frames`.

    Raises
    ------
    KeyError
        If there is no such frame; the message lists them.
    """
    return frame_function(tree, "placement", "q", {"T": "7"}, _placement, frame)


@takes_names
def position(tree: Tree, frame: str) -> TreeFunction:
    """``q`` → origin of a frame in the world [m], shape (..., 3)."""

    def build(tree: CompiledTree, q: Value, frame: NodeFrame) -> Value:
        return frame_pose(tree, q, frame).p

    return frame_function(tree, "position", "q", {"position": "3"}, build, frame)


@takes_names
def jacobian(tree: Tree, frame: str, reference: Reference = "body") -> TreeFunction:
    """``q`` → J with frame twist ``J v`` in the reference, shape (..., 6, nv).

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
        "body": axes and origin of the frame; "spatial": axes and origin of the world. "hybrid":
        origin of the frame, axes of the world. "mixed": linear part in world axes, angular part in
        the frame's.

    References
    ----------
    Müller 2018, section 2.
    """
    return frame_function(tree, "jacobian", "q", {"J": "6v"}, frame_jacobian, frame, reference)


@takes_names
def jacobian_rate(tree: Tree, frame: str, reference: Reference = "body") -> TreeFunction:
    """(q, v) → time derivative of `jacobian`, shape (..., 6, nv).

    Higher orders: `jacobian_time_derivative`; by coordinates: `jacobian_derivatives`.
    """
    return frame_function(
        tree, "jacobian_rate", "q v", {"J_rate": "6v"}, frame_jacobian_rate, frame, reference
    )


@takes_names
def velocity(tree: Tree, frame: str, reference: Reference = "body") -> TreeFunction:
    """(q, v) → twist [v; ω] of a frame, shape (..., 6).

    Its derivatives: `twist_derivative`, `jerk`, `jounce`.
    """
    return frame_function(tree, "velocity", "q v", {"twist": "6"}, _velocity, frame, reference)


@takes_names
def wrenches_at(tree: Tree, frame: str, reference: Reference = "body") -> TreeFunction:
    """(q, wrench) → wrenches on all bodies for one [f; m] on a frame, (..., n_bodies, 6).

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
        Axes and point of the wrench, dual to those of a twist: "hybrid" is a force and a
        moment in world axes, about the frame's origin.
    """
    return frame_function(
        tree, "wrenches_at", "q wrench", {"wrenches": "b6"}, _wrenches_at, frame, reference
    )


@takes_names
def acceleration(
    tree: Tree, frame: str, reference: Reference = "body", kind: Acceleration = "classical"
) -> TreeFunction:
    """(q, v, a) → acceleration of a frame, shape (..., 6).

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
    kind : {"classical", "spatial"}
        "classical": acceleration of the frame's origin and angular acceleration; an accelerometer
        measures it less gravity. "spatial": the rate of the body twist, in the axes and about the
        point of the reference.
    """
    check_known("kind of acceleration", ("classical", "spatial"), kind)
    return frame_function(
        tree,
        "acceleration",
        "q v a",
        {"acceleration": "6"},
        _acceleration,
        frame,
        reference,
        kind,
        kind=kind,
    )


@takes_names
def twist_derivative(
    tree: Tree, frame: str, reference: Reference = "body", order: int = 1
) -> TreeFunction:
    """(q, v, a, …) → time derivative of the components of `velocity`, shape (..., 6).

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
        The components are differentiated in it. In "hybrid" and "mixed" the linear part is
        therefore a derivative of the position of the frame's origin, one order higher. In "body"
        and "spatial" it is not.
    order : int
        At least 1. Order 1 takes (q, v, a), order 2 (q, v, a, j), and so on.

    Raises
    ------
    KeyError, ValueError
        If there is no such frame, reference or order.

    References
    ----------
    Müller 2018, eq. 7, 14, 18, 22, 29, 32; recursively, as eq. 66 differentiated.

    Examples
    --------
    A point on a wheel of radius 2 that turns at 3 rad/s:

    >>> from lgcontrol.mechanics import Multibody
    >>> wheel = Multibody().add_body("wheel", None, "revolute")
    >>> wheel = wheel.add_frame("rim", "wheel", [2, 0, 0])
    >>> wheel.twist_derivative("rim", "hybrid", 1)([0.0], [3.0], [0.0])[:1]
    array([-18.])
    >>> wheel.twist_derivative("rim", "hybrid", 2)([0.0], [3.0], [0.0], [0.0])[1:2]
    array([-54.])
    """
    order = check_order(order, "tree.velocity")
    return frame_function(
        tree,
        "twist_derivative",
        " ".join(["q", *rate_names(order + 1)]),
        {"rate": "6"},
        _twist_derivative,
        frame,
        reference,
        order,
    )


@takes_names
def jerk(tree: Tree, frame: str, reference: Reference = "hybrid") -> TreeFunction:
    """(q, v, a, j) → second time derivative of `velocity`, shape (..., 6).

    In the default reference both parts are in world axes. They are the jerk of the frame's origin
    [m/s³] and the second derivative of the angular velocity. In the others the second derivative
    of the twist's components.
    """
    return twist_derivative(tree, frame, reference, 2)


@takes_names
def jounce(tree: Tree, frame: str, reference: Reference = "hybrid") -> TreeFunction:
    """(q, v, a, j, s) → third time derivative of `velocity`, shape (..., 6).

    In the default reference both parts are in world axes. They are the snap of the frame's origin,
    also called jounce [m/s⁴], and the third derivative of the angular velocity.
    """
    return twist_derivative(tree, frame, reference, 3)


@takes_names
def jacobian_time_derivative(
    tree: Tree, frame: str, reference: Reference = "body", order: int = 1
) -> TreeFunction:
    """(q, v, a, …) → time derivative of `jacobian`, shape (..., 6, nv).

    Order 1 is `jacobian_rate` and takes (q, v), order 2 takes (q, v, a), and so on.

    Parameters
    ----------
    frame : str
    reference : {"body", "spatial", "hybrid", "mixed"}
    order : int
        At least 1.

    References
    ----------
    Müller 2018, eq. 9, 17, 31.
    """
    order = check_order(order, "tree.jacobian")
    return frame_function(
        tree,
        "jacobian_time_derivative",
        " ".join(["q", *rate_names(order)]),
        {"J_rate": "6v"},
        _jacobian_time_derivative,
        frame,
        reference,
        order,
    )


def frame_pose(tree: CompiledTree, q: Value, frame: NodeFrame) -> Pose:
    """T_world_frame, multiplied from the root."""
    k, T = frame
    return tree.world_poses(q, [k])[k] @ T if k >= 0 else T


def poses_seen_from(tree: CompiledTree, q: Value, frame: NodeFrame) -> dict[int, Pose]:
    """Poses of the nodes that carry a frame in world axes, relative to the frame's origin.

    Positions are walked from the frame, not taken as differences: those lose digits far from the
    world's origin.
    """
    k, T = frame
    path = tree.path(k)
    poses = {i: tree.nodes[i].pose(q) for i in path}
    R: dict[int, Value] = {-1: ca.DM.eye(3)}
    for i in reversed(path):
        R[i] = R[tree.nodes[i].parent] @ poses[i].R
    seen = {k: Pose(R[k], -(R[k] @ T.p))}
    for i in path:
        parent = tree.nodes[i].parent
        seen[parent] = Pose(R[parent], seen[i].p - R[parent] @ poses[i].p)
    return seen


def _placement(tree: CompiledTree, q: Value, frame: NodeFrame) -> Value:
    """SE3 coordinates of a frame."""
    T = frame_pose(tree, q, frame)
    return SE3.from_matrix(ca.SX(ca.blockcat([[T.R, T.p], [ca.DM(1, 3), ca.DM(1)]])))


def body_jacobian(tree: CompiledTree, q: Value, frame: NodeFrame) -> Value:
    """Body Jacobian of a frame, sparse 6 × nv, walking from the frame to the root."""
    k, T = frame
    J = ca.SX(6, tree.nv)
    while k >= 0:
        node = tree.nodes[k]
        J[:, node.v] += T.pull(node.S)
        T = node.pose(q) @ T
        k = node.parent
    return J


def frame_twist(tree: CompiledTree, q: Value, v: Value, frame: NodeFrame) -> Value:
    """Body twist of a frame."""
    return frame_twists(tree, q, [v], frame)[0]


def frame_jacobian(tree: CompiledTree, q: Value, frame: NodeFrame, reference: str) -> Value:
    """Jacobian in a reference: ``twist = J v``."""
    J = body_jacobian(tree, q, frame)
    return J if reference == "body" else frame_pose(tree, q, frame).twists_in(J, reference)


def frame_jacobian_rate(
    tree: CompiledTree, q: Value, v: Value, frame: NodeFrame, reference: str
) -> Value:
    """Time derivative of a frame's Jacobian at the velocity v."""
    return _jacobian_time_derivative(tree, q, v, frame=frame, reference=reference)


def _velocity(tree: CompiledTree, q: Value, v: Value, frame: NodeFrame, reference: str) -> Value:
    """Twist of a frame in a reference."""
    V = frame_twist(tree, q, v, frame)
    return V if reference == "body" else frame_pose(tree, q, frame).twists_in(V, reference)


def _acceleration(
    tree: CompiledTree, q: Value, v: Value, a: Value, frame: NodeFrame, reference: str, kind: str
) -> Value:
    """Acceleration of a frame.

    "spatial" is the body-frame rate of the twist carried into the reference's axes and point;
    "classical" has the acceleration of the frame's origin for its linear part.
    """
    V, A = frame_twists(tree, q, [v, a], frame)
    pose = frame_pose(tree, q, frame)
    if kind == "classical" and reference == "spatial":
        # The point of the body that is at the world's origin.
        V, A = pose.push(V), pose.push(A)
        return A + ca.vertcat(cross(V[3:], V[:3]), ca.DM(3, 1))
    if kind == "classical":
        A = A + ca.vertcat(cross(V[3:], V[:3]), ca.DM(3, 1))
    return A if reference == "body" else pose.twists_in(A, reference)


def _wrenches_at(
    tree: CompiledTree, q: Value, wrench: Value, frame: NodeFrame, reference: str
) -> Value:
    """Wrenches on the bodies (6 × bodies) for one wrench on a frame."""
    k, T = frame
    W = T.push_wrench(frame_pose(tree, q, frame).wrenches_from(wrench, reference))
    columns = [
        tree.frames[name].pose.pull_wrench(W) if node == k else ca.SX(6, 1)
        for name, node in tree.bodies
    ]
    return ca.horzcat(ca.SX(6, 0), *columns)


def frame_twists(tree: CompiledTree, q: Value, rates: Sequence[Value], frame: NodeFrame) -> list:
    """Body twist of a frame and its derivatives, as many as there are rates."""
    k, T = frame
    V: list[Value] = [ca.SX(6, 1) for _ in rates]
    for i in reversed(tree.path(k)):
        node = tree.nodes[i]
        pose = node.pose(q)
        joint = [node.S @ rate[node.v] for rate in rates]
        pulled = carried([pose.pull(x) for x in V], lambda m, x, own=joint: -twist_cross(own[m], x))
        V = [x + own for x, own in zip(pulled, joint, strict=True)]
    return [T.pull(x) for x in V]


def _twist_derivative(
    tree: CompiledTree, q: Value, *rates: Value, frame: NodeFrame, reference: str
) -> Value:
    """Derivative of a frame's twist in a reference; the highest that the rates give."""
    V = frame_twists(tree, q, rates, frame)
    if reference == "body":
        return V[-1]
    return _in_reference(frame_pose(tree, q, frame), V, reference)


def _jacobian_time_derivative(
    tree: CompiledTree, q: Value, *rates: Value, frame: NodeFrame, reference: str
) -> Value:
    """Derivative of a frame's Jacobian in a reference, of as high an order as there are rates."""
    if reference == "body":
        return _body_jacobian(tree, q, rates, frame)
    if reference == "spatial":
        world = tree.world_poses(q, [frame[0]] if frame[0] >= 0 else [])
        return _world_jacobians(tree, rates, frame[0], world)[0][-1]
    # About the point of the world where the frame's origin is now: exact however far that is.
    J, V = _world_jacobians(tree, rates, frame[0], poses_seen_from(tree, q, frame))
    order, p = len(rates), _displacements(V)
    linear = J[-1][:3, :]
    for i in range(order):
        linear = linear - comb(order, i) * cross(p[order - i], J[i][3:, :])
    if reference == "hybrid":
        return ca.vertcat(linear, J[-1][3:, :])
    return ca.vertcat(linear, _body_jacobian(tree, q, rates, frame)[3:, :])


def _body_jacobian(tree: CompiledTree, q: Value, rates: Sequence[Value], frame: NodeFrame) -> Value:
    """Highest derivative of the body Jacobian, walking from the frame to the root.

    Column j changes by its bracket with the twist of the frame relative to node j (Müller 2018,
    eq. 8, for any subgroup joint): the sum of the joints beyond j, whose derivatives are known
    when the walk comes to j.
    """
    (k, T), order = frame, len(rates)
    J = ca.SX(6, tree.nv)
    relative: list[Value] = [ca.SX(6, 1) for _ in rates]
    while k >= 0:
        node = tree.nodes[k]
        columns: list[Value] = [T.pull(node.S)]
        for m in range(order):
            columns.append(-_leibniz(m, relative, columns, node.S.shape))
        J[:, node.v] += columns[-1]
        relative = _joined(relative, columns, [rate[node.v] for rate in rates])
        T = node.pose(q) @ T
        k = node.parent
    return J


def _world_jacobians(
    tree: CompiledTree, rates: Sequence[Value], k: int, world: dict[int, Pose]
) -> tuple[list[Value], list[Value]]:
    """Derivatives of the Jacobian and of the twist of node k about a fixed point, in world axes.

    A column changes by its bracket with the twist of its node (Müller 2018, eq. 17). `world` has
    the poses of the nodes relative to the point.
    """
    order = len(rates)
    J = [ca.SX(6, tree.nv) for _ in range(order + 1)]
    V: list[Value] = [ca.SX(6, 1) for _ in rates]
    for i in reversed(tree.path(k)):
        node = tree.nodes[i]
        columns: list[Value] = [world[i].push(node.S)]
        own, twist = [rate[node.v] for rate in rates], V
        for m in range(order):
            # The bracket of a screw with itself vanishes: with one the carrying twist will do.
            if node.S.shape[1] > 1:
                twist = _joined(V, columns, own)
            columns.append(_leibniz(m, twist, columns, node.S.shape))
        V = _joined(V, columns, own)
        for total, column in zip(J, columns, strict=True):
            total[:, node.v] += column
    return J, V


def _displacements(V: list[Value]) -> list[Value]:
    """Derivatives 0 … n of a point that V carries and that is at the point V is about."""
    p: list[Value] = [ca.SX(3, 1)]
    for m, own in enumerate(V):
        turns = [comb(m, i) * cross(V[i][3:], p[m - i]) for i in range(m)]
        p.append(sum(turns, own[:3]))
    return p


def _leibniz(m: int, V: list[Value], X: list[Value], shape: tuple[int, int]) -> Value:
    """m-th derivative of ``[V, X]``."""
    terms = [comb(m, i) * twist_cross(V[m - i], X[i]) for i in range(m + 1) if V[m - i].nnz()]
    return sum(terms, ca.SX(*shape))


def _joined(V: list[Value], J: list[Value], rates: list[Value]) -> list[Value]:
    """Derivatives of ``V + J v``, those that the derivatives of J known so far give."""
    joined = list(V)
    for m in range(len(rates)):
        for i in range(min(m + 1, len(J))):
            joined[m] = joined[m] + comb(m, i) * (J[i] @ rates[m - i])
    return joined


def _in_reference(pose: Pose, V: Sequence[Value], reference: str) -> Value:
    """Highest derivative of a twist in a reference, from those of its body components."""
    if reference == "spatial":
        return pose.push(seen_at_rest(V[1:], lambda m, x: twist_cross(V[m], x))[-1])
    spin = [rate[3:] for rate in V]
    linear = pose.R @ seen_at_rest([x[:3] for x in V], lambda m, x: cross(spin[m], x))[-1]
    if reference == "mixed":
        return ca.vertcat(linear, spin[-1])
    angular = pose.R @ seen_at_rest(spin[1:], lambda m, x: cross(spin[m], x))[-1]
    return ca.vertcat(linear, angular)


# Above this a pivot of a factor stands for one that is rounding.
_PIVOT = 1e100


@takes_names
def manipulability(
    tree: Tree, frame: str, axes: str | Iterable[str] = SE3.tangent_names
) -> TreeFunction:
    """``q`` → w = √det(J Jᵀ): how easily a frame moves along axes of the world, shape (...).

    The product of the singular values of those rows of the Jacobian; zero in a singular pose. With
    fewer joints than axes that of the joints, √det(Jᵀ J).

    Parameters
    ----------
    frame : str
    axes : str or iterable of str
        Rows of ``jacobian(frame, "hybrid")``: x, y, z of the frame's origin [m], rx, ry, rz [rad].
        All six mix metres and radians; ("x", "y", "z") do not.

    Returns
    -------
    TreeFunction
        Unit m for each of x, y, z. For terms and bounds of a problem:
        ``tree.system(quantities={"manipulability": tree.manipulability("tool")})``.

    Notes
    -----
    Near a singular pose w goes to zero like a distance does: its slope jumps. Values below 3e-8 of
    their scale are zero with slope zero. A search that begins in a singular pose so stays finite,
    but finds no way out.

    References
    ----------
    T. Yoshikawa: Manipulability of robotic mechanisms. Int. J. Robotics Research 4 (1985), eq. 7.

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Multibody, SpatialInertia
    >>> rod = SpatialInertia.rod(1.0, length=1.0, axis=[1, 0, 0], center_of_mass=[0.5, 0, 0])
    >>> tree = Multibody().add_body("upper", rod, "revolute")
    >>> tree = tree.add_body("lower", rod, "revolute", "upper", [1, 0, 0])
    >>> tree = tree.add_frame("tip", "lower", [1, 0, 0])
    >>> easy = tree.manipulability("tip", ("x", "y"))
    >>> float(easy([0.3, np.pi / 6]).round(9))  # the sine of the elbow for links of 1 m
    0.5
    """
    chosen = as_names(axes)
    check_known("axis", SE3.tangent_names, *chosen)
    if not chosen or len(set(chosen)) < len(chosen):
        raise ValueError(f"axes of the manipulability must differ, at least one: got {chosen}")
    rows = [SE3.tangent_names.index(axis) for axis in chosen]

    def build(made: CompiledTree, q: Value, frame: NodeFrame) -> Value:
        J = frame_jacobian(made, q, frame, "hybrid")[rows, :]
        return _volume(J if len(rows) <= tree.nv else J.T)

    return frame_function(tree, "manipulability", "q", {"w": ""}, build, frame, None, chosen)


def _volume(J: Value) -> Value:
    """√det(J Jᵀ), with slope zero where it is zero."""
    square = ca.SX(1)
    for pivot in ca.vertsplit(factor_symmetric(J @ J.T, singular=True)[1]):
        square *= ca.if_else(pivot < _PIVOT, pivot, 0)
    return ca.if_else(square > 0, ca.sqrt(ca.if_else(square > 0, square, 1)), 0)


def leibniz(
    product: Callable[[Value, Value], Value], a: Sequence[Value], b: Sequence[Value], n: int
) -> Value:
    """n-th derivative of a bilinear product of derivatives 0, 1, …; missing ones are zero."""
    terms = [
        comb(n, i) * product(a[i], b[n - i])
        for i in range(max(0, n + 1 - len(b)), min(n + 1, len(a)))
    ]
    return sum(terms[1:], terms[0]) if terms else 0 * product(a[0], b[0])


def carried(components: Sequence[Value], bracket: Callable[[int, Value], Value]) -> list[Value]:
    """Derivatives 0 … n of ``A(t) x(t)`` for ``(A x)˙ = A ẋ + bracket(0, A x)``.

    Components are the derivatives of x, already mapped by A; ``bracket(i, y)`` is what the i-th
    derivative of A's rate does to y.
    """
    known: dict[tuple[int, int], Value] = {}

    def derivative(k: int, m: int) -> Value:
        """m-th derivative of ``A x^(k)``, with one bracket for each derivative of A's rate."""
        if (k, m) not in known:
            total = components[k + m]
            for i in range(m):
                terms = [
                    comb(m - 1 - n, i) * derivative(k + n, m - 1 - i - n) for n in range(m - i)
                ]
                total = total + bracket(i, sum(terms[1:], terms[0]))
            known[k, m] = total
        return known[k, m]

    return [derivative(0, m) for m in range(len(components))]


def seen_at_rest(
    components: Sequence[Value], bracket: Callable[[int, Value], Value]
) -> list[Value]:
    """Derivatives 0 … n of ``A(t) x(t)`` in moving axes, for ``(A x)˙ = A (ẋ + bracket(0, x))``.

    For the rate of A itself the first bracket vanishes: it may start with its derivative.
    """
    known: dict[tuple[int, int], Value] = {}

    def derivative(a: int, m: int) -> Value:
        """a-th derivative of the components of m-th derivatives at rest, sums before brackets."""
        if m == 0:
            return components[a]
        if (a, m) not in known:
            total = components[a + m]
            for i in range(a + m):
                terms = [
                    comb(a + n, i) * derivative(a + n - i, m - 1 - n)
                    for n in range(max(0, i - a), m)
                ]
                total = total + bracket(i, sum(terms[1:], terms[0]))
            known[a, m] = total
        return known[a, m]

    return [derivative(0, m) for m in range(len(components))]

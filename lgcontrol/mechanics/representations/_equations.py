"""One body's inertia, momentum and equations of motion in each representation, as functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import casadi as ca

from ...codegen import ModelFunction, Value, trace
from ...groups import SE3, SO3
from ..inertia._inertia import SpatialInertia
from ._forms import MovingPose, Reference, check_reference, convert_inertias


def inertia_matrix(
    inertia: SpatialInertia | Value, pose: Value, reference: Reference = "body"
) -> Any:
    """Inertia matrix of a body in a representation: ``momentum = M twist``.

    Parameters
    ----------
    inertia : SpatialInertia, or array_like or CasADi matrix, shape (..., 6, 6)
        Inertia about the body's origin in its axes, linear part first; added mass may be in it.
    pose : array_like, shape (..., 7)
        SE3 coordinates of the body in the world, with a unit quaternion.
    reference : {"body", "spatial", "hybrid", "mixed"}

    Returns
    -------
    ndarray or CasADi matrix, shape (..., 6, 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, eq. 35 (spatial), 41 (body), 52 (hybrid); 57 and 58 (mixed).

    Examples
    --------
    >>> ball = SpatialInertia.sphere(5.0, 1.0)
    >>> inertia_matrix(ball, SE3.from_position([2.0, 0.0, 0.0]), "spatial").diagonal().round(12)
    array([ 5.,  5.,  5.,  2., 22., 22.])
    """
    return _function("inertia_matrix", reference)(_matrix(inertia), pose)


def rigid_body_momentum(
    inertia: SpatialInertia | Value, twist: Value, pose: Value, reference: Reference = "body"
) -> Any:
    """Momentum [p; L] of a body from its twist: ``Π = M V``.

    Parameters
    ----------
    inertia, pose, reference
        See `inertia_matrix`.
    twist : array_like, shape (..., 6)
        [v; ω] in the representation.

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, eq. 36.

    Examples
    --------
    >>> ball, pose = SpatialInertia.sphere(5.0, 1.0), SE3.from_position([2.0, 0.0, 0.0])
    >>> rigid_body_momentum(ball, [0, 3.0, 0, 0, 0, 0], pose, "hybrid").tolist()
    [0.0, 15.0, 0.0, 0.0, 0.0, 0.0]
    """
    return _function("rigid_body_momentum", reference)(_matrix(inertia), twist, pose)


def rigid_body_momentum_rate(
    inertia: SpatialInertia | Value,
    twist: Value,
    twist_rate: Value,
    pose: Value,
    reference: Reference = "body",
) -> Any:
    """Time derivative of the components of `rigid_body_momentum`.

    Only in "spatial" it is the wrench on the body (eq. 37). In "body" the frame turns, and in
    "hybrid" and "mixed" the point that moments are about moves.

    Parameters
    ----------
    inertia, pose, reference
        See `inertia_matrix`.
    twist, twist_rate : array_like, shape (..., 6)
        [v; ω] and the time derivative of its components in the representation.

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, eq. 37, 42, 53 (with the moment ``ṙ × p`` that is missing there).

    Examples
    --------
    A point mass that turns about a point on a straight way: no moment acts about that point, yet
    the moment of momentum about it changes, because it moves.

    >>> mass, pose = SpatialInertia.point_mass(2.0, [0.5, 0, 0]), SE3.identity
    >>> twist, still = [3.0, 0, 0, 0, 0, 2.0], [0.0] * 6
    >>> newton_euler_wrench(mass, twist, still, pose, "hybrid").tolist()
    [-4.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    >>> rigid_body_momentum_rate(mass, twist, still, pose, "hybrid").tolist()
    [-4.0, 0.0, 0.0, 0.0, 0.0, -6.0]
    """
    function = _function("rigid_body_momentum_rate", reference)
    return function(_matrix(inertia), twist, twist_rate, pose)


def newton_euler_wrench(
    inertia: SpatialInertia | Value,
    twist: Value,
    twist_rate: Value,
    pose: Value,
    reference: Reference = "body",
) -> Any:
    """Resultant wrench [f; m] on a body from its motion: the Newton–Euler equations.

    Weight is part of the resultant. All representations give the same wrench (`convert`).
    "spatial" loses digits far from the world's origin: the error grows with the square of the
    distance, measured in sizes of the body.

    Parameters
    ----------
    inertia, twist, twist_rate, pose, reference
        See `rigid_body_momentum_rate`.

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)

    Raises
    ------
    ValueError
        If there is no such representation, or a shape is wrong.

    References
    ----------
    Müller 2018, eq. 39 (spatial), 42–44 (body), 54–56 (hybrid), 57–58 (mixed).

    Examples
    --------
    Swinging a point mass of 2 kg at 0.5 m about z with 3 rad/s takes m r ω² towards the axis:

    >>> mass = SpatialInertia.point_mass(2.0, [0.5, 0, 0])
    >>> newton_euler_wrench(mass, [0, 0, 0, 0, 0, 3.0], [0.0] * 6, SE3.identity).tolist()
    [-9.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    function = _function("newton_euler_wrench", reference)
    return function(_matrix(inertia), twist, twist_rate, pose)


def newton_euler_wrench_in_frames(
    inertia: SpatialInertia | Value,
    twist: Value,
    twist_rate: Value,
    pose: Value,
    frame_pose: Value,
    frame_twist: Value,
    axes: Value,
    axes_velocity: Value,
) -> Any:
    """Resultant wrench on a body, measured at any moving frame and resolved in any moving axes.

    Twist and wrench of the body are those "of frame j in axes k". They are taken at the origin of
    the frame, as of a point of the body, with components along the axes. Body-fixed quantities
    have frame and axes of the body, spatial ones those of the world. Hybrid ones have the frame of
    the body and the axes of the world.

    Parameters
    ----------
    inertia, pose
        See `inertia_matrix`.
    twist, twist_rate : array_like, shape (..., 6)
        [v; ω] of the body at the frame's origin, along the axes, and the time derivative of these
        components.
    frame_pose : array_like, shape (..., 7)
        SE3 coordinates of the frame in the world.
    frame_twist : array_like, shape (..., 6)
        Twist of the frame, at its own origin, along the axes.
    axes : array_like, shape (..., 4)
        SO3 coordinates (quaternion x, y, z, w) of the axes in the world.
    axes_velocity : array_like, shape (..., 3)
        Angular velocity of the axes in the world, along themselves [rad/s].

    Returns
    -------
    ndarray or CasADi column, shape (..., 6)
        [f; m] at the frame's origin, along the axes.

    Raises
    ------
    ValueError
        If a shape is wrong.

    References
    ----------
    Müller 2018, eq. 64 and 65 (with R_jk for R_kj in eq. 65, and "from F_j" below eq. 63).

    Examples
    --------
    >>> mass, still = SpatialInertia.point_mass(2.0, [0.5, 0, 0]), [0.0] * 6
    >>> spin, world = [0, 0, 0, 0, 0, 3.0], SE3.identity
    >>> newton_euler_wrench_in_frames(
    ...     mass, spin, still, world, world, still, SO3.identity, [0.0] * 3
    ... ).tolist()
    [-9.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    """
    values = (twist, twist_rate, pose, frame_pose, frame_twist, axes, axes_velocity)
    return _in_frames()(_matrix(inertia), *values)


def _matrix(inertia: Any) -> Any:
    return inertia.matrix if isinstance(inertia, SpatialInertia) else inertia


_ARGUMENTS = {
    "inertia_matrix": ("inertia", "pose"),
    "rigid_body_momentum": ("inertia", "twist", "pose"),
    "rigid_body_momentum_rate": ("inertia", "twist", "twist_rate", "pose"),
    "newton_euler_wrench": ("inertia", "twist", "twist_rate", "pose"),
}
_SHAPES = {"inertia": (6, 6), "twist": (6,), "twist_rate": (6,), "pose": (7,)}


def _function(kind: str, reference: Reference) -> ModelFunction:
    check_reference(reference)
    return _traced(kind, reference)


@cache
def _traced(kind: str, reference: Reference) -> ModelFunction:
    def build(inertia: Value, *values: Value) -> Value:
        pose = MovingPose.of(values[-1])
        M = convert_inertias(pose, inertia, "body", reference)
        if kind == "inertia_matrix":
            return M
        if kind == "rigid_body_momentum":
            return M @ values[0]
        equation = wrench if kind == "newton_euler_wrench" else momentum_rate
        return equation(pose, M, values[0], values[1], reference)

    result = (6, 6) if kind == "inertia_matrix" else (6,)
    arguments = {name: _SHAPES[name] for name in _ARGUMENTS[kind]}
    return trace(kind, build, arguments, {"result": result})


@cache
def _in_frames() -> ModelFunction:
    def build(M, V, A, pose, frame_pose, frame_twist, axes, axes_velocity):
        R_axes = SO3.matrix(axes)
        R_frame = SE3.homogeneous(frame_pose)[:3, :3]
        turn = ca.diagcat(*[R_axes.T @ R_frame] * 2)
        X = turn @ SE3.Ad(SE3.compose(SE3.inverse(frame_pose), pose))
        back = _twist_inverse(X)
        M = back.T @ M @ back
        relative = ca.vertcat(ca.DM(3, 1), axes_velocity - frame_twist[3:])
        moved = A + SE3.ad(frame_twist + relative) @ V
        return M @ moved + wrench_cross(V, M @ V)

    shapes = dict(_SHAPES)
    shapes |= {"frame_pose": (7,), "frame_twist": (6,), "axes": (4,), "axes_velocity": (3,)}
    return trace("newton_euler_wrench_in_frames", build, shapes, {"result": (6,)})


def _twist_inverse(X: Value) -> Value:
    """Inverse of a matrix ``[[R, B], [0, R]]`` that moves twists: ``[[Rᵀ, Bᵀ], [0, Rᵀ]]``."""
    R, B = X[:3, :3], X[:3, 3:]
    return ca.blockcat([[R.T, B.T], [ca.DM(3, 3), R.T]])


def wrench_cross(V: Value, W: Value) -> Value:
    """``−ad_Vᵀ W``: rate of a wrench carried along by the twist V."""
    return -(SE3.ad(V).T @ W)


def wrench(pose: MovingPose, M: Value, V: Value, A: Value, reference: Reference) -> Value:
    """Resultant wrench from twist and twist rate; all in the reference.

    Inertia matrices are general symmetric ones: with the matrix of a rigid body, eq. 54 of the
    paper has the same right-hand side in fewer terms; with added mass only the forms here hold.
    """
    return _WRENCHES[reference](pose, M, V, A)


def momentum_rate(pose: MovingPose, M: Value, V: Value, A: Value, reference: Reference) -> Value:
    """Rate of the momentum's components: the wrench less what the moving frame makes of it."""
    return wrench(pose, M, V, A, reference) - _transport(pose, V, M @ V, reference)


def _fixed(pose: MovingPose, M: Value, V: Value, A: Value) -> Value:
    """``M V̇ − ad_Vᵀ M V``: eq. 42 with body-fixed, eq. 39 with spatial quantities."""
    return M @ A + wrench_cross(V, M @ V)


def _hybrid(pose: MovingPose, M: Value, V: Value, A: Value) -> Value:
    """Eq. 64 with axes that do not turn: ``M (V̇ − [ω × ṙ; 0]) − ad_Vᵀ M V`` (eq. 54)."""
    carried = ca.vertcat(ca.cross(V[3:], V[:3]), ca.DM(3, 1))
    return M @ (A - carried) + wrench_cross(V, M @ V)


def _mixed(pose: MovingPose, M: Value, V: Value, A: Value) -> Value:
    """Eq. 57 and 58, by the parts of the momentum in their own axes."""
    R, w = pose.R, V[3:]
    spin = ca.skew(R @ w)
    P = M @ V
    # Ṁ V = Ω P − M Ω V, for the axes of the linear part turn against those of the angular part.
    rate = M @ (A - ca.vertcat(spin @ V[:3], ca.DM(3, 1))) + ca.vertcat(spin @ P[:3], ca.DM(3, 1))
    return rate + _transport(pose, V, P, "mixed")


_WRENCHES: dict[Reference, Callable[[MovingPose, Value, Value, Value], Value]] = {
    "body": _fixed,
    "spatial": _fixed,
    "hybrid": _hybrid,
    "mixed": _mixed,
}


def _transport(pose: MovingPose, V: Value, P: Value, reference: Reference) -> Value:
    """Wrench less the rate of the momentum's components.

    Nothing where frame and point rest (eq. 37); ``−ad_Vᵀ Π`` in the body (eq. 42); the moment
    ``ṙ × p`` where only the point moves, which eq. 53 leaves out.
    """
    if reference == "spatial":
        return ca.DM(6, 1)
    if reference == "body":
        return wrench_cross(V, P)
    moment = ca.cross(V[:3], P[:3])
    if reference == "mixed":
        moment = ca.cross(V[3:], P[3:]) + pose.R.T @ moment
    return ca.vertcat(ca.DM(3, 1), moment)

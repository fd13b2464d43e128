"""Newton–Euler equations of one body in each representation, on CasADi columns.

Inertia matrices are general symmetric ones: with the matrix of a rigid body, eq. 54 of the paper
has the same right-hand side in fewer terms; with added mass only the forms here hold.
"""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from ...codegen import Value
from ...groups import SE3
from .._reference import Reference
from ._forms import MovingPose


def wrench_cross(V: Value, W: Value) -> Value:
    """``−ad_Vᵀ W``: rate of a wrench carried along by the twist V."""
    return -(SE3.ad(V).T @ W)


def wrench(pose: MovingPose, M: Value, V: Value, A: Value, reference: Reference) -> Value:
    """Resultant wrench from twist and twist rate; all in the reference."""
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

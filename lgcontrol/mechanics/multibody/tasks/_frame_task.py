"""FrameTask: what is asked of a frame of a tree: its pose, position, orientation or subgroup."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import casadi as ca
import numpy as np

from ....codegen import Value, named_options
from ....codegen._internal import UnknownNameError, as_numbers, check_shape, unknown_name
from ....groups import SE3, SO3, LieGroup, Translation

if TYPE_CHECKING:
    from .._multibody import Multibody

# A frame stays in a subgroup if nothing leaves it by more than rounding, in m and rad.
CONFINED = 1e-9
# Random configurations at which this is tried; one would do but for special poses.
TRIALS = 3


class TaskKinematics(NamedTuple):
    """What a task needs to know of a frame, as CasADi expressions of q and v.

    Attributes
    ----------
    X : CasADi column, shape (nq of the task's group,)
    J : CasADi matrix, shape (dim, nv)
        Jacobian: ``Ẋ = X (J v)^``, body-fixed as on every group.
    drift : CasADi column, shape (dim,)
        ``J̇ v``: acceleration of the frame at constant v.
    """

    X: Value
    J: Value
    drift: Value


@named_options
@dataclass(frozen=True, eq=False)
class FrameTask:
    """A frame of a tree, and which part of its motion matters.

    Parameters
    ----------
    frame : str
    kind : str or LieGroup
        "pose": SE3 coordinates in the world. "position": of the frame's origin, world axes.
        "orientation": SO3 coordinates. Or a subgroup of SE(3) that the frame never leaves:
        Schoenflies for the tool of a pick-and-place arm.
    weight : float or array_like
        Weight on the squared error: one number, or one per tangent coordinate [1/m², 1/rad²].

    Raises
    ------
    ValueError
        If the kind is unknown or a weight is negative.

    Examples
    --------
    >>> FrameTask("tool", "position").group.dim
    3
    """

    frame: str
    kind: str | LieGroup = "pose"
    weight: Any = 1.0

    def __post_init__(self) -> None:
        if isinstance(self.kind, str) and self.kind not in _KINDS:
            raise UnknownNameError(unknown_name("kind of task", self.kind, _KINDS))
        if not isinstance(self.kind, str) and self.kind.matrix_size != 4:
            raise ValueError(
                f"a task on {self.kind.name}: expected a subgroup with 4 × 4 matrices, such as "
                f"Schoenflies, or one of {', '.join(_KINDS)}"
            )
        weight = as_numbers(f"weight of the task on {self.frame!r}", self.weight)
        shape = () if weight.ndim == 0 else (self.group.dim,)
        weight = check_shape(f"weight of the task on {self.frame!r}", weight, shape)
        if (weight < 0).any():
            raise ValueError(f"weight of the task on {self.frame!r} is negative: {self.weight}")
        object.__setattr__(self, "weight", np.broadcast_to(weight, (self.group.dim,)))

    @property
    def group(self) -> LieGroup:
        """Group on which targets and errors of the task live."""
        return _KINDS[self.kind].group if isinstance(self.kind, str) else self.kind

    def check(self, tree: Multibody) -> None:
        """Refuse unknown frames, and frames that leave the task's subgroup.

        Raises
        ------
        KeyError
            If the tree has no such frame.
        ValueError
            If the frame leaves the subgroup.
        """
        placement = tree.placement(self.frame)
        if isinstance(self.kind, str):
            return
        H = self.group.selection
        q = tree.configuration.random(0, (TRIALS,))
        J = tree.jacobian(self.frame)(q)
        away = J - H @ np.linalg.pinv(H) @ J
        pose = ca.SX.sym("pose", 7)
        nearest = self.group.homogeneous(_subgroup(self.group).coordinates(pose))
        missed = ca.Function("missed", [pose], [nearest - SE3.homogeneous(pose)])
        off = [np.abs(missed(one).full()).max() for one in placement(q)]
        if max(np.abs(away).max(initial=0.0), *off) > CONFINED:
            raise ValueError(
                f"frame {self.frame!r} of {tree.name} leaves {self.group.name}: choose kind "
                "'pose', 'position' or 'orientation', or a frame whose axes match the subgroup's"
            )

    def kinematics(self, tree: Multibody, q: Value, v: Value | None = None) -> TaskKinematics:
        """Coordinates, Jacobian and drift for CasADi columns q and v."""
        kind = _KINDS[self.kind] if isinstance(self.kind, str) else _subgroup(self.kind)
        X = kind.coordinates(tree.placement(self.frame)(q))
        J = kind.rows @ tree.jacobian(self.frame, kind.reference)(q)
        drift = ca.SX(self.group.dim, 1)
        if v is not None:
            drift = kind.rows @ (tree.jacobian_rate(self.frame, kind.reference)(q, v) @ v)
        return TaskKinematics(X, J, drift)


class _TaskKind(NamedTuple):
    group: LieGroup
    coordinates: Callable[[Value], Value]
    reference: Any
    rows: ca.DM


def _subgroup(group: LieGroup) -> _TaskKind:
    def coordinates(pose: Value) -> Value:
        return group.from_matrix(SE3.homogeneous(pose))

    rows = ca.sparsify(ca.DM(np.linalg.pinv(group.selection)))
    return _TaskKind(group, coordinates, "body", rows)


_EYE = ca.DM.eye(6)
_KINDS = {
    "pose": _TaskKind(SE3, lambda pose: pose, "body", _EYE),
    "position": _TaskKind(Translation("xyz"), lambda pose: pose[:3], "hybrid", _EYE[:3, :]),
    "orientation": _TaskKind(SO3, lambda pose: pose[3:], "body", _EYE[3:, :]),
}

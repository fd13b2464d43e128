"""Model functions of one frame of a tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from ....codegen import unknown_name
from ..plan._recipe import Recipe, Results
from . import _frames as frames
from . import _kinematics as kinematics
from ._frames import check_reference
from ._time_derivatives import jacobian_rate

if TYPE_CHECKING:
    from ..tree._tree import Multibody

_FRAME_FUNCTIONS = {
    "placement": ("q", "T", "7", frames.placement),
    "position": ("q", "position", "3", lambda plan, q, seat: frames.frame_pose(plan, q, seat).p),
    "jacobian": ("q", "J", "6v", frames.jacobian),
    "jacobian_rate": ("q v", "J_rate", "6v", jacobian_rate),
    "velocity": ("q v", "twist", "6", frames.velocity),
    "wrenches_at": ("q wrench", "wrenches", "b6", frames.wrenches_at),
}


def frame_recipe(
    build: Callable[..., Any], arguments: str, results: Results
) -> Callable[..., Recipe]:
    """Recipe maker ``(tree, frame[, reference]) → Recipe`` for ``build(plan, q, …, seat=…)``."""

    def make(tree: Multibody, frame: str, reference: str | None = None, **options: Any) -> Recipe:
        if frame not in tree.frames:
            raise KeyError(unknown_name("frame", frame, tree.frames))
        if reference is not None:
            check_reference(reference)
            options["reference"] = reference

        def at_seat(plan, *values):
            return build(plan, *values, seat=plan.seats[frame], **options)

        return Recipe(arguments, results, at_seat, about=frame)

    return make


def _acceleration(tree: Multibody, frame: str, reference: str, kind: str) -> Recipe:
    build = partial(frames.acceleration, kind=kind)
    return frame_recipe(build, "q v a", (("acceleration", "6"),))(tree, frame, reference)


def _joint_wrench(tree: Multibody, joint: str) -> Recipe:
    joints = [link.joint_name for link in tree._links]
    if joint not in joints:
        raise KeyError(unknown_name("joint", joint, joints))
    build = partial(kinematics.joint_wrench, joint=joint)
    results = (("wrench_out", "6"),)
    return Recipe("q v a", results, build, takes_wrenches=True, keep=(joint,), about=joint)


RECIPES: dict[str, Callable[..., Recipe]] = {
    kind: frame_recipe(build, arguments, ((result, shape),))
    for kind, (arguments, result, shape, build) in _FRAME_FUNCTIONS.items()
}
RECIPES |= {"acceleration": _acceleration, "joint_wrench": _joint_wrench}

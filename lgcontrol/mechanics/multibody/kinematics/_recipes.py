"""Model functions of higher order: derivatives of twists and Jacobians, and by the geometry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ....codegen import unknown_name
from ..dynamics._inverse_dynamics_rates import inverse_dynamics_time_derivatives
from ..parameters._geometry_derivatives import inverse_dynamics_geometry_derivatives
from ..plan._recipe import Recipe, rate_names
from ..plan._sizes import LARGEST
from . import _partial_derivatives as brackets
from . import _time_derivatives as rates
from ._frame_recipes import frame_recipe

if TYPE_CHECKING:
    from ..tree._tree import Multibody

DISPLACEMENTS = ("x", "y", "z", "rx", "ry", "rz")


def check_order(order: Any, zeroth: str) -> int:
    """The order of a derivative: an integer of at least 1."""
    if isinstance(order, bool) or not hasattr(order, "__index__") or order < 1:
        raise ValueError(
            f"the order of the derivative must be an integer of at least 1, not {order!r}; "
            f"the function itself is {zeroth}"
        )
    return order.__index__()


def displaced_joints(tree: Multibody, joints: Sequence[str]) -> tuple[str, ...]:
    """The named joints, or all that move."""
    links = {link.joint_name: link for link in tree._links}
    if isinstance(joints, str):
        raise TypeError(f"joints must be a sequence of names: ({joints!r},), not {joints!r}")
    for name in joints:
        if name not in links:
            raise KeyError(unknown_name("joint", name, links))
    if len(set(joints)) < len(joints):
        raise ValueError(f"a joint is named twice: {', '.join(joints)}")
    return tuple(joints) or tuple(name for name, link in links.items() if not link.joint.is_fixed)


def _of_order(build: Callable[..., Any], zeroth: str) -> Callable[..., Recipe]:
    """Recipe maker for a derivative of the twist (rates v, a, …) or of the Jacobian (v, …)."""
    extra = 1 if zeroth == "velocity" else 0
    result = (("rate", "6"),) if zeroth == "velocity" else (("J_rate", "6v"),)

    def make(tree: Multibody, frame: str, reference: str, order: int) -> Recipe:
        arguments = " ".join(["q", *rate_names(check_order(order, f"tree.{zeroth}") + extra)])
        return frame_recipe(build, arguments, result)(tree, frame, reference)

    return make


def _jacobian_derivatives(tree: Multibody, frame: str, reference: str, order: int) -> Recipe:
    order = check_order(order, "tree.jacobian")
    entries = 6 * tree.nv ** (order + 1)
    if entries > LARGEST:
        raise ValueError(
            f"derivatives of order {order} of a Jacobian with {tree.nv} columns have {entries} "
            "entries, too many to trace: lock joints that do not matter, or ask for a lower order"
        )
    build = partial(brackets.jacobian_derivatives, order=order)
    results = (("dJ", "6" + "v" * (order + 1)),)
    return frame_recipe(build, "q", results)(tree, frame, reference)


def _calibration_jacobian(
    tree: Multibody, frame: str, reference: str, joints: tuple[str, ...]
) -> Recipe:
    joints = displaced_joints(tree, joints)
    build = partial(brackets.calibration_jacobian, joints=joints)
    results = (("J", ("6", 6 * len(joints))),)
    return frame_recipe(build, "q", results)(tree, frame, reference).keeping(joints)


def _jacobian_geometry_derivatives(
    tree: Multibody, frame: str, reference: str, joints: tuple[str, ...]
) -> Recipe:
    joints = displaced_joints(tree, joints)
    build = partial(brackets.jacobian_geometry_derivatives, joints=joints)
    results = (("dJ", ("6", "v", 6 * len(joints))),)
    return frame_recipe(build, "q", results)(tree, frame, reference).keeping(joints)


def _inverse_dynamics_geometry_derivatives(tree: Multibody, joints: tuple[str, ...]) -> Recipe:
    joints = displaced_joints(tree, joints)
    build = partial(inverse_dynamics_geometry_derivatives, joints=joints)
    results = (("d_tau_d_placement", ("v", 6 * len(joints))),)
    instead = "name fewer joints"
    return Recipe("q v a", results, build, takes_wrenches=True, keep=joints, instead=instead)


def _inverse_dynamics_time_derivatives(tree: Multibody, order: int) -> Recipe:
    order = check_order(order, "tree.inverse_dynamics")
    build = partial(inverse_dynamics_time_derivatives, order=order)
    names = ["tau", "tau_dot", "tau_ddot", *(f"tau_{n}" for n in range(3, order + 1))]
    results = tuple((name, "v") for name in names[: order + 1])
    return Recipe(" ".join(["q", *rate_names(order + 2)]), results, build, True, True)


RECIPES: dict[str, Callable[..., Recipe]] = {
    "twist_derivative": _of_order(rates.twist_derivative, "velocity"),
    "jacobian_time_derivative": _of_order(rates.jacobian_time_derivative, "jacobian"),
    "jacobian_derivatives": _jacobian_derivatives,
    "calibration_jacobian": _calibration_jacobian,
    "jacobian_geometry_derivatives": _jacobian_geometry_derivatives,
    "inverse_dynamics_time_derivatives": _inverse_dynamics_time_derivatives,
    "inverse_dynamics_geometry_derivatives": _inverse_dynamics_geometry_derivatives,
}

"""How second derivatives, and derivatives by inertial parameters, of a tree are made."""

from __future__ import annotations

from ..plan._recipe import Recipe
from ._second_forward import (
    forward_dynamics_hessian,
    forward_dynamics_parameter_derivatives,
    forward_dynamics_second_parts,
    forward_dynamics_tensors,
)
from ._second_tensors import inverse_dynamics_second_derivatives
from ._second_weighted import inverse_dynamics_hessian

_FORCES = ("d2_tau_d_q2", "d2_tau_d_q_d_v", "d2_tau_d_v2", "d2_tau_d_q_d_a")
_ACCELERATIONS = ("d2_a_d_q2", "d2_a_d_q_d_v", "d2_a_d_v2", "d2_a_d_q_d_tau")
_WEIGHTED = "{}_dynamics_hessian has weighted sums over the first index for a fraction of that"


def _all(names: tuple[str, ...], code: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, code) for name in names)


RECIPES: dict[str, Recipe] = {
    "inverse_dynamics_second_derivatives": Recipe(
        "q v a",
        _all(_FORCES, "vvv"),
        inverse_dynamics_second_derivatives,
        True,
        True,
        instead=_WEIGHTED.format("inverse"),
    ),
    "inverse_dynamics_hessian": Recipe(
        "q v a weights",
        _all(("H_qq", "H_qv", "H_vv", "H_qa"), "vv"),
        inverse_dynamics_hessian,
        True,
        True,
    ),
    "forward_dynamics_second_derivatives": Recipe(
        "q v tau",
        _all(_ACCELERATIONS, "vvv"),
        forward_dynamics_second_parts,
        True,
        True,
        assemble=forward_dynamics_tensors,
        instead=_WEIGHTED.format("forward"),
    ),
    "forward_dynamics_hessian": Recipe(
        "q v tau weights",
        _all(("H_qq", "H_qv", "H_vv", "H_qtau"), "vv"),
        forward_dynamics_hessian,
        True,
        True,
    ),
    "forward_dynamics_parameter_derivatives": Recipe(
        "q v tau",
        (("d_a_d_parameters", "vp"),),
        forward_dynamics_parameter_derivatives,
        True,
        True,
    ),
}

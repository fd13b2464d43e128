"""How the closed forms of a tree are made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ..derivatives import _linearized as linearized
from ..kinematics._frames import check_reference
from ..plan._recipe import Recipe
from ..plan._singular import refuse_singular
from . import _connection as connection
from . import _equations as closed
from . import _system_matrices as system

if TYPE_CHECKING:
    from ..tree._tree import Multibody

Maker = Callable[..., Recipe]


def _stacked(
    build: Callable[..., Any], arguments: str, results: tuple[tuple[str, str], ...], **options: Any
) -> Maker:
    """Recipe maker ``(tree[, reference]) → Recipe``; letter w is six rows for each body."""

    def make(tree: Multibody, reference: str | None = None) -> Recipe:
        rows = 6 * len(tree.bodies)
        shapes = tuple((key, _with_rows(code, rows)) for key, code in results)
        if reference is None:
            return Recipe(arguments, shapes, build, **options)
        check_reference(reference)
        return Recipe(
            arguments, shapes, partial(build, reference=reference), about=reference, **options
        )

    return make


def _with_rows(code: str, rows: int) -> str | tuple[str | int, ...]:
    return tuple(rows if x == "w" else x for x in code) if "w" in code else code


def _christoffel(tree: Multibody) -> Recipe:
    for link in tree._moving_links:
        for _, group in link.joint.steps:
            if not group.is_commutative:
                raise ValueError(
                    f"joint {link.joint_name!r} ({link.joint}) has velocities that are no "
                    "derivatives of coordinates: there are no Christoffel symbols. Use "
                    "connection_coefficients, which are the same thing in the frame of the "
                    "velocities"
                )
    return _CONNECTION


def _momentum_dynamics(tree: Multibody) -> Recipe:
    bare = {
        link.joint_name: replace(link.properties, armature=0.0)
        for link in tree._links
        if not link.joint.is_fixed
    }
    refuse_singular(tree.with_properties(**bare))
    results = (("v", "v"), ("momentum_rates", "b6"))
    return Recipe("q momenta tau", results, closed.momentum_dynamics, takes_wrenches=True)


_EULER_JOURDAIN = (
    ("J", "wv"),
    ("J_rate", "wv"),
    ("inertia", "ww"),
    ("bias", "w"),
    ("applied", "w"),
    ("armature", "v"),
    ("joint_forces", "v"),
)
_MATRICES = (("A", "ww"), ("X", "wv"), ("X_rate", "wv"))
_MATRICES += (("ad_joints", "ww"), ("ad_bodies", "ww"), ("M", "ww"))
_BLOCKS = ("M", "vv"), ("D", "vv"), ("K", "vv")
_CONNECTION = Recipe(
    "q",
    (("Gamma", "vvv"),),
    connection.connection_coefficients,
    True,
    instead="coriolis_matrix has their products with a velocity for a fraction of that",
)
_WEIGHTED = "{}_dynamics_hessian has weighted sums over the first index ({}) for a fraction of that"
_INVERSE = ("M_inverse", "vv"), ("d_M_inverse_d_q", "vvv")

RECIPES: dict[str, Recipe | Maker] = {
    "system_jacobian": _stacked(system.system_jacobian, "q", (("J", "wv"),)),
    "system_jacobian_rate": _stacked(system.system_jacobian_rate, "q v", (("J_rate", "wv"),)),
    "system_matrices": _stacked(system.system_matrices, "q v", _MATRICES),
    "euler_jourdain_equations": _stacked(
        closed.euler_jourdain_equations, "q v", _EULER_JOURDAIN, takes_wrenches=True
    ),
    "inverse_dynamics_by_projection": _stacked(
        closed.inverse_dynamics_by_projection, "q v a", (("tau", "v"),), takes_wrenches=True
    ),
    "lagrange_equations": Recipe(
        "q v",
        (("M", "vv"), ("C", "vv"), ("Q", "v")),
        closed.lagrange_equations,
        takes_wrenches=True,
    ),
    "body_momenta": _stacked(closed.body_momenta, "q v", (("momenta", "b6"),)),
    "momentum_dynamics": _momentum_dynamics,
    "connection_coefficients": _CONNECTION,
    "christoffel_symbols": _christoffel,
    "mass_matrix_derivatives": Recipe(
        "q",
        (("d_M_d_q", "vvv"),),
        connection.mass_matrix_derivatives,
        True,
        instead=_WEIGHTED.format("inverse", "H_qa"),
    ),
    "mass_matrix_inverse_derivatives": Recipe(
        "q",
        _INVERSE,
        connection.mass_matrix_inverse_parts,
        True,
        assemble=connection.mass_matrix_inverse_tensors,
        instead=_WEIGHTED.format("forward", "H_qtau"),
    ),
    "linearized_equations": Recipe(
        "q v a", (*_BLOCKS, ("ad_v", "vv")), linearized.linearized_equations, True, True
    ),
    "linearized_error_equations": Recipe(
        "q v a", _BLOCKS, linearized.linearized_error_equations, True, True
    ),
}

"""Recipes of all model functions of a tree, by name."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca

from .closed_forms import _recipes as closed_forms
from .derivatives import _first as derivatives
from .derivatives import _recipes as second_derivatives
from .dynamics import _mass_matrix as mass
from .dynamics import _momentum as momentum
from .dynamics import _recursions as recursions
from .dynamics._forward_dynamics import (
    forward_dynamics,
    forward_dynamics_by_factor,
    forward_dynamics_by_recursion,
)
from .dynamics._inverse_dynamics import inverse_dynamics
from .kinematics import _frame_recipes as frames
from .kinematics import _kinematics as kinematics
from .kinematics import _recipes as higher
from .loops import _choice as large
from .parameters._regressor import inverse_dynamics_regressor
from .plan._recipe import Recipe


def _gravity_forces(plan, q):
    none = ca.SX(plan.nv, 1)
    return inverse_dynamics(plan, q, none, none)


def _bias_forces(plan, q, v, wrenches=None):
    return inverse_dynamics(plan, q, v, ca.SX(plan.nv, 1), wrenches)


_TAU = (("tau", "v"),)
_A = (("a", "v"),)
_SLOPES = ("d_tau_d_q", "vv"), ("d_tau_d_v", "vv"), ("d_tau_d_a", "vv")
_RESPONSES = ("d_a_d_q", "vv"), ("d_a_d_v", "vv"), ("d_a_d_tau", "vv")

RECIPES: dict[str, Recipe | Callable[..., Recipe]] = {
    "inverse_dynamics": Recipe(
        "q v a", _TAU, inverse_dynamics, True, True, loops=large.INVERSE_DYNAMICS
    ),
    "bias_forces": Recipe("q v", _TAU, _bias_forces, True, True, loops=large.BIAS_FORCES),
    "gravity_forces": Recipe("q", _TAU, _gravity_forces, True, loops=large.GRAVITY_FORCES),
    "forward_dynamics": Recipe(
        "q v tau", _A, forward_dynamics, True, True, loops=large.FORWARD_DYNAMICS
    ),
    "forward_dynamics_by_factor": Recipe("q v tau", _A, forward_dynamics_by_factor, True, True),
    "forward_dynamics_by_recursion": Recipe(
        "q v tau", _A, forward_dynamics_by_recursion, True, True, loops=large.FORWARD_DYNAMICS
    ),
    "mass_matrix": Recipe("q", (("M", "vv"),), mass.mass_matrix, True, loops=large.MASS_MATRIX),
    "mass_matrix_factor": Recipe(
        "q", (("L", "vv"), ("D", "v")), lambda plan, q: mass.factor(mass.mass_matrix(plan, q)), True
    ),
    "mass_matrix_inverse": Recipe(
        "q",
        (("M_inverse", "vv"),),
        lambda plan, q: mass.inverse(*mass.factor(mass.mass_matrix(plan, q))),
        True,
        loops=large.MASS_MATRIX_INVERSE,
    ),
    "coriolis_matrix": Recipe("q v", (("C", "vv"),), derivatives.coriolis_matrix, True),
    "inverse_dynamics_derivatives": Recipe(
        "q v a",
        _SLOPES,
        derivatives.inverse_dynamics_derivatives,
        True,
        True,
        loops=large.INVERSE_DYNAMICS_DERIVATIVES,
    ),
    "forward_dynamics_derivatives": Recipe(
        "q v tau",
        _RESPONSES,
        derivatives.forward_dynamics_derivatives,
        True,
        True,
        loops=large.FORWARD_DYNAMICS_DERIVATIVES,
    ),
    "inverse_dynamics_regressor": Recipe("q v a", (("Y", "vp"),), inverse_dynamics_regressor),
    "kinetic_energy": Recipe("q v", (("energy", ""),), momentum.kinetic_energy, True),
    "potential_energy": Recipe("q", (("energy", ""),), momentum.potential_energy),
    "center_of_mass": Recipe("q", (("position", "3"),), momentum.center_of_mass),
    "center_of_mass_velocity": Recipe(
        "q v", (("velocity", "3"),), momentum.center_of_mass_velocity
    ),
    "center_of_mass_acceleration": Recipe(
        "q v a", (("acceleration", "3"),), momentum.center_of_mass_acceleration
    ),
    "center_of_mass_jacobian": Recipe("q", (("J", "3v"),), momentum.center_of_mass_jacobian),
    "centroidal_momentum": Recipe("q v", (("momentum", "6"),), momentum.centroidal_momentum),
    "centroidal_momentum_rate": Recipe(
        "q v a", (("rate", "6"),), momentum.centroidal_momentum_rate
    ),
    "centroidal_momentum_matrix": Recipe("q", (("A", "6v"),), momentum.centroidal_momentum_matrix),
    "centroidal_momentum_matrix_rate": Recipe(
        "q v", (("A_rate", "6v"),), momentum.centroidal_momentum_matrix_rate
    ),
    "body_velocities": Recipe("q v", (("twists", "b6"),), kinematics.body_twists),
    "body_accelerations": Recipe("q v a", (("rates", "b6"),), kinematics.body_accelerations),
    "joint_wrenches": Recipe(
        "q v a", (("wrenches_out", "b6"),), kinematics.joint_wrenches, False, True
    ),
}
RECIPES |= closed_forms.RECIPES
RECIPES |= frames.RECIPES
RECIPES |= higher.RECIPES
RECIPES |= recursions.RECIPES
RECIPES |= second_derivatives.RECIPES

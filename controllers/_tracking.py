"""Tracking on a group: the acceleration that turns an error into zero, and what a system can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction, UnknownNameError, check_shape, unknown_name
from lgcontrol.groups import LieGroup, Product, Rn
from lgcontrol.systems import System

from ._spring import spring_damper

# A block counts as the velocity of another when the field says so to this accuracy.
SAME_RATE = 1e-9


class Blocks(NamedTuple):
    """Where configuration and velocity of a mechanical system are.

    Attributes
    ----------
    group : LieGroup
        Of the configuration.
    name, rate_name : str
    q, v : slice
        In the coordinates of the state.
    dq, dv : slice
        In its tangent vector.
    """

    group: LieGroup
    name: str
    rate_name: str
    q: slice
    v: slice
    dq: slice
    dv: slice


def find_blocks(system: System, configuration: str | None = None) -> Blocks:
    """Configuration block and the block that is its body-fixed velocity.

    Parameters
    ----------
    system : System
    configuration : str, optional
        Name of the block; the first that has a velocity if left out.

    Returns
    -------
    Blocks

    Raises
    ------
    ValueError
        If the system is discrete or there is no such pair; the message says what is expected.
    """
    state = system.state
    if system.is_discrete or not isinstance(state, Product):
        raise ValueError(
            f"{system.name}: geometric control needs a continuous system whose state is a Product "
            "of a configuration and its velocity, such as Product(pose=SE3, twist=Rn(6))"
        )
    if configuration is not None and configuration not in state.blocks:
        raise UnknownNameError(unknown_name("block", configuration, state.blocks))
    x = state.random(0, (3,))
    rates = system.f(0.0, x)
    for name in state.blocks if configuration is None else [configuration]:
        group = state.blocks[name]
        for rate_name, rate_group in state.blocks.items():
            fits = isinstance(rate_group, Rn) and rate_group.dim == group.dim
            if not fits or rate_name == name:
                continue
            v, dq = state.coordinate_slice(rate_name), state.tangent_slice(name)
            if np.abs(rates[:, dq] - x[:, v]).max() < SAME_RATE:
                return Blocks(
                    group, name, rate_name, state.coordinate_slice(name), v, dq,
                    state.tangent_slice(rate_name),
                )  # fmt: skip
    raise ValueError(
        f"{system.name}: no block of the state is the body-fixed velocity of "
        f"{'another' if configuration is None else repr(configuration)}; "
        f"the blocks are {', '.join(state.blocks)}"
    )


def tracking_acceleration(
    group: LieGroup,
    q: Any,
    v: Any,
    goal: Sequence[Any],
    stiffness: Any,
    damping: Any,
) -> Any:
    """Body-fixed acceleration ``v̇`` that tracks a motion, for CasADi columns.

    With ``h = q_ref⁻¹ q``, ``e = log h`` and ``ν = v − Ad(h⁻¹) v_ref`` it is
    ``Ad(h⁻¹) v̇_ref − [ν, Ad(h⁻¹) v_ref] − J_r(e)⁻ᵀ K e − D ν``: then ``½ eᵀ K e + ½ νᵀ ν`` falls
    with the rate ``−νᵀ D ν`` for any positive K and D, on any group.

    Parameters
    ----------
    group : LieGroup
    q, v : CasADi columns
        Configuration and its body-fixed velocity.
    goal : sequence
        q_ref, v_ref, v̇_ref.
    stiffness, damping : CasADi columns or ndarray
        Diagonals of K and D, in 1/s² and 1/s.

    Returns
    -------
    CasADi column

    References
    ----------
    F. Bullo, R. Murray: Tracking for fully actuated mechanical systems: a geometric framework.
    Automatica 35 (1999), theorem 5, with the gradient of the error function in place of a scalar
    stiffness.
    """
    q_ref, v_ref, acceleration = goal
    h = group.compose(group.inverse(q_ref), q)
    error, back = group.log(h), group.Ad(group.inverse(h))
    carried = back @ v_ref
    relative = v - carried
    pull = spring_damper(group, error, relative, stiffness, damping)
    return back @ acceleration - group.ad(relative) @ carried + pull


def actuation(system: System, blocks: Blocks) -> ModelFunction:
    """``(t, x, u, p) → rate, effect``: velocity's rate, and its derivative by the controls.

    Kept with the system for the controllers to come.
    """
    key = ("actuation", blocks.name)
    if key not in system._cache:
        system._cache[key] = _build_actuation(system, blocks)
    return system._cache[key]


def _build_actuation(system: System, blocks: Blocks) -> ModelFunction:
    sym = system.symbol.sym
    t, x = sym("t"), sym("x", system.state.nq)
    u, p = sym("u", system.n_inputs), sym("p", system.n_parameters)
    rate = system.f.function(t, x, u, p)[blocks.dv]
    effect = ca.jacobian(rate, u)[:, system.input_index("control").tolist()]
    function = ca.Function(
        "actuation", [t, x, u, p], [rate, effect], ["t", "x", "u", "p"], ["rate", "effect"]
    )
    shapes = {"t": (), "x": (system.state.nq,), "u": (system.n_inputs,)}
    return ModelFunction(
        function,
        shapes=shapes
        | {"p": (system.n_parameters,), "rate": (blocks.group.dim,), "effect": effect.shape},
    )


def gains(frequency: Any, damping_ratio: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Diagonals ``ω²`` and ``2 ζ ω`` of stiffness and damping, shape (size,) each."""
    omega, zeta = (
        np.broadcast_to(check_shape(name, value, (size,) if np.ndim(value) else ()), (size,))
        for name, value in (("frequency", frequency), ("damping_ratio", damping_ratio))
    )
    if not ((omega > 0) & (zeta > 0)).all():
        raise ValueError(
            f"frequency and damping_ratio must be positive, got {frequency} and {damping_ratio}"
        )
    return omega**2, 2 * zeta * omega

"""Tracking on a group, what controls can do of it, and their allocation within bounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen import ModelFunction, Value
from lgcontrol.codegen._internal import check_known, check_shape
from lgcontrol.groups import LieGroup, Product, Rn
from lgcontrol.systems import System

from ._law_function import law_function
from ._spring import spring_damper

# Controls that the wanted quantities leave open stay small, at a weight that changes what is met by
# less than this share.
REGULARIZATION = 1e-6
# Steps of the active set for each control: of 2,000 random problems with up to 8 controls none took
# two.
ALLOCATION_STEPS = 3


def allocate(
    effect: np.ndarray,
    wanted: np.ndarray,
    lower: np.ndarray,
    upper: np.ndarray,
    priority: np.ndarray | None = None,
) -> np.ndarray:
    """Controls u, shape (m,), with ``effect @ u`` (k × m) as near to `wanted` as bounds allow.

    Without active bounds this is the pseudo-inverse. Otherwise rows with a higher priority (all
    alike if left out) are met first. They count by the square of their priority, each relative to
    the largest effect that the controls can have on it.

    Examples
    --------
    Two rotors lift and turn; lift gives way:

    >>> effect = np.array([[1.0, 1.0], [1.0, -1.0]])
    >>> allocate(effect, [2.5, 1.0], np.zeros(2), np.ones(2), np.array([1, 100])).round(2)
    array([1., 0.])
    """
    wanted, lower, upper = (np.asarray(v, dtype=np.float64) for v in (wanted, lower, upper))
    u = np.linalg.pinv(effect) @ wanted
    if ((u >= lower) & (u <= upper)).all():
        return u
    weight = np.ones(len(wanted)) if priority is None else priority
    return bounded_allocation(*np.shape(effect))(effect, wanted, lower, upper, weight, u)


@cache
def bounded_allocation(rows: int, count: int) -> ModelFunction:
    """``(effect, wanted, lower, upper, priority, free) → u``: `allocate` from its free controls.

    A primal active set: controls at bounds stay there, the others go to their least squares until
    the first of them meets a bound. If none does, the control that pulls hardest off its bound is
    let go. All steps are the same code.
    """
    sizes = {"wanted": rows, "lower": count, "upper": count, "priority": rows, "free": count}
    effect = ca.MX.sym("effect", rows, count)
    values = {name: ca.MX.sym(name, size) for name, size in sizes.items()}
    wanted, lower, upper, priority, free = values.values()
    A, b, penalty, state = _begin(rows, count)(effect, *values.values())
    step = _step(rows, count)
    for _ in range(ALLOCATION_STEPS * count):
        state = step(state, A, b, penalty, lower, upper)
    u = _end(count)(state, lower, upper, free)
    names = ["effect", *sizes]
    function = ca.Function("allocation", [effect, *values.values()], [u], names, ["u"])
    return ModelFunction(function, shapes={"effect": (rows, count)})


def _begin(rows: int, count: int) -> ca.Function:
    """Weighed rows, penalties of controls, and ``(u, is_free)`` to begin with."""
    effect, wanted = ca.SX.sym("effect", rows, count), ca.SX.sym("wanted", rows)
    lower, upper = ca.SX.sym("lower", count), ca.SX.sym("upper", count)
    priority, free = ca.SX.sym("priority", rows), ca.SX.sym("free", count)
    span = upper - lower
    span = ca.if_else((span > 0) * (span < ca.inf), span, 1.0)
    reach = ca.fabs(effect) @ span
    weight = priority / ca.if_else(reach > 0, reach, 1.0)
    u = ca.fmin(ca.fmax(free, lower), upper)
    state = ca.vertcat(u, (u > lower) * (u < upper))
    return ca.Function(
        "begin", [effect, wanted, lower, upper, priority, free],
        [ca.diag(weight) @ effect, weight * wanted, REGULARIZATION / span, state],
    )  # fmt: skip


def _step(rows: int, count: int) -> ca.Function:
    """One step from ``(u, is_free)`` to the next."""
    state, penalty = ca.SX.sym("state", 2 * count), ca.SX.sym("penalty", count)
    A, b = ca.SX.sym("A", rows, count), ca.SX.sym("b", rows)
    lower, upper = ca.SX.sym("lower", count), ca.SX.sym("upper", count)
    u, free = state[:count], state[count:]
    # Controls that are not free have a column of their own, which keeps them.
    table = ca.SX(ca.vertcat(A @ ca.diag(free), ca.diag(free * penalty + (1 - free))))
    move = free * _least_squares(table, ca.vertcat(b - A @ u, -free * penalty * u), rows)
    room, size = ca.if_else(move > 0, upper - u, u - lower), ca.fabs(move)
    share = ca.if_else(size > room, room / ca.if_else(size > room, size, 1), 1)
    least = ca.mmin(share)
    meets = (share <= least) * (share < 1)
    moved = ca.if_else(meets, ca.if_else(move > 0, upper, lower), u + least * move)
    slope = A.T @ (A @ moved - b) + penalty**2 * moved
    pull = ca.if_else(moved <= lower, -slope, slope) / penalty * (1 - free) * (lower < upper)
    hardest = ca.mmax(pull)
    let_go = (pull >= hardest) * (hardest > 0)
    after = ca.if_else(least < 1, free * (1 - meets), ca.fmax(free, let_go))
    return ca.Function("step", [state, A, b, penalty, lower, upper], [ca.vertcat(moved, after)])


def _end(count: int) -> ca.Function:
    """Controls of the last step; the free ones where they keep their bounds."""
    state, free = ca.SX.sym("state", 2 * count), ca.SX.sym("free", count)
    lower, upper = ca.SX.sym("lower", count), ca.SX.sym("upper", count)
    inside = ca.mmin((free >= lower) * (free <= upper))
    u = ca.if_else(inside, free, state[:count])
    return ca.Function("end", [state, lower, upper, free], [u])


def _least_squares(table: ca.SX, right: ca.SX, rows: int) -> ca.SX:
    """Solution by Householder's QR of some rows above a diagonal matrix."""
    count = table.shape[1]
    for j in range(count):
        own = list(range(j, rows + j + 1))  # below that nothing has been filled yet
        length = ca.sqrt(ca.sumsqr(table[own, j]))
        pivot = ca.if_else(table[j, j] > 0, -length, length)
        mirror = ca.SX(table[own, j])
        mirror[0] -= pivot
        square = ca.sumsqr(mirror)
        scale = 2 / ca.if_else(square > 0, square, 1)
        for k in range(j + 1, count):
            table[own, k] -= mirror * (scale * ca.dot(mirror, table[own, k]))
        right[own] -= mirror * (scale * ca.dot(mirror, right[own]))
        table[j, j] = pivot
    found = ca.SX(count, 1)
    for j in reversed(range(count)):
        found[j] = (right[j] - table[j, j + 1 :] @ found[j + 1 :, 0]) / table[j, j]
    return found


class MechanicalBlocks(NamedTuple):
    """Places of configuration and velocity of a mechanical system in its state."""

    group: LieGroup  # of the configuration
    name: str
    rate_name: str
    q: slice  # in the coordinates of the state
    v: slice
    dq: slice  # in its tangent vector
    dv: slice


def blocks_of(
    system: System, configuration: str | None = None, velocity: str | None = None
) -> MechanicalBlocks:
    """Configuration block and the block that is its body-fixed velocity.

    Names are given both or not at all; those of the system's structure if left out. Refuses
    discrete systems and blocks that do not fit.
    """
    state, structure = system.state, system.structure
    if system.is_discrete or not isinstance(state, Product):
        raise ValueError(
            f"{system.name}: geometric control needs a continuous system whose state is a Product "
            "of a configuration and its velocity, such as Product(pose=SE3, twist=Rn(6))"
        )
    check_known("block", state.blocks, *filter(None, (configuration, velocity)))
    if configuration is None and velocity is None and structure is not None:
        configuration, velocity = structure.configuration, structure.velocity
    if configuration is None or velocity is None:
        names = list(state.blocks)
        known = "has no structure" if structure is None else f"moves {structure.configuration!r}"
        example = f"configuration={names[0]!r}, velocity={names[-1]!r}"
        raise ValueError(
            f"{system.name} {known}: say which blocks are a configuration and its body-fixed "
            f"velocity, as in {example}, or make the system with structure=Mechanical(…), as trees "
            f"and bodies do; the blocks are {', '.join(names)}"
        )
    group, rates = state.blocks[configuration], state.blocks[velocity]
    if not isinstance(rates, Rn) or rates.dim != group.dim:
        raise ValueError(
            f"{system.name}: {velocity!r} is {rates}, and the velocity of {configuration!r} "
            f"({group}) is Rn({group.dim})"
        )
    return MechanicalBlocks(
        group, configuration, velocity, state.coordinate_slice(configuration),
        state.coordinate_slice(velocity), state.tangent_slice(configuration),
        state.tangent_slice(velocity),
    )  # fmt: skip


def tracked_blocks(system: System, blocks: MechanicalBlocks) -> np.ndarray | None:
    """Errors of a configuration and its velocity among those of the state, booleans; None for all.

    Wheels that turn a satellite are in its state, and a law of its attitude does not hold them.
    """
    if system.n_errors != system.state.dim:
        return None
    tracked = np.zeros(system.state.dim, dtype=bool)
    tracked[blocks.dq] = tracked[blocks.dv] = True
    return tracked


def tracking_acceleration(
    group: LieGroup,
    q: Value,
    v: Value,
    goal: Sequence[Value],
    stiffness: Value,
    damping: Value,
) -> Value:
    """Body-fixed acceleration ``v̇`` that tracks a motion (q_ref, v_ref, v̇_ref), for CasADi columns.

    With ``h = q_ref⁻¹ q``, ``e = log h`` and ``ν = v − Ad(h⁻¹) v_ref`` it is
    ``Ad(h⁻¹) v̇_ref − [ν, Ad(h⁻¹) v_ref] − J_r(e)⁻ᵀ K e − D ν``: then ``½ eᵀ K e + ½ νᵀ ν`` falls
    with the rate ``−νᵀ D ν`` for any positive K [1/s²] and D [1/s], diagonal, on any group.

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


def actuation(system: System, blocks: MechanicalBlocks) -> ModelFunction:
    """``(t, x, u, p) → rate, effect``: velocity's rate, and its derivative by the controls.

    Kept with the system for the controllers to come.
    """

    def make() -> ModelFunction:
        sym, controls = system.symbol.sym, system.input_index("control").tolist()
        t, x = sym("t"), sym("x", system.state.nq)
        u, p = sym("u", system.n_inputs), sym("p", system.n_parameters)
        effect = ca.densify(system.derivatives.function(t, x, u, p)[1][blocks.dv, controls])
        rate = system.f.function(t, x, u, p)[blocks.dv]
        function = ca.Function(
            "actuation", [t, x, u, p], [rate, effect], ["t", "x", "u", "p"], ["rate", "effect"]
        )
        shapes = {
            "t": (), "x": (system.state.nq,), "u": (system.n_inputs,), "p": (system.n_parameters,),
            "rate": (blocks.group.dim,), "effect": effect.shape,
        }  # fmt: skip
        return ModelFunction(function, shapes=shapes)

    return system.memo(("actuation", blocks.rate_name), make)


def exported_law(
    controller: Any,
    actuation: ModelFunction,
    wanted: Callable[..., tuple[Value, Value]],
    *,
    is_relative: bool,
    priority: np.ndarray | None = None,
) -> ModelFunction:
    """``(t, x, x_ref, rate_ref, u_ref, p) → u``: the controls of least size that do what is wanted.

    If bounds are kept and met, the controls are those of `bounded_allocation`. ``wanted(x, x_ref,
    rate_ref, (rate, effect), drift, p, rate_at) → effect, wanted``: the drift is the rate without
    controls, ``rate_at(x)`` that of another state with the same inputs. If `is_relative`, it is
    added to the effect of the reference's controls.
    """
    system, sym = controller.system, controller.system.symbol.sym
    controls = system.input_index("control").tolist()
    sizes = {
        "x": system.state.nq, "x_ref": system.state.nq, "rate_ref": system.state.dim,
        "u_ref": system.n_inputs, "p": system.n_parameters,
    }  # fmt: skip
    t, values = sym("t"), {name: sym(name, size) for name, size in sizes.items()}
    x, x_ref, rate_ref, u_ref, p = values.values()
    now = actuation.function(t, x, u_ref, p)
    start = u_ref[controls]
    drift = now[0] - now[1] @ start

    def rate_at(state: Value) -> Value:
        return actuation.function(t, state, u_ref, p)[0]

    effect, missing = wanted(x, x_ref, rate_ref, now, drift, p, rate_at)
    free = effect.T @ ca.solve(effect @ effect.T, missing)
    origin = start if is_relative else 0 * start
    given = {"t": t} | values
    if not controller.saturate:
        return law_function("law", given, {"u": origin + free})
    lower, upper = ca.DM(controller._lower), ca.DM(controller._upper)
    parts = [effect, missing, lower - origin, upper - origin, free, origin]
    asked = ca.Function("asked", list(given.values()), list(map(ca.densify, parts)))
    given = {key: ca.MX.sym(key, value.shape[0]) for key, value in given.items()}
    *limited, free, origin = asked(*given.values())
    weight = np.ones(effect.shape[0]) if priority is None else priority
    u = bounded_allocation(*effect.shape).function(*limited, ca.DM(weight), free)
    place, move = ca.SX.sym("place", len(controls)), ca.SX.sym("move", len(controls))
    cut = ca.fmin(ca.fmax(place + move, lower), upper)
    return law_function("law", given, {"u": ca.Function("cut", [place, move], [cut])(origin, u)})


def gains(
    frequency: ArrayLike, damping_ratio: ArrayLike, size: int
) -> tuple[np.ndarray, np.ndarray]:
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

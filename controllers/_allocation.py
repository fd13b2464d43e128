"""Allocation: controls within bounds that come nearest to wanted accelerations, by priority."""

from __future__ import annotations

from functools import cache

import casadi as ca
import numpy as np

from lgcontrol.codegen import ModelFunction

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
    """Controls u with ``effect @ u`` as near to `wanted` as bounds allow.

    Without active bounds this is the pseudo-inverse. Otherwise rows with a higher priority are met
    first. They count by the square of their priority, each relative to the largest effect that the
    controls can have on it.

    Parameters
    ----------
    effect : ndarray, shape (k, m)
        Effect of each control on each wanted quantity.
    wanted : ndarray, shape (k,)
    lower, upper : ndarray, shape (m,)
        Bounds of the controls.
    priority : ndarray, shape (k,), optional
        All alike if left out.

    Returns
    -------
    ndarray, shape (m,)

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

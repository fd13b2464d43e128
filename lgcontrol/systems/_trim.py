"""trim: equilibria and relative equilibria of a system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import check_shape
from ..groups import check_element
from ._complete import complete_input, complete_parameters
from ._nearest import Nearest, row_scales, solve_nearest
from ._steadiness import classify
from ._trim_equations import (
    Equations,
    Wishes,
    read_moving,
    read_wishes,
    set_wishes,
    trim_equations,
)
from ._trim_failure import infeasible, not_a_symmetry
from ._trim_point import TrimError, TrimPoint

if TYPE_CHECKING:
    from ._system import System

STARTS = 8  # the first from the guess, the others from random states around it


def trim(
    system: System,
    x: Any = None,
    u: Any = None,
    *,
    where: Mapping[str, Any] | None = None,
    position: Any = None,
    moving: str | Iterable[str] | bool = (),
    conditions: Mapping[str, Callable[..., Any]] | None = None,
    p: Any = None,
    t: float = 0.0,
) -> TrimPoint:
    """Find the equilibrium or relative equilibrium that is nearest to a guess.

    An equilibrium has ``f(t, x, u, p) = 0`` at all times. A relative equilibrium moves with a
    constant body-fixed rate ξ and a constant input (hover with a spin, straight flight, steady
    turn, helix): ``f(X exp(τ ξ)) = f(X)``, so the motion must be a symmetry of the system, and its
    linearization is time-invariant.

    Parameters
    ----------
    system : System
    x : array_like, shape (nq,), optional
        Guess; the identity if left out. What nothing else decides stays as it is there.
    u : array_like, shape (n_inputs,), optional
        Guess for the controls, and values of disturbances and noise; nominal if left out, as are
        the others where controls alone are given.
    where : mapping of str to float or array_like, optional
        Values of coordinates ("pose.z"), whole blocks ("twist") and inputs ("thrust").
    position : array_like, optional
        Values of the coordinates x, y, z of the first block that has them, in m.
    moving : str, sequence of str, or bool
        Blocks that may keep a constant rate; True for all. A block whose rate is fixed by `where`
        at other values than zero moves without being named, but in discrete systems, whose
        increments hide it: name their moving blocks.
    conditions : mapping of str to callable, optional
        Further equations by name, ``(t, x, u, p) → column`` that vanishes.
    p : array_like, shape (n_parameters,), optional
    t : float
        Time in s.

    Returns
    -------
    TrimPoint
        Controls within their bounds.

    Raises
    ------
    TrimError
        If there is none: says which equation is off by how much, and which inputs are at a bound.
    KeyError
        If a name is unknown.
    ValueError
        If a value has the wrong shape, is not finite, or is outside its bounds.

    Examples
    --------
    >>> from lgcontrol.groups import Product, Translation, Rn
    >>> from lgcontrol.systems import Input, System
    >>> import casadi as ca
    >>> lift = System(
    ...     "lift", Product(height=Translation("z"), speed=Rn(1)),
    ...     lambda t, x, u, p: ca.vertcat(x[1], u - 9.81 - 0.5 * x[1]),
    ...     inputs=[Input("thrust", "m/s²", 0.0, 20.0)])
    >>> lift.trim(position=[3.0]).u
    array([9.81])
    >>> climb = lift.trim(where={"speed.x0": 2.0})
    >>> climb.kind, climb.u
    ('relative equilibrium', array([10.81]))
    """
    t = float(check_shape("t", t, ()))
    p = complete_parameters(system, p)
    x = system.state.identity if x is None else check_shape("x", x, (system.state.nq,))
    u = system.nominal_input if u is None else complete_input(system, "u", u)
    wishes = read_wishes(system, where or {}, position)
    x, u = x.copy(), u.copy()
    set_wishes(system, wishes, x, u)
    x = check_element("x", x, system.state, tolerance=inf)
    free = np.array([i for i in system.input_index() if i not in wishes.inputs], dtype=int)
    blocks = read_moving(system, moving, wishes, p)
    lower, upper = _bounds(system, wishes, free)
    starts = list(_starts(system, x, u, free, (lower, upper)))

    def solve(symmetry: bool) -> tuple[Equations, Nearest]:
        equations = trim_equations(system, wishes, blocks, conditions or {}, symmetry=symmetry)

        def evaluate(x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            rows, by_x, by_u = equations.function(t, x, u, p)
            return rows.full().ravel(), np.hstack([by_x.full(), by_u.full()[:, free]])

        scale, tried = _scales(lower, upper, u[free]), []
        rows = row_scales(evaluate, starts, scale)
        for start in starts:
            tried.append(
                solve_nearest(
                    system.state, evaluate, start, (x, u), free, (lower, upper), scale, rows
                )
            )
            if tried[-1].solved:
                break
        return equations, min(tried, key=_size)

    def point(found: Nearest) -> TrimPoint:
        at, by = _cleared(found.x, x), _cleared(found.u, u)
        kind = classify(system, t, at, by, p) if found.solved else "none"
        return TrimPoint(at, by, t, p, system.f(t, at, by, p), kind, system)

    equations, best = solve(symmetry=True)
    found = best if best.solved else solve(symmetry=False)[1]
    result = point(found)
    if result.kind != "none":
        return result
    if found.solved:  # without the equations of a symmetry, or they do not suffice
        raise TrimError(not_a_symmetry(system, result), "not a symmetry", result)
    result = point(best)
    message = infeasible(system, equations, best, result.u, free, blocks, STARTS)
    raise TrimError(message, "infeasible", result)


def _cleared(value: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Zeros where steps of the solver left less than rounding next to one, and none that are -0."""
    left = (np.abs(value) < np.finfo(float).eps) & (value != guess)
    return np.where(left, 0.0, value) + 0.0


def _size(found: Nearest) -> float:
    size = np.abs(found.scaled).max(initial=0.0)
    return float(size) if np.isfinite(size) else np.inf


def _bounds(system: System, wishes: Wishes, free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = system.input_bounds
    for index, value in wishes.inputs.items():
        if not lower[index] <= value <= upper[index]:
            raise ValueError(
                f"where: {system.input_names[index]} = {value:g} is outside its bounds "
                f"[{lower[index]:g}, {upper[index]:g}] {system.inputs[index].unit}"
            )
    return lower[free], upper[free]


def _scales(lower: np.ndarray, upper: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Half the range of each input; else its size, at least one."""
    half = (upper - lower) / 2
    return np.where(np.isfinite(half) & (half > 0), half, np.maximum(np.abs(u), 1.0))


def _starts(
    system: System,
    x: np.ndarray,
    u: np.ndarray,
    free: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    yield x, u
    rng = np.random.default_rng(0)
    low, high = np.maximum(bounds[0], u[free] - 1.0), np.minimum(bounds[1], u[free] + 1.0)
    finite = np.isfinite(bounds[0]) & np.isfinite(bounds[1])
    low, high = np.where(finite, bounds[0], low), np.where(finite, bounds[1], high)
    for size in np.geomspace(0.1, 1.5, STARTS - 1):
        other = u.copy()
        other[free] = rng.uniform(low, high)
        yield system.state.plus(x, size * rng.normal(size=system.state.dim)), other

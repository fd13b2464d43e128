"""The equations of an equilibrium or a relative equilibrium, each with its name and unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np

from ..codegen import UnknownNameError, check_shape, unknown_name
from ..groups import LieGroup, Product, check_element
from ._block_names import block_slices
from ._tracing import as_column, symbols_of

if TYPE_CHECKING:
    from ._system import System


@dataclass
class Wishes:
    """What `trim` was asked for, by position.

    Attributes
    ----------
    coordinates : dict of int to float
        Coordinates of the state with given values.
    blocks : dict of str to ndarray
        Blocks of the state with given values.
    inputs : dict of int to float
        Inputs with given values.
    """

    coordinates: dict[int, float] = field(default_factory=dict)
    blocks: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Equations:
    """Rows that must vanish.

    Attributes
    ----------
    names, units : list of str
    function : casadi.Function
        ``(t, x, u, p) → rows, D_x, D_u`` with derivatives for displacements of x, and for u.
    """

    names: list[str]
    units: list[str]
    function: ca.Function


def blocks_of(state: LieGroup) -> dict[str, tuple[LieGroup, slice, slice]]:
    """Group, coordinates and tangent vector of each block; one block "state" if not a product."""
    if not isinstance(state, Product):
        return {"state": (state, slice(0, state.nq), slice(0, state.dim))}
    return {
        name: (group, state.coordinate_slice(name), state.tangent_slice(name))
        for name, group in state.blocks.items()
    }


def read_wishes(system: System, where: Mapping[str, Any], position: Any) -> Wishes:
    """Sort wishes by what they name; unknown names are refused."""
    wishes = Wishes()
    names = list(system.state.coordinate_names)
    blocks = blocks_of(system.state)
    # Joints of one coordinate by their own names, where these are not those of inputs.
    inner = {
        name: part.start
        for name, part in block_slices(system.state)[0].items()
        if part.stop - part.start == 1
    }
    for name, value in where.items():
        places = (name in names) + (name in blocks) + (name in system.input_names)
        if places > 1:
            raise ValueError(f"where: {name!r} names a state and an input of {system.name}")
        if name in names:
            wishes.coordinates[names.index(name)] = _number(f"where[{name!r}]", value)
        elif name in blocks:
            group = blocks[name][0]
            wishes.blocks[name] = check_element(f"where[{name!r}]", value, group, tolerance=inf)
        elif name in inner and name not in system.input_names:
            wishes.coordinates[inner[name]] = _number(f"where[{name!r}]", np.squeeze(value))
        elif name in system.input_names:
            wishes.inputs[system.input_names.index(name)] = _number(f"where[{name!r}]", value)
        else:
            valid = [*names, *blocks, *system.input_names]
            raise UnknownNameError(unknown_name("state, block or input", name, valid))
    if position is not None:
        for index, value in _position(system, position).items():
            if index in wishes.coordinates:
                raise ValueError(f"{names[index]} is given in position and in where")
            wishes.coordinates[index] = value
    return wishes


def _number(name: str, value: Any) -> float:
    return float(check_shape(name, value, ()))


def _position(system: System, position: Any) -> dict[int, float]:
    """Coordinates x, y, z of the first block that has some of them."""
    for group, part, _ in blocks_of(system.state).values():
        axes = [i for i, name in enumerate(group.coordinate_names) if name in ("x", "y", "z")]
        if axes:
            values = check_shape("position", position, (len(axes),))
            return {part.start + i: float(v) for i, v in zip(axes, values, strict=True)}
    raise ValueError(
        f"{system.name} has no block with coordinates x, y, z; use where=… with one of "
        f"{', '.join(system.state.coordinate_names)}"
    )


def read_moving(
    system: System, moving: str | Iterable[str] | bool, wishes: Wishes, p: np.ndarray
) -> list[str]:
    """Blocks that may move: those asked for, and those whose rate the wishes fix and is not zero.

    The rate of a pose, for example, is the twist; a wish for a twist makes the pose move.
    """
    blocks = blocks_of(system.state)
    if isinstance(moving, bool):
        asked = list(blocks) if moving else []
    else:
        asked = [moving] if isinstance(moving, str) else list(moving)
    for name in asked:
        if name not in blocks:
            raise UnknownNameError(unknown_name("block", name, blocks))
    x = np.full(system.state.nq, np.nan)
    u = np.full(system.n_inputs, np.nan)
    set_wishes(system, wishes, x, u)
    # Rows that the unknowns enter become NaN, the others are numbers whatever the solution.
    rate = system.f.function(np.nan, x, u, p).full().ravel()
    fixed = np.nan_to_num(rate) != 0
    return [name for name, (_, _, part) in blocks.items() if name in asked or fixed[part].any()]


def set_wishes(system: System, wishes: Wishes, x: np.ndarray, u: np.ndarray) -> None:
    """Put the wished values into a state and an input, in place."""
    for name, value in wishes.blocks.items():
        x[blocks_of(system.state)[name][1]] = value
    for index, value in wishes.coordinates.items():
        x[index] = value
    for index, value in wishes.inputs.items():
        u[index] = value


def trim_equations(
    system: System,
    wishes: Wishes,
    moving: list[str],
    conditions: Mapping[str, Callable[..., Any]],
    *,
    symmetry: bool = True,
) -> Equations:
    """Write the equations of a (relative) equilibrium with wishes and conditions.

    The field must vanish in blocks that do not move, and projection leave the state alone. Along
    the motion ``X exp(τ ξ)``, with ξ the rate of the moving blocks, the field must not change: its
    derivative for τ vanishes (left out without `symmetry`).
    """
    t, x, u, p = symbols = symbols_of(system)
    state = system.state
    per = "per sample" if system.is_discrete else "per s"
    units = [f"{unit or '1'} {per}" for unit in state.tangent_units]
    rate = system.f(t, x, u, p)
    rows: list[tuple[Any, str, str]] = []
    keep = np.zeros(state.dim)
    for name, (group, at, part) in blocks_of(state).items():
        indices = range(part.start, part.stop)
        if name in moving:
            keep[part] = 1.0
        else:
            rows += [(rate[i], f"rate of {state.tangent_names[i]}", units[i]) for i in indices]
        if name in wishes.blocks:
            away = group.minus(x[at], wishes.blocks[name])
            rows += [
                (away[k], f"{state.tangent_names[i]} away from where", state.tangent_units[i])
                for k, i in enumerate(indices)
            ]
    rows += [
        (x[i] - value, f"{state.coordinate_names[i]} away from where", state.coordinate_units[i])
        for i, value in wishes.coordinates.items()
    ]
    if system.project is not None:
        away = state.minus(system.project(x, p), x)
        rows += [
            (away[i], f"{state.tangent_names[i]} away from the constraints", state.tangent_units[i])
            for i in range(state.dim)
        ]
    if symmetry and (moving or system.f.function.jac_sparsity(0, 0).nnz()):
        change = _change(system, ca.DM(keep))(t, x, u, p)
        rows += [
            (change[i], f"change of the rate of {state.tangent_names[i]}", f"{units[i]} {per}")
            for i in range(state.dim)
        ]
    for name, condition in conditions.items():
        column = as_column(system, name, condition(t, x, u, p), None)
        rows += [(column[k], f"condition {name}", "") for k in range(column.shape[0])]
    column = ca.vertcat(*(row for row, _, _ in rows))
    derivative_x = ca.jacobian(column, x) @ state.rate_matrix(x)
    results = [ca.densify(r) for r in (column, derivative_x, ca.jacobian(column, u))]
    return Equations(
        [name for _, name, _ in rows],
        [unit for _, _, unit in rows],
        ca.Function("trim_equations", [*symbols], results, [*"txup"], ["rows", "D_x", "D_u"]),
    )


def _change(system: System, keep: ca.DM) -> ca.Function:
    """Derivative of the field along the motion with the rate of the moving blocks."""
    t, x, u, p = symbols_of(system)
    s = system.symbol.sym("s")
    motion = system.state.plus(x, s * keep * system.f(t, x, u, p))
    later = system.f(t + s, motion, u, p)
    slope = ca.Function("slope", [s, t, x, u, p], [ca.jacobian(later, s)])
    return ca.Function("change", [t, x, u, p], [slope(0, t, x, u, p)])

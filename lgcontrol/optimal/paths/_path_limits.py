"""Limits of a motion along a path: rows of velocity, acceleration, inputs, states and others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...codegen import named_options
from ...codegen._internal import UnknownNameError, check_shape, unknown_name
from ...groups import LieGroup
from ...systems import SmoothReference, System
from ...systems._internal import MotionPoint, not_a_system

SMALL_PIVOT = 1e-9  # share of the largest singular value of an input map that counts as none


@named_options(own="rows motion path")
@dataclass(frozen=True, eq=False)
class PathRow:
    """A further limit ``lower ≤ g(s, ṡ², s̈) ≤ upper`` of a retimed path.

    Parameters
    ----------
    function : callable
        ``(s, y, a) → values`` on NumPy arrays: path parameters, squared speeds ``y = ṡ²`` and
        accelerations ``a = s̈`` of shape (k,) each, to (k,) or (k, rows). Affine in y and a, or
        nearly: what is not is linearised about the profile again and again.
    lower, upper : float or array_like, shape (rows,)
    name : str
        What results call it when it binds.

    Examples
    --------
    >>> row = PathRow(lambda s, y, a: np.sqrt(y), upper=0.5, name="feed rate")
    >>> row.function(0.0, 0.16, 0.0) < row.upper
    np.True_
    """

    function: Callable[[np.ndarray, np.ndarray, np.ndarray], ArrayLike]
    lower: ArrayLike = -np.inf
    upper: ArrayLike = np.inf
    name: str = "row"


class PathGrid(NamedTuple):
    """Path parameters s, and what the path is at both `ends` of the intervals between them.

    ṡ² is `fixed` at the ends and at corners.
    """

    s: np.ndarray
    ends: tuple[MotionPoint, MotionPoint]
    fixed: dict[int, float]


class PathLimit(NamedTuple):
    """Rows ``lower ≤ g(side, y, a) ≤ upper`` at both ends of the intervals.

    `values` takes squared speeds and accelerations, at their start (side 0) or end (1).
    """

    kind: str
    names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    values: Callable[[int, np.ndarray, np.ndarray], np.ndarray]

    @property
    def range(self) -> np.ndarray:
        """What slack and excess are measured by."""
        both = np.isfinite(self.lower) & np.isfinite(self.upper)
        one = np.fmax(np.where(np.isfinite(self.lower), np.abs(self.lower), 0.0),
                      np.where(np.isfinite(self.upper), np.abs(self.upper), 0.0))  # fmt: skip
        with np.errstate(invalid="ignore"):
            size = np.where(both, self.upper - self.lower, one)
        return np.where(size > 0, size, 1.0)


def path_limits(
    grid: PathGrid, path: SmoothReference, velocity: Any, acceleration: Any, system: System | None,
    rows: Sequence[PathRow],
) -> list[PathLimit]:  # fmt: skip
    """All rows; refuse those that limit nothing."""
    if not (system is None or isinstance(system, System)):
        raise TypeError(not_a_system("system", system))
    for row in rows:
        if not isinstance(row, PathRow):
            raise TypeError(f"rows must hold PathRow(function, lower, upper), not {row!r}")
    limits = [
        *_velocity_rows(grid, path.group, velocity, system),
        *_acceleration_rows(grid, path.group, acceleration),
        *([] if system is None else _motion_rows(grid, path, system)),
        *(_own_rows(grid, row) for row in rows),
    ]
    if not any(np.isfinite([*limit.lower.flat, *limit.upper.flat]).any() for limit in limits):
        raise ValueError(
            "nothing limits the speed: give velocity=, acceleration=, a system whose inputs have "
            "bounds, or rows=[PathRow(…)]"
        )
    return limits


def _per_coordinate(name: str, value: Any, group: LieGroup) -> np.ndarray:
    """A positive limit for each tangent coordinate, infinite where there is none."""
    if isinstance(value, Mapping):
        limits = np.full(group.dim, np.inf)
        for key, entry in value.items():
            if key not in group.tangent_names:
                raise UnknownNameError(unknown_name(f"entry of {name}", key, group.tangent_names))
            limits[group.tangent_names.index(key)] = entry
    else:
        limits = np.full(group.dim, np.inf) if value is None else np.asarray(value, dtype=float)
        limits = np.broadcast_to(limits, (group.dim,)) if limits.ndim == 0 else limits
        limits = check_shape(name, limits, (group.dim,), finite=False)
    if not (limits > 0).all():
        raise ValueError(f"{name} must be positive, got {value}")
    return limits


def _velocity_rows(
    grid: PathGrid, group: LieGroup, given: Any, system: System | None
) -> list[PathLimit]:
    upper = _per_coordinate("velocity", given, group)
    lower = -upper
    if system is not None:
        speeds = _speeds(group, system)
        low, high = system.state_limits
        lower, upper = np.maximum(lower, low[speeds]), np.minimum(upper, high[speeds])

    def values(side: int, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        del a
        # The square has the sign of the velocity: rows are affine in y.
        v = grid.ends[side].velocity
        return np.sign(v) * v**2 * y[:, None]

    low, high = (np.sign(limit) * limit**2 for limit in (lower, upper))
    return [PathLimit("velocity", group.tangent_names, low, high, values)]


def _speeds(group: LieGroup, system: System) -> slice:
    """Where the velocities of the block that moves on a group are among the coordinates."""
    structure, blocks = system.structure, getattr(system.state, "blocks", {})
    if structure is None or blocks.get(structure.configuration) != group:
        raise ValueError(
            f"{system.name}: limits of inputs along a path on {group} need a system whose "
            "structure moves that group, such as tree.system(); give PathRow for others"
        )
    state: Any = system.state
    return state.coordinate_slice(structure.velocity)


def _acceleration_rows(grid: PathGrid, group: LieGroup, given: Any) -> list[PathLimit]:
    if given is None:
        return []
    upper = _per_coordinate("acceleration", given, group)

    def values(side: int, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        point = grid.ends[side]
        return point.acceleration * y[:, None] + point.velocity * a[:, None]

    return [PathLimit("acceleration", group.tangent_names, -upper, upper, values)]


def _motion_rows(grid: PathGrid, path: SmoothReference, system: System) -> list[PathLimit]:
    """Rows of controls, also of other states and quantities where the structure knows motions."""
    place = _speeds(path.group, system)
    structure: Any = system.structure
    state: Any = system.state
    motion, known = structure.motion, system.limited_quantities
    if motion is None:
        return [_torque_rows(grid, path, system, place)]

    def at(side: int, y: np.ndarray, a: np.ndarray) -> Any:
        point, y = grid.ends[side], np.maximum(y, 0.0)[:, None]
        speed, a = np.sqrt(y), a[:, None]
        xi, d1, d2, d3 = point[1:]
        return motion(
            point.x, xi * speed, d1 * y + xi * a, d2 * y * speed + 3 * d1 * speed * a,
            d3 * y**2 + 6 * d2 * y * a + 3 * d1 * a**2,
        )  # fmt: skip

    controls = system.input_index("control")
    names = tuple(system.input_names[i] for i in controls)
    least, most = (bound[controls] for bound in system.input_bounds)
    limits = [PathLimit("input", names, least, most, lambda *given: at(*given).u[:, controls])]
    first = place.stop
    low, high = system.state_limits
    others = [i for i in range(first, state.nq) if np.isfinite([low[i], high[i]]).any()]
    rates = set(system.velocities.values())
    for moves in (True, False):
        own = [i for i in others if (i in rates) == moves]

        def states(
            *given: Any, own: list[int] = own, moves: bool = moves
        ) -> np.ndarray:  # speeds by their squares, which are nearly affine in those of the path
            x = at(*given).x_out[:, own]
            return np.sign(x) * x**2 if moves else x

        if own:
            least, most = (np.sign(v[own]) * v[own] ** 2 if moves else v[own] for v in (low, high))
            where = tuple(state.coordinate_names[i] for i in own)
            limits.append(PathLimit("state", where, least, most, states))
    if known is not None:

        def quantities(*given: Any) -> np.ndarray:
            found = at(*given)
            return known.function(0.0, found.x_out, found.u)

        limits.append(PathLimit("quantity", known.names, known.lower, known.upper, quantities))
    return limits


def _torque_rows(grid: PathGrid, path: SmoothReference, system: System, place: slice) -> PathLimit:
    """Controls that move the system so: ``u₀ + B⁺ (M v̇ − F(x, u₀))``."""
    structure: Any = system.structure
    state: Any = system.state
    controls = system.input_index("control")
    p, u = system.nominal_parameters, system.nominal_input
    sides, rank = [], path.group.dim
    for point in grid.ends:
        x = np.tile(state.identity, (len(point.x), 1))
        x[:, state.coordinate_slice(structure.configuration)] = point.x
        B = structure.input_map(0.0, x, u, p)[..., controls]
        rank = min(rank, int(np.linalg.matrix_rank(B).min(initial=rank)))
        sides.append((x, structure.mass_matrix(x, p), np.linalg.pinv(B, rcond=SMALL_PIVOT)))
    if rank < path.group.dim:
        raise ValueError(
            f"{system.name}: its controls drive {rank} of {path.group.dim} freedoms, so that they "
            "do not follow any path; plan with OptimalControlProblem"
        )

    def values(side: int, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        point, (x, M, inverse) = grid.ends[side], sides[side]
        moving = x.copy()
        moving[:, place] = point.velocity * np.sqrt(np.maximum(y, 0.0))[:, None]
        rate = point.acceleration * y[:, None] + point.velocity * a[:, None]
        missing = (M @ rate[..., None])[..., 0] - structure.force(0.0, moving, u, p)
        return u[controls] + (inverse @ missing[..., None])[..., 0]

    names = tuple(system.input_names[i] for i in controls)
    lower, upper = (limit[controls] for limit in system.input_bounds)
    return PathLimit("input", names, lower, upper, values)


def _own_rows(grid: PathGrid, row: PathRow) -> PathLimit:
    where = grid.s[:-1], grid.s[1:]

    def values(side: int, y: np.ndarray, a: np.ndarray) -> np.ndarray:
        found = np.asarray(row.function(where[side], y, a), dtype=np.float64)
        if found.ndim not in (1, 2) or len(found) != len(y):
            raise ValueError(
                f"row {row.name!r} returned shape {found.shape} for {len(y)} path parameters, "
                f"expected ({len(y)},) or ({len(y)}, rows)"
            )
        return found.reshape(len(y), -1)

    count = len(grid.s) - 1
    size = values(0, np.ones(count), np.zeros(count)).shape[1]
    lower, upper = (np.broadcast_to(np.asarray(v, float), (size,)) for v in (row.lower, row.upper))
    if not (lower <= upper).all():
        k = int(np.flatnonzero(~(lower <= upper))[0])
        raise ValueError(
            f"row {row.name!r}: lower must not exceed upper, got {lower[k]:g} and {upper[k]:g}"
        )
    names = tuple(f"[{i}]" for i in range(size)) if size > 1 else ("",)
    return PathLimit(row.name, names, lower, upper, values)

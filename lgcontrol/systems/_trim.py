"""trim: equilibria and relative equilibria of a system."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import inf
from typing import Any

import casadi as ca
import numpy as np
import scipy

from ..codegen import named_options
from ..codegen._internal import (
    Status,
    UnknownNameError,
    ask_degrees,
    check_mapping,
    check_shape,
    level_outside,
    unknown_name,
)
from ..groups import LieGroup, check_element
from ._blocks import block_slices, blocks_of, circles_of, error_remedy, place_of
from ._definition import LimitedQuantities, SystemDefinition
from ._steadiness import NO_GRADIENT, ROUNDED_RATE, TrimPoint, classify, follow
from ._step import field_derivatives
from ._tracing import as_column, check_state, complete_input, complete_parameters, symbols_of

# A force whose size varies by no more than this share is the same in every configuration.
CONSTANT = 1e-9

STARTS = 8  # the first from the guess, the others from random states around it


@named_options(own="where")
def trim(
    system: SystemDefinition,
    guess: Any = None,
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

    A state that an input within its bounds holds is returned as it is, bit by bit. Otherwise the
    nearest one on the group counts, whatever inputs it takes within their bounds; limits of the
    state that the system knows are kept.

    An equilibrium has ``f(t, x, u, p) = 0`` at all times. A relative equilibrium moves with a
    constant body-fixed rate ξ and a constant input (hover with a spin, straight flight, steady
    turn, helix): ``f(X exp(τ ξ)) = f(X)``, so the motion must be a symmetry of the system, and its
    linearization is time-invariant.

    Parameters
    ----------
    guess : array_like, shape (nq,), optional
        A state near it; the system's home, put within the limits, if left out. What nothing else
        decides stays as it is there.
    u : array_like, shape (n_inputs,), optional
        Guess for the controls, and values of disturbances and noise; nominal if left out, as are
        the others where controls alone are given.
    where : mapping of str to float or array_like, optional
        Values of coordinates ("pose.z"), whole blocks ("twist"), joints ("elbow", or
        "configuration.elbow": of a joint with one degree of freedom a number is its angle, also
        where the angle is kept as [cos, sin]) and inputs ("thrust"); where an input has the name
        of its joint, "state.elbow" is the angle, "input.elbow" the torque. Angles are in rad;
        beyond two turns a warning asks whether they are degrees.
    position : array_like, optional
        Values of the coordinates x, y, z of the first block that has them, in m.
    moving : str, sequence of str, or bool
        Blocks that may keep a constant rate; True for all. A block whose rate `where` fixes at
        other values than zero moves without being named. Increments of discrete systems hide it:
        name their moving blocks.
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
    >>> climb = lift.trim(where={"speed": 2.0})
    >>> climb.kind, climb.u
    ('relative equilibrium', array([10.81]))
    """
    t = float(check_shape("t", t, ()))
    p = complete_parameters(system, p)
    is_given = guess is not None
    x = check_state(system, "guess", guess) if is_given else system.home.copy()
    u = system.nominal_input if u is None else complete_input(system, "u", u)
    where = check_mapping("where", where, f"{system.state.coordinate_names[0]!r}: 0.5")
    wishes = read_wishes(system, where, position)
    x, u = x.copy(), u.copy()
    set_wishes(system, wishes, x, u)
    # Single coordinates of a quaternion or a circle may be wished for: the others follow.
    x = check_element("x with its wishes", x, system.state, tolerance=inf)
    free = np.array([i for i in system.input_index() if i not in wishes.inputs], dtype=int)
    blocks = read_moving(system, moving, wishes, p)
    bounds = _bounds(system, wishes, free)
    limits = TrimLimits.of(system, wishes)
    if is_given:
        _warn_beyond(system, t, x, u, p)
    else:
        limits.clip(x)
    starts = list(_starts(system, x, u, free, bounds, limits))
    for name, condition in check_mapping("conditions", conditions, "'level': f").items():
        if not callable(condition):
            raise TypeError(
                f"conditions[{name!r}] must be a function (t, x, u, p) → column, got {condition!r}"
            )
    if not (blocks or conditions):
        _refuse_without_support(system, t, [at for at, _ in starts], u, p, free)

    def solve(
        symmetry: bool, limits: TrimLimits, hold: bool = False
    ) -> tuple[TrimEquations, Nearest]:
        quantities = limits.quantities
        equations = trim_equations(
            system, wishes, blocks, conditions or {}, symmetry=symmetry, limited=quantities
        )
        m, count = len(u), 0 if quantities is None else len(quantities.names)
        units = np.array([*(entry.unit for entry in system.inputs), *range(count)], dtype=object)
        columns = np.concatenate([free, m + np.arange(count)])
        box, full = bounds, starts
        if quantities is not None:
            box = (
                np.concatenate([bounds[0], quantities.lower]),
                np.concatenate([bounds[1], quantities.upper]),
            )
            full = [
                (at, np.concatenate([by, quantities.function(t, at, by, p)])) for at, by in starts
            ]

        def evaluate(x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            rows, by_x, by_u = equations.function(t, x, u, p)
            return rows.full().ravel(), np.hstack([by_x.full(), by_u.full()[:, columns]])

        project = system.project if system.errors is not None else None
        onto = None if project is None else lambda x: np.asarray(project(x, p)).ravel()
        scale, tried = _scales(*box, columns, units[columns], full, evaluate), []
        rows = row_scales(evaluate, full, scale)
        problem = TrimDescent(
            system.state, evaluate, full[0], columns, box, limits, scale, rows, hold
        )
        # Free steps come further; where redundant rows stop them, steps on the constraints go on.
        for way in (problem, replace(problem, onto=onto)) if onto and not hold else (problem,):
            for start in full[:1] if hold else full:
                tried.append(way.solve(start))
                if tried[-1].solved:
                    break
            if tried[-1].solved:
                break
        best = min(tried, key=_size)
        return equations, replace(best, u=best.u[:m])

    def point(found: Nearest, at: np.ndarray) -> TrimPoint:
        by = _cleared(found.u, u)
        kind = classify(system, t, at, by, p) if found.solved else "none"
        moved = system.state.minus(at, x)
        is_other = is_given and bool((np.abs(moved) > OTHER).any())
        rate = system.f(t, at, by, p)
        return TrimPoint(at, by, t, p, rate, kind, system, moved if is_other else None)

    held = point(solve(True, replace(limits, quantities=None), hold=True)[1], x)
    if held.kind != "none":
        return held
    equations, best = solve(True, limits)
    found = best if best.solved else solve(False, limits)[1]
    result = point(found, _cleared(found.x, x))
    if result.kind != "none":
        return result
    if found.solved:  # without the equations of a symmetry, or they do not suffice
        raise TrimError(_not_a_symmetry(system, result), TrimStatus.NOT_A_SYMMETRY, result)
    if len(limits) or limits.quantities is not None:
        beyond = solve(True, TrimLimits.none())[1]
        result = point(beyond, _cleared(beyond.x, x))
        if result.kind != "none":
            names = _beyond(system, t, result.x, result.u, p)
            raise TrimError(
                f"{system.name}: trim points are beyond {names}", TrimStatus.LIMITS, result
            )
    result = point(best, _cleared(best.x, x))
    message = _infeasible(system, equations, best, result.u, free, blocks, STARTS)
    if told := system.unsolved(t, result.x, result.u, p):
        message = f"{system.name}: no trim point found from {STARTS} starts; {told}"
    raise TrimError(message, TrimStatus.INFEASIBLE, result)


def _cleared(value: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Zeros where steps of the solver left less than rounding next to one, and none that are -0."""
    left = (np.abs(value) < np.finfo(float).eps) & (value != guess)
    return np.where(left, 0.0, value) + 0.0


def _size(found: Nearest) -> float:
    size = np.abs(found.scaled).max(initial=0.0)
    return float(size) if np.isfinite(size) else np.inf


def _bounds(
    system: SystemDefinition, wishes: Wishes, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = system.input_bounds
    for index, value in wishes.inputs.items():
        if not lower[index] <= value <= upper[index]:
            raise ValueError(
                f"where: {system.input_names[index]} = {value:g} is outside its bounds "
                f"[{lower[index]:g}, {upper[index]:g}] {system.inputs[index].unit}"
            )
    return lower[free], upper[free]


def _scales(
    lower: np.ndarray,
    upper: np.ndarray,
    columns: np.ndarray,
    units: np.ndarray,
    starts: Sequence[tuple[np.ndarray, np.ndarray]],
    evaluate: Evaluate,
) -> np.ndarray:
    """Half the range of each input; else its size, at least one that moves as the states do.

    That change has an effect of one on equations, each next to the length of its gradient by the
    states. Inputs of one unit share the largest: which of them holds a state is asked in that unit.
    """
    jacobians, count = np.abs([evaluate(x, u)[1] for x, u in starts]), len(columns)
    by_x, by_u = np.split(jacobians, [jacobians.shape[2] - count], axis=2)
    lengths = np.linalg.norm(by_x, axis=2)
    lengths = np.where(np.isfinite(lengths), lengths, 0.0).max(axis=0)
    effects = np.where(np.isfinite(by_u), by_u, 0.0).max(axis=0)
    has = lengths > 0
    effect = np.linalg.norm(effects[has] / lengths[has, None], axis=0)
    least = np.divide(1.0, effect, out=np.zeros(count), where=effect > 0)
    shared = np.array([least[units == unit].max() for unit in units])
    half = (upper - lower) / 2
    one = np.maximum(np.abs(starts[0][1][columns]), np.where(shared > 0, shared, 1.0))
    return np.where(np.isfinite(half) & (half > 0), half, one)


def _starts(
    system: SystemDefinition,
    x: np.ndarray,
    u: np.ndarray,
    free: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
    limits: TrimLimits,
) -> Iterable[tuple[np.ndarray, np.ndarray]]:
    yield x, u
    rng = np.random.default_rng(0)
    low, high = np.maximum(bounds[0], u[free] - 1.0), np.minimum(bounds[1], u[free] + 1.0)
    finite = np.isfinite(bounds[0]) & np.isfinite(bounds[1])
    low, high = np.where(finite, bounds[0], low), np.where(finite, bounds[1], high)
    for size in np.geomspace(0.1, 1.5, STARTS - 1):
        other = u.copy()
        other[free] = rng.uniform(low, high)
        moved = system.state.plus(x, size * rng.normal(size=system.state.dim))
        limits.clip(moved)
        yield moved, other


@dataclass(frozen=True, eq=False)
class TrimLimits:
    """Limits of coordinates that are entries of the tangent vector as well, such as joints.

    Limits of other values stand in `quantities`.
    """

    coordinates: np.ndarray
    tangents: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    quantities: LimitedQuantities | None = None

    @classmethod
    def none(cls) -> TrimLimits:
        """No limits."""
        return cls(np.zeros(0, int), np.zeros(0, int), np.zeros(0), np.zeros(0))

    @classmethod
    def of(cls, system: SystemDefinition, wishes: Wishes) -> TrimLimits:
        """Limits of a system; a wish for a coordinate counts before them."""
        lower, upper = system.state_limits
        E, other = (system.state.rate_matrix(system.state.random(seed)) for seed in (0, 1))
        # A coordinate that is an entry: its rate is that entry, wherever the state is.
        is_entry = ((E == 1).sum(axis=1) == 1) & ((E != 0).sum(axis=1) == 1)
        is_entry &= (E == other).all(axis=1) & (np.isfinite(lower) | np.isfinite(upper))
        found = [i for i in np.flatnonzero(is_entry) if i not in wishes.coordinates]
        return cls(
            np.array(found, int),
            E[found].argmax(axis=1),
            lower[found],
            upper[found],
            system.limited_quantities,
        )

    def __len__(self) -> int:
        """Count them."""
        return len(self.coordinates)

    def clip(self, x: np.ndarray) -> None:
        """Put the limited coordinates of x within, in place."""
        x[self.coordinates] = np.clip(x[self.coordinates], self.lower, self.upper)


def _beyond(system: SystemDefinition, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray) -> str:
    """Limits that a state and an input exceed, with the values."""
    values = dict(zip(system.state.coordinate_names, x, strict=True))
    limited = system.limited_quantities
    if limited is not None:
        values |= dict(zip(limited.names, limited.function(t, x, u, p), strict=True))
    return ", ".join(
        f"the limits of {name} ({values[name]:.5g} is outside [{low:.5g}, {high:.5g}])"
        for name, (low, high) in system.limits.items()
        if not low <= values[name] <= high
    )


def _warn_beyond(
    system: SystemDefinition, t: float, x: np.ndarray, u: np.ndarray, p: np.ndarray
) -> None:
    beyond = _beyond(system, t, x, u, p)
    if beyond:
        warnings.warn(
            f"{system.name}: the given state is beyond {beyond}; it is trimmed there if it can be",
            RuntimeWarning,
            stacklevel=level_outside(),
        )


def _refuse_without_support(
    system: SystemDefinition,
    t: float,
    states: list[np.ndarray],
    u: np.ndarray,
    p: np.ndarray,
    free: np.ndarray,
) -> None:
    """Refuse at once where no configuration can help: nothing carries the weight.

    Forces along rows that no free input reaches, whose size is the same in every configuration,
    never vanish: the weight of a free base, in its own axes. Disturbances keep their values.
    """
    known, state = system.structure, system.state
    if known is None or len(states) < 2:
        return
    at = state.coordinate_slice(known.velocity)  # type: ignore[attr-defined]
    rows = state.tangent_slice(known.velocity)  # type: ignore[attr-defined]
    blocks = block_slices(state)[1]
    still = [np.array(x) for x in states]
    for x in still:
        x[at] = 0.0
    forces = np.array([known.force(t, x, u, p) for x in still])
    reach = np.max([np.abs(known.input_map(t, x, u, p)) for x in still], axis=0) > 0
    idle = ~reach[:, free].any(axis=1)
    q = state.tangent_slice(known.configuration).start  # type: ignore[attr-defined]
    units = np.array(state.tangent_units[q : q + len(idle)])
    for block in blocks.values():
        inside = np.zeros(len(idle), bool)
        inside[slice(max(block.start - q, 0), max(block.stop - q, 0))] = True
        carried = inside & idle & (units == "m")
        if block.start < q or not carried.any():
            continue
        size = np.linalg.norm(forces[:, carried], axis=1)
        if size.min() > 0 and np.ptp(size) <= CONSTANT * size.max():
            names = [state.tangent_names[rows][i] for i in np.flatnonzero(inside & idle)]
            others = np.setdiff1d(np.flatnonzero(reach[inside & idle].any(axis=0)), free)
            given = ", ".join(system.input_names[i] for i in others)
            held = f"; the inputs {given} reach them but keep their values" if given else ""
            remedy = "give values of these inputs that carry it, " if given else ""
            x = states[0]
            point = TrimPoint(x, u, t, p, system.f(t, x, u, p), "none", system)
            raise TrimError(
                f"{system.name} cannot be at rest: none of its {len(free)} free controls reaches "
                f"{', '.join(names)} ({len(names)} rows of M v̇ = F), where a force of "
                f"{size[0]:.5g} N, its weight, is the same in every configuration{held}; fix the "
                f"base, {remedy}add inputs that carry it, or name what may move (moving=)",
                TrimStatus.INFEASIBLE,
                point,
            )


class TrimStatus(Status, StrEnum):
    """Why there is no trim point.

    ``INFEASIBLE``: no state near the starts balances. ``NOT_A_SYMMETRY``: what balances for a
    moment does not go on, as the motion is no symmetry of the system. ``LIMITS``: what balances is
    beyond limits.
    """

    INFEASIBLE = "infeasible"
    NOT_A_SYMMETRY = "not a symmetry"
    LIMITS = "limits"

    @property
    def is_success(self) -> bool:
        """A trim point is what `trim` returns: none of these is one."""
        return False


class TrimError(RuntimeError):
    """No trim point was found.

    Attributes
    ----------
    status : TrimStatus
    best : TrimPoint
        Best iterate.
    """

    def __init__(self, message: str, status: TrimStatus, best: TrimPoint) -> None:
        super().__init__(message)
        self.status = status
        self.best = best

    def __reduce__(self) -> tuple[Any, ...]:
        return TrimError, (self.args[0], self.status, self.best)


# What was asked for, as equations


@dataclass
class Wishes:
    """What `trim` was asked for, by position.

    Wanted are values of coordinates, of blocks of the state, and of inputs.
    """

    coordinates: dict[int, float] = field(default_factory=dict)
    blocks: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TrimEquations:
    """Rows that must vanish.

    The function is ``(t, x, u, p) → rows, D_x, D_u`` with derivatives for displacements of x, and
    for u.
    """

    names: list[str]
    units: list[str]
    function: ca.Function


def read_wishes(system: SystemDefinition, where: Mapping[str, Any], position: Any) -> Wishes:
    """Sort wishes by what they name; unknown names are refused."""
    wishes = Wishes()
    names = list(system.state.coordinate_names)
    blocks = blocks_of(system.state)
    # Joints of one coordinate by their own names.
    inner = {
        name: part.start
        for name, part in block_slices(system.state)[0].items()
        if part.stop - part.start == 1
    }
    circles = circles_of(system.state)  # one angle each

    def wish(index: int, value: Any, twice: str) -> None:
        if index in wishes.coordinates:
            raise ValueError(twice)
        wishes.coordinates[index] = float(value)

    for key, value in where.items():
        of_state = {*names, *blocks, *inner, *circles}
        place, name = place_of("where", key, of_state, system.input_names)
        what = f"where[{key!r}]"
        if place == "input":
            wishes.inputs[system.input_names.index(name)] = _number(what, value)
        elif name in circles and np.size(value) == 1:
            group, part = circles[name]
            angle = _number(what, np.squeeze(value))
            ask_degrees(f"where: {name}", angle)
            pair = np.asarray(group.exp([angle]))
            for index, entry in zip(range(part.start, part.stop), pair, strict=True):
                wish(index, entry, f"where gives {names[index]} twice, the second time as {key!r}")
        elif name in names or name in inner and name not in blocks:
            index = names.index(name) if name in names else inner[name]
            twice = f"where gives {names[index]} twice, the second time as {key!r}"
            wish(index, _number(what, np.squeeze(value)), twice)
        elif name in blocks:
            group = blocks[name][0]
            is_number = group.nq == 1 and np.ndim(value) == 0
            wishes.blocks[name] = check_element(what, [value] if is_number else value, group)
        else:
            valid = [*names, *blocks, *circles, *system.input_names]
            remedy = error_remedy(name, system.error_names, system.state.tangent_names)
            raise UnknownNameError(unknown_name("state, block or input", name, valid) + remedy)
    if position is not None:
        for index, value in _position(system, position).items():
            wish(index, value, f"{names[index]} is given in position and in where")
    _ask_degrees(system, wishes)
    return wishes


def _ask_degrees(system: SystemDefinition, wishes: Wishes) -> None:
    """Ask whether wished angles that are several turns are degrees."""
    names, units = system.state.coordinate_names, system.state.coordinate_units
    places = blocks_of(system.state)
    wished = {names[i]: (value, units[i]) for i, value in wishes.coordinates.items()}
    for block, values in wishes.blocks.items():
        part = places[block][1]
        wished |= dict(zip(names[part], zip(values, units[part], strict=True), strict=True))
    for i, value in wishes.inputs.items():
        wished[system.input_names[i]] = value, system.inputs[i].unit
    for name, (value, unit) in wished.items():
        if unit == "rad":
            ask_degrees(f"where: {name}", value)


def _number(name: str, value: Any) -> float:
    return float(check_shape(name, value, ()))


def _position(system: SystemDefinition, position: Any) -> dict[int, float]:
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
    system: SystemDefinition, moving: str | Iterable[str] | bool, wishes: Wishes, p: np.ndarray
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


def set_wishes(system: SystemDefinition, wishes: Wishes, x: np.ndarray, u: np.ndarray) -> None:
    """Put the wished values into a state and an input, in place."""
    for name, value in wishes.blocks.items():
        x[blocks_of(system.state)[name][1]] = value
    for index, value in wishes.coordinates.items():
        x[index] = value
    for index, value in wishes.inputs.items():
        u[index] = value


def trim_equations(
    system: SystemDefinition,
    wishes: Wishes,
    moving: list[str],
    conditions: Mapping[str, Callable[..., Any]],
    *,
    symmetry: bool = True,
    limited: LimitedQuantities | None = None,
) -> TrimEquations:
    """Write the equations of a (relative) equilibrium with wishes and conditions.

    Limited quantities are equal to variables of their own, after the inputs, which bounds keep.

    The field must vanish in blocks that do not move, and projection leave the state alone. Along
    the motion ``X exp(τ ξ)``, with ξ the rate of the moving blocks, the field must not change: its
    derivative for τ vanishes (left out without `symmetry`).
    """
    t, x, u, p = symbols_of(system)
    state, count = system.state, 0 if limited is None else len(limited.names)
    whole = system.symbol.sym("u", system.n_inputs + count)  # inputs, then limited quantities
    u, own = whole[: system.n_inputs], whole[system.n_inputs :]
    units = [_unit_of_rate(unit, system) for unit in state.tangent_units]
    rate = system.f(t, x, u, p)
    rows: list[tuple[Any, str, str]] = []
    rates: list[int] = []
    keep = np.zeros(state.dim)
    for name, (group, at, part) in blocks_of(state).items():
        indices = range(part.start, part.stop)
        if name in moving:
            keep[part] = 1.0
        else:
            rates += indices
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
    if system.errors is not None and system.errors.constraints is not None:
        held = system.errors.constraints(x, p)
        labels = system.errors.constraint_names or [f"constraint {i}" for i in range(held.numel())]
        rows += [(held[i], label, "") for i, label in enumerate(labels)]
    elif system.project is not None:
        away = state.minus(system.project(x, p), x)
        rows += [
            (away[i], f"{state.tangent_names[i]} away from the constraints", state.tangent_units[i])
            for i in range(state.dim)
        ]
    if symmetry and (moving or system.f.function.jac_sparsity(0, 0).nnz()):
        change = _change(system, ca.DM(keep))(t, x, u, p)
        rows += [
            (change[i], f"change of the rate of {name}", _unit_of_rate(units[i], system))
            for i, name in enumerate(state.tangent_names)
        ]
    for name, condition in conditions.items():
        column = as_column(system, name, condition(t, x, u, p), None)
        rows += [(column[k], f"condition {name}", "") for k in range(column.shape[0])]
    if limited is not None:
        away = limited.function(t, x, u, p) - own
        rows += [
            (away[k], f"{name} away from its value", unit)
            for k, (name, unit) in enumerate(zip(limited.names, limited.units, strict=True))
        ]
    column = ca.vertcat(*(row for row, _, _ in rows))
    Df, Bf = system.derivatives(t, x, u, p)
    results = [
        ca.vertcat(rate[rates], column),
        ca.vertcat(Df[rates, :], ca.jacobian(column, x) @ state.rate_matrix(x)),
        ca.vertcat(
            ca.horzcat(Bf[rates, :], system.symbol(len(rates), count)),
            ca.jacobian(column, whole),
        ),
    ]
    return TrimEquations(
        [f"rate of {state.tangent_names[i]}" for i in rates] + [name for _, name, _ in rows],
        [units[i] for i in rates] + [unit for _, _, unit in rows],
        ca.Function(
            "trim_equations",
            [t, x, whole, p],
            [ca.densify(system.symbol(result)) for result in results],
            [*"txup"],
            ["rows", "D_x", "D_u"],
        ),
    )


def _change(system: SystemDefinition, keep: ca.DM) -> ca.Function:
    """Derivative of the field along the motion with the rate of the moving blocks."""
    t, x, u, p = symbols_of(system)
    s = system.symbol.sym("s")
    motion = system.state.plus(x, s * keep * system.f(t, x, u, p))
    later = system.f(t + s, motion, u, p)
    slope = ca.Function("slope", [s, t, x, u, p], [ca.jacobian(later, s)])
    return ca.Function("change", [t, x, u, p], [slope(0, t, x, u, p)])


# The solution of equations that is nearest to a given point, by Gauss–Newton on the group

# Weights of the distance from the given point, decreasing: the last equations are solved alone,
# with the shortest steps, so that the solution is nearest up to the square of the one before.
WEIGHTS = (0.3, 0.03, 1e-3, 1e-5, 0.0)
# Inputs are near to those given only as far as the state leaves them free: they are not traded.
EFFORT = 1e-4
OTHER = 1e-6  # from the state that was given, in tangent coordinates: another one
MAX_STEPS = 40  # each weight starts where the one before ended, and most take three
SOLVED = 1e-9  # scaled residual; quadratic convergence leaves 1e-14 where the equations are regular

Evaluate = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""``(x, u) → r, J`` with columns of J for a displacement of x, then for the free inputs."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """Iterate at which Gauss–Newton stopped.

    `scaled` is the residual of the equations divided by the length of each equation's gradient:
    about the displacement that is missing.
    """

    x: np.ndarray
    u: np.ndarray
    residual: np.ndarray
    scaled: np.ndarray

    @property
    def solved(self) -> bool:
        """Whether every equation holds."""
        return bool(np.abs(self.scaled).max(initial=0.0) <= SOLVED)


def row_scales(
    equations: Evaluate, points: Sequence[tuple[np.ndarray, np.ndarray]], scale: np.ndarray
) -> np.ndarray:
    """One over the length of each equation's gradient, the longest at some points.

    Each row has its own, so that a fast state does not loosen the equations of the others. At
    several points, because a gradient may vanish at one of them. It is 1 if the gradient vanishes
    at all of them, or is rounding next to the longest one.
    """
    gradients = [in_scaled_variables(equations(x, u)[1], scale) for x, u in points]
    lengths = np.linalg.norm(gradients, axis=-1)
    length = np.where(np.isfinite(lengths), lengths, 0.0).max(axis=0)
    least = max(NO_GRADIENT, ROUNDED_RATE * length.max(initial=0.0))
    return 1.0 / np.where(length > least, length, 1.0)


def in_scaled_variables(jacobian: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Derivatives with respect to the free inputs, in the last columns, times their scale."""
    states = jacobian.shape[1] - len(scale)
    return np.hstack([jacobian[:, :states], jacobian[:, states:] * scale])


@dataclass
class TrimDescent:
    """Solve ``r(x, u) = 0`` near a target, inputs within bounds, coordinates within limits.

    With constraints, steps end on them. Redundant rows have one rank there and another one beside
    them, where accelerations are no smooth function of x.
    """

    group: LieGroup  # of x
    equations: Evaluate
    target: tuple[np.ndarray, np.ndarray]  # x and u to stay near to; u only where x leaves it free
    free: np.ndarray  # positions of the free inputs in u
    bounds: tuple[np.ndarray, np.ndarray]  # of the free inputs
    limits: TrimLimits
    scale: np.ndarray  # change of each free input that counts like one rad, m or m/s of the state
    row_scale: np.ndarray  # factor of each equation; see `row_scales`
    holds: bool = False  # whether x stays what it is, bit by bit
    onto: Callable[[np.ndarray], np.ndarray] | None = None  # projection onto the constraints

    def solve(self, start: tuple[np.ndarray, np.ndarray]) -> Nearest:
        """Descend with one weight of the distance after the other."""
        x, u = start[0], start[1].copy()
        u[self.free] = np.clip(u[self.free], *self.bounds)
        residual, jacobian = self.equations(x, u)
        if not (np.isfinite(residual).all() and np.isfinite(jacobian).all()):
            return Nearest(x, u, residual, np.full(residual.shape, np.inf))
        for weight in WEIGHTS:
            x, u = self.descend(x, u, weight)
        residual, _ = self.equations(x, u)
        return Nearest(x, u, residual, residual * self.row_scale)

    def descend(self, x: np.ndarray, u: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        """Levenberg–Marquardt steps for one weight of the distance."""
        damping = 0.0
        rows, jacobian = self._rows(x, u, weight)
        cost = rows @ rows
        for _ in range(MAX_STEPS):
            move = self._move(rows, jacobian, x, u, damping)
            new_x, new_u = self._moved(x, u, move)
            new_rows, new_jacobian = self._rows(new_x, new_u, weight)
            new_cost = new_rows @ new_rows
            if np.isfinite(new_cost) and np.isfinite(new_jacobian).all() and new_cost < cost:
                gained = cost - new_cost
                x, u, rows, jacobian, cost = new_x, new_u, new_rows, new_jacobian, new_cost
                damping = damping / 10 if damping > 1e-6 else 0.0
                if gained <= 1e-14 * cost:
                    break
            elif np.abs(move).max(initial=0.0) < 1e-12 or damping > 1e8:
                break
            else:
                damping = max(10 * damping, 1e-4)
        return x, u

    def _scaled_equations(self, x: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        residual, jacobian = self.equations(x, u)
        return residual, in_scaled_variables(jacobian, self.scale)

    def _rows(self, x: np.ndarray, u: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
        residual, jacobian = self._scaled_equations(x, u)
        residual, jacobian = residual * self.row_scale, jacobian * self.row_scale[:, None]
        if not weight:
            return residual, jacobian
        away = self.group.minus(x, self.target[0])
        n, k = self.group.dim, len(self.free)
        distance = np.concatenate([away, EFFORT * (u - self.target[1])[self.free] / self.scale])
        slope = np.diag(np.r_[np.ones(n), np.full(k, EFFORT)])
        slope[:n, :n] = self.group.right_jacobian_inverse(away)
        return (
            np.concatenate([residual, weight * distance]),
            np.vstack([jacobian, weight * slope]),
        )

    def _move(
        self, rows: np.ndarray, jacobian: np.ndarray, x: np.ndarray, u: np.ndarray, damping: float
    ) -> np.ndarray:
        """Damped Gauss–Newton step in scaled variables, within bounds and limits."""
        n, count, limits = self.group.dim, jacobian.shape[1], self.limits
        if damping:
            jacobian = np.vstack([jacobian, np.sqrt(damping) * np.eye(count)])
            rows = np.concatenate([rows, np.zeros(count)])
        lower, upper = (np.full(count, sign * np.inf) for sign in (-1.0, 1.0))
        lower[limits.tangents] = limits.lower - x[limits.coordinates]
        upper[limits.tangents] = limits.upper - x[limits.coordinates]
        if self.holds:
            lower[:n] = upper[:n] = 0.0
        lower[n:] = (self.bounds[0] - u[self.free]) / self.scale
        upper[n:] = (self.bounds[1] - u[self.free]) / self.scale
        # What is at bounds of zero width cannot move at all.
        moves, move = upper - lower > 0, np.zeros(count)
        if not moves.any():
            return move
        move[moves] = np.linalg.lstsq(jacobian[:, moves], -rows, rcond=1e-12)[0]
        if (move < lower).any() or (move > upper).any():
            within = (lower[moves], upper[moves])
            move[moves] = scipy.optimize.lsq_linear(
                jacobian[:, moves], -rows, within, method="bvls"
            ).x
        return move

    def _moved(
        self, x: np.ndarray, u: np.ndarray, move: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        n = self.group.dim
        moved = u.copy()
        moved[self.free] = np.clip(u[self.free] + move[n:] * self.scale, *self.bounds)
        if self.holds:
            return x, moved
        at = self.group.normalize(self.group.plus(x, move[:n]))
        self.limits.clip(at)
        if self.onto is not None and np.isfinite(on := self.onto(at)).all():
            at = on
        return at, moved


# Why there is none


def _infeasible(
    system: SystemDefinition,
    equations: TrimEquations,
    best: Nearest,
    u: np.ndarray,
    free: np.ndarray,
    moving: list[str],
    starts: int,
) -> str:
    """Say which equation is worst, which inputs are at a bound and what had to stay still."""
    worst = int(np.argmax(np.abs(np.nan_to_num(best.scaled, nan=np.inf))))
    value = f"{best.residual[worst]:.4g} {equations.units[worst]}".rstrip()
    text = f"{system.name}: no trim point found from {starts} starts; the best one leaves "
    text += f"{equations.names[worst]} = {value}"
    at = [
        f"{entry.name} at its {side} bound {limit:g} {entry.unit}".rstrip()
        for entry, value in ((system.inputs[i], u[i]) for i in free)
        for side, limit in (("lower", entry.lower), ("upper", entry.upper))
        if abs(value - limit) <= 1e-9 * max(1.0, abs(value))
    ]
    if at:
        text += f", with {', '.join(at)}"
    still = [name for name in blocks_of(system.state) if name not in moving]
    if still:
        text += f"; blocks that had to stay still: {', '.join(still)} (see moving=)"
        if system.is_discrete:
            text += "; in a discrete system blocks that move have to be named there"
    return text


def _unit_of_rate(unit: str, system: SystemDefinition) -> str:
    """Unit of what a field says of a coordinate: of rad "rad/s", of m/s "m/s²"."""
    if system.is_discrete:
        return f"{unit} per sample".lstrip()
    if unit.endswith("/s"):
        return f"{unit}²"
    return f"{unit or '1'}/s" if "/" not in unit else f"({unit})/s"


def _not_a_symmetry(system: SystemDefinition, point: TrimPoint) -> str:
    """Say what changes along the motion."""
    here = field_derivatives(system)(point.t, point.x, point.u, point.p)
    later = follow(system, point.t, point.x, point.u, point.p, here)
    names, units = system.state.tangent_names, system.state.tangent_units
    off = np.nan_to_num(np.abs(later.there.rate - here.rate), nan=np.inf)
    k, i = np.unravel_index(int(np.argmax(off / later.tolerance)), off.shape)
    what = f"the rate of {names[i]} changes by {off[k, i]:.3g} {_unit_of_rate(units[i], system)}"
    if off[k, i] <= later.tolerance[k, i]:
        slopes = np.abs(later.there.A - here.A)
        k, i, j = np.unravel_index(int(np.argmax(slopes)), slopes.shape)
        what = f"the rate of {names[i]} answers differently to {names[j]}"
    return (
        f"{system.name}: the motion with the wished values is not a symmetry of the system, so it "
        f"is no relative equilibrium: {what} within {later.t[k] - point.t:.3g} s"
    )

"""Bound: limits on what a name or a function stands for, and what contradicts itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Value, named_options
from ..codegen._internal import NO_LIMIT, UnknownNameError, ask_degrees, check_shape, unknown_name
from ..groups import LieGroup
from ..systems import System
from ..systems._internal import block_slices, error_remedy, place_of
from ._expressions import StageFunction, entries_of, parameter_index, quantities_of

Where = Literal["path", "terminal", "both", "start"]
# Places of bounds that hold along the horizon, not at an end of it alone.
ALONG = ("path", "both")
# What a bound calls all limits that a system knows.
LIMITS = "limits"
# Share by which limits may cross and still mean the same number.
ROUNDING = 1e-9


class ShownRow(NamedTuple):
    """What a person reads of a bound whose row is made for solvers: ``(t, x, u, p) → number``.

    Violations of it between nodes are small beside its size, if that is below its range in a plan.
    """

    function: StageFunction
    lower: float
    upper: float
    unit: str
    size: float = np.inf


@named_options(own="of at")
@dataclass(frozen=True, eq=False)
class Bound:
    """``lower ≤ g ≤ upper`` along the horizon.

    Parameters
    ----------
    of : str or callable
        The bounded quantity. A block of the state at any depth is bounded by its coordinates, one
        of SO2 by its angle in (−π, π]: ``"joint1"`` or ``"configuration.joint1"``,
        ``"velocity.joint1"``. One coordinate is ``"pose.z"``. For a block that is more than one
        number, ``"pose.rx"`` is a tangent coordinate: that component of minus(x, x_ref). It may be
        an input, or a quantity of the system or an entry of one (``"deflection"``,
        ``"deflection.elbow"``; its known limits if none are given). ``"limits"`` is all whose
        limits the system knows. A smooth function is ``(t, x, u, p) → column``. A name may be both
        a part of the state and an input, such as a driven joint's. Write ``"state.joint1"`` for the
        angle, ``"input.joint1"`` for the torque.
    lower, upper : float, array_like or str
        Limits; a name is that of a parameter, whose value may change from call to call. One that is
        left out is infinite; where both are, they are those that the system knows
        (`System.limits`), of joints and their rates for example. Inputs keep theirs in any case.
    soft : float or str, optional
        Weight w of the penalty ``w (s + s²/2)``, per s, on the excess s over the limits, or the
        name of a parameter. Without it the bound is a hard constraint. Each node counts as long as
        its step, also in phases of free durations.
    at : {"both", "path", "terminal", "start"} or range
        Nodes at which it holds: along the horizon, at an end of it, or by their numbers, as in
        ``range(10, 11)`` for a gate that is passed at the tenth. Of the first state only what
        depends on its free part (see ``free`` of `OptimalControlProblem`) is bounded; what depends
        on inputs has no end value.
    name : str, optional
        What messages call it.
    obstacle : object, optional
        What it keeps a body out of, for scenes and pictures; `keep_out` and `Cone` say it.
    shown : ShownRow, optional
        What records and pictures show in its place; `keep_out` and `Cone` say it.

    Examples
    --------
    >>> Bound("twist", lower=-2.0, upper=2.0, soft=100.0).label
    'twist'
    """

    of: str | StageFunction
    lower: ArrayLike | str = -np.inf
    upper: ArrayLike | str = np.inf
    soft: float | str | None = None
    at: Where | range = "both"
    name: str | None = None
    obstacle: Any = None
    shown: ShownRow | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.of, str) or callable(self.of)):
            raise TypeError(
                "a Bound is of a name or a function (t, x, u, p) → column, as in "
                f"Bound('speed', -1.0, 1.0); got {self.of!r}"
            )
        low, high = self._limits()
        for side, limit in (("lower", low), ("upper", high)):
            if np.isnan(limit).any():
                raise ValueError(
                    f"bound {self.label!r}: {side} is not a number, got {getattr(self, side)}: "
                    "leave it out where there is no limit"
                )
        are_alike = low.shape == high.shape or not (low.shape and high.shape)
        if are_alike and not (low <= high).all():  # other sizes are told later
            raise ValueError(
                f"bound {self.label!r}: lower must not exceed upper, got {self.lower} and "
                f"{self.upper}"
            )
        check_nodes(f"bound {self.label!r}", self.at)
        weight = self.soft
        if not (weight is None or isinstance(weight, str) or (np.isfinite(weight) and weight > 0)):
            raise ValueError(
                f"bound {self.label!r}: soft must be a positive weight, not {self.soft}"
            )

    def _limit(self, side: str, unknown: float, size: int | None = None) -> np.ndarray:
        """A limit as numbers, or what stands for one that is a parameter.

        NaN is left to the comparison of the two limits, which it fails.
        """
        value = getattr(self, side)
        try:
            limit = np.asarray(unknown if isinstance(value, str) else value, dtype=np.float64)
        except (TypeError, ValueError):
            raise TypeError(
                f"bound {self.label!r}: {side} must be a number, a list of numbers or the name of "
                f"a parameter, not {value!r}"
            ) from None
        if size is None or limit.ndim == 0:
            return limit if size is None else np.full(size, limit)
        return check_shape(f"{side} of bound {self.label!r}", limit, (size,), finite=False)

    def _limits(self, size: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Both limits, infinite for what is a parameter; one a row where there are so many."""
        return self._limit("lower", -np.inf, size), self._limit("upper", np.inf, size)

    @property
    def label(self) -> str:
        """Name for messages; of a lambda the line where it stands."""
        if self.name is not None or isinstance(self.of, str):
            return self.name or str(self.of)
        name, code = getattr(self.of, "__name__", "bound"), getattr(self.of, "__code__", None)
        if name == "<lambda>" and code is not None:
            return f"lambda of {Path(code.co_filename).name}:{code.co_firstlineno}"
        return name


class NamedRows(NamedTuple):
    """A function ``(t, x, u, p) → column`` that a bound is of, with what messages call its rows.

    `share` is a factor of the weight of a soft bound.
    """

    function: StageFunction
    names: tuple[str, ...]
    share: float = 1.0

    def __call__(self, t: Value, x: Value, u: Value, p: Value) -> Value:
        """Return what the function does."""
        return self.function(t, x, u, p)


def check_nodes(label: str, at: Any) -> None:
    """Refuse what is neither a place by its word nor a range of nodes."""
    if isinstance(at, range):
        if not at:
            raise ValueError(
                f"{label}: at={at} has no node, so that it never counts: range(10, 11) is node 10"
            )
    elif not isinstance(at, str) or at not in get_args(Where):
        k = at if isinstance(at, int) else 10
        raise UnknownNameError(
            f"{label}: {unknown_name('place', str(at), get_args(Where))} Node {k} is "
            f"range({k}, {k + 1})."
        )


def check_numbers(label: str, at: range, horizon: int) -> None:
    """Refuse numbers of nodes that a horizon does not have."""
    if not (min(at) >= 0 and max(at) <= horizon):
        raise ValueError(f"{label} at {place_text(at)}: nodes are 0 to {horizon}")


def place_text(at: str | range) -> str:
    """Nodes at which a bound holds, for messages: "terminal", "node 5", "nodes 5 to 9"."""
    if isinstance(at, str) or not at:
        return str(at)
    nodes = f"node {at[0]}" if len(at) == 1 else f"nodes {min(at)} to {max(at)}"
    return nodes + (f" in steps of {abs(at.step)}" if len(at) > 1 and abs(at.step) > 1 else "")


def with_known_limits(system: System, bound: Bound) -> Bound:
    """A bound by name that gives no limits, with those that the system knows."""
    if not isinstance(bound.of, str):
        return bound
    kind, name = bounded_place(system, bound)
    limits = (bound.lower, bound.upper)
    gives_none = not any(isinstance(x, str) or np.isfinite(x).any() for x in limits)
    if kind == LIMITS and not gives_none:
        raise ValueError(
            f"bound {bound.label!r}: 'limits' are those that {system.name} knows: leave lower and "
            "upper out, or bound a part of the state"
        )
    entries = _entries(system, kind, name)
    if kind == "input" or not gives_none or any(np.isnan(x).any() for x in limits):
        return bound
    known = [system.limits.get(entry) for entry in entries]
    missing = [entry for entry, pair in zip(entries, known, strict=True) if pair is None]
    # A part of the state may have coordinates without limits, an entry of a quantity is meant.
    if len(missing) == len(entries) or (missing and kind == "quantity"):
        told = f"of {', '.join(missing)}: give lower= and upper=" if missing else "at all"
        raise ValueError(f"bound {bound.label!r}: {system.name} knows no limits {told}")
    pairs = [(-np.inf, np.inf) if pair is None else pair for pair in known]
    lower, upper = np.array(pairs).T
    return (
        replace(bound, lower=lower, upper=upper)
        if len(entries) > 1 or kind in ("block", LIMITS)
        else replace(bound, lower=float(lower[0]), upper=float(upper[0]))
    )


def ignored_limits(system: System, bounds: Sequence[Bound]) -> tuple[str, ...]:
    """See `OptimalControlProblem.ignored_limits`."""
    state = system.state
    if any(not isinstance(bound.of, str) or bound.of == LIMITS for bound in bounds):
        return ()
    blocks = block_slices(state)[0]
    configuration = None if system.structure is None else system.structure.configuration
    own = state.coordinate_names[blocks[configuration]] if configuration in blocks else None
    bounded = [str(bound.of).removeprefix("state.") for bound in bounds]
    covered = {
        name
        for of in bounded
        for name in (of, *state.coordinate_names[blocks.get(of, slice(0))], *entries_of(system, of))
    }
    told = None if own is None else {*own, *system.quantity_names}
    return tuple(
        name for name in system.limits if name not in covered and (told is None or name in told)
    )


def _entries(system: System, kind: str, name: str) -> tuple[str, ...]:
    """Single names of what `bounded_place` found."""
    if kind == "block":
        return system.state.coordinate_names[block_slices(system.state)[0][name]]
    if kind == "quantity":
        return entries_of(system, name)
    return tuple(system.limits) if kind == LIMITS else (name,)


def check_names(system: System, bound: Bound, parameters: Sequence[str]) -> None:
    """Refuse a bound on what nothing is called by, or whose limit is no parameter."""
    if isinstance(bound.of, str):
        bounded_place(system, bound)
    for what in ("lower", "upper", "soft"):
        value = getattr(bound, what)
        if isinstance(value, str):
            parameter_index(f"{what} of bound {bound.label!r}", value, parameters)


class PointRows(NamedRows):
    """Rows that hold at the collocation points of each step, not at its first node."""


def check_consistent(system: System, bounds: Sequence[Bound], horizon: int) -> None:
    """Refuse two hard bounds on the same quantity that leave no value for it at a node.

    Limits that are parameters may change, and functions are not compared: solves find out.
    """
    limits: dict[tuple[str, str], list[tuple[str, range, float, float]]] = {}
    for entry in system.inputs:
        whose, nodes = f"the limits of input {entry.name!r}", range(horizon)
        limits["input", entry.name] = [(whose, nodes, entry.lower, entry.upper)]
    for bound in bounds:
        if not isinstance(bound.of, str):
            continue
        kind, name = bounded_place(system, bound)
        _ask_degrees(system, bound, kind, name)
        if bound.soft is not None:
            continue
        entries = _entries(system, kind, name)
        whose = f"bound {bound.label!r} (at {place_text(bound.at)!r})"
        low, high = bound._limits(len(entries))
        if kind == "block":
            _check_on_group(system, whose, name, low, high)
        is_input = kind == "input"
        nodes = nodes_at(bound.at, horizon, is_input=is_input)
        for entry, *own in zip(entries, low.tolist(), high.tolist(), strict=True):
            key = ("tangent" if kind == "tangent" else "input" if is_input else "", entry)
            for other, there, least, most in limits.setdefault(key, []):
                common = {*nodes} & {*there}
                bottom, top = max(own[0], least), min(own[1], most)
                if common and bottom - top > ROUNDING * max(1.0, abs(bottom), abs(top)):
                    raise ValueError(
                        f"{whose} and {other} contradict each other at node {min(common)}: "
                        f"{entry} cannot be at least {bottom:g} and at most {top:g}. Leave one "
                        "out, give it other nodes or a penalty (soft=100)"
                    )
            limits[key].append((whose, nodes, *own))


def _check_on_group(
    system: System, whose: str, name: str, low: np.ndarray, high: np.ndarray
) -> None:
    """Refuse limits of a block that none of its elements keeps, such as zeros of a quaternion."""
    group = system.state
    part, freedoms = (places[name] for places in block_slices(group))
    if freedoms.stop - freedoms.start == 1:  # limits are those of the angle
        return
    for unit in group.unit_parts:
        if not part.start <= unit.start < part.stop:
            continue
        own = slice(unit.start - part.start, unit.stop - part.start)
        least = np.maximum(0.0, np.maximum(low[own], -high[own]))
        most = np.maximum(np.abs(low[own]), np.abs(high[own]))
        if np.linalg.norm(least) > 1.0 + ROUNDING or np.linalg.norm(most) < 1.0 - ROUNDING:
            entries = ", ".join(group.coordinate_names[unit])
            raise ValueError(
                f"{whose} limits coordinates, of which ({entries}) have norm one: no element of "
                f"{name!r} is within. Bound the error from a goal instead, by "
                "lambda t, x, u, p: group.minus(x[…], goal), or single coordinates"
            )


def _ask_degrees(system: System, bound: Bound, kind: str, name: str) -> None:
    """Ask whether limits of angles that are several turns, or more than angles are, are degrees."""
    units, state = units_of(system, kind, name), system.state
    part = block_slices(state)[0].get(name, slice(0, 0))
    is_angle = len(units) == 1 < part.stop - part.start  # [cos, sin], limited as one number
    sizes, range_text = {"most": NO_LIMIT}, ""
    if kind == "tangent" or (kind == "block" and is_angle):
        sizes["beyond"], range_text = np.pi * (1 + ROUNDING), "; it is within π rad of zero anyway"
    for side in ("lower", "upper"):
        given = bound._limit(side, 0.0)
        limits = [float(given)] * len(units) if not given.ndim else given.ravel().tolist()
        for (entry, unit), limit in zip(units.items(), limits, strict=False):  # sizes: told later
            what = f"bound {bound.label!r}: a limit of {entry}"
            remedy = f"Then give np.radians({limit:g}); leave out what is not limited{range_text}"
            if unit == "rad" and ask_degrees(what, limit, remedy, **sizes):
                return


def units_of(system: System, kind: str, name: str) -> dict[str, str]:
    """Units of what `bounded_place` found; of [cos, sin] only that of the angle."""
    state = system.state
    if kind == "block":
        part, freedoms = (places[name] for places in block_slices(state))
        if freedoms.stop - freedoms.start == 1:
            return {name: state.tangent_units[freedoms.start]}
        return dict(zip(state.coordinate_names[part], state.coordinate_units[part], strict=True))
    if kind == "tangent":
        return {name: dict(zip(state.tangent_names, state.tangent_units, strict=True))[name]}
    units = dict(zip(state.coordinate_names, state.coordinate_units, strict=True))
    units |= {entry.name: entry.unit for entry in system.inputs if kind == "input"}
    units |= system.quantity_units if kind == "quantity" else {}
    return {entry: units.get(entry, "") for entry in _entries(system, kind, name)}


def nodes_at(at: str | range, horizon: int, *, is_input: bool = False) -> range:
    """Nodes at which a bound holds, or a term counts, whatever is free at the start."""
    if isinstance(at, range):
        return at
    first, last = (0, horizon) if is_input else (1, horizon + 1)
    spans = {
        "both": range(first, last),
        "path": range(first, horizon),
        "terminal": range(horizon, last),
        "start": range(1),
    }
    return spans[at]


def input_of(system: System, bound: Bound) -> int | None:
    """Which input a bound is on, by its number; None where it is on something else."""
    if not isinstance(bound.of, str):
        return None
    kind, name = bounded_place(system, bound)
    return system.input_names.index(name) if kind == "input" else None


def holds_throughout(system: System, bound: Bound, horizon: int) -> bool:
    """Whether a bound is a hard limit of a control at all times of a plan."""
    if bound.soft is not None or input_of(system, bound) not in system.input_index("control"):
        return False
    nodes = nodes_at(bound.at, horizon, is_input=True)
    return max(nodes, default=0) <= horizon and {*range(horizon)} <= {*nodes}


def bounded_place(system: System, bound: Bound) -> tuple[str, str]:
    """What the name of a bound means: "input", "block", "coordinate", "tangent" or "quantity"."""
    state, of = system.state, str(bound.of)
    blocks = block_slices(state)[0]
    of_state = dict.fromkeys((*blocks, *state.coordinate_names, *state.tangent_names))
    place, name = place_of(f"bound {bound.label!r}", of, of_state, system.input_names)
    if place == "input":
        return place, name
    for kind, known in (
        ("block", blocks),
        ("coordinate", state.coordinate_names),
        ("tangent", state.tangent_names),
    ):
        if name in known:
            if kind == "tangent":
                _refuse_deviation(bound, name, state)
            return kind, name
    if entries_of(system, of):
        return "quantity", of
    if of == LIMITS:
        return LIMITS, of
    inputs = system.input_names
    valid = dict.fromkeys(
        [
            *(f"state.{key}" if key in inputs else key for key in of_state),
            *(f"input.{key}" if key in of_state else key for key in inputs),
            *quantities_of(system),
            LIMITS,
        ]
    )
    message = unknown_name("bounded quantity", of, valid)
    message += error_remedy(of, system.error_names, state.tangent_names)
    if of == "input" and inputs:
        message += (
            f" A bound on an input names it, Bound('input.{inputs[0]}', …); limits that always "
            "hold are lower and upper of the system's inputs"
        )
    source, _, last = of.rpartition(".")
    if last == "rate" and source in valid:
        message += (
            f" The rate of {source!r} is no state of {system.name}: to bound it make the input a "
            "state with its rate as the input, or bound a function (t, x, u, p) → rate"
        )
    raise UnknownNameError(message)


def refuse_deviations(system: System, bounds: Sequence[Bound]) -> None:
    """Refuse a bound on an error from the reference where there is none."""
    for bound in bounds:
        if isinstance(bound.of, str) and bounded_place(system, bound)[0] == "tangent":
            block = bounded_place(system, bound)[1].rpartition(".")[0]
            freedoms = block_slices(system.state)[1].get(block, slice(0, 0))
            own = f", or bound the angle itself, Bound({block!r}, …)"
            raise ValueError(
                f"bound {bound.label!r} limits how far the state is from its reference, and "
                f"{system.name} has no reference to follow: give reference="
                f"{own if freedoms.stop - freedoms.start == 1 else ''}"
            )


def _refuse_deviation(bound: Bound, name: str, state: LieGroup) -> None:
    """Of a block that is one angle only this is bounded: the two names look alike."""
    block, _, last = name.rpartition(".")
    part = block_slices(state)[0].get(block, slice(0, state.nq))
    if part.stop - part.start == 1:
        own = repr(block) if block else ", ".join(map(repr, state.coordinate_names))
        raise ValueError(
            f"bound {bound.label!r}: {last} is how far the angle is from its reference, which is "
            f"what weights are on; the angle itself is {own}. Limits of a deviation follow its "
            "reference as parameters, or bound a function (t, x, u, p) → deviation"
        )

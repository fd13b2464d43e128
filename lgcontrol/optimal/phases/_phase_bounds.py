"""Bounds of a phase as those of the flat problem, and what its soft ones weigh besides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ...systems import System
from .._bounds import ALONG, Bound, NamedRows, PointRows, nodes_at
from .._expressions import parameter_index
from .._rows import expression_of
from .._statement import collocation_of
from .._terms import Residual
from ._phase import Phase

# Steps that differ by this share are of one length; rows that do at so many points are one row.
SAME_LENGTH, SAME_ROW, SAMPLES = 1e-9, 1e-9, 3


def root(length: Any) -> Any:
    """The root of lengths, with a slope of zero where these are none."""
    is_none = length <= 0
    return ca.if_else(is_none, 0.0, ca.sqrt(ca.if_else(is_none, 1.0, length)))


def pieces(t: Any, edges: np.ndarray, values: np.ndarray) -> Any:
    """Constants between edges, of SX and of MX: CasADi's pw_const knows no MX."""
    jumps = zip(edges.tolist(), np.diff(values).tolist(), strict=True)
    return sum((jump * (t >= edge) for edge, jump in jumps if jump), float(values[0]))


def placed_bounds(flat: Any) -> list[PlacedBound]:
    """Bounds of all phases of a `FlatPhases`, with what controls may do less than in others.

    Those along a phase hold at its first node, too: after the jump, where that is found. What the
    end of the phase before keeps there need not be said again.
    """
    every = [[*_placed(flat, i)] for i in range(len(flat.phases))]
    for i, own in enumerate(every):
        first = int(flat.starts[i])
        end = first if i else int(flat.starts[-1])
        before = every[i - 1] if i or flat.is_periodic else []
        ends = [side for one in before if end in one.nodes for side in one.tried(end)]
        for one in own if ends else ():
            if one.begins_along and first in one.nodes and one.is_kept_by(ends):
                one.nodes = one.nodes[1:]
        every[i] = [one for one in own if one.nodes]
    return [one for own in every for one in own]


def _placed(flat: Any, i: int) -> Iterator[PlacedBound]:
    """Bounds of a phase, by the nodes of the whole at which they hold."""
    phase, view = flat.phases[i], flat.shapes[0].view
    first, last = int(flat.starts[i]), int(flat.starts[i + 1])
    # Linear inputs of the first phase are found.
    found = {*range(view.nq, view.nq + (view.beside if view.kind == "linear" else 0))}
    for bound in (*phase.known_bounds, *_tighter(flat, phase)):
        names, needs_input, by_state = named_rows(phase.system, bound, len(flat.extra))
        is_open = flat.is_open or bool(by_state & found)
        if bound.at == "start" and i == 0 and not is_open:
            raise ValueError(
                f"bound {bound.label!r} of phase {phase.name!r} at its start: that is given to "
                "solve(), unless it is free (free=…, is_periodic=True)"
            )
        at = nodes_at(bound.at, phase.steps)
        begins_along = bound.at in ALONG and not needs_input and (i > 0 or is_open)
        if begins_along:
            at = range(at.stop)
        if at and not 0 <= min(at) <= max(at) <= phase.steps:
            raise ValueError(
                f"bound {bound.label!r} of phase {phase.name!r} at {at}: its nodes are 0 to "
                f"{phase.steps}"
            )
        nodes = range(first + at.start, first + at.stop, at.step)
        if isinstance(bound.of, PointRows):
            names = names * flat.n_points
        if bound.at != "terminal" and needs_input:
            # Inputs have a value where a step begins.
            nodes = (
                range(first, last)
                if bound.at in ALONG
                else range(nodes.start, min(nodes.stop, last), nodes.step)
            )
        places = [nodes]
        if begins_along and flat.begins[i]:
            # Linear inputs begin anew there: what needs these rates has no value at the end.
            places = [nodes[:1], nodes[1:]]
        for own in filter(None, places):
            yield PlacedBound(flat, i, bound, names, own, needs_input, begins_along)


def _tighter(flat: Any, phase: Phase) -> Iterator[Bound]:
    """Bounds of the controls of a phase where another phase allows more."""
    limits = flat.widest()
    for entry in phase.system.inputs:
        low, high = limits[entry.name]
        if entry.lower > low or entry.upper < high:
            name = f"{entry.name} of {phase.name}"
            yield Bound(f"input.{entry.name}", entry.lower, entry.upper, name=name)


class TriedSide(NamedTuple):
    """A one-sided row by its values at some points, its limit and its weight, if it is soft."""

    values: np.ndarray
    sign: float
    limit: Any
    soft: Any

    def keeps(self, other: TriedSide) -> bool:
        """Whether the other is kept wherever this one is, and counted if it is soft."""
        is_same = np.allclose(self.values, other.values, SAME_ROW, SAME_ROW)
        varies = not np.allclose(self.values, self.values[0], SAME_ROW, SAME_ROW)
        if self.sign != other.sign or not (is_same and varies):  # saturated rows tell nothing
            return False
        if self.soft is not None or {type(self.limit), type(other.limit)} != {float}:
            return (self.soft, self.limit) == (other.soft, other.limit)
        return self.sign * (other.limit - self.limit) >= 0


class PlacedBound:
    """A bound of a phase: its rows as a function of the whole, and the nodes at which it holds.

    If it `begins_along`, it holds along the phase and at its first node. A soft one counts per s: a
    node of the length ℓ counts ``ℓ w (s + s²/2)`` of the excess s. Its `row` ``ℓ s / L`` of the
    weight ``w L``, with L twice the longest ℓ, counts ``w (ℓ s + ℓ² s² / (2 L))``. The residual
    `square` adds ``½ w ℓ (1 − ℓ/L) s²``.
    """

    def __init__(
        self, flat: Any, i: int, bound: Bound, names: tuple[str, ...], nodes: range,
        needs_input: bool, begins_along: bool,
    ) -> None:  # fmt: skip
        self.flat, self.i, self.bound, self.names, self.nodes = flat, i, bound, names, nodes
        self.needs_input, self.is_at_points = needs_input, isinstance(bound.of, PointRows)
        self.begins_along = begins_along
        self._lengths = flat.phases[i].lengths_of_nodes(of_inputs=needs_input)

    @property
    def row(self) -> Bound:
        """The bound at nodes of the whole."""
        bound = self.bound
        if bound.soft is None:
            rows = NamedRows(self.function, self.names)
            return replace(bound, of=rows, at=self.nodes, name=bound.label)
        names = tuple(self.names[row] for row, *_ in self.sides)
        rows = NamedRows(self._linear, names, self._counts[0])
        return Bound(rows, upper=0.0, soft=bound.soft, at=self.nodes, name=bound.label)

    @property
    def square(self) -> Residual | None:
        """What a soft bound weighs besides its row; None for what its row says alone."""
        bound, (_, is_even) = self.bound, self._counts
        if bound.soft is None or is_even:
            return None
        name = f"excess of {bound.label} of {self.flat.phases[self.i].name}"
        return Residual(self._left, bound.soft, name=name, at=self.nodes)

    def function(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        """The rows."""
        flat, i, system = self.flat, self.i, self.flat.phases[self.i].system
        given, x_ref = flat.inputs_of(i, t, x, u), type(x)(ca.DM(flat.points[i].x))
        if self.is_at_points:
            points = flat.points_within(i, t, x, u, p)
        else:
            is_of_first = self.needs_input or int(flat.starts[i]) in self.nodes
            here = flat.begun(i, t, x, u, p) if is_of_first else x[flat.own[i]]
            points = [(1.0, flat.time(i, t, x), here)]
        every = ((now, here, given, p, x_ref) for _, now, here in points)
        return ca.vertcat(*(expression_of(system, self.bound, *at)[0] for at in every))

    def tried(self, node: int) -> list[TriedSide]:
        """Its one-sided rows at a node, told by values at random states, inputs and parameters.

        At the first node of a loop they are those of the state at its end.
        """
        flat, values = self.flat, []
        random, group = np.random.default_rng(0), flat.group()
        count = len(flat.phases[0].system.parameters) + len(flat.extra)
        for _ in range(SAMPLES):
            x = ca.DM(group.random(random))
            u, p = (ca.DM(random.normal(size=n)) for n in (len(flat.inputs), count))
            x = flat.begun_anew(x, p) if node == 0 else x
            values.append(np.asarray(self.function(ca.DM(node), x, u, p)).ravel())
        soft = self.bound.soft
        each = np.transpose(values)
        return [TriedSide(each[row], sign, limit, soft) for row, sign, limit in self.sides]

    def is_kept_by(self, ends: list[TriedSide]) -> bool:
        """Whether what the phase before keeps at its end is all that is to be kept here."""
        own = self.tried(int(self.flat.starts[self.i]))
        return all(any(end.keeps(side) for end in ends) for side in own)

    @cached_property
    def sides(self) -> list[tuple[int, float, Any]]:
        """Of each one-sided row its row, sign and limit, a number or a place in p."""
        bound, count, flat = self.bound, len(self.names), self.flat
        parameters = [entry.name for entry in (*flat.phases[0].system.parameters, *flat.extra)]
        found: list[tuple[int, float, Any]] = []
        copies = flat.n_points if self.is_at_points else 1
        low, high = (np.tile(limits, copies).tolist() for limits in bound._limits(count // copies))
        for side, sign, own in (("upper", 1.0, high), ("lower", -1.0, low)):
            limit = getattr(bound, side)
            if isinstance(limit, str):
                place = parameter_index(f"{side} of bound {bound.label!r}", limit, parameters)
                found += [(row, sign, place) for row in range(count)]
            found += [(row, sign, own[row]) for row in range(count) if np.isfinite(own[row])]
        return sorted(found, key=lambda side: side[0])

    @cached_property
    def _counts(self) -> tuple[float, bool]:
        """The L of a soft bound, and whether all nodes count that, in s."""
        phase = self.flat.phases[self.i]
        nodes = np.array(self.nodes) - int(self.flat.starts[self.i])
        counted = phase.limits[1] * self._lengths[nodes]
        most, least = float(counted.max()), float(counted.min())
        is_even = most - least <= SAME_LENGTH * most
        if phase.is_free or not is_even or self.is_at_points:
            return 2 * most, False
        return most, True

    def _counted(self, t: Any, x: Any) -> Any:
        """Time in s that each one-sided row counts at node t."""
        edges = self.flat.starts[self.i] + np.arange(1, len(self._lengths)) - 0.5
        length = pieces(t, edges, self._lengths) * self.flat.seconds(x, self.i)
        weights = [1.0]
        if self.is_at_points:
            weights = [*collocation_of(self.flat.method).points.values()]
        return length * ca.DM(np.repeat(weights, len(self.sides) // len(weights)))

    def _excess(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        """How far each one-sided row is outside of its limit, negative inside."""
        value = self.function(t, x, u, p)
        return ca.vertcat(
            *(
                sign * (value[row] - (p[limit] if isinstance(limit, int) else limit))
                for row, sign, limit in self.sides
            )
        )

    def _linear(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        return self._excess(t, x, u, p) * self._counted(t, x) / self._counts[0]

    def _left(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        length = self._counted(t, x)
        share = root(length * (1 - length / self._counts[0]))
        return share * ca.fmax(0.0, self._excess(t, x, u, p))


def named_rows(system: System, bound: Bound, extra: int) -> tuple[tuple[str, ...], bool, set[int]]:
    """Names of a bound's rows, whether it depends on u, and on which coordinates of the state.

    Extra parameters are the plan's.
    """
    sym = system.symbol.sym
    sizes = 1, system.state.nq, system.n_inputs, system.n_parameters + extra, system.state.nq
    symbols = [sym(name, size) for name, size in zip("txupr", sizes, strict=True)]
    column, names = expression_of(system, bound, *symbols)
    needed = np.flatnonzero(ca.which_depends(column, symbols[1]))
    return names, bool(ca.depends_on(column, symbols[2])), {*needed.tolist()}

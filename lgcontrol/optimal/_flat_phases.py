"""FlatPhases: the one problem of a discrete system that a `PhasedProblem` is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import casadi as ca
import numpy as np

from ..groups import LieGroup, Product, Rn
from ..integrators import Method, get_method
from ..systems import Input, Parameter, System
from ..systems._internal import TrajectoryPoint, check_state, point_states
from ._bounds import (
    ALONG,
    Bound,
    NamedRows,
    PointRows,
    check_numbers,
    limit_rows,
    with_known_limits,
)
from ._expressions import parameter_index
from ._phase import Phase
from ._phase_shapes import PhaseShape
from ._places import free_errors
from ._problem import OptimalControlProblem
from ._rows import expression_of
from ._statement import AT_POINTS, QUADRATURES, collocation_of
from ._terms import Cost, Residual, of_quantity
from ._weights import WeightLike, error_weight, input_weight

# Weight on controls in every step, as shares of half their ranges, where a phase gives no R: what
# costs nothing is not unique. That of other controls is no more than positive, as a sweep asks.
# Experiment: tasks of the literature, see docs/solver_results.md.
LEAST_EFFORT, LEAST = 1e-7, 1e-24
# Steps that differ by this share are of one length.
SAME_LENGTH = 1e-9
MOTION, DURATION, FIRST = "motion", "duration", "first"
# Nodes of a phase of so many steps at which bounds hold; its first one ends the phase before.
PLACES: dict[str, Callable[[int], range]] = {
    "both": lambda steps: range(1, steps + 1),
    "path": lambda steps: range(1, steps),
    "terminal": lambda steps: range(steps, steps + 1),
    "start": lambda steps: range(1),
}
# The same of terms of the cost, which count at an end or along steps.
TERMS_AT = {name: PLACES[name] for name in ("terminal", "start")}
T = TypeVar("T", Residual, Cost)


def least_effort(system: System) -> np.ndarray:
    """Weights on the controls of a system, by their ranges, that only tell plans apart."""
    ranges = [entry.upper - entry.lower for entry in system.inputs if entry.role == "control"]
    return np.array([LEAST_EFFORT * 4.0 / r**2 if 0 < r < np.inf else LEAST for r in ranges])


def _root(length: Any) -> Any:
    """The root of lengths, with a slope of zero where these are none."""
    is_none = length <= 0
    return ca.if_else(is_none, 0.0, ca.sqrt(ca.if_else(is_none, 1.0, length)))


def _pieces(t: Any, edges: np.ndarray, values: np.ndarray) -> Any:
    """Constants between edges, of SX and of MX: CasADi's pw_const knows no MX."""
    jumps = zip(edges.tolist(), np.diff(values).tolist(), strict=True)
    return sum((jump * (t >= edge) for edge, jump in jumps if jump), float(values[0]))


class FlatPhases:
    """One problem of a discrete system, whose time is the number of a node, for all phases.

    Its state has the motion of each group that phases move on, then the free durations, then the
    first state of a loop. A motion waits until its phase begins, and stays where that ends.
    `starts` are the first nodes of the phases, and the last of all; `own` the places of their
    states, `used` which of `inputs` are theirs, `points` what their errors and efforts are of.
    `is_open`: a part of the first state is found.
    """

    def __init__(
        self, shapes: tuple[PhaseShape, ...], extra: tuple[Parameter, ...], *,
        time_weight: float | str, reference: Any, is_periodic: bool, method: str | Method,
        quadrature: str, free: str | Iterable[str], arrival: WeightLike | None,
    ) -> None:  # fmt: skip
        self.shapes, self.extra = shapes, extra
        self.phases = phases = tuple(shape.inner for shape in shapes)
        self.is_periodic, self.method, self.quadrature = is_periodic, method, quadrature
        first = shapes[0].phase.system
        chosen = free_errors(first, free).tolist()
        if len(chosen) and first.errors is not None:
            raise ValueError(
                f"free: {first.name} has constraints, its start cannot be free: leave free= out, "
                "and solve from several x0"
            )
        self.is_open = is_periodic or len(chosen) > 0
        self.starts = np.concatenate([[0], np.cumsum([phase.steps for phase in phases])])
        self.free = [i for i, phase in enumerate(phases) if phase.is_free]
        self.groups: list[LieGroup] = []
        for phase in phases:
            if phase.system.state not in self.groups:
                self.groups.append(phase.system.state)
        self.split = self._places()
        self.own = [self.split.motions[self._group_of(i)] for i in range(len(phases))]
        entries: dict[str, Input] = {}
        for shape in shapes:
            filled = shape.filled(0, 0, [0] * len(shape.view.controls))
            for entry in shape.inner.system.inputs:
                if entry.name not in filled:
                    entries.setdefault(entry.name, entry)
        # Inputs that are linear begin anew in each phase.
        self.begins = [self._begins(i, entries) for i in range(len(phases))]
        self.inputs = [*entries.values()]
        index = {name: k for k, name in enumerate(entries)}
        self.used = [[index[n] for n in phase.system.input_names if n in index] for phase in phases]
        self.index = index
        self.points = [reference_of(phase, self.groups[0], reference) for phase in phases]
        system = self._system()
        limits = {phase.name: phase.limits for phase in phases if phase.is_free}
        ends = [
            Bound(f"{DURATION}.{name}" if self.free else name, low, high, at="start")
            for name, (low, high) in limits.items()
        ]
        haste = Cost(lambda t, x, u, p: self.elapsed(x, len(phases)), None, time_weight, "time")
        spans = range(len(phases))
        loop = [self._closing()] if is_periodic else []
        if shapes[0].kind == "linear":
            n = first.n_errors
            chosen += range(n, n + shapes[0].view.beside)
        names = [*(system.error_names[i] for i in chosen), *([DURATION] if self.free else [])]
        self.problem = OptimalControlProblem(
            system, int(self.starts[-1]), Q=0.0, R=self._effort(system), terminal=0.0,
            reference=self._point(system), parameters=extra,
            free="all" if is_periodic else names,
            arrival=None if arrival is None else self.beside(system, arrival),
            costs=[haste, *(c for i in spans for c in self._costs(i))],
            residuals=[
                *self._priors(), *(r for i in spans for r in self._residuals(i)),
                *(r for i in spans for r in self._soft_squares(i)),
            ],
            bounds=[*ends, *loop, *(b for i in spans for b in self._bounds(i))],
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """With the functions of its phases as CasADi's: those of Python do not all pickle."""
        count = len(self.problem.all_parameters)
        shapes = tuple(shape.traced(count) for shape in self.shapes)
        return self.__dict__ | {"shapes": shapes, "phases": tuple(one.inner for one in shapes)}

    def tangent_of(self, i: int) -> slice:
        """Places of the motion of a phase among the tangent coordinates of all."""
        ends = np.cumsum([0, *(group.dim for group in self.groups)]).tolist()
        return slice(*ends[self._group_of(i) : self._group_of(i) + 2])

    @property
    def _points(self) -> int:
        """How many points integrals over a step take."""
        if self.quadrature == AT_POINTS:
            return len(collocation_of(self.method).points)
        return len(QUADRATURES[self.quadrature])

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Least and greatest durations, s."""
        return [phase.limits for phase in self.phases]

    def _group_of(self, i: int) -> int:
        """Which of the groups a phase moves on."""
        return self.groups.index(self.phases[i].system.state)

    def _places(self) -> Coordinates:
        """Where motions, free durations and the first state of a loop are among coordinates."""
        sizes = [group.nq for group in self.groups]
        ends = np.cumsum([0, *sizes, len(self.free), sizes[0]]).tolist()
        parts = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        return Coordinates(tuple(parts[:-2]), parts[-2], parts[-1])

    def _group(self) -> Product:
        blocks: dict[str, LieGroup] = {
            f"{MOTION}{k or ''}": group for k, group in enumerate(self.groups)
        }
        if self.free:
            names = tuple(self.phases[i].name for i in self.free)
            blocks[DURATION] = Rn(len(names), names, "s")
        if self.is_periodic:
            blocks[FIRST] = self.groups[0]
        return Product(**blocks)

    def start(self, x: np.ndarray, times: Sequence[float]) -> np.ndarray:
        """State of the whole at a start of the first phase."""
        return self.state(self.shapes[0].begun(x), times)

    def state(self, x: np.ndarray, times: Sequence[float]) -> np.ndarray:
        """State of the whole at the start, or at the reference; other groups wait at theirs."""
        waiting = [
            self.points[[self._group_of(i) for i in range(len(self.phases))].index(k)].x
            for k in range(1, len(self.groups))
        ]
        free = [times[i] for i in self.free]
        return np.concatenate([x, *waiting, free, x if self.is_periodic else []])

    def beside(self, system: System, weight: WeightLike) -> np.ndarray:
        """A weight on the first state of the first phase, as one on that of the whole."""
        if not self.is_open:
            raise ValueError("arrival weighs initial states that are free: name them, free=…")
        own = error_weight("arrival", weight, self.shapes[0].phase.system)
        whole = np.zeros((system.n_errors, system.n_errors))
        whole[: len(own), : len(own)] = own
        return whole

    def _point(self, system: System) -> Any:
        middle = [sum(limits) / 2 for limits in self.limits]
        u = np.array([entry.nominal for entry in self.inputs])
        for i in reversed(range(len(self.phases))):
            names = self.phases[i].system.input_names
            for k, name in enumerate(names):
                if name in self.index:
                    u[self.index[name]] = self.points[i].u[k]
        return TrajectoryPoint(self.state(self.points[0].x, middle), u)

    def _seconds(self, x: Any, i: int) -> Any:
        """Duration of a phase, for symbols of the state."""
        return (
            x[self.split.durations][self.free.index(i)]
            if i in self.free
            else self.phases[i].limits[0]
        )

    def elapsed(self, x: Any, phases: int) -> Any:
        return sum((self._seconds(x, i) for i in range(phases)), ca.DM(0))

    def _time(self, i: int, t: Any, x: Any) -> Any:
        """Time in s at node t of a phase."""
        return self.elapsed(x, i) + self._share(i, t)[0] * self._seconds(x, i)

    def _length(self, i: int, t: Any, x: Any) -> Any:
        """Length in s of the step of a phase that begins at node t."""
        return self._share(i, t)[1] * self._seconds(x, i)

    def _share(self, i: int, t: Any) -> tuple[Any, Any]:
        """Shares of the duration of a phase before node t, and of the step that begins there."""
        phase, local = self.phases[i], t - int(self.starts[i])
        shares = phase.shares
        if (shares == shares[0]).all():
            return local / phase.steps, 1 / phase.steps
        first = np.flatnonzero(np.append(True, shares[1:] != shares[:-1]))  # of equal steps
        edges, begun = first[1:] - 0.5, phase.nodes[first] - first * shares[first]
        length = _pieces(local, edges, shares[first])
        return _pieces(local, edges, begun) + local * length, length

    def _points_within(
        self, i: int, t: Any, x: Any, u: Any, p: Any
    ) -> list[tuple[float, Any, Any]]:
        """Weight, time and state of the points at which integrals over a step are taken.

        Those of the step that is taken: phases of the same system share it.
        """
        if self.quadrature == "left":
            return [(1.0, self._time(i, t, x), self._begun(i, t, x, u, p))]
        system, before, found = self.phases[i].system, 0.0, []
        now, state, given, length = self._step_of_all(self._alike_of(i), t, x, u, p)
        if self.quadrature == AT_POINTS:
            method = collocation_of(self.method)
            X = point_states(system, method)(now, state, given, p[: system.n_parameters], length)[0]
            points = enumerate(method.points.items())
            return [(share, now + c * length, X[:, j]) for j, (c, share) in points]
        step, own = system.step(self.method).function, p[: system.n_parameters]
        for place, share in QUADRATURES[self.quadrature]:
            part = (place - before) * length
            state = step(now + before * length, state, given, own, part)
            found.append((share, now + place * length, state))
            before = place
        return found

    def _inputs_of(self, i: int, t: Any, x: Any, u: Any) -> Any:
        """Inputs of a phase in the step that begins at node t."""
        may = self._may_change(i, t)
        known = self.shapes[i].filled(self._time(i, t, x), self._length(i, t, x), may)
        names = self.phases[i].system.input_names
        if not known:
            return u[self.used[i]]
        return ca.vertcat(
            *(known[name] if name in known else u[self.index[name]] for name in names)
        )

    def _may_change(self, i: int, t: Any) -> list[Any]:
        """Whether each control of a phase may change at node t, of blocks."""
        may = self.shapes[i].view.may
        if may is None:
            return []
        edges = self.starts[i] + np.arange(1, len(may)) - 0.5
        return [_pieces(t, edges, column) for column in may.T]

    def inputs_along(self, i: int, t: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Inputs (steps, n) of a phase with nodes at times t, for those of all."""
        first, last = self.starts[i], self.starts[i + 1]
        shape, N = self.shapes[i], self.phases[i].steps
        may = [] if shape.view.may is None else shape.view.may.T
        known = shape.filled(t[:-1], np.diff(t), may)
        names = self.phases[i].system.input_names
        columns = [
            known[name] if name in known else u[first:last, self.index[name]] for name in names
        ]
        return np.column_stack([np.zeros((N, 0)), *(np.broadcast_to(e, (N,)) for e in columns)])

    def _begins(self, i: int, entries: dict[str, Input]) -> list[str]:
        """Controls that say where linear inputs of a phase after the first begin."""
        shape = self.shapes[i]
        if i == 0 or shape.kind != "linear":
            return []
        found = []
        for k in shape.view.controls:
            entry = shape.phase.system.inputs[k]
            name = f"{entry.name}.begin"
            entries.setdefault(name, replace(entry, name=name))
            found.append(name)
        return found

    def _effort(self, system: System) -> np.ndarray:
        """Weights that tell plans apart where no R does: of rates by what they change in a step."""
        found, scale = least_effort(system), {}
        free = {e.name for s in self.shapes if s.phase.R is None for e in s.inner.system.inputs}
        for shape in self.shapes:
            if shape.kind in ("linear", "blocks"):
                step = max(sum(shape.inner.limits) / 2 / shape.inner.steps, 1e-9)
                own = least_effort(shape.phase.system)
                for k, j in enumerate(shape.view.controls):
                    name = f"{shape.phase.system.input_names[j]}.rate"
                    scale[name] = own[k] * step**2
        names = [entry.name for entry in system.inputs if entry.role == "control"]
        least = [scale.get(name, w) for name, w in zip(names, found, strict=True)]
        return np.where([name in free for name in names], least, LEAST)

    def _is_in(self, i: int, t: Any) -> Any:
        """Whether the step that begins at node t belongs to a phase, 1 or 0."""
        after = t > int(self.starts[i]) - 0.5
        return ca.logic_and(after, t < int(self.starts[i + 1]) - 0.5)

    def _begun(self, i: int, t: Any, x: Any, u: Any, p: Any) -> Any:
        """State of a phase at node t, where it begins that after the jump before it."""
        here = x[self.own[i]]
        if not self.begins_anew(i):
            return here
        after = self.after_jump(i, self._time(i, t, x), x, u, p)
        return ca.if_else(t < int(self.starts[i]) + 0.5, after, here)

    def begins_anew(self, i: int) -> bool:
        """Whether the first state of a phase differs from the last one of the phase before."""
        return i > 0 and (
            self.phases[i - 1].jump is not None
            or bool(self.begins[i])
            or self.own[i] != self.own[i - 1]
        )

    def after_jump(self, i: int, t: Any, x: Any, u: Any, p: Any) -> Any:
        """First state of a phase, at its time and for what all are at its first node."""
        shape, before, end = self.shapes[i], self.shapes[i - 1], x[self.own[i - 1]]
        motion = end[: before.view.nq]
        if before.phase.jump is not None:
            motion = before.phase.jumped(t, motion, p, shape.phase.system.state)
        if not shape.view.beside:
            return motion
        if self.begins[i]:
            return ca.vertcat(motion, *(u[self.index[name]] for name in self.begins[i]))
        # Blocks change when a phase begins: what acted before matters to nothing but rates.
        names, view = before.phase.system.input_names, shape.view
        acted = {names[j]: end[before.view.nq + k] for k, j in enumerate(before.view.controls)}
        own = (shape.phase.system.input_names[j] for j in view.controls)
        rest = dict(zip(own, shape.point.u[view.controls], strict=True))
        last = acted if before.view.beside else {}
        return ca.vertcat(motion, *(last.get(name, value) for name, value in rest.items()))

    def _alike(self) -> list[list[int]]:
        """Phases by their systems: those of one share its step."""
        found: dict[int, list[int]] = {}
        for i, phase in enumerate(self.phases):
            found.setdefault(id(phase.system), []).append(i)
        return list(found.values())

    def _alike_of(self, i: int) -> list[int]:
        """Phases of the system of one."""
        return next(alike for alike in self._alike() if i in alike)

    def _step_of(self, i: int, t: Any, x: Any, u: Any, p: Any) -> list[Any]:
        """Time, state, inputs and length of the step of a phase that begins at node t."""
        given = self._inputs_of(i, t, x, u)
        return [self._time(i, t, x), self._begun(i, t, x, u, p), given, self._length(i, t, x)]

    def _step_of_all(self, alike: list[int], t: Any, x: Any, u: Any, p: Any) -> list[Any]:
        """The same of the phase that node t belongs to, of some that have one system."""
        given = self._step_of(alike[0], t, x, u, p)
        for j in alike[1:]:
            is_in, own = self._is_in(j, t), self._step_of(j, t, x, u, p)
            given = [ca.if_else(is_in, *pair) for pair in zip(own, given, strict=True)]
        return given

    def _system(self) -> System:
        first, group = self.phases[0].system, self._group()
        sizes = [motion.dim for motion in self.groups]
        others = group.dim - sum(sizes)

        def change(t: Any, x: Any, u: Any, p: Any) -> Any:
            totals: list[Any] = [ca.DM.zeros(size) for size in sizes]
            for alike in self._alike():
                i = alike[0]
                now, begin, inputs, length = self._step_of_all(alike, t, x, u, p)
                system = self.phases[i].system
                after = system.step(self.method).function(now, begin, inputs, p, length)
                moved = system.state.minus(after, x[self.own[i]])
                if len(alike) < len(self.phases):
                    moved = ca.if_else(sum(self._is_in(j, t) for j in alike), moved, 0)
                totals[self._group_of(i)] += moved
            return ca.vertcat(*totals, ca.DM.zeros(others))

        limits = self._widest()
        inputs = [
            replace(entry, lower=limits[entry.name][0], upper=limits[entry.name][1])
            for entry in self.inputs
        ]
        name = "_then_".join(dict.fromkeys(phase.system.name for phase in self.phases))
        symbol = ca.MX if get_method(self.method).solves else first.symbol
        return System(
            name, group, change, inputs=inputs, parameters=first.parameters, dt=1.0, symbol=symbol
        )

    def _widest(self) -> dict[str, tuple[float, float]]:
        """Limits of the inputs that every phase keeps."""
        found: dict[str, tuple[float, float]] = {}
        systems = [phase.system.inputs for phase in self.phases]
        for entries in (*systems, self.inputs):
            for entry in entries:
                low, high = found.get(entry.name, (np.inf, -np.inf))
                found[entry.name] = min(low, entry.lower), max(high, entry.upper)
        return found

    def _terms(
        self, i: int, term: T, value: Callable[..., Any], over_step: Callable[[Any], Any]
    ) -> list[T]:
        """A residual or a cost of a phase, with a value of t, x, u, p, as terms of the whole.

        Along the phase the value has the factor `over_step` of the length of a step.
        """
        phase, own = self.phases[i], self.own[i]
        first, last = int(self.starts[i]), int(self.starts[i + 1])
        u_ref = ca.DM(self.points[i].u)

        def along(t: Any, x: Any, u: Any, p: Any, points: slice = slice(None)) -> Any:
            found = sum(
                over_step(share * self._length(i, t, x))
                * value(*point, self._inputs_of(i, t, x, u), p)
                for share, *point in self._points_within(i, t, x, u, p)[points]
            )
            return found if len(self.phases) == 1 else ca.if_else(self._is_in(i, t), found, 0)

        def along_at(k: int) -> Callable[..., Any]:
            return lambda t, x, u, p: along(t, x, u, p, slice(k, k + 1))

        def at_node(t: Any, x: Any, u: Any, p: Any) -> Any:
            state = self._begun(i, t, x, u, p)
            return value(self._time(i, t, x), state, self._inputs_of(i, t, x, u), p)

        def at_end(t: Any, x: Any, u: Any, p: Any) -> Any:
            del t, u
            return value(self.elapsed(x, i + 1), x[own], type(x)(u_ref), p)

        made: list[tuple[Any, Any, range, str]] = []
        end, ended = range(last, last + 1), f"{term.name} at the end of {phase.name}"
        if term.at in ALONG:
            each_point = range(self._points)
            sums = [along] if isinstance(term, Cost) else [along_at(k) for k in each_point]
            made += [(one, term.weight, range(first, last), term.name) for one in sums]
            made.append((at_end, term.terminal, end, ended))
        else:
            at = TERMS_AT[term.at](phase.steps) if isinstance(term.at, str) else term.at
            label = f"{type(term).__name__.lower()} {term.name!r} of phase {phase.name!r}"
            check_numbers(label, at, phase.steps)
            weight: Any = term.weight
            of_nodes, of_end = at, range(0)
            each = np.ndim(weight) == (3 if isinstance(term, Residual) else 1)
            parts = weight, weight
            if phase.steps in at:
                k = at.index(phase.steps)
                of_nodes, of_end = at[:k] or at[k + 1 :], end
                if each:
                    parts = np.delete(np.asarray(weight), k, axis=0), np.asarray(weight)[k : k + 1]
            nodes = range(first + of_nodes.start, first + of_nodes.stop, of_nodes.step)
            made += [(at_node, parts[0], nodes, term.name)] if nodes else []
            made += [(at_end, parts[1], of_end, ended)] if of_end else []
        return [
            type(term)(function, weight, None, name, at=nodes)
            for function, weight, nodes, name in made
            if weight is not None
        ]

    def _priors(self) -> Iterator[Residual]:
        """What durations are expected to be, for those phases that say it."""
        for i, phase in enumerate(self.phases):
            if phase.duration_prior is not None:
                expected, weight = map(float, phase.duration_prior)

                def off(t: Any, x: Any, u: Any, p: Any, i: int = i, T: float = expected) -> Any:
                    return self._seconds(x, i) - T

                yield Residual(off, weight, name=f"duration of {phase.name}", at="start")

    def _costs(self, i: int) -> list[Cost]:
        """Costs of a phase: times the length of a step along it, and at its nodes."""
        found = []
        for cost in (of_quantity(self.phases[i].system, c) for c in self.phases[i].costs):

            def value(t: Any, x: Any, u: Any, p: Any, cost: Cost = cost) -> Any:
                return cost.expression(type(x), t, x, u, p)

            found += self._terms(i, cost, value, lambda length: length)
        return found

    def _residuals(self, i: int) -> list[Residual]:
        """Error, effort and residuals of a phase, by the root of the length of a step."""
        phase, system, steps = self.phases[i], self.phases[i].system, self.phases[i].steps
        controls = system.input_index("control").tolist()
        x_ref, u_ref = ca.DM(self.points[i].x), ca.DM(self.points[i].u)

        def error(t: Any, x: Any, u: Any, p: Any) -> Any:
            return system.error(x, type(x)(x_ref))

        def effort(t: Any, x: Any, u: Any, p: Any) -> Any:
            return (u - u_ref)[controls]

        terms: list[tuple[Residual, Callable[..., Any]]] = []
        if phase.Q is not None:
            weight = error_weight("Q", phase.Q, system, steps)
            terms.append((Residual(error, weight, name=f"error of {phase.name}"), error))
        if phase.R is not None:
            weight = input_weight("R", phase.R, system, steps)
            terms.append((Residual(effort, weight, name=f"effort of {phase.name}"), effort))
        for residual in (of_quantity(system, r) for r in phase.residuals):

            def own_value(t: Any, x: Any, u: Any, p: Any, residual: Residual = residual) -> Any:
                return residual.expression(system, t, x, u, p)

            terms.append((residual, own_value))
        return [one for term, value in terms for one in self._terms(i, term, value, _root)]

    def _bounds(self, i: int) -> list[Bound]:
        """Bounds of a phase at its nodes, and what its controls may do less than others'."""
        found = []
        for one in self._placed(i):
            bound = one.bound
            if bound.soft is None:
                rows = NamedRows(one.function, one.names)
                found.append(replace(bound, of=rows, at=one.nodes, name=bound.label))
                continue
            longest, _ = self._longest(i, one)

            def linear(
                t: Any, x: Any, u: Any, p: Any, one: PlacedBound = one, longest: float = longest
            ) -> Any:
                return self._excess(one, t, x, u, p) * self._counted(i, one, t, x) / longest

            names = self._sides(one)[0]
            found.append(
                Bound(
                    NamedRows(linear, names, longest), upper=0.0, soft=bound.soft, at=one.nodes,
                    name=bound.label,
                )
            )  # fmt: skip
        return found

    def _soft_squares(self, i: int) -> Iterator[Residual]:
        """What soft bounds of a phase weigh besides its bounds, so that they count per s.

        A node of the length ℓ counts ``ℓ w (s + s²/2)`` of the excess s. Its row ``ℓ s / L`` of the
        weight ``w L``, with L twice the longest ℓ, counts ``w (ℓ s + ℓ² s² / (2 L))``. What is left
        is ``½ w ℓ (1 − ℓ/L) s²``.
        """
        for one in self._placed(i):
            if one.bound.soft is None:
                continue
            longest, is_even = self._longest(i, one)
            if is_even:
                continue

            def left(
                t: Any, x: Any, u: Any, p: Any, one: PlacedBound = one, longest: float = longest
            ) -> Any:
                length = self._counted(i, one, t, x)
                share = _root(length * (1 - length / longest))
                return share * ca.fmax(0.0, self._excess(one, t, x, u, p))

            name = f"excess of {one.bound.label} of {self.phases[i].name}"
            yield Residual(left, one.bound.soft, name=name, at=one.nodes)

    def _longest(self, i: int, one: PlacedBound) -> tuple[float, bool]:
        """The L of `_soft_squares` for a bound, and whether all its nodes count that, in s."""
        phase = self.phases[i]
        shares = phase.lengths_of_nodes(of_inputs=one.needs_input)
        counted = phase.limits[1] * shares[np.array(one.nodes) - int(self.starts[i])]
        most, least = float(counted.max()), float(counted.min())
        is_even = most - least <= SAME_LENGTH * most
        if phase.is_free or not is_even or isinstance(one.bound.of, PointRows):
            return 2 * most, False
        return most, True

    def _counted(self, i: int, one: PlacedBound, t: Any, x: Any) -> Any:
        """Time in s that each row of a soft bound counts at node t of a phase."""
        shares = self.phases[i].lengths_of_nodes(of_inputs=one.needs_input)
        edges = self.starts[i] + np.arange(1, len(shares)) - 0.5
        length = _pieces(t, edges, shares) * self._seconds(x, i)
        weights = [1.0]
        if isinstance(one.bound.of, PointRows):
            weights = [*collocation_of(self.method).points.values()]
        _, rows = self._sides(one)
        return length * ca.DM(np.repeat(weights, len(rows) // len(weights)))

    def _sides(self, one: PlacedBound) -> tuple[tuple[str, ...], list[tuple[int, float, Any]]]:
        """Names of one-sided rows, and of each row, sign and limit, a number or place in p."""
        bound, count = one.bound, len(one.names)
        parameters = [entry.name for entry in (*self.phases[0].system.parameters, *self.extra)]
        found: list[tuple[int, float, Any]] = []
        for side, sign in (("upper", 1.0), ("lower", -1.0)):
            label, limit = f"{side} of bound {bound.label!r}", getattr(bound, side)
            if isinstance(limit, str):
                place = parameter_index(label, limit, parameters)
                found += [(row, sign, place) for row in range(count)]
            else:
                copies = self._points if isinstance(bound.of, PointRows) else 1
                own = np.tile(limit_rows(label, limit, count // copies), copies).tolist()
                found += [(row, sign, own[row]) for row in range(count) if np.isfinite(own[row])]
        found.sort(key=lambda side: side[0])
        return tuple(one.names[row] for row, *_ in found), found

    def _excess(self, one: PlacedBound, t: Any, x: Any, u: Any, p: Any) -> Any:
        """How far each one-sided row of a bound is outside of its limit, negative inside."""
        value = one.function(t, x, u, p)
        sides = self._sides(one)[1]
        return ca.vertcat(
            *(
                sign * (value[row] - (p[limit] if isinstance(limit, int) else limit))
                for row, sign, limit in sides
            )
        )

    def _placed(self, i: int) -> Iterator[PlacedBound]:
        """Bounds of a phase as functions of the whole, with the nodes at which they hold."""
        phase = self.phases[i]
        first, last = int(self.starts[i]), int(self.starts[i + 1])
        known = [with_known_limits(phase.system, bound) for bound in phase.bounds]
        for bound in (*known, *self._tighter(i)):
            names, needs_input, by_state = named_rows(phase.system, bound, len(self.extra))
            is_open = self.is_open or bool(by_state & self._input_coordinates(0))
            if bound.at == "start" and i == 0 and not is_open:
                raise ValueError(
                    f"bound {bound.label!r} of phase {phase.name!r} at its start: that is given to "
                    "solve(), unless it is free (free=…, is_periodic=True)"
                )
            at = bound.at if isinstance(bound.at, range) else PLACES[bound.at](phase.steps)
            if bound.at in ALONG and i == 0 and is_open and not self.is_periodic:
                at = range(at.stop)
            if at and not 0 <= min(at) <= max(at) <= phase.steps:
                raise ValueError(
                    f"bound {bound.label!r} of phase {phase.name!r} at {at}: its nodes are 0 to "
                    f"{phase.steps}"
                )
            nodes = range(first + at.start, first + at.stop, at.step)
            places = [nodes]
            if self.begins[i] and bound.at in ALONG and by_state & self._input_coordinates(i):
                places.append(range(first, first + 1))  # linear inputs begin anew at that node
            for nodes in places:
                of_first = first in nodes or needs_input

                def function(
                    t: Any, x: Any, u: Any, p: Any, bound: Bound = bound, of_first: bool = of_first
                ) -> Any:
                    x_ref, now = type(x)(ca.DM(self.points[i].x)), self._time(i, t, x)
                    if isinstance(bound.of, PointRows):
                        given = self._inputs_of(i, t, x, u)
                        points = self._points_within(i, t, x, u, p)
                        every = [(now, state, given, p, x_ref) for _, now, state in points]
                        return ca.vertcat(
                            *(expression_of(phase.system, bound, *e)[0] for e in every)
                        )
                    given = self._inputs_of(i, t, x, u)
                    here = self._begun(i, t, x, u, p) if of_first else x[self.own[i]]
                    return expression_of(phase.system, bound, now, here, given, p, x_ref)[0]

                if isinstance(bound.of, PointRows):
                    names = names * self._points
                if bound.at != "terminal" and needs_input:
                    # Inputs have a value where a step begins.
                    nodes = (
                        range(first, last)
                        if bound.at in ALONG
                        else range(nodes.start, min(nodes.stop, last), nodes.step)
                    )
                if nodes:
                    yield PlacedBound(bound, function, names, nodes, needs_input)

    def _input_coordinates(self, i: int) -> set[int]:
        """Coordinates of a phase's state that its linear inputs have."""
        view = self.shapes[i].view
        return {*range(view.nq, view.nq + (view.beside if view.kind == "linear" else 0))}

    def _tighter(self, i: int) -> list[Bound]:
        """Bounds of the controls of a phase where another phase allows more."""
        limits, phase = self._widest(), self.phases[i]
        return [
            Bound(
                f"input.{entry.name}",
                entry.lower,
                entry.upper,
                name=f"{entry.name} of {phase.name}",
            )
            for entry in phase.system.inputs
            if entry.lower > limits[entry.name][0] or entry.upper < limits[entry.name][1]
        ]

    def _closing(self) -> Bound:
        """The loop: the first state, carried along, is that after the end."""
        own, kept = self.own, self.split.first
        last, group, end = self.phases[-1], self.groups[0], int(self.starts[-1])

        def function(t: Any, x: Any, u: Any, p: Any) -> Any:
            now, first = x[own[0]], x[kept]
            if last.jump is not None:
                there = last.jumped(self.elapsed(x, len(self.phases)), x[own[-1]], p, group)
                now = ca.if_else(t > end - 0.5, there, now)
            return group.minus(now, first)

        return Bound(function, 0.0, 0.0, at=range(0, end + 1, end), name="loop")


class PlacedBound(NamedTuple):
    """A bound of a phase: its rows as a function of the whole, and the nodes at which it holds."""

    bound: Bound
    function: Callable[..., Any]
    names: tuple[str, ...]
    nodes: range
    needs_input: bool


class Coordinates(NamedTuple):
    """Slices of coordinates: motions of groups, free durations, the first state of a loop."""

    motions: tuple[slice, ...]
    durations: slice
    first: slice


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


def reference_of(phase: Phase, first: LieGroup, reference: Any) -> TrajectoryPoint:
    """State and inputs that a phase's errors and efforts are of."""
    system = phase.system
    own = phase.reference
    if own is None and system.state == first:
        own = reference
    own = system.state.identity if own is None else own
    x = check_state(system, "reference", getattr(own, "x", own))
    u = np.asarray(getattr(own, "u", system.nominal_input), dtype=np.float64)
    return TrajectoryPoint(x, system.full_input(u) if len(u) < system.n_inputs else u)

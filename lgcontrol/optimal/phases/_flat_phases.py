"""FlatPhases: the one problem of a discrete system that a `PhasedProblem` is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, TypeVar

import casadi as ca
import numpy as np

from ...codegen import ModelFunction
from ...groups import LieGroup, Product, Rn
from ...integrators import Method, get_method
from ...systems import Input, Parameter, System
from ...systems._internal import TrajectoryPoint, point_states
from .._bounds import ALONG, Bound, NamedRows, check_numbers, nodes_at
from .._places import free_errors
from .._problem import OptimalControlProblem
from .._statement import AT_POINTS, QUADRATURES, collocation_of, points_within
from .._terms import Cost, Residual, of_quantity
from .._weights import WeightLike, error_weight, input_weight
from ._phase_bounds import pieces, placed_bounds, root
from ._phase_shapes import PhaseShape

# Weight on controls in every step, as shares of half their ranges, where a phase gives no R: what
# costs nothing is not unique. That of other controls is no more than positive, as a sweep asks.
# Experiment: tasks of the literature, see tests/benchmarks/planning_experiments.md.
LEAST_EFFORT, LEAST = 1e-7, 1e-24
MOTION, DURATION, FIRST = "motion", "duration", "first"
T = TypeVar("T", Residual, Cost)


def least_effort(system: System) -> np.ndarray:
    """Weights on the controls of a system, by their ranges, that only tell plans apart."""
    ranges = [entry.upper - entry.lower for entry in system.inputs if entry.role == "control"]
    return np.array([LEAST_EFFORT * 4.0 / r**2 if 0 < r < np.inf else LEAST for r in ranges])


class FlatPhases:
    """One problem of a discrete system, whose time is the number of a node, for all phases.

    Its state has the motion of each group that phases move on, then the free durations, then the
    first state of a loop. A motion waits until its phase begins, and stays where that ends.
    `starts` are the first nodes of the phases, and the last of all. `motions`, `durations` and
    `first` are places in the state, and `own` the places of the motions of the phases. `used` tells
    which of `inputs` are theirs, and `points` what errors and efforts are of. `is_open`: a part of
    the first state is found.
    """

    def __init__(
        self, shapes: tuple[PhaseShape, ...], extra: tuple[Parameter, ...], *,
        time_weight: float | str, is_periodic: bool, method: str | Method,
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
        self.groups = [*dict.fromkeys(phase.system.state for phase in phases)]
        sizes = [group.nq for group in self.groups]
        ends = np.cumsum([0, *sizes, len(self.free), sizes[0]]).tolist()
        *self.motions, self.durations, self.first = map(slice, ends[:-1], ends[1:])
        self.own = [self.motions[self._group_of(i)] for i in range(len(phases))]
        entries: dict[str, Input] = {}
        for shape in shapes:
            filled = shape.filled(0, 0, [0] * len(shape.view.controls))
            for entry in shape.inner.system.inputs:
                if entry.name not in filled:
                    entries.setdefault(entry.name, entry)
        # Controls that say where linear inputs of a phase after the first begin.
        self.begins: list[list[str]] = []
        for i, shape in enumerate(shapes):
            is_begun = i > 0 and shape.kind == "linear"
            own = [shape.phase.system.inputs[k] for k in shape.view.controls if is_begun]
            begins = {f"{entry.name}.begin": entry for entry in own}
            for name, entry in begins.items():
                entries.setdefault(name, replace(entry, name=name))
            self.begins.append([*begins])
        self.inputs = [*entries.values()]
        index = {name: k for k, name in enumerate(entries)}
        self.used = [[index[n] for n in phase.system.input_names if n in index] for phase in phases]
        self.index = index
        self.points = [shape.inner_point for shape in shapes]
        system = self._system()
        limits = [
            Bound(f"{DURATION}.{phase.name}", *phase.limits, at="start")
            for phase in phases
            if phase.is_free
        ]
        haste = Cost(lambda t, x, u, p: self.elapsed(x, len(phases)), None, time_weight, "time")
        spans, placed = range(len(phases)), placed_bounds(self)
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
                *filter(None, (one.square for one in placed)),
            ],
            _in_parts=self.in_parts,
            bounds=[*limits, *loop, *(one.row for one in placed)],
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
    def n_points(self) -> int:
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

    def group(self) -> Product:
        """Where the state of the whole is."""
        blocks: dict[str, LieGroup] = {}
        for k, group in enumerate(self.groups):
            alone = group.coordinate_names[0]  # a block of one number without a name has this one
            is_alone = group.coordinate_names == ("x0",) and alone not in blocks
            blocks[alone if is_alone else f"{MOTION}{k or ''}"] = group
        if self.free:
            names = tuple(self.phases[i].name for i in self.free)
            blocks[DURATION] = Rn(len(names), names, "s")
        if self.is_periodic:
            blocks[FIRST] = self.groups[0]
        return Product(**blocks)

    @cached_property
    def own_names(self) -> dict[str, str]:
        """Names of states in their phases, by the names that they have here."""
        whole, own, found = self.group(), slice(0), {}
        for place, group in zip(self.motions, self.groups, strict=True):
            own = slice(own.stop, own.stop + group.dim)
            found |= dict(zip(whole.coordinate_names[place], group.coordinate_names, strict=True))
            found |= dict(zip(whole.tangent_names[own], group.tangent_names, strict=True))
        return found

    def start(self, x: np.ndarray, times: Sequence[float]) -> np.ndarray:
        """State of the whole at a start of the first phase."""
        return self.state(self.shapes[0].begun(x), times)

    def state(self, x: np.ndarray, times: Sequence[float]) -> np.ndarray:
        """State of the whole at the start, or at the reference; other groups wait at theirs."""
        known = [*zip(self.points, self.phases, strict=True)]
        waiting = [
            next(point.x for point, phase in known if phase.system.state == group)
            for group in self.groups[1:]
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
        for point, phase, used in [*zip(self.points, self.phases, self.used, strict=True)][::-1]:
            own = zip(point.u, phase.system.input_names, strict=True)
            u[used] = [value for value, name in own if name in self.index]
        return TrajectoryPoint(self.state(self.points[0].x, middle), u)

    def seconds(self, x: Any, i: int) -> Any:
        """Duration of a phase, for symbols of the state."""
        if i not in self.free:
            return self.phases[i].limits[0]
        return x[self.durations][self.free.index(i)]

    def elapsed(self, x: Any, phases: int) -> Any:
        return sum((self.seconds(x, i) for i in range(phases)), ca.DM(0))

    def time(self, i: int, t: Any, x: Any) -> Any:
        """Time in s at node t of a phase."""
        return self.elapsed(x, i) + self._share(i, t)[0] * self.seconds(x, i)

    def length(self, i: int, t: Any, x: Any) -> Any:
        """Length in s of the step of a phase that begins at node t."""
        return self._share(i, t)[1] * self.seconds(x, i)

    def _share(self, i: int, t: Any) -> tuple[Any, Any]:
        """Shares of the duration of a phase before node t, and of the step that begins there."""
        phase, local = self.phases[i], t - int(self.starts[i])
        shares = phase.shares
        if (shares == shares[0]).all():
            return local / phase.steps, 1 / phase.steps
        first = np.flatnonzero(np.append(True, shares[1:] != shares[:-1]))  # of equal steps
        edges, begun = first[1:] - 0.5, phase.nodes[first] - first * shares[first]
        length = pieces(local, edges, shares[first])
        return pieces(local, edges, begun) + local * length, length

    def points_within(self, i: int, t: Any, x: Any, u: Any, p: Any) -> list[tuple[float, Any, Any]]:
        """Weight, time and state of the points at which integrals over a step are taken.

        The step is that of the problem: phases of the same system share it.
        """
        if self.quadrature == "left":
            return [(1.0, self.time(i, t, x), self.begun(i, t, x, u, p))]
        system = self.phases[i].system
        now, state, given, length = self._step(i, t, x, u, p)
        if self.quadrature == AT_POINTS:
            method = collocation_of(self.method)
            X = point_states(system, method)(now, state, given, p[: system.n_parameters], length)[0]
            points = enumerate(method.points.items())
            return [(share, now + c * length, X[:, j]) for j, (c, share) in points]
        step, own = system.step(self.method).function, p[: system.n_parameters]
        return points_within(step, self.quadrature, now, state, given, own, length)

    def inputs_of(self, i: int, t: Any, x: Any, u: Any) -> Any:
        """Inputs of a phase in the step that begins at node t."""
        may = self._may_change(i, t)
        known = self.shapes[i].filled(self.time(i, t, x), self.length(i, t, x), may)
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
        return [pieces(t, edges, column) for column in may.T]

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

    def begun(self, i: int, t: Any, x: Any, u: Any, p: Any) -> Any:
        """State of a phase at node t, where it begins that after the jump before it."""
        here = x[self.own[i]]
        if not self.begins_anew(i):
            return here
        after = self.after_jump(i, self.time(i, t, x), x, u, p)
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

    def _alike(self, i: int) -> list[int]:
        """Phases with the system of one: they share its step."""
        return [j for j, phase in enumerate(self.phases) if phase.system is self.phases[i].system]

    def _step(self, i: int, t: Any, x: Any, u: Any, p: Any) -> list[Any]:
        """Time, state, inputs and length of the step that begins at node t, in a phase like one."""

        def own(j: int) -> list[Any]:
            inputs = self.inputs_of(j, t, x, u)
            return [self.time(j, t, x), self.begun(j, t, x, u, p), inputs, self.length(j, t, x)]

        first, *others = self._alike(i)
        given = own(first)
        for j in others:
            is_in = self._is_in(j, t)
            given = [ca.if_else(is_in, *both) for both in zip(own(j), given, strict=True)]
        return given

    def in_parts(self, parts: int) -> ModelFunction:
        """The step of the whole, made of so many of the phases' method."""
        return self._system(parts).step()

    def _system(self, parts: int = 1) -> System:
        first, group = self.phases[0].system, self.group()
        sizes = [motion.dim for motion in self.groups]
        others = group.dim - sum(sizes)

        def change(t: Any, x: Any, u: Any, p: Any) -> Any:
            totals: list[Any] = [ca.DM.zeros(size) for size in sizes]
            for i, phase in enumerate(self.phases):
                alike, system = self._alike(i), phase.system
                if i != alike[0]:
                    continue
                now, begin, inputs, length = self._step(i, t, x, u, p)
                after, step = begin, system.step(self.method).function
                for j in range(parts):
                    at = now + j * length / parts if j else now
                    after = step(at, after, inputs, p, length / parts if parts > 1 else length)
                moved = system.state.minus(after, x[self.own[i]])
                if len(alike) < len(self.phases):
                    moved = ca.if_else(sum(self._is_in(j, t) for j in alike), moved, 0)
                totals[self._group_of(i)] += moved
            return ca.vertcat(*totals, ca.DM.zeros(others))

        limits = self.widest()
        inputs = [
            replace(entry, lower=limits[entry.name][0], upper=limits[entry.name][1])
            for entry in self.inputs
        ]
        name = "_then_".join(dict.fromkeys(phase.system.name for phase in self.phases))
        symbol = ca.MX if get_method(self.method).solves else first.symbol
        return System(
            name, group, change, inputs=inputs, parameters=first.parameters, dt=1.0, symbol=symbol
        )

    def widest(self) -> dict[str, tuple[float, float]]:
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
                over_step(share * self.length(i, t, x))
                * value(*point, self.inputs_of(i, t, x, u), p)
                for share, *point in self.points_within(i, t, x, u, p)[points]
            )
            return found if len(self.phases) == 1 else ca.if_else(self._is_in(i, t), found, 0)

        def along_at(k: int) -> Callable[..., Any]:
            return lambda t, x, u, p: along(t, x, u, p, slice(k, k + 1))

        def at_node(t: Any, x: Any, u: Any, p: Any) -> Any:
            state = self.begun(i, t, x, u, p)
            return value(self.time(i, t, x), state, self.inputs_of(i, t, x, u), p)

        def at_end(t: Any, x: Any, u: Any, p: Any) -> Any:
            del t, u
            return value(self.elapsed(x, i + 1), x[own], type(x)(u_ref), p)

        made: list[tuple[Any, Any, range, str]] = []
        end, ended = range(last, last + 1), f"{term.name} at the end of {phase.name}"
        if term.at in ALONG:
            each_point = range(self.n_points)
            sums = [along] if isinstance(term, Cost) else [along_at(k) for k in each_point]
            made += [(one, term.weight, range(first, last), term.name) for one in sums]
            made.append((at_end, term.terminal, end, ended))
        else:
            at = nodes_at(term.at, phase.steps)
            check_numbers(f"{term._label} of phase {phase.name!r}", at, phase.steps)
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
                    return self.seconds(x, i) - T

                yield Residual(off, weight, name=f"duration of {phase.name}", at="start")

    def _costs(self, i: int) -> list[Cost]:
        """Costs of a phase: times the length of a step along it, and at its nodes."""
        system = self.phases[i].system
        terms = [of_quantity(system, cost) for cost in self.phases[i].costs]
        return [
            one
            for term in terms
            for one in self._terms(i, term, partial(term.expression, system), lambda length: length)
        ]

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
        stated = (of_quantity(system, residual) for residual in phase.residuals)
        terms += [(residual, partial(residual.expression, system)) for residual in stated]
        return [one for term, value in terms for one in self._terms(i, term, value, root)]

    def _after_all(self, x: Any, p: Any) -> Any:
        """The state of the first phase with which a loop begins anew."""
        last, end = self.phases[-1], x[self.own[-1]]
        if last.jump is None:
            return end
        return last.jumped(self.elapsed(x, len(self.phases)), end, p, self.groups[0])

    def begun_anew(self, x: Any, p: Any) -> Any:
        """State of the whole at the start of a loop, for that at its end."""
        after = x[:]
        after[self.own[0]] = self._after_all(x, p)
        return after

    def _closing(self) -> Bound:
        """The loop: the first state, carried along, is that after the end."""
        kept, group, end = self.first, self.groups[0], int(self.starts[-1])

        def function(t: Any, x: Any, u: Any, p: Any) -> Any:
            now = x[self.own[0]]
            if self.phases[-1].jump is not None:
                now = ca.if_else(t > end - 0.5, self._after_all(x, p), now)
            return group.minus(now, x[kept])

        names = tuple(f"{name} where the loop closes" for name in group.tangent_names)
        return Bound(NamedRows(function, names), 0.0, 0.0, at=range(0, end + 1, end), name="loop")

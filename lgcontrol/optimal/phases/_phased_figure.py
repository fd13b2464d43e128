"""Figures of plans of phases: what `plot_run` draws of one, and of each phase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from types import SimpleNamespace
from typing import Any

import numpy as np

from ...plotting import plot_run
from ...plotting._internal import new_figure, run_size
from .._bounds import ALONG
from .._rows import enter_end, rows_along, seen_bounds, unit_named
from .._solution import DERIVED, drawn, inputs_within


def plot_phases(found: Any, options: Mapping[str, Any]) -> Any:
    """Figure of a `PhasedSolution`: phases of one group together, those of others below."""
    used = [name for name, part in found.parts.items() if len(part) > 1]
    runs = [_run(found, [*some]) for _, some in groupby(used, lambda name: found.parts[name].group)]
    if len(runs) == 1:
        return plot_run(runs[0], **options)
    figure = options.get("figure")
    sizes = np.array([run_size(run) for run in runs])
    if figure is None:
        figure = new_figure(sizes[:, 0].max(), sizes[:, 1].sum())
    rows = figure.subfigures(len(runs), 1, height_ratios=sizes[:, 1], squeeze=False)[:, 0]
    for run in runs[1:]:
        run.message = ""  # the first one tells it
    for run, row in zip(runs, rows, strict=True):
        plot_run(run, **{**options, "figure": row})
    return figure


def _run(found: Any, used: Sequence[str]) -> Any:
    """What `plot_run` draws of phases of one group: each step from its first to its last time.

    So inputs and states may jump where a phase begins.
    """
    problem = found.problem
    phases = [phase for phase in problem.phases if phase.name in used]
    parts = [found.parts[name] for name in used]
    inputs = {entry.name: entry for phase in phases for entry in phase.system.inputs}
    names, controls = [*inputs], [entry.role == "control" for entry in inputs.values()]
    spans = [2 * len(part) - 2 for part in parts]
    ends = np.cumsum([0, *spans])
    t, x = (np.concatenate([np.repeat(each, 2, axis=0)[1:-1] for each in both])
            for both in ([part.t for part in parts], [part.x for part in parts]))  # fmt: skip
    u = np.full((len(t), len(names)), np.where(controls, np.nan, 0.0))
    limits = np.tile([[[-np.inf]], [[np.inf]]], u.shape)
    goal, kept = np.full_like(x, np.nan), {}
    motion = DERIVED["motion_between"](found, used)
    count = 0 if motion is None else motion[0].size
    p = found.solution._setting
    p = problem.problem.nominal_parameters if p is None else p.p
    for i, (phase, part) in enumerate(zip(phases, parts, strict=True)):
        place, system = slice(ends[i], ends[i + 1]), phase.system
        own = [names.index(name) for name in system.input_names]
        steps = slice(None) if part.hold == "zero" else slice(1, -1)
        u[place, own] = np.repeat(part.u, 2, axis=0)[steps]
        limits[:, place, own] = np.asarray(system.input_bounds)[:, None]
        point = problem._flat.shapes[problem.phases.index(phase)].point
        if phase.Q is not None:
            goal[place] = point.x
        points = t[place], x[place], u[place][:, own], p, np.tile(point.x, (spans[i], 1))
        parameters = problem.problem.parameter_names
        _keep(kept, parameters, phase, place, points, (len(t), count))
        if motion is not None:
            steps = slice(ends[i] // 2, ends[i + 1] // 2)
            times, states = (value[steps].reshape(-1, *value.shape[2:]) for value in motion[:2])
            held = inputs_within(part.u, part.hold, *motion[0][steps].shape)
            points = times, states, held, p, np.tile(point.x, (len(times), 1))
            parts_of_step = motion[0].shape[1]
            place = slice(steps.start * parts_of_step, steps.stop * parts_of_step)
            _keep(kept, parameters, phase, place, points, (len(t), count), "between")
    return drawn(
        found, ", ".join(dict.fromkeys(phase.system.name for phase in phases)), inputs.values(),
        motion=motion, bounds=kept, group=parts[0].group, t=t, x=x,
        u=u, hold="first", input_bounds=limits,
        reference=None if np.isnan(goal).all() else goal,
        phases=[(part.t[0], name) for part, name in zip(parts, used, strict=True)]
        if len(problem.phases) > 1
        else [],
    )  # fmt: skip


def _keep(
    kept: dict[str, Any], parameters: Sequence[str], phase: Any, place: slice, points: Any,
    counts: tuple[int, int], what: str = "values",
) -> None:  # fmt: skip
    """Enter what the bounds of a phase keep: of coordinates and inputs at all times.

    Other quantities share an entry where their limits are those of another phase. Entered are
    `what` of each, "values" at nodes or those "between" them, of which there are `counts`.
    """
    system = phase.system
    bounds = [one for one in phase.known_bounds if one.at in ALONG]
    known = (*system.state.coordinate_names, *system.input_names)
    for _, label, values, low, high in rows_along(
        seen_bounds(system, bounds, parameters), parameters, points
    ):
        is_known = label in known
        is_new = is_known or label not in kept
        is_shared = is_new or (kept[label].lower, kept[label].upper) == (low, high)
        name = label if is_shared else f"{label}, {phase.name}"
        if name not in kept:
            kept[name] = SimpleNamespace(
                values=np.full(counts[0], np.nan), between=np.full(counts[1], np.nan), lower=low,
                upper=high, unit=unit_named(system, bounds, label),
            )  # fmt: skip
            if is_known:
                kept[name].lower, kept[name].upper = np.full((2, counts[0]), [[-np.inf], [np.inf]])
        entry = kept[name]
        getattr(entry, what)[place] = values
        if is_known and what == "values":
            entry.lower[place] = np.maximum(entry.lower[place], low)
            entry.upper[place] = np.minimum(entry.upper[place], high)
    if what == "values":
        ends = [one for one in phase.known_bounds if one.at == "terminal"]
        enter_end(kept, system, ends, parameters, points, place.stop - 1, counts[0])

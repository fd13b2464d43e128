"""plot_run and plot_trajectory: everything over time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, unknown_name
from ._draw import (
    FAILED_MARK,
    Item,
    JudgedNumber,
    draw,
    figure_size,
    judged,
    judged_panels,
    lay_out,
    make_cells,
    verdict,
    verdict_table,
)
from ._panels import (
    Panel,
    Strip,
    call_strips,
    disturbance_strips,
    error_panels,
    input_panels,
    kept_panels,
    limited_panels,
    state_panels,
    task_panels,
    without_rounding,
)
from ._run import Plant, PlottedNodes, PlottedRun, check_run, events_of, kicked_pieces
from ._style import INK, WARN, head

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@named_options
def plot_run(
    run: PlottedRun,
    *,
    criteria: Sequence[Any] = (),
    limits: Mapping[str, tuple[float, float]] | None = None,
    figure: Any = None,
) -> Figure:
    """Criteria of a run, and everything that it produced over time, in panels.

    - Each signal that criteria judge comes first. Shaded is what passes, for as long as it counts;
      a dot or a thick line is the value that decides. The head of the figure has all verdicts.
    - What a controller tracks besides the state, such as the pose of a hand, comes as the way to
      its goal. The reference of the state is then only a posture, and is not drawn.
    - Each block of the state and each unit has a panel, with the reference dashed and limits
      dotted; a limit at the end of a plan is a dash there. Attitudes in space are rotation vectors
      of ``minus(x, reference)``, or of the attitude itself without a reference. If such a vector
      passes π, its angle is drawn. More than six signals of a unit have an axes each.
    - Quantities within limits, such as the clearance of an obstacle, and inputs follow.
    - Estimation errors come with ±2 standard deviations, each in its own axes.
    - Kicks, pushes, new starts and phases of a plan are thin lines with names. Signals that exceed
      the rest tenfold after a kick, far from any limit, do so beyond the axis, which says by how
      much.
    - Disturbances and wall times, which nobody judges, are strips at the bottom.

    Parameters
    ----------
    run : SimulationResult
        Or anything with its fields.
    criteria : sequence of Criterion
        What to judge the run by, such as ``task.criteria``.
    limits : mapping of str to (float, float), optional
        Bounds of coordinates of the state by name, dotted. They replace those that the plant knows
        (joint limits) and those that its controller says it keeps.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Figure to draw in, such as ``pyplot.figure(layout="constrained")`` for a window; a new
        figure that pyplot does not know if left out.

    Returns
    -------
    matplotlib.figure.Figure
        Notebooks show it, ``.show()`` opens a window, ``.savefig(path)`` writes it.

    Examples
    --------
    >>> import casadi as ca
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.simulation import simulate
    >>> from lgcontrol.systems import System
    >>> decay = System("decay", Rn(1, ("level",), ("m",)), lambda t, x, u, p: -x)
    >>> figure = plot_run(simulate(decay, x0=[1.0], seconds=3))
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['position (level)']
    """
    check_run(run)
    found = judged(run, criteria)
    items = _items(run, found, limits)
    said = verdict(found) if run.status.is_success else run.message or str(run.status)
    is_good = run.status.is_success and all(one.mark != FAILED_MARK for one in found)
    title = f"{run.name}: {said}" if said else run.name
    phases = getattr(run, "phases", ())
    return _draw(items, events_of(run), title, INK if is_good else WARN, figure, phases)


def run_size(run: PlottedRun) -> tuple[float, float]:
    """Width and height in inches of what `plot_run` draws of a run that nobody judges."""
    return figure_size(lay_out(_items(run, [], None)))


def _items(
    run: PlottedRun, found: Sequence[JudgedNumber], limits: Mapping[str, tuple[float, float]] | None
) -> list[Item]:
    """Table, panels and strips of a run that is judged by what was `found`."""
    tasks: Mapping[str, Any] = getattr(run, "tasks", {})
    items: list[Item] = [verdict_table(found)] if found else []
    signals = judged_panels(run, found)
    ways = task_panels(run.t, tasks)
    kept: Mapping[str, Any] = getattr(run, "bounds", {})
    known = run.group.coordinate_names
    told = {name: (e.lower, e.upper) for name, e in kept.items() if name in known}
    told |= limits or {}
    goal = None if tasks else run.reference
    motion = getattr(run, "motion", None)  # of a plan within its steps
    kicked = kicked_pieces(run, goal) if motion is None else None
    between = motion[:3] if motion is not None and motion[3] else kicked
    states = state_panels(run.group, run.t, run.x, goal, _limits(run, told), between)
    states = [replace(one, jumps=kicked is not None) for one in states]
    others_shown = [one for one in without_rounding(states) if not _is_shown(one, signals)]
    items += [*signals, *ways, *others_shown]
    others = {name: e for name, e in kept.items() if name not in (*known, *run.input_names)}
    limited: Mapping[str, Any] = getattr(run, "limited", {})
    items += limited_panels(run.t, limited)
    strips: Iterable[Strip] = ()
    unlike = {n: e for n, e in others.items() if n not in limited}
    items += kept_panels(run.t, unlike, None if motion is None else motion[0])
    if len(run.u):
        inputs = (run.input_names, run.input_units, run.input_roles)
        steps = getattr(run, "hold", "zero") == "zero"
        items += input_panels(run.t, run.u, *inputs, _tightened(run, kept), steps=steps)
        strips = disturbance_strips(run.t, run.u, *inputs)
    if run.estimate is not None and run.estimate.shape == run.x.shape:
        error = run.group.minus(run.x, run.estimate)
        items += error_panels(run.group, run.t, error, run.estimate_std)
    items += strips
    items += call_strips(run.controllers)
    return items


def _is_shown(panel: Panel, others: Sequence[Panel]) -> bool:
    """Whether another panel has the only signal of one."""
    return len(panel.labels) == 1 and any(
        other.values.shape == panel.values.shape and np.allclose(other.values, panel.values)
        for other in others
    )


def _limits(run: PlottedRun, limits: Mapping[str, tuple[float, float]]) -> np.ndarray | None:
    """Lower and upper limits of all coordinates, infinite without.

    Of shape (2, nq), or (2, n, nq) if some change.
    """
    known = getattr(run, "state_limits", None)
    if known is None and not limits:
        return None
    names = run.group.coordinate_names
    bounds = np.tile([[-np.inf], [np.inf]], len(names)) if known is None else known.copy()
    if any(np.ndim(side) for pair in limits.values() for side in pair):
        bounds = np.repeat(bounds[:, None], len(run.t), axis=1)
    for name, pair in limits.items():
        if name not in names:
            raise UnknownNameError(unknown_name("coordinate of the state", name, names))
        for side in range(2):
            bounds[side, ..., names.index(name)] = pair[side]
    return bounds


def _tightened(run: PlottedRun, kept: Mapping[str, Any]) -> np.ndarray:
    """Bounds of the inputs, with what a controller keeps: (2, n_inputs), or for each time."""
    bounds = np.array(run.input_bounds, dtype=np.float64)
    for name in kept.keys() & set(run.input_names):
        i = run.input_names.index(name)
        bounds[0, ..., i] = np.maximum(bounds[0, ..., i], kept[name].lower)
        bounds[1, ..., i] = np.minimum(bounds[1, ..., i], kept[name].upper)
    return bounds


@named_options
def plot_trajectory(
    trajectory: PlottedNodes, *, system: Plant | None = None, between: Any = None,
    figure: Any = None,
) -> Figure:  # fmt: skip
    """States and inputs of a trajectory over time.

    Parameters
    ----------
    trajectory : Trajectory
        Without batch axes.
    system : System, optional
        System of the inputs: gives names, units and bounds; the trajectory's ``inputs`` if left
        out.
    between : tuple of ndarray, optional
        Times (N, m) and states (N, m, nq) of N pieces of the motion between nodes.
    figure : optional
        See `plot_run`.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import Trajectory
    >>> turn = Trajectory(SO2, [0.0, 1.0, 2.0], SO2.exp([[0.0], [1.0], [3.0]]))
    >>> figure = plot_trajectory(turn)
    >>> [ax.get_title(loc="left") for ax in figure.axes]
    ['angle']
    """
    if trajectory.x.ndim != 2:
        raise ValueError(
            f"x has shape {trajectory.x.shape}: draw one trajectory at a time, not a batch"
        )
    pieces = None if between is None else (*between, None)
    panels = state_panels(trajectory.group, trajectory.t, trajectory.x, None, between=pieces)
    count = trajectory.u.shape[-1]
    inputs = trajectory.inputs if system is None else system.inputs
    if len(inputs) != count and system is not None:
        raise ValueError(f"{system.name} has {len(inputs)} inputs, the trajectory has {count}")
    if count:
        known = [(e.name, e.unit, e.role, e.lower, e.upper) for e in inputs]
        known = known or [(f"u{i}", "", "control", -np.inf, np.inf) for i in range(count)]
        names, units, roles, *bounds = zip(*known, strict=True)
        panels += input_panels(
            trajectory.t, trajectory.u, names, units, roles, np.array(bounds),
            steps=trajectory.hold == "zero",
        )  # fmt: skip
    return _draw([*panels], (), "" if system is None else system.name, INK, figure)


def _draw(
    items: list[Item], events: Sequence[tuple[float, str]], title: str, color: str, figure: Any,
    phases: Sequence[tuple[float, str]] = (),
) -> Figure:  # fmt: skip
    from ._figure import new_figure

    rows = lay_out(items)
    if figure is None:
        figure = new_figure(*figure_size(rows))
    used = {style for cell in make_cells(figure, rows) for style in draw(cell, events, phases)}
    meanings = {"reference": "dashed: reference", "bounds": "dotted: limits", "±2σ": "grey: ±2σ",
                "between": "dots: nodes, from which each step is integrated"}  # fmt: skip
    key = [text for style, text in meanings.items() if style in used]
    if any(isinstance(item, Panel) and item.tolerances for item in items):
        key.insert(0, "shaded: what passes, while it counts")
    head(figure, title, key, color)
    return figure

"""plot_run and plot_trajectory: everything over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, unknown_name
from ._draw import draw_calls, draw_panel, grid_size, make_grid, shows_times
from ._panels import (
    Panel,
    error_panels,
    input_panels,
    kept_panels,
    limited_panels,
    state_panels,
)
from ._run import Plant, PlottedNodes, PlottedRun, check_run
from ._style import INK, WARN, head

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@named_options
def plot_run(
    run: PlottedRun, *, limits: Mapping[str, tuple[float, float]] | None = None, figure: Any = None
) -> Figure:
    """Everything a run produced over time, one panel for each block of the state and unit.

    Positions, angles and speeds come with their reference dashed; attitudes in space as the
    rotation vector of ``minus(x, reference)`` (without a reference: of the attitude itself). What a
    controller tracks besides, the pose of a hand, comes as its error. What it keeps within limits
    (bounds of an MPC: coordinates, corridors, the clearance to an obstacle) is shown with them,
    dotted. Inputs are steps with their bounds dotted; disturbances that act have panels of their
    own. Estimation errors come with a band of twice the standard deviation the estimator claims;
    controller calls with their wall time by status, the sample time dotted. Signals whose ranges
    are so unlike that some would look like zero have panels of their own.

    Parameters
    ----------
    run : SimulationResult
        Or anything with its fields.
    limits : mapping of str to (float, float), optional
        Bounds of coordinates of the state by name, dotted like those that the plant knows (joint
        limits) and those that its controller says it keeps, in place of these.
    figure : matplotlib.figure.Figure or SubFigure, optional
        Where to draw, such as ``pyplot.figure(layout="constrained")`` for a window; a new figure
        that pyplot does not know if left out.

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
    kept: Mapping[str, Any] = getattr(run, "bounds", {})
    known = run.group.coordinate_names
    told = {name: (e.lower, e.upper) for name, e in kept.items() if name in known}
    told |= limits or {}
    panels = state_panels(run.group, run.t, run.x, run.reference, _limits(run, told))
    for name, task in getattr(run, "tasks", {}).items():
        panels += error_panels(task.group, run.t, task.error, None, what=f"error of {name}")
    others = {name: e for name, e in kept.items() if name not in (*known, *run.input_names)}
    limited: Mapping[str, Any] = getattr(run, "limited", {})
    panels += limited_panels(run.t, limited)
    panels += kept_panels(run.t, {n: e for n, e in others.items() if n not in limited})
    if len(run.u):
        bounds = _tightened(run, kept)
        panels += input_panels(
            run.t, run.u, run.input_names, run.input_units, run.input_roles, bounds
        )
    if run.estimate is not None and run.estimate.shape == run.x.shape:
        error = run.group.minus(run.x, run.estimate)
        panels += error_panels(run.group, run.t, error, run.estimate_std)
    called = {name: log for name, log in run.controllers.items() if len(log.t)}
    title = run.name if run.status.is_success else f"{run.name}: {run.message or run.status}"
    color = INK if run.status.is_success else WARN
    return _draw(panels, called, title, color, figure)


def _limits(run: PlottedRun, limits: Mapping[str, tuple[float, float]]) -> np.ndarray | None:
    """Lower and upper limits of all coordinates, infinite without, shape (2, nq)."""
    known = getattr(run, "state_limits", None)
    if known is None and not limits:
        return None
    names = run.group.coordinate_names
    bounds = np.tile([[-np.inf], [np.inf]], len(names)) if known is None else known.copy()
    for name, pair in limits.items():
        if name not in names:
            raise UnknownNameError(unknown_name("coordinate of the state", name, names))
        bounds[:, names.index(name)] = pair
    return bounds


def _tightened(run: PlottedRun, kept: Mapping[str, Any]) -> np.ndarray:
    """Bounds of the inputs, with what a controller keeps, shape (2, n_inputs)."""
    bounds = np.array(run.input_bounds, dtype=np.float64)
    for name in kept.keys() & set(run.input_names):
        i = run.input_names.index(name)
        bounds[0, i] = max(bounds[0, i], kept[name].lower)
        bounds[1, i] = min(bounds[1, i], kept[name].upper)
    return bounds


@named_options
def plot_trajectory(
    trajectory: PlottedNodes, *, system: Plant | None = None, figure: Any = None
) -> Figure:
    """States and inputs of a trajectory over time.

    Parameters
    ----------
    trajectory : Trajectory
        Without batch axes.
    system : System, optional
        Whose inputs they are: gives names, units and bounds; the trajectory's ``inputs`` if left
        out.
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
    ['heading']
    """
    if trajectory.x.ndim != 2:
        raise ValueError(
            f"x has shape {trajectory.x.shape}: draw one trajectory at a time, not a batch"
        )
    panels = state_panels(trajectory.group, trajectory.t, trajectory.x, None)
    count = trajectory.u.shape[-1]
    inputs = trajectory.inputs if system is None else system.inputs
    if len(inputs) != count and system is not None:
        raise ValueError(f"{system.name} has {len(inputs)} inputs, the trajectory has {count}")
    if count:
        known = [(e.name, e.unit, e.role, e.lower, e.upper) for e in inputs]
        known = known or [(f"u{i}", "", "control", -np.inf, np.inf) for i in range(count)]
        names, units, roles, *bounds = zip(*known, strict=True)
        panels += input_panels(trajectory.t, trajectory.u, names, units, roles, np.array(bounds))
    return _draw(panels, {}, "" if system is None else system.name, INK, figure)


def _draw(
    panels: list[Panel], calls: dict[str, Any], title: str, color: str, figure: Any
) -> Figure:
    from ._figure import new_figure

    count = len(panels) + bool(calls)
    if figure is None:
        figure = new_figure(*grid_size(count))
    axes = make_grid(figure, count)
    bounded = [
        draw_panel(ax, panel, last=shows_times(k, count))
        for k, (ax, panel) in enumerate(zip(axes, panels, strict=False))
    ]
    limited = bool(calls) and draw_calls(axes[-1], calls, last=True)
    dotted = ["bounds"] * any(bounded)
    dotted += ["sample time"] * limited
    key = ["dashed: reference"] * any(panel.dashed is not None for panel in panels)
    key += [f"dotted: {', '.join(dotted)}"] * bool(dotted)
    key += ["shaded: ±2σ"] * any(panel.band is not None for panel in panels)
    head(figure, title, key, color)
    return figure

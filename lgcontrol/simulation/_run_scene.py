"""Scenes of runs: the states with what was known besides, and panels of what happened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..groups import LieGroup, Product
from ..scene import Scene
from ..scene._internal import SceneEvent, ScenePlot, Scenery, scene_of_states

LINES = 8  # of a panel


def scene_of_run(run: Any, frames: int | None = None, plan: np.ndarray | None = None) -> Scene:
    """The scene of a run; of one that was loaded as it was saved."""
    if isinstance(run.scenery, Scene):
        return replace(run.scenery, title=run.name, plots=[*_errors(run), *_inputs(run)])
    return scene_of_states(
        run.name,
        run.group,
        run.t,
        run.x,
        run.scenery or Scenery(),
        reference=run.reference,
        estimate=run.estimate,
        covariances=None if run.estimate_std is None else _diagonal(run.estimate_std),
        inputs=_held(run),
        plan=plan,
        plots=[*_errors(run), *_inputs(run)],
        frames=frames,
    )


def _diagonal(std: np.ndarray) -> np.ndarray:
    """Covariances of errors whose deviations alone were kept."""
    return std[:, :, np.newaxis] ** 2 * np.eye(std.shape[1])


def saved_scene(run: Any) -> Scene | None:
    """What a file keeps of the scene: all but the panels, which its numbers make again."""
    if run.scenery is None:
        return None
    try:
        return replace(scene_of_run(run), plots=())
    except ValueError:  # nothing in the state moves a body
        return None


def events_of(
    disturbances: Sequence[tuple[str, float, Sequence[float]]],
) -> list[SceneEvent]:
    """Kicks and pulses at their times."""
    return [SceneEvent(t, name, tuple(map(float, change))) for name, t, change in disturbances]


def _errors(run: Any) -> list[ScenePlot]:
    """Norms of what the controller tracks; of the reference where it tracks nothing else."""
    known = {name: (task.group, task.error) for name, task in run.tasks.items()}
    if not known and run.reference is not None:
        known = {"error": (run.group, run.group.minus(run.x, run.reference))}
    lines: dict[str, dict[str, np.ndarray]] = {}
    for name, (group, error) in known.items():
        for label, block, place in _leaves(group):
            units = np.array(block.tangent_units)
            for unit in dict.fromkeys(units.tolist()):
                length = np.linalg.norm(error[:, place][:, units == unit], axis=1)
                lines.setdefault(unit, {})[f"{name} {label}".strip()] = length
    return [
        ScenePlot(f"error [{unit}]", unit, tuple(own)[:LINES], run.t,
             np.column_stack([*own.values()][:LINES]))
        for unit, own in lines.items()
    ]  # fmt: skip


def _held(run: Any) -> dict[str, np.ndarray]:
    """Inputs at all times by name, the last held."""
    if not len(run.u):
        return {}
    return dict(zip(run.input_names, np.concatenate([run.u, run.u[-1:]]).T, strict=True))


def _inputs(run: Any) -> list[ScenePlot]:
    """Controls by unit, with limits that all of them share."""
    found = []
    chosen = [k for k, role in enumerate(run.input_roles) if role == "control"]
    for unit in dict.fromkeys(run.input_units[k] for k in chosen):
        own = [k for k in chosen if run.input_units[k] == unit][:LINES]
        low, high = (set(run.input_bounds[side, own].tolist()) for side in (0, 1))
        held = np.concatenate([run.u, run.u[-1:]])[:, own] if len(run.u) else None
        if held is not None:
            names = tuple(run.input_names[k] for k in own)
            limits = (
                next(iter(s)) if len(s) == 1 else sign * np.inf
                for s, sign in ((low, -1), (high, 1))
            )
            found.append(ScenePlot(f"inputs [{unit}]", unit, names, run.t, held, *limits))
    return found


def _leaves(group: LieGroup, name: str = "", start: int = 0) -> list[tuple[str, LieGroup, slice]]:
    """Blocks directly in the state, with their places in tangent vectors."""
    if not isinstance(group, Product):
        return [(name, group, slice(start, start + group.dim))]
    return [
        (key, block, group.tangent_slice(key)) for key, block in group.blocks.items() if block.dim
    ]

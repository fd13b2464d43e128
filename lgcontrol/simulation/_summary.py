"""A run in a few lines of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..groups import LieGroup, Product
from ._contract import RunStatus
from ._logs import ControllerLog, Measurements

if TYPE_CHECKING:
    from ._result import SimulationResult

# Of coordinates beyond their limits so many have a line of their own.
MOST_NAMED = 3
# What a unit measures, for people.
QUANTITIES = {
    "m": "position",
    "m/s": "velocity",
    "rad/s": "angular velocity",
    "m/s²": "acceleration",
    "N": "force",
    "N m": "torque",
}


def summary(result: SimulationResult) -> list[str]:
    """See `SimulationResult.summary`."""
    ended = result.status != RunStatus.COMPLETED
    lines = [f"{result.status}: {result.message}"] if ended else []
    for name, message in result.unanswered.items():
        statuses = " or ".join(result.controllers[name].calls)
        lines.append(f"{name} was {statuses} at every call" + (f": {message}" if message else ""))
    ends = result.settings.get("reference_ends")
    if ends is not None and result.t[-1] > ends:
        lines.append(
            f"the reference ends at {ends:g} s while it moves, and stays there from then on"
        )
    if result.reference is not None:
        lines += _by_block("final error", result.group, result.error[-1])
    for name, task in result.tasks.items():
        lines += _by_block(f"final error of {name}", task.group, task.error[-1])
    lines += _beyond_limits(result)
    if result.estimate is not None and result.estimate.shape == result.x.shape:
        root = np.sqrt(np.mean(result.estimation_error**2, axis=0))
        lines += _by_block("estimation error, root mean square,", result.group, root)
    effort = _effort(result)
    if effort:
        lines.append(f"effort, integral of u²: {effort}")
    if result.command.size:
        lines.append(f"commands at or beyond the bounds: {100 * result.saturation():.1f} %")
    for name, entry in result.measurements.items():
        lines += _sensor(name, entry)
    several = len(result.controllers) > 1
    for name, log in result.controllers.items():
        lines += [f"{name}: {line}" if several else line for line in _controller(log)]
    return lines + _steps(result.settings)


def _steps(settings: Mapping[str, Any]) -> list[str]:
    """How the plant was moved."""
    shortest, longest = (settings.get(key) for key in ("shortest_step", "longest_step"))
    if shortest is None or longest is None:
        return []
    span = f"{shortest:.3g} s" if longest < 1.01 * shortest else f"{shortest:.3g} … {longest:.3g} s"
    tolerance = settings.get("tolerance")
    kind = "not watched" if tolerance is None else f"tolerance {tolerance:g}"
    return [f"integration: {settings['method']}, steps of {span}, errors: {kind}"]


def _sensor(name: str, entry: Measurements) -> list[str]:
    """What became of measurements that did not all come in time."""
    under_way = entry.taken - entry.lost - len(entry.t)
    parts = [(entry.lost, "lost"), (entry.late, "late"), (under_way, "still under way at the end")]
    told = ", ".join(f"{count} {what}" for count, what in parts if count > 0)
    return [f"{name}: {entry.taken} measurements, {told}"] if told else []


def _by_block(what: str, group: LieGroup, error: np.ndarray) -> list[str]:
    """A line for each block of the state: the norms of its parts of one unit."""
    if not isinstance(group, Product):
        return [f"{what}: {_norms(group, error)}"]
    return [
        f"{what} of {name}: {_norms(block, error[group.tangent_slice(name)])}"
        for name, block in group.blocks.items()
        if block.dim
    ]


def _norms(block: LieGroup, error: np.ndarray) -> str:
    """Norm of the entries of each unit, with what they are where there are several."""
    parts = []
    units = dict.fromkeys(block.tangent_units)
    for unit in units:
        some = [v for v, u in zip(error, block.tangent_units, strict=True) if u == unit]
        # Three angles of a pose are an attitude, one is a heading; those of joints are angles.
        turns = "attitude" if len(some) == 3 else "heading" if len(some) == 1 else "angles"
        quantity = turns if unit == "rad" else QUANTITIES.get(unit, "")
        label = f"{quantity} " if quantity and len(units) > 1 else ""
        parts.append(f"{label}{np.linalg.norm(some):.4g} {unit}".rstrip())
    return ", ".join(parts)


def _beyond_limits(result: SimulationResult) -> list[str]:
    """A line for each of the coordinates that exceed their limits most."""
    found = sorted(result.beyond_limits().items(), key=lambda entry: -entry[1])
    lines = []
    for name, _ in found[:MOST_NAMED]:
        i = result.group.coordinate_names.index(name)
        assert result.state_limits is not None
        lower, upper = result.state_limits[:, i]
        x, unit = result.x[:, i], result.group.coordinate_units[i]
        worst = x[np.argmax(np.maximum(x - upper, lower - x))]
        first = result.t[np.argmax((x > upper) | (x < lower))]
        lines.append(
            f"beyond the limits of {name} from {first:g} s on: {worst:.4g} {unit}".rstrip()
            + f", allowed are {lower:.4g} … {upper:.4g}"
        )
    if len(found) > MOST_NAMED:
        lines.append(f"beyond the limits of {len(found) - MOST_NAMED} more coordinates")
    return lines


def _effort(result: SimulationResult) -> str:
    """Effort of the controls by unit."""
    units = [
        unit
        for unit, role in zip(result.input_units, result.input_roles, strict=True)
        if role == "control"
    ]
    if not len(result.u):
        return ""
    parts = [
        f"{sum(e for e, u in zip(result.effort(), units, strict=True) if u == unit):.4g} "
        + (f"{f'({unit})' if ' ' in unit or '/' in unit else unit}²·s" if unit else "s")
        for unit in dict.fromkeys(units)
    ]
    return ", ".join(parts)


def _controller(log: ControllerLog) -> list[str]:
    lines = []
    period = float(np.diff(log.t).min()) if len(log.t) > 1 else 0.0
    if len(log.t):
        ms = 1e3 * log.info["call_time"]
        lines.append(
            f"controller call: median {np.median(ms):.2f} ms, "
            f"99 % {np.percentile(ms, 99):.2f} ms, longest {ms.max():.2f} ms"
        )
        late = np.mean(ms > 1e3 * period) if period else 0.0
        if late:
            lines.append(
                f"calls longer than the sample time of {1e3 * period:g} ms: {100 * late:.2g} %"
            )
    age = log.info.get("measurement_age")
    if age is not None and len(age):
        unseen, stale = int(np.isnan(age).sum()), int((age > period + 1e-9).sum())
        if unseen:
            lines.append(f"calls before any measurement: {unseen} of {len(age)}")
        if stale and period:
            lines.append(
                f"calls with a measurement older than the sample time of {1e3 * period:g} ms: "
                f"{stale} of {len(age)}, the oldest {np.nanmax(age):.3g} s"
            )
    if "status" in log.info:
        names, counts = np.unique(log.info["status"].astype(str), return_counts=True)
        pairs = (f"{name} {count}" for name, count in zip(names, counts, strict=True))
        lines.append(f"controller status: {', '.join(pairs)}")
    if log.last_message and any(not status.is_answered for status in log.calls):
        lines.append(f"last message of the controller: {log.last_message}")
    return lines

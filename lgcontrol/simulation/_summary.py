"""A run in a few lines of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._logs import ControllerLog
    from ._result import SimulationResult


def summary(result: SimulationResult) -> list[str]:
    """See `SimulationResult.summary`."""
    lines = [] if result.success else [f"{result.status}: {result.message}"]
    if result.reference is not None:
        lines += [
            f"final error: {norm:.4g} {unit}".rstrip()
            for unit, norm in _norms(result.error[-1], result.group.tangent_units).items()
        ]
    if result.estimate is not None and result.estimate.shape == result.x.shape:
        root = np.sqrt(np.mean(result.estimation_error**2, axis=0))
        lines += [
            f"estimation error, root mean square: {norm:.4g} {unit}".rstrip()
            for unit, norm in _norms(root, result.group.tangent_units).items()
        ]
    effort = _effort(result)
    if effort:
        lines.append(f"effort, integral of u²: {effort}")
    if result.command.size:
        lines.append(f"commands beyond the bounds: {100 * result.saturation():.1f} %")
    several = len(result.controllers) > 1
    for name, log in result.controllers.items():
        lines += [f"{name}: {line}" if several else line for line in _controller(log)]
    return lines


def _norms(values: np.ndarray, units: tuple[str, ...]) -> dict[str, float]:
    """Norm of the entries of each unit."""
    return {
        unit: float(np.linalg.norm([v for v, u in zip(values, units, strict=True) if u == unit]))
        for unit in dict.fromkeys(units)
    }


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
        + (f"({unit})²·s" if unit else "s")
        for unit in dict.fromkeys(units)
    ]
    return ", ".join(parts)


def _controller(log: ControllerLog) -> list[str]:
    lines = []
    if len(log.t):
        ms = 1e3 * log.info["call_time"]
        lines.append(
            f"controller call: median {np.median(ms):.2f} ms, "
            f"99 % {np.percentile(ms, 99):.2f} ms, longest {ms.max():.2f} ms"
        )
    if "status" in log.info:
        names, counts = np.unique(log.info["status"].astype(str), return_counts=True)
        pairs = (f"{name} {count}" for name, count in zip(names, counts, strict=True))
        lines.append(f"controller status: {', '.join(pairs)}")
    return lines

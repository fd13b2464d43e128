"""Messages of trims that failed: the worst equation, the bounds, the broken symmetry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._derivatives import field_derivatives
from ._nearest import Nearest
from ._steadiness import follow
from ._trim_equations import Equations, blocks_of
from ._trim_point import TrimPoint

if TYPE_CHECKING:
    from ._system import System


def infeasible(
    system: System,
    equations: Equations,
    best: Nearest,
    u: np.ndarray,
    free: np.ndarray,
    moving: list[str],
    starts: int,
) -> str:
    """Say which equation is worst, which inputs are at a bound and what had to stay still."""
    worst = int(np.argmax(np.abs(np.nan_to_num(best.scaled, nan=np.inf))))
    value = f"{best.residual[worst]:.4g} {equations.units[worst]}".rstrip()
    text = f"{system.name}: no trim point found from {starts} starts; the best one leaves "
    text += f"{equations.names[worst]} = {value}"
    at = [
        f"{entry.name} at its {side} bound {limit:g} {entry.unit}".rstrip()
        for entry, value in ((system.inputs[i], u[i]) for i in free)
        for side, limit in (("lower", entry.lower), ("upper", entry.upper))
        if abs(value - limit) <= 1e-9 * max(1.0, abs(value))
    ]
    if at:
        text += f", with {', '.join(at)}"
    still = [name for name in blocks_of(system.state) if name not in moving]
    if still:
        text += f"; blocks that had to stay still: {', '.join(still)} (see moving=)"
        if system.is_discrete:
            text += "; in a discrete system blocks that move have to be named there"
    return text


def not_a_symmetry(system: System, point: TrimPoint) -> str:
    """Say what changes along the motion."""
    here = field_derivatives(system)(point.t, point.x, point.u, point.p)
    later = follow(system, point.t, point.x, point.u, point.p, here)
    names, units = system.state.tangent_names, system.state.tangent_units
    off = np.nan_to_num(np.abs(later.there.rate - here.rate), nan=np.inf)
    k, i = np.unravel_index(int(np.argmax(off / later.tolerance)), off.shape)
    what = f"the rate of {names[i]} changes by {off[k, i]:.3g} {units[i] or '1'} per s"
    if off[k, i] <= later.tolerance[k, i]:
        slopes = np.abs(later.there.A - here.A)
        k, i, j = np.unravel_index(int(np.argmax(slopes)), slopes.shape)
        what = f"the rate of {names[i]} answers differently to {names[j]}"
    return (
        f"{system.name}: the motion with the wished values is not a symmetry of the system, so it "
        f"is no relative equilibrium: {what} within {later.t[k] - point.t:.3g} s"
    )

"""Phase: one stretch of a plan with its own system, limits and, perhaps, a free duration."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np

from ...codegen import named_options
from ...codegen._internal import check_count, check_shape
from ...groups import LieGroup
from ...systems import System
from .._bounds import Bound, with_known_limits
from .._expressions import called_with
from .._statement import MOST_HORIZON
from .._terms import Cost, Residual
from .._traced import traced_terms


@named_options
@dataclass(frozen=True, eq=False)
class Phase:
    """One stretch of a `PhasedProblem`.

    Functions are those of `OptimalControlProblem`, of the phase's own system; t is the time since
    the start of the plan in s, durations included.

    Parameters
    ----------
    system : System
        Continuous. Fields, inputs, their bounds and even the group of the state may differ from
        phase to phase, parameters not. Inputs of one name are one; where the group changes the
        phase before has a jump.
    steps : int
    duration : float or tuple of two floats
        In s: given, or free between two limits.
    Q, R : float, array_like or mapping, optional
        Weights per s on the error and on the controls; a stack has one for each step. Without
        R, squares of controls that have limits weigh 1e-7 in each step, as shares of half their
        ranges.
    costs : sequence of Cost
    residuals : sequence of Residual
        Their ``terminal`` weighs them at the end of the phase, before the jump.
    bounds : sequence of Bound
        Along the phase, also where it begins: of the first phase if its start is free, of others at
        the end of the phase before or, if that has a jump, after it. Bounds ``at="terminal"`` hold
        at its end, before the jump, and bounds ``at="start"`` where it begins, alone. Nodes of a
        range are counted from the start of the phase, also those of costs and residuals.
    jump : callable, optional
        ``(t, x, p) → x`` on CasADi columns: the state of the next phase after the end of this one.
    name : str
        Of its duration, "phase0" and so on if left out.
    reference : optional
        State, or an object with ``x`` and ``u``, of its errors and efforts. If left out it is that
        of the problem, which is of the first phase's group.
    lengths : array_like, shape (steps,), optional
        Ratio of the lengths of the steps, such as ``[1, 1, 2, 4]``; equal if left out.
    blocks : int, sequence of int or mapping, optional
        Steps of the phase over which an input stays, as of `OptimalControlProblem`. The first block
        begins with the phase.
    duration_prior : tuple of two floats, optional
        ``(T₀, w)``: the expected duration in s and the weight of ``½ w (T − T₀)²``. In estimation w
        is the inverse of the variance.

    Examples
    --------
    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.systems import System
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    >>> Phase(cart, 20, duration=(0.5, 4.0)).is_free
    True
    """

    system: System
    steps: int
    duration: Any
    Q: Any = None
    R: Any = None
    costs: Sequence[Cost] = ()
    residuals: Sequence[Residual] = ()
    bounds: Sequence[Bound] = ()
    jump: Callable[[Any, Any, Any], Any] | None = None
    name: str = ""
    reference: Any = None
    lengths: Any = None
    blocks: Any = None
    duration_prior: Any = None
    _is_refined: bool = False

    def __post_init__(self) -> None:
        if self.system.is_discrete:
            raise TypeError(
                f"{self.system.name} is discrete, with the sample time {self.system.dt:g} s, and "
                "the duration of a phase sets the length of its steps: give the continuous system, "
                "or plan with OptimalControlProblem"
            )
        check_count("steps", self.steps, most=MOST_HORIZON)
        limits = self.limits
        if limits[1] == np.inf:
            raise ValueError(
                f"duration {self.duration!r}: the longest one must be finite, as it is where plans "
                "end that gain by every second, such as with time_weight < 0. Give a limit that "
                "no good plan reaches, as in (0.2, 60.0)"
            )
        if not (0 <= limits[0] <= limits[1] < np.inf) or limits[1] == 0:
            order = "; the least comes first" if limits[1] < limits[0] else ""
            raise ValueError(
                f"duration must be seconds > 0, or two limits such as (0.2, 10.0), got "
                f"{self.duration!r}{order}"
            )
        if self.lengths is not None:
            lengths = check_shape("lengths", self.lengths, (self.steps,))
            if not (lengths > 0).all():
                k = int((lengths <= 0).argmax())
                raise ValueError(f"lengths must be positive, got {lengths[k]:g} for step {k}")
        if self.duration_prior is not None:
            _, weight = check_shape("duration_prior", self.duration_prior, (2,))
            if not self.is_free:
                raise ValueError(
                    f"duration_prior is of a duration that is found, and {self.duration!r} s is "
                    "given: give two limits, duration=(0.2, 10.0), or leave it out"
                )
            if not weight > 0:
                raise ValueError(
                    "duration_prior is (expected duration in s, weight > 0), got "
                    f"{self.duration_prior!r}"
                )

    @property
    def known_bounds(self) -> list[Bound]:
        """The bounds, with limits that the system knows where they give none."""
        return [with_known_limits(self.system, bound) for bound in self.bounds]

    @property
    def shares(self) -> np.ndarray:
        """Share of the duration that each step takes."""
        lengths = np.ones(self.steps) if self.lengths is None else np.asarray(self.lengths, float)
        return lengths / lengths.sum()

    def lengths_of_nodes(self, *, of_inputs: bool = False) -> np.ndarray:
        """Share of the duration for which each node counts in soft bounds, (steps + 1,).

        Its step, of the last node that before it. A refined phase has the weights of the
        trapezoidal rule, of inputs the lengths of their steps.
        """
        shares = self.shares
        if not self._is_refined or of_inputs:
            return np.append(shares, shares[-1])
        return (np.append(shares, 0.0) + np.append(0.0, shares)) / 2

    @property
    def nodes(self) -> np.ndarray:
        """Share of the duration at which each node is, from 0 to 1."""
        return np.append(np.cumsum(self.shares) - self.shares, 1.0)

    def jumped(self, t: Any, x: Any, p: Any, group: LieGroup) -> Any:
        """The state after the end, on a group, for symbols of that before."""
        value = self._after(t, x, p)
        if value.shape != (group.nq, 1):
            raise ValueError(
                f"jump of phase {self.name!r} returned shape {value.shape}, expected "
                f"{(group.nq, 1)}: an element of {group}"
            )
        return value

    def _after(self, t: Any, x: Any, p: Any) -> Any:
        """What `jump` returns, as a column; its faults by the name of the phase."""
        assert self.jump is not None
        label = f"jump of phase {self.name!r}"
        value = called_with(label, self.jump, (t, x, p), ("t", "x", "p"))
        try:
            return ca.vertcat(*value) if isinstance(value, list | tuple) else type(x)(value)
        except (NotImplementedError, TypeError):
            raise TypeError(
                f"{label} returned {value!r}, expected a CasADi column or a list of scalars: the "
                "state of the next phase"
            ) from None

    def traced(self, parameters: int) -> Phase:
        """The same with CasADi functions in place of Python's, for so many parameters."""
        named, symbol, jump = ("costs", "residuals", "bounds"), self.system.symbol, self.jump
        terms: Any = {n: traced_terms(self.system, getattr(self, n), parameters) for n in named}
        if jump is not None and not isinstance(jump, ca.Function):
            sizes = {"t": 1, "x": self.system.state.nq, "p": parameters}
            given = [symbol.sym(name, size) for name, size in sizes.items()]
            jump = ca.Function("jump", given, [self._after(*given)])
        return replace(self, **terms, jump=jump)

    @property
    def is_free(self) -> bool:
        """Whether the duration is to be found: two limits that differ."""
        low, high = self.limits
        return low < high

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest duration, s."""
        pair = self.duration if np.ndim(self.duration) else (self.duration, self.duration)
        low, high = check_shape("duration", pair, (2,), finite=False)
        return float(low), float(high)

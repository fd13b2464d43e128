"""RealTime: when an MPC is called, and what it may do in a call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import check_count, check_shape


@named_options(own="iterations first_iterations restarts")
@dataclass(frozen=True, slots=True, kw_only=True)
class RealTime:
    """Times of the calls of an `MPC`, and the work of a call.

    Parameters
    ----------
    period : float, optional
        Time between calls in s; a step of the plan if left out.
    offset : float
        Time of the first call in s.
    iterations : int
        Iterations of a call that starts from the last plan.
    first_iterations : int
        Most iterations of a first plan.
    most_iterations : int, optional
        Hard limit on the iterations of any call, first plans among them, in firmware too: its
        header says it. ``2 (iterations + 4) + first_iterations`` if left out: 60. Calls need more
        than ``2 (iterations + 4)`` only to find out whether hard limits can be satisfied.
    budget : float
        Time for a call in s, looked at after every iteration; the answer is that of the plan so
        far. `MPC.prepare` and `MPC.preview` have no limit.
    restarts : bool or "at once"
        Whether a plan begins anew where reference, parameters or state have jumped. A jump is a
        warm start that costs more than twice the recent cost of warm starts. Recent costs count
        less by a factor of seven a horizon. The call of a jump takes four iterations more. The next
        call iterates from the last plan and from a new initial guess, and keeps the better plan.
        "at once" compares the last plan with a new initial guess in the call of the jump, and
        iterates the better one to convergence. There are no restarts where `costs` may be negative,
        with ``split=True`` and with other solvers than `InteriorPointSolver`.
    split : bool
        Whether a call answers with the feedback of a plan that was made before, and makes the next
        plan afterwards: see `MPC.preview`.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> RealTime(iterations=2, budget=0.01).restarts
    True
    """

    period: float | None = None
    offset: float = 0.0
    iterations: int = 1
    first_iterations: int = 50
    most_iterations: int | None = None
    budget: float = np.inf
    restarts: bool | Literal["at once"] = True
    split: bool = False

    def __post_init__(self) -> None:
        for name in ("iterations", "first_iterations", "most_iterations"):
            if name == "most_iterations" and self.most_iterations is None:
                continue
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        budget = float(check_shape("budget", self.budget, (), finite=False))
        if not budget > 0:
            raise ValueError(f"budget must be positive, got {self.budget:g} s")
        object.__setattr__(self, "budget", budget)
        if not (isinstance(self.restarts, bool | np.bool) or self.restarts == "at once"):
            raise ValueError(f"restarts must be True, False or 'at once', got {self.restarts!r}")

    def at_most(self, iterations: int) -> int:
        """So many iterations, or as many as a call may take."""
        most = self.most_iterations
        return iterations if most is None else min(iterations, most)

    @property
    def looks(self) -> int:
        """How jumps are looked for, as the kernel has it: 0 not at all, 2 "at once"."""
        return 2 if self.restarts == "at once" else int(bool(self.restarts))

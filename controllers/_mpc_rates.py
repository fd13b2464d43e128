"""InputRates: states and inputs of a system in those of a problem with rates, and back."""

from __future__ import annotations

import numpy as np

from lgcontrol.optimal import OptimalControlProblem, OptimalSolution, Rates, with_rates
from lgcontrol.optimal._internal import (
    InputView,
    LoopRates,
    ReferenceSamples,
    with_free_rates,
    with_linear_inputs,
)
from lgcontrol.systems import ReferenceLike, System, Trajectory


class InputRates:
    """View of a problem whose controls are rates; without rates (`is_plain`) nothing changes.

    An answer is held over a period in s (hold "zero"), or reached linearly at its end ("first").
    """

    def __init__(self, stated: OptimalControlProblem, rates: Rates | None, period: float) -> None:
        self._stated, self.rates, self.period, self.hold = stated, rates, period, stated.hold
        self.system: System = stated.system
        self.in_blocks = stated.may_change is not None
        self.is_plain = rates is None and self.hold == "zero" and not self.in_blocks
        kind = "blocks" if self.in_blocks else "linear" if self.hold == "first" else "rates"
        kind = "plain" if self.is_plain else kind
        self._view = InputView(self.system, kind, held=period, may=stated.may_change)
        self._lead = self._view.leads(stated.steps)[0]

    @property
    def what(self) -> str:
        """What there is of it, in words."""
        if self.rates is not None:
            return "rates"
        return "blocks" if self.in_blocks else "linear controls"

    def problem(self, stated: OptimalControlProblem) -> OptimalControlProblem:
        """Return the problem that is solved for a problem of the system's inputs."""
        if self.in_blocks:
            return with_free_rates(stated, self.rates)
        if self.rates is not None:
            return with_rates(stated, self.rates, period=self.period)
        return stated if self.hold == "zero" else with_linear_inputs(stated)

    def in_kernel(self, stated: OptimalControlProblem) -> LoopRates | None:
        """The same for calls of the kernel."""
        if self.is_plain:
            return None
        view, held = self._view, float(self._lead[0])
        order = np.concatenate([view.controls, view.others])
        nominal = self.system.nominal_input[order]
        if self.in_blocks:  # nothing says so much about steps and blocks
            nominal = np.concatenate([nominal, np.zeros(2 + 2 * len(view.controls))])
        return LoopRates(held, stated, nominal, order, self.sampled, self.hold == "first")

    def sampled(
        self, reference: ReferenceLike | ReferenceSamples, t: np.ndarray, p: np.ndarray | None
    ) -> ReferenceSamples:
        """A reference of the system at the nodes of a plan as one of the problem."""
        return self._view.at_nodes(reference, t, self._stated.steps, p)[1]

    def state(self, x: np.ndarray, acting: np.ndarray) -> np.ndarray:
        """State of the problem: with rates what acts is beside that of the system."""
        return x if self.is_plain else np.concatenate([x, acting])

    def inputs(self, x: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Controls of the system from a state and first controls of the problem."""
        if self.is_plain:
            return u
        return x[self._view.nq :] + self._lead * u[: self._view.beside]

    def held(self, steps: np.ndarray) -> np.ndarray | None:
        """Times that the rates of a plan act until the inputs of `inputs` are reached.

        Of shape (N, 1), or (N, m) for blocks.
        """
        return None if self.is_plain else self._view.leads(steps)

    def trajectory(self, plan: OptimalSolution) -> Trajectory:
        """A plan as states and inputs of the system."""
        if self.is_plain:
            return plan.trajectory
        view, system = self._view, self.system
        t, x, values = view.values(plan.t, plan.x, plan.u, system.nominal_parameters,
                                   plan.problem.steps)  # fmt: skip
        u = view.all_inputs(values, plan.u)
        return Trajectory.unchecked(system.state, t, x, u, system.inputs, self.hold)

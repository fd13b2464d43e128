"""InputRates: states and inputs of a system in those of a problem with rates, and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from lgcontrol.optimal import OptimalControlProblem, OptimalSolution, Rates, with_rates
from lgcontrol.optimal._internal import (
    LoopRates,
    ReferenceSamples,
    beside_blocks,
    beside_inputs,
    sample_reference,
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
        self._controls = self.system.input_index("control")
        self.in_blocks = stated.may_change is not None
        self.is_plain = rates is None and self.hold == "zero" and not self.in_blocks

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
        nominal, others = self.system.nominal_input, np.arange(self.system.n_inputs)
        order = [*self._controls, *np.setdiff1d(others, self._controls)]
        held, nominal = self._leads(float(stated.steps[0])), nominal[order]
        if self.in_blocks:  # nothing says so much about steps and blocks
            nominal = np.concatenate([nominal, np.zeros(2 + 2 * len(self._controls))])
        return LoopRates(held, stated, nominal, np.array(order), self.sampled, self.hold == "first")

    def _leads(self, steps: Any) -> Any:
        """Times that rates act until the inputs of a step are reached; those of blocks jump."""
        return steps if self.in_blocks else np.minimum(self.period, steps)

    def sampled(self, reference: ReferenceLike, t: np.ndarray, p: np.ndarray) -> ReferenceSamples:
        """A reference of the system at the nodes of a plan as one of the problem."""
        return self.reference(sample_reference(self.system, reference, t, p), t)

    def state(self, x: np.ndarray, acting: np.ndarray) -> np.ndarray:
        """State of the problem: with rates what acts is beside that of the system."""
        return x if self.is_plain else np.concatenate([x, acting])

    def inputs(self, x: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """Controls of the system from a state and controls of the problem with this step."""
        if self.is_plain:
            return u
        return x[self.system.state.nq :] + self._leads(dt) * u[: len(self._controls)]

    def held(self, steps: np.ndarray) -> np.ndarray | None:
        """Times that the rates of a plan act until the inputs of `inputs` are reached.

        Of shape (N, 1), or (N, m) for blocks.
        """
        if self.is_plain:
            return None
        held, may = self._leads(steps)[:, None], self._stated.may_change
        return held if may is None else held * may

    def reference(self, samples: ReferenceSamples, times: np.ndarray) -> ReferenceSamples:
        """A reference of the problem at the nodes of a plan."""
        if self.in_blocks:
            return beside_blocks(self._stated, samples, times)
        return samples if self.is_plain else beside_inputs(self.system, samples)

    def trajectory(self, plan: OptimalSolution, dt: float) -> Trajectory:
        """A plan as states and inputs of the system."""
        if self.is_plain:
            return plan.trajectory
        x, rates, nq, m = plan.x, plan.u, self.system.state.nq, len(self._controls)
        group, inputs, own = self.system.state, self.system.inputs, x[:, nq:]
        if self.hold == "zero":
            held = self.held(plan.problem.steps)
            assert held is not None
            own = own[:-1] + held * rates[:, :m]
        u = np.empty((len(own), self.system.n_inputs))
        others = np.setdiff1d(np.arange(self.system.n_inputs), self._controls)
        rest = rates[:, m : m + len(others)]
        u[:, self._controls], u[: len(rates), others] = own, rest
        u[len(rates) :, others] = rest[-1:]
        return Trajectory.unchecked(group, plan.t, x[:, :nq], u, inputs, self.hold)

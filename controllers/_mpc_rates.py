"""InputRates: states and inputs of a system in those of a problem with rates, and back."""

from __future__ import annotations

import numpy as np

from lgcontrol.optimal import OptimalControlProblem, OptimalSolution, Rates, with_rates
from lgcontrol.optimal._internal import (
    LoopRates,
    ReferenceSamples,
    beside_inputs,
    sample_reference,
    with_linear_inputs,
)
from lgcontrol.systems import ReferenceLike, System, Trajectory


class InputRates:
    """View of a problem whose controls are rates; without rates (`is_plain`) nothing changes.

    An answer is held over a period in s (hold "zero"), or reached linearly at its end ("first").
    """

    def __init__(
        self, system: System, rates: Rates | None, period: float, hold: str = "zero"
    ) -> None:
        self.system, self.rates, self.period, self.hold = system, rates, period, hold
        self._controls = system.input_index("control")
        self.is_plain = rates is None and hold == "zero"

    def problem(self, stated: OptimalControlProblem) -> OptimalControlProblem:
        """Return the problem that is solved for a problem of the system's inputs."""
        if self.rates is not None:
            return with_rates(stated, self.rates, period=self.period)
        return stated if self.hold == "zero" else with_linear_inputs(stated)

    def in_kernel(self, stated: OptimalControlProblem) -> LoopRates | None:
        """The same for calls of the kernel."""
        if self.is_plain:
            return None
        nominal, others = self.system.nominal_input, np.arange(self.system.n_inputs)
        order = [*self._controls, *np.setdiff1d(others, self._controls)]
        held = min(self.period, float(stated.steps[0]))
        return LoopRates(held, stated, nominal[order], self.sampled, self.hold == "first")

    def sampled(self, reference: ReferenceLike, t: np.ndarray, p: np.ndarray) -> ReferenceSamples:
        """A reference of the system at some times as one of the problem."""
        return self.reference(sample_reference(self.system, reference, t, p))

    def state(self, x: np.ndarray, acting: np.ndarray) -> np.ndarray:
        """State of the problem: with rates what acts is beside that of the system."""
        return x if self.is_plain else np.concatenate([x, acting])

    def inputs(self, x: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """Controls of the system from a state and controls of the problem with this step."""
        if self.is_plain:
            return u
        held = min(self.period, dt)
        return x[self.system.state.nq :] + held * u[: len(self._controls)]

    def held(self, steps: np.ndarray) -> np.ndarray | None:
        """Times (N, 1) that the rates of a plan act until the inputs of `inputs` are reached."""
        return None if self.is_plain else np.minimum(self.period, steps)[:, None]

    def reference(self, samples: ReferenceSamples) -> ReferenceSamples:
        """A reference of the problem."""
        return samples if self.is_plain else beside_inputs(self.system, samples)

    def trajectory(self, plan: OptimalSolution, dt: float) -> Trajectory:
        """A plan as states and inputs of the system."""
        if self.is_plain:
            return plan.trajectory
        x, rates, nq, m = plan.x, plan.u, self.system.state.nq, len(self._controls)
        group, inputs, own = self.system.state, self.system.inputs, x[:, nq:]
        if self.hold == "zero":
            own = own[:-1] + min(self.period, dt) * rates[:, :m]
        u = np.empty((len(own), self.system.n_inputs))
        others = np.setdiff1d(np.arange(self.system.n_inputs), self._controls)
        u[:, self._controls], u[: len(rates), others] = own, rates[:, m:]
        u[len(rates) :, others] = rates[-1:, m:]
        return Trajectory.unchecked(group, plan.t, x[:, :nq], u, inputs, self.hold)

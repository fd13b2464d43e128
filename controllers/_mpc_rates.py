"""InputRates: states and inputs of a system in those of a problem with rates, and back."""

from __future__ import annotations

import numpy as np

from lgcontrol.optimal import OptimalControlProblem, OptimalSolution, Rates, with_rates
from lgcontrol.optimal._internal import (
    LoopRates,
    ReferenceSamples,
    beside_inputs,
    sample_reference,
)
from lgcontrol.systems import ReferenceLike, System, Trajectory


class InputRates:
    """View of a problem whose controls are rates; without rates nothing changes.

    Parameters
    ----------
    system : System
    rates : Rates or None
    period : float
        Time over which an input is held, s.
    """

    def __init__(self, system: System, rates: Rates | None, period: float) -> None:
        self.system, self.rates, self.period = system, rates, period
        self._controls = system.input_index("control")

    def problem(self, stated: OptimalControlProblem) -> OptimalControlProblem:
        """Return the problem that is solved for a problem of the system's inputs."""
        if self.rates is None:
            return stated
        return with_rates(stated, self.rates, period=self.period)

    def in_kernel(self, stated: OptimalControlProblem) -> LoopRates | None:
        """The same for calls of the kernel."""
        if self.rates is None:
            return None
        nominal, others = self.system.nominal_input, np.arange(self.system.n_inputs)
        order = [*self._controls, *np.setdiff1d(others, self._controls)]
        held = min(self.period, stated.dt)
        return LoopRates(held, stated, nominal[order], self.sampled)

    def sampled(self, reference: ReferenceLike, t: np.ndarray, p: np.ndarray) -> ReferenceSamples:
        """A reference of the system at some times as one of the problem."""
        return self.reference(sample_reference(self.system, reference, t, p))

    def state(self, x: np.ndarray, acting: np.ndarray) -> np.ndarray:
        """State of the problem: with rates what acts is beside that of the system."""
        return x if self.rates is None else np.concatenate([x, acting])

    def inputs(self, x: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """Controls of the system from a state and controls of the problem with this step."""
        if self.rates is None:
            return u
        held = min(self.period, dt)
        return x[self.system.state.nq :] + held * u[: len(self._controls)]

    def reference(self, samples: ReferenceSamples) -> ReferenceSamples:
        """A reference of the problem."""
        return samples if self.rates is None else beside_inputs(self.system, samples)

    def trajectory(self, plan: OptimalSolution, dt: float) -> Trajectory:
        """A plan as states and inputs of the system."""
        if self.rates is None:
            return plan.trajectory
        x, rates, nq, m = plan.x, plan.u, self.system.state.nq, len(self._controls)
        u = np.empty((len(rates), self.system.n_inputs))
        others = np.setdiff1d(np.arange(self.system.n_inputs), self._controls)
        u[:, self._controls] = x[:-1, nq:] + min(self.period, dt) * rates[:, :m]
        u[:, others] = rates[:, m:]
        return Trajectory.unchecked(self.system.state, plan.t, x[:, :nq], u, self.system.inputs)

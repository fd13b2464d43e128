"""OptimalSolution: the best iterate of a solve, and how the solve went."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, NamedTuple

import numpy as np

from ..systems import Trajectory
from ._problem import OptimalControlProblem

Status = Literal[
    "converged", "iteration limit", "time limit", "infeasible", "stalled", "qp failed", "stopped"
]


class Iteration(NamedTuple):
    """One iterate of a solve, as callbacks get it.

    Attributes
    ----------
    number : int
    cost : float
        With the prices of soft bounds.
    gap : float
        Largest gap in the dynamics.
    violation : float
        Largest excess over a hard bound.
    kkt : float
        Optimality residual; infinite before the first step.
    step : float
        Share of the last step that was taken.
    damping : float
        Levenberg's weight in the last step.
    time : float
        Since the start of the solve, s.
    """

    number: int
    cost: float
    gap: float
    violation: float
    kkt: float
    step: float
    damping: float
    time: float


class Violation(NamedTuple):
    """Where a bound is exceeded most.

    Attributes
    ----------
    name : str
        Of the bounded quantity.
    time : float
        In s.
    node : int
    amount : float
        Excess, in the unit of the quantity.
    """

    name: str
    time: float
    node: int
    amount: float

    def __str__(self) -> str:
        """Name, amount and time."""
        return f"{self.name} exceeds its bound by {self.amount:.3g} at t = {self.time:g} s"


def worst_violations(
    names: tuple[str, ...], excess: np.ndarray, times: np.ndarray
) -> tuple[Violation, ...]:
    """Of each row the largest excess, if any, from the worst row on.

    Parameters
    ----------
    names : tuple of str
    excess : ndarray, shape (N + 1, rows)
    times : ndarray, shape (N + 1,)

    Returns
    -------
    tuple of Violation
    """
    found = [
        Violation(names[i], float(times[k]), int(k), float(excess[k, i]))
        for i, k in enumerate(excess.argmax(axis=0) if excess.size else ())
        if excess[k, i] > 0
    ]
    return tuple(sorted(found, key=lambda entry: -entry.amount))


@dataclass(frozen=True, eq=False)
class OptimalSolution:
    """Result of solving an `OptimalControlProblem`.

    Attributes
    ----------
    status : str
        "converged"; otherwise why the solve ended: "iteration limit", "time limit", "infeasible"
        (no step reduces the violation of hard bounds), "stalled", "qp failed", "stopped" (by the
        callback).
    message : str
        The same in a sentence, with the bounds that are violated.
    trajectory : Trajectory
        Best iterate: N + 1 states and N inputs.
    reference : Trajectory
        What was to be followed.
    cost : float
        Of the problem, with the prices of soft bounds.
    kkt : float
        Optimality residual: largest of the scaled gradient of the Lagrangian, the gaps, the
        violations and the complementarity.
    gap : float
        Largest gap in the dynamics.
    violations : tuple of Violation
        Hard bounds that are exceeded, each where it is worst.
    iterations : tuple of Iteration
    times : dict
        Seconds in "total", "model" (functions and derivatives) and "qp".
    problem : OptimalControlProblem
    """

    status: Status
    message: str
    trajectory: Trajectory
    reference: Trajectory
    cost: float
    kkt: float
    gap: float
    violations: tuple[Violation, ...]
    iterations: tuple[Iteration, ...]
    times: dict[str, float]
    problem: OptimalControlProblem

    @property
    def success(self) -> bool:
        """Whether the solve converged."""
        return self.status == "converged"

    @property
    def t(self) -> np.ndarray:
        """Times of the nodes, s."""
        return self.trajectory.t

    @property
    def x(self) -> np.ndarray:
        """States of the nodes, shape (N + 1, nq)."""
        return self.trajectory.x

    @property
    def u(self) -> np.ndarray:
        """Inputs, shape (N, n_inputs)."""
        return self.trajectory.u

    def plot(self, **options: Any) -> Any:
        """Plot states and inputs over time, the reference dashed.

        Parameters
        ----------
        **options
            Of `lgcontrol.plotting.plot_run`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ..plotting import plot_run

        system = self.problem.system
        run: Any = SimpleNamespace(
            name=system.name,
            group=system.state,
            t=self.t,
            x=self.x,
            u=self.u,
            input_names=system.input_names,
            input_units=tuple(entry.unit for entry in system.inputs),
            input_roles=tuple(entry.role for entry in system.inputs),
            input_bounds=np.array(system.input_bounds),
            reference=self.reference.x,
            estimate=None,
            estimate_std=None,
            controllers={},
            status="completed" if self.success else self.status,
            message=self.message,
        )
        return plot_run(run, **options)

    def __repr__(self) -> str:
        """Status, cost, residual and effort."""
        return (
            f"OptimalSolution({self.status}, cost={self.cost:.6g}, kkt={self.kkt:.1e}, "
            f"iterations={len(self.iterations) - 1}, {self.times.get('total', 0.0):.3f} s)"
        )

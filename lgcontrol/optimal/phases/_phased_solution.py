"""PhasedSolution: the plan of a `PhasedProblem`, in seconds and by phases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...codegen._internal import Result, UnknownNameError, unknown_name
from ...plotting import plot_path
from ...systems import Trajectory
from ...systems._internal import block_slices
from .._outcome import Iteration, SolveStatus, TranscriptionError, Violation
from .._solution import (
    DERIVED,
    LocalOptimum,
    OptimalSolution,
    Problem,
    failure_told,
    plot_optima,
)
from ._flat_phases import DURATION
from ._phased_figure import plot_phases

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Durations(dict[str, float]):
    """Durations by phase, which say what the phases are called."""

    def __missing__(self, name: object) -> float:
        raise UnknownNameError(unknown_name("phase", name, self))


@dataclass(frozen=True, eq=False)
class PhasedSolution(Result):
    """What `PhasedProblem.solve` found.

    Attributes
    ----------
    durations : dict of str to float
        Of the phases, in s.
    switches : ndarray
        Times in s at which phases end.
    parts : dict of str to Trajectory
        Nodes in time of each phase on its own group, with its own inputs, one a step, from after
        the jump.
    problem : PhasedProblem
    solution : OptimalSolution
        Solution of `PhasedProblem.problem`, whose time is the number of a node; messages and
        violations tell seconds.
    whole : Trajectory or None
        All parts in one; None where phases move on different groups, or inputs vary in steps and
        jump between phases.
    times : ndarray
        Of the nodes of all phases, s.
    optima : tuple of LocalOptimum
        Where solves from several starts ended, as `OptimalSolution.optima`.
    """

    durations: dict[str, float]
    switches: np.ndarray
    parts: dict[str, Trajectory]
    problem: Problem
    solution: OptimalSolution
    whole: Trajectory | None
    times: np.ndarray
    optima: tuple[LocalOptimum, ...] = ()

    @property
    def trajectory(self) -> Trajectory:
        """Nodes in time of the state that the phases share; where one ends, before its jump."""
        if self.whole is None:
            raise ValueError(
                f"phases {', '.join(self.parts)} have states on different groups, or inputs that "
                "vary in steps and jump between phases: take parts"
            )
        return self.whole

    @property
    def status(self) -> SolveStatus:
        """How the solve ended, as `OptimalSolution.status`."""
        return self.solution.status

    @property
    def message(self) -> str:
        """How the solve ended, in a sentence."""
        return self.solution.message

    @property
    def iterations(self) -> tuple[Iteration, ...]:
        """Records of the iterations, as `OptimalSolution.iterations`."""
        return self.solution.iterations

    @property
    def cost(self) -> float:
        """Cost of the plan."""
        return self.solution.cost

    @property
    def kkt(self) -> float:
        """Optimality residual, as `OptimalSolution.kkt`."""
        return self.solution.kkt

    @property
    def defect(self) -> float:
        """Largest defect of the dynamics, as `OptimalSolution.defect`."""
        return self.solution.defect

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Hard constraints that the plan violates, as `OptimalSolution.violations`, in seconds."""
        return self.solution.violations

    def transcription_error(self, tolerance: float = 1e-8) -> TranscriptionError:
        """How far the plan is from what its systems do between the nodes.

        Parameters
        ----------
        tolerance : float
            Of the integration of each step, as a share of the states and of the cost.

        Returns
        -------
        TranscriptionError
            As `OptimalSolution.transcription_error`, of all phases one after the other; ``parts``
            has that of each phase.
        """
        return DERIVED["transcription_error"](self, tolerance)

    def sensitivities(self) -> Any:
        """Derivatives by the start and all parameters; what is active stays so.

        Returns
        -------
        Sensitivities
            Of `solution`, as `OptimalSolution.sensitivities`. Its changes have ``durations``; its
            states have the error coordinates of the groups of the phases, then the free durations
            in their order.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> from lgcontrol.optimal import Bound, Phase, PhasedProblem
        >>> from lgcontrol.systems import Input, System
        >>> pull = Input("u", "", -1, 1)
        >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[pull])
        >>> stop = Bound("x0", 1, 1, at="terminal"), Bound("x1", 0, 0, at="terminal")
        >>> problem = PhasedProblem(Phase(cart, 20, (0.5, 5), bounds=stop), time_weight=1)
        >>> slopes = problem.solve([0.1, 0.0]).sensitivities()
        >>> bool(slopes.by("x0").durations["phase0"][0] < -1)  # s per m that the way is shorter
        True
        """
        _, places = block_slices(self.solution.problem.system.state)
        first = places[DURATION].start if DURATION in places else 0
        names = [phase.name for phase in self.problem.phases if phase.is_free]
        return DERIVED["sensitivities"](
            self.solution, {name: first + i for i, name in enumerate(names)}
        )

    def plot(self, **options: Any) -> Figure:
        """States, inputs and what is bounded over time, as `OptimalSolution.plot`.

        Lines with names are where phases begin. Phases whose states are on different groups are
        drawn one below the other, optima of ``starts=`` over each other.

        Parameters
        ----------
        **options
            Of `lgcontrol.plotting.plot_run`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        if len(self.optima) > 1:
            return plot_optima(self.optima, options)
        return plot_phases(self, options)

    def plot_path(self, **options: Any) -> Figure:
        """Plot the paths of the bodies with the obstacles of the bounds of all phases.

        Parameters
        ----------
        **options
            Of `lgcontrol.plotting.plot_path`.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plot_path(self, **options)

    def save(self, path: str | Path) -> Path:
        """Write the trajectory to an ``.npz`` file, as `Trajectory.save`, which it returns."""
        return self.trajectory.save(path)

    def __repr__(self) -> str:
        """Status, durations and cost; the message of a plan that failed."""
        times = ", ".join(f"{name}={value:.6g} s" for name, value in self.durations.items())
        made = f"PhasedSolution({self.status}, {times}, cost={self.cost:.6g})"
        return made + failure_told(self)

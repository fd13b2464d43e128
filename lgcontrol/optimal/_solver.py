"""Solver: what solves an `OptimalControlProblem`, the contract of all solvers, and their names.

A problem knows no solver: each enters itself in `SOLVERS`, where names are looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import UnknownNameError, unknown_name
from ..systems import ReferenceLike, Trajectory
from ._outcome import Iteration
from ._plan import Plan, PlanLayout
from ._reference import ReferenceSamples
from ._solution import OptimalSolution, Problem

Start: TypeAlias = str | Trajectory | OptimalSolution | Callable[[float, np.ndarray, Any], Any]
GuessLike: TypeAlias = Start | tuple[Start, ...] | None
"""Where a solve starts: a word, a motion, a controller, several to try; None for what is known."""


class Solver(Protocol):
    """What solves an `OptimalControlProblem`: the contract that `MPC` relies on, and nothing else.

    A solver holds settings and one problem. It is made ready (`for_problem`, `prepare`). Then it
    solves to convergence (`solve`) or takes real-time steps from a plan (`step`), and tells the
    feedback of a plan (`feedback`). A plan is a value, the `plan` of the solution that solves and
    steps return. Without a problem it is good for its settings: ``MPC(…, solver=NLPSolver(…))``. It
    never raises because a problem is hard: the status says how it went, and the result is the best
    iterate.

    Attributes
    ----------
    problem : OptimalControlProblem
    has_feedback, has_export : bool
        Whether `feedback` and `export_c` answer, or refuse by name.
    has_loop : bool
        Whether it brings the rules of a loop in C, by ``loop(delay, period, nominal)``; `MPC` has
        those of all others.
    """

    has_feedback: bool
    has_export: bool

    @property
    def has_loop(self) -> bool:
        """Whether it brings the rules of a loop in C."""
        ...

    @property
    def is_prepared(self) -> bool:
        """Whether it is ready for a loop."""
        ...

    @property
    def problem(self) -> Problem:
        """The problem that is solved; a solver that has none yet refuses."""
        ...

    @property
    def plan_layout(self) -> PlanLayout:
        """Parts of its plans; `plan_layout` where they are nodes alone."""
        ...

    def for_problem(self, problem: Problem) -> Solver:
        """A solver with the same settings for a problem, which has found nothing yet."""
        ...

    def prepare(self, *, wait: bool = True) -> Solver:
        """Compile what a loop calls, and return the solver; beside the program where it can."""
        ...

    def solve(
        self,
        x0: ArrayLike,
        *,
        guess: GuessLike = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 200,
        time_limit: float = np.inf,
        callback: Callable[[Iteration], bool | None] | None = None,
        for_steps: bool = False,
    ) -> OptimalSolution:
        """Iterate to convergence, or to a limit; `for_steps`: steps go on from this plan."""
        ...

    def step(
        self,
        x0: ArrayLike,
        *,
        plan: Plan | None = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        iterations: int = 1,
        time_limit: float = np.inf,
    ) -> OptimalSolution:
        """Some full steps from a plan, shifted to t0: for control in real time."""
        ...

    def feedback(self, plan: Plan) -> np.ndarray:
        """Derivative (m, n) of a plan's first controls by the error of its first state."""
        ...

    def reset(self) -> None:
        """Forget the last plan: the next solve is as the first."""
        ...

    def export_c(
        self,
        folder: str | Path,
        *,
        name: str | None = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        p: Mapping[str, float] | ArrayLike | None = None,
        period: float | None = None,
        iterations: int = 1,
        first_iterations: int = 50,
        guess: str | None = None,
        cases: Sequence[Any] = (),
    ) -> Path:
        """Write the solver as C99 that needs nothing else; or refuse by name."""
        ...


SOLVERS: dict[str, Callable[[], Solver]] = {}
"""Makers of solvers without a problem, by name. Each solver enters itself; so may your own."""

DEFAULT_SOLVER = "interior_point"


def make_solver(solver: Solver | str | None, problem: Problem) -> Solver:
    """A solver for a problem: a key of `SOLVERS`, the settings of a solver, or the default.

    One that was made for this very problem, and perhaps compiled, is taken itself.
    """
    if solver is None or isinstance(solver, str):
        name = DEFAULT_SOLVER if solver is None else solver
        if name not in SOLVERS:
            raise UnknownNameError(unknown_name("solver", name, SOLVERS))
        solver = SOLVERS[name]()
    if isinstance(solver, type) or not hasattr(solver, "for_problem"):
        raise TypeError(
            f"solver must be a name ({', '.join(SOLVERS)}) or a solver such as NLPSolver(plugin=…)"
            f", not {solver!r}"
        )
    return solver if _holds(solver, problem) else solver.for_problem(problem)


def _holds(solver: Solver, problem: Problem) -> bool:
    try:
        return solver.problem is problem
    except ValueError:  # a solver that stands for its settings
        return False

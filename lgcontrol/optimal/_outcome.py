"""How solves end: status, iterates, violated constraints."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from ..codegen._internal import Status
from ._rows import BoundRows
from ._settings import DEFAULT


class SolveStatus(Status, StrEnum):
    """How a solve ended; every solver uses these words and no others.

    ``CONVERGED``: the residual is within the tolerance. ``ACCEPTABLE``: no step reduces the
    residual further, and it is below `ACCEPTABLE_RESIDUAL`. ``ITERATION_LIMIT`` and
    ``TIME_LIMIT``: the iterations or the time are used up, as after each real-time step.
    ``INFEASIBLE``: no step reduces the violation of the hard constraints; this is local, and
    another initial guess may be feasible. The result has the least violation that was found.
    ``STALLED``: no step improves the plan. ``FAILED``: there is no step, the numbers are not
    finite, or steps of the integrator do not solve their equations. ``STOPPED``: the callback ended
    the solve.
    """

    CONVERGED = "converged"
    ACCEPTABLE = "acceptable"
    ITERATION_LIMIT = "iteration limit"
    TIME_LIMIT = "time limit"
    INFEASIBLE = "infeasible"
    STALLED = "stalled"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def is_success(self) -> bool:
        """Whether the result is optimal, at least to `ACCEPTABLE_RESIDUAL`."""
        return self in (SolveStatus.CONVERGED, SolveStatus.ACCEPTABLE)


OTHER_START = (
    "start elsewhere, guess=… takes a Trajectory, a controller or a solution, also of an easier "
    'problem, or go another way, solver="ipopt"'
)
# Residual up to which a solve that gets no further is good enough to use.
ACCEPTABLE_RESIDUAL = DEFAULT.acceptable


class Iteration(NamedTuple):
    """One iterate of a solve, as callbacks get it.

    Attributes
    ----------
    number : int
    cost : float
        With the penalties of soft constraints.
    defect : float
        Largest defect of the dynamics.
    violation : float
        Largest violation of a hard constraint.
    kkt : float
        Optimality residual; infinite before the first step.
    step_length : float
        Of the last step, in (0, 1].
    regularization : float
        Of the Hessian in the last step.
    time : float
        Since the start of the solve, s.
    """

    number: int
    cost: float
    defect: float
    violation: float
    kkt: float
    step_length: float
    regularization: float
    time: float


class Ends:
    """Whether a callback ended one of several solves, behind which no other follows.

    Parameters
    ----------
    options : dict
        Of the solves: their ``callback``, if there is one, is replaced by one that is watched.
    """

    def __init__(self, options: dict[str, Any]) -> None:
        self.is_asked = False
        self._callback = options.get("callback")
        if self._callback is not None:
            options["callback"] = self

    def __call__(self, entry: Iteration) -> bool:
        """What the callback says."""
        self.is_asked = bool(self._callback and self._callback(entry))
        return self.is_asked


class Violation(NamedTuple):
    """The largest violation of a constraint, and its place.

    Attributes
    ----------
    name : str
        Of the bounded quantity.
    time : float
        In s.
    node : int
    amount : float
        Of the violation, in the unit of the quantity.
    kind : str
        Which of several bounds of this name, "terminal upper"; empty for the only one.
    unit : str
        Of the amount; empty where it is not known.
    is_equality : bool
        Whether the bound is an equality, which is missed and not exceeded.
    """

    name: str
    time: float
    node: int
    amount: float
    kind: str = ""
    unit: str = ""
    is_equality: bool = False

    def __str__(self) -> str:
        """Name, which bound, amount and time."""
        amount, bound = f"{self.amount:.3g} {self.unit}".rstrip(), f"{self.kind} bound".lstrip()
        if self.kind.startswith("node"):
            side = next((one for one in ("lower", "upper") if self.kind.endswith(one)), "")
            bound = f"{side} bound at {self.kind.removesuffix(side).rstrip()}".lstrip()
        verb = "misses" if self.is_equality else "exceeds"
        verb = "falls below" if self.kind.endswith("lower") else verb
        return f"{self.name} {verb} its {bound} by {amount} at t = {self.time:g} s"


@dataclass(frozen=True, eq=False)
class TranscriptionError:
    """How far a plan is from what its system does and from what its cost is between the nodes.

    Attributes
    ----------
    states : ndarray, shape (N, n)
        Error coordinates of the end of each step from the next node. The step is integrated from
        its first node to a tolerance with the input held.
    cost_of_steps : ndarray, shape (N,)
        Change of the optimal cost, to first order, if the integrals of each step and its end were
        exact.
    inputs_of_steps : ndarray, shape (N,)
        Saved by inputs that vary within each step. It is estimated from the slope of the inputs
        and, between their limits, from that of the switching function. No error where the plant
        holds its inputs.
    violations : tuple of Violation
        Bounds along the horizon that are violated within a step by more than at its two nodes. Each
        is told at its worst time, in its unit; ``node`` is that where the step begins.
    violations_of_steps : ndarray, shape (N,)
        Largest violation within each step, as a share of the range of the bounded quantity. Of an
        obstacle it is one of the radius, with that of the body, if this is less.
    cost : float
        Of the plan.
    text : str
        The above in a sentence.
    parts : dict of str to TranscriptionError
        Of a `PhasedSolution`, those of its phases. ``states`` then has as many columns as the
        largest of them, the others are zero.
    """

    states: np.ndarray
    cost_of_steps: np.ndarray
    inputs_of_steps: np.ndarray
    violations: tuple[Violation, ...]
    violations_of_steps: np.ndarray
    cost: float
    text: str
    parts: dict[str, TranscriptionError] = field(default_factory=dict)

    @property
    def state(self) -> float:
        """Largest error of a state."""
        return float(np.abs(self.states).max(initial=0.0))

    @property
    def cost_change(self) -> float:
        """Change of the optimal cost with exact steps and integrals."""
        return float(self.cost_of_steps.sum())

    @property
    def held_inputs(self) -> float:
        """What inputs that vary within steps would save."""
        return float(self.inputs_of_steps.sum())

    def __str__(self) -> str:
        """The errors in a sentence."""
        return self.text


def sentence(
    status: SolveStatus, last: Iteration, tolerance: float, *, failed: str = "",
    infeasible: str = "", stalled: str = "no step lowers the cost", set_up: float = 0.0,
) -> str:  # fmt: skip
    """What a status means.

    A solver may say why there are no steps, what makes it feasible, how its steps lead nowhere, and
    how long it took to begin. Real-time steps have no residual.
    """
    failed = failed or "the numbers of the iterates are not finite: start elsewhere"
    infeasible = infeasible or "give one of them soft=, allow more time, or start elsewhere"
    optimal = f"optimal to {last.kkt:.1e} after {last.number} iterations"
    residual = f"residual {last.kkt:.1e} after"
    reached = f"{last.number} iterations" if np.isnan(last.kkt) else f"residual {last.kkt:.1e}"
    spent = f"{reached} at the time limit, after {last.time:.3g} s"
    if set_up > last.time / 2:
        spent += (
            f", of which the set-up took {set_up:.2g} s: allow more, or keep a solver, solver = "
            "InteriorPointSolver(problem).prepare(), and call solver.solve(x0)"
        )
    return {
        SolveStatus.CONVERGED: optimal,
        SolveStatus.ACCEPTABLE: (
            f"{optimal}; rounding ends it above {tolerance:.1e}: ask for tolerance="
            f"{10 * last.kkt:.0e} to have converged"
        ),
        SolveStatus.ITERATION_LIMIT: f"{residual} {last.number} iterations",
        SolveStatus.TIME_LIMIT: spent,
        SolveStatus.INFEASIBLE: f"no step reduces the violation of the hard bounds; {infeasible}",
        SolveStatus.STALLED: f"{stalled}: {residual} {last.number} iterations",
        SolveStatus.FAILED: failed,
        SolveStatus.STOPPED: "stopped by the callback",
    }[status]


def open_defects(status: SolveStatus, defect: float) -> str:
    """What a plan with open defects is, for messages; empty for one without.

    A success has none, however large its numbers are: its residual weighs them by their sizes.
    """
    if status.is_success or not defect > ACCEPTABLE_RESIDUAL:
        return ""
    return f"the plan is not dynamically feasible: defects up to {defect:.2g} remain"


def diverged(defect: float, x0: np.ndarray, x_ref: np.ndarray) -> str:
    """What to say of a plan whose defects take half of the digits of start and reference."""
    size = max(1.0, float(np.abs(x0).max()), float(np.abs(x_ref).max()))
    if defect * np.sqrt(np.finfo(float).eps) <= size:
        return ""
    return (
        f"the plan has diverged, a step ends off the next state by {defect:.2g}: shorten dt, "
        "give more substeps, or allow more iterations in RealTime; the next call begins anew"
    )


def start_violations(rows: BoundRows, first: np.ndarray, tolerance: float) -> str:
    """Hard bounds from the first step on that the given start violates itself, for messages.

    `first` (rows,) are the values of the rows at the start.
    """
    over = np.maximum(first - rows.upper, rows.lower - first)
    holds = np.isinf(rows.soft) & rows.active[1] & ~rows.active[0] & (len(rows.active) > 2)
    found = np.flatnonzero(holds & (over > tolerance))
    names = ", ".join(f"{rows.names[i]} by {over[i]:.3g}" for i in found[np.argsort(-over[found])])
    return f"the start itself violates {names}: start within, or give soft=" if names else ""


def worst_violations(
    rows: BoundRows, excess: np.ndarray, times: np.ndarray, tolerance: float | np.ndarray = 0.0
) -> tuple[Violation, ...]:
    """Of each hard row the largest excess, if it is more than tolerated, from the worst row on."""
    excess = np.where(np.isinf(rows.soft), excess, 0.0)
    allowed = np.broadcast_to(tolerance, excess.shape[1:])
    equal = rows.lower == rows.upper
    found = []
    for i, k in enumerate(excess.argmax(axis=0).tolist() if excess.size else ()):
        if excess[k, i] > allowed[i]:
            amount, is_equality = float(excess[k, i]), bool(equal[i])
            entry = rows.names[i], float(times[k]), k, amount, rows.kinds[i], "", is_equality
            found.append(Violation(*entry))
    return tuple(sorted(found, key=lambda entry: -entry.amount))

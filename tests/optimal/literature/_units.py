"""A task in other units: numbers of states, inputs, times, costs and rows times a factor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound, Cost, Phase, PhasedProblem
from lgcontrol.systems import System

from ._task import Statement


def in_units(statement: Statement, factor: float) -> Statement | None:
    """The same task with all numbers times a factor; None where states are no plain numbers.

    Parameters
    ----------
    statement : Statement
    factor : float
        A length of 1 is called this.

    Returns
    -------
    Statement or None
    """
    problem = statement.problem
    if not all(isinstance(phase.system.state, Rn) for phase in problem.phases):
        return None
    systems = {id(phase.system): _system(phase.system, factor) for phase in problem.phases}
    phases = [_phase(phase, systems[id(phase.system)], factor) for phase in problem.phases]
    (haste,) = (cost for cost in problem.problem.costs if cost.name == "time")
    made = PhasedProblem(phases, time_weight=haste.terminal, method=problem.method)
    effort = problem.problem.R / factor  # its default has units of its own
    made._flat.problem = made.problem.with_arguments(R=effort)
    return Statement(made, factor * np.asarray(statement.x0, float))


def _system(system: System, factor: float) -> System:
    """A rate is a state by a time: it keeps its number."""
    inputs = [
        replace(entry, lower=factor * entry.lower, upper=factor * entry.upper,
                nominal=factor * entry.nominal)
        for entry in system.inputs
    ]  # fmt: skip
    field = system.f.function
    return System(
        system.name, system.state,
        lambda t, x, u, p: field(t / factor, x / factor, u / factor, p), inputs=inputs,
    )  # fmt: skip


def _phase(phase: Phase, system: System, factor: float) -> Phase:
    def here(function: Any, by: float = 1.0) -> Callable[..., Any]:
        return lambda t, x, u, p: by * function(t / factor, x / factor, u / factor, p)

    def scaled(limit: Any) -> Any:
        return factor * np.asarray(limit, float)

    costs = [
        Cost(here(cost.of), cost.weight, cost.terminal and factor * cost.terminal, cost.name)
        for cost in phase.costs
    ]
    bounds = [
        Bound(
            bound.of if isinstance(bound.of, str) else here(bound.of, factor),
            scaled(bound.lower), scaled(bound.upper), bound.soft, bound.at, bound.label,
        )
        for bound in phase.bounds
    ]  # fmt: skip
    jump = phase.jump
    moved = jump and (lambda t, x, p: factor * jump(t / factor, x / factor, p))
    duration = tuple(scaled(phase.duration)) if phase.is_free else scaled(phase.duration)
    return replace(
        phase, system=system, duration=duration, costs=costs, bounds=bounds, jump=moved
    )  # fmt: skip

"""Plans with inputs that are linear in each step: solved as plans of held rates, and read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen._internal import check_options
from ..systems import System, Trajectory
from ..systems._internal import check_start
from ._problem import DERIVED, OptimalControlProblem, OptimalSolution, Solver, make_solver
from ._rates import beside_inputs, with_linear_inputs
from ._reference import sample_reference

# The search for the first input begins this share of its range inside of its limits.
FIRST_INSIDE = 1e-2


def solved_linearly(
    problem: OptimalControlProblem,
    starts: Sequence[Any],
    solver: Solver | str | None,
    refine: float | None,
    options: dict[str, Any],
) -> list[OptimalSolution]:
    """See `OptimalControlProblem.solve` and `solve_many`, with ``hold="first"``."""
    system = problem.system
    if "rates" not in problem._kept:
        problem._kept["rates"] = with_linear_inputs(problem)
    inner: OptimalControlProblem = problem._kept["rates"]
    chosen: Any = type(make_solver(solver, inner))
    check_options(options, problem.solve, chosen.solve)
    values = problem.parameter_values(options.get("p"))
    own, times = values[: system.n_parameters], problem.times(options.get("t0", 0.0))
    known = [check_start(system, "x0", x0, own) for x0 in starts]
    if refine is not None:
        given = options | {"solver": solver}
        return [DERIVED["refined"](problem, x0, refine, given) for x0 in known]
    reference = options.get("reference")
    wanted = problem.reference if reference is None else reference
    samples = sample_reference(system, wanted, times, own)
    if reference is not None:
        options = options | {"reference": beside_inputs(system, samples)}
    guess = options.get("guess")
    if guess is not None:
        options = options | {"guess": _guess(inner, system, guess, times)}
    motion = getattr(options.get("guess"), "x", None)
    controls = system.input_index("control")
    first = samples.u[0, controls] if motion is None else motion[0, system.state.nq :]
    first = np.clip(first, *problem.input_limits.at(values).inside(FIRST_INSIDE))
    begun = np.array([[*x0, *first] for x0 in known])
    if len(begun) == 1:
        found = [inner.solve(begun[0], solver=solver, **options)]
    else:
        found = inner.solve_many(begun, solver=solver, **options)
    return [_read(problem, one, values) for one in found]


def _guess(inner: OptimalControlProblem, system: System, guess: Any, times: np.ndarray) -> Any:
    """A guess of the system as one of its rates."""
    if isinstance(guess, tuple):
        return tuple(_guess(inner, system, one, times) for one in guess)
    motion = getattr(guess, "trajectory", guess)
    if isinstance(guess, str):
        return guess
    if not isinstance(motion, Trajectory):
        raise TypeError(
            "with hold='first' plans start from a word, a Trajectory or a solution, not from "
            f"{guess!r}: give its closed loop, simulate(…).trajectory"
        )
    controls = system.input_index("control")
    others = np.setdiff1d(np.arange(system.n_inputs), controls)

    def inputs(t: np.ndarray) -> np.ndarray:
        u = motion(t).u
        if not u.shape[-1]:
            return np.tile(system.nominal_input, (len(t), 1))
        return u if u.shape[-1] == system.n_inputs else system.full_input(u)

    u = inputs(times)
    if motion.hold == "zero":  # at a node the mean of the steps beside it
        held = inputs((times[1:] + times[:-1]) / 2)
        u = np.concatenate([held[:1], (held[1:] + held[:-1]) / 2, held[-1:]])
    rates = np.diff(u[:, controls], axis=0) / np.diff(times)[:, None]
    x = np.hstack([motion(times).x, u[:, controls]])
    return Trajectory(inner.system.state, times, x, np.hstack([rates, u[:-1, others]]))


def _read(
    problem: OptimalControlProblem, found: OptimalSolution, values: np.ndarray
) -> OptimalSolution:
    """A plan of rates as one of the problem's own states and inputs, within their limits."""
    system = problem.system
    nq, controls = system.state.nq, system.input_index("control")
    others = np.setdiff1d(np.arange(system.n_inputs), controls)
    box = problem.input_limits.exactly(values)

    def own(plan: Trajectory) -> Trajectory:
        u = np.empty((len(plan.t), system.n_inputs))
        u[:, controls] = np.clip(plan.x[:, nq:], box.lower, box.upper)
        u[:, others] = plan.input_at_nodes[:, len(controls) :]
        x = plan.x[:, :nq]
        return Trajectory.unchecked(system.state, plan.t, x, u, system.inputs, hold="first")

    found._finish()
    return replace(
        found, trajectory=own(found.trajectory), reference=own(found.reference), problem=problem,
        _inner=found,
    )  # fmt: skip


DERIVED["solved_linearly"] = solved_linearly

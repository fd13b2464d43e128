"""Inputs that are linear in each step or change in blocks: solved as plans of rates, read back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..codegen._internal import check_options
from ..systems import System, Trajectory
from ..systems._internal import check_start
from ._problem import DERIVED, OptimalControlProblem, OptimalSolution, Solver, make_solver
from ._rates import beside_blocks, beside_inputs, with_free_rates
from ._reference import ReferenceSamples, sample_reference

# The search for the first input begins this share of its range inside of its limits.
FIRST_INSIDE = 1e-2


def solved_by_rates(
    problem: OptimalControlProblem,
    starts: Sequence[Any],
    solver: Solver | str | None,
    refine: float | None,
    options: dict[str, Any],
) -> list[OptimalSolution]:
    """See `OptimalControlProblem.solve` and `solve_many`, with ``hold="first"`` or blocks."""
    system = problem.system
    if "rates" not in problem._kept:
        problem._kept["rates"] = with_free_rates(problem)
    inner: OptimalControlProblem = problem._kept["rates"]
    chosen: Any = type(make_solver(solver, inner))
    check_options(options, problem.solve, chosen.solve)
    values = problem.parameter_values(options.get("p"))
    own, times = values[: system.n_parameters], problem.times(options.get("t0", 0.0))
    known = [check_start(system, "x0", x0, own) for x0 in starts]
    if refine is not None:
        if problem.may_change is not None:
            raise ValueError("refine moves nodes, and blocks count them: leave one of the two out")
        given = options | {"solver": solver}
        return [DERIVED["refined"](problem, x0, refine, given) for x0 in known]
    reference = options.get("reference")
    wanted = problem.reference if reference is None else reference
    samples = sample_reference(system, wanted, times, own)
    options = options | {"reference": _reference(problem, samples, times)}
    guess = options.get("guess")
    if guess is not None:
        options = options | {"guess": _guess(problem, inner, samples, guess, times)}
    motion = getattr(options.get("guess"), "x", None)
    controls = system.input_index("control")
    first = samples.u[0, controls] if motion is None else motion[0, system.state.nq :]
    first = np.clip(first, *problem.input_limits.at(values).inside(FIRST_INSIDE))
    begun = np.array([[*x0, *first] for x0 in known])
    if len(begun) == 1:
        found = [inner.solve(begun[0], solver=solver, **options)]
    else:
        found = inner.solve_many(begun, solver=solver, **options)
    return [_read(problem, one, samples) for one in found]


def _reference(
    problem: OptimalControlProblem, samples: ReferenceSamples, times: np.ndarray
) -> ReferenceSamples:
    if problem.may_change is not None:
        return beside_blocks(problem, samples, times)
    return beside_inputs(problem.system, samples)


def _guess(
    problem: OptimalControlProblem,
    inner: OptimalControlProblem,
    samples: ReferenceSamples,
    guess: Any,
    times: np.ndarray,
) -> Any:
    """A guess of the system as one of its rates."""
    if isinstance(guess, tuple):
        return tuple(_guess(problem, inner, samples, one, times) for one in guess)
    motion = getattr(guess, "trajectory", guess)
    if isinstance(guess, str):
        return guess
    if not isinstance(motion, Trajectory):
        raise TypeError(
            "with hold='first' or blocks plans start from a word, a Trajectory or a solution, not "
            f"from {guess!r}: give its closed loop, simulate(…).trajectory"
        )
    system, nodes = problem.system, _reference(problem, samples, times)
    controls = system.input_index("control")
    middle, steps = (times[1:] + times[:-1]) / 2, np.diff(times)[:, None]
    at_nodes, held = (_inputs(system, motion, t)[:, controls] for t in (times, middle))
    if problem.may_change is not None:  # at the end of a step the block is what acts in it
        for k in range(1, len(held)):
            held[k] = np.where(problem.may_change[k] > 0, held[k], held[k - 1])
        at_nodes = np.concatenate([held[:1], held])
    elif motion.hold == "zero":  # at a node the mean of the steps beside it
        at_nodes = np.concatenate([held[:1], (held[1:] + held[:-1]) / 2, held[-1:]])
    u = nodes.u[:-1].copy()
    u[:, : len(controls)] = np.diff(at_nodes, axis=0) / steps
    return Trajectory(inner.system.state, times, np.hstack([motion(times).x, at_nodes]), u)


def _inputs(system: System, motion: Trajectory, t: np.ndarray) -> np.ndarray:
    """All inputs of a motion, nominal where it has none."""
    u = motion(t).u
    if not u.shape[-1]:
        return np.tile(system.nominal_input, (len(t), 1))
    return u if u.shape[-1] == system.n_inputs else system.full_input(u)


def _read(
    problem: OptimalControlProblem, found: OptimalSolution, samples: ReferenceSamples
) -> OptimalSolution:
    """A plan of rates as one of the problem's own states and inputs, within their limits."""
    system, n = problem.system, problem.system.n_errors
    nq, controls = system.state.nq, system.input_index("control")
    found._finish()
    setting, t = found._setting, found.t
    box = problem.input_limits.exactly(setting.p)
    is_linear = problem.hold == "first"
    values = found.x[:, nq:]
    if not is_linear:
        assert problem.may_change is not None
        steps = problem.steps[:, None] * problem.may_change
        values = values[:-1] + steps * found.u[:, : len(controls)]
    u = samples.u[: len(values)].copy()
    u[:, controls] = np.clip(values, box.lower, box.upper)
    hold = problem.hold
    motion = Trajectory.unchecked(system.state, t, found.x[:, :nq], u, system.inputs, hold)
    reference = Trajectory.unchecked(
        system.state, t, np.array(samples.x), np.array(samples.u), system.inputs, hold
    )
    own: dict[str, Any] = {"_inner": found}
    if not is_linear:
        own["_setting"] = setting._replace(
            x_ref=samples.x, u_ref=samples.u, terminal=setting.terminal[:n, :n],
            arrival=setting.arrival[:n, :n], box=problem.input_limits.at(setting.p),
        )  # fmt: skip
    return replace(found, trajectory=motion, reference=reference, problem=problem, **own)


DERIVED["solved_by_rates"] = solved_by_rates

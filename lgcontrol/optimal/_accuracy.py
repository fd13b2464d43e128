"""Error of a transcription: what a plan misses between its nodes, and grids that miss less."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..systems import choose_method
from ._outcome import SolveStatus, TranscriptionError
from ._problem import DERIVED, OptimalControlProblem, OptimalSolution
from ._transcription import Nodes, Setting, Transcription

# Steps are halved up to this number of parts until their ends do not move.
MOST_PARTS = 4096
# Grids: rounds of a refinement, nodes of the last one, growth in a round, and the share of the
# mean density that a step has at least.
MOST_ROUNDS, MOST_NODES, MOST_GROWTH, LEAST_DENSITY = 10, 4000, 4.0, 0.1
# A grid is made for this share of the error that is allowed.
AIM = 0.5


def transcription_error(solution: OptimalSolution, tolerance: float = 1e-8) -> TranscriptionError:
    """See `OptimalSolution.transcription_error`."""
    problem, setting = solution.problem, solution._setting
    if setting is None:
        raise ValueError(
            "the solution was read without what it was solved for: ask the one that solve() returns"
        )
    system, N = problem.system, problem.horizon
    nodes = Nodes(solution.t, solution.x, solution.u)
    once = Transcription(problem)
    stage = once._stages("stage", nodes, setting)
    states, of_steps, held = np.zeros((N, system.n_errors)), np.zeros(N), np.zeros(N)
    if not system.is_discrete:
        ends, costs = _integrated(
            problem, nodes, setting, float(check_shape("tolerance", tolerance, ()))
        )
        states = np.asarray(system.error(ends, nodes.x[1:]))
        of_steps = costs - stage.cost + np.einsum("ki,ki->k", _prices(solution), states)
        held = _saved(problem, nodes, stage.H[:, system.n_errors :, system.n_errors :])
    text = _sentence(problem, nodes.t, states, of_steps.sum(), held.sum(), solution.cost)
    return TranscriptionError(states, of_steps, held, solution.cost, text)


def _integrated(
    problem: OptimalControlProblem, nodes: Nodes, setting: Setting, tolerance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of all steps and their integrals, in ever more parts until they do not change."""
    system, own = problem.system, setting.p[: problem.system.n_parameters]
    method = choose_method(system, problem.dt, nodes.x[:-1], nodes.u, p=own, t=nodes.t[:-1])
    if method != "rk4":
        method = "radau_iia5"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # parts of a step are shorter
        fine = problem.with_arguments(quadrature="gauss", method=method, substeps=1)
    once = Transcription(fine)
    values, step = once._functions.stage_values, system.step(method, 1)
    before, parts = None, 1
    while True:
        h, x, total = problem.steps / parts, nodes.x[:-1], np.zeros(problem.horizon)
        for j in range(parts):
            t = nodes.t[:-1] + j * h
            total = total + values(
                t, x, nodes.u, x, setting.x_ref[:-1], setting.u_ref[:-1], setting.p,
                once.path_weights, h,
            )[0]  # fmt: skip
            x = step(t, x, nodes.u, own, h)
        if before is not None:
            size = 1.0 + np.abs(nodes.x).max()
            moved = np.abs(x - before[0]).max() / size
            change = np.abs(total - before[1]).sum() / max(np.abs(total).sum(), 1e-300)
            if not (max(moved, change) > tolerance) or parts >= MOST_PARTS:
                return x, total
        before, parts = (x, total), 2 * parts


def _prices(solution: OptimalSolution) -> np.ndarray:
    """Multipliers (N, n) of the dynamics: what an error of a step's end costs."""
    if solution._prices is not None:
        return solution._prices
    plan = solution.plan
    parts = plan.layout.places
    if "lam" not in parts or plan.number("is_elastic"):
        return np.zeros((solution.problem.horizon, solution.problem.system.n_errors))
    return plan["lam"] / plan["kept"][SCALE]


# Place of the factor of the cost among what the kernel goes on with.
SCALE = 3


def _saved(problem: OptimalControlProblem, nodes: Nodes, H: np.ndarray) -> np.ndarray:
    """What inputs linear in each step save, with the Hessian of a step by its controls.

    Their slope s against a held input has the gradient ``H s (τ − ½)`` at the share τ of the step,
    so that following it saves ``sᵀ H s / 24``.
    """
    controls = problem.system.input_index("control")
    u, middle = nodes.u[:, controls], (nodes.t[1:] + nodes.t[:-1]) / 2
    if len(u) < 2:
        return np.zeros(len(u))
    slopes = np.gradient(u, middle, axis=0) * problem.steps[:, None]
    return np.einsum("ki,kij,kj->k", slopes, H, slopes) / 24


def _sentence(
    problem: OptimalControlProblem, t: np.ndarray, states: np.ndarray, change: float, held: float,
    cost: float,
) -> str:  # fmt: skip
    if not np.isfinite(states).all():
        return "the motion from a node is not finite: shorten dt"
    k, i = np.unravel_index(np.abs(states).argmax(), states.shape)
    name, unit = problem.system.error_names[i], problem.system.error_units[i]
    share = f" ({abs(change / cost):.1e} of it)" if cost else ""
    return (
        f"states off by {abs(states[k, i]):.1e} {unit}".rstrip()
        + f" ({name} at t = {t[k + 1]:g} s), cost would change by {change:.1e}{share}; inputs that "
        f"vary within steps would save {held:.1e}"
    )


def refined(
    problem: OptimalControlProblem, x0: Any, tolerance: float, options: dict[str, Any]
) -> OptimalSolution:
    """See ``refine`` of `OptimalControlProblem.solve`."""
    tolerance = float(check_shape("refine", tolerance, ()))
    if not 0 < tolerance < 1:
        raise ValueError(f"refine must be a share between 0 and 1, got {tolerance:g}: such as 1e-3")
    if problem.system.is_discrete:
        raise ValueError(
            f"refine: {problem.system.name} is discrete, its steps are exact: leave refine out"
        )
    for bound in problem.bounds:
        if isinstance(bound.at, range):
            raise ValueError(
                f"refine moves nodes, and the bound on {bound.label} holds at nodes {bound.at}: "
                'state it along the horizon, at="terminal", or as the end of a Phase'
            )
    finer = problem.with_arguments(quadrature="gauss")
    found = finer.solve(x0, **options)
    for _ in range(MOST_ROUNDS):
        error = found.transcription_error()
        off, needed = _off(found, error), tolerance
        if off.sum() <= needed or found.status is SolveStatus.STOPPED:
            break
        grid = _grid(found.t, off, needed)
        if grid is None:
            break
        finer = finer.with_arguments(horizon=len(grid) - 1, dt=np.diff(grid))
        guess: Any = found.trajectory if np.isfinite(found.cost) else options.get("guess")
        found = finer.solve(x0, **(options | {"guess": guess}))
    error = found.transcription_error()
    met = _off(found, error).sum() <= tolerance
    text = f"{found.message}; {error}"
    if not met:
        text += f"; refine={tolerance:g} is not reached with {found.problem.horizon} steps"
    return found._with_message(text)


def _off(found: OptimalSolution, error: TranscriptionError) -> np.ndarray:
    """Shares of the cost, and of the range of the states, by which each step is off."""
    size = max(abs(found.cost), 1e-12)
    own = (np.abs(error.cost_of_steps) + np.abs(error.inputs_of_steps)) / size
    group = found.problem.system
    span = np.abs(group.error(found.x, found.x[0])).max(axis=0)
    states = np.abs(error.states) / np.maximum(span, 1e-3 * max(span.max(), 1e-12))
    return np.nan_to_num(own + states.max(axis=1), nan=1.0, posinf=1.0)


def _grid(t: np.ndarray, off: np.ndarray, tolerance: float) -> np.ndarray | None:
    """Nodes at equal shares of the cube root of the error, whose sum falls with their square."""
    root = np.cbrt(np.minimum(off, 1.0))
    total = root.sum()
    if not total > 0:
        return None
    density = np.maximum(root, LEAST_DENSITY * total / len(root))
    count = np.sqrt(root.sum() ** 3 / (AIM * tolerance))
    most = min(MOST_GROWTH * len(off), MOST_NODES)
    if len(off) >= MOST_NODES:
        return None
    count = int(np.clip(np.ceil(count), 0.5 * len(off), most))
    reached = np.concatenate([[0.0], np.cumsum(density)])
    return np.interp(np.linspace(0.0, reached[-1], count + 1), reached, t)


DERIVED["transcription_error"] = transcription_error
DERIVED["refined"] = refined

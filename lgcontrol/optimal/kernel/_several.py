"""Several solves by one solver: from several guesses, from random starts, or for many states."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...codegen._internal import Progress, check_count, check_shape, thread_count
from ...systems import System
from .._outcome import ACCEPTABLE_RESIDUAL, Ends, SolveStatus
from .._plan import SCALE
from .._solution import DERIVED, LocalOptimum, OptimalSolution
from .._solver import make_solver
from .._transcription import Nodes

# Random changes of a guess are waves along the horizon, so many for each state and each control.
# Those of a state have its size, or its extent in the first plan; those of a control its range.
STATE_WAVES, CONTROL_WAVES = 4, 8
# Plans are one optimum if costs and states agree within these shares of the cost and of the extent
# of each state. A difference of states that is the first share of their size is none either, nor
# one of scaled costs up to an acceptable residual.
SAME_COST, SAME_STATES = 1e-3, 0.05
TOLD = 3  # optima in a message
# Random changes of the default guess that are tried before a plan is said to be infeasible. Of 80
# ways of a car at rest past three discs 3 end so with four, 2 with eight, and 29 with one.
CHANGES = 4


def best_of(
    solver: Any, x0: ArrayLike, guesses: tuple[Any, ...], seconds: float, options: dict[str, Any]
) -> OptimalSolution:
    """The best of solves from several guesses, as far as there is time for them."""
    if not guesses:
        raise ValueError("guess is an empty tuple: give one guess or more")
    began, best, ends = time.perf_counter(), None, Ends(options)
    for guess in guesses:
        left = seconds - (time.perf_counter() - began)
        if best is not None and (left <= 0 or ends.is_asked):
            break
        other = solver.solve(x0, guess=guess, time_limit=max(left, 0.0), **options)
        found = [one for one in (best, other) if one is not None]
        best = min(found, key=lambda one: (not one.is_success, one.cost))
    assert best is not None
    solver.plan = best.plan
    spent = time.perf_counter() - began
    return best._with_message(best.message, times=best.times | {"total": spent, "model": spent})


def solved_side_by_side(solver: Any, x0: ArrayLike, **options: Any) -> list[OptimalSolution]:
    """See `InteriorPointSolver.solve_many`."""
    starts = check_shape("x0", x0, (None, solver.problem.system.state.nq))
    guesses = options.pop("guess", None)
    if not isinstance(guesses, list):
        guesses = [guesses] * len(starts)
    if len(guesses) != len(starts):
        raise ValueError(
            f"guess is a list of {len(guesses)} for {len(starts)} starts: give one for all, or one "
            "for each"
        )
    return _side_by_side(
        solver, len(starts), lambda own, k: own.solve(starts[k], guess=guesses[k], **options)
    )


def _side_by_side(solver: Any, jobs: int, done: Callable[[Any, int], Any]) -> list[Any]:
    """What is done in each job, by a solver of the thread that does it, on all cores."""
    solver._take_built()
    count = min(thread_count(), jobs)
    found: list[Any] = [None] * jobs
    left = iter(range(jobs))  # taken from by whoever is free
    lock = Lock()

    def work(own: Any) -> None:
        while True:
            with lock:
                k = next(left, None)
            if k is None:
                return
            found[k] = done(own, k)

    if count <= 1:
        work(solver._twin())
        return found
    with ThreadPoolExecutor(count, thread_name_prefix="lgcontrol") as pool:
        try:
            for future in [pool.submit(work, solver._twin()) for _ in range(count)]:
                future.result()
        except BaseException:  # as Ctrl-C: the others end with the solve that they are at
            with lock:
                left = iter(())
            raise
    return found


def best_of_starts(
    solver: Any, x0: np.ndarray, starts: int, options: dict[str, Any],
    coarse: Callable[[OptimalSolution], str],
) -> OptimalSolution:  # fmt: skip
    """See ``starts`` of `OptimalControlProblem.solve`; `solver` is any one.

    If `coarse` complains of a plan, it comes behind the others.
    """
    count, began, ends = check_count("starts", starts), time.perf_counter(), Ends(options)
    limit = options.pop("time_limit", np.inf)
    progress = Progress(f"{count} starts of {solver.problem.system.name}")
    found = [solver.solve(x0, **options | {"time_limit": limit})]
    changed = _RandomGuesses(solver.problem, x0, found[0], options)
    guesses = [changed(k) for k in range(1, count)]

    def done(own: Any, k: int) -> OptimalSolution | None:
        left = limit - (time.perf_counter() - began)
        if left <= 0 or ends.is_asked:
            return None
        one = own.solve(x0, **options | {"guess": guesses[k], "time_limit": left})
        found.append(one)  # as other threads do
        progress.tell(lambda: f"{len(found)} ended, {_cheapest(found)}")
        return one

    if hasattr(solver, "_twin") and options.get("callback") is None:
        made = _side_by_side(solver, count - 1, done)
    else:
        made = [done(solver, k) for k in range(count - 1)]
    found = [found[0], *(one for one in made if one is not None)]
    least = ACCEPTABLE_RESIDUAL / changed.scale
    optima = _optima([one for one in found if one.is_success], least, changed.size)
    off = next((k for k, one in enumerate(optima) if not coarse(one.solution)), 0)
    optima = optima[off:] + optima[:off]
    best = optima[0].solution if optima else min(found, key=lambda one: one.cost)
    told = _told(optima, off, found, count)
    spent = time.perf_counter() - began
    times = best.times | {"total": spent, "model": spent}
    solver.plan = best.plan
    return best._with_message(f"{best.message}; {told}", optima=optima, times=times)


def from_other_guesses(
    solver: Any, x0: np.ndarray, found: OptimalSolution, deadline: float, options: dict[str, Any]
) -> OptimalSolution:
    """A plan from another guess if none was found from the default one, else what was found.

    The message tells of these further searches.
    """
    own, ends = solver._twin() if hasattr(solver, "_twin") else solver, Ends(options)
    guesses, told, lost = _other_guesses(solver, x0, found, options), "", Counter[str]()
    while (left := deadline - time.perf_counter()) > 0 and not ends.is_asked:
        told, guess = next(guesses, (told, None))
        if guess is None:
            break
        other = own.solve(x0, **options | {"guess": guess, "time_limit": left})
        if other.is_success:
            solver.plan = other.plan
            why = f"the first search led to no plan, one from {told} did"
            return other._with_message(f"{other.message}; {why}")
        lost[str(other.status)] += 1
    solver.plan = found.plan
    if not lost:
        return found
    why = ", ".join(f"{number} {status}" for status, number in lost.items())
    return found._with_message(f"{found.message}; nor was a plan found from {told} ({why})")


def _other_guesses(
    solver: Any, x0: np.ndarray, found: OptimalSolution, options: dict[str, Any]
) -> Iterator[tuple[str, Any]]:
    """What to search from if the default guess led to no plan, with the words for it.

    In the middle of an obstacle a plan can be a stationary point of the violation. Changes to both
    sides help alike there, and a search takes neither. Each of `CHANGES` may lead to another side.
    Elsewhere the guess may have left what the model describes, as a road in coordinates along it.
    The state that stays is on the road. Peers are slow, and do without; so does who asks for a
    number of iterations, where these are used up.
    """
    status = found.status
    is_at_limit = status is SolveStatus.ITERATION_LIMIT and "max_iterations" not in options
    is_least = is_at_limit and bool(found.violations) and found.kkt <= ACCEPTABLE_RESIDUAL
    if is_least or status is SolveStatus.INFEASIBLE:
        changed = _RandomGuesses(solver.problem, x0, found, options, of_motion=True)
        for k in range(1, CHANGES + 1):
            yield "random changes of the guess", changed(k)
    elif is_at_limit or status in (SolveStatus.STALLED, SolveStatus.FAILED):
        if hasattr(solver, "_twin"):
            own, none = solver._twin(), {"max_iterations": 0, "callback": None}
            first, rest = (own.solve(x0, **options | none | {"guess": guess}).x
                           for guess in (None, "rest"))  # fmt: skip
            if not np.array_equal(first, rest):
                yield 'guess="rest"', "rest"


class _RandomGuesses:
    """Nodes of a guess with random changes, the same ones in every run.

    The guess is the default one of a problem, whose first solve ended at `first`.

    States move by waves that vanish at the start, unless a part of it is free. A free part that
    two limits hold is drawn between them. Parts that stay as they are, such as durations and
    parameters, move as a whole.

    If they are `of_motion`, a state that begins next to its reference has its extent in the first
    plan as its size. That of the solve may be in the units of other states. What moves in the first
    plan moves as well, as the heading of a car whose guess is at rest.
    """

    def __init__(
        self, problem: Any, x0: ArrayLike, first: OptimalSolution, options: dict[str, Any], *,
        of_motion: bool = False,
    ) -> None:  # fmt: skip
        solver: Any = make_solver("interior_point", problem)
        asked = solver.solve(x0, **options | {"max_iterations": 0, "callback": None})
        self.once, self.problem, self.setting = solver.transcription, problem, asked._setting
        self.n, self.m = problem.system.n_errors, len(self.once.controls)
        self.scale = asked.plan["kept"][SCALE]  # of the cost
        self.size = asked.plan["scales"][0, -(self.n + self.m) :].copy()
        extent, size = _extent(problem.system, first.x), self.size[: self.n].copy()
        self.nodes = Nodes(asked.t, asked.x, asked.u)
        self.moves = self._moved_at(self.nodes)
        if of_motion:
            away = np.abs(problem.system.error(asked.x, self.setting.x_ref)).max(axis=0)
            size[(away == 0) & (extent > 0)] = 0.0
            self.moves |= self._moved_at(Nodes(first.t, first.x, first.u))
        self.size[: self.n] = np.fmax(size, extent)
        names, rows = problem.system.error_names, self.once.rows
        coordinates = problem.system.state.coordinate_names
        self.limits = {
            i: (rows.names.index(names[i]), coordinates.index(names[i]))
            for i in problem.free_start.tolist()
            if names[i] in rows.names and names[i] in coordinates
        }

    def _moved_at(self, nodes: Nodes) -> np.ndarray:
        """Which states the dynamics move at some node."""
        stage = self.once._stages("stage", nodes, self.setting)
        stays = (stage.A == np.eye(self.n)).all(axis=(0, 2))
        return ~(stays & ~stage.B.any(axis=(0, 2)))

    def __call__(self, number: int) -> Nodes:
        """The changes of a number."""
        rng, n, m, N = np.random.default_rng(number), self.n, self.m, self.problem.horizon
        rows = self.once.rows
        along, steps = np.linspace(0.0, np.pi, N + 1), np.linspace(0.0, np.pi, N)
        waves = np.sin(np.outer(along, np.arange(STATE_WAVES) + 0.5)) / np.sqrt(STATE_WAVES)
        x = waves @ rng.normal(size=(STATE_WAVES, n)) * self.moves
        waves = np.cos(np.outer(steps, np.arange(CONTROL_WAVES))) * 2 / np.sqrt(CONTROL_WAVES)
        u = self.size[n:] * (waves @ rng.normal(size=(CONTROL_WAVES, m)))
        free = np.isin(np.arange(n), self.problem.free_start)
        x = self.size[:n] * (x + free * rng.normal(size=n))
        for (i, (row, at)), drawn in zip(
            self.limits.items(), rng.uniform(size=len(self.limits)), strict=True
        ):
            low, high = rows.lower[row], rows.upper[row]
            if np.isfinite([low, high]).all():
                x[:, i] += low + drawn * (high - low) - self.nodes.x[0, at] - x[0, i]
        return self.once.move(self.nodes, x, u, self.setting)


def _optima(
    found: list[OptimalSolution], least: float, size: np.ndarray
) -> tuple[LocalOptimum, ...]:
    """Plans that differ, the cheapest first, with the number of starts that end at each.

    Costs differ by more than the least, states by more than a share of their sizes.
    """
    optima: list[LocalOptimum] = []

    def is_same(one: OptimalSolution, known: OptimalSolution) -> bool:
        if abs(one.cost - known.cost) > SAME_COST * abs(known.cost) + least:
            return False
        system = known.problem.system
        off = np.abs(system.error(one.x, known.x)).max(axis=0)
        extent = np.fmax(_extent(system, one.x), _extent(system, known.x))
        return bool((off <= np.fmax(SAME_STATES * extent, SAME_COST * size[: len(off)])).all())

    for one in sorted(found, key=lambda one: one.cost):
        at = next((k for k, known in enumerate(optima) if is_same(one, known.solution)), None)
        if at is None:
            optima.append(LocalOptimum(one.cost, 1, one))
        else:
            optima[at] = replace(optima[at], count=optima[at].count + 1)
    return tuple(optima)


def _extent(system: System, x: np.ndarray) -> np.ndarray:
    """Largest change of each state since the start."""
    return np.abs(system.error(x, np.repeat(x[:1], len(x), axis=0))).max(axis=0)


def _cheapest(found: list[OptimalSolution]) -> str:
    costs = [one.cost for one in found if one.is_success]
    return f"the cheapest plan costs {min(costs):.6g}" if costs else "no plan so far"


def _told(
    optima: tuple[LocalOptimum, ...], off: int, found: list[OptimalSolution], count: int
) -> str:
    """What the starts ended at, for messages; the last optima, so many, are cheaper and off."""
    good = optima[: len(optima) - off]
    told = [f"{one.cost:.6g} from {one.count}" for one in good[:TOLD]]
    for k in range(1, len(told)):
        if abs(good[k].cost - good[k - 1].cost) <= SAME_COST * abs(good[k].cost):
            told[k] = f"the same by another motion from {good[k].count}"
    told = [f"cost {', '.join(told)}"] if told else []
    dearer = sum(one.count for one in good[TOLD:])
    told += [f"{dearer} dearer"] if dearer else []
    if off:
        cheaper = sum(one.count for one in optima[-off:])
        told += [f"{cheaper} cheaper on steps that are too long, from {optima[-off].cost:.6g} on"]
    lost = Counter(str(one.status) for one in found if not one.is_success)
    if lost:
        why = ", ".join(f"{number} {status}" for status, number in lost.items())
        told += [f"{lost.total()} without a plan ({why})"]
    told += [f"no time for {count - len(found)}"] if len(found) < count else []
    return f"{count} start{'s' if count > 1 else ''}: {', '.join(told)}"


DERIVED["best_of_starts"] = best_of_starts
DERIVED["from_other_guesses"] = from_other_guesses

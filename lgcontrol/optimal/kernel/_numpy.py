"""NumpyMemory: the NumPy form where the kernel's memory would be, on machines without a kernel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ...systems._internal import changes_in_blocks
from .._guess import STARTS, best_start, later_grid, moved_on, steps_between
from .._settings import Settings
from .._stage_model import StageModel
from .._transcription import Nodes, Setting
from ._barrier import PlanIterate
from ._library import Stages, places_of
from ._memory import KernelMemory, layout_of
from ._newton import NewtonKKT
from ._table import (
    CONVERGED,
    INFEASIBLE,
    ITERATIONS,
    LOG,
    MEMORY,
    NOT_FINITE,
    OF_STEPS,
    STALLED,
    WARM,
    WATCH,
)

# Numbers that steps go on with; then whole ones.
NUMBERS = tuple(field.name for field in MEMORY if field.kind == "number")
COUNTS = tuple(field.name for field in MEMORY if field.kind == "size")
ELASTIC, BEYOND, OF = map(COUNTS.index, ("elastic", "beyond", "of"))
ITERATE = ("x", "u", "s", "z", "e", "y", "zl", "zu", "lam", "nu")
# Parts with an entry for each node, or for each step.
OF_NODES = ("s", "z", "e", "y", "nu", "zl", "zu", "lam", "K")


class NumpyMemory(KernelMemory):
    """Arrays of one problem that solves and steps in NumPy work on: no rules of a loop."""

    has_kernel = False

    def __init__(self, model: StageModel, settings: Settings, most: int) -> None:
        self.stage_model = model
        super().__init__(model, Stages({}, 1, {}, places_of(model)), settings, most)

    def _sizes(self, model: StageModel) -> tuple[int, int, int, int]:
        kept = len(MEMORY)
        places = layout_of(model, kept).places
        plan = sum(int(np.prod(places[name][1])) for name in ITERATE)
        return 0, plan, kept, kept

    def give(self, setting: Setting, t: np.ndarray, x0: np.ndarray, weight: np.ndarray) -> None:
        """Write what a solve is given."""
        super().give(setting, t, x0, weight)
        self.setting = setting

    def _enter(self, entry: str) -> Any:
        with np.errstate(all="ignore"):
            return getattr(self, f"_{entry}")()

    def _nodes(self) -> Nodes:
        return Nodes(self.arrays["t"].copy(), self.parts["x"].copy(), self.parts["u"].copy())

    def _newton(self, nodes: Nodes, going_on: dict[str, Any] | None = None) -> NewtonKKT:
        count = len(self.stage_model.sides.row)
        return NewtonKKT(
            self.stage_model, self.setting, nodes, self.arrays["x0"].copy(),
            replace(self.own_settings, mu_first=self.settings.mu_first),
            self.task.tolerance, weight=self.arrays["weight"][:count].copy(), going_on=going_on,
            of=self.task.of,
        )  # fmt: skip

    @property
    def _watch(self) -> Callable[[np.ndarray], bool] | None:
        if not self.task.watch:
            return None
        call = WATCH(self.task.watch)

        def ask(entry: np.ndarray) -> bool:
            row = np.resize(entry, len(LOG)) if entry.size else np.zeros(len(LOG))
            return bool(call(row.ctypes.data_as(ctypes.POINTER(ctypes.c_double))))

        return ask

    @property
    def _counts(self) -> np.ndarray:
        return self.kept[len(NUMBERS) :].view(np.int64)

    @property
    def _numbers(self) -> dict[str, Any]:
        """What is gone on from, besides the parts of a plan."""
        numbers: dict[str, Any] = dict(zip(NUMBERS, self.kept.tolist(), strict=False))
        return numbers | {
            "scales": self.parts["scales"].copy(),
            "elastic": self._counts[ELASTIC],
            "of": self._counts[OF],
        }

    def _keep(self, solver: NewtonKKT, it: PlanIterate, K: Any, rows: np.ndarray) -> None:
        for name in ITERATE:
            self.parts[name][:] = getattr(it, name)
        self.parts["rows"][:], self.parts["scales"][1] = rows, solver.other_scales
        self.parts["scales"][0] = np.r_[solver.d, solver.size]
        if K is not None:
            self.parts["K"][:] = K
        self.kept[: len(NUMBERS)] = [getattr(solver, name, 0.0) for name in NUMBERS]
        self._counts[ELASTIC], self._counts[OF] = solver.elastic, solver.of
        task = self.task
        task.mu, task.scale, task.penalty = solver.mu, solver.scale, solver.penalty
        task.elastic = int(solver.elastic)
        task.evaluations, task.factorizations = solver.evaluations, solver.factorizations

    def _start(self) -> float:
        once, given = self.stage_model.transcription, self.arrays
        which = tuple(word for word, bit in STARTS.items() if self.task.starts & bit)
        nodes = best_start(once, which, given["x0"], given["t"], self.setting, self.own_settings)
        self.parts["x"][:], self.parts["u"][:] = nodes.x, nodes.u
        return 0.0

    def _solve(self, nodes: Nodes, taken: int, *, is_elastic: bool) -> int:
        task = self.task
        if task.resume == WARM and not is_elastic:
            parts: dict[str, Any] = {name: self.parts[name].copy() for name in OF_NODES}
            solver = self._newton(nodes, parts | self._numbers)
            solver.begin_warm()
        else:
            solver = self._newton(nodes)
        most = task.max_iterations - taken
        found = solver.solve(most, is_elastic=is_elastic, watch=self._watch)
        last = taken + len(found.log) - 1
        self.arrays["log"][taken : last + 1] = found.log
        task.iterations = last
        self._keep(solver, found.iterate, found.K, solver.ex.rows)
        self._counts[BEYOND] = found.status == INFEASIBLE
        return found.status

    def _plan(self) -> int:
        """As ``lg_newton_plan``."""
        nodes, task, log = self._nodes(), self.task, self.arrays["log"]
        status = self._solve(nodes, 0, is_elastic=False)
        taken, can_relax = task.iterations, self._newton(nodes).can_relax
        if status not in (STALLED, INFEASIBLE) or taken >= task.max_iterations or not can_relax:
            return status
        kept = self.column.copy(), self.kept.copy(), log[taken].copy()
        before = task.elastic, task.mu, task.penalty
        other = self._solve(nodes, taken, is_elastic=True)
        if other == CONVERGED:
            return other
        self.column[:], self.kept[:], log[task.iterations] = kept
        task.elastic, task.mu, task.penalty = before
        return other if other in (status, ITERATIONS) else STALLED

    def _step(self) -> int:
        """As ``lg_newton_step``."""
        self.task.of = OF_STEPS
        model, task, setting = self.stage_model, self.task, self.setting
        problem, nodes, o = model.problem, self._nodes(), self.own_settings
        before = nodes._replace(t=problem.times(task.start))
        parts = {name: self.parts[name].copy() for name in OF_NODES}
        in_blocks, steps = changes_in_blocks(problem.system), 0
        if problem.has_equal_steps:
            steps, _ = steps_between(problem, task.start, float(nodes.t[0]))
            for name, value in parts.items():
                last = [value[-1:]] * min(steps, len(value))
                parts[name] = np.concatenate([value[steps:], *last])
        else:
            grid = later_grid(problem, task.start, float(nodes.t[0]))
            for name, value in parts.items():
                parts[name] = value[grid.nodes if len(value) > problem.horizon else grid.steps]
        if in_blocks:
            parts["K"] = self.parts["K"].copy()
        moved = moved_on(problem, before, nodes.t, setting, self.arrays["x0"])
        solver = self._newton(moved, parts | self._numbers)
        solver.extends = steps > 0 and not in_blocks
        x0 = model.first_state(self.arrays["x0"], moved.x[0], setting.p)
        is_fine = solver.step(x0, task.max_iterations, more=task.more, watch=self._watch)
        it = solver.it
        cost, gaps, rows = found = solver.values(it)
        misses = gaps, *solver.misses(it, found)[1:]
        task.iterations = solver.taken_steps
        beyond, was_beyond = solver.exceeds(rows), bool(self._counts[BEYOND])
        self._keep(solver, it, solver.K, rows)
        self._counts[BEYOND] = beyond
        self.arrays["log"][0] = (
            cost, solver.off, max(np.abs(part).max(initial=0.0) for part in misses), np.nan,
            solver.alpha if is_fine else 0.0, solver.dw, solver.mu, solver.elastic,
            np.abs(gaps).max(initial=0.0),
        )  # fmt: skip
        if not np.isfinite(cost):
            return NOT_FINITE
        is_near = solver.off <= o.real_time_far and solver.alpha >= o.real_time_short
        if beyond and was_beyond and (solver.off <= o.acceptable or is_near):
            return INFEASIBLE
        return ITERATIONS if is_fine else STALLED

"""Results of the planning kernel: what its runs are told as, with a status and a message."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._causes import LastIterate, causes_of, contradicted, has_diverged, proves_nothing
from .._outcome import (
    ACCEPTABLE_RESIDUAL,
    OTHER_START,
    Iteration,
    SolveStatus,
    Violation,
    open_defects,
    sentence,
    start_violations,
    worst_violations,
)
from .._plan import SCALE, Plan
from .._settings import Settings, tolerance_unit
from .._solution import OptimalSolution
from .._solutions import judged, solution_at
from .._stage_model import StageModel
from .._transcription import Nodes, Setting
from ..phases._flat_phases import DURATION
from ._memory import STATUS
from ._table import CONVERGED, INFEASIBLE, ITERATIONS, NOT_FINITE, STALLED

# Violation of a hard constraint that still counts as kept, in real-time steps.
KEPT = 1e-6
NEAR, MULTIPLIER = 1e-3, 1e-2  # of limits and multipliers that messages name
SEVERAL = 20  # iterations after which a message says what else there is


class KernelRun(NamedTuple):
    """What a solve or steps left: a `code`, rows of the log, and `found`, the plan in memory.

    `plan` is the one to go on from, at these nodes. It `started` at a reading of the clock.
    """

    code: int
    log: np.ndarray
    found: Plan
    plan: Plan
    nodes: Nodes
    setting: Setting
    started: float


def iteration_of(
    entry: Sequence[float], number: int, seconds: float, *, price: float = 0.0,
    is_step: bool = False,
) -> Iteration:  # fmt: skip
    """What a row of `LOG` says, in the words of all solvers; price of soft bounds on top.

    Nobody asks a step for its residual.
    """
    cost, stationarity, violation, products, step, damping, _, _, defect = entry
    kkt = np.nan if is_step else max(stationarity, violation, products)
    return Iteration(number, cost + price, defect, violation, kkt, step, damping, seconds)


class KernelResults:
    """Makes solutions of what the kernel leaves."""

    def __init__(self, model: StageModel, settings: Settings) -> None:
        self.model, self.settings = model, settings

    def _within_limits(self, nodes: Nodes, setting: Setting) -> Nodes:
        """Nodes with controls exactly within their limits, which the kernel relaxes."""
        limits = self.model.problem.input_limits
        if not limits.is_limited:
            return nodes
        u, own = nodes.u, self.model.controls
        if len(own) == u.shape[1]:
            return Nodes(nodes.t, nodes.x, limits.kept(u, setting.p))
        u = u.copy()
        u[:, own] = limits.kept(u[:, own], setting.p)
        return Nodes(nodes.t, nodes.x, u)

    @cached_property
    def _allowed(self) -> tuple[np.ndarray, np.ndarray]:
        """Values of rows that a step may have without a word: soft ones within their limits."""
        rows = self.model.transcription.rows
        return rows.beyond(np.where(np.isinf(rows.soft), KEPT, 0.0))

    def solution(
        self, run: KernelRun, *, tolerance: float, ended: SolveStatus | None = None,
        set_up: float = 0.0,
    ) -> OptimalSolution:  # fmt: skip
        """What a solve led to that took so many seconds before its first step."""
        code, log, found, plan, nodes, setting, started = run
        once, problem = self.model.transcription, self.model.problem
        rows, seconds = found["rows"], time.perf_counter() - started
        violations: tuple[Violation, ...] = ()
        unknown, price = "", 0.0
        if once.rows.names:
            unknown = once.rows.not_finite(rows)
            if code != NOT_FINITE:
                price = once.rows.penalty(rows, once.rows.weights(setting.p))
                scales = found["scales"][0, : len(once.rows.names)]
                allowed = tolerance * tolerance_unit(self.settings, 1 / scales)
                violations = worst_violations(once.rows, once.rows.excess(rows), nodes.t, allowed)
        entries = tuple(
            iteration_of(row, k, seconds, price=price) for k, row in enumerate(log.tolist())
        )
        last = entries[-1]
        status, gap = ended or STATUS[code], last.defect
        if code == CONVERGED:
            status = SolveStatus.INFEASIBLE if violations else SolveStatus.CONVERGED
        is_short = ended is None and code in (ITERATIONS, STALLED)
        if is_short and not violations and last.kkt <= tolerance:
            status = SolveStatus.CONVERGED
        elif status is SolveStatus.STALLED and not violations and last.kkt <= ACCEPTABLE_RESIDUAL:
            status = SolveStatus.ACCEPTABLE
        if status is SolveStatus.STALLED and not np.isfinite(last.kkt):
            status = SolveStatus.FAILED
        if status is SolveStatus.INFEASIBLE and gap > ACCEPTABLE_RESIDUAL:
            status = SolveStatus.STALLED  # it is no motion, so its violation proves nothing
        last_one = LastIterate(self.model, setting, nodes, found, log)
        if status is SolveStatus.INFEASIBLE and proves_nothing(last_one):
            status = SolveStatus.STALLED  # its violation proves something of the steps alone
        if status.is_success and has_diverged(last_one):
            status = SolveStatus.STALLED
        if unknown:  # nobody vouches for such a plan
            status = SolveStatus.FAILED

        def later() -> dict[str, Any]:
            is_long = status is SolveStatus.ITERATION_LIMIT and last.number >= SEVERAL
            is_lost = is_long or status is SolveStatus.STALLED
            causes: list[str] = []
            ruled_out = contradicted(last_one) if violations else ""
            if ruled_out and status is not SolveStatus.FAILED:
                causes = [ruled_out] if is_lost else []
            elif is_lost or status in (SolveStatus.FAILED, SolveStatus.INFEASIBLE):
                causes = causes_of(last_one, status)
            failed = causes.pop() if status is SolveStatus.FAILED and causes else ""
            start = start_violations(once.rows, rows[0], tolerance) if violations else ""
            message = sentence(
                status, last, tolerance, failed=failed, set_up=set_up,
                infeasible=start or ruled_out or self._remedy(rows),
            )  # fmt: skip
            if is_long and last.kkt <= tolerance:
                message = f"{message}, of the least violation"
                if violations:
                    message += ", so the hard bounds are in conflict as far as this search saw"
            if is_lost and not (start or ruled_out):
                causes.append(self._at_start_limits(rows))
                causes = causes if any(causes) else [OTHER_START]
            told = "" if status is SolveStatus.INFEASIBLE else start  # which tells it already
            parts = [message, told, *causes, open_defects(status, gap), *map(str, violations)]
            if violations and status in (SolveStatus.INFEASIBLE, SolveStatus.STALLED):
                parts.append(self._at_limits(nodes, setting, rows))
                parts += [] if start or ruled_out else [self._in_conflict(found, violations)]
            if status.is_success:
                parts += self._binding_limits(found, nodes, setting)
            return {"message": unknown or "; ".join(filter(None, parts))}

        made = solution_at(
            problem, self._within_limits(nodes, setting), setting, nodes.t, last, later,
            status=status, violations=violations, defect=gap, plan=plan, iterations=entries,
            times={"total": seconds, "model": seconds, "qp": 0.0},
        )  # fmt: skip
        return judged(made, setting)

    def step(self, run: KernelRun, steps: int, *, is_late: bool = False) -> OptimalSolution:
        """What real-time steps led to; late ones were to be more."""
        code, log, found, plan, nodes, setting, started = run
        once, problem = self.model.transcription, self.model.problem
        seconds, rows = time.perf_counter() - started, found["rows"]
        violations: tuple[Violation, ...] = ()
        price, unknown = 0.0, ""
        if once.rows.names and code != NOT_FINITE:
            lowest, highest = self._allowed
            if not ((rows >= lowest) & (rows <= highest)).all():
                excess = once.rows.excess(rows)
                unknown = once.rows.not_finite(rows)
                violations = worst_violations(once.rows, excess, nodes.t, KEPT)
                price = once.rows.penalty(rows, once.rows.weights(setting.p))
        entry = iteration_of(log[0].tolist(), steps, seconds, price=price, is_step=True)
        status = SolveStatus.ITERATION_LIMIT
        if code == NOT_FINITE or unknown:
            status = SolveStatus.FAILED
        elif code == INFEASIBLE:
            status = SolveStatus.INFEASIBLE
        elif is_late:
            status = SolveStatus.TIME_LIMIT

        def later() -> dict[str, Any]:
            text = unknown
            if status is SolveStatus.TIME_LIMIT:
                text = f"{sentence(status, entry, KEPT)}: more were due"
            if not text and status is SolveStatus.FAILED:
                text = "the motion from the measured state diverges"
                if np.isfinite(entry.cost):
                    text = "no step improves the plan that was found last"
            if violations and status is SolveStatus.ITERATION_LIMIT:
                text = "the iterations of the call ended before the plan kept its hard bounds"
            if violations and status is SolveStatus.INFEASIBLE:
                text = self._at_limits(nodes, setting, rows)
            start = start_violations(once.rows, rows[0], KEPT) if violations else ""
            parts = text, *map(str, violations), start
            return {"message": "; ".join(filter(None, parts))}

        made = solution_at(
            problem, self._within_limits(nodes, setting), setting, nodes.t, entry, later,
            status=status, violations=violations, defect=0.0, plan=plan, iterations=(entry,),
            times={"total": seconds, "model": seconds, "qp": 0.0},
        )  # fmt: skip
        if not (self.model.is_implicit or setting.box.contradictions):
            return made
        return judged(made, setting)

    def _at_limits(self, nodes: Nodes, setting: Setting, values: np.ndarray) -> str:
        """Limits of controls, and of what is free at the start, that are met, for messages."""
        names = setting.box.spent(nodes.u[:, self.model.controls], NEAR)
        names += self._starts_at_limits(values)
        return f"at their limits: {', '.join(names)}" if names else ""

    def _remedy(self, values: np.ndarray) -> str:
        """What may make hard bounds feasible: more time, unless a free duration is too long."""
        model = self.model
        rows = model.transcription.rows.names, model.sides.row[model.of_start]
        is_free = any(rows[0][row].startswith(f"{DURATION}.") for row in rows[1])
        times = [one for one in self._starts_at_limits(values) if one.startswith(f"{DURATION}.")]
        asked = {" (lower": "a shorter time", " (upper": "more time"}
        moved = [f"allow {told}" for side, told in asked.items() if any(side in t for t in times)]
        moved = moved if is_free else ["allow more time"]
        return f"{', '.join(['give one of them soft=', *moved])}, or start elsewhere"

    def _at_start_limits(self, values: np.ndarray) -> str:
        """Free initial values that are at a limit, such as a duration, for messages."""
        names = self._starts_at_limits(values)
        if not names:
            return ""
        return (
            f"at its limit: {', '.join(names)}; move this limit, or begin away from it: durations= "
            "of solve(), or x0"
        )

    def _starts_at_limits(self, values: np.ndarray) -> list[str]:
        sides, rows, own = self.model.sides, self.model.transcription.rows, self.model.of_start
        names = []
        for row, sign, limit in zip(sides.row[own], sides.sign[own], sides.limit[own], strict=True):
            width = rows.upper[row] - rows.lower[row]
            near = NEAR * (width if np.isfinite(width) else max(1.0, abs(limit)))
            if sign * (values[0, row] - limit) >= -near:
                names.append(f"{rows.names[row]} ({'upper' if sign > 0 else 'lower'}, {limit:g})")
        return names

    def _binding_limits(self, found: Plan, nodes: Nodes, setting: Setting) -> list[str]:
        """Hard limits that a free constant, such as a duration, is at, and what they cost."""
        model, sides = self.model, self.model.sides
        count, n = len(sides.row), model.n
        z = np.where(sides.active & np.isinf(sides.weight), found["z"][:, :count], 0.0)
        active = np.flatnonzero((z > found["s"][:, :count]).any(axis=0))
        if not (len(model.free) and len(active)):
            return []
        at, names, told = model.expand(nodes, setting), model.transcription.rows.names, []
        moves = np.concatenate([at.A - np.eye(n), at.B], axis=2).any(axis=(0, 2))
        varies = np.append(moves | ~np.isin(np.arange(n), model.free), np.ones(model.m, bool))
        for j in active:
            row, side = sides.row[j], "upper" if sides.sign[j] > 0 else "lower"
            if at.G[:, row, varies].any() or at.G_end[row, varies[:n]].any():
                continue
            price = found["scales"][0, row] * z[:, j].sum() / found["kept"][SCALE]
            is_gone = side == "lower" and sides.limit[j] == 0.0
            if is_gone and names[row].startswith(f"{DURATION}."):
                phase = names[row].removeprefix(f"{DURATION}.")
                told.append(
                    f"phase {phase!r} is not needed: its duration ends at 0 s, and every second of "
                    f"it costs {price:.2g}; leave the phase out, or give it a least duration above "
                    "0 if it is to be there"
                )
                continue
            unit = "s" if names[row].startswith(f"{DURATION}.") else ""
            unit = unit or model.problem.bound_unit(names[row]) or "unit"
            other = "smaller" if side == "lower" else "larger"
            told.append(
                f"{names[row]} is at its {side} limit, {sides.limit[j]:g}: a {other} one lowers "
                f"the cost, at first by {price:.2g} per {unit}; move it unless it is meant"
            )
        return told

    def _in_conflict(self, found: Plan, violations: tuple[Violation, ...]) -> str:
        """Equalities and bounds that are kept at the expense of what is exceeded, for messages."""
        sides, names = self.model.sides, self.model.transcription.rows.names
        count, exceeded = len(sides.row), {one.name for one in violations}
        exceeded |= {names[row] for row in sides.row[self.model.of_start]}  # told as limits
        of_sides = np.abs(found["z"][:, :count]).max(axis=0, initial=0.0)
        least = MULTIPLIER * of_sides.max(initial=0.0)
        of_equal = found["z"][:, count:] if found["z"][:, count:].any() else found["nu"]
        largest = np.abs(of_equal).max(axis=0, initial=0.0)
        told = []
        for kind, kept in (
            ("equality", sides.equal[largest > least]),
            ("bound", sides.row[of_sides > least]),
        ):
            others = dict.fromkeys(names[row] for row in kept if names[row] not in exceeded)
            told += [f"the {kind} on {', '.join(others)}"] if others else []
        return f"in conflict with {' and '.join(told)}" if told else ""

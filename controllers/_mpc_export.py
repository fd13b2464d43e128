"""Export of an MPC as C99."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.codegen._internal import level_outside
from lgcontrol.groups import check_element
from lgcontrol.optimal._internal import EXACT, ExportCase, check_constant, sample_reference

from ._mpc_kernel import keep_up, whole_state

# Size of the error at which test vectors of an export begin.
TEST_ERROR = 0.1

# Tolerances of test vectors come from twins: the same calls from states moved by some ulp. The
# trolley of `test_linear_controls.py` grows rounding 1e9 times; its answers in C are off by up to
# 2.5 times what those of a twin are. Faults of a loop move answers by 1e-3 and more.
TWINS, TWIN_ULPS, TWIN_FACTOR = 2, 16.0, 10.0
LARGEST_TOLERANCE = 1e-5


def export_mpc(
    mpc: Any, folder: str | Path, name: str | None, x0: ArrayLike | None, calls: int
) -> Path:
    """Write an MPC as plain C99; see `MPC.export_c`."""
    for word, is_used, remedy in (
        ("split", mpc.real_time.split, "call _step with split=False here"),
        ("budget in seconds", np.isfinite(mpc.real_time.budget), "C99 has no clock: bound the "
         "iterations of any call, RealTime(most_iterations=…)"),
        ("parameters that are functions of time", bool(mpc._values.functions), "give numbers here, "
         "and write p of the struct before each _step"),
    ):  # fmt: skip
        if is_used:
            raise NotImplementedError(f"an exported MPC has no {word}: {remedy}")
    if not isinstance(mpc.guess, str):
        raise NotImplementedError(
            f"an exported MPC cannot start from {type(mpc.guess).__name__}: make it with "
            "guess='cheapest', or with a policy of the system and guess='policy'"
        )
    check_constant(mpc.system, mpc.reference)
    mpc, start = _keeping_up(mpc, x0)
    parts, work, solver = mpc._parts, mpc.real_time, mpc.solver
    options: dict[str, Any] = {
        "name": name, "p": mpc._p, "period": mpc.dt, "guess": parts.word,
        "reference": parts.aim(parts.began(), mpc.reference, mpc.offset, mpc._own)[1],
        "iterations": work.iterations, "first_iterations": work.first_iterations,
    }  # fmt: skip
    if solver.has_export:
        options |= {
            "delay": mpc.delay, "rates": parts.rates.in_kernel(mpc._stated),
            "restarts": work.looks, "most_iterations": work.most_iterations,
            "disturbance": None if parts.estimator is None else parts.estimator.in_kernel,
        }  # fmt: skip
    if solver.has_loop:  # else nothing here answers as firmware does
        options["cases"] = [_case(mpc, parts.word, start, calls)]
    return solver.export_c(folder, **options)


def _keeping_up(mpc: Any, x0: ArrayLike | None) -> tuple[Any, np.ndarray]:
    """A copy with as many substeps as its first call would take, and the state of that call."""
    system, other = mpc.system, mpc._copy()
    if x0 is None:
        start = sample_reference(system, mpc.reference, np.zeros(1), mpc._own).x[0]
        move = TEST_ERROR * np.random.default_rng(0).normal(size=system.n_errors)
        x = system.retract(start, move, mpc._own)
    else:
        x = check_element("x0", x0, system.state)
    loop = mpc._parts.began()
    whole = whole_state(mpc, loop, x, mpc.offset, mpc.reference)
    keep_up(other, loop, whole, mpc.offset, mpc.reference)
    return other, x


def _fresh(mpc: Any, word: str) -> Any:
    """A copy that nobody has called, whose first plan begins as the word says."""
    other = mpc._copy()
    other._take(mpc.problem)
    other._parts = replace(other._parts, guess=word)
    if mpc.solver.is_prepared:
        other.solver.prepare()
    return other


def _case(mpc: Any, word: str, x: np.ndarray, calls: int) -> ExportCase:
    """Calls from a fresh start along a nominal closed loop, with the tolerance of each answer."""
    other = _fresh(mpc, word)
    t, states, answers, statuses = mpc.dt * np.arange(calls), [], [], []
    delay, sent = mpc._parts.delay, ()
    for k in range(calls):
        states.append(x)
        acting = other.applied
        u = other(t[k], x)
        answers.append(u)
        statuses.append(other.info.status.name)
        sent = delay.begun(delay.arrive(sent, t[k]), t[k], acting)
        sent = delay.send(sent, t[k] + mpc.delay, u)
        x = delay.predict(sent, t[k], x, t[k] + mpc.dt, 0.0, mpc.problem, mpc._own)
    case = ExportCase(t, np.array(states), np.array(answers), statuses)
    off, is_same = np.zeros(calls), np.ones(calls, dtype=bool)
    for seed in range(TWINS):
        moved, told = _twin(mpc, word, case, seed)
        gap = np.abs(moved - case.u) / np.maximum(1.0, np.abs(case.u))
        off = np.maximum(off, gap.max(axis=1, initial=0.0))
        is_same &= np.array(told) == statuses
    tolerance = np.maximum(EXACT, TWIN_FACTOR * off)
    is_told = is_same & (tolerance <= LARGEST_TOLERANCE)
    count = calls if is_told.all() else int(np.argmin(is_told))
    if count < calls:
        warnings.warn(
            f"test vectors end after {count} of {calls} calls: then rounding alone moves the "
            f"answers by more than {LARGEST_TOLERANCE / TWIN_FACTOR:g}, or changes a status. Give "
            "another x0= if more calls are to be compared",
            RuntimeWarning,
            stacklevel=level_outside(),
        )
    return ExportCase(t[:count], case.x[:count], case.u[:count], statuses[:count],
                      tolerance[:count])  # fmt: skip


def _twin(mpc: Any, word: str, case: ExportCase, seed: int) -> tuple[np.ndarray, list[str]]:
    """Answers and statuses of the same calls, whose states have other last digits."""
    other, rng = _fresh(mpc, word), np.random.default_rng(seed)
    answers, statuses = [], []
    for t, x in zip(case.t, case.x, strict=True):
        size = TWIN_ULPS * np.finfo(float).eps * max(1.0, np.abs(x).max(initial=0.0))
        move = size * rng.choice([-1, 1], mpc.system.n_errors)
        answers.append(other(t, mpc.system.retract(x, move, mpc._own)))
        statuses.append(other.info.status.name)
    return np.array(answers), statuses

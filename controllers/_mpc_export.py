"""Export of an MPC as C99."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lgcontrol.groups import check_element
from lgcontrol.optimal._internal import ExportCase, check_constant, sample_reference

from ._mpc_delay import moved

# Size of the error at which test vectors of an export begin.
TEST_ERROR = 0.1


def export_mpc(
    mpc: Any, folder: str | Path, name: str | None, x0: ArrayLike | None, calls: int
) -> Path:
    """Write an MPC as plain C99; see `MPC.export_c`.

    Parameters
    ----------
    mpc : MPC
    folder : path
    name : str or None
    x0 : array_like or None
    calls : int

    Returns
    -------
    Path
    """
    has_loop = mpc.solver.has_loop
    for word, is_used, remedy in (
        ("disturbance", not (mpc._estimator is None or has_loop), "estimate it beside, "
         "model it as a state or measure it, and write it to u_ref at run time"),
        ("split", mpc.real_time.split, "call _step with split=False here"),
        ("budget", np.isfinite(mpc.real_time.budget), "bound `iterations` instead; firmware has no "
         "clock that C99 knows"),
    ):  # fmt: skip
        if is_used:
            raise NotImplementedError(f"an exported MPC has no {word}: {remedy}")
    if mpc.delay and mpc.rates is not None and not has_loop:
        raise NotImplementedError(
            "an exported MPC with rates does not predict over its delay: give it the state "
            "then, or model the delay, system.augment(delay=…), and make the MPC with delay=0"
        )
    if not isinstance(mpc.guess, str):
        raise NotImplementedError(
            f"an exported MPC cannot start from {type(mpc.guess).__name__}: make it with "
            "guess='cheapest', or with a policy of the system and guess='policy'"
        )
    if mpc.reference is not None:
        check_constant(mpc.system, mpc.reference)
    word = mpc._planner.word
    options: dict[str, Any] = {
        "name": name, "reference": mpc._aim(mpc._loop, mpc.reference, mpc.offset)[1], "p": mpc._p,
        "period": mpc.dt,
        "iterations": mpc.real_time.iterations, "first_iterations": mpc.real_time.first_iterations,
        "guess": word,
    }  # fmt: skip
    if mpc.rates is not None and not has_loop:
        options["holds"] = False
    if mpc.delay:
        options["delay"] = mpc.delay
    if has_loop:
        options["rates"] = mpc._rates.in_kernel(mpc._stated)
        options["restarts"] = mpc.real_time.looks
        options["most_iterations"] = mpc.real_time.most_iterations
        if mpc._estimator is not None:
            options["disturbance"] = mpc._estimator.in_kernel
    if mpc.reference is None or not mpc.solver.has_export:
        return mpc.solver.export_c(folder, **options)  # which says what is missing
    return mpc.solver.export_c(folder, **options, cases=[_case(mpc, word, x0, calls)])


def _case(mpc: Any, word: str, x0: ArrayLike | None, calls: int) -> ExportCase:
    """Calls from a fresh start along a nominal closed loop."""
    system, other = mpc.system, mpc._copy()
    other._take(mpc.problem)
    other._planner = other._planner.as_firmware(word)
    if mpc.solver.is_prepared:
        other.solver.prepare()
    if x0 is None:
        start = sample_reference(system, mpc.reference, np.zeros(1), mpc._own).x[0]
        move = TEST_ERROR * np.random.default_rng(0).normal(size=system.n_errors)
        x = system.retract(start, move, mpc._own)
    else:
        x = check_element("x0", x0, system.state)
    t, states, answers, statuses = mpc.dt * np.arange(calls), [], [], []
    for k in range(calls):
        with_inputs = mpc.rates is not None and not mpc.solver.has_loop  # whose answers are rates
        states.append(other._whole(other._loop, x, t[k], mpc.reference) if with_inputs else x)
        u = other(t[k], x)
        assert other._loop.plan.found is not None
        answers.append(other._loop.plan.found.u[0, : len(u)] if with_inputs else u)
        statuses.append(other.info.status.name)
        x = moved(system, mpc.problem, t[k], x, system.full_input(u), mpc.dt, mpc._own)
    return ExportCase(t, np.array(states), np.array(answers), statuses)

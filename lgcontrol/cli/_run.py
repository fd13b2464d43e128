"""lgcontrol run and demo: designs in closed loop, judged."""

from __future__ import annotations

import argparse
import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen._internal import unknown_name
from ..plotting._internal import can_be_seen
from ._registry import (
    DESIGNS,
    MODELS,
    CommandError,
    design_of_file,
    end_progress,
    entries,
    load,
    progress,
    safe_name,
    summary,
    table,
    told,
)
from ._view import show_scenes

OK, FAILED = 0, 1
OTHER_STATUSES = "2 for words, files or values that are not valid, 130 after Ctrl-C"


def run_command(names: Sequence[str], options: argparse.Namespace) -> int:
    """Run designs one after the other; the worst status counts."""
    designs = dict(map(_named, names))
    check_folder(options.out)
    worst = OK
    for name, design in designs.items():
        try:
            run = _perturb if options.perturb else _run_one
            worst = max(worst, run(name, design, options))
        except Exception as error:  # a design of anybody's; the others still run, and exit says so
            end_progress()
            if options.traceback:
                traceback.print_exc()
            where = traceback.extract_tb(error.__traceback__)[-1]
            print(
                f"  FAILED: {type(error).__name__}: {error}\n"
                f"  (raised in {where.filename}, line {where.lineno}; --traceback shows the way)"
            )
            worst = max(worst, FAILED)
    return worst


def _named(name: str) -> tuple[str, Any]:
    """What a design is called, and the function that makes it."""
    if name.partition(":")[0].endswith(".py"):
        return design_of_file(name)
    known = entries(DESIGNS)
    if name not in known:
        if name in entries(MODELS):
            raise CommandError(
                f"{name!r} is a model, which has no task to run: see lgcontrol info {name}; "
                f"designs are {', '.join(sorted(known))}"
            )
        text = unknown_name("design", name, sorted(known))
        raise CommandError(f"{told(text)} A file of yours is FILE.py or FILE.py:NAME.")
    return name, load(known[name])


def _run_one(name: str, design: Any, options: argparse.Namespace) -> int:
    from ..simulation import RunStatus, SimulationError

    print(f"{name}: {summary(design)}", flush=True)
    task = design(seed=options.seed)
    started = time.perf_counter()
    try:
        run = task.run(seconds=options.seconds, seed=options.seed, progress=progress())
    except SimulationError as error:
        if options.traceback:
            traceback.print_exc()
        run = error.result
    end_progress()
    elapsed = time.perf_counter() - started
    print(f"  {run.t[-1]:.2f} s simulated in {elapsed:.1f} s")
    if options.seconds is not None and options.seconds < task.seconds:
        print(
            f"  cut short: the design takes {task.seconds:g} s, and its criteria are those of all "
            f"of it; --seconds {options.seconds:g} says little of what is not met"
        )
    if run.status is RunStatus.INTERRUPTED:
        print("  no criterion is judged: they are those of a whole run")
        passed = False
    else:
        passed = _print_verdicts(task, run)
    for line in run.summary():
        print(f"  {line}")
    written = _write(name, run, options, task)
    print(f"  wrote {', '.join(map(str, written))}", flush=True)
    if options.view:
        try:
            scene = replace(run, name=name).scene()
        except ValueError as error:
            print(f"  not shown: {error}")
        else:
            show_scenes([scene], None)
    if run.status is RunStatus.INTERRUPTED:
        raise KeyboardInterrupt
    return OK if passed and run.is_success else FAILED


def _perturb(name: str, design: Any, options: argparse.Namespace) -> int:
    """Print how far the plant may be from what the controller knows."""
    from ..simulation import robustness

    print(f"{name}: {summary(design)}", flush=True)
    task = design(seed=options.seed)
    found = robustness(
        task, seed=options.seed, progress=lambda text: print(f"  {text}", flush=True)
    )
    if np.isnan(found.factor):
        print(f"  FAILED: {', '.join(found.limiting)}")
        return FAILED
    share = "own perturbations" if task.perturbed else "± 20 % of mass and inertia, twice the drag"
    print(f"  largest factor: {found.factor:g} times {share} and one sample of delay")
    if found.limiting:
        print(f"  beyond it: {', '.join(found.limiting)}")
    return OK


def _print_verdicts(task: Any, run: Any) -> bool:
    """Print the criteria with their values; whether all were met."""
    from ..simulation._internal import Verdict

    rows, passed = [], True
    for criterion in task.criteria:
        try:
            value = criterion.value(run)
        except Exception as error:  # a run that ended early may lack what it looks at, others not
            if run.is_success:
                raise
            rows.append((criterion.name, f"({type(error).__name__})", criterion.range, "FAILED"))
            passed = False
            continue
        verdict = Verdict(criterion, value)
        passed &= verdict.passed
        mark = "ok" if criterion.range else ""
        if not verdict.passed:
            by = f" by {verdict.excess:.3g} {criterion.unit}" if np.isfinite(value) else ""
            mark = f"FAILED{by}".rstrip()
        number = f"{value:.4g} {criterion.unit}".rstrip()
        rows.append((criterion.name, number, criterion.range, mark))
    for line in table(rows) if rows else []:
        print(line)
    return passed


def _write(name: str, run: Any, options: argparse.Namespace, task: Any) -> list[Path]:
    """Data, figures and animation, as far as they are wanted and the run has them."""
    out, stem = options.out, safe_name(name)
    written = [run.save(out / f"{stem}.npz")]
    run = replace(run, name=name)  # its own is the plant's
    if not options.no_plot:
        written.append(out / f"{stem}.png")
        run.plot(criteria=task.criteria).savefig(written[-1], dpi=150)
    if not can_be_seen(run):
        if options.animate:
            print(f"  no animation: the state {run.group} has no block that moves a body in space")
        return written
    if not options.no_plot:
        written.append(out / f"{stem}-path.png")
        run.plot_path().savefig(written[-1], dpi=150)
    if options.animate:
        written.append(run.animate(out / f"{stem}.gif"))
    return written


def check_folder(folder: Path) -> None:
    """Make the folder and see that files can be written, before anything takes time."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".lgcontrol.{os.getpid()}"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise CommandError(f"--out {folder} cannot be written to: {error.strerror}") from None

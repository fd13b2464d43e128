"""Command line: list, inspect and run designs; inspect models and robot files."""

from __future__ import annotations

import argparse
import inspect
import sys
import time
from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

import numpy as np

from .codegen import unknown_name

DESIGNS, MODELS = "lgcontrol.designs", "lgcontrol.models"
DEMO = ("quadrotor-recovery", "auv-helix")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program name; those of the process if left out.

    Returns
    -------
    int
        0 when everything worked and all criteria were met, 1 when a task failed, 2 for bad input.

    Examples
    --------
    >>> main(["list", "--names"]) in (0, 2)
    ...  # doctest: +ELLIPSIS
    ...
    True
    """
    options = _parser().parse_args(arguments)
    try:
        return options.command(options)
    except _CommandError as error:
        print(f"lgcontrol: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nlgcontrol: stopped", file=sys.stderr)
        return 130


class _CommandError(Exception):
    """Something the person at the keyboard can mend."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="lgcontrol", description="Control and estimation on Lie groups."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="list designs and models")
    listing.set_defaults(command=_list)

    info = commands.add_parser("info", help="describe a design, a model or a robot file")
    info.add_argument("name", help="a name of `lgcontrol list`, or a .urdf file")
    info.set_defaults(command=_info)

    run = commands.add_parser("run", help="run a design in closed loop and judge it")
    run.add_argument("name", help="a design of `lgcontrol list`")
    _run_options(run)
    run.set_defaults(command=lambda options: _run([options.name], options))

    demo = commands.add_parser("demo", help=f"run {' and '.join(DEMO)}")
    _run_options(demo)
    demo.set_defaults(command=lambda options: _run(DEMO, options))

    cache = commands.add_parser("cache", help="compiled functions on disk")
    cache.add_argument("action", choices=("info", "clear"))
    cache.set_defaults(command=_cache)
    return parser


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=_positive, help="simulated time (the design's own)")
    parser.add_argument("--seed", type=int, default=0, help="seed of start and disturbances (0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to (out)")
    parser.add_argument("--no-plot", action="store_true", help="write the data but no figure")
    parser.add_argument("--animate", action="store_true", help="write an animation (GIF) too")


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < np.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, not {text}")
    return value


def _list(options: argparse.Namespace) -> int:
    for title, group in (("designs", DESIGNS), ("models", MODELS)):
        entries = _entries(group)
        print(f"{title}:")
        for name, entry in sorted(entries.items()):
            print(f"  {name:24s} {_summary(_load(entry))}")
    return 0


def _info(options: argparse.Namespace) -> int:
    name = options.name
    if name.endswith(".urdf") or Path(name).is_file():
        return _info_urdf(Path(name))
    designs, models = _entries(DESIGNS), _entries(MODELS)
    if name in models:
        factory = _load(models[name])
        print(f"{name}: {_summary(factory)}\n")
        print(_describe(factory()))
        return 0
    if name in designs:
        design = _load(designs[name])
        task = design(seed=0)
        print(f"{name}: {_summary(design)}\n")
        print(_describe(task.plant))
        print(f"\ncontroller: {type(task.controller).__name__}, {task.seconds:g} s")
        for criterion in task.criteria:
            limit = f"at most {criterion.limit:g}" if np.isfinite(criterion.limit) else "reported"
            print(f"  {criterion.name}: {limit} {criterion.unit}")
        return 0
    raise _CommandError(unknown_name("design or model", name, sorted(designs | models)))


def _info_urdf(path: Path) -> int:
    from .mechanics import Multibody

    try:
        tree = Multibody.from_urdf(path, on_finding="ignore")
    except (OSError, ValueError) as error:
        raise _CommandError(str(error)) from None
    print(tree.describe())
    return 0


def _run(names: Sequence[str], options: argparse.Namespace) -> int:
    designs = _entries(DESIGNS)
    for name in names:
        if name not in designs:
            raise _CommandError(unknown_name("design", name, sorted(designs)))
    return max(_run_one(name, _load(designs[name]), options) for name in names)


def _run_one(name: str, design: Any, options: argparse.Namespace) -> int:
    print(f"{name}: {_summary(design)}")
    task = design(seed=options.seed)
    started = time.perf_counter()
    result = task.run(seconds=options.seconds, seed=options.seed, progress=_progress())
    elapsed = time.perf_counter() - started
    print(f"  {result.t[-1]:.2f} s simulated in {elapsed:.1f} s")
    verdicts = task.judge(result)
    for verdict in verdicts:
        criterion = verdict.criterion
        limit = f"at most {criterion.limit:g}" if np.isfinite(criterion.limit) else ""
        mark = "" if not limit else "ok" if verdict.passed else "FAILED"
        value = f"{verdict.value:.4g} {criterion.unit}"
        print(f"  {criterion.name:36s} {value:>16s}  {limit:16s} {mark}".rstrip())
    for line in result.summary():
        print(f"  {line}")
    options.out.mkdir(parents=True, exist_ok=True)
    written = [options.out / f"{name}.npz"]
    result.save(written[0])
    if not options.no_plot:
        written.append(options.out / f"{name}.png")
        result.plot().savefig(written[-1], dpi=120)
    if options.animate:
        written.append(options.out / f"{name}.gif")
        result.animate(written[-1])
    print(f"  wrote {', '.join(str(path) for path in written)}")
    return 0 if all(verdict.passed for verdict in verdicts) else 1


def _cache(options: argparse.Namespace) -> int:
    from . import codegen

    print(codegen.cache_info() if options.action == "info" else codegen.cache_clear())
    return 0


def _progress() -> Any:
    """Progress on a terminal only: a line that is rewritten."""
    if not sys.stderr.isatty():
        return None

    def show(fraction: float) -> None:
        end = "\n" if fraction >= 1 else ""
        print(f"\r  {100 * fraction:3.0f} %", end=end, file=sys.stderr, flush=True)

    return show


def _describe(system: Any) -> str:
    lines = [f"state    {system.state} ({system.state.dim} degrees of freedom)", "inputs"]
    for entry in system.inputs:
        role = "" if entry.role == "control" else f" ({entry.role})"
        lines.append(f"  {entry.name:20s} [{entry.lower:g}, {entry.upper:g}] {entry.unit}{role}")
    lines.append("parameters")
    for entry in system.parameters:
        lines.append(f"  {entry.name:20s} {entry.nominal:g} {entry.unit}")
    return "\n".join(lines)


def _entries(group: str) -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=group)}


def _load(entry: EntryPoint) -> Any:
    try:
        return entry.load()
    except Exception as error:
        raise _CommandError(f"{entry.name} ({entry.value}) cannot be loaded: {error}") from error


def _summary(thing: Any) -> str:
    return (inspect.getdoc(thing) or "").split("\n")[0]

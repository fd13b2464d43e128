"""Words to commands, errors to exit statuses."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NoReturn

import numpy as np

from ._campaign import add_campaign
from ._info import CACHE_ACTIONS, cache_command, info_command, list_command
from ._paper import paper_command
from ._registry import CommandError
from ._run import OTHER_STATUSES, run_command
from ._view import view_command

DEMO = ("quadrotor-recovery", "auv-helix")

BAD_INPUT = 2


def run_words(arguments: Sequence[str] | None) -> int:
    """What `lgcontrol.cli.main` does."""
    if arguments is None:  # this process is the program: its terminal may know few letters
        for stream in (sys.stdout, sys.stderr):
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:
        options.parser.error(f"unknown arguments: {' '.join(unknown)}")
    try:
        status = options.command(options)
        sys.stdout.flush()
        return status
    except CommandError as error:
        print(f"lgcontrol: {error}", file=sys.stderr)
        return BAD_INPUT
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


class _Parser(argparse.ArgumentParser):
    """Says what there is before it says what was wrong."""

    def error(self, message: str) -> NoReturn:
        self.print_help(sys.stderr)
        self.exit(BAD_INPUT, f"\n{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="lgcontrol", description="Control on Lie groups.")
    parser.add_argument("--version", action="version", version=f"lgcontrol {_version()}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("list", help="list designs and models")
    listing.set_defaults(command=list_command)

    info = commands.add_parser(
        "info", help="describe a design, a model, a mechanism or a file of one"
    )
    info.add_argument(
        "name",
        help="a name of `lgcontrol list`, or a file of a design (.py), of a robot (.urdf) or of a "
        "mechanism (.json)",
    )
    info.set_defaults(command=info_command)

    run = commands.add_parser(
        "run",
        help="run a design in closed loop and judge it",
        epilog="Exit status: 0 if all criteria hold, 1 if one fails, the run ends early or the "
        f"design raises, {OTHER_STATUSES}.",
    )
    run.add_argument(
        "name", help='a design of `lgcontrol list`, or a file of yours: FILE.py, "FILE.py:FUNCTION"'
    )
    run.add_argument(
        "--perturb", action="store_true",
        help="find the largest factor of other masses, drag and delays that passes",
    )  # fmt: skip
    _run_options(run)
    run.set_defaults(command=lambda options: run_command([options.name], options))

    view = commands.add_parser("view", help="show runs, robots, models or designs in the browser")
    view.add_argument(
        "names", nargs="+", metavar="name",
        help="runs (.npz), robots (.urdf) or names of `lgcontrol list`, shown over each other; of "
        "a design the run that `lgcontrol run` wrote, else one that is simulated now",
    )  # fmt: skip
    view.add_argument("--out", type=Path, help="write this .html file and open nothing")
    view.add_argument(
        "--packages", type=Path, action="append", default=[], metavar="FOLDER",
        help="folder with the packages that a robot's meshes are in; may be given again",
    )  # fmt: skip
    view.add_argument(
        "--runs", type=Path, default=Path("out"), help="folder with runs of designs (out)"
    )
    view.add_argument("--again", action="store_true", help="simulate designs anew")
    view.add_argument("--free", action="store_true", help="let the base of a robot move freely")
    view.set_defaults(command=view_command)

    add_campaign(commands)

    demo = commands.add_parser("demo", help=f"run {' and '.join(DEMO)}")
    _run_options(demo)
    demo.set_defaults(perturb=False)
    demo.set_defaults(command=lambda options: run_command(DEMO, options))

    paper = commands.add_parser("paper", help="compute figures of papers again, beside the paper's")
    paper.add_argument("name", nargs="?", help="a paper; all are listed if left out")
    paper.add_argument(
        "figures", nargs="*", metavar="figure",
        help="figures such as 2 or table-9, or all; they are listed if left out",
    )  # fmt: skip
    paper.add_argument("--out", type=Path, default=Path("out"), help="folder to write to (out)")
    paper.add_argument("--no-plot", action="store_true", help="write the page but no figures")
    paper.set_defaults(command=paper_command)

    cache = commands.add_parser("cache", help="compiled functions on disk")
    cache.add_argument(
        "action", nargs="?", choices=[*CACHE_ACTIONS],
        help="; ".join(f"{name}: {text}" for name, text in CACHE_ACTIONS.items()),
    )  # fmt: skip
    cache.set_defaults(command=cache_command)
    for command in commands.choices.values():
        command.set_defaults(parser=command)
    return parser


def _run_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=_positive, help="simulated time (the design's own)")
    parser.add_argument("--seed", type=_seed, default=0, help="of start and disturbances (0)")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder to write to (out)")
    parser.add_argument("--no-plot", action="store_true", help="write the data but no figures")
    parser.add_argument("--view", action="store_true", help="show the run in the browser")
    parser.add_argument("--animate", action="store_true", help="write an animation (GIF) too")
    parser.add_argument("--traceback", action="store_true", help="show where a design raised")


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = np.nan
    if not 0 < value < np.inf:
        raise argparse.ArgumentTypeError(f"must be a positive number of seconds, not {text!r}")
    return value


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(
            f"must be a whole number that is not negative, not {text!r}"
        )
    return int(text)


def _version() -> str:
    try:
        return version("lgcontrol")
    except PackageNotFoundError:
        return "(not installed)"

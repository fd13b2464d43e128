"""lgcontrol campaign and tune: many runs of a design that differ, and how sure one can be."""

from __future__ import annotations

import argparse
import re
import tomllib
from pathlib import Path
from typing import Any

from ._registry import CommandError, safe_name
from ._run import FAILED, OK, OTHER_STATUSES

NUMBER_TEXT = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
RANGE_TEXT = re.compile(rf"(\*?)({NUMBER_TEXT}):({NUMBER_TEXT})\s*(\D.*)?")
NORMAL_TEXT = re.compile(rf"(\*?)({NUMBER_TEXT})(?:±|\+-)({NUMBER_TEXT})\s*(\D.*)?")
CAMPAIGN_KEYS = (
    "design", "cases", "sampling", "seed", "seconds", "arguments", "vary", "executor", "store",
    "trajectories", "report",
)  # fmt: skip


def add_campaign(commands: Any) -> None:
    """Add both commands."""
    parser = commands.add_parser(
        "campaign",
        help="run a design many times with other starts, masses, delays, seeds",
        description="Values of the options go before those of a TOML file.",
        epilog=f"Exit status: 0 if all cases succeed, 1 if one fails, {OTHER_STATUSES}.",
    )
    _case_options(parser)
    parser.add_argument("--store", help="SQLite file of the results (NAME.db of the design)")
    parser.add_argument("--trajectories", help="whole runs to keep: none, failed or all (none)")
    parser.add_argument("--report", help="HTML file to write (NAME.html of the design)")
    parser.add_argument("--retry", action="store_true", help="run cases that raised once more")
    parser.set_defaults(command=campaign_command)

    parser = commands.add_parser(
        "tune",
        help="search for arguments of a design with which it goes best",
        description="Cases that the search has not seen judge what it finds. Values of the options "
        "go before those of a TOML file.",
        epilog="Exit status: 0 if the search ends, also if it shows nothing better, 1 if what it "
        f"finds succeeds in no case that was held out, {OTHER_STATUSES}.",
    )
    _case_options(parser)
    parser.add_argument(
        "--search", action="append", metavar="NAME=LOW:HIGH", required=True,
        help="an argument of the design: NAME=LOW:HIGH or NAME=A,B,C; may be repeated",
    )  # fmt: skip
    parser.add_argument("--trials", type=int, default=50, help="number of trials (50)")
    parser.add_argument(
        "--minimize", action="append", metavar="OBJECTIVE",
        help="failures (if left out), or a criterion; with several the Pareto front is told",
    )  # fmt: skip
    parser.add_argument("--held-out", type=int, help="cases to judge by (as many as --cases)")
    parser.set_defaults(command=tune_command)


def _case_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "design", help='a design of `lgcontrol list`, FILE.py, "FILE.py:FUNCTION", or a TOML file'
    )
    parser.add_argument(
        "--vary", action="append", metavar="NAME=LOW:HIGH", default=None,
        help="NAME=LOW:HIGH[UNIT], NAME=MEAN±DEVIATION, NAME=A,B,C; *LOW:HIGH is relative to the "
        "nominal value; may be repeated (the design's own variations if left out)",
    )  # fmt: skip
    parser.add_argument("--cases", type=int, help="number of cases (100)")
    parser.add_argument("--sampling", help="sobol, latin, random, grid or saltelli (sobol)")
    parser.add_argument("--seed", type=int, help="of the first case (0)")
    parser.add_argument("--seconds", type=float, help="simulated time (the design's own)")
    parser.add_argument(
        "--executor", help="number of processes (all processors), or a scheduler's address"
    )


def tune_command(options: argparse.Namespace) -> int:
    """Search, and judge what was found on cases that were held out."""
    from ..campaigns import CampaignError, tune

    given = _settings(options)
    unused = sorted({"store", "report", "trajectories"} & set(given))
    if unused:
        raise CommandError(f"a search takes no {unused[0]}: leave it out")
    executor = _executor(given.pop("executor", None))
    try:
        found = tune(
            _campaign(given),
            [_vary(one) for one in options.search],
            minimize=options.minimize or "failures",
            trials=options.trials,
            held_out=options.held_out,
            executor=executor,
        )
    except (CampaignError, ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    print(found)
    succeeds = found.comparison.both + found.comparison.only_second
    return OK if succeeds else FAILED


def campaign_command(options: argparse.Namespace) -> int:
    """Run or resume a campaign, print what it tells and write the report."""
    from ..campaigns import CampaignError

    given = _settings(options)
    named = options.design if options.design.endswith(".toml") else str(given["design"])
    stem = safe_name(Path(named.partition(":")[0]).stem)
    executor = given.pop("executor", None)
    store = given.pop("store", f"{stem}.db")
    report = given.pop("report", f"{stem}.html")
    trajectories = given.pop("trajectories", "none")
    try:
        result = _campaign(given).run(
            executor=_executor(executor),
            store=store,
            trajectories=trajectories,
            retry=options.retry,
        )
    except (CampaignError, ValueError, TypeError) as error:
        raise CommandError(str(error)) from error
    print(result)
    for one in result.worst(count=3):
        if not one.is_success:
            print(f"  case {one.number}, key {one.key[:8]}: {one.message or one.status}")
    print(f"wrote {store}, {result.report(report)}")
    return OK if result.is_success.all() else FAILED


def _settings(options: argparse.Namespace) -> dict[str, Any]:
    """Those of the TOML file, if one is given, below those of the command line."""
    found: dict[str, Any] = {"design": options.design}
    if options.design.endswith(".toml"):
        try:
            found = tomllib.loads(Path(options.design).read_text(encoding="utf-8"))
        except OSError as error:
            raise CommandError(f"{options.design} cannot be read: {error.strerror}") from None
        except tomllib.TOMLDecodeError as error:
            raise CommandError(f"{options.design} is no TOML file: {error}") from None
        unknown = sorted(set(found) - set(CAMPAIGN_KEYS))
        if unknown or "design" not in found:
            what = f"knows no {unknown[0]!r}" if unknown else "needs a design"
            raise CommandError(
                f"{options.design}: a campaign {what}; it takes {', '.join(CAMPAIGN_KEYS)}"
            )
    for name in CAMPAIGN_KEYS[1:]:
        value = getattr(options, name, None)
        if value is not None:
            found[name] = value
    return found


def _campaign(given: dict[str, Any]) -> Any:
    from ..campaigns import Campaign

    vary = given.pop("vary", None)
    return Campaign(**given, variations=None if vary is None else [_vary(one) for one in vary])


def _vary(given: Any) -> Any:
    """A variation from its text, or from a table of a TOML file."""
    from ..simulation import Vary

    if isinstance(given, dict):
        return Vary(**given)
    name, equals, text = str(given).partition("=")
    if not equals or not name or not text:
        raise ValueError(f"--vary {given}: give NAME=LOW:HIGH, NAME=MEAN±DEVIATION or NAME=A,B,C")
    if found := RANGE_TEXT.fullmatch(text):
        star, low, high, unit = found.groups()
        return Vary(name, float(low), float(high), relative=bool(star), unit=unit or "")
    if found := NORMAL_TEXT.fullmatch(text):
        star, mean, std, unit = found.groups()
        return Vary(name, mean=float(mean), std=float(std), relative=bool(star), unit=unit or "")
    return Vary(name, values=tuple(_value(one) for one in text.split(",")))


def _value(text: str) -> Any:
    """A number, true or false, or a text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _executor(given: Any) -> Any:
    return int(given) if isinstance(given, str) and given.isdigit() else given

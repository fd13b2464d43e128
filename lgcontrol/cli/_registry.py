"""Registry of models, designs and papers, and the progress of what is run."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from ..codegen._internal import unknown_name

DESIGNS, MODELS, PAPERS = "lgcontrol.designs", "lgcontrol.models", "lgcontrol.papers"
MECHANISMS = "lgcontrol.mechanisms"
NAMED = (DESIGNS, MODELS, MECHANISMS)


def safe_name(name: str) -> str:
    """Name of a design or paper as the name of a file, which leads nowhere else."""
    return re.sub(r"[^\w.-]", "_", name)


def progress() -> Callable[[float], None] | None:
    """Progress on a terminal only: a line that is rewritten."""
    if not sys.stderr.isatty():
        return None

    def show(fraction: float) -> None:
        print(f"\r  {100 * fraction:3.0f} %", end="", file=sys.stderr, flush=True)

    return show


def end_progress() -> None:
    if sys.stderr.isatty():
        print("\r       \r", end="", file=sys.stderr, flush=True)


class CommandError(Exception):
    """Something the person at the keyboard can mend: told in a line, without a traceback."""


def entries(group: str) -> dict[str, EntryPoint]:
    """Entry points by name; two packages must not give one name different meanings."""
    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        other = found.setdefault(entry.name, entry)
        if other.value != entry.value:
            raise CommandError(
                f"two installed packages provide {entry.name!r} ({group}): {other.value} and "
                f"{entry.value}; uninstall one"
            )
    return found


def find(name: str) -> tuple[str, EntryPoint | None]:
    """Group and entry of a design, a model or a mechanism; of other names there is none."""
    return next(((group, e[name]) for group in NAMED if name in (e := entries(group))), ("", None))


def unknown(name: str, files: str) -> CommandError:
    """Error for a name that is none of these, with what files are taken."""
    valid = sorted({name for group in NAMED for name in entries(group)})
    text = unknown_name("design, model or mechanism", name, valid)
    return CommandError(f"{told(text)} {files}")


def told(text: str) -> str:
    """Text as a sentence that another one may follow."""
    return text if text.endswith((".", "?")) else f"{text}."


def design_of_file(name: str) -> tuple[str, Any]:
    """What the design of ``FILE.py`` or ``FILE.py:FUNCTION`` is called, and its function."""
    from ..campaigns import _internal as files

    file, _, function = name.partition(":")
    called = Path(file).stem + (function and f":{function}")
    design = guarded(name, lambda: files.load(files.refer(name)), "cannot be loaded")
    takes = inspect.signature(design).parameters.values()
    if not any(one.name == "seed" or one.kind is one.VAR_KEYWORD for one in takes):
        raise CommandError(
            f"{name}: {design.__name__}() takes no seed: give it the argument seed=0"
        )
    return called, design


def load(entry: EntryPoint) -> Any:
    """The design or model factory an entry point names."""
    return guarded(f"{entry.name} ({entry.value})", entry.load, "cannot be loaded")


def guarded(what: str, call: Callable[[], Any], problem: str = "cannot be made") -> Any:
    """Result of a call into somebody's package."""
    try:
        return call()
    except Exception as error:  # code of others, which may raise anything; it keeps its cause
        raise CommandError(f"{what} {problem}: {type(error).__name__}: {error}") from error


def summary(thing: Any) -> str:
    """First line of the docstring."""
    return (inspect.getdoc(thing) or "").split("\n")[0]


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Lines of text with the cells of each column below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  " + "  ".join(f"{cell:{w}s}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]

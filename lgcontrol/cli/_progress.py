"""What commands print while they simulate, and names of the files that they write."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable


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

"""Kernels that a wheel brings, one for each level of x86-64 processors."""

from __future__ import annotations

import hashlib
import platform
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent


class ProcessorLevel(NamedTuple):
    """A microarchitecture level of the x86-64 psABI: as ``-march``, doubles in its vectors.

    `features` is what Linux lists of it in ``/proc/cpuinfo``, beyond the levels below.
    """

    name: str
    width: int
    features: frozenset[str]


LEVELS = tuple(
    ProcessorLevel(f"x86-64-v{number}", width, frozenset(features.split()))
    for number, width, features in (
        (2, 2, "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"),
        (3, 4, "abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"),
        (4, 8, "avx512bw avx512cd avx512dq avx512f avx512vl"),
    )
)


def level_of(features: frozenset[str]) -> ProcessorLevel | None:
    """Return the highest level whose features, and those of the levels below, are there."""
    found = None
    for level in LEVELS:
        if not level.features <= features:
            break
        found = level
    return found


def file_of(level: ProcessorLevel, sources: list[str]) -> Path:
    """File of the kernel of a level; its name has a hash of the C text that it was built from."""
    text = hashlib.sha256("\0".join(sources).encode()).hexdigest()
    return FOLDER / f"newton-{level.name}-{text[:16]}.so"


@cache
def level_of_this_processor() -> ProcessorLevel | None:
    """Level of this processor; None unless it is x86-64 under Linux."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            listed = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return None
    return level_of(frozenset(listed.partition(":")[2].split()))

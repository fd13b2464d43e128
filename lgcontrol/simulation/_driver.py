"""Driver: the loop in C, one library for all problems."""

from __future__ import annotations

import ctypes
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..codegen import BuildError
from ..codegen._internal import (
    Compiler,
    UnsafeFolder,
    compile_policy,
    find_compiler,
    find_or_build,
    key_of,
    load_built,
    notice,
)
from ._compiled_table import LoopStruct, SensorStruct, SourceStruct, header

_TEXT = Path(__file__).with_name("loop.c").read_text(encoding="utf-8")


class Driver(NamedTuple):
    """Entry points.

    Attributes
    ----------
    go : callable
        ``lg_loops_go``; other Python threads run meanwhile.
    interpret : int
        Address of what evaluates a function by CasADi's interpreter.
    """

    go: Any
    interpret: int


_loaded: dict[str, Driver] = {}


def find_driver(*, build: bool) -> Driver | None:
    """The loop of this machine; None as long as there is none, or it is not to be built."""
    if compile_policy() == "off":
        return None
    try:
        compiler = find_compiler()
        if compiler is None:
            return None
        key = _key(compiler)
        if key in _loaded:
            return _loaded[key]
        if not build:
            found = load_built(key, _open)
        else:
            flags = compiler.flags(0, False)
            found = find_or_build(
                "closed loop", key, compiler, [flags], write=_source, load=_open,
                check=lambda _: None, about={},
            )  # fmt: skip
    except (BuildError, OSError, UnsafeFolder) as error:
        notice("closed loop", f"closed loops run in Python: {error}")
        return None
    return None if found is None else _loaded.setdefault(key, found[0])


@lru_cache(maxsize=8)
def _key(compiler: Compiler) -> str:
    return key_of(compiler, compiler.flags(0, False), [_source()])


@cache
def _source() -> str:
    return header() + _TEXT


def _open(path: Path) -> Driver:
    library = ctypes.CDLL(str(path))
    sizes = np.zeros(3, dtype=np.int64)
    measure = library["lg_loop_sizes"]
    measure.argtypes, measure.restype = [ctypes.c_void_p], None
    measure(sizes.ctypes.data)
    mirrors = [ctypes.sizeof(kind) for kind in (SourceStruct, SensorStruct, LoopStruct)]
    if sizes.tolist() != mirrors:
        raise OSError(f"it has structs of {sizes.tolist()} bytes, their mirrors {mirrors}")
    go = library["lg_loops_go"]
    go.argtypes, go.restype = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64], None
    interpret = ctypes.cast(library["lg_interpret_buffer"], ctypes.c_void_p).value
    assert interpret is not None
    return Driver(go, interpret)

"""Kernel: a program as a shared library, found in the cache or built, checked and loaded."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca

from ._compiler import BuildError, find_compiler
from ._folder import UnsafeFolder
from ._library import find_or_build, key_of, load_built
from ._notice import notice
from ._program import Program
from ._source import scalar_source, vector_source
from ._verify import disagreement

# Calls shorter than about this many operations (10 µs) keep Python's lock: giving it back and
# waiting for it would take longer, with other Python threads running up to 5 ms longer.
_HOLD_LOCK = 30_000


Run = Callable[[int], int]
"""Entry point of a library: takes the address of a `Table`, returns a status, 0 for success."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loaded library.

    Attributes
    ----------
    run : callable
        Other Python threads run meanwhile.
    run_short : callable
        The same, for calls of a few microseconds; may hold up other Python threads.
    width : int
        Items evaluated at once; 1 for scalar code.
    path : pathlib.Path
    """

    run: Run
    run_short: Run
    width: int
    path: Path


_loaded: dict[str, Kernel] = {}
_failed: set[str] = set()


def get_kernel(
    program: Program,
    *,
    vector: bool,
    contract: bool = True,
    builds: int = 1,
    is_built: bool = False,
) -> Kernel | None:
    """Kernel of a program, None (with a notice) where it cannot be had.

    Parameters
    ----------
    program : Program
    vector : bool
        Whether several items are to be evaluated at once. None if the processor, the compiler or
        the function does not allow it; no notice is logged then.
    contract : bool
        Whether a product and a sum may be rounded once (fused multiply-add).
    builds : int
        See `find_or_build`.
    is_built : bool
        Whether only code counts that was built before: nothing is built, and nothing said.
    """
    name = program.function.name()
    try:
        compiler = find_compiler()
        if compiler is None and is_built:
            return None
        if compiler is None:
            notice(
                "compiler",
                "no C compiler found (gcc, clang, cc or tcc on PATH, or the one named by CC): "
                "functions are interpreted, which is some ten to thirty times slower",
            )
            return None
        if vector and (compiler.width == 1 or not program.suits_vectors(compiler.width)):
            return None
    except BuildError as error:
        notice("compiler", f"functions are interpreted: {error}")
        return None
    # What we write is cut into pieces; CasADi's functions are as long as they come.
    longest = 0 if program.is_ours else program.operations
    flags = [compiler.flags(longest, contract)]
    if contract and compiler.kind != "tcc":
        # Where sums cancel exactly, fused operations leave a rounding that a guarded square root or
        # a singular matrix blows up: such functions do without them.
        flags.append(compiler.flags(longest, False))
    width = compiler.width if vector else 1
    try:
        content = (ca.CasadiMeta.version(), str(width), program.identity)
    except RuntimeError:
        notice(
            f"no code {name}", f"{name} stays interpreted: it calls what only this process knows"
        )
        return None
    key = key_of(compiler, flags[0], content)
    if key in _loaded or key in _failed:
        return _loaded.get(key)
    if is_built:
        found = load_built(key, _load)
        return (
            None if found is None else _loaded.setdefault(key, Kernel(*found[0], width, found[1]))
        )
    try:
        about = {
            "function": name,
            "operations": program.operations,
            "written": program.written,
            "width": width,
        }
        entries, path = find_or_build(
            key,
            compiler,
            flags,
            write=lambda: (
                vector_source(program, width, compiler.machine)
                if vector
                else scalar_source(program)
            ),
            load=_load,
            check=lambda entries: _difference(program, entries[0], width),
            about=about,
            builds=builds,
        )
        kernel = Kernel(*entries, width, path)
    except NotImplementedError as error:
        if not vector:  # batches then run the scalar code
            notice(f"no code {name}", f"{name} stays interpreted, it cannot be compiled: {error}")
        _failed.add(key)
        return None
    except (BuildError, OSError, UnsafeFolder) as error:
        notice("build", f"{name} stays interpreted: {error}")
        _failed.add(key)
        return None
    return _loaded.setdefault(key, kernel)


def _load(path: Path) -> tuple[Run, Run]:
    """Entry points that let other Python threads run, and that do not."""
    entries: list[Any] = []
    for loader in (ctypes.CDLL, ctypes.PyDLL):
        # `library["name"]` is a new object each time, `library.name` one for all.
        entry = loader(str(path))["lg_run"]
        entry.argtypes, entry.restype = [ctypes.c_void_p], ctypes.c_int
        entries.append(entry)
    return entries[0], entries[1]


def _difference(program: Program, run: Run, width: int) -> str | None:
    found = disagreement(program, run, width)
    return None if found is None else f"differs from the interpreted function: {found}"


def run_of(kernel: Kernel, operations: int) -> Run:
    """Return the way to call a kernel for that many operations."""
    return kernel.run_short if operations <= _HOLD_LOCK else kernel.run

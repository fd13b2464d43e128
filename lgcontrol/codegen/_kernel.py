"""Kernel: a program as a shared library, found in the cache or built, checked and loaded."""

from __future__ import annotations

import ctypes
import hashlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import casadi as ca

from ._cache import LIBRARY, Cache
from ._compiler import BuildError, Compiler, find_compiler
from ._folder import UnsafeFolder
from ._notice import notice
from ._program import Program
from ._source import scalar_source, vector_source
from ._verify import disagreement

# Calls shorter than about this many operations (10 µs) keep Python's lock: giving it back and
# waiting for it would take longer, with other Python threads running up to 5 ms longer.
_HOLD_LOCK = 30_000


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loaded library.

    Attributes
    ----------
    run : callable
        ``run(address) → status`` for a table as `_source.py` describes it; other Python threads
        run meanwhile.
    run_short : callable
        The same, for calls of a few microseconds; may hold up other Python threads.
    width : int
        Items evaluated at once; 1 for scalar code.
    path : pathlib.Path
    """

    run: Callable[[int], int]
    run_short: Callable[[int], int]
    width: int
    path: Path


_loaded: dict[str, Kernel] = {}
_failed: set[str] = set()
_guard = threading.Lock()


def get_kernel(program: Program, *, vector: bool, contract: bool = True) -> Kernel | None:
    """Kernel of a program, None (with a notice) where it cannot be had.

    Parameters
    ----------
    program : Program
    vector : bool
        Whether several items are to be evaluated at once; None where the processor, the compiler or
        the function do not allow it, which is not worth a notice.
    contract : bool
        Whether a product and a sum may be rounded once (fused multiply-add).
    """
    name = program.function.name()
    try:
        compiler = find_compiler()
        if compiler is None:
            notice(
                "compiler",
                "no C compiler found (gcc, clang, cc or tcc on PATH, or the one named by CC): "
                "functions are interpreted, which is some 10 to 100 times slower",
            )
            return None
        if vector and (compiler.width == 1 or program.flat is None):
            return None
    except BuildError as error:
        notice("compiler", f"functions are interpreted: {error}")
        return None
    # What we write is cut into pieces; CasADi's functions are as long as they come.
    longest = program.operations if program.flat is None else 0
    flags = compiler.flags(longest, contract)
    width = compiler.width if vector else 1
    key = _key(program, width, compiler, flags)
    with _guard:
        if key in _loaded:
            return _loaded[key]
        if key in _failed:
            return None
    try:
        kernel = _find_or_build(program, width, key, compiler, flags)
    except NotImplementedError as error:
        if not vector:  # batches then run the scalar code
            notice(f"no code {name}", f"{name} stays interpreted, it cannot be compiled: {error}")
        with _guard:
            _failed.add(key)
        return None
    except (BuildError, OSError, UnsafeFolder) as error:
        notice("build", f"{name} stays interpreted: {error}")
        with _guard:
            _failed.add(key)
        return None
    with _guard:
        return _loaded.setdefault(key, kernel)


def _find_or_build(
    program: Program, width: int, key: str, compiler: Compiler, flags: list[str]
) -> Kernel:
    store = Cache()
    kernel = _load_cached(store, key, width)
    if kernel is not None:
        return kernel
    with store.lock(key):
        kernel = _load_cached(store, key, width)  # built by another process meanwhile
        if kernel is not None:
            return kernel
        if width > 1:
            source = vector_source(program, width, compiler.machine)
        else:
            source = scalar_source(program)
        with store.build_folder() as build:
            (build / "kernel.c").write_text(source, encoding="ascii")
            started = time.perf_counter()
            compiler.build(build / "kernel.c", build / LIBRARY, flags)
            seconds = time.perf_counter() - started
            kernel = _load(build / LIBRARY, width)
            difference = disagreement(program, kernel)
            if difference is not None:
                raise BuildError(
                    f"the code compiled by {compiler.command[0]} differs from the interpreted "
                    f"function: {difference}"
                )
            about = {
                "function": program.function.name(),
                "operations": program.operations,
                "width": width,
                "compiler": " ".join(compiler.command),
                "flags": flags,
                "seconds": round(seconds, 3),
            }
            path = store.publish(key, build, about)
        return Kernel(kernel.run, kernel.run_short, width, path)


def _load_cached(store: Cache, key: str, width: int) -> Kernel | None:
    path = store.find(key)
    if path is None:
        return None
    try:
        return _load(path, width)
    except OSError:  # removed by another process in this moment, or a folder without execution
        return None


def _load(path: Path, width: int) -> Kernel:
    functions: list[Any] = []
    for loader in (ctypes.CDLL, ctypes.PyDLL):
        # An entry of its own for each way to call: `lib.name` would be shared and typed once.
        function = loader(str(path))["lg_run"]
        function.argtypes, function.restype = [ctypes.c_void_p], ctypes.c_int
        functions.append(function)
    return Kernel(functions[0], functions[1], width, path)


def _key(program: Program, width: int, compiler: Compiler, flags: list[str]) -> str:
    """Hash of all that decides the library's bytes.

    The function's serialized form and the code that writes the C source stand for that source,
    which takes longer to write than all else that is done to find a library.
    """
    parts = [_writer(), ca.CasadiMeta.version(), compiler.identity, *flags, str(width)]
    digest = hashlib.sha256()
    for part in (*parts, program.identity):
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:40]


@cache
def _writer() -> str:
    """Version of this library, and a hash of its source files where they can be read."""
    from importlib.metadata import PackageNotFoundError, version  # slow to import

    try:
        text = version("lgcontrol")
    except PackageNotFoundError:  # run from a source folder that was not installed
        text = ""
    digest = hashlib.sha256(text.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def run_of(kernel: Kernel, operations: int) -> Callable[[int], int]:
    """Return the way to call a kernel for that many operations."""
    return kernel.run_short if operations <= _HOLD_LOCK else kernel.run

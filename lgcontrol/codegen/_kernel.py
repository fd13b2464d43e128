"""Kernel: a program as a shared library, found in the cache or built, checked and loaded."""

from __future__ import annotations

import ctypes
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from ._cache import UnsafeFolder
from ._compiler import BuildError, find_compiler
from ._library import find_or_build, key_of, load_built
from ._notice import notice
from ._program import Program
from ._source import scalar_source, vector_source

_ITEMS = 11  # more than one vector and a remainder, for every width
_STEPS = 3
# Compiled and interpreted code differ by the rounding of each operation: fused multiply-adds,
# vector functions within 4 ulp. A wrong library is off by the values themselves.
_TOLERANCE = 1e-8
# Where the function amplifies rounding (differences of nearly equal numbers, divisions by small
# ones), this many times its answer to changes of the inputs by one rounding is allowed besides.
_AMPLIFICATION = 1e4
# Terms that cancel exactly in one of the two leave their rounding in the other.
_FLOOR = 1e-12
_ROUNDING = 2.0**-52
_SHAKES = 4  # such changes of the inputs
# Relative changes of inputs that tell what rounding leaves undefined from what is so, and how many
# are tried of each size.
_CHANGES, _TRIES = (1e-14, 1e-12, 1e-10, 1e-8), 6
# Calls shorter than about this many operations (10 µs) keep Python's lock: giving it back and
# waiting for it would take longer, with other Python threads running up to 5 ms longer.
_HOLD_LOCK = 30_000


class Table:
    """Numbers for ``lg_run`` (see `_source.py`); keeps the arrays alive.

    Arguments and results are contiguous float64 arrays, items along the first axis; a first axis of
    length 1 among several items means that all share it. `steps` are those of a chain.
    """

    __slots__ = ("_arrays", "_memory", "address")

    def __init__(
        self,
        items: int,
        steps: int,
        arguments: Sequence[np.ndarray],
        results: Sequence[np.ndarray],
        start: int = 0,
    ) -> None:
        numbers = [items, steps]
        for array in (*arguments, *results):
            stride = array.strides[0] // 8 if len(array) > 1 else 0
            numbers += [address_of(array) + 8 * start * stride, stride]
        self._arrays = (*arguments, *results)
        self._memory = (ctypes.c_int64 * len(numbers))(*numbers)
        self.address: int = ctypes.addressof(self._memory)

    def run(self, entry: Callable[[int], int]) -> int:
        """Call a kernel's entry point; the arrays stay alive meanwhile. Returns its status."""
        return entry(self.address)


def address_of_entry(run: Any) -> int:
    """Address of a function of ctypes; 0 for None."""
    return ctypes.cast(run, ctypes.c_void_p).value or 0


def address_of(array: np.ndarray) -> int:
    """Address of the first entry; quicker than ``array.ctypes.data`` where memory is writable."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    except (TypeError, ValueError, BufferError):  # read-only, or empty
        return array.ctypes.data


Sample = Callable[[tuple[int, int]], np.ndarray]  # of the shape of an argument: that of all items


def disagreement(program: Program, run: Callable[[int], int], width: int) -> str | None:
    """Say where a kernel and the function differ on random inputs; None when they agree.

    `width` items are evaluated at once.
    """
    rng = np.random.default_rng(zlib.crc32(program.function.name().encode()))
    samples: tuple[Sample, ...] = (
        lambda shape: rng.normal(size=(_ITEMS, *shape)),
        # inside the domain of acos, log, sqrt
        lambda shape: rng.uniform(0.1, 0.9, size=(_ITEMS, *shape)),
        # square matrices that are masses, covariances: symmetric, definite and well-conditioned
        lambda shape: _definite(rng.uniform(0.1, 0.9, size=(_ITEMS, *shape))),
    )
    names = program.function.name_out()
    compared = False
    for sample in samples:
        arguments = _random_arguments(program, sample)
        expected, failed = _interpreted(program, arguments)
        # one change may leave by chance what another one amplifies, or turn no branch
        shaken = [
            _interpreted(program, [
                a * (1 + _ROUNDING * rng.choice([-1.0, 1.0], size=a.shape)) for a in arguments
            ])
            for _ in range(_SHAKES)
        ]  # fmt: skip
        changed = [np.stack(results) for results in zip(*(made for made, _ in shaken), strict=True)]
        found = _compiled(program, run, width, arguments)
        evaluated = ~(failed | np.any([also for _, also in shaken], axis=0))
        compared = compared or bool(evaluated.any())
        finite = False
        for name, want, near, have in zip(names, expected, changed, found, strict=True):
            # not by the last digit of an input
            undefined = np.isnan(want) & np.isnan(near).all(axis=0)
            if np.any(undefined[evaluated] & np.isfinite(have[evaluated])):
                if not _is_on_edge(
                    program, arguments, names.index(name), undefined & np.isfinite(have), rng
                ):
                    return f"{name} has numbers where the function is undefined"
            usable = evaluated & np.isfinite(want).all(axis=1) & np.isfinite(near).all(axis=(0, 2))
            want, near, have = want[usable], near[:, usable], have[usable]
            if not want.size:
                finite = finite or bool(usable.any())
                continue
            size = np.abs(want).max(axis=1)
            rounding = _AMPLIFICATION * np.abs(near - want).max(axis=(0, 2))
            # Without a digit that an input's last one does not change there is nothing to compare.
            certain = rounding < np.maximum(size, _FLOOR)
            want, have, size, rounding = (
                want[certain],
                have[certain],
                size[certain],
                rounding[certain],
            )
            if not want.size:
                continue
            finite = True
            allowed = _FLOOR + _TOLERANCE * size + rounding
            off = np.abs(have - want).max(axis=1)
            if not np.all(off <= allowed):
                worst = int(np.argmax(np.where(np.isfinite(off), off - allowed, np.inf)))
                return (
                    f"{name} is off by {off[worst]:.3g}, at most {allowed[worst]:.3g} is rounding"
                )
        if finite:
            return None
    return None if compared else "it could not be evaluated on any random input to compare with"


def _is_on_edge(
    program: Program, arguments: list[np.ndarray], result: int, missing: np.ndarray,
    rng: np.random.Generator,
) -> bool:  # fmt: skip
    """Whether small changes of the inputs define what is undefined: then rounding decides."""
    for size in np.repeat(_CHANGES, _TRIES):
        changed = [a * (1 + size * rng.normal(size=a.shape)) for a in arguments]
        found, _ = _interpreted(program, changed)
        missing = missing & np.isnan(found[result])
        if not missing.any():
            return True
    return False


def _random_arguments(program: Program, sample: Sample) -> list[np.ndarray]:
    chain = program.chain
    arguments = []
    for i in range(program.function.n_in()):
        rows, columns = program.function.size_in(i)
        steps = _STEPS if chain is not None and i in chain.each else 1
        arguments.append(sample((rows, columns * steps)).reshape(_ITEMS, -1))
    return arguments


def _definite(values: np.ndarray) -> np.ndarray:
    rows, columns = values.shape[1:]
    if rows != columns or rows == 1:
        return values
    return np.eye(rows) + values @ np.swapaxes(values, 1, 2) / rows


def _interpreted(
    program: Program, arguments: list[np.ndarray]
) -> tuple[list[np.ndarray], np.ndarray]:
    """Results of the interpreted function, and for which items it failed.

    The steps of a chain are taken one after the other.
    """
    function, chain = program.function, program.chain
    steps = 1 if chain is None else _STEPS
    results = [np.full((_ITEMS, steps * size), np.nan) for size in program.sizes_out]
    failed = np.zeros(_ITEMS, dtype=bool)
    for k in range(_ITEMS):
        values = [row[k] for row in arguments]
        for j in range(steps):
            columns = []
            for i, size in enumerate(program.sizes_in):
                start = j * size if chain is not None and i in chain.each else 0
                column = values[i][start : start + size]
                columns.append(ca.DM(column.reshape(function.size_in(i), order="F")))
            try:
                outcome = [np.asarray(r.full()).ravel(order="F") for r in function.call(columns)]
            except RuntimeError:  # a solver inside it
                failed[k] = True
                break
            for result, size, value in zip(results, program.sizes_out, outcome, strict=True):
                result[k, j * size : (j + 1) * size] = value
            if chain is not None:
                values[chain.argument] = outcome[chain.result]
    return results, failed


def _compiled(
    program: Program, run: Callable[[int], int], width: int, arguments: list[np.ndarray]
) -> list[np.ndarray]:
    steps = 1 if program.chain is None else _STEPS
    results = [np.full((_ITEMS, steps * size), np.nan) for size in program.sizes_out]
    if width > 1:
        Table(_ITEMS, steps, arguments, results).run(run)
        return results
    for k in range(_ITEMS):  # one by one: an item that fails ends the call
        one = [row[k : k + 1] for row in arguments]
        Table(1, steps, one, [result[k : k + 1] for result in results]).run(run)
    return results


Run = Callable[[int], int]
"""Entry point of a library: takes the address of a `Table`, returns a status, 0 for success."""


@dataclass(frozen=True, eq=False)
class Kernel:
    """A loaded library.

    While `run` works, other Python threads run; `run_short`, for calls of a few microseconds, may
    hold them up. `width` items are evaluated at once.
    """

    run: Run
    run_short: Run
    width: int
    path: Path

    @cached_property
    def address(self) -> int:
        """Address of the entry point."""
        return address_of_entry(self.run)


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

    With `vector` several items are evaluated at once: None, without a notice, where processor,
    compiler or function does not allow it. With `contract` a product and a sum may be rounded once.
    With `is_built` only code counts that was built before.
    """
    name = program.function.name()
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
            "operations": program.operations,
            "written": program.written,
            "width": width,
        }
        entries, path = find_or_build(
            name,
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

"""Compare a kernel with the interpreted function before anybody uses it."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import casadi as ca
import numpy as np

from ._program import Program
from ._table import Table

_ITEMS = 11  # more than one vector and a remainder, for every width
_STEPS = 3

Sample = Callable[[tuple[int, int]], np.ndarray]  # of the shape of an argument: that of all items

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


def disagreement(program: Program, run: Callable[[int], int], width: int) -> str | None:
    """Say where a kernel and the function differ on random inputs; None when they agree.

    Parameters
    ----------
    program : Program
    run : callable
        Entry point of the kernel.
    width : int
        Items it evaluates at once.
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

"""Cases of a campaign: values of all variations, drawn before anything runs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from ..codegen._internal import UnknownNameError, unknown_name
from ..simulation import Vary

SAMPLINGS = ("sobol", "latin", "random", "grid", "saltelli")


@dataclass(frozen=True)
class Case:
    """One case before it is run.

    Parameters
    ----------
    number : int
    seed : int
        Of noise and of what the design draws.
    values : dict of str to value
        By the names of the variations.
    """

    number: int
    seed: int
    values: dict[str, Any]


def sample(
    variations: Sequence[Vary], count: int, sampling: str, seed: int
) -> tuple[list[Case], int]:
    """Cases, and how many rows of a Saltelli scheme they are (0 for other samplings)."""
    if sampling not in SAMPLINGS:
        raise UnknownNameError(unknown_name("sampling", sampling, list(SAMPLINGS)))
    varied = [one for one in variations if one.name != "seed"]
    seeds = next((one for one in variations if one.name == "seed"), None)
    if seeds is not None and not (
        seeds.values and all(isinstance(one, int) and one >= 0 for one in seeds.values)
    ):
        raise ValueError('Vary("seed") takes values=(…) that are whole numbers, not negative')
    rows = 0
    if not varied:
        shares = np.zeros((count, 0))
    elif sampling == "grid":
        return _grid(varied, seeds, count, seed), 0
    elif sampling == "saltelli":
        rows = max(count // (len(varied) + 2), 1)
        shares = _saltelli(len(varied), rows, seed)
    elif sampling == "random":
        shares = np.random.default_rng(seed).random((count, len(varied)))
    elif sampling == "latin":
        shares = _qmc().LatinHypercube(len(varied), seed=seed).random(count)
    else:
        shares = _sobol(len(varied), count, seed)
    return [
        Case(
            k,
            _seed(seeds, k % rows if rows else k, seed),
            {one.name: one.quantile(s) for one, s in zip(varied, row, strict=True)},
        )
        for k, row in enumerate(shares.tolist())
    ], rows


def _seed(seeds: Vary | None, k: int, first: int) -> int:
    return first + k if seeds is None else int(seeds.values[k % len(seeds.values)])


def _qmc() -> Any:  # whose stubs know no seed
    from scipy.stats import qmc  # a process that only runs cases needs none of its second of import

    return qmc


def _sobol(dimension: int, count: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():  # of counts that are no powers of two
        warnings.simplefilter("ignore", UserWarning)
        shares = _qmc().Sobol(dimension, scramble=True, seed=seed).random(count)
    return np.clip(shares, 1e-9, 1 - 1e-9)


def _saltelli(dimension: int, rows: int, seed: int) -> np.ndarray:
    """Matrices A, B and, for each column, A with that column of B, below each other."""
    both = _sobol(2 * dimension, rows, seed)
    A, B = both[:, :dimension], both[:, dimension:]
    mixed = []
    for k in range(dimension):
        one = A.copy()
        one[:, k] = B[:, k]
        mixed.append(one)
    return np.vstack([A, B, *mixed])


def _grid(varied: list[Vary], seeds: Vary | None, count: int, seed: int) -> list[Case]:
    """All combinations of lists and of equally spaced points of ranges, at most ``count``."""
    ranges = [one for one in varied if not one.values]
    lists = int(np.prod([len(one.values) for one in varied if one.values]))
    points = int((count / lists) ** (1 / len(ranges)) + 1e-9) if ranges else 0
    if count < lists or (ranges and points < 2):
        least = lists * 2 ** len(ranges)
        raise ValueError(f"a grid of these variations has at least {least} cases, got {count}")
    axes: list[list[Any]] = []
    for one in varied:
        ends = (0.0, 1.0) if one.mean is None else (1e-3, 0.999)
        spaced = [] if one.values else np.linspace(*ends, points).tolist()
        axes.append(list(one.values) or [one.quantile(share) for share in spaced])
    return [
        Case(k, _seed(seeds, k, seed), dict(zip([v.name for v in varied], row, strict=True)))
        for k, row in enumerate(product(*axes))
    ]

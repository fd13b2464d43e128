"""A random stream for every source, found by name."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import ArrayLike

from ..codegen._internal import check_shape


def stream(seed: int, *names: str) -> np.random.Generator:
    """Stream of a named source: the same whatever other sources there are.

    Examples
    --------
    >>> float(stream(1, "sensor", "gps").normal()) == float(stream(1, "sensor", "gps").normal())
    True
    """
    # The words of ``SeedSequence(seed, spawn_key=_key(names))``, which takes longer for them.
    words = [seed >> shift & 0xFFFFFFFF for shift in range(0, max(128, seed.bit_length()), 32)]
    entropy = np.array([*words, *_key(names)], dtype=np.uint32)
    return np.random.default_rng(np.random.SeedSequence(entropy))


@lru_cache(maxsize=256)
def _key(names: tuple[str, ...]) -> tuple[int, ...]:
    """Four words that stand for names; runs of the same parts follow each other."""
    digest = blake2b("\0".join(names).encode(), digest_size=16).digest()
    return tuple(np.frombuffer(digest, dtype="<u4").tolist())


def check_seed(seed: object) -> int:
    """A whole number that is not negative."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise ValueError(f"seed must be a whole number that is not negative, got {seed!r}")
    return int(seed)


def check_deviation(what: str, value: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Standard deviations: numbers that are not negative, one for all or one each."""
    given = np.asarray(value)
    if given.shape == ():
        given = np.broadcast_to(given, shape)
    array = check_shape(what, given, shape)
    if (array < 0).any():
        raise ValueError(f"{what} must not be negative, got {value}")
    return array

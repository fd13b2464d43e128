"""What controllers and estimators offer to a compiled loop: laws and filters without Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen import ModelFunction

# Address of a number, and whether it is a double (else a 64-bit integer).
Place = tuple[int, bool]


@dataclass(frozen=True, eq=False, kw_only=True)
class FunctionLaw:
    """A law that is a function of the state and of what is known beforehand for each time.

    Attributes
    ----------
    function : ModelFunction
        ``(x, …) → u``, before the controls are clipped.
    rows : callable
        ``(times) → arguments by name`` besides x, shape (k, size) or (1, size) for all times;
        matrices by columns.
    bounds : tuple of ndarray, or None
        What the controls are clipped to.
    is_ready : callable
        Whether what was known beforehand still holds; else Python makes the next call.
    took : callable
        ``(t, u, told, elapsed)``: makes the controller know of its last call.
    columns : callable
        ``(told, elapsed) → info by name`` of calls, shape (k,) each. `told` has shape (k, 1): 1
        where the controls were clipped, else 0.
    """

    function: ModelFunction
    rows: Callable[[np.ndarray], Mapping[str, np.ndarray]]
    bounds: tuple[np.ndarray, np.ndarray] | None
    is_ready: Callable[[], bool]
    took: Callable[[float, np.ndarray, np.ndarray, float], None]
    columns: Callable[[np.ndarray, np.ndarray], Mapping[str, np.ndarray]]


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelLaw:
    """A law that is an entry of a compiled library.

    Attributes
    ----------
    entry : int
        Address of ``int entry(void *, void *, void *, void *)``; returns 0 for an ordinary answer.
    arguments : sequence of int
        The four addresses.
    x, t, u : int
        Addresses of the state and time that it reads and of the controls that it writes.
    odd : int
        What it returns, having changed nothing, where Python is to make the call.
    watched : sequence of Place
        Numbers that are zero after an ordinary call; else `told` is asked.
    told : sequence of Place
        Numbers to keep of each call; what the entry returned follows them.
    is_ready : callable
        Whether the next call may go to the entry.
    say : callable
        ``(t, u, elapsed) → info`` of the call that was made just now, which the controller knows
        then.
    took, columns : callable
        As for `FunctionLaw`; `told` has a column for each number.
    keep : object
        Lives as long as the addresses are used.
    """

    entry: int
    arguments: Sequence[int]
    x: int
    t: int
    u: int
    odd: int
    watched: Sequence[Place]
    told: Sequence[Place]
    is_ready: Callable[[], bool]
    say: Callable[[float, np.ndarray, float], object]
    took: Callable[[float, np.ndarray, np.ndarray, float], None]
    columns: Callable[[np.ndarray, np.ndarray], Mapping[str, np.ndarray]]
    keep: Any


@dataclass(frozen=True, eq=False, kw_only=True)
class CompiledFilter:
    """A filter whose intervals and corrections are functions of one column.

    Attributes
    ----------
    predict : ModelFunction
        ``(z, t, u, p, dt, q) → z_next, status``.
    updates : dict of str to ModelFunction
        ``(z, t, p, y, r) → z_next, said`` by measurement; the last entry said is a status, the
        third last the normalized innovation squared.
    p, q : ndarray
    scales : dict of str to float
        r of each measurement.
    successes : int
        Bits of the statuses of measurements that corrected the estimate.
    rounding : tuple of float
        How far times are apart that are the same: in s, and in spacings of numbers.
    state : callable
        ``() → z, t or None, length of the last interval``: what it goes on from now.
    took : callable
        ``(z, t, length, predicted, corrected)``: makes the filter know of intervals and
        measurements: of each kind, how often each status came, in this order; of measurements also
        the sum and number of squares, and what was said last.
    deviations : callable
        ``(z) → std`` of columns, shape (k, n).
    """

    predict: ModelFunction
    updates: Mapping[str, ModelFunction]
    p: np.ndarray
    q: np.ndarray
    scales: Mapping[str, float]
    successes: int
    rounding: tuple[float, float]
    state: Callable[[], tuple[np.ndarray, float | None, float]]
    took: Callable[..., None]
    deviations: Callable[[np.ndarray], np.ndarray]

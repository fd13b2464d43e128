"""What criteria judge: a panel for each signal with its limits, and a line for each verdict."""

from __future__ import annotations

from collections.abc import Sequence
from os.path import commonprefix
from typing import Any, NamedTuple

import numpy as np

from ._panels import Panel, PassingBand, VerdictTable

OK_MARK, FAILED_MARK, REPORTED_MARK = "ok", "FAILED", ""
SHORTEST_PREFIX = 8  # letters that the names of criteria of one signal share
FEW_LETTERS = 8  # fewer may follow them in a title


class JudgedNumber(NamedTuple):
    """A criterion with what it says of a run.

    Attributes
    ----------
    criterion : Criterion
    value : float
        NaN where a run that ended early lacks what the criterion looks at.
    """

    criterion: Any
    value: float

    @property
    def mark(self) -> str:
        """Whether the value is within the limits; empty without any."""
        if not self.criterion.range:
            return REPORTED_MARK
        return (
            OK_MARK if self.criterion.least <= self.value <= self.criterion.limit else FAILED_MARK
        )


def judged(run: Any, criteria: Sequence[Any]) -> list[JudgedNumber]:
    """Criteria with their values."""
    return [JudgedNumber(one, _value(run, one)) for one in criteria]


def _value(run: Any, criterion: Any) -> float:
    try:
        return float(criterion.value(run))
    except Exception:  # a run that ended early may lack what a criterion looks at
        if run.status.is_success:
            raise
        return np.nan


def verdict(found: Sequence[JudgedNumber]) -> str:
    """All verdicts in a word or two; empty where nothing was judged."""
    marks = [one.mark for one in found if one.mark]
    failed = marks.count(FAILED_MARK)
    if not marks:
        return ""
    return OK_MARK if not failed else f"{FAILED_MARK} {failed} of {len(marks)}"


def verdict_table(found: Sequence[JudgedNumber]) -> VerdictTable:
    """A line for each criterion: its mark, name, value and what passes."""
    return VerdictTable(tuple((one.mark, _line(one)) for one in found))


def _line(one: JudgedNumber) -> str:
    criterion = one.criterion
    number = f"{one.value:.3g} {criterion.unit}".rstrip()
    told = f" ({criterion.range})" if criterion.range else ""
    return f"{criterion.name}: {number}{told}"


def judged_panels(run: Any, found: Sequence[JudgedNumber]) -> list[Panel]:
    """The signals that criteria with limits look at; those of one signal share a panel."""
    groups: list[tuple[np.ndarray, list[JudgedNumber]]] = []
    for one in found:
        history = one.criterion.history(run) if one.mark and np.isfinite(one.value) else None
        if history is None:
            continue
        unit = one.criterion.unit
        same = (
            group
            for values, group in groups
            if group[0].criterion.unit == unit and np.array_equal(values, history, equal_nan=True)
        )
        group = next(same, None)
        if group is None:
            groups.append((history, [one]))
        else:
            group.append(one)
    return [
        Panel(
            _name([one.criterion.name for one in group]),
            group[0].criterion.unit,
            ("",),
            run.t,
            history[:, np.newaxis],
            tolerances=tuple(_tolerance(run, one, history) for one in group),
        )
        for history, group in groups
    ]


def _name(names: Sequence[str]) -> str:
    """What the criteria of one signal have in common."""
    shared = commonprefix(list(names)).rstrip(" ,(")
    if len(names) == 1:
        return names[0]
    if len(shared) < SHORTEST_PREFIX:
        return "; ".join(names)
    rest = [name[len(shared) :].strip() for name in names]
    return f"{shared} {', '.join(rest)}" if all(len(one) < FEW_LETTERS for one in rest) else shared


def _tolerance(run: Any, one: JudgedNumber, history: np.ndarray) -> PassingBand:
    criterion = one.criterion
    counts = np.flatnonzero(criterion.counts(run))
    place = {"largest": np.nanargmax, "least": np.nanargmin}.get(criterion.take)
    at = None if place is None else float(run.t[counts[place(history[counts])]])
    return PassingBand(
        float(run.t[counts[0]]),
        float(run.t[counts[-1]]),
        criterion.least,
        criterion.limit,
        at,
        one.value,
        one.mark == OK_MARK,
        criterion.range,
    )

"""CampaignResult: what the outcomes of a campaign say."""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen._internal import UnknownNameError, unknown_name
from ..estimation._internal import chi_squared_band
from ._case import CaseStatus
from ._statistics import (
    Comparison,
    Share,
    SobolIndex,
    mcnemar,
    mean_interval,
    paired_share,
    rank_correlation,
    share,
    sobol_indices,
)
from ._store import Store

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_REASONS = 5


@dataclass(frozen=True)
class CaseRow:
    """A case with its outcome.

    Attributes
    ----------
    key : str
        For `Campaign.replay`.
    number, seed : int
    inputs : dict of str to value
    status, message : str
    is_success : bool
    values : dict of str to float
        Of the criteria.
    """

    key: str
    number: int
    seed: int
    inputs: dict[str, Any]
    status: CaseStatus
    message: str
    is_success: bool
    values: dict[str, float]


class CampaignResult:
    """Outcomes of a campaign, as far as the store has them.

    Attributes
    ----------
    campaign : Campaign
    cases : tuple of CaseRow
        Those that are done, in the order of the campaign.
    """

    def __init__(self, campaign: Any, store: Store) -> None:
        self.campaign, self._store = campaign, store
        self._keys = campaign.keys()
        columns = "key, number, seed, inputs, status, success, message, outputs, consistency"
        numbers = {key: k for k, key in enumerate(self._keys)}
        rows = list(store.rows(self._keys, columns))
        self.cases = tuple(
            CaseRow(
                row["key"],
                numbers[row["key"]],
                row["seed"],
                json.loads(row["inputs"]),
                CaseStatus(row["status"]),
                row["message"],
                bool(row["success"]),
                json.loads(row["outputs"]),
            )
            for row in rows
        )
        self._consistency = [json.loads(row["consistency"]) for row in rows]

    def __len__(self) -> int:
        return len(self.cases)

    def __repr__(self) -> str:
        return f"CampaignResult({self.campaign.design}, {len(self)} of {len(self._keys)} cases)"

    def __str__(self) -> str:
        return "\n  ".join([repr(self), *self.summary()])

    @cached_property
    def is_success(self) -> np.ndarray:
        """Whether each case succeeded, shape (N,) of bool."""
        return np.array([one.is_success for one in self.cases], dtype=bool)

    @cached_property
    def criterion_names(self) -> tuple[str, ...]:
        """Names of the criteria, also if no case has a value."""
        return self.campaign.criterion_names

    def values(self, criterion: str) -> np.ndarray:
        """Values of a criterion, shape (N,); NaN where a case has none."""
        if criterion not in self.criterion_names:
            raise UnknownNameError(unknown_name("criterion", criterion, list(self.criterion_names)))
        return np.array([one.values.get(criterion, np.nan) for one in self.cases], dtype=np.float64)

    def inputs(self, variation: str) -> np.ndarray:
        """Values of a variation, shape (N,); entries of a list of other things count from 0."""
        names = [one.name for one in self.campaign.variations or ()]
        if variation not in names:
            raise UnknownNameError(unknown_name("variation", variation, names))
        found = [one.inputs.get(variation, one.seed) for one in self.cases]
        known = self.campaign.variations or ()
        listed = list(next(one for one in known if one.name == variation).values)
        if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in found):
            found = [listed.index(one) for one in found]
        return np.array(found, dtype=np.float64)

    def success(self, confidence: float = 0.95, method: str = "wilson") -> Share:
        """Share of the cases that succeed, with its confidence interval.

        Parameters
        ----------
        confidence : float
        method : {"wilson", "clopper-pearson"}
        """
        return share(int(self.is_success.sum()), len(self), confidence, method)

    def failures(self) -> dict[str, int]:
        """How often each reason made cases fail, the most frequent first."""
        found = Counter(one.message or one.status for one in self.cases if not one.is_success)
        return dict(found.most_common())

    def quantiles(
        self, criterion: str, shares: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> np.ndarray:  # fmt: skip
        """Values below which shares of the cases are."""
        values = self.values(criterion)
        values = values[np.isfinite(values)]
        return np.quantile(values, shares) if len(values) else np.full(len(shares), np.nan)

    def worst(self, criterion: str | None = None, count: int = 5) -> list[CaseRow]:
        """Cases that come nearest to a limit or exceed it most, failed runs first.

        Parameters
        ----------
        criterion : str, optional
            All if left out: each counts in units of its spread over the cases.
        count : int
        """
        known = {one.name: one for one in self.campaign.all_criteria()}
        if criterion is not None:
            self.values(criterion)  # refuses unknown names
        excess = np.full(len(self), -np.inf)
        for name in self.criterion_names if criterion is None else (criterion,):
            one, values = known[name], self.values(name)
            over = np.maximum(values - one.limit, one.least - values)
            if not np.isfinite(over[np.isfinite(values)]).all():  # reported only
                over = values
                if criterion is None:
                    continue
            spread = np.nanstd(values) if np.isfinite(values).any() else 0.0
            over = over / (spread or 1.0)
            excess = np.fmax(excess, np.where(np.isnan(values), np.inf, over))
        order = np.argsort(-excess, kind="stable")
        if criterion is None:
            order = np.array(sorted(order, key=lambda k: self.cases[k].is_success), dtype=int)
        return [self.cases[k] for k in order[:count]]

    def sensitivity(self) -> dict[str, dict[str, tuple[float, float]]]:
        """Spearman's rank correlation of each criterion with each variation, and its p-value."""
        names = [one.name for one in self.campaign.variations or () if one.name != "seed"]
        return {
            criterion: {
                name: rank_correlation(self.inputs(name), self.values(criterion)) for name in names
            }
            for criterion in self.criterion_names
        }

    def sobol_indices(self, criterion: str) -> dict[str, SobolIndex]:
        """How much of a criterion's variance comes from each variation.

        Rows share the seed, so noise is part of no index.
        """
        rows = self.campaign.rows
        if not rows:
            raise ValueError(
                'Sobol\' indices need the cases of a Saltelli scheme: give sampling="saltelli"'
            )
        if len(self) < len(self._keys):
            raise ValueError(f"{len(self._keys) - len(self)} cases are missing: run them first")
        names = tuple(one.name for one in self.campaign.variations or () if one.name != "seed")
        return sobol_indices(self.values(criterion), rows, names)

    def margin(self) -> tuple[float, CaseRow | None]:
        """Largest share of all ranges within which every case succeeds, and the case beyond it.

        A case counts by the variation that is farthest from the middle of its range: 1 is its end,
        or three deviations.
        """
        known = [one for one in self.campaign.variations or () if one.name != "seed"]
        deviation = np.array(
            [
                max((abs(one.deviation(row.inputs[one.name])) for one in known), default=0.0)
                for row in self.cases
            ]
        )
        failed = np.flatnonzero(~self.is_success)
        if not len(failed):
            return (float(deviation.max()) if len(deviation) else 0.0), None
        nearest = failed[np.argmin(deviation[failed])]
        return float(deviation[nearest]), self.cases[nearest]

    def bands(
        self, criterion: str, shares: Sequence[float] = (0.05, 0.5, 0.95)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Quantiles of a signal over time.

        Returns
        -------
        t : ndarray, shape (S,)
            As shares of the run.
        quantiles : ndarray, shape (len(shares), S)
        """
        self.values(criterion)
        names = self.campaign.criterion_names
        samples = self.campaign.samples
        rows = []
        for row in self._store.rows([one.key for one in self.cases], "history"):
            data = np.frombuffer(zlib.decompress(row["history"]) if row["history"] else b"", "f4")
            if data.size == len(names) * samples:
                rows.append(data.reshape(len(names), samples)[names.index(criterion)])
        table = np.array([row for row in rows if np.isfinite(row).all()])
        if table.size == 0:
            raise ValueError(f"the criterion {criterion!r} is no signal, or no samples were kept")
        return np.linspace(0.0, 1.0, samples), np.quantile(table, shares, axis=0)

    def region(
        self, first: str, second: str, bins: int = 8
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Share of success over two variations.

        Returns
        -------
        edges of the first, edges of the second : ndarray, shape (bins + 1,)
        share : ndarray, shape (bins, bins)
            NaN where there is no case.
        count : ndarray, shape (bins, bins)
        """
        x, y = self.inputs(first), self.inputs(second)
        count, across, along = np.histogram2d(x, y, bins)
        good, _, _ = np.histogram2d(x[self.is_success], y[self.is_success], (across, along))
        with np.errstate(invalid="ignore"):
            return across, along, good / count, count

    def consistency(self) -> dict[str, tuple[float, float, float]]:
        """NEES and NIS of the estimator over all cases, each with the 95 % band of a right one.

        "nees" is that at the ends of the runs, the others those of the sensors. All are divided by
        their dimension, so that 1 is right.
        """
        found: dict[str, tuple[float, float, float]] = {}
        for name in dict.fromkeys(name for one in self._consistency for name in one):
            entries = [one[name] for one in self._consistency if name in one]
            dimension = entries[0][1]
            count = sum(entry[2] for entry in entries)
            mean = sum(entry[0] * entry[2] for entry in entries) / count / dimension
            found[name] = (mean, *chi_squared_band(dimension, count))
        return found

    def compare(self, other: CampaignResult) -> Comparison:
        """Both campaigns case by case: same seeds, and same values of what both vary alike."""
        mine = {one.number: one for one in self.cases}
        pairs = [(mine[one.number], one) for one in other.cases if one.number in mine]
        others = tuple(other.campaign.variations or ())  # what is stated otherwise is compared
        shared = [one.name for one in self.campaign.variations or () if one in others]
        for first, second in pairs:
            if first.seed != second.seed or any(
                first.inputs[name] != second.inputs[name] for name in shared if name in first.inputs
            ):
                raise ValueError(
                    f"case {first.number} differs between the campaigns: give both the same "
                    "variations, sampling and seed"
                )
        good = np.array([(a.is_success, b.is_success) for a, b in pairs], dtype=bool).reshape(-1, 2)
        only_first = int((good[:, 0] & ~good[:, 1]).sum())
        only_second = int((~good[:, 0] & good[:, 1]).sum())
        names = [name for name in self.criterion_names if name in other.criterion_names]
        return Comparison(
            int(good.all(axis=1).sum()),
            only_first,
            only_second,
            int((~good).all(axis=1).sum()),
            mcnemar(only_first, only_second),
            paired_share(only_first, only_second, len(pairs)),
            {
                name: mean_interval(
                    np.array(
                        [b.values.get(name, np.nan) - a.values.get(name, np.nan) for a, b in pairs]
                    )
                )
                for name in names
            },
        )

    def trajectory(self, key: str) -> Path | None:
        """File of the whole run of a case, for `SimulationResult.load`, if it was kept."""
        return self._store.trajectory(key)

    def machines(self) -> list[str]:
        """Processors and compilers that the outcomes come from."""
        return self._store.machines([one.key for one in self.cases])

    def summary(self) -> list[str]:
        """Lines that say how sure one can be."""
        lines = [f"success: {self.success()}"] if len(self) else []
        missing, others = len(self._keys) - len(self), len(self._store) - len(self)
        if missing:
            lines.append(f"{missing} cases are missing: run the campaign again to go on")
        if missing and others:
            lines.append(
                f"{others} outcomes in the store are of other cases, settings or code, and do not "
                "count here"
            )
        if not len(self):
            return lines
        for reason, times in list(self.failures().items())[:MOST_REASONS]:
            lines.append(f"failed {times} ×: {reason}")
        for one in self.campaign.all_criteria():
            low, middle, high = self.quantiles(one.name)
            unit = f" {one.unit}" if one.unit else ""
            lines.append(
                f"{one.name}: median {middle:.4g}{unit}, 5 % below {low:.4g}, 5 % above {high:.4g} "
                f"({one.range or 'reported'})"
            )
        margin, beyond = self.margin()
        if any(one.name != "seed" for one in self.campaign.variations or ()):
            end = "no case fails" if beyond is None else f"case {beyond.number} fails beyond"
            lines.append(f"margin: {margin:.3g} of all ranges together; {end}")
        if self.campaign.rows and not missing:
            for name in self.criterion_names:
                told = ", ".join(
                    f"{variation} {index.first:.2f} (total {index.total:.2f})"
                    for variation, index in self.sobol_indices(name).items()
                    if np.isfinite(index.first)
                )
                lines += [f"Sobol' indices of {name}: {told}"] if told else []
        for name, (mean, low, high) in self.consistency().items():
            label = "NEES at the end" if name == "nees" else f"NIS of {name}"
            lines.append(f"{label}: {mean:.3f} (right: {low:.3f} to {high:.3f})")
        machines = self.machines()
        if len(machines) > 1:
            lines.append(
                "outcomes come from several types of processor or compiler, whose bits may differ: "
                + "; ".join(machines)
            )
        return lines

    def plot(self) -> Figure:
        """Histograms of the criteria, and success over the two most telling variations."""
        from ._report import figure

        return figure(self)

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write one HTML file with tables and plots, which needs nothing else.

        Returns
        -------
        pathlib.Path
        """
        from ._report import write_report

        return write_report(self, Path(path))

"""Estimates of a log: what filters and windows return, what they draw, and the files they write."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape, html_page, html_table, interruptible
from ..groups import check_element
from ..groups._internal import describe_group
from ..io._internal import DAMAGE, LARGEST_ARCHIVE, damage_reason, read_archive, write_archive
from ..scene import Scene
from ..scene._internal import Scenery, scene_of_states
from ..systems import System
from ..systems._internal import BoundSensor
from ._innovations import (
    Consistency,
    Innovations,
    Said,
    chi_squared_band,
    consistency,
    doubts,
    nees,
)
from ._log import SAME_TIME, Rows
from ._status import PredictStatus, UpdateStatus, summary_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ESTIMATE_SCHEMA, ESTIMATE_VERSION = "lgcontrol.estimation", 1
# Parts of innovations with how many axes they have behind the measurements'.
_PARTS = {"innovation": 1, "whitened": 1, "nis": 0, "log_likelihood": 0, "status": 0}


def flattened(P: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., n, n) as columns of their lower triangles."""
    return P[(..., *np.tril_indices(P.shape[-1]))]


def symmetric_of(column: np.ndarray) -> np.ndarray:
    """Symmetric matrices (..., n, n) of what `flattened` returned."""
    n = round((np.sqrt(8 * column.shape[-1] + 1) - 1) / 2)
    rows, columns = np.tril_indices(n)
    P = np.empty((*column.shape[:-1], n, n))
    P[..., rows, columns] = P[..., columns, rows] = column
    return P


def write_estimates(
    path: Path,
    system: System[Any],
    values: Mapping[str, np.ndarray],
    innovations: Mapping[str, Innovations],
    counts: Mapping[str, Counter[str]],
) -> Path:
    """Write times, states, triangles of covariances ("t", "x", "P"), and what measurements said."""
    arrays = dict(values)
    for i, said in enumerate(innovations.values()):
        arrays |= {f"said_{i}_{part}": getattr(said, part) for part in ("t", "number", *_PARTS)}
    description = _described(system) | {
        "units": {"t": "s", "x": system.state.coordinate_units, "P": system.error_units},
        "measurements": [*innovations],
        "lasting": [said.lasting for said in innovations.values()],
        "counts": {name: dict(counter) for name, counter in counts.items()},
    }
    return write_archive(path, ESTIMATE_SCHEMA, ESTIMATE_VERSION, arrays, description)


def read_estimates(
    path: Path, system: System[Any], largest: int
) -> tuple[dict[str, np.ndarray], dict[str, Innovations], dict[str, Counter[str]]]:
    """What `write_estimates` wrote, for the same system; `largest`: bytes that arrays may take."""
    path, arrays, description = read_archive(
        path, ESTIMATE_SCHEMA, ESTIMATE_VERSION, "saved estimate", largest
    )
    for what, own in _described(system).items():
        if description.get(what) != own:
            raise ValueError(
                f"{path} has estimates of another system than {system.name}: its {what} is "
                f"{description.get(what)}, expected {own}"
            )
    try:
        return _from_plain(arrays, description, system)
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged: {damage_reason(error)}") from None


def _described(system: System[Any]) -> dict[str, Any]:
    """What has to agree, as JSON has it."""
    names = {"state": system.state.coordinate_names, "errors": system.error_names}
    group = json.loads(json.dumps(describe_group(system.state)))
    return {"group": group} | {key: list(value) for key, value in names.items()}


def _from_plain(
    arrays: Mapping[str, np.ndarray], description: Mapping[str, Any], system: System[Any]
) -> tuple[dict[str, np.ndarray], dict[str, Innovations], dict[str, Counter[str]]]:
    N, n = len(arrays["t"]), system.n_errors
    sizes = {"x": system.state.nq, "P": n * (n + 1) // 2}
    values = {"t": check_shape("t", arrays["t"], (N,))}
    if (np.diff(values["t"]) < 0).any():
        raise ValueError("its times go back")
    for key, size in sizes.items():
        values[key] = check_shape(key, arrays[key], (N, size), batch=True, finite=False)
    values["x"] = check_element("x", values["x"], system.state, batch=True)
    innovations, lasting = {}, description.get("lasting")  # older files have none
    for i, name in enumerate(description["measurements"]):
        K = len(arrays[f"said_{i}_t"])
        m = arrays[f"said_{i}_innovation"].shape[-1]
        shapes = {"t": (K,), "number": (K,)}
        shapes |= {part: (K, m)[: 1 + axes] for part, axes in _PARTS.items()}
        parts = {
            part: check_shape(part, arrays[f"said_{i}_{part}"], shape,
                              batch=part in _PARTS, finite=False)
            for part, shape in shapes.items()
        }  # fmt: skip
        whole = {part: parts[part].astype(int) for part in ("number", "status")}
        factor = 1.0 if lasting is None else float(lasting[i])
        innovations[str(name)] = Innovations(**(parts | whole), lasting=factor)
    counts = {
        str(name): Counter({str(word): int(k) for word, k in counter.items()})
        for name, counter in description["counts"].items()
    }
    return values, innovations, counts


@dataclass(frozen=True, eq=False)
class Estimates:
    """States over time, and covariances of their errors.

    Attributes
    ----------
    system : System
    t : ndarray, shape (N,)
        s.
    x : ndarray, shape (..., N, nq)
    """

    system: System
    t: np.ndarray
    x: np.ndarray
    _covariances: Callable[[np.ndarray], np.ndarray]
    _z: np.ndarray

    def __repr__(self) -> str:
        """System and times."""
        span = f"{len(self.t)} estimates from {self.t[0]:g} to {self.t[-1]:g} s"
        return f"Estimates({self.system.name!r}, {span})"

    def _repr_html_(self) -> str:
        """Deviations of the first and last estimate's error, for notebooks."""
        std = self.std.reshape(-1, *self.std.shape[-2:])[0]
        names, units = self.system.error_names, self.system.error_units
        ends = f"σ at {self.t[0]:g} s", f"σ at {self.t[-1]:g} s"
        rows = zip(names, std[0], std[-1], units, strict=True)
        return html_page(repr(self), html_table("", ("error", *ends, "unit"), rows))

    @cached_property
    def P(self) -> np.ndarray:
        """Covariances of ``system.error(truth, x)``, shape (..., N, n, n)."""
        return self._covariances(self._z)

    @property
    def std(self) -> np.ndarray:
        """Deviations of the error, shape (..., N, n)."""
        return np.sqrt(np.maximum(np.diagonal(self.P, axis1=-2, axis2=-1), 0.0))

    def index(self, t: Any) -> np.ndarray:
        """Row of the estimate at times t, or last before them."""
        found = np.searchsorted(self.t, np.asarray(t) + SAME_TIME, side="right") - 1
        if np.any(found < 0):
            raise ValueError(f"the estimates begin at {self.t[0]:g} s, got {np.min(t):g} s")
        return found

    def error(self, t: Any, truth: Any) -> np.ndarray:
        """``system.error(truth, x)`` at times t, shape (..., K, n)."""
        truth = check_shape("truth", truth, (self.system.state.nq,), batch=True, finite=False)
        return self.system.error(truth, self.x[..., self.index(t), :])

    def nees(self, t: Any, truth: Any, entries: Any = slice(None)) -> np.ndarray:
        """Normalised estimation error squared, divided by its dimension, at times t.

        Parameters
        ----------
        t : array_like, shape (K,)
        truth : array_like, shape (..., K, nq)
        entries : slice or sequence of int
            Entries of the error that count.

        Returns
        -------
        ndarray, shape (..., K)
            One on average, if the covariance is right.
        """
        rows = self.index(t)
        covariance = self._covariances(self._z[..., rows, :])
        return nees(self.error(t, truth), covariance, entries)

    def plot(self, t: Any = None, truth: Any = None) -> Figure:
        """Errors within ±2σ (with a truth), and the whitened innovations of a filter.

        Parameters
        ----------
        t, truth : array_like, optional
            Times (K,) and states (K, nq).
        """
        from ..plotting import plot_estimation

        self._check_single()
        rows = slice(None) if t is None else self.index(t)
        times = self.t if t is None else np.asarray(t)
        error = np.full((len(times), self.system.n_errors), np.nan)
        if truth is not None:
            error = self.error(times, truth)
        names, units = self.system.error_names, self.system.error_units
        return plot_estimation(times, error, self.std[rows], names, units, self._whitened())

    def scene(self, t: Any = None, truth: Any = None) -> Scene:
        """What there is to see: the estimates with ellipsoids of 2σ, and the truth.

        Parameters
        ----------
        t, truth : array_like, optional
            Times (K,) and states (K, nq), which are drawn as what was to be found.
        """
        self._check_single()
        rows = np.arange(len(self.t)) if t is None else self.index(t)
        times = self.t if t is None else np.asarray(t, dtype=float)
        group, x = self.system.state, self.x[rows]
        return scene_of_states(
            self.system.name,
            group,
            times,
            x,
            Scenery(self.system.look),
            reference=None if truth is None else check_element("truth", truth, group, batch=True),
            estimate=x,
            covariances=self.P[rows],
        )

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file: arrays and a JSON description, no pickled objects.

        Returns
        -------
        Path
            Where it is: with ``.npz`` where the name has no ending.

        Raises
        ------
        ValueError
            If the name has another ending.
        """
        values = {"t": self.t, "x": self.x, "P": flattened(self.P)}
        return write_estimates(Path(path), self.system, values, *self._said())

    @classmethod
    @named_options
    def load(cls, path: str | Path, system: System, *, largest: int = LARGEST_ARCHIVE) -> Self:
        """Read a file written by `save`.

        Parameters
        ----------
        path : str or Path
        system : System
            That was estimated: its functions are in no file.
        largest : int
            Bytes that the file may take unpacked; larger ones are refused.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ValueError
            If the file holds no estimates, those of a system with another state, is damaged, too
            large, or of a newer version.
        """
        values, innovations, counts = read_estimates(Path(path), system, largest)
        found = system, values["t"], values["x"], symmetric_of, values["P"]
        return cls._loaded(found, innovations, counts)

    @classmethod
    def _loaded(
        cls,
        found: tuple[Any, ...],
        innovations: dict[str, Innovations],
        counts: dict[str, Counter[str]],
    ) -> Self:
        """From what a file holds."""
        return cls(*found)

    def _said(self) -> tuple[dict[str, Innovations], dict[str, Counter[str]]]:
        """Innovations and counts by measurement."""
        return {}, {}

    def _check_single(self) -> None:
        if self.x.ndim != 2:
            raise ValueError(f"plot one log at a time, these are {self.x.shape[:-2]}")

    def _whitened(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Times and whitened innovations by measurement, to be drawn."""
        return {}


@dataclass(frozen=True, eq=False)
class EstimationResult(Estimates):
    """Estimates over a log; made by `Filter.run`.

    Attributes
    ----------
    system : System
    t : ndarray, shape (N,)
        Ends of the intervals; times at which several measurements of a kind were taken come
        several times.
    x : ndarray, shape (..., N, nq)
        Estimates, the measurements at t included.
    innovations : dict of str to Innovations
    counts : dict of str to Counter
        What became of the intervals and of the measurements of each kind.
    """

    innovations: dict[str, Innovations]
    counts: dict[str, Counter[str]]
    _smooth: Callable[[float | None, Any], Estimates]

    def __repr__(self) -> str:
        """System, times, and what became of the measurements."""
        span = f"{len(self.t)} estimates from {self.t[0]:g} to {self.t[-1]:g} s"
        counts = summary_of(self.counts).replace("\n", "; ")
        return f"EstimationResult({self.system.name!r}, {span}; {counts})"

    @classmethod
    def of(
        cls,
        system: System,
        sensors: Mapping[str, BoundSensor],
        covariances: Callable[[np.ndarray], np.ndarray],
        rows: Rows,
        z: np.ndarray,
        said: np.ndarray,
        smooth: Callable[[float | None, Any], Estimates],
    ) -> EstimationResult:
        """From what the loop returned."""
        ends = rows.ends
        counts = rows.counts
        for status, n in zip(*np.unique(said[..., 0], return_counts=True), strict=True):
            counts["predict"][PredictStatus(int(status)).text] += int(n)
        innovations, column = {}, 1
        for name, bound in sensors.items():
            size = Said.size(bound.group.dim)
            places, numbers = rows.places[name]
            parts = Said.of(said[..., places, column : column + size])
            column += size
            status = parts.status.astype(int)
            lasting = bound.lasting
            innovations[name] = Innovations(ends[places], numbers, *parts[:-1], status, lasting)
            for value, n in zip(*np.unique(status, return_counts=True), strict=True):
                counts[name][UpdateStatus(int(value)).text] += int(n)
        x = z[..., : system.state.nq]
        counts = {name: Counter({k: n for k, n in c.items() if n}) for name, c in counts.items()}
        return cls(system, ends, x, covariances, z, innovations, counts, smooth)

    @property
    def log_likelihood(self) -> np.ndarray:
        """Logarithm of the likelihood of all measurements that were used, shape (...)."""
        total = np.zeros(self.x.shape[:-2])
        for said in self.innovations.values():
            total = total + np.where(said.is_used, said.log_likelihood, 0.0).sum(axis=-1)
        return total

    def consistency(self, t: Any = None, truth: Any = None) -> Consistency:
        """NEES (with a truth), NIS and whiteness of the innovations, with their bands."""
        errors = None if truth is None else self.nees(t, truth)
        return consistency(errors, self.system.n_errors, self.innovations)

    def plot_consistency(self, t: Any = None, truth: Any = None) -> Figure:
        """NEES (with a truth) and NIS with their 95 % bands, correlations of the innovations.

        Times and truth as for `plot`.
        """
        from ..plotting import plot_consistency
        from ..plotting._internal import Squares

        self._check_single()
        errors, nis, whitened = None, {}, {}
        if truth is not None:
            n = self.system.n_errors
            errors = Squares(np.asarray(t), self.nees(t, truth), chi_squared_band(n, 1))
        for name, said in self.innovations.items():
            used = said.is_used
            if used.any():
                m = said.whitened.shape[-1]
                nis[name] = Squares(said.t[used], said.nis[used] / m, chi_squared_band(m, 1))
                whitened[name] = said.whitened[used]
        if errors is None and not nis:
            raise ValueError("there is neither a truth nor a measurement that was used")
        return plot_consistency(errors, nis, whitened)

    def summary(self) -> str:
        """Say how often what became of intervals and measurements, and what speaks against them.

        Each measurement whose innovations differ from its noise has a line with the number that
        says so: their size (NIS), their correlation, outliers, holes.
        """
        return "\n".join([summary_of(self.counts), *self.doubts()])

    def doubts(self) -> list[str]:
        """What speaks against the measurements or the noise, one line each; none if all is well."""
        return doubts(self.innovations, float(self.t[-1]))

    @interruptible
    def smooth(self, lag: float | None = None, at: Any = None) -> Estimates:
        """Estimates with all measurements in them (Rauch–Tung–Striebel), or those of a time ahead.

        Parameters
        ----------
        lag : float, optional
            Fixed lag: at each time, measurements up to this many seconds later count; all of them
            if left out.
        at : array_like of int, optional
            Rows that are wanted (`index`); all if left out. With a lag this saves time.

        Raises
        ------
        ValueError
            If they are from a file, which has no filter.
        """
        return self._smooth(lag, at)

    def _said(self) -> tuple[dict[str, Innovations], dict[str, Counter[str]]]:
        return self.innovations, self.counts

    @classmethod
    def _loaded(
        cls,
        found: tuple[Any, ...],
        innovations: dict[str, Innovations],
        counts: dict[str, Counter[str]],
    ) -> Self:
        system, t, x, covariances, z = found
        return cls(system, t, x, covariances, z, innovations, counts, _cannot_smooth)

    def _whitened(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        return {name: (v.t, v.whitened) for name, v in self.innovations.items()}


def _cannot_smooth(lag: float | None, at: Any) -> Estimates:
    raise ValueError(
        "estimates from a file have no filter to smooth them: run it again, filter.run(log).smooth"
        "(), and save what that returns"
    )

"""Estimates: states over time with their covariances, filtered or smoothed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..codegen import named_options
from ..codegen._internal import check_shape, html_page, html_table
from ..groups import check_element
from ..io._internal import LARGEST_ARCHIVE
from ..scene import Scene
from ..scene._internal import Scenery, scene_of_states
from ..systems import System
from ._consistency import nees
from ._innovations import Innovations
from ._log import SAME_TIME
from ._storage import flattened, read_estimates, symmetric_of, write_estimates

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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

        Returns
        -------
        Scene
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

"""Marginals: how well a graph knows each of its variables, and which of them together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen._internal import UnknownNameError, unknown_name
from ..groups import LieGroup
from ..plotting import plot_path
from ..scene import Scene
from ..scene._internal import Scenery, scene_of_states
from ..systems import Trajectory
from ._normal_equations import NormalEquations
from ._selected_inverse import SelectedInverse

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# share of the inverse at the variable known worst that may be rounding
COVARIANCE_ROUNDING = 1e-3


@dataclass(frozen=True, eq=False)
class Marginals:
    """Covariances of all variables of a `FactorGraph`; made by `FactorGraph.marginals`.

    Covariances are those of ``minus(truth, X)``: displacements in the frame of the variable, linear
    part first.

    Attributes
    ----------
    x : dict of str to ndarray, shape (K, nq)
        Elements at which the factors were linearized.
    covariances : dict of str to ndarray, shape (K, dim, dim)
        By name of the variables; zero for variables that are fixed.
    """

    x: dict[str, np.ndarray]
    covariances: dict[str, np.ndarray]
    _groups: dict[str, LieGroup]
    _bases: dict[str, int]
    _equations: NormalEquations
    _entries: np.ndarray
    _inverse: SelectedInverse

    @classmethod
    def of(
        cls, x: Mapping[str, np.ndarray], groups: dict[str, LieGroup], bases: dict[str, int],
        equations: NormalEquations, entries: np.ndarray,
    ) -> Marginals:  # fmt: skip
        """From the normal equations ``entries`` at x; see `FactorGraph.marginals` for errors."""
        try:
            inverse = SelectedInverse(entries, *equations.columns, *equations.blocks)
        except np.linalg.LinAlgError:
            raise ValueError(NOT_OBSERVED) from None
        covariances = {}
        for name, group in groups.items():
            made = np.zeros((len(x[name]), group.dim, group.dim))
            for k in range(len(made)):
                rank = equations.rank(bases[name] + k)
                if rank >= 0:
                    own = inverse.block(rank, rank)
                    assert own is not None
                    made[k] = (own + own.T) / 2
            covariances[name] = made
        found = cls(dict(x), covariances, groups, bases, equations, entries, inverse)
        found._check()
        return found

    def _check(self) -> None:
        """What is known worst, against columns of the inverse that were solved for."""
        spread = {name: np.trace(P, axis1=1, axis2=2) for name, P in self.covariances.items()}
        name = max((n for n in spread if len(spread[n])), key=lambda n: spread[n].max())
        k = int(np.argmax(spread[name]))
        if not spread[name][k]:
            return
        solved = self._solved(name, k)[self._rows(name, k)]
        off = np.abs(solved - self.covariances[name][k]).max()
        if not off <= COVARIANCE_ROUNDING * np.abs(solved).max():
            raise ValueError(NOT_OBSERVED)

    def __repr__(self) -> str:
        """Names and numbers of the variables."""
        counts = ", ".join(f"{len(P)} of {name!r}" for name, P in self.covariances.items())
        return f"Marginals({counts})"

    def joint(self, *keys: tuple[str, int]) -> np.ndarray:
        """Covariance of several variables together, in the order in which they are given.

        Two variables that a factor joins, and others that the sparse factor of the graph has
        together, are read off. For other pairs one linear system is solved.

        Parameters
        ----------
        *keys : (str, int)
            Name and number of each.

        Returns
        -------
        ndarray, shape (sum of dim, sum of dim)

        Examples
        --------
        >>> from lgcontrol.estimation import FactorGraph, Factors, Variables
        >>> from lgcontrol.groups import Rn
        >>> graph = FactorGraph(
        ...     [Variables("level", Rn(1), np.zeros((3, 1)))],
        ...     [Factors("step", lambda a, b: b - a, [("level", [0, 1]), ("level", [1, 2])]),
        ...      Factors("first", lambda a: a, [("level", [0])], std=2.0)])
        >>> graph.marginals().joint(("level", 0), ("level", 2)).round(6)
        array([[4., 4.],
               [4., 6.]])
        """
        for key in keys:
            if not (isinstance(key, tuple) and len(key) == 2):
                raise TypeError(f"each variable is (name, number), as in ('pose', 5), not {key!r}")
            name, index = key
            if name not in self._groups:
                raise UnknownNameError(unknown_name("variables", name, self._groups))
            if not 0 <= index < len(self.x[name]):
                raise ValueError(
                    f"number of {name!r} must be from 0 to {len(self.x[name]) - 1}, got {index}"
                )
        return np.block([[self._pair(*a, *b) for b in keys] for a in keys])

    def _pair(self, name: str, k: int, other: str, j: int) -> np.ndarray:
        if (name, k) == (other, j):
            return self.covariances[name][k]
        rank, rank_j = (
            self._equations.rank(self._bases[n] + i) for n, i in ((name, k), (other, j))
        )
        if rank < 0 or rank_j < 0:
            return np.zeros((self._groups[name].dim, self._groups[other].dim))
        found = self._inverse.block(rank, rank_j)
        return self._solved(other, j)[self._rows(name, k)] if found is None else found

    def _rows(self, name: str, k: int) -> np.ndarray:
        begin = self._equations.begins[self._bases[name] + k]
        return begin + np.arange(self._groups[name].dim)

    def _solved(self, name: str, k: int) -> np.ndarray:
        found = self._equations.inverse_columns(self._entries, self._rows(name, k))
        if found is None:
            raise ValueError(NOT_OBSERVED)
        return found

    def plot(self, name: str = "pose") -> Figure:
        """Path of the poses with ellipses of 2σ of their positions; see `plotting.plot_path`.

        Parameters
        ----------
        name : str
            Variables on SE2 or SE3, drawn in the order of their numbers.
        """
        if name not in self._groups:
            raise UnknownNameError(unknown_name("variables", name, self._groups))
        x = self.x[name]
        path: Any = Trajectory(self._groups[name], np.arange(len(x)), x)
        return plot_path(path, covariances=self.covariances[name])

    def scene(self, name: str = "pose") -> Scene:
        """What there is to see: the path of the poses, with ellipsoids of 2σ of some of them.

        Parameters
        ----------
        name : str
            Variables on SE2 or SE3, in the order of their numbers.
        """
        if name not in self._groups:
            raise UnknownNameError(unknown_name("variables", name, self._groups))
        x, group = self.x[name], self._groups[name]
        times = np.arange(len(x), dtype=float)
        return scene_of_states(
            name, group, times, x, Scenery(), estimate=x, covariances=self.covariances[name]
        )


NOT_OBSERVED = (
    "the factors leave a motion of all variables without information: fix one of them, or add a "
    "factor that knows where it is"
)

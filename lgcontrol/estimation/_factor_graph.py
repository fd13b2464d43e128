"""FactorGraph: least squares over many elements of groups, by Gauss–Newton with sparse matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, named_options, trace
from ..codegen import compile as compile_functions
from ..codegen._internal import Result, as_numbers, check_known, check_shape
from ..groups import LieGroup, check_element
from ..optimal import SolveStatus
from ._innovations import likely_square
from ._normal_equations import NOT_OBSERVED, Marginals, NormalEquations

Loss = Literal["huber", "cauchy", "geman_mcclure"]
"""How costs grow beyond the threshold: linearly, like a logarithm, not at all in the end."""

MANY_FACTORS = 4_000  # of a kind: from here on their function is compiled, once for all runs
FIRST_GRAPH_DAMPING = (
    1e-4  # first share of the diagonal that is added where a step does not lower the cost
)
LARGEST_GRAPH_DAMPING = 1e10
SHARES = (1.0, 0.5, 0.25, 0.125)  # of a step; long arms that turn overshoot, damped ones crawl
STEP_TOLERANCE = 1e-12  # largest entry of a step that changes nothing


@named_options
@dataclass(frozen=True, eq=False)
class Variables:
    """Elements of a group that are to be found.

    Parameters
    ----------
    name : str
    group : LieGroup
    start : array_like, shape (K, nq)
        First guess of each.
    fixed : array_like of int
        Which stay at the guess.
    """

    name: str
    group: LieGroup
    start: Any
    fixed: Any = ()

    def __post_init__(self) -> None:
        given = np.atleast_2d(as_numbers(f"start of {self.name!r}", self.start))
        start = check_element(f"start of {self.name!r}", given, self.group, batch=True)
        fixed = checked_indices(f"fixed of {self.name!r}", self.fixed, len(start))
        object.__setattr__(self, "start", start)
        object.__setattr__(self, "fixed", fixed)


@named_options
@dataclass(frozen=True, eq=False)
class Factors:
    """Terms ``½ ρ(rᵀ Ω r)`` of a cost, all of one kind.

    Parameters
    ----------
    name : str
    residual : callable
        ``(X, …, data) → r`` on CasADi columns: one element for each entry of `of`.
    of : sequence of (str, array_like of int)
        Variables and which of them, shape (M,), for each argument.
    data : array_like, shape (M, k), optional
        Last argument of the residual; left out if there is none.
    std : array_like, shape (m,) or (M, m), optional
        Deviations of the residuals; one if nothing is said.
    information : array_like, shape (m, m) or (M, m, m), optional
        Ω, instead of deviations.
    loss : {"huber", "cauchy", "geman_mcclure"}, optional
        ρ; quadratic if left out.
    threshold : float, optional
        Length of whitened residuals from which on the loss acts; what 95 % of them stay within if
        left out.
    jacobians : callable, optional
        ``(X, …, data) → [∂r/∂ε, …]`` for displacements ``X exp(ε)``, where a closed form is known;
        by automatic differentiation if left out.
    """

    name: str
    residual: Callable[..., Any]
    of: Sequence[tuple[str, Any]]
    data: Any = None
    _: KW_ONLY
    std: Any = None
    information: Any = None
    loss: Loss | None = None
    threshold: float | None = None
    jacobians: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if self.loss is not None:
            check_known("loss", _LOSSES, self.loss)
        if self.std is not None and self.information is not None:
            raise ValueError(f"factors {self.name!r}: give std or information, not both")
        if self.threshold is not None and not self.threshold > 0:
            raise ValueError(f"factors {self.name!r}: threshold must be positive")


@dataclass(frozen=True, eq=False)
class GraphSolution(Result):
    """What `FactorGraph.solve` found.

    Attributes
    ----------
    x : dict of str to ndarray, shape (K, nq)
        Elements by name of the variables.
    cost : float
        ``½ Σ ρ(rᵀ Ω r)``.
    status : SolveStatus
    iterations : int
        Linear systems solved.
    costs : list of float
        Before the first and after each accepted step.
    """

    x: dict[str, np.ndarray]
    cost: float
    status: SolveStatus
    iterations: int
    costs: list[float]

    @property
    def message(self) -> str:
        """How the solve ended, and what to do where it is no success."""
        effort = f"cost {self.cost:.6g} after {self.iterations} linear systems"
        return effort + {
            SolveStatus.CONVERGED: "",
            SolveStatus.ITERATION_LIMIT: ": raise max_iterations, or give a better guess",
            SolveStatus.STALLED: ": no step lowers it; give a better guess",
            SolveStatus.FAILED: ": residuals are not finite at the guess; give another one",
        }.get(self.status, "")

    def __repr__(self) -> str:
        """Status, cost and sizes."""
        sizes = ", ".join(f"{len(x)} {name}" for name, x in self.x.items())
        return f"GraphSolution({self.status}, {self.message}; {sizes})"


class FactorGraph:
    """Sparse nonlinear least squares on groups: smoothing of whole logs, maps, calibration.

    ``min ½ Σ ρ(rᵀ Ω r)`` over all variables, by Gauss–Newton steps ``X exp(d)`` (for losses with
    weights ρ′), damped where they do not lower the cost (Levenberg and Marquardt).

    Parameters
    ----------
    variables : iterable of Variables
    factors : iterable of Factors

    Examples
    --------
    Three numbers with known differences and a known mean:

    >>> from lgcontrol.groups import Rn
    >>> graph = FactorGraph(
    ...     [Variables("level", Rn(1), np.zeros((3, 1)))],
    ...     [Factors("step", lambda a, b, d: b - a - d, [("level", [0, 1]), ("level", [1, 2])],
    ...              data=[[1.0], [2.0]]),
    ...      Factors("fix", lambda a, y: a - y, [("level", [1])], data=[[5.0]])])
    >>> graph.solve().x["level"].ravel().round(6)
    array([4., 5., 7.])

    References
    ----------
    Dellaert and Kaess, Factor graphs for robot perception, Foundations and Trends in Robotics
    6(1–2), 2017.
    """

    def __init__(self, variables: Iterable[Variables], factors: Iterable[Factors]) -> None:
        given = list(variables)
        self.variables = {entry.name: entry for entry in given}
        if len(self.variables) < len(given):
            named = [entry.name for entry in given]
            raise ValueError(f"a graph needs variables, each with a name of its own, got {named}")
        self._families = [_Family(entry, self.variables) for entry in factors]
        names = [family.factors.name for family in self._families]
        if not names or len(set(names)) < len(names):
            raise ValueError(f"a graph needs factors, each with a name of its own, got {names}")
        self._nodes = self._numbered()

    def _numbered(self) -> NormalEquations:
        """All variables one after the other, and which of these each factor is of."""
        entries = list(self.variables.values())
        counts = [len(entry.start) for entry in entries]
        self._bases = dict(zip(self.variables, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
        is_free = np.ones(sum(counts), dtype=bool)
        for entry in entries:
            is_free[self._bases[entry.name] + entry.fixed] = False
        nodes = [
            [self._bases[name] + place for name, place in zip(f.names, f.places, strict=True)]
            for f in self._families
        ]
        used = np.zeros(len(is_free), dtype=bool)
        for place in (place for own in nodes for place in own):
            used[place] = True
        for entry in entries:
            base = self._bases[entry.name]
            lost = np.flatnonzero((is_free & ~used)[base : base + len(entry.start)])
            if len(lost):
                raise ValueError(f"{entry.name!r} number {lost[0]} is in no factor: fix it")
        dims = np.repeat([entry.group.dim for entry in entries], counts)
        return NormalEquations(dims, is_free, nodes)

    def _moved(self, x: Mapping[str, np.ndarray], d: np.ndarray) -> dict[str, np.ndarray]:
        made = {}
        for name, entry in self.variables.items():
            base, group = self._bases[name], entry.group
            begins = self._nodes.begins[base : base + len(entry.start)]
            free = begins >= 0
            step = d[begins[free][:, None] + np.arange(group.dim)]
            made[name] = np.array(x[name])
            made[name][free] = group.normalize(group.plus(x[name][free], step))
        return made

    def _normal(self, x: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        return self._nodes.assembled([family.linearized(x) for family in self._families])

    def start(self) -> dict[str, np.ndarray]:
        """First guesses by name."""
        return {name: entry.start for name, entry in self.variables.items()}

    def cost(self, x: Mapping[str, np.ndarray]) -> float:
        """``½ Σ ρ(rᵀ Ω r)`` at some elements."""
        return float(sum(family.cost(family.residuals(x)) for family in self._families))

    def residuals(self, x: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Whitened residuals by name of the factors, shape (M, m)."""
        return {family.factors.name: family.residuals(x) for family in self._families}

    @named_options
    def solve(
        self, guess: Mapping[str, np.ndarray] | None = None, *, max_iterations: int = 100,
        tolerance: float = 1e-8,
    ) -> GraphSolution:  # fmt: skip
        """Find the least cost near a guess.

        Parameters
        ----------
        guess : mapping of str to array_like, optional
            Elements by name, instead of that of the variables.
        max_iterations : int
        tolerance : float
            Share of the cost that further steps may promise at the end.

        Raises
        ------
        ValueError
            If the guess lacks variables, or has elements that are off their group.
        """
        x = self._elements(guess)
        compile_functions([f.both for f in self._families if f.count >= MANY_FACTORS])
        costs, iterations, damping = [self.cost(x)], 0, 0.0
        if not np.isfinite(costs[0]):
            return GraphSolution(x, costs[0], SolveStatus.FAILED, 0, costs)
        status, before = SolveStatus.ITERATION_LIMIT, np.inf
        H, gradient = self._normal(x)
        while iterations < max_iterations:
            d = self._nodes.solve(H, -gradient, damping)
            iterations += 1
            if d is not None:
                promised = -(gradient @ d) / 2
                # steps shrink as they did: what is left is what the next one will promise
                left = promised * (promised / before if promised < before < np.inf else 1.0)
                moved, cost, is_better = x, costs[-1], False
                for share in SHARES:
                    moved = self._moved(x, share * d)
                    cost = self.cost(moved)
                    is_better = cost <= costs[-1]
                    if is_better or left <= tolerance * costs[-1]:
                        break
                if is_better:
                    x = moved
                    costs.append(cost)
                if left <= tolerance * costs[-1] or np.abs(d).max(initial=0.0) < STEP_TOLERANCE:
                    status = SolveStatus.CONVERGED
                    break
                if is_better:
                    before = promised
                    damping = damping / 10 if damping > FIRST_GRAPH_DAMPING else 0.0
                    H, gradient = self._normal(x)
                    continue
            damping = max(10 * damping, FIRST_GRAPH_DAMPING)
            if damping > LARGEST_GRAPH_DAMPING:
                status = SolveStatus.STALLED
                break
        return GraphSolution(x, costs[-1], status, iterations, costs)

    def covariance(self, x: Mapping[str, np.ndarray], name: str, index: int) -> np.ndarray:
        """Covariance of one variable's error ``minus(truth, X)``, shape (dim, dim).

        Parameters
        ----------
        x : mapping
            A solution's elements.
        name : str
        index : int

        Raises
        ------
        ValueError
            If the factors leave a combination of the variables without any information.
        """
        check_known("variables", self.variables, name)
        checked_indices(f"index of {name!r}", index, len(self.variables[name].start))
        x = self._elements(x)
        begin = self._nodes.begins[self._bases[name] + index]
        rows = begin + np.arange(self.variables[name].group.dim)
        if begin < 0:
            return np.zeros((len(rows), len(rows)))
        found = self._nodes.inverse_columns(self._normal(x)[0], rows)
        if found is None:
            raise ValueError(NOT_OBSERVED)
        return (found[rows] + found[rows].T) / 2

    def marginals(self, x: Mapping[str, Any] | None = None) -> Marginals:
        """Covariances of all variables at once, by selected inversion of the sparse factor.

        Exact for the linearized factors, at the cost of a few factorizations, where `covariance`
        solves a linear system for each variable.

        Parameters
        ----------
        x : mapping of str to array_like, optional
            A solution's elements; the guesses of the variables if left out.

        Raises
        ------
        ValueError
            If the factors leave a combination of the variables without any information.

        Examples
        --------
        A number that is known to a deviation of 2, and two steps of deviation 1 from there:

        >>> from lgcontrol.groups import Rn
        >>> graph = FactorGraph(
        ...     [Variables("level", Rn(1), np.zeros((3, 1)))],
        ...     [Factors("step", lambda a, b: b - a, [("level", [0, 1]), ("level", [1, 2])]),
        ...      Factors("first", lambda a: a, [("level", [0])], std=2.0)])
        >>> graph.marginals().covariances["level"].ravel().round(6)
        array([4., 5., 6.])
        """
        if x is not None and not isinstance(x, Mapping):
            raise TypeError(
                f"x must be a mapping of names to elements, not {type(x).__name__}: of a solution "
                "give solution.x"
            )
        at = self._elements(x)
        groups = {name: entry.group for name, entry in self.variables.items()}
        return Marginals.of(at, groups, self._bases, self._nodes, self._normal(at)[0])

    def _elements(self, x: Mapping[str, Any] | None) -> dict[str, np.ndarray]:
        """Elements by name, checked; the guesses if left out."""
        if x is None:
            return self.start()
        made = {}
        check_known("variables", self.variables, *x)
        for name, entry in self.variables.items():
            if name not in x:
                raise ValueError(f"x lacks the elements of {name!r}; give those of all variables")
            given = np.asarray(x[name], dtype=np.float64)
            if given.shape != entry.start.shape:
                raise ValueError(
                    f"x[{name!r}] has shape {given.shape}, expected {entry.start.shape}"
                )
            made[name] = check_element(f"x[{name!r}]", given, entry.group, batch=True)
        return made


class _Robust(NamedTuple):
    """ρ and its derivative, of squared length s and squared threshold c."""

    cost: Callable[[np.ndarray, float], np.ndarray]
    weight: Callable[[np.ndarray, float], np.ndarray]


_LOSSES = {
    "huber": _Robust(
        lambda s, c: np.where(s <= c, s, 2 * np.sqrt(c * np.maximum(s, c)) - c),
        lambda s, c: np.sqrt(c / np.maximum(s, c)),
    ),
    "cauchy": _Robust(lambda s, c: c * np.log1p(s / c), lambda s, c: 1 / (1 + s / c)),
    "geman_mcclure": _Robust(lambda s, c: s / (1 + s / c), lambda s, c: (1 + s / c) ** -2),
}


class _Family:
    """Factors of one kind: their function, weights and places."""

    def __init__(self, factors: Factors, variables: Mapping[str, Variables]) -> None:
        self.factors = factors
        who = f"factors {factors.name!r}"
        if not factors.of:
            raise ValueError(f"{who}: name the variables they are of")
        self.names, places = [], []
        for name, index in factors.of:
            check_known("variables", variables, name, where=who)
            self.names.append(name)
            places.append(checked_indices(f"{who}: indices of {name!r}", index,
                                   len(variables[name].start)))  # fmt: skip
        self.count = len(places[0])
        if not self.count or any(len(place) != self.count for place in places):
            raise ValueError(f"{who}: {[len(place) for place in places]} indices; as many of each")
        self.places = places
        self.groups = [variables[name].group for name in self.names]
        self.given: list[np.ndarray] = []
        if factors.data is not None:
            data = np.asarray(factors.data, dtype=np.float64)
            data = data[:, None] if data.ndim == 1 else data
            self.given = [check_shape(f"data of {who}", data, (self.count, data.shape[-1]))]
        self.value = self._traced("residual", lambda *given: [self._residual(given)], ["r"])
        self.m: int = self.value.result_shapes[0][0]
        self.factor = self._whitening(who)
        limit = factors.threshold
        self.limit = limit**2 if limit else likely_square(self.m)

    def _traced(self, name: str, build: Any, results: Any) -> ModelFunction:
        shapes = {f"X{i}": (group.nq,) for i, group in enumerate(self.groups)}
        if self.given:
            shapes["data"] = (self.given[0].shape[1],)
        return trace(f"{self.factors.name}_{name}", build, shapes, results)

    def _residual(self, given: Sequence[Any]) -> Any:
        made = self.factors.residual(*given)
        return ca.vertcat(*made) if isinstance(made, list | tuple) else made

    @cached_property
    def both(self) -> ModelFunction:
        """Residual, and its derivatives side by side, by rows."""

        def build(*given: Any) -> list[Any]:
            r = self._residual(given)
            if self.factors.jacobians is not None:
                parts = list(self.factors.jacobians(*given))
            else:
                parts = [
                    ca.jacobian(r, X) @ group.rate_matrix(X)
                    for X, group in zip(given, self.groups, strict=False)
                ]
            return [r, ca.densify(ca.horzcat(*parts))]

        shapes = {"r": (self.m,), "J": (self.m, sum(group.dim for group in self.groups))}
        return self._traced("linearized", build, shapes)

    def _whitening(self, who: str) -> np.ndarray:
        """W with ``Wᵀ W = Ω``, shape (m, m) or (M, m, m)."""
        if self.factors.information is None:
            std = np.asarray(1.0 if self.factors.std is None else self.factors.std, dtype=float)
            std = np.broadcast_to(std, (self.m,)) if not std.ndim else std
            shape = (self.m,) if std.ndim == 1 else (self.count, self.m)
            std = check_shape(f"std of {who}", std, shape)
            if (std <= 0).any():
                raise ValueError(f"std of {who} must be positive")
            return np.eye(self.m) / std[..., None]
        Omega = np.asarray(self.factors.information, dtype=np.float64)
        shape = (self.m, self.m) if Omega.ndim == 2 else (self.count, self.m, self.m)
        Omega = check_shape(f"information of {who}", Omega, shape)
        values, vectors = np.linalg.eigh((Omega + np.swapaxes(Omega, -1, -2)) / 2)
        if (values < -1e-9 * values[..., -1:]).any():
            raise ValueError(f"information of {who} must have no negative eigenvalues")
        root = np.sqrt(np.maximum(values, 0.0))
        return root[..., None] * np.swapaxes(vectors, -1, -2)

    def arguments(self, x: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Elements of each argument, then the data."""
        picked = [x[name][place] for name, place in zip(self.names, self.places, strict=True)]
        return [*picked, *self.given]

    def residuals(self, x: Mapping[str, np.ndarray]) -> np.ndarray:
        """Whitened, shape (M, m)."""
        return (self.factor @ self.value(*self.arguments(x))[..., None])[..., 0]

    def cost(self, r: np.ndarray) -> float:
        """``½ Σ ρ(s)``."""
        s = (r * r).sum(axis=-1)
        if self.factors.loss is not None:
            s = _LOSSES[self.factors.loss].cost(s, self.limit)
        return float(s.sum()) / 2

    def linearized(self, x: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Whitened and weighted residuals (M, m) and derivatives (M, m, all arguments)."""
        made = self.both(*self.arguments(x))
        r, J = (self.factor @ made.r[..., None])[..., 0], self.factor @ made.J
        if self.factors.loss is not None:
            s = (r * r).sum(axis=-1)
            root = np.sqrt(_LOSSES[self.factors.loss].weight(s, self.limit))
            r, J = root[:, None] * r, root[:, None, None] * J
        return r, J


def checked_indices(what: str, given: Any, count: int) -> np.ndarray:
    """Whole numbers from 0 to count − 1, one row of them, or an error that names them."""
    found = np.atleast_1d(np.asarray(given))
    if not found.size:
        return np.zeros(0, dtype=int)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise TypeError(f"{what} must be whole numbers in one row, got {given!r}"[:200])
    if found.min() < 0 or found.max() >= count:
        raise ValueError(f"{what} must be from 0 to {count - 1}, got {found.min()}…{found.max()}")
    return found

"""Semi-explicit differential-algebraic systems: the field solves for its algebraic states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import casadi as ca
import numpy as np

from ..codegen._internal import check_count, solve_linear
from ..groups import LieGroup
from ..integrators._internal import newton_steps
from ._signals import Input, Parameter, Quantity, as_signals
from ._tracing import call_with_symbols

MOST_NEWTON_STEPS = 100
# Newton steps from a constant near the solution that have its first and second derivatives exactly,
# and how near that is, as a share of the sizes of the unknowns.
DIFFERENTIATED, FINE = 2, 2.0**-40
# Random points at which a start is judged, besides the nominal one.
TRIED = 3
# Last Newton step, relative to the unknowns, from which on equations count as solved.
LAST_STEP = 1e-6
_NAMES = ("t", "x", "z", "u", "p")


def dae_arguments(
    name: str,
    state: LieGroup,
    f: Callable[..., Any],
    g: Callable[..., Any],
    algebraic: Iterable[Parameter | str],
    start: Callable[..., Any] | None,
    iterations: int,
    quantities: Mapping[str, Callable[..., Any] | Quantity] | None,
    options: dict[str, Any],
) -> tuple[dict[str, Any], AlgebraicEquations]:
    """See `System.from_dae`: the arguments of `System`, and the equations that it solves."""
    unknowns = as_signals(Parameter, algebraic)
    if not unknowns:
        raise ValueError(f"{name}: algebraic names the unknowns z of g = 0, and there are none")
    inputs = as_signals(Input, options.get("inputs", ()))
    parameters = as_signals(Parameter, options.get("parameters", ()))
    symbol = options.get("symbol", ca.SX)
    count = check_count("iterations", iterations, most=MOST_NEWTON_STEPS)
    home = options.get("home")
    nominal = (
        np.zeros(1), state.identity if home is None else np.asarray(home, dtype=float),
        *(np.array([one.nominal for one in group]) for group in (unknowns, inputs, parameters)),
    )  # fmt: skip
    made = _Algebraic(name, state, f, g, symbol, nominal, unknowns, start, count)
    named: dict[str, Any] = {
        entry.name: Quantity(made.entry(i), (), entry.unit, made.slopes(i))
        for i, entry in enumerate(unknowns)
    }
    for key, value in (quantities or {}).items():
        if key in named:
            raise ValueError(f"{name}: the quantity {key!r} is an algebraic state already")
        given = value if isinstance(value, Quantity) else Quantity(value)
        named[key] = Quantity(made.at_solution(given.of), given.entries, given.unit)
    return options | {
        "name": name, "state": state, "f": made.at_solution(f), "inputs": inputs,
        "parameters": parameters, "derivatives": made.derivatives, "quantities": named,
    }, made.equations(name, unknowns, count)  # fmt: skip


@dataclass(frozen=True)
class AlgebraicEquations:
    """Equations ``g(t, x, z, u, p) = 0`` of a system that solves them inside its field.

    Attributes
    ----------
    system : str
    unknowns : tuple of str
    kernel : casadi.Function
        ``(t, x, z, u, p) → g, −∂g/∂z``.
    start : casadi.Function
        ``(t, x, u, p) → z``.
    sizes : ndarray
        Of the unknowns: their nominal values, 1 for none.
    iterations : int
        Newton steps that the field takes.
    """

    system: str
    unknowns: tuple[str, ...]
    kernel: ca.Function
    start: ca.Function
    sizes: np.ndarray
    iterations: int

    def unsolved(self, t: Any, x: Any, u: Any, p: Any) -> str:
        """What Newton's steps leave of which equation at a point; empty where they solve all."""
        start, kernel = (cast(Any, function) for function in (self.start, self.kernel))
        z = begun = np.asarray(start(t, x, u, p)).ravel()
        best, rest = begun, np.full(len(begun), np.inf)
        moved = np.inf
        for taken in range(self.iterations + 1):
            g, K = (np.asarray(each) for each in kernel(t, x, z, u, p))
            if np.isfinite(g).all() and np.abs(g).max() < np.abs(rest).max():
                best, rest = z, g.ravel()
            if taken == self.iterations or not (np.isfinite(g).all() and np.isfinite(K).all()):
                break
            step = np.linalg.lstsq(K, g.ravel(), rcond=None)[0]
            z, moved = z + step, float(np.abs(step / (self.sizes + np.abs(z))).max())
        if np.isfinite(rest).all() and moved <= LAST_STEP:
            return ""

        def told(values: np.ndarray) -> str:
            pairs = zip(self.unknowns, values, strict=True)
            return ", ".join(f"{name} = {value:.4g}" for name, value in pairs)

        i = int(np.abs(rest).argmax())
        left = f"entry {i} of g is {rest[i]:.3g} at best, at {told(best)}"
        if not np.isfinite(rest).all():
            left = f"g is not finite at {told(begun)}"
        return (
            f"the algebraic equations of {self.system} have no solution that {self.iterations} "
            f"Newton steps from {told(begun)} find: {left}: choose x0 and inputs for which g = 0 "
            "has a solution, or give from_dae start=, nominal values of algebraic=, or iterations= "
            "nearer to one"
        )

    def turned(self, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: Any, z: np.ndarray) -> int:
        """The first of some points behind which det ∂g/∂z has another sign, −1 if it keeps it.

        Two such points are on different branches: between them a path of solutions z has a fold.
        """
        kernel = cast(Any, self.kernel)
        given = np.tile(np.asarray(p, dtype=float)[:, None], (1, len(t)))
        _, K = kernel(t[None], x.T, z.T, u.T, given)
        size = len(self.unknowns)
        K = np.asarray(K).reshape(size, -1, size).swapaxes(0, 1)
        if not np.isfinite(K).all():
            return -1
        signs = np.sign(np.linalg.det(K))
        turns = np.flatnonzero(signs[1:] * signs[:-1] < 0)
        return int(turns[0]) if len(turns) else -1


class _Algebraic:
    """The unknowns z of ``g(t, x, z, u, p) = 0`` as functions of the others."""

    def __init__(
        self,
        name: str,
        state: LieGroup,
        f: Callable[..., Any],
        g: Callable[..., Any],
        symbol: Any,
        nominal: tuple[np.ndarray, ...],
        unknowns: tuple[Parameter, ...],
        start: Callable[..., Any] | None,
        iterations: int,
    ) -> None:
        self.state, self.start = state, start
        self.nominal = nominal[2]
        symbols = [symbol.sym(key, len(value)) for key, value in zip(_NAMES, nominal, strict=True)]
        x, z, u = symbols[1:4]
        rate = _column(f"f of {name}", f, symbols, state.dim, "a tangent vector of the state")
        zero = _column(f"g of {name}", g, symbols, len(unknowns), "one for each of algebraic")
        by_z = ca.jacobian(zero, z)
        rank = ca.sprank(by_z)
        if rank < len(unknowns):
            raise ValueError(
                f"{name}: g determines {rank} of {len(unknowns)} algebraic states, its index is "
                "above 1: differentiate the equations without them, or make these states"
            )
        lift = state.rate_matrix(x)
        self._kernel = ca.Function("algebraic_equations", symbols, [zero, -by_z])
        self._check_start(name, unknowns, nominal)
        t, x, z, u, p = symbols
        self.sizes = np.where(self.nominal == 0, 1.0, np.abs(self.nominal))
        sizes = ca.DM(self.sizes)

        def equations(z: Any) -> Any:
            return self._kernel(t, x, z, u, p)

        held = z
        if iterations > DIFFERENTIATED:
            held, _ = newton_steps(equations, z, iterations - DIFFERENTIATED, sizes)
            # CasADi takes floor for constant: derivatives go through the last steps alone.
            held = ca.floor(held / sizes / FINE) * FINE * sizes
        found, largest = newton_steps(equations, held, min(iterations, DIFFERENTIATED), sizes)
        # Newton's method begins at a symbol: a number would make zeros of its matrix structural.
        # Its logarithm is one half's where it solved the equations, and not a number elsewhere.
        is_solved = (largest <= 1) - 0.5
        self._solved = ca.Function(
            "algebraic_states", symbols, [found + (ca.log(is_solved) - np.log(0.5))]
        )
        self._slopes = ca.Function(
            "algebraic_slopes", symbols,
            [ca.jacobian(value, x) @ lift for value in (rate, zero)]
            + [ca.jacobian(value, of) for value in (rate, zero) for of in (z, u)],
        )  # fmt: skip

    def _check_start(
        self, name: str, unknowns: tuple[Parameter, ...], nominal: tuple[np.ndarray, ...]
    ) -> None:
        """Refuse numbers to begin with at which g changes with z nowhere that was tried."""
        if self.start is not None:
            return
        rng = np.random.default_rng(0)
        points = [list(nominal)]
        for seed in range(TRIED):
            point = [rng.uniform(0.5, 1.5, len(value)) for value in nominal]
            points.append([point[0], self.state.random(seed=seed), self.nominal, *point[3:]])
        if all(map(self._is_singular, points)):
            told = ", ".join(f"{entry.name} = {entry.nominal:g}" for entry in unknowns)
            raise ValueError(
                f"{name}: Newton's method cannot begin at {told}: the derivative of g by z is "
                "singular there. Give other nominal values, algebraic=[Parameter(name, unit, "
                "nominal)], or start="
            )

    def _is_singular(self, point: list[np.ndarray]) -> bool:
        """Whether the derivative of g by z is finite and singular, whatever the units."""
        K = np.asarray(self._kernel(*point)[1])
        if not np.isfinite(K).all():
            return False
        for axis in (1, 0):
            size = np.abs(K).max(axis=axis, keepdims=True)
            K = K / np.where(size > 0, size, 1.0)
        return bool(np.linalg.matrix_rank(K) < len(K))

    def equations(
        self, name: str, unknowns: tuple[Parameter, ...], iterations: int
    ) -> AlgebraicEquations:
        """As data of the system that solves them."""
        is_sx = self._kernel.is_a("SXFunction")
        given: list[Any] = self._kernel.sx_in() if is_sx else self._kernel.mx_in()
        t, x, _, u, p = given
        start = ca.Function("algebraic_start", [t, x, u, p], [self._begun(t, x, u, p)])
        names = tuple(entry.name for entry in unknowns)
        return AlgebraicEquations(name, names, self._kernel, start, self.sizes, iterations)

    def _begun(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        """Where Newton's method begins."""
        z: Any = ca.DM(self.nominal) if self.start is None else self.start(t, x, u, p)
        return ca.vertcat(*z) if isinstance(z, list | tuple) else ca.vertcat(z)

    def solution(self, t: Any, x: Any, u: Any, p: Any) -> Any:
        """z; not a number where Newton's steps did not end at a solution."""
        return self._solved(t, x, self._begun(t, x, u, p), u, p)

    def at_solution(self, build: Callable[..., Any]) -> Callable[..., Any]:
        """``(t, x, z, u, p) → value`` as a function of the others."""
        return lambda t, x, u, p: build(t, x, self.solution(t, x, u, p), u, p)

    def entry(self, i: int) -> Callable[..., Any]:
        """One of the unknowns."""
        return lambda t, x, u, p: self.solution(t, x, u, p)[i]

    def slopes(self, i: int) -> Callable[..., Any]:
        """``(t, x, u, p) → value, by_x, by_u`` of one of the unknowns."""

        def derivatives(t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any, Any]:
            z, _, (by_x, by_u) = self._differentiated(t, x, u, p)
            return z[i], by_x[i, :], by_u[i, :]

        return derivatives

    def derivatives(self, t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any]:
        """Those of the field: with ``dz = −g_z⁻¹ (g_x dx + g_u du)``."""
        _, (f_x, f_z, f_u), (z_x, z_u) = self._differentiated(t, x, u, p)
        return f_x + f_z @ z_x, f_u + f_z @ z_u

    def _differentiated(self, t: Any, x: Any, u: Any, p: Any) -> tuple[Any, Any, Any]:
        z = self.solution(t, x, u, p)
        f_x, g_x, f_z, f_u, g_z, g_u = self._slopes(t, x, z, u, p)
        moved = -solve_linear(g_z, ca.horzcat(g_x, g_u))
        n = g_x.shape[1]
        return z, (f_x, f_z, f_u), (moved[:, :n], moved[:, n:])


def _column(label: str, build: Any, symbols: list[Any], rows: int, what: str) -> Any:
    """What a function of (t, x, z, u, p) returns, as a column of so many rows."""
    value = call_with_symbols(label, build, symbols, _NAMES)
    column: Any = ca.vertcat(*value) if isinstance(value, list | tuple) else value
    if getattr(column, "shape", None) != (rows, 1):
        found = getattr(column, "shape", type(value).__name__)
        raise ValueError(f"{label} returned {found}, expected {rows} numbers, {what}")
    return column

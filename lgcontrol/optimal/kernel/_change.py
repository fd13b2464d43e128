"""Changes of solutions to first order: by the kernel, and without one by a sparse factorization."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import casadi as ca
import numpy as np
import scipy

from ...codegen import ModelFunction
from ...codegen._internal import Beside
from .._expressions import named_function
from .._settings import Settings
from .._stage_model import StageModel
from .._transcription import Nodes, Setting, fill_stages
from ._library import Stages, load_functions, load_kernel
from ._memory import KernelMemory
from ._table import CONVERGED, NOT_FINITE, Change, RowState


class ChangeSearch(NamedTuple):
    """Numbers of the search for a change.

    It ends at the residual `goal`, relative to the first; up to `accepted` the change counts as
    found. More `rounds` are needed the less exact the second derivatives of sweeps are. `wall` is a
    weight that fixes controls, of the scaled cost.
    """

    goal: float = 1e-11
    accepted: float = 1e-6
    rounds: int = 60
    wall: float = 1e12


# Results of a stage, by the data that they are differentiated by.
DATA = ("x_ref", "u_ref", "p")
SEARCH = ChangeSearch()
FREE, HELD, EXCEEDED = RowState


class Optimum(NamedTuple):
    """A solution with its multipliers, and what stays as it is where it changes.

    Multipliers are `lam` (N, n) of the dynamics and `price` of rows. `hold` is `FREE`, `HELD` at
    its limit, or a soft row that is `EXCEEDED`; `weight` is that of the preconditioner for held
    rows, and the penalty of exceeded ones. `fix` (N, m): controls at their limits. `arrival` are
    second derivatives of the cost of a free first state.
    """

    nodes: Nodes
    setting: Setting
    lam: np.ndarray
    price: np.ndarray
    hold: np.ndarray
    weight: np.ndarray
    fix: np.ndarray
    scales: np.ndarray
    scale: float
    arrival: np.ndarray


class FoundChanges(NamedTuple):
    """Changes, one a direction: each array has the directions in front.

    `lam` and `nu` are of multipliers of the dynamics and of held rows, `left_…` what remains of
    stationarity by the first state and by controls, and minus the change of rows that are not held.
    `data` are gradients by x_ref, u_ref and p, for right-hand sides.
    """

    x: np.ndarray
    u: np.ndarray
    lam: np.ndarray
    nu: np.ndarray
    left_first: np.ndarray
    left_u: np.ndarray
    left_rows: np.ndarray
    cost: np.ndarray
    data: tuple[np.ndarray, ...]
    residual: float
    rounds: int
    is_found: bool
    p: np.ndarray


class ChangeSolver:
    """Changes of solutions of one problem, in the kernel, or in NumPy without `stages`."""

    def __init__(self, model: StageModel, settings: Settings, stages: Any) -> None:
        self.model, self.settings = model, settings
        self._parts, self._of_problem = change_functions(model), stages
        self._memory: Any = None
        self._build: Beside[Stages] | None = None
        self._factored: Optimum | None = None
        self._lock = Lock()
        if stages is not None and load_kernel() is not None:
            self._take(load_functions(self._parts, is_compiled=False))
            if not isinstance(stages.keep, dict):
                name = f"sensitivities of {model.problem.system.name}"
                self._build = Beside(name, lambda: load_functions(self._parts))
        problem, once = model.problem, model.transcription
        self.N, self.n, self.m = problem.horizon, model.n, model.m
        self.nq, self.nu = problem.system.state.nq, problem.system.n_inputs
        self.nr, self.np = len(once.rows.names), len(problem.nominal_parameters)
        M = self.N + 1
        self.shapes = (M, self.n), (self.N, self.m), (self.N, self.n), (M, self.nr)
        self.given = (M, self.nq), (M, self.nu), (self.np,), (M, self.nr)

    def forward(
        self, at: Optimum, data: tuple[np.ndarray, ...], first: np.ndarray, x: np.ndarray,
        u: np.ndarray,
    ) -> FoundChanges:  # fmt: skip
        """Changes with the data: of x_ref, u_ref, p and of the multipliers of exceeded rows.

        `first` changes the slope of what a free first state costs, x the first state, u controls
        that stay at their limits.
        """
        count = len(x)
        changes = np.zeros((count, self._size(self.shapes)))
        changes[:, : self.n] = x
        after = (self.N + 1) * self.n
        changes[:, after : after + self.N * self.m] = u.reshape(count, -1)
        left = np.zeros_like(changes)
        left[:, : self.n] = -first
        column = np.hstack([part.reshape(count, -1) for part in data])
        return self._run(at, changes, left, column, is_adjoint=False)

    def adjoint(self, at: Optimum, x: np.ndarray, u: np.ndarray) -> FoundChanges:
        """Solutions of the conditions for right-hand sides x (k, N + 1, n), u (k, N, m)."""
        count, size = len(x), self._size(self.shapes)
        left = np.zeros((count, size))
        left[:, : x[0].size + u[0].size] = np.hstack([x.reshape(count, -1), u.reshape(count, -1)])
        column = np.zeros((count, (self.N + 1) * (self.nq + self.nu + self.np)))
        return self._run(at, np.zeros((count, size)), left, column, is_adjoint=True)

    def _take(self, functions: Stages) -> None:
        self._functions, stages = functions, self._of_problem
        scratch = max(stages.scratch, functions.scratch)
        self._memory = KernelMemory(self.model, stages._replace(scratch=scratch), self.settings, 1)
        self._factored = None

    def prepare(self) -> ChangeSolver:
        """Wait for machine code, if there is to be some."""
        with self._lock:
            if self._build is not None:
                self._build.wait()
                self._take_built()
        return self

    def _take_built(self) -> None:
        """Machine code that was built beside the program, if it is there."""
        if self._build is not None and self._build.is_done:
            made, self._build = self._build.made, None
            if made is not None:
                self._take(made)

    def _size(self, shapes: Any) -> int:
        return sum(int(np.prod(shape)) for shape in shapes)

    def _run(
        self, at: Optimum, changes: np.ndarray, left: np.ndarray, data: np.ndarray, *,
        is_adjoint: bool,
    ) -> FoundChanges:  # fmt: skip
        run = self._in_numpy if self._memory is None else self._in_kernel
        with self._lock, np.errstate(all="ignore"):
            cost, residual, rounds, is_found = run(at, changes, left, data, is_adjoint)
        x, u, lam, nu = self._split(changes, self.shapes)
        left_x, left_u, _, left_rows = self._split(left, self.shapes)
        found: tuple[np.ndarray, ...] = ()
        if is_adjoint:
            M = self.N + 1
            of = self._split(data, ((M, self.nq), (M, self.nu), (M, self.np)))
            found = of[0], of[1], of[2].sum(axis=1)
        return FoundChanges(
            x, u, lam, nu, left_x[:, 0], left_u, left_rows, cost, found, residual, rounds, is_found,
            np.zeros((len(changes), self.np)),
        )  # fmt: skip

    def _split(self, columns: np.ndarray, shapes: Any) -> list[np.ndarray]:
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1]
        parts = np.split(columns, ends, axis=1)
        return [
            part.reshape(len(columns), *shape) for part, shape in zip(parts, shapes, strict=True)
        ]

    # -- in the kernel -----------------------------------------------------------------------------

    def _in_kernel(
        self, at: Optimum, changes: np.ndarray, left: np.ndarray, data: np.ndarray,
        is_adjoint: bool,
    ) -> tuple[np.ndarray, float, int, bool]:  # fmt: skip
        self._take_built()
        memory, nodes, model = self._memory, at.nodes, self.model
        memory.give(at.setting, nodes.t, nodes.x[0], model.sides.weight)
        memory.parts["x"][:], memory.parts["u"][:] = nodes.x, nodes.u
        memory.parts["scales"][:] = at.scales
        count, size = changes.shape
        rounds = min(SEARCH.rounds, size)
        cost = np.zeros(count)
        arrays = {
            "lam": at.lam, "price": at.price, "weight": at.weight, "arrival": at.arrival,
            "none": np.zeros(max(map(int, map(np.prod, self.given)))),
            "hold": at.hold.astype(np.int64), "fix": at.fix.astype(np.int64), "data": data,
            "changes": changes, "left": left, "cost": cost,
            "memory": np.zeros((2 + 2 * rounds) * size + 8),
        }  # fmt: skip
        arrays = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
        change = Change(
            directions=count, parameters=self.np, rounds=rounds, is_adjoint=is_adjoint,
            is_factored=self._factored is at,
            goal=SEARCH.goal, accepted=SEARCH.accepted, wall=SEARCH.wall, scale=at.scale,
            **{name: array.ctypes.data for name, array in arrays.items()},
        )  # fmt: skip
        for name, function in self._functions.functions.items():
            setattr(change, name, function)
        given = memory.model, memory.task, memory.settings, change
        status = memory.kernel.change(*(ctypes.addressof(struct) for struct in given))
        self._factored = None if status == NOT_FINITE else at
        return cost, change.residual, change.taken, status == CONVERGED

    # -- in NumPy ----------------------------------------------------------------------------------

    def _in_numpy(
        self, at: Optimum, changes: np.ndarray, left: np.ndarray, data: np.ndarray,
        is_adjoint: bool,
    ) -> tuple[np.ndarray, float, int, bool]:  # fmt: skip
        model, n, N = self.model, self.n, self.N
        ex, size = model.expand(at.nodes, at.setting), at.scales[self.nr :]
        held, fixed = at.hold == HELD, at.fix.astype(bool)
        exceeded = np.where(at.hold == EXCEEDED, at.weight, 0.0)
        weights = [
            np.tile(at.scale * size[:n], (N + 1, 1)), np.where(fixed, 0.0, at.scale * size[n:]),
            np.tile(1 / size[:n], (N, 1)), np.where(held, at.scales[: self.nr], 0.0),
        ]  # fmt: skip
        weights[0][0, np.setdiff1d(np.arange(n), model.free)] = 0.0
        w = np.concatenate([part.ravel() for part in weights]) ** 2
        calls = self._calls(at)
        F = np.concatenate([ex.A, ex.B], axis=2)

        def conditions(change: np.ndarray, way: np.ndarray | None) -> tuple[np.ndarray, float]:
            ((x, u, lam, nu),) = zip(*self._split(change[None], self.shapes), strict=True)
            way = np.zeros(self._size(self.given)) if way is None else way
            ((dx, du, dp, shift),) = zip(*self._split(way[None], self.given), strict=True)
            call, last = calls["along"], calls["end_along"]
            for name, value in (
                ("dx", x[:-1]), ("dv", u), ("dx_ref", dx[:-1]), ("du_ref", du[:-1]), ("dp", dp)
            ):  # fmt: skip
                call.inputs[name][:] = value
            for name, value in (("dx", x[-1]), ("du", du[-1]), ("dx_ref", dx[-1]), ("dp", dp)):
                last.inputs[name][:] = value
            found, end = call(), last()
            rows = np.concatenate([found.rows, end.rows[None]])
            prices = np.where(held, nu, exceeded * rows)
            prices += np.where(at.hold == EXCEEDED, shift, 0.0)
            own = found.slope + np.einsum("krz,kr->kz", ex.G, prices[:-1])
            own += np.einsum("kxz,kx->kz", F, lam)
            stat = np.concatenate([own[:, :n], (end.slope + ex.G_end.T @ prices[-1])[None]])
            stat[1:] -= lam
            stat[0] += at.arrival @ x[0] if len(model.free) else 0.0
            cost = float(found.cost.sum() + end.cost)
            cost += float((at.price * rows)[at.hold == EXCEEDED].sum())
            parts = stat, own[:, n:], found.gap - x[1:], rows
            return np.concatenate([part.ravel() for part in parts]), cost

        unknown = np.flatnonzero(w)  # and the equations; others have given values
        matrix = self._matrix(lambda way: conditions(way, None)[0], unknown)
        try:
            solve = scipy.sparse.linalg.splu(matrix).solve
        except RuntimeError:  # singular, as where active limits repeat each other

            def solve(right: np.ndarray) -> np.ndarray:
                return np.linalg.lstsq(matrix.toarray(), right, rcond=None)[0]

        costs, worst = np.zeros(len(changes)), 0.0
        for d, (y, rest) in enumerate(zip(changes, left, strict=True)):
            way, wanted = None if is_adjoint else data[d], rest.copy()
            rest -= conditions(y, way)[0]
            first = np.sqrt((w * rest) @ rest)
            y[unknown] += solve(rest[unknown])
            image, costs[d] = conditions(y, way)
            rest[:] = wanted - image
            length = np.sqrt((w * rest) @ rest)
            worst = max(worst, length / first if first > 0 else 0.0)
            if is_adjoint:
                data[d] = self._against(at, calls, y, rest, exceeded)
        return costs, worst, 1, bool(worst <= SEARCH.accepted)

    def _matrix(self, image: Callable[[np.ndarray], np.ndarray], unknown: np.ndarray) -> Any:
        """That of a linear map between columns, by its images of every third node together.

        Numbers of a node change equations of its own and of those next to it alone.
        """
        kinds = [np.indices(shape).reshape(2, -1) for shape in self.shapes]
        firsts = np.cumsum([0, *(shape[1] for shape in self.shapes)])
        node = np.concatenate([k for k, _ in kinds])[unknown]
        place = np.concatenate([j + i for (_, j), i in zip(kinds, firsts, strict=False)])[unknown]
        number = np.full((self.N + 3, firsts[-1]), -1)  # a node more at both ends
        number[node + 1, place] = np.arange(len(unknown))
        matrix = scipy.sparse.csc_array((len(unknown),) * 2)
        for third, j in np.ndindex(3, int(firsts[-1])):
            way = np.zeros(self._size(self.shapes))
            way[unknown[(node % 3 == third) & (place == j)]] = 1.0
            found, column = image(way)[unknown], number[node + (third - node + 1) % 3, j]
            (on,) = ((column >= 0) & (found != 0)).nonzero()
            matrix += scipy.sparse.csc_array((found[on], (on, column[on])), shape=matrix.shape)
        return matrix

    def _calls(self, at: Optimum) -> dict[str, Any]:
        """Functions of all stages and of the end, at a solution."""
        once, nodes, setting = self.model.transcription, at.nodes, at.setting
        found = {}
        for name, (function, shared) in self._parts.items():
            if shared is None:
                call = function.in_place()
                once.fill_end(call.inputs, nodes, setting)
                call.inputs["price"][:] = at.price[-1]
            else:
                call = once.call_of(function, *shared[len(once.shared) :])
                fill_stages(call.inputs, nodes, setting)
                call.inputs["lam"][:], call.inputs["price"][:] = at.lam, at.price[:-1]
            found[name] = call
        return found

    def _against(
        self, at: Optimum, calls: dict[str, Any], y: np.ndarray, rest: np.ndarray,
        exceeded: np.ndarray,
    ) -> np.ndarray:  # fmt: skip
        ((x, u, lam, nu),) = zip(*self._split(y[None], self.shapes), strict=True)
        rows = self._split(rest[None], self.shapes)[3][0]
        rows = np.where(at.hold == EXCEEDED, -exceeded * rows, nu)
        given, end = calls["against"].inputs, calls["end_against"].inputs
        given["of_gap"][:], given["of_rows"][:] = lam, rows[:-1]
        given["of_x"][:], given["of_u"][:] = x[:-1], u
        end["of_rows"][:], end["of_x"][:] = rows[-1], x[-1]
        found, last = calls["against"](), calls["end_against"]()
        parts = [
            np.concatenate([getattr(found, a), getattr(last, b)[None]])
            for a, b in (("by_x_ref", "by_x_ref"), ("by_u_ref", "by_u"), ("by_p", "by_p"))
        ]
        return np.concatenate([part.ravel() for part in parts])


def change_functions(model: StageModel) -> dict[str, tuple[ModelFunction, tuple[str, ...] | None]]:
    """Derivatives of stages, each with the arguments that all stages share.

    With the Lagrangian ``L = cost + lamᵀ gap + priceᵀ rows`` of a stage, by error coordinates of
    the state and by controls:

    ``along``
        ``(…, lam, price, dx, du, dx_ref, du_ref, dp) → cost, gap, rows, slope``, changes of cost,
        defect, rows and ``∇L`` along a direction.
    ``against``
        ``(…, lam, price, of_gap, of_rows, of_x, of_u) → by_x_ref, by_u_ref, by_p``, gradients of
        ``of_gapᵀ gap + of_rowsᵀ rows + [of_x, of_u]ᵀ ∇L``.

    ``end_along`` and ``end_against`` are those of the end, where u is the input of the reference.
    """
    once = model.transcription._functions
    shared = model.transcription.shared
    made = _of(model, once.stage_values, "stage_values", DATA)
    ended = _of(model, once.terminal_values, "terminal_values", ("u", "x_ref", "p"))
    return {
        "along": (made[0], (*shared, "dp")),
        "end_along": (ended[0], None),
        "against": (made[1], shared),
        "end_against": (ended[1], None),
    }


def _of(
    model: StageModel, values: ModelFunction, word: str, data: tuple[str, ...]
) -> tuple[ModelFunction, ModelFunction]:
    n, m, (inputs, z, moved) = model.n, model.m, model.displaced(values)
    sym, is_stage = type(z).sym, "x_next" in inputs
    found: dict[str, Any] = dict(
        zip(values.results, values.function.call([*moved.values()]), strict=True)
    )
    parts = {name: found[name] for name in ("cost", "gap", "rows") if name in found}
    prices = {"lam": sym("lam", n)} if is_stage else {}
    prices["price"] = sym("price", parts["rows"].shape[0])
    lagrangian = parts["cost"] + ca.dot(prices["price"], parts["rows"])
    if is_stage:
        lagrangian += ca.dot(prices["lam"], parts["gap"])
    parts["slope"] = ca.gradient(lagrangian, z)
    at_zero = ca.DM.zeros(*z.shape)

    def function(name: str, given: dict[str, Any], results: dict[str, Any]) -> ModelFunction:
        values_of: Any = ca.substitute([*results.values()], [z], [at_zero])
        values_of = ca.cse(values_of) if isinstance(z, ca.SX) else values_of
        named = values.name.replace(word, name if is_stage else f"end_{name}")
        dense = dict(zip(results, map(ca.densify, values_of), strict=True))
        return named_function(named, given, dense)

    ways = {f"d{name}": sym(f"d{name}", *inputs[name].shape) for name in data}
    steps = {"dx": sym("dx", n)} | ({"dv": sym("dv", m)} if is_stage else {})
    stacked = ca.vertcat(*parts.values())
    symbols, moves = [z, *(inputs[name] for name in data)], [ca.vertcat(*steps.values())]
    moves += [*ways.values()]
    if isinstance(z, ca.SX):  # together
        symbols, moves = [ca.vertcat(*symbols)], [ca.vertcat(*moves)]
    change = sum(map(ca.jtimes, [stacked] * len(moves), symbols, moves), type(z)(0))
    ends = np.cumsum([0, *(part.shape[0] for part in parts.values())]).tolist()
    changes = dict(zip(parts, ca.vertsplit(change, ends), strict=True))
    both, order = steps | ways, ("dx", "dv", "du", "dx_ref", "du_ref", "dp")
    given = {name: both[name] for name in order if name in both}
    along = function("along", inputs | prices | given, changes)
    of = {"of_gap": sym("of_gap", n)} if is_stage else {}
    of["of_rows"] = sym("of_rows", parts["rows"].shape[0])
    of["of_x"] = sym("of_x", n)
    total = ca.dot(of["of_rows"], parts["rows"])
    if is_stage:
        of["of_u"] = sym("of_u", m)
        total += ca.dot(of["of_gap"], parts["gap"])
    total += ca.jtimes(lagrangian, z, ca.vertcat(of["of_x"], *([of["of_u"]] if is_stage else [])))
    slopes = {f"by_{name}": ca.gradient(total, inputs[name]) for name in data}
    return along, function("against", inputs | prices | of, slopes)


def prior_derivatives(model: StageModel) -> ca.Function:
    """``(x, x0, P, p) → slope, bend`` of the cost of a free first state, exactly.

    By error coordinates of x, then of the given start x0: slope (2n,), bend (2n, 2n).
    """
    system, n = model.problem.system, model.n
    x, x0 = (ca.SX.sym(name, system.state.nq) for name in ("x", "x0"))
    P, p, d = ca.SX.sym("P", n, n), ca.SX.sym("p", system.n_parameters), ca.SX.sym("d", 2 * n)
    moved = system.retract(x, d[:n], p), system.retract(x0, d[n:], p)
    error = ca.DM(system.error_selection) @ system.state.minus(*moved)
    bend, slope = ca.hessian(ca.dot(error, P @ error) / 2, d)
    at_zero: Any = ca.substitute([slope, bend], [d], [ca.DM.zeros(2 * n)])
    return ca.Function("prior", [x, x0, P, p], [ca.densify(value) for value in at_zero])

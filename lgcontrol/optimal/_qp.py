"""QP back-ends by name, behind one interface, each result checked against the conditions."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import unknown_name
from ._condensing import Condensed
from ._form import FlatQP, Form, Places, Structure
from ._optimality import qp_residual
from ._sparse_form import Sparse
from ._stage_qp import StageQP, StageQPSolution

# What counts as solved, relative to the gradient: first-order back-ends reach 1e-6, a search
# direction needs far less, and an infeasible problem misses it by orders of magnitude.
QP_TOLERANCE = 1e-4


class Recipe(NamedTuple):
    """How a back-end takes a stage QP.

    Attributes
    ----------
    form : Form
    plugin : str
        Name of CasADi's interface.
    options : dict
    """

    form: Form
    plugin: str
    options: dict[str, Any]


QP_SOLVERS: dict[str, Recipe] = {
    "daqp": Recipe(Condensed(), "daqp", {}),
    "piqp": Recipe(Sparse(), "piqp", {"piqp": {"eps_abs": 1e-9, "eps_rel": 1e-10}}),
    "ipqp": Recipe(
        Condensed(), "ipqp", {"print_iter": False, "print_header": False, "print_info": False}
    ),
}
"""Back-ends by name: "daqp" (dense, active set, exact) for short horizons, "piqp" (sparse, interior
point) for long ones and for soft bounds, "ipqp" (dense, interior point, CasADi's own) to compare
with. Others that CasADi brings fail on some of the problems that come up here: qrqp cycles where
many bounds are soft, osqp and proxqp miss the accuracy, hpipm repeats its first answer."""

# Most bounds on states are idle most of the time: a solve begins with the rows that limited the
# last solution, adds those that the result exceeds by more than KEPT, and takes all in the last
# round. A solution without some rows that keeps them all the same is the solution with them.
ROUNDS, KEPT = 3, 1e-9
# A row whose multipliers are below this share of the largest is idle.
IDLE = 1e-6

# Up to so many unknowns a dense active set beats a sparse interior point.
DENSE_LIMIT = 240


class QPSolver:
    """Solves stage QPs of any sizes with one back-end; keeps what it set up for each.

    Parameters
    ----------
    name : str
        A key of `QP_SOLVERS`, or "auto": "daqp" for few unknowns without slacks, "piqp" for others
        and where that fails.

    Raises
    ------
    ValueError
        If there is no such back-end; the message lists those there are.

    Examples
    --------
    >>> QPSolver("daqp").name
    'daqp'
    """

    def __init__(self, name: str = "auto") -> None:
        if name != "auto" and name not in QP_SOLVERS:
            raise ValueError(unknown_name("QP solver", name, ("auto", *QP_SOLVERS)))
        self.name = name
        self._programs: dict[Any, _Program] = {}
        self._watched = np.zeros(0, dtype=bool)  # rows that limited the last solution

    def __getstate__(self) -> dict[str, Any]:
        """Without the programs, which hold memory of the back-end."""
        return self.__dict__ | {"_programs": {}}

    def solve(self, qp: StageQP) -> StageQPSolution:
        """Solve; never raises because the problem is hard or infeasible.

        Parameters
        ----------
        qp : StageQP

        Returns
        -------
        StageQPSolution
        """
        if self.name != "auto":
            return self._solve_with(self.name, qp)
        rows = qp.active.any(axis=0)
        chosen = self._watched & rows if self._watched.shape == rows.shape else rows & False
        result = self._solve_part(replace(qp, active=qp.active & chosen))
        spent, solves = result.time, 1
        while not np.array_equal(chosen, rows):
            missed = (qp.excess(result.x, result.u) > KEPT).any(axis=0) & ~chosen
            if result.solved and not missed.any():
                break
            chosen = chosen | missed if result.solved and solves + 1 < ROUNDS else rows
            result = self._solve_part(replace(qp, active=qp.active & chosen))
            spent, solves = spent + result.time, solves + 1
        prices = np.abs(result.row_multipliers)
        self._watched = (prices > IDLE * prices.max(initial=0.0)).any(axis=0)
        return replace(result, time=spent)

    def reset(self) -> None:
        """Forget earlier solutions, which later solves start from."""
        self._watched = np.zeros(0, dtype=bool)
        for program in self._programs.values():
            program.memory["lam_x"][:], program.memory["lam_a"][:] = 0.0, 0.0

    def _solve_part(self, qp: StageQP) -> StageQPSolution:
        """Solve with all of its rows."""
        horizon, _, m = qp.sizes
        soft = np.isfinite(qp.soft) & qp.active.any(axis=0)
        if soft.any() or horizon * m > DENSE_LIMIT:
            return self._solve_with("piqp", qp)
        first = self._solve_with("daqp", qp)
        if first.solved:
            return first
        # Long horizons of unstable systems, or with bounds on states, condense badly.
        second = self._solve_with("piqp", qp)
        return replace(second, time=first.time + second.time)

    def _solve_with(self, name: str, qp: StageQP) -> StageQPSolution:
        started = time.perf_counter()
        slacks = _Slacks.of(qp)
        recipe = QP_SOLVERS[name]
        key = (
            name, qp.sizes, qp.active.tobytes(), slacks.rows.tobytes(), slacks.signs.tobytes(),
        )  # fmt: skip
        if key not in self._programs:
            structure = slacks.extend_structure(recipe.form.structure(qp))
            self._programs[key] = _Program(recipe, structure)
        program = self._programs[key]
        flat = slacks.extend(recipe.form.flatten(qp))
        z, bound_prices, row_prices = program.run(flat)
        u = np.clip(recipe.form.inputs(qp, z), qp.u_lower, qp.u_upper)
        rows, first = np.zeros(qp.active.shape), program.structure.first
        rows[qp.active] = row_prices[first : first + int(qp.active.sum())]
        bounds = recipe.form.inputs(qp, bound_prices).copy()
        x = recipe.form.states(qp, z, u)
        prices = recipe.form.adjoints(qp, x, u, row_prices, rows)
        solution = StageQPSolution(x, u, prices, bounds, rows, False, np.inf, 0.0)
        # The gradient by the inputs: of a condensed QP it holds the states' share as well.
        scale = 1.0 + np.abs(recipe.form.inputs(qp, flat.g)).max(initial=0.0)
        error = qp_residual(qp, solution, scale)
        return replace(
            solution,
            solved=bool(error <= QP_TOLERANCE),
            error=error,
            time=time.perf_counter() - started,
        )


class _Program:
    """One set-up of a back-end: fixed sparsity, memory that its inputs and outputs live in."""

    def __init__(self, recipe: Recipe, structure: Structure) -> None:
        self.structure = structure
        n, rows = structure.unknowns, structure.rows
        self.order_h, h = _compress(structure.H, n, n)
        self.order_a, a = _compress(structure.A, rows, n)
        options = {"error_on_fail": False} | recipe.options
        self.conic = ca.conic("qp", recipe.plugin, {"h": h, "a": a}, options)
        self.buffer: Any  # CasADi declares another signature than it has
        self.buffer, self.evaluate = self.conic.buffer()
        self.memory: dict[str, np.ndarray] = {}
        for i, name in enumerate(self.conic.name_in()):
            self.memory[name] = np.zeros(self.conic.nnz_in(i))
            if self.memory[name].size:
                self.buffer.set_arg(i, self.memory[name].data)
        for i, name in enumerate(self.conic.name_out()):
            self.memory[name] = np.zeros(self.conic.nnz_out(i))
            if self.memory[name].size:
                self.buffer.set_res(i, self.memory[name].data)

    def run(self, flat: FlatQP) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Unknowns, multipliers of their bounds and of the rows; NaN for want of numbers."""
        memory = self.memory
        if not all(np.isfinite(values).all() for values in (flat.H, flat.A, flat.g)):
            nothing = [np.full_like(memory[name], np.nan) for name in ("x", "lam_x", "lam_a")]
            return nothing[0], nothing[1], nothing[2]
        memory["h"][:] = flat.H[self.order_h]
        memory["a"][:] = flat.A[self.order_a]
        memory["g"][:] = flat.g
        memory["lbx"][:], memory["ubx"][:] = flat.lower, flat.upper
        memory["lba"][:], memory["uba"][:] = flat.row_lower, flat.row_upper
        # Successive problems are alike: the last multipliers are a good start, and zero is for z.
        memory["lam_x0"][:], memory["lam_a0"][:] = memory["lam_x"], memory["lam_a"]
        self.evaluate()
        result = memory["x"].copy(), memory["lam_x"].copy(), memory["lam_a"].copy()
        for name in ("lam_x", "lam_a"):  # a failure must not be the start of the next solve
            np.nan_to_num(memory[name], copy=False, nan=0.0, posinf=0.0, neginf=0.0)
        return result


@dataclass(frozen=True, eq=False)
class _Slacks:
    """Slack variables of a stage QP: one per finite limit of each soft active row."""

    rows: np.ndarray  # position of the row among the active ones
    signs: np.ndarray  # −1 for the upper limit, +1 for the lower one
    weights: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, qp: StageQP) -> _Slacks:
        soft = np.broadcast_to(qp.soft, qp.active.shape)[qp.active]
        upper = np.flatnonzero(np.isfinite(soft) & np.isfinite(qp.upper[qp.active]))
        lower = np.flatnonzero(np.isfinite(soft) & np.isfinite(qp.lower[qp.active]))
        rows = np.concatenate([upper, lower])
        signs = np.concatenate([-np.ones(len(upper)), np.ones(len(lower))])
        return cls(rows, signs, soft[rows])

    def extend_structure(self, core: Structure) -> Structure:
        count = len(self.rows)
        own = core.unknowns + np.arange(count)
        return Structure(
            core.unknowns + count,
            core.rows,
            core.first,
            Places.join(core.H, Places(own, own)),
            Places.join(core.A, Places(core.first + self.rows, own)),
        )

    def extend(self, core: FlatQP) -> FlatQP:
        if not len(self.rows):
            return core
        zeros = np.zeros(len(self.rows))
        return FlatQP(
            np.concatenate([core.H, self.weights]),
            np.concatenate([core.A, self.signs]),
            np.concatenate([core.g, self.weights]),
            np.concatenate([core.lower, zeros]),
            np.concatenate([core.upper, zeros + np.inf]),
            core.row_lower,
            core.row_upper,
        )


def _compress(places: Places, rows: int, columns: int) -> tuple[np.ndarray, ca.Sparsity]:
    """Order that sorts entries column after column, as CasADi stores them, and the sparsity."""
    order = np.lexsort((places.rows, places.columns))
    starts = np.concatenate([[0], np.cumsum(np.bincount(places.columns, minlength=columns))])
    return order, ca.Sparsity(rows, columns, starts.tolist(), places.rows[order].tolist())

"""StageModel: what an interior point asks of a problem, stage by stage, in error coordinates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import casadi as ca
import numpy as np

from ..codegen import ModelFunction, prepare
from ..integrators import MuntheKaas, Tableau, get_method
from ..integrators._internal import combine
from ..systems import System, step_derivatives
from ..systems._internal import resolved_step
from ._expressions import named_function
from ._implicit_hessians import implicit_hessian
from ._masks import bounded_rows
from ._settings import DEFAULT, Settings
from ._stage_functions import lower_product, mirrored
from ._transcription import CALLS, Nodes, Setting, Transcription, fill_stages

# First and second derivatives of a stage are one function where they have as many operations and
# share a tenth: those of an arm with seven joints (142,000) share 17 %, those of a free base with
# three joints (183,000) 2 %, those of a quadrotor (22,000) 4 %. Apart, first ones are enough for a
# Gauss–Newton step.
SHORTEST_JOINT, LEAST_SHARED = 50_000, 0.1


class Sides(NamedTuple):
    """One-sided rows ``sign (g − limit) ≤ 0`` and equalities ``g = target`` of a problem.

    `row` (sides,) says which row of the problem each limits, `sign` is +1 for an upper and −1 for a
    lower limit. `weight` is that of the price ``w (e + e²/2)`` of an excess; infinite for hard
    rows. `active` (N + 1, sides) are nodes at which they hold, `counts` what each of these counts
    of a soft row, in mean steps. `equal` (equalities,) are rows whose limits coincide.
    """

    row: np.ndarray
    sign: np.ndarray
    limit: np.ndarray
    weight: np.ndarray
    active: np.ndarray
    counts: np.ndarray
    equal: np.ndarray
    target: np.ndarray
    equal_active: np.ndarray


class Expansion(NamedTuple):
    """A problem about nodes, to first order, and the Gauss–Newton cost.

    Shapes: gaps (N, n), rows (N + 1, rows), A (N, n, n), B (N, n, m). Gradient g (N, n + m) and
    Hessian H of the cost, derivatives G (N, rows, n + m) of the rows are by tangent vectors of the
    state, then controls. At the end they are (n,), (n, n), (rows, n).
    """

    cost: float
    gaps: np.ndarray
    rows: np.ndarray
    A: np.ndarray
    B: np.ndarray
    g: np.ndarray
    H: np.ndarray
    G: np.ndarray
    g_end: np.ndarray
    H_end: np.ndarray
    G_end: np.ndarray

    @property
    def row_slopes(self) -> np.ndarray:
        """Derivatives (N + 1, rows, n + m) of rows along the horizon and at its end."""
        return by_nodes(self.G, self.G_end)


class StageModel:
    """Functions of one problem for methods that sweep through its stages.

    If it is `curved` second derivatives are wanted. `free` are error coordinates of the first state
    that are to be found.
    """

    def __init__(
        self, transcription: Transcription, *, curved: bool = True, settings: Settings = DEFAULT
    ) -> None:
        self.settings = settings
        self.transcription, self.curved = transcription, curved
        self.problem = problem = transcription.problem
        self.group = problem.system.state
        self.n, self.m = problem.system.n_errors, len(transcription.controls)
        self.controls = transcription.controls
        self.sides = _sides(transcription)
        self.free = problem.free_start

    def prepare(self) -> None:
        """Compile the functions, as `set_compile_policy` says."""
        stages = self.problem.horizon
        self.transcription.prepare()
        prepare(self.step, self.error, self.costs, calls=CALLS * stages)
        prepare(self.retract, calls=CALLS, items=stages + 1)
        if self.curvature is not None:
            prepare(self.curvature, calls=CALLS, items=stages)
            assert self.end_curvature is not None
            prepare(self.end_curvature, calls=CALLS)
        self.transcription.forget_calls()

    @property
    def is_implicit(self) -> bool:
        """Whether steps solve equations, which are looked at in the end."""
        return self.resolved is not None

    @cached_property
    def resolved(self) -> ModelFunction | None:
        """``(t, x, u, p, dt) → residual`` of steps that solve equations; above 1 they do not."""
        problem = self.problem
        made = resolved_step(problem.system, problem.method, problem.substeps)
        if made is None:
            return None
        inputs = symbols_of(self.step)
        t, x, u, p, dt = inputs.values()
        residual = made.function(t, x, u, p[: problem.system.n_parameters], dt)[1]
        return named_function("resolved", inputs, {"residual": residual})

    @property
    def of_start(self) -> np.ndarray:
        """Sides (sides,) of the first node alone, where that is free: some start keeps them."""
        active = self.sides.active.astype(bool)
        return active[0] & ~active[1:].any(axis=0) & (len(self.free) > 0)

    @cached_property
    def alike(self) -> np.ndarray:
        """Of each error coordinate the first one with its unit; itself if no unit is told."""
        units = self.group.tangent_units
        if len(units) != self.n:  # coordinates of a constraint's tangent space mix units
            return np.arange(self.n)
        return np.array([units.index(unit) if unit else i for i, unit in enumerate(units)])

    # -- functions ---------------------------------------------------------------------------------

    @cached_property
    def stage(self) -> ModelFunction:
        """The transcription's stage as sweeps in C read it: ``F = [A B]ᵀ`` for A and B, and Gᵀ."""
        made = self.transcription._functions.stage
        inputs = symbols_of(made)
        cost, gap, rows, A, B, g, H, G = made.function.call(list(inputs.values()))
        results = {
            "cost": cost, "gap": gap, "rows": rows, "F": ca.horzcat(A, B).T, "g": g, "H": H,
            "G": G.T,
        }  # fmt: skip
        return named_function(made.name, inputs, results)

    @cached_property
    def substep(self) -> ModelFunction:
        """``(t, x, u, p, dt) → after, F`` of one substep, where the kernel composes them."""
        problem, system = self.problem, self.problem.system
        one = step_derivatives(system, problem.method, 1, backwards=True)
        inputs = symbols_of(self.step)
        t, x, u, p, dt = inputs.values()
        after, A, B = one.function.call([t, x, u, p[: system.n_parameters], dt])
        F = ca.densify(ca.horzcat(A, B[:, self.controls.tolist()]).T)
        name = self.transcription._functions.stage.name.replace("stage", "substep")
        return named_function(name, inputs, {"after": after, "F": F})

    @cached_property
    def around(self) -> ModelFunction:
        """A stage about the end of its last substep: C as the entries of `turn`, and Gᵀ."""
        made = self._around
        inputs = symbols_of(made)
        cost, gap, rows, C, g, H, G = made.function.call(list(inputs.values()))
        entries = [C[int(i), int(j)] for i, j in zip(*self.turn, strict=True)]
        results = {
            "cost": cost, "gap": gap, "rows": rows, "turn": ca.vertcat(ca.SX(0, 1), *entries),
            "g": g, "H": H, "G": G.T,
        }  # fmt: skip
        return named_function(made.name, inputs, results)

    @cached_property
    def turn(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of entries of C that are not zero, of rows that are not the identity's.

        Row after row.
        """
        function = self._around.function
        found = ca.SX(function.call(function.sx_in())[self._around.results.index("C")])
        is_set = np.array(
            [[not found[i, j].is_zero() for j in range(self.n)] for i in range(self.n)]
        )
        for i in range(self.n):
            if is_set[i].sum() == 1 and found[i, i].is_one():
                is_set[i] = False
        rows, columns = np.nonzero(is_set)
        return rows, columns

    @property
    def composes(self) -> bool:
        """Whether the kernel is to multiply the derivatives of substeps."""
        return self.transcription._functions.around is not None

    @property
    def _around(self) -> ModelFunction:
        made = self.transcription._functions.around
        assert made is not None
        return made

    @cached_property
    def step(self) -> ModelFunction:
        """``(t, x, u, p, dt) → after``, the state at the end of a stage."""
        problem = self.problem
        given = symbols_of(self.transcription._functions.stage_values)
        inputs = {key: given[key] for key in ("t", "x", "u", "p", "dt")}
        t, x, u, p, dt = inputs.values()
        step = problem.system.step(problem.method, problem.substeps).function
        return self._part(
            "step", inputs, {"after": step(t, x, u, p[: problem.system.n_parameters], dt)}
        )

    @cached_property
    def costs(self) -> ModelFunction:
        """``(t, x, u, x_ref, u_ref, p, w, dt) → cost, rows`` of a stage, without its step."""
        values = self.transcription._functions.stage_values
        inputs = symbols_of(values)
        cost, _, rows = values.function.call([*inputs.values()], True, False)
        x_next = inputs.pop("x_next")
        found = ca.substitute([cost, rows], [x_next], [inputs["x"]])
        return self._part("costs", inputs, dict(zip(("cost", "rows"), found, strict=True)))

    def _part(self, name: str, inputs: dict[str, Any], results: dict[str, Any]) -> ModelFunction:
        """A function of the symbols of `stage_values`."""
        values: Any = [*results.values()]
        values = ca.cse(values) if isinstance(values[0], ca.SX) else values
        name = self.transcription._functions.stage_values.name.replace("stage_values", name)
        return named_function(name, inputs, dict(zip(results, values, strict=True)))

    @cached_property
    def retract(self) -> ModelFunction:
        """``(x, z, p) → moved``, the state at error coordinates z from x."""
        return self._of_states(
            "retract",
            {"x": self.group.nq, "z": self.n, "p": len(self.problem.nominal_parameters)},
            lambda x, z, p: self.problem.system.retract(
                x, z, p[: self.problem.system.n_parameters]
            ),
        )

    @cached_property
    def error(self) -> ModelFunction:
        """``(x, x_ref) → z``, error coordinates."""
        sizes = {"x": self.group.nq, "x_ref": self.group.nq}
        return self._of_states("error", sizes, self.problem.system.error)

    @cached_property
    def element(self) -> ModelFunction:
        """``(x) → element``, coordinates brought onto the group."""
        return self._of_states("normalize", {"x": self.group.nq}, self.group.normalize)

    @cached_property
    def between(self) -> ModelFunction:
        """``(a, b, s) → x``, the state at a share s of the way from a to b."""
        sizes = {"a": self.group.nq, "b": self.group.nq, "s": 1}
        return self._of_states("between", sizes, self.group.interpolate)

    @cached_property
    def arrival(self) -> ModelFunction:
        """``(x, x0, P) → cost, g, H`` of ``½ eᵀ P e`` with the error e of x from x0."""
        system = self.problem.system
        x, x0 = (ca.SX.sym(name, self.group.nq) for name in ("x", "x0"))
        P = ca.SX.sym("P", self.n, self.n)
        p: Any = ca.SX(len(system.nominal_parameters), 1)
        E, away = ca.DM(system.error_selection), self.group.minus(x, x0)
        slope = E @ self.group.right_jacobian_inverse(away) @ system.error_basis(x, p)
        error = E @ away
        values: Any = [ca.dot(error, P @ error) / 2, slope.T @ P @ error, slope.T @ P @ slope]
        cost, g, H = ca.cse([ca.densify(value) for value in values])
        results = {"cost": cost, "g": g, "H": H}
        return named_function("arrival", {"x": x, "x0": x0, "P": P}, results)

    def _of_states(
        self, name: str, sizes: dict[str, int], build: Callable[..., Any]
    ) -> ModelFunction:
        symbol = self.problem.system.symbol
        given = {key: symbol.sym(key, size) for key, size in sizes.items()}
        return named_function(name, given, {"result": ca.densify(build(*given.values()))})

    @cached_property
    def curvature(self) -> ModelFunction | None:
        """``(…, prices, row_prices) → W, bend``, the Hessian of a stage less Gauss–Newton's.

        The Lagrangian is ``d ↦ cost + pricesᵀ minus(step, x_next) + row_pricesᵀ rows`` at
        ``plus(x, ε)`` and ``u + δ``. Its Hessian is ``W + [A B]ᵀ E [A B]`` with the entries `bend`
        of E at `bend_places`: a sweep adds E to the cost to go instead. None where it is not wanted
        or would cost more than it saves.
        """
        if not self.curved:
            return None
        values = self.transcription._functions.stage_values
        if self.problem.system.errors is not None:  # the basis would bend, too
            return None
        if self._operations > self.settings.hessian_operations:
            return None
        terms = self.transcription._functions.stage_terms
        return self._hessian(values, terms, "curvature", with_controls=True)

    @cached_property
    def joint(self) -> ModelFunction | None:
        """`stage` and `curvature` of the same arguments; None where they share too little."""
        first, second = self.stage if not self.composes else None, self.curvature
        if first is None or second is None or not second.function.is_a("SXFunction"):
            return None
        made = first.function.n_instructions() + second.function.n_instructions()
        if made < SHORTEST_JOINT:
            return None
        inputs = symbols_of(second)
        values: Any = first.function.call([inputs[name] for name in first.arguments])
        values = ca.cse([*values, *second.function.call([*inputs.values()])])
        results = dict(zip([*first.results, *second.results], values, strict=True))
        found = named_function(first.name.replace("stage", "joint"), inputs, results)
        shared = made - found.function.n_instructions()
        return found if shared >= LEAST_SHARED * made else None

    @property
    def bend_places(self) -> list[tuple[int, int]]:
        """Row and column, not below it, of what curvatures add to the cost to go."""
        return [] if self.curvature is None else self._places

    @cached_property
    def end_curvature(self) -> ModelFunction | None:
        """``(…, row_prices) → W``, the same of the end."""
        if self.curvature is None:
            return None
        once = self.transcription._functions
        return self._hessian(
            once.terminal_values, once.terminal_terms, "end_curvature", with_controls=False
        )

    @property
    def _operations(self) -> int:
        """What second derivatives of a step by AD take, roughly."""
        values = self.transcription._functions.stage_values.function
        return values.n_instructions() * (self.n + self.m)

    @property
    def _tableau(self) -> Tableau | None:
        """Of the explicit method whose second derivatives are taken; None for other methods."""
        method = get_method(self.problem.method)
        if self.problem.system.is_discrete or not isinstance(method, MuntheKaas):
            return None
        return method.tableau

    def displaced(self, function: ModelFunction) -> tuple[dict[str, Any], Any, dict[str, Any]]:
        """Symbols of arguments of a stage or of the end, a displacement d, and arguments there.

        It is of the state in error coordinates, then of controls.
        """
        inputs, system = symbols_of(function), self.problem.system
        symbol: Any = type(inputs["x"])
        d = symbol.sym("d", self.n + (self.m if "x_next" in inputs else 0))
        own = inputs["p"][: system.n_parameters]
        moved = inputs | {"x": system.retract(inputs["x"], d[: self.n], own)}
        if "x_next" in inputs:
            moved["u"] = symbol(inputs["u"])
            moved["u"][self.controls.tolist()] += d[self.n :]
        return inputs, d, moved

    def _hessian(
        self, values: ModelFunction, terms: ca.Function, name: str, *, with_controls: bool
    ) -> Any:
        inputs, d, moved = self.displaced(values)
        symbol: Any = type(d)
        active = self.transcription.rows.active
        holds = active[:-1] if with_controls else active[-1:]
        prices = {"row_prices": symbol.sym("row_prices", active.shape[1])}
        rows = bounded_rows(self.problem, values.function, holds, moved, prices["row_prices"])
        if with_controls:
            prices = {"prices": symbol.sym("prices", self.n)} | prices
        if symbol is ca.MX:
            return self._implicit_hessian(values, terms, name, inputs, moved, d, prices, rows)
        _, r, _, other = terms.call(list(moved.values()))
        error_pull, _, pull, _ = terms.call(list(inputs.values()))
        bent = ca.dot(pull, r) + other + ca.dot(prices["row_prices"], rows)
        hessian = _second(bent, d)
        away = self.group.minus(inputs["x"], inputs["x_ref"])
        hessian[: self.n, : self.n] += self._error_bend(away, error_pull)
        results: Any = [hessian]
        if with_controls:
            own, of_end = self._bend(inputs, moved, d, prices["prices"])
            rows, columns = of_end.sparsity().get_triplet()
            self._places = [(i, j) for i, j in zip(rows, columns, strict=True) if i <= j]
            entries = [of_end[i, j] for i, j in self._places]
            results = [hessian + own, ca.vertcat(ca.SX(0, 1), *entries)]
        results = ca.cse([ca.densify(value) for value in results])
        function = self._second_function(values, name, inputs | prices, results)
        is_long = function.function.n_instructions() > self.settings.hessian_operations
        return None if is_long else function

    def _implicit_hessian(
        self, values: ModelFunction, terms: ca.Function, name: str, inputs: dict[str, Any],
        moved: dict[str, Any], d: Any, prices: dict[str, Any], rows: Any,
    ) -> ModelFunction | None:  # fmt: skip
        """The same for steps that solve equations."""
        problem, system = self.problem, self.problem.system
        parts = dict(zip(terms.name_out(), terms.call(list(moved.values())), strict=True))
        parts |= {"rows": rows, "y": ca.MX(0, 1)}
        is_stage = "prices" in prices
        if is_stage:
            t, x, u, p, dt = (moved[key] for key in ("t", "x", "u", "p", "dt"))
            step = system.step(problem.method, problem.substeps).function
            parts["y"] = step(t, x, u, p[: system.n_parameters], dt)
        dense = [ca.densify(value) for value in parts.values()]
        given = inputs | prices
        function = ca.Function("stage", [*given.values(), d], dense, [*given, "d"], [*parts])
        most = self.settings.hessian_operations
        found = implicit_hessian(function, given, self.group, self._error_bend, most)
        if found is None:
            return None
        if is_stage:
            self._places = found.places
        results = [ca.densify(value) for value in found[: 1 + is_stage]]
        return self._second_function(values, name, given, results)

    def _second_function(
        self, values: ModelFunction, name: str, given: dict[str, Any], results: list[Any]
    ) -> ModelFunction:
        """A function of Hessians, of a stage or of the end."""
        name = values.name.replace("stage_values", name).replace("terminal_values", name)
        return named_function(name, given, dict(zip(("W", "bend"), results, strict=False)))

    def _error_bend(self, away: Any, pull: Any) -> Any:
        """Hessian of ``pullᵀ error``, from the derivative ``J_r⁻¹(error)`` of the error."""
        e, w = ca.SX.sym("e", self.n), ca.SX.sym("w", self.n)
        J = self.group.right_jacobian_inverse(e)
        bent = ca.jacobian(J.T @ w, e) @ J
        return ca.substitute([(bent + bent.T) / 2], [e, w], [away, ca.densify(pull)])[0]

    def _bend(self, inputs: dict[str, Any], moved: dict[str, Any], d: Any, prices: Any) -> Any:
        """Hessian of ``pricesᵀ minus(step(d), step(0))`` in two parts.

        With y the coordinates of the step's end, T the map from their changes to tangent vectors
        and ``w = Tᵀ prices``: that of ``wᵀ y(d)``, and less what the coordinates of ``plus(y, η)``
        bend by themselves, by η.

        Explicit Runge-Kutta methods are taken in coordinates: to their order the same as on the
        group, at half of the operations.
        """
        problem, system, group = self.problem, self.problem.system, self.group
        structure, method = system.structure, get_method(problem.method)
        known = None if structure is None else structure.acceleration_hessian
        if self._tableau is not None:
            march = _StepHessians(system, self._tableau, problem.substeps, inputs, moved, d)
            y = march.end
            w = group.tangent_matrix(y).T @ prices
            hessian = march.hessian(w)
        elif known and problem.substeps == 1 and method == get_method("semi_implicit_euler"):
            y, w, n = inputs["x"], prices, self.n // 2
            own, dt = inputs["p"][: system.n_parameters], inputs["dt"]
            force = dt * (prices[n:] + dt * prices[:n])  # a change of v̇ moves both halves
            hessian = known(inputs["t"], inputs["x"], inputs["u"], own, force)
            places = [*range(self.n), *(self.n + i for i in self.controls.tolist())]
            hessian = hessian[places, places]
        else:

            def step(at: dict[str, Any]) -> Any:
                t, x, u, dt = (at[name] for name in ("t", "x", "u", "dt"))
                own = at["p"][: system.n_parameters]
                return system.step(method, problem.substeps).function(t, x, u, own, dt)

            y = step(inputs)
            w = group.tangent_matrix(y).T @ prices
            hessian = _second(ca.dot(w, step(moved)), d)
        eta = ca.SX.sym("eta", self.n)
        return hessian, -ca.sparsify(_second(ca.dot(w, group.plus(y, eta)), eta))

    # -- evaluation --------------------------------------------------------------------------------

    def expand(self, nodes: Nodes, setting: Setting) -> Expansion:
        """The problem about nodes; slopes of rows are zero where those do not hold."""
        active = self.transcription.rows.active[:, :, None]
        stage = self.transcription._stages("stage", nodes, setting)
        end = self.transcription._end("terminal", nodes, setting)
        return Expansion(
            float(stage.cost.sum() + end.cost),
            stage.gap.copy(),
            np.concatenate([stage.rows, end.rows[None]]),
            stage.A.copy(order="C"),
            stage.B.copy(order="C"),
            stage.g.copy(),
            stage.H.copy(order="C"),
            np.where(active[:-1], stage.G, 0.0),
            end.g.copy(),
            end.H.copy(),
            np.where(active[-1], end.G, 0.0),
        )

    def hessians(
        self, nodes: Nodes, setting: Setting, prices: np.ndarray, row_prices: np.ndarray,
        at: Expansion,
    ) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
        """What the Hessians of the Lagrangian have beyond the Gauss–Newton ones.

        Shapes (N, n + m, n + m), and (n, n) of the end; `at` is the expansion about the nodes.
        """
        once = self.transcription
        call = once.kept_call("curvature", self, of_stages=True)
        fill_stages(call.inputs, nodes, setting)
        call.inputs["prices"][:], call.inputs["row_prices"][:] = prices, row_prices[:-1]
        found = call()
        along, bend = found.W.copy(order="C"), np.zeros((len(prices), self.n, self.n))
        for k, (i, j) in enumerate(self.bend_places):
            bend[:, i, j] = bend[:, j, i] = found.bend[:, k]
        F = np.concatenate([at.A, at.B], axis=2)
        along += F.transpose(0, 2, 1) @ bend @ F
        end = once.kept_call("end_curvature", self)
        once.fill_end(end.inputs, nodes, setting)
        end.inputs["row_prices"][:] = row_prices[-1]
        return along, end().copy()

    def advance(
        self, k: int, nodes: Nodes, setting: Setting, x: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
        """From state and input at stage k: next state, cost, its error to node k + 1, rows."""
        weights = self.transcription.path_weights
        given = {
            "t": nodes.t[k], "x": x, "u": u, "p": setting.p, "dt": self.problem.steps[k],
            "x_ref": setting.x_ref[k], "u_ref": setting.u_ref[k],
            "w": weights if weights.ndim == 1 else weights[k],
        }  # fmt: skip
        after = self._called("step", given).copy()
        away = self._called("error", {"x": after, "x_ref": nodes.x[k + 1]}).copy()
        found = self._called("costs", given)
        return after, float(found.cost), away, found.rows.copy()

    def _called(self, name: str, given: dict[str, Any]) -> Any:
        """Results of a function, in memory that the next call writes."""
        call = self.transcription.kept_call(name, self)
        for key, array in call.inputs.items():
            array[...] = given[key]
        return call()

    def first_state(self, x0: np.ndarray, wanted: np.ndarray, p: np.ndarray) -> np.ndarray:
        """The start that is given, where it is free as another state is."""
        if not len(self.free):
            return x0
        move = np.zeros(self.n)
        move[self.free] = self.error(wanted, x0)[self.free]
        return np.asarray(self.retract(x0, move, p))

    def end(self, nodes: Nodes, setting: Setting, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Cost and rows of a last state."""
        there = Nodes(nodes.t, x[None], nodes.u)
        found = self.transcription._end("terminal_values", there, setting)
        return float(found.cost), found.rows.copy()


class _StepHessians:
    """Steps of an explicit Runge-Kutta method in coordinates, and how they bend.

    From arguments of a stage, and the same with state and input moved by d, to its `end`.
    """

    def __init__(
        self, system: System, tableau: Tableau, substeps: int, at: dict[str, Any],
        moved: dict[str, Any], d: Any,
    ) -> None:  # fmt: skip
        t, x, u, dt = (at[name] for name in ("t", "x", "u", "dt"))
        p = at["p"][: system.n_parameters]
        self._tableau, self._h, self._start, self._d = tableau, dt / substeps, moved["x"], d
        time, y, price = ca.SX.sym("time"), ca.SX.sym("y", *x.shape), ca.SX.sym("price", *x.shape)
        input_, z = ca.SX.sym("input", *u.shape), ca.SX.sym("z", *p.shape)
        lift: Any = system.state.rate_matrix(y)
        rate = lift @ system.f(time, y, input_, z)
        given, both = [time, y, input_, z], ca.vertcat(y, input_)
        is_flat = ca.SX(lift).is_eye()  # coordinates are tangent vectors: derivatives are known
        own = ca.horzcat(*system.derivatives(*given)) if is_flat else ca.jacobian(rate, both)
        results: Any = ca.cse([ca.SX(rate), ca.sparsify(ca.SX(own))])
        field = ca.Function("field", given, results)
        structure = system.structure
        known = None if structure is None else structure.acceleration_hessian
        bent: Any = (
            ca.hessian(ca.dot(price, rate), both)[0]
            if known is None
            else known(time, y, input_, z, price[price.shape[0] // 2 :])
        )
        self._bent, self._p = ca.Function("bent", [*given, price], [bent]), p
        slope = ca.substitute(ca.jacobian(ca.vertcat(moved["x"], moved["u"]), d), d, 0 * d)
        X, U = ca.vertsplit(ca.sparsify(slope), [0, x.shape[0], slope.shape[0]])
        # Of every stage its arguments, their derivatives by d, and those of the field by them.
        self._stages: list[tuple[list[Any], Any, Any]] = []
        for k in range(substeps):
            rates: list[Any] = []
            turns: list[Any] = []
            for row, c in self._rows:
                stage = x + combine(row, rates, self._h) if any(row) else x
                turn = X + combine(row, turns, self._h) if any(row) else X
                point = [t + (k + c) * self._h, stage, u, p]
                value, J = field.call(point)
                rates.append(value)
                turns.append(J @ ca.vertcat(turn, U))
                self._stages.append((point, ca.vertcat(turn, U), J))
            x, X = x + combine(tableau.b, rates, self._h), X + combine(tableau.b, turns, self._h)
        self.end = x

    @property
    def _rows(self) -> list[tuple[Any, float]]:
        tableau = self._tableau
        return list(zip(tableau.A, tableau.c, strict=True))[: tableau.stages]

    def hessian(self, w: Any) -> Any:
        """That of ``wᵀ end`` by d: of the moved start, and of each stage that of the field.

        Stages are added as they come, so that derivatives of one alone are in use at a time.
        """
        tableau, h = self._tableau, self._h
        size, prices = self._start.shape[0], list[Any]()
        for last in range(len(self._stages), 0, -tableau.stages):
            pulls: list[Any] = [ca.SX(size, 1)] * tableau.stages
            for i in reversed(range(tableau.stages)):
                price = h * tableau.b[i] * w
                for j, (row, _) in enumerate(self._rows):
                    if i < min(j, len(row)) and row[i]:
                        price += h * row[i] * pulls[j]
                prices.append(price)
                pulls[i] = self._stages[last - tableau.stages + i][2][:, :size].T @ price
            w = w + sum(pulls, ca.SX(0))
        symbol = ca.SX.sym("w", size)
        start: Any = ca.substitute(_second(ca.dot(symbol, self._start), self._d), symbol, w)
        total: Any = ca.tril(start)
        for (point, turn, _), price in zip(self._stages, reversed(prices), strict=True):
            bent: Any = self._bent(*point, price)
            total += lower_product(turn, bent @ turn)
        return mirrored(total)


def by_nodes(along: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Derivatives of rows along the horizon and at its end, as one array."""
    last = np.zeros((1, *along.shape[1:]))
    last[0, :, : end.shape[-1]] = end
    return np.concatenate([along, last])


def _second(value: Any, d: Any) -> Any:
    """Hessian of a scalar by d at zero."""
    return ca.substitute(ca.hessian(value, d)[0], d, ca.DM.zeros(*d.shape))


def symbols_of(function: ModelFunction) -> dict[str, Any]:
    """Symbols for the arguments of a function, of the kind that it is made of."""
    symbol = ca.SX if function.function.is_a("SXFunction") else ca.MX
    return {
        name: symbol.sym(name, *function.function.size_in(i))
        for i, name in enumerate(function.arguments)
    }


def _sides(transcription: Transcription) -> Sides:
    rows, dt = transcription.rows, transcription.problem.dt
    hard = np.isinf(rows.soft)
    equal = np.flatnonzero(hard & (rows.lower == rows.upper))
    picked = [
        (r, sign, limits[r])
        for sign, limits in ((1.0, rows.upper), (-1.0, rows.lower))
        for r in range(len(rows.names))
        if np.isfinite(limits[r]) and r not in equal
    ]
    row = np.array([r for r, _, _ in picked], dtype=np.int64)
    sign, limit = (np.array([each[i] for each in picked]) for i in (1, 2))
    return Sides(
        row, sign, limit, rows.soft[row] * dt, rows.active[:, row], rows.lengths[:, row] / dt,
        equal, rows.lower[equal], rows.active[:, equal],
    )  # fmt: skip

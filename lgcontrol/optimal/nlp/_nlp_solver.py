"""NLPSolver: solvers for general nonlinear programs, in tangent vectors about a centre."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ...codegen import named_options
from ...codegen._internal import (
    Progress,
    UnknownNameError,
    interruptible,
    unknown_name,
    was_interrupted,
)
from ...systems import ReferenceLike
from .._given import Given
from .._guess import make_guess, moved_on
from .._outcome import (
    ACCEPTABLE_RESIDUAL,
    Iteration,
    SolveStatus,
    open_defects,
    sentence,
    start_violations,
    worst_violations,
)
from .._plan import Plan, PlanLayout
from .._problem import OptimalControlProblem
from .._reference import ReferenceSamples
from .._solution import OptimalSolution
from .._solutions import judged, nodes_of, plan_layout, solution_at
from .._solver import SOLVERS, GuessLike
from .._transcription import Nodes, Setting, Transcription
from ._nlp_program import ProgramLayout, build_program

# Largest entry of a tangent vector to a result up to which the centre stands: an optimum is one in
# any coordinates, but far from their centre they bend, and end at half a turn.
STANDS = 0.5
# Rounds, each about the result of the one before: curved coordinates change iterates, not optima.
MOST_ROUNDS = 10
# Solvers measure their residuals by scales of their own: they are asked for this share of it.
SHARE = 0.1
# Residual of the plans of a closed loop.
LOOP_TOLERANCE = 1e-4

# Options of each solver: quiet, with a tolerance, a limit of iterations, one of seconds.
PLUGINS: dict[str, Callable[[float, int, float], dict[str, Any]]] = {
    "ipopt": lambda tolerance, most, seconds: {
        "ipopt": {
            "print_level": 0, "sb": "yes", "tol": tolerance, "max_iter": most,
            "max_wall_time": min(seconds, 1e6), "acceptable_iter": 0,
        },
    },
    "fatrop": lambda tolerance, most, seconds: {
        "fatrop": {"print_level": 0, "tolerance": tolerance, "max_iter": most},
    },
}  # fmt: skip


class NLPSolver:
    """Solves an `OptimalControlProblem` by IPOPT or fatrop, for comparison and for rescue.

    Unknowns are tangent vectors about the guess, one a node, so that these solvers, which know no
    groups, meet no quaternion norm. If a result is far from its centre, the solve is repeated about
    it, until the centre stays. Second derivatives are exact. A solve takes some hundred times as
    long as one of `InteriorPointSolver`; from starts where that stalls it is another way.

    Parameters
    ----------
    problem : OptimalControlProblem, optional
        Without it the solver stands for its settings.
    plugin : {"ipopt", "fatrop"}
        As far as the installed CasADi has it.
    options : mapping, optional
        Further options of `casadi.nlpsol`: ``{"ipopt": {"mu_strategy": "adaptive"}}``.

    References
    ----------
    A. Wächter, L. Biegler: On the implementation of an interior-point filter line-search algorithm
    for large-scale nonlinear programming. Math. Program. 106 (2006). L. Vanroye et al.: FATROP, a
    fast constrained optimal control problem solver. IROS 2023.

    Examples
    --------
    >>> from lgcontrol.groups import SO2
    >>> from lgcontrol.systems import System
    >>> wheel = System("wheel", SO2, lambda t, x, u, p: u, inputs=["speed"])
    >>> problem = OptimalControlProblem(wheel, 10, 0.1, reference=[1.0, 0.0])
    >>> print(problem.solve([0.0, 1.0], solver="ipopt").status)
    converged
    """

    has_feedback = has_export = has_loop = False

    def __init__(
        self,
        problem: OptimalControlProblem | None = None,
        *,
        plugin: str = "ipopt",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        if plugin not in PLUGINS:
            raise UnknownNameError(unknown_name("NLP solver", plugin, PLUGINS))
        if not ca.has_nlpsol(plugin):
            there = ", ".join(name for name in PLUGINS if ca.has_nlpsol(name)) or "none"
            raise ValueError(
                f"the installed CasADi has no {plugin} (it has {there}); "
                "'interior_point' needs none of these"
            )
        self.plugin, self.options = plugin, dict(options or {})
        self._transcription = None if problem is None else Transcription(problem)
        self._given = None if problem is None else Given(problem)
        self._built: tuple[dict[str, Any], ProgramLayout] | None = None
        self._solvers: dict[tuple[float, int, float], Any] = {}
        self._told: _Told | None = None
        self.plan: Plan | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what CasADi cannot pickle; it is built again."""
        return self.__dict__ | {"_built": None, "_solvers": {}, "_told": None}

    def __repr__(self) -> str:
        """Plugin, and the system of its problem."""
        of = "" if self._transcription is None else f"{self.problem.system.name!r}, "
        return f"NLPSolver({of}plugin={self.plugin!r})"

    @property
    def transcription(self) -> Transcription:
        """Functions of the problem."""
        if self._transcription is None:
            raise ValueError(f"{self!r} has no problem yet: NLPSolver(problem, …)")
        return self._transcription

    @property
    def problem(self) -> OptimalControlProblem:
        """The optimal control problem that is solved."""
        return self.transcription.problem

    @property
    def plan_layout(self) -> PlanLayout:
        """Places of the parts of a plan."""
        return plan_layout(self.problem)

    def for_problem(self, problem: OptimalControlProblem) -> NLPSolver:
        """A solver with the same settings for a problem."""
        return NLPSolver(problem, plugin=self.plugin, options=self.options)

    @property
    def is_prepared(self) -> bool:
        """Whether the program is built."""
        return self._built is not None

    @interruptible
    def prepare(self, *, wait: bool = True) -> NLPSolver:
        """Build the program, which the first solve does otherwise, and return the solver.

        Parameters
        ----------
        wait : bool
            It always waits.
        """
        self._program()
        return self

    def reset(self) -> None:
        """Forget the plan; the next solve is as the first."""
        self.plan = None

    def feedback(self, plan: Plan) -> np.ndarray:
        """Refused: nothing here tells the derivative of a plan.

        Raises
        ------
        NotImplementedError
            The interior point has the feedback of its plans.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no feedback of plans: solver='interior_point' has"
        )

    def export_c(self, folder: str | Path, **options: Any) -> Path:
        """Refused: IPOPT and fatrop are libraries of their own.

        Raises
        ------
        NotImplementedError
            NLPSolver has no C99 export; the interior point has.
        """
        raise NotImplementedError(
            f"NLPSolver does not export C99, {self.plugin} is a library of its own: "
            "solver='interior_point' does"
        )

    # -- the program -------------------------------------------------------------------------------

    def _program(self) -> tuple[dict[str, Any], ProgramLayout]:
        """Variables z and parameters, cost, constraints, and where they are."""
        if self._built is None:
            self._built = build_program(self.transcription)
        return self._built

    def _solver(self, tolerance: float, most: int, seconds: float) -> Any:
        key = (tolerance, most, seconds)
        if key not in self._solvers:
            program, layout = self._program()
            options: dict[str, Any] = {
                "print_time": False, "error_on_fail": False, "show_eval_warnings": False,
                "calc_lam_p": False,
            }  # fmt: skip
            options |= PLUGINS[self.plugin](SHARE * tolerance, most, seconds)
            if self.plugin == "ipopt":
                options |= {name: program[name] for name in ("grad_f", "jac_g", "hess_lag")}
                self._told = _Told(program["nlp"]["x"].numel(), program["nlp"]["g"].numel())
                options["iteration_callback"] = self._told
            else:
                options |= {
                    "structure_detection": "manual", "N": self.problem.horizon,
                    "nx": layout.nx, "nu": layout.nu, "ng": layout.ng,
                    "equality": layout.is_equality,
                }  # fmt: skip
            for name, value in self.options.items():
                both = isinstance(value, Mapping) and isinstance(options.get(name), dict)
                options[name] = options[name] | dict(value) if both else value
            self._solvers = {key: ca.nlpsol("nlp", self.plugin, program["nlp"], options)}
        return self._solvers[key]

    # -- solves ------------------------------------------------------------------------------------

    @np.errstate(all="ignore")
    @named_options(own="guess")
    def solve(
        self,
        x0: ArrayLike,
        *,
        guess: GuessLike = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        tolerance: float = 1e-6,
        max_iterations: int = 200,
        time_limit: float = np.inf,
        callback: Callable[[Iteration], bool | None] | None = None,
        for_steps: bool = False,
    ) -> OptimalSolution:
        """Solve, about the result again until the centre stands; never raises as it is hard.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            Start.
        guess, reference, t0, p, tolerance
            As of `InteriorPointSolver.solve`.
        max_iterations : int
            Of a round; there is no further one when they are used up.
        time_limit : float
            In s; kept by IPOPT within a round, by fatrop between rounds.
        callback : callable, optional
            Called with an `Iteration` after each round; the solve stops when it returns True.
        for_steps : bool
            Of no effect: steps are whole solves.

        Returns
        -------
        OptimalSolution
        """
        reference = self.problem.reference if reference is None else reference
        assert self._given is not None
        x0, times, setting = self._given.begun(x0, t0, reference, p)
        nodes = make_guess(self.transcription, guess, x0, times, setting, reference)
        return self._solved(x0, nodes, setting, tolerance, max_iterations, time_limit, callback)

    def step(
        self,
        x0: ArrayLike,
        *,
        plan: Plan | None = None,
        reference: ReferenceLike | ReferenceSamples | None = None,
        t0: float = 0.0,
        p: Mapping[str, float] | ArrayLike | None = None,
        iterations: int = 1,
        time_limit: float = np.inf,
    ) -> OptimalSolution:
        """A whole solve from a plan, shifted to t0: these solvers have no less.

        Parameters
        ----------
        x0, reference, t0, p
            As for `solve`.
        plan : Plan, optional
            Of an earlier solve or step; the last one of this solver if left out.
        iterations : int
            Not asked for.
        time_limit : float
            In s.

        Returns
        -------
        OptimalSolution

        Raises
        ------
        ValueError
            If there is no plan yet, or it belongs to another problem.
        """
        plan = self.plan if plan is None else plan
        if plan is None:
            raise ValueError("there is nothing to go on from: solve first")
        last = nodes_of(self.problem, plan)
        problem = self.problem
        assert self._given is not None
        times = problem.times(t0)
        setting = self._given.setting(times, reference, p)
        x0 = np.asarray(x0, dtype=np.float64)
        nodes = moved_on(problem, last, times, setting, x0)
        return self._solved(x0, nodes, setting, LOOP_TOLERANCE, 100, time_limit, None)

    def _solved(
        self, x0: np.ndarray, nodes: Nodes, setting: Setting, tolerance: float, most: int,
        seconds: float, callback: Callable[[Iteration], bool | None] | None,
    ) -> OptimalSolution:  # fmt: skip
        began = time.perf_counter()
        layout, values = self._program()[1], self.transcription.values(nodes, setting)
        rows = self.transcription.rows
        soft = rows.weights(setting.p)
        cost = values.cost + rows.penalty(values.rows, soft)
        log = [Iteration(0, cost, *self._off(values), np.inf, 1.0, 0.0, 0.0)]
        inner, used, kkt, ended = 0.0, 0, np.inf, None
        multipliers: dict[str, Any] = {}
        is_bad = not np.isfinite(cost) or bool(rows.not_finite(values.rows))
        unified = "SOLVER_RET_NAN" if is_bad else "SOLVER_RET_LIMITED"
        progress = Progress(f"plan of {self.problem.system.name} by {self.plugin}")
        for _ in range(MOST_ROUNDS if most > 0 and not is_bad else 0):
            solver = self._solver(tolerance, most, seconds)
            if self._told is not None:
                self._told.begin(progress, used)
            started = time.perf_counter()
            found, stats = self._round(solver, layout, x0, nodes, setting, multipliers)
            inner += time.perf_counter() - started
            used += max(1, int(stats.get("iter_count", 1)))
            unified = str(stats.get("unified_return_status", ""))
            if found is None:
                break
            moved, nodes, kkt, multipliers = found
            values = self.transcription.values(nodes, setting)
            cost = values.cost + rows.penalty(values.rows, soft)
            cost += self._arrival(nodes.x[0], x0, setting)
            spent = time.perf_counter() - began
            defect, violation = self._off(values)
            kkt = max(kkt, defect)
            log.append(Iteration(used, cost, defect, violation, kkt, 1.0, 0.0, spent))
            if callback is not None and callback(log[-1]):
                ended = SolveStatus.STOPPED
            elif spent > seconds:
                ended = SolveStatus.TIME_LIMIT
            elif used >= most:
                ended = SolveStatus.ITERATION_LIMIT
            if ended is not None or (moved <= STANDS and kkt <= tolerance):
                break
            if unified != "SOLVER_RET_SUCCESS" and moved <= STANDS:
                break
        return self._solution(
            nodes, setting, log, kkt, ended, unified, tolerance, (began, inner), used,
            layout.prices(np.asarray(multipliers["lam_g0"]).ravel()) if multipliers else None,
        )  # fmt: skip

    def _round(
        self, solver: Any, layout: ProgramLayout, x0: np.ndarray, nodes: Nodes, setting: Setting,
        multipliers: dict[str, Any],
    ) -> tuple[tuple[float, Nodes, float, dict[str, Any]] | None, dict[str, Any]]:  # fmt: skip
        """One solve about nodes: how far it moved, where it ended, its residual."""
        system, transcription = self.problem.system, self.transcription
        z, (lower, upper) = np.zeros(len(layout.lower[0])), layout.limits(setting.box)
        controls = np.clip(nodes.u[:, transcription.controls], setting.box.lower, setting.box.upper)
        over = transcription.rows.excess(transcription.values(nodes, setting).rows)
        centre = nodes.x.copy()
        centre[0] = x0
        for k, place in enumerate(layout.u):
            z[place] = controls[k]
        for k, place in enumerate(layout.e):
            z[place] = np.nan_to_num(over[k, layout.soft_rows[k]], posinf=1.0)
        given = np.concatenate(
            [
                nodes.t, centre.ravel(), setting.x_ref.ravel(), setting.u_ref.ravel(), setting.p,
                setting.terminal.ravel(), setting.arrival.ravel(),
            ]
        )  # fmt: skip
        try:
            best = solver(
                x0=z, p=given, lbx=lower[0], ubx=upper[0], lbg=lower[1], ubg=upper[1],
                **multipliers,
            )  # fmt: skip
        except RuntimeError:  # not a number at the guess
            return None, {"unified_return_status": "SOLVER_RET_NAN"}
        stats = solver.stats()
        z = np.asarray(best["x"]).ravel()
        if not np.isfinite(z).all():
            return None, stats | {"unified_return_status": "SOLVER_RET_NAN"}
        d = np.array([z[place] for place in layout.d])
        inputs = nodes.u.copy()
        others = np.setdiff1d(np.arange(system.n_inputs), transcription.controls)
        inputs[:, others] = setting.u_ref[:-1][:, others]
        inputs[:, transcription.controls] = np.clip(
            [z[place] for place in layout.u], setting.box.lower, setting.box.upper
        )
        states = system.retract(centre, d, setting.p[: system.n_parameters])
        if not len(self.problem.free_start):
            states[0] = x0  # the solver has it to its tolerance
        kkt = self._residual(best, given, (lower, upper))
        multipliers = {"lam_x0": best["lam_x"], "lam_g0": best["lam_g"]}
        return (np.abs(d[1:]).max(), Nodes(nodes.t, states, inputs), kkt, multipliers), stats

    def _residual(
        self,
        best: dict[str, Any],
        given: np.ndarray,
        limits: tuple[list[np.ndarray], list[np.ndarray]],
    ) -> float:
        """Largest of the scaled gradient of the Lagrangian, violations and complementarity."""
        z, multipliers = (np.asarray(best[key]).ravel() for key in ("x", "lam_g"))
        own = np.asarray(best["lam_x"]).ravel()
        check = self._program()[0]["check"]
        _, g, slope, of_cost = (np.asarray(v).ravel() for v in check(z, given, multipliers))
        scale = 1.0 + np.abs(of_cost).max()
        products, off = 0.0, 0.0
        for value, multiplier, low, high in zip((z, g), (own, multipliers), *limits, strict=True):
            off = max(off, (low - value).max(initial=0.0), (value - high).max(initial=0.0))
            for limit, part in (
                (low, np.minimum(multiplier, 0)),
                (high, np.maximum(multiplier, 0)),
            ):
                room = np.where(np.isfinite(limit), np.abs(value - limit), np.abs(multiplier) > 0)
                products = max(products, np.abs(room * part).max(initial=0.0))
        return float(max(np.abs(slope + own).max() / scale, off, products / scale))

    def _arrival(self, x: np.ndarray, x0: np.ndarray, setting: Setting) -> float:
        """What a free first state costs for its error from the given start."""
        error = self.problem.system.error(x, x0)
        return float(error @ setting.arrival @ error) / 2

    def _off(self, values: Any) -> tuple[float, float]:
        """Largest defect, and largest excess over a hard bound."""
        rows = self.transcription.rows
        excess = rows.excess(values.rows)[:, np.isinf(rows.soft)]
        return float(np.abs(values.gaps).max()), float(excess.max(initial=0.0))

    def _solution(
        self, nodes: Nodes, setting: Setting, log: list[Iteration], kkt: float,
        ended: SolveStatus | None, unified: str, tolerance: float, spent: tuple[float, float],
        used: int, prices: np.ndarray | None,
    ) -> OptimalSolution:  # fmt: skip
        problem, rows = self.problem, self.transcription.rows
        values = self.transcription.values(nodes, setting)
        violations = worst_violations(rows, rows.excess(values.rows), nodes.t, tolerance)
        if not np.isfinite(log[-1].cost) or unified in ("SOLVER_RET_NAN", "SOLVER_RET_EXCEPTION"):
            status = SolveStatus.FAILED
        elif kkt <= tolerance:
            status = SolveStatus.CONVERGED
        elif ended is not None:
            status = ended
        elif unified == "SOLVER_RET_LIMITED":
            status = SolveStatus.TIME_LIMIT if used < 1 else SolveStatus.ITERATION_LIMIT
        elif kkt <= ACCEPTABLE_RESIDUAL:
            status = SolveStatus.ACCEPTABLE
        else:
            status = SolveStatus.INFEASIBLE if violations else SolveStatus.STALLED
        total = time.perf_counter() - spent[0]
        start = start_violations(rows, values.rows[0], tolerance) if violations else ""
        last = log[-1]._replace(kkt=kkt, time=total)
        set_up = total - spent[1]
        text = rows.not_finite(values.rows) or sentence(
            status, last, tolerance, infeasible=start, set_up=set_up
        )
        told = [f"{self.plugin}: {text}", open_defects(status, last.defect), *map(str, violations)]
        told[1:1] = [] if status is SolveStatus.INFEASIBLE else [start]
        message = "; ".join(filter(None, told))
        solution = solution_at(
            problem, nodes, setting, nodes.t, log[-1], status=status, violations=violations,
            message=message, iterations=tuple(log),
            times={"total": total, "model": total - spent[1], "qp": spent[1]}, _prices=prices,
        )  # fmt: skip
        self.plan = solution.plan
        return judged(solution, setting)


class _Told(ca.Callback):
    """What IPOPT calls after each iteration, to say how far it is."""

    def __init__(self, variables: int, constraints: int) -> None:
        super().__init__()
        sizes = {"x": variables, "f": 1, "g": constraints, "lam_x": variables, "lam_g": constraints}
        self._sizes, self._progress, self._count = sizes, Progress(""), 0
        self.construct("told", {})

    def begin(self, progress: Progress, count: int) -> None:
        """A round begins after so many iterations."""
        self._progress, self._count = progress, count - 1

    def get_n_in(self) -> int:
        """Results of an NLP solver."""
        return ca.nlpsol_n_out()

    def get_n_out(self) -> int:
        """Whether to stop."""
        return 1

    def get_name_in(self, i: int) -> str:
        """Names of these results."""
        return ca.nlpsol_out(i)

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """Columns of their sizes; parameters have no multipliers."""
        return ca.Sparsity.dense(self._sizes.get(ca.nlpsol_out(i), 0), 1)

    def eval(self, arg: Any) -> list[float]:
        """Count, tell, go on unless interrupted."""
        self._count += 1
        self._progress.tell(lambda: f"{self._count} iterations, cost {float(arg[1]):.4g}")
        return [float(was_interrupted())]


for _plugin in PLUGINS:
    SOLVERS[_plugin] = partial(NLPSolver, plugin=_plugin)

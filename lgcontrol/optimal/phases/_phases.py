"""PhasedProblem: plans of several stretches with free durations, own systems, limits and jumps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...codegen import named_options
from ...codegen._internal import check_options, check_shape, interruptible
from ...groups import LieGroup
from ...groups._internal import group_difference
from ...integrators import Method
from ...systems import Parameter, Trajectory
from ...systems._internal import TrajectoryPoint, check_name, check_state
from .._bounds import ALONG, check_consistent
from .._causes import unsolved_beside
from .._input_view import KINDS
from .._obstacles import seen_obstacles
from .._outcome import Ends, SolveStatus
from .._problem import OptimalControlProblem
from .._rows import rows_along, seen_bounds
from .._solution import DERIVED, LocalOptimum, OptimalSolution
from .._solver import Solver, make_solver
from .._statement import AT_POINTS, check_input_hold, check_quadrature
from .._transcription import Nodes
from .._weights import WeightLike
from ._flat_phases import FlatPhases
from ._phase import Phase
from ._phase_motions import guess_of_phases, held, nodes_of
from ._phase_shapes import PhaseShape
from ._phased_solution import Durations, PhasedSolution

# Violation at the start below which it is rounding of numbers of size one.
START_TOLERANCE = 1e-9
# Where the search for free durations begins, by the ratio of their limits: 0 is the least. From the
# middle first, and where that leads to no plan from these on: tests.benchmarks.literature.
MIDDLE, LONGER = 0.5, (0.5, 0.75, 1.0)
# Nodes in messages, as `place_text` writes them.
NODES = r"\bnodes? (\d+)(?: to (\d+))?(?: in steps of \d+)?"
GIVEN_UP = SolveStatus.INFEASIBLE, SolveStatus.STALLED, SolveStatus.FAILED
USED_UP = SolveStatus.ITERATION_LIMIT


@named_options
class PhasedProblem:
    """A plan of phases; some or all of them have free durations.

    It minimises ``time_weight · Σ T_j`` and the costs of the phases. The steps of a phase
    share its duration, and durations are constant states with a free start. The whole is one
    `OptimalControlProblem` of a discrete system, `problem`, for any solver that finds free starts.

    Parameters
    ----------
    phases : Phase or sequence of Phase
    time_weight : float or str
        Penalty per s of the whole duration, or the name of a parameter.
    reference : optional
        State (nq,), or an object with ``x`` and ``u``, that errors and efforts are measured from.
    parameters : sequence of Parameter or str
        Of costs, residuals and bounds, after those of the first system.
    is_periodic : bool
        Whether the state after the end (and its jump) is that at the start, which is found, too.
    method : str or Method, optional
        Integrator of the steps; "rk4" if left out, and "radau_iia5" for ``hold="collocation"``.
    quadrature : {"left", "gauss", "collocation"}, optional
        Integral of costs and residuals over a step, as in `OptimalControlProblem`.
    hold : {"zero", "first", "collocation"}
        Controls within a step, as in `OptimalControlProblem`. Linear ones begin anew in each phase.
    free : str or iterable of str
        Initial states of the first phase that are optimised, by name, or ``"all"``, as of
        `OptimalControlProblem`. For these x0 is the initial guess. `System.augment` makes constant
        states of parameters that are to be found: ``free="constant"``.
    arrival : float, array_like or mapping, optional
        Weight W₀ of ``½ e₀ᵀ W₀ e₀``, with the error ``e₀`` of the free initial state from x0: the
        inverse of the covariance of what is known before.

    Raises
    ------
    ValueError
        If phases differ in their state or controls.

    Examples
    --------
    The least time over one metre from rest to rest with 1 m/s² is two seconds:

    >>> from lgcontrol.groups import Rn
    >>> from lgcontrol.optimal import Bound, Phase
    >>> from lgcontrol.systems import Input, System
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("u", "", -1, 1)])
    >>> stop = Bound("x0", 1, 1, at="terminal"), Bound("x1", 0, 0, at="terminal")
    >>> problem = PhasedProblem(Phase(cart, 20, (0.5, 5), bounds=stop), time_weight=1)
    >>> problem
    PhasedProblem(phase0: 20 steps of cart in 0.5 to 5 s, time_weight=1)
    >>> found = problem.solve([0, 0])
    >>> round(found.durations["phase0"], 3)
    2.0
    """

    def __init__(
        self,
        phases: Phase | Sequence[Phase],
        *,
        time_weight: float | str = 0.0,
        reference: Any = None,
        parameters: Sequence[Parameter | str] = (),
        is_periodic: bool = False,
        method: str | Method | None = None,
        quadrature: str | None = None,
        hold: str = "zero",
        free: str | Iterable[str] = (),
        arrival: WeightLike | None = None,
    ) -> None:
        given = [phases] if isinstance(phases, Phase) else list(phases)
        if not given:
            raise TypeError(
                "phases must be a Phase or a list of them, got none: "
                "PhasedProblem([Phase(system, steps, duration), …])"
            )
        self.phases = tuple(
            phase if phase.name else replace(phase, name=f"phase{i}")
            for i, phase in enumerate(given)
        )
        own = "auto" if method is None else method
        self.hold = check_input_hold(self.phases[0].system, hold, own)
        if method is None:
            method = "radau_iia5" if hold == AT_POINTS else "rk4"
        self.is_periodic, self.method = is_periodic, method
        self.quadrature = check_quadrature(self.phases[0].system, quadrature, hold)
        self._statement = {
            "time_weight": time_weight, "reference": reference, "parameters": parameters,
            "is_periodic": is_periodic, "method": method, "quadrature": quadrature, "free": free,
            "arrival": arrival, "hold": hold,
        }  # fmt: skip
        self._check()
        if not isinstance(time_weight, str) and not np.isfinite(time_weight):
            raise ValueError(
                f"time_weight must be finite, got {time_weight}: a penalty per s, such as 1.0, or "
                "the name of a parameter"
            )
        extra = tuple(Parameter(v) if isinstance(v, str) else v for v in parameters)
        shapes = self._shapes(reference, len(extra))
        self._flat = FlatPhases(
            shapes, extra, time_weight=time_weight, is_periodic=is_periodic, method=method,
            quadrature=self.quadrature, free=free, arrival=arrival,
        )  # fmt: skip

    def __repr__(self) -> str:
        """Phases with their steps, systems and durations."""
        told = ", ".join(
            f"{phase.name}: {phase.steps} steps of {phase.system.name} in "
            f"{'{:g} to {:g}'.format(*phase.limits) if phase.is_free else f'{phase.limits[0]:g}'} s"
            for phase in self.phases
        )
        return f"PhasedProblem({told}, time_weight={self._statement['time_weight']})"

    def _shapes(self, reference: Any, extra: int) -> tuple[PhaseShape, ...]:
        """Phases of other controls where inputs vary in steps or stay over several."""
        systems: dict[Any, Any] = {}
        made, first = [], self.phases[0].system.state
        for phase in self.phases:
            kind = KINDS[self.hold]
            if phase.blocks is not None:
                if kind != "plain":
                    raise ValueError(
                        f"blocks of phase {phase.name!r} hold inputs, and hold={self.hold!r} lets "
                        "them vary: give one of the two"
                    )
                kind = "blocks"
            if kind != "plain" and self.is_periodic:
                raise ValueError(
                    f"a loop (is_periodic=True) has held inputs: leave hold={self.hold!r} and "
                    "blocks out"
                )
            count = phase.system.n_parameters + extra
            point = _reference_of(phase, first, reference)
            made.append(PhaseShape(phase, kind, self.method, point, count, systems))
        return tuple(made)

    def __getstate__(self) -> dict[str, Any]:
        """With the functions of its phases as CasADi's: those of Python do not all pickle."""
        count = len(self.problem.all_parameters)
        return self.__dict__ | {"phases": tuple(phase.traced(count) for phase in self.phases)}

    @property
    def problem(self) -> OptimalControlProblem:
        """The problem that is solved: of all phases, whose time is the number of a node."""
        return self._flat.problem

    @property
    def obstacles(self) -> dict[str, Any]:
        """What bounds keep bodies out of, and gates, by name: those of all phases."""
        found: dict[str, Any] = {}
        for phase in self.phases:
            for name, one in seen_obstacles(phase.system, phase.bounds).items():
                if not any(one is other for other in found.values()):
                    found[f"{phase.name}: {name}" if name in found else name] = one
        return found

    def with_phases(self, phases: Sequence[Phase], **options: Any) -> PhasedProblem:
        """Copy with other phases and, by name, other options.

        Parameters
        ----------
        phases : sequence of Phase
        **options
            Of the constructor.
        """
        return PhasedProblem(phases, **(self._statement | options))

    @interruptible
    def solve(
        self,
        x0: ArrayLike,
        *,
        durations: Sequence[float] | None = None,
        guess: Any = None,
        solver: Solver | str | None = None,
        refine: float | None = None,
        starts: int | None = None,
        **options: Any,
    ) -> PhasedSolution:
        """Find the plan.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            State at the start; of a periodic plan where the search begins.
        durations : sequence of float, optional
            Initial guess of the phases' durations in s, within their limits. If left out, it is
            the geometric mean of the limits. If that leads to no plan, longer durations are tried.
        guess : Trajectory, list of Trajectory, str, PhasedSolution or tuple of these, optional
            States and inputs at the nodes, whatever their times. Other numbers of nodes are
            interpolated on the group, over the duration of each phase. A list has one trajectory
            for each phase; phases of different groups need a list. Or a word of `Solver.solve`.
            The members of a tuple are tried one after the other; the best result is the answer.
        solver : Solver or str, optional
        refine : float, optional
            As of `OptimalControlProblem.solve`: the share of the cost and of the ranges by which
            the plan may miss that of continuous time. Each phase gets nodes where it needs them.
        starts : int, optional
            As of `OptimalControlProblem.solve`: how many random guesses to start from, also of the
            durations. The cheapest plan is returned.
        **options
            Of `Solver.solve`.

        Returns
        -------
        PhasedSolution
        """
        start = check_state(self.phases[0].system, "x0", x0)
        chosen: Any = type(make_solver(solver, self.problem))
        check_options(options, self.solve, chosen.solve, but=("reference", "t0"))
        options = options | ({} if starts is None else {"starts": starts})
        if refine is not None:
            told = {"durations": durations, "guess": guess, "solver": solver}
            return DERIVED["refined"](self, start, refine, options | told)
        return self._solved(
            start, is_told=True, durations=durations, guess=guess, solver=solver, **options
        )

    def _solved(
        self, start: np.ndarray, *, is_told: bool = False, durations: Any = None,
        guess: Any = None, solver: Solver | str | None = None, **options: Any,
    ) -> PhasedSolution:  # fmt: skip
        """See `solve`; if `is_told`, the message says where steps are coarse."""
        if options.get("arrival") is not None:
            arrival = self._flat.beside(self.problem.system, options["arrival"])
            options = options | {"arrival": arrival}
        if durations is None:
            times = self._longer(MIDDLE)
        else:
            names = ", ".join(phase.name for phase in self.phases)
            told = f"durations, a time in s for each phase ({names}),"
            times = check_shape(told, durations, (len(self.phases),)).tolist()
            for phase, time in zip(self.phases, times, strict=True):
                low, high = phase.limits
                if not low <= time <= high:
                    limits = f"from {low:g} to {high:g} s" if phase.is_free else f"{low:g} s"
                    raise ValueError(
                        f"duration {time:g} s of phase {phase.name!r}: it must be {limits}, as "
                        "Phase(duration=) says"
                    )
        given, p = guess_of_phases(self._flat, guess, times), options.get("p")
        p = self.problem.parameter_values(p)
        solver, began, ends = make_solver(solver, self.problem), perf_counter(), Ends(options)
        first = self._flat.start(start, times)
        deadline = began + options.get("time_limit", np.inf)

        @cache
        def told_of(one: OptimalSolution) -> PhasedSolution:
            return self._told(one, start, p)

        def coarse(one: OptimalSolution) -> str:
            return DERIVED["coarseness"](solver, told_of(one), of_motion=True)

        of = self  # whose plan is found
        found = self.problem._solved(
            first, is_last=False, coarse=coarse, guess=given, solver=solver, **options
        )
        ended = GIVEN_UP if "max_iterations" in options else (*GIVEN_UP, USED_UP)
        may_go_on = durations is None and self._flat.free and not ends.is_asked
        if may_go_on and found.status in ended:
            left = options.get("time_limit", np.inf) - (perf_counter() - began)
            options = options | ({"time_limit": left} if "time_limit" in options else {})
            told = found.message.rpartition("; ")[2] if options.pop("starts", None) else ""
            found, of = self._from_longer(found, start, guess, solver, options, ends, p)
            if told and found.is_success:
                only = (LocalOptimum(found.cost, 1, found),)
                found = found._with_message(f"{found.message}; {told}", optima=only)
        is_one_search = given is None and self.problem.is_plain and "starts" not in options
        if is_one_search and of is self:  # else there is a plan, of longer durations
            own = make_solver(solver, found.problem)
            found = DERIVED["from_other_guesses"](own, first, found, deadline, options)
        optima = (replace(one, solution=told_of(one.solution)) for one in found.optima)
        made = replace(of._told(found, start, p), optima=tuple(optima))
        text = DERIVED["coarseness"](solver, made) if is_told else ""
        text += self._idle
        if text:
            made = replace(made, solution=made.solution._with_message(made.message + text))
        return made

    @property
    def _idle(self) -> str:
        """What a message says where no phase asks for anything, so that durations are arbitrary."""
        asked = "Q", "R", "bounds", "costs", "residuals", "duration_prior"
        terms = [getattr(phase, name) for phase in self.phases for name in asked]
        is_asked = any(term is not None and np.size(term) > 0 for term in terms)
        if is_asked or self._statement["time_weight"] != 0 or not self._flat.free:
            return ""
        return (
            "; no phase has a cost or a bound, and durations are arbitrary: give Phase(…, bounds=, "
            "Q=, R=) or time_weight="
        )

    def _longer(self, share: float) -> list[float]:
        """Durations between the limits of the phases: at 0 the least, at 1 the longest."""
        return [
            min(max(low ** (1 - share) * high**share if low > 0 else share * high, low), high)
            for low, high in self._flat.limits
        ]

    def _from_longer(
        self, found: OptimalSolution, start: np.ndarray, guess: Any, solver: Solver | str | None,
        options: dict[str, Any], ends: Ends, p: np.ndarray,
    ) -> tuple[OptimalSolution, PhasedProblem]:  # fmt: skip
        """A plan whose search begins at one of longer durations, or what was found; its problem.

        Too short a duration can be a stationary point of the violation: no small change of it helps
        where the way takes longer than all of it. What is found is infeasible only if all these
        searches are: a plan of longer durations is one of the problem, too, and is the answer if no
        search within the limits of the problem ends at one. Its problem has limits of its own.
        """
        kept, agree, is_over = None, True, False
        began, limit = perf_counter(), options.pop("time_limit", None)
        starts = [self._longer(share) for share in LONGER]
        for least in starts:
            begin = guess
            for of in (self._of_longer(least), self):
                if limit is not None:
                    options["time_limit"] = limit - (perf_counter() - began)
                    is_over = options["time_limit"] <= 0
                if is_over:
                    break
                made = of.problem._solved(
                    of._flat.start(start, least),
                    guess=guess_of_phases(of._flat, begin, least),
                    is_last=False,
                    solver=solver,
                    **options,
                )
                is_over = ends.is_asked
                if is_over or not made.is_success:
                    agree = agree and made.status == SolveStatus.INFEASIBLE
                    break
                begin = of._told(made, start, p)
                kept = kept or (made, of, sum(least))
            else:
                message = (
                    f"{made.message}; the first search led to no plan, this one begins at "
                    f"durations of at least {sum(least):.4g} s in all"
                )
                return made._with_message(message), self
            if is_over:
                break
        if kept is None and is_over:
            return found, self
        is_doubtful = found.status == SolveStatus.INFEASIBLE and (kept is not None or not agree)
        status = SolveStatus.STALLED if is_doubtful else found.status
        if kept is not None:
            plan, of, least = kept
            message = (
                "no search within the limits of the durations ended at a plan; this one keeps all "
                f"bounds and is optimal for durations of at least {least:.4g} s in all: narrow "
                f"Phase(duration=) to it; the first search: "
                f"{self._told(found, start, p).message}"
            )
            return plan._with_message(message, status=status), of
        tried = ", ".join(f"{sum(least):.4g}" for least in starts)
        message = f"{found.message}; nor was a plan found from longer durations, {tried} s in all"
        if found.status == SolveStatus.INFEASIBLE and not agree:
            message += "; not all of these searches end infeasible"
        return replace(found, message=message, status=status), self

    def _of_longer(self, least: Sequence[float]) -> PhasedProblem:
        """The problem with the least durations of its phases; the longest one is fixed."""
        phases = list[Phase]()
        for phase, time in zip(self.phases, least, strict=True):
            longest = phase.limits[1]
            prior = phase.duration_prior if time < longest else None
            narrowed = replace(phase, duration=(time, longest), duration_prior=prior)
            phases.append(narrowed if phase.is_free else phase)
        return self.with_phases(phases)

    def _told(self, found: OptimalSolution, start: np.ndarray, p: np.ndarray) -> PhasedSolution:
        """What was found from a start, with values of the parameters, in seconds and by phases."""
        x, u, flat, whole = found.x, found.u, self._flat, None
        names, limits = [phase.name for phase in self.phases], enumerate(flat.limits)
        seconds = [float(np.clip(flat.seconds(x[0], i), *both)) for i, both in limits]
        steps = [T * phase.shares for T, phase in zip(seconds, self.phases, strict=True)]
        t = np.concatenate([[0.0], np.cumsum(np.concatenate(steps))])
        # A phase that vanishes leaves one node: that after it.
        kept = np.append(np.diff(t) > 0, True)
        parts = {
            name: shape.read(*nodes_of(flat, i, t, x, u, p), p)
            for i, (name, shape) in enumerate(zip(names, flat.shapes, strict=True))
        }
        if all(shape.kind == "plain" for shape in flat.shapes) and len(flat.groups) == 1:
            whole = Trajectory(
                flat.groups[0], t[kept], x[kept][:, flat.own[0]], held(u, kept), inputs=flat.inputs
            )
        elif len(parts) == 1:
            whole = parts[names[0]]
        told = _in_seconds(found, t, flat.own_names, self._given_names)
        told = self._with_start(self._with_fold(told, parts, p), start, p)
        return PhasedSolution(
            Durations(zip(names, seconds, strict=True)), t[flat.starts[1:]], parts, self,
            told, whole, t,
        )  # fmt: skip

    def _with_fold(
        self, solution: OptimalSolution, parts: Mapping[str, Trajectory], p: np.ndarray
    ) -> OptimalSolution:
        """The solution, whose message names algebraic equations that kept it from a plan."""
        for phase, part in zip(self.phases, parts.values(), strict=True):
            if solution.is_success or not phase.system.has_algebraic_states or len(part) < 2:
                continue
            nodes = Nodes(part.t, part.x, part.u[: len(part) - 1])
            if told := unsolved_beside(phase.system, nodes, p):
                told = f"phase {phase.name!r}, {_at_times(told, part.t, self._given_names)}"
                causes = told, *map(str, solution.violations)
                message = "; ".join((solution.message.partition("; ")[0], *causes))
                return replace(solution, message=message)
        return solution

    @property
    def _given_names(self) -> list[str]:
        """Names of phases, bounds and terms, which may read as places."""
        bounds = [one.label for phase in self.phases for one in phase.bounds]
        terms = [one.name for phase in self.phases for one in (*phase.residuals, *phase.costs)]
        return [*(phase.name for phase in self.phases), *bounds, *terms]

    def _with_start(
        self, solution: OptimalSolution, x0: np.ndarray, p: np.ndarray
    ) -> OptimalSolution:
        """The solution, whose message names hard bounds that the given start violates."""
        phase, point = self.phases[0], self._flat.shapes[0].point
        system = phase.system
        if solution.status == SolveStatus.FAILED and not self._flat.is_open:
            why = system.unsolved(0.0, x0, point.u, p[: system.n_parameters])
            return replace(solution, message=f"at the start {why}") if why else solution
        if self._flat.is_open or not solution.is_success:
            return solution
        hard = [bound for bound in phase.known_bounds if bound.soft is None]
        at_first = [one.at for one in hard if isinstance(one.at, range) and 0 in one.at]
        names, excesses = self.problem.parameter_names, dict[str, float]()
        seen = seen_bounds(system, hard, names, [*ALONG, *at_first])
        here = np.zeros(1), x0[None], point.u[None], p, point.x[None]
        for one, _, (value,), low, high in rows_along(seen, names, here):
            excess, label = max(low - value, value - high), one.bound.label
            if not one.needs_input and excess > max(START_TOLERANCE, excesses.get(label, 0.0)):
                excesses[label] = excess
        if not excesses:
            return solution
        told = ", ".join(f"{label} by {excess:.3g}" for label, excess in excesses.items())
        message = (
            f"{solution.message}; x0 itself violates the hard bound on {told}: bounds "
            "hold from the first step on, start within them"
        )
        return replace(solution, message=message)

    def _check(self) -> None:
        first, names = self.phases[0].system, [phase.name for phase in self.phases]
        if self.phases[-1].jump is not None and not self.is_periodic:
            raise ValueError(
                f"phase {names[-1]!r} is the last: its jump leads nowhere, unless is_periodic=True"
            )
        if len({*names}) < len(names):
            raise ValueError(
                f"phases of the same name: {', '.join(names)}; give each Phase a name= of its own"
            )
        following = [*self.phases[1:], *([self.phases[0]] if self.is_periodic else [])]
        for phase, after in zip(self.phases, following, strict=False):
            if phase.system.state != after.system.state and phase.jump is None:
                raise ValueError(
                    f"the state of phase {after.name!r} is not that of {phase.name!r}: "
                    f"{group_difference(after.system.state, phase.system.state)}. "
                    "Give Phase(…, jump=lambda t, x, p: …) from one to the other"
                )
        for phase in self.phases:
            check_name("phase", phase.name)
            system = phase.system
            try:
                check_consistent(system, phase.known_bounds, phase.steps)
            except ValueError as error:
                raise type(error)(f"phase {phase.name!r}: {error}") from None
            roles = {e.name: e.role for e in system.inputs}
            for entry in first.inputs:
                if roles.get(entry.name, entry.role) != entry.role:
                    raise ValueError(
                        f"phase {phase.name!r}: input {entry.name!r} of {system.name} is a "
                        f"{roles[entry.name]}, of {first.name} a {entry.role}: give both Inputs "
                        "the same role, or one of them another name"
                    )
            if system.parameter_names != first.parameter_names:
                raise ValueError(
                    f"phase {phase.name!r}: {system.name} has the parameters "
                    f"{', '.join(system.parameter_names) or '(none)'}, and {first.name} of phase "
                    f"{names[0]!r} has {', '.join(first.parameter_names) or '(none)'}: declare the "
                    "same ones in the same order in both, also those that one does not use"
                )


def _reference_of(phase: Phase, first: LieGroup, reference: Any) -> TrajectoryPoint:
    """State and inputs that a phase's errors and efforts are of."""
    system = phase.system
    own = phase.reference
    if own is None and system.state == first:
        own = reference
    own = system.state.identity if own is None else own
    x = check_state(system, "reference", getattr(own, "x", own))
    u = np.asarray(getattr(own, "u", system.nominal_input), dtype=np.float64)
    return TrajectoryPoint(x, system.full_input(u) if len(u) < system.n_inputs else u)


def _in_seconds(
    solution: OptimalSolution, t: np.ndarray, names: Mapping[str, str], given: Sequence[str]
) -> OptimalSolution:
    """The solution with the times of its nodes in what it says, and states as phases name them.

    `names` of the phases are by those of the problem that was solved; those `given` by the user
    stay.
    """
    message = solution.message
    told = tuple(
        v._replace(time=float(t[v.node]), kind=re.sub(NODES, "", v.kind).lstrip())
        for v in solution.violations
    )
    for before, after in zip(solution.violations, told, strict=True):
        message = message.replace(str(before), str(after))
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    known = rf"(?<![\w.])(?:{'|'.join(longest_first)})(?!\w)"
    message = re.sub(known, lambda found: names[found[0]], _at_times(message, t, given))
    return replace(solution, message=message, violations=told)


def _at_times(text: str, t: np.ndarray, given: Sequence[str]) -> str:
    """A message with times in place of the numbers of nodes, but for those in given names."""

    def time(found: re.Match[str]) -> str:
        nodes = [int(k) for k in found.groups() if k]
        if not nodes or max(nodes) >= len(t):
            return found[0]
        return f"t = {' to '.join(f'{t[k]:.4g}' for k in nodes)} s"

    kept = [re.escape(name) for name in given if re.search(NODES, name)]
    return re.sub("|".join([*kept, NODES]), time, text)

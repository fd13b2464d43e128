"""Phases: plans of several stretches with free durations, own systems and limits, and jumps."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import (
    Result,
    UnknownNameError,
    check_count,
    check_options,
    check_shape,
    interruptible,
    unknown_name,
)
from ..groups import LieGroup, Product, Rn
from ..groups._internal import group_difference
from ..integrators import Method
from ..plotting import plot_trajectory
from ..systems import Parameter, System, Trajectory
from ..systems._internal import TrajectoryPoint, check_name, check_state
from ._bounds import (
    ALONG,
    Bound,
    NamedRows,
    check_consistent,
    check_numbers,
    with_known_limits,
)
from ._expressions import called_with
from ._outcome import SolveStatus, TranscriptionError
from ._places import free_errors
from ._problem import OptimalControlProblem
from ._rows import expression_of, seen_bounds, unit_named
from ._solution import DERIVED, OptimalSolution
from ._solver import Solver, make_solver
from ._statement import MOST_HORIZON, QUADRATURES, check_quadrature
from ._terms import Cost, Residual, of_quantity
from ._traced import traced_terms
from ._weights import WeightLike, error_weight, input_weight

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Weight on controls in every step, as shares of their limits where they have some, where a phase
# gives none: what costs nothing is not unique.
LEAST_EFFORT = 1e-6
# Violation at the start below which it is rounding of numbers of size one.
START_TOLERANCE = 1e-9
# Where the search for free durations begins, by the ratio of their limits: 0 is the least. From the
# middle first, and where that leads to no plan from these on: tests.benchmarks.literature.
MIDDLE, LONGER = 0.5, (0.5, 0.75, 1.0)
GIVEN_UP = SolveStatus.INFEASIBLE, SolveStatus.STALLED, SolveStatus.FAILED
USED_UP = SolveStatus.ITERATION_LIMIT
MOTION, DURATION, FIRST = "motion", "duration", "first"
# Nodes of a phase of so many steps at which bounds hold; its first one ends the phase before.
PLACES: dict[str, Callable[[int], range]] = {
    "both": lambda steps: range(1, steps + 1),
    "path": lambda steps: range(1, steps),
    "terminal": lambda steps: range(steps, steps + 1),
    "start": lambda steps: range(1),
}
# The same of terms of the cost, which count at an end or along steps.
TERMS_AT = {name: PLACES[name] for name in ("terminal", "start")}
T = TypeVar("T", Residual, Cost)


def _least_effort(system: System) -> np.ndarray:
    """Weights on the controls of a system that tell plans apart and change none."""
    ranges = [entry.upper - entry.lower for entry in system.inputs if entry.role == "control"]
    return np.array([LEAST_EFFORT * (4.0 / r**2 if 0 < r < np.inf else 1.0) for r in ranges])


@named_options
@dataclass(frozen=True, eq=False)
class Phase:
    """One stretch of a `PhasedProblem`.

    Functions are those of `OptimalControlProblem`, of the phase's own system; t is the time since
    the start of the plan in s, durations included.

    Parameters
    ----------
    system : System
        Continuous. Fields, inputs, their bounds and even the group of the state may differ from
        phase to phase, parameters not. Inputs of one name are one; where the group changes the
        phase before has a jump.
    steps : int
    duration : float or tuple of two floats
        In s: given, or free between two limits.
    Q, R : float, array_like or mapping, optional
        Weights per s on the error and on the controls; next to nothing if left out. A stack has one
        for each step.
    costs : sequence of Cost
    residuals : sequence of Residual
        Their ``terminal`` weighs them at the end of the phase, before the jump.
    bounds : sequence of Bound
        Along the phase. Bounds ``at="terminal"`` hold at its end, before the jump. Bounds
        ``at="start"`` hold after the jump before it or, if it is free, at the start of all. Nodes
        of a range are counted from the start of the phase, also those of costs and residuals.
    jump : callable, optional
        ``(t, x, p) → x`` on CasADi columns: the state of the next phase after the end of this one.
    name : str
        Of its duration, "phase0" and so on if left out.
    reference : optional
        State, or an object with ``x`` and ``u``, of its errors and efforts. If left out it is that
        of the problem, which is of the first phase's group.
    lengths : array_like, shape (steps,), optional
        Ratio of the lengths of the steps, such as ``[1, 1, 2, 4]``; equal if left out.

    Examples
    --------
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    >>> Phase(cart, 20, duration=(0.5, 4.0)).is_free
    True
    """

    system: System
    steps: int
    duration: Any
    Q: Any = None
    R: Any = None
    costs: Sequence[Cost] = ()
    residuals: Sequence[Residual] = ()
    bounds: Sequence[Bound] = ()
    jump: Callable[[Any, Any, Any], Any] | None = None
    name: str = ""
    reference: Any = None
    lengths: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.system, System) or self.system.is_discrete:
            raise TypeError(f"a phase has a continuous System, not {self.system!r}")
        check_count("steps", self.steps, most=MOST_HORIZON)
        limits = self.limits
        if limits[1] == np.inf:
            raise ValueError(
                f"duration {self.duration!r}: the longest one must be finite, as it is where plans "
                "end that gain by every second, such as with time_weight < 0. Give a limit that "
                "no good plan reaches, as in (0.2, 60.0)"
            )
        if not (0 <= limits[0] <= limits[1] < np.inf) or limits[1] == 0:
            raise ValueError(
                f"duration must be seconds > 0, or two limits such as (0.2, 10.0), got "
                f"{self.duration!r}"
            )
        if self.lengths is not None:
            lengths = check_shape("lengths", self.lengths, (self.steps,))
            if not (lengths > 0).all():
                k = int((lengths <= 0).argmax())
                raise ValueError(f"lengths must be positive, got {lengths[k]:g} for step {k}")

    @property
    def shares(self) -> np.ndarray:
        """Share of the duration that each step takes."""
        lengths = np.ones(self.steps) if self.lengths is None else np.asarray(self.lengths, float)
        return lengths / lengths.sum()

    @property
    def nodes(self) -> np.ndarray:
        """Share of the duration at which each node is, from 0 to 1."""
        return np.append(np.cumsum(self.shares) - self.shares, 1.0)

    def jumped(self, t: Any, x: Any, p: Any, onto: LieGroup | None = None) -> Any:
        """The state after the end on a group, its own if left out, for symbols of that before."""
        group = self.system.state if onto is None else onto
        value = self._after(t, x, p)
        if value.shape != (group.nq, 1):
            raise ValueError(
                f"jump of phase {self.name!r} returned shape {value.shape}, expected "
                f"{(group.nq, 1)}: an element of {group}"
            )
        return value

    def _after(self, t: Any, x: Any, p: Any) -> Any:
        """What `jump` returns, as a column; its faults by the name of the phase."""
        assert self.jump is not None
        label = f"jump of phase {self.name!r}"
        value = called_with(label, self.jump, (t, x, p), ("t", "x", "p"))
        try:
            return ca.vertcat(*value) if isinstance(value, list | tuple) else type(x)(value)
        except (NotImplementedError, TypeError):
            raise TypeError(
                f"{label} returned {value!r}, expected a CasADi column or a list of scalars: the "
                "state of the next phase"
            ) from None

    def traced(self, parameters: int) -> Phase:
        """The same with CasADi functions in place of Python's, for so many parameters."""
        named, symbol, jump = ("costs", "residuals", "bounds"), self.system.symbol, self.jump
        terms: Any = {n: traced_terms(self.system, getattr(self, n), parameters) for n in named}
        if jump is not None and not isinstance(jump, ca.Function):
            sizes = {"t": 1, "x": self.system.state.nq, "p": parameters}
            given = [symbol.sym(name, size) for name, size in sizes.items()]
            jump = ca.Function("jump", given, [self._after(*given)])
        return replace(self, **terms, jump=jump)

    @property
    def is_free(self) -> bool:
        """Whether the duration is to be found."""
        return bool(np.ndim(self.duration))

    @property
    def limits(self) -> tuple[float, float]:
        """Least and greatest duration, s."""
        pair = self.duration if self.is_free else (self.duration, self.duration)
        low, high = check_shape("duration", pair, (2,), finite=False)
        return float(low), float(high)


class _Durations(dict[str, float]):
    """Durations by phase, which say what the phases are called."""

    def __missing__(self, name: object) -> float:
        raise UnknownNameError(unknown_name("phase", name, self))


@dataclass(frozen=True, eq=False)
class PhasedSolution(Result):
    """What `PhasedProblem.solve` found.

    Attributes
    ----------
    durations : dict of str to float
        Of the phases, in s.
    switches : ndarray
        Times in s at which phases end.
    parts : dict of str to Trajectory
        Nodes in time of each phase on its own group, with its own inputs, one a step, from after
        the jump.
    problem : PhasedProblem
    solution : OptimalSolution
        Solution of `PhasedProblem.problem`, whose time is the number of a node; messages and
        violations tell seconds.
    whole : Trajectory or None
        All parts in one; None where phases move on different groups.
    """

    durations: dict[str, float]
    switches: np.ndarray
    parts: dict[str, Trajectory]
    problem: PhasedProblem
    solution: OptimalSolution
    whole: Trajectory | None

    @property
    def trajectory(self) -> Trajectory:
        """Nodes in time of the state that the phases share; where one ends, before its jump."""
        if self.whole is None:
            raise ValueError(
                f"phases {', '.join(self.parts)} have states on different groups: take parts"
            )
        return self.whole

    @property
    def status(self) -> SolveStatus:
        """How the solve ended, as `OptimalSolution.status`."""
        return self.solution.status

    @property
    def message(self) -> str:
        """How the solve ended, in a sentence."""
        return self.solution.message

    @property
    def cost(self) -> float:
        """Cost of the plan."""
        return self.solution.cost

    def transcription_error(self, tolerance: float = 1e-8) -> TranscriptionError:
        """How far the plan is from what its systems do between the nodes.

        Parameters
        ----------
        tolerance : float
            Of the integration of each step, as a share of the states and of the cost.

        Returns
        -------
        TranscriptionError
            As `OptimalSolution.transcription_error`, of all phases one after the other; ``parts``
            has that of each phase.

        Examples
        --------
        >>> lag = System("lag", Rn(1), lambda t, x, u, p: -x + u, inputs=["u"])
        >>> found = PhasedProblem(Phase(lag, 5, 1.0, Q=1.0, R=1.0)).solve([1.0])
        >>> error = found.transcription_error()
        >>> error.state < 1e-4, error.cost_change < -0.03  # the sum of five values is too large
        (True, True)
        """
        return DERIVED["transcription_error_of_phases"](self, tolerance)

    def sensitivities(self) -> Any:
        """Derivatives by the start and all parameters; what is active stays so.

        Returns
        -------
        Sensitivities
            Of `solution`, as `OptimalSolution.sensitivities`. Its states have the error coordinates
            of the groups of the phases, then the free durations in their order.

        Examples
        --------
        >>> from lgcontrol.systems import Input
        >>> pull = Input("u", "", -1, 1)
        >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[pull])
        >>> stop = Bound("x0", 1, 1, at="terminal"), Bound("x1", 0, 0, at="terminal")
        >>> problem = PhasedProblem(Phase(cart, 20, (0.5, 5), bounds=stop), time_weight=1)
        >>> slopes = problem.solve([0.1, 0.0]).sensitivities()
        >>> bool(slopes.by("x0").x[0, -1, 0] < -1)  # seconds per metre that the way is shorter
        True
        """
        return DERIVED["sensitivities"](self.solution)

    def plot(self, *, figure: Any = None) -> Figure:
        """States and inputs over time, as `Trajectory.plot`.

        Thin lines are the motion of each step if some end visibly off the next node.
        """
        between = DERIVED["motion_between_phases"](self)
        return plot_trajectory(self.trajectory, between=between, figure=figure)

    def save(self, path: str | Path) -> Path:
        """Write the trajectory to an ``.npz`` file, as `Trajectory.save`, which it returns."""
        return self.trajectory.save(path)

    def __repr__(self) -> str:
        """Status, durations and cost."""
        times = ", ".join(f"{name}={value:.6g} s" for name, value in self.durations.items())
        return f"PhasedSolution({self.status}, {times}, cost={self.cost:.6g})"


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
    method : str or Method
        Integrator of the steps.
    quadrature : {"left", "gauss"}
        Integral of costs and residuals over a step, as in `OptimalControlProblem`.
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

    >>> from lgcontrol.systems import Input
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=[Input("u", "", -1, 1)])
    >>> stop = Bound("x0", 1, 1, at="terminal"), Bound("x1", 0, 0, at="terminal")
    >>> found = PhasedProblem(Phase(cart, 20, (0.5, 5), bounds=stop), time_weight=1).solve([0, 0])
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
        method: str | Method = "rk4",
        quadrature: str = "left",
        free: str | Iterable[str] = (),
        arrival: WeightLike | None = None,
    ) -> None:
        given = [phases] if isinstance(phases, Phase) else list(phases)
        if not given or not all(isinstance(phase, Phase) for phase in given):
            raise TypeError("phases must be a Phase or a list of them")
        self.phases = tuple(
            phase if phase.name else replace(phase, name=f"phase{i}")
            for i, phase in enumerate(given)
        )
        self.is_periodic, self.method = is_periodic, method
        if quadrature not in QUADRATURES:
            raise UnknownNameError(unknown_name("quadrature", str(quadrature), QUADRATURES))
        self.quadrature = check_quadrature(self.phases[0].system, quadrature)
        self._statement = {
            "time_weight": time_weight, "reference": reference, "parameters": parameters,
            "is_periodic": is_periodic, "method": method, "quadrature": quadrature, "free": free,
            "arrival": arrival,
        }  # fmt: skip
        self._check()
        first = self.phases[0].system
        chosen = free_errors(first, free)
        if len(chosen) and first.errors is not None:
            raise ValueError(f"free: {first.name} has constraints, its start cannot be free")
        self._is_open = is_periodic or len(chosen) > 0
        if not isinstance(time_weight, str) and not np.isfinite(time_weight):
            raise ValueError(
                f"time_weight must be finite, got {time_weight}: a penalty per s, such as 1.0, or "
                "the name of a parameter"
            )
        self.starts = np.concatenate([[0], np.cumsum([phase.steps for phase in self.phases])])
        self._free = [i for i, phase in enumerate(self.phases) if phase.is_free]
        extra = tuple(Parameter(v) if isinstance(v, str) else v for v in parameters)
        self._extra = extra
        self._groups: list[LieGroup] = []
        for phase in self.phases:
            if phase.system.state not in self._groups:
                self._groups.append(phase.system.state)
        self._split = self._places()
        # Where each phase has its state among coordinates, and its inputs among all.
        self._own = [self._split.motions[self._group_of(i)] for i in range(len(self.phases))]
        entries = {e.name: e for phase in self.phases[::-1] for e in phase.system.inputs}
        names = dict.fromkeys(n for phase in self.phases for n in phase.system.input_names)
        self._inputs = [entries[name] for name in names]
        index = {name: k for k, name in enumerate(names)}
        self._used = [[index[n] for n in phase.system.input_names] for phase in self.phases]
        self._points = [self._reference_of(phase, reference) for phase in self.phases]
        system = self._system()
        limits = {phase.name: phase.limits for phase in self.phases if phase.is_free}
        ends = [
            Bound(f"{DURATION}.{name}" if self._free else name, low, high, at="start")
            for name, (low, high) in limits.items()
        ]
        haste = Cost(lambda t, x, u, p: self._elapsed(x, len(self.phases)), None, time_weight,
                     "time")  # fmt: skip
        spans = range(len(self.phases))
        loop = [self._closing()] if is_periodic else []
        names = [*(system.error_names[i] for i in chosen), *([DURATION] if self._free else [])]
        self.problem = OptimalControlProblem(
            system, int(self.starts[-1]), Q=0.0, R=_least_effort(system), terminal=0.0,
            reference=self._point(system), parameters=extra,
            free="all" if is_periodic else names,
            arrival=None if arrival is None else self._beside(system, arrival),
            costs=[haste, *(c for i in spans for c in self._costs(i))],
            residuals=[r for i in spans for r in self._residuals(i)],
            bounds=[*ends, *loop, *(b for i in spans for b in self._bounds(i))],
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """With the functions of its phases as CasADi's: those of Python do not all pickle."""
        count = len(self.problem.all_parameters)
        return self.__dict__ | {"phases": tuple(phase.traced(count) for phase in self.phases)}

    def with_phases(self, phases: Sequence[Phase], **options: Any) -> PhasedProblem:
        """Copy with other phases and, by name, other options.

        Parameters
        ----------
        phases : sequence of Phase
        **options
            Of the constructor.
        """
        return PhasedProblem(phases, **(self._statement | options))

    def alone(self, i: int, steps: np.ndarray) -> OptimalControlProblem:
        """The steps of a phase as a problem of its own, without its end: costs and bounds.

        Parameters
        ----------
        i : int
        steps : ndarray, shape (phase.steps,)
            Lengths of the steps, s.
        """
        phase = self.phases[i]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # on its substeps, which are given
            return OptimalControlProblem(
                phase.system, phase.steps, steps, Q=0.0 if phase.Q is None else phase.Q,
                R=_least_effort(phase.system) if phase.R is None else phase.R, terminal=0.0,
                reference=self._points[i], costs=phase.costs, residuals=phase.residuals,
                bounds=[replace(b, soft=None) for b in phase.bounds if b.at in ALONG],
                parameters=self._extra, method=self.method, substeps=1, quadrature=self.quadrature,
            )  # fmt: skip

    def stretch(self, i: int, steps: np.ndarray) -> Any:
        """What of `alone` the motion between its nodes needs, at a tenth of the time."""
        phase, names = self.phases[i], self.problem.parameter_names
        bounds = [with_known_limits(phase.system, one) for one in phase.bounds if one.at in ALONG]
        return SimpleNamespace(
            system=phase.system, horizon=phase.steps, steps=steps, method=self.method, substeps=1,
            parameter_names=names, _seen=seen_bounds(phase.system, bounds, names),
            bound_unit=lambda name: unit_named(phase.system, bounds, name),
        )  # fmt: skip

    def point_of(self, i: int) -> TrajectoryPoint:
        """State and inputs that errors and efforts of a phase are of."""
        return self._points[i]

    def motion_of(self, i: int) -> slice:
        """Where the motion of a phase is among the coordinates of all."""
        return self._own[i]

    def tangent_of(self, i: int) -> slice:
        """Where the motion of a phase is among the tangent coordinates of all."""
        ends = np.cumsum([0, *(group.dim for group in self._groups)]).tolist()
        return slice(*ends[self._group_of(i) : self._group_of(i) + 2])

    @interruptible
    def solve(
        self,
        x0: ArrayLike,
        *,
        durations: Sequence[float] | None = None,
        guess: Any = None,
        solver: Solver | str | None = None,
        refine: float | None = None,
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
        **options
            Of `Solver.solve`.

        Returns
        -------
        PhasedSolution
        """
        start = check_state(self.phases[0].system, "x0", x0)
        chosen: Any = type(make_solver(solver, self.problem))
        check_options(options, self.solve, chosen.solve, but=("reference", "t0"))
        if refine is not None:
            told = {"durations": durations, "guess": guess, "solver": solver}
            return DERIVED["refined_phases"](self, start, refine, options | told)
        return self._solved(
            start, is_told=True, durations=durations, guess=guess, solver=solver, **options
        )

    def _solved(
        self, start: np.ndarray, *, is_told: bool = False, durations: Any = None,
        guess: Any = None, solver: Solver | str | None = None, **options: Any,
    ) -> PhasedSolution:  # fmt: skip
        """See `solve`; if `is_told`, the message says where steps are coarse."""
        if options.get("arrival") is not None:
            arrival = self._beside(self.problem.system, options["arrival"])
            options = options | {"arrival": arrival}
        if durations is None:
            times = self._longer(MIDDLE)
        else:
            times = check_shape("durations", durations, (len(self.phases),)).tolist()
            for phase, time in zip(self.phases, times, strict=True):
                low, high = phase.limits
                if not low <= time <= high:
                    limits = f"from {low:g} to {high:g} s" if phase.is_free else f"{low:g} s"
                    raise ValueError(
                        f"duration {time:g} s of phase {phase.name!r}: it must be {limits}, as "
                        "Phase(duration=) says"
                    )
        given = self._guess(guess, times)
        solver, began = make_solver(solver, self.problem), perf_counter()
        found = self.problem.solve(self._state(start, times), guess=given, solver=solver, **options)
        ended = GIVEN_UP if "max_iterations" in options else (*GIVEN_UP, USED_UP)
        if durations is None and self._free and found.status in ended:
            left = options.get("time_limit", np.inf) - (perf_counter() - began)
            options = options | ({"time_limit": left} if "time_limit" in options else {})
            found = self._from_longer(found, start, guess, solver, options)
        made = self._told(found, start, options)
        text = DERIVED["coarseness_of_phases"](solver, made) if is_told else ""
        if text:
            made = replace(made, solution=made.solution._with_message(made.message + text))
        return made

    def _longer(self, share: float) -> list[float]:
        """Durations between the limits of the phases: at 0 the least, at 1 the longest."""
        return [
            min(max(low ** (1 - share) * high**share if low > 0 else share * high, low), high)
            for low, high in self._limits
        ]

    def _from_longer(
        self,
        found: OptimalSolution,
        start: np.ndarray,
        guess: Any,
        solver: Solver | str | None,
        options: dict[str, Any],
    ) -> OptimalSolution:
        """A plan whose search begins at one of longer durations, or what was found.

        Too short a duration can be a stationary point of the violation: no small change of it helps
        where the way takes longer than all of it.
        """
        began, limit = perf_counter(), options.pop("time_limit", None)
        starts = [self._longer(share) for share in LONGER]
        for least in starts:
            phases = [
                replace(phase, duration=(time, phase.limits[1])) if phase.is_free else phase
                for phase, time in zip(self.phases, least, strict=True)
            ]
            made: Any = guess
            for of in (self.with_phases(phases), self):
                if limit is not None:
                    options["time_limit"] = limit - (perf_counter() - began)
                    if options["time_limit"] <= 0:
                        return found
                made = of.problem.solve(
                    of._state(start, least), guess=of._guess(made, least), solver=solver, **options
                )
                if not made.is_success:
                    break
            else:
                return made
        tried = ", ".join(f"{sum(least):.4g}" for least in starts)
        message = f"{found.message}; nor was a plan found from longer durations, {tried} s in all"
        return replace(found, message=message)

    def _told(
        self, found: OptimalSolution, start: np.ndarray, options: dict[str, Any]
    ) -> PhasedSolution:
        """What was found, in seconds and by phases."""
        x, u = found.x, found.u
        seconds = [
            float(np.clip(x[0, self._split.durations][self._free.index(i)], *q.limits))
            if i in self._free
            else q.limits[0]
            for i, q in enumerate(self.phases)
        ]
        parts = [T * q.shares for T, q in zip(seconds, self.phases, strict=True)]
        t = np.concatenate([[0.0], np.cumsum(np.concatenate(parts))])
        # A phase that vanishes leaves one node: that after it.
        kept = np.append(np.diff(t) > 0, True)
        whole = None
        if len(self._groups) == 1:
            whole = Trajectory(
                self._groups[0], t[kept], x[kept][:, self._own[0]], _held(u, kept),
                inputs=self._inputs,
            )  # fmt: skip
        names = [q.name for q in self.phases]
        p = self.problem.parameter_values(options.get("p"))
        parts = {name: self._part(i, t, x, u, p) for i, name in enumerate(names)}
        return PhasedSolution(
            _Durations(zip(names, seconds, strict=True)), t[self.starts[1:]], parts, self,
            self._with_start(_in_seconds(found, t), start, p), whole,
        )  # fmt: skip

    def _with_start(
        self, solution: OptimalSolution, x0: np.ndarray, p: np.ndarray
    ) -> OptimalSolution:
        """The solution, whose message names hard bounds that the given start violates."""
        if self._is_open or not solution.is_success:
            return solution
        phase, point = self.phases[0], self._points[0]
        values = ca.DM(0), ca.DM(x0), ca.DM(point.u), ca.DM(p), ca.DM(point.x)
        told = []
        for bound in (with_known_limits(phase.system, bound) for bound in phase.bounds):
            holds_first = bound.at in ALONG or (isinstance(bound.at, range) and 0 in bound.at)
            _, needs_input = _named_rows(phase.system, bound, len(self._extra))
            if bound.soft is not None or not holds_first or needs_input:
                continue
            found = np.asarray(ca.DM(expression_of(phase.system, bound, *values)[0])).ravel()
            known = self.problem.parameter_names
            low, high = (
                np.asarray(p[known.index(limit)] if isinstance(limit, str) else limit)
                for limit in (bound.lower, bound.upper)
            )
            excess = float(np.max([low - found, found - high]))
            if excess > START_TOLERANCE:
                told.append(f"{bound.label} by {excess:.3g}")
        if not told:
            return solution
        message = (
            f"{solution.message}; x0 itself violates the hard bound on {', '.join(told)}: bounds "
            "hold from the first step on, start within them"
        )
        return replace(solution, message=message)

    def _part(
        self, i: int, t: np.ndarray, x: np.ndarray, u: np.ndarray, p: np.ndarray
    ) -> Trajectory:
        """Nodes of a phase; one that vanishes has its end alone."""
        first, last = self.starts[i], self.starts[i + 1]
        phase, before = self.phases[i], self.phases[i - 1] if i else None
        here = t[first : last + 1]
        states = x[first : last + 1, self._own[i]].copy()
        if before is not None and before.jump is not None:
            end = ca.DM(x[first, self._own[i - 1]])
            after = before.jumped(float(here[0]), end, ca.DM(p), phase.system.state)
            states[0] = np.asarray(ca.DM(after)).ravel()
        kept = np.append(np.diff(here) > 0, True)
        inputs = _held(u[first:last][:, self._used[i]], kept)
        return Trajectory(
            phase.system.state, here[kept], states[kept], inputs, inputs=phase.system.inputs
        )

    def _guess(self, guess: Any, times: Sequence[float]) -> Any:
        """A guess as `problem` takes it."""
        if isinstance(guess, tuple):
            return tuple(self._guess(one, times) for one in guess)
        if isinstance(guess, PhasedSolution):
            return guess.solution
        if isinstance(guess, list) or (isinstance(guess, Trajectory) and len(self._groups) > 1):
            return self._joined(self._checked(guess), times)
        if not isinstance(guess, Trajectory):
            return guess
        if len(guess) != self.starts[-1] + 1:
            ends = np.concatenate([[0.0], np.cumsum(times)]) / (sum(times) or 1.0)
            shares = zip(ends[:-1], ends[1:], strict=True)
            return self._joined(
                [
                    _sampled(guess, *share, phase.nodes, used)
                    for phase, share, used in zip(self.phases, shares, self._used, strict=True)
                ],
                times,
            )
        u = guess.input_at_nodes[:-1]
        spans = zip(self.starts[:-1], self.starts[1:], strict=True)
        parts = [
            (guess.x[a : b + 1], u[a:b][:, k]) for (a, b), k in zip(spans, self._used, strict=True)
        ]
        return self._joined(parts, times)

    def _checked(self, guess: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """States and inputs of a guess for each phase."""
        given = guess if isinstance(guess, list) else [guess]
        if len(given) != len(self.phases):
            raise ValueError(
                f"the guess has {len(given)} trajectories for {len(self.phases)} phases: a list "
                "has one for each"
            )
        return [
            (one.x, one.input_at_nodes[:-1])
            if len(one) == phase.steps + 1
            else _sampled(one, 0.0, 1.0, phase.nodes)
            for phase, one in zip(self.phases, given, strict=True)
        ]

    def _joined(
        self, parts: Sequence[tuple[np.ndarray, np.ndarray]], times: Sequence[float]
    ) -> Trajectory:
        """A guess for the whole: states wait where their phase begins, and stay where it ends."""
        count = int(self.starts[-1])
        x = np.tile(self._state(parts[0][0][0], times), (count + 1, 1))
        u = np.tile([entry.nominal for entry in self._inputs], (count, 1))
        for i, (states, inputs) in enumerate(parts):
            first, last = self.starts[i], self.starts[i + 1]
            begun = i > 0 and self._own[i] != self._own[i - 1]
            x[first + begun : last + 1, self._own[i]] = states[begun:]
            x[last + 1 :, self._own[i]] = states[-1]
            u[first:last, self._used[i]] = inputs
        return Trajectory(self.problem.system.state, np.arange(count + 1), x, u)

    @property
    def _limits(self) -> list[tuple[float, float]]:
        return [phase.limits for phase in self.phases]

    def _check(self) -> None:
        first, names = self.phases[0].system, [phase.name for phase in self.phases]
        if self.phases[-1].jump is not None and not self.is_periodic:
            raise ValueError(
                f"phase {names[-1]!r} is the last: its jump leads nowhere, unless is_periodic=True"
            )
        if len({*names}) < len(names):
            raise ValueError(f"phases of the same name: {', '.join(names)}")
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
            self._check_bounds(phase)
            roles = {e.name: e.role for e in system.inputs}
            for entry in first.inputs:
                if roles.get(entry.name, entry.role) != entry.role:
                    raise ValueError(
                        f"phase {phase.name!r}: input {entry.name!r} of {system.name} is a "
                        f"{roles[entry.name]}, of {first.name} a {entry.role}"
                    )
            if system.parameter_names != first.parameter_names:
                raise ValueError(
                    f"phase {phase.name!r}: {system.name} and {first.name} differ in parameters"
                )

    def _check_bounds(self, phase: Phase) -> None:
        """Refuse bounds that contradict each other, by the name of their phase."""
        bounds = [with_known_limits(phase.system, bound) for bound in phase.bounds]
        try:
            check_consistent(phase.system, bounds, phase.steps)
        except ValueError as error:
            raise type(error)(f"phase {phase.name!r}: {error}") from None

    def _group_of(self, i: int) -> int:
        """Which of the groups a phase moves on."""
        return self._groups.index(self.phases[i].system.state)

    def _places(self) -> _Coordinates:
        """Where motions, free durations and the first state of a loop are among coordinates."""
        sizes = [group.nq for group in self._groups]
        ends = np.cumsum([0, *sizes, len(self._free), sizes[0]]).tolist()
        parts = [slice(a, b) for a, b in zip(ends[:-1], ends[1:], strict=True)]
        return _Coordinates(tuple(parts[:-2]), parts[-2], parts[-1])

    def _group(self) -> Product:
        blocks: dict[str, LieGroup] = {
            f"{MOTION}{k or ''}": group for k, group in enumerate(self._groups)
        }
        if self._free:
            names = tuple(self.phases[i].name for i in self._free)
            blocks[DURATION] = Rn(len(names), names, "s")
        if self.is_periodic:
            blocks[FIRST] = self._groups[0]
        return Product(**blocks)

    def _state(self, x: np.ndarray, times: Sequence[float]) -> np.ndarray:
        """State of the whole at the start, or at the reference; other groups wait at theirs."""
        waiting = [
            self._points[[self._group_of(i) for i in range(len(self.phases))].index(k)].x
            for k in range(1, len(self._groups))
        ]
        free = [times[i] for i in self._free]
        return np.concatenate([x, *waiting, free, x if self.is_periodic else []])

    def _beside(self, system: System, weight: WeightLike) -> np.ndarray:
        """A weight on the first state of the first phase, as one on that of the whole."""
        if not self._is_open:
            raise ValueError("arrival weighs initial states that are free: name them, free=…")
        own = error_weight("arrival", weight, self.phases[0].system)
        whole = np.zeros((system.n_errors, system.n_errors))
        whole[: len(own), : len(own)] = own
        return whole

    def _reference_of(self, phase: Phase, reference: Any) -> TrajectoryPoint:
        """State and inputs that a phase's errors and efforts are of."""
        system = phase.system
        own = phase.reference
        if own is None and system.state == self._groups[0]:
            own = reference
        own = system.state.identity if own is None else own
        x = check_state(system, "reference", getattr(own, "x", own))
        u = np.asarray(getattr(own, "u", system.nominal_input), dtype=np.float64)
        return TrajectoryPoint(x, system.full_input(u) if len(u) < system.n_inputs else u)

    def _point(self, system: System) -> Any:
        middle = [sum(limits) / 2 for limits in self._limits]
        u = np.array([entry.nominal for entry in self._inputs])
        for point, used in list(zip(self._points, self._used, strict=True))[::-1]:
            u[used] = point.u
        return TrajectoryPoint(self._state(self._points[0].x, middle), u)

    def _seconds(self, x: Any, i: int) -> Any:
        """Duration of a phase, for symbols of the state."""
        return (
            x[self._split.durations][self._free.index(i)]
            if i in self._free
            else self.phases[i].limits[0]
        )

    def _elapsed(self, x: Any, phases: int) -> Any:
        return sum((self._seconds(x, i) for i in range(phases)), ca.DM(0))

    def _time(self, i: int, t: Any, x: Any) -> Any:
        """Time in s at node t of a phase."""
        return self._elapsed(x, i) + self._share(i, t)[0] * self._seconds(x, i)

    def _length(self, i: int, t: Any, x: Any) -> Any:
        """Length in s of the step of a phase that begins at node t."""
        return self._share(i, t)[1] * self._seconds(x, i)

    def _share(self, i: int, t: Any) -> tuple[Any, Any]:
        """Shares of the duration of a phase before node t, and of the step that begins there."""
        phase, local = self.phases[i], t - int(self.starts[i])
        shares = phase.shares
        if (shares == shares[0]).all():
            return local / phase.steps, 1 / phase.steps
        first = np.flatnonzero(np.append(True, shares[1:] != shares[:-1]))  # of equal steps
        edges, begun = first[1:] - 0.5, phase.nodes[first] - first * shares[first]
        length = ca.pw_const(local, edges, shares[first])
        return ca.pw_const(local, edges, begun) + local * length, length

    def _points_within(
        self, i: int, t: Any, x: Any, u: Any, p: Any
    ) -> list[tuple[float, Any, Any]]:
        """Weight, time and state of the points at which integrals over a step are taken."""
        system, length = self.phases[i].system, self._length(i, t, x)
        now, state, before, found = self._time(i, t, x), self._begun(i, t, x, p), 0.0, []
        if self.quadrature == "left":
            return [(1.0, now, state)]
        step, own = system.step(self.method).function, p[: system.n_parameters]
        for place, share in QUADRATURES[self.quadrature]:
            part = (place - before) * length
            state = step(now + before * length, state, u[self._used[i]], own, part)
            found.append((share, now + place * length, state))
            before = place
        return found

    def _is_in(self, i: int, t: Any) -> Any:
        """Whether the step that begins at node t belongs to a phase, 1 or 0."""
        after = t > int(self.starts[i]) - 0.5
        return ca.logic_and(after, t < int(self.starts[i + 1]) - 0.5)

    def _begun(self, i: int, t: Any, x: Any, p: Any) -> Any:
        """State of a phase at node t, where it begins that after the jump before it."""
        here = x[self._own[i]]
        if not i or self.phases[i - 1].jump is None:
            return here
        before, motion = x[self._own[i - 1]], self.phases[i].system.state
        jumped = self.phases[i - 1].jumped(self._time(i, t, x), before, p, motion)
        return ca.if_else(t < int(self.starts[i]) + 0.5, jumped, here)

    def _alike(self) -> list[list[int]]:
        """Phases by their systems: those of one share its step."""
        found: dict[int, list[int]] = {}
        for i, phase in enumerate(self.phases):
            found.setdefault(id(phase.system), []).append(i)
        return list(found.values())

    def _step_of(self, i: int, t: Any, x: Any, p: Any) -> list[Any]:
        """Time, state and length of the step of a phase that begins at node t."""
        return [self._time(i, t, x), self._begun(i, t, x, p), self._length(i, t, x)]

    def _system(self) -> System:
        first, group = self.phases[0].system, self._group()
        sizes = [motion.dim for motion in self._groups]
        others = group.dim - sum(sizes)

        def change(t: Any, x: Any, u: Any, p: Any) -> Any:
            totals: list[Any] = [ca.DM.zeros(size) for size in sizes]
            for alike in self._alike():
                i = alike[0]
                given = self._step_of(i, t, x, p)
                for j in alike[1:]:
                    is_in, own = self._is_in(j, t), self._step_of(j, t, x, p)
                    given = [ca.if_else(is_in, *pair) for pair in zip(own, given, strict=True)]
                now, begin, length = given
                system = self.phases[i].system
                after = system.step(self.method).function(now, begin, u[self._used[i]], p, length)
                moved = system.state.minus(after, x[self._own[i]])
                if len(alike) < len(self.phases):
                    moved = ca.if_else(sum(self._is_in(j, t) for j in alike), moved, 0)
                totals[self._group_of(i)] += moved
            return ca.vertcat(*totals, ca.DM.zeros(others))

        limits = self._widest()
        inputs = [
            replace(entry, lower=limits[entry.name][0], upper=limits[entry.name][1])
            for entry in self._inputs
        ]
        name = "_then_".join(dict.fromkeys(phase.system.name for phase in self.phases))
        return System(name, group, change, inputs=inputs, parameters=first.parameters, dt=1.0)

    # -- terms and bounds ----------------------------------------------------------------------

    def _widest(self) -> dict[str, tuple[float, float]]:
        """Limits of the inputs that every phase keeps."""
        found: dict[str, tuple[float, float]] = {}
        for phase in self.phases:
            for entry in phase.system.inputs:
                low, high = found.get(entry.name, (np.inf, -np.inf))
                found[entry.name] = min(low, entry.lower), max(high, entry.upper)
        return found

    def _terms(
        self, i: int, term: T, value: Callable[..., Any], over_step: Callable[[Any], Any]
    ) -> list[T]:
        """A residual or a cost of a phase, with a value of t, x, u, p, as terms of the whole.

        Along the phase the value has the factor `over_step` of the length of a step.
        """
        phase, own, used = self.phases[i], self._own[i], self._used[i]
        first, last = int(self.starts[i]), int(self.starts[i + 1])
        u_ref = ca.DM(self._points[i].u)

        def along(t: Any, x: Any, u: Any, p: Any, points: slice = slice(None)) -> Any:
            found = sum(
                over_step(share * self._length(i, t, x)) * value(*point, u[used], p)
                for share, *point in self._points_within(i, t, x, u, p)[points]
            )
            return found if len(self.phases) == 1 else ca.if_else(self._is_in(i, t), found, 0)

        def along_at(k: int) -> Callable[..., Any]:
            return lambda t, x, u, p: along(t, x, u, p, slice(k, k + 1))

        def at_node(t: Any, x: Any, u: Any, p: Any) -> Any:
            return value(self._time(i, t, x), self._begun(i, t, x, p), u[used], p)

        def at_end(t: Any, x: Any, u: Any, p: Any) -> Any:
            del t, u
            return value(self._elapsed(x, i + 1), x[own], type(x)(u_ref), p)

        made: list[tuple[Any, Any, range, str]] = []
        end, ended = range(last, last + 1), f"{term.name} at the end of {phase.name}"
        if term.at in ALONG:
            each_point = range(len(QUADRATURES[self.quadrature]))
            sums = [along] if isinstance(term, Cost) else [along_at(k) for k in each_point]
            made += [(one, term.weight, range(first, last), term.name) for one in sums]
            made.append((at_end, term.terminal, end, ended))
        else:
            at = TERMS_AT[term.at](phase.steps) if isinstance(term.at, str) else term.at
            label = f"{type(term).__name__.lower()} {term.name!r} of phase {phase.name!r}"
            check_numbers(label, at, phase.steps)
            weight: Any = term.weight
            of_nodes, of_end = at, range(0)
            each = np.ndim(weight) == (3 if isinstance(term, Residual) else 1)
            parts = weight, weight
            if phase.steps in at:
                k = at.index(phase.steps)
                of_nodes, of_end = at[:k] or at[k + 1 :], end
                if each:
                    parts = np.delete(np.asarray(weight), k, axis=0), np.asarray(weight)[k : k + 1]
            nodes = range(first + of_nodes.start, first + of_nodes.stop, of_nodes.step)
            made += [(at_node, parts[0], nodes, term.name)] if nodes else []
            made += [(at_end, parts[1], of_end, ended)] if of_end else []
        return [
            type(term)(function, weight, None, name, at=nodes)
            for function, weight, nodes, name in made
            if weight is not None
        ]

    def _costs(self, i: int) -> list[Cost]:
        """Costs of a phase: times the length of a step along it, and at its nodes."""
        found = []
        for cost in (of_quantity(self.phases[i].system, c) for c in self.phases[i].costs):

            def value(t: Any, x: Any, u: Any, p: Any, cost: Cost = cost) -> Any:
                return cost.expression(type(x), t, x, u, p)

            found += self._terms(i, cost, value, lambda length: length)
        return found

    def _residuals(self, i: int) -> list[Residual]:
        """Error, effort and residuals of a phase, by the root of the length of a step."""
        phase, system, steps = self.phases[i], self.phases[i].system, self.phases[i].steps
        controls = system.input_index("control").tolist()
        x_ref, u_ref = ca.DM(self._points[i].x), ca.DM(self._points[i].u)

        def error(t: Any, x: Any, u: Any, p: Any) -> Any:
            return system.error(x, type(x)(x_ref))

        def effort(t: Any, x: Any, u: Any, p: Any) -> Any:
            return (u - u_ref)[controls]

        def root(length: Any) -> Any:
            is_none = length <= 0  # where the root has no slope
            return ca.if_else(is_none, 0.0, ca.sqrt(ca.if_else(is_none, 1.0, length)))

        terms: list[tuple[Residual, Callable[..., Any]]] = []
        if phase.Q is not None:
            weight = error_weight("Q", phase.Q, system, steps)
            terms.append((Residual(error, weight, name=f"error of {phase.name}"), error))
        if phase.R is not None:
            weight = input_weight("R", phase.R, system, steps)
            terms.append((Residual(effort, weight, name=f"effort of {phase.name}"), effort))
        for residual in (of_quantity(system, r) for r in phase.residuals):

            def own_value(t: Any, x: Any, u: Any, p: Any, residual: Residual = residual) -> Any:
                return residual.expression(system, t, x, u, p)

            terms.append((residual, own_value))
        return [one for term, value in terms for one in self._terms(i, term, value, root)]

    def _bounds(self, i: int) -> list[Bound]:
        """Bounds of a phase at its nodes, and what its controls may do less than others'."""
        phase, used = self.phases[i], self._used[i]
        first, last = int(self.starts[i]), int(self.starts[i + 1])
        found = []
        known = [with_known_limits(phase.system, bound) for bound in phase.bounds]
        for bound in (*known, *self._tighter(i)):
            if bound.at == "start" and i == 0 and not self._is_open:
                raise ValueError(
                    f"bound {bound.label!r} of phase {phase.name!r} at its start: that is given to "
                    "solve(), unless it is free (free=…, is_periodic=True)"
                )
            at = bound.at if isinstance(bound.at, range) else PLACES[bound.at](phase.steps)
            if bound.at in ALONG and i == 0 and self._is_open and not self.is_periodic:
                at = range(at.stop)
            if at and not 0 <= min(at) <= max(at) <= phase.steps:
                raise ValueError(
                    f"bound {bound.label!r} of phase {phase.name!r} at {at}: its nodes are 0 to "
                    f"{phase.steps}"
                )
            nodes = range(first + at.start, first + at.stop, at.step)

            def function(t: Any, x: Any, u: Any, p: Any, bound: Bound = bound) -> Any:
                x_ref, now = type(x)(ca.DM(self._points[i].x)), self._time(i, t, x)
                values = now, self._begun(i, t, x, p), u[used], p, x_ref
                return expression_of(phase.system, bound, *values)[0]

            names, needs_input = _named_rows(phase.system, bound, len(self._extra))
            if bound.at != "terminal" and needs_input:
                # Inputs have a value where a step begins.
                nodes = (
                    range(first, last)
                    if bound.at in ALONG
                    else range(nodes.start, min(nodes.stop, last), nodes.step)
                )
            rows = NamedRows(function, names)
            found.append(replace(bound, of=rows, at=nodes, name=bound.label))
        return found

    def _tighter(self, i: int) -> list[Bound]:
        """Bounds of the controls of a phase where another phase allows more."""
        limits, phase = self._widest(), self.phases[i]
        return [
            Bound(
                f"input.{entry.name}",
                entry.lower,
                entry.upper,
                name=f"{entry.name} of {phase.name}",
            )
            for entry in phase.system.inputs
            if entry.lower > limits[entry.name][0] or entry.upper < limits[entry.name][1]
        ]

    def _closing(self) -> Bound:
        """The loop: the first state, carried along, is that after the end."""
        own, kept = self._own, self._split.first
        last, group, end = self.phases[-1], self._groups[0], int(self.starts[-1])

        def function(t: Any, x: Any, u: Any, p: Any) -> Any:
            now, first = x[own[0]], x[kept]
            if last.jump is not None:
                there = last.jumped(self._elapsed(x, len(self.phases)), x[own[-1]], p, group)
                now = ca.if_else(t > end - 0.5, there, now)
            return group.minus(now, first)

        return Bound(function, 0.0, 0.0, at=range(0, end + 1, end), name="loop")


class _Coordinates(NamedTuple):
    """Slices of coordinates.

    Attributes
    ----------
    motions : tuple of slice
        Of the groups that phases move on.
    durations : slice
    first : slice
        First state of a loop.
    """

    motions: tuple[slice, ...]
    durations: slice
    first: slice


def _in_seconds(solution: OptimalSolution, t: np.ndarray) -> OptimalSolution:
    """The solution with the times of its nodes in what it says of violations."""
    message = solution.message
    told = tuple(v._replace(time=float(t[v.node])) for v in solution.violations)
    for before, after in zip(solution.violations, told, strict=True):
        message = message.replace(str(before), str(after))
    return replace(solution, message=message, violations=told)


def _named_rows(system: System, bound: Bound, extra: int) -> tuple[tuple[str, ...], bool]:
    """Names of a bound's rows, and whether it depends on u; extra parameters are the plan's."""
    sym = system.symbol.sym
    sizes = 1, system.state.nq, system.n_inputs, system.n_parameters + extra, system.state.nq
    symbols = [sym(name, size) for name, size in zip("txupr", sizes, strict=True)]
    column, names = expression_of(system, bound, *symbols)
    return names, bool(ca.depends_on(column, symbols[2]))


def _sampled(
    guess: Trajectory, first: float, last: float, nodes: np.ndarray, used: Any = slice(None)
) -> tuple[np.ndarray, np.ndarray]:
    """States and inputs of a guess at the nodes of a phase, which has a part of its duration."""
    t = guess.t[0] + guess.duration * (first + (last - first) * nodes)
    return guess(t).x, guess(t[:-1]).u[:, used]


def _held(u: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """Inputs of the steps whose first nodes are kept; the last one where none is."""
    held = u[kept[:-1]]
    return held if len(held) else u[-1:]

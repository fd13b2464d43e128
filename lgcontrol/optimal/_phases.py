"""Phases: plans of several stretches with free durations, own systems and limits, and jumps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from ..codegen import Value, check_shape
from ..groups import LieGroup, Product, Rn
from ..integrators import Method
from ..systems import (
    Parameter,
    System,
    Trajectory,
    TrajectoryPoint,
    TrimPoint,
    check_name,
    check_state,
)
from ._problem import GuessLike, OptimalControlProblem, OptimalSolution, Solver
from ._statement import (
    Bound,
    Cost,
    Residual,
    WeightLike,
    _expression,
    error_weight,
    input_weight,
)

# Weight on controls, in every step, where a phase gives none: what costs nothing is not unique.
LEAST_EFFORT = 1e-6
MOTION, DURATION, FIRST = "motion", "duration", "first"


@dataclass(frozen=True, eq=False)
class Phase:
    """One stretch of a `PhasedProblem`.

    Functions are those of `OptimalControlProblem`, of the phase's own system; t is the time since
    the start of the plan in s, durations included.

    Parameters
    ----------
    system : System
        Continuous. All phases have the same state and the same controls; fields, bounds of the
        controls and parameters may differ.
    steps : int
    duration : float or tuple of two floats
        In s: given, or free between two limits.
    Q, R : float, array_like or mapping, optional
        Weights per s on the error and on the controls; next to nothing if left out.
    costs : sequence of Cost
    residuals : sequence of Residual
    bounds : sequence of Bound
        Along the phase; those ``at="terminal"`` hold at its end, before the jump.
    jump : callable, optional
        ``(t, x, p) → x`` on CasADi columns: the state after the end of the phase.
    name : str
        Of its duration, "phase0" and so on if left out.

    Examples
    --------
    >>> cart = System("cart", Rn(2), lambda t, x, u, p: [x[1], u], inputs=["push"])
    >>> Phase(cart, 20, duration=(0.5, 4.0)).is_free
    True
    """

    system: System
    steps: int
    duration: float | tuple[float, float]
    Q: WeightLike | None = None
    R: WeightLike | None = None
    costs: Sequence[Cost] = ()
    residuals: Sequence[Residual] = ()
    bounds: Sequence[Bound] = ()
    jump: Callable[[Value, Value, Value], Value] | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.system, System) or self.system.is_discrete:
            raise TypeError(f"a phase has a continuous System, not {self.system!r}")
        if not isinstance(self.steps, int | np.integer) or self.steps < 1:
            raise ValueError(f"steps must be a whole number, at least 1, got {self.steps!r}")
        limits = self.limits
        if not (0 <= limits[0] <= limits[1] < np.inf) or limits[1] == 0:
            raise ValueError(
                f"duration must be seconds > 0, or two limits such as (0.2, 10.0), got "
                f"{self.duration!r}"
            )

    def jumped(self, t: Value, x: Value, p: Value) -> Value:
        """The state after the end, for symbols of that before it."""
        assert self.jump is not None
        value = self.jump(t, x, p)
        value = ca.vertcat(*value) if isinstance(value, list | tuple) else type(x)(value)
        if value.shape != x.shape:
            raise ValueError(
                f"jump of phase {self.name!r} returned shape {value.shape}, expected {x.shape}: "
                f"an element of {self.system.state}"
            )
        return value

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


@dataclass(frozen=True, eq=False)
class PhasedSolution:
    """What `PhasedProblem.solve` found.

    Attributes
    ----------
    durations : dict of str to float
        Of the phases, in s.
    switches : ndarray
        Times in s at which phases end.
    trajectory : Trajectory
        Nodes in time, of the state that the phases share; a node in which a phase ends is that
        before the jump.
    solution : OptimalSolution
        That of `PhasedProblem.problem`.
    """

    durations: dict[str, float]
    switches: np.ndarray
    trajectory: Trajectory
    solution: OptimalSolution

    @property
    def success(self) -> bool:
        """Whether the solve converged."""
        return self.solution.success

    @property
    def cost(self) -> float:
        """Cost of the plan."""
        return self.solution.cost

    def __repr__(self) -> str:
        """Status, durations and cost."""
        times = ", ".join(f"{name}={value:.6g} s" for name, value in self.durations.items())
        return f"PhasedSolution({self.solution.status}, {times}, cost={self.cost:.6g})"


class PhasedProblem:
    """A plan of phases, of which some or all take the time they need.

    It minimises ``time_weight · Σ T_j`` and the costs of the phases. Each phase has steps of equal
    length, durations are constant states with a free start, and the whole is one
    `OptimalControlProblem` of a discrete system, `problem`, for any solver that finds free starts.

    Parameters
    ----------
    phases : Phase or sequence of Phase
    time_weight : float or str
        Price of a second, or the name of a parameter.
    reference : optional
        State (nq,), or an object with ``x`` and ``u``, that errors and efforts are measured from.
    parameters : sequence of Parameter or str
        Of costs, residuals and bounds, after those of the first system.
    is_periodic : bool
        Whether the state after the end (and its jump) is that at the start, which is found, too.
    method : str or Method
        Integrator of the steps.

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
        reference: ArrayLike | TrimPoint | None = None,
        parameters: Sequence[Parameter | str] = (),
        is_periodic: bool = False,
        method: str | Method = "rk4",
    ) -> None:
        given = [phases] if isinstance(phases, Phase) else list(phases)
        if not given or not all(isinstance(phase, Phase) for phase in given):
            raise TypeError("phases must be a Phase or a list of them")
        self.phases = tuple(
            phase if phase.name else replace(phase, name=f"phase{i}")
            for i, phase in enumerate(given)
        )
        self.is_periodic, self.method = is_periodic, method
        self._check()
        self.starts = np.concatenate([[0], np.cumsum([phase.steps for phase in self.phases])])
        self._free = [i for i, phase in enumerate(self.phases) if phase.is_free]
        extra = tuple(Parameter(v) if isinstance(v, str) else v for v in parameters)
        self._extra = len(extra)
        self._motion: LieGroup = self.phases[0].system.state
        self._split = self._places()
        first = self.phases[0].system
        point = self._motion.identity if reference is None else reference
        self._x_ref = check_state(first, "reference", getattr(point, "x", point))
        u_ref = np.asarray(getattr(point, "u", first.nominal_input), dtype=np.float64)
        self._u_ref = first.full_input(u_ref) if len(u_ref) < first.n_inputs else u_ref
        system = self._system()
        limits = {phase.name: phase.limits for phase in self.phases if phase.is_free}
        ends = [
            Bound(f"{DURATION}.{name}" if self._free else name, low, high, at="start")
            for name, (low, high) in limits.items()
        ]
        price = Cost(lambda t, x, u, p: self._elapsed(x, len(self.phases)), None, time_weight,
                     "time")  # fmt: skip
        loop = [self._closing()] if is_periodic else []
        start = {DURATION: "free"} if self._free else "given"
        self.problem = OptimalControlProblem(
            system, int(self.starts[-1]), Q=0.0, R=LEAST_EFFORT, terminal=0.0,
            reference=self._point(system), parameters=extra,
            start="free" if is_periodic else start,
            costs=[price, *(self._cost(i, c) for i, q in enumerate(self.phases) for c in q.costs)],
            residuals=[r for i in range(len(self.phases)) for r in self._residuals(i)],
            bounds=[*ends, *loop, *(b for i in range(len(self.phases)) for b in self._bounds(i))],
        )  # fmt: skip

    def solve(
        self,
        x0: ArrayLike,
        *,
        durations: Sequence[float] | None = None,
        guess: GuessLike = None,
        solver: Solver | str | None = None,
        **options: Any,
    ) -> PhasedSolution:
        """Find the plan.

        Parameters
        ----------
        x0 : array_like, shape (nq,)
            State at the start; of a periodic plan where the search begins.
        durations : sequence of float, optional
            Of the phases, where the search begins; between their limits if left out.
        guess : Trajectory, str or PhasedSolution, optional
            States and inputs at the nodes, whatever their times; or a word of `Solver.solve`.
        solver : Solver or str, optional
        **options
            Of `Solver.solve`.

        Returns
        -------
        PhasedSolution
        """
        start = check_state(self.phases[0].system, "x0", x0)
        if durations is None:
            times = [(low * high) ** 0.5 if low > 0 else high / 2 for low, high in self._limits]
        else:
            times = check_shape("durations", durations, (len(self.phases),)).tolist()
            for phase, time in zip(self.phases, times, strict=True):
                if not (phase.is_free and time >= 0) and time != phase.limits[0]:
                    raise ValueError(
                        f"duration {time:g} s of phase {phase.name!r}: it must be "
                        + ("at least 0" if phase.is_free else f"{phase.limits[0]:g} s, as given")
                    )
        if isinstance(guess, PhasedSolution):
            guess = guess.solution
        elif isinstance(guess, Trajectory):
            if len(guess) != self.starts[-1] + 1:
                raise ValueError(
                    f"the guess has {len(guess)} nodes, expected {self.starts[-1] + 1}, one more "
                    "than the phases have steps"
                )
            x = np.array([self._state(row, times) for row in guess.x])
            guess = Trajectory(
                self.problem.system.state, np.arange(len(x)), x, guess.input_at_nodes[:-1]
            )
        found = self.problem.solve(self._state(start, times), guess=guess, solver=solver, **options)
        x = found.x
        seconds = [
            float(x[0, self._split[1]][self._free.index(i)]) if i in self._free else q.limits[0]
            for i, q in enumerate(self.phases)
        ]
        steps = np.repeat(
            [T / q.steps for T, q in zip(seconds, self.phases, strict=True)],
            [q.steps for q in self.phases],
        )
        t = np.concatenate([[0.0], np.cumsum(steps)])
        # A phase that vanishes leaves one node: that after it.
        kept = np.append(np.diff(t) > 0, True)
        trajectory = Trajectory(
            self._motion, t[kept], x[kept][:, self._split[0]],
            found.trajectory.input_at_nodes[kept], inputs=self.phases[0].system.inputs,
        )  # fmt: skip
        names = [q.name for q in self.phases]
        return PhasedSolution(
            dict(zip(names, seconds, strict=True)), t[self.starts[1:]], trajectory, found
        )

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
        for phase in self.phases:
            check_name("phase", phase.name)
            system = phase.system
            if system.state != first.state or system.input_names != first.input_names:
                raise ValueError(
                    f"phase {phase.name!r}: {system.name} has the state {system.state} and the "
                    f"inputs {', '.join(system.input_names)}; {first.name} has {first.state} and "
                    f"{', '.join(first.input_names)}. Phases share both: give them one state that "
                    "holds what each needs"
                )
            if system.parameter_names != first.parameter_names:
                raise ValueError(
                    f"phase {phase.name!r}: {system.name} and {first.name} differ in parameters"
                )

    def _places(self) -> tuple[slice, slice, slice]:
        """Where motion, free durations and the first state of a loop are among coordinates."""
        ends = np.cumsum([0, self._motion.nq, len(self._free), self._motion.nq])
        a, b, c, d = ends.tolist()
        return slice(a, b), slice(b, c), slice(c, d)

    def _group(self) -> Product:
        blocks: dict[str, LieGroup] = {MOTION: self._motion}
        if self._free:
            blocks[DURATION] = Rn(len(self._free), tuple(self.phases[i].name for i in self._free))
        if self.is_periodic:
            blocks[FIRST] = self._motion
        return Product(**blocks)

    def _state(self, x: np.ndarray, times: Sequence[float]) -> np.ndarray:
        free = [times[i] for i in self._free]
        return np.concatenate([x, free, x if self.is_periodic else []])

    def _point(self, system: System) -> Any:
        middle = [sum(limits) / 2 for limits in self._limits]
        return TrajectoryPoint(self._state(self._x_ref, middle), self._u_ref)

    def _seconds(self, x: Any, i: int) -> Any:
        """Duration of a phase, for symbols of the state."""
        return (
            x[self._split[1]][self._free.index(i)] if i in self._free else self.phases[i].limits[0]
        )

    def _elapsed(self, x: Any, phases: int) -> Any:
        return sum((self._seconds(x, i) for i in range(phases)), ca.DM(0))

    def _time(self, i: int, t: Any, x: Any) -> Any:
        """Time in s at node t of a phase."""
        share = (t - int(self.starts[i])) / self.phases[i].steps
        return self._elapsed(x, i) + share * self._seconds(x, i)

    def _is_in(self, i: int, t: Any) -> Any:
        """Whether the step that begins at node t belongs to a phase, 1 or 0."""
        after = t > int(self.starts[i]) - 0.5
        return ca.logic_and(after, t < int(self.starts[i + 1]) - 0.5)

    def _system(self) -> System:
        first, group = self.phases[0].system, self._group()
        own, others = self._split[0], group.dim - self._motion.dim

        def change(t: Any, x: Any, u: Any, p: Any) -> Any:
            total: Any = ca.DM.zeros(self._motion.dim)
            for i, phase in enumerate(self.phases):
                step = phase.system.step(self.method).function
                now, begin = self._time(i, t, x), x[own]
                if i and self.phases[i - 1].jump is not None:
                    jumped = self.phases[i - 1].jumped(now, begin, p)
                    begin = ca.if_else(t < int(self.starts[i]) + 0.5, jumped, begin)
                after = step(now, begin, u, p, self._seconds(x, i) / phase.steps)
                moved = self._motion.minus(after, x[own])
                single = len(self.phases) == 1
                total += moved if single else ca.if_else(self._is_in(i, t), moved, 0)
            return ca.vertcat(total, ca.DM.zeros(others))

        lower, upper = np.array([phase.system.input_bounds for phase in self.phases]).swapaxes(0, 1)
        inputs = [
            replace(entry, lower=float(low), upper=float(high))
            for entry, low, high in zip(first.inputs, lower.min(0), upper.max(0), strict=True)
        ]
        name = "_then_".join(dict.fromkeys(phase.system.name for phase in self.phases))
        return System(name, group, change, inputs=inputs, parameters=first.parameters, dt=1.0)

    # -- terms and bounds ----------------------------------------------------------------------

    def _cost(self, i: int, cost: Cost) -> Cost:
        """A cost of a phase: times the length of a step along it, and at its end."""
        if cost.terminal is not None:
            raise ValueError(
                f"cost {cost.name!r} of phase {self.phases[i].name!r}: ends of phases have no "
                "costs; take time_weight, or a cost along a last phase"
            )
        own, steps = self._split[0], self.phases[i].steps

        def function(t: Any, x: Any, u: Any, p: Any) -> Any:
            value = cost.expression(type(x), self._time(i, t, x), x[own], u, p)
            return self._is_in(i, t) * value * self._seconds(x, i) / steps

        return Cost(function, cost.weight, None, cost.name)

    def _residuals(self, i: int) -> list[Residual]:
        """Error, effort and residuals of a phase, by the root of the length of a step."""
        phase, own = self.phases[i], self._split[0]
        system = phase.system
        controls = system.input_index("control").tolist()
        x_ref, u_ref = ca.DM(self._x_ref), ca.DM(self._u_ref)

        def scaled(value: Callable[..., Any]) -> Callable[..., Any]:
            def function(t: Any, x: Any, u: Any, p: Any) -> Any:
                length = self._is_in(i, t) * self._seconds(x, i) / phase.steps
                is_none = length <= 0  # where the root has no slope
                root = ca.if_else(is_none, 0.0, ca.sqrt(ca.if_else(is_none, 1.0, length)))
                return root * value(self._time(i, t, x), x[own], u, p)

            return function

        found = []
        if phase.Q is not None:
            weight = error_weight("Q", phase.Q, system)
            error = scaled(lambda t, x, u, p: system.error(x, type(x)(x_ref)))
            found.append(Residual(error, weight, name=f"error of {phase.name}"))
        if phase.R is not None:
            weight = input_weight("R", phase.R, system)
            effort = scaled(lambda t, x, u, p: (u - u_ref)[controls])
            found.append(Residual(effort, weight, name=f"effort of {phase.name}"))
        for residual in phase.residuals:
            if residual.terminal is not None:
                raise ValueError(
                    f"residual {residual.name!r} of phase {phase.name!r}: ends of phases have no "
                    "costs; bound them with at='terminal'"
                )

            def own_value(t: Any, x: Any, u: Any, p: Any, residual: Residual = residual) -> Any:
                return residual.expression(type(x), t, x, u, p)

            found.append(Residual(scaled(own_value), residual.weight, name=residual.name))
        return found

    def _bounds(self, i: int) -> list[Bound]:
        """Bounds of a phase at its nodes, and what its controls may do less than others'."""
        phase, own = self.phases[i], self._split[0]
        first, last = int(self.starts[i]), int(self.starts[i + 1])
        found = []
        for bound in (*phase.bounds, *self._tighter(i)):
            if bound.at not in ("both", "path", "terminal"):
                raise ValueError(
                    f"bound {bound.label!r} of phase {phase.name!r} at {bound.at!r}: phases have "
                    "bounds at 'both', 'path' or 'terminal'"
                )
            end = last + (bound.at == "both")
            nodes = range(last, last + 1) if bound.at == "terminal" else range(first + 1, end)

            def function(t: Any, x: Any, u: Any, p: Any, bound: Bound = bound) -> Any:
                values = self._time(i, t, x), x[own], u, p, type(x)(ca.DM(self._x_ref))
                return _expression(phase.system, bound, *values)[0]

            if bound.at != "terminal" and _needs_input(phase.system, bound, self._extra):
                nodes = range(first, last)  # inputs have a value where a step begins
            found.append(replace(bound, of=function, at=nodes, name=bound.label))
        return found

    def _tighter(self, i: int) -> list[Bound]:
        """Bounds of the controls of a phase where another phase allows more."""
        lower, upper = self.phases[i].system.input_bounds
        every = np.array([phase.system.input_bounds for phase in self.phases])
        least, most = every[:, 0].min(0), every[:, 1].max(0)
        return [
            Bound(name, lower[k], upper[k], name=f"{name} of {self.phases[i].name}")
            for k, name in enumerate(self.phases[i].system.input_names)
            if lower[k] > least[k] or upper[k] < most[k]
        ]

    def _closing(self) -> Bound:
        """The loop: the first state, carried along, is that after the end."""
        own, _, kept = self._split
        last, group, end = self.phases[-1], self._motion, int(self.starts[-1])

        def function(t: Any, x: Any, u: Any, p: Any) -> Any:
            now, first = x[own], x[kept]
            if last.jump is not None:
                there = last.jumped(self._elapsed(x, len(self.phases)), now, p)
                now = ca.if_else(t > end - 0.5, there, now)
            return group.minus(now, first)

        return Bound(function, 0.0, 0.0, at=range(0, end + 1, end), name="loop")


def _needs_input(system: System, bound: Bound, extra: int) -> bool:
    """Whether a bound depends on u, with so many parameters after those of the system."""
    sym = system.symbol.sym
    sizes = 1, system.state.nq, system.n_inputs, system.n_parameters + extra, system.state.nq
    symbols = [sym(name, size) for name, size in zip("txupr", sizes, strict=True)]
    return bool(ca.depends_on(_expression(system, bound, *symbols)[0], symbols[2]))

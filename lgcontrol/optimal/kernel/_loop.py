"""KernelLoop: a controller's calls in one call of the kernel, as firmware makes them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...codegen._internal import check_shape
from ...groups._internal import ELEMENT_ROUNDING
from .._guess import STARTS, starts_of
from .._outcome import SolveStatus, diverged, start_violations
from .._plan import GAINS, NODES, Plan
from .._reference import TIME_ROUNDING, depends_on_time, moves
from .._settings import Settings
from .._solution import OptimalSolution
from .._transcription import Nodes
from ._library import load_functions
from ._memory import STATUS, KernelMemory
from ._results import KernelRun
from ._table import INFEASIBLE, LOOP, NOT_FINITE, WATCH, Answer, Cause, Loop, LoopPlace, SearchPlace

MOST = 1000  # iterations that a log holds
TOLERANCE = 1e-6  # of a new plan
OK, EXCEEDED, UNSOLVED, HELD, ODD = Answer
(
    PLANNED, CLOCK, STARTED, LATELY, LARGEST, DUE, QUEUED, CALLED, ANSWERED, CERTIFIED, NUMBERS,
) = LoopPlace  # fmt: skip


CROWDED = (
    "calls come so much faster than the period that the queue of inputs on their way is full: "
    "make the MPC with the period of its calls, real_time=RealTime(period=…)"
)
BEYOND = "no input of the first step brings the start within its hard bounds"
_CAUSES = ("", "first", "failed", "jump")


def queue_size(delay: float, period: float, ramps: bool = False) -> int:
    """Answers that may be on their way: those of calls twice as often as every period."""
    return (2 * int(np.ceil(delay / period)) + 2 if delay else 1) + 2 * ramps


def most_of(
    settings: Settings, iterations: int, first_iterations: int, wanted: int | None,
    limit: int = MOST,
) -> int:  # fmt: skip
    """Most iterations of any call: those wanted, or of steps, their repetition and a first plan."""
    most = 2 * (iterations + int(settings.real_time_more)) + first_iterations
    return min(most if wanted is None else min(wanted, most), limit)


class TargetSearch(NamedTuple):
    """Arithmetic of the search for a steady state in the presence of a disturbance.

    `difference` is the step of differences of a prediction. Singular values below `rank` and
    `rounded`, relative, count as zero. Relative weights on errors beyond Q and on inputs make it
    unique. Newton steps end at the relative size `found`; a secant is zero below `same`.
    """

    difference: float = 1e-3
    rank: float = 1e-9
    error: float = 1e-6
    effort: float = 1e-8
    steps: int = 12
    found: float = 1e-8
    same: float = 1e-3
    rounded: float = 1e-13


SEARCH = TargetSearch()


class LoopDisturbance(NamedTuple):
    """Disturbances that a loop estimates: inputs in `places`, behind them those that may fail.

    `settling` is the time constant of the estimate in s, Q the weight on errors of the target.
    Directions with a relative singular value below `unobservable` are none. `rate` is ``(t, x, u,
    p) → rate, by_x, by_u``. An estimate has `size` numbers, as `DisturbanceEstimator.numbers`.
    """

    places: np.ndarray
    disturbances: int
    settling: float
    Q: np.ndarray
    unobservable: float
    rate: Any
    size: int

    @property
    def numbers(self) -> np.ndarray:
        """Numbers of the search, by `SearchPlace`."""
        known = SEARCH._asdict() | {"unobservable": self.unobservable}
        return np.array([known[place.name.lower()] for place in SearchPlace], dtype=float)


class LoopRates(NamedTuple):
    """A problem whose controls are rates of what a loop answers with.

    An answer is held for a time in s, or reached at its end (`is_linear`). `stated` is the problem
    without rates, with the limits of the answers; `nominal` are inputs before the first one,
    controls first. So `order` has the places of its inputs.
    """

    held: float
    stated: Any
    nominal: np.ndarray
    order: np.ndarray
    sampled: Callable[[Any, np.ndarray, np.ndarray], Any]
    is_linear: bool = False


class WarmStarts(NamedTuple):
    """Recent cost of warm starts, so that the kernel sees jumps of reference, parameters or state.

    Older costs count less in `recent`. A certificate that hard constraints cannot be satisfied
    holds above the violation `certified`.
    """

    recent: float = 0.0
    largest: float = 0.0
    p: np.ndarray = np.zeros(0)
    reference: Any = None
    certified: float = 0.0


class LoopState(NamedTuple):
    """What lasts from call to call, besides the plan.

    `sent` are answers with the times of their effect. `disturbance` is the estimate, and where the
    search for a target goes on.
    """

    clock: float | None
    usual: WarmStarts
    is_due: bool
    sent: list[tuple[float, np.ndarray]]
    disturbance: np.ndarray


_KINDS: dict[str, Any] = dict(Loop._fields_)  # type: ignore[arg-type]


def loop_data(
    stated: Any, delay: float, period: float, nominal: np.ndarray,
    disturbance: LoopDisturbance | None, rates: LoopRates | None,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:  # fmt: skip
    """Numbers and constant arrays of a loop's struct, by its fields; of the problem of answers."""
    limits, system = stated.input_limits, stated.system
    ramps = rates is not None and rates.is_linear
    numbers: dict[str, Any] = {
        "queue": queue_size(delay, period, ramps), "delay": delay, "early": TIME_ROUNDING,
        "held": 0.0 if rates is None else rates.held, "ramps": int(ramps),
    }  # fmt: skip
    arrays: dict[str, Any] = {
        "nominal": nominal if rates is None else rates.nominal, "widest_lower": limits.lower,
        "widest_upper": limits.upper,
    }  # fmt: skip
    if rates is not None:
        arrays["order"] = rates.order
    if disturbance is not None:
        lower, upper = system.input_bounds
        count, places = disturbance.disturbances, disturbance.places
        numbers |= {
            "biased": count, "suspects": len(places) - count, "rates": system.state.dim,
            "settling": disturbance.settling,
        }  # fmt: skip
        arrays |= {
            "bias_places": places, "bias_numbers": disturbance.numbers, "Q": disturbance.Q.T,
            "inputs_lower": lower, "inputs_upper": upper,
        }  # fmt: skip
    kinds = {field.name: np.int64 if field.kind == "places" else np.float64 for field in LOOP}
    return numbers, {name: np.array(v, kinds[name], order="C") for name, v in arrays.items()}


class KernelLoop:
    """A loop of one controller, with delay and period in s, and inputs before the first answer.

    u is the last answer. `is_late` says that the time for the last call ended it, `contradicts`
    that limits of controls contradict each other.
    """

    def __init__(
        self, solver: Any, delay: float, period: float, nominal: np.ndarray,
        disturbance: LoopDisturbance | None = None, rates: LoopRates | None = None,
    ) -> None:  # fmt: skip
        self._view, self._disturbance = rates, disturbance
        self.solver, self.stages = solver, solver.memory.stages
        memory = KernelMemory(solver.model, self.stages, solver.settings, MOST)
        self.memory = memory
        problem, model = solver.problem, solver.model
        stated = problem if rates is None else rates.stated
        numbers, given = loop_data(stated, delay, period, nominal, disturbance, rates)
        self.struct = Loop(odd=ELEMENT_ROUNDING, **numbers)
        m, queue, sizes = model.m, numbers["queue"], np.zeros(3, dtype=np.int64)
        memory.kernel.loop_sizes(
            ctypes.addressof(memory.model), problem.horizon, queue, numbers.get("rates", 0),
            sizes.ctypes.data,
        )  # fmt: skip
        self._limits = stated.input_limits
        memory.task.tolerance = TOLERANCE
        self.x, self.u = np.zeros(stated.system.state.nq), np.zeros(m)
        self.state = np.zeros(int(sizes[0]))
        self._lower, self._upper = np.zeros(m), np.zeros(m)
        own = given | {
            "x": self.x, "u": self.u, "state": self.state, "lower": self._lower,
            "upper": self._upper, "before": np.zeros(int(sizes[1])),
            "other": np.zeros(int(sizes[1])),
        }  # fmt: skip
        if disturbance is not None:
            M, inputs = problem.horizon + 1, problem.system.n_inputs
            own |= {"aim_x": np.zeros((M, model.group.nq)), "aim_u": np.zeros((M, inputs))}
            self._rate = load_functions({"rate": (disturbance.rate, None)})
            assert self._rate.scratch <= memory.arrays["work"].size
            self.struct.rate = self._rate.functions["rate"]
        if memory.model.blocks:
            own["begins"] = memory.arrays["u_ref"]
        self._keep = own
        self.is_late, self._began, self._deadline = False, 0.0, np.inf
        self._budget = np.inf
        self._watch = WATCH(self._ask)
        for name, array in own.items():
            setattr(self.struct, name, array.ctypes.data)
        known = 0 if disturbance is None else 2 + self.x.size + disturbance.size
        ends = np.cumsum([NUMBERS + m, queue, queue * m, known])
        _, self._times, inputs, self._estimate, _ = np.split(self.state, ends)
        self._inputs = inputs.reshape(queue, m)
        structs = memory.model, memory.task, memory.settings, self.struct
        self._addresses = tuple(ctypes.addressof(struct) for struct in structs)
        self._call = memory.kernel.loop
        self._wanted: tuple[Any, ...] = ()
        self.reference: Any = self
        self.p: Any = None
        self._setting: Any = None
        self.contradicts = False
        self._is_still, self._bytes = False, None
        self._needs_time = depends_on_time(stated.system)

    def set(
        self, iterations: int, first_iterations: int, most: int | None, word: str, restarts: int
    ) -> None:
        """How the next calls go: iterations of a call, of a new plan, at most; start, restarts."""
        wanted = iterations, first_iterations, most, word, restarts
        if wanted == self._wanted:
            return
        struct, problem = self.struct, self.solver.problem
        struct.iterations_most, struct.restarts = iterations, 0 if problem.costs else restarts
        struct.first_iterations = min(first_iterations, self.memory.most)
        struct.most = most_of(
            self.solver.settings, iterations, first_iterations, most, self.memory.most
        )
        struct.starts = sum(STARTS[name] for name in starts_of(problem.system, word))
        self._wanted = wanted

    def give(self, start: float, reference: Any, p: np.ndarray) -> bool:
        """What calls are given; returns whether it is other than before."""
        if isinstance(reference, list):  # which may change under its name: numbers are compared
            reference = check_shape("the reference's state", reference, (None,), batch=True)
        if self.keeps(reference, p):
            return False
        solver = self.solver
        setting = solver._given.setting(start + solver._grid, self._seen(start, reference, p), p)
        self._is_still = self.keeps_still(reference)
        is_array = type(reference) is np.ndarray  # which may change under its name
        self._bytes = reference.tobytes() if is_array else None
        is_new = p is not self.p
        self.reference, self.p = reference, p
        if setting is self._setting:
            return is_new
        self._setting = setting
        self.contradicts = bool(setting.box.contradictions)
        memory = self.memory
        x0 = memory.arrays["x0"]  # which calls write
        memory.give(setting, start + solver._grid, x0, solver._weight(setting))
        self._lower[:], self._upper[:] = self._limits.exactly(p)[:2]
        return True

    def _seen(self, start: float, reference: Any, p: np.ndarray) -> Any:
        """A reference as that of the problem."""
        if self._view is None:
            return reference
        own = p[: self._view.stated.system.n_parameters]
        return self._view.sampled(reference, start + self.solver._grid, own)

    def call(self, t: float, x: np.ndarray, began: float, budget: float) -> int:
        """The answer to a state, to `u`; returns what it is worth, ODD if it is off its group.

        The call began at a reading of the clock, and may take some time from then on.
        """
        self.struct.now = t
        self.x[:] = x
        self.is_late = False
        if budget != self._budget:
            self._budget = budget
            is_free = budget == np.inf
            watch = None if is_free else ctypes.cast(self._watch, ctypes.c_void_p).value
            self.memory.task.watch = watch
        self._began, self._deadline = began, began + budget
        return self._call(*self._addresses)

    def _ask(self, _: Any) -> int:
        self.is_late = time.perf_counter() > self._deadline
        return self.is_late

    @property
    def entry(self) -> tuple[int, tuple[int, ...]]:
        """Address of what `call` calls, and its arguments, for loops in C."""
        address = ctypes.cast(self._call, ctypes.c_void_p).value
        assert address is not None
        return address, self._addresses

    def place(self, name: str) -> tuple[int, bool]:
        """Address of a field of the loop, and whether it holds a number, else a whole one."""
        is_number = _KINDS[name] is ctypes.c_double
        return ctypes.addressof(self.struct) + getattr(Loop, name).offset, is_number

    def keeps_still(self, reference: Any) -> bool:
        """Whether what calls are given stays the same from one time to another."""
        return not (moves(reference) or self._needs_time)

    def keeps(self, reference: Any, p: np.ndarray) -> bool:
        """Whether the next call needs to be given nothing."""
        is_same = self._is_still and reference is self.reference and p is self.p
        return is_same and (self._bytes is None or reference.tobytes() == self._bytes)

    def called(self, elapsed: float) -> None:
        """Know that the last call, of a loop in C, took so many seconds."""
        self._began = time.perf_counter() - elapsed

    @property
    def due(self) -> tuple[int, bool]:
        """Address of the number that says whether the next plan begins anew."""
        return self.state[DUE:].ctypes.data, True

    def take(
        self, planned: int, clock: float | None, usual: Any, is_due: bool,
        sent: list[tuple[float, np.ndarray]], answer: np.ndarray | None, plan: Plan | None,
        seen: tuple[float, np.ndarray] | None = None, disturbance: np.ndarray | None = None,
    ) -> None:  # fmt: skip
        """Go on from a state and a plan; see `LoopState`."""
        numbers = self.state
        numbers[:] = 0.0
        numbers[PLANNED], numbers[DUE] = planned, is_due
        numbers[LATELY], numbers[LARGEST] = usual.recent, usual.largest
        numbers[CERTIFIED] = usual.certified
        self.p, self.reference = usual.p, usual.reference
        self._is_still = False
        if clock is not None:
            numbers[CLOCK], numbers[CALLED] = clock, 1
        if answer is not None:
            numbers[NUMBERS : NUMBERS + self.u.size], numbers[ANSWERED] = answer, 1
        sent = sent[-len(self._times) :]
        numbers[QUEUED] = len(sent)
        for k, (when, u) in enumerate(sent):
            self._times[k], self._inputs[k] = when, u
        if self._disturbance is not None and disturbance is not None:
            n, nq = self._estimate, self.x.size
            if seen is not None:
                n[0], n[1], n[2 : 2 + nq] = 1, seen[0], seen[1]
            n[2 + nq :] = disturbance
        if plan is not None:
            numbers[STARTED] = plan.number("t")
            if plan.number("content") == NODES:
                numbers[PLANNED] = -1  # nothing to go on from but a start
            self.memory.take(plan)

    def state_now(self) -> LoopState:
        """What lasts, now."""
        n = self.state
        count = int(n[QUEUED])
        sent = [(float(self._times[k]), self._inputs[k].copy()) for k in range(count)]
        clock = float(n[CLOCK]) if n[CALLED] else None
        lately, largest, certified = n[[LATELY, LARGEST, CERTIFIED]].tolist()
        usual = WarmStarts(lately, largest, self.p.copy(), self.reference, certified)
        return LoopState(clock, usual, self.is_due, sent, self._estimate[2 + self.x.size :].copy())

    @property
    def cause(self) -> str:
        """Why the plan began anew; "jump" where something jumped."""
        return _CAUSES[self.struct.cause]

    @property
    def ended(self) -> SolveStatus:
        """How the kernel ended."""
        return status_of(self.struct.ended, bool(self.struct.stepped), self.is_late)

    def why(self) -> str:
        """Fault of the last call."""
        if self.struct.crowded:
            return CROWDED
        if self.struct.status == HELD:
            return "the state predicted when the answer takes effect, or the plan, is not finite"
        found = self.solution()
        told = diverged(self.struct.defect, found.x[0], found.reference.x[0])
        if not self.struct.beyond:
            return told or found.message
        rows = self.solver.model.transcription.rows
        start = start_violations(rows, self.memory.arrays["rows"][0], TOLERANCE)
        return "; ".join(filter(None, [BEYOND, told, start if told else found.message]))

    @property
    def is_current(self) -> bool:
        """Whether it runs what the solver has: functions may have been compiled in between."""
        solver = self.solver
        if solver._build is not None:
            solver._take_built()
        return self.stages is solver._stages

    @property
    def begins_anew(self) -> bool:
        """Whether the plan of the last call began anew, or the next one does."""
        return self.struct.cause != Cause.GOES_ON or self.is_due

    @property
    def is_due(self) -> bool:
        """Whether the next plan begins anew."""
        return bool(self.state[DUE])

    def solution(self) -> OptimalSolution:
        """What the last call planned."""
        memory, struct, results = self.memory, self.struct, self.solver._results
        t = float(self.state[STARTED])
        found = memory.plan(t, struct.own_cost, GAINS)
        nodes = Nodes(self.solver.problem.times(t), found["x"], found["u"])
        log = memory.arrays["log"][: 1 if struct.stepped else struct.iterations + 1].copy()
        run = KernelRun(struct.ended, log, found, found, nodes, self._setting, self._began)
        if struct.stepped:
            log[0, 0] = struct.own_cost
            return results.step(run, struct.iterations, is_late=self.is_late)
        ended = SolveStatus.TIME_LIMIT if self.is_late else None
        return results.solution(run, tolerance=TOLERANCE, ended=ended)


def status_of(ended: int, by_steps: bool, is_late: bool = False) -> SolveStatus:
    """How the kernel ended; steps end at their number."""
    if ended in (NOT_FINITE, INFEASIBLE):
        return STATUS[ended]
    if is_late:
        return SolveStatus.TIME_LIMIT
    return SolveStatus.ITERATION_LIMIT if by_steps else STATUS[ended]

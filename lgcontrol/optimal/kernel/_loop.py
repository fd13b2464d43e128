"""KernelLoop: a controller's calls in one call of the kernel, as firmware makes them."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from .._guess import STARTS, starts_of
from .._plan import GAINS, NODES, Plan
from .._reference import TIME_ROUNDING, moves
from ._solver import KernelMemory
from ._table import Loop

MOST = 1000  # iterations that a log holds
OK, EXCEEDED, UNSOLVED, HELD = range(4)
GOES_ON, FIRST, FAILED, JUMPED = range(4)
# Places of the numbers of a loop, as `loop.c` has them.
PLANNED, CLOCK, STARTED, LATELY, LARGEST, DUE, QUEUED, CALLED, ANSWERED, NUMBERS = range(10)


class LoopState(NamedTuple):
    """What lasts from call to call, besides the plan.

    Attributes
    ----------
    planned : int
        1 where there is a plan, -1 where it leads nowhere, 0 without one.
    clock : float or None
        Time of the last call, s.
    lately, largest : float
        Recent and largest cost.
    is_due : bool
        Whether the next plan begins anew.
    sent : list of (float, ndarray)
        Answers that are on their way, with the times of their effect.
    answer : ndarray or None
        The last one.
    """

    planned: int
    clock: float | None
    lately: float
    largest: float
    is_due: bool
    sent: list[tuple[float, np.ndarray]]
    answer: np.ndarray | None


class KernelLoop:
    """A loop of one controller.

    Parameters
    ----------
    solver : NewtonSolver
    delay, period : float
        In s.
    nominal : ndarray
        Inputs before the first answer.

    Attributes
    ----------
    u : ndarray
        The last answer.
    """

    def __init__(self, solver: Any, delay: float, period: float, nominal: np.ndarray) -> None:
        self.solver, self.stages = solver, solver.memory.stages
        memory = KernelMemory(solver.model, self.stages, solver.settings, MOST)
        self.memory = memory
        problem, model = solver.problem, solver.model
        queue = 2 * int(np.ceil(delay / period)) + 2 if delay else 1
        sizes = np.zeros(3, dtype=np.int64)
        memory.kernel.loop_sizes(
            ctypes.addressof(memory.model), problem.horizon, queue, sizes.ctypes.data
        )
        m, limits = model.m, problem.input_limits
        self.struct = Loop(queue=queue, delay=delay, early=TIME_ROUNDING)
        self.x, self.u = np.zeros(model.group.nq), np.zeros(m)
        self.state = np.zeros(int(sizes[0]))
        self._lower, self._upper = np.zeros(m), np.zeros(m)
        own = {
            "x": self.x, "u": self.u, "state": self.state, "lower": self._lower,
            "upper": self._upper, "nominal": np.array(nominal, dtype=float),
            "widest_lower": np.array(limits.lower, dtype=float),
            "widest_upper": np.array(limits.upper, dtype=float),
            "before": np.zeros(int(sizes[1])), "other": np.zeros(int(sizes[1])),
        }  # fmt: skip
        self._keep = own
        for name, array in own.items():
            setattr(self.struct, name, array.ctypes.data)
        last = NUMBERS + m
        self._times = self.state[last : last + queue]
        self._inputs = self.state[last + queue :].reshape(queue, m)
        given = memory.model, memory.task, memory.settings, self.struct
        self._addresses = tuple(ctypes.addressof(struct) for struct in given)
        self._call = memory.kernel.loop
        self._wanted: tuple[Any, ...] = ()
        self._reference: Any = self
        self._p: Any = None
        self._setting: Any = None
        self._is_still, self._bytes = False, None

    def set(self, iterations: int, first_iterations: int, word: str, restarts: int) -> None:
        """How the next calls go: steps, iterations of a new plan, its start, restarts."""
        wanted = iterations, first_iterations, word, restarts
        if wanted == self._wanted:
            return
        struct, which = self.struct, starts_of(self.solver.problem.system, word)
        struct.iterations_most, struct.restarts = iterations, restarts
        struct.first_iterations = min(first_iterations, self.memory.most)
        struct.starts = sum(STARTS[name] for name in which)
        self._wanted = wanted

    def give(self, start: float, reference: Any, p: np.ndarray) -> bool:
        """What calls are given; returns whether it is other than before."""
        if self._is_still and reference is self._reference and p is self._p:
            if self._bytes is None or reference.tobytes() == self._bytes:
                return False
        solver = self.solver
        setting = solver._given.setting(start + solver._grid, reference, p)
        self._is_still = not moves(reference) and not solver._given._needs_time
        is_array = type(reference) is np.ndarray  # which may change under its name
        self._bytes = reference.tobytes() if is_array else None
        is_new = p is not self._p
        self._reference, self._p = reference, p
        if setting is self._setting:
            return is_new
        self._setting = setting
        self.memory.give(setting, start + solver._grid, self.x, solver._weight(setting))
        if is_new:
            lower, upper = solver.problem.input_limits.exactly(p)[:2]
            self._lower[:], self._upper[:] = lower, upper
        return True

    def call(self, t: float, x: np.ndarray) -> int:
        """The answer to a state, to `u`; returns what it is worth."""
        self.struct.now = t
        self.x[:] = x
        return self._call(*self._addresses)

    def take(self, state: LoopState, plan: Plan | None) -> None:
        """Go on from a state and a plan."""
        numbers = self.state
        numbers[:] = 0.0
        numbers[PLANNED] = state.planned
        numbers[LATELY], numbers[LARGEST] = state.lately, state.largest
        numbers[DUE] = state.is_due
        if state.clock is not None:
            numbers[CLOCK], numbers[CALLED] = state.clock, 1
        if state.answer is not None:
            numbers[NUMBERS : NUMBERS + self.u.size], numbers[ANSWERED] = state.answer, 1
        sent = state.sent[-len(self._times) :]
        numbers[QUEUED] = len(sent)
        for k, (when, u) in enumerate(sent):
            self._times[k], self._inputs[k] = when, u
        if plan is not None:
            numbers[STARTED] = plan.number("t")
            if plan.number("content") == NODES:
                numbers[PLANNED] = -1  # nothing to go on from but a start
            self.memory.take(plan)

    def told(self) -> LoopState:
        """The state now."""
        n = self.state
        count = int(n[QUEUED])
        sent = [(float(self._times[k]), self._inputs[k].copy()) for k in range(count)]
        return LoopState(
            int(n[PLANNED]), float(n[CLOCK]) if n[CALLED] else None, float(n[LATELY]),
            float(n[LARGEST]), bool(n[DUE]), sent,
            n[NUMBERS : NUMBERS + self.u.size].copy() if n[ANSWERED] else None,
        )  # fmt: skip

    def plan(self) -> Plan:
        """The plan now."""
        return self.memory.plan(self.state[STARTED], self.struct.cost, GAINS)

"""Controllers in the loop: chains of them, their periods, their answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from ..codegen import check_shape
from ..groups import LieGroup, Product
from ..systems import System
from ._agenda import CONTROL, Agenda
from ._clock import Clock, Timing, check_times
from ._record import ControllerRecorder
from ._sources import label_of


class Cascade:
    """Controllers in a chain: what one returns is the reference of the next.

    Each has its own ``dt``, ``offset`` and ``delay``. An inner controller is called for the first
    time when it is due and its reference has arrived.

    Parameters
    ----------
    *controllers : callable
        From the outer (slow) to the inner (fast); only the last one returns plant inputs.

    Examples
    --------
    >>> outer = lambda t, x, reference: reference
    >>> len(Cascade(outer, outer).controllers)
    2
    """

    def __init__(self, *controllers: Any) -> None:
        if len(controllers) < 2:
            raise ValueError(
                f"a cascade needs at least two controllers, got {len(controllers)}: "
                "Cascade(outer, inner)"
            )
        for controller in controllers:
            if isinstance(controller, Cascade):
                raise TypeError("a cascade in a cascade: give all controllers to one Cascade")
            if not callable(controller):
                raise TypeError(f"a controller must be callable, not {type(controller).__name__}")
        self.controllers = controllers


class Stage:
    """One controller of the chain in a run."""

    def __init__(self, controller: Any, name: str, period: float) -> None:
        self.controller, self.name, self.period = controller, name, period
        self.output: Any = None
        self.record = ControllerRecorder()

    def times(self) -> list[tuple[str, float]]:
        """Period, offset and delay, with their names."""
        return check_times(self.name, self.controller, self.period)

    def begin(self, x: np.ndarray, reference: Any) -> None:
        """Reset the controller and prepare it, as far as it can be."""
        getattr(self.controller, "reset", _nothing)()
        prepare = getattr(self.controller, "prepare", None)
        if prepare is not None:
            prepare(float(getattr(self.controller, "offset", 0.0)), x, reference)


class Chain:
    """All controllers of a run, the last one returning the plant's controls.

    Parameters
    ----------
    stages : list of Stage
    reference : object
        What the outermost controller is to follow.
    count : int
        Number of control inputs.
    state : callable
        What the controllers know of the state, when they are called.
    apply : callable
        Takes the controls when they come into effect.
    blame : callable
        Is told who acts.
    """

    def __init__(
        self,
        stages: list[Stage],
        reference: Any,
        count: int,
        state: Callable[[], np.ndarray],
        apply: Callable[[np.ndarray], None],
        blame: Callable[[str], None],
    ) -> None:
        self.stages, self.reference, self.count = stages, reference, count
        self._state, self._apply, self._blame = state, apply, blame

    def begin(self) -> None:
        """Reset and prepare every controller; the outermost is told what it is to follow."""
        for i, stage in enumerate(self.stages):
            self._blame(stage.name)
            stage.begin(self._state(), None if i else self.reference)

    def schedule(self, agenda: Agenda, clock: Clock) -> None:
        """Put every call on the agenda."""
        for i, stage in enumerate(self.stages):
            timing = Timing.of(clock, stage.name, stage.controller, stage.period)
            call = partial(self._call, i, timing.delay, agenda, clock)
            agenda.every(timing.period, timing.offset, CONTROL + 2 * i, call)

    def _call(self, i: int, delay: int, agenda: Agenda, clock: Clock, now: int) -> None:
        stage = self.stages[i]
        goal = self.stages[i - 1].output if i else self.reference
        if i and goal is None:
            return
        self._blame(stage.name)
        t, x = clock.seconds(now), self._state()
        started = perf_counter()
        answer = stage.controller(t, x, goal)
        elapsed = perf_counter() - started
        if i == len(self.stages) - 1:
            answer = self._checked(stage.name, answer)
        elif answer is None:
            raise ValueError("it returned None, expected the reference of the next controller")
        elif isinstance(answer, np.ndarray):
            answer = answer.copy()
        stage.record.call(t, answer, elapsed, getattr(stage.controller, "info", None))
        if delay:
            effect = partial(self._take, i, answer)
            agenda.at(now + delay, CONTROL + 2 * i + 1, effect)
        else:
            self._take(i, answer, now)

    def _take(self, i: int, answer: Any, now: int) -> None:
        self.stages[i].output = answer
        if i == len(self.stages) - 1:
            self._apply(answer)

    def _checked(self, name: str, answer: Any) -> np.ndarray:
        """The controls as an array of their own, shape (n_controls,)."""
        controls = np.array(answer, dtype=np.float64)
        if controls.shape == () and self.count == 1:
            controls = controls.reshape(1)
        if controls.shape != (self.count,) or not np.isfinite(controls).all():
            check_shape(f"the result of {name}", controls, (self.count,))
        return controls


def check_model(plant: System, controller: Any) -> None:
    """Refuse a controller of another state; what adapts a controller has no system of its own."""
    system = getattr(controller, "__dict__", {}).get("system")
    if not isinstance(system, System):
        return
    if _parts(system.state) != _parts(plant.state):
        raise ValueError(
            f"{label_of(controller)} is a controller of {system.name}, with the state "
            f"{system.state}; {plant.name} has {plant.state}. Adapted translates between them"
        )


def _parts(group: LieGroup) -> list[LieGroup | None]:
    """Groups that a state is made of, whatever the names; None for each plain number."""
    if isinstance(group, Product):
        return [part for block in group.blocks.values() for part in _parts(block)]
    is_vector = group.is_commutative and group.nq == group.dim
    return [None] * group.dim if is_vector else [group]


def make_stages(controller: Any, dt: float | None) -> list[Stage]:
    """Stages of a controller or a Cascade; dt is the period of those that have none."""
    if controller is None:
        return []
    entries = controller.controllers if isinstance(controller, Cascade) else (controller,)
    stages: list[Stage] = []
    for entry in entries:
        if isinstance(entry, type):
            raise TypeError(
                f"controller is the class {entry.__name__}: give an instance, {entry.__name__}(…)"
            )
        if not callable(entry):
            raise TypeError(
                f"controller must be a callable (t, x, reference) → controls, not "
                f"{type(entry).__name__}"
            )
        label, taken = label_of(entry), {stage.name for stage in stages}
        name = label
        for k in range(2, len(entries) + 1):
            name = name if name not in taken else f"{label} {k}"
        own = getattr(entry, "dt", None) or None  # 0 means "at any rate", as for systems
        period = own if own is not None else dt
        if period is None:
            raise ValueError(f"{name} has no dt of its own: give simulate(..., dt=period in s)")
        stages.append(Stage(entry, name, period))
    if dt is not None and all(stage.period != dt for stage in stages):
        raise ValueError(
            f"dt = {dt} s is of no use: "
            + ", ".join(f"{stage.name} has dt = {stage.period} s" for stage in stages)
            + " of its own; for a denser record give record_dt"
        )
    return stages


def _nothing() -> None:
    return None

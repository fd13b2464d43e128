"""CompiledRecord: what a loop in C wrote down, as a SimulationResult."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ._compiled_memory import LoopMemory
from ._compiled_parts import CompiledFilter, FunctionLaw, KernelLaw
from ._contract import RunStatus
from ._logs import ControllerLog, Measurements
from ._record import as_column, as_commands, make_result, plain_values
from ._result import SimulationResult
from ._run import SimulationSetup


class CompiledRecord:
    """What the loop in C has written down so far.

    Parameters
    ----------
    run : SimulationSetup
    loop : LoopMemory
    sensors : list of LoopMemory
    """

    def __init__(self, run: SimulationSetup, loop: LoopMemory, sensors: list[LoopMemory]) -> None:
        self.run, self._loop, self._sensors = run, loop, sensors
        self.estimates: list[tuple[np.ndarray, np.ndarray | None]] = []
        self.infos: dict[int, dict[str, Any]] = {}  # of the calls that Python made, or told of
        self.law: FunctionLaw | KernelLaw | None = None
        self.filter: CompiledFilter | None = None

    def __len__(self) -> int:
        """Number of recorded states."""
        return self._loop.struct.rows

    @property
    def last_time(self) -> float:
        """Time of the last recorded state in s."""
        rows = len(self)
        return float(self._loop.arrays["row_t"][rows - 1]) if rows else 0.0

    @property
    def last_state(self) -> np.ndarray:
        """The last recorded state, shape (nq,)."""
        return self._loop.arrays["row_x"][len(self) - 1]

    def state(self, t: float, x: np.ndarray) -> None:
        """Keep a state before the loop has begun."""
        arrays = self._loop.arrays
        arrays["row_t"][0], arrays["row_x"][0], self._loop.struct.rows = t, x, 1

    def call(
        self, controller: str, t: float, answer: Any, elapsed: float, info: object, age: object
    ) -> None:
        """Keep what Python has to say of a call that it made."""
        self._loop.arrays["answer"][:] = answer
        self._loop.struct.elapsed = elapsed
        self.tell(info)

    def tell(self, info: object) -> None:
        """Keep what the controller says of this call, which is none of the loop's own then."""
        call = self._loop.struct.calls
        self.infos[call] = {} if info is None else plain_values(info)
        self._loop.arrays["call_here"][call] = 0

    def finish(self, status: RunStatus, message: str, execution: str) -> SimulationResult:
        """Everything as arrays; the input of an interval that was not finished is left out."""
        return self.taken(status, message, execution)()

    def taken(
        self, status: RunStatus, message: str, execution: str
    ) -> Callable[[], SimulationResult]:
        """What makes the result, whatever the memory of the loop is used for then."""
        arrays, count, run = self._loop.arrays, len(self), self.run
        estimate, deviation = self._estimates(count)
        columns: dict[str, Any] = {
            "t": arrays["row_t"][:count].copy(),
            "x": arrays["row_x"][:count].copy(),
            "u": arrays["row_u"][: max(count - 1, 0)].copy(),
            "estimate": estimate,
            "estimate_std": deviation,
            "measurements": {
                sensor.sensor.name: _measurements(memory, sensor.group)
                for sensor, memory in zip(run.sensors, self._sensors, strict=True)
            },
        }
        logs = {stage.name: self._calls(stage.unstable) for stage in run.stages}
        return lambda: make_result(
            run,
            controllers={name: log() for name, log in logs.items()},
            status=status,
            message=message,
            execution=execution,
            **columns,
        )

    def _estimates(self, count: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        if self.filter is not None:
            z = self._loop.arrays["row_z"][:count]
            nq = self.run.estimator.x.size  # type: ignore[union-attr]
            return z[:, :nq].copy(), self.filter.deviations(z)
        known = self.estimates[:count]
        if not known:
            return None, None
        deviation = None if known[0][1] is None else np.array([row[1] for row in known])
        return np.array([row[0] for row in known]), deviation

    def _calls(self, unstable: str) -> Callable[[], ControllerLog]:
        """What makes the record of the calls."""
        loop, arrays = self._loop.struct, self._loop.arrays
        n, law = loop.calls, self.law
        t, answers, elapsed, age, told, here = (
            arrays[f"call_{name}"][:n].copy()
            for name in ("t", "answer", "elapsed", "age", "told", "here")
        )
        # A Ctrl-C may come before the loop has taken an answer that Python has told of.
        infos = {k: info for k, info in self.infos.items() if k < n}
        sees_all = self.run.feedback == "state"

        def log() -> ControllerLog:
            info: dict[str, np.ndarray] = {"call_time": elapsed} if n else {}
            if n and not sees_all:
                info["measurement_age"] = age
            own = here.nonzero()[0]
            columns: Mapping[str, np.ndarray] = {}
            if own.size and law is not None:
                columns = law.columns(told[own], elapsed[own])
            info |= columns if own.size == n else _mixed(n, own, columns, infos)
            commands = answers if n else as_commands([])
            return ControllerLog(t=t, command=commands, info=info, unstable=unstable)

        return log


def _mixed(
    n: int, own: np.ndarray, told: Mapping[str, np.ndarray], infos: Mapping[int, dict[str, Any]]
) -> dict[str, np.ndarray]:
    """Columns of n calls: the loop answered its `own`, Python the others, with `infos`."""
    found: dict[str, np.ndarray] = {}
    places = sorted(infos)
    others = [infos[k] for k in places]
    first = [told, *others] if own.size and own[0] == 0 else [*others, told]
    for key in dict.fromkeys(key for values in first for key in values):
        rest = as_column([values.get(key) for values in others])
        mine = told.get(key)
        is_text = "U" in (rest.dtype.kind, "" if mine is None else mine.dtype.kind)
        column = np.full(n, "" if is_text else np.nan, dtype=object if is_text else float)
        column[places] = rest if not is_text or rest.dtype.kind == "U" else ""
        if mine is not None:
            column[own] = mine
        found[key] = column.astype(str) if is_text else column
    return found


def _measurements(memory: LoopMemory, group: Any) -> Measurements:
    sensor, count = memory.struct, memory.struct.delivered
    return Measurements(
        t=memory.arrays["delivered_t"][:count].copy(),
        y=memory.arrays["delivered_y"][:count].copy(),
        group=group,
        taken=sensor.count,
        lost=sensor.losses,
        late=count if sensor.delay > sensor.period else 0,
    )

"""Disturbances bound to a plant: which inputs they push, and when."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..codegen import UnknownNameError, check_shape, unknown_name
from ..systems import System
from ._agenda import DISTURB, KICK, Agenda
from ._clock import Clock, Timing, check_times
from ._disturbances import Kick, Pulse
from ._random import stream


class Disturbances:
    """Everything that pushes a plant; `total` is the sum of what it adds to the inputs.

    Each periodic disturbance has its own random stream, found by its type and inputs, so that
    others may come and go without changing it.
    """

    def __init__(self, plant: System, disturbances: Sequence[Any], seed: int) -> None:
        if isinstance(disturbances, Kick | Pulse) or callable(
            getattr(disturbances, "sample", None)
        ):
            disturbances = [disturbances]
        if not isinstance(disturbances, list | tuple):
            raise TypeError(
                f"disturbances must be a list, as in disturbances=[{type(disturbances).__name__}"
                f"(…)]; got {disturbances!r}"
            )
        self._index = {name: i for i, name in enumerate(plant.input_names)}
        self.total = np.zeros(plant.n_inputs)
        self._kicks = [(e.time, _tangent(plant, e)) for e in disturbances if isinstance(e, Kick)]
        self._pulses = [entry for entry in disturbances if isinstance(entry, Pulse)]
        self._periodic: list[tuple[Any, np.random.Generator]] = []
        self._parts: list[np.ndarray] = []
        seen: Counter[str] = Counter()
        for source in disturbances:
            self._positions(getattr(source, "inputs", ()), label_of(source))
            if isinstance(source, Kick | Pulse):
                continue
            if not callable(getattr(source, "sample", None)):
                raise TypeError(
                    f"{source!r} is no disturbance: it needs dt and sample(t, rng); see HeldNoise, "
                    "WhiteNoise, InputSignal, Pulse and Kick"
                )
            key = f"{type(source).__name__}({', '.join(getattr(source, 'inputs', ()))})"
            self._periodic.append((source, stream(seed, "disturbance", key, str(seen[key]))))
            seen[key] += 1

    def times(self) -> Iterator[tuple[str, float]]:
        """All times that must fall on ticks, with what they are."""
        for source, _ in self._periodic:
            yield from check_times(label_of(source), source)
        for pulse in self._pulses:
            yield "start of a Pulse", pulse.start
            if pulse.duration != np.inf:
                yield "duration of a Pulse", pulse.duration
        for time, _ in self._kicks:
            yield "time of a Kick", time

    def warn_of_late_ones(self, seconds: float) -> None:
        """Warn of what would happen after the end of a run, or push from there on."""
        late = [("Kick", time) for time, _ in self._kicks if time > seconds]
        late += [("Pulse", pulse.start) for pulse in self._pulses if pulse.start >= seconds]
        for what, time in late:
            warnings.warn(
                f"the {what} at {time:g} s has no effect: the run ends at {seconds:g} s",
                RuntimeWarning,
                stacklevel=4,
            )

    def schedule(
        self,
        agenda: Agenda,
        clock: Clock,
        blame: Callable[[str], None],
        kick: Callable[[np.ndarray], None],
    ) -> None:
        """Put every change on the agenda.

        `blame` is told who acts, for error messages; `kick` is called with changes of the state.
        """
        for source, rng in self._periodic:
            timing = Timing.of(clock, label_of(source), source)
            draw = partial(self._draw, source, rng, self._new_part(), clock, blame)
            agenda.every(timing.period, timing.offset, DISTURB, draw)
        for pulse in self._pulses:
            part, start = self._new_part(), clock.ticks("start", pulse.start)
            agenda.at(start, DISTURB, partial(self._set, part, "Pulse", pulse.values))
            if pulse.duration != np.inf:
                end = start + clock.ticks("duration", pulse.duration)
                agenda.at(end, DISTURB, partial(self._set, part, "Pulse", {}))
        for time, change in self._kicks:
            agenda.at(clock.ticks("time", time), KICK, lambda now, change=change: kick(change))

    def _draw(self, source, rng, part, clock, blame, now: int) -> None:
        blame(label_of(source))
        self._set(part, label_of(source), source.sample(clock.seconds(now), rng), now)

    def _set(self, part: np.ndarray, what: str, values: Mapping[str, float], now: int) -> None:
        if not isinstance(values, Mapping):
            raise TypeError(
                f"{what} must give a mapping from inputs to values, as in "
                f"{{{next(iter(self._index), 'input')!r}: 1.0}}, not {values!r}"
            )
        part[:] = 0.0
        part[self._positions(values, what)] = [float(value) for value in values.values()]
        if not np.isfinite(part).all():
            raise ValueError(f"{what} gave a value that is not finite: {dict(values)}")
        self.total = np.sum(self._parts, axis=0)

    def _new_part(self) -> np.ndarray:
        self._parts.append(np.zeros_like(self.total))
        return self._parts[-1]

    def _positions(self, names: Iterable[str], what: str) -> list[int]:
        for name in names:
            if name not in self._index:
                raise UnknownNameError(f"{what}: {unknown_name('input', name, self._index)}")
        return [self._index[name] for name in names]


def _tangent(plant: System, kick: Kick) -> np.ndarray:
    """Change of the state as one tangent vector."""
    group, change = plant.state, kick.change
    if isinstance(change, Mapping):
        join = getattr(group, "join_tangent", None)
        if join is None:
            raise TypeError(
                f"{plant.name} has the state {group}, without named blocks: give the Kick a "
                f"tangent vector of shape ({group.dim},)"
            )
        unknown = [name for name in change if name not in group.blocks]
        if unknown:
            raise UnknownNameError(f"Kick: {unknown_name('block', unknown[0], group.blocks)}")
        try:
            change = join(**{name: np.asarray(d, dtype=float) for name, d in change.items()})
        except ValueError as error:
            raise ValueError(f"change of a Kick: {error}") from None
    return check_shape("change of a Kick", change, (group.dim,))


def label_of(thing: Any) -> str:
    """What a controller or disturbance is called in messages."""
    name = getattr(thing, "name", None) or getattr(thing, "__name__", None)
    if name == "<lambda>":
        return "controller"
    return name if isinstance(name, str) else type(thing).__name__

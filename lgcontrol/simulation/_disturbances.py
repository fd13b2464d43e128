"""What pushes the plant: noise, pulses and functions of time on its inputs, kicks of its state."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, check_shape, level_outside, unknown_name
from ..groups import Product
from ..systems import System
from ._clock import Clock, Times, Timing, check_period, check_time
from ._contract import Disturbance
from ._random import check_deviation, stream


class Noise:
    """Normal random inputs, drawn anew every dt and held: noises are what their sizes mean."""

    size: ClassVar[str]  # field with a size for each input
    dt: float
    offset: float

    def __post_init__(self) -> None:
        _ = Times(type(self).__name__, self.dt, self.offset)
        _ = self.deviations

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs it acts on."""
        return tuple(getattr(self, self.size))

    def sample(self, t: float, rng: np.random.Generator) -> Mapping[str, float]:
        """Draw one value per input, at time t in s."""
        return dict(zip(self.inputs, self.draw(rng, 1)[0], strict=True))

    def draw(self, rng: np.random.Generator, count: int) -> np.ndarray:
        """The values of so many draws, shape (count, number of inputs)."""
        return self.deviations * rng.normal(size=(count, len(self.inputs)))

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the draws, in the order of the inputs."""
        values = list(getattr(self, self.size).values())
        sizes = check_deviation(f"{self.size} of {type(self).__name__}", values, (len(values),))
        return sizes / self._divisor

    @property
    def _divisor(self) -> float:
        """Size of noise whose draws have the standard deviation one."""
        return 1.0


@named_options
@dataclass(frozen=True)
class HeldNoise(Noise):
    """Normal random inputs, drawn anew every dt and held between.

    Parameters
    ----------
    std_discrete : mapping of str to float
        Standard deviation of each value by input name, in the input's unit.
    dt : float
        Hold time in s.
    offset : float
        Time of the first draw in s.

    Examples
    --------
    >>> HeldNoise({"force_x": 0.5}, dt=0.05).inputs
    ('force_x',)
    """

    std_discrete: Mapping[str, float]
    dt: float
    offset: float = 0.0
    size = "std_discrete"


@named_options
@dataclass(frozen=True)
class WhiteNoise(Noise):
    """White noise of a density, held over dt: standard deviation ``density / √dt``.

    Parameters
    ----------
    density : mapping of str to float
        Square root of the two-sided power spectral density by input name, unit·√s (which is
        unit/√Hz).
    dt : float
        Hold time in s.
    offset : float
        Time of the first draw in s.

    Examples
    --------
    >>> WhiteNoise({"force_x": 1e-3}, dt=0.01).density["force_x"]
    0.001
    """

    density: Mapping[str, float]
    dt: float
    offset: float = 0.0
    size = "density"

    @property
    def _divisor(self) -> float:
        return np.sqrt(self.dt)


@named_options
@dataclass(frozen=True)
class InputSignal:
    """Inputs as a function of time, sampled every dt and held between.

    Parameters
    ----------
    function : callable
        ``function(t) → {input name: value}``; inputs left out are not pushed.
    dt : float
        Hold time in s.
    offset : float
        Time of the first sample in s.

    Examples
    --------
    >>> swell = InputSignal(lambda t: {"force_x": 2.0 * np.sin(t)}, dt=0.1)
    >>> swell.sample(0.0, None)
    {'force_x': np.float64(0.0)}
    """

    function: Callable[[float], Mapping[str, float]]
    dt: float
    offset: float = 0.0

    def __post_init__(self) -> None:
        _ = Times("InputSignal", self.dt, self.offset)

    def sample(self, t: float, rng: np.random.Generator | None) -> Mapping[str, float]:
        """Values at time t in s."""
        return self.function(t)


@named_options
@dataclass(frozen=True)
class Pulse:
    """Constant inputs from one time to another, both exact.

    Parameters
    ----------
    values : mapping of str to float
        Value by input name, in the input's unit.
    start : float
        When it begins, in s.
    duration : float
        How long it lasts, in s; infinite for a step.

    Examples
    --------
    >>> gust = Pulse({"force_x": 1.0}, start=1.0, duration=0.5)
    >>> gust.inputs
    ('force_x',)
    """

    values: Mapping[str, float]
    start: float
    duration: float = np.inf

    def __post_init__(self) -> None:
        check_time("start of a Pulse", self.start)
        if self.duration != np.inf:
            check_period("duration of a Pulse", self.duration)
        for name, value in self.values.items():
            check_shape(f"value of {name!r} of a Pulse", value, ())

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs it acts on."""
        return tuple(self.values)


@named_options
@dataclass(frozen=True)
class Kick:
    """A sudden change of the state: ``X ← plus(X, d)`` at one time.

    Parameters
    ----------
    time : float
        When, in s from the start of the run.
    change : mapping of str to array_like, or array_like of shape (dim,)
        Tangent vector by block of the state (blocks left out are not changed), or of the whole
        state.

    Examples
    --------
    >>> Kick(1.5, {"twist": [1, 0, -1, 3, -2, 1]}).time
    1.5
    """

    time: float
    change: Mapping[str, ArrayLike] | ArrayLike

    def __post_init__(self) -> None:
        check_time("time of a Kick", self.time)


class Disturbances:
    """Everything that pushes a plant; `total` is the sum of what it adds to the inputs.

    Each periodic disturbance has its own random stream, found by its type and inputs, so that
    others may come and go without changing it.

    Parameters
    ----------
    plant : System
    disturbances : sequence of Disturbance, Kick and Pulse, or a single one
    seed : int

    Attributes
    ----------
    total : ndarray, shape (n_inputs,)
    parts : ndarray, shape (count, n_inputs)
        What each adds, the periodic ones first.
    draws : list of Timing
        When the periodic ones change.
    """

    def __init__(self, plant: System, disturbances: object, seed: int) -> None:
        if isinstance(disturbances, Kick | Pulse) or _samples(disturbances):
            disturbances = [disturbances]
        if not isinstance(disturbances, list | tuple):
            raise TypeError(
                "disturbances must be a list of Disturbance, Kick and Pulse, as in "
                f"disturbances=[Kick(…)]; got {disturbances!r}"
            )
        self._index: dict[str, int] = plant.memo(
            ("places of inputs",), lambda: {name: i for i, name in enumerate(plant.input_names)}
        )
        self.total = np.zeros(plant.n_inputs)
        self._kicks = [(e.time, _tangent(plant, e)) for e in disturbances if isinstance(e, Kick)]
        self._pulses = [entry for entry in disturbances if isinstance(entry, Pulse)]
        self._periodic: list[tuple[Disturbance, Times, np.random.Generator]] = []
        seen: Counter[str] = Counter()
        source: Any
        for source in disturbances:
            label, inputs = label_of(source), getattr(source, "inputs", ())
            self._positions(inputs, label)
            if isinstance(source, Kick | Pulse):
                continue
            if not _samples(source):
                raise TypeError(
                    f"{source!r} is no disturbance: it needs dt and sample(t, rng); see HeldNoise, "
                    "WhiteNoise, InputSignal, Pulse and Kick"
                )
            times = Times(label, source.dt, getattr(source, "offset", 0.0))
            key = f"{type(source).__name__}({', '.join(inputs)})"
            rng = stream(seed, "disturbance", key, str(seen[key]))
            self._periodic.append((source, times, rng))
            seen[key] += 1
        self.parts = np.zeros((len(self._periodic) + len(self._pulses), plant.n_inputs))

    def times(self) -> list[tuple[str, float]]:
        """All times that must fall on ticks, with what they are."""
        found = [entry for _, times, _ in self._periodic for entry in times.named]
        for pulse in self._pulses:
            found.append(("start of a Pulse", pulse.start))
            if pulse.duration != inf:
                found.append(("duration of a Pulse", pulse.duration))
        return found + [("time of a Kick", time) for time, _ in self._kicks]

    def events(self) -> list[tuple[str, float, list[float]]]:
        """Kicks and pulses with what they are called, times in s, and changes of the state."""
        found: list[tuple[str, float, list[float]]] = [
            ("kick", float(time), change.tolist()) for time, change in self._kicks
        ]
        for pulse in self._pulses:
            names = ", ".join(pulse.inputs)
            found.append((f"push: {names}", float(pulse.start), []))
            if pulse.duration != inf:
                found.append((f"push ends: {names}", float(pulse.start + pulse.duration), []))
        return sorted(found, key=lambda event: event[1])

    def schedule(self, clock: Clock, end: int) -> None:
        """Put every change on a tick; warn of what comes after the end, or pushes from there on."""
        self.draws: list[Timing] = [times.on(clock) for _, times, _ in self._periodic]
        self._blows = [(clock.ticks("time", time), change) for time, change in self._kicks]
        self._spans: list[tuple[int, float]] = []
        for pulse in self._pulses:
            start = clock.ticks("start", pulse.start)
            lasts = inf if pulse.duration == inf else clock.ticks("duration", pulse.duration)
            self._spans.append((start, start + lasts))
        late = [("Kick", tick) for tick, _ in self._blows if tick > end]
        late += [("Pulse", start) for start, _ in self._spans if start >= end]
        for what, tick in late:
            warnings.warn(
                f"the {what} at {clock.seconds(tick):g} s has no effect: the run ends at "
                f"{clock.seconds(end):g} s",
                RuntimeWarning,
                stacklevel=level_outside(),
            )

    def kicks(self, now: int) -> list[np.ndarray]:
        """Changes of the state at a tick, tangent vectors."""
        return [change for tick, change in self._blows if tick == now]

    def push(self, now: int, t: float, blame: Callable[[str], None]) -> None:
        """Change what is pushed from a tick on; `blame` is told who acts, for error messages."""
        due = [k for k, timing in enumerate(self.draws) if timing.is_due(now)]
        for k in due:
            blame(self.label(k))
            self.parts[k] = self.draw(k, t, 1)[0]
        if self.switch(now) or due:
            self.total = self.parts.sum(axis=0)

    def label(self, k: int) -> str:
        """What a periodic disturbance is called."""
        return self._periodic[k][1].what

    def is_noise(self, k: int) -> bool:
        """Whether a periodic disturbance is noise of this module, which can be drawn before."""
        return type(self._periodic[k][0]) in (HeldNoise, WhiteNoise)

    def draw(self, k: int, t: float, most: int) -> np.ndarray:
        """The next values of a periodic disturbance, which is due at t, shape (count, n_inputs).

        Noise draws as many as may be, all else those of now.
        """
        source, times, rng = self._periodic[k]
        if not self.is_noise(k):
            return self._values(source.sample(t, rng), times.what)[None]
        assert isinstance(source, Noise)
        rows = np.zeros((most, len(self.total)))
        rows[:, self._positions(source.inputs, times.what)] = source.draw(rng, most)
        return rows

    def switch(self, now: int) -> bool:
        """Begin or end the pulses that do at a tick; returns whether one did."""
        changed = False
        for k, (pulse, span) in enumerate(
            zip(self._pulses, self._spans, strict=True), len(self._periodic)
        ):
            if now in span:
                values = pulse.values if now == span[0] else {}
                self.parts[k] = self._values(values, "Pulse")
                changed = True
        return changed

    def after(self, now: int) -> float:
        """The next tick at which anything changes, infinite if nothing does."""
        ticks: list[float] = [timing.after(now) for timing in self.draws]
        return min(inf, *ticks, self.next_kick(now), self.next_switch(now))

    def next_kick(self, now: int) -> float:
        """The next tick of a kick, infinite without one."""
        return min((tick for tick, _ in self._blows if tick > now), default=inf)

    def next_switch(self, now: int) -> float:
        """The next tick at which a pulse begins or ends, infinite without one."""
        ticks = (tick for span in self._spans for tick in span if tick > now)
        return min(ticks, default=inf)

    def _values(self, values: Mapping[str, float], what: str) -> np.ndarray:
        if not isinstance(values, Mapping):
            raise TypeError(
                f"{what} must give a mapping from inputs to values, as in "
                f"{{{next(iter(self._index), 'input')!r}: 1.0}}, not {values!r}"
            )
        part = np.zeros_like(self.total)
        part[self._positions(values, what)] = [float(value) for value in values.values()]
        if not np.isfinite(part).all():
            raise ValueError(f"{what} gave a value that is not finite: {dict(values)}")
        return part

    def _positions(self, names: Iterable[str], what: str) -> list[int]:
        for name in names:
            if name not in self._index:
                raise UnknownNameError(f"{what}: {unknown_name('input', name, self._index)}")
        return [self._index[name] for name in names]


def _samples(source: object) -> bool:
    return callable(getattr(source, "sample", None))


def _tangent(plant: System, kick: Kick) -> np.ndarray:
    """Change of the state as one tangent vector."""
    group, change = plant.state, kick.change
    if isinstance(change, Mapping):
        if not isinstance(group, Product):
            raise TypeError(
                f"{plant.name} has the state {group}, without named blocks: give the Kick a "
                f"tangent vector of shape ({group.dim},)"
            )
        unknown = [name for name in change if name not in group.blocks]
        if unknown:
            raise UnknownNameError(f"Kick: {unknown_name('block', unknown[0], group.blocks)}")
        try:
            change = group.join_tangent(**{k: np.asarray(d, float) for k, d in change.items()})
        except ValueError as error:
            raise ValueError(f"change of a Kick: {error}") from None
    return check_shape("change of a Kick", change, (group.dim,))


def label_of(thing: object) -> str:
    """What a controller or disturbance is called in messages."""
    name = getattr(thing, "name", None) or getattr(thing, "__name__", None)
    if name == "<lambda>":
        return "controller"
    return name if isinstance(name, str) else type(thing).__name__

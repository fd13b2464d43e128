"""Controllers in the loop: chains of them, what each can do, what they follow, who uses them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from types import FunctionType, MethodType
from typing import Any

import numpy as np

from ..codegen._internal import check_shape
from ..groups import LieGroup, Product, check_element
from ..groups._internal import group_difference
from ..systems import ReferenceLike, System, Trajectory, TrimPoint
from ._clock import Times
from ._compiled_parts import FunctionLaw, KernelLaw
from ._contract import ControlLaw, fault_of_call
from ._disturbances import label_of


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

    def __init__(self, *controllers: ControlLaw) -> None:
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


@dataclass(frozen=True, eq=False)
class ControlStage:
    """One controller of a run with all that a loop asks of it; plain callables are adapted here.

    Attributes
    ----------
    name : str
        Differs from those of the other stages.
    law : ControlLaw
    times : Times
    """

    name: str
    law: ControlLaw
    times: Times

    def reset(self) -> None:
        """Make the controller forget earlier runs, if it remembers any."""
        getattr(self.law, "reset", _nothing)()

    def prepare(self, x: np.ndarray | None, reference: object) -> None:
        """Get the controller ready for its first call, if it knows how to."""
        getattr(self.law, "prepare", _nothing)(self.times.offset, x, reference)

    @property
    def info(self) -> object:
        """What the controller says of its last call, None if it says nothing."""
        return getattr(self.law, "info", None)

    @property
    def is_linear(self) -> bool:
        """Whether controls are to move linearly from one answer to the next, else held."""
        return getattr(self.law, "hold", "zero") == "first"

    @property
    def unstable(self) -> str:
        """Why errors grow in the controller's sampled loop, empty if it does not say so."""
        said = getattr(self.law, "unstable", "")
        return said if isinstance(said, str) else ""

    def compiled_law(self, plant: System, reference: object) -> FunctionLaw | KernelLaw | None:
        """The controller without Python, where its class offers that for this plant."""
        offer = own_offer(self.law, "compiled_law", "__call__")
        return None if offer is None else offer(plant, reference)

    @cached_property
    def system(self) -> System | None:
        """What the controller was made for; what adapts a controller has no system of its own."""
        own = getattr(self.law, "__dict__", {}).get("system")
        return own if isinstance(own, System) else None

    def told_by(self, method: str, plant: System) -> Callable[..., Any] | None:
        """A method of the controller itself that tells about states of the plant."""
        if self.system is None or self.system.state != plant.state:
            return None
        return getattr(self.law, method, None)


def own_offer(part: object, name: str, *replaced: str) -> Callable[..., Any] | None:
    """A method of a part of a loop that stands for others, unless a subclass changed one of them.

    What wraps another part and hands on its attributes has no offer of its own.
    """
    for kind in type(part).__mro__:
        if name in vars(kind):
            return getattr(part, name)
        if any(other in vars(kind) for other in replaced):
            return None
    return None


def another(part: Any) -> Any:
    """A part of a loop like this one, for a loop at the same time."""
    if part is None or isinstance(part, FunctionType | MethodType):
        return part
    if isinstance(part, Cascade):
        return Cascade(*map(another, part.controllers))
    make = getattr(part, "another", None)
    return copy.deepcopy(part) if make is None else make()


def make_stages(
    controller: ControlLaw | Cascade | None, dt: float | None
) -> tuple[ControlStage, ...]:
    """Stages of a controller or a Cascade; dt is the period of those that have none."""
    if controller is None:
        return ()
    entries = controller.controllers if isinstance(controller, Cascade) else (controller,)
    stages: list[ControlStage] = []
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
        fault = fault_of_call(entry, 3)
        if fault:
            raise TypeError(
                f"{label_of(entry)} must take (t, x, reference): {fault}; write "
                "def controller(t, x, reference)"
            )
        label, taken = label_of(entry), {stage.name for stage in stages}
        name = label
        for k in range(2, len(entries) + 1):
            name = name if name not in taken else f"{label} {k}"
        own = getattr(entry, "dt", None) or None  # 0 means "at any rate", as for systems
        period = own if own is not None else dt
        if period is None:
            raise ValueError(f"{name} has no dt of its own: give simulate(..., dt=period in s)")
        offset, delay = (getattr(entry, key, 0.0) for key in ("offset", "delay"))
        stages.append(ControlStage(name, entry, Times(name, period, offset, delay)))
    if dt is not None and all(stage.times.dt != dt for stage in stages):
        raise ValueError(
            f"dt = {dt} s is of no use: "
            + ", ".join(f"{stage.name} has dt = {stage.times.dt} s" for stage in stages)
            + " of its own; for a denser record give record_dt"
        )
    return tuple(stages)


def check_model(plant: System, stage: ControlStage) -> None:
    """Refuse a controller of another state."""
    system = stage.system
    if system is None or system.state is plant.state:
        return
    if _parts(system.state) != _parts(plant.state):
        raise ValueError(
            f"{stage.name} is a controller of {system.name}, whose state is not that of "
            f"{plant.name}: {group_difference(system.state, plant.state)}. "
            "Adapted translates between them"
        )


def _parts(group: LieGroup) -> list[LieGroup | None]:
    """Groups that a state is made of, whatever the names; None for each plain number."""
    if isinstance(group, Product):
        return [part for block in group.blocks.values() for part in _parts(block)]
    is_vector = group.is_commutative and group.nq == group.dim
    return [None] * group.dim if is_vector else [group]


def check_controls(plant: System, name: str, answer: object) -> np.ndarray:
    """The controls as an array of their own, shape (n_controls,)."""
    index = plant.input_index("control")
    if answer is None:
        names = ", ".join(plant.input_names[i] for i in index)
        raise ValueError(
            f"{name} returned None, expected {len(index)} controls ({names}): "
            "does it end without a return?"
        )
    controls = np.array(answer, dtype=np.float64)
    if controls.shape == () and len(index) == 1:
        controls = controls.reshape(1)
    if controls.shape != (len(index),) or not np.isfinite(controls).all():
        check_shape(f"the result of {name}", controls, (len(index),))
    return controls


class AskedOnce:
    """A function of time that remembers what it said: asked about one time again, it is not called.

    Controllers look one period ahead and back, and the record of a run wants the same times.

    Parameters
    ----------
    function : callable
        ``function(t) → value``.

    Examples
    --------
    >>> asked = []
    >>> ramp = AskedOnce(lambda t: asked.append(t) or 2 * t)
    >>> ramp(0.3), ramp(0.1 + 0.2), asked
    (0.6, 0.6, [0.3])
    """

    def __init__(self, function: Callable[[float], Any]) -> None:
        self.function = function
        self._said: dict[int, Any] = {}

    def __call__(self, t: float, /) -> Any:
        """Value at time t in s; times closer than a nanosecond are one."""
        key = round(1e9 * t)
        if key not in self._said:
            self._said[key] = self.function(t)
        return self._said[key]


def as_reference(reference: ReferenceLike | None) -> ReferenceLike | None:
    """A reference for controllers: plain functions of time are asked once about each time."""
    plain = isinstance(reference, FunctionType | MethodType)
    return AskedOnce(reference) if plain and _takes_a_time(reference) else reference


def reference_states(
    group: LieGroup, reference: ReferenceLike | None, t: np.ndarray
) -> np.ndarray | None:
    """A reference at times (k,) as states of the group, shape (k, nq); None if it is none."""
    if isinstance(reference, Trajectory | TrimPoint):
        own = reference.group if isinstance(reference, Trajectory) else reference.system.state
        return reference(t).x if own == group else None
    if not callable(reference):
        values = [_state(reference)]
    elif _takes_a_time(reference):
        values = [_state(reference(time)) for time in t.tolist()]
    else:
        return None
    if any(value is None or value.shape != (group.nq,) for value in values):
        return None
    states = check_element("the reference's state", np.array(values), group, batch=True)
    return states if callable(reference) else np.tile(states[0], (len(t), 1))


def _takes_a_time(function: Callable[..., Any]) -> bool:
    """Whether a function can be called with one number."""
    return isinstance(function, AskedOnce) or not fault_of_call(function, 1)


def _state(reference: object) -> np.ndarray | None:
    try:
        return np.asarray(getattr(reference, "x", reference), dtype=np.float64)
    except (TypeError, ValueError):
        return None


_in_use: set[int] = set()
_lock = Lock()


@contextmanager
def alone_with(things: Iterable[object]) -> Iterator[None]:
    """Nobody else simulates with these objects meanwhile; functions may be shared.

    Raises
    ------
    RuntimeError
        If one of them is in the loop of another simulation, or twice in this one.
    """
    things = [thing for thing in things if not isinstance(thing, FunctionType | MethodType)]
    taken: list[int] = []
    try:
        for thing in things:
            with _lock:
                if id(thing) in _in_use:
                    raise RuntimeError(
                        f"{label_of(thing)} is in a loop already: it remembers what it did there, "
                        "and two loops would disturb each other; make one for each"
                    )
                _in_use.add(id(thing))
            taken.append(id(thing))
        yield
    finally:
        with _lock:
            _in_use.difference_update(taken)


def _nothing(*_: object) -> None:
    return None

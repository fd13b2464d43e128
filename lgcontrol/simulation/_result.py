"""SimulationResult: everything a run produced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from importlib import import_module
from pathlib import Path
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codegen._internal import (
    Result,
    UnknownNameError,
    html_lines,
    html_page,
    read_only,
    unknown_name,
)
from ..groups import LieGroup, Product
from ..scene import Scene
from ..scene._internal import Scenery
from ..systems import Trajectory
from ..systems._internal import block_slices, time_response
from ._contract import RunStatus
from ._logs import BoundedQuantity, ControllerLog, Measurements, TaskError
from ._run_scene import saved_scene, scene_of_run
from ._storage import read_result, write_result

if TYPE_CHECKING:
    import control


# Number of coordinates beyond their limits that have a line of their own.
MOST_NAMED = 3
# What a unit measures, for people.
QUANTITIES = {
    "m": "position",
    "m/s": "velocity",
    "rad/s": "angular velocity",
    "m/s²": "acceleration",
    "N": "force",
    "N m": "torque",
}


class Drawn:
    """A method that is a function of `lgcontrol.plotting`, which loads when it is asked for."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, run: Any, kind: type | None = None) -> Any:
        """The function, of a run its method."""
        function = getattr(import_module("lgcontrol.plotting"), self.name)
        return function if run is None else MethodType(function, run)


@dataclass(frozen=True, eq=False, repr=False)
class SimulationResult(Result):
    """Times, states, inputs and whatever else a closed-loop run produced.

    Attributes
    ----------
    name : str
        Name of the plant.
    group : LieGroup
        The state's group.
    t : ndarray, shape (N + 1,)
        All times at which something happened, s.
    x : ndarray, shape (N + 1, nq)
        States of the plant; after the kick, where there was one.
    u : ndarray, shape (N, n_inputs)
        All inputs as applied, held over each interval.
    input_names, input_units : tuple of str
    input_roles : tuple of str
    input_bounds : ndarray, shape (2, n_inputs)
    reference : ndarray, shape (N + 1, nq), or None
        If the reference was a state, a function of time that gives states, or something that the
        controller says the states of (`Controller.reference_states`).
    tracked : ndarray of bool, shape (dim,), or None
        Which errors of the state the controller weighs, if it says so: wheels that turn a satellite
        end at any speed.
    state_limits : ndarray, shape (2, nq), or None
        Limits of the state's coordinates, as the plant knows them; infinite where there are none.
    tasks : dict of str to TaskError
        Errors of what the controller tracks besides the state: the pose of a hand.
    bounds : dict of str to BoundedQuantity
        What the controller keeps within limits besides its inputs: coordinates of the state by
        their names, the clearance to an obstacle.
    limited : dict of str to BoundedQuantity
        Entries of the plant's quantities that have limits, with the parameters of the start.
    estimate : ndarray, shape (N + 1, nq), or None
        The estimator's ``x``, after the measurements delivered at each time.
    estimate_std : ndarray, shape (N + 1, dim), or None
        Square roots of the diagonal of the estimator's ``P``, if it has one.
    measurements : dict of str to Measurements
    controllers : dict of str to ControllerLog
        From the outer to the inner.
    settings : dict of str to value
        What else made the run: seed, feedback, p (at the start), method, tolerance (None for equal
        steps), max_step, the lengths of the shortest_step and the longest_step taken in s, the
        number of steps and of rejected_steps, the execution, and when the reference_ends, if that
        is on its way.
    status : RunStatus
        How it ended; those that did not complete have a message.
    message : str
        Why it is no success: what happened, which controller had no answer or an unstable loop.
    scenery : Scenery, Scene or None
        What `scene` is made of besides the states: how the plant looks, obstacles, goals, events;
        of a result that was loaded, the scene itself.
    """

    name: str
    group: LieGroup
    t: np.ndarray
    x: np.ndarray
    u: np.ndarray
    input_names: tuple[str, ...]
    input_units: tuple[str, ...]
    input_roles: tuple[str, ...]
    input_bounds: np.ndarray
    reference: np.ndarray | None = None
    tracked: np.ndarray | None = None
    state_limits: np.ndarray | None = None
    tasks: Mapping[str, TaskError] = field(default_factory=dict)
    bounds: Mapping[str, BoundedQuantity] = field(default_factory=dict)
    limited: Mapping[str, BoundedQuantity] = field(default_factory=dict)
    estimate: np.ndarray | None = None
    estimate_std: np.ndarray | None = None
    measurements: Mapping[str, Measurements] = field(default_factory=dict)
    controllers: Mapping[str, ControllerLog] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    status: RunStatus = RunStatus.COMPLETED
    message: str = ""
    scenery: Scenery | Scene | None = None

    def __repr__(self) -> str:
        """Name, status and size; ``print`` shows the summary."""
        return (
            f"SimulationResult({self.name!r}, {self.status}, {self.t[-1]:g} s, "
            f"{len(self.u)} intervals)"
        )

    def __str__(self) -> str:
        """The same with the lines of `summary`."""
        return "\n  ".join([repr(self), *self.summary()])

    def _repr_html_(self) -> str:
        """The summary, for notebooks."""
        return html_page(repr(self), html_lines(self.summary()))

    @property
    def is_success(self) -> bool:
        """Whether the run reached its end, each controller answered, and no loop is unstable.

        `message` says why it is not.
        """
        completed = self.status == RunStatus.COMPLETED
        return completed and not self.unanswered and not self.unstable

    @property
    def unanswered(self) -> dict[str, str]:
        """Controllers that did not vouch for any of their answers, with their last message."""
        return {
            name: log.last_message for name, log in self.controllers.items() if log.is_unanswered
        }

    @property
    def unstable(self) -> dict[str, str]:
        """Controllers in whose sampled loop errors grow, with what they say of it."""
        return {name: log.unstable for name, log in self.controllers.items() if log.unstable}

    @property
    def trajectory(self) -> Trajectory:
        """States and inputs as a Trajectory: callable at any time."""
        return Trajectory(self.group, self.t, self.x, self.u if len(self.u) else None)

    @cached_property
    def error(self) -> np.ndarray:
        """``minus(x, reference)`` at all times, shape (N + 1, dim); read-only."""
        if self.reference is None:
            raise ValueError("the run had no reference that is a state, so there is no error")
        return read_only(self.group.minus(self.x, self.reference))

    @cached_property
    def estimation_error(self) -> np.ndarray:
        """``minus(x, estimate)`` at all times, shape (N + 1, dim); read-only."""
        if self.estimate is None:
            raise ValueError("the run had no estimator")
        if self.estimate.shape != self.x.shape:
            raise ValueError(
                f"the estimator's x has {self.estimate.shape[1]} coordinates, the plant's state "
                f"{self.group} has {self.group.nq}: there is no error between them"
            )
        return read_only(self.group.minus(self.x, self.estimate))

    def block(self, name: str) -> np.ndarray:
        """Coordinates of a block of the state, or of a joint, shape (N + 1, nq of the block)."""
        return self.x[:, self._slices(name)[0]]

    def block_error(self, name: str) -> np.ndarray:
        """Error of a block of the state, shape (N + 1, dim of the block)."""
        return self.error[:, self._slices(name)[1]]

    def input(self, name: str) -> np.ndarray:
        """One input as applied, held over each interval, shape (N,)."""
        if name not in self.input_names:
            raise UnknownNameError(unknown_name("input", name, self.input_names))
        return self.u[:, self.input_names.index(name)]

    @property
    def command(self) -> np.ndarray:
        """What the (innermost) controller asked for, before saturation, shape (K, n_controls)."""
        logs = list(self.controllers.values())
        none = np.zeros((0, len(self._controls)))
        return none if not logs or logs[-1].command is None else logs[-1].command

    @property
    def control(self) -> dict[str, np.ndarray]:
        """``info`` of the (innermost) controller, with the times of its calls as "t"."""
        logs = list(self.controllers.values())
        return {"t": logs[-1].t, **logs[-1].info} if logs else {}

    def effort(self) -> np.ndarray:
        """Integral of the squared control inputs, unit²·s, shape (n_controls,)."""
        return np.diff(self.t) @ self.u[:, self._controls] ** 2

    def saturation(self, tolerance: float = 1e-4) -> float:
        """Fraction of the controller's calls that met a bound or asked for more.

        Controllers that keep the bounds themselves end at them, those with an interior-point solver
        a little inside.

        Parameters
        ----------
        tolerance : float
            Largest distance from a bound of a command that counts, relative to the range between
            the bounds. If there is only one bound, it is relative to one more than its size.
        """
        command = self.command
        if command.size == 0:
            return 0.0
        lower, upper = self.input_bounds[:, self._controls]
        span = upper - lower
        only = np.where(np.isfinite(lower), lower, np.where(np.isfinite(upper), upper, 0.0))
        slack = tolerance * np.where(np.isfinite(span), span, 1 + np.abs(only))
        at_bound = (command <= lower + slack) | (command >= upper - slack)
        return float(at_bound.any(axis=1).mean())

    def beyond_limits(self) -> dict[str, float]:
        """By how much coordinates and quantities exceed their limits at worst; those that do."""
        found = {
            name: float(np.maximum(entry.values - entry.upper, entry.lower - entry.values).max())
            for name, entry in self._limited().items()
        }
        return {name: excess for name, excess in found.items() if excess > 0}

    def _limited(self) -> dict[str, BoundedQuantity]:
        """All that the plant limits, by name."""
        if self.state_limits is None:
            return dict(self.limited)
        rows = zip(self.x.T, *self.state_limits, self.group.coordinate_units, strict=True)
        own = [BoundedQuantity(x, float(low), float(high), unit) for x, low, high, unit in rows]
        return dict(zip(self.group.coordinate_names, own, strict=True)) | dict(self.limited)

    @property
    def execution(self) -> str:
        """What carried the run out: "compiled", with the parts that Python had, or Python and why.

        A compiled loop writes the same record. "interpreted" are parts that it evaluates by
        CasADi's interpreter, until their machine code pays for its build or is found on disk.
        """
        return str(self.settings.get("execution", ""))

    def summary(self) -> list[str]:
        """Lines of text: status, final error, effort, saturation, time per controller call."""
        return _summary(self)

    # The functions themselves, so that help and editors show their options.
    if TYPE_CHECKING:
        from ..plotting import animate_run as animate
        from ..plotting import plot_path as plot_path
        from ..plotting import plot_run as plot
    else:
        plot, plot_path, animate = Drawn("plot_run"), Drawn("plot_path"), Drawn("animate_run")

    def scene(self, *, frames: int | None = None, plan: Trajectory | None = None) -> Scene:
        """What there is to see: bodies, reference, goals, obstacles, events; and plots of the run.

        Parameters
        ----------
        frames : int, optional
            Largest number of states that are shown; by the number of bodies if left out. A result
            that was loaded has those that were saved.
        plan : Trajectory, optional
            Of the same state, drawn as a dashed path; not on a result that was loaded.

        Returns
        -------
        Scene
            With ``view()`` and ``to_html(path)``.

        Raises
        ------
        ValueError
            If nothing in the state moves a body, and the plant does not know how it looks.
        """
        return scene_of_run(self, frames, None if plan is None else plan.x)

    def save(self, path: str | Path) -> Path:
        """Write an ``.npz`` file: arrays and a JSON description, no pickled objects.

        The scene is stored too, so that it can be drawn without the plant; missing meshes are none
        of it.

        Returns
        -------
        Path
            Where it is: with ``.npz`` where the name has no ending.

        Raises
        ------
        ValueError
            If the name has another ending.
        """
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return write_result(found, Path(path), saved_scene(self))

    @classmethod
    def load(
        cls, path: str | Path, group: LieGroup | None = None, *, largest: int = 2**30
    ) -> SimulationResult:
        """Read a file written by `save`.

        Parameters
        ----------
        path : str or Path
        group : LieGroup, optional
            Needed only when the state lives on a group of your own.
        largest : int
            Bytes that the file may take unpacked; larger ones are refused.

        Raises
        ------
        ValueError
            If the file is not a result, damaged, too large, or of a newer version.
        """
        return cls(**read_result(Path(path), group, largest))

    def to_control(self) -> control.TimeResponseData:
        """As `control.TimeResponseData`: outputs are the error coordinates, or the states."""
        if self.reference is not None:
            outputs, labels = self.error, self.group.tangent_names
        else:
            outputs, labels = self.x, self.group.coordinate_names
        held = np.vstack([self.u, self.u[-1:]]) if len(self.u) else np.zeros((1, self.u.shape[1]))
        return time_response(
            self.group, self.t, self.x, held, outputs, labels, inputs=self.input_names,
            name=self.name,
        )  # fmt: skip

    @property
    def _controls(self) -> list[int]:
        return [i for i, role in enumerate(self.input_roles) if role == "control"]

    def _slices(self, block: str) -> tuple[slice, slice]:
        """Where a block is in coordinates and in tangent vectors."""
        if not isinstance(self.group, Product):
            raise TypeError(f"the state {self.group} has no blocks: use x and error")
        coordinates, tangents = block_slices(self.group)
        if not isinstance(block, str) or block not in coordinates:
            raise UnknownNameError(unknown_name("block", block, coordinates))
        return coordinates[block], tangents[block]


def _summary(result: SimulationResult) -> list[str]:
    """See `SimulationResult.summary`."""
    ended = result.status != RunStatus.COMPLETED
    lines = [f"{result.status}: {result.message}"] if ended else []
    lines += failures(result.controllers)
    ends = result.settings.get("reference_ends")
    if ends is not None and result.t[-1] > ends:
        lines.append(
            f"the reference ends at {ends:g} s while it moves, and stays there from then on"
        )
    if result.reference is not None:
        lines += _final_error(result)
    for name, task in result.tasks.items():
        lines += _by_block(f"final error of {name}", task.group, task.error[-1])
    lines += _beyond_limits(result)
    if result.estimate is not None and result.estimate.shape == result.x.shape:
        root = np.sqrt(np.mean(result.estimation_error**2, axis=0))
        lines += _by_block("estimation error, root mean square,", result.group, root)
    effort = _effort(result)
    if effort:
        lines.append(f"effort, integral of u²: {effort}")
    if result.command.size:
        lines.append(f"commands at or beyond the bounds: {_percent(result.saturation())}")
    for name, entry in result.measurements.items():
        lines += _sensor(name, entry)
    several = len(result.controllers) > 1
    for name, log in result.controllers.items():
        lines += [f"{name}: {line}" if several else line for line in _controller(log)]
    return lines + _steps(result.settings)


def failures(controllers: Mapping[str, ControllerLog]) -> list[str]:
    """Why a run that reached its end is no success: controllers without answers, unstable loops."""
    lines = []
    for name, log in controllers.items():
        if log.is_unanswered:
            said = f": {log.last_message}" if log.last_message else ""
            lines.append(f"{name} was {' or '.join(log.calls)} at every call{said}")
    return lines + [log.unstable for log in controllers.values() if log.unstable]


def _percent(share: float) -> str:
    """A share for people."""
    return f"{100 * share:.3g} %"


def _steps(settings: Mapping[str, Any]) -> list[str]:
    """How the plant was moved."""
    shortest, longest = (settings.get(key) for key in ("shortest_step", "longest_step"))
    if shortest is None or longest is None:
        return []
    span = f"{shortest:.3g} s" if longest < 1.01 * shortest else f"{shortest:.3g} … {longest:.3g} s"
    tolerance = settings.get("tolerance")
    kind = "not watched" if tolerance is None else f"tolerance {tolerance:g}"
    return [f"integration: {settings['method']}, steps of {span}, errors: {kind}"]


def _sensor(name: str, entry: Measurements) -> list[str]:
    """What became of measurements that did not all come in time."""
    under_way = entry.taken - entry.lost - len(entry.t)
    parts = [(entry.lost, "lost"), (entry.late, "late"), (under_way, "still under way at the end")]
    told = ", ".join(f"{count} {what}" for count, what in parts if count > 0)
    return [f"{name}: {entry.taken} measurements, {told}"] if told else []


def _by_block(what: str, group: LieGroup, error: np.ndarray) -> list[str]:
    """A line for each block of the state: the norms of its parts of one unit."""
    if not isinstance(group, Product):
        return [f"{what}: {_norms(group, error)}"]
    return [
        f"{what} of {name}: {_norms(block, error[group.tangent_slice(name)])}"
        for name, block in group.blocks.items()
        if block.dim
    ]


def _final_error(result: SimulationResult) -> list[str]:
    """Final error of what the controller weighs; how far the rest is from the reference."""
    group, error = result.group, result.error[-1]
    if result.tracked is None or result.tracked.all():
        return _by_block("final error", group, error)
    blocks = {"": (group, slice(0, group.dim))}
    if isinstance(group, Product):
        blocks = {n: (block, group.tangent_slice(n)) for n, block in group.blocks.items()}
    lines, free = [], []
    for name, (block, place) in blocks.items():
        own, label = result.tracked[place], f" of {name}" if name else ""
        if own.any():
            some = _norms(block, error[place], own)
            lines.append(f"final error{label}: {some}")
        if not own.all():
            free.append(f"{name or 'the rest'} ends {_norms(block, error[place], ~own)} off")
    return [*lines, f"not weighed by the controller: {'; '.join(free)} its reference"]


def _norms(block: LieGroup, error: np.ndarray, chosen: np.ndarray | None = None) -> str:
    """Norm of the (chosen) entries of each unit, with what they are where there are several."""
    parts = []
    chosen = np.ones(block.dim, dtype=bool) if chosen is None else chosen
    entries = zip(error, block.tangent_units, chosen, strict=True)
    given = [(value, unit) for value, unit, is_chosen in entries if is_chosen]
    units = dict.fromkeys(unit for _, unit in given)
    for unit in units:
        some = [value for value, own in given if own == unit]
        # Three angles of a pose are an attitude, one is a heading; those of joints are angles.
        turns = "attitude" if len(some) == 3 else "heading" if len(some) == 1 else "angles"
        quantity = turns if unit == "rad" else QUANTITIES.get(unit, "")
        label = f"{quantity} " if quantity and len(units) > 1 else ""
        parts.append(f"{label}{np.linalg.norm(some):.4g} {unit}".rstrip())
    return ", ".join(parts)


def _beyond_limits(result: SimulationResult) -> list[str]:
    """A line for each of the coordinates and quantities that exceed their limits most."""
    found = sorted(result.beyond_limits().items(), key=lambda entry: -entry[1])
    lines, limited = [], result._limited()
    for name, _ in found[:MOST_NAMED]:
        entry = limited[name]
        x, lower, upper, unit = entry.values, entry.lower, entry.upper, entry.unit
        excess = np.maximum(x - upper, lower - x)
        most = int(np.nanargmax(excess))
        first = result.t[np.argmax((x > upper) | (x < lower))]
        lines.append(
            f"beyond the limits of {name} from {first:g} s on, by up to "
            + f"{excess[most]:.4g} {unit}".rstrip()
            + f": {x[most]:.4g}, allowed are {lower:.4g} … {upper:.4g}"
        )
    if len(found) > MOST_NAMED:
        lines.append(f"beyond {len(found) - MOST_NAMED} more limits")
    return lines


def _effort(result: SimulationResult) -> str:
    """Effort of the controls by unit."""
    units = [
        unit
        for unit, role in zip(result.input_units, result.input_roles, strict=True)
        if role == "control"
    ]
    if not len(result.u):
        return ""
    parts = [
        f"{sum(e for e, u in zip(result.effort(), units, strict=True) if u == unit):.4g} "
        + (f"{f'({unit})' if ' ' in unit or '/' in unit else unit}²·s" if unit else "s")
        for unit in dict.fromkeys(units)
    ]
    return ", ".join(parts)


def _controller(log: ControllerLog) -> list[str]:
    lines = []
    period = log.period
    if len(log.t):
        ms = 1e3 * log.info["call_time"]
        share, unit = (1.0, "ms") if ms.max() >= 0.1 else (1e3, "µs")
        lines.append(
            f"controller call: median {share * np.median(ms):.2f} {unit}, 99 % "
            f"{share * np.percentile(ms, 99):.2f} {unit}, longest {share * ms.max():.2f} {unit}"
        )
        if log.overruns:
            lines.append(
                f"calls longer than the sample time of {1e3 * period:g} ms: {log.overruns} of "
                f"{len(ms)}"
            )
    age = log.info.get("measurement_age")
    if age is not None and len(age):
        unseen, stale = int(np.isnan(age).sum()), int((age > period + 1e-9).sum())
        if unseen:
            lines.append(f"calls before any measurement: {unseen} of {len(age)}")
        if stale and period:
            lines.append(
                f"calls with a measurement older than the sample time of {1e3 * period:g} ms: "
                f"{stale} of {len(age)}, the oldest {np.nanmax(age):.3g} s"
            )
    if "status" in log.info:
        names, counts = np.unique(log.info["status"].astype(str), return_counts=True)
        pairs = (f"{name} {count}" for name, count in zip(names, counts, strict=True))
        lines.append(f"controller status: {', '.join(pairs)}")
    if log.last_message and any(not status.is_success for status in log.calls):
        lines.append(f"last message of the controller: {log.last_message}")
    return lines

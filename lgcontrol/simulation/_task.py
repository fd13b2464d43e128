"""Task: a closed loop with the criteria it must meet; what `lgcontrol run NAME` runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, unknown_name
from ..scene._internal import SceneGoal, Scenery, goals_of, obstacle_bodies
from ..systems import ReferenceLike, System
from ._contract import ControlLaw
from ._controllers import Cascade
from ._random import check_seed
from ._result import SimulationResult
from ._run import SimulationSetup
from ._simulate import set_up, simulate
from ._variation import Vary, vary, with_fields

UNCHECKED = {"x0", "seconds", "reference"}  # fields of a task that it does not look at itself

# How the samples of a signal become the value of a criterion.
TAKES: dict[str, Callable[[np.ndarray], Any]] = {
    "largest": np.max,
    "least": np.min,
    "mean": np.mean,
}


@named_options
@dataclass(frozen=True)
class Criterion:
    """A number of a run and the limits within which it passes.

    Parameters
    ----------
    name : str
    measure : callable
        ``measure(result) → float``, or a signal: ``measure(result) → ndarray, shape (N,)`` with a
        sample for each time ``result.t``. A function of a module or an object of a module's class
        pickles, a lambda does not.
    limit : float
        Largest value that passes; with infinite limits numbers are only reported.
    unit : str
    least : float
        Smallest value that passes, of a clearance for example.
    take : {"largest", "least", "mean"}
        What counts of a signal.
    since, until : float
        Times [s] between which a signal counts; if the run ends before `since`, its end counts.
    last : float, optional
        Only the last so many seconds of the run count; 0 is its end.
    goal : int, optional
        Which of the task's goals the measure is the distance from, in m: scenes draw the ball of
        positions that pass about it.

    Examples
    --------
    >>> Criterion("duration", lambda run: run.t[-1], 5.0, "s").limit
    5.0
    >>> print(Criterion("height", lambda run: run.x[:, 2], unit="m", least=0.5, take="least"))
    height: at least 0.5 m
    """

    name: str
    measure: Callable[[SimulationResult], float | np.ndarray]
    limit: float = np.inf
    unit: str = ""
    least: float = -np.inf
    take: Literal["largest", "least", "mean"] = "largest"
    since: float = 0.0
    until: float = np.inf
    last: float | None = None
    goal: int | None = None

    def __post_init__(self) -> None:
        if self.take not in TAKES:
            raise UnknownNameError(unknown_name("take", self.take, list(TAKES)))
        if self.goal is not None and self.unit != "m":
            raise ValueError(
                f"{self.name!r} says goal={self.goal} and has the unit {self.unit!r}: a distance "
                "from a goal is in 'm'; leave out goal for other measures"
            )

    def __str__(self) -> str:
        return f"{self.name}: {self.range or 'reported'}"

    @property
    def range(self) -> str:
        """What passes, with the unit; empty for numbers that are only reported."""
        limits = (("at least", self.least), ("at most", self.limit))
        words = [f"{word} {limit:g} {self.unit}".rstrip() for word, limit in limits
                 if np.isfinite(limit)]  # fmt: skip
        return ", ".join(words)

    def value(self, result: SimulationResult) -> float:
        """Number of a run that is compared with the limits."""
        return self.measured(result)[0]

    def history(self, result: SimulationResult) -> np.ndarray | None:
        """Samples of the signal at ``result.t``; None where the measure is a single number."""
        return self.measured(result)[1]

    def measured(self, result: SimulationResult) -> tuple[float, np.ndarray | None]:
        """Both, with the measure taken once."""
        found = np.asarray(self.measure(result), dtype=np.float64)
        if found.ndim == 0:
            return float(found), None
        if found.shape != result.t.shape:
            raise ValueError(
                f"the measure of {self.name!r} returned shape {found.shape}, expected a number or "
                f"a sample for each time, shape {result.t.shape}"
            )
        return float(TAKES[self.take](found[self.counts(result)])), found

    def counts(self, result: SimulationResult) -> np.ndarray:
        """Which samples of a run count, shape (N,) of bool."""
        end = result.t[-1]
        since = self.since if self.last is None else max(self.since, end - self.last)
        return (result.t >= min(since, end)) & (result.t <= max(self.until, result.t[0]))


@dataclass(frozen=True)
class Verdict:
    """A criterion with its value in one run.

    Parameters
    ----------
    criterion : Criterion
    value : float
    """

    criterion: Criterion
    value: float

    @property
    def passed(self) -> bool:
        """Whether the value is within the limits (NaN is not)."""
        return bool(self.criterion.least <= self.value <= self.criterion.limit)

    @property
    def excess(self) -> float:
        """By how much the value is beyond the limit; negative is what was left of it."""
        return max(self.value - self.criterion.limit, self.criterion.least - self.value)


@named_options
@dataclass(frozen=True)
class Task:
    """Plant, controller, start and reference of a closed loop, and what counts as success.

    Parameters
    ----------
    plant : System
    controller : callable
        ``controller(t, x, reference) → u``.
    x0 : ndarray, shape (nq,)
        Start.
    seconds : float
        Simulated time.
    reference : optional
        Constant state, TrimPoint or Trajectory.
    options : mapping
        Further keyword arguments of `simulate` (disturbances, sensors, estimator, …). Sensors may
        be a function of the plant: what an accelerometer feels depends on it.
    criteria : tuple of Criterion
    obstacles : sequence of Sphere, Capsule or (center or ends, radius), or mapping of str to those
        Balls and capsules to draw with the path, in m; see `lgcontrol.plotting.plot_path`.
    hull : (center or ends, radius), optional
        A ball or capsule in the body's axes, in m, that is drawn along the path.
    goals : sequence of poses, shape (7,)
        To be drawn with the path in place of the reference.
    perturbed : callable, optional
        ``(share, factor) → plant, values of its parameters`` that `robustness` tries: masses and
        inertias larger by a share, other coefficients, drag for example, by what the factor stands
        for. One plant with parameters is made and compiled once. `scaled_inertia` if left out.
    variations : tuple of Vary
        What campaigns vary unless told otherwise.
    draw : callable, optional
        ``draw(seed) → {field: value}``: what the seed of a run decides, such as the start. Fields
        that `dataclasses.replace` has given another value stay.
    """

    plant: System
    controller: ControlLaw | Cascade
    x0: np.ndarray
    seconds: float
    reference: ReferenceLike | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    criteria: tuple[Criterion, ...] = ()
    obstacles: Sequence[Any] | Mapping[str, Any] = ()
    hull: tuple[Any, float] | None = None
    goals: Sequence[np.ndarray] = ()
    perturbed: Callable[[float, float], tuple[System, Mapping[str, float]]] | None = None
    variations: tuple[Vary, ...] = ()
    draw: Callable[[int], Mapping[str, Any]] | None = None

    def __post_init__(self) -> None:
        wrong = [c for c in self.criteria if c.goal not in (None, *range(len(self.goals)))]
        if wrong:
            raise ValueError(
                f"{wrong[0].name!r} says goal={wrong[0].goal}, and the task has "
                f"{len(self.goals)} goals: give the place of one in goals=(…), counted from 0"
            )
        if self.draw is not None and not isinstance(self.draw, _Draw):
            own = {f.name: getattr(self, f.name) for f in fields(self)}
            object.__setattr__(self, "draw", _Draw(self.draw, own))

    def run(
        self,
        *,
        seconds: float | None = None,
        seed: int | None = None,
        progress: Callable[[float], None] | None = None,
    ) -> SimulationResult:
        """Simulate the closed loop; see `simulate` for progress.

        Parameters
        ----------
        seconds : float, optional
            The task's own if left out.
        seed : int, optional
            Of noise, and of what the task draws: the start for example. If left out, the task
            starts as it stands, with the noise of seed 0.
        progress : callable, optional
        """
        task = self if seed is None else self.drawn(seed)
        return task.with_scenery(task._given_to(simulate, seconds, seed or 0, progress=progress))

    def drawn(self, seed: int) -> Task:
        """The task with what a seed decides."""
        return self.draw.on(self, seed) if isinstance(self.draw, _Draw) else self

    def varied(self, values: Mapping[str, Any], relative: Collection[str] = ()) -> Task:
        """The task with other starts, parameters, noise, delays or disturbances.

        Parameters
        ----------
        values : mapping of str to value
            By the names of `Vary`, arguments of designs apart.
        relative : collection of str
            Parameters whose values are factors on the nominal ones.

        Raises
        ------
        ValueError
            For a name that the task does not have.

        Examples
        --------
        >>> from lgcontrol.groups import Rn
        >>> cart = System("cart", Rn(2, ("place", "speed")), lambda t, x, u, p: [x[1], u],
        ...               inputs=["push"])
        >>> task = Task(cart, lambda t, x, r: -x[:1] - x[1:], np.array([1.0, 0.0]), 1.0,
        ...             options={"dt": 0.1})
        >>> other = task.varied({"start.place": 0.5, "input.push": 0.1, "mass": 2.0})
        >>> other.x0, other.options["disturbances"][0].values
        (array([1.5, 0. ]), {'push': 0.1})
        """
        return vary(self, values, relative)

    def set_up(self, seconds: float | None, seed: int) -> SimulationSetup:
        """The simulation of `run`, to be carried out later; campaigns set up several at a time."""
        return self._given_to(set_up, seconds, seed)

    def _given_to(self, use: Any, seconds: float | None, seed: int, **others: Any) -> Any:
        """What `simulate`, or a part of it, makes of the task."""
        options = dict(self.options)
        if callable(options.get("sensors")):
            options["sensors"] = options["sensors"](self.plant)
        with warnings.catch_warnings():
            if seconds is not None:  # what a shorter run leaves out is left out on purpose
                warnings.filterwarnings("ignore", "the (Kick|Pulse) at")
            return use(
                self.plant,
                self.controller,
                x0=self.x0,
                reference=self.reference,
                seconds=self.seconds if seconds is None else seconds,
                seed=seed,
                **others,
                **options,
            )

    def with_scenery(self, run: SimulationResult) -> SimulationResult:
        """A run with what the task knows of its surroundings."""
        known = run.scenery
        assert isinstance(known, Scenery)
        scenery = with_fields(
            known,
            obstacles=obstacle_bodies(self.obstacles, run.t) or known.obstacles,
            goals=task_goals(self),
            hull=self.hull,
        )
        return with_fields(run, scenery=scenery)

    def judge(self, result: SimulationResult) -> tuple[Verdict, ...]:
        """Criteria with their values in a run."""
        return tuple(Verdict(c, c.value(result)) for c in self.criteria)


def task_goals(task: Task) -> list[SceneGoal]:
    """Goals of a task, each with the tightest tolerance of the criteria about it."""
    limits = [
        [c.limit for c in task.criteria if c.goal == k and np.isfinite(c.limit)]
        for k in range(len(task.goals))
    ]
    named = zip(goals_of(task.goals), limits, strict=True)
    return [replace(goal, tolerance=min(own, default=0.0)) for goal, own in named]


@dataclass(frozen=True, eq=False)
class _Draw:
    """What seeds decide of a task, and the fields as they were when it was made."""

    function: Callable[[int], Mapping[str, Any]]
    made: Mapping[str, Any]

    def __call__(self, seed: int) -> Mapping[str, Any]:
        return self.function(seed)

    def on(self, task: Task, seed: int) -> Task:
        drawn = self.function(check_seed(seed)).items()
        own = {k: v for k, v in drawn if getattr(task, k) is self.made[k]}
        if own.keys() <= UNCHECKED:
            return with_fields(task, **own, draw=None)
        return replace(task, **own, draw=None)

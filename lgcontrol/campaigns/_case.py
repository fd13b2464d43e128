"""One case, run in whatever process: texts and numbers go in, numbers and bytes come out."""

from __future__ import annotations

import inspect
import os
import signal
import tempfile
import threading
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property, lru_cache, partial
from itertools import groupby
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen import prepare
from ..codegen._internal import Status, UnknownNameError, exactly, unknown_name
from ..groups._internal import operation_function
from ..simulation import (
    Criterion,
    HeldNoise,
    Kick,
    Pulse,
    RunStatus,
    SimulationError,
    SimulationResult,
    Task,
    Vary,
    WhiteNoise,
)
from ..simulation._internal import (
    SimulationSetup,
    another,
    carried_out,
    check_variations,
    one_of,
    raise_again,
    with_fields,
)
from ._design import CampaignError, code_of, homes_of, load, machine
from ._key import key_of
from ._sampling import Case

_ONE_AT_A_TIME = threading.Lock()  # of threads of a process, which share the task of a design
TOGETHER = 8  # runs that go on in turns: each has a controller of its own, with its memory
WORKER = "LGCONTROL_CAMPAIGN_WORKER"  # set in processes that run cases


@dataclass(frozen=True)
class CaseSetting:
    """What all cases of a campaign share.

    Parameters
    ----------
    design : str
        Text that names it; see `refer`.
    arguments : dict of str to value
        Of the design, the same in all cases.
    variations : tuple of Vary
    criteria : tuple of Criterion, optional
        Criteria of the design if left out.
    seconds : float, optional
        Simulated time.
    samples : int
        Of each signal of a criterion that are kept.
    trajectories : {"none", "failed", "all"}
    code : str
        Hash of the code that keys stand for, see `code_of`.
    cases : int
        That are to run: what is worth compiling.
    """

    design: str
    arguments: dict[str, Any]
    variations: tuple[Vary, ...]
    criteria: tuple[Criterion, ...] | None
    seconds: float | None
    samples: int
    trajectories: str
    code: str = ""
    cases: int = 1

    @cached_property
    def shared(self) -> _DesignArguments:
        """The arguments, of the cases that vary none of them."""
        return _DesignArguments(self.arguments)

    @cached_property
    def relative(self) -> frozenset[str]:
        """Names of variations that are factors."""
        return frozenset(one.name for one in self.variations if one.relative)


class CaseStatus(Status, StrEnum):
    """How a case ended: as its run, or without one.

    ``ERROR``: the design or the loop raised. ``KILLED``: its process died.
    """

    COMPLETED = "completed"
    DIVERGED = "diverged"
    UNRESOLVED = "unresolved"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    ERROR = "error"
    KILLED = "killed"

    @property
    def is_success(self) -> bool:
        """Whether the run reached its end."""
        return self is CaseStatus.COMPLETED


@dataclass(frozen=True)
class CaseOutcome:
    """Record of a case.

    Parameters
    ----------
    status : CaseStatus
    is_success : bool
        Whether the run completed and all criteria hold.
    message : str
        Why it is none.
    values : dict of str to float
        Of the criteria, NaN where there is none.
    machine : str
        Processor and compiler.
    seconds : float
        That it took.
    history : bytes
        Compressed samples of the signals, one row a criterion.
    trajectory : bytes
        The saved `SimulationResult`, if it is kept.
    consistency : dict of str to (float, int, int)
        Of an estimator: mean normalised square, its dimension and the number of squares. It holds
        "nees" at the end of the run, and the NIS of each sensor.
    """

    status: CaseStatus
    is_success: bool
    message: str
    values: dict[str, float]
    machine: str = ""
    seconds: float = 0.0
    history: bytes = b""
    trajectory: bytes = b""
    consistency: dict[str, tuple[float, int, int]] = field(default_factory=dict)


def begin_worker() -> None:
    """Make this process one that runs cases: Ctrl-C is the parent's, and it ends with it."""
    os.environ[WORKER] = "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def follow() -> None:
            connection.wait([parent.sentinel])
            os.kill(os.getpid(), signal.SIGTERM)

        threading.Thread(target=follow, daemon=True).start()


def task_of(setting: CaseSetting, case: Case, place: int = 0) -> Task:
    """The closed loop of a case; those of other places share no controller and no estimator."""
    design, values = load(setting.design), dict(case.values)
    names = _arguments(setting.design)
    own = {name: values.pop(name) for name in list(values) if name in names}
    given = _DesignArguments(setting.arguments | own) if own else setting.shared
    nominal = task = _nominal(setting.design, given)
    if task.draw is None and "seed" in names:  # the seed may decide more than the start
        task = design(seed=case.seed, **given.arguments)
    task = task.drawn(case.seed)
    if place and _takes_turns(task):
        controller, estimator = _parts_at(setting.design, given, place)
        if task.controller is nominal.controller:
            task = with_fields(task, controller=controller)
        if task.options.get("estimator") is nominal.options.get("estimator"):
            task = with_fields(task, options={**task.options, "estimator": estimator})
    return task.varied(values, setting.relative & set(values))


def _takes_turns(task: Task) -> bool:
    """Whether runs can go on in turns: no part of them remembers what it did in another run."""
    pushes: Any = task.options.get("disturbances", ())
    pushes = pushes if isinstance(pushes, list | tuple) else [pushes]
    parts = [one for one in (task.controller, task.options.get("estimator")) if one is not None]
    return all(hasattr(type(one), "another") for one in parts) and all(
        isinstance(one, HeldNoise | WhiteNoise | Kick | Pulse) for one in pushes
    )


@lru_cache(maxsize=4 * TOGETHER)
def _parts_at(design: str, given: _DesignArguments, place: int) -> tuple[Any, Any]:
    """Controller and estimator of a place."""
    task = _nominal(design, given)
    return another(task.controller), another(task.options.get("estimator"))


def check(setting: CaseSetting) -> tuple[str, ...]:
    """Make the nominal task, refuse what does not fit, and tell the names of the criteria."""
    task, names = nominal_task(setting), _arguments(setting.design)
    known = [one for one in setting.variations if one.name not in (*names, "seed")]
    check_variations(task, known, names)
    found = [one.name for one in setting.criteria or task.criteria]
    if not found:
        raise ValueError(
            f"the design {setting.design} has no criteria: give Campaign(criteria=…) what counts "
            "as success"
        )
    return tuple(found)


def nominal_task(setting: CaseSetting) -> Task:
    """Task of the design with the arguments of the campaign, and nothing varied."""
    names = _arguments(setting.design)
    for name in setting.arguments:
        if name not in names:
            raise UnknownNameError(unknown_name(f"argument of {setting.design}", name, list(names)))
    task = load(setting.design)(**setting.arguments)
    if not isinstance(task, Task):
        raise TypeError(f"the design {setting.design} returned {type(task).__name__}, not a Task")
    return task


def run_cases(setting: CaseSetting, cases: Sequence[Case]) -> list[CaseOutcome]:
    """Run cases and judge them; whatever one raises is its outcome."""
    load(setting.design)  # what cannot be loaded is no outcome: the campaign ends
    if setting.code and setting.code != _code(setting.design, homes_of(setting.criteria)):
        raise CampaignError(
            "the code changed while the campaign ran, or a worker of the cluster has other code: "
            "what is in the store is of the campaign's; start it again in a new process, with the "
            "same files everywhere"
        )
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [one for group in _alike(setting, cases) for one in _run_together(setting, group)]


def _alike(setting: CaseSetting, cases: Sequence[Case]) -> Iterator[Sequence[Case]]:
    """Cases of one plant and controller together, the others alone."""
    names = _arguments(setting.design)
    try:
        is_made_by_seed = "seed" in names and _nominal(setting.design, setting.shared).draw is None
    except Exception:  # of a design of anybody's; each case says so
        is_made_by_seed = True
    for is_own, group in groupby(cases, lambda one: any(name in names for name in one.values)):
        if is_own or is_made_by_seed:
            yield from ([one] for one in group)
        else:
            yield list(group)


def _run_together(setting: CaseSetting, cases: Sequence[Case]) -> list[CaseOutcome]:
    """Set up all cases, run them, judge them.

    Python's code takes a third of the time where nothing else ran since its last use.
    """
    attempts = [CaseRun(setting, case, k % TOGETHER) for k, case in enumerate(cases)]
    for one in attempts:
        one.do(CaseRun.set_up)
    for group in _side_by_side(attempts):
        carry_out(group)
    for one in attempts:
        one.do(CaseRun.judge)
    return [one.outcome for one in attempts]


def _side_by_side(attempts: Sequence[CaseRun]) -> Iterator[list[CaseRun]]:
    """Runs that can go on in turns, with parts of their own; each other one alone."""
    group: list[CaseRun] = []
    users: set[int] = set()
    is_open = False
    for one in attempts:
        if one.has_ended:
            continue
        own = {id(one.task.controller), id(one.task.options.get("estimator"))} - {id(None)}
        takes_turns = _takes_turns(one.task)
        if group and (len(group) == TOGETHER or users & own or not (is_open and takes_turns)):
            yield group
            group, users = [], set()
        group.append(one)
        users, is_open = users | own, takes_turns
    if group:
        yield group


def carry_out(group: Sequence[CaseRun]) -> None:
    """Simulate; an estimator knows of its run alone until the next one begins."""
    began = time.perf_counter()
    try:
        later = carried_out([one.setup for one in group])
    except Exception as error:  # of one of them
        if len(group) > 1:
            for one in group:
                carry_out([one])
            return
        later = [partial(raise_again, error)]
    share = (time.perf_counter() - began) / len(group)
    for one, tell in zip(group, later, strict=True):
        one.later = tell
        one.seconds += share
        one.do(CaseRun.learn)


class CaseRun:
    """A case on its way to its outcome; whatever it raises is that."""

    outcome: CaseOutcome
    task: Task
    setup: SimulationSetup
    later: Callable[[], SimulationResult]

    def __init__(self, setting: CaseSetting, case: Case, place: int = 0) -> None:
        self.setting, self.case, self.place = setting, case, place
        self.criteria: Sequence[Criterion] = setting.criteria or ()
        self.consistency: dict[str, tuple[float, int, int]] = {}
        self.seconds, self.has_ended = 0.0, False

    def do(self, step: Callable[[CaseRun], None]) -> None:
        """A step, unless one before failed."""
        if self.has_ended:
            return
        self._began = time.perf_counter()
        try:
            step(self)
        except (Exception, MemoryError) as error:  # a design of anybody's
            values = {one.name: float("nan") for one in self.criteria}
            text = _first_line(f"{type(error).__name__}: {error}")
            self._end(CaseStatus.ERROR, False, text, values)
        self.seconds = self._spent

    @property
    def _spent(self) -> float:
        return self.seconds + time.perf_counter() - self._began

    def _end(
        self, status: CaseStatus, is_success: bool, text: str, values: Any, **own: Any
    ) -> None:
        self.has_ended = True
        self.outcome = CaseOutcome(
            status, is_success, text, values, machine(), self._spent, **own
        )  # fmt: skip

    def set_up(self) -> None:
        """Make the task, and the simulation with its checks."""
        self.task = task_of(self.setting, self.case, self.place)
        self.criteria = self.setting.criteria or self.task.criteria
        with one_of(self.setting.cases):
            self.setup = self.task.set_up(self.setting.seconds, self.case.seed)

    def learn(self) -> None:
        """Ask the estimator about the run that it was in."""
        if self.task.options.get("estimator") is not None:
            run = self._run()
            self.later = lambda: run
            self.consistency = _consistency(self.task, run)

    def _run(self) -> SimulationResult:
        try:
            return self.later()
        except SimulationError as error:
            return error.result

    def judge(self) -> None:
        """Measure the criteria."""
        setting, run = self.setting, self.task.with_scenery(self._run())
        _compile_errors(run, setting.cases)
        values, histories = _judge(self.criteria, run, setting.samples)
        failed = [one.name for one in self.criteria if not _passes(one, values[one.name])]
        is_success = run.is_success and not failed
        keep = setting.trajectories == "all" or (
            setting.trajectories == "failed" and not is_success
        )
        self._end(
            CaseStatus(run.status.value),
            is_success,
            _first_line(run.message) if not run.is_success else ", ".join(failed),
            values,
            history=zlib.compress(histories.tobytes(), 6),
            trajectory=_saved(run) if keep else b"",
            consistency=self.consistency,
        )


def replay_case(setting: CaseSetting, case: Case) -> SimulationResult:
    """The whole run of a case; its message says why the case fails, if it does."""
    task = task_of(setting, case)
    run = _run(task, setting, case)
    criteria = setting.criteria or task.criteria
    values, _ = _judge(criteria, run, 0)
    reasons = [
        f"{one.name}: {values[one.name]:.4g} {one.unit}".rstrip() + f" ({one.range})"
        for one in criteria
        if not _passes(one, values[one.name])
    ]
    parts = [run.message] if run.message else []
    parts += [f"the case fails: {', '.join(reasons)}"] if reasons else []
    return replace(run, message="; ".join(parts))


def _run(task: Task, setting: CaseSetting, case: Case) -> SimulationResult:
    """The run, also one that something in its loop ended."""
    try:
        return task.run(seconds=setting.seconds, seed=case.seed)
    except SimulationError as error:
        return error.result


def _compile_errors(run: SimulationResult, cases: int) -> None:
    """Compile what criteria of many cases take errors with; the bits stay those of a single run."""
    minus = exactly(operation_function(run.group, "minus"))
    if not minus.is_compiled:
        prepare(minus, calls=cases * len(run.t))


def _passes(criterion: Criterion, value: float) -> bool:
    return bool(criterion.least <= value <= criterion.limit)


def _judge(
    criteria: Sequence[Criterion], run: SimulationResult, samples: int
) -> tuple[dict[str, float], np.ndarray]:
    """Values of the criteria, and their signals at equal times of the run."""
    values: dict[str, float] = {}
    rows = np.full((len(criteria), samples), np.nan, dtype=np.float32)
    times = np.linspace(0.0, run.t[-1], samples)
    for k, one in enumerate(criteria):
        try:
            values[one.name], history = one.measured(run)
        except Exception:  # of a run that ended early, which may lack what it looks at
            if run.is_success:
                raise
            values[one.name], history = float("nan"), None
        if history is not None and samples:
            rows[k] = np.interp(times, run.t, history)
    return values, rows


def _consistency(task: Task, run: SimulationResult) -> dict[str, tuple[float, int, int]]:
    """Normalised squares of errors and innovations, where there is an estimator with P."""
    estimator = task.options.get("estimator")
    P = np.asarray(getattr(estimator, "P", None), dtype=np.float64)
    if estimator is None or run.status is not RunStatus.COMPLETED or P.ndim != 2:
        return {}
    found: dict[str, tuple[float, int, int]] = {}
    error = run.estimation_error[-1]
    if P.shape == (len(error), len(error)):
        square = float(error @ np.linalg.lstsq(P, error, rcond=None)[0])
        found["nees"] = (square, len(error), 1)
    for name, (mean, dimension, count) in getattr(
        getattr(estimator, "filter", estimator), "mean_nis", {}
    ).items():
        found[name] = (mean, dimension, count)
    return found


def _saved(run: SimulationResult) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return run.save(Path(folder) / "run.npz").read_bytes()


def _first_line(text: str) -> str:
    return (text.splitlines() or [""])[0][:500]


@lru_cache(maxsize=8)
def _code(design: str, homes: tuple[str, ...]) -> str:
    """Hash of the code that this process has loaded."""
    return code_of(design, homes)


def argument_defaults(design: str) -> dict[str, Any]:
    """Arguments of a design with their defaults."""
    return {one.name: one.default for one in inspect.signature(load(design)).parameters.values()}


@lru_cache(maxsize=8)
def _arguments(design: str) -> tuple[str, ...]:
    return tuple(argument_defaults(design))


class _DesignArguments:
    """Arguments that a cache finds by their key."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.arguments, self._key = arguments, key_of(arguments)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _DesignArguments) and self._key == other._key


@lru_cache(maxsize=4)
def _nominal(design: str, given: _DesignArguments) -> Task:
    """Task of a process: made once, and compiled once."""
    return load(design)(**given.arguments)

"""Campaign: a design, what varies, what counts as success; run anywhere, stored as it goes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, unknown_name
from ..simulation import Criterion, SimulationResult, Task, Vary
from ._case import (
    WORKER,
    CaseOutcome,
    CaseSetting,
    check,
    nominal_task,
    replay_case,
    task_of,
)
from ._cluster import Cluster, is_client
from ._design import CampaignError, code_of, homes_of, refer
from ._key import key_of
from ._pool import Executor, LocalPool, drive
from ._progress import CampaignProgress
from ._result import CampaignResult
from ._sampling import Case, sample
from ._store import Store

TRAJECTORIES = ("none", "failed", "all")


@named_options
@dataclass(frozen=True)
class Campaign:
    """Many runs of a design that differ in what is varied.

    Case k has the seed ``seed + k``, so campaigns of two designs with the same variations meet the
    same starts, noises and values case by case.

    Parameters
    ----------
    design : str or callable
        A name of `lgcontrol list`, "module:function", "FILE.py:FUNCTION", or a function of a
        module or file.
    variations : sequence of Vary, optional
        Those that the design declares if left out; an empty one varies the seed alone.
    criteria : sequence of Criterion, optional
        What counts as success; the design's own if left out.
    cases : int
        Number of cases; a grid or a Saltelli scheme may have fewer.
    sampling : {"sobol", "latin", "random", "grid", "saltelli"}
        How the values are spread; `CampaignResult.sobol_indices` needs "saltelli".
    seed : int
        Of the first case, and of the sampling.
    arguments : mapping of str to value
        Of the design, the same in all cases.
    seconds : float, optional
        Simulated time, if not the design's.
    samples : int
        Of each signal that is kept for bands over time.

    Examples
    --------
    >>> masses = Vary("mass", 0.8, 1.2, relative=True)
    >>> campaign = Campaign("quadrotor-recovery", [masses], cases=3, sampling="grid")
    >>> [(case.seed, case.values) for case in campaign.all_cases()]
    [(0, {'mass': 0.8}), (1, {'mass': 1.0}), (2, {'mass': 1.2})]
    """

    design: str | Callable[..., Task]
    variations: Sequence[Vary] | None = None
    criteria: Sequence[Criterion] | None = None
    cases: int = 100
    sampling: Literal["sobol", "latin", "random", "grid", "saltelli"] = "sobol"
    seed: int = 0
    arguments: Mapping[str, Any] | None = None
    seconds: float | None = None
    samples: int = 51
    _given: str = field(init=False, repr=False, compare=False, default="")

    def __post_init__(self) -> None:
        put = object.__setattr__
        if self.cases < 1 or self.seed < 0 or self.samples < 0:
            raise ValueError(
                f"a campaign needs cases ≥ 1, seed ≥ 0 and samples ≥ 0, got {self.cases}, "
                f"{self.seed} and {self.samples}"
            )
        put(self, "design", refer(self.design))
        put(self, "arguments", dict(self.arguments or {}))
        if self.criteria is not None:
            put(self, "criteria", tuple(self.criteria))
            for one in self.criteria or ():
                _check_travels(one)
        # Of now: a replay may change the state of objects that are given.
        put(self, "_given", key_of({"arguments": self.arguments, "criteria": self.criteria}))
        if self.variations is None:
            put(self, "variations", nominal_task(self._setting("none", ())).variations)
        else:
            put(self, "variations", tuple(self.variations))
        self.all_cases()  # what makes no sense is refused now

    def run(
        self,
        *,
        executor: Executor | int | str | None = None,
        store: str | os.PathLike[str] | None = None,
        trajectories: Literal["none", "failed", "all"] = "none",
        retry: bool = False,
        progress: bool | Callable[[str], None] | None = None,
    ) -> CampaignResult:
        """Run the cases that the store does not have.

        Parameters
        ----------
        executor : optional
            Number of processes of this machine (its processors if left out); the address of a
            scheduler of ``dask.distributed``, or its client (extra ``cluster``); or anything with
            ``submit``, such as an executor of `concurrent.futures`.
        store : path-like, optional
            SQLite file, to which outcomes are written in chunks of about 0.6 s; in memory if left
            out.
        trajectories : {"none", "failed", "all"}
            Whole runs that are kept beside the store.
        retry : bool
            Whether cases that raised or whose process died run again.
        progress : bool or callable, optional
            A line with rate, time left and failures: on the terminal, or handed to a function; by
            default if standard error is a terminal.

        Returns
        -------
        CampaignResult

        Raises
        ------
        CampaignError
            If the store cannot be written to or is in use, or the executor ended. Outcomes in the
            store stay; the same call continues from there.
        KeyboardInterrupt
            After Ctrl-C; the store has what was done, and the message says how much.
        """
        if os.environ.get(WORKER):
            raise CampaignError(
                "a campaign runs when the file of its design is imported: put what starts it below "
                'if __name__ == "__main__":'
            )
        if trajectories not in TRAJECTORIES:
            raise UnknownNameError(unknown_name("trajectories", trajectories, list(TRAJECTORIES)))
        if trajectories != "none" and store is None:
            raise ValueError('trajectories are files beside a store: give store="FILE.db"')
        setting = self._setting(trajectories, self.criteria)
        check(setting)
        keys, cases = self.keys(), self.all_cases()
        archive = Store(store)
        with archive.writing():
            stored: dict[str, str] = {}  # reason of each failure, empty for a success
            for row in archive.rows(keys, "key, status, success, message"):
                if retry and row["status"] in ("error", "killed"):
                    archive.remove(row["key"])
                else:
                    stored[row["key"]] = "" if row["success"] else row["message"] or row["status"]
            left = [k for k, key in enumerate(keys) if key not in stored]
            code = code_of(setting.design, homes_of(self.criteria))
            setting = replace(setting, code=code, cases=len(left))
            shown = CampaignProgress(len(keys), list(stored.values()), progress)

            def deliver(rows: Sequence[tuple[str, Case, CaseOutcome]]) -> None:
                archive.add(setting.design, rows)
                for _, case, outcome in rows:
                    shown.tell(case, outcome)

            try:
                if left:
                    with running(executor, len(left)) as pool:
                        drive(pool, setting, [(keys[k], cases[k]) for k in left], deliver)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(_stopped(shown.done, len(keys), store)) from None
            finally:
                shown.end()
        return CampaignResult(self, archive)

    def open(self, store: str | os.PathLike[str]) -> CampaignResult:
        """What a store has of this campaign, without running or writing anything."""
        if not Path(store).is_file():
            raise ValueError(f"there is no store {store}")
        return CampaignResult(self, Store(store, reads=True))

    def replay(self, key: str | int) -> SimulationResult:
        """Run one case here and keep everything of it.

        Parameters
        ----------
        key : str or int
            Of a case, or its number.

        Returns
        -------
        SimulationResult
            Its ``message`` says which criteria fail, with their values and limits.
        """
        number = key if isinstance(key, int) else self._number(key)
        return replay_case(self._setting("none", self.criteria), self._case(number))

    def task(self, number: int) -> Task:
        """The closed loop of a case."""
        return task_of(self._setting("none", self.criteria), self._case(number))

    def all_cases(self) -> list[Case]:
        """Cases with their seeds and values."""
        return sample(self.variations or (), self.cases, self.sampling, self.seed)[0]

    @property
    def rows(self) -> int:
        """Rows of a Saltelli scheme; 0 for other samplings."""
        return sample(self.variations or (), self.cases, self.sampling, self.seed)[1]

    @property
    def criterion_names(self) -> tuple[str, ...]:
        """Names of the criteria."""
        return tuple(one.name for one in self.all_criteria())

    def all_criteria(self) -> tuple[Criterion, ...]:
        """Criteria given, or the design's."""
        if self.criteria is not None:
            return tuple(self.criteria)
        return nominal_task(self._setting("none", None)).criteria

    def keys(self) -> list[str]:
        """Names under which the outcomes of the cases are stored."""
        assert isinstance(self.design, str)
        shared = {
            "design": self.design,
            "code": code_of(self.design, homes_of(self.criteria)),
            "given": self._given,
            "relative": sorted(one.name for one in self.variations or () if one.relative),
            "seconds": self.seconds,
            "samples": self.samples,
        }
        common = key_of(shared)
        return [
            key_of({"shared": common, "seed": case.seed, "values": case.values})
            for case in self.all_cases()
        ]

    def replaced(self, **changes: Any) -> Campaign:
        """The campaign with other fields."""
        return replace(self, **changes)

    def _case(self, number: int) -> Case:
        cases = self.all_cases()
        if not 0 <= number < len(cases):
            raise ValueError(f"there is no case {number}: give one from 0 to {len(cases) - 1}")
        return cases[number]

    def _number(self, key: str) -> int:
        keys = self.keys()
        found = [k for k, one in enumerate(keys) if one.startswith(key)]
        if len(found) != 1:
            raise ValueError(
                f"{len(found)} cases of this campaign have keys that begin with {key!r}: give more "
                "of it; the code may have changed since the store was written"
            )
        return found[0]

    def _setting(self, trajectories: str, criteria: Sequence[Criterion] | None) -> CaseSetting:
        assert isinstance(self.design, str)
        return CaseSetting(
            self.design,
            dict(self.arguments or {}),
            tuple(self.variations or ()),
            None if criteria is None else tuple(criteria),
            self.seconds,
            self.samples,
            trajectories,
        )


def _stopped(done: int, count: int, store: str | os.PathLike[str] | None) -> str:
    """What a Ctrl-C leaves."""
    if store is None:
        return f"stopped after {done} of {count} cases, which are lost: store=FILE keeps them"
    if not done:
        return f"stopped before the first of {count} cases had ended: {store} has none of them"
    return f"stopped with {done} of {count} cases in {store}: the same call runs the others"


@contextmanager
def running(executor: Any, cases: int) -> Iterator[Any]:
    """What runs the cases; it ends with the block if it began here."""
    pool: Any = executor
    if executor is None or isinstance(executor, int):
        count = executor if executor is not None else os.cpu_count() or 1
        if count < 1:
            raise ValueError(f"a campaign needs one process at least, got executor={count}")
        pool = LocalPool(min(count, cases))
    elif isinstance(executor, str) or is_client(executor):
        pool = Cluster(executor)
    elif not hasattr(executor, "submit"):
        raise TypeError(
            "executor must be a number of processes, the address of a scheduler, or an object "
            f"with submit(), got {type(executor).__name__}"
        )
    try:
        yield pool
    finally:
        if pool is not executor:
            pool.stop()


def _check_travels(criterion: Criterion) -> None:
    measure = criterion.measure
    home = getattr(measure, "__module__", type(measure).__module__)
    name = getattr(measure, "__qualname__", type(measure).__qualname__)
    if home == "__main__" or "<" in name:
        raise ValueError(
            f"the measure of {criterion.name!r} must be a function or an object of a module, which "
            "other processes can import: write it to a file"
        )

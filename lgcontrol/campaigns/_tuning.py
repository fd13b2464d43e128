"""Search for arguments of a design, judged by campaigns that share their noise."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np

from ..codegen import named_options
from ..codegen._internal import UnknownNameError, check_count, unknown_name
from ..simulation import Vary
from ._campaign import Campaign, running
from ._case import argument_defaults
from ._design import CampaignError
from ._result import CampaignResult
from ._statistics import Comparison, difference_in_words, shown

FAILURES, BETTER = "failures", "better"
FAILURE_WEIGHT = 10.0  # of the share of failures next to a criterion in units of its nominal mean
PRUNING_PARTS = 4  # of the cases, after each of which a trial may be given up
HELD_OUT_SEED = 1_000_000  # what lies between the seeds of search and of judgement


@dataclass(frozen=True)
class Tuning:
    """What a search found.

    Attributes
    ----------
    best : dict of str to value
        Arguments of the design; of several objectives those of the first point of ``pareto``.
    nominal_score, best_score : float
        Of the search, by the first objective; smaller is better.
    comparison : Comparison
        Nominal with best arguments on cases that the search has not seen.
    verdict : str
        "better" or "worse" where these cases show it, else "no difference shown". The success
        decides where its 95 % interval does not hold zero, else the interval of the first
        objective.
    pareto : tuple of (arguments, scores)
        The Pareto front: trials that no other one dominates, with a score for each objective by
        name.
    trials, given_up : int
    """

    best: dict[str, Any]
    nominal_score: float
    best_score: float
    comparison: Comparison
    verdict: str
    pareto: tuple[tuple[dict[str, Any], dict[str, float]], ...]
    trials: int
    given_up: int

    @property
    def is_better(self) -> bool:
        """Whether the cases that were held out show that the best arguments are better."""
        return self.verdict == BETTER

    def __str__(self) -> str:
        cases = self.comparison
        count = cases.both + cases.only_first + cases.only_second + cases.neither
        lines = [
            f"best of {self.trials} trials ({self.given_up} given up): {_words(self.best)}; score "
            f"{self.best_score:.4g}, nominal {self.nominal_score:.4g}",
            f"{count} cases that were held out, best against nominal arguments: {self.verdict}",
            f"  success of the best minus nominal: "
            f"{difference_in_words(cases.success, percent=True)}; the best alone succeed in "
            f"{cases.only_second} cases, the nominal ones alone in {cases.only_first} "
            f"(p = {cases.p_value:.2g})",
        ]
        lines += [
            f"  {name}: {difference_in_words(one)}" for name, one in cases.differences.items()
        ]
        if len(self.pareto) > 1 and len(self.pareto[0][1]) > 1:  # of one objective: equals
            lines.append("Pareto front, the trials that no other one dominates, with their scores:")
            lines += [
                f"  {_words(arguments)}: {_words(scores)}" for arguments, scores in self.pareto
            ]
        return "\n".join(lines)


def _words(arguments: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in arguments.items()
    )


@named_options
def tune(
    campaign: Campaign,
    search: Sequence[Vary],
    *,
    minimize: str | Sequence[str] = FAILURES,
    trials: int = 50,
    held_out: int | None = None,
    executor: Any = None,
    seed: int = 0,
) -> Tuning:
    """Search for arguments of a design with which a campaign goes best (extra ``tune``).

    All trials meet the same cases, so noise does not decide between them. The design's own
    arguments are the first trial where the search reaches them: the best is never worse than they
    are on these cases. A trial that is worse
    than the median of the others after a quarter of its cases is given up. The best one and the
    design's own arguments are judged on other cases.

    Parameters
    ----------
    campaign : Campaign
        Its cases are those of each trial.
    search : sequence of Vary
        Arguments of the design, by ranges or lists. Values of a range are whole numbers if the
        argument's default is one.
    minimize : str or sequence of str
        "failures", their share; or a criterion, its mean in units of that of the nominal design,
        plus ten times the share of failures. Of several the Pareto front is searched.
    trials : int
    held_out : int, optional
        Number of cases to judge by; as many as the campaign has if left out.
    executor : optional
        See `Campaign.run`.
    seed : int
        Of the search.

    Returns
    -------
    Tuning

    Raises
    ------
    CampaignError
        If Optuna is not installed.
    """
    try:
        optuna: Any = import_module("optuna")
    except ImportError:
        raise CampaignError(
            'a search needs Optuna: install it with pip install "lgcontrol[tune]"'
        ) from None
    check_count("trials", trials)
    if held_out is not None:
        check_count("held_out", held_out)
    goals = (minimize,) if isinstance(minimize, str) else tuple(minimize)
    known = (FAILURES, *campaign.criterion_names)
    for name in goals:
        if name not in known:
            raise UnknownNameError(unknown_name("objective", name, list(known)))
    for one in search:
        if one.mean is not None or one.relative:
            raise ValueError(f"search {one.name!r} by a range or a list, absolute")
    defaults = argument_defaults(str(campaign.design))
    for one in search:
        if one.name not in defaults or one.name == "seed":
            names = [name for name in defaults if name != "seed"]
            raise UnknownNameError(unknown_name("argument of the design", one.name, names))
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    count = campaign.cases if held_out is None else held_out
    with running(executor, campaign.cases) as pool, tempfile.TemporaryDirectory() as folder:

        def outcome(arguments: dict[str, Any], **changes: Any) -> CampaignResult:
            other = campaign.replaced(arguments={**(campaign.arguments or {}), **arguments})
            store = Path(folder, "trials.db")
            return other.replaced(**changes).run(executor=pool, store=store, progress=False)

        nominal = outcome({})
        units = {name: _mean(nominal, name) for name in goals}

        def objective(trial: Any) -> Any:
            arguments = {one.name: _suggested(trial, one, defaults[one.name]) for one in search}
            for part in range(1, PRUNING_PARTS) if len(goals) == 1 else ():
                some = outcome(arguments, cases=max(part * campaign.cases // PRUNING_PARTS, 1))
                trial.report(_score(some, goals[0], units), part)
                if trial.should_prune():
                    raise optuna.TrialPruned
            found = outcome(arguments)
            scores = tuple(_score(found, name, units) for name in goals)
            return scores[0] if len(goals) == 1 else scores

        samplers = optuna.samplers
        sampler = samplers.TPESampler if len(goals) == 1 else samplers.NSGAIISampler
        study = optuna.create_study(
            directions=["minimize"] * len(goals),
            sampler=sampler(seed=seed),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=4),
        )
        own = defaults | dict(campaign.arguments or {})
        if all(_reaches(one, own[one.name]) for one in search):
            study.enqueue_trial({one.name: own[one.name] for one in search})
        study.optimize(objective, n_trials=trials)
        front = sorted(study.best_trials, key=lambda one: one.values)
        if not front:
            raise CampaignError("no trial was carried out to its end: give more trials")
        best = dict(front[0].params)
        other = {"seed": campaign.seed + HELD_OUT_SEED, "cases": count}
        first, second = outcome({}, **other), outcome(best, **other)
        comparison = first.compare(second)
    return Tuning(
        best,
        _score(nominal, goals[0], units),
        float(front[0].values[0]),
        comparison,
        verdict_of(comparison, goals[0]),
        tuple((dict(one.params), dict(zip(goals, one.values, strict=True))) for one in front),
        len(study.trials),
        sum(one.state == optuna.trial.TrialState.PRUNED for one in study.trials),
    )


def verdict_of(comparison: Comparison, objective: str) -> str:
    """What cases show of the second arguments next to the first; see `Tuning`."""
    objectives = comparison.differences.get(objective, (0.0, 0.0, 0.0))
    gain = shown(comparison.success) or -shown(objectives)
    return {1: BETTER, -1: "worse", 0: "no difference shown"}[gain]


def _reaches(one: Vary, value: Any) -> bool:
    """Whether a search may try this value."""
    if one.values or one.low is None or one.high is None:
        return value in one.values
    return isinstance(value, int | float) and one.low <= value <= one.high


def _suggested(trial: Any, one: Vary, default: Any) -> Any:
    """Value of a trial: from a list, or from a range; whole if the design's own value is."""
    if one.values:
        return trial.suggest_categorical(one.name, list(one.values))
    if isinstance(default, int) and one.low is not None and one.high is not None:
        return trial.suggest_int(one.name, ceil(one.low), floor(one.high), log=one.log)
    return trial.suggest_float(one.name, one.low, one.high, log=one.log)


def _mean(result: CampaignResult, name: str) -> float:
    """Unit of an objective: the mean of the nominal design, one where there is none."""
    if name == FAILURES:
        return 1.0
    values = result.values(name)
    mean = float(np.abs(values[np.isfinite(values)]).mean()) if np.isfinite(values).any() else 0.0
    return mean or 1.0


def _score(result: CampaignResult, name: str, units: dict[str, float]) -> float:
    failed = 1.0 - float(result.is_success.mean())
    if name == FAILURES:
        return failed
    values = result.values(name) if name in result.criterion_names else np.array([np.nan])
    values = values[np.isfinite(values)]
    mean = float(values.mean()) / units[name] if len(values) else 1.0
    return mean + FAILURE_WEIGHT * failed

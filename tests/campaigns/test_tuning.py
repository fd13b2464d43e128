"""Searches judge by cases that they have not seen, and say when they found nothing."""

import pytest

from lgcontrol.campaigns import Campaign, tune
from lgcontrol.campaigns._statistics import Comparison, paired_share
from lgcontrol.campaigns._tuning import verdict_of
from lgcontrol.cli import main
from lgcontrol.codegen._internal import unknown_name
from lgcontrol.simulation import Vary

from . import _designs as designs
from .test_campaign import Here

pytest.importorskip("optuna")
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@pytest.fixture(scope="module")
def campaign():
    return Campaign(designs.design, [Vary("load", 0.5, 1.5)], cases=12)


def test_a_weak_gain_is_found_and_the_better_one_holds_on_other_cases(campaign):
    """A gain of 0.3 leaves the cart on its way: the search begins there."""
    weak = campaign.replaced(arguments={"gain": 0.3})
    found = tune(weak, [Vary("gain", 0.1, 4.0, log=True)], trials=8, executor=Here())
    assert found.best["gain"] > 0.6 and found.best_score < found.nominal_score
    assert found.is_better and found.comparison.only_second > found.comparison.only_first
    assert found.trials == 8 and found.given_up > 0
    assert "held out, best against nominal arguments: better\n" in str(found)


def test_a_search_that_finds_nothing_says_so(campaign):
    found = tune(campaign, [Vary("gain", values=(0.1, 0.2))], trials=3, executor=Here(), held_out=6)
    assert not found.is_better and found.verdict in str(found)


@pytest.mark.parametrize("own", [{}, {"gain": 0.2}])
def test_the_own_arguments_are_the_first_trial_where_the_search_reaches_them(campaign, own):
    few = campaign.replaced(arguments=own, cases=4)
    for search in (Vary("gain", 0.1, 3.0), Vary("gain", values=(0.1, 0.2, 2.0))):
        found = tune(few, [search], minimize="effort", trials=1, executor=Here(), held_out=2)
        assert found.best == {"gain": own.get("gain", 2.0)}
        assert found.best_score == found.nominal_score


def test_searches_that_try_nothing_or_vary_what_is_no_argument_are_refused(campaign):
    gain = [Vary("gain", 0.1, 1.0)]
    for wrong in ({"trials": 0}, {"held_out": 0}):
        with pytest.raises(ValueError, match=f"{[*wrong][0]} must be a whole number, at least 1"):
            tune(campaign, gain, executor=Here(), **wrong)
    assert unknown_name("argument of the design", "gain", []) == (
        "unknown argument of the design 'gain'; there are none."
    )


def test_a_difference_that_chance_explains_is_not_called_better():
    """Five against two of sixty cases (p = 0.45) show nothing; the objective may still decide."""

    def tuned(success, effort):
        verdict = verdict_of(Comparison(50, 2, 5, 3, 0.45, success, {"effort": effort}), "effort")
        return verdict, Comparison(50, 2, 5, 3, 0.45, success, {"effort": effort})

    success = paired_share(2, 5, 60)
    assert success[0] == pytest.approx(0.05) and success[1] < 0 < success[2]
    none, comparison = tuned(success, (-1.0, -3.0, 1.0))
    assert none == "no difference shown"
    assert str(comparison).count("no difference shown") == 2
    assert tuned(success, (-1.0, -1.5, -0.5))[0] == "better"
    assert tuned(success, (1.0, 0.5, 1.5))[0] == "worse"
    assert tuned((0.2, 0.1, 0.3), (1.0, 0.5, 1.5))[0] == "better"  # success decides first
    assert tuned((-0.2, -0.3, -0.1), (-1.0, -1.5, -0.5))[0] == "worse"


def test_two_objectives_give_a_front(campaign):
    found = tune(
        campaign, [Vary("gain", 0.5, 4.0)], minimize=("effort", "place at the end"), trials=8,
        executor=Here(), held_out=4,
    )  # fmt: skip
    assert all(list(point) == ["effort", "place at the end"] for _, point in found.pareto)
    scores = [tuple(point.values()) for _, point in found.pareto]
    assert len(scores) > 1
    assert scores == sorted(scores) and [b for _, b in scores] == sorted(
        (b for _, b in scores), reverse=True
    )
    assert "Pareto front" in str(found)
    assert f": effort = {scores[0][0]:.4g}, place at the end = {scores[0][1]:.4g}" in str(found)


def test_arguments_that_are_whole_numbers_stay_whole():
    stepped = Campaign(designs.stepped, [Vary("load", 0.5, 1.5)], cases=2)
    found = tune(stepped, [Vary("steps", 1, 6)], trials=3, executor=Here(), minimize="effort")
    assert isinstance(found.best["steps"], int)


@pytest.mark.parametrize(
    ("gains", "status"), [pytest.param("2.0,0.1", 0, marks=pytest.mark.thorough), ("0.1,0.2", 1)]
)
def test_the_command_says_what_it_found(gains, status, capsys):
    """To show nothing better is no failure, but to find what succeeds nowhere is."""
    words = ["tune", f"{designs.__file__}:design", "--vary", "load=0.5:1.5", "--cases", "2",
             "--search", f"gain={gains}", "--trials", "1", "--executor", "1"]  # fmt: skip
    assert main(words) == status
    told = capsys.readouterr().out
    assert "against nominal arguments: no difference shown" in told
    assert "success of the best minus nominal: " in told
    assert main([*words, "--minimize", "speed"]) == 2
    assert "unknown objective 'speed'" in capsys.readouterr().err


def test_objectives_and_searches_are_looked_at(campaign):
    with pytest.raises(ValueError, match="unknown objective 'speed'; valid names are failures"):
        tune(campaign, [Vary("gain", 1, 2)], minimize="speed")
    with pytest.raises(ValueError, match="unknown argument of the design 'gian'; valid names are"):
        tune(campaign, [Vary("gian", 1, 2)])
    with pytest.raises(ValueError, match="search 'gain' by a range or a list, absolute"):
        tune(campaign, [Vary("gain", mean=1, std=2)])

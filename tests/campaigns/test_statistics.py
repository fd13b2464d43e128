"""What campaigns tell, against numbers that are known."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.campaigns import Campaign, attraction_level
from lgcontrol.campaigns._sampling import sample
from lgcontrol.campaigns._statistics import mcnemar, paired_share, share, shown, sobol_indices
from lgcontrol.controllers import LQR
from lgcontrol.groups import SO2, Product, Rn
from lgcontrol.simulation import Vary, simulate
from lgcontrol.systems import Input, System

from . import _designs as designs
from .test_campaign import Here

PAIR = [Vary("load", 0.5, 3.0, unit="kg"), Vary("input.wind", -0.5, 0.5, unit="N")]


@pytest.fixture(scope="module")
def result():
    return Campaign(designs.design, PAIR, cases=64).run(executor=Here())


@pytest.mark.parametrize(("method", "low", "high"), [
    ("wilson", 0.7224598, 0.9488257), ("clopper-pearson", 0.6828871, 0.9657381),
])  # fmt: skip
def test_intervals_of_shares_are_the_published_ones(method, low, high):
    """26 of 30: Wilson (1927) and Clopper and Pearson (1934), from their formulas."""
    from scipy.stats import beta

    found = share(26, 30, method=method)
    if method == "wilson":
        z, p, n = 1.959963984540054, 26 / 30, 30
        middle, root = p + z**2 / 2 / n, z * np.sqrt(p * (1 - p) / n + z**2 / 4 / n**2)
        ends = (middle - root) / (1 + z**2 / n), (middle + root) / (1 + z**2 / n)
    else:
        ends = beta.ppf(0.025, 26, 5), beta.ppf(0.975, 27, 4)
    assert (found.low, found.high) == pytest.approx(ends, abs=1e-9)


def test_no_failure_is_no_certainty():
    assert share(100, 100).low == pytest.approx(0.9630, abs=1e-4)
    assert share(0, 0).low == 0.0 and share(0, 0).high == 1.0


def test_sobol_indices_are_those_of_a_known_function():
    """``y = x1 + 2 x2 + x1 x3`` of uniform numbers from -1 to 1: V = 1/3 + 4/3 + 1/9."""
    names, rows = ("a", "b", "c"), 4096
    variations = [Vary(name, -1.0, 1.0) for name in names]
    cases, found_rows = sample(variations, 5 * rows, "saltelli", 0)
    assert found_rows == rows and len(cases) == 5 * rows
    assert [case.seed for case in cases[::rows]] == [0] * 5  # rows share their noise
    x = np.array([list(case.values.values()) for case in cases]).T
    found = sobol_indices(x[0] + 2 * x[1] + x[0] * x[2], rows, names)
    whole = 1 / 3 + 4 / 3 + 1 / 9
    first = [found[name].first for name in names]
    total = [found[name].total for name in names]
    np.testing.assert_allclose(first, np.array([1 / 3, 4 / 3, 0]) / whole, atol=0.02)
    np.testing.assert_allclose(total, np.array([4 / 9, 4 / 3, 1 / 9]) / whole, atol=0.02)
    assert found["c"].first_std < 0.05


@pytest.mark.parametrize("sampling", ["sobol", "latin", "random", "grid"])
def test_samplings_are_repeated_and_fill_the_ranges(sampling):
    first, second = (sample(PAIR, 64, sampling, 3)[0] for _ in range(2))
    assert first == second and len(first) == 64
    values = np.array([list(case.values.values()) for case in first])
    low, high = np.array([0.5, -0.5]), np.array([3.0, 0.5])
    assert (values >= low).all() and (values <= high).all()
    shares = (values - low) / (high - low)
    filled = {tuple(cell) for cell in np.minimum(shares * 4, 3).astype(int).tolist()}
    assert len(filled) == (16 if sampling != "random" else len(filled))
    assert sample(PAIR, 64, "sobol", 4)[0] != sample(PAIR, 64, "sobol", 3)[0]


def test_seeds_may_be_the_same_in_all_cases():
    cases, _ = sample([*PAIR, Vary("seed", values=(7,))], 5, "sobol", 0)
    assert {case.seed for case in cases} == {7} and "seed" not in cases[0].values


def test_success_quantiles_and_worst_cases_agree_with_the_values(result):
    values = result.values("place at the end")
    assert result.success().passed == int((values <= 0.25).sum())
    assert result.failures() == {"place at the end": int((values > 0.25).sum())}
    assert result.quantiles("place at the end", [0.5])[0] == np.median(values)
    worst = result.worst("place at the end", count=3)
    assert [one.values["place at the end"] for one in worst] == sorted(values)[:-4:-1]
    assert result.worst(count=1)[0].number == worst[0].number
    with pytest.raises(ValueError, match="unknown criterion 'speed'"):
        result.quantiles("speed")


def test_a_heavier_load_takes_more_effort(result):
    size, p = result.sensitivity()["effort"]["load"]
    assert size > 0.4 and p < 0.01


def test_within_the_margin_every_case_succeeds(result):
    margin, beyond = result.margin()
    assert beyond is not None and 0 < margin < 1
    deviation = np.max([np.abs([v.deviation(one.inputs[v.name]) for v in PAIR])
                        for one in result.cases], axis=1)  # fmt: skip
    assert result.is_success[deviation < margin].all()
    assert deviation[beyond.number] == margin and not beyond.is_success


def test_bands_are_quantiles_of_the_signals(result):
    t, (low, middle, high) = result.bands("place at the end")
    assert t.tolist() == np.linspace(0, 1, 51).tolist() and (low <= middle).all()
    ends = result.values("place at the end")
    assert middle[-1] == pytest.approx(np.median(ends), rel=1e-6)
    with pytest.raises(ValueError, match="'effort' is no signal"):
        result.bands("effort")


def test_regions_count_their_cases(result):
    across, along, good, count = result.region("load", "input.wind", bins=4)
    assert count.sum() == 64 and len(across) == len(along) == 5
    assert np.nansum(good * count) == result.is_success.sum()


def test_two_controllers_are_compared_case_by_case(result):
    stiff = result.campaign.replaced(arguments={"gain": 3.0}).run(executor=Here())
    found = result.compare(stiff)
    both = result.is_success & stiff.is_success
    assert found.both == both.sum() and found.both + found.only_first == result.is_success.sum()
    mean, low, high = found.differences["effort"]
    difference = stiff.values("effort") - result.values("effort")
    assert mean == pytest.approx(difference.mean()) and low < mean < high
    assert mcnemar(0, 10) == pytest.approx(2 / 1024)
    light, heavy = (
        Campaign(designs.design, [PAIR[1], Vary("load", values=(m,))], cases=8).run(executor=Here())
        for m in (1.0, 3.0)
    )
    assert light.compare(heavy).differences["effort"][0] > 0  # what is stated otherwise may differ
    with pytest.raises(ValueError, match="case 0 differs between the campaigns"):
        result.compare(result.campaign.replaced(seed=1).run(executor=Here()))


def test_a_right_filter_is_in_its_bands_and_a_proud_one_is_not():
    found = Campaign(designs.estimating, (), cases=40).run(executor=Here())
    for mean, low, high in found.consistency().values():
        assert low < mean < high
    proud = Campaign(designs.estimating, [Vary("noise", values=(3.0,))], cases=10)
    mean, low, high = proud.run(executor=Here()).consistency()["gps"]
    assert mean > high


def test_a_saltelli_scheme_explains_the_variance():
    campaign = Campaign(designs.design, PAIR, cases=256, sampling="saltelli")
    found = campaign.run(executor=Here())
    indices = found.sobol_indices("place at the end")
    assert set(indices) == {"load", "input.wind"}
    assert 0.5 < sum(one.total for one in indices.values()) < 2.0
    assert f"Sobol' indices of place at the end: load {indices['load'].first:.2f}" in str(found)
    with pytest.raises(ValueError, match="need the cases of a Saltelli scheme"):
        campaign.replaced(sampling="sobol", cases=2).run(executor=Here()).sobol_indices("effort")


def test_a_pendulum_comes_back_from_the_level_set_and_not_from_far_beyond():
    """Torque of 0.5 holds up to sin θ = 0.5; random starts at the level, by whole simulations."""
    pendulum = System(
        "pendulum", Product(angle=SO2, rate=Rn(1, units="rad/s")),
        lambda t, x, u, p: ca.vertcat(x[2], u[0] + x[1]),
        inputs=[Input("torque", "N m", -0.5, 0.5)],
    )  # fmt: skip
    law = LQR(pendulum, [1.0, 0.0, 0.0], Q=1.0, R=0.1, dt=0.05)
    found = attraction_level(law, directions=200)
    assert found.limiting is not None and not found.contains(found.limiting)
    assert 1 - (1 - found.share) ** 200 == pytest.approx(0.95)
    rng, root = np.random.default_rng(1), np.linalg.inv(np.linalg.cholesky(found.P).T)
    for way in rng.normal(size=(6, 2)):
        error = np.sqrt(found.level) * root @ (way / np.linalg.norm(way))
        assert found.contains(0.999 * error) and abs(error[0]) < np.arcsin(0.5)
        for factor, comes_back in ((0.999, True), (20.0, False)):
            x0 = pendulum.retract(law.regulator.x, factor * error)
            run = simulate(pendulum, law, x0=x0, seconds=8.0)
            assert bool(np.abs(run.error[-1]).max() < 0.05) is comes_back


def test_the_interval_of_paired_success_agrees_with_mcnemars_test():
    """It leaves zero out exactly where the exact test has p ≤ 0.05, and holds the mean."""
    sides = set()
    for first in range(12):
        for second in range(12):
            mean, low, high = paired_share(first, second, 40)
            assert low <= mean <= high and mean == pytest.approx((second - first) / 40)
            assert (low > 0 or high < 0) == (mcnemar(first, second) <= 0.05)
            assert paired_share(second, first, 40) == pytest.approx((-mean, -high, -low))
            sides.add(shown((mean, low, high)))
    assert sides == {-1, 0, 1}
    assert paired_share(0, 0, 40)[2] == pytest.approx(1 - 0.025 ** (1 / 40))  # none of 40 differs

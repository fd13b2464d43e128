"""Limits of quantities by name: trim keeps them, bounds name them, runs say where they fail."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Product, Rn
from lgcontrol.optimal import Bound, OptimalControlProblem, _rows
from lgcontrol.simulation import SimulationResult, simulate
from lgcontrol.systems import Quantity, System, TrimError, check_system


def two_masses(limits=None, of=None):
    """Two carts between walls with a spring from one to the other; the first is pushed."""

    def f(t, x, u, p):
        force = 4.0 * (x[0] - x[1])
        return ca.vertcat(x[2], x[3], u[0] - force - x[2], force - 2.0 * x[1] - x[3])

    def stretch(t, x, u, p):
        return ca.vertcat(x[0] - x[1], u[0])

    return System(
        "carts",
        Product(position=Rn(2), speed=Rn(2)),
        f,
        inputs=["push"],
        quantities={"stretch": of or Quantity(stretch, ("spring", "hand"), "m")},
        limits=limits,
    )


def test_names_of_entries():
    assert two_masses().quantity_names == ("stretch.spring", "stretch.hand")
    assert two_masses(of=lambda t, x, u, p: x[:2]).quantity_names == ("stretch.0", "stretch.1")
    assert two_masses(of=lambda t, x, u, p: x[0]).quantity_names == ("stretch",)
    with pytest.raises(ValueError, match="has 2 rows and names for 1: left"):
        _ = two_masses(of=Quantity(lambda t, x, u, p: x[:2], ("left",))).quantity_names


def test_wrong_names_and_limits_are_refused():
    with pytest.raises(KeyError, match="stretch.spring"):
        two_masses({"stretch.sprin": (-1, 1)})
    with pytest.raises(ValueError, match="not an interval"):
        two_masses({"stretch.spring": (1, -1)})
    for wrong in (5.0, None, (0, 1, 2), ("a", 1)):
        with pytest.raises(ValueError, match="stretch.spring' must be a pair of numbers"):
            two_masses({"stretch.spring": wrong})
    with pytest.raises(ValueError, match="entries must differ"):
        _ = two_masses(of=Quantity(lambda t, x, u, p: x[:2], ("left", "left"))).quantity_names
    with pytest.raises(ValueError, match="position.*rename one"):
        System(
            "cart",
            Product(position=Rn(1)),
            lambda t, x, u, p: x,
            quantities={"position": Quantity(lambda t, x, u, p: x)},
            limits={"position": (0, 1)},
        )


def test_copies_and_augmented_systems_keep_them():
    system = two_masses({"stretch.spring": (-0.1, 0.2), "speed.x0": (-1, 1)})
    check_system(system)
    for other in (system.with_parameters({}), system.augment(lag=0.1)):
        assert other.limits == system.limits
        assert other.limited_quantities.units == ("m",)
    x = np.array([0.5, 0.1, 0, 0, 0.3])
    values = system.augment(lag=0.1).limited_quantities.function(0.0, x, [0.0], {})
    np.testing.assert_allclose(values, [0.4])


def test_trim_keeps_them():
    """At rest the spring is stretched by half of the second cart's way."""
    free = two_masses().trim(where={"position.x1": 1.0})
    np.testing.assert_allclose(free.x[:2], [1.5, 1.0], atol=1e-9)
    system = two_masses({"stretch.spring": (-0.1, 0.2)})
    with pytest.warns(RuntimeWarning, match="beyond the limits of stretch.spring"):
        guess = system.trim(np.array([3.0, 1.5, 0, 0]))
    np.testing.assert_allclose(guess.x[:2], [0.6, 0.4], atol=1e-6)
    with pytest.raises(
        TrimError, match=r"stretch.spring \(0.5 is outside \[-0.1, 0.2\]\)"
    ) as error:
        system.trim(where={"position.x1": 1.0})
    assert error.value.status == "limits"


def test_bounds_name_them():
    system = two_masses({"stretch.spring": (-0.1, 0.2)})
    plain = OptimalControlProblem(system, 5, 0.1)
    assert plain.ignored_limits == ("stretch.spring",)
    bound = OptimalControlProblem(system, 5, 0.1, bounds=[Bound("stretch.spring")])
    assert bound.ignored_limits == ()
    x = np.array([[0.5, 0.1, 0, 0]])
    values, lower, upper = bound.bounded(np.zeros(1), x, np.zeros((1, 1)))["stretch.spring"]
    assert (values[0].round(12), lower, upper) == (0.4, -0.1, 0.2)
    both = OptimalControlProblem(system, 5, 0.1, bounds=[Bound("stretch", -0.3, [0.1, 2.0])])
    assert both.bounded(np.zeros(1), x, np.zeros((1, 1)))["stretch.hand"][2] == 2.0
    with pytest.raises(ValueError, match="knows no limits of stretch.hand"):
        OptimalControlProblem(system, 5, 0.1, bounds=[Bound("stretch")])
    with pytest.raises(ValueError, match="stretch.spring"):
        wrong = OptimalControlProblem(system, 5, 0.1, bounds=[Bound("stretc", upper=1.0)])
        wrong.bounded(np.zeros(1), x, np.zeros((1, 1)))


def test_runs_record_them(tmp_path):
    system = two_masses({"stretch.spring": (-0.1, 0.2)})
    with pytest.warns(RuntimeWarning, match="x0 is beyond the limits of stretch.spring: 0.5"):
        run = simulate(system, lambda t, x, r: [0.0], x0=[0.5, 0, 0, 0], seconds=0.2, dt=0.1)
    assert run.beyond_limits()["stretch.spring"] == pytest.approx(0.3)
    text = "beyond the limits of stretch.spring from 0 s on, by up to 0.3 m: 0.5, allowed"
    assert text in str(run)
    np.testing.assert_allclose(run.limited["stretch.spring"].values, run.x[:, 0] - run.x[:, 1])
    again = SimulationResult.load(run.save(tmp_path / "run.npz"))
    assert again.beyond_limits() == run.beyond_limits() and "0.3 m" in str(again)
    titles = [ax.get_title(loc="left") or ax.get_title() for ax in run.plot().axes]
    assert any("stretch" in title for title in titles)


def test_what_records_show_of_bounds_is_traced_once(monkeypatch) -> None:
    """Records of many runs ask one problem; copies by pickle and values are the same."""
    cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["push"])
    bounds = [Bound("push", upper=2.0), Bound(lambda t, x, u, p: x * u, lower=-1.0, name="power")]
    problem = OptimalControlProblem(cart, 5, 0.1, bounds=bounds)
    given = np.array([0.0, 0.1]), np.array([[1.0], [2.0]]), np.ones((1, 1))
    first = problem.bounded(*given)
    assert first["power"][0].tolist() == [1.0, 2.0] and first["push"][2] == 2.0
    copied = pickle.loads(pickle.dumps(problem))
    made = []
    monkeypatch.setattr(_rows, "expression_of", lambda *given: made.append(given))
    again = problem.bounded(given[0], 2 * given[1], given[2])
    assert not made and again["power"][0].tolist() == [2.0, 4.0]
    monkeypatch.undo()
    assert copied.bounded(*given)["power"][0].tolist() == [1.0, 2.0]
    problem.obstacles["mine"] = None
    assert not problem.obstacles

"""Robustness of a task: what its factors mean, and where the search ends."""

import dataclasses

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import Rn
from lgcontrol.models import five_bar_tree, panda, quadrotor, rover, underwater_vehicle
from lgcontrol.simulation import Criterion, Task, robustness, scaled_inertia
from lgcontrol.systems import Input, System, Waypoints


def cart() -> System:
    return System(
        "cart", Rn(2), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=[Input("push", "N", -9, 9)]
    )


class PD:
    """Feedback with a margin that is known."""

    dt, offset, delay = 0.05, 0.0, 0.0

    def reset(self) -> None:
        pass

    def __call__(self, t, x, reference=None):
        return np.array([-4.0 * x[0] - 4.0 * x[1]])


def task(limit: float, **more) -> Task:
    criteria = (Criterion("end", lambda run: abs(run.x[-1, 0]), limit, "m"),)
    return Task(cart(), PD(), np.array([1.0, 0.0]), 3.0, criteria=criteria, **more)


def test_a_body_of_twice_the_mass_is_one_with_half_the_effect(rng):
    """Against the model made with those numbers."""
    light, heavy = quadrotor(), quadrotor(mass=2 * 0.716, inertia=(0.014, 0.014, 0.024))
    x = light.state.random(rng)
    u = np.r_[rng.uniform(0, 6, 4), np.zeros(6)]
    np.testing.assert_allclose(
        scaled_inertia(light, 2.0).f(0.0, x, u), heavy.f(0.0, x, u), atol=1e-12
    )


@pytest.mark.thorough
def test_a_linkage_of_twice_the_mass_is_one_with_half_the_effect(rng):
    """Against the five-bar made with those numbers; its constraints and errors stay."""
    light, heavy = (
        five_bar_tree(masses=masses).system(["left", "right"])
        for masses in ((0.6, 0.4), (1.2, 0.8))
    )
    made, u = scaled_inertia(light, 2.0), np.array([1.0, -2.0])
    x = light.retract(light.home, 0.1 * rng.normal(size=light.n_errors))
    assert np.abs(x[4:]).max() > 0.01
    np.testing.assert_allclose(made.f(0.0, x, u), heavy.f(0.0, x, u), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(made.project(x), x, atol=1e-9)
    assert made.error_names == light.error_names


def test_limits_of_the_state_stay_those_of_quantities_do_not():
    plant = System(
        "cart", Rn(2, ("x", "v")), lambda t, x, u, p: ca.vertcat(x[1], u), inputs=["push"],
        quantities={"power": lambda t, x, u, p: u * x[1]}, limits={"v": (-1, 1), "power": (-2, 2)},
    )  # fmt: skip
    made = scaled_inertia(plant, 2.0)
    assert made.limits == {"v": (-1, 1)} and not made.quantities


def test_factors_are_values_of_parameters_of_one_plant():
    """The masses and drags that runs had: nothing is made again for other ones."""
    used = []

    def value(run):
        used.append(run.settings["p"])
        return 0.0

    found = robustness(dataclasses.replace(task(1.0), criteria=(Criterion("none", value, 1.0),)))
    assert found.factor == 4.0 and used[0] == []
    wanted = [[1 + sign * 0.2 * k, 1 + k] for k in (0.5, 1, 2, 4) for sign in (1, -1)]
    np.testing.assert_allclose(used[1:], wanted)


@pytest.mark.parametrize("flow", [0.0, 0.3])
def test_twice_the_drag_is_the_drag_of_twice_the_coefficients(rng, flow):
    """Against the vehicle made with those numbers, in water that rests or flows."""
    linear, quadratic = (13.7, 0.0, 33.0, 0.0, 0.8, 0.0), (141.0, 217.0, 190.0, 1.19, 0.47, 1.5)
    own = underwater_vehicle(linear_drag=linear, quadratic_drag=quadratic)
    much = underwater_vehicle(
        linear_drag=2 * np.array(linear), quadratic_drag=2 * np.array(quadratic)
    )
    x = own.state.random(rng)
    u = np.r_[rng.uniform(-10, 10, 8), rng.normal(size=6), flow * rng.normal(size=3)]
    np.testing.assert_allclose(
        scaled_inertia(own, 1.0, drag=2.0).f(0.0, x, u), much.f(0.0, x, u), rtol=1e-9
    )
    assert np.abs(much.f(0.0, x, u) - own.f(0.0, x, u)).max() > 0.1


def test_friction_of_joints_is_drag(rng):
    """What twice the viscous friction of the Panda takes from its accelerations."""
    arm, free = panda(), panda(losses=False)
    x, u = arm.state.random(rng), rng.normal(size=7)
    lost = arm.f(0.0, x, u) - free.f(0.0, x, u)
    np.testing.assert_allclose(
        scaled_inertia(arm, 1.0, drag=2.0).f(0.0, x, u) - arm.f(0.0, x, u), lost, atol=1e-8
    )


def test_the_search_ends_between_what_passes_and_what_fails():
    """All lines are told; the limiting criterion is named; a wider limit allows more."""
    lines = []
    narrow = robustness(task(0.05), progress=lines.append)
    wide = robustness(task(0.3))
    assert 0 < narrow.factor < wide.factor
    assert narrow.limiting[1:] == ("end",)
    assert lines[0].startswith("at most 15 runs") and lines[1].startswith("run 1 took ")
    assert lines[2] == "factor 0: all criteria hold" and max(narrow.runs, wide.runs) <= 15
    assert any("heavier" in line or "lighter" in line for line in lines)


def test_what_fails_unperturbed_has_no_factor():
    found = robustness(task(-1.0))
    assert np.isnan(found.factor) and found.limiting == ("nothing perturbed", "end")


def test_an_interrupted_search_finds_nothing():
    """Ctrl-C in a run is no limit of the plant: the search does not go on to some factor."""
    asked = []

    def perturbed(share, factor):
        asked.append(factor)
        return cart(), {}

    class Interrupted(PD):
        def __call__(self, t, x, reference=None):
            if asked:
                raise KeyboardInterrupt
            return super().__call__(t, x, reference)

    halted = dataclasses.replace(task(1e9, perturbed=perturbed), controller=Interrupted())
    with pytest.raises(KeyboardInterrupt):
        robustness(halted)
    assert asked == [0.5]


def test_perturbations_of_its_own_are_what_is_tried():
    asked = []

    def perturbed(share, factor):
        asked.append((share, factor))
        return cart(), {}

    assert robustness(task(1e9, perturbed=perturbed)).factor == 4.0
    assert asked[:2] == [(pytest.approx(0.1), 0.5), (pytest.approx(-0.1), 0.5)]


def test_a_late_controller_still_says_where_states_should_be():
    """Perturbed runs are judged against the same reference, which only the controller knows."""
    seen = []

    class Knowing(PD):
        def __init__(self, system):
            self.system = system

        def reference_states(self, t, reference):
            return np.tile([0.25, 0.0], (len(t), 1))

    def value(run):
        seen.append(run.reference)
        return 0.0

    goal = Waypoints(Rn(1), [0.0, 3.0], [[0.25], [0.25]])
    given = task(1.0, perturbed=lambda share, factor: (cart(), {}), reference=goal)
    given = dataclasses.replace(
        given, controller=Knowing(given.plant), criteria=(Criterion("none", value, 1.0),)
    )
    robustness(given)
    assert len(seen) == 9 and all((x == [0.25, 0.0]).all() for x in seen)


@pytest.mark.parametrize("factor", [1.0, -1.0, 0.5])
def test_the_factor_is_a_variation_like_the_others(factor):
    """Mass by a fifth, drag twice, one sample late, in the words of `Vary`."""
    base = task(1.0)
    words = {"mass": 1 + 0.2 * factor, "drag": 1 + abs(factor), "delay": abs(factor) * PD.dt}
    run, same = base.varied({"perturb": factor}).run(), base.varied(words).run()
    np.testing.assert_array_equal(run.x, same.x)
    assert run.settings["p"] == same.settings["p"] == [1 + 0.2 * factor, 1 + abs(factor)]
    heavier = base.varied({"perturb": factor, "mass": 1.5, "delay": 0.1})
    assert heavier.run().settings["p"] == [1.5 * (1 + 0.2 * factor), 1 + abs(factor)]
    assert heavier.controller.delay == pytest.approx(0.1 + abs(factor) * PD.dt)


def test_a_perturbed_plant_with_a_parameter_called_mass_keeps_its_value_and_is_heavier():
    """The rover's own "mass" is in kg; the factor scales it with everything else."""
    base = dataclasses.replace(task(1.0), plant=rover(), x0=rover().home)
    nominal = base.plant.nominal_parameters[base.plant.parameter_names.index("mass")]
    for values, mass in (({}, nominal), ({"mass": 20.0}, 20.0)):
        p = base.varied(values | {"perturb": 1.0}).options["p"]
        assert p["mass"] == mass and (p["times_inertia"], p["times_drag"]) == (1.2, 2.0)
    heavier = base.varied({"perturb": 1.0})
    p = [heavier.options["p"][name] for name in heavier.plant.parameter_names]
    x, u = base.x0, np.array([3.0, 5.0])
    driven = base.plant.f(0.0, x, u) - base.plant.f(0.0, x, 0 * u)
    np.testing.assert_allclose(heavier.plant.f(0.0, x, u, p), driven / 1.2, atol=1e-12)
    relative = base.varied({"perturb": 1.0, "mass": 1.5}, ("mass",)).options["p"]
    assert relative["mass"] == 1.5 * nominal and relative["times_inertia"] == 1.2


def test_a_factor_without_masses_or_with_a_nominal_value_is_refused():
    with pytest.raises(ValueError, match=r"'perturb' = -5 leaves 0 of the masses: .* least -4.5"):
        task(1.0).varied({"perturb": -5.0})
    with pytest.raises(ValueError, match="'perturb' has no nominal value"):
        task(1.0).varied({"perturb": 1.0}, ("perturb",))

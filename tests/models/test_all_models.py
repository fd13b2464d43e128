"""What every model must be: registered, consistent, controllable where it is meant to be."""

import inspect
import pickle
from importlib.metadata import entry_points

import numpy as np
import pytest

import lgcontrol.models as models
from lgcontrol.systems import System, check_system

REGISTERED = {entry.name: entry for entry in entry_points(group="lgcontrol.models")}
FACTORIES = {
    name: value
    for name, value in vars(models).items()
    if inspect.isfunction(value) and not name.endswith(("_tree", "_mechanism", "__"))
}

# Every variant that a keyword makes, next to the plain call.
VARIANTS = [
    *((name, {}) for name in FACTORIES),
    ("quadrotor", {"layout": "x", "mass": 1.0, "inertia": (0.01, 0.01, 0.02)}),
    ("quadrotor", {"drag": (0.1, 0.1, 0.2, 0.01, 0.01, 0.01)}),
    ("satellite", {"wheels": True}),
    ("underwater_vehicle", {"current": (0.3, -0.1, 0.05)}),
    ("rover", {"kinematic": True}),
    ("rover", {"payload": 20.0}),
    ("heavy_top", {"torques": True}),
    ("heavy_top", {"gravity": (0.0, 0.0, 0.0)}),
]
IDS = [f"{name}-{'-'.join(map(str, options))}".strip("-") for name, options in VARIANTS]


# The smaller ones of their kind run by default: closed mechanisms, arms with and without springs;
# arms on a floating base are no smaller than these two, and `test_arms` goes into them.
LARGE = (
    "delta_robot", "elastic_panda", "elastic_space_arm", "elastic_ur5", "five_bar", "panda",
    "space_arm", "stewart_platform", "two_arms", "underwater_vehicle_arm", "ur5",
)  # fmt: skip
PARAMETERS = [
    pytest.param((name, options), marks=[pytest.mark.thorough] if name in LARGE else [], id=label)
    for (name, options), label in zip(VARIANTS, IDS, strict=True)
]


@pytest.fixture(scope="module", params=PARAMETERS)
def model(request) -> System:
    name, options = request.param
    return FACTORIES[name](**options)


def test_every_model_is_registered_under_its_name():
    assert set(REGISTERED) == set(FACTORIES)
    for name, entry in REGISTERED.items():
        assert entry.load() is FACTORIES[name]


def test_is_a_consistent_system(model):
    check_system(model)


def test_pickles(model, rng):
    copy = pickle.loads(pickle.dumps(model))
    x = model.state.random(rng)
    assert (copy.f(0.0, x) == model.f(0.0, x)).all()


def test_signals_have_units_and_descriptions(model):
    assert all(entry.unit for entry in model.inputs)
    assert model.name.replace("kinematic_", "") in FACTORIES
    control = [entry for entry in model.inputs if entry.role == "control"]
    assert all(np.isfinite([entry.lower, entry.upper]).all() for entry in control) or (
        model.name == "heavy_top"
    )


@pytest.mark.parametrize("name", sorted(FACTORIES))
def test_options_are_keywords_and_come_with_nominal_values(name):
    for parameter in inspect.signature(FACTORIES[name]).parameters.values():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert parameter.default is not parameter.empty


@pytest.mark.parametrize(
    ("name", "coefficient"),
    [
        ("quadrotor", "mass"),
        ("satellite", "inertia.xx"),
        ("underwater_vehicle", "linear_drag.damping.x.x"),
        ("surface_vessel", "drag.N.r"),
        ("pick_and_place_head", "mass"),
        ("heavy_top", "center_of_mass.x"),
        ("free_box", "inertia.zz"),
    ],
)
def test_coefficients_can_stay_symbolic(name, coefficient, rng):
    fixed, free = FACTORIES[name](), FACTORIES[name](symbolic=(coefficient,))
    assert free.parameter_names == (coefficient,)
    x, u = fixed.state.random(rng), rng.uniform(-1, 1, fixed.n_inputs)
    np.testing.assert_allclose(free.f(0.0, x, u), fixed.f(0.0, x, u), rtol=1e-12, atol=1e-12)
    changed = free.f(0.0, x, u, 1.5 * free.nominal_parameters)
    assert np.abs(changed - fixed.f(0.0, x, u)).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("quadrotor", {}),
        ("quadrotor", {"layout": "x"}),
        ("satellite", {}),
        ("underwater_vehicle", {}),
        ("surface_vessel", {}),
        ("pick_and_place_head", {}),
        ("heavy_top", {"torques": True}),
    ],
)
def test_is_controllable_at_rest(name, options):
    model = FACTORIES[name](**options)
    lin = model.linearize(model.trim())
    assert lin.kind == "equilibrium"
    assert lin.controllability().is_controllable


def test_rest_of_the_underwater_vehicle_needs_its_thrusters():
    """It is heavier than the water it displaces, so the trimmed thrusts carry the difference."""
    trim = models.underwater_vehicle().trim()
    lift = trim.u[4:8].sum()
    assert lift == pytest.approx((13.5 - 13.4) * 9.81, rel=1e-9)

"""Inverse dynamics by recursion in every representation, and what it costs."""

import json

import numpy as np
import pytest

from lgcontrol.mechanics import Multibody, SpatialInertia
from tests.benchmarks.representations import (
    ARMS,
    DEFAULT,
    KINDS,
    REFERENCES,
    RESULTS,
    instructions,
)

from . import zoo
from .make_reference import MODELS, OWN
from .reference import load, order, tree_of
from .test_reference import SYNTHETIC
from .test_robots import FILES, robot

pytestmark = pytest.mark.usually(kind=zoo.FEW)

EXACT = 1e-12  # rounding of sums of some thousand products, relative to the largest force
STANDING = ("ur5_robot", "z1")  # their root link is the world


def trees():
    rng = np.random.default_rng(67)
    made = {kind: zoo.pair(kind, rng) for kind in zoo.JOINTS}
    return made | {"branched": zoo.branched(rng), "driven": zoo.driven(rng)}


TREES = trees()


def error(ours, theirs):
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / np.abs(theirs).max()


def check_tree(tree, rng, *, with_wrenches):
    q, v, a, _, wrenches = zoo.state(tree, rng, (3,))
    for given in ((q, v, a), (q, v, a, wrenches))[: 1 + with_wrenches]:
        wanted = tree.inverse_dynamics(*given)
        for reference in REFERENCES:
            ours = tree.inverse_dynamics_by_recursion(reference)(*given)
            assert error(ours, wanted) < EXACT, reference


def check_default_is_cheapest(tree):
    counts = instructions(tree)
    assert counts[DEFAULT] == min(counts.values()), counts


@pytest.mark.parametrize("kind", TREES)
def test_representations_give_the_same_forces(kind, rng):
    check_tree(TREES[kind], rng, with_wrenches=True)
    check_default_is_cheapest(TREES[kind])


@pytest.mark.usually(name=("borinot_flying_arm_2", "ur5_robot"))
@pytest.mark.parametrize("name", FILES)
def test_robots(name, rng, robot_file):
    base = "fixed" if name in STANDING else "free"
    _, tree = robot(robot_file, name, base=base)
    check_tree(tree, rng, with_wrenches=False)
    check_default_is_cheapest(tree)


def check_reference_model(folder, model):
    description, data = load(folder, model)
    tree = tree_of(description)
    iq, iv, ib = order(tree, description)
    q, v, a = data["q"][:, iq], data["v"][:, iv], data["a"][:, iv]
    wrenches = data["fext"][:, 1:][:, ib]
    for reference in REFERENCES:
        function = tree.inverse_dynamics_by_recursion(reference)
        assert error(function(q, v, a), data["rnea"][:, iv]) < EXACT
        assert error(function(q, v, a, wrenches), data["rnea_fext"][:, iv]) < EXACT


@pytest.mark.usually(model=("chain_RUBY",))
@pytest.mark.parametrize("model", MODELS)
def test_reference_models_of_our_own(model):
    check_reference_model(OWN, model)


@pytest.mark.usually(model=("chain_FreeFlyer", "chain_HelicalUnaligned", "chain_Spherical"))
@pytest.mark.parametrize("model", SYNTHETIC)
def test_every_reference_model(model, shared):
    check_reference_model(shared / "reference", model)


@pytest.mark.parametrize("reference", REFERENCES)
def test_parameters_stay_symbols(reference, rng):
    tree = TREES["branched"].symbolic("base.mass", "leg01.inertia", "gravity")
    q, v, a, *_ = zoo.state(tree, rng)
    p = tree.parameter_values
    moved = p * rng.uniform(0.8, 1.2, size=p.shape)
    wanted = tree.inverse_dynamics(q, v, a, p=moved)
    assert error(tree.inverse_dynamics_by_recursion(reference)(q, v, a, p=moved), wanted) < EXACT


def test_unknown_representation_is_refused():
    tree = TREES["revolute"]
    with pytest.raises(ValueError, match="valid names are body, spatial, hybrid, mixed"):
        tree.inverse_dynamics_by_recursion("twisted")
    with pytest.raises(ValueError, match="'LOCAL_WORLD_ALIGNED' elsewhere is 'hybrid'"):
        tree.inverse_dynamics_by_recursion("LOCAL_WORLD_ALIGNED")


@pytest.mark.usually(kind=("aligned",))
@pytest.mark.parametrize("kind", KINDS)
def test_default_is_the_cheapest_on_chains(kind):
    """Measured up to 16 bodies; there further bodies cost the default the least, too."""
    counts = {n: instructions(KINDS[kind](n)) for n in (1, 2, 4, 8, 16)}
    for n, own in counts.items():
        assert own[DEFAULT] == min(own.values()), (n, own)
    added = {name: counts[16][name] - counts[8][name] for name in counts[16]}
    assert added[DEFAULT] == min(added.values()) == 2 * (counts[8][DEFAULT] - counts[4][DEFAULT])


def test_default_is_the_cheapest_in_the_kept_counts():
    """Chains of up to 64 bodies as last measured by the benchmark."""
    kept = json.loads((RESULTS / "representations.json").read_text())
    for rows in (*kept["chains"].values(), kept["arms"]):
        for counts in rows.values():
            assert counts[DEFAULT] == min(counts.values())


@pytest.mark.parametrize("name", ARMS)
def test_default_is_the_cheapest_on_arms(name):
    check_default_is_cheapest(ARMS[name]())


def test_a_link_without_mass_needs_no_force():
    """Only the point that slides on it does, by the centrifugal force."""
    tree = Multibody().add_body("link", None, "revolute")
    tree = tree.add_body("tip", SpatialInertia.point_mass(1.0), "prismatic", "link", axis="x")
    for reference in REFERENCES:
        tau = tree.inverse_dynamics_by_recursion(reference)([0.0, 2.0], [3.0, 0.0], [0.0, 0.0])
        assert np.allclose(tau, [0.0, -18.0], rtol=0, atol=EXACT)

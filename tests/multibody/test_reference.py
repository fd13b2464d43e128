"""Every function against independent reference numbers, matched by joint name."""

import numpy as np
import pytest

from lgcontrol.mechanics import Multibody

from .make_reference import MODELS, OWN
from .reference import checks, load, order, tree_of

SYNTHETIC = [
    "chain_Composite",
    "chain_FreeFlyer",
    "chain_HY",
    "chain_HelicalUnaligned",
    "chain_PZ",
    "chain_Planar",
    "chain_PrismaticUnaligned",
    "chain_RUBY",
    "chain_RX",
    "chain_RevoluteUnaligned",
    "chain_Spherical",
    "chain_SphericalZYX",
    "chain_Translation",
    "chain_Universal",
    "tree_A",
]
ROBOTS = {
    "ur5": ("ur5_robot.urdf", "fixed"),
    "panda": ("panda.urdf", "fixed"),
    "solo12": ("solo12.urdf", "free"),
}
ACCURACY = 5e-12  # the reference states about 1e-13; small entries carry the rounding of large ones
ACCURACY_OF_RATE = 2e-8  # Mdot of the reference is a finite difference (about 1e-9)


def compare(tree, description, data):
    for name, ours, theirs in checks(tree, description, data):
        assert ours.shape == theirs.shape, name
        scale = max(1.0, np.abs(theirs).max(initial=0.0))
        error = np.abs(ours - theirs).max(initial=0.0) / scale
        assert error < (ACCURACY_OF_RATE if name == "Mdot" else ACCURACY), (name, error)


@pytest.mark.parametrize("model", SYNTHETIC)
def test_every_kind_of_joint(model, shared):
    description, data = load(shared / "reference", model)
    compare(tree_of(description), description, data)


@pytest.mark.parametrize("model", ROBOTS)
def test_robot_from_its_file(model, shared):
    description, data = load(shared / "reference", model)
    file, base = ROBOTS[model]
    tree = Multibody.from_urdf(
        shared / "robots" / file, base=base, mimic=False, losses=False, on_finding="ignore"
    )
    assert set(tree.joints) == {entry["name"] for entry in description["joints"]}
    compare(tree, description, data)


@pytest.mark.parametrize("model", MODELS)
def test_numbers_of_our_own(model):
    """A state of some models, kept with the project."""
    description, data = load(OWN, model)
    compare(tree_of(description), description, data)


@pytest.mark.parametrize("model", ["tree_A", "chain_RUBY"])
def test_armature_adds_what_spinning_rotors_have(model, rng):
    """The same numbers with drives: armature on the diagonal of M, in forces and energy."""
    description, data = load(OWN, model)
    armature = rng.uniform(0.1, 2.0, len(description["armature"]))
    plain, driven = tree_of(description), tree_of(description | {"armature": armature.tolist()})
    data |= {
        "M": data["M"] + np.diag(armature),
        "rnea": data["rnea"] + armature * data["a"],
        "kinetic_energy": data["kinetic_energy"] + (armature * data["v"] ** 2).sum(axis=-1) / 2,
    }
    found = {name: value for name, value, _ in checks(driven, description, data)}
    for name, _, theirs in checks(plain, description, data):
        if name in ("M", "rnea", "kinetic_energy"):  # the description of `checks` has none
            np.testing.assert_allclose(found[name], theirs, rtol=ACCURACY, atol=ACCURACY)


def test_order_is_depth_first(shared):
    description, _ = load(shared / "reference", "tree_A")
    iq, iv, _ = order(tree_of(description), description)
    assert (iq == np.arange(len(iq))).all() and (iv == np.arange(len(iv))).all()

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


# All states of each model, and the one kept with the project beside them: they share a tree.
NUMBERS = [
    (model, kept) for model in SYNTHETIC for kept in (False, True) if model in MODELS or not kept
]
NUMBERS += [(model, True) for model in MODELS if model not in SYNTHETIC]


# A chain and a group that does not commute; the others take as long each, and forces of the screws
# are compared in `test_recursions`.
@pytest.mark.usually(model=("chain_Composite", "chain_FreeFlyer"))
@pytest.mark.parametrize(("model", "kept"), NUMBERS)
def test_every_kind_of_joint(model, kept, request):
    folder = OWN if kept else request.getfixturevalue("shared") / "reference"
    description, data = load(folder, model)
    compare(tree_of(description), description, data)


@pytest.mark.usually(model=("ur5",))
@pytest.mark.parametrize("model", ROBOTS)
def test_robot_from_its_file(model, shared):
    description, data = load(shared / "reference", model)
    file, base = ROBOTS[model]
    tree = Multibody.from_urdf(
        shared / "robots" / file, base=base, mimic=False, losses=False, on_finding="ignore"
    )
    assert set(tree.joints) == {entry["name"] for entry in description["joints"]}
    compare(tree, description, data)


@pytest.mark.parametrize("model", ["tree_A", "chain_RUBY"])
def test_armature_adds_what_spinning_rotors_have(model, rng):
    """The same numbers with drives: armature on the diagonal of M, in forces and energy."""
    description, data = load(OWN, model)
    armature = rng.uniform(0.1, 2.0, len(description["armature"]))
    driven = tree_of(description | {"armature": armature.tolist()})
    iq, iv, _ = order(driven, description)
    q, v, a = data["q"][:, iq], data["v"][:, iv], data["a"][:, iv]
    own = {
        "M": data["M"] + np.diag(armature),
        "rnea": data["rnea"] + armature * data["a"],
        "kinetic_energy": data["kinetic_energy"] + (armature * data["v"] ** 2).sum(axis=-1) / 2,
    }
    for name, ours, theirs in (
        ("M", driven.mass_matrix(q), own["M"][np.ix_(range(len(q)), iv, iv)]),
        ("rnea", driven.inverse_dynamics(q, v, a), own["rnea"][:, iv]),
        ("kinetic_energy", driven.kinetic_energy(q, v), own["kinetic_energy"]),
    ):
        np.testing.assert_allclose(ours, theirs, rtol=ACCURACY, atol=ACCURACY, err_msg=name)


def test_order_is_depth_first(shared):
    description, _ = load(shared / "reference", "tree_A")
    iq, iv, _ = order(tree_of(description), description)
    assert (iq == np.arange(len(iq))).all() and (iv == np.arange(len(iv))).all()

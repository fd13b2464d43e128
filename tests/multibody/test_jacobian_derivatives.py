"""Partial derivatives of frame Jacobians: nested AD, reference Hessians, symmetry, time."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SO3
from lgcontrol.mechanics import Multibody
from lgcontrol.models import panda_tree

from . import zoo
from .differentiation import nested_derivative
from .reference import load, order, tree_of
from .test_reference import SYNTHETIC
from .test_twist_derivatives import CASES, REFERENCES, TREES, close, tip

pytestmark = pytest.mark.usually(kind=zoo.FEW)

STATED = 5e-12  # the reference states about 1e-13; small entries carry the rounding of large ones
FAR = 1e-13  # relative: rounding of brackets of screws one metre away; 1e6 m times it is 1e-10
NAMES = {"local": "body", "world": "spatial", "lwa": "hybrid"}


@pytest.mark.parametrize(("kind", "reference"), CASES)
def test_against_nested_differentiation(kind, reference, rng):
    """The last index is differentiated last, and its perturbation stands first."""
    tree = TREES[kind]
    q, J = tree.configuration.random(rng), tree.jacobian(tip(tree), reference)
    for n in (1, 2) if tree.nv < 6 else (1,):
        exact = nested_derivative(tree, J, n)(q)
        dJ = tree.jacobian_derivatives(tip(tree), reference, n)(q)
        assert dJ.shape == (6, *[tree.nv] * (n + 1))
        close(dJ.ravel(order="F"), np.array(exact).ravel())


@pytest.mark.usually(model=("chain_Composite", "chain_FreeFlyer", "chain_HY", "ur5"))
@pytest.mark.parametrize("model", [*SYNTHETIC, "ur5", "panda", "solo12"])
def test_reference_hessians(model, shared):
    """``hessian_dJ[:, j, i]``: column j, then differentiated along direction i of plus(q, d)."""
    description, data = load(shared / "reference", model)
    tree = tree_of(description)
    iq, iv, _ = order(tree, description)
    joint = description["joints"][int(data["hessian_joint_id"][0]) - 1]["name"]
    for theirs, ours in NAMES.items():
        dJ = tree.jacobian_derivatives(joint, ours)(data["q"][0][iq])
        close(dJ, data[f"hessian_dJ_{theirs}"][0][:, iv][:, :, iv], STATED)


def test_order_of_differentiation_matters_within_a_joint(rng):
    """The Hessian of the reference is not symmetric where a joint has several directions."""
    tree = TREES["free"]
    q = tree.configuration.random(rng)
    once = tree.jacobian_derivatives("tip", "spatial")(q)
    twice = tree.jacobian_derivatives("tip", "spatial", 2)(q)
    turned = twice - twice.swapaxes(2, 3)
    assert np.abs(turned[:, :, :6, :6]).max() > 0.1
    # D_l D_k − D_k D_l = D_[l, k]: by the bracket of the left-invariant fields.
    structure = np.zeros((tree.nv, tree.nv, tree.nv))
    for k in range(6):
        for m in range(6):
            basis = np.eye(tree.nv)
            structure[:, k, m] = tree.configuration.ad(basis[m]) @ basis[k]
    close(turned, np.einsum("ajn,nkl->ajkl", once, structure))
    close(twice[..., 6:, :], twice[..., 6:].swapaxes(2, 3))


def test_rotations_by_hand(rng):
    """A ball joint: ∂R e_j along e_k is R (e_k × e_j), again and again."""
    tree = Multibody().add_body("ball", None, "spherical")
    q, e = SO3.random(rng), np.eye(3)
    R = SO3.matrix(q)
    third = tree.jacobian_derivatives("ball", "hybrid", 3)(q)
    for j, k, m, n in np.ndindex(3, 3, 3, 3):
        # R exp(n) exp(m) exp(k) e_j: what is differentiated first stands next to e_j.
        expected = R @ np.cross(e[n], np.cross(e[m], np.cross(e[k], e[j])))
        close(third[3:, j, k, m, n], expected)
    assert (tree.jacobian_derivatives("ball", "body", 2)(q) == 0).all()


@pytest.mark.usually(reference=("body", "hybrid"))
@pytest.mark.parametrize("reference", REFERENCES)
def test_along_the_motion(reference, rng):
    """``J̇ = dJ v`` and ``J̈ = d²J (v, v) + dJ a``, also with mimics and chains of joints."""
    for kind in ("driven", "branched", "composite", "planar_helical"):
        tree = TREES[kind]
        q, v, a, *_ = zoo.state(tree, rng)
        first = tree.jacobian_derivatives(tip(tree), reference)(q)
        close(first @ v, tree.jacobian_rate(tip(tree), reference)(q, v))
        second = tree.jacobian_derivatives(tip(tree), reference, 2)(q)
        exact = tree.jacobian_time_derivative(tip(tree), reference, 2)(q, v, a)
        close(second @ v @ v + first @ a, exact)


@pytest.mark.usually(reference=("body", "mixed"))
@pytest.mark.parametrize("reference", REFERENCES)
def test_structure_and_size(reference):
    """Zeros by the order of the joints; fewer operations than by AD."""
    tree, frame = panda_tree(), "panda_link8"
    function = tree.jacobian_derivatives(frame, reference)
    exact = nested_derivative(tree, tree.jacobian(frame, reference), 1)
    assert function.instructions < exact.n_instructions()
    second = tree.jacobian_derivatives(frame, reference, 2)
    exact = nested_derivative(tree, tree.jacobian(frame, reference), 2)
    assert second.instructions < exact.n_instructions()
    J, joints = function(np.full(7, 0.4)), np.arange(7)
    before = joints[:, None] > joints[None, :]
    if reference == "body":
        assert (J[:, before] == 0).all()
    if reference == "spatial":
        assert (J[:, ~before] == 0).all()
    if reference == "mixed":
        assert (J[3:, before] == 0).all()
    # The linear part of "hybrid" is the Hessian of the position, which is symmetric.
    if reference in ("hybrid", "mixed"):
        assert (J[:3] == J[:3].swapaxes(1, 2)).all()


def test_casadi_has_the_slices_side_by_side(rng):
    tree = TREES["universal"]
    q = tree.configuration.random(rng)
    wide = tree.jacobian_derivatives("tip")(ca.DM(q))
    assert wide.shape == (6, tree.nv**2)
    slices = np.split(np.array(wide), tree.nv, axis=1)
    close(np.stack(slices, axis=-1), tree.jacobian_derivatives("tip")(q))
    several = np.stack([q, tree.configuration.random(rng)])
    batch = tree.jacobian_derivatives("tip", "mixed", 2)(several)
    assert batch.shape == (2, 6, *[tree.nv] * 3)
    close(batch[1], tree.jacobian_derivatives("tip", "mixed", 2)(several[1]))


def test_errors():
    tree = TREES["branched"]
    with pytest.raises(KeyError, match="unknown frame 'foot'"):
        tree.jacobian_derivatives("foot")
    with pytest.raises(ValueError, match="unknown reference 'world'"):
        tree.jacobian_derivatives("base", "world")
    with pytest.raises(ValueError, match="integer of at least 1, not 0.*tree.jacobian"):
        tree.jacobian_derivatives("base", order=0)
    with pytest.raises(
        ValueError, match="order 5 .* 16 columns have 100663296 entries.*lower order"
    ):
        tree.jacobian_derivatives("base", order=5)


def vessel_with_an_arm(rng, place):
    """A floating base at rest at a place in the world, an arm on it."""
    tree = Multibody().add_body("vessel", zoo.random_inertia(rng), "free", "world", place)
    parent = "vessel"
    for joint in ("revolute_any", "spherical", "prismatic", "helical"):
        body = zoo.random_inertia(rng)
        tree = tree.add_body(joint, body, zoo.JOINTS[joint], parent, zoo.pose(rng))
        parent = joint
    return tree.add_frame("tip", parent, [0.1, 0.2, 0.3])


@pytest.mark.usually(reference=("body", "hybrid"))
@pytest.mark.parametrize("reference", ["body", "hybrid", "mixed"])
def test_no_digit_is_lost_far_from_the_worlds_origin(reference):
    """What does not depend on the place is the same a thousand kilometres away, to rounding."""
    far = [1e6, -1e6, 0.0]
    near, away = (vessel_with_an_arm(np.random.default_rng(4), p) for p in ([0, 0, 0], far))
    rng = np.random.default_rng(5)
    q, v, a, *_ = zoo.state(near, rng)
    sailed = q.copy()
    sailed[:3] += far
    for tree, there in ((away, q), (near, sailed)):
        for n, arguments in ((1, (v,)), (2, (v, a))):
            pair = [t.jacobian_time_derivative("tip", reference, n) for t in (near, tree)]
            close(pair[1](there, *arguments), pair[0](q, *arguments), FAR)
        for function in ("jacobian", "jacobian_derivatives"):
            pair = [getattr(t, function)("tip", reference) for t in (near, tree)]
            close(pair[1](there), pair[0](q), FAR)

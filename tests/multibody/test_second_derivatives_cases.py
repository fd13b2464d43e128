"""Hessians, limiting cases and parameter sensitivities of second derivatives."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.mechanics import Multibody, SpatialInertia

from . import zoo
from .second_order import PAIRS, TREES, by_ad, close

pytestmark = pytest.mark.usually(tree=zoo.FEW)


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]


@pytest.mark.usually(tree=("driven",))
@pytest.mark.parametrize("kind", ("inverse", "forward"))
def test_hessian_is_the_weighted_tensor(tree, rng, kind):
    q, v, a, weights, wrenches = zoo.state(tree, rng, (2,))
    hessian = getattr(tree, f"{kind}_dynamics_hessian")(q, v, a, weights, wrenches)
    tensors = getattr(tree, f"{kind}_dynamics_second_derivatives")(q, v, a, wrenches)
    for block, tensor in zip(hessian, tensors, strict=True):
        close(block, np.einsum("bi,bijk->bjk", weights, tensor))


def test_large_velocities(tree, rng):
    """Forces of bodies without weight and losses are of second degree in v, first in a."""
    bare = without_forces(tree)
    q, v, a, *_ = zoo.state(bare, rng)
    slow = bare.inverse_dynamics_second_derivatives(q, v, a)
    fast = bare.inverse_dynamics_second_derivatives(q, 1e4 * v, 1e8 * a)
    for one, other, power in zip(slow, fast, (2, 1, 0, 0), strict=True):
        close(other / 1e4**power, one)


def without_forces(tree):
    """The same bodies without weight, springs and losses."""
    bare = Multibody("bare", gravity=[0, 0, 0])
    for link in map(tree.link, tree.links):
        bare = bare.add_body(
            link.name,
            link.inertia,
            link.joint,
            link.parent,
            link.placement,
            joint_name=link.joint_name,
            mimic=link.mimic,
        )
    return bare


@pytest.mark.usually(name=("inverse_dynamics_hessian",))
@pytest.mark.parametrize("name", ["inverse_dynamics_hessian", "forward_dynamics_hessian"])
def test_where_a_floating_tree_is_does_not_matter(name, rng):
    tree = TREES["floating"]
    q, v, a, weights, _ = zoo.state(tree, rng)
    far = q.copy()
    far[:3] += [1e6, -2e6, 3e5]
    function = getattr(tree, name)
    for here, there in zip(function(q, v, a, weights), function(far, v, a, weights), strict=True):
        assert np.array_equal(here, there)


def test_ill_conditioned_inertias(rng):
    """A gram at the end of an arm of a ton: forces and accelerations to the accuracy of AD."""
    tree = Multibody("whip")
    parent, scale = "world", 1e3
    for i in range(2):
        body = SpatialInertia.cylinder(scale, 0.1, 0.5, center_of_mass=[0.01, 0, 0.2])
        tree = tree.add_body(f"b{i}", body, "spherical", parent, [0, 0, 0.5 * bool(i)])
        parent, scale = f"b{i}", scale / 1e6
    q, v, a, tau, _ = zoo.state(tree, rng)
    exact = by_ad(tree, tree.inverse_dynamics, (q, v, a), PAIRS)
    for ours, theirs in zip(tree.inverse_dynamics_second_derivatives(q, v, a), exact, strict=True):
        for row, expected in zip(ours, theirs, strict=True):  # rows of the gram by themselves
            assert np.abs(row - expected).max() < 1e-9 * np.abs(expected).max(initial=1e-9)
    tau = tree.inverse_dynamics(q, v, a)
    exact = by_ad(tree, tree.forward_dynamics_by_factor, (q, v, tau), PAIRS)
    for ours, theirs in zip(
        tree.forward_dynamics_second_derivatives(q, v, tau), exact, strict=True
    ):
        close(ours, theirs, 1e-8)  # the condition of M is about 1e9


@pytest.mark.thorough
def test_only_joints_on_one_path_meet(rng):
    tree = TREES["two_roots"]
    q, v, a, *_ = zoo.state(tree, rng)
    own = {"arm": "arm", "floating": "arm"}
    sides = []
    for name, group in zip(tree.joints, tree.configuration.blocks.values(), strict=True):
        sides += [own.get(name.removesuffix("_joint"), "other")] * group.dim
    other = np.array(sides) == "other"
    for T in tree.inverse_dynamics_second_derivatives(q, v, a):
        assert np.all(T[np.ix_(other, ~other, ~other)] == 0)
        assert np.all(T[np.ix_(other, other, ~other)] == 0)
        assert np.all(T[np.ix_(~other, other, ~other)] == 0)


@pytest.mark.usually(name=("inverse_dynamics_second_derivatives", "forward_dynamics_hessian"))
@pytest.mark.parametrize(
    "name",
    [
        f"{kind}_dynamics_{what}"
        for kind in ("inverse", "forward")
        for what in ("second_derivatives", "hessian")
    ],
)
def test_symbolic_parameters_and_symbols(name, rng):
    tree = TREES["helical"]
    q, v, a, weights, wrenches = zoo.state(tree, rng)
    free = tree.symbolic("b.mass", "a.center_of_mass", "gravity.z")
    p = free.parameter_values
    values = (q, v, a, weights, wrenches) if "hessian" in name else (q, v, a, wrenches)
    plain = getattr(tree, name)(*values)
    for ours, expected in zip(getattr(free, name)(*values, p), plain, strict=True):
        close(ours, expected)
    arguments = [ca.DM(x.T) if x.ndim == 2 else x for x in values]
    x = ca.SX.sym("x", len(q))
    symbolic = getattr(tree, name)(x, *arguments[1:])[0]
    numeric = np.array(ca.Function("f", [x], [symbolic])(q))
    n = tree.nv
    if plain[0].ndim == 3:
        numeric = np.stack([numeric[:, k * n : (k + 1) * n] for k in range(n)], axis=-1)
    close(plain[0], numeric)


def test_massless_joints_are_refused():
    tree = Multibody().add_body("a", SpatialInertia.point_mass(1.0, [0, 0, 0]), "revolute")
    zeros = np.zeros(1)
    assert tree.inverse_dynamics_second_derivatives(zeros, zeros, zeros)[0].shape == (1, 1, 1)
    for name in ("second_derivatives", "hessian", "parameter_derivatives"):
        with pytest.raises(ValueError, match="joint 'a'"):
            getattr(tree, f"forward_dynamics_{name}")


def test_empty_tree():
    tree, none = Multibody(), np.zeros(0)
    for kind in ("inverse", "forward"):
        for T in getattr(tree, f"{kind}_dynamics_second_derivatives")(none, none, none):
            assert T.shape == (0, 0, 0)
        for H in getattr(tree, f"{kind}_dynamics_hessian")(none, none, none, none):
            assert H.shape == (0, 0)


def rebuilt(tree, phi):
    """The same tree with other inertial parameters of its bodies, nothing fixed to them."""
    made = Multibody("rebuilt", gravity=tree.gravity)
    for link, own in zip(map(tree.link, tree.links), phi.reshape(-1, 10), strict=True):
        m, c, tensor = own[0], own[1:4] / own[0], own[[4, 5, 7, 5, 6, 8, 7, 8, 9]].reshape(3, 3)
        tensor = tensor - m * (c @ c * np.eye(3) - np.outer(c, c))
        body = SpatialInertia(m, c, tensor, check="ignore")
        made = made.add_body(link.name, body, link.joint, link.parent, link.placement)
    return made


def test_accelerations_by_inertial_parameters(rng):
    tree = Multibody().add_body("a", zoo.random_inertia(rng), "spherical")
    tree = tree.add_body("b", zoo.random_inertia(rng), "revolute", "a", zoo.pose(rng), axis="y")
    tree = tree.add_body("c", zoo.random_inertia(rng), "cylindrical", "a", zoo.pose(rng))
    q, v, _, tau, wrenches = zoo.state(tree, rng)
    slope = tree.forward_dynamics_parameter_derivatives(q, v, tau, wrenches)
    phi, h = tree.inertial_parameters, 1e-4

    def accelerations(x):
        return rebuilt(tree, x).forward_dynamics_by_factor(q, v, tau, wrenches)

    close(accelerations(phi), tree.forward_dynamics(q, v, tau, wrenches))
    for i in (0, 13, 27):  # a mass, a first and a second moment
        step = h * np.eye(len(phi))[i]
        difference = (accelerations(phi + step) - accelerations(phi - step)) / (2 * h)
        close(slope[:, i], difference, 1e-4)  # of second order, where the third derivative is large
    Y = tree.inverse_dynamics_regressor(q, v, tree.forward_dynamics(q, v, tau, wrenches))
    close(tree.mass_matrix(q) @ slope, -Y)

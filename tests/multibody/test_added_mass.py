"""Added mass in the tree's own functions: as bodies, as the system's, by differences, refused."""

import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Current, Gravity, Multibody, RigidBody, SpatialInertia

from . import zoo

EXACT = 1e-11  # relative: rounding of a few hundred products
DIFFERENCES = 1e-7  # relative: h² and rounding over h of central differences, h = 1e-5
H = 1e-5

DYNAMICS = ("inverse_dynamics", "forward_dynamics_by_factor", "forward_dynamics_by_recursion")
SLOPES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
OF_A_BODY = (*DYNAMICS, *SLOPES, "mass_matrix", "mass_matrix_inverse", "coriolis_matrix")
OF_A_BODY += ("kinetic_energy", "bias_forces", "joint_wrenches", "linearized_equations")

CURRENT = Current((0.4, -0.3, 0.2))


def random_added_mass(rng):
    root = rng.normal(size=(6, 6))
    return root @ root.T / 5


def branched(rng):
    """A free base, joints of one and of several degrees of freedom, a fixed link, a branch."""
    ball = zoo.random_inertia(rng)
    tree = Multibody().add_body("base", ball, "free")
    tree = tree.add_body("arm", ball, "revolute", "base", zoo.pose(rng), axis=(1, 2, 3))
    tree = tree.add_body("shell", None, "fixed", "arm", zoo.pose(rng))
    tree = tree.add_body("hand", ball, "spherical", "shell", zoo.pose(rng))
    return tree.add_body("fin", ball, "universal", "base", zoo.pose(rng))


def wet(rng, tree=None):
    tree = tree or branched(rng)
    return tree.with_added_mass({name: random_added_mass(rng) for name in ("shell", "hand", "fin")})


def results(function, *values):
    found = function(*values)
    return [found] if isinstance(found, np.ndarray | float) else list(found)


def same(have, want, share=EXACT):
    for x, y in zip(have, want, strict=True):
        assert np.abs(x - y).max() < share * max(1.0, np.abs(y).max())


def called(tree, name, q, v, a):
    function = getattr(tree, name)
    given = {"q": q, "v": v, "a": a, "tau": a}
    return results(function, *(given[key] for key in function.arguments))


@pytest.mark.usually(
    name=("forward_dynamics_by_recursion", "forward_dynamics_derivatives", "coriolis_matrix")
)
@pytest.mark.parametrize("name", OF_A_BODY)
def test_a_body_as_added_mass(name, rng):
    """Without weight nothing tells the inertia of a body from the same matrix of a fluid."""
    dry = branched(rng)
    still = Multibody(gravity=[0, 0, 0])
    bodies, fluid = still, still
    for link in map(dry.link, dry.links):
        inertia = zoo.random_inertia(rng)
        options = (link.joint, link.parent, link.placement)
        bodies = bodies.add_body(link.name, inertia, *options)
        fluid = fluid.add_body(link.name, None, *options)
        fluid = fluid.with_added_mass({link.name: inertia.matrix})
    q, v, a, _, _ = zoo.state(dry, rng)
    same(called(fluid, name, q, v, a), called(bodies, name, q, v, a))


def test_momentum_counts_the_fluid(rng):
    """Momentum, its matrix and rates about one point; the centre of mass is that of the masses."""
    dry = branched(rng)
    tree = wet(rng, dry)
    q, v, a, _, _ = zoo.state(tree, rng)
    momentum = tree.centroidal_momentum(q, v)
    same([tree.centroidal_momentum_matrix(q) @ v], [momentum])
    rate = tree.centroidal_momentum_matrix_rate(q, v) @ v + tree.centroidal_momentum_matrix(q) @ a
    ahead, behind = (
        tree.centroidal_momentum(tree.configuration.plus(q, h * v), v + h * a) for h in (H, -H)
    )
    same([rate], [(ahead - behind) / (2 * H)], DIFFERENCES)
    # The rate about the moving centre of mass lacks what that moves through the momentum.
    moved = np.cross(tree.center_of_mass_velocity(q, v), momentum[:3])
    total = tree.centroidal_momentum_rate(q, v, a)
    same([total], [rate + np.concatenate([np.zeros(3), moved])])
    for name in ("center_of_mass", "center_of_mass_jacobian", "potential_energy"):
        same(called(tree, name, q, v, a), called(dry, name, q, v, a))


def test_a_free_body_is_the_rigid_body(rng):
    A, inertia = random_added_mass(rng), zoo.random_inertia(rng)
    body = RigidBody("b", SE3, inertia, [Gravity((0, 0, -9.81))], added_mass=A)
    tree = Multibody().add_body("b", inertia, "free").with_added_mass({"b": A})
    X, v, tau = SE3.random(rng), rng.normal(size=6), rng.normal(size=6)
    for ours in (tree.forward_dynamics_by_factor, tree.forward_dynamics_by_recursion):
        same([ours(X, v, tau)], [body.forward_dynamics(X, v, tau)])
    same([tree.gravity_forces(X)], [body.gravity_forces(X)])
    same([tree.kinetic_energy(X, v)], [body.kinetic_energy(X, v)])


@pytest.mark.usually(current=(CURRENT,))
@pytest.mark.parametrize("current", [None, CURRENT])
def test_the_system_of_a_wet_tree(current, rng):
    """As with the same matrices given to the system, in a current too."""
    dry = branched(rng)
    tree = wet(rng, dry)
    matrices = {name: tree.link(name).added_mass for name in ("shell", "hand", "fin")}
    ours, theirs = (
        tree.system([], current=current),
        dry.system([], added_mass=matrices, current=current),
    )
    q, v, _, _, _ = zoo.state(dry, rng)
    x = np.concatenate([q, v])
    same([ours.f(0.0, x, [])], [theirs.f(0.0, x, [])])
    same([tree.forward_dynamics(q, v, 0 * v)], [tree.forward_dynamics_by_factor(q, v, 0 * v)])


def test_first_derivatives_by_differences(rng):
    tree = wet(rng)
    q, v, a, _, wrenches = zoo.state(tree, rng)
    slopes = tree.inverse_dynamics_derivatives(q, v, a, wrenches)
    unit = H * np.eye(tree.nv)

    def difference(of):
        return np.stack([(of(d) - of(-d)) / (2 * H) for d in unit], axis=-1)

    by_q = difference(
        lambda d: tree.inverse_dynamics(tree.configuration.plus(q, d), v, a, wrenches)
    )
    by_v = difference(lambda d: tree.inverse_dynamics(q, v + d, a, wrenches))
    same([slopes.d_tau_d_q, slopes.d_tau_d_v], [by_q, by_v], DIFFERENCES)
    same([slopes.d_tau_d_a], [tree.mass_matrix(q)])
    C = tree.coriolis_matrix(q, v)
    still = tree.bias_forces(q, 0 * v)
    same([C @ v], [tree.bias_forces(q, v) - still])
    ahead, behind = (tree.mass_matrix(tree.configuration.plus(q, h * v)) for h in (H, -H))
    skew = (ahead - behind) / (2 * H) - 2 * C
    assert np.abs(skew + skew.T).max() < DIFFERENCES * np.abs(C).max()


def test_frames_joints_and_trees_keep_it(rng):
    tree = wet(rng)
    q, v, a, _, _ = zoo.state(tree, rng)
    moved = tree.move_frames(fin=zoo.pose(rng), hand=zoo.pose(rng))
    same([moved.inverse_dynamics(q, v, a)], [tree.inverse_dynamics(q, v, a)])
    same([moved.kinetic_energy(q, v)], [tree.kinetic_energy(q, v)])
    carried = Multibody().add_body("ship", None, "fixed").attach(tree, "ship", prefix="x_")
    same([carried.mass_matrix(q)], [tree.mass_matrix(q)])
    held = tree.lock(arm=0.3)
    q[7] = 0.3
    keep = [i for i in range(tree.nv) if i != 6]
    same([held.mass_matrix(np.delete(q, 7))], [tree.mass_matrix(q)[np.ix_(keep, keep)]])


@pytest.mark.usually(name=("inverse_dynamics_regressor", "lagrange_equations"))
@pytest.mark.parametrize(
    "name", ["inverse_dynamics_regressor", "lagrange_equations", "inverse_dynamics_hessian"]
)
def test_what_knows_rigid_bodies_only_says_so(name, rng):
    tree = wet(rng)
    with pytest.raises(ValueError, match=f"{name} knows inertias of rigid bodies only.*'shell'"):
        getattr(tree, name)
    dry = tree.with_added_mass(dict.fromkeys(tree.links))
    getattr(dry, name)
    with pytest.raises(ValueError, match="inverse_dynamics_regressor knows inertias"):
        tree.base_parameters()


def test_matrices_are_judged():
    tree = Multibody().add_body("a", SpatialInertia.sphere(1.0, 0.1), "free")
    with pytest.raises(KeyError, match="unknown link 'b'"):
        tree.with_added_mass({"b": np.eye(6)})
    with pytest.raises(ValueError, match="link 'a': added_mass is negative"):
        tree.with_added_mass({"a": -np.eye(6)})
    with pytest.raises(ValueError, match=r"added_mass has shape \(3, 3\)"):
        tree.with_added_mass({"a": np.eye(3)})


def test_added_mass_may_be_what_makes_a_body_movable():
    """A thin rod about its own axis has no inertia but that of the fluid."""
    rod = SpatialInertia.rod(2.0, length=1.0)
    tree = Multibody().add_body("rod", rod, "free")
    wet = {"rod": np.diag([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])}
    one, other = tree.system(added_mass=wet), tree.with_added_mass(wet).system()
    x = one.state.random(0)
    np.testing.assert_allclose(one.f(0.0, x), other.f(0.0, x), rtol=EXACT)

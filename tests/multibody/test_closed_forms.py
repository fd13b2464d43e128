"""Equations of motion as matrices, against the recursions and against definitions."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia

from . import zoo

pytestmark = pytest.mark.usually(kind=zoo.FEW, tree=zoo.FEW)

EXACT = 1e-11  # both routes are exact: rounding of sums of a few hundred products
CONSERVED = 1e-13  # sums of momenta of order one, a few hundred additions
SLOPE = 1e-8  # central differences with steps of 1e-5, errors of 1e-10 seen
FAILS = 1e-2  # a wrong formula is off by more than this, relative
REFERENCES = ("body", "spatial", "hybrid", "mixed")


def trees():
    rng = np.random.default_rng(11)
    return {
        **{kind: zoo.pair(kind, rng) for kind in zoo.JOINTS},
        "branched": zoo.branched(rng),
        "driven": zoo.driven(rng),
    }


TREES = trees()
CHAINS = ("universal", "spherical_zyx", "composite", "branched")


# Joints of every sort; where products of matrices follow that do not know of joints.
SORTS = ("helical", "planar", "spherical", "free", "universal", "composite", "branched", "driven")
# All references for what has most in it, else one in turn.
PAIRS = [
    (kind, reference)
    for i, kind in enumerate(TREES)
    for reference in (REFERENCES if kind in ("composite", "driven") else (REFERENCES[i % 4],))
]


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]


def error(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


@pytest.mark.usually(reference=("body", "hybrid"))
@pytest.mark.parametrize(("kind", "reference"), PAIRS)
def test_projection_gives_inverse_dynamics(kind, reference, rng):
    tree = TREES[kind]
    q, v, a, _, wrenches = zoo.state(tree, rng, (3,))
    project = tree.inverse_dynamics_by_projection(reference)
    assert error(project(q, v, a, wrenches), tree.inverse_dynamics(q, v, a, wrenches)) < EXACT


@pytest.mark.parametrize("reference", REFERENCES)
def test_named_parts_make_up_the_projection(reference, rng):
    tree = TREES["driven"]
    q, v, a, _, wrenches = zoo.state(tree, rng)
    e = tree.euler_jourdain_equations(reference)(q, v, wrenches)
    tau = e.J.T @ (e.inertia @ (e.J @ a + e.J_rate @ v) + e.bias - e.applied)
    tau = tau + e.armature * a + e.joint_forces
    assert error(tau, tree.inverse_dynamics(q, v, a, wrenches)) < EXACT
    bodies = len(tree.bodies)
    blocks = e.inertia.reshape(bodies, 6, bodies, 6).swapaxes(1, 2)
    off = blocks[~np.eye(bodies, dtype=bool)]
    assert not off.any()


@pytest.mark.usually(reference=("body", "hybrid"))
@pytest.mark.parametrize(("kind", "reference"), PAIRS)
def test_system_jacobian_stacks_the_bodies(kind, reference, rng):
    tree = TREES[kind]
    q, v, _, _, _ = zoo.state(tree, rng)
    rows = [tree.jacobian(body, reference)(q) for body in tree.bodies]
    assert error(tree.system_jacobian(reference)(q), np.vstack(rows)) < EXACT
    rows = [tree.jacobian_rate(body, reference)(q, v) for body in tree.bodies]
    assert error(tree.system_jacobian_rate(reference)(q, v), np.vstack(rows)) < EXACT


def test_system_matrices_factor_jacobian_and_rate(tree, rng):
    """Müller 2018, eq. 9, 82, 112."""
    q, v, _, _, _ = zoo.state(tree, rng)
    s = tree.system_matrices()(q, v)
    J, rate = tree.system_jacobian()(q), tree.system_jacobian_rate()(q, v)
    assert error(s.A @ s.X, J) < EXACT
    assert error(s.A @ (s.X_rate - s.ad_joints @ (J - s.X)), rate) < EXACT
    # V̇ = J v̇ − A a V (eq. 11): on the product with v nothing needs to be left out.
    assert error(s.A @ (s.X_rate - s.ad_joints @ J) @ v, rate @ v) < EXACT
    bodies = tree.body_velocities(q, v).ravel()
    assert error(s.ad_bodies @ bodies, np.zeros(len(bodies))) < EXACT
    # A has an inverse with the relative motions alone: A⁻¹ V are the joints' own twists.
    assert error(np.linalg.solve(s.A, bodies), s.X @ v) < EXACT
    assert not np.triu(s.A, 6).any()


@pytest.mark.usually(reference=("spatial", "hybrid"))
@pytest.mark.parametrize(("kind", "reference"), PAIRS)
def test_system_matrices_in_every_reference(kind, reference, rng):
    """``J = A X``, its rate, brackets, momenta and the mass matrix; A of relative motions only."""
    tree = TREES[kind]
    q, v, _, _, _ = zoo.state(tree, rng)
    s = tree.system_matrices(reference)(q, v)
    assert error(s.A @ s.X, tree.system_jacobian(reference)(q)) < EXACT
    rate = tree.system_jacobian_rate(reference)(q, v)
    assert error(s.A_rate @ s.X + s.A @ s.X_rate, rate) < EXACT
    bodies = tree.system_jacobian(reference)(q) @ v
    assert error(np.linalg.solve(s.A, bodies), s.X @ v) < EXACT
    assert error(s.ad_bodies @ bodies, np.zeros(len(bodies))) < EXACT
    momenta = tree.body_momenta(reference)(q, v).ravel()
    assert error(s.M @ bodies, momenta) < EXACT
    assert not np.triu(s.A, 6).any()
    if reference == "spatial":
        assert not s.A_rate.any() and set(np.unique(s.A)) <= {0.0, 1.0}


def test_joints_move_as_their_bodies_do(tree, rng):
    """Müller 2018, eq. 12: from twists and their rates of all bodies back to v and a."""
    q, v, a, _, _ = zoo.state(tree, rng)
    twists, rates = tree.body_velocities(q, v), tree.body_accelerations(q, v, a)
    found = tree.joint_motion(q, twists, rates)
    assert error(found.v, v) < EXACT
    assert error(found.a, a) < EXACT


def test_joint_motion_of_measured_twists_is_the_least_squares_one(rng):
    tree = TREES["spherical"]
    q, *_ = zoo.state(tree, rng)
    shape = (2, len(tree.bodies), 6)
    twists, rates = rng.normal(size=shape)
    found = tree.joint_motion(q, twists, rates)
    s = tree.system_matrices()(q, found.v)
    own = np.linalg.solve(s.A, twists.ravel())
    assert error(found.v, np.linalg.lstsq(s.X, own, rcond=None)[0]) < EXACT


@pytest.mark.usually(reference=("spatial", "hybrid"))
@pytest.mark.parametrize(("kind", "reference"), PAIRS)
def test_forward_dynamics_in_every_reference(kind, reference, rng):
    tree = TREES[kind]
    q, v, _, tau, wrenches = zoo.state(tree, rng)
    if tree.is_coupled:
        with pytest.raises(ValueError, match="close loops"):
            tree.forward_dynamics_in(reference)
        return
    a = tree.forward_dynamics_in(reference)(q, v, tau, wrenches)
    assert error(a, tree.forward_dynamics(q, v, tau, wrenches)) < 1e3 * EXACT  # times M⁻¹
    assert error(tree.inverse_dynamics(q, v, a, wrenches), tau) < 1e2 * EXACT


@pytest.mark.usually(kind=zoo.JOINTS)
@pytest.mark.parametrize("kind, holds", [("helical", True), ("spherical", False)])
def test_rate_of_the_paper_is_for_one_degree_of_freedom(kind, holds, rng):
    """Müller 2018, eq. 9 as a matrix: J̇ = −A a J."""
    tree = TREES[kind]
    q, v, _, _, _ = zoo.state(tree, rng)
    s, J = tree.system_matrices()(q, v), tree.system_jacobian()(q)
    off = error(-s.A @ s.ad_joints @ J, tree.system_jacobian_rate()(q, v))
    assert off < EXACT if holds else off > FAILS


def test_lagrange_equations(tree, rng):
    q, v, a, _, wrenches = zoo.state(tree, rng)
    e = tree.lagrange_equations(q, v, wrenches)
    assert error(e.M, tree.mass_matrix(q)) < EXACT
    assert error(e.C @ v, tree.coriolis_matrix(q, v) @ v) < EXACT
    assert error(e.M @ a + e.C @ v - e.Q, tree.inverse_dynamics(q, v, a, wrenches)) < EXACT
    still = tree.lagrange_equations(q, v).Q
    assert error(e.C @ v - still, tree.bias_forces(q, v)) < EXACT


@pytest.mark.parametrize("kind", [kind for kind in TREES if kind not in CHAINS])
def test_both_matrices_of_the_paper_are_one(kind, rng):
    """Müller 2018, eq. 84 and 85, as they are for joints that are one group."""
    tree = TREES[kind]
    q, v, _, _, _ = zoo.state(tree, rng)
    s = tree.system_matrices()(q, v)
    J, rate = tree.system_jacobian()(q), tree.system_jacobian_rate()(q, v)
    energy = (s.M @ s.A @ s.ad_bodies @ s.X).T @ J
    C84 = rate.T @ s.M @ J + J.T @ s.M @ rate - energy
    C85 = J.T @ (s.M @ rate - s.ad_bodies.T @ s.M @ J)
    C = tree.lagrange_equations(q, v).C
    assert error(C84, C) < EXACT
    assert error(C85, C) < EXACT


@pytest.mark.usually(kind=zoo.JOINTS)
@pytest.mark.parametrize(
    "kind, matrix, product",
    [("helical", True, True), ("spherical", False, True), ("free", False, True)]
    + [(kind, False, False) for kind in ("universal", "spherical_zyx", "composite")],
)
def test_eq_85_is_for_joints_with_one_degree_of_freedom(kind, matrix, product, rng):
    """Müller 2018, eq. 85 with −A a J for the rate of J, as printed."""
    tree = TREES[kind]
    q, v, _, _, _ = zoo.state(tree, rng)
    s, C = tree.system_matrices()(q, v), tree.lagrange_equations(q, v).C
    J = s.A @ s.X
    printed = -J.T @ (s.M @ s.A @ s.ad_joints + s.ad_bodies.T @ s.M) @ J
    for ours, theirs, holds in ((C, printed, matrix), (C @ v, printed @ v, product)):
        off = error(theirs, ours)
        assert off < EXACT if holds else off > FAILS


def test_which_coriolis_matrix_is_skew(tree, rng):
    """Ṁ − 2 C is skew for `coriolis_matrix`, not for eq. 84 and 85; both conserve energy."""
    q, v, _, _, _ = zoo.state(tree, rng)
    M_rate = tree.mass_matrix_derivatives(q) @ v
    ours = M_rate - 2 * tree.coriolis_matrix(q, v)
    assert error(ours, -ours.T) < EXACT
    theirs = M_rate - 2 * tree.lagrange_equations(q, v).C
    assert error(theirs, -theirs.T) > FAILS
    assert error(v @ theirs @ v - v @ (ours @ v), 0.0) < EXACT * np.abs(theirs).sum()


def test_momenta_of_bodies(tree, rng):
    q, v, _, _, _ = zoo.state(tree, rng)
    s = tree.system_matrices()(q, v)
    rows = (-1, 6)
    body = (s.M @ tree.system_jacobian()(q) @ v).reshape(rows)
    assert error(tree.body_momenta("body")(q, v), body) < EXACT
    for reference in REFERENCES:
        # Momenta are dual to twists: their product is twice the energy in every reference.
        twists = (tree.system_jacobian(reference)(q) @ v).reshape(rows)
        energies = (tree.body_momenta(reference)(q, v) * twists).sum(axis=1)
        assert error(energies, (body * tree.body_velocities(q, v)).sum(axis=1)) < EXACT
    total = tree.body_momenta()(q, v).sum(axis=0)
    c = tree.center_of_mass(q)
    about_center = np.r_[total[:3], total[3:] - np.cross(c, total[:3])]
    assert error(about_center, tree.centroidal_momentum(q, v)) < EXACT


@pytest.mark.parametrize("kind", SORTS)
def test_momentum_dynamics(kind, rng):
    """Müller 2018, eq. 80: v is found again, rates are the slope along the motion."""
    tree = TREES[kind]
    q, v, _, tau, wrenches = zoo.state(tree, rng)
    momenta = tree.body_momenta()
    found, rates = tree.momentum_dynamics(q, momenta(q, v), tau, wrenches)
    assert error(found, v) < EXACT
    a, h = tree.forward_dynamics(q, v, tau, wrenches), 1e-5

    def at(t):
        return momenta(tree.configuration.plus(q, t * v + t * t / 2 * a), v + t * a)

    assert error(rates, (at(h) - at(-h)) / (2 * h)) < SLOPE


def test_free_tree_keeps_its_spatial_momentum(rng):
    """A Runge–Kutta method on (q, Π): the sum stays, step for step, and so does that of v."""
    free, weightless = zoo.branched(rng).symbolic("gravity.z"), [0.0]
    q, v, _, _, _ = zoo.state(free, rng)
    first, group = free.body_momenta()(q, v), free.configuration
    momenta, h = first, 0.01

    def motion(q, momenta):
        return free.momentum_dynamics(q, momenta, np.zeros(free.nv), p=weightless)

    energy = float(free.kinetic_energy(q, v))
    for _ in range(100):
        v1, r1 = motion(q, momenta)
        v2, r2 = motion(group.plus(q, h / 2 * v1), momenta + h / 2 * r1)
        q, momenta = group.plus(q, h * v2), momenta + h * r2
    end = motion(q, momenta).v
    start = first.sum(axis=0)
    assert error(momenta.sum(axis=0), start) < CONSERVED
    assert error(free.body_momenta()(q, end).sum(axis=0), start) < 100 * CONSERVED
    # It is the same motion (energy drifts with the method's order), and momenta were exchanged.
    assert float(free.kinetic_energy(q, end)) == pytest.approx(energy, rel=0.05)
    assert np.abs(momenta - first).max() > 0.1


def test_momentum_dynamics_needs_bodies_with_mass():
    drive = JointProperties(armature=1.0)
    ball = SpatialInertia.point_mass(1.0)
    tree = Multibody().add_body("ball", ball, "revolute", properties=drive)
    assert tree.forward_dynamics([0.0], [0.0], [2.0]) == pytest.approx([2.0])
    with pytest.raises(ValueError, match="moves no inertia"):
        tree.momentum_dynamics  # noqa: B018


FUNCTIONS = {
    "q": ("connection_coefficients", "mass_matrix_derivatives", "mass_matrix_inverse_derivatives"),
    "q v": ("lagrange_equations",),
    "q v a": ("linearized_equations", "linearized_error_equations"),
    "q momenta tau": ("momentum_dynamics",),
}
STACKED = {
    "system_jacobian": 1,
    "system_matrices": 2,
    "euler_jourdain_equations": 2,
    "body_momenta": 2,
}


def test_symbolic_parameters_mean_what_numbers_mean(rng):
    """A tree with other numbers is the tree with these numbers as its parameters."""
    tree = TREES["driven"]
    symbolic = tree.symbolic("ball.mass", "ball.inertia", "a.placement", "follower.stiffness")
    nominal = symbolic.parameter_values
    q, v, a, tau, _ = zoo.state(tree, rng)
    values = {"q": q, "v": v, "a": a, "tau": tau}
    values["momenta"] = tree.body_momenta()(q, v)
    pairs = []
    for arguments, names in FUNCTIONS.items():
        given = [values[key] for key in arguments.split()]
        pairs += [(getattr(tree, n), getattr(symbolic, n), given) for n in names]
    for name, count in STACKED.items():
        pairs.append((getattr(tree, name)(), getattr(symbolic, name)(), [q, v][:count]))
    heavier = nominal.copy()
    heavier[0] *= 2.0
    changed = set()
    for ours, theirs, given in pairs:
        one, other = ours(*given), theirs(*given, p=nominal)
        third = theirs(*given, p=heavier)
        if not isinstance(one, tuple):
            one, other, third = (one,), (other,), (third,)
        for x, y, z in zip(one, other, third, strict=True):
            assert error(y, x) < EXACT
            if error(z, x) > FAILS:
                changed.add(ours.name)
    unmoved = {ours.name for ours, _, _ in pairs} - changed
    assert unmoved == {"system_jacobian_of_body"}


def test_parameters_and_empty_trees():
    ball = SpatialInertia.point_mass(2.0, [0, 0, -1])
    tree = Multibody().add_body("ball", ball, "revolute", axis="y").symbolic("ball.mass")
    e = tree.lagrange_equations([np.pi / 2], [0.0], p=[3.0])
    assert e.M == pytest.approx(np.array([[3.0]])) and e.Q == pytest.approx([-3 * 9.81])
    empty = Multibody()
    assert empty.system_jacobian()([]).shape == (0, 0)
    assert empty.lagrange_equations([], []).M.shape == (0, 0)


def test_unknown_reference_lists_the_known():
    with pytest.raises(ValueError, match="hybrid"):
        TREES["free"].system_jacobian("inertial")


@pytest.mark.parametrize("q", [[0.0, 0.0], np.zeros(2), ca.SX.sym("q", 2)])
def test_coordinates_in_place_of_a_reference_explain_the_two_steps(q):
    with pytest.raises(TypeError, match="two steps"):
        TREES["revolute"].system_jacobian(q)


def test_momentum_dynamics_grows_with_the_number_of_bodies(rng):
    """Operations of twice as many bodies are at most some twice as many: no matrix is factored."""

    def operations(count):
        tree = Multibody()
        for k in range(count):
            ball = SpatialInertia.box(1.0, (0.1, 0.2, 0.3), rng.normal(size=3) / 30)
            parent = f"b{k - 1}" if k else "world"
            tree = tree.add_body(f"b{k}", ball, "revolute", parent, [0, 0, 0.3], axis="xyz"[k % 3])
        return tree.momentum_dynamics.function.n_instructions()

    assert operations(32) < 2.3 * operations(16)


@pytest.mark.parametrize("count", [4, 30])  # by the factor, by the recursion
def test_velocities_of_momenta_that_no_velocity_has(count, rng):
    """The nearest momenta in the metric of the inverse inertias, with and without a recursion."""
    tree = Multibody()
    for k in range(count):
        ball = SpatialInertia.box(1.0, (0.1, 0.2, 0.3), rng.normal(size=3) / 30)
        parent = f"b{k - 1}" if k else "world"
        tree = tree.add_body(f"b{k}", ball, "revolute", parent, [0, 0.1, 0.3], axis="xyz"[k % 3])
    q, momenta = rng.normal(size=tree.nv), rng.normal(size=(count, 6))
    J = tree.system_jacobian("spatial")(q)
    v, _ = tree.momentum_dynamics(q, momenta, np.zeros(tree.nv))
    M = tree.mass_matrix(q)
    np.testing.assert_allclose(M @ v, J.T @ momenta.ravel(), rtol=1e-9, atol=1e-9)

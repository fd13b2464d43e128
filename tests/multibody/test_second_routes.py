"""Every function against another way to the same number: Lagrange, derivatives, definitions."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.mechanics import Multibody

from . import zoo

pytestmark = pytest.mark.usually(tree=zoo.FEW, kind=zoo.FEW)

EXACT = 1e-10  # both routes are exact: rounding of sums of a few hundred products
REFERENCES = ("body", "spatial", "hybrid", "mixed")


def trees():
    rng = np.random.default_rng(4)
    return {
        **{kind: zoo.pair(kind, rng) for kind in zoo.JOINTS},
        "branched": zoo.branched(rng),
        "driven": zoo.driven(rng),
    }


TREES = trees()
# All references for joints of many sorts together, else one in turn.
CASES = [
    (kind, reference)
    for i, kind in enumerate(TREES)
    for reference in (REFERENCES if kind in ("branched", "driven") else (REFERENCES[i % 4],))
]


@pytest.fixture(params=TREES)
def tree(request):
    return TREES[request.param]


def close(ours, theirs, tolerance=EXACT):
    scale = max(1.0, np.abs(theirs).max(initial=0.0))
    assert ours.shape == np.shape(theirs)
    assert np.abs(ours - theirs).max(initial=0.0) < tolerance * scale


def along(tree, function, *, arguments="q"):
    """Derivative of a function of q (and v) in tangent coordinates, by AD, as a callable."""
    q, v, d = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv), ca.SX.sym("d", tree.nv)
    moved = tree.configuration.plus(q, d)
    values = [moved] if arguments == "q" else [moved, v]
    slope = ca.jacobian(ca.vec(function(*values)), d)
    slope = ca.substitute(slope, d, ca.DM.zeros(tree.nv))
    made = ca.Function("slope", [q, v], [ca.densify(slope)])
    still = np.zeros(tree.nv)
    return lambda q, v=still: np.array(made(q, v))


def test_inverse_dynamics_is_lagranges(tree, rng):
    """d/dt ∂T/∂v − ad_vᵀ ∂T/∂v − ∂(T − V)/∂q = forces, from the energies alone."""
    q, v, a, _, _ = zoo.state(tree, rng)
    qs, vs, d = ca.SX.sym("q", tree.nq), ca.SX.sym("v", tree.nv), ca.SX.sym("d", tree.nv)
    moved = tree.configuration.plus(qs, d)
    T, V = tree.kinetic_energy(moved, vs), tree.potential_energy(moved)
    momentum = ca.gradient(T, vs)
    a_s = ca.SX.sym("a", tree.nv)
    rate = ca.jtimes(momentum, d, vs) + ca.jtimes(momentum, vs, a_s)
    forces = rate - tree.configuration.ad(vs).T @ momentum - ca.gradient(T - V, d)
    forces = ca.substitute(forces, d, ca.DM.zeros(tree.nv))
    lagrange = np.array(ca.Function("f", [qs, vs, a_s], [forces])(q, v, a)).ravel()
    losses = tree.inverse_dynamics(q, v, a) - _without_losses(tree).inverse_dynamics(q, v, a)
    close(tree.inverse_dynamics(q, v, a) - losses, lagrange)


def _without_losses(tree):
    from dataclasses import replace

    own = {
        link.joint_name: replace(link.properties, damping=0.0, friction=0.0)
        for link in map(tree.link, tree.links)
        if not link.joint.is_fixed
    }
    return tree.with_properties(**own)


def test_losses_take_energy(rng):
    tree = TREES["driven"]
    q, v, a, _, _ = zoo.state(tree, rng)
    losses = tree.inverse_dynamics(q, v, a) - _without_losses(tree).inverse_dynamics(q, v, a)
    own = {link.joint_name: link.properties for link in map(tree.link, tree.links)}
    leader, follower = v[0], -0.7 * v[0]
    expected = sum(
        0.2 * s**2 + 0.4 * s * np.tanh(s / own["a"].friction_speed) for s in (leader, follower)
    )
    close(v @ losses, expected + 0.1 * v[1:] @ v[1:])


def test_forward_dynamics_inverts_inverse_dynamics(tree, rng):
    q, v, _, tau, wrenches = zoo.state(tree, rng, (3,))
    ways = ["forward_dynamics", "forward_dynamics_by_factor"]
    for way in ways + ["forward_dynamics_by_recursion"] * (not tree.is_coupled):
        a = getattr(tree, way)(q, v, tau, wrenches)
        close(tree.inverse_dynamics(q, v, a, wrenches), tau, 1e-9)


def test_mass_matrix_is_the_slope_of_inverse_dynamics(tree, rng):
    q, v, *_ = zoo.state(tree, rng)
    columns = [tree.inverse_dynamics(q, v, e) - tree.bias_forces(q, v) for e in np.eye(tree.nv)]
    M = tree.mass_matrix(q)
    close(M, np.transpose(columns))
    close(tree.mass_matrix_inverse(q) @ M, np.eye(tree.nv), 1e-9)


def test_derivatives_of_inverse_dynamics(tree, rng):
    q, v, a, _, wrenches = zoo.state(tree, rng)
    slopes = tree.inverse_dynamics_derivatives(q, v, a, wrenches)

    def forces(x):
        return tree.inverse_dynamics(x, v, a, wrenches)

    close(slopes.d_tau_d_q, along(tree, forces)(q))
    speed = ca.SX.sym("v", tree.nv)
    slope = ca.jacobian(tree.inverse_dynamics(q, speed, a), speed)
    close(slopes.d_tau_d_v, np.array(ca.Function("s", [speed], [ca.densify(slope)])(v)))
    close(slopes.d_tau_d_a, tree.mass_matrix(q))


def test_derivatives_of_forward_dynamics(tree, rng):
    q, v, _, tau, wrenches = zoo.state(tree, rng)
    slopes = tree.forward_dynamics_derivatives(q, v, tau, wrenches)

    def accelerations(x):
        return tree.forward_dynamics_by_factor(x, v, tau, wrenches)

    close(slopes.d_a_d_q, along(tree, accelerations)(q), 1e-8)
    speed = ca.SX.sym("v", tree.nv)
    slope = ca.jacobian(tree.forward_dynamics_by_factor(q, speed, tau, wrenches), speed)
    close(slopes.d_a_d_v, np.array(ca.Function("s", [speed], [ca.densify(slope)])(v)), 1e-8)
    close(slopes.d_a_d_tau, tree.mass_matrix_inverse(q), 1e-9)


def test_coriolis_matrix(tree, rng):
    q, v, *_ = zoo.state(tree, rng)
    bare = _without_losses(tree)
    C = tree.coriolis_matrix(q, v)
    close(C @ v, bare.bias_forces(q, v) - bare.gravity_forces(q))
    rate = (along(tree, tree.mass_matrix)(q) @ v).reshape(tree.nv, tree.nv)
    close(C + C.T, rate)


def test_regressor(tree, rng):
    q, v, a, *_ = zoo.state(tree, rng)
    bodies = tree.inverse_dynamics_regressor(q, v, a) @ tree.inertial_parameters
    drives = tree.inverse_dynamics(q, v, a) - bodies
    # What is left are drives, losses and springs: nothing where joints have none.
    if tree.name != "driven":
        close(drives, np.zeros(tree.nv))
    else:
        leader = 0.3 * a[0] * (1 + 0.7**2)
        still = tree.inverse_dynamics(q, v, np.zeros(tree.nv)) - (
            tree.inverse_dynamics_regressor(q, v, 0 * a) @ tree.inertial_parameters
        )
        close((drives - still)[0], leader)


def test_joint_wrenches_hold_the_joints(rng):
    for kind in ("revolute_any", "cylindrical", "spherical", "schoenflies"):
        tree = TREES[kind]
        q, v, a, _, wrenches = zoo.state(tree, rng)
        W = tree.joint_wrenches(q, v, a, wrenches)
        tau = tree.inverse_dynamics(q, v, a, wrenches)
        S = zoo.JOINTS[kind].motion_subspace(q[: zoo.JOINTS[kind].nq])
        close(S.T @ W[0], tau[: S.shape[1]])


def test_wrench_through_a_fixed_joint(rng):
    """A force-torque sensor between link and tool, by Newton and Euler."""
    tree = TREES["revolute_any"]
    q, v, a, _, wrenches = zoo.state(tree, rng)
    every = tree.joint_wrenches(q, v, a, wrenches)
    close(tree.joint_wrench("b")(q, v, a, wrenches), every[tree.bodies.index("b")])
    # The tool alone is beyond its fixed joint: m (r̈ − g) at its centre of mass.
    tool = next(link.inertia for link in map(tree.link, tree.links) if link.name == "tool")
    at = tree.add_frame("center", "tool", tool.center_of_mass)
    f = tool.mass * (at.acceleration("center", "hybrid")(q, v, a)[:3] - tree.gravity)
    R = SE3.homogeneous(tree.placement("tool")(q))[:3, :3]
    V, A = tree.velocity("tool")(q, v), tree.acceleration("tool")(q, v, a)
    f = R.T @ f
    spin = tool.inertia @ A[3:] + np.cross(V[3:], tool.inertia @ V[3:])
    expected = np.concatenate([f, spin + np.cross(tool.center_of_mass, f)])
    close(tree.joint_wrench("tool")(q, v, a), expected)
    # A joint may be called like another link.
    odd = tree.add_body("b2", tool, "fixed", "tool", joint_name="tip2")
    odd = odd.add_body("tip2", tool, joint_name="other")
    assert odd.joint_wrench("tip2")(q, 0 * v, 0 * a)[:3] @ tree.gravity != 0
    with pytest.raises(KeyError, match="unknown joint 'tol'"):
        tree.joint_wrench("tol")


@pytest.mark.parametrize(("kind", "reference"), CASES)
def test_jacobian_and_its_rate(kind, reference, rng):
    tree = TREES[kind]
    q, v, a, *_ = zoo.state(tree, rng)
    frame = "tip" if "tip" in tree.frames else tree.bodies[-1]
    J = tree.jacobian(frame, reference)(q)
    close(J @ v, tree.velocity(frame, reference)(q, v))
    rate = along(tree, tree.jacobian(frame, reference))(q) @ v
    close(tree.jacobian_rate(frame, reference)(q, v), rate.reshape(6, tree.nv, order="F"))
    # The body Jacobian is the derivative of the placement.
    h = 1e-6
    T = tree.placement(frame)
    plus = [T(tree.configuration.plus(q, h * e)) for e in np.eye(tree.nv)]
    minus = [T(tree.configuration.plus(q, -h * e)) for e in np.eye(tree.nv)]
    difference = SE3.minus(np.array(plus), np.array(minus)).T / (2 * h)
    close(tree.jacobian(frame)(q), difference, 1e-7)  # of a central difference


def test_accelerations_of_a_frame(tree, rng):
    q, v, a, *_ = zoo.state(tree, rng)
    frame = "tip" if "tip" in tree.frames else tree.bodies[-1]
    body = tree.jacobian(frame)(q) @ a + tree.jacobian_rate(frame)(q, v) @ v
    close(tree.acceleration(frame, "body", "spatial")(q, v, a), body)
    hybrid = tree.jacobian(frame, "hybrid")(q) @ a + tree.jacobian_rate(frame, "hybrid")(q, v) @ v
    close(tree.acceleration(frame, "hybrid")(q, v, a), hybrid)
    mixed = tree.acceleration(frame, "mixed")(q, v, a)
    close(mixed, np.concatenate([hybrid[:3], body[3:]]))


def test_momentum(tree, rng):
    q, v, a, *_ = zoo.state(tree, rng)
    A, rate = tree.centroidal_momentum_matrix(q), tree.centroidal_momentum_matrix_rate(q, v)
    close(A @ v, tree.centroidal_momentum(q, v))
    close(A @ a + rate @ v, tree.centroidal_momentum_rate(q, v, a))
    slope = along(tree, tree.centroidal_momentum_matrix)(q) @ v
    close(rate, slope.reshape(6, tree.nv, order="F"))
    J = along(tree, tree.center_of_mass)(q)
    close(tree.center_of_mass_jacobian(q), J)
    close(tree.center_of_mass_velocity(q, v), J @ v)


def test_body_velocities_are_those_of_their_frames(tree, rng):
    q, v, a, *_ = zoo.state(tree, rng)
    twists, rates = tree.body_velocities(q, v), tree.body_accelerations(q, v, a)
    for i, body in enumerate(tree.bodies):
        close(twists[i], tree.velocity(body)(q, v))
        close(rates[i], tree.acceleration(body, "body", "spatial")(q, v, a))


def test_external_wrenches_act_through_jacobians(tree, rng):
    q, v, a, _, wrenches = zoo.state(tree, rng)
    moved = tree.inverse_dynamics(q, v, a) - tree.inverse_dynamics(q, v, a, wrenches)
    pushed = sum(tree.jacobian(b)(q).T @ w for b, w in zip(tree.bodies, wrenches, strict=True))
    close(moved, pushed)


@pytest.mark.parametrize("reference", REFERENCES)
def test_wrench_on_a_frame_is_dual_to_its_twist(reference, rng):
    tree = TREES["spherical_zyx"]
    q, v, a, *_ = zoo.state(tree, rng)
    wrench = rng.normal(size=6)
    wrenches = tree.wrenches_at("tip", reference)(q, wrench)
    assert wrenches.shape == (len(tree.bodies), 6)
    moved = tree.inverse_dynamics(q, v, a) - tree.inverse_dynamics(q, v, a, wrenches)
    close(moved, tree.jacobian("tip", reference)(q).T @ wrench)


@pytest.mark.usually(kind=zoo.JOINTS)
@pytest.mark.parametrize("kind", zoo.JOINTS)
def test_joint_kinematics(kind, rng):
    joint = zoo.JOINTS[kind]
    group = joint.group
    q, v, h = group.random(rng), rng.normal(size=joint.dim), 1e-6
    ahead, behind = group.plus(q, h * v), group.plus(q, -h * v)
    T, rate = joint.transform(q), (joint.transform(ahead) - joint.transform(behind)) / (2 * h)
    close(SE3.vee(np.linalg.inv(T) @ rate), joint.motion_subspace(q) @ v, 1e-8)
    slope = (joint.motion_subspace(ahead) - joint.motion_subspace(behind)) / (2 * h)
    close(joint.motion_subspace_rate(q, v), slope, 1e-8)


def test_manipulability_is_the_product_of_singular_values(rng):
    """Of J with more columns than rows, as many, and fewer; zero with slope zero where singular."""
    tree = zoo.branched(rng)
    frame = tree.bodies[-1]
    for axes in (("x",), ("x", "y", "z"), ("x", "y", "z", "rx", "ry", "rz")):
        q = tree.configuration.random(rng, (3,))
        rows = ["x y z rx ry rz".split().index(axis) for axis in axes]
        J = tree.jacobian(frame, "hybrid")(q)[:, rows]
        least = min(len(rows), tree.nv)
        expected = np.linalg.svd(J)[1][:, :least].prod(axis=-1)
        assert tree.manipulability(frame, axes)(q) == pytest.approx(expected, rel=1e-6, abs=1e-7)
    rod = Multibody().add_body("a", zoo.random_inertia(rng), "revolute")
    rod = rod.add_body("b", zoo.random_inertia(rng), "revolute", "a", [1, 0, 0])
    easy = rod.add_frame("tip", "b", [1, 0, 0]).manipulability("tip", ("x", "y"))
    angle = ca.SX.sym("q", 2)
    slope = ca.Function("slope", [angle], [easy(angle), ca.gradient(easy(angle), angle)])
    assert [value.full().ravel().tolist() for value in slope([0.3, 0.0])] == [[0.0], [0.0, 0.0]]
    assert slope([0.3, 0.5])[1].full().ravel() == pytest.approx([0.0, np.cos(0.5)], abs=1e-9)

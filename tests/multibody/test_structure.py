"""Building trees: order, names, screws, couplings, locking, attaching, parameters, errors."""

import pickle
import time

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Helical, Rn, Translation
from lgcontrol.mechanics import Joint, JointProperties, Mimic, Multibody, SpatialInertia
from lgcontrol.mechanics._internal import TreeFunction

from . import zoo

EXACT = 1e-11  # rounding of a few hundred products
HALF = np.sqrt(0.5)
ROD = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])


def same_dynamics(one, other, rng, q_other=None):
    q, v, a, tau, wrenches = zoo.state(one, rng, (4,))
    ours, theirs = one.inverse_dynamics(q, v, a), other.inverse_dynamics(q, v, a)
    assert np.abs(ours - theirs).max() < EXACT * max(1.0, np.abs(ours).max())
    assert np.abs(one.mass_matrix(q) - other.mass_matrix(q)).max() < EXACT * 10


def test_joints_are_depth_first_in_the_order_added():
    tree = Multibody()
    for name, parent in (("a", "world"), ("b", "a"), ("c", "a"), ("b1", "b"), ("d", "world")):
        tree = tree.add_body(name, None, "revolute", parent)
    assert tree.joints == ("a", "b", "b1", "c", "d")
    assert tree.bodies == tree.joints


def test_adding_leaves_the_tree_as_it_was():
    tree = Multibody().add_body("a", ROD, "revolute")
    tree.add_body("b", ROD, "revolute", "a").add_frame("tip", "b")
    assert tree.joints == ("a",) and "tip" not in tree.frames


def test_screws_and_joint_frames_give_the_same_model(rng):
    """Müller 2018, section 4.4: exp(Y q) with world screws against placements and axes."""
    axes = {"a": ([0, 0, 1], [0, 0, 0.3], 0.0), "b": ([0.6, 0, 0.8], [0.1, 0.5, 0.2], 0.1)}
    axes["c"] = ([0, 1, 0], [1.0, 0.2, -0.3], None)
    screws, inertias, framed = {}, {}, Multibody()
    before, last = "world", np.zeros(3)
    for body, (n, r, pitch) in axes.items():
        n, r = np.array(n, float), np.array(r, float)
        inertias[body] = zoo.random_inertia(rng)
        if pitch is None:
            screws[body] = [*n, 0, 0, 0]
            joint = Joint.of("prismatic", axis=n)
        else:
            screws[body] = [*(np.cross(r, n) + pitch * n), *n]
            joint = Joint.of("helical", axis=n, pitch=pitch)
        inertia = inertias[body].transformed(SE3.from_position(-r))
        framed = framed.add_body(body, inertia, joint, before, r - last)
        before, last = body, r
    tree = Multibody.from_screws(screws, inertias)
    same_dynamics(framed, tree, rng)
    # Without joint frames all body frames are the world's at q = 0.
    for body in tree.bodies:
        assert np.abs(tree.placement(body)(tree.neutral) - SE3.identity).max() < EXACT
    q = rng.normal(size=3)
    product = SE3.identity
    for Y, angle in zip(screws.values(), q, strict=True):
        product = SE3.compose(product, SE3.exp(np.array(Y) * angle))
    assert SE3.distance(tree.placement("c")(q), product) < EXACT


def test_screws_of_a_tree_and_their_errors():
    screws = {"a": [0, 0, 0, 0, 0, 1], "b": [0, 0, 0, 0, 1, 0], "c": [1, 0, 0, 0, 0, 0]}
    tree = Multibody.from_screws(screws, {}, parents={"b": "a", "c": "a"})
    assert [link.parent for link in map(tree.link, tree.links)] == ["world", "a", "a"]
    with pytest.raises(ValueError, match="unit vector"):
        Multibody.from_screws({"a": [0, 0, 0, 0, 0, 2]}, {})
    with pytest.raises(ValueError, match="unit direction"):
        Multibody.from_screws({"a": [0, 0, 3, 0, 0, 0]}, {})
    with pytest.raises(KeyError, match="unknown body 'd'"):
        Multibody.from_screws(screws, {"d": ROD})


@pytest.mark.usually(kind=("composite",))
@pytest.mark.parametrize("kind", ["branched", "composite"])
def test_moving_all_reference_frames_changes_nothing(kind, rng):
    """Frame invariance: dynamics, momentum and the frames that did not move."""
    tree = zoo.branched(rng) if kind == "branched" else zoo.pair(kind, rng)
    moved = tree.move_frames(**{link: zoo.pose(rng) for link in tree.links})
    same_dynamics(tree, moved, rng)
    q, v, a, tau, _ = zoo.state(tree, rng)
    for function in ("forward_dynamics", "inverse_dynamics_derivatives"):
        for x, y in zip(
            np.atleast_2d(getattr(tree, function)(q, v, tau)),
            np.atleast_2d(getattr(moved, function)(q, v, tau)),
            strict=True,
        ):
            assert np.abs(np.asarray(x) - np.asarray(y)).max() < 1e-8
    for function in ("centroidal_momentum", "kinetic_energy", "coriolis_matrix"):
        x, y = getattr(tree, function)(q, v), getattr(moved, function)(q, v)
        assert np.abs(x - y).max() < EXACT * max(1.0, np.abs(x).max())
    assert tree.potential_energy(q) == pytest.approx(moved.potential_energy(q), abs=1e-9)
    if "tip" in tree.frames:
        assert SE3.distance(tree.placement("tip")(q), moved.placement("tip")(q)) < EXACT


def test_composite_joint_is_its_chain_of_massless_links(rng):
    tip, steps = zoo.random_inertia(rng), zoo.JOINTS["composite"].steps
    composite = Multibody().add_body("a", tip, zoo.JOINTS["composite"])
    chain, parent = Multibody(), "world"
    for i, (placement, group) in enumerate(steps):
        name = f"link{i}"
        chain = chain.add_body(name, tip if i == 2 else None, group, parent, placement)
        parent = name
    same_dynamics(composite, chain, rng)


def test_mimic_is_an_exact_elimination(rng):
    """K maps the leader's velocity to all joints': M = Kᵀ M' K, τ = Kᵀ τ'."""
    coupled, free = Multibody(), Multibody()
    parent = "world"
    for name, mimic in (
        ("a", None),
        ("b", Mimic("a", -2.0, 0.3)),
        ("c", None),
        ("d", Mimic("c", 0.5, -0.1)),
    ):
        inertia, placement = zoo.random_inertia(rng), zoo.pose(rng)
        properties = JointProperties(armature=0.2, damping=0.1, stiffness=0.5)
        for coupling in (True, False):
            tree = coupled if coupling else free
            tree = tree.add_body(
                name,
                inertia,
                "revolute",
                parent,
                placement,
                axis=[1, 1, 0],
                properties=properties,
                mimic=mimic if coupling else None,
            )
            coupled, free = (tree, free) if coupling else (coupled, tree)
        parent = "a" if name == "b" else name  # a branch and a chain
    assert coupled.joints == ("a", "c") and coupled.is_coupled
    K = np.array([[1, 0], [-2, 0], [0, 1], [0, 0.5]])
    q, v, a, tau, wrenches = zoo.state(coupled, rng)
    full = K @ q + [0, 0.3, 0, -0.1]
    order = [free.joints.index(name) for name in "abcd"]
    K = K[np.argsort(order)]
    full = full[np.argsort(order)]
    tau_free = free.inverse_dynamics(full, K @ v, K @ a)
    assert coupled.inverse_dynamics(q, v, a) == pytest.approx(K.T @ tau_free, abs=1e-10)
    assert coupled.mass_matrix(q) == pytest.approx(K.T @ free.mass_matrix(full) @ K, abs=1e-10)
    slopes, whole = (
        coupled.inverse_dynamics_derivatives(q, v, a),
        free.inverse_dynamics_derivatives(full, K @ v, K @ a),
    )
    for ours, theirs in zip(slopes, whole, strict=True):
        assert ours == pytest.approx(K.T @ theirs @ K, abs=1e-9)
    J = free.jacobian("d")(full) @ K
    assert coupled.jacobian("d")(q) == pytest.approx(J, abs=1e-12)
    assert coupled.kinetic_energy(q, v) == pytest.approx(free.kinetic_energy(full, K @ v))
    with pytest.raises(ValueError, match="close loops"):
        _ = coupled.forward_dynamics_by_recursion


def test_chains_of_mimics_take_linear_work(rng):
    """A snake of joints that all follow one of two: M by coordinates, not by pairs of joints."""

    def snake(n, mimics=True):
        tree, parent = Multibody(), "world"
        for k in range(n):
            follows = Mimic("ab"[k % 2], 1.0 + k / n) if mimics and k > 1 else None
            name = "ab"[k] if k < 2 else f"c{k}"
            rod = SpatialInertia.box(1.0 + k, [0.1, 0.2, 0.3])
            axis = "xyz"[k % 3]
            tree = tree.add_body(
                name, rod, "revolute", parent, [0.1, 0, 0.2, 0, 0, 0, 1], axis=axis, mimic=follows
            )
            parent = name
        return tree

    free, coupled = snake(9, mimics=False), snake(9)
    K = np.zeros((9, 2))
    for k in range(9):
        K[k, k % 2] = 1.0 if k < 2 else 1.0 + k / 9
    q = rng.normal(size=2)
    wanted = K.T @ free.mass_matrix(K @ q) @ K
    np.testing.assert_allclose(coupled.mass_matrix(q), wanted, rtol=1e-12)
    some, more = (snake(n).mass_matrix.instructions for n in (20, 40))
    assert more < 2.3 * some


def test_multipliers_that_no_gear_has_are_refused():
    with pytest.raises(ValueError, match=r"mimic of 'a' is 1e\+308: .* rad or m of this joint per"):
        Mimic("a", 1e308)


def test_limits_of_a_mimic_bind_its_leader():
    tree = Multibody().add_body(
        "a", ROD, "revolute", properties=JointProperties(lower=-1, upper=1, effort=5, velocity=3)
    )
    tree = tree.add_body(
        "b",
        ROD,
        "revolute",
        "a",
        mimic=Mimic("a", -2.0, 0.5),
        properties=JointProperties(lower=-0.5, upper=0.9, velocity=4),
    )
    limits = tree.limits
    assert limits["lower"] == pytest.approx([-0.2]) and limits["upper"] == pytest.approx([0.5])
    assert limits["velocity"] == pytest.approx([2.0]) and limits["effort"] == pytest.approx([5.0])


def test_followers_of_followers_are_refused():
    """Their leader's multiplier would be lost; a description that is read has them resolved."""
    tree = Multibody().add_body("a", ROD, "revolute")
    tree = tree.add_body("b", ROD, "revolute", "a", mimic=Mimic("a", 2.0))
    with pytest.raises(KeyError, match="joint 'c' mimics 'b': unknown leading joint 'b'; .* are a"):
        tree.add_body("c", ROD, "revolute", "b", mimic=Mimic("b", 2.0))


def test_frames_stand_on_frames():
    tree = Multibody().add_body("a", ROD, "revolute", axis="y").add_frame("wrist", "a", [0, 0, 1])
    tree = tree.add_frame("tip", "wrist", [0, 0, 0.5])
    assert tree.position("tip")([0.0]) == pytest.approx([0, 0, 1.5])


def test_locking_holds_joints_and_their_followers(rng):
    tree = zoo.branched(rng)
    held = tree.configuration.split(tree.configuration.random(rng))["leg00"]
    locked = tree.lock(leg00=held)
    q, v, a, *_ = zoo.state(locked, rng)
    blocks = locked.configuration.split(q) | {"leg00": held}
    full = tree.configuration.join(**blocks)
    rates = locked.configuration.split_tangent(v) | {"leg00": np.zeros(2)}
    speeds = tree.configuration.join_tangent(**rates)
    assert locked.kinetic_energy(q, v) == pytest.approx(tree.kinetic_energy(full, speeds))
    assert locked.placement("leg01")(q) == pytest.approx(tree.placement("leg01")(full))
    coupled = Multibody().add_body("a", ROD, "revolute")
    coupled = coupled.add_body("b", ROD, "revolute", "a", mimic=Mimic("a", 2.0, 0.1))
    still = coupled.lock(a=0.4)
    assert still.nv == 0
    expected = coupled.placement("b")([0.4])
    assert still.placement("b")(np.zeros(0)) == pytest.approx(expected)


def test_attached_trees_move_as_one(rng):
    vehicle = Multibody("vehicle").add_body("hull", zoo.random_inertia(rng), "free")
    arm = Multibody("arm").add_body("link1", zoo.random_inertia(rng), "revolute", axis="y")
    arm = arm.add_body("link2", zoo.random_inertia(rng), "spherical", "link1", [0, 0, 1])
    arm = arm.add_frame("tip", "link2", [0, 0, 0.5])
    mount = zoo.pose(rng)
    both = vehicle.attach(arm, "hull", mount, prefix="arm/")
    assert both.joints == ("hull", "arm/link1", "arm/link2")
    assert tuple(both.configuration.blocks) == ("hull", "arm_link1", "arm_link2")
    q, v, *_ = zoo.state(both, rng)
    base, rest = q[:7], q[7:]
    expected = SE3.compose(SE3.compose(base, mount), arm.placement("tip")(rest))
    assert SE3.distance(both.placement("arm/tip")(q), expected) < EXACT
    assert both.mass == pytest.approx(vehicle.mass + arm.mass)
    with pytest.raises(KeyError, match="unknown link 'deck'"):
        vehicle.attach(arm, "deck")


def test_parameters_are_symbols_with_nominal_values(rng):
    tree = zoo.pair("revolute_any", rng)
    names = ("b.mass", "tool.inertia", "a.center_of_mass", "b.placement", "gravity.z", "c.damping")
    symbolic = tree.symbolic(*names)
    assert symbolic.parameters[0] == "b.mass" and "tool.inertia.xz" in symbolic.parameters
    same_dynamics(tree, symbolic, rng)
    q, v, a, *_ = zoo.state(tree, rng)
    p = symbolic.parameter_values
    p[symbolic.parameters.index("b.mass")] *= 3
    p[symbolic.parameters.index("gravity.z")] = -1.6
    own = next(link.inertia for link in map(tree.link, tree.links) if link.name == "b")
    heavier = SpatialInertia(3 * own.mass, own.center_of_mass, own.inertia)
    other = Multibody(gravity=[0.3, -0.5, -1.6])
    for link in map(tree.link, tree.links):
        inertia = heavier if link.name == "b" else link.inertia
        other = other.add_body(link.name, inertia, link.joint, link.parent, link.placement)
    expected = other.inverse_dynamics(q, v, a)
    assert symbolic.inverse_dynamics(q, v, a, p=p) == pytest.approx(expected, abs=1e-10)
    lists = [list(x) for x in (q, v, a, p)]
    assert symbolic.inverse_dynamics(*lists[:3], p=lists[3]) == pytest.approx(expected, abs=1e-10)
    # Forces are linear in the mass: the derivative by it is a difference quotient.
    symbol = ca.SX.sym("p", len(p))
    slope = ca.jacobian(symbolic.inverse_dynamics(q, v, a, p=symbol), symbol[0])
    slope = np.array(ca.Function("s", [symbol], [ca.densify(slope)])(p)).ravel()
    p2 = p.copy()
    p2[0] += 1.0
    moved = symbolic.inverse_dynamics(q, v, a, p=p2) - symbolic.inverse_dynamics(q, v, a, p=p)
    assert slope == pytest.approx(moved, abs=1e-9)
    with pytest.raises(KeyError, match=r"unknown parameter 'b\.weight'.*b\.mass"):
        tree.symbolic("b.weight")


def test_parameters_accumulate():
    tree = Multibody().add_body("a", ROD, "revolute").add_body("b", ROD, "revolute", "a")
    both = tree.symbolic("a.mass").symbolic("b.mass", "a.mass")
    assert both.parameters == ("a.mass", "b.mass")
    assert both.mass_matrix([0.0, 0.3], p=[0.0, 0.0]) == pytest.approx(
        _without_mass(tree).mass_matrix([0.0, 0.3])
    )


def _without_mass(tree):
    bare = Multibody()
    for link in map(tree.link, tree.links):
        own = SpatialInertia(0.0, [0, 0, 0], link.inertia.inertia, check="ignore")
        bare = bare.add_body(link.name, own, link.joint, link.parent)
    return bare


def test_parameters_of_held_joints_are_gone():
    drives = JointProperties(damping=0.1)
    tree = Multibody().add_body("a", ROD, "revolute", axis="y", properties=drives)
    tree = tree.add_body("b", ROD, "revolute", "a", [0, 0, -1], axis="y", properties=drives)
    symbolic = tree.symbolic("b.damping", "a.damping", "b.mass", "b.placement.z")
    held = symbolic.lock(b=0.3)
    assert held.parameters == ("a.damping", "b.mass", "b.placement.z")
    assert held.mass_matrix([0.2]) == pytest.approx(tree.lock(b=0.3).mass_matrix([0.2]))
    p = held.parameter_values
    p[1] *= 2
    assert not held.mass_matrix([0.2], p=p) == pytest.approx(held.mass_matrix([0.2]))


def test_attached_trees_have_one_gravity():
    base = Multibody("base").add_body("hull", ROD, "free")
    arm = Multibody("arm", gravity=[0, 0, 0]).add_body("link", ROD, "revolute")
    with pytest.raises(ValueError, match=r"arm has the gravity \(0.0, 0.0, 0.0\), base that"):
        base.attach(arm, "hull")


def test_every_joint_frame_has_a_name():
    """A joint's frame is called after the joint, or "joint NAME" where a link has the name."""
    tree = Multibody().add_body("a", ROD, "revolute", axis="y", joint_name="b")
    tree = tree.add_body("b", ROD, "revolute", "a", [0, 0, 1], axis="y", joint_name="c")
    tree = tree.add_body("d", ROD, "revolute", "b", [0, 0, 1], axis="y", offset=[1, 0, 0])
    tree = tree.add_frame("c", "d", [0, 1, 0])
    assert tree.frames == ("world", "a", "b", "d", "c", "joint b", "joint c", "joint d")
    q = [0.3, 0.4, 0.5]

    def same(one, other):
        assert tree.placement(one)(q) == pytest.approx(tree.placement(other)(q), abs=1e-15)

    same("joint b", "a")
    same("joint c", "b")
    away = SE3.compose(tree.placement("joint d")(q), SE3.from_position([1, 0, 0]))
    assert SE3.distance(tree.placement("d")(q), away) < EXACT
    assert SE3.distance(tree.placement("b")(q), tree.placement("joint b")(q)) > 0.5
    plain = Multibody().add_body("a", ROD, "revolute").add_body("b", ROD, parent="a")
    assert plain.frames == ("world", "a", "b")


def test_springs_rest_on_the_group():
    def hinge(joint, rest):
        spring = JointProperties(stiffness=2.0, rest=rest)
        return Multibody().add_body("door", ROD, joint, axis="z", properties=spring)

    typed = hinge("continuous", [0.7071068, 0.7071068])
    assert typed.gravity_forces([HALF, HALF]) == pytest.approx([0.0], abs=EXACT)
    assert hinge("revolute", 0.5).gravity_forces([0.5]) == pytest.approx([0.0], abs=EXACT)
    for joint, rest, message in (
        ("continuous", [2.0, 0.0], "joint 'door': rest = .* is no element of SO2"),
        ("continuous", [0.5], r"joint 'door': rest has shape \(1,\), expected \(2,\)"),
        ("revolute", [np.nan], "joint 'door': rest is not finite"),
    ):
        with pytest.raises(ValueError, match=message):
            hinge(joint, rest)


def test_placements_with_missing_digits_are_rotations():
    typed = [0, 0, 1, 0, 0, 0.7071068, 0.7071068]
    link = Multibody().add_body("a", ROD, "revolute", placement=typed).link("a")
    R = link.placement[:3, :3]
    assert R.T @ R == pytest.approx(np.eye(3), abs=1e-15)
    rounded = np.eye(4)
    rounded[:3, :3] = SO3.matrix([0.5, 0.5, 0.5, 0.5]) + 3e-7
    link = Multibody().add_body("a", ROD, "revolute", placement=rounded).link("a")
    R = link.placement[:3, :3]
    assert R.T @ R == pytest.approx(np.eye(3), abs=1e-15)


def test_calls_take_batches_symbols_and_wrenches(rng):
    tree = zoo.pair("spherical", rng)
    q, v, a, _, wrenches = zoo.state(tree, rng, (2, 3))
    tau = tree.inverse_dynamics(q, v, a, wrenches)
    assert tau.shape == (2, 3, tree.nv)
    symbolic = tree.inverse_dynamics(
        ca.MX(q[1, 2]), ca.MX(v[1, 2]), ca.MX(a[1, 2]), ca.MX(wrenches[1, 2].T)
    )
    assert np.array(ca.evalf(symbolic)).ravel() == pytest.approx(tau[1, 2])
    assert tree.inverse_dynamics(q[0, 0], v[0, 0], a[0, 0], wrenches=wrenches[0, 0]) == (
        pytest.approx(tau[0, 0])
    )
    with pytest.raises(ValueError, match="argument 'wrenches' has shape"):
        tree.inverse_dynamics(q, v, a, np.zeros((6, 3)))
    with pytest.raises(TypeError, match="does not depend on external wrenches"):
        _ = tree.mass_matrix.with_wrenches


def test_trees_and_functions_pickle(rng):
    tree = zoo.branched(rng).symbolic("base.mass")
    copy, function = pickle.loads(pickle.dumps((tree, tree.inverse_dynamics)))
    q, v, a, *_ = zoo.state(tree, rng)
    expected = tree.inverse_dynamics(q, v, a)
    assert np.array_equal(copy.inverse_dynamics(q, v, a), expected)
    assert np.array_equal(function(q, v, a), expected)


def test_geared_rotor_is_the_armature(rng):
    """A rotor that really spins at the gear ratio stores the armature's energy."""
    plain = Multibody().add_body("arm", ROD, "revolute", axis="y")
    geared = Multibody().add_body(
        "arm", ROD, "revolute", axis="y", properties=JointProperties.geared(2e-4, 50.0)
    )
    more = geared.mass_matrix([0.2]) - plain.mass_matrix([0.2])
    assert more == pytest.approx(np.array([[2e-4 * 50.0**2]]))


def test_unknown_names_list_the_valid_ones():
    tree = Multibody().add_body("arm", ROD, "revolute", axis="y", joint_name="elbow")
    tree = tree.add_frame("tip", "arm")
    cases = [
        (lambda: tree.placement("tipp"), r"unknown frame 'tipp'; valid names are .*'tip'\?"),
        (lambda: tree.jacobian("tip", "local"), "body, spatial, hybrid, mixed"),
        (lambda: tree.acceleration("tip", "body", "proper"), "classical, spatial"),
        (lambda: tree.lock(elbo=0.1), "unknown joint 'elbo'; valid names are elbow"),
        (lambda: tree.move_frames(leg=None), "unknown link 'leg'"),
        (lambda: tree.add_body("b", None, "revolute", "leg"), "unknown parent link 'leg'"),
        (lambda: tree.add_frame("b", "leg"), "unknown link 'leg'"),
        (lambda: tree.add_body("arm", None), "two links are called 'arm'"),
        (lambda: tree.add_body("b", None, joint_name="elbow"), "two joints are called 'elbow'"),
        (lambda: tree.add_frame("arm", "arm"), "two frames are called 'arm'"),
        (lambda: tree.with_properties(wrist=JointProperties()), "unknown joint 'wrist'"),
        (lambda: tree.system(inputs=["wrist"]), "unknown joint 'wrist'"),
        (lambda: tree.system(wrenches=["toe"]), "unknown frame 'toe'"),
        (lambda: tree.add_body("b", None, "hinge"), "unknown kind of joint 'hinge'.*revolute"),
        (lambda: tree.add_body("b", None, "revolute", pitch=1), "unknown option .pitch.; .* axis"),
        (lambda: tree.add_body("b", None, "revolute", axis="w"), "unknown axis 'w'"),
        (lambda: tree.add_body("b", None, Rn(2)), "no embedding"),
        (lambda: tree.add_body("b", None, Helical(0.0), axis="x"), r"\.about\(axis\)"),
        (lambda: tree.add_body("b", None, mimic=Mimic("knee"), joint="revolute"), "'knee'"),
        (
            lambda: tree.add_body("b", None, mimic=Mimic("elbow"), joint="continuous"),
            "both need one coordinate",
        ),
        (lambda: tree.add_body("b", None, "floating"), "'floating' is called 'free' here"),
        (lambda: tree.lock(elbow=[0.1, 0.2]), r"position of joint 'elbow' has shape \(2,\)"),
        (lambda: tree.lock(elbow=np.inf), "position of joint 'elbow' is not finite"),
        (
            lambda: Multibody().add_body("a", None, "spherical").lock(a=[0, 0, 0, 0]),
            "position of joint 'a' = .* is no element of SO3: .* cannot be normalised",
        ),
        (lambda: Mimic("a", np.nan), "multiplier of the mimic of 'a' is not finite"),
        (lambda: Mimic("a", 1.0, np.inf), "offset of the mimic of 'a' is not finite"),
        (
            lambda: tree.add_body("b", None, "free", placement=[0, 0, 0, 0, 0, 2, 0]),
            "placement of 'b' = .* is no element of SE3: .* has norm 2, not 1",
        ),
        *(
            (
                lambda key=key: tree.add_body(
                    "b", None, "revolute", properties=JointProperties(**{key: np.inf})
                ),
                f"joint 'b': {key} (is not finite|must be positive and finite)",
            )
            for key in ("armature", "damping", "friction", "stiffness", "friction_speed")
        ),
        (lambda: tree.add_body("b", None, placement=np.eye(3)), r"expected SE3 coordinates"),
        (lambda: tree.add_body("b", None, placement=[0, 0, np.nan]), "not finite"),
        (
            lambda: tree.add_body(
                "b", None, "revolute", properties=JointProperties(damping=[1, 2])
            ),
            "joint 'b': damping has shape",
        ),
        (
            lambda: tree.add_body(
                "b", None, "revolute", properties=JointProperties(lower=1, upper=-1)
            ),
            "above the upper",
        ),
    ]
    for call, message in cases:
        with pytest.raises((KeyError, ValueError, TypeError), match=message):
            call()


def test_joint_without_inertia_is_named():
    tree = Multibody().add_body("arm", ROD, "revolute", axis="y")
    tree = tree.add_body("finger", None, "revolute", "arm", joint_name="knuckle")
    for use in (
        lambda: tree.forward_dynamics,
        lambda: tree.mass_matrix_inverse,
        lambda: tree.system(),
    ):
        with pytest.raises(ValueError, match="joint 'knuckle' .*moves no inertia.*armature"):
            use()
    point = SpatialInertia.point_mass(1.0)
    with pytest.raises(ValueError, match="moves no inertia"):
        _ = Multibody().add_body("ball", point, "spherical").forward_dynamics
    assert tree.inverse_dynamics([0.1, 0.2], [0, 0], [1, 1]).shape == (2,)
    # Regrouping must not take a well-posed tree for a singular one.
    assert Multibody().add_body("ball", point, "translation").forward_dynamics(
        [0, 0, 0], [0, 0, 0], [0, 0, 0]
    ) == pytest.approx([0, 0, -9.81])


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("fixed", {}, "fixed"),
        ("revolute", {"axis": "-y"}, "revolute about -y"),
        ("revolute", {"axis": [3, 4, 0]}, "revolute about (0.6, 0.8, 0)"),
        ("continuous", {}, "continuous about z"),
        ("prismatic", {"axis": "x"}, "prismatic along x"),
        ("helical", {"pitch": 0.1}, "helical about z, 0.1 m/rad"),
        ("cylindrical", {}, "cylindrical about z"),
        ("planar", {}, "planar about z"),
        ("planar_helical", {"pitch": -0.2}, "planar_helical about z, -0.2 m/rad"),
        ("spherical", {}, "spherical"),
        ("translation", {}, "translation"),
        ("schoenflies", {"axis": "y"}, "schoenflies about y"),
        ("free", {}, "free"),
        ("universal", {}, "universal about x and y"),
        ("spherical_zyx", {}, "spherical_zyx"),
        (SE3, {}, "free"),
        (Joint.chain([Translation("xy"), ([0, 0, 1], Helical(0.0))]), {},
         "Translation('xy'), then revolute about z"),
    ],
)  # fmt: skip
def test_joints_are_called_what_users_call_them(kind, options, words):
    joint = Joint.of(kind, **options)
    assert repr(joint) == f"Joint({words})"
    tree = Multibody().add_body("rod", SpatialInertia.sphere(2.0, 0.1), joint)
    assert tree.summary().splitlines()[-1] == f"  rod: 2 kg, {words}"


def test_links_are_names(rng):
    tree = zoo.branched(rng)
    assert set(tree.bodies) <= set(tree.links) <= set(tree.frames)
    assert [tree.link(name).name for name in tree.links] == list(tree.links)
    assert [tree.link(name).joint_name for name in tree.moving_links] == list(tree.joints)
    with pytest.raises(KeyError, match="unknown link 'bas'.*Did you mean 'base'"):
        tree.link("bas")


def test_trees_are_built_in_linear_time():
    """Processor time of links one by one and of their mass; 6 s were asked for 3200."""

    def seconds(count):
        tree, start = Multibody(), time.process_time()
        for k in range(count):
            tree = tree.add_body(f"b{k}", ROD, "fixed", parent=f"b{k - 1}" if k else "world")
        assert tree.mass == 0.0 and len(tree.links) == count
        return time.process_time() - start

    few, many = (min(seconds(count) for _ in range(2)) for count in (400, 3200))
    assert many < 6.0
    # Between linear and quadratic: on a loaded machine caches are cold for the larger one.
    assert np.log(many / few) / np.log(8) < 1.5


def test_a_leader_may_stand_later_in_the_file(tmp_path):
    links = "".join(f'<link name="{name}"/>' for name in ("root", "a", "b"))
    joint = '<joint name="{0}_joint" type="revolute"><parent link="root"/><child link="{0}"/>'
    joint += '<axis xyz="0 0 1"/><limit effort="1" velocity="1" lower="-1" upper="1"/>{1}</joint>'
    follower = joint.format("a", '<mimic joint="b_joint" multiplier="-2"/>')
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{links}{follower}{joint.format("b", "")}</robot>')
    tree = Multibody.from_urdf(path, on_finding="ignore")
    assert tree.joints == ("b_joint",) and tree.is_coupled
    assert tree.jacobian("a")([0.3])[5] == -2.0


def test_every_function_is_found_by_its_own_name(rng):
    """Declared names are those of the class: functions are restored by them."""
    tree = Multibody().add_body("a", zoo.random_inertia(rng), "revolute")
    own = {name: getattr(tree, name) for name in dir(Multibody) if not name.startswith("_")}
    functions = {name: value for name, value in own.items() if isinstance(value, TreeFunction)}
    assert len(functions) >= 40 and all(f.name == name for name, f in functions.items())
    frame = tree.bodies[-1]
    for function in (
        tree.mass_matrix,
        tree.jacobian(frame, "hybrid"),
        tree.acceleration(frame, "spatial", "spatial"),
        tree.twist_derivative(frame, "mixed", 2),
        tree.calibration_jacobian(frame),
        tree.inverse_dynamics_geometry_derivatives(),
        tree.joint_wrench(tree.joints[0]),
        tree.body_momenta(),
        tree.inverse_dynamics_time_derivatives(2),
    ):
        assert repr(pickle.loads(pickle.dumps(function))) == repr(function)

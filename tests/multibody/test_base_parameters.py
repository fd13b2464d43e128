"""Base parameters: counts known from the literature, predictions, identification of an arm."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.mechanics import Joint, JointProperties, Mimic, Multibody, SpatialInertia

from . import zoo

EXACT = 1e-10  # relative: least squares with condition numbers of a few hundred
ROUNDING = 1e-11  # regressors against regressors


def error(ours, theirs):
    assert np.shape(ours) == np.shape(theirs)
    return np.abs(ours - theirs).max(initial=0.0) / max(1.0, np.abs(theirs).max(initial=0.0))


def arm(rng, axes, gravity=(0, 0, -9.81)):
    """A chain with these joint axes, given in the world at rest, and bodies anywhere."""
    tree, parent = Multibody("arm", gravity=gravity), "world"
    for i, axis in enumerate(axes):
        place = rng.normal(scale=0.4, size=3)
        joint = Joint.of("revolute", axis=axis)
        tree = tree.add_body(f"l{i}", zoo.random_inertia(rng), joint, parent, place)
        parent = f"l{i}"
    return tree


# First joint along gravity: its weight does nothing, 1 parameter; others 7 each, unless all axes
# so far are parallel (then 3). Joint axes at rest in the world; PUMA: z, y, y, z, y, z.
# Mayeda, Yoshida and Osuka 1990; Khalil and Dombre 2002, section 9.4 (PUMA: 36 with gravity).
COUNTS = {
    "puma": ("zyyzyz", (0, 0, -9.81), 36),
    "planar pendulum, level axes": ("yy", (0, 0, -9.81), 6),
    "scara arm, upright axes": ("zz", (0, 0, -9.81), 4),
    "one hinge, level": ("y", (0, 0, -9.81), 3),
    "one hinge, upright": ("z", (0, 0, -9.81), 1),
    "no weight": ("zy", (0, 0, 0), 8),
    "seven joints": ("zyzyzyz", (0, 0, -9.81), 43),
}


@pytest.mark.parametrize("name", COUNTS)
def test_known_counts(name, rng):
    axes, gravity, count = COUNTS[name]
    base = arm(rng, axes, gravity).base_parameters()
    assert len(base) == count
    assert base.smallest_independent > 1e8 * base.largest_dependent


@pytest.mark.parametrize("file, count", [("ur5_robot", 36), ("panda", 43)])
def test_known_counts_of_robots(file, count, robot_file):
    tree = Multibody.from_urdf(robot_file(f"{file}.urdf"), on_finding="ignore")
    fingers = {name: 0.0 for name in tree.joints if "finger" in name}
    assert len(tree.lock(**fingers).base_parameters()) == count


def test_floating_bases_reveal_ten_and_seven_for_each_joint(rng):
    """Ayusawa, Venture and Nakamura 2014: 10 + 7 n."""
    tree = Multibody().add_body("base", zoo.random_inertia(rng), "free")
    for i, parent in enumerate(("base", "0", "1", "base")):
        place = zoo.pose(rng)
        joint = zoo.JOINTS["revolute_any"]
        tree = tree.add_body(str(i), zoo.random_inertia(rng), joint, parent, place)
    assert len(tree.base_parameters()) == 10 + 7 * 4


def trees():
    rng = np.random.default_rng(14)
    kinds = ("revolute_any", "prismatic", "helical", "planar", "spherical", "free", "composite")
    return {
        **{kind: zoo.pair(kind, rng) for kind in kinds},
        "driven": zoo.driven(rng),
        "puma": arm(rng, "zyyzyz"),
    }


TREES = trees()


@pytest.mark.parametrize("kind", TREES)
def test_forces_by_base_parameters(kind, rng):
    tree = TREES[kind]
    base = tree.base_parameters()
    q, v, a, _, _ = zoo.state(tree, rng, (30,))
    Y, phi = tree.inverse_dynamics_regressor(q, v, a), tree.inertial_parameters
    reduced = base.regressor(q, v, a)
    assert error(reduced @ base.values, Y @ phi) < EXACT
    assert error(reduced @ base.matrix, Y) < EXACT
    # The rank by another route: singular values.
    s = np.linalg.svd(Y.reshape(-1, len(phi)), compute_uv=False)
    assert s[len(base) - 1] > 1e-6 * s[0] > 1e4 * s[len(base)]
    again = tree.base_parameters(seed=8)
    assert (again.columns == base.columns).all()
    assert error(again.matrix, base.matrix) < EXACT


def test_too_few_states_are_refused(rng):
    tree = arm(rng, "zyyzyz")
    Y = tree.inverse_dynamics_regressor(*zoo.state(tree, rng, (20,))[:3]).reshape(-1, 60)
    least = -(-int((np.abs(Y).max(axis=0) > 0).sum()) // tree.nv)
    with pytest.raises(ValueError, match=f"at least {least},"):
        tree.base_parameters(samples=least - 1)
    for wrong in (0, -1, 2.5, True):
        with pytest.raises(ValueError, match="positive number of states"):
            tree.base_parameters(samples=wrong)
    # What is not refused is right.
    for samples in (least, least + 1, 100):
        base = tree.base_parameters(samples=samples)
        assert len(base) == 36
        assert error(base.matrix, tree.base_parameters().matrix) < 100 * EXACT


class Repeating(np.random.Generator):
    """Gives the same numbers again for each of many samples: states that do not differ."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def normal(self, loc=0.0, scale=1.0, size=None):
        if isinstance(size, tuple) and size[0] > 5:
            return np.broadcast_to(super().normal(loc, scale, (1, *size[1:])), size)
        return super().normal(loc, scale, size)

    def uniform(self, low=0.0, high=1.0, size=None):
        if isinstance(size, tuple) and size[0] > 5:
            return np.broadcast_to(super().uniform(low, high, (1, *size[1:])), size)
        return super().uniform(low, high, size)


def test_combinations_are_confirmed_at_other_states(rng):
    """States that do not differ hide what moves: the fresh ones tell."""
    tree = arm(rng, "zyy")
    with pytest.raises(ArithmeticError, match="do not give the forces at others.*Give more"):
        tree.base_parameters(seed=Repeating())


def test_no_gap_between_dependent_and_independent_is_refused():
    """A body that follows its carrier by 1e-9 of the angle tells just so much of itself."""
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    for follow, count in ((1e-4, 5), (1e-9, None), (1e-12, 3)):
        tree = Multibody("gap").add_body("a", rod, "revolute", axis="y")
        mimic = Mimic("a", follow)
        tree = tree.add_body("b", rod, "revolute", "a", [0, 0, -1.5], axis="y", mimic=mimic)
        if count is not None:
            assert len(tree.base_parameters()) == count
            continue
        with pytest.raises(ArithmeticError, match="cannot be told apart"):
            tree.base_parameters()


@pytest.mark.parametrize("kind", TREES)
def test_regrouped_inertias_give_the_same_forces(kind, rng):
    """What is traced with regrouped inertias agrees with the regressor, which has none."""
    tree = TREES[kind]
    q, v, a = (tree.configuration.random(rng), *rng.normal(size=(2, tree.nv)))
    bare = tree.with_properties(
        **{tree.link(name).joint_name: JointProperties() for name in tree.bodies}
    )
    forces = bare.inverse_dynamics_regressor(q, v, a) @ bare.inertial_parameters
    assert error(bare.inverse_dynamics(q, v, a), forces) < EXACT


def test_names_say_what_is_combined():
    rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    tree = Multibody().add_body("a", rod, "revolute", axis="y")
    tree = tree.add_body("b", rod, "revolute", "a", [0, 0, -1.5], axis="y")
    base = tree.base_parameters()
    assert base.names == (
        "a.mc.x",
        "a.mc.z − 1.5 b.mass",
        "a.Iyy + 2.25 b.mass",
        "b.mc.x",
        "b.mc.z",
        "b.Iyy",
    )
    assert base.identifiable == ("a.mc.x", "b.mc.x", "b.mc.z", "b.Iyy")
    assert base.combined == ("a.mc.z", "a.Iyy", "b.mass")
    assert "a.mass" in base.unidentifiable and "b.Ixz" in base.unidentifiable
    assert len(base.identifiable + base.combined + base.unidentifiable) == 20
    known = [0, -1.0 - 3.0, 2 / 3 + 4.5, 0, -1.0, 2 / 3]
    assert base.values == pytest.approx(known)
    assert "6 of 20" in repr(base) and "a.Iyy + 2.25 b.mass" in base.summary()


def test_tree_without_joints_has_none():
    assert len(Multibody().base_parameters()) == 0


# -- identification -------------------------------------------------------------------------------


def motion(tree, rng, n=1500):
    """Sums of five sines for each joint, 20 s."""
    t, w = np.linspace(0, 20, n), 2 * np.pi * 0.1 * np.arange(1, 6)
    A, B = rng.normal(scale=0.5, size=(2, tree.nv, 5))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    q = s @ (A / w).T - c @ (B / w).T
    return q, c @ A.T + s @ B.T, -(s * w) @ A.T + (c * w) @ B.T


NOISE = np.array([2.0, 2.0, 1.0, 0.3, 0.3, 0.1])  # N m


def test_identification_of_an_arm_from_noisy_torques(robot_file, rng):
    """Predictions on a fresh motion are off by far less than the noise: 36 of 9000 numbers."""
    arm = Multibody.from_urdf(robot_file("ur5_robot.urdf"), on_finding="ignore")
    drives = JointProperties(damping=1.5, friction=2.0, armature=0.1)
    arm = arm.with_properties(**{name: drives for name in arm.joints})
    base = arm.base_parameters()
    q, v, a = motion(arm, rng)
    tau = arm.inverse_dynamics(q, v, a) + NOISE * rng.normal(size=q.shape)
    found = base.identify(q, v, a, tau)
    assert found.noise == pytest.approx(NOISE, rel=0.1)
    assert found.condition < 100
    fresh = motion(arm, rng)
    true = arm.inverse_dynamics(*fresh)
    off = np.sqrt(((found.inverse_dynamics(*fresh) - true) ** 2).mean(axis=0))
    assert (off < 0.2 * NOISE).all()  # √(36 / 1500) of the noise is 0.15
    measured = true + NOISE * rng.normal(size=true.shape)
    rms = np.sqrt(((found.inverse_dynamics(*fresh) - measured) ** 2).mean(axis=0))
    assert rms == pytest.approx(NOISE, rel=0.1)
    # Errors are as large as they say: normalized squares are χ² with 36 degrees of freedom.
    d = found.values - base.values
    assert 36 - 5 * np.sqrt(72) < d @ np.linalg.solve(found.covariance, d) < 36 + 5 * np.sqrt(72)
    assert "condition" in repr(found) and "shoulder_link.Izz" in found.summary()


@pytest.mark.filterwarnings("ignore:identification")  # so few samples need no good condition
def test_spread_of_few_samples_counts_the_estimated_parameters(rng):
    """Ten samples of six joints leave 24 of 60 residuals free: these spread as the noise does."""
    tree = TREES["puma"]
    base = tree.base_parameters()
    squares = []
    for _ in range(40):
        q, v, a = motion(tree, rng, 10)
        tau = tree.inverse_dynamics(q, v, a) + rng.normal(size=q.shape)
        squares.append(np.mean(base.identify(q, v, a, tau).noise ** 2))
    # 960 free residuals: 5 % of spread; without the count the mean is 0.4, with it twice 2.
    assert np.mean(squares) == pytest.approx(1.0, rel=0.25)


@pytest.mark.filterwarnings("ignore:identification")  # clean data need no good condition
def test_identification_is_exact_without_noise(rng):
    tree = TREES["puma"]
    base = tree.base_parameters()
    q, v, a = motion(tree, rng, 200)
    wrenches = rng.normal(size=(200, len(tree.bodies), 6))
    found = base.identify(q, v, a, tree.inverse_dynamics(q, v, a, wrenches), wrenches=wrenches)
    assert error(found.values, base.values) < EXACT
    # Data of an arm with other bodies: they count, not the description.
    links = {name: zoo.random_inertia(rng) for name in tree.bodies}
    other, parent = Multibody("other"), "world"
    for link in map(tree.link, tree.links):
        place = link.placement[:3, 3]
        other = other.add_body(link.name, links[link.name], link.joint, parent, place)
        parent = link.name
    found = base.identify(q, v, a, other.inverse_dynamics(q, v, a))
    assert error(found.values, base.matrix @ other.inertial_parameters) < EXACT
    symbols = [ca.SX.sym(x, 6) for x in "qva"]
    function = ca.Function("predict", symbols, [found.inverse_dynamics(*symbols)])
    one = np.array(function(q[3], v[3], a[3])).ravel()
    assert error(one, other.inverse_dynamics(q[3], v[3], a[3])) < EXACT
    predicted = found.inverse_dynamics(q, v, a, wrenches)
    assert error(predicted, other.inverse_dynamics(q, v, a, wrenches)) < EXACT


def test_identification_says_what_is_not_excited(rng):
    tree = TREES["puma"]
    q, v, a = motion(tree, rng, 200)
    for moving in (q, v, a):
        moving[:, 1:] = 0.0
    tau = tree.inverse_dynamics(q, v, a)
    base = tree.base_parameters()
    with pytest.raises(ValueError, match=r"do not excite all 36.*l\d\."):
        base.identify(q, v, a, tau)
    with pytest.raises(ValueError, match="too few samples: 3 .* 18 equations for 36.* 6 samples"):
        base.identify(q[:3], v[:3], a[:3], tau[:3])
    with pytest.raises(ValueError, match="tau"):
        base.identify(q, v, a, tau[:, :3])
    with pytest.raises(ValueError, match="positive"):
        base.identify(q, v, a, tau, noise=np.zeros(6))

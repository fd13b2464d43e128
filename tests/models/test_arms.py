"""Arms: equal to the manufacturers' files, and to what can be computed by hand."""

import numpy as np
import pytest

from lgcontrol.groups import SE3, Schoenflies
from lgcontrol.mechanics import FrameTask, Multibody, random_configuration
from lgcontrol.models import (
    panda,
    panda_tree,
    scara,
    scara_tree,
    space_arm_tree,
    underwater_vehicle_arm,
    underwater_vehicle_arm_tree,
    ur5,
    ur5_tree,
)

# Same numbers, same algorithms: rounding alone.
SAME = 1e-10
# Joint, length and radius of the underwater arm's links.
LINKS = (
    ("arm_yaw", 0.08, 0.030),
    ("arm_shoulder", 0.25, 0.025),
    ("arm_elbow", 0.20, 0.025),
    ("arm_wrist", 0.15, 0.020),
)
# Sums of other terms in another order.
ROUNDING = 1e-9


@pytest.mark.usually(frame=("panda_hand_tcp", "tool0"))
@pytest.mark.parametrize(
    ("file", "frame", "tree"),
    [
        ("panda", "panda_hand_tcp", panda_tree()),
        ("panda", "panda_leftfinger", panda_tree(fingers=None)),
        ("panda", "panda_rightfinger", panda_tree(fingers=None, losses=False)),
        ("ur5_robot", "tool0", ur5_tree()),
        ("ur5_robot", "ee_link", ur5_tree()),
    ],
    ids=["panda", "panda-fingers", "panda-lossless", "ur5-tool", "ur5-ee"],
)
def test_arm_equals_the_manufacturers_file(file, frame, tree, robot_file, rng):
    losses = "panda" not in file or tree.bias_forces(tree.neutral, np.ones(tree.nv))[6] != 0
    lossless = tree.name == "panda" and _is_lossless(tree)
    there = Multibody.from_urdf(
        robot_file(f"{file}.urdf"), on_finding="ignore", losses=losses and not lossless
    )
    if tree.nv == 7:
        there = there.lock(panda_finger_joint1=0.0)
    assert tree.joints == there.joints
    q = there.configuration.random(rng, (50,))
    v, a = rng.normal(size=(2, 50, there.nv))
    pairs = [
        (tree.mass_matrix(q), there.mass_matrix(q)),
        (tree.bias_forces(q, v), there.bias_forces(q, v)),
        (tree.inverse_dynamics(q, v, a), there.inverse_dynamics(q, v, a)),
        (SE3.homogeneous(tree.placement(frame)(q)), SE3.homogeneous(there.placement(frame)(q))),
    ]
    for own, expected in pairs:
        np.testing.assert_allclose(own, expected, rtol=0, atol=SAME)
    for name, values in there.limits.items():
        np.testing.assert_array_equal(tree.limits[name], values)
    assert tree.mass == pytest.approx(there.mass, rel=1e-12)


def _is_lossless(tree) -> bool:
    return all(
        link.properties.damping in (0.0, (0.0,)) for link in map(tree.link, tree.moving_links)
    )


def test_fingers_can_be_held_open(rng):
    shut, wide = panda_tree(), panda_tree(fingers=0.04)
    q = random_configuration(shut, rng)
    gap = [
        np.linalg.norm(tree.position("panda_leftfinger")(q) - tree.position("panda_rightfinger")(q))
        for tree in (shut, wide)
    ]
    assert gap[1] - gap[0] == pytest.approx(0.08, abs=SAME)


@pytest.mark.thorough
def test_systems_are_those_of_the_trees(rng):
    for system, tree in ((panda(), panda_tree()), (ur5(), ur5_tree()), (scara(), scara_tree())):
        x = system.state.random(rng)
        tau = rng.normal(size=tree.nv)
        rate = system.f(0.0, x, tau)
        q, v = x[: tree.nq], x[tree.nq :]
        np.testing.assert_allclose(rate[tree.nv :], tree.forward_dynamics(q, v, tau), atol=SAME)
        np.testing.assert_array_equal(
            [entry.upper for entry in system.inputs], tree.limits["effort"]
        )


def test_scara_moves_its_tool_on_the_schoenflies_group(rng):
    """Planar geometry by hand: the tool keeps upright, its heading is the sum of the angles."""
    tree = scara_tree()
    FrameTask("tool", Schoenflies).check(tree)
    q = random_configuration(tree, rng, 20)
    swing, bend, slide, spin = q.T
    x = 0.225 * np.cos(swing) + 0.175 * np.cos(swing + bend)
    y = 0.225 * np.sin(swing) + 0.175 * np.sin(swing + bend)
    heading = swing + bend + spin
    expected = np.stack([x, y, 0.2 - 0.04 + slide, np.cos(heading), np.sin(heading)], axis=-1)
    pose = tree.placement("tool")(q)
    np.testing.assert_allclose(
        SE3.homogeneous(pose), Schoenflies.homogeneous(expected), atol=ROUNDING
    )


def test_payload_hangs_on_the_slide():
    """Weight acts on the slide alone."""
    empty, loaded = scara_tree(), scara_tree(payload=1.5)
    q = [0.3, -0.4, -0.1, 0.7]
    difference = loaded.gravity_forces(q) - empty.gravity_forces(q)
    np.testing.assert_allclose(difference, [0, 0, 1.5 * 9.81, 0], atol=ROUNDING)


def test_space_arm_keeps_its_momentum(rng):
    """Joint torques change neither linear nor angular momentum about the centre of mass."""
    tree = space_arm_tree()
    q = tree.configuration.random(rng)
    v = rng.normal(size=tree.nv)
    tau = np.concatenate([np.zeros(6), rng.normal(size=7)])
    a = tree.forward_dynamics(q, v, tau)
    np.testing.assert_allclose(tree.centroidal_momentum_rate(q, v, a), np.zeros(6), atol=1e-8)
    assert np.linalg.norm(a) > 0.1


def test_the_underwater_arm_folds_away(rng):
    """With the joints locked it is one body: the vehicle plus what hangs on it moves rigidly."""
    tree = underwater_vehicle_arm_tree()
    assert tree.mass == pytest.approx(13.5 + 0.35 + 0.6 + 0.5 + 0.25)
    q, v = tree.configuration.random(rng), np.concatenate([rng.normal(size=6), np.zeros(4)])
    energy = tree.kinetic_energy(q, v)
    locked = tree.lock(**dict(zip(tree.joints[1:], q[7:], strict=True)))
    assert locked.kinetic_energy(q[:7], v[:6]) == pytest.approx(energy, rel=1e-12)


@pytest.mark.thorough
def test_water_moves_along_with_vehicle_and_arm(rng):
    """Its kinetic energy: the vehicle's added mass, and strips across each link, point by point."""
    system, tree = underwater_vehicle_arm(), underwater_vehicle_arm_tree()
    q, v = tree.configuration.random(rng), rng.normal(size=tree.nv)
    moving = system.quantities["kinetic_energy"](0.0, np.concatenate([q, v]))
    water = np.diag([6.36, 7.12, 18.68, 0.189, 0.135, 0.222])
    expected = v[:6] @ water @ v[:6] / 2
    nodes, weights = np.polynomial.legendre.leggauss(4)
    for name, length, radius in LINKS:
        V = tree.velocity(f"{name}_link")(q, v)
        for node, weight in zip(nodes, weights, strict=True):
            point = np.array([length * (node + 1) / 2, 0.0, 0.0])
            across = (V[:3] + np.cross(V[3:], point))[1:]
            a_metre = 1000.0 * np.pi * radius**2
            expected += a_metre * (across @ across) / 2 * weight * length / 2
    assert moving[0] - tree.kinetic_energy(q, v) == pytest.approx(expected, rel=1e-9)


def test_water_carries_vehicle_and_arm(rng):
    """Potential energy: weight of what moves less that of the water in its place."""
    system, tree = underwater_vehicle_arm(), underwater_vehicle_arm_tree()
    q = tree.configuration.random(rng)
    own = system.quantities["potential_energy"](0.0, np.concatenate([q, np.zeros(tree.nv)]))
    up = SE3.act(q[:7], [0.0, 0.0, 0.01])[2]  # centre of buoyancy, above that of mass
    lifted = 0.0134 * up
    for name, length, radius in LINKS:
        middle = SE3.act(tree.placement(f"{name}_link")(q), [length / 2, 0.0, 0.0])
        lifted += np.pi * radius**2 * length * middle[2]
    expected = tree.potential_energy(q) - 9.81 * 1000.0 * lifted
    assert own[0] == pytest.approx(expected, rel=1e-9)


def test_water_slows_every_motion(rng):
    """The work of drag: what total energy loses in still water with motors off."""
    system, tree = underwater_vehicle_arm(), underwater_vehicle_arm_tree()
    h = 1e-5
    for _ in range(5):
        x = np.concatenate([tree.configuration.random(rng), rng.normal(size=tree.nv)])
        rate = system.f(0.0, x)
        energy = [
            system.quantities["kinetic_energy"](0.0, at)[0]
            + system.quantities["potential_energy"](0.0, at)[0]
            for at in (system.state.plus(x, h * rate), system.state.plus(x, -h * rate))
        ]
        joint_losses = 0.1 * np.sum(x[-4:] ** 2)
        assert (energy[0] - energy[1]) / (2 * h) < -joint_losses

"""Trees with every kind of joint, made from random numbers."""

import numpy as np

from lgcontrol.groups import SE3, SO2, Helical, Translation
from lgcontrol.mechanics import Joint, JointProperties, Mimic, Multibody, SpatialInertia

JOINTS = {
    "revolute": Joint.of("revolute", axis="y"),
    "revolute_any": Joint.of("revolute", axis=[0.3, -0.4, 0.5]),
    "continuous": Joint.of("continuous", axis=[1.0, 0.2, 0.1]),
    "prismatic": Joint.of("prismatic", axis="-x"),
    "prismatic_any": Joint.of("prismatic", axis=[0.3, 0.4, -0.5]),
    "helical": Joint.of("helical", axis="x", pitch=0.2),
    "cylindrical": Joint.of("cylindrical", axis=[0.5, -0.5, 0.2]),
    "planar": Joint.of("planar", axis=[0.1, 0.2, 0.3]),
    "planar_helical": Joint.of("planar_helical", axis="y", pitch=-0.15),
    "spherical": Joint.of("spherical"),
    "translation": Joint.of("translation"),
    "translation_two": Joint.of(Translation("xz")),
    "schoenflies": Joint.of("schoenflies", axis=[0.2, 0.9, -0.1]),
    "free": Joint.of("free"),
    "universal": Joint.of("universal", axis=[1, 0.1, 0], axis2=[0, 1, 0.3]),
    "spherical_zyx": Joint.of("spherical_zyx"),
    "composite": Joint.chain(
        [
            ([0.1, 0.2, -0.1], Helical(0.0).about([0, 1, 0])),
            (SE3.exp([0.1, 0, 0.2, 0.3, -0.2, 0.5]), Translation("y")),
            ([0.0, 0.0, 0.3], SO2.about([1, 1, 0])),
        ]
    ),
}


# Joints and trees that tests run by default, so that each way through the code is gone once: a
# chain (of helical joints too) whose motion subspace turns, and revolute, spherical (a group that
# does not commute) and prismatic joints with losses, springs and a mimic.
FEW = ("composite", "driven")


def random_inertia(rng) -> SpatialInertia:
    """Inertia of a cloud of points."""
    points, masses = rng.normal(scale=0.3, size=(6, 3)), rng.uniform(0.1, 1.0, size=6)
    c = masses @ points / masses.sum()
    r = points - c
    tensor = (masses * (r**2).sum(axis=1)).sum() * np.eye(3) - (r.T * masses) @ r
    return SpatialInertia(masses.sum(), c, tensor)


def pose(rng) -> np.ndarray:
    """A random placement."""
    return SE3.exp(rng.normal(scale=0.5, size=6))


def pair(kind: str, rng) -> Multibody:
    """A body on a joint of the kind, with a revolute one on it, a branch and a fixed tool."""
    tree = Multibody(kind, gravity=[0.3, -0.5, -9.81])
    tree = tree.add_body("a", random_inertia(rng), JOINTS[kind], "world", pose(rng))
    tree = tree.add_body("b", random_inertia(rng), "revolute", "a", pose(rng), axis=[1, 2, -1])
    tree = tree.add_body("c", random_inertia(rng), "prismatic", "a", pose(rng), axis="y")
    tree = tree.add_body("tool", random_inertia(rng), "fixed", "b", pose(rng))
    return tree.add_frame("tip", "tool", pose(rng))


def branched(rng) -> Multibody:
    """A floating base with three branches of different joints."""
    tree = Multibody("branched").add_body("base", random_inertia(rng), "free")
    for leg, kinds in enumerate((("universal", "revolute"), ("spherical", "helical"), ("planar",))):
        parent = "base"
        for i, kind in enumerate(kinds):
            name = f"leg{leg}{i}"
            tree = tree.add_body(name, random_inertia(rng), JOINTS[kind], parent, pose(rng))
            parent = name
    return tree


def driven(rng) -> Multibody:
    """Armatures, losses, springs and a mimic on different joints."""
    tree = Multibody("driven")
    every = JointProperties(armature=0.3, damping=0.2, friction=0.4, stiffness=3.0)
    tree = tree.add_body(
        "a", random_inertia(rng), "revolute", placement=pose(rng), properties=every
    )
    tree = tree.add_body(
        "ball",
        random_inertia(rng),
        "spherical",
        "a",
        pose(rng),
        properties=JointProperties(stiffness=[1.0, 2.0, 3.0], damping=0.1, rest=[0, 0.6, 0, 0.8]),
    )
    return tree.add_body(
        "follower",
        random_inertia(rng),
        "prismatic",
        "ball",
        pose(rng),
        properties=every,
        mimic=Mimic("a", -0.7, 0.2),
    )


def two_roots(rng):
    """Two branches from the world, and a ball on a driven arm."""
    tree = pair("spherical", rng)
    lossy = JointProperties(friction=0.3, damping=0.2, stiffness=2.0, friction_speed=0.5)
    tree = tree.add_body(
        "arm", random_inertia(rng), "revolute", "world", pose(rng), properties=lossy
    )
    springs = JointProperties(stiffness=[3.0, 2.0, 1.0, 0.5, 0.7, 0.9], friction=0.2)
    return tree.add_body(
        "floating", random_inertia(rng), "free", "arm", pose(rng), properties=springs
    )


def floating(rng):
    """A floating base with two legs."""
    tree = Multibody("floating").add_body("base", random_inertia(rng), "free")
    tree = tree.add_body("a", random_inertia(rng), JOINTS["universal"], "base")
    tree = tree.add_body("b", random_inertia(rng), "revolute", "base", pose(rng), axis="y")
    return tree.add_body("c", random_inertia(rng), JOINTS["helical"], "b", pose(rng))


def state(tree: Multibody, rng, batch=()):
    """Random q, v, a, tau and wrenches."""
    q = tree.configuration.random(rng, batch)
    v, a, tau = rng.normal(size=(3, *batch, tree.nv))
    return q, v, a, tau, rng.normal(size=(*batch, len(tree.bodies), 6))

"""Small arms with every kind of spring, motor and base."""

from functools import cache

import casadi as ca
import numpy as np

from lgcontrol.mechanics import (
    AdjustedSpring,
    CustomSpring,
    HardeningSpring,
    JointProperties,
    LinearSpring,
    Motor,
    Multibody,
    SeriesElastic,
    SpatialInertia,
    VariableSpring,
)


def links(kinds, base=None, properties=None, name="arm"):
    """Chain of boxes with these joints, x, y and z in turns."""
    tree, parent = Multibody(name), "world"
    if base is not None:
        body = SpatialInertia(8.0, [0.02, 0.0, 0.03], np.diag([0.4, 0.5, 0.3]))
        tree, parent = tree.add_body("base", body, base), "base"
    for i, kind in enumerate(kinds):
        rod = SpatialInertia(
            2.0 - 0.3 * i, [0.1, 0.02 * i, -0.2], np.diag([0.05, 0.06 + 0.01 * i, 0.03])
        )
        own = (properties or {}).get(f"j{i}", JointProperties(damping=0.1 * i))
        axis = {} if kind in ("spherical", "free") else {"axis": "zyx"[i % 3]}
        tree = tree.add_body(
            f"link{i}", rod, kind, parent, [0.3, 0, 0.1], joint_name=f"j{i}", properties=own, **axis
        )
        parent = f"link{i}"
    return tree


def plain(count=3):
    """Linear springs, nothing else."""
    return SeriesElastic(
        links(["revolute"] * count),
        {f"j{i}": Motor(0.2 + 0.1 * i, 300.0 - 40 * i) for i in range(count)},
    )


def hardening():
    """Springs that are not linear, geared motors with losses."""
    return SeriesElastic(
        links(["revolute", "revolute", "continuous"]),
        {
            "j0": Motor(2e-5, HardeningSpring(200.0, 4000.0), 1e-4, 2e-3, ratio=100.0),
            "j1": Motor(0.2, CustomSpring(sigma=lambda d: 20 * ca.sinh(10 * d),
                                          potential=lambda d: 2 * (ca.cosh(10 * d) - 1))),
            "j2": Motor(0.1, 150.0, damping=0.3),
        },
    )  # fmt: skip


def mixed():
    """A rigid joint and a slide between elastic ones."""
    return SeriesElastic(
        links(["continuous", "revolute", "prismatic"]),
        {"j0": Motor(0.3, 400.0), "j2": Motor(1.5, 3000.0)},
    )


def flying():
    """A free base, driven, that carries an elastic arm."""
    tree = links(["revolute", "revolute"], base="free")
    return SeriesElastic(tree, {"j0": Motor(0.1, 80.0), "j1": Motor(0.1, 60.0)},
                         inputs=["base"])  # fmt: skip


def floating():
    """A free base that nothing drives."""
    tree = links(["revolute", "revolute"], base="free")
    return SeriesElastic(tree, {"j0": Motor(0.1, 80.0), "j1": Motor(0.1, 60.0)})


def variable():
    """One stiffness is an input, another is set by a motor."""
    return SeriesElastic(
        links(["revolute", "revolute"]),
        {
            "j0": Motor(0.2, VariableSpring(150.0, lower=50.0, upper=500.0)),
            "j1": Motor(0.1, AdjustedSpring(lambda phi: 60 + 90 * phi**2, lower=0.2, upper=2.0,
                                            motor_inertia=2e-3, motor_damping=0.01)),
        },
    )  # fmt: skip


def damped():
    """Dampers parallel to springs, one of them in a joint that turns on."""
    return SeriesElastic(
        links(["continuous", "revolute"]),
        {
            "j0": Motor(0.2, LinearSpring(200.0, damping=0.8)),
            "j1": Motor(0.1, LinearSpring(150.0, damping=0.4), 0.2),
        },
    )


def symbolic():
    """Numbers of links, motors and springs as parameters."""
    return SeriesElastic(
        links(["revolute", "revolute"]).symbolic("link1.mass", "j1.damping"),
        {
            "j0": Motor(2e-5, 250.0, 1e-5, ratio=100.0),
            "j1": Motor(0.1, HardeningSpring(90.0, 500.0)),
        },
    ).symbolic("j0.motor", "j0.spring.stiffness", "j1.spring.cubic")


ARMS = {
    make.__name__: cache(make)
    for make in (plain, hardening, mixed, flying, floating, variable, damped, symbolic)
}


def random_state(arm, rng, deflection=0.1):
    """A state with deflections of this size, and inputs within their bounds."""
    system = arm.system()
    x, state = system.state.random(rng), system.state
    motor = state.coordinate_slice("motor")
    parts = []
    for joint in arm.elastic_joints:
        q = x[joint.places.q]
        parts.append(joint.group.plus(q, deflection * rng.normal(size=1)))
    x[motor] = np.concatenate(parts)
    if "stiffness_motor" in state.blocks:
        x[state.coordinate_slice("stiffness_motor")] = rng.uniform(0.3, 1.5)
    u = rng.normal(size=system.n_inputs)
    u = np.where([entry.nominal > 0 for entry in system.inputs], 100.0 + 50 * u**2, u)
    return x, u

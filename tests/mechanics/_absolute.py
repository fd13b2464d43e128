"""Trees with loops once more, every body with six degrees of freedom: joints are equations."""

import numpy as np

from lgcontrol.groups import SE3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import (
    DP1,
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    angle_drive,
    revolute,
    spherical,
    universal,
)

AXES = {"x": [1.0, 0, 0], "y": [0, 1.0, 0], "z": [0, 0, 1.0], "-y": [0, -1.0, 0]}


def mechanism_of(closed, kinds, ends, q, drives=None):
    """Mechanism with the bodies, joints and loops of a tree, placed as in a configuration.

    ``kinds`` gives the axes of revolute and universal joints by link, () of a link that does not
    turn; ``ends`` the links that each loop joins, spherically; ``drives`` the motions of revolute
    joints.
    """
    tree, joints, bodies, centers = closed.tree, [], [], {"ground": np.zeros(3)}
    for name in tree.bodies:
        inertia = tree.link(name).inertia
        centers[name] = np.asarray(inertia.center_of_mass)
        pose = np.array(tree.placement(name)(q))
        pose[:3] += SE3.matrix(pose)[:3, :3] @ centers[name]
        about = SpatialInertia(inertia.mass, [0, 0, 0], np.asarray(inertia.inertia), check="ignore")
        bodies.append(MechanismBody(name, about, pose))
    for name, axes in kinds.items():
        link = tree.link(name)
        parent = "ground" if link.parent == "world" else link.parent
        R, p = link.placement[:3, :3], link.placement[:3, 3] - centers[parent]
        if not axes:
            rows = [("x", "y"), ("y", "z"), ("z", "x")]
            held = [DP1(f"{a}_{b}", parent, AXES[a], name, AXES[b]) for a, b in rows]
            joints.append(MechanismJoint(f"on_{name}", held))
            continue
        first, last = (np.array(AXES[axis]) for axis in (axes[0], axes[-1]))
        across = np.roll(np.abs(first), 1)
        on_parent = Marker(parent, p, z=R @ first, x=R @ across)
        on_link = Marker(name, -centers[name], z=last, x=np.roll(np.abs(last), 1))
        make = revolute if len(axes) == 1 else universal
        joints.append(make(f"on_{name}", on_parent, on_link))
        if name in (drives or {}):
            joints.append(angle_drive(f"drive_{name}", on_parent, on_link, drives[name]))
    for loop in closed.loops:
        markers = []
        for frame, body in zip((loop.frame_a, loop.frame_b), ends[loop.name], strict=True):
            at = SE3.compose(SE3.inverse(tree.placement(body)(q)), tree.placement(frame)(q))
            markers.append(Marker(body, at[:3] - centers[body]))
        joints.append(spherical(f"closing_{loop.name}", *markers))
    return Mechanism(tree.name, bodies, joints, gravity=tree.gravity)

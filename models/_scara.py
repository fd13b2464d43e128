"""SCARA: a pick-and-place arm whose tool moves on the Schoenflies group."""

from __future__ import annotations

from collections.abc import Sequence

from lgcontrol.codegen import named_options
from lgcontrol.codegen._internal import as_names
from lgcontrol.groups import Product
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.systems import System

from ._system_of import system_of

HEIGHT = 0.2  # m, of the arms above the floor


@named_options
def scara_tree(
    *,
    lengths: Sequence[float] = (0.225, 0.175),
    masses: Sequence[float] = (3.0, 2.0, 0.6, 0.2),
    stroke: float = 0.15,
    payload: float = 0.0,
    gravity: Sequence[float] = (0.0, 0.0, -9.81),
    symbolic: Sequence[str] = (),
) -> Multibody:
    """Tree of a SCARA: two arms that turn about vertical axes, a quill that slides and turns.

    The frame "tool" at the quill's lower end keeps its z axis upright. It moves by translations and
    turns about z, so tasks on it take ``FrameTask("tool", Schoenflies)``.

    Parameters
    ----------
    lengths : sequence of 2 floats
        Of the arms [m].
    masses : sequence of 4 floats
        Of the two arms, the quill and the tool [kg].
    stroke : float
        Travel of the quill below its upper end [m].
    payload : float
        Point mass at the tool [kg].
    gravity : sequence of 3 floats
        In the arm's base frame [m/s²].
    symbolic : sequence of str
        Numbers that stay symbolic, see `Multibody.symbolic`: "tool.mass", ….

    Returns
    -------
    Multibody

    Notes
    -----
    Arms are rods, the quill and the tool cylinders. The numbers are round ones of our own for a
    bench-top machine of 0.4 m reach. Drives (with their armature) allow some 0.5 s for a cycle.

    Examples
    --------
    >>> from lgcontrol.groups import Product, Schoenflies
    >>> tree = scara_tree()
    >>> tree.nv, Schoenflies.dim
    (4, 4)
    """
    first, second = (float(length) for length in lengths)
    arms = [
        SpatialInertia.box(mass, [length, 0.08, 0.06], [length / 2, 0.0, 0.0])
        for mass, length in zip(masses[:2], (first, second), strict=True)
    ]
    quill = SpatialInertia.cylinder(masses[2], 0.01, 0.25, center_of_mass=[0.0, 0.0, 0.1])
    tool = SpatialInertia.cylinder(masses[3], 0.02, 0.04, center_of_mass=[0.0, 0.0, 0.02])
    if payload:
        tool = tool + SpatialInertia.point_mass(payload)
    swing = JointProperties(
        lower=-2.3, upper=2.3, velocity=8.0, effort=30.0, armature=0.02, damping=0.1
    )
    bend = JointProperties(
        lower=-2.5, upper=2.5, velocity=10.0, effort=15.0, armature=0.01, damping=0.05
    )
    slide = JointProperties(
        lower=-float(stroke), upper=0.0, velocity=1.5, effort=100.0, armature=0.5, damping=5.0
    )
    spin = JointProperties(
        lower=-6.3, upper=6.3, velocity=30.0, effort=2.0, armature=5e-4, damping=0.002
    )
    tree = Multibody("scara", gravity)
    tree = tree.add_body(
        "arm1", arms[0], "revolute", placement=[0, 0, HEIGHT], joint_name="swing", properties=swing
    )
    tree = tree.add_body(
        "arm2", arms[1], "revolute", "arm1", [first, 0, 0], joint_name="bend", properties=bend
    )
    tree = tree.add_body(
        "quill", quill, "prismatic", "arm2", [second, 0, 0], joint_name="slide", properties=slide
    )
    tree = tree.add_body(
        "tool", tool, "revolute", "quill", [0, 0, -0.04], joint_name="spin", properties=spin
    )
    return tree.symbolic(*as_names(symbolic)) if symbolic else tree


@system_of(scara_tree)
def scara(tree: Multibody) -> System[Product]:
    """SCARA pick-and-place arm driven by joint torques and a vertical force.

    Returns
    -------
    System
        State: joint coordinates and rates. Inputs: torques, and the force on the quill.

    Examples
    --------
    >>> [entry.unit for entry in scara().inputs]
    ['N m', 'N m', 'N', 'N m']
    """
    return tree.system(name="scara")

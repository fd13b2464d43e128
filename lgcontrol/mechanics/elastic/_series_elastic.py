"""SeriesElastic: a tree with motors behind springs, with all it can compute."""

from __future__ import annotations

from . import _flatness as flatness
from ._elastic_tree import ElasticTree


class SeriesElastic(ElasticTree):
    """A tree some of whose joints are driven by motors through springs.

    The links move as ``M(q) v̇ + h(q, v) = τ`` with the torques of the springs
    ``τ = σ(δ) + D δ̇``, ``δ = θ − q``, in elastic joints; the motors, each behind its gear, as
    ``B θ̈ + d θ̇ + f(θ̇) + τ = u``. Joints that are not named stay rigid. Motors move on the groups
    of their joints; the deflection is their `minus`.

    Parameters
    ----------
    tree : Multibody
    motors : mapping of str to Motor
        By joint.
    inputs : iterable of str, optional
        Rigid joints that are driven, besides the elastic ones, which all are; by default all but
        free ones.
    rotor_coupling : {"neglected"}
        See Notes.

    Attributes
    ----------
    tree : Multibody
    motors : dict of str to Motor
        In the order of the tree's joints.
    joints, driven : tuple of str
        The elastic ones, and all that are driven, in this order.
    elastic_joints : tuple of ElasticJoint
        Each elastic joint with its motor and its places.
    mechanics : ElasticMechanics
        Equations on CasADi columns, for controllers.
    state : Product
        Blocks configuration, velocity, motor, motor_velocity; where motors set stiffness also
        stiffness_motor and stiffness_motor_velocity.

    Raises
    ------
    KeyError
        If a joint or a parameter is unknown.
    ValueError
        If a joint has more than one degree of freedom or follows another one. Also if it has an
        armature: the inertia of its motor would count twice.
    NotImplementedError
        If rotors are to be coupled to the links' angular velocity.

    Notes
    -----
    Rotors store energy by their own spin only (Spong 1987). The mass of a motor is part of the
    link that carries it. Its angular momentum, ``inertia · ratio · θ̇``, does not turn that link.
    The moments left out are at most ``inertia · ratio · |θ̇| |ω|`` with ω the angular velocity of
    that link (`neglected_moments` has them at the limits). Inertial coupling (De Luca and Tomei
    1996), which makes the arm flat of a higher order, is not modelled.

    References
    ----------
    M. Spong: Modeling and control of elastic joint robots. ASME J. Dyn. Syst. Meas. Control 109
    (1987). A. De Luca, P. Lucibello: A general algorithm for dynamic feedback linearization of
    robots with elastic joints. ICRA 1998. A. Müller: Screw and Lie group theory in multibody
    dynamics, section 6.3 (2018).

    Examples
    --------
    >>> import numpy as np
    >>> from lgcontrol.mechanics import Motor, Multibody, SeriesElastic, SpatialInertia
    >>> rod = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    >>> tree = Multibody("arm").add_body("rod", rod, "revolute", axis="y")
    >>> arm = SeriesElastic(tree, {"rod": Motor(inertia=0.2, spring=100.0)})
    >>> system = arm.system()
    >>> system.trim(where={"configuration.rod": np.pi / 2}).x.round(4).tolist()
    [1.5708, 0.0, 1.6689, 0.0]
    """

    flat_map = flatness.flat_map
    flat_outputs = flatness.flat_outputs
    damped_motion = flatness.damped_motion
    to_flat_system = flatness.to_flat_system

"""Constrained mechanics: closed loops, joints as equations, systems on their manifold.

- A tree with loops: `ClosedTree`; `AssemblyError` where it cannot be closed.
- Bodies in absolute coordinates: `Mechanism` of `MechanismBody` and `MechanismJoint` at a `Marker`,
  driven by `MechanismMotor`. Both have the verbs of a `Linkage`.
- Joints: `revolute`, `spherical`, `universal`, `cylindrical`, `translational`, `fixed`, `planar`,
  `screw`, `gear`, `distance`, `knife_edge`, `rolling_disk`, `rolling_sphere`.
- Forces between markers: `spring_damper`, `torsion_spring`, `bushing`, `joint_friction`.
- Motions that are given: `angle_drive`, `position_drive`; functions as text: `Expression`.
- Basic constraints that joints are made of: `DP1`, `DP2`, `D`, `CD`, `VelocityConstraint`.
- Constraints of your own on any mechanical system: `Constraint`, `Constraints`,
  `constrained_system`.
"""

from ... import _names
from ._assembly import AssemblyError as AssemblyError
from ._basic import CD as CD
from ._basic import DP1 as DP1
from ._basic import DP2 as DP2
from ._basic import D as D
from ._basic import VelocityConstraint as VelocityConstraint
from ._closed_tree import ClosedTree as ClosedTree
from ._constraint import Constraint as Constraint
from ._constraint import Constraints as Constraints
from ._expression import Expression as Expression
from ._joints import Marker as Marker
from ._joints import MechanismBody as MechanismBody
from ._joints import MechanismJoint as MechanismJoint
from ._joints import angle_drive as angle_drive
from ._joints import cylindrical as cylindrical
from ._joints import distance as distance
from ._joints import fixed as fixed
from ._joints import gear as gear
from ._joints import knife_edge as knife_edge
from ._joints import planar as planar
from ._joints import position_drive as position_drive
from ._joints import revolute as revolute
from ._joints import rolling_disk as rolling_disk
from ._joints import rolling_sphere as rolling_sphere
from ._joints import screw as screw
from ._joints import spherical as spherical
from ._joints import translational as translational
from ._joints import universal as universal
from ._linkage import Linkage as Linkage
from ._marker_forces import MechanismMotor as MechanismMotor
from ._marker_forces import bushing as bushing
from ._marker_forces import joint_friction as joint_friction
from ._marker_forces import spring_damper as spring_damper
from ._marker_forces import torsion_spring as torsion_spring
from ._mechanism import Mechanism as Mechanism
from ._system import constrained_system as constrained_system

_names.answer(__name__)

"""Mechanics: inertias, single rigid bodies on groups, multibody trees.

- One body: `SpatialInertia`, `RigidBody`; `Gyrostat` and `GyroscopicWheels` on board.
- Trees: `Multibody` of `Joint` and `Link`, with `JointProperties` and `Mimic`;
  `random_configuration`.
- Forces: `Gravity`, `Spring`, `LinearDrag`, `QuadraticDrag`, `Buoyancy`, `Current`, `BodyWrench`,
  `WorldWrench`, the input `WrenchInput`; a `Force` of your own is a function of a `BodyMotion`,
  with a `Coefficient` for each number.
- Actuators: `Actuators` of `Rotor` and `Thruster`; `thrust_policy`.
- Arms: `InverseKinematics`, `FrameTask`, `LinkCapsules`; `FlatMotion` of bodies;
  `to_flat_system` for python-control's planning.
- Arms with springs at the joints: `SeriesElastic`, `Motor`, `LinearSpring`, `HardeningSpring`,
  `CustomSpring`, `AdjustedSpring`, `VariableSpring`.
- Closed loops: `ClosedTree`; joints as equations are in `lgcontrol.mechanics.constrained`.
- Other velocities: `QuasiVelocity`, `boltzmann_hamel_matrix`, `ad_tilde`; frames of twists are in
  `lgcontrol.mechanics.representations`.
"""

from .. import _names
from ._coefficients import Coefficient as Coefficient
from ._flat_systems import to_flat_system as to_flat_system
from .body._flat_motion import FlatMotion as FlatMotion
from .body._flat_motion import thrust_policy as thrust_policy
from .body._quasi_velocity import QuasiVelocity as QuasiVelocity
from .body._quasi_velocity import ad_tilde as ad_tilde
from .body._quasi_velocity import boltzmann_hamel_matrix as boltzmann_hamel_matrix
from .body._rigid_body import RigidBody as RigidBody
from .body._wheels import GyroscopicWheels as GyroscopicWheels
from .body._wheels import Gyrostat as Gyrostat
from .constrained._closed_tree import ClosedTree as ClosedTree
from .elastic._joint_spring import AdjustedSpring as AdjustedSpring
from .elastic._joint_spring import CustomSpring as CustomSpring
from .elastic._joint_spring import HardeningSpring as HardeningSpring
from .elastic._joint_spring import LinearSpring as LinearSpring
from .elastic._joint_spring import Motor as Motor
from .elastic._joint_spring import VariableSpring as VariableSpring
from .elastic._series_elastic import SeriesElastic as SeriesElastic
from .inertia._inertia import SpatialInertia as SpatialInertia
from .multibody._multibody import Multibody as Multibody
from .multibody.tasks._inverse_kinematics import FrameTask as FrameTask
from .multibody.tasks._inverse_kinematics import InverseKinematics as InverseKinematics
from .multibody.tasks._inverse_kinematics import random_configuration as random_configuration
from .multibody.tasks._link_capsules import LinkCapsules as LinkCapsules
from .multibody.tree._link import Joint as Joint
from .multibody.tree._link import JointProperties as JointProperties
from .multibody.tree._link import Link as Link
from .multibody.tree._link import Mimic as Mimic
from .surroundings._actuators import Actuators as Actuators
from .surroundings._actuators import Rotor as Rotor
from .surroundings._actuators import Thruster as Thruster
from .surroundings._forces import BodyMotion as BodyMotion
from .surroundings._forces import BodyWrench as BodyWrench
from .surroundings._forces import Buoyancy as Buoyancy
from .surroundings._forces import Force as Force
from .surroundings._forces import Gravity as Gravity
from .surroundings._forces import LinearDrag as LinearDrag
from .surroundings._forces import QuadraticDrag as QuadraticDrag
from .surroundings._forces import Spring as Spring
from .surroundings._forces import WorldWrench as WorldWrench
from .surroundings._forces import WrenchInput as WrenchInput
from .surroundings._surroundings import Current as Current

_names.answer(__name__)

"""Mechanics: inertias, single rigid bodies on groups, multibody trees."""

from ._actuators import Actuators as Actuators
from ._actuators import Rotor as Rotor
from ._actuators import Thruster as Thruster
from ._added_mass import Current as Current
from ._coefficients import Coefficient as Coefficient
from ._coriolis import ad_tilde as ad_tilde
from ._coriolis import boltzmann_hamel_matrix as boltzmann_hamel_matrix
from ._drag import LinearDrag as LinearDrag
from ._drag import QuadraticDrag as QuadraticDrag
from ._flat_motion import FlatMotion as FlatMotion
from ._forces import BodyMotion as BodyMotion
from ._forces import Buoyancy as Buoyancy
from ._forces import Force as Force
from ._forces import Gravity as Gravity
from ._frame_task import FrameTask as FrameTask
from ._inertia import Check as Check
from ._inertia import SpatialInertia as SpatialInertia
from ._inertia_matrix import spatial_inertia_matrix as spatial_inertia_matrix
from ._inertia_matrix import (
    spatial_inertia_matrix_from_parameters as spatial_inertia_matrix_from_parameters,
)
from ._inverse_kinematics import InverseKinematics as InverseKinematics
from ._inverse_kinematics import InverseKinematicsResult as InverseKinematicsResult
from ._principal import PrincipalInertia as PrincipalInertia
from ._random_configuration import random_configuration as random_configuration
from ._rigid_body import RigidBody as RigidBody
from ._thrust_policy import thrust_policy as thrust_policy
from ._velocity_forms import VelocityForm as VelocityForm
from ._wheels import GyroscopicWheels as GyroscopicWheels
from ._wheels import Gyrostat as Gyrostat
from ._wrenches import BodyWrench as BodyWrench
from ._wrenches import Spring as Spring
from ._wrenches import WorldWrench as WorldWrench
from ._wrenches import WrenchInput as WrenchInput
from .multibody import BaseParameters as BaseParameters
from .multibody import Calibration as Calibration
from .multibody import Identification as Identification
from .multibody import Joint as Joint
from .multibody import JointProperties as JointProperties
from .multibody import Mimic as Mimic
from .multibody import Multibody as Multibody
from .multibody import NormalModes as NormalModes
from .representations import UnifiedVelocity as UnifiedVelocity
from .representations import conversion_matrix as conversion_matrix
from .representations import convert_inertia as convert_inertia
from .representations import convert_jacobian as convert_jacobian
from .representations import convert_jacobian_rate as convert_jacobian_rate
from .representations import convert_momentum as convert_momentum
from .representations import convert_twist as convert_twist
from .representations import convert_twist_rate as convert_twist_rate
from .representations import convert_wrench as convert_wrench
from .representations import inertia_matrix as inertia_matrix
from .representations import newton_euler_wrench as newton_euler_wrench
from .representations import newton_euler_wrench_in_frames as newton_euler_wrench_in_frames
from .representations import rigid_body_momentum as rigid_body_momentum
from .representations import rigid_body_momentum_rate as rigid_body_momentum_rate

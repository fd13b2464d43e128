"""What rooms above need of `lgcontrol.mechanics` beyond what users type."""

from .body._flat_motion import LEAST_LIFT as LEAST_LIFT
from .body._velocity_forms import VelocityForm as VelocityForm
from .constrained._basic import BasicConstraint as BasicConstraint
from .constrained._basic import Connection as Connection
from .constrained._basic import Direction as Direction
from .constrained._basic import FreeConstraint as FreeConstraint
from .constrained._constraint import ConstraintTerms as ConstraintTerms
from .constrained._equations import MechanismEquations as MechanismEquations
from .constrained._formulations import FORMULATIONS as FORMULATIONS
from .constrained._formulations import Formulation as Formulation
from .constrained._joints import JointCoordinate as JointCoordinate
from .constrained._kinematics import KinematicsResult as KinematicsResult
from .constrained._kinematics import KinematicsStatus as KinematicsStatus
from .constrained._loop import LoopJoint as LoopJoint
from .constrained._march import March as March
from .constrained._marker_forces import MarkerForce as MarkerForce
from .constrained._mobility import Mobility as Mobility
from .constrained._mobility import SingularPosition as SingularPosition
from .constrained._system import ConstrainedMechanics as ConstrainedMechanics
from .constrained._system import Coordinate as Coordinate
from .constrained._system import Stabilization as Stabilization
from .elastic._joint_spring import JointSpring as JointSpring
from .inertia._inertia import Check as Check
from .inertia._inertia import PrincipalInertia as PrincipalInertia
from .inertia._inertia import spatial_inertia_matrix as spatial_inertia_matrix
from .inertia._inertia import (
    spatial_inertia_matrix_from_parameters as spatial_inertia_matrix_from_parameters,
)
from .multibody.compiled._functions import TreeFunction as TreeFunction
from .multibody.derivatives._first import NormalModes as NormalModes
from .multibody.parameters._base_parameters import BaseParameters as BaseParameters
from .multibody.parameters._base_parameters import Identification as Identification
from .multibody.parameters._calibration import Calibration as Calibration
from .multibody.tasks._inverse_kinematics import InverseKinematicsResult as InverseKinematicsResult
from .multibody.tree._link import Link as Link
from .multibody.tree._link import name_of_group as name_of_group

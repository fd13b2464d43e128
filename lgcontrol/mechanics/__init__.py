"""Mechanics: inertias, single rigid bodies on groups, multibody trees."""

from ._inertia import Check as Check
from ._inertia import PrincipalInertia as PrincipalInertia
from ._inertia import SpatialInertia as SpatialInertia
from ._inertia_matrix import spatial_inertia_matrix as spatial_inertia_matrix
from ._inertia_matrix import (
    spatial_inertia_matrix_from_parameters as spatial_inertia_matrix_from_parameters,
)
from .multibody import Joint as Joint
from .multibody import JointProperties as JointProperties
from .multibody import Mimic as Mimic
from .multibody import Multibody as Multibody

"""Trees of rigid bodies with Lie-group joints."""

from .derivatives._normal_modes import NormalModes as NormalModes
from .parameters._base_parameters import BaseParameters as BaseParameters
from .parameters._calibration import Calibration as Calibration
from .parameters._identification import Identification as Identification
from .plan._tree_function import TreeFunction as TreeFunction
from .tree._joints import Joint as Joint
from .tree._link import Frame as Frame
from .tree._link import JointProperties as JointProperties
from .tree._link import Link as Link
from .tree._link import Mimic as Mimic
from .tree._tree import Multibody as Multibody

"""Trees of rigid bodies with Lie-group joints."""

from ._multibody import Multibody as Multibody
from .compiled._functions import TreeFunction as TreeFunction
from .derivatives._normal_modes import NormalModes as NormalModes
from .parameters._base_parameters import BaseParameters as BaseParameters
from .parameters._base_parameters import Identification as Identification
from .parameters._calibration import Calibration as Calibration
from .tree._joint import Joint as Joint
from .tree._joint import name_of_group as name_of_group
from .tree._link import JointProperties as JointProperties
from .tree._link import Link as Link
from .tree._link import Mimic as Mimic

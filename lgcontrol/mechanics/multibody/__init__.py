"""Trees of rigid bodies with Lie-group joints."""

from ._base_parameters import BaseParameters as BaseParameters
from ._calibration import Calibration as Calibration
from ._functions import TreeFunction as TreeFunction
from ._identification import Identification as Identification
from ._joints import Joint as Joint
from ._link import Frame as Frame
from ._link import JointProperties as JointProperties
from ._link import Link as Link
from ._link import Mimic as Mimic
from ._normal_modes import NormalModes as NormalModes
from ._tree import Multibody as Multibody

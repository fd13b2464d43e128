"""What rooms above need of `lgcontrol.groups` beyond what users type."""

from ._abelian import CylindricalGroup as CylindricalGroup
from ._axis import axis_numbers as axis_numbers
from ._base import not_a_group as not_a_group
from ._base import operation_function as operation_function
from ._describe import describe_group as describe_group
from ._describe import group_difference as group_difference
from ._describe import group_from_description as group_from_description
from ._describe import group_words as group_words
from ._element import ELEMENT_ROUNDING as ELEMENT_ROUNDING
from ._element import ELEMENT_TOLERANCE as ELEMENT_TOLERANCE
from ._element import ask_order as ask_order
from ._product import Leaf as Leaf
from ._product import leaves as leaves
from ._schoenflies import SchoenfliesGroup as SchoenfliesGroup
from ._se2 import SE2Group as SE2Group
from ._se3 import SE3Group as SE3Group
from ._sek import held_motion as held_motion
from ._so2 import SO2Group as SO2Group
from ._so3 import SO3Group as SO3Group

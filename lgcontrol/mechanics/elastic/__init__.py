"""Series-elastic trees: motors, springs, the flat map."""

from ._joint_spring import AdjustedSpring as AdjustedSpring
from ._joint_spring import CustomSpring as CustomSpring
from ._joint_spring import HardeningSpring as HardeningSpring
from ._joint_spring import JointSpring as JointSpring
from ._joint_spring import LinearSpring as LinearSpring
from ._joint_spring import VariableSpring as VariableSpring
from ._motor import Motor as Motor
from ._series_elastic import SeriesElastic as SeriesElastic

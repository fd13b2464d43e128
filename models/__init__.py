"""Ready vehicles, arms and mechanisms.

Each is a function that returns a `lgcontrol.System`, in a file of its own: read it, call it with
other numbers, or copy it and change what you like. For an arm, ``NAME_tree`` returns its
`lgcontrol.Multibody`, which controllers and inverse kinematics take. If its joints have springs,
it returns the `lgcontrol.mechanics.SeriesElastic`. ``NAME_mechanism`` returns a
`lgcontrol.mechanics.constrained.Mechanism`: bodies and joints in absolute coordinates.
"""

from .. import _names
from ._delta_robot import delta_robot as delta_robot
from ._delta_robot import delta_robot_tree as delta_robot_tree
from ._elastic_panda import elastic_panda as elastic_panda
from ._elastic_panda import elastic_panda_tree as elastic_panda_tree
from ._elastic_planar_arm import elastic_planar_arm as elastic_planar_arm
from ._elastic_planar_arm import elastic_planar_arm_tree as elastic_planar_arm_tree
from ._elastic_space_arm import elastic_space_arm as elastic_space_arm
from ._elastic_space_arm import elastic_space_arm_tree as elastic_space_arm_tree
from ._elastic_ur5 import elastic_ur5 as elastic_ur5
from ._elastic_ur5 import elastic_ur5_tree as elastic_ur5_tree
from ._free_box import free_box as free_box
from ._heavy_top import heavy_top as heavy_top
from ._kissel_mechanisms import double_pendulum_mechanism as double_pendulum_mechanism
from ._kissel_mechanisms import four_link_mechanism as four_link_mechanism
from ._kissel_mechanisms import pendulum_mechanism as pendulum_mechanism
from ._kissel_mechanisms import slider_crank_mechanism as slider_crank_mechanism
from ._mueller_terze_mechanisms import floating_pair_mechanism as floating_pair_mechanism
from ._mueller_terze_mechanisms import heavy_top_mechanism as heavy_top_mechanism
from ._mueller_terze_mechanisms import (
    spherical_double_pendulum_mechanism as spherical_double_pendulum_mechanism,
)
from ._mueller_terze_mechanisms import three_bar_mechanism as three_bar_mechanism
from ._panda import panda as panda
from ._panda import panda_tree as panda_tree
from ._pick_and_place_head import pick_and_place_head as pick_and_place_head
from ._planar_linkages import five_bar as five_bar
from ._planar_linkages import five_bar_tree as five_bar_tree
from ._planar_linkages import four_bar as four_bar
from ._planar_linkages import four_bar_tree as four_bar_tree
from ._quadrotor import quadrotor as quadrotor
from ._rover import rover as rover
from ._satellite import satellite as satellite
from ._scara import scara as scara
from ._scara import scara_tree as scara_tree
from ._space_arm import space_arm as space_arm
from ._space_arm import space_arm_tree as space_arm_tree
from ._stewart_platform import stewart_platform as stewart_platform
from ._stewart_platform import stewart_platform_tree as stewart_platform_tree
from ._surface_vessel import ManeuveringDrag as ManeuveringDrag
from ._surface_vessel import surface_vessel as surface_vessel
from ._two_arms import two_arms as two_arms
from ._two_arms import two_arms_tree as two_arms_tree
from ._underwater_vehicle import underwater_vehicle as underwater_vehicle
from ._underwater_vehicle_arm import underwater_vehicle_arm as underwater_vehicle_arm
from ._underwater_vehicle_arm import underwater_vehicle_arm_tree as underwater_vehicle_arm_tree
from ._ur5 import ur5 as ur5
from ._ur5 import ur5_tree as ur5_tree
from ._variable_stiffness_joint import variable_stiffness_joint as variable_stiffness_joint
from ._variable_stiffness_joint import (
    variable_stiffness_joint_tree as variable_stiffness_joint_tree,
)

_names.answer(__name__)

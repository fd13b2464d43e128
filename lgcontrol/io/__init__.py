"""Readers and writers of plain data; they know nothing of the rest of the toolkit."""

from ._findings import UrdfError as UrdfError
from ._pose_graph import PoseGraph as PoseGraph
from ._pose_graph import read_pose_graph as read_pose_graph
from ._recordings import Recording as Recording
from ._recordings import read_broad as read_broad
from ._recordings import read_kitti_imu_gnss as read_kitti_imu_gnss
from ._recordings import read_plaza as read_plaza
from ._recordings import read_wifibot as read_wifibot
from ._robot import RobotDescription as RobotDescription
from ._urdf import parse_urdf as parse_urdf
from ._urdf import read_urdf as read_urdf
from ._urdf_writer import format_urdf as format_urdf
from ._urdf_writer import write_urdf as write_urdf

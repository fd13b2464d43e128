"""Readers and writers of plain data; they know nothing of the rest of the toolkit.

- Robots: `read_urdf`, `parse_urdf`, `write_urdf`, `format_urdf`, with a `RobotDescription` between
  them; `UrdfError`.
- Graphs of poses: `read_pose_graph`, `PoseGraph`.
- Recordings: `read_broad`, `read_kitti_imu_gnss`, `read_plaza`, `read_wifibot`.
"""

from .. import _names
from ._findings import UrdfError as UrdfError
from ._pose_graph import PoseGraph as PoseGraph
from ._pose_graph import read_pose_graph as read_pose_graph
from ._recordings import read_broad as read_broad
from ._recordings import read_kitti_imu_gnss as read_kitti_imu_gnss
from ._recordings import read_plaza as read_plaza
from ._recordings import read_wifibot as read_wifibot
from ._robot import RobotDescription as RobotDescription
from ._urdf import parse_urdf as parse_urdf
from ._urdf import read_urdf as read_urdf
from ._urdf_writer import format_urdf as format_urdf
from ._urdf_writer import write_urdf as write_urdf

_names.answer(__name__)

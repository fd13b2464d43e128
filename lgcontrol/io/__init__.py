"""Readers and writers of plain data; they know nothing of the rest of the toolkit."""

from ._findings import Finding as Finding
from ._findings import UrdfError as UrdfError
from ._joint import JointDescription as JointDescription
from ._joint import JointDynamics as JointDynamics
from ._joint import JointLimits as JointLimits
from ._joint import JointMimic as JointMimic
from ._link import InertialDescription as InertialDescription
from ._link import LinkDescription as LinkDescription
from ._mesh_path import resolve_mesh as resolve_mesh
from ._physics import find_faults as find_faults
from ._pose import Pose as Pose
from ._robot import RobotDescription as RobotDescription
from ._shapes import Box as Box
from ._shapes import Capsule as Capsule
from ._shapes import Cylinder as Cylinder
from ._shapes import Mesh as Mesh
from ._shapes import Shape as Shape
from ._shapes import Sphere as Sphere
from ._urdf import parse_urdf as parse_urdf
from ._urdf import read_urdf as read_urdf
from ._urdf_writer import format_urdf as format_urdf
from ._urdf_writer import write_urdf as write_urdf

"""What rooms above need of `lgcontrol.io` beyond what users type."""

from ._archive import DAMAGE as DAMAGE
from ._archive import LARGEST_ARCHIVE as LARGEST_ARCHIVE
from ._archive import check_file as check_file
from ._archive import damage_reason as damage_reason
from ._archive import read_archive as read_archive
from ._archive import read_arrays as read_arrays
from ._archive import write_archive as write_archive
from ._ending import with_ending as with_ending
from ._findings import Finding as Finding
from ._joint import LARGEST_MULTIPLIER as LARGEST_MULTIPLIER
from ._joint import JointDescription as JointDescription
from ._joint import JointDynamics as JointDynamics
from ._joint import JointLimits as JointLimits
from ._joint import JointMimic as JointMimic
from ._link import InertialDescription as InertialDescription
from ._link import LinkDescription as LinkDescription
from ._mesh_path import resolve_mesh as resolve_mesh
from ._physics import find_faults as find_faults
from ._pose import Origin as Origin
from ._recordings import Recording as Recording
from ._shapes import BoxShape as BoxShape
from ._shapes import CapsuleShape as CapsuleShape
from ._shapes import CylinderShape as CylinderShape
from ._shapes import MeshShape as MeshShape
from ._shapes import Shape as Shape
from ._shapes import SphereShape as SphereShape

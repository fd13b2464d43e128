"""Estimation on groups: filters, their measurements, and how consistent they are.

- Filters: `EKF`, `UKF`; of attitude `AttitudeHeading`; of forces `MomentumObserver`; with
  unknown disturbances `OffsetFree`. Each says what it did by `UpdateStatus` and `PredictStatus`.
- A window or a whole log: `MovingHorizon`, `Log`, `EstimationResult`.
- Graphs and maps: `FactorGraph`, `Variables`, `Factors`, `pose_graph`, `LandmarkMap`,
  `Preintegration`.
- Models that sensors drive: `inertial_navigation`, `odometry`, `SensorDriven`.
- Sensors: `altimeter`, `beacon_range`, `bearing`, `depth`, `dvl`, `encoders`, `gnss`, `imu`,
  `landmark_position`, `magnetic_heading`, `magnetometer`, `relative_pose`, `wheel_odometry`,
  `zero_velocity`.
- Noise and observability of recordings: `allan_deviation`, `fit_noise`, `observability_along`.
"""

from .. import _names
from ._attitude import AttitudeHeading as AttitudeHeading
from ._driven import SensorDriven as SensorDriven
from ._estimates import EstimationResult as EstimationResult
from ._factor_graph import FactorGraph as FactorGraph
from ._factor_graph import Factors as Factors
from ._factor_graph import Variables as Variables
from ._inertial import Preintegration as Preintegration
from ._inertial import inertial_navigation as inertial_navigation
from ._inertial import odometry as odometry
from ._kalman import EKF as EKF
from ._kalman import UKF as UKF
from ._landmark_map import LandmarkMap as LandmarkMap
from ._log import Log as Log
from ._moving_horizon import MovingHorizon as MovingHorizon
from ._noise import allan_deviation as allan_deviation
from ._noise import fit_noise as fit_noise
from ._noise import observability_along as observability_along
from ._observers import MomentumObserver as MomentumObserver
from ._offset_free import OffsetFree as OffsetFree
from ._pose_graph import pose_graph as pose_graph
from ._sensors import altimeter as altimeter
from ._sensors import beacon_range as beacon_range
from ._sensors import bearing as bearing
from ._sensors import depth as depth
from ._sensors import dvl as dvl
from ._sensors import encoders as encoders
from ._sensors import gnss as gnss
from ._sensors import imu as imu
from ._sensors import landmark_position as landmark_position
from ._sensors import magnetic_heading as magnetic_heading
from ._sensors import magnetometer as magnetometer
from ._sensors import relative_pose as relative_pose
from ._sensors import wheel_odometry as wheel_odometry
from ._sensors import zero_velocity as zero_velocity
from ._status import PredictStatus as PredictStatus
from ._status import UpdateStatus as UpdateStatus

_names.answer(__name__)

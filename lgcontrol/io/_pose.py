"""Pose of one frame in another, as robot files give it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

NORM_TOLERANCE = 1.5e-2  # few printed digits: (0, 0, 0.7, 0.7) has length 0.99
# Up to this, the norm is 1 to the last bits and dividing by it would only move them.
EXACT_NORM = 1e-15


@dataclass(frozen=True, slots=True)
class Origin:
    """T_parent_child: where a frame stands in its parent frame.

    Parameters
    ----------
    xyz : tuple of float, shape (3,)
        Origin of the child frame in the parent frame, metres.
    rpy : tuple of float, shape (3,)
        Roll, pitch, yaw in radians, about the fixed axes x, then y, then z of the parent frame.
    quaternion : tuple of float, shape (4,), optional
        Unit quaternion (x, y, z, w), where the file gives one; it then decides the rotation and
        `rpy` is derived from it. Missing digits are made up for: it is normalised.

    Raises
    ------
    ValueError
        If there are not as many numbers, one is not finite, or the quaternion has not length 1.

    Examples
    --------
    >>> import math
    >>> from lgcontrol.io._pose import Origin
    >>> T_base_tool = Origin(xyz=(0.0, 0.0, 0.5), rpy=(0.0, 0.0, math.pi / 2))
    >>> T_base_tool.matrix.round(6)
    array([[ 0. , -1. ,  0. ,  0. ],
           [ 1. ,  0. ,  0. ,  0. ],
           [-0. ,  0. ,  1. ,  0.5],
           [ 0. ,  0. ,  0. ,  1. ]])
    """

    xyz: Vector3 = (0.0, 0.0, 0.0)
    rpy: Vector3 = (0.0, 0.0, 0.0)
    quaternion: Quaternion | None = None

    def __post_init__(self) -> None:
        """Check the numbers, normalise the quaternion and derive rpy from it."""
        for name, count in (("xyz", 3), ("rpy", 3), ("quaternion", 4)):
            given = getattr(self, name)
            if name == "quaternion" and given is None:
                continue
            numbers = tuple(float(x) for x in given)
            if len(numbers) != count or not all(map(math.isfinite, numbers)):
                raise ValueError(f"Pose: {name} must be {count} finite numbers, got {given}")
            object.__setattr__(self, name, numbers)
        if self.quaternion is not None:
            unit = _unit_quaternion(self.quaternion)
            object.__setattr__(self, "quaternion", unit)
            rpy = _rpy_from_rotation(_rotation_from_quaternion(unit))
            object.__setattr__(self, "rpy", rpy)

    @property
    def position(self) -> np.ndarray:
        """Origin of the child frame in the parent frame, shape (3,), metres."""
        return np.array(self.xyz)

    @property
    def rotation(self) -> np.ndarray:
        """R_parent_child, shape (3, 3): columns are the child's axes in the parent frame."""
        if self.quaternion is not None:
            return _rotation_from_quaternion(self.quaternion)
        return _rotation_from_rpy(self.rpy)

    @property
    def matrix(self) -> np.ndarray:
        """T_parent_child, shape (4, 4)."""
        matrix = np.eye(4)
        matrix[:3, :3] = self.rotation
        matrix[:3, 3] = self.xyz
        return matrix

    @classmethod
    def from_quaternion(cls, xyz: Vector3, quaternion: Quaternion) -> Origin:
        """Pose with the rotation of a unit quaternion (x, y, z, w).

        Parameters
        ----------
        xyz : tuple of float, shape (3,)
            Origin of the child frame in the parent frame, metres.
        quaternion : tuple of float, shape (4,)
            Unit quaternion (x, y, z, w).

        Returns
        -------
        Origin
            The pose, with `rpy` derived.

        Examples
        --------
        >>> from lgcontrol.io._pose import Origin
        >>> Origin.from_quaternion((0.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)).rpy[2]
        3.141592653589793
        """
        return cls(xyz, quaternion=quaternion)


def _unit_quaternion(quaternion: Quaternion) -> Quaternion:
    norm = math.hypot(*quaternion)
    if abs(norm - 1.0) > NORM_TOLERANCE:
        raise ValueError(
            f"Pose: the quaternion {quaternion} has length {norm:.6g}, expected 1; divide by it if "
            "the direction is meant"
        )
    if abs(norm - 1.0) <= EXACT_NORM:
        return quaternion
    x, y, z, w = (component / norm for component in quaternion)
    return x, y, z, w


def _rotation_from_rpy(rpy: Vector3) -> np.ndarray:
    """R = Rz(yaw) Ry(pitch) Rx(roll)."""
    (cr, cp, cy), (sr, sp, sy) = (tuple(map(f, rpy)) for f in (math.cos, math.sin))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _rotation_from_quaternion(quaternion: Quaternion) -> np.ndarray:
    """R = I + 2 w [u] + 2 [u]² for the unit quaternion (u, w)."""
    x, y, z, w = quaternion
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2.0 * w * cross + 2.0 * cross @ cross


def _rpy_from_rotation(rotation: np.ndarray) -> Vector3:
    """Angles with pitch in [-π/2, π/2]; at pitch ±π/2 the yaw is set to zero."""
    r = rotation
    cos_pitch = math.hypot(r[0, 0], r[1, 0])
    pitch = math.atan2(-r[2, 0], cos_pitch)
    if cos_pitch < 1e-12:
        return math.atan2(-r[1, 2], r[1, 1]), pitch, 0.0
    return math.atan2(r[2, 1], r[2, 2]), pitch, math.atan2(r[1, 0], r[0, 0])

"""<origin> and the unit vectors of a URDF file."""

from __future__ import annotations

import math

from ._cursor import Cursor
from ._pose import EXACT_NORM, Origin

# Above one turn an angle is more likely given in degrees; the margin admits a rounded 2π.
LARGEST_ANGLE = 2.0 * math.pi * 1.001

# A norm this close to 1 is the rounding of printed digits; further off, somebody meant something.
ROUNDED_NORM = 1e-3
SMALLEST_NORM = 1e-9


def read_origin(parent: Cursor) -> Origin:
    """Pose in the <origin> child; the identity when there is none.

    Raises
    ------
    UrdfError
        If the numbers are malformed or two rotations are given.
    """
    origin = parent.child("origin")
    if origin is None:
        return Origin()
    origin.check_attributes("xyz", "rpy", "quat_xyzw")
    x, y, z = origin.numbers("xyz", 3, "x y z in metres") or (0.0, 0.0, 0.0)
    rpy = origin.numbers("rpy", 3, "roll pitch yaw in radians")
    quaternion = origin.numbers("quat_xyzw", 4, "unit quaternion x y z w")
    if quaternion is not None:
        if rpy is not None:
            raise origin.fail("rpy and quat_xyzw both give the rotation; keep one")
        qx, qy, qz, qw = unit(origin, "quat_xyzw", quaternion)
        return Origin.from_quaternion((x, y, z), (qx, qy, qz, qw))
    roll, pitch, yaw = rpy or (0.0, 0.0, 0.0)
    largest = max((roll, pitch, yaw), key=abs)
    if abs(largest) > LARGEST_ANGLE:
        origin.warn(
            f'rpy="{origin.element.attributes["rpy"]}" looks like degrees ({largest:g} rad is more '
            f"than one turn); URDF angles are radians: {largest:g} degrees are "
            f"{math.radians(largest):.6g} rad"
        )
    return Origin((x, y, z), (roll, pitch, yaw))


def unit(cursor: Cursor, attribute: str, vector: tuple[float, ...]) -> tuple[float, ...]:
    """Vector divided by its norm, with a finding where the norm was not 1.

    Raises
    ------
    UrdfError
        If the vector is zero.
    """
    norm = math.hypot(*vector)
    written = cursor.element.attributes[attribute]
    if not SMALLEST_NORM < norm < 1.0 / SMALLEST_NORM:
        raise cursor.fail(
            f'{attribute}="{written}" has norm {norm:g} and gives no direction; expected a unit '
            "vector"
        )
    if abs(norm - 1.0) <= EXACT_NORM:
        return vector
    if abs(norm - 1.0) > ROUNDED_NORM:
        cursor.warn(
            f'{attribute}="{written}" has norm {norm:.9g}, expected 1; it is normalised: a scale '
            "factor has no meaning here"
        )
    elif abs(norm - 1.0) > 1e-6:
        cursor.note(f'{attribute}="{written}" has norm {norm:.9g}; it is normalised')
    return tuple(component / norm for component in vector)

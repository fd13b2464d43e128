"""Recordings that others published, as archives of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from ._archive import read_arrays

Series = tuple[np.ndarray, np.ndarray]
"""Times (K,) in s, and values (K, n)."""


@dataclass(frozen=True, eq=False)
class Recording:
    """Signals of a recording, all at the times t, and what was measured and known besides.

    Signals drive a model: gyroscope, accelerometer, velocity of odometry. Measurements and truth
    are (times, values); places are the positions of beacons.
    """

    t: np.ndarray
    signals: dict[str, np.ndarray]
    measurements: dict[str, Series] = field(default_factory=dict)
    truth: dict[str, Series] = field(default_factory=dict)
    places: dict[str, np.ndarray] = field(default_factory=dict)


def read_broad(path: str | PathLike[str]) -> Recording:
    """A trial of BROAD: IMU with magnetometer, attitude by optical motion capture.

    Parameters
    ----------
    path : path of the npz file

    Returns
    -------
    Recording
        Signals "gyro" [rad/s], "accelerometer" [m/s²], "magnetometer" [µT]; truth "attitude"
        (quaternion [x, y, z, w] from the sensor to a frame with x east, z up; NaN where markers
        were lost) and "moves" (1 where the trial is to be scored).

    References
    ----------
    Laidig, Caruso, Cereatti and Seel, BROAD, Data 6(7):72, 2021.
    """
    data = _load(path, "fs", "acc", "gyr", "mag", "quat", "movement")
    t = np.arange(len(data["gyr"])) / data["fs"].item()
    return Recording(
        t,
        {"gyro": data["gyr"], "accelerometer": data["acc"], "magnetometer": data["mag"]},
        truth={
            "attitude": (t, data["quat"][:, [1, 2, 3, 0]]),
            "moves": (t, data["movement"][:, None]),
        },
    )


def read_wifibot(path: str | PathLike[str]) -> Recording:
    """A drive of the Wifibot: wheel odometry, pose by optical motion capture.

    Parameters
    ----------
    path : path of the npz file

    Returns
    -------
    Recording
        Signal "velocity" in the body frame [m/s, m/s, rad/s]; truth "pose" [x, y, cos, sin].

    References
    ----------
    Brossard, Barrau and Bonnabel, UKF-M, ICRA 2020.
    """
    data = _load(path, "t", "v", "gyro", "theta", "p")
    velocity = np.column_stack([data["v"], data["gyro"]])
    pose = np.column_stack([data["p"], np.cos(data["theta"]), np.sin(data["theta"])])
    return Recording(data["t"], {"velocity": velocity}, truth={"pose": (data["t"], pose)})


def read_plaza(path: str | PathLike[str]) -> Recording:
    """A drive of the Plaza mower: odometry, radio ranges to four beacons, pose by RTK-GPS.

    Parameters
    ----------
    path : path of the npz file

    Returns
    -------
    Recording
        Signal "velocity" in the body frame [m/s, m/s, rad/s], from each time to the next;
        measurements "range_1" … [m] by beacon; truth "pose" [x, y, cos, sin] with x forward;
        places by the same names as the measurements [m].

    References
    ----------
    Djugash, Hamner and Roth, Navigating with ranging radios: five data sets with ground truth,
    Journal of Field Robotics 26(9), 2009.
    """
    data = _load(path, "DR", "DRp", "GT", "TD", "TL")
    t = data["DRp"][:, 0]
    later = np.diff(t) > 0  # what stands twice counts once
    steps = np.where(later, np.diff(t), np.inf)[:, None]
    increments = np.column_stack([data["DR"][:, 1], 0 * data["DR"][:, 1], data["DR"][:, 2]])
    ranges = {
        f"range_{int(beacon)}": (
            data["TD"][data["TD"][:, 2] == beacon, 0],
            data["TD"][data["TD"][:, 2] == beacon, 3:],
        )
        for beacon in data["TL"][:, 0]
    }
    # the file has the heading backwards where dead reckoning says that the mower drives so
    heading = data["GT"][:, 3]
    if np.cos(heading[0] - data["DRp"][0, 3]) < 0:
        heading = heading + np.pi
    pose = np.column_stack([data["GT"][:, 1:3], np.cos(heading), np.sin(heading)])
    return Recording(
        t[:-1],
        {"velocity": increments / steps},
        ranges,
        {"pose": (data["GT"][:, 0], pose)},
        {name: place for name, place in zip(ranges, data["TL"][:, 1:], strict=True)},
    )


def read_kitti_imu_gnss(path: str | PathLike[str]) -> Recording:
    """A drive of KITTI: IMU at 100 Hz, GNSS once a second.

    Parameters
    ----------
    path : path of the npz file

    Returns
    -------
    Recording
        Signals "gyro" [rad/s], "accelerometer" [m/s²], frame forward, left, up; measurement "gnss"
        [m] east, north, up. Times count from the first sample.

    References
    ----------
    Geiger, Lenz, Stiller and Urtasun, Vision meets robotics: the KITTI dataset, IJRR 32(11), 2013.
    """
    data = _load(path, "t", "acc", "gyr", "gps_t", "gps_xyz")
    fixes = (data["gps_t"] - data["t"][0], data["gps_xyz"])
    return Recording(
        data["t"] - data["t"][0],
        {"gyro": data["gyr"], "accelerometer": data["acc"]},
        {"gnss": fixes},
    )


def _load(path: str | PathLike[str], *names: str) -> Mapping[str, Any]:
    """Arrays of a recording in double precision; what it lacks is named."""
    arrays = read_arrays(Path(path), "recording")
    missing = [name for name in names if name not in arrays]
    if missing:
        raise ValueError(f"{path}: lacks {', '.join(missing)}; it holds {', '.join(arrays)}")
    return {name: np.asarray(arrays[name], dtype=np.float64) for name in names}

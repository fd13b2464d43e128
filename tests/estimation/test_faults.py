"""A hundred faults of sensors, logs and settings: none is silent, and healthy runs are."""

import re

import pytest

from lgcontrol.estimation import EKF, UKF, MovingHorizon

from . import _faults as faults

SCENES = {"car": faults.Car(), "ahrs": faults.Ahrs(), "ins": faults.Ins()}
TABLES = {"car": faults.CAR, "ahrs": faults.AHRS, "ins": faults.INS}
FILTERS = {"EKF": EKF, "UKF": UKF}
MAKERS = {"car": {**FILTERS, "MovingHorizon": MovingHorizon},
          "ahrs": {"EKF": None}, "ins": FILTERS}  # fmt: skip
USUAL = {
    "car": ("fixes in millimetres", "frozen fixes", "fixes lost on the way", "fixes doubled",
            "one fix 500 m off", "rate clockwise", "fixes said to be ten times as noisy",
            "noise of inputs 10 times too small"),
    "ahrs": ("x and y of the magnetometer swapped", "magnetometer in gauss", "frozen gyroscope"),
    "ins": ("accelerometer in g", "gravity of the Moon"),
}  # fmt: skip


def cases():
    for scene, table in TABLES.items():
        for fault in table:
            for name, make in MAKERS[scene].items():
                is_usual = fault.name in USUAL[scene] and name == "EKF"
                yield pytest.param(scene, make, fault, id=f"{scene}-{name}-{fault.name}",
                                   marks=() if is_usual else pytest.mark.thorough)  # fmt: skip


def said(scene, make, change=None):
    return faults.told(SCENES[scene], change, **({} if make is None else {"make": make}))


def test_there_are_a_hundred_with_a_name_each():
    names = [(scene, fault.name) for scene, table in TABLES.items() for fault in table]
    assert len(names) == len(set(names)) >= 100
    assert all(name in {f.name for f in TABLES[scene]} for scene in USUAL for name in USUAL[scene])


@pytest.mark.parametrize(("scene", "make", "fault"), [*cases()])
def test_no_fault_is_silent(scene, make, fault):
    """An error, a warning or a line of the summary has the words; a healthy run has none of it."""
    assert re.search(fault.words, said(scene, make, fault.change))
    assert not re.search(fault.words, healthy(scene, make))


HEALTHY = {}


def healthy(scene, make):
    if (scene, make) not in HEALTHY:
        HEALTHY[scene, make] = said(scene, make)
    return HEALTHY[scene, make]


def is_quiet(text):
    """Whether each line is a count of what was predicted and used, and nothing else."""
    return all(re.fullmatch(r"\w+: \d+ (predicted|used)", line) for line in text.splitlines())


@pytest.mark.parametrize("scene", TABLES)
def test_healthy_runs_are_quiet(scene):
    assert is_quiet(healthy(scene, None if scene == "ahrs" else EKF))


UNSEEN = [("car", EKF, one) for one in faults.UNSEEN_CAR]
UNSEEN += [("ahrs", None, one) for one in faults.UNSEEN_AHRS]


@pytest.mark.thorough
@pytest.mark.parametrize(("scene", "make", "fault"), UNSEEN, ids=lambda v: getattr(v, "name", ""))
def test_what_no_data_show_is_listed_with_its_reason(scene, make, fault):
    assert fault.reason and is_quiet(said(scene, make, fault.change))

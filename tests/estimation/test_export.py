"""Exported filters: compiled alone, with all warnings, they do what Python's do."""

import shutil
import subprocess

import pytest

from lgcontrol.estimation import EKF, UKF, MovingHorizon, gnss
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound
from lgcontrol.systems import Measurement

from ..codegen.test_export import built, needs_compiler
from ._models import ATTITUDE, FIELD, GRAVITY, PLANAR
from .test_filters import EXACT
from .test_moving_horizon import tank

FIX = gnss(PLANAR, lever_arm=[0.5, 0.2], std_discrete=0.3)
SPEED = Measurement("speed?", lambda t, x, u, p: x[1], EXACT.state.__class__(1), std_discrete=0.2)
FILTERS = {
    "right": lambda: EKF(PLANAR, [FIX], std0=0.3, noise={"velocity": 0.2}, error="right",
                         robust="huber"),
    "unscented": lambda: UKF(PLANAR, [FIX], std0=0.3, noise={"velocity": 0.2}),
    "attitude": lambda: EKF(ATTITUDE, [GRAVITY, FIELD], std0=0.1, noise={"gyro": 0.01}, gate=0.99,
                            settle=2),
    "discrete": lambda: EKF(EXACT, [SPEED], std0=1.0, noise={"push": 0.3}),
}  # fmt: skip


@pytest.mark.usually(name=("right", "discrete"))
@needs_compiler
@pytest.mark.parametrize("name", FILTERS)
def test_an_exported_filter_replays_the_run_of_python(name, tmp_path):
    folder = FILTERS[name]().export_c(tmp_path / "own", name="own")
    sources = sorted(path.name for path in folder.glob("*.c"))
    done = subprocess.run(
        [built(folder, *sources, into=tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "memory of the filter" in done.stdout


def tank_window():
    level = Measurement("seen", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1,
                        limits=(-5.0, 50.0))  # fmt: skip
    return MovingHorizon(tank(), [level], [0.5, 0.1], std0=0.3, noise={"rain": 0.6}, horizon=4,
                         dt=0.2, bounds=[Bound("level", lower=0.0)], robust="huber")  # fmt: skip


WINDOWS = {
    "planar": lambda: MovingHorizon(PLANAR, [FIX], std0=0.3, noise={"velocity": 0.2}, horizon=3,
                                    dt=0.1, iterations=1),
    "limited": tank_window,
}  # fmt: skip


@pytest.mark.usually(name=("planar",))
@needs_compiler
@pytest.mark.parametrize("name", WINDOWS)
def test_an_exported_window_replays_the_run_of_python(name, tmp_path):
    folder = WINDOWS[name]().export_c(tmp_path / "own", name="own")
    sources = sorted(path.name for path in folder.glob("*.c"))
    done = subprocess.run(
        [built(folder, *sources, into=tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    assert "memory of the estimator" in done.stdout


@needs_compiler
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_its_header_serves_cplusplus(tmp_path):
    folder = FILTERS["discrete"]().export_c(tmp_path / "own", name="own")
    check = folder / "check.cpp"
    check.write_text('#include "own.h"\nint main() { own_filter f; own_start(&f, 0); return '
                     "own_update_speed(&f, f.z, 0) == OWN_UPDATE_USED; }\n")  # fmt: skip
    command = ["g++", "-Wall", "-Werror", "-fsyntax-only", str(check)]
    assert not subprocess.run(command, check=False).returncode
    assert "OWN_X_" in (folder / "own.h").read_text()

"""Exported filters: compiled alone, with all warnings, they do what Python's do."""

import shutil
import subprocess

import numpy as np
import pytest

from lgcontrol.estimation import EKF, UKF, MovingHorizon, PredictStatus, UpdateStatus, gnss
from lgcontrol.groups import Rn
from lgcontrol.optimal import Bound
from lgcontrol.systems import Sensor

from ..codegen.test_export import built, needs_compiler
from ..hostile.firmware import answers_of, estimator_program, width_of
from ._models import ATTITUDE, CART, FIELD, GRAVITY, PLACE, PLANAR
from .test_filters import EXACT
from .test_moving_horizon import tank

FIX = gnss(PLANAR, lever_arm=[0.5, 0.2], std_discrete=0.3)
SPEED = Sensor("speed?", lambda t, x, u, p: x[1], EXACT.state.__class__(1), std_discrete=0.2)
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
    level = Sensor("seen", lambda t, x, u, p: x[0], Rn(1), std_discrete=0.1,
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
    level = "-O1" if name == "limited" else "-O0"  # a compiler that optimises warns of more
    program = built(folder, *sources, into=tmp_path, level=level)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "memory of the estimator" in done.stdout


CLOSE = 1e-3


def small_window():
    return MovingHorizon(CART, [PLACE], std0=1.0, noise={"push": 0.3}, horizon=3, dt=0.1)


def hostile_calls(estimator, rng, count, *, stamps=True):
    """``[kind, dt or time, values]``: mostly usual ones, some unaligned, absurd or not finite."""
    names, now, calls = list(estimator.sensors), 0.0, []
    bad = [np.nan, np.inf, -np.inf, 1e5, -1e20, 1e160, 0.0]
    for _ in range(count):
        values, kind = np.zeros(width_of(estimator)), int(rng.integers(1 + len(names)))
        if kind == 0:
            length = rng.choice([0.1, 0.1, 0.1, 0.03, 0.07, 0.25, 0.0])
            if rng.random() < 0.05:
                length = rng.choice([7.0, 100.0, np.nan, -1.0, 1e14, np.inf])
            values[: estimator.system.n_inputs] = 0.3 * rng.normal(size=estimator.system.n_inputs)
            now += length if 0 <= length < 1e9 else 0.0
            first = length
        else:
            group = estimator.sensors[names[kind - 1]].group
            values[: group.nq] = group.random(rng)
            first = now - rng.choice([0.0, 0.0, 0.04, 0.2]) if stamps else now
            if rng.random() < 0.05:
                first = rng.choice([np.nan, -np.inf, 1e300, -1e300, -1e11])
        if rng.random() < 0.05:
            values[rng.integers(len(values))] = rng.choice(bad)
        calls.append([kind, first, *values])
    return calls


@pytest.mark.usually(name=("small",))
@needs_compiler
@pytest.mark.parametrize("name", [*WINDOWS, "small"])
@pytest.mark.filterwarnings("ignore:.*is left out")
def test_an_exported_window_takes_what_python_takes(name, tmp_path):
    """Unaligned, late, absurd and broken calls: the same words, estimates, covariances.

    Larger windows run under sanitizers besides.
    """
    mhe = WINDOWS[name]() if name in WINDOWS else small_window()
    calls = hostile_calls(mhe, np.random.default_rng(5), 100)
    told = answers_of(estimator_program(mhe, tmp_path, is_watched=name in WINDOWS), calls)
    names = list(mhe.sensors)
    mhe.predict(0.0, mhe.system.nominal_input, 0.0)
    for (kind, first, *values), (status, *numbers) in zip(calls, told, strict=True):
        if kind == 0:
            before = mhe.counts["predict"].copy()
            mhe.predict(mhe.t, np.array(values[: mhe.system.n_inputs]), first)
            now = mhe.counts["predict"] - before
            word = PredictStatus(int(status)).text
            assert now[word] == 1 or first == 0.0, (now, word)
        else:
            key = names[kind - 1]
            before = mhe.counts[key].copy()
            mhe.update(key, values[: mhe.sensors[key].group.nq], t=first)
            (word,) = mhe.counts[key] - before
            expected = UpdateStatus(int(status)).text
            assert word == expected or (word, expected) == ("replaced", "used")
        x, P = mhe.x, mhe.P.ravel()
        assert np.isfinite(x).all() and np.isfinite(P).all()
        # steps of a call that end before convergence, far off, differ by what rounding grew to
        assert np.abs(numbers[: len(x)] - x).max() < CLOSE * (1 + np.abs(x).max())
        assert np.abs(numbers[len(x) :] - P).max() < CLOSE * (1 + np.abs(P).max())


@needs_compiler
@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
def test_its_header_serves_cplusplus(tmp_path):
    folder = FILTERS["discrete"]().export_c(tmp_path / "own", name="own")
    check = folder / "check.cpp"
    check.write_text('#include "own.h"\nint main() { own f; own_init(&f, 0); return '
                     "own_update_speed(&f, f.z, 0) == OWN_UPDATE_USED; }\n")  # fmt: skip
    command = ["g++", "-Wall", "-Werror", "-fsyntax-only", str(check)]
    assert not subprocess.run(command, check=False).returncode
    assert "OWN_X_" in (folder / "own.h").read_text()


def test_packages_are_named_by_system_and_class_and_structs_by_packages(tmp_path):
    """cart_ekf, cart_moving_horizon: as cart_mpc, whose struct is named so and begins by _init."""
    for made in (FILTERS["discrete"](), WINDOWS["planar"]()):
        folder = made.export_c(tmp_path / "out")
        kind = {"EKF": "ekf", "MovingHorizon": "moving_horizon"}[type(made).__name__]
        name = f"{made.system.name}_{kind}".lower().replace(" ", "_")
        header = (folder / f"{name}.h").read_text()
        assert f"}} {name};" in header and f"void {name}_init({name} *" in header

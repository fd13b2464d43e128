"""Start methods of processes, a full disk, and two versions of the package on one cache."""

import logging
import multiprocessing
import resource

import casadi as ca
import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol.codegen import ModelFunction, _kernel, _library, _notice, cache_info
from lgcontrol.groups import SO2, Product, Rn

PENDULUM = lg.System(
    "pendulum",
    Product(angle=SO2, rate=Rn(1)),
    lambda t, x, u, p: [x[2], -9.81 * x[1] + u[0]],
    inputs=["torque"],
)
START = [1.0, 0.0, 0.5]
SMALL = 8192  # bytes that a file may have; a library has twice as many


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LGCONTROL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_kernel, "_loaded", {})
    monkeypatch.setattr(_kernel, "_failed", set())
    monkeypatch.setattr(_notice, "_said", set())


@pytest.fixture
def full_disk():
    """Files end at `SMALL` bytes, those of compilers too, with an error as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (SMALL, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def function(name):
    x = ca.SX.sym("x", 2)
    return ModelFunction(ca.Function(name, [x], [ca.sin(x) * 3], ["x"], ["y"]))


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_every_start_method_answer_the_same(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system does not know {method}")
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.apply(PENDULUM.rollout, (START, [0.1], 0.01), {"steps": 20})
    np.testing.assert_allclose(
        there.x, PENDULUM.rollout(START, [0.1], 0.01, steps=20).x, rtol=0, atol=1e-14
    )


@pytest.mark.compiled
def test_a_full_disk_leaves_functions_interpreted_and_says_so(own_cache, full_disk, caplog):
    caplog.set_level(logging.WARNING, logger="lgcontrol.codegen")
    made = function("no_room").compiled()
    assert not made.is_compiled and cache_info().entries == 0
    np.testing.assert_allclose(made([0.5, 1.0]), 3 * np.sin([0.5, 1.0]), rtol=1e-15)
    assert "stays interpreted" in caplog.records[0].getMessage()
    assert not list(cache_info().folder.glob("build-*"))


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path, full_disk):
    short = lg.simulate(PENDULUM, x0=START, seconds=0.02)
    path = short.save(tmp_path / "run.npz")
    before = path.read_bytes()
    noisy = lg.simulate(PENDULUM, x0=START, seconds=10.0)
    with pytest.raises(OSError):
        noisy.save(path)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["run.npz"]
    with pytest.raises(OSError):
        PENDULUM.step("rk4", substeps=50).export_c(tmp_path / "firmware")
    assert [p.name for p in tmp_path.iterdir()] == ["run.npz"]


@pytest.mark.compiled
def test_two_versions_of_the_package_share_a_cache_and_no_code(own_cache, monkeypatch):
    writer, counts = _library._writer, []
    for version in ("one", "other", "one"):
        monkeypatch.setattr(_library, "_writer", lambda version=version: writer() + version)
        monkeypatch.setattr(_kernel, "_loaded", {})
        made = function("shared").compiled(batch=False)
        assert made.is_compiled
        np.testing.assert_allclose(made([0.5, 1.0]), 3 * np.sin([0.5, 1.0]), rtol=1e-15)
        counts.append(cache_info().entries)
    assert counts[1] > counts[0] and counts[2] == counts[1]

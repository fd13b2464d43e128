"""Saved results: many writers, killed writers, bombs, and content that no run can have."""

import json
import os
import threading
import time
import tracemalloc
import zipfile

import casadi as ca
import numpy as np
import pytest

import lgcontrol.io
from lgcontrol.groups import SE3, Product, Rn
from lgcontrol.io._archive import read_archive, write_archive
from lgcontrol.simulation import SimulationResult, simulate
from lgcontrol.systems import System, Trajectory


@pytest.fixture(scope="module")
def run():
    group = Product(pose=SE3, load=Rn(1))
    drift = System("drift", group, lambda t, x, u, p: ca.DM([1, 0, 0, 0, 0, 1, 0.5]))
    return simulate(drift, x0=group.identity, seconds=0.4)


@pytest.fixture
def file(run, tmp_path):
    return run.save(tmp_path / "run.npz")


def rewritten(path, **changes):
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    text = json.loads(str(arrays["description"])) | changes.pop("text", {})
    changes["description"] = np.array(json.dumps(text))
    np.savez_compressed(path, **(arrays | changes))


def states(run, **entries):
    x = run.x.copy()
    for name, value in entries.items():
        x[-1 if name == "last" else int(name[1:])] = value
    return x


TURNED = [0, 0, 0, 0, 0, 0, 1.001, 0]

CONTENT = {
    "a state is NaN": (lambda run: {"x": states(run, _2=np.nan)}, "x is not finite"),
    "the last state is infinite": (lambda run: {"x": states(run, last=np.inf)}, "x is not finite"),
    "a state is off the group": (
        lambda run: {"x": states(run, _3=TURNED)},
        r"x\[3\] .* \(pose.qx, pose.qy, pose.qz, pose.qw\) has norm 1.001, not 1",
    ),
    "times go back": (lambda run: {"t": run.t[::-1]}, "t does not increase: 0.4 s is followed"),
    "a time comes twice": (lambda run: {"t": np.where(run.t > 0.25, 0.25, run.t)}, "t does not"),
    "a time is NaN": (lambda run: {"t": np.full_like(run.t, np.nan)}, "t is not finite"),
    "an array header does not end": (lambda run: {}, "no saved simulation result"),
}


@pytest.mark.parametrize("case", CONTENT)
def test_what_no_run_can_have_is_refused(case, run, file):
    changes, message = CONTENT[case]
    assert len(run.t) >= 5
    rewritten(file, **changes(run))
    if case == "an array header does not end":
        with zipfile.ZipFile(file) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        parts["x.npy"] = parts["x.npy"].replace(b"), }", b"),  ", 1).replace(b")", b"(")
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in parts.items():
                archive.writestr(name, content)
    with pytest.raises(ValueError, match=message):
        SimulationResult.load(file)


def test_a_run_that_diverged_may_end_in_anything(run, file):
    rewritten(file, x=states(run, last=np.nan), text={"status": "diverged"})
    back = SimulationResult.load(file)
    assert np.isnan(back.x[-1]).all() and not back.is_success
    rewritten(file, x=states(run, _3=np.nan))
    with pytest.raises(ValueError, match="x is not finite"):
        SimulationResult.load(file)


def test_states_with_six_digits_are_brought_onto_the_group(run, file):
    rewritten(file, x=run.x.astype(np.float32).astype(float))
    x = SimulationResult.load(file).x
    np.testing.assert_allclose(x, run.x, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(x[:, 3:7], axis=1), 1, rtol=1e-9)


@pytest.mark.parametrize("kind", ["result", "trajectory"])
def test_archives_that_unpack_to_too_much_are_refused_unread(kind, run, tmp_path):
    saved = run if kind == "result" else run.trajectory
    load = (SimulationResult if kind == "result" else Trajectory).load
    path = saved.save(tmp_path / "bomb")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("extra.npy", bytes(2**20))
        archive.infolist()[-1].file_size = 1100 * 2**20  # what the directory says, read first
    assert path.stat().st_size < 6 * 2**20
    begun = time.perf_counter()
    with pytest.raises(ValueError, match=r"takes 1,1\d\d MiB .* the 1,024 MiB .*largest="):
        load(path)
    assert time.perf_counter() - begun < 1.0
    small = saved.save(tmp_path / "small")
    with pytest.raises(ValueError, match="unpacked"):
        load(small, largest=1000)
    assert load(small, largest=10**6).t[-1] == run.t[-1]


def test_several_writers_leave_one_whole_file(tmp_path):
    """Whatever is read while they write is what one of them wrote."""
    path = tmp_path / "shared.npz"
    writers, rounds = 6, 15
    faults = []

    def write(k):
        values = np.random.default_rng(k).normal(size=2000)
        values[0] = k
        try:
            for _ in range(rounds):
                write_archive(path, "test", 1, {"values": values}, {"writer": k})
                _, arrays, text = read_archive(path, "test", 1, "test")
                want = np.random.default_rng(text["writer"]).normal(size=2000)
                np.testing.assert_array_equal(arrays["values"][1:], want[1:])
        except Exception as error:  # said by the main thread
            faults.append(error)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert os.listdir(tmp_path) == ["shared.npz"]


def test_parts_of_killed_writers_go_with_a_later_save(run, tmp_path):
    old, fresh, other = (tmp_path / f".{name}.part" for name in ("run.npz.1", "run.npz.2", "own"))
    for part in (old, fresh, other):
        part.write_bytes(b"half")
    for part in (old, other):
        os.utime(part, (time.time() - 7200, time.time() - 7200))
    run.save(tmp_path / "run")
    assert sorted(os.listdir(tmp_path)) == [".own.part", ".run.npz.2.part", "run.npz"]


@pytest.mark.parametrize(
    "reader", ["read_broad", "read_wifibot", "read_plaza", "read_kitti_imu_gnss"]
)
def test_recordings_that_are_none_are_refused(reader, tmp_path, monkeypatch):
    read, path = getattr(lgcontrol.io, reader), tmp_path / "log.npz"
    with pytest.raises(FileNotFoundError, match="log.npz: no such file"):
        read(path)
    path.write_bytes(b"PK but not for long")
    with pytest.raises(ValueError, match="log.npz is no recording"):
        read(path)
    np.savez(path, other=np.zeros(3), objects=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="is no recording: .*allow_pickle"):
        read(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(ValueError, match="log.npz: lacks .*; it holds other"):
        read(path)
    monkeypatch.setattr("lgcontrol.io._archive.LARGEST_ARCHIVE", 100)
    with pytest.raises(ValueError, match="unpacked .* more than"):
        read(path)


def bomb(path, method, member):
    """An archive of 64 MiB of zeros, whose directory says that they are 64 bytes."""
    with zipfile.ZipFile(path, "a", method) as archive:
        archive.writestr(member, bytes(2**26))
    data = path.read_bytes()
    directory = data.rindex(b"PK\x01\x02")
    size = (64).to_bytes(4, "little")
    path.write_bytes(data[: directory + 24] + size + data[directory + 28 :])


@pytest.mark.parametrize(
    ("method", "member", "message"),
    [
        (zipfile.ZIP_BZIP2, "x.npy", "packed by method 12: arrays are stored"),
        (zipfile.ZIP_LZMA, "x.npy", "packed by method 14: arrays are stored"),
        (zipfile.ZIP_DEFLATED, "x", "no saved simulation result"),
    ],
)
def test_a_bomb_whose_directory_lies_is_refused_before_it_is_unpacked(
    method, member, message, tmp_path
):
    path = tmp_path / "run.npz"
    np.savez_compressed(path, description=np.array("{}"))
    bomb(path, method, member)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message):
            SimulationResult.load(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2**23  # of 2**26

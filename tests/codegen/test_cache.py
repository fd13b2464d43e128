"""The cache on disk: nothing damaged, foreign or half-made is ever loaded."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import (
    _cache,
    _compiler,
    _kernel,
    _notice,
    cache_clear,
    cache_info,
)
from lgcontrol.codegen._cache import LIBRARY, MANIFEST, Cache, UnsafeFolder, check_private, prepare
from lgcontrol.codegen._library import key_of
from lgcontrol.codegen._program import Chain, Program

from ._functions import pendulum_step

ROOT = Path(__file__).resolve().parents[2]
WANT = pendulum_step()([1.0, 2.0], 0.5).x_next


def compiles(monkeypatch) -> bool:
    """Whether a fresh process would run the compiler (True) or find the library (False)."""
    runs = []
    build = _compiler.Compiler.build

    def counting(self, *arguments):
        runs.append(arguments)
        build(self, *arguments)

    monkeypatch.setattr(_kernel, "_loaded", {})
    monkeypatch.setattr(_compiler.Compiler, "build", counting)
    function = pendulum_step().compiled(batch=False)
    monkeypatch.setattr(_compiler.Compiler, "build", build)
    assert function.is_compiled
    np.testing.assert_allclose(function([1.0, 2.0], 0.5).x_next, WANT, rtol=1e-14)
    return bool(runs)


def only_entry(folder: Path) -> Path:
    (entry,) = folder.glob("entry-*")
    return entry


@pytest.fixture
def unloaded(fresh, compiler, monkeypatch):
    """The one entry of a cache; this process has loaded the library from its build folder only.

    The system gives back what it loaded under a name before, whatever the file is by then.
    """
    assert compiles(monkeypatch)
    return only_entry(fresh)


@pytest.fixture
def entry(unloaded, monkeypatch):
    """The one entry of a cache that works."""
    assert not compiles(monkeypatch)
    return unloaded


def test_files_are_the_owners_alone(entry, fresh):
    for path in (fresh, entry, entry / LIBRARY, entry / MANIFEST):
        assert path.stat().st_uid == os.geteuid()
        assert path.stat().st_mode & 0o077 == 0
    assert {path.name for path in entry.iterdir()} == {LIBRARY, MANIFEST}
    assert not list(fresh.glob("build-*"))


def rewrite(entry, data):
    """Put a new file in place: this process has the old one in memory and needs it."""
    (entry / "new").write_bytes(data)
    (entry / "new").chmod(0o600)
    (entry / "new").replace(entry / LIBRARY)


def truncate(entry):
    rewrite(entry, (entry / LIBRARY).read_bytes()[:1000])


def empty(entry):
    rewrite(entry, b"")


def flip_a_bit(entry):
    data = bytearray((entry / LIBRARY).read_bytes())
    data[len(data) // 2] ^= 1
    rewrite(entry, data)


def other_library(entry):
    rewrite(entry, b"\x7fELF" + bytes(5000))


def manifest_of_tampered_library(entry):
    """The library is exchanged and the manifest changed, but for one entry."""
    flip_a_bit(entry)
    about = json.loads((entry / MANIFEST).read_text())
    about["sha256"] = "0" * 64
    (entry / MANIFEST).write_text(json.dumps(about))


def key_of_another(entry):
    about = json.loads((entry / MANIFEST).read_text())
    about["key"] = "0" * 40
    (entry / MANIFEST).write_text(json.dumps(about))


def no_json(entry):
    (entry / MANIFEST).write_text("{")


def no_table(entry):
    (entry / MANIFEST).write_text("[]")


def deep_json(entry):
    (entry / MANIFEST).write_text("[" * 60000)


def long_manifest(entry):
    (entry / MANIFEST).write_text(" " * 100_000 + (entry / MANIFEST).read_text())


def not_text(entry):
    (entry / MANIFEST).write_bytes(b"\xff\xfe\x00")


def no_manifest(entry):
    (entry / MANIFEST).unlink()


def no_library(entry):
    (entry / LIBRARY).unlink()


def writable_library(entry):
    (entry / LIBRARY).chmod(0o666)


def group_writable_entry(entry):
    entry.chmod(0o770)


def link_to_library(entry):
    shutil.move(entry / LIBRARY, entry.parent / "elsewhere")
    (entry / LIBRARY).symlink_to(entry.parent / "elsewhere")


def link_to_entry(entry):
    shutil.move(entry, entry.parent / "elsewhere")
    entry.symlink_to(entry.parent / "elsewhere")


def folder_for_library(entry):
    (entry / LIBRARY).unlink()
    (entry / LIBRARY).mkdir()


def file_for_entry(entry):
    shutil.rmtree(entry)
    entry.write_text("")


def foreign_owner(entry):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(entry / LIBRARY, 65534, 65534)


# By default what others may have done, and one of each kind of what may have broken.
@pytest.mark.usually(
    damage=(
        flip_a_bit,
        manifest_of_tampered_library,
        no_json,
        no_library,
        group_writable_entry,
        writable_library,
        link_to_library,
        link_to_entry,
        foreign_owner,
    )
)
@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        empty,
        flip_a_bit,
        other_library,
        manifest_of_tampered_library,
        key_of_another,
        no_json,
        no_table,
        deep_json,
        long_manifest,
        not_text,
        no_manifest,
        no_library,
        writable_library,
        group_writable_entry,
        link_to_library,
        link_to_entry,
        folder_for_library,
        file_for_entry,
        foreign_owner,
    ],
)
def test_a_damaged_entry_is_built_again(entry, fresh, monkeypatch, damage):
    damage(entry)
    assert compiles(monkeypatch), "the damaged library was loaded"
    assert not compiles(monkeypatch)
    assert not entry.is_symlink()
    check_private(entry / LIBRARY)


def test_a_library_that_cannot_be_loaded_is_built_again(unloaded, monkeypatch):
    """Its manifest is right, but this system cannot load it."""
    other_library(unloaded)
    data = (unloaded / LIBRARY).read_bytes()
    about = json.loads((unloaded / MANIFEST).read_text())
    about |= {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (unloaded / MANIFEST).write_text(json.dumps(about))
    assert compiles(monkeypatch)


def test_the_key_covers_everything_that_decides_the_library(compiler):
    program, other = pendulum_step().program, pendulum_step().program
    flags = compiler.flags(10, True)

    def key(program=program, width=1, compiler=compiler, flags=flags):
        return key_of(compiler, flags, [str(width), program.identity])

    assert key(other) == key()
    x = ca.SX.sym("x")
    doubled, tripled = (Program(ca.Function("f", [x], [k * x])) for k in (2, 3))
    keys = [
        key(),
        key(width=8),
        key(compiler=replace(compiler, identity="another processor")),
        key(flags=[*flags, "-O0"]),
        key(replace(program, chain=Chain(0, 0, (1,)))),
        key(doubled),
        key(tripled),
    ]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_a_cache_folder_that_others_can_write_to_is_refused(
    fresh, compiler, monkeypatch, notices, mode
):
    fresh.mkdir()
    fresh.chmod(mode)
    monkeypatch.setattr(_cache, "_process", [])
    function = pendulum_step().compiled(batch=False)
    assert function.is_compiled
    assert not list(fresh.iterdir())
    assert not function._backend.scalar.path.is_relative_to(fresh)
    (message,) = notices()
    assert "others can write to it" in message and "LGCONTROL_CACHE" in message


def test_folders_above_the_cache_are_checked(tmp_path):
    above = tmp_path / "above"
    above.mkdir()
    above.chmod(0o777)
    with pytest.raises(UnsafeFolder, match="others can write to it"):
        prepare(above / "cache")
    above.chmod(0o1777)  # sticky: only owners rename what is in it
    prepare(above / "cache")


def test_a_cache_that_is_a_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "cache").symlink_to(tmp_path / "real")
    with pytest.raises(UnsafeFolder, match="symbolic link"):
        prepare(tmp_path / "cache")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_cache_of_another_user_is_refused(tmp_path):
    (tmp_path / "cache").mkdir(mode=0o700)
    os.chown(tmp_path / "cache", 65534, 65534)
    with pytest.raises(UnsafeFolder, match="belongs to user 65534"):
        prepare(tmp_path / "cache")


def test_a_cache_that_cannot_be_written_to_gives_way_to_a_private_folder(
    fresh, compiler, monkeypatch, notices
):
    (fresh.parent / "file").write_text("")
    monkeypatch.setenv("LGCONTROL_CACHE", str(fresh.parent / "file" / "cache"))
    monkeypatch.setattr(_cache, "_process", [])
    function = pendulum_step().compiled(batch=False)
    path = function._backend.scalar.path
    assert function.is_compiled and path.parents[1].stat().st_mode & 0o077 == 0
    np.testing.assert_allclose(function([1.0, 2.0], 0.5).x_next, WANT, rtol=1e-14)
    pendulum_step().compiled()
    assert len(notices()) == 1 and "kept for this process only" in notices()[0]


def test_a_read_only_cache_gives_way_to_a_private_folder(fresh, compiler, monkeypatch, notices):
    fresh.mkdir(mode=0o700)
    access = os.access
    monkeypatch.setattr(  # root may write to anything: say what the system would say
        os, "access", lambda path, mode: Path(path) != fresh and access(path, mode)
    )
    monkeypatch.setattr(_cache, "_process", [])
    assert pendulum_step().compiled(batch=False).is_compiled
    assert not list(fresh.iterdir()) and "cannot be written to" in notices()[0]


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"LGCONTROL_CACHE": "/a/b"}, "/a/b"),
        ({"LGCONTROL_CACHE": "", "XDG_CACHE_HOME": "/x"}, "/x/lgcontrol"),
        (
            {"LGCONTROL_CACHE": "", "XDG_CACHE_HOME": "relative", "HOME": "/h"},
            "/h/.cache/lgcontrol",
        ),
        ({"LGCONTROL_CACHE": "", "XDG_CACHE_HOME": "", "HOME": "/h"}, "/h/.cache/lgcontrol"),
        ({"LGCONTROL_CACHE": "~/c", "HOME": "/h"}, "/h/c"),
    ],
)
def test_where_the_cache_is(monkeypatch, environment, expected):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert _cache.configured_folder() == Path(expected)


def make_entry(cache: Cache, key: str, size: int, used: float) -> Path:
    with cache.build_folder() as build:
        (build / LIBRARY).write_bytes(bytes(size))
        (build / "kernel.c").write_text("int x;")
        path = cache.publish(key, build, {"function": key})
    if used:
        os.utime(path.parent / MANIFEST, (used, used))
    return path


def test_the_least_recently_used_are_removed_at_the_limit(tmp_path):
    cache = Cache(tmp_path, limit=35_000)
    now = time.time()
    for k, age in enumerate([300, 400, 200]):
        make_entry(cache, f"{k}", 10_000, now - age)
    assert cache.find("1") is not None  # now used last
    make_entry(cache, "3", 10_000, 0)
    assert cache.find("0") is None
    assert all(cache.find(key) for key in "123")
    make_entry(cache, "4", 100_000, 0)  # larger than the limit: kept, the others go
    assert cache.find("4") and not any(cache.find(key) for key in "123")


def test_folders_of_builders_that_died_are_removed(tmp_path):
    cache = Cache(tmp_path)
    for name, age in (("build-old", 7200), ("trash-old", 7200), ("build-new", 60)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kernel.c").write_text("int x;")
        os.utime(tmp_path / name, (time.time() - age,) * 2)
    make_entry(cache, "a", 10, 0)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {"entry-a", "build-new"}


def test_the_second_of_two_publishers_does_no_harm(tmp_path):
    cache = Cache(tmp_path)
    first = make_entry(cache, "a", 10, 0)
    assert make_entry(cache, "a", 20, 0) == first
    assert first.stat().st_size == 10 and cache.find("a") == first
    first.write_bytes(b"damaged")
    assert make_entry(cache, "a", 20, 0) == first
    assert first.stat().st_size == 20 and cache.find("a") == first
    assert [p.name for p in tmp_path.iterdir()] == ["entry-a"]


def test_info_and_clear(fresh, compiler, monkeypatch):
    assert cache_info().entries == 0 and not fresh.exists()
    function = pendulum_step().compiled()
    info = cache_info()
    count = 1 + (compiler.width > 1)
    assert info.folder == fresh and info.entries == count and info.size > 1000 * count
    assert f"{count} compiled functions" in str(info) and str(fresh) in str(info)
    (fresh / "build-dead").mkdir()
    removed = cache_clear()
    assert (removed.entries, removed.size) == (info.entries, info.size)
    assert "removed" in str(removed)
    assert cache_info().entries == 0 and not list(fresh.glob("[!l]*"))
    np.testing.assert_allclose(function([1.0, 2.0], 0.5).x_next, WANT, rtol=1e-14)
    assert compiles(monkeypatch)


SCRIPT = textwrap.dedent(
    """
    import sys, time
    sys.path.insert(0, {tests!r})
    from _functions import pendulum_step
    from lgcontrol.codegen import _compiler
    built = []
    build = _compiler.Compiler.build
    def slow(self, *arguments):
        built.append(1)
        build(self, *arguments)
        print("building", flush=True)
        time.sleep({delay})
    _compiler.Compiler.build = slow
    function = pendulum_step().compiled(batch=False)
    print(function.is_compiled, len(built), function([1.0, 2.0], 0.5).x_next.tolist(), flush=True)
    """
)


def start(folder: Path, delay: float) -> subprocess.Popen:
    script = SCRIPT.format(tests=str(Path(__file__).parent), delay=delay)
    environment = os.environ | {
        "LGCONTROL_CACHE": str(folder),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    return subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment
    )


def test_processes_that_race_build_once_and_agree(fresh, compiler):
    processes = [start(fresh, 0.5) for _ in range(3)]
    outputs = [process.communicate(timeout=120)[0].splitlines()[-1] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert all(line.startswith("True") for line in outputs)
    assert sum(int(line.split()[1]) for line in outputs) == 1
    assert len({line.split(maxsplit=2)[2] for line in outputs}) == 1
    manifests = [json.loads(path.read_text()) for path in fresh.glob("entry-*/manifest.json")]
    assert sorted(about["function"] for about in manifests) == ["arguments", "step"]
    assert not list(fresh.glob("build-*"))


def test_a_process_killed_in_the_middle_of_a_build_leaves_nothing_broken(
    fresh, compiler, monkeypatch
):
    victim = start(fresh, 60.0)
    assert victim.stdout.readline() == "building\n"
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    assert not list(fresh.glob("entry-*")) and list(fresh.glob("build-*"))
    assert compiles(monkeypatch)  # neither blocked by its lock nor misled by its folder
    assert not compiles(monkeypatch)


def test_a_library_removed_between_check_and_load_is_built_again(unloaded, monkeypatch):
    find = Cache.find

    def find_and_lose(self, key):
        path = find(self, key)
        if path is not None:
            shutil.rmtree(path.parent)
        return path

    with monkeypatch.context() as patch:
        patch.setattr(Cache, "find", find_and_lose)
        assert compiles(patch)


def test_one_notice_for_single_and_batched_code(fresh, notices, monkeypatch, compiler):
    """It speaks of both builds together."""
    from lgcontrol.codegen import ModelFunction, _library

    monkeypatch.setattr(_library, "_LONG", 0.0)
    monkeypatch.setattr(_library, "build_seconds", lambda written: 10.0)
    x = ca.SX.sym("x", 7)
    ModelFunction(ca.Function("announced_once", [x], [ca.sin(x) * x[0]], ["x"], ["y"])).compiled()
    said = [text for text in notices() if "compiling announced_once" in text]
    assert len(said) == 1 and f"about {20 if compiler.width > 1 else 10} s" in said[0]


def test_a_user_without_a_home_gets_a_private_folder_and_one_notice(
    fresh, compiler, monkeypatch, notices
):
    def unknown(user):
        raise KeyError(f"getpwuid(): uid not found: {user}")

    for name in ("LGCONTROL_CACHE", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", unknown)
    monkeypatch.setattr(_cache, "_process", [])
    function = pendulum_step().compiled(batch=False)
    assert function.is_compiled and cache_info().entries >= 1
    assert cache_info().folder.stat().st_mode & 0o077 == 0
    pendulum_step().compiled()
    (said,) = notices()
    assert "HOME is not set. Set LGCONTROL_CACHE" in said
    assert cache_clear().entries >= 1


def fifo_as_library(entry):
    (entry / LIBRARY).unlink()
    os.mkfifo(entry / LIBRARY, 0o600)


def fifo_as_manifest(entry):
    (entry / MANIFEST).unlink()
    os.mkfifo(entry / MANIFEST, 0o600)


def library_without_symbol(entry):
    """One that loads, of which all that the manifest says is right."""
    source = entry.parent / "other.c"
    source.write_text("int other(void) { return 0; }")
    made = entry.parent / "other.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", made, source], check=True)
    rewrite(entry, made.read_bytes())
    about = json.loads((entry / MANIFEST).read_text())
    data = (entry / LIBRARY).read_bytes()
    about |= {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}
    (entry / MANIFEST).write_text(json.dumps(about))


@pytest.mark.skipif(not hasattr(os, "mkfifo") or not shutil.which("gcc"), reason="needs Linux, gcc")
@pytest.mark.parametrize(
    "change", [fifo_as_library, fifo_as_manifest, library_without_symbol], ids=lambda f: f.__name__
)
def test_an_entry_that_is_no_library_is_built_again(change, unloaded, monkeypatch):
    change(unloaded)
    assert compiles(monkeypatch)
    assert b"lg_run" in (only_entry(unloaded.parent) / LIBRARY).read_bytes()  # and stays


HOLDER = """
import os, sys, time
from pathlib import Path
from lgcontrol.codegen._cache import Cache
with Cache(Path(sys.argv[1])).lock("ab", "the kernel"):
    print("holds", flush=True)
    time.sleep(600)
"""


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("stopped", [True, False])
def test_a_build_that_does_not_end_is_waited_for_and_then_done_here(
    stopped, tmp_path, monkeypatch, notices
):
    monkeypatch.setattr(_notice, "_said", set())
    monkeypatch.setattr(_cache, "PATIENCE", 0.05)
    monkeypatch.setattr(_cache, "LONGEST_WAIT", 600.0 if stopped else 0.5)
    tmp_path.chmod(0o700)
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout.readline() == "holds\n"
            if stopped:
                holder.send_signal(signal.SIGSTOP)
            with Cache(tmp_path).lock("ab", "the kernel"):
                told = notices()
        finally:
            holder.kill()
    assert f"process {holder.pid} {'is stopped' if stopped else 'does not end'}" in told[-1]
    if not stopped:
        assert f"the kernel: waiting for a build of process {holder.pid}" in told[0]
    with Cache(tmp_path).lock("ab", "the kernel"):
        assert len(notices()) == len(told)

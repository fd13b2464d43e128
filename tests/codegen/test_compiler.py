"""Machines without a compiler, with a broken one, and with each kind of them."""

import os
import shutil
import stat
import sys
import time
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, _compiler, _kernel, compile
from lgcontrol.codegen._compiler import find_compiler

from ._functions import pendulum_step

WANT = pendulum_step()([1.0, 2.0], 0.5).x_next


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """A folder that is all of PATH, with a way to put scripts into it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("sh", "sleep", "cat", "true"):
        (folder / name).symlink_to(shutil.which(name))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("CC", raising=False)

    def add(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return add


def stays_interpreted(**options) -> None:
    function = pendulum_step().compiled(**options)
    assert not function.is_compiled
    np.testing.assert_array_equal(function([1.0, 2.0], 0.5).x_next, WANT)
    np.testing.assert_array_equal(function([[1.0, 2.0]] * 9, 0.5).x_next, [WANT] * 9)


def test_without_a_compiler_there_is_one_notice(fresh, tools, notices):
    stays_interpreted()
    stays_interpreted()
    x = ca.SX.sym("x")
    assert not compile(ca.Function("f", [x], [2 * x])).is_compiled
    (message,) = notices()
    assert "no C compiler found" in message and "CC" in message


def test_a_compiler_named_by_cc_that_is_missing(fresh, tools, notices, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler -O3")
    stays_interpreted()
    told, none = notices()
    assert "CC='no-such-compiler -O3' is not on PATH" in told and "no C compiler found" in none


def test_a_compiler_named_by_cc_that_is_missing_gives_way_to_those_on_path(
    fresh, compiler, notices, monkeypatch
):
    monkeypatch.delenv("CC", raising=False)
    own = find_compiler()
    monkeypatch.setenv("CC", "no-such-compiler")
    assert find_compiler() == own and find_compiler() == own
    (told,) = notices()
    assert "CC='no-such-compiler' is not on PATH; unset CC or mend it" in told
    assert "Compilers on PATH are tried: gcc, clang" in told


@pytest.mark.parametrize("named", ["gcc 'of a word", 'gcc "-O3', "gcc \\"])
def test_a_compiler_named_with_bad_quotes(named, fresh, tools, notices, monkeypatch):
    monkeypatch.setenv("CC", named)
    stays_interpreted()
    message, _ = notices()
    assert f"CC={named!r} cannot be read" in message and "mend its quotes" in message


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return b"Z" not in Path(f"/proc/{pid}/stat").read_bytes().split()[2]  # a dead child
    except (ProcessLookupError, FileNotFoundError):
        return False


def answers_the_probe(then: str) -> str:
    """A compiler that says what it is, and does something else than compiling."""
    return f'case "$*" in *-dM*) echo "#define __GNUC__ 12";; *) {then};; esac'


@pytest.mark.parametrize(
    ("then", "message"),
    [
        ("echo 'kernel.c:1: error: no' >&2; exit 1", "failed: kernel.c:1: error: no"),
        ("exit 1", "it said nothing"),
        ("kill -9 $$", "failed"),
        ("exit 0", "reported success but wrote no library"),
    ],
)
def test_a_compiler_that_fails(fresh, tools, notices, then, message):
    tools("gcc", answers_the_probe(then))
    stays_interpreted(batch=False)
    stays_interpreted(batch=False)
    (said,) = notices()
    assert message in said and "step stays interpreted" in said
    assert not list(fresh.glob("entry-*")) and not list(fresh.glob("build-*"))


def test_a_compiler_that_writes_rubbish(fresh, tools, notices):
    tools("gcc", answers_the_probe('while [ "$1" != -o ]; do shift; done; echo rubbish > "$2"'))
    stays_interpreted(batch=False)
    assert len(notices()) == 1 and not list(fresh.glob("entry-*"))


def test_a_compiler_that_hangs_is_stopped_with_its_children(fresh, tools, notices, monkeypatch):
    note = fresh.parent / "child"
    tools("gcc", answers_the_probe(f"sleep 60 & echo $! > {note}; sleep 60"))
    monkeypatch.setattr(_compiler, "_BUILD_SECONDS", 0.3)
    started = time.monotonic()
    stays_interpreted(batch=False)
    assert time.monotonic() - started < 30  # it did not wait for the children
    assert "did not finish within 0.3 s" in notices()[0]
    child, deadline = int(note.read_text()), time.monotonic() + 10
    while is_running(child) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_running(child)


def test_a_broken_compiler_is_passed_over_for_the_next(fresh, compiler, tools, notices):
    tools("gcc", "exit 1")
    real = compiler.command[0]
    tools("clang", f'exec {real} "$@"')
    folder = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}{os.pathsep}{os.path.dirname(real)}"  # as and ld
    shutil.copy(f"{folder}/clang", f"{folder}/cc")
    assert find_compiler().command[0] == f"{folder}/clang"
    assert pendulum_step().compiled(batch=False).is_compiled and not notices()


def test_cc_may_hold_a_launcher_with_arguments(fresh, compiler, tools, monkeypatch):
    tools("launcher", f'shift; exec {compiler.command[0]} "$@"')
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("CC", "launcher 'first word'")
    assert find_compiler().command[1] == "first word"
    assert pendulum_step().compiled(batch=False).is_compiled


def test_a_library_that_computes_something_else_is_not_used(fresh, compiler, notices, monkeypatch):
    """The check against the interpreted function finds another function, as a miscompilation is."""
    source = _kernel.scalar_source

    def falsified(program):
        return source(program).replace("#define lg_sin sin", "#define lg_sin 1e-6+sin")

    monkeypatch.setattr(_kernel, "scalar_source", falsified)
    stays_interpreted(batch=False)
    (said,) = notices()
    assert "differs from the interpreted function: x_next is off by" in said
    assert not list(fresh.glob("entry-*"))


@pytest.mark.parametrize(("rate", "is_refused"), [(1.0, True), (1e9, False)])
def test_numbers_outside_of_the_domain_are_a_fault_unless_rounding_decides(
    rate, is_refused, fresh, compiler, notices, monkeypatch
):
    """Of a fast sine, changes of the argument's tenth digit decide whether it has a root."""
    source = _kernel.scalar_source

    def falsified(program):
        return source(program).replace("#define lg_sqrt sqrt", "#define lg_sqrt(x) sqrt(fabs(x))")

    monkeypatch.setattr(_kernel, "scalar_source", falsified)
    x = ca.SX.sym("x")
    root = ModelFunction(ca.Function("root", [x], [ca.sqrt(ca.sin(rate * x))], ["x"], ["y"]))
    assert root.compiled(batch=False).is_compiled is not is_refused
    assert any("numbers where the function is undefined" in n for n in notices()) is is_refused


def test_vector_code_that_computes_something_else_is_not_used(
    fresh, compiler, notices, monkeypatch
):
    if compiler.width == 1:
        pytest.skip("no vectors here")
    source = _kernel.vector_source

    def falsified(program, width, machine):
        code = source(program, width, machine)
        return code.replace("lg_scatter(r0", f"r[0][{width - 1}] += 1e-6; lg_scatter(r0")

    monkeypatch.setattr(_kernel, "vector_source", falsified)
    function = pendulum_step().compiled()
    assert function.is_compiled and function._backend.vector is None
    assert "x_next is off by" in notices()[0]
    expected = pendulum_step()([[1.0, 2.0]] * 9, 0.5).x_next  # one after the other
    np.testing.assert_allclose(function([[1.0, 2.0]] * 9, 0.5).x_next, expected, rtol=1e-14)


def test_unsafe_optimizations_are_not_among_the_flags(compiler):
    forbidden = {"-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only"}
    for longest in (10, 10**6):
        for contract in (True, False):
            flags = compiler.flags(longest, contract)
            assert not forbidden & set(flags)
            assert (
                compiler.kind == "tcc" or f"-ffp-contract={'fast' if contract else 'off'}" in flags
            )


def test_loading_a_library_leaves_small_numbers_alone(fresh, compiler):
    """Code built with -ffast-math would switch the process to flushing them to zero."""
    pendulum_step().compiled()
    tiny = np.array([5e-324, 2.2e-308 / 4])
    assert (tiny * 1.0 > 0).all() and (tiny[1] / 2 > 0)


@pytest.mark.parametrize("name", ["gcc", "clang", "tcc", "zig"])
def test_each_kind_of_compiler(fresh, monkeypatch, name, rng):
    if name == "zig":
        pytest.importorskip("ziglang")
        monkeypatch.setenv("CC", f"{sys.executable} -m ziglang cc")
    elif shutil.which(name) is None:
        pytest.skip(f"no {name} on PATH")
    else:
        monkeypatch.setenv("CC", name)
    assert find_compiler().kind == {"zig": "clang"}.get(name, name)
    interpreted, compiled = pendulum_step(), pendulum_step().compiled()
    assert compiled.is_compiled
    assert (compiled._backend.vector is not None) == (find_compiler().width > 1)
    x, u = rng.normal(size=(21, 2)), rng.normal(size=21)
    for want, have in zip(interpreted(x, u), compiled(x, u), strict=True):
        np.testing.assert_allclose(have, want, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(compiled(x[0], u[0]).x_next, interpreted(x[0], u[0]).x_next)


def test_no_compiler_on_other_systems(monkeypatch):
    monkeypatch.setattr(_compiler.os, "name", "nt")
    _compiler._find.cache_clear()
    try:
        assert find_compiler() is None
    finally:
        monkeypatch.undo()
        _compiler._find.cache_clear()


def test_a_compiler_that_is_no_program(tmp_path, fresh, tools, notices, monkeypatch):
    (tmp_path / "cc").write_text("#!/no/such/interpreter\n")
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    assert find_compiler() is None
    assert "cannot be run" in notices()[0]

"""Ctrl-C while functions are compiled: it arrives, at once, and nothing is lost by it."""

import os
import shutil
import signal
import subprocess
import threading
import time

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, compile, set_compile_policy

SOON = 5.0  # seconds; the compiler of these tests takes a minute

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or threading.current_thread() is not threading.main_thread(),
    reason="needs gcc, and signals",
)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LGCONTROL_CACHE", str(tmp_path / "cache"))
    set_compile_policy("auto")


@pytest.fixture
def slow_compiler(tmp_path, monkeypatch):
    """A compiler that answers questions, but takes a minute for code; returns its log of pids."""
    log = tmp_path / "pids"
    script = tmp_path / "slow-cc"
    script.write_text(
        f'#!/bin/sh\ncase "$*" in *-shared*) echo $$ >> {log}; sleep 60 ;; esac\nexec gcc "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("CC", str(script))
    return log


def functions(count):
    x = ca.SX.sym("x", 2)
    return [ModelFunction(ca.Function(f"f{k}", [x], [ca.sin(x) * (k + 1)])) for k in range(count)]


def interrupt_when(is_time):
    def wait():
        end = time.monotonic() + 20
        while not is_time() and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("count", [1, 4])
def test_an_interrupt_ends_builds_at_once_and_they_may_be_asked_for_again(
    count, slow_compiler, monkeypatch
):
    built = functions(count)
    started = min(count, os.cpu_count() or 1)
    thread = interrupt_when(
        lambda: slow_compiler.exists() and len(slow_compiler.read_text().split()) >= started
    )
    with pytest.raises(KeyboardInterrupt):
        compile(built, batch=False)
    thread.join()
    begun = time.monotonic()
    pids = [int(line) for line in slow_compiler.read_text().split()]
    while any(map(is_running, pids)):
        assert time.monotonic() - begun < SOON, "a compiler goes on"
        time.sleep(0.02)
    assert len(pids) == started  # none was started afterwards
    assert not any(f.is_compiled for f in built)

    monkeypatch.delenv("CC")
    compile(built, batch=False)
    assert all(f.is_compiled for f in built)
    np.testing.assert_allclose(built[-1]([0.5, 1.0]), np.sin([0.5, 1.0]) * count, rtol=1e-15)


def test_an_interrupt_that_comes_when_the_compiler_has_just_ended_is_not_lost(monkeypatch):
    functions(1)[0].compiled(batch=False)  # the questions to the compiler come first
    x = ca.SX.sym("x", 2)
    f = ModelFunction(ca.Function("late", [x], [x * x]))
    communicate = subprocess.Popen.communicate

    def interrupted(process, *arguments, **options):
        communicate(process, *arguments, **options)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(subprocess.Popen, "communicate", interrupted)
        f.compiled(batch=False)
    assert f.compiled(batch=False).is_compiled

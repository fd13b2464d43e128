"""Ctrl-C in builds and other long work: it arrives, at once, and nothing is lost by it."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, _frame, _interrupt, chain, compile, set_compile_policy
from lgcontrol.codegen._internal import interruptible
from lgcontrol.mechanics import Multibody, SpatialInertia
from lgcontrol.mechanics.multibody.compiled import _functions

from ._interrupted import OPERATIONS, QUICK, moments

SOON = 5.0  # seconds; the compiler of these tests takes a minute

pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or threading.current_thread() is not threading.main_thread(),
    reason="needs gcc, and signals",
)


@pytest.fixture(autouse=True)
def own_cache(request, tmp_path, monkeypatch):
    if "compiler" in str(request.fixturenames) or "just_ended" in request.node.name:
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


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name in QUICK])
def test_no_interrupt_of_a_long_operation_is_lost(name):
    told = moments(name, 3, np.random.default_rng(20120531))
    assert [one for one in told if one.outcome in ("lost", "other")] == []


@pytest.mark.thorough
@pytest.mark.parametrize("name", OPERATIONS)
def test_no_interrupt_at_many_moments_is_lost(name):
    told = moments(name, -(-200 // len(OPERATIONS)), np.random.default_rng(20120532))
    assert [one for one in told if one.outcome in ("lost", "other")] == []


@pytest.mark.parametrize("then", ["goes on", "fails", "returns"])
def test_an_interrupt_that_was_swallowed_comes_again(then):
    @interruptible
    def run():
        with contextlib.suppress(KeyboardInterrupt):  # as CasADi does while it looks for types
            os.kill(os.getpid(), signal.SIGINT)
        if then == "fails":
            raise TypeError("no such overload")
        end = time.monotonic() + (SOON if then == "goes on" else 0)
        while time.monotonic() < end:
            pass

    with pytest.raises(KeyboardInterrupt):
        run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def pressed_in(function):
    """A function that swallows a Ctrl-C first, as CasADi does while it looks for types."""

    def run(*values, **options):
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        return function(*values, **options)

    return run


@pytest.mark.parametrize(
    "call", [lambda tree: tree.mass_matrix, lambda tree: tree.placement("arm")]
)
def test_an_interrupt_that_the_trace_of_a_tree_swallows_comes_again(call, monkeypatch):
    tree = Multibody().add_body("arm", SpatialInertia.point_mass(1.0, [0, 0, 1]), "revolute")
    monkeypatch.setattr(_functions, "compiled", pressed_in(_functions.compiled))
    with pytest.raises(KeyboardInterrupt):
        call(tree)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("number", [0, 1], ids=["taken", "put back"])
def test_an_interrupt_while_the_handler_is_set_is_raised_once(number, when, monkeypatch):
    set_handler, calls = _interrupt._set_handler, []

    def interrupted(*given):
        is_now = len(calls) == number
        calls.append(given)
        if is_now and when == "before":
            signal.raise_signal(signal.SIGINT)
        set_handler(*given)
        if is_now and when == "after":
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(_interrupt, "_set_handler", interrupted)
        interruptible(lambda: None)()
    try:
        time.sleep(10 * _interrupt.AGAIN)  # in which it would come again
        is_free, handler = _interrupt._guard is None, signal.getsignal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    assert is_free
    assert handler is signal.default_int_handler


def test_a_repeated_interrupt_that_was_answered_meanwhile_is_forgotten():
    @interruptible
    def run():
        with contextlib.suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        guard = _interrupt._guard
        _interrupt.interrupt_is_answered()
        guard._is_again = True  # one that was on its way
        signal.raise_signal(signal.SIGINT)
        return _interrupt.was_interrupted()

    assert run() is False


def test_what_cleans_up_after_an_interrupt_is_left_in_peace():
    done = []

    @interruptible
    def run():
        try:
            os.kill(os.getpid(), signal.SIGINT)
        finally:
            time.sleep(0.1)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert done


def test_handlers_of_others_are_left_alone():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *given: heard.append(given))
    try:
        interruptible(lambda: os.kill(os.getpid(), signal.SIGINT))()
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(heard) == 1


@pytest.mark.parametrize("longest", [1, 100])
@pytest.mark.parametrize(("items", "steps"), [(1, 300), (7, 40), (37, 1)])
def test_pieces_of_a_long_call_are_the_whole(items, steps, longest, rng, monkeypatch):
    x, u = ca.SX.sym("x", 2), ca.SX.sym("u")
    f = ca.Function("turn", [x, u], [ca.vertcat(x[1], u - ca.sin(x[0])), x[0] * u], ["x", "u"], ["x_next", "y"])  # fmt: skip  # noqa: E501
    step = ModelFunction(f, shapes={"u": (1,)})
    whole = chain(step, steps, carry=("x", "x_next"), each=["u"]) if steps > 1 else step
    whole.compiled()
    given = rng.normal(size=(items, 2)), rng.normal(size=(items, *((steps,) * (steps > 1)), 1))
    expected = whole(*given)
    monkeypatch.setattr(_frame, "LONGEST_PIECE", longest)
    parts = _frame.pieces(whole.program.chain, steps, 4, 1, *_memory(items, steps))
    assert len(parts) > 1
    whole._backend.frames.clear()
    made = whole(*given)
    for one, other in zip(made, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def _memory(items, steps):
    return [np.zeros((items, 2)), np.zeros((items, steps, 1))], [np.zeros((items, steps, 2))]

"""Ways to call a function: in place, from threads and processes, after pickling."""

import ctypes
import gc
import multiprocessing
import pickle
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, _threads, compile, set_threads
from lgcontrol.codegen._frame import NOT_PLAIN, evaluator, find_binder
from lgcontrol.codegen._internal import thread_count
from lgcontrol.codegen._threads import run_batch

from ._functions import glue_with_solve, matrix_function, pendulum_step

ROUNDING = 1e-13
KINDS = ["interpreted", "compiled"]


@pytest.fixture(params=KINDS)
def step(request) -> ModelFunction:
    return pendulum_step() if request.param == "interpreted" else pendulum_step().compiled()


@pytest.fixture(params=KINDS)
def mixed(request) -> ModelFunction:
    return matrix_function() if request.param == "interpreted" else matrix_function().compiled()


@pytest.fixture
def three_threads():
    set_threads(3)
    yield
    set_threads(None)


def test_in_place_calls_write_into_the_same_memory(step):
    call = step.in_place()
    assert {name: array.shape for name, array in call.inputs.items()} == {
        "x": (2,),
        "u": (),
        "dt": (),
    }
    assert call.inputs["dt"] == 0.1  # the default
    call.inputs["x"][:] = [1.0, 2.0]
    call.inputs["u"][...] = 0.5
    first = call()
    assert first.x_next is call.results["x_next"] and first.energy is call.results["energy"]
    want = step([1.0, 2.0], 0.5)
    np.testing.assert_array_equal(first.x_next, want.x_next)
    np.testing.assert_array_equal(first.energy, want.energy)
    call.inputs["x"][:] = [3.0, 4.0]
    assert call() is first
    np.testing.assert_array_equal(first.x_next, step([3.0, 4.0], 0.5).x_next)


def test_in_place_calls_of_matrices(mixed, rng):
    A, b, rows = rng.normal(size=(2, 3)), rng.normal(size=3), rng.normal(size=(2, 3))
    want = mixed(A, b, rows, np.zeros(0))
    call = mixed.in_place()
    for name, value in (("A", A), ("b", b), ("rows", rows)):
        call.inputs[name][...] = value
    for have, expected in zip(call(), want, strict=True):
        np.testing.assert_array_equal(have, expected)


@pytest.mark.parametrize("count", [1, 5, 40])
def test_in_place_batches_with_shared_arguments(mixed, rng, count):
    A, b = rng.normal(size=(2, 3)), rng.normal(size=(count, 3))
    rows = rng.normal(size=(count, 2, 3))
    call = mixed.in_place(count, shared=["A"])
    assert call.inputs["A"].shape == (2, 3) and call.inputs["rows"].shape == (count, 2, 3)
    for name, value in (("A", A), ("b", b), ("rows", rows)):
        call.inputs[name][...] = value
    result = call()
    want = mixed(A, b, rows, np.zeros(0))
    assert result.turned.shape == (count, 3, 2)
    for have, expected in zip(result, want, strict=True):
        np.testing.assert_allclose(have, expected, rtol=ROUNDING, atol=ROUNDING)


def test_what_in_place_refuses(step):
    with pytest.raises(ValueError, match=r"unknown argument of step 'y'; valid names are x, u, dt"):
        step.in_place(4, shared=["y"])
    with pytest.raises(ValueError, match="batch must be at least 1"):
        step.in_place(0)


def test_one_result_is_returned_as_it_is():
    x = ca.SX.sym("x", 2)
    call = ModelFunction(ca.Function("f", [x], [2 * x], ["x"], ["y"])).in_place()
    call.inputs["x"][:] = [1.0, 2.0]
    np.testing.assert_array_equal(call(), [2.0, 4.0])


def test_threads_do_not_disturb_each_other(step):
    """Many threads call one function, with values of their own."""
    start = threading.Barrier(8)

    def work(seed):
        rng = np.random.default_rng(seed)
        start.wait()
        for _ in range(200):
            x, u = rng.normal(size=2), float(rng.normal())
            after = step(x, u, 0.5).x_next
            middle = x + 0.25 * np.array([x[1], u - np.sin(x[0])])
            want = x + 0.5 * np.array([middle[1], u - np.sin(middle[0])])
            np.testing.assert_allclose(after, want, rtol=1e-12, atol=1e-12)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_glue_has_memory_for_each_call(rng):
    """CasADi's own code works in memory that calls must not share."""
    compiled = glue_with_solve().compiled()
    A, b = rng.normal(size=(8, 3, 3)), rng.normal(size=(8, 3))

    def work(k):
        for _ in range(200):
            np.testing.assert_allclose(compiled(A[k], b[k]).check, A[k] @ compiled(A[k], b[k]).x)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_compiling_while_other_threads_call(compiler):
    function = pendulum_step()
    want = function([1.0, 2.0], 0.5).x_next
    stop = threading.Event()

    def work(_):
        while not stop.is_set():
            have = function([1.0, 2.0], 0.5).x_next
            np.testing.assert_allclose(have, want, rtol=ROUNDING)

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(work, k) for k in range(4)]
        function.compiled()
        function.compiled(contract=False)
        stop.set()
        for future in futures:
            future.result()
    assert function.is_compiled


@pytest.mark.parametrize("count", [3, 8, 25, 1000])
def test_a_batch_in_threads_is_the_same_batch(compiler, three_threads, monkeypatch, rng, count):
    assert thread_count() == 3
    parts = []
    monkeypatch.setattr("lgcontrol.codegen._threads._OPERATIONS_A_THREAD", 10)
    function = pendulum_step().compiled()
    x, u = rng.normal(size=(count, 2)), rng.normal(size=count)
    together = function(x, u, 0.5)
    set_threads(1)
    alone = function(x, u, 0.5)
    for a, b in zip(together, alone, strict=True):
        np.testing.assert_array_equal(a, b)
        parts.append(a)
    np.testing.assert_allclose(
        parts[0], pendulum_step()(x, u, 0.5).x_next, rtol=ROUNDING, atol=ROUNDING
    )


def test_a_batch_in_threads_uses_them(compiler, three_threads, monkeypatch):
    function = pendulum_step().compiled()
    kernel = function._backend.kernel_for(100)
    names = set()

    class Spy:
        width = kernel.width

        @staticmethod
        def run(address):
            names.add(threading.current_thread().name)
            return kernel.run(address)

    arguments = [np.ones((100, 2)), np.ones((100,)), np.ones((1,))]
    results = [np.zeros((100, 2)), np.zeros((100,))]
    assert run_batch(Spy, 1, 10**6, arguments, results) == 0
    assert any(name.startswith("lgcontrol") for name in names)
    assert threading.current_thread().name in names
    assert (results[0] == results[0][0]).all() and results[0].all()


def test_the_number_of_threads_is_checked():
    with pytest.raises(ValueError, match="at least 1 or None, got 0"):
        set_threads(0)


def test_functions_are_pickled_with_the_wish_to_be_compiled(compiler, step):
    copy = pickle.loads(pickle.dumps(step))
    x, u = np.ones((9, 2)), np.full(9, 0.5)
    np.testing.assert_array_equal(copy(x[0], 0.5).x_next, step(x[0], 0.5).x_next)
    np.testing.assert_array_equal(copy(x, u).x_next, step(x, u).x_next)
    assert copy.is_compiled == step.is_compiled
    assert (copy._backend.vector is None) == (step._backend.vector is None)
    assert copy.defaults.keys() == step.defaults.keys()


def test_pickles_keep_rows_and_exactness(compiler):
    function = matrix_function().compiled(contract=False, batch=False)
    copy = pickle.loads(pickle.dumps(function))
    assert copy.transposed == {"rows"} and copy._backend.wanted == function._backend.wanted
    copy(np.ones((2, 3)), np.ones(3), np.ones((2, 3)), [])
    assert copy._backend.scalar is function._backend.scalar  # one library in a process


def child(function, x, queue):
    queue.put((function(x, 0.5).x_next, function(x[0], 0.5).x_next, function.is_compiled))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_compiled_functions_in_other_processes(compiler, three_threads, monkeypatch, method):
    """Also after a fork of a process that has threads for batches."""
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"no {method} here")
    monkeypatch.syspath_prepend(Path(__file__).parents[2])  # where the child finds `child`
    monkeypatch.setattr("lgcontrol.codegen._threads._OPERATIONS_A_THREAD", 10)
    function = pendulum_step().compiled()
    x = np.random.default_rng(1).normal(size=(100, 2))
    want = function(x, 0.5).x_next
    together = threading.Barrier(3)
    list(_threads._executor().map(lambda _: together.wait(), range(3)))
    time.sleep(0.1)  # three threads wait for work now: a copy of the pool would count on them
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=child, args=(function, x, queue))
    process.start()
    batch, single, is_compiled = queue.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0 and is_compiled
    np.testing.assert_array_equal(batch, want)
    np.testing.assert_array_equal(single, function(x[0], 0.5).x_next)


@pytest.mark.parametrize("plugin", ["newton", "fast_newton"])
def test_functions_with_solvers_stay_interpreted_and_report_failures(notices, fresh, plugin):
    """CasADi's C code for solvers returns the last iterate as if it were the solution."""
    x, p = ca.MX.sym("x"), ca.MX.sym("p")
    root = ca.rootfinder("root", plugin, {"x": x, "p": p, "g": x * x + p}, {"error_on_fail": True})
    function = compile(ca.Function("f", [p], [root(0.5, p)], ["p"], ["x"]))
    assert not function.is_compiled and "it calls root (" in notices()[0]
    assert function([-1.0]) == pytest.approx(1.0)
    for value in ([1.0], [[-1.0], [1.0]]):
        with pytest.raises(RuntimeError, match="process failed"):
            function(value)


PLAIN = {
    "arrays": (np.ones((2, 3)), np.arange(3.0), np.ones((2, 3)), np.zeros(0)),
    "by columns": (np.asfortranarray(np.arange(6.0).reshape(2, 3)), *[np.ones(3)] * 1)
    + (np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.zeros(0)),
    "strided": (np.arange(24.0).reshape(4, 6)[::2, ::2], np.arange(9.0)[::-3])
    + (np.arange(24.0).reshape(4, 6)[::-2, 5:2:-1], np.zeros(4)[:0]),
    "read-only": (np.broadcast_to(2.0, (2, 3)), np.broadcast_to(3.0, 3))
    + (np.broadcast_to(np.arange(3.0), (2, 3)), np.zeros(0)),
}
NOT_PLAIN_VALUES = {
    "integers": (np.ones((2, 3), int), np.ones(3, np.int8), np.ones((2, 3), bool), np.zeros(0)),
    "single": (np.ones((2, 3), "f4"), np.ones(3), np.ones((2, 3)), np.zeros(0)),
    "swapped bytes": (np.ones((2, 3), ">f8"), np.arange(3).astype(">f8"), np.ones((2, 3)), []),
    "lists": ([[1, 2, 3], [4, 5, 6]], (1.0, 2.0, 3.0), np.ones((2, 3)).tolist(), ()),
    "a batch": (np.ones((4, 2, 3)), np.ones(3), np.ones((2, 3)), np.zeros(0)),
    "numbers": (np.ones((2, 3)), np.ones(3), np.ones((2, 3)), np.zeros(0)),
}


@pytest.mark.parametrize("values", [*PLAIN.values(), *NOT_PLAIN_VALUES.values()])
def test_arrays_of_every_kind_are_read_alike(compiler, values):
    function, interpreted = matrix_function().compiled(), matrix_function()
    for have, want in zip(function(*values), interpreted(*values), strict=True):
        np.testing.assert_allclose(have, want, rtol=ROUNDING, atol=ROUNDING)


@pytest.mark.parametrize("name", list(PLAIN))
def test_plain_arrays_are_read_by_compiled_code(compiler, name):
    frame = matrix_function().compiled()._make_frame()
    assert frame.run(PLAIN[name]) == 0
    frame.evaluate = None  # not what ran
    product, turned, total, _ = (take() for take in frame.take)
    A, b, rows, _ = PLAIN[name]
    np.testing.assert_allclose(product, A @ b, rtol=ROUNDING)
    np.testing.assert_array_equal(turned, 2 * A.T)
    np.testing.assert_allclose(total, rows[0] + 2 * rows[1], rtol=ROUNDING)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "values",
    [
        (np.ones(3), 0.5, 0.1),
        (np.ones((2, 1)), 0.5, 0.1),
        (np.float32([1, 2]), 0.5, 0.1),
        ([1.0, 2.0], 0.5, 0.1),
        (b"12345678", 0.5, 0.1),
        (np.ones(2), 1, 0.1),
        (np.ones(2), "0.5", 0.1),
        (np.ones(2), ca.DM(0.5), 0.1),
        (ca.SX.sym("x", 2), 0.5, 0.1),
        (np.ones(2), np.ones(1), 0.1),
        (np.ones(2), None, 0.1),
    ],
)
def test_what_is_not_plain_is_left_to_python(compiler, kind, values):
    function = pendulum_step() if kind == "interpreted" else pendulum_step().compiled()
    assert function._make_frame().run(values) == NOT_PLAIN


def test_numbers_of_numpy_are_plain(compiler):
    frame = pendulum_step().compiled()._make_frame()
    assert frame.run((np.ones(2), np.float64(0.5), np.array(0.1))) == 0


def test_wrong_shapes_and_types_are_refused_by_name(step):
    with pytest.raises(ValueError, match=r"argument 'x' has shape \(3,\), expected \(..., 2\)"):
        step(np.ones(3), 0.5)
    with pytest.raises(TypeError, match="argument 'x' must be numbers .* not complex numbers"):
        step(np.array([1.0, 1j]), 0.5)
    with pytest.raises(TypeError, match="argument 'u' must be numbers or a CasADi expression"):
        step(np.ones(2), "half")


def test_without_the_loader_python_reads_the_arguments(compiler, monkeypatch):
    monkeypatch.setattr("lgcontrol.codegen._frame.find_binder", lambda: None)
    function = pendulum_step().compiled()
    want = pendulum_step()([1.0, 2.0], 0.5).x_next
    np.testing.assert_allclose(function(np.array([1.0, 2.0]), 0.5).x_next, want, rtol=ROUNDING)
    assert function.is_compiled


def test_references_are_not_lost_or_kept(compiler):
    function = pendulum_step().compiled()
    x, u = np.ones(2), 0.123456789
    function(x, u)
    before = sys.getrefcount(x), sys.getrefcount(u), sys.getrefcount(float), len(gc.get_objects())
    for _ in range(1000):
        function(x, u)
        function(x, np.float32(0.5))
    after = sys.getrefcount(x), sys.getrefcount(u), sys.getrefcount(float), len(gc.get_objects())
    assert before[:2] == after[:2]
    assert after[2] - before[2] < 100 and after[3] - before[3] < 100


def test_in_place_calls_own_what_they_use(compiler):
    """A function taken out of the call outlives the call; nothing outlives the function."""
    call = pendulum_step().compiled().in_place()
    call.inputs["x"][:], call.inputs["u"][...] = [1.0, 2.0], 0.5
    evaluate, memory = call.__call__, weakref.ref(call.results["x_next"].base)
    del call
    gc.collect()
    result, want = evaluate(), pendulum_step()([1.0, 2.0], 0.5).x_next
    np.testing.assert_allclose(result.x_next, want, rtol=ROUNDING)
    before = sys.getrefcount(result), len(gc.get_objects())
    for _ in range(1000):
        evaluate()
    after = sys.getrefcount(result), len(gc.get_objects())
    assert after[0] == before[0] and after[1] < before[1] + 100
    del evaluate, result
    assert memory() is None


def test_in_place_calls_raise_what_failed(compiler):
    binder = find_binder()
    assert binder is not None

    def fail():
        raise RuntimeError("the solver inside it failed")

    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    for status in (0, 1):
        evaluate = evaluator(binder, entry(lambda table, s=status: s), 0, "value", fail, None)
        if status:
            with pytest.raises(RuntimeError, match="inside it failed"):
                evaluate()
        else:
            assert evaluate() == "value"


class Doubled(ca.Callback):
    def __init__(self):
        ca.Callback.__init__(self)
        self.construct("doubled", {})

    def eval(self, arguments):
        return [2 * arguments[0]]


def test_functions_that_call_back_into_python_stay_interpreted(fresh, notices):
    doubled, x = Doubled(), ca.MX.sym("x")
    function = compile(ca.Function("f", [x], [doubled(x) + 1], ["x"], ["y"]))
    assert not function.is_compiled and function([3.0]) == 7.0
    np.testing.assert_array_equal(function([[1.0], [2.0]]), [[3.0], [5.0]])
    assert "f stays interpreted" in notices()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_tensors_are_matrices_of_slices_in_casadi(kind):
    x = ca.SX.sym("x", 4)
    slices = [x[k] * ca.DM(np.arange(6.0).reshape(2, 3)) + k for k in range(4)]
    function = ca.Function("slices", [x], [ca.horzcat(*slices), x], ["x"], ["T", "x_out"])
    tensor = ModelFunction(function, shapes={"T": (2, 3, 4)})
    if kind == "compiled":
        tensor.compiled()
    values = np.random.default_rng(3).normal(size=(7, 4))
    want = np.einsum("nk,ij->nijk", values, np.arange(6.0).reshape(2, 3)) + np.arange(4.0)
    np.testing.assert_allclose(tensor(values).T, want, rtol=0, atol=ROUNDING)
    np.testing.assert_allclose(tensor(values[0]).T, want[0], rtol=0, atol=ROUNDING)
    call = tensor.in_place(7)
    call.inputs["x"][:] = values
    np.testing.assert_allclose(call().T, want, rtol=0, atol=ROUNDING)
    assert tensor(ca.SX(values[0])).T.shape == (2, 12)


def test_shapes_have_as_many_entries_as_the_function():
    x = ca.SX.sym("x", 4)
    with pytest.raises(ValueError, match=r"'y'.*\(3, 2\).*4"):
        ModelFunction(ca.Function("same", [x], [x], ["x"], ["y"]), shapes={"y": (3, 2)})

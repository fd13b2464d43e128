"""Chains of steps against a loop in Python and against CasADi's own mapaccum."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen import ModelFunction, _program, chain, set_threads, trace
from lgcontrol.groups import SE3
from lgcontrol.integrators import get_method
from lgcontrol.integrators._internal import Problem

from ._functions import pendulum_step

ROUNDING = 1e-12  # of a few steps, each rounded differently by fused multiply-adds


def pendulum_chain(steps):
    return chain(pendulum_step(), steps, carry=("x", "x_next"), each=["u"])


def looped(x, u, dt):
    """Step after step, in Python."""
    step, states, energies = pendulum_step(), [], []
    for value in u[:, 0]:
        result = step(x, float(value), dt)
        x = result.x_next
        states.append(x)
        energies.append([result.energy])
    return np.array(states), np.array(energies)


@pytest.fixture(params=["interpreted", "compiled"])
def seven(request):
    made = pendulum_chain(7)
    if request.param == "interpreted":
        return made
    assert request.getfixturevalue("has_vectors")(made.compiled())
    return made


def test_a_chain_is_a_loop(seven, rng):
    x, u = rng.normal(size=2), rng.normal(size=(7, 1))
    states, energies = looped(x, u, 0.3)
    result = seven(x, u, 0.3)
    np.testing.assert_allclose(result.x_next, states, rtol=ROUNDING, atol=ROUNDING)
    np.testing.assert_allclose(result.energy, energies, rtol=ROUNDING, atol=ROUNDING)
    assert repr(seven) == ("step_chain(x(2,), u(7, 1), dt()) -> x_next(7, 2), energy(7, 1)")
    np.testing.assert_array_equal(seven(x, u).x_next, seven(x, u, 0.1).x_next)  # the default


def test_batches_of_starts_share_or_have_their_own_inputs(seven, rng):
    x, shared, own = rng.normal(size=(19, 2)), rng.normal(size=(7, 1)), rng.normal(size=(19, 7, 1))
    for u in (shared, own):
        have = seven(x, u, 0.3)
        assert have.x_next.shape == (19, 7, 2)
        for k in range(19):
            states, energies = looped(x[k], u if u.ndim == 2 else u[k], 0.3)
            np.testing.assert_allclose(have.x_next[k], states, rtol=ROUNDING, atol=ROUNDING)
            np.testing.assert_allclose(have.energy[k], energies, rtol=ROUNDING, atol=ROUNDING)


def test_symbols_have_one_column_a_step(rng):
    made = pendulum_chain(5)
    x, u = ca.MX.sym("x", 2), ca.MX.sym("u", 1, 5)
    after = made(x, u, 0.3)
    assert after.x_next.shape == (2, 5)
    last = ca.Function("last", [x, u], [ca.jacobian(after.x_next[:, -1], u)])
    x0, u0 = rng.normal(size=2), rng.normal(size=(5, 1))
    d = 1e-6
    for k in range(5):
        up, down = u0.copy(), u0.copy()
        up[k] += d
        down[k] -= d
        slope = (made(x0, up, 0.3).x_next[-1] - made(x0, down, 0.3).x_next[-1]) / (2 * d)
        np.testing.assert_allclose(np.asarray(last(x0, u0.T))[:, k], slope, atol=1e-8)


def test_the_length_of_a_chain_is_not_in_its_code(compiler):
    kernels = {id(pendulum_chain(n).compiled()._backend.scalar) for n in (1, 7, 5000)}
    assert len(kernels) == 1


def test_chains_of_one_step_are_read_once(monkeypatch):
    """A march of another length does not read the tape again."""
    made = pendulum_step()
    read = []
    tape = _program.read_tape
    monkeypatch.setattr(_program, "read_tape", lambda function: read.append(1) or tape(function))
    for count in (3, 5, 3):
        given = chain(made, count, carry=("x", "x_next"), each=["u"])
        given([1.0, 0.0], np.zeros((count, 1)))
        _ = given._backend.program.tape
    assert len(read) <= 1


def test_long_chains_are_compiled_at_the_first_call(compiler):
    short, long = pendulum_chain(10), pendulum_chain(100_000)
    short([1.0, 0.0], np.zeros((10, 1)))
    assert not short.is_compiled
    states = long([1.0, 0.0], np.zeros((100_000, 1)), 1e-4).x_next
    assert long.is_compiled and "function" not in vars(long)  # never written out
    energy = states[:, 1] ** 2 / 2 - np.cos(states[:, 0])
    np.testing.assert_allclose(energy, -np.cos(1.0), atol=1e-8)  # of the pendulum, order 2


def test_munthe_kaas_steps_on_se3(compiler, rng):
    """A body that turns and moves at constant velocity: the exponential is the exact answer."""
    method = get_method("rk4")
    problem = Problem(SE3, lambda t, X, V, p: V, n_inputs=6)
    step = trace(
        "step",
        lambda X, V, dt: method.step(problem, 0.0, X, V, (), dt).state,
        {"X": (7,), "V": (6,), "dt": ()},
        ["X_next"],
    )
    run = chain(step, 50, carry=("X", "X_next")).compiled()
    start, V = SE3.random(rng, (33,)), rng.normal(size=(33, 6))
    end = run(start, V, 0.02)[:, -1]
    np.testing.assert_allclose(SE3.minus(end, SE3.plus(start, V)), 0, atol=1e-12)


def test_threads_share_the_starts(compiler, rng):
    run = pendulum_chain(500).compiled()
    x, u = rng.normal(size=(100, 2)), rng.normal(size=(500, 1))
    try:
        set_threads(1)
        alone = run(x, u)
        set_threads(3)
        together = run(x, u)
    finally:
        set_threads(None)
    np.testing.assert_array_equal(alone.x_next, together.x_next)


def test_chains_in_place(seven, rng):
    call = seven.in_place(4, shared=["u", "dt"])
    x, u = rng.normal(size=(4, 2)), rng.normal(size=(7, 1))
    call.inputs["x"][...] = x
    call.inputs["u"][...] = u
    np.testing.assert_allclose(call().x_next, seven(x, u).x_next, rtol=ROUNDING, atol=ROUNDING)


def test_chains_are_pickled(seven, rng):
    copy = pickle.loads(pickle.dumps(seven))
    x, u = rng.normal(size=2), rng.normal(size=(7, 1))
    np.testing.assert_array_equal(copy(x, u).x_next, seven(x, u).x_next)
    assert copy.is_compiled == seven.is_compiled


def test_a_chain_of_glue_is_compiled_by_casadi(compiler, rng):
    x, A = ca.MX.sym("x", 3), ca.MX.sym("A", 3, 3)
    step = ModelFunction(ca.Function("implicit", [x, A], [ca.solve(A, x)], ["x", "A"], ["x_next"]))
    made = chain(step, 4, carry=("x", "x_next"))
    start, matrix = rng.normal(size=3), np.eye(3) + 0.1 * rng.normal(size=(3, 3))
    want = [np.linalg.solve(np.linalg.matrix_power(matrix, k), start) for k in range(1, 5)]
    np.testing.assert_allclose(made(start, matrix), want, rtol=1e-10)
    assert made.compiled() is made
    np.testing.assert_allclose(made(start, matrix), want, rtol=1e-10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"carry": ("y", "x_next")}, "unknown argument of step 'y'; valid names are x, u, dt"),
        ({"carry": ("x", "after")}, "unknown result of step 'after'"),
        ({"carry": ("x", "x_next"), "each": ["w"]}, "unknown argument of step 'w'"),
        ({"carry": ("x", "x_next"), "each": ["x"]}, "'x' is carried from step to step"),
        ({"carry": ("x", "energy")}, r"'energy' with shape \(\) cannot become 'x'"),
    ],
)
def test_what_chains_refuse(options, message):
    with pytest.raises(ValueError, match=message):
        chain(pendulum_step(), 3, **options)


def test_a_chain_needs_steps():
    with pytest.raises(ValueError, match="must be a whole number, at least 1, got 0"):
        pendulum_chain(0)

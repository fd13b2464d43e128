"""Linearization along a trajectory predicts how errors evolve, to second order."""

import numpy as np
import pytest
from scipy.linalg import expm

from lgcontrol.groups import SO3, Product, Rn
from lgcontrol.systems import Trajectory

from ._examples import account, pendulum, quadrotor, satellite, underwater

DT, STEPS = 0.02, 25


def motion(system, rng):
    u = system.nominal_input + rng.normal(size=(STEPS, system.n_inputs))
    return system.rollout(system.state.random(rng), u, DT)


@pytest.mark.usually(build=(pendulum, underwater))
@pytest.mark.parametrize("build", [pendulum, quadrotor, satellite, underwater])
def test_errors_evolve_as_predicted_to_second_order(build, rng):
    system = build()
    nominal = motion(system, rng)
    A, B = system.linearize(nominal).discrete()
    error, du = rng.normal(size=system.state.dim), rng.normal(size=nominal.u.shape)
    missed = []
    for size in (2e-3, 1e-3):
        start = system.state.plus(nominal.x[0], size * error)
        actual = system.rollout(start, nominal.u + size * du, DT)
        predicted = size * error
        for k in range(STEPS):
            predicted = A[k] @ predicted + B[k] @ (size * du[k])
        missed.append(system.state.minus(actual.x[-1], nominal.x[-1]) - predicted)
    ratio = np.linalg.norm(missed[0]) / np.linalg.norm(missed[1])
    assert 3.7 < ratio < 4.3, "halving the error must quarter what the prediction misses"
    assert np.linalg.norm(missed[1]) < 0.05 * 1e-3 * np.linalg.norm(error)


@pytest.mark.thorough
def test_continuous_matrices_integrate_to_the_discrete_ones(rng):
    system = quadrotor()
    start, u = system.state.random(rng), rng.normal(size=4) + 3
    misses = []
    for dt in (0.02, 0.01):
        lin = system.linearize(system.rollout(start, u, dt, steps=round(0.2 / dt)))
        step, _ = lin.discrete("dormand_prince5")
        middle = (lin.A[:-1] + lin.A[1:]) / 2
        misses.append(
            max(np.abs(expm(dt * M) - P).max() for M, P in zip(middle, step, strict=True))
        )
    assert 7 < misses[0] / misses[1] < 9, "the trapezoid of a step is off by its third power"


def test_nodes_hold_the_linearization_at_each_point(rng):
    system = underwater()
    nominal = motion(system, rng)
    lin = system.linearize(nominal)
    assert len(lin) == STEPS + 1
    alone = system.linearize(nominal.x[7], nominal.u[7], t=nominal.t[7])
    for name in "ABCD":
        np.testing.assert_array_equal(getattr(lin, name)[7], getattr(alone, name))


def test_discrete_systems_linearize_along_trajectories():
    system = account()
    A, B = system.linearize(system.rollout([1.0, 0.0], [1.0], steps=4)).discrete()
    np.testing.assert_allclose(A, 4 * [[[0.9, 0.0], [1.0, 0.0]]])
    np.testing.assert_allclose(B, 4 * [[[0.5], [0.0]]])


def test_other_trajectories_are_refused():
    with pytest.raises(ValueError, match="has 4 coordinates and 0 inputs, pendulum has 3 and 1"):
        pendulum().linearize(Trajectory(SO3, [0.0], [SO3.identity]))
    batch = pendulum().rollout(pendulum().state.random(0, (2,)), [0.0], 0.1, steps=3)
    with pytest.raises(ValueError, match="one trajectory at a time"):
        pendulum().linearize(batch)
    with pytest.raises(TypeError, match="its own inputs, and u as well"):
        pendulum().linearize(batch, [0.0])


def test_trajectories_on_other_groups_with_as_many_coordinates_are_refused():
    body = satellite()
    numbers = Rn(body.state.nq)
    x = np.tile(body.state.identity, (3, 1))
    u = np.zeros((2, body.n_inputs))
    with pytest.raises(ValueError, match=r"not on the state of satellite: it is Rn\(10\)"):
        body.linearize(Trajectory(numbers, [0, 1, 2], x, u))
    unnamed = Product(SO3, Rn(3), Rn(3))  # the same group, with other names
    along = body.linearize(Trajectory(unnamed, [0, 1, 2], x, u))
    np.testing.assert_array_equal(along.A[0], body.linearize(body.state.identity).A)


def test_fast_modes_get_as_many_substeps_as_they_need():
    base = pendulum()
    quick = base.augment(lag=2e-3)
    x = np.append(base.state.identity, 0.0)
    still = Trajectory(quick.state, [0.0, 0.02, 0.05], np.tile(x, (3, 1)), np.zeros((2, 1)))
    A, B = quick.linearize(still).discrete()
    for k, dt in enumerate((0.02, 0.03)):
        exact = quick.linearize(x).discrete(dt)
        np.testing.assert_allclose(A[k], exact[0], atol=1e-5)
        np.testing.assert_allclose(B[k], exact[1], atol=1e-5)
    one, _ = quick.linearize(still).discrete(substeps=1)
    assert np.abs(np.linalg.eigvals(one[0])).max() > 100  # what one step of rk4 makes of it
    with pytest.raises(
        ValueError, match="pendulum.*the step of 0.03 s at node 1 needs .* 1e.09 1/s"
    ):
        quicker = base.augment(lag=1e-9)
        quicker.linearize(Trajectory(quicker.state, still.t, still.x, still.u)).discrete()


def test_nodes_of_a_discrete_system_are_its_samples_apart():
    system = account()
    late = Trajectory(system.state, [0.0, 0.1, 0.3], np.ones((3, 2)), np.ones((2, 1)))
    with pytest.raises(ValueError, match="sample time 0.1 s, not spacing of the nodes = 0.2 s"):
        system.linearize(late).discrete()

"""Measurements: derivatives in error coordinates, noise on groups, what is refused."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO2, SO3, Product, Rn
from lgcontrol.systems import Sensor, System

from ._examples import RATE, quadrotor, turn
from .test_error_coordinates import absolute, states

DIFFERENCES = 1e-8  # central differences with steps of 1e-5


def mount(t, x, u, p):
    """Attitude of a camera on a gimbal that inputs turn, in a swaying world: depends on all."""
    half = (0.3 + u[0] + 0.2 * t) / 2
    gimbal = ca.vertcat(0, 0, ca.sin(half), ca.cos(half))
    half = (0.1 + u[1] * x[4]) / 2
    return SO3.compose(SO3.compose(x[:4], gimbal), ca.vertcat(ca.sin(half), 0, 0, ca.cos(half)))


def platform():
    return System(
        "platform",
        Product(attitude=SO3, rate=RATE),
        lambda t, x, u, p: ca.vertcat(x[4:], u, 0),
        inputs=["pan", "tilt"],
        h=mount,
        output=SO3,
    )


def differences(function, group, system, t, x, u, p, step=1e-5):
    """C and D by moving on the group, without any matrix of the toolkit."""

    def slope(dz, du):
        ahead, back = (
            function(t, system.retract(x, s * step * dz), u + s * step * du, p) for s in (1, -1)
        )
        return group.minus(ahead, back) / (2 * step)

    n, m = system.n_errors, system.n_inputs
    C = np.stack([slope(e, np.zeros(m)) for e in np.eye(n)], axis=-1)
    return C, np.stack([slope(np.zeros(n), e) for e in np.eye(m)], axis=-1)


def test_the_feedthrough_of_an_output_on_a_group_is_a_tangent_vector(rng):
    system = platform()
    for seed in range(3):
        x, u, t = system.state.random(seed), rng.normal(size=2), 0.7
        C, D = differences(system.h, SO3, system, t, x, u, [])
        found = system.linearize(x, u, t=t)
        assert found.D.shape == (3, 2) and np.abs(D).max() > 0.5
        assert np.abs(found.C - C).max() < DIFFERENCES
        assert np.abs(found.D - D).max() < DIFFERENCES
        bound = Sensor("camera", mount, SO3).bind(system).derivatives(t, x, u, [])
        assert np.abs(bound.C - C).max() < DIFFERENCES
        assert np.abs(bound.D - D).max() < DIFFERENCES


def test_derivatives_are_in_the_error_coordinates_of_the_system():
    system = absolute()
    _, x = states(0.8, 1.2)
    bound = Sensor("pose", "pose").bind(system)
    here = bound.derivatives(0.0, x, [0.2], [0.3])
    C, _ = differences(bound.function, bound.group, system, 0.0, x, np.array([0.2]), [0.3])
    assert here.C.shape == (3, 2)
    assert np.abs(here.C - C).max() < DIFFERENCES
    assert np.array_equal(here.y, x[:4])


def test_noise_has_its_covariance_and_stays_on_the_group():
    quad = quadrotor()
    x, u = quad.state.random(2), np.ones(4)
    R = np.diag([0.1, 0.2, 0.3, 1e-3, 2e-3, 3e-3]) ** 2
    R[0, 1] = R[1, 0] = 0.01
    bound = Sensor("tracker", "pose", covariance_discrete=R).bind(quad)
    assert np.abs(bound.covariance - R).max() < 1e-16
    rng = np.random.default_rng(4)
    drawn = np.array([bound.draw(0.0, x, u, [], rng) for _ in range(4000)])
    assert np.abs(SE3.normalize(drawn) - drawn).max() < 1e-14
    off = bound.innovation(drawn, 0.0, x, u, [])
    # The spread of a variance from n draws is √(2/n) of it: five of these.
    size = np.sqrt(np.outer(np.diag(R), np.diag(R)))
    assert (np.abs(np.cov(off.T) - R) < 5 * np.sqrt(2 / 4000) * size).all()


def test_a_density_is_spread_over_a_sample():
    system = platform()
    bound = Sensor("g", "rate", std_discrete=0.3, density=0.2, dt=0.25).bind(system)
    assert np.allclose(bound.covariance, (0.09 + 0.16) * np.eye(3), rtol=1e-15)
    both = Sensor(
        "g", "rate", covariance_discrete=np.diag([1, 2, 3]), density=[0.2, 0, 0], dt=0.25
    ).bind(system)
    assert np.allclose(both.covariance, np.diag([1.16, 2, 3]), rtol=1e-14)
    assert Sensor("all").bind(system).group == SO3
    copy = pickle.loads(pickle.dumps(Sensor("rate", "rate", std_discrete=1.0).bind(system)))
    assert np.array_equal(copy.covariance, np.eye(3))
    x = system.state.identity
    assert copy.derivatives(0.0, x, [0, 0], []).C.shape == (3, 6)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"h": "attitud"}, KeyError, "sensor 'm': unknown block of the state 'attitud'"),
        ({"h": turn}, ValueError, "go together"),
        ({"output": SO2}, ValueError, "go together"),
        ({"h": lambda t, x, u, p: x[:2], "output": SO3}, ValueError, "expected a column of 4"),
        ({"h": lambda t, x: x, "output": SO3}, TypeError, "must take"),
        ({"density": 0.1}, ValueError, "needs dt"),
        ({"dt": 0}, ValueError, "positive number of seconds"),
        ({"delay": -1}, ValueError, "delay of sensor .m. must be 0 or more"),
        ({"delay": 0.2, "validity": 0.1}, ValueError, "too old when it is delivered"),
        ({"std_discrete": [1, 2]}, ValueError, "std_discrete of sensor 'm'"),
        ({"std_discrete": -1}, ValueError, "must not be negative"),
        ({"std_discrete": 1, "covariance_discrete": np.eye(3)}, ValueError, "not both"),
        ({"covariance_discrete": -np.eye(3)}, ValueError, r"eigenvalue is -1; it has -1 at"),
        ({"covariance_discrete": np.eye(3) + np.eye(3, k=1)}, ValueError, "symmetric"),
    ],
)
def test_what_makes_no_measurement_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Sensor("m", **arguments).bind(platform())


def test_a_vector_output_needs_a_group():
    with pytest.raises(TypeError, match="must be a LieGroup"):
        Sensor("m", lambda t, x, u, p: x, output=3)
    assert Sensor("m", lambda t, x, u, p: x[4:], Rn(3)).bind(platform()).group.dim == 3

"""Controllability and observability in tangent space, with named modes."""

import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.systems import Linearization, System

from ._examples import RATE, pendulum, quadrotor, satellite, underwater

ROUNDING = 1e-9


def linear(A, B, C=None, dt=0.0):
    A, B = np.array(A, dtype=float), np.array(B, dtype=float)
    C = np.eye(len(A)) if C is None else np.array(C, dtype=float)
    system = System(
        "linear",
        Rn(len(A)),
        lambda t, x, u, p: A @ x + B @ u - (x if dt else 0),
        inputs=[f"u{i}" for i in range(B.shape[1])],
        h=lambda t, x, u, p: C @ x,
        output=Rn(len(C)),
        dt=dt,
    )
    return system.linearize(np.zeros(len(A)))


def test_a_quadrotor_is_controllable_in_its_twelve_error_states():
    report = quadrotor().linearize(quadrotor().trim()).controllability()
    assert (report.rank, report.size) == (12, 12)
    assert report.is_controllable and report.is_stabilizable
    assert str(report) == "12 of 12 error states controllable"


def test_a_vehicle_without_sway_thruster_names_what_it_cannot_reach():
    lin = underwater().linearize(underwater().trim())
    report = lin.controllability()
    assert report.rank == 10 and not report.is_stabilizable
    assert report.states == ("pose.y", "twist.vy")
    assert sorted(mode.is_stable for mode in report.uncontrollable) == [False, True]
    turning = underwater().linearize(underwater().trim(where={"twist.vx": 1.0, "twist.wz": 0.3}))
    assert turning.controllability().is_controllable  # in a turn it sways with the others


def test_wheels_alone_do_not_reach_the_total_momentum():
    system = satellite()
    x = system.state.join(wheel_speed=[10.0, 0.0, 0.0])
    lin = system.linearize(x)
    report = lin.controllability()
    assert report.rank == 6 and not report.is_stabilizable
    h = 1e-6
    slope = np.stack(
        [(system.invariants(system.state.plus(x, h * d)) - system.invariants(x)) / h
         for d in np.eye(9)],
        axis=-1,
    )  # fmt: skip
    # the momentum is what stays: its gradients span the left directions of the modes
    directions = np.stack([mode.direction for mode in report.uncontrollable])
    assert np.linalg.matrix_rank(np.vstack([slope, directions.real]), tol=1e-4) == 3
    np.testing.assert_allclose(slope @ report.basis, 0.0, atol=1e-4)
    assert lin.controllability("all").rank == 9


def test_modes_satisfy_their_equations(rng):
    T = rng.normal(size=(5, 5))
    A = T @ np.diag([1.0, -2.0, 3.0, -4.0, 5.0]) @ np.linalg.inv(T)
    B = T[:, :2] @ rng.normal(size=(2, 2))
    C = np.linalg.inv(T)[2:]
    lin = linear(A, B, C)
    report = lin.controllability()
    assert sorted(m.eigenvalue.real for m in report.uncontrollable) == pytest.approx([-4, 3, 5])
    for mode in report.uncontrollable:
        w = mode.direction
        assert np.linalg.norm(w.conj() @ A - mode.eigenvalue * w.conj()) < ROUNDING
        assert np.linalg.norm(w.conj() @ B) < ROUNDING
    np.testing.assert_allclose(report.basis.T @ report.basis, np.eye(2), atol=ROUNDING)
    seen = lin.observability()
    assert sorted(m.eigenvalue.real for m in seen.unobservable) == pytest.approx([-2, 1])
    assert not seen.is_detectable
    for mode in seen.unobservable:
        v = mode.direction
        assert np.linalg.norm(A @ v - mode.eigenvalue * v) < ROUNDING
        assert np.linalg.norm(C @ v) < ROUNDING
    np.testing.assert_allclose(C @ seen.basis, 0.0, atol=ROUNDING)
    np.testing.assert_allclose(seen.basis.T @ seen.basis, np.eye(2), atol=ROUNDING)


def test_stabilizable_and_detectable_in_continuous_and_discrete_time():
    slow = linear(np.diag([1.0, -0.5]), [[1.0], [0.0]], [[1.0, 0.0]])
    assert slow.controllability().is_stabilizable and slow.observability().is_detectable
    same = linear(np.diag([1.5, -0.5]), [[1.0], [0.0]], [[1.0, 0.0]], dt=0.1)
    assert same.controllability().is_stabilizable and same.observability().is_detectable
    outside = linear(np.diag([0.5, -1.5]), [[1.0], [0.0]], [[1.0, 0.0]], dt=0.1)
    assert not outside.controllability().is_stabilizable
    assert not outside.observability().is_detectable


@pytest.mark.parametrize("units", [1e-8, 1.0, 1e8])
def test_units_do_not_decide(units, rng):
    """The same quadrotor with lengths in other units has the same rank."""
    lin = quadrotor().linearize(quadrotor().trim())
    scale = np.ones(12)
    scale[[0, 1, 2, 6, 7, 8]] = units
    A = lin.A * scale[:, None] / scale
    B = lin.B * scale[:, None] * 1e3
    assert linear(A, B).controllability().is_controllable
    uncoupled = np.array(A)
    uncoupled[6:8, 3:5] = 0.0  # without gravity nothing moves it sideways
    assert linear(uncoupled, B).controllability().rank == 8


def test_a_weak_coupling_counts_and_rounding_does_not():
    assert linear([[0.0, 1e-6], [0.0, -1.0]], [[0.0], [1.0]]).controllability().rank == 2
    assert linear([[0.0, 1e-17], [0.0, -1.0]], [[0.0], [1.0]]).controllability().rank == 1
    # what rounding leaves of a zero must not decide units, which would hide the coupling
    assert linear([[0.0, 3e-7], [1e-25, -1.0]], [[0.0], [1.0]]).controllability().rank == 2


def test_attitude_from_one_direction_misses_the_turn_about_it():
    def magnetometer(t, x, u, p):
        return SO3.act(SO3.inverse(x[:4]), [1.0, 0.0, 0.0])

    system = System(
        "gyro",
        Product(attitude=SO3, bias=RATE),
        lambda t, x, u, p: [*(u[i] - x[4 + i] for i in range(3)), 0, 0, 0],
        inputs=["gx", "gy", "gz"],
        h=magnetometer,
        output=Rn(3),
    )
    report = system.linearize(system.state.identity).observability()
    assert report.rank == 4
    assert report.states == ("attitude.rx", "bias.wx")


def test_no_inputs_reach_nothing_and_no_outputs_show_nothing():
    lin = pendulum().linearize([1.0, 0.0, 0.0])
    assert lin.controllability("noise").rank == 0
    blind = System("blind", SE3, lambda t, x, u, p: 6 * [0], h=lambda *_: [], output=Rn(0))
    report = blind.linearize(SE3.identity).observability()
    assert report.rank == 0 and not report.is_detectable
    assert isinstance(lin, Linearization)

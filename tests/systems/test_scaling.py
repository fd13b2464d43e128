"""Verdicts that must not depend on units, nor on how fast the fastest state is."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from lgcontrol.groups import Product, Rn
from lgcontrol.systems import System
from lgcontrol.systems._subspaces import SCALING_ROUNDING, spectrum

from ._examples import quadrotor

# Position m, speed m/s and pressure Pa of a hydraulic cylinder that a valve feeds.
CYLINDER = (
    np.array([[0.0, 1.0, 0.0], [0.0, -0.5, 1e-5], [0.0, -1.5e10, 0.0]]),
    np.array([[0.0], [0.0], [1.5e13]]),
)


def linear(A, B, dt=0.0):
    system = System(
        "linear",
        Rn(len(A)),
        lambda t, x, u, p: A @ x + B @ u - (x if dt else 0),
        inputs=[f"u{i}" for i in range(B.shape[1])],
        dt=dt,
    )
    return system.linearize(np.zeros(len(A)))


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e-5, 1e-9, 1e2])
def test_a_cylinder_is_controllable_in_pascal_and_in_bar(unit):
    A, B = CYLINDER
    scale = np.array([1.0, 1.0, unit])
    lin = linear(A * scale[:, None] / scale, B * scale[:, None])
    assert str(lin.controllability()) == "3 of 3 error states controllable"


@pytest.mark.parametrize("seed", range(8))
def test_ranks_and_stability_are_the_same_in_any_units(seed):
    """Five states that feed back on each other, one of them beyond the reach of the input."""
    rng = np.random.default_rng(seed)
    inner, outer = rng.normal(size=(4, 4)), -0.02
    A = np.block([[inner, rng.normal(size=(4, 1))], [np.zeros((1, 4)), outer]])
    B = np.r_[rng.normal(size=4), 0.0][:, None]
    scale = 10.0 ** rng.uniform(-6, 6, size=5)
    report = linear(A * scale[:, None] / scale, B * scale[:, None]).controllability()
    assert report.rank == 4
    (mode,) = report.uncontrollable
    assert mode.is_stable and mode.eigenvalue == pytest.approx(outer)
    assert mode.states == ("x4",)


# A sampled rotor of 1 µs has forgotten its state after a sample, and is not reached then.
@pytest.mark.usually(lag=(1e-4,))
@pytest.mark.parametrize(
    ("lag", "dt"), [(1e-2, 0.0), (1e-4, 0.0), (1e-6, 0.0), (1e-2, 1e-3), (1e-4, 1e-3)]
)
def test_slow_wind_dies_out_however_fast_the_rotors_are(lag, dt):
    base = quadrotor().augment(lag=lag)
    n, count = base.state.nq, base.state.dim

    def field(t, x, u, p):
        rate = base.f(t, x[:n], u, p)
        return ca.vertcat(rate[:6], rate[6] + x[n], rate[7:], -x[n] / 300.0)

    windy = System(
        "windy",
        Product(**base.state.blocks, wind=Rn(1, ("north",))),
        field,
        inputs=base.inputs,
        parameters=base.parameters,
    )
    lin = windy.linearize(windy.trim(position=[0, 0, 1]))
    if dt:
        held = expm(dt * np.block([[lin.A, lin.B], [np.zeros((4, count + 5))]]))
        lin = linear(held[: count + 1, : count + 1], held[: count + 1, count + 1 :], dt)
    (mode,) = lin.controllability().uncontrollable
    assert mode.is_stable and not mode.is_growing
    value = np.exp(-dt / 300) if dt else -1 / 300
    assert mode.eigenvalue == pytest.approx(value, rel=1e-9)
    assert len(mode.states) == 1
    assert lin.controllability().rank == count


def growth(A):
    return spectrum(np.array(A, dtype=float)).growth(is_discrete=False).tolist()


def test_chains_of_integrators_do_not_die_out_whatever_rounding_says(rng):
    for n in (1, 2, 3, 4, 6):
        chain = np.diag(np.ones(n - 1), 1)
        assert growth(chain) == [0] * n
        turned = np.linalg.qr(rng.normal(size=(n, n)))[0]
        found = growth(turned.T @ chain @ turned)
        assert found == [0] * n


def test_coinciding_eigenvalues_that_are_stable_stay_so():
    lags = -np.eye(3) + np.diag([1.0, 1.0], 1)
    assert growth(lags) == [-1, -1, -1]
    assert growth(-lags) == [1, 1, 1]
    with_integrator = np.block([[lags, np.ones((3, 1))], [np.zeros((1, 4))]])
    assert sorted(growth(with_integrator)) == [-1, -1, -1, 0]


def test_undamped_oscillations_are_on_the_boundary():
    assert growth([[0, 5.0], [-5.0, 0]]) == [0, 0]
    assert growth([[0, 5.0], [-5.0, -1e-6]]) == [-1, -1]
    turning = [[np.cos(0.3), np.sin(0.3)], [-np.sin(0.3), np.cos(0.3)]]
    assert spectrum(np.array(turning)).growth(is_discrete=True).tolist() == [0, 0]


def test_errors_bound_what_rounding_does(rng):
    """Perturbed matrices keep their eigenvalues within the stated errors."""
    for _ in range(20):
        A = rng.normal(size=(5, 5)) + 3 * np.triu(rng.normal(size=(5, 5)), 1)
        found = spectrum(A)
        off = rng.normal(size=(5, 5))
        moved = np.linalg.eigvals(
            A + SCALING_ROUNDING * np.linalg.norm(A, 2) * off / np.linalg.norm(off, 2)
        )
        nearest = np.abs(found.values[:, None] - moved).min(axis=1)
        assert (nearest <= 1.5 * found.error).all()  # the bound is of first order

"""Surface vessel against its published equations with z down, written here with heading angles."""

import numpy as np
import pytest

from lgcontrol.models import surface_vessel

ROUNDING = 1e-12  # of accelerations of order one

# Tables 1, 2 and 4 of Skjetne et al. 2004, typed independently of the model.
M, IZ, XG = 23.8, 1.760, 0.046
XDU, YDV, YDR, NDV, NDR = -2.0, -10.0, 0.0, 0.0, -1.0
XU, XUU, XUUU = -0.72253, -1.32742, -5.86643
YV, YVV, YR, YRV, YVR, YRR = -0.88965, -36.47287, -7.250, -0.805, -0.845, -3.450
NV, NVV, NR, NRV, NVR, NRR = 0.03130, 3.95645, -1.900, 0.130, 0.080, -0.750

FLIP = np.array([1.0, -1.0, -1.0])  # surge, sway, yaw between z down and z up


def acceleration(nu, tau):
    """M ν̇ + C(ν) ν + D(ν) ν = τ."""
    u, v, r = nu
    mass = np.array(
        [
            [M - XDU, 0, 0],
            [0, M - YDV, M * XG - YDR],
            [0, M * XG - NDV, IZ - NDR],
        ]
    )
    sway = (M - YDV) * v + (M * XG - YDR) * r
    C = np.array([[0, 0, -sway], [0, 0, (M - XDU) * u], [sway, -(M - XDU) * u, 0]])
    D = -np.array(
        [
            [XU + XUU * abs(u) + XUUU * u**2, 0, 0],
            [0, YV + YVV * abs(v) + YRV * abs(r), YR + YVR * abs(v) + YRR * abs(r)],
            [0, NV + NVV * abs(v) + NRV * abs(r), NR + NVR * abs(v) + NRR * abs(r)],
        ]
    )
    return np.linalg.solve(mass, tau - C @ nu - D @ nu)


def test_accelerations_equal_the_published_equations(rng):
    vessel = surface_vessel()
    for _ in range(20):
        nu, tau = rng.normal(size=3), rng.normal(size=3)
        x = vessel.state.random(rng)
        x[4:] = FLIP * nu
        ours = vessel.f(0.0, x, vessel.full_input(FLIP * tau))[3:]
        np.testing.assert_allclose(ours, FLIP * acceleration(nu, tau), rtol=ROUNDING, atol=ROUNDING)


def test_turning_test_equals_the_published_equations():
    """Ten seconds with thrust and helm, by RK4 in heading angles with z down and on the group."""
    vessel = surface_vessel()
    tau = np.array([1.5, 0.2, -0.3])
    dt, steps = 0.01, 1000

    def rates(s):
        c, sn = np.cos(s[2]), np.sin(s[2])
        world = [c * s[3] - sn * s[4], sn * s[3] + c * s[4], s[5]]
        return np.concatenate([world, acceleration(s[3:], tau)])

    s = np.zeros(6)
    for _ in range(steps):
        k1 = rates(s)
        k2 = rates(s + dt / 2 * k1)
        k3 = rates(s + dt / 2 * k2)
        k4 = rates(s + dt * k3)
        s = s + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    run = vessel.rollout(vessel.state.identity, vessel.full_input(FLIP * tau), dt=dt, steps=steps)
    expected = np.concatenate([[s[0], -s[1], np.cos(s[2]), -np.sin(s[2])], FLIP * s[3:]])
    assert abs(s[2]) > 1.0  # it turns
    np.testing.assert_allclose(run.x[-1], expected, atol=1e-7)


def test_disturbances_are_a_world_force_and_a_moment_about_the_origin(rng):
    vessel = surface_vessel()
    x = vessel.state.random(rng)
    c, s = x[2:4]
    force, moment = rng.normal(size=2), rng.normal()
    pushed = vessel.full_input(
        np.zeros(3), **{"force.x": force[0], "force.y": force[1], "torque.rz": moment}
    )
    body = np.array([c * force[0] + s * force[1], -s * force[0] + c * force[1], moment])
    np.testing.assert_allclose(
        vessel.f(0.0, x, pushed), vessel.f(0.0, x, vessel.full_input(body)), atol=ROUNDING
    )


def test_speed_at_full_thrust_solves_the_cubic():
    vessel = surface_vessel()
    full = vessel.trim(
        where={"surge": 2.0, "sway": 0.0, "yaw": 0.0}, guess=_ahead(vessel), moving="pose"
    )
    roots = np.roots([XUUU, XUU, XU, 2.0])
    (speed,) = roots[(np.abs(roots.imag) < 1e-12) & (roots.real > 0)].real
    assert full.x[4] == pytest.approx(speed, rel=1e-9)
    assert 0.5 < speed < 0.7


def _ahead(vessel):
    x = vessel.state.identity.copy()
    x[4] = 0.5
    return x

"""Underwater vehicle against Fossen's equations in z-down axes, written here with Euler angles."""

import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3
from lgcontrol.models import underwater_vehicle

ROUNDING = 1e-11  # of accelerations of order ten, through the inverse of the mass matrix

# Table A1 of von Benzon et al. 2022, typed independently of the model.
M_RB = np.diag([13.5, 13.5, 13.5, 0.26, 0.23, 0.37])
M_A = np.diag([6.36, 7.12, 18.68, 0.189, 0.135, 0.222])
D_LINEAR = np.diag([13.7, 0.0, 33.0, 0.0, 0.8, 0.0])
D_QUADRATIC = np.array([141.0, 217.0, 190.0, 1.19, 0.47, 1.5])
WEIGHT, BUOYANCY, Z_B = 13.5 * 9.81, 0.0134 * 1000 * 9.81, -0.01

# Their thrust allocation, without the height of the horizontal thrusters: rows X, Y, Z, K, M, N.
ALLOCATION = np.array(
    [
        [0.7071, 0.7071, -0.7071, -0.7071, 0, 0, 0, 0],
        [-0.7071, 0.7071, -0.7071, 0.7071, 0, 0, 0, 0],
        [0, 0, 0, 0, -1, -1, -1, -1],
        [0, 0, 0, 0, -0.218, 0.218, -0.218, 0.218],
        [0, 0, 0, 0, 0.12, 0.12, -0.12, -0.12],
        [-0.1888, 0.1888, 0.1888, -0.1888, 0, 0, 0, 0],
    ]
)
HEIGHT = 0.085  # of the horizontal thrusters below the centre of mass [m]

# World x north, y east, z down and body x forward, y right, z down: half a turn about x from ours.
FLIP = np.diag([1.0, -1.0, -1.0])
FLIP_6 = np.kron(np.eye(2), FLIP)


def coriolis(M, nu):
    """Fossen 2011, eq. 3.46: from any symmetric 6 × 6 mass matrix."""
    a, b = M[:3] @ nu, M[3:] @ nu
    S = [np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) for x, y, z in (a, b)]
    return np.block([[np.zeros((3, 3)), -S[0]], [-S[0], -S[1]]])


def rotation(phi, theta, psi):
    c, s = np.cos([phi, theta, psi]), np.sin([phi, theta, psi])
    Rx = np.array([[1, 0, 0], [0, c[0], -s[0]], [0, s[0], c[0]]])
    Ry = np.array([[c[1], 0, s[1]], [0, 1, 0], [-s[1], 0, c[1]]])
    Rz = np.array([[c[2], -s[2], 0], [s[2], c[2], 0], [0, 0, 1]])
    return Rz @ Ry @ Rx


def fossen_acceleration(angles, nu, tau, current=(0.0, 0.0, 0.0)):
    """M_RB ν̇ + M_A ν̇_r + C_RB(ν) ν + C_A(ν_r) ν_r + D(ν_r) ν_r + g(η) = τ."""
    phi, theta, _ = angles
    v_c = rotation(*angles).T @ current
    nu_r = nu - np.concatenate([v_c, np.zeros(3)])
    turning = np.concatenate([-np.cross(nu[3:], v_c), np.zeros(3)])  # of a steady current, ν̇_c
    restoring = np.array(
        [
            (WEIGHT - BUOYANCY) * np.sin(theta),
            -(WEIGHT - BUOYANCY) * np.cos(theta) * np.sin(phi),
            -(WEIGHT - BUOYANCY) * np.cos(theta) * np.cos(phi),
            -Z_B * BUOYANCY * np.cos(theta) * np.sin(phi),
            -Z_B * BUOYANCY * np.sin(theta),
            0.0,
        ]
    )
    force = (
        tau
        - coriolis(M_RB, nu) @ nu
        - coriolis(M_A, nu_r) @ nu_r
        - D_LINEAR @ nu_r
        - D_QUADRATIC * np.abs(nu_r) * nu_r
        - restoring
        + M_A @ turning
    )
    return np.linalg.solve(M_RB + M_A, force)


def allocation():
    exact = ALLOCATION.copy()
    exact[:2, :4] *= np.sqrt(0.5) / 0.7071
    exact[5, :4] *= np.sqrt(0.5) * (0.156 + 0.111) / 0.1888
    # r × f with z = 0.085: (−z f_y, z f_x).
    exact[3, :4], exact[4, :4] = -HEIGHT * exact[1, :4], HEIGHT * exact[0, :4]
    return exact


@pytest.mark.parametrize("current", [(0.0, 0.0, 0.0), (0.3, -0.2, 0.1)])
def test_accelerations_equal_fossen_in_ned(current, rng):
    auv = underwater_vehicle(current=FLIP @ current)
    for _ in range(20):
        angles = rng.uniform([-3, -1.5, -3], [3, 1.5, 3])
        nu, thrust = rng.normal(size=6), rng.uniform(-30, 30, 8)
        expected = fossen_acceleration(angles, nu, allocation() @ thrust, current)
        R = FLIP @ rotation(*angles) @ FLIP
        x = auv.state.join(pose=SE3.from_rotation_matrix(R), twist=FLIP_6 @ nu)
        ours = auv.f(0.0, x, auv.full_input(thrust))[6:]
        np.testing.assert_allclose(ours, FLIP_6 @ expected, rtol=ROUNDING, atol=ROUNDING)


def test_current_inputs_add_to_the_current(rng):
    still, flowing = underwater_vehicle(), underwater_vehicle(current=(0.2, 0.1, -0.3))
    x = still.state.random(rng)
    u = still.full_input(np.zeros(8), **{"current.x": 0.2, "current.y": 0.1, "current.z": -0.3})
    np.testing.assert_allclose(still.f(0, x, u), flowing.f(0, x), rtol=ROUNDING, atol=ROUNDING)


def test_thrusters_are_those_published():
    auv = underwater_vehicle()
    B = auv.linearize(auv.state.identity).B[6:, :8]
    wrench = (M_RB + M_A) @ B
    wrench[3:5, :4] = 0  # their matrix leaves the height of the horizontal thrusters out
    np.testing.assert_allclose(wrench, FLIP_6 @ ALLOCATION, atol=5e-5)


@pytest.mark.parametrize(
    ("name", "linear", "quadratic", "speed"),
    [("vx", 13.7, 141.0, 0.5), ("vy", 0.0, 217.0, -0.4)],
)
def test_steady_speed_takes_the_force_of_the_drag(name, linear, quadratic, speed):
    auv = underwater_vehicle()
    moving = {"twist.vx": 0.0, "twist.vy": 0.0, "twist.vz": 0.0, f"twist.{name}": speed}
    level = {"pose.qx": 0.0, "pose.qy": 0.0}
    trim = auv.trim(where=moving | level)
    assert trim.kind == "relative equilibrium"
    axis = ("vx", "vy").index(name)
    thrust = (FLIP_6 @ allocation() @ trim.u[:8])[axis]
    drag = (linear + quadratic * abs(speed)) * speed
    assert thrust == pytest.approx(drag, rel=1e-6)


def test_full_surge_is_as_fast_as_measured_or_faster():
    """Their vehicle reached 0.72 m/s on its tether; all four horizontal thrusters push."""
    force = 4 * np.sqrt(0.5) * underwater_vehicle().inputs[0].upper
    speed = (-13.7 + np.sqrt(13.7**2 + 4 * 141.0 * force)) / (2 * 141.0)
    assert 0.72 < speed < 0.8


def test_helix_is_a_relative_equilibrium_with_constant_thrusts():
    auv = underwater_vehicle()
    helix = auv.trim(where={"twist": [0.4, 0.0, 0.1, 0.0, 0.0, 0.2], "pose.qx": 0, "pose.qy": 0})
    assert helix.kind == "relative equilibrium"
    path = auv.rollout(helix.x, helix.u, dt=0.05, steps=100)
    expected = helix(path.t).x
    assert np.abs(auv.state.minus(path.x, expected)).max() < 1e-6


@pytest.mark.thorough
def test_a_current_breaks_the_symmetry_of_the_helix():
    auv = underwater_vehicle(current=(0.2, 0.0, 0.0))
    with pytest.raises(RuntimeError, match="not a symmetry|no trim point"):
        auv.trim(where={"twist": [0.4, 0.0, 0.1, 0.0, 0.0, 0.2], "pose.qx": 0, "pose.qy": 0})


def test_energy_goes_where_drag_and_thrusters_take_it(rng):
    """The kinetic energy is that of body and water; its rate is the power of all else."""
    auv = underwater_vehicle()
    x0 = auv.state.join(pose=SE3.random(rng), twist=0.5 * rng.normal(size=6))
    u = auv.full_input(rng.uniform(-5, 5, 8))
    dt, steps = 0.002, 500
    run = auv.rollout(x0, u, dt=dt, steps=steps)
    twist = run.x[:, 7:]
    drag = -twist @ D_LINEAR - D_QUADRATIC * np.abs(twist) * twist
    wrench = drag + FLIP_6 @ allocation() @ u[:8]
    power = np.einsum("ki,ki->k", wrench, twist)
    work = dt * (power.sum() - (power[0] + power[-1]) / 2)  # trapezoids
    energy = [
        float(
            auv.quantities["kinetic_energy"](0, x)[0] + auv.quantities["potential_energy"](0, x)[0]
        )
        for x in (run.x[0], run.x[-1])
    ]
    assert energy[1] - energy[0] == pytest.approx(work, rel=1e-4)
    kinetic = auv.quantities["kinetic_energy"](0, x0)[0]
    assert kinetic == pytest.approx(0.5 * x0[7:] @ (M_RB + M_A) @ x0[7:])


def test_rights_itself(rng):
    """The centre of buoyancy is above the centre of mass: left alone, it comes to rest upright."""
    auv = underwater_vehicle()
    tilted = auv.state.join(pose=SE3.from_rotation_vector([1.0, -0.5, 0.3]), twist=np.zeros(6))
    drift = auv.rollout(tilted, dt=0.05, steps=2400)
    up = SO3.act(drift.x[:, 3:7], [0.0, 0.0, 1.0])[:, 2]
    assert up[0] < 0.6
    assert up[-200:].min() > 0.99

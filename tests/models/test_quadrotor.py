"""Quadrotor against the neutral benchmark plant and against closed forms."""

import importlib.util
import json
import warnings

import control
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3
from lgcontrol.models import quadrotor

ROUNDING = 1e-12  # of a handful of operations on numbers of order one to ten

# Both integrate with RK4 and 2.5 ms, but one in world velocities and quaternions, the other on the
# group: what is left are their truncation errors.
INTEGRATOR_TOLERANCE = 1e-8


@pytest.fixture
def benchmark(shared):
    """Neutral plant of the benchmark; its quaternions are (w, x, y, z), its velocities world."""
    spec = importlib.util.spec_from_file_location("plant", shared / "specs" / "plant.py")
    module = importlib.util.module_from_spec(spec)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", ResourceWarning
        )  # it leaves a file to the garbage collector
        spec.loader.exec_module(module)
    return module


def benchmark_quadrotor(shared):
    A = json.loads((shared / "specs" / "problems.json").read_text())["A_quadrotor_flip"]
    return quadrotor(
        mass=A["mass"],
        inertia=A["J"],
        arm=A["arm"],
        torque_coefficient=A["c_tau"],
        max_thrust=A["u_max"],
        layout="x",
    )


def from_benchmark(x):
    pose = SE3.from_quaternion(x[3:7], x[:3], order="wxyz")
    return np.concatenate([pose, SO3.matrix(SE3.rotation(pose)).T @ x[7:10], x[10:13]])


def random_state(rng):
    q = rng.normal(size=4)
    return np.concatenate([rng.normal(size=3), q / np.linalg.norm(q), rng.normal(size=6)])


def test_accelerations_equal_those_of_the_benchmark(benchmark, shared, rng):
    quad = benchmark_quadrotor(shared)
    for _ in range(20):
        x, u = random_state(rng), rng.uniform(0, 6, 4)
        force, torque = rng.normal(size=3), 0.01 * rng.normal(size=3)
        rates = benchmark.f(x, u, force, torque)
        ours = quad.f(0.0, from_benchmark(x), np.concatenate([u, force, torque]))
        R = SO3.matrix(SO3.from_quaternion(x[3:7], order="wxyz"))
        v, w = R.T @ x[7:10], x[10:13]
        # The body's view of a world velocity turns with the body.
        expected = np.concatenate([v, w, R.T @ rates[7:10] - np.cross(w, v), rates[10:13]])
        np.testing.assert_allclose(ours, expected, rtol=ROUNDING, atol=ROUNDING)


def test_flight_equals_that_of_the_benchmark(benchmark, shared, rng):
    quad = benchmark_quadrotor(shared)
    theirs = random_state(rng)
    ours = from_benchmark(theirs)
    step = quad.step("rk4", 20)
    for _ in range(20):
        u, force, torque = rng.uniform(0, 3, 4), rng.normal(0, 0.5, 3), rng.normal(0, 0.01, 3)
        theirs = benchmark.step(theirs, u, n=20, Fd=force, Td=torque)
        ours = step(0.0, ours, np.concatenate([u, force, torque]), [], benchmark.dt)
    off = quad.state.minus(ours, from_benchmark(theirs))
    assert np.abs(off).max() < INTEGRATOR_TOLERANCE * np.abs(theirs).max()


def test_hover_takes_a_quarter_of_the_weight_of_each_rotor():
    quad = quadrotor()
    hover = quad.trim(position=[2, 1, 1])
    np.testing.assert_allclose(hover.u[:4], 0.716 * 9.81 / 4, rtol=1e-9)
    np.testing.assert_allclose(hover.x, [2, 1, 1, 0, 0, 0, 1, *np.zeros(6)], atol=1e-9)
    assert hover.kind == "equilibrium"


def test_largest_thrust_is_that_of_the_published_propeller():
    """RotorS: thrust 8.54858e-6 N s² Ω², at most 838 rad/s."""
    assert quadrotor().inputs[0].upper == pytest.approx(8.54858e-6 * 838**2, rel=1e-3)


# Body torque per newton of each rotor: RotorS (front clockwise, left counter-clockwise, back,
# right) and the benchmark (front left, back left, back right, front right).
ARM, TORQUE = 0.17, 0.016
PLUS = np.array([[0, ARM, 0, -ARM], [-ARM, 0, ARM, 0], [TORQUE, -TORQUE, TORQUE, -TORQUE]])
X = np.array(
    [
        ARM / np.sqrt(2) * np.array([1, 1, -1, -1]),
        -ARM / np.sqrt(2) * np.array([1, -1, -1, 1]),
        TORQUE * np.array([1, -1, 1, -1]),
    ]
)


@pytest.mark.parametrize(("layout", "torques"), [("plus", PLUS), ("x", X)])
def test_rotors_push_and_turn_as_published(layout, torques):
    quad = quadrotor(layout=layout)
    B = quad.linearize(quad.state.identity).B[:, :4]
    expected = np.vstack(
        [np.zeros((8, 4)), np.ones(4) / 0.716, torques / [[0.007], [0.007], [0.012]]]
    )
    np.testing.assert_allclose(B, expected, atol=1e-12)


def test_falls_freely_without_thrust_and_keeps_its_energy(rng):
    quad = quadrotor()
    x0 = quad.state.random(rng)
    fall = quad.rollout(x0, dt=0.01, steps=100)
    height = 0.5 * 9.81 * 1.0**2
    R = SO3.matrix(x0[3:7])
    expected = x0[:3] + R @ x0[7:10] - [0, 0, height]
    np.testing.assert_allclose(fall.x[-1, :3], expected, atol=1e-7)
    energy = [
        quad.quantities["kinetic_energy"](0.0, x) + quad.quantities["potential_energy"](0.0, x)
        for x in (fall.x[0], fall.x[-1])
    ]
    assert energy[1] == pytest.approx(energy[0], rel=1e-8)


def test_drag_slows_down_to_the_speed_where_it_carries_the_weight():
    quad = quadrotor(drag=(0.1, 0.1, 0.2, 0.01, 0.01, 0.01))
    sink = quad.trim(where={f"rotor.{k}": 0.0 for k in range(4)}, moving="pose")
    v = SO3.matrix(sink.x[3:7]) @ sink.x[7:10]
    # Which axis it falls along is free; drag along it carries the weight.
    drag = 0.1 if abs(sink.x[9]) < 1e-6 else 0.2
    np.testing.assert_allclose(v, [0, 0, -0.716 * 9.81 / drag], atol=1e-6)


@pytest.mark.usually(sign=(-1,))
@pytest.mark.parametrize("sign", [1, -1])
def test_lqr_of_python_control_recovers_the_benchmark_from_120_degrees(sign, benchmark, shared):
    """Gain from the exact linearization, run on the plant that knows nothing of this package."""
    quad = benchmark_quadrotor(shared)
    hover = quad.trim(position=benchmark.PREF)
    K, _, _ = control.lqr(quad.linearize(hover).to_control(), np.eye(12), np.eye(4))
    x = benchmark.X0.copy()
    half = np.radians(120) / 2
    x[3:7] = sign * np.array([np.cos(half), np.sin(half) * 0.6, np.sin(half) * 0.8, 0.0])
    tilt = np.linalg.norm(benchmark.err(x)[3:6])
    for _ in range(800):
        error = quad.state.minus(from_benchmark(x), hover.x)
        u = np.clip(hover.u[:4] - K @ error, 0.0, 6.0)
        x = benchmark.step(x, u, h=0.01, n=1)
    assert tilt == pytest.approx(np.radians(120))
    assert np.abs(benchmark.err(x)).max() < 0.01


def test_unknown_layout_names_the_valid_ones():
    with pytest.raises(ValueError, match="plus, x"):
        quadrotor(layout="h")

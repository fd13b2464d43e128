"""A constrained system in absolute coordinates: multiplier, invariants, projection."""

import json

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3
from lgcontrol.systems import check_system

from ._examples import GRAVITY, HEAVY_TOP, RIGID, heavy_top

COM = np.array(HEAVY_TOP["com"])
SPIN = np.array([0.0, 62.83185307179586, 31.41592653589793])  # rad/s

# rk4 with dt = 1e-4 at 70 rad/s makes a local error near (dt w)^5 = 2e-11 a step.
SIMULATED = 1e-7
ROUNDING = 1e-11  # of forces near 5e4 N, relative
CONSTRAINT = 1e-14  # what projecting at the end of each step leaves, m


def start(spin=SPIN):
    return RIGID.join(
        pose=SE3.from_position(COM), twist=np.concatenate([np.cross(spin, COM), spin])
    )


def pivot_accelerations(omega, R, gravity):
    """Angular acceleration from the equations about the pivot: no multiplier, no constraint."""
    mass, com = HEAVY_TOP["mass"], COM
    about_pivot = np.diag(HEAVY_TOP["inertia"]) + mass * (
        com @ com * np.eye(3) - np.outer(com, com)
    )
    weight = R.T @ [0.0, 0.0, -mass * gravity]
    return np.linalg.solve(
        about_pivot, np.cross(com, weight) - np.cross(omega, about_pivot @ omega)
    )


def test_acceleration_and_reaction_equal_the_equations_about_the_pivot(rng):
    top = heavy_top()
    for _ in range(10):
        x = top.project(RIGID.random(rng))
        R, omega = SO3.matrix(x[3:7]), x[10:]
        alpha = pivot_accelerations(omega, R, GRAVITY)
        f, reaction = top.f(0.0, x), top.quantities["reaction"](0.0, x)
        np.testing.assert_allclose(f[9:], alpha, rtol=ROUNDING, atol=ROUNDING)
        acceleration = R @ (np.cross(alpha, COM) + np.cross(omega, np.cross(omega, COM)))
        expected = HEAVY_TOP["mass"] * (acceleration + [0.0, 0.0, GRAVITY])
        np.testing.assert_allclose(reaction, expected, rtol=ROUNDING, atol=ROUNDING)


def test_constraints_hold_and_energy_and_momentum_stay():
    top = heavy_top()
    run = top.rollout(start(), dt=1e-4, steps=2000)
    drift = top.invariants(run.x) - top.invariants(run.x[0])
    assert np.abs(drift[:, :3]).max() < CONSTRAINT
    assert np.abs(drift[:, 3:6]).max() < 1e3 * CONSTRAINT  # speeds near 35 m/s
    assert np.abs(drift[:, 6:] / top.invariants(run.x[0])[6:]).max() < SIMULATED


def test_projection_restores_the_constraints_and_keeps_the_attitude(rng):
    top = heavy_top()
    x = RIGID.random(rng)
    assert np.abs(top.invariants(x)[:6]).min() > 1e3 * CONSTRAINT
    back = top.project(x)
    assert np.abs(top.invariants(back)[:6]).max() < CONSTRAINT
    np.testing.assert_array_equal(back[3:7], x[3:7])


@pytest.mark.parametrize("case", ["paper_no_gravity", "with_gravity_9.81"])
def test_motion_and_reaction_equal_the_reference(shared, case):
    data = json.loads((shared / "reference" / "p000_heavy_top.json").read_text())["cases"][case]
    top = heavy_top(gravity=data["g"])
    samples = [s for s in data["samples"] if s["t"] <= 0.2]
    assert len(samples) > 1
    dt = 1e-4
    run = top.rollout(start(), dt=dt, steps=round(samples[-1]["t"] / dt))
    for sample in samples:
        x = run.x[round(sample["t"] / dt)]
        assert np.abs(SO3.matrix(x[3:7]) - sample["R"]).max() < SIMULATED
        assert np.abs(x[:3] - sample["r"]).max() < SIMULATED
        reaction = top.quantities["reaction"](sample["t"], x)
        expected = np.array(sample["reaction_on_body_world"])
        assert np.abs(reaction - expected).max() < 10 * SIMULATED * np.abs(expected).max()


def test_is_consistent_and_its_derivatives_pass_the_multiplier():
    report = check_system(heavy_top())
    assert {"invariants are constant", "projection is idempotent"} <= set(report)


def test_discrete_system_keeps_the_constraints():
    top = heavy_top().discretize(1e-3)
    x = top.rollout(start(0.1 * SPIN), steps=50).x[-1]
    assert np.abs(top.invariants(x)[:3]).max() < CONSTRAINT
    check_system(top, tolerance=1e-3)  # energy is constant up to the integrator's error only


def test_sleeping_top_is_a_relative_equilibrium():
    upright = SE3.from_euler("YZX", [-np.pi / 2, 0, 0])
    x = heavy_top().project(RIGID.join(pose=upright, twist=[0, 0, 0, 30.0, 0, 0]))
    lin = heavy_top().linearize(x)
    assert lin.kind == "relative equilibrium"
    assert ca.DM(lin.A).shape == (12, 12)

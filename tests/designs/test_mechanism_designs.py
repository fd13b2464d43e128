"""Designs of mechanisms with springs, friction and motors with curves."""

import dataclasses

import numpy as np
import pytest

from lgcontrol.controllers.designs import four_bar_upright as bar
from lgcontrol.controllers.designs import slider_crank_speed as crank
from lgcontrol.mechanics.constrained import angle_drive


def shown(run, block, place):
    return run.block_error(block)[:, place]


@pytest.mark.interpreted
def test_the_four_bar_is_trimmed_where_moments_balance_and_is_caught():
    """By hand: weight, torsion spring and the pull of the diagonal about the left hinge."""
    task = bar.design(seed=0)
    a, g = bar.LEAN, 9.81
    weight = (bar.LOAD * bar.HEIGHT + bar.BAR * bar.HEIGHT) * g * np.sin(a)
    length = np.sqrt(bar.HEIGHT**2 + bar.WIDTH**2 - 2 * bar.HEIGHT * bar.WIDTH * np.sin(a))
    lever = bar.HEIGHT * bar.WIDTH * np.cos(a) / length
    pull = bar.DIAGONAL * (length - bar.REST)
    # The corner goes along with the left bar: it comes nearer to the right hinge as that leans.
    torque = bar.TORSION * a - weight - pull * lever
    wanted = torque * bar.RESISTANCE / bar.CONSTANT
    law = task.controller
    assert law.regulator.u == pytest.approx([wanted], abs=1e-6)
    open_loop = task.plant.linearize(task.plant.trim(task.reference.x))
    assert np.linalg.eigvals(open_loop.A).real.max() > 1.0
    run = dataclasses.replace(task, seconds=0.25).run(seed=0)
    off = np.abs(shown(run, "configuration", bar.TURN))
    assert run.status == "completed" and off[0] > 0.1 and off[-1] < 0.3 * off[0]
    assert run.u.min() == -bar.VOLTAGE
    assert np.abs(task.plant.quantities["constraint_gap"](0.0, run.x)).max() < 1e-12


def test_the_voltage_of_the_slider_crank_makes_the_profile():
    """Inverse dynamics by the drive's multiplier against the forward dynamics with that voltage."""
    machine = crank.mechanism()
    motor = machine.motors["voltage"]
    driven = machine.with_joints(angle_drive("drive", motor.i, motor.j, crank.profile))
    t = np.linspace(0, 1.95, 196)
    wanted = driven.kinematics(t)
    system = machine.system(independent="shaft")
    u = wanted.multipliers[:, [-1]] * crank.RESISTANCE / crank.CONSTANT
    assert np.ptp(u) > 2.0
    for k in (25, 90, 125, 190):
        slope = system.f(0.0, np.r_[wanted.q[k], wanted.v[k]], u[k])
        assert slope[18:][crank.TURN] == pytest.approx(wanted.a[k, crank.TURN], abs=1e-8)
    assert -wanted.v[90, crank.TURN] == pytest.approx(20.0, abs=1e-9)


def test_the_voltage_of_the_slider_crank_overcomes_back_emf_and_friction():
    """Means over a turn at one speed: inertia does no work, friction and back-EMF are by hand."""
    machine, speed = crank.mechanism(), 20.0
    motor = machine.motors["voltage"]
    turn = 2 * np.pi / speed
    t = np.concatenate([np.linspace(0, 0.7, 100)[:-1], 0.7 + np.linspace(0, turn, 65)[:-1]])
    driven = machine.with_joints(angle_drive("drive", motor.i, motor.j, crank.profile))
    wanted = driven.kinematics(t)
    u = wanted.multipliers[-64:, -1] * crank.RESISTANCE / crank.CONSTANT
    slide = wanted.v[-64:, 12]
    losses = crank.BEARING * speed + np.mean(crank.RING * np.abs(slide * np.tanh(slide / 0.02)))
    current = losses / speed / crank.CONSTANT
    by_hand = crank.CONSTANT * speed + crank.RESISTANCE * current
    assert u.mean() == pytest.approx(by_hand, rel=1e-3)


@pytest.mark.interpreted
def test_the_slider_crank_comes_to_its_profile(monkeypatch):
    """The first third of a second: what is run by default of slider-crank-speed."""
    monkeypatch.setattr(crank, "SECONDS", 0.3)
    task = crank.design(seed=0)
    run = task.run(seed=0)
    off = np.abs(shown(run, "configuration", crank.TURN))
    assert run.status == "completed" and off[0] > 0.1 and off[-1] < 0.1 * off[0]
    assert run.u.min() == -crank.VOLTAGE

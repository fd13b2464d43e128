"""Long motions of trees: energy and momentum drift as the integrator's order says."""

import numpy as np
import pytest

from lgcontrol.models import panda_tree, space_arm_tree


def drift(tree, dt, torque, seconds, seed=3):
    """Largest change of energy less work, and of the spatial momentum, over a long run."""
    rng = np.random.default_rng(seed)
    system = tree.system()
    x0 = np.concatenate([tree.configuration.random(rng), 0.3 * rng.normal(size=tree.nv)])
    count = round(seconds / dt)
    u = np.zeros((count, system.n_inputs))
    u[:] = torque
    run = system.rollout(x0, u, dt)
    q, v = run.x[:, : tree.nq], run.x[:, tree.nq :]
    energy = tree.kinetic_energy(q, v) + tree.potential_energy(q)
    return np.abs(energy - energy[0]).max(), tree.centroidal_momentum(q, v)


@pytest.mark.thorough
def test_an_arm_that_swings_freely_keeps_its_energy():
    """A Panda that falls through its workspace, without losses or limits.

    At double the steps, or after 10 s, two ways to round already end in other motions.
    """
    tree = panda_tree(losses=False)
    coarse, fine = (drift(tree, dt, 0.0, 5.0)[0] for dt in (0.002, 0.001))
    assert coarse < 1e-4  # J, of some tens of joules that move
    assert fine < coarse / 2**3.5  # order 4


@pytest.mark.thorough
def test_a_floating_arm_keeps_its_momentum_under_joint_torques():
    """Torques inside a space arm: the spatial momentum about the origin stays."""
    tree = space_arm_tree()
    torque = 0.02 * np.sin(1 + np.arange(tree.system().n_inputs))
    change = []
    for dt in (0.02, 0.01):
        h = drift(tree, dt, torque, 8.0)[1]
        change.append(np.abs(h - h[0]).max() / np.abs(h[0]).max())
    assert change[1] < 1e-5
    assert change[1] < change[0] / 2**3.5  # order 4: only the integrator moves it


def test_a_floating_arm_without_torques_keeps_its_energy():
    """No gravity, no torques: energy stays."""
    coarse, fine = (drift(space_arm_tree(), dt, 0.0, 8.0)[0] for dt in (0.04, 0.02))
    assert fine < 1e-4  # J
    assert fine < coarse / 2**3.5

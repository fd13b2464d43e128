"""Arms with the losses of their files, friction sharp about rest, keep the stated tolerance."""

import numpy as np
import pytest

from lgcontrol.integrators import integrate
from lgcontrol.integrators._internal import decay_rate
from lgcontrol.mechanics import Multibody
from lgcontrol.simulation import simulate

# Explicit steps at the limit of their stability: what the stiff method knows nothing of.
REFERENCE = {"method": "dormand_prince5", "dense": False}
SPREAD = 1e-10  # of references at two tolerances


@pytest.mark.filterwarnings("ignore:tiago", "ignore:.*beyond the limits", "ignore:.*tiago.urdf")
@pytest.mark.usually(name=["z1"])
@pytest.mark.parametrize(("name", "rate"), [("z1", 3e4), ("tiago", 4e4)])
def test_losses_of_files_are_resolved_to_the_tolerance(robot_file, name, rate):
    tree = Multibody.from_urdf(robot_file(f"{name}.urdf"))
    # Nothing in the hand is as fast as the elbow, and its 36 joints take a minute to trace.
    tree = tree.lock(**{joint: 0.0 for joint in tree.joints if joint.startswith("hand")})
    plant, tolerance, seconds = tree.system(), 1e-6, 0.02
    away = 0.05 * np.random.default_rng(0).normal(size=tree.nv)
    q = tree.configuration.plus(tree.configuration.identity, away)
    x0 = np.concatenate([q, np.zeros(tree.nv)])
    run = simulate(plant, x0=x0, seconds=seconds, tolerance=tolerance)
    assert run.status == "completed"
    assert "ros34pw2" in run.settings["method"]
    u = plant.nominal_input
    assert decay_rate(plant.problem, 0.0, x0, u, plant.nominal_parameters) > rate
    exact, near = (
        integrate(plant.problem, x0, (0.0, seconds), u=u, rtol=tight, atol=tight, **REFERENCE).x[-1]
        for tight in (1e-12, 1e-11)
    )
    assert np.abs(plant.state.minus(exact, near)).max() < SPREAD
    scale = np.maximum(1.0, np.abs(np.r_[np.ones(tree.nv), exact[tree.nq :]]))
    assert (np.abs(plant.state.minus(run.x[-1], exact)) / scale).max() < tolerance
    assert np.abs(exact[tree.nq :]).max() > 0.01  # it moved

"""Large mechanisms: sparse steps are those of small ones, cost grows as the number of bodies."""

import numpy as np
import pytest
from scipy.sparse.linalg import splu

from lgcontrol import models
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import Marker, Mechanism, MechanismBody, _large, revolute

LINK = SpatialInertia.box(1.0, [0.1, 0.02, 0.02])


def chain(n):
    """Links of 0.1 m in a row, whose hinges are horizontal and vertical by turns."""
    bodies, joints = [], []
    for k in range(n):
        bodies.append(MechanismBody(f"link{k}", LINK, [0.1 * k + 0.05, 0, 0, 0, 0, 0, 1]))
        z = [0, 1, 0] if k % 2 == 0 else [0, 0, 1]
        at = Marker(f"link{k - 1}", [0.05, 0, 0], z) if k else Marker("ground", z=z)
        joints.append(revolute(f"hinge{k}", at, Marker(f"link{k}", [-0.05, 0, 0], z)))
    return Mechanism("chain", bodies, joints)


CASES = {
    "chain": lambda: chain(4),
    "slider_crank": models.slider_crank_mechanism,  # all kinds of rows, and a drive
}


@pytest.mark.parametrize("name", CASES)
def test_sparse_steps_are_those_of_the_closed_forms(name):
    mechanism, h, steps = CASES[name](), 1e-3, 12
    direct = mechanism.direct()
    exact = direct.dynamics(h, steps, 1e-6)
    large = mechanism.large()
    large.start = direct.start
    found = large.march(h, steps, implicit_euler3(), tolerance=1e-9)
    assert found.is_success
    assert found.r == pytest.approx(exact.r, abs=1e-12)
    scale = np.abs(exact.multipliers).max()
    assert found.multipliers == pytest.approx(exact.multipliers, abs=1e-6 * scale)


def test_generalized_alpha_is_that_of_the_integrators():
    mechanism = chain(4)
    x0 = np.concatenate([mechanism.coordinates(), np.zeros(24)])
    run = mechanism.march(x0, 1e-3, 20, generalized_alpha(0.8))
    found = mechanism.large().march(1e-3, 20, generalized_alpha(0.8), tolerance=1e-10, every=20)
    poses = mechanism.poses(run.x[-1][:28])
    assert found.r[-1] == pytest.approx(np.array([p[:3] for p in poses.values()]), abs=1e-12)
    assert found.t == pytest.approx([0.02])


def test_cost_grows_as_the_number_of_bodies(monkeypatch):
    """Operations of the factorization, and entries of the matrix, in each iteration."""
    counted = []

    def factored(K, **options):
        made = splu(K, **options)
        columns, lines = np.diff(made.L.indptr), np.diff(made.U.tocsr().indptr)
        counted.append((columns.astype(np.int64) @ lines, K.nnz))
        return made

    monkeypatch.setattr(_large, "splu", factored)
    costs = []
    for n in (100, 400):
        counted.clear()
        run = chain(n).large().march(1e-3, 3, generalized_alpha())
        assert run.is_success and len(counted) >= run.iterations.sum()
        costs.append(np.mean(counted, axis=0))
    growth = costs[1] / costs[0]
    assert (growth > 3.5).all() and (growth < 4.2).all()  # four times, but for the ends


def test_a_march_that_does_not_converge_ends_before():
    run = chain(3).large().march(5.0, 4, implicit_euler3(), limit=2)
    assert not run.is_success and len(run.t) < 4

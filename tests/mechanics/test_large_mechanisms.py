"""Large mechanisms: sparse steps are those of small ones, cost grows as the number of bodies."""

import numpy as np
import pytest
from scipy.sparse.linalg import splu

from lgcontrol import models
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import (
    Marker,
    Mechanism,
    MechanismBody,
    _large,
    revolute,
)
from lgcontrol.mechanics.constrained._large import LargeMechanism
from lgcontrol.mechanics.constrained._mechanism import LARGE

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


def sparse(mechanism):
    return LargeMechanism(mechanism.bodies, mechanism.joints.values(), mechanism.gravity)


@pytest.mark.parametrize("method", [implicit_euler3(iterations=6), generalized_alpha(0.8)])
@pytest.mark.parametrize("name", CASES)
def test_sparse_steps_are_those_that_are_written_out(name, method):
    mechanism, h, steps = CASES[name](), 1e-3, 12
    x0 = mechanism.state()
    exact, found = (each.march(x0, h, steps, method) for each in (mechanism, sparse(mechanism)))
    assert found.is_success and found.t == pytest.approx(exact.t)
    group = mechanism.mechanics.state
    assert np.abs(group.minus(found.x, exact.x)).max() < 1e-7
    scale = np.abs(exact.multipliers).max()
    assert found.multipliers == pytest.approx(exact.multipliers, abs=1e-6 * scale)


def test_many_bodies_take_sparse_steps_of_the_same_motion(monkeypatch):
    """Rows that say what others say among them: they have no written-out steps."""
    mechanism = chain(LARGE)
    x0 = np.concatenate([mechanism.coordinates(), np.zeros(6 * LARGE)])
    run = mechanism.march(x0, 1e-3, 3)
    assert run.is_success and run.x.shape == (4, 13 * LARGE)
    twice = mechanism.with_joints(
        revolute("again", Marker("ground", z=[0, 1, 0]), Marker("link0", [-0.05, 0, 0], [0, 1, 0]))
    )
    assert twice.march(x0, 1e-3, 3).x == pytest.approx(run.x, abs=1e-9)
    with pytest.raises(ValueError, match="position of hinge0.z is off by 0.1"):
        mechanism.march(x0 + 0.1 * np.eye(len(x0))[2], 1e-3, 3)


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
        mechanism = chain(n)
        x0 = np.concatenate([mechanism.coordinates(), np.zeros(6 * n)])
        assert mechanism.march(x0, 1e-3, 3).is_success and len(counted) > 3
        costs.append(np.mean(counted, axis=0))
    growth = costs[1] / costs[0]
    assert (growth > 3.5).all() and (growth < 4.2).all()  # four times, but for the ends


def test_a_march_that_does_not_converge_ends_before():
    mechanism = chain(3)
    run = sparse(mechanism).march(mechanism.state(), 5.0, 4, implicit_euler3(), limit=2)
    assert not run.is_success and len(run.t) < 5 and "did not solve" in run.message

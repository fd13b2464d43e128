"""Large mechanisms: sparse steps are those of small ones, cost grows as the number of bodies."""

import casadi as ca
import numpy as np
import pytest
from scipy.sparse.linalg import splu

from lgcontrol import models
from lgcontrol.groups import SE3, SO3
from lgcontrol.integrators import generalized_alpha, implicit_euler3
from lgcontrol.mechanics import SpatialInertia
from lgcontrol.mechanics.constrained import (
    Marker,
    Mechanism,
    MechanismBody,
    MechanismJoint,
    _large,
    _mechanism,
    revolute,
)
from lgcontrol.mechanics.constrained._large import LargeMechanism
from lgcontrol.mechanics.constrained._mechanism import LARGE_MECHANISM

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
    assert np.abs(group.minus(found.x, exact.x)).max() < 1e-9
    scale = np.abs(exact.multipliers).max()
    assert found.multipliers == pytest.approx(exact.multipliers, abs=1e-6 * scale)


def test_many_bodies_take_sparse_steps_of_the_same_motion(monkeypatch):
    """Rows that say what others say among them: they have no written-out steps."""
    mechanism = chain(LARGE_MECHANISM)
    x0 = np.concatenate([mechanism.coordinates(), np.zeros(6 * LARGE_MECHANISM)])
    run = mechanism.march(x0, 1e-3, 3)
    assert run.is_success and run.x.shape == (4, 13 * LARGE_MECHANISM)
    twice = mechanism.with_joints(
        revolute("again", Marker("ground", z=[0, 1, 0]), Marker("link0", [-0.05, 0, 0], [0, 1, 0]))
    )
    assert twice.march(x0, 1e-3, 3).x == pytest.approx(run.x, abs=1e-9)
    with pytest.raises(ValueError, match="position of hinge0.z is off by 0.1"):
        mechanism.march(x0 + 0.1 * np.eye(len(x0))[2], 1e-3, 3)


def driven_chain(n):
    """Every hinge follows a motion of its own, and one is there twice."""
    mechanism = chain(n)
    for k in range(n):
        mechanism = mechanism.drive(f"hinge{k}", lambda t, k=k: 0.3 * ca.sin(t + k) * t)
    first = mechanism.joints["hinge1"]
    return mechanism.with_joints(MechanismJoint("again", first.rows, first.point))


def test_rates_of_rows_are_those_of_the_equations(rng):
    for mechanism in (driven_chain(3), models.slider_crank_mechanism()):
        q = mechanism.coordinates()
        v = rng.normal(size=6 * len(mechanism.bodies))
        exact = mechanism.dynamics(0.7, q, v)
        places = q.reshape(-1, 7)
        A = SO3.matrix(places[:, 3:])
        nu, gamma = sparse(mechanism).rates(0.7, places[:, :3], A, v.reshape(-1, 6))
        assert nu == pytest.approx(exact.nu, abs=1e-12)
        assert gamma == pytest.approx(exact.gamma, abs=1e-10)


def test_many_bodies_are_assembled_and_driven_like_few(monkeypatch):
    """Positions, velocities, accelerations and multipliers, a loop with rows twice among them."""
    t = np.linspace(0, 1.0, 6)
    few, runs = driven_chain(4), {}
    rough = {name: SE3.plus(b.pose, 1e-3 * np.ones(6)) for name, b in few.bodies.items()}
    for limit in (LARGE_MECHANISM, 1):
        monkeypatch.setattr(_mechanism, "LARGE_MECHANISM", limit)
        mechanism = few._like()
        q = mechanism.assemble(rough)
        gap = few.constraints.position(0.0, ca.DM(q), ca.DM(0, 1)).full()
        assert np.abs(gap).max() < 1e-12
        x = mechanism.state(mechanism.assemble(t=0.2), t=0.2)
        with pytest.raises(ValueError, match="at t = 0.2 s: drive_hinge.* is off by"):
            mechanism.state(mechanism.coordinates(), t=0.2)
        runs[limit] = x, mechanism.kinematics(t, q=mechanism.coordinates())
    (x, exact), (y, found) = runs[LARGE_MECHANISM], runs[1]
    assert found.is_success and exact.is_success
    assert y == pytest.approx(x, abs=1e-9)
    assert found.q == pytest.approx(exact.q, abs=1e-11)
    for name in ("v", "a"):
        assert getattr(found, name) == pytest.approx(getattr(exact, name), abs=1e-8)
    G = few.dynamics(0.6, found.q[3], found.v[3]).G  # rows that are there twice share their load
    assert G.T @ found.multipliers[3] == pytest.approx(G.T @ exact.multipliers[3], abs=1e-7)


def test_a_chain_without_drives_has_no_kinematics():
    run = chain(LARGE_MECHANISM).kinematics([0.0, 0.1])
    assert (
        not run.is_success and "no drive decides all degrees of freedom at t = 0 s" in run.message
    )


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


@pytest.mark.parametrize("n", [4, LARGE_MECHANISM])
def test_arguments_that_nothing_takes_are_refused_at_any_size(n):
    mechanism = chain(n)
    x0 = mechanism.state()
    for call in (
        lambda: mechanism.march(x0, 1e-3, 2, p={"link0.mass": 30.0}),
        lambda: mechanism.march(x0, 1e-3, 2, u=[1.0, 2.0]),
        lambda: mechanism.assemble(p=[1.0, 2.0]),
        lambda: mechanism.state(p={"nonsense": 3.0}),
        lambda: mechanism.kinematics([0.0, 0.1], p=[1.0]),
    ):
        with pytest.raises((ValueError, TypeError)):
            call()


def test_a_march_that_does_not_converge_ends_before():
    mechanism = chain(3)
    run = sparse(mechanism).march(mechanism.state(), 5.0, 4, implicit_euler3(), limit=2)
    assert not run.is_success and len(run.t) < 5 and "did not solve" in run.message

"""Trees as systems: inputs, disturbances, forces, conservation laws in simulation."""

import pickle

import numpy as np
import pytest

from lgcontrol.groups import SE3
from lgcontrol.mechanics import (
    Buoyancy,
    Current,
    JointProperties,
    LinearDrag,
    Multibody,
    RigidBody,
    SpatialInertia,
)

from . import zoo

EXACT = 1e-9  # accelerations: forces of some ten newtons over inertias of some hundredths


def state(tree, rng):
    q, v, *_ = zoo.state(tree, rng)
    return q, v, np.concatenate([q, v])


def test_field_is_forward_dynamics(rng):
    tree = zoo.pair("free", rng)
    system = tree.system()
    q, v, x = state(tree, rng)
    u = rng.normal(size=system.n_inputs)
    tau = np.concatenate([np.zeros(6), u])  # all joints but the free one
    assert system.n_inputs == tree.nv - 6
    expected = np.concatenate([v, tree.forward_dynamics(q, v, tau)])
    assert system.f(0, x, u) == pytest.approx(expected, abs=EXACT)
    copy = pickle.loads(pickle.dumps(system))
    assert np.array_equal(copy.f(0, x, u), system.f(0, x, u))


def test_inputs_on_chosen_joints_or_through_a_matrix(rng):
    tree = zoo.pair("spherical", rng)
    q, v, x = state(tree, rng)
    chosen = tree.system(["c", "a"])
    assert chosen.input_names == ("c", "a.rx", "a.ry", "a.rz")
    assert [entry.unit for entry in chosen.inputs] == ["N", "N m", "N m", "N m"]
    u = rng.normal(size=4)
    B = np.zeros((tree.nv, 4))
    B[tree.joints.index("c") + 2, 0] = B[0, 1] = B[1, 2] = B[2, 3] = 1.0
    expected = tree.forward_dynamics(q, v, B @ u)
    assert chosen.f(0, x, u)[tree.nv :] == pytest.approx(expected, abs=EXACT)
    mixed = rng.normal(size=(tree.nv, 2))
    through = tree.system(["left", "right"], input_matrix=mixed)
    assert through.input_names == ("left", "right")
    expected = tree.forward_dynamics(q, v, mixed @ u[:2])
    assert through.f(0, x, u[:2])[tree.nv :] == pytest.approx(expected, abs=EXACT)
    with pytest.raises(ValueError, match="1 inputs named for an input_matrix with 2 columns"):
        tree.system(["left"], input_matrix=mixed)
    with pytest.raises(ValueError, match="input_matrix has shape"):
        tree.system(input_matrix=np.eye(2))


def test_effort_limits_bound_the_inputs():
    tree = Multibody().add_body(
        "a", SpatialInertia.sphere(1, 1), "cylindrical", properties=JointProperties(effort=[5, 7])
    )
    lower, upper = tree.system().input_bounds
    assert upper.tolist() == [5, 7] and lower.tolist() == [-5, -7]


@pytest.mark.usually(reference=("hybrid",))
@pytest.mark.parametrize("reference", ["body", "hybrid", "mixed", "spatial"])
def test_wrenches_are_disturbances(reference, rng):
    tree = zoo.pair("planar", rng)
    system = tree.system(wrenches={"tip": reference, "a": reference})
    assert list(system.input_index("disturbance")) == list(range(tree.nv, tree.nv + 12))
    q, v, x = state(tree, rng)
    u = np.concatenate([np.zeros(tree.nv), rng.normal(size=12)])
    J = np.vstack([tree.jacobian(frame, reference)(q) for frame in ("tip", "a")])
    expected = tree.forward_dynamics(q, v, J.T @ u[tree.nv :])
    assert system.f(0, x, u)[tree.nv :] == pytest.approx(expected, abs=EXACT)


def test_vehicle_with_hydrodynamics_is_the_single_body(rng):
    """A tree of one free body with drag, added mass, buoyancy, current: two implementations."""
    inertia = zoo.random_inertia(rng)
    forces = (Buoyancy(2e-3, (0, 0, 0.1)), LinearDrag(np.diag([1, 2, 3, 0.1, 0.2, 0.3])))
    A = np.diag([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    A[0, 4] = A[4, 0] = 0.1
    current = Current((0.3, -0.2, 0.1), is_input=True)
    tree = Multibody().add_body("hull", inertia, "free")
    system = tree.system(forces={"hull": forces}, added_mass={"hull": A}, current=current)
    from lgcontrol.mechanics import Gravity

    body = RigidBody(
        "hull", SE3, inertia, forces=(Gravity(), *forces), added_mass=A, current=current
    )
    q, v, x = state(tree, rng)
    u = rng.normal(size=3)
    ours = system.f(0, x, u)
    assert ours == pytest.approx(body.system().f(0, x, u), abs=EXACT)
    energy = system.quantities["potential_energy"](0, x, u)
    assert energy == pytest.approx(body.system().quantities["potential_energy"](0, x, u))


def test_added_mass_on_a_link_is_lagranges(rng):
    """Energy balance along a motion: power of the joints is the rate of the energy."""
    tree = zoo.pair("universal", rng)
    A = np.diag([1.0, 2.0, 3.0, 0.1, 0.2, 0.3])
    system = tree.system(added_mass={"tool": A, "a": 2 * A})
    _, v, x0 = state(tree, rng)
    u = rng.normal(size=system.n_inputs)
    run = system.rollout(x0, u, 1e-3, steps=200)
    energies = np.array(
        [
            system.quantities["kinetic_energy"](0, x, u)
            + system.quantities["potential_energy"](0, x, u)
            for x in run.x
        ]
    ).ravel()
    power = run.x[:, tree.nq :] @ u
    work = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * 1e-3)])
    # The trapezoid's error: h² over 12 times the power's curvature.
    assert energies - energies[0] == pytest.approx(work, abs=2e-5 * np.abs(energies).max())


def test_floating_tree_keeps_momentum_and_energy(rng):
    """Without gravity, joint torques change neither momentum; without torques, energy stays."""
    tree = zoo.pair("free", rng)
    weightless = Multibody(gravity=[0, 0, 0])
    for link in map(tree.link, tree.links):
        weightless = weightless.add_body(
            link.name, link.inertia, link.joint, link.parent, link.placement
        )
    q, v, _ = state(weightless, rng)
    system = weightless.system()
    x0 = np.concatenate([q, 0.5 * v])
    u = rng.normal(size=system.n_inputs)
    run = system.rollout(x0, u, 2e-3, steps=500)
    nq = weightless.nq
    h = weightless.centroidal_momentum(run.x[:, :nq], run.x[:, nq:])
    # RK4 at 2 ms over one second
    assert np.abs(h - h[0]).max() < 1e-6 * np.abs(h[0]).max()
    com = weightless.center_of_mass(run.x[:, :nq])
    straight = com[0] + np.outer(run.t, h[0, :3]) / weightless.mass
    assert np.abs(com - straight).max() < 1e-6
    still = system.rollout(x0, 0 * u, 2e-3, steps=500)
    T = weightless.kinetic_energy(still.x[:, :nq], still.x[:, nq:])
    assert np.abs(T - T[0]).max() < 1e-6 * T[0]


def test_work_and_energy_balance_with_losses_and_springs(rng):
    tree = zoo.driven(rng)
    system = tree.system()
    _, _, x0 = state(tree, rng)
    u = rng.normal(size=system.n_inputs)
    run = system.rollout(x0, u, 5e-4, steps=600)
    q, v = run.x[:, : tree.nq], run.x[:, tree.nq :]
    energy = tree.kinetic_energy(q, v) + tree.potential_energy(q)
    free = tree.with_properties(
        **{
            link.joint_name: JointProperties(
                armature=link.properties.armature,
                stiffness=link.properties.stiffness,
                rest=link.properties.rest,
            )
            for link in map(tree.link, tree.links)
        }
    )
    losses = ((tree.bias_forces(q, v) - free.bias_forces(q, v)) * v).sum(axis=1)
    power = v @ u - losses
    work = np.concatenate([[0], np.cumsum((power[1:] + power[:-1]) / 2 * 5e-4)])
    assert losses.min() >= 0
    assert energy - energy[0] == pytest.approx(work, abs=1e-4)  # trapezoid, see above


def test_parameters_reach_the_system(rng):
    tree = zoo.pair("revolute", rng).symbolic("b.mass", "gravity")
    system = tree.system()
    assert [entry.name for entry in system.parameters] == [
        "b.mass",
        *(f"gravity.{a}" for a in "xyz"),
    ]
    assert [entry.unit for entry in system.parameters] == ["kg", "m/s²", "m/s²", "m/s²"]
    q, v, x = state(tree, rng)
    p = np.array([2.0, 0.0, 0.0, -1.6])
    expected = tree.forward_dynamics(q, v, np.zeros(tree.nv), p=p)
    assert system.f(0, x, np.zeros(tree.nv), p)[tree.nv :] == pytest.approx(expected, abs=EXACT)


def test_linearization_is_the_analytic_derivative(rng):
    tree = zoo.pair("spherical", rng)
    system = tree.system()
    q, v, x = state(tree, rng)
    u = rng.normal(size=tree.nv)
    lin = system.linearize(x, u)
    slopes = tree.forward_dynamics_derivatives(q, v, u)
    n = tree.nv
    assert lin.A[n:, :n] == pytest.approx(slopes.d_a_d_q, abs=1e-7)
    assert lin.A[n:, n:] == pytest.approx(slopes.d_a_d_v, abs=1e-7)
    assert lin.B[n:] == pytest.approx(slopes.d_a_d_tau, abs=1e-7)

"""The flat map: reference numbers, the model's own equations along fast motions, and back."""

import json
from math import factorial

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from lgcontrol.mechanics import JointProperties, LinearSpring, Motor, SeriesElastic
from lgcontrol.models import panda_tree, ur5_tree
from lgcontrol.systems import Waypoints

from .arms import ARMS, damped, links, mixed, plain

pytestmark = pytest.mark.usually(kind=("mixed", "flying", "variable"))

FLAT = [kind for kind in ARMS if kind not in ("damped", "floating")]
RESIDUAL = 1e-11  # N m
UR5 = (
    [0, -1.2, 1.0, -1.3, -1.5, 0], [1.2, -0.7, 1.6, -1.9, -0.8, 0.8],
    [900, 1000, 800, 300, 250, 200], [0.5, 0.6, 0.4, 0.1, 0.09, 0.08],
)  # fmt: skip
PANDA = (
    [0, -0.4, 0, -2.2, 0, 1.8, 0.6], [0.8, 0.2, 0.3, -1.6, 0.3, 2.2, 1.2],
    [1e4] * 4 + [5e3] * 3, [0.606] * 2 + [0.462] * 2 + [0.206] * 3,
)  # fmt: skip


def ninth_order(start, end, seconds, t):
    """Rest to rest with four derivatives that vanish: q … q⁗ at a time."""
    coefficients = np.zeros(10)
    coefficients[5:] = [126, -420, 540, -315, 70]
    s = np.polynomial.Polynomial(coefficients)
    away = np.subtract(end, start)
    rates = [s.deriv(k)(t / seconds) / seconds**k * away for k in range(5)]
    return [np.add(start, rates[0]), *rates[1:]]


def arm_of(tree, stiffness, inertia):
    pairs = zip(tree.joints, inertia, stiffness, strict=True)
    return SeriesElastic(tree, {name: Motor(B, K) for name, B, K in pairs})


def settings_of(arm, rng):
    count = len(arm.mechanics.set_joints)
    return [np.array([150.0, 0.8])[:count], *rng.normal(size=(2, count))] if count else []


def test_reference_numbers(shared):
    """Motors of the UR5 by 40-digit Taylor series."""
    case = json.loads((shared / "reference" / "p004_time_derivatives.json").read_text())["models"][
        "ur5_sea"
    ]
    arm = arm_of(ur5_tree(), case["sea"]["K"], case["sea"]["B"])
    flat, back = arm.flat_map(), arm.flat_outputs()
    for sample in case["samples"]:
        rates = [np.array(sample[k]) for k in ("q", "v", "vdot", "vddot", "vdddot")]
        found = flat(*rates)
        ours = (found.x[12:18], found.x[18:], found.motor_acceleration, found.u, found.tau)
        names = ("position", "velocity", "acceleration", "torque")
        stated = [sample[f"motor_{name}"] for name in names] + [sample["tau"]]
        for own, theirs in zip(ours, stated, strict=True):
            assert np.abs(own - theirs).max() <= 1e-12 * np.abs(theirs).max()
        x = np.concatenate([*rates[:2], sample["motor_position"], sample["motor_velocity"]])
        M = arm.tree.mass_matrix(rates[0])
        for own, theirs in zip(back(x, sample["motor_torque"]), rates, strict=True):
            # Judged in N m: a deflection is known to eps · θ, its torque to K times that.
            assert np.abs(M @ (own - theirs)).max() <= 1e-10 * max(1, np.abs(M @ theirs).max())


@pytest.mark.usually(make=(ur5_tree,))
@pytest.mark.parametrize(("make", "numbers"), [(ur5_tree, UR5), (panda_tree, PANDA)])
def test_residual_of_the_model_along_fast_motions(make, numbers):
    """``M v̇`` and ``B θ̈`` of the model at the map's states and torques are the motion's own."""
    tree = make()
    start, end, stiffness, inertia = numbers
    arm = arm_of(tree, stiffness, inertia)
    system, flat, nv = arm.system(), arm.flat_map(), tree.nv
    for t in np.linspace(0.0, 0.7, 9):
        rates = ninth_order(start, end, 0.7, t)
        found = flat(*rates)
        torque = system.quantities["spring_torque"](0.0, found.x)
        assert np.abs(torque - found.tau).max() < RESIDUAL
        M = tree.mass_matrix(rates[0])
        balance = system.structure.force(0.0, found.x, found.u) - M @ rates[2]
        assert np.abs(balance).max() < RESIDUAL
        motors = np.array(inertia) * (system.f(0.0, found.x, found.u)[3 * nv :]
                                      - found.motor_acceleration)  # fmt: skip
        assert np.abs(motors).max() < RESIDUAL


@pytest.mark.usually(kind=("mixed", "variable"))
@pytest.mark.parametrize("kind", FLAT)
def test_every_kind_there_and_back(kind, rng):
    """The field at the map's state and input is the motion; the inverse gives the motion again."""
    arm = ARMS[kind]()
    system, tree = arm.system(), arm.tree
    q, rates = tree.configuration.random(rng), 0.5 * rng.normal(size=(4, tree.nv))
    settings = settings_of(arm, rng)
    found = arm.flat_map()(q, *rates, *settings)
    p = system.nominal_parameters
    f = system.f(0.0, found.x, found.u, p)
    np.testing.assert_allclose(f[tree.nv : 2 * tree.nv], rates[1], atol=1e-9)
    motor = system.state.tangent_slice("motor_velocity")
    np.testing.assert_allclose(f[motor], found.motor_acceleration, rtol=1e-9, atol=1e-8)
    back = arm.flat_outputs()
    u_rates = []
    if "u_dot" in back.arguments:  # rates of what reaches the links at once
        tau = tree.inverse_dynamics_time_derivatives(2)(q, *rates)
        u_rates = [np.zeros(system.n_inputs), np.zeros(system.n_inputs)]
        rigid = [n for n in arm.driven if n not in arm.joints]
        for k in range(2):
            for name in rigid:
                columns = [i for i, n in enumerate(system.input_names) if n.split(".")[0] == name]
                u_rates[k][columns] = tau[k + 1][tree._coordinates[name].v]
            if settings and kind == "variable":
                u_rates[k][system.input_names.index("j0.stiffness")] = settings[k + 1][0]
    for own, theirs in zip(back(found.x, found.u, *u_rates), (q, *rates), strict=True):
        np.testing.assert_allclose(own, theirs, atol=1e-6)


@pytest.mark.parametrize("kind", ["hardening", "variable"])
def test_rates_of_the_map_are_its_derivatives(kind, rng):
    """Motor speed and acceleration against differences of the motor position along a curve."""
    arm = ARMS[kind]()
    flat, state, h = arm.flat_map(), arm.state, 1e-4
    q0, rates = arm.tree.configuration.random(rng), 0.3 * rng.normal(size=(4, arm.tree.nv))
    settings = settings_of(arm, rng)

    def taylor(values, s):
        return sum(value * s**m / factorial(m) for m, value in enumerate(values))

    def at(s):
        """On abelian groups Taylor's polynomial is a curve with these rates."""
        own = [taylor(settings[k:], s) for k in range(3)] if settings else []
        d = taylor([0 * q0[: arm.tree.nv], *rates], s)
        moved = arm.tree.configuration.plus(q0, d)
        return flat(moved, *(taylor(rates[k:], s) for k in range(4)), *own)

    here, before, after = at(0.0), at(-h), at(h)
    theta = [x.x[state.coordinate_slice("motor")] for x in (before, after)]
    speed = state.blocks["motor"].minus(theta[1], theta[0]) / (2 * h)
    w = state.coordinate_slice("motor_velocity")
    np.testing.assert_allclose(speed, here.x[w], rtol=1e-6, atol=1e-6)
    slope = (after.x[w] - before.x[w]) / (2 * h)
    np.testing.assert_allclose(slope, here.motor_acceleration, rtol=1e-6, atol=1e-6)


def test_base_wrench(rng):
    """Rows of the base are the wrench it takes, that of rigid inverse dynamics."""
    arm = ARMS["flying"]()
    q, rates = arm.tree.configuration.random(rng), rng.normal(size=(4, arm.tree.nv))
    found = arm.flat_map()(q, *rates)
    np.testing.assert_allclose(found.tau, arm.tree.inverse_dynamics(q, *rates[:2]), atol=1e-12)
    np.testing.assert_array_equal(found.u[:6], found.tau[:6])


def test_mixed_joints_need_the_snap_of_the_rigid_ones(rng):
    """And no static law linearizes them: the rank of ∂v̇/∂u is the number of rigid joints."""
    arm = mixed()
    q, rates = arm.tree.configuration.random(rng), rng.normal(size=(4, arm.tree.nv))
    found = arm.flat_map()(q, *rates)
    rates[3][1] += 1.0  # of the rigid joint
    other = arm.flat_map()(q, *rates)
    assert np.abs(other.u - found.u)[0] > 1e-5
    system = arm.system()
    Bf = system.derivatives(0.0, found.x, found.u)[1][arm.tree.nv : 2 * arm.tree.nv]
    assert np.linalg.matrix_rank(Bf) == len(arm.rigid_joints)


# Dampers


def swing(t):
    """A motion with all derivatives: q … of the fifth and sixth order."""
    w = np.array([2.0, 3.0])
    return [np.sin(w * t[:, None] + k * np.pi / 2) * w**k for k in range(7)]


def damped_arm(epsilon):
    return SeriesElastic(
        links(["revolute", "revolute"]),
        {f"j{i}": Motor(0.2, LinearSpring(K, damping=epsilon * K), 0.1)
         for i, K in enumerate((200.0, 150.0))},
    )  # fmt: skip


def test_damped_motion_satisfies_the_model():
    """The model's accelerations at its states are the motion's own, once the start is forgotten."""
    arm = damped_arm(2e-3)
    t = np.linspace(0, 1, 201)
    rates = swing(t)
    path = arm.damped_motion(t, *rates[:5])
    f = arm.system().f(t, path.x, path.u)
    np.testing.assert_allclose(f[:, 2:4], rates[2], atol=1e-7)
    motor = np.gradient(path.x[:, 6:8], t, axis=0, edge_order=2)[5:-5]
    np.testing.assert_allclose(f[5:-5, 6:8], motor, rtol=2e-3, atol=2e-2)
    finer = np.linspace(0, 1, 401)
    again = arm.damped_motion(finer, *swing(finer)[:5])
    np.testing.assert_allclose(again.x[::2], path.x, atol=1e-9)


def test_zero_dynamics_of_dampers():
    """Another start is forgotten as exp(−K t/D)."""
    arm = damped_arm(0.05)
    t = np.linspace(0, 0.5, 101)
    paths = [arm.damped_motion(t, *swing(t)[:5], start=start) for start in (None, {"j0": 0.3})]
    away = paths[1].x[:, 4] - paths[0].x[:, 4]
    np.testing.assert_allclose(away, away[0] * np.exp(-t / 0.05), rtol=1e-6, atol=1e-12)


@pytest.mark.usually(epsilon=(1.0,))
@pytest.mark.parametrize("epsilon", [0.02, 1.0, 20.0])
def test_heavy_dampers_from_rest(epsilon):
    """Steps far shorter than D/K lose no digits; a motion from rest starts with τ/K."""
    arm, t = damped_arm(epsilon), np.linspace(0, 1, 1001)
    path = Waypoints(arm.tree.configuration, [0, 1], [[0.1, -0.2], [0.9, 0.4]], order=9)(t)
    rates = (path.x, path.velocity, path.acceleration, path.jerk, path.snap)
    tau = arm.tree.inverse_dynamics(*rates[:3])[:, 0]
    found = arm.damped_motion(t, *rates).x[:, 4] - path.x[:, 0]
    assert found[0] == pytest.approx(tau[0] / 200.0)

    def rate(s, d):
        return (np.interp(s, t, tau) - 200.0 * d) / (200.0 * epsilon)

    known = solve_ivp(rate, (0, 1), found[:1], t_eval=t, rtol=1e-9, atol=1e-11, max_step=5e-3)
    np.testing.assert_allclose(found, known.y[0], atol=1e-5 * np.abs(known.y).max())


def test_starts_of_unknown_joints_are_refused():
    arm, t = damped_arm(0.05), np.linspace(0, 0.1, 3)
    with pytest.raises(KeyError, match="joint with a damper 'jo'"):
        arm.damped_motion(t, *swing(t)[:5], start={"jo": 0.3})


def test_expansion_shrinks_with_its_order():
    """By about ε ω an order, and the first term left out is the error."""
    arm, t = damped_arm(2e-3), np.linspace(0.2, 1, 161)
    exact = arm.damped_motion(t, *swing(t)[:5]).x[40:, 4:6]
    tau = arm.tree.inverse_dynamics_time_derivatives(2)(*[x[40:] for x in swing(t)[:5]])
    errors = []
    for order in range(3):
        own = arm.flat_map(expansion=order)(*[x[40:] for x in swing(t)[: 5 + order]])
        errors.append(np.abs(own.x[:, 4:6] - exact))
    for order in range(2):
        stated = 2e-3 ** (order + 1) * np.abs(tau[order + 1]) / np.array([200.0, 150.0])
        worst = stated.max(axis=0)
        np.testing.assert_allclose(errors[order].max(axis=0), worst, rtol=0.1)
    assert errors[2].max() < 0.1 * errors[1].max() < 0.01 * errors[0].max()


def test_dampers_are_refused_where_they_are_not_known():
    arm = damped()
    for call in (arm.flat_map, arm.flat_outputs):
        with pytest.raises(ValueError, match="not flat.*damped_motion"):
            call()
    with pytest.raises(ValueError, match="expansion must be"):
        arm.flat_map(expansion=-1)


def test_dry_friction_between_links_is_refused():
    tree = links(["revolute"], properties={"j0": JointProperties(friction=2.0)})
    arm = SeriesElastic(tree, {"j0": Motor(0.1, 100.0)})
    with pytest.raises(ValueError, match="dry friction.*Motor"):
        arm.flat_map()
    assert arm.flat_map(dry_friction=True)([0.0], [1.0], [0.0], [0.0], [0.0]).tau[0] > 1.9


# python-control


@pytest.mark.thorough
def test_plans_of_python_control():
    """Rest to rest by control.flatsys, on the model's own field."""
    flatsys = pytest.importorskip("control.flatsys")
    arm = plain(2)
    flat, weight = arm.to_flat_system(), arm.tree.gravity_forces
    ends = [np.array([0.1, -0.4]), np.array([0.9, 0.5])]
    K = np.array([300.0, 260.0])
    states = [np.concatenate([q, [0, 0], q + weight(q) / K, [0, 0]]) for q in ends]
    plan = flatsys.point_to_point(flat, 0.8, states[0], weight(ends[0]), states[1],
                                  weight(ends[1]), basis=flatsys.PolyFamily(10))  # fmt: skip
    np.testing.assert_allclose(plan.eval([0.8])[0][:, -1], states[1], atol=1e-8)
    t, h = np.linspace(0.01, 0.79, 40), 4e-4
    x, u = plan.eval(t)
    slope = (plan.eval(t + h)[0] - plan.eval(t - h)[0]) / (2 * h)
    np.testing.assert_allclose(slope, arm.system().f(t, x.T, u.T).T, atol=5e-3)
    with pytest.raises(ValueError, match="elastic joints alone"):
        mixed().to_flat_system()


def test_operations():
    """The map costs no more than AD along the motion, half of it for the UR5."""
    arm = arm_of(ur5_tree(), *UR5[2:])
    q, rates = ca.SX.sym("q", 6), [ca.SX.sym(f"r{i}", 6) for i in range(4)]
    tau = arm.tree.inverse_dynamics(q, *rates[:2])
    state, along = ca.vertcat(q, *rates[:3]), ca.vertcat(*rates)
    first = ca.jtimes(tau, ca.vertcat(q, *rates[:2]), ca.vertcat(*rates[:3]))
    second = ca.jtimes(first, state, along)
    theta = [x / ca.DM(UR5[2]) for x in (tau, first, second)]
    u = ca.DM(UR5[3]) * (rates[1] + theta[2]) + tau
    results = ca.cse([q + theta[0], rates[0] + theta[1], rates[1] + theta[2], u, tau])
    ad = ca.Function("ad", [q, *rates], results)
    ours = arm.flat_map().function
    assert ours.n_instructions() <= 0.8 * ad.n_instructions() + 30  # x repeats q and v
    rng = np.random.default_rng(0)
    values = rng.normal(size=(5, 6))
    np.testing.assert_allclose(arm.flat_map()(*values).u, np.array(ad(*values)[3]).ravel(), 1e-11)

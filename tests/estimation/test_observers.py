"""Momentum observers of fixed and floating trees; offset-free control on measured outputs."""

import numpy as np
import pytest

import lgcontrol as lg
from lgcontrol.controllers import MPC
from lgcontrol.estimation import EKF, MomentumObserver, MovingHorizon, OffsetFree
from lgcontrol.groups import SE2, Rn
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.models import elastic_planar_arm_tree
from lgcontrol.systems import Input, System

pytestmark = pytest.mark.interpreted


def tree(base):
    """Two links, on the ground or on a hull that floats."""
    arm, parent = Multibody(), {}
    if base == "free":
        arm = arm.add_body("hull", SpatialInertia.box(6.0, [0.4, 0.3, 0.2]), "free")
        parent = {"parent": "hull"}
    upper = SpatialInertia.box(1.5, [0.1, 0.1, 0.5], [0.0, 0.0, 0.25])
    lower = SpatialInertia.box(1.0, [0.1, 0.1, 0.4], [0.0, 0.1, 0.2])
    arm = arm.add_body("upper", upper, "revolute", axis="y", **parent)
    return arm.add_body("lower", lower, "revolute", axis="x", parent="upper")


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_wrench_at_a_link_is_found(base, rng):
    """It acts from 0.1 s on; the observer is told the motor torques alone."""
    arm = tree(base)
    system = arm.system(arm.joints)
    nv, dt, k = arm.nv, 1e-3, 60.0
    wrench = np.array([2.0, -1.0, 3.0, 0.1, 0.2, -0.1])
    observer = MomentumObserver(system, k)
    step, jacobian = system.step(), arm.jacobian("lower")
    x = system.state.plus(system.state.identity, 0.3 * rng.normal(size=2 * nv))
    nq = arm.nq
    residuals, acted, held = [], [], np.zeros(nv)
    for n in range(300):
        motors = 0.5 * np.sin(0.02 * n + np.arange(nv))
        residuals.append(observer(n * dt, x, held))
        J = jacobian(x[:nq])
        outside = J.T @ wrench * (n >= 100)
        acted.append(outside)
        x = step(0.0, x, motors + outside, [], dt)
        held = motors  # the inputs of an interval are told with the state at its end
    residuals.append(observer(300 * dt, x, held))
    residuals, acted = np.array(residuals), np.array(acted)
    assert np.abs(residuals[:100]).max() < 5e-4
    # a first-order filter of what acted
    expected = np.zeros(nv)
    for n in range(300):
        expected = expected + -np.expm1(-k * dt) * (acted[n] - expected)
        off = np.abs(residuals[n + 1] - expected).max()
        assert off < 2e-2 * max(1.0, np.abs(acted).max()), n
    found = observer.wrench(jacobian(x[:nq]))
    if base == "free":  # all six entries are felt by the hull
        np.testing.assert_allclose(found, wrench, atol=0.05)
    else:  # two joints feel two combinations
        J = jacobian(x[:nq])
        np.testing.assert_allclose(J.T @ found, J.T @ wrench, atol=0.05)


def test_friction_is_the_models_and_errors_shrink_with_the_step():
    """With damping in the model nothing is from outside; the rest is of second order."""
    damped = {name: JointProperties(damping=0.4) for name in ("upper", "lower")}
    system = tree("fixed").with_properties(**damped).system()
    worst = []
    for dt in (4e-3, 2e-3):
        observer = MomentumObserver(system, [200.0, 200.0])
        x, fine = np.array([0.4, -0.3, 1.0, -2.0]), system.step("rk4", 4)
        left = []
        for n in range(int(0.4 / dt)):
            left.append(np.abs(observer(n * dt, x, [0.2, 0.1])).max())
            x = fine(0.0, x, [0.2, 0.1], [], dt)
        worst.append(max(left))
    assert worst[0] < 1e-3 and 3 < worst[0] / worst[1] < 5


def test_torque_sensors_speak_in_place_of_springs():
    """A push on the tool of an elastic arm, and sensors that say less than the springs give."""
    arm = elastic_planar_arm_tree()
    known, plant = arm.system(), arm.system(wrenches={"tool": "hybrid"})
    dt, k, push = 1e-3, 80.0, np.array([4.0, 0.0, -6.0, 0.0, 0.0, 0.0])
    offset, u = np.array([0.5, -0.2]), np.array([3.0, 1.0])
    by_springs, by_sensors = MomentumObserver(known, k), MomentumObserver(known, k)
    step, tip = plant.step("rk4"), arm.tree.jacobian("tool", "hybrid")
    sprung = known.quantities["spring_torque"]
    x, expected = known.state.identity, np.zeros(2)
    for n in range(301):
        found = by_springs(n * dt, x, u)
        told = by_sensors(n * dt, x, u, spring_torque=sprung(n * dt, x, u) - offset)
        # what is missing at the joints looks like a torque from outside, after the same lag
        np.testing.assert_allclose(told - found, -np.expm1(-k * n * dt) * offset, atol=1e-10)
        assert np.abs(found - expected).max() < 0.02 * np.abs(tip(x[:2]).T @ push).max() + 1e-12
        expected = expected - np.expm1(-k * dt) * (tip(x[:2]).T @ push - expected)
        x = step(0.0, x, np.concatenate([u, push]), [], dt)


def test_a_hovering_craft_feels_nothing():
    quad = lg.models.quadrotor()
    hover = quad.trim(position=[0, 0, 1])
    observer = MomentumObserver(quad, 20.0)
    for n in range(50):
        force = observer(0.01 * n, hover.x, hover.u)
    np.testing.assert_allclose(force, 0, atol=1e-9)
    with pytest.raises(ValueError, match="no springs"):
        observer(0.5, hover.x, hover.u, spring_torque=[0.0])


def test_states_that_are_not_finite_are_bridged():
    system = tree("fixed").system()
    whole, holed = MomentumObserver(system, 30.0), MomentumObserver(system, 30.0)
    x = np.array([0.4, -0.3, 0.2, -0.1])
    for n in range(100):
        given = np.full(4, np.nan) if n in (40, 41) else x
        a, b = whole(0.002 * n, x, [0.0, 0.0]), holed(0.002 * n, given, [0.0, 0.0])
        x = system.step()(0.0, x, [0.3, 0.0], [], 0.002)
    assert np.isfinite(b).all() and np.abs(a - b).max() < 1e-4
    assert a[0] == pytest.approx(0.3, abs=5e-3)
    whole.reset()
    assert not whole.residual.any()


def test_what_is_refused():
    with pytest.raises(ValueError, match="does not say what its masses"):
        MomentumObserver(System("cart", Rn(1), lambda t, x, u, p: u, inputs=["v"]), 1.0)
    with pytest.raises(ValueError, match="must be positive"):
        MomentumObserver(tree("fixed").system(), [1.0, 0.0])
    cart = System("cart", Rn(1), lambda t, x, u, p: u, inputs=["v"])
    measured = lg.Sensor("y", dt=0.1, std_discrete=0.1)
    with pytest.raises(ValueError, match="bias"):
        OffsetFree(None, EKF(cart, [measured], std0=1.0, noise={}), cart)


def test_a_run_gets_the_controller_ready_for_the_biases():
    """Without it calls stay interpreted."""
    cart = System("cart", Rn(1), lambda t, x, u, p: u[0] + u[1],
                  inputs=["v", Input("w", role="disturbance")])  # fmt: skip
    model = cart.augment(bias="w", bias_walk=True)
    measured = lg.Sensor("y", dt=0.1, std_discrete=0.1)
    told = []

    class Law:
        dt = 0.1

        def __call__(self, t, x, reference):
            return np.zeros(1)

        def prepare(self, t, x, reference):
            told.append((t, x, reference(0.5)))

    both = OffsetFree(lambda t, x, r: [0.0], EKF(model, [measured], std0=1.0, noise={}), cart)
    assert both.prepare() is both
    both = OffsetFree(Law(), EKF(model, [measured], std0=1.0, noise={"w.walk": 0.1}), cart)
    lg.simulate(cart, both, estimator=both, sensors=[measured], x0=[2.0], reference=[1.0],
                seconds=0.2)  # fmt: skip
    ((t, x, wanted),) = told
    assert t == 0.0 and x.shape == (2,)
    np.testing.assert_array_equal(wanted, [1.0, 0.0])


@pytest.mark.usually(make=("filter",))
@pytest.mark.parametrize("make", ["filter", "window"])
def test_a_boat_in_a_current_of_wind_holds_its_place_on_fixes_alone(make):
    """Position and heading are measured; a steady push is not. MPC alone stays off by some 0.1."""
    boat = System(
        "boat", lg.Product(pose=SE2, twist=Rn(3)),
        lambda t, x, u, p: [x[4], x[5], x[6], u[0] + u[3] - x[4], u[1] + u[4] - x[5],
                            u[2] - x[6]],
        inputs=[*(Input(n, lower=-3, upper=3) for n in ("surge", "sway", "yaw")),
                *(Input(n, role="disturbance") for n in ("wind.x", "wind.y"))],
    )  # fmt: skip
    model = boat.augment(bias=["wind.x", "wind.y"], bias_walk=True)
    sensor = lg.Sensor("fix", dt=0.1, h="pose", std_discrete=1e-4)
    noise = {"wind.x.walk": 0.3, "wind.y.walk": 0.3, "wind.x": 0.01, "wind.y": 0.01}
    std0 = {"pose": 0.1, "twist": 0.1, "bias": 0.5}
    if make == "filter":
        estimator = EKF(model, [sensor], std0=std0, noise=noise)
    else:
        estimator = MovingHorizon(model, [sensor], std0=std0, noise=noise, horizon=3, dt=0.1,
                                  iterations=1)  # fmt: skip
    weights = {"Q": {"pose": 5, "twist": 1}, "R": 0.1}
    both = OffsetFree(MPC(model, horizon=12, dt=0.1, **weights), estimator, boat)
    plain = EKF(boat, [sensor], std0={"pose": 0.1, "twist": 0.1}, noise={"wind": 0.3})
    ends = []
    for law, seen in ((both, both), (MPC(boat, horizon=12, dt=0.1, **weights), plain)):
        run = lg.simulate(
            boat, law, estimator=seen, sensors=[sensor], x0=boat.state.identity, seconds=5,
            reference=boat.state.identity,
            disturbances=[lg.Pulse({"wind.x": 0.8, "wind.y": -0.5}, start=0.0)],
        )  # fmt: skip
        ends.append(np.abs(run.x[-1, :2]).max())
    assert ends[0] < 3e-3 < 0.05 < ends[1]
    np.testing.assert_allclose(both.bias, [0.8, -0.5], atol=0.02)
    assert both.P.shape == (6, 6)

"""Laws of series-elastic arms: error dynamics, energy functions, what is held and refused."""

from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.controllers import (
    ComputedTorque,
    ElasticImpedance,
    ElasticPD,
    ElasticStructurePreserving,
    FeedbackLinearization,
    FlatFeedforward,
    GravityPD,
    SpringTorqueControl,
)
from lgcontrol.estimation import MomentumObserver
from lgcontrol.groups import Rn
from lgcontrol.integrators import integrate
from lgcontrol.integrators._internal import Problem
from lgcontrol.mechanics import (
    FrameTask,
    HardeningSpring,
    JointProperties,
    LinearDrag,
    Motor,
    SeriesElastic,
)
from lgcontrol.models import (
    elastic_planar_arm_tree,
    elastic_ur5_tree,
    variable_stiffness_joint_tree,
)
from lgcontrol.simulation import simulate
from lgcontrol.systems import Waypoints
from lgcontrol.systems._internal import MotionPoint

from ..elastic.arms import ARMS, damped, links

CHAINS = 1e-8  # relative, in chain coordinates: four poles on top of each other lose digits
HELD = 1e-8  # rad over 5 s


@cache
def planar():
    return elastic_planar_arm_tree()


def move(arm, order=9, seconds=0.6):
    group = arm.tree.configuration
    return Waypoints(
        group, [0, seconds], [group.identity, group.exp(0.8 * np.ones(group.dim))], order
    )


LAWS = {
    "flat": FlatFeedforward,
    "linearizing": FeedbackLinearization,
    "preserving": ElasticStructurePreserving,
}


@cache
def made(name):
    return LAWS[name](planar(), reference=move(planar()))


def some_states(arm, rng, count, size=0.2):
    """States near a random posture, errors of all parts of this size."""
    q = arm.tree.configuration.random(rng, (count,))
    flat = arm.flat_map()(q, *np.zeros((4, count, arm.tree.nv)))
    return q, arm.state.plus(flat.x, size * rng.normal(size=(count, arm.state.dim)))


@pytest.mark.parametrize("name", LAWS)
def test_on_the_reference_the_torque_is_the_flat_map_s(name):
    law, arm = made(name), planar()
    for t in (0.0, 0.2, 0.45):
        found = arm.flat_map()(*law.reference(t))
        np.testing.assert_allclose(law(t, found.x), found.u, atol=1e-7)


def test_errors_are_the_designed_chain(rng):
    """Snap of the links under the law against ``−Σ k_i e^(i)`` in coordinates of one size."""
    arm, w = planar(), 40.0
    law = FeedbackLinearization(arm, frequency=w, reference=move(arm), saturate=False)
    for t in rng.uniform(0, 0.6, size=10):
        goal = law.reference(t)
        x = arm.state.plus(arm.flat_map()(*goal).x, 1e-2 * rng.normal(size=8))
        q, v, a, j, s = arm.flat_outputs()(x, law(t, x))
        errors = np.array([q - goal.x, v - goal.velocity, a - goal.acceleration, j - goal.jerk])
        wanted = -law.coefficients[1:] @ errors
        scaled = np.abs(errors * w ** np.arange(4, 0, -1)[:, None]).max()
        assert np.abs(s - goal.snap - wanted).max() <= CHAINS * scaled


def test_motors_that_set_stiffness_are_chains_of_their_own(rng):
    """Snap of the link and acceleration of the second motor under the law, each by its errors."""
    arm = variable_stiffness_joint_tree()
    settings = Waypoints(Rn(1), [0, 0.6], [[0.3], [0.7]], order=9)
    path = Waypoints(arm.tree.configuration, [0, 0.6], [[0.0], [0.4]], order=9)
    law = FeedbackLinearization(
        arm, frequency=40.0, settings=settings, setting_frequency=30.0, reference=path,
        saturate=False,
    )  # fmt: skip
    plant, t = arm.system(), 0.25
    goal, (k, k_dot, k_ddot) = path(t), settings(t)[:3]
    along = arm.flat_map()(*goal, k, k_dot, k_ddot)
    np.testing.assert_allclose(law(t, along.x), along.u, atol=1e-9)
    for _ in range(5):
        x = arm.state.plus(along.x, 1e-2 * rng.normal(size=6))
        u = law(t, x)
        q, v, a, j, s = arm.flat_outputs()(x, u)
        errors = np.array([q - goal.x, v - goal.velocity, a - goal.acceleration, j - goal.jerk])
        np.testing.assert_allclose(
            s, goal.snap - law.coefficients[1:] @ errors, rtol=1e-8, atol=1e-8 * 40.0**4
        )
        wanted = k_ddot - 60.0 * (x[5:] - k_dot) - 900.0 * (x[4:5] - k)
        np.testing.assert_allclose(plant.f(t, x, u)[5:], wanted, rtol=1e-8)
    with pytest.raises(ValueError, match="setting_frequency must be positive"):
        FeedbackLinearization(arm, setting_frequency=0.0)


@pytest.mark.thorough
def test_gains_of_chains():
    arm = planar()
    poles = [-10, -20, -30 + 5j, -30 - 5j]
    law = FeedbackLinearization(arm, poles=poles, check=False)
    np.testing.assert_allclose(np.sort_complex(np.roots([1, *law.coefficients[:0:-1]])),
                               np.sort_complex(poles), rtol=1e-9)  # fmt: skip
    optimal = FeedbackLinearization(
        arm, weights=([1e6, 1e3, 1, 0, 0], 1e-6), integral=True, check=False
    )
    k = optimal.coefficients
    assert (np.roots([1, *k[::-1]]).real < 0).all()
    np.testing.assert_allclose(k[0], 1e6, rtol=1e-6)  # √(Q₀/R)
    for options, message in [
        ({"poles": [-1, -2, -3]}, "expected 4 poles"),
        ({"poles": [-1, -2, -3, 4]}, "negative real parts"),
        ({"poles": [-1, -2, -3 + 1j, -3]}, "conjugate"),
        ({"frequency": 0.0}, "frequency must be positive"),
        ({"poles": [np.nan] * 4}, "finite numbers"),
        ({"weights": ([1] * 4,)}, "a pair"),
        ({"weights": ([1, 0, 0, -1], 1.0)}, "not negative"),
        ({"weights": ([1] * 4, 1.0), "poles": poles}, "not both"),
    ]:
        with pytest.raises(ValueError, match=message):
            FeedbackLinearization(arm, **options)


# Energy


def energy_rates(arm, storage, law, goal, onward, x):
    """Exact rates of energy functions along the loop at states x; the goal moves by `onward`.

    ``Ė = ∂E/∂x f(x, u) + ∂E/∂goal · its rate``, by automatic differentiation of what users call.
    """
    system, state = arm.system(), arm.state
    at, to = ca.SX.sym("x", state.nq), [ca.SX.sym(f"g{i}", len(g)) for i, g in enumerate(goal)]
    energy = storage(at, to)
    u = law(at, to)
    along = ca.jacobian(energy, at) @ state.rate_matrix(at) @ system.f.function(0.0, at, u, [])
    for symbol, rate in zip(to, onward, strict=False):
        along += ca.jacobian(energy, symbol) @ ca.DM(rate)
    made = ca.Function("rate", [at, *to], [energy, along])
    return np.array([[float(y) for y in made(row, *goal)] for row in x]).T


ENERGY = 1e-9  # rounding of rates, as a share of the powers that make them up


def test_energy_of_pd_never_rises(rng):
    """It falls by what the damping takes, exactly, at 100 states."""
    arm = planar()
    law = ElasticPD(arm, stiffness=[300.0, 100.0], damping=[8.0, 4.0], saturate=False)
    goal = np.array([0.5, -0.8])
    _, x = some_states(arm, rng, 100)
    fixed = [np.zeros(2), np.zeros(0), *law.gains.values()]

    def inputs(x, to):
        return law.law(x, to[0], *np.zeros((4, 2)), *fixed)

    rate = energy_rates(arm, lambda x, to: law.storage(x, to[0]), inputs, [goal], [], x)[1]
    taken = (x[:, 6:] ** 2) @ [8.0, 4.0]
    np.testing.assert_allclose(rate, -taken, atol=ENERGY * taken.max())
    assert rate.max() < 0


def test_energy_of_structure_preserving_never_rises(rng):
    """Along a motion, at 100 states of ten times: it falls by the power of both dampers."""
    arm = planar()
    law = ElasticStructurePreserving(arm, reference=move(arm), saturate=False, check=False)
    D, E = law.gains["link_damping"], law.gains["damping"]
    fixed = [np.zeros(2), np.zeros(0), *law.gains.values()]
    for t in rng.uniform(0.05, 0.55, size=10):
        goal = law.reference(t)
        spread = 0.05 * rng.normal(size=(10, 8))
        x = arm.state.plus(arm.flat_map()(*goal).x, spread)
        energy, rate = energy_rates(
            arm, law.storage, lambda x, to: law.law(x, *to, *fixed), list(goal), goal[1:], x
        )
        links = ((x[:, 2:4] - goal.velocity) ** 2) @ D
        assert (rate <= -links + ENERGY * np.abs(energy).max() * 1e3).all()  # rates are ~1e3 / s
        assert (rate < 0).all() and E.min() > 0


def test_energy_of_impedance_never_rises(rng):
    """At 100 states and any frame error, also with springs that are not linear."""
    hard = planar().with_motors(
        **{name: Motor(0.2, HardeningSpring(400.0, 3000.0)) for name in planar().joints}
    )
    for arm in (planar(), hard):
        law = ElasticImpedance(arm, FrameTask("tool", "position"), stiffness=150.0, damping=20.0,
                               joint_damping=[2.0, 1.0], saturate=False)  # fmt: skip
        goal = arm.tree.position("tool")([0.5, 0.9])
        _, x = some_states(arm, rng, 50)
        gains = law.stiffness, law.damping, law.joint_damping

        def inputs(x, to, law=law, gains=gains):
            return law.law(x, to[0], np.zeros(3), *gains, np.zeros(0))[0]

        energy, rate = energy_rates(
            arm, lambda x, to, law=law: law.storage(x, to[0]), inputs, [goal], [], x
        )
        motors = (x[:, 6:] ** 2) @ [2.0, 1.0]
        assert (rate <= -motors + ENERGY * np.abs(energy).max() * 1e3).all()


def test_weight_condition_of_pd():
    """K_E of the springs and gains against the weight; too soft ones are refused with numbers."""
    soft = elastic_planar_arm_tree(stiffness=(60.0, 30.0))
    with pytest.raises(ValueError, match=r"λ_min\(K_E\) = .* against .* 2000 samples"):
        ElasticPD(soft, stiffness=20.0)
    law = ElasticPD(soft, stiffness=20.0, certify=False, check=False)
    assert law.stiffness_margin[0] < law.stiffness_margin[1]
    assert ElasticPD(planar()).stiffness_margin[0] > 31


def test_pd_settles_at_the_goal():
    arm = planar()
    law, goal = ElasticPD(arm, reference=[0.4, 0.3]), np.array([0.4, 0.3])
    x0 = law.reference_states(np.zeros(1), [0.3, 0.3])[0]
    run = simulate(arm.system(), law, x0=x0, seconds=4.0)
    assert np.abs(run.x[-1, :2] - goal).max() < 1e-3


# What is held


def test_a_law_inside_the_integrator_holds_an_upright_arm():
    """To 1e-8 rad over 5 s, where without feedback the arm falls."""
    arm = planar()
    system, q = arm.system(), np.array([np.pi - 0.2, 0.3])
    law = FeedbackLinearization(arm, frequency=40.0, check=False)
    rest = MotionPoint(q, *np.zeros((4, 2)))
    x0 = arm.flat_map()(*rest).x
    poles = system.linearize(x0, arm.flat_map()(*rest).u).poles
    assert poles.real.max() > 1.0
    fixed = [np.zeros(2), np.zeros(0), *law.gains.values()]

    def field(t, x, u, p):
        return system.f(t, x, law.law(x, *(ca.DM(part) for part in rest),
                                      *(ca.DM(part) for part in fixed)), p)  # fmt: skip

    problem = Problem(arm.state, field)
    end = integrate(problem, x0, (0.0, 5.0), rtol=1e-10, atol=1e-10, max_step=0.02)
    assert np.abs(end.x[:, :2] - q).max() < HELD


@pytest.mark.usually(name=("linearizing",))
@pytest.mark.parametrize("name", LAWS)
def test_motions_are_followed_in_samples(name):
    """At 1 kHz the tip is within 1 mm along a fast move."""
    arm, law = planar(), made(name)
    law.reset()
    x0 = law.reference_states(np.zeros(1))[0]
    run = simulate(arm.system(), law, x0=x0, seconds=0.6)
    tip = arm.tree.position("tool")
    away = tip(run.x[:, :2]) - tip(law.reference(run.t).x)
    assert np.linalg.norm(away, axis=1).max() < 1e-3
    assert next(iter(run.controllers.values())).calls.keys() == {"ok"}


@pytest.mark.usually(kind=("hardening", "flying"))
@pytest.mark.parametrize("kind", ["hardening", "flying", "damped"])
def test_feedforward_of_every_arm(kind, rng):
    """Springs that are not linear, a base that flies, dampers: rest stays rest."""
    arm = ARMS[kind]()
    count = len(arm.mechanics.rigid.drives)
    gains = {} if kind != "flying" else {"stiffness": 50.0, "damping": 10.0}
    law = FlatFeedforward(arm, check=False, saturate=False, **gains)
    q = arm.tree.configuration.random(rng)
    x = law.reference_states(np.zeros(1), q)[0]
    u = law(0.0, x, q)
    assert u.shape == (count,)
    np.testing.assert_allclose(arm.system().f(0.0, x, u), 0, atol=1e-8)


@pytest.mark.thorough
def test_mixed_arm_with_integrators():
    """Two integrators at the rigid joint make four-chains of all; a static law is refused."""
    motors = {"j0": Motor(0.3, 400.0), "j2": Motor(0.1, 200.0)}
    arm = SeriesElastic(links(["revolute"] * 3), motors)
    with pytest.raises(ValueError, match="no static law linearizes a mixed arm"):
        FeedbackLinearization(arm)
    law = FeedbackLinearization(arm, integrators=True, frequency=25.0, check=False,
                                reference=move(arm, seconds=1.0))  # fmt: skip
    x0 = law.reference_states(np.zeros(1))[0]
    x0 = arm.state.plus(x0, [1e-3, -1e-3, 2e-3, 0, 0, 0, 1e-3, 1e-3, 0, 0])
    run = simulate(arm.system(), law, x0=x0, seconds=1.5)
    away = run.x[:, :3] - law.reference(run.t).x
    assert np.abs(away).max() < 5e-3 and np.abs(away[-1]).max() < 1e-5


@pytest.mark.thorough
def test_bounds_of_rigid_joints_are_those_of_their_torques():
    """Not of the second derivatives that the law has for them, which are far larger."""
    bounded = links(["revolute"] * 3, properties={"j1": JointProperties(effort=200.0, damping=0.1)})
    motors = {"j0": Motor(0.3, 400.0), "j2": Motor(0.1, 200.0)}
    found = []
    for tree in (links(["revolute"] * 3), bounded):
        arm = SeriesElastic(tree, motors)
        law = FeedbackLinearization(arm, integrators=True, frequency=25.0, check=False,
                                    reference=move(arm, seconds=1.0))  # fmt: skip
        away = arm.state.plus(law.reference_states(np.zeros(1))[0], 1e-2 * np.eye(arm.state.dim)[1])
        found.append([law(0.001 * k, away) for k in range(5)])
        assert law.info.status == "ok"
    np.testing.assert_array_equal(*found)
    assert 1.0 < np.abs(found[0]).max() < 200.0


# Torque and impedance


def test_spring_torque_is_a_second_order_lag(rng):
    """``τ̈`` of the model under the law against the one designed, also where torques move."""
    arm = planar()
    wish = Waypoints(Rn(2), [0, 1], [[0, 0], [4.0, -2.0]], 9)
    law = SpringTorqueControl(arm, frequency=[50.0, 80.0], damping_ratio=0.7, reference=wish,
                              saturate=False)  # fmt: skip
    system, K, w = arm.system(), np.array([400.0, 250.0]), np.array([50.0, 80.0])
    for t in (0.0, 0.3, 0.7):
        x = 0.1 * rng.normal(size=8)
        f, goal = system.f(t, x, law(t, x)), wish(t)
        tau, rate, bend = K * (x[4:6] - x[:2]), K * (x[6:] - x[2:4]), K * (f[6:] - f[2:4])
        wanted = goal.acceleration - 1.4 * w * (rate - goal.velocity) - w**2 * (tau - goal.x)
        np.testing.assert_allclose(bend, wanted, rtol=1e-9, atol=1e-7)


def test_impedance_gives_way_as_asked():
    """Pushed at rest, the tip moves by ``K_x⁻¹ f`` exactly, springs and weight in between."""
    arm = planar()
    law = ElasticImpedance(arm, FrameTask("tool", "position"), stiffness=150.0, damping=30.0,
                           joint_damping=2.0, saturate=False)  # fmt: skip
    q = np.array([0.5, 0.9])
    goal = arm.tree.position("tool")(q)
    for there in (q, q + [0.03, -0.05]):
        force = 150.0 * (arm.tree.position("tool")(there) - goal)  # what pushes the tip there
        J = arm.tree.jacobian("tool", "hybrid")(there)[:3]
        held = arm.tree.gravity_forces(there) - J.T @ force
        x = np.concatenate([there, [0, 0], there + held / [400.0, 250.0], [0, 0]])
        np.testing.assert_allclose(law(0.0, x, goal), held, atol=1e-9)


def test_impedance_refuses_springs_that_do_not_carry_the_weight():
    soft = elastic_planar_arm_tree(stiffness=(20.0, 10.0))
    with pytest.raises(ValueError, match="do not carry the weight"):
        ElasticImpedance(soft, "tool", stiffness=10.0, damping=1.0)


# Observer


def test_observer_finds_a_push_on_a_moving_arm():
    """A wrench on the tool, none of the model's: its torque after a lag of 1/L."""
    arm = planar()
    law, known = made("flat"), arm.system()
    law.reset()
    plant = arm.system(wrenches={"tool": "hybrid"})
    observer = MomentumObserver(known, bandwidth=80.0)
    x, push = law.reference_states(np.zeros(1))[0], np.zeros(6)
    step, tip = plant.step("rk4"), arm.tree.jacobian("tool", "hybrid")
    found, true = [], []
    observer(0.0, x, law(0.0, x))
    for k in range(500):
        t = 0.001 * k
        u = law(t, x)
        push[0] = 6.0 * (t > 0.1)
        x = step(t, x, np.concatenate([u, push]), [], 0.001)
        found.append(observer(t + 0.001, x, u))
        true.append(tip(x[:2]).T @ push)
    found, true = np.array(found), np.array(true)
    assert np.abs(found[:99]).max() < 5e-3
    assert np.abs(found[300:] - true[300:]).max() < 0.1 * np.abs(true).max()


# What is refused or reported


def test_rigid_laws_name_the_way_out():
    arm = planar()
    for make in (
        lambda: ComputedTorque(arm),
        lambda: ComputedTorque(arm.tree, system=arm.system()),
        lambda: GravityPD(arm.tree, stiffness=1.0, damping=1.0, system=arm.system()),
    ):
        with pytest.raises(ValueError, match="FlatFeedforward or FeedbackLinearization"):
            make()
    with pytest.raises(TypeError, match="SeriesElastic"):
        FlatFeedforward(arm.tree)


@pytest.mark.parametrize("law", [FeedbackLinearization, ElasticStructurePreserving,
                                 SpringTorqueControl])  # fmt: skip
def test_dampers_are_refused_by_laws_that_do_not_know_them(law):
    with pytest.raises(ValueError, match="springs without dampers"):
        law(damped())


def test_springs_that_are_not_linear_or_set():
    with pytest.raises(ValueError, match="linear springs"):
        ElasticStructurePreserving(ARMS["hardening"]())
    with pytest.raises(ValueError, match="not set"):
        FeedbackLinearization(ARMS["variable"]())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ([0.0, 1.0], "settings of joint j0 go from 0 to 0, its spring allows 50 to 500"),
        ([100.0, 3.0], "joint j1"),
        (Waypoints(Rn(1), [0, 1], [[100.0], [200.0]], order=9), r"Rn\(2\)"),
        (Waypoints(Rn(2), [0, 1], [[100.0, 0.5], [600.0, 0.5]], order=9), "from 100 to 600"),
    ],
)
def test_settings_that_a_spring_does_not_allow(settings, message):
    arm = ARMS["variable"]()
    with pytest.raises(ValueError, match=message):
        FlatFeedforward(arm, reference=np.zeros(2), settings=settings, check=False)


def test_motors_that_set_stiffness_move_where_links_rest():
    """States along the settings, also of a reference that stays."""
    arm, q, t = ARMS["variable"](), np.array([0.3, -0.2]), np.array([0.0, 0.4, 1.0])
    settings = Waypoints(Rn(2), [0, 1], [[100.0, 0.5], [300.0, 1.5]], order=9)
    law = FlatFeedforward(arm, reference=q, settings=settings, check=False)
    found, still = law.reference_states(t), np.zeros((4, 3, 2))
    known = arm.flat_map()(np.tile(q, (3, 1)), *still, *settings(t)[:3])
    np.testing.assert_allclose(found, known.x, atol=1e-14)
    assert found[-1, -2] == pytest.approx(1.5)  # the motor of the second joint


def test_runs_know_where_motors_should_be():
    """A motion of the links is not one of motors at zero: neither in errors nor in warnings."""
    arm = planar().with_motors(shoulder=Motor(0.3, 400.0, deflection=0.3))
    path = move(arm, seconds=0.1)
    law = FlatFeedforward(arm, check=False)
    start = law.reference_states(np.zeros(1), path)[0]
    run = simulate(arm.system(), law, x0=start, reference=path, seconds=0.01)
    np.testing.assert_allclose(run.reference[-1], law.reference_states(run.t[-1:], path)[0])
    assert np.abs(run.reference[-1, 4:6]).min() > 1e-3


def test_rest_with_dry_friction_has_a_state():
    """At rest friction between links is no torque: the motors are where they are without."""
    arm = planar()
    tree = arm.tree.with_properties(shoulder=JointProperties(friction=1.0))
    q = [0.2, 0.3]
    dry, plain = (
        ElasticPD(SeriesElastic(t, arm.motors), reference=q, check=False).reference_states([0.0])
        for t in (tree, arm.tree)
    )
    np.testing.assert_allclose(dry, plain, atol=1e-14)


@pytest.mark.parametrize("order", [5, 7])
def test_references_must_be_smooth_enough(order):
    arm = planar()
    if order == 7:  # the snap may jump
        assert FlatFeedforward(arm, reference=move(arm, 7), check=False)
        return
    with pytest.raises(ValueError, match="its jerk jumps at 0 s.*order=9"):
        FlatFeedforward(arm, reference=move(arm, order))
    law = FlatFeedforward(arm, check=False)
    with pytest.raises(ValueError, match="does not say the jerk and the snap"):
        law(0.0, arm.state.identity, lambda t: np.zeros(2))
    with pytest.raises(ValueError, match="no reference"):
        law(0.0, arm.state.identity)


@pytest.mark.thorough
def test_gains_that_do_not_carry_are_reported():
    """Slow chains with soft springs; a link-side PD; a long period."""
    arm = elastic_ur5_tree()
    with pytest.warns(RuntimeWarning, match="30 % less stiffness"):
        FeedbackLinearization(arm, frequency=10.0, reference=[0, -1.2, 1.0, -1.3, -1.5, 0])
    with pytest.warns(RuntimeWarning, match="errors grow in the loop sampled every 0.001 s"):
        FlatFeedforward(planar(), side="link", reference=[0.2, 0.2])
    with pytest.warns(RuntimeWarning, match="with the springs known"):
        FlatFeedforward(planar(), dt=0.1, reference=[0.2, 0.2])
    for gain in ("stiffness", "damping", "integral"):
        with pytest.raises(ValueError, match=f"{gain} must not be negative"):
            FlatFeedforward(planar(), **{gain: -1.0})
    with pytest.raises(ValueError, match="have no spring to take a gain from"):
        FlatFeedforward(ARMS["flying"]())


@pytest.mark.thorough
def test_radius_is_that_of_the_loop():
    """The slowest mode of the sampled loop with a delay of 1.5 periods, by simulation."""
    arm = planar()
    law = FlatFeedforward(arm, delay=0.0015, reference=[0.3, 0.2], check=False, saturate=False)
    radius = law.radii([0.3, 0.2], [1.0])[1.0]
    x = law.reference_states(np.zeros(1))[0]
    step, nominal = arm.system().step("rk4"), law(0.0, x)
    queue, sizes, at = [nominal, nominal], [], arm.state.plus(x, 1e-7 * np.ones(8))
    for k in range(3000):
        queue.append(law(0.0, at))
        at = step(0.0, at, queue[-3], [], 0.0005)
        at = step(0.0, at, queue[-2], [], 0.0005)
        if k >= 2000:
            sizes.append(np.linalg.norm(arm.state.minus(at, x)))
    slope = np.polyfit(np.arange(len(sizes)), np.log(sizes), 1)[0]
    assert slope == pytest.approx(np.log(radius), rel=0.1)


def test_parameters_are_found_by_their_names(rng):
    """Also where those of the surroundings stand between links and motors, or some are missing."""
    arm, drag = ARMS["symbolic"](), LinearDrag(0.1 * np.eye(6))
    wet = arm.system(forces={"link1": [drag]}, symbolic="link1.linear_drag")
    options = {"check": False, "reference": [0.3, 0.2], "p": {"j0.spring.stiffness": 200.0}}
    x = arm.state.plus(arm.state.identity, 0.1 * rng.normal(size=arm.state.dim))
    dry = FlatFeedforward(arm, **options)(0.0, x)
    law = FlatFeedforward(arm, system=wet, **options)
    np.testing.assert_allclose(law(0.0, x), dry, rtol=1e-12)
    assert law.info.status == "ok" and np.abs(dry).min() > 0.1
    bare = SeriesElastic(links(["revolute"] * 2), {"j0": Motor(0.1, 80.0), "j1": Motor(0.1, 60.0)})
    with pytest.raises(ValueError, match=r"has no parameters link1\.mass.*this very arm"):
        FlatFeedforward(arm, system=bare.system())

"""The model: energy, derivatives, structure, limits, measurements, and what is refused."""

import pickle
import re

import casadi as ca
import numpy as np
import pytest

from lgcontrol.integrators import integrate
from lgcontrol.mechanics import (
    AdjustedSpring,
    CustomSpring,
    HardeningSpring,
    JointProperties,
    LinearSpring,
    Motor,
    SeriesElastic,
    VariableSpring,
)
from lgcontrol.models import elastic_planar_arm_tree
from lgcontrol.optimal import Bound
from lgcontrol.optimal._bounds import bounded_place
from lgcontrol.optimal._places import error_places
from lgcontrol.systems import check_system
from lgcontrol.systems._internal import symbols_of

from .arms import ARMS, damped, hardening, links, mixed, plain, random_state, symbolic, variable

pytestmark = pytest.mark.usually(kind=("hardening", "mixed", "flying", "variable", "symbolic"))

EXACT = 1e-11  # relative: rounding along short chains


def along(system, function, x, u, p):
    """Rate of a quantity along the field."""
    t, xs, us, ps = symbols_of(system)
    value = function.function(t, xs, us, ps)
    rate = ca.jacobian(value, xs) @ system.state.rate_matrix(xs) @ system.f.function(t, xs, us, ps)
    return float(ca.Function("rate", [t, xs, us, ps], [rate])(0.0, x, u, p))


@pytest.mark.usually(kind=("variable",))
@pytest.mark.parametrize("kind", ARMS)
def test_power_balance(kind, rng):
    """What inputs put in and losses take is the rate of the energy."""
    arm = ARMS[kind]()
    system, (x, u) = arm.system(), random_state(arm, rng)
    p, state = system.nominal_parameters, system.state
    v, w = (x[state.coordinate_slice(b)] for b in ("velocity", "motor_velocity"))
    rates = {name: v[arm.tree._coordinates[name].v] for name in arm.tree.joints}
    power = 0.0
    for i, name in enumerate(arm.joints):
        motor, spring = arm.motors[name], arm.motors[name].joint_spring
        N = motor.ratio
        power += (u[system.input_names.index(name)] - N**2 * motor.damping * w[i]) * w[i]
        power -= N * motor.friction * np.tanh(w[i] / motor.friction_speed) * w[i]
        power -= spring.damping * (w[i] - rates[name][0]) ** 2
    for name in arm.rigid_joints:
        columns = [k for k, n in enumerate(system.input_names) if n.split(".")[0] == name]
        power += u[columns] @ rates[name][: len(columns)]
    for link in arm.tree._moving_links:
        power -= np.sum(link.filled.damping * rates[link.joint_name] ** 2)
    if "stiffness_motor" in state.blocks:
        psi = x[state.coordinate_slice("stiffness_motor_velocity")][0]
        power += (u[-1] - 0.01 * psi) * psi
    found = sum(along(system, system.quantities[q], x, u, p)
                for q in ("kinetic_energy", "potential_energy"))  # fmt: skip
    assert found == pytest.approx(power, abs=1e-11 * max(1.0, abs(power)))


@pytest.mark.usually(kind=("hardening", "variable", "symbolic"))
@pytest.mark.parametrize("kind", ARMS)
def test_derivatives_in_closed_form(kind, rng):
    """Against automatic differentiation of the field; through the structure as well."""
    arm = ARMS[kind]()
    system, (x, u) = arm.system(), random_state(arm, rng)
    p = system.nominal_parameters
    t, xs, us, ps = symbols_of(system)
    f = system.f.function(t, xs, us, ps)
    slopes = [ca.jacobian(f, xs) @ system.state.rate_matrix(xs), ca.jacobian(f, us)]
    exact = [np.array(m) for m in ca.Function("ad", [t, xs, us, ps], slopes)(0.0, x, u, p)]
    through = system.replaced(derivatives=None).derivatives(0.0, x, u, p)
    for ours, theirs, other in zip(system.derivatives(0.0, x, u, p), exact, through, strict=True):
        scale = max(1.0, np.abs(theirs).max())
        np.testing.assert_allclose(ours, theirs, atol=EXACT * scale)
        np.testing.assert_allclose(other, theirs, atol=EXACT * scale)


@pytest.mark.usually(kind=("mixed", "variable", "symbolic"))
@pytest.mark.parametrize("kind", ARMS)
def test_structure(kind, rng):
    """``M v̇ = F`` with the mass matrix of the links; losses are in the force."""
    arm = ARMS[kind]()
    system, (x, u) = arm.system(), random_state(arm, rng)
    p, known, nv = system.nominal_parameters, system.structure, arm.tree.nv
    a = system.f(0.0, x, u, p)[nv : 2 * nv]
    np.testing.assert_allclose(known.mass_matrix(x, p) @ a, known.force(0.0, x, u, p), atol=1e-9)
    assert known.lagrangian is None and known.model is arm and not known.is_plain


def test_rigid_limit_and_free_motors(rng):
    """Stiff springs at rest carry the weight; without a spring's torque links fall as rigid."""
    arm = plain()
    system, q = arm.system(), rng.normal(size=3)
    weight = arm.tree.gravity_forces(q)
    x = np.concatenate([q, np.zeros(3), q + weight / [300.0, 260.0, 220.0], np.zeros(3)])
    np.testing.assert_allclose(system.f(0.0, x, weight), 0, atol=1e-12)
    loose = np.concatenate([q, np.zeros(3), q, np.zeros(3)])
    fall = arm.tree.forward_dynamics(q, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(system.f(0.0, loose, np.ones(3))[3:6], fall, atol=1e-12)
    np.testing.assert_allclose(system.f(0.0, loose, np.ones(3))[9:], 1 / np.array([0.2, 0.3, 0.4]))


@pytest.mark.thorough
def test_energy_of_a_motion():
    """A motion that nothing drives and nothing brakes keeps its energy to 1e-8 J."""
    arm = SeriesElastic(
        links(["revolute", "continuous"], properties={"j1": JointProperties()}),
        {"j0": Motor(0.2, HardeningSpring(200.0, 900.0)), "j1": Motor(0.1, 90.0)},
    )
    system = arm.system()
    x = np.array([0.3, 1.0, 0.0, 0.5, -1.0, 0.4, np.cos(0.2), np.sin(0.2), 1.0, 2.0])
    end = integrate(system.problem, x, (0.0, 1.0), u=[0.0, 0.0], rtol=1e-11, atol=1e-11)

    def energy(x):
        return sum(system.quantities[k](0.0, x)[0] for k in ("kinetic_energy", "potential_energy"))

    assert abs(energy(end.x[-1]) - energy(x)) < 1e-8


def test_variable_stiffness_in_the_balance(rng):
    """With k(t) the energy changes by ``½ k̇ δ²`` besides: by differences in k."""
    arm = variable()
    system, (x, u) = arm.system(), random_state(arm, rng)
    at = system.input_names.index("j0.stiffness")
    step = np.zeros(system.n_inputs)
    step[at] = 1.0
    energy = system.quantities["spring_energy"]
    slope = (energy(0.0, x, u + step) - energy(0.0, x, u - step)) / 2
    d = system.quantities["deflection"](0.0, x, u)[0]
    np.testing.assert_allclose(slope, d**2 / 2, rtol=1e-9)


def test_quantities_limits_and_names():
    tree = links(["revolute", "revolute"], properties={"j0": JointProperties(effort=70.0)})
    spring = LinearSpring(200.0, limit=30.0)
    arm = SeriesElastic(tree, {"j0": Motor(1e-4, spring, ratio=50.0, speed=200.0, deflection=0.1),
                               "j1": Motor(0.1, 90.0, torque=12.0)})  # fmt: skip
    system = arm.system()
    assert system.limits["deflection.j0"] == (-0.1, 0.1)
    assert system.limits["spring_torque.j0"] == (-30.0, 30.0)
    assert system.limits["motor_velocity.j0"] == (-4.0, 4.0)
    assert [entry.upper for entry in system.inputs] == [70.0, 12.0]
    assert system.limited_quantities.units == ("rad", "N m")
    check_system(system)


def test_measurements(rng):
    arm = mixed()
    system, (x, u) = arm.system(), random_state(arm, rng)
    tau = arm.torque_sensor(std_discrete=0.1).bind(system)
    d = system.quantities["deflection"](0.0, x)
    np.testing.assert_allclose(tau.function(0.0, x, u, []), d * [400.0, 3000.0])
    q, theta = (m.bind(system) for m in (arm.link_encoder(), arm.motor_encoder()))
    away = theta.group.minus(theta.function(0.0, x, u, []), q.function(0.0, x, u, []))
    np.testing.assert_allclose(away, d, atol=1e-15)


def test_continuous_joints_wind_up_the_short_way(rng):
    """Deflection is `minus`: a motor at 179° and a link at −179° are 2° apart."""
    arm = SeriesElastic(links(["continuous"]), {"j0": Motor(0.1, 100.0)})
    a, b = np.radians(-179.0), np.radians(179.0)
    x = [np.cos(a), np.sin(a), 0.0, np.cos(b), np.sin(b), 0.0]
    d = arm.system().quantities["deflection"](0.0, x)
    np.testing.assert_allclose(d, np.radians(-2.0), rtol=1e-12)


def test_parameters_are_numbers_of_the_arm(rng):
    arm = symbolic()
    system, (x, u) = arm.system(), random_state(arm, rng)
    assert "j0.spring.stiffness" in system.parameter_names
    changed = system.parameter_values({"j0.spring.stiffness": 400.0, "link1.mass": 1.0})
    stiffer = SeriesElastic(
        arm.tree.with_parameters({"link1.mass": 1.0, "j1.damping": 0.1}),
        {**arm.motors, "j0": Motor(2e-5, 400.0, 1e-5, ratio=100.0)},
    ).system()
    np.testing.assert_allclose(system.f(0.0, x, u, changed), stiffer.f(0.0, x, u), rtol=1e-12)
    with pytest.raises(ValueError, match="outside its range"):
        system.parameter_values({"j0.spring.stiffness": -1.0})


def test_pickles(rng):
    arm = mixed()
    x, u = random_state(arm, rng)
    again = pickle.loads(pickle.dumps(arm))
    np.testing.assert_array_equal(again.system().f(0.0, x, u), arm.system().f(0.0, x, u))
    system = pickle.loads(pickle.dumps(arm.system()))
    np.testing.assert_array_equal(system.f(0.0, x, u), arm.system().f(0.0, x, u))


def test_rotor_coupling_has_a_bound():
    """Inertia · spin · speed of the carrier; the first joint's carrier stands still."""
    fast = {f"j{i}": JointProperties(velocity=2.0) for i in range(2)}
    motors = {f"j{i}": Motor(1e-4, 90.0, ratio=100.0) for i in range(2)}
    arm = SeriesElastic(links(["revolute", "revolute"], properties=fast), motors)
    assert arm.neglected_moments() == {"j0": 0.0, "j1": pytest.approx(1e-4 * 200.0 * 2.0)}
    with pytest.raises(NotImplementedError, match="De Luca"):
        SeriesElastic(arm.tree, arm.motors, rotor_coupling="inertial")


WRONG_SPRINGS = [
    (lambda: LinearSpring(0.0), "stiffness must be positive and finite"),
    (lambda: Motor(0.1, -5.0), "stiffness must be positive and finite"),
    (lambda: LinearSpring(10.0, damping=-1.0), "damping must be finite and not negative"),
    (lambda: HardeningSpring(10.0, -3.0), "softening"),
    (lambda: CustomSpring(sigma=lambda d: 5 * ca.tanh(d),
                          potential=lambda d: 5 * ca.log(ca.cosh(d))), "falls with deflection"),
    (lambda: CustomSpring(sigma=lambda d: 2 * d - 3 * d**3,
                          potential=lambda d: d**2 - 0.75 * d**4), "must be positive everywhere"),
    (lambda: CustomSpring(sigma=lambda d: 2 * d, potential=lambda d: d**4), "slope of the energy"),
    (lambda: CustomSpring(sigma=lambda d: d + 1, potential=lambda d: d + d**2 / 2), "vanish"),
    (lambda: CustomSpring(), "sigma must be a function"),
    (lambda: VariableSpring(10.0, lower=0.0), "lower must be positive and finite"),
    (lambda: VariableSpring(10.0, lower=20.0, upper=30.0), "outside"),
    (lambda: AdjustedSpring(lambda phi: phi, lower=-1.0, upper=1.0, motor_inertia=1.0), "positive"),
    (lambda: AdjustedSpring(lambda phi: phi, lower=0.1, upper=1.0), "motor_inertia must be"),
    (lambda: AdjustedSpring(lambda x: 5 + x, motor_inertia=1.0, motor_damping=-1.0), "motor_d"),
    (lambda: AdjustedSpring(lambda x: 5 + x, motor_inertia=1.0, speed_limit=np.nan), "speed_limit"),
    (lambda: CustomSpring(sigma=lambda d: ca.repmat(d, 2), potential=lambda d: d**2), "one number"),
    (lambda: CustomSpring(sigma=lambda d: d, potential=lambda d: d**2 / 2, reach=0.0), "reach"),
    (lambda: LinearSpring("stiff"), "stiffness must be positive and finite"),
    (lambda: Motor(0.0, 10.0), "inertia must be positive"),
    (lambda: Motor(None, 10.0), "inertia must be positive"),
    (lambda: Motor(0.1, 10.0, torque=0.0), "torque must be a positive limit"),
    (lambda: Motor(0.1, 10.0, friction=np.nan), "friction must be finite"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "message"), WRONG_SPRINGS, ids=[m for _, m in WRONG_SPRINGS])
def test_wrong_springs_and_motors_are_refused(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        make()


def test_springs_that_grow_fast_are_inverted():
    """Far beyond where the slope at rest would put them."""
    spring = CustomSpring(sigma=lambda d: 20 * ca.sinh(10 * d),
                          potential=lambda d: 2 * (ca.cosh(10 * d) - 1))  # fmt: skip
    cubic = {"stiffness": ca.DM(1.0), "cubic": ca.DM(1e6)}
    for torque in (1e-9, 3.0, -1e3, 1e5, 1e6):
        known = np.arcsinh(torque / 20) / 10
        found = float(ca.evalf(spring.deflection(ca.SX(torque), ca.DM(0), {})))
        assert found == pytest.approx(known, rel=1e-12)
        d = HardeningSpring(1.0, 1e6).deflection(ca.SX(torque), ca.DM(0), cubic)
        assert float(ca.evalf(d + 1e6 * d**3)) == pytest.approx(torque, rel=1e-12)


def test_numbers_of_numpy_are_numbers():
    motor = Motor(np.float32(0.5), np.int64(100), ratio=np.int64(2))
    assert motor.reflected_inertia == 2.0
    assert motor.joint_spring.is_linear


def test_motor_without_its_data():
    with pytest.raises(TypeError, match="spring"):
        Motor(inertia=0.1)
    with pytest.raises(TypeError, match="spring must be a stiffness"):
        Motor(0.1, "stiff")


MOTOR = Motor(0.1, 100.0)
WRONG_ARMS = [
    (["revolute"], {}, {}, ValueError, "at least one joint"),
    (["revolute"], [Motor(0.1, 1.0)] * 6, {}, ValueError, "spring=….}, got a list"),
    (["revolute"], {"elbow": MOTOR}, {}, KeyError, "elbow"),
    (["revolute"], {"j0": 3.0}, {}, TypeError, "must be Motor"),
    (["spherical"], {"j0": MOTOR}, {}, ValueError, "one degree of freedom"),
    (["planar"], {"j0": MOTOR}, {}, ValueError, "one degree of freedom"),
    (["revolute"], {"j0": MOTOR}, {"j0": JointProperties(armature=0.2)}, ValueError, "count twice"),
]


@pytest.mark.parametrize(
    ("kinds", "motors", "properties", "error", "message"),
    WRONG_ARMS,
    ids=[w[4] for w in WRONG_ARMS],
)
def test_wrong_arms_are_refused(kinds, motors, properties, error, message):
    with pytest.raises(error, match=message):
        SeriesElastic(links(kinds, properties=properties), motors)


def test_a_free_base_has_no_spring():
    with pytest.raises(ValueError, match="one degree of freedom"):
        SeriesElastic(links(["revolute"], base="free"), {"base": MOTOR})


def test_operations():
    """The field costs at most a tenth more than the rigid one, derivatives half of AD's."""
    from lgcontrol.models import ur5_tree

    tree = ur5_tree()
    arm = SeriesElastic(tree, {name: Motor(0.1, 300.0) for name in tree.joints})
    system, rigid = arm.system(), tree.system()
    count = system.f.function.n_instructions()
    assert count <= 1.1 * rigid.f.function.n_instructions()
    t, x, u = (ca.SX.sym(n, k) for n, k in zip("txu", (1, 24, 6), strict=True))
    f = system.f.function(t, x, u, [])
    ad = [ca.jacobian(f, x) @ system.state.rate_matrix(x), ca.jacobian(f, u)]
    ours = [ca.sparsify(y) for y in arm.mechanics.derivatives(t, x, u, ca.SX(0, 1))]
    counts = [ca.Function("f", [t, x, u], ca.cse(y)).n_instructions() for y in (ad, ours)]
    assert counts[1] <= counts[0] / 2, counts
    assert re.match("SeriesElastic", repr(arm))


def test_damping_and_friction_move_to_losses(rng):
    """Steps that treat losses implicitly see dampers of springs too."""
    for arm in (damped(), hardening()):
        system, (x, u) = arm.system(), random_state(arm, rng)
        D = system.structure.loss_jacobian(x, system.nominal_parameters)
        velocity = system.state.tangent_slice("velocity")
        by_v = system.derivatives(0.0, x, u)[0][velocity, velocity]
        M = system.structure.mass_matrix(x, [])
        v = x[system.state.coordinate_slice("velocity")]
        slope = arm.tree.inverse_dynamics_derivatives(x[: arm.tree.nq], v, 0 * v)
        own = np.diag([link.filled.damping[0] for link in arm.tree._moving_links])
        coriolis = slope.d_tau_d_v - own
        np.testing.assert_allclose(-M @ by_v, D + coriolis, atol=1e-9)


def test_numbers_of_tree_motors_and_springs_by_the_same_two_verbs(rng):
    """symbolic and with_parameters of an elastic arm take names of tree, motors and springs."""
    arm = elastic_planar_arm_tree()
    named = arm.symbolic("elbow.spring.stiffness", "forearm.mass")
    assert [entry.name for entry in named.parameters] == ["forearm.mass", "elbow.spring.stiffness"]
    values = {"forearm.mass": 2.5, "elbow.spring.stiffness": 321.0, "elbow.motor.inertia": 0.07}
    fixed, changed = arm.with_parameters(values), named.with_parameters(values)
    assert fixed.parameters == () and fixed.tree.mass == changed.tree.mass != arm.tree.mass
    assert [entry.nominal for entry in changed.parameters] == [2.5, 321.0]
    assert fixed.motors["elbow"].spring.stiffness == 321.0
    assert fixed.motors["elbow"].inertia == 0.07
    x, u = random_state(arm, rng)
    given = named.with_parameters({"elbow.motor.inertia": 0.07}).system()
    p = {"forearm.mass": 2.5, "elbow.spring.stiffness": 321.0}
    expected = fixed.system().f(0.0, x, u)
    assert np.allclose(given.f(0.0, x, u, p), expected, rtol=1e-12)
    assert np.allclose(changed.system().f(0.0, x, u), expected, rtol=1e-12)
    assert not np.allclose(arm.system().f(0.0, x, u), expected, rtol=1e-3)
    for wrong in (
        lambda: arm.symbolic("elbow.spring.stif"),
        lambda: arm.with_parameters({"elbow.spring.k": 1}),
    ):
        with pytest.raises(KeyError, match="elbow.spring.stiffness"):
            wrong()
    with pytest.raises(TypeError, match="one by one"):
        arm.symbolic(["forearm.mass"])


def test_a_joint_and_its_torque_are_told_apart_as_on_rigid_arms():
    """The motor's block has the joint's name, too; the angle is that of the link."""
    arm = plain(2)
    system = arm.system()
    both = r"write 'state\.j1' or 'input\.j1'"
    with pytest.raises(ValueError, match=both):
        system.trim(where={"j1": 0.5})
    with pytest.raises(ValueError, match=both):
        bounded_place(system, Bound("j1", -1, 1))
    at = system.trim(where={"state.j1": 0.5})
    assert system.state.split(at.x)["configuration"][1] == 0.5
    assert bounded_place(system, Bound("state.j1", -1, 1)) == ("block", "j1")
    places = error_places(system)
    assert places["j1"] == places["configuration.j1"] != places["motor.j1"]

"""Time derivatives of inverse dynamics: AD, curves, differences, reference numbers."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.models import ur5_tree

from . import zoo
from .differentiation import along_motion, coordinate_rate
from .reference import moving_models, order

pytestmark = pytest.mark.usually(kind=zoo.FEW, model=("ur5_sea",))

EXACT = 1e-11  # rounding of products along the path, up to fourth derivatives
STATED = 1e-11  # the reference's own values agree with Pinocchio to 1e-14; derivatives grow


def trees():
    rng = np.random.default_rng(11)
    return {
        **{kind: zoo.pair(kind, rng) for kind in zoo.JOINTS},
        "branched": zoo.branched(rng),
        "driven": zoo.driven(rng),
        "two_roots": zoo.two_roots(rng),
        "floating": zoo.floating(rng),
    }


TREES = trees()


def close(ours, theirs, tolerance=EXACT):
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() < tolerance * max(1.0, np.abs(theirs).max())


def automatic(tree, n, *extra):
    """Casadi function (q, v, a, …, extra) → tau, tau_dot, … by AD along the motion."""
    q = ca.SX.sym("q", tree.nq)
    rates = [ca.SX.sym(f"r{i}", tree.nv) for i in range(n + 2)]
    results = [tree.inverse_dynamics(q, *rates[:2], *extra)]
    for k in range(n):
        results.append(along_motion(tree, results[-1], q, rates[: k + 3]))
    return ca.Function("exact", [q, *rates, *extra], ca.cse([ca.densify(x) for x in results]))


def motion(tree, n, rng, batch=()):
    return tree.configuration.random(rng, batch), *rng.normal(size=(n + 2, *batch, tree.nv))


@pytest.mark.parametrize("kind", TREES)
def test_against_automatic_differentiation(kind, rng):
    """With wrenches that are constant in their bodies, all joints, drives, chains and mimics."""
    tree = TREES[kind]
    n = 3 if kind in ("revolute_any", "helical", "spherical", "driven") else 2
    state, wrenches = motion(tree, n, rng), rng.normal(size=(len(tree.bodies), 6))
    exact = automatic(tree, n, ca.SX.sym("W", 6, len(tree.bodies)))(*state, wrenches.T)
    ours = tree.inverse_dynamics_time_derivatives(n)(*state, wrenches)
    assert len(ours) == n + 1
    for own, theirs in zip(ours, exact, strict=True):
        close(own, np.array(theirs).ravel())
    for own, theirs in zip(
        tree.inverse_dynamics_time_derivatives(n)(*state),
        tree.inverse_dynamics_time_derivatives(n)(*state, 0 * wrenches),
        strict=True,
    ):
        close(own, theirs)


@pytest.mark.usually(kind=("driven",))
@pytest.mark.parametrize("kind", ("helical", "planar", "composite", "driven", "two_roots"))
def test_first_order_by_the_partial_derivatives(kind, rng):
    """``τ̇ = ∂τ/∂q v + ∂τ/∂v a + ∂τ/∂a j`` with closed-form derivatives by q along the motion."""
    tree = TREES[kind]
    state, wrenches = motion(tree, 1, rng), rng.normal(size=(len(tree.bodies), 6))
    slopes = tree.inverse_dynamics_derivatives(*state[:3], wrenches)
    total = sum(slope @ rate for slope, rate in zip(slopes, state[1:], strict=True))
    ours = tree.inverse_dynamics_time_derivatives()(*state, wrenches)
    close(ours.tau_dot, total)
    close(ours.tau, tree.inverse_dynamics(*state[:3], wrenches))


@pytest.mark.parametrize("kind", ("spherical", "free", "planar", "driven", "two_roots"))
def test_along_a_curve(kind, rng):
    """q(t) = q0 exp(d(t)), d a polynomial: v from dexp, everything else by differentiating in t."""
    tree, t = TREES[kind], ca.SX.sym("t")
    q0 = tree.configuration.random(rng)
    d = sum(
        (ca.DM(c) * t**k for k, c in enumerate(0.5 * rng.normal(size=(4, tree.nv)))),
        ca.SX(tree.nv, 1),
    )
    q = tree.configuration.plus(ca.SX(q0), d)
    rates = [tree.configuration.right_jacobian(d) @ ca.jacobian(d, t)]
    for _ in range(3):
        rates.append(ca.jacobian(rates[-1], t))
    tau = [tree.inverse_dynamics(q, *rates[:2])]
    for _ in range(2):
        tau.append(ca.jacobian(tau[-1], t))
    values = ca.Function("curve", [t], [q, *rates, *tau])(0.3)
    values = [np.array(ca.densify(value)).ravel() for value in values]
    ours = tree.inverse_dynamics_time_derivatives(2)(*values[:5])
    for own, theirs in zip(ours, values[5:], strict=True):
        close(own, theirs, 1e-10)  # AD of dexp rounds as much


def test_against_finite_differences(rng):
    """Every order is the slope of the one before, for drives, springs and mimics."""
    tree = TREES["driven"]
    q, *rates = motion(tree, 4, rng)
    h = 1e-5

    def state(t, n):
        """Taylor steps; on the group with the constant twist of the step's second order."""
        d = t * rates[0] + t**2 / 2 * rates[1]
        moved = tree.configuration.plus(q, d)
        return moved, *(rates[i] + t * rates[i + 1] + t**2 / 2 * rates[i + 2] for i in range(n + 2))

    for n in (1, 2):
        derivative = tree.inverse_dynamics_time_derivatives(n)
        slope = (derivative(*state(h, n))[-1] - derivative(*state(-h, n))[-1]) / (2 * h)
        ours = tree.inverse_dynamics_time_derivatives(n + 1)(q, *rates[: n + 3])[-1]
        close(ours, slope, 1e-7)  # h² and rounding by h


def test_pendulum_by_hand():
    """``τ = m l² q̈ + m g l sin q`` at rest in q̇: derivatives of the sine by Faà di Bruno."""
    ball = SpatialInertia.point_mass(2.0, [0, 0, -0.5])
    tree = Multibody().add_body("ball", ball, "revolute", axis="y")
    x, v, a, j, s, c = 0.4, 0.7, -0.3, 0.5, 1.1, -0.8
    S, C = np.sin(x), np.cos(x)
    sine = [S, C * v, C * a - S * v**2, C * (j - v**3) - 3 * S * v * a]
    exact = [0.5 * rate + 9.81 * own for rate, own in zip((a, j, s, c), sine, strict=True)]
    ours = tree.inverse_dynamics_time_derivatives(3)([x], [v], [a], [j], [s], [c])
    assert ours._fields == ("tau", "tau_dot", "tau_ddot", "tau_3")
    close(np.ravel(ours), np.array(exact), 1e-14)


def test_dry_friction_of_high_order(rng):
    """Recursion for tanh against AD of it, on a body without mass, up to the fifth order."""
    tree = Multibody().add_body(
        "slide", None, "prismatic", properties=JointProperties(friction=2.0, friction_speed=0.3)
    )
    state = motion(tree, 5, rng)
    exact = automatic(tree, 5)(*state)
    for own, theirs in zip(tree.inverse_dynamics_time_derivatives(5)(*state), exact, strict=True):
        close(own, np.array(theirs).ravel())


@pytest.mark.usually(kind=("spherical", "free"))
@pytest.mark.parametrize("kind", ("spherical", "free"))
def test_springs_of_groups_at_rest(kind, rng):
    """Where the stretch vanishes, as on both sides of it."""
    stiff = JointProperties(stiffness=rng.uniform(1, 2, size=zoo.JOINTS[kind].dim))
    tree = Multibody(gravity=[0, 0, 0]).add_body("a", None, zoo.JOINTS[kind], properties=stiff)
    q, *rates = motion(tree, 3, rng)
    q = tree.configuration.identity
    at_rest = np.array(tree.inverse_dynamics_time_derivatives(3)(q, *rates))
    assert np.isfinite(at_rest).all()
    h = 1e-3
    sides = [tree.configuration.plus(q, d * rates[0]) for d in (h, -h)]
    near = [np.array(tree.inverse_dynamics_time_derivatives(3)(side, *rates)) for side in sides]
    close(at_rest, (near[0] + near[1]) / 2, 1e-4)  # second derivative of the fourth one, by h²
    close(at_rest[1], stiff.stiffness * rates[0])


@pytest.mark.parametrize("model", ("ur5_sea", "panda", "solo12"))
def test_reference_numbers(model, shared):
    """Motions of robots; for the UR5 what motors behind its springs do."""
    tree, description = moving_models(shared, model)
    iq, iv, _ = order(tree, description)
    for sample in description["samples"]:
        own = {key: np.array(value) for key, value in sample.items() if key != "t"}
        q, rates = own["q"][iq], [own[key][iv] for key in ("v", "vdot", "vddot", "vdddot")]
        ours = tree.inverse_dynamics_time_derivatives(2)(q, *rates)
        for name in ("tau", "tau_dot", "tau_ddot"):
            close(getattr(ours, name), own[name][iv], STATED)
        if description["sea"]:
            K, B = (np.array(description["sea"][key])[iv] for key in "KB")
            close(q + ours.tau / K, own["motor_position"][iv], STATED)
            close(rates[0] + ours.tau_dot / K, own["motor_velocity"][iv], STATED)
            close(rates[1] + ours.tau_ddot / K, own["motor_acceleration"][iv], STATED)
            torque = B * (rates[1] + ours.tau_ddot / K) + ours.tau
            close(torque, own["motor_torque"][iv], STATED)


def test_parameters_batches_symbols_and_pickles(rng):
    tree = TREES["driven"]
    names = ("a.mass", "ball.center_of_mass.x", "a.armature", "a.stiffness", "a.friction")
    symbolic = tree.symbolic(*names)
    values = symbolic.parameter_values * rng.uniform(0.5, 1.5, size=len(names))
    state = motion(tree, 2, rng, (3,))
    changed = tree.with_parameters(dict(zip(names, values, strict=True)))
    plain = changed.inverse_dynamics_time_derivatives(2)(*state)
    ours = symbolic.inverse_dynamics_time_derivatives(2)(*state, p=values)
    for own, theirs in zip(ours, plain, strict=True):
        close(own, theirs)
    function = changed.inverse_dynamics_time_derivatives(2)
    assert function.arguments == ("q", "v", "a", "j", "s")
    again = pickle.loads(pickle.dumps(function))(*(x[1] for x in state))
    for own, theirs in zip(again, plain, strict=True):
        close(own, theirs[1], 1e-13)
    symbols = [ca.MX.sym("x", x.shape[1]) for x in state]
    graph = ca.Function("graph", symbols, list(function(*symbols)))
    close(np.array(graph(*(x[1] for x in state))[2]).ravel(), plain.tau_ddot[1], 1e-13)


def test_fewer_operations_than_automatic_differentiation():
    """The more so the higher the order."""
    tree = ur5_tree()
    share = [
        tree.inverse_dynamics_time_derivatives(n).instructions / automatic(tree, n).n_instructions()
        for n in (1, 2, 3)
    ]
    assert share[0] < 0.6 and share[1] < 0.33 and share[2] < 0.17


def test_tree_without_bodies_and_orders_that_are_none():
    nothing = Multibody().inverse_dynamics_time_derivatives(2)([], [], [], [], [])
    assert nothing.tau_ddot.shape == (0,)
    assert TREES["driven"].inverse_dynamics_time_derivatives(np.int64(1)).arguments[-1] == "j"
    for order_ in (0, -1, "2", True):  # True is equal to an order that is known
        with pytest.raises(ValueError, match="integer of at least 1.*tree.inverse_dynamics"):
            TREES["driven"].inverse_dynamics_time_derivatives(order_)


def test_coordinate_rate_is_that_of_the_configuration(rng):
    """The AD of these tests moves along the group: against the difference of a step."""
    tree = TREES["free"]
    q, v = motion(tree, 0, rng)[:2]
    rate = np.array(ca.evalf(coordinate_rate(tree, ca.SX(q), ca.SX(v)))).ravel()
    h = 1e-6
    ahead, behind = (tree.configuration.plus(q, d * v) for d in (h, -h))
    close(rate, (ahead - behind) / (2 * h), 1e-8)

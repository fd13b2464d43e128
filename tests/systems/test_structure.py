"""What a system's maker knew: checked, kept by copies, and used for derivatives."""

import pickle
from dataclasses import replace
from functools import cache

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO2, Product, Rn
from lgcontrol.integrators import Mechanical
from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.systems import Input, Parameter, System, check_system

from ._examples import GRAVITY, RIGID, TWIST, account, satellite, to_body

EXACT = 1e-11  # two exact routes: rounding of entries of about a hundred
INERTIA = ca.diag(ca.DM([2.0, 2.0, 2.0, 0.02, 0.03, 0.04]))


@cache
def rigid(structure=True, derivatives=False, **options):
    """Body with linear drag, thrust along z and three moments; the mass is a parameter."""

    def mass_matrix(x, p):
        return INERTIA + ca.diag(ca.vertcat(p[0], p[0], p[0], 0, 0, 0))

    def force(t, x, u, p):
        pose, twist = x[:7], x[7:]
        momentum = mass_matrix(x, p) @ twist
        weight = to_body(pose, ca.vertcat(0, 0, -GRAVITY * (2.0 + p[0])))
        turning = ca.vertcat(
            -ca.cross(twist[3:], momentum[:3]),
            -ca.cross(twist[3:], momentum[3:]) - ca.cross(twist[:3], momentum[:3]),
        )
        drag = -p[1] * twist * ca.fabs(twist)
        return ca.vertcat(weight, ca.DM(3, 1)) + turning + drag + ca.vertcat(0, 0, u)

    def slopes(t, x, a, u, p):
        T, X, A, U, P = (ca.SX.sym(k, n) for k, n in zip("txaup", (1, 13, 6, 4, 2), strict=True))
        off = force(T, X, U, P) - mass_matrix(X, P) @ A
        both = [ca.jacobian(off, X) @ RIGID.rate_matrix(X), ca.jacobian(off, U)]
        return ca.Function("slopes", [T, X, A, U, P], both)(t, x, a, u, p[:2])

    def loss_jacobian(x, p):
        return ca.diag(2 * p[1] * ca.fabs(x[7:]))

    def field(t, x, u, p):
        return ca.vertcat(x[7:], ca.solve(mass_matrix(x, p), force(t, x, u, p)))

    def closed(t, x, u, p):
        by_x, by_u = slopes(t, x, field(t, x, u, p)[6:], u, p)
        M = mass_matrix(x, p)
        top = ca.horzcat(ca.DM(6, 6), ca.DM.eye(6))
        return ca.vertcat(top, ca.solve(M, by_x)), ca.vertcat(ca.DM(6, 4), ca.solve(M, by_u))

    known = Mechanical(
        "pose",
        "twist",
        mass_matrix,
        force,
        slopes,
        lambda t, x, u, p: ca.vertcat(ca.DM(2, 4), ca.DM.eye(4)),
        loss_jacobian,
    )
    return System(
        "body",
        RIGID,
        field,
        inputs=[Input("thrust", "N"), *(f"moment {a}" for a in "xyz")],
        parameters=[Parameter("load", "kg", 0.5), Parameter("drag", "", 0.3)],
        structure=known if structure else None,
        derivatives=closed if derivatives else None,
        **options,
    )


KINDS = {"structure": (True, False), "given": (False, True)}
COPIES = {
    "plain": lambda s: s,
    "with_parameters": lambda s: s.with_parameters({"load": 1.5}),
    "lag": lambda s: s.augment(lag={"thrust": 0.1}, bias="moment x"),
    "delay and integral": lambda s: s.augment(delay=0.2, delay_order=2, integrate="pose.z"),
    "discrete": lambda s: s.discretize(0.02, "rk4"),
    "discrete with a delay": lambda s: s.discretize(0.02, "rk4").augment(delay=0.04),
    "pickled": lambda s: pickle.loads(pickle.dumps(s)),
}


@pytest.mark.usually(kind=("structure",), copy=("delay and integral", "discrete", "lag", "pickled"))
@pytest.mark.parametrize(
    ("kind", "copy"),
    [("structure", copy) for copy in COPIES] + [("given", c) for c in ("lag", "discrete")],
)
def test_copies_keep_what_is_known_and_derive_as_before(kind, copy, rng):
    made, plain = (COPIES[copy](s) for s in (rigid(*KINDS[kind]), rigid(False)))
    x, u = made.state.random(3), rng.normal(size=made.n_inputs)
    one, two = made.derivatives(0.0, x, u), plain.derivatives(0.0, x, u)
    size = 1 + np.abs(two.Df).max()
    assert np.abs(one.Df - two.Df).max() < EXACT * size
    assert np.abs(one.Bf - two.Bf).max() < EXACT * size
    one, two = made.linearize(x, u), plain.linearize(x, u)
    for matrix in "ABCD":
        off = np.abs(getattr(one, matrix) - getattr(two, matrix)).max(initial=0.0)
        assert off < EXACT * size
    if made.structure is not None:
        check_system(made, x[None], u, tolerance=1e-5)  # differences of a stiff balance
    assert (made.structure is None) == (not KINDS[kind][0] or "discrete" in copy)


def test_a_lag_stands_between_commands_and_forces():
    inner = rigid()
    system = inner.augment(lag={"thrust": 0.1})
    x, u = system.state.random(1), np.array([3.0, 1, 2, 3])
    known, p = system.structure, system.nominal_parameters
    B = known.input_map(0.0, x, u, p)
    assert not B[:, 0].any() and np.array_equal(B[3:, 1:], np.eye(3))
    arrives = np.r_[x[-1], u[1:]]
    np.testing.assert_array_equal(
        known.force(0.0, x, u, p), inner.structure.force(0.0, x[:13], arrives, p[:2])
    )


@pytest.mark.parametrize(
    ("member", "wrong"),
    [
        ("mass_matrix", lambda x, p: INERTIA),
        ("mass_matrix", lambda x, p: -INERTIA),
        ("force", lambda t, x, u, p: ca.vertcat(x[7:])),
        ("loss_jacobian", lambda x, p: -ca.DM.eye(6)),
        ("loss_jacobian", lambda x, p: ca.DM(np.eye(6) + np.eye(6, k=1))),
        ("input_map", lambda t, x, u, p: ca.DM.ones(6, 4)),
        ("balance_derivatives", lambda t, x, a, u, p: (ca.DM.ones(6, 12), ca.DM.ones(6, 4))),
    ],
)
def test_a_wrong_structure_is_found(member, wrong):
    system = rigid()
    bad = system.replaced(structure=replace(system.structure, **{member: wrong}))
    with pytest.raises(ValueError, match="structure is that of f"):
        check_system(bad, samples=2)


def test_wrong_derivatives_are_found():
    system = rigid(False)
    bad = system.replaced(derivatives=lambda t, x, u, p: (ca.DM.eye(12), ca.DM.ones(12, 4)))
    with pytest.raises(ValueError, match="derivatives equal central differences"):
        check_system(bad, samples=2)


def test_a_structure_that_does_not_fit_the_state_is_refused():
    known = rigid().structure
    field = lambda t, x, u, p: ca.vertcat(x[7:], ca.DM(6, 1))  # noqa: E731
    with pytest.raises(ValueError, match="block 'twist', which the state has not"):
        System("s", Product(pose=SE3, speed=TWIST), field, structure=known)
    two = Product(angle=SO2, rate=Rn(1))
    bad = replace(known, configuration="angle", velocity="rate", mass_matrix=lambda x, p: x)
    with pytest.raises(ValueError, match=r"mass_matrix returned M of shape \(3, 1\), expected"):
        System("s", two, lambda t, x, u, p: x[:2], structure=bad)
    turned = replace(known, configuration="angle", velocity="rate")
    with pytest.raises(ValueError, match=r"begins with .*Product\(angle=…, rate=…, …\), not"):
        System("s", Product(rate=Rn(1), angle=SO2), lambda t, x, u, p: x[:2], structure=turned)


@pytest.mark.parametrize("known", [True, False])
def test_coordinates_that_are_rates_of_others_are_found_without_probing(known):
    system = rigid(known)
    expected = {k: 7 + k for k in range(6)}
    for made in (system, system.discretize(0.01), system.augment(lag=0.1)):
        assert made.velocities == expected
    assert satellite().velocities == {0: 4, 1: 5, 2: 6}  # wheels have speeds without angles
    assert account().velocities == {}


@pytest.mark.usually(joint=({"damping": 2.0, "friction": 1.0},))
@pytest.mark.parametrize("joint", [{"damping": 2.0}, {"damping": 2.0, "friction": 1.0}, {}])
def test_a_loss_jacobian_of_another_size_is_found(joint):
    """With losses, without them where the structure is plain, and where there are none at all."""
    body = SpatialInertia.rod(2.0, length=1.0, center_of_mass=[0, 0, -0.5])
    properties = JointProperties(**joint)
    tree = Multibody().add_body("rod", body, "revolute", axis="y", properties=properties)
    system = tree.system()
    known = system.structure
    assert known.is_plain
    check_system(system, tolerance=1e-5)
    if joint:
        wrong = [lambda x, p: 10 * known.loss_jacobian(x, p)]
    else:
        wrong = [lambda x, p: ca.DM([[0.5]])]
    for D in wrong:
        for losses in {known.losses, None}:
            other = replace(known, loss_jacobian=D, losses=losses)
            with pytest.raises(ValueError, match="loss"):
                check_system(system.replaced(structure=other), tolerance=1e-5)
    missing = replace(known, loss_jacobian=None, losses=None)
    if joint:
        with pytest.raises(ValueError, match="loss Jacobian and force"):
            check_system(system.replaced(structure=missing), tolerance=1e-5)

"""Conversions and equations of one body in every representation, against definitions."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3
from lgcontrol.mechanics.representations import (
    conversion_matrix,
    convert,
    inertia_matrix,
    newton_euler_wrench,
    newton_euler_wrench_in_frames,
    rigid_body_momentum,
    rigid_body_momentum_rate,
)
from tests.multibody import zoo

from ._moving_body import REFERENCES, Curve, MovingBody, relative_error

EXACT = 1e-13  # rounding of a few dozen products, relative to the largest entry
PAIRS = [(source, target) for source in REFERENCES for target in REFERENCES]


@pytest.fixture(scope="module")
def body():
    return MovingBody(np.random.default_rng(20120531))


@pytest.fixture(scope="module")
def tree():
    return zoo.branched(np.random.default_rng(20120531))


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_twists_and_rates_are_those_of_the_motion(source, target, body):
    twist, rate = body.twist(source), body.twist_rate(source)
    converted = convert("twist", twist, body.pose, source, target)
    assert relative_error(converted, body.twist(target)) < EXACT
    converted = convert("twist_rate", rate, body.pose, source, target, twist=twist)
    assert relative_error(converted, body.twist_rate(target)) < EXACT
    X = conversion_matrix(body.pose, source, target)
    assert relative_error(X @ twist, body.twist(target)) < EXACT


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_wrenches_and_momenta_are_those_of_the_particles(source, target, body):
    for order, quantity in ((1, "momentum"), (2, "wrench")):
        given, wanted = (body.numbers(body.represented(order, r)) for r in (source, target))
        assert relative_error(convert(quantity, given, body.pose, source, target), wanted) < EXACT


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_inertias_map_twists_to_momenta(source, target, body):
    M = inertia_matrix(body.inertia, body.pose, source)
    converted = convert("inertia", M, body.pose, source, target)
    assert relative_error(converted, inertia_matrix(body.inertia, body.pose, target)) < EXACT
    momentum = body.numbers(body.represented(1, target))
    assert relative_error(converted @ body.twist(target), momentum) < EXACT
    assert np.abs(converted - converted.T).max() < EXACT * np.abs(converted).max()


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_jacobians_are_those_of_a_tree(source, target, tree, rng):
    q, v, *_ = zoo.state(tree, rng, (3,))
    frame = tree.bodies[-1]
    pose, twist = tree.placement(frame)(q), tree.velocity(frame, source)(q, v)
    J, rate = tree.jacobian(frame, source)(q), tree.jacobian_rate(frame, source)(q, v)
    converted = convert("jacobian", J, pose, source, target)
    assert relative_error(converted, tree.jacobian(frame, target)(q)) < EXACT
    converted = convert("jacobian_rate", rate, pose, source, target, twist=twist, jacobian=J)
    assert relative_error(converted, tree.jacobian_rate(frame, target)(q, v)) < EXACT


@pytest.mark.parametrize("reference", REFERENCES)
def test_equations_of_motion_are_those_of_the_particles(reference, body):
    V, A = body.twist(reference), body.twist_rate(reference)
    given = body.inertia, V, A, body.pose, reference
    wrench = body.numbers(body.represented(2, reference))
    assert relative_error(newton_euler_wrench(*given), wrench) < EXACT
    momentum = body.represented(1, reference)
    ours = rigid_body_momentum(body.inertia, V, body.pose, reference)
    assert relative_error(ours, body.numbers(momentum)) < EXACT
    rate = body.numbers(body.curve.rate(momentum))
    assert relative_error(rigid_body_momentum_rate(*given), rate) < EXACT


@pytest.mark.parametrize("reference", REFERENCES)
def test_momentum_rate_by_differences(reference, body):
    h, differences = 1e-4, 1e-6  # of order h², with third derivatives of order 10
    values = [
        rigid_body_momentum(
            body.inertia,
            body.numbers(body.curve.twist(reference), t),
            body.numbers(body.curve.coordinates, t),
            reference,
        )
        for t in (-h, h)
    ]
    V, A = body.twist(reference), body.twist_rate(reference)
    rate = rigid_body_momentum_rate(body.inertia, V, A, body.pose, reference)
    assert relative_error((values[1] - values[0]) / (2 * h), rate) < differences


@pytest.mark.parametrize("reference", REFERENCES)
def test_added_mass_obeys_the_same_equations(reference, rng):
    """A general symmetric inertia: eq. 42 is Kirchhoff's equation; all others convert to it."""
    root = rng.normal(size=(6, 6))
    M, pose = root @ root.T, SE3.random(rng)
    V, A = rng.normal(size=(2, 6))
    body = newton_euler_wrench(M, V, A, pose, "body")
    kirchhoff = M @ A - SE3.ad(V).T @ M @ V
    assert relative_error(body, kirchhoff) < EXACT
    twist = convert("twist", V, pose, "body", reference)
    rate = convert("twist_rate", A, pose, "body", reference, twist=V)
    wrench = newton_euler_wrench(M, twist, rate, pose, reference)
    assert relative_error(convert("wrench", wrench, pose, reference, "body"), body) < EXACT


def test_any_frame_and_axes(body, rng):
    """Eq. 64 for a frame and axes that move each in its own way."""
    frame, axes = Curve.random(rng, body.t), Curve.random(rng, body.t)
    (_, p), (_, origin), (K, _) = body.curve.parts, frame.parts, axes.parts
    w = body.curve.angular_velocity
    # What moves with the body at the frame's origin.
    v = body.curve.rate(p) + ca.cross(w, origin - p)
    V = ca.vertcat(K.T @ v, K.T @ w)
    frame_twist = ca.vertcat(K.T @ frame.rate(origin), K.T @ frame.angular_velocity)
    force, moment = body.total(2, origin)
    wanted = body.numbers(ca.vertcat(K.T @ force, K.T @ moment))
    ours = newton_euler_wrench_in_frames(
        body.inertia,
        body.numbers(V),
        body.numbers(body.curve.rate(V)),
        body.pose,
        body.numbers(frame.coordinates),
        body.numbers(frame_twist),
        body.numbers(axes.coordinates)[3:],
        body.numbers(K.T @ axes.angular_velocity),
    )
    assert relative_error(ours, wanted) < EXACT


def test_named_representations_are_special_frames(body):
    none, world = np.zeros(6), SE3.identity
    turn, still = SE3.rotation(body.pose), np.zeros(3)
    V = {r: body.twist(r) for r in REFERENCES}
    cases = {
        "spatial": (world, none, SO3.identity, still),
        "body": (body.pose, V["body"], turn, V["body"][3:]),
        "hybrid": (body.pose, V["hybrid"], SO3.identity, still),
    }
    for reference, frames in cases.items():
        given = body.inertia, V[reference], body.twist_rate(reference), body.pose
        ours = newton_euler_wrench_in_frames(*given, *frames)
        assert relative_error(ours, newton_euler_wrench(*given, reference)) < EXACT


def test_only_spatial_loses_digits_far_from_the_origin(rng):
    inertia, pose = zoo.random_inertia(rng), SE3.random(rng)
    pose[:3] *= 1e4  # m
    V, A = rng.normal(size=(2, 6))
    wanted = newton_euler_wrench(inertia, V, A, pose)
    errors = {}
    for reference in REFERENCES:
        twist = convert("twist", V, pose, "body", reference)
        rate = convert("twist_rate", A, pose, "body", reference, twist=V)
        wrench = newton_euler_wrench(inertia, twist, rate, pose, reference)
        errors[reference] = relative_error(
            convert("wrench", wrench, pose, reference, "body"), wanted
        )
    assert max(errors["hybrid"], errors["mixed"]) < EXACT < 1e3 * EXACT < errors["spatial"] < 1e-5


@pytest.mark.parametrize("reference", REFERENCES)
def test_batches_and_symbols(reference, rng):
    pose = SE3.random(rng, (2, 3))
    V, A = rng.normal(size=(2, 2, 3, 6))
    M = zoo.random_inertia(rng).matrix
    wrench = newton_euler_wrench(M, V, A, pose, reference)
    assert wrench.shape == (2, 3, 6)
    for symbol in (ca.SX, ca.MX):
        values = [symbol.sym("M", 6, 6), symbol.sym("V", 6), symbol.sym("A", 6)]
        values.append(symbol.sym("T", 7))
        f = ca.Function("f", values, [newton_euler_wrench(*values, reference)])
        one = np.array(f(M, V[1, 2], A[1, 2], pose[1, 2])).ravel()
        assert relative_error(one, wrench[1, 2]) < EXACT
    J = rng.normal(size=(3, 6, 4))
    assert convert("jacobian", J, pose, reference, "body").shape == (2, 3, 6, 4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda T: convert("twist", np.zeros(6), T, "body", "hybird"), "valid names.*'hybrid'"),
        (
            lambda T: convert("twist", np.zeros(6), T, "WORLD", "body"),
            "'WORLD' elsewhere is 'spatial'",
        ),
        (
            lambda T: convert("wrench", np.zeros(5), T, "body", "mixed"),
            r"'wrench' has shape \(5,\)",
        ),
        (
            lambda T: convert("twist", np.zeros(6), np.eye(4), "body", "mixed"),
            r"'pose'.*\(\.\.\., 7\)",
        ),
        (
            lambda T: convert("jacobian", np.zeros(6), T, "body", "mixed"),
            r"expected \(\.\.\., 6, n\)",
        ),
        (lambda T: newton_euler_wrench(np.eye(3), [0] * 6, [0] * 6, T), "'inertia' has shape"),
        (lambda T: inertia_matrix(np.eye(6), T, "world"), "valid names are body, spatial"),
    ],
)
def test_errors_name_the_argument_and_the_remedy(call, message):
    with pytest.raises(ValueError, match=message):
        call(SE3.identity)


@pytest.mark.parametrize(
    ("quantity", "known", "message"),
    [
        ("twist_rate", {}, "a twist_rate needs twist="),
        ("jacobian_rate", {"twist": np.zeros(6)}, "a jacobian_rate needs jacobian="),
        ("wrench", {"twist": np.zeros(6)}, "a wrench takes no twist"),
        ("velocity", {}, "unknown quantity 'velocity'; valid names are twist"),
    ],
)
def test_conversions_say_what_they_need(quantity, known, message):
    value = np.zeros((6, 2)) if "jacobian" in quantity else np.zeros(6)
    with pytest.raises((TypeError, ValueError), match=message):
        convert(quantity, value, SE3.identity, "body", "spatial", **known)

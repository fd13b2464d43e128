"""Twists and Jacobians differentiated in time: AD, high precision, curves, reference numbers."""

import pickle
from math import comb

import casadi as ca
import mpmath as mp
import numpy as np
import pytest

from lgcontrol.mechanics.representations import convert
from lgcontrol.models import panda_tree

from . import zoo
from .differentiation import time_derivative
from .reference import load, order, tree_of
from .screws import Chain

pytestmark = pytest.mark.usually(kind=(*zoo.FEW, "spherical"), model=("tree_A", "panda"))

EXACT = 1e-11  # rounding of products along the path, three orders up
REFERENCES = ("body", "spatial", "hybrid", "mixed")
STATED = 5e-12  # the reference states about 1e-13; small entries carry the rounding of large ones


def trees():
    rng = np.random.default_rng(5)
    return {
        **{kind: zoo.pair(kind, rng) for kind in zoo.JOINTS},
        "branched": zoo.branched(rng),
        "driven": zoo.driven(rng),
    }


TREES = trees()


def tip(tree):
    return "tip" if "tip" in tree.frames else "leg11" if "leg11" in tree.frames else "follower"


def references_of(kind):
    """All of them for joints of every sort together, else one in turn: they come after joints."""
    return REFERENCES if kind == "driven" else (REFERENCES[list(TREES).index(kind) % 4],)


CASES = [(kind, reference) for kind in TREES for reference in references_of(kind)]


def close(ours, theirs, tolerance=EXACT):
    assert np.shape(ours) == np.shape(theirs)
    assert np.abs(ours - theirs).max() < tolerance * max(1.0, np.abs(theirs).max())


@pytest.mark.parametrize(("kind", "reference"), CASES)
def test_against_automatic_differentiation(kind, reference, rng):
    tree = TREES[kind]
    n = 3 if kind in ("revolute_any", "spherical", "composite") else 2
    q, rates = tree.configuration.random(rng), rng.normal(size=(n + 1, tree.nv))
    exact = time_derivative(tree, tree.velocity(tip(tree), reference), n)(q, *rates)
    close(tree.twist_derivative(tip(tree), reference, n)(q, *rates), np.array(exact).ravel())
    exact = time_derivative(tree, tree.jacobian(tip(tree), reference), n)(q, *rates[:n])
    ours = tree.jacobian_time_derivative(tip(tree), reference, n)(q, *rates[:n])
    close(ours.ravel(order="F"), np.array(exact).ravel())


@pytest.mark.usually(reference=("body", "hybrid"))
@pytest.mark.parametrize("reference", REFERENCES)
def test_orders_belong_together(reference, rng):
    """``V^(n) = Σ C(n, i) J^(i) v^(n−i)``: the two recursions, up to the fourth order."""
    for kind in ("universal", "driven"):
        tree = TREES[kind]
        q, rates = tree.configuration.random(rng), rng.normal(size=(5, tree.nv))
        J = [tree.jacobian(tip(tree), reference)(q)]
        for n in range(1, 5):
            J.append(tree.jacobian_time_derivative(tip(tree), reference, n)(q, *rates[:n]))
            total = sum(comb(n, i) * J[i] @ rates[n - i] for i in range(n + 1))
            close(tree.twist_derivative(tip(tree), reference, n)(q, *rates[: n + 1]), total)
        close(J[1], tree.jacobian_rate(tip(tree), reference)(q, rates[0]))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_which_linear_parts_are_derivatives_of_the_position(order, rng):
    tree = TREES["branched"]
    q, rates = tree.configuration.random(rng), rng.normal(size=(order + 1, tree.nv))
    position = time_derivative(tree, tree.position(tip(tree)), order + 1)(q, *rates)
    for reference in REFERENCES:
        ours = tree.twist_derivative(tip(tree), reference, order)(q, *rates)[:3]
        agrees = np.allclose(ours, np.array(position).ravel(), rtol=EXACT, atol=EXACT)
        assert agrees == (reference in ("hybrid", "mixed"))


def test_jerk_and_jounce_of_a_point_in_high_precision(rng):
    """Taylor coefficients of the position, 40 digits, of the product of exponentials."""
    chain, c = Chain(rng), rng.normal(size=(5, 5))

    def position(t):
        C = mp.eye(4)
        for B, X, own in zip(chain.B, chain.X, c, strict=True):
            q = mp.fsum(mp.mpf(x) * t**k for k, x in enumerate(own))
            C = C * mp.matrix(B) * _exp(X, q)
        return C[:3, 3]

    with mp.workdps(40):
        taylor = [mp.taylor(lambda t, i=i: position(t)[i], 0, 5) for i in range(3)]
        derivatives = [[float(x * mp.factorial(k)) for k, x in enumerate(s)] for s in taylor]
    derivatives = np.array(derivatives).T
    q, rates = c[:, 0], [c[:, k] * float(mp.factorial(k)) for k in range(1, 5)] + [np.zeros(5)]
    tree = chain.tree
    close(tree.position("4")(q), derivatives[0])
    for n in range(1, 5):
        ours = tree.twist_derivative("4", "hybrid", n)(q, *rates[: n + 1])
        close(ours[:3], derivatives[n + 1])
    close(tree.jerk("4")(q, *rates[:3])[:3], derivatives[3])
    close(tree.jounce("4")(q, *rates[:4])[:3], derivatives[4])


def _exp(X, q):
    """Matrix exponential of a unit screw by q, in mpmath."""
    v, w = mp.matrix(X[:3]), X[3:]
    n = mp.sqrt(sum(mp.mpf(x) ** 2 for x in w))
    T = mp.eye(4)
    if n == 0:
        T[:3, 3] = v * q
        return T
    W = mp.matrix([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]) / n
    a, one = n * q, mp.eye(3)
    T[:3, :3] = one + mp.sin(a) * W + (1 - mp.cos(a)) * W * W
    T[:3, 3] = (one * a + (1 - mp.cos(a)) * W + (a - mp.sin(a)) * W * W) * v / n
    return T


@pytest.mark.parametrize("kind", ("spherical", "free", "planar", "cylindrical"))
def test_rates_are_those_of_body_fixed_velocities_along_a_curve(kind, rng):
    """q(t) = q0 exp(d(t)): v from dexp, everything else by differentiating in t."""
    tree, t = TREES[kind], ca.SX.sym("t")
    q0 = tree.configuration.random(rng)
    d = sum(
        (ca.DM(c) * t**k for k, c in enumerate(rng.normal(size=(4, tree.nv)))), ca.SX(tree.nv, 1)
    )
    q = tree.configuration.plus(ca.SX(q0), d)
    rates = [tree.configuration.right_jacobian(d) @ ca.jacobian(d, t)]
    point = [ca.SX(tree.position("tip")(q))]
    for _ in range(3):
        rates.append(ca.jacobian(rates[-1], t))
    for _ in range(4):
        point.append(ca.jacobian(point[-1], t))
    values = ca.Function("curve", [t], [q, *rates, *point[1:]])(0.3)
    q, *values = (np.array(value).ravel() for value in values)
    rates, point = values[:4], values[4:]
    close(tree.velocity("tip", "hybrid")(q, rates[0])[:3], point[0])
    for n in range(1, 4):
        ours = tree.twist_derivative("tip", "hybrid", n)(q, *rates[: n + 1])
        close(ours[:3], point[n], 1e-10)  # AD of the same depth rounds as much


@pytest.mark.parametrize("model", ("tree_A", "chain_Composite", "panda", "solo12"))
def test_reference_accelerations(model, shared):
    description, data = load(shared / "reference", model)
    tree = tree_of(description)
    iq, iv, _ = order(tree, description)
    q, v, a = (data[k][:, i] for k, i in (("q", iq), ("v", iv), ("a", iv)))
    for i, frame in enumerate(description["frames"]):
        for reference, key in (
            ("body", "spatial_local"),
            ("spatial", "spatial_world"),
            ("hybrid", "classical_lwa"),
        ):
            ours = tree.twist_derivative(frame["name"], reference)(q, v, a)
            close(ours, data[f"frame_a_{key}"][:, i], STATED)


@pytest.mark.parametrize("target", REFERENCES)
@pytest.mark.parametrize("source", REFERENCES)
def test_converters_lead_from_one_reference_to_another(source, target, rng):
    tree = TREES["schoenflies"]
    q, v, a, *_ = zoo.state(tree, rng)
    pose, V = tree.placement("tip")(q), tree.velocity("tip", source)(q, v)
    A = tree.twist_derivative("tip", source)(q, v, a)
    converted = convert("twist_rate", A, pose, source, target, twist=V)
    close(converted, tree.twist_derivative("tip", target)(q, v, a))
    J, rate = tree.jacobian("tip", source)(q), tree.jacobian_rate("tip", source)(q, v)
    converted = convert("jacobian_rate", rate, pose, source, target, twist=V, jacobian=J)
    close(converted, tree.jacobian_time_derivative("tip", target)(q, v))


@pytest.mark.usually(reference=("hybrid",))
@pytest.mark.parametrize("reference", REFERENCES)
def test_fewer_operations_than_automatic_differentiation(reference):
    """At every order and reference of the Panda, and the more so the higher the order."""
    tree, frame = panda_tree(), "panda_link8"
    share = []
    for n in (1, 2, 3):
        ad = time_derivative(tree, tree.velocity(frame, reference), n).n_instructions()
        share.append(tree.twist_derivative(frame, reference, n).instructions / ad)
    assert share[0] < 0.75 and share[1] < 0.5 and share[2] < 0.3


def test_arguments_and_batches(rng):
    tree = TREES["spherical"]
    snap = tree.jounce("tip")
    assert snap.arguments == ("q", "v", "a", "j", "s")
    assert tree.twist_derivative("tip", order=6).arguments[-3:] == ("c", "v5", "v6")
    q, rates = tree.configuration.random(rng, (3,)), rng.normal(size=(4, 3, tree.nv))
    close(snap(q, *rates)[1], snap(q[1], *rates[:, 1]), 1e-14)
    assert pickle.loads(pickle.dumps(snap))(q, *rates).shape == (3, 6)
    assert (tree.jerk("world")(q, *rates[:3]) == 0).all()
    assert (tree.jacobian_time_derivative("world", "mixed", 2)(q, *rates[:2]) == 0).all()


def test_errors():
    tree = TREES["spherical"]
    with pytest.raises(KeyError, match="unknown frame 'tipp'.*tip"):
        tree.jerk("tipp")
    with pytest.raises(ValueError, match="unknown reference 'local'.*body"):
        tree.twist_derivative("tip", "local")
    for order_ in (0, -1, 1.0, "2", True):
        with pytest.raises(ValueError, match="integer of at least 1.*tree.velocity"):
            tree.twist_derivative("tip", "body", order_)
    with pytest.raises(ValueError, match="tree.jacobian"):
        tree.jacobian_time_derivative("tip", "body", 0)

"""Time derivatives in all representations, of wrenches, of loads that move, of two velocities."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.mechanics import Multibody
from lgcontrol.models import panda_tree, ur5_tree

from . import zoo
from .differentiation import along_motion
from .reference import reference_motions

pytestmark = pytest.mark.usually(
    kind=zoo.FEW, form=("spatial recursion", "hybrid projection"), model="ur5_sea"
)

EXACT = 1e-12  # relative to the largest entry, at least 1
REFERENCES = ("body", "spatial", "hybrid", "mixed")
FORMS = {
    **{f"{r} recursion": (lambda tree, n, *w, r=r: tree.inverse_dynamics_by_recursion(r, n, *w))
       for r in REFERENCES},
    **{f"{r} projection": (lambda tree, n, *w, r=r: tree.inverse_dynamics_by_projection(r, n, *w))
       for r in REFERENCES},
}  # fmt: skip


def trees():
    rng = np.random.default_rng(5)
    return {kind: zoo.pair(kind, rng) for kind in zoo.JOINTS} | {
        kind: getattr(zoo, kind)(rng) for kind in ("branched", "driven", "two_roots")
    }


TREES = trees()


def close(ours, theirs, tolerance=EXACT):
    for own, other in zip(ours, theirs, strict=True):
        assert np.shape(own) == np.shape(other)
        assert np.abs(own - other).max() <= tolerance * max(1.0, np.abs(other).max())


def motion(tree, order, rng):
    """q, v, a, … of order + 2 rates."""
    return tree.configuration.random(rng), *rng.normal(size=(order + 2, tree.nv))


def loads(tree, order, rng):
    """Wrenches on all bodies with their rates."""
    return rng.normal(size=(order + 1, len(tree.bodies), 6))


@pytest.mark.usually(kind=("driven",))
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", TREES)
def test_forms_agree(kind, form, rng):
    """With loads that move; the first recursion is checked by AD elsewhere."""
    tree = TREES[kind]
    given, w = motion(tree, 2, rng), loads(tree, 2, rng)
    wanted = tree.inverse_dynamics_time_derivatives(2, True)(*given, *w)
    close(FORMS[form](tree, 2, True)(*given, *w), wanted)


@pytest.mark.parametrize("form", FORMS)
def test_forms_with_loads_that_stay_and_without(form, rng):
    tree = TREES["composite"]
    given, w = motion(tree, 1, rng), loads(tree, 0, rng)[0]
    ours, known = FORMS[form](tree, 1), tree.inverse_dynamics_time_derivatives(1)
    assert ours.arguments == known.arguments
    close(ours(*given), known(*given))
    close(ours(*given, w), known(*given, w))


@pytest.mark.parametrize("kind", TREES)
def test_loads_that_move(kind, rng):
    """τ is affine in the loads: rates by AD of ``τ(q, v, a, W(t))`` along the motion."""
    tree = TREES[kind]
    given, w = motion(tree, 2, rng), loads(tree, 2, rng)
    t = ca.SX.sym("t")
    W = sum((ca.DM(x.T) * t**n / (1, 1, 2)[n] for n, x in enumerate(w)), ca.SX(6, len(w[0])))
    q, rates = ca.SX.sym("q", tree.nq), [ca.SX.sym(f"r{i}", tree.nv) for i in range(4)]
    wanted = [tree.inverse_dynamics(q, *rates[:2], W)]
    for n in range(2):
        total = along_motion(tree, wanted[-1], q, rates[: n + 3])
        wanted.append(total + ca.jacobian(wanted[-1], t))
    exact = ca.Function("exact", [q, *rates, t], ca.cse([ca.densify(x) for x in wanted]))
    ours = tree.inverse_dynamics_time_derivatives(2, True)(*given, *w)
    close(ours, [np.array(x).ravel() for x in exact(*given, 0.0)])


@pytest.mark.usually(kind=("driven",))
@pytest.mark.parametrize("kind", TREES)
def test_wrenches_through_joints(kind, rng):
    """Against AD along the motion; the first is `joint_wrenches`."""
    tree = TREES[kind]
    given, w = motion(tree, 2, rng), loads(tree, 0, rng)[0]
    q, rates = ca.SX.sym("q", tree.nq), [ca.SX.sym(f"r{i}", tree.nv) for i in range(4)]
    shape = len(tree.bodies), 6
    wanted = [ca.vec(tree.joint_wrenches(q, *rates[:2], ca.DM(w.T)))]
    for n in range(2):
        wanted.append(along_motion(tree, wanted[-1], q, rates[: n + 3]))
    exact = ca.Function("exact", [q, *rates], ca.cse([ca.densify(x) for x in wanted]))(*given)
    ours = tree.joint_wrenches_time_derivatives(2)(*given, w)
    assert ours._fields == ("wrenches_out", "wrenches_out_dot", "wrenches_out_ddot")
    close(ours, [np.array(x).reshape(shape) for x in exact])


@pytest.mark.usually(kind=("driven",))
@pytest.mark.parametrize("kind", TREES)
def test_two_velocities(kind, rng):
    """``M a_r + C v_r`` by matrices, and two derivatives of that by AD along the motion."""
    tree = TREES[kind]
    q0, *own = motion(tree, 1, rng)
    references = rng.normal(size=(4, tree.nv))
    q, rates = ca.SX.sym("q", tree.nq), [ca.SX.sym(f"r{i}", tree.nv) for i in range(3)]
    others = [ca.SX.sym(f"o{i}", tree.nv) for i in range(4)]
    v, none = rates[0], ca.SX(tree.nv, 1)
    C = tree.coriolis_matrix(q, v)
    held = tree.inverse_dynamics(q, v, none) - C @ v  # weight, springs and losses
    wanted = [tree.mass_matrix(q) @ others[1] + C @ others[0] + held]
    for n in range(2):
        total = along_motion(tree, wanted[-1], q, rates[: n + 2])
        for k in range(n + 2):
            total += ca.jtimes(wanted[-1], others[k], others[k + 1])
        wanted.append(total)
    exact = ca.Function("exact", [q, *rates, *others], ca.cse([ca.densify(x) for x in wanted]))
    exact = [np.array(x).ravel() for x in exact(q0, *own, *references)]
    close([tree.two_velocity_dynamics()(q0, own[0], *references[:2])], exact[:1])
    ours = tree.two_velocity_dynamics(2)
    assert ours.arguments == ("q", "v", "a", "j", "v_r", "a_r", "j_r", "s_r")
    close(ours(q0, *own, *references), exact)
    same = (q0, *own, *own, references[3])
    close(ours(*same), tree.inverse_dynamics_time_derivatives(2)(*same[:4], references[3]))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("model", ("ur5_sea", "panda", "solo12"))
def test_reference_numbers(model, form, shared):
    """τ, τ̇, τ̈ of robots by 40-digit Taylor series."""
    tree, samples = reference_motions(shared, model)
    for given, wanted in samples[:2]:
        close(FORMS[form](tree, 2)(*given), wanted)


def test_operations():
    """One recursion is a fraction of AD of matrices: 12,182 for the Panda's two velocities."""
    tree = panda_tree()
    assert tree.two_velocity_dynamics(2).instructions < 0.25 * 12182
    assert tree.two_velocity_dynamics().instructions < 1.15 * tree.inverse_dynamics.instructions
    counts = [ur5_tree().inverse_dynamics_by_recursion(r, 2).instructions for r in REFERENCES]
    assert counts[0] == min(counts) and counts[1] == max(counts)


def test_orders_that_are_none_and_trees_without_bodies():
    nothing = Multibody()
    for make in (
        nothing.two_velocity_dynamics,
        lambda n: nothing.inverse_dynamics_by_recursion("body", n),
        lambda n: nothing.inverse_dynamics_by_projection("body", n),
        nothing.joint_wrenches_time_derivatives,
    ):
        for order in (-1, 1.0, True, "2"):
            with pytest.raises(ValueError, match="integer of at least 1"):
                make(order)
    for form in FORMS.values():
        assert form(nothing, 1)([], [], [], []).tau_dot.shape == (0,)
    assert nothing.two_velocity_dynamics(1)([], [], [], [], [], []).tau_dot.shape == (0,)
    assert nothing.joint_wrenches_time_derivatives()([], [], [], [])[1].shape == (0, 6)

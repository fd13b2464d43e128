"""One protocol: the same code for a tree with a loop and for bodies in absolute coordinates."""

import inspect

import casadi as ca
import numpy as np
import pytest

from lgcontrol.integrators import generalized_alpha
from lgcontrol.mechanics.constrained import ClosedTree, Linkage, Mechanism
from lgcontrol.models import delta_robot_tree, four_bar_tree

from ._absolute import mechanism_of

ANGLE, SPEED = 0.9, 2.0


@pytest.fixture(scope="module")
def linkages():
    """A four-bar linkage of both kinds, whose loop holds no row twice."""
    tree = four_bar_tree().tree
    loop = ("loop", "coupler_end", "rocker_end", "point_on_line")
    closed = ClosedTree(tree, {"coupler": 0.3, "rocker": 1.5}).close_loop(*loop, axis="y")
    kinds = {name: ["-y"] for name in ("crank", "coupler", "rocker")}
    whole = mechanism_of(four_bar_tree(), kinds, {"loop": ("coupler", "rocker")}, closed.assemble())
    thin = whole.with_joints(without=whole.mobility().removable)
    return {"crank": closed, "on_crank": thin}


def test_both_do_the_same_by_the_same_code(linkages):
    places, energies, torques = [], [], []
    for joint, linkage in linkages.items():
        q = linkage.assemble(where={joint: ANGLE})
        assert linkage.mobility(q).degrees_of_freedom == 1
        x0 = linkage.state(q, speeds={joint: SPEED})
        system = linkage.system([], at=q, independent=joint)
        assert system.error(x0, system.home)[1] == pytest.approx(SPEED)
        march = linkage.march(x0, 1e-3, 100, generalized_alpha(0.95))
        end = system.rollout(x0, None, 1e-3, steps=100).x[-1]
        assert march.is_success and system.state.minus(march.x[-1], end) == pytest.approx(
            np.zeros(system.state.dim), abs=1e-4
        )
        nq = linkage.mechanics.configuration.nq
        at = linkage.system([], at=end[:nq], independent=joint)
        energies.append(at.error(end, np.r_[end[:nq], 0 * end[nq:]])[1])
        driven = linkage.drive(joint, lambda t: ANGLE + ca.sin(2 * t))
        run = driven.kinematics(np.linspace(0, 1, 11), q=q)
        assert run.is_success
        row = driven.constraints.rows_of(f"drive_{joint}")
        torques.append(np.abs(run.multipliers[:, row]))
        wrenches = driven.reactions(run.t, run.q, run.multipliers)
        assert all(w.shape == (11, 6) for each in wrenches.values() for w in each.values())
        places.append(linkage.poses(q)["coupler"][3:])
    assert abs(places[0] @ places[1]) == pytest.approx(1, abs=1e-12)  # same attitude
    assert energies[0] == pytest.approx(energies[1], abs=1e-8)  # same speed of the crank
    assert torques[0] == pytest.approx(torques[1], abs=1e-9)


def test_verbs_have_the_same_arguments_in_the_same_order():
    verbs = [n for n, f in vars(Linkage).items() if n[0] != "_" and inspect.isfunction(f)]
    assert {"assemble", "mobility", "kinematics", "reactions", "drive", "system", "plot"} < {*verbs}
    for verb in verbs:
        given = [*inspect.signature(getattr(Linkage, verb)).parameters]
        for kind in (ClosedTree, Mechanism):
            assert [*inspect.signature(getattr(kind, verb)).parameters] == given, (kind, verb)
    for name in ("mechanics", "constraints", "row_names", "dynamics", "problem"):
        assert hasattr(ClosedTree, name) and hasattr(Mechanism, name)


def test_pictures_show_all_bodies(linkages):
    for linkage in (*linkages.values(), delta_robot_tree()):
        (ax,) = linkage.plot().axes
        poses = linkage.poses(linkage.assemble())
        assert {text.get_text() for text in ax.texts} - {""} == set(poses)
        drawn = [one for one in ax.collections if one.get_gid() == "body"]
        for pose, body in zip(poses.values(), drawn, strict=True):
            corners = np.asarray(body._faces).reshape(-1, 3)
            low, high = corners.min(axis=0) - 1e-9, corners.max(axis=0) + 1e-9
            assert (low <= pose[:3]).all() and (pose[:3] <= high).all()


def test_reactions_of_a_loop_balance_on_both_frames():
    robot = delta_robot_tree()
    q, rng = robot.assemble(), np.random.default_rng(3)
    tree, lam = robot.tree, rng.normal(size=9)
    for loop, each in zip(robot.loops, robot.reactions(0.0, q, lam).values(), strict=True):
        total = np.zeros(6)
        for frame, wrench in each.items():
            pose = np.asarray(tree.placement(frame)(q))
            turn = _matrix(pose)
            force, moment = turn @ wrench[:3], turn @ wrench[3:]
            total += np.r_[force, moment + np.cross(pose[:3], force)]
        assert np.abs(total).max() < 1e-12, loop.name


def test_chosen_inputs_are_the_motors_that_are_named(linkages):
    from lgcontrol.mechanics.constrained import Marker, MechanismMotor

    thin = linkages["on_crank"]
    motors = [MechanismMotor(n, Marker("ground", z=[0, 1, 0]), Marker("crank")) for n in "ab"]
    both = thin.with_joints(motors=motors)
    assert both.system(["b"]).input_names == ("b",) and both.system().input_names == ("a", "b")
    with pytest.raises(KeyError, match="unknown motor 'c'; valid names are a, b"):
        both.system(["c"])
    with pytest.raises(TypeError, match="takes no wrenches.* motors of the mechanism$"):
        both.system(wrenches=["crank"])
    with pytest.raises(TypeError, match=r"formulation is now lgcontrol\..*Mechanism\.formulated"):
        both.system(formulation="SE3")


def _matrix(pose):
    from lgcontrol.groups import SO3

    return np.asarray(SO3.matrix(pose[3:]))

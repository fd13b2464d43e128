"""What is said to who calls a tree in a wrong way."""

import casadi as ca
import numpy as np
import pytest

from lgcontrol.mechanics import JointProperties, Multibody, SpatialInertia
from lgcontrol.mechanics.representations import convert
from lgcontrol.models import ur5_tree

BALL = SpatialInertia.point_mass(2.0, [0, 0, -1])


@pytest.fixture(scope="module")
def arm():
    return ur5_tree()


def test_suggestions_stand_first_and_lists_are_short(arm):
    with pytest.raises(KeyError) as caught:
        arm.symbolic("wrist_3_link.mas")
    text = str(caught.value)
    assert "Did you mean 'wrist_3_link.mass'?" in text[:100]
    assert len(text) < 1000


def test_names_are_given_one_by_one(arm):
    with pytest.raises(TypeError, match=r"one by one, symbolic\('a', 'b'\), got \['link"):
        arm.symbolic(["link06.mass"])


def test_a_single_name_is_one_joint(arm):
    assert arm.system("shoulder_pan_joint").input_names == ("shoulder_pan_joint",)
    with pytest.raises(KeyError, match="unknown joint 'shoulder'"):
        arm.system("shoulder")


def test_added_mass_of_links_has_one_shape(arm):
    with pytest.raises(ValueError, match=r"shape \(3,\), expected \(6, 6\); use numpy.diag"):
        arm.with_added_mass({"wrist_3_link": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize(
    "wrong",
    [
        lambda tree, q: tree.system_jacobian(q),
        lambda tree, q: tree.body_momenta(q, q),
        lambda tree, q: tree.euler_jourdain_equations(q, q),
        lambda tree, q: tree.inverse_dynamics_by_recursion(q, q, q),
        lambda tree, q: tree.jacobian("tool0", q),
        lambda tree, q: tree.jacobian("tool0", q=q),
        lambda tree, q: tree.twist_derivative("tool0", list(q), list(q), list(q)),
        lambda tree, q: tree.body_momenta(ca.SX.sym("q", 6), ca.SX.sym("v", 6)),
        lambda tree, q: tree.inverse_dynamics_geometry_derivatives(q, q, q),
    ],
)
def test_methods_that_make_functions_explain_the_two_steps(wrong, arm):
    with pytest.raises(TypeError, match=r"two steps, function = tree\.\w+\(.*then function\(q"):
        wrong(arm, np.zeros(6))


def test_methods_keep_their_signatures(arm):
    assert arm.jacobian.__doc__.startswith("``q`` →")
    names = ("elbow_joint",)
    assert arm.calibration_jacobian("tool0", joints=list(names)).result_shapes == ((6, 6),)
    with pytest.raises(TypeError, match="positional"):
        arm.jacobian("tool0", "body", "body")


def test_parameters_in_the_place_of_wrenches(arm):
    tree, q = arm.symbolic("wrist_3_link.mass"), np.zeros(6)
    with pytest.raises(ValueError, match=r"wrenches would.*p="):
        tree.inverse_dynamics(q, q, q, [1.0])
    with pytest.raises(ValueError, match=r"p="):
        tree.inverse_dynamics(q, q, q, ca.SX.sym("p"))
    assert tree.inverse_dynamics(q, q, q, np.zeros((6, 6)), [1.0]).shape == (6,)
    with pytest.raises(ValueError, match="wrenches"):
        arm.inverse_dynamics(q, q, q, [1.0])


def test_things_of_the_wrong_kind():
    with pytest.raises(TypeError, match=r"'x': inertia must be a SpatialInertia.*not 1.0"):
        Multibody().add_body("x", 1.0, "revolute")
    with pytest.raises(TypeError, match=r"properties must be a JointProperties.*damping"):
        Multibody().add_body("x", BALL, "revolute").with_properties(x={"damping": 1})
    with pytest.raises(TypeError, match="mimic must be a Mimic"):
        Multibody().add_body("x", BALL, "revolute", mimic="y")
    assert Multibody().add_body("x", BALL, "revolute", properties=JointProperties()).nv == 1


def test_names_of_other_libraries():
    with pytest.raises(ValueError, match="'LWA' elsewhere is 'hybrid' here"):
        convert("twist", np.zeros(6), [0, 0, 0, 0, 0, 0, 1.0], "LWA", "body")

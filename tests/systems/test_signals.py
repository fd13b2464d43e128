"""Inputs and parameters: names, bounds, roles, and messages that say what to do."""

import pickle

import casadi as ca
import numpy as np
import pytest

from lgcontrol.codegen._internal import unknown_name
from lgcontrol.groups import Rn
from lgcontrol.systems import Input, Parameter, System, check_system

from ._examples import account, pendulum, satellite


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "input names must be non-empty text, got ''"),
        (
            {"name": "u", "role": "command"},
            "role must be one of control, measured, disturbance, noise",
        ),
        ({"name": "u", "lower": 2.0, "upper": 1.0}, r"bounds \[2.0, 1.0\] are not an interval"),
        ({"name": "u", "lower": np.nan}, "not an interval"),
        (
            {"name": "u", "lower": 1, "upper": 2},
            r"value 0 is outside its bounds \[1, 2\]; give",
        ),
        ({"name": "u", "upper": 2.0, "nominal": 3.0}, r"value 3 is outside its bounds \[-inf, 2\]"),
        ({"name": "u", "nominal": np.inf}, "nominal value is not finite: it is inf"),
    ],
)
def test_inputs_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Input(**arguments)


def test_parameters_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="'mass': nominal is not finite: it is nan"):
        Parameter("mass", "kg", np.nan)


def test_roles_select_inputs():
    system = satellite()
    assert system.input_index().tolist() == [0, 1, 2]
    assert system.input_index("disturbance").tolist() == [3, 4, 5]
    assert system.input_index("noise").tolist() == []


def test_full_input_takes_controls_and_names():
    system = satellite()
    u = system.full_input(np.ones((4, 3)), torque_y=5.0)
    assert u.tolist() == 4 * [[1.0, 1.0, 1.0, 0.0, 5.0, 0.0]]
    with pytest.raises(KeyError, match="torque_yy.*valid names are motor_x.*mean 'torque_y'"):
        system.full_input(np.ones(3), torque_yy=5.0)
    with pytest.raises(ValueError, match=r"control has shape \(6,\), expected \(..., 3\)"):
        system.full_input(np.ones(6))


@pytest.mark.parametrize("given", ["force", Input("force")])
def test_lists_are_not_made_of_letters(given):
    with pytest.raises(TypeError, match=r"inputs must be a list, got .*'force'.*: write inputs=\["):
        System("cart", Rn(1), lambda t, x, u, p: u, inputs=given)


def test_functions_say_what_their_inputs_and_parameters_are():
    """The advice comes along when a function is pickled."""
    system = satellite()
    for f in (system.f, pickle.loads(pickle.dumps(system.f))):
        with pytest.raises(
            ValueError,
            match=r"'u' has shape \(3,\), expected \(\.\.\., 6\): satellite has 3 controls \+ 3 di"
            r"sturbances; system\.full_input\(controls\)",
        ):
            f(0.0, system.state.identity, np.ones(3))
    swing = pendulum()
    with pytest.raises(
        TypeError, match="'p' must be numbers .*, not str: pendulum has the parameters inertia, da"
    ):
        swing.f(0.0, [1.0, 0.0, 0.0], [0.0], "inertia")
    with pytest.raises(ValueError, match=r"order of arguments is \(t, x, u, p\)"):
        swing.f([1.0, 0.0, 0.0], [0.0], 0.0)
    with pytest.raises(ValueError, match=r"order of arguments is \(t, x, u, p, dt\)"):
        swing.step()([1.0, 0.0, 0.0], [0.0], 0.0, [0.5, 0.1], 0.1)


def test_parameters_may_be_given_by_name_wherever_they_are_taken():
    system, x = pendulum(), [0.6, 0.8, 1.0]
    changed, p = system.with_parameters({"damping": 0.3}), {"damping": 0.3}
    run, other = (s.rollout(x, dt=0.1, steps=4, p=q) for s, q in ((system, p), (changed, None)))
    np.testing.assert_array_equal(run.x, other.x)
    np.testing.assert_array_equal(system.linearize(x, p=p).A, changed.linearize(x).A)
    assert system.trim(p=p).p.tolist() == [0.5, 0.3]
    for f in (system.f, pickle.loads(pickle.dumps(system.h))):
        np.testing.assert_array_equal(f(0.0, x, [0.0], p), f(0.0, x, [0.0], [0.5, 0.3]))
    step, derivatives = system.step(), system.derivatives
    np.testing.assert_array_equal(
        step(0.0, x, [0.0], p, 0.1), changed.step()(0.0, x, [0.0], dt=0.1)
    )
    np.testing.assert_array_equal(
        derivatives(0.0, x, [0.0], p).Df, changed.derivatives(0.0, x, [0.0]).Df
    )
    assert check_system(system, p=p) == check_system(changed)
    assert system.parameter_values({"damping": [0.1, 0.2]}).tolist() == [[0.5, 0.1], [0.5, 0.2]]
    q = ca.SX.sym("q")
    slope = ca.jacobian(system.f(0.0, ca.DM(x), ca.DM([0.0]), {"damping": q}), q)
    assert float(ca.evalf(slope[1])) == -1.0 / 0.5
    for take in (system.linearize, lambda x, p: system.f(0.0, x, [0.0], p)):
        with pytest.raises(KeyError, match="unknown parameter 'damp'; valid .* inertia, damping"):
            take(x, p={"damp": 0.3})


def test_names_with_dots_are_keys_of_a_mapping():
    cart = System(
        "cart", Rn(1), lambda t, x, u, p: -p * x, parameters=[Parameter("load.mass", "kg", 2.0)]
    )
    assert cart.with_parameters({"load.mass": 3.0}).f(0.0, [1.0]).tolist() == [-3.0]
    assert cart.f(0.0, [1.0], p={"load.mass": 4.0}).tolist() == [-4.0]
    with pytest.raises(ValueError, match=r"'load.mass' has shape \(2,\)"):
        cart.with_parameters({"load.mass": [1.0, 2.0]})


def test_parameters_by_name():
    system = pendulum()
    assert system.parameter_values({"damping": 0.3}).tolist() == [0.5, 0.3]
    with pytest.raises(KeyError, match="unknown parameter 'damp'; valid .* inertia, damping"):
        system.parameter_values({"damp": 0.3})
    with pytest.raises(ValueError, match="parameter 'damping' is not finite: it is nan"):
        system.parameter_values({"damping": np.nan})
    changed = system.with_parameters({"damping": 0.3})
    assert changed.nominal_parameters.tolist() == [0.5, 0.3]
    x, u = [0.6, 0.8, 1.0], [0.2]
    np.testing.assert_array_equal(changed.f(0.0, x, u), system.f(0.0, x, u, [0.5, 0.3]))


def test_bounds_and_nominal_values_come_in_order():
    lower, upper = pendulum().input_bounds
    assert (lower.tolist(), upper.tolist()) == ([-2.0], [2.0])
    assert account().nominal_parameters.tolist() == [0.5]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("twits", "twist"),
        ("POSE", "pose"),
        ("tau1", "tau"),
        ("rk5", "rk4"),
        ("floating", None),
        ("mass", None),
        ("velocity", None),
    ],
)
def test_only_near_names_are_proposed(name, hint):
    text = unknown_name(
        "name", name, ["pose", "twist", "tau", "rk4", "rotating", "mode", "veracious"]
    )
    assert text.endswith(f"Did you mean {hint!r}?" if hint else "veracious.")


def test_bounds_of_angles_ask_whether_they_are_degrees():
    with pytest.warns(UserWarning, match="input 'steering': lower of -35 rad .* are these degrees"):
        Input("steering", "rad", -35, 35)
    for harmless in (("rad", -12.0, 12.0), ("rad", -1e6, 1e6), ("N m", -35, 35)):
        Input("steering", *harmless)  # any warning is an error

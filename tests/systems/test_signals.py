"""Inputs and parameters: names, bounds, roles, and messages that say what to do."""

import numpy as np
import pytest

from lgcontrol.systems import Input, Parameter

from ._examples import account, pendulum, satellite


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "input names must be non-empty text, got ''"),
        ({"name": "u", "role": "command"}, "role must be one of control, disturbance, noise"),
        ({"name": "u", "lower": 2.0, "upper": 1.0}, r"bounds \[2.0, 1.0\] are not an interval"),
        ({"name": "u", "lower": np.nan}, "not an interval"),
        ({"name": "u", "nominal": np.inf}, "nominal value inf is not finite"),
    ],
)
def test_inputs_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Input(**arguments)


def test_parameters_that_are_not_finite_are_refused():
    with pytest.raises(ValueError, match="'mass': nominal nan is not finite"):
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


def test_parameters_by_name():
    system = pendulum()
    assert system.parameter_values(damping=0.3).tolist() == [0.5, 0.3]
    with pytest.raises(KeyError, match="unknown parameter 'damp'; valid .* inertia, damping"):
        system.parameter_values(damp=0.3)
    with pytest.raises(ValueError, match="parameter 'damping' is not finite"):
        system.parameter_values(damping=np.nan)
    changed = system.with_parameters(damping=0.3)
    assert changed.nominal_parameters.tolist() == [0.5, 0.3]
    x, u = [0.6, 0.8, 1.0], [0.2]
    np.testing.assert_array_equal(changed.f(0.0, x, u), system.f(0.0, x, u, [0.5, 0.3]))


def test_bounds_and_nominal_values_come_in_order():
    lower, upper = pendulum().input_bounds
    assert (lower.tolist(), upper.tolist()) == ([-2.0], [2.0])
    assert account().nominal_parameters.tolist() == [0.5]

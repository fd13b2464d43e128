"""check_system passes good systems, and names every planted fault."""

import re

import casadi as ca
import numpy as np
import pytest

from lgcontrol.groups import SE3, SO3, Product, Rn
from lgcontrol.systems import System, check_system

from ._examples import account, lift, pendulum, quadrotor, satellite, underwater

GOOD = [account, lift, pendulum, quadrotor, satellite, underwater]


@pytest.mark.usually(build=(account, quadrotor, satellite, underwater))
@pytest.mark.parametrize("build", GOOD)
@pytest.mark.parametrize("symbol", [ca.SX, ca.MX])
def test_good_systems_pass(build, symbol):
    system = build()
    if symbol is ca.MX:
        system = system.replaced(symbol=ca.MX)
    report = check_system(system)
    assert max(report.values()) < 1e-6
    assert ("steps converge with their order" in report) == (not system.is_discrete)
    assert ("invariants are constant" in report) == (build is satellite)
    assert "projection is idempotent" not in report


def test_given_states_and_inputs_are_the_ones_checked():
    root = System("root", Rn(1, ("level",)), lambda t, x, u, p: u - ca.sqrt(x), inputs=["inflow"])
    with pytest.raises(ValueError, match=r"f, h and quantities are finite: off by inf \(f at"):
        check_system(root)
    assert check_system(root, [[1.0], [2.0]], [0.5])


def rotation(f=None, **options):
    f = f or (lambda t, x, u, p: [0, 0, 1])
    return System("planted", SO3, f, **options)


def wrong_derivative(t, x, u, p):
    """A function of which CasADi is told that its derivative is 3 where it is 2."""
    a, b = ca.MX.sym("a"), ca.MX.sym("b", 1, 1)
    jacobian = ca.Function("jac_double", [a, b], [ca.MX(3.0)], ["i0", "out_o0"], ["jac_o0_i0"])
    double = ca.Function("double", [a], [2 * a], {"custom_jacobian": jacobian, "never_inline": True,
                                                  "enable_forward": False, "enable_reverse": False,
                                                  "jac_penalty": 0})  # fmt: skip
    return double(x)


PLANTED = {
    "names differ": lambda: System("planted", Rn(1, ("a",)), lambda t, x, u, p: u, inputs=["a"]),
    "h is on the output group": lambda: rotation(h=lambda t, x, u, p: 2 * x, output=SO3),
    "f and h do not see a quaternion's sign": lambda: rotation(lambda t, x, u, p: x[:3]),
    "derivatives equal central differences": lambda: System(
        "planted", Rn(1), wrong_derivative, symbol=ca.MX
    ),
    "invariants are constant": lambda: rotation(invariants=lambda x, p: x[0] ** 2),
    "projection is idempotent": lambda: System(
        "planted", Rn(1), lambda t, x, u, p: 0 * x, project=lambda x, p: x / 2
    ),
}


@pytest.mark.parametrize("check", PLANTED)
def test_a_planted_fault_is_named(check):
    with pytest.raises(ValueError, match=f"planted is not a .*\n- {re.escape(check)}: off by"):
        check_system(PLANTED[check]())


def test_kinks_show_where_they_are():
    sign = System("relay", Rn(1, ("x",)), lambda t, x, u, p: -ca.sign(x))
    with pytest.raises(ValueError) as error:
        check_system(sign, [[1.0], [0.0]])
    assert "derivatives equal central differences" in str(error.value)
    assert "(A: x, sample 1)" in str(error.value)
    with pytest.raises(ValueError, match="steps converge with their order"):
        check_system(sign, [[0.01]])


def test_all_failures_are_listed_at_once():
    bad = System(
        "bad",
        Product(pose=SE3, load=Rn(1)),
        lambda t, x, u, p: [*(x[k] for k in range(3, 6)), 0, 0, 0, 0],
        h=lambda t, x, u, p: 3 * x[:7],
        output=SE3,
        invariants=lambda x, p: x[0],
    )
    with pytest.raises(ValueError) as error:
        check_system(bad)
    lines = str(error.value).splitlines()
    assert lines[0] == "bad is not a consistent system:"
    assert len(lines) == 4


def test_a_system_that_does_not_pickle_is_found():
    system = pendulum()
    vars(system)["note"] = lambda: None
    with pytest.raises(ValueError, match="- pickles: off by inf"):
        check_system(system)


def test_projected_states_are_checked():
    """Random states do not lie on the constraint; the projection puts them there."""
    circle = System(
        "circle",
        Rn(2),
        lambda t, x, u, p: [-x[1], x[0]],
        invariants=lambda x, p: ca.sumsqr(x) - 1,
        project=lambda x, p: x / ca.sqrt(ca.sumsqr(x)),
    )
    assert max(check_system(circle).values()) < 1e-9
    with pytest.raises(ValueError, match=r"x has shape \(3, 1\), expected \(..., 2\)"):
        check_system(circle, np.ones((3, 1)))

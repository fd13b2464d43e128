"""Unknown names in every room: one exception, whose text lists the names there are."""

import pickle
import re
from pathlib import Path

import pytest

from lgcontrol import Multibody
from lgcontrol.codegen import UnknownNameError, chain, set_compile_policy, trace
from lgcontrol.groups import SE3, SO3, Product
from lgcontrol.models import quadrotor

ROOMS = [Path(__file__).parents[2] / room for room in ("lgcontrol", "controllers", "models")]


def step():
    return trace("step", lambda x: x, {"x": (1,)}, ["x_next"])


CASES = {
    "a policy": (lambda: set_compile_policy("atuo"), "'auto'"),
    "an argument to carry": (lambda: chain(step(), 3, carry=("y", "x_next")), "names are x"),
    "a block": (lambda: Product(pose=SE3).coordinate_slice("poze"), "mean 'pose'"),
    "an operation": (lambda: SE3.function("compos"), "mean 'compose'"),
    "an order of quaternions": (lambda: SO3.from_quaternion([0, 0, 0, 1], "xyz"), "mean 'xyzw'"),
    "a method": (lambda: quadrotor().discretize(0.1, "rk5"), "'rk4'"),
    "a number of a body": (lambda: quadrotor(parametric=["mas"]), "mean 'mass'"),
    "a number of a tree": (lambda: Multibody().parametric("gravity.w"), "gravity.x"),
    "a value in a tree": (lambda: Multibody().with_parameters({"gravity.w": 1}), "gravity.x"),
    "a fixed number": (lambda: quadrotor().with_parameters({"mass": 1}), "parametric=['mass']"),
    "a link": (lambda: Multibody().add_body("a", None, "fixed", "b"), "are world"),
    "a kind of joint": (lambda: Multibody().add_body("a", None, "revolut"), "mean 'revolute'"),
}


@pytest.mark.parametrize("case", CASES)
def test_unknown_names_are_one_exception(case):
    call, hint = CASES[case]
    with pytest.raises(UnknownNameError) as caught:
        call()
    text = str(caught.value)
    assert "unknown" in text and hint in text
    assert text[0] not in "'\"" and "\\'" not in text  # a KeyError's text would be quoted
    assert isinstance(caught.value, KeyError) and isinstance(caught.value, ValueError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == text


def test_every_room_raises_it():
    """Unexpected arguments (TypeError), attributes and the command line keep their own."""
    raised = re.compile(r"raise (\w+)\(\s*(?:f?\"[^\"\n]*\"\s*\+?\s*|f\"[^\n]*?\{)?unknown_name\(")
    allowed = {"UnknownNameError", "TypeError", "AttributeError", "CommandError"}
    found = [
        (path.name, name)
        for room in ROOMS
        for path in room.rglob("*.py")
        for name in raised.findall(path.read_text(encoding="utf-8"))
    ]
    assert len(found) > 40
    assert not [entry for entry in found if entry[1] not in allowed]

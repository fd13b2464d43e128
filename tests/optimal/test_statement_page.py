"""docs/statement.md: every line of the table names a test that is there and that says more."""

import ast
import importlib
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from lgcontrol.controllers import MPC
from lgcontrol.groups import Product, Rn, Translation
from lgcontrol.optimal import Residual
from lgcontrol.systems import System

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [ROOT / "tests" / room for room in ("optimal", "controllers", "systems", "plotting")]
# Of an MPC, whose name the lines leave out, and of Python.
OTHERS = {"preview", "feedback", "mpc", "symbolic", "range"}
ROWS = re.findall(r"^\| (.+) \| (.+) \| `(test_\w+\.py)::(\w+)` \|$",
                  (ROOT / "docs" / "statement.md").read_text(), re.MULTILINE)  # fmt: skip


def test_every_line_has_its_test():
    table = [
        line for line in (ROOT / "docs" / "statement.md").read_text().splitlines()
        if line.startswith("|")
    ]  # fmt: skip
    heads = 2 * table.count("| to state | write | test |")
    assert len(ROWS) == len(table) - heads > 20  # a line that does not fit the pattern is none


@cache
def functions(file):
    (path,) = [path for path in ROOMS if (path / file).exists()]
    tree = ast.parse((path / file).read_text())
    return [n for n in tree.body if isinstance(n, ast.FunctionDef)]


@pytest.mark.parametrize(("file", "name"), sorted({row[2:] for row in ROWS}))
def test_the_test_is_there_and_can_fail(file, name):
    found = [n for n in functions(file) if n.name == name]
    assert len(found) == 1
    assert any(isinstance(node, ast.Assert) for node in ast.walk(found[0]))


def test_names_are_where_the_page_says():
    """What is called in the table, by the sentence below it: in the room named, or in `optimal`."""
    text = (ROOT / "docs" / "statement.md").read_text()
    said = dict.fromkeys(
        re.findall(r"(?<![.\w])([A-Za-z]\w+)\(", " ".join(row[1] for row in ROWS)), "optimal"
    )
    (sentence,) = re.findall(
        r"`with_accelerations` is .*? the others in `lgcontrol.optimal`", text, re.S
    )
    for names, room in re.findall(
        r"((?:`\w+`(?: and )?)+) (?:is |are )?in\s+`lgcontrol\.(\w+)`", sentence
    ):
        said |= dict.fromkeys(re.findall(r"\w+", names.replace(" and ", " ")), room)
    found = {
        name: room for name, room in said.items()
        if hasattr(importlib.import_module(f"lgcontrol.{room}"), name)
    }  # fmt: skip
    assert {"Phase", "MPC", "LinkCapsules", "with_accelerations"} <= found.keys()
    assert said.keys() - found.keys() == OTHERS


def test_a_reference_whose_configuration_has_no_weight_pulls_at_no_joint():
    """As the page says; plans start alike and efforts are from torques that are none anyway."""
    space = Translation("x")
    goal = Residual.from_goal(lambda t, x, u, p: x[0], [0.4], space, weight=10, terminal=10)
    cart = System(
        "cart", Product(configuration=Rn(1), velocity=Rn(1)), lambda t, x, u, p: [x[1], u],
        inputs=["push"],
    )  # fmt: skip
    first = []
    for there in (0.0, 7.0):
        mpc = MPC(cart, 15, 0.1, Q={"velocity": 0.1}, R=0.1, residuals=[goal], reference=[there, 0])
        first.append([mpc(0.1 * k, [0.1 * k, 0.0]) for k in range(3)])
    assert np.abs(np.array(first[0])).max() > 0.1
    np.testing.assert_allclose(first[0], first[1], rtol=1e-5)

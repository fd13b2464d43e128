"""docs/statement.md: every line of the table names a test that is there and that says more."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = [ROOT / "tests" / room for room in ("optimal", "controllers")]
ROWS = re.findall(r"^\| (.+) \| (.+) \| `(test_\w+\.py)::(\w+)` \|$",
                  (ROOT / "docs" / "statement.md").read_text(), re.MULTILINE)  # fmt: skip


def test_every_line_has_its_test():
    table = [
        line for line in (ROOT / "docs" / "statement.md").read_text().splitlines()
        if line.startswith("|")
    ]  # fmt: skip
    assert len(ROWS) == len(table) - 2 > 20  # a line that does not fit the pattern is none


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

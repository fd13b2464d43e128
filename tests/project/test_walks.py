"""Six tasks as a newcomer writes them: the programs run, and need no more names than they did."""

import ast
import runpy

import pytest

from ._repository import ROOT

# Names imported, lines with code, and distinct names that a person types, in the programs of the
# same tasks before the names were rebuilt.
BEFORE = {
    "own_vehicle": (2, 17, 31),
    "own_arm": (3, 14, 23),
    "estimator": (3, 19, 23),
    "linkage": (3, 14, 26),
    "elastic_arm": (5, 15, 29),
    "phases": (5, 14, 25),
}
TOGETHER = 102  # distinct names of all six


def typed(source: str) -> tuple[int, set[str]]:
    """Return how many names a program imports, and the attributes and arguments that it names."""
    imports, names = 0, set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports += len(node.names)
            names |= {entry.name.rpartition(".")[2] for entry in node.names}
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
    return imports, names


def program(task: str):
    return ROOT / "tests" / "walks" / f"{task}.py"


@pytest.mark.usually(task=("own_arm", "linkage", "phases"))
@pytest.mark.parametrize("task", BEFORE)
def test_a_walk_runs(task, capsys):
    runpy.run_path(str(program(task)))
    assert "True" in capsys.readouterr().out


def test_walks_need_no_more_names_than_before():
    every: set[str] = set()
    for task, (imports, lines, count) in BEFORE.items():
        source = program(task).read_text()
        own, names = typed(source)
        assert own <= imports and len(names) <= count
        assert sum(bool(line.strip()) for line in source.splitlines()) <= lines
        every |= names
    assert len(every) < TOGETHER

"""Notebooks are stored with their outputs, and say what their sources say."""

import importlib.util
import json
import re

import pytest

from ._repository import ROOT

_spec = importlib.util.spec_from_file_location(
    "exercises", ROOT / "notebooks" / "exercises" / "__init__.py"
)
_exercises = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_exercises)

SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
TUTORIALS = sorted((ROOT / "notebooks" / "exercises").glob("[a-z]*.py"))


def _cells_of_source(path):
    """Return kind and text of the cells of a source in the percent format."""
    cells, kind, lines = [], None, []
    for line in [*path.read_text(encoding="utf-8").splitlines(), "# %%"]:
        if line.startswith("# %%"):
            if kind:
                cells.append((kind, "\n".join(lines).strip("\n")))
            kind, lines = ("markdown" if "[markdown]" in line else "code"), []
        elif kind == "markdown":
            lines.append(line.removeprefix("#").removeprefix(" "))
        else:
            lines.append(line)
    return cells


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_stored_notebooks_are_those_of_their_sources(source):
    """`make notebooks` writes the stored notebook; it has the cells of the source and outputs."""
    stored = json.loads(source.with_suffix(".ipynb").read_text(encoding="utf-8"))
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in stored["cells"]]
    assert cells == _cells_of_source(source)
    outputs = [cell["outputs"] for cell in stored["cells"] if cell["cell_type"] == "code"]
    data = [output.get("data", {}) for of_cell in outputs for output in of_cell]
    assert any("image/png" in kinds for kinds in data), "a notebook without a picture"
    assert all(cell["execution_count"] for cell in stored["cells"] if cell["cell_type"] == "code")


def test_every_notebook_has_a_source():
    """A notebook without a source would never be executed."""
    stored = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert stored == {path.stem for path in SOURCES}


@pytest.mark.parametrize("answered", TUTORIALS, ids=lambda path: path.stem)
def test_every_tutorial_has_three_exercises_with_answers(answered):
    """`make notebooks` runs each exercise with its right and its wrong answer."""
    source = ROOT / "notebooks" / answered.name
    cells = [text for kind, text in _cells_of_source(source) if kind == "code"]
    numbers = [
        re.findall(r"check\(\s*(\d)", text)[0]
        for text in cells
        if text.startswith("answer = ...\n")
    ]
    assert numbers == ["1", "2", "3"]
    answers = answered.read_text(encoding="utf-8")
    titles = [line.removeprefix("# %% ") for line in answers.splitlines() if line[:4] == "# %%"]
    assert titles == [f"{kind} {number}" for number in numbers for kind in ("right", "wrong")]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [(..., "replace the dots"), (2.0, "right."), (3.0, "not yet. Halve it.")],
)
def test_check_tells_right_from_wrong(answer, verdict, capsys):
    _exercises.check(1, answer, lambda value: value == 2.0, "Halve it.")
    assert verdict in capsys.readouterr().out


def test_the_page_of_tutorials_lists_every_notebook():
    page = (ROOT / "docs" / "tutorials.md").read_text(encoding="utf-8")
    table, toctree = page.split("```{toctree}")
    for source in SOURCES:
        assert f"(../notebooks/{source.stem}.ipynb)" in table
        assert f"../notebooks/{source.stem}\n" in toctree

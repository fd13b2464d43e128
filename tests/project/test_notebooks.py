"""Notebooks are stored with their outputs, and say what their sources say."""

import json

import pytest

from ._repository import ROOT

SOURCES = sorted((ROOT / "notebooks").glob("*.py"))


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

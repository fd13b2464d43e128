"""Notebooks are stored with their outputs, and say what their sources say."""

import importlib.util
import inspect
import json
import re

import pytest

from lgcontrol import models

from ._repository import ROOT

_spec = importlib.util.spec_from_file_location(
    "exercises", ROOT / "notebooks" / "exercises" / "__init__.py"
)
_exercises = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_exercises)

SOURCES = sorted((ROOT / "notebooks").glob("*.py"))
BARE = r"\[?<|[A-Z]\w+\(-?[\d.]+, -?[\d.]+, |.* at 0x"  # as matplotlib prints its objects
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
    assert [text for text in map(_bare, data) if text] == [], "end the cell with plt.show()"


def _bare(data):
    """Return the text of a figure's part that a cell's last line returned, without a picture."""
    text = "".join(data.get("text/plain", ""))
    return text if "image/png" not in data and re.match(BARE, text) else ""


@pytest.mark.parametrize(
    ("data", "is_bare"),
    [
        ({"text/plain": "Text(0, 0.5, 'speed')"}, True),
        ({"text/plain": "<matplotlib.legend.Legend at 0x7f4945402890>"}, True),
        ({"text/plain": ["[<matplotlib.lines.Line2D at 0x7f49>,\n", " <matplotlib…>]"]}, True),
        ({"text/plain": "<Figure size 640x480 with 1 Axes>"}, True),
        ({"text/plain": "<Figure size 640x480 with 1 Axes>", "image/png": ""}, False),
        ({"text/plain": "Multibody('mine', 3 bodies)"}, False),
    ],
)
def test_parts_of_figures_are_told_from_results(data, is_bare):
    assert bool(_bare(data)) == is_bare


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


def test_the_lists_of_tutorials_have_every_notebook_with_the_same_question():
    page = (ROOT / "docs" / "tutorials.md").read_text(encoding="utf-8")
    table, toctree = page.split("```{toctree}")
    row = r"^\| (?:\d+ \| )?\[[^\]]+\]\((?:\.\./)?notebooks/(\w+)\.ipynb\) \| (.+) \|$"
    listed = re.findall(row, table, re.MULTILINE)
    assert sorted(name for name, _ in listed) == [source.stem for source in SOURCES]
    assert re.findall(r"^\.\./notebooks/(\w+)$", toctree, re.MULTILINE) == [n for n, _ in listed]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(row, readme, re.MULTILINE) == listed


def test_every_ready_model_is_in_a_tutorial_or_in_the_gallery():
    """A model counts by its name or by that of its tree."""
    shown = [path.read_text(encoding="utf-8") for path in SOURCES]
    runs = json.loads((ROOT / "docs" / "gallery" / "runs.json").read_text(encoding="utf-8"))
    designs = ROOT / "controllers" / "designs"
    shown += [(designs / run["file"]).read_text(encoding="utf-8") for run in runs.values()]
    shown += [path.read_text(encoding="utf-8") for path in designs.glob("_*.py")]
    words = set(re.findall(r"\w+", "\n".join(shown)))
    names = {
        name.removesuffix("_tree")
        for name, model in inspect.getmembers(models, inspect.isfunction)
        if name[0] != "_"
    }
    assert len(names) > 30
    assert sorted(name for name in names if not words & {name, f"{name}_tree"}) == []

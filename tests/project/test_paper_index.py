"""The index of the papers is what docstrings, pages and tests say; its reader reads lists."""

import importlib.util
import shutil
import sys

import pytest

from ._repository import ROOT


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("paper_index", ROOT / "tools/paper_index.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules["paper_index"] = made  # dataclasses look their module up
    spec.loader.exec_module(made)
    yield made
    del sys.modules["paper_index"]


def found(tool):
    known = tool.papers()
    tool.scan_functions(known)
    tool.scan_texts(known)
    return tool.page(known)


def test_the_page_is_what_the_sources_say(tool):
    text, open_ends = found(tool)
    assert open_ends == [], "cite it under References, or give a reason in tools/papers.toml"
    assert tool.PAGE.read_text() == text, "run python tools/paper_index.py"


@pytest.mark.parametrize(
    "text, numbers",
    [
        ("eq. 9, 17 and 26 to 28", [9, 17, 26, 27, 28]),
        ("Eqs. 57–58 (mixed)", [57, 58]),
        ("eq. 68a; table 2", [68, 2]),
        ("equally 12 of them", []),
    ],
)
def test_lists_are_read(tool, text, numbers):
    assert [n for _, n in tool.mentions(text)] == numbers


def test_names_of_tests_cite(tool):
    text = tool.spelled("def test_eq_49_and_50_print_j_for_m(")
    assert list(tool.mentions(text)) == [("eq.", 49), ("eq.", 50)]


def test_a_reference_that_goes_leaves_an_open_end(tool, tmp_path, monkeypatch):
    for folder in ("lgcontrol/mechanics", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "models").mkdir()
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    path = tmp_path / "lgcontrol/mechanics/body/_quasi_velocity.py"
    path.write_text(path.read_text().replace("From 2012, eq. 26.", "From 2012."))
    assert "From 2012: eq. 26" in found(tool)[1]

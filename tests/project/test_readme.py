"""README.md and the pages in docs work as printed: Python runs, commands and links exist."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from lgcontrol import cli

from ._repository import ROOT

pytestmark = pytest.mark.interpreted

README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
# The pages of these folders and these pages take most of a minute: `make notebooks` runs them.
LONG_FOLDERS = ("howto", "theory", "linearize")
LONG = ("integrators.md", "level_vehicles.md", "getting_started.md")
# Hundreds of plans: NumPy takes five times as long as a compiler and its machine code.
COMPILED = ("plan_sensitivity.md",)
# `make docs` writes the pages of the reference, and checks links to them.
MADE = "reference/"
PAGES = [page for page in PAGES if (ROOT / "docs" / MADE) not in page.parents]
SHORT = [page for page in PAGES if page.parent.name not in LONG_FOLDERS and page.name not in LONG]


def blocks(text: str, language: str) -> list[tuple[int, str]]:
    """Return the fenced blocks of a language, each with the line number of its first line."""
    pattern = rf"^```{language}[^\n]*\n(.*?)^```\s*$"
    return [
        (text.count("\n", 0, match.start(1)) + 1, match[1])
        for match in re.finditer(pattern, text, re.MULTILINE | re.DOTALL)
    ]


def commands(text: str, program: str) -> list[list[str]]:
    """Return the argument lists of a program's calls in the sh blocks."""
    calls = []
    for _, block in blocks(text, "(?:sh|bash|console)"):
        for line in block.replace("\\\n", " ").splitlines():
            for call in re.split(r"&&|\|\||[;|]", line.lstrip("$ ")):
                words = shlex.split(call, comments=True)
                while words and re.fullmatch(r"\w+=.*", words[0]):
                    words.pop(0)
                if words and Path(words[0]).name == program:
                    calls.append(words[1:])
    return calls


def run_blocks(text: str, name: str) -> None:
    """Run the Python blocks in order in one namespace, with the line numbers of the page."""
    namespace = {"__name__": "__main__"}
    for line, block in blocks(text, "python"):
        exec(compile("\n" * (line - 1) + block, name, "exec"), namespace)


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.fixture(scope="module")
def readme() -> str:
    if not README.exists():
        pytest.skip("no README.md yet")
    return README.read_text()


@pytest.mark.usually(page=SHORT)
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.compiled] if page.name in COMPILED else [])
        for page in PAGES
    ],
    ids=[str(page.relative_to(ROOT)) for page in PAGES],
)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_blocks(page.read_text(), str(page))


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_to_files_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL))
    links = [x for x in links if "://" not in x and not x.startswith(MADE)]
    missing = [x for x in links if not (page.parent / x).exists()]
    assert not missing


def calls_in_tables(text: str) -> list[str]:
    """Return what stands as code in the last column of tables and is a call or an argument."""
    rows = re.findall(r"^\|.*\|([^|]+)\|$", text, re.MULTILINE)
    return [code for row in rows for code in re.findall(r"`([^`]+)`", row) if set(code) & set("(=")]


def without_spaces(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_every_call_in_the_table_of_tasks_is_run_by_its_page():
    folder = ROOT / "docs" / "howto"
    text = (folder / "README.md").read_text()
    missing, listed, rows = [], set(), 0
    for row in re.finditer(r"^\| \[[^\]]+\]\(([^)]+)\) .*$", text, re.MULTILINE):
        page = (folder / row[1]).resolve()
        listed.add(page)
        rows += 1
        run = without_spaces("".join(block for _, block in blocks(page.read_text(), "python")))
        missing += [
            (row[1], call) for call in calls_in_tables(row[0]) if without_spaces(call) not in run
        ]
    assert rows > 50
    assert not missing
    assert set(folder.glob("*.md")) - listed == {folder / "README.md"}


OWN_DESIGN = (ROOT / "docs" / "howto" / "own_design.md").read_text()


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("words", [" ".join(one) for one in commands(OWN_DESIGN, "lgcontrol")])
def test_the_commands_of_a_design_of_ones_own_run(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("my_design.py").write_text(blocks(OWN_DESIGN, "python")[0][1])
    status, out = cli.main(shlex.split(words)), capsys.readouterr().out
    if words == "run my_design.py":
        assert status == 0
        assert "my_design: A crane carries" in out and "off its place" in out
    if words == "campaign my_design.py --cases 100":
        count = re.search(r"(\d+) of 100 cases succeed", OWN_DESIGN)
        assert count is not None and f"success: {count[1]} of 100" in out
    assert status < 2


def test_make_targets_exist(readme):
    named = {word for call in commands(readme, "make") for word in call if "=" not in word}
    assert not {n for n in named if not n.startswith("-")} - make_targets()


def test_lgcontrol_commands_exist(readme):
    for name in {call[0] for call in commands(readme, "lgcontrol") if call}:
        command = [sys.executable, "-m", "lgcontrol", name, "--help"]
        run = subprocess.run(command, capture_output=True, text=True)
        assert run.returncode == 0, f"lgcontrol {name}: {run.stderr}"


PLANTED = """
```sh
make setup  # then
cd x && make test lint; lgcontrol run quad \\
    --seconds 3
$ LGCONTROL_SHARED=y lgcontrol demo
```

```python
x = 1
```

```python
y = x + 1
assert y == 3
```
"""


def test_the_page_is_read_as_a_person_reads_it():
    assert commands(PLANTED, "make") == [["setup"], ["test", "lint"]]
    assert commands(PLANTED, "lgcontrol") == [["run", "quad", "--seconds", "3"], ["demo"]]
    assert {"test", "demo"} <= make_targets()
    assert "setup" not in make_targets()


def test_calls_are_found_in_tables():
    table = "| a task | call |\n|---|---|\n| x(1) | `f(2)`, then `g`, `p={3: 4}` |\n"
    assert calls_in_tables(table) == ["f(2)", "p={3: 4}"]


def test_a_wrong_block_fails_with_its_line():
    with pytest.raises(AssertionError) as caught:
        run_blocks(PLANTED, "page")
    assert caught.traceback[-1].lineno + 1 == PLANTED.splitlines().index("assert y == 3") + 1

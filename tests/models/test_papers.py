"""Figures and tables of the papers come out as the pages in docs/papers say."""

import re
import tomllib

import numpy as np
import pytest

from lgcontrol.models.papers import _holzinger, _kissel, _mueller_terze
from lgcontrol.models.papers._paper import Claim, ClaimVerdict, Paper
from tests.project._repository import ROOT

PAPERS = {
    "holzinger-gerstmayr-schoeberl": _holzinger.PAPER,
    "kissel-taves-negrut": _kissel.PAPER,
    "mueller-terze-2013": _mueller_terze.PAPER,
}
CASES = [f"{name} {number}" for name, paper in PAPERS.items() for number in paper.figures]
# Ratios of times are those of the machine, and may change sides of a limit.
TIMED = ("table-8", "table-10")
QUICK = (
    "kissel-taves-negrut 1",
    "kissel-taves-negrut table-7",
    "holzinger-gerstmayr-schoeberl 8",
    "mueller-terze-2013 5",
    "mueller-terze-2013 11",
)


def told(name: str, title: str) -> list[list[str]]:
    """Rows of a figure on the page of a paper, without heading."""
    text = (ROOT / "docs/papers" / name / "README.md").read_text()
    section = text.partition(f"## {title}")[2].partition("\n## ")[0]
    lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)[2:]
    return [re.split(r" (?<!\\)\| ", line) for line in lines]


@pytest.mark.usually(case=QUICK)
@pytest.mark.parametrize("case", CASES)
def test_figures_come_out_as_the_pages_say(case):
    name, number = case.split()
    call = PAPERS[name].figures[number]
    made, rows = call(), told(name, call.__doc__.splitlines()[0])
    assert (made.figure is None) == number.startswith("table-")
    assert rows and [row[:2] for row in rows] == [
        [cell.replace("|", "\\|") for cell in claim.row[:2]] for claim in made.claims
    ]
    if number not in TIMED:
        assert [row[3] for row in rows] == [claim.verdict for claim in made.claims]


def test_the_command_knows_the_papers():
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    for name, target in listed["lgcontrol.papers"].items():
        module = target.partition(":")[0].rpartition(".")[2]
        assert PAPERS[name].title and module in repr({_holzinger, _kissel, _mueller_terze})
    assert listed["lgcontrol.papers"].keys() == PAPERS.keys()


def test_verdicts():
    assert Claim("a", "1", 1.05, 0.9, 1.1).verdict is ClaimVerdict.REPRODUCED
    assert Claim("a", "1", 1.2, 0.9, 1.1).verdict is ClaimVerdict.NOT_REPRODUCED
    assert Claim("a", "below 1", 0.5, most=1.0).verdict is ClaimVerdict.REPRODUCED
    assert Claim("a", "1", np.nan, 0.9, 1.1).verdict is ClaimVerdict.NOT_REPRODUCED
    assert Claim("a", "a curve", np.nan).verdict is ClaimVerdict.UNDECIDABLE
    assert Paper("none").figures == {}

"""Every promise of docs/promises.md, and every row of tests/hostile, names a test that exists."""

import json
import os
import re
import subprocess
import sys

import pytest

from ._mutated import MUTATIONS
from ._repository import ROOT

PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
HOSTILE = (ROOT / "tests" / "hostile" / "README.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE + HOSTILE)))
# What users looked for and did not find.
TASKS = (
    "OptimalControlProblem", "Residual", 'at="terminal"', "augment", "observab", "step_derivatives",
    "Waypoints", "check_system", "attach", "TVLQR", "losses", "EKF", "compiled again",
)  # fmt: skip


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_named_tests_exist(file, test):
    assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_promise_names_one():
    promises = [text for text in re.split(r"^- ", PAGE, flags=re.MULTILINE)[1:]]
    assert len(promises) > 15
    assert [text for text in promises if "::test_" not in text] == []


def test_promises_that_were_broken_on_purpose_are_marked():
    promises = [text for text in re.split(r"^- ", PAGE, flags=re.MULTILINE)[1:]]
    marked = [re.search(r"`(tests/\S+::\w+)`", text[text.index("⊘") :])[1] for text in promises if "⊘" in text]  # fmt: skip  # noqa: E501
    assert sorted(marked) == sorted(MUTATIONS)


@pytest.mark.parametrize("test", MUTATIONS)
@pytest.mark.usually(test=[test for test in MUTATIONS if "counts_without_limit" in test])
def test_a_promise_that_is_broken_fails_its_test(test):
    """Most take a compiler or longer: all but one are thorough."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "tests.project._mutated"]
    ended = subprocess.run(
        [*command, "-p", "no:cacheprovider", "-p", "no:xdist", test],
        cwd=ROOT, env={**os.environ, "LGCONTROL_MUTATION": test}, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stdout[-2000:]  # tests ran, and one failed
    assert " failed" in ended.stdout


def test_every_point_of_the_hostile_table_names_one():
    rows = re.findall(r"^\| (\d*) ?\| (.*)\|$", HOSTILE, re.MULTILINE)[1:]
    assert [int(number) for number, _ in rows if number] == list(range(27))
    assert [text for _, text in rows if "::test_" not in text] == []


def test_the_table_of_perturbations_has_the_factors_that_were_measured():
    page = (ROOT / "docs" / "robustness.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w-]+)` \| ([\d.]+) \| (.*) \| (.*) \|$", page, re.MULTILINE)
    results = ROOT / "tests" / "benchmarks" / "results" / "perturbations.json"
    stored = json.loads(results.read_text(encoding="utf-8"))
    measured = {
        (name, f"{told['factor']:.4g}", *told["limiting"][:2]) for name, told in stored.items()
    }
    assert {*rows} == measured
    factors = [float(factor) for _, factor, _, _ in rows]
    assert factors == sorted(factors, reverse=True)


def test_pages_say_what_newcomers_need():
    pages = (ROOT / "docs" / "howto").glob("*.md")
    tasks = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [word for word in TASKS if word not in tasks] == []

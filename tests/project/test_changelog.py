"""The changelog: fragments of changes become a section of the next release."""

import re
import subprocess
import sys

from ._repository import ROOT

FRAGMENT = re.compile(r"\+[a-z0-9_]+\.(added|changed|fixed|removed)\.md")


def test_fragments_become_a_section():
    fragments = sorted((ROOT / "changes").glob("*.md"))
    assert fragments
    run = subprocess.run(
        [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "## 9.9.9 (" in run.stdout
    for path in fragments:
        assert FRAGMENT.fullmatch(path.name), path.name
        assert path.read_text(encoding="utf-8").strip() in run.stdout


def test_releases_begin_at_a_mark():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.count("<!-- towncrier: releases begin here -->\n") == 1

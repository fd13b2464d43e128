"""Every promise of docs/promises.md names a test that exists."""

import re

import pytest

from ._repository import ROOT

PAGE = (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", PAGE)


@pytest.mark.parametrize(("file", "test"), NAMED)
def test_named_tests_exist(file, test):
    assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_promise_names_one():
    promises = [text for text in re.split(r"^- ", PAGE, flags=re.MULTILINE)[1:]]
    assert len(promises) > 15
    assert [text for text in promises if "::test_" not in text] == []

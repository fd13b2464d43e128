"""Sentences are short, begin with their subject and use the words of the field."""

import importlib.util

import pytest

from ._repository import ROOT

_spec = importlib.util.spec_from_file_location("readability", ROOT / "tools" / "readability.py")
readability = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(readability)

PLANTED = [
    "What is left of the plan after the shift is what the next call goes on from.",
    "Where no row is active the step is taken as it is.",
    "That of a call is at most 3e-4.",
    "Those of the arm are smaller.",
    "Six states, of which two are free, describe the linkage.",
    "A plan that breaks a bound is no plan at all.",
    "The pose is a point of rest of the field.",
    "The linkage has three freedoms and one drive.",
    "The gain is what is off divided by two.",
    "A solver that iterates on a plan which it took from a call before, and which it shifted by "
    "the time that went by since then, takes fewer iterations than one that has none.",
]


@pytest.mark.parametrize("sentence", PLANTED)
def test_planted_sentences_are_found(sentence):
    found = readability.count("The rotor turns at its speed. " + sentence)
    assert found.sentences == 2
    assert [sentence] == list(dict.fromkeys([*found.long, *found.banned]))


def test_good_prose_is_left_alone():
    text = (
        "Each call starts with a barrier parameter below 3e-4. If the plan is far from optimal, "
        "the next call raises it, e.g. to 0.1. The controller tracks the closest steady state."
    )
    assert readability.count(text).share == 0.0
    page = "# What is a title?\n\n| What is | a table |\n\n```python\nWhat is code\n```\n"
    assert readability.count(readability.prose_of_markdown(page)).sentences == 0


def test_pages_are_readable():
    broken = {}
    for name, prose in readability.pages().items():
        found = readability.count(prose)
        if found.share > readability.LIMIT:
            broken[name] = (round(found.share, 3), [*found.long, *found.banned][:3])
    assert not broken, broken

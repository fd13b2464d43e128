"""Two thousand odd calls and more: each wrong thing is refused in words of the package's own."""

import matplotlib
import pytest

from .odd_calls import Call, Things, call, calls, entries, is_ours

matplotlib.use("Agg")
pytestmark = pytest.mark.interpreted

# One in so many runs by default; a prime, so that every kind of wrong thing has its turn.
SHARE = 17


@pytest.fixture(scope="module")
def all_calls() -> list[Call]:
    return list(calls())


def test_the_calls_are_right_but_for_the_odd_argument():
    wrong = {}
    for label, (function, good) in entries(Things()).items():
        try:
            call(function, good)
        except Exception as error:
            wrong[label] = error
    assert not wrong


@pytest.mark.parametrize("part", ["some", pytest.param("all", marks=pytest.mark.thorough)])
def test_odd_arguments_are_refused_by_the_package(all_calls, part):
    """No AttributeError, TypeError, KeyError or other of somebody else's comes out."""
    assert len(all_calls) > 4000
    raw = []
    for one in all_calls[:: SHARE if part == "some" else 1]:
        error = one.answer()
        if error is not None and not is_ours(error):
            raw.append(f"{one.label}({one.place}={one.odd}): {type(error).__name__}: {error}")
    assert not raw, "\n".join(raw)

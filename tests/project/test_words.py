"""Words of docs/glossary.md: what it rules out is in no name, docstring, message or page."""

import re

from ._repository import ROOT, repository_files

GLOSSARY = ROOT / "docs" / "glossary.md"
# Pages and sources of planning are settled with its new solver.
PLANNING = (
    "lgcontrol/optimal/",
    "docs/solver",
    "docs/settings",
    "docs/statement",
    "controllers/_mpc",
)
LISTS = ("glossary.md", "CHANGELOG.md", "_renamed.toml", "test_words.py", "readability", "results")


def ruled_out() -> list[str]:
    """Words in bold of the glossary's column "not"."""
    rows = [line.split("|") for line in GLOSSARY.read_text().splitlines() if line.startswith("|")]
    return [word for row in rows for word in re.findall(r"\*\*([^*]+)\*\*", row[-2])]


def found_in(text: str, words: list[str]) -> list[str]:
    return [word for word in words if re.search(rf"\b{word}\b", text, re.IGNORECASE)]


def test_words_that_are_ruled_out_are_nowhere():
    words = ruled_out()
    assert {"freedoms", "point of rest", "parametric"} <= set(words)
    wrong = []
    for name in repository_files():
        is_read = name.endswith((".py", ".md", ".ipynb", ".toml"))
        if not is_read or name.startswith((*PLANNING, "docs/papers")):
            continue
        if any(part in name for part in LISTS):
            continue
        text = (ROOT / name).read_text(encoding="utf-8")
        wrong += [f"{name}: {word}" for word in found_in(text, words)]
    assert not wrong, "\n".join(wrong)


def test_a_planted_word_is_found():
    assert found_in("Two Freedoms and a point of rest.", ruled_out()) == [
        "freedoms",
        "point of rest",
    ]


def test_terms_of_the_glossary_are_given_once():
    terms = re.findall(r"^\| ([^|]+) \|", GLOSSARY.read_text(), re.MULTILINE)
    terms = [term for term in terms if term not in ("term", "---")]
    assert len(terms) > 35 and len(set(terms)) == len(terms)

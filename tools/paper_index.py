"""Index of the papers: which function, page and test an equation, table or figure stands in.

    python tools/paper_index.py           writes docs/theory/papers.md
    python tools/paper_index.py --check   fails when the page is not what the sources say

Functions name their equations under References in their docstrings, pages and tests in their text.
What no source names is listed with the reason that `papers.toml` beside this script states.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/theory/papers.md"
SOURCES = {"lgcontrol": "lgcontrol", "models": "lgcontrol.models"}
KINDS = {"eq.": "equation", "table": "table", "figure": "figure", "section": "section"}

_NUMBER = r"[A-Z]?\d+[a-z]?"
_LIST = rf"{_NUMBER}(?:\s*(?:,|and|or|to|–|-)\s*{_NUMBER})*"
_MENTION = re.compile(rf"\b(eqs?\.|tables?|figures?|sections?)\s+\(?({_LIST})", re.IGNORECASE)


@dataclass
class Paper:
    """One paper: how it is cited, and what it numbers."""

    key: str
    title: str
    words: list[str]
    files: list[str]
    last: dict[str, int]
    absent: dict[str, dict[str, str]]
    found: dict[tuple[str, int], dict[str, set[str]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )


def papers() -> list[Paper]:
    """All papers of papers.toml."""
    data = tomllib.loads((ROOT / "tools/papers.toml").read_text(encoding="utf-8"))
    return [Paper(key=key, **entry) for key, entry in data.items()]


def mentions(text: str) -> Iterator[tuple[str, int]]:
    """(kind, number) of everything that a text names: "eq. 9, 17 and 26 to 28"."""
    for kind, listing in _MENTION.findall(text):
        kind = kind.lower().rstrip("s.").replace("eqs", "eq")
        kind = {"eq": "eq."}.get(kind, kind)
        parts = re.split(r"\s*(,|and|or|to|–|-)\s*", listing)
        numbers = [int(n) if (n := re.sub(r"\D", "", part)) else 0 for part in parts[::2]]
        yield kind, numbers[0]
        for link, before, number in zip(parts[1::2], numbers, numbers[1:], strict=False):
            first = before + 1 if link in ("to", "–", "-") else number
            for each in range(first, number + 1):
                yield kind, each


def spelled(text: str) -> str:
    """Names of tests as text: ``test_eq_49_and_50_print_j`` cites eq. 49 and 50."""
    names = re.sub(r"test_(?:misprint_)?eq_((?:\d+_(?:and_)?)+)", r" eq. \1;", text)
    return re.sub(
        r"eq\. [\d_and]+;", lambda m: re.sub(r"_(and_)?", ", ", m[0]).replace(", ;", ";"), names
    )


def cited(text: str, known: list[Paper], default: Paper | None) -> Iterator[tuple[Paper, str]]:
    """Pieces of a text with the paper that they cite: the last one named before them."""
    places = [
        (m.start(), paper) for paper in known for w in paper.words for m in re.finditer(w, text)
    ]
    current, start = default, 0
    for place, paper in sorted(places, key=lambda entry: entry[0]):
        if current is not None:
            yield current, text[start:place]
        current, start = paper, place
    if current is not None:
        yield current, text[start:]


def references(docstring: str) -> str:
    """The section References of a numpydoc docstring."""
    match = re.search(r"^References\n-+\n(.*?)(?=^\w[\w ]*\n-{3,}\n|\Z)", docstring, re.M | re.S)
    return match[1] if match else ""


def scan_functions(known: list[Paper]) -> None:
    """Add what public functions and classes say under References."""
    for folder, package in SOURCES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            public = [part for part in parts if not part.startswith("_")]
            visit(
                ast.parse(path.read_text(encoding="utf-8")),
                ".".join([package, *public]),
                known,
                None,
            )


def visit(node: ast.AST, name: str, known: list[Paper], default: Paper | None) -> None:
    """Add the References of the definitions in a module or class."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            continue
        text = references(ast.get_docstring(child) or "")
        own, where = default, f"{name}.{child.name}"
        for paper, piece in cited(text, known, default):
            own = paper
            for key in mentions(piece):
                paper.found[key]["function"].add(shown(where))
        if isinstance(child, ast.ClassDef):
            visit(child, where, known, own)


def shown(name: str) -> str:
    """Name as users have it: functions of trees are methods of Multibody."""
    tree = re.fullmatch(r"lgcontrol\.mechanics\.multibody\.\w+\.([a-z]\w+)", name)
    return f"mechanics.Multibody.{tree[1]}" if tree else name.removeprefix("lgcontrol.")


def scan_texts(known: list[Paper]) -> None:
    """Add what pages and tests say; a file's own paper counts where none is named."""
    for pattern, kind in (("docs/**/*.md", "page"), ("tests/**/test_*.py", "test")):
        for path in sorted(ROOT.glob(pattern)):
            if path == PAGE or path.name == "misprints.md":
                continue
            here = path.relative_to(ROOT).as_posix()
            own = next((p for p in known if any(re.search(f, here) for f in p.files)), None)
            for paper, piece in cited(spelled(path.read_text(encoding="utf-8")), known, own):
                for key in mentions(piece):
                    paper.found[key][kind].add(here)


def ranges(numbers: list[int]) -> str:
    """Sorted numbers as text: 1, 3 to 5."""
    groups: list[list[int]] = []
    for n in numbers:
        if groups and n == groups[-1][-1] + 1:
            groups[-1].append(n)
        else:
            groups.append([n])
    return ", ".join(f"{g[0]} to {g[-1]}" if len(g) > 2 else ", ".join(map(str, g)) for g in groups)


def reason(paper: Paper, kind: str, number: int) -> str:
    """Why nothing stands for it; empty where papers.toml does not say."""
    for listing, text in paper.absent.get(kind, {}).items():
        if (kind, number) in set(mentions(f"{kind} {listing}")):
            return text
    return ""


def page(known: list[Paper]) -> tuple[str, list[str]]:
    """The page, and what has neither an entry nor a reason."""
    lines = [
        "# Index of the papers",
        "",
        "The tables list each numbered equation, table and figure of the five papers. They name",
        "the functions whose docstrings cite it, and the pages and tests. The command",
        "`python tools/paper_index.py` makes this page from the sources.",
    ]
    open_ends: list[str] = []
    for paper in known:
        lines += ["", f"## {paper.title}"]
        for kind, last in paper.last.items():
            rows: dict[tuple[str, str, str], list[int]] = defaultdict(list)
            absent: dict[str, list[int]] = defaultdict(list)
            for n in range(1, last + 1):
                found = paper.found.get((kind, n))
                if found:
                    rows[tuple(_cell(found[c], c) for c in ("function", "page", "test"))].append(n)
                elif why := reason(paper, kind, n):
                    absent[why].append(n)
                else:
                    open_ends.append(f"{paper.key}: {kind} {n}")
            lines += ["", f"| {KINDS[kind]} | function | page | test |", "|---|---|---|---|"]
            for cells, numbers in rows.items():
                lines.append(f"| {ranges(numbers)} | {' | '.join(cells)} |")
            if absent:
                lines += ["", f"| {KINDS[kind]} without an entry | reason |", "|---|---|"]
                lines += [f"| {ranges(numbers)} | {why} |" for why, numbers in absent.items()]
    return "\n".join(lines) + "\n", open_ends


def _cell(names: set[str], kind: str) -> str:
    if kind == "page":
        links = (Path(name) for name in sorted(names))
        return ", ".join(
            f"[{p.parent.name if p.stem == 'README' else p.stem}]"
            f"({Path(os.path.relpath(ROOT / p, PAGE.parent)).as_posix()})"
            for p in links
        )
    return ", ".join(f"`{name.removeprefix('tests/')}`" for name in sorted(names))


def main() -> int:
    """Write the page, or compare with it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare and fail, write nothing")
    options = parser.parse_args()
    known = papers()
    scan_functions(known)
    scan_texts(known)
    text, open_ends = page(known)
    for entry in open_ends:
        print(f"neither a source nor a reason in tools/papers.toml: {entry}", file=sys.stderr)
    if not options.check:
        PAGE.write_text(text, encoding="utf-8")
        return bool(open_ends)
    if PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.relative_to(ROOT)} is old: run python tools/paper_index.py", file=sys.stderr)
        return 1
    return bool(open_ends)


if __name__ == "__main__":
    sys.exit(main())

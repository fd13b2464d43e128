"""Count sentences that must be read twice: too long, with an opening or a word that the style bans.

``python tools/readability.py`` prints a table: for each page and each room's public docstrings the
sentences, those that are too long, and those with a banned opening or word. ``--list NAME`` prints
the sentences themselves. `tests/project/test_readability.py` holds each page to its limit.
"""

import argparse
import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LONGEST = 25  # words of a sentence; the limit of the style
LIMIT = 0.02  # of the sentences of a page may break a rule

# A sentence begins with its subject, a noun.
OPENINGS = re.compile(
    r"^(What is|What are|What was|What has|Where |That of|Those of|Of which|Whose)\b"
)
# Words for which the field has its own (docs/glossary.md).
WORDS = re.compile(
    r"\b(of which|so many times|by that much|what is off|freedoms|point of rest|"
    r"a motion of its own|states of their own|share of a step|what nobody sees|nobody can say|"
    r"goes on from|is no (motion|plan|solution|equilibrium)|surprise)\b",
    re.IGNORECASE,
)
ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Za-z`\"(])|(?<=:)\s+(?=[A-Z`\"(])|\n\s*\n|\n(?=\s*[-*|#\d])")
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|cf|Eq|eq|Fig|fig|vs|No|al|resp)\. ")


@dataclass
class Count:
    """What one page holds: its sentences and those that break a rule."""

    sentences: int = 0
    long: list[str] = field(default_factory=list)
    banned: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """Sentences that break a rule, of all."""
        return len({*self.long, *self.banned}) / max(self.sentences, 1)


def prose_of_markdown(text: str) -> str:
    """Return the sentences of a page: no code, no tables, no headings, no link targets."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    text = re.sub(r"^\s*(\||#|!\[|<!--).*$", "\n", text, flags=re.M)
    text = re.sub(r"\$\$.*?\$\$", "E", text, flags=re.S)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"`[^`]*`|\$[^$]*\$", "X", text)


def prose_of_docstring(text: str) -> str:
    """Return the sentences of a docstring: no examples, references, code or names of arguments."""
    text = re.split(r"^(?:Examples|References)\n-+$", text, flags=re.M)[0]
    text = re.sub(
        r"^(\w[\w ,*.\[\]()|=\"'/-]*) : .*$|^[A-Z][a-z]+( [A-Z][a-z]+)?\n-+$",
        "\n",
        text,
        flags=re.M,
    )
    return re.sub(r"``.*?``|`[^`]*`", "X", text, flags=re.S)


def sentences(prose: str) -> list[str]:
    """Split prose at the ends of its sentences."""
    prose = ABBREVIATIONS.sub(lambda match: match[0].replace(". ", " "), prose)
    parts = (re.sub(r"\s+", " ", part).strip(" -*>") for part in ENDS.split(prose))
    return [part for part in parts if len(re.findall(r"[A-Za-z]{2,}", part)) >= 3]


def count(prose: str) -> Count:
    """Count the sentences of some prose and collect those that break a rule."""
    found = Count()
    for sentence in sentences(prose):
        found.sentences += 1
        if len(re.findall(r"[\w'’°%/.-]*[A-Za-z0-9][\w'’°%/.-]*", sentence)) > LONGEST:
            found.long.append(sentence)
        if OPENINGS.search(sentence) or WORDS.search(sentence):
            found.banned.append(sentence)
    return found


def public_docstrings(path: Path) -> list[str]:
    """Return the docstrings of public classes, functions and methods of a file."""
    found = []
    queue: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while queue:
        for node in ast.iter_child_nodes(queue.pop()):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
                continue
            found.append(ast.get_docstring(node) or "")
            if isinstance(node, ast.ClassDef):
                queue.append(node)
    return found


def pages() -> dict[str, str]:
    """Return the prose of each page, notebook and room by name."""
    found = {}
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith("docs/reference/"):
            found[name] = prose_of_markdown(path.read_text(encoding="utf-8"))
    for path in sorted((ROOT / "notebooks").glob("*.py")):
        lines = path.read_text(encoding="utf-8").splitlines()
        text = "\n".join(line[1:].removeprefix(" ") for line in lines if line.startswith("#"))
        found[f"notebooks/{path.name}"] = prose_of_markdown(re.sub(r"^%%.*$", "", text, flags=re.M))
    for room in [*(ROOT / "lgcontrol").iterdir(), ROOT / "models", ROOT / "controllers"]:
        if room.is_dir() and not room.is_symlink() and (room / "__init__.py").exists():
            texts = [
                text for path in sorted(room.rglob("*.py")) for text in public_docstrings(path)
            ]
            found[f"docstrings of {room.name}"] = "\n\n".join(map(prose_of_docstring, texts))
    return dict(sorted(found.items()))


def main() -> None:
    """Print the table, or the sentences of one page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", metavar="NAME", help="print the sentences of this page")
    arguments = parser.parse_args()
    print(f"{'sentences':>9} {'long':>5} {'banned':>6} {'share':>6}  page")
    for name, prose in pages().items():
        found = count(prose)
        if arguments.list in (None, name):
            print(
                f"{found.sentences:9} {len(found.long):5} {len(found.banned):6} "
                f"{100 * found.share:5.1f}%  {name}"
            )
        if arguments.list == name:
            for kind in ("long", "banned"):
                for sentence in getattr(found, kind):
                    print(f"  {kind}: {sentence}")


if __name__ == "__main__":
    main()
